/* SPDX-License-Identifier: LGPL-2.1-or-later */

/*
 * Work that may block, in a child process with a time limit.
 *
 * The loop serves all disks, so it must wait for none of them. A switch of the scheduler drains
 * the queue of a disk that may be dead. A path may lead to a file server that does not answer.
 * The child has a copy of the state of the daemon as it is at the fork, and returns text.
 *
 * A process in uninterruptible sleep outlives the kill until its disk returns. The job is over
 * then all the same, and the process is reaped whenever it ends. It has no socket of the daemon:
 * otherwise the name on the bus would not be free for the next daemon.
 */

#include <fcntl.h>
#include <signal.h>
#include <sys/epoll.h>
#include <sys/pidfd.h>
#include <sys/prctl.h>
#include <sys/wait.h>

#include "host/helper.h"
#include "host/util.h"

/* The limit includes processes that sleep in the kernel because of dead disks. */
#define CHILDREN_MAX 64U

#define AFTER_SEC 60U

#define OUTPUT_BYTES_MAX (64U * 1024 * 1024)

/**
 * struct helper - a job under way
 * @pidfd: the child
 * @output: the end of the pipe from the child
 */
struct helper {
	struct helper_job job;
	int pidfd;
	sd_event_source *output;
	sd_event_source *limit;
	char *text;
	size_t size;
	size_t length;
};

static unsigned int n_children;

static int on_reaped(sd_event_source *s, const siginfo_t *si, void *userdata)
{
	n_children--;
	/* Drop the last reference to the event source. */
	sd_event_source_set_floating(s, false);
	return 0;
}

static void helper_free(struct helper *h)
{
	sd_event_source_disable_unref(h->output);
	sd_event_source_disable_unref(h->limit);
	closep(&h->pidfd);
	free(h->text);
	free(h);
}

static void finish(struct helper *h, int err)
{
	struct helper_job job = h->job;
	_cleanup_free_ char *text = TAKE_PTR(h->text);
	size_t length = h->length;

	if (err)
		pidfd_send_signal(h->pidfd, SIGKILL, NULL, 0);
	helper_free(h);
	if (text)
		text[length] = '\0';
	job.done(err, text ?: "", length, job.userdata);
}

static int on_limit(sd_event_source *s, uint64_t usec, void *userdata)
{
	finish(userdata, -ETIMEDOUT);
	return 0;
}

static int grow(struct helper *h)
{
	size_t size = h->size ? h->size * 2 : 4096;
	char *text;

	if (h->length + 1 < h->size)
		return 0;
	if (size > OUTPUT_BYTES_MAX)
		return -EFBIG;
	text = realloc(h->text, size);
	if (!text)
		return -ENOMEM;
	h->text = text;
	h->size = size;
	return 0;
}

/* The last line is "." when the work succeeded. */
static int take_status(struct helper *h)
{
	if (h->length < 2 || strncmp(h->text + h->length - 2, ".\n", 2))
		return -EIO;
	h->length -= 2;
	return 0;
}

static int on_output(sd_event_source *s, int fd, uint32_t revents,
		     void *userdata)
{
	struct helper *h = userdata;
	int err = grow(h);
	ssize_t n;

	if (err) {
		finish(h, err);
		return 0;
	}
	n = read(fd, h->text + h->length, h->size - h->length - 1);
	if (n < 0 && (errno == EAGAIN || errno == EINTR))
		return 0;
	if (n > 0)
		h->length += n;
	else
		finish(h, n < 0 ? -errno : take_status(h));
	return 0;
}

/* ---- the child ---- */

static void close_others(int a, int b)
{
	unsigned int low = a < b ? a : b, high = a < b ? b : a;
	unsigned int first = STDERR_FILENO + 1;

	if (low > first)
		close_range(first, low - 1, 0);
	if (low < first)
		low = first - 1;
	if (high > low + 1)
		close_range(low + 1, high - 1, 0);
	close_range(high + 1, ~0U, 0);
}

