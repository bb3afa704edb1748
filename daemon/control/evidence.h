/* SPDX-License-Identifier: LGPL-2.1-or-later */
#ifndef SUTRO_EVIDENCE_H
#define SUTRO_EVIDENCE_H

#include "control/context.h"
#include "control/plant.h"
#include "host/sample.h"

/** struct evidence - input of the verdicts */
struct evidence {
	const struct plant *plant;
	const struct sampler *sampler;
	const struct control_context *context;
};

#endif
