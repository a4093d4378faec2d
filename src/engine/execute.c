/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Execution of requests. The fast path is a loop of mask test, arity test and call. Consecutive
 * identical quick commands share one time stamp (histograms and usec are divided equally, calls are
 * exact). Anything unusual about a command, a session or the server is a bit in the mask and leads
 * to runSlow(). Main thread only, except executeResolve().
 *
 * Cost on the development machine: see docs/measurements.md. */
#include "engine/execute.h"

#include "base/base.h"
#include "engine/block.h"
#include "engine/command_priv.h"
#include "engine/deliver_priv.h"
#include "engine/execute_priv.h"
#include "engine/filter_priv.h"
#include "engine/gate_priv.h"
#include "engine/hooks_priv.h"
#include "engine/hotkeys.h"
#include "engine/keyspace.h"
#include "engine/measure.h"
#include "engine/memory.h"
#include "engine/propagate.h"
#include "engine/reply.h"
#include "engine/stats_priv.h"
#include "engine/transaction.h"
#include "resp/reply_sink.h"
#include "store/store.h"

engineHotLine engineHot ALIGNED(CACHE_LINE);

/* The command for unknown names: its mask always matches an armed bit. */
static const commandSpec unknown_spec = {.name = ""};
static command unknown_command = {.spec = &unknown_spec,
                                  .gates = GATE_BIT_UNKNOWN | GATE_BIT_SPECIAL,
                                  .arity = -1,
                                  .name = {"", 0},
                                  .flags = CMD_QUICK};

static struct {
    uint64_t wall_ticks;    /* when now_ms was read */
    uint64_t refresh_ticks; /* maximum age: a quarter of a millisecond */
    bool yields;            /* executeYield() */
    bool is_due;
} turn;

static measureLimits limits = {UINT64_MAX, INT64_MAX, INT64_MAX};

static uint64_t large_from = INT64_MAX; /* limits.request_bytes, 0 if that is negative */

void executeSetLimits(const measureLimits *now) {
    limits = *now;
    large_from = now->request_bytes > 0 ? (uint64_t)now->request_bytes : 0;
}

void executeNewTurn(void) {
    if (!turn.refresh_ticks) {
        int64_t ns_per_million = clockTicksToNs(1000000);
        turn.refresh_ticks =
            (uint64_t)(250000LL * 1000000 / (ns_per_million > 0 ? ns_per_million : 1000000));
    }
    engineHot.now_ms = clockWallMs();
    turn.wall_ticks = clockTicks();
}

void executeYield(void) { turn.yields = true; }

bool executeIsDue(void) {
    if (likely(!turn.is_due)) return false;
    turn.is_due = false;
    return true;
}

static inline void bindCommand(request *r, const command *cmd) {
    hotCheck(r->argc > 0);
    r->command = cmd;
    r->command_epoch = commandEpoch();
    r->item_hash = 0;
    if (cmd->first_key == 1 && r->argc > 1) { r->key_hash = storeHash(r->argv[1]); }
}

void executeResolve(request *r) { executeResolveAll(r, 1); }

/* The last name that was looked up, as it was sent, if it is short and has no subcommands: mostly
 * the next one is the same. */
typedef struct lastName {
    size_t len; /* SIZE_MAX: none */
    uint64_t bytes, mask;
    const command *cmd;
    uint32_t epoch; /* commandEpoch() of the lookup */
} lastName;

static __thread lastName last_name = {.len = SIZE_MAX}; /* I/O threads resolve, too */

/* The command of a request; &unknown_command for an unknown name. */
static NO_INLINE const command *lookUp(const request *r, lastName *last) {
    hotCheck(r->argc > 0);
    slice name = r->argv[0];
    const command *cmd;
    last->len = SIZE_MAX;
    /* Words of an inline request may be in a separate block without slack. */
    if (likely(name.len - 1 < sizeof(uint64_t)) && likely(r->raw.len)) {
        uint64_t mask = UINT64_MAX >> (64 - 8 * name.len), bytes = loadU64(name.ptr) & mask;
        cmd = commandFindShort(bytes, name.len);
        if (cmd && !cmd->sub_count) *last = (lastName){name.len, bytes, mask, cmd, commandEpoch()};
    } else {
        cmd = commandFind(name);
    }
    if (cmd && cmd->sub_count && r->argc > 1) cmd = commandFindSub(cmd, r->argv[1]);
    return cmd ? cmd : &unknown_command;
}

