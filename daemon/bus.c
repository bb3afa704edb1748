/* SPDX-License-Identifier: LGPL-2.1-or-later */

/*
 * The window: org.sutro1 on the system bus, documented in
 * Documentation/org.sutro1.xml. The vtable at the end is the only source of the API.
 *
 * Reading is open. What changes something runs at once for root, and for others
 * after polkit said yes: the call is kept, polkit is asked, and its answer runs the
 * method or refuses it. Explain is kept in the same way until there are two samples.
 */

#include <sys/socket.h>
#include <sys/sysmacros.h>

#include "bus.h"
#include "dump.h"
#include "manager.h"

#define POLKIT "org.freedesktop.PolicyKit1"
#define POLKIT_PATH "/org/freedesktop/PolicyKit1/Authority"
#define POLKIT_INTERFACE POLKIT ".Authority"
#define POLKIT_ALLOW_INTERACTION 1U
#define ACTION_MANAGE "org.sutro1.manage-devices"

#define ERROR_NO_SUCH_UNIT "org.sutro1.Error.NoSuchUnit"
#define ERROR_NO_SUCH_PATH "org.sutro1.Error.NoSuchPath"
#define ERROR_NO_QUEUE "org.sutro1.Error.NoQueue"
#define ERROR_NOT_SUPPORTED "org.sutro1.Error.NotSupported"

/* The reply of RequestName: we are the owner. */
#define REQUEST_NAME_OWNER 1U

/* No call has a reason to name more devices than a machine has. */
#define PATHS_MAX 1024

/* ---- pieces of messages ---- */

static int append_strings(sd_bus_message *r, const char *key, char *const *l)
{
	int err;

	err = sd_bus_message_open_container(r, 'e', "sv");
	if (err >= 0)
		err = sd_bus_message_append(r, "s", key);
	if (err >= 0)
		err = sd_bus_message_open_container(r, 'v', "as");
	if (err >= 0)
		err = sd_bus_message_append_strv(r, (char **)l);
	if (err >= 0)
		err = sd_bus_message_close_container(r);
	return err >= 0 ? sd_bus_message_close_container(r) : err;
}

/* Node names of devices as "as". */
static int append_nodes(sd_bus_message *r, struct device *const *l, size_t n)
{
	int err = sd_bus_message_open_container(r, 'a', "s");

	for (size_t i = 0; i < n && err >= 0; i++)
		err = sd_bus_message_append(r, "s", l[i]->node);
	return err >= 0 ? sd_bus_message_close_container(r) : err;
}

static int append_devno(sd_bus_message *r, const struct device *d)
{
	char text[32];

	snprintf(text, sizeof(text), "%u:%u", major(d->devno), minor(d->devno));
	return sd_bus_message_append(r, "{sv}", "devno", "s", text);
}

static int send_reply(sd_bus_message *reply, int r)
{
	return r < 0 ? r : sd_bus_message_send(reply);
}

/* ---- errors ---- */

static int path_error(sd_bus_error *error, const char *path, int err)
{
	if (err == -ENOMEM)
		return err;
	if (err == -EINVAL)
		return sd_bus_error_setf(
			error, ERROR_NO_SUCH_PATH,
			"\"%s\" is no absolute path, it has to "
			"begin with \"/\".",
			path);
	if (err == -ENODEV)
		return sd_bus_error_setf(error, ERROR_NO_QUEUE,
					 "%s is not on a block device with a "
					 "request queue (tmpfs, a network or "
					 "other virtual file system).",
					 path);
	return sd_bus_error_setf(error, ERROR_NO_SUCH_PATH, "%s: %s.", path,
				 strerror(-err));
}

static int resolve(struct manager *m, const char *path, struct device **ret,
		   sd_bus_error *error)
{
	struct device *d;
	int err;

	err = topology_resolve(m->topology, &m->roots, path, &d);
	if (!err && !d->n_leaves)
		err = -ENODEV;
	if (err)
		return path_error(error, path, err);
	*ret = d;
	return 0;
}

/* ---- authority ---- */

typedef int (*change_t)(struct manager *m, sd_bus_message *call,
			sd_bus_error *error);

