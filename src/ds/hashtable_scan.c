/* SPDX-License-Identifier: BSD-3-Clause
 *
 * hashtable: cursor scans, iterators, random entries.
 *
 * A cursor is a position in the hash space, not in the array: the number of hash bits that make a
 * block (fixed at the start of a scan, about log2 of the buckets), and a position in cells of 2^30
 * hashes. Blocks are visited in bit-reversed order. Buckets are ordered by hash; deleting or
 * copying in plain hash order would empty or fill one end of a table and make long runs there. With
 * a cursor that is older than most of the table, blocks are large, and deleting empties large parts
 * of it nevertheless; then the table does not shrink (checkStep() in hashtable_resize.c).
 * Invariant: a cursor has passed a set of whole cells, independent of the table's size. Cost: a
 * call visits one or two buckets, with one cache miss that the previous call has prefetched. Not
 * thread-safe. */
#include "ds/hashtable.h"

#include "base/alloc.h"
#include "base/random.h"
#include "ds/hashtable_private.h"

/* ---- collecting ---- */

void wordListInit(wordList *list) {
    list->words = list->local;
    list->count = 0;
    list->cap = HASHTABLE_WORDS_LOCAL;
}

void wordListClear(wordList *list) {
    if (list->words != list->local) memFree(list->words);
}

static void wordListAdd(wordList *list, uint64_t word) {
    hotCheck(list->count <= list->cap);
    if (unlikely(list->count == list->cap)) {
        uint64_t *old = list->words == list->local ? NULL : list->words;
        list->words = memRealloc(old, 2 * list->cap * sizeof(uint64_t));
        if (!old) memcpy(list->words, list->local, sizeof(list->local));
        list->cap *= 2;
    }
    list->words[list->count++] = word;
}

/* Appends the words of one region with hashes in [low, high], all of which must belong to it. */
static void collectRegion(const tableRegion *r, uint64_t low, uint64_t high, uint64_t flags,
                          wordList *list) {
    hotCheck(low <= high);
    const tableScale *sc = r->sc;
    uint64_t first = scaleUnit(sc, low), final = scaleUnit(sc, high);
    uint64_t end = scaleHome(sc, high);
    /* The range may split a unit, if a shrink removed bits from the tags: then the hash of the key
     * decides. */
    uint64_t below = ~(~0ull << sc->shift);
    bool exact = (low & below) != 0 || (~high & below) != 0;
    for (uint64_t at = scaleHome(sc, low);; at++) {
        const tableBucket *b = &r->buckets[at];
        bool past = false;
        uint64_t last = scaleLastUnit(sc, at);
        for (unsigned used = bucketUsed(b); used; used &= used - 1) {
            uint64_t word = b->word[__builtin_ctz(used)];
            if (flags && !(word & flags)) continue;
            uint64_t unit = last - regionDistance(r, last, word);
            past |= unit > final;
            if (unit < first || unit > final) continue;
            if (unlikely(exact)) {
                uint64_t hash = r->type->hash_of(wordEntryOfType(word, r->type));
                if (hash < low || hash > high) continue;
            }
            wordListAdd(list, word);
        }
        if (at >= end && (past || !bucketOverflows(b))) return;
    }
}

void scanCollect(const hashtable *t, const hashtableType *type, uint64_t low, uint64_t high,
                 uint64_t flags, wordList *list) {
    hotCheck(low <= high);
    if (!tableIsBig(t)) {
        tableScale sc;
        tableRegion r = smallRegion(tableAsSmall(t), type, &sc);
        collectRegion(&r, low, high, flags, list);
        return;
    }
    tableBig *g = tableAsBig(t);
    if (low < g->bound) {
        tableRegion r = bigRegion(g, type, low);
        collectRegion(&r, low, high < g->bound ? high : g->bound - 1, flags, list);
    }
    if (high >= g->bound) {
        tableRegion r = bigRegion(g, type, high);
        collectRegion(&r, low < g->bound ? g->bound : low, high, flags, list);
    }
}

/* ---- cursors ---- */

scanPlace scanPlaceDecode(const hashtable *t, uint64_t cursor) {
    scanPlace place;
    place.position = cursor & (~0ull >> (64 - SCAN_POSITION_BITS));
    place.block_bits = (unsigned)(cursor >> SCAN_POSITION_BITS) & ((1u << SCAN_BLOCK_BITS) - 1);
    uint64_t bucket_count =
        tableIsBig(t) ? tableAsBig(t)->scales[1].bucket_count : tableAsSmall(t)->bucket_count;
    unsigned own_bits = log2Floor(bucket_count);
    if (own_bits > SCAN_BLOCK_BITS_MAX) own_bits = SCAN_BLOCK_BITS_MAX;
    /* Blocks much smaller than buckets, after shrinking or from an invalid cursor, would require
     * many calls that find nothing. */
    if (place.position == 0 || place.block_bits > own_bits + SCAN_SHRINK_BITS) {
        place.position = 0;
        place.block_bits = own_bits;
    }
    return place;
}

