// SPDX-License-Identifier: GPL-2.0-only
/*
 * Usage: test-scenes [WORDS]
 *
 * Scenes on model drives (whose name holds WORDS): generous bounds; sim-report
 * prints the numbers.
 */
#include <math.h>

#include <linux/string.h>

#include "scenes.h"
#include "world.h"

/**
 * struct bounds - what must come of a scene
 * @ratio:	of true device time of the first two clients, on each leaf
 * @slack:	part by which it may differ
 * @bytes_slack: part by which the ratio of bandwidth may differ, 0 = any
 * @worst:	part by which any client's share may differ, 0 = any
 * @of_fifo:	least part of the bandwidth of a plain FIFO
 * @of_alone:	least part of the bandwidth of the first client alone
 * @follow_s:	until shares follow new weights
 */
struct bounds {
	const char *name;
	double ratio;
	double slack;
	double bytes_slack;
	double worst;
	double of_fifo;
	double of_alone;
	double follow_s;
};

static const struct bounds bounds[] = {
	{ .name = "stripe rand 64K qd96 200:100",
	  .ratio = 2,
	  .slack = 0.05,
	  .bytes_slack = 0.05,
	  .of_fifo = 0.95 },
	{ .name = "stripe rand 128K qd16 200:100",
	  .ratio = 2,
	  .slack = 0.05,
	  .bytes_slack = 0.1,
	  .of_alone = 0.95 },
	{ .name = "stripe rand 128K qd16 300:100",
	  .ratio = 3,
	  .slack = 0.07,
	  .bytes_slack = 0.12,
	  .of_alone = 0.95 },
	/* Each visit pays one seek, which is more to the light one. */
	{ .name = "stripe seq 1M qd16 200:100",
	  .ratio = 2,
	  .slack = 0.05,
	  .bytes_slack = 0.15,
	  .of_alone = 0.87 },
	{ .name = "stripe seq 1M qd16 300:100",
	  .ratio = 3,
	  .slack = 0.07,
	  .bytes_slack = 0.2,
	  .of_alone = 0.87 },
	{ .name = "stripe seq 1M qd4 200:100",
	  .ratio = 2,
	  .slack = 0.05,
	  .bytes_slack = 0.15,
	  .of_alone = 0.85 },
	{ .name = "stripe seq 1M qd1 200:100",
	  .ratio = 2,
	  .slack = 0.05,
	  .bytes_slack = 0.15,
	  .of_alone = 0.87 },
	{ .name = "stripe seq qd16 | rand 128K qd16 200:100",
	  .ratio = 2,
	  .slack = 0.05 },
	{ .name = "stripe seq 1M qd16 8 groups 100",
	  .ratio = 1,
	  .slack = 0.15,
	  .worst = 0.15 },
	{ .name = "one seq 1M qd16 200:100",
	  .ratio = 2,
	  .slack = 0.07,
	  .bytes_slack = 0.15,
	  .of_alone = 0.87 },
	{ .name = "one file reader | writer 100:100",
	  .ratio = 1,
	  .slack = 0.05,
	  .of_alone = 0.85 },
	{ .name = "one file reader | rand writer 100:100",
	  .ratio = 1,
	  .slack = 0.05 },
	{ .name = "one rand 4K qd1 | qd64 100:100", .ratio = 1, .slack = 0.1 },
	{ .name = "one rand 4K qd1 | seq qd64 100:100",
	  .ratio = 1,
	  .slack = 0.1 },
	{ .name = "one rand 4K qd64 | seq qd16 100:100",
	  .ratio = 1,
	  .slack = 0.1 },
	{ .name = "one rand 16 groups 1..16",
	  .ratio = 16,
	  .slack = 0.15,
	  .worst = 0.15,
	  .of_fifo = 0.9 },
	{ .name = "one rand 16 groups 1..16 slots 256",
	  .ratio = 16,
	  .slack = 0.15,
	  .worst = 0.15,
	  .of_fifo = 0.9 },
	{ .name = "stripe rand 128K qd16 flip 200:100", .follow_s = 1 },
	{ .name = "stripe seq 1M qd16 flip 200:100", .follow_s = 1 },
	{ .name = "ssd stripe rand 64K qd96 200:100",
	  .ratio = 2,
	  .slack = 0.02,
	  .bytes_slack = 0.02,
	  .of_fifo = 0.95 },
	{ .name = "ssd seq 1M qd16 200:100",
	  .ratio = 2,
	  .slack = 0.02,
	  .bytes_slack = 0.02,
	  .of_fifo = 0.95 },
	{ .name = "ssd stripe seq 1M qd16 flip 200:100",
	  .follow_s = 0.5,
	  .of_fifo = 0.95 },
	{ .name = "ssd 24 MB/s seq 1M qd1 1000:500 fair",
	  .ratio = 2,
	  .slack = 0.03,
	  .bytes_slack = 0.03,
	  .of_fifo = 0.95 },
	{ .name = "ssd 60 MB/s stripe rand 64K qd96 flip",
	  .follow_s = 0.5,
	  .of_fifo = 0.95 },
	{ .name = "ssd 24 MB/s seq 1M qd8 1000:500",
	  .ratio = 2,
	  .slack = 0.05,
	  .bytes_slack = 0.05,
	  .of_fifo = 0.95 },
	{ .name = "ssd 24 MB/s seq 1M qd4 1000:500",
	  .ratio = 2,
	  .slack = 0.05,
	  .bytes_slack = 0.05,
	  .of_fifo = 0.95 },
	{ .name = "ssd 24 MB/s seq 256K qd16 1000:500",
	  .ratio = 2,
	  .slack = 0.05,
	  .bytes_slack = 0.05,
	  .of_fifo = 0.95 },
	{ .name = "ssd seq 1M qd4 200:100",
	  .ratio = 2,
	  .slack = 0.05,
	  .bytes_slack = 0.05,
	  .of_fifo = 0.95 },
	{ .name = "ssd rand 128K qd8 200:100",
	  .ratio = 2,
	  .slack = 0.05,
	  .bytes_slack = 0.05,
	  .of_fifo = 0.95 },
	/* Unlike work, which only probes can tell apart. */
	{ .name = "ssd rand 4K qd64 | 256K qd32 100:100",
	  .ratio = 1,
	  .slack = 0.05,
	  .of_fifo = 0.95 },
	{ .name = "ssd rand 16K qd32 read | write 100:100",
	  .ratio = 1,
	  .slack = 0.05,
	  .of_fifo = 0.95 },
	{ .name = "ssd rand 4K qd64 | 1M write qd16 100:100",
	  .ratio = 1,
	  .slack = 0.05,
	  .of_fifo = 0.95 },
	{ .name = "ssd 60 MB/s rand 4K qd64 | 1M write qd8",
	  .ratio = 1,
	  .slack = 0.05,
	  .of_fifo = 0.95 },
	{ .name = "nvme rand 16K read | write qd128 100:100",
	  .ratio = 1,
	  .slack = 0.05,
	  .of_fifo = 0.95 },
	{ .name = "ssd rand 4K qd1 | qd64 100:100", .of_fifo = 0.95 },
	{ .name = "nvme rand 4K qd128 200:100",
	  .ratio = 2,
	  .slack = 0.02,
	  .bytes_slack = 0.02,
	  .of_fifo = 0.9 },
};

