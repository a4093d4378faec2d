/* SPDX-License-Identifier: BSD-3-Clause
 *
 * What the process asks of the kernel for itself: how eagerly it is killed when memory is out, huge pages,
 * processors; and what an operator should know of the system. Main thread only. */
#ifndef SERVER_KERNEL_H
#define SERVER_KERNEL_H

#include "base/error.h"
#include "base/str.h"
#include "engine/hooks.h"

/* Brings oom-score-adj and its values into effect for this process and its role; "no" puts back the score
 * that was found. ERR_IO when the kernel refuses (logged), nothing has changed then. */
status kernelApplyOomScore(void);
/* In a forked child: its own score. */
void kernelChildEvent(childEvent e, int kind, int exit_code, int signal);
/* disable-thp, server-cpulist, and warnings about settings of the system that hurt. At start, behind the
 * detaching from the terminal. */
void kernelPrepare(void);
/* --check-system: a line a check, advice behind those that fail. Returns how many failed. */
int kernelCheckSystem(str *out);

#endif
