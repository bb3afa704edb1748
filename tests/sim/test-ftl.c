// SPDX-License-Identifier: GPL-2.0-only
/*
 * Unit tests of the flash translation layer of tests/modeldisk: invariants under random
 * writes and discards, and write amplification against the published formula.
 */
#include <math.h>

#include <kunit/test.h>

#include "modeldisk-ftl.h"
#include "random.h"

static struct mdisk_ftl *ftl_new(struct kunit *test, struct mdisk_drive *drive,
				 u32 size_mb, u32 percent, u32 fill_percent)
{
	struct mdisk_ftl *ftl;

	*drive = (struct mdisk_drive){};
	mdisk_numbers_load(&drive->num, MDISK_SSD);
	drive->num.size_mb = size_mb;
	drive->num.over_provision_percent = percent;
	drive->num.fill_percent = fill_percent;
	ftl = kunit_kzalloc(test, mdisk_ftl_bytes(&drive->num), GFP_KERNEL);
	mdisk_ftl_init(drive, ftl);
	return ftl;
}

/*
 * The maps are the inverse of each other, so that no page is mapped twice; blocks have
 * as many valid pages as they count, and are in the list that the count requires.
 */
static void expect_consistent(struct kunit *test, struct mdisk_ftl *ftl,
			      u64 mapped)
{
	u32 listed = 1, nr_free = 0, page, i;
	struct mdisk_block *block;

	for (page = 0; page < ftl->nr_pages; page++) {
		if (ftl->physical[page] == MDISK_NO_PAGE)
			continue;
		KUNIT_EXPECT_EQ(test, ftl->logical[ftl->physical[page]], page);
		mapped--;
	}
	KUNIT_EXPECT_EQ(test, mapped, 0);
	for (i = 0; i < ftl->nr_blocks; i++) {
		u32 valid = 0;

		for (page = 0; page < MDISK_BLOCK_PAGES; page++)
			valid += ftl->logical[i * MDISK_BLOCK_PAGES + page] !=
				 MDISK_NO_PAGE;
		KUNIT_EXPECT_EQ(test, ftl->block[i].valid, valid);
	}
	list_for_each_entry(block, &ftl->free, node) {
		KUNIT_EXPECT_EQ(test, block->valid, 0);
		nr_free++;
	}
	KUNIT_EXPECT_EQ(test, ftl->nr_free, nr_free);
	KUNIT_EXPECT_GT(test, nr_free, 0);
	for (i = 0; i <= MDISK_BLOCK_PAGES; i++) {
		list_for_each_entry(block, &ftl->closed[i], node) {
			KUNIT_EXPECT_EQ(test, block->valid, i);
			listed++;
		}
	}
	KUNIT_EXPECT_EQ(test, listed + nr_free, ftl->nr_blocks);
}

/* Random writes and discards: the layer is consistent, and writes are charged for all reclaims. */
static void ftl_property(struct kunit *test)
{
	u64 seed;

	for (seed = 1; seed <= 40; seed++) {
		u64 random = seed, charged_ns = 0, mapped, spent_ns, i;
		u32 fill = random_below(&random, 101);
		struct mdisk_drive drive;
		struct mdisk_ftl *ftl =
			ftl_new(test, &drive, random_between(&random, 1, 20),
				random_magnitude(&random, 100), fill);
		u64 bytes = (u64)ftl->nr_pages * MDISK_FLASH_PAGE_BYTES;

		mapped = (u64)ftl->nr_pages * fill / 100;
		for (i = 0; i < 10 * ftl->nr_pages; i++) {
			u32 page = random_below(&random, ftl->nr_pages);
			u64 start = random_below(&random, bytes), end = start;

			mapped += ftl->physical[page] == MDISK_NO_PAGE;
			charged_ns += mdisk_ftl_write(&drive, ftl, page);
			if (!random_below(&random, 100))
				end += random_magnitude(&random, bytes - start);
			for (page = 0; end > start && page < ftl->nr_pages;
			     page++)
				mapped -= page * 16384ULL >= start &&
					  (page + 1) * 16384ULL <= end &&
					  ftl->physical[page] != MDISK_NO_PAGE;
			mdisk_ftl_discard(ftl, start, end);
		}
		expect_consistent(test, ftl, mapped);
		spent_ns = drive.truth.moved_pages * 280000 +
			   drive.truth.erased_blocks * 2000000;
		KUNIT_EXPECT_EQ(test, charged_ns + ftl->uncharged_ns, spent_ns);
		KUNIT_EXPECT_EQ(test, drive.truth.written_pages, i);
	}
}

