/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Shapes: when they are made, found, counted and freed. */
#include "store_test.h"

#include <stdio.h>

#include "base/base.h"
#include "base/random.h"
#include "store/shape_priv.h"

enum { WIDTH = 40 };

static slice nameOf(int i, char *to) {
    return sliceMake(to, (size_t)snprintf(to, WIDTH, "name %d", i));
}

/* Names first, first + 1, ... */
static void fillNames(slice *names, char (*texts)[WIDTH], int first, int count) {
    for (int i = 0; i < count; i++) names[i] = nameOf(first + i, texts[i]);
}

static int setUp(void **state) {
    (void)state;
    const shapeLimits limits = {.shapes = 100, .fields = SHAPE_FIELDS_MAX, .names_bytes = 4000};
    shapeSetLimits(&limits);
    return 0;
}

static int tearDown(void **state) {
    (void)state;
    const shapeLimits none = {0};
    shapesFree();
    shapeSetLimits(&none);
    return 0;
}

/* Asks for a shape until there is one. */
static const shape *make(const slice *names, size_t count) {
    const shape *s = NULL;
    for (int i = 0; i < SHAPE_HASHES_MIN && !s; i++) s = shapeFor(names, count, 1);
    return s;
}

static void test_a_shape_is_made_when_enough_hashes_have_its_names(void **state) {
    char texts[5][WIDTH];
    slice names[5];
    fillNames(names, texts, 0, 5);
    for (int i = 1; i < SHAPE_HASHES_MIN; i++) assert_null(shapeFor(names, 5, 1));
    const shape *s = shapeFor(names, 5, 1);
    assert_non_null(s);
    assert_ptr_equal(shapeFor(names, 5, 1), s);
    assert_int_equal(shapeFieldCount(s), 5);
    for (unsigned i = 0; i < 5; i++) {
        assert_true(sliceEqual(shapeFieldName(s, i), names[i]));
        assert_int_equal(shapeFind(s, names[i]), i);
    }
    assert_int_equal(shapeFind(s, SLICE("name 5")), -1);
    assert_int_equal(shapeFind(s, SLICE("")), -1);
    assert_ptr_equal(shapeById(s->id), s);
}

static void test_the_order_of_names_counts(void **state) {
    slice there[3] = {SLICE("a"), SLICE("b"), SLICE("c")};
    slice other[3] = {SLICE("a"), SLICE("c"), SLICE("b")};
    const shape *s = make(there, 3);
    assert_non_null(s);
    assert_null(shapeFor(other, 3, 1));
    assert_ptr_not_equal(make(other, 3), s);
    assert_null(shapeFor(there, 2, 1));
}

static void test_equal_names_make_no_shape(void **state) {
    slice names[3] = {SLICE("a"), SLICE("b"), SLICE("a")};
    for (int i = 0; i < 3 * SHAPE_HASHES_MIN; i++) assert_null(shapeFor(names, 3, 1));
    shapesReport r;
    shapesGetReport(&r);
    assert_int_equal(r.shapes, 0);
}

static void test_names_can_be_every_other_word(void **state) {
    slice words[6] = {SLICE("x"), SLICE("1"), SLICE("yy"), SLICE("2"), SLICE("zzz"), SLICE("3")};
    slice names[3] = {SLICE("x"), SLICE("yy"), SLICE("zzz")};
    const shape *s = make(names, 3);
    assert_non_null(s);
    assert_ptr_equal(shapeFor(words, 3, 2), s);
}

static void test_a_field_more_leads_to_the_next_shape(void **state) {
    char texts[SHAPE_FIELDS_MAX][WIDTH];
    slice names[SHAPE_FIELDS_MAX];
    fillNames(names, texts, 0, 20);
    const shape *s = make(names, 1), *all = make(names, 20);
    assert_non_null(s);
    assert_non_null(all);
    for (size_t i = 1; i < 20; i++) {
        const shape *next = shapeAfter(s, names[i]);
        for (int n = 0; n < SHAPE_HASHES_MIN && !next; n++) next = shapeAfter(s, names[i]);
        assert_non_null(next);
        assert_int_equal(next->count, i + 1);
        assert_ptr_equal(shapeAfter(s, names[i]), next);
        assert_null(shapeAfter(s, SLICE("another")));
        assert_ptr_equal(shapeFor(names, i + 1, 1), next);
        s = next;
    }
    assert_ptr_equal(s, all);
    for (int n = 0; n < 2 * SHAPE_HASHES_MIN; n++) assert_null(shapeAfter(s, names[3]));
}

