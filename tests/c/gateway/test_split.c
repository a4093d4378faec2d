/* SPDX-License-Identifier: BSD-3-Clause
 *
 * split.c: one request per slot, with the keys in their order. */
#include "gateway/split.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#include <cmocka.h>

#include "base/hash.h"
#include "base/random.h"

static void test_keys_with_values(void **state) {
    (void)state;
    /* Slots: {b} 3300, {c} 7365, {a} 15495. */
    const slice argv[] = {SLICE("MSET"), SLICE("a"), SLICE("1"), SLICE("b"),
                          SLICE("2"),    SLICE("c"), SLICE("3"), SLICE("{a}x"),
                          SLICE("4"),    SLICE("a"), SLICE("5")};
    splitRequest s;
    splitBegin(&s, 2, 11, argv);
    assert_int_equal(3, s.count);
    assert_int_equal(5, s.key_count);
    assert_int_equal(3, s.parts[0].argc);
    assert_true(sliceEqual(s.parts[0].argv[0], SLICE("MSET")));
    assert_true(sliceEqual(s.parts[0].argv[2], SLICE("2")));
    assert_int_equal(15495, s.parts[2].slot);
    assert_int_equal(7, s.parts[2].argc);
    const char *last[] = {"MSET", "a", "1", "{a}x", "4", "a", "5"};
    for (int i = 0; i < 7; i++) assert_true(sliceEqual(s.parts[2].argv[i], sliceOf(last[i])));
    const int positions[] = {1, 2, 0, 3, 4};
    assert_memory_equal(positions, s.positions, sizeof(positions));
    splitEnd(&s);
}

/* Each key is in one part, that of its slot, and `positions` says which one it is. */
static void test_random_keys(void **state) {
    (void)state;
    enum { KEYS = 300 };
    randomSeed(3);
    char texts[KEYS][16];
    slice argv[KEYS + 1] = {SLICE("DEL")};
    for (int i = 0; i < KEYS; i++) {
        snprintf(texts[i], sizeof(texts[i]), "%d", (int)randomUniform(100));
        argv[i + 1] = sliceOf(texts[i]);
    }
    splitRequest s;
    splitBegin(&s, 1, KEYS + 1, argv);
    int at = 0;
    for (int i = 0; i < s.count; i++) {
        if (i) assert_true(s.parts[i - 1].slot < s.parts[i].slot);
        for (int k = 1; k < s.parts[i].argc; k++, at++) {
            slice key = s.parts[i].argv[k];
            assert_int_equal(s.parts[i].slot, hashSlot(key));
            assert_ptr_equal(key.ptr, argv[1 + s.positions[at]].ptr);
        }
    }
    assert_int_equal(KEYS, at);
    splitEnd(&s);
}

int test_split(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_keys_with_values),
        cmocka_unit_test(test_random_keys),
    };
    return cmocka_run_group_tests_name("split", tests, NULL, NULL);
}
