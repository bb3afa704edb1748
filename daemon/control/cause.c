/* SPDX-License-Identifier: LGPL-2.1-or-later */

/*
 * The cause why a floor does not hold, from evidence.
 *
 * Most causes follow from the law (enum control_state). The others are read only when a
 * floor is short: an io.max above the unit, pages that writeback has not sent yet, the
 * number of bytes at the leaves for each byte of the unit, requests that wait above the leaves
 * (above.c).
 */

#include <fcntl.h>
#include <stdio.h>

#include "control/above.h"
#include "control/cause.h"
#include "control/enforce.h"
#include "policy/policy.h"

/* A cgroup whose rate is above this part of its io.max is throttled by it. */
#define CAPPED 0.9

/* The kernel makes all writers of pages wait when many are dirty. The unit is such a writer,
 * and others are the cause: at least this much is dirty, and this many times its own.
 */
#define FLOOD_BYTES (16 << 20)
#define FLOOD 4

/* With more bytes at the leaves than this for each byte of the unit, the cause names the factor. */
#define COPIES_ODD 1.25

bool state_is_broken(enum control_state state)
{
	return state == CONTROL_INFEASIBLE || state == CONTROL_LIMITED ||
	       state == CONTROL_CROWDED || state == CONTROL_UNATTRIBUTED ||
	       state == CONTROL_UNWEIGHTED || state == CONTROL_UNOBSERVED;
}

/* "8:16 rbps=1048576 wbps=max riops=max wiops=max" */
static uint64_t max_of(const struct cgroup *c, dev_t devno, const char *key)
{
	_cleanup_free_ char *text = NULL;
	char *save = NULL;

	if (cgroup_read(c, "io.max", &text) < 0)
		return PROMISE_INFINITY;
	for (char *line = strtok_r(text, "\n", &save); line;
	     line = strtok_r(NULL, "\n", &save)) {
		char *value = strstr(line, key), *blank = strchr(line, ' ');
		uint64_t limit;
		dev_t d;

		if (!value || !blank)
			continue;
		*blank = '\0';
		value += strlen(key);
		value[strcspn(value, " ")] = '\0';
		if (parse_devno(line, &d) == 0 && d == devno &&
		    parse_u64(value, &limit) == 0)
			return limit;
	}
	return PROMISE_INFINITY;
}

/** struct cap - a number of a line in io.max; @key: the key of a floor for the rate that it limits */
static const struct cap {
	const char *name;
	enum promise_key key;
} caps[] = {
	{ "rbps=", PROMISE_READ_BANDWIDTH_MIN },
	{ "riops=", PROMISE_READ_IOPS_MIN },
	{ "wbps=", PROMISE_WRITE_BANDWIDTH_MIN },
	{ "wiops=", PROMISE_WRITE_IOPS_MIN },
};

static double rate_at(const struct evidence *e, const struct cgroup *c,
		      enum promise_key key, const struct device *d)
{
	const struct usage *u = sample_usage(e->sampler, c, d);
	const struct promise_info *info = promise_info(key);
	double dt_s = sampler_interval_s(e->sampler);

	if (info->unit == PROMISE_UNIT_BYTES)
		return (info->write ? u->wbytes : u->rbytes) / dt_s;
	return (info->write ? u->wios : u->rios) / dt_s;
}

/* Is the limit of a cgroup, or a limit of the other kind for the same requests, used up? */
static int find_cap_at(const struct evidence *e, const struct cgroup *c,
		       bool write, const struct device *at, char **ret)
{
	for (size_t i = 0; i < ARRAY_SIZE(caps); i++) {
		uint64_t limit;

		if (promise_info(caps[i].key)->write != write)
			continue;
		limit = max_of(c, at->devno, caps[i].name);
		if (limit == PROMISE_INFINITY ||
		    rate_at(e, c, caps[i].key, at) < CAPPED * limit)
			continue;
		*ret = asprintf_or_null("io.max of %s has %s%llu for %s, which "
					"throttles it; raise that limit",
					c->shown, caps[i].name,
					(unsigned long long)limit, at->node);
		return *ret ? 1 : -ENOMEM;
	}
	return 0;
}

/* Does an io.max at the device or a leaf, of the unit or above it, throttle it? The units below a
 * cgroup use up its limit together.
 */
