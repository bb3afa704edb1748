// SPDX-License-Identifier: GPL-2.0-only
/* Runs a scene: each client in a group of its own below the root. */
#include "scene.h"

#include <assert.h>
#include <math.h>
#include <stdlib.h>

/* Not 0, which the algorithm takes for "never". */
#define BEGIN_NS (100 * NSEC_PER_SEC)

struct stage {
	const struct scene *scene;
	struct clock clock;
	struct volume volume;
	struct leaf leaf[MAX_LEAVES];
	struct client client[MAX_CLIENTS];
	struct leaf_group group[MAX_CLIENTS][MAX_LEAVES];
	struct leaf_group above[MAX_GROUPS + 1][MAX_LEAVES];
	u64 last_ns[MAX_SAMPLED];
	u64 sample_ns;
	struct result *result;
};

static void stage_leaf(struct stage *stage, struct leaf *leaf)
{
	const struct scene *scene = stage->scene;
	struct sutro_tunables *tunables = &leaf->core.tunables;

	leaf_init(leaf, &stage->clock, scene->rotational, client_done);
	if (scene->hdd)
		hdd_init(&leaf->disk, &stage->clock, scene->hdd,
			 leaf->disk.done, leaf);
	if (scene->flash)
		flash_init(&leaf->disk, &stage->clock, scene->flash,
			   leaf->disk.done, leaf);
	leaf->probe.limit = min(leaf->disk.depth, 128U);
	leaf->slots = scene->slots ?: 2 * min(leaf->disk.depth, 128U);
	leaf->fifo = scene->fifo;
	leaf->oracle = scene->oracle;
	if (scene->slice_ns || scene->no_slice)
		tunables->slice_ns = scene->slice_ns;
	if (scene->group_idle_ns || scene->no_idle)
		tunables->group_idle_ns = scene->group_idle_ns;
	tunables->fairness = scene->fairness;
}

/* The group on a leaf that has a number in the scene. */
static struct leaf_group *stage_above(struct stage *stage, u32 number, u32 l)
{
	return number ? &stage->above[number][l] : &stage->leaf[l].root;
}

static void stage_groups(struct stage *stage)
{
	const struct scene_group *group = stage->scene->groups;
	u32 i, l;

	for (i = 0; group[i].weight; i++)
		for (l = 0; l < stage->volume.nr; l++)
			leaf_group_init(&stage->above[i + 1][l],
					stage_above(stage, group[i].below, l),
					group[i].weight);
}

static void stage_clients(struct stage *stage)
{
	const struct scene *scene = stage->scene;
	struct volume *volume = &stage->volume;
	u64 size = volume_bytes(volume);
	u32 nr = 0, i, l;

	while (scene->jobs[nr].iodepth)
		nr++;
	stage->result->nr = nr;
	for (i = 0; i < nr; i++) {
		struct client *client = &stage->client[i];

		client->job = &scene->jobs[i];
		client->volume = volume;
		client->clock = &stage->clock;
		client->random = scene->seed * 1000 + i;
		/* Random clients go all over the disk, streams are apart. */
		client->region_bytes = client->job->random ? size : size / nr;
		client->region_bytes -= client->region_bytes % (1 << 20);
		client->first_byte =
			client->job->random ? 0 : i * client->region_bytes;
		for (l = 0; l < volume->nr; l++) {
			client->group[l] = &stage->group[i][l];
			leaf_group_init(client->group[l],
					stage_above(stage, client->job->below,
						    l),
					client->job->weight);
			if (client->job->class)
				sutro_group_set_class(&stage->leaf[l].core,
						      &client->group[l]->core,
						      client->job->class - 1);
		}
		client_start(client);
	}
}

static void stage_sample(void *context, u64 now_ns)
{
	struct stage *stage = context;
	struct result *result = stage->result;
	u32 i, l;

	if (result->samples == MAX_SAMPLES)
		return;
	for (i = 0; i < min(result->nr, (u32)MAX_SAMPLED); i++) {
		u64 sum_ns = 0;

		for (l = 0; l < result->leaves; l++)
			sum_ns += stage->group[i][l].true_ns;
		result->sample_ns[result->samples][i] =
			sum_ns - stage->last_ns[i];
		stage->last_ns[i] = sum_ns;
	}
	result->samples++;
	clock_at(&stage->clock, now_ns + stage->sample_ns, stage_sample, stage);
}

static void stage_flip(void *context, u64 now_ns)
{
	struct stage *stage = context;
	u32 i, l;

	for (i = 0; i < stage->result->nr; i++)
		for (l = 0; l < stage->volume.nr; l++)
			leaf_weight(&stage->leaf[l], &stage->group[i][l],
				    stage->scene->flip_weight[i]);
}

/* Add what there is now to the result, or subtract it. */
static void stage_measure(struct stage *stage, int sign)
{
	struct result *result = stage->result;
	u32 i, l;

	for (i = 0; i < result->nr; i++) {
		struct client *client = &stage->client[i];

		result->client[i].bytes += sign * client->done_bytes;
		result->client[i].ios += sign * client->done_ios;
		result->client[i].latency_ns += sign * client->latency_sum_ns;
		result->client[i].latency_max_ns = client->latency_max_ns;
		result->client[i].latency_p99_ns =
			histogram_quantile(&client->latency, 0.99);
		client->latency_max_ns = 0;
		client->latency = (struct histogram){};
		for (l = 0; l < result->leaves; l++) {
			struct leaf_group *group = &stage->group[i][l];

			result->client[i].leaf[l].true_ns +=
				sign * group->true_ns;
			result->client[i].leaf[l].charged_ns +=
				sign * group->core.stat.time_ns;
			result->client[i].leaf[l].idle_ns +=
				sign * group->core.stat.idle_ns;
		}
	}
}

