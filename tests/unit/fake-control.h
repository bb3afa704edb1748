/* SPDX-License-Identifier: LGPL-2.1-or-later */
#ifndef SUTRO_TEST_FAKE_CONTROL_H
#define SUTRO_TEST_FAKE_CONTROL_H

#include "control/context.h"
#include "fake.h"

#define TICK_USEC 250000U

/**
 * struct fake_control - a fake machine with the context of the governor
 * @n_setpoints, @n_states: calls of the callbacks of @context
 *
 *	sda 8:0 ---.			/ --- app.slice --- db
 *	           dm-0 254:0		  |             `-- web
 *	sdb 8:16 --'			  `-- batch.slice --- job
 *
 * The disks have the scheduler sutro, dm-0 is a stripe. All weights are 100. The clock stands
 * still between calls of fake_control_run().
 */
struct fake_control {
	struct machine machine;
	struct cgfiles files;
	struct actuator actuator;
	struct control_context context;
	unsigned int n_setpoints;
	unsigned int n_states;
};

void fake_control_new(struct fake_control *f);
void fake_control_free(struct fake_control *f);

struct cgroup *fake_control_cgroup(const struct fake_control *f,
				   const char *path);
struct device *fake_control_device(const struct fake_control *f,
				   const char *name);

/** fake_control_promise() - add "KEY=/dev/NAME VALUE" to the policy of a cgroup */
void fake_control_promise(struct fake_control *f, const char *cgroup,
			  enum promise_key key, const char *text);
/** fake_control_withdraw() - remove all promises of a cgroup */
void fake_control_withdraw(struct fake_control *f, const char *cgroup);

/** fake_control_scheduler() - change the scheduler of a leaf */
void fake_control_scheduler(struct fake_control *f, const char *leaf,
			    const char *scheduler);

/** fake_control_run() - let @usec pass, and handle all events that are due then */
void fake_control_run(struct fake_control *f, uint64_t usec);

/**
 * fake_control_active() - write io.sutro.active, with lines for db, web and job
 * @leaf: "8:0"
 * @ms: device time of each cgroup since the start; 0: no line
 * @kb: thousands of bytes that it read
 */
void fake_control_active(struct fake_control *f, const char *leaf,
			 const uint64_t ms[3], const uint64_t kb[3]);

#endif
