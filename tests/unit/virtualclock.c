/* SPDX-License-Identifier: LGPL-2.1-or-later */

/*
 * A clock that stands still until the test moves it.
 *
 * This file replaces the functions through which sd-event reads CLOCK_MONOTONIC and
 * CLOCK_BOOTTIME, arms its timers and waits, and through which sutrod reads its CPU time; in
 * sutrod by LD_PRELOAD, in the sanitized sutrod by being linked into it. It is in use if
 * SUTRO_CLOCK is "FD NS": the time at the start in ns, and a SOCK_SEQPACKET socket with which the
 * test moves the clock. With "" the clock of the machine is in use.
 *
 * The test sends the new time. The process fires the timers that are due, handles all
 * that is ready, and when it would sleep it replies with the time of its next timer, or
 * UINT64_MAX, and its own time. So after the reply no timer that was due is left to be handled. If
 * the test has requested that, the process then handles nothing before the next message:
 * meanwhile the test changes files of which the process must not read a part.
 *
 * The process is infinitely fast, unless the test sends the time that each of its looks at what is
 * ready takes. Then timers become due while it has much to do, as on a machine, but on each machine
 * after the same work.
 *
 * Its CPU time is not measured either: each reading of CLOCK_THREAD_CPUTIME_ID is later than the
 * one before by a time that the test sends, 1 us at first. So what sutrod measures between two
 * readings takes this time on each machine, and the other clocks stand still meanwhile.
 *
 * Timers fire at their time. sd-event would delay each within its accuracy (250 ms by default), to a
 * moment that it derives from the boot ID of the host: times of samples and so the rates in them
 * would differ from host to host.
 *
 * While a child process of it runs, the process is not idle. One that sleeps hangs, for the work
 * of children (helper.c) waits for nothing else.
 */

#include <dlfcn.h>
#include <poll.h>
#include <signal.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/timerfd.h>
#include <time.h>
#include <unistd.h>

#include "faults.h"

#define TIMERS_MAX 16
#define NEVER UINT64_MAX
#define NS_PER_S 1000000000ULL
#define EXACT_USEC 1
#define CPU_NS 1000

/* As in sd-event.h, which the tests of the installed package do not have. */
struct sd_event;
struct sd_event_source;
typedef int (*time_handler)(struct sd_event_source *s, uint64_t usec,
			    void *userdata);
typedef int add_time(struct sd_event *event, struct sd_event_source **ret,
		     clockid_t clock, uint64_t usec, uint64_t accuracy_usec,
		     time_handler callback, void *userdata);
add_time sd_event_add_time;
add_time sd_event_add_time_relative;

/**
 * struct clock - the virtual time of this process
 * @socket: to the test; -1: the real clocks are in use
 * @is_awaited: the test waits for a reply
 * @holds: after the reply nothing is handled before the next message
 * @look_ns: time that each look at what is ready takes, until the reply
 * @cpu_ns: CPU time between two readings of it
 * @cpu_now_ns: CPU time at the last reading
 * @due_ns: of each timer, NEVER if it is not armed
 */
static struct {
	int socket;
	bool is_awaited;
	bool holds;
	uint64_t look_ns;
	uint64_t now_ns;
	uint64_t cpu_ns;
	uint64_t cpu_now_ns;
	int timers[TIMERS_MAX];
	uint64_t due_ns[TIMERS_MAX];
} virtual = { .socket = -1, .cpu_ns = CPU_NS };

__attribute__((constructor)) static void start(void)
{
	const char *text = getenv("SUTRO_CLOCK");
	unsigned long long ns;

	if (!text || !*text)
		return;
	if (sscanf(text, "%d %llu", &virtual.socket, &ns) != 2)
		abort();
	virtual.now_ns = ns;
	for (size_t i = 0; i < TIMERS_MAX; i++)
		virtual.due_ns[i] = NEVER;
}

int clock_gettime(clockid_t clock, struct timespec *t)
{
	uint64_t ns = virtual.now_ns;
	bool is_cpu = clock == CLOCK_THREAD_CPUTIME_ID;

	if (virtual.socket < 0 ||
	    (!is_cpu && clock != CLOCK_MONOTONIC && clock != CLOCK_BOOTTIME))
		return syscall(SYS_clock_gettime, clock, t);
	if (is_cpu)
		ns = virtual.cpu_now_ns += virtual.cpu_ns;
	*t = (struct timespec){ .tv_sec = ns / NS_PER_S,
				.tv_nsec = ns % NS_PER_S };
	return 0;
}

/* Returns when the timer can be read, so that the next poll() sees it. */
static int fire(int fd)
{
	const struct itimerspec past = { .it_value.tv_nsec = 1 };
	struct pollfd p = { fd, POLLIN, 0 };

	if (syscall(SYS_timerfd_settime, fd, TFD_TIMER_ABSTIME, &past, NULL) <
	    0)
		return -1;
	return poll(&p, 1, -1) == 1 ? 0 : -1;
}

static void fire_due(void)
{
	for (size_t i = 0; i < TIMERS_MAX; i++)
		if (virtual.due_ns[i] <= virtual.now_ns) {
			virtual.due_ns[i] = NEVER;
			if (fire(virtual.timers[i]) < 0)
				abort();
		}
}

static uint64_t *due_of(int fd)
{
	for (size_t i = 0; i < TIMERS_MAX; i++) {
		if (virtual.timers[i] == fd || !virtual.timers[i]) {
			virtual.timers[i] = fd;
			return &virtual.due_ns[i];
		}
	}
	abort();
}

