/* SPDX-License-Identifier: LGPL-2.1-or-later */

/*
 * Promised parts of the declared capacity of devices.
 *
 * A floor counts on the device that its path leads to, not on those above or below. A floor in
 * percent is that part of the capacity. Counted are units that run, and units that do not run
 * yet for which a setting was made at run time: a scheduler of jobs sets the floor first.
 *
 * Of the floors of a unit on a device the largest one counts, since one stream serves all of them
 * (law.h). Those that a setting at run time hides count, too: they are in force when it ends, and
 * nothing is admitted then.
 *
 *	db has a floor of 300M in a file, and a client holds 50M for it: 300M are promised.
 *
 * A device has one capacity, by whichever path it is declared: of two declarations of one key the
 * later one holds. A scheduler of jobs would otherwise give the device away twice.
 *
 *	Device=/scratch read=400M
 *	Device=/dev/vg/scratch read=300M	mounted there: 300M, listed with this path
 */

#include "control/promised.h"
#include "host/event.h"
#include "host/path.h"
#include "policy/unit-cgroup.h"

/* ---- one unit ---- */

/* Raise the rates of a unit, in the order of @sums, to those of its floors. */
static void raise_rates(const struct promised *sums, size_t n,
			const struct promises *l,
			uint64_t (*rates)[CAPACITY_KEYS])
{
	for (size_t i = 0; i < l->n; i++) {
		const struct promise *p = &l->items[i];

		for (size_t s = 0; s < n && p->device; s++) {
			uint64_t rate;

			if (p->key >= CAPACITY_KEYS ||
			    p->device != sums[s].device)
				continue;
			rate = sums[s].declared[p->key];
			rate = p->part ? rate * p->part / PART_ALL : p->value;
			if (rate > rates[s][p->key])
				rates[s][p->key] = rate;
		}
	}
}

static int raise_to(const struct admission_base *base, const char *unit,
		    const struct cgroup *c, const struct promises *l,
		    const struct promised *sums, size_t n,
		    uint64_t (*rates)[CAPACITY_KEYS])
{
	struct policy policy = { .subject = strdup(unit) };
	int err = policy.subject ? 0 : -ENOMEM;

	for (size_t i = 0; i < l->n && !err; i++)
		err = promises_add(&policy.promises, &l->items[i]);
	if (!err)
		err = admission_find_devices(base, &policy, c);
	if (!err)
		raise_rates(sums, n, &policy.promises, rates);
	policy_done(&policy);
	return err;
}

/* @c: NULL for a unit that is not running. */
static int add_unit(const struct admission_base *base, const struct cgroup *c,
		    const struct proposed *unit, struct promised *sums,
		    size_t n)
{
	_cleanup_free_ uint64_t(*rates)[CAPACITY_KEYS] =
		calloc(n, sizeof(*rates));
	int err = rates ? 0 : -ENOMEM;

	if (!err)
		err = raise_to(base, unit->unit, c, unit->promises, sums, n,
			       rates);
	if (!err)
		err = raise_to(base, unit->unit, c, unit->hidden, sums, n,
			       rates);
	for (size_t i = 0; i < n && !err; i++)
		for (size_t k = 0; k < CAPACITY_KEYS; k++)
			sums[i].rate[k] += rates[i][k];
	return err;
}

static int add_stated(const struct admission_base *base, const char *unit,
		      const struct cgroup *c, struct promised *sums, size_t n)
{
	struct stated stated = {};
	int err = clients_state(base->clients, base->policies, unit, &stated);

	if (!err)
		err = add_unit(base, c,
			       &(struct proposed){ unit, &stated.in_force,
						   &stated.hidden },
			       sums, n);
	stated_done(&stated);
	return err;
}

/* ---- all units ---- */

static bool is_among(const struct proposed *l, size_t n, const char *unit)
{
	for (size_t i = 0; i < n; i++)
		if (streq(l[i].unit, unit))
			return true;
	return false;
}

/* A setting made at run time counts at once, and so does its removal. The policy of a
 * running unit has either only when systemd has answered: until then, a second setting
 * would find the same room, or none.
 */
static int add_units(const struct admission_base *base,
		     const struct proposed *but, size_t n_but,
		     struct promised *sums, size_t n)
{
	struct cgroup *root = cgroup_tree_root(base->machine->tree);
	_cleanup_strv_ char **names = NULL;
	int err;

	err = policies_controlled(base->policies, &names)
		      ?: clients_units(base->clients, &names);
	for (struct cgroup *c = root; c && !err; c = cgroup_next(root, c))
		if (c->origin != CGROUP_PENDING && c->policy->promises.n &&
		    !is_among(but, n_but, cgroup_subject(c)) &&
		    !strv_contains(names, cgroup_subject(c)))
			err = add_stated(base, cgroup_subject(c), c, sums, n);
	for (char **name = names; name && *name && !err; name++)
		if (!is_among(but, n_but, *name))
			err = add_stated(base, *name,
					 unit_find_cgroup(base->machine->tree,
							  *name),
					 sums, n);
	return err;
}

/* The last of @n declarations for the device of @sum that has this key. */
static const struct promised *last_for(const struct promised *sum, size_t n,
				       enum promise_key k)
{
	const struct promised *last = sum;

	for (size_t i = 0; i < n && sum->device; i++)
		if (sum[i].device == sum->device && sum[i].capacity->rate[k])
			last = &sum[i];
	return last;
}

