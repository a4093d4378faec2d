/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Tests of base/number_double: every text reads back as the same double, in the shapes that Valkey
 * 9.1.2 prints. */
#include "base_test.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>

#include "base/bytes.h"
#include "base/number.h"
#include "base/random.h"

static int digitsIn(const char *text) {
    /* Significant digits: leading and trailing zeros do not count. */
    int count = 0, zeros = 0;
    for (; *text && *text != 'e'; text++) {
        if (*text == '0') {
            if (count) zeros++;
        } else if (*text >= '1' && *text <= '9') {
            count += zeros + 1;
            zeros = 0;
        }
    }
    return count;
}

/* Prints, checks that it comes back, and returns the count of digits beyond the fewest possible. */
static int printChecked(double value) {
    char text[NUMBER_TEXT_MAX], shortest[64];
    memset(text, '#', sizeof(text));
    size_t len = numberPrintDouble(text, value);
    assert_int_equal(strlen(text), len);
    assert_true(len < NUMBER_TEXT_MAX);
    double again = strtod(text, NULL);
    if (memcmp(&again, &value, sizeof(value)) != 0) fail_msg("%.17g printed as %s", value, text);
    double parsed;
    assert_true(numberParseDouble(sliceMake(text, len), &parsed));
    assert_memory_equal(&parsed, &value, sizeof(value));
    for (int digits = 1; digits <= 17; digits++) {
        snprintf(shortest, sizeof(shortest), "%.*e", digits - 1, value);
        if (strtod(shortest, NULL) == value) break;
    }
    return digitsIn(text) - digitsIn(shortest);
}

static void test_random_doubles_come_back(void **state) {
    (void)state;
    testSeed(__func__);
    int longer = 0, printed = 0;
    for (int round = 0; round < 200000; round++) {
        uint64_t bits = randomNext();
        double value;
        memcpy(&value, &bits, sizeof(value));
        if (round % 4 == 0)
            value = (double)(int64_t)randomNext() / (double)(1 + randomUniform(1000));
        if (round % 4 == 1) value = (double)randomUniform(1000000) / 1000;
        if (isnan(value) || isinf(value)) continue;
        int extra = printChecked(value);
        /* Whole numbers below 2^62 are printed in full. */
        if (fabs(value) <= 4611686018427387904.0 && value == rint(value)) continue;
        assert_true(extra >= 0);
        longer += extra > 0;
        printed++;
    }
    assert_true(longer * 200 < printed); /* under half a percent */
}

static void test_powers_and_their_neighbours_come_back(void **state) {
    (void)state;
    for (int e = -1074; e < 1024; e++) {
        double power = ldexp(1, e);
        printChecked(power);
        printChecked(-power);
        printChecked(nextafter(power, 0));
        if (e < 1023) printChecked(nextafter(power, INFINITY));
    }
    for (int e = -323; e <= 308; e++) {
        char text[16];
        snprintf(text, sizeof(text), "1e%d", e);
        double power = strtod(text, NULL);
        printChecked(power);
        printChecked(nextafter(power, 0));
        printChecked(nextafter(power, INFINITY));
    }
}

static void test_denormals_come_back(void **state) {
    (void)state;
    testSeed(__func__);
    for (int round = 0; round < 20000; round++) {
        uint64_t bits = randomNext() >> (12 + randomUniform(52));
        double value;
        memcpy(&value, &bits, sizeof(value));
        printChecked(value);
    }
}

static void test_shapes(void **state) {
    (void)state;
    static const struct {
        double value;
        const char *text;
    } pairs[] = {
        {0, "0"},
        {-0.0, "-0"},
        {INFINITY, "inf"},
        {-INFINITY, "-inf"},
        {NAN, "nan"},
        {-NAN, "nan"},
        {1, "1"},
        {-123, "-123"},
        {0.1, "0.1"},
        {0.00001, "0.00001"},
        {0.000001, "0.000001"},
        {1e-7, "1e-7"},
        {-1.5e-7, "-1.5e-7"},
        {1.2e-5, "0.000012"},
        {1.2e-6, "1.2e-6"},
        {1.23e-5, "1.23e-5"},
        {0.000123, "0.000123"},
        {1.2345678e-4, "1.2345678e-4"},
        {0.0012345678, "0.0012345678"},
        {1234.567890123456, "1234.567890123456"},
        {12345.67890123456, "1.234567890123456e+4"},
        {123456789.0123456, "1.234567890123456e+8"},
        {1234567890.123456, "1234567890.123456"},
        {123456789012345.6, "123456789012345.6"},
        {1e15, "1000000000000000"},
        {1e18, "1000000000000000000"},
        {1e19, "1e+19"},
        {1e20, "1e+20"},
        {1e21, "1e+21"},
        {1e22, "1e+22"},
        {1e23, "99999999999999990000000"},
        {1e100, "1e+100"},
        {1e300, "1e+300"},
        {12345678901234567e3, "12345678901234567000"},
        {123456789012345678.0, "123456789012345680"},
        {12345678901234567e1, "123456789012345664"},
        {1234567890123456e4, "12345678901234561000"},
        {1234567890123456e7, "12345678901234560000000"},
        {1234567890123456e8, "1.234567890123456e+23"},
        {4611686018427387904.0, "4611686018427387904"},
        {-4611686018427387904.0, "-4611686018427387904"},
        {4611686018427388928.0, "4611686018427389000"},
        {9223372036854775808.0, "9223372036854776000"},
        {-9223372036854775808.0, "-9223372036854776000"},
        {1.7976931348623157e308, "1.7976931348623157e+308"},
        {5e-324, "5e-324"},
        {-5e-324, "-5e-324"},
        {2.2250738585072014e-308, "2.2250738585072014e-308"},
        {9.5367431640625e-7, "9.5367431640625e-7"},
        {2251799813685249.5, "2251799813685249.5"},
    };
    for (size_t i = 0; i < COUNT_OF(pairs); i++) {
        char text[NUMBER_TEXT_MAX];
        size_t len = numberPrintDouble(text, pairs[i].value);
        assert_string_equal(text, pairs[i].text);
        assert_int_equal(len, strlen(pairs[i].text));
    }
}

int test_number_double(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_random_doubles_come_back),
        cmocka_unit_test(test_powers_and_their_neighbours_come_back),
        cmocka_unit_test(test_denormals_come_back),
        cmocka_unit_test(test_shapes),
    };
    return cmocka_run_group_tests_name("number_double", tests, NULL, NULL);
}
