/* SPDX-License-Identifier: BSD-3-Clause
 *
 * A small command table and helpers for the tests of acl/. */
#include "acl_test.h"

static void noProc(ctx *c) { (void)c; }

#define KEYS_AT_1(flags_) \
    { \
        .flags = (flags_), .begin = KEY_BEGIN_INDEX, .begin_at = 1, .find = KEY_FIND_RANGE, \
        .step = 1 \
    }

static const keySpec read_keys[] = {KEYS_AT_1(KEY_RO | KEY_ACCESS)};
static const keySpec write_keys[] = {KEYS_AT_1(KEY_OW | KEY_UPDATE)};
static const keySpec all_keys[] = {{.flags = KEY_RO | KEY_ACCESS,
                                    .begin = KEY_BEGIN_INDEX,
                                    .begin_at = 1,
                                    .find = KEY_FIND_RANGE,
                                    .last = -1,
                                    .step = 1}};
static const keySpec copy_keys[] = {KEYS_AT_1(KEY_RO | KEY_ACCESS),
                                    {.flags = KEY_OW | KEY_UPDATE,
                                     .begin = KEY_BEGIN_INDEX,
                                     .begin_at = 2,
                                     .find = KEY_FIND_RANGE,
                                     .step = 1}};
static const commandArg channel_arg[] = {{.name = "channel", .key_spec = -1}};
static const commandArg pattern_arg[] = {
    {.name = "pattern", .flags = ARG_MULTIPLE, .key_spec = -1}};

enum { IN_READ = 1u << CAT_READ | 1u << CAT_FAST, IN_WRITE = 1u << CAT_WRITE | 1u << CAT_SLOW };

static const commandSpec config_subs[] = {
    {.name = "get", .proc = noProc, .arity = -3, .categories = 1u << CAT_ADMIN | 1u << CAT_SLOW},
    {.name = "set", .proc = noProc, .arity = -4, .categories = 1u << CAT_ADMIN | 1u << CAT_SLOW}};

static const commandSpec specs[] = {
    {.name = "get",
     .proc = noProc,
     .arity = 2,
     .categories = IN_READ,
     .key_specs = read_keys,
     .key_spec_count = 1},
    {.name = "set",
     .proc = noProc,
     .arity = -3,
     .categories = IN_WRITE,
     .key_specs = write_keys,
     .key_spec_count = 1},
    {.name = "select",
     .proc = noProc,
     .arity = 2,
     .categories = 1u << CAT_CONNECTION | 1u << CAT_FAST},
    {.name = "config",
     .arity = -2,
     .categories = 1u << CAT_SLOW,
     .subs = config_subs,
     .sub_count = 2},
    {.name = "copy",
     .proc = noProc,
     .arity = -3,
     .categories = IN_WRITE,
     .key_specs = copy_keys,
     .key_spec_count = 2},
    {.name = "mget",
     .proc = noProc,
     .arity = -2,
     .categories = IN_READ,
     .key_specs = all_keys,
     .key_spec_count = 1},
    {.name = "publish",
     .proc = noProc,
     .arity = 3,
     .flags = CMD_PUBSUB,
     .categories = 1u << CAT_PUBSUB,
     .args = channel_arg,
     .arg_count = 1},
    {.name = "psubscribe",
     .proc = noProc,
     .arity = -2,
     .flags = CMD_PUBSUB,
     .categories = 1u << CAT_PUBSUB,
     .args = pattern_arg,
     .arg_count = 1},
    {.name = "auth",
     .proc = noProc,
     .arity = -2,
     .flags = CMD_NO_AUTH,
     .categories = 1u << CAT_CONNECTION},
};

int setupTestCommands(void **state) {
    (void)state;
    commandInstall(specs, COUNT_OF(specs), false);
    return 0;
}

int teardownTestCommands(void **state) {
    (void)state;
    aclCatalogFree();
    commandUninstall();
    return 0;
}

testWords wordsOf(const char *text) {
    testWords words = {.count = 0};
    while (*text) {
        size_t len = strcspn(text, " ");
        assert_true(words.count < 16);
        words.at[words.count++] = sliceMake(text, len);
        text += len;
        if (*text) text++;
    }
    return words;
}

const char *applyAll(aclDraft *d, const char *rules) {
    testWords words = wordsOf(rules);
    str *joined;
    int count;
    assert_int_equal(aclJoinSelectors(words.at, words.count, &joined, &count), -1);
    const char *error = NULL;
    for (int i = 0; i < count && !error; i++) error = aclDraftApply(d, strSlice(&joined[i]), false);
    strFreeWords(joined, count);
    return error;
}

const char *listed(const char *rules) {
    static char text[1024];
    aclDraft d, again;
    aclDraftInit(&d, false);
    assert_null(applyAll(&d, rules));
    aclRules *first = aclRulesNew(&d), *second;
    aclDraftFrom(&again, first);
    second = aclRulesNew(&again);
    str a = STR_EMPTY, b = STR_EMPTY;
    aclDescribe(first, &a);
    aclDescribe(second, &b);
    assert_string_equal(a.ptr, b.ptr); /* a draft made from rules compiles to the same */
    assert_true(a.len < sizeof(text));
    memcpy(text, a.ptr, a.len + 1);
    strFree(&a);
    strFree(&b);
    memFree(first);
    memFree(second);
    aclDraftClear(&d);
    aclDraftClear(&again);
    return text;
}
