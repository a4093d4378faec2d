/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Libraries: the time that loading them may take. Limits are so far apart from what is done that
 * the speed of the machine does not matter. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <cmocka.h>

#include "base/base.h"
#include "engine/lifecycle.h"
#include "script/engines.h"
#include "script/functions.h"

/* More instructions than between two looks at the clock. */
#define WORK "for i = 1, 1000000 do end\n"
#define LIBRARY(name) \
    SLICE("#!lua name=" name "\n" WORK "server.register_function('" name "', function() end)")
enum { LONG_MS = 3600000 };

static const slice codes[] = {LIBRARY("a"), LIBRARY("b"), LIBRARY("c")};
enum { CODES = 3 };

static void identify(engineIdentity *out) {
    *out = (engineIdentity){
        .version = "1.2.3", .mode = "standalone", .role = "master", .availability_zone = ""};
}

static int setup(void **state) {
    (void)state;
    clockInit();
    engineSetIdentityProc(identify);
    return scriptEngineAdd(&luaEngine, "lua", 4) == OK ? 0 : -1;
}

static int teardown(void **state) {
    (void)state;
    librariesFlush(false);
    scriptEngineRemove(&luaEngine);
    return 0;
}

static void libraries_within_both_limits_are_restored(void **state) {
    (void)state;
    str error = STR_EMPTY;
    assert_true(librariesRestore(codes, CODES, RESTORE_APPEND, LONG_MS, LONG_MS, &error));
    assert_int_equal(librariesAll()->count, CODES);
    assert_int_equal(functionCount(), CODES);
    librariesFlush(false);
    assert_int_equal(functionCount(), 0);
}

static void expectTimeout(int64_t limit_ms, int64_t total_ms) {
    str error = STR_EMPTY;
    assert_false(librariesRestore(codes, CODES, RESTORE_APPEND, limit_ms, total_ms, &error));
    /* Which of the two steps finds that the time is over depends on the machine. */
    if (strcmp(strText(&error), "ERR Error compiling function: compilation takes too long") != 0)
        assert_string_equal(strText(&error),
                            "ERR Error registering functions: ERR FUNCTION LOAD timeout");
    strFree(&error);
    assert_int_equal(librariesAll()->count, 0);
}

static void each_library_has_a_limit(void **state) {
    (void)state;
    expectTimeout(0, LONG_MS);
}

static void all_libraries_of_a_payload_have_a_limit(void **state) {
    (void)state;
    expectTimeout(LONG_MS, 0);
}

int test_functions(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(libraries_within_both_limits_are_restored),
        cmocka_unit_test(each_library_has_a_limit),
        cmocka_unit_test(all_libraries_of_a_payload_have_a_limit),
    };
    return cmocka_run_group_tests_name("functions", tests, setup, teardown);
}
