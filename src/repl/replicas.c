/* SPDX-License-Identifier: BSD-3-Clause
 *
 * The connections of replicas (replicas.h). There is one server in a process, so the callbacks do
 * not use their argument.
 *
 * Invariant: one of three sinks is armed if and only if there is a backlog and this server is a
 * primary. The stages are registered if and only if there is a backlog. So a server that never had
 * a replica has no cost. */
#include "repl/replicas.h"

#include <string.h>

#include "base/base.h"
#include "engine/block.h"
#include "engine/child.h"
#include "engine/deliver.h"
#include "engine/hot.h"
#include "engine/job.h"
#include "engine/lifecycle.h"
#include "engine/memory.h"
#include "engine/propagate.h"
#include "engine/reply.h"
#include "engine/server_event.h"
#include "engine/session_report.h"
#include "engine/session_slot.h"
#include "format/rdb_settings.h"
#include "io/packer.h"
#include "net/net.h"
#include "repl/min_replicas.h"
#include "repl/quorum_server.h"
#include "repl/repl.h"
#include "persist/sync.h"
#include "persist/sync_load.h"
#include "repl/packed_stream.h"
#include "repl/repl_priv.h"
#include "repl/replica.h"
#include "repl/stream_form.h"
#include "repl/throttle.h"
#include "repl/role.h"
#include "store/type_pathhash.h"

static struct {
    replPrimary primary;
    bool feeding; /* the stage is registered */
} replicas;

replPrimary *replicasThis(void) { return &replicas.primary; }

/* ------------------------------------------------------------------ memory */

static session *sessionOf(const replPeer *peer) { return replicasConn(peer)->who; }

/* The memory of the replicas' outputs without the shared blocks. */
static size_t ownOutputs(const replPrimary *p) {
    size_t sum = 0;
    for (listNode *n = listFirst(&p->peers); n; n = listNext(&p->peers, n))
        sum += outbufMemory(&sessionOf(peerOf(n))->out);
    return sum;
}

void replMeasure(replMemory *out) {
    hotCheck(threadIsMain());
    replServer *stream = replThis();
    size_t limit = (size_t)replicas.primary.settings.backlog_limit;
    if (stream->has_backlog) backlogReclaim(&stream->backlog);
    size_t blocks = stream->has_backlog ? stream->backlog.memory : 0;
    bool has_replicas = !listIsEmpty(&replicas.primary.peers);
    out->backlog = has_replicas ? sizeMin(blocks, limit) : blocks;
    out->replicas = blocks - out->backlog + ownOutputs(&replicas.primary);
    out->collected = replicaCollectedBytes();
    out->buffers = out->backlog + out->replicas + out->collected;
}

/* Excludes the memory of slow replicas from maxmemory: evicting keys would only make the stream
 * longer. */
static void excludeFromLimit(void) {
    replMemory m;
    replMeasure(&m);
    memorySetExcluded(m.replicas);
}

/* ------------------------------------------------------------------ the slot */

static void freeConn(session *s, void *state) {
    hotCheck(((const replicaConn *)state)->who == s);
    (void)s; /* the session ends; its output was freed */
    replicaConn *conn = state;
    primaryForget(&replicas.primary, &conn->peer, engineHot.now_ms);
    if (memoryExcluded()) excludeFromLimit();
    fileReaderClose(&conn->file);
    packerFree(conn->packed);
    peerClear(&conn->peer);
    strFree(&conn->ip);
    memFree(conn);
}

static size_t connMemory(const void *state) {
    int64_t blocks;
    return sizeof(replicaConn) +
           peerHeld(&replicas.primary, &((const replicaConn *)state)->peer, &blocks);
}

static const sessionSlot conn_slot = {"replica", freeConn, connMemory};

static int connSlot(void) {
    static int index = -1;
    if (index < 0) index = sessionSlotRegister(&conn_slot);
    return index;
}

