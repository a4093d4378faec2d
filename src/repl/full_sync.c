/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Full synchronisations of replicas: the child, the pipe through which its output goes to all
 * replicas of the transfer, and the sending of a saved file.
 *
 * The pipe is read only while every replica of the transfer has sent nearly all that it was given.
 * So the slowest replica sets the pace, and the parent holds at most RELAY_AHEAD bytes for each;
 * all replicas share one copy. Before the child ends it waits until the parent has read everything:
 * it reads the pipe `end` until that is closed.
 *
 * The child of a dual-channel synchronisation with one replica writes to the connection of the
 * replica itself, unless that connection uses TLS.
 *
 * Without a child (syncIsInline()) this process produces the bytes at the same pace. Keys that
 * change are then copied for the time of the transfer; when these copies exceed a limit, the
 * replicas that are too slow are disconnected. There is one server in a process, so the callbacks
 * do not use their argument. */
#include <errno.h>
#include <signal.h>
#include <unistd.h>

#include "base/base.h"
#include "base/progress_meter.h"
#include "base/random.h"
#include "engine/child.h"
#include "engine/deliver.h"
#include "engine/hot.h"
#include "engine/lifecycle.h"
#include "format/rdb_format.h"
#include "net/net.h"
#include "persist/sync.h"
#include "repl/repl_priv.h"
#include "repl/replicas.h"

enum {
    RELAY_BYTES = 256 * 1024, /* of one read */
    RELAY_AHEAD = 512 * 1024,
    FILE_BYTES = 128 * 1024,
    FILE_AHEAD = 256 * 1024,
    DROP_PERIOD_MS = 500,
};

static struct {
    bool running, to_file; /* a child of ours */
    bool ended, succeeded; /* it has ended; handled in the next stage */
    bytePipe data, end;    /* the parent's ends */
    bool watched;          /* `data` is watched */
    bool is_inline;        /* the bytes come from this process */
    bool is_direct;        /* the child writes to the connection of the only receiver */
    int64_t reported_us;   /* its last report that counted as a sign of life of the receiver */
    bool has_begun;        /* the mark in front of them was sent */
    bool waits;            /* for receivers; there may be more bytes */
    int64_t dropped_ms;    /* when a slow receiver was disconnected */
    char mark[SYNC_MARK_LEN];
    bool made_file; /* the snapshot file was written for replicas */
    bool pause_after_fork;
    progressMeter meter; /* of the child, in keys */
    int64_t piped;       /* bytes read from the pipe */
    uint64_t counted;    /* bytes of a direct child that are in the statistics */
} transfer = {.data = {-1, -1}, .end = {-1, -1}};

void fullSyncPauseAfterFork(bool on) { transfer.pause_after_fork = on; }
bool fullSyncPausesAfterFork(void) { return transfer.pause_after_fork; }

/* ------------------------------------------------------------------ the pipe */

static bool isReceiver(const replPeer *peer) { return peer->state == PEER_WAITING_END; }

static int countReceivers(const replPrimary *p) {
    int count = 0;
    for (listNode *n = listFirst(&p->peers); n; n = listNext(&p->peers, n))
        count += isReceiver(peerOf(n));
    return count;
}

static bool lags(const replPrimary *p, const replPeer *peer) {
    return p->env->pending(peer) > RELAY_AHEAD - RELAY_BYTES;
}

static bool receiversLag(const replPrimary *p) {
    for (listNode *n = listFirst(&p->peers); n; n = listNext(&p->peers, n)) {
        if (isReceiver(peerOf(n)) && lags(p, peerOf(n))) return true;
    }
    return false;
}

static void sendShared(const replPrimary *p, blob *bytes) {
    for (listNode *n = listFirst(&p->peers); n; n = listNext(&p->peers, n)) {
        if (isReceiver(peerOf(n))) p->env->send_shared(peerOf(n), bytes, 0, bytes->len);
    }
}

static void unwatchPipe(void) {
    if (transfer.watched) loopUnwatch(engineLoop(), transfer.data.read_fd, LOOP_READ);
    transfer.watched = false;
}

