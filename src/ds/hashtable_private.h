/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Declarations shared by hashtable*.c: tuning, regions, internal functions. Read hashtable_layout.h
 * first. */
#ifndef DS_HASHTABLE_PRIVATE_H
#define DS_HASHTABLE_PRIVATE_H

#include <stddef.h>

#include "ds/fenwick.h"
#include "ds/hashtable.h"
#include "ds/hashtable_layout.h"

/* ---- tuning ---- */

#ifdef HOSTILE_BUILD
#define BIG_MIN 4             /* number of buckets from which the big form is used */
#define RESIZE_STEP_BUCKETS 1 /* old buckets moved in one step of a resize */
#define RESIZE_QUOTA 2        /* old buckets of resize work per insert or delete */
#define CHECK_STEP_BUCKETS 2  /* buckets read in one step of the check before a shrink */
#define PREFIX_LAG_MIN 3      /* log2(buckets) - prefix bits directly after keys were read ... */
#define PREFIX_LAG_MAX 3      /* ... and at most; each step halves the useful bits of a tag */
#define RUN_MAX 16 /* consecutive full buckets that indicate skewed hashes or an attack */
#else
#define BIG_MIN 128
#define RESIZE_STEP_BUCKETS 16
#define RESIZE_QUOTA 8
#define CHECK_STEP_BUCKETS 64
#define PREFIX_LAG_MIN 5
#define PREFIX_LAG_MAX 7
#define RUN_MAX 128
#endif

/* Fill limits in percent of all words. Above GROW, misses and inserts become expensive quickly (the
 * mean run of overflowing buckets is 4 at 88, 9 at 92, 24 at 95). Above GROW_PAUSED, words are so
 * far from home that tags do not determine the unit, and an insert takes microseconds. */
#define FILL_GROW 88
#define FILL_GROW_PAUSED 95
#define FILL_GROW_SKEWED 55
#define FILL_SHRINK 45
#define FILL_SHRUNK 75
/* A table with a mapping grows by 1/4, a smaller one by 1/8, because the allocator rounds its block
 * up, too. A growth moves all words, so a smaller step costs time, a larger one memory: 1/4 instead
 * of 1/8 takes half the moves and 0.6 bytes more per entry on average. */
#define GROW_STEP 4
#define GROW_STEP_SMALL 8
_Static_assert(RESIZE_QUOTA > GROW_STEP_SMALL * 100 / FILL_GROW / 8,
               "a resize ends before the next one is due");

/* Buckets after the last one of the scale, for overflow; more are added if needed. */
#define SPARE_BUCKETS 16
/* Larger distances make a scale inexact: up to here 16-bit tags determine order and unit with a
 * margin. */
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

/* Prefix bits of a resize to n buckets that reads the keys. */
static inline unsigned prefixBitsFor(uint64_t n) {
    unsigned bits = log2Floor(n);
    return bits > PREFIX_LAG_MIN ? bits - PREFIX_LAG_MIN : 0;
}
void scaleInit(tableScale *sc, uint64_t bucket_count, unsigned prefix_bits);

/* The greatest unit with home <= `at`: ceil((at + 1) * units / n) - 1. Uses a reciprocal instead of
 * a division, corrected by at most one. */
static inline uint64_t scaleLastUnit(const tableScale *sc, uint64_t at) {
    if (unlikely(at + 1 >= sc->bucket_count)) return ~0ull >> sc->shift;
    uint64_t unit =
        (uint64_t)(((unsigned __int128)(at + 1) * sc->reciprocal) >> sc->reciprocal_shift);
    if (scaleUnitHome(sc, unit + 1) <= at) return unit + 1;
    return unit - (scaleUnitHome(sc, unit) > at);
}
/* The first unit with home `at`. */
static inline uint64_t scaleFirstUnit(const tableScale *sc, uint64_t at) {
    return at ? scaleLastUnit(sc, at - 1) + 1 : 0;
}
/* `word` with its tag in this scale. */
static inline uint64_t scaleTagged(const tableScale *sc, uint64_t hash, uint64_t word) {
    return scaleTag(sc, hash) << TAG_SHIFT | (word & (WORD_ENTRY | WORD_USER));
}