replPeer *replicasFind(const session *s) {
    replicaConn *conn = sessionSlotGet(s, connSlot());
    return conn ? &conn->peer : NULL;
}

/* Known to the log after the connection was closed, too. */
static void readIp(replicaConn *conn) {
    hotCheck(conn->who);
    str address = STR_EMPTY;
    sessionPeer(conn->who, &address);
    slice ip = strSlice(&address);
    while (ip.len && ip.ptr[ip.len - 1] != ':') ip.len--;
    if (ip.len) ip.len--;
    if (ip.len >= 2 && ip.ptr[0] == '[') ip = sliceMake(ip.ptr + 1, ip.len - 2);
    conn->ip = strNew(ip);
    strFree(&address);
}

replPeer *replicasPeer(session *s) {
    replicaConn *conn = sessionSlotGet(s, connSlot());
    if (!conn) {
        conn = memNew(replicaConn);
        conn->who = s;
        conn->file.fd = -1;
        readIp(conn);
        peerInit(&conn->peer, conn);
        sessionSlotSet(s, connSlot(), conn);
    }
    return &conn->peer;
}

void replicasEnlist(session *s) {
    s->flags |= SESSION_REPLICA;
    netSetPriority(s, true);
    commandObserverArmSession(s, &replicaReplyObserver, true);
    gateArmSession(s, &replicaKeyspaceGate, true);
}

void replicasSettle(session *s) {
    hotCheck(threadIsMain());
    const replPeer *peer = replicasFind(s);
    if (peer && peer->state != PEER_NONE) return;
    s->flags &= ~SESSION_REPLICA;
    netSetPriority(s, false);
    commandObserverArmSession(s, &replicaReplyObserver, false);
    gateArmSession(s, &replicaKeyspaceGate, false);
}

/* ------------------------------------------------------------------ names */

slice replicasIp(const replPeer *peer) {
    return strSlice(peer->ip.len ? &peer->ip : &replicasConn(peer)->ip);
}

void replicasAppendIp(const replPeer *peer, str *out) { strAppendSlice(out, replicasIp(peer)); }

static void envName(const replPeer *peer, str *out) {
    replicasAppendIp(peer, out);
    if (peer->port) {
        strAppendFormat(out, ":%lld", (long long)peer->port);
    } else {
        strAppendText(out, ":<unknown-replica-port>");
    }
}

/* ----------------------------------------------------- a replica sends only what needs no reply */

static bool selectsKeyspace(const commandSpec *spec) {
    return spec->flags & (CMD_WRITE | CMD_READONLY | CMD_MAY_REPLICATE);
}

static gateVerdict refuseKeyspace(ctx *c) {
    replyError(c, SLICE("ERR Replica can't interact with the keyspace"));
    return GATE_REFUSED;
}

const gate replicaKeyspaceGate = {.name = "replica's keyspace",
                                  .selects = selectsKeyspace,
                                  .admit = refuseKeyspace,
                                  .origins = GATE_FOR_CLIENTS};

static void noteReplies(ctx *c) {
    replPeer *peer = replicasFind(c->who);
    if (peer) replicasConn(peer)->reply_from = outbufPending(c->out);
}

/* The error's text as it was replied, without "-ERR ". */
static slice errorText(const char *reply, size_t len) {
    slice text = sliceMake(reply, len);
    if (text.len >= 5 && !memcmp(text.ptr, "-ERR ", 5)) text = sliceMake(reply + 5, len - 5);
    const char *end = memchr(text.ptr, '\r', text.len);
    return end ? sliceMake(text.ptr, (size_t)(end - text.ptr)) : text;
}

static void logError(const ctx *c, size_t from) {
    hotCheck(from <= outbufPending(c->out));
    size_t len;
    char *replies = outbufCopy(c->out, &len);
    slice text = errorText(replies + from, len - from);
    logWarning("== CRITICAL == This primary is sending an error to its replica: '%.*s' after "
               "processing the command '%.*s'",
               (int)text.len, text.ptr, (int)c->cmd->name.len, c->cmd->name.ptr);
    memFree(replies);
}

