/* SPDX-License-Identifier: BSD-3-Clause
 *
 * ds/hashtable against a model: an array that says for each id if it is there, and where. Random
 * operations of every kind, resizes and scans woven in, with good and hostile hashes; the
 * checker of invariants runs in between. TEST_SCALE=20 makes it twenty times longer. */
#include "ds_test.h"

#include <stdio.h>
#include <string.h>

#include "base/alloc.h"
#include "base/bytes.h"
#include "base/random.h"
#include "ds/hashtable_inline.h"

typedef struct model {
    hashtable table;
    uint64_t id_max;
    item **items;   /* by id; NULL when absent */
    uint8_t *flags; /* by id */
    uint64_t count, volatile_count;
    uint32_t *seen;   /* by id: number of the last scan that returned it */
    uint32_t *joined; /* by id: number of the scan during which it was added */
    uint32_t scan;    /* number of the scan under way, or of the last one */
    uint64_t cursor;
    bool scanning, delete_seen;
    bool shrunk; /* so much during the scan that it may have begun anew */
    uint64_t count_at_start;
    uint64_t scans_done;
} model;

static void modelInit(model *m, uint64_t id_max) {
    *m = (model){.id_max = id_max};
    m->items = memNewArray(item *, id_max);
    m->flags = memNewArray(uint8_t, id_max);
    m->seen = memNewArray(uint32_t, id_max);
    m->joined = memNewArray(uint32_t, id_max);
}

static void modelClear(model *m) {
    assert_null(m->table.body);
    memFree(m->items);
    memFree(m->flags);
    memFree(m->seen);
    memFree(m->joined);
}

static unsigned randomFlags(void) {
    return (unsigned)randomUniform(4) * 4u % 8u + (unsigned)(randomUniform(3) == 0);
}

static void modelAdd(model *m, uint64_t id) {
    unsigned flags = randomFlags();
    uint64_t hash = itemHash(id);
    item *e = itemNew(id);
    if (randomUniform(2)) {
        hashtablePosition position;
        assert_null(hashtableFindPosition(&m->table, &itemType, hash, &id, sizeof(id), &position));
        hashtableInsertAt(&m->table, &itemType, &position, e, flags);
    } else {
        hashtableInsert(&m->table, &itemType, hash, e, flags);
    }
    m->items[id] = e;
    m->flags[id] = (uint8_t)flags;
    m->joined[id] = m->scan;
    m->count++;
    m->volatile_count += flags & HASHTABLE_VOLATILE;
}

static void modelForget(model *m, uint64_t id) {
    memFree(m->items[id]);
    m->items[id] = NULL;
    m->count--;
    if (m->count < m->count_at_start / 16) m->shrunk = true;
    m->volatile_count -= m->flags[id] & HASHTABLE_VOLATILE;
}

static void modelDelete(model *m, uint64_t id) {
    uint64_t hash = itemHash(id);
    if (randomUniform(3)) {
        assert_ptr_equal(itemDelete(&m->table, id), m->items[id]);
    } else {
        assert_true(hashtableDeleteEntry(&m->table, &itemType, hash, m->items[id]));
        assert_false(hashtableDeleteEntry(&m->table, &itemType, hash, m->items[id]));
    }
    modelForget(m, id);
}

/* New flags, and a move as compaction does it. */
static void modelChange(model *m, uint64_t id) {
    uint64_t hash = itemHash(id);
    unsigned flags = randomFlags();
    hashtablePosition position;
    item *found = hashtableFindPosition(&m->table, &itemType, hash, &id, sizeof(id), &position);
    assert_ptr_equal(found, m->items[id]);
    assert_int_equal(hashtableFlagsAt(&position), m->flags[id]);
    if (randomUniform(2)) {
        hashtableSetFlagsAt(&m->table, &position, flags);
    } else {
        assert_true(hashtableSetFlags(&m->table, hash, found, flags));
    }
    m->volatile_count += flags & HASHTABLE_VOLATILE;
    m->volatile_count -= m->flags[id] & HASHTABLE_VOLATILE;
    m->flags[id] = (uint8_t)flags;
    item *moved = itemNew(id);
    assert_false(hashtableReplace(&m->table, &itemType, hash, moved, found));
    assert_true(hashtableReplace(&m->table, &itemType, hash, found, moved));
    memFree(found);
    m->items[id] = moved;
}

static bool matchId(const void *entry, const void *key, size_t len) {
    (void)len;
    return ((const item *)entry)->id == loadU64(key);
}

