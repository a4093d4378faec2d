/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Saving in slices: the walk's share of the time, and the limit of what is put aside. The walk
 * advances in steps of some 200 keys and stops while the stream has no room; the stream wakes the
 * loop.
 *
 * Invariant: every new key and every byte put aside within a value is paid for by buckets that the
 * walk visits, so it ends in a growing dataset, too. */
#include "persist/inline_save_priv.h"

#include "base/base.h"
#include "engine/hot.h"
#include "engine/latency.h"
#include "engine/lifecycle.h"
#include "engine/pause.h"
#include "persist/persist_priv.h"
#include "store/store.h"

enum {
    STEP_BUCKETS = 32,
    KEY_PAYS_BUCKETS = 2, /* of the walk, for each new key: a growing dataset gains 7 % at most */
    BUCKET_BYTES = 32,    /* put aside, for which the walk visits a bucket ... */
    ASIDE_BUCKETS_MAX = 1024, /* ... but not more of them for one turn: some 0.3 ms */
    SHARE_PERCENT = 30,       /* of the time, for the walk */
    SHARE_US_MIN = 20,        /* in one turn */
    SHARE_US_MAX = 250,
    OWED_US_MAX = 500, /* for buckets that are owed; more after a longer turn */
    PAUSE_MS = 1000,   /* prolonged while it is needed */
};

/* ------------------------------------------------------------------ limits */

void inlineJobPause(inlineJob *job, bool on) {
    hotCheck(inlineSaving.runs);
    if (on) {
        pauseBegin(PAUSE_FOR_SNAPSHOT, PAUSE_WRITES, engineHot.now_ms + PAUSE_MS);
    } else if (job->pauses) {
        pauseEnd(PAUSE_FOR_SNAPSHOT);
    }
    job->pauses = on;
}

size_t inlineJobExcess(const inlineJob *job) {
    hotCheck(job->stream);
    return snapshotStreamExcess(job->stream) + storeSavingBytes();
}

static bool waitsBeyond(const inlineJob *job, size_t excess) {
    size_t limit = (size_t)persistConf.snapshot_excess_limit;
    return persistConf.snapshot_excess_action == EXCESS_WAIT &&
           excess > (job->pauses ? limit / 2 : limit);
}

void inlineJobLimit(inlineJob *job) {
    if (!job->pauses && unlikely(waitsBeyond(job, inlineJobExcess(job)))) inlineJobPause(job, true);
}

bool inlineJobCheckExcess(inlineJob *job, reason *why) {
    size_t excess = inlineJobExcess(job);
    size_t limit = (size_t)persistConf.snapshot_excess_limit;
    if (excess > job->costs.excess_peak) job->costs.excess_peak = excess;
    job->is_pressed = excess > limit / 2;
    bool waits = waitsBeyond(job, excess);
    if (waits || job->pauses) inlineJobPause(job, waits);
    /* What does not wait for pauses, such as the stream of a primary, gets as much again. */
    if (excess <= limit || (waits && excess / 2 <= limit)) return true;
    (void)reasonSet(why, ERR_LIMIT,
                    "changes are made faster than the snapshot is written, and %llu bytes "
                    "of old values exceed snapshot-excess-limit",
                    (unsigned long long)excess);
    return false;
}

/* ------------------------------------------------------------------ time */

/* The microseconds that the walk may take in this turn. */
static int64_t share(const inlineJob *job, int64_t now_us) {
    hotCheck(now_us >= job->left_us);
    int64_t us = (now_us - job->left_us) * SHARE_PERCENT / (100 - SHARE_PERCENT);
    if (us < SHARE_US_MIN) return SHARE_US_MIN;
    return us > SHARE_US_MAX ? SHARE_US_MAX : us;
}

/* Adds the buckets that the walk has to visit, because keys were added or put aside. */
static void countOwed(inlineJob *job) {
    hotCheck(storeSavingAdded() >= job->added_paid);
    uint64_t added = storeSavingAdded();
    size_t excess = inlineJobExcess(job);
    job->owed += (added - job->added_paid) * KEY_PAYS_BUCKETS;
    job->added_paid = added;
    /* Without an open value the receivers are what is slow. */
    if (excess <= job->excess_paid || !job->in_value) {
        job->excess_paid = excess;
        return;
    }
    uint64_t aside = sizeMin((excess - job->excess_paid) / BUCKET_BYTES, ASIDE_BUCKETS_MAX);
    job->excess_paid += aside * BUCKET_BYTES; /* the rest in the next turns */
    job->owed += aside;
    hotCheck(job->excess_paid <= inlineJobExcess(job));
}

/* The microseconds that the walk may take in this turn for buckets that are owed: a turn that adds
 * keys for long is prolonged in proportion, so that the walk ends in any case. */
static int64_t shareOwed(const inlineJob *job, int64_t now_us) {
    hotCheck(now_us >= job->left_us);
    int64_t us = (now_us - job->left_us) / 2;
    return us > OWED_US_MAX ? us : OWED_US_MAX;
}

void inlineJobWalk(inlineJob *job, int64_t now_us) {
    hotCheck(job->walks);
    if (now_us < job->resume_us) {
        loopLimitSleep(engineLoop(), (job->resume_us - now_us) / 1000 + 1);
        return;
    }
    bool slowly = persistConf.rdb_key_save_delay > 0;
    int64_t free_us = share(job, now_us), owed_us = shareOwed(job, now_us), spent_us;
    uint64_t before = job->keys_done + job->elements;
    bool more, has_room;
    if (!slowly) countOwed(job);
    do {
        has_room = snapshotStreamRoom(job->stream) > 0;
        more = !has_room || storeSavingStep(slowly ? 1 : STEP_BUCKETS);
        job->owed -= sizeMin(job->owed, STEP_BUCKETS);
        spent_us = clockMonoUs() - now_us;
    } while (more && has_room && job->walks && !slowly &&
             spent_us < (job->owed ? owed_us : free_us));
    job->costs.main_us += spent_us;
    if (spent_us > job->costs.longest_us) job->costs.longest_us = spent_us;
    latencyNote("snapshot-slice", spent_us / 1000);
    if (persistConf.rdb_key_save_delay > 0)
        job->resume_us = now_us + (int64_t)(job->keys_done + job->elements - before) *
                                      persistConf.rdb_key_save_delay;
    if (!more && job->walks) {
        inlineJobEndWalk(job);
        rdbRecordsEnd(&job->records);
        snapshotStreamEnd(job->stream);
    } else if (has_room) {
        loopLimitSleep(engineLoop(), 0);
    }
}

void inlineJobClean(const inlineJob *job, int64_t now_us) {
    hotCheck(!inlineSaving.runs);
    int64_t end_us = now_us + share(job, now_us);
    while (storeSavingStep(STEP_BUCKETS) && clockMonoUs() < end_us) {}
    loopLimitSleep(engineLoop(), 0);
}
