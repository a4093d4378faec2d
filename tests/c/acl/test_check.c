/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Decisions: which rules allow which requests, and what a refusal reports. */
#include "acl_test.h"

static aclRules *rulesOf(const char *rules) {
    aclDraft d;
    aclDraftInit(&d, false);
    assert_null(applyAll(&d, rules));
    aclRules *compiled = aclRulesNew(&d);
    aclDraftClear(&d);
    return compiled;
}

/* The verdict for a request in database 0; the refused argument is stored in `refused`. */
static int refused;
static aclVerdict verdictOf(const char *rules, const char *request) {
    aclRules *compiled = rulesOf(rules);
    testWords words = wordsOf(request);
    bool unknown_sub;
    aclRequest q = {.argv = words.at, .argc = words.count};
    q.cmd = commandResolve(words.at, words.count, &unknown_sub);
    assert_non_null(q.cmd);
    assert_false(unknown_sub);
    aclVerdict verdict = aclDecide(compiled, &q, &refused);
    memFree(compiled);
    return verdict;
}

static void commands_are_allowed_by_the_last_rule(void **state) {
    assert_int_equal(verdictOf("~*", "get a"), ACL_DENIED_COMMAND);
    assert_int_equal(verdictOf("~* +get", "get a"), ACL_ALLOWED);
    assert_int_equal(verdictOf("~* +@all -@read", "get a"), ACL_DENIED_COMMAND);
    assert_int_equal(verdictOf("~* +@all -@read +get", "get a"), ACL_ALLOWED);
    assert_int_equal(verdictOf("+config", "config set a b"), ACL_ALLOWED);
    assert_int_equal(verdictOf("+config -config|set", "config set a b"), ACL_DENIED_COMMAND);
    assert_int_equal(verdictOf("+config|get", "config get a"), ACL_ALLOWED);
    assert_int_equal(verdictOf("+select|0", "select 0"), ACL_ALLOWED);
    assert_int_equal(verdictOf("+select|0", "select 00"), ACL_DENIED_COMMAND);
    assert_int_equal(verdictOf("+select|0 -@connection", "select 0"), ACL_DENIED_COMMAND);
    assert_int_equal(verdictOf("", "auth x"), ACL_ALLOWED);
}

static void keys_need_the_right_for_their_access(void **state) {
    assert_int_equal(verdictOf("+@all %R~a", "get a"), ACL_ALLOWED);
    assert_int_equal(verdictOf("+@all %R~a", "set a 1"), ACL_DENIED_KEY);
    assert_int_equal(verdictOf("+@all %W~a", "set a 1"), ACL_ALLOWED);
    assert_int_equal(verdictOf("+@all %W~a", "get a"), ACL_DENIED_KEY);
    assert_int_equal(refused, 1);
    assert_int_equal(verdictOf("+@all %R~a %W~b", "copy a b"), ACL_ALLOWED);
    assert_int_equal(verdictOf("+@all %R~a %R~b", "copy a b"), ACL_DENIED_KEY);
    assert_int_equal(refused, 2);
    assert_int_equal(verdictOf("+@all ~a ~b", "mget a b c"), ACL_DENIED_KEY);
    assert_int_equal(refused, 3);
}

static void every_one_of_many_keys_is_checked(void **state) {
    enum { KEYS = 3000 };
    slice *argv = memNewArray(slice, KEYS + 1);
    argv[0] = SLICE("mget");
    for (int i = 1; i <= KEYS; i++) argv[i] = SLICE("a");
    bool unknown_sub;
    aclRules *rules = rulesOf("+@all ~a");
    aclRequest q = {.argv = argv, .argc = KEYS + 1};
    q.cmd = commandResolve(argv, q.argc, &unknown_sub);
    assert_int_equal(aclDecide(rules, &q, &refused), ACL_ALLOWED);
    argv[KEYS] = SLICE("b");
    assert_int_equal(aclDecide(rules, &q, &refused), ACL_DENIED_KEY);
    assert_int_equal(refused, KEYS);
    memFree(rules);
    memFree(argv);
}

static void channels_match_globs_and_patterns_literally(void **state) {
    assert_int_equal(verdictOf("+@all", "publish a m"), ACL_DENIED_CHANNEL);
    assert_int_equal(verdictOf("+@all &a*", "publish ab m"), ACL_ALLOWED);
    assert_int_equal(verdictOf("+@all &a*", "psubscribe a*"), ACL_ALLOWED);
    assert_int_equal(verdictOf("+@all &a*", "psubscribe ab*"), ACL_DENIED_CHANNEL);
    assert_int_equal(verdictOf("+@all &a* &b", "psubscribe a* c b"), ACL_DENIED_CHANNEL);
    assert_int_equal(refused, 2);
    assert_int_equal(verdictOf("+@all &*", "psubscribe ab*"), ACL_ALLOWED);
}

static void a_selector_must_allow_everything_alone(void **state) {
    assert_int_equal(verdictOf("+get (~a)", "get a"), ACL_DENIED_KEY);
    assert_int_equal(verdictOf("(+get ~a) (+set ~b)", "get a"), ACL_ALLOWED);
    assert_int_equal(verdictOf("(+get ~a) (+set ~b)", "get b"), ACL_DENIED_KEY);
    assert_int_equal(verdictOf("(+@all ~a) (+@all ~a ~b)", "mget a b c"), ACL_DENIED_KEY);
    assert_int_equal(refused, 3);
}

static void only_necessary_checks_are_armed(void **state) {
    static const struct {
        const char *rules;
        uint32_t checks;
    } cases[] = {
        {"+@all ~* &*", 0},
        {"+@all ~*", ACL_CHECK_CHANNELS},
        {"+@all ~a &*", ACL_CHECK_KEYS},
        {"+@all ~a", ACL_CHECK_KEYS | ACL_CHECK_CHANNELS},
        {"+@all ~* &* db=1", ACL_CHECK_ALL},
        {"+@all -get ~* &*", ACL_CHECK_ALL},
        {"+get ~a (+@all ~* &*)", 0},
        {"+@all ~* (+@all &*)", ACL_CHECK_KEYS}, /* a command may have keys and channels */
    };
    for (size_t i = 0; i < COUNT_OF(cases); i++) {
        aclRules *rules = rulesOf(cases[i].rules);
        assert_int_equal(aclChecksOf(rules), cases[i].checks);
        memFree(rules);
    }
}

int test_check(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(commands_are_allowed_by_the_last_rule),
        cmocka_unit_test(keys_need_the_right_for_their_access),
        cmocka_unit_test(every_one_of_many_keys_is_checked),
        cmocka_unit_test(channels_match_globs_and_patterns_literally),
        cmocka_unit_test(a_selector_must_allow_everything_alone),
        cmocka_unit_test(only_necessary_checks_are_armed),
    };
    return cmocka_run_group_tests_name("check", tests, setupTestCommands, teardownTestCommands);
}