struct authorization {
	struct manager *m;
	sd_bus_message *call;
	change_t change;
};

static int refuse(sd_bus_error *error, const char *why)
{
	return sd_bus_error_setf(error, SD_BUS_ERROR_ACCESS_DENIED,
				 "Not authorized for " ACTION_MANAGE ": %s. "
				 "Root always is.",
				 why);
}

static int on_polkit(sd_bus_message *reply, void *userdata,
		     sd_bus_error *unused)
{
	struct authorization *a = userdata;
	_cleanup_(sd_bus_error_free) sd_bus_error error = SD_BUS_ERROR_NULL;
	const sd_bus_error *e = sd_bus_message_get_error(reply);
	int allowed = false, challenge = false, r;

	if (e) {
		r = refuse(&error, e->message);
	} else {
		r = sd_bus_message_enter_container(reply, 'r', "bba{ss}");
		if (r >= 0)
			r = sd_bus_message_read(reply, "bb", &allowed,
						&challenge);
		if (r >= 0 && !allowed)
			r = refuse(&error, challenge ? "a password is needed"
						     : "polkit says no");
		if (r >= 0)
			r = a->change(a->m, a->call, &error);
	}
	if (r < 0)
		sd_bus_reply_method_errno(a->call, r, &error);
	return 0;
}

static void authorization_free(void *userdata)
{
	struct authorization *a = userdata;

	sd_bus_message_unref(a->call);
	free(a);
}

static bool caller_is_root(sd_bus_message *call)
{
	sd_bus_creds *creds = NULL;
	uid_t uid = (uid_t)-1;

	if (sd_bus_query_sender_creds(call, SD_BUS_CREDS_EUID, &creds) >= 0)
		sd_bus_creds_get_euid(creds, &uid);
	sd_bus_creds_unref(creds);
	return uid == 0;
}

static int with_authority(struct manager *m, sd_bus_message *call,
			  change_t change, sd_bus_error *error)
{
	struct authorization *a;
	sd_bus_slot *slot = NULL;
	bool interactive;
	int r;

	if (caller_is_root(call))
		return change(m, call, error);
	interactive = sd_bus_message_get_allow_interactive_authorization(call) >
		      0;
	a = calloc(1, sizeof(*a));
	if (!a)
		return -ENOMEM;
	*a = (struct authorization){ m, sd_bus_message_ref(call), change };
	r = sd_bus_call_method_async(
		m->bus, &slot, POLKIT, POLKIT_PATH, POLKIT_INTERFACE,
		"CheckAuthorization", on_polkit, a, "(sa{sv})sa{ss}us",
		"system-bus-name", 1, "name", "s",
		sd_bus_message_get_sender(call), ACTION_MANAGE, 0,
		interactive ? POLKIT_ALLOW_INTERACTION : 0U, "");
	if (r < 0) {
		authorization_free(a);
		return refuse(error, "polkit cannot be asked");
	}
	sd_bus_slot_set_destroy_callback(slot, authorization_free);
	sd_bus_slot_set_floating(slot, true);
	sd_bus_slot_unref(slot);
	return 1;
}

/* ---- ListDevices, ResolvePath ---- */

static int append_device(struct manager *m, sd_bus_message *r,
			 const struct device *d)
{
	_cleanup_strv_ char **slaves = NULL;
	int err = 0;

	for (size_t i = 0; i < d->n_slaves && !err; i++)
		err = strv_add(&slaves, d->slaves[i]->name);
	if (!err)
		err = sd_bus_message_open_container(r, 'a', "{sv}");
	if (err >= 0)
		err = sd_bus_message_append(r, "{sv}{sv}{sv}", "node", "s",
					    d->node, "name", "s", d->name,
					    "kind", "s",
					    device_kind_name(d->kind));
	if (err >= 0)
		err = append_devno(r, d);
	if (err >= 0)
		err = append_strings(r, "slaves", slaves);
	if (err >= 0)
		err = append_strings(r, "aliases", d->aliases);
	if (err >= 0)
		err = sd_bus_message_append(r, "{sv}{sv}{sv}", "leaf", "b",
					    d->leaf, "managed", "b",
					    leaf_is_managed(&m->roots, d),
					    "size_bytes", "t", d->size_bytes);
	if (err >= 0 && d->leaf)
		err = sd_bus_message_append(r, "{sv}", "scheduler", "s",
					    d->scheduler);
	return err >= 0 ? sd_bus_message_close_container(r) : err;
}

