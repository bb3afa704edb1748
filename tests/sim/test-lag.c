// SPDX-License-Identifier: GPL-2.0-only
/*
 * Usage: test-lag [SEED]
 *
 * No group falls behind by more than a stated bound, with any behaviour of the others:
 * random trees of 10 to 10,000 groups, random weights and classes, on devices with
 * slices and without.  Some groups are backlogged all the time, the others come and go
 * at random.  The test reads only the weights and the service of each group: the device
 * time of its requests, and the time for which the device was kept waiting for it.  At
 * each level
 *
 * share	of any two members of a class that are backlogged all the time,
 *		the service per weight differs by no more than a slice and a request
 *		of each per its weight (Goyal, Vin and Cheng 1996, theorem 1, for
 *		turns of a slice):
 *
 *			| S(a) / w(a) - S(b) / w(b) | <= L / w(a) + L / w(b)
 *
 *		but for groups that were starved (sutro-starved.c), which have had more, and
 *		the root's own requests, whose weight changes;
 * wait		a class that is backlogged all the time has 1/32 of the service of the
 *		higher ones after 16 slices of theirs, less a slice and a request;
 * order	and no more than that, a slice, a request, and the service of starved
 *		groups, if a higher one is backlogged all the time, too.
 *
 * In the end all groups run empty, and nothing is left of them.
 *
 * newcomer	A group that comes is soon served, whatever was served before: light
 *		and heavy siblings, some backlogged, some with a few requests that are
 *		mostly at the device, and many of these have more when it comes.  Until
 *		its first request is sent each of the others has had no more than it
 *		can be owed, half a slice where others are held back for it and 250 ms
 *		where not, and a turn of its own.
 *
 * The service of a light group is much per weight for a heavy one: 10 ms at weight 9
 * are 10 s at 9000.  If these were still owed, the newcomer would wait for as long.
 */
#include <math.h>

#include <linux/string.h>

#include "random.h"
#include "world.h"

#define MAX_REQUEST_NS (20 * MS)
#define MAX_LEVELS 4
#define ROUNDS 30000
#define CHECKS 10
#define SIBLINGS 24
#define NEWCOMERS 3000
#define ROUNDS_BEFORE 400

static u64 seed = 1;

static u64 below(u64 n)
{
	return random_below(&seed, n);
}

/**
 * struct trial - a tree, and the device time of requests that were sent
 * @in_flight:	the most requests at the device
 * @steady:	a group's own requests are backlogged all the time
 * @depth:	or it keeps this many queued or at the device, if not 0
 * @busy:	steady ones are at or below a group
 * @starved:	it, or a group below it, was served because it had waited too long
 * @sent_ns:	device time of a group's own requests
 * @starved_ns: device time of requests that were sent for that
 * @turn_ns:	the most by which a group is served beyond its turn
 */
struct trial {
	struct world *world;
	bool seeky;
	u32 in_flight;
	bool *steady;
	u32 *depth;
	bool *busy;
	bool *starved;
	u64 *sent_ns;
	u64 starved_ns;
	u64 turn_ns;
};

/* The service of the members of one class at one level. */
struct account {
	double most_low; /* the largest S / w - L / w */
	double least_high; /* the least S / w + L / w */
	double sent_ns;
	bool busy;
};

static void *new_array(u32 nr, size_t size)
{
	void *array = calloc(nr, size);

	check(array, "no memory");
	return array;
}

static struct trial trial_new(u32 nr, bool rotational, bool seeky)
{
	struct trial trial = {
		.world = world_new(nr, rotational),
		.seeky = seeky,
		.in_flight = 8,
		.steady = new_array(nr, sizeof(bool)),
		.depth = new_array(nr, sizeof(u32)),
		.busy = new_array(nr, sizeof(bool)),
		.starved = new_array(nr, sizeof(bool)),
		.sent_ns = new_array(nr, sizeof(u64)),
		.turn_ns = MAX_REQUEST_NS,
	};

	if (rotational)
		trial.turn_ns += trial.world->core.tunables.slice_ns +
				 trial.world->core.tunables.group_idle_ns;
	return trial;
}

/* A random tree, with some groups that are steady. */
static struct trial trial_tree(u32 nr, bool rotational, bool seeky)
{
	struct trial trial = trial_new(nr, rotational, seeky);
	u32 *level = new_array(nr, sizeof(u32)), i;

