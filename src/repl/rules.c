/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Rules for clients and for the dataset while this server is a replica (rules.h).
 *
 * Invariant: none of the gates is armed on a primary. */
#include "repl/rules.h"

#include "base/base.h"
#include "base/log.h"
#include "base/number.h"
#include "engine/block.h"
#include "engine/hot.h"
#include "engine/job.h"
#include "engine/keyspace.h"
#include "engine/memory.h"
#include "engine/options.h"
#include "engine/pause.h"
#include "engine/reply.h"
#include "engine/transaction.h"
#include "persist/persist.h"
#include "repl/failover.h"
#include "repl/local_expiry.h"
#include "repl/replica.h"
#include "repl/repl_priv.h"
#include "repl/server_state.h"
#include "store/store.h"

static struct { bool is_replica, link_is_up; } role;

/* EXEC stands for the commands that it would run. */
static bool changes(const ctx *c) {
    return c->cmd->flags & CMD_WRITE ||
           (c->cmd->flags & CMD_RUNS_QUEUE && transactionHas(c->who, CMD_WRITE));
}

/* ------------------------------------------------------------------ redirects */

static bool selectsData(const commandSpec *spec) {
    return spec->flags & (CMD_WRITE | CMD_READONLY | CMD_RUNS_QUEUE);
}

static gateVerdict redirect(ctx *c) {
    const session *s = c->who;
    if (!(s->flags & SESSION_CAPA_REDIRECT)) return GATE_PASS;
    bool reads = c->cmd->flags & CMD_READONLY ||
                 (c->cmd->flags & CMD_RUNS_QUEUE && transactionHas(s, CMD_READONLY));
    if (!changes(c) && (!reads || s->flags & SESSION_READONLY)) return GATE_PASS;
    /* As long as the successor is a replica, too, it would redirect the client back. */
    if (failoverIsInProgress()) return pauseHold(c->who);
    c->flags |= CTX_REDIRECTED;
    replyErrorFormat(c, "REDIRECT %s:%d", strText(&replConf.primary_host), replConf.primary_port);
    return GATE_REFUSED;
}

const gate replicaRedirectGate = {.name = "replica redirect",
                                  .selects = selectsData,
                                  .admit = redirect,
                                  .origins = GATE_FOR_CLIENTS};

/* ------------------------------------------------------------------ read only */

static gateVerdict refuseWrite(ctx *c) {
    if (c->cmd->flags & CMD_RUNS_QUEUE && !changes(c)) return GATE_PASS;
    /* Those that came before the role has changed are held, too. Sentinel disconnects them all. */
    if (c->origin == ORIGIN_CLIENT && !c->outer && failoverHoldsWrites())
        return pauseHoldWrite(c->who);
    replyError(c, SLICE("READONLY You can't write against a read only replica."));
    return GATE_REFUSED;
}

static void refuseWritingScript(ctx *c) {
    replyError(c, SLICE("READONLY Can not run script with write flag on readonly replica"));
}

bool replSelectsWrites(const commandSpec *spec) {
    return spec->flags & (CMD_WRITE | CMD_RUNS_QUEUE);
}

const gate replicaReadOnlyGate = {.name = "read-only replica",
                                  .selects = replSelectsWrites,
                                  .admit = refuseWrite,
                                  .refuse_script = refuseWritingScript,
                                  .waived_for_writer = true};

/* ------------------------------------------------------------------ stale data */

static bool selectsFresh(const commandSpec *spec) {
    return !(spec->flags & CMD_STALE) || spec->flags & CMD_RUNS_QUEUE;
}

static gateVerdict refuseStale(ctx *c) {
    if (c->cmd->flags & CMD_RUNS_QUEUE && !transactionLacks(c->who, CMD_STALE)) return GATE_PASS;
    if (c->origin == ORIGIN_SCRIPT) {
        replyError(c, SLICE("ERR Can not execute the command on a stale replica"));
        return GATE_REFUSED;
    }
    replyError(c, SLICE("MASTERDOWN Link with MASTER is down and replica-serve-stale-data is set "
                        "to 'no'."));
    return GATE_REFUSED;
}

static void refuseStaleScript(ctx *c) {
    replyError(c, SLICE("MASTERDOWN Link with MASTER is down, replica-serve-stale-data is set to "
                        "'no' and 'allow-stale' flag is not set on the script."));
}

const gate replicaStaleGate = {.name = "stale replica",
                               .selects = selectsFresh,
                               .admit = refuseStale,
                               .refuse_script = refuseStaleScript,
                               .of_stale_data = true};

/* ------------------------------------------------------------------ disk errors */

static bool selectsChanges(const commandSpec *spec) { return spec->flags & CMD_WRITE; }

static gateVerdict applyAnyway(ctx *c) {
    enum { LOG_PERIOD_MS = 10000 };
    static int64_t logged_ms;
    if (!replConf.replica_ignore_disk_write_errors)
        panic("Replica was unable to write command to disk.");
    if (logged_ms && c->now_ms - logged_ms < LOG_PERIOD_MS) return GATE_PASS;
    logged_ms = c->now_ms;
    logWarning("Replica is applying a command even though it is unable to write to disk.");
    return GATE_PASS;
}