static int method_list_devices(sd_bus_message *call, void *userdata,
			       sd_bus_error *error)
{
	_cleanup_(sd_bus_message_unrefp) sd_bus_message *reply = NULL;
	struct manager *m = userdata;
	int r;

	r = sd_bus_message_new_method_return(call, &reply);
	if (r >= 0)
		r = sd_bus_message_open_container(reply, 'a', "a{sv}");
	for (size_t i = 0; i < m->topology->n_devices && r >= 0; i++)
		r = append_device(m, reply, m->topology->devices[i]);
	if (r >= 0)
		r = sd_bus_message_close_container(reply);
	return send_reply(reply, r);
}

static char *step_text(const struct device *d)
{
	struct text t = {};

	text_add(&t, "%s", d->node);
	if (d->aliases)
		text_add(&t, " (%s)", d->aliases[0]);
	text_add(&t, " is %s %s", d->leaf ? "a leaf:" : "a device of kind",
		 device_kind_name(d->kind));
	for (size_t i = 0; i < d->n_slaves && !d->leaf; i++)
		text_add(&t, "%s %s", i ? " and" : " on", d->slaves[i]->node);
	if (d->leaf)
		text_add(&t, " with scheduler %s", d->scheduler);
	return t.p;
}

static int append_steps(sd_bus_message *r, const struct device *d,
			uint32_t level)
{
	_cleanup_free_ char *text = step_text(d);
	int err;

	if (!text)
		return -ENOMEM;
	err = sd_bus_message_append(r, "a{sv}", 4, "device", "s", d->node,
				    "kind", "s", device_kind_name(d->kind),
				    "level", "u", level, "text", "s", text);
	for (size_t i = 0; i < d->n_slaves && !d->leaf && err >= 0; i++)
		err = append_steps(r, d->slaves[i], level + 1);
	return err;
}

static int method_resolve_path(sd_bus_message *call, void *userdata,
			       sd_bus_error *error)
{
	_cleanup_(sd_bus_message_unrefp) sd_bus_message *reply = NULL;
	struct manager *m = userdata;
	struct device *d;
	const char *path;
	int r;

	r = sd_bus_message_read(call, "s", &path);
	if (r >= 0)
		r = resolve(m, path, &d, error);
	if (r >= 0)
		r = sd_bus_message_new_method_return(call, &reply);
	if (r >= 0)
		r = sd_bus_message_append(reply, "s", d->node);
	if (r >= 0)
		r = append_nodes(reply, d->leaves, d->n_leaves);
	if (r >= 0)
		r = sd_bus_message_open_container(reply, 'a', "a{sv}");
	if (r >= 0)
		r = append_steps(reply, d, 0);
	if (r >= 0)
		r = sd_bus_message_close_container(reply);
	return send_reply(reply, r);
}

/* ---- ListUnits, Explain ---- */

/* The keys that ListUnits and Explain share. */
static int append_unit(sd_bus_message *r, const struct cgroup *c)
{
	const struct policy *p = &c->policy;
	int err;

	err = sd_bus_message_append(r, "{sv}{sv}{sv}{sv}", "unit", "s",
				    c->origin == CGROUP_UNIT ? p->subject : "",
				    "cgroup", "s", c->path, "weight", "t",
				    p->weight, "weight_set", "b",
				    p->weight_set);
	if (err >= 0)
		err = sd_bus_message_open_container(r, 'e', "sv");
	if (err >= 0)
		err = sd_bus_message_append(r, "s", "device_weights");
	if (err >= 0)
		err = sd_bus_message_open_container(r, 'v', "a(st)");
	if (err >= 0)
		err = sd_bus_message_open_container(r, 'a', "(st)");
	for (size_t i = 0; i < p->n_statements && err >= 0; i++)
		err = sd_bus_message_append(r, "(st)", p->statements[i].path,
					    p->statements[i].weight);
	for (int i = 0; i < 3 && err >= 0; i++)
		err = sd_bus_message_close_container(r);
	return err;
}

