/* SPDX-License-Identifier: LGPL-2.1-or-later */

/*
 * Which scheduler does a leaf have, and which had it before?
 *
 * /run/sutro/leaves/NAME has it: "mq-deadline 17 used 1280 128 4711", scheduler, diskseq,
 * state, max_sectors_kb before and since, inode of queue/ in sysfs. It survives the daemon, not a
 * reboot, as does the scheduler itself. The diskseq distinguishes a disk from another one that got
 * its name later. A new medium in a loop device or a card reader has another diskseq, too, but
 * the queue keeps its scheduler and its inode.
 * "released" keeps the configuration from switching a released leaf again. "switching" becomes
 * "used" with the result of the switch. If the daemon ends before, the leaf may have either
 * scheduler, and the next daemon switches a configured leaf again.
 *
 * A flash leaf gets a limit of the size of requests, too (MaxSectorsKB=). A request cannot be
 * interrupted: while a favoured group thinks for 1 ms, a disk of 540 MB/s can serve three writes
 * of 128 KiB of others, but none of 1 MiB, which takes 2 ms. A rotational disk would lose
 * throughput by it.
 *
 * With a new scheduler the kernel sets nr_requests, the number of request slots, to twice the queue
 * depth of the disk: 64 for one at a SATA port. Writeback of three cgroups shares 48 of these, and
 * the one of the highest weight has none left in a fifth of the time. So a leaf in use has at least
 * NrRequests= of them. They end with the scheduler, and nothing is to be restored.
 *
 * Stopping the daemon leaves the schedulers alone: a restart must not drain and
 * switch queues twice, and sutro without the daemon works with the weights it has.
 *
 * The write itself waits until the disk has finished its requests. leaf-switch.c does it in a child
 * process, between leaf_begin() and leaf_end().
 */

#include <fcntl.h>
#include <stdio.h>
#include <sys/stat.h>

#include "host/discover.h"
#include "host/event.h"
#include "host/leaf.h"
#include "host/sysblock.h"

#define SCHEDULER "sutro"

/**
 * struct record - what is known of a leaf
 * @previous: the scheduler that it had before
 * @before_kb: its max_sectors_kb before; 0: it was not changed
 * @limit_kb: and since; @before_kb again: the limit could not be set, and that was reported
 */
struct record {
	char previous[64];
	char state[16];
	unsigned int before_kb;
	unsigned int limit_kb;
};

/* ---- /run/sutro/leaves ---- */

static char *record_path(const struct roots *roots, const struct device *leaf)
{
	return asprintf_or_null("%s/leaves/%s", roots->run, leaf->name);
}

/* Return: 1; 0: this disk has no record; -errno: the record cannot be read. */
static int record_load(const struct roots *roots, const struct device *leaf,
		       struct record *ret)
{
	_cleanup_free_ char *path = record_path(roots, leaf), *text = NULL;
	unsigned long long diskseq, queue = 0;
	int err;

	*ret = (struct record){};
	if (!path)
		return -ENOMEM;
	err = read_file_at(AT_FDCWD, path, &text);
	if (err)
		return err == -ENOENT ? 0 : err;
	/* Former versions wrote three or five words. */
	return sscanf(text, "%63s %llu %15s %u %u %llu", ret->previous,
		      &diskseq, ret->state, &ret->before_kb, &ret->limit_kb,
		      &queue) >= 3 &&
	       device_is_same(leaf, diskseq, queue);
}

static int record_save(const struct roots *roots, const struct device *leaf,
		       const struct record *r)
{
	_cleanup_free_ char *path = record_path(roots, leaf), *dir = NULL;
	_cleanup_free_ char *new = NULL;
	FILE *f;
	int err = 0;

	dir = asprintf_or_null("%s/leaves", roots->run);
	new = asprintf_or_null("%s.new", path);
	if (!path || !dir || !new)
		return -ENOMEM;
	mkdir(roots->run, 0755);
	if (mkdir(dir, 0755) < 0 && errno != EEXIST)
		return -errno;
	f = fopen(new, "we");
	if (!f)
		return -errno;
	fprintf(f, "%s %llu %s %u %u %llu\n", r->previous,
		(unsigned long long)leaf->diskseq, r->state, r->before_kb,
		r->limit_kb, (unsigned long long)leaf->queue);
	if (fclose(f) != 0)
		err = -errno;
	if (!err && rename(new, path) < 0)
		err = -errno;
	return err;
}

