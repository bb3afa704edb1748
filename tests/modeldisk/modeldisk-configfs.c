// SPDX-License-Identifier: GPL-2.0-only
/*
 * modeldisk: a directory per disk, a file per number
 *
 *	mkdir /sys/kernel/config/modeldisk/slow
 *	echo hdd > .../slow/kind		loads the defaults of the kind
 *	echo 5400 > .../slow/rpm		changes one
 *	echo 1 > .../slow/online		/dev/slow appears
 *	echo 300 > .../slow/seek_min_us	the next seek is quicker
 *	echo 0 > .../slow/online		it goes; the data stay
 *	rmdir /sys/kernel/config/modeldisk/slow
 *
 * A number that the kind does not have is -EINVAL, one that is out of range
 * -ERANGE, one that cannot change while the disk is online (size, depth,
 * queues, seed, kind) -EBUSY; nothing is changed then.
 */
#define pr_fmt(fmt) KBUILD_MODNAME ": " fmt

#include <linux/module.h>
#include <linux/slab.h>
#include <linux/string_helpers.h>

#include "modeldisk.h"

static struct mdisk *to_mdisk(struct config_item *item)
{
	return container_of(item, struct mdisk, item);
}

/* Takes *new into use, with the past computed by the old numbers. Context: config mutex held. */
static int mdisk_numbers_set(struct mdisk *disk,
			     const struct mdisk_numbers *new)
{
	bool cache_changes = !disk->drive.num.cache_kb != !new->cache_kb;
	unsigned long flags;
	LIST_HEAD(done);
	u64 now_ns;

	if (!disk->gendisk) {
		disk->drive.num = *new;
		return 0;
	}
	spin_lock_irqsave(&disk->lock, flags);
	now_ns = mdisk_run(disk, &done);
	disk->drive.num = *new;
	mdisk_cache_admit(&disk->drive, now_ns);
	mdisk_run(disk, &done);
	spin_unlock_irqrestore(&disk->lock, flags);
	local_bh_disable();
	mdisk_deliver(&done);
	local_bh_enable();
	return cache_changes ? mdisk_announce_cache(disk) : 0;
}

/* A value that @number can have, by its digits or its name. */
static int mdisk_number_parse(const struct mdisk_number *number,
			      const char *page, u32 *value)
{
	int ret;

	if (number->names) {
		ret = __sysfs_match_string(number->names, number->max + 1,
					   page);
		if (ret < 0)
			return ret;
		*value = ret;
		return 0;
	}
	ret = kstrtou32(page, 0, value);
	if (ret)
		return ret;
	if (*value < number->min || *value > number->max)
		return -ERANGE;
	return 0;
}

static ssize_t mdisk_number_store(struct config_item *item, const char *name,
				  const char *page, size_t count)
{
	const struct mdisk_number *number = mdisk_number_find(name);
	struct mdisk *disk = to_mdisk(item);
	struct mdisk_numbers new;
	u32 value;
	int ret;

	ret = mdisk_number_parse(number, page, &value);
	if (ret)
		return ret;

	mutex_lock(&disk->config);
	new = disk->drive.num;
	*mdisk_number_of(&new, number) = value;
	if (!(number->kinds & BIT(disk->kind)))
		ret = -EINVAL;
	else if (number->offline && disk->gendisk)
		ret = -EBUSY;
	else if (new.seek_min_us > new.seek_max_us)
		ret = -ERANGE;
	else
		ret = mdisk_numbers_set(disk, &new);
	mutex_unlock(&disk->config);
	return ret ?: count;
}

static ssize_t mdisk_number_show(struct config_item *item, const char *name,
				 char *page)
{
	const struct mdisk_number *number = mdisk_number_find(name);
	u32 value = *mdisk_number_of(&to_mdisk(item)->drive.num, number);

	if (number->names)
		return sysfs_emit(page, "%s\n", number->names[value]);
	return sysfs_emit(page, "%u\n", value);
}

