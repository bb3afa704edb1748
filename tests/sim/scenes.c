// SPDX-License-Identifier: GPL-2.0-only
/* The scenes that are reported.  Names are short: they head the table's rows. */
#include "scenes.h"

#include <assert.h>

#include <linux/string.h>

#define KIB 1024
#define MIB (1024 * 1024)
#define MS NSEC_PER_MSEC
#define SEC NSEC_PER_SEC

#define READER(label, w, rand, size, depth) \
	{ .name = label,                    \
	  .weight = w,                      \
	  .op = SUTRO_READ,                 \
	  .random = rand,                   \
	  .bytes = size,                    \
	  .iodepth = depth }
#define WRITER(label, w, rand, size, depth) \
	{ .name = label,                    \
	  .weight = w,                      \
	  .op = SUTRO_WRITE,                \
	  .async = true,                    \
	  .random = rand,                   \
	  .bytes = size,                    \
	  .iodepth = depth }

#define HDD(n)                                                 \
	.rotational = true, .leaves = n, .warmup_ns = 2 * SEC, \
	.run_ns = 22 * SEC, .seed = 1
#define FLASH(n) .leaves = n, .warmup_ns = 1 * SEC, .seed = 1

/* The program reads 128 KiB, the next 128 KiB are under way. */
#define FILE_READER(label, w) \
	{ .name = label,      \
	  .weight = w,        \
	  .op = SUTRO_READ,   \
	  .bytes = 128 * KIB, \
	  .iodepth = 2,       \
	  .think_ns = 50 * NSEC_PER_USEC }

/* Buses as slow as an emulated CPU needs them (tests/bench). */
static const struct flash_model ssd_24 = {
	.size_bytes = 2ULL << 30,
	.channels = 16,
	.read_ns = 80 * NSEC_PER_USEC,
	.write_ns = 200 * NSEC_PER_USEC,
	.bus_kbps = 24000,
	.depth = 32,
};

static const struct flash_model ssd_60 = {
	.size_bytes = 2ULL << 30,
	.channels = 16,
	.read_ns = 80 * NSEC_PER_USEC,
	.write_ns = 200 * NSEC_PER_USEC,
	.bus_kbps = 60000,
	.depth = 32,
};

