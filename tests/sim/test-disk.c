// SPDX-License-Identifier: GPL-2.0-only
/*
 * Unit tests of the flash model of tests/modeldisk: the order of the bus, the cost of
 * discards and of garbage collection, and device time by owner under random commands.
 */
#include <linux/sizes.h>

#include <kunit/test.h>

#include "disk.h"
#include "random.h"

#define OWNERS 3
#define DEPTH 32
#define SIZE_MB 64

struct command {
	struct mdisk_cmd cmd;
	bool in_flight;
};

/* A drive, and commands of some owners. */
struct rig {
	struct clock clock;
	struct disk disk;
	struct mdisk_owner owner[OWNERS];
	struct command command[DEPTH];
};

static void rig_done(void *context, struct mdisk_cmd *cmd)
{
	container_of(cmd, struct command, cmd)->in_flight = false;
}

static struct rig *rig_new(struct kunit *test, enum mdisk_kind kind)
{
	struct rig *rig = kunit_kzalloc(test, sizeof(*rig), GFP_KERNEL);

	clock_init(&rig->clock, 0);
	disk_init(&rig->disk, &rig->clock, kind, rig_done, rig);
	rig->disk.drive.num.size_mb = SIZE_MB;
	return rig;
}

static void rig_exit(struct rig *rig)
{
	disk_exit(&rig->disk);
	clock_exit(&rig->clock);
}

/* Sends a command if one is free. */
static struct mdisk_cmd *rig_send(struct rig *rig, u32 owner,
				  enum mdisk_action action, u64 byte, u32 bytes)
{
	struct command *command = rig->command;

	while (command->in_flight)
		if (++command == rig->command + DEPTH)
			return NULL;
	command->in_flight = true;
	command->cmd.action = action;
	command->cmd.owner = &rig->owner[owner];
	if (mdisk_cmd_init(&rig->disk.drive, &command->cmd,
			   byte >> MDISK_SECTOR_SHIFT, bytes))
		abort();
	disk_submit(&rig->disk, &command->cmd);
	return &command->cmd;
}

static u64 took_ns(const struct mdisk_cmd *cmd)
{
	return cmd->finish_ns - cmd->arrival_ns;
}

/* The sums over the owners are those of the drive. */
static void expect_whole(struct kunit *test, struct rig *rig)
{
	const struct mdisk_counts *total = &rig->disk.drive.truth.total;
	u64 time_ns = 0, bytes = 0, i;

	for (i = 0; i < OWNERS; i++) {
		const struct mdisk_counts *counts = &rig->owner[i].counts;

		time_ns += counts->time_ns;
		bytes += counts->bytes[MDISK_READ] + counts->bytes[MDISK_WRITE];
		KUNIT_EXPECT_EQ(test, rig->owner[i].refs, 0);
	}
	KUNIT_EXPECT_EQ(test, time_ns, total->time_ns);
	KUNIT_EXPECT_EQ(test, bytes,
			total->bytes[MDISK_READ] + total->bytes[MDISK_WRITE]);
	KUNIT_EXPECT_EQ(test, rig->disk.nr, 0);
}

/* The example of modeldisk-flash.c. */
static void bus_order_example(struct kunit *test)
{
	u64 read_ns[2], write_ns[2];
	u32 order;

	for (order = MDISK_BUS_FIFO; order <= MDISK_BUS_ROUND_ROBIN; order++) {
		struct rig *rig = rig_new(test, MDISK_SSD);
		struct mdisk_cmd *write, *read;

		rig->disk.drive.num.bus_order = order;
		disk_start(&rig->disk);
		write = rig_send(rig, 0, MDISK_WRITE, 0, SZ_1M);
		read = rig_send(rig, 1, MDISK_READ, SZ_4M, SZ_4K);
		clock_run(&rig->clock, NSEC_PER_SEC);
		read_ns[order] = took_ns(read);
		write_ns[order] = took_ns(write);
		KUNIT_EXPECT_EQ(test, rig->owner[1].counts.time_ns, 7407);
		KUNIT_EXPECT_EQ(test, rig->owner[0].counts.time_ns, 1896296);
		expect_whole(test, rig);
		rig_exit(rig);
	}
	KUNIT_EXPECT_EQ(test, read_ns[MDISK_BUS_FIFO] / 1000, 1903);
	KUNIT_EXPECT_EQ(test, read_ns[MDISK_BUS_ROUND_ROBIN] / 1000, 96);
	KUNIT_EXPECT_EQ(test,
			write_ns[MDISK_BUS_ROUND_ROBIN] -
				write_ns[MDISK_BUS_FIFO],
			7407);
}

