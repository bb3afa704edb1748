/* SPDX-License-Identifier: LGPL-2.1-or-later */

/*
 * Measured costs of requests, saved over a boot and a switch of the scheduler.
 *
 * The elevator has them in queue/iosched/costs, and they are lost when it ends. A file for each
 * disk has them in /var/lib/sutro/costs, with the disk that they are of:
 *
 *	model=Samsung SSD 980 PRO 1TB
 *	serial=eui.002538b911b2c3d4
 *	firmware=5B2QGXA7
 *	bytes=1000204886016
 *	rotational=0
 *	version 1
 *	read 4096 29629
 *	end
 *
 * The lines from "version" to "end" are those of the elevator, which checks them itself. All lines
 * before have to be as those of the disk are now, and "version" as that of the elevator. A disk
 * without a serial has no file: another one could take its place. The name of the file has model
 * and serial, with "_" for characters other than letters, digits, "-" and "."; of two disks with the
 * same name, the last one that was saved has it.
 */

#include <ctype.h>
#include <dirent.h>
#include <fcntl.h>
#include <sys/stat.h>

#include "host/costs.h"
#include "host/diskcall.h"
#include "host/event.h"
#include "host/store.h"
#include "host/sysblock.h"

#define ATTRIBUTE "iosched/costs"
#define END "end\n"
/* The elevator returns a page at most. The name of a file has up to 255 bytes. */
#define FILE_BYTES_MAX 8192U
#define WORD_BYTES_MAX 100U

/**
 * struct disk - where costs belong to
 * @head: the lines of the file before those of the elevator
 * @name: of the file
 */
struct disk {
	char *head;
	char *name;
};

static void disk_done(struct disk *d)
{
	free(d->head);
	free(d->name);
}

bool costs_has_elevator(const struct device *d)
{
	return d->leaf && d->scheduler && streq(d->scheduler, "sutro");
}

/* ---- the disk ---- */

/* The first of some attributes that is there, in printable ASCII without blanks at its ends; "" */
static int read_first(const struct roots *roots, const struct device *leaf,
		      const char *const *attributes, char **ret)
{
	struct sysblock s = { .roots = roots };

	for (; *attributes; attributes++) {
		_cleanup_free_ char *text = NULL;
		char *begin, *end;
		int err;

		err = sysblock_read(&s, leaf->name, *attributes, &text);
		if (err == -ENOMEM)
			return err;
		if (err)
			continue;
		for (char *c = text; *c; c++)
			if (*c < ' ' || *c > '~')
				*c = '?';
		for (begin = text; *begin == ' '; begin++)
			;
		for (end = begin + strlen(begin); end > begin; end--)
			if (end[-1] != ' ')
				break;
		*end = '\0';
		if (!*begin || strlen(begin) > WORD_BYTES_MAX)
			continue;
		*ret = strdup(begin);
		return *ret ? 0 : -ENOMEM;
	}
	*ret = strdup("");
	return *ret ? 0 : -ENOMEM;
}

static char *file_name(const char *model, const char *serial)
{
	char *name = asprintf_or_null("%s_%s", model, serial);

	for (char *c = name; c && *c; c++)
		if (!isalnum((unsigned char)*c) && *c != '-' && *c != '.')
			*c = '_';
	/* Neither "..", nor the temporary name of store.c. */
	if (name && name[0] == '.')
		name[0] = '_';
	return name;
}

/* Return: 1; 0: the disk has no serial; -ENOMEM. */
static int disk_read(const struct roots *roots, const struct device *leaf,
		     struct disk *ret)
{
	/* Of nvme, SCSI, MMC and virtio. The wwid of a namespace of nvme is its own. */
	static const char *const models[] = { "device/model", "device/name",
					      NULL };
	static const char *const serials[] = { "wwid", "device/wwid",
					       "device/serial", "serial",
					       NULL };
	static const char *const firmwares[] = { "device/firmware_rev",
						 "device/rev", "device/fwrev",
						 NULL };
	_cleanup_free_ char *model = NULL, *serial = NULL, *firmware = NULL;
	int err;