static int method_list_units(sd_bus_message *call, void *userdata,
			     sd_bus_error *error)
{
	_cleanup_(sd_bus_message_unrefp) sd_bus_message *reply = NULL;
	struct manager *m = userdata;
	struct cgroup *root = cgroup_tree_root(m->tree);
	int r;

	r = sd_bus_message_new_method_return(call, &reply);
	if (r >= 0)
		r = sd_bus_message_open_container(reply, 'a', "a{sv}");
	for (struct cgroup *c = root; c && r >= 0; c = cgroup_next(root, c)) {
		if (c->origin != CGROUP_UNIT)
			continue;
		r = sd_bus_message_open_container(reply, 'a', "{sv}");
		if (r >= 0)
			r = append_unit(reply, c);
		if (r >= 0)
			r = sd_bus_message_close_container(reply);
	}
	if (r >= 0)
		r = sd_bus_message_close_container(reply);
	return send_reply(reply, r);
}

static int append_explained_leaf(struct manager *m, sd_bus_message *r,
				 const struct cgroup *c,
				 const struct device *leaf)
{
	struct asked asked = policy_weight(&c->policy, leaf);
	struct usage usage = sample_usage(c, leaf);
	_cleanup_free_ char *reason = policy_reason(&c->policy, &asked);
	struct actuation e;
	int err;

	if (!reason)
		return -ENOMEM;
	err = actuate_explain(&m->actuator, c, leaf, &e);
	if (err)
		return err;
	err = sd_bus_message_open_container(r, 'a', "{sv}");
	if (err >= 0)
		err = append_devno(r, leaf);
	if (err >= 0)
		err = sd_bus_message_append(
			r, "{sv}{sv}{sv}{sv}{sv}{sv}{sv}{sv}", "leaf", "s",
			leaf->node, "scheduler", "s", leaf->scheduler,
			"backend", "s", e.backend, "asked", "t", asked.weight,
			"reason", "s", reason, "file", "s", e.file, "written",
			"s", e.written, "read_back", "s", e.read_back);
	if (err >= 0)
		err = sd_bus_message_append(r, "{sv}{sv}{sv}{sv}{sv}",
					    "hweight", "d",
					    sample_hweight(c, leaf), "got", "d",
					    sample_got(c, leaf), "time_ns", "t",
					    usage.time_ns, "rbytes", "t",
					    usage.rbytes, "wbytes", "t",
					    usage.wbytes);
	if (err >= 0)
		err = sd_bus_message_close_container(r);
	actuation_done(&e);
	return err;
}

static int append_explained_leaves(struct manager *m, sd_bus_message *r,
				   const struct cgroup *c,
				   const struct device *d)
{
	int err;

	err = sd_bus_message_open_container(r, 'e', "sv");
	if (err >= 0)
		err = sd_bus_message_append(r, "s", "leaves");
	if (err >= 0)
		err = sd_bus_message_open_container(r, 'v', "aa{sv}");
	if (err >= 0)
		err = sd_bus_message_open_container(r, 'a', "a{sv}");
	for (size_t i = 0; i < m->topology->n_devices && err >= 0; i++) {
		const struct device *leaf = m->topology->devices[i];

		if (leaf->leaf && (!d || device_stands_on(d, leaf)))
			err = append_explained_leaf(m, r, c, leaf);
	}
	for (int i = 0; i < 3 && err >= 0; i++)
		err = sd_bus_message_close_container(r);
	return err;
}

