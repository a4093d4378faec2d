/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Saving in slices (inline_save.h). In stage FREE, after the replies of the turn were written, the walk gets a share of
 * the time that has passed, in steps of some 200 keys. It stops while the stream has no room; the stream wakes the loop.
 *
 * Invariants: `runs` is set if and only if the current child is ours; `stream` exists while it is. A killed job leaves
 * two things behind, for which the stage remains: the walk, which removes its marks, and the stream, until its worker has
 * stopped (`ending`). No other job begins before both are over. */
#include "persist/inline_save.h"

#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/base.h"
#include "engine/hot.h"
#include "engine/keyspace.h"
#include "engine/latency.h"
#include "engine/lifecycle.h"
#include "engine/pause.h"
#include "persist/persist_priv.h"
#include "persist/snapshot_stream.h"
#include "store/saving.h"
#include "store/store.h"
#include "store/type_hash.h"
#include "store/type_list.h"
#include "store/type_stream.h"

enum {
    STEP_BUCKETS = 32,
    KEY_PAYS_BUCKETS = 2, /* of the walk, for each new key: a growing dataset gains 7 % at most */
    BUCKET_BYTES =
        32, /* put aside beyond the fixed memory, for which the walk visits a bucket ... */
    ASIDE_BUCKETS_MAX = 1024, /* ... but not more of them for one turn: some 0.3 ms */
    /* Larger values that are not written in parts take more than a millisecond: left to a child in mode auto. */
    VALUE_ELEMENTS_MAX = 8192, /* written as commands */
    VALUE_BYTES_MAX = 1 << 20,
    COPIED_MAX = 10000, /* nodes of a list, or blocks of a stream's groups */
    VALUE_SAMPLES = 5,  /* elements from which the bytes of a value are estimated */
    SHARE_PERCENT = 30, /* of the time, for the walk */
    SHARE_US_MIN = 20,  /* in one turn */
    SHARE_US_MAX = 250,
    OWED_US_MAX = 500, /* for buckets that are owed; more after a longer turn */
    SYNC_BYTES = 4 * 1024 * 1024,
    REPORT_KEYS = 1024,
    PAUSE_MS = 1000, /* prolonged while it is needed */
};
/* Larger tables are written in parts. */
#ifdef HOSTILE_BUILD
enum { WHOLE_ELEMENTS_MAX = 8, WHOLE_BYTES_MAX = 1 << 10 };
#else
enum { WHOLE_ELEMENTS_MAX = 256, WHOLE_BYTES_MAX = 1 << 16 };
#endif

/* A database as of the start. */
typedef struct savedDb {
    uint64_t keys, volatile_keys;
    bool announced; /* its size was written */
} savedDb;

/* What a job has cost. */
typedef struct jobCosts {
    int64_t main_us, longest_us; /* of the walk: in all turns; in the longest one */
    uint64_t early;              /* keys written before a change */
    uint64_t divided;            /* values written in parts */
} jobCosts;

static struct {
    bool runs;
    inlineSave save; /* its texts are owned */
    snapshotStream *stream, *ending;
    char *unwanted; /* a file of `ending` to be removed */
    rdbRecords records;
    savedDb *dbs;
    int db_count;
    int db_id;         /* selected in the stream; -1: none */
    bool walks, taken; /* taken: the receivers have everything */
    const char
        *roomy;    /* the buffer of the block that had room when it was tested; NULL: test again */
    status failed; /* of a key */
    reason failed_why;
    bool in_value; /* which is being written in parts: other keys go to the side writer */
    rdbType value_type;
    rdbStreamRest stream_rest;
    uint64_t elements; /* written so */
    uint64_t keys_done, keys_total;
    int64_t left_us;   /* when the stage was left last */
    int64_t resume_us; /* rdb-key-save-delay: no step before this time */
    bool has_stage, is_pressed, pauses;
    size_t excess_peak;
    uint64_t count;
    uint64_t owed;       /* buckets that the walk has to visit */
    uint64_t added_paid; /* new keys for which it has */
    size_t excess_paid;  /* bytes likewise */
    jobCosts costs;
    bool found_large; /* a value that is left to a child */
    uint64_t fallbacks;
    /* The value that was found last. */
    str large_key;
    int large_db; /* -1: none */
} inl = {.db_id = -1, .large_db = -1};

static char *copyOf(const char *text) { return text ? memDup(text, strlen(text)) : NULL; }

static void endWalk(void) {
    inl.walks = false;
    inl.roomy = NULL;
}

