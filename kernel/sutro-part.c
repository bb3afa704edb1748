// SPDX-License-Identifier: GPL-2.0-only
/*
 * Sutro I/O scheduler: the part of a cycle that is shared.
 *
 * The sums of the two kinds of windows (sutro-window.c) show the cost of sharing for the
 * protected groups.  With the rates X_r in reserved and X_s in shared windows (completions
 * in a second), a shared part p of the time loses p * (1 - X_s / X_r) of their rate alone.
 * p is the largest part with which
 *
 *  - the loss is at most 1 - protect / 100, 3 % if protect is 97;
 *  - for a latency-sensitive group, at most SUTRO_PROTECT_SLOW of 1024 requests
 *    take longer than twice their mean in reserved windows, so that the 99th percentile
 *    of latency stays below that.  With S slow requests in a second of shared windows,
 *    p is at most that part of X_r / S.  If a cycle has fewer than 1024 / SLOW requests,
 *    they arrive in short windows as in reserved ones: p is at most that part by the part
 *    of requests in shared windows that are slow.
 *
 * The first bound alone leaves others at least (100 - protect) percent of the time, less
 * draining: 0.03 / (1 - phi) of their entitlement, a tenth if phi is 0.7.  p is
 * not less than SUTRO_PROTECT_LEAST, less what other groups receive in gaps: that is
 * what they receive in any case.  With a part g of the time in gaps, p is at most
 * 2 * (p - g), or p - g for a latency-sensitive group with many requests: where others have that
 * much, shared windows would only disturb.  Of g, only half of SUTRO_PROTECT_LEAST counts while
 * some group has no request that fits into a gap.  These bounds are for all protected groups
 * together; p is also at most that with which each of them receives its share, and not less than
 * most of the entitlement of others while protected groups wait (sutro-apart.c).  If sharing
 * does no harm, p is 1 less SUTRO_PROTECT_SAMPLE, which keeps X_r known.  Time that protected
 * groups use in the sample is charged as any other: a group of share 0.12 would otherwise have
 * 3 % of the device more, a quarter of its share.
 *
 * Protected groups are not entitled to more than their share phi of the device.  They use a
 * part u of it in reserved windows, and s = u * X_s / X_r in shared ones, or their charge there if
 * that is more and their requests cost a quarter more: sequential ones that wait there merge, and
 * fewer complete.  Let v be the most that all groups use in shared windows.  A mix of requests may
 * use several parts of the device at once, so v may be more than 1.  In reserved windows the whole
 * is w = min(v, 1), or u if that is more.  On a rotational device where all protected groups
 * think, s is that charge where shared windows are long, and w is the mean of that and of the use
 * by all groups there: a disk that is idle while a group thinks is a loss for both sides.  With
 * reserved time (sutro-reserve.c), the daemon corrects what a group receives, and these two are
 * left out.  If u > phi * w, p is at least
 *
 *	(u - phi * w) / (u - phi * w + phi * v - s)
 *
 * Then they receive (1 - p) * u + p * s = phi * ((1 - p) * w + p * v).  If s is phi * v or
 * more, they need no protection at the moment, and p is 1 less SUTRO_PROTECT_SAMPLE.
 * When it was that for SUTRO_RELEASE_NS, the groups are released and on trial again
 * (sutro-protect.c).
 *
 * Protection has a price: reserved windows take no more than SUTRO_PROTECT_PRICE times phi.
 * One group of weight 1000 beside 200 of weight 100 is entitled to 5 % of the device, and
 * takes 19 % of the time from the others, not all of it.  While u is less than phi and other
 * groups find no gaps, they have only a third of busy_ns in flight in shared windows, and on
 * a rotational device one request: X_s is higher then, and p is larger (beside several protected
 * groups it is not, see sutro-others.c).  Protected groups
 * do not wait where others wait for that (sutro-select.c), and are not charged then, unless
 * sharing does no harm: they would have more than their shares.
 *
 * Services that send a request now and then use little of the device.  If they come at random
 * times, others cannot be done before, and each of their requests meets a shared window with a
 * chance of p.  The least p, and the requests of others in gaps, may be too much for the 99th
 * percentile.  Then the second bound would cost others the device for nothing.  So it does not
 * count where protected groups have requests for less than SUTRO_PROTECT_SPORADIC of the time in
 * reserved windows, and some of them may be back at any time: others have few requests at the
 * device in shared windows, and the first bound alone sets p.  Few requests come in a window, so
 * counts would take long to show a loss of 3 %.  Instead, a group that thinks for t after each
 * request sends 1 / (t + d) a second if its requests take d longer in shared windows.  As few
 * requests of others are what keeps d short, such groups are not released.
 *
 * How few depends on t: in shared windows others send while what they have at the device takes less
 * time than the loss that is allowed of t, and the latency of the device, which passes meanwhile.
 * They always have one request.  A short t needs that, and with a long one others lose nothing.
 *
 *	A service thinks for 20 ms in the mean, b reads 64 KiB, 0.47 ms each.  3 % of 20 ms and
 *	0.2 ms of latency are 0.8 ms: b has two requests at the device, and all of its bandwidth.
 *	Requests of the service take 0.33 ms longer, 1.6 % of t.  If b writes 1 MiB in 7.5 ms, it
 *	has one: d is 3.7 ms, and p = 0.03 / 0.15 = 20 %.
 *
 * The trial of a group that becomes protected alone measures X_s.  Otherwise, as long as
 * little is known, s = 0 and u = 1 - g are assumed, or u = 1 with reserved time, or if some
 * protected group comes at random times: others send few requests at a time then.  So it is
 * whenever a group becomes protected that was not when these were measured, unless the group only
 * keeps up with others (sutro-favoured.c) and has one request queued.
 *
 *	A service (weight 200) reads 16 KiB on a hard disk, then thinks for 100 ms.  b (100) writes
 *	1 MiB, and uses 0.87 of the reserved windows in gaps.  The rates are known after 3 s only.
 *	Until then u is at most 0.13, so b needs no shared windows for its entitlement.
 *
 *	a (weight 200) reads and thinks for 5 ms on a hard disk, b (100) has 64 reads.  Alone, a
 *	uses 0.67 of the disk, and 0.54 beside b, where both use 0.87.  Nearly all of the time was
 *	shared, and u, of 15 requests in the sample, was 0.72.  With s = u * X_s / X_r = 0.61 a
 *	seemed to have 0.7 of the 0.87, more than its share, and the time stayed shared.
 *
 *	a (weight 200) has 8 readers of 4 KiB, b (100) writes 1 MiB, 7.4 ms each.
 *	X_r is 18,000 a second, X_s 400: p = 0.03 / (1 - 0.02) = 3 %.  a's requests use
 *	u = 0.54 of the device, less than phi = 0.67.  So a receives 97 % of its rate
 *	alone.  At 1000:100 all requests in shared windows are slow: the second bound is
 *	4 / 1024 * 18,000 / 400 = 18 %, so p is 3 %, too.
 *
 *	a reads 16 KiB with 16 requests in flight, u = 1, otherwise the same at 200:100,
 *	s = 0.05: p = 0.33 / 0.95 = 35 %, and both receive what they are entitled to.  If
 *	b's writes and a's reads overlap, v = 1.3: p = 0.33 / (0.33 + 0.87 - 0.05) = 29 %.
 *
 * If a group is protected for its latency target, p is at most what that allows
 * (sutro-latency.c).  If time is reserved, p is at most what that leaves (sutro-reserve.c).
 * If no group is protected for its share, p is the lesser of these.
 */