/* Closes a replica whose command was replied to: the replica would apply the reply as a part of the
 * stream. */
static void closeIfReplied(ctx *c) {
    const replPeer *peer = replicasFind(c->who);
    if (!peer || peer->state == PEER_NONE) return;
    size_t from = replicasConn(peer)->reply_from;
    if (outbufPending(c->out) <= from) return;
    if (c->flags & CTX_FAILED) logError(c, from);
    str line = STR_EMPTY;
    (void)netDescribeForLog(c->who, &line); /* always has a connection */
    logWarning("Replica generated a reply to command '%.*s', disconnecting it: %s",
               (int)c->cmd->name.len, c->cmd->name.ptr, strText(&line));
    strFree(&line);
    sessionCloseNow(c->who);
}

static void afterCommand(ctx *c, int64_t duration_ns) {
    (void)duration_ns; /* does not matter */
    closeIfReplied(c);
}

static void afterRefusal(ctx *c, size_t pending) {
    (void)pending; /* known */
    closeIfReplied(c);
}

const commandObserver replicaReplyObserver = {.name = "replica's replies",
                                              .before = noteReplies,
                                              .after = afterCommand,
                                              .refused = afterRefusal};

/* ------------------------------------------------------------------ the environment */

static void envSend(replPeer *to, slice bytes) {
    hotCheck(bytes.len > 0);
    sessionDeliver(sessionOf(to), DELIVER_PUSH, bytes);
    sessionWantWrite(sessionOf(to));
}

static void envSendShared(replPeer *to, blob *bytes, size_t at, size_t len) {
    hotCheck(at + len <= bytes->len);
    sessionDeliverShared(sessionOf(to), DELIVER_PUSH, bytes, at, len);
    sessionWantWrite(sessionOf(to));
}

static size_t envPending(const replPeer *to) { return sessionOutputPending(sessionOf(to)); }
static void envClose(replPeer *peer) { sessionCloseNow(sessionOf(peer)); }
static void envCloseWhenSent(replPeer *peer) { sessionCloseSoon(sessionOf(peer)); }
static uint64_t envId(const replPeer *peer) { return sessionOf(peer)->id; }
static bool envIsBusy(replPrimary *p) {
    (void)p;
    return childAlive() != CHILD_NONE || engineHot.loading;
}
static int envStreamDb(const replPrimary *p) {
    (void)p;
    return replicaStreamDb();
}
static bool envIsSecure(const replPeer *peer) { return netIsTls(sessionOf(peer)); }

static bool envKeepsFile(replPrimary *p) {
    (void)p;
    return persistSavesItself();
}

static void envOnlineChanged(replPeer *peer, bool online) {
    serverEventSignal(&(serverEvent){.kind = SERVER_REPLICA, .replica = {online, sessionOf(peer)}});
}

static void envChanged(replPrimary *p) {
    minReplicasUpdate(p);
    quorumNoteReplicas(p);
    blockNotify(BLOCK_OFFSET);
    /* FAILOVER and SHUTDOWN go on in the next turn. */
    if (unlikely(p->is_failing_over || engineShutdownWaits())) engineStayAwake();
}

static const stageJob stages[] = {
    {STAGE_REPLICATE, replicasFeed}, {STAGE_FREE, replicasAfterWrite}, {0, NULL}};
static const feature feeding = {.name = "replication stream", .stages = stages};

static void envBacklogChanged(replPrimary *p) {
    bool has = p->stream->has_backlog;
    if (has != replicas.feeding) {
        replicas.feeding = has;
        if (has) {
            hooksAddFeature(&feeding);
        } else {
            hooksRemoveFeature(&feeding);
        }
        loopLimitSleep(engineLoop(), 0); /* the stage runs from the next turn on */
    }
    replicasArmSink();
}

