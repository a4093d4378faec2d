/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Dictionaries of compressed values: classes, users, numbers, compressing and expanding. */
#include "store_test.h"

#include <pthread.h>
#include <stdio.h>

#include "base/base.h"
#include "base/random.h"
#include "store/dictionary.h"
#include "store/key_prefix.h"

enum { VALUE = 512, SAMPLES = 400 };

/* A record such as programs store, different for each number. */
static size_t record(char *to, uint64_t number) {
    uint64_t x = (number + 1) * UINT64_C(0x9e3779b97f4a7c15);
    return (size_t)snprintf(to, VALUE,
                            "{\"user\":%llu,\"name\":\"user %x\",\"roles\":[\"reader\",\"%s\"],"
                            "\"created\":\"2026-11-%02u\",\"session\":\"%016llx\"}",
                            (unsigned long long)number, (unsigned)(x & 0xffff),
                            x & 0x10000 ? "writer" : "auditor", (unsigned)(x >> 32) % 30 + 1,
                            (unsigned long long)x);
}

/* A dictionary trained on records; the caller frees it. */
static str trained(void) {
    char *samples = memAlloc((size_t)SAMPLES * VALUE);
    size_t lengths[SAMPLES], bytes = 0;
    for (int i = 0; i < SAMPLES; i++) bytes += lengths[i] = record(samples + bytes, (uint64_t)i);
    str out = STR_EMPTY;
    char *to = strReserve(&out, 4096);
    strGrow(&out, valueCodecTrain(samples, lengths, SAMPLES, to, 4096));
    memFree(samples);
    return out;
}

static uint32_t add(int db_id, slice prefix) {
    str bytes = trained();
    uint32_t id = 0;
    reason why = {""};
    assert_true(bytes.len > 256);
    assert_int_equal(dictionaryAdd(db_id, prefix, strSlice(&bytes), &id, &why), OK);
    strFree(&bytes);
    return id;
}

static bool missing(void) { return valueCodecRequire(NULL) != OK; }

static int tearDown(void **state) {
    (void)state;
    dictionaryReport r;
    for (uint32_t id = 1; id <= DICTIONARY_ID_MAX; id++) {
        if (dictionaryRead(id, &r)) dictionaryRelease(id, r.users);
    }
    dictionariesFree();
    return 0;
}

static void test_a_prefix_ends_with_the_first_separator(void **state) {
    assert_true(sliceEqual(keyPrefix(SLICE("user:1:name")), SLICE("user:")));
    assert_true(sliceEqual(keyPrefix(SLICE("a-b:c")), SLICE("a-")));
    assert_int_equal(keyPrefix(SLICE("user")).len, 0);
    assert_int_equal(keyPrefix(SLICE("")).len, 0);
    assert_true(sliceEqual(keyPrefix(SLICE("a\0b:c")), SLICE("a\0b:")));
    char longest[KEY_PREFIX_MAX + 1];
    memset(longest, 'x', sizeof(longest));
    longest[KEY_PREFIX_MAX - 1] = ':';
    assert_int_equal(keyPrefix(sliceMake(longest, sizeof(longest))).len, KEY_PREFIX_MAX);
    longest[KEY_PREFIX_MAX - 1] = 'x';
    longest[KEY_PREFIX_MAX] = ':';
    assert_int_equal(keyPrefix(sliceMake(longest, sizeof(longest))).len, 0);
}

