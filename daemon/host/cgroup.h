/* SPDX-License-Identifier: LGPL-2.1-or-later */
#ifndef SUTRO_CGROUP_H
#define SUTRO_CGROUP_H

#include <sys/queue.h>
#include <systemd/sd-event.h>

#include "host/roots.h"
#include "host/util.h"

struct cgrefusal;
struct policy;
struct sample;

enum cgroup_origin {
	CGROUP_PENDING, /* not known yet */
	CGROUP_UNIT, /* a unit of systemd */
	CGROUP_FOREIGN, /* made by another program, below a delegated unit */
};

/* The users of samples, each with samples of its own. */
enum sampler_slot {
	SAMPLER_WATCHER,
	SAMPLER_GOVERNOR,
	SAMPLER_SLOTS,
};

/* Cgroups that the event loop takes at a time in a walk over all of them. */
#define CGROUP_BATCH 200U

TAILQ_HEAD(cgroup_list, cgroup);
LIST_HEAD(cgroup_cursors, cgroup_cursor);

/**
 * struct cgroup - one control group
 * @path: from the root of the hierarchy, "/system.slice/db.service"; root: "/"
 * @shown: @path itself if it is fit to be shown; names of delegated cgroups may have any bytes
 * @name: the last component of @path
 * @inode: number of its directory, the id of the cgroup in the kernel; 0: unknown
 * @is_delegated: others than systemd make and write it, at any rate
 * @watch: NULL: changes are found by the scan
 * @watch_counter: the cgroup that counts @watch, itself or above it; NULL: it has no limit
 * @n_watches: of this one and of those below it that it counts
 * @is_beyond_watches: it has been logged that some below it have no watch
 * @n_events: of a delegated one, events since the last scan
 * @policy: its weights and promises; the owner of the tree fills it in
 * @waiting: a request to systemd about it is under way; its files wait for the reply
 * @unanswered: systemd has not answered the last request, and the next comparison makes another one
 * @is_marked: in the list @marks of those that the next flush takes, which are @dirty or have lost a
 *	child
 * @dirty: its files are to be compared with the settings
 * @due: they are compared by the flush under way
 * @has_lost_child: weights of its children are to be scaled again
 * @scales: of weights of its children for bfq, as a hash, see actuate.c
 * @refusals: lines that the kernel did not take, see cgfile.h
 * @echo: hash of io.weight after the last write of the daemon, 0: no event of it is to come; see
 *	cgfile_take_echo()
 * @node: its number in the plant of the control law, see plant.c
 * @on_way: there is a promise below it
 * @sampled: SAMPLE_TIME and others: the counters that the governor's sampler reads
 * @samples: its use of devices, see sample.h; NULL before it was sampled
 */
struct cgroup {
	char *path;
	char *shown;
	const char *name;
	uint64_t inode;
	struct cgroup_tree *tree;
	struct cgroup *parent;
	struct cgroup_list children;
	TAILQ_ENTRY(cgroup) siblings;
	sd_event_source *watch;
	struct cgroup *watch_counter;
	unsigned int n_watches;
	bool is_beyond_watches;
	unsigned int generation;
	bool is_delegated;
	unsigned int n_events;
	enum cgroup_origin origin;
	struct policy *policy;
	bool waiting;
	bool unanswered;
	TAILQ_ENTRY(cgroup) marks;
	bool is_marked;
	bool dirty;
	bool due;
	bool has_lost_child;
	uint64_t scales;
	struct cgrefusal *refusals;
	uint64_t echo;
	uint32_t node;
	bool on_way;
	unsigned int sampled;
	struct sample *samples[SAMPLER_SLOTS];
};

/**
 * struct cgroup_ops - callbacks of the tree, and the size of its policies
 * @policy_bytes: each new cgroup gets a policy of this size, filled with zeroes
 * @added: a cgroup was found; its parent was before it
 * @removed: it is about to be freed; its children were before it. The owner frees
 *	the contents of @policy, @refusals and @samples
 * @modified: a file "io.*weight" or io.max of it was written
 * @lost: events were lost, a scan is due
 */
struct cgroup_ops {
	size_t policy_bytes;
	void (*added)(struct cgroup *c, void *userdata);
	void (*removed)(struct cgroup *c, void *userdata);
	void (*modified)(struct cgroup *c, const char *file, void *userdata);
	void (*lost)(void *userdata);
};

struct cgroup_tree;

/** cgroup_tree_new() - open the hierarchy; it is empty until it is scanned */
int cgroup_tree_new(const struct roots *roots, sd_event *event,
		    const struct cgroup_ops *ops, void *userdata,
		    struct cgroup_tree **ret);
struct cgroup_tree *cgroup_tree_free(struct cgroup_tree *t);
DEFINE_CLEANUP(struct cgroup_tree *, cgroup_tree_free);