void executeResolveAll(request *requests, int count) {
    hotCheck(count >= 0);
    lastName *last = &last_name;
    if (unlikely(last->epoch != commandEpoch())) last->len = SIZE_MAX;
    for (request *r = requests, *end = requests + count; r < end; r++) {
        slice name = r->argv[0];
        bool same = likely(name.len == last->len) && likely(r->raw.len) &&
                    likely(!((loadU64(name.ptr) ^ last->bytes) & last->mask));
        bindCommand(r, same ? last->cmd : lookUp(r, last));
    }
}

void executeResolveReplay(request *r) {
    executeResolve(r);
    if (likely(r->command != &unknown_command)) return;
    const command *hidden = commandFindHidden(r->argv[0]);
    if (hidden) bindCommand(r, hidden);
}

static inline bool hasPreparedKey(const request *r) {
    return ((const command *)r->command)->first_key == 1 && r->argc >= 2;
}

/* True if commands with these flags name an item, a field or member, in one argument: itemOf(). */
static inline bool flagsNameItem(uint64_t flags) { return flags & (CMD_ITEM | CMD_LAST_ITEM); }

static inline slice itemOf(const request *r) {
    hotCheck(r->argc > 2);
    bool is_last = ((const command *)r->command)->flags & CMD_LAST_ITEM;
    return r->argv[is_last ? r->argc - 1 : 2];
}

/* Prefetches the items that requests look up in large collections. `wants` are the keys of the
 * requests that have one, in their order. */
static NO_INLINE void prefetchItems(const executePart *parts, int count, const storeWant *wants) {
    storeItemWant items[STORE_ITEMS_MAX];
    request *of[STORE_ITEMS_MAX];
    int n = 0;
    for (int i = 0; i < count; i++) {
        const executePart *part = &parts[i];
        for (int k = 0; k < part->count && n < STORE_ITEMS_MAX; k++) {
            request *r = &part->requests[k];
            if (!hasPreparedKey(r)) continue;
            const robj *o = wants++->likely;
            if (!o || objectForm(o) != FORM_POINTER) continue;
            if (!flagsNameItem(((const command *)r->command)->flags) || r->argc < 3) continue;
            of[n] = r;
            items[n++] = (storeItemWant){.object = o, .item = itemOf(r)};
        }
    }
    if (n < 2) return; /* one alone has nothing to overlap with */
    storePrefetchItems(items, n);
    for (int i = 0; i < n; i++) of[i]->item_hash = items[i].hash;
}

void executePrefetch(const executePart *parts, int count) {
    _Static_assert(EXECUTE_PREFETCH_MAX <= (int)STORE_WANTS_MAX, "all keys of a batch");
    storeWant wants[EXECUTE_PREFETCH_MAX], *want = wants;
    uint64_t flags = 0; /* of the first command of each part: the others are mostly the same */
    for (int i = 0; i < count; i++) {
        const executePart *part = &parts[i];
        const db *d = part->who->db;
        for (int k = 0; k < part->count; k++) {
            const request *r = &part->requests[k];
            if (!hasPreparedKey(r)) continue;
            if (unlikely(want == wants + EXECUTE_PREFETCH_MAX)) {
                storePrefetch(wants, EXECUTE_PREFETCH_MAX);
                return;
            }
            want->db = d;
            want++->hash = r->key_hash;
        }
        if (likely(part->count)) flags |= ((const command *)part->requests->command)->flags;
    }
    storePrefetch(wants, (int)(want - wants));
    if (unlikely(flagsNameItem(flags))) prefetchItems(parts, count, wants);
}

static void (*tell_late)(void);

void executeSetLateProc(void (*tell)(void)) { tell_late = tell; }

/* Processes the effects of a command other than its reply. */
static inline void finish(ctx *c) {
    hotCheck(c->cmd);
    if (unlikely(c->flags & (CTX_CHANGED | CTX_LATE_EVENTS)) && unlikely(engineHot.sinks)) {
        if (c->flags & CTX_LATE_EVENTS) tell_late();
        if (!(c->flags & CTX_CHANGED)) return;
        if (!(c->flags & (CTX_REWRITTEN | CTX_NO_PROPAGATE))) propagateRequest(c);
        if (!c->outer) c->targets = c->who->targets; /* ctxPropagateTo() was for this command */
    }
}

