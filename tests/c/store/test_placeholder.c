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

int test_placeholder(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(it_has_its_type_and_is_counted_and_in_no_digest, setUp,
                                        tearDown),
        cmocka_unit_test_setup_teardown(whoever_wants_to_is_told_of_each, setUp, tearDown),
        cmocka_unit_test_setup_teardown(further_types_share_a_name, setUp, tearDown),
    };
    return cmocka_run_group_tests_name("store/placeholder", tests, NULL, testNoObjects);
}
