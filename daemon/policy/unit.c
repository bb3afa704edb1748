/* SPDX-License-Identifier: LGPL-2.1-or-later */

/*
 * Properties of units in systemd: IOWeight=, IODeviceWeight=, ControlGroup, and the names
 * of their files, because sections [X-...] are in no property.
 *
 * The list of units follows from the cgroup tree (manager.c); this file requests their
 * properties. systemd emits no PropertiesChanged for these, so the watch on io.weight in
 * cgroup.c detects "systemctl set-property"; UnitNew and the end of a reload also cause a
 * new request. A systemd that emits the signal is followed by it as well.
 *
 * A request is five asynchronous Get calls (GetAll would make systemd read dozens of
 * cgroup files). When a unit changes meanwhile, the request is repeated. Between the two
 * signals Reloading, systemd removes all units and loads them anew, and while it executes
 * itself anew it does not answer. Both are ignored, as all units are requested afterwards.
 * The bus refuses more than 128 calls without a reply, so few requests are under way at
 * once and the others wait for their turn.
 */

#include <search.h>
#include <sys/queue.h>

#include "policy/unit.h"

#define SYSTEMD "org.freedesktop.systemd1"
#define SYSTEMD_PATH "/org/freedesktop/systemd1"
#define SYSTEMD_MANAGER SYSTEMD ".Manager"
#define UNITS_PATH SYSTEMD_PATH "/unit"

/* Units that are requested at a time: 80 calls without a reply. */
#define UNDER_WAY_MAX 16U

/* The value of IOWeight= that is not set. */
#define WEIGHT_UNSET UINT64_MAX

enum property {
	PROPERTY_WEIGHT,
	PROPERTY_DEVICE_WEIGHT,
	PROPERTY_CGROUP,
	PROPERTY_FRAGMENT,
	PROPERTY_DROPINS,
	PROPERTIES,
};

/* Properties of a unit that are read; every: units of all types have it. */
static const struct {
	const char *name;
	bool every;
} properties[] = {
	[PROPERTY_WEIGHT] = { "IOWeight" },
	[PROPERTY_DEVICE_WEIGHT] = { "IODeviceWeight" },
	[PROPERTY_CGROUP] = { "ControlGroup" },
	[PROPERTY_FRAGMENT] = { "FragmentPath", true },
	[PROPERTY_DROPINS] = { "DropInPaths", true },
};

/**
 * struct question - a unit with a request under way, or waiting for one
 * @under_way: it was sent
 * @waiting: replies to come
 * @again: it changed meanwhile
 * @failed: systemd has no such unit
 * @silent: systemd does not answer
 */
struct question {
	char *name;
	struct units *units;
	sd_bus_slot *slots[PROPERTIES];
	bool under_way;
	unsigned int waiting;
	bool again;
	bool failed;
	bool silent;
	char *cgroup;
	char *fragment;
	char **dropins;
	struct policy policy;
	TAILQ_ENTRY(question) list;
};

struct units {
	sd_bus *bus;
	const struct unit_ops *ops;
	void *userdata;
	TAILQ_HEAD(, question) questions;
	void *index;
	size_t n;
	size_t under_way;
	bool reloading;
	sd_bus_slot *slots[6];
};

static const struct {
	const char *suffix;
	const char *interface;
} types[] = {
	{ ".service", SYSTEMD ".Service" }, { ".slice", SYSTEMD ".Slice" },
	{ ".scope", SYSTEMD ".Scope" },	    { ".socket", SYSTEMD ".Socket" },
	{ ".mount", SYSTEMD ".Mount" },	    { ".swap", SYSTEMD ".Swap" },
};

static const char *interface_of(const char *name)
{
	for (size_t i = 0; i < ARRAY_SIZE(types); i++)
		if (endswith(name, types[i].suffix))
			return types[i].interface;
	return NULL;
}

bool unit_is_name(const char *name)
{
	return interface_of(name) != NULL;
}

/* ---- requests ---- */

static int by_name(const void *a, const void *b)
{
	return strcmp(((const struct question *)a)->name,
		      ((const struct question *)b)->name);
}

static void question_free(struct question *q)
{
	tdelete(q, &q->units->index, by_name);
	TAILQ_REMOVE(&q->units->questions, q, list);
	q->units->n--;
	q->units->under_way -= q->under_way;
	for (size_t i = 0; i < PROPERTIES; i++)
		sd_bus_slot_unref(q->slots[i]);
	policy_done(&q->policy);
	free(q->cgroup);
	free(q->fragment);
	strv_free(q->dropins);
	free(q->name);
	free(q);
}

