/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Jobs (job.h).
 *
 * Invariants: a job is in `jobs.all` until its command has returned; the stage, the gate and the
 * hooks of the store are armed only while there are jobs. `filter` counts the keys that jobs read
 * by some bits of their hashes: mostly a change needs no more than one look at it. A job has an
 * output of its own, so that messages which its client gets meanwhile do not split the reply; at
 * its end the reply is moved to the client's. */
#include "engine/job.h"

#include "base/base.h"
#include "base/fiber.h"
#include "engine/block.h"
#include "engine/deliver.h"
#include "engine/engine_priv.h"
#include "engine/job_gate.h"
#include "engine/job_priv.h"
#include "engine/latency.h"
#include "engine/lifecycle.h"
#include "engine/propagate.h"
#include "store/reading.h"

enum {
    FILTER_BITS = 10,
    ELEMENTS_PER_US = 4, /* what is visited in less than a slice is not worth a job */
    LOOK_AFTER = 64,     /* elements, at the clock */
    ARGS_MAX = 1000      /* of a job: a change is compared with each of its keys */
};

typedef struct job {
    listNode node; /* in `jobs.all`, the next one to run first */
    session *who;
    ctx c;
    outbuf out; /* its reply so far */
    fiber *stack;
    uint64_t *hashes; /* of its keys */
    int key_count;
    uint64_t ticks, slice_end;
    int left; /* elements until the next look at the clock */
    bool is_running, has_ended;
    bool to_end;      /* it is not suspended any more: it has to end now, */
    bool goes_on;     /* or it looks something up */
    bool is_unwanted; /* nobody reads its reply */
} job;

static struct {
    list all;
    const job *running; /* the innermost one; NULL: none */
    uint32_t filter[1 << FILTER_BITS];
    uint64_t slice_ticks;
    uint64_t budget;      /* ticks of a slice that begins now */
    uint64_t begun_ticks; /* in this turn, by the first slices of jobs */
    int keyed;            /* jobs with keys */
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
    if (j->c.db != d) return false;
    for (int i = 0; i < j->key_count; i++) {
        if (j->hashes[i] == hash) return true;
    }
    return false;
}

bool jobReads(const db *d, uint64_t hash) {
    if (likely(!*filterOf(hash)) || !jobs.all.count) return false;
    for (listNode *n = listFirst(&jobs.all); n; n = listNext(&jobs.all, n)) {
        if (hasKey(LIST_OWNER(n, job, node), d, hash)) return true;
    }
    return false;
}

static void takeKeys(job *j) {
    enum { FEW = 16 };
    keyPosition few[FEW];
    int count;
    keyPosition *keys = commandAllKeys(j->c.cmd, j->c.argv, j->c.argc, few, FEW, &count);
    check(count >= 0); /* the command has looked them up */
    j->hashes = count ? memNewArray(uint64_t, (size_t)count) : NULL;
    j->key_count = count;
    for (int i = 0; i < count; i++) {
        j->hashes[i] = storeHash(j->c.argv[keys[i].arg_index]);
        ++*filterOf(j->hashes[i]);
    }
    if (keys != few) memFree(keys);
    if (count && !jobs.keyed++) gateArm(&jobGate, true);
}

static void dropKeys(job *j) {
    for (int i = 0; i < j->key_count; i++) {
        check(*filterOf(j->hashes[i]) > 0);
        --*filterOf(j->hashes[i]);
    }
    memFree(j->hashes);
    j->hashes = NULL;
    if (!j->key_count) return;
    j->key_count = 0;
    if (!--jobs.keyed) gateArm(&jobGate, false);
    jobGateRelease();
}

/* ------------------------------------------------------------------ running */

static void continueJobs(void);
static void beforeChange(const db *d, uint64_t hash);
static void beforeWhole(const db *d);