/* ------------------------------------------------------------------ large values */

static bool isLarger(const robj *o, size_t elements_max, size_t bytes_max) {
    const typeOps *ops = typeOf(o);
    if (ops->length(o) > elements_max) return true;
    return ops->value_memory(objectPointer(o), VALUE_SAMPLES) > bytes_max;
}

/* True for values that take too long: written whole as commands, or those with too much to be copied at their first
 * change. */
static bool isTooLarge(const robj *o, bool as_commands) {
    if (likely(objectForm(o) != FORM_POINTER) || objectType(o) == TYPE_STRING) return false;
    if (as_commands) return isLarger(o, VALUE_ELEMENTS_MAX, VALUE_BYTES_MAX);
    if (objectType(o) == TYPE_STREAM) return streamGroupsEffort(streamOf(o)) > COPIED_MAX;
    if (objectType(o) != TYPE_LIST) return false;
    return quicklistNodes(listQuicklist(o)) > COPIED_MAX;
}

/* True if the value is written in parts. Commands are written whole, and so is what the format has no type for: that
 * fails. */
static bool divides(void *arg, const robj *o) {
    (void)arg; /* there is one job */
    if (!inl.walks || inl.save.job.as_commands) return false;
    size_t elements_max = typeOf(o)->elements ? WHOLE_ELEMENTS_MAX : SIZE_MAX;
    if (likely(!isLarger(o, elements_max, WHOLE_BYTES_MAX))) return false;
    if (persistConf.snapshot_mode == SNAPSHOT_AUTO && isTooLarge(o, false)) return false;
    bool timed = objectType(o) == TYPE_HASH && hashTimedCount(o) > 0;
    return rdbTypeInVersion(rdbTypeInParts(objectType(o), timed), inl.records.version);
}

/* True if the dataset still has the value that was found last. */
static bool largeValueExists(bool as_commands) {
    if (inl.large_db < 0) return false;
    slice key = strSlice(&inl.large_key);
    const robj *o = dbPeek(storeDb(inl.large_db), key, storeHash(key));
    if (o && isTooLarge(o, true)) return isTooLarge(o, as_commands);
    inl.large_db = -1;
    return false;
}

/* True if the job ends because of this value: found by the stage. */
static bool leaveToChild(int db_id, const robj *o) {
    if (persistConf.snapshot_mode != SNAPSHOT_AUTO) return false;
    if (likely(!isTooLarge(o, inl.save.job.as_commands))) return false;
    inl.large_db = db_id;
    strClear(&inl.large_key);
    strAppendSlice(&inl.large_key, objectKey(o));
    inl.found_large = true;
    endWalk();
    return true;
}

/* ------------------------------------------------------------------ records */

static void selectDb(int db_id) {
    if (db_id == inl.db_id) return;
    savedDb *d = &inl.dbs[db_id];
    if (d->announced) {
        rdbRecordsSelect(&inl.records, db_id);
    } else {
        rdbRecordsDb(&inl.records, db_id, d->keys, d->volatile_keys);
    }
    d->announced = true;
    inl.db_id = db_id;
}

/* The stage will find the failure. */
static void noteFailure(status st, const reason *why) {
    if (likely(st == OK) || inl.failed != OK) return;
    inl.failed = st;
    inl.failed_why = *why;
    endWalk();
}

static void countKey(void) {
    if (++inl.keys_done % REPORT_KEYS == 0)
        childNoteProgressHere(inl.keys_done, inl.keys_total,
                              snapshotStreamCount(inl.stream).memory);
}

static void writeKey(int db_id, const robj *o) {
    selectDb(db_id);
    status st = rdbRecordsKey(&inl.records, db_id, o);
    noteFailure(st, &inl.records.writer->why);
    countKey();
}

/* ------------------------------------------------------------------ values in parts */

static void beginValue(void *arg, const savedValue *value) {
    (void)arg; /* there is one job */
    selectDb(value->db_id);
    rdbWriter *w = snapshotStreamWriter(inl.stream);
    inl.value_type = rdbTypeInParts(objectType(value->head), value->is_timed);
    rdbFileKeyInParts(w, value->head, inl.value_type, value->count, inl.records.access);
    inl.records.writer = snapshotStreamSide(inl.stream);
    inl.stream_rest = (rdbStreamRest){0};
    inl.in_value = true;
}

static void writeElement(void *arg, const valueElement *element) {
    (void)arg; /* there is one job */
    rdbWriteElement(snapshotStreamWriter(inl.stream), inl.value_type, element);
    inl.elements++;
}

