// SPDX-License-Identifier: GPL-2.0-only
/*
 * Sutro I/O scheduler: queue/iosched/.
 *
 * See Documentation/ABI/testing/sysfs-block-sutro.  Times are kept in ns and
 * shown in us.  An invalid value changes nothing.  Members that the algorithm reads are
 * changed with sutro_queue.lock held, and shown without.
 */
#include "sutro.h"

#define SUTRO_MAX_SLICE_NS (10 * NSEC_PER_SEC)

static ssize_t sutro_show(char *page, u64 value)
{
	return sysfs_emit(page, "%llu\n", value);
}

/* Parse a number up to @max. */
static int sutro_parse(const char *page, u64 max, u64 *ret_value)
{
	u64 value;
	int ret;

	ret = kstrtou64(page, 10, &value);
	if (ret)
		return ret;
	if (value > max)
		return -ERANGE;
	*ret_value = value;
	return 0;
}

static ssize_t sutro_fairness_show(struct elevator_queue *eq, char *page)
{
	struct sutro_queue *sq = eq->elevator_data;

	return sutro_show(page, READ_ONCE(sq->core.tunables.fairness));
}

static ssize_t sutro_fairness_store(struct elevator_queue *eq, const char *page,
				    size_t count)
{
	struct sutro_queue *sq = eq->elevator_data;
	u64 value;
	int ret;

	ret = sutro_parse(page, 1, &value);
	if (ret)
		return ret;
	spin_lock(&sq->lock);
	WRITE_ONCE(sq->core.tunables.fairness, value);
	spin_unlock(&sq->lock);
	return count;
}

static ssize_t sutro_slice_us_show(struct elevator_queue *eq, char *page)
{
	struct sutro_queue *sq = eq->elevator_data;

	return sutro_show(page, READ_ONCE(sq->core.tunables.slice_ns) /
					NSEC_PER_USEC);
}

static ssize_t sutro_slice_us_store(struct elevator_queue *eq, const char *page,
				    size_t count)
{
	struct sutro_queue *sq = eq->elevator_data;
	u64 value;
	int ret;

	ret = sutro_parse(page, SUTRO_MAX_SLICE_NS / NSEC_PER_USEC, &value);
	if (ret)
		return ret;
	spin_lock(&sq->lock);
	WRITE_ONCE(sq->core.tunables.slice_ns, value * NSEC_PER_USEC);
	spin_unlock(&sq->lock);
	return count;
}

static ssize_t sutro_group_idle_us_show(struct elevator_queue *eq, char *page)
{
	struct sutro_queue *sq = eq->elevator_data;

	return sutro_show(page, READ_ONCE(sq->core.tunables.group_idle_ns) /
					NSEC_PER_USEC);
}

static ssize_t sutro_group_idle_us_store(struct elevator_queue *eq,
					 const char *page, size_t count)
{
	struct sutro_queue *sq = eq->elevator_data;
	u64 value;
	int ret;

	ret = sutro_parse(page, SUTRO_MAX_IDLE_NS / NSEC_PER_USEC, &value);
	if (ret)
		return ret;
	spin_lock(&sq->lock);
	WRITE_ONCE(sq->core.tunables.group_idle_ns, value * NSEC_PER_USEC);
	spin_unlock(&sq->lock);
	return count;
}

static ssize_t sutro_group_requests_show(struct elevator_queue *eq, char *page)
{
	struct sutro_queue *sq = eq->elevator_data;

	return sutro_show(page, READ_ONCE(sq->group_requests));
}

static ssize_t sutro_group_requests_store(struct elevator_queue *eq,
					  const char *page, size_t count)
{
	struct sutro_queue *sq = eq->elevator_data;
	u64 value;
	int ret;

	ret = sutro_parse(page, UINT_MAX, &value);
	if (ret)
		return ret;
	WRITE_ONCE(sq->group_requests, value);
	return count;
}

static ssize_t sutro_protect_show(struct elevator_queue *eq, char *page)
{
	struct sutro_queue *sq = eq->elevator_data;

	return sutro_show(page, READ_ONCE(sq->core.tunables.protect));
}

static ssize_t sutro_protect_store(struct elevator_queue *eq, const char *page,
				   size_t count)
{
	struct sutro_queue *sq = eq->elevator_data;
	u64 value;
	int ret;

	ret = sutro_parse(page, SUTRO_PROTECT_MAX, &value);
	if (ret)
		return ret;
	spin_lock(&sq->lock);
	WRITE_ONCE(sq->core.tunables.protect, value);
	spin_unlock(&sq->lock);
	return count;
}

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

#define SUTRO_ATTR(name) \
	__ATTR(name, 0644, sutro_##name##_show, sutro_##name##_store)

struct elv_fs_entry sutro_attrs[] = { SUTRO_ATTR(fairness),
				      SUTRO_ATTR(slice_us),
				      SUTRO_ATTR(group_idle_us),
				      SUTRO_ATTR(discipline),
				      SUTRO_ATTR(group_requests),
				      SUTRO_ATTR(protect),
				      __ATTR_NULL };
