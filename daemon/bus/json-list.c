/* SPDX-License-Identifier: LGPL-2.1-or-later */

/*
 * Lists of the bus as JSON, in pieces.
 *
 * The function that appends entries for a call on the bus appends those of a piece to a message that
 * is never sent. The message becomes JSON after each piece.
 */

#include "bus/json-list.h"

static int open_message(struct json_list *l)
{
	struct bus *b = l->pieces.bus;

	return sd_bus_message_new_signal(b->connection, &l->pieces.m, BUS_PATH,
					 BUS_INTERFACE, "List");
}

static int read_message(struct json_list *l, sd_json_variant **ret)
{
	sd_bus_message *m = l->pieces.m;
	int r = sd_bus_message_seal(m, 1, 0);

	if (r >= 0)
		r = sd_bus_message_rewind(m, true);
	if (r >= 0)
		r = bus_message_to_json(m, ret);
	l->pieces.m = sd_bus_message_unref(m);
	return r;
}

static int keep(struct json_list *l, sd_json_variant *entries)
{
	int r = 0;

	for (size_t i = 0; i < sd_json_variant_elements(entries) && r >= 0; i++)
		r = json_values_add(
			&l->kept, sd_json_variant_ref(sd_json_variant_by_index(
					  entries, i)));
	return r;
}

static int on_piece(struct bus_pieces *p)
{
	_cleanup_(sd_json_variant_unrefp) sd_json_variant *entries = NULL;
	struct json_list *l = (struct json_list *)p;
	int r = sd_bus_message_close_container(p->m);

	if (r >= 0)
		r = read_message(l, &entries);
	if (r >= 0)
		r = l->part ? l->part(l, entries) : keep(l, entries);
	if (r >= 0)
		r = open_message(l);
	return r < 0 ? r : sd_bus_message_open_container(p->m, 'a', "a{sv}");
}

static void on_end(struct bus_pieces *p, int r)
{
	_cleanup_(sd_json_variant_unrefp) sd_json_variant *entries = NULL;
	struct json_list *l = (struct json_list *)p;

	p->m = sd_bus_message_unref(p->m);
	if (r >= 0)
		r = sd_json_variant_new_array(&entries, l->kept.items,
					      l->kept.n);
	json_values_done(&l->kept);
	l->end(l, r, entries);
}

static void make_all(struct json_list *l)
{
	_cleanup_(sd_json_variant_unrefp) sd_json_variant *entries = NULL;
	uint64_t began = l->pieces.is_unpaid ? cpu_usec() : 0;
	int r = l->append_all(l->pieces.bus, l->pieces.m);

	if (r >= 0)
		r = read_message(l, &entries);
	l->pieces.m = sd_bus_message_unref(l->pieces.m);
	if (l->pieces.is_unpaid)
		l->pieces.usec = cpu_usec() - began;
	l->end(l, r, entries);
}

void json_list_begin(struct json_list *l)
{
	int r = open_message(l);

	l->pieces.piece = on_piece;
	l->pieces.end = on_end;
	if (r >= 0 && l->append_all)
		return make_all(l);
	if (r >= 0)
		r = sd_bus_message_open_container(l->pieces.m, 'a', "a{sv}");
	if (r >= 0)
		bus_pieces_begin(&l->pieces);
	else
		on_end(&l->pieces, r);
}
