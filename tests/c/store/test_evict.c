/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Tests of eviction: which keys each policy evicts, that no others are, and that stale candidates
 * do no harm. */
#include "store_test.h"

#include <stdio.h>

#include "base/base.h"
#include "base/hash.h"
#include "base/random.h"
#include "store/store.h"

static uint64_t told;

static void evicted(db *d, slice key) {
    assert_non_null(d);
    assert_true(key.len > 0);
    told++;
}

static void expired(db *d, slice key) {
    (void)d, (void)key;
    fail(); /* nothing expires here */
}

static const storeListener listener = {.expired = expired, .evicted = evicted};

static void put(db *d, slice key, int64_t expire_ms) {
    dbPosition at;
    robj *old = dbFind(d, key, storeHash(key), lookAt(0), &at);
    dbSetString(d, key, &at, old, SLICE("value"), NULL, expire_ms);
}

static slice keyOf(uint64_t i) {
    static char text[32];
    return sliceMake(text, (size_t)snprintf(text, sizeof(text), "key:%llu", (unsigned long long)i));
}

static bool has(db *d, uint64_t i) {
    slice key = keyOf(i);
    return dbPeek(d, key, storeHash(key)) != NULL;
}

static int setUp(void **state) {
    (void)state;
    testSeed("evict");
    storeInit(2, false);
    storeSetListener(keyspaceMain(), &listener);
    storeSetAccess(ACCESS_LRU, 10, 1);
    told = 0;
    return 0;
}

static int tearDown(void **state) {
    (void)state;
    storeSetListener(keyspaceMain(), NULL);
    storeShutdown();
    return 0;
}

static void an_empty_store_has_no_victim(void **state) {
    (void)state;
    evictRule rule = {.samples = 5}, volatile_rule = {EVICT_TTL, true, 5, false, NULL};
    assert_false(storeEvictOne(keyspaceMain(), &rule));
    put(storeDb(0), keyOf(1), OBJECT_NO_EXPIRE);
    assert_false(storeEvictOne(keyspaceMain(), &volatile_rule));
    assert_true(storeEvictOne(keyspaceMain(), &rule));
    assert_int_equal(dbSize(storeDb(0)), 0);
    assert_int_equal(told, 1);
}

/* Key i of 1000 was used in second i. */
static void the_least_recently_used_are_evicted(void **state) {
    (void)state;
    db *d = storeDb(0);
    evictRule rule = {EVICT_LRU, false, 10, false, NULL};
    for (uint64_t i = 0; i < 1000; i++) {
        storeSetClock((int64_t)(1000 + i) * 1000);
        put(d, keyOf(i), OBJECT_NO_EXPIRE);
    }
    for (int i = 0; i < 200; i++) assert_true(storeEvictOne(keyspaceMain(), &rule));
    uint64_t old = 0;
    for (uint64_t i = 0; i < 300; i++) old += !has(d, i);
    assert_true(old >= 180); /* by chance it would be 60 */
    for (uint64_t i = 900; i < 1000; i++) assert_true(has(d, i));
}

/* A candidate in the pool is accessed again, moved, or overwritten: its current state counts. */
static void keys_used_since_are_not_evicted(void **state) {
    (void)state;
    db *d = storeDb(0);
    evictRule rule = {EVICT_LRU, false, 64, false, NULL};
    storeSetClock(1000000);
    for (uint64_t i = 0; i < 40; i++) put(d, keyOf(i), OBJECT_NO_EXPIRE);
    storeSetClock(2000000);
    assert_true(storeEvictOne(keyspaceMain(), &rule)); /* the pool is full of old ones now */
    for (uint64_t i = 0; i < 40; i++) {
        slice key = keyOf(i);
        if (i % 2 && has(d, i))
            (void)dbFindRead(d, key, storeHash(key), lookAt(0)); /* only its time matters */
        if (i % 4 == 1 && has(d, i)) put(d, keyOf(i), OBJECT_NO_EXPIRE);
    }
    uint64_t even = 0;
    for (uint64_t i = 0; i < 40; i += 2) even += has(d, i);
    for (uint64_t i = 0; i < even; i++) assert_true(storeEvictOne(keyspaceMain(), &rule));
    for (uint64_t i = 0; i < 40; i += 2) assert_false(has(d, i));
    assert_int_equal(dbSize(d), 39 - even);
}

