/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Keeps used memory below maxmemory by eviction. A turn of eviction takes bounded time; the rest is
 * done before the next batch, or by a periodic job if no request arrives. Main thread only. */
#include "engine/memory.h"

#include <math.h>

#include "base/base.h"
#include "engine/compress_values.h"
#include "engine/deliver.h"
#include "engine/engine.h"
#include "engine/engine_priv.h"
#include "engine/hot.h"
#include "engine/keyspace.h"
#include "engine/latency.h"
#include "engine/pause.h"
#include "engine/reply.h"
#include "engine/transaction.h"
#include "store/saving.h"
#include "store/store.h"

static struct {
    uint64_t bytes; /* value of maxmemory in bytes; 0: no limit */
    /* Memory that is not the dataset's, as measured last; only for maxmemory-dataset. */
    size_t overhead, lasting;
    /* Memory of unfinished commands that has no keys evicted. */
    size_t spared;
    const memoryMeasures *measures;
    const memoryParts *parts;
    int64_t measured_us, next_spared_us; /* monotonic */
    bool suspended;
    bool timed_out;     /* the last turn ended for lack of time */
    int64_t over_since; /* us, monotonic; 0: within the limit */
    uint64_t over_us;   /* total time over the limit */
} limit;

/* ------------------------------------------------------------------ eviction */

/* Maximum duration of a turn: increases linearly to 0.5 ms at tenacity 10, then by 15 % per step;
 * 100: unlimited. */
static int64_t turnLengthUs(void) {
    hotCheck(engineConf.maxmemory_eviction_tenacity >= 0);
    int tenacity = engineConf.maxmemory_eviction_tenacity;
    if (tenacity <= 10) return 50 * tenacity;
    if (tenacity >= 100) return INT64_MAX;
    return (int64_t)(500 * pow(1.15, tenacity - 10));
}

static evictRule ruleOf(int policy) {
    evictRule rule = {.order = EVICT_LRU,
                      .samples = engineConf.maxmemory_samples,
                      .later = engineConf.lazyfree_lazy_eviction};
    rule.only_volatile = policy == POLICY_VOLATILE_LRU || policy == POLICY_VOLATILE_LFU ||
                         policy == POLICY_VOLATILE_RANDOM || policy == POLICY_VOLATILE_TTL;
    if (policy == POLICY_VOLATILE_LFU || policy == POLICY_ALLKEYS_LFU) rule.order = EVICT_LFU;
    if (policy == POLICY_VOLATILE_TTL) rule.order = EVICT_TTL;
    if (policy == POLICY_VOLATILE_RANDOM || policy == POLICY_ALLKEYS_RANDOM)
        rule.order = EVICT_RANDOM;
    return rule;
}

bool memoryEvictRule(evictRule *out) {
    if (engineConf.maxmemory_policy == POLICY_NOEVICTION || keyspaceIsImporting()) return false;
    *out = ruleOf(engineConf.maxmemory_policy);
    return true;
}

static size_t excluded, before_auth; /* bytes that do not count */
/* Upper bound of the memory of messages about evictions that are not sent yet. */
static size_t told;

void memorySetExcluded(size_t bytes) { excluded = bytes; }
void memorySetBeforeAuth(size_t bytes) { before_auth = bytes; }
size_t memoryExcluded(void) { return excluded; }

void memorySetMeasures(const memoryMeasures *measures) { limit.measures = measures; }

void memorySetParts(const memoryParts *parts) { limit.parts = parts; }

/* Used memory at which one of the limits is reached. */
static size_t mostUsed(void) {
    size_t most = limit.bytes ? limit.bytes + excluded + before_auth + limit.spared : SIZE_MAX / 2;
    if (likely(!engineConf.maxmemory_dataset)) return most;
    return sizeMin(most, (size_t)engineConf.maxmemory_dataset + limit.overhead);
}

