/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Appending to the append only file (aof.h). Each turn of the loop collects its changes in one
 * buffer, which is written by one write() before any reply of the turn is sent. While a flush runs,
 * write() may block for as long as the disk takes: then the buffer is written by a thread, one
 * write() at a time, and what tells of its changes is held until it is written (aof_wait.h). So the
 * kernel has what was acknowledged, and the death of the process alone loses nothing. A write that
 * takes STALL_MS ends that, until one takes less again: nobody waits for a disk that does not keep
 * up, until changes of BEHIND_MS or BEHIND_BYTES_MAX are not written. Then writers wait, for
 * SLOWED_MS each until it is STOP_MS. A write that fails is tried again later, with writes refused
 * until then.
 *
 * appendfsync always: the thread for fsync() flushes what is written, and what tells of a change is
 * held until it is on disk. Changes that come meanwhile are written and flushed together, after it.
 *
 * Changes are numbered by propagateCount(). Invariants: synced <= written <= appended; the job of
 * the writing thread has the first of those after `written`, the buffer the rest; the file
 * descriptor of a background fsync stays open until its job has ended, as jobs run in order. */
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
#include "persist/aof_files.h"
#include "persist/aof_position.h"
#include "persist/aof_wait.h"
#include "persist/persist_priv.h"

enum {
    SYNC_PERIOD_MS = 1000,
    SLOW_SYNC_MS = 2000, /* a background fsync that takes longer is reported */
    RETRY_MS = 1000,
    LOG_PERIOD_MS = 30000,
    BUFFER_KEPT = 1 << 20, /* capacity that an empty buffer keeps */
    STALL_MS = 100,
    BEHIND_MS = 2000,
    STOP_MS = 3000,  /* until then writers wait for at most */
    SLOWED_MS = 200, /* this long */
    BEHIND_BYTES_MAX = 64 << 20,
    WANTED_MS = 10000, /* then what waits for a moment without pending changes is waited for */
    SLOW_WRITE_PERIOD_MS = 10000, /* after a slow write() all are left to the thread */
};

/* A write by the thread, which changes `file`, `written` and `error`. The main thread allocates and
 * frees it. */
typedef struct writeJob {
    appendFile file; /* a copy: aof.file does not change meanwhile */
    str bytes;
    uint64_t number; /* of the last change in `bytes` */
    bool in_flush;   /* it began while a flush ran */
    int64_t began_ms, since_ms;
    int64_t written, took_us;
    int error; /* if `written` is negative */
} writeJob;

