/* SPDX-License-Identifier: LGPL-2.1-or-later */

/*
 * Latencies at logical devices, measured by the BPF programs in latency.bpf.c.
 *
 *	start	load programs and maps, give up CAP_BPF and CAP_PERFMON
 *	plant	a target is there: attach, and add its pair to the maps
 *	tick	look up each pair: counts of all CPUs; new requests are the difference
 *		to the counts of the tick before
 *
 * File descriptors of loaded programs and maps need no capability. When the daemon
 * ends, the kernel detaches the programs.
 */

#include <bpf/bpf.h>
#include <bpf/libbpf.h>
#include <stdio.h>
#include <sys/capability.h>
#include <sys/sysmacros.h>

#include <latency.skel.h>

#include "host/latency.h"

/* Bios in flight, for each CPU; the kernel's LRU lists reserve 128 for each CPU. */
#define FLIGHTS_MIN 4096
#define FLIGHTS_PER_CPU 512

#define DEV_MINOR_BITS 20

/**
 * struct watch - a pair that is measured
 * @last: sums over the CPUs, as read last; they may overflow
 * @kept: it is in the new list of pairs, too
 */
struct watch {
	struct latency_pair pair;
	uint32_t last[LATENCY_OPS][HISTOGRAM_BUCKETS];
	struct latency_series series;
	bool kept;
};

/**
 * struct latency - see latency.h
 * @skeleton: NULL where it cannot be loaded
 * @values: room for a value of each CPU
 * @value_bytes: of one of them
 */
struct latency {
	struct latency_bpf *skeleton;
	int error;
	bool attached;
	struct watch **watches;
	size_t n_watches;
	char *values;
	size_t value_bytes;
	size_t n_cpus;
};

/* ---- loading ---- */

_printf_(2, 0) static int log_libbpf(enum libbpf_print_level level,
				     const char *format, va_list args)
{
	char text[512];

	/* Its "debug" has each relocation. */
	if (level == LIBBPF_DEBUG)
		return 0;
	vsnprintf(text, sizeof(text), format, args);
	text[strcspn(text, "\n")] = '\0';
	log_debug("libbpf: %s", text);
	return 0;
}

static int load(struct latency *l)
{
	size_t flights;
	int n_cpus, err;

	libbpf_set_print(log_libbpf);
	n_cpus = libbpf_num_possible_cpus();
	if (n_cpus < 0)
		return n_cpus;
	l->n_cpus = n_cpus;
	/* The kernel copies values of CPUs as multiples of 8 bytes. */
	l->value_bytes = (sizeof(struct latency_counts) + 7) & ~(size_t)7;
	l->values = calloc(l->n_cpus, l->value_bytes);
	if (!l->values)
		return -ENOMEM;
	l->skeleton = latency_bpf__open();
	if (!l->skeleton)
		return -errno;
	flights = FLIGHTS_PER_CPU * l->n_cpus;
	if (flights < FLIGHTS_MIN)
		flights = FLIGHTS_MIN;
	err = bpf_map__set_max_entries(l->skeleton->maps.flights, flights);
	return err ?: latency_bpf__load(l->skeleton);
}

static int drop_capabilities(void)
{
	const cap_value_t values[] = { CAP_BPF, CAP_PERFMON };
	cap_t caps = cap_get_proc();
	int err = 0;

	if (!caps)
		return -errno;
	for (int set = CAP_EFFECTIVE; set <= CAP_INHERITABLE && !err; set++)
		err = cap_set_flag(caps, set, ARRAY_SIZE(values), values,
				   CAP_CLEAR);
	if (err || cap_set_proc(caps) < 0)
		err = -errno;
	cap_free(caps);
	return err;
}

int latency_open(struct latency **ret)
{
	struct latency *l = calloc(1, sizeof(*l));
	int err;

	if (!l)
		return -ENOMEM;
	l->error = load(l);
	if (l->error) {
		latency_bpf__destroy(l->skeleton);
		l->skeleton = NULL;
	}
	err = drop_capabilities();
	if (err)
		log_warning_errno(err, "Cannot give up CAP_BPF and "
				       "CAP_PERFMON: %m");
	*ret = l;
	return 0;
}

struct latency *latency_close(struct latency *l)
{
	if (!l)
		return NULL;
	latency_bpf__destroy(l->skeleton);
	for (size_t i = 0; i < l->n_watches; i++)
		free(l->watches[i]);
	free(l->watches);
	free(l->values);
	free(l);
	return NULL;
}

int latency_error(const struct latency *l)
{
	return l ? l->error : -EOPNOTSUPP;
}

/* ---- pairs ---- */

struct latency_pair latency_pair(uint64_t cgroup, dev_t devno)
{
	return (struct latency_pair){
		.cgroup = cgroup,
		.dev = major(devno) << DEV_MINOR_BITS | minor(devno),
	};
}