/* A range of buckets under one scale. */
typedef struct tableRegion {
    tableBucket *buckets; /* of the whole array */
    tableScale *sc;
    const hashtableType *type;
    uint64_t limit; /* the first bucket after the region */
    bool long_run;  /* set if a word found RUN_MAX + 1 full buckets from its home on */
} tableRegion;

/* Distance of the unit of `word` below `last`, the scaleLastUnit() of its bucket. */
static inline uint64_t regionDistance(const tableRegion *r, uint64_t last, uint64_t word) {
    if (unlikely(r->sc->inexact)) {
        return last - scaleUnit(r->sc, r->type->hash_of(wordEntryOfType(word, r->type)));
    }
    return (last - wordTag(word)) & TAG_MASK;
}

#define PLACE_FULL UINT64_MAX

/* Stores `word`, which has the tag of this region; full buckets pass on their greatest unit.
 * Returns the bucket in which a free word was used, or PLACE_FULL, without changes, if there is
 * none before the limit. */
uint64_t regionPlace(tableRegion *r, uint64_t hash, uint64_t word);
/* Removes word `index` of bucket `at` and closes the gap from the right. `displaced`: its home is
 * not `at`. */
void regionRemove(tableRegion *r, uint64_t at, unsigned index, bool displaced);

/* A word being moved; only the known bits of the hash are set. */
typedef struct tableItem {
    uint64_t hash;
    uint64_t word;
} tableItem;

/* Stores the words of a bucket, without overflow bits and sorted by hash, in `items` (8); returns
 * their number. `rehash`: with complete hashes, computed from the keys. */
unsigned bucketItems(const tableRegion *r, uint64_t at, bool rehash, tableItem *items);
/* Inserts `item` into `count` sorted items; there must be space for one more. */
void itemsInsert(tableItem *items, size_t count, tableItem item);
/* Number of buckets that the sorted items require. */
uint64_t itemsNeed(const tableScale *sc, const tableItem *items, size_t count);