/* The leaf may have the scheduler as soon as its switch has begun. */
static bool is_used(const struct record *r)
{
	return streq(r->state, "used") || streq(r->state, "switching");
}

/* The switch has its result, perhaps that the kernel completes it later. */
static int record_end(const struct roots *roots, const struct device *leaf)
{
	struct record r;
	int known = record_load(roots, leaf, &r);

	if (known <= 0 || !streq(r.state, "switching"))
		return known < 0 ? known : 0;
	snprintf(r.state, sizeof(r.state), "used");
	return record_save(roots, leaf, &r);
}

static void record_remove(const struct roots *roots, const struct device *leaf)
{
	_cleanup_free_ char *path = record_path(roots, leaf);

	if (path)
		unlink(path);
}

bool leaf_is_managed(const struct roots *roots, const struct device *leaf)
{
	struct record r;

	return leaf->scheduler && streq(leaf->scheduler, SCHEDULER) &&
	       record_load(roots, leaf, &r) > 0 && is_used(&r);
}

static int write_attribute(const char *path, const char *text)
{
	_cleanup_close_ int fd = open(path, O_WRONLY | O_CLOEXEC);

	if (fd < 0 || write(fd, text, strlen(text)) < 0)
		return -errno;
	return 0;
}

/* ---- the size of requests ---- */

static char *max_sectors_path(const struct roots *roots, const char *leaf)
{
	return asprintf_or_null("%s/class/block/%s/queue/max_sectors_kb",
				roots->sysfs, leaf);
}

/* Return: max_sectors_kb; 0 if it cannot be read, as on a leaf that was removed or hangs. */
static unsigned int max_sectors_kb(const struct roots *roots,
				   const struct device *leaf)
{
	uint64_t kb = 0;

	queue_number(roots, leaf, "max_sectors_kb", &kb);
	return kb;
}

/* The limit that a leaf in use gets; 0: none. A smaller one of its own stays. */
static unsigned int limit_kb(const struct machine *m, const struct device *leaf)
{
	bool is_larger = max_sectors_kb(&m->roots, leaf) > m->max_sectors_kb;

	return !leaf->rotational && is_larger ? m->max_sectors_kb : 0;
}

/* Does the leaf have the limit of its record, and was its size another one before? */
static bool is_limited(const struct roots *roots, const struct device *leaf,
		       const struct record *r)
{
	return r->before_kb != r->limit_kb &&
	       max_sectors_kb(roots, leaf) == r->limit_kb;
}

static void report_size(const struct device *leaf, bool use,
			unsigned int now_kb, unsigned int wanted_kb)
{
	_cleanup_free_ char *now = asprintf_or_null("%u", now_kb);
	_cleanup_free_ char *wanted = asprintf_or_null("%u", wanted_kb);

	if (now_kb == wanted_kb)
		log_event(EVENT_SIZE_SET, LOG_INFO,
			  EVENT_FIELDS({ "SUTRO_LEAF", leaf->node },
				       { "SUTRO_SIZE_KB", now ?: "" }),
			  "%s: max_sectors_kb is %u now.", leaf->node, now_kb);
	else
		log_event(EVENT_SIZE_NOT_SET, LOG_WARNING,
			  EVENT_FIELDS({ "SUTRO_LEAF", leaf->node },
				       { "SUTRO_SIZE_KB", now ?: "" },
				       { "SUTRO_WANTED_KB", wanted ?: "" }),
			  "%s: max_sectors_kb stays %u, wanted %u. %s",
			  leaf->node, now_kb, wanted_kb,
			  use ? "Large requests of others delay favoured "
				"units; see MaxSectorsKB= in sutrod.conf(5)."
			      : "Write it to queue/max_sectors_kb of the disk "
				"to restore it.");
}

/* Was it reported that the limit cannot be set, and is the size still the same? */
static bool size_is_reported(const struct record *r, unsigned int now_kb)
{
	return r->before_kb && r->limit_kb == r->before_kb &&
	       r->limit_kb == now_kb;
}

