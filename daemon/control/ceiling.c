/* SPDX-License-Identifier: LGPL-2.1-or-later */

/*
 * Ceilings: ReadBandwidthMax= and its like become lines of io.max.
 *
 *	ReadBandwidthMax=/dev/vg/db 50M
 *	WriteIOPSMax=/dev/vg/db 200
 *
 *	253:0 rbps=50000000 wbps=max riops=max wiops=200
 *
 * The kernel throttles bios where they are submitted, so the line names the logical device
 * itself. A partition has no line of its own: its ceiling is that of its disk. Where the kernel
 * takes no line for the device, each of its leaves gets one: with the whole value where each leaf
 * carries all (writes to a mirror), else with an equal part. A device without a request queue below
 * (zram, brd) has no leaves, and its line only.
 *
 * Others write io.max, too: IOReadBandwidthMax= of systemd. Of a limit of theirs and a ceiling the
 * lower one holds. Their changes are followed, and
 * when a ceiling is withdrawn, their limits are restored.
 */

#include "control/ceiling.h"
#include "host/partition.h"
#include "policy/policy.h"

/* The numbers of a line. */
enum limit {
	LIMIT_RBPS,
	LIMIT_WBPS,
	LIMIT_RIOPS,
	LIMIT_WIOPS,
	LIMITS = CGFILE_NUMBERS,
};

static const enum promise_key keys[] = {
	[LIMIT_RBPS] = PROMISE_READ_BANDWIDTH_MAX,
	[LIMIT_WBPS] = PROMISE_WRITE_BANDWIDTH_MAX,
	[LIMIT_RIOPS] = PROMISE_READ_IOPS_MAX,
	[LIMIT_WIOPS] = PROMISE_WRITE_IOPS_MAX,
};

/** struct ceilings - lines that follow from the promises of a cgroup */
struct ceilings {
	struct cgchange *items;
	size_t n;
};

static struct cgchange *find_line(const struct ceilings *l, dev_t devno)
{
	for (size_t i = 0; i < l->n; i++)
		if (l->items[i].devno == devno)
			return &l->items[i];
	return NULL;
}

/* The lower of two ceilings for one device holds. */
static int add_limit(struct ceilings *l, const struct device *d,
		     enum limit limit, uint64_t value)
{
	struct cgchange *line = find_line(l, d->devno), *grown;

	if (!line) {
		grown = reallocarray(l->items, l->n + 1, sizeof(*grown));
		if (!grown)
			return -ENOMEM;
		l->items = grown;
		line = &grown[l->n++];
		*line = (struct cgchange){
			.devno = d->devno,
			.value = cgvalue_unset(CGFILE_MAX),
			.is_attempt = !d->leaf && d->n_leaves,
		};
	}
	if (value < line->value.number[limit])
		line->value.number[limit] = value;
	return 0;
}

/* The kernel counts IOPS in 32 bits; more is "max". */
static bool is_limit(const struct promise *p)
{
	return promise_info(p->key)->unit == PROMISE_UNIT_BYTES ||
	       p->value < UINT32_MAX;
}

static int add_promises(struct ceilings *logical, struct ceilings *leaves,
			const struct promises *promises)
{
	int err = 0;

	for (size_t i = 0; i < promises->n && !err; i++) {
		const struct promise *p = &promises->items[i];
		const struct device *d = p->device;

		if (!d || !is_limit(p))
			continue;
		d = partition_disk(d) ?: d;
		for (size_t l = 0; l < LIMITS && !err; l++)
			if (keys[l] == p->key)
				err = add_limit(d->leaf ? leaves : logical, d,
						l, p->value);
	}
	return err;
}

/* Each write to a mirror goes to all of its leaves. */
static bool is_mirror(const struct device *d)
{
	return d->kind == DEVICE_RAID1 || d->kind == DEVICE_MIRROR;
}

static int add_at_leaves(struct ceilings *leaves, const struct device *d,
			 const struct cgvalue *value)
{
	int err = 0;

	for (size_t i = 0; i < d->n_leaves; i++)
		for (size_t l = 0; l < LIMITS && !err && d->leaves[i]->devno;
		     l++) {
			bool write = l == LIMIT_WBPS || l == LIMIT_WIOPS;
			size_t parts = write && is_mirror(d) ? 1 : d->n_leaves;
			uint64_t limit = value->number[l];

			if (limit != CGFILE_NO_LIMIT)
				err = add_limit(leaves, d->leaves[i], l,
						limit / parts +
							(limit % parts != 0));
		}
	return err;
}

static int write_lines(struct cgfiles *files, struct cgroup *c,
		       struct ceilings *l)
{
	struct cglines present = {};
	int err = l->n ? cgfile_read(c, CGFILE_MAX, &present) : -ENOENT;

	for (size_t i = 0; i < l->n && !err; i++)
		l->items[i].value = cgfile_merge(files, c, &present,
						 l->items[i].devno,
						 &l->items[i].value);
	if (!err)
		err = cgfile_write(files, c, &present, l->items, l->n);
	cglines_done(&present);
	return err == -ENOMEM ? err : 0;
}

/* Lines of logical devices first. A limit whose line the kernel refuses is set at the leaves. */
static int apply(struct cgfiles *files, const struct topology *topology,
		 struct cgroup *c, struct ceilings *logical,
		 struct ceilings *leaves)
{
	int err = write_lines(files, c, logical);

	for (size_t i = logical->n; i-- > 0 && !err;) {
		const struct cgchange *line = &logical->items[i];
		const struct device *d;

		if (!cgchange_is_untaken(line))
			continue;
		d = topology_by_devno(topology, line->devno);
		if (d)
			err = add_at_leaves(leaves, d, &line->value);
	}
	return err ?: write_lines(files, c, leaves);
}

static int withdraw_others(struct cgfiles *files, struct cgroup *c,
			   const struct ceilings *logical,
			   const struct ceilings *leaves)
{
	struct ceilings kept = { .n = logical->n + leaves->n };
	int err;

	kept.items = calloc(kept.n + 1, sizeof(*kept.items));
	if (!kept.items)
		return -ENOMEM;
	for (size_t i = 0; i < kept.n; i++)
		kept.items[i] = i < logical->n ? logical->items[i]
					       : leaves->items[i - logical->n];
	err = cgfile_withdraw(files, c, CGFILE_MAX, kept.items, kept.n);
	free(kept.items);
	return err;
}

int ceilings_apply(struct cgfiles *files, const struct topology *topology,
		   struct cgroup *c)
{
	struct ceilings logical = {}, leaves = {};
	int err = add_promises(&logical, &leaves, &c->policy->promises);

	if (!err)
		err = apply(files, topology, c, &logical, &leaves);
	if (!err)
		err = withdraw_others(files, c, &logical, &leaves);
	free(logical.items);
	free(leaves.items);
	return err;
}

const struct cgrefusal *ceiling_refusal(const struct cgroup *c,
					const struct promise *p)
{
	const struct device *d = partition_disk(p->device) ?: p->device;
	const struct cgrefusal *r = cgfile_refusal(c, CGFILE_MAX, d->devno);

	for (size_t i = 0; i < d->n_leaves && !r; i++)
		r = cgfile_refusal(c, CGFILE_MAX, d->leaves[i]->devno);
	return r;
}
