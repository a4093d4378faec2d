/* SPDX-License-Identifier: BSD-3-Clause
 *
 * merge.c: one reply from several, and replies that do not fit. */
#include "gateway/merge.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "base/bytes.h"

#define MALFORMED "-ERR The nodes of the cluster have replied in different forms\r\n"

static void merged(mergeKind kind, const char *expected, int count, const char *const *texts) {
    slice replies[8];
    static const int positions[] = {2, 0, 1, 3};
    str out = STR_EMPTY;
    for (int i = 0; i < count; i++) replies[i] = sliceOf(texts[i]);
    mergeReplies(
        &(mergeParts){
            .kind = kind, .replies = replies, .count = count, .positions = positions, .total = 4},
        &out);
    assert_string_equal(expected, strText(&out));
    strFree(&out);
}
#define MERGED(kind, expected, ...) \
    do { \
        const char *const texts[] = {__VA_ARGS__}; \
        merged(kind, expected, (int)COUNT_OF(texts), texts); \
    } while (0)

static void test_sum(void **state) {
    (void)state;
    MERGED(MERGE_SUM, ":6\r\n", ":1\r\n", ":2\r\n", ":3\r\n");
    MERGED(MERGE_SUM, ":-1\r\n", ":-1\r\n");
    MERGED(MERGE_SUM, "-NOPERM no\r\n", ":1\r\n", "-NOPERM no\r\n");
    MERGED(MERGE_SUM, MALFORMED, ":1\r\n", "+OK\r\n");
    MERGED(MERGE_SUM, MALFORMED, ":9223372036854775807\r\n", ":1\r\n");
}

static void test_values(void **state) {
    (void)state;
    MERGED(MERGE_VALUES, "*4\r\n$1\r\nb\r\n$-1\r\n$1\r\na\r\n_\r\n", "*2\r\n$1\r\na\r\n$1\r\nb\r\n",
           "*1\r\n$-1\r\n", "*1\r\n_\r\n");
    MERGED(MERGE_VALUES, MALFORMED, "*2\r\n$1\r\na\r\n$1\r\nb\r\n", "*1\r\n$-1\r\n");
    MERGED(MERGE_VALUES, MALFORMED, "*5\r\n:1\r\n:2\r\n:3\r\n:4\r\n:5\r\n");
    MERGED(MERGE_VALUES, MALFORMED, ":4\r\n");
    MERGED(MERGE_VALUES, "-ERR x\r\n", "*2\r\n:1\r\n:2\r\n", "-ERR x\r\n");
}

static void test_arrays(void **state) {
    (void)state;
    MERGED(MERGE_APPEND, "*3\r\n+a\r\n*1\r\n:1\r\n+b\r\n", "*2\r\n+a\r\n*1\r\n:1\r\n", "*0\r\n",
           "*1\r\n+b\r\n");
    MERGED(MERGE_APPEND, MALFORMED, "*1\r\n+a\r\n", "$-1\r\n");
    MERGED(MERGE_EVERY, "*2\r\n:1\r\n:0\r\n", "*2\r\n:1\r\n:0\r\n", "*2\r\n:1\r\n:1\r\n");
    MERGED(MERGE_EVERY, MALFORMED, "*2\r\n:1\r\n:0\r\n", "*1\r\n:1\r\n");
    MERGED(MERGE_EVERY, MALFORMED, "*1\r\n+x\r\n");
}

static void test_single(void **state) {
    (void)state;
    MERGED(MERGE_FIRST, "+OK\r\n", "+OK\r\n", "+OK\r\n");
    MERGED(MERGE_FIRST, "-ERR x\r\n", "+OK\r\n", "-ERR x\r\n");
    MERGED(MERGE_ANY_ONE, "$1\r\nk\r\n", "$-1\r\n", "$1\r\nk\r\n", "$1\r\nl\r\n");
    MERGED(MERGE_ANY_ONE, "_\r\n", "_\r\n", "_\r\n");
    MERGED(MERGE_ANY_ONE, "$-1\r\n", "$-1\r\n");
}

