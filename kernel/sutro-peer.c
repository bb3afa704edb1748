// SPDX-License-Identifier: GPL-2.0-only
/*
 * Sutro I/O scheduler: groups that give requests for a probe.
 *
 * A probe (sutro-probe.c) sends requests of one class only, or of both directions of a size.
 * The groups that queued one of that class last are its peers, or if there are none, those that
 * queued one of the other direction.  They give requests in proportion to their shares, and no
 * more than they are entitled to in 3 s, or in 12 s if there is no other: 8 of 1.25 MiB are
 * 76 ms, which one of share 1.5 % pays back for 5 s.
 *
 * A group that pays back has nothing meanwhile.  So for the first probe of a class whose cost
 * follows from its bytes well enough (sutro-due.c), they give no more than in 1 s.
 */
#include "sutro-probe.h"

#define MS (1000 * 1000ULL)

/* Groups that are examined to find the one that gives a request. */
#define SUTRO_PROBE_PEERS 8
/* Device time that a group gives in advance, and how many times that the only one of a class. */
#define SUTRO_PROBE_ADVANCE_NS (3000 * MS)
#define SUTRO_PROBE_ADVANCE_ALONE 4
/* The same for a class whose cost follows from its bytes. */
#define SUTRO_PROBE_ADVANCE_BY_BYTES_NS (1000 * MS)

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
}

/* The groups of the probed class; if there are none, those of its mate. */
static struct list_head *sutro_probe_peers(struct sutro_probe *probe)
{
	struct list_head *peers = &probe->peers[probe->class];

	if (probe->mixed && list_empty(peers))
		return &probe->peers[sutro_cost_mate(probe->class)];
	return peers;
}

/* For how long may a group pay back what it gives? */
static u64 sutro_probe_advance_ns(const struct sutro_probe *probe,
				  const struct list_head *peers)
{
	if (probe->by_bytes)
		return SUTRO_PROBE_ADVANCE_BY_BYTES_NS;
	if (list_is_singular(peers))
		return SUTRO_PROBE_ADVANCE_ALONE * SUTRO_PROBE_ADVANCE_NS;
	return SUTRO_PROBE_ADVANCE_NS;
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
	struct list_head *peers = sutro_probe_peers(probe);
	u64 advance_ns = sutro_probe_advance_ns(probe, peers);
	unsigned int left = SUTRO_PROBE_PEERS;
	struct sutro_peer *peer, *best = NULL;

	list_for_each_entry(peer, peers, node) {
		if (!best || sutro_before(peer->repaid_ns, best->repaid_ns))
			best = peer;
		if (!--left)
			break;
	}
	if (!best || !sutro_before(now_ns + advance_ns, best->repaid_ns))
		return best;
	/* Next time, examine other groups first. */
	list_move_tail(&best->node, peers);
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
	if (!cost_ns) {
		/* Leave the list until another request is queued. */
		sutro_probe_leave(peer);
		return;
	}
	list_move_tail(&peer->node, &probe->peers[peer->class]);
	if (sutro_before(peer->repaid_ns, now_ns))
		peer->repaid_ns = now_ns;
	peer->repaid_ns +=
		div64_u64(cost_ns * SUTRO_PROBE_WHOLE, max_t(u64, share, 1));
}
