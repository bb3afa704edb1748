/* SPDX-License-Identifier: LGPL-2.1-or-later */

/*
 * The manager's part about settings: of units in systemd, of the io.weight files of other
 * cgroups, and of policies and clients of the bus above both.
 */

#include "host/event.h"
#include "host/volume.h"
#include "manager.h"
#include "policy/unit-cgroup.h"

/* The delay after which a volume that a unit begins to use has the unit's promises. */
#define VOLUMES_USEC 1000000U

/* ---- promises about any volume ---- */

int manager_look_at_volumes(struct manager *m, struct cgroup *c)
{
	_cleanup_free_ const struct device **used = NULL;
	size_t n;
	int r;

	if (!policy_has_any(c->policy))
		return 0;
	r = volumes_used(c, m->machine.topology, &used, &n);
	if (r >= 0)
		r = policy_expand(c->policy, used, n);
	if (r > 0) {
		governor_renew(&m->governor);
		manager_mark(m, c);
	}
	return r;
}

int manager_compare_paths(struct manager *m)
{
	struct cgroup *root = cgroup_tree_root(m->machine.tree);
	int r = 0;

	lookups_retry(&m->lookups);
	for (struct cgroup *c = root; c && r != -ENOMEM;
	     c = cgroup_next(root, c)) {
		if (policy_resolve_again(c->policy, m->machine.topology,
					 m->machine.lookups)) {
			governor_renew(&m->governor);
			manager_mark(m, c);
		}
		r = manager_look_at_volumes(m, c);
	}
	return r == -ENOMEM ? r : 0;
}

int manager_on_volumes(sd_event_source *s, uint64_t usec, void *userdata)
{
	struct manager *m = userdata;
	struct cgroup *root = cgroup_tree_root(m->machine.tree);
	bool any = false;
	int r = 0;

	for (struct cgroup *c = root; c && r >= 0; c = cgroup_next(root, c)) {
		any |= policy_has_any(c->policy);
		r = manager_look_at_volumes(m, c);
	}
	if (r < 0 || !any)
		return r;
	sd_event_source_set_time_relative(s, VOLUMES_USEC);
	return sd_event_source_set_enabled(s, SD_EVENT_ONESHOT);
}

static int watch_volumes(struct manager *m, struct cgroup *c)
{
	int enabled = SD_EVENT_ON, r;

	if (!policy_has_any(c->policy))
		return 0;
	r = manager_look_at_volumes(m, c);
	sd_event_source_get_enabled(m->volumes, &enabled);
	if (r < 0 || enabled != SD_EVENT_OFF)
		return r;
	sd_event_source_set_time_relative(m->volumes, VOLUMES_USEC);
	return sd_event_source_set_enabled(m->volumes, SD_EVENT_ONESHOT);
}

/* ---- settings of a cgroup ---- */

static void set_policy(struct manager *m, struct cgroup *c, struct policy *p)
{
	if (p->promises.n || c->policy->promises.n)
		governor_renew(&m->governor);
	policy_move_points(p, c->policy);
	policy_keep_missed(p, c->policy);
	policy_done(c->policy);
	*c->policy = *p;
	*p = (struct policy){};
	c->waiting = false;
	c->unanswered = false;
	policy_resolve(c->policy, m->machine.topology, m->machine.lookups);
	governor_look_at(&m->governor, c);
	if (watch_volumes(m, c) < 0)
		log_oom();
	cgfile_retry(c);
	manager_mark(m, c);
}

static uint64_t read_default(const struct cgroup *c, enum cgfile file)
{
	struct cglines l = { .file = file };
	uint64_t weight = 0;

	if (cgfile_read(c, file, &l) == 0)
		weight = cglines_get(&l, CGFILE_DEFAULT).number[0];
	cglines_done(&l);
	return weight;
}

