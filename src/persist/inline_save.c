/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Saving in slices (inline_save.h): start, end and the stage. In stage FREE, after the replies of
 * the turn were written, the walk gets a share of the time that has passed (inline_save_walk.c).
 *
 * Invariants: inline_save_priv.h. A killed job leaves two things behind, for which the stage
 * remains: the walk, which removes its marks, and the stream, until its worker has stopped
 * (`ending`). No other job begins before both are over. */
#include "persist/inline_save.h"

#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/base.h"
#include "engine/hooks.h"
#include "engine/keyspace.h"
#include "engine/lifecycle.h"
#include "persist/inline_save_priv.h"
#include "persist/persist_priv.h"
#include "store/store.h"
#include "store/type_hash.h"
#include "store/type_module.h"

enum { SYNC_BYTES = 4 * 1024 * 1024 };

inlineSaver inlineSaving = {.job.db_id = -1, .large.db_id = -1};

static char *copyOf(const char *text) { return text ? memDup(text, strlen(text)) : NULL; }

void inlineJobEndWalk(inlineJob *job) {
    job->walks = false;
    job->roomy_block = NULL;
}

/* ------------------------------------------------------------------ end */

/* Frees the stream of a job that has ended once its worker has stopped. */
static void pollEnding(void) {
    if (!inlineSaving.ending) return;
    if (snapshotStreamPoll(inlineSaving.ending, NULL) == SNAPSHOT_STREAM_RUNS) return;
    snapshotStreamFree(inlineSaving.ending);
    inlineSaving.ending = NULL;
    /* It may have been complete before it was cancelled. */
    if (inlineSaving.unwanted) (void)unlink(inlineSaving.unwanted);
    memFree(inlineSaving.unwanted);
    inlineSaving.unwanted = NULL;
}

/* The job is over; the stream may not be. */
static void forget(bool killed) {
    inlineJob *job = &inlineSaving.job;
    check(inlineSaving.runs);
    check(!inlineSaving.ending);
    snapshotStreamCancel(job->stream); /* no effect if it has ended */
    inlineSaving.ending = job->stream;
    job->stream = NULL;
    job->in_value = false;
    if (killed && job->save.kind == CHILD_AOF_REWRITE)
        inlineSaving.unwanted = copyOf(job->save.job.name);
    pollEnding();
    storeSavingAbandon();
    inlineJobPause(job, false);
    inlineJobEndWalk(job);
    inlineSaving.runs = job->is_pressed = false;
    memFree(job->dbs);
    job->dbs = NULL;
    memFree((char *)(uintptr_t)job->save.job.temporary); /* copies */
    memFree((char *)(uintptr_t)job->save.job.name);
    job->save.job.temporary = job->save.job.name = NULL;
}

static void reportEnd(void) {
    check(inlineSaving.runs);
    check(inlineSaving.job.stream);
    check(inlineSaving.job.costs.early <= inlineSaving.job.keys_done);
    check(inlineSaving.job.costs.divided <= inlineSaving.job.keys_done);
    const inlineJob *job = &inlineSaving.job;
    snapshotStreamNumbers stream = snapshotStreamCount(job->stream);
    childNoteProgressHere(job->keys_done, job->keys_total, stream.peak);
    logNotice(
        "Snapshot without a fork: %llu keys, %llu of them before a change, %llu in parts, %.1f MB; %.1f ms of "
        "the main thread, at most %.3f ms in one turn; %.1f MB of memory",
        (unsigned long long)job->keys_done, (unsigned long long)job->costs.early,
        (unsigned long long)job->costs.divided, (double)stream.written / 1048576,
        (double)job->costs.main_us / 1e3, (double)job->costs.longest_us / 1e3,
        (double)stream.peak / 1048576);
}

static void finish(bool succeeded, const char *why) {
    check(inlineSaving.runs);
    check(succeeded || why);
    const inlineJob *job = &inlineSaving.job;
    bool is_base = job->save.kind == CHILD_AOF_REWRITE;
    if (succeeded && is_base) {
        logNotice("Successfully created the temporary AOF base file %s", job->save.job.name);
    } else if (succeeded && job->save.job.name) {
        logNotice("DB saved on disk");
    } else if (!succeeded && is_base) {
        logWarning("Write error writing append only file on disk: %s", why);
    } else if (!succeeded && job->save.job.name) {
        logWarning("Write error while saving DB to the disk(rdbSaveRio): %s", why);
    } else if (!succeeded) {
        logWarning("RDB transfer to replicas failed: %s", why);
    }
    reportEnd();
    forget(false);
    childEndHere(succeeded ? 0 : 1);
}

