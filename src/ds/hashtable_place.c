/* SPDX-License-Identifier: BSD-3-Clause
 *
 * hashtable: storing words in an array of buckets and removing them, preserving the order.
 *
 * Invariants (hashtable_layout.h): units ascend from bucket to bucket; OVERFLOW is set if and only
 * if a word of this bucket or earlier ones is in the next bucket; such a bucket is full. They hold
 * after each function. Cost: usually one cache line; at 88 % fill half of the calls access about 4
 * more. Not thread-safe. */
#include "ds/hashtable_private.h"

void scaleInit(tableScale *sc, uint64_t bucket_count, unsigned prefix_bits) {
    check(bucket_count > 0);
    unsigned unit_bits = prefix_bits + 16;
    unsigned size_bits = log2Floor(bucket_count);
    check(bucket_count < 1ull << 40);
    check(prefix_bits <= size_bits);
    sc->bucket_count = bucket_count;
    sc->shift = (uint8_t)(64 - unit_bits);
    sc->inexact = false;
    /* A bucket covers at most 2^(16 - lag) units. */
    unsigned lag = size_bits - prefix_bits;
    unsigned reach = lag < 16 ? (DISTANCE_MAX >> (16 - lag)) : DISTANCE_MAX;
    sc->reach = (uint8_t)(prefix_bits == 0 || reach > UINT8_MAX ? UINT8_MAX
                          : reach > 0                           ? reach - 1
                                                                : 0);
    if (prefix_bits == 0) {
        /* Small tables compute this for every change; for few buckets this precision is
         * sufficient. */
        sc->reciprocal = UINT64_MAX / bucket_count;
        sc->reciprocal_shift = (uint8_t)(64 - unit_bits);
    } else {
        sc->reciprocal = (uint64_t)(((unsigned __int128)1 << (62 + size_bits)) / bucket_count);
        sc->reciprocal_shift = (uint8_t)(62 + size_bits - unit_bits);
    }
}

/* A word of `unit` is going to be in bucket `at`: marks the scale as inexact if tags no longer
 * determine the distance from home. Tags that are whole units always do. */
static inline void noteDistance(tableScale *sc, uint64_t at, uint64_t unit) {
    hotCheck(at >= scaleUnitHome(sc, unit));
    if (sc->shift == TAG_SHIFT || likely(at - scaleUnitHome(sc, unit) <= sc->reach)) return;
    if (scaleLastUnit(sc, at) - unit > DISTANCE_MAX) sc->inexact = true;
}

/* The word with the greatest unit in a full bucket, and its distance, for any scale. */
static NO_INLINE unsigned bucketGreatest(const tableRegion *r, const tableBucket *b, uint64_t last,
                                         uint64_t *distance) {
    unsigned index = 0;
    *distance = UINT64_MAX;
    for (unsigned i = 0; i < BUCKET_WORDS; i++) {
        uint64_t d = regionDistance(r, last, b->word[i]);
        if (d < *distance) {
            *distance = d;
            index = i;
        }
    }
    return index;
}

/* One bucket of placeDisplaced(): stores `*word` in the full bucket `at` unless its unit is the
 * greatest, and replaces both by the word and unit to pass on. */
static inline void bucketPassOn(const tableRegion *r, uint64_t at, uint64_t *unit, uint64_t *word) {
    tableBucket *b = &r->buckets[at];
    unsigned index;
    uint64_t beyond; /* by how much the greatest unit of the bucket is greater; 0: it is not */
#if HASHTABLE_SIMD
    if (likely(!r->sc->inexact)) {
        /* Tags that are whole units are compared as they are; of others the difference to `*unit`
         * is signed, which is put in the middle of the unsigned range (see tableProbeAt()). */
        uint64_t base = r->sc->shift == TAG_SHIFT ? 0 : *unit - 0x8000;
        __m128i from = _mm_sub_epi16(bucketTags(b), _mm_set1_epi16((short)base));
        __m128i inverse = _mm_xor_si128(from, _mm_set1_epi16(-1));
        unsigned least = (unsigned)_mm_cvtsi128_si32(_mm_minpos_epu16(inverse));
        uint64_t greatest = ~least & 0xffffu, own = (*unit - base) & 0xffffu;
        index = least >> 16;
        beyond = greatest > own ? greatest - own : 0;
    } else
#endif
    {
        uint64_t last = scaleLastUnit(r->sc, at), least;
        index = bucketGreatest(r, b, last, &least);
        beyond = least < last - *unit ? last - *unit - least : 0;
    }
    if (beyond > 0) {
        uint64_t passed_on = b->word[index] & ~WORD_OVERFLOW;
        bucketStore(b, index, *word);
        *word = passed_on;
        *unit += beyond;
    }
    bucketSetOverflow(b);
}

