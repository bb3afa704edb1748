/* SPDX-License-Identifier: LGPL-2.1-or-later */
#ifndef SUTRO_LAW_INTERNAL_H
#define SUTRO_LAW_INTERNAL_H

/* Declarations that only the files of the control law share; law.h is the interface. */

#include <math.h>

#include "control/law.h"
#include "host/util.h"

/* A cgroup's own requests beside its children weigh as much as a child at the
 * default weight, which no setting changes.
 */
#define OWN_WEIGHT 100.0
/* A cgroup that has neither used a leaf nor waited for this time does not compete there.
 * With less than 0.25 s, a group that waits for its slice on a hdd comes and goes.
 */
#define ACTIVE_S 0.5
/* Requests wait for less than this part of a tick: not backlogged. */
#define WAITING 0.02
/* Backlogged for more than this part of a tick: would use any share. */
#define BACKLOGGED 0.6
/* Part of a level that is kept for cgroups without a promise. */
#define RESIDUAL 0.02

/* A smaller reserve is not worth a window. */
#define RESERVE_LEAST 0.02
/* A unit with a request in this part of a tick would use more. */
#define ASKS 0.5

/* Longer times are not distinguished. */
#define LONG_AGO_S 15.0F

/**
 * struct demand - the demand of a competitor
 * @demand: share of the leaf that it would use if it could, 0..1
 * @idle_s: since it last used the leaf or waited
 * @calm_s: since it last waited
 */
struct demand {
	double demand;
	float idle_s;
	float calm_s;
};

/**
 * struct cell - a cgroup on a leaf
 * @use: of the tick
 * @time: device time of the tick as a share of the leaf's capacity
 * @all: of the cgroup with those below it
 * @own: of its own requests beside its children
 * @own_time: their share
 * @rivals: weights in force of the children, each times the part of the tick in which it had
 *	requests waiting
 * @margin: factor of the children's reserved share that leaves some of it to the others
 * @promised: set aside for the cgroup's own promises
 * @below: set aside for its children
 * @reserved: both, as one contains the other: the larger
 * @standing: as @reserved, with demand for all promises in full
 * @part: share of the leaf that its children divide
 * @wanted: its weight, beside the nominal ones of those without a promise
 * @shrink: how many times its children's weights were divided by SHRINK_STEP
 * @over_s: time since these steps are too few
 * @is_promised: it, or one below it, has a promise on the leaf
 */
struct cell {
	struct control_use use;
	double time;
	struct demand all;
	struct demand own;
	double own_time;
	double rivals;
	double margin;
	double promised;
	double below;
	double reserved;
	double standing;
	double part;
	double wanted;
	uint32_t shrink;
	float over_s;
	bool is_promised;
};

/** struct weight - of a cgroup on a leaf: as it was set, and as it is in force */
struct weight {
	uint32_t nominal;
	uint32_t in_force;
};

/**
 * struct node - a cgroup
 * @cells: by leaf; NULL: it is dormant, it has used nothing for so long that a tick skips it. On a
 *	large machine most are. The root never is, nor are cgroups with a promise
 * @n_awake: children that are not dormant; with one, it is not dormant itself
 * @promises: first of its promises, linked by @next of struct promise
 * @steered: one below it has a promise
 * @moved: its weight on some leaf is not the nominal one
 * @fraction: part of its traffic that has a promise
 */
struct node {
	struct cell *cells;
	uint32_t n_awake;
	uint32_t parent;
	uint32_t first_child;
	uint32_t last_child;
	uint32_t next;
	uint32_t promises;
	bool steered;
	bool moved;
	double fraction;
};

/**
 * struct link - a promise on a leaf
 * @time: device time that it used, smoothed
 * @slow_time: the same, slower
 * @cost_s: device time per unit
 * @share: of the leaf, that the whole floor takes
 * @need: the part of @share that it has demand for now
 * @in_flight: share by the requests in flight, where traffic moves; 0 elsewhere
 * @base, @want: grant of former rounds, and its growth if all fits; see law-share.c
 * @grant: set aside for it
 */