static void writeNode(void *arg, const quicklistNodeView *node) {
    (void)arg; /* there is one job */
    rdbWriteNode(snapshotStreamWriter(inl.stream), node);
    inl.elements++;
}

static void writeStreamNode(void *arg, streamId key, const streamNode *node) {
    (void)arg; /* there is one job */
    rdbWriteStreamNode(snapshotStreamWriter(inl.stream), key, node);
    inl.elements++;
}

static bool writeStreamRest(void *arg, const stream *rest, uint64_t count) {
    (void)arg; /* there is one job */
    inl.stream_rest.from = rest;
    inl.elements += count;
    return rdbWriteStreamRest(snapshotStreamWriter(inl.stream), &inl.stream_rest, count);
}

static void endValue(void *arg) {
    (void)arg; /* there is one job */
    rdbWriter *w = snapshotStreamWriter(inl.stream);
    noteFailure(rdbWriterStatus(w), &w->why);
    noteFailure(rdbWriterStatus(inl.records.writer), &inl.records.writer->why);
    snapshotStreamJoinSide(inl.stream);
    inl.records.writer = w;
    inl.in_value = false;
    inl.costs.divided++;
    countKey();
}

static bool offer(void *arg, int db_id, const robj *o) {
    (void)arg; /* there is one job */
    const char *block = inl.records.writer->buffer;
    /* Small values fit a block that had room before. */
    if (unlikely(block != inl.roomy) || unlikely(objectForm(o) == FORM_POINTER)) {
        inl.roomy = NULL;
        if (!inl.walks || leaveToChild(db_id, o) || snapshotStreamRoom(inl.stream) == 0)
            return false;
        inl.roomy = block;
    }
    writeKey(db_id, o);
    return true;
}

/* ------------------------------------------------------------------ limits */

static void setPaused(bool on) {
    if (on) {
        pauseBegin(PAUSE_FOR_SNAPSHOT, PAUSE_WRITES, engineHot.now_ms + PAUSE_MS);
    } else if (inl.pauses) {
        pauseEnd(PAUSE_FOR_SNAPSHOT);
    }
    inl.pauses = on;
}

static size_t excessNow(void) { return snapshotStreamExcess(inl.stream) + storeSavingBytes(); }

static bool waitsBeyond(size_t excess) {
    size_t limit = (size_t)persistConf.snapshot_excess_limit;
    return persistConf.snapshot_excess_action == EXCESS_WAIT &&
           excess > (inl.pauses ? limit / 2 : limit);
}

/* Within a batch of requests, too, the next one waits. */
static void limit(void *arg) {
    (void)arg; /* there is one job */
    if (!inl.pauses && unlikely(waitsBeyond(excessNow()))) setPaused(true);
}

static void take(void *arg, int db_id, const robj *o) {
    if (!inl.walks || leaveToChild(db_id, o)) return;
    inl.costs.early++;
    writeKey(db_id, o);
    limit(arg);
}

static const storeSaver saver = {.offer = offer,
                                 .take = take,
                                 .limit = limit,
                                 .divides = divides,
                                 .begin = beginValue,
                                 .element = writeElement,
                                 .node = writeNode,
                                 .stream_node = writeStreamNode,
                                 .stream_rest = writeStreamRest,
                                 .end = endValue};

/* Acts on what was put aside beyond the fixed memory. False: the job is to be given up. */
static bool checkExcess(reason *why) {
    size_t excess = excessNow();
    size_t limit = (size_t)persistConf.snapshot_excess_limit;
    if (excess > inl.excess_peak) inl.excess_peak = excess;
    inl.is_pressed = excess > limit / 2;
    bool waits = waitsBeyond(excess);
    if (waits || inl.pauses) setPaused(waits);
    /* What does not wait for pauses, such as the stream of a primary, gets as much again. */
    if (excess <= limit || (waits && excess / 2 <= limit)) return true;
    (void)reasonSet(why, ERR_LIMIT,
                    "changes are made faster than the snapshot is written, and %llu bytes "
                    "of old values exceed snapshot-excess-limit",
                    (unsigned long long)excess);
    return false;
}

/* ------------------------------------------------------------------ end */

