/* SPDX-License-Identifier: LGPL-2.1-or-later */

/*
 * The replies of sutrod, as rows whose texts stay in the messages. Documentation/org.sutro1.xml has
 * the fields. An a{sv} may have fields that are not known here, and lack some that a later sutrod
 * added.
 */

#include <search.h>

#include "exporter/state.h"

/** struct field - a key of an a{sv}, and how its value is read */
struct field {
	const char *key;
	int (*read)(sd_bus_message *m, void *ret);
	void *ret;
};

/** struct words - a list of texts in a message; @items: to be freed */
struct words {
	const char **items;
	size_t n;
};

static void words_done(struct words *w)
{
	free(w->items);
}

/* Make room for a row behind @n rows: the size is a power of two. */
static int grow(void *list, size_t n, size_t row_bytes)
{
	void **rows = list, *p;

	if (n & (n - 1))
		return 0;
	p = reallocarray(*rows, n ? n * 2 : 1, row_bytes);
	if (!p)
		return -ENOMEM;
	*rows = p;
	return 0;
}

/* ---- values ---- */

static int read_text(sd_bus_message *m, void *ret)
{
	return sd_bus_message_read(m, "v", "s", ret);
}

static int read_u64(sd_bus_message *m, void *ret)
{
	return sd_bus_message_read(m, "v", "t", ret);
}

static int read_bool(sd_bus_message *m, void *ret)
{
	int value, r = sd_bus_message_read(m, "v", "b", &value);

	if (r >= 0)
		*(bool *)ret = value;
	return r;
}

static int read_words(sd_bus_message *m, void *ret)
{
	struct words *w = ret;
	const char *word;
	int r = sd_bus_message_enter_container(m, 'v', "as");

	r = r < 0 ? r : sd_bus_message_enter_container(m, 'a', "s");
	while (r >= 0 && (r = sd_bus_message_read(m, "s", &word)) > 0) {
		r = grow(&w->items, w->n, sizeof(*w->items));
		if (r >= 0)
			w->items[w->n++] = word;
	}
	r = r < 0 ? r : sd_bus_message_exit_container(m);
	return r < 0 ? r : sd_bus_message_exit_container(m);
}

static int read_field(sd_bus_message *m, const struct field *fields)
{
	const char *key;
	int r = sd_bus_message_read(m, "s", &key);

	if (r < 0)
		return r;
	for (; fields->key; fields++)
		if (streq(fields->key, key))
			return fields->read(m, fields->ret);
	return sd_bus_message_skip(m, "v");
}

/* Read an a{sv}. Return: 1; 0: the array that it is in has no more; -errno. */
static int read_fields(sd_bus_message *m, const struct field *fields)
{
	int r = sd_bus_message_enter_container(m, 'a', "{sv}");

	if (r <= 0)
		return r;
	while ((r = sd_bus_message_enter_container(m, 'e', "sv")) > 0) {
		r = read_field(m, fields);
		r = r < 0 ? r : sd_bus_message_exit_container(m);
		if (r < 0)
			return r;
	}
	r = r < 0 ? r : sd_bus_message_exit_container(m);
	return r < 0 ? r : 1;
}

/* ---- rows ---- */

static int parse_properties(struct state *s, sd_bus_message *m)
{
	_cleanup_(words_done) struct words managed = {}, errors = {};
	const struct field fields[] = {
		{ "Version", read_text, &s->version },
		{ "DryRun", read_bool, &s->dry_run },
		{ "ManagedLeaves", read_words, &managed },
		{ "PolicyErrors", read_words, &errors },
		{ "ControlStepUSec", read_u64, &s->control_step_usec },
		{},
	};
	int r = read_fields(m, fields);

	if (r < 0 || !s->version)
		return r < 0 ? r : -EBADMSG;
	s->n_policy_errors = errors.n;
	s->managed = TAKE_PTR(managed.items);
	s->n_managed = managed.n;
	return 0;
}

/* The name that people use: /dev/VG/LV, then /dev/mapper/x, then the node. */
static const char *find_label(const char *node, const struct words *aliases)
{
	for (size_t i = 0; i < aliases->n; i++)
		if (!startswith(aliases->items[i], "/dev/mapper/"))
			return aliases->items[i];
	return aliases->n ? aliases->items[0] : node;
}

/* Return: 1; 0: there are no more; -errno. */
static int parse_device(sd_bus_message *m, struct state_device *ret)
{
	_cleanup_(words_done) struct words aliases = {};
	struct state_device d = { .kind = "", .scheduler = "" };
	uint64_t size_bytes = 0;
	bool leaf = false;
	const struct field fields[] = {
		{ "node", read_text, &d.node },
		{ "kind", read_text, &d.kind },
		{ "scheduler", read_text, &d.scheduler },
		{ "leaf", read_bool, &leaf },
		{ "size_bytes", read_u64, &size_bytes },
		{ "aliases", read_words, &aliases },
		{},
	};
	int r = read_fields(m, fields);

	if (r <= 0)
		return r;
	if (!d.node)
		return -EBADMSG;
	d.label = find_label(d.node, &aliases);
	/* A drive without a medium has no size. */
	d.is_leaf = leaf && size_bytes;
	*ret = d;
	return 1;
}

