/* SPDX-License-Identifier: LGPL-2.1-or-later */

/* Methods that may block or take long: a child process does the work, and the loop continues. */

#include "bus/background.h"
#include "bus/quota.h"
#include "host/cgroup.h"
#include "host/helper.h"

/** struct bus_task - a call whose work is under way */
struct bus_task {
	struct bus *bus;
	sd_bus_message *call;
	struct kept kept;
	const struct bus_background *method;
	void *userdata;
	struct helper *helper;
	struct bus_task *next;
};

static void free_userdata(const struct bus_background *method, void *userdata)
{
	if (method->free)
		method->free(userdata);
}

static void task_free(struct bus_task *t)
{
	struct bus_task **at = &t->bus->tasks;

	while (*at != t)
		at = &(*at)->next;
	*at = t->next;
	bus_release_call(t->bus, &t->kept);
	free_userdata(t->method, t->userdata);
	sd_bus_message_unref(t->call);
	free(t);
}

static int on_work(int fd, void *userdata)
{
	struct bus_task *t = userdata;

	return t->method->work(t->bus, t->userdata, fd);
}

static void on_done(int err, const char *output, size_t length, void *userdata)
{
	_cleanup_(sd_bus_error_free) sd_bus_error error = SD_BUS_ERROR_NULL;
	struct bus_task *t = userdata;
	int r;

	bus_remember_caller(t->bus, t->call, t->kept.uid);
	/* The method may keep it again. */
	bus_release_call(t->bus, &t->kept);
	r = t->method->then(t->bus, t->call, t->userdata, err, output, &error);
	if (r < 0)
		sd_bus_reply_method_errno(t->call, r, &error);
	task_free(t);
}

/* Return: the task, which frees @userdata from now on, or NULL with an error in @ret. */
static struct bus_task *add_task(struct bus *b, sd_bus_message *call,
				 const struct bus_background *method,
				 void *userdata, int *ret, sd_bus_error *error)
{
	struct bus_task *t;
	struct kept kept;

	*ret = bus_keep_call(b, call, &kept, error);
	if (*ret < 0)
		return NULL;
	t = calloc(1, sizeof(*t));
	if (!t) {
		bus_release_call(b, &kept);
		*ret = -ENOMEM;
		return NULL;
	}
	*t = (struct bus_task){ .bus = b,
				.call = sd_bus_message_ref(call),
				.kept = kept,
				.method = method,
				.userdata = userdata,
				.next = b->tasks };
	b->tasks = t;
	return t;
}

int bus_in_background(struct bus *b, sd_bus_message *call,
		      const struct bus_background *method, void *userdata,
		      sd_bus_error *error)
{
	struct helper_job job = {
		.keep_fd = cgroup_tree_fd(b->machine->tree),
		.limit_usec = method->limit_usec,
		.work = on_work,
		.done = on_done,
	};
	struct bus_task *t;
	int r;

	t = add_task(b, call, method, userdata, &r, error);
	if (!t) {
		free_userdata(method, userdata);
		return r;
	}
	job.userdata = t;
	r = helper_start(b->machine->event, &job, &t->helper);
	if (r >= 0)
		return 1;
	task_free(t);
	if (r == -EBUSY)
		return bus_error(error, SD_BUS_ERROR_LIMITS_EXCEEDED,
				 "Too many calls are under way already; try "
				 "again in a second.");
	return r;
}

void bus_drop_background(struct bus *b)
{
	while (b->tasks) {
		struct bus_task *t = b->tasks;

		helper_cancel(t->helper);
		task_free(t);
	}
}