/* The declared capacities and their devices, without a sum; NULL: no memory. */
static struct promised *find_declared(const struct machine *m,
				      const struct capacities *l)
{
	struct promised *sums = calloc(l->n + 1, sizeof(*sums));

	for (size_t i = 0; i < l->n && sums; i++) {
		struct device *d = NULL;

		sums[i].capacity = &l->items[i];
		if (!topology_resolve_literal(m->topology, &m->roots,
					      l->items[i].path, &d))
			sums[i].device = d;
	}
	for (size_t i = 0; i < l->n && sums; i++)
		for (enum promise_key k = 0; k < CAPACITY_KEYS; k++)
			if (last_for(&sums[i], l->n - i, k) == &sums[i])
				sums[i].declared[k] = l->items[i].rate[k];
	return sums;
}

void promised_warn(const struct machine *m, struct capacities *l)
{
	_cleanup_free_ struct promised *sums = find_declared(m, l);

	for (size_t i = 0; i < l->n && sums; i++)
		for (enum promise_key k = 0; k < CAPACITY_KEYS; k++) {
			struct capacity *c = &l->items[i];

			if (!c->rate[k] || sums[i].declared[k] || c->warned[k])
				continue;
			c->warned[k] = true;
			log_event(
				EVENT_CAPACITY_TWICE, LOG_WARNING,
				EVENT_FIELDS({ "SUTRO_DEVICE", c->path }),
				"%s of Device=%s in sutrod.conf does not "
				"hold: Device=%s is the same device, and is "
				"declared later. Remove one of them.",
				promise_info(k)->name, c->path,
				last_for(&sums[i], l->n - i, k)->capacity->path);
		}
}

int promised_sum(const struct admission_base *base, const struct capacities *l,
		 const struct proposed *proposed, size_t n,
		 struct promised **ret)
{
	_cleanup_free_ struct promised *sums = find_declared(base->machine, l);
	int err;

	if (!sums)
		return -ENOMEM;
	err = l->n ? add_units(base, proposed, n, sums, l->n) : 0;
	for (size_t i = 0; i < n && l->n && !err; i++)
		if (!is_among(proposed, i, proposed[i].unit))
			err = add_unit(base,
				       unit_find_cgroup(base->machine->tree,
							proposed[i].unit),
				       &proposed[i], sums, l->n);
	if (!err)
		*ret = TAKE_PTR(sums);
	return err;
}

/* ---- reports ---- */

static int report(const struct promised *sum, enum promise_key k, bool exceeds)
{
	_cleanup_free_ char *all = value_format_size(sum->declared[k]);
	_cleanup_free_ char *is = value_format_size(sum->rate[k]);

	if (!all || !is)
		return -ENOMEM;
	log_event(exceeds ? EVENT_CAPACITY_EXCEEDED : EVENT_CAPACITY_KEPT,
		  exceeds ? LOG_WARNING : LOG_INFO,
		  EVENT_FIELDS({ "SUTRO_DEVICE", sum->capacity->path }),
		  "%s: %s: %s of %s are promised%s.", sum->capacity->path,
		  promise_info(k)->name, is, all,
		  exceeds ? ", so some floors may not hold"
			  : ", so the floors fit again");
	return 0;
}

int promised_report(const struct admission_base *base, struct capacities *l)
{
	_cleanup_free_ struct promised *sums = NULL;
	int err = l->n ? promised_sum(base, l, NULL, 0, &sums) : 0;

	for (size_t i = 0; i < l->n && !err; i++)
		for (enum promise_key k = 0; k < CAPACITY_KEYS && !err; k++) {
			bool exceeds = sums[i].rate[k] > sums[i].declared[k];
			bool *is_known = &l->items[i].exceeded[k];

			/* Without a device, or with a later declaration. */
			if (!sums[i].device || !sums[i].declared[k] ||
			    exceeds == *is_known)
				continue;
			*is_known = exceeds;
			err = report(&sums[i], k, exceeds);
		}
	return err;
}

/* ---- proposed policies ---- */

static int judge(struct admission *a, const struct promised *sum,
		 enum promise_key k)
{
	_cleanup_free_ char *all = value_format_size(sum->declared[k]);
	_cleanup_free_ char *promised = value_format_size(sum->rate[k]);

	if (!all || !promised)
		return -ENOMEM;
	for (size_t i = 0; i < a->n_devices; i++) {
		struct admitted *on = &a->devices[i];
		char *reason;

		if (on->device != sum->device || on->fit == FIT_DOES_NOT)
			continue;
		reason = asprintf_or_null(
			"%s: %s can promise %s, and %s would be promised. "
			"Lower a floor, or change Device= in sutrod.conf",
			promise_info(k)->name, sum->capacity->path, all,
			promised);
		if (!reason)
			return -ENOMEM;
		free(on->reason);
		on->reason = reason;
		on->fit = a->fit = FIT_DOES_NOT;
	}
	return 0;
}

int promised_judge(struct admission *a, const struct capacities *l)
{
	_cleanup_free_ struct promised *sums =
		find_declared(a->base->machine, l);
	int err = sums ? 0 : -ENOMEM;

	for (size_t i = 0; i < a->n_units && l->n && !err; i++) {
		const struct admission_unit *u = a->units[i];

		if (u->policy.promises.n || u->hidden.n)
			err = add_unit(a->base, u->cgroup,
				       &(struct proposed){ u->policy.subject,
							   &u->policy.promises,
							   &u->hidden },
				       sums, l->n);
	}
	for (size_t i = 0; i < l->n && !err; i++)
		for (enum promise_key k = 0; k < CAPACITY_KEYS && !err; k++)
			if (sums[i].device && sums[i].declared[k] &&
			    sums[i].rate[k] > sums[i].declared[k])
				err = judge(a, &sums[i], k);
	return err;
}
