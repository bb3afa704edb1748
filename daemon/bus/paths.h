/* SPDX-License-Identifier: LGPL-2.1-or-later */
#ifndef SUTRO_PATHS_H
#define SUTRO_PATHS_H

#include "bus/bus.h"

/** bus_paths_method_t - a method that continues with real paths; it sends its reply itself */
typedef int (*bus_paths_method_t)(struct bus *b, sd_bus_message *call,
				  char **paths, sd_bus_error *error);

/**
 * bus_with_real_paths() - look up the paths of an authorized caller, then run @method
 * @paths: taken over, and freed in any case
 *
 * A child process follows the links, for a path may lead to a file server that does not answer.
 */
int bus_with_real_paths(struct bus *b, sd_bus_message *call, char **paths,
			bus_paths_method_t method, sd_bus_error *error);

/**
 * bus_learn_paths() - look up paths of settings for machine.lookups, then run @method
 * @paths: taken over, and freed in any case; NULL: nothing is looked up
 *
 * For methods whose answer depends on where new paths lead. A path that leads nowhere is no mistake:
 * it may lead to a disk later.
 */
int bus_learn_paths(struct bus *b, sd_bus_message *call, char **paths,
		    bus_method_t method, sd_bus_error *error);

#endif
