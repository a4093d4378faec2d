/* SPDX-License-Identifier: BSD-3-Clause
 *
 * ctx: the execution context of a command, and all it may access: no socket, no event loop, no
 * other client. It is on the stack of the code that runs the command; everything in it is borrowed
 * for the call. */
#ifndef ENGINE_CTX_H
#define ENGINE_CTX_H

#include <stdbool.h>
#include <stdint.h>

#include "base/assert.h"
#include "base/blob.h"
#include "base/bytes.h"
#include "engine/command.h"
#include "engine/hot.h"
#include "engine/key_event.h"
#include "engine/session.h"
#include "resp/resp.h"
#include "store/look.h"

enum ctxFlag {
    CTX_OBSERVED = 1u << 0,    /* an observer was armed while it ran, and is to see its end */
    CTX_LATE_EVENTS = 1u << 1, /* executeSetLateProc() is to tell events when it has returned */
    CTX_IN_MULTI = 1u << 2,    /* run by EXEC */
    CTX_FAILED = 1u << 3,      /* an error was replied */
    CTX_CHANGED = 1u << 4,     /* ctxKeyChanged() or ctxDatasetChanged() was called */
    CTX_NO_PROPAGATE = 1u << 5,
    CTX_REWRITTEN = 1u << 6, /* ctxPropagateAs() was called */
    CTX_REJECTED = 1u << 7,  /* refused before it ran */
    CTX_NOT_RUN = 1u << 8,   /* refused, queued for EXEC, or blocked */
    CTX_ADMISSION = 1u << 9, /* gates are being evaluated: an error refuses the request */
    CTX_HELD = 1u << 10,     /* a gate holds the request back: it is processed again later */
    CTX_SECRETS = 1u << 11,  /* ctxRedact() was called */
    CTX_MEASURED = 1u << 12, /* its duration was measured separately */
    CTX_WOKEN = 1u << 13,    /* runs again after it was blocked */
    CTX_DELIVERS = 1u << 15, /* output for its own session is delivered after the reply */
    CTX_REDIRECTED =
        1u
        << 16, /* refused because another server is to be asked: EXEC replies the error as it is */
    CTX_COUNTED = 1u << 17,     /* run and counted alone, as observers or filters need it */
    CTX_MAY_BLOCK = 1u << 18,   /* an inner command may block: see block.h */
    CTX_WAKES = 1u << 14,       /* made a key ready for which a session is blocked */
    CTX_HOLDS_REPLY = 1u << 19, /* its reply waits: blockParams.holds_reply */
    CTX_BY_ENGINE = 1u << 20,   /* of a script of a module's engine: no errors of Lua's */
    CTX_ONE_SLOT = 1u << 21,    /* runs a script whose commands may use the keys of one slot */
    CTX_SLICED = 1u << 22,      /* runs as a job: job.h */
};

struct ctx {
    session *who;
    db *db;
    const slice *argv; /* argc of them; argv[0] is the name as sent */
    int argc;
    uint32_t flags;
    outbuf *out; /* the session's output, or a sink: see resp/reply_sink.h */
    /* 2 or 3: protocol of this command's replies, which may differ from the session's. */
    uint8_t proto;
    uint8_t origin;  /* enum ctxOrigin */
    uint8_t targets; /* enum propagateTarget: where changes of this command are propagated to */
    uint64_t gates_exempt; /* gates that are skipped, besides those that ignore its origin */
    const command *cmd;
    int64_t now_ms;    /* wall clock, constant during the command */
    storeLook look;    /* how its lookups see the keyspace: keyspaceLookOf() */
    uint64_t key_hash; /* storeHash() of the first key; only for commands whose first_key is 1 */
    request *request;  /* NULL if there are no RESP bytes (scripts, modules) */
    struct ctx *outer; /* the command that runs this one (EXEC, a script), usually NULL */
    /* The command that was being executed before: `outer`, or in a nested turn of the loop a
     * command of another session. */
    struct ctx *below;
    dbPosition at; /* set by a lookup for a following change of its key */
};

/* Initialises a ctx for a command run by `outer`: takes over session, database, protocol, origin,
 * targets, time and output. The caller sets argv and argc, changes fields as required, and calls
 * executeInner(). */
