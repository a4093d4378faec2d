/* SPDX-License-Identifier: BSD-3-Clause
 *
 * hashtable: incremental resizing in place.
 *
 * Growing proceeds from the end of the array to its start: steps of several old buckets move up to
 * their positions in the new scale, where all greater hashes have been moved already. Shrinking
 * proceeds in the other direction. `bound` is the hash that separates moved and unmoved entries;
 * each hash follows exactly one scale at any time, so lookups need not know about resizes.
 * Invariant: the lower region ends before bucket `limit`, the upper one starts there or later.
 * Cost: about 5 ns per word, 5 words per insert while a table grows from empty. Not thread-safe. */
#include "ds/hashtable_private.h"

#include "base/alloc.h"

static bool paused;

void hashtableSetPaused(bool on) { paused = on; }
bool resizeIsPaused(void) { return paused; }

/* ---- start and end ---- */

/* A resize that changes the prefix bits counts volatile entries again, by the new blocks. */
static void indexBegin(tableBig *g, const tableScale *from, const tableScale *to) {
    check(!g->volatiles_next);
    if (g->volatiles && scalePrefixBits(to) != scalePrefixBits(from)) {
        g->volatiles_next = volatileIndexNew(scalePrefixBits(to));
    }
}

static void indexMove(tableBig *g, uint64_t hash, uint64_t word) {
    if (g->volatiles_next && (word & HASHTABLE_VOLATILE)) {
        fenwickAdd(&g->volatiles_next->counts, volatileBlock(g->volatiles_next, hash), 1);
    }
}

static void resizeEnd(tableBig *g) {
    if (g->state == RESIZE_SHRINK) g->scales[1] = g->scales[0];
    g->bound = 0;
    g->state = RESIZE_NONE;
    g->credit = 0;
    bigSetThresholds(g);
    if (g->volatiles_next) {
        check(g->volatiles_next->counts.total == g->volatiles->counts.total);
        volatileIndexFree(g->volatiles);
        g->volatiles = g->volatiles_next;
        g->volatiles_next = NULL;
    }
    if (g->volatiles && g->volatiles->counts.total == 0) {
        volatileIndexFree(g->volatiles);
        g->volatiles = NULL;
    }
}

void resizeBeginGrowth(tableBig *g, const hashtableType *type, uint64_t bucket_count) {
    check(g->state == RESIZE_NONE);
    uint64_t old_count = g->scales[1].bucket_count;
    check(bucket_count > old_count);
    check(bucket_count <= 2 * old_count);
    unsigned prefix_bits = scalePrefixBits(&g->scales[1]);
    if (log2Floor(bucket_count) - prefix_bits > PREFIX_LAG_MAX) {
        prefix_bits = prefixBitsFor(bucket_count);
    }
    if (bucket_count + SPARE_BUCKETS > g->allocated) {
        bigResizeArray(g, bucket_count + SPARE_BUCKETS);
    }
    g->scales[0] = g->scales[1];
    scaleInit(&g->scales[1], bucket_count, prefix_bits);
    indexBegin(g, &g->scales[0], &g->scales[1]);
    g->state = RESIZE_GROW;
    g->resize_at = old_count;
    g->limit = g->allocated;
    resizeStep(g, type); /* Only now can `bound` be represented; before, it would be 2^64. */
}

void resizeBeginShrink(tableBig *g, uint64_t bucket_count) {
    check(g->state == RESIZE_NONE);
    check(bucket_count < g->scales[1].bucket_count);
    /* Reducing the bits of tags never requires keys. */
    unsigned prefix_bits = scalePrefixBits(&g->scales[1]);
    if (prefixBitsFor(bucket_count) < prefix_bits) {
        prefix_bits =
            log2Floor(bucket_count) > PREFIX_LAG_MAX ? log2Floor(bucket_count) - PREFIX_LAG_MAX : 0;
    }
    scaleInit(&g->scales[0], bucket_count, prefix_bits);
    g->state = RESIZE_CHECK;
    g->resize_at = 0;
    g->limit = 0;
}

/* ---- checking ---- */

/* Entries can be distributed unevenly, though hashes are random: a scan whose cursor is older than
 * most of the table deletes in large blocks of hashes, so some parts of the table are empty and
 * others are full. Shrunk, those would be runs of thousands of buckets. */

/* Buckets that are looked at together, and how far from home a word may be in the smaller array.
 * Random hashes stay far below it: the chance is less than 2^-50 per bucket. */
enum { CHECK_WINDOW = 8, CHECK_DISTANCE_MAX = 16 };

