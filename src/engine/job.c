/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Jobs (job.h).
 *
 * Invariants: a job is in `jobs.all` until its command has returned; the stage, the gate and the
 * hooks of the store are armed only while there are jobs. `filter` counts the keys that jobs read
 * by some bits of their hashes: mostly a change needs no more than one look at it. A job has an
 * output of its own, so that messages which its client gets meanwhile do not split the reply; at
 * its end the reply is moved to the client's.
 *
 * A job that stores a result is in `jobs.all` until its effect, which is a part of the end of its
 * client's wait, or in `jobs.again` after it had to drop the result. An effect is never within
 * another command, which may have looked up the destination already.
 *
 * A job that changes keys in place leaves them in a state between two slices that anybody may read
 * without harm, but nobody does: claimGate holds or ends what would. If something removes such a
 * key all the same (the end of a TTL that SCAN meets), the job returns at once and its command runs
 * again from its start, afterwards. */
#include "engine/job.h"

#include "base/base.h"
#include "base/fiber.h"
#include "engine/block.h"
#include "engine/deliver.h"
#include "engine/engine_priv.h"
#include "engine/execute_priv.h"
#include "engine/gate_priv.h"
#include "engine/job_gate.h"
#include "engine/job_priv.h"
#include "engine/job_turns.h"
#include "engine/latency.h"
#include "engine/lifecycle.h"
#include "engine/pause.h"
#include "engine/propagate.h"
#include "engine/session_priv.h"
#include "engine/session_report.h"
#include "engine/user.h"
#include "store/compressed.h"
#include "store/reading.h"

enum {
    FILTER_BITS = 10,
    ELEMENTS_PER_US = 4,     /* what is visited in less than a slice is not worth a job */
    LOOK_AFTER = 64,         /* elements, at the clock */
    ARGS_MAX = 1000,         /* of a job: a change is compared with each of its keys */
    STORING_MAX = 16,        /* jobs with a result in memory; further ones run in one piece */
    ENDED_BYTES = 256 * 1024 /* of replies: when jobs of a turn have replied that much it is over,
                              * as they are written in this turn, too, at some 2 GB/s */
};

typedef struct job {
    listNode node; /* in `jobs.all`, the oldest one first */
    jobTurn turn;
    session *who;
    ctx c;
    outbuf out; /* its reply so far */
    fiber *stack;
    /* Hashes of its keys: first those that it only reads, then those that it reads and stores,
     * then those that it only stores. */
    uint64_t *hashes;
    int key_count;            /* that it reads */
    int stored_from, all_end; /* range of those that it stores */
    uint64_t ticks, slice_end;
    uint64_t visited, elements; /* so far, and as many as were expected */
    int64_t begun_us;
    int left; /* elements until the next look at the clock */
    bool is_running, has_ended;
    bool to_end;      /* it is not suspended any more: it has to end now, */
    bool goes_on;     /* or it looks something up */
    bool is_unwanted; /* nobody reads its reply, or wants its result */
    bool stores;      /* jobBeginStore(), jobBeginChange() */
    bool in_place;    /* jobBeginChange() */
    bool is_complete; /* and the result waits for its effect, */
    bool may_store;   /* which is now */
    bool again;       /* it has dropped the result, and runs again */
    int64_t complete_us;
    compressedParts *expanded; /* compressed values that it reads */
} job;

typedef enum jobKind { JOB_READS, JOB_STORES, JOB_CHANGES } jobKind;

unsigned jobsChanging;

static struct {
    list all, again;
    const job *running; /* the innermost one; NULL: none */
    uint32_t filter[1 << FILTER_BITS];
    uint64_t slice_ticks;
    uint64_t budget;      /* ticks of a slice that begins now */
    uint64_t begun_ticks; /* in this turn, by the first slices of jobs */
    int keyed;            /* jobs with keys */
    int storing;          /* jobs in `all` that store a result */
    bool has_stage;
    bool cuts_all;                               /* at each point, for tests */
    bool paused;                                 /* jobSetPaused() */
    uint64_t begun, done, aborted, in_one_piece; /* statistics */
    int64_t longest_us;
} jobs;

