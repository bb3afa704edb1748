/* SPDX-License-Identifier: LGPL-2.1-or-later */
#ifndef SUTRO_LAW_H
#define SUTRO_LAW_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/*
 * The control law: from samples to weights, so that floors hold. Pure: no I/O, no
 * clock, no allocation but in control_new() and the add functions. law-tick.c has
 * the equations and a worked example.
 *
 * A caller builds a plant once for a set of leaves, cgroups and promises, and again
 * when these change; the inherit functions carry over measured costs and demands. In
 * each tick it sets the samples, calls control_tick(), and reads weights and verdicts.
 */

#define CONTROL_NONE UINT32_MAX

/* The most device time of each leaf for a promise in device time, because other units need some. */
#define CONTROL_TIME_MOST 0.9

/** enum control_state - the state of a promise, with the cause if it does not hold */
enum control_state {
	CONTROL_UNKNOWN, /* nothing was measured yet */
	CONTROL_IDLE, /* the unit has not used the device for some seconds */
	CONTROL_HELD, /* the rate is at least the floor, or all of the unit's demand */
	CONTROL_SETTLING, /* below the floor, but not for long enough for a verdict */
	CONTROL_INFEASIBLE, /* the floors on a leaf need more than its device time */
	CONTROL_LIMITED, /* the unit has too few requests in flight to use its share */
	CONTROL_CROWDED, /* the unit's own other traffic takes its share */
	CONTROL_UNATTRIBUTED, /* served, but device time is charged to others */
	CONTROL_UNWEIGHTED, /* a leaf's scheduler, or a queue above it, has no weights */
	CONTROL_UNMEASURED, /* a part of a device whose capacity is unknown */
	CONTROL_UNOBSERVED, /* the latencies of a target, or the requests, are not counted */
	_CONTROL_STATE_MAX,
};

/** control_state_to_string() - one word, as the bus has it */
const char *control_state_to_string(enum control_state s);

/**
 * struct control_use - a cgroup on a leaf in one tick
 * @time: device time used by the cgroup itself and those below it, over the tick's
 *	length: 0..1, a little more if the leaf charges more
 * @backlog: demand beyond its use: mean number of its requests that wait, at most 1
 * @queued: part of the tick in which it, or one below it, had requests waiting, 0..1: it
 *	competes for the leaf then
 * @ios: requests completed
 * @pending: mean number of requests in flight (latencies of completed requests over the
 *	tick's length); 0 if that is not known. Verdicts and reserves need it: a drive's
 *	queue may hold all of a unit's requests, so that none is seen to wait
 * @busy: part of the tick in which it, or one below it, had a request, waiting or at the
 *	device, 0..1; 0 if that is not known
 */
struct control_use {
	double time;
	double backlog;
	double queued;
	uint64_t ios;
	double pending;
	double busy;
};

/**
 * struct control_promise - a floor of a unit on a logical device
 * @node: the cgroup
 * @floor: units per second (bytes or ios); of a promise with @part an output: the rate
 *	that the part is worth now, valid if control_is_measured()
 * @part: 0, or the part of its leaves' time that is promised, up to 1
 * @importance: higher is kept first
 * @is_time: the floor is device time, for a target: no time is reserved for it, and its need of a
 *	leaf is at most CONTROL_TIME_MOST
 * @wandering: the mapping is linear or thin, or chooses a mirror: traffic may move between the
 *	leaves
 * @traffic: its kind of traffic, e.g. reads of one device. Of the promises of a cgroup
 *	with the same number the largest need counts; those of others add up
 * @rate: input of a tick: units per second at the logical device
 * @fraction: input of a tick: part of the unit's traffic on its leaves that is this
 *	promise's, 0..1
 *
 * Output of control_tick():
 * @state: see enum control_state
 * @phi: part of the floor that was allotted, 0..1; below 1 the leaves are too small
 * @bottleneck: the leaf that @phi follows from, or CONTROL_NONE
 * @gain: factor of the share's correction, 1..1.6
 * @backlog: of the leaf on which the unit waits most, smoothed, 0..1
 * @reserve: part of the time that is reserved for it on its leaves, 0..1
 * @used: used part of the entitlement by its weights, on the leaf where that is largest,
 *	smoothed; much below 1 the unit cannot use its share
 */
struct control_promise {
	uint32_t node;
	double floor;
	double part;
	uint64_t importance;
	bool is_time;
	bool wandering;
	uint32_t traffic;

	double rate;
	double fraction;

	enum control_state state;
	double phi;
	uint32_t bottleneck;
	double gain;
	double backlog;
	double reserve;
	double used;
};

struct control;

/** control_new() - a plant of @n_leaves leaves and a root cgroup, which is node 0 */
int control_new(uint32_t n_leaves, struct control **ret);
struct control *control_free(struct control *c);

/** control_add_node() - a cgroup below @parent; ret_node: its number */
int control_add_node(struct control *c, uint32_t parent, uint32_t *ret_node);

