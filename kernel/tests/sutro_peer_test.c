// SPDX-License-Identifier: GPL-2.0-only
/*
 * KUnit tests of the groups that give requests for probes (sutro-peer.c): which group gives the
 * next one, and when a group has given enough.  Of groups with shares of 5, 15 and 80 %, the
 * third gives 160 of 200 requests.
 */
#include "../sutro-probe.h"
#include "sutro_suite.h"

#define MS 1000000ULL
#define SEC (1000 * MS)

#define A sutro_cost_class(SUTRO_READ, 4096)
#define B sutro_cost_class(SUTRO_WRITE, 65536)
#define DEPTH 32

/* A probe, and groups that may have requests of its class. */
struct peer_test {
	struct sutro_probe probe;
	struct sutro_peer peers[5];
	u64 now_ns;
};

static struct peer_test *peer_test_new(struct kunit *test)
{
	struct peer_test *t = kunit_kzalloc(test, sizeof(*t), GFP_KERNEL);
	int i;

	KUNIT_ASSERT_NOT_NULL(test, t);
	sutro_probe_init(&t->probe, DEPTH);
	for (i = 0; i < ARRAY_SIZE(t->peers); i++)
		sutro_peer_init(&t->peers[i]);
	t->now_ns = SEC;
	return t;
}

/* Request @nr requests of 1 ms from the peers; counts the given ones, returns the refused. */
static u32 pick_peers(struct peer_test *t, const u32 *percent, u32 nr,
		      u32 *gave)
{
	struct sutro_peer *peer;
	u32 refused = 0;

	while (nr--) {
		peer = sutro_probe_pick(&t->probe, t->now_ns);
		if (!peer) {
			refused++;
			continue;
		}
		gave[peer - t->peers]++;
		sutro_probe_gave(&t->probe, peer, MS,
				 SUTRO_PROBE_WHOLE / 100 *
					 percent[peer - t->peers],
				 t->now_ns);
	}
	return refused;
}

/* Groups give requests for probes by their shares, and not for seconds ahead. */
static void sutro_test_shares_of_peers(struct kunit *test)
{
	static const u32 percent[] = { 5, 15, 80, 1, 1 };
	struct peer_test *t = peer_test_new(test);
	u32 gave[ARRAY_SIZE(percent)] = {};
	int i;

	t->probe.class = A;
	for (i = 0; i < 3; i++)
		sutro_probe_join(&t->probe, &t->peers[i], A);
	KUNIT_EXPECT_EQ(test, pick_peers(t, percent, 200, gave), 0);
	for (i = 0; i < 3; i++) {
		KUNIT_EXPECT_GE(test, gave[i] + 1, 2 * percent[i]);
		KUNIT_EXPECT_LE(test, gave[i], 2 * percent[i] + 1);
	}

	/* One per cent of 3 s are 30 requests of each. */
	t->probe.class = B;
	for (i = 3; i < 5; i++)
		sutro_probe_join(&t->probe, &t->peers[i], B);
	KUNIT_EXPECT_EQ(test, pick_peers(t, percent, 100, gave), 40);
	KUNIT_EXPECT_EQ(test, gave[3] + gave[4], 60);

	/* The only peer of the class gives what it is entitled to in 12 s. */
	sutro_probe_leave(&t->peers[4]);
	KUNIT_EXPECT_EQ(test, pick_peers(t, percent, 100, gave), 10);
	KUNIT_EXPECT_EQ(test, gave[3], 120);

	/* Of a class whose cost follows from its bytes, no more than in half a second. */
	t->probe.by_bytes = true;
	t->peers[3].repaid_ns = 0;
	KUNIT_EXPECT_EQ(test, pick_peers(t, percent, 100, gave), 95);
	KUNIT_EXPECT_EQ(test, gave[3], 125);
	t->probe.by_bytes = false;

	/* Nor of one that is known. */
	t->probe.of[B].nr = 1;
	t->peers[3].repaid_ns = 0;
	KUNIT_EXPECT_EQ(test, pick_peers(t, percent, 100, gave), 95);
	t->probe.of[B].nr = 0;

	/* A peer that had no such request is tried when it has queued another one. */
	t->now_ns += SEC;
	sutro_probe_gave(&t->probe, &t->peers[3], 0, 1, t->now_ns);
	KUNIT_EXPECT_NULL(test, sutro_probe_pick(&t->probe, t->now_ns));
	sutro_probe_join(&t->probe, &t->peers[3], B);
	KUNIT_EXPECT_PTR_EQ(test, sutro_probe_pick(&t->probe, t->now_ns),
			    &t->peers[3]);
}

/* A group that has requests of two classes gives those of either. */
static void sutro_test_peer_of_two_classes(struct kunit *test)
{
	struct peer_test *t = peer_test_new(test);
	struct sutro_peer *peer = &t->peers[0];

	sutro_probe_join(&t->probe, peer, A);
	sutro_probe_join(&t->probe, peer, B);
	sutro_probe_join(&t->probe, &t->peers[1], B);
	t->probe.class = A;
	KUNIT_EXPECT_PTR_EQ(test, sutro_probe_pick(&t->probe, t->now_ns), peer);
	sutro_probe_gave(&t->probe, peer, MS, SUTRO_PROBE_WHOLE, t->now_ns);
	KUNIT_EXPECT_PTR_EQ(test, sutro_probe_pick(&t->probe, t->now_ns), peer);
	/* It has none any more, but those of the other class. */
	sutro_probe_gave(&t->probe, peer, 0, 1, t->now_ns);
	KUNIT_EXPECT_NULL(test, sutro_probe_pick(&t->probe, t->now_ns));
	sutro_probe_leave(&t->peers[1]);
	t->probe.class = B;
	KUNIT_EXPECT_PTR_EQ(test, sutro_probe_pick(&t->probe, t->now_ns), peer);
	sutro_probe_gave(&t->probe, peer, 0, 1, t->now_ns);
	KUNIT_EXPECT_TRUE(test, list_empty(&peer->node));
}

static struct kunit_case sutro_peer_cases[] = {
	KUNIT_CASE(sutro_test_shares_of_peers),
	KUNIT_CASE(sutro_test_peer_of_two_classes),
	{}
};

sutro_suite(sutro_peer, "the groups that give requests for probes");
