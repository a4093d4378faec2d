/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Blocking commands. A command that cannot reply yet blocks its session: the request is kept and
 * runs again from its start when one of its keys has become a value of the required type, after the
 * command (or transaction) that changed the key and before the next one. The session that has
 * waited longest for a key is first. A request that still finds nothing keeps its position in the
 * queue. The wait also ends on timeout, by CLIENT UNBLOCK and with the session.
 *
 * If no session is blocked, changes of keys cost nothing; otherwise each changed key costs one
 * lookup. Main thread only. */
#ifndef ENGINE_BLOCK_H
#define ENGINE_BLOCK_H

#include <stdbool.h>
#include <stdint.h>

#include "engine/ctx.h"
#include "store/value_type.h"

typedef struct dbEvent dbEvent; /* defined in hooks.h */

/* Parses argument `i`, in seconds with fractions, to the wall time in ms at which the wait times
 * out; 0 means no timeout. False: the error was replied. */
bool blockArgDeadline(ctx *c, int i, int64_t *deadline_ms);
/* The same for whole milliseconds. */
bool blockArgDeadlineMs(ctx *c, int i, int64_t *deadline_ms);
/* An inner command (executeInner()) may block if its caller sets CTX_MAY_BLOCK in its ctx and runs
 * it for an internal session of its own, whose wait it becomes: s->blocked is set on return. Later
 * the reply is in that session's output, whatever the output of the ctx was, and its carrier's
 * resume() is called, in one execution unit with the command's second run. The caller gives up the
 * wait with blockForget(). */
/* True in contexts that cannot block (EXEC, scripts, the AOF): the command replies immediately that
 * there is nothing. */
bool blockIsDenied(const ctx *c);

typedef enum blockKind {
    BLOCK_KEYS,
    BLOCK_OFFSET, /* an acknowledgement of propagated changes: WAIT, WAITAOF */
    BLOCK_MODULE,
    BLOCK_CUSTOM,
    BLOCK_JOB, /* the end of a command that runs in slices: job.h */
    BLOCK_KINDS,
} blockKind;

/* Arguments of blockReadyProc; borrowed for the call. */
typedef struct blockQuery {
    const session *who;
    const slice *argv; /* the arguments that will run */
    int argc;
    void *state;
    slice key;         /* BLOCK_KEYS: the key that changed */
    const robj *value; /* its current value of any type, NULL if missing */
} blockQuery;
/* Returns true to end the wait: the request runs now, or `finish` replies. Called after a command
 * or transaction that changed something; it sees the resulting state, not the intermediate ones. */
typedef bool blockReadyProc(const blockQuery *q);

/* Parameters of a wait. Fields that are not needed are zero. */
typedef struct blockParams {
    blockKind kind;
    const slice *keys; /* BLOCK_KEYS: as in the request */
    int key_count;
    valueType type; /* required type of the value */
    bool any_type;  /* none is required: `ready` is asked about any value and a missing one */
    /* Also end the wait if the key is missing or of another type, e.g. to reply an error. */
    bool when_gone;
    blockReadyProc *ready; /* additional condition for a value of the type; NULL: none */
    int64_t deadline_ms;   /* 0: no timeout */
    /* The command runs again at this time, too, 0: it does not; a little later if keys must not
     * change then. What it says when it calls blockStart() once more replaces this. Not with
     * `finish`. */
    int64_t again_ms;
    /* Replies on timeout; may read the arguments. NULL: CLIENT UNBLOCK does not end the wait
     * either. */
    commandProc *timed_out;
    /* Asked when the time is up; false: something else is about to end the wait, which is asked
     * again in the next turn. NULL: nothing is. */
    bool (*may_time_out)(const void *state);
    /* Replies when the wait ends, and may change keys; NULL: the command runs again from its
     * start. */
    commandProc *finish;
    /* Arguments to run instead of the request (e.g. "$" replaced by an id); NULL: the request. */
    const slice *argv;
    int argc;
    void *state; /* private to the command; freed by `free_state` with the wait */
    void (*free_state)(void *state);
    size_t (*memory)(const void *state); /* of the state, in bytes; NULL: not counted */
    bool not_by_user;                    /* CLIENT UNBLOCK does not end it */
    /* The session ends before the wait: returns an internal session, to which the wait moves, or
     * NULL: the wait ends, too. NULL: it always does. */
    session *(*heir)(void *state);
    /* `finish` is the end of the command's run, not of a wait: command observers see it as that of
     * a command that was woken. */
    bool is_run;
    /* The command that runs goes on and counts as run; only its reply waits, and precedes that of
     * `finish` or `timed_out`. An error that ends the wait is not replied. For commands of clients
     * themselves, not for those that others run, or that run again. */
    bool holds_reply;
} blockParams;
/* Blocks the session; the last call of a command, instead of a reply. Must not be called if
 * blocking is denied. If a command that runs again calls it, the existing wait continues with the
 * new `again_ms`, and the other new parameters are freed. */
