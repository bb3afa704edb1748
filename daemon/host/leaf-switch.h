/* SPDX-License-Identifier: LGPL-2.1-or-later */
#ifndef SUTRO_LEAF_SWITCH_H
#define SUTRO_LEAF_SWITCH_H

#include <sys/queue.h>

#include "host/leaf.h"
#include "host/machine.h"

struct leaf_switch;

/** struct leaf_failure - a leaf that could not be switched to sutro; see device_is_same() */
struct leaf_failure {
	char *name;
	uint64_t diskseq;
	uint64_t queue;
};

/**
 * struct leaf_switches - leaves whose schedulers are being switched
 * @machine: to which they belong
 * @n_running: child processes
 * @failures: leaves that leaf_switch_configured() does not try again
 * @over: called after each; @leaf is NULL if it is gone
 */
struct leaf_switches {
	const struct machine *machine;
	TAILQ_HEAD(, leaf_switch) list;
	unsigned int n_running;
	struct leaf_failure *failures;
	size_t n_failures;
	void (*over)(const struct device *leaf, bool changed, void *userdata);
	void *userdata;
};

void leaf_switches_init(struct leaf_switches *s, const struct machine *m);

/** leaf_switches_done() - drop all; a write that is under way may still take effect */
void leaf_switches_done(struct leaf_switches *s);

/** leaf_switches_forget() - do not call @done with this @userdata any more */
void leaf_switches_forget(struct leaf_switches *s, const void *userdata);

/** leaf_done_t - @leaf is NULL if it is gone */
typedef void (*leaf_done_t)(const struct device *leaf,
			    const struct leaf_result *result, void *userdata);

/**
 * leaf_switch() - switch @leaf to sutro (@use), or back
 * @done: called once, perhaps before the return; NULL: no caller waits
 *
 * Return: 0 or -ENOMEM: then @done is not called.
 */
int leaf_switch(struct leaf_switches *all, struct device *leaf, bool use,
		leaf_done_t done, void *userdata);

/**
 * leaf_switch_configured() - switch the leaves that @use, [Leaves] Use=, names
 *
 * A leaf that could not be switched is not tried again before leaf_switches_retry().
 */
int leaf_switch_configured(struct leaf_switches *all, char *const *use);

/** leaf_switches_retry() - let leaf_switch_configured() try all leaves again, after a reload */
void leaf_switches_retry(struct leaf_switches *all);

#endif
