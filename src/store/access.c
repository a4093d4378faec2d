/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Access time or access frequency of an object: 23 bits in its header, read by eviction and OBJECT.
 *
 * LRU: seconds of the wall clock. LFU: 15 bits of minutes (of the last update of the counter) and
 * an 8-bit counter that grows logarithmically with accesses and decreases with idle minutes. Main
 * thread only. */
#include "base/base.h"
#include "base/random.h"
#include "store/db_priv.h"
#include "store/slab.h"

enum { LFU_NEW = 5, LFU_MAX = 255, LFU_MINUTES_MASK = OBJECT_LRU_MAX >> 8 };

static void setClock(void) {
    if (storeNow.access == ACCESS_LFU) {
        storeNow.clock = (uint32_t)(storeNow.now_ms / 60000 & LFU_MINUTES_MASK) << 8;
    } else {
        storeNow.clock = (uint32_t)(storeNow.now_ms / 1000 & OBJECT_LRU_MAX);
    }
    hotCheck(storeNow.clock <= OBJECT_LRU_MAX);
}

void storeSetClock(int64_t now_ms) {
    storeNow.now_ms = now_ms;
    setClock();
}

static void setTouch(void) {
    storeNow.touch_lru = !storeNow.forked && storeNow.access == ACCESS_LRU;
}

void storeSetAccess(storeAccess mode, int log_factor, int decay_minutes) {
    hotCheck(threadIsMain());
    storeNow.access = mode;
    storeNow.lfu_log_factor = log_factor;
    storeNow.lfu_decay_minutes = decay_minutes;
    setTouch();
    setClock();
}

static void pauseResizes(void) { hashtableSetPaused(storeNow.forked || storeNow.resizes_off); }

void storeSetResizing(bool on) {
    storeNow.resizes_off = !on;
    pauseResizes();
}

void storeForkBegin(void) {
    hotCheck(threadIsMain());
    for (keyspace *k = storeNow.keyspaces; k; k = k->next) {
        slabPair slabs = keyspaceSlabs(k);
        slabForkBegin(slabs.objects);
        slabForkBegin(slabs.elements);
    }
    storeNow.forked = true;
    pauseResizes();
    setTouch();
}

void storeForkEnd(void) {
    hotCheck(threadIsMain());
    for (keyspace *k = storeNow.keyspaces; k; k = k->next) {
        slabPair slabs = keyspaceSlabs(k);
        slabForkEnd(slabs.objects);
        slabForkEnd(slabs.elements);
    }
    storeNow.forked = false;
    pauseResizes();
    setTouch();
}

uint32_t accessFresh(void) {
    return storeNow.access == ACCESS_LFU ? storeNow.clock | LFU_NEW : storeNow.clock;
}

int64_t storeIdleSeconds(const robj *o) {
    return (int64_t)((storeNow.clock - objectLru(o)) & OBJECT_LRU_MAX);
}

int64_t accessIdleSeconds(const robj *o) {
    if (storeNow.access == ACCESS_LRU) return storeIdleSeconds(o);
    return 60 * (int64_t)(((storeNow.clock >> 8) - (objectLru(o) >> 8)) & LFU_MINUTES_MASK);
}

uint8_t storeFrequency(const robj *o) {
    uint32_t counter = objectLru(o) & LFU_MAX;
    uint32_t idle_minutes = ((storeNow.clock >> 8) - (objectLru(o) >> 8)) & LFU_MINUTES_MASK;
    if (storeNow.lfu_decay_minutes == 0) return (uint8_t)counter;
    uint32_t fallen = idle_minutes / (uint32_t)storeNow.lfu_decay_minutes;
    return (uint8_t)(fallen > counter ? 0 : counter - fallen);
}

void storeSetObjectAccess(robj *o, int64_t idle_s, int frequency) {
    hotCheck(threadIsMain());
    uint32_t lru = accessFresh();
    if (storeNow.access == ACCESS_LFU) {
        if (frequency >= 0) lru = storeNow.clock | (uint32_t)frequency;
    } else if (idle_s > 0) {
        /* Longer than the clock can express counts as the longest. */
        uint32_t idle = idle_s < OBJECT_LRU_MAX ? (uint32_t)idle_s : OBJECT_LRU_MAX - 1;
        lru = (storeNow.clock - idle) & OBJECT_LRU_MAX;
    }
    objectSetLru(o, lru);
}

void accessTouchSlow(robj *o) {
    hotCheck(threadIsMain());
    if (storeNow.forked) return;
    uint32_t counter = storeFrequency(o);
    if (counter < LFU_MAX) {
        /* The probability of an increment decreases with the counter. */
        uint64_t over = counter > LFU_NEW ? counter - LFU_NEW : 0;
        if (randomUniform(over * (uint64_t)storeNow.lfu_log_factor + 1) == 0) counter++;
    }
    objectSetLru(o, storeNow.clock | counter);
}