void executeEffects(ctx *c) { finish(c); }

/* Appends one line of an error text: truncated at `max` bytes or a NUL, with line breaks replaced
 * by blanks. */
static void appendCut(str *to, slice from, size_t max) {
    hotCheck(max > 0);
    size_t start = to->len;
    strAppend(to, from.ptr, strnlen(from.ptr, sizeMin(from.len, max)));
    for (size_t i = start; i < to->len; i++) {
        if (to->ptr[i] == '\r' || to->ptr[i] == '\n') to->ptr[i] = ' ';
    }
}

static void describeUnknown(const slice *argv, int argc, str *text) {
    hotCheck(argc > 0);
    const command *container = commandFind(argv[0]);
    if (container && argc > 1) {
        strAppendText(text, "ERR unknown subcommand '");
        appendCut(text, argv[1], 128);
        strAppendText(text, "'. Try ");
        appendCut(text, argv[0], 128);
        for (size_t i = text->len - sizeMin(argv[0].len, 128); i < text->len; i++) {
            text->ptr[i] = byteUpper(text->ptr[i]);
        }
        strAppendText(text, " HELP.");
    } else {
        strAppendText(text, "ERR unknown command '");
        appendCut(text, argv[0], 128);
        strAppendText(text, "', with args beginning with: ");
        size_t start = text->len;
        for (int i = 1; i < argc && text->len - start < 128; i++) {
            size_t available = 128 - (text->len - start);
            strAppendByte(text, '\'');
            appendCut(text, argv[i], available);
            strAppendText(text, "' ");
        }
    }
}

static void replyUnknown(ctx *c) {
    str text = STR_EMPTY;
    describeUnknown(c->argv, c->argc, &text);
    replyError(c, strSlice(&text));
    strFree(&text);
}

/* Names that an HTTP client sends: possibly a cross-protocol attack through a browser. */
static bool isCrossProtocol(slice name) { return sliceIs(name, "post") || sliceIs(name, "host:"); }

/* The armed gates that select this command, apply to its origin and are not exempt. */
static uint64_t gatesToCheck(const ctx *c, uint64_t armed) {
    return armed & c->cmd->gates & gateMaskOfOrigin((ctxOrigin)c->origin) & ~c->gates_exempt;
}

/* Checks that are not made by a gate. False: the error was replied, or the session was closed. */
static bool isAcceptable(ctx *c) {
    const command *cmd = c->cmd;
    if (cmd == &unknown_command && isCrossProtocol(c->argv[0])) {
        logWarning(
            "Possible SECURITY ATTACK detected. It looks like somebody is sending POST or Host: commands to "
            "Valkey. This is likely due to an attacker attempting to use Cross Protocol Scripting to "
            "compromise your Valkey instance. Connection aborted.");
        sessionCloseNow(c->who);
    } else if (!sessionIsAuthenticated(c->who) && !(cmd->flags & CMD_NO_AUTH)) {
        replyError(c, SLICE("NOAUTH Authentication required."));
    } else if (cmd == &unknown_command) {
        replyUnknown(c);
    } else if (!commandArityFits(cmd, c->argc)) {
        replyErrorArity(c);
    } else {
        return true;
    }
    return false;
}

static struct {
    bool (*has)(slice name);
    commandProc *run;
} skipped;

void executeSetSkipped(bool (*has)(slice name), commandProc *run) {
    skipped.has = has;
    skipped.run = run;
}

static bool isSkipped(const ctx *c) {
    hotCheck(c->cmd == &unknown_command);
    return skipped.has && c->who->flags & SESSION_REPLAY && skipped.has(c->argv[0]);
}

static void runSkipped(ctx *c) {
    skipped.run(c);
    replyOk(c);
}

/* Admission; the order of the checks determines which error is replied. */
static gateVerdict admit(ctx *c, uint64_t armed) {
    if (unlikely(c->cmd == &unknown_command) && isSkipped(c)) {
        if (c->who->flags & SESSION_IN_MULTI) return queueGate.admit(c);
        runSkipped(c);
        return GATE_DONE;
    }
    if (isAcceptable(c)) return gatesAdmit(c, gatesToCheck(c, armed));
    c->who->flags |= SESSION_REFUSED;
    return GATE_REFUSED;
}

static bool isObserved(const ctx *c) { return engineHot.command_observers || c->who->observed; }

