/* SPDX-License-Identifier: LGPL-2.1-or-later */

/*
 * Leaves whose schedulers are being switched.
 *
 * A switch waits until the disk has finished its requests, and the kernel may load a module first.
 * A child process for each leaf writes queue/scheduler, at most RUNNING_MAX at a time: a disk that
 * hangs delays neither the loop nor, after LEAF_LIMIT_SEC, other disks. The kernel completes such
 * a switch whenever the disk returns; the watch on queue/scheduler reports it then.
 *
 * Each block uevent makes leaf_switch_configured() look at all leaves. A leaf that the kernel does not
 * switch, as the module is missing, is tried and reported once, and again after a reload: an
 * installation of the module reloads the daemon.
 *
 * The child also saves the costs of requests of a leaf that is released (costs.c), which the kernel
 * frees with the elevator.
 *
 * Devices are found again by name and queue when the child has ended, because the topology may
 * be another one by then.
 */

#include <glob.h>
#include <stdio.h>

#include "host/costs.h"
#include "host/diskcall.h"
#include "host/helper.h"
#include "host/leaf-switch.h"
#include "host/path.h"

#define RUNNING_MAX 16U

/**
 * struct leaf_switch - a leaf that is being switched, or waits for its turn
 * @helper: the child; NULL: it waits
 * @costs: in the child, of an elevator that ends with the switch; NULL: it has measured none
 */
struct leaf_switch {
	struct leaf_switches *all;
	char *name;
	uint64_t diskseq;
	uint64_t queue;
	bool use;
	struct leaf_result result;
	leaf_done_t done;
	void *userdata;
	struct helper *helper;
	char *costs;
	TAILQ_ENTRY(leaf_switch) list;
};

static void start_waiting(struct leaf_switches *all);

void leaf_switches_init(struct leaf_switches *s, const struct machine *m)
{
	*s = (struct leaf_switches){ .machine = m };
	TAILQ_INIT(&s->list);
}

/* ---- leaves that could not be switched ---- */

static void failure_remove(struct leaf_switches *all, size_t i)
{
	free(all->failures[i].name);
	all->failures[i] = all->failures[--all->n_failures];
}

void leaf_switches_retry(struct leaf_switches *all)
{
	while (all->n_failures)
		failure_remove(all, all->n_failures - 1);
	free(TAKE_PTR(all->failures));
}

static bool is_of(const struct leaf_failure *f, const struct device *leaf)
{
	return streq(f->name, leaf->name) &&
	       device_is_same(leaf, f->diskseq, f->queue);
}

static bool has_failed(const struct leaf_switches *all,
		       const struct device *leaf)
{
	for (size_t i = 0; i < all->n_failures; i++)
		if (is_of(&all->failures[i], leaf))
			return true;
	return false;
}

static int failure_add(struct leaf_switches *all, const struct device *leaf)
{
	struct leaf_failure *grown, f = { .name = strdup(leaf->name),
					  .diskseq = leaf->diskseq,
					  .queue = leaf->queue };

	grown = f.name ? reallocarray(all->failures, all->n_failures + 1,
				      sizeof(f))
		       : NULL;
	if (!grown) {
		free(f.name);
		return -ENOMEM;
	}
	all->failures = grown;
	grown[all->n_failures++] = f;
	return 0;
}

/* Drop the failures of removed leaves: disks may come and go without end. */
static void failures_prune(struct leaf_switches *all)
{
	for (size_t i = all->n_failures; i-- > 0;) {
		const struct leaf_failure *f = &all->failures[i];
		const struct device *d =
			topology_by_name(all->machine->topology, f->name);

		if (!d || !is_of(f, d))
			failure_remove(all, i);
	}
}

/* ---- the end of a switch ---- */

static void switch_free(struct leaf_switch *s)
{
	struct leaf_switches *all = s->all;

	TAILQ_REMOVE(&all->list, s, list);
	all->n_running -= s->helper != NULL;
	helper_cancel(s->helper);
	leaf_result_done(&s->result);
	free(s->name);
	free(s);
}

