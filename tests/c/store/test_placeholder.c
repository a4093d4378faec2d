/* SPDX-License-Identifier: BSD-3-Clause
 *
 * store/placeholder: names without values are keys of every operation on keys, and of no digest;
 * the names of their types are bounded. */
#include "store_test.h"

#include <stdio.h>

#include "store/placeholder.h"
#include "store/store.h"
#include "store/type.h"

static int setUp(void **state) {
    (void)state; /* everything is in storeNow */
    storeInit(2, false);
    return 0;
}

static int tearDown(void **state) {
    (void)state; /* see setUp() */
    storeShutdown();
    return 0;
}

static void put(const char *name, const char *type) {
    dbPosition at;
    slice key = sliceOf(name);
    assert_null(dbFind(storeDb(0), key, storeHash(key), lookAtAll(), &at));
    dbPlace(storeDb(0), &at, placeholderNew(key, type));
}

static void it_has_its_type_and_is_counted_and_in_no_digest(void **state) {
    (void)state; /* see setUp() */
    digest before, after;
    storeDigestWithTimes(keyspaceMain(), &before);
    put("v", "vectorset");
    put("a", "array");
    assert_int_equal(placeholderCount(), 2);
    const robj *o = dbFindQuiet(storeDb(0), SLICE("v"), storeHash(SLICE("v")), lookAtAll());
    assert_true(objectIsPlaceholder(o));
    assert_string_equal(objectTypeName(o), "vectorset");
    storeDigestWithTimes(keyspaceMain(), &after);
    assert_memory_equal(&before, &after, sizeof(before));
    typeFilter filter;
    assert_true(typeFind(SLICE("VectorSet"), &filter));
    assert_true(typeMatches(&filter, o));
    assert_false(typeFind(SLICE("none"), &filter));
    assert_true(dbDelete(storeDb(0), SLICE("v"), storeHash(SLICE("v")), lookAtAll()));
    assert_int_equal(placeholderCount(), 1);
}

static void further_types_share_a_name(void **state) {
    (void)state; /* see setUp() */
    for (int i = 0; i < 100; i++) {
        char text[16];
        snprintf(text, sizeof(text), "type%d", i);
        put(text, text);
    }
    const robj *o =
        dbFindQuiet(storeDb(0), SLICE("type99"), storeHash(SLICE("type99")), lookAtAll());
    assert_string_equal(objectTypeName(o), "others");
    assert_int_equal(placeholderCount(), 100);
}

static int calls;
static void countCall(void) { calls++; }

static void whoever_wants_to_is_told_of_each(void **state) {
    (void)state; /* see setUp() */
    placeholdersSetProc(countCall);
    put("v", "vectorset");
    assert_int_equal(calls, 1);
    placeholdersSetProc(NULL);
    assert_false(placeholdersAreAllowed());
    placeholdersAllow(true);
    assert_true(placeholdersAreAllowed());
    placeholdersAllow(false);
}

static robj *found(const char *name) {
    slice key = sliceOf(name);
    dbPosition at;
    robj *o = dbFind(storeDb(0), key, storeHash(key), lookAtAll(), &at);
    assert_non_null(o);
    return o;
}

static void elements_are_known_if_all_were_added(void **state) {
    (void)state; /* see setUp() */
    put("v", "vectorset");
    robj *o = found("v");
    placeholderItemAdd(o, 1);
    placeholderItemsRemove(o, 1, 1);
    assert_false(placeholderIsEmpty(o));
    placeholderItemsBegin(o);
    assert_true(placeholderIsEmpty(o));
    for (int64_t i = -3; i < 3; i++) placeholderItemAdd(o, i * INT32_MAX);
    placeholderItemAdd(o, 0);
    placeholderItemsRemove(o, 1, INT32_MAX - 1);
    placeholderItemsRemove(o, INT64_MIN, -1);
    placeholderItemsRemove(o, INT32_MAX, INT64_MAX);
    assert_false(placeholderIsEmpty(o));
    placeholderItemsRemove(o, 0, 0);
    assert_true(placeholderIsEmpty(o));
    placeholderItemAdd(o, 5);
    placeholderItemsForget(o);
    placeholderItemsRemove(o, 5, 5);
    assert_false(placeholderIsEmpty(o));
    assert_true(placeholderHasType(o, "vectorset"));
    assert_false(placeholderHasType(o, "array"));
}

