/* SPDX-License-Identifier: BSD-3-Clause
 *
 * The command log: three bounded lists of commands that were slow, or whose request or reply was
 * large. Main thread only. */
#ifndef ENGINE_COMMANDLOG_H
#define ENGINE_COMMANDLOG_H

#include <stddef.h>
#include <stdint.h>

#include "base/str.h"
#include "ds/list.h"

typedef enum commandlogKind {
    COMMANDLOG_SLOW,
    COMMANDLOG_LARGE_REQUEST,
    COMMANDLOG_LARGE_REPLY,
    COMMANDLOG_KINDS,
} commandlogKind;

enum { COMMANDLOG_ARGS_MAX = 32, COMMANDLOG_ARG_BYTES_MAX = 128 };

/* One command. Long arguments are truncated, secret ones redacted; the last one may be the number
 * of omitted arguments. */
typedef struct commandlogEntry {
    listNode node;
    int64_t id; /* counts from 0, separately for each log */
    int64_t time_s;
    int64_t value; /* microseconds of its own execution, or bytes */
    /* From its begin to its end: more than its own execution if it ran in slices. */
    int64_t elapsed_us;
    str peer, name;
    str user; /* user of the client that has sent the command, or the command that ran it */
    int argc;
    str argv[]; /* argc of them */
} commandlogEntry;

/* Newest first. */
const list *commandlogOf(commandlogKind kind);
void commandlogClear(commandlogKind kind);

#endif
