/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Functions of modules: running a prepared command, whose reply goes to functions of the module
 * item by item, and raw replies. Modules get them by name, or as symbols of the program.
 *
 * Main thread, or a thread that has the lock. */
#include <errno.h>

#include "base/base.h"
#include "engine/stats.h"
#include "module/block_client.h"
#include "module/call.h"
#include "module/generated/api.h"
#include "module/promise.h"
#include "module/thread_context.h"

/* ------------------------------------------------------------------ handlers */

typedef struct replyWalk {
    const ValkeyModuleReplyHandlers *to;
    void *context;
    slice bytes;
    size_t at;
    replyReader reader;
} replyWalk;

static bool walkItem(replyWalk *w);

typedef void startProc(void *context, size_t len);
typedef void endProc(void *context);

/* What is in a container, whose header was read, between the calls for its start and its end. */
static bool walkItems(replyWalk *w, startProc *start, endProc *end, size_t len, size_t items) {
    if (start) start(w->context, len);
    for (size_t i = 0; i < items; i++) {
        if (!walkItem(w)) return false;
    }
    if (end) end(w->context);
    return true;
}

/* A null: of RESP3, or of RESP2 as it was written. */
static void callNull(const replyWalk *w, char first) {
    const ValkeyModuleReplyHandlers *to = w->to;
    endProc *null = first == '*' ? to->nullArray : first == '$' ? to->nullBulkString : to->null;
    if (null) null(w->context);
}

static void callScalar(const replyWalk *w, const replyEvent *e, char first) {
    const ValkeyModuleReplyHandlers *to = w->to;
    void *arg = w->context;
    const char *text = e->text.ptr;
    size_t len = e->text.len;
    switch (e->kind) {
    case REPLY_STATUS:
        if (to->simpleString) to->simpleString(arg, text, len);
        return;
    case REPLY_ERROR:
        if (to->error) to->error(arg, text, len);
        return;
    case REPLY_INTEGER:
        if (to->integer) to->integer(arg, e->integer);
        return;
    case REPLY_BULK:
        if (to->bulkString) to->bulkString(arg, text, len);
        return;
    case REPLY_DOUBLE:
        if (to->doubleVal) to->doubleVal(arg, e->number);
        return;
    case REPLY_BOOL:
        if (to->boolVal) to->boolVal(arg, e->integer != 0);
        return;
    case REPLY_BIG_NUMBER:
        if (to->bigNumber) to->bigNumber(arg, text, len);
        return;
    case REPLY_VERBATIM:
        if (to->verbatimString) to->verbatimString(arg, text, len, e->format);
        return;
    default: callNull(w, first);
    }
}

/* The next item with all that is in it. False: the bytes are none. */
static bool walkItem(replyWalk *w) {
    const ValkeyModuleReplyHandlers *to = w->to;
    replyEvent e;
    size_t start = w->at;
    if (replyRead(&w->reader, w->bytes.ptr, w->bytes.len, &w->at, &e) != REPLY_EVENT) return false;
    size_t len = (size_t)e.integer;
    switch (e.kind) {
    case REPLY_ARRAY:
    case REPLY_PUSH: return walkItems(w, to->arrayStart, to->arrayEnd, len, len);
    case REPLY_MAP: return walkItems(w, to->mapStart, to->mapEnd, len, len * 2);
    case REPLY_SET: return walkItems(w, to->setStart, to->setEnd, len, len);
    case REPLY_ATTRIBUTE: /* its value follows */
        return walkItems(w, to->attributeStart, to->attributeEnd, len, len * 2) && walkItem(w);
    default: callScalar(w, &e, w->bytes.ptr[start]); return true;
    }
}

void replyHandlersCall(const ValkeyModuleReplyHandlers *handlers, void *reply_context,
                       ValkeyModuleCtx *x, slice bytes) {
    hotCheck(bytes.ptr);
    if (handlers->onRespAvailable &&
        !handlers->onRespAvailable(reply_context, x, bytes.ptr, bytes.len))
        return;
    replyWalk w = {.to = handlers, .context = reply_context, .bytes = bytes};
    replyReaderInit(&w.reader);
    w.reader.bulk_max = INT64_MAX;
    if (!walkItem(&w) && handlers->replyParsingError) handlers->replyParsingError(reply_context);
}

