/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Tests of base/slice. */
#include "base_test.h"

#include <stdlib.h>

#include "base/random.h"

static void test_equal(void **state) {
    (void)state;
    assert_true(sliceEqual(SLICE("a\0b"), sliceMake("a\0b", 3)));
    assert_false(sliceEqual(SLICE("a\0b"), SLICE("a\0c")));
    assert_false(sliceEqual(SLICE("a"), SLICE("ab")));
    assert_true(sliceEqual(sliceOf("abc"), SLICE("abc")));
    assert_int_equal(SLICE("").len, 0);
}

static bool equalFoldSlowly(slice a, slice b) {
    if (a.len != b.len) return false;
    for (size_t i = 0; i < a.len; i++) {
        unsigned char x = (unsigned char)a.ptr[i], y = (unsigned char)b.ptr[i];
        if (x >= 'A' && x <= 'Z') x += 32;
        if (y >= 'A' && y <= 'Z') y += 32;
        if (x != y) return false;
    }
    return true;
}

static void test_fold_agrees_with_a_plain_loop(void **state) {
    (void)state;
    testSeed(__func__);
    for (int round = 0; round < 20000; round++) {
        size_t len = (size_t)randomUniform(40);
        /* Blocks of exactly `len` bytes, so that a sanitizer sees a read past them. */
        char *a = malloc(len + 1), *b = malloc(len + 1);
        testRandomText(a + 1, len, "aAzZ[@`{\xc1\xe1-");
        memcpy(b + 1, a + 1, len);
        for (size_t i = 1; i <= len; i++) {
            if (randomUniform(4) == 0) b[i] ^= 0x20;
            if (randomUniform(60) == 0) b[i] = 'q';
        }
        slice x = sliceMake(a + 1, len), y = sliceMake(b + 1, len);
        assert_int_equal(sliceEqualFold(x, y), equalFoldSlowly(x, y));
        free(a);
        free(b);
    }
}

static void test_is_compares_with_a_word(void **state) {
    (void)state;
    assert_true(sliceIs(SLICE("KeepTTL"), "KEEPTTL"));
    assert_true(sliceIs(SLICE(""), ""));
    assert_false(sliceIs(SLICE("KEEPTTLx"), "KEEPTTL"));
    assert_false(sliceIs(SLICE("KEEPTT"), "KEEPTTL"));
    assert_false(sliceIs(SLICE("\xc3\x84"), "\xc3\xa4")); /* no locale */
    assert_true(sliceIsHex(SLICE("09af"), 4));
    assert_false(sliceIsHex(SLICE("09af"), 5));
    assert_false(sliceIsHex(SLICE("09aF"), 4));
    assert_false(sliceIsHex(SLICE("09a\0"), 4));
}

int test_slice(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_equal),
        cmocka_unit_test(test_fold_agrees_with_a_plain_loop),
        cmocka_unit_test(test_is_compares_with_a_word),
    };
    return cmocka_run_group_tests_name("slice", tests, NULL, NULL);
}
