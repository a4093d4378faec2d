/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Tests of hidden slots: their keys are in no count and no scan, they neither expire nor are they
 * evicted, and they are still there. */
#include "store_test.h"

#include "base/base.h"
#include "base/hash.h"
#include "store/store.h"
#include "store/type_hash.h"

static const slice HIDDEN = SLICE("{h}idden"), SHOWN = SLICE("{s}hown");

static void failAt(db *d, slice key) {
    (void)d; /* the key says enough */
    assert_false(sliceEqual(key, HIDDEN));
}

static const storeListener listener = {.expired = failAt, .evicted = failAt};

static int hiddenSlot(void) { return storeHashSlot(storeHash(HIDDEN)); }

static void put(slice key, int64_t expire_ms) {
    dbPosition at;
    robj *old = dbFind(storeDb(0), key, storeHash(key), lookAt(0), &at);
    dbSetString(storeDb(0), key, &at, old, SLICE("value"), NULL, expire_ms);
}

static int setUp(void **state) {
    (void)state; /* everything is in the store */
    storeInit(2, true);
    storeSetListener(keyspaceMain(), &listener);
    storeHideSlot(keyspaceMain(), hiddenSlot(), true);
    return 0;
}

static int tearDown(void **state) {
    (void)state; /* see setUp() */
    storeShutdown();
    return 0;
}

static const robj *peek(slice key) { return dbPeek(storeDb(0), key, storeHash(key)); }

static void countKey(void *arg, const robj *o) {
    assert_false(sliceEqual(objectKey(o), HIDDEN));
    ++*(int *)arg;
}

static void keys_of_hidden_slots_are_in_no_count_and_no_scan(void **state) {
    (void)state; /* see setUp() */
    db *d = storeDb(0);
    put(HIDDEN, OBJECT_NO_EXPIRE);
    assert_int_equal(dbSize(d), 0);
    assert_null(dbRandom(d, lookAt(0)));
    put(SHOWN, OBJECT_NO_EXPIRE);
    assert_int_equal(dbSize(d), 1);
    int seen = 0;
    dbEach(d, -1, countKey, &seen);
    for (uint64_t cursor = 0;;) {
        cursor = dbScan(d, cursor, -1, countKey, &seen);
        if (cursor == 0) break;
    }
    (void)dbSample(d, 100, countKey, &seen); /* counted by the visitor */
    assert_int_equal(seen, 3);
    for (int i = 0; i < 100; i++) assert_true(sliceEqual(objectKey(dbRandom(d, lookAt(0))), SHOWN));
    assert_int_equal(dbSlotCount(d, hiddenSlot()), 1);
    assert_true(dbHasHidden(d));
    assert_non_null(dbFindRead(d, HIDDEN, storeHash(HIDDEN), lookAt(0)));
    storeHideSlot(keyspaceMain(), hiddenSlot(), false);
    assert_int_equal(dbSize(d), 2);
    assert_false(dbHasHidden(d));
    assert_null(dbVerify(d));
}

static void expired_keys_of_hidden_slots_stay_and_are_not_found(void **state) {
    (void)state; /* see setUp() */
    db *d = storeDb(0);
    put(HIDDEN, 10);
    storeExpireTurn(keyspaceMain(), 20, 1000000, 10);
    assert_null(dbFindRead(d, HIDDEN, storeHash(HIDDEN), lookAt(20)));
    assert_null(dbFindUncounted(d, HIDDEN, storeHash(HIDDEN), lookAt(20)));
    assert_non_null(peek(HIDDEN));
    assert_non_null(dbFindRead(d, HIDDEN, storeHash(HIDDEN), lookAtAll()));
    assert_int_equal(storeStats(keyspaceMain()).expired, 0);
    assert_true(dbDelete(d, HIDDEN, storeHash(HIDDEN), lookAt(20))); /* by the source */
    assert_null(peek(HIDDEN));
}

