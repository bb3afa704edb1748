/* SPDX-License-Identifier: LGPL-2.1-or-later */

/*
 * The state of sutrod for a scrape: four calls under way at a time, with one limit of time for the
 * connection and all of them.
 *
 * Each scrape has a connection of its own: nothing reads from one between two scrapes, which may be
 * minutes apart, and a bus that was restarted meanwhile needs no care.
 */

#include "exporter/state.h"

#define NAME "org.sutro1"
#define PATH "/org/sutro1"
#define MANAGER "org.sutro1.Manager"

/**
 * struct call - a call under way
 * @state: gets its reply
 * @error: of the call
 */
struct call {
	struct state *state;
	enum state_call number;
	size_t *n_waiting;
	sd_bus_error error;
};

static const char *const members[] = {
	[STATE_PROPERTIES] = "GetAll",
	[STATE_DEVICES] = "ListDevices",
	[STATE_PROMISES] = "ListPromiseStates",
	[STATE_CAPACITIES] = "ListCapacities",
};

static int on_reply(sd_bus_message *m, void *userdata, sd_bus_error *unused)
{
	struct call *c = userdata;

	--*c->n_waiting;
	if (sd_bus_message_is_method_error(m, NULL))
		sd_bus_error_copy(&c->error, sd_bus_message_get_error(m));
	else
		c->state->replies[c->number] = sd_bus_message_ref(m);
	return 0;
}

static int send_call(sd_bus *bus, struct call *c)
{
	const bool all = c->number == STATE_PROPERTIES;

	return sd_bus_call_method_async(
		bus, NULL, NAME, PATH,
		all ? "org.freedesktop.DBus.Properties" : MANAGER,
		members[c->number], on_reply, c, all ? "s" : "", MANAGER);
}

/* Return: 0; -ETIMEDOUT; the error of the connection. */
static int wait_for(sd_bus *bus, const size_t *n_waiting, uint64_t until_usec)
{
	while (*n_waiting) {
		uint64_t now = monotonic_usec();
		int r;

		if (now >= until_usec)
			return -ETIMEDOUT;
		r = sd_bus_process(bus, NULL);
		if (r == 0)
			r = sd_bus_wait(bus, until_usec - now);
		if (r < 0 && r != -EINTR)
			return r;
	}
	return 0;
}

/* Return: 0, also with a failure; -ENOMEM. */
static int call_all(sd_bus *bus, uint64_t timeout_usec, struct state *s)
{
	struct call calls[STATE_CALLS] = {};
	size_t n_waiting = STATE_CALLS;
	uint64_t until_usec = monotonic_usec() + timeout_usec;
	int r = 0;

	for (enum state_call i = 0; i < STATE_CALLS && r >= 0; i++) {
		calls[i] = (struct call){ s, i, &n_waiting, SD_BUS_ERROR_NULL };
		r = send_call(bus, &calls[i]);
	}
	r = r < 0 ? r : wait_for(bus, &n_waiting, until_usec);
	/* The library answers calls itself when the bus closes the connection. */
	if (r >= 0 && !sd_bus_is_open(bus))
		r = -ECONNRESET;
	if (r == -ETIMEDOUT)
		r = failure_of_timeout(&s->failure);
	else if (r < 0)
		r = failure_of_bus(r, &s->failure);
	for (enum state_call i = 0; i < STATE_CALLS; i++) {
		if (r >= 0 && !s->failure.reason && calls[i].error.name)
			r = failure_of_call(members[i], &calls[i].error,
					    &s->failure);
		sd_bus_error_free(&calls[i].error);
	}
	return r;
}

int state_read(uint64_t timeout_usec, struct state *ret)
{
	_cleanup_(sd_bus_close_unrefp) sd_bus *bus = NULL;
	struct state s = {};
	int r = sd_bus_open_system(&bus);

	r = r < 0 ? failure_of_bus(r, &s.failure)
		  : call_all(bus, timeout_usec, &s);
	if (r >= 0 && !s.failure.reason)
		r = state_parse(&s);
	if (r < 0 && r != -ENOMEM) {
		state_done(&s);
		r = failure_of_reply(&s.failure);
	}
	if (r < 0)
		state_done(&s);
	else
		*ret = s;
	return r < 0 ? r : 0;
}

void state_done(struct state *s)
{
	failure_done(&s->failure);
	for (enum state_call i = 0; i < STATE_CALLS; i++)
		sd_bus_message_unref(s->replies[i]);
	free(s->managed);
	free(s->devices);
	free(s->promises);
	free(s->capacities);
	*s = (struct state){};
}
