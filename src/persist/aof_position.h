/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Which position of the replication stream the content of the append only file corresponds to, as
 * lines in the file: what a restarted server needs to continue by a partial resynchronisation.
 *
 *     #AT:1234                           the number of bytes before this line
 *     #REPL:<id of 40 characters>:<offset>:<database selected in the stream>
 *
 * The pair says: the dataset made by everything before it is that of stream `id` at `offset`. An
 * offset of -1 says that the position is unknown from here on. Servers that do not know the lines
 * skip them as comments.
 *
 * After a pair each record counts as many bytes as it has, and a SELECT if its database is not the
 * one selected in the stream: so the position at the end of the file is known wherever the process
 * was killed. The writer sees to it that this sum is right at the end of each record or
 * transaction, or unknown:
 *
 * - What is written at once (a turn) is a part of what was added to the stream meanwhile, in the
 *   same order. If both are equally long, they are the same bytes, so each sum in between is right.
 *   If they are not (PUBLISH, PING, a change of another form), the turn is put after a line with
 *   offset -1, and a pair with the true position follows it.
 * - A SELECT ends what is known until the next pair. Each server, a released one as well, begins
 *   with SELECT what it appends to a file, so nothing that was appended without counting is
 *   counted.
 * - A pair whose first line is not at its place in the file is ignored: somebody has taken out or
 *   added something before it, for instance a FLUSHALL that was a mistake.
 *
 * Main thread only. */
#ifndef PERSIST_AOF_POSITION_H
#define PERSIST_AOF_POSITION_H

#include <stdbool.h>
#include <stdint.h>

#include "base/str.h"
#include "engine/hooks.h"
#include "format/aof_reader.h"
#include "persist/sync_load.h"

/* ------------------------------------------------------------------ writing */

/* True while the position at the end of the buffer is known. */
extern bool aofPositionIsKnown;

/* Another file begins, or the end of one that was loaded: the position is unknown. */
void aofPositionReset(void);
/* Before the first record after a write. `buffer` has what is to be written next; in the file, or
 * in what is being written to it, `size` bytes precede it. May append lines. */
void aofPositionTurnBegins(str *buffer, int64_t size);
/* A record of `len` bytes was appended; only while the position is known. `selects`: a SELECT
 * precedes it in the file. */
void aofPositionCount(const propagated *p, size_t len, bool selects);
/* Before the write, after the last record. May insert and append lines. */
void aofPositionTurnEnds(str *buffer, int64_t size);
/* So many bytes that could not be written were put in front of the buffer again. */
void aofPositionShift(size_t len);
/* About ten times per second, between two turns: appends a pair if the position is another one than
 * the end of the file says. */
void aofPositionTick(str *buffer, int64_t size);
/* True if aofPositionTick() would append a pair. */
bool aofPositionIsBehind(void);
/* At the end of a clean shutdown: appends a pair if there is a position. */
void aofPositionEnd(str *buffer, int64_t size);
/* A change was made that the file does not get: no position until another file begins. */
void aofPositionForbid(void);

/* ------------------------------------------------------------------ reading */

/* The position of the records read so far. */
typedef struct aofPosition {
    persistOrigin at;     /* `id` empty: unknown */
    persistOrigin before; /* before the open transaction */
    int file_db;          /* selected by the records of the current file; -1: none yet */
    bool vouched;         /* the last item was an #AT line at its place */
} aofPosition;
void aofPositionInit(aofPosition *p);
/* Another file of the same append only file follows. */
void aofPositionNextFile(aofPosition *p);
/* A file in another format, or one that cannot be counted. */
void aofPositionForget(aofPosition *p);
/* `item`, AOF_COMMAND or AOF_ANNOTATION, is the reader's last one. */
void aofPositionRead(aofPosition *p, const aofReader *r, aofItem item);
/* The end of the last file is that of its last complete transaction. */
void aofPositionCut(aofPosition *p, const aofReader *r);

#endif
