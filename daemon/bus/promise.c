/* SPDX-License-Identifier: LGPL-2.1-or-later */

/*
 * Members about promises: ListPromises, ListPromiseStates, History.
 *
 * Floors, which the governor keeps, come from its plant. Ceilings and targets are listed as
 * they are stated.
 */

#include <math.h>

#include "bus/bus.h"
#include "bus/method.h"
#include "bus/pieces.h"
#include "control/cause.h"
#include "control/ceiling.h"
#include "control/plant.h"
#include "policy/policy.h"
#include "policy/unit-cgroup.h"

/* States that only the bus has: of a promise whose path leads to no device, and of a limit, which
 * is written and not controlled, or was refused by the kernel.
 */
#define STATE_UNRESOLVED "unresolved"
#define STATE_STATED "stated"
#define STATE_REFUSED "refused"

static int append_leaf(struct bus *b, sd_bus_message *r,
		       const struct governed *f, const struct device *leaf)
{
	const struct plant *plant = &b->governor->plant;
	uint32_t n = plant_leaf(plant, leaf);
	struct control_use *use;
	int err;

	if (n == CONTROL_NONE)
		return 0;
	use = control_use(plant->control, f->cgroup->node, n);
	err = sd_bus_message_open_container(r, 'a', "{sv}");
	if (err >= 0)
		err = sd_bus_message_append(
			r, "{sv}{sv}{sv}{sv}{sv}{sv}{sv}", "leaf", "s",
			leaf->node, "scheduler", "s", leaf->scheduler ?: "",
			"share_needed", "d",
			control_need(plant->control, f->number, n),
			"share_allotted", "d",
			control_allotted(plant->control, f->number, n),
			"share_got", "d", use->time, "backlog", "d",
			use->backlog, "weight", "t",
			policy_weight(f->cgroup->policy, leaf).weight);
	if (err >= 0)
		err = sd_bus_message_append(
			r, "{sv}{sv}", "cost_ns", "d",
			control_cost(plant->control, f->number, n) * 1e9,
			"price", "d",
			control_price(plant->control, f->number, n));
	return err < 0 ? err : sd_bus_message_close_container(r);
}

static int append_governed(struct bus *b, sd_bus_message *r,
			   const struct governed *f, const struct device *d)
{
	const struct control_promise *p =
		control_promise(b->governor->plant.control, f->number);
	int err;

	err = sd_bus_message_append(r, "{sv}{sv}{sv}{sv}{sv}{sv}", "state", "s",
				    control_state_to_string(f->state), "cause",
				    "s", f->cause ?: "", "got", "t",
				    (uint64_t)llround(f->got), "granted", "d",
				    p->phi, "gain", "d", p->gain,
				    "amplification", "d", f->copies);
	if (err >= 0)
		err = sd_bus_message_append(r, "{sv}", "reserve", "d",
					    p->reserve);
	if (err >= 0)
		err = bus_open_list(r, "leaves");
	for (size_t i = 0; i < d->n_leaves && err >= 0; i++)
		err = append_leaf(b, r, f, d->leaves[i]);
	return err < 0 ? err : bus_close_list(r);
}

/* The governor has no floors and targets on a device without leaves, or with a hidden one. */
static bool is_impossible(const struct promise *p)
{
	return p->device && promise_is_governed(p) &&
	       (!p->device->n_leaves || device_hidden_leaf(p->device));
}

static char *impossible_cause(const struct device *d)
{
	const struct device *hidden = device_hidden_leaf(d);

	if (hidden)
		return actuator_hidden_cause(hidden);
	return asprintf_or_null("%s has no request queue, so no weight, floor "
				"or latency target holds there; a limit does",
				d->node);
}

/* A limit of a cgroup without the io controller is in no file. */
static bool is_unobserved(const struct cgroup *c, const struct promise *p)
{
	return p->device && !is_impossible(p) && !evidence_has_io(c);
}

static const struct cgrefusal *refusal_of(const struct cgroup *c,
					  const struct promise *p)
{
	return promise_info(p->key)->kind == PROMISE_KIND_CEILING
		       ? ceiling_refusal(c, p)
		       : NULL;
}

static char *unaccounted_cause(const struct cgroup *c)
{
	_cleanup_(text_freep) struct text t = {};

	return cause_explain_unaccounted(c, &t) < 0 ? NULL : TAKE_PTR(t.p);
}

