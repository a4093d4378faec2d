/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Memory layout of a hashtable: words, buckets, scales, the small and the big form. Private to
 * hashtable*.c and hashtable_inline.h. The data structure:
 *
 * A bucket is one cache line of 8 words. A word holds an entry; 0 means free:
 *
 *     [ 16 bits of tag | 45 bits of pointer | 3 flags ]
 *
 * Flags 0 and 2 belong to the user; flag 1 of the last word is the bucket's OVERFLOW bit.
 *
 * A scale maps hashes to an array of n buckets; n can be any number. It uses only the leading bits
 * of the hash, called the unit: some prefix bits, about log2(n) - 5, followed by 16 bits, the tag.
 *
 *     unit = hash >> shift      home = unit * n / 2^(bits of a unit)      tag = unit & 0xffff
 *
 * So buckets are in the order of hashes. The home bucket depends only on the unit; therefore the
 * unit can be computed from the position of a word and its tag (regionDistance). When n changes,
 * entries are moved without reading their keys. Only after n has grown eightfold does a resize read
 * the keys, to obtain new bits for the tags.
 *
 * Invariants. (1) No word is in a bucket before its home, and every unit in a bucket is <= every
 * unit in the next one; within a bucket there is no order. (2) OVERFLOW of bucket q is set if and
 * only if an entry with home <= q is in bucket q + 1; bucket q is full then. (3) So the layout,
 * except for the order in a bucket, is determined by the set of hashes. A lookup reads buckets from
 * the home bucket on while OVERFLOW is set and no greater unit was found. */
#ifndef DS_HASHTABLE_LAYOUT_H
#define DS_HASHTABLE_LAYOUT_H

#include <stdbool.h>
#include <stdint.h>

#include "base/assert.h"
#include "base/bytes.h"
#include "ds/hashtable.h"

#if defined(__SSE4_1__) && !defined(HASHTABLE_NO_SIMD)
#define HASHTABLE_SIMD 1
#include <smmintrin.h>
#endif

/* ---- words ---- */

#define WORD_ENTRY 0x0000fffffffffff8ull
#define WORD_OVERFLOW 2ull
#define WORD_USER ((uint64_t)(HASHTABLE_VOLATILE | HASHTABLE_MARK))
#define TAG_SHIFT 48
#define TAG_MASK 0xffffull

static inline void *wordEntry(uint64_t word) { return (void *)(uintptr_t)(word & WORD_ENTRY); }
/* The entry of a word whose table has this type (hashtableType.entry_mark). */
static inline void *wordEntryOfType(uint64_t word, const hashtableType *type) {
    return (void *)(uintptr_t)(word & (WORD_ENTRY | type->entry_mark));
}
static inline uint64_t wordTag(uint64_t word) { return word >> TAG_SHIFT; }

/* ---- buckets ---- */

#define BUCKET_WORDS 8

typedef struct tableBucket {
    uint64_t word[BUCKET_WORDS];
} tableBucket;
_Static_assert(sizeof(tableBucket) == CACHE_LINE, "a bucket is one cache line");

static inline bool bucketOverflows(const tableBucket *b) {
    return (b->word[BUCKET_WORDS - 1] & WORD_OVERFLOW) != 0;
}
static inline void bucketSetOverflow(tableBucket *b) { b->word[BUCKET_WORDS - 1] |= WORD_OVERFLOW; }
static inline void bucketClearOverflow(tableBucket *b) {
    b->word[BUCKET_WORDS - 1] &= ~WORD_OVERFLOW;
}
/* The OVERFLOW bit belongs to the bucket, not to the word. */
static inline void bucketStore(tableBucket *b, unsigned index, uint64_t word) {
    hotCheck(index < BUCKET_WORDS);
    uint64_t kept = index == BUCKET_WORDS - 1 ? b->word[index] & WORD_OVERFLOW : 0;
    b->word[index] = (word & ~WORD_OVERFLOW) | kept;
}

