/* SPDX-License-Identifier: LGPL-2.1-or-later */

/*
 * Requests that wait above the leaves, where no weight is applied: no leaf shows them.
 *
 * Without weights, a loop device serves its few slots first come, first served. While all of them
 * are taken, the requests of any unit wait.
 *
 * dm-crypt encrypts the writes of all cgroups in one queue, and submits them from one thread. A
 * write counts in io.stat when it is submitted: to the dm-crypt device, and to the device below it
 * when it is encrypted. The difference is in the queue. The kernel's own counters of the dm-crypt
 * device (inflight) begin with the second submission.
 *
 *	254:0 wbytes=1048576	io.stat of db: dm-crypt
 *	8:0 wbytes=0		sda below it: 1 MiB of db waits in dm-crypt
 *
 * Some bytes never arrive below: those of failed writes, or of a time in which dm-crypt had another
 * table (cryptsetup reencrypt). The difference then stays. So it does not count from the time on at
 * which no write of the unit has passed for LOST_USEC.
 *
 * Where a kernel charges the second submission to another cgroup, the difference shows nothing. So it
 * counts only if all units together have at least a part of their writes below, too (OWNED_PART).
 * Linux 6.12 and later keep the cgroup, in dm_submit_bio_remap().
 */

#include <fcntl.h>
#include <stdio.h>

#include "control/above.h"
#include "host/partition.h"
#include "host/sysblock.h"

/* A queue with this part of its slots taken is full. */
#define FULL 0.9

/*
 * Owners are kept below dm-crypt if 1/16 of the bytes written to it are charged below. With a queue
 * in memory of 300 MiB, this is so after 20 MiB.
 */
#define OWNED_PART 16

/*
 * The thread of dm-crypt sends all that has collected in one turn, and then what came meanwhile. In
 * this time a disk of 50 MB/s takes 3 GB.
 */
#define LOST_USEC 60000000U

/* ---- loop devices ---- */

static bool is_full(const struct evidence *e, const struct device *d)
{
	const struct roots *roots = &e->context->machine->roots;
	_cleanup_free_ char *path = NULL, *inflight = NULL;
	unsigned long long reads, writes;
	uint64_t slots;

	path = asprintf_or_null("%s/class/block/%s/inflight", roots->sysfs,
				d->name);
	return path && read_file_at(AT_FDCWD, path, &inflight) == 0 &&
	       sscanf(inflight, "%llu %llu", &reads, &writes) == 2 &&
	       queue_number(roots, d, "nr_requests", &slots) == 0 &&
	       reads + writes >= FULL * slots;
}

/* ---- dm-crypt ---- */

/**
 * struct passage - bytes that cgroups wrote through a device of dm-crypt
 * @above: to the device itself
 * @below: to those on which it stands
 */
struct passage {
	const struct device *crypt;
	uint64_t above;
	uint64_t below;
};

static bool is_below(const struct device *crypt, dev_t devno)
{
	for (size_t i = 0; i < crypt->n_slaves; i++) {
		const struct device *d = crypt->slaves[i];

		/* io.stat has no lines for partitions. */
		if ((partition_disk(d) ?: d)->devno == devno)
			return true;
	}
	return false;
}

/* "254:0 rbytes=0 wbytes=1048576 rios=0 wios=16" */
static int on_line(char *line, void *userdata)
{
	static const char key[] = " wbytes=";
	struct passage *p = userdata;
	const char *rest = line, *value = strstr(line, key);
	uint64_t bytes;
	dev_t devno;

	if (!value || !skip_devno(&rest, &devno))
		return 0;
	skip_u64(value + strlen(key), &bytes);
	if (devno == p->crypt->devno)
		p->above += bytes;
	else if (is_below(p->crypt, devno))
		p->below += bytes;
	return 0;
}

/* Is something of a unit in the queue of dm-crypt? */
static struct above find_in_crypt(const struct governed *f,
				  const struct device *crypt)
{
	struct passage p = { .crypt = crypt };
	struct above found = {};
	uint64_t bytes;

	if (!f->cgroup || cgroup_read_lines(f->cgroup, "io.stat", on_line, &p))
		return found;
	bytes = p.above > p.below ? p.above - p.below : 0;
	found.lost_bytes = bytes < f->lost_bytes ? bytes : f->lost_bytes;
	found.bytes = bytes - found.lost_bytes;
	found.passed_bytes = p.above + p.below;
	if (found.bytes)
		found.at = crypt;
	return found;
}

void above_follow(const struct evidence *e, struct governed *f,
		  struct above *above)
{
	uint64_t now = e->sampler->now_usec;

	if (!above->passed_bytes)
		return;
	f->lost_bytes = above->lost_bytes;
	if (above->passed_bytes != f->passed_bytes) {
		f->passed_bytes = above->passed_bytes;
		f->passed_usec = now;
	} else if (now - f->passed_usec >= LOST_USEC) {
		f->lost_bytes += above->bytes;
		*above = (struct above){};
	}
}

/* ---- any of them ---- */

static struct above find(const struct evidence *e, const struct governed *f,
			 const struct device *d, uint64_t walk)
{
	struct above found = {}, next;

	if (!device_enter(d, walk))
		return found;
	if (d->kind == DEVICE_LOOP &&
	    !actuator_backend(e->context->actuator, d) && is_full(e, d))
		found.at = d;
	if (d->kind == DEVICE_CRYPT)
		found = find_in_crypt(f, d);
	for (size_t i = 0; i < d->n_slaves && !found.at; i++) {
		next = find(e, f, d->slaves[i], walk);
		if (next.at || !found.passed_bytes)
			found = next;
	}
	return found;
}

struct above above_find(const struct evidence *e, const struct governed *f,
			const struct device *d)
{
	return find(e, f, d, device_walk());
}

bool above_is_sure(const struct evidence *e, const struct above *above)
{
	struct cgroup *root = cgroup_tree_root(e->context->machine->tree);
	struct passage p = { .crypt = above->at };
	struct cgroup *c = cgroup_next(root, root);

	if (above->at->kind != DEVICE_CRYPT)
		return true;
	/* The counters of a cgroup include those below it. */
	for (; c; c = cgroup_next_beside(root, c))
		cgroup_read_lines(c, "io.stat", on_line, &p);
	return p.below && p.below >= p.above / OWNED_PART;
}

static const struct device *find_crypt(const struct device *d, uint64_t walk)
{
	const struct device *found = NULL;

	if (!device_enter(d, walk))
		return NULL;
	if (d->kind == DEVICE_CRYPT)
		return d;
	for (size_t i = 0; i < d->n_slaves && !found; i++)
		found = find_crypt(d->slaves[i], walk);
	return found;
}

const struct device *above_crypt(const struct device *d)
{
	return find_crypt(d, device_walk());
}
