/* SPDX-License-Identifier: LGPL-2.1-or-later */

/*
 * Lists with entries for all cgroups.
 *
 * An entry takes up to 30 us, and users can make any number of cgroups. So the loop makes a list in
 * pieces: it looks at what is ready after PIECE_ENTRIES, and writes setpoints first. With 1,000 floors
 * in the reply to ListPromises:
 *
 *	the call	32 entries; the call is kept
 *	30 pieces	32 entries each, in turn with other calls
 *	the last one	the reply is sent
 *
 * A short list has one piece, and its reply is sent at once. The lists of several calls are made one
 * after the other, so that the entries of one are as close in time as they can be. Cgroups and
 * settings may change between two pieces: a list has no state that was there at one moment, and no
 * entry twice. Entries about samples are those of one sample: the next one waits for the end of the
 * list.
 */

#include "bus/pieces.h"
#include "bus/quota.h"
#include "bus/wait.h"

#define PIECE_ENTRIES 32

/** struct bus_list - of a call on the bus */
struct bus_list {
	struct bus_pieces pieces;
	sd_bus_message *call;
	struct kept kept;
	bool is_kept;
};

static int make_piece(struct bus_pieces *p)
{
	uint64_t began = p->is_unpaid ? cpu_usec() : 0;
	unsigned int n_cgroups = 0;
	int n = 0, r = 0;

	while (n < PIECE_ENTRIES && n_cgroups++ < CGROUP_BATCH &&
	       cgroup_cursor_goes_on(&p->cursor) && r >= 0) {
		r = p->append(p->bus, p->m, cgroup_cursor_next(&p->cursor));
		n += r;
	}
	if (r >= 0 && p->piece)
		r = p->piece(p);
	if (p->is_unpaid)
		p->usec += cpu_usec() - began;
	return r;
}

static void stop(struct bus_pieces *p, int r)
{
	cgroup_cursor_end(&p->cursor);
	TAILQ_REMOVE(&p->bus->pieces, p, waiting);
	if (p->reads_samples && r != -ECANCELED)
		p->bus->ops->samples_read(p->bus->userdata);
	p->end(p, r);
}

/* Make a piece. Return: are there others? If not, @p has ended. */
static bool go_on(struct bus_pieces *p)
{
	int r = make_piece(p);

	if (r >= 0 && cgroup_cursor_goes_on(&p->cursor))
		return true;
	stop(p, r < 0 ? r : 0);
	return false;
}

static int on_next_piece(sd_event_source *s, uint64_t usec, void *userdata)
{
	struct bus *b = userdata;
	struct bus_pieces *p = TAILQ_FIRST(&b->pieces);
	uint64_t began;
	bool is_unpaid;
	uid_t uid;

	if (bus_answer_waiter(b))
		return bus_arm_pieces(b);
	if (!p)
		return 0;
	began = cpu_usec();
	is_unpaid = p->is_unpaid;
	uid = p->uid;
	go_on(p);
	if (!is_unpaid)
		bus_charge(b, uid, cpu_usec() - began);
	return TAILQ_EMPTY(&b->pieces) ? 0 : bus_arm_pieces(b);
}

bool bus_pieces_begin(struct bus_pieces *p)
{
	struct bus *b = p->bus;
	int r;

	cgroup_cursor_begin(&p->cursor, cgroup_tree_root(b->machine->tree));
	TAILQ_INSERT_TAIL(&b->pieces, p, waiting);
	if (!go_on(p))
		return false;
	r = bus_arm_pieces(b);
	if (r < 0)
		stop(p, r);
	return r >= 0;
}

bool bus_reads_samples(const struct bus *b)
{
	const struct bus_pieces *p;

	if (b->due_waiters)
		return true;
	TAILQ_FOREACH(p, &b->pieces, waiting)
		if (p->reads_samples)
			return true;
	return false;
}

void bus_pieces_drop(struct bus_pieces *p)
{
	stop(p, -ECANCELED);
}

void bus_drop_pieces(struct bus *b)
{
	while (!TAILQ_EMPTY(&b->pieces))
		stop(TAILQ_FIRST(&b->pieces), -ECANCELED);
	b->next_piece = sd_event_source_disable_unref(b->next_piece);
}

/* A timer that is always due, as for other walks: see add_batches() in manager.c. */
int bus_open_pieces(struct bus *b)
{
	int r = sd_event_add_time(b->machine->event, &b->next_piece,
				  CLOCK_MONOTONIC, 0, 0, on_next_piece, b);

	TAILQ_INIT(&b->pieces);
	if (r >= 0)
		r = sd_event_source_set_enabled(b->next_piece, SD_EVENT_OFF);
	return r < 0 ? r
		     : sd_event_source_set_priority(b->next_piece,
						    MACHINE_PRIORITY_CALLS);
}

static void free_list(struct bus_list *l)
{
	if (l->is_kept)
		bus_release_call(l->pieces.bus, &l->kept);
	sd_bus_message_unref(l->pieces.m);
	sd_bus_message_unref(l->call);
	free(l);
}

static void on_end(struct bus_pieces *p, int r)
{
	struct bus_list *l = (struct bus_list *)p;

	if (r >= 0)
		r = sd_bus_message_close_container(p->m);
	if (r >= 0)
		r = sd_bus_message_send(p->m);
	if (r < 0 && r != -ECANCELED)
		sd_bus_reply_method_errno(l->call, r, NULL);
	free_list(l);
}

/* A call is kept only if its list has several pieces: a user has a limited number of kept calls. */
int bus_reply_in_pieces(struct bus *b, sd_bus_message *call,
			const struct bus_list_kind *kind, sd_bus_error *error)
{
	struct bus_list *l = calloc(1, sizeof(*l));
	int r;

	if (!l)
		return -ENOMEM;
	*l = (struct bus_list){ .pieces = { .bus = b,
					    .append = kind->append,
					    .end = on_end,
					    .reads_samples =
						    kind->reads_samples },
				.call = sd_bus_message_ref(call) };
	r = sd_bus_message_new_method_return(call, &l->pieces.m);
	if (r >= 0)
		r = sd_bus_message_open_container(l->pieces.m, 'a', kind->type);
	if (r < 0) {
		free_list(l);
		return r;
	}
	if (!bus_pieces_begin(&l->pieces))
		return 1;
	r = bus_keep_call(b, call, &l->kept, error);
	l->pieces.uid = l->kept.uid;
	if (r < 0)
		bus_pieces_drop(&l->pieces);
	else
		l->is_kept = true;
	return r < 0 ? r : 1;
}