/* The 8 tags of a bucket, and 8-bit masks with bit i for word i. */
#if HASHTABLE_SIMD

typedef __m128i tagVector;

/* Two words at `index`. Buckets of small tables are not aligned. */
static inline __m128 bucketPair(const tableBucket *b, unsigned index) {
    return _mm_loadu_ps((const float *)&b->word[index]);
}
/* Collects the upper halves of words, given as pairs, in lanes of 32 bits. */
#define UPPER_HALVES(low, high) _mm_castps_si128(_mm_shuffle_ps(low, high, 0xdd))

static inline tagVector bucketTags(const tableBucket *b) {
    __m128i low = UPPER_HALVES(bucketPair(b, 0), bucketPair(b, 2));
    __m128i high = UPPER_HALVES(bucketPair(b, 4), bucketPair(b, 6));
    return _mm_packus_epi32(_mm_srli_epi32(low, 16), _mm_srli_epi32(high, 16));
}
static inline unsigned laneMask(__m128i lanes) {
    return (unsigned)_mm_movemask_epi8(_mm_packs_epi16(lanes, _mm_setzero_si128()));
}
static inline unsigned tagsEqual(tagVector tags, uint64_t tag) {
    return laneMask(_mm_cmpeq_epi16(tags, _mm_set1_epi16((short)tag)));
}
/* True if some tag is greater than `tag`, both relative to `base` as signed 16-bit numbers. */
static inline bool tagsBeyond(tagVector tags, uint64_t tag, uint64_t base) {
    __m128i from = _mm_sub_epi16(tags, _mm_set1_epi16((short)base));
    return _mm_movemask_epi8(_mm_cmpgt_epi16(from, _mm_set1_epi16((short)(tag - base)))) != 0;
}
/* Lanes of all ones for the free words. */
static inline __m128i bucketFreeLanes(const tableBucket *b) {
    __m128i zero = _mm_setzero_si128();
    __m128i equal[4];
    for (unsigned i = 0; i < 4; i++)
        equal[i] = _mm_cmpeq_epi64(_mm_castps_si128(bucketPair(b, 2 * i)), zero);
    __m128i low = UPPER_HALVES(_mm_castsi128_ps(equal[0]), _mm_castsi128_ps(equal[1]));
    __m128i high = UPPER_HALVES(_mm_castsi128_ps(equal[2]), _mm_castsi128_ps(equal[3]));
    return _mm_packs_epi32(low, high);
}
static inline unsigned bucketFree(const tableBucket *b) { return laneMask(bucketFreeLanes(b)); }

#else

typedef struct tagVector {
    uint16_t tag[BUCKET_WORDS];
} tagVector;

static inline tagVector bucketTags(const tableBucket *b) {
    tagVector tags;
    for (unsigned i = 0; i < BUCKET_WORDS; i++) tags.tag[i] = (uint16_t)wordTag(b->word[i]);
    return tags;
}
static inline unsigned tagsEqual(tagVector tags, uint64_t tag) {
    unsigned mask = 0;
    for (unsigned i = 0; i < BUCKET_WORDS; i++) mask |= (unsigned)(tags.tag[i] == tag) << i;
    return mask;
}
static inline bool tagsBeyond(tagVector tags, uint64_t tag, uint64_t base) {
    bool beyond = false;
    for (unsigned i = 0; i < BUCKET_WORDS; i++)
        beyond |= (int16_t)(uint16_t)(tags.tag[i] - base) > (int16_t)(uint16_t)(tag - base);
    return beyond;
}
static inline unsigned bucketFree(const tableBucket *b) {
    unsigned mask = 0;
    for (unsigned i = 0; i < BUCKET_WORDS; i++) mask |= (unsigned)(b->word[i] == 0) << i;
    return mask;
}

#endif

static inline unsigned bucketUsed(const tableBucket *b) { return ~bucketFree(b) & 0xffu; }

/* ---- scales ---- */

