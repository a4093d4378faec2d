/* SPDX-License-Identifier: BSD-3-Clause
 *
 * hashtable: finding volatile entries at a cost proportional to their number, not to the size of
 * the table.
 *
 * A Fenwick tree counts them per block of hashes with equal prefix bits. As moving a word does not
 * change its hash, the tree is updated only by inserts, deletes and changes of the flag. It takes 8
 * bytes per 32 to 256 buckets, and exists only in tables with volatile entries; a small table has a
 * single count and is scanned completely. Invariant: `volatiles` counts all volatile entries;
 * `volatiles_next`, during a resize that changes the prefix bits, those that were moved. Cost of an
 * update: log2(blocks) additions. Not thread-safe. */
#include "ds/hashtable.h"

#include "base/alloc.h"
#include "base/random.h"
#include "ds/hashtable_private.h"

/* With fewer volatile entries per block than this on average, whole blocks are visited. */
#define SPARSE_BLOCK 16
/* Buckets or blocks examined in one call that finds nothing. */
#define WALK_TRIES 64
/* If at least one entry in this many is volatile, trying random buckets is faster than using the
 * index. */
#define DENSE_SHARE 8
#define RANDOM_TRIES 256

volatileIndex *volatileIndexNew(unsigned bits) {
    hotCheck(bits < 64);
    volatileIndex *v = memNew(volatileIndex);
    fenwickInit(&v->counts, (size_t)1 << bits);
    v->bits = bits;
    return v;
}

void volatileIndexFree(volatileIndex *v) {
    if (!v) return;
    fenwickClear(&v->counts);
    memFree(v);
}

unsigned volatileIndexCompact(volatileIndex **v) {
    if (!*v) return 0;
    volatileIndex *moved = memMoveIfSparse(*v);
    if (moved) *v = moved;
    return (unsigned)(moved != NULL) + (unsigned)fenwickCompact(&(*v)->counts);
}

void volatileCount(tableBig *g, uint64_t hash, int delta) {
    hotCheck(delta == 1 || delta == -1);
    if (!g->volatiles) {
        const tableScale *from = &g->scales[g->state == RESIZE_GROW ? 0 : 1];
        const tableScale *to = &g->scales[g->state == RESIZE_GROW ? 1 : 0];
        g->volatiles = volatileIndexNew(scalePrefixBits(from));
        if (resizeMoves(g) && scalePrefixBits(to) != scalePrefixBits(from)) {
            g->volatiles_next = volatileIndexNew(scalePrefixBits(to));
        }
    }
    fenwickAdd(&g->volatiles->counts, volatileBlock(g->volatiles, hash), delta);
    bool upper = hash >= g->bound;
    if (g->volatiles_next && upper == (g->state == RESIZE_GROW)) {
        fenwickAdd(&g->volatiles_next->counts, volatileBlock(g->volatiles_next, hash), delta);
    }
}

static const volatileIndex *indexOf(const hashtable *t) {
    return tableIsBig(t) ? tableAsBig(t)->volatiles : NULL;
}

/* ---- scanning ---- */

/* With few volatile entries a scan goes from block to block of the index, skipping empty ones; with
 * many it goes from bucket to bucket, like every scan. The block bits of the cursor determine
 * which; both cover sets of hashes. */
static bool walkIsSparse(const volatileIndex *v, const scanPlace *place) {
    return v && place->block_bits == v->bits;
}

/* Advances to the next block with volatile entries; false if there is none. */
static bool skipEmptyBlocks(const volatileIndex *v, scanPlace *place) {
    hotCheck(place->block_bits <= SCAN_POSITION_BITS);
    unsigned cell_bits = SCAN_POSITION_BITS - place->block_bits;
    if (place->position & ((1ull << cell_bits) - 1)) return true; /* within a block */
    size_t block = fenwickNext(&v->counts, (size_t)(place->position >> cell_bits));
    place->position = (uint64_t)block << cell_bits;
    return block < v->counts.count;
}