/* Random commands while the order changes; the device time of each owner is the formula's. */
static void bus_order_property(struct kunit *test)
{
	const enum mdisk_action action[] = { MDISK_READ, MDISK_WRITE,
					     MDISK_DISCARD };
	u64 seed, now_ns, charge_ns[OWNERS];

	for (seed = 0; seed < 200; seed++) {
		struct rig *rig =
			rig_new(test, seed & 1 ? MDISK_SSD : MDISK_NVME);
		struct mdisk_drive *drive = &rig->disk.drive;
		u64 random = seed;

		drive->num.cache_kb = seed & 2 ? 256 : 0;
		drive->num.discard_us = seed & 4 ? 50 : 0;
		/* The charge of a write is known when it has passed the cache. */
		drive->num.over_provision_percent = seed & (2 | 8) ? 0 : 10;
		drive->num.fill_percent = 100;
		disk_start(&rig->disk);
		for (u32 i = 0; i < OWNERS; i++)
			charge_ns[i] = 0;
		for (now_ns = 0; now_ns < 20 * NSEC_PER_MSEC;
		     now_ns += random_magnitude(&random, NSEC_PER_MSEC)) {
			u32 owner = random_below(&random, OWNERS);
			struct mdisk_cmd *cmd;

			clock_run(&rig->clock, now_ns);
			if (!random_below(&random, 50))
				drive->num.bus_order ^= 1;
			cmd = rig_send(rig, owner,
				       action[random_below(&random, 3)],
				       random_below(&random, 1000) * SZ_4K,
				       random_between(&random, 1, 300) * SZ_4K);
			if (cmd && cmd->ops_total)
				charge_ns[owner] +=
					drive->model->charge_ns(drive, cmd);
		}
		clock_run(&rig->clock, NSEC_PER_SEC);
		expect_whole(test, rig);
		for (u32 i = 0; i < OWNERS; i++)
			KUNIT_EXPECT_EQ(test, rig->owner[i].counts.time_ns,
					charge_ns[i]);
		rig_exit(rig);
	}
}

/* The example of modeldisk-flash.c. */
static void discard_example(struct kunit *test)
{
	const u64 read_us[] = { 427, 117 };
	u32 order;

	for (order = 0; order < 2; order++) {
		struct rig *rig = rig_new(test, MDISK_SSD);
		struct mdisk_numbers *num = &rig->disk.drive.num;
		struct mdisk_cmd *discard, *read;

		num->bus_order = order;
		num->discard_us = 100;
		num->discard_us_per_mb = 10;
		disk_start(&rig->disk);
		discard = rig_send(rig, 0, MDISK_DISCARD, 0, 32 * SZ_1M);
		read = rig_send(rig, 1, MDISK_READ, 0, SZ_4K);
		clock_run(&rig->clock, NSEC_PER_SEC);
		KUNIT_EXPECT_EQ(test, took_ns(read) / 1000, read_us[order]);
		KUNIT_EXPECT_EQ(test, took_ns(discard),
				order ? 427407 : 420000);
		KUNIT_EXPECT_EQ(test, rig->owner[0].counts.time_ns, 420000);
		expect_whole(test, rig);
		rig_exit(rig);
	}
}

/* A discard without a cost is answered at once. */
static void discard_free(struct kunit *test)
{
	struct rig *rig = rig_new(test, MDISK_SSD);

	disk_start(&rig->disk);
	KUNIT_EXPECT_EQ(test,
			took_ns(rig_send(rig, 0, MDISK_DISCARD, 0, SZ_1M)), 0);
	KUNIT_EXPECT_EQ(test, rig->owner[0].counts.time_ns, 0);
	expect_whole(test, rig);
	rig_exit(rig);
}

/*
 * Two owners keep a full drive busy with random writes of 16 KiB: garbage collection makes
 * them more than four times as expensive, the device times add up to elapsed time, and
 * both owners are charged the same for a write.
 */
static void collection_saturates(struct kunit *test)
{
	const u64 run_ns = 4 * NSEC_PER_SEC, warmup_ns = run_ns / 2;
	struct rig *rig = rig_new(test, MDISK_SSD);
	struct mdisk_numbers *num = &rig->disk.drive.num;
	const struct mdisk_truth *truth = &rig->disk.drive.truth;
	u64 random = 1, warm_ns = 0, now_ns, price_ns[2], i;

	num->bus_kbps = 10000000;
	num->over_provision_percent = 15;
	num->fill_percent = 100;
	disk_start(&rig->disk);
	for (now_ns = 0; now_ns < run_ns; now_ns += 20 * NSEC_PER_USEC) {
		clock_run(&rig->clock, now_ns);
		if (now_ns == warmup_ns)
			warm_ns = truth->total.time_ns;
		while (rig_send(rig, random_below(&random, 2), MDISK_WRITE,
				random_below(&random, 4096) * SZ_16K, SZ_16K))
			;
	}
	KUNIT_EXPECT_GT(test, truth->total.time_ns - warm_ns,
			(run_ns - warmup_ns) / 100 * 99);
	KUNIT_EXPECT_LT(test, truth->total.time_ns - warm_ns,
			(run_ns - warmup_ns) / 100 * 101);
	clock_run(&rig->clock, 2 * run_ns);
	expect_whole(test, rig);
	for (i = 0; i < 2; i++) {
		const struct mdisk_counts *counts = &rig->owner[i].counts;

		price_ns[i] = counts->time_ns / counts->ios[MDISK_WRITE];
		KUNIT_EXPECT_GT(test, price_ns[i], 4 * 12500);
	}
	KUNIT_EXPECT_LT(test, abs((s64)(price_ns[0] - price_ns[1])), 500);
	rig_exit(rig);
}

static struct kunit_case cases[] = {
	KUNIT_CASE(bus_order_example),	  KUNIT_CASE(bus_order_property),
	KUNIT_CASE(discard_example),	  KUNIT_CASE(discard_free),
	KUNIT_CASE(collection_saturates), {},
};

static struct kunit_suite suite = {
	.name = "disk",
	.test_cases = cases,
};
kunit_test_suite(suite);
