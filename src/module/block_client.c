/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Blocked clients. Invariant: b->who is NULL, or a session whose wait has the state `b`. A handle
 * is freed after the module has unblocked it; a handle that waits for keys is freed when its wait
 * ends. */
#include "module/block_client.h"

#include "base/base.h"
#include "engine/deliver.h"
#include "engine/execute.h"
#include "engine/propagate.h"
#include "engine/reply.h"
#include "engine/stats.h"
#include "module/main_queue.h"
#include "module/timers.h"
#include "store/store.h"

/* Instead of leaving the client without a reply. */
static const slice NO_REPLY = SLICE("ERR the module has unblocked the client without a reply");
static const slice TIMED_OUT = SLICE("ERR the command of the module has timed out");

/* ------------------------------------------------------------------ handles */

blockedClient *blockClientNew(ValkeyModuleCtx *x) {
    hotCheck(x->module);
    blockedClient *b = memNew(blockedClient);
    b->module = x->module;
    b->refs = 1;
    b->proto = x->proto;
    b->blocked_at = clockTicks();
    outbufInit(&b->out);
    if (x->run) {
        b->client_id = x->run->who->id;
        b->db_id = x->run->who->db_id;
    }
    x->module->blocked_clients++;
    return b;
}

void blockClientRelease(blockedClient *b) {
    hotCheck(__atomic_load_n(&b->refs, __ATOMIC_RELAXED) > 0);
    if (__atomic_sub_fetch(&b->refs, 1, __ATOMIC_ACQ_REL)) return;
    outbufClear(&b->out);
    strFree(&b->errors);
    memFree(b->keys);
    memFree(b);
}

void blockClientNoteError(blockedClient *b, slice code) {
    hotCheck(code.len);
    strAppendSlice(&b->errors, code);
    strAppendByte(&b->errors, '\n');
}

/* ------------------------------------------------------------------ callbacks without a client */

static void callFree(ValkeyModuleCtx *x, void *arg) {
    blockedClient *b = arg;
    x->blocked = b;
    if (b->gone) x->flags |= CONTEXT_DISCONNECTED;
    hotCheck(!b->who);
    b->free_private(x, b->private);
}

static void callDisconnected(ValkeyModuleCtx *x, void *arg) {
    blockedClient *b = arg;
    x->blocked = b;
    hotCheck(!b->replied);
    b->disconnected(x, b);
}

/* The handle ends. */
static void finish(blockedClient *b) {
    hotCheck(!b->who);
    hotCheck(b->module->blocked_clients > 0);
    if (b->private && b->free_private) contextRun(b->module, b->db_id, callFree, b);
    if (b->ready_key) moduleStringRelease(b->ready_key);
    b->ready_key = NULL;
    if (b->args) argArrayEnd(b->args);
    b->args = NULL;
    for (size_t i = 0; i < COUNT_OF(b->login); i++) {
        if (b->login[i]) moduleStringRelease(b->login[i]);
        b->login[i] = NULL;
    }
    b->module->blocked_clients--;
    blockClientRelease(b);
}

static bool isQueued(const blockedClient *b) {
    return __atomic_load_n(&b->queued, __ATOMIC_ACQUIRE);
}

/* free_state of the wait. */
static void waitEnded(void *state) {
    blockedClient *b = state;
    hotCheck(b->who);
    b->who = NULL;
    if (!b->replied && b->disconnected) contextRun(b->module, b->db_id, callDisconnected, b);
    b->gone = !b->replied;
    if (b->on_keys && !isQueued(b)) finish(b);
}

/* ------------------------------------------------------------------ callbacks that reply */

uint64_t blockClientWork(const blockedClient *b) {
    return __atomic_load_n(&b->work, __ATOMIC_RELAXED);
}

/* Calls one for the client of `c`. */
static int callBack(blockedClient *b, ctx *c, ValkeyModuleCmdFunc proc, uint32_t flag) {
    hotCheck(b->who == c->who);
    ValkeyModuleCtx x;
    contextInit(&x, b->module, c);
    x.flags = CONTEXT_HAS_CLIENT | flag;
    x.blocked = b;
    x.ready_key = b->ready_key;
    x.args = argArrayNew(c->argv, c->argc);
    int result = proc(&x, x.args->argv, c->argc);
    contextClear(&x);
    ctxPropagateNothing(c); /* what the module wants propagated has been queued */
    return result;
}

/* Appends what threads have replied, and counts the errors in it. */
static void appendReplies(blockedClient *b, ctx *c) {
    outbufMoveAll(c->out, &b->out);
    slice rest = strSlice(&b->errors);
    if (rest.len) c->flags |= CTX_FAILED;
    while (rest.len) {
        const char *end = memchr(rest.ptr, '\n', rest.len);
        hotCheck(end);
        size_t len = (size_t)(end - rest.ptr);
        statsCountError(sliceMake(rest.ptr, len));
        rest = sliceMake(rest.ptr + len + 1, rest.len - len - 1);
    }
    strFree(&b->errors);
}

/* WAIT and WAITAOF wait for what threads have changed for the client. */
static void noteChanges(session *s) {
    if (!engineHot.sinks) return;
    propagateNoteAll(s);
}

/* The reply at the end of the wait. */
static void replyEnd(ctx *c, ValkeyModuleCmdFunc proc, uint32_t flag, slice without) {
    blockedClient *b = blockState(c);
    check(b);
    size_t before = outbufPending(c->out);
    b->replied = true;
    if (proc) (void)callBack(b, c, proc, flag); /* its result has no meaning */
    blockAddWork(c, blockClientWork(b));        /* the callback may have added to it */
    appendReplies(b, c);
    if (outbufPending(c->out) == before && !b->holds_reply) replyError(c, without);
    noteChanges(c->who);
    sessionCheckOutput(c->who);
    ctxPropagateNothing(c);
}