static void finishForChild(void) {
    check(inlineSaving.job.found_large);
    logNotice(
        "A value is too large to be saved without a fork in mode auto: starting again with a fork");
    inlineSaving.fallbacks++;
    reportEnd();
    forget(true);
    childEndHere(INLINE_SAVE_NEEDS_FORK);
}

/* Called by childKill(). */
static void stop(void) { forget(true); }

void inlineSaveWait(void) {
    hotCheck(threadIsMain());
    enum { PATIENCE_MS = 2000 };
    for (int i = 0; i < PATIENCE_MS && inlineSaving.ending; i++) {
        pollEnding();
        if (inlineSaving.ending) (void)usleep(1000); /* may be interrupted */
    }
}

/* ------------------------------------------------------------------ the stage */

static void pollStream(void) {
    hotCheck(inlineSaving.runs);
    hotCheck(inlineSaving.job.stream);
    inlineJob *job = &inlineSaving.job;
    reason why = {{0}};
    if (job->found_large) {
        finishForChild();
        return;
    }
    switch (snapshotStreamPoll(job->stream, &why)) {
    case SNAPSHOT_STREAM_RUNS: break;
    case SNAPSHOT_STREAM_DONE:
        if (job->taken || !job->save.relays) {
            finish(true, NULL);
            return;
        }
        break;
    default: finish(false, why.text); return;
    }
    if (job->failed != OK) {
        finish(false, job->failed_why.text);
    } else if (!inlineJobCheckExcess(job, &why)) {
        finish(false, why.text);
    }
}

static void runStage(void);
static const stageJob stages[] = {{STAGE_FREE, runStage}, {0, NULL}};
static const feature slices = {.name = "inline save", .stages = stages};

/* In stage FREE. A nested turn interrupts a command: the walk waits for its end. */
static void runStage(void) {
    inlineJob *job = &inlineSaving.job;
    int64_t now_us = clockMonoUs();
    bool is_outer = loopDepth(engineLoop()) <= 1;
    if (inlineSaving.runs && job->walks && is_outer) inlineJobWalk(job, now_us);
    if (inlineSaving.runs) pollStream();
    pollEnding();
    if (!inlineSaving.runs && storeSavingRuns() && is_outer) inlineJobClean(job, now_us);
    if (!inlineSaving.runs && !inlineSaving.ending && !storeSavingRuns() && is_outer) {
        hooksRemoveFeature(&slices);
        inlineSaving.has_stage = false;
    }
    job->left_us = clockMonoUs();
}

/* ------------------------------------------------------------------ start */

bool inlineSaveIsWanted(int mode, bool as_commands) {
    static const uint64_t small = 64 * 1024 * 1024; /* a fork of less takes 1 ms */
    if (mode == SNAPSHOT_FORK) return false;
    if (mode == SNAPSHOT_AUTO && memUsed() < small) return false;
    /* Modules may change values at any time, without a lookup that would pass them on before. */
    if (mode == SNAPSHOT_AUTO && moduleTypesExist()) return false;
    if (hashReferencesExist()) return false; /* their owners may free what they refer to */
    if (inlineSaving.ending || storeSavingRuns()) {
        logNotice("The last snapshot was stopped and is not cleaned up yet: forking instead");
        return false;
    }
    if (mode == SNAPSHOT_INLINE || !inlineJobLargeExists(&inlineSaving.large, as_commands))
        return true;
    logNotice("The dataset has a value that is too large to be saved without a fork: forking");
    return false;
}

void inlineSaveTemporary(char *to, size_t cap) {
    snprintf(to, cap, "temp-%d.%llu.rdb", (int)getpid(), (unsigned long long)++inlineSaving.count);
}

static void noteDatabases(inlineJob *job) {
    check(!job->dbs);
    job->db_count = storeDbCount();
    job->dbs = memNewArray(savedDb, (size_t)job->db_count);
    for (int id = 0; id < job->db_count; id++) {
        const db *d = storeDb(id);
        job->dbs[id] = (savedDb){.keys = dbSize(d), .volatile_keys = dbVolatileCount(d)};
        job->keys_total += job->dbs[id].keys;
    }
    check(job->keys_done == 0);
}

