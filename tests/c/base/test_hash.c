/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Tests of base/hash and base/crc64 against plain forms of the same definitions. */
#include "base_test.h"

#include <stdlib.h>

#include "base/hash.h"
#include "base/random.h"

static uint64_t rotl(uint64_t x, int k) { return (x << k) | (x >> (64 - k)); }

static void round4(uint64_t v[4]) {
    v[0] += v[1];
    v[1] = rotl(v[1], 13);
    v[1] ^= v[0];
    v[0] = rotl(v[0], 32);
    v[2] += v[3];
    v[3] = rotl(v[3], 16);
    v[3] ^= v[2];
    v[0] += v[3];
    v[3] = rotl(v[3], 21);
    v[3] ^= v[0];
    v[2] += v[1];
    v[1] = rotl(v[1], 17);
    v[1] ^= v[2];
    v[2] = rotl(v[2], 32);
}

/* SipHash-c-d byte by byte, as the paper has it. */
static uint64_t sipSlowly(const uint8_t *in, size_t len, const uint8_t key[16], int c, int d) {
    uint64_t k[2] = {0, 0};
    for (int i = 0; i < 16; i++) k[i / 8] |= (uint64_t)key[i] << (8 * (i % 8));
    uint64_t v[4] = {k[0] ^ 0x736f6d6570736575ull, k[1] ^ 0x646f72616e646f6dull,
                     k[0] ^ 0x6c7967656e657261ull, k[1] ^ 0x7465646279746573ull};
    for (size_t word = 0; word <= len / 8; word++) {
        uint64_t m = word == len / 8 ? (uint64_t)len << 56 : 0;
        for (size_t i = word * 8; i < len && i < word * 8 + 8; i++)
            m |= (uint64_t)in[i] << (8 * (i % 8));
        v[3] ^= m;
        for (int i = 0; i < c; i++) round4(v);
        v[0] ^= m;
    }
    v[2] ^= 0xff;
    for (int i = 0; i < d; i++) round4(v);
    return v[0] ^ v[1] ^ v[2] ^ v[3];
}

/* The plain form is right: these are the published vectors of SipHash-2-4. */
static void test_plain_form_has_the_published_vectors(void **state) {
    (void)state;
    uint8_t key[16], in[16];
    for (int i = 0; i < 16; i++) key[i] = in[i] = (uint8_t)i;
    assert_int_equal(sipSlowly(in, 0, key, 2, 4), 0x726fdb47dd0e0e31ull);
    assert_int_equal(sipSlowly(in, 1, key, 2, 4), 0x74f839c593dc67fdull);
    assert_int_equal(sipSlowly(in, 15, key, 2, 4), 0xa129ca6149be45e5ull);
}

static void test_siphash_agrees_with_the_plain_form(void **state) {
    (void)state;
    testSeed(__func__);
    for (size_t len = 0; len < 300; len++) {
        uint8_t key[16];
        uint8_t *in = malloc(len ? len : 1);
        for (int i = 0; i < 16; i++) key[i] = (uint8_t)randomNext();
        for (size_t i = 0; i < len; i++) in[i] = (uint8_t)randomNext();
        uint64_t expected = sipSlowly(in, len, key, 1, 3);
        assert_int_equal(hashSip13(in, len, key), expected);
        hashSetSeed(key);
        assert_int_equal(hashBytes(in, len), expected);
        free(in);
    }
}

static void test_fold_hashes_the_lower_case_form(void **state) {
    (void)state;
    testSeed(__func__);
    for (int round = 0; round < 5000; round++) {
        size_t len = (size_t)randomUniform(40);
        char *text = malloc(len + 1), *lower = malloc(len + 1);
        testRandomText(text, len, "aAzZ@[`{\xc1 5");
        for (size_t i = 0; i < len; i++)
            lower[i] = text[i] >= 'A' && text[i] <= 'Z' ? (char)(text[i] + 32) : text[i];
        assert_int_equal(hashBytesFold(text, len), hashBytes(lower, len));
        free(text);
        free(lower);
    }
}