static struct {
    aofState state;
    appendFile file; /* fd -1: changes are dropped */
    str buffer;
    int64_t since_ms;  /* when the first change in the buffer was left for later; 0: none was */
    writeJob *writing; /* NULL: the thread writes nothing */
    bool is_stalled;   /* the last write by the thread was slow: replies do not wait for it */
    void (*when_written)(void); /* NULL: none is wanted */
    int64_t wanted_ms;          /* since when */
    bool behind,
        holds; /* the last call of updateWaits(): something was not written; output waits */
    int64_t by_thread_until_ms; /* the disk has delayed a write() without a flush */
    int db_id;                  /* database selected last in the file; -1: none yet */
    bool in_turn;               /* the buffer has records since the last write began */
    int64_t time_s;             /* of the last annotation */
    uint64_t appended, written, synced;
    bool syncing;      /* a background fsync of `file` has not ended */
    int closing;       /* files before `file` whose last background fsync has not ended */
    int64_t synced_ms; /* start of the last fsync */
    int64_t sync_took_ms;
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
size_t aofBufferBytes(void) { return aof.buffer.cap + (aof.writing ? aof.writing->bytes.cap : 0); }
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

/* The offset in the file at which the buffer begins. */
static int64_t bufferStart(void) {
    return aof.file.size + (aof.writing ? (int64_t)aof.writing->bytes.len : 0);
}

static void append(const propagated *p) {
    hotCheck(aof.written <= aof.appended);
    aof.appended = propagateCount();
    if (unlikely(aof.file.fd < 0)) return;
    if (unlikely(persistConf.aof_timestamp_enabled)) annotate();
    if (unlikely(!aof.in_turn)) {
        aof.in_turn = true;
        aofPositionTurnBegins(&aof.buffer, bufferStart());
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
    aofPositionTurnEnds(&aof.buffer, bufferStart());
}

const sink aofSink = {.name = "aof", .take = append, .targets = PROPAGATE_AOF};

/* ------------------------------------------------------------------ fsync */

/* True while a flush by this process may block a write. */
static bool flushRuns(void) { return aof.syncing || aof.closing || aofFilesAreChanging(); }

static void setStalled(bool stalled) {
    if (aof.is_stalled == stalled) return;
    aof.is_stalled = stalled;
    aofWaitNoteStall(stalled);
}

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

static void exitAfterSync(int error) {
    logWarning(
        "Can't persist AOF for fsync error when the AOF fsync policy is 'always': %s. Exiting...",
        strerror(error));
    _exit(1); /* without cleaning up what other threads use */
}

static void syncDone(void *arg, int error) {
    hotCheck(((const syncJob *)arg)->number <= aof.written);
    syncJob *job = arg;
    if (job->current) {
        aof.syncing = false;
        aof.sync_took_ms = clockMonoMs() - aof.synced_ms;
        if (aof.sync_took_ms < STALL_MS) setStalled(false);
    } else {
        aof.closing--;
    }
    check(aof.closing >= 0);
    if (job->current && persistConf.appendfsync == FSYNC_ALWAYS) {
        latencyNote("aof-fsync-always", aof.sync_took_ms);
        if (error) exitAfterSync(error);
    }
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
        aofWaitFlushed();
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

/* Before the first rewrite has succeeded nothing counts as durable. */
static bool maySync(void) {
    if (aof.state != AOF_IS_ON) return false;
    return !persistConf.no_appendfsync_on_rewrite || childAlive() == CHILD_NONE;
}

/* On a slow disk those whose replies have just left can join the next flush: else everybody waits
 * for one flush and a half. True if it is too early to begin. */
static bool waitsForOthers(int64_t now_ms) {
    enum { SHARE = 20, WAIT_MAX_MS = 5 };
    hotCheck(aof.sync_took_ms >= 0);
    hotCheck(now_ms > 0);
    int64_t wait_ms = aof.sync_took_ms / SHARE;
    if (likely(!wait_ms)) return false;
    if (wait_ms > WAIT_MAX_MS) wait_ms = WAIT_MAX_MS;
    int64_t rest_ms = aof.synced_ms + aof.sync_took_ms + wait_ms - now_ms;
    if (rest_ms <= 0) return false;
    loopLimitSleep(engineLoop(), rest_ms);
    return true;
}

/* Flushes what is written, if it is time. A flush that begins may block what is being written, so
 * it waits for that, until a period after the last one has ended at most. */
static void trySync(void) {
    hotCheck(aof.synced <= aof.written);
    if (aof.synced == aof.written || aof.syncing || !maySync()) return;
    if (persistConf.appendfsync == FSYNC_NO) return;
    int64_t now_ms = clockMonoMs();
    int64_t due_ms = aof.synced_ms + SYNC_PERIOD_MS;
    if (aof.writing) due_ms += aof.sync_took_ms;
    if (persistConf.appendfsync == FSYNC_EVERYSEC && now_ms < due_ms) return;
    if (persistConf.appendfsync == FSYNC_ALWAYS && waitsForOthers(now_ms)) return;
    aof.synced_ms = now_ms;
    if (aof.written == aof.appended) aofWaitFlushBegins();
    syncInBackground(aof.file.fd, false);
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

/* Removes the first `n` bytes of what is to be written. */
static void consume(str *bytes, size_t n) {
    hotCheck(n <= bytes->len);
    memmove(bytes->ptr, bytes->ptr + n, bytes->len - n);
    strCut(bytes, bytes->len - n);
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

/* `written` of the bytes were written, or none (-1) for the reason `error`. */
static void writeFailed(str *bytes, int64_t written, int error, int64_t size_before) {
    hotCheck(size_before >= 0);
    hotCheck(written < (int64_t)bytes->len);
    if (written >= 0) error = ENOSPC;
    logWriteError(written, bytes->len, error);
    if (written > 0) {
        int cut = appendFileCut(&aof.file, size_before);
        if (cut) {
            logWarning(
                "Could not remove short write from the append-only file. The server may refuse "
                "to load the AOF the next time it starts. ftruncate: %s",
                strerror(cut));
            aof.size += written;
            consume(bytes, (size_t)written);
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

static void writeSucceeded(size_t len, uint64_t number) {
    hotCheck(number >= aof.written);
    if (aof.write_error) {
        logWarning("AOF write error looks solved. The server can write again.");
        aof.write_error = 0;
        updateGate();
    }
    aof.size += (int64_t)len;
    aof.written = number;
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
    hotCheck(!aof.writing);
    if (unlikely(engineFlushDelay() > 0))
        (void)usleep((useconds_t)engineFlushDelay()); /* may be interrupted */
    endTurn();
    int64_t before = aof.file.size, began_us = clockMonoUs();
    size_t len = aof.buffer.len;
    int64_t written = appendFileWrite(&aof.file, strSlice(&aof.buffer));
    int error = errno;
    int64_t took_us = clockMonoUs() - began_us;
    aof.write_us += (uint64_t)took_us;
    noteLatency(took_us / 1000);
    if (unlikely(took_us >= STALL_MS * 1000))
        aof.by_thread_until_ms = clockMonoMs() + SLOW_WRITE_PERIOD_MS;
    if (written != (int64_t)len) {
        writeFailed(&aof.buffer, written, error, before);
        return false;
    }
    writeSucceeded(len, aof.appended);
    aof.since_ms = 0;
    dropBuffer();
    return true;
}

/* ------------------------------------------------------------------ writing by the thread */

static int runWrite(void *arg) {
    hotCheck(((const writeJob *)arg)->file.fd >= 0);
    hotCheck(((const writeJob *)arg)->bytes.len > 0);
    writeJob *job = arg;
    int64_t began_us = clockMonoUs();
    job->written = appendFileWrite(&job->file, strSlice(&job->bytes));
    job->error = job->written < 0 ? errno : 0;
    job->took_us = clockMonoUs() - began_us;
    return 0;
}

/* Stage LOG of the same turn does what follows. */
static void writeDone(void *arg, int error) {
    (void)error; /* it is in the job */
    writeJob *job = arg;
    hotCheck(job == aof.writing);
    int64_t before = aof.file.size, ms = clockMonoMs() - job->began_ms;
    aof.writing = NULL;
    aof.file.size = job->file.size;
    aof.write_us += (uint64_t)job->took_us;
    latencyNote("aof-stall", ms);
    if (ms >= STALL_MS) {
        aof.by_thread_until_ms = clockMonoMs() + SLOW_WRITE_PERIOD_MS;
    } else if (job->in_flush ? flushRuns() : persistConf.appendfsync == FSYNC_NO) {
        setStalled(false); /* the flush does not hold it up */
    }
    if (job->written == (int64_t)job->bytes.len) {
        writeSucceeded(job->bytes.len, job->number);
        if (!aof.buffer.cap && job->bytes.cap <= BUFFER_KEPT) {
            strClear(&job->bytes);
            aof.buffer = job->bytes;
            job->bytes = STR_EMPTY;
        }
    } else {
        writeFailed(&job->bytes, job->written, job->error, before);
        aofPositionShift(job->bytes.len);
        strAppendSlice(&job->bytes, strSlice(&aof.buffer));
        strFree(&aof.buffer);
        aof.buffer = job->bytes;
        aof.since_ms = job->since_ms;
        job->bytes = STR_EMPTY;
    }
    strFree(&job->bytes);
    memFree(job);
}

static void writeByThread(void) {
    hotCheck(!aof.writing);
    endTurn();
    int64_t now_ms = clockMonoMs();
    writeJob *job = memNew(writeJob);
    *job = (writeJob){.file = aof.file,
                      .bytes = aof.buffer,
                      .number = aof.appended,
                      .in_flush = flushRuns(),
                      .began_ms = now_ms,
                      .since_ms = aof.since_ms ? aof.since_ms : now_ms};
    aof.buffer = STR_EMPTY;
    aof.since_ms = 0;
    aof.writing = job;
    bioSubmitTask(BIO_APPEND, runWrite, writeDone, job);
}

static bool threadWrites(void) {
    /* On a disk that is slow all the time there would never be a moment without a write. */
    if (unlikely(aof.when_written != NULL) && clockMonoMs() - aof.wanted_ms > WANTED_MS)
        return false;
    if (unlikely(flushRuns())) return true;
    if (likely(!aof.by_thread_until_ms)) return false;
    if (clockMonoMs() < aof.by_thread_until_ms) return true;
    aof.by_thread_until_ms = 0;
    return false;
}

/* With `always` the changes that come during a fsync wait for its end. */
static void writeIfPossible(bool force) {
    if (aof.writing) return;
    if (!aof.buffer.len) {
        aof.written = aof.appended;
        return;
    }
    if (!force && aof.write_error && clockMonoMs() < aof.retry_ms) return;
    if (aof.syncing && persistConf.appendfsync == FSYNC_ALWAYS) return;
    if (unlikely(threadWrites())) {
        writeByThread();
    } else {
        (void)writeBuffer(); /* a failure was noted */
    }
}

/* ------------------------------------------------------------------ what waits */

static bool waitsForSync(void) { return persistConf.appendfsync == FSYNC_ALWAYS && maySync(); }

/* A write follows while a background fsync runs, which may block it. */
static void noteSlowSync(void) {
    hotCheck(aof.syncing);
    if (aof.sync_is_slow || clockMonoMs() - aof.synced_ms < SLOW_SYNC_MS) return;
    aof.sync_is_slow = true;
    aof.delayed++;
    logNotice("Asynchronous AOF fsync is taking too long (disk is busy?). Writing the AOF buffer "
              "without waiting for fsync to complete, this may slow down the server.");
}

/* Notices that the thread does not get ahead. */
static void checkBehind(void) {
    hotCheck(aof.written <= aof.appended);
    size_t bytes = aof.buffer.len;
    int64_t now_ms = clockMonoMs(), since_ms = aof.since_ms;
    if (aof.buffer.len && !since_ms) since_ms = aof.since_ms = now_ms;
    if (aof.writing) {
        bytes += aof.writing->bytes.len;
        since_ms = aof.writing->since_ms;
        int64_t rest_ms = aof.writing->began_ms + STALL_MS - now_ms;
        if (rest_ms <= 0 && !waitsForSync()) setStalled(true);
        if (rest_ms > 0) loopLimitSleep(engineLoop(), rest_ms);
    }
    int64_t age_ms = since_ms ? now_ms - since_ms : 0;
    bool waits = age_ms >= BEHIND_MS && !waitsForSync() && !aof.write_error;
    if (waits && age_ms < STOP_MS && aofWaitWritersMs(now_ms) >= SLOWED_MS) waits = false;
    if (aofWaitHoldWriters(waits || bytes > BEHIND_BYTES_MAX, bytes, age_ms) && !aof.sync_is_slow) {
        aof.sync_is_slow = true;
        aof.delayed++;
    }
}

static void updateWaits(void) {
    bool behind = aof.writing || aof.buffer.len;
    if (unlikely(behind || aof.behind)) checkBehind();
    aof.behind = behind;
    bool sync = waitsForSync();
    bool hold = sync || (aof.is_stalled && !aofWaitIsStrict() ? false : aof.writing || flushRuns());
    if (unlikely(hold || aof.holds)) aofWaitHoldOutput(hold, sync ? aof.synced : aof.written);
    aof.holds = hold;
}

void aofFlush(bool force) {
    hotCheck(threadIsMain());
    if (aof.file.fd < 0) return;
    if (aof.buffer.len && aof.syncing && persistConf.appendfsync == FSYNC_EVERYSEC) noteSlowSync();
    writeIfPossible(force);
    if (!aof.write_error) trySync();
    updateWaits();
}

/* Waits for the threads. */
static void drain(void) {
    while (aof.writing || aof.syncing || aof.closing) {
        bioDrain(BIO_APPEND);
        bioDrain(BIO_FSYNC);
        bioComplete();
    }
}

status aofFlushAll(reason *why) {
    hotCheck(threadIsMain());
    if (aof.file.fd < 0) return OK;
    drain();
    if (aof.buffer.len && !writeBuffer())
        return reasonSet(why, ERR_IO, "Error writing to the AOF file: %s",
                         strerror(aof.write_error));
    int error = appendFileSync(aof.file.fd);
    if (!error) error = aof.sync_error;
    if (error) return reasonSet(why, ERR_IO, "Fail to fsync the AOF file: %s", strerror(error));
    aof.written = aof.synced = aof.appended;
    blockNotify(BLOCK_OFFSET);
    updateWaits();
    return OK;
}

bool aofIsWritten(void) { return aof.file.fd < 0 || (!aof.writing && !aof.buffer.len); }

void aofTick(int64_t budget_us) {
    (void)budget_us; /* nothing to limit */
    if (aof.state == AOF_IS_OFF) return;
    if (aof.file.fd >= 0 && !aof.in_turn) aofPositionTick(&aof.buffer, bufferStart());
    aofFlush(false);
}

void aofNotePosition(void) {
    hotCheck(threadIsMain());
    if (aof.state != AOF_IS_ON || aof.file.fd < 0) return;
    endTurn();
    aofPositionEnd(&aof.buffer, bufferStart());
    aof.db_id = -1; /* what follows, if the shutdown is refused, begins with SELECT */
}

bool aofIsBehind(void) {
    if (aof.state == AOF_IS_OFF) return false;
    return aof.synced != aof.appended || (aof.file.fd >= 0 && aofPositionIsBehind());
}

/* ------------------------------------------------------------------ on and off */

/* In a nested turn a command is running: there may be changes that are not appended yet. */
static void flushTurn(void) {
    aofFlush(false);
    if (likely(!aof.when_written) || engineHot.current || !aofIsWritten()) return;
    void (*proc)(void) = aof.when_written;
    aof.when_written = NULL;
    proc();
}

void aofWhenWritten(void (*proc)(void)) {
    hotCheck(threadIsMain());
    aof.when_written = proc;
    aof.wanted_ms = clockMonoMs();
}

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
    aof.is_stalled = false;
    updateGate();
    updateWaits();
    blockNotify(BLOCK_OFFSET);
}

status aofSwitchFile(appendFile *take, reason *why) {
    hotCheck(threadIsMain());
    if (!aofIsWritten()) drain();
    if (aof.file.fd >= 0 && aof.buffer.len && !writeBuffer())
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
    drain();
    appendFileClose(&aof.file);
    dropBuffer();
    aof.since_ms = 0;
    aof.write_error = 0;
    aof.written = aof.appended;
    updateWaits();
}

void aofPrintStatus(str *out) {
    strAppendFormat(out, "aof_last_write_status:%s\r\n",
                    aof.write_error || aof.sync_error ? "err" : "ok");
}

void aofPrintSizes(str *out) {
    hotCheck(threadIsMain());
    strAppendField(out, "aof_buffer_length",
                   aof.buffer.len + (aof.writing ? aof.writing->bytes.len : 0));
    strAppendField(out, "aof_pending_bio_fsync", bioPending(BIO_FSYNC));
    strAppendField(out, "aof_delayed_fsync", aof.delayed);
}

void aofResetStats(void) { aof.delayed = 0; }
