/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Rules: parsing, errors that change nothing, the list form, and that the list form gives the same
 * rules again. */
#include <stdio.h>

#include "acl_test.h"

#include "acl/password.h"
#include "acl/users.h"
#include "base/glob.h"
#include "base/random.h"

static void the_list_form_is_canonical(void **state) {
    assert_string_equal(listed(""), "off resetchannels -@all");
    assert_string_equal(listed("ON NoPass ~* &* +@ALL"), "on nopass ~* &* +@all");
    assert_string_equal(listed("+get +@read +GET"), "off resetchannels -@all +@read +get");
    assert_string_equal(listed("+config -config|set"),
                        "off resetchannels -@all +config -config|set");
    assert_string_equal(listed("-config|set +config"), "off resetchannels -@all +config");
    assert_string_equal(listed("+select|0 -select"), "off resetchannels -@all -select");
    assert_string_equal(listed("+get +@all"), "off resetchannels +@all");
    assert_string_equal(listed("~a %R~a %W~b %r~b"), "off ~a ~b resetchannels -@all");
    assert_string_equal(listed("~a ~*"), "off ~* resetchannels -@all");
    assert_string_equal(listed("db=3,1,3 db=2,0"), "off resetchannels db=0,2 -@all");
    assert_string_equal(listed("resetdbs"), "off resetchannels resetdbs -@all");
    assert_string_equal(
        listed("(~a +get) (db=1)"),
        "off resetchannels -@all (~a resetchannels -@all +get) (resetchannels db=1 -@all)");
    assert_string_equal(listed("~a (~b) +get reset"), "off resetchannels -@all");
}

static void words_of_a_selector_with_quotes_are_quoted(void **state) {
    aclDraft d;
    aclDraftInit(&d, false);
    assert_null(aclDraftApply(&d, SLICE("(\"~a\\\"b\" '~c)')"), false));
    aclRules *rules = aclRulesNew(&d);
    str text = STR_EMPTY;
    aclDescribe(rules, &text);
    assert_string_equal(text.ptr,
                        "off resetchannels -@all (\"~a\\\"b\" \"~c)\" resetchannels -@all)");
    char *copy = memDup(text.ptr, text.len);
    assert_string_equal(listed(copy), copy);
    memFree(copy);
    strFree(&text);
    memFree(rules);
    aclDraftClear(&d);
}

static void a_first_argument_with_a_bracket_is_quoted_in_a_selector(void **state) {
    const char *text = "off resetchannels -@all (resetchannels -@all \"+get|a)\" +get|b)";
    assert_string_equal(listed("(\"+get|a)\" +get|b)"), text);
    assert_string_equal(listed(text), text);
    assert_string_equal(listed("+get|a)"), "off resetchannels -@all +get|a)");
}

static void an_invalid_rule_has_its_error_and_changes_nothing(void **state) {
    static const struct {
        const char *rule, *error;
    } bad[] = {
        {"nope", "Syntax error"},
        {"%", "Syntax error"},
        {"%~a", "Syntax error"},
        {"%RR~a", "Syntax error"},
        {"%RWx~a", "Syntax error"},
        {"~a\tb", "Syntax error"},
        {"&a\nb", "Syntax error"},
        {")", "Syntax error"},
        {"db=", "Syntax error"},
        {"db=1,", "Syntax error"},
        {"db=,1", "Syntax error"},
        {"db=0x1", "Syntax error"},
        {"db=-1", "The provided database ID is out of range"},
        {"db=2147483648", "The provided database ID is out of range"},
        {"db=99999999999999999999", "The provided database ID is out of range"},
        {"+", "Unknown command or category name in ACL"},
        {"+@", "Unknown command or category name in ACL"},
        {"+nope", "Unknown command or category name in ACL"},
        {"+@nope", "Unknown command or category name in ACL"},
        {"-get|a", "Unknown command or category name in ACL"},
        {"+config|nope", "Unknown command or category name in ACL"},
        {"+get|a|b", "Unknown command or category name in ACL"},
        {"+get|", "Syntax error"},
        {"+select|\"", "Syntax error"},
        {"+config|get|x", "Allowing first-arg of a subcommand is not supported"},
        {"<x", "The password you are trying to remove from the user does not exist"},
        {"#00",
         "The password hash must be exactly 64 characters and contain only lowercase hexadecimal characters"},
        {"(+get", "Syntax error"},
        {"(on)", "Syntax error"},
        {"(+get \"~a)", "Syntax error"},
        {"((+get))", "Syntax error"},
    };
    aclDraft d;
    aclDraftInit(&d, false);
    assert_null(applyAll(&d, "on >x ~a &b db=1 +get (~c)"));
    assert_null(aclDraftApply(&d, SLICE("<x"), false));
    for (size_t i = 0; i < COUNT_OF(bad); i++) {
        const char *error = aclDraftApply(&d, sliceOf(bad[i].rule), false);
        assert_non_null(error);
        assert_string_equal(error, bad[i].error);
    }
    assert_non_null(aclDraftApply(&d, SLICE("~a\0b"), false));
    aclRules *rules = aclRulesNew(&d);
    str text = STR_EMPTY;
    aclDescribe(rules, &text);
    assert_string_equal(text.ptr,
                        "on ~a resetchannels &b db=1 -@all +get (~c resetchannels -@all)");
    strFree(&text);
    memFree(rules);
    aclDraftClear(&d);
}