/* Number of words in a bucket whose home is before it (distance >= `width`); sets `index` to the
 * word with the smallest unit. The bucket must not be empty. */
static unsigned bucketDisplaced(const tableRegion *r, const tableBucket *b, uint64_t last,
                                uint64_t width, unsigned *index) {
#if HASHTABLE_SIMD
    if (likely(!r->sc->inexact)) {
        __m128i free = bucketFreeLanes(b);
        __m128i distances = _mm_sub_epi16(_mm_set1_epi16((short)last), bucketTags(b));
        __m128i inverse = _mm_or_si128(_mm_xor_si128(distances, _mm_set1_epi16(-1)), free);
        *index = (unsigned)_mm_cvtsi128_si32(_mm_minpos_epu16(inverse)) >> 16;
        /* A free word looks like a distance of 0, which all words in the spare buckets may have. */
        unsigned free_mask = laneMask(free);
        if (unlikely(free_mask >> *index & 1)) *index = (unsigned)__builtin_ctz(~free_mask);
        __m128i at_least = _mm_max_epu16(distances, _mm_set1_epi16((short)width));
        __m128i displaced = _mm_andnot_si128(free, _mm_cmpeq_epi16(at_least, distances));
        return (unsigned)__builtin_popcount(laneMask(displaced));
    }
#endif
    unsigned count = 0;
    uint64_t most = 0;
    *index = (unsigned)__builtin_ctz(bucketUsed(b));
    for (unsigned used = bucketUsed(b); used; used &= used - 1) {
        unsigned i = (unsigned)__builtin_ctz(used);
        uint64_t d = regionDistance(r, last, b->word[i]);
        count += d >= width;
        if (d > most) {
            most = d;
            *index = i;
        }
    }
    return count;
}

/* The home bucket is full: from there up to the first free word, each bucket passes its greatest
 * unit on to the next one. */
static NO_INLINE uint64_t placeDisplaced(tableRegion *r, uint64_t home, uint64_t unit,
                                         uint64_t word) {
    hotCheck(home < r->limit);
    uint64_t end = home + 1;
    /* A bucket that overflows is full. */
    while (end < r->limit && (bucketOverflows(&r->buckets[end]) || !bucketFree(&r->buckets[end]))) {
        end++;
    }
    if (end >= r->limit) return PLACE_FULL;
    if (unlikely(end - home > RUN_MAX)) r->long_run = true;
    for (uint64_t at = home; at < end; at++) {
        noteDistance(r->sc, at, unit);
        bucketPassOn(r, at, &unit, &word);
    }
    noteDistance(r->sc, end, unit);
    r->buckets[end].word[__builtin_ctz(bucketFree(&r->buckets[end]))] = word;
    return end;
}

uint64_t regionPlace(tableRegion *r, uint64_t hash, uint64_t word) {
    uint64_t home = scaleHome(r->sc, hash);
    hotCheck(home < r->limit);
    hotCheck((word & WORD_OVERFLOW) == 0);
    hotCheck(wordTag(word) == scaleTag(r->sc, hash));
    tableBucket *b = &r->buckets[home];
    unsigned free = bucketFree(b);
    if (likely(free)) {
        b->word[__builtin_ctz(free)] = word;
        return home;
    }
    return placeDisplaced(r, home, scaleUnit(r->sc, hash), word);
}