/* Writes words in order of hash to free buckets, starting at bucket `at` of a region. */
typedef struct tableLayout {
    tableRegion region;
    uint64_t at;
    unsigned used; /* words used in that bucket */
} tableLayout;
/* `word` has its tag for the region. False if the end of the region is reached. */
static inline bool layoutAdd(tableLayout *l, uint64_t hash, uint64_t word) {
    tableScale *sc = l->region.sc;
    uint64_t home = scaleHome(sc, hash), at = l->at;
    if (unlikely(home >= l->region.limit)) return false;
    if (home > at) {
        l->at = at = home;
        l->used = 0;
    } else if (unlikely(l->used == BUCKET_WORDS)) {
        /* The bucket is full; this word, with home here or before, goes to the next one. */
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

/* The region and scale of a small table; `sc` receives the scale. */
tableRegion smallRegion(tableSmall *s, const hashtableType *type, tableScale *sc);
/* The region of `hash`. */
static inline tableRegion bigRegion(tableBig *g, const hashtableType *type, uint64_t hash) {
    unsigned side = hash >= g->bound;
    return (tableRegion){.buckets = g->buckets,
                         .sc = &g->scales[side],
                         .type = type,
                         .limit = side ? g->allocated : g->limit};
}
/* Rebuilds the table with at least `bucket_count` buckets, adding `extra` (may be NULL). Not during
 * a resize. */
void tableRebuild(hashtable *t, const hashtableType *type, uint64_t bucket_count,
                  const tableItem *extra);
/* Frees the memory, not the entries. */
void tableFreeBody(hashtable *t);
/* Resizes the array to at least `buckets` buckets (and not many more); contents are kept, new ones
 * are free. */
void bigResizeArray(tableBig *g, uint64_t buckets);
/* Stores a word of the region of scales[1], extending the array if necessary. Returns the
 * bucket. */
uint64_t bigPlaceUpper(tableBig *g, const hashtableType *type, uint64_t hash, uint64_t word,
                       bool *long_run);
void bigSetThresholds(tableBig *g);

/* ---- resizing (hashtable_resize.c) ---- */

/* True if both scales are in use: not during the check before a shrink. */
static inline bool resizeMoves(const tableBig *g) {
    return g->state == RESIZE_GROW || g->state == RESIZE_SHRINK;
}

void resizeBeginGrowth(tableBig *g, const hashtableType *type, uint64_t bucket_count);
/* Begins with a check (RESIZE_CHECK); without effect on the array if entries are distributed too
 * unevenly. */
void resizeBeginShrink(tableBig *g, uint64_t bucket_count);
/* Performs one step of a resize. */
void resizeStep(tableBig *g, const hashtableType *type);
/* Called by inserts, deletes and the cron: adds `buckets` to the work due and performs a step if
 * enough is due. */
void resizeWork(tableBig *g, const hashtableType *type, unsigned buckets);
/* Starts growing if required by the count or a long run. */
void resizeConsiderGrowth(tableBig *g, const hashtableType *type, bool long_run);
bool resizeIsPaused(void);

/* ---- volatile entries (hashtable_volatile.c) ---- */

/* Counts volatile entries per block of hashes. A block is all hashes with equal prefix bits, in a
 * table the words of 32 to 128 buckets. Because blocks are defined by hashes, moving words does not
 * change the counts. Block numbers are bit-reversed, so iterating over the counts follows the scan
 * order. */
struct volatileIndex {
    fenwick counts;
    unsigned bits;
};
static inline size_t volatileBlock(const volatileIndex *v, uint64_t hash) {
    return v->bits ? (size_t)mirrorBits(hash >> (64 - v->bits), v->bits) : 0;
}
volatileIndex *volatileIndexNew(unsigned bits);
void volatileIndexFree(volatileIndex *v);
/* Moves its blocks as hashtableCompact() does; *v (may be NULL) changes. */
unsigned volatileIndexCompact(volatileIndex **v);
/* Adds `delta` (1 or -1) to the count for `hash`; creates the index on first use. */
void volatileCount(tableBig *g, uint64_t hash, int delta);

/* ---- scanning (hashtable_scan.c) ---- */

/* Words collected from a range of hashes. */
typedef hashtableWords wordList;
void wordListInit(wordList *list);
void wordListClear(wordList *list);

/* A decoded scan cursor. The hash space is divided into 2^block_bits blocks, visited in
 * bit-reversed order. */
typedef struct scanPlace {
    unsigned block_bits;
    uint64_t position; /* bit-reversed block number, then the cell within the block */
} scanPlace;
#define SCAN_POSITION_BITS 34
#define SCAN_BLOCK_BITS (HASHTABLE_CURSOR_BITS - SCAN_POSITION_BITS)
#define SCAN_BLOCK_BITS_MAX ((1u << SCAN_BLOCK_BITS) - 1)
#define SCAN_SHRINK_BITS 6 /* a scan restarts after a shrink to less than 2^-6 */
#define SCAN_CELL_MASK (~0ull >> SCAN_POSITION_BITS)

scanPlace scanPlaceDecode(const hashtable *t, uint64_t cursor);
/* 0 at the end of the table. */
uint64_t scanPlaceEncode(const scanPlace *place);
/* The first hash at a scan position. */
uint64_t scanPlaceHash(const scanPlace *place);
/* Appends the words with one of `flags` (0: all words) and hashes in [low, high]. */
void scanCollect(const hashtable *t, const hashtableType *type, uint64_t low, uint64_t high,
                 uint64_t flags, wordList *list);
/* Collects the words at `place`, up to the end of its bucket (`whole_block`: of its block), and
 * advances it. */
void scanAdvance(const hashtable *t, const hashtableType *type, scanPlace *place, bool whole_block,
                 uint64_t flags, wordList *list);

/* All buckets of a table in either form. */
typedef struct tableArray {
    tableBucket *buckets;
    uint64_t count;
} tableArray;
tableArray tableBuckets(const hashtable *t);

#endif