/* The check is complete and has found nothing. */
static void checkEnd(tableBig *g, const hashtableType *type) {
    g->resize_at = g->limit = 0;
    g->state = RESIZE_NONE;
    /* Entries were inserted meanwhile: too many for the smaller array. */
    if (g->count > g->scales[0].bucket_count * BUCKET_WORDS * FILL_GROW / 100) return;
    g->state = RESIZE_SHRINK;
    indexBegin(g, &g->scales[1], &g->scales[0]);
    resizeStep(g, type);
    hotCheck(g->state != RESIZE_GROW);
}

/* Where old bucket `at` would be in the smaller array. */
static uint64_t checkHome(const tableBig *g, uint64_t at) {
    return at * g->scales[0].bucket_count / g->scales[1].bucket_count;
}

/* Reads the next buckets and computes up to where their words would fill the smaller array. */
static void checkStep(tableBig *g, const hashtableType *type) {
    hotCheck(g->resize_at <= g->scales[1].bucket_count);
    uint64_t old_count = g->scales[1].bucket_count, at = g->resize_at;
    uint64_t stop = at + CHECK_STEP_BUCKETS < old_count ? at + CHECK_STEP_BUCKETS : old_count;
    bool even = true;
    while (at < stop) {
        uint64_t end = at + CHECK_WINDOW < stop ? at + CHECK_WINDOW : stop;
        uint64_t home = checkHome(g, at) * BUCKET_WORDS;
        if (g->limit < home) g->limit = home;
        for (; at < end; at++)
            g->limit += (unsigned)__builtin_popcount(bucketUsed(&g->buckets[at]));
        even &= g->limit / BUCKET_WORDS <= checkHome(g, end) + CHECK_DISTANCE_MAX;
    }
    g->resize_at = stop;
    if (!even) {
        g->state = RESIZE_NONE;
        g->credit = 0;
        g->shrink_at = g->count / 2; /* tried again when half of the entries are deleted */
    } else if (stop == old_count) {
        checkEnd(g, type);
    } else {
        for (uint64_t i = 0; i < CHECK_STEP_BUCKETS && stop + i < old_count; i++)
            prefetchRead(&g->buckets[stop + i]);
    }
}

/* ---- growing ---- */

/* A step of old buckets being moved up. */
typedef struct growBurst {
    tableBig *g;
    const hashtableType *type;
    tableRegion from;
    tableLayout to; /* the free buckets between old and new positions */
    uint64_t low;   /* the first old bucket of the step ... */
    uint64_t bound; /* ... and its first hash */
    uint64_t end;   /* the last bucket with words of the old scale */
    bool rehash;    /* the new scale needs more bits than the old one has */
} growBurst;

/* Removes the words of this step from old bucket `at`; words displaced from earlier buckets remain.
 * Returns their number. */
static unsigned growTake(growBurst *m, uint64_t at, tableItem *items) {
    hotCheck(at < m->from.limit);
    tableBucket *b = &m->from.buckets[at];
    unsigned count = bucketItems(&m->from, at, m->rehash, items), left = 0;
    *b = (tableBucket){{0}};
    if (likely(count == 0) || likely(items[0].hash >= m->bound)) return count;
    for (; left < count && items[left].hash < m->bound; left++) b->word[left] = items[left].word;
    if (at > m->low) bucketSetOverflow(b - 1);
    memmove(items, items + left, (count - left) * sizeof(*items));
    return count - left;
}

/* Stores one of the last words of a step, which may end up in the upper region. */
static void growSpill(growBurst *m, tableItem item) {
    bool long_run = false;
    bigPlaceUpper(m->g, m->type, item.hash, scaleTagged(m->to.region.sc, item.hash, item.word),
                  &long_run);
    m->from.buckets = m->to.region.buckets = m->g->buckets;
}

/* Moves words bucket by bucket, without sorting: the new positions are above the old ones, tags are
 * unchanged. */
static void growMove(growBurst *m) {
    hotCheck(m->low <= m->end);
    for (uint64_t at = m->low; at <= m->end; at++) {
        tableItem items[BUCKET_WORDS];
        unsigned count = growTake(m, at, items);
        for (unsigned i = 0; i < count; i++) {
            if (unlikely(!layoutAdd(&m->to, items[i].hash, items[i].word))) growSpill(m, items[i]);
        }
    }
}

/* The next step is going to read their keys. */
static void prefetchEntries(const tableBucket *b) {
    for (unsigned i = 0; i < BUCKET_WORDS; i++) prefetchRead(wordEntry(b->word[i]));
}

/* Removes all words of the step, sorts them and stores them again: needed when words of the same
 * unit have to be ordered by their complete hashes, or when new positions overlap old ones. */
