/* SPDX-License-Identifier: BSD-3-Clause
 *
 * hashtable: memory of the small and the big form, and rebuilding a table.
 *
 * Invariant: a small table is one block of whole buckets. A big table has a header and a
 * cache-aligned array, which is part of an allocator block or, from MAP_MIN on, of a mapping that
 * grows without copying. Rebuilding costs a pass over all words. Not thread-safe; freeing may be
 * done by any thread. */
#include "ds/hashtable_private.h"

#include "base/alloc.h"
#include "base/map.h"

/* Smaller arrays come from the allocator: thousands of mappings would reach a kernel limit. */
#define MAP_MIN ((uint64_t)256 << 10)
/* Larger arrays are aligned so that the kernel can move them 2 MB at a time. */
#define MAP_ALIGN_MIN ((uint64_t)4 << 20)
#define MAP_ALIGN_HUGE ((size_t)2 << 20)

/* ---- arrays of the big form ---- */

static size_t alignmentOf(size_t bytes) {
    return bytes >= MAP_ALIGN_MIN ? MAP_ALIGN_HUGE : MAP_PAGE;
}

static void blockFree(void *block, size_t bytes, bool mapped) {
    hotCheck(bytes > 0);
    if (mapped) {
        memUnmap(block, bytes);
    } else {
        memFree(block);
    }
}

/* Where the array starts in a block. */
static char *arrayIn(char *block) {
    return (char *)sizeRoundUp((size_t)(uintptr_t)block, CACHE_LINE);
}

/* Copies the array to a new allocator block, or to its first mapping. */
static void resizeByCopy(tableBig *g, size_t bytes) {
    bool mapped = bytes >= MAP_MIN;
    size_t block_bytes = mapped ? sizeRoundUp(bytes, MAP_PAGE) : bytes + CACHE_LINE;
    char *block = mapped ? memMap(block_bytes, alignmentOf(block_bytes)) : memAlloc(block_bytes);
    if (!mapped) block_bytes = memSizeOf(block);
    char *array = arrayIn(block);
    /* The same wherever the block is, so that it can be moved (arrayCompact()). */
    size_t capacity = (mapped ? block_bytes : block_bytes - CACHE_LINE) / sizeof(tableBucket);
    size_t kept = sizeMin(capacity, g->allocated);
    check(capacity * sizeof(tableBucket) >= bytes);
    if (kept) memcpy(array, g->buckets, kept * sizeof(tableBucket));
    if (!mapped) {
        memset(array + kept * sizeof(tableBucket), 0, (capacity - kept) * sizeof(tableBucket));
    }
    if (g->block) blockFree(g->block, g->block_bytes, g->mapped);
    g->block = block;
    g->block_bytes = block_bytes;
    g->mapped = mapped;
    g->buckets = (tableBucket *)(void *)array;
    g->allocated = capacity;
}

void bigResizeArray(tableBig *g, uint64_t buckets) {
    hotCheck(buckets > 0);
    size_t bytes = buckets * sizeof(tableBucket);
    if (!g->mapped || bytes < MAP_MIN) {
        resizeByCopy(g, bytes);
        return;
    }
    size_t block_bytes = sizeRoundUp(bytes, MAP_PAGE);
    g->block = memRemap(g->block, g->block_bytes, block_bytes, alignmentOf(block_bytes));
    g->block_bytes = block_bytes;
    g->buckets = g->block;
    g->allocated = block_bytes / sizeof(tableBucket);
    hotCheck(g->block_bytes >= buckets * sizeof(tableBucket));
}

void bigSetThresholds(tableBig *g) {
    uint64_t words = g->scales[1].bucket_count * BUCKET_WORDS;
    g->grow_at = words * FILL_GROW / 100;
    g->shrink_at = words * FILL_SHRINK / 100;
    hotCheck(g->shrink_at < g->grow_at);
}

uint64_t bigPlaceUpper(tableBig *g, const hashtableType *type, uint64_t hash, uint64_t word,
                       bool *long_run) {
    tableRegion r = {
        .buckets = g->buckets, .sc = &g->scales[1], .type = type, .limit = g->allocated};
    uint64_t at = regionPlace(&r, hash, word);
    while (unlikely(at == PLACE_FULL)) {
        bigResizeArray(g, g->allocated + SPARE_BUCKETS);
        r.buckets = g->buckets;
        r.limit = g->allocated;
        at = regionPlace(&r, hash, word);
    }
    *long_run |= r.long_run;
    return at;
}

/* ---- rebuilding ---- */

/* Number of buckets that fit in the block which the allocator provides for a small table of
 * `buckets`. */
static uint64_t smallBuckets(uint64_t buckets) {
    hotCheck(buckets > 0);
    size_t good = memGoodSize(sizeof(tableSmall) + buckets * sizeof(tableBucket));
    return (good - sizeof(tableSmall)) / sizeof(tableBucket);
}

tableRegion smallRegion(tableSmall *s, const hashtableType *type, tableScale *sc) {
    hotCheck(s->bucket_count > 0);
    hotCheck(s->bucket_count <= s->allocated);
    scaleInit(sc, s->bucket_count, 0);
    return (tableRegion){.buckets = s->buckets, .sc = sc, .type = type, .limit = s->allocated};
}

