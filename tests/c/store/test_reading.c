/* SPDX-License-Identifier: BSD-3-Clause
 *
 * store/reading: listings have each key of their start once, whatever changes meanwhile, with and
 * without slots; readers are told of changes before they are made, and held keys are left alone. */
#include "store_test.h"

#include <stdio.h>

#include "base/base.h"
#include "base/random.h"
#include "store/compact.h"
#include "store/reading.h"
#include "store/store.h"

enum { KEYS = 3000, LISTINGS = 3 };

static bool present[KEYS], expected[LISTINGS][KEYS];
static uint8_t seen[LISTINGS][KEYS];
static uint64_t told, told_hash, added, added_hash, whole;
static uint64_t held_hash;

static void before(const db *d, uint64_t hash) {
    assert_ptr_equal(d, storeDb(0));
    told++;
    told_hash = hash;
}
static void adding(const db *d, uint64_t hash) {
    assert_ptr_equal(d, storeDb(0));
    added++;
    added_hash = hash;
}
static void beforeWhole(const db *d) {
    (void)d; /* which one does not matter */
    whole++;
}
static void beforeShown(const db *d, uint64_t hash) {
    (void)d, (void)hash; /* no value has hidden members */
}
static bool holds(const db *d, uint64_t hash) {
    (void)d; /* the only one */
    return hash == held_hash;
}
static const storeReaders readers = {
    .before = before,
    .adding = adding,
    .whole = beforeWhole,
    .shown = beforeShown,
    .holds = holds,
};

static slice nameOf(int i, char *to) {
    return sliceMake(to, (size_t)snprintf(to, 32, "key %d", i));
}

static void set(int i, int64_t expire_ms) {
    char text[32];
    slice key = nameOf(i, text);
    dbPosition at;
    robj *old = dbFind(storeDb(0), key, storeHash(key), lookAt(0), &at);
    dbSetString(storeDb(0), key, &at, old, SLICE("value"), NULL, expire_ms);
    present[i] = true;
}

static void delete (int i) {
    char text[32];
    slice key = nameOf(i, text);
    assert_int_equal(dbDelete(storeDb(0), key, storeHash(key), lookAt(0)), present[i]);
    present[i] = false;
}

/* To a name that is not in use. */
static void moveKey(int i, int to) {
    char text[32], to_text[32];
    slice name = nameOf(i, text), other = nameOf(to, to_text);
    if (!present[i] || present[to]) return;
    dbMove(&(dbKey){storeDb(0), name, storeHash(name)},
           &(dbKey){storeDb(0), other, storeHash(other)});
    present[i] = false;
    present[to] = true;
}

static void note(void *arg, const robj *o) {
    int number = 0;
    slice key = objectKey(o);
    for (size_t i = 4; i < key.len; i++) number = number * 10 + (key.ptr[i] - '0');
    ((uint8_t *)arg)[number]++;
}

static void changeSome(int count) {
    for (; count > 0; count--) {
        int i = (int)randomUniform(KEYS);
        switch (randomUniform(4)) {
        case 0: set(i, OBJECT_NO_EXPIRE); break;
        case 1: moveKey(i, (int)randomUniform(KEYS)); break;
        default: delete (i);
        }
    }
}

static void listAll(bool slotted) {
    storeInit(1, slotted);
    storeSetReaders(&readers);
    memset(present, 0, sizeof(present));
    for (int round = 0; round < 40; round++) {
        dbListing *l[LISTINGS] = {NULL};
        int begun = 0, ended = 0;
        uint64_t density = randomUniform(10) + 1; /* tables grow and shrink */
        for (int i = 0; i < KEYS; i++) {
            if (randomUniform(10) < density) set(i, OBJECT_NO_EXPIRE);
        }
        memset(seen, 0, sizeof(seen));
        while (ended < LISTINGS) {
            if (begun < LISTINGS && randomUniform(5) == 0) {
                memcpy(expected[begun], present, sizeof(present));
                l[begun] = dbListingNew(storeDb(0), -1, note, seen[begun]);
                begun++;
            }
            changeSome((int)randomUniform(60));
            for (int k = 0; k < begun; k++) {
                if (!l[k] || dbListingStep(l[k], randomUniform(8) + 1)) continue;
                for (int i = 0; i < KEYS; i++) assert_int_equal(seen[k][i], expected[k][i]);
                dbListingFree(l[k]);
                l[k] = NULL;
                ended++;
            }
        }
        for (int i = 0; i < KEYS; i++) delete (i);
    }
    storeSetReaders(NULL);
    storeShutdown();
}

