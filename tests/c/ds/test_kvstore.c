/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Tests of ds/kvstore. */
#include "ds_test.h"

#include <string.h>

#include "base/alloc.h"
#include "base/bytes.h"
#include "base/random.h"
#include "ds/kvstore.h"

#define IDS 20000

/* A store and what should be in it. Ids find their slot by their low bits, shared out unevenly. */
typedef struct model {
    kvstore *kv;
    item *items[IDS];
    uint8_t flags[IDS];
    uint8_t times[IDS]; /* how often a walk returned them */
} model;

static int slotOf(const model *m, uint64_t id) {
    return (int)(id * id % (uint64_t)kvstoreSlots(m->kv));
}

static void *find(const model *m, uint64_t id, hashtablePosition *position) {
    return hashtableFindPosition(kvstoreTable(m->kv, slotOf(m, id)), &itemType, itemHash(id), &id,
                                 sizeof(id), position);
}

static void add(model *m, uint64_t id, unsigned flags) {
    hashtablePosition position;
    assert_null(find(m, id, &position));
    m->items[id] = itemNew(id);
    m->flags[id] = (uint8_t)flags;
    kvstoreInsertAt(m->kv, slotOf(m, id), &position, m->items[id], flags);
}

static void drop(model *m, uint64_t id) {
    hashtablePosition position;
    item *e = find(m, id, &position);
    assert_ptr_equal(e, m->items[id]);
    assert_ptr_equal(kvstoreDeleteAt(m->kv, slotOf(m, id), &position), e);
    memFree(e);
    m->items[id] = NULL;
}

static model *modelNew(unsigned slot_bits) {
    model *m = memNew(model);
    m->kv = kvstoreNew(&itemType, slot_bits);
    return m;
}

static void modelFree(model *m) {
    kvstoreFree(m->kv, itemFreeVisit, NULL);
    memFree(m);
}

static void assertKvstoreValid(const kvstore *kv) {
    assert_string_equal(soundOr(kvstoreVerify(kv)), "sound");
}

/* The counts, and every slot question, against the model. */
static void compare(const model *m) {
    static uint64_t counts[16384], volatiles[16384];
    memset(counts, 0, sizeof(counts));
    memset(volatiles, 0, sizeof(volatiles));
    for (uint64_t id = 0; id < IDS; id++) {
        if (!m->items[id]) continue;
        counts[slotOf(m, id)]++;
        volatiles[slotOf(m, id)] += m->flags[id] & HASHTABLE_VOLATILE;
    }
    uint64_t sum = 0, volatile_sum = 0;
    int next = -1, slots = kvstoreSlots(m->kv);
    for (int slot = 0; slot < slots; slot++) {
        assert_int_equal(kvstoreCountOf(m->kv, slot), counts[slot]);
        assert_int_equal(kvstoreVolatileCountOf(m->kv, slot), volatiles[slot]);
        assert_int_equal(kvstoreTable(m->kv, slot)->body == NULL, counts[slot] == 0);
        if (!kvstoreIsVisible(m->kv, slot)) continue;
        if (counts[slot]) assert_int_equal(kvstoreSlotOfRank(m->kv, sum), slot);
        if (counts[slot]) assert_int_equal(kvstoreSlotOfRank(m->kv, sum + counts[slot] - 1), slot);
        sum += counts[slot];
        volatile_sum += volatiles[slot];
    }
    for (int slot = slots - 1; slot >= 0; slot--) {
        if (counts[slot] && kvstoreIsVisible(m->kv, slot)) next = slot;
        assert_int_equal(kvstoreNextSlot(m->kv, slot), next);
    }
    assert_int_equal(kvstoreCount(m->kv), sum);
    assert_int_equal(kvstoreVolatileCount(m->kv), volatile_sum);
    assertKvstoreValid(m->kv);
}

static void timesVisit(void *context, void *entry, unsigned flags) {
    model *m = context;
    uint64_t id = ((item *)entry)->id;
    assert_ptr_equal(m->items[id], entry);
    assert_int_equal(flags, m->flags[id]);
    m->times[id]++;
}

/* What a complete scan of one slot, or of all, returns. */
static void scanAll(model *m, int only) {
    uint64_t cursor = 0;
    memset(m->times, 0, sizeof(m->times));
    do {
        cursor = kvstoreScan(m->kv, cursor, only, timesVisit, m);
        assert_true(cursor < 1ull << 53);
        if (only >= 0 && cursor) assert_int_equal(kvstoreCursorSlot(m->kv, cursor), only);
    } while (cursor);
}

