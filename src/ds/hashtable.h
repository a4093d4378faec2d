/* SPDX-License-Identifier: BSD-3-Clause
 *
 * hashtable: a set of entries, found by key. An entry is a pointer of the caller's; the table keeps
 * it in a word with two flags, and never reads the key except through the caller's hashtableType.
 *
 * The handle is 8 bytes and all zero when empty, so thousands of tables cost nothing until they are
 * used. The table grows and shrinks in place, a little with each insert and delete. It costs 9 to
 * 10.3 bytes per entry at any size. This header does not say how: another table could stand behind
 * it (ds/hashtable_inline.h is the exception, for lookups on the hot path).
 *
 * Scans and iterators walk in an order that keeps the table evenly filled if entries are deleted on
 * the way, and another table that takes what they find, in their order.
 *
 * Not thread-safe: one owner at a time. hashtableFree() may run on another thread than the one
 * that filled the table. */
#ifndef DS_HASHTABLE_H
#define DS_HASHTABLE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

typedef struct hashtable {
    void *body; /* NULL when empty */
} hashtable;

/* What a table must know of its entries. Calls that may need it take it as an argument; all
 * calls on one table must name the same one. */
typedef struct hashtableType {
    /* The hash an entry was inserted with. */
    uint64_t (*hash_of)(const void *entry);
    /* Whether the entry has this key. */
    bool (*match)(const void *entry, const void *key, size_t len);
} hashtableType;

/* Flags kept beside an entry, readable without touching it. Volatile entries are those that die at
 * some time: the table counts them and finds them fast. The mark is the caller's own. */
enum { HASHTABLE_VOLATILE = 1, HASHTABLE_MARK = 4 };

/* Gets an entry and its flags. */
typedef void hashtableVisitProc(void *context, void *entry, unsigned flags);

/* ---- one entry ---- */

/* An entry is any value of 48 bits that is not 0 and a multiple of 8: a pointer, or an integer in
 * the shape of one. Hashes must be strong (keyed): the table trusts all 64 bits to be random. */

void *hashtableFind(const hashtable *t, const hashtableType *type, uint64_t hash, const void *key,
                    size_t len);
/* The key of `entry` must be absent. `flags`: of the enum above. */
void hashtableInsert(hashtable *t, const hashtableType *type, uint64_t hash, void *entry,
                     unsigned flags);
/* Takes the entry with this key out and returns it; NULL when absent. */
void *hashtableDelete(hashtable *t, const hashtableType *type, uint64_t hash, const void *key,
                      size_t len);
/* Takes out the entry at this address; false when it is not there. No key is read. */
bool hashtableDeleteEntry(hashtable *t, const hashtableType *type, uint64_t hash,
                          const void *entry);
/* Whether the entry at this address is in it, which may be freed by now: nothing of it is read. */
bool hashtableHasEntry(const hashtable *t, uint64_t hash, const void *entry);
/* The entry `old` moved to `entry`; flags stay. False when `old` is not there. */
bool hashtableReplace(hashtable *t, uint64_t hash, const void *old, void *entry);
/* Sets the flags of `entry` to exactly `flags`. False when it is not there. */
bool hashtableSetFlags(hashtable *t, uint64_t hash, const void *entry, unsigned flags);

/* ---- one entry, looked up once ---- */

/* A position is what a lookup found: an entry or its absence. It is good until the next change of
 * the table. */

typedef struct hashtablePosition {
    uint64_t hash;
    void *home;     /* private: where the search began */
    uint64_t *word; /* private: where it ended; NULL when absent */
    uint32_t tag;   /* private */
} hashtablePosition;

/* Like hashtableFind(); always fills `position`. */
void *hashtableFindPosition(const hashtable *t, const hashtableType *type, uint64_t hash,
                            const void *key, size_t len, hashtablePosition *position);
/* Inserts where the lookup found nothing. */
void hashtableInsertAt(hashtable *t, const hashtableType *type, const hashtablePosition *position,
                       void *entry, unsigned flags);
/* These want a position with an entry. */
void *hashtableDeleteAt(hashtable *t, const hashtableType *type, const hashtablePosition *position);
void hashtableReplaceAt(const hashtablePosition *position, void *entry);
void hashtableSetFlagsAt(hashtable *t, const hashtablePosition *position, unsigned flags);
unsigned hashtableFlagsAt(const hashtablePosition *position);

/* Fetch the cache lines a later lookup of this hash will want: first of the table, then, one
 * memory latency later, of the entry. Hints only; the table may change meanwhile. */
void hashtablePrefetch(const hashtable *t, uint64_t hash);
void hashtablePrefetchEntry(const hashtable *t, uint64_t hash);

/* ---- many entries ---- */

uint64_t hashtableCount(const hashtable *t);
uint64_t hashtableVolatileCount(const hashtable *t);

/* A scan cursor is below 2^HASHTABLE_CURSOR_BITS; any number of that size is accepted. */
#define HASHTABLE_CURSOR_BITS 39