static int explain(struct manager *m, sd_bus_message *call, sd_bus_error *error)
{
	_cleanup_(sd_bus_message_unrefp) sd_bus_message *reply = NULL;
	const char *unit, *path;
	struct device *d = NULL;
	struct cgroup *c;
	int r;

	r = sd_bus_message_read(call, "ss", &unit, &path);
	if (r < 0)
		return r;
	c = manager_find_unit(m, unit);
	if (!c)
		return sd_bus_error_setf(error, ERROR_NO_SUCH_UNIT,
					 "%s has no control group. Is it a "
					 "running service, scope or slice? A "
					 "cgroup begins with \"/\".",
					 unit);
	if (*path)
		r = resolve(m, path, &d, error);
	if (r >= 0)
		r = sd_bus_message_new_method_return(call, &reply);
	if (r >= 0)
		r = sd_bus_message_open_container(reply, 'a', "{sv}");
	if (r >= 0)
		r = append_unit(reply, c);
	if (r >= 0)
		r = sd_bus_message_append(reply, "{sv}", "device", "s",
					  d ? d->node : "");
	if (r >= 0)
		r = append_explained_leaves(m, reply, c, d);
	if (r >= 0)
		r = sd_bus_message_close_container(reply);
	return send_reply(reply, r);
}

/**
 * struct bus_waiter - a call of Explain that waits for samples
 */
struct bus_waiter {
	sd_bus_message *call;
	struct bus_waiter *next;
};

static uint64_t now_usec(const struct manager *m)
{
	uint64_t usec = 0;

	sd_event_now(m->event, CLOCK_MONOTONIC, &usec);
	return usec;
}

static int method_explain(sd_bus_message *call, void *userdata,
			  sd_bus_error *error)
{
	struct manager *m = userdata;
	struct bus_waiter *w;
	int r;

	r = manager_want_samples(m);
	if (r < 0)
		return r;
	if (sampler_is_fresh(&m->sampler, now_usec(m)))
		return explain(m, call, error);
	w = calloc(1, sizeof(*w));
	if (!w)
		return -ENOMEM;
	*w = (struct bus_waiter){ sd_bus_message_ref(call), m->waiters };
	m->waiters = w;
	return 1;
}

void bus_samples_taken(struct manager *m)
{
	struct bus_waiter *w;

	if (!sampler_is_fresh(&m->sampler, now_usec(m)))
		return;
	while ((w = m->waiters)) {
		_cleanup_(sd_bus_error_free)
			sd_bus_error error = SD_BUS_ERROR_NULL;
		int r;

		m->waiters = w->next;
		r = explain(m, w->call, &error);
		if (r < 0)
			sd_bus_reply_method_errno(w->call, r, &error);
		sd_bus_message_unref(w->call);
		free(w);
	}
}

/* ---- UseDevices, ReleaseDevices, Reload ---- */

/* The leaves under all @paths, each once, in the order of the topology. */
static int mark_leaves(struct manager *m, char **paths, bool *marks,
		       sd_bus_error *error)
{
	for (char **p = paths; p && *p; p++) {
		struct device *d;
		int r = resolve(m, *p, &d, error);

		if (r < 0)
			return r;
		for (size_t i = 0; i < m->topology->n_devices; i++)
			if (device_stands_on(d, m->topology->devices[i]))
				marks[i] = true;
	}
	return 0;
}

static int append_result(sd_bus_message *r, const struct device *leaf,
			 const struct leaf_result *result)
{
	return sd_bus_message_append(r, "a{sv}", 5, "leaf", "s", leaf->node,
				     "scheduler", "s", leaf->scheduler,
				     "previous", "s", result->previous,
				     "changed", "b", result->changed, "error",
				     "s", result->error ?: "");
}

static int change_leaves(struct manager *m, sd_bus_message *reply,
			 const bool *marks, bool use, sd_bus_error *error)
{
	_cleanup_free_ char *failure = NULL;
	size_t good = 0, bad = 0;
	int r = 0;

	for (size_t i = 0; i < m->topology->n_devices && r >= 0; i++) {
		struct device *leaf = m->topology->devices[i];
		struct leaf_result result = {};

		if (!marks[i])
			continue;
		r = use ? leaf_use(&m->roots, leaf, m->dry_run, &result)
			: leaf_release(&m->roots, leaf, m->dry_run, &result);
		if (r >= 0)
			r = append_result(reply, leaf, &result);
		if (result.changed)
			manager_leaf_switched(m, leaf);
		if (!result.error) {
			good++;
		} else {
			bad++;
			free(failure);
			failure = TAKE_PTR(result.error);
		}
		leaf_result_done(&result);
	}
	if (r >= 0 && bad && !good)
		return sd_bus_error_setf(error, ERROR_NOT_SUPPORTED, "%s",
					 failure);
	return r;
}

