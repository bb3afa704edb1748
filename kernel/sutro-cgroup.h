/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Sutro I/O scheduler: cgroups (sutro-cgroup.c, sutro-active.c).
 */
#ifndef SUTRO_CGROUP_H
#define SUTRO_CGROUP_H

#include "sutro.h"

/* A class as a setting, where 0 means that none is set. */
static inline u32 sutro_class_setting(enum sutro_class class)
{
	return class + 1;
}

static inline enum sutro_class sutro_setting_class(u32 value)
{
	return value - 1;
}

/* Likewise a part of the time, of SUTRO_RESERVE_WHOLE. */
static inline u32 sutro_reserve_setting(u32 reserve)
{
	return reserve + 1;
}

static inline u32 sutro_setting_reserve(u32 value)
{
	return value - 1;
}

/* Likewise a latency target in us. */
static inline u32 sutro_latency_setting(u32 target_us)
{
	return target_us + 1;
}

static inline u32 sutro_setting_latency(u32 value)
{
	return value - 1;
}

/* sutro-cgroup.c */
extern struct blkcg_policy sutro_policy;
extern const char *const sutro_class_names[SUTRO_CLASS_NR];
u32 sutro_setting(struct sutro_blkg *sblkg, enum sutro_setting setting);
int sutro_cgroup_register(void);
void sutro_cgroup_unregister(void);

/* sutro-stat.c */
void sutro_show_stat(struct seq_file *sf, struct sutro_blkg *sblkg);

/* sutro-active.c */
void sutro_active_enter(struct sutro_blkg *sblkg);
void sutro_active_offline(struct sutro_blkg *sblkg);
void *sutro_active_start(struct seq_file *sf, loff_t *pos);
void *sutro_active_next(struct seq_file *sf, void *v, loff_t *pos);
void sutro_active_stop(struct seq_file *sf, void *v);
int sutro_active_show(struct seq_file *sf, void *v);

#endif /* SUTRO_CGROUP_H */