/* Visits some entries (a bucket or two, about 8) and returns the cursor for the next call; start
 * with 0; 0 returned means all were visited. What a cursor has passed is a fixed set of hashes,
 * whatever the table's size does meanwhile. So an entry that is present from the first call to
 * the last is visited exactly once, and no entry is visited twice, not even one that is deleted
 * and added again or moved. One exception: if the table shrinks to less than a 64th while a scan
 * is under way, the scan begins anew, so nothing is missed, but entries may be visited a second
 * time. `visit` may delete the entry it is given and may insert; it must not free another entry. */
uint64_t hashtableScan(const hashtable *t, const hashtableType *type, uint64_t cursor,
                       hashtableVisitProc *visit, void *context);
/* The same, with the same guarantees, for volatile entries only: passes over the rest of the table
 * at almost no cost, so that a whole walk costs about 1 us per volatile entry when they are few. */
uint64_t hashtableScanVolatile(const hashtable *t, const hashtableType *type, uint64_t cursor,
                               hashtableVisitProc *visit, void *context);

/* An entry, each with exactly the same chance; NULL when empty. */
void *hashtableRandom(const hashtable *t);
/* The same among volatile entries. */
void *hashtableRandomVolatile(const hashtable *t, const hashtableType *type);
/* Takes out a random entry; NULL when empty. */
void *hashtablePop(hashtable *t, const hashtableType *type);
/* Up to `want` different entries into `out`, near each other from a random start: cheap (seven
 * per cache line) and fair enough for eviction, but not independent draws. Returns how many;
 * none only when there is none. */
size_t hashtableSample(const hashtable *t, void **out, size_t want);
size_t hashtableSampleVolatile(const hashtable *t, const hashtableType *type, void **out,
                               size_t want);

/* The entries of the next buckets as they lie, at most `room`, which is 8 or more; *place goes from 0 on, and 0 are
 * returned at the end. The table may not change meanwhile. It costs least, but the order is that of the hashes: only for
 * those who neither delete as they go nor fill a table with what they find. */
size_t hashtableNextEntries(const hashtable *t, uint64_t *place, void **out, size_t room);
/* Words of a table, collected before anyone is called who might change it. Private. */
enum { HASHTABLE_WORDS_ROOM = 64 };
typedef struct hashtableWords {
    uint64_t *words; /* `room`, or a block when there are more */
    size_t count, cap;
    uint64_t room[HASHTABLE_WORDS_ROOM];
} hashtableWords;
/* Walks all entries in scan order, with the guarantees of hashtableScan() except this: a few
 * entries are fetched ahead, so of those not yet returned none may be freed. Not to be copied. */
typedef struct hashtableIterator {
    const hashtable *table;
    const hashtableType *type;
    uint64_t cursor;
    bool last;   /* private from here on */
    size_t next; /* of the entries fetched */
    hashtableWords fetched;
} hashtableIterator;

void hashtableIteratorInit(hashtableIterator *it, const hashtable *t, const hashtableType *type);
/* The next entry, or NULL at the end; `flags` may be NULL. */
void *hashtableIteratorNext(hashtableIterator *it, unsigned *flags);
void hashtableIteratorClear(hashtableIterator *it);

/* ---- the table as a whole ---- */

/* Makes room for `count` entries at once, so that filling it costs no growth; of most use on an
 * empty table. On one with entries it moves them all before it returns. Never shrinks. */
void hashtableReserve(hashtable *t, const hashtableType *type, uint64_t count);
/* Continues a resize that is under way by about `buckets` buckets. True while there is more to
 * do. */
bool hashtableWork(hashtable *t, const hashtableType *type, unsigned buckets);
bool hashtableIsSweeping(const hashtable *t);
/* For all tables: while a forked child shares our pages, resizes neither start nor go on unless
 * a table is nearly full. Main thread. */
void hashtableSetPaused(bool paused);
/* Moves the table's block to where it lies closer (memMoveIfSparse()), if it is a small one's; true when it did. */
bool hashtableCompact(hashtable *t);
/* Frees the table, calling `visit` (may be NULL) for every entry first; the handle is empty
 * afterwards. ANY_THREAD, if no other uses the table. */
void hashtableFree(hashtable *t, hashtableVisitProc *visit, void *context);
/* Bytes of memory behind the handle. */
size_t hashtableBytes(const hashtable *t);

#define HASHTABLE_PROBES_MAX 32

/* What DEBUG HTSTATS tells. */
typedef struct hashtableStats {
    uint64_t slots;   /* entries it is made for, during a resize before it */
    uint64_t buckets; /* cache lines of 8 slots, spare ones included */
    uint64_t count;
    uint64_t volatile_count;
    int64_t sweep_position; /* bucket a resize has come to, or -1 */
    uint64_t sweep_slots;   /* slots after the resize, or 0 */
    uint64_t bytes;
    /* probes[i]: entries for which a lookup reads i + 1 buckets; the last one: that many or more */
    uint64_t probes[HASHTABLE_PROBES_MAX];
} hashtableStats;

/* Walks the whole table: for debugging. */
void hashtableStatsRead(const hashtable *t, const hashtableType *type, hashtableStats *out);
/* Checks every invariant, hashing every entry; NULL when sound, else what is broken. For tests. */
const char *hashtableVerify(const hashtable *t, const hashtableType *type);

#endif