static void iterateAll(model *m, int only, bool hidden) {
    kvstoreIterator it;
    unsigned flags;
    memset(m->times, 0, sizeof(m->times));
    kvstoreIteratorInit(&it, m->kv, only, hidden);
    for (item *e; (e = kvstoreIteratorNext(&it, &flags)) != NULL;) {
        timesVisit(m, e, flags);
        assert_int_equal(it.slot, slotOf(m, e->id));
    }
    assert_null(kvstoreIteratorNext(&it, NULL));
    kvstoreIteratorClear(&it);
}

/* Each entry was seen once if its slot was to be walked, else never. */
static void checkTimes(const model *m, int only, bool hidden) {
    for (uint64_t id = 0; id < IDS; id++) {
        int slot = slotOf(m, id);
        bool wanted =
            m->items[id] && (only < 0 || slot == only) && (hidden || kvstoreIsVisible(m->kv, slot));
        assert_int_equal(m->times[id], wanted);
    }
}

static void checkWalks(model *m) {
    int slot = (int)randomUniform((uint64_t)kvstoreSlots(m->kv));
    scanAll(m, -1);
    checkTimes(m, -1, false);
    scanAll(m, slot);
    checkTimes(m, slot, false);
    iterateAll(m, -1, false);
    checkTimes(m, -1, false);
    iterateAll(m, -1, true);
    checkTimes(m, -1, true);
    iterateAll(m, slot, false);
    checkTimes(m, slot, true);
    uint64_t cursor = 0;
    memset(m->times, 0, sizeof(m->times));
    do { cursor = kvstoreScanVolatile(m->kv, cursor, timesVisit, m); } while (cursor);
    for (uint64_t id = 0; id < IDS; id++) {
        assert_int_equal(m->times[id], m->items[id] && (m->flags[id] & HASHTABLE_VOLATILE) &&
                                           kvstoreIsVisible(m->kv, slotOf(m, id)));
    }
}

static void checkDraws(const model *m) {
    int slot;
    item *e = kvstoreRandom(m->kv, &slot);
    assert_int_equal(e == NULL, kvstoreCount(m->kv) == 0);
    if (e) assert_ptr_equal(m->items[e->id], e);
    if (e) assert_int_equal(slotOf(m, e->id), slot);
    if (e) assert_true(kvstoreIsVisible(m->kv, slot));
    e = kvstoreRandomVolatile(m->kv, &slot);
    assert_int_equal(e == NULL, kvstoreVolatileCount(m->kv) == 0);
    if (e) assert_true(m->flags[e->id] & HASHTABLE_VOLATILE);
    if (e) assert_int_equal(slotOf(m, e->id), slot);
    void *out[8];
    size_t found = kvstoreSample(m->kv, out, COUNT_OF(out));
    assert_int_equal(found == 0, kvstoreCount(m->kv) == 0);
    for (size_t i = 0; i < found; i++) {
        e = out[i];
        assert_ptr_equal(m->items[e->id], e);
        assert_true(kvstoreIsVisible(m->kv, slotOf(m, e->id)));
    }
    found = kvstoreSampleVolatile(m->kv, out, COUNT_OF(out));
    assert_int_equal(found == 0, kvstoreVolatileCount(m->kv) == 0);
    for (size_t i = 0; i < found; i++) {
        e = out[i];
        assert_ptr_equal(m->items[e->id], e);
        assert_true(m->flags[e->id] & HASHTABLE_VOLATILE);
    }
}

static void changeFlags(model *m, uint64_t id) {
    unsigned flags = (unsigned)randomUniform(2) * HASHTABLE_VOLATILE;
    hashtablePosition position;
    m->flags[id] = (uint8_t)flags;
    assert_ptr_equal(find(m, id, &position), m->items[id]);
    kvstoreSetFlagsAt(m->kv, slotOf(m, id), &position, flags);
}

/* Another way to do what add() and drop() do. */
static void changeByPosition(model *m, uint64_t id) {
    int slot = slotOf(m, id);
    uint64_t hash = itemHash(id);
    hashtablePosition position;
    item *e = find(m, id, &position);
    assert_ptr_equal(e, m->items[id]);
    if (!e) {
        m->items[id] = itemNew(id);
        m->flags[id] = 0;
        kvstoreInsertAt(m->kv, slot, &position, m->items[id], 0);
        return;
    }
    if (randomUniform(3) == 0) {
        m->items[id] = itemNew(id);
        assert_true(kvstoreReplace(m->kv, slot, hash, e, m->items[id]));
    } else {
        m->items[id] = NULL;
        if (randomUniform(2)) {
            assert_ptr_equal(kvstoreDeleteAt(m->kv, slot, &position), e);
        } else {
            assert_true(kvstoreDeleteEntry(m->kv, slot, hash, e));
        }
    }
    memFree(e);
}

