/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Tests of base/bits against one bit at a time. */
#include "base_test.h"

#include <string.h>

#include "base/bits.h"
#include "base/random.h"

enum { BYTES = 1200 };

static bool bitAt(const char *bytes, uint64_t at) {
    return (unsigned char)bytes[at / 8] >> (7 - at % 8) & 1;
}

static void fill(char *bytes, size_t len, unsigned round) {
    for (size_t i = 0; i < len; i++)
        bytes[i] = round % 3 == 0 ? 0 : round % 3 == 1 ? (char)0xff : (char)randomUniform(256);
    /* A lonely one in what is all alike. */
    bytes[randomUniform(len)] ^= (char)(1u << randomUniform(8));
}

static void test_counting_and_finding_agree_with_bits_one_by_one(void **state) {
    (void)state;
    char bytes[BYTES];
    for (unsigned round = 0; round < 300; round++) {
        size_t len = 1 + randomUniform(BYTES);
        fill(bytes, len, round);
        uint64_t from = randomUniform(len * 8 + 1), end = randomUniform(len * 8 + 1);
        bool bit = randomUniform(2);
        uint64_t count = 0, all = 0, found = BITS_NONE;
        for (uint64_t i = 0; i < len * 8; i++) {
            all += bitAt(bytes, i);
            if (i < from || i >= end) continue;
            count += bitAt(bytes, i);
            if (found == BITS_NONE && bitAt(bytes, i) == bit) found = i;
        }
        assert_int_equal(bitsCount(bytes, len), all);
        assert_int_equal(bitsCountRange(bytes, from, end), count);
        assert_true(bitsFind(bytes, from, end, bit) == found);
    }
}

static void test_every_byte_full_counts_beyond_what_a_byte_holds(void **state) {
    (void)state;
    static char bytes[100000];
    memset(bytes, 0xff, sizeof(bytes));
    assert_int_equal(bitsCount(bytes, sizeof(bytes)), sizeof(bytes) * 8);
    assert_int_equal(bitsCountRange(bytes, 1, sizeof(bytes) * 8 - 1), sizeof(bytes) * 8 - 2);
}

static void test_combining_bytes(void **state) {
    (void)state;
    char a[100], b[100], to[100];
    fill(a, sizeof(a), 2);
    fill(b, sizeof(b), 2);
    for (size_t len = 0; len <= sizeof(a); len += 33) {
        memcpy(to, a, sizeof(a));
        bitsAnd(to, to, b, len);
        for (size_t i = 0; i < sizeof(a); i++)
            assert_int_equal(to[i], i < len ? (char)(a[i] & b[i]) : a[i]);
        memcpy(to, a, sizeof(a));
        bitsOr(to, b, to, len);
        for (size_t i = 0; i < sizeof(a); i++)
            assert_int_equal(to[i], i < len ? (char)(a[i] | b[i]) : a[i]);
        memset(to, 7, sizeof(to));
        bitsXor(to, a, b, len);
        for (size_t i = 0; i < sizeof(a); i++)
            assert_int_equal(to[i], i < len ? (char)(a[i] ^ b[i]) : 7);
        memset(to, 7, sizeof(to));
        bitsNot(to, a, len);
        for (size_t i = 0; i < sizeof(a); i++) assert_int_equal(to[i], i < len ? (char)~a[i] : 7);
    }
}

static void test_numbers_at_any_bit(void **state) {
    (void)state;
    char bytes[32], was[32];
    for (unsigned round = 0; round < 2000; round++) {
        fill(bytes, sizeof(bytes), 2);
        memcpy(was, bytes, sizeof(was));
        unsigned count = 1 + (unsigned)randomUniform(64);
        uint64_t from = randomUniform(sizeof(bytes) * 8 - count + 1);
        uint64_t value = randomNext(), mask = count == 64 ? UINT64_MAX : (UINT64_C(1) << count) - 1;
        bitsWrite(bytes, from, count, value);
        assert_true(bitsRead(bytes, sizeof(bytes), from, count) == (value & mask));
        for (uint64_t i = 0; i < sizeof(bytes) * 8; i++) {
            bool want =
                i >= from && i < from + count ? value >> (from + count - 1 - i) & 1 : bitAt(was, i);
            assert_int_equal(bitAt(bytes, i), want);
        }
    }
    assert_int_equal(bitsRead("\xff", 1, 4, 8), 0xf0);
    assert_int_equal(bitsRead("\xff", 1, 1000, 64), 0);
}

int test_bits(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_counting_and_finding_agree_with_bits_one_by_one),
        cmocka_unit_test(test_every_byte_full_counts_beyond_what_a_byte_holds),
        cmocka_unit_test(test_combining_bytes),
        cmocka_unit_test(test_numbers_at_any_bit),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
