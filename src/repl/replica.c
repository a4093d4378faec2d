/* SPDX-License-Identifier: BSD-3-Clause
 *
 * This server as a replica (replica.h).
 *
 * Invariant: at most one of `connection`, the transfer and `stream` has the connection to the
 * primary. In a dual-channel synchronisation the second connection is `second`, and then belongs to
 * the transfer. */
#include "repl/replica.h"

#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>

#include "base/base.h"
#include "base/build_info.h"
#include "engine/execute.h"
#include "engine/hot.h"
#include "engine/job.h"
#include "engine/keyspace.h"
#include "engine/lifecycle.h"
#include "engine/reply.h"
#include "engine/server_event.h"
#include "engine/stream.h"
#include "engine/timer.h"
#include "io/conn_unpack.h"
#include "io/net_addr.h"
#include "io/resolve.h"
#include "net/net.h"
#include "persist/sync_load.h"
#include "repl/ack_hold.h"
#include "repl/ack_hold_file.h"
#include "repl/divergence.h"
#include "repl/durable_offset.h"
#include "repl/followed.h"
#include "repl/local_expiry.h"
#include "repl/repl_priv.h"
#include "repl/replicas.h"
#include "repl/role.h"
#include "repl/role_priv.h"
#include "repl/rules.h"
#include "repl/server_state.h"
#include "repl/transfer.h"
#include "store/store.h"

static struct {
    replLink link;
    uintptr_t attempt; /* number of the connection attempt; results of earlier ones are ignored */
    conn *connection;  /* connecting, in the handshake, or collecting */
    conn *second;      /* of a dual-channel synchronisation, before its transfer */
    bool collects;     /* `connection` has the stream, which is stored in `collected` */
    str collected;
    size_t collected_peak;
    char address[NET_ADDR_TEXT_MAX]; /* of the primary */
    session *stream;                 /* the primary as a client */
    str unsent;                      /* bytes that the connection has not taken */
    int db;                          /* selected in the stream when the link was lost; -1: none */
    bool was_up;                     /* the rules know that the link is up */
    void (*failover_ended)(bool accepted);
    /* REPLCONF GETACK TURN: what the primary was told last. */
    bool acks_turns;
    int64_t told_offset, told_fsynced;
    bool owes_ack;            /* REPLCONF GETACK was among what this turn has run */
    int64_t quiet_offset;     /* acknowledged last when the stream was silent */
    engineTimer quiet;        /* set while something may have to be acknowledged */
    uint64_t turn_bytes_in;   /* of the stream's session at the end of the last turn */
    int64_t unflushed_offset; /* that was acknowledged, but not on disk; 0: none */
    int turns_put_off;        /* that were not acknowledged as more was to come */
    bool had_keys;            /* when the last transfer began */
    uint64_t decompressed;    /* bytes of streams */
    bool has_caught_up;       /* with the primary that it follows: replHasCaughtUp() */
} replica;

bool replicaIsOn(void) { return replica.link.state != LINK_NONE; }
const replLink *replicaLink(void) { return &replica.link; }
bool replicaHasPosition(void) { return replicaIsConnected() || replica.link.can_continue; }
bool replicaIsConnected(void) { return replica.link.state == LINK_CONNECTED; }
bool replicaIsStream(const session *s) { return s == replica.stream; }
int replicaStreamDb(void) { return replica.stream ? replica.stream->db_id : replica.db; }

size_t replicaCollectedBytes(void) { return replica.collected.cap; }

/* ------------------------------------------------------------------ output */

static conn *currentConn(void) {
    return replica.stream ? netOutgoingConn(replica.stream) : replica.connection;
}

/* Sends what is left; a failure is found by the next read. */
static void sendUnsent(void) {
    hotCheck(replica.unsent.len <= replica.unsent.cap);
    conn *c = currentConn();
    if (!c || !replica.unsent.len) return;
    struct iovec bytes = {.iov_base = replica.unsent.ptr, .iov_len = replica.unsent.len};
    ssize_t n = connWritev(c, &bytes, 1);
    if (n <= 0) return;
    memmove(replica.unsent.ptr, replica.unsent.ptr + n, replica.unsent.len - (size_t)n);
    strCut(&replica.unsent, replica.unsent.len - (size_t)n);
    if (!replica.unsent.len) strFree(&replica.unsent);
}

static void envSend(void *arg, slice bytes) {
    (void)arg;
    strAppendSlice(&replica.unsent, bytes);
    sendUnsent();
}

/* ------------------------------------------------------------------ connecting */