/* ------------------------------------------------------------------ keys */

static uint32_t *filterOf(uint64_t hash) {
    return &jobs.filter[hash >> (64 - FILTER_BITS)]; /* the low bits are the slot */
}

static bool hasKey(const job *j, const db *d, uint64_t hash) {
    if (d && j->c.db != d) return false;
    for (int i = 0; i < j->key_count; i++) {
        if (j->hashes[i] == hash) return true;
    }
    return false;
}

static bool changesKey(const job *j, const db *d, uint64_t hash) {
    return j->in_place && hasKey(j, d, hash);
}

/* Tells whether a job is concerned by what happens to the key with this hash. */
typedef bool jobConcern(const job *j, const db *d, uint64_t hash);

static bool anyJob(jobConcern *concerns, const db *d, uint64_t hash) {
    hotCheck(jobs.all.count > 0);
    for (listNode *n = listFirst(&jobs.all); n; n = listNext(&jobs.all, n)) {
        if (concerns(LIST_OWNER(n, job, node), d, hash)) return true;
    }
    return false;
}

bool jobReads(const db *d, uint64_t hash) {
    if (likely(!*filterOf(hash)) || !jobs.all.count) return false;
    return anyJob(hasKey, d, hash);
}

bool jobChanges(const db *d, uint64_t hash) {
    if (likely(!*filterOf(hash)) || !jobsChanging) return false;
    return anyJob(changesKey, d, hash);
}

typedef enum keyUse { KEY_IS_READ, KEY_IS_CHANGED, KEY_IS_REPLACED, KEY_USES } keyUse;

/* The value before does not matter of what is replaced: others may change it meanwhile. */
static keyUse useOf(const job *j, const keyPosition *key) {
    if (j->in_place) return KEY_IS_CHANGED;
    if (!j->stores || key->flags & KEY_RO) return KEY_IS_READ;
    return key->flags & KEY_OW ? KEY_IS_REPLACED : KEY_IS_CHANGED;
}

static void takeKeys(job *j) {
    enum { FEW = 16 };
    keyPosition few[FEW];
    int count;
    keyPosition *keys = commandAllKeys(j->c.cmd, j->c.argv, j->c.argc, few, FEW, &count);
    check(count >= 0); /* the command has looked them up */
    j->hashes = count ? memNewArray(uint64_t, (size_t)count) : NULL;
    int ends[KEY_USES], taken = 0;
    for (int use = 0; use < KEY_USES; ends[use++] = taken) {
        for (int i = 0; i < count; i++) {
            if ((int)useOf(j, &keys[i]) != use) continue;
            j->hashes[taken++] = storeHash(j->c.argv[keys[i].arg_index]);
        }
    }
    check(taken == count);
    j->stored_from = ends[KEY_IS_READ];
    j->key_count = ends[KEY_IS_CHANGED];
    j->all_end = count;
    for (int i = 0; i < j->key_count; i++) ++*filterOf(j->hashes[i]);
    if (keys != few) memFree(keys);
    if (j->key_count && !jobs.keyed++) gateArm(&jobGate, true);
    if (j->in_place && !jobsChanging++) gateArm(&claimGate, true);
}

static void dropKeys(job *j) {
    for (int i = 0; i < j->key_count; i++) {
        check(*filterOf(j->hashes[i]) > 0);
        --*filterOf(j->hashes[i]);
    }
    memFree(j->hashes);
    j->hashes = NULL;
    if (j->in_place && !--jobsChanging) gateArm(&claimGate, false);
    if (!j->key_count) return;
    j->key_count = 0;
    if (!--jobs.keyed) gateArm(&jobGate, false);
    jobGateRelease();
}

/* ------------------------------------------------------------------ running */

static void continueJobs(void);
static void beforeChange(const db *d, uint64_t hash);
static void beforeAdding(const db *d, uint64_t hash);
static void beforeWhole(const db *d);
static void beforeShown(const db *d, uint64_t hash);

