// SPDX-License-Identifier: GPL-2.0-only
/*
 * The numbers that the elevator is to meet on model drives.
 *
 * On flash requests are charged what they truly cost (scene.oracle): how well that
 * is known is the question of other tests, who is served is the question here.
 */
#include "goals.h"

#include <assert.h>
#include <math.h>
#include <stdlib.h>

#include "random.h"
#include "scenes.h"

#define KIB 1024
#define MIB (1024 * 1024)
#define MS NSEC_PER_MSEC
#define SEC NSEC_PER_SEC

#define HDD .rotational = true, .leaves = 1, .warmup_ns = 2 * SEC, .seed = 1
#define SSD .leaves = 1, .warmup_ns = 1 * SEC, .oracle = true, .seed = 1
#define NVME SSD, .flash = &nvme_default

#define READER(w, size, depth) \
	{ .weight = w, .random = true, .bytes = size, .iodepth = depth }
#define STREAM(w, size, depth) { .weight = w, .bytes = size, .iodepth = depth }
#define WRITER(w, size, depth) \
	{ .weight = w,         \
	  .op = SUTRO_WRITE,   \
	  .async = true,       \
	  .random = true,      \
	  .bytes = size,       \
	  .iodepth = depth }

/* A program that thinks for a millisecond about each block. */
#define THINKER(w, size, rand) \
	{ .weight = w,         \
	  .random = rand,      \
	  .bytes = size,       \
	  .iodepth = 1,        \
	  .think_ns = 1 * MS }

/* Weights 300 (100, 200) and 100 (50) of groups, and clients in them. */
#define DEEP(in, w)         \
	{ .below = in,      \
	  .weight = w,      \
	  .random = true,   \
	  .bytes = 4 * KIB, \
	  .iodepth = 16 }
#define THREE_LEVELS                                                     \
	.groups = { { 300, 0 },                                          \
		    { 100, 0 },                                          \
		    { 100, 1 },                                          \
		    { 200, 1 },                                          \
		    { 50, 2 } },                                         \
	.jobs = { DEEP(3, 100), DEEP(3, 300), DEEP(4, 100), DEEP(5, 70), \
		  DEEP(5, 140) }

/* ---- scenes of many ---- */

static void fill_16(struct scene *scene)
{
	u32 i;

	for (i = 0; i < 16; i++)
		scene->jobs[i] = (struct job)READER(10 * (i + 1), 4 * KIB, 16);
}

static void fill_256(struct scene *scene)
{
	u64 random = 256;
	u32 i;

	for (i = 0; i < 256; i++)
		scene->jobs[i] = (struct job)READER(
			random_between(&random, 1, 1000), 4 * KIB, 16);
}

/* ---- what is measured ---- */

static double all_ns(const struct result *result)
{
	double all = 0;
	u32 i;

	for (i = 0; i < result->nr; i++)
		all += result->client[i].leaf[0].true_ns;
	return all;
}

static double measure_ratio(const struct scene *scene,
			    const struct result *result)
{
	return result_ratio(result, 0, 1, 0);
}

static double measure_share(const struct scene *scene,
			    const struct result *result)
{
	return result->client[0].leaf[0].true_ns / all_ns(result);
}

/* Used by the clients below a group, from 1, or by a client, from 0. */
static double used_ns(const struct scene *scene, const struct result *result,
		      u32 group)
{
	double sum = 0;
	u32 i, above;

	for (i = 0; i < result->nr; i++) {
		for (above = scene->jobs[i].below; above != group && above;
		     above = scene->groups[above - 1].below)
			;
		if (above == group)
			sum += result->client[i].leaf[0].true_ns;
	}
	return sum;
}

/* The worst error of a share among siblings, at any level. */
static double measure_levels(const struct scene *scene,
			     const struct result *result)
{
	double worst = 0;
	u32 parent, i;

	for (parent = 0; !parent || scene->groups[parent - 1].weight;
	     parent++) {
		double all = used_ns(scene, result, parent), weights = 0;

		for (i = 0; scene->groups[i].weight; i++)
			if (scene->groups[i].below == parent)
				weights += scene->groups[i].weight;
		for (i = 0; i < result->nr; i++)
			if (scene->jobs[i].below == parent)
				weights += scene->jobs[i].weight;
		for (i = 0; scene->groups[i].weight; i++)
			if (scene->groups[i].below == parent)
				worst = fmax(
					worst,
					fabs(used_ns(scene, result, i + 1) /
						     all /
						     scene->groups[i].weight *
						     weights -
					     1));
		for (i = 0; i < result->nr; i++)
			if (scene->jobs[i].below == parent)
				worst = fmax(
					worst,
					fabs(result->client[i].leaf[0].true_ns /
						     all /
						     scene->jobs[i].weight *
						     weights -
					     1));
	}
	return worst;
}

