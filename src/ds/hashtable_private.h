/* SPDX-License-Identifier: BSD-3-Clause
 *
 * What the files hashtable*.c share: tuning, regions, and the functions of one file that another
 * calls. Read hashtable_layout.h first. */
#ifndef DS_HASHTABLE_PRIVATE_H
#define DS_HASHTABLE_PRIVATE_H

#include <stddef.h>

#include "ds/fenwick.h"
#include "ds/hashtable.h"
#include "ds/hashtable_layout.h"

/* ---- tuning ---- */

#ifdef HOSTILE_BUILD
#define BIG_MIN 4        /* buckets from which a table takes the big form */
#define SWEEP_BURST 1    /* old buckets a sweep moves in one go */
#define SWEEP_QUOTA 2    /* old buckets an insert or delete pays for */
#define PREFIX_LAG_MIN 3 /* log2(buckets) - prefix bits right after keys were read ... */
#define PREFIX_LAG_MAX 3 /* ... and at most; each more halves the useful bits of a tag */
#define RUN_MAX 16       /* full buckets in a row that are taken for a skew or an attack */
#else
#define BIG_MIN 128
#define SWEEP_BURST 16
#define SWEEP_QUOTA 8
#define PREFIX_LAG_MIN 5
#define PREFIX_LAG_MAX 6
#define RUN_MAX 128
#endif

/* Percent of all words. Above GROW misses and inserts get dear quickly (the mean run of overflowing
 * buckets is 4 at 88, 9 at 92, 24 at 95). Above GROW_PAUSED words lie so far from home that tags no
 * longer tell where they belong, and an insert costs microseconds. */
#define FILL_GROW 88
#define FILL_GROW_PAUSED 95
#define FILL_GROW_SKEWED 55
#define FILL_SHRINK 45
#define FILL_SHRUNK 75
/* A table grows by an eighth. A growth moves all words, so a smaller step costs time, a larger
 * one memory. */
#define GROW_STEP 8
_Static_assert(SWEEP_QUOTA > GROW_STEP * 100 / FILL_GROW / 8,
               "a sweep ends before the next is due");

/* Buckets behind the scale's last, for what overflows there; more are added when needed. */
#define SPARE_BUCKETS 16
/* Distances beyond this make a scale inexact: tags of 16 bits still tell order and unit with
 * room to spare. */
#define DISTANCE_MAX 0x6fffu

/* ---- scales and regions ---- */

static inline unsigned log2Floor(uint64_t n) {
    hotCheck(n > 0);
    return 63u - (unsigned)__builtin_clzll((unsigned long long)n);
}
/* The low `count` bits of x in reverse order. */
static inline uint64_t mirrorBits(uint64_t x, unsigned count) {
    x = (x & 0x5555555555555555ull) << 1 | (x >> 1 & 0x5555555555555555ull);
    x = (x & 0x3333333333333333ull) << 2 | (x >> 2 & 0x3333333333333333ull);
    x = (x & 0x0f0f0f0f0f0f0f0full) << 4 | (x >> 4 & 0x0f0f0f0f0f0f0f0full);
    return count ? __builtin_bswap64(x) >> (64 - count) : 0;
}

/* The prefix bits a resize to n buckets gives when it reads the keys anyway. */
static inline unsigned prefixBitsFor(uint64_t n) {
    unsigned bits = log2Floor(n);
    return bits > PREFIX_LAG_MIN ? bits - PREFIX_LAG_MIN : 0;
}
void scaleInit(tableScale *sc, uint64_t bucket_count, unsigned prefix_bits);

/* The greatest unit whose home is bucket `at` or before it: ceil((at + 1) * units / n) - 1, with
 * a reciprocal in place of the division, which may be one off. */
static inline uint64_t scaleLastUnit(const tableScale *sc, uint64_t at) {
    if (unlikely(at + 1 >= sc->bucket_count)) return ~0ull >> sc->shift;
    uint64_t unit =
        (uint64_t)(((unsigned __int128)(at + 1) * sc->reciprocal) >> sc->reciprocal_shift);
    if (scaleUnitHome(sc, unit + 1) <= at) return unit + 1;
    return unit - (scaleUnitHome(sc, unit) > at);
}
/* The first unit whose home is bucket `at`. */
static inline uint64_t scaleFirstUnit(const tableScale *sc, uint64_t at) {
    return at ? scaleLastUnit(sc, at - 1) + 1 : 0;
}
/* `word` with its tag for this scale. */
static inline uint64_t scaleTagged(const tableScale *sc, uint64_t hash, uint64_t word) {
    return scaleTag(sc, hash) << TAG_SHIFT | (word & (WORD_ENTRY | WORD_USER));
}

