/* SPDX-License-Identifier: LGPL-2.1-or-later */

/*
 * Traffic of a floor: the units that its cgroup moves on the device per second, and the
 * part of them in all of its traffic on the leaves below.
 */

#include <math.h>

#include "control/traffic.h"

/* Older bytes than this weigh less than a third. */
#define COPIES_TAU_S 2.0

static uint64_t promised_units(enum promise_key key, const struct usage *u)
{
	switch (key) {
	case PROMISE_READ_BANDWIDTH_MIN:
		return u->rbytes;
	case PROMISE_WRITE_BANDWIDTH_MIN:
		return u->wbytes;
	case PROMISE_READ_IOPS_MIN:
		return u->rios;
	case PROMISE_WRITE_IOPS_MIN:
		return u->wios;
	default:
		return 0;
	}
}

static bool share_leaf(const struct device *a, const struct device *b)
{
	for (size_t i = 0; i < a->n_leaves; i++)
		if (device_stands_on(b, a->leaves[i]))
			return true;
	return false;
}

/* Bytes of the unit on other devices that share a leaf with @d. Of devices that stand on
 * each other, only the topmost one with traffic of the unit counts.
 */
static uint64_t other_bytes(const struct machine *machine,
			    const struct sampler *sampler,
			    const struct cgroup *c, const struct device *d)
{
	const struct topology *t = machine->topology;
	uint64_t sum = 0;

	/* A device that shares a disk stands on that disk, so a disk has no such devices. */
	if (device_is_lowest(d))
		return 0;
	for (size_t i = 0; i < t->n_devices; i++) {
		const struct device *e = t->devices[i];
		const struct usage *u;
		bool under = false;

		if (device_is_lowest(e) || e->kind == DEVICE_PARTITION ||
		    device_is_above(d, e) || device_is_above(e, d) ||
		    !share_leaf(d, e))
			continue;
		u = sample_usage(sampler, c, e);
		if (!u->rbytes && !u->wbytes)
			continue;
		for (size_t j = 0; j < t->n_devices && !under; j++) {
			const struct usage *above;

			if (t->devices[j] == e ||
			    !device_is_above(t->devices[j], e))
				continue;
			above = sample_usage(sampler, c, t->devices[j]);
			under = above->rbytes || above->wbytes;
		}
		if (!under)
			sum += u->rbytes + u->wbytes;
	}
	return sum;
}

/* Traffic of the unit on volumes that stand on another partition of the disk, and on no
 * other disk.
 */
static struct usage used_elsewhere(const struct machine *machine,
				   const struct sampler *sampler,
				   const struct cgroup *c,
				   const struct device *partition)
{
	const struct topology *t = machine->topology;
	const struct device *disk = partition_disk(partition);
	struct usage sum = {};

	for (size_t i = 0; i < t->n_devices; i++) {
		const struct device *e = t->devices[i], *on;
		const struct usage *u;

		on = e->n_slaves == 1 && e->n_leaves == 1 ? e->slaves[0] : NULL;
		if (!on || on == partition || partition_disk(on) != disk)
			continue;
		u = sample_usage(sampler, c, e);
		sum.rbytes += u->rbytes;
		sum.wbytes += u->wbytes;
	}
	return sum;
}

static uint64_t less(uint64_t a, uint64_t b)
{
	return a > b ? a - b : 0;
}

/* io.stat has a line for the disk and none for a partition. */
static struct usage used_of_partition(const struct machine *machine,
				      const struct sampler *sampler,
				      struct governed *f,
				      const struct device *partition,
				      const struct usage *disk)
{
	struct usage use = *disk, all, elsewhere;

	if (!partition_take(&f->partition, &machine->roots, partition, &all))
		return use;
	elsewhere = used_elsewhere(machine, sampler, f->cgroup, partition);
	use.rbytes = less(use.rbytes, elsewhere.rbytes);
	use.wbytes = less(use.wbytes, elsewhere.wbytes);
	return partition_use(&use, &all);
}

static uint64_t leaf_bytes(const struct sampler *sampler,
			   const struct cgroup *c, const struct device *d)
{
	uint64_t sum = 0;

	for (size_t i = 0; i < d->n_leaves; i++) {
		const struct usage *u = sample_usage(sampler, c, d->leaves[i]);

		sum += u->rbytes + u->wbytes;
	}
	return sum;
}

/* Bytes at the leaves per byte at the device, smoothed: a copy can be written in a later tick
 * than the byte that it copies.
 */
static void measure_copies(struct governed *f, double bytes, double below,
			   double dt_s)
{
	double keep = exp(-dt_s / COPIES_TAU_S);

	f->bytes = keep * f->bytes + bytes;
	f->leaf_bytes = keep * f->leaf_bytes + below;
	if (bytes)
		f->copies = f->leaf_bytes / f->bytes;
}

void traffic_sample(struct plant *plant, struct governed *f,
		    const struct device *d, const struct sampler *sampler,
		    const struct machine *machine, double dt_s)
{
	struct control_promise *p = control_promise(plant->control, f->number);
	const struct device *counted = partition_disk(d) ?: d;
	struct usage u = *sample_usage(sampler, f->cgroup, counted);
	uint64_t all = u.rbytes + u.wbytes +
		       other_bytes(machine, sampler, f->cgroup, counted);
	uint64_t own;

	if (counted != d)
		u = used_of_partition(machine, sampler, f, d, &u);
	f->rate = promised_units(f->key, &u) / dt_s;
	own = promise_info(f->key)->write ? u.wbytes : u.rbytes;
	p->rate = f->rate;
	p->fraction = all ? (double)own / all : 1;
	measure_copies(f, all, leaf_bytes(sampler, f->cgroup, d), dt_s);
}
