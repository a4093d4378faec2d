/* SPDX-License-Identifier: BSD-3-Clause
 *
 * The model of how a client is handed over between the main thread and an I/O thread (hand_over.h):
 * it holds in all interleavings, and each of its rules is needed. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "hand_over.h"

static void every_interleaving_is_right(void **state) {
    (void)state;
    long states;
    const char *violation = handOverCheck(RULE_ALL, &states);
    if (violation) fail_msg("%s", violation);
    assert_true(states > 100000);
}

static void no_rule_can_be_left_out(void **state) {
    (void)state;
    for (int rule = 0; rule < RULE_ALL; rule++) {
        long states;
        if (!handOverCheck((enum handOverRule)rule, &states))
            fail_msg("nothing happens without rule %d", rule);
    }
}

int test_hand_over(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_interleaving_is_right),
        cmocka_unit_test(no_rule_can_be_left_out),
    };
    return cmocka_run_group_tests_name("hand_over", tests, NULL, NULL);
}
