/* SPDX-License-Identifier: LGPL-2.1-or-later */
#ifndef SUTRO_AUTHORITY_H
#define SUTRO_AUTHORITY_H

#include "bus/bus.h"

/**
 * bus_with_authority() - run @change for root at once, for others if polkit permits it
 * @action: the action for polkit, a constant
 * @unit: the unit that is changed, for rules and messages of polkit; NULL: none
 *
 * The answer of polkit comes later; @call is kept until then.
 */
int bus_with_authority(struct bus *b, sd_bus_message *call, const char *action,
		       const char *unit, bus_method_t change,
		       sd_bus_error *error);

/** bus_drop_authorizations() - drop the calls that wait for polkit */
void bus_drop_authorizations(struct bus *b);

#define ACTION_DUMP "org.sutro1.dump"
#define ACTION_MANAGE_DEVICES "org.sutro1.manage-devices"
#define ACTION_MANAGE_POLICIES "org.sutro1.manage-policies"

#endif
