/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Tests of base/bytes: loads and stores at odd places, folding, small arithmetic. */
#include "base_test.h"

#include "base/bytes.h"
#include "base/random.h"

static void test_loads_and_stores_agree_at_any_alignment(void **state) {
    (void)state;
    unsigned char room[32];
    for (size_t at = 0; at < 8; at++) {
        for (size_t i = 0; i < sizeof(room); i++) room[i] = (unsigned char)(i * 7 + 1);
        storeU16(room + at, 0x1234);
        assert_int_equal(loadU16(room + at), 0x1234);
        assert_int_equal(room[at], 0x34);
        storeU32(room + at, 0x12345678);
        assert_int_equal(loadU32(room + at), 0x12345678);
        storeU64(room + at, 0x123456789abcdef0ull);
        assert_int_equal(loadU64(room + at), 0x123456789abcdef0ull);
        assert_int_equal(room[at], 0xf0);
        assert_int_equal(room[at + 8], (at + 8) * 7 + 1);
    }
}

static uint8_t foldSlowly(uint8_t c) { return c >= 'A' && c <= 'Z' ? (uint8_t)(c - 'A' + 'a') : c; }

static void test_fold_changes_capital_letters_only(void **state) {
    (void)state;
    for (int c = 0; c < 256; c++) assert_int_equal(byteFold((char)c), foldSlowly((uint8_t)c));
}

static void test_fold_of_eight_is_eight_folds(void **state) {
    (void)state;
    testSeed(__func__);
    for (int round = 0; round < 20000; round++) {
        uint8_t bytes[8], folded[8];
        for (int i = 0; i < 8; i++) {
            /* Half of them near the borders of the capital letters. */
            static const uint8_t near[] = {'@', 'A', 'Z', '[', 0xc0, 0xc1, 0xda, 0xdb};
            uint64_t r = randomNext();
            bytes[i] = r & 1 ? (uint8_t)(r >> 8) : near[r >> 8 & 7];
        }
        storeU64(folded, bytesFold8(loadU64(bytes)));
        for (int i = 0; i < 8; i++) assert_int_equal(folded[i], foldSlowly(bytes[i]));
    }
}

static void test_sizes(void **state) {
    (void)state;
    assert_int_equal(sizeMin(3, 5), 3);
    assert_int_equal(sizeMax(3, 5), 5);
    assert_int_equal(sizeRoundUp(0, 8), 0);
    assert_int_equal(sizeRoundUp(1, 8), 8);
    assert_int_equal(sizeRoundUp(8, 8), 8);
    assert_int_equal(sizeRoundUp(9, 8), 16);
    assert_int_equal(sizePowerOfTwo(0), 1);
    for (int bit = 0; bit < 63; bit++) {
        size_t power = (size_t)1 << bit;
        assert_int_equal(sizePowerOfTwo(power), power);
        if (bit > 0) assert_int_equal(sizePowerOfTwo(power + 1), power * 2);
        if (bit > 1) assert_int_equal(sizePowerOfTwo(power - 1), power);
    }
}

static void test_equal_bytes_of_any_length(void **state) {
    (void)state;
    enum { MOST = 50 };
    char a[MOST], b[MOST];
    for (size_t len = 0; len <= MOST; len++) {
        for (size_t i = 0; i < MOST; i++) a[i] = b[i] = (char)(i * 7);
        if (len < MOST) b[len]++; /* the byte after the end does not count */
        assert_true(bytesEqual(a, b, len));
        for (size_t i = 0; i < len; i++) {
            b[i] ^= 1;
            assert_false(bytesEqual(a, b, len));
            b[i] ^= 1;
        }
    }
}

typedef struct outer {
    int before;
    int field;
} outer;

static void test_container_of(void **state) {
    (void)state;
    outer o = {1, 2};
    int *field = &o.field;
    assert_ptr_equal(CONTAINER_OF(field, outer, field), &o);
    assert_int_equal(COUNT_OF(((int[]){1, 2, 3})), 3);
}

int test_bytes(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_loads_and_stores_agree_at_any_alignment),
        cmocka_unit_test(test_fold_changes_capital_letters_only),
        cmocka_unit_test(test_fold_of_eight_is_eight_folds),
        cmocka_unit_test(test_sizes),
        cmocka_unit_test(test_equal_bytes_of_any_length),
        cmocka_unit_test(test_container_of),
    };
    return cmocka_run_group_tests_name("bytes", tests, NULL, NULL);
}
