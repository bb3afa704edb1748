/* SPDX-License-Identifier: LGPL-2.1-or-later */

/* The daemon without varlink, which libsystemd has from version 257 on. */

#include <errno.h>

#include "bus/varlink.h"

int varlink_open(struct bus *b, struct varlink **ret)
{
	return -EOPNOTSUPP;
}

void varlink_close(struct varlink *v)
{
}
