/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Tests of base/random. */
#include "base_test.h"

#include <pthread.h>

#include "base/random.h"

static void test_seed_fixes_the_sequence(void **state) {
    (void)state;
    uint64_t first[8];
    randomSeed(42);
    for (int i = 0; i < 8; i++) first[i] = randomNext();
    randomSeed(42);
    for (int i = 0; i < 8; i++) assert_int_equal(randomNext(), first[i]);
    randomSeed(43);
    assert_true(randomNext() != first[0]);
}

/* The recurrence written down plainly, from the state that SplitMix64 makes of seed 1. */
static void test_generator_is_xoshiro256starstar(void **state) {
    (void)state;
    uint64_t s[4], seed = 1;
    for (int i = 0; i < 4; i++) {
        uint64_t z = (seed += 0x9e3779b97f4a7c15ull);
        z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9ull;
        z = (z ^ (z >> 27)) * 0x94d049bb133111ebull;
        s[i] = z ^ (z >> 31);
    }
    randomSeed(1);
    for (int i = 0; i < 100; i++) {
        uint64_t x = s[1] * 5;
        assert_int_equal(randomNext(), ((x << 7) | (x >> 57)) * 9);
        uint64_t t = s[1] << 17;
        s[2] ^= s[0];
        s[3] ^= s[1];
        s[1] ^= s[2];
        s[0] ^= s[3];
        s[2] ^= t;
        s[3] = (s[3] << 45) | (s[3] >> 19);
    }
}

static void test_uniform_stays_below_the_bound_and_reaches_all(void **state) {
    (void)state;
    testSeed(__func__);
    int seen[7] = {0};
    for (int i = 0; i < 7000; i++) {
        uint64_t r = randomUniform(7);
        assert_true(r < 7);
        seen[r]++;
    }
    /* 1000 expected; 8 standard deviations are 234. */
    for (int i = 0; i < 7; i++) assert_in_range(seen[i], 750, 1250);
    for (int i = 0; i < 100; i++) assert_int_equal(randomUniform(1), 0);
    uint64_t huge = (1ull << 63) + 1;
    for (int i = 0; i < 100; i++) assert_true(randomUniform(huge) < huge);
}

static void test_secrets_differ_and_fill_all_bytes(void **state) {
    (void)state;
    unsigned char a[1000] = {0}, b[1000] = {0};
    randomSecret(a, sizeof(a));
    randomSecret(b, sizeof(b));
    assert_memory_not_equal(a, b, sizeof(a));
    /* 300 zero bytes in a row are beyond all chance. */
    unsigned char zeros[300] = {0};
    for (size_t i = 0; i + 300 <= sizeof(a); i += 100)
        assert_memory_not_equal(a + i, zeros, sizeof(zeros));
    randomSecret(a, 0);
}

static void countUp(void *dst, size_t len) {
    for (size_t i = 0; i < len; i++) ((unsigned char *)dst)[i] = (unsigned char)i;
}

static void test_source_of_secrets_may_be_swapped(void **state) {
    (void)state;
    unsigned char bytes[4];
    char hex[5] = {0};
    randomSetSecretSource(countUp);
    randomSecret(bytes, sizeof(bytes));
    randomHex(hex, 4);
    randomSetSecretSource(NULL);
    assert_memory_equal(bytes, "\0\1\2\3", 4);
    assert_string_equal(hex, "0123");
}

static void test_hex_has_hex_digits_and_ends_where_told(void **state) {
    (void)state;
    char text[201];
    memset(text, '!', sizeof(text));
    randomHex(text, 200);
    assert_int_equal(strspn(text, "0123456789abcdef"), 200);
    assert_int_equal(text[200], '!');
}

static void *firstNumber(void *arg) {
    *(uint64_t *)arg = randomNext();
    return NULL;
}

static void test_each_thread_has_its_own_state(void **state) {
    (void)state;
    uint64_t other[2];
    randomSeed(7);
    uint64_t expected = randomNext();
    randomSeed(7);
    for (int i = 0; i < 2; i++) {
        pthread_t id;
        assert_int_equal(pthread_create(&id, NULL, firstNumber, &other[i]), 0);
        assert_int_equal(pthread_join(id, NULL), 0);
    }
    assert_int_equal(randomNext(), expected);
    assert_true(other[0] != other[1]);
}

int test_random(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_seed_fixes_the_sequence),
        cmocka_unit_test(test_generator_is_xoshiro256starstar),
        cmocka_unit_test(test_uniform_stays_below_the_bound_and_reaches_all),
        cmocka_unit_test(test_secrets_differ_and_fill_all_bytes),
        cmocka_unit_test(test_source_of_secrets_may_be_swapped),
        cmocka_unit_test(test_hex_has_hex_digits_and_ends_where_told),
        cmocka_unit_test(test_each_thread_has_its_own_state),
    };
    return cmocka_run_group_tests_name("random", tests, NULL, NULL);
}