static void the_next_to_expire_are_evicted(void **state) {
    (void)state;
    db *d = storeDb(1);
    evictRule rule = {EVICT_TTL, true, 10, false, NULL};
    for (uint64_t i = 0; i < 1000; i++)
        put(d, keyOf(i), i % 2 ? OBJECT_NO_EXPIRE : (int64_t)(1000000 + i));
    for (int i = 0; i < 100; i++) assert_true(storeEvictOne(keyspaceMain(), &rule));
    uint64_t early = 0;
    for (uint64_t i = 0; i < 300; i += 2) early += !has(d, i);
    assert_true(early >= 90);
    while (storeEvictOne(keyspaceMain(), &rule)) {}
    assert_int_equal(dbSize(d), 500);
    for (uint64_t i = 1; i < 1000; i += 2) assert_true(has(d, i));
}

static void the_least_frequently_used_are_evicted(void **state) {
    (void)state;
    db *d = storeDb(0);
    evictRule rule = {EVICT_LFU, false, 10, false, NULL};
    storeSetAccess(ACCESS_LFU, 0, 0);
    for (uint64_t i = 0; i < 500; i++) {
        slice key = keyOf(i);
        put(d, key, OBJECT_NO_EXPIRE);
        for (uint64_t k = 0; k < i / 10; k++)
            assert_non_null(dbFindRead(d, key, storeHash(key), lookAt(0)));
    }
    for (int i = 0; i < 100; i++) assert_true(storeEvictOne(keyspaceMain(), &rule));
    uint64_t cold = 0;
    for (uint64_t i = 0; i < 150; i++) cold += !has(d, i);
    assert_true(cold >= 90);
}

/* Chance: each of two databases loses its share, and stale candidates of another order are
 * forgotten. */
static void random_eviction_covers_all_databases(void **state) {
    (void)state;
    evictRule rule = {EVICT_RANDOM, false, 5, false, NULL},
              timed = {EVICT_RANDOM, true, 5, false, NULL};
    for (uint64_t i = 0; i < 1000; i++) {
        put(storeDb(0), keyOf(i), OBJECT_NO_EXPIRE);
        put(storeDb(1), keyOf(i), i % 10 ? OBJECT_NO_EXPIRE : 5000);
    }
    for (int i = 0; i < 100; i++) assert_true(storeEvictOne(keyspaceMain(), &timed));
    assert_false(storeEvictOne(keyspaceMain(), &timed));
    for (int i = 0; i < 400; i++) assert_true(storeEvictOne(keyspaceMain(), &rule));
    assert_int_equal(dbSize(storeDb(0)), 800);
    assert_int_equal(dbSize(storeDb(1)), 700);
}

/* All policies together, with changes and flushes in between. */
static void random_changes_between_victims(void **state) {
    (void)state;
    for (int round = 0; round < 20000; round++) {
        db *d = storeDb((int)randomUniform(2));
        slice key = keyOf(randomUniform(300));
        storeSetClock(1000000 + round * 10);
        switch (randomUniform(8)) {
        case 0: {
            evictRule rule = {(evictOrder)randomUniform(4), false, 1 + (int)randomUniform(10),
                              randomUniform(2), NULL};
            rule.only_volatile = rule.order == EVICT_TTL || randomUniform(2);
            uint64_t before = dbSize(storeDb(0)) + dbSize(storeDb(1));
            bool gone = storeEvictOne(keyspaceMain(), &rule);
            assert_int_equal(dbSize(storeDb(0)) + dbSize(storeDb(1)), before - gone);
            break;
        }
        case 1: (void)dbFindRead(d, key, storeHash(key), lookAt(0)); break; /* there or not */
        case 2:
            if (randomUniform(500) == 0) (void)dbFlush(d, false); /* how many does not matter */
            break;
        case 3: (void)dbDelete(d, key, storeHash(key), lookAt(0)); break; /* there or not */
        default: put(d, key, randomUniform(2) ? OBJECT_NO_EXPIRE : INT64_C(1) << 40);
        }
    }
}

int test_evict(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(an_empty_store_has_no_victim, setUp, tearDown),
        cmocka_unit_test_setup_teardown(the_least_recently_used_are_evicted, setUp, tearDown),
        cmocka_unit_test_setup_teardown(keys_used_since_are_not_evicted, setUp, tearDown),
        cmocka_unit_test_setup_teardown(the_next_to_expire_are_evicted, setUp, tearDown),
        cmocka_unit_test_setup_teardown(the_least_frequently_used_are_evicted, setUp, tearDown),
        cmocka_unit_test_setup_teardown(random_eviction_covers_all_databases, setUp, tearDown),
        cmocka_unit_test_setup_teardown(random_changes_between_victims, setUp, tearDown),
    };
    return cmocka_run_group_tests_name("store/evict", tests, NULL, testNoObjects);
}
