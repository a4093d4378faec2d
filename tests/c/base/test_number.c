/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Tests of base/number: integers, sizes, parsing of floating-point numbers. */
#include "base_test.h"

#include <errno.h>
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>

#include "base/bytes.h"
#include "base/number.h"
#include "base/random.h"

/* A random number of random size, often next to a power of ten or two. */
static uint64_t randomNumber(void) {
    uint64_t n = randomNext() >> randomUniform(64);
    if (randomUniform(4) == 0) {
        n = 1;
        for (uint64_t i = randomUniform(20); i; i--) n *= 10;
        n += randomUniform(3) - 1;
    }
    if (randomUniform(4) == 0) n = ((uint64_t)1 << randomUniform(64)) + randomUniform(3) - 1;
    return n;
}

static void test_integers_print_as_printf_does_and_come_back(void **state) {
    (void)state;
    testSeed(__func__);
    for (int round = 0; round < 100000; round++) {
        uint64_t n = randomNumber();
        char expected[32], text[NUMBER_TEXT_MAX];
        uint64_t parsed = ~n;
        size_t len = (size_t)snprintf(expected, sizeof(expected), "%" PRIu64, n);
        assert_int_equal(numberPrintUint(text, n), len);
        assert_string_equal(text, expected);
        assert_int_equal(numberDigits(n), len);
        assert_true(numberParseUint(sliceMake(text, len), &parsed));
        assert_int_equal(parsed, n);
        int64_t i = (int64_t)n, parsed_int = ~i;
        len = (size_t)snprintf(expected, sizeof(expected), "%" PRId64, i);
        assert_int_equal(numberPrintInt(text, i), len);
        assert_string_equal(text, expected);
        assert_true(numberParseInt(sliceMake(text, len), &parsed_int));
        assert_int_equal(parsed_int, i);
    }
}

static void test_integers_at_the_limits(void **state) {
    (void)state;
    int64_t i = 7;
    uint64_t u = 7;
    assert_true(numberParseInt(SLICE("9223372036854775807"), &i));
    assert_int_equal(i, INT64_MAX);
    assert_true(numberParseInt(SLICE("-9223372036854775808"), &i));
    assert_int_equal(i, INT64_MIN);
    assert_true(numberParseUint(SLICE("18446744073709551615"), &u));
    assert_int_equal(u, UINT64_MAX);
    assert_true(numberParseInt(SLICE("0"), &i));
    assert_int_equal(i, 0);
    static const char *const bad[] = {
        "9223372036854775808",
        "-9223372036854775809",
        "18446744073709551616",
        "99999999999999999999",
        "100000000000000000000",
        "-0",
        "00",
        "01",
        "-01",
        "+1",
        "",
        "-",
        " 1",
        "1 ",
        "1\n",
        "0x1",
        "1.0",
        "1e3",
        "--1",
        "1-",
        "12345678a",
        "a2345678",
        "1234:678",
        "1234/678",
    };
    i = 77;
    for (size_t k = 0; k < COUNT_OF(bad); k++) {
        if (numberParseInt(sliceOf(bad[k]), &i)) fail_msg("taken: %s", bad[k]);
        assert_int_equal(i, 77);
    }
    assert_false(numberParseInt(SLICE("1\0"), &i));
    assert_false(numberParseUint(SLICE("-1"), &u));
    assert_false(numberParseUint(SLICE("18446744073709551616"), &u));
    assert_false(numberParseUint(SLICE("184467440737095516150"), &u));
    assert_int_equal(u, UINT64_MAX);
}

static void test_cursors_are_read_as_by_strtoull(void **state) {
    static const char *const good[] = {"5", "+5", " 5", "005", "\t 05"};
    static const char *const bad[] = {"", " ", "-1", "5 ", "x", "5x", "18446744073709551616"};
    uint64_t u = 77;
    for (size_t i = 0; i < COUNT_OF(bad); i++) {
        assert_false(numberParseCursor(sliceOf(bad[i]), &u));
        assert_int_equal(u, 77);
    }
    for (size_t i = 0; i < COUNT_OF(good); i++) {
        assert_true(numberParseCursor(sliceOf(good[i]), &u));
        assert_int_equal(u, 5);
    }
}

/* A text is an integer exactly when printing the number that strtoll() finds gives the text
 * again. */
static void test_random_text_is_accepted_if_printing_restores_it(void **state) {
    (void)state;
    testSeed(__func__);
    for (int round = 0; round < 200000; round++) {
        char text[24], again[32];
        size_t len = (size_t)randomUniform(22);
        testRandomText(text, len, round & 1 ? "0123456789" : "-+0019 :/");
        text[len] = '\0';
        errno = 0;
        long long expected = strtoll(text, NULL, 10);
        snprintf(again, sizeof(again), "%lld", expected);
        bool good = errno == 0 && strcmp(again, text) == 0;
        int64_t parsed = 0;
        assert_int_equal(numberParseInt(sliceMake(text, len), &parsed), good);
        if (good) assert_int_equal(parsed, expected);
    }
}