static int change_devices(struct manager *m, sd_bus_message *call, bool use,
			  sd_bus_error *error)
{
	_cleanup_(sd_bus_message_unrefp) sd_bus_message *reply = NULL;
	_cleanup_strv_ char **paths = NULL;
	_cleanup_free_ bool *marks = NULL;
	size_t n = m->topology->n_devices;
	int r;

	marks = calloc(n + 1, sizeof(*marks));
	if (!marks)
		return -ENOMEM;
	r = sd_bus_message_read_strv(call, &paths);
	if (r < 0)
		return r;
	if (strv_length(paths) > PATHS_MAX)
		return sd_bus_error_setf(error, SD_BUS_ERROR_LIMITS_EXCEEDED,
					 "More than %d paths.", PATHS_MAX);
	r = mark_leaves(m, paths, marks, error);
	for (size_t i = 0; i < n && !use && !paths; i++)
		marks[i] = leaf_is_managed(&m->roots, m->topology->devices[i]);
	if (r >= 0)
		r = sd_bus_message_new_method_return(call, &reply);
	if (r >= 0)
		r = sd_bus_message_open_container(reply, 'a', "a{sv}");
	if (r >= 0)
		r = change_leaves(m, reply, marks, use, error);
	if (r >= 0)
		r = sd_bus_message_close_container(reply);
	return send_reply(reply, r);
}

static int use_devices(struct manager *m, sd_bus_message *call,
		       sd_bus_error *error)
{
	return change_devices(m, call, true, error);
}

static int release_devices(struct manager *m, sd_bus_message *call,
			   sd_bus_error *error)
{
	return change_devices(m, call, false, error);
}

static int reload(struct manager *m, sd_bus_message *call, sd_bus_error *error)
{
	if (manager_reload(m) < 0)
		return sd_bus_error_set(error, SD_BUS_ERROR_FAILED,
					"The configuration has mistakes and "
					"the last good one stays in force; see "
					"\"journalctl -u sutrod\".");
	return sd_bus_reply_method_return(call, "");
}

static int method_use_devices(sd_bus_message *call, void *userdata,
			      sd_bus_error *error)
{
	return with_authority(userdata, call, use_devices, error);
}

static int method_release_devices(sd_bus_message *call, void *userdata,
				  sd_bus_error *error)
{
	return with_authority(userdata, call, release_devices, error);
}

static int method_reload(sd_bus_message *call, void *userdata,
			 sd_bus_error *error)
{
	return with_authority(userdata, call, reload, error);
}

/* ---- Dump, properties, signal ---- */

static int method_dump(sd_bus_message *call, void *userdata,
		       sd_bus_error *error)
{
	_cleanup_free_ char *text = NULL;
	int r = dump_manager(userdata, &text);

	return r < 0 ? r : sd_bus_reply_method_return(call, "s", text);
}

static int property_version(sd_bus *bus, const char *path,
			    const char *interface, const char *property,
			    sd_bus_message *reply, void *userdata,
			    sd_bus_error *error)
{
	return sd_bus_message_append(reply, "s", SUTRO_VERSION);
}

static int property_dry_run(sd_bus *bus, const char *path,
			    const char *interface, const char *property,
			    sd_bus_message *reply, void *userdata,
			    sd_bus_error *error)
{
	struct manager *m = userdata;

	return sd_bus_message_append(reply, "b", m->dry_run);
}

static int property_managed_leaves(sd_bus *bus, const char *path,
				   const char *interface, const char *property,
				   sd_bus_message *reply, void *userdata,
				   sd_bus_error *error)
{
	struct manager *m = userdata;
	int r;

	r = sd_bus_message_open_container(reply, 'a', "s");
	for (size_t i = 0; i < m->topology->n_devices && r >= 0; i++) {
		const struct device *d = m->topology->devices[i];

		if (leaf_is_managed(&m->roots, d))
			r = sd_bus_message_append(reply, "s", d->node);
	}
	return r < 0 ? r : sd_bus_message_close_container(reply);
}

