/* SPDX-License-Identifier: LGPL-2.1-or-later */

/*
 * The families of metrics: a table for the families whose rows have the same labels, and a function
 * that returns the number of a row in a family. Documentation/man/sutro-exporter.1 describes them.
 */

#include "exporter/families.h"
#include "exporter/metrics.h"
#include "exporter/promises.h"
#include "policy/unit.h"

/* Names of labels are in the order of the alphabet, as prometheus_client writes them. */

/* ---- cgroups ---- */

static const struct use *use_of(const struct scrape *s, size_t row)
{
	return &s->uses.items[row];
}

/* The unit of a cgroup or of the nearest one above; "" if systemd made neither. */
static void write_unit(struct writer *w, size_t start, const char *cgroup)
{
	_cleanup_free_ char *path = strdup(cgroup);
	char *slash;

	if (!path)
		w->error = -ENOMEM;
	else if (!path[1])
		writer_label(w, start, "unit", "-.slice");
	else {
		const char *name = "";

		while (!*name && (slash = strrchr(path, '/'))) {
			*slash = '\0';
			/* systemd puts "_" before a name that could be a file of the kernel. */
			name = slash + 1 + (slash[1] == '_');
			name = unit_is_name(name) ? name : "";
		}
		writer_label(w, start, "unit", name);
	}
}

static void write_use(struct writer *w, size_t start, const struct scrape *s,
		      size_t row)
{
	const struct use *u = use_of(s, row);

	writer_label(w, start, "cgroup", folder_shown(u->folder));
	writer_label(w, start, "leaf", u->leaf->node);
	write_unit(w, start, folder_shown(u->folder));
}

static size_t count_uses(const struct scrape *s)
{
	return s->uses.n;
}

static struct number get_count(const struct scrape *s, size_t row,
			       unsigned int counter)
{
	uint64_t count = use_of(s, row)->counts[counter];

	if (count == USE_UNKNOWN)
		return number_none();
	return number_of(NUMBER_COUNT, count);
}

static struct number get_time(const struct scrape *s, size_t row,
			      unsigned int counter)
{
	struct number n = get_count(s, row, counter);

	n.kind = n.kind == NUMBER_COUNT ? NUMBER_NANO : n.kind;
	return n;
}

static struct number get_reads(const struct scrape *s, size_t row,
			       unsigned int bound)
{
	const struct use *u = use_of(s, row);

	return u->has_reads ? number_of(NUMBER_COUNT, u->reads[bound])
			    : number_none();
}

static struct number get_weight(const struct scrape *s, size_t row,
				unsigned int unused)
{
	uint64_t weight = use_of(s, row)->weight;

	return weight ? number_of(NUMBER_COUNT, weight) : number_none();
}

static const struct family of_uses[] = {
	FAMILY("sutro_cgroup_device_time_seconds", COUNTER,
	       "Time of the leaf that was charged to the cgroup.", get_time,
	       .of = COUNTER_TIME_NS),
	FAMILY("sutro_cgroup_read_bytes", COUNTER, "Bytes read.", get_count,
	       .of = COUNTER_RBYTES),
	FAMILY("sutro_cgroup_written_bytes", COUNTER, "Bytes written.",
	       get_count, .of = COUNTER_WBYTES),
	FAMILY("sutro_cgroup_reads", COUNTER, "Read requests.", get_count,
	       .of = COUNTER_RIOS),
	FAMILY("sutro_cgroup_writes", COUNTER, "Write requests.", get_count,
	       .of = COUNTER_WIOS),
	FAMILY("sutro_cgroup_wait_seconds", COUNTER,
	       "Sum over requests of the time in the scheduler.", get_time,
	       .of = COUNTER_WAIT_NS),
	FAMILY("sutro_cgroup_busy_seconds", COUNTER,
	       "Time with at least one request, waiting or in flight.",
	       get_time, .of = COUNTER_BUSY_NS),
	FAMILY("sutro_cgroup_read_latency_seconds", HISTOGRAM,
	       "Latency of reads, from the request for a slot to the completion.",
	       get_reads),
	FAMILY("sutro_cgroup_weight", GAUGE, "Weight in force on the leaf.",
	       get_weight),
};

/* ---- the daemon ---- */

static size_t count_one(const struct scrape *s)
{
	return 1;
}

static struct number get_up(const struct scrape *s, size_t row,
			    unsigned int unused)
{
	return number_real(!s->state.failure.reason);
}

static struct number get_down(const struct scrape *s, size_t row,
			      unsigned int unused)
{
	return s->state.failure.reason ? number_real(1) : number_none();
}

static const char *get_reason(const struct scrape *s, size_t row)
{
	return s->state.failure.reason;
}

static const char *get_version(const struct scrape *s, size_t row)
{
	return s->state.version;
}

