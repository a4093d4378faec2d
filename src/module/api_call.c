/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Functions of modules: running commands and propagating them. A command runs for an internal
 * session, which has the user only if the module asks for it: what the module does is not limited
 * by the rights of the client. Calls nest, so there is a session for each depth.
 *
 * Main thread, or a thread that has the lock. */
#include <errno.h>
#include <stdarg.h>

#include "acl/private_user.h"
#include "base/base.h"
#include "cluster/cluster.h"
#include "engine/execute.h"
#include "engine/filter.h"
#include "engine/hot.h"
#include "engine/memory.h"
#include "engine/propagate.h"
#include "engine/reply.h"
#include "engine/user.h"
#include "module/checks.h"
#include "module/call.h"
#include "module/call_reply.h"
#include "module/generated/api.h"
#include "module/key.h"
#include "script/run.h"
#include "store/store.h"

/* Ids that no client has: for filters a caller of 0 would be none. */
#define CALL_ID_FIRST (UINT64_C(1) << 62)
enum { CALL_DEPTH_MAX = 64 };
static struct {
    session *sessions[CALL_DEPTH_MAX];
    int depth;
} calls;

/* The session for one more call; NULL: calls are nested too deeply. */
static session *beginCall(const ctx *outer) {
    if (calls.depth == CALL_DEPTH_MAX) return NULL;
    session **at = &calls.sessions[calls.depth];
    if (!*at) {
        static const sessionCarrier carrier;
        *at = memNew(session);
        sessionInit(*at, &carrier, SESSION_INTERNAL | SESSION_DENY_BLOCKING);
        (*at)->id = CALL_ID_FIRST + (uint64_t)calls.depth;
    }
    hotCheck(calls.depth >= 0);
    calls.depth++;
    session *s = *at;
    sessionSetOrigin(s, outer->origin == ORIGIN_CLIENT ? ORIGIN_MODULE : (ctxOrigin)outer->origin);
    sessionSetAuthenticated(s, NULL, true);
    check(sessionSelect(s, dbId(outer->db)) == OK);
    return s;
}

static void endCall(session *s) {
    hotCheck(calls.depth > 0);
    hotCheck(calls.sessions[calls.depth - 1] == s);
    s->flags &= ~SESSION_REPARSE;
    calls.depth--;
}

/* ------------------------------------------------------------------ refusals */

typedef struct refusal {
    int error; /* of errno; 0: none */
    str text;  /* of the error reply */
} refusal;

static bool refuse(refusal *r, int error, const char *text) {
    hotCheck(error);
    hotCheck(!r->text.len);
    r->error = error;
    strAppendText(&r->text, text);
    return true;
}

/* What the rights of the user forbid. */
static bool isRefusedTo(const ctx *c, const user *u, refusal *r) {
    int arg_index;
    aclRefusal what = aclUserRefusal(u, c->cmd, c->argv, c->argc, c->who->db_id, &arg_index);
    if (what == ACL_REFUSES_NOTHING) return false;
    aclLogByModule(c->outer->who, what, arg_index ? c->argv[arg_index] : c->cmd->name, u->name);
    r->error = EACCES;
    switch (what) {
    case ACL_REFUSES_KEY: return refuse(r, EACCES, "NOPERM No permissions to access a key");
    case ACL_REFUSES_CHANNEL: return refuse(r, EACCES, "NOPERM No permissions to access a channel");
    case ACL_REFUSES_DATABASE: return refuse(r, EACCES, "NOPERM No permissions to access database");
    default:
        strAppendFormat(&r->text, "NOPERM User %.*s has no permissions to run the '%.*s' command",
                        (int)u->name.len, u->name.ptr, (int)c->cmd->name.len, c->cmd->name.ptr);
        return true;
    }
}

/* What the modifiers forbid; the order of the checks decides about the error. */
static bool isRefused(const ctx *c, unsigned flags, refusal *r) {
    const command *cmd = c->cmd;
    if (!commandArityFits(cmd, c->argc)) {
        r->error = EINVAL;
        strAppendFormat(&r->text, "ERR wrong number of arguments for '%.*s' command",
                        (int)cmd->name.len, cmd->name.ptr);
        return true;
    }
    if (flags & VALKEYMODULE_CALL_ARGV_SCRIPT_MODE && cmd->flags & CMD_NOSCRIPT) {
        r->error = ESPIPE;
        strAppendFormat(&r->text, "ERR command '%.*s' is not allowed on script mode",
                        (int)cmd->name.len, cmd->name.ptr);
        return true;
    }
    if (flags & VALKEYMODULE_CALL_ARGV_RESPECT_DENY_OOM && cmd->flags & CMD_DENYOOM &&
        memoryIsOver())
        return refuse(r, ENOSPC, "OOM command not allowed when used memory > 'maxmemory'.");
    if (flags & VALKEYMODULE_CALL_ARGV_NO_WRITES && cmd->flags & CMD_WRITE) {
        r->error = ENOSPC;
        strAppendFormat(&r->text, "ERR Write command '%.*s' was called while write is not allowed.",
                        (int)cmd->name.len, cmd->name.ptr);
        return true;
    }
    return false;
}