void bus_weight_changed(struct manager *m, const struct cgroup *c,
			const struct device *leaf, uint64_t old, uint64_t new,
			const char *reason)
{
	int r;

	r = sd_bus_emit_signal(m->bus, BUS_PATH, BUS_INTERFACE, "WeightChanged",
			       "sstts", c->path, leaf ? leaf->node : "", old,
			       new, reason);
	if (r < 0)
		log_debug_errno(r, "Cannot emit WeightChanged: %m, ignoring.");
}

static const sd_bus_vtable vtable[] = {
	SD_BUS_VTABLE_START(0),
	SD_BUS_METHOD_WITH_ARGS(
		"ListDevices", SD_BUS_NO_ARGS, SD_BUS_RESULT("aa{sv}", devices),
		method_list_devices, SD_BUS_VTABLE_UNPRIVILEGED),
	SD_BUS_METHOD_WITH_ARGS(
		"ResolvePath", SD_BUS_ARGS("s", path),
		SD_BUS_RESULT("s", device, "as", leaves, "aa{sv}", steps),
		method_resolve_path, SD_BUS_VTABLE_UNPRIVILEGED),
	SD_BUS_METHOD_WITH_ARGS("ListUnits", SD_BUS_NO_ARGS,
				SD_BUS_RESULT("aa{sv}", units),
				method_list_units, SD_BUS_VTABLE_UNPRIVILEGED),
	SD_BUS_METHOD_WITH_ARGS("Explain", SD_BUS_ARGS("s", unit, "s", path),
				SD_BUS_RESULT("a{sv}", explanation),
				method_explain, SD_BUS_VTABLE_UNPRIVILEGED),
	SD_BUS_METHOD_WITH_ARGS("UseDevices", SD_BUS_ARGS("as", paths),
				SD_BUS_RESULT("aa{sv}", results),
				method_use_devices, SD_BUS_VTABLE_UNPRIVILEGED),
	SD_BUS_METHOD_WITH_ARGS("ReleaseDevices", SD_BUS_ARGS("as", paths),
				SD_BUS_RESULT("aa{sv}", results),
				method_release_devices,
				SD_BUS_VTABLE_UNPRIVILEGED),
	SD_BUS_METHOD_WITH_ARGS("Reload", SD_BUS_NO_ARGS, SD_BUS_NO_RESULT,
				method_reload, SD_BUS_VTABLE_UNPRIVILEGED),
	SD_BUS_METHOD_WITH_ARGS("Dump", SD_BUS_NO_ARGS,
				SD_BUS_RESULT("s", text), method_dump,
				SD_BUS_VTABLE_UNPRIVILEGED),
	SD_BUS_SIGNAL_WITH_ARGS("WeightChanged",
				SD_BUS_ARGS("s", cgroup, "s", leaf, "t", old,
					    "t", new, "s", reason),
				0),
	SD_BUS_PROPERTY("Version", "s", property_version, 0,
			SD_BUS_VTABLE_PROPERTY_CONST),
	SD_BUS_PROPERTY("DryRun", "b", property_dry_run, 0,
			SD_BUS_VTABLE_PROPERTY_CONST),
	SD_BUS_PROPERTY("ManagedLeaves", "as", property_managed_leaves, 0,
			SD_BUS_VTABLE_PROPERTY_EMITS_CHANGE),
	SD_BUS_VTABLE_END,
};

/* ---- life ---- */

static int on_name(sd_bus_message *reply, void *userdata, sd_bus_error *error)
{
	struct manager *m = userdata;
	const sd_bus_error *e = sd_bus_message_get_error(reply);
	uint32_t code = 0;

	if (!e)
		sd_bus_message_read(reply, "u", &code);
	if (code == REQUEST_NAME_OWNER)
		return 0;
	log_error("Cannot take the bus name " BUS_NAME "%s%s. Is another "
		  "sutrod running?",
		  e ? ": " : "", e ? e->message : "");
	return sd_event_exit(m->event, -EBUSY);
}