static int find_cap(const struct evidence *e, const struct governed *f,
		    const struct device *d, char **ret)
{
	bool write = promise_info(f->key)->write;
	int r = 0;

	for (const struct cgroup *c = f->cgroup; c->parent && !r; c = c->parent)
		for (size_t i = 0; i <= d->n_leaves && !r; i++)
			r = find_cap_at(e, c, write,
					i ? d->leaves[i - 1]
					  : partition_disk(d) ?: d,
					ret);
	return r;
}

/* Bytes of pages of a cgroup and those below it that are dirty or in writeback. */
static uint64_t waiting_pages_bytes(const struct cgroup *c)
{
	_cleanup_free_ char *text = NULL;
	uint64_t sum = 0;
	char *save = NULL;

	if (cgroup_read(c, "memory.stat", &text) < 0)
		return 0;
	for (char *line = strtok_r(text, "\n", &save); line;
	     line = strtok_r(NULL, "\n", &save)) {
		const char *value =
			startswith(line, "file_dirty ")
				?: startswith(line, "file_writeback ");
		uint64_t bytes;

		if (value && parse_u64(value, &bytes) == 0)
			sum += bytes;
	}
	return sum;
}

static const struct device *bottleneck(const struct evidence *e,
				       const struct governed *f)
{
	uint32_t leaf =
		control_promise(e->plant->control, f->number)->bottleneck;

	return leaf == CONTROL_NONE
		       ? NULL
		       : topology_by_devno(e->context->machine->topology,
					   e->plant->leaves[leaf]);
}

/* Is there parity or a copy-on-write somewhere under the device? */
static const char *find_amplifier(const struct device *d, uint64_t walk)
{
	const char *found = NULL;

	if (!device_enter(d, walk))
		return NULL;
	switch (d->kind) {
	case DEVICE_RAID4:
	case DEVICE_RAID5:
	case DEVICE_RAID6:
		return "parity of the raid";
	case DEVICE_THIN:
	case DEVICE_SNAPSHOT:
		return "copy-on-write";
	case DEVICE_RAID1:
	case DEVICE_RAID10:
	case DEVICE_MIRROR:
		return "copies of the mirror";
	default:
		break;
	}
	for (size_t i = 0; i < d->n_slaves && !found; i++)
		found = find_amplifier(d->slaves[i], walk);
	return found;
}

static int add_amplification(struct text *t, const struct governed *f,
			     const struct device *d)
{
	const char *by = find_amplifier(d, device_walk());

	if (!promise_info(f->key)->write || !by || f->copies < COPIES_ODD)
		return 0;
	return text_add(t,
			". Each byte written becomes %.1f bytes at the leaves "
			"(%s)",
			f->copies, by);
}

static const char *const op_names[] = {
	[LATENCY_READ] = "reads",
	[LATENCY_WRITE] = "writes",
	[LATENCY_FSYNC] = "fsyncs",
};

static int explain_target(const struct governed *f, const struct device *d,
			  struct text *t)
{
	const struct target *target = f->target;
	_cleanup_free_ char *word =
		value_format_percentile(governed_percentile(f));

	if (!word)
		return -ENOMEM;
	if (target->is_enforced)
		return text_add(
			t,
			"the %s of its %s at %s is %.1f ms, %s. Raise the "
			"target",
			word, op_names[target->op], d->node,
			target->latency_us / 1e3,
			target->is_unreachable
				? "and a disk misses it although it serves "
				  "nothing else"
				: "although the disks hold others back for it");
	return text_add(t,
			"the %s of its %s %s %s is %.1f ms with %.0f %% of the "
			"leaves' time, which is the maximum. Its requests wait "
			"for those that other units have in flight. Limit "
			"these units, or raise the target",
			word, op_names[target->op],
			target->source == TARGET_AT_VOLUME ? "at"
							   : "at the leaves of",
			d->node, target->latency_us / 1e3,
			target->wanted / target->most * 90);
}

/* Does the kernel charge requests to the cgroup?  Without an answer, the cgroup is gone. */
bool evidence_has_io(const struct cgroup *c)
{
	_cleanup_free_ char *text = NULL;
	char *save = NULL;

	if (cgroup_read(c, "cgroup.controllers", &text) < 0)
		return true;
	for (char *word = strtok_r(text, " \n", &save); word;
	     word = strtok_r(NULL, " \n", &save))
		if (streq(word, "io"))
			return true;
	return false;
}