/* After what may have brought the link up or down: all that depends on it follows. */
static void noteLink(void);

static void handshakeReadable(conn *c) {
    enum { READ_BYTES = 16 * 1024 };
    char bytes[READ_BYTES];
    int64_t now_ms = clockMonoMs();
    ssize_t n = connRead(c, bytes, sizeof(bytes));
    if (n < 0 && errno == EAGAIN) return;
    if (n > 0) {
        linkReceived(&replica.link, sliceMake(bytes, (size_t)n), now_ms);
        noteLink();
        return;
    }
    char why[REASON_MAX];
    snprintf(why, sizeof(why), "%s", connErrorText(c)); /* the connection is closed by linkLost() */
    linkLost(&replica.link, n == 0 ? NULL : why, now_ms);
}

/* The connection is open or has failed. */
static void connectEnded(conn *c) {
    int64_t now_ms = clockMonoMs();
    if (c->state == CONN_CONNECTING || c->state == CONN_HANDSHAKING) return;
    if (c->state == CONN_OPEN && connOnWrite(c, NULL) == OK &&
        connOnRead(c, handshakeReadable) == OK) {
        linkOpened(&replica.link, now_ms);
        return;
    }
    char why[REASON_MAX];
    snprintf(why, sizeof(why), "%s", connErrorText(c));
    linkFailed(&replica.link, why, now_ms);
}

static conn *openConnection(const char *addr, connProc *ended, reason *why) {
    hotCheck(replConf.primary_port > 0);
    char host[NET_ADDR_TEXT_MAX];
    snprintf(host, sizeof(host), "%s", strText(&replConf.primary_host));
    conn *c = netOutgoingOpen(addr, replConf.primary_port, host, replConf.repl_mptcp, why);
    if (!c) return NULL;
    (void)netSetNoDelay(c->fd, true); /* it works without */
    if (connOnWrite(c, ended) == OK) return c;
    (void)reasonSet(why, ERR_IO, "%s", connErrorText(c));
    netOutgoingClose(c);
    return NULL;
}

static void resolved(void *arg, const char *addr) {
    if ((uintptr_t)arg != replica.attempt || replica.link.state != LINK_CONNECTING) return;
    reason why;
    if (addr) {
        snprintf(replica.address, sizeof(replica.address), "%s", addr);
        replica.connection = openConnection(addr, connectEnded, &why);
    } else {
        (void)reasonSet(&why, ERR_NOT_FOUND, "unknown host");
    }
    if (replica.connection) return;
    logWarning("Unable to connect to PRIMARY: %s", why.text);
    linkFailed(&replica.link, why.text, clockMonoMs());
}

static void envConnect(void *arg) {
    (void)arg;
    replica.attempt++;
    resolveHost(strText(&replConf.primary_host), resolved, (void *)replica.attempt);
}

static void stopCollecting(void) {
    replica.collects = false;
    strFree(&replica.collected);
    hotCheck(!replica.collects);
}

static void setTurnAcks(bool on);

static void envClose(void *arg) {
    (void)arg;
    replica.attempt++;
    (void)replicaHasCaughtUp(); /* it is noted while the link is up */
    setTurnAcks(false);
    strFree(&replica.unsent);
    transferCancel();
    stopCollecting();
    if (replica.second) netOutgoingClose(replica.second);
    replica.second = NULL;
    if (replica.connection) netOutgoingClose(replica.connection);
    replica.connection = NULL;
    if (!replica.stream) return;
    replica.db = replica.stream->db_id;
    session *s = replica.stream;
    replica.stream = NULL;
    sessionCloseNow(s);
}

/* ------------------------------------------------------------------ the second connection */

static void secondReadable(conn *c) {
    enum { READ_BYTES = 16 * 1024 };
    char bytes[READ_BYTES], why[REASON_MAX];
    ssize_t n = connRead(c, bytes, sizeof(bytes));
    if (n < 0 && errno == EAGAIN) return;
    if (n > 0) {
        linkSecondReceived(&replica.link, sliceMake(bytes, (size_t)n), clockMonoMs());
        noteLink();
        return;
    }
    snprintf(why, sizeof(why), "%s", connErrorText(c));
    linkSecondLost(&replica.link, n == 0 ? NULL : why, clockMonoMs());
}

static void secondConnectEnded(conn *c) {
    if (c->state == CONN_CONNECTING || c->state == CONN_HANDSHAKING) return;
    if (c->state == CONN_OPEN && connOnWrite(c, NULL) == OK &&
        connOnRead(c, secondReadable) == OK) {
        linkSecondOpened(&replica.link, clockMonoMs());
        return;
    }
    char why[REASON_MAX];
    snprintf(why, sizeof(why), "%s", connErrorText(c));
    linkSecondLost(&replica.link, why, clockMonoMs());
}

