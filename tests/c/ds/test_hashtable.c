/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Tests of ds/hashtable, one promise of its header at a time. */
#include "ds_test.h"

#include <string.h>

#include "base/alloc.h"
#include "base/bytes.h"
#include "base/random.h"
#include "ds/hashtable_layout.h"

/* A table with the ids from..to-1. */
static void fill(hashtable *t, uint64_t from, uint64_t to, unsigned flags) {
    for (uint64_t id = from; id < to; id++) itemAdd(t, id, flags);
}

/* Numbers in the form of pointers; their hash is that of their id. */
static void *numberOf(uint64_t id) { return (void *)(uintptr_t)(8 * id + 8); }
static uint64_t numberHashOf(const void *entry) { return itemHash((uintptr_t)entry / 8 - 1); }
static const hashtableType numberType = {.hash_of = numberHashOf};

static void drop(hashtable *t, uint64_t id) { memFree(itemDelete(t, id)); }

static void finishResize(hashtable *t) {
    while (hashtableWork(t, &itemType, 1000)) {}
}

/* ---- one entry ---- */

static void test_all_operations_on_an_empty_table(void **state) {
    hashtable t = {NULL};
    hashtableIterator it;
    hashtablePosition position;
    hashtableStats stats;
    void *out[1];
    uint64_t id = 1;
    assert_null(itemFind(&t, 1));
    assert_null(itemDelete(&t, 1));
    assert_null(hashtableFindPosition(&t, &itemType, itemHash(1), &id, sizeof(id), &position));
    assert_false(hashtableDeleteEntry(&t, &itemType, itemHash(1), &id));
    assert_false(hashtableReplace(&t, &itemType, itemHash(1), &id, &id));
    assert_false(hashtableSetFlags(&t, itemHash(1), &id, 0));
    assert_null(hashtableRandom(&t, &itemType));
    assert_null(hashtableRandomVolatile(&t, &itemType));
    assert_null(hashtablePop(&t, &itemType));
    assert_int_equal(hashtableSample(&t, &itemType, out, 1), 0);
    assert_int_equal(hashtableSampleVolatile(&t, &itemType, out, 1), 0);
    assert_int_equal(hashtableScan(&t, &itemType, 77, itemFreeVisit, NULL), 0);
    assert_int_equal(hashtableScanVolatile(&t, &itemType, 77, itemFreeVisit, NULL), 0);
    hashtableIteratorInit(&it, &t, &itemType);
    assert_null(hashtableIteratorNext(&it, NULL));
    hashtableIteratorClear(&it);
    hashtablePrefetch(&t, 1);
    assert_false(hashtableWork(&t, &itemType, 1));
    assert_int_equal(hashtableCount(&t) + hashtableVolatileCount(&t) + hashtableBytes(&t), 0);
    hashtableStatsRead(&t, &itemType, &stats);
    assert_int_equal(stats.slots, 0);
    assert_int_equal(stats.resize_position, -1);
    assert_valid(&t);
    hashtableFree(&t, itemFreeVisit, NULL);
}

static void test_an_insert_at_the_position_of_an_absent_key(void **state) {
    hashtable t = {NULL};
    for (uint64_t id = 0; id < 3000; id++) {
        hashtablePosition position;
        uint64_t hash = itemHash(id);
        assert_null(hashtableFindPosition(&t, &itemType, hash, &id, sizeof(id), &position));
        hashtableInsertAt(&t, &itemType, &position, itemNew(id), HASHTABLE_MARK);
        item *e = hashtableFindPosition(&t, &itemType, hash, &id, sizeof(id), &position);
        assert_int_equal(e->id, id);
        assert_int_equal(hashtableFlagsAt(&position), HASHTABLE_MARK);
    }
    assert_valid(&t);
    for (uint64_t id = 0; id < 3000; id++) {
        hashtablePosition position;
        item *e = hashtableFindPosition(&t, &itemType, itemHash(id), &id, sizeof(id), &position);
        assert_ptr_equal(hashtableDeleteAt(&t, &itemType, &position), e);
        memFree(e);
    }
    assert_null(t.body);
}

static void test_integers_serve_as_entries(void **state) {
    hashtable t = {NULL};
    void *greatest = (void *)0x0000fffffffffff8ull, *least = (void *)8;
    hashtableInsert(&t, &itemType, 1, greatest, HASHTABLE_VOLATILE | HASHTABLE_MARK);
    hashtableInsert(&t, &itemType, 1, least, 0);
    assert_true(hashtableSetFlags(&t, 1, greatest, 0));
    assert_true(hashtableReplace(&t, &itemType, 1, greatest, (void *)16));
    assert_true(hashtableDeleteEntry(&t, &itemType, 1, (void *)16));
    assert_true(hashtableDeleteEntry(&t, &itemType, 1, least));
    assert_null(t.body);
}

static void test_tag_zero_and_all_ones_are_tags_like_others(void **state) {
    hashtable t = {NULL};
    static const uint64_t hashes[] = {0, ~0ull, 1, ~0ull - 1, 1ull << 63, (1ull << 63) - 1};
    for (size_t i = 0; i < COUNT_OF(hashes); i++) {
        hashtableInsert(&t, &itemType, hashes[i], (void *)(8 * (i + 1)), 0);
    }
    for (size_t i = 0; i < COUNT_OF(hashes); i++) {
        assert_true(hashtableSetFlags(&t, hashes[i], (void *)(8 * (i + 1)), HASHTABLE_MARK));
        assert_false(hashtableSetFlags(&t, hashes[i], (void *)(8 * (i + 100)), HASHTABLE_MARK));
    }
    hashtableFree(&t, NULL, NULL);
}