/* All lengths, and many names that differ in one byte. */
static void test_names_of_all_lengths_are_told_apart(void **state) {
    testSeed(__func__);
    const shapeLimits limits = {.shapes = 100, .fields = SHAPE_FIELDS_MAX, .names_bytes = 65535};
    shapeSetLimits(&limits);
    for (size_t len = 1; len < 70; len++) {
        static char texts[SHAPE_FIELDS_MAX + 1][70];
        slice names[SHAPE_FIELDS_MAX + 1];
        size_t count = sizeMin(SHAPE_FIELDS_MAX, 30 * len), place = (size_t)randomUniform(len);
        for (size_t i = 0; i <= count; i++) {
            memset(texts[i], 'n', len);
            texts[i][place] = (char)i;
            names[i] = sliceMake(texts[i], len);
        }
        const shape *s = make(names, count);
        assert_non_null(s);
        for (size_t i = 0; i < count; i++) assert_int_equal(shapeFind(s, names[i]), i);
        assert_int_equal(shapeFind(s, names[count]), -1);
        assert_int_equal(shapeFind(s, sliceMake(texts[0], len - 1)), -1);
    }
}

static void test_limits_refuse_new_shapes_only(void **state) {
    slice names[3] = {SLICE("a"), SLICE("b"), SLICE("c")}, others[2] = {SLICE("d"), SLICE("e")};
    const shape *s = make(names, 3);
    assert_non_null(s);
    const shapeLimits full = {.shapes = 1, .fields = 3, .names_bytes = 3};
    shapeSetLimits(&full);
    assert_ptr_equal(shapeFor(names, 3, 1), s);
    assert_null(make(others, 2));
    shapesReport r;
    shapesGetReport(&r);
    assert_int_equal(r.shapes, 1);
    assert_int_equal(r.refused, 1);
    const shapeLimits short_names = {.shapes = 9, .fields = 3, .names_bytes = 1};
    shapeSetLimits(&short_names);
    assert_null(make(others, 2));
    const shapeLimits few_fields = {.shapes = 9, .fields = 1, .names_bytes = 9};
    shapeSetLimits(&few_fields);
    assert_null(make(others, 2));
    assert_non_null(make(others, 1));
    const shapeLimits none = {0};
    shapeSetLimits(&none);
    assert_null(shapeFor(names, 3, 1));
}

/* Names that few have are counted together in few places, and do not hide one that many have. */
static void test_rare_names_do_not_hide_frequent_ones(void **state) {
    char texts[2][WIDTH];
    slice rare[2], frequent[2] = {SLICE("id"), SLICE("time")};
    const shape *s = NULL;
    for (int i = 0; i < 100000 && !s; i++) {
        fillNames(rare, texts, 2 * i, 2);
        assert_null(shapeFor(rare, 2, 1));
        if (i % 100 == 0) s = shapeFor(frequent, 2, 1);
    }
    assert_non_null(s);
    shapesReport r;
    shapesGetReport(&r);
    assert_int_equal(r.shapes, 1);
}

static void test_shapes_without_users_are_freed_after_some_time(void **state) {
    enum { STEP_MS = 10000 };
    slice names[2] = {SLICE("a"), SLICE("b")}, others[1] = {SLICE("c")};
    const shape *s = make(names, 2), *kept = make(others, 1);
    shapesReport r;
    int64_t now_ms = 1000000;
    shapeRetain(s);
    shapeRetain(kept);
    shapeRelease(s);
    unsigned sweeps = 0;
    for (r.shapes = 2; r.shapes == 2; sweeps++) {
        assert_in_range(sweeps, 0, 1000);
        shapesSweep(now_ms += STEP_MS);
        shapesGetReport(&r);
    }
    assert_in_range(sweeps, 10, 100);
    assert_int_equal(r.hashes, 1);
    assert_ptr_equal(shapeFor(others, 1, 1), kept);
    assert_null(shapeFor(names, 2, 1));
    s = make(names, 2); /* gets a number that is in use no more */
    assert_ptr_equal(shapeById(s->id), s);
    const shapeLimits few = {.shapes = 3, .fields = 9, .names_bytes = 99};
    shapeSetLimits(&few);
    for (int i = 0; i < 2; i++) shapesSweep(now_ms += STEP_MS);
    shapesGetReport(&r);
    assert_int_equal(r.shapes, 1); /* at once where there is little room */
    shapeRelease(kept);
}

static size_t shapeCount(void) {
    shapesReport r;
    shapesGetReport(&r);
    return r.shapes;
}