struct link {
	uint32_t leaf;
	double time;
	double slow_time;
	double cost_s;
	double share;
	double need;
	double in_flight;
	double base;
	double want;
	double grant;
};

/**
 * struct promise - the state of a promise
 * @links: its leaves
 * @first: the first promise of its cgroup about the same traffic
 * @next: promise of the same cgroup
 * @shares_traffic: others are about the same traffic
 * @is_known: its cost was measured
 * @is_live: may still grow; see law-share.c
 * @part: granted part of @want
 * @worst: the leaf that limits @part, or CONTROL_NONE
 * @smooth_rate: mean over the time in which a cost is measured
 * @slow_rate: the same, slower
 * @fast_rate, @steady_rate: means that decide whether it is short
 * @most: share of the leaf of which it uses most, smoothed
 * @pending: requests in flight, smoothed
 * @busy: part of the tick in which it had any
 * @charged: device time on all leaves, @ios: requests there per second; smoothed
 * @running_s: time since it began to use the device or to wait for it; up to 0 its rate is
 *	not judged
 * @idle_s: time since it stopped
 * @push: gain with its proportional term
 * @reserve: part of the time by the last tick; the public one is in force
 * @reserve_missed_s: part of its entitlement that it missed, with nothing reserved for it,
 *	times the time
 * @is_met: it had its target since it began, with nothing reserved for it
 * @reserve_s: time since the reserve began
 * @reserve_mean, @reserve_rate: reserve in force, and the rate; smoothed
 * @released_from: the reserve from which a smaller one is tried, or 0; see law-release.c
 * @latency_s: shortest mean latency of its requests since then
 * @keep_s: time until a smaller reserve is tried again
 * @calm_s: time in which no other cgroup has used its leaves
 * @short_s: net time in which it was short of its floor
 * @good_s: time in which it was not, since a verdict
 * @other_s: time in which another cause than that of the verdict was found
 * @cause: the last one
 * @verdict: the cause if it is short, else CONTROL_HELD
 */
struct promise {
	struct control_promise pub;
	struct link *links;
	uint32_t n_links;
	uint32_t first;
	uint32_t next;
	bool shares_traffic;
	bool is_known;
	bool is_live;
	double part;
	uint32_t worst;
	double smooth_rate;
	double slow_rate;
	double fast_rate;
	double steady_rate;
	double most;
	double pending;
	double busy;
	double charged;
	double ios;
	double running_s;
	double idle_s;
	double push;
	double reserve;
	double reserve_missed_s;
	bool is_met;
	double reserve_s;
	double reserve_mean;
	double reserve_rate;
	double released_from;
	double latency_s;
	double keep_s;
	double calm_s;
	double short_s;
	double good_s;
	double other_s;
	enum control_state cause;
	enum control_state verdict;
};

/**
 * struct leaf_fit - the part of the needs of a class that fits on a leaf
 * @room: share of the leaf there is for promises
 * @low, @high: a part that fits, and one that does not
 * @low_total, @high_total: reserved shares with these
 * @part: the part that is tried
 * @is_settled: @low is the largest part
 */
struct leaf_fit {
	double room;
	double low;
	double high;
	double low_total;
	double high_total;
	double part;
	bool is_settled;
};

/**
 * struct control - a plant
 * @weights: of node n on leaf l: [n * n_leaves + l]
 * @order: promises, the most important first
 * @unweighted: leaves whose scheduler has no weights
 * @reserves: leaves whose scheduler can reserve time
 * @is_reserved: leaves on which some is
 * @capacity: device time per second that each leaf is charged for when it is busy
 * @charged: device time per second that it is charged for, smoothed
 * @fits: of each leaf
 * @rivals: room for the competitors of a level; see law-weights.c
 * @kids, @n_kids: those of the children of a node that are not dormant
 * @some_moved: a weight of one that is dormant is not the nominal one
 */