/* ---- moving its own blocks ---- */

/* Header, array, and both blocks of the index of volatile entries. */
static void test_compact_moves_every_block_of_a_table(void **state) {
    for (uint64_t count = 1; count < 30000; count = count * 3 + 1) {
        hashtable t = {NULL};
        fill(&t, 0, count, HASHTABLE_VOLATILE);
        size_t bytes = hashtableBytes(&t), used = memUsed();
        unsigned moved = hashtableCompact(&t);
        assert_in_range(moved, 0, 6);
#if defined(HOSTILE_BUILD) && !defined(USE_JEMALLOC)
        assert_in_range(moved, 1, 6); /* this one always moves */
#endif
        assert_int_equal(hashtableBytes(&t), bytes);
        assert_true(memUsed() <= used + 4096);
        assert_valid(&t);
        for (uint64_t id = 0; id < count; id++) drop(&t, id);
        assert_null(t.body);
        assert_int_equal(hashtableCompact(&t), 0);
    }
}

/* A class of 14 KB has two blocks in a run of pages: of four neighbours one is kept. */
static void test_compact_joins_the_arrays_of_many_tables(void **state) {
    enum { TABLES = 400, ENTRIES = 1300, KEPT_EACH = 4 };
    hashtable *tables = memNewArray(hashtable, TABLES);
    for (int i = 0; i < TABLES; i++) {
        for (uint64_t id = 0; id < ENTRIES; id++)
            hashtableInsert(&tables[i], &numberType, itemHash(id), numberOf(id), 0);
    }
    for (int i = 0; i < TABLES; i++) {
        if (i % KEPT_EACH) hashtableFree(&tables[i], NULL, NULL);
    }
    size_t before = memSparseBytes();
    unsigned moved = 0;
    for (int i = 0; i < TABLES; i += KEPT_EACH) moved += hashtableCompact(&tables[i]);
#ifdef USE_JEMALLOC
    assert_in_range(moved, TABLES / KEPT_EACH / 4, 2 * TABLES / KEPT_EACH);
    assert_true(memSparseBytes() < before / 2);
#else
    assert_true(before == 0);
#endif
    for (int i = 0; i < TABLES; i += KEPT_EACH) {
        assert_null(hashtableVerify(&tables[i], &numberType));
        assert_int_equal(hashtableCount(&tables[i]), ENTRIES);
        hashtableFree(&tables[i], NULL, NULL);
    }
    memFree(tables);
}

/* ---- resizing ---- */

static void test_memory_follows_the_count_and_is_all_freed(void **state) {
    size_t before = memUsed();
    hashtable t = {NULL};
    fill(&t, 0, 50000, HASHTABLE_VOLATILE);
    finishResize(&t);
    size_t full = hashtableBytes(&t);
    assert_valid(&t);
    for (uint64_t id = 0; id < 49000; id++) drop(&t, id);
    finishResize(&t);
    assert_true(hashtableBytes(&t) < full / 15);
    assert_valid(&t);
    for (uint64_t id = 49000; id < 50000; id++) drop(&t, id);
    assert_null(t.body);
    assert_int_equal(memUsed(), before);
}

static void test_used_memory_counts_the_whole_table(void **state) {
    size_t before = memUsed();
    hashtable t = {NULL};
    for (uint64_t id = 0; id < 100000; id++) {
        hashtableInsert(&t, &numberType, itemHash(id), numberOf(id), 0);
        if (id % 997 == 0) assert_int_equal(memUsed() - before, hashtableBytes(&t));
    }
    hashtableFree(&t, NULL, NULL);
    assert_int_equal(memUsed(), before);
}

#ifndef HOSTILE_BUILD /* which takes ordinary runs for attacks, and grows */
static void test_bytes_per_entry_hardly_depend_on_the_count(void **state) {
    hashtable t = {NULL};
    for (uint64_t id = 0; id < 400000; id++) {
        hashtableInsert(&t, &numberType, itemHash(id), numberOf(id), 0);
        double bytes = (double)hashtableBytes(&t) / (double)(id + 1);
        if (id >= 50000) assert_true(bytes > 8.9 && bytes < 11.6);
        if (id >= 300 && id < 50000) assert_true(bytes < 14);
    }
    hashtableFree(&t, NULL, NULL);
    hashtableInsert(&t, &itemType, 5, (void *)8, 0);
    assert_true(hashtableBytes(&t) <= 92); /* with the handle 100 */
    hashtableFree(&t, NULL, NULL);
}

static void test_reserve_makes_a_resize_unnecessary(void **state) {
    static const uint64_t counts[] = {1, 8, 60, 700, 900, 5000, 300000};
    for (size_t i = 0; i < COUNT_OF(counts); i++) {
        hashtable t = {NULL};
        hashtableReserve(&t, &itemType, counts[i]);
        size_t bytes = hashtableBytes(&t);
        for (uint64_t id = 0; id < counts[i]; id++) {
            itemAdd(&t, id, 0);
            assert_false(hashtableIsResizing(&t));
        }
        assert_true(hashtableBytes(&t) <= bytes + bytes / 8 + 256);
        assert_valid(&t);
        hashtableFree(&t, itemFreeVisit, NULL);
    }
}
#endif