/* Let what is on its way come to an end; nothing may be left then. */
static void stage_end(struct stage *stage)
{
	struct job idle = { .iodepth = 0 };
	u32 i;

	for (i = 0; i < stage->result->nr; i++) {
		struct job *job = malloc(sizeof(*job));

		assert(job);
		idle = *stage->client[i].job;
		idle.iodepth = 0;
		*job = idle;
		stage->client[i].job = job;
	}
	clock_run(&stage->clock, stage->clock.now_ns + 100 * NSEC_PER_SEC);
	for (i = 0; i < stage->result->nr; i++) {
		assert(!stage->client[i].outstanding);
		free((void *)stage->client[i].job);
	}
	for (i = 0; i < stage->volume.nr; i++) {
		bool clean = leaf_exit(&stage->leaf[i]);

		assert(clean);
	}
}

void scene_run(const struct scene *scene, struct result *ret_result)
{
	struct stage *stage = calloc(1, sizeof(*stage));
	u32 i;

	assert(stage);
	*ret_result = (struct result){};
	stage->scene = scene;
	stage->sample_ns = scene->sample_ns ?: SAMPLE_NS;
	stage->result = ret_result;
	clock_init(&stage->clock, BEGIN_NS);
	stage->volume.nr = scene->leaves;
	stage->volume.chunk_bytes = scene->chunk_bytes ?: 64 << 10;
	ret_result->leaves = scene->leaves;
	for (i = 0; i < scene->leaves; i++) {
		stage_leaf(stage, &stage->leaf[i]);
		stage->volume.leaf[i] = &stage->leaf[i];
	}
	stage->volume.leaf_bytes = stage->leaf[0].disk.size_bytes;
	stage_groups(stage);
	stage_clients(stage);
	clock_at(&stage->clock, BEGIN_NS + stage->sample_ns, stage_sample,
		 stage);
	if (scene->flip_ns)
		clock_at(&stage->clock, BEGIN_NS + scene->flip_ns, stage_flip,
			 stage);

	clock_run(&stage->clock, BEGIN_NS + scene->warmup_ns);
	stage_measure(stage, -1);
	clock_run(&stage->clock, BEGIN_NS + scene->run_ns);
	stage_measure(stage, 1);
	ret_result->elapsed_ns = scene->run_ns - scene->warmup_ns;
	for (i = 0; i <= SUTRO_EXPIRY_PREEMPTED; i++)
		ret_result->expired[i] = stage->leaf[0].expired[i];

	stage_end(stage);
	clock_exit(&stage->clock);
	free(stage);
}

/* How much more true device time a had than b. */
double result_ratio(const struct result *result, u32 a, u32 b, u32 leaf)
{
	return (double)result->client[a].leaf[leaf].true_ns /
	       result->client[b].leaf[leaf].true_ns;
}

double result_charged_ratio(const struct result *result, u32 a, u32 b, u32 leaf)
{
	return (double)result->client[a].leaf[leaf].charged_ns /
	       result->client[b].leaf[leaf].charged_ns;
}

double result_bytes_ratio(const struct result *result, u32 a, u32 b)
{
	return (double)result->client[a].bytes / result->client[b].bytes;
}

double result_mb_per_s(const struct result *result)
{
	double bytes = 0;
	u32 i;

	for (i = 0; i < result->nr; i++)
		bytes += result->client[i].bytes;
	return bytes * 1e3 / result->elapsed_ns;
}

/* The worst part by which a client's share of leaf 0 differs from its due. */
double result_worst_error(const struct scene *scene,
			  const struct result *result)
{
	double weights = 0, all = 0, worst = 0;
	u32 i;

	for (i = 0; i < result->nr; i++) {
		weights += scene->jobs[i].weight;
		all += result->client[i].leaf[0].true_ns;
	}
	for (i = 0; i < result->nr; i++) {
		double due = scene->jobs[i].weight / weights;
		double got = result->client[i].leaf[0].true_ns / all;

		worst = fmax(worst, fabs(got / due - 1));
	}
	return worst;
}

/* Is the first client's share of a second within a quarter of its new due? */
static bool follows(const struct scene *scene, const struct result *result,
		    u32 first)
{
	double got = 0, all = 0, weights = 0;
	u32 i, s;

	for (i = 0; i < result->nr; i++)
		weights += scene->flip_weight[i];
	for (s = first; s < first + NSEC_PER_SEC / SAMPLE_NS; s++) {
		got += result->sample_ns[s][0];
		for (i = 0; i < result->nr; i++)
			all += result->sample_ns[s][i];
	}
	return fabs(got / all * weights / scene->flip_weight[0] - 1) < 0.25;
}

/* From the flip until every second that begins then shows the new weights. */
double result_follow_s(const struct scene *scene, const struct result *result)
{
	u32 flip = scene->flip_ns / SAMPLE_NS, s;

	for (s = scene->run_ns / SAMPLE_NS - NSEC_PER_SEC / SAMPLE_NS;
	     s >= flip && follows(scene, result, s); s--)
		;
	return (s + 1 - flip) * (SAMPLE_NS / 1e9);
}