static void a_listing_has_the_keys_of_its_start(void **state) {
    (void)state;
    testSeed("listings");
    listAll(false);
    listAll(true);
}

static void a_listing_of_one_slot_has_no_other_keys(void **state) {
    (void)state;
    char text[32];
    storeInit(1, true);
    storeSetReaders(&readers);
    memset(present, 0, sizeof(present));
    memset(seen, 0, sizeof(seen));
    for (int i = 0; i < KEYS; i++) set(i, OBJECT_NO_EXPIRE);
    int slot = storeHashSlot(storeHash(nameOf(7, text))), found = 0;
    dbListing *l = dbListingNew(storeDb(0), slot, note, seen[0]);
    delete (7);
    while (dbListingStep(l, 1)) continue;
    for (int i = 0; i < KEYS; i++) found += seen[0][i];
    assert_int_equal(found, 1 + (int)dbSlotCount(storeDb(0), slot));
    assert_int_equal(seen[0][7], 1);
    dbListingFree(l);
    storeSetReaders(NULL);
    storeShutdown();
}

static void readers_are_told_before_changes(void **state) {
    (void)state;
    char text[32];
    slice key = nameOf(1, text);
    uint64_t hash = storeHash(key);
    storeInit(1, false);
    memset(present, 0, sizeof(present));
    set(1, OBJECT_NO_EXPIRE);
    told = added = whole = 0;
    storeSetReaders(&readers);
    assert_non_null(dbFindRead(storeDb(0), key, hash, lookAt(0)));
    assert_int_equal(told, 0);
    set(1, OBJECT_NO_EXPIRE);
    assert_int_equal(told, 1);
    assert_true(told_hash == storeHash(key));
    assert_int_equal(added, 0);
    moveKey(1, 2);
    assert_int_equal(told, 2);
    assert_int_equal(added, 1);
    assert_true(added_hash == storeHash(SLICE("key 2")));
    delete (2);
    assert_int_equal(told, 3);
    storeCompactReport report = {0};
    set(1, OBJECT_NO_EXPIRE);
    assert_int_equal(added, 2);
    assert_true(added_hash == storeHash(SLICE("key 1")));
    assert_true(storeCompact(&(storeCompaction){.budget_us = 1000, .fields_max = 10}, &report));
    assert_int_equal(report.moved + report.kept, 0);
    assert_int_equal(whole, 0);
    (void)storeFlush(keyspaceMain(), false);
    assert_int_equal(whole, 1);
    storeSetReaders(NULL);
    storeShutdown();
}

static void held_keys_neither_expire_nor_are_evicted(void **state) {
    (void)state;
    char text[32];
    storeInit(1, false);
    memset(present, 0, sizeof(present));
    storeSetReaders(&readers);
    for (int i = 0; i < 20; i++) set(i, 1000);
    held_hash = storeHash(nameOf(3, text));
    storeExpireTurn(keyspaceMain(), 2000, 1000000, 10);
    assert_int_equal(dbSize(storeDb(0)), 1);
    const evictRule rules[] = {{.order = EVICT_LRU, .samples = 5}, {.order = EVICT_RANDOM}};
    for (int i = 20; i < 40; i++) set(i, OBJECT_NO_EXPIRE);
    told = 0;
    for (int i = 0; i < 10; i++) assert_true(storeEvictOne(keyspaceMain(), &rules[i % 2]));
    assert_int_equal(dbSize(storeDb(0)), 11);
    assert_non_null(dbPeek(storeDb(0), nameOf(3, text), held_hash));
    storeSetReaders(NULL);
    storeShutdown();
}

static void repeated_lookups_are_not_counted(void **state) {
    (void)state;
    char text[32];
    storeInit(1, false);
    memset(present, 0, sizeof(present));
    set(1, OBJECT_NO_EXPIRE);
    dbLookupsRepeat(storeDb(0), true);
    for (int i = 1; i < 3; i++)
        (void)dbFindRead(storeDb(0), nameOf(i, text), storeHash(nameOf(i, text)), lookAt(0));
    dbLookupsRepeat(storeDb(0), false);
    assert_int_equal(storeStats(keyspaceMain()).hits, 0);
    assert_int_equal(storeStats(keyspaceMain()).misses, 0);
    storeShutdown();
}

int test_reading(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_listing_has_the_keys_of_its_start),
        cmocka_unit_test(a_listing_of_one_slot_has_no_other_keys),
        cmocka_unit_test(readers_are_told_before_changes),
        cmocka_unit_test(held_keys_neither_expire_nor_are_evicted),
        cmocka_unit_test(repeated_lookups_are_not_counted),
    };
    return cmocka_run_group_tests_name("reading", tests, NULL, NULL);
}