/* A run of buckets under one scale. */
typedef struct tableRegion {
    tableBucket *buckets; /* of the whole array */
    tableScale *sc;
    const hashtableType *type;
    uint64_t limit; /* the region ends before this bucket */
    bool long_run;  /* set when a word found its home and RUN_MAX more buckets full */
} tableRegion;

/* How far the unit of `word`, in a bucket whose scaleLastUnit() is `last`, lies below that. */
static inline uint64_t regionDistance(const tableRegion *r, uint64_t last, uint64_t word) {
    if (unlikely(r->sc->inexact)) {
        return last - scaleUnit(r->sc, r->type->hash_of(wordEntry(word)));
    }
    return (last - wordTag(word)) & TAG_MASK;
}

#define PLACE_FULL UINT64_MAX

/* Puts `word` (tagged for this region) in its place; full buckets pass on their greatest unit.
 * Returns the bucket whose free word was taken, or PLACE_FULL, with nothing changed, if there is
 * none before the limit. */
uint64_t regionPlace(tableRegion *r, uint64_t hash, uint64_t word);
/* Takes word `index` of bucket `at` out and closes the gap from the right. `displaced`: its home
 * is not `at`. */
void regionRemove(tableRegion *r, uint64_t at, unsigned index, bool displaced);

/* A word on its way to another place; only the bits of the hash that are known are set. */
typedef struct tableItem {
    uint64_t hash;
    uint64_t word;
} tableItem;

/* The words of a bucket, without overflow bits, in order of hash, into `items` of 8; returns how
 * many. `rehash`: with their whole hashes, from the keys. */
unsigned bucketItems(const tableRegion *r, uint64_t at, bool rehash, tableItem *items);
/* Puts `item` in its place among `count` sorted items; there must be room for one more. */
void itemsInsert(tableItem *items, size_t count, tableItem item);
/* How many buckets sorted items would take. */
uint64_t itemsNeed(const tableScale *sc, const tableItem *items, size_t count);

/* Lays words that come in order of hash into free buckets, from bucket `at` of a region on. */
typedef struct tableLayout {
    tableRegion region;
    uint64_t at;
    unsigned used; /* words of that bucket */
} tableLayout;
/* `word` has its tag for the region. False when the region ends before a place for it. */
static inline bool layoutAdd(tableLayout *l, uint64_t hash, uint64_t word) {
    tableScale *sc = l->region.sc;
    uint64_t home = scaleHome(sc, hash), at = l->at;
    if (unlikely(home >= l->region.limit)) return false;
    if (home > at) {
        l->at = at = home;
        l->used = 0;
    } else if (unlikely(l->used == BUCKET_WORDS)) {
        /* The bucket is full; this word, whose home it is or one before, goes on to the next. */
        if (at + 1 >= l->region.limit) return false;
        bucketSetOverflow(&l->region.buckets[at]);
        l->at = ++at;
        l->used = 0;
    }
    if (unlikely(at - home > sc->reach) && sc->shift != TAG_SHIFT) sc->inexact = true;
    l->region.buckets[at].word[l->used++] = word;
    return true;
}
static inline bool layoutAddItem(tableLayout *l, tableItem item) {
    return layoutAdd(l, item.hash, scaleTagged(l->region.sc, item.hash, item.word));
}

/* ---- the forms (hashtable_form.c) ---- */

/* The region and scale a small table is; `sc` is the room for it. */
tableRegion smallRegion(tableSmall *s, const hashtableType *type, tableScale *sc);
/* The region that `hash` belongs to. */
static inline tableRegion bigRegion(tableBig *g, const hashtableType *type, uint64_t hash) {
    unsigned side = hash >= g->bound;
    return (tableRegion){.buckets = g->buckets,
                         .sc = &g->scales[side],
                         .type = type,
                         .limit = side ? g->allocated : g->limit};
}
/* Builds the table anew for `bucket_count` buckets or more, with `extra` (may be NULL) added. No
 * sweep may be under way. */
