/* SPDX-License-Identifier: BSD-3-Clause
 *
 * hashtable: a set of entries found by key, with hash-ordered open addressing in cache-line
 * buckets. This file contains operations on single entries and on the table as a whole;
 * hashtable_layout.h explains the data structure.
 *
 * Invariants: those of hashtable_layout.h; an empty table has no body unless space was reserved.
 * Cost of a lookup: the header (usually cached), one bucket, the entry. Insert and delete cost the
 * same, plus moving about 5 words on average while the table grows. Not thread-safe. */
#include "ds/hashtable.h"

#include "base/alloc.h"
#include "base/random.h"
#include "ds/hashtable_inline.h"
#include "ds/hashtable_private.h"

/* ---- lookup ---- */

void *hashtableFind(const hashtable *t, const hashtableType *type, uint64_t hash, const void *key,
                    size_t len) {
    return hashtableInlineFind(t, type, hash, type->match, key, len);
}

void *hashtableFindPosition(const hashtable *t, const hashtableType *type, uint64_t hash,
                            const void *key, size_t len, hashtablePosition *position) {
    return hashtableInlineFindPosition(t, type, hash, type->match, key, len, position);
}

void hashtablePrefetch(const hashtable *t, uint64_t hash) {
    (void)hashtableInlinePrefetch(t, hash);
}

/* The position of an entry given by address; its `word` is NULL if the entry is not in the
 * table. */
static hashtablePosition findEntry(const hashtable *t, uint64_t mark, uint64_t hash,
                                   const void *entry) {
    hashtablePosition position = {.hash = hash};
    if (!t->body) return position;
    tableProbe p = tableProbeAt(t, hash);
    position.home = p.home;
    position.tag = (uint32_t)p.tag;
    for (tableBucket *b = p.home;; b++) {
        for (unsigned i = 0; i < BUCKET_WORDS; i++) {
            if (b->word[i] && (b->word[i] & (WORD_ENTRY | mark)) == (uintptr_t)entry) {
                position.word = &b->word[i];
                return position;
            }
        }
        if (tableProbeEnds(&p, b, bucketTags(b))) return position;
    }
}

/* ---- inserting ---- */

static void smallInsert(hashtable *t, const hashtableType *type, uint64_t hash, uint64_t word) {
    hotCheck(!tableIsBig(t));
    tableSmall *s = tableAsSmall(t);
    tableItem item = {hash, word};
    if (!s) {
        tableRebuild(t, type, 1, &item);
        return;
    }
    /* Filling the last few percent would make long runs, except in tables of few buckets. */
    unsigned words = s->allocated * BUCKET_WORDS;
    unsigned fill_max = s->allocated > 4 ? words - words / 32 : words;
    if (s->count < fill_max) {
        tableScale sc;
        tableRegion r = smallRegion(s, type, &sc);
        if (regionPlace(&r, hash, scaleTagged(&sc, hash, word)) != PLACE_FULL) {
            s->count++;
            s->volatile_count = (uint16_t)(s->volatile_count + (word & HASHTABLE_VOLATILE));
            return;
        }
    }
    unsigned step = s->bucket_count < 2 * GROW_STEP_SMALL ? 1 : s->bucket_count / GROW_STEP_SMALL;
    tableRebuild(t, type, s->bucket_count + step, &item);
}

static void bigInserted(tableBig *g, const hashtableType *type, uint64_t hash, uint64_t word,
                        bool long_run) {
    hotCheck(g->count < UINT64_MAX);
    g->count++;
    if (unlikely(word & HASHTABLE_VOLATILE)) volatileCount(g, hash, 1);
    if (g->state != RESIZE_NONE) {
        resizeWork(g, type, RESIZE_QUOTA);
    } else if (unlikely(g->count > g->grow_at) || unlikely(long_run)) {
        resizeConsiderGrowth(g, type, long_run);
    }
}

static void bigInsert(tableBig *g, const hashtableType *type, uint64_t hash, uint64_t word) {
    bool long_run = false;
    while (hash < g->bound) {
        tableRegion r = bigRegion(g, type, hash);
        if (likely(regionPlace(&r, hash, scaleTagged(r.sc, hash, word)) != PLACE_FULL)) {
            bigInserted(g, type, hash, word, r.long_run);
            return;
        }
        /* The lower region would reach the upper one: let the resize make space. */
        resizeStep(g, type);
    }
    bigPlaceUpper(g, type, hash, scaleTagged(&g->scales[1], hash, word), &long_run);
    bigInserted(g, type, hash, word, long_run);
}

bool hashtableCanHold(const void *address) {
    return ((uintptr_t)address & ~WORD_ENTRY) == 0 && address != NULL;
}

static uint64_t wordMake(const void *entry, unsigned flags) {
    uint64_t word = (uint64_t)(uintptr_t)entry;
    check(word != 0);
    check((word & ~(WORD_ENTRY | HASHTABLE_MARK)) == 0);
    check((flags & ~WORD_USER) == 0);
    return word | flags;
}