static void test_a_key_finds_the_dictionary_of_its_class(void **state) {
    if (missing()) skip();
    assert_null(dictionaryOfKey(0, SLICE("user:1")));
    uint32_t users = add(0, SLICE("user:"));
    assert_int_equal(dictionaryId(dictionaryOfKey(0, SLICE("user:1"))), users);
    assert_null(dictionaryOfKey(1, SLICE("user:1")));
    assert_null(dictionaryOfKey(0, SLICE("cart:1")));
    assert_null(dictionaryOfKey(0, SLICE("plain")));
    uint32_t rest = add(0, SLICE(""));
    assert_int_not_equal(rest, users);
    assert_int_equal(dictionaryId(dictionaryOfKey(0, SLICE("user:1"))), users);
    assert_int_equal(dictionaryId(dictionaryOfKey(0, SLICE("cart:1"))), rest);
    assert_int_equal(dictionaryId(dictionaryOfKey(0, SLICE("plain"))), rest);
    assert_null(dictionaryOfKey(1, SLICE("plain")));
    dictionariesSwap(0, 1);
    assert_int_equal(dictionaryId(dictionaryOfKey(1, SLICE("user:1"))), users);
    assert_null(dictionaryOfKey(0, SLICE("user:1")));
    dictionaryRetire(1, SLICE("user:"));
    assert_null(dictionaryOfKey(1, SLICE("user:1")));
}

static void test_what_was_compressed_is_expanded(void **state) {
    if (missing()) skip();
    testSeed("dictionary");
    uint32_t id = add(0, SLICE("user:"));
    const valueDictionary *d = dictionaryById(id);
    char plain[VALUE], packed[VALUE], back[VALUE];
    size_t all_plain = 0, all_packed = 0;
    for (uint64_t i = 0; i < 2000; i++) {
        size_t len = record(plain, 1000000 + i);
        size_t n = dictionaryCompress(d, sliceMake(plain, len), packed, len);
        assert_true(n > 0);
        all_plain += len, all_packed += n;
        memset(back, 0, sizeof(back));
        assert_true(dictionaryExpand(id, sliceMake(packed, n), back, len));
        assert_memory_equal(plain, back, len);
        /* Another size is refused; a part of a short value may be another text. */
        assert_false(dictionaryExpand(id, sliceMake(packed, n), back, len + 1));
        assert_false(dictionaryExpand(id, sliceMake(packed, n), back, len - 1));
        if (dictionaryExpand(id, sliceMake(packed, n - 1), back, len))
            assert_memory_not_equal(plain, back, len);
    }
    assert_true(all_packed * 2 < all_plain);
    assert_false(dictionaryExpand(id + 1, sliceMake(packed, 1), back, 1));
    assert_false(dictionaryExpand(0, sliceMake(packed, 1), back, 1));
    dictionaryReport r;
    assert_true(dictionaryRead(id, &r));
    assert_int_equal(r.tried, 2000);
    assert_int_equal(r.stored, 2000);
    assert_int_equal(r.plain_bytes, all_plain);
    assert_int_equal(r.packed_bytes, all_packed);
    assert_true(r.recent > 0.05);
    assert_true(r.recent < 0.5);
    assert_int_equal(r.users, 0);
    assert_true(r.is_current);
}

static void test_what_does_not_fit_is_not_compressed(void **state) {
    if (missing()) skip();
    uint32_t id = add(0, SLICE("user:"));
    const valueDictionary *d = dictionaryById(id);
    char plain[VALUE], packed[VALUE];
    size_t len = record(plain, 7);
    size_t n = dictionaryCompress(d, sliceMake(plain, len), packed, sizeof(packed));
    assert_int_equal(dictionaryCompress(d, sliceMake(plain, len), packed, n + 32), n);
    assert_int_equal(dictionaryCompress(d, sliceMake(plain, len), packed, n - 1), 0);
    assert_int_equal(dictionaryCompress(d, SLICE(""), packed, sizeof(packed)), 0);
    char noise[VALUE];
    randomSecret(noise, sizeof(noise));
    assert_int_equal(dictionaryCompress(d, sliceMake(noise, VALUE), packed, VALUE - 1), 0);
    dictionaryReport r;
    assert_true(dictionaryRead(id, &r));
    assert_int_equal(r.tried, 5);
    assert_int_equal(r.stored, 2);
}

