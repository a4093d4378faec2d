/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Functions of modules: blocking clients and unblocking them.
 *
 * Main thread, or a thread that has the lock; UnblockClient(), AbortBlock() and what reads a
 * handle: any thread. */
#include <errno.h>

#include "base/base.h"
#include "engine/hot.h"
#include "engine/reply.h"
#include "module/block_client.h"
#include "module/commands.h"
#include "module/generated/api.h"
#include "module/thread_context.h"

/* ------------------------------------------------------------------ blocking */

/* Why a command cannot block its client; NULL: it can. */
static const char *refusalOf(const ValkeyModuleCtx *x, bool on_auth) {
    const ctx *c = x->run;
    if (x->flags & (CONTEXT_REPLY | CONTEXT_TIMEOUT))
        return "ERR Blocking module command called from a Reply callback context";
    if (x->flags & CONTEXT_AUTH && !on_auth)
        return "ERR Clients undergoing module based authentication can only be blocked on auth";
    if (!blockIsDenied(c)) return NULL;
    for (const ctx *at = c; at; at = at->outer) {
        if (at->origin == ORIGIN_SCRIPT)
            return "ERR Blocking module command called from Lua script";
    }
    if (c->flags & CTX_IN_MULTI) return "ERR Blocking module command called from transaction";
    return "ERR Blocking module command called from a context that cannot block";
}

/* A handle for the client of the context, which may have one at a time. NULL: errno. */
static blockedClient *newHandle(ValkeyModuleCtx *x) {
    const ctx *c = x->run;
    errno = 0;
    if (!c || !x->module || !(x->flags & CONTEXT_HAS_CLIENT) || x->flags & CONTEXT_THREAD) {
        errno = EINVAL;
    } else if (ctxIsReplay(c) || (x->blocked && !(x->flags & (CONTEXT_REPLY | CONTEXT_TIMEOUT)))) {
        errno = ENOTSUP;
    }
    return errno ? NULL : blockClientNew(x);
}

/* The command that a callback of a keyspace event has interrupted, if its client can be blocked,
 * which is possible once. NULL: errno. */
static ctx *interruptedCommand(const ValkeyModuleCtx *x) {
    ctx *c = x->run->below;
    bool is_plain = c && !c->outer && !(c->flags & CTX_WOKEN) && !blockIsDenied(c);
    errno = !is_plain ? EINVAL : c->who->blocked ? ENOTSUP : 0;
    return errno ? NULL : c;
}

/* A handle for the client of that command. */
static blockedClient *newHeldHandle(ValkeyModuleCtx *x, const ctx *c) {
    blockedClient *b = blockClientNew(x);
    hotCheck(!b->who);
    b->holds_reply = true;
    b->client_id = c->who->id;
    b->db_id = c->who->db_id;
    b->proto = c->proto;
    return b;
}

/* Blocks the client for the handle; if that is impossible, replies why, and the handle never gets a
 * client. */
static void block(ValkeyModuleCtx *x, blockedClient *b, blockParams *params, long long timeout_ms) {
    hotCheck(b->module == x->module);
    const char *refused = b->holds_reply ? NULL : refusalOf(x, b->on_auth);
    if (!b->holds_reply) blockClientOwnArgs(x, b);
    /* A timer of the same length that the module has created expires before. */
    int64_t from_ms = clockWallMs() + 1;
    if (!refused && timeout_ms > INT64_MAX - from_ms) refused = "ERR timeout is out of range";
    if (refused) {
        if (!b->holds_reply) replyError(x->run, sliceOf(refused));
        return;
    }
    if (timeout_ms) {
        params->deadline_ms = from_ms + timeout_ms;
        if (timeout_ms < INT64_MAX / 2000) b->late_us = clockMonoUs() + (timeout_ms + 1) * 1000;
    }
    if (b->holds_reply) {
        blockClientWait(b, x->run->below, *params);
        return;
    }
    blockClientWait(b, x->run, *params);
}

blockedClient *apiBlockClient(ValkeyModuleCtx *ctx, ValkeyModuleCmdFunc reply_callback,
                              ValkeyModuleCmdFunc timeout_callback,
                              void (*free_privdata)(ValkeyModuleCtx *, void *),
                              long long timeout_ms) {
    blockedClient *b;
    if (ctx->flags & CONTEXT_NOTIFICATION) {
        const struct ctx *c = interruptedCommand(ctx);
        b = c ? newHeldHandle(ctx, c) : NULL;
    } else {
        b = newHandle(ctx);
    }
    if (!b) return NULL;
    b->reply = reply_callback;
    b->timed_out = timeout_callback;
    b->free_private = free_privdata;
    blockParams params = {.kind = BLOCK_MODULE};
    block(ctx, b, &params, timeout_ms);
    return b;
}

enum { FEW_KEYS = 8 };

blockedClient *apiBlockClientOnKeysWithFlags(ValkeyModuleCtx *ctx,
                                             ValkeyModuleCmdFunc reply_callback,
                                             ValkeyModuleCmdFunc timeout_callback,
                                             void (*free_privdata)(ValkeyModuleCtx *, void *),
                                             long long timeout_ms, ValkeyModuleString **keys,
                                             int numkeys, void *privdata, int flags) {
    blockedClient *b = newHandle(ctx);
    if (!b) return NULL;
    b->reply = reply_callback;
    b->timed_out = timeout_callback;
    b->free_private = free_privdata;
    b->private = privdata;
    slice few[FEW_KEYS], *names = moduleStringSlices(keys, numkeys, few, FEW_KEYS);
    blockParams params = {.kind = BLOCK_KEYS,
                          .keys = names,
                          .key_count = numkeys,
                          .when_gone = flags & VALKEYMODULE_BLOCK_UNBLOCK_DELETED};
    block(ctx, b, &params, timeout_ms);
    if (names != few) memFree(names);
    return b;
}