/* Limits of partitions are in force, but for more than was stated. */
static char *partition_cause(const struct promise *p)
{
	const struct device *disk = partition_disk(p->device);

	if (!disk || p->value == PROMISE_INFINITY)
		return strdup("");
	return asprintf_or_null("%s is a partition, so the limit applies to "
				"all of %s; of several limits for its "
				"partitions the lowest holds",
				p->device->node, disk->node);
}

/* Floors and targets on any volume leave out devices without weights. */
static char *left_out_cause(const struct policy *policy,
			    const struct promise *p)
{
	_cleanup_(text_freep) struct text t = {};
	const struct device *d;
	size_t i = 0;

	while (promise_is_governed(p) &&
	       (d = policy_left_out(policy, p->key, &i)))
		text_add(&t, "%s%s",
			 t.p ? ", " : "no floor or latency target holds on ",
			 d->node);
	if (t.p)
		text_add(&t, ", which the unit uses; sutro.policy(5)");
	return t.p ? TAKE_PTR(t.p) : strdup("");
}

static char *ungoverned_cause(const struct cgroup *c, const struct promise *p)
{
	const struct cgrefusal *r;

	if (is_impossible(p))
		return impossible_cause(p->device);
	if (promise_is_any(p))
		return left_out_cause(c->policy, p);
	if (!p->device)
		return strdup("the path is on no block device; correct the "
			      "path, or mount its file system");
	if (is_unobserved(c, p))
		return unaccounted_cause(c);
	r = refusal_of(c, p);
	return r ? cgrefusal_text(r) : partition_cause(p);
}

static const char *ungoverned_state(const struct cgroup *c,
				    const struct promise *p)
{
	if (is_impossible(p))
		return control_state_to_string(CONTROL_UNWEIGHTED);
	if (is_unobserved(c, p))
		return control_state_to_string(CONTROL_UNOBSERVED);
	if (p->device)
		return refusal_of(c, p) ? STATE_REFUSED : STATE_STATED;
	return promise_is_any(p) ? control_state_to_string(CONTROL_IDLE)
				 : STATE_UNRESOLVED;
}

static int append_ungoverned(sd_bus_message *r, const struct cgroup *c,
			     const struct promise *p)
{
	_cleanup_free_ char *cause = ungoverned_cause(c, p);
	int err;

	if (!cause)
		return -ENOMEM;
	err = sd_bus_message_append(r, "{sv}{sv}{sv}{sv}{sv}{sv}", "state", "s",
				    ungoverned_state(c, p), "cause", "s", cause,
				    "got", "t", (uint64_t)0, "granted", "d",
				    1.0, "gain", "d", 1.0, "amplification", "d",
				    0.0);
	if (err >= 0)
		err = sd_bus_message_append(r, "{sv}", "reserve", "d", 0.0);
	if (err >= 0)
		err = bus_open_list(r, "leaves");
	return err < 0 ? err : bus_close_list(r);
}

static int append_promise(struct bus *b, sd_bus_message *r,
			  const struct cgroup *c, const struct promise *p)
{
	const struct governed *f = plant_find(&b->governor->plant, c, p);
	int err;

	err = sd_bus_message_open_container(r, 'a', "{sv}");
	if (err >= 0)
		err = sd_bus_message_append(
			r, "{sv}{sv}{sv}{sv}{sv}{sv}{sv}{sv}{sv}", "unit", "s",
			c->origin == CGROUP_UNIT ? c->policy->subject : "",
			"cgroup", "s", c->shown, "key", "s",
			promise_info(p->key)->name, "path", "s", p->path,
			"device", "s", p->device ? p->device->node : "",
			"value", "t", f && f->part ? f->floor : p->value,
			"percent", "d", p->part / 100.0, "importance", "t",
			promises_importance(&c->policy->promises), "source",
			"s", p->source ?: "");
	if (err >= 0)
		err = sd_bus_message_append(
			r, "{sv}{sv}", "percentile", "d", p->percentile / 100.0,
			"measured_at", "s",
			f && f->target ? bus_source_name(f->target->source)
				       : "");
	if (err >= 0)
		err = f && p->device ? append_governed(b, r, f, p->device)
				     : append_ungoverned(r, c, p);
	return err < 0 ? err : sd_bus_message_close_container(r);
}

static bool leads_somewhere(const struct policy *policy, enum promise_key key)
{
	for (size_t i = 0; i < policy->promises.n; i++)
		if (policy->promises.items[i].device &&
		    policy->promises.items[i].key == key)
			return true;
	return false;
}

static bool leaves_out(const struct policy *policy, const struct promise *p)
{
	size_t i = 0;

	return promise_is_governed(p) && policy_left_out(policy, p->key, &i);
}

