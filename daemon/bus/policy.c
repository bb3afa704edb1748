/* SPDX-License-Identifier: LGPL-2.1-or-later */

/*
 * Members that change or show the settings of units and cgroups: SetPolicy, ResetPolicy,
 * GetPolicy, ReloadPolicies, PolicyErrors, MistakenPolicyFiles. policies.c keeps lasting settings, client.c
 * those that end with the caller. A child process writes files, because their disk may hang.
 */

#include <stdio.h>

#include "bus/authority.h"
#include "bus/background.h"
#include "bus/bus.h"
#include "bus/capacity.h"
#include "bus/method.h"
#include "bus/paths.h"
#include "bus/quota.h"
#include "host/event.h"
#include "policy/unit-cgroup.h"

#define ACTION_OWN "org.sutro1.manage-own-policies"

/* A call with more assignments is a mistake or an attack. */
#define ASSIGNMENTS_MAX POLICYFILE_STATEMENTS_MAX

/* Bytes of the assignments in a message, after which the others are counted only. */
#define REPORT_MAX 1024U

/* The time to write a file, after which its disk is reported. */
#define LIMIT_SEC 10U

enum lifetime {
	LIFETIME_PERSISTENT = POLICY_PERSISTENT,
	LIFETIME_RUNTIME = POLICY_RUNTIME,
	LIFETIME_CLIENT,
	LIFETIMES,
};

static const char *const lifetimes[] = {
	[LIFETIME_PERSISTENT] = "persistent",
	[LIFETIME_RUNTIME] = "runtime",
	[LIFETIME_CLIENT] = "client",
};

static int parse_lifetime(const char *text, enum lifetime *ret,
			  sd_bus_error *error)
{
	for (enum lifetime l = 0; l < LIFETIMES; l++)
		if (streq(text, lifetimes[l])) {
			*ret = l;
			return 0;
		}
	return bus_error(error, ERROR_BAD_POLICY,
			 "\"%.64s\" is no lifetime; there are "
			 "persistent, runtime and client.",
			 text);
}

static int check_subject(const char *unit, sd_bus_error *error)
{
	if (unit_name_is_valid(unit) || cgroup_path_is_valid(unit))
		return 0;
	return bus_error(error, ERROR_BAD_POLICY,
			 "\"%.255s\" is no name of a unit with a "
			 "control group, such as db.service or "
			 "user-1000.slice, and no path of a cgroup, such as "
			 "/batch/job_7: letters, digits and :-_.\\@+,=~.",
			 unit);
}

/* Refuse a subject whose policy never has an effect: the root, and the path of a unit's cgroup, as a
 * unit has the policies of its name only.
 */
static int check_has_policies(const struct bus *b, const char *unit,
			      sd_bus_error *error)
{
	const char *owner = *unit == '/' ? unit_of_path(b->machine->tree, unit)
					 : NULL;

	if (streq(unit, ROOT_SLICE))
		return bus_error(error, ERROR_BAD_POLICY,
				 "%s is the root of the hierarchy, which has "
				 "no settings: set the policy of a slice below "
				 "it, such as system.slice.",
				 unit);
	if (!owner)
		return 0;
	return bus_error(error, ERROR_BAD_POLICY,
			 "%s is the cgroup of %s: set the policy of that unit.",
			 unit, owner);
}

static int refuse(sd_bus_error *error, const char *unit, int r,
		  const char *sentence)
{
	if (r == -ENOMEM)
		return r;
	if (r == -EINVAL || r == -EBADMSG)
		return bus_error(error, ERROR_BAD_POLICY, "%s: %s", unit,
				 sentence ?: strerror(-r));
	if (r == -E2BIG)
		return bus_error(
			error, SD_BUS_ERROR_LIMITS_EXCEEDED,
			"%s: too much is set at run time already; reset "
			"policies that are not needed.",
			unit);
	return bus_error(error, SD_BUS_ERROR_FAILED,
			 "%s: cannot keep the policy: %s.", unit, strerror(-r));
}

/* ---- SetPolicy, ResetPolicy ---- */

