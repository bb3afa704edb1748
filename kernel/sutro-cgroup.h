/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Sutro I/O scheduler: cgroups (sutro-cgroup.c, sutro-active.c).
 */
#ifndef SUTRO_CGROUP_H
#define SUTRO_CGROUP_H

#include "sutro.h"

/* sutro-cgroup.c */
extern struct blkcg_policy sutro_policy;
struct sutro_leaves *sutro_leaves_of(struct sutro_group *group);
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
