/* SPDX-License-Identifier: LGPL-2.1-or-later */

/*
 * Where the latencies of a target are measured.
 *
 *	BPF	at the device that the target names, where the unit waits
 *	else	reads only, at the leaves: requests of all leaves in one histogram
 *
 * The second is an approximation. A read that is divided among leaves takes as long as
 * its slowest part, and all parts count there; the layers between take time, too.
 */

#include "control/enforce.h"
#include "control/meter.h"

int meters_watch(const struct plant *plant, struct latency *l)
{
	_cleanup_free_ struct latency_pair *pairs = NULL;
	size_t n = 0;
	int err;

	pairs = calloc(plant->n_floors + 1, sizeof(*pairs));
	if (!pairs)
		return -ENOMEM;
	for (size_t i = 0; i < plant->n_floors; i++) {
		const struct governed *f = &plant->floors[i];

		if (f->target && f->cgroup && f->cgroup->inode)
			pairs[n++] = latency_pair(f->cgroup->inode, f->devno);
	}
	err = latency_watch(l, pairs, n);
	return n || err == -ENOMEM ? err : 0;
}

/* Return: CONTROL_UNKNOWN, or why the target cannot be kept. */
static enum control_state read_new(const struct governed *f,
				   const struct device *d,
				   const struct sampler *sampler,
				   const struct latency *l,
				   struct histogram *ret)
{
	const struct latency_series *series =
		latency_find(l, f->cgroup->inode, f->devno);
	bool gap = enforce_gap(d);

	f->target->source = series ? TARGET_AT_VOLUME : TARGET_AT_LEAVES;
	if (series) {
		*ret = series->recent[f->target->op];
	} else if (f->target->op == LATENCY_READ) {
		struct latencies reads = {};

		for (size_t i = 0; i < d->n_leaves; i++)
			sample_add_latencies(sampler, f->cgroup, d->leaves[i],
					     &reads);
		histogram_add_leaf(ret, &reads);
	} else if (!gap) {
		return CONTROL_UNOBSERVED;
	}
	return gap ? CONTROL_UNWEIGHTED : CONTROL_UNKNOWN;
}

void meter_sample(struct plant *plant, struct governed *f,
		  const struct device *d, const struct sampler *sampler,
		  const struct latency *l, double dt_s)
{
	/* To the law a target is a floor in device time on all leaves together. */
	struct control_promise *p = control_promise(plant->control, f->number);
	struct histogram new = {};
	enum control_state obstacle = read_new(f, d, sampler, l, &new);
	double alone = control_rate_alone(plant->control, f->number);
	uint64_t time_ns = 0;
	bool waits = false, is_timed = false, is_unreachable = false;

	for (size_t i = 0; i < d->n_leaves; i++) {
		const struct usage *u =
			sample_usage(sampler, f->cgroup, d->leaves[i]);

		time_ns += u->time_ns;
		waits |= u->queued;
		is_timed |= u->is_timed;
		is_unreachable |= u->is_unreachable;
	}
	/* Without requests there is no line. */
	if (time_ns || obstacle)
		f->target->is_enforced = f->is_enforceable && is_timed &&
					 !obstacle;
	f->target->is_unreachable = is_unreachable;
	if (alone > 0)
		target_limit(f->target, alone);
	p->rate = time_ns / 1e9 / dt_s;
	p->fraction = 1;
	target_tick(f->target, &new, waits, p->rate, obstacle, dt_s);
	p->floor = f->target->wanted;
	f->rate = f->target->latency_us;
}
