/* SPDX-License-Identifier: LGPL-2.1-or-later */
#ifndef SUTRO_COSTS_JOB_H
#define SUTRO_COSTS_JOB_H

#include "host/machine.h"

struct helper;

/**
 * struct costs_job - saves and restores measured costs of requests in child processes
 * @machine: has the leaves
 * @timer: when they are saved next; NULL: not started
 * @helper: the child, NULL: none runs
 * @is_save: it saves
 * @is_due: leaves have come that were not there when the child began
 */
struct costs_job {
	struct machine *machine;
	sd_event_source *timer;
	struct helper *helper;
	bool is_save;
	bool is_due;
};

/** costs_job_start() - save the costs of all leaves from time to time */
int costs_job_start(struct costs_job *j, struct machine *m);
void costs_job_stop(struct costs_job *j);

/** costs_job_follow() - restore the costs of leaves that have become new to the elevator */
void costs_job_follow(struct costs_job *j);

#endif