/* Checks a command that was timed for the command log; `pending` is the output before it. */
static void measure(ctx *c, uint64_t ticks, size_t pending) {
    c->flags |= CTX_MEASURED;
    /* The bytes of commands that EXEC runs were received in other requests. */
    int64_t request_bytes = c->flags & CTX_IN_MULTI ? -1 : measureRequestBytes(c);
    int64_t reply_bytes = (int64_t)(outbufPending(c->out) - pending);
    if (unlikely(ticks >= limits.ticks) || request_bytes > limits.request_bytes ||
        reply_bytes > limits.reply_bytes) {
        measureNote(c, ticks, request_bytes, reply_bytes);
    }
}

/* Counts `ran` executions of a command, which took `ticks` in total, and refused requests for
 * it. */
static inline void account(session *s, const command *cmd, int ran, int failed, int rejected,
                           uint64_t ticks) {
    hotCheck(ran >= failed);
    hotCheck(ran >= 0);
    hotCheck(rejected >= 0);
    if (unlikely(s->origin == ORIGIN_AOF)) return;
    /* The engine owns the commands; other folders see them as const. */
    command *counted = (command *)cmd;
    counted->failed += (uint64_t)failed;
    counted->rejected += (uint64_t)rejected;
    if (unlikely(ran == 0)) return;
    s->commands += (uint64_t)ran;
    int64_t ns = clockTicksToNs(ticks);
    counted->calls += (uint64_t)ran;
    counted->usec_ns += (uint64_t)ns;
    engineHot.commands += (uint64_t)ran;
    if (engineHot.latency_tracking) statsRecordLatency(counted, ns / ran, (uint32_t)ran);
}

/* Runs an admitted command with command observers, and counts it. The observers get the duration
 * that is counted. Returns this duration. */
static uint64_t runObserved(ctx *c) {
    size_t pending = outbufPending(c->out);
    bool seen = isObserved(c);
    if (seen && !(c->flags & CTX_WOKEN)) hooksBeforeCommand(c);
    uint64_t started = clockTicks();
    c->cmd->proc(c);
    uint64_t ticks = clockTicks() - started;
    bool ran = !(c->flags & CTX_NOT_RUN);
    account(c->who, c->cmd, ran, ran && c->flags & CTX_FAILED, 0, ticks);
    if (seen || c->flags & CTX_OBSERVED) hooksAfterCommand(c, clockTicksToNs(ticks));
    c->flags &= ~(uint32_t)CTX_OBSERVED;
    measure(c, ticks, pending);
    finish(c);
    if (ran && c->cmd->flags & CMD_STOPS_BATCH) c->who->flags |= SESSION_REPARSE;
    return ticks;
}

/* Evaluates armed gates, and runs the command if it is observed, or `filtered`. Returns true if the
 * command may run on the fast path and has not run yet. */
static NO_INLINE bool runUnusual(ctx *c, uint64_t armed, bool filtered) {
    session *s = c->who;
    outbuf silence;
    uint64_t modes = s->flags & SESSION_REPLY_MODES;
    if (unlikely(modes)) {
        if (s->flags & SESSION_REPLY_SKIP_NEXT) {
            sessionSetReplyMode(s, (s->flags & SESSION_REPLY_OFF) | SESSION_REPLY_SKIP);
        }
        outbufInitNull(&silence);
        c->out = &silence;
    }
    c->flags |= CTX_ADMISSION;
    size_t pending = isObserved(c) ? outbufPending(c->out) : 0;
    gateVerdict verdict = admit(c, armed);
    c->flags &= ~(uint32_t)CTX_ADMISSION;
    if (verdict == GATE_PASS) {
        if (!modes && !isObserved(c) && !filtered) return true;
        (void)runObserved(c); /* executeRun() adds up the time of all commands */
        c->flags = (c->flags & ~(uint32_t)CTX_FAILED) | CTX_NOT_RUN | CTX_COUNTED;
    } else if (verdict == GATE_HELD) {
        c->flags |= CTX_NOT_RUN | CTX_HELD;
    } else {
        c->flags |= CTX_NOT_RUN | (c->flags & CTX_FAILED ? CTX_REJECTED : 0);
        if (isObserved(c) && verdict == GATE_REFUSED) hooksRefusedCommand(c, pending);
        /* A refused EXEC ends its transaction, so observers are called. */
        if (isObserved(c) && c->cmd->flags & CMD_RUNS_QUEUE) hooksAfterCommand(c, 0);
    }
    if (c->out == &silence) outbufClear(&silence);
    c->out = &s->out;
    if (verdict == GATE_HELD) {
        check(s->flags & SESSION_STOPS);
        sessionSetReplyMode(s, modes); /* as if the request had not arrived yet */
    } else if (s->flags & SESSION_REPLY_SKIP) {
        sessionSetReplyMode(s, s->flags & (SESSION_REPLY_OFF | SESSION_REPLY_SKIP_NEXT));
    }
    return false;
}