int bus_open(struct manager *m)
{
	int r;

	r = sd_bus_open_system(&m->bus);
	if (r < 0)
		return log_error_errno(r, "Cannot connect to the system bus: "
					  "%m");
	/* Without the bus there is no systemd to follow; the service manager
	 * starts us again when it is back. Weights stay.
	 */
	r = sd_bus_set_exit_on_disconnect(m->bus, true);
	if (r >= 0)
		r = sd_bus_add_object_vtable(m->bus, &m->vtable, BUS_PATH,
					     BUS_INTERFACE, vtable, m);
	if (r >= 0)
		r = sd_bus_attach_event(m->bus, m->event,
					SD_EVENT_PRIORITY_NORMAL);
	if (r >= 0)
		r = sd_bus_request_name_async(m->bus, NULL, BUS_NAME, 0,
					      on_name, m);
	if (r < 0)
		return log_error_errno(r, "Cannot serve on the system bus: %m");
	return 0;
}

void bus_close(struct manager *m)
{
	struct bus_waiter *w;

	while ((w = m->waiters)) {
		m->waiters = w->next;
		sd_bus_message_unref(w->call);
		free(w);
	}
	m->vtable = sd_bus_slot_unref(m->vtable);
}

/* ---- introspection without a bus ---- */

static int connect_pair(sd_bus **ret_server, sd_bus **ret_client)
{
	sd_id128_t id;
	int fds[2], r;

	if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0,
		       fds) < 0)
		return -errno;
	r = sd_id128_randomize(&id);
	if (r >= 0)
		r = sd_bus_new(ret_server);
	if (r >= 0)
		r = sd_bus_set_fd(*ret_server, fds[0], fds[0]);
	if (r >= 0)
		r = sd_bus_set_server(*ret_server, true, id);
	if (r >= 0)
		r = sd_bus_start(*ret_server);
	if (r >= 0)
		r = sd_bus_new(ret_client);
	if (r >= 0)
		r = sd_bus_set_fd(*ret_client, fds[1], fds[1]);
	if (r >= 0)
		r = sd_bus_start(*ret_client);
	return r;
}

static int on_xml(sd_bus_message *reply, void *userdata, sd_bus_error *error)
{
	const char *xml, *begin, *end;
	char **ret = userdata;

	if (sd_bus_message_read(reply, "s", &xml) < 0)
		return -EIO;
	/* Without the interfaces that sd-bus adds to every object. */
	begin = strstr(xml, " <interface name=\"" BUS_INTERFACE "\">");
	end = begin ? strstr(begin, "</interface>\n") : NULL;
	if (!end)
		return -EIO;
	*ret = asprintf_or_null("<node>\n%.*s</node>\n",
				(int)(end + strlen("</interface>\n") - begin),
				begin);
	return *ret ? 0 : -ENOMEM;
}

int bus_introspect(char **ret)
{
	_cleanup_(sd_bus_flush_close_unrefp) sd_bus *server = NULL;
	_cleanup_(sd_bus_flush_close_unrefp) sd_bus *client = NULL;
	_cleanup_free_ char *xml = NULL;
	int r;

	r = connect_pair(&server, &client);
	if (r >= 0)
		r = sd_bus_add_object_vtable(server, NULL, BUS_PATH,
					     BUS_INTERFACE, vtable, NULL);
	if (r >= 0)
		r = sd_bus_call_method_async(
			client, NULL, NULL, BUS_PATH,
			"org.freedesktop.DBus.Introspectable", "Introspect",
			on_xml, &xml, "");
	while (r >= 0 && !xml) {
		int busy;

		r = sd_bus_process(server, NULL);
		busy = r;
		if (r >= 0)
			r = sd_bus_process(client, NULL);
		if (r == 0 && busy == 0 && !xml)
			r = sd_bus_wait(client, 10000);
	}
	if (r < 0)
		return r;
	*ret = TAKE_PTR(xml);
	return 0;
}
