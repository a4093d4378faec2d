/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Transactions: two gates that refuse or queue requests, and EXEC, which runs the queue. Invariant:
 * both gates are armed for a session if and only if it has SESSION_IN_MULTI; once EXEC cannot run
 * the queue (a refused command, a changed key), the queue is freed and remains empty. A queued
 * request costs one block with its bytes and slices; large arguments are kept by reference. */
#include "engine/transaction.h"

#include "base/base.h"
#include "engine/execute.h"
#include "engine/execute_priv.h"
#include "engine/gate_priv.h"
#include "engine/kept_request.h"
#include "engine/memory.h"
#include "engine/reply.h"
#include "engine/stream_priv.h"
#include "engine/transaction_priv.h"
#include "engine/user.h"
#include "engine/watch.h"

enum {
    QUEUE_MIN = 8,
    PREFETCH_MAX = 64,
    MEMORY_PER_BYTE = 16, /* of queued arguments, for the limit of a client's input */
};

transaction *transactionOf(session *s) {
    if (s->multi) return s->multi;
    s->multi = memNew(transaction);
    s->multi->who = s;
    s->multi->watch_expire_ms = INT64_MAX;
    listInit(&s->multi->watches);
    return s->multi;
}

/* ------------------------------------------------------------------ the queue */

static void dropQueue(transaction *t) {
    for (int i = 0; i < t->count; i++) keptRequestClear(&t->queue[i]);
    memFree(t->queue);
    t->queue = NULL;
    t->count = t->cap = 0;
    t->memory = t->argument_bytes = 0;
    t->any_flags = t->all_flags = 0;
}

static request *push(transaction *t) {
    if (t->count == t->cap) {
        t->memory -= (size_t)t->cap * sizeof(request);
        t->cap = t->cap ? t->cap * 2 : QUEUE_MIN;
        t->memory += (size_t)t->cap * sizeof(request);
        t->queue = memRealloc(t->queue, (size_t)t->cap * sizeof(request));
    }
    return &t->queue[t->count++];
}

static void keepRequest(transaction *t, const ctx *c, uint64_t flags) {
    request *kept = push(t);
    t->memory += keptRequestInit(kept, c->request);
    for (int i = 0; i < kept->argc; i++) t->argument_bytes += kept->argv[i].len;
    t->all_flags = t->count == 1 ? flags : t->all_flags & flags;
    t->any_flags |= flags;
}

void transactionFail(session *s, uint64_t flag) {
    dropQueue(s->multi);
    s->flags |= flag;
}

int transactionCount(const session *s) { return s->multi ? s->multi->count : -1; }

int transactionRest(const ctx *c) {
    const transaction *t = c->who->multi;
    if (!t || !(c->flags & CTX_IN_MULTI)) return 0;
    int64_t index = c->request - t->queue;
    check(index >= 0);
    check(index < t->count);
    return t->count - 1 - (int)index;
}

size_t transactionMemory(const session *s) { return s->multi ? s->multi->memory : 0; }

size_t transactionArgumentBytes(const session *s) {
    if (!s->multi) return 0;
    return sizeMax(s->multi->argument_bytes, s->multi->memory / MEMORY_PER_BYTE);
}

bool transactionHas(const session *s, uint64_t flags) {
    return s->multi && s->multi->any_flags & flags;
}

bool transactionLacks(const session *s, uint64_t flags) {
    return s->multi && s->multi->count && (s->multi->all_flags & flags) != flags;
}

bool transactionEach(const session *s, transactionVisitProc *visit, void *arg) {
    const transaction *t = s->multi;
    for (int i = 0; t && i < t->count; i++) {
        const request *r = &t->queue[i];
        if (!visit(arg, r->command, r->argv, r->argc)) return false;
    }
    return true;
}

static bool addSlot(void *arg, const command *cmd, const slice *argv, int argc) {
    int *slot = arg;
    *slot = commandSlots(*slot, cmd, argv, argc);
    return *slot != COMMAND_SEVERAL_SLOTS;
}