/* Around the length up to which packed values have no headers; and bytes that are all the same. */
static void test_values_of_all_lengths_are_expanded(void **state) {
    if (missing()) skip();
    enum { LONGEST = 2600, AROUND = 1024 };
    testSeed("dictionary");
    uint32_t id = add(0, SLICE("user:"));
    const valueDictionary *d = dictionaryById(id);
    static char plain[LONGEST], packed[LONGEST + 64], back[LONGEST];
    unsigned below = 0, above = 0;
    for (size_t len = 1; len <= LONGEST; len++) {
        for (size_t i = 0; i < len; i++)
            plain[i] = len % 16 ? "0123456789abcdef"[randomUniform(16)] : 'x';
        size_t n = dictionaryCompress(d, sliceMake(plain, len), packed, sizeof(packed));
        if (!n) continue;
        assert_true(n < len);
        assert_true(dictionaryExpand(id, sliceMake(packed, n), back, len));
        assert_memory_equal(plain, back, len);
        below += n <= AROUND && n > AROUND - 64;
        above += n > AROUND && n <= AROUND + 64;
    }
    assert_true(below > 0);
    assert_true(above > 0);
    /* What can only be stored as it is gains nothing. */
    randomSecret(plain, LONGEST);
    for (size_t len = 1; len <= 900; len += 7)
        assert_int_equal(dictionaryCompress(d, sliceMake(plain, len), packed, sizeof(packed)), 0);
}

static void test_a_dictionary_is_freed_without_users(void **state) {
    if (missing()) skip();
    enum { TEN_MINUTES = 10 * 60 * 1000 };
    size_t before = memUsed();
    uint32_t old = add(0, SLICE("user:"));
    assert_true(memUsed() > before + 4096);
    dictionaryUse(old);
    dictionaryUse(old);
    uint64_t generation = dictionariesGeneration();
    uint32_t new = add(0, SLICE("user:"));
    assert_true(dictionariesGeneration() != generation);
    dictionaryReport r;
    assert_true(dictionaryRead(new, &r));
    assert_true(r.is_current);
    assert_true(dictionaryRead(old, &r));
    assert_false(r.is_current);
    assert_int_equal(dictionaryId(dictionaryOfKey(0, SLICE("user:1"))), new);
    dictionariesSweep(1);
    assert_non_null(dictionaryById(old));
    dictionaryUse(old);
    dictionaryRelease(old, 2);
    dictionariesSweep(2);
    assert_non_null(dictionaryById(old));
    dictionaryRelease(old, 1);
    dictionariesHold();
    dictionariesSweep(3);
    assert_non_null(dictionaryById(old));
    dictionariesUnhold();
    dictionariesSweep(4);
    assert_null(dictionaryById(old));
    /* The current one has never had users: it may get some. */
    assert_non_null(dictionaryById(new));
    dictionariesSweep(TEN_MINUTES);
    assert_non_null(dictionaryById(new));
    dictionaryUse(new);
    dictionariesSweep(4 + TEN_MINUTES);
    dictionaryRelease(new, 1);
    dictionariesSweep(5 + TEN_MINUTES);
    dictionariesSweep(4 + 2 * TEN_MINUTES);
    assert_non_null(dictionaryById(new));
    dictionariesSweep(5 + 2 * TEN_MINUTES);
    assert_null(dictionaryById(new));
    assert_null(dictionaryOfKey(0, SLICE("user:1")));
    assert_int_equal(dictionariesMemory(), 0);
}