static void test_reserve_with_entries_moves_them(void **state) {
    hashtable t = {NULL};
    fill(&t, 0, 30, HASHTABLE_VOLATILE);
    hashtableReserve(&t, &itemType, 100000);
    assert_valid(&t);
    fill(&t, 30, 20000, 0);
    assert_false(hashtableIsResizing(&t));
    hashtableReserve(&t, &itemType, 400000);
    assert_false(hashtableIsResizing(&t));
    assert_valid(&t);
    hashtableReserve(&t, &itemType, 10); /* never shrinks */
    fill(&t, 20000, 300000, 0);
    assert_false(hashtableIsResizing(&t));
    assert_valid(&t);
    assert_int_equal(hashtableVolatileCount(&t), 30);
    hashtableFree(&t, itemFreeVisit, NULL);
}

static void test_pause_holds_resizes_until_nearly_full(void **state) {
    hashtable t = {NULL};
    hashtableReserve(&t, &itemType, 20000);
    hashtableStats stats;
    hashtableStatsRead(&t, &itemType, &stats);
    uint64_t nearly_full = stats.slots * 94 / 100, id = 0;
    hashtableSetPaused(true);
    for (; id < nearly_full; id++) {
        itemAdd(&t, id, 0);
        assert_false(hashtableIsResizing(&t));
    }
    assert_valid(&t);
    for (; !hashtableIsResizing(&t); id++) itemAdd(&t, id, 0);
    assert_true(id <= stats.slots * 96 / 100 + 2);
    uint64_t count = id;
    while (hashtableIsResizing(&t)) itemAdd(&t, id++, 0); /* continues: it is nearly full */
    assert_true(id < count * 3 / 2);
    hashtableStatsRead(&t, &itemType, &stats);
    for (uint64_t gone = 0; gone < id - 10; gone++) drop(&t, gone);
    assert_false(hashtableIsResizing(&t)); /* no shrink */
    assert_valid(&t);
    hashtableSetPaused(false);
    drop(&t, id - 1);
    finishResize(&t);
    assert_true(hashtableBytes(&t) < stats.bytes / 10);
    assert_valid(&t);
    hashtableFree(&t, itemFreeVisit, NULL);
}

static void test_pause_stops_a_running_resize(void **state) {
    hashtable t = {NULL};
    uint64_t id = 0;
    while (id < 30000 || !hashtableIsResizing(&t)) itemAdd(&t, id++, HASHTABLE_VOLATILE);
    hashtableStats before, after;
    hashtableStatsRead(&t, &itemType, &before);
    hashtableSetPaused(true);
    for (int i = 0; i < 200; i++) itemAdd(&t, id++, 0);
    assert_false(hashtableWork(&t, &itemType, 1000));
    hashtableStatsRead(&t, &itemType, &after);
    assert_true(before.resize_position >= 0);
    assert_int_equal(after.resize_position, before.resize_position);
    assert_true(after.resize_slots > after.count);
    hashtableSetPaused(false);
    finishResize(&t);
    hashtableStatsRead(&t, &itemType, &after);
    assert_int_equal(after.resize_position, -1);
    assert_valid(&t);
    hashtableFree(&t, itemFreeVisit, NULL);
}

/* ---- scans ---- */

typedef struct seenIds {
    uint8_t *times;
    hashtable *table;
    uint64_t count;
} seenIds;

static void seeVisit(void *context, void *entry, unsigned flags) {
    seenIds *seen = context;
    seen->times[((item *)entry)->id]++;
    seen->count++;
    (void)flags;
}

/* While the table grows from 2,000 to 100,000 entries and shrinks again, a scan sees those that
 * stay once. */
static void test_scan_is_exact_while_the_size_changes(void **state) {
    hashtable t = {NULL};
    seenIds seen = {.times = memNewArray(uint8_t, 200000)};
    uint64_t cursor = 0, id = 2000;
    fill(&t, 0, 2000, 0);
    do {
        cursor = hashtableScan(&t, &itemType, cursor, seeVisit, &seen);
        for (int i = 0; i < 300 && id < 100000; i++) itemAdd(&t, id++, 0);
    } while (cursor);
    for (uint64_t i = 0; i < 2000; i++) assert_int_equal(seen.times[i], 1);
    for (uint64_t i = 2000; i < id; i++) assert_true(seen.times[i] <= 1);
    while (id < 100000) itemAdd(&t, id++, 0);
    memset(seen.times, 0, 200000);
    uint64_t gone = 2000;
    do {
        cursor = hashtableScan(&t, &itemType, cursor, seeVisit, &seen);
        for (int i = 0; i < 15 && gone < id; i++) drop(&t, gone++);
    } while (cursor);
    assert_true(gone > 50000);
    for (uint64_t i = 0; i < 2000; i++) assert_int_equal(seen.times[i], 1);
    for (uint64_t i = 2000; i < id; i++) assert_true(seen.times[i] <= 1);
    assert_valid(&t);
    hashtableFree(&t, itemFreeVisit, NULL);
    memFree(seen.times);
}

