/* SPDX-License-Identifier: BSD-3-Clause
 *
 * kvstore: an array of hashtables, one per slot, with counts in Fenwick trees.
 *
 * Invariants: counts[slot] is the number of entries of a visible slot, 0 for a hidden one;
 * volatiles likewise, once there was a volatile entry. Bit `slot` of `resizing` is set if its table
 * is being resized (and may remain set for a while after). A change costs what it costs in the
 * table, plus O(log slots). Not thread-safe. */
#include "ds/kvstore.h"

#include <string.h>

#include "base/alloc.h"
#include "base/assert.h"
#include "base/random.h"
#include "ds/fenwick.h"

struct kvstore {
    hashtable *tables;
    const hashtableType *type;
    int slot_count;
    unsigned slot_bits;
    fenwick counts;
    fenwick volatiles;  /* without nodes until there is a volatile entry */
    uint64_t *hidden;   /* one bit per slot; NULL while all are visible */
    uint64_t *resizing; /* one bit per slot */
};

/* ---- bits ---- */

static size_t bitWords(const kvstore *kv) { return ((size_t)kv->slot_count + 63) / 64; }
static bool bitIsSet(const uint64_t *bits, int slot) { return bits[slot / 64] >> (slot % 64) & 1; }
static void bitSet(uint64_t *bits, int slot) { bits[slot / 64] |= 1ull << (slot % 64); }
static void bitClear(uint64_t *bits, int slot) { bits[slot / 64] &= ~(1ull << (slot % 64)); }

/* ---- creating and freeing ---- */

kvstore *kvstoreNew(const hashtableType *type, unsigned slot_bits) {
    check(slot_bits <= KVSTORE_SLOT_BITS_MAX);
    kvstore *kv = memNew(kvstore);
    kv->type = type;
    kv->slot_bits = slot_bits;
    kv->slot_count = 1 << slot_bits;
    kv->tables = memNewArray(hashtable, (size_t)kv->slot_count);
    kv->resizing = memNewArray(uint64_t, bitWords(kv));
    fenwickInit(&kv->counts, (size_t)kv->slot_count);
    return kv;
}

void kvstoreFree(kvstore *kv, hashtableVisitProc *visit, void *context) {
    if (!kv) return;
    for (int slot = 0; slot < kv->slot_count; slot++) {
        hashtableFree(&kv->tables[slot], visit, context);
    }
    fenwickClear(&kv->counts);
    fenwickClear(&kv->volatiles);
    memFree(kv->tables);
    memFree(kv->hidden);
    memFree(kv->resizing);
    memFree(kv);
}

int kvstoreSlots(const kvstore *kv) { return kv->slot_count; }

static hashtable *tableOf(const kvstore *kv, int slot) {
    hotCheck(slot >= 0);
    hotCheck(slot < kv->slot_count);
    return &kv->tables[slot];
}

const hashtable *kvstoreTable(const kvstore *kv, int slot) { return tableOf(kv, slot); }

/* ---- changes ---- */

/* The counts of a slot's table before a change. */
typedef struct slotCounts {
    uint64_t count, volatile_count;
} slotCounts;

static slotCounts countsOf(const hashtable *t) {
    return (slotCounts){hashtableCount(t), hashtableVolatileCount(t)};
}

/* Updates the sums by the changes of a slot, if it is visible. */
static void addToSums(kvstore *kv, int slot, int64_t count, int64_t volatile_count) {
    if (count) fenwickAdd(&kv->counts, (size_t)slot, count);
    if (unlikely(volatile_count)) {
        if (!kv->volatiles.node) fenwickInit(&kv->volatiles, (size_t)kv->slot_count);
        fenwickAdd(&kv->volatiles, (size_t)slot, volatile_count);
    }
}

static void changedBy(kvstore *kv, int slot, int64_t count, int64_t volatile_count) {
    if (kvstoreIsVisible(kv, slot)) {
        addToSums(kv, slot, count, volatile_count);
        hotCheck(fenwickGet(&kv->counts, (size_t)slot) == hashtableCount(&kv->tables[slot]));
        hotCheck(!kv->volatiles.node || fenwickGet(&kv->volatiles, (size_t)slot) ==
                                            hashtableVolatileCount(&kv->tables[slot]));
        hotCheck(kv->volatiles.total <= kv->counts.total);
    }
    if (hashtableIsResizing(&kv->tables[slot])) bitSet(kv->resizing, slot);
}

