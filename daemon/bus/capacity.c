/* SPDX-License-Identifier: LGPL-2.1-or-later */

/*
 * Declared capacities: ListCapacities, and the admission of the settings of SetPolicy.
 *
 * Admission looks at the change only: a setting that takes less than the one before, or takes
 * from a device with room, is never refused.
 *
 * A child process writes the file of a setting, and a second call may come meanwhile. The promises
 * of a setting under way are reserved: they count as if they were in force, and so do those that
 * it lowers, because its write may fail. For the same reason, capacities that the setting exceeds are
 * logged when it is in force.
 */

#include <sys/queue.h>

#include "bus/bus.h"
#include "bus/capacity.h"
#include "bus/method.h"
#include "control/promised.h"
#include "host/event.h"

/** struct excess - a capacity that a setting exceeds; @path: of the capacity, @text: for the log */
struct excess {
	enum promise_key key;
	char *path;
	char *text;
	LIST_ENTRY(excess) list;
};

LIST_HEAD(excesses, excess);

/**
 * struct reservation
 * @promises: the larger ones of those in force and those that are being set
 * @hidden: of struct stated
 * @excesses: with Admission=warn
 */
struct reservation {
	char *unit;
	struct promises promises;
	struct promises hidden;
	struct excesses excesses;
	LIST_ENTRY(reservation) list;
};

static struct admission_base base_of(const struct bus *b)
{
	return (struct admission_base){
		.machine = b->machine,
		.policies = b->policies,
		.clients = b->clients,
		.plant = &b->governor->plant,
		.actuator = b->actuator,
	};
}

/* ---- SetPolicy ---- */

static void excesses_free(struct excesses *l)
{
	while (!LIST_EMPTY(l)) {
		struct excess *e = LIST_FIRST(l);

		LIST_REMOVE(e, list);
		free(e->path);
		free(e->text);
		free(e);
	}
}

/* Takes over @text; NULL: no memory. */
static int excesses_add(struct excesses *l, enum promise_key k,
			const char *path, char *text)
{
	struct excess *e = calloc(1, sizeof(*e));

	if (e)
		*e = (struct excess){ .key = k,
				      .path = strdup(path),
				      .text = text };
	else
		free(text);
	if (e)
		LIST_INSERT_HEAD(l, e, list);
	return e && e->path && e->text ? 0 : -ENOMEM;
}

static int judge(const struct bus *b, const char *unit,
		 const struct promised *before, const struct promised *after,
		 enum promise_key k, struct excesses *excesses,
		 sd_bus_error *error)
{
	const struct capacity *c = after->capacity;
	_cleanup_free_ char *all = value_format_size(after->declared[k]);
	_cleanup_free_ char *was = value_format_size(before->rate[k]);
	_cleanup_free_ char *would = value_format_size(after->rate[k]);
	const char *key = promise_info(k)->name;

	if (!all || !was || !would)
		return -ENOMEM;
	if (b->conf->refuse)
		return bus_error(
			error, ERROR_OVERCOMMITTED,
			"%s: %s: %s can promise %s, of which %s are promised; "
			"with this setting it would be %s. Lower a floor, or "
			"set Admission=warn in sutrod.conf.",
			unit, key, c->path, all, was, would);
	return excesses_add(
		excesses, k, c->path,
		asprintf_or_null(
			"%s: %s: %s can promise %s, and %s are promised now.",
			unit, key, c->path, all, would));
}

/* List the unused entry first, then all reservations, the latest one of a unit first. */
static struct proposed *list_reserved(const struct bus *b, size_t *ret_n)
{
	const struct reservation *r;
	struct proposed *l;
	size_t n = 1;

	LIST_FOREACH(r, &b->reservations, list)
		n++;
	l = calloc(n, sizeof(*l));
	*ret_n = n;
	n = 1;
	LIST_FOREACH(r, &b->reservations, list)
		if (l)
			l[n++] = (struct proposed){ r->unit, &r->promises,
						    &r->hidden };
	return l;
}