#include "sutro-core.h"

#define US 1000ULL
#define MS (1000 * US)

/* Of SUTRO_PROTECT_LEAST, the part of shared windows: they measure the cost of sharing. */
#define SUTRO_PROTECT_LEAST_SHARED 2U
/*
 * The reserved part is at most this many times the share of protected groups.  Of 2, 4 and
 * 8, it is the largest with which others receive their entitled device time in the
 * simulation.
 */
#define SUTRO_PROTECT_PRICE 4U
/* Slow requests, of 1024, that sharing may cause. */
#define SUTRO_PROTECT_SLOW 4U
/* Groups that have requests for less than this part of the time have one now and then. */
#define SUTRO_PROTECT_SPORADIC (SUTRO_PROTECT_WHOLE / 4)
/* Requests in a number of us. */
#define SUTRO_PART_RATE_WHOLE BIT_ULL(32)
/* Shared windows of at least this part of a cycle measure how much of the device all groups use. */
#define SUTRO_MOST_PART (SUTRO_PROTECT_WHOLE / 4)
#define SUTRO_MOST_SHIFT 3
/* They count only if they are this many times as long as an expensive request of others. */
#define SUTRO_MOST_REQUESTS 4
#define SUTRO_MOST_MIN_NS (8 * MS)

/*
 * Requests per second: the mean of arrivals and completions, because a window may begin or
 * end between both.
 */