	*ret = (struct disk){};
	err = read_first(roots, leaf, models, &model)
		      ?: read_first(roots, leaf, serials, &serial)
		      ?: read_first(roots, leaf, firmwares, &firmware);
	if (err)
		return err;
	if (!*serial)
		return 0;
	ret->head = asprintf_or_null(
		"model=%s\nserial=%s\nfirmware=%s\nbytes=%llu\nrotational=%d\n",
		model, serial, firmware, (unsigned long long)leaf->size_bytes,
		leaf->rotational);
	ret->name = file_name(model, serial);
	if (ret->head && ret->name)
		return 1;
	disk_done(ret);
	return -ENOMEM;
}

/* ---- the elevator ---- */

/* Are there costs behind the first line? */
static bool has_costs(const char *text)
{
	return strchr(text, '\n') != NULL;
}

static int write_costs(const struct roots *roots, const struct device *leaf,
		       const char *text)
{
	_cleanup_free_ char *path = NULL;
	_cleanup_close_ int fd = -1;

	path = asprintf_or_null("%s/class/block/%s/queue/" ATTRIBUTE,
				roots->sysfs, leaf->name);
	if (!path)
		return -ENOMEM;
	fd = open(path, O_WRONLY | O_CLOEXEC);
	return fd < 0 ? -errno : diskcall_write(device_id(leaf), fd, text);
}

/* ---- files ---- */

static char *file_path(const struct roots *roots, const struct disk *d)
{
	return asprintf_or_null("%s/%s", roots->costs, d->name);
}

/* Return: 0, -ENOENT, -EFBIG, or another -errno. */
static int read_file(const struct roots *roots, const struct disk *d,
		     char **ret)
{
	_cleanup_free_ char *path = file_path(roots, d);
	struct stat st;

	if (!path)
		return -ENOMEM;
	if (stat(path, &st) == 0 && st.st_size > FILE_BYTES_MAX)
		return -EFBIG;
	return read_file_at(AT_FDCWD, path, ret);
}

/* The least recently written file besides @name, and the number of files. */
static int find_oldest(const char *dir, const char *name, char **ret,
		       unsigned int *ret_n)
{
	_cleanup_free_ char *oldest = NULL;
	struct timespec since = {};
	const struct dirent *e;
	DIR *d = opendir(dir);
	int err = 0;

	*ret_n = 0;
	while (d && !err && (e = readdir(d))) {
		struct stat st;

		if (e->d_name[0] == '.' || streq(e->d_name, name) ||
		    fstatat(dirfd(d), e->d_name, &st, AT_SYMLINK_NOFOLLOW) < 0)
			continue;
		++*ret_n;
		if (oldest && (st.st_mtim.tv_sec > since.tv_sec ||
			       (st.st_mtim.tv_sec == since.tv_sec &&
				st.st_mtim.tv_nsec >= since.tv_nsec)))
			continue;
		since = st.st_mtim;
		free(oldest);
		oldest = strdup(e->d_name);
		err = oldest ? 0 : -ENOMEM;
	}
	if (d)
		closedir(d);
	*ret = TAKE_PTR(oldest);
	return err;
}

/* Make room for one more file; the lock is held. */
static int remove_oldest(const char *dir, const char *name)
{
	unsigned int n;

	for (;;) {
		_cleanup_free_ char *oldest = NULL;
		int err = find_oldest(dir, name, &oldest, &n);

		if (err || n < COSTS_FILES_MAX)
			return err;
		err = store_remove(dir, oldest);
		if (err < 0)
			return err;
	}
}

static int write_file(const struct roots *roots, const struct disk *d,
		      const char *text)
{
	_cleanup_close_ int lock = store_lock(roots->costs);

	if (lock < 0)
		return lock;
	return remove_oldest(roots->costs, d->name)
		       ?: store_put(roots->costs, d->name, text);
}

static int save(const struct roots *roots, const struct device *leaf,
		const struct disk *d, const char *costs)
{
	_cleanup_free_ char *text = NULL, *saved = NULL;
	int err;

	text = asprintf_or_null("%s%s\n" END, d->head, costs);
	if (!text)
		return -ENOMEM;
	err = read_file(roots, d, &saved);
	/* read_file_at() takes the newline at the end away. */
	if (!err && strlen(saved) + 1 == strlen(text) &&
	    strncmp(saved, text, strlen(saved)) == 0)
		return 0;
	err = write_file(roots, d, text);
	if (!err)
		log_debug("%s: costs of requests saved in %s/%s.", leaf->node,
			  roots->costs, d->name);
	return err;
}

