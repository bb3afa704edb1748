/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * modeldisk: differences between kernels
 *
 * Written for Linux 7.2 and later; no other file of this folder depends on an older one.
 */
#ifndef MODELDISK_COMPAT_H
#define MODELDISK_COMPAT_H

#include <linux/blk-mq.h>
#include <linux/hrtimer.h>

#ifndef blk_queue_rot /* that is, Linux 6.12 */

/* Later kernels merge always. */
#define MDISK_TAG_SET_FLAGS BLK_MQ_F_SHOULD_MERGE

static inline void
hrtimer_setup(struct hrtimer *timer,
	      enum hrtimer_restart (*function)(struct hrtimer *),
	      clockid_t clock_id, enum hrtimer_mode mode)
{
	hrtimer_init(timer, clock_id, mode);
	timer->function = function;
}

#else

#define MDISK_TAG_SET_FLAGS 0

#endif

#endif /* MODELDISK_COMPAT_H */