/* A scope has no unit file, and ends with its processes. A later one of the same name, such as
 * session-3.scope, can belong to another user.
 */
static int check_lifetime(const char *unit, enum lifetime l,
			  sd_bus_error *error)
{
	if (l != LIFETIME_PERSISTENT || !endswith(unit, ".scope") ||
	    streq(unit, "init.scope"))
		return 0;
	return bus_error(error, ERROR_BAD_POLICY,
			 "%s is a scope, which ends with its processes: its "
			 "policy cannot be persistent, but runtime or client.",
			 unit);
}

static int read_assignments(sd_bus_message *call,
			    struct assignment *assignments, size_t *n,
			    sd_bus_error *error)
{
	const char *key, *value;
	int r;

	r = sd_bus_message_enter_container(call, 'a', "(ss)");
	*n = 0;
	while (r >= 0 &&
	       (r = sd_bus_message_read(call, "(ss)", &key, &value)) > 0) {
		if (*n >= ASSIGNMENTS_MAX)
			return bus_error(
				error, ERROR_BAD_POLICY,
				"More than %u assignments in a call: use several calls.",
				ASSIGNMENTS_MAX);
		assignments[(*n)++] = (struct assignment){ key, value };
	}
	return r < 0 ? r : sd_bus_message_exit_container(call);
}

/**
 * struct change - a change of the settings of a unit or cgroup
 * @is_reset: all settings with this lifetime are removed
 * @client, @uid: of the caller
 * @reserved: of bus_admit()
 *
 * The strings belong to the call.
 */
struct change {
	const char *unit;
	enum lifetime lifetime;
	bool is_reset;
	const char *client;
	uid_t uid;
	struct reservation *reserved;
	struct assignment assignments[ASSIGNMENTS_MAX];
	size_t n;
};

static int format_assignments(const struct change *c, struct text *t)
{
	int err = 0;

	for (size_t i = 0; i < c->n && !err; i++) {
		if (t->length >= REPORT_MAX)
			return text_add(t, " and %zu more", c->n - i);
		err = text_add(t, "%s%s=", i ? ", " : "",
			       c->assignments[i].key);
		if (!err)
			err = text_add_plain(t, c->assignments[i].value,
					     REPORT_MAX);
	}
	return err;
}

static void report_change(const struct change *c)
{
	const char *lifetime = lifetimes[c->lifetime];
	_cleanup_(text_freep) struct text t = {};
	_cleanup_free_ char *uid = asprintf_or_null("%u", (unsigned int)c->uid);

	if (!uid || format_assignments(c, &t) < 0)
		log_oom();
	else if (c->is_reset)
		log_event(EVENT_POLICY_RESET, LOG_INFO,
			  EVENT_FIELDS({ "SUTRO_UNIT", c->unit },
				       { "SUTRO_LIFETIME", lifetime },
				       { "SUTRO_CLIENT", c->client },
				       { "SUTRO_UID", uid }),
			  "%s: the user %s (client %s) reset the %s policy.",
			  c->unit, uid, c->client, lifetime);
	else
		log_event(EVENT_POLICY_SET, LOG_INFO,
			  EVENT_FIELDS({ "SUTRO_UNIT", c->unit },
				       { "SUTRO_LIFETIME", lifetime },
				       { "SUTRO_CLIENT", c->client },
				       { "SUTRO_UID", uid },
				       { "SUTRO_SETTINGS", t.p ?: "" }),
			  "%s: the user %s (client %s) changed the %s policy: "
			  "%s.",
			  c->unit, uid, c->client, lifetime, t.p ?: "");
}

/* The output of the child has the number of the error, "-1" for a change, or "0" if there is
 * nothing to change; and the sentence of an error in the next line.
 */
static int write_change(struct bus *b, void *userdata, int fd)
{
	_cleanup_free_ char *sentence = NULL;
	const struct change *c = userdata;
	enum policy_lifetime l = (enum policy_lifetime)c->lifetime;
	int r;

	r = c->is_reset ? policies_erase(b->policies, c->unit, l)
			: policies_write(b->policies, c->unit, l,
					 c->assignments, c->n, &sentence);
	return dprintf(fd, "%d\n%s", -r, sentence ?: "") < 0 ? -EIO : 0;
}

