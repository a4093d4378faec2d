/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Forked children: processes with a snapshot of the dataset, which they write while the parent continues. There is at
 * most one. While it exists, the store modifies nothing in place (every modified page is copied), tables are not
 * resized, and access times are not updated. Main thread only. */
#ifndef ENGINE_CHILD_H
#define ENGINE_CHILD_H

#include <stdbool.h>

#include "base/alloc.h"
#include "base/error.h"

/* Purpose of the child; passed to the hooks (engine/hooks.h, hook 9). */
typedef enum childKind { CHILD_NONE, CHILD_TEST } childKind;

/* Runs in the child; returns its exit code. It must not use the event loop or free memory of the store. */
typedef int childProc(void *arg);

/* Forks. The parent returns immediately; the child runs `proc` and exits. ERR_EXISTS: there is a child already;
 * ERR_IO: fork() failed. */
status childStart(childKind kind, childProc *proc, void *arg, reason *why) MUST_USE;
/* CHILD_NONE if there is no child. */
childKind childAlive(void);
/* Kills the child (SIGKILL) and waits for it; the hooks are called before this returns. No effect without a child. */
void childKill(void);

#endif
