/* SPDX-License-Identifier: BSD-3-Clause
 *
 * The mode replication-quorum in this server (quorum_server.h).
 *
 * Invariant: while the mode is on, there is a backlog, the stage and the sink of the mode are
 * registered, and output is held (held_output.h). While it is off, that stage and that sink are not
 * registered, and no output is held for replicas. */
#include "repl/quorum_server.h"

#include "base/base.h"
#include "engine/hot.h"
#include "engine/pause.h"
#include "engine/reply.h"
#include "engine/session_report.h"
#include "engine/transaction.h"
#include "persist/sync_load.h"
#include "psync/primary.h"
#include "psync/primary_peer.h"
#include "repl/ack_hold.h"
#include "repl/durable_offset.h"
#include "repl/held_output.h"
#include "repl/repl_priv.h"
#include "repl/replica.h"
#include "repl/replicas.h"
#include "repl/role.h"

static struct {
    replQuorum quorum;
    bool ready; /* the start is over: the dataset is loaded */
    bool has_stage;
    /* This process began as a primary, without an append only file, and nothing was confirmed yet:
     * a former process may have confirmed what is not here. */
    bool may_lack;
    bool is_behind;   /* it has */
    uint64_t refused; /* requests, since the start or CONFIG RESETSTAT */
} mode;

/* ------------------------------------------------------------------ held output */

static const sessionSlot held_slot = {"held output", heldOutputFree, heldOutputMemory};
static outputHold output = {.latency_event = "replication-quorum",
                            .written = &mode.quorum.written,
                            .confirmed = &mode.quorum.confirmed};

static gateVerdict note(ctx *c) { return heldOutputNote(&output, c); }

const gate heldOutputGate = {.name = "held output",
                             .selects = heldOutputSelects,
                             .admit = note,
                             .origins = GATE_FOR_CLIENTS};

static void take(const propagated *p) {
    int64_t offset = replicasTake(p);
    if (heldOutputWrote(&output, p, offset)) quorumWrote(&mode.quorum, offset);
}

const sink heldOutputSink = {.name = "held output", .take = take, .targets = PROPAGATE_REPLICAS};

/* ------------------------------------------------------------------ refusals */

static gateVerdict refuse(ctx *c, slice text) {
    mode.refused++;
    if (c->origin == ORIGIN_CLIENT) heldOutputNoteRefusal(&output, c->who);
    replyError(c, text);
    return GATE_REFUSED;
}

static bool mayChange(const ctx *c) {
    if (c->cmd->flags & CMD_RUNS_QUEUE) return transactionHas(c->who, CMD_WRITE);
    return c->cmd->flags & CMD_WRITE;
}

/* True for a client's command about the dataset. Reads of scripts are a part of the script's reply.
 * Commands of administrators, and WAIT, which has no key, are not refused; their replies wait. */
static bool needsData(const ctx *c) {
    const uint64_t data = CMD_READONLY | CMD_WRITE | CMD_MAY_REPLICATE | CMD_RUNS_QUEUE;
    if (c->origin != ORIGIN_CLIENT || heldOutputTellsNothing(c)) return false;
    return c->cmd->flags & data || !(c->cmd->flags & (CMD_ADMIN | CMD_BLOCKING));
}

static bool outputIsFull(void) {
    return output.statistics.bytes > (size_t)replConf.replication_quorum_output_limit;
}

static gateVerdict admit(ctx *c) {
    const replQuorum *q = &mode.quorum;
    bool needs_data = needsData(c);
    if (mode.is_behind && needs_data)
        return refuse(c, SLICE("NOQUORUM This server was started without data that its replicas "
                               "have confirmed. One of them has to be promoted."));
    if (q->refuses && mayChange(c))
        return refuse(c,
                      SLICE("NOQUORUM Not enough replicas to confirm writes. Nothing was done."));
    if (!needs_data) return GATE_PASS;
    if (q->refuses && heldOutputNeed(&output, c) > q->confirmed)
        return refuse(c, SLICE("NOQUORUM Not enough replicas to confirm what would be read."));
    /* Another server may be promoted before this one knows, within the lease. */
    bool yields = q->settings.lease_ms && pauseIsFor(PAUSE_FOR_FAILOVER);
    if (yields && !(c->who->flags & (SESSION_INTERNAL | SESSION_REPLICA))) return pauseHold(c->who);
    if (q->settings.lease_ms && !quorumMayRead(q, clockMonoMs()))
        return refuse(c, SLICE("NOQUORUM Not enough replicas were heard of within "
                               "replication-read-lease: there may be another primary."));
    if (outputIsFull())
        return refuse(c, SLICE("NOQUORUM Too much output waits for replicas. Nothing was done."));
    return GATE_PASS;
}

const gate quorumGate = {.name = "quorum", .admit = admit, .waived_for_writer = true};

static void armGate(void) {
    const replQuorum *q = &mode.quorum;
    bool may_refuse =
        q->is_on && (q->refuses || mode.is_behind || q->settings.lease_ms || outputIsFull());
    if (may_refuse != gateIsArmed(&quorumGate)) gateArm(&quorumGate, may_refuse);
}