/* Values that were removed during a snapshot without a fork count as freed: evicting more would not
 * free them sooner. */
static bool fits(void) {
    size_t used = memUsed(), most = mostUsed() + told;
    return likely(used <= most) || used <= most + storeSavingKeptBytes();
}

void memoryTellEvicted(void (*tell)(db *d, slice key), db *d, slice key) {
    hotCheck(threadIsMain());
    size_t before = memUsed();
    deliverNoteReceivers(true);
    tell(d, key);
    deliverNoteReceivers(false);
    size_t after = memUsed();
    if (after > before) told += after - before;
}

/* Blocks that the background thread has freed, before keys are evicted: a millisecond at most. */
enum { TAKE_MAX = 10000 };

/* Waits a little if memory that is being freed in the background may be enough. */
static bool awaitBackground(int64_t deadline_us) {
    hotCheck(deadline_us > 0);
    enum { WAIT_US = 200 };
    while (storeFreePending() && clockMonoUs() < deadline_us) {
        clockSleepUs(WAIT_US);
        (void)storeTakeBack(TAKE_MAX); /* what matters is pending, see above */
        if (fits()) return true;
    }
    return fits();
}

/* True if large values that were evicted fill the gap as soon as they have been freed. */
static bool isComingBack(void) {
    size_t bytes = storeFreePendingBytes();
    return bytes && memUsed() <= mostUsed() + bytes;
}

/* True if memory fits or will fit with more time; false if no key is left to evict. */
static bool evict(int64_t length_us) {
    hotCheck(length_us >= 0);
    enum { LOOK = 16 }; /* keys between two reads of the clock */
    size_t released =
        hooksPressure(); /* partly freed only at the end of the turn, with the clients */
    if (fits()) return true;
    if (released && memUsed() <= mostUsed() + released) {
        limit.timed_out = true;
        return true;
    }
    if (unlikely(isComingBack())) {
        limit.timed_out = true;
        return true;
    }
    evictRule rule;
    if (!memoryEvictRule(&rule)) return false;
    int64_t started_us = clockMonoUs();
    int64_t deadline_us = length_us < INT64_MAX - started_us ? started_us + length_us : INT64_MAX;
    for (unsigned victims = 1; !fits(); victims++) {
        if (!storeEvictOne(keyspaceMain(), &rule)) return awaitBackground(deadline_us);
        if (unlikely(isComingBack())) {
            limit.timed_out = true;
            return true;
        }
        if (victims % LOOK == 0 && clockMonoUs() >= deadline_us) {
            limit.timed_out = true;
            return true;
        }
    }
    return true;
}

/* Records after a turn whether memory is over the limit, and whether nothing can be done about
 * it. */
static void recordResult(bool over, bool full) {
    hotCheck(!full || over);
    if (unlikely(full != gateIsArmed(&memoryGate))) gateArm(&memoryGate, full);
    if (likely(over == (limit.over_since != 0))) return;
    int64_t now_us = clockMonoUs();
    if (!over) limit.over_us += (uint64_t)(now_us - limit.over_since);
    limit.over_since = over ? now_us : 0;
}

static void disarmGate(void) {
    limit.timed_out = false;
    recordResult(false, false);
}

/* Measuring costs a walk over the clients. */
static void measureOverhead(void) {
    enum { PAUSE_US = 1000 };
    int64_t now_us = clockMonoUs();
    if (!limit.measures) return;
    if (now_us - limit.measured_us >= PAUSE_US) {
        limit.lasting = limit.measures->lasting();
        limit.measured_us = now_us;
    }
    limit.overhead = limit.lasting + limit.measures->passing();
}

/* Commands of which a part was received can take an eighth of maxmemory from the keys. Bytes beyond
 * that are counted when these commands are complete. The walk over the clients takes at most a
 * hundredth of the time. */