static void envConnectSecond(void *arg) {
    (void)arg;
    reason why;
    replica.second = openConnection(replica.address, secondConnectEnded, &why);
    if (!replica.second) linkSecondLost(&replica.link, why.text, clockMonoMs());
}

/* A few hundred bytes on a new connection: they fit into the buffer of its socket. */
static void envSendSecond(void *arg, slice bytes) {
    (void)arg;
    struct iovec all = {.iov_base = (void *)(uintptr_t)bytes.ptr, .iov_len = bytes.len};
    if (connWritev(replica.second, &all, 1) != (ssize_t)bytes.len)
        logVerbose("Writing to the second connection failed: the timeout ends the synchronization");
}

static void envSaveStarted(void *arg) {
    (void)arg;
    if (fullSyncPausesAfterFork()) (void)raise(SIGSTOP); /* for tests */
}

/* Stores the stream until the dataset is loaded, up to the limit that a primary has for it. */
static void collectReadable(conn *c) {
    enum { READ_BYTES = 64 * 1024 };
    size_t limit = netReplicaOutputLimit();
    if (limit && replica.collected.len >= limit) {
        logNotice(
            "Dual channel replication: Replication buffer limit reached (%zu bytes), stopping "
            "buffering. Further accumulation will occur on primary side.",
            limit);
        check(connOnRead(c, NULL) == OK); /* until the stream is applied */
        return;
    }
    ssize_t n = connRead(c, strReserve(&replica.collected, READ_BYTES), READ_BYTES);
    if (n > 0) {
        netCountDataset((size_t)n);
        strGrow(&replica.collected, (size_t)n);
        replica.collected_peak = sizeMax(replica.collected_peak, replica.collected.len);
        linkHeard(&replica.link, clockMonoMs());
        return;
    }
    if (n < 0 && errno == EAGAIN) return;
    char why[REASON_MAX];
    snprintf(why, sizeof(why), "%s", connErrorText(c));
    linkLost(&replica.link, n == 0 ? NULL : why, clockMonoMs());
}

/* True if the primary may compress its stream. */
static bool mayBePacked(void) { return replica.link.told_lz4 || replica.link.told_zstd; }

static compressCodec toldCodec(void) {
    if (replica.link.told_zstd) return COMPRESS_ZSTD;
    return replica.link.told_lz4 ? COMPRESS_LZ4 : COMPRESS_NONE;
}

/* Statistics count what is received; those who read count what they get. */
static void countUnpacked(size_t received, size_t plain, size_t decompressed) {
    netCountDataset(received - plain);
    replica.decompressed += decompressed;
}

static void envCollect(void *arg, slice received) {
    hotCheck(replica.connection);
    (void)arg;
    replica.collects = true;
    if (mayBePacked()) {
        connUnpack(replica.connection, received, countUnpacked);
    } else {
        strAppendSlice(&replica.collected, received);
    }
    if (connOnRead(replica.connection, collectReadable) != OK)
        logWarning("The connection to the primary cannot be watched"); /* the timeout ends it */
}

/* ------------------------------------------------------------------ settings */

static int announcedPort(void) {
    return replConf.replica_announce_port ? replConf.replica_announce_port : netReplicationPort();
}

static linkSettings envSettings(void *arg) {
    (void)arg;
    bool direct = replConf.repl_diskless_load != DISKLESS_LOAD_DISABLED;
    linkSettings s =
        (linkSettings){.host = strSlice(&replConf.primary_host),
                       .port = replConf.primary_port,
                       .user = strSlice(&replConf.primaryuser),
                       .password = strSlice(&replConf.primaryauth),
                       .announce_port = announcedPort(),
                       .announce_address = sliceOf(replConf.replica_announce_ip),
                       .version = SERVER_VERSION,
                       .node_id = roleOwnNode(),
                       .skips_checksum = direct && netTlsForReplication(),
                       .dual_channel = replConf.dual_channel_replication_enabled,
                       .lz4 = replCodec() != COMPRESS_NONE && compressHas(COMPRESS_LZ4),
                       .zstd = replCodec() == COMPRESS_ZSTD,
                       .timeout_ms = (int64_t)replConf.repl_timeout * 1000,
                       .has_confirmed = replConf.replication_quorum > 0 && replica.has_caught_up &&
                                        replOffset() > 0,
                       .fack = durableOffset()};
    followedFillSettings(&s);
    return s;
}