static void test_scan_starts_again_after_a_large_shrink(void **state) {
    hashtable t = {NULL};
    seenIds seen = {.times = memNewArray(uint8_t, 50000)};
    uint64_t cursor = 0, calls = 0;
    fill(&t, 0, 50000, 0);
    while (seen.count < 25000) cursor = hashtableScan(&t, &itemType, cursor, seeVisit, &seen);
    for (uint64_t id = 100; id < 50000; id++) drop(&t, id);
    finishResize(&t);
    for (; cursor; calls++) cursor = hashtableScan(&t, &itemType, cursor, seeVisit, &seen);
    assert_true(calls < 200);
    for (uint64_t id = 0; id < 100; id++) assert_in_range(seen.times[id], 1, 2);
    hashtableFree(&t, itemFreeVisit, NULL);
    memFree(seen.times);
}

static void test_scan_accepts_any_cursor_and_ends(void **state) {
    testSeed(__func__);
    hashtable t = {NULL};
    seenIds seen = {.times = memNewArray(uint8_t, 20000)};
    for (int size = 1; size < 20000; size = size * 3 + 1) {
        fill(&t, 0, (uint64_t)size, 0);
        for (int round = 0; round < 300; round++) {
            uint64_t cursor = randomNext() >> randomUniform(64);
            uint64_t next = hashtableScan(&t, &itemType, cursor, seeVisit, &seen);
            assert_true(next < 1ull << HASHTABLE_CURSOR_BITS);
            hashtableScanVolatile(&t, &itemType, cursor, seeVisit, &seen);
        }
        uint64_t calls = 0, cursor = randomNext() >> 25 | 1;
        do {
            cursor = hashtableScan(&t, &itemType, cursor, seeVisit, &seen);
            calls++;
        } while (cursor && calls < 1ull << 22);
        assert_int_equal(cursor, 0);
        hashtableFree(&t, itemFreeVisit, NULL);
    }
    memFree(seen.times);
}

/* The longest probes of a table, in buckets. */
static unsigned longestProbe(const hashtable *t) {
    hashtableStats stats;
    unsigned longest = 0;
    hashtableStatsRead(t, &itemType, &stats);
    for (unsigned i = 0; i < HASHTABLE_PROBES_MAX; i++) {
        if (stats.probes[i]) longest = i + 1;
    }
    return longest;
}

static void deleteVisit(void *context, void *entry, unsigned flags) {
    seenIds *seen = context;
    drop(seen->table, ((item *)entry)->id);
    seen->count++;
    (void)flags;
}

static void copyVisit(void *context, void *entry, unsigned flags) {
    seenIds *seen = context;
    hashtableInsert(seen->table, &itemType, itemHash(((item *)entry)->id), entry, flags);
    seen->count++;
}

/* Runs are longer than in scan order, but not by orders of magnitude. */
static void copyInOrderOfNextEntries(const hashtable *t, hashtable *copy) {
    seenIds seen = {.table = copy};
    void *entries[20];
    uint64_t position = 0, longest = 0;
    for (size_t n;
         (n = hashtableNextEntries(t, &itemType, &position, entries, COUNT_OF(entries)));) {
        for (size_t i = 0; i < n; i++) copyVisit(&seen, entries[i], 0);
        if (longestProbe(copy) > longest) longest = longestProbe(copy);
    }
    assert_int_equal(seen.count, hashtableCount(t));
    assert_valid(copy);
    assert_true(longest < HASHTABLE_PROBES_MAX);
}

/* In plain hash order both would pile entries up at one end and make runs of thousands of
 * buckets. */
static void test_deleting_and_copying_in_scan_order_keep_runs_short(void **state) {
    hashtable t = {NULL}, copy = {NULL};
    seenIds seen = {.table = &copy};
    uint64_t calls = 0;
    fill(&t, 0, 60000, 0);
    uint64_t cursor = 0;
    do {
        cursor = hashtableScan(&t, &itemType, cursor, copyVisit, &seen);
        if (++calls % 20 == 0) assert_true(longestProbe(&copy) < 30);
    } while (cursor);
    assert_int_equal(hashtableCount(&copy), 60000);
    assert_valid(&copy);
    hashtableFree(&copy, NULL, NULL);
    copyInOrderOfNextEntries(&t, &copy);
    hashtableFree(&copy, NULL, NULL);
    seen = (seenIds){.table = &t};
    do {
        cursor = hashtableScan(&t, &itemType, cursor, deleteVisit, &seen);
        if (++calls % 20 == 0) assert_true(longestProbe(&t) < 30);
    } while (cursor);
    assert_int_equal(seen.count, 60000);
    assert_null(t.body);
}

/* What a scan that deletes what it gets has seen. */
typedef struct scanCounts {
    hashtable *table;
    uint64_t calls, empty, most, here, all;
} scanCounts;

static void deleteCounted(void *context, void *entry, unsigned flags) {
    (void)flags;
    scanCounts *c = context;
    c->here++;
    assert_true(hashtableDeleteEntry(c->table, &numberType, numberHashOf(entry), entry));
}

