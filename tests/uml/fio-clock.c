// SPDX-License-Identifier: GPL-2.0-only
/*
 * Preloaded into fio: a thread that does nothing but read the clock sleeps.
 *
 * In virtual time nothing passes while a thread spins but the 256 ns that UML
 * makes each reading cost.  fio spins at its start, when it measures its CPU's
 * clock 50 times for 1.28 ms (20 s of real time), and at the end of each pause
 * that a job makes, up to a millisecond (80 ms of real time).
 *
 * So a reading that is not the first SPIN of a row, in which the time never
 * moved by more than readings cost, takes PAUSE_NS.  A thread that works between two
 * readings is not affected, unless the work takes no virtual time for SPIN times.
 * At the start, where SPIN readings would be wasted 50 times, each takes 2 ms.
 */
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#define START_READINGS 100
#define START_PAUSE_NS 2000000
#define SPIN 128
#define PAUSE_NS 10000
#define READING_NS 1000

static void pause_ns(long ns)
{
	struct timespec pause = { .tv_nsec = ns };

	syscall(SYS_nanosleep, &pause, NULL);
}

int clock_gettime(clockid_t clock, struct timespec *now)
{
	static int readings;
	static __thread long long last_ns;
	static __thread int row;
	long long now_ns, still_ns = row < SPIN ? READING_NS : 2 * PAUSE_NS;
	int ret;

	if (__atomic_fetch_add(&readings, 1, __ATOMIC_RELAXED) < START_READINGS)
		pause_ns(START_PAUSE_NS);
	else if (row >= SPIN)
		pause_ns(PAUSE_NS);
	ret = syscall(SYS_clock_gettime, clock, now);
	now_ns = now->tv_sec * 1000000000LL + now->tv_nsec;
	row = now_ns - last_ns <= still_ns ? row + 1 : 0;
	last_ns = now_ns;
	return ret;
}
