// SPDX-License-Identifier: GPL-2.0-only
/*
 * Sutro I/O scheduler: queue/iosched/.
 *
 * See Documentation/ABI/testing/sysfs-block-sutro.  Times are kept in ns and
 * shown in us.  An invalid value changes nothing.  Members that the algorithm reads are
 * changed with sutro_queue.lock held, and shown without; costs are read and changed with
 * sutro_queue.done_lock held.
 */
#include "sutro-prior.h"
#include "sutro-report.h"

#define SUTRO_MAX_SLICE_NS (10 * NSEC_PER_SEC)
/* More than any device has, so that sums and differences of such numbers are ints. */
#define SUTRO_MAX_REQUESTS 1000000U

/* Attributes of numbers, from 0 to __max, whose unit is __scale of the variable's. */
/* clang-format off */
#define SUTRO_SHOW(__name, __var, __scale)				\
	static ssize_t sutro_##__name##_show(struct elevator_queue *eq,	\
					     char *page)		\
	{								\
		struct sutro_queue *sq = eq->elevator_data;		\
		u64 value = READ_ONCE(__var);				\
									\
		return sysfs_emit(page, "%llu\n", div_u64(value, __scale));\
	}

#define SUTRO_STORE(__name, __var, __max, __scale)			\
	static ssize_t sutro_##__name##_store(struct elevator_queue *eq,\
					      const char *page,		\
					      size_t count)		\
	{								\
		struct sutro_queue *sq = eq->elevator_data;		\
		s64 value;						\
		int ret = sutro_number_parse(page, 0, __max, &value);	\
									\
		if (ret)						\
			return ret;					\
		spin_lock(&sq->lock);					\
		WRITE_ONCE(__var, value * (__scale));			\
		spin_unlock(&sq->lock);					\
		return count;						\
	}
/* clang-format on */

SUTRO_SHOW(fairness, sq->core.tunables.fairness, 1)
SUTRO_SHOW(slice_us, sq->core.tunables.slice_ns, NSEC_PER_USEC)
SUTRO_SHOW(group_idle_us, sq->core.tunables.group_idle_ns, NSEC_PER_USEC)
SUTRO_SHOW(group_requests, sq->group_requests, 1)
SUTRO_SHOW(protect, sq->core.tunables.protect, 1)
SUTRO_SHOW(direct, sq->direct_allowed, 1)

SUTRO_STORE(fairness, sq->core.tunables.fairness, 1, 1)
SUTRO_STORE(slice_us, sq->core.tunables.slice_ns,
	    SUTRO_MAX_SLICE_NS / NSEC_PER_USEC, NSEC_PER_USEC)
SUTRO_STORE(group_idle_us, sq->core.tunables.group_idle_ns,
	    SUTRO_MAX_IDLE_NS / NSEC_PER_USEC, NSEC_PER_USEC)
SUTRO_STORE(group_requests, sq->group_requests, SUTRO_MAX_REQUESTS, 1)
SUTRO_STORE(protect, sq->core.tunables.protect, SUTRO_PROTECT_MAX, 1)
/* Only 0 on kernels without direct mode. */
SUTRO_STORE(direct, sq->direct_allowed, !!sutro_direct_flags(0), 1)

static const char *const sutro_discipline_names[] = {
	[SUTRO_FIFO] = "fifo",
	[SUTRO_DEADLINE] = "deadline",
	[SUTRO_PROCESS] = "process",
};

static ssize_t sutro_discipline_show(struct elevator_queue *eq, char *page)
{
	struct sutro_queue *sq = eq->elevator_data;
	enum sutro_discipline current_one = READ_ONCE(sq->discipline);
	ssize_t len = 0;
	int i;

	for (i = 0; i < SUTRO_DISCIPLINES; i++)
		len += sysfs_emit_at(page, len,
				     i == current_one ? "%s[%s]" : "%s%s",
				     i ? " " : "", sutro_discipline_names[i]);
	return len + sysfs_emit_at(page, len, "\n");
}

static ssize_t sutro_discipline_store(struct elevator_queue *eq,
				      const char *page, size_t count)
{
	struct sutro_queue *sq = eq->elevator_data;
	int discipline = sysfs_match_string(sutro_discipline_names, page);

	if (discipline < 0)
		return discipline;
	WRITE_ONCE(sq->discipline, discipline);
	return count;
}

static ssize_t sutro_costs_show(struct elevator_queue *eq, char *page)
{
	struct sutro_queue *sq = eq->elevator_data;
	struct sutro_prior prior;

	spin_lock_irq(&sq->done_lock);
	sutro_prior_read(&sq->device, &prior);
	spin_unlock_irq(&sq->done_lock);
	/* A page has room for the longest text. */
	sutro_prior_format(&prior, page);
	return strlen(page);
}

static ssize_t sutro_costs_store(struct elevator_queue *eq, const char *page,
				 size_t count)
{
	struct sutro_queue *sq = eq->elevator_data;
	struct sutro_prior prior;
	int ret = sutro_prior_parse(page, &prior);

	if (ret)
		return ret;
	spin_lock_irq(&sq->done_lock);
	ret = sutro_prior_write(&sq->device, &prior);
	spin_unlock_irq(&sq->done_lock);
	return ret ?: count;
}

#define SUTRO_ATTR(name) \
	__ATTR(name, 0644, sutro_##name##_show, sutro_##name##_store)

struct elv_fs_entry sutro_attrs[] = {
	SUTRO_ATTR(fairness),
	SUTRO_ATTR(slice_us),
	SUTRO_ATTR(group_idle_us),
	SUTRO_ATTR(discipline),
	SUTRO_ATTR(group_requests),
	SUTRO_ATTR(protect),
	SUTRO_ATTR(direct),
	SUTRO_ATTR(costs),
	__ATTR_NULL,
};
