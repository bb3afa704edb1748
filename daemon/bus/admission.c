/* SPDX-License-Identifier: LGPL-2.1-or-later */

/* CheckPolicies: would floors fit, if these were the policy files? See admission.c. */

#include "bus/authority.h"
#include "bus/bus.h"
#include "bus/method.h"
#include "bus/paths.h"
#include "control/promised.h"

/* A call with more files is a mistake or an attack. */
#define PROPOSALS_MAX 64U

static int read_proposals(sd_bus_message *call, struct proposal *l, size_t *n,
			  sd_bus_error *error)
{
	const char *path, *text;
	int r;

	r = sd_bus_message_enter_container(call, 'a', "(ss)");
	*n = 0;
	while (r >= 0 &&
	       (r = sd_bus_message_read(call, "(ss)", &path, &text)) > 0) {
		if (*n >= PROPOSALS_MAX)
			return bus_error(
				error, ERROR_BAD_POLICY,
				"More than %u files in a call: use several calls.",
				PROPOSALS_MAX);
		if (*path != '/')
			return bus_error(error, ERROR_BAD_POLICY,
					 "\"%.255s\" is no absolute path.",
					 path);
		l[(*n)++] = (struct proposal){ path, text };
	}
	return r < 0 ? r : sd_bus_message_exit_container(call);
}

static int append_guarantee(sd_bus_message *r, const struct guarantee *g)
{
	const struct promise *p = g->promise;
	double value = p->part ? g->rate_alone * p->part / PART_ALL : p->value;

	return sd_bus_message_append(
		r, "a{sv}", 10, "unit", "s", g->unit, "key", "s",
		promise_info(p->key)->name, "path", "s", p->path, "value", "t",
		(uint64_t)value, "percent", "d", p->part / 100.0, "rate_alone",
		"t", (uint64_t)g->rate_alone, "share", "d", g->share, "granted",
		"d", g->granted, "importance", "t", g->importance, "source",
		"s", p->source ?: "");
}

static int append_device(sd_bus_message *r, const struct admission *a,
			 const struct admitted *on)
{
	int err;

	err = sd_bus_message_open_container(r, 'a', "{sv}");
	if (err >= 0)
		err = sd_bus_message_append(r, "{sv}{sv}{sv}{sv}{sv}{sv}",
					    "device", "s",
					    on->device ? on->device->node : "",
					    "path", "s", on->path, "verdict",
					    "s", fit_to_string(on->fit),
					    "reason", "s", on->reason, "leaf",
					    "s", on->leaf ? on->leaf->node : "",
					    "needed", "d", on->needed);
	if (err >= 0)
		err = bus_open_list(r, "floors");
	for (size_t i = 0; i < a->n_guarantees && err >= 0; i++) {
		const struct guarantee *g = &a->guarantees[i];

		if (g->device == on->device &&
		    (g->device || g->promise->path == on->path))
			err = append_guarantee(r, g);
	}
	if (err >= 0)
		err = bus_close_list(r);
	return err < 0 ? err : sd_bus_message_close_container(r);
}

static int reply_with(sd_bus_message *call, const struct admission *a)
{
	_cleanup_(sd_bus_message_unrefp) sd_bus_message *reply = NULL;
	int r;

	r = sd_bus_message_new_method_return(call, &reply);
	if (r >= 0)
		r = sd_bus_message_append(reply, "s", fit_to_string(a->fit));
	if (r >= 0)
		r = sd_bus_message_open_container(reply, 'a', "a{sv}");
	for (size_t i = 0; i < a->n_devices && r >= 0; i++)
		r = append_device(reply, a, &a->devices[i]);
	if (r >= 0)
		r = sd_bus_message_close_container(reply);
	return bus_send(reply, r);
}

static int check_known_policies(struct bus *b, sd_bus_message *call,
				sd_bus_error *error);

static int check_policies(struct bus *b, sd_bus_message *call, bool is_last,
			  sd_bus_error *error)
{
	const struct admission_base base = {
		.machine = b->machine,
		.policies = b->policies,
		.clients = b->clients,
		.plant = &b->governor->plant,
		.actuator = b->actuator,
	};
	_cleanup_(admission_done) struct admission a = {};
	_cleanup_strv_ char **unknown = NULL;
	_cleanup_free_ char *sentence = NULL;
	struct proposal files[PROPOSALS_MAX];
	struct proposals proposals = { .items = files };
	int r;

	r = sd_bus_message_rewind(call, true);
	if (r >= 0)
		r = read_proposals(call, files, &proposals.n, error);
	if (r < 0)
		return r;
	r = admission_check(&base, &proposals, &a, &sentence);
	if ((r == -EINVAL || r == -EBADMSG) && sentence)
		return bus_error(error, ERROR_BAD_POLICY, "%s", sentence);
	if (r >= 0)
		r = promised_judge(&a, &b->conf->capacities);
	if (r >= 0 && !is_last)
		r = lookups_unknown(b->machine->lookups, &unknown);
	if (r < 0)
		return r;
	return unknown ? bus_learn_paths(b, call, TAKE_PTR(unknown),
					 check_known_policies, error)
		       : reply_with(call, &a);
}

static int check_known_policies(struct bus *b, sd_bus_message *call,
				sd_bus_error *error)
{
	return check_policies(b, call, true, error);
}

/* The first check looks up the devices of the paths in the files. */
static int check_new_policies(struct bus *b, sd_bus_message *call,
			      sd_bus_error *error)
{
	return check_policies(b, call, false, error);
}

/* Every user may check the files in force. Patterns of a caller are matched against all
 * units, which takes time, so a call with files needs an authorization.
 */
int method_check_policies(sd_bus_message *call, void *userdata,
			  sd_bus_error *error)
{
	int r = sd_bus_message_enter_container(call, 'a', "(ss)");

	if (r >= 0)
		r = sd_bus_message_at_end(call, false);
	if (r < 0)
		return r;
	return r ? check_new_policies(userdata, call, error)
		 : bus_with_authority(userdata, call, ACTION_MANAGE_POLICIES,
				      NULL, check_new_policies, error);
}
