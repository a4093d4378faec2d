/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Appending to the append only file (aof.h). Each turn of the loop collects its changes in one
 * buffer, which is written by one write() before any reply of the turn is sent; with appendfsync
 * always one fsync() follows for all of them. So with every policy the kernel has what was
 * acknowledged, and the death of the process alone loses nothing. The write is not postponed while
 * a background fsync runs; only one that fails is tried again later, with writes refused until
 * then.
 *
 * Changes are numbered by propagateCount(). Invariant: synced <= written <= appended; the buffer
 * has those after `written`, and the file descriptor of a background fsync stays open until its job
 * has ended, because jobs run in order. */
#include "persist/aof.h"

#include <errno.h>
#include <stdlib.h>
#include <unistd.h>

#include "base/base.h"
#include "base/number.h"
#include "engine/block.h"
#include "engine/child.h"
#include "engine/hot.h"
#include "engine/latency.h"
#include "engine/lifecycle.h"
#include "engine/propagate.h"
#include "engine/reply.h"
#include "engine/transaction.h"
#include "format/aof_reader.h"
#include "io/bio.h"
#include "persist/aof_position.h"
#include "persist/persist_priv.h"

enum {
    SYNC_PERIOD_MS = 1000,
    SLOW_SYNC_MS = 2000, /* a background fsync that takes longer is reported */
    RETRY_MS = 1000,
    LOG_PERIOD_MS = 30000,
    BUFFER_KEPT = 1 << 20, /* capacity that an empty buffer keeps */
};

static struct {
    aofState state;
    appendFile file; /* fd -1: changes are dropped */
    str buffer;
    int db_id;      /* database selected last in the file; -1: none yet */
    bool in_turn;   /* the buffer has records since the last write */
    int64_t time_s; /* of the last annotation */
    uint64_t appended, written, synced;
    bool syncing;      /* a background fsync of `file` has not ended */
    int closing;       /* files before `file` whose last background fsync has not ended */
    int64_t synced_ms; /* start of the last fsync */
    bool sync_is_slow; /* it was reported */
    uint64_t delayed;  /* background fsyncs that were slow */
    int write_error;   /* errno of the last write; 0: it succeeded */
    int sync_error;    /* errno of a failed background fsync; 0: none */
    int64_t retry_ms, logged_ms;
    int64_t size, size_after_rewrite;
    uint64_t write_us;
} aof = {.file = {.fd = -1}};

aofState aofStateNow(void) { return aof.state; }
bool aofNeedsRewrite(void) { return aof.sync_error != 0; }
bool aofWriteFails(void) { return aof.write_error != 0; }
int64_t aofSize(void) { return aof.size; }
int64_t aofSizeAfterRewrite(void) { return aof.size_after_rewrite; }
uint64_t aofAppendedNumber(void) { return aof.appended; }
uint64_t aofSyncedNumber(void) { return aof.synced; }
size_t aofBufferBytes(void) { return aof.buffer.cap; }
uint64_t aofWriteUs(void) { return aof.write_us; }

void aofSetSizes(int64_t size, int64_t after_rewrite) {
    hotCheck(size >= 0);
    hotCheck(after_rewrite >= 0);
    aof.size = size;
    aof.size_after_rewrite = after_rewrite;
}

/* ------------------------------------------------------------------ the gate */

static const char *errorText(void) {
    hotCheck(aof.write_error || aof.sync_error);
    return strerror(aof.write_error ? aof.write_error : aof.sync_error);
}

static gateVerdict refuseWrites(ctx *c) {
    if (c->cmd->flags & CMD_RUNS_QUEUE && !transactionHas(c->who, CMD_WRITE)) return GATE_PASS;
    replyErrorFormat(c, "MISCONF Errors writing to the AOF file: %s", errorText());
    return GATE_REFUSED;
}

static void refuseScript(ctx *c) {
    replyErrorFormat(c,
                     "MISCONF Valkey is configured to persist data to AOF, but it's currently "
                     "unable to persist to disk. Writable scripts are blocked. Use 'no-writes' "
                     "flag for read only scripts. AOF error: %s",
                     errorText());
}

bool persistSelectsWrites(const commandSpec *spec) {
    return spec->flags & (CMD_WRITE | CMD_RUNS_QUEUE) || !strcmp(spec->name, "ping");
}

const gate aofErrorGate = {.name = "AOF error",
                           .selects = persistSelectsWrites,
                           .admit = refuseWrites,
                           .refuse_script = refuseScript,
                           .waived_for_writer = true};

static void updateGate(void) {
    bool armed = aof.state != AOF_IS_OFF && (aof.write_error || aof.sync_error);
    if (gateIsArmed(&aofErrorGate) != armed) gateArm(&aofErrorGate, armed);
}

/* ------------------------------------------------------------------ appending */