static u64 sutro_part_rate(const struct sutro_protect_sums *sums)
{
	return div64_u64(sums->nr_seen * 500 * MS, max(sums->time_ns, 1ULL));
}

/* A part of a time, of SUTRO_PROTECT_WHOLE. */
static u64 sutro_part_of(u64 part_ns, u64 time_ns)
{
	return div64_u64(part_ns * SUTRO_PROTECT_WHOLE, max(time_ns, 1ULL));
}

/* The part of the time that protected groups use in reserved windows. */
static u64 sutro_part_used(const struct sutro_protect *protect)
{
	const struct sutro_protect_sums *alone =
		&protect->sums[SUTRO_WINDOW_RESERVED];

	return sutro_part_of(alone->cost_ns, alone->time_ns);
}

/*
 * The part of the time that they are charged in shared windows, if their requests cost a quarter
 * more there, because they merge; else 0.
 */
static u64 sutro_part_merged(const struct sutro_protect *protect)
{
	const struct sutro_protect_sums *alone =
		&protect->sums[SUTRO_WINDOW_RESERVED];
	const struct sutro_protect_sums *shared =
		&protect->sums[SUTRO_WINDOW_SHARED];

	if (4 * shared->cost_ns * alone->nr <= 5 * alone->cost_ns * shared->nr)
		return 0;
	return sutro_part_of(shared->cost_ns, shared->time_ns);
}

/**
 * sutro_part_learn_most - learn from shared windows how much use is the whole device
 * @protect:	the protection
 *
 * At the beginning of a window few requests complete, so short windows yield only a lower
 * bound.  In too short a time, one completion looks like more than the whole.
 */
void sutro_part_learn_most(struct sutro_protect *protect)
{
	const struct sutro_protect_sums *shared =
		&protect->sums[SUTRO_WINDOW_SHARED];
	s64 used = sutro_part_of(shared->all_ns, shared->time_ns);

	if (shared->time_ns <
	    max(SUTRO_MOST_REQUESTS * protect->other_ns, SUTRO_MOST_MIN_NS))
		return;
	if (used > protect->most)
		protect->most = used;
	else if (protect->part >= SUTRO_MOST_PART && !protect->gentle)
		protect->most -= (protect->most - used) >> SUTRO_MOST_SHIFT;
}

/* The part of reserved windows that other groups use in gaps. */
static u64 sutro_part_gaps(const struct sutro_protect *protect)
{
	const struct sutro_protect_sums *alone =
		&protect->sums[SUTRO_WINDOW_RESERVED];

	return sutro_part_of(alone->all_ns - alone->cost_ns, alone->time_ns);
}

