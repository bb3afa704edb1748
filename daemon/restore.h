/* SPDX-License-Identifier: LGPL-2.1-or-later */
#ifndef SUTRO_RESTORE_H
#define SUTRO_RESTORE_H

#include "host/roots.h"

/**
 * restore() - restore the lines that a daemon changed which does not run any more
 * @root: "" for this machine, or the directory of a fake one
 * @release: give all leaves the schedulers back that they had, too
 *
 * systemd runs this after each end of the daemon (ExecStopPost=). Nothing is restored then if it
 * starts the daemon again, unless that has failed several times in a row.
 */
int restore(const char *root, bool release);

/** crashes_forget() - reset the count of crashes, after the daemon has served for a while */
void crashes_forget(const struct roots *roots);

#endif