static void selectDb(int db_id) {
    hotCheck(db_id >= 0);
    char digits[NUMBER_TEXT_MAX];
    slice words[] = {SLICE("SELECT"), sliceMake(digits, numberPrintInt(digits, db_id))};
    aofPrintCommand(&aof.buffer, 2, words);
    aof.db_id = db_id;
}

static void annotate(void) {
    int64_t now_s = engineHot.now_ms / 1000;
    if (now_s == aof.time_s) return;
    aof.time_s = now_s;
    aofPrintTime(&aof.buffer, now_s);
}

static void append(const propagated *p) {
    hotCheck(aof.written <= aof.appended);
    aof.appended = propagateCount();
    if (unlikely(aof.file.fd < 0)) return;
    if (unlikely(persistConf.aof_timestamp_enabled)) annotate();
    if (unlikely(!aof.in_turn)) {
        aof.in_turn = true;
        aofPositionTurnBegins(&aof.buffer, aof.file.size);
    }
    bool selects = p->db_id != aof.db_id && p->db_id >= 0;
    if (unlikely(selects)) selectDb(p->db_id);
    size_t before = aof.buffer.len;
    for (int i = 0; i < p->span_count; i++) strAppendSlice(&aof.buffer, p->spans[i]);
    if (aofPositionIsKnown) aofPositionCount(p, aof.buffer.len - before, selects);
}

static void endTurn(void) {
    if (!aof.in_turn) return;
    aof.in_turn = false;
    aofPositionTurnEnds(&aof.buffer, aof.file.size);
}

const sink aofSink = {.name = "aof", .take = append, .targets = PROPAGATE_AOF};

/* ------------------------------------------------------------------ fsync */

/* A background fsync, which the main thread allocates and frees. */
typedef struct syncJob {
    int fd;
    bool close;      /* the file is closed afterwards */
    bool current;    /* it was the current file */
    uint64_t number; /* changes up to this one are in the file */
} syncJob;

static int runSync(void *arg) {
    hotCheck(((const syncJob *)arg)->fd >= 0);
    syncJob *job = arg;
    int error = appendFileSync(job->fd);
    if (job->close) appendFileClose(&(appendFile){.fd = job->fd});
    return error;
}

static void syncDone(void *arg, int error) {
    hotCheck(((const syncJob *)arg)->number <= aof.written);
    syncJob *job = arg;
    if (job->current) {
        aof.syncing = false;
    } else {
        aof.closing--;
    }
    check(aof.closing >= 0);
    if (error) {
        if (!aof.sync_error)
            logWarning(
                "Fail to fsync the AOF file: %s. It is rewritten, because what the disk has is unknown.",
                strerror(error));
        aof.sync_error = error;
        updateGate();
    } else if (!aof.sync_error && job->current && job->number > aof.synced) {
        aof.synced = job->number;
        blockNotify(BLOCK_OFFSET);
    }
    memFree(job);
}

static void syncInBackground(int fd, bool close) {
    hotCheck(fd >= 0);
    hotCheck(close || !aof.syncing);
    syncJob *job = memNew(syncJob);
    *job = (syncJob){.fd = fd, .close = close, .current = !close, .number = aof.written};
    if (job->current) {
        aof.syncing = true;
        aof.sync_is_slow = false;
    } else {
        aof.closing++;
    }
    bioSubmitTask(BIO_FSYNC, runSync, syncDone, job);
}

static void syncNow(void) {
    hotCheck(aof.file.fd >= 0);
    int64_t began_ms = clockMonoMs();
    if (aof.closing) { /* changes of the former file count only with its fsync */
        bioDrain(BIO_FSYNC);
        bioComplete();
    }
    int error = appendFileSync(aof.file.fd);
    latencyNote("aof-fsync-always", clockMonoMs() - began_ms);
    if (error) {
        logWarning(
            "Can't persist AOF for fsync error when the AOF fsync policy is 'always': %s. Exiting...",
            strerror(error));
        _exit(1); /* without cleaning up what other threads use */
    }
    aof.synced_ms = began_ms;
    if (aof.sync_error || aof.closing) return; /* earlier changes may be missing on disk */
    aof.synced = aof.written;
    blockNotify(BLOCK_OFFSET);
}

/* Flushes what is written, if it is time. Before the first rewrite has succeeded nothing counts as
 * durable. */
static void trySync(void) {
    hotCheck(aof.synced <= aof.written);
    if (aof.state != AOF_IS_ON) return;
    if (persistConf.no_appendfsync_on_rewrite && childAlive() != CHILD_NONE) return;
    if (aof.synced == aof.written) return;
    if (persistConf.appendfsync == FSYNC_ALWAYS) {
        syncNow();
    } else if (persistConf.appendfsync == FSYNC_EVERYSEC && !aof.syncing) {
        int64_t now_ms = clockMonoMs();
        if (now_ms - aof.synced_ms < SYNC_PERIOD_MS) return;
        aof.synced_ms = now_ms;
        syncInBackground(aof.file.fd, false);
    }
}

