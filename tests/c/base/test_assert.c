/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Tests of base/assert: what failures print, and that nothing returns. */
#include "base_test.h"

#include <signal.h>
#include <stdio.h>

#include "base/assert.h"

static volatile int one = 1;

static void checkFails(void) { check(one == 2); }

static void checkHolds(void) { check(one == 1); }

static void panics(void) { panic("the %s is %d", "answer", 42); }

static void tellBegin(void) {
    printf("begin\n");
    fflush(stdout);
}

static void tellProc(const char *what, const char *file, int line) {
    printf("proc: %s | %s | %d\n", what, strrchr(file, '/') + 1, line > 0);
    fflush(stdout);
}

static void checkFailsWithProc(void) {
    assertSetProcs(tellBegin, tellProc);
    check(one == 2);
}

static void panicsWithProc(void) {
    assertSetProcs(tellBegin, tellProc);
    panic("the %s", "message");
}

static void failingProc(const char *what, const char *file, int line) {
    (void)what, (void)file, (void)line;
    check(one == 3);
}

static void checkFailsInProc(void) {
    assertSetProcs(NULL, failingProc);
    check(one == 2);
}

static void test_check_prints_and_aborts(void **state) {
    (void)state;
    char output[2048];
    assert_int_equal(testInChild(checkHolds, output, sizeof(output)), 0);
    assert_string_equal(output, "");
    assert_int_equal(testInChild(checkFails, output, sizeof(output)), SIGABRT);
    assert_non_null(strstr(output, " # === ASSERTION FAILED ===\n"));
    assert_non_null(strstr(output, "test_assert.c:"));
    assert_non_null(strstr(output, " 'one == 2' is not true\n"));
}

static void test_panic_prints_and_aborts(void **state) {
    (void)state;
    char output[2048];
    assert_int_equal(testInChild(panics, output, sizeof(output)), SIGABRT);
    assert_non_null(strstr(output, "!!! Software Failure. Press left mouse button to continue\n"));
    assert_non_null(strstr(output, "Guru Meditation: the answer is 42 #"));
}

static void test_the_handler_is_called(void **state) {
    (void)state;
    char output[2048];
    assert_int_equal(testInChild(checkFailsWithProc, output, sizeof(output)), SIGABRT);
    assert_non_null(strstr(output, "proc: one == 2 | test_assert.c | 1\n"));
    assert_true(strstr(output, "begin\n") < strstr(output, "=== ASSERTION FAILED ==="));
    assert_non_null(strstr(output, "begin\n"));
    assert_int_equal(testInChild(panicsWithProc, output, sizeof(output)), SIGABRT);
    assert_non_null(strstr(output, "proc: the message | test_assert.c | 1\n"));
}

static void test_an_error_in_the_callback_ends_the_walk(void **state) {
    (void)state;
    char output[2048];
    assert_int_equal(testInChild(checkFailsInProc, output, sizeof(output)), SIGABRT);
    const char *first = strstr(output, "=== ASSERTION FAILED ===");
    const char *second = strstr(output, "=== RECURSIVE ASSERTION FAILED ===");
    assert_non_null(first);
    assert_non_null(second);
    assert_true(first < second);
    assert_non_null(strstr(second, "'one == 3' is not true"));
}

static void test_hot_check_follows_the_build(void **state) {
    (void)state;
    volatile int evaluated = 0;
    hotCheck(++evaluated);
#ifdef HOT_CHECKS
    assert_int_equal(evaluated, 1);
#else
    assert_int_equal(evaluated, 0);
#endif
}

int test_assert(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_check_prints_and_aborts),
        cmocka_unit_test(test_panic_prints_and_aborts),
        cmocka_unit_test(test_the_handler_is_called),
        cmocka_unit_test(test_an_error_in_the_callback_ends_the_walk),
        cmocka_unit_test(test_hot_check_follows_the_build),
    };
    return cmocka_run_group_tests_name("assert", tests, NULL, NULL);
}
