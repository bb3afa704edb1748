// SPDX-License-Identifier: GPL-2.0-only
/*
 * Sutro I/O scheduler: slices whose protected groups use more than their shares.
 *
 * 1. The defect
 *
 * Device time that a protected group uses in reserved windows is charged to the groups that it is
 * in (its slices), and not to itself (sutro-apart.c).  Protected groups have their shares with
 * errors: the shared part of a cycle follows from estimates (sutro-part.c), and is rather too small
 * than too large.  If a slice were charged for all of the time, it would be ahead of other slices
 * in each shared window, and its unprotected groups would have nothing.
 *
 *	Slices s (weight 250) and r (222).  In s, groups of weights 390, 375 and 199 are protected,
 *	and d (132) is not.  s is entitled to 0.53 of the device, the three to 0.466 and d to 0.064.
 *	The three use 0.55.  In shared windows r comes first until it has had 0.47 / 0.53 of that,
 *	0.49.  That is more than there is: d has 0.00.
 *
 * 2. The bound
 *
 * Let phi_i be the share of a group i, and Phi the sum of those of all protected groups.  While
 * others use U of device time, the slices of a protected group i are charged for at most
 *
 *	U * phi_i / (1 - Phi)
 *
 * of its time.  So slices are charged for their protected groups as for the others, by share, and
 * each group j that is not protected and has a backlog receives
 *
 *	U * phi_j / (1 - Phi)
 *
 * in the long run: all of these groups lose the same part of their entitlements, and none loses
 * all.  In shared windows charges are not delayed, and reduce what is charged for reserved ones.
 * For the bound, protected groups that had more than their shares must not come before others of
 * their slice there: they enter a shared window ahead of these by their excess.
 *
 *	In shared windows, d and r have 0.45 of the device.  1 - Phi is 0.534, so r has
 *	0.45 * 0.47 / 0.534 = 0.396 and d 0.45 * 0.064 / 0.534 = 0.054, 0.84 of their entitlements.
 *
 * 3. The correction
 *
 * The excess of a group is the time that it has used beyond its share of the time of all groups, as
 * far as it was not charged.  The next shared window is longer by 1 - Phi times the sum E of all.
 * If others have d more, protected groups have d less, and are entitled to d * Phi / (1 - Phi)
 * more: together d / (1 - Phi), which is E.  Half of the reserved window stays.
 *
 *	In a cycle of 134 ms the three use 74 ms, 11 ms more than their shares.  The next shared
 *	window is 6 ms longer.
 *
 * Debts make the windows of a cycle longer or shorter (sutro-window.c), so all three sums last for
 * several cycles: a sixteenth of them is lost in each.
 *
 * Groups without slices are not concerned: nothing is charged for them.  Where time is reserved or
 * there are latency targets, groups have more than their shares by intent, and slices are charged
 * for all of it.  So they are while no others are active.
 */
#include <linux/math64.h>

#include "sutro-core.h"

/* Sums lose this part in each cycle. */
#define SUTRO_EXCESS_AGE 16

/* Is a group in no slice? */
static bool sutro_excess_is_flat(const struct sutro_group *group)
{
	return group->depth < 2;
}

/* Are slices charged for all of the time of their protected groups? */
static bool sutro_excess_pays_all(const struct sutro_core *core)
{
	const struct sutro_protect *protect = &core->protect;

	return !protect->by_share || protect->by_target || protect->reserve ||
	       protect->nr >= core->nr_active;
}

/* The sum of the shares of others, of SUTRO_SHARE_WHOLE. */
static u64 sutro_excess_others(const struct sutro_protect *protect)
{
	return SUTRO_SHARE_WHOLE - min(protect->shares, SUTRO_SHARE_WHOLE - 1);
}

/**
 * sutro_excess_join - a group is protected from now on
 * @own:	its protection
 */
void sutro_excess_join(struct sutro_group_protect *own)
{
	own->unpaid_ns = 0;
	own->credit_ns = 0;
	own->excess_ns = 0;
	own->cycle_used_ns = 0;
}

