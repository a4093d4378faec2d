/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Contexts of modules, and the release of what they own when they end. */
#include "module/context.h"

#include "base/base.h"
#include "engine/execute.h"
#include "engine/reply.h"
#include "engine/session.h"
#include "module/api_table.h"
#include "module/key.h"
#include "store/store.h"

void contextInit(ValkeyModuleCtx *x, module *m, ctx *run) {
    *x = (ValkeyModuleCtx){.get_api = apiGet, .module = m, .run = run};
    keysMayHaveChanged(); /* for the keys of other contexts */
    if (!run) return;
    x->out = run->out;
    x->proto = run->proto;
    x->cmd = run->cmd;
}

/* ------------------------------------------------------------------ what ends with a context */

static void (*free_procs[GARBAGE_KINDS])(ValkeyModuleCtx *x, void *what);

void contextSetFree(garbageKind kind, void (*proc)(ValkeyModuleCtx *x, void *what)) {
    hotCheck(kind < GARBAGE_KINDS);
    free_procs[kind] = proc;
}

void contextCollect(ValkeyModuleCtx *x, garbageKind kind, void *what) {
    if (!x || !(x->flags & CONTEXT_AUTO_MEMORY)) return;
    hotCheck(free_procs[kind]);
    hotCheck(x->garbage_count <= x->garbage_max);
    if (x->garbage_count == x->garbage_max) {
        x->garbage_max = x->garbage_max ? x->garbage_max * 2 : 16;
        x->garbage = memRealloc(x->garbage, (size_t)x->garbage_max * sizeof(garbage));
    }
    x->garbage[x->garbage_count++] = (garbage){kind, what};
}

bool contextForget(ValkeyModuleCtx *x, garbageKind kind, const void *what) {
    if (!x || !(x->flags & CONTEXT_AUTO_MEMORY)) return false;
    for (int i = x->garbage_count - 1; i >= 0; i--) {
        if (x->garbage[i].what != what || x->garbage[i].kind != kind) continue;
        x->garbage[i] = x->garbage[--x->garbage_count];
        return true;
    }
    return false;
}

/* A container that was never closed would leave the reply without an end. */
static void closePostponed(ValkeyModuleCtx *x) {
    contextMisuse(x, "ValkeyModule_ReplyWith*(VALKEYMODULE_POSTPONED_LEN) not matched by the same "
                     "number of ValkeyModule_SetReply*Len() calls.");
    while (x->postponed_count) {
        respDeferred mark = x->postponed[--x->postponed_count];
        if (x->out) respDeferEnd(x->out, mark, '*', x->proto, 0);
    }
    if (!x->out) return;
    outbufCutTo(x->out, (outmark){x->postponed_from});
    respError(x->out, SLICE("ERR the reply of the module has no end"));
    if (x->run) x->run->flags |= CTX_FAILED;
}

void contextClear(ValkeyModuleCtx *x) {
    hotCheck(x->get_api == apiGet);
    hotCheck(x->postponed_count >= 0);
    if (unlikely(x->postponed_count)) closePostponed(x);
    memFree(x->postponed);
    while (x->garbage_count) {
        garbage g = x->garbage[--x->garbage_count];
        free_procs[g.kind](x, g.what);
    }
    memFree(x->garbage);
    poolFree(&x->pool);
    memFree(x->positions);
    if (x->args) argArrayEnd(x->args);
    x->args = NULL;
}

/* ------------------------------------------------------------------ units without a client */

/* The session of what modules do without a client. */
static session no_client;

static session *noClient(void) {
    if (!no_client.carrier) {
        static const sessionCarrier carrier;
        sessionInit(&no_client, &carrier, SESSION_INTERNAL);
        sessionSetOrigin(&no_client, ORIGIN_MODULE);
        sessionSetAuthenticated(&no_client, NULL, true);
    }
    return &no_client;
}

typedef struct detachedPart {
    module *module;
    contextProc *part;
    void *arg;
} detachedPart;

static void runPart(ctx *c, void *arg) {
    const detachedPart *p = arg;
    hotCheck(c->who == &no_client);
    /* Within a call that is not propagated, nothing is. */
    if (c->below) c->targets &= c->below->targets;
    ValkeyModuleCtx x;
    contextInit(&x, p->module, c);
    x.out = NULL;
    p->part(&x, p->arg);
    contextClear(&x);
    ctxPropagateNothing(c); /* what is propagated has been queued */
}

void contextRun(module *m, int db_id, contextProc *part, void *arg) {
    hotCheck(threadIsMain());
    session *s = noClient();
    int before = s->db_id;
    if (sessionSelect(s, db_id) != OK) (void)sessionSelect(s, 0); /* databases are never fewer */
    detachedPart p = {m, part, arg};
    executeUnit(s, runPart, &p);
    (void)sessionSelect(s, before); /* it was valid */
}

void contextMisuse(const ValkeyModuleCtx *x, const char *format, ...) {
    str text = STR_EMPTY;
    va_list args;
    va_start(args, format);
    strAppendFormatV(&text, format, args);
    va_end(args);
    logWarning("API misuse detected in module %s: %s",
               x->module ? x->module->name : "that has not called Init()", strText(&text));
    strFree(&text);
}