void tableRebuild(hashtable *t, const hashtableType *type, uint64_t bucket_count,
                  const tableItem *extra);
/* Frees the memory, not the entries. */
void tableFreeBody(hashtable *t);
/* Gives the array at least `buckets` buckets (and not many more); contents stay, new ones are
 * free. */
void bigResizeArray(tableBig *g, uint64_t buckets);
/* Places a word of the region of scales[1], where room can be made behind. Returns the bucket. */
uint64_t bigPlaceUpper(tableBig *g, const hashtableType *type, uint64_t hash, uint64_t word,
                       bool *long_run);
void bigSetThresholds(tableBig *g);

/* ---- sweeps (hashtable_sweep.c) ---- */

void sweepBeginGrowth(tableBig *g, const hashtableType *type, uint64_t bucket_count);
void sweepBeginShrink(tableBig *g, const hashtableType *type, uint64_t bucket_count);
/* One burst. */
void sweepStep(tableBig *g, const hashtableType *type);
/* What an insert or delete, or the cron, does: `buckets` more are owed; pays when a burst is
 * due. */
void sweepWork(tableBig *g, const hashtableType *type, unsigned buckets);
/* Starts a growth if the count, or a long run, asks for it. */
void sweepConsiderGrowth(tableBig *g, const hashtableType *type, bool long_run);
bool sweepIsPaused(void);

/* ---- volatile entries (hashtable_volatile.c) ---- */

/* Counts volatile entries per block of hashes: a block is the hashes with equal prefix bits, in
 * a table the words of 32 to 128 buckets. Blocks of hashes, not of buckets, so that moving words
 * changes no count. Numbers of blocks are mirrored, so that walking the counts in order is
 * walking the table in scan order. */
struct volatileIndex {
    fenwick counts;
    unsigned bits;
};
static inline size_t volatileBlock(const volatileIndex *v, uint64_t hash) {
    return v->bits ? (size_t)mirrorBits(hash >> (64 - v->bits), v->bits) : 0;
}
volatileIndex *volatileIndexNew(unsigned bits);
void volatileIndexFree(volatileIndex *v);
/* Adds `delta` (1 or -1) to what the table counts for `hash`; makes the index at the first. */
void volatileCount(tableBig *g, uint64_t hash, int delta);

/* ---- walking (hashtable_scan.c) ---- */

/* Words collected from a range of hashes. */
typedef hashtableWords wordList;
void wordListInit(wordList *list);
void wordListClear(wordList *list);

/* A scan cursor, taken apart. Hash space is cut into 2^block_bits blocks, visited in mirrored
 * order. */
typedef struct scanPlace {
    unsigned block_bits;
    uint64_t position; /* mirrored block number, then the cell within the block */
} scanPlace;
#define SCAN_POSITION_BITS 34
#define SCAN_BLOCK_BITS (HASHTABLE_CURSOR_BITS - SCAN_POSITION_BITS)
#define SCAN_BLOCK_BITS_MAX ((1u << SCAN_BLOCK_BITS) - 1)
#define SCAN_SHRINK_BITS 6 /* a scan begins anew after a shrink to less than 2^-6 */
#define SCAN_CELL_MASK (~0ull >> SCAN_POSITION_BITS)

scanPlace scanPlaceDecode(const hashtable *t, uint64_t cursor);
/* 0 at the end of the table. */
uint64_t scanPlaceEncode(const scanPlace *place);
/* The first hash at a place. */
uint64_t scanPlaceHash(const scanPlace *place);
/* Appends the words with one of `flags` (0: all words) of hashes in [low, high]. */
void scanCollect(const hashtable *t, const hashtableType *type, uint64_t low, uint64_t high,
                 uint64_t flags, wordList *list);
/* Collects what stands at `place`, up to the end of its bucket (`whole_block`: of its block),
 * and moves on. */
void scanAdvance(const hashtable *t, const hashtableType *type, scanPlace *place, bool whole_block,
                 uint64_t flags, wordList *list);

/* All buckets of the table, whatever the form. */
typedef struct tableArray {
    tableBucket *buckets;
    uint64_t count;
} tableArray;
tableArray tableBuckets(const hashtable *t);

#endif
