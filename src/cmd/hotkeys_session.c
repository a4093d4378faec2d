/* SPDX-License-Identifier: BSD-3-Clause
 *
 * HOTKEYS START and STOP: the keys that cost most processor time or network traffic while a session
 * runs, each command being measured. Counters are those of Space-Saving: a key without one takes
 * over the lowest, so the figures of keys that are not among the first may be too high. Costs about
 * 0.2 us a command and 0.3 MB while there is a session, otherwise nothing. Main thread only. */
#include <sys/resource.h>
#include <sys/time.h>

#include "base/base.h"
#include "base/hash.h"
#include "base/number.h"
#include "base/random.h"
#include "cmd/hotkeys_priv.h"
#include "cmd/procs.h"
#include "engine/lifecycle.h"
#include "engine/measure.h"
#include "engine/reply.h"
#include "store/store.h"

enum { METRIC_CPU = 1, METRIC_NET = 2, METRICS = 2 };
enum { KEYS_MAX = 64, KEYS_DEFAULT = 10, COUNTERS = 4 * KEYS_MAX };
enum { DURATION_MAX = 1000000, KEY_BYTES_MAX = 512 };

/* Costs of keys: nanoseconds or bytes. */
typedef struct costTable {
    int count;
    uint64_t hash[COUNTERS], cost[COUNTERS];
    str key[COUNTERS];
} costTable;

/* What HOTKEYS START says. */
typedef struct sessionOptions {
    int metrics;
    int64_t keys, duration_s, ratio;
    uint64_t slots[SLOT_COUNT / 64];
    bool some_slots; /* only those */
} sessionOptions;

/* Sums over commands. */
typedef struct costSum {
    uint64_t ns, bytes;
} costSum;

typedef struct hotSession {
    sessionOptions options;
    bool runs;
    int64_t start_ms, duration_ms; /* of one that was stopped */
    struct rusage used;            /* when it began; of one that was stopped: difference */
    costSum all, selected, sampled;
    /* The outermost command and the one whose keys count that are being executed, with the output
     * that was pending before them. */
    const ctx *outermost, *counted;
    size_t pending_outermost, pending_counted;
    costTable cpu, net;
} hotSession;

static hotSession *hot; /* NULL: there is none */

/* ------------------------------------------------------------------ measuring */

static bool slotIsSelected(int slot) {
    return !hot->options.some_slots || hot->options.slots[slot / 64] >> slot % 64 & 1;
}

static void addCost(costTable *t, slice key, uint64_t hash, uint64_t cost) {
    int least = 0, at = -1;
    for (int i = 0; i < t->count && at < 0; i++) {
        if (t->hash[i] == hash) at = i;
        if (t->cost[i] < t->cost[least]) least = i;
    }
    if (at < 0) {
        at = t->count < COUNTERS ? t->count++ : least;
        t->hash[at] = hash;
        strClear(&t->key[at]);
        strAppend(&t->key[at], key.ptr, sizeMin(key.len, KEY_BYTES_MAX));
    }
    t->cost[at] += cost;
}

/* True if the command's keys count: those of EXEC and scripts are those of what they run, and of
 * what is declared. */
static bool countsKeys(const ctx *c) {
    if (!c->outer) return true;
    return c->outer->cmd && c->outer->cmd->flags & CMD_RUNS_QUEUE; /* a module may have none */
}

static void before(ctx *c) {
    if (!c->outer) {
        hot->outermost = c;
        hot->pending_outermost = outbufPending(c->out);
    }
    if (countsKeys(c)) {
        hot->counted = c;
        hot->pending_counted = outbufPending(c->out);
    }
}

/* Of a command that has waited only the request is known. */
static uint64_t trafficOf(const ctx *c, bool knows_pending, size_t pending) {
    size_t now = outbufPending(c->out);
    uint64_t request = c->request ? (uint64_t)measureRequestBytes(c) : 0;
    return request + (knows_pending && now > pending ? now - pending : 0);
}