static void runFiltered(ctx *c, filteredRequest *f);
static void runReplaced(ctx *c);

/* Runs a request of a stream with the name of a hidden extension; false: it has another name. */
static bool runHidden(ctx *c) {
    if (c->cmd != &unknown_command || !(c->who->flags & SESSION_REPLAY)) return false;
    const command *hidden = commandFindHidden(c->argv[0]);
    if (!hidden) return false;
    bindCommand(c->request, hidden);
    c->cmd = hidden;
    c->key_hash = c->request->key_hash;
    runReplaced(c);
    return true;
}

static NO_INLINE bool runSlow(ctx *c, uint64_t armed) {
    if (unlikely(runHidden(c))) return false;
    filteredRequest *f = requestFilterRun(c);
    if (likely(!f)) return runUnusual(c, armed, false);
    runFiltered(c, f);
    return false;
}

/* runSlow() for the usual case of a request with armed gates: no reply mode, no observer, a known
 * name. */
static NO_INLINE bool runGated(ctx *c, uint64_t armed) {
    const command *cmd = c->cmd;
    uint64_t asked = armed & cmd->gates;
    if (unlikely(asked & (GATE_BIT_SPECIAL | GATE_BIT_UNKNOWN)) || !commandArityFits(cmd, c->argc))
        return runSlow(c, armed);
    c->flags = CTX_ADMISSION;
    gateVerdict verdict = gatesAdmit(c, asked & gateMaskOfOrigin((ctxOrigin)c->origin));
    c->flags &= ~(uint32_t)CTX_ADMISSION;
    if (likely(verdict == GATE_PASS)) return true;
    c->flags |= CTX_NOT_RUN;
    if (verdict == GATE_HELD) {
        check(c->who->flags & SESSION_STOPS);
        c->flags |= CTX_HELD;
    } else if (c->flags & CTX_FAILED) {
        c->flags |= CTX_REJECTED;
    }
    return false;
}

void executeAccount(ctx *c, bool rejected, bool failed, uint64_t ticks) {
    account(c->who, c->cmd, 1, failed, rejected, ticks);
    if (isObserved(c)) hooksCommandWorked(c, clockTicksToNs(ticks));
}

void executeAccountRun(ctx *c, uint64_t ticks) {
    account(c->who, c->cmd, 1, (c->flags & CTX_FAILED) != 0, 0, ticks);
    c->flags |= CTX_WOKEN;
    if (isObserved(c)) hooksAfterCommand(c, clockTicksToNs(ticks));
}

void executeCountCall(const ctx *c) { account(c->who, c->cmd, 1, 0, 0, 0); }

void executeCountWork(ctx *c, bool as_call, uint64_t ticks) {
    hotCheck(c->cmd);
    if (as_call) {
        account(c->who, c->cmd, 1, 0, 0, ticks);
        measure(c, ticks, outbufPending(c->out));
    } else if (c->who->origin != ORIGIN_AOF) {
        ((command *)c->cmd)->usec_ns += (uint64_t)clockTicksToNs(ticks);
    }
    if (isObserved(c)) hooksCommandWorked(c, clockTicksToNs(ticks));
}

/* Runs a request whose command was replaced, and counts it: for executeRun() it was not run. */
static void runReplaced(ctx *c) {
    bool passed = runUnusual(c, engineHot.armed | c->who->armed, true);
    check(!passed);
    if (c->flags & CTX_REJECTED) executeCountRejected(c);
    propagateUnitEnd(); /* what is propagated refers to the arguments */
    propagateUnitBegin();
    c->flags = (c->flags & ~(uint32_t)(CTX_REJECTED | CTX_FAILED)) | CTX_NOT_RUN | CTX_COUNTED;
}

