/* SPDX-License-Identifier: LGPL-2.1-or-later */
#ifndef SUTRO_BUS_LEAVES_H
#define SUTRO_BUS_LEAVES_H

struct bus;

/** bus_drop_changes() - end all calls that wait for switches of leaves, without a reply */
void bus_drop_changes(struct bus *b);

#endif