static void measureUnfinished(void) {
    enum { SHARE = 8, PAUSES = 100 };
    int64_t began_us = clockMonoUs();
    if (!limit.measures || began_us < limit.next_spared_us) return;
    size_t unfinished = limit.measures->unfinished(), most = limit.bytes / SHARE;
    limit.spared = limit.bytes && unfinished > most ? unfinished - most : 0;
    int64_t now_us = clockMonoUs();
    hotCheck(now_us >= began_us);
    limit.next_spared_us = now_us + (now_us - began_us) * PAUSES;
}

static bool partsExist(void) { return limit.parts && limit.parts->exist(); }

static void keep(int64_t length_us) {
    limit.timed_out = false;
    if (unlikely(engineConf.maxmemory_dataset != 0) && !fits()) measureOverhead();
    if (unlikely(limit.spared || (limit.bytes && !fits()))) measureUnfinished();
    if (unlikely(told)) told = sizeMin(told, deliverOnItsWay());
    bool full = false;
    if (unlikely(!fits()))
        (void)storeTakeBack(TAKE_MAX); /* freed in the background it counts until it is back */
    if (unlikely(!fits()) && pauseNow() == PAUSE_NONE) {
        int64_t started_us = clockMonoUs();
        compressValuesUnderPressure(length_us);
        full = !evict(length_us);
        latencyNote("eviction-cycle", (clockMonoUs() - started_us) / 1000);
    }
    recordResult(full || limit.timed_out, full);
    if (likely(!partsExist())) return;
    if (limit.parts->keep(length_us, pauseNow() == PAUSE_NONE)) limit.timed_out = true;
}

/* Nothing is evicted during a load: the dataset was within the limit when it was saved, and no
 * client could be told. In a nested turn a command is being executed, for which keys must not
 * change. */
void memoryKeep(void) {
    if (!engineHot.loading && !engineHot.current) keep(turnLengthUs());
}

/* ------------------------------------------------------------------ the gate */

static bool mayNeedMemory(const commandSpec *spec) {
    return spec->flags & (CMD_DENYOOM | CMD_RUNS_QUEUE);
}

static gateVerdict ask(ctx *c) {
    if (c->cmd->flags & CMD_RUNS_QUEUE && !transactionHas(c->who, CMD_DENYOOM)) return GATE_PASS;
    bool by_dataset =
        engineConf.maxmemory_dataset && (!limit.bytes || memoryCounted() <= limit.bytes);
    if (by_dataset) {
        replyError(c, SLICE("OOM command not allowed when the dataset > 'maxmemory-dataset'."));
    } else {
        replyError(c, SLICE("OOM command not allowed when used memory > 'maxmemory'."));
    }
    return GATE_REFUSED;
}

const gate memoryGate = {.name = "memory",
                         .selects = mayNeedMemory,
                         .admit = ask,
                         .waived_for_writer = true,
                         /* A replica that does not ignore maxmemory; an import then fails. */
                         .origins = GATE_FOR_USERS | 1u << ORIGIN_PRIMARY | 1u << ORIGIN_IMPORT};

bool memoryRefuses(void) { return gateIsArmed(&memoryGate); }

uint64_t memoryGateMask(void) { return gateMask(&memoryGate); }

uint64_t memoryGatesOfStart(void) {
    return gateMask(&memoryGate) | (limit.parts ? limit.parts->gates_of_start() : 0);
}

/* ---------------------------------------------------------------- directive, periodic job, INFO */

uint64_t memoryLimit(void) { return limit.bytes; }

size_t memoryCounted(void) {
    size_t used = memUsed();
    return used > excluded ? used - excluded : 0;
}

bool memoryIsOver(void) {
    int64_t dataset = engineConf.maxmemory_dataset;
    return (limit.bytes && memoryCounted() > limit.bytes) ||
           (dataset && memUsed() > (size_t)dataset + limit.overhead);
}

