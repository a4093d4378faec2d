/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Tests of metrics/info_fields: taking INFO's text apart. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "base/base.h"
#include "metrics/metrics_priv.h"

static const char text[] =
    "# Title\r\na:1\r\n\r\nno infoField\r\nb:x=1,yy=2,y=3\r\nempty:\r\nlast:end:s";

static void test_fields_come_in_order_without_titles(void **state) {
    (void)state;
    static const char *const wanted[] = {"a",     "1", "b",    "x=1,yy=2,y=3",
                                         "empty", "",  "last", "end:s"};
    slice rest = sliceOf(text), name, value;
    for (size_t i = 0; i < COUNT_OF(wanted); i += 2) {
        assert_true(infoFieldsNext(&rest, &name, &value));
        assert_true(sliceEqual(name, sliceOf(wanted[i])));
        assert_true(sliceEqual(value, sliceOf(wanted[i + 1])));
    }
    assert_false(infoFieldsNext(&rest, &name, &value));
    assert_false(infoFieldsNext(&rest, &name, &value));
}

static void test_fields_and_their_parts_are_found(void **state) {
    (void)state;
    infoIndex index;
    infoIndexInit(&index, sliceOf(text));
    assert_int_equal(index.count, 4);
    slice value = infoIndexFind(&index, "b");
    assert_true(sliceEqual(infoPart(value, "x"), SLICE("1")));
    assert_true(sliceEqual(infoPart(value, "y"), SLICE("3")));
    assert_true(sliceEqual(infoPart(value, "yy"), SLICE("2")));
    assert_int_equal(infoPart(value, "z").len, 0);
    assert_int_equal(infoPart(SLICE(""), "x").len, 0);
    assert_true(sliceEqual(infoIndexFind(&index, "last"), SLICE("end:s")));
    assert_int_equal(infoIndexFind(&index, "nosuch").len, 0);
    infoIndexClear(&index);
    infoIndexInit(&index, SLICE(""));
    assert_int_equal(infoIndexFind(&index, "a").len, 0);
    infoIndexClear(&index);
}

int test_info_fields(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_fields_come_in_order_without_titles),
        cmocka_unit_test(test_fields_and_their_parts_are_found),
    };
    return cmocka_run_group_tests_name("fields", tests, NULL, NULL);
}