struct control {
	uint32_t n_leaves;
	uint32_t n_nodes;
	uint32_t n_promises;
	size_t nodes_size;
	size_t promises_size;
	struct node *nodes;
	struct weight *weights;
	struct promise *promises;
	uint32_t *order;
	bool *unweighted;
	bool *reserves;
	bool *is_reserved;
	double *capacity;
	double *charged;
	struct leaf_fit *fits;
	struct rival *rivals;
	uint32_t *kids;
	uint32_t n_kids;
	bool some_moved;
};

static inline bool is_dormant(const struct node *node)
{
	return !node->cells;
}

/* Of a cgroup that is not dormant. */
static inline struct cell *cell_of(const struct control *c, uint32_t node,
				   uint32_t leaf)
{
	return &c->nodes[node].cells[leaf];
}

static inline struct weight *weight_of(const struct control *c, uint32_t node,
				       uint32_t leaf)
{
	return &c->weights[(size_t)node * c->n_leaves + leaf];
}

static inline bool is_active(const struct demand *a)
{
	return a->idle_s <= (float)ACTIVE_S;
}

static inline double clampd(double x, double low, double high)
{
	return x < low ? low : x > high ? high : x;
}

/** struct rival - an active competitor of a level; law-weights.c */
struct rival {
	double demand;
	double least;
	double nominal;
	bool is_promised;
};

/* law-model.c */

/* A promise on a leaf; NULL if it has none of its bytes there. */
struct link *control_link(const struct control *c, uint32_t promise,
			  uint32_t leaf);
/* End the dormancy of a node and of those above, or begin that of one without awake children. */
int control_wake(struct control *c, uint32_t node);
void control_rest(struct control *c, uint32_t node);

/* law-demand.c: demand and backlog of each cgroup on each leaf. */
void control_observe(struct control *c, double dt_s);

/* law-in-flight.c: the share of a leaf by the requests of a promise in flight; 0 = nothing moves. */
double law_share_in_flight(const struct control *c, const struct promise *p,
			   const struct link *k);

/* law-promise.c: the need of each promise. */

/* Smaller shares are too noisy for a verdict about entitlement. */
#define SHARE_TELLING 0.02
/* Upper bound of a share. The capacity of the device follows from the whole cost. */
#define SHARE_MAX 2.0

/* The cost, at most that of a need of SHARE_MAX. */
static inline double control_cost_bounded(const struct promise *p,
					  const struct link *k)
{
	return fmin(k->cost_s, SHARE_MAX / p->pub.floor);
}

void control_promise_init(struct promise *p);
double control_cost_most(const struct promise *p);
bool control_promise_is_measured(const struct promise *p);
void control_follow_part(struct promise *p);
void control_measure(struct control *c, double dt_s);
void control_need_all(struct control *c);
/* Does the unit wait, or use all of a leaf, or always have a request? */
bool control_has_demand(const struct promise *p);
/* The factor by which a promise needs more than its own share. */
double control_others(const struct control *c, const struct promise *p);

/* law-verdict.c: the verdict of each promise. */
void control_judge(struct control *c, double dt_s);

/* law-share.c: the grant of each promise on each leaf. */
void control_allot(struct control *c);

/* law-reserve.c: time that is reserved for promises. */
void control_reserve_all(struct control *c, double dt_s);
/* Of a unit with several promises the largest reserve counts, and serves all of them. */
void control_need_reserves(struct control *c);
bool control_may_reserve(const struct control *c, const struct promise *p);

/* law-release.c: does the demand of a unit limit it? Its next reserve if it does. */
bool control_is_limited(const struct promise *p);
double control_release(struct promise *p, double dt_s);

/* law-weights.c: from grants to weights. */
void control_weigh(struct control *c, double dt_s);

#endif
