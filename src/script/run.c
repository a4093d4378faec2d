/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Execution of a script (run.h). Its commands run inside the command that called it, so all of them
 * are one execution unit: sinks get their changes between MULTI and EXEC. Invariant: the busy gate
 * is armed if and only if the current run is busy. Main thread only. */
#include "script/run.h"

#include "base/base.h"
#include "engine/execute.h"
#include "engine/filter.h"
#include "engine/hooks.h"
#include "engine/lifecycle.h"
#include "engine/memory.h"
#include "engine/options.h"
#include "engine/reply.h"
#include "engine/stats.h"
#include "engine/transaction.h"
#include "script/debug.h"
#include "script/script.h"
#include "script/script_priv.h"
#include "store/store.h"

static struct {
    scriptRun *run;
    int db_id; /* of the session before the run */
    uint64_t denied;
    int64_t served_us, answered_us;
} now;

const char *const scriptFlagNames[SCRIPT_FLAG_COUNT] = {"no-writes", "allow-oom", "allow-stale",
                                                        "no-cluster", "allow-cross-slot-keys"};

unsigned scriptFlagParse(slice name, bool fold) {
    hotCheck(threadIsMain());
    for (int i = 0; i < SCRIPT_FLAG_COUNT; i++) {
        bool same = fold ? sliceIs(name, scriptFlagNames[i])
                         : sliceEqual(name, sliceOf(scriptFlagNames[i]));
        if (same) return 1u << i;
    }
    return 0;
}

const scriptRun *scriptRunNow(void) { return now.run; }

/* ------------------------------------------------------------------ begin and end */

/* The gates of memory, if the script may exceed its limit: it says so, or a module runs it that has
 * not asked for the limit. */
static uint64_t exemptFromMemory(const scriptRun *run, const ctx *c) {
    if (run->flags & SCRIPT_ALLOW_OOM) return memoryGateMask();
    return c->origin == ORIGIN_MODULE ? c->gates_exempt & memoryGateMask() : 0;
}

/* The gates that a command with the flags of the script would meet. Scripts without a header are
 * always run: their commands meet the gates. */
static bool isAdmitted(const scriptRun *run, ctx *c) {
    bool has_header = !(run->flags & SCRIPT_NO_HEADER);
    bool may_write = has_header && !(run->flags & SCRIPT_NO_WRITES) && !ctxIsReplay(c);
    if (has_header && run->flags & SCRIPT_NO_CLUSTER && storeIsSlotted()) {
        replyError(c, SLICE("ERR Can not run script on cluster, 'no-cluster' flag is set."));
        return false;
    }
    bool needs_fresh = !(run->flags & SCRIPT_ALLOW_STALE);
    bool by_module = c->origin == ORIGIN_MODULE;
    if (by_module && has_header && gatesAdmitScript(c, may_write, needs_fresh) != GATE_PASS)
        return false;
    bool is_misused = may_write && run->is_read_only;
    uint64_t exempt = exemptFromMemory(run, c) ? memoryGatesOfStart() : 0;
    if (may_write && !(by_module && is_misused) && gatesAdmitWriter(c, exempt) != GATE_PASS)
        return false;
    if (needs_fresh && gatesAdmitStale(c) != GATE_PASS) return false;
    if (!is_misused) return true;
    replyError(c, SLICE("ERR Can not execute a script with write flag using *_ro command."));
    return false;
}

static bool mustStayInSlot(const scriptRun *run) {
    return storeIsSlotted() && !(run->flags & (SCRIPT_NO_HEADER | SCRIPT_ALLOW_CROSS_SLOT_KEYS));
}

static bool addSlots(void *arg, const command *cmd, const slice *argv, int argc) {
    hotCheck(argc > 0);
    int *slot = arg;
    *slot = commandSlots(*slot, cmd, argv, argc);
    return true;
}

/* The slot of the declared keys, or of the transaction that the script belongs to. */
static int slotBefore(const scriptRun *run, const ctx *c) {
    int slot = COMMAND_NO_SLOT;
    if (run->key_count) return storeHashSlot(storeHash(run->keys[0]));
    if (c->flags & CTX_IN_MULTI) (void)transactionEach(c->who, addSlots, &slot); /* visits all */
    return slot;
}

