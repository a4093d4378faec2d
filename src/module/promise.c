/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Promises. Invariant: a promise is in the list if and only if its session is blocked; the list has
 * a reference to it. */
#include "module/promise.h"

#include "base/base.h"
#include "engine/block.h"
#include "engine/deliver.h"
#include "module/call_reply.h"
#include "module/generated/api.h"

/* Ids that neither clients nor the sessions of other calls have. */
#define PROMISE_ID_FIRST (UINT64_C(3) << 61)

static list waiting;

static void started(void) {
    if (!waiting.head.next) listInit(&waiting);
}

static void resumed(session *s);

promise *promiseNew(module *owner) {
    static const sessionCarrier carrier = {.resume = resumed};
    promise *p = memNew(promise);
    p->refs = 1;
    p->owner = owner;
    sessionInit(&p->who, &carrier, SESSION_INTERNAL);
    static uint64_t promises;
    p->who.id = PROMISE_ID_FIRST + promises++; /* filters take a caller of id 0 for none */
    return p;
}

promise *promiseKeep(promise *p) {
    hotCheck(p->refs > 0);
    p->refs++;
    return p;
}

void promiseRelease(promise *p) {
    hotCheck(p->refs > 0);
    if (--p->refs) return;
    check(!listHas(&p->node));
    sessionClear(&p->who);
    memFree(p);
}

void promiseBegin(promise *p) {
    hotCheck(p->who.blocked);
    started();
    listAppend(&waiting, &promiseKeep(p)->node);
}

/* ------------------------------------------------------------------ end */

typedef struct arrival {
    promise *p;
    char *bytes;
    size_t len;
} arrival;

static void deliver(ValkeyModuleCtx *x, void *arg) {
    arrival *a = arg;
    promise *p = a->p;
    if (p->has_handlers) {
        replyHandlersCall(&p->handlers, p->reply_context, x, sliceMake(a->bytes, a->len));
        return;
    }
    ValkeyModuleCallReply *reply = callReplyNew(NULL, a->bytes, a->len, p->who.proto, p->exact);
    a->bytes = NULL; /* the reply has them, and the module the reply */
    p->done(x, reply, p->private);
}

/* The session has its reply. */
static void resumed(session *s) {
    promise *p = CONTAINER_OF(s, promise, who);
    hotCheck(listHas(&p->node));
    listRemove(&waiting, &p->node);
    if (p->owner && (p->done || p->has_handlers)) {
        arrival a = {.p = p};
        a.bytes = sessionTakeReply(s, &a.len);
        contextRun(p->owner, s->db_id, deliver, &a);
        memFree(a.bytes);
    }
    promiseRelease(p);
}

/* True if a promise is at this address: a module may have kept the handle of one that has ended. */
static bool waits(const promise *p) {
    started();
    for (listNode *n = listFirst(&waiting); n; n = listNext(&waiting, n)) {
        if (LIST_OWNER(n, promise, node) == p) return true;
    }
    return false;
}

bool promiseAbort(promise *p) {
    if (!p || !waits(p)) return false;
    listRemove(&waiting, &p->node);
    blockForget(&p->who);
    promiseRelease(p);
    return true;
}

void promisesRemove(module *m) {
    started();
    for (listNode *n = listFirst(&waiting), *next; n; n = next) {
        next = listNext(&waiting, n);
        promise *p = LIST_OWNER(n, promise, node);
        if (p->owner == m) (void)promiseAbort(p); /* it is in the list */
    }
}

/* ------------------------------------------------------------------ functions of modules */

void apiCallReplyPromiseSetUnblockHandler(ValkeyModuleCallReply *reply,
                                          ValkeyModuleOnUnblocked on_unblock, void *private_data) {
    promise *p = callReplyPromise(reply);
    if (!p) return;
    p->done = on_unblock;
    p->private = private_data;
}

int apiCallReplyPromiseAbort(ValkeyModuleCallReply *reply, void **private_data) {
    promise *p = callReplyPromise(reply);
    if (!promiseAbort(p)) return VALKEYMODULE_ERR;
    if (private_data) *private_data = p->private;
    return VALKEYMODULE_OK;
}
