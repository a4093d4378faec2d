/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Tests of ds/size_sample. */
#include "ds_test.h"

#include "base/hash.h"
#include "base/random.h"
#include "ds/size_sample.h"

static uint64_t hashOf(uint64_t number) { return hashBytes(&number, sizeof(number)); }

/* Small items, and a few large ones; 0: removed. */
static uint64_t anySize(void) {
    uint64_t kind = randomUniform(100);
    if (kind < 20) return 0;
    return kind < 98 ? 40 + randomUniform(200) : 1000 + randomUniform(1000000);
}

static void test_few_items_are_summed_exactly(void **state) {
    testSeed(__func__);
    enum { ITEMS = 10000 };
    static uint64_t sizes[2][ITEMS];
    memset(sizes, 0, sizeof(sizes));
    sizeSample s = {0};
    uint64_t sum[2] = {0};
    for (int step = 0; step < 50000; step++) {
        uint32_t group = (uint32_t)randomUniform(2);
        size_t i = (size_t)randomUniform(ITEMS);
        uint64_t size = anySize();
        sum[group] += size - sizes[group][i];
        sizes[group][i] = size;
        sizeSampleSet(&s, group, hashOf(i), size);
        assert_int_equal(sizeSampleSum(&s), sum[0] + sum[1]);
    }
    sizeSampleItem item;
    uint64_t visited = 0;
    for (size_t at = 0; sizeSampleNext(&s, &at, &item);) visited += item.size;
    assert_int_equal(visited, sum[0] + sum[1]);
    sizeSampleRemoveGroup(&s, 0);
    assert_int_equal(sizeSampleSum(&s), sum[1]);
    sizeSampleClear(&s);
    assert_int_equal(sizeSampleSum(&s), 0);
}

/* The hashes are fixed, and so are the results; the bound is five standard deviations. */
static void test_many_items_are_estimated_within_the_stated_error(void **state) {
    enum { ITEMS = 1000000 };
    sizeSample s = {0};
    uint64_t sum = 0, largest = 0;
    for (uint64_t i = 0; i < ITEMS; i++) {
        uint64_t size = 50 + i % 200;
        if (i % 10000 == 0) size = 3000000; /* a third of all */
        sizeSampleSet(&s, 7, hashOf(i), size);
        sum += size;
        if (i % 1000) continue;
        double off = (double)sizeSampleSum(&s) - (double)sum;
        assert_true(off < 5.0 / 128 * (double)sum);
        assert_true(off > -5.0 / 128 * (double)sum);
    }
    largest = sum;
    assert_true(sizeSampleBytes(&s) <= 1600000);
    for (uint64_t i = 0; i < ITEMS; i++) {
        sizeSampleSet(&s, 7, hashOf(i), 0);
        sum -= i % 10000 ? 50 + i % 200 : 3000000;
        if (i % 1000) continue;
        double off = (double)sizeSampleSum(&s) - (double)sum;
        assert_true(off < 5.0 / 128 * (double)largest);
        assert_true(off > -5.0 / 128 * (double)largest);
    }
    assert_int_equal(sizeSampleSum(&s), 0); /* errors do not accumulate */
    sizeSampleClear(&s);
}

static void test_nothing_is_an_empty_sample(void **state) {
    sizeSample s = {0};
    sizeSampleItem item;
    size_t at = 0;
    sizeSampleSet(&s, 0, 1, 0);
    sizeSampleRemoveGroup(&s, 0);
    assert_false(sizeSampleNext(&s, &at, &item));
    assert_int_equal(sizeSampleSum(&s), 0);
    sizeSampleClear(&s);
}

int test_size_sample(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_few_items_are_summed_exactly),
        cmocka_unit_test(test_many_items_are_estimated_within_the_stated_error),
        cmocka_unit_test(test_nothing_is_an_empty_sample),
    };
    return cmocka_run_group_tests_name("ds/size_sample", tests, NULL, NULL);
}