static void setLimited(void) {
    bool limited = limit.bytes || engineConf.maxmemory_dataset || partsExist();
    engineHot.memory_limited = limited && !limit.suspended;
}

void memoryUpdateLimited(void) {
    setLimited();
    limit.timed_out = true; /* check in the next tick */
}

/* A percentage refers to the physical memory, or to the container's limit if that is lower. */
static void setLimit(void) {
    int percent = configLimitShare(engineConf.maxmemory);
    limit.bytes =
        percent ? memMachineBytes() / 100 * (unsigned)percent : (uint64_t)engineConf.maxmemory;
    limit.spared = 0; /* measured anew with the next command */
    limit.next_spared_us = 0;
    setLimited();
}

void memorySetSuspended(bool on) {
    hotCheck(threadIsMain());
    if (limit.suspended == on) return;
    limit.suspended = on;
    setLimited();
    if (on) {
        disarmGate();
        if (limit.parts) limit.parts->disarm();
    } else {
        limit.timed_out = true; /* check in the next tick */
    }
}

status memoryApplyLimit(reason *why) {
    hotCheck(threadIsMain());
    (void)why; /* cannot fail */
    setLimit();
    if (!engineHot.memory_limited) {
        disarmGate();
        return OK;
    }
    if (limit.bytes && !fits())
        logWarning(
            "WARNING: the new maxmemory value set via CONFIG SET (%llu) is smaller than the current memory "
            "usage (%zu). This will result in key eviction and/or the inability to accept new write "
            "commands depending on the maxmemory-policy.",
            (unsigned long long)limit.bytes, memUsed());
    limit.timed_out = true; /* check in the next tick */
    return OK;
}

status memoryApplyDatasetLimit(reason *why) {
    hotCheck(threadIsMain());
    (void)why; /* cannot fail */
    setLimited();
    limit.measured_us = 0;
    measureOverhead();
    limit.timed_out = true; /* check in the next tick */
    if (!engineHot.memory_limited) disarmGate();
    return OK;
}

static status init(reason *why) {
    enum { UNLIKELY_SMALL = 1 << 20 };
    (void)why; /* cannot fail */
    setLimit();
    if (limit.bytes && limit.bytes < UNLIKELY_SMALL)
        logWarning(
            "WARNING: You specified a maxmemory value that is less than 1MB (current value is %llu bytes). "
            "Are you sure this is what you really want?",
            (unsigned long long)limit.bytes);
    return OK;
}

static void evictTick(int64_t budget_us) {
    if (limit.timed_out && engineHot.memory_limited) keep(budget_us);
}

/* Measures the memory that is not the dataset's, which may have shrunk. */
static void overheadTick(int64_t budget_us) {
    (void)budget_us; /* it takes as long as it takes */
    if (unlikely(engineConf.maxmemory_dataset != 0)) measureOverhead();
}

static bool evictIsBusy(void) { return limit.timed_out && engineHot.memory_limited; }

static void printStats(str *out) {
    uint64_t current_us = limit.over_since ? (uint64_t)(clockMonoUs() - limit.over_since) : 0;
    strAppendField(out, "evicted_keys", storeStats(keyspaceMain()).evicted);
    strAppendField(out, "total_eviction_exceeded_time", (limit.over_us + current_us) / 1000);
    strAppendField(out, "current_eviction_exceeded_time", current_us / 1000);
}

static void resetStats(void) { limit.over_us = 0; }

static const tickJob ticks[] = {
    {"evict", 0, evictTick, evictIsBusy}, {"overhead", 100, overheadTick, NULL}, {0}};
static const gate *const gates[] = {&memoryGate, NULL};
static const infoSection sections[] = {
    {"stats", "# Stats", INFO_NORMAL, INFO_STATS, printStats},
    {0},
};

const feature memoryFeature = {.name = "memory",
                               .info = sections,
                               .ticks = ticks,
                               .gates = gates,
                               .init = init,
                               .on_stats_reset = resetStats};
