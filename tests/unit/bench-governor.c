/* SPDX-License-Identifier: LGPL-2.1-or-later */

/*
 * Usage: bench-governor SUTROD KERNELFILES [UNITS LEAVES WIDTH USES ACTIVE FLOORS SECONDS]
 *
 * What floors cost. The daemon keeps floors for FLOORS units on a fake machine with
 * UNITS units and LEAVES sutro leaves, which stripes over WIDTH of them share. Each
 * unit uses USES of the stripes and has a floor on each, and ACTIVE units read them
 * now, so that io.sutro.active has ACTIVE * USES * WIDTH lines, as the kernel writes
 * it. One line is printed: CPU time of the daemon, its memory, its steps of control.
 *
 * What the numbers do not have: sysfs and cgroupfs (the files are in /tmp), and what a
 * write of a weight costs there. What they have too much: KERNELFILES, which makes the
 * weight files behave like the kernel's.
 */

#include <fcntl.h>
#include <inttypes.h>
#include <signal.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <time.h>

#include "bus.h"
#include "bus-peer.h"

/* As often as the daemon looks. */
#define STEP_USEC 250000U
#define WARM_UP_STEPS 16U

struct setup {
	const char *sutrod;
	const char *kernelfiles;
	unsigned int units;
	unsigned int leaves;
	unsigned int width;
	unsigned int uses;
	unsigned int active;
	unsigned int floors;
	unsigned int seconds;
};

/**
 * struct machine - files whose numbers move
 * @inodes: of the units' cgroups
 * @active: io.sutro.active
 * @stats: io.stat of the units with floors
 */
struct machine {
	struct roots roots;
	uint64_t *inodes;
	int active;
	int *stats;
	uint64_t usec;
};

static struct setup s = { .units = 1000,
			  .leaves = 16,
			  .width = 4,
			  .uses = 1,
			  .active = 100,
			  .floors = 50,
			  .seconds = 10 };
static struct machine machine;
static struct peer peer;

static uint64_t now_usec(clockid_t clock)
{
	struct timespec t;

	check(clock_gettime(clock, &t) == 0);
	return t.tv_sec * 1000000ULL + t.tv_nsec / 1000;
}

/* ---- the machine ---- */

static unsigned int volumes(void)
{
	return s.leaves / s.width;
}

/* The n-th one that a unit uses. */
static unsigned int volume_of(unsigned int unit, unsigned int n)
{
	return (unit + n) % volumes();
}

static const char *cgroup_of(const char *unit)
{
	static char path[128];

	if (streq(unit, "system.slice"))
		return "/system.slice";
	snprintf(path, sizeof(path), "/system.slice/%s", unit);
	return path;
}

static void make_devices(void)
{
	for (unsigned int l = 0; l < s.leaves; l++) {
		char name[16], devno[16];

		snprintf(name, sizeof(name), "sd%02u", l);
		snprintf(devno, sizeof(devno), "8:%u", 16 * l);
		fake_disk(&machine.roots, name, devno, "sutro");
	}
	for (unsigned int v = 0; v < volumes(); v++) {
		char name[16], devno[16], label[16], slaves[1024] = "";

		for (unsigned int l = 0; l < s.width; l++)
			snprintf(slaves + strlen(slaves),
				 sizeof(slaves) - strlen(slaves), "sd%02u ",
				 v * s.width + l);
		snprintf(name, sizeof(name), "dm-%u", v);
		snprintf(devno, sizeof(devno), "254:%u", v);
		snprintf(label, sizeof(label), "vg-v%u", v);
		fake_dm(&machine.roots, name, devno, slaves, label);
	}
}

/* The same file elsewhere too: who writes to it there, as the kernel does, does not
 * wake those who watch the cgroup's directory.
 */
static int make_counters(const char *path, const char *other)
{
	_cleanup_free_ char *full = NULL, *hidden = NULL;
	int fd;

	fake_file(&machine.roots, other, "%s", "");
	full = asprintf_or_null("%s%s", machine.roots.prefix, path);
	hidden = asprintf_or_null("%s%s", machine.roots.prefix, other);
	check(full && hidden && link(hidden, full) == 0);
	fd = open(hidden, O_WRONLY | O_CLOEXEC);
	check(fd >= 0);
	return fd;
}