static const stageJob stages[] = {{STAGE_EXPIRE, continueJobs}, {0, NULL}};
static const feature running_jobs = {.name = "jobs", .stages = stages};
static const storeReaders readers = {
    .before = beforeChange,
    .adding = beforeAdding,
    .whole = beforeWhole,
    .shown = beforeShown,
    .holds = jobReads,
};

static void runCommand(void *arg) {
    job *j = arg;
    j->c.cmd->proc(&j->c);
}

/* True if the job has visited enough since the last look at the clock, and its slice is over. */
static bool sliceIsOver(job *j, unsigned elements) {
    hotCheck(j->is_running);
    j->visited += elements;
    if (j->to_end || j->goes_on || (j->left -= (int)elements) > 0) return false;
    j->left = jobs.cuts_all ? 0 : LOOK_AFTER;
    return jobs.cuts_all || clockTicks() >= j->slice_end;
}

bool jobPause(unsigned elements) {
    job *j = (job *)jobs.running;
    check(j != NULL);
    if (j->is_unwanted) return true;
    if (j->in_place) return false; /* it is suspended, and counted, where its keys are stored */
    return sliceIsOver(j, elements) && !jobSuspend();
}

bool jobSliceIsOver(unsigned elements) {
    job *j = (job *)jobs.running;
    check(j != NULL);
    check(j->in_place);
    return sliceIsOver(j, elements);
}

bool jobSuspend(void) {
    const job *j = jobs.running;
    check(j != NULL);
    fiberSuspend();
    hotCheck(jobs.running == j);
    return !j->is_unwanted;
}

bool jobGoOn(const ctx *c) {
    if (!(c->flags & CTX_SLICED)) return true;
    hotCheck(jobs.running && c == &jobs.running->c);
    ((job *)jobs.running)->goes_on = true;
    return !jobs.running->to_end;
}

bool jobAwaitEffect(void) {
    job *j = (job *)jobs.running;
    check(j != NULL);
    check(j->stores);
    if (!j->is_complete) {
        j->is_complete = true;
        j->complete_us = clockMonoUs();
        jobTurnEnd(&j->turn);
        if (!j->is_unwanted) fiberSuspend();
    }
    check(j->may_store || j->is_unwanted);
    j->goes_on = true;
    return j->may_store;
}

static void end(job *j) {
    hotCheck(!j->has_ended);
    j->has_ended = true;
    listRemove(&jobs.all, &j->node);
    jobs.storing -= j->stores;
    if (!j->is_complete) jobTurnEnd(&j->turn);
    dropKeys(j);
    if (!jobs.all.count) storeSetReaders(NULL);
    fiberFree(j->stack);
    j->stack = NULL;
    compressedFreeParts(j->expanded);
    j->expanded = NULL;
}

static void noteSlice(const job *j, int64_t us) {
    if (us > jobs.longest_us) jobs.longest_us = us;
    if (j->to_end && !j->may_store) jobs.in_one_piece++;
    if (us > 2 * (int64_t)engineConf.command_slice_us) latencyNote("slice", us / 1000);
}

/* One slice, as a unit of its own within whatever is being executed: it may delete expired keys. */
static void runSlice(job *j) {
    check(!j->is_running);
    ctx *below = engineHot.current;
    const job *outer = jobs.running;
    keyspace *used = keyspaceUse(keyspaceMain());
    j->c.below = below;
    engineHot.current = &j->c;
    jobs.running = j;
    j->is_running = true;
    j->left = jobs.cuts_all ? 0 : LOOK_AFTER;
    int depth = propagateOwnUnitBegin();
    uint64_t started = clockTicks();
    j->slice_end = started + (jobs.paused ? 0 : jobs.budget);
    bool more = fiberResume(j->stack);
    if (!more && j->in_place) executeEffects(&j->c);
    uint64_t ticks = clockTicks() - started;
    propagateOwnUnitEnd(depth);
    j->is_running = false;
    jobs.running = outer;
    engineHot.current = below;
    (void)keyspaceUse(used); /* it was the main one */
    j->ticks += ticks;
    if (!j->is_complete) jobTurnUsed(&j->turn, ticks);
    noteSlice(j, clockTicksToNs(ticks) / 1000);
    if (j->c.flags & CTX_WAKES && below) below->flags |= CTX_WAKES;
    if (!more) end(j);
}

