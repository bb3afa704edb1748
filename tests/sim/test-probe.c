// SPDX-License-Identifier: GPL-2.0-only
/* Probes, on a device that serves requests in order, each after its true cost. */
#include <stdlib.h>

#include <linux/string.h>

#include "sutro-probe.h"

#include "world.h"

#define A sutro_cost_class(SUTRO_READ, 4096)
#define B sutro_cost_class(SUTRO_WRITE, 65536)

/**
 * struct bench - a leaf in which requests of two classes always wait, or not
 * @waiting:	requests of each class that wait or are in flight
 * @cost_ns:	their true costs
 * @queue:	classes of those in flight, oldest first
 * @start_ns:	since when
 * @probes:	how many ended
 */
struct bench {
	struct sutro_device device;
	struct sutro_probe probe;
	struct sutro_peer peers[SUTRO_CLASSES];
	u64 now_ns;
	u32 waiting[SUTRO_CLASSES];
	u64 cost_ns[SUTRO_CLASSES];
	unsigned int queue[256];
	u64 start_ns[256];
	u32 nr;
	u32 probes;
};

static struct bench *bench_new(u32 limit, u64 a_ns, u64 b_ns)
{
	struct bench *bench = calloc(1, sizeof(*bench));
	u32 i;

	sutro_device_init(&bench->device, false);
	sutro_probe_init(&bench->probe, limit);
	for (i = 0; i < SUTRO_CLASSES; i++)
		sutro_peer_init(&bench->peers[i]);
	bench->now_ns = SEC;
	bench->cost_ns[A] = a_ns;
	bench->cost_ns[B] = b_ns;
	return bench;
}

static void bench_wait(struct bench *bench, unsigned int class, u32 nr)
{
	bench->waiting[class] = nr;
	if (nr)
		sutro_probe_join(&bench->probe, &bench->peers[class], class);
	else
		sutro_probe_leave(&bench->peers[class]);
}

static u32 bench_in_flight(const struct bench *bench, unsigned int class)
{
	return bench->probe.sent[class] - bench->device.done[class];
}

static bool bench_send(struct bench *bench, unsigned int class)
{
	if (bench_in_flight(bench, class) >= bench->waiting[class])
		return false;
	bench->queue[bench->nr] = class;
	bench->start_ns[bench->nr++] = bench->now_ns;
	sutro_probe_sent(&bench->probe, class);
	return true;
}

/* As sutro-iosched.c: what a probe lets through, else by turns up to 32. */
static void bench_dispatch(struct bench *bench)
{
	for (;;) {
		struct sutro_probe *probe = &bench->probe;
		bool was = probe->active, sent;

		if (sutro_probe_look(probe, bench->now_ns))
			sutro_probe_step(probe, &bench->device, bench->now_ns);
		bench->probes += was && !probe->active;
		if (probe->active) {
			if (!sutro_probe_has_room(probe, &bench->device))
				return;
			if (bench_send(bench, probe->class))
				continue;
			if (!sutro_probe_starved(probe, &bench->device,
						 bench->now_ns))
				return;
			bench->probes++;
		}
		sent = bench->nr < 32 && bench_send(bench, A);
		sent |= bench->nr < 32 && bench_send(bench, B);
		if (!sent)
			return;
	}
}

/* The oldest request is done. */
static void bench_complete(struct bench *bench)
{
	struct sutro_sample sample = {
		.class = bench->queue[0],
		.bytes = bench->queue[0] == A ? 4096 : 65536,
		.start_ns = bench->start_ns[0],
	};

	bench->now_ns += bench->cost_ns[sample.class];
	sample.now_ns = bench->now_ns;
	bench->nr--;
	memmove(bench->queue, bench->queue + 1,
		bench->nr * sizeof(bench->queue[0]));
	memmove(bench->start_ns, bench->start_ns + 1,
		bench->nr * sizeof(bench->start_ns[0]));
	sutro_cost_complete(&bench->device, NULL, &sample);
}

static void bench_run(struct bench *bench, u64 until_ns)
{
	while (bench->now_ns < until_ns) {
		bench_dispatch(bench);
		check(bench->nr, "nothing at the device, although some wait");
		bench_complete(bench);
	}
}

/* Two classes that always have requests: both are known, whatever they cost. */
static void test_measures(void)
{
	static const u64 costs_ns[][2] = {
		{ 1000, 100000 },   { 100000, 1000 }, { 7407, 118518 },
		{ 66666, 17 * MS }, { 500, 600 },
	};
	u32 i;

	for (i = 0; i < sizeof(costs_ns) / sizeof(costs_ns[0]); i++) {
		struct bench *bench =
			bench_new(32, costs_ns[i][0], costs_ns[i][1]);

		bench_wait(bench, A, 40);
		bench_wait(bench, B, 40);
		bench_run(bench, 4 * SEC);
		check_near(sutro_cost_class_ns(&bench->device, A),
			   costs_ns[i][0], costs_ns[i][0] / 50 + 1);
		check_near(sutro_cost_class_ns(&bench->device, B),
			   costs_ns[i][1], costs_ns[i][1] / 50 + 1);
		free(bench);
	}
}

