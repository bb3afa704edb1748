/* SPDX-License-Identifier: GPL-2.0-only */
/* Some clients on a volume for some time, and what each of them got. */
#ifndef SIM_SCENE_H
#define SIM_SCENE_H

#include "client.h"

#define MAX_CLIENTS 256
#define MAX_GROUPS 16
/* Clients and points in time of which samples are kept. */
#define MAX_SAMPLED 16
#define MAX_SAMPLES 4096
#define SAMPLE_NS (250 * NSEC_PER_MSEC)

/**
 * struct scene_group - a group that clients' groups may be in
 * @below:	number of the group that it is in, from 1; 0 = root
 */
struct scene_group {
	u32 weight;
	u32 below;
};

/**
 * struct scene - what is to happen
 * @rotational:	hdd, else flash
 * @hdd, @flash: other models than the default ones
 * @leaves:	1, or 2 for a stripe
 * @chunk_bytes: of the stripe; 64 KiB if not set
 * @fifo:	without a scheduler
 * @slice_ns, @group_idle_ns, @fairness: of sutro, its default if 0
 * @no_slice, @no_idle: these are 0
 * @slots:	nr_requests, twice the depth if 0
 * @oracle:	requests are charged their true device time
 * @sample_ns:	how long a sample is; SAMPLE_NS if 0
 * @groups:	what the clients' groups are in, the last followed by one without
 *		weight
 * @jobs:	the clients, the last followed by one without iodepth
 * @run_ns:	how long
 * @warmup_ns:	without the start, which is this long
 * @flip_ns:	weights become @flip_weight then; 0 = never
 */
struct scene {
	const char *name;
	bool rotational;
	const struct hdd_model *hdd;
	const struct flash_model *flash;
	u32 leaves;
	u32 chunk_bytes;
	bool fifo;
	u64 slice_ns;
	u64 group_idle_ns;
	bool no_slice;
	bool no_idle;
	bool fairness;
	u32 slots;
	bool oracle;
	u64 sample_ns;
	struct scene_group groups[MAX_GROUPS + 1];
	struct job jobs[MAX_CLIENTS + 1];
	u64 run_ns;
	u64 warmup_ns;
	u64 seed;
	u64 flip_ns;
	u32 flip_weight[MAX_CLIENTS];
};

/**
 * struct result - what came of it, after the warmup
 * @leaf:	true and charged device time of each client on each leaf
 * @sample_ns:	true device time of all leaves in windows of scene.sample_ns, from
 *		the very start, of the first clients
 * @expired:	how often slices ended on the first leaf, by reason
 */
struct result {
	u32 nr;
	u32 leaves;
	u64 elapsed_ns;
	struct {
		u64 bytes;
		u64 ios;
		u64 latency_ns;
		u64 latency_max_ns;
		double latency_p99_ns;
		struct {
			u64 true_ns;
			u64 charged_ns;
			u64 idle_ns;
		} leaf[MAX_LEAVES];
	} client[MAX_CLIENTS];
	u32 samples;
	u64 sample_ns[MAX_SAMPLES][MAX_SAMPLED];
	u64 expired[SUTRO_EXPIRY_PREEMPTED + 1];
};

void scene_run(const struct scene *scene, struct result *ret_result);

double result_ratio(const struct result *result, u32 a, u32 b, u32 leaf);
double result_charged_ratio(const struct result *result, u32 a, u32 b,
			    u32 leaf);
double result_bytes_ratio(const struct result *result, u32 a, u32 b);
double result_mb_per_s(const struct result *result);
double result_worst_error(const struct scene *scene,
			  const struct result *result);
double result_follow_s(const struct scene *scene, const struct result *result);

#endif /* SIM_SCENE_H */