/* Divides the cost of a command among its keys, if it is one of the sample. */
static void countKeys(const ctx *c, costSum cost) {
    enum { FEW = 16 };
    keyPosition few[FEW];
    int count, selected = 0;
    keyPosition *keys = commandAllKeys(c->cmd, c->argv, c->argc, few, FEW, &count);
    bool sampled = randomUniform((uint64_t)hot->options.ratio) == 0;
    for (int i = 0; i < count; i++) {
        slice key = c->argv[keys[i].arg_index];
        uint64_t hash = storeHash(key);
        if (!slotIsSelected(storeHashSlot(hash))) continue;
        selected++;
        if (!sampled) continue;
        addCost(&hot->cpu, key, hash, cost.ns / (uint64_t)count);
        addCost(&hot->net, key, hash, cost.bytes / (uint64_t)count);
    }
    if (keys != few) memFree(keys);
    if (!selected) return;
    hot->selected.ns += cost.ns;
    hot->selected.bytes += cost.bytes;
    if (!sampled) return;
    hot->sampled.ns += cost.ns;
    hot->sampled.bytes += cost.bytes;
}

static void stop(void);

static bool isOver(void) {
    int64_t length_ms = hot->options.duration_s * 1000;
    return length_ms && engineHot.now_ms - hot->start_ms >= length_ms;
}

static void after(ctx *c, int64_t duration_ns) {
    if (isOver()) {
        stop();
        return;
    }
    if (c->flags & CTX_NOT_RUN) return; /* it waits */
    bool woken = c->flags & CTX_WOKEN, is_counted = c == hot->counted;
    bool is_outermost = c == hot->outermost;
    if (is_outermost || (woken && !c->outer)) {
        hot->all.ns += (uint64_t)duration_ns;
        hot->all.bytes += trafficOf(c, is_outermost, hot->pending_outermost);
        hot->outermost = NULL;
    }
    if (!is_counted && !woken) return; /* HOTKEYS START, or within a script */
    hot->counted = NULL;
    countKeys(c, (costSum){(uint64_t)duration_ns, trafficOf(c, is_counted, hot->pending_counted)});
}

const commandObserver hotkeysObserver = {.name = "hotkeys", .before = before, .after = after};

/* ------------------------------------------------------------------ START */

static bool refuse(ctx *c, const char *error) {
    replyError(c, sliceOf(error));
    return false;
}

/* Parses "METRICS count [CPU] [NET]" at argument 2; *next: the argument after it. */
static bool parseMetrics(ctx *c, sessionOptions *out, int *next) {
    int64_t count, given = 0;
    if (c->argc < 4 || !ctxArgIs(c, 2, "metrics"))
        return refuse(c, "ERR METRICS parameter is required");
    if (!ctxArgIntIn(c, 3, 1, METRICS, &count, "ERR METRICS count must be > 0 and <= 2"))
        return false;
    int i = 4;
    for (; given < count && i < c->argc; i++, given++) {
        int metric = ctxArgIs(c, i, "cpu") ? METRIC_CPU : ctxArgIs(c, i, "net") ? METRIC_NET : 0;
        if (!metric) return refuse(c, "ERR METRICS no valid metrics passed. Supported: CPU|NET");
        if (out->metrics & metric) {
            replyErrorFormat(c, "ERR METRICS %s defined more than once!",
                             metric == METRIC_CPU ? "CPU" : "NET");
            return false;
        }
        out->metrics |= metric;
    }
    *next = i;
    return given == count ||
           refuse(c, "ERR METRICS count does not match number of metric types provided");
}

/* Parses "SLOTS count slot..." at argument *i, which is set to the last slot. */
static bool parseSlots(ctx *c, int *i, sessionOptions *out) {
    hotCheck(*i + 1 < c->argc);
    int64_t count, slot;
    if (!engineCluster())
        return refuse(c, "ERR SLOTS parameter cannot be used in non-cluster mode");
    if (!ctxArgIntIn(c, *i + 1, 1, SLOT_COUNT, &count,
                     "ERR SLOTS count must be between 1 and 16384"))
        return false;
    if (count > c->argc - *i - 2) return refuse(c, "ERR not enough slot numbers provided");
    out->some_slots = true;
    for (*i += 1; count > 0; count--) {
        if (!ctxArgIntIn(c, ++*i, 0, SLOT_COUNT - 1, &slot, "ERR Invalid or out of range slot"))
            return false;
        uint64_t bit = UINT64_C(1) << slot % 64;
        if (out->slots[slot / 64] & bit) return refuse(c, "ERR duplicate slot number");
        out->slots[slot / 64] |= bit;
    }
    return true;
}