void replicasArmSink(void) {
    const replPrimary *p = &replicas.primary;
    bool streams = p->stream->has_backlog && !p->is_replica, holds = quorumIsBusy();
    bool redis = rdbOutgoingForm() == RDB_FORM_REDIS;
    sinkArm(&replicasSink, streams && !holds && !redis);
    sinkArm(&replicasRedisSink, streams && !holds && redis);
    sinkArm(&heldOutputSink, streams && holds);
}

void replicasSetRole(bool is_replica, bool link_is_up) {
    bool was_replica = replicas.primary.is_replica;
    primarySetRole(&replicas.primary, is_replica, link_is_up);
    envBacklogChanged(&replicas.primary);
    if (is_replica != was_replica) quorumNoteRole();
}

static void envBeforeSave(replPrimary *p) {
    (void)p; /* there is one dataset */
    (void)jobEndChanges();
}

static const primaryEnv environment = {
    .send = envSend,
    .send_shared = envSendShared,
    .pending = envPending,
    .pack = packedStreamAdd,
    .send_packed = packedStreamSend,
    .close = envClose,
    .close_when_sent = envCloseWhenSent,
    .name = envName,
    .id = envId,
    .before_save = envBeforeSave,
    .start_save = fullSyncStart,
    .stop_save = fullSyncStop,
    .keeps_file = envKeepsFile,
    .is_busy = envIsBusy,
    .send_file = fullSyncSendFile,
    .online_changed = envOnlineChanged,
    .changed = envChanged,
    .backlog_changed = envBacklogChanged,
    .stream_db = envStreamDb,
    .is_secure = envIsSecure,
};

/* ------------------------------------------------------------------ the stream */

/* Contents of the slot are the offset itself. */
static const sessionSlot offset_slot = {.name = "last replicated change"};

static int offsetSlot(void) {
    static int index = -1;
    if (unlikely(index < 0)) index = sessionSlotRegister(&offset_slot);
    return index;
}

int64_t replicasOffsetOf(const session *s) {
    return (int64_t)(intptr_t)sessionSlotGet(s, offsetSlot());
}

/* A script or module keeps a change from the append only file. Messages are no changes. */
static void noteBesideAof(const propagated *p) {
    const command *cmd = commandFind(p->argv[0]);
    if (cmd && cmd->flags & CMD_WRITE) syncForbidAofPosition();
}

static void append(const propagated *p, const slice *spans, int count) {
    primarySelect(&replicas.primary, p->db_id);
    primaryAppend(&replicas.primary, spans, count);
}

/* WAIT of this session waits for all changes so far. */
static void noteOffset(session *s) {
    if (!replicas.primary.stream) return;
    int index = offsetSlot();
    void *offset = (void *)(intptr_t)replicas.primary.stream->history.offset;
    if (likely(s->slots != NULL) && likely(index < s->slots->count)) {
        s->slots->at[index] = offset;
    } else {
        sessionSlotSet(s, index, offset);
    }
}

static int64_t noteTaken(void) {
    if (engineHot.current) noteOffset(engineHot.current->who);
    return replicas.primary.stream->history.offset;
}

static int64_t takeAsIs(const propagated *p) {
    hotCheck(p->span_count > 0);
    if (unlikely(!(p->targets & PROPAGATE_AOF))) noteBesideAof(p);
    append(p, p->spans, p->span_count);
    return noteTaken();
}

/* outgoing-format redis */
static int64_t takeForRedis(const propagated *p) {
    str other = STR_EMPTY;
    if (!streamFormReplaces(p, &other)) return takeAsIs(p);
    if (!(p->targets & PROPAGATE_AOF)) noteBesideAof(p);
    slice span = strSlice(&other);
    if (span.len) append(p, &span, 1);
    strFree(&other);
    return noteTaken();
}

int64_t replicasTake(const propagated *p) {
    return rdbOutgoingForm() == RDB_FORM_REDIS ? takeForRedis(p) : takeAsIs(p);
}

static void take(const propagated *p) { (void)takeAsIs(p); /* the result is not needed */ }
static void takeRedis(const propagated *p) { (void)takeForRedis(p); /* the same */ }