static void takeSlot(model *m, int slot) {
    for (uint64_t id = 0; id < IDS; id++) {
        if (slotOf(m, id) == slot) m->items[id] = NULL;
    }
    hashtable taken = kvstoreTakeSlot(m->kv, slot);
    hashtableFree(&taken, itemFreeVisit, NULL);
}

static void runModel(unsigned slot_bits, uint64_t id_max, uint64_t steps) {
    model *m = modelNew(slot_bits);
    uint64_t slots = (uint64_t)kvstoreSlots(m->kv);
    for (uint64_t step = 0; step < steps; step++) {
        uint64_t id = randomUniform(id_max), what = randomUniform(1000);
        hashtablePosition position;
        assert_ptr_equal(find(m, id, &position), m->items[id]);
        if (what < 550) {
            if (!m->items[id]) add(m, id, (unsigned)randomUniform(2));
        } else if (what < 750) {
            if (m->items[id]) drop(m, id);
        } else if (what < 850) {
            changeByPosition(m, id);
        } else if (what < 950) {
            if (m->items[id]) changeFlags(m, id);
        } else if (what < 990) {
            checkDraws(m);
        } else if (what < 995) {
            kvstoreSetVisible(m->kv, (int)randomUniform(slots), randomUniform(3) > 0);
        } else if (what < 998) {
            kvstoreWork(m->kv, 50);
        } else if (slots > 1) {
            takeSlot(m, (int)randomUniform(slots));
        }
        if (step % (steps / 8) == 0) compare(m);
        if (step % (steps / 8) == 0) checkWalks(m);
    }
    compare(m);
    for (uint64_t id = 0; id < IDS; id++) {
        if (m->items[id]) drop(m, id);
    }
    compare(m);
    modelFree(m);
}

static void test_agrees_with_a_model(void **state) {
    testSeed(__func__);
    size_t before = memUsed();
    for (uint64_t round = 0; round < testScale(); round++) {
        runModel(0, 500, 8000);
        runModel(0, IDS, 60000);
        runModel(2, IDS, 60000);
        runModel(6, IDS, 60000);
        runModel(14, IDS, 60000);
    }
    assert_int_equal(memUsed(), before);
}

static void test_empty_cluster_store_costs_a_quarter_of_a_megabyte(void **state) {
    size_t before = memUsed();
    kvstore *kv = kvstoreNew(&itemType, 14);
    assert_true(memUsed() - before < 270 * 1024);
    assert_int_equal(memUsed() - before, kvstoreBytes(kv));
    assert_int_equal(kvstoreScan(kv, 12345, -1, itemFreeVisit, NULL), 0);
    assert_null(kvstoreRandom(kv, NULL));
    assert_int_equal(kvstoreNextSlot(kv, 0), -1);
    assert_false(kvstoreWork(kv, 10));
    kvstoreFree(kv, itemFreeVisit, NULL);
    kvstoreFree(NULL, NULL, NULL);
    assert_int_equal(memUsed(), before);
}

static uint64_t numberHashOf(const void *entry) { return itemHash((uintptr_t)entry / 8 - 1); }

static bool numberIs(const void *entry, const void *key, size_t len) {
    (void)len;
    return entry == key;
}

static void test_bytes_are_what_the_allocator_gave(void **state) {
    static const hashtableType numbers = {.hash_of = numberHashOf, .match = numberIs};
    model *m = memNew(model);
    m->kv = kvstoreNew(&numbers, 14);
    size_t before = memUsed() - kvstoreBytes(m->kv);
    for (uint64_t id = 0; id < IDS; id++) {
        void *number = (void *)(8 * id + 8);
        hashtablePosition position;
        assert_null(hashtableFindPosition(kvstoreTable(m->kv, slotOf(m, id)), &numbers,
                                          itemHash(id), number, 0, &position));
        kvstoreInsertAt(m->kv, slotOf(m, id), &position, number, id % 3 ? 0 : HASHTABLE_VOLATILE);
    }
    kvstoreSetVisible(m->kv, 3, false);
    assert_int_equal(memUsed() - before, kvstoreBytes(m->kv));
    size_t sum = 0;
    for (int slot = 0; slot < kvstoreSlots(m->kv); slot++)
        sum += hashtableBytes(kvstoreTable(m->kv, slot));
    assert_true(sum < kvstoreBytes(m->kv));
    assert_true(sum > kvstoreBytes(m->kv) - 500000);
    kvstoreFree(m->kv, NULL, NULL);
    memFree(m);
}