const struct scene scenes[] = {
	{ .name = "stripe rand 64K qd96 200:100",
	  HDD(2),
	  .jobs = { READER("a", 200, true, 64 * KIB, 96),
		    READER("b", 100, true, 64 * KIB, 96) } },
	{ .name = "stripe rand 128K qd16 200:100",
	  HDD(2),
	  .jobs = { READER("a", 200, true, 128 * KIB, 16),
		    READER("b", 100, true, 128 * KIB, 16) } },
	{ .name = "stripe rand 128K qd16 300:100",
	  HDD(2),
	  .jobs = { READER("a", 300, true, 128 * KIB, 16),
		    READER("b", 100, true, 128 * KIB, 16) } },
	{ .name = "stripe seq 1M qd16 200:100",
	  HDD(2),
	  .jobs = { READER("a", 200, false, MIB, 16),
		    READER("b", 100, false, MIB, 16) } },
	{ .name = "stripe seq 1M qd16 300:100",
	  HDD(2),
	  .jobs = { READER("a", 300, false, MIB, 16),
		    READER("b", 100, false, MIB, 16) } },
	{ .name = "stripe seq 1M qd4 200:100",
	  HDD(2),
	  .jobs = { READER("a", 200, false, MIB, 4),
		    READER("b", 100, false, MIB, 4) } },
	{ .name = "stripe seq 1M qd1 200:100",
	  HDD(2),
	  .jobs = { READER("a", 200, false, MIB, 1),
		    READER("b", 100, false, MIB, 1) } },
	{ .name = "stripe seq qd16 | rand 128K qd16 200:100",
	  HDD(2),
	  .jobs = { READER("a", 200, false, MIB, 16),
		    READER("b", 100, true, 128 * KIB, 16) } },
	{ .name = "stripe seq 1M qd16 8 groups 100",
	  HDD(2),
	  .jobs = { READER("a", 100, false, MIB, 16),
		    READER("b", 100, false, MIB, 16),
		    READER("c", 100, false, MIB, 16),
		    READER("d", 100, false, MIB, 16),
		    READER("e", 100, false, MIB, 16),
		    READER("f", 100, false, MIB, 16),
		    READER("g", 100, false, MIB, 16),
		    READER("h", 100, false, MIB, 16) } },
	{ .name = "one seq 1M qd16 200:100",
	  HDD(1),
	  .jobs = { READER("a", 200, false, MIB, 16),
		    READER("b", 100, false, MIB, 16) } },
	{ .name = "one seq 1M qd1 200:100",
	  HDD(1),
	  .jobs = { READER("a", 200, false, MIB, 1),
		    READER("b", 100, false, MIB, 1) } },
	{ .name = "one file reader | writer 100:100",
	  HDD(1),
	  .jobs = { FILE_READER("a", 100), WRITER("b", 100, false, MIB, 64) } },
	{ .name = "one file reader | rand writer 100:100",
	  HDD(1),
	  .jobs = { FILE_READER("a", 100),
		    WRITER("b", 100, true, 4 * KIB, 64) } },
	{ .name = "one rand 4K qd1 | qd64 100:100",
	  HDD(1),
	  .jobs = { READER("a", 100, true, 4 * KIB, 1),
		    READER("b", 100, true, 4 * KIB, 64) } },
	{ .name = "one rand 4K qd1 | seq qd64 100:100",
	  HDD(1),
	  .jobs = { READER("a", 100, true, 4 * KIB, 1),
		    READER("b", 100, false, MIB, 64) } },
	{ .name = "one rand 4K qd64 | seq qd16 100:100",
	  HDD(1),
	  .jobs = { READER("a", 100, true, 4 * KIB, 64),
		    READER("b", 100, false, MIB, 16) } },
	{ .name = "one rand 16 groups 1..16",
	  HDD(1),
	  .jobs = { READER("a", 16, true, 4 * KIB, 16),
		    READER("b", 1, true, 4 * KIB, 16),
		    READER("c", 2, true, 4 * KIB, 16),
		    READER("d", 3, true, 4 * KIB, 16),
		    READER("e", 4, true, 4 * KIB, 16),
		    READER("f", 5, true, 4 * KIB, 16),
		    READER("g", 6, true, 4 * KIB, 16),
		    READER("h", 7, true, 4 * KIB, 16),
		    READER("i", 8, true, 4 * KIB, 16),
		    READER("j", 9, true, 4 * KIB, 16),
		    READER("k", 10, true, 4 * KIB, 16),
		    READER("l", 11, true, 4 * KIB, 16),
		    READER("m", 12, true, 4 * KIB, 16),
		    READER("n", 13, true, 4 * KIB, 16),
		    READER("o", 14, true, 4 * KIB, 16),
		    READER("p", 15, true, 4 * KIB, 16) } },
	{ .name = "one rand 16 groups 1..16 slots 256",
	  HDD(1),
	  .slots = 256,
	  .jobs = { READER("a", 16, true, 4 * KIB, 16),
		    READER("b", 1, true, 4 * KIB, 16),
		    READER("c", 2, true, 4 * KIB, 16),
		    READER("d", 3, true, 4 * KIB, 16),
		    READER("e", 4, true, 4 * KIB, 16),
		    READER("f", 5, true, 4 * KIB, 16),
		    READER("g", 6, true, 4 * KIB, 16),
		    READER("h", 7, true, 4 * KIB, 16),
		    READER("i", 8, true, 4 * KIB, 16),
		    READER("j", 9, true, 4 * KIB, 16),
		    READER("k", 10, true, 4 * KIB, 16),
		    READER("l", 11, true, 4 * KIB, 16),
		    READER("m", 12, true, 4 * KIB, 16),
		    READER("n", 13, true, 4 * KIB, 16),
		    READER("o", 14, true, 4 * KIB, 16),
		    READER("p", 15, true, 4 * KIB, 16) } },
	{ .name = "stripe rand 128K qd16 flip 200:100",
	  HDD(2),
	  .flip_ns = 10 * SEC,
	  .flip_weight = { 100, 200 },
	  .jobs = { READER("a", 200, true, 128 * KIB, 16),
		    READER("b", 100, true, 128 * KIB, 16) } },
	{ .name = "stripe seq 1M qd16 flip 200:100",
	  HDD(2),
	  .flip_ns = 10 * SEC,
	  .flip_weight = { 100, 200 },
	  .jobs = { READER("a", 200, false, MIB, 16),
		    READER("b", 100, false, MIB, 16) } },
	{ .name = "ssd stripe rand 64K qd96 200:100",
	  FLASH(2),
	  .run_ns = 4 * SEC,
	  .jobs = { READER("a", 200, true, 64 * KIB, 96),
		    READER("b", 100, true, 64 * KIB, 96) } },
	{ .name = "ssd seq 1M qd16 200:100",
	  FLASH(1),
	  .run_ns = 4 * SEC,
	  .jobs = { READER("a", 200, false, MIB, 16),
		    READER("b", 100, false, MIB, 16) } },
	{ .name = "ssd seq 1M qd4 200:100",
	  FLASH(1),
	  .run_ns = 4 * SEC,
	  .jobs = { READER("a", 200, false, MIB, 4),
		    READER("b", 100, false, MIB, 4) } },
	{ .name = "ssd rand 128K qd8 200:100",
	  FLASH(1),
	  .run_ns = 4 * SEC,
	  .jobs = { READER("a", 200, true, 128 * KIB, 8),
		    READER("b", 100, true, 128 * KIB, 8) } },
	{ .name = "ssd rand 4K qd16 200:100",
	  FLASH(1),
	  .run_ns = 4 * SEC,
	  .jobs = { READER("a", 200, true, 4 * KIB, 16),
		    READER("b", 100, true, 4 * KIB, 16) } },
	{ .name = "ssd stripe seq 1M qd16 flip 200:100",
	  FLASH(2),
	  .run_ns = 4 * SEC,
	  .flip_ns = 2 * SEC,
	  .flip_weight = { 100, 200 },
	  .jobs = { READER("a", 200, false, MIB, 16),
		    READER("b", 100, false, MIB, 16) } },
	{ .name = "ssd 24 MB/s seq 1M qd8 1000:500",
	  FLASH(1),
	  .flash = &ssd_24,
	  .run_ns = 12 * SEC,
	  .jobs = { READER("a", 1000, false, MIB, 8),
		    READER("b", 500, false, MIB, 8) } },
	{ .name = "ssd 24 MB/s seq 256K qd16 1000:500",
	  FLASH(1),
	  .flash = &ssd_24,
	  .run_ns = 12 * SEC,
	  .jobs = { READER("a", 1000, false, 256 * KIB, 16),
		    READER("b", 500, false, 256 * KIB, 16) } },
	{ .name = "ssd 24 MB/s seq 1M qd4 1000:500",
	  FLASH(1),
	  .flash = &ssd_24,
	  .run_ns = 12 * SEC,
	  .jobs = { READER("a", 1000, false, MIB, 4),
		    READER("b", 500, false, MIB, 4) } },
	{ .name = "ssd 24 MB/s seq 1M qd2 1000:500",
	  FLASH(1),
	  .flash = &ssd_24,
	  .run_ns = 12 * SEC,
	  .jobs = { READER("a", 1000, false, MIB, 2),
		    READER("b", 500, false, MIB, 2) } },
	{ .name = "ssd 24 MB/s seq 1M qd1 1000:500",
	  FLASH(1),
	  .flash = &ssd_24,
	  .run_ns = 12 * SEC,
	  .jobs = { READER("a", 1000, false, MIB, 1),
		    READER("b", 500, false, MIB, 1) } },
	{ .name = "ssd 24 MB/s seq 1M qd1 1000:500 fair",
	  FLASH(1),
	  .flash = &ssd_24,
	  .run_ns = 12 * SEC,
	  .fairness = true,
	  .jobs = { READER("a", 1000, false, MIB, 1),
		    READER("b", 500, false, MIB, 1) } },
	{ .name = "ssd rand 4K qd1 | qd64 100:100 fair",
	  FLASH(1),
	  .run_ns = 4 * SEC,
	  .fairness = true,
	  .jobs = { READER("a", 100, true, 4 * KIB, 1),
		    READER("b", 100, true, 4 * KIB, 64) } },
	{ .name = "ssd 60 MB/s stripe rand 64K qd96 flip",
	  FLASH(2),
	  .flash = &ssd_60,
	  .run_ns = 12 * SEC,
	  .flip_ns = 6 * SEC,
	  .flip_weight = { 100, 200 },
	  .jobs = { READER("a", 200, true, 64 * KIB, 96),
		    READER("b", 100, true, 64 * KIB, 96) } },
	{ .name = "ssd rand 4K qd32 | 256K qd32 100:100",
	  FLASH(1),
	  .run_ns = 4 * SEC,
	  .jobs = { READER("a", 100, true, 4 * KIB, 32),
		    READER("b", 100, true, 256 * KIB, 32) } },
	{ .name = "ssd rand 16K qd32 read | write 100:100",
	  FLASH(1),
	  .run_ns = 4 * SEC,
	  .jobs = { READER("a", 100, true, 16 * KIB, 32),
		    WRITER("b", 100, true, 16 * KIB, 32) } },
	{ .name = "ssd rand 4K qd1 | qd64 100:100",
	  FLASH(1),
	  .run_ns = 4 * SEC,
	  .jobs = { READER("a", 100, true, 4 * KIB, 1),
		    READER("b", 100, true, 4 * KIB, 64) } },
	{ .name = "nvme rand 4K qd128 200:100",
	  FLASH(1),
	  .run_ns = 4 * SEC,
	  .flash = &nvme_default,
	  .jobs = { READER("a", 200, true, 4 * KIB, 128),
		    READER("b", 100, true, 4 * KIB, 128) } },
	{ .name = "nvme rand 4K qd128 | 256K qd32 100:100",
	  FLASH(1),
	  .run_ns = 4 * SEC,
	  .flash = &nvme_default,
	  .jobs = { READER("a", 100, true, 4 * KIB, 128),
		    READER("b", 100, true, 256 * KIB, 32) } },
};

const unsigned int scenes_nr = sizeof(scenes) / sizeof(scenes[0]);

const struct scene *scene_find(const char *name)
{
	unsigned int i;

	for (i = 0; i < scenes_nr; i++)
		if (!strcmp(scenes[i].name, name))
			return &scenes[i];
	assert(!"no such scene");
	return NULL;
}
