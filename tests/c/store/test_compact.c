/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Elements of collections move together when most of them were deleted, and every one is found
 * afterwards. */
#include "store_test.h"

#include <stdio.h>

#include "base/base.h"
#include "base/hash.h"
#include "base/random.h"
#include "store/compact.h"
#include "store/slab.h"
#include "store/store.h"
#include "store/type_hash.h"
#include "store/type_list.h"
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
    dbPosition at;
    robj *o = dbFind(storeDb(0), key, hash, lookAt(1000), &at);
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
        changed = k % 2 ? setRemove(&o, &member) : hashDelete(&o, element, lookAtAll());
    }
    assert_true(changed);
    dbPlace(storeDb(0), &at, o);
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
            bool has =
                k % 2 ? setHas(o, &member) : hashGet(o, element, lookAtAll(), digits, &value);
            assert_int_equal(has, i % KEPT_EACH == 0);
            if (has && k % 2 == 0) assert_true(sliceEqual(value, element));
        }
    }
    storeShutdown();
}

/* ------------------------------------------------------------------ what lies outside the slabs */

enum { LISTS = 300, LIST_ELEMENTS = 200 };

static slice listKey(int k, char *to) {
    return sliceMake(to, (size_t)snprintf(to, 32, "list:%d", k));
}

static void test_nodes_of_lists_move_together(void **state) {
    (void)state;
    storeInit(1, false);
    listLimits limits = {.fill = 4};
    char key_text[32], text[64];
    /* Nodes of different lists lie in turns, so that what stays of them lies far apart. */
    for (int i = 0; i < LIST_ELEMENTS; i++) {
        for (int k = 0; k < LISTS; k++) {
            slice key = listKey(k, key_text), element = elementText(i, text);
            uint64_t hash = storeHash(key);
            dbPosition at;
            robj *o = dbFind(storeDb(0), key, hash, lookAt(1000), &at);
            o = listPrepare(o ? o : listNew(key), &element, 1, &limits);
            dbPlace(storeDb(0), &at, listPush(o, &element, 1, false));
        }
    }
    for (int k = 0; k < LISTS; k++) {
        slice key = listKey(k, key_text);
        if (k % 10) dbDelete(storeDb(0), key, storeHash(key), lookAt(1000));
    }
    storeTidy(0); /* makes the store of elements */
    size_t used = memUsed();
    storeCompaction plan = {.budget_us = 50, .fields_max = 10, .heap = true};
    storeCompactReport report = {0};
    int turns = 0;
    while (storeCompact(&plan, &report) && ++turns < TURNS_MAX) {}
    assert_in_range(turns, 1, TURNS_MAX - 1);
    assert_true(report.moved + report.kept >= LISTS / 10 * LIST_ELEMENTS / 4 * 2);
#ifdef USE_JEMALLOC
    assert_true(report.moved > 0);
#endif
    assert_true(memUsed() <= used + 4096);
    for (int k = 0; k < LISTS; k += 10) {
        slice key = listKey(k, key_text);
        const robj *o = dbPeek(storeDb(0), key, storeHash(key));
        listCursor at;
        listpackItem item;
        listCursorInit(&at, o, 0, false);
        for (int i = 0; i < LIST_ELEMENTS; i++) {
            assert_true(listNextItem(&at, &item));
            assert_true(sliceEqual(sliceMake(item.ptr, item.len), elementText(i, text)));
        }
        listCursorClear(&at);
        assert_null(quicklistVerify(listQuicklist(o)));
    }
    storeShutdown();
}

int test_compact(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_sparse_slabs_run_empty),
                                       cmocka_unit_test(test_nodes_of_lists_move_together)};
    return cmocka_run_group_tests_name("compact", tests, NULL, testNoObjects);
}