static void fields_of_hidden_keys_do_not_expire(void **state) {
    (void)state; /* see setUp() */
    const packLimits limits = {100, 100};
    dbPosition at;
    hashOutcome outcome;
    robj *o = hashNewLarge(HIDDEN, 1);
    o = hashSetTimed(o, SLICE("f"), SLICE("v"), 10, lookAtAll(), &limits, &outcome);
    assert_null(dbFind(storeDb(0), HIDDEN, storeHash(HIDDEN), lookAt(0), &at));
    dbPlace(storeDb(0), &at, o);
    storeExpireTurn(keyspaceMain(), 20, 1000000, 10);
    assert_int_equal(storeStats(keyspaceMain()).expired_fields, 0);
    assert_int_equal(hashLength(peek(HIDDEN)), 1);
}

static void keys_of_hidden_slots_are_not_evicted(void **state) {
    (void)state; /* see setUp() */
    static const evictOrder orders[] = {EVICT_LRU, EVICT_LFU, EVICT_RANDOM};
    put(HIDDEN, OBJECT_NO_EXPIRE);
    for (size_t i = 0; i < COUNT_OF(orders); i++) {
        const evictRule rule = {.order = orders[i], .samples = 5};
        put(SHOWN, OBJECT_NO_EXPIRE);
        assert_true(storeEvictOne(keyspaceMain(), &rule));
        assert_false(storeEvictOne(keyspaceMain(), &rule));
        assert_non_null(peek(HIDDEN));
    }
    /* One that was a candidate before its slot was hidden. */
    const evictRule rule = {.order = EVICT_LRU, .samples = 5};
    storeHideSlot(keyspaceMain(), hiddenSlot(), false);
    put(SHOWN, OBJECT_NO_EXPIRE);
    assert_true(storeEvictOne(keyspaceMain(), &(evictRule){.order = EVICT_TTL,
                                                           .only_volatile = true,
                                                           .samples = 5}) == false);
    storeHideSlot(keyspaceMain(), hiddenSlot(), true);
    assert_true(storeEvictOne(keyspaceMain(), &rule));
    assert_false(storeEvictOne(keyspaceMain(), &rule));
    assert_non_null(peek(HIDDEN));
}

static void slots_stay_hidden_when_databases_change(void **state) {
    (void)state; /* see setUp() */
    put(HIDDEN, OBJECT_NO_EXPIRE);
    (void)dbFlush(storeDb(0), false); /* how many were visible does not matter */
    assert_null(peek(HIDDEN));
    put(HIDDEN, OBJECT_NO_EXPIRE);
    assert_int_equal(dbSize(storeDb(0)), 0);
    storeSwap(storeDb(0), storeDb(1));
    put(HIDDEN, OBJECT_NO_EXPIRE);
    assert_int_equal(dbSize(storeDb(0)) + dbSize(storeDb(1)), 0);
    assert_true(storeSlotIsHidden(keyspaceMain(), hiddenSlot()));
    assert_false(storeSlotIsHidden(keyspaceMain(), storeHashSlot(storeHash(SHOWN))));
    keyspace *other = keyspaceNew();
    keyspaceSwap(keyspaceMain(), other);
    assert_false(storeSlotIsHidden(keyspaceMain(), hiddenSlot()));
    assert_true(storeSlotIsHidden(other, hiddenSlot()));
    keyspaceFree(other, false);
}

int test_hidden(void) {
#define TEST(name) cmocka_unit_test_setup_teardown(name, setUp, tearDown)
    const struct CMUnitTest tests[] = {
        TEST(keys_of_hidden_slots_are_in_no_count_and_no_scan),
        TEST(expired_keys_of_hidden_slots_stay_and_are_not_found),
        TEST(fields_of_hidden_keys_do_not_expire),
        TEST(keys_of_hidden_slots_are_not_evicted),
        TEST(slots_stay_hidden_when_databases_change),
    };
    return cmocka_run_group_tests_name("store/hidden", tests, NULL, testNoObjects);
}
