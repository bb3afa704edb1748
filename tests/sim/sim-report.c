// SPDX-License-Identifier: GPL-2.0-only
/*
 * Usage: sim-report [WORDS]
 *        sim-report --goals [WORDS]
 *
 * With --goals: the numbers to be met (goals.c) whose names hold WORDS, what was
 * measured, and the bandwidth as part of what a plain FIFO reaches.
 *
 * Else: what the clients of each scene (whose name holds WORDS) get: of the
 * first two clients the ratio of true device time on each leaf, of charged
 * device time on the first one, and of bandwidth; of all, the worst error of a
 * share of true device time against the weights; the aggregate bandwidth, and
 * that as part of what a plain FIFO reaches, and of what the first client
 * reaches alone; the longest latency of the first client; how often slices ended
 * on the first leaf, by reason (used, empty, preempted).
 */
#include <stdio.h>

#include <linux/string.h>

#include "goals.h"
#include "scenes.h"

static void report(const struct scene *scene)
{
	struct result sutro, fifo, alone;
	struct scene other = *scene;

	scene_run(scene, &sutro);
	other.fifo = true;
	scene_run(&other, &fifo);
	other.fifo = false;
	other.jobs[1].iodepth = 0;
	scene_run(&other, &alone);

	printf("%-42s %5.3f ", scene->name, result_ratio(&sutro, 0, 1, 0));
	if (scene->leaves > 1)
		printf("%5.3f ", result_ratio(&sutro, 0, 1, 1));
	else
		printf("      ");
	printf("%6.3f %6.3f %5.1f%% %7.1f %5.1f%% %5.1f%% %8.1f %5llu %5llu %5llu",
	       result_charged_ratio(&sutro, 0, 1, 0),
	       result_bytes_ratio(&sutro, 0, 1),
	       100 * result_worst_error(scene, &sutro), result_mb_per_s(&sutro),
	       100 * result_mb_per_s(&sutro) / result_mb_per_s(&fifo),
	       100 * result_mb_per_s(&sutro) / result_mb_per_s(&alone),
	       sutro.client[0].latency_max_ns / 1e6,
	       sutro.expired[SUTRO_EXPIRY_USED],
	       sutro.expired[SUTRO_EXPIRY_EMPTY],
	       sutro.expired[SUTRO_EXPIRY_PREEMPTED]);
	if (scene->flip_ns)
		printf(" follows after %.2f s", result_follow_s(scene, &sutro));
	putchar('\n');
	fflush(stdout);
}

static void report_goal(const struct goal *goal)
{
	struct score score = goal_score(goal);

	printf("%-56s %6g to %-6g %8.3f ", goal->row, goal->low, goal->high,
	       score.value);
	if (score.of_fifo)
		printf("%5.1f%% ", 100 * score.of_fifo);
	else
		printf("%6s ", "");
	printf("%s%s%s\n", score.met ? "met" : "missed",
	       goal->missed ? ": " : "", goal->missed ?: "");
	fflush(stdout);
}

static int report_goals(const char *words)
{
	u32 i;

	printf("%-56s %16s %8s %6s\n", "goal", "range", "measured", "/fifo");
	for (i = 0; i < goals_nr; i++)
		if (strstr(goals[i].row, words))
			report_goal(&goals[i]);
	return 0;
}

int main(int argc, char **argv)
{
	const char *words = argc > 1 ? argv[1] : "";
	u32 i;

	if (!strcmp(words, "--goals"))
		return report_goals(argc > 2 ? argv[2] : "");
	printf("%-42s %5s %5s %6s %6s %6s %7s %6s %6s %8s %5s %5s %5s\n",
	       "scene", "leaf0", "leaf1", "charge", "bytes", "worst", "MB/s",
	       "/fifo", "/alone", "max ms", "used", "empty", "preem");
	for (i = 0; i < scenes_nr; i++)
		if (strstr(scenes[i].name, words))
			report(&scenes[i]);
	return 0;
}
