/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Kernel settings of this process (OOM score, huge pages, CPU affinity), and checks of system
 * settings. Main thread only. */
#ifndef SERVER_KERNEL_H
#define SERVER_KERNEL_H

#include "base/error.h"
#include "base/str.h"
#include "engine/hooks.h"

/* Applies oom-score-adj and its values for the role of this process; "no" restores the original
 * score. ERR_IO if the kernel refuses (logged); nothing has changed then. */
status kernelApplyOomScore(void);
/* In a forked child: applies the child's OOM score. */
void kernelChildEvent(childEvent e, int kind, int exit_code, int signal);
/* Applies disable-thp and server-cpulist, and warns about unfavourable system settings. Called at
 * startup, after detaching from the terminal. */
void kernelPrepare(void);
/* --check-system: prints one line per check, followed by advice for those that fail. Returns the
 * number of failed checks. */
int kernelCheckSystem(str *out);

#endif