static void closePipe(void) {
    unwatchPipe();
    pipeCloseReading(&transfer.data);
    pipeCloseWriting(&transfer.end);
    hotCheck(transfer.data.read_fd < 0);
}

static void pipeReadable(loop *l, int fd, void *arg, int mask) {
    (void)l, (void)mask; /* there is one loop, and only reading is watched */
    replPrimary *p = arg;
    if (receiversLag(p)) {
        unwatchPipe(); /* until fullSyncWatchPipe() */
        return;
    }
    blob *bytes = blobNew(RELAY_BYTES);
    ssize_t n = pipeRead(fd, bytes->bytes, RELAY_BYTES);
    if (n > 0) {
        bytes->len = (size_t)n;
        transfer.piped += n;
        sendShared(p, bytes);
    } else if (n == 0 || errno != EAGAIN) {
        logNotice("Diskless rdb transfer, done reading from pipe, %d replicas still up.",
                  countReceivers(p));
        closePipe(); /* the child ends now */
    }
    blobRelease(bytes);
}

static void watchPipe(replPrimary *p) {
    if (transfer.watched || transfer.data.read_fd < 0) return;
    status st = loopWatch(engineLoop(), transfer.data.read_fd, LOOP_READ, pipeReadable, p);
    check(st == OK); /* the loop has room for descriptors of the server's own */
    transfer.watched = true;
}

static status openPipes(syncPipe *to, reason *why) {
    hotCheck(transfer.data.read_fd < 0);
    status st = pipeOpen(&to->data, RELAY_BYTES, why);
    if (st != OK) return st;
    st = pipeOpen(&to->end, 0, why);
    if (st == OK) st = pipeSetNonblocking(to->data.read_fd);
    if (st != OK) {
        pipeCloseReading(&to->data);
        pipeCloseWriting(&to->data);
        pipeCloseReading(&to->end);
        pipeCloseWriting(&to->end);
    }
    return st;
}

static status startPipe(replPrimary *p, const syncContent *content, reason *why) {
    char mark[SYNC_MARK_LEN];
    syncPipe to = {.mark = mark};
    status st = openPipes(&to, why);
    if (st != OK) return st;
    randomHex(mark, sizeof(mark));
    st = syncSaveToPipe(&to, content, why);
    transfer.data = to.data;
    transfer.end = to.end;
    if (st != OK) {
        closePipe();
        return st;
    }
    watchPipe(p);
    return OK;
}

/* ------------------------------------------------------------------ to the connection */

/* The descriptor of a connection to which the child can write, if there is one receiver; else
 * -1. */
static int takeConnection(const replPrimary *p) {
    if (countReceivers(p) != 1) return -1;
    for (listNode *n = listFirst(&p->peers); n; n = listNext(&p->peers, n))
        if (isReceiver(peerOf(n))) return netLendToChild(replicasConn(peerOf(n))->who);
    return -1;
}

/* Starts a child that writes to `fd`, which no other process has open then. The bytes do not pass
 * through this process, which may be busy or stopped meanwhile. */
static status startDirect(int fd, const syncContent *content, reason *why) {
    hotCheck(fd >= 0);
    char mark[SYNC_MARK_LEN];
    syncPipe to = {.data = {-1, fd}, .mark = mark, .is_connection = true};
    status st = pipeOpen(&to.end, 0, why);
    if (st != OK) {
        pipeCloseWriting(&to.data);
        return st;
    }
    randomHex(mark, sizeof(mark));
    st = syncSaveToPipe(&to, content, why);
    pipeCloseWriting(&to.end); /* the child has nothing to wait for at its end */
    return st;
}

/* Adds what the child has sent since the last report to the statistics of this process. */
static void countDirect(void) {
    uint64_t sent = childProgressNow().sent;
    if (!transfer.is_direct || sent <= transfer.counted) return;
    netCountDatasetSent(sent - transfer.counted);
    transfer.counted = sent;
}