static void modelBatchFind(model *m) {
    uint64_t ids[16], hashes[16];
    for (int i = 0; i < 16; i++) {
        ids[i] = randomUniform(m->id_max);
        hashes[i] = itemHash(ids[i]);
        (void)hashtableInlinePrefetch(&m->table, hashes[i]);
    }
    for (int i = 0; i < 16; i++) {
        void *found =
            hashtableInlineFind(&m->table, &itemType, hashes[i], matchId, &ids[i], sizeof(ids[i]));
        assert_ptr_equal(found, m->items[ids[i]]);
        if (!tableIsBig(&m->table)) continue;
        hashtablePosition whole, at;
        (void)hashtableInlineFindPosition(&m->table, &itemType, hashes[i], matchId, &ids[i],
                                          sizeof(ids[i]), &whole);
        tableNear near = hashtableInlineFindNear(tableAsBig(&m->table), &itemType, hashes[i],
                                                 matchId, &ids[i], sizeof(ids[i]), &at);
        assert_ptr_equal(at.home, whole.home);
        assert_int_equal(at.tag, whole.tag);
        assert_true(at.hash == whole.hash);
        if (near == NEAR_UNKNOWN) continue;
        assert_int_equal(near == NEAR_FOUND, found != NULL);
        assert_ptr_equal(at.word, whole.word);
    }
}

static void modelKnows(model *m, const item *e) {
    assert_true(e->id < m->id_max);
    assert_ptr_equal(m->items[e->id], e);
}

static void modelDraw(model *m) {
    item *e = hashtableRandom(&m->table, &itemType);
    assert_int_equal(e == NULL, m->count == 0);
    if (e) modelKnows(m, e);
    e = hashtableRandomVolatile(&m->table, &itemType);
    assert_int_equal(e == NULL, m->volatile_count == 0);
    if (e) {
        modelKnows(m, e);
        assert_true(m->flags[e->id] & HASHTABLE_VOLATILE);
    }
    void *out[10];
    size_t found = hashtableSample(&m->table, &itemType, out, COUNT_OF(out));
    assert_int_equal(found == 0, m->count == 0);
    for (size_t i = 0; i < found; i++) modelKnows(m, out[i]);
    found = hashtableSampleVolatile(&m->table, &itemType, out, COUNT_OF(out));
    assert_int_equal(found == 0, m->volatile_count == 0);
    for (size_t i = 0; i < found; i++) {
        modelKnows(m, out[i]);
        assert_true(m->flags[((item *)out[i])->id] & HASHTABLE_VOLATILE);
        for (size_t k = 0; k < i; k++) assert_ptr_not_equal(out[i], out[k]);
    }
}

static void modelNextEntries(model *m) {
    void *out[20];
    uint64_t position = 0;
    size_t met = 0;
    for (size_t n;
         (n = hashtableNextEntries(&m->table, &itemType, &position, out, COUNT_OF(out))) > 0;
         met += n) {
        for (size_t i = 0; i < n; i++) modelKnows(m, out[i]);
    }
    assert_int_equal(met, m->count);
}

static void scanVisit(void *context, void *entry, unsigned flags) {
    model *m = context;
    uint64_t id = ((item *)entry)->id;
    modelKnows(m, entry);
    assert_int_equal(flags, m->flags[id]);
    if (!m->shrunk) assert_int_not_equal(m->seen[id], m->scan); /* twice */
    m->seen[id] = m->scan;
    if (m->delete_seen && randomUniform(2)) {
        assert_ptr_equal(itemDelete(&m->table, id), entry);
        modelForget(m, id);
    }
}

/* One call of a scan that continues while the table changes. */
static void modelScan(model *m) {
    if (!m->scanning) {
        m->scan++;
        m->cursor = 0;
        m->scanning = true;
        m->delete_seen = randomUniform(8) == 0;
        m->shrunk = false;
        m->count_at_start = m->count;
    }
    m->cursor = hashtableScan(&m->table, &itemType, m->cursor, scanVisit, m);
    assert_true(m->cursor < 1ull << HASHTABLE_CURSOR_BITS);
    if (m->cursor) return;
    for (uint64_t id = 0; id < m->id_max; id++) {
        if (m->items[id] && m->joined[id] != m->scan) assert_int_equal(m->seen[id], m->scan);
    }
    m->scanning = false;
    m->scans_done++;
}

static void volatileVisit(void *context, void *entry, unsigned flags) {
    assert_true(flags & HASHTABLE_VOLATILE);
    (*(uint64_t *)context) += ((item *)entry)->id + 1;
}

/* An undisturbed walk returns every volatile entry once; checked by the sum of their numbers. */
static void modelWalkVolatile(model *m) {
    uint64_t sum = 0, expected = 0, cursor = 0;
    do {
        cursor = hashtableScanVolatile(&m->table, &itemType, cursor, volatileVisit, &sum);
    } while (cursor);
    for (uint64_t id = 0; id < m->id_max; id++) {
        if (m->items[id] && (m->flags[id] & HASHTABLE_VOLATILE)) expected += id + 1;
    }
    assert_int_equal(sum, expected);
}

static void modelIterate(model *m) {
    hashtableIterator it;
    unsigned flags;
    uint64_t count = 0;
    hashtableIteratorInit(&it, &m->table, &itemType);
    for (item *e; (e = hashtableIteratorNext(&it, &flags)) != NULL; count++) {
        modelKnows(m, e);
        assert_int_equal(flags, m->flags[e->id]);
    }
    hashtableIteratorClear(&it);
    assert_int_equal(count, m->count);
}

