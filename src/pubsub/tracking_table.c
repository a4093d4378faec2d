/* SPDX-License-Identifier: BSD-3-Clause
 *
 * The table of the default mode: which trackers have read which keys.
 *
 * A key is represented by its storeHash() alone, which is keyed and has 64 bits (50 and the slot in
 * cluster mode): no copy of its name is kept, because every event but one brings the name along.
 * The exception is the removal of random keys beyond tracking-table-max-keys (and of slots): then
 * the name is found by the hash in the databases. A key that existed when it was read still does,
 * as every change removes it from the table; for keys that were missing, the name is stored in a
 * second table. If a name cannot be found, its readers are told to forget everything. Two keys with
 * the same hash would share an entry, and the change of one would hide the next change of the
 * other: with a million tracked keys the probability is below 1e-7, and it cannot be provoked
 * without the key of the hash.
 *
 * Cost of a key read by one tracker: 16 bytes and about 10 in the table; 4 for each further
 * tracker, with growth by doubling. Valkey keeps a copy of the name and a radix tree for each key.
 *
 * Invariants: the readers of an entry are sorted; an entry has at least one. A name is in `names`
 * only if its hash is in `keys`. Readers whose session has ended are removed when the array is
 * full. */
#include <stddef.h>
#include <stdlib.h>

#include "base/base.h"
#include "engine/hot.h"
#include "pubsub/pubsub_priv.h"
#include "pubsub/tracking.h"
#include "store/store.h"

typedef struct trackedKey {
    uint64_t hash;
    uint32_t count;
    uint32_t readers[]; /* numbers of trackers, sorted */
} trackedKey;

/* The name of a tracked key that was missing. */
typedef struct trackedName {
    uint64_t hash;
    size_t len;
    char name[];
} trackedName;

/* A table that is no longer used, and whose entries are being freed. */
typedef struct forgotten {
    struct forgotten *next;
    hashtable of;
    uint64_t cursor;
} forgotten;

enum { FREE_BUCKETS = 500 };

static struct {
    hashtable keys, names;
    uint64_t items;
    forgotten *forgotten;
} table;

/* ------------------------------------------------------------------ entries */

static uint64_t hashOfEntry(const void *entry) { return *(const uint64_t *)entry; }

static bool entryMatches(const void *entry, const void *hash, size_t len) {
    (void)len; /* both are hashes */
    return *(const uint64_t *)entry == *(const uint64_t *)hash;
}

static const hashtableType entries_type = {.hash_of = hashOfEntry, .match = entryMatches};

static trackedKey *findKey(uint64_t hash) {
    if (!hashtableCount(&table.keys)) return NULL;
    return hashtableFind(&table.keys, &entries_type, hash, &hash, sizeof(hash));
}

/* Bytes used by an entry with `count` readers: without padding, so that one reader fits in 16. */
static size_t usedSize(uint32_t count) {
    return offsetof(trackedKey, readers) + count * sizeof(uint32_t);
}

/* Size of the block of an entry with `count` readers. */
static size_t sizeFor(uint32_t count) {
    hotCheck(count > 0);
    size_t size = 16;
    while (size < usedSize(count)) size *= 2;
    return size;
}

/* The position of a number, or the one where it belongs. */
static uint32_t readerPosition(const trackedKey *k, uint32_t number) {
    uint32_t low = 0, high = k->count;
    while (low < high) {
        uint32_t middle = low + (high - low) / 2;
        if (k->readers[middle] < number) {
            low = middle + 1;
        } else {
            high = middle;
        }
    }
    return low;
}

static void dropEndedReaders(trackedKey *k) {
    uint32_t kept = 0;
    for (uint32_t i = 0; i < k->count; i++) {
        if (trackerByNumber(k->readers[i])) k->readers[kept++] = k->readers[i];
    }
    table.items -= k->count - kept;
    k->count = kept;
}

/* Makes room for one more reader. */
static trackedKey *grow(trackedKey *k, uint64_t hash) {
    size_t size = sizeFor(k->count);
    if (usedSize(k->count + 1) <= size) return k;
    dropEndedReaders(k);
    size_t needed = sizeFor(k->count + 1);
    if (needed == size) return k;
    trackedKey *moved = memAlloc(needed);
    memcpy(moved, k, usedSize(k->count));
    check(hashtableReplace(&table.keys, &entries_type, hash, k, moved));
    memFree(k);
    return moved;
}

static void addReader(trackedKey *k, uint64_t hash, uint32_t number) {
    hotCheck(number > 0);
    uint32_t at = readerPosition(k, number);
    if (at < k->count && k->readers[at] == number) return;
    k = grow(k, hash);
    at = readerPosition(k, number);
    memmove(&k->readers[at + 1], &k->readers[at], (k->count - at) * sizeof(uint32_t));
    k->readers[at] = number;
    k->count++;
    table.items++;
}

static void removeName(uint64_t hash) {
    if (!hashtableCount(&table.names)) return;
    memFree(hashtableDelete(&table.names, &entries_type, hash, &hash, sizeof(hash)));
}

static void setName(slice key, uint64_t hash) {
    if (hashtableFind(&table.names, &entries_type, hash, &hash, sizeof(hash))) return;
    trackedName *n = memAlloc(sizeof(*n) + key.len);
    n->hash = hash;
    n->len = key.len;
    memcpy(n->name, key.ptr, key.len);
    hashtableInsert(&table.names, &entries_type, hash, n, 0);
}