static void replyFinished(ctx *c) {
    replyEnd(c, ((const blockedClient *)blockState(c))->reply, CONTEXT_REPLY, NO_REPLY);
}

static void replyTimedOut(ctx *c) {
    replyEnd(c, ((const blockedClient *)blockState(c))->timed_out, CONTEXT_TIMEOUT, TIMED_OUT);
}

/* A timer that was due before the timeout may unblock the client, although both are late. */
static bool mayTimeOut(const void *state) {
    const blockedClient *b = state;
    return !isQueued(b) && !timersAreDue(b->late_us);
}

/* ------------------------------------------------------------------ waiting for keys */

/* The type of a value whose creation is signalled to those who wait for the key; else -1. */
static int signalType(const robj *o) {
    int type = o ? (int)objectType(o) : -1;
    bool signals =
        type == TYPE_LIST || type == TYPE_ZSET || type == TYPE_STREAM || type == TYPE_MODULE;
    return signals ? type : -1;
}

/* Of lists and sorted sets only the creation is signalled. */
static bool signalsChanges(int type) { return type == TYPE_STREAM || type == TYPE_MODULE; }

static void noteKeys(blockedClient *b, const ctx *c, const blockParams *params) {
    hotCheck(!b->keys);
    b->key_count = params->key_count;
    b->keys = memNewArray(blockedKey, (size_t)params->key_count);
    for (int i = 0; i < b->key_count; i++) {
        slice key = params->keys[i];
        b->keys[i].hash = storeHash(key);
        b->keys[i].type = signalType(dbFindUncounted(c->db, key, b->keys[i].hash, c->look));
    }
}

/* True if a command has signalled the key: it was created, or is of a type whose changes are. */
static bool isSignalled(blockedClient *b, const blockQuery *q) {
    uint64_t hash = storeHash(q->key);
    int before = -1, type = signalType(q->value);
    for (int i = 0; i < b->key_count; i++) {
        if (b->keys[i].hash != hash) continue;
        before = b->keys[i].type;
        b->keys[i].type = type;
    }
    return type >= 0 && (type != before || signalsChanges(type));
}

/* True if the module is to be asked about the key. */
static bool keyIsReady(const blockQuery *q) {
    blockedClient *b = q->state;
    bool ready = isSignalled(b, q) || (q->value && b->signalled);
    if (!q->value) ready = b->on_deletion;
    b->signalled = false;
    if (!ready) return false;
    if (b->ready_key) moduleStringRelease(b->ready_key);
    b->ready_key = moduleStringNew(q->key);
    return true;
}

static void waitAgain(blockedClient *b, ctx *c) {
    blockParams params = {.kind = BLOCK_KEYS, .timed_out = replyTimedOut};
    hotCheck(b->on_keys);
    blockStart(c, &params); /* the wait continues as it was */
}

bool blockClientContinue(ctx *c) {
    blockedClient *b = blockState(c);
    if (!b || !b->on_keys) return false;
    if (b->reply && callBack(b, c, b->reply, CONTEXT_REPLY) == VALKEYMODULE_OK) {
        b->replied = true;
        executeCountWork(c, true, blockClientWork(b)); /* Valkey counts two calls */
    } else {
        waitAgain(b, c);
    }
    return true;
}

/* ------------------------------------------------------------------ beginning and end */

void blockClientWait(blockedClient *b, ctx *c, blockParams params) {
    hotCheck(!b->who);
    hotCheck(b->refs > 0);
    b->who = c->who;
    b->on_keys = params.kind == BLOCK_KEYS;
    blockedClient *before = blockState(c);
    if (before) { /* authentication: another callback blocks the client again */
        before->who = NULL;
        blockSetState(c, b);
        blockStart(c, &(blockParams){.kind = params.kind});
        return;
    }
    params.not_by_user = !b->timed_out;
    params.holds_reply = b->holds_reply;
    params.timed_out = replyTimedOut;
    params.may_time_out = mayTimeOut;
    if (!b->on_keys && !b->on_auth) params.finish = replyFinished;
    if (b->on_keys) {
        params.any_type = true;
        params.ready = keyIsReady;
        b->on_deletion = params.when_gone;
        noteKeys(b, c, &params);
    }
    params.state = b;
    params.free_state = waitEnded;
    blockStart(c, &params);
}

void blockClientOwnArgs(ValkeyModuleCtx *x, blockedClient *b) {
    hotCheck(!b->holds_reply);
    if (x->flags & (CONTEXT_REPLY | CONTEXT_TIMEOUT)) return; /* it is refused */
    x->blocked = b;
    for (int i = 0; x->args && i < x->args->count; i++) moduleStringOwn(x->args->argv[i]);
}

void blockClientKeepArgs(ValkeyModuleCtx *x) {
    blockedClient *b = x->blocked;
    if (likely(!b)) return;
    b->args = x->args;
    x->args = NULL;
    if (!b->who) return;
    (void)__atomic_add_fetch(&b->work, clockTicks() - b->blocked_at, __ATOMIC_RELAXED);
}

static void finishNow(void *arg) {
    blockedClient *b = arg;
    hotCheck(b->queued);
    session *s = b->who;
    if (s && b->on_keys) {
        (void)blockEnd(s, SLICE("")); /* it is blocked */
    } else if (s && !blockFinishNow(s)) {
        blockForget(s); /* it is closing */
    }
    if (!s) b->gone = true; /* there is none since its time was up, or never was */
    finish(b);
}

void blockClientFinishSoon(blockedClient *b) {
    if (__atomic_exchange_n(&b->queued, true, __ATOMIC_ACQ_REL)) return;
    mainQueueAdd(finishNow, b);
}
