/* SPDX-License-Identifier: GPL-2.0-only */
#define SZ_4K 0x1000
#define SZ_16K 0x4000
#define SZ_1M 0x100000
#define SZ_4M 0x400000
