/* SPDX-License-Identifier: LGPL-2.1-or-later */
#ifndef SUTRO_EXPORTER_LEAVES_H
#define SUTRO_EXPORTER_LEAVES_H

#include "host/util.h"

/**
 * struct leaf - a device with counters
 * @node: "/dev/sda"; of a device that has gone, with its number
 * @is_leaf: it stands on no other device
 * @has_elevator: its scheduler is sutro
 * @is_counted: the elevator has a line about it in this scrape
 */
struct leaf {
	dev_t devno;
	char *node;
	bool is_leaf;
	bool has_elevator;
	bool is_counted;
};

/**
 * struct leaves - the devices of one scrape, looked up once
 * @sysfs: directory of sysfs
 * @index: a tree of tsearch(3)
 */
struct leaves {
	int sysfs;
	void *index;
};

/** leaves_get() - the device with this number, NULL: no memory */
struct leaf *leaves_get(struct leaves *l, dev_t devno);
void leaves_done(struct leaves *l);

#endif