/* ------------------------------------------------------------------ transfer */

/* Own replicas must not get what is left of it. */
static void datasetGone(void *arg) {
    (void)arg;
    linkDatasetGone(&replica.link);
    localExpiryForget();
    primaryDropAll(replicasThis());
}

static void haltLink(void *arg);

static void transferHeard(void *arg) {
    (void)arg;
    linkHeard(&replica.link, clockMonoMs());
}

static void updateRules(void) {
    bool up = replicaIsConnected(), was_up = replica.was_up;
    replica.was_up = up;
    rulesUpdate(replicaIsOn(), up);
    replicasSetRole(replicaIsOn(), up);
    if (up != was_up) serverEventSignal(&(serverEvent){.kind = SERVER_LINK, .link = {up}});
}

static void noteLink(void) {
    if (replicaIsConnected() != replica.was_up) updateRules();
}

static void signalRole(void) {
    serverEventSignal(&(serverEvent){.kind = SERVER_ROLE,
                                     .role = {.is_replica = replicaIsOn(),
                                              .host = strSlice(&replConf.primary_host),
                                              .port = replConf.primary_port}});
}

static void transferEnded(void *arg, linkResult result, slice rest) {
    if (!replica.link.main) {
        replica.connection = arg;
    } else if (replica.collects) {
        netOutgoingClose(arg);
    } else {
        replica.second = arg; /* while it is open, the primary keeps the stream from its end on */
    }
    linkTransferEnded(&replica.link, result, rest, clockMonoMs());
    updateRules();
}

static void envTransfer(void *arg, const linkTransfer *what, slice received) {
    (void)arg;
    conn **from = replica.link.main ? &replica.second : &replica.connection;
    conn *c = *from;
    *from = NULL;
    check(connOnRead(c, NULL) == OK);
    check(connOnWrite(c, NULL) == OK);
    const transferOwner owner = {.dataset_gone = datasetGone,
                                 .heard = transferHeard,
                                 .lacks_databases = haltLink,
                                 .ended = transferEnded,
                                 .arg = c};
    bool same = what->known && !memcmp(what->id, replThis()->history.id, REPL_ID_LEN);
    replica.had_keys = keyspaceKeyCount(keyspaceMain()) > 0;
    followedLogOrder(&replica.link);
    transferBegin(what, c, received, same, &owner);
}

/* ------------------------------------------------------------------ the stream */

/* A stream that is silent for so long is acknowledged, not only once per second: the primary may
 * wait for that. At most one timer and one acknowledgement per period. */
enum { QUIET_MS = 10 };

static void acknowledgeNow(void) {
    replica.quiet_offset = replThis()->history.offset;
    linkAcknowledge(&replica.link, replica.quiet_offset, clockMonoMs());
}

static void isQuiet(engineTimer *t);

static void awaitQuiet(int64_t ms) {
    replica.quiet.due = isQuiet;
    timerSet(&replica.quiet, clockWallMs() + ms);
}

static void isQuiet(engineTimer *t) {
    (void)t;
    if (!replica.stream || replica.quiet_offset == replThis()->history.offset) return;
    int64_t silent_ms = clockWallMs() - replica.stream->active_ms;
    if (silent_ms >= 0 && silent_ms < QUIET_MS) {
        awaitQuiet(QUIET_MS - silent_ms);
    } else if (!engineHot.current) {
        acknowledgeNow();
    }
}

static void applied(session *s, int db_id, const slice *spans, int count) {
    (void)s, (void)db_id;        /* own replicas get all of this stream, and nothing in between */
    if (!replica.stream) return; /* the rest of a batch whose stream was given up */
    primaryAppend(replicasThis(), spans, count);
    if (unlikely(!replica.quiet.index)) awaitQuiet(QUIET_MS);
}

void replicaAcknowledge(const ctx *c, slice value) {
    if (c->who != replica.stream) return;
    linkNoteGetack(&replica.link, value);
    replica.owes_ack = true;
    replica.told_offset = -1;
}

void replicaAcknowledgeOwed(void) {
    if (likely(!replica.owes_ack) || engineHot.current) return;
    replica.owes_ack = false;
    if (!replica.stream || replica.acks_turns) return;
    int64_t offset = replThis()->history.offset;
    replica.unflushed_offset = persistAofIsOn() && durableOffset() < offset ? offset : 0;
    acknowledgeNow();
}

/* Acknowledges an offset that has reached the disk: a client of the primary may wait for it
 * (WAITAOF). */
