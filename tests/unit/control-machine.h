/* SPDX-License-Identifier: LGPL-2.1-or-later */
#ifndef SUTRO_TEST_CONTROL_MACHINE_H
#define SUTRO_TEST_CONTROL_MACHINE_H

/* Cgroups and leaves whose samples are consistent: time is rate times cost. */

#include "control/law.h"
#include "fake.h"

#define CASES cases(1000)
#define MAX_LEAVES 6
#define MAX_UNITS 24
#define TICK_S 0.25

/** below() - evenly 0..n-1; between() - evenly from @low to @high */
uint64_t below(uint64_t n);
double between(double low, double high);

/** near() - @a may differ from @b by @part of it */
void near(double a, double b, double part);

/**
 * struct unit - a cgroup below the root
 * @floor: 0: nothing is promised
 * @cost: device time per unit of rate, on each leaf; 0: not on it
 * @rate: the rate that it receives
 * @is_backlogged: requests of it wait all the time
 */
struct unit {
	double floor;
	uint64_t importance;
	double cost[MAX_LEAVES];
	double rate;
	bool is_backlogged;
	uint32_t weight;
	uint32_t node;
	uint32_t promise;
};

struct machine {
	struct control *c;
	uint32_t leaves;
	uint32_t units;
	struct unit unit[MAX_UNITS];
};

#define for_each_unit(u, m) \
	for (__auto_type u = (m)->unit; u < (m)->unit + (m)->units; u++)
/* Units with a floor. */
#define for_each_floor(u, m)           \
	for_each_unit(u, m)            \
		if (!(u->floor > 0)) { \
		} else
#define for_each_leaf(l, m) for (uint32_t l = 0; l < (m)->leaves; l++)

static inline uint32_t weight(const struct machine *m, const struct unit *u,
			      uint32_t leaf)
{
	return control_weight(m->c, u->node, leaf);
}

static inline struct control_promise *promise(const struct machine *m,
					      const struct unit *u)
{
	return control_promise(m->c, u->promise);
}

static inline double allotted(const struct machine *m, const struct unit *u,
			      uint32_t leaf)
{
	return control_allotted(m->c, u->promise, leaf);
}

static inline bool declared(const struct machine *m, const struct unit *u)
{
	return promise(m, u)->state == CONTROL_INFEASIBLE;
}

/** each_machine() - run a test with @n random machines, which it builds */
void each_machine(unsigned int n, void (*test)(struct machine *m));
/** build() - the plant of a machine */
void build(struct machine *m);
/** feed() - a tick's samples */
void feed(struct machine *m);
/** run() - ticks without change */
void run(struct machine *m, double seconds);
/** random_machine() - units, some with floors, and one without on each leaf; all are backlogged */
void random_machine(struct machine *m);
/** scale_floors() - they take no more than @most of any leaf, and all have them */
void scale_floors(struct machine *m, double most);
/** need() - the share that a floor takes, by the costs that the samples are made of */
double need(const struct unit *u, uint32_t l);
/** needed() - the same of all floors */
double needed(const struct machine *m, uint32_t l);
/** weights() - sum of the weights of backlogged units on a leaf */
double weights(const struct machine *m, uint32_t l);
/** check_ranges() - check properties of any output */
void check_ranges(const struct machine *m);

#endif