static void test_checked_arithmetic(void **state) {
    (void)state;
    int64_t r = 5;
    assert_false(numberAdd(INT64_MAX, 1, &r));
    assert_false(numberMul(INT64_MAX, 2, &r));
    assert_false(numberMul(INT64_MIN, -1, &r));
    assert_int_equal(r, 5);
    assert_true(numberAdd(INT64_MAX, INT64_MIN, &r));
    assert_int_equal(r, -1);
    assert_true(numberMul(-3, 7, &r));
    assert_int_equal(r, -21);
}

static bool sameBits(double a, double b) { return memcmp(&a, &b, sizeof(a)) == 0; }

static void assertDouble(const char *text) {
    double parsed = 7, expected = strtod(text, NULL);
    if (!numberParseDouble(sliceOf(text), &parsed)) fail_msg("refused: %s", text);
    if (!sameBits(parsed, expected)) fail_msg("%s: %.17g, not %.17g", text, parsed, expected);
}

/* Accepted and refused by ZADD of Valkey 9.1.2. */
static void test_doubles_are_parsed_as_scores_of_valkey(void **state) {
    (void)state;
    static const char *const good[] = {
        "0",
        "-0",
        "+5",
        ".5",
        "5.",
        "-.5",
        "1E5",
        "1e0005",
        "00001",
        "1e308",
        "2.5e-324",
        "4.9e-324",
        "1.7976931348623157e308",
        "2.2250738585072014e-308",
        "0e0",
        "0e999999999",
        "0.0e-999999999",
        "5e-1",
        "inf",
        "INF",
        "+inf",
        "-Infinity",
        "infinity",
        "9007199254740993",
        "9007199254740992.5",
        "123456789012345678901234567890",
        "0.1",
        "0.30000000000000004",
        "1e22",
        "1e23",
        "8.5e-20",
        "179769313486231570000000000000000000000",
        "1e+5",
        "9999999999999999999999e-22",
        "0.000000000000000000000000000001",
    };
    for (size_t i = 0; i < COUNT_OF(good); i++) assertDouble(good[i]);
    static const char *const bad[] = {
        "1e400",
        "-1e400",
        "1e-400",
        "1e",
        "1e+",
        "1e-",
        ".",
        "-",
        "+",
        "-.",
        "0x10",
        "0x1p3",
        "0x",
        "nan",
        "-nan",
        "NaN",
        "1_0",
        "1e5x",
        "",
        " 1",
        "1 ",
        "1.8e308",
        "1e-324",
        "1d5",
        "--1",
        "+-1",
        "inf1",
        "infin",
        "i",
        "1e-999999",
        "1e99999999999999999999",
        "1,5",
        "1.2.3",
        "e5",
        "in",
        "++inf",
        "-",
        "infinityx",
        "1e5.5",
        "1e 5",
    };
    double out = 42;
    for (size_t i = 0; i < COUNT_OF(bad); i++) {
        if (numberParseDouble(sliceOf(bad[i]), &out)) fail_msg("taken: '%s'", bad[i]);
        assert_true(out == 42);
    }
    assert_false(numberParseDouble(SLICE("1\0"), &out));
    assert_false(numberParseDouble(SLICE("inf\0"), &out));
}

static void test_random_decimals_are_parsed_as_by_strtod(void **state) {
    (void)state;
    testSeed(__func__);
    for (int round = 0; round < 100000; round++) {
        char text[64];
        size_t len = 0;
        if (randomUniform(2)) text[len++] = '-';
        size_t digits = 1 + (size_t)randomUniform(25), point = (size_t)randomUniform(30);
        for (size_t i = 0; i < digits; i++) {
            if (i == point) text[len++] = '.';
            text[len++] = (char)('0' + randomUniform(10));
        }
        /* A digit above zero in front keeps the value away from underflow. */
        text[text[0] == '-'] = '7';
        int exponent = (int)randomUniform(round & 1 ? 50 : 600) - (round & 1 ? 25 : 300);
        if (randomUniform(3)) len += (size_t)snprintf(text + len, 8, "e%d", exponent);
        text[len] = '\0';
        double expected = strtod(text, NULL);
        if (isinf(expected)) continue;
        assertDouble(text);
    }
}