void replicaNoteFlushed(void) {
    hotCheck(threadIsMain());
    hotCheck(replica.unflushed_offset >= 0);
    if (!replica.stream || !replica.unflushed_offset) return;
    if (durableOffset() < replica.unflushed_offset) return;
    replica.unflushed_offset = 0;
    acknowledgeNow();
}

/* True if this turn has read as much as it may: what the primary has sent in a turn of its own goes
 * on. One acknowledgement of all of it wakes the primary once. */
static bool moreIsToCome(void) {
    enum { PUT_OFF_MAX = 4 };
    uint64_t bytes = replica.stream->bytes_in - replica.turn_bytes_in;
    replica.turn_bytes_in = replica.stream->bytes_in;
    if (bytes < netReadMax() || ++replica.turns_put_off == PUT_OFF_MAX) {
        replica.turns_put_off = 0;
        return false;
    }
    loopLimitSleep(engineLoop(), 0); /* nothing else may have come */
    return true;
}

/* At the end of a turn: the append only file has been written. */
static void acknowledgeTurn(void) {
    if (!replica.stream || moreIsToCome()) return;
    int64_t offset = replThis()->history.offset, fsynced = durableOffset();
    if (offset == replica.told_offset && fsynced == replica.told_fsynced) return;
    replica.told_offset = offset;
    replica.told_fsynced = fsynced;
    linkAcknowledge(&replica.link, offset, clockMonoMs());
}

static const stageJob turn_stages[] = {{STAGE_REPLICATE, acknowledgeTurn}, {0, NULL}};
static const feature turn_acks = {.name = "acknowledgement of turns", .stages = turn_stages};

static void setTurnAcks(bool on) {
    hotCheck(threadIsMain());
    if (on == replica.acks_turns) return;
    replica.acks_turns = on;
    replica.told_offset = replica.told_fsynced = -1;
    replica.turns_put_off = 0;
    if (on) {
        replica.turn_bytes_in = replica.stream->bytes_in;
        hooksAddFeature(&turn_acks);
    } else {
        hooksRemoveFeature(&turn_acks);
    }
}

void replicaAcknowledgeTurns(const ctx *c, bool on) {
    if (c->who == replica.stream) setTurnAcks(on);
}

/* A command of the stream has failed: this dataset may differ from the primary's. */
static void commandFailed(ctx *c, slice error) {
    if (c->who != replica.stream) return;
    if (sliceEqual(error, ERR_DB_RANGE_TEXT)) {
        replicaHalt();
        return;
    }
    if (!divergenceNote(c->cmd && c->cmd->name.len ? c->cmd->name : c->argv[0], error)) return;
    linkHalt(&replica.link, true);
    sessionCloseNow(replica.stream);
}

static void streamBroken(session *s, slice error) {
    if (s != replica.stream) return;
    (void)divergenceNote(SLICE(""), error); /* the data do not differ: the rest is missing */
    linkSetContinuable(&replica.link, false);
}

static const streamOwner stream_owner = {
    .applied = applied, .failed = commandFailed, .broken = streamBroken};

/* The dataset is that of the primary from now on. */
static void noteFollowed(bool from_start) {
    const replBirth *birth = replica.link.knows_birth ? &replica.link.primary_birth : NULL;
    if (from_start) {
        divergenceForget();
        birthAdopt(&replThis()->birth, birth, replica.had_keys,
                   keyspaceKeyCount(keyspaceMain()) > 0);
    } else if (birth) {
        replThis()->birth = *birth;
    }
    followedNote(birth);
}

static void envStream(void *arg, slice received, bool from_start) {
    hotCheck(replica.connection);
    hotCheck(!replica.stream);
    (void)arg;
    session *s;
    conn *c = replica.connection;
    if (netOutgoingAdopt(c, &s) != OK) {
        logWarning("The connection to the primary cannot be watched: %s", connErrorText(c));
        return; /* the timeout ends it */
    }
    netSetPriority(s, true);
    noteFollowed(from_start);
    replica.connection = NULL;
    replica.stream = s;
    primaryOpenBacklog(replicasThis());
    streamOpen(s, ORIGIN_PRIMARY, &stream_owner);
    /* A primary begins with SELECT, a chained one tells in the dataset which database its stream is
     * in. */
    int db = replica.link.dataset.db;
    if (from_start) replica.db = db >= 0 ? db : persistLoadedOrigin().db;
    if (replica.db >= 0) (void)sessionSelect(s, replica.db); /* it was selected before */
    str collected = replica.collected;
    replica.collected = STR_EMPTY;
    bool collects = replica.collects;
    stopCollecting();
    if (!collects && mayBePacked()) {
        connUnpack(c, received, countUnpacked);
        received = SLICE("");
    }
    netOutgoingStart(s, collects ? strSlice(&collected) : received);
    strFree(&collected);
    if (replica.second) netOutgoingClose(replica.second);
    replica.second = NULL;
}