/* Read the size back, and record one that stays as it is: the next attempt does not report it. */
static int end_size(const struct roots *roots, const struct device *leaf,
		    bool use, const struct leaf_result *result)
{
	unsigned int now_kb = max_sectors_kb(roots, leaf);
	bool is_set = now_kb == result->max_sectors_kb;
	struct record r;
	int known;

	if (is_set || !result->size_is_reported)
		report_size(leaf, use, now_kb, result->max_sectors_kb);
	if (is_set || !use)
		return 0;
	known = record_load(roots, leaf, &r);
	if (known <= 0)
		return known;
	r.before_kb = r.limit_kb = now_kb;
	return record_save(roots, leaf, &r);
}

/* ---- request slots ---- */

/* The number that a leaf in use gets; 0: it has as many. */
static unsigned int missing_slots(const struct machine *m,
				  const struct device *leaf)
{
	uint64_t slots;

	if (queue_number(&m->roots, leaf, "nr_requests", &slots) < 0)
		return 0;
	return slots < m->nr_requests ? m->nr_requests : 0;
}

static int raise_slots(const struct roots *roots, const char *leaf,
		       struct leaf_result *r)
{
	_cleanup_free_ char *path = NULL, *text = NULL, *now = NULL;
	uint64_t slots;
	int err;

	path = asprintf_or_null("%s/class/block/%s/queue/nr_requests",
				roots->sysfs, leaf);
	text = asprintf_or_null("%u\n", r->nr_requests);
	if (!path || !text)
		return -ENOMEM;
	/* Those of the new scheduler. */
	err = read_file_at(AT_FDCWD, path, &now);
	if (!err)
		err = parse_u64(now, &slots);
	if (err || slots >= r->nr_requests)
		return err;
	err = write_attribute(path, text);
	r->slots_raised = !err;
	return err;
}

static void end_slots(const struct roots *roots, const struct device *leaf,
		      const struct leaf_result *r)
{
	_cleanup_free_ char *now = NULL, *wanted = NULL;
	uint64_t slots;

	if (queue_number(roots, leaf, "nr_requests", &slots) < 0)
		return;
	now = asprintf_or_null("%u", (unsigned int)slots);
	wanted = asprintf_or_null("%u", r->nr_requests);
	if (slots < r->nr_requests)
		log_event(EVENT_SLOTS_NOT_RAISED, LOG_WARNING,
			  EVENT_FIELDS({ "SUTRO_LEAF", leaf->node },
				       { "SUTRO_SLOTS", now ?: "" },
				       { "SUTRO_WANTED_SLOTS", wanted ?: "" }),
			  "%s: nr_requests stays %s, wanted %s. With few "
			  "request slots, shares of cgroups that write files "
			  "differ from their weights; see NrRequests= in "
			  "sutrod.conf(5).",
			  leaf->node, now ?: "", wanted ?: "");
	else if (r->slots_raised)
		log_event(EVENT_SLOTS_RAISED, LOG_INFO,
			  EVENT_FIELDS({ "SUTRO_LEAF", leaf->node },
				       { "SUTRO_SLOTS", now ?: "" }),
			  "%s: nr_requests is %s now.", leaf->node, now ?: "");
}

/* ---- switching ---- */

void leaf_result_done(struct leaf_result *r)
{
	free(r->previous);
	free(r->wanted);
	free(r->error);
	*r = (struct leaf_result){};
}

/* A leaf that was removed meanwhile has no queue any more. */
static bool leaf_exists(const struct roots *roots, const struct device *leaf)
{
	_cleanup_free_ char *path = NULL;

	path = asprintf_or_null("%s/class/block/%s/queue/scheduler",
				roots->sysfs, leaf->name);
	return !path || access(path, F_OK) >= 0;
}

static void report_gone(const struct device *leaf)
{
	log_event(EVENT_LEAF_GONE, LOG_INFO,
		  EVENT_FIELDS({ "SUTRO_LEAF", leaf->node }),
		  "%s is gone: nothing to release.", leaf->node);
}

void leaf_report_removed(const struct roots *roots, const struct device *leaf,
			 bool is_replaced)
{
	struct record r;

	if (record_load(roots, leaf, &r) > 0 && is_used(&r) &&
	    (is_replaced || !leaf_exists(roots, leaf)))
		report_gone(leaf);
}

