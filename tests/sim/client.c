// SPDX-License-Identifier: GPL-2.0-only
/*
 * Clients: the readers and writers of a simulation.
 *
 * A client keeps iodepth requests in flight.  It sends the next one some time after one of them,
 * or a whole burst, has completed.  A request is split into one piece for each leaf that it
 * touches, and completes with its last piece.  A client that gets no request slot sleeps, and
 * sends nothing else meanwhile.
 */
#include "client.h"

#include <assert.h>
#include <math.h>
#include <stdlib.h>

#include <linux/minmax.h>

#include "random.h"

/* A task that waits for others looks again after this time, as balance_dirty_pages() does. */
#define AWAIT_NS (4 * NSEC_PER_MSEC)
/* Time from an interrupt until the program that waited for it has sent its next request. */
#define WAKEUP_NS (10 * NSEC_PER_USEC)

/**
 * struct whole - a client's request
 * @sent_ns:	when it was sent
 * @bytes:	bytes that have not completed; while it flushes, the number of leaves that have not
 * @flushes:	all leaves are flushed when the bytes have completed
 */
struct whole {
	u64 sent_ns;
	u32 bytes;
	bool flushes;
};

static void client_next(struct client *client)
{
	const struct job *job = client->job;
	u64 slots = client->region_bytes / job->bytes;

	if (job->random)
		client->next_byte =
			client->first_byte +
			random_below(&client->random, slots) * job->bytes;
	else if (client->next_byte + job->bytes >
		 client->first_byte + client->region_bytes)
		client->next_byte = client->first_byte;

	client->split_op = job->op;
	if (job->mixed)
		client->split_op =
			random_below(&client->random, 100) + job->mixed >= 100
				? SUTRO_READ
				: SUTRO_WRITE;
	client->split = malloc(sizeof(*client->split));
	assert(client->split);
	*client->split = (struct whole){
		.sent_ns = client->clock->now_ns,
		.bytes = job->bytes *
			 volume_copies(client->volume, client->split_op),
		.flushes = job->flush && client->split_op == SUTRO_WRITE,
	};
	client->split_byte = client->next_byte;
	client->split_next = 0;
	client->next_byte += job->bytes;
	client->outstanding++;
	client->sent++;
}

static void client_wakeup(void *context, u64 now_ns);

static void client_slot(void *context)
{
	struct client *client = context;

	clock_at(client->clock, client->clock->now_ns + WAKEUP_NS,
		 client_wakeup, client);
}

/* Send the pieces of the request at hand; false if a slot must be waited for. */
static bool client_send(struct client *client)
{
	const struct job *job = client->job;
	u64 first = client->split_byte, last = first + job->bytes;
	struct extent extent;

	while (volume_extent(client->volume, client->split_op, first, last,
			     client->split_next, &extent)) {
		u32 i = extent.leaf;
		struct leaf *leaf = client->volume->leaf[i];
		struct piece piece = {
			.client = client,
			.whole = client->split,
			.bytes = extent.bytes,
			.submitted_ns = client->split->sent_ns,
		};

		if (!leaf_has_slot(leaf, client->group[i], !job->async)) {
			if (!client->asleep)
				leaf_wait_slot(leaf, client->group[i],
					       !job->async, client_slot,
					       client);
			client->asleep = leaf;
			client->asleep_as = client->group[i];
			return false;
		}
		leaf_insert(leaf, client->group[i], client->split_op,
			    !job->async, extent.byte >> MDISK_SECTOR_SHIFT,
			    &piece);
		client->split_next++;
	}
	client->split = NULL;
	return true;
}

/* Does the client send one more request now? */
static bool client_sends(const struct client *client)
{
	const struct job *job = client->job;
	u64 now_ns = client->clock->now_ns;

	return client->outstanding < job->iodepth &&
	       (job->burst == 1 || client->sent < job->burst) &&
	       (!job->stop_ns || now_ns < client->begin_ns + job->stop_ns);
}

static void client_fill(struct client *client)
{
	u32 i;

	while (client->split || client_sends(client)) {
		if (!client->split)
			client_next(client);
		if (!client_send(client))
			break;
	}
	for (i = 0; i < client->volume->nr; i++)
		leaf_run(client->volume->leaf[i]);
}

static void client_begin(void *context, u64 now_ns)
{
	struct client *client = context;

	if (*client->all_bytes && *client->all_bytes < client->awaits_bytes) {
		clock_at(client->clock, now_ns + AWAIT_NS, client_begin,
			 client);
		return;
	}
	client->awaits_bytes = *client->all_bytes + client->job->await_bytes;
	client->sent = 0;
	client_fill(client);
}

static void client_wakeup(void *context, u64 now_ns)
{
	struct client *client = context;

	leaf_end_wait(client->asleep, client->asleep_as, !client->job->async);
	client->asleep = NULL;
	client_fill(client);
}

static u64 client_think_ns(struct client *client)
{
	const struct job *job = client->job;
	double even;

	if (!job->poisson)
		return job->think_ns;
	even = (random_below(&client->random, 1 << 30) + 1.0) / (1 << 30);
	return -log(even) * job->think_ns;
}

static void client_thought(void *context, u64 now_ns)
{
	struct client *client = context;
	const struct job *job = client->job;

	client->outstanding--;
	if (client->split)
		return;
	if (job->burst > 1 && client->sent == job->burst &&
	    !client->outstanding)
		clock_at(client->clock, now_ns + client_think_ns(client),
			 client_begin, client);
	else
		client_fill(client);
}

/* The data of a request are written: flush all leaves. */
static void client_flush(struct client *client, struct whole *request)
{
	struct piece piece = {
		.client = client,
		.whole = request,
		.bytes = 1,
		.submitted_ns = request->sent_ns,
	};
	u32 i;

	request->flushes = false;
	request->bytes = client->volume->nr;
	for (i = 0; i < client->volume->nr; i++)
		leaf_flush(client->volume->leaf[i], client->group[i], &piece);
}

/* A piece of a client's request is done. */
void client_done(void *context, void *whole, u32 bytes)
{
	struct client *client = context;
	struct whole *request = whole;
	u64 latency_ns = client->clock->now_ns - request->sent_ns;
	u64 think_ns = 0;

	request->bytes -= bytes;
	if (request->bytes)
		return;
	if (request->flushes) {
		client_flush(client, request);
		return;
	}
	free(request);
	client->done_bytes += client->job->bytes;
	client->done_ios++;
	if (!client->job->await_bytes)
		*client->all_bytes += client->job->bytes;
	client->done_late += client->job->late_ns &&
			     latency_ns > client->job->late_ns;
	histogram_add(&client->latency, latency_ns);
	if (client->job->burst == 1)
		think_ns = client_think_ns(client);
	clock_at(client->clock, client->clock->now_ns + WAKEUP_NS + think_ns,
		 client_thought, client);
}

void client_start(struct client *client)
{
	client->next_byte = client->first_byte;
	client->begin_ns = client->clock->now_ns;
	clock_at(client->clock, client->clock->now_ns + client->job->start_ns,
		 client_begin, client);
}