/* One call; returns the next cursor. */
static uint64_t scanDeleting(scanCounts *c, uint64_t cursor) {
    c->here = 0;
    cursor = hashtableScan(c->table, &numberType, cursor, deleteCounted, c);
    c->calls++;
    c->empty += c->here == 0;
    c->all += c->here;
    if (c->here > c->most) c->most = c->here;
    return cursor;
}

static void fillNumbers(hashtable *t, uint64_t from, uint64_t to) {
    for (uint64_t id = from; id < to; id++)
        hashtableInsert(t, &numberType, itemHash(id), numberOf(id), 0);
}

static void test_a_scan_that_deletes_returns_a_few_entries_a_call(void **state) {
    enum { COUNT = 100000 };
    hashtable t = {NULL};
    scanCounts c = {.table = &t};
    fillNumbers(&t, 0, COUNT);
    for (uint64_t cursor = 0; (cursor = scanDeleting(&c, cursor)) != 0;) {}
    assert_int_equal(c.all, COUNT);
    assert_null(t.body);
    assert_in_range(c.most, 8, 40);
    assert_in_range(c.calls, COUNT / 16, COUNT / 4);
    assert_in_range(c.empty, 0, c.calls / 100);
}

/* Its blocks are large parts of the table: emptied one after the other, they must not make the
 * table shrink so far that the rest becomes runs of thousands of buckets. */
static void test_an_old_cursor_that_deletes_keeps_runs_short(void **state) {
    enum { COUNT = 100000 };
    static const uint64_t starts[] = {12, 30, 100, 1000, 10000};
    for (size_t i = 0; i < COUNT_OF(starts); i++) {
        hashtable t = {NULL};
        scanCounts c = {.table = &t};
        hashtableStats stats;
        fillNumbers(&t, 0, starts[i]);
        uint64_t cursor = scanDeleting(&c, 0);
        assert_int_not_equal(cursor, 0);
        fillNumbers(&t, starts[i], COUNT);
        c = (scanCounts){.table = &t};
        while ((cursor = scanDeleting(&c, cursor)) != 0) {
            if (c.calls % 1000) continue;
            hashtableStatsRead(&t, &numberType, &stats);
            assert_int_equal(stats.probes[HASHTABLE_PROBES_MAX - 1], 0);
        }
        /* A bucket's share of the hashes: its words and those that are up to 16 buckets from
         * home. */
        assert_in_range(c.most, 1, 160);
        assert_in_range(c.empty, 0, c.calls / 50);
        assert_null(hashtableVerify(&t, &numberType));
        hashtableStatsRead(&t, &numberType, &stats);
        assert_int_equal(stats.probes[HASHTABLE_PROBES_MAX - 1], 0);
        /* What remains is deleted in another order, and the table shrinks again. */
        for (uint64_t id = 0; id < COUNT; id++) {
            void *entry = numberOf(id);
            if (id % 100) (void)hashtableDeleteEntry(&t, &numberType, itemHash(id), entry);
        }
        while (hashtableWork(&t, &numberType, 1000)) {}
        assert_null(hashtableVerify(&t, &numberType));
        for (uint64_t id = 0; id < COUNT; id += 100) {
            (void)hashtableDeleteEntry(&t, &numberType, itemHash(id), numberOf(id));
        }
        assert_null(t.body);
    }
}

static void test_iterator_gives_each_entry_once(void **state) {
    for (int kind = 0; kind < HASH_KINDS; kind++) {
        itemHashKind = (hashKind)kind;
        for (uint64_t size = 1; size <= 1200; size = size * 2 + 1) {
            hashtable t = {NULL};
            hashtableIterator it;
            uint8_t times[2000] = {0};
            fill(&t, 0, size, HASHTABLE_MARK);
            hashtableIteratorInit(&it, &t, &itemType);
            for (item *e; (e = hashtableIteratorNext(&it, NULL)) != NULL;) times[e->id]++;
            assert_null(hashtableIteratorNext(&it, NULL));
            hashtableIteratorClear(&it);
            for (uint64_t id = 0; id < size; id++) assert_int_equal(times[id], 1);
            hashtableFree(&t, itemFreeVisit, NULL);
        }
    }
    itemHashKind = HASH_GOOD;
}

/* ---- draws ---- */

typedef void *drawProc(hashtable *t);
static void *drawAny(hashtable *t) { return hashtableRandom(t, &itemType); }
static void *drawVolatile(hashtable *t) { return hashtableRandomVolatile(t, &itemType); }

/* Chi-square of `draws` draws from `count` entries. Its mean is count - 1, its deviation sqrt(2
 * count). */
static void checkUniform(hashtable *t, drawProc *draw, uint64_t count, uint64_t draws) {
    uint64_t *times = memNewArray(uint64_t, 100000), seen = 0;
    for (uint64_t i = 0; i < draws; i++) {
        item *e = draw(t);
        seen += times[e->id]++ == 0;
    }
    double expected = (double)draws / (double)count, chi = 0;
    for (uint64_t id = 0; id < 100000; id++) {
        double off = (double)times[id] - expected;
        if (times[id]) chi += off * off / expected;
    }
    chi += (double)(count - seen) * expected; /* those never drawn */
    assert_true(chi < (double)count + 6 * 1.4143 * (double)count / 10 + 100);
    assert_true(seen > count - count / 100 - 1);
    memFree(times);
}