/* Runs a request that filters have rewritten. */
static void runFiltered(ctx *c, filteredRequest *f) {
    const request *sent = c->request;
    runReplaced(c);
    c->request = (request *)sent;
    filteredFree(f);
}

/* After a command: runs requests blocked on keys that it changed. Returns the ticks this took. */
static NO_INLINE uint64_t wakeOthers(void) {
    uint64_t began = clockTicks();
    propagateUnitEnd();
    blockWake();
    propagateUnitBegin();
    return clockTicks() - began;
}

/* Checks a request and its reply on the fast path for the command log; `before` and `after` are the
 * output that was pending before and after the command. */
static inline void checkSize(ctx *c, const request *r, size_t before, size_t after) {
    hotCheck(after >= before);
    int64_t reply_bytes = (int64_t)(after - before);
    /* `raw` does not include inline requests (it is empty then) and large arguments. */
    bool large_request = r->raw.len - 1 >= large_from || r->large_count;
    if (likely(reply_bytes <= limits.reply_bytes) && likely(!large_request)) return;
    int64_t request_bytes = measureRequestBytes(c);
    if (request_bytes > limits.request_bytes || reply_bytes > limits.reply_bytes)
        measureNote(c, 0, request_bytes, reply_bytes);
}

/* Checks the duration: the mean of a run of quick commands, or that of a single one. Sizes were
 * checked already. */
static inline void checkTime(ctx *c, int ran, uint64_t ticks) {
    if (likely(ticks < limits.ticks) || c->flags & CTX_MEASURED || !ran) return;
    if (ticks / (uint64_t)ran >= limits.ticks) measureNote(c, ticks / (uint64_t)ran, -1, -1);
}

static uint64_t executed_ticks; /* in commands, of all turns */

uint64_t executeCommandUs(void) { return (uint64_t)clockTicksToNs(executed_ticks) / 1000; }

enum {
    UNUSUAL_END = CTX_FAILED | CTX_REJECTED | CTX_NOT_RUN | CTX_WAKES | CTX_DELIVERS |
                  CTX_HOLDS_REPLY | CTX_OBSERVED
};

int executeRun(session *s, request *requests, int count) {
    ctx c = {.who = s,
             .out = &s->out,
             .proto = s->proto,
             .origin = s->origin,
             .targets = s->targets,
             .below = engineHot.current};
    hotCheck(!(s->flags & SESSION_LENT));
    /* Evicted keys are no effect of these requests: what is sent about them precedes the
     * replies. */
    if (unlikely(engineHot.memory_limited)) memoryKeep();
    engineHot.current = &c;
    if (unlikely(requests[0].command_epoch != commandEpoch())) executeResolveAll(requests, count);
    engineHot.hotkeys_in -= count;
    if (unlikely(engineHot.hotkeys_in < 0)) hotkeysLook(s->db_id, requests, count);
    uint64_t started = clockTicks();
    request *r = requests, *end = requests + count;
    propagateUnitBegin();
    while (r < end && !(s->flags & SESSION_STOPS)) {
        const command *cmd = r->command;
        request *first = r, *last = cmd->flags & CMD_QUICK ? end : r + 1;
        int failed = 0, rejected = 0, not_run = 0;
        size_t pending = outbufPending(&s->out);
        c.cmd = cmd;
        c.now_ms = engineHot.now_ms;
        c.look = keyspaceLookOf(s, c.now_ms);
        do {
            c.argv = r->argv;
            c.argc = r->argc;
            c.db = s->db;
            c.key_hash = r->key_hash;
            c.request = r;
            c.flags = 0;
            uint64_t armed = engineHot.armed | s->armed;
            size_t after;
            bool usual = !(armed & cmd->gates) && commandArityFits(cmd, r->argc);
            if (likely(usual) || runGated(&c, armed)) {
                if (unlikely(r->item_hash)) storeKnowItem(itemOf(r), r->item_hash);
                cmd->proc(&c);
                after = outbufPending(&s->out);
                checkSize(&c, r, pending, after);
                finish(&c);
            } else {
                after = outbufPending(&s->out);
            }
            r++;
            if (unlikely(c.flags & UNUSUAL_END)) {
                if (c.flags & CTX_OBSERVED)
                    hooksAfterCommand(&c, clockTicksToNs(clockTicks() - started));
                if (c.flags & CTX_HOLDS_REPLY) blockTakeReply(s, pending);
                if (c.flags & CTX_HELD) r--;
                if (c.flags & CTX_COUNTED) last = r; /* c.cmd may be another command */
                not_run += (c.flags & (CTX_REJECTED | CTX_NOT_RUN)) != 0 && !(c.flags & CTX_HELD);
                rejected += (c.flags & CTX_REJECTED) != 0;
                failed += (c.flags & (CTX_REJECTED | CTX_FAILED)) == CTX_FAILED;
                if (c.flags & CTX_WAKES && !c.below) started += wakeOthers();
                if (c.flags & CTX_DELIVERS) deliverWaiting(s);
                after = outbufPending(&s->out);
            }
            pending = after;
            if (unlikely(engineHot.sinks)) {
                propagateUnitEnd();
                propagateUnitBegin();
            }
        } while (r < last && r->command == cmd && !(s->flags & SESSION_STOPS));
        storeForgetItem(); /* until here the arguments of all these requests were in memory */
        int ran = (int)(r - first) - not_run;
        if (unlikely(cmd->flags & CMD_STOPS_BATCH) && ran) s->flags |= SESSION_REPARSE;
        uint64_t ended = clockTicks();
        account(s, cmd, ran, failed, rejected, ended - started);
        /* the commands of a nested turn are part of the command that runs it */
        if (likely(!c.below)) executed_ticks += ended - started;
        checkTime(&c, ran, ended - started);
        started = ended;
        s->last_command = c.cmd == &unknown_command ? NULL : c.cmd;
        if (unlikely(ended - turn.wall_ticks > turn.refresh_ticks)) {
            engineHot.now_ms = clockWallMs();
            turn.wall_ticks = ended;
            if (unlikely(turn.yields) && !c.below) {
                turn.is_due = true;
                if (!(cmd->flags & CMD_QUICK) && !(s->flags & SESSION_REPLAY)) break;
            }
        }
    }
    propagateUnitEnd();
    engineHot.current = c.below;
    if (s->out.first) sessionWantWrite(s);
    return (int)(r - requests);
}

