// SPDX-License-Identifier: GPL-2.0-only
/*
 * Sutro I/O scheduler: groups that give requests for a probe.
 *
 * A probe (sutro-probe.c) sends requests of one class only, or of both directions of a size.  The
 * groups that queued one of that class last are its peers, or if there are none, those that have
 * queued any.  They give requests in proportion to their shares, and no more than they are
 * entitled to in 3 s, or in 12 s if there is no other: 8 of 1.25 MiB are 76 ms, which one of
 * share 1.5 % pays back for 5 s.
 *
 *	A group reads 256 KiB in order and writes 8 KiB at random, another one reads and writes
 *	8 KiB.  A probe of writes begins when the first one has queued a read last.  It has 32
 *	writes, and without them there were too few for a result.
 *
 * A group that pays back has nothing meanwhile.  So for a class that is known, and for the first
 * probe of one whose cost follows from its bytes well enough (sutro-due.c), they give no more
 * than in half a second.
 */
#include "sutro-probe.h"

#define MS (1000 * 1000ULL)

/* Groups that are examined to find the one that gives a request. */
#define SUTRO_PROBE_PEERS 8
/* Device time that a group gives in advance, and how many times that the only one of a class. */
#define SUTRO_PROBE_ADVANCE_NS (3000 * MS)
#define SUTRO_PROBE_ADVANCE_ALONE 4
/* The same for a class that is known, or whose cost follows from its bytes. */
#define SUTRO_PROBE_ADVANCE_KNOWN_NS (500 * MS)

void sutro_peer_init(struct sutro_peer *peer)
{
	INIT_LIST_HEAD(&peer->node);
}

/**
 * sutro_probe_join - a group queued a request
 * @probe:	the leaf's probes
 * @peer:	the group
 * @class:	of the request
 */
void sutro_probe_join(struct sutro_probe *probe, struct sutro_peer *peer,
		      unsigned int class)
{
	peer->classes |= BIT(class);
	if (!list_empty(&peer->node) && peer->class == class)
		return;
	peer->class = class;
	list_move_tail(&peer->node, &probe->peers[class]);
}

/**
 * sutro_probe_leave - a group has nothing queued any more
 * @peer:	the group
 */
void sutro_probe_leave(struct sutro_peer *peer)
{
	list_del_init(&peer->node);
	peer->classes = 0;
}

/* Requests of these classes are counted. */
static u16 sutro_probe_classes(const struct sutro_probe *probe)
{
	u16 classes = BIT(probe->class);

	if (probe->mixed)
		classes |= BIT(sutro_cost_mate(probe->class));
	return classes;
}

/* For how long may a group pay back what it gives? */
static u64 sutro_probe_advance_ns(const struct sutro_probe *probe)
{
	const struct sutro_probe_class *of = &probe->of[probe->class];

	if (probe->by_bytes || (of->nr && !of->unsaturated))
		return SUTRO_PROBE_ADVANCE_KNOWN_NS;
	if (list_is_singular(&probe->peers[probe->class]))
		return SUTRO_PROBE_ADVANCE_ALONE * SUTRO_PROBE_ADVANCE_NS;
	return SUTRO_PROBE_ADVANCE_NS;
}

/* Of some groups in a list that may have requests of @classes, the one that has given least. */
static struct sutro_peer *sutro_peer_best(struct list_head *peers, u16 classes)
{
	unsigned int left = SUTRO_PROBE_PEERS;
	struct sutro_peer *peer, *best = NULL;

	list_for_each_entry(peer, peers, node) {
		if (peer->classes & classes &&
		    (!best || sutro_before(peer->repaid_ns, best->repaid_ns)))
			best = peer;
		if (!--left)
			break;
	}
	return best;
}

/**
 * sutro_probe_pick - which group gives the next request of the probed class?
 * @probe:	the leaf's probes, one of which is active
 * @now_ns:	the time
 *
 * Of those that were selected longest ago, the one that has given least for its share.
 * The caller passes the cost of the request to sutro_probe_gave().
 *
 * Return: the group; NULL if none has queued any, or all have given too much.
 */
struct sutro_peer *sutro_probe_pick(struct sutro_probe *probe, u64 now_ns)
{
	u64 advance_ns = sutro_probe_advance_ns(probe);
	u16 classes = sutro_probe_classes(probe);
	struct sutro_peer *best;
	unsigned int i;

	best = sutro_peer_best(&probe->peers[probe->class], classes);
	for (i = 0; i < SUTRO_CLASSES && !best; i++)
		best = sutro_peer_best(&probe->peers[i], classes);
	if (!best || !sutro_before(now_ns + advance_ns, best->repaid_ns))
		return best;
	/* Next time, examine other groups first. */
	list_move_tail(&best->node, &probe->peers[best->class]);
	return NULL;
}

/**
 * sutro_probe_gave - a selected group has given a request, or had none
 * @probe:	the leaf's probes
 * @peer:	the group
 * @cost_ns:	of the request, 0 if there was none
 * @share:	of SUTRO_PROBE_WHOLE that the group is entitled to
 * @now_ns:	the time
 */
void sutro_probe_gave(struct sutro_probe *probe, struct sutro_peer *peer,
		      u64 cost_ns, u64 share, u64 now_ns)
{
	if (cost_ns) {
		if (sutro_before(peer->repaid_ns, now_ns))
			peer->repaid_ns = now_ns;
		peer->repaid_ns += div64_u64(cost_ns * SUTRO_PROBE_WHOLE,
					     max_t(u64, share, 1));
	} else {
		peer->classes &= ~sutro_probe_classes(probe);
		if (!peer->classes) {
			sutro_probe_leave(peer);
			return;
		}
		if (!(peer->classes & BIT(peer->class)))
			peer->class = ilog2(peer->classes);
	}
	list_move_tail(&peer->node, &probe->peers[peer->class]);
}