/* ------------------------------------------------------------------ what has happened */

static void logState(bool refused) {
    const replQuorum *q = &mode.quorum;
    if (q->refuses == refused) return;
    if (q->refuses) {
        logWarning("Writes are refused: replication-quorum asks for %d replicas that confirm them "
                   "within %lld ms, and %d are connected.",
                   q->settings.replicas, (long long)q->settings.timeout_ms, q->reachable);
    } else {
        logNotice("Writes are accepted: %d replicas confirm them.", q->reachable);
    }
}

/* Replicas of other kinds. */
static bool isOutsider(const replPeer *peer) {
    return peer->state == PEER_ONLINE && peerIsReplica(peer) &&
           !(peer->capabilities & PEER_CAN_ACK_TURNS);
}

static void logOutsiders(const replPrimary *p) {
    if (p->is_replica) return;
    for (listNode *n = listFirst(&p->peers); n; n = listNext(&p->peers, n)) {
        replPeer *peer = peerOf(n);
        if (peer->is_outsider_told || !isOutsider(peer)) continue;
        peer->is_outsider_told = true;
        str name = STR_EMPTY;
        logWarning("Replica %s is of a kind that knows no replication-quorum: it confirms no "
                   "writes, and may lack acknowledged ones if it is promoted.",
                   primaryPeerName(p, peer, &name));
        strFree(&name);
    }
}

static void update(const replPrimary *p) {
    replQuorum *q = &mode.quorum;
    bool refused = q->refuses;
    int64_t durable = q->settings.on_disk ? durableOffset() : 0;
    if (quorumUpdate(q, p, durable, clockMonoMs())) {
        mode.may_lack = false;
        heldOutputRelease(&output);
    }
    logState(refused);
    logOutsiders(p);
    armGate();
}

void quorumNoteReplicas(const replPrimary *p) {
    if (mode.quorum.is_on) update(p);
}

bool quorumRefusesSync(const replPeer *peer, slice id, int64_t from) {
    const replHistory *h = &replThis()->history;
    if (!mode.quorum.is_on || mode.is_behind) return mode.is_behind;
    bool is_behind = mode.may_lack && peer->capabilities & PEER_HAS_CONFIRMED &&
                     !sliceIs(id, h->id) && !historyCovers(h, id, from);
    if (!is_behind) return false;
    mode.is_behind = true;
    logWarning("A replica has data that was confirmed before this server was started, and that is "
               "not here (replication-quorum). Requests to the keyspace are refused until another "
               "server is promoted. To go on with what is here, and to lose the rest: CONFIG SET "
               "replication-quorum 0");
    armGate();
    return true;
}

bool quorumIsBehind(void) { return mode.is_behind; }

void quorumServerHold(bool on) {
    if (mode.quorum.is_held == on) return;
    quorumHold(&mode.quorum, on);
    if (mode.quorum.is_on) update(replicasThis());
}

/* In each turn, after the append only file was written and before output leaves. */
static void endTurn(void) {
    replQuorum *q = &mode.quorum;
    if (q->settings.on_disk) update(replicasThis());
    if (q->written > q->confirmed && q->probe < 0)
        quorumProbe(q, replThis()->history.offset, clockMonoMs());
    armGate();
}

void quorumServerTick(int64_t budget_us) {
    (void)budget_us; /* takes little time */
    replQuorum *q = &mode.quorum;
    if (!q->is_on) return;
    int64_t now_ms = clockMonoMs();
    bool refused = q->refuses;
    quorumTick(q, now_ms);
    logState(refused);
    heldOutputExpire(&output, now_ms, q->settings.timeout_ms);
    armGate();
    if (q->settings.on_disk) durableOffsetMark();
    enum { PROBES_PER_LEASE = 4 };
    bool renews = q->settings.lease_ms && q->probe < 0 &&
                  now_ms - q->heard_ms >= q->settings.lease_ms / PROBES_PER_LEASE;
    if (renews && primaryPing(replicasThis())) quorumProbe(q, replThis()->history.offset, now_ms);
}

bool quorumHas(int64_t offset) { return !mode.quorum.is_on || offset <= mode.quorum.confirmed; }

int64_t quorumLastChange(void) { return mode.quorum.is_on ? mode.quorum.written : 0; }

bool quorumIsBusy(void) { return mode.quorum.is_on; }

void quorumNoteForwarded(void) {
    if (!mode.quorum.is_on) return;
    quorumWrote(&mode.quorum, replThis()->history.offset);
    heldOutputNoteAll(&output);
}

/* ------------------------------------------------------------------ on and off */

static const stageJob stages[] = {{STAGE_REPLICATE, endTurn}, {0, NULL}};
static const feature running = {.name = "replication quorum", .stages = stages};

