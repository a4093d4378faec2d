/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Functions of modules: serving other clients during long work. On the main thread this is a nested
 * turn of the event loop; a thread that has the lock lends it to the main thread for one turn, to
 * which the rules of nested turns apply. Meanwhile commands of clients are refused, except those
 * that may run while a script or module is busy.
 *
 * Main thread, or a thread that has the lock. */
#include <string.h>

#include "base/base.h"
#include "engine/keyspace.h"
#include "engine/lifecycle.h"
#include "engine/reply.h"
#include "engine/tick.h"
#include "module/generated/api.h"
#include "module/module.h"
#include "module/thread_context.h"
#include "module/thread_lock.h"
#include "persist/persist.h"
#include "script/run.h"
#include "store/keyspace.h"

enum { SERVE_EVERY_US = 1000 };

static struct {
    bool serving;     /* calls from within are ignored */
    const char *text; /* of the module; NULL: the usual one */
    int64_t served_us;
} now;

/* ------------------------------------------------------------------ what clients get */

static bool isShutdown(const commandSpec *spec) { return !strcmp(spec->name, "shutdown"); }

static bool selectsOthers(const commandSpec *spec) {
    return !(spec->flags & CMD_ALLOW_BUSY) || isShutdown(spec);
}

static gateVerdict refuseWhileBusy(ctx *c) {
    if (isShutdown(c->cmd->spec) && c->argc == 2 && ctxArgIs(c, 1, "nosave")) return GATE_PASS;
    if (now.text) {
        replyErrorFormat(c, "BUSY %s", now.text);
    } else {
        replyError(c, SLICE("BUSY Valkey is busy running a module command."));
    }
    return GATE_REFUSED;
}

const gate moduleBusyGate = {.name = "busy module",
                             .selects = selectsOthers,
                             .admit = refuseWhileBusy,
                             .origins = GATE_FOR_CLIENTS};

/* ------------------------------------------------------------------ serving */

/* True if a load waits for the module: contexts of what reads values run nothing. */
static bool isInLoad(const ValkeyModuleCtx *x) {
    return engineHot.loading || (!x->run && engineLoadsBeside());
}

/* A load refuses clients itself. */
static void serve(ValkeyModuleCtx *x) {
    bool loads = isInLoad(x), arms = !loads;
    hotCheck(now.serving);
    if (arms) gateArm(&moduleBusyGate, true);
    if (threadLockIsMain()) {
        if (loads) {
            persistServeInLoad();
        } else {
            engineServe();
        }
    } else {
        struct ctx *before = engineHot.current;
        engineHot.current = x->run; /* as if the main thread were within its work */
        bool forbidden = keyspaceForbidChanges(true);
        threadLockLend();
        (void)keyspaceForbidChanges(forbidden);
        engineHot.current = before;
    }
    if (arms) gateArm(&moduleBusyGate, false);
}

/* True if clients have waited long enough to be told that the server is busy. */
static bool isDue(const ValkeyModuleCtx *x, int64_t now_us) {
    if (isInLoad(x)) return now_us - now.served_us >= 1000000 / tickHz();
    int64_t threshold_ms = scriptBusyReplyThreshold(); /* 0: clients are never served */
    return threshold_ms && clockWallMs() - x->run->now_ms >= threshold_ms &&
           now_us - now.served_us >= SERVE_EVERY_US;
}

void apiYield(ValkeyModuleCtx *ctx, int flags, const char *busy_reply) {
    if (now.serving || (!ctx->run && !isInLoad(ctx))) return;
    if (ctx->flags & CONTEXT_THREAD && !threadLockIsMine()) return;
    int64_t now_us = clockMonoUs();
    if (!isDue(ctx, now_us)) return;
    now.serving = true;
    if (flags & VALKEYMODULE_YIELD_FLAG_CLIENTS) {
        now.text = busy_reply;
        serve(ctx);
    } else if (threadLockIsMain()) {
        engineAnswerNodes();
    }
    now.serving = false;
    now.served_us = clockMonoUs();
}