void executeReplay(session *s, request *r, replySink *sink) {
    check(s->flags & SESSION_INTERNAL);
    if (!s->out.sink) outbufInitSink(&s->out, sink);
    (void)executeRun(s, r, 1); /* nothing has stopped the session */
    outbufSinkFlush(&s->out);
    s->flags &= ~SESSION_REPARSE;
}

bool executeResolveInner(ctx *c) {
    hotCheck(c->argc > 0);
    bool unknown_sub;
    const command *cmd = commandResolve(c->argv, c->argc, &unknown_sub);
    if (unlikely(!cmd) && c->who->flags & SESSION_REPLAY) cmd = commandFindHidden(c->argv[0]);
    c->cmd = cmd && !unknown_sub ? cmd : &unknown_command;
    if (c->cmd->first_key == 1 && c->argc > 1) c->key_hash = storeHash(c->argv[1]);
    return c->cmd != &unknown_command;
}

/* Admission of a command run by another one: authentication was checked for the outer request, and
 * refusing the inner one does not refuse the outer. */
static bool admitInner(ctx *c) {
    if (unlikely(c->cmd == &unknown_command)) {
        replyUnknown(c);
        return false;
    }
    if (unlikely(!commandArityFits(c->cmd, c->argc))) {
        replyErrorArity(c);
        return false;
    }
    uint64_t ask = gatesToCheck(c, engineHot.armed | c->who->armed);
    if (likely(!ask)) return true;
    gateVerdict verdict = gatesAdmit(c, ask);
    check(verdict == GATE_PASS || verdict == GATE_REFUSED); /* it could not be run later */
    return verdict == GATE_PASS;
}

bool executeMayRun(ctx *c) {
    if (admitInner(c)) return true;
    c->flags |= CTX_REJECTED;
    return false;
}