static bool parseStart(ctx *c, sessionOptions *out) {
    *out = (sessionOptions){.keys = KEYS_DEFAULT, .ratio = 1};
    int i = 0; /* of the first argument after the metrics */
    if (!parseMetrics(c, out, &i)) return false;
    for (; i < c->argc; i++) {
        bool has_value = i + 1 < c->argc, valid;
        if (has_value && ctxArgIs(c, i, "count")) {
            valid =
                ctxArgIntIn(c, ++i, 1, KEYS_MAX, &out->keys, "ERR COUNT must be between 1 and 64");
        } else if (has_value && ctxArgIs(c, i, "duration")) {
            valid = ctxArgIntIn(c, ++i, 1, DURATION_MAX, &out->duration_s,
                                "ERR DURATION must be between 1 and 1000000");
        } else if (has_value && ctxArgIs(c, i, "sample")) {
            valid =
                ctxArgIntIn(c, ++i, 1, INT32_MAX, &out->ratio, "ERR SAMPLE ratio must be positive");
        } else if (has_value && ctxArgIs(c, i, "slots")) {
            valid = parseSlots(c, &i, out);
        } else {
            valid = refuse(c, "ERR syntax error");
        }
        if (!valid) return false;
    }
    return true;
}

static void forget(void) {
    if (!hot) return;
    for (int i = 0; i < COUNTERS; i++) {
        strFree(&hot->cpu.key[i]);
        strFree(&hot->net.key[i]);
    }
    memFree(hot);
    hot = NULL;
}

/* HOTKEYS START METRICS count [CPU] [NET] [COUNT keys] [DURATION seconds] [SAMPLE ratio] [SLOTS
 * count slot [slot ...]]. Reply: OK. What a session before has measured is forgotten. */
void hotkeysStartCommand(ctx *c) {
    hotCheck(c->argc >= 2);
    sessionOptions options;
    if (hot && hot->runs && !isOver()) {
        replyError(c, SLICE("ERR hotkey tracking session already in progress"));
        return;
    }
    if (!parseStart(c, &options)) return;
    if (hot && hot->runs) stop();
    forget();
    hot = memNew(hotSession);
    hot->options = options;
    hot->start_ms = engineHot.now_ms;
    hot->runs = true;
    (void)getrusage(RUSAGE_SELF, &hot->used); /* cannot fail */
    commandObserverArm(&hotkeysObserver, true);
    replyOk(c);
}

/* ------------------------------------------------------------------ STOP, GET, RESET */

static int64_t msOf(struct timeval t) { return (int64_t)t.tv_sec * 1000 + t.tv_usec / 1000; }

/* Ends the measuring; what was measured remains. */
static void stop(void) {
    check(hot->runs);
    struct rusage now;
    (void)getrusage(RUSAGE_SELF, &now); /* cannot fail */
    timersub(&now.ru_utime, &hot->used.ru_utime, &hot->used.ru_utime);
    timersub(&now.ru_stime, &hot->used.ru_stime, &hot->used.ru_stime);
    hot->duration_ms = engineHot.now_ms - hot->start_ms;
    if (isOver()) hot->duration_ms = hot->options.duration_s * 1000;
    hot->runs = false;
    commandObserverArm(&hotkeysObserver, false);
}

/* HOTKEYS STOP. Reply: OK, null if no session runs. */
void hotkeysStopCommand(ctx *c) {
    bool runs = hot && hot->runs && !isOver();
    if (hot && hot->runs) stop();
    if (runs) {
        replyOk(c);
    } else {
        replyNull(c);
    }
}

bool hotkeysForgetSession(void) {
    if (hot && hot->runs && !isOver()) return false;
    if (hot && hot->runs) stop();
    forget();
    return true;
}

static void replyField(ctx *c, const char *name, int64_t value) {
    replyBulkText(c, name);
    replyInteger(c, value);
}