/* ------------------------------------------------------------------ writing */

static void dropBuffer(void) {
    if (aof.buffer.cap > BUFFER_KEPT) {
        strFree(&aof.buffer);
    } else {
        strClear(&aof.buffer);
    }
    hotCheck(aof.buffer.len == 0);
}

/* Removes the first `n` bytes of the buffer. */
static void consume(size_t n) {
    hotCheck(n <= aof.buffer.len);
    memmove(aof.buffer.ptr, aof.buffer.ptr + n, aof.buffer.len - n);
    strCut(&aof.buffer, aof.buffer.len - n);
}

static void logWriteError(int64_t written, size_t expected, int error) {
    int64_t now_ms = clockMonoMs();
    if (aof.logged_ms && now_ms - aof.logged_ms < LOG_PERIOD_MS) return;
    aof.logged_ms = now_ms;
    if (written < 0) {
        logWarning("Error writing to the AOF file: %s", strerror(error));
    } else {
        logWarning("Short write while writing to the AOF file: (nwritten=%lld, expected=%zu)",
                   (long long)written, expected);
    }
}

/* A part of the buffer may have been written. */
static void writeFailed(int64_t written, int64_t size_before) {
    hotCheck(size_before >= 0);
    hotCheck(written < (int64_t)aof.buffer.len);
    int error = written < 0 ? errno : ENOSPC;
    logWriteError(written, aof.buffer.len, error);
    if (written > 0) {
        int cut = appendFileCut(&aof.file, size_before);
        if (cut) {
            logWarning(
                "Could not remove short write from the append-only file. The server may refuse "
                "to load the AOF the next time it starts. ftruncate: %s",
                strerror(cut));
            aof.size += written;
            consume((size_t)written);
        }
    }
    if (persistConf.appendfsync == FSYNC_ALWAYS) {
        logWarning("Can't recover from AOF write error when the AOF fsync policy is 'always'. "
                   "Exiting...");
        _exit(1); /* without cleaning up what other threads use */
    }
    aof.write_error = error;
    aof.retry_ms = clockMonoMs() + RETRY_MS;
    updateGate();
}

static void noteLatency(int64_t ms) {
    if (aof.syncing) {
        latencyNote("aof-write-pending-fsync", ms);
    } else if (childAlive() != CHILD_NONE) {
        latencyNote("aof-write-active-child", ms);
    } else {
        latencyNote("aof-write-alone", ms);
    }
    latencyNote("aof-write", ms);
}

static bool writeBuffer(void) {
    hotCheck(aof.file.fd >= 0);
    if (unlikely(engineFlushDelay() > 0))
        (void)usleep((useconds_t)engineFlushDelay()); /* may be interrupted */
    endTurn();
    int64_t before = aof.file.size, began_us = clockMonoUs();
    size_t len = aof.buffer.len;
    int64_t written = appendFileWrite(&aof.file, strSlice(&aof.buffer));
    int64_t took_us = clockMonoUs() - began_us;
    aof.write_us += (uint64_t)took_us;
    noteLatency(took_us / 1000);
    if (written != (int64_t)len) {
        writeFailed(written, before);
        return false;
    }
    if (aof.write_error) {
        logWarning("AOF write error looks solved. The server can write again.");
        aof.write_error = 0;
        updateGate();
    }
    aof.size += written;
    aof.written = aof.appended;
    dropBuffer();
    return true;
}

/* A write follows while a background fsync runs, which may block it. */
static void noteSlowSync(void) {
    hotCheck(aof.syncing);
    if (aof.sync_is_slow || clockMonoMs() - aof.synced_ms < SLOW_SYNC_MS) return;
    aof.sync_is_slow = true;
    aof.delayed++;
    logNotice("Asynchronous AOF fsync is taking too long (disk is busy?). Writing the AOF buffer "
              "without waiting for fsync to complete, this may slow down the server.");
}

void aofFlush(bool force) {
    hotCheck(threadIsMain());
    if (aof.file.fd < 0) return;
    if (aof.buffer.len) {
        if (!force && aof.write_error && clockMonoMs() < aof.retry_ms) return;
        if (aof.syncing && persistConf.appendfsync == FSYNC_EVERYSEC) noteSlowSync();
        if (!writeBuffer()) return;
    } else {
        aof.written = aof.appended;
    }
    trySync();
}

