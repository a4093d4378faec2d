/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Tests of base/str. */
#include "base_test.h"

#include <limits.h>
#include <math.h>
#include <stdio.h>

#include "base/alloc.h"
#include "base/assert.h"
#include "base/base.h"
#include "base/random.h"
#include "base/str.h"

static void assertStr(const str *s, const char *bytes, size_t len) {
    assert_int_equal(s->len, len);
    assert_true(s->cap >= len);
    assert_memory_equal(strText(s), bytes, len);
    assert_int_equal(strText(s)[len], 0);
}

static void test_empty_owns_nothing(void **state) {
    (void)state;
    size_t before = memUsed();
    str s = STR_EMPTY;
    assertStr(&s, "", 0);
    assert_int_equal(strSlice(&s).len, 0);
    strClear(&s);
    strCut(&s, 0);
    strGrow(&s, 0);
    strAppend(&s, NULL, 0);
    assert_null(s.ptr);
    assert_int_equal(memUsed(), before);
    strFree(&s);
    str fresh = strNew(SLICE(""));
    assertStr(&fresh, "", 0);
    strFree(&fresh);
}

static void test_appending_all_kinds(void **state) {
    (void)state;
    size_t before = memUsed();
    str s = strNew(SLICE("a\0b"));
    assertStr(&s, "a\0b", 3);
    strAppendSlice(&s, SLICE("cd"));
    strAppendText(&s, "ef");
    strAppendByte(&s, 'g');
    strAppendInt(&s, INT64_MIN);
    strAppendFormat(&s, "<%s %d>", "x", 5);
    assertStr(&s, "a\0bcdefg-9223372036854775808<x 5>", 33);
    strCut(&s, 3);
    assertStr(&s, "a\0b", 3);
    strClear(&s);
    assertStr(&s, "", 0);
    assert_non_null(s.ptr);
    strFree(&s);
    assert_null(s.ptr);
    assert_int_equal(memUsed(), before);
}

static void test_reserve_and_grow(void **state) {
    (void)state;
    str s = STR_EMPTY;
    char *room = strReserve(&s, 5);
    memcpy(room, "12345", 5);
    assert_int_equal(s.len, 0);
    strGrow(&s, 3);
    assertStr(&s, "123", 3);
    assert_ptr_equal(strReserve(&s, 2), s.ptr + 3);
    strFree(&s);
}

/* With and without a part that only printf() can do. */
static void test_formats_agree_with_printf(void **state) {
    (void)state;
    char expected[400];
    str s = strNew(SLICE("x"));
#define FORMAT_ARGS \
    "a", "", INT_MIN, UINT_MAX, LONG_MIN, ULONG_MAX, LLONG_MIN, ULLONG_MAX, SIZE_MAX, (ssize_t)-1
#define FORMAT "%s<%s>%d,%u,%ld,%lu,%lld,%llu,%zu,%zd"
    snprintf(expected, sizeof(expected), "x" FORMAT "end", FORMAT_ARGS);
    strAppendFormat(&s, FORMAT "end", FORMAT_ARGS);
    assert_string_equal(s.ptr, expected);
    strCut(&s, 1);
    snprintf(expected, sizeof(expected), "x" FORMAT "%05.1f%%%-3d|%c", FORMAT_ARGS, 2.25, 7, 'c');
    strAppendFormat(&s, FORMAT "%05.1f%%%-3d|%c", FORMAT_ARGS, 2.25, 7, 'c');
    assert_string_equal(s.ptr, expected);
    strCut(&s, 1);
    snprintf(expected, sizeof(expected), "x%%%.*s|%.*s|%.*s%%", 3, "abcdef", 5, "ab", 0, "q");
    strAppendFormat(&s, "%%%.*s|%.*s|%.*s%%", 3, "abcdef", 5, "ab", 0, "q");
    assert_string_equal(s.ptr, expected);
    strCut(&s, 1);
    strAppendFormat(&s, "%s", "");
    assert_string_equal(s.ptr, "x");
    strFree(&s);
    strAppendFormat(&s, "%s", "");
    assert_string_equal(s.ptr, "");
    strFree(&s);
}