int transactionSlot(const session *s) {
    int slot = COMMAND_NO_SLOT;
    (void)transactionEach(s, addSlot, &slot); /* the result is in `slot` */
    return slot;
}

/* ------------------------------------------------------------------ the gates */

static bool cannotBeInMulti(const commandSpec *spec) { return spec->flags & CMD_NO_MULTI; }

static gateVerdict refuseInMulti(ctx *c) {
    replyErrorFormat(c, "ERR Command '%.*s' not allowed inside a transaction",
                     (int)c->cmd->name.len, c->cmd->name.ptr);
    return GATE_REFUSED;
}

static bool canBeQueued(const commandSpec *spec) { return !(spec->flags & CMD_AT_ONCE); }

static transactionFlagsProc *flags_proc;

void transactionSetFlagsProc(transactionFlagsProc *proc) { flags_proc = proc; }

static bool runsScript(const ctx *c) {
    return unlikely(c->cmd->spec->categories & 1u << CAT_SCRIPTING) && flags_proc;
}

uint64_t transactionFlagsOf(const ctx *c) { return runsScript(c) ? flags_proc(c) : c->cmd->flags; }

static gateVerdict queueForExec(ctx *c) {
    session *s = c->who;
    uint64_t flags = transactionFlagsOf(c);
    if (runsScript(c)) {
        uint64_t exempt = flags & CMD_DENYOOM ? 0 : memoryGatesOfStart();
        if (flags & CMD_WRITE && gatesAdmitWriter(c, exempt) != GATE_PASS) return GATE_REFUSED;
        bool needs_fresh = c->cmd->flags & CMD_STALE && !(flags & CMD_STALE);
        if (needs_fresh && gatesAdmitStale(c) != GATE_PASS) return GATE_REFUSED;
    }
    if (!(s->flags & (SESSION_MULTI_POISONED | SESSION_WATCH_DIRTY)))
        keepRequest(s->multi, c, flags);
    replyLiteral(c, "+QUEUED\r\n");
    return GATE_DONE;
}

/* Commands that a script runs inside EXEC are not part of the transaction. */
enum { MULTI_ORIGINS = GATE_FOR_CLIENTS | GATE_FOR_REPLAYS };

const gate noMultiGate = {.name = "no-multi",
                          .selects = cannotBeInMulti,
                          .admit = refuseInMulti,
                          .origins = MULTI_ORIGINS};
const gate queueGate = {
    .name = "queue", .selects = canBeQueued, .admit = queueForExec, .origins = MULTI_ORIGINS};

static void armGates(session *s, bool on) {
    gateArmSession(s, &noMultiGate, on);
    gateArmSession(s, &queueGate, on);
}

/* Drops the transaction, or what WATCH has prepared for one. */
static void abandon(session *s) {
    if (s->flags & SESSION_IN_MULTI) {
        transactionDiscard(s);
    } else {
        watchForget(s);
    }
}

/* Appends the error of EXEC whose transaction was discarded because of another error. */
static void describeAbort(slice error, str *out) {
    slice code = SLICE("ERR ");
    if (error.len > code.len && memcmp(error.ptr, code.ptr, code.len) == 0) {
        error = sliceMake(error.ptr + code.len, error.len - code.len);
    }
    strAppendText(out, "EXECABORT Transaction discarded because of: ");
    strAppendSlice(out, error);
}

bool transactionRefused(ctx *c, slice text, str *instead) {
    session *s = c->who;
    if (!(c->cmd->flags & CMD_RUNS_QUEUE)) {
        if (s->flags & SESSION_IN_MULTI) transactionFail(s, SESSION_MULTI_POISONED);
        return false;
    }
    abandon(s);
    if (c->flags & CTX_REDIRECTED) return false;
    describeAbort(text, instead);
    return true;
}

/* ------------------------------------------------------------------ MULTI, DISCARD, EXEC */

void transactionBegin(session *s) {
    hotCheck(threadIsMain());
    check(!(s->flags & SESSION_IN_MULTI));
    transaction *t = transactionOf(s); /* allocated here, so that queueing finds it */
    t->of = s->user;
    t->rights_version = userRightsVersion();
    if (unlikely(s->flags & SESSION_REPLAY)) streamOpenTransaction(s);
    s->flags |= SESSION_IN_MULTI;
    armGates(s, true);
}