static void countVisit(void *context, void *entry, unsigned flags) {
    (void)entry, (void)flags;
    ++*(uint64_t *)context;
}

static void test_scan_continues_when_its_slot_is_removed(void **state) {
    model *m = modelNew(2);
    for (uint64_t id = 0; id < 4000; id++) add(m, id, 0);
    uint64_t cursor = kvstoreScan(m->kv, 0, -1, timesVisit, m);
    assert_int_equal(kvstoreCursorSlot(m->kv, cursor), 0);
    takeSlot(m, 0);
    while (cursor) cursor = kvstoreScan(m->kv, cursor, -1, timesVisit, m);
    for (uint64_t id = 0; id < 4000; id++) {
        if (m->items[id]) assert_int_equal(m->times[id], 1);
    }
    modelFree(m);
}

/* The tables of slots, of which every second one is emptied. */
static void test_a_scan_moves_the_table_of_every_slot_once(void **state) {
    model *m = modelNew(8);
    for (uint64_t id = 0; id < IDS; id++) add(m, id, id % 3 ? 0 : HASHTABLE_VOLATILE);
    for (uint64_t id = 0; id < IDS; id++) {
        if (slotOf(m, id) % 2) drop(m, id);
    }
    int tables = 0, with_entries = 0, moved = 0;
    for (int slot = 0; slot < kvstoreSlots(m->kv); slot++)
        with_entries += kvstoreCountOf(m->kv, slot) > 0;
    size_t sparse = memSparseBytes();
    uint64_t cursor = 0, visited = 0;
    do {
        int n = kvstoreCompactAt(m->kv, cursor);
        tables += n >= 0;
        moved += n > 0;
        cursor = kvstoreScan(m->kv, cursor, -1, countVisit, &visited);
    } while (cursor);
    assert_int_equal(tables, with_entries);
    assert_int_equal(visited, kvstoreCount(m->kv));
#ifdef USE_JEMALLOC
    assert_in_range(moved, 1, with_entries);
    assert_true(memSparseBytes() < sparse);
#elif defined(HOSTILE_BUILD)
    assert_int_equal(moved, with_entries);
    assert_int_equal(sparse, 0); /* libc does not tell */
#else
    assert_int_equal(moved, 0);
    assert_int_equal(sparse, 0);
#endif
    compare(m);
    modelFree(m);
}

static void test_work_finishes_every_resize(void **state) {
    model *m = modelNew(2);
    uint64_t id = 0;
    while (id < IDS && !(id > 8000 && hashtableIsResizing(kvstoreTable(m->kv, 1)) &&
                         hashtableIsResizing(kvstoreTable(m->kv, 0)))) {
        add(m, id++, 0);
    }
    assert_true(id < IDS);
    hashtableStats stats;
    kvstoreStatsRead(m->kv, &stats);
    assert_int_equal(stats.count, id);
    assert_true(stats.resize_position >= 0);
    while (kvstoreWork(m->kv, 20)) {}
    for (int slot = 0; slot < 4; slot++) {
        assert_false(hashtableIsResizing(kvstoreTable(m->kv, slot)));
    }
    kvstoreStatsRead(m->kv, &stats);
    assert_int_equal(stats.resize_position, -1);
    compare(m);
    modelFree(m);
}

static void test_random_is_uniform_over_uneven_slots(void **state) {
    testSeed(__func__);
    model *m = modelNew(6);
    uint64_t times[1000] = {0};
    for (uint64_t id = 0; id < 1000; id++) add(m, id, 0);
    for (uint64_t i = 0; i < 50000; i++) times[((item *)kvstoreRandom(m->kv, NULL))->id]++;
    double chi = 0;
    for (int id = 0; id < 1000; id++) {
        chi += ((double)times[id] - 50) * ((double)times[id] - 50) / 50;
    }
    assert_true(chi < 1000 + 6 * 44.7); /* mean 999, deviation 44.7 */
    modelFree(m);
}

int test_kvstore(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_agrees_with_a_model),
        cmocka_unit_test(test_empty_cluster_store_costs_a_quarter_of_a_megabyte),
        cmocka_unit_test(test_bytes_are_what_the_allocator_gave),
        cmocka_unit_test(test_scan_continues_when_its_slot_is_removed),
        cmocka_unit_test(test_a_scan_moves_the_table_of_every_slot_once),
        cmocka_unit_test(test_work_finishes_every_resize),
        cmocka_unit_test(test_random_is_uniform_over_uneven_slots),
    };
    return cmocka_run_group_tests_name("kvstore", tests, NULL, NULL);
}