void executeInner(ctx *c) {
    hotCheck(c->argc > 0);
    c->below = engineHot.current;
    engineHot.current = c;
    if (!c->cmd) (void)executeResolveInner(c); /* an unknown name is refused below */
    if (likely(admitInner(c))) {
        propagateUnitBegin();
        uint64_t ticks = runObserved(c);
        propagateUnitEnd();
        if (!c->below) executed_ticks += ticks;
        if (unlikely(c->flags & CTX_WAKES) && c->outer) c->outer->flags |= CTX_WAKES;
    } else {
        c->flags |= CTX_REJECTED;
        account(c->who, c->cmd, 0, 0, 1, 0);
    }
    if (unlikely(c->out->sink != NULL) && !(c->outer && c->outer->out == c->out))
        outbufSinkFlush(c->out);
    engineHot.current = c->below;
    if (unlikely(c->flags & CTX_DELIVERS)) deliverWaiting(c->who);
}

/* A unit that is no command: what `c` propagates between these two belongs together. */
static void beginUnit(ctx *c) {
    hotCheck(c->who);
    c->below = engineHot.current;
    engineHot.current = c;
    propagateUnitBegin();
}

/* A command below wakes others, else this does so if `wakes`, or the caller. */
static void endUnit(ctx *c, bool wakes) {
    hotCheck(engineHot.current == c);
    propagateUnitEnd();
    engineHot.current = c->below;
    if (c->flags & CTX_WAKES) {
        if (c->below) {
            c->below->flags |= CTX_WAKES;
        } else if (wakes) {
            blockWake();
        }
    }
    if (c->flags & CTX_DELIVERS) deliverWaiting(c->who);
}

uint64_t executeLater(ctx *c, commandProc *part, const uint64_t *work) {
    beginUnit(c);
    size_t pending = outbufPending(c->out);
    uint64_t started = clockTicks();
    part(c);
    uint64_t ticks = clockTicks() - started + *work;
    if (!(c->flags & CTX_MEASURED)) measure(c, ticks, pending);
    finish(c);
    endUnit(c, false);
    return ticks;
}

void executeUnit(session *s, executePartProc *part, void *arg) {
    hotCheck(s->flags & SESSION_INTERNAL);
    ctx c = {.who = s,
             .db = s->db,
             .out = &s->out,
             .proto = s->proto,
             .origin = s->origin,
             .targets = s->targets,
             .now_ms = engineHot.now_ms,
             .look = keyspaceLookOf(s, engineHot.now_ms)};
    beginUnit(&c);
    part(&c, arg);
    endUnit(&c, true);
}

void executeCountRejected(ctx *c) { account(c->who, c->cmd, 0, 0, 1, 0); }

static void bindAgain(request *r) {
    hotCheck(r->argc > 0);
    bool unknown_sub;
    const command *cmd = commandResolve(r->argv, r->argc, &unknown_sub);
    /* The transaction of a stream has queued a hidden extension. */
    if (!cmd && r->command == commandFindHidden(r->argv[0])) cmd = r->command;
    bindCommand(r, cmd && !unknown_sub ? cmd : &unknown_command);
}

bool executeRebind(request *r, str *why) {
    hotCheck(r->argc > 0);
    if (r->command == &unknown_command) return true; /* queued because it is skipped */
    bindAgain(r);
    const command *cmd = r->command;
    if (cmd == &unknown_command) {
        describeUnknown(r->argv, r->argc, why);
        return false;
    }
    bool fits = commandArityFits(cmd, r->argc);
    if (!fits)
        strAppendFormat(why, "ERR wrong number of arguments for '%.*s' command", (int)cmd->name.len,
                        cmd->name.ptr);
    return fits;
}

void executeKept(ctx *outer, request *r, uint32_t flags) {
    hotCheck(r->argc > 0);
    ctx c;
    ctxInitInner(&c, outer);
    if (unlikely(r->command_epoch != commandEpoch())) bindAgain(r);
    c.db = c.who->db; /* a command of the transaction may have selected another one */
    c.argv = r->argv;
    c.argc = r->argc;
    c.cmd = r->command;
    c.key_hash = r->key_hash;
    c.request = r;
    c.flags = flags;
    c.gates_exempt = ~gateAgainMask();
    if (unlikely(c.cmd == &unknown_command) && isSkipped(&c)) {
        runSkipped(&c);
    } else {
        executeInner(&c);
    }
}

void executeProtocolError(session *s, slice text) {
    ctx c = {.who = s, .out = &s->out, .db = s->db, .proto = s->proto};
    outbuf silence;
    outbufInitNull(&silence);
    if (s->flags & SESSION_REPLY_MODES) c.out = &silence;
    replyError(&c, text);
    outbufClear(&silence);
    sessionWantWrite(s);
    sessionCloseSoon(s);
}