/* Frees the stream of a job that has ended once its worker has stopped. */
static void pollEnding(void) {
    if (!inl.ending) return;
    if (snapshotStreamPoll(inl.ending, NULL) == SNAPSHOT_STREAM_RUNS) return;
    snapshotStreamFree(inl.ending);
    inl.ending = NULL;
    /* It may have been complete before it was cancelled. */
    if (inl.unwanted) (void)unlink(inl.unwanted);
    memFree(inl.unwanted);
    inl.unwanted = NULL;
}

/* The job is over; the stream may not be. */
static void forget(bool killed) {
    snapshotStreamCancel(inl.stream); /* no effect if it has ended */
    inl.ending = inl.stream;
    inl.stream = NULL;
    if (killed && inl.save.kind == CHILD_AOF_REWRITE) inl.unwanted = copyOf(inl.save.job.name);
    pollEnding();
    storeSavingAbandon();
    setPaused(false);
    endWalk();
    inl.runs = inl.is_pressed = false;
    memFree(inl.dbs);
    inl.dbs = NULL;
    memFree((char *)(uintptr_t)inl.save.job.temporary); /* copies */
    memFree((char *)(uintptr_t)inl.save.job.name);
    inl.save.job.temporary = inl.save.job.name = NULL;
}

static void reportEnd(void) {
    snapshotStreamNumbers stream = snapshotStreamCount(inl.stream);
    childNoteProgressHere(inl.keys_done, inl.keys_total, stream.peak);
    logNotice(
        "Snapshot without a fork: %llu keys, %llu of them before a change, %llu in parts, %.1f MB; %.1f ms of "
        "the main thread, at most %.3f ms in one turn; %.1f MB of memory",
        (unsigned long long)inl.keys_done, (unsigned long long)inl.costs.early,
        (unsigned long long)inl.costs.divided, (double)stream.written / 1048576,
        (double)inl.costs.main_us / 1e3, (double)inl.costs.longest_us / 1e3,
        (double)stream.peak / 1048576);
}

static void finish(bool succeeded, const char *why) {
    bool is_base = inl.save.kind == CHILD_AOF_REWRITE;
    if (succeeded && is_base) {
        logNotice("Successfully created the temporary AOF base file %s", inl.save.job.name);
    } else if (succeeded && inl.save.job.name) {
        logNotice("DB saved on disk");
    } else if (!succeeded && is_base) {
        logWarning("Write error writing append only file on disk: %s", why);
    } else if (!succeeded && inl.save.job.name) {
        logWarning("Write error while saving DB to the disk(rdbSaveRio): %s", why);
    } else if (!succeeded) {
        logWarning("RDB transfer to replicas failed: %s", why);
    }
    reportEnd();
    forget(false);
    childEndHere(succeeded ? 0 : 1);
}

static void finishForChild(void) {
    logNotice(
        "A value is too large to be saved without a fork in mode auto: starting again with a fork");
    inl.fallbacks++;
    reportEnd();
    forget(true);
    childEndHere(INLINE_SAVE_NEEDS_FORK);
}

/* Called by childKill(). */
static void stop(void) { forget(true); }

void inlineSaveWait(void) {
    enum { PATIENCE_MS = 2000 };
    for (int i = 0; i < PATIENCE_MS && inl.ending; i++) {
        pollEnding();
        if (inl.ending) (void)usleep(1000); /* may be interrupted */
    }
}

/* ------------------------------------------------------------------ the stage */

static void pollStream(void) {
    reason why = {{0}};
    if (inl.found_large) {
        finishForChild();
        return;
    }
    switch (snapshotStreamPoll(inl.stream, &why)) {
    case SNAPSHOT_STREAM_RUNS: break;
    case SNAPSHOT_STREAM_DONE:
        if (inl.taken || !inl.save.relays) {
            finish(true, NULL);
            return;
        }
        break;
    default: finish(false, why.text); return;
    }
    if (inl.failed != OK) {
        finish(false, inl.failed_why.text);
    } else if (!checkExcess(&why)) {
        finish(false, why.text);
    }
}

/* The microseconds that the walk may take in this turn. */
static int64_t share(int64_t now_us) {
    int64_t us = (now_us - inl.left_us) * SHARE_PERCENT / (100 - SHARE_PERCENT);
    if (us < SHARE_US_MIN) return SHARE_US_MIN;
    return us > SHARE_US_MAX ? SHARE_US_MAX : us;
}