bool scriptRunBegin(scriptRun *run, ctx *c, int first, int key_count) {
    hotCheck(threadIsMain());
    if (unlikely(now.run != NULL)) { /* a module that the script has called runs another one */
        replyError(c, SLICE("ERR This Valkey command is not allowed from script"));
        return false;
    }
    if (!isAdmitted(run, c)) return false;
    run->caller = c;
    run->memory_exempt = exemptFromMemory(run, c);
    run->keys = c->argv + first;
    run->key_count = key_count;
    run->args = run->keys + key_count;
    run->arg_count = c->argc - first - key_count;
    if (run->flags & SCRIPT_NO_WRITES) run->is_read_only = true;
    run->proto = 2;
    run->targets = c->targets;
    run->slot = COMMAND_NO_SLOT;
    if (mustStayInSlot(run)) {
        run->slot = slotBefore(run, c);
        c->flags |= CTX_ONE_SLOT;
    }
    run->started_us = clockMonoUs();
    now.run = run;
    if (run->is_read_only || mustStayInSlot(run)) gateArm(&scriptRulesGate, true);
    now.db_id = c->who->db_id;
    now.denied = c->who->flags & SESSION_DENY_BLOCKING;
    c->who->flags |= SESSION_DENY_BLOCKING;
    return true;
}

void scriptRunEnd(scriptRun *run) {
    hotCheck(threadIsMain());
    check(now.run == run);
    session *s = run->caller->who;
    s->flags = (s->flags & ~SESSION_DENY_BLOCKING) | now.denied;
    if (s->db_id != now.db_id) {
        status st = sessionSelect(s, now.db_id);
        check(st == OK); /* it was selected before */
    }
    if (run->is_busy) gateArm(&scriptBusyGate, false);
    gateArm(&scriptRulesGate, false);
    now.run = NULL;
}

uint64_t scriptFlagsOfCommand(const ctx *c, unsigned flags) {
    hotCheck(threadIsMain());
    uint64_t result = c->cmd->flags;
    if (flags & SCRIPT_NO_HEADER) return result;
    if (!(flags & SCRIPT_ALLOW_STALE)) result &= ~CMD_STALE;
    if (flags & SCRIPT_NO_WRITES) return result & ~CMD_MAY_REPLICATE;
    return result | (flags & SCRIPT_ALLOW_OOM ? CMD_WRITE : CMD_WRITE | CMD_DENYOOM);
}

/* ------------------------------------------------------------------ commands of the script */

static bool endsLine(char ch) { return ch == '\r' || ch == '\n'; }

/* Errorstats count by the first word as it is replied: the ends of lines are blanks in a reply,
 * those at its end are left out. */
static void countError(slice text) {
    size_t len = text.len, word = 0;
    while (len > 0 && endsLine(text.ptr[len - 1])) len--;
    while (word < len && text.ptr[word] != ' ' && !endsLine(text.ptr[word])) word++;
    check(word <= text.len);
    if (word < len) {
        statsCountScriptError(sliceMake(text.ptr, word));
    } else {
        statsCountError(SLICE("ERR"));
    }
}

void scriptReplyError(ctx *c, slice text, bool counted) {
    hotCheck(threadIsMain());
    c->flags |= CTX_FAILED;
    if (!counted) countError(text);
    respError(c->out, text);
}

/* True if all keys of the command are in the slot of the run. The first command with keys
 * determines it. */
static bool slotsMatch(scriptRun *run, const ctx *c) {
    int slot = commandSlots(run->slot, c->cmd, c->argv, c->argc);
    if (slot == COMMAND_SEVERAL_SLOTS) return false;
    run->slot = slot;
    return true;
}

/* What a script may not do because of its flags, or because it is read-only: a gate, because users,
 * slots and memory are checked before. */
static gateVerdict checkRules(ctx *c) {
    scriptRun *run = now.run;
    if (run->is_read_only && c->cmd->flags & (CMD_WRITE | CMD_MAY_REPLICATE)) {
        scriptReplyError(c, SLICE("ERR Write commands are not allowed from read-only scripts."),
                         false);
        return GATE_REFUSED;
    }
    if (mustStayInSlot(run) && !slotsMatch(run, c)) {
        scriptReplyError(
            c, SLICE("ERR Script attempted to access keys that do not hash to the same slot"),
            false);
        return GATE_REFUSED;
    }
    return GATE_PASS;
}