/* Builds with checks: files have a digest of the dataset, which a load compares with what it has
 * loaded. */
static void writeDigest(inlineJob *job) {
#ifdef HOT_CHECKS
    if (job->save.job.as_commands || job->save.job.content.no_keys || job->save.job.slots) return;
    digest all;
    char hex[DIGEST_HEX];
    storeDigestWithTimes(keyspaceMain(), &all);
    digestPrint(&all, hex);
    rdbFileAux(job->records.writer, RDB_DIGEST_FIELD, sliceMake(hex, sizeof(hex)));
#else
    (void)job;
#endif
}

status inlineSaveStart(const inlineSave *save, reason *why) {
    hotCheck(threadIsMain());
    inlineJob *job = &inlineSaving.job;
    if (childAlive() != CHILD_NONE) return reasonSet(why, ERR_EXISTS, "another child is running");
    check(!inlineSaving.runs);
    check(!inlineSaving.ending);
    check(!storeSavingRuns());
    const snapshotStreamOptions options = {.temporary = save->job.temporary,
                                           .name = save->job.name,
                                           .sync_bytes = save->job.syncs ? SYNC_BYTES : 0,
                                           .relays = save->relays,
                                           .is_rdb = !save->job.as_commands,
                                           .checksum = rdbSaveHasChecksum(&save->job),
                                           .compress = rdbSaveCompressesStrings(&save->job),
                                           .codec = save->job.codec,
                                           .cpus = save->cpus,
                                           .loop = engineLoop()};
    snapshotStream *stream;
    status st = snapshotStreamNew(&options, &stream, why);
    if (st != OK) return st;
    st = childBeginHere(save->kind, stop, why);
    check(st == OK); /* there is no child */
    *job = (inlineJob){.save = *save, .stream = stream, .db_id = -1};
    job->save.job.temporary = copyOf(save->job.temporary);
    job->save.job.name = copyOf(save->job.name);
    noteDatabases(job);
    rdbRecordsBegin(&job->records, snapshotStreamWriter(stream), &job->save.job);
    writeDigest(job);
    inlineSaving.runs = true;
    job->walks = !save->job.content.no_keys;
    if (job->walks) {
        storeSavingBegin(&inlineSaveCallbacks, save->job.slots);
    } else {
        snapshotStreamEnd(stream);
    }
    job->left_us = clockMonoUs();
    if (!inlineSaving.has_stage) hooksAddFeature(&slices);
    inlineSaving.has_stage = true;
    loopLimitSleep(engineLoop(), 0);
    return OK;
}

/* ------------------------------------------------------------------ for others */

blob *inlineSaveTake(void) {
    inlineJob *job = &inlineSaving.job;
    if (!inlineSaving.runs || !job->save.relays) return NULL;
    bool done = snapshotStreamPoll(job->stream, NULL) == SNAPSHOT_STREAM_DONE;
    blob *bytes = snapshotStreamTake(job->stream);
    if (!bytes && done) job->taken = true;
    return bytes;
}

bool inlineSaveIsPressed(void) { return inlineSaving.job.is_pressed; }

void inlineSavePrintInfo(str *out) {
    hotCheck(threadIsMain());
    const inlineJob *job = &inlineSaving.job;
    size_t memory = job->stream ? snapshotStreamCount(job->stream).memory : 0;
    strAppendFormat(
        out,
        "snapshot_inline_in_progress:%d\r\nsnapshot_inline_memory:%llu\r\n"
        "snapshot_inline_excess_peak:%llu\r\nsnapshot_inline_cleanup:%d\r\n"
        "snapshot_inline_early_keys:%llu\r\nsnapshot_inline_divided_values:%llu\r\n"
        "snapshot_inline_main_us:%lld\r\n"
        "snapshot_inline_longest_us:%lld\r\nsnapshot_inline_fallbacks:%llu\r\n",
        inlineSaving.runs, (unsigned long long)memory, (unsigned long long)job->costs.excess_peak,
        !inlineSaving.runs && inlineSaving.has_stage, (unsigned long long)job->costs.early,
        (unsigned long long)job->costs.divided, (long long)job->costs.main_us,
        (long long)job->costs.longest_us, (unsigned long long)inlineSaving.fallbacks);
}
