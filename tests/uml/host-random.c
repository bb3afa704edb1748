// SPDX-License-Identifier: GPL-2.0-only
/*
 * Preloaded into User Mode Linux, a process of the host: random numbers of the host that repeat.
 *
 * All entropy of the machine comes from getrandom() of the host; its time and its devices are virtual.
 * With it, ext4 and the flushers send the same requests in each run with one seed (HOST_RANDOM_SEED).
 * The numbers are those of splitmix64.
 */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>

#define GAMMA 0x9e3779b97f4a7c15ULL

static uint64_t mixed(uint64_t number)
{
	number = (number ^ number >> 30) * 0xbf58476d1ce4e5b9ULL;
	number = (number ^ number >> 27) * 0x94d049bb133111ebULL;
	return number ^ number >> 31;
}

/* UML calls it on one thread. */
ssize_t getrandom(void *buffer, size_t length, unsigned int flags)
{
	static uint64_t state;
	const char *seed = getenv("HOST_RANDOM_SEED");

	(void)flags;
	if (!state && seed)
		state = strtoull(seed, NULL, 10);
	for (size_t at = 0; at < length; at += sizeof(uint64_t)) {
		uint64_t number = mixed(state += GAMMA);
		size_t left = length - at;

		memcpy((char *)buffer + at, &number,
		       left < sizeof(number) ? left : sizeof(number));
	}
	return (ssize_t)length;
}