static void test_random_is_uniform_with_and_without_a_resize(void **state) {
    testSeed(__func__);
    hashtable t = {NULL};
    uint64_t id = 0;
    for (; id < 100; id++) itemAdd(&t, id, 0);
    checkUniform(&t, drawAny, 100, 10000);
    while (id < 2000 || !hashtableIsResizing(&t)) itemAdd(&t, id++, 0);
    checkUniform(&t, drawAny, id, 40 * id);
    finishResize(&t);
    checkUniform(&t, drawAny, id, 40 * id);
    /* Nearly empty, where random tries fail. */
    hashtable thin = {NULL};
    hashtableReserve(&thin, &itemType, 100000);
    fill(&thin, 0, 10, 0);
    checkUniform(&thin, drawAny, 10, 2000);
    hashtableFree(&thin, itemFreeVisit, NULL);
    hashtableFree(&t, itemFreeVisit, NULL);
}

static void test_random_volatile_is_uniform_few_or_many(void **state) {
    testSeed(__func__);
    hashtable t = {NULL};
    for (uint64_t id = 0; id < 20000; id++) itemAdd(&t, id, id % 100 == 0 ? HASHTABLE_VOLATILE : 0);
    checkUniform(&t, drawVolatile, 200, 20000);
    hashtableFree(&t, itemFreeVisit, NULL);
    for (uint64_t id = 0; id < 2000; id++) itemAdd(&t, id, id % 2 == 0 ? HASHTABLE_VOLATILE : 0);
    checkUniform(&t, drawVolatile, 1000, 40000);
    hashtableFree(&t, itemFreeVisit, NULL);
    for (uint64_t id = 0; id < 50; id++) itemAdd(&t, id, id % 5 == 0 ? HASHTABLE_VOLATILE : 0);
    checkUniform(&t, drawVolatile, 10, 2000);
    hashtableFree(&t, itemFreeVisit, NULL);
}

static void test_pop_empties_the_table(void **state) {
    testSeed(__func__);
    hashtable t = {NULL};
    uint8_t times[3000] = {0};
    fill(&t, 0, 3000, 0);
    for (item *e; (e = hashtablePop(&t, &itemType)) != NULL; memFree(e)) times[e->id]++;
    for (int id = 0; id < 3000; id++) assert_int_equal(times[id], 1);
    assert_null(t.body);
}

/* ---- volatile entries ---- */

static void test_few_volatile_entries_are_found_in_few_calls(void **state) {
    hashtable t = {NULL};
    seenIds seen = {.times = memNewArray(uint8_t, 200000)};
    fill(&t, 0, 200000, 0);
    size_t without = hashtableBytes(&t);
    for (uint64_t id = 0; id < 200000; id += 2000) {
        assert_true(hashtableSetFlags(&t, itemHash(id), itemFind(&t, id), HASHTABLE_VOLATILE));
    }
    assert_int_equal(hashtableVolatileCount(&t), 100);
    assert_true(hashtableBytes(&t) < without + without / 20);
    uint64_t cursor = 0, calls = 0;
    do {
        cursor = hashtableScanVolatile(&t, &itemType, cursor, seeVisit, &seen);
        calls++;
    } while (cursor);
    assert_int_equal(seen.count, 100);
    assert_true(calls <= 101);
    for (uint64_t id = 0; id < 200000; id++) assert_int_equal(seen.times[id], id % 2000 == 0);
    void *out[100];
    assert_int_equal(hashtableSampleVolatile(&t, &itemType, out, 100), 100);
    hashtableFree(&t, itemFreeVisit, NULL);
    memFree(seen.times);
}

static void countEntries(void *context, void *entry, unsigned flags) {
    (void)entry, (void)flags;
    ++*(uint64_t *)context;
}

/* The scan began when whole blocks had few of them. */
static void test_entries_that_become_volatile_come_a_few_a_call(void **state) {
    enum { COUNT = 30000 };
    hashtable t = {NULL};
    fillNumbers(&t, 0, COUNT);
    for (uint64_t id = 0; id < 20; id++)
        hashtableSetFlags(&t, itemHash(id), numberOf(id), HASHTABLE_VOLATILE);
    uint64_t seen = 0, cursor = hashtableScanVolatile(&t, &numberType, 0, countEntries, &seen);
    assert_int_not_equal(cursor, 0);
    for (uint64_t id = 20; id < COUNT; id++)
        hashtableSetFlags(&t, itemHash(id), numberOf(id), HASHTABLE_VOLATILE);
    uint64_t all = 0;
    while (cursor) {
        seen = 0;
        cursor = hashtableScanVolatile(&t, &numberType, cursor, countEntries, &seen);
        assert_in_range(seen, 0, 40);
        all += seen;
    }
    assert_in_range(all, COUNT / 4, COUNT);
    hashtableFree(&t, NULL, NULL);
}

