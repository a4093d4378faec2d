/* SPDX-License-Identifier: BSD-3-Clause
 *
 * acl/texts.h: whether a change of rules takes anything away. */
#include "acl_test.h"

#include "acl/texts.h"
#include "acl/users.h"

static bool takes(const char *before, const char *after) {
    return aclTextsKeeper.takes(false, sliceOf(before), sliceOf(after));
}

static void more_rights_take_nothing_away(void **state) {
    static const char *const pairs[][2] = {
        {"off", "off"},
        {"off", "on"},
        {"off ~a", "off ~a ~b"},
        {"off ~a ~b", "off ~b ~a"},
        {"off %R~a", "off ~a"},
        {"off ~a", "off ~*"},
        {"off &a", "off &*"},
        {"off +get", "off +get +set"},
        {"off +get", "off +@all"},
        {"off +@read", "off +@all"},
        {"off +select|0", "off +select"},
        {"off db=1", "off db=1,2"},
        {"off db=1", "off alldbs"},
        {"off (~a +get)", "off (~b +set) (~a ~c +get)"},
        {"off ~a +get", "off (~a +get +set)"},
        {"off >x", "off >x >y"},
        {"off >x", "off nopass"},
        {"off maxmemory=1mb", "off maxmemory=2mb"},
        {"off maxmemory=1mb", "off"},
        {"off cpu=10%", "off"},
    };
    for (size_t i = 0; i < sizeof(pairs) / sizeof(pairs[0]); i++) {
        if (takes(pairs[i][0], pairs[i][1])) fail_msg("%s -> %s", pairs[i][0], pairs[i][1]);
    }
}

static void anything_less_counts(void **state) {
    static const char *const pairs[][2] = {
        {"on", "off"},
        {"off ~a ~b", "off ~a"},
        {"off ~*", "off ~a"},
        {"off ~a", "off %R~a"},
        {"off ~a", "off ~b ~c"},
        {"off &*", "off &a"},
        {"off &a", "off &b"},
        {"off +get +set", "off +get"},
        {"off +@all", "off +@all -get"},
        {"off +@all", "off +@read"},
        {"off +get", "off +set"}, /* one right less, another one more */
        {"off +select", "off +select|0"},
        {"off +select|0", "off +select|1"},
        {"off db=1,2", "off db=2"},
        {"off alldbs", "off db=0"},
        {"off (~a +get)", "off (~a +set)"},
        {"off ~a ~b +get +set", "off (~a +get) (~b +set)"},
        {"off >x >y", "off >x"},
        {"off >x", "off >y"},
        {"off nopass", "off >x"},
        {"off", "off maxmemory=1mb"},
        {"off maxmemory=2mb", "off maxmemory=1mb"},
        {"off", "off cpu=10%"},
        {"off (", "off"}, /* what cannot be compared */
        {"off", "off nonsense"},
        {"off role=missing", "off"},
    };
    for (size_t i = 0; i < sizeof(pairs) / sizeof(pairs[0]); i++) {
        if (!takes(pairs[i][0], pairs[i][1])) fail_msg("%s -> %s", pairs[i][0], pairs[i][1]);
    }
}

static void rights_of_roles_count(void **state) {
    aclDraft d;
    aclDraftInit(&d, false);
    d.is_role = true;
    assert_null(aclDraftApply(&d, SLICE("+get"), false));
    rolesSetTake(SLICE("reader"), aclRulesNew(&d));
    aclDraftClear(&d);
    assert_false(takes("off", "off role=reader"));
    assert_true(takes("off role=reader", "off"));
    assert_true(aclTextsKeeper.takes(true, SLICE("+get +set"), SLICE("+get")));
    assert_false(aclTextsKeeper.takes(true, SLICE("+get"), SLICE("+get +set")));
    usersFree();
}

int test_texts(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(more_rights_take_nothing_away, setupTestCommands,
                                        teardownTestCommands),
        cmocka_unit_test_setup_teardown(anything_less_counts, setupTestCommands,
                                        teardownTestCommands),
        cmocka_unit_test_setup_teardown(rights_of_roles_count, setupTestCommands,
                                        teardownTestCommands),
    };
    return cmocka_run_group_tests_name("acl/texts", tests, NULL, NULL);
}
