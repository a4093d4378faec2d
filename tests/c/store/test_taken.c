/* SPDX-License-Identifier: BSD-3-Clause
 *
 * store/taken: the keys of a slot that were taken out are in no count, each is visited once, in
 * slices of bounded size, and a flush of all others leaves them alone. */
#include "store_test.h"

#include <stdio.h>

#include "base/base.h"
#include "store/saving.h"
#include "store/store.h"
#include "store/taken.h"

enum { KEYS = 20000, SLICE_BUCKETS = 4, SLICE_KEYS_MAX = 16 * SLICE_BUCKETS };

static uint8_t seen[KEYS];
static uint64_t visited;

static int setUp(void **state) {
    (void)state; /* everything is in storeNow */
    storeInit(2, true);
    memset(seen, 0, sizeof(seen));
    visited = 0;
    return 0;
}

static int tearDown(void **state) {
    (void)state; /* see setUp() */
    storeShutdown();
    return 0;
}

static slice nameOf(int i, const char *tag, char *to) {
    return sliceMake(to, (size_t)snprintf(to, 32, "{%s}%d", tag, i));
}

static int fill(const char *tag, int keys) {
    char text[32];
    for (int i = 0; i < keys; i++) {
        slice key = nameOf(i, tag, text);
        dbPosition at;
        robj *old = dbFind(storeDb(0), key, storeHash(key), lookAt(0), &at);
        dbSetString(storeDb(0), key, &at, old, SLICE("value"), NULL, OBJECT_NO_EXPIRE);
    }
    return storeHashSlot(storeHash(nameOf(0, tag, text)));
}

static void note(void *arg, const robj *o) {
    const slice key = objectKey(o);
    int number = 0;
    assert_ptr_equal(arg, storeDb(0));
    for (size_t i = 3; i < key.len; i++) number = number * 10 + (key.ptr[i] - '0');
    assert_int_equal(seen[number]++, 0);
    visited++;
}

static void keys_are_gone_at_once_and_visited_once_in_slices(void **state) {
    (void)state; /* see setUp() */
    int slot = fill("a", KEYS);
    (void)fill("b", 10);
    takenKeys *t = dbTakeSlot(storeDb(0), slot);
    assert_int_equal(dbSize(storeDb(0)), 10);
    assert_int_equal(dbSlotCount(storeDb(0), slot), 0);
    assert_int_equal(takenCount(t), KEYS);
    assert_ptr_equal(takenDb(t), storeDb(0));
    (void)fill("a", 5); /* the same names, which are other keys */
    for (bool more = true; more;) {
        uint64_t before = visited;
        more = takenStep(t, SLICE_BUCKETS, note, storeDb(0));
        assert_true(visited - before <= SLICE_KEYS_MAX);
    }
    assert_int_equal(visited, KEYS);
    assert_int_equal(dbSize(storeDb(0)), 15);
    assert_null(dbVerify(storeDb(0)));
}

static void a_flush_of_everything_leaves_them_alone(void **state) {
    (void)state; /* see setUp() */
    int slot = fill("a", KEYS);
    (void)fill("b", KEYS);
    takenKeys *t = dbTakeSlot(storeDb(0), slot);
    assert_true(takenStep(t, SLICE_BUCKETS, note, storeDb(0)));
    assert_int_equal(storeFlush(keyspaceMain(), false), KEYS);
    while (takenStep(t, SLICE_BUCKETS, note, storeDb(0))) {}
    assert_int_equal(visited, KEYS);
}

static void an_empty_slot_gives_nothing_and_what_is_not_visited_is_freed(void **state) {
    (void)state; /* see setUp() */
    int slot = fill("a", KEYS);
    assert_null(dbTakeSlot(storeDb(1), slot));
    takenKeys *t = dbTakeSlot(storeDb(0), slot);
    assert_null(dbTakeSlot(storeDb(0), slot));
    assert_false(takenStep(t, SLICE_BUCKETS, NULL, NULL)); /* nobody wants to see them */
    assert_int_equal(fill("a", 5), slot);
    takenFree(dbTakeSlot(storeDb(0), slot));
    assert_int_equal(dbSize(storeDb(0)), 0);
}

/* ---- with a snapshot */

static uint64_t saved;

static bool offerKey(void *arg, int db_id, const robj *o) {
    (void)arg, (void)db_id, (void)o;
    saved++;
    return true;
}

static void takeKey(void *arg, int db_id, const robj *o) { (void)offerKey(arg, db_id, o); }

static bool divideNone(void *arg, const robj *o) {
    (void)arg, (void)o;
    return false;
}

static void a_snapshot_gets_them_in_slices_before_they_are_visited(void **state) {
    const storeSaver saver = {.offer = offerKey, .take = takeKey, .divides = divideNone};
    (void)state; /* see setUp() */
    int slot = fill("a", KEYS);
    (void)fill("b", 10);
    saved = 0;
    storeSavingBegin(&saver, NULL);
    takenKeys *t = dbTakeSlot(storeDb(0), slot);
    assert_int_equal(saved, 0);
    assert_true(takenIsHeld(t));
    assert_true(takenStep(t, SLICE_BUCKETS, note, storeDb(0)));
    assert_int_equal(visited, 0);
    for (bool more = true; more;) {
        uint64_t before = saved;
        more = storeSavingStep(SLICE_BUCKETS);
        assert_true(saved - before <= SLICE_KEYS_MAX);
    }
    assert_int_equal(saved, KEYS + 10);
    assert_false(takenIsHeld(t));
    while (takenStep(t, SLICE_BUCKETS, note, storeDb(0))) {}
    assert_int_equal(visited, KEYS);
}

static void who_cannot_wait_passes_them_to_the_snapshot_at_once(void **state) {
    const storeSaver saver = {.offer = offerKey, .take = takeKey, .divides = divideNone};
    (void)state; /* see setUp() */
    int slot = fill("a", KEYS);
    saved = 0;
    storeSavingBegin(&saver, NULL);
    takenKeys *t = dbTakeSlot(storeDb(0), slot);
    while (takenStep(t, UINT64_MAX, note, storeDb(0))) {}
    assert_int_equal(visited, KEYS);
    assert_int_equal(saved, KEYS);
    slot = fill("a", KEYS); /* later keys, which are not of the snapshot */
    takenFree(dbTakeSlot(storeDb(0), slot));
    while (storeSavingStep(SLICE_BUCKETS)) {}
    assert_int_equal(saved, KEYS);
}

int test_taken(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(keys_are_gone_at_once_and_visited_once_in_slices, setUp,
                                        tearDown),
        cmocka_unit_test_setup_teardown(a_flush_of_everything_leaves_them_alone, setUp, tearDown),
        cmocka_unit_test_setup_teardown(
            an_empty_slot_gives_nothing_and_what_is_not_visited_is_freed, setUp, tearDown),
        cmocka_unit_test_setup_teardown(a_snapshot_gets_them_in_slices_before_they_are_visited,
                                        setUp, tearDown),
        cmocka_unit_test_setup_teardown(who_cannot_wait_passes_them_to_the_snapshot_at_once, setUp,
                                        tearDown),
    };
    return cmocka_run_group_tests_name("store/taken", tests, NULL, testNoObjects);
}