static void test_many_shapes_are_freed_in_steps(void **state) {
    (void)state;
    enum { SHAPES = 3000, MOST = 256, SWEEP_MS = 10000 };
    const shapeLimits many = {.shapes = 4000, .fields = 9, .names_bytes = SHAPE_NAMES_MAX};
    shapeSetLimits(&many);
    for (int i = 0; i < SHAPES; i++) {
        char text[WIDTH];
        slice name = nameOf(i, text);
        const shape *s = make(&name, 1);
        assert_non_null(s);
        shapeRetain(s);
        shapeRelease(s);
    }
    int64_t now_ms = 1000000;
    size_t before = shapeCount();
    assert_int_equal(before, SHAPES);
    for (int i = 0; before == SHAPES; i++) {
        assert_in_range(i, 0, 100);
        shapesSweep(now_ms += SWEEP_MS);
        size_t now = shapeCount();
        assert_in_range(before - now, 0, MOST);
        before = now;
    }
    /* The sweep goes on at each tick, and does not begin anew. */
    for (int i = 0; before > 1750; i++) {
        assert_in_range(i, 0, 100);
        shapesSweep(++now_ms);
        size_t now = shapeCount();
        assert_in_range(before - now, 1, MOST);
        before = now;
    }
}

static void test_each_keyspace_has_counts_of_its_own(void **state) {
    slice names[1] = {SLICE("a")};
    const shape *s = make(names, 1);
    for (int i = 0; i < 5; i++) shapeRetain(s);
    shapeCounts *first = shapeCountsUse(NULL);
    assert_int_equal(shapeCountNow(s), 0);
    for (int i = 0; i < 3; i++) shapeRetain(s);
    assert_int_equal(shapeCountNow(s), 3);
    assert_int_equal(shapeUsers(s), 8);
    shapeCountsDrop(shapeCountsUse(first));
    assert_int_equal(shapeCountNow(s), 5);
    assert_int_equal(shapeUsers(s), 5);
    shapeCountsDrop(shapeCountsUse(NULL));
    assert_int_equal(shapeUsers(s), 0);
}

/* Another thread is freeing some hashes when the keyspace is emptied as a whole. */
static void test_hashes_freed_by_another_thread_are_subtracted_once(void **state) {
    slice names[1] = {SLICE("a")};
    const shape *s = make(names, 1);
    shapeDrops drops = {NULL, 0}, more = {NULL, 0};
    assert_null(shapeCountsHold());
    shapeDropsSettle(&drops, NULL);
    for (int i = 0; i < 10; i++) shapeRetain(s);
    shapeCounts *held = shapeCountsHold(), *again = shapeCountsHold();
    for (int i = 0; i < 4; i++) shapeDropsAdd(&drops, s->id);
    for (int i = 0; i < 3; i++) shapeDropsAdd(&more, s->id);
    assert_int_equal(shapeUsers(s), 10);
    shapeDropsSettle(&drops, held);
    assert_int_equal(shapeUsers(s), 6);
    shapeCountsDrop(shapeCountsUse(NULL));
    assert_int_equal(shapeUsers(s), 0);
    shapeRetain(s);
    shapeDropsSettle(&more, again);
    assert_int_equal(shapeUsers(s), 1);
    shapeRelease(s);
}

static void test_the_largest_savings_are_reported_first(void **state) {
    enum { SHAPES = 20, SHOWN = 7 };
    char texts[1][WIDTH];
    slice names[1];
    for (int i = 0; i < SHAPES; i++) {
        fillNames(names, texts, i, 1);
        const shape *s = make(names, 1);
        for (int n = 0; n < 100 * ((i * 7) % SHAPES); n++) shapeRetain(s);
    }
    const shape *largest[SHOWN];
    assert_int_equal(shapesLargest(largest, SHOWN), SHOWN);
    for (int i = 0; i < SHOWN; i++) {
        assert_int_equal(shapeUsers(largest[i]), 100 * (SHAPES - 1 - i));
        assert_true(shapeSaved(largest[i]) > 0);
    }
    shapesReport r;
    shapesGetReport(&r);
    assert_int_equal(r.shapes, SHAPES);
    assert_int_equal(r.hashes, 100 * SHAPES * (SHAPES - 1) / 2);
    assert_true(r.saved > 0);
    shapeCountsDrop(shapeCountsUse(NULL));
    assert_int_equal(shapesLargest(largest, SHOWN), 0);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, setUp, tearDown)

int test_shape(void) {
    const struct CMUnitTest tests[] = {
        TEST(test_a_shape_is_made_when_enough_hashes_have_its_names),
        TEST(test_the_order_of_names_counts),
        TEST(test_equal_names_make_no_shape),
        TEST(test_names_can_be_every_other_word),
        TEST(test_a_field_more_leads_to_the_next_shape),
        TEST(test_names_of_all_lengths_are_told_apart),
        TEST(test_limits_refuse_new_shapes_only),
        TEST(test_rare_names_do_not_hide_frequent_ones),
        TEST(test_shapes_without_users_are_freed_after_some_time),
        TEST(test_many_shapes_are_freed_in_steps),
        TEST(test_each_keyspace_has_counts_of_its_own),
        TEST(test_hashes_freed_by_another_thread_are_subtracted_once),
        TEST(test_the_largest_savings_are_reported_first),
    };
    return cmocka_run_group_tests_name("shape", tests, NULL, testNoObjects);
}
