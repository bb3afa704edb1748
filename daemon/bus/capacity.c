/* SPDX-License-Identifier: LGPL-2.1-or-later */

/*
 * Declared capacities: ListCapacities, and the admission of what SetPolicy sets.
 *
 * Admission looks at the change only: a setting that takes less than the one before, or takes
 * from a device with room, is never refused.
 */

#include "bus/bus.h"
#include "bus/capacity.h"
#include "bus/method.h"
#include "control/promised.h"

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

static int judge(const struct bus *b, const char *unit,
		 const struct promised *before, const struct promised *after,
		 enum promise_key k, sd_bus_error *error)
{
	const struct capacity *c = after->capacity;
	_cleanup_free_ char *all = value_format_size(c->rate[k]);
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
	log_warning("%s: %s: %s can promise %s, and %s are promised now.", unit,
		    key, c->path, all, would);
	return 0;
}

static int admit(const struct bus *b, const char *unit,
		 const struct promises *proposed, sd_bus_error *error)
{
	const struct capacities *l = &b->conf->capacities;
	_cleanup_free_ struct promised *before = NULL, *after = NULL;
	const struct admission_base base = base_of(b);
	int r;

	r = promised_sum(&base, l, NULL, NULL, &before);
	if (r >= 0)
		r = promised_sum(&base, l, unit, proposed, &after);
	for (size_t i = 0; i < l->n && r >= 0; i++)
		for (enum promise_key k = 0; k < CAPACITY_KEYS && r >= 0; k++)
			if (l->items[i].rate[k] &&
			    after[i].rate[k] > l->items[i].rate[k] &&
			    after[i].rate[k] > before[i].rate[k])
				r = judge(b, unit, &before[i], &after[i], k,
					  error);
	return r;
}

int bus_admit(const struct bus *b, const char *unit,
	      const struct assignment *assignments, size_t n,
	      sd_bus_error *error)
{
	_cleanup_free_ char *sentence = NULL;
	struct stated stated = {};
	int r;

	if (!b->conf->capacities.n)
		return 0;
	r = clients_state(b->clients, b->policies, unit, &stated);
	if (r < 0)
		return r;
	r = promises_assign(&stated.in_force, assignments, n, "", &sentence);
	/* A mistake is reported with the file by the method itself. */
	if (r >= 0)
		r = admit(b, unit, &stated.in_force, error);
	else if (r == -EINVAL)
		r = 0;
	stated_done(&stated);
	return r;
}

/* ---- ListCapacities ---- */

static int append(sd_bus_message *r, const struct promised *p,
		  enum promise_key k)
{
	uint64_t all = p->capacity->rate[k], promised = p->rate[k];

	return sd_bus_message_append(
		r, "a{sv}", 6, "path", "s", p->capacity->path, "device", "s",
		p->device ? p->device->node : "", "key", "s",
		promise_info(k)->name, "capacity", "t", all, "promised", "t",
		promised, "left", "t", promised < all ? all - promised : 0);
}

int method_list_capacities(sd_bus_message *call, void *userdata,
			   sd_bus_error *error)
{
	_cleanup_(sd_bus_message_unrefp) sd_bus_message *reply = NULL;
	_cleanup_free_ struct promised *sums = NULL;
	const struct bus *b = userdata;
	const struct admission_base base = base_of(b);
	int r;

	r = promised_sum(&base, &b->conf->capacities, NULL, NULL, &sums);
	if (r >= 0)
		r = sd_bus_message_new_method_return(call, &reply);
	if (r >= 0)
		r = sd_bus_message_open_container(reply, 'a', "a{sv}");
	for (size_t i = 0; i < b->conf->capacities.n && r >= 0; i++)
		for (enum promise_key k = 0; k < CAPACITY_KEYS && r >= 0; k++)
			if (sums[i].capacity->rate[k])
				r = append(reply, &sums[i], k);
	if (r >= 0)
		r = sd_bus_message_close_container(reply);
	return bus_send(reply, r);
}
