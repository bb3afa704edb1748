/* SPDX-License-Identifier: LGPL-2.1-or-later */
#ifndef SUTRO_VERDICT_H
#define SUTRO_VERDICT_H

#include "control/governor.h"

/** verdicts_tell() - after a tick: tell what changed, keep history */
int verdicts_tell(struct governor *g, double dt_s);

#endif
