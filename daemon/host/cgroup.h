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

TAILQ_HEAD(cgroup_list, cgroup);

/**
 * struct cgroup - one control group
 * @path: from the root of the hierarchy, "/system.slice/db.service"; root: "/"
 * @shown: the same, fit to be shown: names of delegated cgroups may have any bytes
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
 * @dirty: its files are to be compared with the settings
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
	bool dirty;
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

/** cgroup_tree_scan() - add what is there and remove what is not */
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