/* Its session is told after the current command, or in stage WAKE. The reply comes before messages
 * about what changes until then: a client that keeps what it reads drops it when it is told so. */
static void tellSession(const job *j) {
    bool waits = blockFinish(j->who);
    check(waits);
    deliverAfterWait(j->who);
}

static void runToEnd(job *j) {
    j->to_end = true;
    runSlice(j);
    check(j->has_ended);
    tellSession(j);
}

/* Leaves the command without an effect. */
static void dropResult(job *j) {
    check(j->stores);
    j->is_unwanted = true;
    runSlice(j);
    check(j->has_ended);
    outbufClear(&j->out);
}

/* A key that the job has read is about to change, within a command that cannot wait. The result
 * cannot be stored now: that command may have read the destination, or hold its value. */
static void beginAgain(job *j) {
    dropResult(j);
    j->again = true;
    listAppend(&jobs.again, &j->node);
    engineStayAwake();
}

/* Ends the jobs for which `concerns` is true, as something that they read is about to change. Those
 * that change keys in place: `changing`. */
static void endAll(jobConcern *concerns, const db *d, uint64_t hash, void (*changing)(job *j)) {
    listNode *n = listFirst(&jobs.all);
    while (n) {
        job *j = LIST_OWNER(n, job, node);
        bool ends = !j->is_running && concerns(j, d, hash); /* not from within its own slice */
        ends &= !j->in_place || changing != NULL;
        if (ends) (j->in_place ? changing : j->stores ? beginAgain : runToEnd)(j);
        n = ends ? listFirst(&jobs.all) : listNext(&jobs.all, n);
    }
}

static bool isIn(const job *j, const db *d, uint64_t hash) {
    (void)hash; /* of all keys */
    return !d || j->c.db == d;
}

static void beforeChange(const db *d, uint64_t hash) {
    if (likely(!jobReads(d, hash))) return;
    compressedKeep(true); /* the command that changes the key may need what it has read */
    endAll(hasKey, d, hash, beginAgain);
    compressedKeep(false);
}

static bool storesFrom(const job *j, const db *d, uint64_t hash) {
    return j->stores && hasKey(j, d, hash);
}

/* A key that jobs have found missing. Replies are of the moment at which they did, and need not
 * end; what is stored later has to be computed anew. */
static void beforeAdding(const db *d, uint64_t hash) {
    if (unlikely(jobReads(d, hash))) endAll(storesFrom, d, hash, beginAgain);
}

static void beforeWhole(const db *d) {
    hotCheck(threadIsMain());
    endAll(isIn, d, 0, runToEnd);
}

/* A job that changes a key in place finds it anew in each slice, and goes on. */
static void beforeShown(const db *d, uint64_t hash) {
    hotCheck(threadIsMain());
    if (unlikely(jobReads(d, hash))) endAll(hasKey, d, hash, NULL);
}

static bool changesAny(const job *j, const db *d, uint64_t hash) {
    (void)d, (void)hash; /* of all keys */
    return j->in_place;
}

/* Runs the jobs to their ends that change keys in place and for which `concerns` is true. */
static void endChanges(jobConcern *concerns, const db *d, uint64_t hash) {
    bool forbidden = keyspaceForbidChanges(true);
    (void)keyspaceForbidChanges(forbidden);     /* it is only asked for */
    if (forbidden || engineHot.loading) return; /* clients that look at the keys wait now, too */
    endAll(concerns, d, hash, runToEnd);
}