const sink replicasSink = {.name = "replicas", .take = take, .targets = PROPAGATE_REPLICAS};
const sink replicasRedisSink = {
    .name = "redis replicas", .take = takeRedis, .targets = PROPAGATE_REPLICAS};

/* Closes replicas for which too much of the stream is kept. */
static void checkLimits(replPrimary *p) {
    for (listNode *n = listFirst(&p->peers); n; n = listNext(&p->peers, n)) {
        const replPeer *peer = peerOf(n);
        int64_t blocks;
        size_t held = peerHeld(p, peer, &blocks);
        size_t hard = netReplicaOutputLimit();
        if (held && throttleExempts() && (!hard || held < hard)) continue;
        if (held) netLimitReplica(sessionOf(peer), held, (size_t)p->settings.backlog_limit);
    }
}

void replicasFeed(void) {
    hotCheck(threadIsMain());
    replPrimary *p = &replicas.primary;
    if (unlikely(p->starts_soon) && !engineHot.current && loopDepth(engineLoop()) == 1)
        primaryStartSoon(p, engineHot.now_ms);
    fullSyncContinue(p);
    if (p->is_replica) replicaAcknowledgeOwed();
    primaryFeed(p);
    bool has_more =
        p->stream->has_backlog && p->stream->backlog.memory > (size_t)p->settings.backlog_limit;
    if (has_more) checkLimits(p);
    if (has_more || memoryExcluded()) excludeFromLimit();
}

void replSendLast(bool discards) {
    enum { MOST_MS = 100, STEP_MS = 10 };
    replPrimary *p = &replicas.primary;
    if (!p->stream->has_backlog || !p->peers.count) return;
    if (discards) primaryTellDiscard(p);
    netThreadsPark(); /* the process ends */
    int64_t end_ms = clockMonoMs() + MOST_MS;
    for (listNode *n = listFirst(&p->peers); n; n = listNext(&p->peers, n)) {
        const replPeer *peer = peerOf(n);
        if (!peer->streams || sessionOf(peer)->flags & SESSION_CLOSE_NOW) continue;
        bool takes = true, is_behind = true;
        while (takes && is_behind) {
            primaryFeed(p);
            takes = netSendNow(sessionOf(peer), clockMonoMs() < end_ms ? STEP_MS : 0);
            is_behind = envPending(peer) > 0 || peer->at.next != p->stream->backlog.next;
        }
        netSendEnd(sessionOf(peer));
    }
    netThreadsUnpark();
}

/* A replica that has taken all it was given causes no event, so the next turn must not wait for
 * one. */
void replicasAfterWrite(void) {
    hotCheck(threadIsMain());
    replPrimary *p = &replicas.primary;
    fullSyncWatchPipe(p);
    for (listNode *n = listFirst(&p->peers); n; n = listNext(&p->peers, n)) {
        const replPeer *peer = peerOf(n);
        bool lags = peer->streams && peer->at.next != p->stream->backlog.next;
        if (unlikely(lags || peer->state == PEER_SENDING_FILE) && envPending(peer) == 0)
            loopLimitSleep(engineLoop(), 0);
    }
}

/* ------------------------------------------------------------------ periodic */

/* Bytes received from a connection, or sent over it, count as a sign of life. */
static void noteActivity(replPeer *peer) {
    replicaConn *conn = replicasConn(peer);
    if (conn->who->active_ms > peer->heard_ms) peer->heard_ms = conn->who->active_ms;
    bool proceeds = conn->who->bytes_out != conn->bytes_out || envPending(peer) == 0;
    if (peer->state == PEER_WAITING_END && proceeds) peer->heard_ms = engineHot.now_ms;
    conn->bytes_out = conn->who->bytes_out;
}