status aofFlushAll(reason *why) {
    hotCheck(threadIsMain());
    if (aof.file.fd < 0) return OK;
    bioDrain(BIO_FSYNC);
    bioComplete();
    if (aof.buffer.len && !writeBuffer())
        return reasonSet(why, ERR_IO, "Error writing to the AOF file: %s",
                         strerror(aof.write_error));
    int error = appendFileSync(aof.file.fd);
    if (!error) error = aof.sync_error;
    if (error) return reasonSet(why, ERR_IO, "Fail to fsync the AOF file: %s", strerror(error));
    aof.written = aof.synced = aof.appended;
    blockNotify(BLOCK_OFFSET);
    return OK;
}

void aofTick(int64_t budget_us) {
    (void)budget_us; /* nothing to limit */
    if (aof.state == AOF_IS_OFF) return;
    if (aof.file.fd >= 0 && !aof.in_turn) aofPositionTick(&aof.buffer, aof.file.size);
    aofFlush(false);
}

void aofNotePosition(void) {
    hotCheck(threadIsMain());
    if (aof.state != AOF_IS_ON || aof.file.fd < 0) return;
    endTurn();
    aofPositionEnd(&aof.buffer, aof.file.size);
    aof.db_id = -1; /* what follows, if the shutdown is refused, begins with SELECT */
}

bool aofIsBehind(void) {
    if (aof.state == AOF_IS_OFF) return false;
    return aof.synced != aof.appended || (aof.file.fd >= 0 && aofPositionIsBehind());
}

/* ------------------------------------------------------------------ on and off */

static void flushTurn(void) { aofFlush(false); }

/* Registered only while it is on: a server without it has one job less per turn. */
static const stageJob stages[] = {{STAGE_LOG, flushTurn}, {0, NULL}};
static const feature running = {.name = "aof", .stages = stages};

static void useFile(appendFile *take) {
    hotCheck(take->fd >= 0);
    aof.file = *take;
    take->fd = -1;
    aof.db_id = -1;
    aof.time_s = 0;
    aof.in_turn = false;
    aofPositionReset();
}

static void start(aofState state) {
    hotCheck(aof.state == AOF_IS_OFF);
    hotCheck(state != AOF_IS_OFF);
    aof.state = state;
    aof.synced_ms = clockMonoMs();
    aof.write_error = aof.sync_error = 0;
    aof.appended = aof.written = aof.synced = propagateCount();
    sinkArm(&aofSink, true);
    hooksAddFeature(&running);
    hotCheck(aof.synced == aof.appended);
}

void aofBegin(appendFile *take) {
    hotCheck(aof.state == AOF_IS_OFF);
    start(AOF_IS_ON);
    useFile(take);
}

void aofBeginWaiting(void) {
    hotCheck(aof.state == AOF_IS_OFF);
    start(AOF_IS_WAITING);
}

void aofEnd(void) {
    hotCheck(threadIsMain());
    check(aof.state != AOF_IS_OFF);
    reason why;
    if (aofFlushAll(&why) != OK) logWarning("%s", why.text);
    appendFileClose(&aof.file);
    strFree(&aof.buffer);
    sinkArm(&aofSink, false);
    hooksRemoveFeature(&running);
    aof.state = AOF_IS_OFF;
    aof.write_error = aof.sync_error = 0;
    updateGate();
    blockNotify(BLOCK_OFFSET);
}

status aofSwitchFile(appendFile *take, reason *why) {
    hotCheck(threadIsMain());
    aofFlush(true);
    if (aof.buffer.len && aof.file.fd >= 0)
        return reasonSet(why, ERR_IO, "Error writing to the AOF file: %s",
                         strerror(aof.write_error));
    if (aof.file.fd >= 0) syncInBackground(aof.file.fd, true);
    useFile(take);
    return OK;
}

void aofRewritten(void) {
    hotCheck(threadIsMain());
    if (aof.state == AOF_IS_OFF) return;
    aof.sync_error = 0;
    aof.state = AOF_IS_ON;
    updateGate();
    /* What the base contains is on disk; the rest is in the buffer and the file. */
    aof.synced_ms = clockMonoMs() - SYNC_PERIOD_MS;
    aofFlush(true);
}

void aofDropFile(void) {
    hotCheck(threadIsMain());
    check(aof.state == AOF_IS_WAITING);
    bioDrain(BIO_FSYNC);
    bioComplete();
    appendFileClose(&aof.file);
    dropBuffer();
    aof.write_error = 0;
}

void aofPrintStatus(str *out) {
    strAppendFormat(out, "aof_last_write_status:%s\r\n",
                    aof.write_error || aof.sync_error ? "err" : "ok");
}

void aofPrintSizes(str *out) {
    hotCheck(threadIsMain());
    strAppendFormat(out,
                    "aof_buffer_length:%zu\r\naof_pending_bio_fsync:%zu\r\n"
                    "aof_delayed_fsync:%llu\r\n",
                    aof.buffer.len, bioPending(BIO_FSYNC), (unsigned long long)aof.delayed);
}

void aofResetStats(void) { aof.delayed = 0; }