/* The part that other groups have in any case, less @gaps. */
static u64 sutro_part_least(u64 gaps)
{
	return SUTRO_PROTECT_LEAST -
	       min_t(u64, gaps,
		     SUTRO_PROTECT_LEAST - SUTRO_PROTECT_LEAST_SHARED);
}

/*
 * The shared part with which SUTRO_PROTECT_SLOW of 1024 requests are slow.  A second of shared
 * windows has a number of slow requests, of @rate that complete in a second of all time.  With
 * few requests in a cycle they arrive in short windows as in reserved ones, and each cycle has
 * a slow one.
 */
static u64 sutro_part_prompt(const struct sutro_protect *protect, u64 rate)
{
	const struct sutro_protect_sums *shared =
		&protect->sums[SUTRO_WINDOW_SHARED];
	u64 in_cycle = rate * div64_u64(protect->cycle_ns, US);

	if (in_cycle * SUTRO_PROTECT_SLOW < SUTRO_PROTECT_WHOLE * MS)
		return div64_u64(SUTRO_PROTECT_SLOW * shared->nr,
				 shared->nr_slow);
	return div64_u64(SUTRO_PROTECT_SLOW * rate *
				 div64_u64(shared->time_ns, US),
			 shared->nr_slow * MS);
}

/**
 * sutro_part_is_known - are the rates of protected groups known?
 * @protect:	the protection
 *
 * Requests count by arrival and completion: those of a deep group wait for longer than a
 * window, and none is sent and completes in one.
 */
bool sutro_part_is_known(const struct sutro_protect *protect)
{
	return protect->sums[SUTRO_WINDOW_RESERVED].nr_seen >=
	       2 * SUTRO_PROTECT_KNOWN;
}

/* The part of the time that other groups have in gaps, as far as all of them can use these. */
static u64 sutro_part_usable_gaps(const struct sutro_protect *protect)
{
	u64 gaps = sutro_part_gaps(protect);

	return protect->unfit ? min_t(u64, gaps, SUTRO_PROTECT_LEAST / 2)
			      : gaps;
}

/*
 * May some protected group be back at any time, so that no gap is known in advance?  Its think
 * times have to be known for that.
 */
static bool sutro_part_is_irregular(const struct sutro_protect *protect)
{
	const struct sutro_group_protect *own;

	list_for_each_entry(own, &protect->groups, list)
		if (own->think.nr >= SUTRO_THINK_FEW &&
		    2 * sutro_think_quiet_us(&own->think) < own->think.mean_us)
			return true;
	return false;
}

/*
 * Do protected groups have requests for a small part of the time, at times that are not known?
 * With seeks, the time that a request takes varies too much to derive a rate from it.  So only a
 * latency-sensitive group, which the second bound would protect too much, is sporadic there.
 */
static bool sutro_part_is_sporadic(const struct sutro_core *core)
{
	const struct sutro_protect *protect = &core->protect;
	const struct sutro_protect_sums *alone =
		&protect->sums[SUTRO_WINDOW_RESERVED];

	return (protect->sensitive || !core->tunables.rotational) &&
	       sutro_part_is_known(protect) &&
	       sutro_part_of(alone->took_us * US, alone->time_ns) <
		       SUTRO_PROTECT_SPORADIC &&
	       sutro_part_is_irregular(protect);
}

/* How much longer may a request take, for the loss of a group that thinks after each? */
static u64 sutro_part_room_ns(const struct sutro_core *core)
{
	u64 least_us = U32_MAX;
	const struct sutro_group_protect *own;

	list_for_each_entry(own, &core->protect.groups, list)
		least_us = min(least_us, sutro_think_mean_us(&own->think));
	return least_us * US * (100 - core->tunables.protect) / 100;
}

