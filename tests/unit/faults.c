/* SPDX-License-Identifier: LGPL-2.1-or-later */

/*
 * One system call of the process fails.
 *
 * SUTRO_FAULTS is "N LOG". Calls about files, sockets and processes are counted, those of child
 * processes too; call N fails, as on a full or broken disk or without free descriptors. With N = 0
 * none fails. Call N, or each with N = 0, is added to the file LOG: "ORDINAL CALL TARGET". With "NAME N LOG"
 * only calls of that name count.
 *
 * A seccomp filter traps the calls (SIGSYS), so those within libc and libsystemd are counted as well. The
 * handler executes the call with MAGIC as its sixth argument, which the filter lets pass; none of the calls
 * has six arguments. fork(3) is replaced, because libc blocks all signals around its call.
 */

#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <signal.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <ucontext.h>
#include <unistd.h>

#include "faults.h"

#define MAGIC 0x53757472U

enum target {
	TARGET_NONE,
	TARGET_FD,
	TARGET_PATH,
	TARGET_PATH_AT,
};

static const struct call {
	int number;
	const char *name;
	enum target target;
	int error;
} calls[] = {
	{ SYS_openat, "openat", TARGET_PATH_AT, EMFILE },
	{ SYS_read, "read", TARGET_FD, EIO },
	{ SYS_write, "write", TARGET_FD, ENOSPC },
	{ SYS_writev, "writev", TARGET_FD, ENOSPC },
	{ SYS_lseek, "lseek", TARGET_FD, EIO },
	{ SYS_newfstatat, "newfstatat", TARGET_PATH_AT, EIO },
	{ SYS_fstat, "fstat", TARGET_FD, EIO },
	{ SYS_statx, "statx", TARGET_PATH_AT, EIO },
	{ SYS_getdents64, "getdents64", TARGET_FD, EIO },
	{ SYS_readlinkat, "readlinkat", TARGET_PATH_AT, EIO },
	{ SYS_renameat, "renameat", TARGET_PATH_AT, ENOSPC },
	{ SYS_unlinkat, "unlinkat", TARGET_PATH_AT, EIO },
	{ SYS_mkdirat, "mkdirat", TARGET_PATH_AT, ENOSPC },
	{ SYS_fchmod, "fchmod", TARGET_FD, EIO },
	{ SYS_fsync, "fsync", TARGET_FD, EIO },
	{ SYS_flock, "flock", TARGET_FD, ENOLCK },
	{ SYS_faccessat, "faccessat", TARGET_PATH_AT, EIO },
	{ SYS_faccessat2, "faccessat2", TARGET_PATH_AT, EIO },
	{ SYS_inotify_init1, "inotify_init1", TARGET_NONE, EMFILE },
	{ SYS_inotify_add_watch, "inotify_add_watch", TARGET_PATH_AT, ENOSPC },
	{ SYS_pipe2, "pipe2", TARGET_NONE, EMFILE },
	{ SYS_pidfd_open, "pidfd_open", TARGET_NONE, EMFILE },
	{ SYS_socket, "socket", TARGET_NONE, EMFILE },
	{ SYS_connect, "connect", TARGET_FD, EAGAIN },
	{ SYS_sendmsg, "sendmsg", TARGET_FD, ENOBUFS },
	{ SYS_recvmsg, "recvmsg", TARGET_FD, EIO },
#ifdef SYS_open
	{ SYS_open, "open", TARGET_PATH, EMFILE },
	{ SYS_readlink, "readlink", TARGET_PATH, EIO },
	{ SYS_rename, "rename", TARGET_PATH, ENOSPC },
	{ SYS_unlink, "unlink", TARGET_PATH, EIO },
	{ SYS_mkdir, "mkdir", TARGET_PATH, ENOSPC },
	{ SYS_chmod, "chmod", TARGET_PATH, EIO },
	{ SYS_access, "access", TARGET_PATH, EIO },
#endif
};

#define N_CALLS (sizeof(calls) / sizeof(calls[0]))

/* Shared with child processes. */
static unsigned int *count;
static unsigned int ordinal;
static char only[32];
static const char *log_path;
static unsigned int paused;

void faults_pause(void)
{
	paused++;
}

void faults_resume(void)
{
	paused--;
}

/* ---- the handler ---- */

static long execute(long number, const long *a)
{
	long r = syscall(number, a[0], a[1], a[2], a[3], a[4], MAGIC);

	return r < 0 ? -errno : r;
}