int leaf_write(const struct roots *roots, const char *leaf,
	       struct leaf_result *r)
{
	_cleanup_free_ char *path = NULL, *size_path = NULL, *size = NULL;
	int err;

	path = asprintf_or_null("%s/class/block/%s/queue/scheduler",
				roots->sysfs, leaf);
	size_path = max_sectors_path(roots, leaf);
	size = asprintf_or_null("%u\n", r->max_sectors_kb);
	if (!path || !size_path || !size)
		return -ENOMEM;
	/* The kernel loads the module NAME-iosched by itself. */
	err = write_attribute(path, r->wanted);
	/* leaf_end() reads it back. */
	if (!err && r->max_sectors_kb)
		write_attribute(size_path, size);
	if (!err && r->nr_requests)
		raise_slots(roots, leaf, r);
	return err;
}

static char *explain_failure(const struct device *leaf, const char *name,
			     int err)
{
	if (err == -EINVAL && streq(name, SCHEDULER))
		return asprintf_or_null(
			"%s: the kernel has no scheduler \"%s\". Install the "
			"package sutro-dkms. If \"dkms status\" does not list "
			"it as installed for this kernel, install the headers "
			"of the kernel; if it does, \"modprobe sutro\" prints "
			"the reason.",
			leaf->node, name);
	if (err == -ETIMEDOUT)
		return asprintf_or_null(
			"%s: the disk has not finished its requests in %u s. "
			"It gets the scheduler \"%s\" when it has.",
			leaf->node, LEAF_LIMIT_SEC, name);
	return asprintf_or_null("%s: cannot switch to the scheduler \"%s\": %s",
				leaf->node, name, strerror(-err));
}

static int begin(const struct device *leaf, struct leaf_result *ret)
{
	*ret = (struct leaf_result){ .previous = strdup(leaf->scheduler
								?: "none") };
	return ret->previous ? 0 : -ENOMEM;
}

static int fail(const struct device *leaf, struct leaf_result *ret, int err)
{
	ret->error = asprintf_or_null(
		"%s: cannot record its scheduler in /run/sutro: %s", leaf->node,
		strerror(-err));
	if (!ret->error)
		return -ENOMEM;
	log_event(EVENT_LEAF_NOT_SWITCHED, LOG_WARNING,
		  EVENT_FIELDS({ "SUTRO_LEAF", leaf->node }), "%s", ret->error);
	return 0;
}

static int want(const struct device *leaf, const char *name, bool dry_run,
		struct leaf_result *ret)
{
	if (dry_run) {
		log_info("%s: would switch from %s to %s.", leaf->node,
			 device_scheduler(leaf), name);
		return 0;
	}
	ret->wanted = strdup(name);
	return ret->wanted ? 0 : -ENOMEM;
}

static int begin_use(const struct machine *m, const struct device *leaf,
		     struct leaf_result *ret)
{
	bool is_sutro = leaf->scheduler && streq(leaf->scheduler, SCHEDULER);
	struct record r = {};
	int known, err;
	bool is_done;

	if (m->dry_run)
		return is_sutro ? 0 : want(leaf, SCHEDULER, m->dry_run, ret);
	/* A leaf that was switched to sutro by udev or by hand is managed from now on. Its former
	 * scheduler is unknown, and every leaf has "none".
	 */
	known = record_load(&m->roots, leaf, &r);
	if (known < 0)
		return fail(leaf, ret, known);
	/* Others have switched the leaf since, but it may still have the limit of a former use. */
	if (!is_sutro && !(known && is_limited(&m->roots, leaf, &r)))
		r.before_kb = r.limit_kb = 0;
	if (!known || !is_sutro)
		snprintf(r.previous, sizeof(r.previous), "%s",
			 is_sutro ? "none" : ret->previous);
	ret->max_sectors_kb = limit_kb(m, leaf);
	if (ret->max_sectors_kb) {
		ret->size_is_reported =
			size_is_reported(&r, max_sectors_kb(&m->roots, leaf));
		r.before_kb = r.before_kb ?: max_sectors_kb(&m->roots, leaf);
		r.limit_kb = ret->max_sectors_kb;
	}
	/* Another scheduler may have as many, and the kernel gives fewer to this one. */
	ret->nr_requests = is_sutro ? missing_slots(m, leaf) : m->nr_requests;
	is_done = is_sutro && !ret->max_sectors_kb && !ret->nr_requests;
	snprintf(r.state, sizeof(r.state), is_done ? "used" : "switching");
	err = record_save(&m->roots, leaf, &r);
	if (err)
		return fail(leaf, ret, err);
	return is_done ? 0 : want(leaf, SCHEDULER, m->dry_run, ret);
}