static int take_change(struct bus *b, sd_bus_message *call, void *userdata,
		       int err, const char *output, sd_bus_error *error)
{
	const struct change *c = userdata;
	const char *line = strchr(output, '\n');
	_cleanup_free_ char *mistake = NULL;
	bool is_other;

	if (err == -ETIMEDOUT)
		return bus_error(error, SD_BUS_ERROR_TIMEOUT,
				 "%s: the policy was not on the disk within "
				 "%u s. If it arrives there later, "
				 "\"sutroctl policy reload\" puts it in force.",
				 c->unit, LIMIT_SEC);
	err = err ?: -atoi(output);
	is_other = err > 0;
	if (err >= 0)
		err = policies_take(b->policies, c->unit,
				    (enum policy_lifetime)c->lifetime,
				    &mistake);
	if (mistake)
		return bus_error(error, SD_BUS_ERROR_FAILED,
				 "%s: the policy is on the disk, but cannot be "
				 "read back, so it is not in force: %s. "
				 "\"sutroctl policy reload\" reads it again.",
				 c->unit, mistake);
	if (err)
		return refuse(error, c->unit, err,
			      line && line[1] ? line + 1 : NULL);
	capacity_in_force(b, c->reserved);
	if (is_other)
		report_change(c);
	b->ops->policy_changed(c->unit, b->userdata);
	return sd_bus_reply_method_return(call, "");
}

static void change_free(void *userdata)
{
	struct change *c = userdata;

	capacity_release(c->reserved);
	free(c);
}

/* The call that writes the file takes over the reservation of @change. */
static int start_change(struct bus *b, sd_bus_message *call,
			const struct change *change, sd_bus_error *error)
{
	static const struct bus_background background = {
		.limit_usec = LIMIT_SEC * 1000000ULL,
		.work = write_change,
		.then = take_change,
		.free = change_free,
	};
	struct change *c = malloc(sizeof(*c));

	if (!c) {
		capacity_release(change->reserved);
		return -ENOMEM;
	}
	*c = *change;
	return bus_in_background(b, call, &background, c, error);
}

static int read_unit(struct bus *b, sd_bus_message *call, struct change *c)
{
	int r = sd_bus_message_rewind(call, true);

	c->client = sd_bus_message_get_sender(call);
	if (r >= 0)
		r = bus_caller_uid(b, call, &c->uid);
	return r < 0 ? r : sd_bus_message_read(call, "s", &c->unit);
}

static int read_change(struct bus *b, sd_bus_message *call, struct change *c,
		       sd_bus_error *error)
{
	int r = read_unit(b, call, c);

	return r < 0 ? r : read_assignments(call, c->assignments, &c->n, error);
}

static int set_known_policy(struct bus *b, sd_bus_message *call,
			    sd_bus_error *error)
{
	_cleanup_free_ char *sentence = NULL;
	const char *unit, *lifetime;
	struct change c = {};
	int r;

	r = read_change(b, call, &c, error);
	unit = c.unit;
	if (r >= 0)
		r = sd_bus_message_read(call, "s", &lifetime);
	if (r >= 0)
		r = parse_lifetime(lifetime, &c.lifetime, error);
	if (r >= 0)
		r = check_lifetime(unit, c.lifetime, error);
	if (r >= 0)
		r = check_has_policies(b, unit, error);
	if (r < 0)
		return r;
	r = bus_admit(b, unit, c.assignments, c.n, &c.reserved, error);
	if (r < 0)
		return r;
	if (c.lifetime != LIFETIME_CLIENT)
		return start_change(b, call, &c, error);
	r = clients_assign(b->clients, c.client, unit, c.assignments, c.n,
			   &sentence);
	if (r >= 0)
		capacity_in_force(b, c.reserved);
	capacity_release(c.reserved);
	if (r > 0)
		report_change(&c);
	return r < 0 ? refuse(error, unit, r, sentence)
		     : sd_bus_reply_method_return(call, "");
}

