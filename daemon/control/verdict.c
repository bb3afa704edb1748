/* SPDX-License-Identifier: LGPL-2.1-or-later */

/*
 * The state of each floor, and reports of it.
 *
 * The state is that of the law or the target, unless evidence (cause.c) shows another one.
 * The evidence may change while the state stays: the cause is found again every few seconds.
 *
 * A change of the state is reported at once: PromiseChanged on the bus, and a message in the journal,
 * which the catalog (dist/sutro.catalog) explains.
 */

#include "control/above.h"
#include "control/cause.h"
#include "control/verdict.h"
#include "host/event.h"
#include "policy/policy.h"

/* Rates are reported as means over about a second. */
#define GOT_TAU_S 0.5

/* A queue between the unit and its leaves is the cause (crowded) if requests wait in it for this
 * many ticks, while the unit receives less than this part of its floor.
 */
#define CROWDED_TICKS 8
#define SHORT 0.95

/* The age of a cause after which it is found again. */
#define CAUSE_USEC 5000000U

/*
 * The law sees the leaves only: there, a unit whose requests wait above them seems to have
 * no demand, too few requests, or to be charged to another cgroup.
 */
static bool may_wait_above(const struct governed *f, enum control_state state)
{
	if (f->target || f->got >= SHORT * f->floor)
		return false;
	return state == CONTROL_HELD || state == CONTROL_IDLE ||
	       state == CONTROL_SETTLING || state == CONTROL_LIMITED ||
	       state == CONTROL_UNATTRIBUTED;
}

/* Writes that wait show nothing about a demand for reads, unless there are none. */
static bool explains(const struct governed *f, const struct above *above,
		     enum control_state state)
{
	return above->at &&
	       (above->at->kind != DEVICE_CRYPT ||
		promise_info(f->key)->write || state == CONTROL_IDLE);
}

static enum control_state look_again(const struct evidence *e,
				     struct governed *f,
				     enum control_state state)
{
	const struct device *d =
		topology_by_devno(e->context->machine->topology, f->devno);
	struct above above = {};

	if (d && may_wait_above(f, state))
		above = above_find(e, f, d);
	above_follow(e, f, &above);
	if (!explains(f, &above, state))
		f->crowded_ticks = 0;
	else if (f->crowded_ticks < CROWDED_TICKS &&
		 ++f->crowded_ticks == CROWDED_TICKS &&
		 !above_is_sure(e, &above))
		f->crowded_ticks = 0;
	f->crowded = f->crowded_ticks >= CROWDED_TICKS;
	return f->crowded ? CONTROL_UNWEIGHTED : state;
}

/* ---- reports ---- */

static void report_to_journal(const struct governed *f, bool broken)
{
	_cleanup_free_ char *value = promise_format_value(
		f->key, f->floor, f->part, governed_percentile(f));
	const char *key = promise_info(f->key)->name;
	const char *unit = f->cgroup->policy->subject;
	_cleanup_free_ char *promise = asprintf_or_null("%s=%s", key, f->path);

	log_event(broken ? EVENT_PROMISE_FAILS : EVENT_PROMISE_HOLDS,
		  broken ? LOG_WARNING : LOG_INFO,
		  EVENT_FIELDS({ "SUTRO_UNIT", unit },
			       { "SUTRO_CGROUP", f->cgroup->path },
			       { "SUTRO_PROMISE", promise ?: key },
			       { "SUTRO_SOURCE", f->source },
			       { "SUTRO_STATE",
				 control_state_to_string(f->state) }),
		  "%s: %s=%s %s %s%s.", unit, key, f->path, value ?: "",
		  broken ? "does not hold: " : "holds again",
		  broken ? f->cause : "");
}

/* The state now: that of the law or the target, unless files of the kernel have another cause. */
static enum control_state state_of(const struct evidence *e, struct governed *f)
{
	enum control_state state =
		f->target ? f->target->state
			  : look_again(e, f,
				       control_promise(e->plant->control,
						       f->number)
					       ->state);

	/* Without counters, each unit looks idle. */
	if (state == CONTROL_IDLE && f->state != CONTROL_IDLE && f->cgroup &&
	    !evidence_has_io(f->cgroup))
		return CONTROL_UNOBSERVED;
	return state;
}

static int renew_cause(const struct evidence *e, struct governed *f,
		       enum control_state state)
{
	_cleanup_(text_freep) struct text t = {};
	int err = cause_explain(e, f, state, &t);

	if (err)
		return err;
	free(f->cause);
	f->cause = TAKE_PTR(t.p);
	f->cause_usec = e->sampler->now_usec;
	return 0;
}

static int report(const struct evidence *e, struct governed *f)
{
	enum control_state state = state_of(e, f);
	bool is_same = state == f->state;
	int err;

	if (!f->cgroup ||
	    (is_same && !(state_is_broken(state) &&
			  e->sampler->now_usec - f->cause_usec >= CAUSE_USEC)))
		return 0;
	err = renew_cause(e, f, state);
	if (err || is_same)
		return err;
	f->state = state;
	e->context->state_changed(f, e->context->userdata);
	if (state_is_broken(state))
		report_to_journal(f, true);
	else if (f->complained && state == CONTROL_HELD)
		report_to_journal(f, false);
	/* The unit may settle, or be idle, before the floor holds again. */
	f->complained = state_is_broken(state) ||
			(f->complained && state != CONTROL_HELD);
	return 0;
}

static void remember(const struct evidence *e, struct governed *f)
{
	struct history *h = f->history;
	uint64_t now = e->sampler->now_usec;

	/* Rows are far apart in memory. */
	if (f->remembered_usec && now - f->remembered_usec < 1000000 - 1000)
		return;
	f->remembered_usec = now;
	h->row[h->next] = (struct history_row){
		.usec = now,
		.got = f->got,
		.promised = f->floor,
		.granted = control_promise(e->plant->control, f->number)->phi,
	};
	h->next = (h->next + 1) % HISTORY_ROWS;
	if (h->n < HISTORY_ROWS)
		h->n++;
}

int verdicts_report(struct plant *plant, const struct sampler *sampler,
		    const struct control_context *context, double dt_s)
{
	const struct evidence e = { plant, sampler, context };
	double a = dt_s / (dt_s + GOT_TAU_S);
	int err = 0;

	for (size_t i = 0; i < plant->n_floors && !err; i++) {
		struct governed *f = &plant->floors[i];

		/* The percentile of a target is already measured over a second. */
		f->got = f->target ? f->rate : f->got + a * (f->rate - f->got);
		remember(&e, f);
		err = report(&e, f);
	}
	return err;
}