/* The error of an unknown command, as a client gets it. */
static void refuseUnknown(ctx *c, refusal *r) {
    outbuf out;
    outbufInit(&out);
    c->out = &out;
    executeInner(c); /* replies what is unknown */
    size_t len;
    char *text = outbufCopy(&out, &len);
    outbufClear(&out);
    r->error = ENOENT;
    if (len > 3) strAppend(&r->text, text + 1, len - 3);
    memFree(text);
}

/* ------------------------------------------------------------------ calls */

static ValkeyModuleCallReply *errorReply(ValkeyModuleCtx *x, const refusal *r, unsigned flags) {
    errno = r->error;
    if (!(flags & VALKEYMODULE_CALL_ARGV_ERRORS_AS_REPLIES)) return NULL;
    str bytes = STR_EMPTY;
    strAppendFormat(&bytes, "-%s\r\n", strText(&r->text));
    return callReplyNew(x, bytes.ptr, bytes.len, 2, flags & VALKEYMODULE_CALL_ARGV_REPLY_EXACT);
}

static int protoOf(unsigned flags, const ctx *outer) {
    if (flags & VALKEYMODULE_CALL_ARGV_RESP_3) return 3;
    return flags & VALKEYMODULE_CALL_ARGV_RESP_AUTO ? outer->proto : 2;
}

/* A module is not limited as clients are, but to the slots of this node; in script mode as scripts
 * are. Memory is checked by isRefused(). */
static uint64_t exemptGates(unsigned flags) {
    if (flags & VALKEYMODULE_CALL_ARGV_SCRIPT_MODE) return gateMask(&memoryGate);
    return ~gateMask(&clusterRedirectGate);
}

/* errno for the error of a command that was refused before it ran. */
static int errnoOfRefused(slice reply) {
    hotCheck(reply.len && reply.ptr[0] == '-');
    static const struct {
        const char *text;
        int error;
    } errors[] = {{"-ERR Attempted to access a non local key", EPERM},
                  {"-ERR Can not execute a command", ENETDOWN},
                  {"-ERR Can not execute a write command", EROFS}};
    for (size_t i = 0; i < sizeof(errors) / sizeof(errors[0]); i++) {
        size_t len = strlen(errors[i].text);
        if (reply.len >= len && !memcmp(reply.ptr, errors[i].text, len)) return errors[i].error;
    }
    return ESPIPE;
}

/* Runs the command of `c`, whose session was prepared, or with `dry` only asks whether it would be
 * run; the reply as bytes. */
static char *runCall(ctx *c, bool dry, size_t *len) {
    hotCheck(c->cmd);
    hotCheck(c->who->flags & SESSION_INTERNAL);
    outbuf out;
    outbufInit(&out);
    c->out = &out;
    if (dry) {
        (void)executeMayRun(c); /* the reply tells */
    } else {
        executeInner(c);
    }
    char *bytes = outbufPending(&out) ? outbufCopy(&out, len) : NULL;
    outbufClear(&out);
    return bytes;
}

/* A command of the script that an engine of the module runs. */
static ValkeyModuleCallReply *callInScript(ValkeyModuleCtx *x, const callArgs *args) {
    bool errors = args->flags & VALKEYMODULE_CALL_ARGV_ERRORS_AS_REPLIES;
    outbuf out;
    outbufInit(&out);
    uint8_t before = x->script->proto;
    x->script->proto = (uint8_t)protoOf(args->flags, x->run);
    scriptRunCommandTo(x->script, args->argv, args->argc, &out);
    ValkeyModuleCallReply *reply = NULL;
    size_t len;
    char *bytes = outbufCopy(&out, &len);
    outbufClear(&out);
    reply = callReplyNew(x, bytes, len, x->script->proto,
                         args->flags & VALKEYMODULE_CALL_ARGV_REPLY_EXACT);
    x->script->proto = before;
    bool failed = len && bytes[0] == '-';
    errno = failed ? ESPIPE : 0;
    if (!failed || errors) return reply;
    callReplyFree(reply);
    return NULL;
}