static void make_unit(unsigned int i)
{
	char path[128], file[256], other[64];
	_cleanup_(text_freep) struct text floors = {};
	_cleanup_free_ char *full = NULL;
	struct stat st;

	snprintf(path, sizeof(path), "/system.slice/u%05u.service", i);
	fake_cgroup(&machine.roots, path);
	full = asprintf_or_null("%s/sys/fs/cgroup%s", machine.roots.prefix,
				path);
	check(full && stat(full, &st) == 0);
	machine.inodes[i] = st.st_ino;
	if (i >= s.floors)
		return;
	snprintf(file, sizeof(file), "/sys/fs/cgroup%s/io.stat", path);
	snprintf(other, sizeof(other), "/counters/%u", i);
	machine.stats[i] = make_counters(file, other);
	snprintf(file, sizeof(file), "/etc/sutro/policy.d/u%05u.policy", i);
	for (unsigned int u = 0; u < s.uses; u++)
		check(text_add(&floors,
			       "ReadBandwidthMin=/dev/mapper/vg-v%u 10M\n",
			       volume_of(i, u)) == 0);
	fake_file(&machine.roots, file,
		  "[Match]\nUnit=u%05u.service\n[X-Sutro]\n%s", i, floors.p);
}

static void make_machine(void)
{
	fake_new(&machine.roots);
	make_devices();
	machine.inodes = calloc(s.units, sizeof(*machine.inodes));
	machine.stats = calloc(s.units, sizeof(*machine.stats));
	check(machine.inodes && machine.stats);
	fake_cgroup(&machine.roots, "/system.slice");
	for (unsigned int i = 0; i < s.units; i++)
		make_unit(i);
	machine.active = make_counters("/sys/fs/cgroup/io.sutro.active",
				       "/counters/active");
}

/* ---- load ---- */

/* A tenth up and down, so that weights have to follow. */
static uint64_t noisy(uint64_t n, unsigned int i)
{
	return n + n / 10 * ((machine.usec / STEP_USEC * 7 + i * 13) % 5) / 5;
}

/* Numbers of one width: nothing has to be cut off. */
static void add_line(struct text *t, unsigned int unit, unsigned int l)
{
	uint64_t share_ns = machine.usec * 1000 * volumes() / s.uses / s.active;
	uint64_t ios = machine.usec / 100;

	check(text_add(t,
		       "8:%u %" PRIu64 " time_ns=%014" PRIu64
		       " rbytes=%014" PRIu64 " wbytes=0 rios=%010" PRIu64
		       " wios=0 wait_ns=%014" PRIu64 " idle_ns=0 queued=8 "
		       "rlat=0,0,0,%07" PRIu64 ",%07" PRIu64 ",0,0,0,0,0,0,0\n",
		       16 * l, machine.inodes[unit], noisy(share_ns, unit),
		       noisy(machine.usec * 20, unit), ios, machine.usec * 8000,
		       ios / 2, ios / 2) == 0);
}

static void put(int fd, const struct text *t)
{
	check(pwrite(fd, t->p, t->length, 0) == (ssize_t)t->length);
}

static void move_counters(void)
{
	_cleanup_(text_freep) struct text t = {};

	machine.usec += STEP_USEC;
	for (unsigned int i = 0; i < s.active; i++)
		for (unsigned int l = 0; l < s.uses * s.width; l++)
			add_line(&t, i,
				 volume_of(i, l / s.width) * s.width +
					 l % s.width);
	put(machine.active, &t);
	for (unsigned int i = 0; i < s.floors && i < s.active; i++) {
		_cleanup_(text_freep) struct text all = {};

		for (unsigned int u = 0; u < s.uses; u++)
			check(text_add(&all,
				       "254:%u rbytes=%014" PRIu64
				       " wbytes=0 rios=%010" PRIu64 " wios=0\n",
				       volume_of(i, u),
				       noisy(machine.usec * 20, i) * s.width,
				       machine.usec / 100) == 0);
		put(machine.stats[i], &all);
	}
}

/* ---- the daemon ---- */

static pid_t start(void)
{
	pid_t pid;

	peer_listen(&peer, &machine.roots, cgroup_of);
	pid = fork();
	check(pid >= 0);
	if (pid == 0) {
		_cleanup_free_ char *root =
			asprintf_or_null("--root=%s", machine.roots.prefix);
		int null = open("/dev/null", O_WRONLY);

		setenv("LD_PRELOAD", s.kernelfiles, 1);
		dup2(null, STDERR_FILENO);
		execl(s.sutrod, s.sutrod, root, NULL);
		_exit(EXIT_FAILURE);
	}
	peer_serve(&peer);
	return pid;
}