/* The weight that the owner of a cgroup wrote, if there is no other setting. Container runtimes
 * write io.bfq.weight, and io.weight if bfq is not there, also of the scope that systemd made
 * for a container. systemd writes both, and compresses the weight in io.bfq.weight, so io.weight
 * is the stronger one. Of a unit without IOWeight= systemd has written 100 to io.weight.
 */
static void take_written_weight(const struct cgroup *c, struct policy *p)
{
	uint64_t weight = read_default(c, CGFILE_WEIGHT);

	p->bfq_weight = read_default(c, CGFILE_BFQ_WEIGHT);
	if (p->weight_set)
		return;
	p->weight_file = "io.weight";
	if (!weight || weight == WEIGHT_DEFAULT) {
		weight = p->bfq_weight;
		p->weight_file = "io.bfq.weight";
	}
	p->weight_set = weight && weight != WEIGHT_DEFAULT;
	p->weight = p->weight_set ? weight : WEIGHT_DEFAULT;
}

static bool has_bfq(const struct device *d)
{
	return d->leaf && d->devno && d->scheduler &&
	       streq(d->scheduler, "bfq");
}

/* The lines of others in io.bfq.weight, those that the daemon has overridden too.
 *
 * Return: 0 or -ENOMEM, with a hash of the lines in @ret. They are added to @p, if it is there.
 */
static int read_bfq_lines(const struct manager *m, const struct cgroup *c,
			  struct policy *p, uint64_t *ret)
{
	const struct topology *t = m->machine.topology;
	struct cglines l = { .file = CGFILE_BFQ_WEIGHT };
	int r = cgfile_read(c, CGFILE_BFQ_WEIGHT, &l);

	*ret = 0;
	for (size_t i = 0; i < t->n_devices && r >= 0; i++) {
		const struct device *d = t->devices[i];
		uint64_t weight;

		if (!has_bfq(d))
			continue;
		weight = cgfile_of_others(&m->files, c, &l, d->devno).number[0];
		*ret = *ret * (WEIGHT_MAX + 1) + weight;
		if (!weight || !p)
			continue;
		r = policy_add(p, d->node, weight);
		if (r >= 0)
			p->statements[p->n_statements - 1].file =
				"io.bfq.weight";
	}
	cglines_done(&l);
	return r == -ENOMEM ? r : 0;
}

/* Container runtimes write lines for devices (docker run --blkio-weight-device). systemd does, too,
 * for IODeviceWeight=, and compresses the weights, so statements are stronger.
 */
static int take_bfq_lines(const struct manager *m, const struct cgroup *c,
			  struct policy *p)
{
	return read_bfq_lines(m, c, p->n_statements ? NULL : p, &p->bfq_lines);
}

bool manager_has_new_bfq_weight(const struct manager *m, const struct cgroup *c)
{
	uint64_t lines;

	return read_default(c, CGFILE_BFQ_WEIGHT) != c->policy->bfq_weight ||
	       read_bfq_lines(m, c, NULL, &lines) < 0 ||
	       lines != c->policy->bfq_lines;
}

/* The settings of policies for a unit or a cgroup, above those of systemd or of its owner. */
static int add_promises(struct manager *m, const char *subject,
			struct policy *p)
{
	struct stated stated = {};
	int r;

	r = clients_state(&m->clients, m->policies, subject, &stated);
	if (r >= 0)
		r = conf_add_resync(m->conf, subject, &stated);
	if (r >= 0)
		r = policy_promise(p, &stated.in_force);
	stated_done(&stated);
	return r;
}