/* Adds the buckets that the walk has to visit, because keys were added or put aside. */
static void countOwed(void) {
    uint64_t added = storeSavingAdded();
    size_t excess = excessNow();
    inl.owed += (added - inl.added_paid) * KEY_PAYS_BUCKETS;
    inl.added_paid = added;
    /* Without an open value the receivers are what is slow. */
    if (excess <= inl.excess_paid || !inl.in_value) {
        inl.excess_paid = excess;
        return;
    }
    uint64_t aside = sizeMin((excess - inl.excess_paid) / BUCKET_BYTES, ASIDE_BUCKETS_MAX);
    inl.excess_paid += aside * BUCKET_BYTES; /* the rest in the next turns */
    inl.owed += aside;
}

/* The microseconds that the walk may take in this turn for buckets that are owed: a turn that adds keys for long is prolonged
 * in proportion, so that the walk ends in any case. */
static int64_t shareOwed(int64_t now_us) {
    int64_t us = (now_us - inl.left_us) / 2;
    return us > OWED_US_MAX ? us : OWED_US_MAX;
}

static void walk(int64_t now_us) {
    if (now_us < inl.resume_us) {
        loopLimitSleep(engineLoop(), (inl.resume_us - now_us) / 1000 + 1);
        return;
    }
    bool slowly = persistConf.rdb_key_save_delay > 0;
    int64_t free_us = share(now_us), owed_us = shareOwed(now_us), spent_us;
    uint64_t before = inl.keys_done + inl.elements;
    bool more, has_room;
    if (!slowly) countOwed();
    do {
        has_room = snapshotStreamRoom(inl.stream) > 0;
        more = !has_room || storeSavingStep(slowly ? 1 : STEP_BUCKETS);
        inl.owed -= sizeMin(inl.owed, STEP_BUCKETS);
        spent_us = clockMonoUs() - now_us;
    } while (more && has_room && inl.walks && !slowly && spent_us < (inl.owed ? owed_us : free_us));
    inl.costs.main_us += spent_us;
    if (spent_us > inl.costs.longest_us) inl.costs.longest_us = spent_us;
    latencyNote("snapshot-slice", spent_us / 1000);
    if (persistConf.rdb_key_save_delay > 0)
        inl.resume_us = now_us + (int64_t)(inl.keys_done + inl.elements - before) *
                                     persistConf.rdb_key_save_delay;
    if (!more && inl.walks) {
        endWalk();
        snapshotStreamEnd(inl.stream);
    } else if (has_room) {
        loopLimitSleep(engineLoop(), 0);
    }
}

/* After a job was given up: the walk removes its marks. */
static void clean(int64_t now_us) {
    int64_t end_us = now_us + share(now_us);
    while (storeSavingStep(STEP_BUCKETS) && clockMonoUs() < end_us) {}
    loopLimitSleep(engineLoop(), 0);
}

static void runStage(void);
static const stageJob stages[] = {{STAGE_FREE, runStage}, {0, NULL}};
static const feature slices = {.name = "inline save", .stages = stages};

/* In stage FREE. A nested turn interrupts a command: the walk waits for its end. */
static void runStage(void) {
    int64_t now_us = clockMonoUs();
    bool is_outer = loopDepth(engineLoop()) <= 1;
    if (inl.runs && inl.walks && is_outer) walk(now_us);
    if (inl.runs) pollStream();
    pollEnding();
    if (!inl.runs && storeSavingRuns() && is_outer) clean(now_us);
    if (!inl.runs && !inl.ending && !storeSavingRuns() && is_outer) {
        hooksRemoveFeature(&slices);
        inl.has_stage = false;
    }
    inl.left_us = clockMonoUs();
}

/* ------------------------------------------------------------------ start */

bool inlineSaveIsWanted(bool as_commands) {
    static const uint64_t small = 64 * 1024 * 1024; /* a fork of less takes 1 ms */
    if (persistConf.snapshot_mode == SNAPSHOT_FORK) return false;
    if (persistConf.snapshot_mode == SNAPSHOT_AUTO && memUsed() < small) return false;
    if (inl.ending || storeSavingRuns()) {
        logNotice("The last snapshot was stopped and is not cleaned up yet: forking instead");
        return false;
    }
    if (persistConf.snapshot_mode == SNAPSHOT_INLINE || !largeValueExists(as_commands)) return true;
    logNotice("The dataset has a value that is too large to be saved without a fork: forking");
    return false;
}

void inlineSaveTemporary(char *to, size_t cap) {
    snprintf(to, cap, "temp-%d.%llu.rdb", (int)getpid(), (unsigned long long)++inl.count);
}

