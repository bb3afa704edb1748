/* SPDX-License-Identifier: GPL-2.0-only */
/* The kernel's rbtree.c wants this; nothing is exported here. */