/* A child that reports makes progress: the replica takes what it writes. */
static void noteDirectProgress(const replPrimary *p) {
    int64_t reported_us = childProgressNow().reported_us;
    if (!transfer.is_direct || !transfer.running || reported_us == transfer.reported_us) return;
    transfer.reported_us = reported_us;
    countDirect();
    for (listNode *n = listFirst(&p->peers); n; n = listNext(&p->peers, n))
        if (isReceiver(peerOf(n))) peerOf(n)->heard_ms = engineHot.now_ms;
}

/* ------------------------------------------------------------------ without a child */

static void sendToReceivers(replPrimary *p, slice bytes) {
    for (listNode *n = listFirst(&p->peers); n; n = listNext(&p->peers, n)) {
        if (isReceiver(peerOf(n))) p->env->send(peerOf(n), bytes);
    }
}

/* Disconnects the slowest of those that lag, at most one per period: then the others may be fast
 * enough. */
static void dropSlowest(replPrimary *p) {
    hotCheck(transfer.running);
    replPeer *slowest = NULL;
    for (listNode *n = listFirst(&p->peers); n; n = listNext(&p->peers, n)) {
        replPeer *peer = peerOf(n);
        if (!isReceiver(peer) || !lags(p, peer)) continue;
        if (!slowest || p->env->pending(peer) > p->env->pending(slowest)) slowest = peer;
    }
    if (!slowest || engineHot.now_ms - transfer.dropped_ms < DROP_PERIOD_MS) return;
    transfer.dropped_ms = engineHot.now_ms;
    str name = STR_EMPTY;
    p->env->name(slowest, &name);
    logWarning("Replica %s receives the dataset slower than keys change: half of "
               "snapshot-excess-limit is reached, disconnecting it",
               strText(&name));
    strFree(&name);
    p->env->close(slowest);
}

static void relayInline(replPrimary *p) {
    hotCheck(transfer.is_inline);
    blob *bytes;
    while (!(transfer.waits = receiversLag(p)) && (bytes = syncTakeInline())) {
        if (!transfer.has_begun) {
            str line = STR_EMPTY;
            strAppendFormat(&line, "$EOF:%.*s\r\n", SYNC_MARK_LEN, transfer.mark);
            sendToReceivers(p, strSlice(&line));
            strFree(&line);
            transfer.has_begun = true;
        }
        transfer.piped += (int64_t)bytes->len;
        sendShared(p, bytes);
        blobRelease(bytes);
    }
    if (unlikely(syncInlineIsPressed())) dropSlowest(p);
}

static status startInline(const syncContent *content, reason *why) {
    randomHex(transfer.mark, sizeof(transfer.mark));
    transfer.has_begun = transfer.waits = false;
    status st = syncSaveInline(content, why);
    transfer.is_inline = st == OK;
    return st;
}

/* ------------------------------------------------------------------ the child */

status fullSyncStart(replPrimary *p, const primarySave *save, reason *why) {
    hotCheck(!transfer.running);
    const syncContent content = {.version = save->rdb_version,
                                 .no_keys = save->filter & PEER_NO_KEYS,
                                 .no_functions = save->filter & PEER_NO_FUNCTIONS,
                                 .no_checksum = save->no_checksum,
                                 .slot_states = true,
                                 .released_types = save->released_types,
                                 .codec = (compressCodec)save->codec};
    transfer.is_inline = transfer.is_direct = false;
    bool forks = !save->to_file && !syncIsInline();
    int fd = forks && save->dual_channel ? takeConnection(p) : -1;
    status st = save->to_file ? syncSaveToFile(&content, why)
                : !forks      ? startInline(&content, why)
                : fd >= 0     ? startDirect(fd, &content, why)
                              : startPipe(p, &content, why);
    if (st != OK) return st;
    transfer.is_direct = fd >= 0;
    transfer.running = true;
    transfer.ended = false;
    transfer.to_file = save->to_file;
    transfer.piped = 0;
    transfer.counted = 0;
    progressMeterBegin(&transfer.meter, clockMonoMs());
    if (save->to_file) transfer.made_file = true;
    if (transfer.pause_after_fork) (void)raise(SIGSTOP); /* for tests */
    return OK;
}