/* Own replicas follow by synchronising again: partially if only the id is another one. */
static void envHistoryChanged(void *arg, linkHistoryChange change) {
    (void)arg;
    replPrimary *own = replicasThis();
    if (change == LINK_HISTORY_REPLACED) {
        durableOffsetForget();
        primaryRestartStream(own);
    } else {
        own->stream_db = -1;
        primaryDropAll(own);
    }
}

static void envFailoverEnded(void *arg, bool accepted) {
    (void)arg;
    void (*ended)(bool) = replica.failover_ended;
    replica.failover_ended = NULL;
    if (!ended) return;
    if (accepted) rulesEndBlocked(); /* until now this server could have remained the primary */
    ended(accepted);
}

static const linkEnv env = {.settings = envSettings,
                            .connect = envConnect,
                            .send = envSend,
                            .close = envClose,
                            .transfer = envTransfer,
                            .stream = envStream,
                            .connect_second = envConnectSecond,
                            .send_second = envSendSecond,
                            .save_started = envSaveStarted,
                            .collect = envCollect,
                            .history_changed = envHistoryChanged,
                            .failover_ended = envFailoverEnded};

bool replicaHasCaughtUp(void) {
    if (!replica.has_caught_up && replicaIsConnected())
        replica.has_caught_up = replThis()->history.offset >= replica.link.primary_end;
    return replica.has_caught_up;
}

void replicaHoldAcks(bool on) {
    linkHoldAcks(&replica.link, on, replicaHasCaughtUp() ? replThis()->history.offset : 0);
}

static void haltLink(void *arg) {
    (void)arg;
    if (replica.link.halted) return;
    logWarning("The primary uses more than the %d databases that this server has: the link is "
               "stopped. Set 'databases' to the primary's and restart, or use REPLICAOF to try "
               "again",
               storeDbCount());
    linkHalt(&replica.link, false);
}

void replicaGoOn(void) {
    if (!divergenceStops()) return;
    divergenceGoOn();
    logNotice("The link to the primary is opened again, as the order is to go on");
    linkRestart(&replica.link, true, clockMonoMs());
}

void replicaHalt(void) {
    haltLink(NULL);
    if (replica.stream) sessionCloseNow(replica.stream);
}

void replicaGiveUpStream(void) {
    linkSetContinuable(&replica.link, false);
    if (replica.stream) sessionCloseNow(replica.stream);
}

void replicaSessionEvent(session *s, sessionEvent e) {
    if (e != SESSION_ENDING || s != replica.stream) return;
    const conn *c = netOutgoingConn(s);
    if (connUnpacks(c) && c->fd >= 0 && c->last_errno == EBADMSG)
        logWarning("The stream of the primary cannot be read: %s", connErrorText(c));
    linkLost(&replica.link, NULL, clockMonoMs());
    updateRules();
}

/* ------------------------------------------------------------------ roles */

static void setAddress(slice host, int port) {
    str copy = strNew(host);
    strFree(&replConf.primary_host);
    replConf.primary_host = copy;
    replConf.primary_port = port;
}

/* `related`: the dataset may be one of the primary's, earlier. */
static void follow(slice host, int port, bool related) {
    hotCheck(host.len > 0);
    hotCheck(port > 0);
    int64_t now_ms = clockMonoMs();
    bool was_primary = !replicaIsOn();
    (void)jobEndChanges(); /* as a primary */
    linkStop(&replica.link);
    setAddress(host, port);
    ackHoldForget();
    replica.has_caught_up = false;
    if (divergenceStops()) {
        divergenceGoOn();
        related = false; /* the order is to replace what differs */
    }
    if (!related) {
        linkSetContinuable(&replica.link, false);
    } else if (was_primary) {
        logNotice("Before turning into a replica, using my own primary parameters to synthesize a "
                  "cached primary: I may be able to synchronize with the new primary with just a "
                  "partial transfer.");
        linkSetContinuable(&replica.link, true);
    }
    linkStart(&replica.link, now_ms);
    updateRules();
    signalRole();
    linkTick(&replica.link, now_ms);
}