void ctxInitInner(ctx *c, ctx *outer);
/* Initialises a ctx for what a session does later than its request arrived (it was blocked): as a
 * top-level command, with all that executeRun() gives one. The arguments and the command are those
 * of `r`. */
void ctxInitLater(ctx *c, session *s, request *r, outbuf *out);
/* The session for which the outermost command runs: the client, also in calls of modules, which
 * have sessions of their own. */
static inline session *ctxClient(const ctx *c) {
    while (c->outer) c = c->outer;
    return c->who;
}
/* True for commands that were accepted before elsewhere: limits that protect the server from
 * clients do not apply. */
static inline bool ctxIsReplay(const ctx *c) { return c->origin >= ORIGIN_PRIMARY; }
/* True for commands of a stream (stream.h). */
static inline bool ctxIsStream(const ctx *c) {
    return c->origin == ORIGIN_PRIMARY || c->origin == ORIGIN_IMPORT;
}
/* True if the arguments that Valkey does not have are known: unless `extended-commands no` hides
 * them from clients. */
static inline bool ctxHasExtensions(const ctx *c) {
    return commandHasExtensions() || c->who->flags & SESSION_REPLAY;
}
/* HELLO: changes the protocol of the session and of its commands being executed. */
void ctxSetProto(ctx *c, int proto);

/* Keeps an argument: returns the block that argument `i` was read into (retained), or NULL: then
 * copy argv[i]. Release it with blobRelease(). */
blob *ctxTakeArg(ctx *c, int i);

/* Notifies the observers; slow path of ctxKeyChanged(). */
void ctxTellObservers(ctx *c, slice key, const keyEvent *event);
/* To be called once per changed key: dirty counter, watches, key events, tracking. `event` is the
 * keyspace event, NULL if none. */
ALWAYS_INLINE void ctxKeyChanged(ctx *c, slice key, const keyEvent *event) {
    c->flags |= CTX_CHANGED;
    engineHot.dirty++;
    if (unlikely(engineHot.observers)) ctxTellObservers(c, key, event);
}
/* Notifies observers of an event that leaves the value unchanged for WATCH and caches
 * ("xgroup-create"). Neither counts as a change nor propagates. */
void ctxNotifyEvent(ctx *c, slice key, const keyEvent *event);
static inline void ctxKeyEvent(ctx *c, slice key, const keyEvent *event) {
    if (engineHot.observers) ctxNotifyEvent(c, key, event);
}
/* Signals a change that does not concern a single key (FLUSHALL, SWAPDB): propagates, and adds `n`
 * to the dirty counter. */
void ctxDatasetChanged(ctx *c, uint64_t n);
/* Propagates `argv` instead of the request; the bytes are copied. Can be called several times to
 * propagate several commands. */
void ctxPropagateAs(ctx *c, int argc, const slice *argv);
/* Like ctxPropagateAs(), for another database than the selected one. */
void ctxPropagateIn(ctx *c, int db_id, int argc, const slice *argv);
/* Propagates the command to some of its targets (enum propagateTarget) alone, though it need not
 * have changed anything: PUBLISH goes to replicas and not to the AOF. Before what it is rewritten
 * to. */
void ctxPropagateTo(ctx *c, uint32_t targets);
/* Propagates nothing although the dataset has changed. */
void ctxPropagateNothing(ctx *c);
/* Marks argument `i` as secret: MONITOR and the command log redact it. Called by the command while
 * it runs. */
void ctxRedact(ctx *c, int i);
/* The same for the `count` arguments that follow each one that is `word`, from argument `first` on.
 * Called before anything is checked: requests with errors are logged, too. */
void ctxRedactAfter(ctx *c, int first, const char *word, int count);
/* Returns the marked arguments, as a value that only ctxSetSecrets() interprets; this sets them for
 * a ctx that continues later. */
uint64_t ctxSecrets(const ctx *c);
void ctxSetSecrets(ctx *c, uint64_t marked);
/* True if it was marked; for command observers, after the command. */
bool ctxArgIsSecret(const ctx *c, int i);

#endif