blockedClient *apiBlockClientOnKeys(ValkeyModuleCtx *ctx, ValkeyModuleCmdFunc reply_callback,
                                    ValkeyModuleCmdFunc timeout_callback,
                                    void (*free_privdata)(ValkeyModuleCtx *, void *),
                                    long long timeout_ms, ValkeyModuleString **keys, int numkeys,
                                    void *privdata) {
    return apiBlockClientOnKeysWithFlags(ctx, reply_callback, timeout_callback, free_privdata,
                                         timeout_ms, keys, numkeys, privdata,
                                         VALKEYMODULE_BLOCK_UNBLOCK_DEFAULT);
}

blockedClient *apiBlockClientOnAuth(ValkeyModuleCtx *ctx, ValkeyModuleAuthCallback reply_callback,
                                    void (*free_privdata)(ValkeyModuleCtx *, void *)) {
    if (!(ctx->flags & CONTEXT_AUTH)) {
        if (ctx->run && ctx->flags & CONTEXT_HAS_CLIENT)
            replyError(ctx->run, SLICE("ERR Module blocking client on auth when not currently "
                                       "undergoing module authentication"));
        return NULL;
    }
    blockedClient *b = newHandle(ctx);
    if (!b) return NULL;
    b->auth_reply = reply_callback;
    b->on_auth = true;
    b->free_private = free_privdata;
    blockParams params = {.kind = BLOCK_MODULE};
    block(ctx, b, &params, 0);
    if (!b->who) ctx->flags |= CONTEXT_AUTH_REPLIED;
    return b;
}

static void noteSignal(session *s, void *arg) {
    (void)arg;
    if (!commandsOf(blockCommand(s))) return; /* BLPOP and the like, which looks itself */
    blockedClient *b = blockStateOf(s);
    hotCheck(b->who == s);
    b->signalled = true;
}

void apiSignalKeyAsReady(ValkeyModuleCtx *ctx, ValkeyModuleString *key) {
    const struct ctx *c = contextUse(ctx);
    if (!c) return;
    blockFilter of_key = {
        .kind = BLOCK_KEYS, .db_id = c->who->db_id, .slot = -1, .key = moduleStringSlice(key)};
    blockEach(&of_key, noteSignal, NULL);
    blockNotifyKey(of_key.db_id, of_key.key);
}

/* ------------------------------------------------------------------ unblocking */

int apiUnblockClient(ValkeyModuleBlockedClient *bc, void *privdata) {
    if (!bc || (bc->on_keys && !bc->timed_out)) {
        errno = bc ? ENOTSUP : EINVAL;
        return VALKEYMODULE_ERR;
    }
    bc->private = privdata;
    blockClientFinishSoon(bc);
    return VALKEYMODULE_OK;
}

int apiAbortBlock(ValkeyModuleBlockedClient *bc) {
    if (!bc) {
        errno = EINVAL;
        return VALKEYMODULE_ERR;
    }
    bc->reply = NULL;
    bc->auth_reply = NULL;
    bc->disconnected = NULL;
    return apiUnblockClient(bc, NULL); /* the private data is the module's again */
}

void apiSetDisconnectCallback(ValkeyModuleBlockedClient *bc, ValkeyModuleDisconnectFunc callback) {
    if (bc) bc->disconnected = callback;
}

/* ------------------------------------------------------------------ the handle */

void *apiBlockClientGetPrivateData(ValkeyModuleBlockedClient *blocked_client) {
    return blocked_client ? blocked_client->private : NULL;
}

void apiBlockClientSetPrivateData(ValkeyModuleBlockedClient *blocked_client, void *private_data) {
    if (blocked_client) blocked_client->private = private_data;
}

int apiBlockedClientMeasureTimeStart(ValkeyModuleBlockedClient *bc) {
    if (!bc) return VALKEYMODULE_ERR;
    bc->work_started = clockTicks();
    return VALKEYMODULE_OK;
}

int apiBlockedClientMeasureTimeEnd(ValkeyModuleBlockedClient *bc) {
    if (!bc || !bc->work_started) return VALKEYMODULE_ERR;
    (void)__atomic_add_fetch(&bc->work, clockTicks() - bc->work_started, __ATOMIC_RELAXED);
    return VALKEYMODULE_OK;
}

/* ------------------------------------------------------------------ contexts of callbacks */

/* The handle that a callback or a thread works for; NULL in the command that blocks. */
static blockedClient *handleOf(const ValkeyModuleCtx *x) {
    const uint32_t later = CONTEXT_REPLY | CONTEXT_TIMEOUT | CONTEXT_THREAD;
    return x->flags & CONTEXT_HAS_CLIENT && !(x->flags & later) ? NULL : x->blocked;
}

int apiIsBlockedReplyRequest(ValkeyModuleCtx *ctx) { return (ctx->flags & CONTEXT_REPLY) != 0; }

int apiIsBlockedTimeoutRequest(ValkeyModuleCtx *ctx) { return (ctx->flags & CONTEXT_TIMEOUT) != 0; }

void *apiGetBlockedClientPrivateData(ValkeyModuleCtx *ctx) {
    const blockedClient *b = handleOf(ctx);
    return b ? b->private : NULL;
}

ValkeyModuleString *apiGetBlockedClientReadyKey(ValkeyModuleCtx *ctx) { return ctx->ready_key; }

ValkeyModuleBlockedClient *apiGetBlockedClientHandle(ValkeyModuleCtx *ctx) { return handleOf(ctx); }

int apiBlockedClientDisconnected(ValkeyModuleCtx *ctx) {
    return (ctx->flags & CONTEXT_DISCONNECTED) != 0;
}
