/* SPDX-License-Identifier: LGPL-2.1-or-later */
#ifndef SUTRO_TEST_FAULTS_H
#define SUTRO_TEST_FAULTS_H

/* System calls between these belong to the test, not to the daemon. */
void faults_pause(void);
void faults_resume(void);

#endif
