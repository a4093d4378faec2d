/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Tests of io/process.c: what a program gets, and how its end is reported. */
#include "io_test.h"

#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <unistd.h>

#include "base/base.h"
#include "io/file.h"
#include "io/loop.h"
#include "io/process.h"

static loop *l;
static int ends;
static processEnd last;

static void onEnd(void *arg, const processEnd *end) {
    assert_ptr_equal(arg, &ends);
    ends++;
    last = *end;
}

static process *start(const char *script, const char *const *env, int64_t timeout_ms) {
    const char *argv[] = {"name", "-c", script, "two words", NULL};
    const processStart how = {.path = "/bin/sh",
                              .argv = argv,
                              .env = env,
                              .timeout_ms = timeout_ms,
                              .ended = onEnd,
                              .arg = &ends};
    process *p;
    reason why;
    assert_int_equal(processSpawn(l, &how, &p, &why), OK);
    assert_true(processId(p) > 0);
    return p;
}

static void waitForEnd(void) {
    int before = ends;
    for (int i = 0; i < 1000000 && ends == before; i++) {
        loopLimitSleep(l, 100);
        loopTurn(l, true);
    }
    assert_int_equal(ends, before + 1);
}

static int setUp(void **state) {
    (void)state;
    reason why;
    l = loopNew(NULL, &why);
    ends = 0;
    return l == NULL;
}

static int tearDown(void **state) {
    (void)state;
    loopFree(l);
    return 0;
}

static void the_exit_code_is_reported(void **state) {
    (void)state;
    start("exit 7", NULL, 0);
    waitForEnd();
    assert_int_equal(last.exit_code, 7);
    assert_int_equal(last.signal, 0);
    assert_false(last.timed_out);
}

static void arguments_and_environment_are_passed(void **state) {
    (void)state;
    static const char *const env[] = {"WORD=from env", NULL};
    str script = STR_EMPTY, content = STR_EMPTY;
    reason why;
    const char *path = testPath("said");
    strAppendFormat(&script, "echo \"$0|$WORD|$HOME\" > '%s'", path);
    start(strText(&script), env, 0);
    waitForEnd();
    assert_int_equal(last.exit_code, 0);
    assert_int_equal(fileReadAll(path, 1000, &content, &why), OK);
    assert_string_equal(strText(&content), "two words|from env|\n");
    strFree(&script);
    strFree(&content);
}

static void no_descriptor_is_inherited(void **state) {
    (void)state;
    int fd = open("/dev/null", O_RDONLY); /* without close-on-exec */
    char script[64];
    assert_true(fd > 2);
    snprintf(script, sizeof(script), "test ! -e /dev/fd/%d", fd);
    start(script, NULL, 0);
    waitForEnd();
#if defined(__GLIBC__) && __GLIBC_PREREQ(2, 34)
    assert_int_equal(last.exit_code, 0);
#endif
    close(fd);
}

static void ignored_signals_are_not_ignored_by_the_program(void **state) {
    (void)state;
    signal(SIGPIPE, SIG_IGN);
    start("kill -PIPE $$; exit 0", NULL, 0);
    waitForEnd();
    assert_int_equal(last.signal, SIGPIPE);
    assert_int_equal(last.exit_code, -1);
}

static void a_program_that_takes_too_long_is_killed_with_its_children(void **state) {
    (void)state;
    start("sleep 1000 & wait", NULL, 1);
    waitForEnd();
    assert_true(last.timed_out);
    assert_int_equal(last.signal, SIGKILL);
}

static void several_run_at_a_time_and_can_be_killed(void **state) {
    (void)state;
    process *first = start("sleep 1000", NULL, 0);
    process *second = start("sleep 1000", NULL, 60000);
    start("exit 1", NULL, 60000);
    waitForEnd();
    assert_int_equal(last.exit_code, 1);
    processKill(first);
    waitForEnd();
    assert_int_equal(last.signal, SIGKILL);
    assert_false(last.timed_out);
    int pid = processId(second);
    processKill(second);
    waitForEnd();
    assert_int_equal(kill(pid, 0), -1); /* collected */
}

static void what_does_not_exist_is_not_started(void **state) {
    (void)state;
    const char *argv[] = {"x", NULL};
    const processStart how = {.path = "/nonexistent", .argv = argv, .ended = onEnd};
    process *p;
    reason why;
    assert_int_equal(processSpawn(l, &how, &p, &why), ERR_IO);
    assert_string_equal(why.text, "Can't start /nonexistent: No such file or directory");
}

int test_process(void) {
#define TEST(name) cmocka_unit_test_setup_teardown(name, setUp, tearDown)
    const struct CMUnitTest tests[] = {
        TEST(the_exit_code_is_reported),
        TEST(arguments_and_environment_are_passed),
        TEST(no_descriptor_is_inherited),
        TEST(ignored_signals_are_not_ignored_by_the_program),
        TEST(a_program_that_takes_too_long_is_killed_with_its_children),
        TEST(several_run_at_a_time_and_can_be_killed),
        TEST(what_does_not_exist_is_not_started),
    };
    return cmocka_run_group_tests_name("io/process", tests, NULL, NULL);
}