static const stageJob stages[] = {{STAGE_EXPIRE, continueJobs}, {0, NULL}};
static const feature running_jobs = {.name = "jobs", .stages = stages};
static const storeReaders readers = {
    .before = beforeChange, .whole = beforeWhole, .holds = jobReads};

static void runCommand(void *arg) {
    job *j = arg;
    j->c.cmd->proc(&j->c);
}

bool jobPause(unsigned elements) {
    job *j = (job *)jobs.running;
    check(j != NULL);
    if (j->is_unwanted) return true;
    if (j->to_end || j->goes_on || (j->left -= (int)elements) > 0) return false;
    j->left = jobs.cuts_all ? 0 : LOOK_AFTER;
    if (!jobs.cuts_all && clockTicks() < j->slice_end) return false;
    fiberSuspend();
    hotCheck(jobs.running == j);
    return j->is_unwanted;
}

void jobGoOn(const ctx *c) {
    if (!(c->flags & CTX_SLICED)) return;
    hotCheck(jobs.running && c == &jobs.running->c);
    ((job *)jobs.running)->goes_on = true;
}

static void end(job *j) {
    hotCheck(!j->has_ended);
    j->has_ended = true;
    listRemove(&jobs.all, &j->node);
    dropKeys(j);
    if (!jobs.all.count) storeSetReaders(NULL);
    fiberFree(j->stack);
    j->stack = NULL;
}