/**
 * sutro_excess_charge - a protected group uses device time
 * @group:	the group
 * @ns:		how much; negative to correct an estimate
 * @charged:	it was charged to the group and its slices
 */
void sutro_excess_charge(struct sutro_group *group, s64 ns, bool charged)
{
	struct sutro_group_protect *own = group->protect;

	if (sutro_excess_is_flat(group))
		return;
	if (charged)
		own->credit_ns -= ns;
	else
		own->unpaid_ns += ns;
}

/**
 * sutro_excess_pay - charge the slices of a protected group for its time in reserved windows
 * @core:	the leaf
 * @own:	the protection of the group
 */
void sutro_excess_pay(const struct sutro_core *core,
		      struct sutro_group_protect *own)
{
	const struct sutro_protect *protect = &core->protect;
	s64 pay = own->unpaid_ns;
	u64 share;

	if (sutro_excess_is_flat(own->group))
		return;
	share = sutro_group_share(own->group, SUTRO_SHARE_WHOLE);
	own->credit_ns += div64_u64(protect->others_ns * share,
				    sutro_excess_others(protect));
	if (sutro_excess_pays_all(core))
		own->credit_ns = pay;
	else
		pay = min(pay, max(own->credit_ns, 0LL));
	sutro_tree_charge_slices(own->group, pay);
	own->unpaid_ns -= pay;
	own->credit_ns -= pay;
}

/* Device time that a group has used beyond its share, as far as it was not charged. */
static u64 sutro_excess_of(const struct sutro_protect *protect,
			   struct sutro_group_protect *own)
{
	own->excess_ns += own->cycle_used_ns;
	own->excess_ns -= sutro_group_share(own->group, protect->all_ns);
	return max(min(own->excess_ns, own->unpaid_ns), 0LL);
}

static void sutro_excess_age(struct sutro_group_protect *own)
{
	own->unpaid_ns -= own->unpaid_ns / SUTRO_EXCESS_AGE;
	own->credit_ns -= own->credit_ns / SUTRO_EXCESS_AGE;
	own->excess_ns -= own->excess_ns / SUTRO_EXCESS_AGE;
	own->cycle_used_ns = 0;
}

/**
 * sutro_excess_end - a cycle is over
 * @core:	the leaf
 */
void sutro_excess_end(struct sutro_core *core)
{
	struct sutro_protect *protect = &core->protect;
	u64 others = sutro_excess_others(protect), sum_ns = 0, excess_ns;
	struct sutro_group_protect *own;

	list_for_each_entry(own, &protect->groups, list) {
		if (sutro_excess_is_flat(own->group))
			continue;
		sutro_excess_pay(core, own);
		excess_ns = sutro_excess_of(protect, own);
		if (excess_ns)
			sutro_tree_lead_inside(own->group, excess_ns);
		sum_ns += excess_ns;
		sutro_excess_age(own);
	}
	protect->more_ns = div64_u64(sum_ns * others, SUTRO_SHARE_WHOLE);
	protect->others_ns = 0;
	protect->all_ns = 0;
}

/**
 * sutro_excess_more_ns - by how much is a shared window longer because of that?
 * @protect:	the protection
 * @shared_ns:	its length without that
 */
u64 sutro_excess_more_ns(const struct sutro_protect *protect, u64 shared_ns)
{
	if (protect->by_target || protect->reserve)
		return 0;
	return min(protect->more_ns, (protect->cycle_ns - shared_ns) / 2);
}

/**
 * sutro_excess_completed - requests of a group left the device
 * @protect:	the protection
 * @group:	the group
 * @cost_ns:	their device time
 */
void sutro_excess_completed(struct sutro_protect *protect,
			    struct sutro_group *group, u64 cost_ns)
{
	protect->all_ns += cost_ns;
	if (sutro_group_protected(group))
		group->protect->cycle_used_ns += cost_ns;
	else
		protect->others_ns += cost_ns;
}