/**
 * control_add_promise() - a floor; @leaves: numbers of the leaves under its device
 *
 * @p is copied up to @traffic. Pointers from control_promise() are no longer valid.
 * Return: 0; -EINVAL without a floor above 0 or a part up to 1, or for a node or leaf that is not
 * there or named twice; -ENOMEM.
 */
int control_add_promise(struct control *c, const struct control_promise *p,
			const uint32_t *leaves, uint32_t n_leaves,
			uint32_t *ret_promise);

/**
 * control_use() - input of a tick, kept until it is set again
 *
 * Return: NULL without memory; the pointer is valid until the next tick.
 */
struct control_use *control_use(struct control *c, uint32_t node,
				uint32_t leaf);
/**
 * control_is_dormant() - has the cgroup used nothing for long, or never? Then its use need not be
 * set
 *
 * control_use() ends that.
 */
bool control_is_dormant(const struct control *c, uint32_t node);
/** control_set_nominal() - the nominal weight, 1..10000, 100 at first */
void control_set_nominal(struct control *c, uint32_t node, uint32_t leaf,
			 uint32_t weight);
/** control_nominal() - as it was set */
uint32_t control_nominal(const struct control *c, uint32_t node, uint32_t leaf);
/** control_set_weighted() - does the scheduler of the leaf have weights? true at first */
void control_set_weighted(struct control *c, uint32_t leaf, bool weighted);
/** control_set_reserves() - can the scheduler of the leaf reserve time? false at first */
void control_set_reserves(struct control *c, uint32_t leaf, bool reserves);
struct control_promise *control_promise(struct control *c, uint32_t promise);

/**
 * control_tick() - one step
 * @dt_s: seconds that the samples are about, as measured; nothing is done if it is
 *	not above 0
 */
void control_tick(struct control *c, double dt_s);

/**
 * control_admit() - would all promises fit, if every unit used all of its own?
 *
 * Instead of ticks, on a plant that is made for this, with costs set by
 * control_learnt(). The allotment is that of a tick; @phi and @bottleneck of each
 * promise, control_need() and control_needed() are its results. A rate whose cost is
 * unknown takes nothing.
 */
void control_admit(struct control *c);
/** control_needed() - after control_admit(): share of @leaf that all promises take */
double control_needed(const struct control *c, uint32_t leaf);
/** control_is_granted() - is its need granted, or so nearly that the promise holds? */
bool control_is_granted(const struct control_promise *p);

/* Output of a tick. */

/** control_price() - reserved part of a leaf that its unit does not use, and others would */
double control_price(const struct control *c, uint32_t promise, uint32_t leaf);
/** control_reserve() - time to reserve for a cgroup, in thousandths */
uint32_t control_reserve(const struct control *c, uint32_t node, uint32_t leaf);
/**
 * control_weight() - the weight to put in force, 1..10000
 *
 * It differs from the nominal one only for promised units, for cgroups above them, and,
 * where the ratio does not fit into 1..10000, for their siblings.
 */
uint32_t control_weight(const struct control *c, uint32_t node, uint32_t leaf);
/** control_is_moved() - does the weight differ from the nominal one on any leaf? */
bool control_is_moved(const struct control *c, uint32_t node);
/** control_need() - share of @leaf that the promise needs, 0..1 */
double control_need(const struct control *c, uint32_t promise, uint32_t leaf);
/**
 * control_needs() - share of @leaf that all promises need; above 1 they do not fit
 *
 * Of the promises of a cgroup about the same traffic the largest need counts, and a cgroup needs
 * no less than those below it.
 */
double control_needs(const struct control *c, uint32_t leaf);
/** control_allotted() - share of @leaf set aside for the promise, 0..1 */
double control_allotted(const struct control *c, uint32_t promise,
			uint32_t leaf);
/**
 * control_is_measured() - is the cost of a unit of the promised rate known?
 *
 * Until then control_cost() is a guess or 0, and a part of a device is no rate.
 */
bool control_is_measured(const struct control *c, uint32_t promise);
/**
 * control_rate_alone() - units per second of requests like the unit's on idle leaves: the
 * capacity of the device for them; 0: not measured
 */
double control_rate_alone(const struct control *c, uint32_t promise);
/** control_cost() - part of a second of @leaf for a unit of the promised rate */
double control_cost(const struct control *c, uint32_t promise, uint32_t leaf);

/**
 * control_learnt() - take over the cost of a promise, from another plant or from a
 * former daemon
 */
void control_learnt(struct control *c, uint32_t promise, uint32_t leaf,
		    double cost_s);
/**
 * control_inherit() - take over the state of a promise
 * @leaf_of: for each leaf of @to its number in @from, or CONTROL_NONE
 */
void control_inherit(struct control *to, uint32_t to_promise,
		     const struct control *from, uint32_t from_promise,
		     const uint32_t *leaf_of);
/** control_inherit_node() - the same for a cgroup: its demand, its weights in force */
int control_inherit_node(struct control *to, uint32_t to_node,
			 const struct control *from, uint32_t from_node,
			 const uint32_t *leaf_of);

#endif