void regionRemove(tableRegion *r, uint64_t at, unsigned index, bool displaced) {
    tableBucket *b = &r->buckets[at];
    uint64_t last = scaleLastUnit(r->sc, at);
    unsigned next_index;
    hotCheck((b->word[index] & WORD_ENTRY) != 0);
    if (displaced) {
        /* If it was the only one displaced into this bucket, the bucket before no longer
         * overflows. */
        uint64_t width = last - scaleLastUnit(r->sc, at - 1);
        if (bucketDisplaced(r, b, last, width, &next_index) < 2) bucketClearOverflow(b - 1);
    }
    while (bucketOverflows(b)) {
        /* The smallest unit of the next bucket moves into the gap. */
        tableBucket *next = b + 1;
        uint64_t next_last = scaleLastUnit(r->sc, at + 1);
        unsigned count = bucketDisplaced(r, next, next_last, next_last - last, &next_index);
        hotCheck(count > 0);
        bucketStore(b, index, next->word[next_index]);
        if (count < 2) bucketClearOverflow(b);
        b = next;
        last = next_last;
        index = next_index;
        at++;
    }
    b->word[index] = 0;
}

void itemsInsert(tableItem *items, size_t count, tableItem item) {
    size_t i = count;
    for (; i > 0 && items[i - 1].hash > item.hash; i--) items[i] = items[i - 1];
    items[i] = item;
    hotCheck(count == 0 || items[0].hash <= items[count].hash);
}

static void putInOrder(uint64_t *low, uint64_t *high) {
    uint64_t a = *low, b = *high;
    *low = a < b ? a : b;
    *high = a < b ? b : a;
    hotCheck(*low <= *high);
}

/* Sorts 8 numbers without branches: a sorting network of 19 comparators. */
static void sortEight(uint64_t *n) {
    putInOrder(&n[0], &n[2]), putInOrder(&n[1], &n[3]);
    putInOrder(&n[4], &n[6]), putInOrder(&n[5], &n[7]);
    putInOrder(&n[0], &n[4]), putInOrder(&n[1], &n[5]);
    putInOrder(&n[2], &n[6]), putInOrder(&n[3], &n[7]);
    putInOrder(&n[0], &n[1]), putInOrder(&n[2], &n[3]);
    putInOrder(&n[4], &n[5]), putInOrder(&n[6], &n[7]);
    putInOrder(&n[2], &n[4]), putInOrder(&n[3], &n[5]);
    putInOrder(&n[1], &n[4]), putInOrder(&n[3], &n[6]);
    putInOrder(&n[1], &n[2]), putInOrder(&n[3], &n[4]);
    putInOrder(&n[5], &n[6]);
}

unsigned bucketItems(const tableRegion *r, uint64_t at, bool rehash, tableItem *items) {
    hotCheck(at < r->limit);
    const tableBucket *b = &r->buckets[at];
    uint64_t last = scaleLastUnit(r->sc, at);
    unsigned used = bucketUsed(b), count = 0;
    if (unlikely(rehash) || unlikely(r->sc->inexact)) {
        for (; used; used &= used - 1) {
            uint64_t word = b->word[__builtin_ctz(used)] & ~WORD_OVERFLOW;
            uint64_t hash = r->type->hash_of(wordEntryOfType(word, r->type));
            itemsInsert(items, count++, (tableItem){hash, word});
        }
        return count;
    }
    /* Relative to `last`, tags are in the order of units, and so are words with the tag in their
     * upper bits. */
    uint64_t keys[BUCKET_WORDS], base = (last + 1) << TAG_SHIFT;
    for (unsigned i = 0; i < BUCKET_WORDS; i++) {
        uint64_t word = b->word[i] & ~WORD_OVERFLOW;
        keys[i] = word ? word - base : UINT64_MAX;
    }
    sortEight(keys);
    count = (unsigned)__builtin_popcount(used);
    for (unsigned i = 0; i < count; i++) {
        uint64_t unit = last - TAG_MASK + wordTag(keys[i]);
        items[i] = (tableItem){unit << r->sc->shift, keys[i] + base};
    }
    return count;
}

uint64_t itemsNeed(const tableScale *sc, const tableItem *items, size_t count) {
    uint64_t at = 0;
    unsigned used = 0;
    for (size_t i = 0; i < count; i++) {
        uint64_t home = scaleHome(sc, items[i].hash);
        if (home > at) {
            at = home;
            used = 0;
        } else if (used == BUCKET_WORDS) {
            at++;
            used = 0;
        }
        used++;
    }
    return at + 1;
}
