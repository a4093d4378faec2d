/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Functions of modules: running commands and propagating them.
 *
 * Main thread, or a thread that has the lock. */
#include <errno.h>
#include <stdarg.h>

#include "base/base.h"
#include "engine/execute.h"
#include "engine/hot.h"
#include "engine/propagate.h"
#include "module/call.h"
#include "module/call_reply.h"
#include "module/generated/api.h"
#include "module/promise.h"
#include "module/thread_context.h"

/* ------------------------------------------------------------------ calls */

/* The reply of a call, or NULL with errno. */
static ValkeyModuleCallReply *replyOf(ValkeyModuleCtx *x, const callArgs *args) {
    callResult r;
    callRun(x, args, &r);
    ValkeyModuleCallReply *reply = NULL;
    if (r.promise) {
        reply = callReplyNewPromise(x, r.promise);
    } else if (r.has_reply) {
        reply = callReplyNew(x, r.bytes, r.len, r.proto,
                             args->flags & VALKEYMODULE_CALL_ARGV_REPLY_EXACT);
    } else {
        memFree(r.bytes);
    }
    errno = r.error;
    return reply;
}

ValkeyModuleCallReply *apiCall(ValkeyModuleCtx *ctx, const char *cmdname, const char *fmt, ...) {
    callArgs args;
    va_list values;
    va_start(values, fmt);
    bool valid = callArgsTake(&args, cmdname, fmt, values);
    va_end(values);
    ValkeyModuleCallReply *reply = NULL;
    if (!valid || !contextUse(ctx)) {
        errno = valid ? EINVAL : EBADF;
    } else {
        reply = replyOf(ctx, &args);
    }
    int error = errno;
    callArgsClear(&args);
    errno = error;
    return reply;
}

/* ------------------------------------------------------------------ propagation */

int apiReplicate(ValkeyModuleCtx *ctx, const char *cmdname, const char *fmt, ...) {
    struct ctx *outer = contextUse(ctx);
    if (!outer) return VALKEYMODULE_ERR;
    callArgs args;
    va_list values;
    va_start(values, fmt);
    bool valid = callArgsTake(&args, cmdname, fmt, values);
    va_end(values);
    if (valid) {
        struct ctx c;
        ctxInitInner(&c, outer);
        c.argv = args.argv;
        c.argc = args.argc;
        c.targets = (uint8_t)callTargets(args.flags, outer->targets);
        valid = executeResolveInner(&c);
        if (valid) {
            if (engineHot.sinks) propagateCopy(propagateToOf(&c), c.argc, c.argv);
            engineHot.dirty++;
        }
    }
    callArgsClear(&args);
    return valid ? VALKEYMODULE_OK : VALKEYMODULE_ERR;
}

int apiReplicateVerbatim(ValkeyModuleCtx *ctx) {
    struct ctx *c = contextUse(ctx);
    if (!c || !c->cmd) return VALKEYMODULE_OK;
    if (engineHot.sinks) propagateRequest(c);
    engineHot.dirty++;
    return VALKEYMODULE_OK;
}