static void test_nodes(void **state) {
    (void)state;
    MERGED(MERGE_ANY_OK, "+OK\r\n", "-NOTBUSY x\r\n", "+OK\r\n", "-NOTBUSY y\r\n");
    MERGED(MERGE_ANY_OK, "-NOTBUSY y\r\n", "-NOTBUSY x\r\n", "-NOTBUSY y\r\n");
    MERGED(MERGE_LEAST, ":-1\r\n", ":3\r\n", ":-1\r\n", ":2\r\n");
    MERGED(MERGE_LEAST, "*2\r\n:0\r\n:1\r\n", "*2\r\n:1\r\n:1\r\n", "*2\r\n:0\r\n:4\r\n");
    MERGED(MERGE_LEAST, "-ERR x\r\n", ":1\r\n", "-ERR x\r\n");
    MERGED(MERGE_LEAST, MALFORMED, ":1\r\n", "*1\r\n:1\r\n");
    MERGED(MERGE_LEAST, MALFORMED, "*1\r\n:1\r\n", "*2\r\n:1\r\n:1\r\n");
    MERGED(MERGE_UNION, "*3\r\n$1\r\na\r\n$1\r\nb\r\n$1\r\nc\r\n", "*2\r\n$1\r\nb\r\n$1\r\na\r\n",
           "*0\r\n", "*2\r\n$1\r\nc\r\n$1\r\nb\r\n");
    MERGED(MERGE_UNION, "*0\r\n", "*0\r\n");
    MERGED(MERGE_UNION, MALFORMED, "*0\r\n", ":1\r\n");
    MERGED(MERGE_COUNTS, "*4\r\n$1\r\na\r\n:3\r\n$1\r\nb\r\n:0\r\n",
           "*4\r\n$1\r\na\r\n:1\r\n$1\r\nb\r\n:0\r\n", "*4\r\n$1\r\na\r\n:2\r\n$1\r\nb\r\n:0\r\n");
    MERGED(MERGE_COUNTS, MALFORMED, "*2\r\n$1\r\na\r\n:1\r\n", "*0\r\n");
}

static void test_bulk(void **state) {
    (void)state;
    assert_true(sliceEqual(mergeBulk(SLICE("$2\r\nab\r\n")), SLICE("ab")));
    assert_int_equal(0, mergeBulk(SLICE("$-1\r\n")).len);
    assert_int_equal(0, mergeBulk(SLICE("_\r\n")).len);
    assert_int_equal(0, mergeBulk(SLICE("+OK\r\n")).len);
    slice items[2];
    assert_int_equal(2, mergeItems(SLICE(">2\r\n$10\r\ninvalidate\r\n*0\r\n"), items, 2));
    assert_true(sliceEqual(items[1], SLICE("*0\r\n")));
}

static void test_items(void **state) {
    (void)state;
    slice items[2];
    assert_int_equal(2, mergeItems(SLICE("*2\r\n%1\r\n+a\r\n:1\r\n+b\r\n"), items, 2));
    assert_true(sliceEqual(items[0], SLICE("%1\r\n+a\r\n:1\r\n")));
    assert_true(sliceEqual(items[1], SLICE("+b\r\n")));
    assert_int_equal(3, mergeItems(SLICE("*3\r\n:1\r\n:2\r\n:3\r\n"), items, 2));
    assert_int_equal(0, mergeItems(SLICE("*0\r\n"), items, 2));
    assert_int_equal(-1, mergeItems(SLICE("*2\r\n:1\r\n"), items, 2));
    assert_int_equal(-1, mergeItems(SLICE("*1\r\n:1\r\n:2\r\n"), items, 2));
    assert_int_equal(-1, mergeItems(SLICE("*-1\r\n"), items, 2));
    assert_int_equal(-1, mergeItems(SLICE("+OK\r\n"), items, 2));
}

int test_merge(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_sum),    cmocka_unit_test(test_values), cmocka_unit_test(test_arrays),
        cmocka_unit_test(test_single), cmocka_unit_test(test_nodes),  cmocka_unit_test(test_bulk),
        cmocka_unit_test(test_items),
    };
    return cmocka_run_group_tests_name("merge", tests, NULL, NULL);
}