static int admit(const struct bus *b, const struct proposed *proposed,
		 struct excesses *excesses, sd_bus_error *error)
{
	const struct capacities *l = &b->conf->capacities;
	_cleanup_free_ struct promised *before = NULL, *after = NULL;
	const struct admission_base base = base_of(b);
	size_t n;
	_cleanup_free_ struct proposed *all = list_reserved(b, &n);
	int r;

	if (!all)
		return -ENOMEM;
	all[0] = *proposed;
	r = promised_sum(&base, l, all + 1, n - 1, &before);
	if (r >= 0)
		r = promised_sum(&base, l, all, n, &after);
	for (size_t i = 0; i < l->n && r >= 0; i++)
		for (enum promise_key k = 0; k < CAPACITY_KEYS && r >= 0; k++)
			if (after[i].declared[k] &&
			    after[i].rate[k] > after[i].declared[k] &&
			    after[i].rate[k] > before[i].rate[k])
				r = judge(b, proposed->unit, &before[i],
					  &after[i], k, excesses, error);
	return r;
}

static int add_all(struct promises *l, const struct promises *more)
{
	int err = 0;

	for (size_t i = 0; i < more->n && !err; i++)
		err = promises_add(l, &more->items[i]);
	return err;
}

/* The settings of @unit: those of its last reservation, else those in force. */
static int find_stated(const struct bus *b, const char *unit,
		       struct stated *ret)
{
	const struct reservation *reserved;

	LIST_FOREACH(reserved, &b->reservations, list)
		if (streq(reserved->unit, unit))
			return add_all(&ret->in_force, &reserved->promises)
				       ?: add_all(&ret->hidden,
						  &reserved->hidden);
	return clients_state(b->clients, b->policies, unit, ret);
}

/* A floor in percent and a rate cannot be compared: the present one stays. */
static int keep_larger(struct promises *l, const struct promises *present)
{
	int err = 0;

	for (size_t i = 0; i < present->n && !err; i++) {
		const struct promise *p = &present->items[i];
		const struct promise *now = promises_find(l, p->key, p->path);

		if (!now || now->value < p->value || now->part < p->part)
			err = promises_apply(l, p, NULL);
	}
	return err;
}

/* Uses up @promises, the hidden ones of @present, and @excesses. */
static int reserve(struct bus *b, const char *unit, struct promises *promises,
		   struct stated *present, struct excesses *excesses,
		   struct reservation **ret)
{
	struct reservation *r = calloc(1, sizeof(*r));
	int err = r ? keep_larger(promises, &present->in_force) : -ENOMEM;

	if (!err) {
		r->unit = strdup(unit);
		err = r->unit ? 0 : -ENOMEM;
	}
	if (err) {
		free(r);
		return err;
	}
	r->promises = *promises;
	*promises = (struct promises){};
	r->hidden = present->hidden;
	present->hidden = (struct promises){};
	while (!LIST_EMPTY(excesses)) {
		struct excess *e = LIST_FIRST(excesses);

		LIST_REMOVE(e, list);
		LIST_INSERT_HEAD(&r->excesses, e, list);
	}
	LIST_INSERT_HEAD(&b->reservations, r, list);
	*ret = r;
	return 0;
}

void capacity_in_force(struct bus *b, const struct reservation *r)
{
	struct capacities *l = &b->conf->capacities;
	const struct excess *e;

	if (!r)
		return;
	LIST_FOREACH(e, &r->excesses, list) {
		for (size_t i = 0; i < l->n; i++)
			if (streq(l->items[i].path, e->path))
				l->items[i].exceeded[e->key] = true;
		log_event(EVENT_CAPACITY_EXCEEDED, LOG_WARNING,
			  EVENT_FIELDS({ "SUTRO_UNIT", r->unit },
				       { "SUTRO_DEVICE", e->path }),
			  "%s", e->text);
	}
}

void capacity_release(struct reservation *r)
{
	if (!r)
		return;
	LIST_REMOVE(r, list);
	promises_done(&r->promises);
	promises_done(&r->hidden);
	excesses_free(&r->excesses);
	free(r->unit);
	free(r);
}