static int read_weight(struct question *q, sd_bus_message *m)
{
	uint64_t weight;
	int r = sd_bus_message_read(m, "v", "t", &weight);

	if (r < 0)
		return r;
	q->policy.weight_set = weight != WEIGHT_UNSET;
	q->policy.weight = q->policy.weight_set ? weight : WEIGHT_DEFAULT;
	if (!weight_is_valid(q->policy.weight)) {
		log_warning("%s: IOWeight=%llu is not in 1..10000, ignoring.",
			    q->name, (unsigned long long)weight);
		q->policy.weight_set = false;
		q->policy.weight = WEIGHT_DEFAULT;
	}
	return 0;
}

static int read_device_weights(struct question *q, sd_bus_message *m)
{
	const char *path;
	uint64_t weight;
	int r;

	r = sd_bus_message_enter_container(m, 'v', "a(st)");
	if (r >= 0)
		r = sd_bus_message_enter_container(m, 'a', "(st)");
	if (r < 0)
		return r;
	while ((r = sd_bus_message_read(m, "(st)", &path, &weight)) > 0) {
		if (!weight_is_valid(weight)) {
			log_warning("%s: IODeviceWeight=%s %llu is not in "
				    "1..10000, ignoring.",
				    q->name, path, (unsigned long long)weight);
			continue;
		}
		r = policy_add(&q->policy, path, weight);
		if (r < 0)
			return r;
	}
	return r;
}

static int read_cgroup(struct question *q, sd_bus_message *m)
{
	const char *path;
	int r = sd_bus_message_read(m, "v", "s", &path);

	if (r < 0)
		return r;
	q->cgroup = strdup(path);
	return q->cgroup ? 0 : -ENOMEM;
}

static int read_fragment(struct question *q, sd_bus_message *m)
{
	const char *path;
	int r = sd_bus_message_read(m, "v", "s", &path);

	if (r < 0)
		return r;
	q->fragment = strdup(path);
	return q->fragment ? 0 : -ENOMEM;
}

static int read_dropins(struct question *q, sd_bus_message *m)
{
	const char *path;
	int r;

	r = sd_bus_message_enter_container(m, 'v', "as");
	if (r >= 0)
		r = sd_bus_message_enter_container(m, 'a', "s");
	while (r >= 0 && (r = sd_bus_message_read(m, "s", &path)) > 0)
		r = strv_add(&q->dropins, path);
	return r;
}

static int send_questions(struct question *q);

static void finish(struct question *q);

/* Send the oldest request first. A request that cannot be sent gets an empty answer. */
static void send_next(struct units *u)
{
	struct question *q, *next;

	for (q = TAILQ_FIRST(&u->questions); q && u->under_way < UNDER_WAY_MAX;
	     q = next) {
		next = TAILQ_NEXT(q, list);
		if (q->under_way)
			continue;
		q->under_way = true;
		u->under_way++;
		if (send_questions(q) >= 0)
			continue;
		q->silent = true;
		q->again = false;
		finish(q);
		return; /* which continued with the other requests */
	}
}

static void finish(struct question *q)
{
	struct units *u = q->units;
	struct unit_answer a = { .name = q->name };

	if (q->again) {
		q->again = false;
		if (send_questions(q) >= 0)
			return;
		q->silent = true;
	}
	if (!q->silent)
		a.cgroup = q->failed || !q->cgroup ? "" : q->cgroup;
	a.fragment = q->fragment ?: "";
	a.dropins = q->dropins;
	a.policy = q->policy;
	q->policy = (struct policy){};
	u->ops->answer(&a, u->userdata);
	policy_done(&a.policy);
	question_free(q);
	send_next(u);
}

/* An error of the bus, not of systemd, which is not on the bus at this moment. */
static bool is_silence(const sd_bus_error *e)
{
	static const char *const names[] = {
		SD_BUS_ERROR_NO_REPLY,	      SD_BUS_ERROR_TIMEOUT,
		SD_BUS_ERROR_SERVICE_UNKNOWN, SD_BUS_ERROR_NAME_HAS_NO_OWNER,
		SD_BUS_ERROR_DISCONNECTED,
	};

	for (size_t i = 0; i < ARRAY_SIZE(names); i++)
		if (sd_bus_error_has_name(e, names[i]))
			return true;
	return false;
}

