// SPDX-License-Identifier: GPL-2.0-only
/*
 * Usage: test-goals [WORDS]
 *
 * The goals (goals.c, whose names hold WORDS) are met, but those that are said to be
 * missed; and when such a one is met after all, that is to be said there.
 */
#include <linux/string.h>

#include "goals.h"
#include "world.h"

int main(int argc, char **argv)
{
	const char *words = argc > 1 ? argv[1] : "";
	u32 i;

	for (i = 0; i < goals_nr; i++) {
		struct score score;

		if (!strstr(goals[i].row, words))
			continue;
		printf("%s\n", goals[i].row);
		fflush(stdout);
		score = goal_score(&goals[i]);
		check(score.met == !goals[i].missed, "%g, %.1f %% of FIFO",
		      score.value, 100 * score.of_fifo);
	}
	return 0;
}
