/* SPDX-License-Identifier: LGPL-2.1-or-later */

/*
 * Promises of bus clients. A program that sets floors for a while should not have to
 * take them back: when it is gone from the bus, however it ended, so are they.
 *
 * The daemon does not wait for the bus. It subscribes to the disconnection of the client, and then
 * requests the owner of its name, in case the client has left before. (sd_bus_track_add_name()
 * waits for that answer, for up to 25 s.)
 */

#include <sys/queue.h>

#include "host/event.h"
#include "policy/client.h"

#define DRIVER "org.freedesktop.DBus"
#define DRIVER_PATH "/org/freedesktop/DBus"

struct about {
	char *unit;
	struct promises promises;
	LIST_ENTRY(about) list;
};

/**
 * struct client - a connection to the bus
 * @watch: reports its disconnection
 * @owner: the request whether it is still there
 */
struct client {
	struct clients *clients;
	char *name;
	sd_bus_slot *watch;
	sd_bus_slot *owner;
	LIST_HEAD(, about) about;
	struct client *next;
};

static void about_free(struct about *a)
{
	LIST_REMOVE(a, list);
	promises_done(&a->promises);
	free(a->unit);
	free(a);
}

static void client_free(struct client *c)
{
	struct about *a;

	for (struct client **p = &c->clients->first; *p; p = &(*p)->next)
		if (*p == c) {
			*p = c->next;
			break;
		}
	while ((a = LIST_FIRST(&c->about)))
		about_free(a);
	sd_bus_slot_unref(c->watch);
	sd_bus_slot_unref(c->owner);
	free(c->name);
	free(c);
}

static int forget_client(struct client *c)
{
	struct clients *all = c->clients;
	_cleanup_strv_ char **units = NULL;
	struct about *a;

	LIST_FOREACH(a, &c->about, list) {
		log_event(EVENT_POLICY_RESET, LOG_INFO,
			  EVENT_FIELDS({ "SUTRO_UNIT", a->unit },
				       { "SUTRO_LIFETIME", "client" },
				       { "SUTRO_CLIENT", c->name }),
			  "%s: the policy of the client %s is reset, which "
			  "left the bus.",
			  a->unit, c->name);
		if (strv_add(&units, a->unit) < 0)
			return log_oom();
	}
	client_free(c);
	for (char **u = units; u && *u; u++)
		all->changed(*u, all->userdata);
	return 0;
}

static int on_owner_changed(sd_bus_message *m, void *userdata,
			    sd_bus_error *unused)
{
	const char *name, *old, *new;
	int r = sd_bus_message_read(m, "sss", &name, &old, &new);

	return r < 0 || *new ? r : forget_client(userdata);
}

/* An error: the client has left, or the bus does not report when it leaves. */
static int on_watched(sd_bus_message *reply, void *userdata,
		      sd_bus_error *unused)
{
	const struct client *c = userdata;
	const sd_bus_error *e = sd_bus_message_get_error(reply);

	if (!e)
		return 0;
	log_debug("The client %s of the bus: %s", c->name, e->message);
	return forget_client(userdata);
}

/* The bus answers in order, so no disconnection is missed between the two. */
static int watch_client(struct client *c)
{
	_cleanup_free_ char *rule = NULL;
	int r;

	rule = asprintf_or_null("type='signal',sender='" DRIVER "',"
				"path='" DRIVER_PATH "',interface='" DRIVER "',"
				"member='NameOwnerChanged',arg0='%s'",
				c->name);
	if (!rule)
		return -ENOMEM;
	r = sd_bus_add_match_async(c->clients->bus, &c->watch, rule,
				   on_owner_changed, on_watched, c);
	return r < 0 ? r
		     : sd_bus_call_method_async(c->clients->bus, &c->owner,
						DRIVER, DRIVER_PATH, DRIVER,
						"GetNameOwner", on_watched, c,
						"s", c->name);
}

static struct client *find_client(const struct clients *c, const char *name)
{
	struct client *one = c->first;

	while (one && !streq(one->name, name))
		one = one->next;
	return one;
}

static int add_client(struct clients *all, const char *name,
		      struct client **ret)
{
	struct client **end = &all->first, *c;
	size_t n = 0;
	int r;