void leaf_switches_done(struct leaf_switches *s)
{
	struct leaf_switch *one;

	while ((one = TAILQ_FIRST(&s->list)))
		switch_free(one);
	leaf_switches_retry(s);
}

void leaf_switches_forget(struct leaf_switches *s, const void *userdata)
{
	struct leaf_switch *one;

	TAILQ_FOREACH(one, &s->list, list)
		if (one->userdata == userdata)
			one->done = NULL;
}

static struct device *find_leaf(const struct leaf_switch *s)
{
	struct device *d = topology_by_name(s->all->machine->topology, s->name);

	return d && d->leaf && device_is_same(d, s->diskseq, s->queue) ? d
								       : NULL;
}

static int end(struct leaf_switch *s, struct device *leaf, int err)
{
	if (leaf)
		return leaf_end(&s->all->machine->roots, leaf, s->use, err,
				&s->result);
	s->result.error =
		asprintf_or_null("/dev/%s: the disk was removed.", s->name);
	return s->result.error ? 0 : -ENOMEM;
}

/* @is_answer: @err is that of the write, and not of the child process */
static void finish(struct leaf_switch *s, int err, bool is_answer)
{
	struct leaf_switches *all = s->all;
	struct device *leaf = find_leaf(s);

	if (s->helper)
		all->n_running--;
	s->helper = NULL;
	if (leaf)
		leaf->is_switching = false;
	if (end(s, leaf, err) < 0 ||
	    (leaf && s->use && s->result.error && is_answer &&
	     !has_failed(all, leaf) && failure_add(all, leaf) < 0))
		log_oom();
	if (all->over)
		all->over(leaf, s->result.changed, all->userdata);
	if (s->done)
		s->done(leaf, &s->result, s->userdata);
	switch_free(s);
	start_waiting(all);
}

/* ---- the child ---- */

/* The output of the child: the number of the error, 0 for none, and whether it has raised slots. */
static int write_in_child(int fd, void *userdata)
{
	struct leaf_switch *s = userdata;
	const struct roots *roots = &s->all->machine->roots;
	const struct device *leaf = find_leaf(s);
	int err;

	if (leaf && !s->use && costs_has_elevator(leaf))
		s->costs = costs_read(roots, leaf);
	err = leaf_write(roots, s->name, &s->result);
	return dprintf(fd, "%d %d", -err, s->result.slots_raised) < 0 ? -EIO
								      : 0;
}

/* The file system of /var may be on a disk that hangs, and the switch does not wait for it. */
static void save_costs_in_child(void *userdata)
{
	const struct leaf_switch *s = userdata;
	const struct device *leaf = find_leaf(s);

	if (leaf && s->costs)
		costs_write(&s->all->machine->roots, leaf, s->costs);
}

static void on_written(int err, const char *output, size_t length,
		       void *userdata)
{
	struct leaf_switch *s = userdata;
	int number = 0, raised = 0;

	if (!err)
		sscanf(output, "%d %d", &number, &raised);
	s->result.slots_raised = raised;
	finish(s, err ?: -number, !err);
}

static void start_waiting(struct leaf_switches *all)
{
	struct leaf_switch *s;
	struct device *leaf;
	int err;

	TAILQ_FOREACH(s, &all->list, list) {
		const struct helper_job job = {
			.keep_fd = -1,
			.limit_usec = LEAF_LIMIT_SEC * 1000000ULL,
			.work = write_in_child,
			.after = save_costs_in_child,
			.done = on_written,
			.userdata = s,
		};

		if (s->helper)
			continue;
		if (all->n_running >= RUNNING_MAX)
			return;
		err = helper_start(all->machine->event, &job, &s->helper);
		if (err) {
			finish(s, err, false);
			return; /* which continued with the other leaves */
		}
		all->n_running++;
		leaf = find_leaf(s);
		if (leaf)
			leaf->is_switching = true;
	}
}

