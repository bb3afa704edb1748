// SPDX-License-Identifier: GPL-2.0-only
/*
 * Sutro I/O scheduler: cgroups and their files.
 *
 * Every cgroup has a weight, a class, a reserve and a latency target (struct sutro_blkcg,
 * "default"), and on each leaf that sutro schedules a struct sutro_blkg, which may have its own.
 *
 *	io.sutro.weight		"default 100", then "MAJ:MIN N" where set; io.weight until written
 *	io.sutro.class		likewise: rt, be or idle
 *	io.sutro.reserve	likewise: 0 to 1000, thousandths of the time
 *	io.sutro.latency	likewise: us, or max
 *	io.sutro.stat		what the cgroup used of each leaf
 *	io.sutro.active		of the root: the same of all that use one (sutro-active.c)
 *
 * All settings are read and written by the same code; cftype.private is the one that a file is
 * about.  sutro-setting.c has their text.
 *
 * The owner of a request is the cgroup of its bio's blkg, whoever submits it.
 */
#include <linux/backing-dev.h>
#include <linux/module.h>
#include <linux/sizes.h>

#include "sutro-cgroup.h"
#include "sutro-completion.h"
#include "sutro-member.h"
#include "sutro-report.h"
#include "sutro-requests.h"

/**
 * struct sutro_blkcg - one cgroup
 * @cpd:	must be first
 * @leaves:	on how many leaves it has requests (sutro-volume.c)
 * @setting:	on every leaf that has none of its own, the weight is 0 while io.weight is in
 *		force; protected by blkcg->lock
 */
struct sutro_blkcg {
	struct blkcg_policy_data cpd;
	struct sutro_leaves leaves;
	u32 setting[SUTRO_SETTINGS];
};

static struct sutro_blkcg *sutro_blkcg_of(struct blkcg *blkcg)
{
	return container_of(blkcg_to_cpd(blkcg, &sutro_policy),
			    struct sutro_blkcg, cpd);
}

/* The requests of a group's cgroup on all leaves. */
struct sutro_leaves *sutro_leaves_of(struct sutro_group *group)
{
	struct blkcg_gq *blkg = sutro_to_blkg(sutro_blkg_of(group));

	return &sutro_blkcg_of(blkg->blkcg)->leaves;
}

static struct sutro_blkg *sutro_pd(struct blkg_policy_data *pd)
{
	return pd ? container_of(pd, struct sutro_blkg, pd) : NULL;
}

/*
 * io.weight of a cgroup that has no io.sutro.weight, on all leaves and on one; that of a new
 * cgroup where the file belongs to iocost, and without the patch that moves it to blk-cgroup.c.
 */
static u32 sutro_io_weight(struct blkcg *blkcg)
{
#ifdef BLKCG_HAS_WEIGHT
	return READ_ONCE(blkcg->weight);
#else
	return CGROUP_WEIGHT_DFL;
#endif
}

static u32 sutro_io_leaf_weight(struct blkcg_gq *blkg)
{
#ifdef BLKCG_HAS_WEIGHT
	return blkg_weight(blkg);
#else
	return CGROUP_WEIGHT_DFL;
#endif
}

/* Call @changed under blkcg->lock when io.weight of a cgroup on a leaf has changed. */
static void sutro_watch_io_weight(struct blkcg_policy *policy,
				  void (*changed)(struct blkg_policy_data *pd))
{
#ifdef BLKCG_HAS_WEIGHT
	policy->pd_weight_fn = changed;
#endif
}

/**
 * sutro_from_blkg - the group of a blkg
 * @blkg:	the blkg
 *
 * A blkg that was being removed when the elevator came has no data of ours;
 * its nearest living ancestor answers for it.  The root always has one.
 *
 * Return: the group.
 */
struct sutro_blkg *sutro_from_blkg(struct blkcg_gq *blkg)
{
	struct sutro_blkg *sblkg;

	while (!(sblkg = sutro_pd(blkg_to_pd(blkg, &sutro_policy))))
		blkg = blkg->parent;
	return sblkg;
}