static void test_there_are_limits(void **state) {
    if (missing()) skip();
    uint32_t id = 0;
    reason why = {""};
    char prefix[KEY_PREFIX_MAX + 2];
    memset(prefix, 'x', sizeof(prefix));
    assert_int_equal(dictionaryAdd(0, sliceMake(prefix, KEY_PREFIX_MAX + 1), SLICE("x"), &id, &why),
                     ERR_RANGE);
    for (int i = 0; i < DICTIONARY_CLASSES_MAX; i++) {
        int len = snprintf(prefix, sizeof(prefix), "class%d:", i);
        assert_int_equal(dictionaryAdd(0, sliceMake(prefix, (size_t)len), SLICE("text"), &id, &why),
                         OK);
        dictionaryUse(id);
    }
    assert_false(dictionaryHasRoom(0, SLICE("more:")));
    assert_true(dictionaryHasRoom(0, SLICE("class7:")));
    assert_int_equal(dictionaryAdd(0, SLICE("more:"), SLICE("text"), &id, &why), ERR_LIMIT);
    assert_string_equal(why.text, "there are 64 classes already");
    assert_int_equal(dictionaryId(dictionaryOfKey(0, SLICE("class7:1"))), 8);
    for (int i = DICTIONARY_CLASSES_MAX; i < DICTIONARY_ID_MAX; i++) {
        assert_int_equal(dictionaryAdd(0, SLICE("class7:"), SLICE("text"), &id, &why), OK);
        dictionaryUse(id);
    }
    assert_false(dictionaryHasRoom(0, SLICE("class7:")));
    assert_int_equal(dictionaryAdd(0, SLICE("class7:"), SLICE("text"), &id, &why), ERR_LIMIT);
    assert_string_equal(why.text, "there are 255 dictionaries already");
    dictionaryRelease(9, 1);
    dictionaryRetire(0, SLICE("class8:"));
    dictionariesSweep(1);
    assert_null(dictionaryOfKey(0, SLICE("class8:1")));
    assert_true(dictionaryHasRoom(0, SLICE("more:")));
    assert_int_equal(dictionaryAdd(0, SLICE("more:"), SLICE("text"), &id, &why), OK);
    assert_int_equal(id, 9);
    assert_int_equal(dictionaryId(dictionaryOfKey(0, SLICE("more:1"))), 9);
    assert_int_equal(dictionaryId(dictionaryOfKey(0, SLICE("class9:1"))), 10);
}

static void *expandMany(void *arg) {
    uint32_t id = *(const uint32_t *)arg;
    char plain[VALUE], packed[VALUE], back[VALUE];
    valueCodec *alone = NULL;
    assert_int_equal(valueCodecNew(SLICE(""), &alone, NULL), OK);
    size_t len = record(plain, 3);
    size_t n = valueCodecCompress(alone, sliceMake(plain, len), packed, sizeof(packed));
    assert_true(n > 0);
    for (int i = 0; i < 3000; i++) {
        assert_non_null(dictionaryById(id));
        assert_true(valueCodecExpand(alone, sliceMake(packed, n), back, len));
        assert_false(dictionaryExpand(id, sliceMake(packed, n), back, len + 1));
    }
    valueCodecFree(alone);
    return NULL;
}

static void test_threads_expand_at_the_same_time(void **state) {
    if (missing()) skip();
    enum { THREADS = 6 };
    uint32_t id = add(0, SLICE("user:"));
    pthread_t threads[THREADS];
    dictionariesHold();
    for (int i = 0; i < THREADS; i++)
        assert_int_equal(pthread_create(&threads[i], NULL, expandMany, &id), 0);
    char plain[VALUE], packed[VALUE];
    for (uint64_t i = 0; i < 3000; i++) {
        size_t len = record(plain, i);
        assert_true(dictionaryCompress(dictionaryById(id), sliceMake(plain, len), packed, len) > 0);
        if (i % 100 == 0) add(0, SLICE("user:"));
    }
    for (int i = 0; i < THREADS; i++) assert_int_equal(pthread_join(threads[i], NULL), 0);
    dictionariesUnhold();
}

int test_dictionary(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_a_prefix_ends_with_the_first_separator),
        cmocka_unit_test_teardown(test_a_key_finds_the_dictionary_of_its_class, tearDown),
        cmocka_unit_test_teardown(test_what_was_compressed_is_expanded, tearDown),
        cmocka_unit_test_teardown(test_what_does_not_fit_is_not_compressed, tearDown),
        cmocka_unit_test_teardown(test_values_of_all_lengths_are_expanded, tearDown),
        cmocka_unit_test_teardown(test_a_dictionary_is_freed_without_users, tearDown),
        cmocka_unit_test_teardown(test_there_are_limits, tearDown),
        cmocka_unit_test_teardown(test_threads_expand_at_the_same_time, tearDown),
    };
    return cmocka_run_group_tests_name("dictionaries", tests, NULL, NULL);
}
