/* SPDX-License-Identifier: LGPL-2.1-or-later */

/*
 * Which scheduler does a leaf have, and which had it before?
 *
 * /run/sutro/leaves/NAME remembers it: "mq-deadline 17 used", scheduler, diskseq,
 * state. It survives the daemon, not a reboot, as does the scheduler itself. The
 * diskseq tells a disk from another one that got its name later. "released" keeps
 * the configuration from taking a leaf again that was given back.
 *
 * Stopping the daemon leaves the schedulers alone: a restart must not drain and
 * switch queues twice, and sutro without the daemon works with the weights it has.
 */

#include <fcntl.h>
#include <glob.h>
#include <stdio.h>
#include <sys/stat.h>

#include "host/discover.h"
#include "host/leaf.h"
#include "host/path.h"

#define SCHEDULER "sutro"

struct record {
	char previous[64];
	char state[16];
};

/* ---- /run/sutro/leaves ---- */

static char *record_path(const struct roots *roots, const struct device *leaf)
{
	return asprintf_or_null("%s/leaves/%s", roots->run, leaf->name);
}

static bool record_load(const struct roots *roots, const struct device *leaf,
			struct record *ret)
{
	_cleanup_free_ char *path = record_path(roots, leaf), *text = NULL;
	unsigned long long diskseq;

	if (!path || read_file_at(AT_FDCWD, path, &text) < 0)
		return false;
	return sscanf(text, "%63s %llu %15s", ret->previous, &diskseq,
		      ret->state) == 3 &&
	       diskseq == leaf->diskseq;
}

static int record_save(const struct roots *roots, const struct device *leaf,
		       const char *previous, const char *state)
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
	fprintf(f, "%s %llu %s\n", previous, (unsigned long long)leaf->diskseq,
		state);
	if (fclose(f) != 0)
		err = -errno;
	if (!err && rename(new, path) < 0)
		err = -errno;
	return err;
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
	       record_load(roots, leaf, &r) && streq(r.state, "used");
}

/* ---- switching ---- */

void leaf_result_done(struct leaf_result *r)
{
	free(r->previous);
	free(r->error);
	*r = (struct leaf_result){};
}

/* Removed meanwhile, it has no queue any more. */
static bool leaf_exists(const struct roots *roots, const struct device *leaf)
{
	_cleanup_free_ char *path = NULL;

	path = asprintf_or_null("%s/class/block/%s/queue/scheduler",
				roots->sysfs, leaf->name);
	return !path || access(path, F_OK) >= 0;
}

static int write_scheduler(const struct roots *roots, const struct device *leaf,
			   const char *name)
{
	_cleanup_free_ char *path = NULL;
	_cleanup_close_ int fd = -1;

	path = asprintf_or_null("%s/class/block/%s/queue/scheduler",
				roots->sysfs, leaf->name);
	if (!path)
		return -ENOMEM;
	fd = open(path, O_WRONLY | O_CLOEXEC);
	if (fd < 0)
		return -errno;
	/* The kernel loads the module NAME-iosched by itself. */
	if (write(fd, name, strlen(name)) < 0)
		return -errno;
	return 0;
}

static char *explain_failure(const struct device *leaf, const char *name,
			     int err)
{
	if (err == -EINVAL && streq(name, SCHEDULER))
		return asprintf_or_null(
			"%s: the kernel has no scheduler \"%s\". Install the "
			"package sutro-dkms, and see \"dkms status\".",
			leaf->node, name);
	return asprintf_or_null("%s: cannot switch to the scheduler \"%s\": %s",
				leaf->node, name, strerror(-err));
}