/* Add the path of @p if it was not looked up yet. */
static int add_unknown(const struct bus *b, const struct promise *p,
		       char ***unknown)
{
	struct lookups *lookups = b->machine->lookups;
	struct device *d;

	if (!p->path || promise_is_any(p))
		return 0;
	lookups_find(lookups, b->machine->topology, p->path, &d);
	return lookups_is_known(lookups, p->path) ? 0
						  : strv_add(unknown, p->path);
}

/* Admission needs the devices behind the paths. Mistakes are reported by set_known_policy(). */
static int set_policy(struct bus *b, sd_bus_message *call, sd_bus_error *error)
{
	_cleanup_free_ char *sentence = NULL;
	_cleanup_strv_ char **unknown = NULL;
	struct promises l = {};
	struct change c = {};
	int r;

	if (!b->conf->capacities.n)
		return set_known_policy(b, call, error);
	r = read_change(b, call, &c, error);
	if (r < 0)
		return r;
	r = promises_assign(&l, c.assignments, c.n, "", &sentence);
	for (size_t i = 0; i < l.n && r >= 0; i++)
		r = add_unknown(b, &l.items[i], &unknown);
	promises_done(&l);
	if (r < 0 && r != -EINVAL)
		return r;
	return bus_learn_paths(b, call, TAKE_PTR(unknown), set_known_policy,
			       error);
}

static int reset_policy(struct bus *b, sd_bus_message *call,
			sd_bus_error *error)
{
	struct change c = { .is_reset = true };
	const char *lifetime;
	int r;

	r = read_unit(b, call, &c);
	if (r >= 0)
		r = sd_bus_message_read(call, "s", &lifetime);
	if (r >= 0)
		r = parse_lifetime(lifetime, &c.lifetime, error);
	if (r < 0)
		return r;
	if (c.lifetime != LIFETIME_CLIENT)
		return start_change(b, call, &c, error);
	if (clients_forget(b->clients, c.client, c.unit))
		report_change(&c);
	return sd_bus_reply_method_return(call, "");
}

/* A unit below the slice of the caller is the caller's own. The slice itself is not:
 * an administrator decides how much it may take from others. Nor are cgroups below
 * units: a user can have any number of them.
 */
static bool is_own(struct bus *b, sd_bus_message *call, const char *unit)
{
	struct cgroup *c = unit_find_cgroup(b->machine->tree, unit);
	_cleanup_free_ char *slice = NULL;
	uid_t uid;

	if (*unit == '/' || !c || bus_caller_uid(b, call, &uid) < 0)
		return false;
	slice = asprintf_or_null("/user.slice/user-%u.slice/",
				 (unsigned int)uid);
	return slice && startswith(c->path, slice);
}

static int change(sd_bus_message *call, struct bus *b, bus_method_t method,
		  sd_bus_error *error)
{
	const char *unit;
	int r = sd_bus_message_read(call, "s", &unit);

	if (r >= 0)
		r = check_subject(unit, error);
	if (r < 0)
		return r;
	if (b->machine->dry_run)
		return sd_bus_error_set(error, SD_BUS_ERROR_FAILED,
					"sutrod runs with --dry-run and "
					"changes nothing.");
	return bus_with_authority(
		b, call,
		is_own(b, call, unit) ? ACTION_OWN : ACTION_MANAGE_POLICIES,
		unit, method, error);
}

int method_set_policy(sd_bus_message *call, void *userdata, sd_bus_error *error)
{
	return change(call, userdata, set_policy, error);
}

int method_reset_policy(sd_bus_message *call, void *userdata,
			sd_bus_error *error)
{
	return change(call, userdata, reset_policy, error);
}

/* ---- GetPolicy ---- */

static int append_assignments(sd_bus_message *r, const struct promises *l,
			      int in_force)
{
	int err = 0;

	for (size_t i = 0; i < l->n && err >= 0; i++) {
		const struct promise *p = &l->items[i];
		_cleanup_free_ char *value = promise_format(p);

		if (!value)
			return -ENOMEM;
		err = sd_bus_message_append(r, "a{sv}", 4, "key", "s",
					    promise_info(p->key)->name, "value",
					    "s", value, "source", "s",
					    p->source ?: "", "in_force", "b",
					    in_force);
	}
	return err;
}