static tableSmall *smallBuild(uint64_t bucket_count, const hashtableType *type,
                              const tableItem *items, size_t count) {
    tableScale sc;
    bucket_count = smallBuckets(bucket_count);
    scaleInit(&sc, bucket_count, 0);
    uint64_t need = itemsNeed(&sc, items, count);
    uint64_t allocated = need > bucket_count ? smallBuckets(need) : bucket_count;
    check(allocated <= UINT16_MAX / BUCKET_WORDS);
    tableSmall *s = memCalloc(1, sizeof(*s) + allocated * sizeof(tableBucket));
    s->count = (uint16_t)count;
    s->bucket_count = (uint16_t)bucket_count;
    s->allocated = (uint16_t)allocated;
    tableLayout layout = {.region = smallRegion(s, type, &sc)};
    for (size_t i = 0; i < count; i++) {
        check(layoutAddItem(&layout, items[i]));
        s->volatile_count = (uint16_t)(s->volatile_count + (items[i].word & HASHTABLE_VOLATILE));
    }
    return s;
}

static tableBig *bigBuild(uint64_t bucket_count, unsigned prefix_bits, const hashtableType *type,
                          const tableItem *items, size_t count) {
    tableBig *g = memNew(tableBig);
    scaleInit(&g->scales[1], bucket_count, prefix_bits);
    uint64_t need = itemsNeed(&g->scales[1], items, count);
    bigResizeArray(g, (need > bucket_count ? need : bucket_count) + SPARE_BUCKETS);
    g->count = count;
    bigSetThresholds(g);
    tableLayout layout = {.region = bigRegion(g, type, 0)};
    for (size_t i = 0; i < count; i++) {
        check(layoutAddItem(&layout, items[i]));
        if (items[i].word & HASHTABLE_VOLATILE) volatileCount(g, items[i].hash, 1);
    }
    return g;
}

/* ---- moving blocks to denser pages ---- */

static unsigned arrayCompact(tableBig *g) {
    hotCheck((const char *)g->buckets >= (const char *)g->block);
    if (g->mapped) return 0;
    ptrdiff_t offset = (char *)g->buckets - (char *)g->block;
    char *moved = memMoveIfSparse(g->block);
    if (!moved) return 0;
    char *array = arrayIn(moved);
    /* Only blocks of libc are not aligned. */
    if (array - moved != offset) memmove(array, moved + offset, g->allocated * sizeof(tableBucket));
    g->block = moved;
    g->buckets = (tableBucket *)(void *)array;
    return 1;
}

unsigned hashtableCompact(hashtable *t) {
    if (!t->body) return 0;
    if (!tableIsBig(t)) {
        void *moved = memMoveIfSparse(t->body);
        if (moved) t->body = moved;
        return moved != NULL;
    }
    tableBig *g = memMoveIfSparse(tableAsBig(t));
    unsigned moved = g != NULL;
    if (moved) {
        t->body = (void *)((uintptr_t)g + 1);
    } else {
        g = tableAsBig(t);
    }
    return moved + arrayCompact(g) + volatileIndexCompact(&g->volatiles) +
           volatileIndexCompact(&g->volatiles_next);
}

void tableFreeBody(hashtable *t) {
    if (!t->body) return;
    if (tableIsBig(t)) {
        tableBig *g = tableAsBig(t);
        blockFree(g->block, g->block_bytes, g->mapped);
        volatileIndexFree(g->volatiles);
        volatileIndexFree(g->volatiles_next);
        memFree(g);
    } else {
        memFree(t->body);
    }
    t->body = NULL;
}

void tableRebuild(hashtable *t, const hashtableType *type, uint64_t bucket_count,
                  const tableItem *extra) {
    size_t count = 0, count_max = hashtableCount(t) + (extra != NULL);
    uint64_t least = (count_max + BUCKET_WORDS - 1) / BUCKET_WORDS;
    if (bucket_count < least) bucket_count = least;
    check(bucket_count > 0);
    bool to_big = bucket_count >= BIG_MIN;
    /* Conversion to the big form uses tags that are whole units; the next growth reads the keys. */
    unsigned prefix_bits = bucket_count >= 2 * BIG_MIN ? prefixBitsFor(bucket_count) : 0;
    tableItem *items = memAlloc((count_max + 1) * sizeof(*items));
    if (t->body) {
        tableScale small_scale;
        tableRegion r = tableIsBig(t) ? bigRegion(tableAsBig(t), type, 0)
                                      : smallRegion(tableAsSmall(t), type, &small_scale);
        if (tableIsBig(t)) check(tableAsBig(t)->state == RESIZE_NONE);
        bool rehash = to_big && prefix_bits > scalePrefixBits(r.sc);
        for (uint64_t at = 0; at < r.limit; at++) {
            tableItem found[BUCKET_WORDS];
            unsigned n = bucketItems(&r, at, rehash, found);
            for (unsigned i = 0; i < n; i++) itemsInsert(items, count++, found[i]);
        }
    }
    if (extra) itemsInsert(items, count++, *extra);
    check(count == count_max);
    tableFreeBody(t);
    if (to_big) {
        uintptr_t g = (uintptr_t)bigBuild(bucket_count, prefix_bits, type, items, count);
        t->body = (void *)(g + 1);
    } else if (count > 0 || bucket_count > 1) {
        t->body = smallBuild(bucket_count, type, items, count);
    }
    memFree(items);
}