/* Expiry of all entries visits and deletes; it must not produce runs. */
static void test_deleting_all_volatile_entries_in_walk_order(void **state) {
    hashtable t = {NULL};
    seenIds seen = {.table = &t};
    fill(&t, 0, 40000, HASHTABLE_VOLATILE);
    fill(&t, 40000, 42000, 0);
    uint64_t calls = 0;
    while (hashtableVolatileCount(&t) > 0) {
        uint64_t cursor = 0;
        do {
            cursor = hashtableScanVolatile(&t, &itemType, cursor, deleteVisit, &seen);
            if (++calls % 50 == 0) assert_true(longestProbe(&t) < 30);
        } while (cursor);
        assert_true(calls < 100000);
    }
    assert_int_equal(seen.count, 40000);
    assert_int_equal(hashtableCount(&t), 2000);
    assert_valid(&t);
    hashtableFree(&t, itemFreeVisit, NULL);
}

static void test_tables_without_volatile_entries_use_no_memory_for_them(void **state) {
    hashtable t = {NULL};
    fill(&t, 0, 30000, 0);
    finishResize(&t);
    size_t bytes = hashtableBytes(&t);
    hashtableSetFlags(&t, itemHash(5), itemFind(&t, 5), HASHTABLE_VOLATILE);
    assert_true(hashtableBytes(&t) > bytes);
    hashtableSetFlags(&t, itemHash(5), itemFind(&t, 5), 0);
    while (!hashtableIsResizing(&t)) itemAdd(&t, 30000 + hashtableCount(&t), 0);
    finishResize(&t);
    assert_null(tableAsBig(&t)->volatiles);
    hashtableFree(&t, itemFreeVisit, NULL);
}

/* ---- the rest ---- */

static void test_stats_add_up(void **state) {
    hashtable t = {NULL};
    for (uint64_t size = 5; size < 100000; size *= 7) {
        fill(&t, 0, size, 0);
        hashtableStats stats;
        uint64_t sum = 0;
        hashtableStatsRead(&t, &itemType, &stats);
        for (int i = 0; i < HASHTABLE_PROBES_MAX; i++) sum += stats.probes[i];
        assert_int_equal(sum, size);
        assert_int_equal(stats.count, size);
        assert_true(stats.slots <= stats.buckets * 8);
        assert_true(stats.probes[0] > size / 4);
        assert_int_equal(stats.bytes, hashtableBytes(&t));
        hashtableFree(&t, itemFreeVisit, NULL);
    }
}

/* Many entries of equal hash: a run that grows; the table takes notice but does not lose its
 * measure. */
static void test_skewed_hashes_use_bounded_memory(void **state) {
    hashtable t = {NULL};
    itemHashKind = HASH_ALL_EQUAL;
    fill(&t, 0, 3000, 0);
    assert_valid(&t);
    assert_true(hashtableBytes(&t) < 3000 * 24);
    for (uint64_t id = 0; id < 3000; id += 7) assert_int_equal(itemFind(&t, id)->id, id);
    hashtableFree(&t, itemFreeVisit, NULL);
    itemHashKind = HASH_GOOD;
}

static void test_verify_sees_damage(void **state) {
    hashtable t = {NULL};
    fill(&t, 0, 5000, HASHTABLE_VOLATILE);
    finishResize(&t);
    assert_valid(&t);
    tableBig *g = tableAsBig(&t);
    uint64_t *used = NULL, *free = NULL;
    for (uint64_t i = 0; i < g->allocated * 8 && !used; i++) {
        uint64_t *word = &g->buckets[i / 8].word[i % 8];
        if (!*word && i < 800) free = word;
        if (*word && i % 8 == 0 && i > 1600) used = word;
    }
    uint64_t kept = *used;
    *used ^= 1ull << 60; /* the tag */
    assert_non_null(hashtableVerify(&t, &itemType));
    *used = kept & ~1ull; /* the flag that is counted */
    assert_non_null(hashtableVerify(&t, &itemType));
    *used = kept | 2; /* an overflow bit outside the last word */
    assert_non_null(hashtableVerify(&t, &itemType));
    *used = 0;
    assert_non_null(hashtableVerify(&t, &itemType));
    *free = kept; /* in a bucket before its home */
    assert_non_null(hashtableVerify(&t, &itemType));
    *free = 0;
    *used = kept;
    assert_valid(&t);
    g->count++;
    assert_non_null(hashtableVerify(&t, &itemType));
    g->count--;
    hashtableFree(&t, itemFreeVisit, NULL);
}

/* For the tests after one that failed. */
static int resume(void **state) {
    hashtableSetPaused(false);
    return 0;
}

/* ---- entries with a mark ---- */

/* Entries are numbers: half of them marked, half in the shape of addresses above 2^47, as arm64 has
 * them. */
static void *numberEntry(uint64_t i) {
    uint64_t high = UINT64_C(1) << 47 | i << 3;
    return (void *)(uintptr_t)(i % 2 ? high | HASHTABLE_MARK : high);
}
static uint64_t numberHash(const void *entry) { return itemHash((uintptr_t)entry >> 2); }
static bool numberMatches(const void *entry, const void *key, size_t len) {
    (void)len; /* keys are entries */
    return entry == key;
}
static const hashtableType markedType = {
    .hash_of = numberHash, .match = numberMatches, .entry_mark = HASHTABLE_MARK};

static void countVisited(void *context, void *entry, unsigned flags) {
    uint64_t word = (uintptr_t)entry | (flags & HASHTABLE_MARK), i = word << 17 >> 20;
    assert_ptr_equal(numberEntry(i), (void *)(uintptr_t)word);
    ++*(uint64_t *)context;
}

