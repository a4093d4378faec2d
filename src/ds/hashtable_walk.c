/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Walks with a cut (hashtable_walk.h).
 *
 * The place of a hash is its leading block_bits bits reversed, followed by its other bits: a
 * bijection of 64 bits that ascends along the walk. Invariant: a slice visits exactly the entries
 * whose hashes are in [low, high], a range within one block and one region of the table. */
#include "ds/hashtable_walk.h"

#include "ds/hashtable_private.h"

enum {
    BLOCK_BUCKETS_LOG =
        6, /* a block has 64 buckets: large enough to walk as fast as in hash order */
    /* Entries that are prefetched together, before the group before them is visited: most are in
     * pages of their own, and the processor translates their addresses at the same time only if few
     * other instructions are in between. */
    GROUP = 16,
    RING = 2 * GROUP,
};

static uint64_t placeOf(const hashtableCut *cut, uint64_t hash) {
    hotCheck(cut->block_bits < 64);
    unsigned bits = cut->block_bits;
    if (bits == 0) return hash;
    return mirrorBits(hash >> (64 - bits), bits) << (64 - bits) | (hash & (~0ull >> bits));
}

void hashtableCutBegin(hashtableCut *cut, const hashtable *t) {
    uint64_t buckets = tableIsBig(t) ? tableAsBig(t)->scales[1].bucket_count : 1;
    unsigned bits = log2Floor(buckets);
    *cut = (hashtableCut){.block_bits = bits > BLOCK_BUCKETS_LOG ? bits - BLOCK_BUCKETS_LOG : 0};
    hotCheck(cut->place == 0);
    hotCheck(!cut->ended);
}

bool hashtableCutPassed(const hashtableCut *cut, uint64_t hash) {
    return cut->ended || placeOf(cut, hash) < cut->place;
}

/* What a slice covers: the hashes low..high, which are in the buckets at..end of a region, and in
 * the following ones while buckets overflow. */
typedef struct walkRange {
    tableRegion region;
    tableScale small_scale;
    uint64_t low, high, at, end;
} walkRange;

/* The next `buckets` home buckets, at most to the end of the block or region. The table must not be
 * empty. */
static void rangeNext(walkRange *r, const hashtable *t, const hashtableType *type,
                      const hashtableCut *cut, uint64_t buckets) {
    uint64_t low = placeOf(cut, cut->place); /* reversing is its own inverse */
    r->low = low;
    if (tableIsBig(t)) {
        r->region = bigRegion(tableAsBig(t), type, low);
    } else {
        r->region = smallRegion(tableAsSmall(t), type, &r->small_scale);
    }
    const tableScale *sc = r->region.sc;
    r->at = scaleHome(sc, low);
    uint64_t high = ((scaleLastUnit(sc, r->at + buckets - 1) + 1) << sc->shift) - 1;
    uint64_t block_high = low | ~0ull >> cut->block_bits;
    if (high > block_high || high < low) high = block_high;
    if (tableIsBig(t) && low < tableAsBig(t)->bound && high >= tableAsBig(t)->bound)
        high = tableAsBig(t)->bound - 1;
    r->high = high;
    r->end = scaleHome(sc, high);
}

static void advance(hashtableCut *cut, const walkRange *r) {
    hotCheck(r->low <= r->high);
    uint64_t width = r->high - r->low; /* less one */
    cut->ended = cut->place + width == UINT64_MAX;
    cut->place += width + 1;
}

/* Words of entries: got .. fetched are prefetched, fetched .. put are not yet. */
typedef struct walkRing {
    uint64_t words[RING];
    unsigned put, fetched, got;
    uint64_t entry_mask;
    void (*prefetch_rest)(const void *entry);
    hashtableWalkProc *visit;
    void *context;
} walkRing;

static void *entryAt(const walkRing *ring, unsigned i) {
    return (void *)(uintptr_t)(ring->words[i % RING] & ring->entry_mask);
}

/* Visits the entries before `end`; false if the visitor has ended the slice. */
static bool visitTo(walkRing *ring, unsigned end) {
    hotCheck(end - ring->got <= RING);
    for (unsigned i = ring->got; ring->prefetch_rest && i != end; i++)
        ring->prefetch_rest(entryAt(ring, i));
    while (ring->got != end) {
        unsigned i = ring->got++;
        unsigned flags = (unsigned)(ring->words[i % RING] & WORD_USER);
        if (!ring->visit(ring->context, entryAt(ring, i), flags)) return false;
    }
    return true;
}

static void prefetchGroup(walkRing *ring) {
    hotCheck(ring->put - ring->fetched <= RING);
    for (; ring->fetched != ring->put; ring->fetched++) {
        const char *entry = wordEntry(ring->words[ring->fetched % RING]);
        prefetchRead(entry);
        prefetchRead(entry + 40); /* entries of about 40 bytes often cross a cache line */
    }
}

static bool visitLater(walkRing *ring, uint64_t word) {
    hotCheck(ring->put - ring->got < RING);
    ring->words[ring->put++ % RING] = word;
    unsigned group = ring->fetched;
    if (ring->put - group < GROUP) return true;
    prefetchGroup(ring);
    return visitTo(ring, group);
}

/* False if the visitor has ended the slice. */
static bool visitRange(const walkRange *r, walkRing *ring) {
    hotCheck(r->low <= r->high);
    const tableScale *sc = r->region.sc;
    const hashtableType *type = r->region.type;
    uint64_t first = scaleUnit(sc, r->low), final = scaleUnit(sc, r->high);
    /* The range may split a unit, if a shrink removed bits from the tags: then the hash of the key
     * decides. */
    uint64_t below = ~(~0ull << sc->shift);
    bool exact = (r->low & below) != 0 || (~r->high & below) != 0;
    for (uint64_t at = r->at;; at++) {
        const tableBucket *b = &r->region.buckets[at];
        uint64_t last = scaleLastUnit(sc, at);
        bool past = false;
        prefetchRead(b + 2);
        for (unsigned used = bucketUsed(b); used; used &= used - 1) {
            uint64_t word = b->word[__builtin_ctz(used)];
            uint64_t unit = last - regionDistance(&r->region, last, word);
            past |= unit > final;
            if (unit < first || unit > final) continue;
            if (unlikely(exact)) {
                uint64_t hash = type->hash_of(wordEntryOfType(word, type));
                if (hash < r->low || hash > r->high) continue;
            }
            if (!visitLater(ring, word)) return false;
        }
        if (at >= r->end && (past || !bucketOverflows(b))) break;
    }
    prefetchGroup(ring);
    return visitTo(ring, ring->put);
}

bool hashtableWalk(const hashtable *t, const hashtableType *type, hashtableCut *cut,
                   uint64_t buckets, hashtableWalkProc *visit, void *context) {
    hotCheck(buckets > 0);
    if (!t->body) cut->ended = true;
    if (cut->ended) return false;
    walkRange r;
    walkRing ring = {.entry_mask = WORD_ENTRY | type->entry_mark,
                     .prefetch_rest = type->prefetch_rest,
                     .visit = visit,
                     .context = context};
    rangeNext(&r, t, type, cut, buckets);
    if (visitRange(&r, &ring)) advance(cut, &r);
    return !cut->ended;
}