static int on_reply(sd_bus_message *m, void *userdata, sd_bus_error *error)
{
	static int (*const readers[])(struct question *, sd_bus_message *) = {
		[PROPERTY_WEIGHT] = read_weight,
		[PROPERTY_DEVICE_WEIGHT] = read_device_weights,
		[PROPERTY_CGROUP] = read_cgroup,
		[PROPERTY_FRAGMENT] = read_fragment,
		[PROPERTY_DROPINS] = read_dropins,
	};
	struct question *q = userdata;
	sd_bus_slot *slot = sd_bus_get_current_slot(q->units->bus);
	const sd_bus_error *e = sd_bus_message_get_error(m);
	int r = 0;

	for (size_t i = 0; i < PROPERTIES && !e; i++)
		if (q->slots[i] == slot)
			r = readers[i](q, m);
	if (e || r < 0) {
		/* A unit that is gone is normal. */
		log_debug("%s: %s, ignoring.", q->name,
			  e ? e->message : strerror(-r));
		q->failed = true;
		q->silent = e && is_silence(e);
	}
	if (--q->waiting == 0)
		finish(q);
	return r == -ENOMEM ? r : 0;
}

static int send_questions(struct question *q)
{
	const char *interface = interface_of(q->name);
	_cleanup_free_ char *path = NULL;
	int r;

	policy_done(&q->policy);
	free(q->cgroup);
	q->cgroup = NULL;
	free(q->fragment);
	q->fragment = NULL;
	strv_free(q->dropins);
	q->dropins = NULL;
	q->failed = false;
	q->silent = false;
	q->policy.source = POLICY_UNIT;
	q->policy.weight = WEIGHT_DEFAULT;
	q->policy.subject = strdup(q->name);
	if (!q->policy.subject)
		return -ENOMEM;
	r = sd_bus_path_encode(UNITS_PATH, q->name, &path);
	for (size_t i = 0; i < PROPERTIES && r >= 0; i++) {
		sd_bus_slot_unref(q->slots[i]);
		q->slots[i] = NULL;
		r = sd_bus_call_method_async(
			q->units->bus, &q->slots[i], SYSTEMD, path,
			"org.freedesktop.DBus.Properties", "Get", on_reply, q,
			"ss", properties[i].every ? SYSTEMD ".Unit" : interface,
			properties[i].name);
		if (r >= 0)
			q->waiting++;
	}
	return r;
}

int units_request(struct units *u, const char *name)
{
	struct question key = { .name = (char *)name }, *q, **found;

	if (!interface_of(name))
		return -EINVAL;
	found = tfind(&key, &u->index, by_name);
	if (found) {
		(*found)->again = (*found)->under_way;
		return 0;
	}
	q = calloc(1, sizeof(*q));
	if (!q)
		return -ENOMEM;
	q->units = u;
	q->name = strdup(name);
	if (!q->name || !tsearch(q, &u->index, by_name)) {
		free(q->name);
		free(q);
		return -ENOMEM;
	}
	TAILQ_INSERT_TAIL(&u->questions, q, list);
	u->n++;
	send_next(u);
	return 0;
}

bool units_waits_for(const struct units *u, const char *name)
{
	const struct question key = { .name = (char *)name };

	return tfind(&key, &u->index, by_name);
}

size_t units_pending(const struct units *u)
{
	return u->n;
}

/* ---- signals ---- */

static int on_unit_new(sd_bus_message *m, void *userdata, sd_bus_error *error)
{
	struct units *u = userdata;
	const char *name, *path;
	int r = sd_bus_message_read(m, "so", &name, &path);

	/* A reload makes all units appear, and all are requested after it. */
	if (r >= 0 && !u->reloading && unit_is_name(name))
		u->ops->appeared(name, u->userdata);
	return 0;
}

static int on_unit_removed(sd_bus_message *m, void *userdata,
			   sd_bus_error *error)
{
	struct units *u = userdata;
	struct unit_answer a = { .cgroup = "", .fragment = "" };
	const char *path;
	int r = sd_bus_message_read(m, "so", &a.name, &path);

	/* A request would make systemd load the unit again. */
	if (r >= 0 && !u->reloading && unit_is_name(a.name))
		u->ops->answer(&a, u->userdata);
	return 0;
}