/**
 * sutro_bio_blkg - the owner of a bio
 * @q:		the leaf's queue
 * @bio:	the bio, or NULL
 *
 * Return: its group on this leaf, the root's if it has no owner here.
 * Context: the bio, hence its blkg, stays alive.
 */
struct sutro_blkg *sutro_bio_blkg(struct request_queue *q, struct bio *bio)
{
	struct blkcg_gq *blkg = bio ? bio->bi_blkg : NULL;

	if (!blkg || blkg->q != q)
		blkg = q->root_blkg;
	return sutro_from_blkg(blkg);
}

/**
 * sutro_current_blkg - the group of the running task
 * @q:		the leaf's queue
 *
 * Return: the group, NULL if its cgroup has not used this leaf yet.
 * Context: RCU read side, which keeps the result alive.
 */
struct sutro_blkg *sutro_current_blkg(struct request_queue *q)
{
	struct blkcg *blkcg = css_to_blkcg(task_css(current, io_cgrp_id));
	struct blkcg_gq *blkg = blkg_lookup(blkcg, q);

	return blkg ? sutro_pd(blkg_to_pd(blkg, &sutro_policy)) : NULL;
}

static struct blkcg_policy_data *sutro_cpd_alloc(gfp_t gfp)
{
	struct sutro_blkcg *sblkcg = kzalloc(sizeof(*sblkcg), gfp);

	if (!sblkcg)
		return NULL;
	sblkcg->setting[SUTRO_SETTING_CLASS] =
		sutro_class_setting(SUTRO_CLASS_BE);
	sblkcg->setting[SUTRO_SETTING_RESERVE] = sutro_reserve_setting(0);
	sblkcg->setting[SUTRO_SETTING_LATENCY] = sutro_latency_setting(0);
	return &sblkcg->cpd;
}

static void sutro_cpd_free(struct blkcg_policy_data *cpd)
{
	kfree(container_of(cpd, struct sutro_blkcg, cpd));
}

/* Bounds the memory of a cgroup on each leaf; lock debugging makes locks larger. */
static_assert(sizeof(spinlock_t) > sizeof(u32) ||
	      sizeof(struct sutro_blkg) <= SZ_512 + SZ_256);

/* Shown by slabtop as sutro_blkg. */
static struct kmem_cache *sutro_blkg_cache;

static struct blkg_policy_data *sutro_pd_alloc(struct gendisk *disk,
					       struct blkcg *blkcg, gfp_t gfp)
{
	struct sutro_blkg *sblkg;

	sblkg = kmem_cache_alloc_node(sutro_blkg_cache, gfp | __GFP_ZERO,
				      disk->node_id);
	if (!sblkg)
		return NULL;
	sutro_requests_init(&sblkg->requests);
	INIT_LIST_HEAD(&sblkg->note_node);
	RB_CLEAR_NODE(&sblkg->active.node);
	return &sblkg->pd;
}

/**
 * sutro_setting - a setting that holds for a group
 * @sblkg:	the group
 * @setting:	which one
 *
 * Return: that for the leaf, or else that of the cgroup on every leaf, or else io.weight.
 */
u32 sutro_setting(struct sutro_blkg *sblkg, enum sutro_setting setting)
{
	struct blkcg_gq *blkg = sutro_to_blkg(sblkg);
	struct sutro_blkcg *sblkcg = sutro_blkcg_of(blkg->blkcg);
	u32 value = READ_ONCE(sblkg->device_setting[setting])
			    ?: READ_ONCE(sblkcg->setting[setting]);

	return value ?: sutro_io_leaf_weight(blkg);
}

/*
 * The elevator of a leaf; NULL if it has just been removed when a blkg is added that was
 * allocated before.
 */
static struct sutro_queue *sutro_leaf_queue(struct request_queue *q)
{
	struct elevator_queue *eq = q->elevator;

	lockdep_assert_held(&q->queue_lock);
	if (!eq || eq->type->elevator_attrs != sutro_attrs)
		return NULL;
	return eq->elevator_data;
}