/* io.weight of a cgroup that systemd did not make is a setting of its owner. */
int manager_mirror(struct manager *m, struct cgroup *c)
{
	struct policy p = { .source = POLICY_FILE, .weight = WEIGHT_DEFAULT };
	struct cglines l = { .file = CGFILE_WEIGHT };
	int r;

	p.subject = strdup(c->shown);
	if (!p.subject)
		return -ENOMEM;
	if (c->origin == CGROUP_UNIT)
		c->origin = CGROUP_FOREIGN;
	r = cgfile_read(c, CGFILE_WEIGHT, &l);
	take_written_weight(c, &p);
	for (size_t i = 0; i < l.n_lines && r != -ENOMEM; i++) {
		struct device *d = topology_by_devno(m->machine.topology,
						     l.lines[i].devno);
		/* A line that the daemon has overridden is still the one of the owner. */
		uint64_t weight =
			cgfile_of_others(&m->files, c, &l, l.lines[i].devno)
				.number[0];

		if (d && weight)
			r = policy_add(&p, d->node, weight);
	}
	cglines_done(&l);
	if (r != -ENOMEM)
		r = take_bfq_lines(m, c, &p);
	if (r != -ENOMEM)
		r = add_promises(m, c->path, &p);
	if (r != -ENOMEM) {
		c->origin = CGROUP_FOREIGN;
		set_policy(m, c, &p);
	}
	policy_done(&p);
	return r == -ENOMEM ? r : 0;
}

void manager_log_sentences(char *const *sentences)
{
	for (; sentences && *sentences; sentences++)
		log_event(EVENT_POLICY_MISTAKE, LOG_WARNING, NULL, "%s",
			  *sentences);
}

static int load_unit(struct manager *m, const struct unit_answer *a)
{
	_cleanup_strv_ char **errors = NULL;
	int r;

	r = policies_load_unit(m->policies, a->name, a->fragment, a->dropins,
			       &errors);
	manager_log_sentences(errors);
	if (r >= 0 && errors)
		bus_property_changed(&m->bus, "PolicyErrors");
	return r;
}

/* Read the files of a unit, and add the settings of all policies for it. */
static int add_unit_promises(struct manager *m, struct unit_answer *a)
{
	int r = load_unit(m, a);

	return r < 0 ? r : add_promises(m, a->name, &a->policy);
}

/* The root has no settings. Those in its files are mistakes, and are reported as others are. */
void manager_request_root(struct manager *m)
{
	int r = units_request(m->units, ROOT_SLICE);

	if (r < 0)
		log_warning_errno(r, "%s: cannot read its files, ignoring: %m",
				  ROOT_SLICE);
}

void manager_request(struct manager *m, struct cgroup *c)
{
	bool unit = cgroup_may_be_unit(c);
	int r;

	/* A request that cannot be sent ends before units_request() returns. */
	c->waiting = unit;
	c->unanswered = false;
	r = unit ? units_request(m->units, cgroup_unit_name(c))
		 : manager_mirror(m, c);
	if (r >= 0)
		return;
	c->waiting = false;
	c->unanswered = unit;
	log_warning_errno(r, "%s: cannot read its settings, ignoring: %m",
			  c->shown);
}

/* Now that a slice is known to be a unit, those below it may be units. */
static void request_children(struct manager *m, const struct cgroup *slice)
{
	struct cgroup *c;

	TAILQ_FOREACH(c, &slice->children, siblings)
		if (c->origin == CGROUP_FOREIGN && cgroup_may_be_unit(c))
			manager_request(m, c);
}

void manager_request_all(struct manager *m)
{
	if (cgroup_cursor_goes_on(&m->requested)) {
		m->request_again = true;
		return;
	}
	manager_request_root(m);
	cgroup_cursor_begin(&m->requested, cgroup_tree_root(m->machine.tree));
	if (manager_arm_batch(m->requests) < 0)
		log_oom();
}

int manager_on_requests(sd_event_source *s, uint64_t usec, void *userdata)
{
	struct manager *m = userdata;

	for (unsigned int i = 0; i < CGROUP_BATCH; i++) {
		struct cgroup *c = cgroup_cursor_next(&m->requested);

		if (c && c->parent)
			manager_request(m, c);
	}
	if (cgroup_cursor_goes_on(&m->requested))
		return manager_arm_batch(s);
	if (m->request_again) {
		m->request_again = false;
		manager_request_all(m);
	}
	return 0;
}

