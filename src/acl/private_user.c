/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Users that modules create, and checks of a user's rights that modules ask for. */
#include "acl/private_user.h"

#include "acl/catalog.h"
#include "acl/check.h"
#include "acl/password.h"
#include "acl/users.h"
#include "base/base.h"

static aclUser *aclOf(user *u) { return (aclUser *)u; }
static const aclRules *rulesOf(const user *u) { return ((const aclUser *)u)->rules; }

user *aclPrivateUserNew(slice name) {
    aclDraft d;
    aclDraftInit(&d, aclGivesAllChannels());
    aclUser *u = usersNewPrivateTake(name, aclRulesNew(&d));
    aclDraftClear(&d);
    return &u->as_user;
}

void aclPrivateUserFree(user *u) { usersFreePrivate(aclOf(u)); }

const char *aclUserApply(user *u, slice rule) {
    aclDraft d;
    aclDraftFrom(&d, rulesOf(u));
    const char *error = aclDraftApply(&d, rule, aclGivesAllChannels());
    hotCheck(d.selector_count > 0);
    if (!error) usersSetRulesTake(aclOf(u), aclRulesNew(&d));
    aclDraftClear(&d);
    return error;
}

/* Applies words to a draft. */
static status applyWords(aclDraft *d, const slice *words, int count, str *error) {
    hotCheck(count >= 0);
    str *rules;
    int rule_count;
    int open = aclJoinSelectors(words, count, &rules, &rule_count);
    if (open >= 0) {
        strAppendFormat(error, "Unmatched parenthesis in acl selector starting at '%.*s'.",
                        (int)words[open].len, words[open].ptr);
        return ERR_SYNTAX;
    }
    const char *failed = NULL;
    for (int i = 0; i < rule_count && !failed; i++) {
        failed = aclDraftApply(d, strSlice(&rules[i]), aclGivesAllChannels());
        if (failed)
            strAppendFormat(error, "Error in ACL SETUSER modifier '%s': %s", strText(&rules[i]),
                            failed);
    }
    for (int i = 0; i < rule_count; i++) passwordWipe(strSlice(&rules[i]));
    strFreeWords(rules, rule_count);
    return failed ? ERR_SYNTAX : OK;
}

status aclUserApplyLine(user *u, slice line, str *error) {
    str *words;
    int count;
    if (!strSplitWords(line, &words, &count)) {
        strAppendText(error, "Unbalanced quotes");
        return ERR_SYNTAX;
    }
    slice *rules = memNewArray(slice, (size_t)count + 1);
    for (int i = 0; i < count; i++) rules[i] = strSlice(&words[i]);
    aclDraft d;
    aclDraftFrom(&d, rulesOf(u));
    status st = applyWords(&d, rules, count, error);
    if (st == OK) usersSetRulesTake(aclOf(u), aclRulesNew(&d));
    aclDraftClear(&d);
    memFree(rules);
    strFreeWords(words, count);
    return st;
}

void aclUserDescribe(const user *u, str *out) { aclDescribe(rulesOf(u), out); }

/* ------------------------------------------------------------------ checks of rights */

aclRefusal aclUserRefusal(const user *u, const command *cmd, const slice *argv, int argc, int db_id,
                          int *arg_index) {
    static const aclRefusal refusals[] = {[ACL_ALLOWED] = ACL_REFUSES_NOTHING,
                                          [ACL_DENIED_DATABASE] = ACL_REFUSES_DATABASE,
                                          [ACL_DENIED_COMMAND] = ACL_REFUSES_COMMAND,
                                          [ACL_DENIED_KEY] = ACL_REFUSES_KEY,
                                          [ACL_DENIED_CHANNEL] = ACL_REFUSES_CHANNEL};
    hotCheck(commandArityFits(cmd, argc));
    aclRequest q = {.cmd = cmd, .argv = argv, .argc = argc, .db_id = db_id};
    return refusals[aclDecide(rulesOf(u), &q, arg_index)];
}

/* True if the pattern matches every key that begins with the prefix: it matches the prefix itself
 * and ends with a star. */
static bool coversPrefix(const aclPattern *p, slice prefix) {
    hotCheck(p->text);
    bool ends_with_star =
        p->len && p->text[p->len - 1] == '*' && !(p->len > 1 && p->text[p->len - 2] == '\\');
    return ends_with_star && aclPatternMatches(p, prefix);
}

bool aclUserMayUseKey(const user *u, slice key, bool reads, bool writes, bool all_of_prefix) {
    hotCheck(threadIsMain());
    const aclRules *rules = rulesOf(u);
    uint32_t access = (reads ? (uint32_t)ACL_READ : 0) | (writes ? (uint32_t)ACL_WRITE : 0);
    for (uint32_t i = 0; i < rules->selector_count; i++) {
        const aclSelector *s = &rules->selectors[i];
        if (s->flags & ACL_ALL_KEYS) return true;
        if (!all_of_prefix && aclAllowsKey(s->keys, s->key_count, key, access)) return true;
        for (uint32_t k = 0; all_of_prefix && k < s->key_count; k++) {
            const aclPattern *p = &s->keys[k];
            if ((p->access & access) == access && coversPrefix(p, key)) return true;
        }
    }
    return false;
}

bool aclUserMayUseChannel(const user *u, slice channel, bool is_pattern) {
    return aclAllowsChannel(rulesOf(u), channel, is_pattern);
}