uint64_t scanPlaceEncode(const scanPlace *place) {
    if (place->position >> SCAN_POSITION_BITS) return 0;
    return (uint64_t)place->block_bits << SCAN_POSITION_BITS | place->position;
}

uint64_t scanPlaceHash(const scanPlace *place) {
    hotCheck(place->block_bits <= SCAN_POSITION_BITS);
    unsigned cell_bits = SCAN_POSITION_BITS - place->block_bits;
    uint64_t block = mirrorBits(place->position >> cell_bits, place->block_bits);
    uint64_t cell = place->position & ((1ull << cell_bits) - 1);
    return (block << cell_bits | cell) << (64 - SCAN_POSITION_BITS);
}

/* The scale in use for a hash. */
static tableScale scaleFor(const hashtable *t, uint64_t hash) {
    if (tableIsBig(t)) return tableAsBig(t)->scales[hash >= tableAsBig(t)->bound];
    tableScale sc;
    scaleInit(&sc, tableAsSmall(t)->bucket_count, 0);
    return sc;
}

void scanAdvance(const hashtable *t, const hashtableType *type, scanPlace *place, bool whole_block,
                 uint64_t flags, wordList *list) {
    hotCheck(place->block_bits <= SCAN_POSITION_BITS);
    uint64_t low = scanPlaceHash(place);
    uint64_t high = low | ~0ull >> place->block_bits; /* the last hash of the block */
    tableScale sc = scaleFor(t, low);
    uint64_t home = scaleHome(&sc, low);
    if (!whole_block && scaleHome(&sc, high) > home + 2) {
        /* The table has grown: advance only to the end of the bucket, and of the cell that contains
         * it. */
        uint64_t edge = ((scaleLastUnit(&sc, home) + 1) << sc.shift) - 1;
        edge |= SCAN_CELL_MASK;
        if (edge < high) high = edge;
    }
    scanCollect(t, type, low, high, flags, list);
    place->position += (high - low) / (SCAN_CELL_MASK + 1) + 1;
}

static void visitWords(const wordList *list, hashtableVisitProc *visit, void *context) {
    for (size_t i = 0; i < list->count; i++) {
        visit(context, wordEntry(list->words[i]), (unsigned)(list->words[i] & WORD_USER));
    }
}

/* Prefetches the bucket of the next call, and the entries of this one: those from index `first`
 * on. */
static void scanPrefetch(const hashtable *t, const scanPlace *next, const wordList *list,
                         size_t first) {
    for (size_t i = first; i < list->count; i++) prefetchRead(wordEntry(list->words[i]));
    if (!tableIsBig(t) || next->position >> SCAN_POSITION_BITS) return;
    const tableBig *g = tableAsBig(t);
    uint64_t hash = scanPlaceHash(next);
    prefetchRead(&g->buckets[scaleHome(&g->scales[hash >= g->bound], hash)]);
}

/* Appends the words at the cursor; returns the next cursor, 0 at the end. */
static uint64_t scanStep(const hashtable *t, const hashtableType *type, uint64_t cursor,
                         wordList *list) {
    if (!t->body) return 0;
    scanPlace place = scanPlaceDecode(t, cursor);
    size_t before = list->count;
    scanAdvance(t, type, &place, false, 0, list);
    scanPrefetch(t, &place, list, before);
    return scanPlaceEncode(&place);
}

uint64_t hashtableScan(const hashtable *t, const hashtableType *type, uint64_t cursor,
                       hashtableVisitProc *visit, void *context) {
    wordList list;
    wordListInit(&list);
    cursor = scanStep(t, type, cursor, &list);
    visitWords(&list, visit, context);
    wordListClear(&list);
    return cursor;
}

/* ---- iterators ---- */

void hashtableIteratorInit(hashtableIterator *it, const hashtable *t, const hashtableType *type) {
    it->table = t;
    it->type = type;
    it->entry_mask = WORD_ENTRY | type->entry_mark;
    it->cursor = 0;
    it->last = false;
    it->next = it->fetch_at = 0;
    wordListInit(&it->fetched);
}

enum {
    FETCHED_MIN = 24, /* words to have after fetching */
    AHEAD = 12,       /* words left when more are fetched: their entries were prefetched long ago */
};