static void test_long_doubles_texts_are_exact(void **state) {
    (void)state;
    static char text[3000];
    memset(text, '1', sizeof(text));
    memcpy(text, "0.", 2);
    double value;
    assert_true(numberParseDouble(sliceMake(text, 1002), &value));
    assert_true(value == 0.1111111111111111111111);
    assert_true(numberParseDouble(sliceMake(text, sizeof(text)), &value));
    assert_true(value == 0.1111111111111111111111);
    /* Just above the middle of two doubles: the last of 1,000 digits decides. */
    memset(text, '0', sizeof(text));
    memcpy(text, "9007199254740993.", 17);
    text[999] = '1';
    assert_true(numberParseDouble(sliceMake(text, 1000), &value));
    assert_true(value == 9007199254740994.0);
    assert_true(numberParseDouble(sliceMake(text, 999), &value));
    assert_true(value == 9007199254740992.0);
    memset(text, '1', sizeof(text));
    assert_false(numberParseDouble(sliceMake(text, 400), &value));
    /* As many zeros as digits, and an exponent that takes them back. */
    memset(text, '0', 500);
    memcpy(text, "0.", 2);
    memcpy(text + 500, "5e499", 5);
    assert_true(numberParseDouble(sliceMake(text, 505), &value));
    assert_true(value == 5.0);
}

/* Accepted and refused by INCRBYFLOAT of Valkey 9.1.2, and what it printed. */
static void test_long_doubles_as_incrbyfloat(void **state) {
    (void)state;
    static const char *const pairs[][2] = {
        {"0x10", "16"},
        {"0x1p-3", "0.125"},
        {"0x1P+2", "4"},
        {"0X1f", "31"},
        {"+5", "5"},
        {".5", "0.5"},
        {"5.", "5"},
        {"-0", "0"},
        {"-0.0", "0"},
        {"1e-17", "0.00000000000000001"},
        {"1e-18", "0"},
        {"-1e-20", "0"},
        {"1e-4950", "0"},
        {"0.1", "0.1"},
        {"1.50", "1.5"},
        {"100", "100"},
        {"inf", "inf"},
        {"-inf", "-inf"},
        {"Infinity", "inf"},
        {"-1.25", "-1.25"},
        {"3.14159265358979323846", "3.14159265358979324"},
#if LDBL_MANT_DIG == 64 || defined(__x86_64__)
        {"123456789.123456789", "123456789.12345678899873747"},
#endif
    };
    static char text[LONG_DOUBLE_TEXT_MAX];
    long double value;
    for (size_t i = 0; i < COUNT_OF(pairs); i++) {
        if (!numberParseLongDouble(sliceOf(pairs[i][0]), &value))
            fail_msg("refused %s", pairs[i][0]);
        size_t len = numberPrintLongDouble(text, value);
        assert_string_equal(text, pairs[i][1]);
        assert_int_equal(len, strlen(pairs[i][1]));
    }
    static const char *const bad[] = {"nan",    "nan(1)",  " 1",  "1 ",  "",    "0x",
                                      "1e",     "--1",     "1d1", "\t1", "1\n", "1,5",
                                      "1e5000", "1e-5000", "x",   "infx"};
    value = 3;
    for (size_t i = 0; i < COUNT_OF(bad); i++) {
        if (numberParseLongDouble(sliceOf(bad[i]), &value)) fail_msg("taken: '%s'", bad[i]);
        assert_true(value == 3);
    }
    assert_false(numberParseLongDouble(SLICE("1\0"), &value));
}

/* What the C library writes, without zeros at the end. */
static void test_long_doubles_in_their_usual_range(void **state) {
    (void)state;
    for (int i = 0; i < 100000; i++) {
        char text[LONG_DOUBLE_TEXT_MAX], expected[LONG_DOUBLE_TEXT_MAX];
        long double value = ldexpl((long double)randomNext(), (int)randomUniform(200) - 190);
        if (i % 2) value = (double)value;
        if (i % 3 == 0) value = (long double)(randomUniform(2000001)) / 64;
        if (i % 4 == 0) value = -value;
        snprintf(expected, sizeof(expected), "%.17Lf", value);
        size_t len = strlen(expected);
        while (expected[len - 1] == '0') len--;
        if (expected[len - 1] == '.') len--;
        expected[len] = '\0';
        assert_int_equal(numberPrintLongDouble(text, value), strcmp(expected, "-0") ? len : 1);
        assert_string_equal(text, strcmp(expected, "-0") ? expected : "0");
    }
}

static void test_long_doubles_of_great_size(void **state) {
    (void)state;
    static char digits[6000], text[LONG_DOUBLE_TEXT_MAX];
    long double value;
    assert_true(numberParseLongDouble(SLICE("-1e4932"), &value));
    assert_int_equal(numberPrintLongDouble(text, value), 4934);
    assert_memory_equal(text, "-1000000000000000000", 19);
    assert_int_equal(strspn(text + 1, "0123456789"), 4933);
    memset(digits, '0', sizeof(digits));
    digits[5000] = '1';
    assert_true(numberParseLongDouble(sliceMake(digits, 5001), &value));
    assert_true(value == 1);
    digits[5199] = '1';
    assert_false(numberParseLongDouble(sliceMake(digits, 5200), &value));
    assert_int_equal(numberPrintLongDouble(text, NAN), 3);
    assert_string_equal(text, "nan");
}