/* ---- systemd ---- */

/* The settings stay as they are until the next periodic comparison. */
static void on_silence(struct manager *m, const char *unit)
{
	struct cgroup *root = cgroup_tree_root(m->machine.tree);

	log_warning("systemd does not answer about %s.", unit);
	for (struct cgroup *c = root; c; c = cgroup_next(root, c)) {
		if (!c->waiting || !streq(cgroup_unit_name(c), unit))
			continue;
		c->waiting = false;
		c->unanswered = true;
	}
	manager_flush_soon(m);
}

static void take_answer(struct manager *m, struct unit_answer *a)
{
	struct cgroup *c = NULL;

	if (streq(a->name, ROOT_SLICE)) {
		/* Its removal is that of a reload which began before the daemon followed systemd. */
		if (*a->cgroup && load_unit(m, a) < 0)
			log_oom();
		return;
	}
	if (*a->cgroup)
		c = cgroup_find(m->machine.tree, a->cgroup);
	if (c && c->parent) {
		bool is_new = c->origin != CGROUP_UNIT;

		c->origin = CGROUP_UNIT;
		if (take_bfq_lines(m, c, &a->policy) < 0 ||
		    add_unit_promises(m, a) < 0)
			log_oom();
		take_written_weight(c, &a->policy);
		set_policy(m, c, &a->policy);
		if (is_new)
			request_children(m, c);
	} else if (!*a->cgroup) {
		policies_forget_unit(m->policies, a->name);
	}
	if (!*a->cgroup &&
	    (c = unit_find_candidate(m->machine.tree, a->name))) {
		/* No unit has this cgroup, or the unit is gone. */
		if (manager_mirror(m, c) == -ENOMEM)
			log_oom();
	}
}

static void on_unit_answer(struct unit_answer *a, void *userdata)
{
	struct manager *m = userdata;

	if (a->cgroup)
		take_answer(m, a);
	else
		on_silence(m, a->name);
	if (!m->ready)
		manager_flush_soon(m);
}

/* A request for a cgroup that only looks like a unit makes systemd load, and soon unload,
 * a unit of that name. A new request after each of these would never end.
 */
static void on_unit_appeared(const char *name, void *userdata)
{
	struct manager *m = userdata;
	struct cgroup *c = unit_find_candidate(m->machine.tree, name);

	if (c && c->origin == CGROUP_UNIT)
		manager_request(m, c);
}

void manager_policy_changed(const char *unit, void *userdata)
{
	struct manager *m = userdata;
	struct cgroup *c = *unit == '/'
				   ? cgroup_find(m->machine.tree, unit)
				   : unit_find_candidate(m->machine.tree, unit);

	if (c)
		manager_request(m, c);
}

/* No request for a unit without a cgroup follows, and a removed one is not announced. */
static void on_all_units_changed(void *userdata)
{
	_cleanup_strv_ char **errors = NULL;
	struct manager *m = userdata;

	if (policies_load_units(m->policies, &errors) < 0)
		log_oom();
	manager_log_sentences(errors);
	bus_property_changed(&m->bus, "PolicyErrors");
	manager_request_all(m);
}

const struct unit_ops manager_unit_ops = {
	.answer = on_unit_answer,
	.appeared = on_unit_appeared,
	.all_changed = on_all_units_changed,
};

int manager_load_policies(struct manager *m)
{
	_cleanup_strv_ char **errors = NULL;
	int err = policies_load(m->policies, &errors);

	manager_log_sentences(errors);
	return err;
}

int manager_reload_policies(struct manager *m)
{
	int err = manager_load_policies(m);

	manager_drop_paths(m);
	lookups_forget(&m->lookups);
	bus_property_changed(&m->bus, "PolicyErrors");
	manager_request_all(m);
	return err;
}
