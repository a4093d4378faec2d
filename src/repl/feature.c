/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Registers what this folder adds to the server: directives, INFO, gates, jobs. Main thread
 * only. */
#include "base/base.h"
#include "base/random.h"
#include "config/config.h"
#include "engine/stream.h"
#include "persist/sync.h"
#include "persist/sync_load.h"
#include "repl/aof_output.h"
#include "repl/failover.h"
#include "repl/followed.h"
#include "repl/info_primary.h"
#include "repl/lag_throttle.h"
#include "repl/local_expiry.h"
#include "repl/min_replicas.h"
#include "repl/packed_stream.h"
#include "repl/quorum_server.h"
#include "repl/repl.h"
#include "repl/repl_priv.h"
#include "repl/replica.h"
#include "repl/replicas.h"
#include "repl/rules.h"
#include "repl/server_state.h"
#include "repl/shutdown_wait.h"
#include "repl/stream_form.h"
#include "repl/throttle.h"
#include "repl/wait.h"

static replServer this_server;

replServer *replThis(void) { return &this_server; }

/* A file without these fields makes a restarted server synchronise fully. */
static bool findOrigin(syncOrigin *out) {
    hotCheck(!this_server.has_backlog || this_server.history.offset >= 0);
    const replPrimary *p = replicasThis();
    if (!this_server.has_backlog) return false;
    out->applies = replicaIsOn();
    if (out->applies && !replicaHasPosition()) return false;
    out->id = historyKnownId(&this_server.history);
    out->id_number = this_server.history.id_number;
    out->offset = this_server.history.offset;
    out->settled = !streamIsRunning();
    /* A primary that has added nothing yet: the position is in the stream of another server. */
    out->db = out->applies || p->stream_db < 0 ? replicaStreamDb() : p->stream_db;
    return true;
}

/* For files. */
static const char *findBirth(void) { return this_server.birth.id; }

static status init(reason *why) {
    historyInit(&this_server.history);
    birthBegin(&this_server.birth);
    randomHex(this_server.process, REPL_ID_LEN);
    syncSetBirthProc(findBirth);
    replicasInit();
    waitInit();
    throttleInit();
    quorumInit();
    aofOutputInit();
    syncSetOriginProc(findOrigin);
    return replicaInit(why);
}

void replAfterLoad(void) {
    if (persistLoadedDataset()) birthLoaded(&this_server.birth, sliceOf(persistLoadedBirth()));
    replicaAfterStart();
    followedAfterStart();
    quorumBegin();
}

void replStop(void) { replicaStop(); }

static void printReplication(str *out) {
    strAppendFormat(out, "role:%s\r\n", replicaIsOn() ? "slave" : "master");
    if (replicaIsOn()) replicaPrintInfo(out);
    infoPrintReplicas(out);
    infoPrintStream(out);
    streamFormPrintInfo(out);
    lostDataPrintInfo(out);
    quorumPrintInfo(out);
}

static void printStats(str *out) {
    infoPrintSyncs(out);
    quorumPrintStats(out);
    strAppendField(out, "slave_expires_tracked_keys", localExpiryCount());
}

static void resetStats(void) {
    replPrimary *p = replicasThis();
    p->full_syncs = p->partial_syncs = p->refused_partial_syncs = 0;
    packedStreamResetTotals();
    replicaResetStats();
    quorumResetStats();
}

static const infoSection sections[] = {
    {"replication", "# Replication", INFO_NORMAL, INFO_REPLICATION, printReplication},
    {"throttling", "# Throttling", INFO_NORMAL, INFO_THROTTLING, throttlePrintInfo},
    {"debug", "# Debug", 0, INFO_DEBUG, throttlePrintDebug},
    {"stats", "# Stats", INFO_NORMAL, INFO_STATS, printStats},
    {0},
};

static const tickJob ticks[] = {{"replicas", 1000, replicasTick, replicasAreBusy},
                                {"replica", 100, replicaTick, replicaIsBusy},
                                {"failover", 100, failoverTick, failoverIsBusy},
                                {"throttle", THROTTLE_PERIOD_MS, throttleTick, throttleIsBusy},
                                {"quorum", 100, quorumServerTick, quorumIsBusy},
                                {0}};
static const gate *const gates[] = {&replicaKeyspaceGate,
                                    &minReplicasGate,
                                    &replicaRedirectGate,
                                    &replicaReadOnlyGate,
                                    &replicaStaleGate,
                                    &replicaStreamGate,
                                    &replicaDiskGate,
                                    &heldOutputGate,
                                    &quorumGate,
                                    &aofOutputGate,
                                    NULL};
static const sink *const sinks[] = {&replicasSink, &replicasRedisSink, &heldOutputSink,
                                    &aofOutputSink, NULL};
static const keyObserver *const observers[] = {&localExpiryObserver, NULL};
static const commandObserver *const command_observers[] = {&replicaReplyObserver, NULL};

const feature replFeature = {.name = "repl",
                             .options = replOptions,
                             .info = sections,
                             .ticks = ticks,
                             .gates = gates,
                             .sinks = sinks,
                             .observers = observers,
                             .command_observers = command_observers,
                             .on_session = replicaSessionEvent,
                             .on_stats_reset = resetStats,
                             .on_child = fullSyncChildEvent,
                             .on_shutdown = shutdownWaitForReplicas,
                             .init = init};
