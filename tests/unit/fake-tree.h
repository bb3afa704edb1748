/* SPDX-License-Identifier: LGPL-2.1-or-later */
#ifndef SUTRO_TEST_FAKE_TREE_H
#define SUTRO_TEST_FAKE_TREE_H

/*
 * The tests of the tree of cgroups: a fake hierarchy, and a log of the callbacks of the tree.
 *
 * A callback adds a word to the log: "+/a" added, "-/a" removed, "~/a:io.max" modified, "lost".
 */

#include <glib.h>

#include "fake.h"
#include "host/cgroup.h"

#define MOUNT "/sys/fs/cgroup"

/* More than EVENTS_MAX of cgroup-watch.c. */
#define FLOOD 1100U

/** struct test - a hierarchy with /system.slice/a.service */
struct test {
	struct roots roots;
	sd_event *event;
	struct cgroup_tree *tree;
	GString *log;
};

void setup(struct test *t);
void teardown(struct test *t);

/** mount_at() - the hierarchy is at a directory of the host */
void mount_at(struct test *t, const char *dir);

/** make(), drop() - the directory of a cgroup */
void make(struct test *t, const char *path);
void drop(struct test *t, const char *path);

/** make_many() - cgroups 0, 1 and so on below @top */
void make_many(struct test *t, const char *top, unsigned int n);

/** give_away() - systemd gives a cgroup to a user after it has made it */
void give_away(struct test *t, const char *cgroup);

void handle_events(struct test *t);

/** settle() - handle all events and empty the log */
void settle(struct test *t);

/** has_logged() - handle all events; is the log as expected? It is empty afterwards */
bool has_logged(struct test *t, const char *expected);

#endif