static void noteDatabases(void) {
    inl.db_count = storeDbCount();
    inl.dbs = memNewArray(savedDb, (size_t)inl.db_count);
    inl.db_id = -1;
    inl.keys_done = inl.keys_total = 0;
    for (int id = 0; id < inl.db_count; id++) {
        const db *d = storeDb(id);
        inl.dbs[id] = (savedDb){.keys = dbSize(d), .volatile_keys = dbVolatileCount(d)};
        inl.keys_total += inl.dbs[id].keys;
    }
}

/* Builds with checks: files have a digest of the dataset, which a load compares with what it has loaded. */
static void writeDigest(void) {
#ifdef HOT_CHECKS
    if (inl.save.job.as_commands || inl.save.job.content.no_keys) return;
    digest all;
    char hex[DIGEST_HEX];
    storeDigestWithTimes(keyspaceMain(), &all);
    digestPrint(&all, hex);
    rdbFileAux(inl.records.writer, RDB_DIGEST_FIELD, sliceMake(hex, sizeof(hex)));
#endif
}

status inlineSaveStart(const inlineSave *save, reason *why) {
    if (childAlive() != CHILD_NONE) return reasonSet(why, ERR_EXISTS, "another child is running");
    check(!inl.ending);
    const snapshotStreamOptions options = {.temporary = save->job.temporary,
                                           .name = save->job.name,
                                           .sync_bytes = save->job.syncs ? SYNC_BYTES : 0,
                                           .relays = save->relays,
                                           .is_rdb = !save->job.as_commands,
                                           .checksum = rdbSaveHasChecksum(&save->job),
                                           .compress =
                                               persistConf.rdbcompression && !save->job.as_commands,
                                           .cpus = save->cpus,
                                           .loop = engineLoop()};
    snapshotStream *stream;
    status st = snapshotStreamNew(&options, &stream, why);
    if (st != OK) return st;
    st = childBeginHere(save->kind, stop, why);
    check(st == OK); /* there is no child */
    inl.save = *save;
    inl.save.job.temporary = copyOf(save->job.temporary);
    inl.save.job.name = copyOf(save->job.name);
    inl.stream = stream;
    noteDatabases();
    inl.taken = false;
    inl.failed = OK;
    inl.in_value = false;
    inl.elements = 0;
    inl.resume_us = 0;
    inl.excess_peak = 0;
    inl.owed = 0;
    inl.added_paid = 0;
    inl.excess_paid = 0;
    inl.costs = (jobCosts){0};
    inl.found_large = false;
    rdbRecordsBegin(&inl.records, snapshotStreamWriter(stream), &inl.save.job);
    writeDigest();
    inl.runs = true;
    inl.walks = !save->job.content.no_keys;
    if (inl.walks) {
        storeSavingBegin(&saver);
    } else {
        snapshotStreamEnd(stream);
    }
    inl.left_us = clockMonoUs();
    if (!inl.has_stage) hooksAddFeature(&slices);
    inl.has_stage = true;
    loopLimitSleep(engineLoop(), 0);
    return OK;
}

/* ------------------------------------------------------------------ for others */

blob *inlineSaveTake(void) {
    if (!inl.runs || !inl.save.relays) return NULL;
    bool done = snapshotStreamPoll(inl.stream, NULL) == SNAPSHOT_STREAM_DONE;
    blob *bytes = snapshotStreamTake(inl.stream);
    if (!bytes && done) inl.taken = true;
    return bytes;
}

bool inlineSaveIsPressed(void) { return inl.is_pressed; }

void inlineSavePrintInfo(str *out) {
    size_t memory = inl.stream ? snapshotStreamCount(inl.stream).memory : 0;
    strAppendFormat(out,
                    "snapshot_inline_in_progress:%d\r\nsnapshot_inline_memory:%llu\r\n"
                    "snapshot_inline_excess_peak:%llu\r\nsnapshot_inline_cleanup:%d\r\n"
                    "snapshot_inline_early_keys:%llu\r\nsnapshot_inline_divided_values:%llu\r\n"
                    "snapshot_inline_main_us:%lld\r\n"
                    "snapshot_inline_longest_us:%lld\r\nsnapshot_inline_fallbacks:%llu\r\n",
                    inl.runs, (unsigned long long)memory, (unsigned long long)inl.excess_peak,
                    !inl.runs && inl.has_stage, (unsigned long long)inl.costs.early,
                    (unsigned long long)inl.costs.divided, (long long)inl.costs.main_us,
                    (long long)inl.costs.longest_us, (unsigned long long)inl.fallbacks);
}
