/* SPDX-License-Identifier: LGPL-2.1-or-later */

/*
 * Calls that a disk can hold up: reads of its queue/ in sysfs, writes of its lines in cgroup files.
 *
 * A write to queue/scheduler holds a lock of the queue while it waits for the requests of the disk,
 * and each read of queue/ waits for that lock. The first line of io.max for a disk waits for its
 * requests, too, under the lock that all lines for the disk take: seconds on a busy disk.
 * On a dead disk the caller stays in uninterruptible sleep.
 *
 * So a worker process makes these calls, and the loop waits a limited time for each:
 *
 *	loop		open the file	send descriptor, text	wait <= LIMIT_MS  -ETIMEDOUT
 *	worker				read or write ............................ returns, or not
 *
 * A worker whose call has not returned belongs to its disk. Until the call returns, further calls
 * for the disk fail at once. Another worker makes the calls for other disks.
 * Each pending call halves the next wait, so all waits together take less than 2 s, however many
 * disks do not answer. A disk whose call is pending for HANG_USEC counts as hung.
 *
 * Workers keep no socket of the daemon: a process in uninterruptible sleep outlives it.
 */

#include <poll.h>
#include <signal.h>
#include <sys/epoll.h>
#include <sys/queue.h>
#include <sys/socket.h>
#include <sys/wait.h>

#include "host/diskcall.h"
#include "host/helper.h"
#include "host/util.h"

#define LIMIT_MS 500U
#define LIMIT_MIN_MS 8U

/* A busy disk answers before. A switch of the scheduler has this limit, too (LEAF_LIMIT_SEC). */
#define HANG_USEC 10000000U

/* As in helper.c. While this many calls are pending, those for all other disks fail at once. */
#define PENDING_MAX 64U

/* A file of sysfs has a page at most. */
#define TEXT_MAX 4096U

/**
 * struct message - a request, or a reply
 * @error: of a reply, 0 or -errno
 * @is_write: of a request: @text is written
 */
struct message {
	int error;
	bool is_write;
	char text[TEXT_MAX];
};

/**
 * struct worker - a process that makes calls
 * @socket: to it; it ends with the other end
 * @is_pending: the loop has stopped waiting for its call for @disk, which has not returned
 * @is_hung: @limit has passed since
 * @reply: arrives when that call returns, or when the worker has ended
 */
struct worker {
	int socket;
	pid_t pid;
	bool is_pending;
	bool is_hung;
	uint64_t disk;
	sd_event_source *reply;
	sd_event_source *limit;
	TAILQ_ENTRY(worker) list;
};

/*
 * @owner: the process that has @idle: a child of it must not use its socket, nor end it
 */
static struct {
	pid_t owner;
	struct worker *idle;
	TAILQ_HEAD(, worker) pending;
	unsigned int n_pending;
	sd_event *event;
	void (*changed)(bool has_returned, void *userdata);
	void *userdata;
} calls = { .pending = TAILQ_HEAD_INITIALIZER(calls.pending) };

/* ---- the worker ---- */

static int receive(int socket, struct message *m, int *ret_fd)
{
	char control[CMSG_SPACE(sizeof(int))];
	struct iovec part = { m, sizeof(*m) };
	struct msghdr header = { .msg_iov = &part,
				 .msg_iovlen = 1,
				 .msg_control = control,
				 .msg_controllen = sizeof(control) };
	const struct cmsghdr *c;

	if (recvmsg(socket, &header, MSG_CMSG_CLOEXEC) <= 0)
		return -EPIPE;
	c = CMSG_FIRSTHDR(&header);
	if (!c || c->cmsg_type != SCM_RIGHTS)
		return -EBADMSG;
	memcpy(ret_fd, CMSG_DATA(c), sizeof(*ret_fd));
	return 0;
}

static int write_text(int fd, const char *text)
{
	size_t length = strlen(text);
	ssize_t n = write(fd, text, length);

	if (n < 0)
		return -errno;
	return (size_t)n == length ? 0 : -EIO;
}