static int begin_release(const struct roots *roots, const struct device *leaf,
			 bool dry_run, struct leaf_result *ret)
{
	struct record r;
	int known = record_load(roots, leaf, &r);

	if (known < 0)
		return fail(leaf, ret, known);
	if (!known || !is_used(&r))
		return 0;
	if (!leaf_exists(roots, leaf)) {
		report_gone(leaf);
		record_remove(roots, leaf);
		return 0;
	}
	/* A size that was set by hand since then stays. */
	if (is_limited(roots, leaf, &r))
		ret->max_sectors_kb = r.before_kb;
	if (!leaf_is_managed(roots, leaf))
		return ret->max_sectors_kb
			       ? want(leaf, ret->previous, dry_run, ret)
			       : 0;
	return want(leaf, r.previous, dry_run, ret);
}

int leaf_begin(const struct machine *m, const struct device *leaf, bool use,
	       struct leaf_result *ret)
{
	int err = begin(leaf, ret);

	if (err)
		return err;
	return use ? begin_use(m, leaf, ret)
		   : begin_release(&m->roots, leaf, m->dry_run, ret);
}

static int end_badly(const struct roots *roots, const struct device *leaf,
		     bool is_unused, int err, struct leaf_result *ret)
{
	int ended;

	ret->error = explain_failure(leaf, ret->wanted, err);
	if (!ret->error)
		return -ENOMEM;
	log_event(EVENT_LEAF_NOT_SWITCHED, LOG_WARNING,
		  EVENT_FIELDS({ "SUTRO_LEAF", leaf->node }), "%s", ret->error);
	/* After a timeout the kernel may still switch, and then the leaf is managed. */
	if (is_unused && err != -ETIMEDOUT) {
		record_remove(roots, leaf);
		return 0;
	}
	ended = record_end(roots, leaf);
	if (ended)
		log_warning_errno(ended,
				  "%s: cannot record its scheduler in "
				  "/run/sutro: %m",
				  leaf->node);
	return ended == -ENOMEM ? ended : 0;
}

int leaf_end(const struct roots *roots, struct device *leaf, bool use, int err,
	     struct leaf_result *ret)
{
	int unread = device_read_scheduler(leaf, roots);
	bool is_other = !unread && !streq(leaf->scheduler, ret->wanted);
	struct record r = { .state = "released" };

	if (err == -ENOMEM || unread == -ENOMEM)
		return -ENOMEM;
	/* The scheduler in use decides, even if the write has failed since. */
	if (unread || is_other)
		return end_badly(roots, leaf, use && is_other,
				 err ?: unread ?: -EIO, ret);
	ret->changed = !streq(ret->previous, ret->wanted);
	if (ret->changed)
		log_event(EVENT_LEAF_SWITCHED, LOG_INFO,
			  EVENT_FIELDS({ "SUTRO_LEAF", leaf->node },
				       { "SUTRO_SCHEDULER", ret->wanted },
				       { "SUTRO_PREVIOUS", ret->previous }),
			  "%s: scheduler %s -> %s.", leaf->node, ret->previous,
			  ret->wanted);
	if (ret->nr_requests)
		end_slots(roots, leaf, ret);
	err = ret->max_sectors_kb ? end_size(roots, leaf, use, ret) : 0;
	if (err)
		return fail(leaf, ret, err);
	snprintf(r.previous, sizeof(r.previous), "%s", ret->wanted);
	err = use ? record_end(roots, leaf) : record_save(roots, leaf, &r);
	return err ? fail(leaf, ret, err) : 0;
}

bool leaf_is_known(const struct roots *roots, const struct device *leaf)
{
	struct record r;
	int known = record_load(roots, leaf, &r);

	/* A record that cannot be read counts as one. */
	return known < 0 || (known && !streq(r.state, "switching"));
}
