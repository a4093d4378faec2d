/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Functions of modules: contexts of threads, and the lock.
 *
 * A context of a thread has a session of its own for what it runs. It is made by any thread, so the
 * session is initialised later, by the first who has the lock. ANY_THREAD. */
#include <errno.h>

#include "base/base.h"
#include "engine/hot.h"
#include "engine/keyspace.h"
#include "module/api_table.h"
#include "module/block_client.h"
#include "module/generated/api.h"
#include "module/main_queue.h"
#include "module/thread_context.h"
#include "module/thread_lock.h"

typedef struct threadContext {
    ValkeyModuleCtx x; /* the first: modules have its address */
    ctx run;
    session who;
    bool is_ready; /* `who` is initialised */
} threadContext;

static threadContext *threadContextOf(ValkeyModuleCtx *x) {
    hotCheck(x->flags & CONTEXT_THREAD);
    hotCheck(x->run);
    return (threadContext *)x;
}

/* ------------------------------------------------------------------ use with the lock */

static void prepare(threadContext *t) {
    hotCheck(!t->is_ready);
    static const sessionCarrier carrier;
    uint64_t id = t->who.id;
    int32_t db_id = t->who.db_id;
    sessionInit(&t->who, &carrier, SESSION_INTERNAL);
    sessionSetOrigin(&t->who, ORIGIN_MODULE);
    t->who.id = id;
    (void)sessionSelect(&t->who, db_id); /* it was valid; databases are never fewer */
    t->run.origin = t->who.origin;
    t->run.targets = t->who.targets;
    t->is_ready = true;
}

/* The caller has the lock. */
static void use(threadContext *t) {
    hotCheck(threadLockIsMine());
    if (!t->is_ready) prepare(t);
    t->run.db = t->who.db;
    t->run.now_ms = engineHot.now_ms;
    t->run.look = keyspaceLookOf(&t->who, engineHot.now_ms);
}

bool threadContextUse(ValkeyModuleCtx *x) {
    if (!threadLockIsMine()) {
        contextMisuse(x, "a thread uses the dataset without ValkeyModule_ThreadSafeContextLock().");
        return false;
    }
    use(threadContextOf(x));
    return true;
}

/* ------------------------------------------------------------------ making and freeing */

static threadContext *newContext(module *m) {
    threadContext *t = memNew(threadContext);
    t->who = (session){.flags = SESSION_INTERNAL, .origin = ORIGIN_MODULE, .proto = 2};
    t->run = (ctx){.who = &t->who, .out = &t->who.out, .proto = 2, .origin = ORIGIN_MODULE};
    t->x = (ValkeyModuleCtx){
        .get_api = apiGet, .module = m, .run = &t->run, .proto = 2, .flags = CONTEXT_THREAD};
    threadLockOffer();
    return t;
}

ValkeyModuleCtx *apiGetThreadSafeContext(ValkeyModuleBlockedClient *bc) {
    threadContext *t = newContext(bc ? bc->module : NULL);
    if (bc) {
        (void)__atomic_add_fetch(&bc->refs, 1, __ATOMIC_RELAXED);
        t->who.id = bc->client_id;
        t->who.db_id = bc->db_id;
        t->x.blocked = bc;
        t->x.out = &bc->out;
        t->x.proto = bc->proto;
        t->x.flags |= CONTEXT_HAS_CLIENT;
    }
    return &t->x;
}

ValkeyModuleCtx *apiGetDetachedThreadSafeContext(ValkeyModuleCtx *ctx) {
    return &newContext(ctx ? ctx->module : NULL)->x;
}

static void freeContext(void *arg) {
    threadContext *t = arg;
    blockedClient *b = t->x.blocked;
    hotCheck(t->x.flags & CONTEXT_THREAD);
    contextClear(&t->x);
    if (t->is_ready) sessionClear(&t->who);
    memFree(t);
    if (b) blockClientRelease(b);
}

void apiFreeThreadSafeContext(ValkeyModuleCtx *ctx) {
    if (!ctx) return;
    if (!(ctx->flags & CONTEXT_THREAD)) {
        contextMisuse(ctx,
                      "ValkeyModule_FreeThreadSafeContext() of a context that is no thread's.");
        return;
    }
    threadContext *t = threadContextOf(ctx);
    bool needs_lock = t->is_ready || ctx->garbage_count;
    if (needs_lock && !threadLockIsMine()) {
        mainQueueAdd(freeContext, t);
    } else {
        freeContext(t);
    }
}

/* ------------------------------------------------------------------ the lock */

/* The context need not be that which is used afterwards. */
static void useIfThread(ValkeyModuleCtx *x) {
    if (x && x->flags & CONTEXT_THREAD) use(threadContextOf(x));
}

void apiThreadSafeContextLock(ValkeyModuleCtx *ctx) {
    threadLockTake();
    useIfThread(ctx);
}

int apiThreadSafeContextTryLock(ValkeyModuleCtx *ctx) {
    if (!threadLockTry()) {
        errno = EBUSY;
        return VALKEYMODULE_ERR;
    }
    useIfThread(ctx);
    return VALKEYMODULE_OK;
}

void apiThreadSafeContextUnlock(ValkeyModuleCtx *ctx) {
    if (!threadLockRelease() && ctx)
        contextMisuse(ctx, "a thread unlocks the server, which it has not locked.");
}
