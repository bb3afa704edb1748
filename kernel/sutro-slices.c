// SPDX-License-Identifier: GPL-2.0-only
/*
 * Sutro I/O scheduler: slices on devices that serve many requests at once.
 *
 * 1. The defect
 *
 * Weights divide the backlog, and a group with few requests has none: each of its requests waits
 * for those that others have at the device.  A favoured group is protected from that
 * (sutro-protect.c).  Another one is not, for the device idles while it is kept for few requests.
 * But it hardly does for a group that alone keeps it nearly busy.
 *
 *	a and b (weight 100) on an ssd of 135 MB/s.  a has 4 reads of 16 KiB, which alone use 0.94
 *	of it, and b writes 1 MiB, 7.4 ms each.  Each read of a waits for one or two writes, and a
 *	has 0.02 of its rate alone.  With slices it has 0.50, and b half of its own.
 *
 * 2. The rule
 *
 * A group that is not favoured is on trial, too, while requests of others wait, or it waits for
 * those that they have at the device (sutro-trial.c): a scan of 1 MiB at a time never waits.  If it
 * got two thirds of its entitlement at most, with SUTRO_SLICES_DEPTH requests or more at once
 * and no backlog, all groups have slices for a moment, as with fairness=1.  They keep them if
 *
 *	- the group has SUTRO_SLICES_GAIN halves of the requests that it had in its trial, and
 *	- all groups together lose 1 / SUTRO_SLICES_LOSS of the device time that they used
 *	  without slices at most, or of the bytes that they transferred.
 *
 * Otherwise they have none for SUTRO_SLICES_REST_NS, and for twice as long the next time.  Each
 * SUTRO_SLICES_LAST_NS they are without slices for a trial, for the load may have changed.
 *
 * Later, slices end when two trials, one after the other, show a loss of more than
 * 1 / SUTRO_SLICES_LOSS_LATER: a trial of 0.13 s may have one write of 7.4 ms less than the next.
 *
 *	With 4 reads of 4 KiB a uses 0.3 of the device.  With slices, all use 0.65 in 0.13 s, so
 *	that a waits for 4 s as before.  In the first minute there are four more tries.
 *
 * Device time is estimated, so the price may differ.  Without slices, the device counts as busy all
 * the time at least.  Requests of the group count as much as in its trial: fewer at the device seem
 * to cost more.  Few requests are charged less than a probe of them shows, as the device may serve
 * more at once.  By these charges slices leave it idle.  Bytes need no estimate, and count, too.
 *
 *	a has 8 reads of 8 KiB, b one write of 1 MiB at a time.  A probe shows 61 us for a read,
 *	which is charged 43.  With slices, all use 0.79 to 0.84 in five tries, but transfer 129
 *	instead of 133 MB/s.  Without the rule about bytes, a had 0.1 of the device.
 *
 * While costs are guesses, as they are after a change of the device, charges show nothing: no try
 * begins after such a trial, and slices that were worth their price go on to their end.
 *
 *	The drive becomes five times slower, and 0.1 s later its costs count as guesses.  a and b
 *	have slices all the time.  Without this, the device seemed to be used by a fifth, slices
 *	ended, and the next tries were compared with a trial that had been charged five times too
 *	much: a had 0.06 of the device for six seconds.
 *
 * 3. Beside protected groups
 *
 * Where protected groups would use more than their shares, others have theirs in shared windows
 * (sutro-part.c), and these are divided as badly.  So there are slices in shared windows, and only
 * their time counts.  Slices end when the first group becomes protected, for others wait for less
 * then.  There are none while a latency-sensitive group is protected, which would wait for them.
 *
 *	f (weight 300) has 4 reads of 16 KiB at once beside a and b (100).  A third of the time is
 *	shared.  Without slices, a has 0.02 of the device and b 0.35, and each has 0.2 with them.
 */
#include "sutro-core.h"

#define US 1000ULL
#define MS (1000 * US)