/* The first client without the others. */
static struct result *alone(const struct scene *scene)
{
	struct scene *other = malloc(sizeof(*other));
	struct result *result = malloc(sizeof(*result));

	assert(other && result);
	*other = *scene;
	other->jobs[1].iodepth = 0;
	scene_run(other, result);
	free(other);
	return result;
}

/*
 * Of what the first client gets alone, or of its entitlement in device time if that
 * is less.
 */
static double measure_of_alone(const struct scene *scene,
			       const struct result *result)
{
	struct result *lone = alone(scene);
	double entitled = (double)scene->jobs[0].weight /
			  (scene->jobs[0].weight + scene->jobs[1].weight);
	double of_ios = (double)result->client[0].ios / lone->client[0].ios;
	double of_time = result->client[0].leaf[0].true_ns /
			 (entitled * result->elapsed_ns);

	free(lone);
	return fmax(of_ios, of_time);
}

static double measure_p99(const struct scene *scene,
			  const struct result *result)
{
	struct result *lone = alone(scene);
	double ratio = result->client[0].latency_p99_ns /
		       lone->client[0].latency_p99_ns;

	free(lone);
	return ratio;
}

/*
 * The second client stops, and is served for the last time: ms until the first one
 * has used 95 % of the time since then.
 */
static double measure_taken(const struct scene *scene,
			    const struct result *result)
{
	u32 last = scene->jobs[2].start_ns / scene->sample_ns, s;
	double used = 0;

	while (!result->sample_ns[last - 1][1])
		last--;
	for (s = last; s < result->samples; s++) {
		used += result->sample_ns[s][0];
		if (used >= 0.95 * (s + 1 - last) * scene->sample_ns)
			break;
	}
	return (s + 1 - last) * (scene->sample_ns / 1e6);
}

/* ms after which the third client, which starts, has had 95 % of its due. */
static double measure_given(const struct scene *scene,
			    const struct result *result)
{
	u32 start = scene->jobs[2].start_ns / scene->sample_ns, s;
	double due = (double)scene->jobs[2].weight /
		     (scene->jobs[0].weight + scene->jobs[2].weight);
	double got = 0, all = 0;

	for (s = start; s < result->samples; s++) {
		got += result->sample_ns[s][2];
		all += result->sample_ns[s][0] + result->sample_ns[s][2];
		if (got >= 0.95 * due * all && got > 0)
			break;
	}
	return (s + 1 - start) * (scene->sample_ns / 1e6);
}

/* ---- the table ---- */

#define SHIFT(a, b, c)                         \
	{                                      \
		a, { b, .stop_ns = 4 * SEC },  \
		{                              \
			c, .start_ns = 8 * SEC \
		}                              \
	}