/* Parents are initialized before their children. */
static void sutro_pd_init(struct blkg_policy_data *pd)
{
	struct sutro_blkg *sblkg = sutro_pd(pd);
	struct blkcg_gq *blkg = pd_to_blkg(pd);
	struct sutro_blkg *parent = blkg->parent ? sutro_from_blkg(blkg->parent)
						 : NULL;
	struct sutro_queue *sq = sutro_leaf_queue(blkg->q);
	u32 class, reserve, latency;

	sblkg->rotational = sq && sq->device.rotational;
	if (!sblkg->rotational)
		sutro_peer_init(&sblkg->peer);
	sutro_group_init(&sblkg->group, parent ? &parent->group : NULL,
			 sutro_setting(sblkg, SUTRO_SETTING_WEIGHT));
	class = sutro_setting(sblkg, SUTRO_SETTING_CLASS);
	sutro_tree_set_class(&sblkg->group, sutro_setting_class(class));
	reserve = sutro_setting(sblkg, SUTRO_SETTING_RESERVE);
	sblkg->group.reserve = sutro_setting_reserve(reserve);
	latency = sutro_setting(sblkg, SUTRO_SETTING_LATENCY);
	sutro_latency_set(&sblkg->group, sutro_setting_latency(latency));
}

/* Does a group have the setting that sutro_setting() returns?  A hint while requests arrive. */
static bool sutro_setting_is_set(struct sutro_blkg *sblkg,
				 enum sutro_setting setting)
{
	const struct sutro_group *group = &sblkg->group;
	u32 value = sutro_setting(sblkg, setting);

	switch (setting) {
	case SUTRO_SETTING_WEIGHT:
		return READ_ONCE(group->entity.weight) == value;
	case SUTRO_SETTING_CLASS:
		return READ_ONCE(group->entity.class) ==
		       sutro_setting_class(value);
	case SUTRO_SETTING_RESERVE:
		return READ_ONCE(group->reserve) ==
		       sutro_setting_reserve(value);
	case SUTRO_SETTING_LATENCY:
		return READ_ONCE(group->target_us) ==
		       sutro_setting_latency(value);
	case SUTRO_SETTINGS:
		break;
	}
	return true;
}

/*
 * A default may have been written between pd_init and now, before sutro_set_default() could find
 * the group.
 *
 * Context: blkcg->lock is held, under which defaults are written.
 */
static void sutro_pd_online(struct blkg_policy_data *pd)
{
	struct sutro_blkg *sblkg = sutro_pd(pd);
	int setting;

	if (!sutro_leaf_queue(pd->blkg->q))
		return;
	for (setting = 0; setting < SUTRO_SETTINGS; setting++)
		if (!sutro_setting_is_set(sblkg, setting))
			sutro_note_setting(sblkg, setting);
}

/* io.weight has changed.  Context: blkcg->lock is held. */
static void sutro_pd_weight(struct blkg_policy_data *pd)
{
	struct sutro_blkcg *sblkcg = sutro_blkcg_of(pd->blkg->blkcg);
	struct sutro_blkg *sblkg = sutro_pd(pd);

	if (!sblkg->device_setting[SUTRO_SETTING_WEIGHT] &&
	    !sblkcg->setting[SUTRO_SETTING_WEIGHT])
		sutro_note_setting(sblkg, SUTRO_SETTING_WEIGHT);
}

static void sutro_pd_offline(struct blkg_policy_data *pd)
{
	sutro_active_offline(sutro_pd(pd));
	sutro_note_offline(sutro_pd(pd));
}

static void sutro_blkg_free(struct rcu_head *rcu)
{
	struct sutro_blkg *sblkg = container_of(rcu, struct sutro_blkg, rcu);

	sutro_protect_exit(&sblkg->group);
	if (sblkg->rotational)
		kfree(sblkg->costs);
	if (sblkg->busy)
		sutro_member_free(sblkg->busy->member);
	kfree(sblkg->busy);
	kmem_cache_free(sutro_blkg_cache, sblkg);
}

/* Readers of the cgroup files may still use the group, under RCU. */
static void sutro_pd_free(struct blkg_policy_data *pd)
{
	call_rcu(&sutro_pd(pd)->rcu, sutro_blkg_free);
}

/* "MAJ:MIN" of a group's leaf, NULL once that is gone. */
static const char *sutro_dev_name(struct blkg_policy_data *pd)
{
	struct gendisk *disk = pd->blkg->q->disk;

	return disk ? bdi_dev_name(disk->bdi) : NULL;
}

