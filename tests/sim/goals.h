/* SPDX-License-Identifier: GPL-2.0-only */
/* The numbers that the elevator is to meet, each with the scene that shows it. */
#ifndef SIM_GOALS_H
#define SIM_GOALS_H

#include "scene.h"

/**
 * struct goal - a number to be met
 * @row:	what it is about
 * @scene:	what happens
 * @fill:	makes the scene's jobs where they are many, or NULL
 * @measure:	gets the number out of what came of it
 * @low, @high:	what it may be
 * @of_fifo:	least part of the bandwidth of a plain FIFO; 0 = it does not matter
 * @missed:	why it is not met, NULL if it is
 */
struct goal {
	const char *row;
	struct scene scene;
	void (*fill)(struct scene *scene);
	double (*measure)(const struct scene *scene,
			  const struct result *result);
	double low;
	double high;
	double of_fifo;
	const char *missed;
};

/**
 * struct score - what came of a goal
 * @value:	what was measured
 * @of_fifo:	part of the bandwidth of a plain FIFO, 0 if not asked
 * @met:	both are good enough
 */
struct score {
	double value;
	double of_fifo;
	bool met;
};

extern const struct goal goals[];
extern const unsigned int goals_nr;

struct score goal_score(const struct goal *goal);

#endif /* SIM_GOALS_H */