static int switch_to(const struct roots *roots, struct device *leaf,
		     const char *name, bool dry_run, struct leaf_result *ret)
{
	int err;

	if (dry_run) {
		log_info("%s: would switch from %s to %s.", leaf->node,
			 leaf->scheduler, name);
		return 0;
	}
	err = write_scheduler(roots, leaf, name);
	if (!err)
		err = device_read_scheduler(leaf, roots);
	if (!err && !streq(leaf->scheduler, name))
		err = -EIO; /* taken, and something else is in use */
	if (err == -ENOMEM)
		return err;
	if (err) {
		ret->error = explain_failure(leaf, name, err);
		if (!ret->error)
			return -ENOMEM;
		log_warning("%s", ret->error);
		return 0;
	}
	ret->changed = true;
	log_info("%s: scheduler %s -> %s.", leaf->node, ret->previous, name);
	return 0;
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
		"%s: cannot remember its scheduler in /run/sutro: %s",
		leaf->node, strerror(-err));
	if (!ret->error)
		return -ENOMEM;
	log_warning("%s", ret->error);
	return 0;
}

int leaf_use(const struct roots *roots, struct device *leaf, bool dry_run,
	     struct leaf_result *ret)
{
	bool is_sutro = leaf->scheduler && streq(leaf->scheduler, SCHEDULER);
	const char *previous;
	struct record r;
	int err;

	err = begin(leaf, ret);
	if (err)
		return err;
	if (dry_run)
		return is_sutro ? 0
				: switch_to(roots, leaf, SCHEDULER, dry_run,
					    ret);
	/* A leaf that was switched to sutro by udev or by hand is ours from now on. What it
	 * had before is not known then, and "none" is what every leaf has.
	 */
	if (!is_sutro)
		previous = ret->previous;
	else if (record_load(roots, leaf, &r))
		previous = r.previous;
	else
		previous = "none";
	err = record_save(roots, leaf, previous, "used");
	if (err)
		return fail(leaf, ret, err);
	if (is_sutro)
		return 0;
	err = switch_to(roots, leaf, SCHEDULER, dry_run, ret);
	if (ret->error)
		record_remove(roots, leaf);
	return err;
}

int leaf_release(const struct roots *roots, struct device *leaf, bool dry_run,
		 struct leaf_result *ret)
{
	struct record r;
	int err;

	err = begin(leaf, ret);
	if (err)
		return err;
	if (!leaf_is_managed(roots, leaf) || !record_load(roots, leaf, &r))
		return 0;
	if (!leaf_exists(roots, leaf)) {
		log_info("%s is gone: nothing to release.", leaf->node);
		record_remove(roots, leaf);
		return 0;
	}
	err = switch_to(roots, leaf, r.previous, dry_run, ret);
	if (err || dry_run || ret->error)
		return err;
	err = record_save(roots, leaf, r.previous, "released");
	return err ? fail(leaf, ret, err) : 0;
}

/* ---- configuration ---- */

static int use_by_conf(const struct roots *roots, struct device *leaf,
		       bool dry_run)
{
	struct leaf_result result = {};
	struct record r;
	int err;

	/* Not if it was given back, nor if it was switched by hand after we
	 * did.
	 */
	if (record_load(roots, leaf, &r))
		return 0;
	err = leaf_use(roots, leaf, dry_run, &result);
	leaf_result_done(&result);
	return err;
}

int leaves_configure(const struct roots *roots, char *const *use,
		     const struct topology *t, bool dry_run)
{
	size_t skip = strlen(roots->prefix);
	int err = 0;

	for (char *const *p = use; p && *p && !err; p++) {
		_cleanup_free_ char *pattern = NULL;
		glob_t g = {};

		pattern = asprintf_or_null("%s%s", roots->prefix, *p);
		if (!pattern)
			return -ENOMEM;
		glob(pattern, GLOB_NOSORT, NULL, &g);
		for (size_t i = 0; i < g.gl_pathc && !err; i++) {
			struct device *d;

			err = topology_resolve(t, roots, g.gl_pathv[i] + skip,
					       &d);
			if (err && err != -ENOMEM) {
				log_debug_errno(err, "Use=%s: %m, ignoring.",
						g.gl_pathv[i]);
				err = 0;
				continue;
			}
			for (size_t j = 0; !err && j < d->n_leaves; j++)
				err = use_by_conf(roots, d->leaves[j], dry_run);
		}
		globfree(&g);
	}
	return err;
}
