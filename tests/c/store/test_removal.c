/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Tests of what is told before a key is removed: the reason, while the value can be read; nothing
 * if nobody listens. */
#include "store_test.h"

#include <stdio.h>

#include "base/base.h"
#include "base/str.h"
#include "store/store.h"
#include "store/type_set.h"

static str told; /* "<reason> <key>=<value>;" */

static void removing(db *d, const robj *o, storeRemoval why) {
    static const char *const names[] = {"deleted", "expired", "evicted", "overwritten", "moved"};
    char digits[NUMBER_TEXT_MAX];
    slice key = objectKey(o);
    assert_ptr_equal(dbPeek(d, key, storeHash(key)), o); /* it is still there */
    strAppendFormat(&told, "%s %.*s", names[why], (int)key.len, key.ptr);
    if (objectType(o) == TYPE_STRING) {
        strAppendByte(&told, '=');
        strAppendSlice(&told, objectText(o, digits));
    } else {
        strAppendFormat(&told, ":%zu", typeOf(o)->length(o));
    }
    strAppendByte(&told, ';');
}

static void ignoreKey(db *d, slice key) { (void)d, (void)key; }

static const storeListener listener = {
    .removing = removing, .expired = ignoreKey, .evicted = ignoreKey};

static void assertTold(const char *expected) {
    assert_string_equal(strText(&told), expected);
    strClear(&told);
}

static int setUp(void **state) {
    (void)state; /* everything is in `storeNow` and `told` */
    storeInit(2, true);
    storeSetListener(keyspaceMain(), &listener);
    storeTellRemovals(true);
    return 0;
}

static int tearDown(void **state) {
    (void)state; /* see setUp() */
    storeTellRemovals(false);
    storeShutdown();
    strFree(&told);
    return 0;
}

static void put(const char *name, const char *value, int64_t expire_ms) {
    slice key = sliceOf(name);
    dbPosition at;
    robj *old = dbFind(storeDb(0), key, storeHash(key), lookAt(0), &at);
    dbSetString(storeDb(0), key, &at, old, sliceOf(value), NULL, expire_ms);
}

static bool dropKey(const char *name, bool (*drop)(db *, slice, uint64_t, storeLook)) {
    return drop(storeDb(0), sliceOf(name), storeHash(sliceOf(name)), lookAt(0));
}

static void a_deleted_key_is_told(void **state) {
    (void)state; /* see setUp() */
    put("a", "1", OBJECT_NO_EXPIRE);
    put("b", "text", OBJECT_NO_EXPIRE);
    put("c", "3", OBJECT_NO_EXPIRE);
    assertTold("");
    assert_true(dropKey("a", dbDelete));
    assert_true(dropKey("b", dbUnlink));
    assert_true(dropKey("c", dbDeleteReplaced));
    assert_false(dropKey("d", dbDelete));
    assertTold("deleted a=1;deleted b=text;overwritten c=3;");
}

static void an_overwritten_value_is_told_in_any_form(void **state) {
    (void)state; /* see setUp() */
    put("a", "1", OBJECT_NO_EXPIRE);
    put("a", "2", OBJECT_NO_EXPIRE);
    put("a", "text", 1000);
    put("a", "other", 1000);
    assertTold("overwritten a=1;overwritten a=2;overwritten a=text;");
}

static void an_expired_key_is_told_however_it_is_found(void **state) {
    (void)state; /* see setUp() */
    dbPosition at;
    put("read", "1", 10);
    put("written", "2", 10);
    put("found", "3", 10);
    put("set", "4", OBJECT_NO_EXPIRE);
    slice key = SLICE("read");
    assert_null(dbFindRead(storeDb(0), key, storeHash(key), lookAt(11)));
    key = SLICE("written");
    assert_null(dbFind(storeDb(0), key, storeHash(key), lookAt(11), &at));
    storeExpireTurn(keyspaceMain(), 11, 1000000, 1);
    key = SLICE("set");
    dbExpire(storeDb(0), key, storeHash(key));
    assertTold("expired read=1;expired written=2;expired found=3;expired set=4;");
}

static void an_evicted_key_is_told(void **state) {
    (void)state; /* see setUp() */
    const evictRule rule = {.order = EVICT_RANDOM, .samples = 5};
    put("a", "1", OBJECT_NO_EXPIRE);
    assert_true(storeEvictOne(keyspaceMain(), &rule));
    assertTold("evicted a=1;");
}

static void a_moved_key_and_those_of_a_flushed_slot_are_told(void **state) {
    (void)state; /* see setUp() */
    put("a", "1", OBJECT_NO_EXPIRE);
    dbKey from = {storeDb(0), SLICE("a"), storeHash(SLICE("a"))};
    dbKey to = {storeDb(1), SLICE("b"), storeHash(SLICE("b"))};
    dbMove(&from, &to);
    assertTold("moved a=1;");
    assert_int_equal(dbFlushSlot(storeDb(1), storeHashSlot(to.hash), false), 1);
    assertTold("deleted b=1;");
}

static void an_emptied_collection_is_told_without_elements(void **state) {
    (void)state; /* see setUp() */
    const setLimits limits = {.ints = 10, .packed = {10, 10}};
    slice key = SLICE("s");
    dbPosition at;
    listpackItem one = {.number = 1};
    bool done;
    robj *o = setAdd(setNew(key, &one, 1, &limits), &one, &limits, &done);
    assert_null(dbFind(storeDb(0), key, storeHash(key), lookAt(0), &at));
    dbPlace(storeDb(0), &at, o);
    o = dbFind(storeDb(0), key, storeHash(key), lookAt(0), &at);
    assert_true(setRemove(&o, &one));
    dbPlace(storeDb(0), &at, o);
    assert_true(dropKey("s", dbDelete));
    assertTold("deleted s:0;");
}

static void nothing_is_told_when_nobody_listens_or_all_is_flushed(void **state) {
    (void)state; /* see setUp() */
    put("a", "1", OBJECT_NO_EXPIRE);
    (void)dbFlush(storeDb(0), false); /* there is one key */
    storeTellRemovals(false);
    put("a", "1", OBJECT_NO_EXPIRE);
    put("a", "2", OBJECT_NO_EXPIRE);
    assert_true(dropKey("a", dbDelete));
    assertTold("");
}

int test_removal(void) {
#define TEST(name) cmocka_unit_test_setup_teardown(name, setUp, tearDown)
    const struct CMUnitTest tests[] = {
        TEST(a_deleted_key_is_told),
        TEST(an_overwritten_value_is_told_in_any_form),
        TEST(an_expired_key_is_told_however_it_is_found),
        TEST(an_evicted_key_is_told),
        TEST(a_moved_key_and_those_of_a_flushed_slot_are_told),
        TEST(an_emptied_collection_is_told_without_elements),
        TEST(nothing_is_told_when_nobody_listens_or_all_is_flushed),
    };
    return cmocka_run_group_tests_name("store/removal", tests, NULL, testNoObjects);
}