void replicaFollow(slice host, int port, bool related) {
    bool was_primary = !replicaIsOn();
    follow(host, port, related);
    if (was_primary) rulesEndBlocked();
}

bool replicaRefusesPrimary(void) { return replica.link.refuses; }

void replicaRetryRefused(void) {
    if (replica.link.refuses && replica.link.state == LINK_CONNECT)
        linkRestart(&replica.link, true, clockMonoMs());
}

void replicaFollowSuccessor(slice host, int port, bool force, void (*ended)(bool accepted)) {
    followedForget();
    follow(host, port, true); /* stops the link, which ends an earlier attempt */
    replica.link.forces = force;
    replica.failover_ended = ended;
    replica.link.failover = true;
}

void replicaStop(void) { linkStop(&replica.link); }

/* An election is never refused: all replicas may have failed at the same command. */
static void logDifferences(void) {
    if (!divergenceIsKnown()) return;
    str text = STR_EMPTY;
    divergenceAppendReason(&text);
    logWarning("%s. This server becomes a primary with them", strText(&text));
    strFree(&text);
    divergenceForget();
}

void replicaPromote(void) {
    hotCheck(threadIsMain());
    if (!replicaIsOn()) return;
    replHistory *history = &replThis()->history;
    logDifferences();
    linkStop(&replica.link);
    setAddress(SLICE(""), 0);
    ackHoldForget();
    followedForget();
    if (replica.link.can_continue) {
        historyBranch(history);
        logNotice("Setting secondary replication ID to %s, valid up to offset: %lld. New "
                  "replication ID is %s",
                  history->id2, (long long)history->second_offset, history->id);
        envHistoryChanged(NULL, LINK_HISTORY_RENAMED);
    } else {
        /* The dataset is not the one of this position: nobody can continue from here. */
        historyRenew(history);
        envHistoryChanged(NULL, LINK_HISTORY_REPLACED);
    }
    linkSetContinuable(&replica.link, false);
    updateRules();
    signalRole();
}

/* ------------------------------------------------------------------ registration */

/* True if the loaded file is of a stream, and says so in a form that can be right. */
static bool hasOrigin(const persistOrigin *origin) {
    return historyIsId(sliceOf(origin->id)) && historyIsOffset(origin->offset);
}

/* A primary continues its stream under a new id. If it is replaced before it has changed anything,
 * it continues as a replica under the id of the file, in the database of the file. */
static void restoreHistory(void) {
    persistOrigin origin = persistLoadedOrigin();
    if (replicaIsOn() || !hasOrigin(&origin) || replThis()->has_backlog) return;
    historyRestore(&replThis()->history, sliceOf(origin.id), origin.offset);
    replica.db = origin.db;
    primaryOpenBacklog(replicasThis());
}

/* A replica from the start on: the link connects in a tick, so after the load. */
static void beginAsReplica(void) {
    check(replConf.primary_host.len > 0);
    linkStart(&replica.link, clockMonoMs());
    updateRules();
    signalRole();
}

status replicaInit(reason *why) {
    hotCheck(threadIsMain());
    (void)why; /* cannot fail */
    linkInit(&replica.link, &replThis()->history, &env, NULL);
    replica.db = -1;
    persistSetOriginProc(restoreHistory);
    if (replConf.primary_host.len) beginAsReplica();
    return OK;
}

void replicaFollowAtStart(slice host, int port) {
    hotCheck(threadIsMain());
    check(!replicaIsOn());
    setAddress(host, port);
    beginAsReplica();
}

void replicaAfterStart(void) {
    hotCheck(threadIsMain());
    if (!storeIsSlotted()) ackHoldResume();
    if (divergenceAfterStart()) linkHalt(&replica.link, true);
    persistSetOriginProc(NULL); /* files that are loaded later have no consequences */
    persistOrigin origin = persistLoadedOrigin();
    replHistory *history = &replThis()->history;
    if (!hasOrigin(&origin)) return;
    restoreHistory();
    if (!replicaIsOn()) return;
    historyAdopt(history, sliceOf(origin.id), origin.offset);
    replica.db = origin.db;
    linkSetContinuable(&replica.link, true);
}

/* Connects again if repl-compression was changed and the primary could use another codec. It uses
 * the strongest one that both have; a weaker one than was told is its own strongest one. */
static void followCodec(void) {
    if (likely(replCodec() == toldCodec()) || !replica.stream || !replicaIsConnected()) return;
    compressCodec now = COMPRESS_NONE;
    const conn *c = netOutgoingConn(replica.stream);
    if (connUnpacks(c) && !connUnpackCodec(c, &now)) return; /* its first bytes will tell */
    if (now < toldCodec() && replCodec() >= now) return;
    logNotice("repl-compression has changed: connecting to the primary again");
    linkRestart(&replica.link, true, clockMonoMs());
}