static bool is_in(const struct promises *l, const struct promise *p)
{
	const struct promise *same = promises_find(l, p->key, p->path);

	return same && same->value == p->value && same->part == p->part;
}

/* A path whose lookup did not end in time leads to an unknown device, with unknown room. */
static int check_paths(const struct bus *b, const struct promises *present,
		       const struct promises *l, sd_bus_error *error)
{
	struct lookups *lookups = b->machine->lookups;
	struct device *d;

	for (size_t i = 0; i < l->n; i++) {
		const struct promise *p = &l->items[i];

		if (p->key >= CAPACITY_KEYS || promise_is_any(p) ||
		    is_in(present, p))
			continue;
		if (lookups_find(lookups, b->machine->topology, p->path, &d) ==
			    -ETIMEDOUT ||
		    !lookups_is_known(lookups, p->path))
			return bus_error(
				error, SD_BUS_ERROR_TIMEOUT,
				"%s: the path could not be looked up. "
				"Does its file server answer? \"systemctl "
				"reload sutrod\" looks it up again.",
				p->path);
	}
	return 0;
}

int bus_admit(struct bus *b, const char *unit,
	      const struct assignment *assignments, size_t n,
	      struct reservation **ret, sd_bus_error *error)
{
	_cleanup_free_ char *sentence = NULL;
	struct promises promises = {};
	struct excesses excesses = {};
	struct stated present = {};
	int r;

	*ret = NULL;
	if (!b->conf->capacities.n)
		return 0;
	r = find_stated(b, unit, &present);
	if (r >= 0)
		r = add_all(&promises, &present.in_force);
	if (r >= 0)
		r = promises_assign(&promises, assignments, n, "", &sentence);
	if (r >= 0)
		r = check_paths(b, &present.in_force, &promises, error);
	if (r >= 0)
		r = admit(b,
			  &(struct proposed){ unit, &promises,
					      &present.hidden },
			  &excesses, error);
	if (r >= 0)
		r = reserve(b, unit, &promises, &present, &excesses, ret);
	/* The method itself reports a mistake, with the file. */
	else if (r == -EINVAL && !sd_bus_error_is_set(error))
		r = 0;
	excesses_free(&excesses);
	promises_done(&promises);
	stated_done(&present);
	return r;
}

/* ---- ListCapacities ---- */

static int append(sd_bus_message *r, const struct promised *p,
		  enum promise_key k)
{
	uint64_t all = p->declared[k], promised = p->rate[k];

	return sd_bus_message_append(
		r, "a{sv}", 6, "path", "s", p->capacity->path, "device", "s",
		p->device ? p->device->node : "", "key", "s",
		promise_info(k)->name, "capacity", "t", all, "promised", "t",
		promised, "left", "t", promised < all ? all - promised : 0);
}

int bus_append_capacities(struct bus *b, sd_bus_message *m)
{
	const struct capacities *l = &b->conf->capacities;
	_cleanup_free_ struct promised *sums = NULL;
	const struct admission_base base = base_of(b);
	int r;

	r = promised_sum(&base, l, NULL, 0, &sums);
	if (r >= 0)
		r = sd_bus_message_open_container(m, 'a', "a{sv}");
	for (size_t i = 0; i < l->n && r >= 0; i++)
		for (enum promise_key k = 0; k < CAPACITY_KEYS && r >= 0; k++)
			if (sums[i].declared[k])
				r = append(m, &sums[i], k);
	return r < 0 ? r : sd_bus_message_close_container(m);
}

int method_list_capacities(sd_bus_message *call, void *userdata,
			   sd_bus_error *error)
{
	_cleanup_(sd_bus_message_unrefp) sd_bus_message *reply = NULL;
	int r = sd_bus_message_new_method_return(call, &reply);

	if (r >= 0)
		r = bus_append_capacities(userdata, reply);
	return bus_send(reply, r);
}