void replicasTick(int64_t budget_us) {
    hotCheck(threadIsMain());
    (void)budget_us; /* O(replicas) */
    replPrimary *p = &replicas.primary;
    for (listNode *n = listFirst(&p->peers); n; n = listNext(&p->peers, n)) noteActivity(peerOf(n));
    p->settings.member_ttls = engineHot.member_ttls;
    p->settings.path_hashes = pathHashesExist();
    p->settings.redis_peers = rdbOutgoingForm() == RDB_FORM_REDIS;
    p->settings.file_codec = (peerCodec)syncFileCodec();
    primaryTick(p, engineHot.now_ms);
    checkLimits(p); /* soft limits are reached without writes */
    fullSyncTick(p);
}

bool replicasAreBusy(void) { return replicas.primary.peers.count; }

status replicasApplySettings(reason *why) {
    hotCheck(threadIsMain());
    (void)why; /* cannot fail */
    replPrimary *p = &replicas.primary;
    primarySettings *to = &p->settings;
    to->diskless = replConf.repl_diskless_sync;
    to->dual_channel = replConf.dual_channel_replication_enabled;
    to->diskless_delay_s = replConf.repl_diskless_sync_delay;
    to->diskless_max_replicas = replConf.repl_diskless_sync_max_replicas;
    to->ping_period_s = replConf.repl_ping_replica_period;
    to->timeout_s = replConf.repl_timeout;
    to->codec = (peerCodec)replCodec();
    to->lacks_lz4 = !compressHas(COMPRESS_LZ4);
    /* With a quorum the backlog is kept, because confirmed offsets belong to its stream. */
    to->backlog_ttl_s = replConf.replication_quorum ? 0 : replConf.repl_backlog_ttl;
    if (to->turn_acks != (replConf.replication_quorum > 0)) p->tells_ack_mode = true;
    to->turn_acks = replConf.replication_quorum > 0;
    if (to->backlog_limit != replConf.repl_backlog_size) {
        to->backlog_limit = replConf.repl_backlog_size;
        if (p->stream) primaryApplySettings(p);
    }
    if (p->env) minReplicasUpdate(p);
    return OK;
}

void replRestartStream(void) {
    historyRenew(&replThis()->history);
    primaryRestartStream(&replicas.primary);
}

/* ------------------------------------------------------------------ DEBUG */

static void changeId(void) {
    logNotice("Changing replication IDs after receiving change-replid");
    historyRenew(&replThis()->history);
}

static void replicate(int argc, const slice *argv) {
    hotCheck(argc > 0);
    const propagateTo to = {.db_id = -1, .targets = PROPAGATE_REPLICAS, .slot = -1};
    propagateCopy(to, argc, argv);
}

static void setDatasetGrace(int seconds) { replicas.primary.settings.dataset_grace_s = seconds; }

static const engineReplicationProcs debug_procs = {.change_id = changeId,
                                                   .replicate = replicate,
                                                   .set_dataset_grace = setDatasetGrace,
                                                   .pause_after_fork = fullSyncPauseAfterFork};

/* CLIENT LIST. */
static void report(const session *s, sessionReport *out) {
    const replPeer *peer = s->flags & SESSION_REPLICA ? replicasFind(s) : NULL;
    if (!peer) return;
    out->is_replica = true;
    out->stream_bytes = peerHeld(&replicas.primary, peer, &out->stream_blocks);
}

/* Implements netSetReplicaEnd(). */
static void connectionEnds(session *s, const char *why) {
    replPeer *peer = replicasFind(s);
    if (peer) primaryPeerEnds(peer, why);
}

void replicasInit(void) {
    hotCheck(threadIsMain());
    reason why;
    enum { DATASET_GRACE_S = 5 };
    primaryInit(&replicas.primary, &environment, replThis(), NULL);
    replicas.primary.settings.dataset_grace_s = DATASET_GRACE_S;
    (void)replicasApplySettings(&why); /* cannot fail */
    sessionReportAddProc(report);
    netSetReplicaEnd(connectionEnds);
    engineSetReplicationProcs(&debug_procs);
    propagateSetNoteProc(noteOffset);
}