void hashtableInsert(hashtable *t, const hashtableType *type, uint64_t hash, void *entry,
                     unsigned flags) {
    uint64_t word = wordMake(entry, flags);
    if (likely(tableIsBig(t))) {
        bigInsert(tableAsBig(t), type, hash, word);
    } else {
        smallInsert(t, type, hash, word);
    }
}

void hashtableInsertAt(hashtable *t, const hashtableType *type, const hashtablePosition *position,
                       void *entry, unsigned flags) {
    check(!position->word);
    tableBucket *home = position->home;
    unsigned free;
    if (likely(tableIsBig(t)) && likely((free = bucketFree(home)) != 0)) {
        hotCheck(tableProbeAt(t, position->hash).home == home);
        uint64_t word = wordMake(entry, flags);
        home->word[__builtin_ctz(free)] = word | (uint64_t)position->tag << TAG_SHIFT;
        bigInserted(tableAsBig(t), type, position->hash, word, false);
        return;
    }
    hashtableInsert(t, type, position->hash, entry, flags);
}

/* ---- deleting ---- */

/* The most buckets of a big table that is rebuilt as a small one in a single step. A table with
 * more buckets and so few entries, which could not shrink before, first shrinks step by step. */
#define REBUILD_MAX (8 * BIG_MIN)

static void smallDeleteAt(hashtable *t, const hashtableType *type,
                          const hashtablePosition *position) {
    hotCheck(!tableIsBig(t));
    hotCheck(tableAsSmall(t)->allocated > 0);
    tableSmall *s = tableAsSmall(t);
    tableScale sc;
    tableRegion r = smallRegion(s, type, &sc);
    size_t index = (size_t)(position->word - s->buckets[0].word);
    const tableBucket *home = position->home;
    s->volatile_count = (uint16_t)(s->volatile_count - (*position->word & HASHTABLE_VOLATILE));
    uint64_t at = index / BUCKET_WORDS;
    regionRemove(&r, at, index % BUCKET_WORDS, &s->buckets[at] != home);
    s->count--;
    if (s->count == 0) {
        tableFreeBody(t);
    } else if (s->allocated > 1 && s->count < s->allocated * BUCKET_WORDS * 6u / 10) {
        uint64_t want = s->count / 7u + 1;
        if (want < s->allocated) tableRebuild(t, type, want, NULL);
    }
}

static void bigDeleteAt(hashtable *t, const hashtableType *type,
                        const hashtablePosition *position) {
    hotCheck(tableIsBig(t));
    hotCheck(tableAsBig(t)->count > 0);
    tableBig *g = tableAsBig(t);
    tableRegion r = bigRegion(g, type, position->hash);
    size_t index = (size_t)(position->word - g->buckets[0].word);
    const tableBucket *home = position->home;
    bool was_volatile = *position->word & HASHTABLE_VOLATILE;
    uint64_t at = index / BUCKET_WORDS;
    regionRemove(&r, at, index % BUCKET_WORDS, &g->buckets[at] != home);
    if (unlikely(was_volatile)) volatileCount(g, position->hash, -1);
    g->count--;
    if (unlikely(g->count == 0)) {
        tableFreeBody(t);
    } else if (g->state != RESIZE_NONE) {
        resizeWork(g, type, RESIZE_QUOTA);
    } else if (unlikely(g->count < g->shrink_at) && !resizeIsPaused()) {
        uint64_t want = g->count * 100 / (BUCKET_WORDS * FILL_SHRUNK) + 1;
        if (want < BIG_MIN / 2 && g->scales[1].bucket_count <= REBUILD_MAX) {
            tableRebuild(t, type, want, NULL);
        } else if (want < g->scales[1].bucket_count) {
            resizeBeginShrink(g, want);
        }
    }
}

void *hashtableDeleteAt(hashtable *t, const hashtableType *type,
                        const hashtablePosition *position) {
    check(position->word);
    hotCheck(tableProbeAt(t, position->hash).home == position->home);
    void *entry = wordEntryOfType(*position->word, type);
    if (likely(tableIsBig(t))) {
        bigDeleteAt(t, type, position);
    } else {
        smallDeleteAt(t, type, position);
    }
    return entry;
}

void *hashtableDelete(hashtable *t, const hashtableType *type, uint64_t hash, const void *key,
                      size_t len) {
    hashtablePosition position;
    if (!hashtableFindPosition(t, type, hash, key, len, &position)) return NULL;
    return hashtableDeleteAt(t, type, &position);
}

bool hashtableDeleteEntry(hashtable *t, const hashtableType *type, uint64_t hash,
                          const void *entry) {
    hashtablePosition position = findEntry(t, type->entry_mark, hash, entry);
    if (!position.word) return false;
    hashtableDeleteAt(t, type, &position);
    return true;
}

void *hashtablePop(hashtable *t, const hashtableType *type) {
    void *entry = hashtableRandom(t, type);
    if (entry) check(hashtableDeleteEntry(t, type, type->hash_of(entry), entry));
    return entry;
}

/* ---- modification ---- */