static int on_properties_changed(sd_bus_message *m, void *userdata,
				 sd_bus_error *error)
{
	struct units *u = userdata;
	_cleanup_free_ char *name = NULL;
	const char *interface, *key;
	bool ours = false;
	int r;

	r = sd_bus_path_decode(sd_bus_message_get_path(m), UNITS_PATH, &name);
	if (r <= 0 || !unit_is_name(name))
		return r == -ENOMEM ? r : 0;
	r = sd_bus_message_read(m, "s", &interface);
	if (r >= 0)
		r = sd_bus_message_enter_container(m, 'a', "{sv}");
	while (r >= 0 && sd_bus_message_enter_container(m, 'e', "sv") > 0) {
		r = sd_bus_message_read(m, "s", &key);
		for (size_t i = 0; i < PROPERTIES && r >= 0; i++)
			ours |= streq(key, properties[i].name);
		if (r >= 0)
			r = sd_bus_message_skip(m, "v");
		if (r >= 0)
			r = sd_bus_message_exit_container(m);
	}
	if (r >= 0)
		r = sd_bus_message_exit_container(m);
	if (r >= 0)
		r = sd_bus_message_enter_container(m, 'a', "s");
	while (r >= 0 && (r = sd_bus_message_read(m, "s", &key)) > 0)
		for (size_t i = 0; i < PROPERTIES; i++)
			ours |= streq(key, properties[i].name);
	return ours && units_request(u, name) == -ENOMEM ? -ENOMEM : 0;
}

static int on_reloading(sd_bus_message *m, void *userdata, sd_bus_error *error)
{
	struct units *u = userdata;
	int active;

	if (sd_bus_message_read(m, "b", &active) < 0)
		return 0;
	u->reloading = active;
	if (!active)
		u->ops->all_changed(u->userdata);
	return 0;
}

static int on_subscribed(sd_bus_message *m, void *userdata, sd_bus_error *error)
{
	const sd_bus_error *e = sd_bus_message_get_error(m);

	/* systemd keeps its subscribers when it executes itself anew. */
	if (e && !sd_bus_error_has_name(e, SYSTEMD ".AlreadySubscribed"))
		log_warning("systemd refuses to send signals: %s", e->message);
	return 0;
}

static int subscribe(struct units *u)
{
	return sd_bus_call_method_async(u->bus, NULL, SYSTEMD, SYSTEMD_PATH,
					SYSTEMD_MANAGER, "Subscribe",
					on_subscribed, u, "");
}

/* "systemctl daemon-reexec", and a systemd that appears on the bus after the daemon. */
static int on_owner_changed(sd_bus_message *m, void *userdata,
			    sd_bus_error *error)
{
	struct units *u = userdata;
	const char *name, *before, *after;

	if (sd_bus_message_read(m, "sss", &name, &before, &after) >= 0 &&
	    *after) {
		u->reloading = false;
		subscribe(u);
		u->ops->all_changed(u->userdata);
	}
	return 0;
}

int units_new(sd_bus *bus, const struct unit_ops *ops, void *userdata,
	      struct units **ret)
{
	static const struct {
		const char *member;
		sd_bus_message_handler_t handler;
	} signals[] = {
		{ "UnitNew", on_unit_new },
		{ "UnitRemoved", on_unit_removed },
		{ "Reloading", on_reloading },
	};
	_cleanup_(units_freep) struct units *u = calloc(1, sizeof(*u));
	size_t n = 0;
	int r = 0;

	if (!u)
		return -ENOMEM;
	u->bus = sd_bus_ref(bus);
	u->ops = ops;
	u->userdata = userdata;
	TAILQ_INIT(&u->questions);
	for (size_t i = 0; i < ARRAY_SIZE(signals) && r >= 0; i++)
		r = sd_bus_match_signal(bus, &u->slots[n++], SYSTEMD,
					SYSTEMD_PATH, SYSTEMD_MANAGER,
					signals[i].member, signals[i].handler,
					u);
	if (r >= 0)
		r = sd_bus_add_match(
			bus, &u->slots[n++],
			"type='signal',sender='" SYSTEMD "',"
			"interface='org.freedesktop.DBus.Properties',"
			"member='PropertiesChanged',"
			"path_namespace='" UNITS_PATH "'",
			on_properties_changed, u);
	if (r >= 0)
		r = sd_bus_add_match(
			bus, &u->slots[n++],
			"type='signal',sender='org.freedesktop.DBus',"
			"interface='org.freedesktop.DBus',"
			"member='NameOwnerChanged',arg0='" SYSTEMD "'",
			on_owner_changed, u);
	if (r >= 0)
		r = subscribe(u);
	if (r < 0)
		return r;
	*ret = TAKE_PTR(u);
	return 0;
}

struct units *units_free(struct units *u)
{
	struct question *q;

	if (!u)
		return NULL;
	while ((q = TAILQ_FIRST(&u->questions)))
		question_free(q);
	for (size_t i = 0; i < ARRAY_SIZE(u->slots); i++)
		sd_bus_slot_unref(u->slots[i]);
	sd_bus_unref(u->bus);
	free(u);
	return NULL;
}