/* ---- settings ---- */

static void sutro_setting_show_one(struct seq_file *sf, const char *of,
				   enum sutro_setting setting, u32 value)
{
	char text[SUTRO_SETTING_TEXT_BYTES];

	sutro_setting_format(setting, value, text);
	seq_printf(sf, "%s %s\n", of, text);
}

/* A privileged setting needs the privilege of the task that opened the file, too: another one may
 * have been tricked into writing to it.
 */
static int sutro_setting_take(const struct file *file,
			      enum sutro_setting setting, const char *text,
			      u32 *ret_value)
{
	if (sutro_setting_is_privileged(setting) &&
	    !(capable(CAP_SYS_NICE) &&
	      file_ns_capable(file, &init_user_ns, CAP_SYS_NICE)))
		return -EPERM;
	return sutro_setting_parse(setting, text, ret_value);
}

static u64 sutro_prfill_setting(struct seq_file *sf,
				struct blkg_policy_data *pd, int setting)
{
	const char *dname = sutro_dev_name(pd);
	u32 value = READ_ONCE(sutro_pd(pd)->device_setting[setting]);

	if (dname && value)
		sutro_setting_show_one(sf, dname, setting, value);
	return 0;
}

static int sutro_setting_show(struct seq_file *sf, void *v)
{
	struct blkcg *blkcg = css_to_blkcg(seq_css(sf));
	enum sutro_setting setting = seq_cft(sf)->private;
	u32 value;

	value = READ_ONCE(sutro_blkcg_of(blkcg)->setting[setting]);
	sutro_setting_show_one(sf, "default", setting,
			       value ?: sutro_io_weight(blkcg));
	blkcg_print_blkgs(sf, blkcg, sutro_prfill_setting, &sutro_policy,
			  setting, false);
	return 0;
}

static void sutro_set_default(struct blkcg *blkcg, enum sutro_setting setting,
			      u32 value)
{
	struct blkcg_gq *blkg;
	u32 old;

	spin_lock_irq(&blkcg->lock);
	old = sutro_blkcg_of(blkcg)->setting[setting];
	WRITE_ONCE(sutro_blkcg_of(blkcg)->setting[setting], value);
	hlist_for_each_entry(blkg, &blkcg->blkg_list, blkcg_node) {
		struct sutro_blkg *sblkg =
			sutro_pd(blkg_to_pd(blkg, &sutro_policy));
		u32 other = sutro_io_leaf_weight(blkg);

		/* A change ends direct mode: a write of the same value is none. */
		if (sblkg && !sblkg->device_setting[setting] &&
		    (value ?: other) != (old ?: other))
			sutro_note_setting(sblkg, setting);
	}
	spin_unlock_irq(&blkcg->lock);
}

static int sutro_set_device(struct blkcg *blkcg, const struct file *file,
			    enum sutro_setting setting, char *buf)
{
	struct blkg_conf_ctx ctx;
	u32 value = 0;
	int ret;

	blkg_conf_init(&ctx, buf);
	ret = blkg_conf_open_bdev(&ctx);
	if (ret)
		return ret;
	/* Takes q->queue_lock. */
	ret = blkg_conf_prep(blkcg, &sutro_policy, &ctx);
	if (ret)
		goto close;

	if (strcmp(strim(ctx.body), "default"))
		ret = sutro_setting_take(file, setting, strim(ctx.body),
					 &value);
	if (!ret) {
		struct sutro_blkg *sblkg =
			sutro_pd(blkg_to_pd(ctx.blkg, &sutro_policy));

		spin_lock(&blkcg->lock);
		if (sblkg->device_setting[setting] != value) {
			WRITE_ONCE(sblkg->device_setting[setting], value);
			sutro_note_setting(sblkg, setting);
		}
		spin_unlock(&blkcg->lock);
	}
	blkg_conf_unprep(&ctx);
close:
	blkg_conf_close_bdev(&ctx);
	return ret;
}