/* A class five times as dear from one moment on is known in six seconds. */
static void test_change(void)
{
	struct bench *bench = bench_new(32, 10000, 40000);

	bench_wait(bench, A, 40);
	bench_wait(bench, B, 40);
	bench_run(bench, 20 * SEC);
	bench->cost_ns[B] *= 5;
	bench_run(bench, 26 * SEC);
	check_near(sutro_cost_class_ns(&bench->device, B), 200000, 10000);
	check_near(sutro_cost_class_ns(&bench->device, A), 10000, 500);
	free(bench);
}

/* Probes take little of the time, and less when nothing changes. */
static void test_rare(void)
{
	struct bench *bench = bench_new(32, 10000, 40000);
	u32 before;

	bench_wait(bench, A, 40);
	bench_wait(bench, B, 40);
	bench_run(bench, 11 * SEC);
	before = bench->probes;
	bench_run(bench, 31 * SEC);
	/* Each class every 4 s. */
	check(bench->probes - before <= 2 * 20 / 4 + 2, "%u probes",
	      bench->probes - before);
	free(bench);
}

/* Who is alone is not measured, and a class without requests holds up nobody. */
static void test_alone(void)
{
	struct bench *bench = bench_new(32, 10000, 40000);

	bench_wait(bench, A, 40);
	bench_run(bench, 5 * SEC);
	check_equal(bench->probes, 0);
	/* One request at a time is too few for any probe. */
	bench_wait(bench, B, 1);
	bench_run(bench, 10 * SEC);
	check_equal(bench->probe.of[B].probes, 0);
	check(bench->probe.of[A].probes > 0, "the other one is measured");
	bench_wait(bench, A, 0);
	bench_run(bench, 11 * SEC);
	free(bench);
}

/* Asks for @nr requests of 1 ms, one each @every_ns; who gave how many? */
static void ask(struct bench *bench, const u64 *share, u32 nr, u64 every_ns,
		u32 *ret_gave, u32 *ret_refused)
{
	u64 now_ns = bench->now_ns;
	struct sutro_peer *peer;

	for (*ret_refused = 0; nr--; now_ns += every_ns) {
		peer = sutro_probe_ask(&bench->probe, now_ns);
		if (!peer) {
			(*ret_refused)++;
			continue;
		}
		ret_gave[peer - bench->peers]++;
		sutro_probe_gave(&bench->probe, peer, MS,
				 share[peer - bench->peers] *
					 SUTRO_PROBE_WHOLE / 100,
				 now_ns);
	}
}

/* Requests for probes come from groups by their shares, and not for seconds ahead. */
static void test_shares_of_peers(void)
{
	static const u64 share[] = { 5, 15, 80, 1, 1 };
	struct bench *bench = bench_new(32, 1000, 1000);
	u32 gave[SUTRO_CLASSES] = {}, refused, i;

	bench->probe.class = A;
	for (i = 0; i < 3; i++)
		sutro_probe_join(&bench->probe, &bench->peers[i], A);
	ask(bench, share, 200, 0, gave, &refused);
	check_equal(refused, 0);
	check_near(gave[0], 10, 1);
	check_near(gave[1], 30, 1);
	check_near(gave[2], 160, 1);

	/* One per cent of 3 s are 30 requests of each. */
	bench->probe.class = B;
	for (i = 3; i < 5; i++)
		sutro_probe_join(&bench->probe, &bench->peers[i], B);
	ask(bench, share, 100, 0, gave, &refused);
	check_equal(gave[3] + gave[4], 60);
	check_equal(refused, 40);

	/* Who is the only one of the class is not spared. */
	sutro_probe_leave(&bench->peers[4]);
	ask(bench, share, 100, 0, gave, &refused);
	check_equal(refused, 0);
	check_equal(gave[3], 130);

	/* Who has none is asked when it has queued another one. */
	sutro_probe_gave(&bench->probe, &bench->peers[3], 0, 1, bench->now_ns);
	check(!sutro_probe_ask(&bench->probe, bench->now_ns), "it is asked");
	sutro_probe_join(&bench->probe, &bench->peers[3], B);
	check(sutro_probe_ask(&bench->probe, bench->now_ns) == &bench->peers[3],
	      "it is not asked");
	free(bench);
}

int main(void)
{
	test_shares_of_peers();
	test_measures();
	test_change();
	test_rare();
	test_alone();
	return 0;
}
