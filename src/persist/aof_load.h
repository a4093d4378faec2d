/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Loading the append only file: runs its commands in the main keyspace. Main thread only. */
#ifndef PERSIST_AOF_LOAD_H
#define PERSIST_AOF_LOAD_H

#include <stdbool.h>
#include <stdint.h>

#include "base/alloc.h"
#include "base/error.h"
#include "base/str.h"
#include "engine/session.h"
#include "format/aof_reader.h"
#include "persist/aof_position.h"
#include "resp/reply_sink.h"

/* Loads all files of the manifest into the databases. A truncated end of the last file is cut off
 * if the configuration allows it. Failures are logged. ERR_NOT_FOUND: there are no files. */
status aofLoad(void) MUST_USE;
/* Fields of INFO about commands of the last load that have failed; none if all have succeeded. */
void aofLoadPrintInfo(str *out);

/* Running records; used by aofLoad(). Not to be moved. `position` may be NULL. */
typedef struct aofReplay {
    session who; /* with the selected database, and the commands since MULTI */
    uint64_t commands;
    replySink sink;
    aofPosition *position;  /* follows the records */
    const request *current; /* whose reply is being made */
    reason *why;            /* for `refused` */
    reason *refused;        /* takes the error of a command that cannot run; or that needs another
                             * database than there are; NULL: it has run */
} aofReplay;
void aofReplayInit(aofReplay *p);
void aofReplayClear(aofReplay *p);
/* Runs the reader's records until another item comes, and returns that. AOF_COMMAND: a command is
 * unknown or has a wrong number of arguments; `why` has the reason. */
aofItem aofReplayRun(aofReplay *p, aofReader *r, reason *why);

#endif