/* By how much longer does a request take in shared windows? */
static u64 sutro_part_longer_us(const struct sutro_protect *protect)
{
	const struct sutro_protect_sums *alone =
		&protect->sums[SUTRO_WINDOW_RESERVED];
	const struct sutro_protect_sums *shared =
		&protect->sums[SUTRO_WINDOW_SHARED];
	u64 alone_us = div64_u64(alone->took_us, max(alone->nr, 1ULL));
	u64 shared_us =
		div64_u64(shared->took_us + div64_u64(protect->other_ns, US),
			  shared->nr + 1);

	return shared_us - min(shared_us, alone_us);
}

/* The rate of groups that think after each request, if it takes @longer_us longer. */
static u64 sutro_part_thought_rate(const struct sutro_protect *protect,
				   u64 longer_us)
{
	const struct sutro_group_protect *own;
	u64 rate = 0;

	list_for_each_entry(own, &protect->groups, list)
		rate += div64_u64(SUTRO_PART_RATE_WHOLE,
				  sutro_think_mean_us(&own->think) + longer_us +
					  1);
	return max(rate, 1ULL);
}

/*
 * The rates of protected groups in windows of both kinds, of which only the proportion counts.
 * Those of services are derived from their think times: several processes of a group lose less,
 * which their counts show as soon as these are large.
 */
static void sutro_part_rates(const struct sutro_protect *protect,
			     u64 *ret_alone, u64 *ret_shared)
{
	const struct sutro_protect_sums *sums = protect->sums;
	u64 alone = max(sutro_part_rate(&sums[SUTRO_WINDOW_RESERVED]), 1ULL);
	u64 shared = min(sutro_part_rate(&sums[SUTRO_WINDOW_SHARED]), alone);
	u64 nr = sums[SUTRO_WINDOW_SHARED].nr, least;

	*ret_alone = alone;
	*ret_shared = shared;
	if (!protect->sporadic)
		return;
	*ret_alone = sutro_part_thought_rate(protect, 0);
	least = sutro_part_thought_rate(protect, sutro_part_longer_us(protect));
	shared = div64_u64(*ret_alone * shared, alone);
	shared = div64_u64(shared * nr + least * SUTRO_PROTECT_KNOWN,
			   nr + SUTRO_PROTECT_KNOWN);
	*ret_shared = max(shared, least);
}

/* The largest shared part that costs protected groups no more than is allowed. */
static u64 sutro_part_harmless(const struct sutro_core *core)
{
	u64 loss = (100 - core->tunables.protect) * SUTRO_PROTECT_WHOLE / 100;
	u64 gaps = sutro_part_usable_gaps(&core->protect);
	u64 part = SUTRO_PROTECT_MOST_PART, rate, shared_rate, rest;

	sutro_part_rates(&core->protect, &rate, &shared_rate);
	if (shared_rate < rate)
		part = min(part, div64_u64(loss * rate, rate - shared_rate));
	if (core->protect.sensitive && !core->protect.sporadic &&
	    core->protect.sums[SUTRO_WINDOW_SHARED].nr_slow)
		part = min(part, sutro_part_prompt(&core->protect, rate));
	rest = part - min(part, gaps);
	part = min(part, core->protect.sensitive && !core->protect.sporadic
				 ? rest
				 : 2 * rest);
	return max(part, sutro_part_least(gaps));
}

/*
 * Does the use in shared windows count, and the idle time of reserved ones?  Groups that do not
 * think are charged more in shared windows if they are streams.
 */
static bool sutro_part_is_measured(const struct sutro_core *core)
{
	const struct sutro_group_protect *own;

	list_for_each_entry(own, &core->protect.groups, list)
		if (own->think.nr < SUTRO_THINK_FEW)
			return false;
	return core->tunables.rotational && !core->protect.reserve;
}

