/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Waiting. A command that finds nothing to answer with blocks its session: the request is kept, and runs again
 * from its start when one of its keys has become a value of the type it waits for, behind the command (or the
 * transaction) that made it so and before the next. Whoever has waited longest for a key is first. A request
 * that still finds nothing stays where it is in the queue. The wait also ends by time, by CLIENT UNBLOCK and with
 * the session.
 *
 * Nobody waits: nothing is looked up. Somebody does: each changed key costs one lookup. Main thread only. */
#ifndef ENGINE_BLOCK_H
#define ENGINE_BLOCK_H

#include <stdbool.h>
#include <stdint.h>

#include "engine/ctx.h"
#include "engine/hooks.h"
#include "store/object.h"

/* Argument `i`, seconds with fractions, as the wall time in ms at which a wait ends; 0 is for ever. False: the
 * error was replied. */
bool blockArgDeadline(ctx *c, int i, int64_t *deadline_ms);
/* True where no command may wait (EXEC, scripts, the AOF): it answers at once that there is nothing. */
bool blockIsDenied(const ctx *c);

typedef struct blockWish {
    const slice *keys; /* as in the request */
    int key_count;
    valueType type;         /* of a value that wakes */
    int64_t deadline_ms;    /* 0: never */
    commandProc *timed_out; /* replies when the time is up; may read the arguments */
} blockWish;
/* The session waits; the last thing a command does, instead of a reply. Not where it is denied. */
void blockOnKeys(ctx *c, const blockWish *wish);

/* Ends a session's wait as if its time were up, or with this error when it has text. False: it does not wait. */
bool blockEnd(session *s, slice error);
/* Runs the requests whose keys have become ready. */
void blockWake(void);
/* Ends waits whose time is up. Then *wait_ms is how long the next one lasts, -1: none has a time. The carriers call
 * it once a turn. */
void blockTurn(int64_t *wait_ms);
/* The next session that waits no more and may go on with what has been read; NULL when there is none. */
session *blockNextReleased(void);
/* Forgets a session that ends. */
void blockForget(session *s);

/* Bytes of memory a session's wait takes. */
size_t blockMemory(const session *s);
/* Bytes of the arguments of the command that a session waits to run again; 0 when it does not. */
size_t blockArgumentBytes(const session *s);
/* Keys that somebody waits for. */
uint64_t blockedKeyCount(void);
/* Hook 5. */
void blockDbEvent(const dbEvent *e);
extern const keyObserver blockObserver;

#endif