/* A promise about any volume is listed itself while there is no volume for it, and with the volumes
 * that it leaves out.
 */
static bool is_listed(const struct policy *policy, const struct promise *p)
{
	return p->path &&
	       !(promise_is_any(p) && leads_somewhere(policy, p->key) &&
		 !leaves_out(policy, p)) &&
	       (promise_is_governed(p) ||
		promise_info(p->key)->kind == PROMISE_KIND_CEILING);
}

static int append_state(struct bus *b, sd_bus_message *r,
			const struct cgroup *c, const struct promise *p)
{
	const struct governed *f =
		p->device ? plant_find(&b->governor->plant, c, p) : NULL;
	const struct control_promise *in_plant =
		f ? control_promise(b->governor->plant.control, f->number)
		  : NULL;

	return sd_bus_message_append(
		r, "(ssssssttd)",
		c->origin == CGROUP_UNIT ? c->policy->subject : "", c->shown,
		promise_info(p->key)->name, p->path,
		p->device ? p->device->node : "",
		f ? control_state_to_string(f->state) : ungoverned_state(c, p),
		f && f->part ? f->floor : p->value,
		f ? (uint64_t)llround(f->got) : 0,
		in_plant ? in_plant->phi : 1.0);
}

static int append_each(struct bus *b, sd_bus_message *m, const struct cgroup *c,
		       int (*append)(struct bus *b, sd_bus_message *r,
				     const struct cgroup *c,
				     const struct promise *p))
{
	int n = 0, r = 0;

	for (size_t i = 0; i < c->policy->promises.n && r >= 0; i++) {
		const struct promise *p = &c->policy->promises.items[i];

		if (!is_listed(c->policy, p))
			continue;
		r = append(b, m, c, p);
		n++;
	}
	return r < 0 ? r : n;
}

int bus_append_promises(struct bus *b, sd_bus_message *m,
			const struct cgroup *c)
{
	return append_each(b, m, c, append_promise);
}

static int append_states(struct bus *b, sd_bus_message *m,
			 const struct cgroup *c)
{
	return append_each(b, m, c, append_state);
}

int method_list_promises(sd_bus_message *call, void *userdata,
			 sd_bus_error *error)
{
	static const struct bus_list_kind promises = {
		.type = "a{sv}",
		.append = bus_append_promises,
	};

	return bus_reply_in_pieces(userdata, call, &promises, error);
}

int method_list_promise_states(sd_bus_message *call, void *userdata,
			       sd_bus_error *error)
{
	static const struct bus_list_kind states = {
		.type = "(ssssssttd)",
		.append = append_states,
	};

	return bus_reply_in_pieces(userdata, call, &states, error);
}

/* ---- history ---- */

static const struct governed *find_floor(const struct bus *b,
					 const struct cgroup *c,
					 const char *key, const char *path)
{
	enum promise_key k;

	if (promise_key_from_name(key, &k) < 0)
		return NULL;
	return plant_find(&b->governor->plant, c,
			  &(struct promise){ .key = k, .path = (char *)path });
}

int method_history(sd_bus_message *call, void *userdata, sd_bus_error *error)
{
	_cleanup_(sd_bus_message_unrefp) sd_bus_message *reply = NULL;
	const char *unit, *key, *path;
	struct bus *b = userdata;
	const struct governed *f;
	const struct history *h;
	struct cgroup *c;
	int r;

	r = sd_bus_message_read(call, "sss", &unit, &key, &path);
	if (r < 0)
		return r;
	c = unit_find_cgroup(b->machine->tree, unit);
	if (!c)
		return bus_no_such_unit(error, unit);
	f = find_floor(b, c, key, path);
	if (!f)
		return bus_error(
			error, ERROR_NO_SUCH_PROMISE,
			"%s has no promise %s=%s that is being kept; see "
			"\"sutroctl explain %s%s%s\".",
			unit, key, path, text_quote(unit), unit,
			text_quote(unit));
	r = sd_bus_message_new_method_return(call, &reply);
	if (r >= 0)
		r = sd_bus_message_open_container(reply, 'a', "(tddd)");
	h = f->history;
	for (unsigned int i = 0; i < h->n && r >= 0; i++) {
		const struct history_row *row =
			&h->row[(h->next + HISTORY_ROWS - h->n + i) %
				HISTORY_ROWS];

		r = sd_bus_message_append(reply, "(tddd)", row->usec, row->got,
					  row->promised, row->granted);
	}
	if (r >= 0)
		r = sd_bus_message_close_container(reply);
	return bus_send(reply, r);
}