void tableRemember(const tracker *t, slice key, uint64_t hash, bool exists) {
    hotCheck(t->number > 0);
    trackedKey *k = findKey(hash);
    if (k) {
        addReader(k, hash, t->number);
    } else {
        k = memAlloc(sizeFor(1));
        k->hash = hash;
        k->count = 1;
        k->readers[0] = t->number;
        hashtableInsert(&table.keys, &entries_type, hash, k, 0);
        table.items++;
        if (hashtableCount(&table.keys) == 1) trackingUpdateArmed();
    }
    if (!exists) setName(key, hash);
}

uint64_t tableKeys(void) { return hashtableCount(&table.keys); }

uint64_t tableItems(void) { return table.items; }

/* ------------------------------------------------------------------ changes */

/* Removes an entry from the table; the caller frees it. */
static void takeKey(const trackedKey *k) {
    check(hashtableDeleteEntry(&table.keys, &entries_type, k->hash, k));
    table.items -= k->count;
}

/* Tells all readers of an entry that was taken, but `but`. `count` as in invalidate(). */
static void tellReaders(const trackedKey *k, slice key, int64_t count, const tracker *but) {
    hotCheck(count >= -1);
    for (uint32_t i = 0; i < k->count; i++) {
        tracker *t = trackerByNumber(k->readers[i]);
        if (t && t != but && trackerUsesTable(t)) invalidate(t, &key, count);
    }
}

static bool hasReader(const trackedKey *k, uint32_t number) {
    uint32_t at = readerPosition(k, number);
    return at < k->count && k->readers[at] == number;
}

void tableChanged(slice key, uint64_t hash, const tracker *by) {
    trackedKey *k = findKey(hash);
    if (likely(!k)) return;
    takeKey(k);
    removeName(hash);
    const tracker *silent = by && by->flags & TRACK_NOLOOP ? by : NULL;
    tellReaders(k, key, 1, silent);
    if (silent && hasReader(k, silent->number)) {
        /* It has cached what it wrote itself: a change by another session must reach it. */
        tableRemember(silent, key, hash, false);
    }
    memFree(k);
    if (!hashtableCount(&table.keys)) trackingUpdateArmed();
}

/* ------------------------------------------------------------------ removal without a change */

static slice nameOf(uint64_t hash) {
    const trackedName *n = hashtableFind(&table.names, &entries_type, hash, &hash, sizeof(hash));
    if (n) return sliceMake(n->name, n->len);
    for (int i = 0; i < storeDbCount(); i++) {
        const robj *o = dbPeekHash(storeDb(i), hash);
        if (o) return objectKey(o);
    }
    return sliceMake(NULL, 0);
}

/* Removes a key, and tells its readers. */
static void dropKey(trackedKey *k) {
    slice key = nameOf(k->hash);
    trackingNoteChange();
    takeKey(k);
    tellReaders(k, key, key.ptr ? 1 : -1, NULL);
    removeName(k->hash);
    memFree(k);
}

bool tableEvict(uint64_t most) {
    uint64_t max = (uint64_t)pubsubConf.tracking_table_max_keys;
    if (!max) return false;
    while (hashtableCount(&table.keys) > max) {
        if (!most--) return true;
        dropKey(hashtableRandom(&table.keys, &entries_type));
    }
    return false;
}

typedef struct lostKeys {
    bool (*is_served)(int slot);
    trackedKey **lost;
    size_t count, cap;
} lostKeys;

static void collectLost(void *arg, void *entry, unsigned flags) {
    (void)flags; /* all entries */
    lostKeys *l = arg;
    trackedKey *k = entry;
    if (l->is_served(storeHashSlot(k->hash))) return;
    if (l->count == l->cap) {
        l->cap = l->cap ? 2 * l->cap : 64;
        l->lost = memRealloc(l->lost, l->cap * sizeof(*l->lost));
    }
    l->lost[l->count++] = k;
}

void tableDropSlots(bool (*is_served)(int slot)) {
    if (!hashtableCount(&table.keys)) return;
    lostKeys l = {.is_served = is_served};
    uint64_t cursor = 0;
    do {
        cursor = hashtableScan(&table.keys, &entries_type, cursor, collectLost, &l);
    } while (cursor);
    for (size_t i = 0; i < l.count; i++) dropKey(l.lost[i]);
    memFree(l.lost);
    trackingUpdateArmed();
}

/* ------------------------------------------------------------------ forgetting everything */

static void forget(hashtable *t) {
    if (!hashtableCount(t)) return;
    forgotten *f = memNew(forgotten);
    f->of = *t;
    f->next = table.forgotten;
    table.forgotten = f;
    *t = (hashtable){NULL};
    pubsubWorkLater();
}

void tableForgetAll(void) {
    forget(&table.keys);
    forget(&table.names);
    table.items = 0;
}

static void freeEntry(void *context, void *entry, unsigned flags) {
    (void)context, (void)flags;
    memFree(entry);
}

bool tableWork(void) {
    forgotten *f = table.forgotten;
    if (!f) return false;
    for (int i = 0; i < FREE_BUCKETS; i++) {
        f->cursor = hashtableScan(&f->of, &entries_type, f->cursor, freeEntry, NULL);
        if (f->cursor) continue;
        table.forgotten = f->next;
        hashtableFree(&f->of, NULL, NULL); /* its entries have been freed */
        memFree(f);
        break;
    }
    return table.forgotten != NULL;
}