int cause_explain_unaccounted(const struct cgroup *c, struct text *t)
{
	const char *subject = c->policy->subject;
	int err;

	err = text_add(t,
		       "the io controller is not enabled for %s, so its "
		       "requests are charged to a cgroup above; ",
		       subject);
	if (err)
		return err;
	if (*subject == '/')
		return text_add(t, "write +io to cgroup.subtree_control of "
				   "the cgroups above");
	return text_add(t,
			"run \"systemctl set-property %s%s%s "
			"IOAccounting=yes\"",
			text_quote(subject), subject, text_quote(subject));
}

static int explain_unobserved(const struct evidence *e,
			      const struct governed *f, struct text *t)
{
	/* A floor has no other cause, also if the controller was enabled a moment ago. */
	if (!f->target || !evidence_has_io(f->cgroup))
		return cause_explain_unaccounted(f->cgroup, t);
	return text_add(t,
			"latencies of %s are measured by BPF only, which is "
			"not available: %s; see \"Latency targets\" in "
			"sutrod(8)",
			op_names[f->target->op],
			strerror(-latency_error(e->context->machine->latency)));
}

static int explain_infeasible(const struct evidence *e,
			      const struct governed *f, const struct device *d,
			      struct text *t)
{
	const struct control_promise *p =
		control_promise(e->plant->control, f->number);
	const struct device *leaf = bottleneck(e, f);
	int err;

	/* The state is found again some seconds later than the grants. */
	if (!leaf)
		return text_add(t,
				"the floors needed more than the time of a "
				"leaf, so this one was granted less than its "
				"value; now they fit");
	err = text_add(t,
		       "the floors need %.0f %% of the time of %s, so this "
		       "one is granted less than its value, by its importance. "
		       "Lower a floor, move a unit to another device, or raise "
		       "Importance=",
		       control_needs(e->plant->control, p->bottleneck) * 100,
		       leaf->node);
	return err ?: add_amplification(t, f, d);
}

/* The lowest device that has the unit's bytes while the leaves do not. */
static const struct device *lost_below(const struct evidence *e,
				       const struct governed *f,
				       const struct device *d)
{
	for (size_t i = 0; i < d->n_slaves; i++)
		if (rate_at(e, f->cgroup, f->key, d->slaves[i]) > 0)
			return lost_below(e, f, d->slaves[i]);
	return d;
}

static const struct device *without_weights(const struct evidence *e,
					    const struct device *d)
{
	for (size_t i = 0; i < d->n_leaves; i++)
		if (!actuator_backend(e->context->actuator, d->leaves[i]))
			return d->leaves[i];
	return NULL;
}

/* The rate of the unit with two digits, rounded down, so that a floor of that value is held. */
static uint64_t holdable(const struct governed *f)
{
	uint64_t rate = f->got > 0 ? f->got : 0, unit = 1;

	while (rate / unit >= 100)
		unit *= 10;
	return rate / unit * unit;
}

static int add_holdable(struct text *t, const struct governed *f)
{
	uint64_t rate = holdable(f);
	_cleanup_free_ char *value = promise_format_value(f->key, rate, 0, 0);

	if (!value)
		return -ENOMEM;
	if (f->target || !rate || rate >= f->floor)
		return 0;
	return text_add(t, ". At present, %s=%s %s can be held",
			promise_info(f->key)->name, f->path, value);
}

/* Others make pages dirty: the unit waits with them in memory, and in a queue that has no weights. */
static int explain_flood(uint64_t bytes, const struct device *d, struct text *t)
{
	const struct device *crypt = above_crypt(d);
	int err;

	err = text_add(t,
		       "others have %llu MiB of pages that are dirty or in "
		       "writeback, and the kernel makes all writers of pages "
		       "wait for these; set MemoryHigh= of the unit that "
		       "writes them",
		       (unsigned long long)(bytes >> 20));
	if (err || !crypt)
		return err;
	return text_add(t,
			". Their writes may fill the queue of dm-crypt at %s, "
			"which has no weights: unless it has these flags, run "
			"\"cryptsetup refresh --perf-no_read_workqueue "
			"--perf-no_write_workqueue %s\"",
			crypt->node, crypt->label ?: "NAME");
}