static int by_node(const void *a, const void *b)
{
	return strcmp(((const struct state_device *)a)->node,
		      ((const struct state_device *)b)->node);
}

static int parse_devices(struct state *s, sd_bus_message *m)
{
	int r = sd_bus_message_enter_container(m, 'a', "a{sv}");

	while (r >= 0) {
		r = grow(&s->devices, s->n_devices, sizeof(*s->devices));
		r = r < 0 ? r : parse_device(m, &s->devices[s->n_devices]);
		if (r == 0)
			break;
		s->n_devices += r > 0;
	}
	if (r >= 0)
		qsort(s->devices, s->n_devices, sizeof(*s->devices), by_node);
	return r;
}

static const char *label_of(const struct state *s, const char *node)
{
	struct state_device key = { .node = node }, *found;

	found = bsearch(&key, s->devices, s->n_devices, sizeof(*s->devices),
			by_node);
	return found ? found->label : node;
}

/* As fails() of policies/sutro/promises.py: a state that is not known here is none that holds, so that
 * it is not overlooked.
 */
bool promise_is_broken(const struct state_promise *p)
{
	static const char *const others[] = { "held",	 "idle",
					      "stated",	 "settling",
					      "unknown", "unknown-capacity" };

	for (size_t i = 0; i < ARRAY_SIZE(others); i++)
		if (streq(p->state, others[i]))
			return false;
	return true;
}

static int by_series(const void *a, const void *b)
{
	const struct state_promise *p = a, *q = b;

	return strcmp(p->cgroup, q->cgroup) ?: strcmp(p->key, q->key) ?:
	       strcmp(p->path, q->path) ?: strcmp(p->unit, q->unit) ?:
	       strcmp(p->device, q->device);
}

static void keep(void *row)
{
}

/*
 * Names of several delegated cgroups may be shown alike, with "?" for bytes that D-Bus does not
 * transport. A series may be there once: of these promises a broken one counts, if there is one.
 */
static int merge_promises(struct state *s)
{
	struct state_promise **found;
	void *index = NULL;
	size_t n = 0;
	int r = 0;

	for (size_t i = 0; i < s->n_promises && r >= 0; i++) {
		struct state_promise *p = &s->promises[i];

		if (!strchr(p->cgroup, '?'))
			continue;
		found = tsearch(p, &index, by_series);
		if (!found) {
			r = -ENOMEM;
		} else if (*found != p) {
			if (promise_is_broken(p) && !promise_is_broken(*found))
				**found = *p;
			p->cgroup = NULL;
		}
	}
	tdestroy(index, keep);
	for (size_t i = 0; i < s->n_promises; i++)
		if (s->promises[i].cgroup)
			s->promises[n++] = s->promises[i];
	s->n_promises = n;
	return r;
}

static int parse_promises(struct state *s, sd_bus_message *m)
{
	struct state_promise p = {};
	int r = sd_bus_message_enter_container(m, 'a', "(ssssssttd)");

	while (r >= 0) {
		enum promise_key key;

		r = grow(&s->promises, s->n_promises, sizeof(*s->promises));
		if (r >= 0)
			r = sd_bus_message_read(m, "(ssssssttd)", &p.unit,
						&p.cgroup, &p.key, &p.path,
						&p.device, &p.state, &p.value,
						&p.got, &p.granted);
		if (r <= 0)
			break;
		/* A later sutrod may have other keys. */
		p.info = promise_key_from_name(p.key, &key) < 0
				 ? NULL
				 : promise_info(key);
		p.device = label_of(s, p.device);
		s->promises[s->n_promises++] = p;
	}
	return r < 0 ? r : merge_promises(s);
}

/* Return: 1; 0: there are no more; -errno. */
static int parse_capacity(sd_bus_message *m, struct state_capacity *ret)
{
	struct state_capacity c = { .path = "", .key = "" };
	const struct field fields[] = {
		{ "path", read_text, &c.path },
		{ "key", read_text, &c.key },
		{ "capacity", read_u64, &c.capacity },
		{ "promised", read_u64, &c.promised },
		{ "left", read_u64, &c.left },
		{},
	};
	enum promise_key key;
	int r = read_fields(m, fields);

	if (r <= 0)
		return r;
	if (promise_key_from_name(c.key, &key) >= 0)
		c.info = promise_info(key);
	*ret = c;
	return 1;
}

static int parse_capacities(struct state *s, sd_bus_message *m)
{
	int r = sd_bus_message_enter_container(m, 'a', "a{sv}");

	while (r >= 0) {
		r = grow(&s->capacities, s->n_capacities,
			 sizeof(*s->capacities));
		r = r < 0 ? r
			  : parse_capacity(m, &s->capacities[s->n_capacities]);
		if (r == 0)
			break;
		s->n_capacities += r > 0;
	}
	return r;
}

int state_parse(struct state *s)
{
	int r = parse_properties(s, s->replies[STATE_PROPERTIES]);

	r = r < 0 ? r : parse_devices(s, s->replies[STATE_DEVICES]);
	/* These have labels of devices. */
	r = r < 0 ? r : parse_promises(s, s->replies[STATE_PROMISES]);
	return r < 0 ? r : parse_capacities(s, s->replies[STATE_CAPACITIES]);
}