static void a_pattern_after_all_patterns_is_an_error(void **state) {
    aclDraft d;
    aclDraftInit(&d, true);
    assert_non_null(aclDraftApply(&d, SLICE("&a"), true));
    assert_null(applyAll(&d, "allkeys ~* resetchannels &a"));
    assert_non_null(aclDraftApply(&d, SLICE("~a"), true));
    assert_non_null(aclDraftApply(&d, SLICE("%R~a"), true));
    aclDraftClear(&d);
}

static void selectors_are_joined_from_words(void **state) {
    testWords words = wordsOf("on (+get ~a b) ~c (d)");
    str *joined;
    int count;
    assert_int_equal(aclJoinSelectors(words.at, words.count, &joined, &count), -1);
    assert_int_equal(count, 4);
    assert_string_equal(joined[1].ptr, "(+get ~a b)");
    assert_string_equal(joined[3].ptr, "(d)");
    strFreeWords(joined, count);
    words = wordsOf("on (+get ~a (x");
    assert_int_equal(aclJoinSelectors(words.at, words.count, &joined, &count), 1);
}

static void passwords_are_hashes(void **state) {
    uint8_t hash[ACL_HASH_SIZE], parsed[ACL_HASH_SIZE];
    static const char abc[] = "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad";
    passwordHash(SLICE("abc"), hash);
    assert_true(passwordHashParse(sliceOf(abc), parsed));
    assert_true(passwordHashesEqual(hash, parsed));
    parsed[31] ^= 1;
    assert_false(passwordHashesEqual(hash, parsed));
    assert_false(passwordHashParse(SLICE("BA"), parsed));
    char text[160];
    (void)snprintf(text, sizeof(text), "off #%s resetchannels -@all", abc);
    assert_string_equal(listed(">abc >abc"), text);
    assert_string_equal(listed(">abc <abc"), "off resetchannels -@all");
    assert_string_equal(listed("nopass >abc"), text);
    assert_string_equal(listed(">abc nopass"), "off nopass resetchannels -@all");
}

static aclPattern keyPattern(aclRules **rules, const char *rule) {
    aclDraft d;
    aclDraftInit(&d, false);
    assert_null(aclDraftApply(&d, sliceOf(rule), false));
    *rules = aclRulesNew(&d);
    aclDraftClear(&d);
    return (*rules)->selectors[0].keys[0];
}

static void patterns_match_as_globs_whatever_their_kind(void **state) {
    static const struct {
        const char *rule, *text;
        int kind;
        bool matches;
    } cases[] = {
        {"~app", "app", PATTERN_LITERAL, true},   {"~app", "app1", PATTERN_LITERAL, false},
        {"~app:*", "app:", PATTERN_PREFIX, true}, {"~app:*", "app:1", PATTERN_PREFIX, true},
        {"~app:*", "app", PATTERN_PREFIX, false}, {"~a?c", "abc", PATTERN_GLOB, true},
        {"~a*c", "abbc", PATTERN_STARS, true},    {"~a*c", "abb", PATTERN_STARS, false},
        {"~a[bc]*", "acx", PATTERN_GLOB, true},   {"~a\\*", "a*", PATTERN_GLOB, true},
        {"~a\\*", "ab", PATTERN_GLOB, false},     {"~", "", PATTERN_LITERAL, true},
        {"~", "a", PATTERN_LITERAL, false},       {"~**", "", PATTERN_STARS, false},
        {"%R~*", "", PATTERN_PREFIX, false},      {"~a**********b", "ab", PATTERN_GLOB, true},
    };
    for (size_t i = 0; i < COUNT_OF(cases); i++) {
        aclRules *rules;
        aclPattern p = keyPattern(&rules, cases[i].rule);
        assert_int_equal(p.kind, cases[i].kind);
        assert_int_equal(aclPatternMatches(&p, sliceOf(cases[i].text)), cases[i].matches);
        memFree(rules);
    }
}