/* Fetches more words; false at the end. */
static NO_INLINE bool fetchMore(hashtableIterator *it) {
    hotCheck(it->next <= it->fetched.count);
    wordList *list = &it->fetched;
    list->count -= it->next;
    memmove(list->words, list->words + it->next, list->count * sizeof(*list->words));
    it->next = 0;
    while (!it->last && list->count < FETCHED_MIN) {
        it->cursor = scanStep(it->table, it->type, it->cursor, list);
        it->last = it->cursor == 0;
    }
    it->fetch_at = it->last ? list->count : list->count - AHEAD;
    return list->count > 0;
}

void *hashtableIteratorNext(hashtableIterator *it, unsigned *flags) {
    hotCheck(it->next <= it->fetch_at);
    hotCheck(it->fetch_at <= it->fetched.count);
    if (it->next == it->fetch_at && !fetchMore(it)) return NULL;
    uint64_t word = it->fetched.words[it->next++];
    if (flags) *flags = (unsigned)(word & WORD_USER);
    return (void *)(uintptr_t)(word & it->entry_mask);
}

void hashtableIteratorClear(hashtableIterator *it) {
    wordListClear(&it->fetched);
    wordListInit(&it->fetched);
    it->next = it->fetch_at = 0;
    it->last = true;
}

/* ---- random entries ---- */

/* Random words tried before scanning the whole table: enough unless the table is nearly empty. */
#define RANDOM_TRIES 1024

/* Every entry occupies exactly one word, so a random used word is a uniform choice; so is counting
 * up to a random number. */
void *hashtableRandom(const hashtable *t, const hashtableType *type) {
    uint64_t count = hashtableCount(t);
    if (count == 0) return NULL;
    tableArray array = tableBuckets(t);
    for (unsigned try = 0; try < RANDOM_TRIES; try++) {
        uint64_t index = randomUniform(array.count * BUCKET_WORDS);
        uint64_t word = array.buckets[index / BUCKET_WORDS].word[index % BUCKET_WORDS];
        if (word) return wordEntryOfType(word, type);
    }
    uint64_t rank = randomUniform(count);
    for (uint64_t at = 0; at < array.count; at++) {
        for (unsigned used = bucketUsed(&array.buckets[at]); used; used &= used - 1) {
            if (rank-- == 0)
                return wordEntryOfType(array.buckets[at].word[__builtin_ctz(used)], type);
        }
    }
    panic("a table holds fewer entries than it counts");
}

/* Neighbouring buckets that are read one after another: each group is in order of hashes, but
 * entries of a few groups fill no long run of another table. */
#define GROUP_BUCKETS 8

size_t hashtableNextEntries(const hashtable *t, const hashtableType *type, uint64_t *position,
                            void **out, size_t cap) {
    check(cap >= BUCKET_WORDS);
    tableArray array = tableBuckets(t);
    size_t found = 0;
    const uint64_t mask = WORD_ENTRY | type->entry_mark;
    uint64_t groups = (array.count + GROUP_BUCKETS - 1) / GROUP_BUCKETS;
    unsigned bits = groups > 1 ? log2Floor(groups - 1) + 1 : 0;
    uint64_t end = array.count ? (uint64_t)GROUP_BUCKETS << bits : 0;
    while (*position < end && found + BUCKET_WORDS <= cap) {
        uint64_t group = mirrorBits(*position / GROUP_BUCKETS, bits);
        uint64_t at = group * GROUP_BUCKETS + *position % GROUP_BUCKETS;
        if (at >= array.count) {
            *position = sizeRoundUp(*position + 1, GROUP_BUCKETS);
            continue;
        }
        const tableBucket *b = &array.buckets[at];
        for (unsigned used = bucketUsed(b); used; used &= used - 1)
            out[found++] = (void *)(uintptr_t)(b->word[__builtin_ctz(used)] & mask);
        ++*position;
    }
    return found;
}

size_t hashtableSample(const hashtable *t, const hashtableType *type, void **out, size_t want) {
    uint64_t count = hashtableCount(t);
    if (count == 0 || want == 0) return 0;
    tableArray array = tableBuckets(t);
    uint64_t at = randomUniform(array.count);
    size_t found = 0, tries = sizeMin(array.count, want + RANDOM_TRIES / BUCKET_WORDS);
    for (; tries > 0 && found < want; tries--, at = at + 1 == array.count ? 0 : at + 1) {
        const tableBucket *b = &array.buckets[at];
        for (unsigned used = bucketUsed(b); used && found < want; used &= used - 1) {
            out[found++] = wordEntryOfType(b->word[__builtin_ctz(used)], type);
        }
    }
    if (found == 0) out[found++] = hashtableRandom(t, type);
    return found;
}
