/* SPDX-License-Identifier: LGPL-2.1-or-later */
#ifndef SUTRO_JSON_LIST_H
#define SUTRO_JSON_LIST_H

#include "bus/json.h"
#include "bus/pieces.h"

/**
 * struct json_list - a list of the bus, of type aa{sv}, that is made as JSON
 * @pieces: with the bus, the user that pays, and the function that appends the entries of a cgroup
 * @append_all: appends all entries at once instead; NULL: in pieces
 * @part: takes the entries of a piece; NULL: they are kept for @end
 * @end: is called once, with the array; frees
 * @kept: the entries so far
 */
struct json_list {
	struct bus_pieces pieces;
	int (*append_all)(struct bus *b, sd_bus_message *m);
	int (*part)(struct json_list *l, sd_json_variant *entries);
	void (*end)(struct json_list *l, int r, sd_json_variant *entries);
	struct json_values kept;
};

/** json_list_begin() - make a piece now and the others later, see bus_pieces_begin() */
void json_list_begin(struct json_list *l);

#endif