static int read_text(int fd, char text[static TEXT_MAX])
{
	_cleanup_free_ char *all = NULL;
	int err = read_fd(fd, &all);

	if (err)
		return err;
	if (strlen(all) >= TEXT_MAX)
		return -EFBIG;
	strcpy(text, all);
	return 0;
}

static int serve(int socket)
{
	struct message m;
	int fd, err;

	while ((err = receive(socket, &m, &fd)) == 0) {
		m.error = m.is_write ? write_text(fd, m.text)
				     : read_text(fd, m.text);
		close(fd);
		if (send(socket, &m, sizeof(m), MSG_NOSIGNAL) < 0)
			return -errno;
	}
	return err;
}

static void run_worker(pid_t parent, int socket)
{
	sigset_t ends;

	/* A terminal signals all its processes, but the daemon still restores lines. */
	sigemptyset(&ends);
	sigaddset(&ends, SIGTERM);
	sigaddset(&ends, SIGINT);
	sigaddset(&ends, SIGHUP);
	sigprocmask(SIG_SETMASK, &ends, NULL);
	child_begin(parent, socket, socket);
	serve(socket);
	_exit(EXIT_SUCCESS);
}

static int worker_new(struct worker **ret)
{
	struct worker *w = calloc(1, sizeof(*w));
	pid_t parent = getpid();
	int ends[2], err;

	if (!w)
		return -ENOMEM;
	if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, ends) < 0) {
		err = -errno;
		free(w);
		return err;
	}
	w->pid = fork();
	if (w->pid == 0)
		run_worker(parent, ends[1]);
	err = w->pid < 0 ? -errno : 0;
	close(ends[1]);
	w->socket = ends[0];
	if (err) {
		close(w->socket);
		free(w);
		return err;
	}
	*ret = w;
	return 0;
}

static void worker_free(struct worker *w)
{
	sd_event_source_disable_unref(w->reply);
	sd_event_source_disable_unref(w->limit);
	close(w->socket);
	kill(w->pid, SIGKILL);
	/* A pending call cannot be waited for. */
	if (!w->is_pending)
		waitpid(w->pid, NULL, 0);
	free(w);
}

/* ---- calls that are pending ---- */

static const struct worker *find_pending(uint64_t disk)
{
	const struct worker *w;

	TAILQ_FOREACH(w, &calls.pending, list)
		if (w->disk == disk)
			return w;
	return NULL;
}

bool diskcall_is_pending(uint64_t disk)
{
	return find_pending(disk) != NULL;
}

bool diskcall_is_hung(uint64_t disk)
{
	const struct worker *w = find_pending(disk);

	return w && w->is_hung;
}

static void report_change(bool has_returned)
{
	if (calls.changed)
		calls.changed(has_returned, calls.userdata);
}

/* A call that was late has returned; its result is of no use, because @changed compares the files
 * again. Or the worker has ended.
 */
static int on_reply(sd_event_source *s, int fd, uint32_t revents,
		    void *userdata)
{
	struct worker *w = userdata;
	struct message m;
	ssize_t n = recv(w->socket, &m, sizeof(m), MSG_DONTWAIT);
	bool was_pending = w->is_pending;

	if (n < 0 && errno == EAGAIN)
		return 0;
	if (was_pending) {
		TAILQ_REMOVE(&calls.pending, w, list);
		calls.n_pending--;
		w->is_pending = false;
		w->is_hung = false;
		w->limit = sd_event_source_disable_unref(w->limit);
	} else {
		calls.idle = NULL;
	}
	if (n == sizeof(m) && !calls.idle)
		calls.idle = w;
	else
		worker_free(w);
	if (was_pending)
		report_change(true);
	return 0;
}

static int on_limit(sd_event_source *s, uint64_t usec, void *userdata)
{
	struct worker *w = userdata;

	w->is_hung = true;
	report_change(false);
	return 0;
}

static void add_pending(struct worker *w, uint64_t disk)
{
	int r = 0;

	w->is_pending = true;
	w->disk = disk;
	TAILQ_INSERT_TAIL(&calls.pending, w, list);
	calls.n_pending++;
	if (calls.event)
		r = sd_event_add_time_relative(calls.event, &w->limit,
					       CLOCK_MONOTONIC, HANG_USEC, 0,
					       on_limit, w);
	if (r < 0)
		on_limit(NULL, 0, w);
}

