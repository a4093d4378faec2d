/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Rules of users, who may hold the roles a and b, and ACL files. The first byte chooses: rules, one
 * per line, are applied to a user; a rule with an error changes nothing, and the list form of the
 * result gives the same rules again. Or the bytes are an ACL file, which is parsed without being
 * applied. */
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include "acl/check.h"
#include "acl/file.h"
#include "acl/roles.h"
#include "acl/rules.h"
#include "base/base.h"

static void noProc(ctx *c) { (void)c; }

static const keySpec keys[] = {{.flags = KEY_RW | KEY_ACCESS | KEY_UPDATE,
                                .begin = KEY_BEGIN_INDEX,
                                .begin_at = 1,
                                .find = KEY_FIND_RANGE,
                                .step = 1}};
static const commandSpec subs[] = {
    {.name = "get", .proc = noProc, .arity = -3, .categories = 1u << CAT_ADMIN | 1u << CAT_SLOW},
    {.name = "set", .proc = noProc, .arity = -4, .categories = 1u << CAT_ADMIN | 1u << CAT_SLOW}};
static const commandSpec specs[] = {
    {.name = "get",
     .proc = noProc,
     .arity = 2,
     .categories = 1u << CAT_READ,
     .key_specs = keys,
     .key_spec_count = 1},
    {.name = "select", .proc = noProc, .arity = 2, .categories = 1u << CAT_CONNECTION},
    {.name = "config", .arity = -2, .categories = 1u << CAT_SLOW, .subs = subs, .sub_count = 2},
};

static str listed(const aclDraft *d) {
    aclRules *rules = aclRulesNew(d);
    str text = STR_EMPTY;
    aclDescribe(rules, &text);
    slice argv[2] = {SLICE("get"), SLICE("some:key")};
    bool unknown_sub;
    aclRequest q = {.cmd = commandResolve(argv, 2, &unknown_sub), .argv = argv, .argc = 2};
    int arg_index;
    aclVerdict verdict = aclDecide(rules, &q, &arg_index);
    check(arg_index >= 0);
    check(arg_index <= 1);
    if (verdict == ACL_ALLOWED) check(rules->selector_count > 0);
    memFree(rules);
    return text;
}

static void applyWords(aclDraft *d, const slice *words, int count, bool must_fit) {
    str *joined;
    int joined_count;
    if (aclJoinSelectors(words, count, &joined, &joined_count) >= 0) {
        check(!must_fit);
        return;
    }
    for (int i = 0; i < joined_count; i++) {
        str before = listed(d);
        const char *error = aclDraftApply(d, strSlice(&joined[i]), false);
        if (error) {
            check(!must_fit);
            str after = listed(d);
            check(sliceEqual(strSlice(&before), strSlice(&after)));
            strFree(&after);
        }
        strFree(&before);
    }
    strFreeWords(joined, joined_count);
}

/* Splits at `separator`; at most `max` words. */
static int split(slice text, char separator, slice *words, int max) {
    int count = 0;
    while (count < max) {
        const char *end = text.len ? memchr(text.ptr, separator, text.len) : NULL;
        size_t len = end ? (size_t)(end - text.ptr) : text.len;
        words[count++] = sliceMake(text.ptr, len);
        if (!end) break;
        text = sliceMake(end + 1, text.len - len - 1);
    }
    return count;
}

static void fuzzRules(slice text) {
    enum { WORDS_MAX = 64, LIST_WORDS_MAX = 4096 };
    static slice words[LIST_WORDS_MAX];
    aclDraft d, again;
    aclDraftInit(&d, false);
    applyWords(&d, words, split(text, '\n', words, WORDS_MAX), false);
    str first = listed(&d);
    aclDraftInit(&again, false);
    int count = split(strSlice(&first), ' ', words, LIST_WORDS_MAX);
    if (count < LIST_WORDS_MAX) {
        applyWords(&again, words, count, true);
        str second = listed(&again);
        check(sliceEqual(strSlice(&first), strSlice(&second)));
        strFree(&second);
    }
    strFree(&first);
    aclDraftClear(&d);
    aclDraftClear(&again);
}

static void makeRole(const char *name, const char *rule) {
    aclDraft d;
    aclDraftInit(&d, false);
    d.is_role = true;
    const char *error = aclDraftApply(&d, sliceOf(rule), false);
    check(!error);
    rolesSetTake(sliceOf(name), aclRulesNew(&d));
    aclDraftClear(&d);
}

static void install(void) {
    commandInstall(specs, COUNT_OF(specs), false);
    makeRole("a", "(+get ~some:*)");
    makeRole("b", "cpu=5");
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    static bool installed;
    if (!installed) install();
    installed = true;
    if (size == 0) return 0;
    slice text = sliceMake(data + 1, size - 1);
    if (data[0] % 2) {
        str errors = STR_EMPTY;
        status st = aclFileCheck("file", text, &errors);
        if (st == OK) check(errors.len == 0);
        strFree(&errors);
    } else {
        fuzzRules(text);
    }
    return 0;
}