static void setStage(bool on) {
    if (on == mode.has_stage) return;
    mode.has_stage = on;
    if (on) {
        hooksAddFeature(&running);
    } else {
        hooksRemoveFeature(&running);
    }
}

static void stop(bool is_primary) {
    if (!mode.quorum.is_on) return;
    mode.quorum.is_on = false;
    replicasArmSink();
    gateArm(&heldOutputGate, false);
    setStage(false);
    if (is_primary) {
        heldOutputEnd(&output);
    } else {
        heldOutputAbandon(&output);
    }
}

static void start(const quorumSettings *settings) {
    replPrimary *p = replicasThis();
    primaryOpenStream(p);
    /* A first change, so that a replica that has acknowledged it has all that precedes it. */
    (void)primaryPing(p);
    quorumSet(&mode.quorum, settings, true, replThis()->history.offset, clockMonoMs());
    heldOutputBegin(&output);
    gateArm(&heldOutputGate, true);
    setStage(true);
    replicasArmSink();
}

static quorumSettings settingsOfDirectives(void) {
    return (quorumSettings){
        .replicas = replConf.replication_quorum,
        .on_disk = replConf.replication_quorum_durability == QUORUM_ON_DISK,
        .timeout_ms = replConf.replication_quorum_timeout,
        .lease_ms = replConf.replication_read_lease,
    };
}

static void apply(bool again) {
    if (!mode.ready) return;
    const quorumSettings settings = settingsOfDirectives();
    quorumSettings *now = &mode.quorum.settings;
    bool is_primary = !replicaIsOn(), on = is_primary && settings.replicas > 0;
    if (!on) mode.may_lack = mode.is_behind = false;
    bool same = on == mode.quorum.is_on && settings.replicas == now->replicas &&
                settings.on_disk == now->on_disk;
    if (again || !same) {
        stop(is_primary);
        if (on) start(&settings);
    }
    *now = settings;
    reason why;
    (void)replicasApplySettings(&why); /* cannot fail */
    if (on) update(replicasThis());
    armGate();
}

status quorumApply(reason *why) {
    hotCheck(threadIsMain());
    (void)why; /* cannot fail */
    apply(false);
    return OK;
}

void quorumNoteRole(void) { apply(true); }

void quorumBegin(void) {
    mode.ready = true;
    mode.may_lack = !persistLoadedAof();
    apply(true);
}

/* ------------------------------------------------------------------ INFO */

/* Their addresses. */
static void printOutsiders(str *out) {
    const replPrimary *p = replicasThis();
    const char *before = "";
    str name = STR_EMPTY;
    strAppendText(out, "replication_quorum_outsiders:");
    for (listNode *n = listFirst(&p->peers); n; n = listNext(&p->peers, n)) {
        if (!isOutsider(peerOf(n))) continue;
        strAppendFormat(out, "%s%s", before, primaryPeerName(p, peerOf(n), &name));
        before = ",";
    }
    strAppendText(out, "\r\n");
    strFree(&name);
}

void quorumPrintInfo(str *out) {
    const replQuorum *q = &mode.quorum;
    const heldOutputStats *held = &output.statistics;
    if (!replConf.replication_quorum) return;
    int64_t missing = q->is_on ? replThis()->history.offset - q->confirmed : 0;
    strAppendFormat(out,
                    "replication_quorum:%d\r\nreplication_quorum_reachable:%d\r\n"
                    "replication_quorum_status:%s\r\nreplication_quorum_confirmed_offset:%lld\r\n"
                    "replication_quorum_unconfirmed_bytes:%lld\r\n"
                    "replication_quorum_held_clients:%zu\r\nreplication_quorum_held_bytes:%zu\r\n",
                    replConf.replication_quorum, q->reachable,
                    !q->is_on        ? "inactive"
                    : mode.is_behind ? "behind"
                    : q->refuses     ? "refusing"
                                     : "ok",
                    (long long)q->confirmed, (long long)missing, held->clients, held->bytes);
    strAppendFormat(out, "replication_quorum_read_lease:%lld\r\n",
                    (long long)replConf.replication_read_lease);
    if (!replicaIsOn()) {
        printOutsiders(out);
        return;
    }
    /* For who chooses the next primary. */
    strAppendFormat(out,
                    "replication_quorum_caught_up:%d\r\nreplication_quorum_acks_held_ms:%lld\r\n",
                    replHasCaughtUp() && replOffset() > 0, (long long)ackHoldRestMs());
}

void quorumPrintStats(str *out) {
    if (!replConf.replication_quorum) return;
    strAppendField(out, "replication_quorum_refused_requests", mode.refused);
    strAppendField(out, "replication_quorum_expired_clients", output.statistics.expired);
}

void quorumResetStats(void) { mode.refused = output.statistics.expired = 0; }

/* CLIENT LIST. */
static void report(const session *s, sessionReport *out) {
    out->output_is_held = mode.quorum.is_on && heldOutputIsHeld(&output, s);
}

void quorumInit(void) {
    heldOutputInit(&output, &held_slot);
    sessionReportAddProc(report);
}
