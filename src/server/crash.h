/* SPDX-License-Identifier: BSD-3-Clause
 *
 * The crash report: what the log gets when a signal, a failed check or a panic ends the process. */
#ifndef SERVER_CRASH_H
#define SERVER_CRASH_H

#include "base/error.h"

/* Hangs up the reports of failed checks and of memory that is out, and the handlers of the crash signals as
 * crash-log-enabled says. Once, at start. */
void crashInit(void);
/* Brings crash-log-enabled into effect. Cannot fail. */
status crashApply(reason *why);

#endif