bool jobEndChanges(void) {
    hotCheck(threadIsMain());
    if (likely(!jobsChanging)) return false;
    endChanges(changesAny, NULL, 0);
    return true;
}

void jobEndChangesOf(const db *d, uint64_t hash) {
    if (unlikely(jobChanges(d, hash))) endChanges(changesKey, d, hash);
}

/* ------------------------------------------------------------------ effects */

/* True if another job reads what this one is about to change: it would have to end at once. */
static bool disturbsReader(const job *j) {
    if (clockMonoUs() - j->complete_us >= (int64_t)JOB_WAIT_MS * 1000) return false;
    const db *d = j->c.cmd->flags & CMD_OTHER_DB ? NULL : j->c.db; /* NULL: of any */
    for (listNode *n = listFirst(&jobs.all); n; n = listNext(&jobs.all, n)) {
        const job *other = LIST_OWNER(n, job, node);
        for (int i = j->stored_from; i < j->all_end && other != j; i++) {
            if (hasKey(other, d, j->hashes[i])) return true;
        }
    }
    return false;
}

/* True if the effect is held back: until then nothing is left to do for the job. */
static bool isPaused(job *j) {
    if (engineHot.loading) return true;
    return j->c.origin == ORIGIN_PRIMARY ? pauseHoldsStream() : pauseHoldsWrite(&j->c);
}

/* Stores the result, as the end of the session's wait: effect and reply are one unit. */
static bool storeResult(job *j) {
    check(!engineHot.current);
    if (isPaused(j) || disturbsReader(j)) return false;
    return blockFinishNow(j->who); /* false: the session is closing, and has an heir soon */
}

/* True if a key that it has read has expired since: jobs keep it, but others do not see it. A
 * stream sees it until it says that the key is deleted. */
static bool hasReadExpired(const job *j) {
    if (ctxIsReplay(&j->c)) return false;
    int64_t now_ms = clockWallMs();
    for (int i = 0; i < j->key_count; i++) {
        const robj *o = dbPeekHash(j->c.db, j->hashes[i]);
        if (o && objectIsExpired(o, now_ms)) return true;
    }
    return false;
}

/* In `finish` of the wait: the effect. `c` is its context, below that of the job. */
static void takeEffect(ctx *c, job *j) {
    if (!gatesAdmitEffect(c)) { /* the error was replied */
        if (!j->again) dropResult(j);
        return;
    }
    if (!j->again && hasReadExpired(j)) {
        dropResult(j);
        j->again = true;
    }
    if (j->again) { /* in one piece, with the keys as they are now */
        jobs.in_one_piece++;
        c->flags |= CTX_WOKEN;
        dbLookupsRepeat(c->db, true);
        c->cmd->proc(c);
        dbLookupsRepeat(c->db, false);
        return;
    }
    const uint32_t effects = CTX_CHANGED | CTX_REWRITTEN | CTX_NO_PROPAGATE | CTX_LATE_EVENTS;
    j->c.now_ms = c->now_ms;
    j->c.look = c->look;
    j->may_store = true;
    runSlice(j);
    check(j->has_ended);
    c->flags |= j->c.flags & effects;
}

/* Runs the commands that have dropped their results. */
static void runAgain(void) {
    for (size_t left = jobs.again.count; left > 0; left--) {
        listNode *first = listFirst(&jobs.again);
        if (!first) return;
        job *j = LIST_OWNER(first, job, node);
        listRemove(&jobs.again, first);
        listAppend(&jobs.again, first);                 /* freeJob() removes it */
        if (!isPaused(j)) (void)blockFinishNow(j->who); /* false: as in storeResult() */
    }
}

/* ------------------------------------------------------------------ turns */

static void stopStage(void) {
    jobs.has_stage = false;
    hooksRemoveFeature(&running_jobs);
}