const gate scriptRulesGate = {
    .name = "script rules", .admit = checkRules, .origins = 1u << ORIGIN_SCRIPT};

/* Replies why the command may not run in any script; false if it may. */
static bool isRefused(ctx *c) {
    bool by_engine = c->flags & CTX_BY_ENGINE;
    if (by_engine && !commandArityFits(c->cmd, c->argc)) {
        replyErrorArity(c);
    } else if (!commandArityFits(c->cmd, c->argc)) {
        scriptReplyError(c, SLICE("ERR Wrong number of args calling command from script"), false);
    } else if (c->cmd->flags & CMD_NOSCRIPT &&
               (engineDeniedInScripts() || c->cmd->spec->categories & 1u << CAT_SCRIPTING)) {
        if (by_engine) {
            replyErrorFormat(c, "ERR command '%.*s' is not allowed on script mode",
                             (int)c->cmd->name.len, c->cmd->name.ptr);
        } else {
            scriptReplyError(c, SLICE("ERR This Valkey command is not allowed from script"), false);
        }
    } else {
        return false;
    }
    return true;
}

static void replyUnknown(ctx *c) {
    const command *container = commandFind(c->argv[0]);
    if (!container || !container->sub_count || c->argc < 2) {
        scriptReplyError(c, SLICE("ERR Unknown command called from script"), false);
        return;
    }
    str text = STR_EMPTY;
    strAppendFormat(&text, "ERR unknown subcommand '%.*s'. Try ", (int)sizeMin(c->argv[1].len, 128),
                    c->argv[1].ptr);
    for (size_t i = 0; i < c->argv[0].len; i++) strAppendByte(&text, byteUpper(c->argv[0].ptr[i]));
    strAppendText(&text, " HELP.");
    scriptReplyError(c, strSlice(&text), false);
    strFree(&text);
}

/* Runs the command; false: it was refused. */
static bool runCommand(scriptRun *run, const slice *argv, int argc, outbuf *out, bool by_engine) {
    ctx c;
    ctxInitInner(&c, run->caller);
    c.db = c.who->db; /* the script may have selected another one */
    c.argv = argv;
    c.argc = argc;
    c.proto = run->proto;
    c.targets = run->targets;
    if (c.origin == ORIGIN_CLIENT || c.origin == ORIGIN_MODULE) c.origin = ORIGIN_SCRIPT;
    if (run->wrote) c.gates_exempt = gatesWaivedForWriters();
    c.gates_exempt |= run->memory_exempt;
    c.out = out;
    bool rejected = true;
    filteredRequest *filtered = requestFilterInner(&c);
    if (by_engine) c.flags |= CTX_BY_ENGINE;
    if (!executeResolveInner(&c)) {
        if (by_engine) {
            executeInner(&c); /* replies what is unknown */
        } else {
            replyUnknown(&c);
        }
    } else if (unlikely(isRefused(&c))) {
        executeCountRejected(&c);
    } else {
        executeInner(&c);
        rejected = false;
        if (c.cmd->flags & CMD_WRITE && !(c.flags & CTX_REJECTED)) run->wrote = true;
    }
    filteredFree(filtered);
    return !rejected;
}

void scriptRunCommandTo(scriptRun *run, const slice *argv, int argc, outbuf *out) {
    hotCheck(threadIsMain());
    hotCheck(argc > 0);
    (void)runCommand(run, argv, argc, out, true); /* the reply says whether it was refused */
}

void scriptRunCommand(scriptRun *run, const slice *argv, int argc, replySink *sink) {
    hotCheck(threadIsMain());
    hotCheck(argc > 0);
    debugSession *debug = debugNow();
    if (unlikely(debug != NULL)) sink = debugCommandBegins(debug, argv, argc, sink);
    outbuf out;
    outbufInitSink(&out, sink);
    bool ran = runCommand(run, argv, argc, &out, false);
    outbufClear(&out);
    if (unlikely(debug != NULL)) debugCommandEnds(debug, !ran);
}

