/* SPDX-License-Identifier: GPL-2.0-only */
#define MODULE_DESCRIPTION(text) _Static_assert(1, text)
#define MODULE_LICENSE(text) _Static_assert(1, text)
