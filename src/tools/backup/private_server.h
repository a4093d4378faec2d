/* SPDX-License-Identifier: BSD-3-Clause
 *
 * A server of this program alone, on a Unix socket, that executes what was restored. One thread. */
#ifndef TOOLS_BACKUP_PRIVATE_SERVER_H
#define TOOLS_BACKUP_PRIVATE_SERVER_H

#include <stdbool.h>
#include <sys/types.h>
#include <valkey/valkey.h>

#include "base/alloc.h"
#include "base/error.h"
#include "base/str.h"
#include "tools/cli/options.h"

typedef struct privateServer {
    pid_t pid;      /* 0: none */
    str socket_dir; /* has the socket and the log */
    valkeyContext *link;
} privateServer;

/* Starts valkey-server on a folder and waits until it has loaded the data. `keep_expired`: no key
 * expires, and the link sees those whose time has passed (import-mode). */
status privateServerStart(privateServer *s, const cliOptions *options, const char *folder,
                          bool is_aof, bool keep_expired, reason *why) MUST_USE;
/* Ends it without saving. */
void privateServerStop(privateServer *s);
/* Sends a command whose reply must be no error; the caller frees it, unless `out` is NULL. */
status privateServerCommand(privateServer *s, valkeyReply **out, reason *why, const char *format,
                            ...) MUST_USE;

#endif