void transactionDiscard(session *s) {
    hotCheck(threadIsMain());
    check(s->flags & SESSION_IN_MULTI);
    watchForget(s);
    dropQueue(s->multi);
    s->flags &= ~(SESSION_IN_MULTI | SESSION_MULTI_POISONED);
    armGates(s, false);
}

void transactionFree(session *s) {
    hotCheck(threadIsMain());
    if (!s->multi) return;
    abandon(s);
    memFree(s->multi);
    s->multi = NULL;
}

/* Replies an array with the replies of the queued commands. Errors among them do not stop
 * execution. */
static void runQueue(ctx *c, transaction *t) {
    replyArray(c, t->count);
    for (int i = 0; i < t->count; i++) {
        if (i % PREFETCH_MAX == 0) {
            size_t ahead = sizeMin(PREFETCH_MAX, (size_t)(t->count - i));
            executePrefetch(&(executePart){c->who, t->queue + i, (int)ahead}, 1);
        }
        executeKept(c, &t->queue[i], CTX_IN_MULTI);
    }
}

/* True if commands or rights may not be those with which the queue was admitted. */
static bool mayDiffer(const session *s) {
    hotCheck(s->flags & SESSION_IN_MULTI);
    const transaction *t = s->multi;
    if (s->user && (t->rights_version != userRightsVersion() || t->of != s->user)) return true;
    return t->count && t->queue[0].command_epoch != commandEpoch();
}

static bool allAreKnown(transaction *t, str *why) {
    hotCheck(t->count <= t->cap);
    for (int i = 0; i < t->count; i++) {
        if (!executeRebind(&t->queue[i], why)) return false;
    }
    return true;
}

/* Discards the transaction, and replies an error with this error as the reason. */
static void discardWith(ctx *c, slice error) {
    hotCheck(error.len > 0);
    transactionDiscard(c->who);
    str text = STR_EMPTY;
    describeAbort(error, &text);
    replyError(c, strSlice(&text));
    strFree(&text);
}

/* Checks all queued commands once more, so that either all of them run or none. True: one was
 * refused, the transaction discarded, and the error was replied. */
static NO_INLINE bool refusesQueue(ctx *c) {
    str error = STR_EMPTY;
    bool refused = !allAreKnown(c->who->multi, &error) || !userMayRunQueue(c, &error);
    if (refused) discardWith(c, strSlice(&error));
    strFree(&error);
    return refused;
}

/* True: a condition of EXEC does not hold or is malformed. Then the transaction was discarded, and
 * the reply was written. */
static NO_INLINE bool conditionsFail(ctx *c) {
    slice error;
    execVerdict verdict = execConditionsJudge(c, &error);
    if (verdict == EXEC_ERROR) discardWith(c, error);
    if (verdict != EXEC_NULL) return verdict != EXEC_RUNS;
    transactionDiscard(c->who);
    replyNullArray(c);
    return true;
}

void transactionRun(ctx *c) {
    hotCheck(threadIsMain());
    session *s = c->who;
    check(s->flags & SESSION_IN_MULTI);
    if (s->flags & SESSION_MULTI_POISONED) {
        transactionDiscard(s);
        replyError(c, SLICE("EXECABORT Transaction discarded because of previous errors."));
        return;
    }
    if (watchIsBroken(s, c->now_ms)) {
        transactionDiscard(s);
        replyNullArray(c);
        return;
    }
    if (unlikely(mayDiffer(s)) && refusesQueue(c)) return;
    if (unlikely(c->argc > 1) && conditionsFail(c)) return;
    watchForget(s); /* its own changes do not matter */
    uint64_t denied = s->flags & SESSION_DENY_BLOCKING;
    s->flags |= SESSION_DENY_BLOCKING;
    runQueue(c, s->multi);
    s->flags = (s->flags & ~SESSION_DENY_BLOCKING) | denied;
    transactionDiscard(s);
}