void replicaTick(int64_t budget_us) {
    hotCheck(threadIsMain());
    (void)budget_us; /* takes little time */
    if (keyspaceExpiresActively()) localExpiryTick();
    ackHoldTick();
    if (!replicaIsOn()) return;
    int64_t now_ms = clockMonoMs();
    sendUnsent();
    rulesTick();
    durableOffsetMark();
    if (replica.stream) {
        /* Bytes of an incomplete command count, too. */
        int64_t idle_ms = engineHot.now_ms - replica.stream->active_ms;
        /* CLIENT PAUSE holds the stream, which is not read meanwhile. */
        if (idle_ms < 0 || replica.stream->flags & SESSION_PAUSED) idle_ms = 0;
        linkHeard(&replica.link, now_ms - idle_ms);
    }
    transferTick(now_ms);
    followCodec();
    linkTick(&replica.link, now_ms);
    noteLink();
}

bool replicaIsBusy(void) { return replicaIsOn() || localExpiryCount() || ackHoldFileIsThere(); }

/* ------------------------------------------------------------------ INFO and ROLE */

static int64_t secondsSince(int64_t ms) { return (clockMonoMs() - ms) / 1000; }

void replicaPrintInfo(str *out) {
    hotCheck(threadIsMain());
    const replLink *link = &replica.link;
    const replHistory *history = &replThis()->history;
    bool up = replicaIsConnected(),
         syncing = link->state == LINK_ANNOUNCED || link->state == LINK_TRANSFER;
    int64_t io_s =
        up && replica.stream ? (engineHot.now_ms - replica.stream->active_ms) / 1000 : -1;
    int64_t offset = up || link->can_continue ? history->offset : 1;
    int64_t read = offset;
    if (replica.stream)
        read += (int64_t)(streamReceived(replica.stream) - streamApplied(replica.stream) +
                          netOutgoingWaiting(replica.stream));
    strAppendFormat(out,
                    "master_host:%s\r\nmaster_port:%d\r\nmaster_link_status:%s\r\n"
                    "master_last_io_seconds_ago:%lld\r\nmaster_sync_in_progress:%d\r\n"
                    "slave_read_repl_offset:%lld\r\nslave_repl_offset:%lld\r\n"
                    "replicas_repl_buffer_size:%zu\r\nreplicas_repl_buffer_peak:%zu\r\n"
                    "total_repl_decompressed_bytes:%llu\r\n",
                    strText(&replConf.primary_host), replConf.primary_port, up ? "up" : "down",
                    (long long)io_s, syncing, (long long)read, (long long)offset,
                    replica.collected.len, replica.collected_peak,
                    (unsigned long long)replica.decompressed);
    if (syncing) {
        transferPrintInfo(out);
        strAppendFormat(out, "master_sync_last_io_seconds_ago:%lld\r\n",
                        (long long)secondsSince(link->heard_ms));
    }
    if (!up)
        strAppendFormat(out, "master_link_down_since_seconds:%lld\r\n",
                        link->down_ms < 0 ? -1LL : (long long)secondsSince(link->down_ms));
    if (link->refuses)
        strAppendText(out, "master_link_refused:1\r\n"
                           "master_link_refused_reason:primary was started without the data\r\n");
    if (divergenceStops()) {
        strAppendText(out, "master_link_stopped:a command failed\r\n");
    } else if (link->halted) {
        strAppendText(out, "master_link_stopped:too few databases\r\n");
    }
    divergencePrintInfo(out);
    if (!up) persistPrintRefusal(out);
    strAppendFormat(out, "slave_priority:%d\r\nslave_read_only:%d\r\nreplica_announced:%d\r\n",
                    replConf.replica_priority, replConf.replica_read_only,
                    replConf.replica_announced);
}

void replicaResetStats(void) { replica.decompressed = 0; }

void replicaReplyRole(ctx *c) {
    hotCheck(threadIsMain());
    bool known = replicaIsConnected() || replica.link.can_continue;
    replyArray(c, 5);
    replyBulkText(c, "slave");
    replyBulk(c, strSlice(&replConf.primary_host));
    replyInteger(c, replConf.primary_port);
    replyBulkText(c, linkStateName(linkShownState(&replica.link)));
    replyInteger(c, known && replicaIsConnected() ? replThis()->history.offset : -1);
}