static ssize_t sutro_setting_write(struct kernfs_open_file *of, char *buf,
				   size_t nbytes, loff_t off)
{
	struct blkcg *blkcg = css_to_blkcg(of_css(of));
	enum sutro_setting setting = of_cft(of)->private;
	const char *text;
	u32 value = 0;
	int ret = 0;

	/* A deeper cgroup has no level of its own, so a setting would have no effect. */
	if (blkcg->css.cgroup->level > SUTRO_LEVELS)
		return -EOPNOTSUPP;
	buf = strim(buf);
	if (strchr(buf, ':')) {
		ret = sutro_set_device(blkcg, of->file, setting, buf);
	} else {
		text = skip_spaces(sutro_setting_of_default(buf));
		/* Without a weight of its own, the cgroup has that of io.weight. */
		if (setting != SUTRO_SETTING_WEIGHT || strcmp(text, "default"))
			ret = sutro_setting_take(of->file, setting, text,
						 &value);
		if (!ret)
			sutro_set_default(blkcg, setting, value);
	}
	return ret ?: nbytes;
}

static u64 sutro_prfill_stat(struct seq_file *sf, struct blkg_policy_data *pd,
			     int off)
{
	const char *dname = sutro_dev_name(pd);

	if (dname) {
		seq_puts(sf, dname);
		sutro_show_stat(sf, sutro_pd(pd));
	}
	return 0;
}

static int sutro_stat_show(struct seq_file *sf, void *v)
{
	blkcg_print_blkgs(sf, css_to_blkcg(seq_css(sf)), sutro_prfill_stat,
			  &sutro_policy, 0, false);
	return 0;
}

static struct cftype sutro_files[] = {
	{
		.name = "sutro.weight",
		.flags = CFTYPE_NOT_ON_ROOT,
		.private = SUTRO_SETTING_WEIGHT,
		.seq_show = sutro_setting_show,
		.write = sutro_setting_write,
	},
	{
		.name = "sutro.class",
		.flags = CFTYPE_NOT_ON_ROOT,
		.private = SUTRO_SETTING_CLASS,
		.seq_show = sutro_setting_show,
		.write = sutro_setting_write,
	},
	{
		.name = "sutro.reserve",
		.flags = CFTYPE_NOT_ON_ROOT,
		.private = SUTRO_SETTING_RESERVE,
		.seq_show = sutro_setting_show,
		.write = sutro_setting_write,
	},
	{
		.name = "sutro.latency",
		.flags = CFTYPE_NOT_ON_ROOT,
		.private = SUTRO_SETTING_LATENCY,
		.seq_show = sutro_setting_show,
		.write = sutro_setting_write,
	},
	{
		.name = "sutro.stat",
		.flags = CFTYPE_NOT_ON_ROOT,
		.seq_show = sutro_stat_show,
	},
	{
		.name = "sutro.active",
		.flags = CFTYPE_ONLY_ON_ROOT,
		.seq_start = sutro_active_start,
		.seq_next = sutro_active_next,
		.seq_stop = sutro_active_stop,
		.seq_show = sutro_active_show,
	},
	{},
};

struct blkcg_policy sutro_policy = {
	.dfl_cftypes = sutro_files,
	.cpd_alloc_fn = sutro_cpd_alloc,
	.cpd_free_fn = sutro_cpd_free,
	.pd_alloc_fn = sutro_pd_alloc,
	.pd_init_fn = sutro_pd_init,
	.pd_online_fn = sutro_pd_online,
	.pd_offline_fn = sutro_pd_offline,
	.pd_free_fn = sutro_pd_free,
};

int sutro_cgroup_register(void)
{
	int ret;

	sutro_blkg_cache = KMEM_CACHE(sutro_blkg, 0);
	if (!sutro_blkg_cache)
		return -ENOMEM;
	sutro_watch_io_weight(&sutro_policy, sutro_pd_weight);
	ret = blkcg_policy_register(&sutro_policy);
	if (ret)
		kmem_cache_destroy(sutro_blkg_cache);
	return ret;
}

void sutro_cgroup_unregister(void)
{
	blkcg_policy_unregister(&sutro_policy);
	/* Wait for each sutro_blkg_free(). */
	rcu_barrier();
	kmem_cache_destroy(sutro_blkg_cache);
}