/* A write has waited for a key of these jobs as long as it may. */
static void hurry(const db *d, uint64_t hash) {
    listNode *n = listFirst(&jobs.all);
    while (n) {
        job *j = LIST_OWNER(n, job, node);
        bool runs = !j->is_complete && hasKey(j, d, hash);
        if (runs) {
            j->to_end = true;
            runSlice(j);
            if (j->has_ended) tellSession(j);
        }
        n = runs ? listFirst(&jobs.all) : listNext(&jobs.all, n);
    }
}

/* True for a job that waits for the end of a pause, or for an heir of its session. */
static bool awaitsOthers(job *j) {
    return isPaused(j) || j->who->flags & (SESSION_CLOSE_NOW | SESSION_CLOSE_SOON);
}

/* Stores the results that may be stored now. True: one has to be tried again in the next turn. */
static bool storeResults(void) {
    bool due = false;
    listNode *n = listFirst(&jobs.all);
    while (n) {
        job *j = LIST_OWNER(n, job, node);
        bool waits = !j->is_complete || awaitsOthers(j);
        bool stored = !waits && storeResult(j);
        due |= !waits && !stored;
        n = stored ? listFirst(&jobs.all) : listNext(&jobs.all, n);
    }
    return due;
}

/* A slice of a job. Returns the size of its reply if that is complete. */
static size_t continueJob(job *j) {
    if (j->who->flags & SESSION_CLOSE_NOW) return 0; /* it is freed soon, or has an heir */
    runSlice(j);
    if (j->has_ended) {
        size_t bytes = outbufPending(&j->out);
        tellSession(j);
        return bytes;
    }
    if (j->is_complete) (void)storeResult(j); /* false: it is tried again in the next turn */
    return 0;
}

/* The slices of a turn, until `end_ticks`. False: no job has one. */
static bool continueUntil(uint64_t end_ticks) {
    uint64_t now = clockTicks();
    size_t left = jobs.all.count, ended_bytes = 0;
    bool any = false;
    for (jobTurn *next; left > 0 && (next = jobTurnNext()) != NULL; left--) {
        jobs.budget = now < end_ticks ? end_ticks - now : 0;
        ended_bytes += continueJob(LIST_OWNER(next, job, turn));
        any = true;
        now = clockTicks();
        if (now >= end_ticks || ended_bytes >= ENDED_BYTES) break;
    }
    jobs.budget = jobs.slice_ticks;
    return any;
}

/* The first slice of a job. Those of all jobs that begin in one turn have half of the turn's time
 * together: after that they end at their first points. */
static void runFirstSlice(job *j) {
    uint64_t most = jobs.slice_ticks / 2;
    check(jobs.begun_ticks <= most);
    jobs.budget = most - jobs.begun_ticks;
    uint64_t started = clockTicks();
    runSlice(j);
    jobs.begun_ticks = sizeMin(most, jobs.begun_ticks + clockTicks() - started);
    jobs.budget = jobs.slice_ticks;
}

/* The jobs of a turn: those whose turn it is get their slices. */
static void continueJobs(void) {
    if (!jobs.all.count && !jobs.again.count) {
        stopStage();
        return;
    }
    /* In a nested turn the command below has the time. */
    if (engineHot.current) return;
    jobGateEndWaits();
    if (jobs.paused) return;
    uint64_t begun_ticks = jobs.begun_ticks;
    jobs.begun_ticks = 0;
    runAgain();
    bool due = storeResults();
    const db *d;
    uint64_t hash;
    if (unlikely(jobGateOverdue(&d, &hash))) hurry(d, hash);
    due |= continueUntil(clockTicks() + jobs.slice_ticks - begun_ticks);
    if (due) engineStayAwake();
}

/* ------------------------------------------------------------------ begin and end */

/* The end of the wait: its second and last part of the command. */
static void reply(ctx *c) {
    job *j = blockState(c);
    blockAddWork(c, j->ticks);
    if (!j->has_ended || j->again) takeEffect(c, j);
    /* Its changes may have been handed over with the command that could not wait. */
    if (j->in_place) propagateNoteAll(c->who);
    check(j->has_ended);
    c->flags |= j->c.flags & CTX_FAILED;
    outbufMoveAll(c->out, &j->out);
    session *s = c->who;
    bool is_limited = c->out == &s->out && s->carrier && s->carrier->output_grew;
    if (is_limited) s->carrier->output_grew(s);
    jobs.done++;
}

