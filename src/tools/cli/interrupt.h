/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Ctrl-C in interactive use: ends the running command or discards the line being edited, not the
 * program. */
#ifndef TOOLS_CLI_INTERRUPT_H
#define TOOLS_CLI_INTERRUPT_H

#include <stdbool.h>

struct valkeyContext;

/* Catches SIGINT from now on; system calls that block return EINTR. */
void interruptInstall(void);
/* True after Ctrl-C, until interruptClear(). */
bool interruptPending(void);
void interruptClear(void);
/* A descriptor that is readable after Ctrl-C, to be polled with others; -1 before
 * interruptInstall(). */
int interruptDescriptor(void);
/* Waits until the server has sent something, Ctrl-C, or the end of the time (-1: none). True if
 * there is something to be read. */
bool interruptWait(const struct valkeyContext *context, int timeout_ms);

#endif
