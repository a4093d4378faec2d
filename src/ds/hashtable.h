/* SPDX-License-Identifier: BSD-3-Clause
 *
 * hashtable: a set of entries found by key. An entry is a pointer supplied by the caller; the table
 * stores it in a word with two flags and reads keys only through the caller's hashtableType.
 *
 * The handle has 8 bytes and is all zero when empty, so many empty tables cost nothing. The table
 * grows and shrinks in place, incrementally with each insert and delete. It uses 9 to 10.3 bytes
 * per entry at any size. The implementation is not visible in this header (ds/hashtable_inline.h is
 * the exception, for lookups on the hot path).
 *
 * Scans and iterators visit entries in an order that keeps a table evenly filled if entries are
 * deleted meanwhile, or inserted into another table in that order.
 *
 * Not thread-safe: one owner at a time. hashtableFree() may run on a different thread than the one
 * that filled the table. */
#ifndef DS_HASHTABLE_H
#define DS_HASHTABLE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "ds/hashtable_position.h"

typedef struct hashtable {
    void *body; /* NULL when empty */
} hashtable;

/* How to access entries. Functions that may need it take it as an argument; all calls on one table
 * must pass the same one. */
typedef struct hashtableType {
    /* The hash with which an entry was inserted. */
    uint64_t (*hash_of)(const void *entry);
    /* True if the entry has this key. */
    bool (*match)(const void *entry, const void *key, size_t len);
    /* HASHTABLE_MARK: entries are words of 46 bits, whose lowest bit is the mark: entries with it
     * need not be addresses. The functions that take this type give and take such entries with the
     * mark in its place; a hashtableVisitProc finds it in the flags. 0: all entries are addresses,
     * and the mark is a flag beside them. */
    uint64_t entry_mark;
    /* Prefetches what a visitor of the entry reads beyond its first 41 bytes, which are in the
     * cache. NULL: nothing. */
    void (*prefetch_rest)(const void *entry);
} hashtableType;

/* Flags of an entry, readable without accessing the entry. Volatile entries have an expiry time:
 * the table counts them and can find them quickly. The meaning of the mark is defined by the
 * caller. */
enum { HASHTABLE_VOLATILE = 1, HASHTABLE_MARK = 4 };

/* True for an address that a table can keep: 8-byte aligned and below 2^48, as Linux gives them on
 * x86-64 and arm64 unless a process asks for more. Inserting another one is a failed check.
 * ANY_THREAD. */
bool hashtableCanHold(const void *address);

/* Receives an entry and its flags. */
typedef void hashtableVisitProc(void *context, void *entry, unsigned flags);

/* ---- single entries ---- */

/* An entry is a non-zero multiple of 8, below 2^48: a pointer, or an integer in that form. Hashes
 * must be strong (keyed): the table relies on all 64 bits being random. */

void *hashtableFind(const hashtable *t, const hashtableType *type, uint64_t hash, const void *key,
                    size_t len);
/* The table must not contain the key of `entry`. `flags` are those of the enum above. */
void hashtableInsert(hashtable *t, const hashtableType *type, uint64_t hash, void *entry,
                     unsigned flags);
/* Removes and returns the entry with this key; NULL if there is none. */
void *hashtableDelete(hashtable *t, const hashtableType *type, uint64_t hash, const void *key,
                      size_t len);
/* Removes the entry with this address; false if it is not in the table. Does not read keys. */
bool hashtableDeleteEntry(hashtable *t, const hashtableType *type, uint64_t hash,
                          const void *entry);
/* True if the entry with this address is in the table. The entry is not accessed and may have been
 * freed. */
bool hashtableHasEntry(const hashtable *t, uint64_t hash, const void *entry);
/* Replaces the address `old` by `entry`; the flags are kept. False if `old` is not in the table. */
bool hashtableReplace(hashtable *t, const hashtableType *type, uint64_t hash, const void *old,
                      void *entry);
/* Sets the flags of `entry` to exactly `flags`. False if it is not in the table. */
bool hashtableSetFlags(hashtable *t, uint64_t hash, const void *entry, unsigned flags);

/* ---- single entries, with one lookup: hashtable_position.h ---- */

/* Like hashtableFind(); always sets `position`. */
void *hashtableFindPosition(const hashtable *t, const hashtableType *type, uint64_t hash,
                            const void *key, size_t len, hashtablePosition *position);
/* Inserts at the position of a lookup that found nothing. */
void hashtableInsertAt(hashtable *t, const hashtableType *type, const hashtablePosition *position,
                       void *entry, unsigned flags);
/* These require a position with an entry. */
void *hashtableDeleteAt(hashtable *t, const hashtableType *type, const hashtablePosition *position);
void hashtableReplaceAt(const hashtablePosition *position, const hashtableType *type, void *entry);
void hashtableSetFlagsAt(hashtable *t, const hashtablePosition *position, unsigned flags);
unsigned hashtableFlagsAt(const hashtablePosition *position);

/* Prefetches the cache lines of the table that a later lookup of this hash will read. Only a hint:
 * the table may change in between. */
void hashtablePrefetch(const hashtable *t, uint64_t hash);

/* ---- iteration ---- */

uint64_t hashtableCount(const hashtable *t);
uint64_t hashtableVolatileCount(const hashtable *t);

/* A scan cursor is below 2^HASHTABLE_CURSOR_BITS; any number of that size is accepted. */
#define HASHTABLE_CURSOR_BITS 39

