/* SPDX-License-Identifier: LGPL-2.1-or-later */
#ifndef SUTRO_WAIT_H
#define SUTRO_WAIT_H

#include "bus/bus.h"

/* A watching client calls again within this time; then sampling stops, because
 * reading the counters of a thousand cgroups each second costs a few percent CPU.
 */
#define SAMPLE_LINGER_USEC 10000000U

/**
 * bus_with_samples() - run @method as soon as there are samples of the last second
 *
 * Samples are taken while there are such calls; the first call is kept for a second.
 */
int bus_with_samples(struct bus *b, sd_bus_message *call, bus_method_t method,
		     sd_bus_error *error);

/** bus_has_waiters() - do calls wait for samples? */
bool bus_has_waiters(const struct bus *b);

/** bus_samples_taken() - calls that wait for samples are due, see bus_answer_waiter() */
void bus_samples_taken(struct bus *b);

/** bus_arm_pieces() - the loop goes on with calls that are due, and with lists */
int bus_arm_pieces(struct bus *b);

/** bus_answer_waiter() - run a method that is due. Return: was there one? */
bool bus_answer_waiter(struct bus *b);

/** bus_drop_waiters() - drop the calls that wait */
void bus_drop_waiters(struct bus *b);

#endif