const gate replicaDiskGate = {.name = "replica disk",
                              .selects = selectsChanges,
                              .admit = applyAnyway,
                              .origins = 1u << ORIGIN_PRIMARY};

/* ------------------------------------------------------------------ the stream */

static bool isSelect(const commandSpec *spec) { return !strcmp(spec->name, "select"); }

/* Released primaries send changes, messages, transactions, SELECT, PING and REPLCONF, and in a
 * cluster CLUSTER. SELECT is asked about as well, for the number of its database. */
static bool mayBreak(const commandSpec *spec) {
    static const char *const names[] = {"quit", "reset", "monitor", "wait", "waitaof"};
    if (isSelect(spec)) return true;
    if (!strcmp(spec->name, "replconf") || !strcmp(spec->group, "cluster")) return false;
    for (size_t i = 0; i < COUNT_OF(names); i++) {
        if (!strcmp(spec->name, names[i])) return true;
    }
    return spec->flags & (CMD_BLOCKING | CMD_ADMIN) &&
           !(spec->flags & CMD_WRITE && !(spec->flags & CMD_BLOCKING));
}

static gateVerdict breakLink(ctx *c) {
    if (!replicaIsStream(c->who)) return GATE_PASS;
    if (isSelect(c->cmd->spec)) {
        int64_t id;
        if (!numberParseInt(c->argv[1], &id) || id < storeDbCount()) return GATE_PASS;
        replicaHalt(); /* before a transaction runs that has it */
        return GATE_REFUSED;
    }
    logWarning("The primary has sent '%.*s', which cannot be a part of its stream: the link is "
               "closed, and the whole dataset synchronized again",
               (int)c->cmd->name.len, c->cmd->name.ptr);
    replicaGiveUpStream();
    return GATE_REFUSED;
}

const gate replicaStreamGate = {.name = "stream",
                                .selects = mayBreak,
                                .admit = breakLink,
                                .again = true,
                                .origins = 1u << ORIGIN_PRIMARY};

/* ------------------------------------------------------------------ change of role */

static void endWait(session *s, void *arg) {
    (void)arg;
    if (s->flags & SESSION_REPLAY) return; /* its connection is closed, or it goes on */
    /* A reply is that of the moment at which its job began; what a job stores has no effect here.
     * Other waits of internal sessions are calls of modules, which are told of their clients. */
    if (jobIsOf(s) ? !jobStores(s) : s->flags & SESSION_INTERNAL) return;
    bool is_client = !(s->flags & SESSION_INTERNAL); /* an internal one is freed with its wait */
    /* The command of a client that reads from replicas can be served here, too. */
    if (s->flags & SESSION_READONLY && !(blockCommand(s)->flags & CMD_WRITE)) return;
    if (s->flags & SESSION_CAPA_REDIRECT) {
        str text = STR_EMPTY;
        strAppendFormat(&text, "REDIRECT %s:%d", strText(&replConf.primary_host),
                        replConf.primary_port);
        (void)blockEnd(s, strSlice(&text)); /* it is blocked */
        strFree(&text);
        return;
    }
    (void)blockEnd(s, SLICE("UNBLOCKED force unblock from blocking operation, instance state "
                            "changed (master -> replica?)")); /* it is blocked */
    if (is_client) sessionCloseSoon(s);
}

void rulesEndBlocked(void) {
    const blockFilter all = {.kind = -1, .db_id = -1, .slot = -1};
    (void)jobEndChanges();
    blockEach(&all, endWait, NULL);
}

static void arm(const gate *g, bool on) {
    if (gateIsArmed(g) != on) gateArm(g, on);
}

void rulesTick(void) {
    bool failing = gateIsArmed(&snapshotErrorGate) || gateIsArmed(&aofErrorGate);
    arm(&replicaDiskGate, role.is_replica && failing);
}

void rulesUpdate(bool is_replica, bool link_is_up) {
    hotCheck(threadIsMain());
    role.is_replica = is_replica;
    role.link_is_up = link_is_up;
    arm(&replicaRedirectGate, is_replica);
    arm(&replicaReadOnlyGate, is_replica && replConf.replica_read_only);
    arm(&replicaStaleGate, is_replica && !link_is_up && !replConf.replica_serve_stale_data);
    arm(&replicaStreamGate, is_replica);
    keyspaceSetReplica(is_replica);
    memorySetSuspended(is_replica && replConf.replica_ignore_maxmemory);
    localExpirySet(is_replica && !replConf.replica_read_only);
    rulesTick();
    logSetRole(is_replica ? 'S' : 'M');
}

status rulesApply(reason *why) {
    (void)why; /* cannot fail */
    rulesUpdate(role.is_replica, role.link_is_up);
    return OK;
}