/* Visits some entries (one or two buckets, about 8) and returns the cursor for the next call. Start
 * with 0; a returned 0 means that all were visited. The part of the hash space covered so far does
 * not depend on changes of the table's size. So an entry that is present from the first to the last
 * call is visited exactly once, and no entry is visited twice, even if it is deleted and inserted
 * again. Exception: if the table shrinks to less than 1/64 during a scan, the scan restarts; then
 * nothing is missed, but entries may be visited twice. `visit` may delete the given entry and may
 * insert entries; it must not free other entries. */
uint64_t hashtableScan(const hashtable *t, const hashtableType *type, uint64_t cursor,
                       hashtableVisitProc *visit, void *context);
/* Like hashtableScan(), with the same guarantees, for volatile entries only. Other parts of the
 * table are skipped at almost no cost: if there are few volatile entries, a complete scan takes
 * about 1 us per volatile entry. */
uint64_t hashtableScanVolatile(const hashtable *t, const hashtableType *type, uint64_t cursor,
                               hashtableVisitProc *visit, void *context);

/* A uniformly random entry; NULL if the table is empty. */
void *hashtableRandom(const hashtable *t, const hashtableType *type);
/* A uniformly random volatile entry; NULL if there is none. */
void *hashtableRandomVolatile(const hashtable *t, const hashtableType *type);
/* Removes and returns a random entry; NULL if the table is empty. */
void *hashtablePop(hashtable *t, const hashtableType *type);
/* Stores up to `want` distinct entries in `out`, adjacent ones from a random start: cheap (seven
 * per cache line) and random enough for eviction, but not independent. Returns their number, 0 only
 * if there are none. */
size_t hashtableSample(const hashtable *t, const hashtableType *type, void **out, size_t want);
size_t hashtableSampleVolatile(const hashtable *t, const hashtableType *type, void **out,
                               size_t want);

/* Stores the entries of the next buckets in `out`, at most `cap`, which must be 8 or more.
 * *position is 0 at first; returns 0 at the end. The table must not change meanwhile. This is the
 * cheapest iteration. Its order is a coarser one than that of scans: runs are several times longer
 * in a table that is filled in this order. */
size_t hashtableNextEntries(const hashtable *t, const hashtableType *type, uint64_t *position,
                            void **out, size_t cap);
/* Words of a table, collected before callbacks that may change the table are called. Private. */
enum { HASHTABLE_WORDS_LOCAL = 64 };
typedef struct hashtableWords {
    uint64_t *words; /* `local`, or a heap block if there are more */
    size_t count, cap;
    uint64_t local[HASHTABLE_WORDS_LOCAL];
} hashtableWords;
/* Iterates over all entries in scan order, with the guarantees of hashtableScan() except this: some
 * entries are fetched ahead, so entries not returned yet must not be freed. Must not be copied. */
typedef struct hashtableIterator {
    const hashtable *table;
    const hashtableType *type;
    uint64_t entry_mask; /* private: of an entry in its word */
    uint64_t cursor;
    bool last;             /* private from here on */
    size_t next, fetch_at; /* indexes in `fetched`: of the next word, and where more are fetched */
    hashtableWords fetched;
} hashtableIterator;

void hashtableIteratorInit(hashtableIterator *it, const hashtable *t, const hashtableType *type);
/* The next entry, or NULL at the end; `flags` may be NULL. */
void *hashtableIteratorNext(hashtableIterator *it, unsigned *flags);
void hashtableIteratorClear(hashtableIterator *it);

/* ---- the whole table ---- */

/* Makes space for `count` entries, so that filling the table requires no resize. On a non-empty
 * table all entries are moved before it returns. Never shrinks. */
void hashtableReserve(hashtable *t, const hashtableType *type, uint64_t count);
/* Continues a running resize by about `buckets` buckets. Returns true if there is more to do. */
bool hashtableWork(hashtable *t, const hashtableType *type, unsigned buckets);
bool hashtableIsResizing(const hashtable *t);
/* Applies to all tables: while a forked child shares our pages, resizes are neither started nor
 * continued, unless a table is nearly full. Main thread. */
void hashtableSetPaused(bool paused);
/* Moves the table's own blocks to denser pages (memMoveIfSparse()): all blocks below 16 KB, so it
 * takes some microseconds. Larger arrays have pages of their own and leave no holes. Returns the
 * number of moved blocks. */
unsigned hashtableCompact(hashtable *t);
/* Frees the table after calling `visit` (may be NULL) for every entry; the handle is empty
 * afterwards. ANY_THREAD, if no other thread uses the table. */
void hashtableFree(hashtable *t, hashtableVisitProc *visit, void *context);
/* Memory of the table in bytes, without the handle. */
size_t hashtableBytes(const hashtable *t);

#define HASHTABLE_PROBES_MAX 32

/* Statistics shown by DEBUG HTSTATS. */
typedef struct hashtableStats {
    uint64_t slots;   /* number of entries the table is sized for; during a resize, before it */
    uint64_t buckets; /* cache lines of 8 slots, spare ones included */
    uint64_t count;
    uint64_t volatile_count;
    int64_t resize_position; /* bucket that the resize has reached, or -1 */
    uint64_t resize_slots;   /* slots after the resize, or 0 */
    uint64_t bytes;
    /* probes[i]: entries whose lookup reads i + 1 buckets; the last element: or more */
    uint64_t probes[HASHTABLE_PROBES_MAX];
} hashtableStats;

/* Walks the whole table; for debugging. */
void hashtableStatsRead(const hashtable *t, const hashtableType *type, hashtableStats *out);
/* Checks all invariants, including the hashes of all entries. Returns NULL if they hold, else a
 * description of the violation. For tests. */
const char *hashtableVerify(const hashtable *t, const hashtableType *type);

#endif
