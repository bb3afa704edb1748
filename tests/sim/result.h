/* SPDX-License-Identifier: GPL-2.0-only */
#ifndef SIM_RESULT_H
#define SIM_RESULT_H

#include "loop.h"

void result_print(const struct loop *loop);

#endif
