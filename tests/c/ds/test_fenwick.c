/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Tests of ds/fenwick. */
#include "ds_test.h"

#include "base/alloc.h"
#include "base/random.h"
#include "ds/fenwick.h"

/* Every question, against a plain array. */
static void compareAll(const fenwick *f, const uint64_t *counts, size_t n) {
    uint64_t before = 0;
    for (size_t i = 0; i < n; i++) {
        assert_int_equal(fenwickGet(f, i), counts[i]);
        assert_int_equal(fenwickSumBefore(f, i), before);
        if (counts[i]) {
            uint64_t rest;
            assert_int_equal(fenwickFind(f, before, &rest), i);
            assert_int_equal(rest, 0);
            assert_int_equal(fenwickFind(f, before + counts[i] - 1, &rest), i);
            assert_int_equal(rest, counts[i] - 1);
        }
        before += counts[i];
    }
    assert_int_equal(fenwickSumBefore(f, n), before);
    assert_int_equal(f->total, before);
    size_t next = n;
    assert_int_equal(fenwickNext(f, n), n);
    for (size_t i = n; i-- > 0;) {
        if (counts[i]) next = i;
        assert_int_equal(fenwickNext(f, i), next);
    }
}

static void test_agrees_with_an_array_at_many_sizes(void **state) {
    testSeed(__func__);
    static const size_t sizes[] = {1, 2, 3, 7, 8, 9, 100, 128, 1000};
    for (size_t s = 0; s < sizeof(sizes) / sizeof(sizes[0]); s++) {
        fenwick f;
        uint64_t counts[1000] = {0};
        fenwickInit(&f, sizes[s]);
        compareAll(&f, counts, sizes[s]);
        for (int step = 0; step < 400; step++) {
            size_t i = (size_t)randomUniform(sizes[s]);
            int64_t delta = (int64_t)randomUniform(5) - (int64_t)(counts[i] < 2 ? counts[i] : 2);
            fenwickAdd(&f, i, delta);
            counts[i] += (uint64_t)delta;
            if (step % 20 == 0) compareAll(&f, counts, sizes[s]);
        }
        compareAll(&f, counts, sizes[s]);
        fenwickClear(&f);
    }
}

static void test_counts_beyond_32_bits(void **state) {
    fenwick f;
    uint64_t rest;
    fenwickInit(&f, 3);
    fenwickAdd(&f, 0, 5000000000);
    fenwickAdd(&f, 2, 7000000000);
    assert_int_equal(fenwickFind(&f, 5000000000ull, &rest), 2);
    assert_int_equal(rest, 0);
    assert_int_equal(fenwickFind(&f, 11999999999ull, &rest), 2);
    assert_int_equal(rest, 6999999999ull);
    fenwickClear(&f);
}

static void test_slots_of_a_cluster_take_128_kb(void **state) {
    fenwick f;
    fenwickInit(&f, 16384);
    assert_true(fenwickBytes(&f) >= 131072);
    assert_true(fenwickBytes(&f) < 131072 + 4096);
    fenwickClear(&f);
    assert_int_equal(fenwickBytes(&f), 0);
}

int test_fenwick(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_agrees_with_an_array_at_many_sizes),
        cmocka_unit_test(test_counts_beyond_32_bits),
        cmocka_unit_test(test_slots_of_a_cluster_take_128_kb),
    };
    return cmocka_run_group_tests_name("fenwick", tests, NULL, NULL);
}