	for (; *end; end = &(*end)->next)
		n++;
	if (n >= CLIENTS_MAX)
		return -E2BIG;
	c = calloc(1, sizeof(*c));
	if (!c)
		return -ENOMEM;
	c->clients = all;
	c->name = strdup(name);
	LIST_INIT(&c->about);
	*end = c;
	r = c->name ? watch_client(c) : -ENOMEM;
	if (r < 0) {
		client_free(c);
		return r;
	}
	*ret = c;
	return 0;
}

static struct about *find_about(const struct client *c, const char *unit)
{
	struct about *a;

	LIST_FOREACH(a, &c->about, list)
		if (streq(a->unit, unit))
			return a;
	return NULL;
}

static int add_about(struct client *c, const char *unit, struct about **ret)
{
	struct about *a;
	size_t n = 0;

	LIST_FOREACH(a, &c->about, list)
		n++;
	if (n >= CLIENT_UNITS_MAX)
		return -E2BIG;
	a = calloc(1, sizeof(*a));
	if (!a)
		return -ENOMEM;
	a->unit = strdup(unit);
	if (!a->unit) {
		free(a);
		return -ENOMEM;
	}
	LIST_INSERT_HEAD(&c->about, a, list);
	*ret = a;
	return 0;
}

int clients_assign(struct clients *all, const char *name, const char *unit,
		   const struct assignment *assignments, size_t n,
		   char **ret_error)
{
	struct client *c = find_client(all, name);
	_cleanup_free_ char *source = NULL;
	struct about *a;
	int r;

	source = asprintf_or_null("client %s of the bus", name);
	if (!source)
		return -ENOMEM;
	r = c ? 0 : add_client(all, name, &c);
	if (r < 0)
		return r;
	a = find_about(c, unit);
	if (!a)
		r = add_about(c, unit, &a);
	if (r >= 0)
		r = promises_assign(&a->promises, assignments, n, source,
				    ret_error);
	if (a && !a->promises.n)
		about_free(a);
	if (LIST_EMPTY(&c->about))
		client_free(c);
	if (r >= 0)
		all->changed(unit, all->userdata);
	return r;
}

bool clients_forget(struct clients *all, const char *name, const char *unit)
{
	struct client *c = find_client(all, name);
	struct about *a = c ? find_about(c, unit) : NULL;

	if (!a)
		return false;
	about_free(a);
	if (LIST_EMPTY(&c->about))
		client_free(c);
	all->changed(unit, all->userdata);
	return true;
}

int clients_about(const struct clients *all, const char *unit,
		  const struct promises ***ret)
{
	const struct promises **l = NULL, **grown;
	int n = 0;

	for (const struct client *c = all->first; c; c = c->next) {
		const struct about *a = find_about(c, unit);

		if (!a)
			continue;
		grown = reallocarray(l, n + 1, sizeof(*grown));
		if (!grown) {
			free(l);
			return -ENOMEM;
		}
		l = grown;
		l[n++] = &a->promises;
	}
	*ret = l;
	return n;
}

int clients_units(const struct clients *all, char ***names)
{
	const struct about *a;
	int err = 0;

	for (const struct client *c = all->first; c; c = c->next)
		LIST_FOREACH(a, &c->about, list)
			if (!err && !strv_contains(*names, a->unit))
				err = strv_add(names, a->unit);
	return err;
}

void clients_each_path(const struct clients *all, paths_fn *fn, void *userdata)
{
	const struct about *a;

	for (const struct client *c = all->first; c; c = c->next)
		LIST_FOREACH(a, &c->about, list)
			promises_each_path(&a->promises, fn, userdata);
}

void clients_init(struct clients *c, sd_bus *bus,
		  void (*changed)(const char *unit, void *userdata),
		  void *userdata)
{
	*c = (struct clients){ .bus = bus,
			       .changed = changed,
			       .userdata = userdata };
}

void clients_done(struct clients *c)
{
	while (c->first)
		client_free(c->first);
}

int clients_state(const struct clients *c, const struct policies *p,
		  const char *unit, struct stated *ret)
{
	_cleanup_free_ const struct promises **more = NULL;
	int n = clients_about(c, unit, &more);

	return n < 0 ? n : policies_state(p, unit, more, n, ret);
}