static void noteSlice(const job *j, int64_t us) {
    if (us > jobs.longest_us) jobs.longest_us = us;
    if (j->to_end) jobs.in_one_piece++;
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
    propagateUnitBegin();
    uint64_t started = clockTicks();
    j->slice_end = started + (jobs.paused ? 0 : jobs.budget);
    bool more = fiberResume(j->stack);
    uint64_t ticks = clockTicks() - started;
    propagateUnitEnd();
    j->is_running = false;
    jobs.running = outer;
    engineHot.current = below;
    (void)keyspaceUse(used); /* it was the main one */
    j->ticks += ticks;
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

/* Runs the jobs for which `concerns` is true to their end. */
static void runAll(bool (*concerns)(const job *j, const db *d, uint64_t hash), const db *d,
                   uint64_t hash) {
    listNode *n = listFirst(&jobs.all);
    while (n) {
        job *j = LIST_OWNER(n, job, node);
        bool runs = !j->is_running && concerns(j, d, hash); /* not from within its own slice */
        if (runs) runToEnd(j);
        n = runs ? listFirst(&jobs.all) : listNext(&jobs.all, n);
    }
}

static bool isIn(const job *j, const db *d, uint64_t hash) {
    (void)hash; /* of all keys */
    return !d || j->c.db == d;
}

static void beforeChange(const db *d, uint64_t hash) {
    if (unlikely(jobReads(d, hash))) runAll(hasKey, d, hash);
}

static void beforeWhole(const db *d) {
    hotCheck(threadIsMain());
    runAll(isIn, d, 0);
}

/* ------------------------------------------------------------------ turns */

static void stopStage(void) {
    jobs.has_stage = false;
    hooksRemoveFeature(&running_jobs);
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

/* The jobs of a turn: the first ones get their slices, and are the last ones then. */
static void continueJobs(void) {
    if (!jobs.all.count) {
        stopStage();
        return;
    }
    /* In a nested turn the command below has the time. */
    if (engineHot.current || jobs.paused) return;
    uint64_t begun_ticks = jobs.begun_ticks;
    jobs.begun_ticks = 0;
    const db *d;
    uint64_t hash;
    if (unlikely(jobGateOverdue(&d, &hash))) runAll(hasKey, d, hash);
    uint64_t end_ticks = clockTicks() + jobs.slice_ticks - begun_ticks;
    size_t left = jobs.all.count;
    do {
        listNode *first = left ? listFirst(&jobs.all) : NULL;
        if (!first) break;
        job *j = LIST_OWNER(first, job, node);
        left--;
        listRemove(&jobs.all, first);
        listAppend(&jobs.all, first);
        if (j->who->flags & SESSION_CLOSE_NOW) continue; /* it is freed soon */
        runSlice(j);
        if (j->has_ended) tellSession(j);
    } while (clockTicks() < end_ticks);
    engineStayAwake();
}

/* ------------------------------------------------------------------ begin and end */

/* The end of the wait: its second and last part of the command. */
static void reply(ctx *c) {
    job *j = blockState(c);
    check(j->has_ended);
    blockAddWork(c, j->ticks);
    c->flags |= j->c.flags & CTX_FAILED;
    outbufMoveAll(c->out, &j->out);
    session *s = c->who;
    bool is_limited = c->out == &s->out && s->carrier && s->carrier->output_grew;
    if (is_limited) s->carrier->output_grew(s);
    jobs.done++;
}

static void freeJob(void *state) {
    job *j = state;
    if (!j->has_ended) { /* its client is gone */
        j->is_unwanted = true;
        jobs.aborted++;
        runSlice(j);
    }
    check(j->has_ended);
    outbufClear(&j->out);
    memFree(j);
}

static size_t memoryOf(const void *state) {
    const job *j = state;
    return sizeof(*j) + outbufMemory(&j->out);
}

/* True if the command may be a job: it is one that a client has sent by itself, not the part of a
 * transaction or a script, which run in one piece. */
static bool mayBegin(const ctx *c) {
    if (c->flags & (CTX_SLICED | CTX_WOKEN | CTX_MAY_BLOCK) || blockIsDenied(c)) return false;
    if (c->outer || c->below || engineHot.loading || !engineConf.command_slice_us) return false;
    return c->argc <= ARGS_MAX && jobs.all.count < JOBS_MAX;
}

bool jobBegin(ctx *c) {
    if (!mayBegin(c)) return false;
    job *j = memNew(job);
    *j = (job){.who = c->who};
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
                                 .not_by_user = true,
                                 .is_run = true});
    ctxInitLater(&j->c, c->who, blockRequest(c->who), &j->out);
    j->c.db = c->db;
    j->c.now_ms = c->now_ms;
    j->c.look = c->look;
    j->c.flags = CTX_SLICED;
    if (!jobs.all.head.next) listInit(&jobs.all);
    if (!jobs.all.count) storeSetReaders(&readers);
    listAppend(&jobs.all, &j->node);
    jobs.begun++;
    takeKeys(j);
    if (!jobs.has_stage) hooksAddFeature(&running_jobs);
    jobs.has_stage = true;
    engineStayAwake();
    /* Until its first point, the command looks up what it has looked up just now. */
    dbLookupsRepeat(j->c.db, true);
    runFirstSlice(j);
    dbLookupsRepeat(j->c.db, false);
    if (j->has_ended) tellSession(j);
    return true;
}

bool jobIsOf(const session *s) { return blockKindOf(s) == BLOCK_JOB; }

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
    return OK;
}

void jobPrintStats(str *out) {
    strAppendFormat(out,
                    "jobs_running:%llu\r\njobs_done:%llu\r\njobs_aborted:%llu\r\n"
                    "jobs_in_one_piece:%llu\r\njob_longest_slice_usec:%lld\r\n"
                    "job_writes_held:%llu\r\njob_longest_wait_usec:%lld\r\n",
                    (unsigned long long)jobs.all.count, (unsigned long long)jobs.done,
                    (unsigned long long)jobs.aborted, (unsigned long long)jobs.in_one_piece,
                    (long long)jobs.longest_us, (unsigned long long)jobGateCount(),
                    (long long)jobGateLongestUs());
}

void jobResetStats(void) {
    hotCheck(threadIsMain());
    jobs.begun = jobs.done = jobs.aborted = jobs.in_one_piece = 0;
    jobs.longest_us = 0;
    jobGateResetStats();
}