int method_get_policy(sd_bus_message *call, void *userdata, sd_bus_error *error)
{
	_cleanup_(sd_bus_message_unrefp) sd_bus_message *reply = NULL;
	struct stated stated = {};
	struct bus *b = userdata;
	const char *unit;
	int r;

	r = sd_bus_message_read(call, "s", &unit);
	if (r >= 0)
		r = check_subject(unit, error);
	if (r >= 0)
		r = clients_state(b->clients, b->policies, unit, &stated);
	if (r >= 0)
		r = conf_add_resync(b->conf, unit, &stated);
	if (r >= 0)
		r = sd_bus_message_new_method_return(call, &reply);
	if (r >= 0)
		r = sd_bus_message_open_container(reply, 'a', "a{sv}");
	if (r >= 0)
		r = append_assignments(reply, &stated.overridden, false);
	if (r >= 0)
		r = append_assignments(reply, &stated.hidden, false);
	if (r >= 0)
		r = append_assignments(reply, &stated.in_force, true);
	if (r >= 0)
		r = sd_bus_message_close_container(reply);
	stated_done(&stated);
	return bus_send(reply, r);
}

/* ---- ReloadPolicies, PolicyErrors, MistakenPolicyFiles ---- */

static void report_reload(struct bus *b, sd_bus_message *call)
{
	const char *client = sd_bus_message_get_sender(call);
	_cleanup_free_ char *text = NULL;
	uid_t uid;

	if (bus_caller_uid(b, call, &uid) < 0)
		return;
	text = asprintf_or_null("%u", (unsigned int)uid);
	if (!text) {
		log_oom();
		return;
	}
	log_event(EVENT_POLICIES_RELOADED, LOG_INFO,
		  EVENT_FIELDS({ "SUTRO_CLIENT", client },
			       { "SUTRO_UID", text }),
		  "The user %s (client %s) had all policies read again.", text,
		  client);
}

static int reload_policies(struct bus *b, sd_bus_message *call,
			   sd_bus_error *error)
{
	int r = b->ops->reload_policies(b->userdata);

	if (r < 0 && r != -ENOMEM)
		return sd_bus_error_setf(error, SD_BUS_ERROR_FAILED,
					 "A folder of policies cannot be read "
					 "(%s), and those that were in force "
					 "stay: see journalctl -u sutrod",
					 strerror(-r));
	if (r < 0)
		return r;
	report_reload(b, call);
	return sd_bus_reply_method_return(call, "");
}

int method_reload_policies(sd_bus_message *call, void *userdata,
			   sd_bus_error *error)
{
	return bus_with_authority(userdata, call, ACTION_MANAGE_POLICIES, NULL,
				  reload_policies, error);
}

int property_policy_errors(sd_bus *bus, const char *path, const char *interface,
			   const char *property, sd_bus_message *reply,
			   void *userdata, sd_bus_error *error)
{
	_cleanup_strv_ char **errors = NULL;
	struct bus *b = userdata;
	int r = policies_errors(b->policies, &errors);

	return r < 0 ? r : sd_bus_message_append_strv(reply, errors);
}

static int append_files(sd_bus_message *reply, char *const *files,
			int is_replaced)
{
	int r = 0;

	for (; files && *files && r >= 0; files++)
		r = sd_bus_message_append(reply, "(sb)", *files, is_replaced);
	return r;
}

int property_mistaken_policy_files(sd_bus *bus, const char *path,
				   const char *interface, const char *property,
				   sd_bus_message *reply, void *userdata,
				   sd_bus_error *error)
{
	_cleanup_strv_ char **replaced = NULL, **unused = NULL;
	struct bus *b = userdata;
	int r = policies_mistaken(b->policies, &replaced, &unused);

	if (r >= 0)
		r = sd_bus_message_open_container(reply, 'a', "(sb)");
	if (r >= 0)
		r = append_files(reply, replaced, true);
	if (r >= 0)
		r = append_files(reply, unused, false);
	return r < 0 ? r : sd_bus_message_close_container(reply);
}
