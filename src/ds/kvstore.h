/* SPDX-License-Identifier: BSD-3-Clause
 *
 * kvstore: one hashtable, or one for each of 2^n slots, which together form a set of entries that
 * is counted, scanned and sampled as a whole or by slot. A table is allocated with the first entry
 * of its slot and freed with the last; 16,384 empty slots take 256 KB.
 *
 * Entries of a hidden slot can be inserted and found by key, but are not included in any count,
 * scan, iteration or sample.
 *
 * Lookups use the table directly (kvstoreTable()); changes use the functions here, which update the
 * counts. Not thread-safe: one owner at a time. */
#ifndef DS_KVSTORE_H
#define DS_KVSTORE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "ds/hashtable.h"

typedef struct kvstore kvstore;

#define KVSTORE_SLOT_BITS_MAX 14

/* 2^slot_bits slots, numbered from 0: 0 bits without cluster mode, 14 with it. `type` must outlive
 * the store. */
kvstore *kvstoreNew(const hashtableType *type, unsigned slot_bits);
/* Calls `visit` (may be NULL) for every entry, including hidden ones, and frees the store.
 * ANY_THREAD, if no other thread uses it. */
void kvstoreFree(kvstore *kv, hashtableVisitProc *visit, void *context);
int kvstoreSlots(const kvstore *kv);

/* ---- single entries: as in ds/hashtable.h ---- */

/* The table of a slot, for lookups, prefetches and ds/hashtable_inline.h only. Its address is
 * constant. */
const hashtable *kvstoreTable(const kvstore *kv, int slot);
void kvstoreInsertAt(kvstore *kv, int slot, const hashtablePosition *position, void *entry,
                     unsigned flags);
void *kvstoreDeleteAt(kvstore *kv, int slot, const hashtablePosition *position);
bool kvstoreDeleteEntry(kvstore *kv, int slot, uint64_t hash, const void *entry);
bool kvstoreHasEntry(const kvstore *kv, int slot, uint64_t hash, const void *entry);
bool kvstoreReplace(kvstore *kv, int slot, uint64_t hash, const void *old, void *entry);
void kvstoreSetFlagsAt(kvstore *kv, int slot, const hashtablePosition *position, unsigned flags);

/* ---- counts, slots ---- */

/* Number of entries, and of volatile ones, in all visible slots; O(1). */
uint64_t kvstoreCount(const kvstore *kv);
uint64_t kvstoreVolatileCount(const kvstore *kv);
/* Entries of all slots, hidden ones too; O(slots) where any is hidden. */
uint64_t kvstoreCountAll(const kvstore *kv);
/* The same for one slot, visible or not; O(1). */
uint64_t kvstoreCountOf(const kvstore *kv, int slot);
uint64_t kvstoreVolatileCountOf(const kvstore *kv, int slot);
/* The first visible slot from `slot` on that has entries, or -1; O(log slots). */
int kvstoreNextSlot(const kvstore *kv, int slot);
/* The slot of entry number `rank` (below kvstoreCount()) if entries are numbered slot by slot;
 * O(log slots). */
int kvstoreSlotOfRank(const kvstore *kv, uint64_t rank);
/* Slots are visible initially. O(log slots). */
void kvstoreSetVisible(kvstore *kv, int slot, bool visible);
bool kvstoreIsVisible(const kvstore *kv, int slot);
/* Empties a slot and returns its table: the caller frees it with hashtableFree(), possibly on
 * another thread. */
hashtable kvstoreTakeSlot(kvstore *kv, int slot);

/* ---- iteration ---- */

/* Scan cursors including the slot are below 2^53, because clients store them in doubles. */
_Static_assert(HASHTABLE_CURSOR_BITS + KVSTORE_SLOT_BITS_MAX <= 53, "cursors fit into doubles");

/* Scans the visible slots in order, or only slot `only` if it is >= 0, with the guarantees of
 * hashtableScan(). `visit` may change the store with kvstore functions. */
uint64_t kvstoreScan(const kvstore *kv, uint64_t cursor, int only, hashtableVisitProc *visit,
                     void *context);
/* hashtableScanVolatile() over all visible slots; skips slots and blocks without volatile
 * entries. */
uint64_t kvstoreScanVolatile(const kvstore *kv, uint64_t cursor, hashtableVisitProc *visit,
                             void *context);
/* The slot in which a cursor of either scan is. */
int kvstoreCursorSlot(const kvstore *kv, uint64_t cursor);

/* A uniformly random entry of the visible slots, or NULL. `*slot` (may be NULL) is set to its
 * slot. */
void *kvstoreRandom(const kvstore *kv, int *slot);
void *kvstoreRandomVolatile(const kvstore *kv, int *slot);
/* Up to `want` entries at low cost, as hashtableSample(); with small slots an entry may be returned
 * twice. */
size_t kvstoreSample(const kvstore *kv, void **out, size_t want);
size_t kvstoreSampleVolatile(const kvstore *kv, void **out, size_t want);

/* Iterates over all entries slot by slot; see hashtableIterator. */
typedef struct kvstoreIterator {
    const kvstore *kv;
    int slot;    /* slot of the last entry returned; -1 before the first */
    int stop;    /* private: the slot before which to stop */
    bool hidden; /* private: include hidden slots */
    hashtableIterator entries;
} kvstoreIterator;

/* `only`: the slot to iterate over, visible or not, or -1 for all; `hidden`: include hidden
 * slots. */
void kvstoreIteratorInit(kvstoreIterator *it, const kvstore *kv, int only, bool hidden);
void *kvstoreIteratorNext(kvstoreIterator *it, unsigned *flags);
void kvstoreIteratorClear(kvstoreIterator *it);

/* ---- the whole store ---- */

/* Moves blocks of the table in which a scan from `cursor` goes on, if it starts there: so a scan of
 * all slots moves each table once. Returns the number of moved blocks, -1 if there is no such
 * table. See hashtableCompact(). */
int kvstoreCompactAt(kvstore *kv, uint64_t cursor);
/* See hashtableReserve(). */
void kvstoreReserve(kvstore *kv, int slot, uint64_t count);
/* Continues running resizes by about `buckets` buckets. Returns true if there is more to do. */
bool kvstoreWork(kvstore *kv, unsigned buckets);
/* Memory of the store in bytes, without the entries: O(slots). */
size_t kvstoreBytes(const kvstore *kv);
/* Sums over all slots; the resize position is that of one of the tables being resized. */
void kvstoreStatsRead(const kvstore *kv, hashtableStats *out);
/* Checks all tables and counts; NULL if valid, else a description of the violation. For tests. */
const char *kvstoreVerify(const kvstore *kv);

#endif
