/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Forked children: processes that hold the dataset as it was at the fork, to write it down while we go on.
 * At most one lives at a time. While it does, the store changes nothing in place (each changed page is
 * copied), tables do not resize, and access times stand still. Main thread only. */
#ifndef ENGINE_CHILD_H
#define ENGINE_CHILD_H

#include <stdbool.h>

#include "base/alloc.h"
#include "base/error.h"

/* What the child is for: handed to the hooks (engine/hooks.h, point 9). */
typedef enum childKind { CHILD_NONE, CHILD_TEST } childKind;

/* In the child; returns its exit code. It must not touch the loop nor free what the store owns. */
typedef int childProc(void *arg);

/* Forks. The parent returns at once; the child runs `proc` and leaves. ERR_EXISTS: one lives already;
 * ERR_IO: the system refused. */
status childStart(childKind kind, childProc *proc, void *arg, reason *why) MUST_USE;
/* CHILD_NONE when no child lives. */
childKind childAlive(void);
/* Ends it (SIGKILL) and waits: the hooks hear of it before this returns. Nothing lives: nothing happens. */
void childKill(void);

#endif