void blockStart(ctx *c, const blockParams *params);
/* A command with CTX_HOLDS_REPLY has returned: its reply is what is pending in the session's output
 * beyond the first `start` bytes. */
void blockTakeReply(session *s, size_t start);
/* The `state` of the wait, in `timed_out`, `finish` and in a command that runs again; NULL
 * otherwise. */
void *blockState(const ctx *c);
/* The `state` of a session's wait; NULL if it is not blocked. */
void *blockStateOf(const session *s);
/* Replaces it while the command runs again; the old one is the caller's. */
void blockSetState(const ctx *c, void *state);
/* For `timed_out` and `finish`: adds the time that others have worked for the wait, in ticks of the
 * clock, to the duration of the command. */
void blockAddWork(const ctx *c, uint64_t ticks);

/* Signals an event that may end waits of this kind (an acknowledgement, an fsync): their `ready`
 * functions are called after the current command, or in stage WAKE. No effect if there are none. */
void blockNotify(blockKind kind);
/* Signals an event of a key that leaves its value unchanged (a consumer group was destroyed): the
 * waits for the key are checked as after a change. */
void blockNotifyKey(int db_id, slice key);
/* On: changes of keys do not end waits, for changes that may be none (a module has closed a key
 * that it could have changed). Returns the state before. */
bool blockIgnoreChanges(bool on);
/* Ends a session's wait through its `finish`, or for BLOCK_MODULE through its second run: after the
 * current command, or in stage WAKE. False if it has no such wait. */
bool blockFinish(session *s);
/* True from blockFinish() to the reply. */
bool blockIsOver(const session *s);
/* The same at once, for what comes from outside: no command is being executed. False: it has no
 * such wait, or is closing. */
bool blockFinishNow(session *s);

/* Visits blocked sessions: of one kind (-1: any), for one key (db_id -1: any key), for a key of one
 * slot (-1: any). `visit` may end any wait (a lost slot, a change of role). */
typedef struct blockFilter {
    int kind, db_id, slot;
    slice key;
} blockFilter;
typedef void blockVisitProc(session *s, void *arg);
void blockEach(const blockFilter *filter, blockVisitProc *visit, void *arg);

/* Ends a session's wait as if it had timed out, or with this error if it has text. False if it is
 * not blocked. */
bool blockEnd(session *s, slice error);
/* The same for CLIENT UNBLOCK, which some waits do not permit. */
bool blockEndByUser(session *s, slice error);
/* Runs the requests whose keys have become ready. */
void blockWake(void);
/* The next session that was unblocked and may continue; NULL if there is none. */
session *blockNextReleased(void);
/* Called when a session ends. */
void blockForget(session *s);

/* Memory of a session's wait in bytes. */
size_t blockMemory(const session *s);
/* The kind of wait of a session; BLOCK_KINDS: it is not blocked. */
blockKind blockKindOf(const session *s);
/* The request of a blocked session, as it was kept: valid until the end of the wait. */
request *blockRequest(const session *s);
/* The command that waits; NULL if the session is not blocked. */
const command *blockCommand(const session *s);
/* The slot of the first key that it waits for; -1: it waits for none. */
int blockSlot(const session *s);
/* Size of the arguments of the blocked command in bytes; 0 if the session is not blocked. */
size_t blockArgumentBytes(const session *s);
/* Number of keys for which sessions are blocked; of those with `when_gone`. */
uint64_t blockedKeyCount(void);
uint64_t blockedKeyWhenGoneCount(void);
/* Implements on_db. */
void blockDbEvent(const dbEvent *e);

#endif