	for (i = 0; i < nr; i++) {
		u32 parent = i ? below(i) : 0;

		if (level[parent] == MAX_LEVELS)
			parent = 0;
		level[i] = i ? level[parent] + 1 : 0;
		trial.steady[i] = !i || !below(3);
		if (!i)
			continue;
		world_group(trial.world, i, parent,
			    random_magnitude(&seed, SUTRO_WEIGHT_MAX));
		if (!below(4))
			world_class(trial.world, i, below(SUTRO_CLASS_NR));
	}
	for (i = nr; i-- > 0;) {
		struct sutro_group *parent = trial.world->group[i].parent;

		trial.busy[i] |= trial.steady[i];
		if (parent)
			trial.busy[parent - trial.world->group] |=
				trial.busy[i];
	}
	free(level);
	return trial;
}

/* Light and heavy groups below the root, with many requests or few. */
static struct trial trial_siblings(u32 nr, bool rotational, bool seeky)
{
	struct trial trial = trial_new(nr, rotational, seeky);
	struct sutro_tunables *t = &trial.world->core.tunables;
	u32 i;

	trial.in_flight = 1 + below(32);
	if (!rotational && below(2))
		t->busy_ns = random_magnitude(&seed, 10 * MS);
	if (below(2))
		t->depth_ns = random_magnitude(&seed, SEC);
	for (i = 0; i < nr; i++) {
		u32 weight = below(2) ? 1 + below(20)
				      : SUTRO_WEIGHT_MAX - below(8000);

		trial.steady[i] = true;
		trial.depth[i] = below(2) ? 100 : 1 + below(8);
		if (i)
			world_group(trial.world, i, 0, weight);
	}
	return trial;
}

static void trial_free(struct trial *trial)
{
	world_free(trial->world);
	free(trial->steady);
	free(trial->depth);
	free(trial->busy);
	free(trial->starved);
	free(trial->sent_ns);
}

static void arrive(struct trial *trial, u32 group)
{
	world_queue(trial->world, group, 1 + below(3), trial->seeky);
}

/* The next requests of a steady group, after one was sent or is done. */
static void refill(struct trial *trial, u32 group)
{
	const struct sutro_group *g = &trial->world->group[group];

	if (trial->depth[group])
		world_queue(trial->world, group,
			    trial->depth[group] - g->queued - g->in_flight,
			    trial->seeky);
	else if (trial->steady[group] && !g->queued)
		arrive(trial, group);
}

/* A request of a starved group was sent. */
static void note_starved(struct trial *trial, u32 group, u64 cost_ns)
{
	const struct sutro_group *g = &trial->world->group[group];

	trial->starved_ns += cost_ns;
	for (; g; g = g->parent)
		trial->starved[g - trial->world->group] = true;
}

/* One request is sent, or one that is at the device is done. */
static void round_of(struct trial *trial)
{
	struct world *world = trial->world;
	u64 cost_ns = random_magnitude(&seed, MAX_REQUEST_NS);
	enum sutro_verdict verdict = SUTRO_WAIT;
	u64 starved_until_ns = world->core.starved_until_ns;
	u32 group, flight;

	if (!below(4)) {
		group = below(world->nr);
		if (!trial->steady[group])
			arrive(trial, group);
	}
	if (world->flights < trial->in_flight)
		verdict = world_send(world, cost_ns, &group);
	if (verdict == SUTRO_SERVE) {
		trial->sent_ns[group] += cost_ns;
		if (world->core.starved_until_ns != starved_until_ns)
			note_starved(trial, group, cost_ns);
		refill(trial, group);
	} else if (world->flights) {
		flight = below(world->flights);
		group = world->flight[flight].group - world->group;
		world_complete(world, flight);
		refill(trial, group);
	} else {
		check_equal(verdict, SUTRO_IDLE);
		world->now_ns = world->core.idle_until_ns;
	}
}

static void account_for(struct account *account, const struct trial *trial,
			double sent_ns, u32 weight, bool busy)
{
	account->sent_ns += sent_ns;
	if (!busy)
		return;
	if (!account->busy) {
		account->most_low = -INFINITY;
		account->least_high = INFINITY;
	}
	account->busy = true;
	account->most_low =
		fmax(account->most_low, (sent_ns - trial->turn_ns) / weight);
	account->least_high =
		fmin(account->least_high, (sent_ns + trial->turn_ns) / weight);
}