void fullSyncStop(replPrimary *p) {
    (void)p;
    closePipe();
    syncStop();
}

void fullSyncChildEvent(childEvent e, int kind, int exit_code, int signal_number) {
    if (e != CHILD_ENDED || kind != CHILD_RDB_SAVE || !transfer.running) return;
    countDirect();
    transfer.running = false;
    transfer.ended = true;
    transfer.succeeded = exit_code == 0 && signal_number == 0;
    loopLimitSleep(engineLoop(), 0); /* the rest is done in the next stage */
}

/* ------------------------------------------------------------------ the file */

status fullSyncSendFile(replPeer *to, reason *why) {
    hotCheck(to->state == PEER_SENDING_FILE);
    replicaConn *conn = replicasConn(to);
    fileReaderClose(&conn->file);
    status st = fileReaderOpen(&conn->file, syncFile(), why);
    if (st != OK) return st;
    conn->file_left = conn->file.size;
    progressMeterBegin(&conn->sending, clockMonoMs());
    str line = STR_EMPTY;
    strAppendFormat(&line, "$%lld\r\n", (long long)conn->file.size);
    replicasThis()->env->send(to, strSlice(&line));
    strFree(&line);
    return OK;
}

/* Gives the connection more of the file. False: it could not be read. */
static bool sendMore(replPrimary *p, replPeer *peer, reason *why) {
    hotCheck(replicasConn(peer)->file_left >= 0);
    replicaConn *conn = replicasConn(peer);
    while (conn->file_left && p->env->pending(peer) < FILE_AHEAD) {
        blob *bytes = blobNew(FILE_BYTES);
        size_t len = 0;
        status st = fileReaderRead(&conn->file, bytes->bytes, FILE_BYTES, &len, why);
        if (st == OK && len == 0) st = reasonSet(why, ERR_IO, "the file has become shorter");
        if (st == OK) {
            bytes->len = sizeMin(len, (size_t)conn->file_left);
            conn->file_left -= (int64_t)bytes->len;
            p->env->send_shared(peer, bytes, 0, bytes->len);
        }
        blobRelease(bytes);
        if (st != OK) return false;
    }
    return true;
}

static void continueFile(replPrimary *p, replPeer *peer) {
    hotCheck(peer->state == PEER_SENDING_FILE);
    reason why;
    if (!sendMore(p, peer, &why)) {
        logWarning("Read error sending DB to replica: %s", why.text);
        p->env->close(peer);
    } else if (!replicasConn(peer)->file_left) {
        fileReaderClose(&replicasConn(peer)->file);
        primaryFileSent(p, peer, engineHot.now_ms);
    }
}

void fullSyncWatchPipe(replPrimary *p) {
    if (unlikely(transfer.waits) && transfer.running && !receiversLag(p))
        loopLimitSleep(engineLoop(), 0); /* relayInline() continues */
    if (unlikely(transfer.data.read_fd >= 0) && !transfer.watched && !receiversLag(p)) watchPipe(p);
}

void fullSyncContinue(replPrimary *p) {
    if (unlikely(transfer.ended)) {
        transfer.ended = false;
        closePipe();
        if (transfer.is_inline && transfer.succeeded)
            sendToReceivers(p, sliceMake(transfer.mark, sizeof(transfer.mark)));
        primarySaveEnded(p, transfer.succeeded, engineHot.now_ms);
    }
    if (unlikely(transfer.is_inline) && transfer.running) relayInline(p);
    for (listNode *n = listFirst(&p->peers); n; n = listNext(&p->peers, n)) {
        replPeer *peer = peerOf(n);
        if (unlikely(peer->state == PEER_SENDING_FILE) &&
            !(replicasConn(peer)->who->flags & SESSION_CLOSE_NOW))
            continueFile(p, peer);
    }
    hotCheck(!transfer.ended);
}

/* ------------------------------------------------------------------ progress */

