// SPDX-License-Identifier: GPL-2.0-only
/*
 * A device that takes more at once than any probe can send: each of 16 groups reads
 * and writes, has all the slots that it may have, and soon only writes are left while
 * reads are probed.  What such a probe finds is how many requests there were, not what
 * the device can do; and who believed that would never send more.
 */
#include <linux/string.h>

#include "scene.h"
#include "world.h"

#define GROUPS 16

/* A volume in a cloud: slow, and wide. */
static const struct flash_model wide = {
	.size_bytes = 2ULL << 30,
	.channels = 64,
	.read_ns = MS,
	.write_ns = MS,
	.bus_kbps = 4000000,
	.depth = 128,
};

/* Each is entitled to as much as any other, and to 1 in 16 of the requests' slots. */
static struct scene crowd(const struct flash_model *flash)
{
	struct scene scene = {
		.flash = flash,
		.leaves = 1,
		.seed = 1,
		.warmup_ns = SEC,
		.run_ns = 4 * SEC,
	};
	u32 i;

	for (i = 0; i < GROUPS; i++)
		scene.jobs[i] = (struct job){
			.name = "mixed",
			.weight = 100,
			.mixed = true,
			.random = true,
			.bytes = 4096,
			.iodepth = 64,
		};
	return scene;
}

static struct result result;

int main(void)
{
	double got_mbps, without_mbps;
	struct scene scene = crowd(&wide);

	scene_run(&scene, &result);
	got_mbps = result_mb_per_s(&result);
	check(result_worst_error(&scene, &result) < 0.05, "shares");

	scene.fifo = true;
	scene_run(&scene, &result);
	without_mbps = result_mb_per_s(&result);
	check(got_mbps >= 0.95 * without_mbps, "%.1f of %.1f MB/s", got_mbps,
	      without_mbps);
	return 0;
}
