/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Tests of base/error. */
#include "base_test.h"

#include <errno.h>

#include "base/error.h"

static void test_reason_sets_the_text_and_returns_the_status(void **state) {
    (void)state;
    reason why;
    assert_int_equal(reasonSet(&why, ERR_SYNTAX, "line %d: %s", 7, "odd"), ERR_SYNTAX);
    assert_string_equal(why.text, "line 7: odd");
    assert_int_equal(reasonSet(NULL, ERR_RANGE, "nobody %s", "listens"), ERR_RANGE);
}

static void test_errno_is_logged_and_kept(void **state) {
    (void)state;
    reason why;
    errno = ENOENT;
    assert_int_equal(reasonSetErrno(&why, "open %s", "/x"), ERR_IO);
    assert_string_equal(why.text, "open /x: No such file or directory");
    assert_int_equal(errno, ENOENT);
    assert_int_equal(reasonSetErrno(NULL, "nobody"), ERR_IO);
    assert_int_equal(errno, ENOENT);
}

static void test_long_words_are_cut(void **state) {
    (void)state;
    char text[REASON_MAX + 100];
    memset(text, 'x', sizeof(text) - 1);
    text[sizeof(text) - 1] = '\0';
    reason why;
    reasonSet(&why, ERR_LIMIT, "%s", text);
    assert_int_equal(strlen(why.text), REASON_MAX - 1);
    errno = ENOENT;
    reasonSetErrno(&why, "%s", text);
    assert_int_equal(strlen(why.text), REASON_MAX - 1);
}

int test_error(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_reason_sets_the_text_and_returns_the_status),
        cmocka_unit_test(test_errno_is_logged_and_kept),
        cmocka_unit_test(test_long_words_are_cut),
    };
    return cmocka_run_group_tests_name("error", tests, NULL, NULL);
}