/* Slices cost at most this part of the use of the device, or of the bytes, or later this one. */
#define SUTRO_SLICES_LOSS 8
#define SUTRO_SLICES_LOSS_LATER 6
/* A group for which others have slices has this many halves of its requests without them. */
#define SUTRO_SLICES_GAIN 3
/* It has as many requests at once.  For fewer, the device would idle too much. */
#define SUTRO_SLICES_DEPTH 3
/* Its requests in this time decide, once and again. */
#define SUTRO_SLICES_TRY_NS (1000 * MS)
/* After this time, a trial without slices decides anew. */
#define SUTRO_SLICES_LAST_NS (30000 * MS)
/* There are none so long: units that have just begun may be given reserved time. */
#define SUTRO_SLICES_FIRST_NS (2000 * MS)
/* For how long there are none after they have cost more: at first, and at most. */
#define SUTRO_SLICES_REST_NS (4000 * MS)
#define SUTRO_SLICES_REST_MAX_NS (64000 * MS)

/* Do the knobs, the device and protected groups allow slices of this kind? */
static bool sutro_slices_allowed(const struct sutro_core *core)
{
	const struct sutro_tunables *t = &core->tunables;

	return !t->rotational && !t->fairness && t->protect &&
	       !(sutro_protects(&core->protect) && core->protect.sensitive);
}

/*
 * Does the share of others depend on what shared windows give them?  These are most of it if
 * protected groups use more than their shares alone.
 */
static bool sutro_slices_matter(const struct sutro_protect *protect)
{
	return !sutro_protects(protect) ||
	       (2 * protect->part >= SUTRO_PROTECT_WHOLE - protect->share &&
		protect->part < SUTRO_PROTECT_MOST_PART);
}

/**
 * sutro_slices_may - may a group be tried for slices?
 * @core:	the leaf
 * @group:	the group, which is active
 *
 * Trials take memory and time.  So they begin only while one group waits for others, and for a
 * group that has enough at once.
 */
bool sutro_slices_may(struct sutro_core *core, const struct sutro_group *group)
{
	bool others_wait = core->queued > group->queued;
	bool waits_for_others = sutro_core_is_full(core) &&
				core->in_flight > group->in_flight;

	if (!group->protect &&
	    ((!others_wait && !waits_for_others) ||
	     group->queued + group->in_flight < SUTRO_SLICES_DEPTH))
		return false;
	if (!sutro_slices_allowed(core) || core->tunables.guessing ||
	    !sutro_slices_matter(&core->protect))
		return false;
	if (!core->slices.from_ns)
		core->slices.from_ns = core->now_ns + SUTRO_SLICES_FIRST_NS;
	return !sutro_before(core->now_ns, core->slices.from_ns);
}

/**
 * sutro_slices_prevent - groups become protected, and others have less to wait for
 * @core:	the leaf
 * @now_ns:	the time
 */
void sutro_slices_prevent(struct sutro_core *core, u64 now_ns)
{
	u64 from_ns = now_ns + SUTRO_SLICES_REST_NS;

	if (sutro_before(now_ns, core->slices.until_ns))
		core->slices.until_ns = now_ns;
	if (sutro_before(core->slices.from_ns, from_ns))
		core->slices.from_ns = from_ns;
}

/**
 * sutro_slices_begin - a trial without slices has ended: groups have slices for a moment
 * @core:	the leaf
 * @own:	the protection of the group for whose sake; others do not pay back what it was owed
 *		before
 * @now_ns:	the time
 */
void sutro_slices_begin(struct sutro_core *core,
			struct sutro_group_protect *own, u64 now_ns)
{
	struct sutro_slices *slices = &core->slices;

	/* Else it would have the device alone for that time. */
	sutro_tree_lead(own->group, 0);
	own->slices_ns = now_ns;
	slices->since_ns = now_ns;
	slices->until_ns = now_ns + SUTRO_SLICES_TRY_NS;
	slices->rest_ns = clamp(2 * slices->rest_ns, SUTRO_SLICES_REST_NS,
				SUTRO_SLICES_REST_MAX_NS);
	slices->from_ns = now_ns + slices->rest_ns;
}

/**
 * sutro_slices_are_for - have groups slices for the sake of one, and had they in its whole trial?
 * @core:	the leaf
 * @own:	the protection of the group
 */
bool sutro_slices_are_for(const struct sutro_core *core,
			  const struct sutro_group_protect *own)
{
	const struct sutro_slices *slices = &core->slices;

	return sutro_before(core->now_ns, slices->until_ns) &&
	       own->slices_ns == slices->since_ns &&
	       own->trial_ns >= slices->since_ns;
}