static bool is_same(const struct latency_pair *a, const struct latency_pair *b)
{
	return a->cgroup == b->cgroup && a->dev == b->dev;
}

static struct watch *find(const struct latency *l,
			  const struct latency_pair *pair)
{
	for (size_t i = 0; i < l->n_watches; i++)
		if (is_same(&l->watches[i]->pair, pair))
			return l->watches[i];
	return NULL;
}

static int add_device(struct latency *l, uint32_t dev)
{
	const uint32_t used = 1;

	return bpf_map_update_elem(bpf_map__fd(l->skeleton->maps.devices), &dev,
				   &used, BPF_ANY);
}

/* Add the device last, because the programs look for the pair as soon as it is there. */
static int add(struct latency *l, const struct latency_pair *pair)
{
	struct watch **grown, *w;
	int err;

	grown = reallocarray(l->watches, l->n_watches + 1, sizeof(*grown));
	if (!grown)
		return -ENOMEM;
	l->watches = grown;
	w = calloc(1, sizeof(*w));
	if (!w)
		return -ENOMEM;
	w->pair = *pair;
	w->kept = true;
	memset(l->values, 0, l->n_cpus * l->value_bytes);
	err = bpf_map_update_elem(bpf_map__fd(l->skeleton->maps.pairs), pair,
				  l->values, BPF_ANY)
		      ?: add_device(l, pair->dev);
	if (err) {
		bpf_map_delete_elem(bpf_map__fd(l->skeleton->maps.pairs), pair);
		free(w);
		return err;
	}
	grown[l->n_watches++] = w;
	return 0;
}

static void drop(struct latency *l, size_t i)
{
	struct watch *w = l->watches[i];
	bool used = false;

	l->watches[i] = l->watches[--l->n_watches];
	for (size_t j = 0; j < l->n_watches; j++)
		used |= l->watches[j]->pair.dev == w->pair.dev;
	if (!used)
		bpf_map_delete_elem(bpf_map__fd(l->skeleton->maps.devices),
				    &w->pair.dev);
	bpf_map_delete_elem(bpf_map__fd(l->skeleton->maps.pairs), &w->pair);
	free(w);
}

static int attach(struct latency *l)
{
	int err = 0;

	if (l->n_watches && !l->attached)
		err = latency_bpf__attach(l->skeleton);
	else if (!l->n_watches && l->attached)
		latency_bpf__detach(l->skeleton);
	l->attached = l->n_watches && !err;
	if (err)
		latency_bpf__detach(l->skeleton);
	return err;
}

int latency_watch(struct latency *l, const struct latency_pair *pairs, size_t n)
{
	int err = latency_error(l), failed = 0;

	if (err)
		return err;
	for (size_t i = 0; i < l->n_watches; i++)
		l->watches[i]->kept = false;
	for (size_t i = 0; i < n; i++) {
		struct watch *w = find(l, &pairs[i]);

		if (w)
			w->kept = true;
	}
	for (size_t i = l->n_watches; i-- > 0;)
		if (!l->watches[i]->kept)
			drop(l, i);
	for (size_t i = 0; i < n && err != -ENOMEM; i++) {
		err = find(l, &pairs[i]) ? 0 : add(l, &pairs[i]);
		failed = err ?: failed;
	}
	err = attach(l);
	if (err)
		l->error = err;
	return err ?: failed;
}

/* ---- counts ---- */

static int sample(struct latency *l, struct watch *w)
{
	int err = bpf_map_lookup_elem(bpf_map__fd(l->skeleton->maps.pairs),
				      &w->pair, l->values);

	for (size_t op = 0; op < LATENCY_OPS && !err; op++)
		for (size_t i = 0; i < HISTOGRAM_BUCKETS; i++) {
			uint32_t sum = 0, more;

			for (size_t cpu = 0; cpu < l->n_cpus; cpu++) {
				const struct latency_counts *c =
					(void *)(l->values +
						 cpu * l->value_bytes);

				sum += c->count[op][i];
			}
			more = sum - w->last[op][i];
			w->last[op][i] = sum;
			w->series.recent[op].count[i] = more;
			w->series.total[op].count[i] += more;
		}
	return err;
}

int latency_sample(struct latency *l)
{
	int failed = 0;

	if (!l || l->error)
		return 0;
	for (size_t i = 0; i < l->n_watches; i++)
		failed = sample(l, l->watches[i]) ?: failed;
	return failed;
}

const struct latency_series *latency_find(const struct latency *l,
					  uint64_t cgroup, dev_t devno)
{
	const struct latency_pair pair = latency_pair(cgroup, devno);
	const struct watch *w = l && !l->error ? find(l, &pair) : NULL;

	return w ? &w->series : NULL;
}
