// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * Uses a disk in many cgroups, of which the standard input has the folders, one a line:
 *
 *	crowd DISK 0		one read in each of them, then it ends
 *	crowd DISK TASKS	TASKS processes, divided evenly, at least one each; every one
 *				reads 4 KiB anywhere, again and again.  Prints "ready" when all
 *				have read something; they die with it.
 *
 * Each process is born in its cgroup, which costs less than moving there and needs no
 * grace period.  10,000 of them fit into half a GiB.
 */
#define _GNU_SOURCE
#include <err.h>
#include <fcntl.h>
#include <linux/fs.h>
#include <linux/sched.h>
#include <signal.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#define BLOCK_BYTES 4096
#define POLL_US 10000

static _Alignas(BLOCK_BYTES) char block[BLOCK_BYTES];

static void read_block(int disk, uint64_t blocks, uint64_t *random)
{
	/* xorshift64 */
	*random ^= *random << 13;
	*random ^= *random >> 7;
	*random ^= *random << 17;
	if (pread(disk, block, sizeof(block), *random % blocks * BLOCK_BYTES) !=
	    sizeof(block))
		err(1, "read");
}

/* As fork(), into the cgroup of a folder. */
static pid_t fork_into(const char *folder)
{
	struct clone_args args = {
		.flags = CLONE_INTO_CGROUP,
		.exit_signal = SIGCHLD,
	};
	int cgroup = open(folder, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	pid_t pid;

	if (cgroup < 0)
		err(1, "%s", folder);
	args.cgroup = cgroup;
	pid = syscall(SYS_clone3, &args, sizeof(args));
	if (pid < 0)
		err(1, "%s: clone3", folder);
	close(cgroup);
	return pid;
}

static void work(int disk, uint64_t blocks, uint64_t seed, bool once,
		 unsigned long *ready)
{
	uint64_t random = seed * 0x9e3779b97f4a7c15;

	prctl(PR_SET_PDEATHSIG, SIGKILL);
	read_block(disk, blocks, &random);
	__atomic_add_fetch(ready, 1, __ATOMIC_RELAXED);
	while (!once)
		read_block(disk, blocks, &random);
	_exit(0);
}

/* The folders, without the newline. */
static char **folders(size_t *ret_nr)
{
	char **list = NULL, *line = NULL;
	size_t nr = 0, size = 0;
	ssize_t length;

	while ((length = getline(&line, &size, stdin)) > 0) {
		line[strcspn(line, "\n")] = '\0';
		list = reallocarray(list, nr + 1, sizeof(*list));
		if (!list)
			err(1, "%zu folders", nr);
		list[nr++] = line;
		line = NULL;
		size = 0;
	}
	*ret_nr = nr;
	return list;
}

static void ended_well(void)
{
	int status;

	if (wait(&status) < 0 || status)
		errx(1, "a process ended with status %x", status);
}

int main(int argc, char **argv)
{
	unsigned long tasks, i, *ready;
	uint64_t bytes;
	char **list;
	size_t nr;
	int disk;

	if (argc != 3)
		errx(2, "usage: crowd DISK TASKS <FOLDERS");
	disk = open(argv[1], O_RDONLY | O_DIRECT);
	if (disk < 0 || ioctl(disk, BLKGETSIZE64, &bytes))
		err(1, "%s", argv[1]);
	list = folders(&nr);
	if (!nr)
		errx(2, "no folders");
	ready = mmap(NULL, sizeof(*ready), PROT_READ | PROT_WRITE,
		     MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	if (ready == MAP_FAILED)
		err(1, "mmap");

	tasks = strtoul(argv[2], NULL, 10);
	for (i = 0; i < (tasks > nr ? tasks : nr); i++) {
		if (!fork_into(list[i % nr]))
			work(disk, bytes / BLOCK_BYTES, i + 1, !tasks, ready);
		if (!tasks)
			ended_well();
	}
	if (!tasks)
		return 0;
	while (__atomic_load_n(ready, __ATOMIC_RELAXED) < i)
		usleep(POLL_US);
	puts("ready");
	fflush(stdout);
	ended_well();
	errx(1, "a process ended");
}