static void growMoveSorted(growBurst *m) {
    hotCheck(m->low <= m->end);
    tableItem *items = memAlloc((m->end + 1 - m->low) * BUCKET_WORDS * sizeof(*items));
    size_t count = 0;
    for (uint64_t at = m->low; at <= m->end; at++) {
        tableItem found[BUCKET_WORDS];
        if (m->rehash && at >= RESIZE_STEP_BUCKETS)
            prefetchEntries(&m->from.buckets[at - RESIZE_STEP_BUCKETS]);
        unsigned n = growTake(m, at, found);
        for (unsigned i = 0; i < n; i++) itemsInsert(items, count++, found[i]);
    }
    for (size_t i = 0; i < count; i++) {
        if (unlikely(!layoutAddItem(&m->to, items[i]))) growSpill(m, items[i]);
        indexMove(m->g, items[i].hash, items[i].word);
    }
    memFree(items);
}

static void growStep(tableBig *g, const hashtableType *type) {
    hotCheck(g->state == RESIZE_GROW);
    hotCheck(g->resize_at > 0);
    tableScale *from = &g->scales[0], *to = &g->scales[1];
    growBurst m = {
        .g = g, .type = type, .end = g->resize_at - 1, .rehash = to->shift < from->shift};
    while (bucketOverflows(&g->buckets[m.end])) m.end++;
    m.from = (tableRegion){.buckets = g->buckets, .sc = from, .type = type, .limit = m.end + 1};
    m.to.region = (tableRegion){.buckets = g->buckets, .sc = to, .type = type, .limit = g->limit};
    uint64_t burst = g->resize_at < RESIZE_STEP_BUCKETS ? g->resize_at : RESIZE_STEP_BUCKETS;
    for (; burst > 0; burst /= 2) {
        m.low = g->resize_at - burst;
        m.bound = scaleFirstUnit(from, m.low) << from->shift;
        m.to.at = scaleHome(to, m.bound);
        if (m.to.at > m.end) break; /* all new positions are above the old ones */
    }
    /* Near the start of the array they are too close: then all remaining words are moved at
     * once. */
    if (burst == 0) m.low = m.bound = m.to.at = 0;
    uint64_t target = m.to.at;
    if (m.rehash || burst == 0) {
        growMoveSorted(&m);
    } else {
        growMove(&m);
    }
    g->resize_at = m.low;
    g->bound = m.bound;
    g->limit = target;
    if (m.low == 0) {
        resizeEnd(g);
        return;
    }
    /* Prefetch for the next step. */
    for (uint64_t i = 1; i <= RESIZE_STEP_BUCKETS && i <= m.low; i++) {
        prefetchWrite(&g->buckets[m.low - i]);
        prefetchWrite(&g->buckets[target - i]);
    }
}

/* ---- shrinking ---- */

/* Items being moved down, in order of hash; those before `next` have been stored. */
typedef struct shrinkItems {
    tableItem *items;
    size_t count, cap, next;
} shrinkItems;

/* Removes the entries of old home buckets [from, to). Later words in their last buckets move
 * left. */
static void shrinkTake(tableBig *g, const hashtableType *type, uint64_t from, uint64_t to,
                       shrinkItems *taken) {
    tableRegion r = {
        .buckets = g->buckets, .sc = &g->scales[1], .type = type, .limit = g->allocated};
    tableLayout rest = {.region = r, .at = to};
    uint64_t end = to - 1, bound = UINT64_MAX;
    while (bucketOverflows(&g->buckets[end])) end++;
    if (to < r.sc->bucket_count) bound = (scaleFirstUnit(r.sc, to) << r.sc->shift) - 1;
    size_t most = taken->count + (end + 1 - from) * BUCKET_WORDS;
    if (most > taken->cap) {
        taken->cap = most;
        taken->items = memRealloc(taken->items, most * sizeof(tableItem));
    }
    for (uint64_t at = from; at <= end; at++) {
        tableItem found[BUCKET_WORDS];
        unsigned count = bucketItems(&r, at, false, found);
        g->buckets[at] = (tableBucket){{0}};
        for (unsigned i = 0; i < count; i++) {
            if (found[i].hash <= bound) {
                taken->items[taken->count++] = found[i];
            } else {
                check(layoutAdd(&rest, found[i].hash, found[i].word));
            }
        }
    }
}

/* The first free bucket after the lower region, which contains the hashes below `bound`. */
static uint64_t shrinkFirstFree(const tableBig *g) {
    if (g->bound == 0) return 0;
    uint64_t at = scaleHome(&g->scales[0], g->bound - 1);
    while (bucketOverflows(&g->buckets[at])) at++;
    return at + 1;
}

