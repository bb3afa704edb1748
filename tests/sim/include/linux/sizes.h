/* SPDX-License-Identifier: GPL-2.0-only */
#define SZ_16K 0x4000
