/* SPDX-License-Identifier: LGPL-2.1-or-later */
#ifndef SUTRO_EXPORTER_STATE_H
#define SUTRO_EXPORTER_STATE_H

#include <systemd/sd-bus.h>

#include "policy/promise.h"

/* Prometheus ends a scrape after 10 s; the calls of sutrod that read take milliseconds. */
#define STATE_TIMEOUT_USEC (5 * 1000000ULL)
/* The same for clients that waited meanwhile: it has not answered for STATE_TIMEOUT_USEC. */
#define STATE_NEXT_TIMEOUT_USEC (200 * 1000ULL)
/* For how long its replies are those for further scrapes: each user of the machine may scrape, and the
 * calls count as those of the exporter's user, which has a quarter of sutrod's time.
 */
#define STATE_LASTS_USEC (1 * 1000000ULL)

/** enum state_call - the calls of sutrod for a scrape: none starts sampling */
enum state_call {
	STATE_PROPERTIES,
	STATE_DEVICES,
	STATE_PROMISES,
	STATE_CAPACITIES,
	STATE_CALLS,
};

/** struct state_device - a block device; @label: the name that people use for it */
struct state_device {
	const char *node;
	const char *label;
	const char *kind;
	const char *scheduler;
	bool is_leaf;
};

/**
 * struct state_promise - a promise
 * @info: NULL: a key of a later sutrod
 * @device: the name that people use for the device; "" while the path leads nowhere
 * @value, @got: in the unit of the key
 * @granted: the part of a floor that its leaves have the time for
 */
struct state_promise {
	const char *unit;
	const char *cgroup;
	const char *key;
	const struct promise_info *info;
	const char *path;
	const char *device;
	const char *state;
	uint64_t value;
	uint64_t got;
	double granted;
};

/** promise_is_broken() - does it not hold? Not while its unit is idle, or its state is not known yet */
bool promise_is_broken(const struct state_promise *p);

/** struct state_capacity - a declared capacity; @info: NULL: a key of a later sutrod */
struct state_capacity {
	const char *path;
	const char *key;
	const struct promise_info *info;
	uint64_t capacity;
	uint64_t promised;
	uint64_t left;
};

/**
 * struct failure - why sutrod does not answer
 * @reason: label of sutro_down_info, a static string; NULL: it answers
 * @message, @hint: a sentence and a remedy, which may be ""
 */
struct failure {
	const char *reason;
	char *message;
	char *hint;
};

/**
 * struct state - the replies of sutrod
 * @failure: with a reason, all others are empty
 * @replies: texts of the other members are in them
 * @managed: nodes of the leaves that sutrod switched
 * @devices: by node
 * @promises: one of each cgroup as it is shown, key and path
 */
struct state {
	struct failure failure;
	sd_bus_message *replies[STATE_CALLS];
	const char *version;
	bool dry_run;
	size_t n_policy_errors;
	uint64_t control_step_usec;
	const char **managed;
	size_t n_managed;
	struct state_device *devices;
	size_t n_devices;
	struct state_promise *promises;
	size_t n_promises;
	struct state_capacity *capacities;
	size_t n_capacities;
};

/**
 * state_read() - call sutrod, for @timeout_usec at the most
 *
 * Return: 0, also with a failure in @ret; -ENOMEM.
 */
int state_read(uint64_t timeout_usec, struct state *ret);
void state_done(struct state *s);

/** failure_is_timeout() - is it that of state_read() after @timeout_usec? */
bool failure_is_timeout(const struct failure *f);

/* For state.c: replies.c reads the replies, failure.c has the words. */

/** state_parse() - read all replies. Return: 0; -ENOMEM; -EBADMSG and others of sd-bus */
int state_parse(struct state *s);

/**
 * failure_of_bus() - there is no connection to the bus
 * @err: -errno of the connection
 */
int failure_of_bus(int err, struct failure *ret);

/** failure_of_call() - sutrod, or the bus in its place, answered @member with an error */
int failure_of_call(const char *member, const sd_bus_error *error,
		    struct failure *ret);

/** failure_of_timeout() - there was no answer in STATE_TIMEOUT_USEC */
int failure_of_timeout(struct failure *ret);

/** failure_of_reply() - an answer cannot be read */
int failure_of_reply(struct failure *ret);

void failure_done(struct failure *f);

#endif
