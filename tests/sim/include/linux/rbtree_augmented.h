/* SPDX-License-Identifier: GPL-2.0-only */
/* From the kernel's sources, by kernel-headers.sh. */
#include <rbtree_augmented.h>
