/* SPDX-License-Identifier: LGPL-2.1-or-later */
#ifndef SUTRO_PIECES_H
#define SUTRO_PIECES_H

#include "bus/bus.h"

/** bus_append_t - append what a list has about @c. Return: the number of entries, or -errno */
typedef int (*bus_append_t)(struct bus *b, sd_bus_message *m,
			    const struct cgroup *c);

/**
 * struct bus_pieces - a list that the loop makes some cgroups at a time
 * @m: the open array that entries are appended to
 * @append: of the list
 * @piece: is called after each piece; NULL: nothing is to be done
 * @end: is called once, with -ECANCELED if the daemon stops, -errno for a failure, or 0; frees
 * @uid: the user that pays for the pieces
 * @reads_samples: no other sample begins meanwhile
 * @is_unpaid: no user does; @end may let one pay for @usec, the CPU time of all of them
 * @cursor, @waiting: of the walk
 */
struct bus_pieces {
	struct bus *bus;
	sd_bus_message *m;
	bus_append_t append;
	int (*piece)(struct bus_pieces *p);
	void (*end)(struct bus_pieces *p, int r);
	uid_t uid;
	bool reads_samples;
	bool is_unpaid;
	uint64_t usec;
	struct cgroup_cursor cursor;
	TAILQ_ENTRY(bus_pieces) waiting;
};

/**
 * bus_pieces_begin() - make a piece of @p now, and the others later
 *
 * The call that needs the list pays for this piece.
 * Return: are there others? If not, @p has ended.
 */
bool bus_pieces_begin(struct bus_pieces *p);

/** bus_pieces_drop() - end @p, which has no reader any more, with -ECANCELED */
void bus_pieces_drop(struct bus_pieces *p);

/** bus_drop_pieces() - end all of them */
void bus_drop_pieces(struct bus *b);

/** bus_open_pieces() - prepare the loop. Return: 0 or -errno */
int bus_open_pieces(struct bus *b);

/** bus_reads_samples() - do calls or lists need the samples that are there? */
bool bus_reads_samples(const struct bus *b);

/**
 * struct bus_list_kind - a list that a method replies with
 * @type: of an entry
 * @append, @reads_samples: as in struct bus_pieces
 */
struct bus_list_kind {
	const char *type;
	bus_append_t append;
	bool reads_samples;
};

/** bus_reply_in_pieces() - the reply to @call is an array of @kind. Return: 1, or -errno */
int bus_reply_in_pieces(struct bus *b, sd_bus_message *call,
			const struct bus_list_kind *kind, sd_bus_error *error);

#endif
