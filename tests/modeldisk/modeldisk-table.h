/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * modeldisk: the numbers of a drive
 *
 *	NUMBER(name, kinds, smallest, largest, only before online)
 *	CHOICE(name, kinds), a number whose values have names
 *
 * Included by modeldisk-numbers.c and modeldisk-configfs.c, which define both.
 */
NUMBER(size_mb, ANY, 1, MAX_SIZE_MB, true)
NUMBER(queue_depth, ANY, 1, 4096, true)
NUMBER(hw_queues, ANY, 1, 64, true)
NUMBER(seed, ANY, 0, U32_MAX, true)
NUMBER(rpm, HDD, 60, 1000000, false)
NUMBER(seek_min_us, HDD, 0, MAX_US, false)
NUMBER(seek_max_us, HDD, 0, MAX_US, false)
NUMBER(bandwidth_kbps, HDD, 1, MAX_KBPS, false)
NUMBER(overhead_us, HDD, 0, MAX_US, false)
CHOICE(order, HDD)
NUMBER(age_limit_ms, HDD, 1, MAX_US / 1000, false)
NUMBER(readahead_kb, HDD, 0, 1024 * 1024, false)
NUMBER(channels, FLASH, 1, MDISK_MAX_CHANNELS, false)
NUMBER(read_us, FLASH, 1, MAX_US, false)
NUMBER(write_us, FLASH, 1, MAX_US, false)
NUMBER(noise_percent, FLASH, 0, 100, false)
NUMBER(hiccup_us, FLASH, 0, MAX_US, false)
CHOICE(bus_order, FLASH)
NUMBER(discard_us, FLASH, 0, MAX_US, false)
NUMBER(discard_us_per_mb, FLASH, 0, MAX_US / 1000, false)
NUMBER(discard_segments, FLASH, 1, 256, true)
NUMBER(erase_us, FLASH, 0, MAX_US, false)
NUMBER(over_provision_percent, FLASH, 0, 100, true)
NUMBER(fill_percent, FLASH, 0, 100, true)
NUMBER(bus_kbps, ANY, 1, MAX_KBPS, false)
NUMBER(cache_kb, ANY, 0, 1024 * 1024, false)
NUMBER(drain_kbps, ANY, 0, MAX_KBPS, false)
NUMBER(fua, ANY, 0, 1, true)
NUMBER(give_back, ANY, 0, 1000000, false)
NUMBER(fail, ANY, 0, 1000000, false)
NUMBER(lose, ANY, 0, 1000000, false)
#undef NUMBER
#undef CHOICE
