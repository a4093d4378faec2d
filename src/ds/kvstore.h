/* SPDX-License-Identifier: BSD-3-Clause
 *
 * kvstore: one hashtable, or one for each of 2^n slots, that together are one set of entries:
 * counted, walked, and drawn from as a whole or by slot. A table is made with the first entry of
 * its slot and freed with the last; 16,384 empty slots cost 256 KB.
 *
 * A hidden slot takes entries and gives them to who asks for them by key, but is in no count, scan,
 * iteration or draw.
 *
 * Lookups go straight to the table (kvstoreTable()); changes go through here, so that the counts
 * are right. Not thread-safe: one owner at a time. */
#ifndef DS_KVSTORE_H
#define DS_KVSTORE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "ds/hashtable.h"

typedef struct kvstore kvstore;

#define KVSTORE_SLOT_BITS_MAX 14

/* 2^slot_bits slots, numbered from 0: 0 bits for a plain server, 14 for a cluster. `type` must
 * outlive it. */
kvstore *kvstoreNew(const hashtableType *type, unsigned slot_bits);
/* Calls `visit` (may be NULL) for every entry, hidden ones too, and frees the store. ANY_THREAD,
 * if no other uses it. */
void kvstoreFree(kvstore *kv, hashtableVisitProc *visit, void *context);
int kvstoreSlots(const kvstore *kv);

/* ---- one entry: as in ds/hashtable.h ---- */

/* The table of a slot, for lookups, prefetches and ds/hashtable_inline.h only. Its address is as
 * lasting as the store. */
const hashtable *kvstoreTable(const kvstore *kv, int slot);
void *kvstoreFind(const kvstore *kv, int slot, uint64_t hash, const void *key, size_t len);
void *kvstoreFindPosition(const kvstore *kv, int slot, uint64_t hash, const void *key, size_t len,
                          hashtablePosition *position);
void kvstoreInsert(kvstore *kv, int slot, uint64_t hash, void *entry, unsigned flags);
void kvstoreInsertAt(kvstore *kv, int slot, const hashtablePosition *position, void *entry,
                     unsigned flags);
void *kvstoreDelete(kvstore *kv, int slot, uint64_t hash, const void *key, size_t len);
void *kvstoreDeleteAt(kvstore *kv, int slot, const hashtablePosition *position);
bool kvstoreDeleteEntry(kvstore *kv, int slot, uint64_t hash, const void *entry);
bool kvstoreHasEntry(const kvstore *kv, int slot, uint64_t hash, const void *entry);
bool kvstoreReplace(kvstore *kv, int slot, uint64_t hash, const void *old, void *entry);
bool kvstoreSetFlags(kvstore *kv, int slot, uint64_t hash, const void *entry, unsigned flags);
void kvstoreSetFlagsAt(kvstore *kv, int slot, const hashtablePosition *position, unsigned flags);

/* ---- counts, slots ---- */

/* Entries, and volatile ones, of all visible slots; O(1). */
uint64_t kvstoreCount(const kvstore *kv);
uint64_t kvstoreVolatileCount(const kvstore *kv);
/* Entries of all slots, hidden ones too; O(slots) where any is hidden. */
uint64_t kvstoreCountAll(const kvstore *kv);
/* The same of one slot, visible or not; O(1). */
uint64_t kvstoreCountOf(const kvstore *kv, int slot);
uint64_t kvstoreVolatileCountOf(const kvstore *kv, int slot);
/* The first visible slot from `slot` on that has entries, or -1; O(log slots). */
int kvstoreNextSlot(const kvstore *kv, int slot);
/* The slot of entry number `rank` (below kvstoreCount()) if all are counted slot by slot; O(log
 * slots). */
int kvstoreSlotOfRank(const kvstore *kv, uint64_t rank);
/* Slots are visible at first. O(log slots). */
void kvstoreSetVisible(kvstore *kv, int slot, bool visible);
bool kvstoreIsVisible(const kvstore *kv, int slot);
/* Empties a slot, giving its table away: the caller frees it with hashtableFree(), perhaps on
 * another thread. */
hashtable kvstoreTakeSlot(kvstore *kv, int slot);

/* ---- many entries ---- */

/* Scan cursors are below 2^53, slot and all: clients keep them in doubles. */
_Static_assert(HASHTABLE_CURSOR_BITS + KVSTORE_SLOT_BITS_MAX <= 53, "cursors fit into doubles");

/* Scans the visible slots in order, or, with `only` >= 0, that slot alone; each with the
 * guarantees of hashtableScan(). `visit` changes the store through kvstore functions. */
uint64_t kvstoreScan(const kvstore *kv, uint64_t cursor, int only, hashtableVisitProc *visit,
                     void *context);
/* hashtableScanVolatile() over all visible slots: passes over slots and blocks without volatile
 * entries. */
uint64_t kvstoreScanVolatile(const kvstore *kv, uint64_t cursor, hashtableVisitProc *visit,
                             void *context);
/* The slot a cursor of either scan stands in. */
int kvstoreCursorSlot(const kvstore *kv, uint64_t cursor);

/* An entry of the visible slots, each with exactly the same chance, or NULL. `*slot` (may be
 * NULL) receives its slot. */
void *kvstoreRandom(const kvstore *kv, int *slot);
void *kvstoreRandomVolatile(const kvstore *kv, int *slot);
/* Up to `want` entries, cheaply, as hashtableSample(); from small slots an entry may come twice. */
size_t kvstoreSample(const kvstore *kv, void **out, size_t want);
size_t kvstoreSampleVolatile(const kvstore *kv, void **out, size_t want);

/* Walks all entries slot by slot; see hashtableIterator. */
typedef struct kvstoreIterator {
    const kvstore *kv;
    int slot;    /* of the entry returned last; -1 before the first */
    int stop;    /* private: the slot to end before */
    bool hidden; /* private: take hidden slots too */
    hashtableIterator entries;
} kvstoreIterator;

/* `only`: the slot to walk, visible or not, or -1 for all; `hidden`: hidden ones among them too. */
void kvstoreIteratorInit(kvstoreIterator *it, const kvstore *kv, int only, bool hidden);
void *kvstoreIteratorNext(kvstoreIterator *it, unsigned *flags);
void kvstoreIteratorClear(kvstoreIterator *it);

/* ---- the store as a whole ---- */

/* See hashtableReserve(). */
void kvstoreReserve(kvstore *kv, int slot, uint64_t count);
/* Continues resizes that are under way, by about `buckets` buckets. True while there is more to
 * do. */
bool kvstoreWork(kvstore *kv, unsigned buckets);
/* Bytes of memory of the store, entries not counted: O(slots); of one slot: O(1). */
size_t kvstoreBytes(const kvstore *kv);
size_t kvstoreBytesOf(const kvstore *kv, int slot);
/* The sums over all slots; the sweep position is that of one of the tables being resized. */
void kvstoreStatsRead(const kvstore *kv, hashtableStats *out);
/* Checks every table and every count; NULL when sound, else what is broken. For tests. */
const char *kvstoreVerify(const kvstore *kv);

#endif