static double bandwidth(const struct scene *scene, bool fifo, bool alone)
{
	struct scene other = *scene;
	struct result result;

	other.fifo = fifo;
	if (alone)
		other.jobs[1].iodepth = 0;
	scene_run(&other, &result);
	return result_mb_per_s(&result);
}

static void test_scene(const struct bounds *due)
{
	struct scene scene = *scene_find(due->name);
	struct result result;
	double mb_per_s;
	u32 leaf;

	printf("%s\n", due->name);
	if (scene.rotational && !scene.flip_ns)
		scene.run_ns = 14 * SEC;
	scene_run(&scene, &result);
	mb_per_s = result_mb_per_s(&result);
	for (leaf = 0; due->ratio && leaf < scene.leaves; leaf++)
		check_near(result_ratio(&result, 0, 1, leaf), due->ratio,
			   due->ratio * due->slack);
	/* What is charged is what it took: to the request in flight, on hdd. */
	for (leaf = 0; scene.rotational && leaf < scene.leaves; leaf++)
		check_near(result_charged_ratio(&result, 0, 1, leaf) /
				   result_ratio(&result, 0, 1, leaf),
			   1, 0.01);
	if (due->bytes_slack)
		check_near(result_bytes_ratio(&result, 0, 1), due->ratio,
			   due->ratio * due->bytes_slack);
	if (due->worst)
		check_near(result_worst_error(&scene, &result), 0, due->worst);
	if (due->of_fifo)
		check(mb_per_s >= due->of_fifo * bandwidth(&scene, true, false),
		      "%.1f MB/s", mb_per_s);
	if (due->of_alone)
		check(mb_per_s >=
			      due->of_alone * bandwidth(&scene, false, true),
		      "%.1f MB/s", mb_per_s);
	if (due->follow_s)
		check(result_follow_s(&scene, &result) <= due->follow_s,
		      "after %.2f s", result_follow_s(&scene, &result));
}

int main(int argc, char **argv)
{
	const char *words = argc > 1 ? argv[1] : "";
	u32 i;

	for (i = 0; i < sizeof(bounds) / sizeof(bounds[0]); i++)
		if (strstr(bounds[i].name, words))
			test_scene(&bounds[i]);
	return 0;
}