/* The same if only the table knows what has changed. */
static void changed(kvstore *kv, int slot, slotCounts before) {
    slotCounts now = countsOf(&kv->tables[slot]);
    changedBy(kv, slot, (int64_t)(now.count - before.count),
              (int64_t)(now.volatile_count - before.volatile_count));
}

void kvstoreInsertAt(kvstore *kv, int slot, const hashtablePosition *position, void *entry,
                     unsigned flags) {
    hashtableInsertAt(tableOf(kv, slot), kv->type, position, entry, flags);
    changedBy(kv, slot, 1, flags & HASHTABLE_VOLATILE);
}

void *kvstoreDeleteAt(kvstore *kv, int slot, const hashtablePosition *position) {
    unsigned flags = hashtableFlagsAt(position);
    void *entry = hashtableDeleteAt(tableOf(kv, slot), kv->type, position);
    changedBy(kv, slot, -1, -(int64_t)(flags & HASHTABLE_VOLATILE));
    return entry;
}

bool kvstoreDeleteEntry(kvstore *kv, int slot, uint64_t hash, const void *entry) {
    hashtable *t = tableOf(kv, slot);
    slotCounts before = countsOf(t);
    bool found = hashtableDeleteEntry(t, kv->type, hash, entry);
    changed(kv, slot, before);
    return found;
}

bool kvstoreHasEntry(const kvstore *kv, int slot, uint64_t hash, const void *entry) {
    return hashtableHasEntry(kvstoreTable(kv, slot), hash, entry);
}

bool kvstoreReplace(kvstore *kv, int slot, uint64_t hash, const void *old, void *entry) {
    return hashtableReplace(tableOf(kv, slot), kv->type, hash, old, entry);
}

void kvstoreSetFlagsAt(kvstore *kv, int slot, const hashtablePosition *position, unsigned flags) {
    hashtable *t = tableOf(kv, slot);
    slotCounts before = countsOf(t);
    hashtableSetFlagsAt(t, position, flags);
    changed(kv, slot, before);
}

/* ---- counts, slots ---- */

uint64_t kvstoreCount(const kvstore *kv) { return kv->counts.total; }

uint64_t kvstoreCountAll(const kvstore *kv) {
    uint64_t count = kv->counts.total;
    for (int slot = 0; kv->hidden && slot < kv->slot_count; slot++) {
        if (bitIsSet(kv->hidden, slot)) count += hashtableCount(&kv->tables[slot]);
    }
    return count;
}

uint64_t kvstoreVolatileCount(const kvstore *kv) { return kv->volatiles.total; }

uint64_t kvstoreCountOf(const kvstore *kv, int slot) { return hashtableCount(tableOf(kv, slot)); }

uint64_t kvstoreVolatileCountOf(const kvstore *kv, int slot) {
    return hashtableVolatileCount(tableOf(kv, slot));
}

/* The first slot from `slot` on with a non-zero count, or -1. */
static int nextSlot(const fenwick *counts, int slot) {
    size_t next = fenwickNext(counts, (size_t)slot);
    return next < counts->count ? (int)next : -1;
}

int kvstoreNextSlot(const kvstore *kv, int slot) { return nextSlot(&kv->counts, slot); }

int kvstoreSlotOfRank(const kvstore *kv, uint64_t rank) {
    return (int)fenwickFind(&kv->counts, rank, NULL);
}

bool kvstoreIsVisible(const kvstore *kv, int slot) {
    return !kv->hidden || !bitIsSet(kv->hidden, slot);
}

void kvstoreSetVisible(kvstore *kv, int slot, bool visible) {
    slotCounts all = countsOf(tableOf(kv, slot));
    if (visible == kvstoreIsVisible(kv, slot)) return;
    if (!kv->hidden) kv->hidden = memNewArray(uint64_t, bitWords(kv));
    if (visible) {
        bitClear(kv->hidden, slot);
        addToSums(kv, slot, (int64_t)all.count, (int64_t)all.volatile_count);
    } else {
        bitSet(kv->hidden, slot);
        addToSums(kv, slot, -(int64_t)all.count, -(int64_t)all.volatile_count);
    }
    hotCheck(fenwickGet(&kv->counts, (size_t)slot) == (visible ? all.count : 0));
}

hashtable kvstoreTakeSlot(kvstore *kv, int slot) {
    hashtable taken = *tableOf(kv, slot);
    slotCounts before = countsOf(&taken);
    kv->tables[slot].body = NULL;
    changed(kv, slot, before);
    hotCheck(hashtableCount(tableOf(kv, slot)) == 0);
    return taken;
}