static void modelStep(model *m, unsigned add_percent) {
    uint64_t id = randomUniform(m->id_max);
    assert_ptr_equal(itemFind(&m->table, id), m->items[id]);
    unsigned what = (unsigned)randomUniform(100);
    if (what < 75) {
        bool add = randomUniform(100) < add_percent;
        if (add && !m->items[id]) modelAdd(m, id);
        if (!add && m->items[id]) modelDelete(m, id);
    } else if (what < 82) {
        if (m->items[id]) modelChange(m, id);
    } else if (what < 86) {
        modelDraw(m);
        if (randomUniform(20) == 0) modelNextEntries(m);
    } else if (what < 88) {
        modelBatchFind(m);
    } else if (what < 89) {
        hashtableWork(&m->table, &itemType, 20);
    } else {
        modelScan(m);
    }
    assert_int_equal(hashtableCount(&m->table), m->count);
    assert_int_equal(hashtableVolatileCount(&m->table), m->volatile_count);
}

static void modelDrain(model *m) {
    hashtableSetPaused(false);
    for (uint64_t id = 0; id < m->id_max; id++) {
        if (m->items[id]) modelDelete(m, id);
        if (id % 20011 == 0) assert_valid(&m->table);
    }
    assert_int_equal(m->count, 0);
}

/* Lives of random length, with more inserts or more deletes by turns. */
static void runModel(hashKind kind, uint64_t id_max, uint64_t steps) {
    model m;
    itemHashKind = kind;
    modelInit(&m, id_max);
    unsigned add_percent = 80;
    uint64_t turn = 0, verify_every = id_max / 4 + 97;
    for (uint64_t step = 0; step < steps; step++) {
        if (step == turn) {
            add_percent = randomUniform(5) == 0 ? 2 : 15 + (unsigned)randomUniform(80);
            turn = step + 10 + randomUniform(3 * id_max);
            hashtableSetPaused(randomUniform(6) == 0);
        }
        modelStep(&m, add_percent);
        if (step % verify_every == 0) {
            assert_valid(&m.table);
            modelWalkVolatile(&m);
            modelIterate(&m);
        }
    }
    modelDrain(&m);
    modelClear(&m);
    itemHashKind = HASH_GOOD;
}

#ifdef TESTS_SANITIZED
enum { LARGE_ROUNDS = 1, HUGE_IDS = 60000, HUGE_STEPS = 300000 };
#else
enum { LARGE_ROUNDS = 3, HUGE_IDS = 200000, HUGE_STEPS = 1200000 };
#endif

static void test_good_hash_at_every_size(void **state) {
    testSeed(__func__);
    size_t before = memUsed();
    for (uint64_t round = 0; round < 40 * testScale(); round++) {
        runModel(HASH_GOOD, 1 + randomUniform(20), 500);
        runModel(HASH_GOOD, 30 + randomUniform(300), 6000);
    }
    for (uint64_t round = 0; round < LARGE_ROUNDS * testScale(); round++) {
        runModel(HASH_GOOD, 2000 + randomUniform(30000), 150000);
    }
    runModel(HASH_GOOD, HUGE_IDS, HUGE_STEPS * testScale());
    assert_int_equal(memUsed(), before);
}

static void hostileHash(hashKind kind, uint64_t id_max) {
    for (uint64_t round = 0; round < 3 * testScale(); round++) {
        runModel(kind, id_max / 2 + randomUniform(id_max), 40000);
    }
}

static void test_all_hashes_equal(void **state) {
    testSeed(__func__);
    hostileHash(HASH_ALL_EQUAL, 600);
}
static void test_all_hashes_last(void **state) {
    testSeed(__func__);
    hostileHash(HASH_ALL_LAST, 1500);
}
static void test_all_hashes_first(void **state) {
    testSeed(__func__);
    hostileHash(HASH_ALL_FIRST, 1500);
}
static void test_four_homes(void **state) {
    testSeed(__func__);
    hostileHash(HASH_FOUR_HOMES, 2000);
}
static void test_half_of_the_hashes_clustered(void **state) {
    testSeed(__func__);
    hostileHash(HASH_HALF_CLUMPED, 6000);
}
static void test_sequential_hashes(void **state) {
    testSeed(__func__);
    hostileHash(HASH_SEQUENTIAL, 2500);
}

int test_hashtable_model(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_good_hash_at_every_size),
        cmocka_unit_test(test_all_hashes_equal),
        cmocka_unit_test(test_all_hashes_last),
        cmocka_unit_test(test_all_hashes_first),
        cmocka_unit_test(test_four_homes),
        cmocka_unit_test(test_half_of_the_hashes_clustered),
        cmocka_unit_test(test_sequential_hashes),
    };
    return cmocka_run_group_tests_name("hashtable against a model", tests, NULL, NULL);
}