/* Halves of a hundredth are rounded to even; the largest numbers that need no printf(). */
static void test_hundredths_agree_with_printf(void **state) {
    (void)state;
    static const double values[] = {0,
                                    -0.0,
                                    0.005,
                                    0.015,
                                    0.125,
                                    0.375,
                                    0.625,
                                    0.995,
                                    99.995,
                                    1.005,
                                    5e-324,
                                    1e-20,
                                    4503599627370495.5,
                                    9007199254740991.0,
                                    9007199254740992.0,
                                    1e300,
                                    -1.5,
                                    INFINITY,
                                    NAN,
                                    2.675,
                                    1e15};
    char expected[400];
    str s = STR_EMPTY;
    for (int i = 0; i < 100000; i++) {
        double value = i < (int)COUNT_OF(values)
                           ? values[i]
                           : (double)(i * 7919 % 100003) / (double)(i % 97 + 8);
        if (i % 3 == 0) value = ldexp(value, i % 40 - 30);
        snprintf(expected, sizeof(expected), "%.2f", value);
        strAppendFormat(&s, "%.2f", value);
        assert_string_equal(s.ptr, expected);
        strClear(&s);
    }
    strFree(&s);
}

static void test_long_formats_are_not_cut(void **state) {
    (void)state;
    str s = STR_EMPTY;
    char text[5000];
    memset(text, 'y', sizeof(text) - 1);
    text[sizeof(text) - 1] = '\0';
    strAppendFormat(&s, "[%s]", text);
    assert_int_equal(s.len, sizeof(text) + 1);
    assert_int_equal(s.ptr[0], '[');
    assert_int_equal(s.ptr[s.len - 1], ']');
    strFree(&s);
}

/* Growth is amortised: a million bytes one by one move the block a few dozen times. */
static void test_growth_is_amortised(void **state) {
    (void)state;
    str s = STR_EMPTY;
    size_t moves = 0, cap = 0;
    for (int i = 0; i < 3000000; i++) {
        strAppendByte(&s, (char)i);
        if (s.cap != cap) moves++;
        cap = s.cap;
    }
    assert_true(moves < 60);
    for (int i = 0; i < 3000000; i++) {
        if (s.ptr[i] != (char)i) fail();
    }
    strFree(&s);
}

static void reserveTooMuch(void) {
    str s = strNew(SLICE("x"));
    strReserve(&s, SIZE_MAX);
}

static void growPastTheEnd(void) {
    str s = strNew(SLICE("x"));
    strGrow(&s, s.cap);
}

static void test_misuse_stops(void **state) {
    (void)state;
    char output[1024];
    assert_true(testInChild(reserveTooMuch, output, sizeof(output)) > 0);
    assert_true(testInChild(growPastTheEnd, output, sizeof(output)) > 0);
}

static void test_quoted(void **state) {
    (void)state;
    str s = STR_EMPTY;
    strAppendQuoted(&s, SLICE("a \"q\" \\ \n\r\t\a\b\x01\x7f\xff\0z"));
    const char *expected = "\"a \\\"q\\\" \\\\ \\n\\r\\t\\a\\b\\x01\\x7f\\xff\\x00z\"";
    assert_string_equal(strText(&s), expected);
    strClear(&s);
    strAppendQuoted(&s, SLICE(""));
    assert_string_equal(strText(&s), "\"\"");
    strFree(&s);
}

typedef struct splitCase {
    const char *line;
    int count; /* -1: unbalanced */
    const char *words[4];
} splitCase;

/* What Valkey 9.1.2 made of these as inline commands. */
static const splitCase split_cases[] = {
    {"", 0, {0}},
    {"   ", 0, {0}},
    {" \t\v\f a", 1, {"a"}},
    {"set  a\tb\r\n", 3, {"set", "a", "b"}},
    {"a\\x41", 1, {"a\\x41"}},
    {"\"a\\x41\\n\\r\\t\\b\\a\\q\\\"\\\\\"", 1, {"aA\n\r\t\b\aq\"\\"}},
    {"'a\\'b\\n'", 1, {"a'b\\n"}},
    {"\"abc\"d", 1, {"abcd"}},
    {"abc\"d e\"", 1, {"abcd e"}},
    {"'a'b 'c'", 2, {"ab", "c"}},
    {"a'b'", 1, {"ab"}},
    {"\"\" ''", 2, {"", ""}},
    {"a\vb", 1, {"a\vb"}},
    {"\"\\x4\"", 1, {"x4"}},
    {"\"\\xzz\"", 1, {"xzz"}},
    {"\"\\xA\"", 1, {"xA"}},
    {"\"\\xAg\"", 1, {"xAg"}},
    {"\"\\xaF\"", 1, {"\xaf"}},
    {"\"a b\"c\\\"d\"", 1, {"a bc\\d"}},
    {"\"a\\\"b\"", 1, {"a\"b"}},
    {"\"a\\\"\"", 1, {"a\""}},
    {"\"\\\"\" x", 2, {"\"", "x"}},
    {"\"\\\"", 1, {"\\"}},
    {"\"a\\\"", 1, {"a\\"}},
    {"'a\\'", 1, {"a\\"}},
    {"'a\\\\'", 1, {"a\\\\"}},
    {"\"\\\" b", -1, {0}},
    {"\"\\\"b", -1, {0}},
    {"\"\\x41", -1, {0}},
    {"\"open", -1, {0}},
    {"a 'open", -1, {0}},
    {"a\\\"b", -1, {0}},
    {"'a\\'b", -1, {0}},
    {"\"", -1, {0}},
    {"'", -1, {0}},
};