uint64_t hashtableScanVolatile(const hashtable *t, const hashtableType *type, uint64_t cursor,
                               hashtableVisitProc *visit, void *context) {
    uint64_t volatile_count = hashtableVolatileCount(t);
    if (volatile_count == 0) return 0;
    const volatileIndex *v = indexOf(t);
    scanPlace place = scanPlaceDecode(t, cursor);
    if (v && place.position == 0 && volatile_count >> v->bits < SPARSE_BLOCK) {
        place.block_bits = v->bits;
    }
    bool sparse = walkIsSparse(v, &place), more = true;
    /* Many entries may have become volatile since the scan began. */
    bool whole_block = sparse && volatile_count >> v->bits < SPARSE_BLOCK;
    wordList list;
    wordListInit(&list);
    for (unsigned tries = WALK_TRIES; more && list.count == 0 && tries > 0; tries--) {
        more = !sparse || skipEmptyBlocks(v, &place);
        if (more) scanAdvance(t, type, &place, whole_block, HASHTABLE_VOLATILE, &list);
        more = more && place.position >> SCAN_POSITION_BITS == 0;
    }
    for (size_t i = 0; i < list.count; i++) prefetchRead(wordEntry(list.words[i]));
    for (size_t i = 0; i < list.count; i++) {
        visit(context, wordEntry(list.words[i]), (unsigned)(list.words[i] & WORD_USER));
    }
    wordListClear(&list);
    return more ? scanPlaceEncode(&place) : 0;
}

/* ---- random volatile entries ---- */

static bool volatileIsDense(const hashtable *t, uint64_t volatile_count) {
    return volatile_count * DENSE_SHARE >= hashtableCount(t);
}

/* Collects the block that contains volatile entry number `rank`; returns its index in the block. */
static size_t collectBlock(const hashtable *t, const hashtableType *type, uint64_t rank,
                           wordList *list) {
    const volatileIndex *v = indexOf(t);
    if (!v) {
        scanCollect(t, type, 0, UINT64_MAX, HASHTABLE_VOLATILE, list);
        return (size_t)rank;
    }
    size_t block = fenwickFind(&v->counts, rank, &rank);
    uint64_t low = v->bits ? mirrorBits(block, v->bits) << (64 - v->bits) : 0;
    scanCollect(t, type, low, low | ~0ull >> v->bits, HASHTABLE_VOLATILE, list);
    check(list->count == fenwickGet(&v->counts, block));
    return (size_t)rank;
}

void *hashtableRandomVolatile(const hashtable *t, const hashtableType *type) {
    uint64_t count = hashtableVolatileCount(t);
    if (count == 0) return NULL;
    if (volatileIsDense(t, count)) {
        tableArray array = tableBuckets(t);
        for (unsigned try = 0; try < RANDOM_TRIES; try++) {
            uint64_t index = randomUniform(array.count * BUCKET_WORDS);
            uint64_t word = array.buckets[index / BUCKET_WORDS].word[index % BUCKET_WORDS];
            if (word & HASHTABLE_VOLATILE) return wordEntry(word);
        }
    }
    wordList list;
    wordListInit(&list);
    size_t index = collectBlock(t, type, randomUniform(count), &list);
    void *entry = wordEntry(list.words[index]);
    wordListClear(&list);
    return entry;
}

/* Starts at a random bucket; for tables where a few buckets are sufficient. */
static size_t sampleDense(const hashtable *t, void **out, size_t want) {
    tableArray array = tableBuckets(t);
    uint64_t at = randomUniform(array.count);
    size_t found = 0, tries = sizeMin(array.count, want + RANDOM_TRIES / BUCKET_WORDS);
    for (; tries > 0 && found < want; tries--, at = at + 1 == array.count ? 0 : at + 1) {
        const tableBucket *b = &array.buckets[at];
        for (unsigned i = 0; i < BUCKET_WORDS && found < want; i++) {
            if (b->word[i] & HASHTABLE_VOLATILE) out[found++] = wordEntry(b->word[i]);
        }
    }
    return found;
}

size_t hashtableSampleVolatile(const hashtable *t, const hashtableType *type, void **out,
                               size_t want) {
    uint64_t count = hashtableVolatileCount(t);
    if (count == 0 || want == 0) return 0;
    if (volatileIsDense(t, count)) {
        size_t found = sampleDense(t, out, want);
        if (found) return found;
    }
    if (want > count) want = (size_t)count;
    /* Whole blocks from a random rank on, wrapping around, so that no entry is returned twice. */
    uint64_t rank = randomUniform(count);
    size_t found = 0;
    while (found < want) {
        wordList list;
        wordListInit(&list);
        size_t index = collectBlock(t, type, rank, &list);
        while (index < list.count && found < want) {
            out[found++] = wordEntry(list.words[index++]);
            rank = rank + 1 == count ? 0 : rank + 1;
        }
        wordListClear(&list);
    }
    return found;
}