typedef struct tableScale {
    uint64_t bucket_count;
    uint64_t reciprocal; /* for scaleLastUnit() */
    uint8_t reciprocal_shift;
    uint8_t shift; /* bits of a hash below its unit */
    uint8_t reach; /* within this distance in buckets from home, the tag determines the unit */
    bool inexact;  /* an entry is too far from home: units must be computed from the key's hash */
} tableScale;

static inline uint64_t mulHigh(uint64_t a, uint64_t b) {
    return (uint64_t)(((unsigned __int128)a * b) >> 64);
}
static inline uint64_t scaleUnit(const tableScale *sc, uint64_t hash) { return hash >> sc->shift; }
static inline uint64_t scaleUnitHome(const tableScale *sc, uint64_t unit) {
    return mulHigh(unit << sc->shift, sc->bucket_count);
}
static inline uint64_t scaleHome(const tableScale *sc, uint64_t hash) {
    return scaleUnitHome(sc, hash >> sc->shift);
}
static inline uint64_t scaleTag(const tableScale *sc, uint64_t hash) {
    return (hash >> sc->shift) & TAG_MASK;
}
/* Without prefix bits the tag is the whole unit. */
static inline unsigned scalePrefixBits(const tableScale *sc) { return 48u - sc->shift; }

/* ---- the small and the big form ---- */

/* A few buckets and 8 bytes in one block, with 0 prefix bits; resized by rebuilding. */
typedef struct tableSmall {
    uint16_t count;
    uint16_t volatile_count;
    uint16_t bucket_count; /* of the scale */
    uint16_t allocated;    /* buckets allocated, possibly more than the scale uses */
    tableBucket buckets[];
} tableSmall;

typedef struct volatileIndex volatileIndex;

/* RESIZE_CHECK: nothing is moved yet, the table is read to see whether it can shrink. */
typedef enum tableResize { RESIZE_NONE, RESIZE_CHECK, RESIZE_GROW, RESIZE_SHRINK } tableResize;

/* A separate array that is resized in place. During a resize both scales are in use: hashes below
 * `bound` follow scales[0] and are in the lower region, the buckets before `limit`; the others
 * follow scales[1]. The regions never overlap. Otherwise bound is 0, so that only scales[1] is
 * used. During a check, scales[0] is that of the shrink, buckets before `resize_at` have been read,
 * and `limit` is the word after theirs in the new scale. */
typedef struct tableBig {
    /* Read by lookups: one cache line. */
    tableBucket *buckets;
    uint64_t bound;
    tableScale scales[2];
    /* Also used by inserts and deletes. */
    uint64_t count;
    uint64_t grow_at;   /* grow if the count exceeds it, unless resizing */
    uint64_t shrink_at; /* shrink if the count falls below it, unless resizing */
    uint64_t allocated; /* buckets in the array: those of the scale and spare ones for overflow */
    /* Old home buckets below it (growing) or from it on (shrinking) still have to be moved. */
    uint64_t resize_at;
    uint64_t limit;
    uint32_t credit; /* buckets of resize work that are due */
    tableResize state;
    volatileIndex *volatiles; /* counts all volatile entries; NULL until there is one */
    /* Counts the moved ones, during a resize that changes the prefix bits. */
    volatileIndex *volatiles_next;
    void *block; /* memory that contains the array */
    size_t block_bytes;
    bool mapped; /* `block` comes from memMap() */
} tableBig;
_Static_assert(offsetof(tableBig, count) == CACHE_LINE, "a lookup reads one line of the header");

/* The big form is marked by the lowest bit of the handle. */
static inline bool tableIsBig(const hashtable *t) { return (uintptr_t)t->body & 1; }
static inline tableBig *tableAsBig(const hashtable *t) {
    return (tableBig *)((uintptr_t)t->body - 1);
}
static inline tableSmall *tableAsSmall(const hashtable *t) { return (tableSmall *)t->body; }

#endif