/* @leaf: without weights, NULL: it has some by now */
static int explain_unweighted(const struct governed *f,
			      const struct device *leaf, struct text *t)
{
	return text_add(t,
			"the scheduler of %s (%s) %s; run \"sutroctl use %s\"",
			leaf ? leaf->node : "a leaf",
			leaf ? device_scheduler(leaf) : "none",
			f->target ? "counts no device time, so the target is "
				    "not kept"
				  : "has no weights",
			f->path);
}

static int explain_crypt(const struct device *crypt, uint64_t bytes,
			 struct text *t)
{
	return text_add(t,
			"%llu KiB of its writes wait above the disks, in "
			"dm-crypt at %s, whose queue has no weights. Limit "
			"the units that fill it, by MemoryHigh= or "
			"WriteBandwidthMax=; or, unless it has these flags, "
			"run \"cryptsetup refresh --perf-no_read_workqueue "
			"--perf-no_write_workqueue %s\"",
			(unsigned long long)(bytes >> 10), crypt->node,
			crypt->label ?: "NAME");
}

static int explain_above(const struct governed *f, const struct above *above,
			 struct text *t)
{
	if (above->at->kind == DEVICE_CRYPT)
		return explain_crypt(above->at, above->bytes, t);
	return explain_unweighted(f, above->at, t);
}

static int explain_limited(const struct evidence *e, const struct governed *f,
			   const struct device *d, struct text *t)
{
	const struct machine *machine = e->context->machine;
	uint64_t pages = waiting_pages_bytes(f->cgroup);
	uint64_t all = waiting_pages_bytes(cgroup_tree_root(machine->tree));
	const struct resync *r =
		resyncs_sharing(&machine->resyncs, machine->topology, d);

	if (r)
		return text_add(t,
				"the %s of /dev/%s uses the same disks, and md "
				"delays requests to the blocks that it "
				"processes; "
				"lower ResyncWeight= in sutrod.conf or "
				"sync_speed_max of the array",
				r->action, r->name);
	if (pages && all >= FLOOD_BYTES && all >= FLOOD * pages)
		return explain_flood(all - pages, d, t);
	if (promise_info(f->key)->write && pages)
		return text_add(
			t,
			"writeback of its pages does not keep the disks "
			"busy (%llu MiB are dirty or in writeback); "
			"write with O_DIRECT, sync more often, or "
			"lower vm.dirty_bytes",
			(unsigned long long)(pages >> 20));
	return text_add(t, "the unit has too few requests in flight to use "
			   "its share; raise its queue depth, or let "
			   "several threads read and write");
}

int cause_explain(const struct evidence *e, const struct governed *f,
		  enum control_state state, struct text *t)
{
	const struct device *d =
		topology_by_devno(e->context->machine->topology, f->devno);
	_cleanup_free_ char *cap = NULL;
	struct above above = {};
	int r;

	if (state == CONTROL_UNMEASURED && d)
		return text_add(t,
				"the capacity of %s for requests of this unit "
				"is unknown until the unit uses it; meanwhile "
				"%g %% of the time of each leaf is set aside",
				d->node, f->part / 100.0);
	if (!state_is_broken(state) || !d || !f->cgroup)
		return text_add(t, "%s", "");
	r = f->target ? 0 : find_cap(e, f, d, &cap);
	if (r)
		return r < 0 ? r : text_add(t, "%s", cap) ?: add_holdable(t, f);
	switch (state) {
	case CONTROL_INFEASIBLE:
		if (f->target)
			return explain_target(f, d, t);
		return explain_infeasible(e, f, d, t);
	case CONTROL_LIMITED:
		return explain_limited(e, f, d, t) ?: add_holdable(t, f);
	case CONTROL_CROWDED:
		return text_add(t, "other requests of the unit on the same "
				   "leaves use its share; move them to a unit "
				   "of their own");
	case CONTROL_UNATTRIBUTED:
		return text_add(
			t,
			"below %s its requests are charged to another "
			"cgroup, so its weight has no effect on them; "
			"install the package sutro-stacking-dkms, whose "
			"drivers keep the owner",
			lost_below(e, f, d)->node);
	case CONTROL_UNWEIGHTED:
		if (f->crowded)
			above = above_find(e, f, d);
		if (above.at)
			return explain_above(f, &above, t);
		return explain_unweighted(
			f, f->target ? enforce_gap(d) : without_weights(e, d),
			t);
	case CONTROL_UNOBSERVED:
		return explain_unobserved(e, f, t);
	default:
		return -EINVAL;
	}
}