/* Did enough more requests of a group complete than in its trial, where each counts twice? */
static bool sutro_slices_gain(const struct sutro_core *core,
			      const struct sutro_group_protect *own, u64 now_ns)
{
	u64 length_us =
		div_u64(sutro_trial_shared_ns(&core->protect, own, now_ns), US);
	u64 before_us = div_u64(own->shared.time_ns, US);

	return 4 * own->nr * before_us >=
	       SUTRO_SLICES_GAIN * own->shared.nr_seen * length_us;
}

/* Is @amount in @length_us at least the part of the rate before that slices have to keep? */
static bool sutro_slices_keep(const struct sutro_core *core, u64 amount,
			      u64 length_us, u64 before, u64 before_us)
{
	u32 loss = core->slices.rest_ns ? SUTRO_SLICES_LOSS
					: SUTRO_SLICES_LOSS_LATER;

	return before &&
	       loss * amount * before_us >= (loss - 1) * before * length_us;
}

/* Do all groups use nearly as much of the device as in that trial, or have they as many bytes? */
static bool sutro_slices_fill(const struct sutro_core *core,
			      const struct sutro_group_protect *own, u64 now_ns)
{
	const struct sutro_protect *protect = &core->protect;
	u64 kib = (protect->shared_bytes - own->from_bytes) >> 10;
	u64 used_ns = protect->used_ns - own->from_ns;
	/* At what they cost there: estimates are higher for few requests on an idle device. */
	u64 cost_ns = 2 * own->shared.cost_ns * own->nr;
	u64 length_us =
		div_u64(sutro_trial_shared_ns(protect, own, now_ns), US);
	u64 before_us = div_u64(own->shared.time_ns, US);
	u64 all_us = max(div_u64(own->shared.all_ns, US), before_us);

	cost_ns = div64_u64(cost_ns, own->shared.nr_seen);
	if (cost_ns < own->got_ns)
		used_ns -= min(used_ns, own->got_ns - cost_ns);
	return sutro_slices_keep(core, div_u64(used_ns, US), length_us, all_us,
				 before_us) ||
	       sutro_slices_keep(core, kib, length_us,
				 own->shared.all_bytes >> 10, before_us);
}

/**
 * sutro_slices_worth - is a group that got less than it is entitled to worth a try?
 * @core:	the leaf
 * @own:	the protection of the group, which has no backlog
 */
bool sutro_slices_worth(struct sutro_core *core,
			const struct sutro_group_protect *own)
{
	/* With more than this, it could not gain as much as it has to. */
	return SUTRO_SLICES_GAIN * own->got_ns <= 2 * own->due_ns &&
	       own->depth >= SUTRO_SLICES_DEPTH &&
	       sutro_before(core->slices.guessed_ns, own->trial_ns) &&
	       sutro_slices_may(core, own->group) &&
	       !sutro_group_favoured_inside(own->group);
}

/**
 * sutro_slices_judge - a trial of a group is long enough
 * @core:	the leaf
 * @own:	the protection of the group
 * @now_ns:	the time
 *
 * Slices give a favoured group its share, but not the latency of a sensitive one.
 *
 * Return: true if groups have slices or had them in the trial: its result is not that without.
 */
bool sutro_slices_judge(struct sutro_core *core,
			const struct sutro_group_protect *own, u64 now_ns)
{
	struct sutro_slices *slices = &core->slices;
	bool guessed;

	if (core->tunables.guessing)
		slices->guessed_ns = now_ns;
	if (sutro_group_favoured(own->group, SUTRO_PROTECT_SENSITIVE))
		return false;
	if (!sutro_before(core->now_ns, slices->until_ns))
		return own->trial_ns < slices->until_ns;
	/* Nothing shows that they are needed still, so they last for a moment at most. */
	if (!sutro_slices_are_for(core, own) || core->nr_active < 2 ||
	    !sutro_slices_allowed(core))
		return true;
	guessed = !slices->rest_ns &&
		  !sutro_before(slices->guessed_ns, slices->since_ns);
	if (!guessed && !sutro_slices_fill(core, own, now_ns)) {
		if (slices->rest_ns || slices->poor)
			slices->until_ns = now_ns;
		slices->poor = true;
		return true;
	}
	slices->poor = false;
	if (guessed || sutro_slices_gain(core, own, now_ns)) {
		slices->until_ns = min(now_ns + SUTRO_SLICES_TRY_NS,
				       slices->since_ns + SUTRO_SLICES_LAST_NS);
		slices->rest_ns = 0;
		slices->from_ns = now_ns;
	}
	return true;
}