/* Replies ranges of slots: [first, last], or [slot]. */
static void replySlots(ctx *c) {
    int64_t ranges = 0;
    replyBulkText(c, "selected-slots");
    respDeferred array = respDeferBegin(c->out);
    for (int slot = 0; slot < SLOT_COUNT; slot++) {
        if (!slotIsSelected(slot)) continue;
        int last = slot;
        while (last + 1 < SLOT_COUNT && slotIsSelected(last + 1)) last++;
        replyArray(c, slot == last ? 1 : 2);
        replyInteger(c, slot);
        if (slot != last) replyInteger(c, last);
        slot = last;
        ranges++;
    }
    respDeferEnd(c->out, array, '*', c->proto, ranges);
}

/* Replies the first keys of a table with their costs in `unit`. */
static void replyKeys(ctx *c, const char *name, const costTable *t, uint64_t unit) {
    bool replied[COUNTERS] = {false};
    int64_t found = 0;
    replyBulkText(c, name);
    respDeferred array = respDeferBegin(c->out);
    for (; found < hot->options.keys; found++) {
        int best = -1;
        for (int i = 0; i < t->count; i++) {
            bool before_best = best < 0 || t->cost[i] > t->cost[best];
            if (!replied[i] && t->cost[i] >= unit && before_best) best = i;
        }
        if (best < 0) break;
        replied[best] = true;
        replyBulk(c, strSlice(&t->key[best]));
        replyInteger(c, (int64_t)(t->cost[best] / unit));
    }
    respDeferEnd(c->out, array, '*', c->proto, 2 * found);
}

/* Replies sums; those of selected slots and of the sample only if they differ. Returns the number
 * of fields. */
static int64_t replySums(ctx *c) {
    enum { NS_PER_US = 1000 };
    bool some = hot->options.some_slots, sampled = some && hot->options.ratio > 1;
    if (sampled)
        replyField(c, "sampled-commands-selected-slots-us", (int64_t)hot->sampled.ns / NS_PER_US);
    if (some)
        replyField(c, "all-commands-selected-slots-us", (int64_t)hot->selected.ns / NS_PER_US);
    replyField(c, "all-commands-all-slots-us", (int64_t)hot->all.ns / NS_PER_US);
    if (sampled)
        replyField(c, "net-bytes-sampled-commands-selected-slots", (int64_t)hot->sampled.bytes);
    if (some) replyField(c, "net-bytes-all-commands-selected-slots", (int64_t)hot->selected.bytes);
    replyField(c, "net-bytes-all-commands-all-slots", (int64_t)hot->all.bytes);
    return 2 + 2 * some + 2 * sampled;
}

bool hotkeysReplySession(ctx *c) {
    if (!hot) return false;
    bool runs = hot->runs && !isOver();
    if (hot->runs && !runs) stop();
    struct rusage used = hot->used, now;
    if (runs) {
        (void)getrusage(RUSAGE_SELF, &now); /* cannot fail */
        timersub(&now.ru_utime, &used.ru_utime, &used.ru_utime);
        timersub(&now.ru_stime, &used.ru_stime, &used.ru_stime);
    }
    int64_t duration_ms = runs ? engineHot.now_ms - hot->start_ms : hot->duration_ms;
    replyArray(c, 1);
    respDeferred map = respDeferBegin(c->out);
    replyField(c, "tracking-active", runs);
    replyField(c, "sample-ratio", hot->options.ratio);
    replySlots(c);
    int64_t fields = 3 + replySums(c);
    replyField(c, "collection-start-time-unix-ms", hot->start_ms);
    replyField(c, "collection-duration-ms", duration_ms);
    fields += 2;
    if (hot->options.metrics & METRIC_CPU) {
        replyField(c, "total-cpu-time-user-ms", msOf(used.ru_utime));
        replyField(c, "total-cpu-time-sys-ms", msOf(used.ru_stime));
        fields += 2;
    }
    if (hot->options.metrics & METRIC_NET) {
        replyField(c, "total-net-bytes", (int64_t)hot->sampled.bytes);
        fields++;
    }
    if (hot->options.metrics & METRIC_CPU) {
        replyKeys(c, "by-cpu-time-us", &hot->cpu, 1000);
        fields++;
    }
    if (hot->options.metrics & METRIC_NET) {
        replyKeys(c, "by-net-bytes", &hot->net, 1);
        fields++;
    }
    respDeferEnd(c->out, map, '%', c->proto, fields);
    return true;
}