/**
 * cgroup_scan_begin(), cgroup_scan_next() - add what is there and remove what is not
 *
 * cgroup_scan_next() looks at CGROUP_BATCH cgroups.
 *
 * Return: 0; of cgroup_scan_next() 1: there are more; -errno, and the scan has ended.
 */
int cgroup_scan_begin(struct cgroup_tree *t);
int cgroup_scan_next(struct cgroup_tree *t);

/** cgroup_scan_goes_on() - does the scan have more to look at? */
bool cgroup_scan_goes_on(const struct cgroup_tree *t);

/** cgroup_tree_scan() - a whole scan */
int cgroup_tree_scan(struct cgroup_tree *t);

/** cgroup_tree_fd() - the directory that cgroup_read() and cgroup_write() open files in */
int cgroup_tree_fd(const struct cgroup_tree *t);

/** cgroup_tree_mount() - where the hierarchy is mounted */
const char *cgroup_tree_mount(const struct cgroup_tree *t);

struct cgroup *cgroup_tree_root(const struct cgroup_tree *t);
struct cgroup *cgroup_find(const struct cgroup_tree *t, const char *path);

/** cgroup_by_inode() - by the inode number of its directory */
struct cgroup *cgroup_by_inode(const struct cgroup_tree *t, uint64_t inode);

/** cgroup_is_gone() - is there no directory of this cgroup, as far as can be seen? */
bool cgroup_is_gone(const struct cgroup_tree *t, const char *path);

/** cgroup_next() - all below @top in pre-order: start with @c = @top */
struct cgroup *cgroup_next(const struct cgroup *top, struct cgroup *c);

/** cgroup_next_beside() - the same without those below @c */
struct cgroup *cgroup_next_beside(const struct cgroup *top, struct cgroup *c);

/**
 * struct cgroup_cursor - a walk that goes on later, while cgroups come and go
 * @top: the root of the tree
 * @next: NULL: the walk is over
 */
struct cgroup_cursor {
	struct cgroup *top;
	struct cgroup *next;
	LIST_ENTRY(cgroup_cursor) others;
};

/** cgroup_cursor_begin() - walk over all of the tree, again if a walk goes on */
void cgroup_cursor_begin(struct cgroup_cursor *k, struct cgroup *root);

/** cgroup_cursor_next() - the next one, NULL at the end */
struct cgroup *cgroup_cursor_next(struct cgroup_cursor *k);

/** cgroup_cursor_end() - end a walk before its last cgroup */
void cgroup_cursor_end(struct cgroup_cursor *k);

/** cgroup_cursor_goes_on() - is there a next one? */
static inline bool cgroup_cursor_goes_on(const struct cgroup_cursor *k)
{
	return k->next;
}

/**
 * struct cgroup_watches - for the tree: the watches of its cgroups
 * @event: NULL: no cgroup has a watch
 * @on_event: is called with the cgroup
 * @is_unwatched: a watch failed during the scan or since
 * @is_reported: that was logged
 */
struct cgroup_watches {
	sd_event *event;
	sd_event_inotify_handler_t on_event;
	bool is_unwatched;
	bool is_reported;
};

struct cgroup_watches *cgroup_tree_watches(struct cgroup_tree *t);

/** cgroup_watch(), cgroup_unwatch() - a failure is logged. Return: 0 or -ENOMEM */
int cgroup_watch(struct cgroup *c);
void cgroup_unwatch(struct cgroup *c);

/** cgroup_count_event() - false: a delegated cgroup is beyond its limit and loses its watch */
bool cgroup_count_event(struct cgroup *c, const char *file);

/* For the tree: its cursors; move those that are at @gone, whose children are gone. */
struct cgroup_cursors *cgroup_tree_cursors(struct cgroup_tree *t);
void cgroup_cursors_pass(struct cgroup_cursors *cursors, struct cgroup *gone);

/**
 * cgroup_read(), cgroup_read_lines(), cgroup_write() - one file of a cgroup
 *
 * Only cgfile.c writes. cgroup_write_device() writes the line of a device, for which the kernel
 * may wait.
 *
 * Return: 0 or -errno; -ENOENT: no such cgroup, or no such file in it;
 * -ENODEV: the cgroup goes away; -ETIMEDOUT: the device is busy or hangs, see diskcall_write().
 */
int cgroup_read(const struct cgroup *c, const char *file, char **ret);
int cgroup_read_lines(const struct cgroup *c, const char *file,
		      int (*on_line)(char *line, void *userdata),
		      void *userdata);
int cgroup_write(const struct cgroup *c, const char *file, const char *text);
int cgroup_write_device(const struct cgroup *c, const char *file,
			const char *text, dev_t devno);

#endif
