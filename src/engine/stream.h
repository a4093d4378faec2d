/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Streams of changes that others have made: that of the primary (ORIGIN_PRIMARY), and those of
 * slots that are imported (ORIGIN_IMPORT), of which there may be several. How many of its bytes a
 * session has applied, and which. A transaction counts as a whole after its execution. The cost is
 * per run of requests; sessions of other origins have none. Main thread only. */
#ifndef ENGINE_STREAM_H
#define ENGINE_STREAM_H

#include "engine/ctx.h"
#include "engine/session.h"

/* Callbacks of the owner of a stream; each may be NULL. */
typedef struct streamOwner {
    /* The next bytes that were applied, in order and complete; borrowed for the call. `db_id`: the
     * database that was selected before the first of them; -1: they continue those of the last
     * call. */
    void (*applied)(session *s, int db_id, const slice *spans, int count);
    /* A command of the stream has failed; the text is that of its error reply. */
    void (*failed)(ctx *c, slice error);
    /* The stream cannot be continued: a protocol error. The session is closed afterwards. */
    void (*broken)(session *s, slice error);
} streamOwner;

/* The requests of the session are a stream from now on, of origin ORIGIN_PRIMARY or ORIGIN_IMPORT:
 * nothing is replied (streamSend() sends). Before the carrier reads from it; not while it runs a
 * command, except the one that makes it a stream, if nothing follows it that was read already. */
void streamOpen(session *s, ctxOrigin origin, const streamOwner *owner);
/* A run of requests in the buffer `buf`, the first of which begins at `from`. Called by the carrier
 * before executeRun() for a session with SESSION_REPLAY; without it nothing is counted. */
void streamBegin(session *s, const char *buf, size_t from, const request *requests);
/* After executeRun(): the first `ran` requests have run, were refused or were queued. If the
 * session is blocked, the last of them is a job that has no effect so far. */
void streamEnd(session *s, int ran);
/* After the end of that job: its bytes count as applied. Within the run: with those of the run. */
void streamWaited(session *s);
/* The buffer up to offset `to` holds no further request to be run, only blank lines. They count
 * with the next request. */
void streamSkip(session *s, size_t to);
/* Bytes applied since the session got its origin, those of large arguments, blank lines and inline
 * requests among them; during a run without those of the run. */
uint64_t streamApplied(const session *s);
/* Bytes that precede the request that the session is running; those applied if it is running
 * none. */
uint64_t streamBefore(const session *s);
/* Bytes of complete requests received, those of an unfinished transaction among them. */
uint64_t streamReceived(const session *s);

/* True while a run of any stream is executed, whose bytes do not count as applied yet. */
bool streamIsRunning(void);

/* Sends bytes to the other end of the stream, also from inside of its commands. */
void streamSend(session *s, slice bytes);

/* For net: reports that the stream is broken. */
void streamBreak(session *s, slice error);

#endif