/* Whatever the kind of a pattern, it matches what the general algorithm says. */
static void random_patterns_match_as_globmatch(void **state) {
    enum { ROUNDS = 200000, LEN_MAX = 14 };
    static const char letters[] = "aab*?[]\\^-";
    char rule[LEN_MAX + 3], text[LEN_MAX + 6];
    uint64_t seed = randomNext();
    print_message("seed %llu\n", (unsigned long long)seed);
    randomSeed(seed);
    for (int round = 0; round < ROUNDS; round++) {
        size_t len = randomUniform(LEN_MAX), text_len = randomUniform(LEN_MAX + 4);
        rule[0] = '~';
        for (size_t i = 0; i < len; i++) rule[i + 1] = letters[randomUniform(sizeof(letters) - 1)];
        rule[len + 1] = 0;
        for (size_t i = 0; i < text_len; i++) text[i] = "aab]"[randomUniform(4)];
        if (strcmp(rule, "~*") == 0) continue; /* all keys: no pattern */
        aclRules *rules;
        aclPattern p = keyPattern(&rules, rule);
        bool want = globMatch(sliceMake(rule + 1, len), sliceMake(text, text_len));
        if (aclPatternMatches(&p, sliceMake(text, text_len)) != want)
            fail_msg("%s, %.*s", rule, (int)text_len, text);
        memFree(rules);
    }
}

static void a_pattern_longer_than_its_literal_count_matches(void **state) {
    enum { LONG = 70000 };
    char *rule = memAlloc(LONG + 1);
    memset(rule, 'x', LONG);
    rule[0] = '~';
    rule[LONG] = 0;
    aclRules *rules;
    aclPattern p = keyPattern(&rules, rule);
    assert_true(aclPatternMatches(&p, sliceMake(rule + 1, LONG - 1)));
    assert_false(aclPatternMatches(&p, sliceMake(rule + 1, LONG - 2)));
    memFree(rules);
    memFree(rule);
}

static void noProc(ctx *c) { (void)c; }
static const commandSpec later[] = {
    {.name = "later.read", .proc = noProc, .arity = 1, .categories = 1u << CAT_READ},
    {.name = "later.write", .proc = noProc, .arity = 1, .categories = 1u << CAT_WRITE}};
/* With other arguments, so that it does not take the place of the old one. */
static const commandSpec later_again[] = {
    {.name = "later.read", .proc = noProc, .arity = 2, .categories = 1u << CAT_WRITE}};

static bool mayRun(const aclRules *rules, const char *name) {
    const command *cmd = aclCommandFind(sliceOf(name));
    return rules->selectors[0].commands[cmd->id / 64] >> cmd->id % 64 & 1;
}

/* A removed command is not found, though another one has its name, and its specification is not
 * read. */
static void a_name_that_was_loaded_again_is_the_new_command(void **state) {
    assert_int_equal(commandLoad(later, 2), OK);
    const command *old = commandFind(SLICE("later.read"));
    aclCatalogFree();
    assert_ptr_equal(aclCommandFind(SLICE("later.read")), old);
    assert_int_equal(commandUnload(SLICE("later.read")), OK);
    assert_false(commandIsLoaded(old));
    aclCatalogFree();
    assert_null(aclCommandFind(SLICE("later.read")));
    assert_int_equal(commandLoad(later_again, 1), OK);
    aclCatalogFree();
    const command *again = commandFind(SLICE("later.read"));
    assert_ptr_not_equal(again, old);
    assert_ptr_equal(aclCommandFind(SLICE("later.read")), again);
    const uint64_t *reads = aclCategoryBits(SLICE("read"));
    assert_false(reads[old->id / 64] >> old->id % 64 & 1);
    assert_false(reads[again->id / 64] >> again->id % 64 & 1);
    assert_int_equal(commandUnload(SLICE("later.read")), OK);
    assert_int_equal(commandUnload(SLICE("later.write")), OK);
    aclCatalogFree();
}

static const aclRules *rulesOf(const char *name) { return usersFind(sliceOf(name))->rules; }

static void addUser(const char *name, const char *rules) {
    aclDraft d;
    aclDraftInit(&d, false);
    assert_null(applyAll(&d, rules));
    usersSetTake(sliceOf(name), aclRulesNew(&d));
    aclDraftClear(&d);
}