static void test_seed_changes_hashes(void **state) {
    (void)state;
    static const uint8_t one[16] = {1}, two[16] = {2};
    hashSetSeed(one);
    uint64_t first = hashBytes("key", 3);
    hashSetSeed(two);
    assert_true(hashBytes("key", 3) != first);
    hashSetSeed(one);
    assert_int_equal(hashBytes("key", 3), first);
}

static uint16_t crc16Slowly(const uint8_t *in, size_t len) {
    uint16_t crc = 0;
    for (size_t i = 0; i < len; i++) {
        crc ^= (uint16_t)(in[i] << 8);
        for (int bit = 0; bit < 8; bit++)
            crc = (uint16_t)(crc & 0x8000 ? crc << 1 ^ 0x1021 : crc << 1);
    }
    return crc;
}

/* Bit by bit with the reflected polynomial. */
static uint64_t crc64Slowly(uint64_t crc, const uint8_t *in, size_t len) {
    uint64_t reflected = 0;
    for (int bit = 0; bit < 64; bit++) {
        if (0xad93d23594c935a9ull >> bit & 1) reflected |= 1ull << (63 - bit);
    }
    for (size_t i = 0; i < len; i++) {
        crc ^= in[i];
        for (int bit = 0; bit < 8; bit++) crc = crc & 1 ? crc >> 1 ^ reflected : crc >> 1;
    }
    return crc;
}

static void test_check_values(void **state) {
    (void)state;
    assert_int_equal(crc16("123456789", 9), 0x31c3);
    assert_int_equal(crc64(0, "123456789", 9), 0xe9c6d914c4b8d9caull);
    assert_int_equal(crc16("", 0), 0);
    assert_int_equal(crc64(0, "", 0), 0);
    assert_int_equal(crc64(0x1234567890abcdefull, "", 0), 0x1234567890abcdefull);
}

static void test_crcs_agree_with_the_plain_forms(void **state) {
    (void)state;
    testSeed(__func__);
    for (int round = 0; round < 3000; round++) {
        /* Long ones are folded 64 bytes at a time. */
        size_t len = (size_t)randomUniform(round % 10 ? 100 : 1000);
        uint8_t *in = malloc(len ? len : 1);
        for (size_t i = 0; i < len; i++) in[i] = (uint8_t)randomNext();
        assert_int_equal(crc16(in, len), crc16Slowly(in, len));
        uint64_t start = round & 1 ? randomNext() : 0;
        uint64_t whole = crc64Slowly(start, in, len);
        assert_int_equal(crc64(start, in, len), whole);
        size_t cut = (size_t)randomUniform(len + 1);
        assert_int_equal(crc64(crc64(start, in, cut), in + cut, len - cut), whole);
        free(in);
    }
}

static void test_slots(void **state) {
    (void)state;
    static const struct {
        const char *key, *hashed;
    } pairs[] = {
        {"foo", "foo"},
        {"", ""},
        {"{user1000}.following", "user1000"},
        {"a{tag}b", "tag"},
        {"foo{}{bar}", "foo{}{bar}"},
        {"foo{{bar}}zap", "{bar"},
        {"foo{bar}{zap}", "bar"},
        {"{}", "{}"},
        {"{", "{"},
        {"}{", "}{"},
        {"}{x}", "x"},
        {"{open", "{open"},
        {"x}y{z}", "z"},
    };
    for (size_t i = 0; i < sizeof(pairs) / sizeof(pairs[0]); i++) {
        int expected =
            crc16Slowly((const uint8_t *)pairs[i].hashed, strlen(pairs[i].hashed)) % SLOT_COUNT;
        assert_int_equal(hashSlot(sliceOf(pairs[i].key)), expected);
    }
    assert_int_equal(hashSlot(SLICE("foo")), 12182);
    assert_int_equal(hashSlot(SLICE("x\0{bar}\0")), 5061);
}

int test_hash(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_plain_form_has_the_published_vectors),
        cmocka_unit_test(test_siphash_agrees_with_the_plain_form),
        cmocka_unit_test(test_fold_hashes_the_lower_case_form),
        cmocka_unit_test(test_seed_changes_hashes),
        cmocka_unit_test(test_check_values),
        cmocka_unit_test(test_crcs_agree_with_the_plain_forms),
        cmocka_unit_test(test_slots),
    };
    return cmocka_run_group_tests_name("hash", tests, NULL, NULL);
}
