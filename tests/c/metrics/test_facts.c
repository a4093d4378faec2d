/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Tests of metrics/facts: taking INFO's text apart. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "base/base.h"
#include "metrics/metrics_priv.h"

static const char text[] =
    "# Title\r\na:1\r\n\r\nno fact\r\nb:x=1,yy=2,y=3\r\nempty:\r\nlast:end:s";

static void test_facts_come_in_order_without_titles(void **state) {
    (void)state;
    static const char *const wanted[] = {"a",     "1", "b",    "x=1,yy=2,y=3",
                                         "empty", "",  "last", "end:s"};
    slice rest = sliceOf(text), name, value;
    for (size_t i = 0; i < COUNT_OF(wanted); i += 2) {
        assert_true(factsNext(&rest, &name, &value));
        assert_true(sliceEqual(name, sliceOf(wanted[i])));
        assert_true(sliceEqual(value, sliceOf(wanted[i + 1])));
    }
    assert_false(factsNext(&rest, &name, &value));
    assert_false(factsNext(&rest, &name, &value));
}

static void test_facts_and_their_parts_are_found(void **state) {
    (void)state;
    factsIndex index;
    factsIndexInit(&index, sliceOf(text));
    assert_int_equal(index.count, 4);
    slice value = factsFind(&index, "b");
    assert_true(sliceEqual(factsPart(value, "x"), SLICE("1")));
    assert_true(sliceEqual(factsPart(value, "y"), SLICE("3")));
    assert_true(sliceEqual(factsPart(value, "yy"), SLICE("2")));
    assert_int_equal(factsPart(value, "z").len, 0);
    assert_int_equal(factsPart(SLICE(""), "x").len, 0);
    assert_true(sliceEqual(factsFind(&index, "last"), SLICE("end:s")));
    assert_int_equal(factsFind(&index, "nosuch").len, 0);
    factsIndexClear(&index);
    factsIndexInit(&index, SLICE(""));
    assert_int_equal(factsFind(&index, "a").len, 0);
    factsIndexClear(&index);
}

int test_facts(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_facts_come_in_order_without_titles),
        cmocka_unit_test(test_facts_and_their_parts_are_found),
    };
    return cmocka_run_group_tests_name("facts", tests, NULL, NULL);
}
