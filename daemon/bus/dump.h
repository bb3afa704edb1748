/* SPDX-License-Identifier: LGPL-2.1-or-later */
#ifndef SUTRO_DUMP_H
#define SUTRO_DUMP_H

struct manager;

/** dump_manager() - the whole state as text; to be freed */
int dump_manager(const struct manager *m, char **ret);

#endif