static uint64_t memory_kib(pid_t pid)
{
	_cleanup_free_ char *text = NULL;
	const char *line;
	char path[64];

	snprintf(path, sizeof(path), "/proc/%d/status", pid);
	check(read_file_at(AT_FDCWD, path, &text) == 0);
	line = strstr(text, "VmRSS:");
	check(line);
	return strtoull(line + strlen("VmRSS:"), NULL, 10);
}

static int on_step(sd_bus_message *reply, void *userdata, sd_bus_error *error)
{
	check(sd_bus_message_read(reply, "v", "t", (uint64_t *)userdata) > 0);
	return 1;
}

/* What the last step cost. */
static uint64_t ask_step(void)
{
	uint64_t usec = UINT64_MAX;
	sd_bus_message *m;

	m = peer_call(&peer, ":1.9", "org.freedesktop.DBus.Properties", "Get");
	check(m);
	check(sd_bus_message_append(m, "ss", BUS_INTERFACE,
				    "ControlStepUSec") >= 0);
	check(sd_bus_call_async(peer.bus, NULL, m, on_step, &usec,
				PEER_PATIENCE_USEC) >= 0);
	sd_bus_message_unref(m);
	while (usec == UINT64_MAX)
		peer_step(&peer, PEER_PATIENCE_USEC);
	return usec;
}

static void serve_until(uint64_t usec)
{
	for (uint64_t now; (now = now_usec(CLOCK_MONOTONIC)) < usec;)
		peer_step(&peer, usec - now);
}

static void measure(pid_t pid)
{
	uint64_t cpu, began, next, sum = 0, most = 0;
	unsigned int steps = 0;
	clockid_t clock;

	check(clock_getcpuclockid(pid, &clock) == 0);
	next = now_usec(CLOCK_MONOTONIC);
	/* Until all units are known and there are samples. */
	for (unsigned int i = 0; i < WARM_UP_STEPS || ask_step() == 0; i++) {
		move_counters();
		serve_until(next += STEP_USEC);
	}
	began = next;
	cpu = now_usec(clock);
	while (next < began + s.seconds * 1000000ULL) {
		uint64_t usec;

		move_counters();
		serve_until(next += STEP_USEC);
		usec = ask_step();
		sum += usec;
		most = usec > most ? usec : most;
		steps++;
	}
	cpu = now_usec(clock) - cpu;
	printf("units %u leaves %u lines %u floors %u: cpu %.2f %%, "
	       "rss %.1f MiB, step mean %.2f ms, most %.2f ms\n",
	       s.units, s.leaves, s.active * s.uses * s.width,
	       s.floors * s.uses, 100.0 * cpu / (s.seconds * 1e6),
	       memory_kib(pid) / 1024.0, sum / 1e3 / steps, most / 1e3);
}

static void stop(pid_t pid)
{
	int status;

	check(kill(pid, SIGTERM) == 0);
	while (waitpid(pid, &status, WNOHANG) == 0) {
		sd_bus_process(peer.bus, NULL);
		usleep(1000);
	}
	check(WIFEXITED(status) && WEXITSTATUS(status) == 0);
	sd_bus_flush_close_unref(peer.bus);
}

int main(int argc, char **argv)
{
	unsigned int *const numbers[] = { &s.units,  &s.leaves, &s.width,
					  &s.uses,   &s.active, &s.floors,
					  &s.seconds };
	pid_t pid;

	if (argc < 3 || argc > 3 + (int)ARRAY_SIZE(numbers)) {
		fprintf(stderr, "bench-governor SUTROD KERNELFILES [UNITS "
				"LEAVES WIDTH USES ACTIVE FLOORS SECONDS]\n");
		return EXIT_FAILURE;
	}
	s.sutrod = argv[1];
	s.kernelfiles = argv[2];
	for (int i = 3; i < argc; i++)
		*numbers[i - 3] = atoi(argv[i]);
	check(s.width && s.width <= s.leaves && s.active <= s.units && s.uses &&
	      s.uses <= volumes() && s.floors <= s.units && s.active);
	make_machine();
	move_counters();
	pid = start();
	measure(pid);
	stop(pid);
	free(machine.inodes);
	free(machine.stats);
	fake_remove(&machine.roots);
	return EXIT_SUCCESS;
}
