/* SPDX-License-Identifier: LGPL-2.1-or-later */

/* latency.h where the daemon is built without BPF: nothing is measured. */

#include "host/latency.h"

int latency_open(struct latency **ret)
{
	*ret = NULL;
	return 0;
}

struct latency *latency_close(struct latency *l)
{
	return NULL;
}

int latency_error(const struct latency *l)
{
	return -EOPNOTSUPP;
}

int latency_watch(struct latency *l, const struct latency_pair *pairs, size_t n)
{
	return -EOPNOTSUPP;
}

int latency_sample(struct latency *l)
{
	return 0;
}

const struct latency_series *latency_find(const struct latency *l,
					  uint64_t cgroup, dev_t devno)
{
	return NULL;
}

struct latency_pair latency_pair(uint64_t cgroup, dev_t devno)
{
	return (struct latency_pair){};
}