const struct goal goals[] = {
	{ .row = "2:1 hdd rand 4K qd32",
	  .scene = { HDD, .run_ns = 12 * SEC,
		     .jobs = { READER(200, 4 * KIB, 32),
			       READER(100, 4 * KIB, 32) } },
	  .measure = measure_ratio,
	  .low = 1.98,
	  .high = 2.02,
	  .of_fifo = 0.9 },
	/* Over 10 s it depends on whose turn they end in: 1.97 to 2.03. */
	{ .row = "2:1 hdd seq 1M qd16 over 60 s",
	  .scene = { HDD, .run_ns = 62 * SEC,
		     .jobs = { STREAM(200, MIB, 16), STREAM(100, MIB, 16) } },
	  .measure = measure_ratio,
	  .low = 1.98,
	  .high = 2.02,
	  .of_fifo = 0.9 },
	{ .row = "2:1 hdd seq 128K qd1",
	  .scene = { HDD, .run_ns = 12 * SEC,
		     .jobs = { STREAM(200, 128 * KIB, 1),
			       STREAM(100, 128 * KIB, 1) } },
	  .measure = measure_ratio,
	  .low = 1.98,
	  .high = 2.02,
	  .of_fifo = 0.9 },
	{ .row = "2:1 ssd rand 4K qd32",
	  .scene = { SSD, .run_ns = 11 * SEC,
		     .jobs = { READER(200, 4 * KIB, 32),
			       READER(100, 4 * KIB, 32) } },
	  .measure = measure_ratio,
	  .low = 1.98,
	  .high = 2.02,
	  .of_fifo = 0.9 },
	{ .row = "2:1 ssd rand 4K qd16",
	  .scene = { SSD, .run_ns = 11 * SEC,
		     .jobs = { READER(200, 4 * KIB, 16),
			       READER(100, 4 * KIB, 16) } },
	  .measure = measure_ratio,
	  .low = 1.98,
	  .high = 2.02,
	  .of_fifo = 0.9,
	  .missed =
		  "the drive takes what both have: only fairness=1 holds back more" },
	{ .row = "2:1 ssd rand 64K qd16",
	  .scene = { SSD, .run_ns = 11 * SEC,
		     .jobs = { READER(200, 64 * KIB, 16),
			       READER(100, 64 * KIB, 16) } },
	  .measure = measure_ratio,
	  .low = 1.98,
	  .high = 2.02,
	  .of_fifo = 0.9 },
	{ .row = "2:1 nvme rand 4K qd128",
	  .scene = { NVME, .run_ns = 3 * SEC,
		     .jobs = { READER(200, 4 * KIB, 128),
			       READER(100, 4 * KIB, 128) } },
	  .measure = measure_ratio,
	  .low = 1.98,
	  .high = 2.02,
	  .of_fifo = 0.9 },
	{ .row = "2:1 nvme rand 4K qd64",
	  .scene = { NVME, .run_ns = 3 * SEC,
		     .jobs = { READER(200, 4 * KIB, 64),
			       READER(100, 4 * KIB, 64) } },
	  .measure = measure_ratio,
	  .low = 1.98,
	  .high = 2.02,
	  .of_fifo = 0.9 },
	{ .row = "16 groups 10..160 hdd, worst error",
	  .scene = { HDD, .run_ns = 62 * SEC, .slots = 256 },
	  .fill = fill_16,
	  .measure = result_worst_error,
	  .high = 0.02,
	  .of_fifo = 0.9 },
	{ .row = "16 groups 10..160 ssd, worst error",
	  .scene = { SSD, .run_ns = 6 * SEC, .slots = 256 },
	  .fill = fill_16,
	  .measure = result_worst_error,
	  .high = 0.02,
	  .of_fifo = 0.9 },
	{ .row = "16 groups 10..160 nvme, worst error",
	  .scene = { NVME, .run_ns = 3 * SEC, .slots = 256 },
	  .fill = fill_16,
	  .measure = result_worst_error,
	  .high = 0.02,
	  .of_fifo = 0.9 },
	{ .row = "256 groups 1..1000 ssd 60 MB/s, worst error",
	  .scene = { SSD, .flash = &ssd_60, .run_ns = 61 * SEC, .slots = 256 },
	  .fill = fill_256,
	  .measure = result_worst_error,
	  .high = 0.05,
	  .of_fifo = 0.9 },
	{ .row = "three levels hdd, worst error",
	  .scene = { HDD, .run_ns = 62 * SEC, .slots = 256, THREE_LEVELS },
	  .measure = measure_levels,
	  .high = 0.02,
	  .of_fifo = 0.9 },
	{ .row = "three levels ssd, worst error",
	  .scene = { SSD, .run_ns = 6 * SEC, .slots = 256, THREE_LEVELS },
	  .measure = measure_levels,
	  .high = 0.02,
	  .of_fifo = 0.9 },
	{ .row = "hdd fairness=1 qd1 | qd64, share",
	  .scene = { HDD, .run_ns = 22 * SEC, .fairness = true,
		     .jobs = { READER(100, 4 * KIB, 1),
			       READER(100, 4 * KIB, 64) } },
	  .measure = measure_share,
	  .low = 0.48,
	  .high = 0.52 },
	{ .row = "hdd rand thinker 900 | rand qd32 100, of alone",
	  .scene = { HDD, .run_ns = 22 * SEC,
		     .jobs = { THINKER(900, 4 * KIB, true),
			       READER(100, 4 * KIB, 32) } },
	  .measure = measure_of_alone,
	  .low = 0.95,
	  .high = 2,
	  .missed =
		  "alone it keeps the drive busy for 89 %: a tenth for the other is its own loss" },
	{ .row = "hdd seq thinker 900 | rand qd32 100, of alone",
	  .scene = { HDD, .run_ns = 22 * SEC,
		     .jobs = { THINKER(900, 128 * KIB, false),
			       READER(100, 4 * KIB, 32) } },
	  .measure = measure_of_alone,
	  .low = 0.95,
	  .high = 2,
	  .missed = "the same, and the way back from the other's requests" },
	{ .row = "hdd seq thinker 900 | seq qd32 100, of alone",
	  .scene = { HDD, .run_ns = 22 * SEC,
		     .jobs = { THINKER(900, 128 * KIB, false),
			       STREAM(100, MIB, 32) } },
	  .measure = measure_of_alone,
	  .low = 0.95,
	  .high = 2,
	  .missed = "the same" },
	{ .row = "ssd thinker 900 | 4K qd32 100, of alone",
	  .scene = { SSD, .run_ns = 6 * SEC,
		     .jobs = { THINKER(900, 4 * KIB, true),
			       READER(100, 4 * KIB, 32) } },
	  .measure = measure_of_alone,
	  .low = 0.95,
	  .high = 2,
	  .of_fifo = 0.9,
	  .missed =
		  "with less in flight than now the drive would not be busy" },
	{ .row = "ssd thinker 900 | 128K qd32 100, of alone",
	  .scene = { SSD, .run_ns = 6 * SEC,
		     .jobs = { THINKER(900, 4 * KIB, true),
			       READER(100, 128 * KIB, 32) } },
	  .measure = measure_of_alone,
	  .low = 0.95,
	  .high = 2,
	  .of_fifo = 0.9,
	  .missed = "two of the others are 0.5 ms of the bus" },
	{ .row = "nvme thinker 900 | 4K qd128 100, of alone",
	  .scene = { NVME, .run_ns = 3 * SEC,
		     .jobs = { THINKER(900, 4 * KIB, true),
			       READER(100, 4 * KIB, 128) } },
	  .measure = measure_of_alone,
	  .low = 0.95,
	  .high = 2,
	  .of_fifo = 0.9,
	  .missed =
		  "with less in flight than now the drive would not be busy" },
	{ .row = "ssd qd1 reader 500 | 64K writer qd32 100, P99 of alone",
	  .scene = { SSD, .run_ns = 6 * SEC,
		     .jobs = { READER(500, 4 * KIB, 1),
			       WRITER(100, 64 * KIB, 32) } },
	  .measure = measure_p99,
	  .high = 2,
	  .of_fifo = 0.9,
	  .missed =
		  "two writes are 0.24 ms of the bus; 3.5 with no more than two, at 78 % of FIFO" },
	{ .row = "ssd share falls idle, taken over after ms",
	  .scene = { SSD, .run_ns = 12 * SEC, .sample_ns = 5 * MS,
		     .jobs = { READER(200, 64 * KIB, 32),
			       { .weight = 100,
				 .random = true,
				 .bytes = 64 * KIB,
				 .iodepth = 32,
				 .stop_ns = 4 * SEC },
			       { .weight = 100,
				 .random = true,
				 .bytes = 64 * KIB,
				 .iodepth = 32,
				 .start_ns = 8 * SEC } } },
	  .measure = measure_taken,
	  .high = 50,
	  .of_fifo = 0.9 },
	{ .row = "ssd share comes back, given after ms",
	  .scene = { SSD, .run_ns = 12 * SEC, .sample_ns = 5 * MS,
		     .jobs = { READER(200, 64 * KIB, 32),
			       { .weight = 100,
				 .random = true,
				 .bytes = 64 * KIB,
				 .iodepth = 32,
				 .stop_ns = 4 * SEC },
			       { .weight = 100,
				 .random = true,
				 .bytes = 64 * KIB,
				 .iodepth = 32,
				 .start_ns = 8 * SEC } } },
	  .measure = measure_given,
	  .high = 50,
	  .of_fifo = 0.9 },
	{ .row = "hdd share falls idle, taken over after ms",
	  .scene = { HDD, .run_ns = 12 * SEC, .sample_ns = 5 * MS,
		     .jobs = { STREAM(200, MIB, 8),
			       { .weight = 100,
				 .bytes = MIB,
				 .iodepth = 8,
				 .stop_ns = 4 * SEC },
			       { .weight = 100,
				 .bytes = MIB,
				 .iodepth = 8,
				 .start_ns = 8 * SEC } } },
	  .measure = measure_taken,
	  .high = 200,
	  .of_fifo = 0.9 },
	{ .row = "hdd share comes back, given after ms",
	  .scene = { HDD, .run_ns = 12 * SEC, .sample_ns = 5 * MS,
		     .jobs = { STREAM(200, MIB, 8),
			       { .weight = 100,
				 .bytes = MIB,
				 .iodepth = 8,
				 .stop_ns = 4 * SEC },
			       { .weight = 100,
				 .bytes = MIB,
				 .iodepth = 8,
				 .start_ns = 8 * SEC } } },
	  .measure = measure_given,
	  .high = 200,
	  .of_fifo = 0.9 },
};

const unsigned int goals_nr = sizeof(goals) / sizeof(goals[0]);

struct score goal_score(const struct goal *goal)
{
	struct scene *scene = malloc(sizeof(*scene));
	struct result *result = malloc(sizeof(*result));
	struct score score = {};
	double mb_per_s;

	assert(scene && result);
	*scene = goal->scene;
	if (goal->fill)
		goal->fill(scene);
	scene_run(scene, result);
	mb_per_s = result_mb_per_s(result);
	score.value = goal->measure(scene, result);
	score.met = score.value >= goal->low && score.value <= goal->high;
	if (goal->of_fifo) {
		scene->fifo = true;
		scene_run(scene, result);
		score.of_fifo = mb_per_s / result_mb_per_s(result);
		score.met &= score.of_fifo >= goal->of_fifo;
	}
	free(scene);
	free(result);
	return score;
}