/* ------------------------------------------------------------------ functions of modules */

static void run(ValkeyModuleCtx *x, const callArgs *args, const ValkeyModuleReplyHandlers *handlers,
                void *reply_context, callResult *r) {
    callRun(x, args, r);
    if (r->promise && !handlers) {
        promiseRelease(r->promise); /* it goes on, and its reply is dropped */
    } else if (r->promise) {
        r->promise->has_handlers = true;
        r->promise->handlers = *handlers;
        r->promise->reply_context = reply_context;
        if (handlers->onBlocked) handlers->onBlocked(reply_context, x, r->promise);
        promiseRelease(r->promise);
    } else if (handlers) {
        slice bytes = r->has_reply && r->bytes ? sliceMake(r->bytes, r->len) : SLICE("");
        replyHandlersCall(handlers, reply_context, x, bytes);
    }
}

int apiCallArgv(ValkeyModuleCtx *ctx, ValkeyModuleString **argv, int argc, int flags,
                const ValkeyModuleReplyHandlers *resp_handlers, void *reply_ctx) {
    bool is_known = !resp_handlers || resp_handlers->version == VALKEYMODULE_REPLY_HANDLERS_VERSION;
    if (argc < 1 || !is_known || !contextUse(ctx)) {
        errno = EINVAL;
        return VALKEYMODULE_ERR;
    }
    callArgs args = {.max = CALL_ARGS_FEW, .argc = argc, .flags = (unsigned)flags};
    args.argv = moduleStringSlices(argv, argc, args.few, CALL_ARGS_FEW);
    callResult r = {0};
    run(ctx, &args, resp_handlers, reply_ctx, &r);
    int error = r.error;
    bool replied = r.has_reply || r.promise;
    memFree(r.bytes);
    callArgsClear(&args);
    errno = error;
    return replied ? VALKEYMODULE_OK : VALKEYMODULE_ERR;
}

int apiCallArgvAbort(ValkeyModuleCallArgvBlockedHandle *handle) {
    return promiseAbort(handle) ? VALKEYMODULE_OK : VALKEYMODULE_ERR;
}

int apiReplyRaw(ValkeyModuleCtx *ctx, const char *proto, size_t proto_len) {
    if (!ctx->out) return VALKEYMODULE_OK;
    if (proto_len && proto[0] == '-')
        contextNoteError(ctx, sliceMake(proto + 1, proto_len - 1), ctx->script != NULL);
    outbufAppend(ctx->out, proto, proto_len);
    return VALKEYMODULE_OK;
}

/* The names of the symbols. */
int VM_CallArgv(ValkeyModuleCtx *ctx, ValkeyModuleString **argv, int argc, int flags,
                const ValkeyModuleReplyHandlers *resp_handlers, void *reply_ctx)
    __attribute__((used));
int VM_CallArgvAbort(ValkeyModuleCallArgvBlockedHandle *handle) __attribute__((used));
int VM_ReplyRaw(ValkeyModuleCtx *ctx, const char *proto, size_t proto_len) __attribute__((used));

int VM_CallArgv(ValkeyModuleCtx *ctx, ValkeyModuleString **argv, int argc, int flags,
                const ValkeyModuleReplyHandlers *resp_handlers, void *reply_ctx) {
    return apiCallArgv(ctx, argv, argc, flags, resp_handlers, reply_ctx);
}

int VM_CallArgvAbort(ValkeyModuleCallArgvBlockedHandle *handle) { return apiCallArgvAbort(handle); }

int VM_ReplyRaw(ValkeyModuleCtx *ctx, const char *proto, size_t proto_len) {
    return apiReplyRaw(ctx, proto, proto_len);
}