/* The part of the time that protected groups use in shared windows, if they use @used alone. */
static u64 sutro_part_used_shared(const struct sutro_protect *protect, u64 used,
				  bool measured)
{
	const struct sutro_protect_sums *shared =
		&protect->sums[SUTRO_WINDOW_SHARED];
	u64 rate, shared_rate;

	if (measured && protect->part >= SUTRO_MOST_PART)
		return min(used,
			   sutro_part_of(shared->cost_ns, shared->time_ns));
	sutro_part_rates(protect, &rate, &shared_rate);
	return max(div64_u64(used * shared_rate, rate),
		   min(used, sutro_part_merged(protect)));
}

/*
 * The smallest shared part with which protected groups receive their share.  Estimates of
 * costs are right in proportion only, so the whole is the most that is used in windows of
 * either kind.  Of that, only what exceeds the time is not there in reserved windows.
 */
static u64 sutro_part_entitled(const struct sutro_core *core, u64 share,
			       bool known)
{
	const struct sutro_protect *protect = &core->protect;
	u64 used = SUTRO_PROTECT_WHOLE, shared_used = 0;
	u64 whole = SUTRO_PROTECT_WHOLE, shared_whole = SUTRO_PROTECT_WHOLE;
	bool measured = sutro_part_is_measured(core);
	u64 due, shared_due;

	if (known) {
		used = sutro_part_used(protect);
		shared_used = sutro_part_used_shared(protect, used, measured);
		shared_whole = max_t(u64, protect->most, used);
		whole = max(used, min(shared_whole, whole));
		if (measured)
			whole = (whole +
				 min(whole, used + sutro_part_gaps(protect))) /
				2;
	} else if (!protect->reserve && !sutro_part_is_irregular(protect)) {
		used -= min(used, sutro_part_usable_gaps(protect));
	}
	due = share * whole / SUTRO_PROTECT_WHOLE;
	shared_due = share * shared_whole / SUTRO_PROTECT_WHOLE;
	if (used <= due)
		return 0;
	return div64_u64((used - due) * SUTRO_PROTECT_WHOLE,
			 used - due + shared_due -
				 min(shared_used, shared_due));
}

/**
 * sutro_part_shared - the shared part of the next cycle
 * @core:	the leaf
 * @share:	share of the protected groups, of SUTRO_PROTECT_WHOLE
 *
 * Return: of SUTRO_PROTECT_WHOLE.
 */
u32 sutro_part_shared(struct sutro_core *core, u64 share)
{
	struct sutro_protect *protect = &core->protect;
	u32 most = SUTRO_PROTECT_WHOLE -
		   clamp(protect->reserve, SUTRO_PROTECT_SAMPLE,
			 SUTRO_PROTECT_WHOLE - SUTRO_PROTECT_LEAST);
	bool known = sutro_part_is_known(protect);
	u64 part, entitled;

	protect->gentle = false;
	protect->others_many = false;
	protect->sporadic = sutro_part_is_sporadic(core);
	protect->room_ns = protect->sporadic ? sutro_part_room_ns(core) : 0;
	if (protect->by_target)
		most = min(most, protect->target_part);
	if (!protect->by_share)
		return most;
	part = known ? sutro_part_harmless(core) : SUTRO_PROTECT_LEAST;
	entitled = sutro_part_entitled(core, share, known);
	/* In gaps, others send as much as can complete in them. */
	protect->gentle = known && !entitled &&
			  (core->tunables.rotational || protect->sporadic ||
			   !sutro_part_gaps(protect));
	protect->others_many = sutro_others_have_many(core);
	part = max(part, entitled);
	part = min(part,
		   max(sutro_apart_most_shared(core), SUTRO_PROTECT_LEAST));
	part = max_t(u64, part, sutro_others_shared(core, share));
	/* Others do not lose the device for a group that is entitled to little of it. */
	if (SUTRO_PROTECT_PRICE * share < SUTRO_PROTECT_WHOLE)
		part = max(part,
			   SUTRO_PROTECT_WHOLE - SUTRO_PROTECT_PRICE * share);
	return min_t(u64, part, most);
}
