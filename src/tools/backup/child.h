/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Other processes of this program: ciphers, the private server, a process per shard; and folders
 * for temporary files. One thread. */
#ifndef TOOLS_BACKUP_CHILD_H
#define TOOLS_BACKUP_CHILD_H

#include <stdbool.h>
#include <sys/types.h>

#include "base/alloc.h"
#include "base/error.h"
#include "base/str.h"

/* Starts a program, which is searched for in PATH, with these descriptors as standard input and
 * output (-1: those of this process). `is_bound`: it is killed when this process ends. */
status childStart(const char *const *argv, int in, int out, bool is_bound, pid_t *pid,
                  reason *why) MUST_USE;
/* Waits for a program and sets *pid to 0. Fails unless its exit code is 0; `what` names it. */
status childAwait(pid_t *pid, const char *what, reason *why) MUST_USE;
/* The same without interest in how it ends. */
void childForget(pid_t *pid);
/* fork(), with nothing buffered that both would print. */
pid_t childFork(void);
/* Creates a folder in TMPDIR, or /tmp, that other users cannot enter. */
status temporaryFolder(str *out, reason *why) MUST_USE;

#endif
