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

typedef enum blockKind {
    BLOCK_KEYS,
    BLOCK_OFFSET, /* an acknowledgement of what was propagated: WAIT, WAITAOF */
    BLOCK_MODULE,
    BLOCK_CUSTOM,
    BLOCK_KINDS,
} blockKind;

/* What a wait is asked about; borrowed for the call. */
typedef struct blockQuestion {
    const session *who;
    const slice *argv; /* as they will run: see blockWish */
    int argc;
    void *state;
    slice key;         /* BLOCK_KEYS: the key that changed, */
    const robj *value; /* and what stands there now, NULL: nothing. Of any type */
} blockQuestion;
/* True: it runs now, or `finish` replies. After a command, or a whole transaction, that changed something: what
 * happened in between is not told, only how things are. */
typedef bool blockReadyProc(const blockQuestion *q);

/* Zero is right for whatever is not needed. */
typedef struct blockWish {
    blockKind kind;
    const slice *keys; /* BLOCK_KEYS: as in the request */
    int key_count;
    valueType
        type; /* of a value that wakes; a missing key or one of another type does not, unless */
    bool when_gone; /* the command wants to run then, too, and to reply the error */
    blockReadyProc *
        ready; /* asked, after `type` and `when_gone`, about a value of the type; NULL: it is ready */
    int64_t deadline_ms; /* 0: never */
    /* Replies when the time is up; may read the arguments. NULL: CLIENT UNBLOCK does not end the wait, either. */
    commandProc *timed_out;
    commandProc
        *finish; /* replies when the wait is over; NULL: the command runs again from its start */
    const slice *
        argv; /* what runs again in place of the request ("$" replaced by an id); NULL: the request itself */
    int argc;
    void *state; /* the wait's own; `free_state` frees it with the wait */
    void (*free_state)(void *state);
} blockWish;
/* The session waits; the last thing a command does, instead of a reply. Not where it is denied. When a command that
 * runs again calls it, the wait goes on as it was: this wish is only freed. */
void blockStart(ctx *c, const blockWish *wish);
/* The `state` of the wait, in `timed_out`, `finish` and in a command that runs again; NULL when it does not wait. */
void *blockState(const ctx *c);

/* Something happened that may end waits of this kind (an acknowledgement, an fsync): their `ready` is asked when the
 * command that is being run has ended, or at stage WAKE. Nothing while there are none. */
void blockTell(blockKind kind);
/* Something happened to a key that leaves its value as it was (a consumer group was destroyed): those who wait for it are
 * asked as if it had changed. */
void blockTellKey(int db_id, slice key);
/* Ends a wait of a session at once through its `finish` (a module's). False: it does not wait so. */
bool blockFinish(session *s);

/* Visits those who wait: of one kind (-1: any), for one key (db_id -1: any key), for a key of one slot (-1: any).
 * `visit` may end the wait it is shown (a slot that was lost, a change of role), no other. */
typedef struct blockFilter {
    int kind, db_id, slot;
    slice key;
} blockFilter;
typedef void blockVisitProc(session *s, void *arg);
void blockEach(const blockFilter *filter, blockVisitProc *visit, void *arg);

/* Ends a session's wait as if its time were up, or with this error when it has text. False: it does not wait. */
bool blockEnd(session *s, slice error);
/* Runs the requests whose keys have become ready. */
void blockWake(void);
/* The next session that waits no more and may go on with what has been read; NULL when there is none. */
session *blockNextReleased(void);
/* Forgets a session that ends. */
void blockForget(session *s);

/* Bytes of memory a session's wait takes. */
size_t blockMemory(const session *s);
/* Bytes of the arguments of the command that a session waits to run again; 0 when it does not. */
size_t blockArgumentBytes(const session *s);
/* Keys that somebody waits for; those for which somebody wants to hear that they are gone. */
uint64_t blockedKeyCount(void);
uint64_t blockedKeyWhenGoneCount(void);
/* Hook 5. */
void blockDbEvent(const dbEvent *e);

#endif