/* CONFIG SET maxmemory of Valkey 9.1.2; overflow is refused, where it wraps around. */
static void test_memory_sizes(void **state) {
    (void)state;
    static const struct {
        const char *text;
        uint64_t bytes;
    } good[] = {
        {"", 0},
        {"0", 0},
        {"1b", 1},
        {"1k", 1000},
        {"1kb", 1024},
        {"1KB", 1024},
        {"1Kb", 1024},
        {"3m", 3000000},
        {"1Mb", 1048576},
        {"2g", 2000000000},
        {"1gb", 1073741824},
        {"007", 7},
        {"kb", 0},
        {"b", 0},
        {"18446744073709551615", UINT64_MAX},
        {"17179869183gb", 18446744072635809792u},
    };
    for (size_t i = 0; i < COUNT_OF(good); i++) {
        uint64_t bytes = 99;
        if (!numberParseMemory(sliceOf(good[i].text), &bytes))
            fail_msg("refused '%s'", good[i].text);
        assert_int_equal(bytes, good[i].bytes);
    }
    static const char *const bad[] = {"-1",
                                      " 1",
                                      "1 ",
                                      "1 kb",
                                      "1.5g",
                                      "0x10",
                                      "18446744073709551616",
                                      "17179869184gb",
                                      "20000000000g",
                                      "1t",
                                      "1tb",
                                      "1kib",
                                      "+5",
                                      "1-",
                                      "1bb",
                                      "k1",
                                      "99999999999999999999999"};
    uint64_t bytes = 99;
    for (size_t i = 0; i < COUNT_OF(bad); i++) {
        if (numberParseMemory(sliceOf(bad[i]), &bytes)) fail_msg("taken: '%s'", bad[i]);
        assert_int_equal(bytes, 99);
    }
}

static void test_human_sizes(void **state) {
    (void)state;
    static const struct {
        uint64_t bytes;
        const char *text;
    } pairs[] = {
        {0, "0B"},
        {1023, "1023B"},
        {1024, "1.00K"},
        {922160, "900.55K"},
        {1048575, "1024.00K"},
        {1048576, "1.00M"},
        {1289748, "1.23M"},
        {1ull << 30, "1.00G"},
        {1ull << 40, "1.00T"},
        {1ull << 50, "1.00P"},
        {(1ull << 60) - 1, "1024.00P"},
        {1ull << 60, "1152921504606846976B"},
        {UINT64_MAX, "18446744073709551615B"},
    };
    for (size_t i = 0; i < COUNT_OF(pairs); i++) {
        char text[NUMBER_TEXT_MAX];
        numberPrintHuman(text, pairs[i].bytes);
        assert_string_equal(text, pairs[i].text);
    }
    /* All sizes below 2^50, which doubles hold exactly, are rounded as printf() does. */
    char text[NUMBER_TEXT_MAX], expected[NUMBER_TEXT_MAX];
    uint64_t state_of_random = 1;
    for (int i = 0; i < 200000; i++) {
        state_of_random = state_of_random * UINT64_C(6364136223846793005) + 1;
        uint64_t bytes = 1024 + (state_of_random >> (14 + i % 39));
        if (i % 2) bytes &= ~UINT64_C(0x7f); /* halves of a hundredth are likely */
        int unit = 1;
        while (bytes >> (10 * (unit + 1))) unit++;
        double amount = (double)bytes / (double)(UINT64_C(1) << (10 * unit));
        snprintf(expected, sizeof(expected), "%.2f%c", amount, "KMGTP"[unit - 1]);
        numberPrintHuman(text, bytes);
        assert_string_equal(text, expected);
    }
}

int test_number(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_integers_print_as_printf_does_and_come_back),
        cmocka_unit_test(test_integers_at_the_limits),
        cmocka_unit_test(test_cursors_are_read_as_by_strtoull),
        cmocka_unit_test(test_random_text_is_accepted_if_printing_restores_it),
        cmocka_unit_test(test_checked_arithmetic),
        cmocka_unit_test(test_doubles_are_parsed_as_scores_of_valkey),
        cmocka_unit_test(test_random_decimals_are_parsed_as_by_strtod),
        cmocka_unit_test(test_long_doubles_texts_are_exact),
        cmocka_unit_test(test_long_doubles_as_incrbyfloat),
        cmocka_unit_test(test_long_doubles_in_their_usual_range),
        cmocka_unit_test(test_long_doubles_of_great_size),
        cmocka_unit_test(test_memory_sizes),
        cmocka_unit_test(test_human_sizes),
    };
    return cmocka_run_group_tests_name("number", tests, NULL, NULL);
}
