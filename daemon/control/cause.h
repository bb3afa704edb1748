/* SPDX-License-Identifier: LGPL-2.1-or-later */
#ifndef SUTRO_CAUSE_H
#define SUTRO_CAUSE_H

#include "control/evidence.h"

/** state_is_broken() - does a floor not hold in this state? */
bool state_is_broken(enum control_state state);

/** evidence_has_io() - does the kernel charge requests to the cgroup?
 *
 * Without an answer the cgroup is gone, and the result is true.
 */
bool evidence_has_io(const struct cgroup *c);

/** cause_explain_unaccounted() - add that evidence_has_io() is false for a cgroup, and what to do */
int cause_explain_unaccounted(const struct cgroup *c, struct text *t);

/** cause_explain() - add the cause of a state, and what to do
 * @t: receives nothing if the state needs no cause
 *
 * Return: 0, or -ENOMEM.
 */
int cause_explain(const struct evidence *e, const struct governed *f,
		  enum control_state state, struct text *t);

#endif