int timerfd_settime(int fd, int flags, const struct itimerspec *new,
		    struct itimerspec *old)
{
	const struct itimerspec never = {};
	uint64_t ns = new->it_value.tv_sec *NS_PER_S + new->it_value.tv_nsec;

	if (virtual.socket < 0)
		return syscall(SYS_timerfd_settime, fd, flags, new, old);
	if (ns && !(flags & TFD_TIMER_ABSTIME))
		ns += virtual.now_ns;
	*due_of(fd) = ns ?: NEVER;
	if (syscall(SYS_timerfd_settime, fd, 0, &never, old) < 0)
		return -1;
	fire_due();
	return 0;
}

static uint64_t accuracy(uint64_t usec)
{
	return virtual.socket < 0 ? usec : EXACT_USEC;
}

int sd_event_add_time(struct sd_event *event, struct sd_event_source **ret,
		      clockid_t clock, uint64_t usec, uint64_t accuracy_usec,
		      time_handler callback, void *userdata)
{
	add_time *next = dlsym(RTLD_NEXT, "sd_event_add_time");

	return next(event, ret, clock, usec, accuracy(accuracy_usec), callback,
		    userdata);
}

int sd_event_add_time_relative(struct sd_event *event,
			       struct sd_event_source **ret, clockid_t clock,
			       uint64_t usec, uint64_t accuracy_usec,
			       time_handler callback, void *userdata)
{
	add_time *next = dlsym(RTLD_NEXT, "sd_event_add_time_relative");

	return next(event, ret, clock, usec, accuracy(accuracy_usec), callback,
		    userdata);
}

static void reply(void)
{
	struct {
		uint64_t next_ns;
		uint64_t now_ns;
	} message = { NEVER, virtual.now_ns };

	for (size_t i = 0; i < TIMERS_MAX; i++)
		if (virtual.due_ns[i] < message.next_ns)
			message.next_ns = virtual.due_ns[i];
	virtual.is_awaited = false;
	virtual.look_ns = 0;
	send(virtual.socket, &message, sizeof(message), MSG_NOSIGNAL);
}

/* Without a test at the other end the clock stands still. */
static void move(struct pollfd *p)
{
	struct {
		uint64_t now_ns;
		uint64_t holds;
		uint64_t look_ns;
		uint64_t cpu_ns;
	} message;

	if (recv(virtual.socket, &message, sizeof(message), 0) !=
	    sizeof(message)) {
		p->fd = -1;
		return;
	}
	virtual.now_ns = message.now_ns;
	virtual.holds = message.holds;
	virtual.look_ns = message.look_ns;
	virtual.cpu_ns = message.cpu_ns;
	virtual.is_awaited = true;
	fire_due();
}

/* The state in "PID (NAME) STATE ...". */
static bool is_running(int pid)
{
	char path[64], name[64], state = 0;
	bool is_read;
	FILE *f;

	snprintf(path, sizeof(path), "/proc/%d/stat", pid);
	f = fopen(path, "re");
	is_read = f && fscanf(f, "%*d (%63[^)]) %c", name, &state) == 2;
	if (f)
		fclose(f);
	return is_read && (state == 'R' || state == 'D');
}

static bool has_running_child(void)
{
	char path[64];
	bool found = false;
	int pid;
	FILE *f;

	snprintf(path, sizeof(path), "/proc/self/task/%d/children", getpid());
	f = fopen(path, "re");
	while (f && !found && fscanf(f, "%d", &pid) == 1)
		found = is_running(pid);
	if (f)
		fclose(f);
	return found;
}

static int sleep_until_ready(int epoll, bool may_sleep)
{
	struct pollfd p[] = { { epoll, POLLIN, 0 },
			      { virtual.socket, POLLIN, 0 } };

	while (may_sleep && poll(p, 1, 0) == 0) {
		bool is_held = virtual.is_awaited && virtual.holds;

		if (virtual.is_awaited && has_running_child()) {
			poll(p, 1, 1);
			continue;
		}
		if (virtual.is_awaited)
			reply();
		if (poll(is_held ? p + 1 : p, is_held ? 1 : 2, -1) < 0)
			return -1;
		if (p[1].revents)
			move(&p[1]);
	}
	return 0;
}

static int wait_for_events(int epoll, struct epoll_event *events, int n,
			   bool may_sleep)
{
	int r;

	faults_pause();
	virtual.now_ns += virtual.look_ns;
	fire_due();
	r = sleep_until_ready(epoll, may_sleep);
	faults_resume();
	return r < 0 ? r : syscall(SYS_epoll_wait, epoll, events, n, 0);
}

int epoll_wait(int epoll, struct epoll_event *events, int n, int timeout_ms)
{
	if (virtual.socket < 0)
		return syscall(SYS_epoll_wait, epoll, events, n, timeout_ms);
	return wait_for_events(epoll, events, n, timeout_ms != 0);
}

int epoll_pwait2(int epoll, struct epoll_event *events, int n,
		 const struct timespec *timeout, const sigset_t *mask)
{
	if (virtual.socket < 0)
		return syscall(SYS_epoll_pwait2, epoll, events, n, timeout,
			       mask, _NSIG / 8);
	return wait_for_events(epoll, events, n,
			       !timeout || timeout->tv_sec || timeout->tv_nsec);
}