/* The solution w > -1 of w * e^w = x, for -1/e < x < 0. */
static double lambert_w(double x)
{
	double low = -1, high = 0;
	int i;

	for (i = 0; i < 100; i++) {
		double middle = (low + high) / 2;

		if (middle * exp(middle) < x)
			low = middle;
		else
			high = middle;
	}
	return low;
}

/*
 * Write amplification of greedy garbage collection under uniformly random writes, by
 * Desnoyers, "Analytic Modeling of SSD Write Performance", SYSTOR 2012, equation 12.
 * @alpha: flash pages for each page with data
 */
static double desnoyers(double alpha)
{
	double k = 1 + 1 / (2.0 * MDISK_BLOCK_PAGES);

	return alpha / (k * alpha + lambert_w(-k * alpha * exp(-k * alpha)));
}

/* Of a full drive, and of one on which a part of the data was discarded. */
static void ftl_write_amplification(struct kunit *test)
{
	static const struct {
		u32 percent;
		u32 used_percent;
	} cases[] = { { 7, 100 },   { 15, 100 }, { 28, 100 }, { 50, 100 },
		      { 100, 100 }, { 7, 90 },	 { 7, 70 },   { 28, 50 } };
	u32 i, n;

	for (i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		u64 random = 1;
		struct mdisk_drive drive;
		struct mdisk_ftl *ftl =
			ftl_new(test, &drive, 1024, cases[i].percent, 100);
		u32 used = (u64)ftl->nr_pages * cases[i].used_percent / 100;
		double found, wanted = desnoyers((double)(ftl->nr_blocks - 1) *
						 MDISK_BLOCK_PAGES / used);

		mdisk_ftl_discard(ftl, (u64)used * MDISK_FLASH_PAGE_BYTES,
				  (u64)drive.num.size_mb << 20);
		for (n = 0; n < 4 * ftl->nr_pages; n++)
			mdisk_ftl_write(&drive, ftl,
					random_below(&random, used));
		drive.truth = (struct mdisk_truth){};
		for (n = 0; n < 4 * ftl->nr_pages; n++)
			mdisk_ftl_write(&drive, ftl,
					random_below(&random, used));
		found = 1 + (double)drive.truth.moved_pages /
				    drive.truth.written_pages;
		printf("# %u %% over-provisioning, %u %% used: write amplification %.3f, by Desnoyers %.3f\n",
		       cases[i].percent, cases[i].used_percent, found, wanted);
		KUNIT_EXPECT_LT(test, fabs(found / wanted - 1) * 1000, 10);
	}
}

/* Sequential writes leave blocks without valid pages. */
static void ftl_sequential(struct kunit *test)
{
	struct mdisk_drive drive;
	struct mdisk_ftl *ftl = ftl_new(test, &drive, 64, 7, 100);
	u32 n;

	for (n = 0; n < 5 * ftl->nr_pages; n++)
		mdisk_ftl_write(&drive, ftl, n % ftl->nr_pages);
	KUNIT_EXPECT_EQ(test, drive.truth.moved_pages, 0);
	KUNIT_EXPECT_GT(test, drive.truth.erased_blocks, 100);
}

static struct kunit_case cases[] = {
	KUNIT_CASE(ftl_property),
	KUNIT_CASE(ftl_write_amplification),
	KUNIT_CASE(ftl_sequential),
	{},
};

static struct kunit_suite suite = {
	.name = "ftl",
	.test_cases = cases,
};
kunit_test_suite(suite);
