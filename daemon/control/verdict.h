/* SPDX-License-Identifier: LGPL-2.1-or-later */
#ifndef SUTRO_VERDICT_H
#define SUTRO_VERDICT_H

#include "control/context.h"
#include "control/plant.h"
#include "host/sample.h"

/** verdicts_report() - after a tick: report changes, keep history */
int verdicts_report(struct plant *plant, const struct sampler *sampler,
		    const struct control_context *context, double dt_s);

#endif