static int add_idle(void)
{
	struct worker *w = NULL;
	int err = worker_new(&w);

	if (!err && calls.event)
		err = sd_event_add_io(calls.event, &w->reply, w->socket,
				      EPOLLIN, on_reply, w);
	if (err < 0) {
		if (w)
			worker_free(w);
		return err;
	}
	calls.idle = w;
	return 0;
}

/* ---- calls ---- */

static int send_request(const struct worker *w, int fd, struct message *m)
{
	char control[CMSG_SPACE(sizeof(int))] = {};
	struct iovec part = { m, sizeof(*m) };
	struct msghdr header = { .msg_iov = &part,
				 .msg_iovlen = 1,
				 .msg_control = control,
				 .msg_controllen = sizeof(control) };
	struct cmsghdr *c = CMSG_FIRSTHDR(&header);

	c->cmsg_level = SOL_SOCKET;
	c->cmsg_type = SCM_RIGHTS;
	c->cmsg_len = CMSG_LEN(sizeof(int));
	memcpy(CMSG_DATA(c), &fd, sizeof(fd));
	return sendmsg(w->socket, &header, MSG_NOSIGNAL) < 0 ? -errno : 0;
}

/* Return: 0; -ETIMEDOUT; another -errno: the worker is of no use any more. */
static int wait_for_reply(const struct worker *w, struct message *m)
{
	unsigned int limit_ms = LIMIT_MS >>
				(calls.n_pending < 8 ? calls.n_pending : 8);
	struct pollfd p = { w->socket, POLLIN, 0 };
	int r;

	if (limit_ms < LIMIT_MIN_MS)
		limit_ms = LIMIT_MIN_MS;
	do
		r = poll(&p, 1, limit_ms);
	while (r < 0 && errno == EINTR);
	if (r <= 0)
		return r < 0 ? -errno : -ETIMEDOUT;
	return recv(w->socket, m, sizeof(*m), 0) == sizeof(*m) ? 0 : -EIO;
}

static int call(uint64_t disk, int fd, struct message *m)
{
	struct worker *w;
	int err;

	if (diskcall_is_pending(disk) || calls.n_pending >= PENDING_MAX)
		return -ETIMEDOUT;
	if (calls.owner != getpid()) {
		calls.idle = NULL;
		diskcalls_follow(NULL, NULL, NULL);
	}
	if (!calls.idle) {
		err = add_idle();
		if (err)
			return err;
	}
	w = TAKE_PTR(calls.idle);
	err = send_request(w, fd, m) ?: wait_for_reply(w, m);
	if (err == -ETIMEDOUT)
		add_pending(w, disk);
	else if (err)
		worker_free(w);
	else
		calls.idle = w;
	return err ?: m->error;
}

int diskcall_read(uint64_t disk, int fd, char **ret)
{
	struct message m = {};
	int err = call(disk, fd, &m);
	char *text;

	if (err)
		return err;
	text = strndup(m.text, sizeof(m.text) - 1);
	if (!text)
		return -ENOMEM;
	*ret = text;
	return 0;
}

int diskcall_write(uint64_t disk, int fd, const char *text)
{
	struct message m = { .is_write = true };

	if (strlen(text) >= sizeof(m.text))
		return -EFBIG;
	strcpy(m.text, text);
	return call(disk, fd, &m);
}

/* ---- beginning and end ---- */

void diskcalls_follow(sd_event *event,
		      void (*changed)(bool has_returned, void *userdata),
		      void *userdata)
{
	calls.owner = getpid();
	calls.event = event;
	calls.changed = changed;
	calls.userdata = userdata;
}

void diskcalls_end(void)
{
	struct worker *w;

	while ((w = TAILQ_FIRST(&calls.pending))) {
		TAILQ_REMOVE(&calls.pending, w, list);
		worker_free(w);
	}
	calls.n_pending = 0;
	if (calls.idle)
		worker_free(TAKE_PTR(calls.idle));
	diskcalls_follow(NULL, NULL, NULL);
}
