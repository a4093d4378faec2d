/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Tests of base/glob: answers of Valkey 9.1.2's KEYS (PUBSUB CHANNELS for "*"), a plain recursive
 * matcher, hostile patterns. */
#include "base_test.h"

#include <stdlib.h>

#include "base/bytes.h"
#include "base/glob.h"
#include "base/random.h"

static void test_results_of_valkey(void **state) {
    (void)state;
    static const struct {
        const char *pattern, *text;
        bool match;
    } cases[] = {
        {"", "a", 0},        {"a", "", 0},        {"", "", 1},        {"*", "", 0},
        {"**", "", 0},       {"*", "abc", 1},     {"?", "", 0},       {"a*", "abc", 1},
        {"*c", "abc", 1},    {"*b", "abc", 0},    {"a?c", "abc", 1},  {"a*b*c", "aXbYbZc", 1},
        {"[", "[", 0},       {"[a", "a", 1},      {"[a-", "a", 1},    {"[a-", "-", 1},
        {"[^a", "b", 1},     {"[^", "x", 1},      {"[]", "x", 0},     {"[]a]", "a", 0},
        {"[]a]", "]", 0},    {"[z-a]", "m", 1},   {"\\", "\\", 1},    {"a\\", "a\\", 1},
        {"\\a", "a", 1},     {"\\*", "a", 0},     {"\\*", "*", 1},    {"[\\]]", "]", 1},
        {"[\\-a]", "-", 1},  {"[a\\-z]", "b", 0}, {"[^\\]]", "a", 1}, {"[a-c-e]", "d", 0},
        {"[a-c-e]", "-", 1}, {"[a-c-e]", "e", 1}, {"**a", "ba", 1},   {"*[", "[", 0},
        {"[-a]", "-", 1},    {"[a-]", "-", 0},    {"[a-]", "b", 0},   {"[a-]", "]", 1},
        {"[^-a]", "b", 1},   {"[^a]", "a", 0},
    };
    for (size_t i = 0; i < COUNT_OF(cases); i++) {
        bool match = globMatch(sliceOf(cases[i].pattern), sliceOf(cases[i].text));
        if (match != cases[i].match) fail_msg("'%s' on '%s'", cases[i].pattern, cases[i].text);
    }
}

/* The definition, written down as recursion; one element of the pattern against one character. */
static bool elementMatches(const char *p, size_t len, uint8_t c, bool fold) {
    if (*p == '?') return true;
    if (*p != '[') {
        if (*p == '\\' && len > 1) p++;
        return fold ? byteFold(*p) == byteFold((char)c) : (uint8_t)*p == c;
    }
    bool negate = len > 1 && p[1] == '^', found = false;
    for (size_t i = negate ? 2 : 1; i < len && p[i] != ']'; i++) {
        uint8_t low = (uint8_t)p[i], high = low;
        if (p[i] == '\\' && i + 1 < len) {
            low = high = (uint8_t)p[++i];
        } else if (i + 2 < len && p[i + 1] == '-') {
            high = (uint8_t)p[i += 2];
        }
        uint8_t x = c;
        if (fold) {
            low = byteFold((char)low);
            high = byteFold((char)high);
            x = byteFold((char)c);
        }
        if ((x >= low && x <= high) || (x >= high && x <= low)) found = true;
    }
    return found != negate;
}

static size_t elementLength(const char *p, size_t len) {
    if (*p == '\\') return len > 1 ? 2 : 1;
    if (*p != '[') return 1;
    size_t i = 1;
    if (i < len && p[i] == '^') i++;
    while (i < len && p[i] != ']') {
        if (p[i] == '\\' && i + 1 < len) {
            i += 2;
        } else {
            i += i + 2 < len && p[i + 1] == '-' ? 3 : 1;
        }
    }
    return i < len ? i + 1 : len;
}

static bool matchSlowly(const char *p, size_t plen, const char *t, size_t tlen, bool fold) {
    if (plen == 0) return tlen == 0;
    if (*p == '*') {
        for (size_t skip = 0; skip <= tlen; skip++) {
            if (matchSlowly(p + 1, plen - 1, t + skip, tlen - skip, fold)) return true;
        }
        return false;
    }
    if (tlen == 0 || !elementMatches(p, plen, (uint8_t)*t, fold)) return false;
    size_t used = elementLength(p, plen);
    return matchSlowly(p + used, plen - used, t + 1, tlen - 1, fold);
}