static void check_level(const struct trial *trial,
			const struct account account[SUTRO_CLASS_NR])
{
	u64 slice_ns = trial->world->core.tunables.slice_ns;
	double above_ns = 0;
	bool outranked = false;
	u32 c;

	for (c = 0; c < SUTRO_CLASS_NR; c++) {
		double had_ns = account[c].sent_ns;

		if (account[c].busy)
			check(account[c].most_low <= account[c].least_high,
			      "class %u: %g is not below %g, with %g a turn", c,
			      account[c].most_low, account[c].least_high,
			      (double)trial->turn_ns);
		if (account[c].busy && c)
			check(had_ns >= (above_ns - 16.0 * slice_ns) / 32 -
						trial->turn_ns,
			      "class %u has had %g ns, those above %g", c,
			      had_ns, above_ns);
		if (outranked)
			check(had_ns <= above_ns / 32 + trial->turn_ns +
						trial->starved_ns,
			      "class %u has had %g ns, those above %g", c,
			      had_ns, above_ns);
		above_ns += had_ns;
		outranked |= account[c].busy;
	}
}

static void check_shares(const struct trial *trial)
{
	const struct world *world = trial->world;
	struct account(*accounts)[SUTRO_CLASS_NR] =
		new_array(world->nr, sizeof(*accounts));
	u64 *sum_ns = new_array(world->nr, sizeof(u64)), own_ns;
	u32 i;

	for (i = world->nr; i-- > 0;) {
		const struct sutro_group *group = &world->group[i];
		u32 parent = group->parent ? group->parent - world->group : 0;

		own_ns = trial->sent_ns[i] + group->stat.idle_ns;
		sum_ns[i] += own_ns;
		account_for(&accounts[i][SUTRO_CLASS_BE], trial, own_ns,
			    SUTRO_WEIGHT_DFL,
			    i && trial->steady[i] && !trial->starved[i]);
		if (!group->parent)
			continue;
		account_for(&accounts[parent][group->entity.class], trial,
			    sum_ns[i], group->entity.weight,
			    trial->busy[i] && !trial->starved[i]);
		sum_ns[parent] += sum_ns[i];
	}
	for (i = 0; i < world->nr; i++)
		check_level(trial, accounts[i]);
	free(accounts);
	free(sum_ns);
}

static void try(u32 nr, bool rotational, bool seeky)
{
	struct trial trial = trial_tree(nr, rotational, seeky);
	u32 i;

	printf("%u groups%s%s\n", nr, rotational ? ", hdd" : "",
	       seeky ? ", random" : "");
	fflush(stdout);
	for (i = 0; i < nr; i++)
		if (trial.steady[i])
			arrive(&trial, i);
	for (i = 0; i < ROUNDS; i++) {
		round_of(&trial);
		if (i % (ROUNDS / CHECKS) == 0) {
			check_shares(&trial);
			world_check(trial.world);
		}
	}
	world_finish(trial.world, 8);
	trial_free(&trial);
}

static void try_newcomer(bool rotational, bool seeky)
{
	u32 nr = 4 + below(SIBLINGS - 3), newcomer = nr - 1, i;
	struct trial trial = trial_siblings(nr, rotational, seeky);
	struct world *world = trial.world;
	u64 slice_ns = world->core.tunables.slice_ns, most_ns = MAX_REQUEST_NS;

	if (rotational)
		most_ns += slice_ns / 2 + (seeky ? 0 : slice_ns);
	else
		most_ns += 250 * MS;
	for (i = 1; i < newcomer; i++)
		refill(&trial, i);
	for (i = 0; i < ROUNDS_BEFORE; i++)
		round_of(&trial);
	world_check(world);

	for (i = 1; i < newcomer; i++) {
		if (below(2))
			trial.depth[i] = 100;
		refill(&trial, i);
	}
	refill(&trial, newcomer);
	memset(trial.sent_ns, 0, nr * sizeof(trial.sent_ns[0]));
	while (!trial.sent_ns[newcomer]) {
		round_of(&trial);
		for (i = 1; i < newcomer; i++)
			check(trial.sent_ns[i] <= most_ns,
			      "weight %u had %.3f ms before weight %u came to it",
			      world->group[i].entity.weight,
			      trial.sent_ns[i] / 1e6,
			      world->group[newcomer].entity.weight);
	}
	world_check(world);
	trial_free(&trial);
}

int main(int argc, char **argv)
{
	static const u32 sizes[] = { 10, 10, 30, 30, 100, 300, 1000, 10000 };
	u32 nr = sizeof(sizes) / sizeof(sizes[0]), i;

	if (argc > 1)
		seed = strtoull(argv[1], NULL, 0);
	for (i = 0; i < 4 * nr; i++) {
		try(sizes[i % nr], false, false);
		try(sizes[i % nr], true, false);
		try(sizes[i % nr], true, true);
	}
	for (i = 0; i < NEWCOMERS; i++) {
		try_newcomer(false, false);
		try_newcomer(true, false);
		try_newcomer(true, true);
	}
	return 0;
}
