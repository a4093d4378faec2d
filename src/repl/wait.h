/* SPDX-License-Identifier: BSD-3-Clause
 *
 * WAIT and WAITAOF. Main thread only. */
#ifndef REPL_WAIT_H
#define REPL_WAIT_H

/* Registers what WAITAOF asks about replicas. */
void waitInit(void);

#endif