/* ------------------------------------------------------------------ slow scripts */

static slice busyText(const scriptRun *run) {
    return run->is_function
               ? SLICE("BUSY Valkey is busy running a script. You can only call FUNCTION KILL or "
                       "SHUTDOWN NOSAVE.")
               : SLICE("BUSY Valkey is busy running a script. You can only call SCRIPT KILL or "
                       "SHUTDOWN NOSAVE.");
}

int64_t scriptBusyReplyThreshold(void) { return scriptConf.busy_reply_threshold; }

static bool isShutdown(const commandSpec *spec) { return !strcmp(spec->name, "shutdown"); }

static bool selectsOthers(const commandSpec *spec) {
    return !(spec->flags & CMD_ALLOW_BUSY) || isShutdown(spec);
}

static gateVerdict refuseWhileBusy(ctx *c) {
    if (isShutdown(c->cmd->spec) && c->argc == 2 && ctxArgIs(c, 1, "nosave")) return GATE_PASS;
    replyError(c, busyText(now.run));
    return GATE_REFUSED;
}

const gate scriptBusyGate = {.name = "busy script",
                             .selects = selectsOthers,
                             .admit = refuseWhileBusy,
                             .origins = GATE_FOR_CLIENTS};

static void becomeBusy(scriptRun *run, int64_t elapsed_us) {
    run->is_busy = true;
    logWarning("Slow script detected: still in execution after %lld milliseconds. You can try "
               "killing the script using the %s command. Script name is: %.*s.",
               (long long)(elapsed_us / 1000), run->is_function ? "FUNCTION KILL" : "SCRIPT KILL",
               (int)run->name.len, run->name.ptr);
    gateArm(&scriptBusyGate, true);
}

enum {
    SERVE_EVERY_US = 1000,
    ANSWER_EVERY_US = 100 * 1000, /* other nodes, before clients are served */
};

/* The node must not be regarded as failed before clients are served. */
static void answerNodes(const scriptRun *run, int64_t now_us) {
    int64_t last_us = now.answered_us > run->started_us ? now.answered_us : run->started_us;
    if (now_us - last_us < ANSWER_EVERY_US) return;
    engineAnswerNodes();
    now.answered_us = clockMonoUs();
}

scriptStop scriptRunPoll(scriptRun *run) {
    hotCheck(threadIsMain());
    int64_t now_us = clockMonoUs();
    int64_t elapsed_us = now_us - run->started_us;
    if (run->killed) return SCRIPT_KILLED;
    if (debugNow()) {
        run->killed = debugPoll(debugNow());
        return run->killed ? SCRIPT_KILLED : SCRIPT_GOES_ON;
    }
    int64_t threshold_ms = scriptConf.busy_reply_threshold; /* 0: clients are never served */
    if (!run->is_busy && (!threshold_ms || elapsed_us / 1000 < threshold_ms)) {
        answerNodes(run, now_us);
        return SCRIPT_GOES_ON;
    }
    if (!run->is_busy) {
        becomeBusy(run, elapsed_us);
        now.served_us = 0;
    }
    if (now_us - now.served_us < SERVE_EVERY_US) return SCRIPT_GOES_ON;
    engineServe();
    now.served_us = clockMonoUs();
    return run->killed ? SCRIPT_KILLED : SCRIPT_GOES_ON;
}

void scriptRunKill(ctx *c, bool function) {
    hotCheck(threadIsMain());
    scriptRun *run = now.run;
    if (!run) {
        replyError(c, SLICE("NOTBUSY No scripts in execution right now."));
    } else if (ctxIsReplay(run->caller)) {
        replyError(c, SLICE("UNKILLABLE The busy script was sent by a master instance in the "
                            "context of replication and cannot be killed."));
    } else if (run->wrote) {
        replyError(c, SLICE("UNKILLABLE Sorry the script already executed write commands against "
                            "the dataset. You can either wait the script termination or kill the "
                            "server in a hard way using the SHUTDOWN NOSAVE command."));
    } else if (run->is_function != function) {
        replyError(c, busyText(run));
    } else {
        run->killed = true;
        replyOk(c);
    }
}
