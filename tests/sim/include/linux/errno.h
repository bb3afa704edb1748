/* SPDX-License-Identifier: GPL-2.0-only */
/* <errno.h> of the system includes it, too. */
#include <asm/errno.h>