/* configfs passes no attribute to its functions: each number has two of its own. */
#define NUMBER(_name, ...)                                                   \
	static ssize_t mdisk_##_name##_show(struct config_item *item,        \
					    char *page)                      \
	{                                                                    \
		return mdisk_number_show(item, #_name, page);                \
	}                                                                    \
	static ssize_t mdisk_##_name##_store(struct config_item *item,       \
					     const char *page, size_t count) \
	{                                                                    \
		return mdisk_number_store(item, #_name, page, count);        \
	}
#define CHOICE NUMBER
#include "modeldisk-table.h"

static struct configfs_attribute mdisk_number_attrs[] = {
#define NUMBER(_name, ...)                      \
	{                                       \
		.ca_name = #_name,              \
		.ca_mode = 0644,                \
		.ca_owner = THIS_MODULE,        \
		.show = mdisk_##_name##_show,   \
		.store = mdisk_##_name##_store, \
	},
#define CHOICE NUMBER
#include "modeldisk-table.h"
};

static void mdisk_kind_load(struct mdisk *disk, enum mdisk_kind kind)
{
	disk->kind = kind;
	mdisk_drive_init(&disk->drive, kind);
}

static ssize_t mdisk_kind_show(struct config_item *item, char *page)
{
	return sysfs_emit(page, "%s\n", mdisk_kind_names[to_mdisk(item)->kind]);
}

static ssize_t mdisk_kind_store(struct config_item *item, const char *page,
				size_t count)
{
	struct mdisk *disk = to_mdisk(item);
	int kind = sysfs_match_string(mdisk_kind_names, page);
	int ret = 0;

	if (kind < 0)
		return kind;
	mutex_lock(&disk->config);
	if (disk->gendisk)
		ret = -EBUSY;
	else
		mdisk_kind_load(disk, kind);
	mutex_unlock(&disk->config);
	return ret ?: count;
}
CONFIGFS_ATTR(mdisk_, kind);

static ssize_t mdisk_online_show(struct config_item *item, char *page)
{
	return sysfs_emit(page, "%d\n", !!to_mdisk(item)->gendisk);
}

static ssize_t mdisk_online_store(struct config_item *item, const char *page,
				  size_t count)
{
	struct mdisk *disk = to_mdisk(item);
	bool online;
	int ret;

	ret = kstrtobool(page, &online);
	if (ret)
		return ret;
	mutex_lock(&disk->config);
	if (online && !disk->gendisk)
		ret = mdisk_online(disk);
	else if (!online && disk->gendisk)
		mdisk_offline(disk);
	mutex_unlock(&disk->config);
	return ret ?: count;
}
CONFIGFS_ATTR(mdisk_, online);

/* Those of the numbers follow, then NULL. */
static struct configfs_attribute
	*mdisk_attrs[2 + ARRAY_SIZE(mdisk_number_attrs) + 1] = {
		&mdisk_attr_kind,
		&mdisk_attr_online,
	};

static void mdisk_release(struct config_item *item)
{
	struct mdisk *disk = to_mdisk(item);

	mdisk_store_free(disk);
	mdisk_truth_exit(disk);
	kvfree(disk);
}

static struct configfs_item_operations mdisk_item_ops = {
	.release = mdisk_release,
};

static const struct config_item_type mdisk_type = {
	.ct_item_ops = &mdisk_item_ops,
	.ct_attrs = mdisk_attrs,
	.ct_owner = THIS_MODULE,
};

static struct config_item *mdisk_make_item(struct config_group *group,
					   const char *name)
{
	struct mdisk *disk;
	int ret;

	if (strlen(name) >= DISK_NAME_LEN)
		return ERR_PTR(-ENAMETOOLONG);

	disk = kvcalloc(1, sizeof(*disk), GFP_KERNEL);
	if (!disk)
		return ERR_PTR(-ENOMEM);
	ret = mdisk_prepare(disk);
	if (ret) {
		kvfree(disk);
		return ERR_PTR(ret);
	}
	config_item_init_type_name(&disk->item, name, &mdisk_type);
	mdisk_debugfs_add(disk);
	return &disk->item;
}

static void mdisk_drop_item(struct config_group *group,
			    struct config_item *item)
{
	struct mdisk *disk = to_mdisk(item);

	mutex_lock(&disk->config);
	if (disk->gendisk)
		mdisk_offline(disk);
	mutex_unlock(&disk->config);
	mdisk_debugfs_remove(disk);
	config_item_put(item);
}

static struct configfs_group_operations mdisk_group_ops = {
	.make_item = mdisk_make_item,
	.drop_item = mdisk_drop_item,
};

static const struct config_item_type mdisk_group_type = {
	.ct_group_ops = &mdisk_group_ops,
	.ct_owner = THIS_MODULE,
};

static struct configfs_subsystem mdisk_subsystem = {
	.su_group = {
		.cg_item = {
			.ci_namebuf = KBUILD_MODNAME,
			.ci_type = &mdisk_group_type,
		},
	},
};

/**
 * mdisk_configfs_init - make /sys/kernel/config/modeldisk
 *
 * Return: 0 or a negative error
 */
int mdisk_configfs_init(void)
{
	u32 i;

	for (i = 0; i < ARRAY_SIZE(mdisk_number_attrs); i++)
		mdisk_attrs[2 + i] = &mdisk_number_attrs[i];
	config_group_init(&mdisk_subsystem.su_group);
	mutex_init(&mdisk_subsystem.su_mutex);
	return configfs_register_subsystem(&mdisk_subsystem);
}

/**
 * mdisk_configfs_exit - remove it
 */
void mdisk_configfs_exit(void)
{
	configfs_unregister_subsystem(&mdisk_subsystem);
}
