/* SPDX-License-Identifier: BSD-3-Clause
 *
 * ctx: all a command may touch. No socket, no loop, no other client. Lives on the stack of the one
 * who runs the command; everything in it is borrowed for the call. */
#ifndef ENGINE_CTX_H
#define ENGINE_CTX_H

#include <stdbool.h>
#include <stdint.h>

#include "base/blob.h"
#include "engine/command.h"
#include "engine/hot.h"
#include "engine/session.h"
#include "resp/resp.h"
#include "store/look.h"

enum ctxFlag {
    CTX_IN_MULTI = 1u << 2, /* run by EXEC */
    CTX_FAILED = 1u << 3,   /* an error was replied */
    CTX_CHANGED = 1u << 4,  /* ctxKeyChanged() was called, or the dataset changed otherwise */
    CTX_NO_PROPAGATE = 1u << 5,
    CTX_REWRITTEN = 1u << 6, /* ctxPropagateAs() was called */
    CTX_REJECTED = 1u << 7,  /* refused before it ran */
    CTX_NOT_RUN = 1u << 8,   /* refused, kept for EXEC, or waiting */
    CTX_ADMISSION = 1u << 9, /* the gates are being asked: an error refuses the request */
    CTX_HELD = 1u << 10,     /* a gate keeps the request for later: it has not been seen yet */
    CTX_SECRETS = 1u << 11,  /* ctxRedact() was called */
    CTX_MEASURED = 1u << 12, /* its time was taken by itself */
    CTX_WOKEN = 1u << 13,    /* runs again after it had to wait */
    CTX_DELIVERS = 1u << 15, /* output for its own session waits for the end of the reply */
    CTX_WAKES = 1u << 14,    /* made a key ready that somebody waits for */
};

struct ctx {
    session *who;
    db *db;
    const slice *argv; /* argc of them; argv[0] is the name as sent */
    int argc;
    uint32_t flags;
    outbuf *out;           /* bytes of the session, or a sink: see resp/reply_sink.h */
    uint8_t proto;         /* 2 or 3: of the replies of this command, whatever the session speaks */
    uint8_t origin;        /* enum ctxOrigin */
    uint8_t targets;       /* enum propagateTarget: who may get what this command changes */
    uint32_t gates_exempt; /* gates that are not asked, beside those that do not ask its origin */
    const command *cmd;
    int64_t now_ms;    /* wall clock, frozen for this command */
    storeLook look;    /* how its lookups see the keyspace: keyspaceLookOf() */
    uint64_t key_hash; /* storeHash() of the first key; only for commands whose first_key is 1 */
    request *request;  /* NULL when there are no RESP bytes (script, module) */
    struct ctx *outer; /* the command that runs this one (EXEC, a script), NULL for most */
    struct ctx
        *below; /* what was being executed when this began: `outer`, or in a nested turn of the loop
                        * a command of another session */
    dbPosition at; /* written by a lookup for a change of its key, read by that change */
};

/* Where the command comes from that changes nothing itself but what it runs: `c` takes over `outer`'s session,
 * database, protocol, origin, targets, time and output. The caller sets argv and argc, and what shall
 * differ; then executeInner(). */
void ctxInitInner(ctx *c, ctx *outer);
/* True for what was accepted before, elsewhere: no limit that protects this server from clients applies. */
static inline bool ctxIsReplay(const ctx *c) { return c->origin >= ORIGIN_PRIMARY; }
/* HELLO: changes the protocol of the session, and of the commands of it that are being executed. */
void ctxSetProto(ctx *c, int proto);

/* An argument for keeps: the large block itself when argument `i` was read into one (retained), else NULL:
 * copy from argv[i]. Release with blobRelease(). */
blob *ctxTakeArg(ctx *c, int i);

/* Tells the observers; slow path of ctxKeyChanged(). */
void ctxTellObservers(ctx *c, slice key, const char *event);
/* One call per changed key: dirty count, watchers, key events, tracking. `event` is the keyspace event's
 * name ("set"), NULL for none. */
static inline void ctxKeyChanged(ctx *c, slice key, const char *event) {
    c->flags |= CTX_CHANGED;
    engineHot.dirty++;
    if (engineHot.observers) ctxTellObservers(c, key, event);
}
/* Tells of an event that WATCH and caches do not see, for the value is as it was: "xgroup-create". Neither counted nor
 * propagated by itself. */
void ctxTellEvent(ctx *c, slice key, const char *event);
static inline void ctxKeyEvent(ctx *c, slice key, const char *event) {
    if (engineHot.observers) ctxTellEvent(c, key, event);
}
/* The dataset changed in a way no single key tells (FLUSHALL, SWAPDB): propagate, count `n` changes. */
void ctxDatasetChanged(ctx *c, uint64_t n);
/* Propagates `argv` instead of the request; the bytes are copied. Several calls propagate several. */
void ctxPropagateAs(ctx *c, int argc, const slice *argv);
/* Propagates nothing although the dataset changed. */
void ctxPropagateNothing(ctx *c);
/* Argument `i` is a secret: MONITOR and the command log hide it. By the command itself, while it runs. */
void ctxRedact(ctx *c, int i);
/* True when it was marked; for seers, behind the command. */
bool ctxArgIsSecret(const ctx *c, int i);

#endif
