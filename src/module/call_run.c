/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Commands that modules run. A command runs for an internal session, which has the user only if the
 * module asks for it: what the module does is not limited by the rights of the client. Calls nest,
 * so there is a session for each depth; one that may wait has a session of its own.
 *
 * Main thread, or a thread that has the lock. */
#include <errno.h>

#include "acl/private_user.h"
#include "base/base.h"
#include "cluster/cluster.h"
#include "engine/execute.h"
#include "engine/filter.h"
#include "engine/hot.h"
#include "engine/job_gate.h"
#include "engine/memory.h"
#include "engine/reply.h"
#include "engine/transaction.h"
#include "engine/user.h"
#include "module/call.h"
#include "module/key.h"
#include "module/promise.h"
#include "script/run.h"
#include "store/store.h"

/* Ids that no client has: for filters a caller of 0 would be none. */
#define CALL_ID_FIRST (UINT64_C(1) << 62)
enum { CALL_DEPTH_MAX = 64 };
static struct {
    session *sessions[CALL_DEPTH_MAX];
    int depth;
} calls;

/* Makes a session that of a call inside `outer`. */
static void takeState(session *s, const ctx *outer) {
    sessionSetOrigin(s, outer->origin == ORIGIN_CLIENT ? ORIGIN_MODULE : (ctxOrigin)outer->origin);
    aclSessionRunsAs(s, NULL);
    check(sessionSelect(s, dbId(outer->db)) == OK);
    s->observed = outer->who->observed; /* who observes the client sees its calls */
}

static void initSession(session *s, int depth) {
    static const sessionCarrier carrier;
    sessionInit(s, &carrier, SESSION_INTERNAL | SESSION_DENY_BLOCKING);
    s->id = CALL_ID_FIRST + (uint64_t)depth;
}

/* The session for one more call; NULL: calls are nested too deeply. */
static session *beginCall(const ctx *outer) {
    if (calls.depth == CALL_DEPTH_MAX) return NULL;
    session **at = &calls.sessions[calls.depth];
    if (!*at) {
        *at = memNew(session);
        initSession(*at, calls.depth);
    }
    hotCheck(calls.depth >= 0);
    calls.depth++;
    takeState(*at, outer);
    return *at;
}

/* True if the command has left something in the session that the next call must not find: a
 * transaction, a name, a protocol. `flags`: those before. */
static bool hasState(const session *s, const command *cmd, uint64_t flags) {
    hotCheck(s->flags & SESSION_INTERNAL);
    bool in_slots = s->slots && cmd && cmd->flags & CMD_NOSCRIPT;
    return s->flags != flags || s->armed || s->proto != 2 || s->multi || in_slots;
}