static void rules_include_commands_that_are_loaded_later(void **state) {
    addUser("reader", "+@read");
    addUser("all_but", "+@all -@write");
    addUser("everything", "+@all");
    assert_int_equal(commandLoad(later, 2), OK);
    usersCommandsChanged();
    assert_true(mayRun(rulesOf("reader"), "later.read"));
    assert_false(mayRun(rulesOf("reader"), "later.write"));
    assert_true(mayRun(rulesOf("all_but"), "later.read"));
    assert_false(mayRun(rulesOf("all_but"), "later.write"));
    assert_true(mayRun(rulesOf("everything"), "later.write"));
    addUser("named", "+later.read");
    assert_int_equal(commandUnload(SLICE("later.read")), OK);
    usersCommandsChanged();
    assert_int_equal(commandLoad(later_again, 1), OK);
    usersCommandsChanged();
    assert_false(mayRun(rulesOf("reader"), "later.read")); /* it is a write now */
    assert_true(mayRun(rulesOf("named"), "later.read"));
    usersFree();
    assert_int_equal(commandUnload(SLICE("later.read")), OK);
    assert_int_equal(commandUnload(SLICE("later.write")), OK);
    aclCatalogFree();
}

static void makeRole(const char *name, const char *rules) {
    aclDraft d;
    aclDraftInit(&d, false);
    d.is_role = true;
    assert_null(applyAll(&d, rules));
    rolesSetTake(sliceOf(name), aclRulesNew(&d));
    aclDraftClear(&d);
}

static void rules_contain_the_selectors_of_roles(void **state) {
    (void)state;
    makeRole("reader", "+get ~r:* cpu=10 maxmemory=100");
    makeRole("writer", "+set (~w:* +set) cpu=20");
    assert_string_equal(listed("on role=writer,reader,writer +get"),
                        "on resetchannels -@all +get role=reader,writer");
    assert_string_equal(listed("role=writer resetroles cpu=5"), "off cpu=5% resetchannels -@all");
    aclDraft d;
    aclDraftInit(&d, false);
    assert_null(applyAll(&d, "role=reader,writer maxmemory=7"));
    assert_non_null(applyAll(&d, "role=none"));
    assert_non_null(applyAll(&d, "role="));
    aclRules *rules = aclRulesNew(&d);
    assert_int_equal(rules->own_count, 1);
    assert_int_equal(rules->selector_count, 4);
    assert_int_equal(rules->cpu_percent, 20); /* the greatest */
    assert_int_equal(rules->own_cpu_percent, 0);
    assert_int_equal(rules->maxmemory, 7); /* its own */
    assert_true(aclHoldsRole(rules, SLICE("reader")));
    assert_false(aclHoldsRole(rules, SLICE("read")));
    aclDraftClear(&d);
    /* A draft forgets what no longer exists. */
    assert_true(rolesRemove(SLICE("reader")));
    assert_false(rolesRemove(SLICE("reader")));
    aclDraftFrom(&d, rules);
    assert_int_equal(d.role_count, 1);
    assert_int_equal(d.selector_count, 1);
    aclDraftClear(&d);
    memFree(rules);
    aclRoleSet none = {0};
    rolesReplaceTake(&none);
}

static void a_role_has_no_rules_of_users(void **state) {
    (void)state;
    static const char *const refused[] = {"on",     ">pw",        "nopass",   "reset",
                                          "role=a", "resetroles", "RESETPASS"};
    aclDraft d;
    aclDraftInit(&d, false);
    d.is_role = true;
    for (size_t i = 0; i < COUNT_OF(refused); i++) assert_non_null(applyAll(&d, refused[i]));
    assert_non_null(roleNameError(SLICE("")));
    assert_non_null(roleNameError(SLICE("a b")));
    assert_non_null(roleNameError(SLICE("a,b")));
    assert_non_null(roleNameError(SLICE("a'b")));
    assert_null(roleNameError(SLICE("a-b(c)")));
    aclDraftClear(&d);
}

int test_rules(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_list_form_is_canonical),
        cmocka_unit_test(words_of_a_selector_with_quotes_are_quoted),
        cmocka_unit_test(a_first_argument_with_a_bracket_is_quoted_in_a_selector),
        cmocka_unit_test(an_invalid_rule_has_its_error_and_changes_nothing),
        cmocka_unit_test(a_pattern_after_all_patterns_is_an_error),
        cmocka_unit_test(selectors_are_joined_from_words),
        cmocka_unit_test(passwords_are_hashes),
        cmocka_unit_test(patterns_match_as_globs_whatever_their_kind),
        cmocka_unit_test(random_patterns_match_as_globmatch),
        cmocka_unit_test(a_pattern_longer_than_its_literal_count_matches),
        cmocka_unit_test(a_name_that_was_loaded_again_is_the_new_command),
        cmocka_unit_test(rules_include_commands_that_are_loaded_later),
        cmocka_unit_test(rules_contain_the_selectors_of_roles),
        cmocka_unit_test(a_role_has_no_rules_of_users),
    };
    return cmocka_run_group_tests_name("rules", tests, setupTestCommands, teardownTestCommands);
}