enum property { PROPERTY_VERSION, DRY_RUN, POLICY_ERRORS, CONTROL_STEP };

static struct number get_property(const struct scrape *s, size_t row,
				  unsigned int property)
{
	if (s->state.failure.reason)
		return number_none();
	switch ((enum property)property) {
	case PROPERTY_VERSION:
		return number_real(1);
	case DRY_RUN:
		return number_real(s->state.dry_run);
	case POLICY_ERRORS:
		return number_real(s->state.n_policy_errors);
	case CONTROL_STEP:
		return number_of(NUMBER_MICRO, s->state.control_step_usec);
	}
	return number_none();
}

static const struct family of_daemon[] = {
	FAMILY("sutro_up", GAUGE,
	       "1 while sutrod answers; without it guarantees do not hold.",
	       get_up),
	FAMILY("sutro_down", INFO,
	       "Why sutrod does not answer; the log of sutro-exporter has the whole "
	       "message.",
	       get_down, .label = "reason", .get_label = get_reason),
	FAMILY("sutro_build", INFO, "Version of the running sutrod.",
	       get_property, .of = PROPERTY_VERSION, .label = "version",
	       .get_label = get_version),
	FAMILY("sutro_dry_run", GAUGE,
	       "1 if sutrod computes weights and writes none.", get_property,
	       .of = DRY_RUN),
	FAMILY("sutro_policy_errors", GAUGE, "Mistakes in policy files.",
	       get_property, .of = POLICY_ERRORS),
	FAMILY("sutro_control_step_seconds", GAUGE,
	       "CPU time of the last control step of sutrod; 0 without guarantees.",
	       get_property, .of = CONTROL_STEP),
};

static struct number get_omitted(const struct scrape *s, size_t row,
				 unsigned int unused)
{
	return number_real(s->n_omitted);
}

static const struct family of_ranking[] = {
	FAMILY("sutro_cgroups_omitted", GAUGE,
	       "Cgroups with counters that are left out; see --all in "
	       "sutro-exporter(1).",
	       get_omitted),
};

/* ---- leaves ---- */

static const struct state_device *device_of(const struct scrape *s, size_t row)
{
	return &s->state.devices[row];
}

static size_t count_devices(const struct scrape *s)
{
	return s->state.n_devices;
}

static void write_leaf(struct writer *w, size_t start, const struct scrape *s,
		       size_t row)
{
	writer_label(w, start, "leaf", device_of(s, row)->node);
}

static void write_leaf_info(struct writer *w, size_t start,
			    const struct scrape *s, size_t row)
{
	writer_label(w, start, "kind", device_of(s, row)->kind);
	write_leaf(w, start, s, row);
	writer_label(w, start, "scheduler", device_of(s, row)->scheduler);
}

static struct number get_leaf(const struct scrape *s, size_t row,
			      unsigned int unused)
{
	return device_of(s, row)->is_leaf ? number_real(1) : number_none();
}

static struct number get_weighted(const struct scrape *s, size_t row,
				  unsigned int unused)
{
	const struct state_device *d = device_of(s, row);

	return d->is_leaf ? number_real(streq(d->scheduler, "sutro") ||
					streq(d->scheduler, "bfq") ||
					strv_contains(s->iocost, d->node))
			  : number_none();
}

static struct number get_managed(const struct scrape *s, size_t row,
				 unsigned int unused)
{
	const struct state_device *d = device_of(s, row);
	bool is_managed = false;

	for (size_t i = 0; i < s->state.n_managed && !is_managed; i++)
		is_managed = streq(s->state.managed[i], d->node);
	return d->is_leaf ? number_real(is_managed) : number_none();
}

static const struct family of_leaf_infos[] = {
	FAMILY("sutro_leaf", INFO, "Leaves: disks with a request queue.",
	       get_leaf),
};

static const struct family of_leaves[] = {
	FAMILY("sutro_leaf_weighted", GAUGE,
	       "1 if the scheduler of the leaf has weights.", get_weighted),
	FAMILY("sutro_leaf_managed", GAUGE,
	       "1 if sutrod switched the leaf to sutro.", get_managed),
};

/* ---- all of them ---- */

static const struct subject subjects[] = {
	{ FAMILIES(of_uses), count_uses, write_use },
	{ FAMILIES(of_daemon), count_one },
	{ FAMILIES(of_leaf_infos), count_devices, write_leaf_info },
	{ FAMILIES(of_leaves), count_devices, write_leaf },
	{ FAMILIES(of_ranking), count_one },
};

void metrics_write(const struct scrape *s, enum format format, struct writer *w)
{
	for (size_t i = 0; i < ARRAY_SIZE(subjects); i++)
		subject_write(&subjects[i], s, format, w);
	promises_write(s, format, w);
	if (format == FORMAT_OPENMETRICS)
		writer_text(w, "# EOF\n");
}
