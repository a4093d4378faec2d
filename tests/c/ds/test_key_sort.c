/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Sorting of keys against qsort(). */
#define _GNU_SOURCE /* for qsort_r() */
#include "ds_test.h"

#include <stdlib.h>
#include <string.h>

#include "base/base.h"
#include "base/random.h"
#include "ds/key_sort.h"

enum { KEYS_MAX = 3000 };

/* The context counts the comparisons. */
static int compare(const void *a, const void *b, void *context) {
    ++*(int *)context;
    const sortKey *x = a, *y = b;
    if (x->order != y->order) return x->order < y->order ? -1 : 1;
    return (x->index > y->index) - (x->index < y->index);
}

static void test_agrees_with_qsort(void **state) {
    (void)state;
    testSeed("keys");
    static sortKey keys[KEYS_MAX], expected[KEYS_MAX];
    /* Of all numbers, of some that are much alike, and of equal ones. */
    const uint64_t masks[] = {UINT64_MAX, 0xff00ff, 0xffull << 56, 7, 0};
    for (int round = 0; round < 500; round++) {
        size_t count = randomUniform(round % 2 ? KEYS_MAX : 120);
        uint64_t mask = masks[randomUniform(COUNT_OF(masks))], high = randomNext() & ~mask;
        for (size_t i = 0; i < count; i++)
            keys[i] = (sortKey){(randomNext() & mask) | high, {.index = randomUniform(50)}};
        memcpy(expected, keys, sizeof(keys));
        int compared = 0;
        keySort(keys, count, compare, &compared);
        if (mask == 0 && count > 1) assert_true(compared > 0);
        qsort_r(expected, count, sizeof(*expected), compare, &compared);
        for (size_t i = 0; i < count; i++) {
            assert_true(keys[i].order == expected[i].order);
            assert_int_equal(keys[i].index, expected[i].index);
        }
    }
}

int test_key_sort(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_agrees_with_qsort),
    };
    return cmocka_run_group_tests_name("key_sort", tests, NULL, NULL);
}
