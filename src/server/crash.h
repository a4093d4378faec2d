/* SPDX-License-Identifier: BSD-3-Clause
 *
 * The crash report: what is logged when a signal, a failed check or a panic ends the process. */
#ifndef SERVER_CRASH_H
#define SERVER_CRASH_H

#include "base/error.h"

/* Registers the report for failed checks and memory exhaustion, and installs the signal handlers
 * according to crash-log-enabled. Called once, at startup. */
void crashInit(void);
/* Applies crash-log-enabled. Cannot fail. */
status crashApply(reason *why);

#endif