static void freeJob(void *state) {
    job *j = state;
    if (!j->has_ended) { /* its client is gone, or its wait has ended with an error */
        j->to_end = true;
        j->is_unwanted = !j->in_place;
        jobs.aborted += j->is_unwanted;
        runSlice(j);
    }
    check(j->has_ended);
    if (listHas(&j->node)) listRemove(&jobs.again, &j->node);
    outbufClear(&j->out);
    memFree(j);
}

static size_t memoryOf(const void *state) {
    const job *j = state;
    return sizeof(*j) + outbufMemory(&j->out);
}

/* True for a write that the primary has sent by itself. Its stream waits for the job, and its bytes
 * count as applied with the effect, at one moment (engine/stream.h): so it changes nothing before.
 */
static bool isOfStream(const ctx *c, jobKind kind) {
    return kind == JOB_STORES && c->origin == ORIGIN_PRIMARY && c->request &&
           !(c->who->flags & (SESSION_DENY_BLOCKING | SESSION_INTERNAL));
}

/* True if the command may be a job: it is one that a client or the primary has sent by itself, not
 * the part of a transaction or a script, which run in one piece. */
static bool mayBegin(const ctx *c, jobKind kind) {
    if (c->flags & (CTX_SLICED | CTX_WOKEN | CTX_MAY_BLOCK)) return false;
    if (blockIsDenied(c) && !isOfStream(c, kind)) return false;
    if (c->outer || c->below || engineHot.loading || !engineConf.command_slice_us) return false;
    if (kind != JOB_READS && jobs.storing >= STORING_MAX) return false;
    if (c->argc > ARGS_MAX && kind != JOB_CHANGES) return false; /* that has one key */
    return jobs.all.count < JOBS_MAX;
}

/* ---- the session ends before its job that stores something ---- */

static void freeHeir(session *s) {
    sessionClear(s);
    memFree(s);
}

/* A write that was sent is executed: an internal session is blocked for it. That of a stream is
 * sent again, as it does not count as applied. */
static session *heirOf(void *state) {
    static const sessionCarrier carrier = {.resume = freeHeir};
    job *j = state;
    if (j->who->flags & SESSION_REPLAY) return NULL;
    if (!j->stores || (j->has_ended && !j->again)) return NULL;
    user *of = j->who->user;
    if (of && userFind(of->name) != of) return NULL; /* removed: it has no rights any more */
    session *s = memNew(session);
    sessionInit(s, &carrier, SESSION_INTERNAL);
    userMoveSession(s, of);
    s->armed = j->who->armed; /* the gates of its rights */
    check(sessionSelect(s, j->who->db_id) == OK);
    j->who = j->c.who = s;
    engineStayAwake();
    return s;
}

static bool begin(ctx *c, uint64_t elements, jobKind kind, bool has_looked) {
    if (!mayBegin(c, kind)) return false;
    job *j = memNew(job);
    *j = (job){.who = c->who,
               .stores = kind != JOB_READS,
               .in_place = kind == JOB_CHANGES,
               .elements = elements,
               .begun_us = clockMonoUs()};
    j->stack = fiberNew(runCommand, j);
    if (!j->stack) {
        memFree(j);
        return false;
    }
    outbufInit(&j->out);
    blockStart(c, &(blockParams){.kind = BLOCK_JOB,
                                 .finish = reply,
                                 .state = j,
                                 .free_state = freeJob,
                                 .memory = memoryOf,
                                 .heir = heirOf,
                                 .not_by_user = true,
                                 .is_run = true});
    ctxInitLater(&j->c, c->who, blockRequest(c->who), &j->out);
    j->c.db = c->db;
    j->c.now_ms = c->now_ms;
    j->c.look = c->look;
    j->c.flags = CTX_SLICED;
    if (!jobs.all.head.next) {
        listInit(&jobs.all);
        listInit(&jobs.again);
    }
    if (!jobs.all.count) storeSetReaders(&readers);
    listAppend(&jobs.all, &j->node);
    jobs.storing += j->stores;
    jobTurnBegin(&j->turn, c->who->user);
    jobs.begun++;
    takeKeys(j);
    if (!jobs.has_stage) hooksAddFeature(&running_jobs);
    jobs.has_stage = true;
    engineStayAwake();
    /* Until its first point, the command looks up what it has looked up just now. */
    if (has_looked) dbLookupsRepeat(j->c.db, true);
    if (!j->in_place) compressedUseParts(&j->expanded);
    runFirstSlice(j);
    if (!j->in_place) compressedUseParts(NULL);
    if (has_looked) dbLookupsRepeat(j->c.db, false);
    if (j->has_ended) tellSession(j);
    return true;
}