static void test_split_words_as_valkey_does(void **state) {
    (void)state;
    size_t before = memUsed();
    for (size_t i = 0; i < sizeof(split_cases) / sizeof(split_cases[0]); i++) {
        const splitCase *c = &split_cases[i];
        str *words = NULL;
        int count = 0;
        bool balanced = strSplitWords(sliceOf(c->line), &words, &count);
        if (balanced != (c->count >= 0)) print_message("line: %s\n", c->line);
        assert_int_equal(balanced, c->count >= 0);
        if (!balanced) continue;
        assert_int_equal(count, c->count);
        for (int w = 0; w < count; w++) {
            assert_non_null(words[w].ptr);
            assert_string_equal(words[w].ptr, c->words[w]);
        }
        strFreeWords(words, count);
    }
    assert_int_equal(memUsed(), before);
}

static void test_split_ends_at_a_nul(void **state) {
    (void)state;
    str *words;
    int count;
    assert_true(strSplitWords(SLICE("a b\0c \"d"), &words, &count));
    assert_int_equal(count, 2);
    assert_string_equal(words[1].ptr, "b");
    strFreeWords(words, count);
}

/* What strAppendQuoted() writes is read back as one word, except NULs, which end a line when they
 * are not escaped. */
static void test_quoted_words_come_back(void **state) {
    (void)state;
    testSeed(__func__);
    size_t before = memUsed();
    for (int round = 0; round < 5000; round++) {
        char text[3][20];
        size_t lens[3];
        str line = STR_EMPTY;
        for (int w = 0; w < 3; w++) {
            lens[w] = (size_t)randomUniform(sizeof(text[w]));
            for (size_t i = 0; i < lens[w]; i++) text[w][i] = (char)randomNext();
            if (round & 1) testRandomText(text[w], lens[w], "\"'\\ \nxan0");
            strAppendQuoted(&line, sliceMake(text[w], lens[w]));
            strAppendByte(&line, ' ');
        }
        str *words;
        int count;
        assert_true(strSplitWords(strSlice(&line), &words, &count));
        assert_int_equal(count, 3);
        for (int w = 0; w < 3; w++) assertStr(&words[w], text[w], lens[w]);
        strFreeWords(words, count);
        strFree(&line);
    }
    assert_int_equal(memUsed(), before);
}

/* Whatever comes: no leak, no read outside (sanitizers), words within the line's length. */
static void test_split_survives_any_line(void **state) {
    (void)state;
    testSeed(__func__);
    size_t before = memUsed();
    for (int round = 0; round < 20000; round++) {
        size_t len = (size_t)randomUniform(24);
        char *line = memAlloc(len ? len : 1);
        testRandomText(line, len, "\"'\\ x4an\n\t");
        str *words;
        int count;
        if (strSplitWords(sliceMake(line, len), &words, &count)) {
            size_t total = 0;
            for (int w = 0; w < count; w++) total += words[w].len;
            assert_true(total <= len);
            strFreeWords(words, count);
        }
        memFree(line);
    }
    assert_int_equal(memUsed(), before);
}

int test_str(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_empty_owns_nothing),
        cmocka_unit_test(test_appending_all_kinds),
        cmocka_unit_test(test_reserve_and_grow),
        cmocka_unit_test(test_formats_agree_with_printf),
        cmocka_unit_test(test_hundredths_agree_with_printf),
        cmocka_unit_test(test_long_formats_are_not_cut),
        cmocka_unit_test(test_growth_is_amortised),
        cmocka_unit_test(test_misuse_stops),
        cmocka_unit_test(test_quoted),
        cmocka_unit_test(test_split_words_as_valkey_does),
        cmocka_unit_test(test_split_ends_at_a_nul),
        cmocka_unit_test(test_quoted_words_come_back),
        cmocka_unit_test(test_split_survives_any_line),
    };
    return cmocka_run_group_tests_name("str", tests, NULL, NULL);
}
