/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Elements of collections move together when most of them were deleted, and every one is found afterwards. */
#include "store_test.h"

#include <stdio.h>

#include "base/base.h"
#include "base/hash.h"
#include "base/random.h"
#include "store/slab.h"
#include "store/store.h"
#include "store/type_hash.h"
#include "store/type_set.h"

enum { KEYS = 20, ELEMENTS = 4000, KEPT_EACH = 20, TURNS_MAX = 100000 };

static slice keyText(int k, char *to) {
    return sliceMake(to, (size_t)snprintf(to, 32, "%s:%d", k % 2 ? "set" : "hash", k));
}

static slice elementText(int i, char *to) {
    return sliceMake(to, (size_t)snprintf(to, 64, "element:%020d", i));
}

/* Adds or removes an element of key `k`. */
static void change(int k, int i, bool add) {
    char key_text[32], text[64];
    slice key = keyText(k, key_text), element = elementText(i, text);
    uint64_t hash = storeHash(key);
    robj *o = dbFind(storeDb(0), key, hash, 1000);
    listpackItem member = listpackItemOf(element);
    packLimits packed = {0, 64};
    setLimits limits = {{0, 64}, 0};
    bool changed = true;
    if (add && k % 2) {
        if (!o) o = setNew(key, &member, 1, &limits);
        o = setAdd(o, &member, &limits, &changed);
    } else if (add) {
        if (!o) o = hashNew(key);
        o = hashSet(o, element, element, &packed, &changed);
    } else {
        changed = k % 2 ? setRemove(&o, &member) : hashDelete(&o, element);
    }
    assert_true(changed);
    dbPlace(storeDb(0), hash, o);
}

static size_t residentBytes(void) {
    slabStats stats;
    slabGetStats(slabElements(), &stats);
    slabVerify(slabElements());
    return stats.live_bytes + stats.hole_bytes + stats.tail_bytes;
}

static void test_sparse_slabs_run_empty(void **state) {
    (void)state;
    storeInit(2, false);
    for (int i = 0; i < ELEMENTS; i++) {
        for (int k = 0; k < KEYS; k++) change(k, i, true);
    }
    for (int i = 0; i < ELEMENTS; i++) {
        for (int k = 0; k < KEYS && i % KEPT_EACH; k++) change(k, i, false);
    }
    size_t before = residentBytes();
    int turns = 0;
    while (slabShouldCompact(slabElements()) && ++turns < TURNS_MAX) storeTidy(20);
    assert_in_range(turns, 2, TURNS_MAX - 1);
    assert_true(residentBytes() < before / 2);
    char key_text[32], text[64], digits[NUMBER_TEXT_MAX];
    for (int k = 0; k < KEYS; k++) {
        slice key = keyText(k, key_text), value;
        const robj *o = dbPeek(storeDb(0), key, storeHash(key));
        for (int i = 0; i < ELEMENTS; i++) {
            slice element = elementText(i, text);
            listpackItem member = listpackItemOf(element);
            bool has = k % 2 ? setHas(o, &member) : hashGet(o, element, digits, &value);
            assert_int_equal(has, i % KEPT_EACH == 0);
            if (has && k % 2 == 0) assert_true(sliceEqual(value, element));
        }
    }
    storeShutdown();
}

int test_compact(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_sparse_slabs_run_empty)};
    return cmocka_run_group_tests_name("compact", tests, NULL, testNoObjects);
}