/* ---- scans ---- */

int kvstoreCursorSlot(const kvstore *kv, uint64_t cursor) {
    return (int)(cursor & ((uint64_t)kv->slot_count - 1));
}

uint64_t kvstoreScan(const kvstore *kv, uint64_t cursor, int only, hashtableVisitProc *visit,
                     void *context) {
    int slot = kvstoreCursorSlot(kv, cursor);
    uint64_t position = cursor >> kv->slot_bits;
    if (only >= 0) {
        if (!kvstoreIsVisible(kv, only)) return 0;
        if (slot != only) position = 0;
        slot = only;
    } else {
        int next = kvstoreNextSlot(kv, slot);
        if (next < 0) return 0;
        if (next != slot) position = 0;
        slot = next;
    }
    position = hashtableScan(tableOf(kv, slot), kv->type, position, visit, context);
    if (position) return position << kv->slot_bits | (uint64_t)slot;
    if (only >= 0 || slot + 1 == kv->slot_count) return 0;
    int next = kvstoreNextSlot(kv, slot + 1);
    return next < 0 ? 0 : (uint64_t)next;
}

uint64_t kvstoreScanVolatile(const kvstore *kv, uint64_t cursor, hashtableVisitProc *visit,
                             void *context) {
    if (kv->volatiles.total == 0) return 0;
    int slot = kvstoreCursorSlot(kv, cursor), next = nextSlot(&kv->volatiles, slot);
    if (next < 0) return 0;
    uint64_t position = next == slot ? cursor >> kv->slot_bits : 0;
    position = hashtableScanVolatile(tableOf(kv, next), kv->type, position, visit, context);
    if (position) return position << kv->slot_bits | (uint64_t)next;
    if (next + 1 == kv->slot_count) return 0;
    next = nextSlot(&kv->volatiles, next + 1);
    return next < 0 ? 0 : (uint64_t)next;
}

/* ---- random entries ---- */

void *kvstoreRandom(const kvstore *kv, int *slot) {
    if (kv->counts.total == 0) return NULL;
    int found = kvstoreSlotOfRank(kv, randomUniform(kv->counts.total));
    if (slot) *slot = found;
    return hashtableRandom(tableOf(kv, found), kv->type);
}

void *kvstoreRandomVolatile(const kvstore *kv, int *slot) {
    if (kv->volatiles.total == 0) return NULL;
    int found = (int)fenwickFind(&kv->volatiles, randomUniform(kv->volatiles.total), NULL);
    if (slot) *slot = found;
    return hashtableRandomVolatile(tableOf(kv, found), kv->type);
}

size_t kvstoreSample(const kvstore *kv, void **out, size_t want) {
    size_t found = 0;
    /* One attempt is enough unless slots are small. */
    for (size_t try = 0; kv->counts.total && try < want && found < want; try++) {
        int slot = kvstoreSlotOfRank(kv, randomUniform(kv->counts.total));
        found += hashtableSample(tableOf(kv, slot), kv->type, out + found, want - found);
        if (kv->slot_count == 1) break;
    }
    return found;
}

size_t kvstoreSampleVolatile(const kvstore *kv, void **out, size_t want) {
    size_t found = 0;
    uint64_t total = kv->volatiles.total;
    for (size_t try = 0; total && try < want && found < want; try++) {
        size_t slot = fenwickFind(&kv->volatiles, randomUniform(total), NULL);
        found += hashtableSampleVolatile(&kv->tables[slot], kv->type, out + found, want - found);
        if (kv->slot_count == 1) break;
    }
    return found;
}

/* ---- iterators ---- */

void kvstoreIteratorInit(kvstoreIterator *it, const kvstore *kv, int only, bool hidden) {
    *it = (kvstoreIterator){.kv = kv, .slot = only - 1, .stop = only + 1};
    it->hidden = hidden || only >= 0;
    if (only < 0) {
        it->slot = -1;
        it->stop = kv->slot_count;
    }
    /* Starts at the end of an empty table. */
    static const hashtable none;
    hashtableIteratorInit(&it->entries, &none, kv->type);
}

/* The next slot after it->slot to visit, or `stop`. */
static int iteratorNextSlot(const kvstoreIterator *it) {
    int slot = it->slot + 1;
    if (it->hidden) {
        while (slot < it->stop && !it->kv->tables[slot].body) slot++;
        return slot;
    }
    slot = kvstoreNextSlot(it->kv, slot);
    return slot < 0 ? it->stop : slot;
}