static void describeKeys(str *out, int64_t now_ms) {
    childProgress keys = childProgressNow();
    if (!keys.total) return;
    strAppendFormat(out, ", %llu of %llu keys (%d %%)", (unsigned long long)keys.done,
                    (unsigned long long)keys.total, (int)(100 * keys.done / keys.total));
    int64_t left_s =
        progressMeterSecondsLeft(&transfer.meter, (int64_t)keys.done, (int64_t)keys.total, now_ms);
    if (left_s >= 0) strAppendFormat(out, ", about %lld seconds left", (long long)left_s);
}

static void logChildProgress(const replPrimary *p, int64_t now_ms) {
    str line = STR_EMPTY;
    if (!transfer.running || !progressMeterIsDue(&transfer.meter, now_ms)) return;
    if (transfer.to_file) {
        strAppendFormat(&line, "Saving the dataset for %d replicas", countReceivers(p));
    } else {
        strAppendFormat(&line, "Sending the dataset to %d replicas: ", countReceivers(p));
        progressMeterDescribe(&transfer.meter, transfer.piped, 0, now_ms, &line);
    }
    describeKeys(&line, now_ms);
    logNotice("%s", strText(&line));
    strFree(&line);
}

static int64_t sentOfFile(const replicaConn *conn) { return conn->file.size - conn->file_left; }

static void logFileProgress(const replPrimary *p, const replPeer *peer, int64_t now_ms) {
    replicaConn *conn = replicasConn(peer);
    if (peer->state != PEER_SENDING_FILE || !progressMeterIsDue(&conn->sending, now_ms)) return;
    str line = strNew(SLICE("Sending the dataset to replica "));
    p->env->name(peer, &line);
    strAppendText(&line, ": ");
    progressMeterDescribe(&conn->sending, sentOfFile(conn), conn->file.size, now_ms, &line);
    logNotice("%s", strText(&line));
    strFree(&line);
}

static void printPhase(str *out, const char *phase, const progressMeter *m, int64_t sent,
                       int64_t total) {
    hotCheck(sent >= 0);
    hotCheck(total >= 0);
    int64_t now_ms = clockMonoMs();
    childProgress keys = total ? (childProgress){0} : childProgressNow();
    int64_t left_s =
        total ? progressMeterSecondsLeft(m, sent, total, now_ms)
              : progressMeterSecondsLeft(m, (int64_t)keys.done, (int64_t)keys.total, now_ms);
    strAppendFormat(out,
                    "phase=%s,sent_bytes=%lld,total_bytes=%lld,keys=%llu,total_keys=%llu,"
                    "bytes_per_second=%lld,eta_seconds=%lld\r\n",
                    phase, (long long)sent, (long long)total, (unsigned long long)keys.done,
                    (unsigned long long)keys.total,
                    (long long)progressMeterPerSecond(m, sent, now_ms), (long long)left_s);
}

void fullSyncPrintInfo(const replPeer *peer, int number, str *out) {
    const replicaConn *conn = replicasConn(peer);
    bool by_child = peer->state == PEER_WAITING_END && transfer.running;
    if (!by_child && peer->state != PEER_SENDING_FILE) return;
    strAppendFormat(out, "full_sync_slave%d:", number);
    if (!by_child) {
        printPhase(out, "sending", &conn->sending, sentOfFile(conn), conn->file.size);
    } else {
        printPhase(out, transfer.to_file ? "saving" : "streaming", &transfer.meter, transfer.piped,
                   0);
    }
}

/* ------------------------------------------------------------------ periodic */

void fullSyncTick(replPrimary *p) {
    int64_t now_ms = clockMonoMs();
    noteDirectProgress(p);
    logChildProgress(p, now_ms);
    for (listNode *n = listFirst(&p->peers); n; n = listNext(&p->peers, n))
        logFileProgress(p, peerOf(n), now_ms);
    if (!transfer.made_file || p->is_saving) return;
    for (listNode *n = listFirst(&p->peers); n; n = listNext(&p->peers, n)) {
        if (peerOf(n)->state == PEER_SENDING_FILE) return;
    }
    transfer.made_file = false;
    if (!syncFileIsUnwanted()) return;
    logNotice("Removing the RDB file used to feed replicas in a persistence-less instance");
    (void)unlink(syncFile()); /* may be gone already */
}