void child_begin(pid_t parent, int a, int b)
{
	prctl(PR_SET_PDEATHSIG, SIGKILL);
	if (getppid() != parent)
		_exit(EXIT_FAILURE);
	close_others(a, b);
}

/* @go: a pipe whose end means that the parent watches the child. */
static void run_child(const struct helper_job *job, pid_t parent, int fd,
		      const int go[2])
{
	sigset_t none;
	char end;
	int err;

	sigemptyset(&none);
	sigprocmask(SIG_SETMASK, &none, NULL);
	close(go[1]);
	if (read(go[0], &end, 1) != 0)
		_exit(EXIT_FAILURE);
	child_begin(parent, fd, job->keep_fd < 0 ? fd : job->keep_fd);
	err = job->work(fd, job->userdata);
	if (!err && write(fd, ".\n", 2) != 2)
		err = -EIO;
	if (!err && job->after) {
		close(fd);
		alarm(AFTER_SEC);
		job->after(job->userdata);
	}
	_exit(err ? EXIT_FAILURE : EXIT_SUCCESS);
}

/* ---- the parent ---- */

static int watch(struct helper *h, sd_event *event, int *fd)
{
	int r;

	r = sd_event_add_io(event, &h->output, *fd, EPOLLIN, on_output, h);
	if (r >= 0) {
		r = sd_event_source_set_io_fd_own(h->output, true);
		*fd = r >= 0 ? -1 : *fd;
	}
	if (r >= 0)
		r = sd_event_add_time_relative(event, &h->limit,
					       CLOCK_MONOTONIC,
					       h->job.limit_usec, 0, on_limit,
					       h);
	return r;
}

/* The child is reaped by its own event source, which outlives the job. It begins when that source
 * is there: until then it can be killed, and waiting for its end does not block.
 */
static int fork_child(struct helper *h, sd_event *event, int fd)
{
	sd_event_source *child = NULL;
	pid_t parent = getpid(), pid;
	int go[2], r;

	if (pipe2(go, O_CLOEXEC) < 0)
		return -errno;
	pid = fork();
	r = pid < 0 ? -errno : 0;
	if (pid == 0)
		run_child(&h->job, parent, fd, go);
	close(go[0]);
	if (pid < 0) {
		close(go[1]);
		return r;
	}
	h->pidfd = pidfd_open(pid, 0);
	r = h->pidfd < 0 ? -errno
			 : sd_event_add_child(event, &child, pid, WEXITED,
					      on_reaped, NULL);
	if (r >= 0)
		r = sd_event_source_set_floating(child, true);
	sd_event_source_unref(child);
	if (r < 0) {
		kill(pid, SIGKILL);
		waitpid(pid, NULL, 0);
	} else {
		n_children++;
	}
	close(go[1]);
	return r < 0 ? r : 0;
}

int helper_start(sd_event *event, const struct helper_job *job,
		 struct helper **ret)
{
	_cleanup_close_ int in = -1, out = -1;
	struct helper *h;
	int fds[2], r;

	if (n_children >= CHILDREN_MAX)
		return -EBUSY;
	h = calloc(1, sizeof(*h));
	if (!h)
		return -ENOMEM;
	h->job = *job;
	h->pidfd = -1;
	if (pipe2(fds, O_CLOEXEC) < 0) {
		r = -errno;
		free(h);
		return r;
	}
	in = fds[0];
	out = fds[1];
	r = fcntl(in, F_SETFL, O_NONBLOCK) < 0 ? -errno : 0;
	if (r >= 0)
		r = watch(h, event, &in);
	if (r >= 0)
		r = fork_child(h, event, out);
	if (r < 0) {
		helper_free(h);
		return r;
	}
	*ret = h;
	return 0;
}

struct helper *helper_cancel(struct helper *h)
{
	if (!h)
		return NULL;
	pidfd_send_signal(h->pidfd, SIGKILL, NULL, 0);
	helper_free(h);
	return NULL;
}