static void test_random_patterns_against_the_definition(void **state) {
    (void)state;
    testSeed(__func__);
    int matches = 0;
    for (int round = 0; round < 200000; round++) {
        size_t plen = (size_t)randomUniform(9), tlen = (size_t)randomUniform(7);
        /* Blocks of their exact length, for the sanitizers. */
        char *p = malloc(plen + 1), *t = malloc(tlen + 1);
        testRandomText(p, plen, round & 1 ? "aAbB-[]^\\*?" : "ab*?");
        testRandomText(t, tlen, round & 1 ? "aAbB-]\\" : "ab");
        p = realloc(p, plen ? plen : 1);
        t = realloc(t, tlen ? tlen : 1);
        slice pattern = sliceMake(p, plen), text = sliceMake(t, tlen);
        bool expected = tlen ? matchSlowly(p, plen, t, tlen, false) : plen == 0;
        if (globMatch(pattern, text) != expected)
            fail_msg("'%.*s' on '%.*s'", (int)plen, p, (int)tlen, t);
        matches += expected;
        bool expected_fold = tlen ? matchSlowly(p, plen, t, tlen, true) : plen == 0;
        if (globMatchFold(pattern, text) != expected_fold)
            fail_msg("folded '%.*s' on '%.*s'", (int)plen, p, (int)tlen, t);
        free(p);
        free(t);
    }
    assert_true(matches > 10000); /* or the test tests little */
}

static void test_fold_ignores_ascii_case_only(void **state) {
    (void)state;
    assert_true(globMatchFold(SLICE("NEWS.[A-C]*"), SLICE("news.bx")));
    assert_false(globMatch(SLICE("NEWS.[A-C]*"), SLICE("news.bx")));
    assert_false(globMatchFold(SLICE("\xc4"), SLICE("\xe4")));
}

static void test_binary_text(void **state) {
    (void)state;
    assert_true(globMatch(SLICE("a\0*\xff"), SLICE("a\0b\0\xff")));
    assert_false(globMatch(SLICE("a\0b"), SLICE("a\0c")));
    assert_true(globMatch(SLICE("[\x80-\xff]"), SLICE("\xc3")));
}

/* An exponential matcher would not come back from these. */
static void test_hostile_patterns_end(void **state) {
    (void)state;
    char text[41], pattern[128];
    memset(text, 'a', 40);
    for (int i = 0; i < 60; i++) memcpy(pattern + 2 * i, "a*", 2);
    pattern[120] = 'b';
    assert_false(globMatch(sliceMake(pattern, 121), sliceMake(text, 40)));
    size_t len = 100000;
    char *stars = malloc(len), *as = malloc(len);
    for (size_t i = 0; i < len; i++) stars[i] = i & 1 ? '?' : '*';
    memset(as, 'a', len);
    assert_false(globMatch(sliceMake(stars, len), sliceMake(as, len / 2 - 1)));
    assert_false(globMatch(sliceMake(stars, len), sliceMake(as, len / 2)));
    memset(stars, '*', len);
    assert_true(globMatch(sliceMake(stars, len), sliceMake(as, len)));
    stars[len - 1] = 'b';
    assert_false(globMatch(sliceMake(stars, len), sliceMake(as, len)));
    memset(stars, '[', len);
    assert_true(globMatch(sliceMake(stars, len), SLICE("[")));
    assert_false(globMatch(sliceMake(stars, len), sliceMake(as, len)));
    free(stars);
    free(as);
}

/* Valkey follows a thousand nested stars and then answers "no match". */
static void test_more_than_a_thousand_stars_match_nothing(void **state) {
    (void)state;
    char text[1001], pattern[2002];
    memset(text, 'a', sizeof(text));
    for (size_t i = 0; i < sizeof(pattern); i += 2) memcpy(pattern + i, "*?", 2);
    assert_true(globMatch(sliceMake(pattern, 2000), sliceMake(text, 1001)));
    assert_false(globMatch(sliceMake(pattern, 2002), sliceMake(text, 1001)));
}

static void test_literal_prefix_ends_at_the_first_special_byte(void **state) {
    (void)state;
    assert_int_equal(globLiteralPrefix(SLICE("")), 0);
    assert_int_equal(globLiteralPrefix(SLICE("*")), 0);
    assert_int_equal(globLiteralPrefix(SLICE("user:1")), 6);
    assert_int_equal(globLiteralPrefix(SLICE("user:*:a")), 5);
    assert_int_equal(globLiteralPrefix(SLICE("a?")), 1);
    assert_int_equal(globLiteralPrefix(SLICE("a]^-[b]")), 4);
    assert_int_equal(globLiteralPrefix(SLICE("ab\\*")), 2);
    assert_int_equal(globLiteralPrefix(SLICE("a\0b*")), 3);
}

int test_glob(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_results_of_valkey),
        cmocka_unit_test(test_random_patterns_against_the_definition),
        cmocka_unit_test(test_fold_ignores_ascii_case_only),
        cmocka_unit_test(test_binary_text),
        cmocka_unit_test(test_hostile_patterns_end),
        cmocka_unit_test(test_more_than_a_thousand_stars_match_nothing),
        cmocka_unit_test(test_literal_prefix_ends_at_the_first_special_byte),
    };
    return cmocka_run_group_tests_name("glob", tests, NULL, NULL);
}
