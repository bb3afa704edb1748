/* SPDX-License-Identifier: LGPL-2.1-or-later */

/*
 * Calls that wait for samples.
 *
 * Shares are about the last second, and sampling starts with the first call for them.
 * That call is kept until there are two samples. Then the loop runs the methods of one call at a
 * time, as it makes lists in pieces (pieces.c), and the next sample waits for the last one.
 */

#include "bus/quota.h"
#include "bus/wait.h"

/**
 * struct bus_waiter - a call that waits for samples
 * @method: runs when there are samples
 */
struct bus_waiter {
	sd_bus_message *call;
	struct kept kept;
	bus_method_t method;
	struct bus_waiter *next;
};

int bus_with_samples(struct bus *b, sd_bus_message *call, bus_method_t method,
		     sd_bus_error *error)
{
	struct bus_waiter *w;
	struct kept kept;
	uid_t uid;
	int r;

	r = b->ops->want_samples(b->userdata);
	if (r >= 0)
		r = bus_caller_uid(b, call, &uid);
	if (r < 0)
		return r;
	bus_share_samples(b, uid,
			  machine_now_usec(b->machine) + SAMPLE_LINGER_USEC);
	if (sampler_is_fresh(b->watcher, machine_now_usec(b->machine)))
		return method(b, call, error);
	r = bus_keep_call(b, call, &kept, error);
	if (r < 0)
		return r;
	w = calloc(1, sizeof(*w));
	if (!w) {
		bus_release_call(b, &kept);
		return -ENOMEM;
	}
	*w = (struct bus_waiter){ sd_bus_message_ref(call), kept, method,
				  b->waiters };
	b->waiters = w;
	return 1;
}

bool bus_has_waiters(const struct bus *b)
{
	return b->waiters;
}

int bus_arm_pieces(struct bus *b)
{
	int r = sd_event_source_set_time(b->next_piece, 0);

	return r < 0 ? r
		     : sd_event_source_set_enabled(b->next_piece,
						   SD_EVENT_ONESHOT);
}

void bus_samples_taken(struct bus *b)
{
	struct bus_waiter **end = &b->due_waiters;

	if (!b->waiters ||
	    !sampler_is_fresh(b->watcher, machine_now_usec(b->machine)) ||
	    bus_arm_pieces(b) < 0)
		return;
	while (*end)
		end = &(*end)->next;
	*end = b->waiters;
	b->waiters = NULL;
}

bool bus_answer_waiter(struct bus *b)
{
	_cleanup_(sd_bus_error_free) sd_bus_error error = SD_BUS_ERROR_NULL;
	struct bus_waiter *w = b->due_waiters;
	uint64_t began = cpu_usec();
	uid_t uid;
	int r;

	if (!w)
		return false;
	b->due_waiters = w->next;
	uid = w->kept.uid;
	bus_remember_caller(b, w->call, uid);
	/* The method may keep it again. */
	bus_release_call(b, &w->kept);
	r = w->method(b, w->call, &error);
	if (r < 0)
		sd_bus_reply_method_errno(w->call, r, &error);
	bus_charge(b, uid, cpu_usec() - began);
	sd_bus_message_unref(w->call);
	free(w);
	if (!b->due_waiters)
		b->ops->samples_read(b->userdata);
	return true;
}

static void drop(struct bus_waiter **list)
{
	struct bus_waiter *w;

	while ((w = *list)) {
		*list = w->next;
		sd_bus_message_unref(w->call);
		free(w);
	}
}

void bus_drop_waiters(struct bus *b)
{
	drop(&b->waiters);
	drop(&b->due_waiters);
}
