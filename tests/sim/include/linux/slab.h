/* SPDX-License-Identifier: GPL-2.0-only */
#ifndef SIM_LINUX_SLAB_H
#define SIM_LINUX_SLAB_H

#include <stdlib.h>

#define GFP_NOWAIT 0
#define __GFP_NOWARN 0

#define kzalloc(size, gfp) calloc(1, (size) + (gfp))
#define kfree(object) free(object)

#endif /* SIM_LINUX_SLAB_H */