void hashtableReplaceAt(const hashtablePosition *position, const hashtableType *type, void *entry) {
    check(position->word);
    *position->word = (*position->word & ~(WORD_ENTRY | type->entry_mark)) | wordMake(entry, 0);
}

bool hashtableHasEntry(const hashtable *t, uint64_t hash, const void *entry) {
    return findEntry(t, 0, hash, entry).word != NULL;
}

bool hashtableReplace(hashtable *t, const hashtableType *type, uint64_t hash, const void *old,
                      void *entry) {
    hashtablePosition position = findEntry(t, type->entry_mark, hash, old);
    if (!position.word) return false;
    hashtableReplaceAt(&position, type, entry);
    return true;
}

unsigned hashtableFlagsAt(const hashtablePosition *position) {
    check(position->word);
    return (unsigned)(*position->word & WORD_USER);
}

void hashtableSetFlagsAt(hashtable *t, const hashtablePosition *position, unsigned flags) {
    check(position->word);
    check((flags & ~WORD_USER) == 0);
    int delta = (int)(flags & HASHTABLE_VOLATILE) - (int)(*position->word & HASHTABLE_VOLATILE);
    *position->word = (*position->word & ~WORD_USER) | flags;
    if (delta == 0) return;
    if (tableIsBig(t)) {
        volatileCount(tableAsBig(t), position->hash, delta);
    } else {
        tableAsSmall(t)->volatile_count = (uint16_t)(tableAsSmall(t)->volatile_count + delta);
    }
}

bool hashtableSetFlags(hashtable *t, uint64_t hash, const void *entry, unsigned flags) {
    hashtablePosition position = findEntry(t, 0, hash, entry);
    if (!position.word) return false;
    hashtableSetFlagsAt(t, &position, flags);
    return true;
}

/* ---- the whole table ---- */

uint64_t hashtableCount(const hashtable *t) {
    if (!t->body) return 0;
    return tableIsBig(t) ? tableAsBig(t)->count : tableAsSmall(t)->count;
}

uint64_t hashtableVolatileCount(const hashtable *t) {
    if (!t->body) return 0;
    if (!tableIsBig(t)) return tableAsSmall(t)->volatile_count;
    const volatileIndex *v = tableAsBig(t)->volatiles;
    return v ? v->counts.total : 0;
}

tableArray tableBuckets(const hashtable *t) {
    if (!t->body) return (tableArray){NULL, 0};
    if (!tableIsBig(t)) return (tableArray){tableAsSmall(t)->buckets, tableAsSmall(t)->allocated};
    return (tableArray){tableAsBig(t)->buckets, tableAsBig(t)->allocated};
}

void hashtableReserve(hashtable *t, const hashtableType *type, uint64_t count) {
    uint64_t want = count * 100 / (BUCKET_WORDS * FILL_GROW) + 1;
    if (!tableIsBig(t)) {
        if (want > tableBuckets(t).count) tableRebuild(t, type, want, NULL);
        return;
    }
    tableBig *g = tableAsBig(t);
    for (;;) {
        while (g->state != RESIZE_NONE) resizeStep(g, type);
        uint64_t now = g->scales[1].bucket_count;
        if (now >= want) return;
        resizeBeginGrowth(g, type, want < 2 * now ? want : 2 * now);
    }
    hotCheck(tableBuckets(t).count > 0);
}

bool hashtableWork(hashtable *t, const hashtableType *type, unsigned buckets) {
    if (!hashtableIsResizing(t)) return false;
    resizeWork(tableAsBig(t), type, buckets);
    return hashtableIsResizing(t) && !resizeIsPaused();
}

bool hashtableIsResizing(const hashtable *t) {
    return tableIsBig(t) && tableAsBig(t)->state != RESIZE_NONE;
}

void hashtableFree(hashtable *t, hashtableVisitProc *visit, void *context) {
    tableArray array = tableBuckets(t);
    for (uint64_t at = 0; visit && at < array.count; at++) {
        const tableBucket *b = &array.buckets[at];
        if (at + 1 < array.count) {
            for (unsigned i = 0; i < BUCKET_WORDS; i++) prefetchRead(wordEntry(b[1].word[i]));
        }
        for (unsigned used = bucketUsed(b); used; used &= used - 1) {
            uint64_t word = b->word[__builtin_ctz(used)];
            visit(context, wordEntry(word), (unsigned)(word & WORD_USER));
        }
    }
    tableFreeBody(t);
}

size_t hashtableBytes(const hashtable *t) {
    if (!t->body) return 0;
    if (!tableIsBig(t)) return memSizeOf(t->body);
    const tableBig *g = tableAsBig(t);
    size_t bytes = memSizeOf(g) + g->block_bytes;
    if (g->volatiles) bytes += memSizeOf(g->volatiles) + fenwickBytes(&g->volatiles->counts);
    if (g->volatiles_next) {
        bytes += memSizeOf(g->volatiles_next) + fenwickBytes(&g->volatiles_next->counts);
    }
    return bytes;
}