char *costs_read(const struct roots *roots, const struct device *leaf)
{
	_cleanup_free_ char *costs = NULL;
	int err = queue_read(roots, leaf, ATTRIBUTE, &costs);

	/* A module of before has no such file; a disk that hangs keeps its file. */
	return err || !has_costs(costs) ? NULL : TAKE_PTR(costs);
}

static void report_unsaved(const struct roots *roots, const struct device *leaf,
			   const struct disk *d, int err)
{
	_cleanup_free_ char *path = file_path(roots, d);

	log_event(
		EVENT_COSTS_NOT_SAVED, LOG_WARNING,
		EVENT_FIELDS({ "SUTRO_FILE", path ?: roots->costs }),
		"%s: cannot save costs of requests in %s: %s. After a boot they are measured again.",
		leaf->node, path ?: roots->costs, strerror(-err));
}

void costs_write(const struct roots *roots, const struct device *leaf,
		 const char *text)
{
	struct disk d;
	int err = disk_read(roots, leaf, &d);

	if (err > 0) {
		err = save(roots, leaf, &d, text);
		if (err)
			report_unsaved(roots, leaf, &d, err);
		disk_done(&d);
	} else if (err == -ENOMEM) {
		log_oom();
	}
}

void costs_save(const struct roots *roots, const struct device *leaf)
{
	_cleanup_free_ char *costs = costs_read(roots, leaf);

	if (costs)
		costs_write(roots, leaf, costs);
}

void costs_save_all(const struct roots *roots, const struct topology *t)
{
	for (size_t i = 0; i < t->n_devices; i++)
		if (costs_has_elevator(t->devices[i]))
			costs_save(roots, t->devices[i]);
}

/* ---- back to the elevator ---- */

/* Why a saved file is of no use; NULL: it has the lines @ret for the elevator. */
static const char *check(const struct disk *d, const char *version, char *text,
			 char **ret)
{
	const char *rest = startswith(text, d->head);
	size_t length = strlen(text), end = strlen(END) - 1;

	if (length < end || !streq(text + length - end, "end") ||
	    (length > end && text[length - end - 1] != '\n'))
		return "it is damaged";
	if (!rest)
		return "it is of another disk, firmware or size";
	rest = startswith(rest, version);
	if (!rest || *rest != '\n')
		return "the module of that time had another version of costs";
	text[length - end] = '\0';
	*ret = text + strlen(d->head);
	return NULL;
}

static void restore(const struct roots *roots, const struct device *leaf,
		    const struct disk *d, const char *version)
{
	_cleanup_free_ char *text = NULL;
	const char *mistake = NULL;
	char *costs;
	int err = read_file(roots, d, &text);

	if (err == -ENOENT)
		return;
	if (err == -EFBIG)
		mistake = "it is damaged";
	else if (!err)
		mistake = check(d, version, text, &costs);
	if (!err && !mistake) {
		err = write_costs(roots, leaf, costs);
		if (err == -EINVAL)
			mistake = "the module refuses its costs";
	}
	if (mistake)
		log_event(EVENT_COSTS_IGNORED, LOG_WARNING,
			  EVENT_FIELDS({ "SUTRO_LEAF", leaf->node }),
			  "%s: ignoring %s/%s: %s. Costs are measured again, "
			  "and replace the file within an hour.",
			  leaf->node, roots->costs, d->name, mistake);
	else if (err)
		log_warning_errno(err,
				  "%s: cannot restore costs of requests from "
				  "%s/%s: %m. They are measured again.",
				  leaf->node, roots->costs, d->name);
	else
		log_debug("%s: costs of requests restored from %s/%s.",
			  leaf->node, roots->costs, d->name);
}

void costs_restore(const struct roots *roots, const struct device *leaf)
{
	_cleanup_free_ char *version = NULL;
	struct disk d;
	int err = queue_read(roots, leaf, ATTRIBUTE, &version);

	if (err || has_costs(version))
		return;
	err = disk_read(roots, leaf, &d);
	if (err > 0) {
		restore(roots, leaf, &d, version);
		disk_done(&d);
	} else if (err == -ENOMEM) {
		log_oom();
	}
}
