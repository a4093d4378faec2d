/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Which streams a server can continue, after full syncs, promotions and restarts. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "psync/history.h"

#define NO_ID "0000000000000000000000000000000000000000"
#define ID_A "aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa"
#define ID_B "bbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbb"

static slice idOf(const char *text) { return sliceMake(text, REPL_ID_LEN); }

static void a_new_history_has_one_id(void **state) {
    (void)state;
    replHistory h, other;
    historyInit(&h);
    historyInit(&other);
    assert_int_equal(strlen(h.id), REPL_ID_LEN);
    assert_string_not_equal(h.id, other.id);
    assert_string_equal(h.id2, NO_ID);
    assert_int_equal(h.offset, 0);
    assert_int_equal(h.second_offset, -1);
    assert_true(historyCovers(&h, idOf(h.id), 1));
    assert_false(historyCovers(&h, idOf(other.id), 1));
    assert_false(historyCovers(&h, idOf(NO_ID), 0));
    assert_false(historyCovers(&h, SLICE("?"), 1));
}

static void a_full_sync_forgets_what_was_before(void **state) {
    (void)state;
    replHistory h;
    historyInit(&h);
    historyAdopt(&h, idOf(ID_A), 100);
    historyBranch(&h);
    historyAdopt(&h, idOf(ID_B), 7);
    assert_string_equal(h.id, ID_B);
    assert_string_equal(h.id2, NO_ID);
    assert_int_equal(h.offset, 7);
    assert_int_equal(h.second_offset, -1);
    assert_false(historyCovers(&h, idOf(ID_A), 1));
}

static void a_promoted_replica_continues_the_old_stream_up_to_its_end(void **state) {
    (void)state;
    replHistory h;
    historyInit(&h);
    historyAdopt(&h, idOf(ID_A), 100);
    historyBranch(&h);
    assert_string_equal(h.id2, ID_A);
    assert_int_equal(h.second_offset, 101);
    h.offset = 200;
    assert_true(historyCovers(&h, idOf(ID_A), 101));
    assert_true(historyCovers(&h, SLICE("AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA"), 101));
    assert_false(historyCovers(&h, idOf(ID_A), 102));
    assert_true(historyCovers(&h, idOf(h.id), 150));
}

static void the_primary_may_change_the_id(void **state) {
    (void)state;
    replHistory h;
    historyInit(&h);
    historyAdopt(&h, idOf(ID_A), 100);
    historyContinueAs(&h, idOf(ID_A));
    assert_int_equal(h.second_offset, -1);
    historyContinueAs(&h, idOf(ID_B));
    assert_string_equal(h.id, ID_B);
    assert_string_equal(h.id2, ID_A);
    assert_int_equal(h.second_offset, 101);
}

static void a_restart_branches_from_the_file(void **state) {
    (void)state;
    replHistory h;
    historyInit(&h);
    historyRestore(&h, idOf(ID_A), 55);
    assert_string_equal(h.id2, ID_A);
    assert_int_equal(h.offset, 55);
    assert_int_equal(h.second_offset, 56);
    assert_true(historyCovers(&h, idOf(ID_A), 56));
    historyRenew(&h);
    assert_int_equal(h.offset, 55);
    assert_false(historyCovers(&h, idOf(ID_A), 56));
}

static void a_position_is_named_by_an_id_that_others_know(void **state) {
    (void)state;
    replHistory h;
    historyInit(&h);
    assert_string_equal(historyKnownId(&h), h.id);
    historyRestore(&h, idOf(ID_A), 55);
    assert_string_equal(historyKnownId(&h), ID_A);
    h.offset++;
    assert_string_equal(historyKnownId(&h), h.id);
    historyRestore(&h, idOf(ID_A), 55);
    historyShare(&h);
    assert_string_equal(historyKnownId(&h), h.id);
    historyContinueAs(&h, idOf(ID_B));
    assert_string_equal(historyKnownId(&h), ID_B);
    historyBranch(&h);
    assert_string_equal(historyKnownId(&h), ID_B);
    historyRenew(&h);
    assert_string_equal(historyKnownId(&h), h.id);
}

int test_history(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_new_history_has_one_id),
        cmocka_unit_test(a_full_sync_forgets_what_was_before),
        cmocka_unit_test(a_promoted_replica_continues_the_old_stream_up_to_its_end),
        cmocka_unit_test(the_primary_may_change_the_id),
        cmocka_unit_test(a_restart_branches_from_the_file),
        cmocka_unit_test(a_position_is_named_by_an_id_that_others_know),
    };
    return cmocka_run_group_tests_name("history", tests, NULL, NULL);
}
