/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Hot keys as Valkey 9.2 counts them: in windows of some seconds, with Space-Saving over a random
 * sample of the accesses to keys; what the last finished window has found is reported. Invariant:
 * the observer is armed, and there are counters, only if hotkeys-top-k is above 0. Costs a scan of
 * the counters for each access that is sampled. Main thread only. */
#include <math.h>
#include <stdlib.h>

#include "base/base.h"
#include "base/random.h"
#include "engine/command.h"
#include "engine/ctx.h"
#include "engine/engine_priv.h"
#include "engine/hot.h"
#include "engine/hotkeys.h"
#include "engine/hotkeys_priv.h"
#include "store/store.h"

enum { KEY_BYTES_MAX = 512, PERCENT_ALL = 100, MS_PER_S = 1000 };

typedef struct windowKey {
    uint64_t hash, count, error; /* `error`: how much the count may be too high */
    int db_id;
    str key; /* truncated if it is very long */
} windowKey;

static struct {
    windowKey *keys; /* of the running window; NULL: hotkeys-top-k is 0 */
    int count, cap;
    uint64_t samples;
    int64_t start_ms;
    /* The last finished window. */
    hotWindowKey *found;
    int found_count;
    uint64_t found_samples;
    int64_t found_ms; /* its length, 0: there is none */
} window;

/* ------------------------------------------------------------------ counting */

static void forgetCounters(void) {
    hotCheck(window.count <= window.cap);
    for (int i = 0; i < window.count; i++) strFree(&window.keys[i].key);
    window.count = 0;
    window.samples = 0;
    window.start_ms = engineHot.now_ms;
}

static void forgetFound(void) {
    hotCheck(window.found_count >= 0);
    for (int i = 0; i < window.found_count; i++) strFree(&window.found[i].key);
    memFree(window.found);
    window.found = NULL;
    window.found_count = 0;
    window.found_samples = 0;
    window.found_ms = 0;
}

static void countKey(int db_id, slice key) {
    hotCheck(window.cap > 0);
    uint64_t hash = storeHash(key);
    windowKey *least = &window.keys[0];
    window.samples++;
    for (windowKey *k = window.keys; k < window.keys + window.count; k++) {
        if (k->hash == hash && k->db_id == db_id) {
            k->count++;
            return;
        }
        if (k->count < least->count) least = k;
    }
    if (window.count < window.cap) {
        least = &window.keys[window.count++];
        *least = (windowKey){.key = STR_EMPTY};
    }
    *least = (windowKey){hash, least->count + 1, least->count, db_id, least->key};
    strClear(&least->key);
    strAppend(&least->key, key.ptr, sizeMin(key.len, KEY_BYTES_MAX));
}

/* Keys of EXEC and of scripts are counted with what they run; OBJECT and DEBUG look at keys from
 * outside. */
static bool isCounted(const ctx *c) {
    hotCheck(c->cmd);
    if (c->origin == ORIGIN_PRIMARY || c->origin == ORIGIN_AOF) return false;
    if (c->cmd->flags & (CMD_RUNS_QUEUE | CMD_NO_MANDATORY_KEYS)) return false;
    const command *named = c->cmd->parent ? c->cmd->parent : c->cmd;
    return !sliceIs(named->name, "object") && !sliceIs(named->name, "debug");
}

static void after(ctx *c, int64_t duration_ns) {
    (void)duration_ns;
    enum { FEW = 16 };
    if (c->flags & CTX_NOT_RUN || !isCounted(c)) return; /* it waits */
    keyPosition few[FEW];
    int count;
    uint64_t percent = (uint64_t)engineConf.hotkeys_sampling_percentage;
    keyPosition *keys = commandAllKeys(c->cmd, c->argv, c->argc, few, FEW, &count);
    for (int i = 0; i < count; i++) {
        bool sampled = percent >= PERCENT_ALL || randomUniform(PERCENT_ALL) < percent;
        if (sampled) countKey(c->who->db_id, c->argv[keys[i].arg_index]);
    }
    if (keys != few) memFree(keys);
}

const commandObserver hotkeysWindowObserver = {.name = "hotkeys-window", .after = after};

/* ------------------------------------------------------------------ windows */

/* Twice the middle between the count and the least that it can be. */
static uint64_t middleOf(const windowKey *k) { return 2 * k->count - k->error; }

static int byMiddle(const void *a, const void *b) {
    uint64_t x = middleOf(a), y = middleOf(b);
    return (x < y) - (x > y);
}

/* Keeps what the running window has found. */
static void keepFound(int64_t span_ms) {
    check(span_ms > 0);
    double per_count = (double)PERCENT_ALL / engineConf.hotkeys_sampling_percentage * MS_PER_S /
                       (double)span_ms / 2;
    window.found_samples = window.samples;
    window.found_ms = span_ms;
    if (!window.count) return;
    qsort(window.keys, (size_t)window.count, sizeof(*window.keys), byMiddle);
    window.found = memNewArray(hotWindowKey, (size_t)window.count);
    for (; window.found_count < window.count; window.found_count++) {
        windowKey *k = &window.keys[window.found_count];
        window.found[window.found_count] =
            (hotWindowKey){k->key, k->db_id, llround((double)middleOf(k) * per_count)};
        k->key = STR_EMPTY; /* moved */
    }
}

/* Ends the running window if its time is over. One that lasted more than twice as long as it should
 * is dropped. */
static void closeWindow(void) {
    int64_t length_ms = (int64_t)engineConf.hotkeys_window_seconds * MS_PER_S;
    int64_t span_ms = engineHot.now_ms - window.start_ms;
    if (!window.keys || span_ms < length_ms) return;
    forgetFound();
    if (span_ms <= 2 * length_ms) keepFound(span_ms);
    forgetCounters();
}

void hotkeysWindowTick(int64_t budget_us) {
    (void)budget_us; /* the call takes less time than the budget */
    closeWindow();
}

void hotkeysWindowClear(void) {
    hotCheck(threadIsMain());
    forgetCounters();
    forgetFound();
}

void hotkeysWindowDbEvent(const dbEvent *e) {
    if ((e->kind == DB_FLUSHED && !e->swapped) || e->kind == DB_LOAD_BEGINS) hotkeysWindowClear();
}

status hotkeysWindowApply(reason *why) {
    (void)why; /* cannot fail */
    forgetCounters();
    memFree(window.keys);
    window.cap = engineConf.hotkeys_top_k;
    window.keys = window.cap ? memNewArray(windowKey, (size_t)window.cap) : NULL;
    commandObserverArm(&hotkeysWindowObserver, window.cap > 0);
    return OK;
}

bool hotkeysWindowIsOn(void) { return window.keys != NULL; }

const hotWindowKey *hotkeysWindowRead(int *count) {
    hotCheck(count);
    closeWindow();
    *count = window.found_count < window.cap ? window.found_count : window.cap;
    return window.found;
}

void hotkeysWindowPrintInfo(str *out) {
    hotCheck(threadIsMain());
    closeWindow();
    strAppendFormat(out, "hotkeys_last_window_samples:%llu\r\n",
                    (unsigned long long)window.found_samples);
    strAppendFormat(out, "hotkeys_last_window_duration_ms:%lld\r\n", (long long)window.found_ms);
}