static void add_to_log(const struct call *call, unsigned int n, const long *a)
{
	const char *path = "";
	char target[PATH_MAX] = "", link[64], line[PATH_MAX + 64];
	long fd, length;

	if (call->target == TARGET_PATH)
		path = (const char *)a[0];
	else if (call->target == TARGET_PATH_AT)
		path = (const char *)a[1];
	if (call->target == TARGET_FD ||
	    (call->target == TARGET_PATH_AT && !*path)) {
		snprintf(link, sizeof(link), "/proc/self/fd/%ld", a[0]);
		execute(SYS_readlinkat,
			(long[]){ AT_FDCWD, (long)link, (long)target,
				  sizeof(target) - 1, 0 });
		path = target;
	}
	length =
		snprintf(line, sizeof(line), "%u %s %s\n", n, call->name, path);
	fd = execute(SYS_openat,
		     (long[]){ AT_FDCWD, (long)log_path,
			       O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0644,
			       0 });
	if (fd < 0)
		return;
	execute(SYS_write, (long[]){ fd, (long)line, length, 0, 0 });
	close(fd);
}

static bool is_due(const struct call *call, const long *a)
{
	unsigned int n;

	if (paused || (*only && strcmp(call->name, only) != 0))
		return false;
	n = __atomic_add_fetch(count, 1, __ATOMIC_RELAXED);
	if (!ordinal || n == ordinal)
		add_to_log(call, n, a);
	return n == ordinal;
}

static long handle(long number, const long *a)
{
	const struct call *call = calls;

	while (call->number != number)
		call++;
	return is_due(call, a) ? -call->error : execute(number, a);
}

pid_t fork(void)
{
	static const struct call call = { -1, "fork", TARGET_NONE, EAGAIN };
	pid_t (*next)(void) = dlsym(RTLD_NEXT, "fork");

	if (count && is_due(&call, NULL)) {
		errno = call.error;
		return -1;
	}
	return next();
}

static void on_trap(int signal, siginfo_t *si, void *context)
{
	ucontext_t *u = context;
	int saved = errno;
#if defined(__x86_64__)
	greg_t *r = u->uc_mcontext.gregs;
	const long a[] = { r[REG_RDI], r[REG_RSI], r[REG_RDX], r[REG_R10],
			   r[REG_R8] };

	r[REG_RAX] = handle(si->si_syscall, a);
#elif defined(__aarch64__)
	unsigned long long *r = u->uc_mcontext.regs;
	const long a[] = { r[0], r[1], r[2], r[3], r[4] };

	r[0] = handle(si->si_syscall, a);
#else
#error "Where are the arguments of system calls?"
#endif
	errno = saved;
}

/* ---- the filter ---- */

static int trap_calls(void)
{
	struct sock_filter filter[N_CALLS + 5];
	const struct sock_fprog program = { N_CALLS + 5, filter };
	struct sigaction action = { .sa_sigaction = on_trap,
				    .sa_flags = SA_SIGINFO | SA_NODEFER };
	size_t n = 0;

	filter[n++] = (struct sock_filter)BPF_STMT(BPF_LD | BPF_W | BPF_ABS,
						   offsetof(struct seccomp_data,
							    args[5]));
	filter[n++] = (struct sock_filter)BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K,
						   MAGIC, N_CALLS + 1, 0);
	filter[n++] = (struct sock_filter)BPF_STMT(
		BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr));
	for (size_t i = 0; i < N_CALLS; i++)
		filter[n++] = (struct sock_filter)BPF_JUMP(
			BPF_JMP | BPF_JEQ | BPF_K, calls[i].number, N_CALLS - i,
			0);
	filter[n++] = (struct sock_filter)BPF_STMT(BPF_RET | BPF_K,
						   SECCOMP_RET_ALLOW);
	filter[n++] =
		(struct sock_filter)BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_TRAP);
	if (sigaction(SIGSYS, &action, NULL) < 0 ||
	    prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) < 0)
		return -1;
	return prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program);
}

__attribute__((constructor)) static void start(void)
{
	const char *text = getenv("SUTRO_FAULTS");
	char *rest;

	if (!text)
		return;
	if (sscanf(text, "%31[a-z_] ", only) == 1)
		text += strlen(only) + 1;
	ordinal = strtoul(text, &rest, 10);
	log_path = rest + 1;
	count = mmap(NULL, sizeof(*count), PROT_READ | PROT_WRITE,
		     MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	if (count == MAP_FAILED || trap_calls() < 0)
		abort();
}