void *kvstoreIteratorNext(kvstoreIterator *it, unsigned *flags) {
    for (;;) {
        void *entry = hashtableIteratorNext(&it->entries, flags);
        if (entry) return entry;
        if (it->slot + 1 >= it->stop) return NULL;
        int slot = iteratorNextSlot(it);
        it->slot = slot < it->stop ? slot : it->stop - 1;
        if (slot >= it->stop) return NULL;
        hashtableIteratorClear(&it->entries);
        hashtableIteratorInit(&it->entries, tableOf(it->kv, slot), it->kv->type);
    }
}

void kvstoreIteratorClear(kvstoreIterator *it) { hashtableIteratorClear(&it->entries); }

/* ---- the whole store ---- */

int kvstoreCompactAt(kvstore *kv, uint64_t cursor) {
    int slot = kvstoreCursorSlot(kv, cursor), next = kvstoreNextSlot(kv, slot);
    bool goes_on = next == slot && cursor >> kv->slot_bits != 0;
    return next < 0 || goes_on ? -1 : (int)hashtableCompact(&kv->tables[next]);
}

void kvstoreReserve(kvstore *kv, int slot, uint64_t count) {
    hashtableReserve(tableOf(kv, slot), kv->type, count);
}

/* A slot whose table is being resized, or -1; clears the bits of slots whose resize is complete. */
static int resizingSlot(kvstore *kv) {
    for (size_t i = 0; i < bitWords(kv); i++) {
        while (kv->resizing[i]) {
            int slot = (int)(i * 64) + __builtin_ctzll((unsigned long long)kv->resizing[i]);
            if (hashtableIsResizing(&kv->tables[slot])) return slot;
            bitClear(kv->resizing, slot);
        }
    }
    return -1;
}

bool kvstoreWork(kvstore *kv, unsigned buckets) {
    int slot = resizingSlot(kv);
    if (slot < 0) return false;
    if (hashtableWork(&kv->tables[slot], kv->type, buckets)) return true;
    /* Done, or paused like all tables. */
    if (hashtableIsResizing(&kv->tables[slot])) return false;
    return resizingSlot(kv) >= 0;
}

size_t kvstoreBytes(const kvstore *kv) {
    size_t bytes = memSizeOf(kv) + memSizeOf(kv->tables) + memSizeOf(kv->resizing) +
                   fenwickBytes(&kv->counts) + fenwickBytes(&kv->volatiles);
    if (kv->hidden) bytes += memSizeOf(kv->hidden);
    for (int slot = 0; slot < kv->slot_count; slot++) {
        if (kv->tables[slot].body) bytes += hashtableBytes(&kv->tables[slot]);
    }
    return bytes;
}

void kvstoreStatsRead(const kvstore *kv, hashtableStats *out) {
    *out = (hashtableStats){.resize_position = -1};
    for (int slot = 0; slot < kv->slot_count; slot++) {
        if (!kv->tables[slot].body) continue;
        hashtableStats one;
        hashtableStatsRead(&kv->tables[slot], kv->type, &one);
        out->slots += one.slots;
        out->buckets += one.buckets;
        out->count += one.count;
        out->volatile_count += one.volatile_count;
        out->bytes += one.bytes;
        out->resize_slots += one.resize_slots;
        if (one.resize_position >= 0) out->resize_position = one.resize_position;
        for (int i = 0; i < HASHTABLE_PROBES_MAX; i++) out->probes[i] += one.probes[i];
    }
}

const char *kvstoreVerify(const kvstore *kv) {
    for (int slot = 0; slot < kv->slot_count; slot++) {
        const hashtable *t = &kv->tables[slot];
        const char *wrong = hashtableVerify(t, kv->type);
        if (wrong) return wrong;
        bool visible = kvstoreIsVisible(kv, slot);
        uint64_t counted = fenwickGet(&kv->counts, (size_t)slot);
        if (counted != (visible ? hashtableCount(t) : 0)) return "a wrong count of a slot";
        counted = kv->volatiles.node ? fenwickGet(&kv->volatiles, (size_t)slot) : 0;
        if (counted != (visible ? hashtableVolatileCount(t) : 0)) {
            return "a wrong volatile count of a slot";
        }
        if (hashtableIsResizing(t) && !bitIsSet(kv->resizing, slot)) {
            return "a resize that is not noted";
        }
    }
    return NULL;
}