static size_t memoryOf(const char *name) { return objectMemory(found(name), 0); }

static void a_copy_has_elements_of_its_own_and_both_are_in_the_memory(void **state) {
    (void)state; /* see setUp() */
    put("v", "vectorset");
    size_t without = memoryOf("v");
    placeholderItemsBegin(found("v"));
    for (int64_t i = 0; i < 1000; i++) placeholderItemAdd(found("v"), i << 40);
    assert_true(memoryOf("v") >= without + 8000);
    robj *copy = objectCopy(found("v"), SLICE("w"), 0);
    dbPosition at;
    assert_null(dbFind(storeDb(0), SLICE("w"), storeHash(SLICE("w")), lookAtAll(), &at));
    dbPlace(storeDb(0), &at, copy);
    placeholderItemsRemove(found("v"), 0, INT64_MAX);
    assert_true(placeholderIsEmpty(found("v")));
    assert_false(placeholderIsEmpty(found("w")));
    placeholderItemsRemove(found("w"), 0, INT64_MAX);
    assert_true(placeholderIsEmpty(found("w")));
}

static void the_number_of_known_elements_is_bounded(void **state) {
    (void)state; /* see setUp() */
    put("v", "vectorset");
    robj *o = found("v");
    placeholderItemsBegin(o);
    for (int64_t i = 0; i < PLACEHOLDER_ITEMS_MAX; i++) placeholderItemAdd(o, i);
    placeholderItemAdd(o, 0); /* known already */
    placeholderItemsRemove(o, 1, INT64_MAX);
    placeholderItemsRemove(o, 0, 0);
    assert_true(placeholderIsEmpty(o));
    for (int64_t i = 0; i <= PLACEHOLDER_ITEMS_MAX; i++) placeholderItemAdd(o, i);
    placeholderItemsRemove(o, 0, INT64_MAX);
    assert_false(placeholderIsEmpty(o));

    int full = PLACEHOLDER_ITEMS_TOTAL_MAX / PLACEHOLDER_ITEMS_MAX;
    for (int i = 0; i <= full; i++) {
        char text[16];
        snprintf(text, sizeof(text), "full%d", i);
        put(text, "vectorset");
        placeholderItemsBegin(found(text));
        for (int64_t n = 0; n < PLACEHOLDER_ITEMS_MAX; n++) placeholderItemAdd(found(text), n);
        placeholderItemsRemove(found(text), INT64_MIN, -1);
    }
    placeholderItemsRemove(found("full0"), 0, INT64_MAX);
    assert_true(placeholderIsEmpty(found("full0")));
    char last[16];
    snprintf(last, sizeof(last), "full%d", full);
    placeholderItemsRemove(found(last), 0, INT64_MAX);
    assert_false(placeholderIsEmpty(found(last)));
}

int test_placeholder(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(it_has_its_type_and_is_counted_and_in_no_digest, setUp,
                                        tearDown),
        cmocka_unit_test_setup_teardown(whoever_wants_to_is_told_of_each, setUp, tearDown),
        cmocka_unit_test_setup_teardown(further_types_share_a_name, setUp, tearDown),
        cmocka_unit_test_setup_teardown(elements_are_known_if_all_were_added, setUp, tearDown),
        cmocka_unit_test_setup_teardown(a_copy_has_elements_of_its_own_and_both_are_in_the_memory,
                                        setUp, tearDown),
        cmocka_unit_test_setup_teardown(the_number_of_known_elements_is_bounded, setUp, tearDown),
    };
    return cmocka_run_group_tests_name("store/placeholder", tests, NULL, testNoObjects);
}