bool jobBegin(ctx *c, uint64_t elements) { return begin(c, elements, JOB_READS, true); }
bool jobBeginStore(ctx *c, uint64_t elements) { return begin(c, elements, JOB_STORES, true); }
bool jobBeginChange(ctx *c, uint64_t elements, bool has_looked) {
    return begin(c, elements, JOB_CHANGES, has_looked);
}

bool jobIsOf(const session *s) { return blockKindOf(s) == BLOCK_JOB; }

bool jobProgressOf(const session *s, jobProgress *out) {
    hotCheck(threadIsMain());
    if (!jobIsOf(s)) return false;
    const job *j = blockStateOf(s);
    *out = (jobProgress){.visited = j->visited,
                         .elements = j->elements,
                         .us = clockTicksToNs(j->ticks) / 1000,
                         .elapsed_us = clockMonoUs() - j->begun_us};
    return true;
}

bool jobStores(const session *s) {
    if (!jobIsOf(s)) return false;
    const job *j = blockStateOf(s);
    return j->stores && (!j->has_ended || j->again);
}

bool jobIsChange(const session *s) {
    if (!jobIsOf(s)) return false;
    return ((const job *)blockStateOf(s))->in_place;
}

void jobSetPaused(bool paused) {
    jobs.paused = paused;
    if (jobs.all.count) engineStayAwake();
}

/* ------------------------------------------------------------------ settings, statistics */

status jobApply(reason *why) {
    (void)why; /* cannot fail */
    int us = engineConf.command_slice_us;
    uint64_t from = us ? (uint64_t)us * ELEMENTS_PER_US : UINT32_MAX;
#ifdef HOT_CHECKS
    jobs.cuts_all = us == 1;
    if (jobs.cuts_all) from = 1;
#endif
    engineHot.job_from = (uint32_t)from;
    fiberSetPoint(jobPause);
    int64_t ns_per_million = clockTicksToNs(1000000);
    jobs.slice_ticks =
        (uint64_t)us * 1000 * 1000000 / (uint64_t)(ns_per_million > 0 ? ns_per_million : 1000000);
    jobs.budget = jobs.slice_ticks;
    jobs.begun_ticks = 0;
    keyspaceFreeHugeLater(us > 0);
    return OK;
}

void jobPrintStats(str *out) {
    strAppendField(out, "jobs_running", jobs.all.count + jobs.again.count);
    strAppendField(out, "jobs_done", jobs.done);
    strAppendField(out, "jobs_aborted", jobs.aborted);
    strAppendField(out, "jobs_in_one_piece", jobs.in_one_piece);
    strAppendField(out, "job_longest_slice_usec", (uint64_t)jobs.longest_us);
    strAppendField(out, "job_writes_held", jobGateCount());
    strAppendField(out, "job_longest_wait_usec", (uint64_t)jobGateLongestUs());
}

void jobResetStats(void) {
    hotCheck(threadIsMain());
    jobs.begun = jobs.done = jobs.aborted = jobs.in_one_piece = 0;
    jobs.longest_us = 0;
    jobGateResetStats();
}