static ValkeyModuleCallReply *call(ValkeyModuleCtx *x, const callArgs *args) {
    ctx *outer = x->run;
    refusal r = {0, STR_EMPTY};
    ValkeyModuleCallReply *reply = NULL;
    unsigned flags = args->flags;
    if (x->flags & CONTEXT_READ_ONLY) flags |= VALKEYMODULE_CALL_ARGV_NO_WRITES;
    const user *as = x->as_user ? x->as_user : outer->who->user;
    if (flags & VALKEYMODULE_CALL_ARGV_RUN_AS_USER && !as) {
        (void)refuse(&r, ENOTSUP,
                     "ERR cannot run as user, no user directly attached to context or context's "
                     "client");
        reply = errorReply(x, &r, flags);
        strFree(&r.text);
        return reply;
    }
    session *s = beginCall(outer);
    if (!s) {
        errno = ELOOP;
        return NULL;
    }
    ctx c;
    ctxInitInner(&c, outer);
    c.who = s;
    c.db = s->db;
    c.origin = s->origin;
    c.argv = args->argv;
    c.argc = args->argc;
    c.proto = (uint8_t)protoOf(flags, outer);
    c.targets =
        flags & VALKEYMODULE_CALL_ARGV_REPLICATE ? (uint8_t)callTargets(flags, outer->targets) : 0;
    c.gates_exempt = exemptGates(flags);
    if (x->module) x->module->in_call++;
    filteredRequest *filtered = requestFilterInner(&c);
    if (!executeResolveInner(&c)) {
        refuseUnknown(&c, &r);
    } else if (!isRefused(&c, flags, &r) &&
               !(flags & VALKEYMODULE_CALL_ARGV_RUN_AS_USER && isRefusedTo(&c, as, &r))) {
        if (flags & VALKEYMODULE_CALL_ARGV_RUN_AS_USER)
            sessionSetAuthenticated(s, (user *)as, true);
        size_t len = 0;
        char *bytes = runCall(&c, flags & VALKEYMODULE_CALL_ARGV_DRY_RUN, &len);
        reply = callReplyNew(x, bytes, len, c.proto, flags & VALKEYMODULE_CALL_ARGV_REPLY_EXACT);
        int refused = c.flags & CTX_REJECTED ? errnoOfRefused(callReplyBytes(reply)) : 0;
        if (refused && !(flags & VALKEYMODULE_CALL_ARGV_ERRORS_AS_REPLIES)) {
            callReplyFree(reply);
            reply = NULL;
        }
        errno = refused;
    }
    if (r.error) reply = errorReply(x, &r, flags);
    strFree(&r.text);
    filteredFree(filtered);
    if (x->module) x->module->in_call--;
    endCall(s);
    return reply;
}

ValkeyModuleCallReply *apiCall(ValkeyModuleCtx *ctx, const char *cmdname, const char *fmt, ...) {
    CHECK_VARIADIC("Call", false, HANDLE_CONTEXT, ctx, false, NULL);
    callArgs args;
    va_list values;
    va_start(values, fmt);
    bool valid = callArgsTake(&args, cmdname, fmt, values);
    va_end(values);
    ValkeyModuleCallReply *reply = NULL;
    if (!valid || !ctx->run) {
        errno = valid ? EINVAL : EBADF;
    } else {
        bool in_script = ctx->script && args.flags & VALKEYMODULE_CALL_ARGV_SCRIPT_MODE;
        reply = in_script ? callInScript(ctx, &args) : call(ctx, &args);
        keysMayHaveChanged();
    }
    callArgsClear(&args);
    return reply;
}

/* ------------------------------------------------------------------ propagation */

int apiReplicate(ValkeyModuleCtx *ctx, const char *cmdname, const char *fmt, ...) {
    CHECK_VARIADIC("Replicate", false, HANDLE_CONTEXT, ctx, false, VALKEYMODULE_ERR);
    if (!ctx->run) return VALKEYMODULE_ERR;
    callArgs args;
    va_list values;
    va_start(values, fmt);
    bool valid = callArgsTake(&args, cmdname, fmt, values);
    va_end(values);
    if (valid) {
        struct ctx c;
        ctxInitInner(&c, ctx->run);
        c.argv = args.argv;
        c.argc = args.argc;
        c.targets = (uint8_t)callTargets(args.flags, ctx->run->targets);
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
    struct ctx *c = ctx->run;
    if (!c || !c->cmd) return VALKEYMODULE_OK;
    if (engineHot.sinks) propagateRequest(propagateToOf(c), c->request, c->argc, c->argv);
    engineHot.dirty++;
    return VALKEYMODULE_OK;
}