static void endCall(session *s, const command *cmd, uint64_t flags) {
    hotCheck(calls.depth > 0);
    hotCheck(calls.sessions[calls.depth - 1] == s);
    calls.depth--;
    if (likely(!hasState(s, cmd, flags))) return;
    sessionClear(s);
    initSession(s, calls.depth);
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

/* True if the rights of the user forbid the command; sets *r. */
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

/* True if the arity or the modifiers forbid the command; sets *r. The order of the checks decides
 * about the error. */
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
    if (flags & VALKEYMODULE_CALL_ARGV_RESPECT_DENY_OOM && transactionFlagsOf(c) & CMD_DENYOOM &&
        memoryIsOver())
        return refuse(r, ENOSPC, "OOM command not allowed when used memory > 'maxmemory'.");
    if (flags & VALKEYMODULE_CALL_ARGV_NO_WRITES && transactionFlagsOf(c) & CMD_WRITE) {
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

/* The call fails: with the error as its reply if the module wants it. */
static void fail(callResult *out, const refusal *r, unsigned flags) {
    hotCheck(!out->has_reply);
    out->error = r->error;
    if (!(flags & VALKEYMODULE_CALL_ARGV_ERRORS_AS_REPLIES)) return;
    str bytes = STR_EMPTY;
    strAppendFormat(&bytes, "-%s\r\n", strText(&r->text));
    *out = (callResult){
        .bytes = bytes.ptr, .len = bytes.len, .proto = 2, .has_reply = true, .error = r->error};
}

static int protoOf(unsigned flags, const ctx *outer) {
    if (flags & VALKEYMODULE_CALL_ARGV_RESP_3) return 3;
    return flags & VALKEYMODULE_CALL_ARGV_RESP_AUTO ? outer->proto : 2;
}

/* A module is not limited as clients are, but to the slots of this node; in script mode as scripts
 * are. Memory limits it, and the scripts that it runs, only if it asks for that. */
static uint64_t exemptGates(unsigned flags) {
    bool minds_memory = flags & VALKEYMODULE_CALL_ARGV_RESPECT_DENY_OOM;
    uint64_t memory = minds_memory ? 0 : memoryGateMask();
    if (flags & VALKEYMODULE_CALL_ARGV_SCRIPT_MODE) return memory;
    uint64_t asked = gateMask(&clusterRedirectGate) | gateMask(&claimGate) |
                     (minds_memory ? memoryGatesOfStart() : 0);
    return ~asked;
}

/* errno for the error of a command that was refused before it ran. */
static int errnoOfRefused(slice reply) {
    hotCheck(reply.len && reply.ptr[0] == '-');
    static const struct {
        const char *text;
        int error;
    } errors[] = {{"-ERR Attempted to access a non local key", EPERM},
                  {"-ERR Can not execute a command", ENETDOWN},
                  {"-ERR Can not execute a write command", EROFS},
                  {"-OOM ", ENOSPC}};
    for (size_t i = 0; i < sizeof(errors) / sizeof(errors[0]); i++) {
        size_t len = strlen(errors[i].text);
        if (reply.len >= len && !memcmp(reply.ptr, errors[i].text, len)) return errors[i].error;
    }
    return ESPIPE;
}

/* Keeps the reply in `bytes`, unless the module does not want errors of this kind. */
static void takeReply(callResult *out, outbuf *bytes, int error, unsigned flags) {
    hotCheck(!out->bytes);
    out->bytes = outbufPending(bytes) ? outbufCopy(bytes, &out->len) : NULL;
    outbufClear(bytes);
    out->error = error;
    out->has_reply = !error || flags & VALKEYMODULE_CALL_ARGV_ERRORS_AS_REPLIES;
}

/* Runs the admitted command of `c`, whose session was prepared; a dry run only asks whether it
 * would be run, and has no reply if it would. */
static void runCall(ctx *c, unsigned flags, callResult *out) {
    hotCheck(c->cmd);
    hotCheck(c->who->flags & SESSION_INTERNAL);
    outbuf bytes;
    outbufInit(&bytes);
    c->out = &bytes;
    if (flags & VALKEYMODULE_CALL_ARGV_DRY_RUN) {
        (void)executeMayRun(c); /* the reply tells */
    } else {
        executeInner(c);
    }
    int error = 0;
    if (c->flags & CTX_REJECTED) {
        size_t len;
        char *text = outbufCopy(&bytes, &len);
        error = errnoOfRefused(sliceMake(text, len));
        memFree(text);
    }
    takeReply(out, &bytes, error, flags);
}

/* A command of the script that an engine of the module runs. */
static void callInScript(ValkeyModuleCtx *x, const callArgs *args, callResult *out) {
    outbuf bytes;
    outbufInit(&bytes);
    uint8_t before = x->script->proto;
    x->script->proto = (uint8_t)protoOf(args->flags, x->run);
    out->proto = x->script->proto;
    scriptRunCommandTo(x->script, args->argv, args->argc, &bytes);
    x->script->proto = before;
    takeReply(out, &bytes, 0, args->flags);
    if (!out->len || out->bytes[0] != '-') return;
    out->error = ESPIPE;
    out->has_reply = args->flags & VALKEYMODULE_CALL_ARGV_ERRORS_AS_REPLIES;
}

/* True if a call may wait: not within EXEC or a script. */
static bool mayWait(const ctx *outer) {
    for (const ctx *at = outer; at; at = at->outer) {
        if (at->origin == ORIGIN_SCRIPT || at->flags & CTX_IN_MULTI) return false;
    }
    return true;
}

static void initCall(ctx *c, ctx *outer, session *s, const callArgs *args) {
    hotCheck(args->argc > 0);
    ctxInitInner(c, outer);
    c->who = s;
    c->db = s->db;
    c->origin = s->origin;
    c->argv = args->argv;
    c->argc = args->argc;
    c->proto = (uint8_t)protoOf(args->flags, outer);
    c->targets = args->flags & VALKEYMODULE_CALL_ARGV_REPLICATE
                     ? (uint8_t)callTargets(args->flags, outer->targets)
                     : 0;
    c->gates_exempt = exemptGates(args->flags);
}

/* Finds the command of `c`, checks it and runs it. `as`: the user whose rights limit it; NULL: none
 * does. */
static void callFor(ctx *c, const user *as, unsigned flags, callResult *out) {
    refusal r = {0, STR_EMPTY};
    filteredRequest *filtered = requestFilterInner(c);
    if (!executeResolveInner(c)) {
        refuseUnknown(c, &r);
    } else if (!isRefused(c, flags, &r) && !(as && isRefusedTo(c, as, &r))) {
        if (as) aclSessionRunsAs(c->who, (user *)as);
        out->proto = c->proto;
        runCall(c, flags, out);
    }
    if (r.error) fail(out, &r, flags);
    strFree(&r.text);
    filteredFree(filtered);
}

static unsigned flagsOf(const ValkeyModuleCtx *x, const callArgs *args) {
    bool read_only = x->flags & CONTEXT_READ_ONLY;
    return args->flags | (read_only ? VALKEYMODULE_CALL_ARGV_NO_WRITES : 0);
}

/* A call that may wait has a session of its own. */
static void callThatMayWait(ValkeyModuleCtx *x, const callArgs *args, const user *as,
                            callResult *out) {
    promise *p = promiseNew(x->module);
    takeState(&p->who, x->run);
    ctx c;
    initCall(&c, x->run, &p->who, args);
    c.flags |= CTX_MAY_BLOCK;
    p->who.targets = c.targets; /* of what it does after its wait */
    p->who.proto = c.proto;
    p->exact = args->flags & VALKEYMODULE_CALL_ARGV_REPLY_EXACT;
    callFor(&c, as, flagsOf(x, args), out);
    if (!p->who.blocked) {
        promiseRelease(p);
        return;
    }
    memFree(out->bytes);
    *out = (callResult){.promise = p};
    promiseBegin(p);
}

static void callAtOnce(ValkeyModuleCtx *x, const callArgs *args, const user *as, callResult *out) {
    session *s = beginCall(x->run);
    if (!s) {
        out->error = ELOOP;
        return;
    }
    uint64_t flags = s->flags;
    ctx c;
    initCall(&c, x->run, s, args);
    callFor(&c, as, flagsOf(x, args), out);
    endCall(s, c.cmd, flags);
}

void callRun(ValkeyModuleCtx *x, const callArgs *args, callResult *out) {
    hotCheck(x->run);
    unsigned flags = args->flags;
    *out = (callResult){0};
    if (x->script && flags & VALKEYMODULE_CALL_ARGV_SCRIPT_MODE) {
        callInScript(x, args, out);
        keysMayHaveChanged();
        return;
    }
    const user *as = NULL;
    if (flags & VALKEYMODULE_CALL_ARGV_RUN_AS_USER) {
        as = x->as_user ? x->as_user : x->run->who->user;
        if (!as) {
            refusal r = {ENOTSUP, STR_EMPTY};
            strAppendText(&r.text,
                          "ERR cannot run as user, no user directly attached to context or "
                          "context's client");
            fail(out, &r, flags);
            strFree(&r.text);
            return;
        }
    }
    if (x->module) x->module->in_call++;
    if (flags & VALKEYMODULE_CALL_ARGV_ALLOW_BLOCK && mayWait(x->run)) {
        callThatMayWait(x, args, as, out);
    } else {
        callAtOnce(x, args, as, out);
    }
    if (x->module) x->module->in_call--;
    keysMayHaveChanged();
}
