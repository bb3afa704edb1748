/* SPDX-License-Identifier: LGPL-2.1-or-later */

/*
 * Latency targets that elevators enforce: LatencyTarget= becomes lines of io.sutro.latency.
 *
 *	LatencyTarget=/dev/vg/db 5ms
 *
 *	8:0 5000
 *	8:16 5000
 *
 * The file is for the 95th percentile of reads. So targets for another percentile, and those
 * for writes and fsyncs, have no line; target.c searches a share for them. Nor have those of
 * a device with a leaf of another scheduler, which are measured only, and those of a device with a
 * hidden leaf, whose line would be the default line.
 *
 * A read that a stripe divides takes as long as its slowest part. Each leaf has the whole
 * target: the elevator aims at a third of the late reads that a 95th percentile permits.
 */

#include "control/enforce.h"
#include "policy/policy.h"

/* The percentile that io.sutro.latency enforces, in 1/10000. */
#define ENFORCED_PERCENTILE 9500U

const struct device *enforce_gap(const struct device *d)
{
	for (size_t i = 0; i < d->n_leaves; i++)
		if (!d->leaves[i]->scheduler ||
		    !streq(d->leaves[i]->scheduler, "sutro"))
			return d->leaves[i];
	return device_hidden_leaf(d);
}

bool enforce_takes(const struct promise *p, const struct device *d)
{
	const struct promise_info *info = promise_info(p->key);

	return info->kind == PROMISE_KIND_TARGET && info->op == LATENCY_READ &&
	       p->percentile == ENFORCED_PERCENTILE && d && d->n_leaves &&
	       !enforce_gap(d);
}

/** struct lines - lines that follow from the promises of a cgroup */
struct lines {
	struct cgchange *items;
	size_t n;
};

/* The lower of two targets for one leaf holds. */
static int add_line(struct lines *l, dev_t devno, uint64_t usec)
{
	uint64_t most = cgformat(CGFILE_SUTRO_LATENCY)->max;
	struct cgchange *grown;

	usec = usec < most ? usec : most;
	for (size_t i = 0; i < l->n; i++) {
		uint64_t *number = &l->items[i].value.number[0];

		if (l->items[i].devno == devno) {
			*number = usec < *number ? usec : *number;
			return 0;
		}
	}
	grown = reallocarray(l->items, l->n + 1, sizeof(*grown));
	if (!grown)
		return -ENOMEM;
	l->items = grown;
	grown[l->n++] = (struct cgchange){
		.devno = devno,
		.value = cgvalue(usec),
		.reason = "its latency target",
	};
	return 0;
}

int enforce_apply(struct cgfiles *files, struct cgroup *c)
{
	const struct promises *promises = &c->policy->promises;
	struct lines l = {};
	int err = 0;

	for (size_t i = 0; i < promises->n && !err; i++) {
		const struct promise *p = &promises->items[i];

		for (size_t j = 0; enforce_takes(p, p->device) &&
				   j < p->device->n_leaves && !err;
		     j++)
			err = add_line(&l, p->device->leaves[j]->devno,
				       p->value);
	}
	if (!err)
		err = cgfile_set(files, c, CGFILE_SUTRO_LATENCY, l.items, l.n);
	free(l.items);
	return err;
}