/* Stores the removed items after the lower region, as far as there is space before its limit. */
static void shrinkPut(tableBig *g, tableLayout *to, shrinkItems *taken, uint64_t first_free) {
    hotCheck(taken->next <= taken->count);
    for (; taken->next < taken->count; taken->next++) {
        tableItem item = taken->items[taken->next];
        uint64_t word = scaleTagged(to->region.sc, item.hash, item.word);
        if (scaleHome(to->region.sc, item.hash) < first_free) {
            /* Among the last words of the region; being the greatest, it is stored at its end. */
            uint64_t at = regionPlace(&to->region, item.hash, word);
            if (at == PLACE_FULL) return;
            if (at >= first_free) {
                to->at = at;
                to->used = (unsigned)__builtin_popcount(bucketUsed(&g->buckets[at]));
            }
        } else if (!layoutAdd(to, item.hash, word)) {
            return;
        }
        indexMove(g, item.hash, item.word);
    }
}

static void shrinkEnd(tableBig *g, const hashtableType *type, shrinkItems *taken) {
    hotCheck(taken->next <= taken->count);
    tableScale *to = &g->scales[0];
    for (size_t i = taken->next; i < taken->count; i++) {
        indexMove(g, taken->items[i].hash, taken->items[i].word);
    }
    resizeEnd(g);
    uint64_t end = to->bucket_count - 1, want = to->bucket_count + SPARE_BUCKETS;
    while (bucketOverflows(&g->buckets[end])) end++;
    bigResizeArray(g, end + 1 > want ? end + 1 : want);
    for (; taken->next < taken->count; taken->next++) {
        tableItem item = taken->items[taken->next];
        bool long_run = false;
        bigPlaceUpper(g, type, item.hash, scaleTagged(to, item.hash, item.word), &long_run);
    }
}

static void shrinkStep(tableBig *g, const hashtableType *type) {
    hotCheck(g->state == RESIZE_SHRINK);
    uint64_t old_count = g->scales[1].bucket_count, first_free = shrinkFirstFree(g);
    shrinkItems taken = {NULL, 0, 0, 0};
    tableLayout to = {.at = first_free};
    to.region = (tableRegion){.buckets = g->buckets, .sc = &g->scales[0], .type = type};
    /* Without a gap between old and new positions, more is removed until it fits. */
    do {
        uint64_t stop = g->resize_at + RESIZE_STEP_BUCKETS < old_count
                            ? g->resize_at + RESIZE_STEP_BUCKETS
                            : old_count;
        shrinkTake(g, type, g->resize_at, stop, &taken);
        g->resize_at = stop;
        to.region.limit = stop < old_count ? stop : g->allocated;
        shrinkPut(g, &to, &taken, first_free);
    } while (taken.next < taken.count && g->resize_at < old_count);
    g->limit = to.region.limit;
    if (g->resize_at < old_count) {
        g->bound = scaleFirstUnit(&g->scales[1], g->resize_at) << g->scales[1].shift;
    } else {
        shrinkEnd(g, type, &taken);
    }
    memFree(taken.items);
}

/* ---- pacing ---- */

void resizeStep(tableBig *g, const hashtableType *type) {
    check(g->state != RESIZE_NONE);
    if (g->state == RESIZE_CHECK) {
        checkStep(g, type);
    } else if (g->state == RESIZE_GROW) {
        growStep(g, type);
    } else {
        shrinkStep(g, type);
    }
}

/* True if a table of this size is too full to wait for the end of the child. */
static bool isNearlyFull(const tableBig *g, uint64_t bucket_count) {
    return g->count > bucket_count * BUCKET_WORDS * FILL_GROW_PAUSED / 100;
}

void resizeWork(tableBig *g, const hashtableType *type, unsigned buckets) {
    if (g->state == RESIZE_NONE) return;
    if (unlikely(paused) && !isNearlyFull(g, g->scales[0].bucket_count)) return;
    /* In steps of several buckets, because memory accesses of adjacent buckets overlap. */
    g->credit += buckets;
    while (g->credit >= RESIZE_STEP_BUCKETS && g->state != RESIZE_NONE) {
        g->credit -= RESIZE_STEP_BUCKETS;
        resizeStep(g, type);
    }
}

void resizeConsiderGrowth(tableBig *g, const hashtableType *type, bool long_run) {
    uint64_t bucket_count = g->scales[1].bucket_count;
    unsigned percent = long_run ? FILL_GROW_SKEWED : FILL_GROW;
    if (paused) percent = FILL_GROW_PAUSED;
    if (g->count <= bucket_count * BUCKET_WORDS * percent / 100) return;
    uint64_t step = g->mapped ? GROW_STEP : GROW_STEP_SMALL;
    uint64_t want = bucket_count + (bucket_count >= step ? bucket_count / step : 1);
    if (!g->mapped) {
        /* The allocator rounds up: use the whole block. */
        size_t good = memGoodSize((want + SPARE_BUCKETS + 1) * sizeof(tableBucket));
        uint64_t fitting = good / sizeof(tableBucket) - SPARE_BUCKETS - 1;
        if (fitting > want) want = fitting;
        if (want > 2 * bucket_count) want = 2 * bucket_count;
    }
    resizeBeginGrowth(g, type, want);
}