/* ---- the beginning ---- */

static bool is_under_way(const struct leaf_switches *all,
			 const struct device *leaf)
{
	const struct leaf_switch *s;

	TAILQ_FOREACH(s, &all->list, list)
		if (streq(s->name, leaf->name) &&
		    device_is_same(leaf, s->diskseq, s->queue))
			return true;
	return false;
}

static int refuse(const struct device *leaf, const char *why,
		  struct leaf_result *ret)
{
	ret->previous = strdup(leaf->scheduler ?: "none");
	ret->error = asprintf_or_null("%s: %s", leaf->node, why);
	return ret->previous && ret->error ? 0 : -ENOMEM;
}

static int add(struct leaf_switches *all, const struct device *leaf, bool use,
	       const struct leaf_result *result, leaf_done_t done,
	       void *userdata)
{
	struct leaf_switch *s = calloc(1, sizeof(*s));
	char *name = strdup(leaf->name);

	if (!s || !name) {
		free(s);
		free(name);
		return -ENOMEM;
	}
	*s = (struct leaf_switch){ .all = all,
				   .name = name,
				   .diskseq = leaf->diskseq,
				   .queue = leaf->queue,
				   .use = use,
				   .result = *result,
				   .done = done,
				   .userdata = userdata };
	TAILQ_INSERT_TAIL(&all->list, s, list);
	return 0;
}

int leaf_switch(struct leaf_switches *all, struct device *leaf, bool use,
		leaf_done_t done, void *userdata)
{
	struct leaf_result result = {};
	int err;

	if (is_under_way(all, leaf))
		err = refuse(leaf,
			     "its scheduler is being switched already. Try it "
			     "again in some seconds.",
			     &result);
	else if (diskcall_is_hung(device_id(leaf)))
		err = refuse(leaf,
			     "the disk hangs. Try it again when it answers; "
			     "see \"journalctl --dmesg\".",
			     &result);
	else if (diskcall_is_pending(device_id(leaf)))
		err = refuse(leaf,
			     "the disk has not finished earlier requests. Try "
			     "it again in some seconds.",
			     &result);
	else
		err = leaf_begin(all->machine, leaf, use, &result);
	if (!err && result.wanted) {
		err = add(all, leaf, use, &result, done, userdata);
		if (!err) {
			start_waiting(all);
			return 0;
		}
	}
	if (!err && done)
		done(leaf, &result, userdata);
	leaf_result_done(&result);
	return err;
}

/* ---- the configuration ---- */

static int use_path(struct leaf_switches *all, const char *path)
{
	const struct machine *m = all->machine;
	struct device *d;
	int err = topology_resolve(m->topology, &m->roots, path, &d);

	if (err && err != -ENOMEM) {
		log_debug_errno(err, "Use=%s: %m, ignoring.", path);
		return 0;
	}
	/* Skip a leaf that was released, that was switched by hand since, or that cannot be switched. */
	for (size_t i = 0; !err && i < d->n_leaves; i++)
		if (!has_failed(all, d->leaves[i]) &&
		    !leaf_is_known(&m->roots, d->leaves[i]))
			err = leaf_switch(all, d->leaves[i], true, NULL, NULL);
	return err;
}

int leaf_switch_configured(struct leaf_switches *all, char *const *use)
{
	const char *prefix = all->machine->roots.prefix;
	int err = 0;

	failures_prune(all);
	for (char *const *p = use; p && *p && !err; p++) {
		_cleanup_free_ char *pattern = NULL;
		glob_t g = {};

		pattern = asprintf_or_null("%s%s", prefix, *p);
		if (!pattern)
			return -ENOMEM;
		glob(pattern, GLOB_NOSORT, NULL, &g);
		for (size_t i = 0; i < g.gl_pathc && !err; i++)
			err = use_path(all, g.gl_pathv[i] + strlen(prefix));
		globfree(&g);
	}
	return err;
}
