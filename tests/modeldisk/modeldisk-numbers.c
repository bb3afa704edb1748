// SPDX-License-Identifier: GPL-2.0-only
/*
 * modeldisk: names, ranges and defaults of the numbers of a drive
 */
#include <linux/array_size.h>
#include <linux/bits.h>
#include <linux/limits.h>
#include <linux/string.h>

#include "modeldisk-model.h"

#define HDD BIT(MDISK_HDD)
#define FLASH (BIT(MDISK_SSD) | BIT(MDISK_NVME))
#define ANY (HDD | FLASH)

/* 1 TiB: keeps sector * 10^9 within 64 bits (modeldisk-hdd.c) */
#define MAX_SIZE_MB (1024 * 1024)
/* 100 GB/s and ten minutes: beyond any disk, within the arithmetic */
#define MAX_KBPS 100000000
#define MAX_US 600000000

#define DEFAULT_SIZE_MB 1024
#define DEFAULT_SEED 1

const char *const mdisk_kind_names[MDISK_KINDS] = {
	[MDISK_HDD] = "hdd",
	[MDISK_SSD] = "ssd",
	[MDISK_NVME] = "nvme",
};

static const char *const mdisk_order_names[] = {
	[MDISK_FIFO] = "fifo",
	[MDISK_SPTF] = "sptf",
};

static const char *const mdisk_bus_order_names[] = {
	[MDISK_BUS_FIFO] = "fifo",
	[MDISK_BUS_ROUND_ROBIN] = "round-robin",
};

static const struct mdisk_number mdisk_number_table[] = {
#define NUMBER(_name, _kinds, _min, _max, _offline)              \
	{                                                        \
		.name = #_name,                                  \
		.offset = offsetof(struct mdisk_numbers, _name), \
		.kinds = _kinds,                                 \
		.min = _min,                                     \
		.max = _max,                                     \
		.offline = _offline,                             \
	},
#define CHOICE(_name, _kinds)                                    \
	{                                                        \
		.name = #_name,                                  \
		.offset = offsetof(struct mdisk_numbers, _name), \
		.kinds = _kinds,                                 \
		.max = ARRAY_SIZE(mdisk_##_name##_names) - 1,    \
		.names = mdisk_##_name##_names,                  \
	},
#include "modeldisk-table.h"
};

/*
 * hdd	a 7200 rpm drive with 150 MB/s
 * ssd	a SATA drive: limited by the bus, except 4 KiB writes, by the channels
 * nvme	1024 deep, so that all channels have work and the rate measured at full
 *	depth is the formula's
 */
static const struct mdisk_numbers mdisk_defaults[MDISK_KINDS] = {
	[MDISK_HDD] = {
		.rpm = 7200,
		.seek_min_us = 500,
		.seek_max_us = 10500,
		.bandwidth_kbps = 150000,
		.overhead_us = 30,
		.order = MDISK_SPTF,
		.age_limit_ms = 1000,
		.readahead_kb = 2048,
		.bus_kbps = 540000,
		.queue_depth = 32,
		.hw_queues = 1,
		.fua = 1,
	},
	[MDISK_SSD] = {
		.channels = 16,
		.read_us = 80,
		.write_us = 200,
		.discard_segments = 1,
		.erase_us = 2000,
		.bus_kbps = 540000,
		.queue_depth = 32,
		.hw_queues = 1,
		.fua = 1,
	},
	[MDISK_NVME] = {
		.channels = 128,
		.read_us = 70,
		.write_us = 200,
		.discard_segments = 1,
		.erase_us = 2000,
		.bus_kbps = 3400000,
		.queue_depth = 512,
		.hw_queues = 2,
		.fua = 1,
	},
};

/**
 * mdisk_numbers_load - load the defaults of a kind
 * @num: the numbers; a size that is set stays, and the seed with it
 * @kind: hdd, ssd, nvme
 */
void mdisk_numbers_load(struct mdisk_numbers *num, enum mdisk_kind kind)
{
	u32 size_mb = num->size_mb;
	u32 seed = num->seed;

	*num = mdisk_defaults[kind];
	num->size_mb = size_mb ?: DEFAULT_SIZE_MB;
	num->seed = size_mb ? seed : DEFAULT_SEED;
}

/**
 * mdisk_number_find - look a number up
 * @name: its name
 *
 * Return: the number, or NULL if there is none of that name
 */
const struct mdisk_number *mdisk_number_find(const char *name)
{
	u32 i;

	for (i = 0; i < ARRAY_SIZE(mdisk_number_table); i++) {
		if (!strcmp(mdisk_number_table[i].name, name))
			return &mdisk_number_table[i];
	}
	return NULL;
}

/**
 * mdisk_number_of - where a drive has a number
 * @num: the numbers of the drive
 * @number: which one
 *
 * Return: its place
 */
u32 *mdisk_number_of(struct mdisk_numbers *num,
		     const struct mdisk_number *number)
{
	return (u32 *)((void *)num + number->offset);
}