static void test_marked_entries_and_addresses_above_2_to_the_47(void **state) {
    (void)state;
    const uint64_t count = 5000;
    hashtable t = {NULL};
    for (uint64_t i = 0; i < count; i++) {
        void *entry = numberEntry(i);
        hashtableInsert(&t, &markedType, numberHash(entry), entry, 0);
    }
    assert_null(hashtableVerify(&t, &markedType));
    for (uint64_t i = 0; i < count; i++) {
        void *entry = numberEntry(i), *other = (void *)((uintptr_t)entry ^ HASHTABLE_MARK);
        assert_ptr_equal(hashtableFind(&t, &markedType, numberHash(entry), entry, 1), entry);
        assert_null(hashtableFind(&t, &markedType, numberHash(other), other, 1));
        assert_false(hashtableDeleteEntry(&t, &markedType, numberHash(entry), other));
        /* The mark is replaced, too. */
        assert_true(hashtableReplace(&t, &markedType, numberHash(entry), entry, other));
        assert_ptr_equal(hashtableFind(&t, &markedType, numberHash(entry), other, 1), other);
        assert_true(hashtableReplace(&t, &markedType, numberHash(entry), other, entry));
    }
    uint64_t visited = 0, cursor = 0, iterated = 0;
    do { cursor = hashtableScan(&t, &markedType, cursor, countVisited, &visited); } while (cursor);
    assert_int_equal(visited, count);
    hashtableIterator it;
    hashtableIteratorInit(&it, &t, &markedType);
    for (const void *entry; (entry = hashtableIteratorNext(&it, NULL)); iterated++)
        assert_ptr_equal(hashtableFind(&t, &markedType, numberHash(entry), entry, 1), entry);
    hashtableIteratorClear(&it);
    assert_int_equal(iterated, count);
    for (uint64_t left = count; left > count / 2; left--) {
        const void *entry = hashtablePop(&t, &markedType);
        assert_null(hashtableFind(&t, &markedType, numberHash(entry), entry, 1));
    }
    visited = 0;
    hashtableFree(&t, countVisited, &visited);
    assert_int_equal(visited, count / 2);
}

static void test_addresses_of_more_than_48_bits_cannot_be_held(void **state) {
    (void)state;
    int64_t here = 0;
    assert_true(hashtableCanHold(&here));
    assert_true(hashtableCanHold((void *)(uintptr_t)0xfffffffffff8));
    assert_false(hashtableCanHold((void *)(uintptr_t)0x1000000000000));
    assert_false(hashtableCanHold((char *)&here + 4));
    assert_false(hashtableCanHold(NULL));
}

int test_hashtable(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_all_operations_on_an_empty_table),
        cmocka_unit_test(test_an_insert_at_the_position_of_an_absent_key),
        cmocka_unit_test(test_integers_serve_as_entries),
        cmocka_unit_test(test_tag_zero_and_all_ones_are_tags_like_others),
        cmocka_unit_test(test_compact_moves_every_block_of_a_table),
        cmocka_unit_test(test_compact_joins_the_arrays_of_many_tables),
        cmocka_unit_test(test_memory_follows_the_count_and_is_all_freed),
        cmocka_unit_test(test_used_memory_counts_the_whole_table),
#ifndef HOSTILE_BUILD
        cmocka_unit_test(test_bytes_per_entry_hardly_depend_on_the_count),
        cmocka_unit_test(test_reserve_makes_a_resize_unnecessary),
#endif
        cmocka_unit_test(test_reserve_with_entries_moves_them),
        cmocka_unit_test_teardown(test_pause_holds_resizes_until_nearly_full, resume),
        cmocka_unit_test_teardown(test_pause_stops_a_running_resize, resume),
        cmocka_unit_test(test_scan_is_exact_while_the_size_changes),
        cmocka_unit_test(test_scan_starts_again_after_a_large_shrink),
        cmocka_unit_test(test_scan_accepts_any_cursor_and_ends),
        cmocka_unit_test(test_deleting_and_copying_in_scan_order_keep_runs_short),
        cmocka_unit_test(test_a_scan_that_deletes_returns_a_few_entries_a_call),
        cmocka_unit_test(test_an_old_cursor_that_deletes_keeps_runs_short),
        cmocka_unit_test(test_iterator_gives_each_entry_once),
        cmocka_unit_test(test_random_is_uniform_with_and_without_a_resize),
        cmocka_unit_test(test_random_volatile_is_uniform_few_or_many),
        cmocka_unit_test(test_pop_empties_the_table),
        cmocka_unit_test(test_few_volatile_entries_are_found_in_few_calls),
        cmocka_unit_test(test_entries_that_become_volatile_come_a_few_a_call),
        cmocka_unit_test(test_deleting_all_volatile_entries_in_walk_order),
        cmocka_unit_test(test_tables_without_volatile_entries_use_no_memory_for_them),
        cmocka_unit_test(test_stats_add_up),
        cmocka_unit_test(test_skewed_hashes_use_bounded_memory),
        cmocka_unit_test(test_verify_sees_damage),
        cmocka_unit_test(test_marked_entries_and_addresses_above_2_to_the_47),
        cmocka_unit_test(test_addresses_of_more_than_48_bits_cannot_be_held),
    };
    return cmocka_run_group_tests_name("hashtable", tests, NULL, NULL);
}
