/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Users and roles as texts for the rest of the server (engine/user_texts.h), and whether one text
 * allows all that another one does. Invariant: a text that cannot be applied leaves nobody with the
 * rights of an older one. Main thread only. */
#include "acl/texts.h"

#include <string.h>

#include "acl/file.h"
#include "acl/password.h"
#include "acl/users.h"
#include "base/base.h"
#include "engine/user_texts.h"

/* ------------------------------------------------------------------ texts as rules */

/* A rule for a command that this server does not have. */
static void logLeftOut(bool is_role, slice name, slice rule) {
    logWarning("The %s '%.*s' has the rule '%.*s', which names a command or category that this "
               "server does not have: it is left out.",
               is_role ? "role" : "user", (int)sizeMin(name.len, 64), name.ptr,
               (int)sizeMin(rule.len, 128), rule.ptr);
}

/* The rules; NULL: `why` has the error. `name` is for the log; ptr NULL: nothing is logged. */
static aclRules *parse(bool is_role, slice name, slice text, reason *why) {
    int word_count, count = 0;
    str *rules;
    aclDraft d;
    const char *error = NULL;
    slice *words = aclSplitAtBlanks(text, &word_count);
    aclDraftInit(&d, false);
    d.is_role = is_role;
    if (aclJoinSelectors(words, word_count, &rules, &count) >= 0) {
        error = "Unmatched parenthesis in a selector";
        rules = NULL;
        count = 0;
    }
    for (int i = 0; i < count && !error; i++) {
        slice rule = strSlice(&rules[i]);
        error = aclDraftApply(&d, rule, false);
        if (!error || strcmp(error, ACL_UNKNOWN_COMMAND) != 0) continue;
        if (name.ptr) logLeftOut(is_role, name, rule);
        error = NULL;
    }
    if (rules) strFreeWords(rules, count);
    memFree(words);
    aclRules *compiled = error ? NULL : aclRulesNew(&d);
    if (error) reasonSet(why, ERR_SYNTAX, "%s", error);
    aclDraftClear(&d);
    return compiled;
}

static void setTake(bool is_role, slice name, aclRules *rules) {
    if (is_role) {
        rolesSetTake(name, rules);
    } else {
        usersSetTake(name, rules);
    }
}

static bool exists(bool is_role, slice name) {
    return is_role ? rolesFind(rolesCurrent(), name) != NULL : usersFind(name) != NULL;
}

static status setText(bool is_role, slice name, slice text, reason *why) {
    const char *bad_name = is_role                 ? roleNameError(name)
                           : userNameIsValid(name) ? NULL
                                                   : "it contains blanks or NUL";
    if (bad_name) return reasonSet(why, ERR_SYNTAX, "invalid name: %s", bad_name);
    aclRules *rules = parse(is_role, name, text, why);
    if (rules) {
        setTake(is_role, name, rules);
        return OK;
    }
    if (exists(is_role, name)) setTake(is_role, name, aclRulesNone());
    return ERR_SYNTAX;
}

static bool removeNamed(bool is_role, slice name) {
    hotCheck(threadIsMain());
    if (!exists(is_role, name)) return true;
    bool must_stay = is_role ? usersHoldRole(name) : sliceEqual(name, SLICE("default"));
    if (must_stay) {
        setTake(is_role, name, aclRulesNone());
    } else if (is_role) {
        (void)rolesRemove(name); /* it exists */
    } else {
        (void)usersRemove(name); /* the same */
    }
    return !must_stay;
}

/* ------------------------------------------------------------------ rules as texts */

static bool printText(bool is_role, slice name, str *out, bool *is_on) {
    if (is_role) {
        const aclRole *role = rolesFind(rolesCurrent(), name);
        *is_on = true;
        if (role) aclDescribeRole(role->rules, out);
        return role != NULL;
    }
    const aclUser *u = usersFind(name);
    if (!u) return false;
    *is_on = u->rules->on;
    aclDescribe(u->rules, out);
    return true;
}

static bool isAtFactoryState(const aclUser *u) {
    if (u != usersDefault()) return false;
    str now = STR_EMPTY, first = STR_EMPTY;
    aclRules *rules = defaultRulesNew(SLICE(""));
    aclDescribe(u->rules, &now);
    aclDescribe(rules, &first);
    bool same = sliceEqual(strSlice(&now), strSlice(&first));
    memFree(rules);
    strFree(&now);
    strFree(&first);
    return same;
}

static void eachText(userTextsVisitProc *visit, void *arg) {
    hotCheck(threadIsMain());
    int count;
    const aclRoleSet *roles = rolesCurrent();
    aclUser *const *all = usersAll(&count);
    for (int i = 0; i < roles->count; i++) visit(arg, true, strSlice(&roles->list[i].name));
    for (int i = 0; i < count; i++)
        if (!isAtFactoryState(all[i])) visit(arg, false, all[i]->as_user.name);
}

/* ------------------------------------------------------------------ more and fewer rights */

static bool hasPattern(const aclPattern *list, uint32_t count, const aclPattern *p) {
    for (uint32_t i = 0; i < count; i++) {
        slice text = sliceMake(list[i].text, list[i].len);
        if (!(p->access & ~list[i].access) && sliceEqual(text, sliceMake(p->text, p->len)))
            return true;
    }
    return false;
}

static bool patternsWithin(const aclPattern *a, uint32_t a_count, const aclPattern *b,
                           uint32_t b_count) {
    for (uint32_t i = 0; i < a_count; i++)
        if (!hasPattern(b, b_count, &a[i])) return false;
    return true;
}

static bool allowsId(const aclSelector *s, int id) {
    int word = id / 64;
    return word < s->command_words ? s->commands[word] >> id % 64 & 1 : s->by_default;
}

static bool firstArgsWithin(const aclSelector *a, const aclSelector *b) {
    for (uint32_t i = 0; i < a->first_arg_count; i++) {
        const aclFirstArg *arg = &a->first_args[i];
        bool found = allowsId(b, arg->command_id);
        for (uint32_t k = 0; k < b->first_arg_count && !found; k++)
            found = b->first_args[k].command_id == arg->command_id &&
                    sliceEqual(b->first_args[k].word, arg->word);
        if (!found) return false;
    }
    return true;
}

static bool commandsWithin(const aclSelector *a, const aclSelector *b) {
    if (b->all_commands) return true;
    if (a->all_commands || (a->by_default && !b->by_default)) return false;
    for (int id = 0; id < a->command_words * 64; id++)
        if (allowsId(a, id) && !allowsId(b, id)) return false;
    return firstArgsWithin(a, b);
}

static bool dbsWithin(const aclSelector *a, const aclSelector *b) {
    if (b->flags & ACL_ALL_DBS) return true;
    if (a->flags & ACL_ALL_DBS) return false;
    for (uint32_t i = 0, k = 0; i < a->db_count; i++) { /* both are sorted */
        while (k < b->db_count && b->dbs[k] < a->dbs[i]) k++;
        if (k == b->db_count || b->dbs[k] != a->dbs[i]) return false;
    }
    return true;
}

/* True if `b` certainly allows all that `a` does. */
static bool selectorWithin(const aclSelector *a, const aclSelector *b) {
    const uint32_t all = ACL_ALL_KEYS | ACL_ALL_CHANNELS;
    if (a->flags & ~b->flags & all) return false;
    if (!(b->flags & ACL_ALL_KEYS) && !patternsWithin(a->keys, a->key_count, b->keys, b->key_count))
        return false;
    if (!(b->flags & ACL_ALL_CHANNELS) &&
        !patternsWithin(a->channels, a->channel_count, b->channels, b->channel_count))
        return false;
    return dbsWithin(a, b) && commandsWithin(a, b);
}

static bool selectorsWithin(const aclRules *a, const aclRules *b) {
    for (uint32_t i = 0; i < a->selector_count; i++) {
        bool found = false;
        for (uint32_t k = 0; k < b->selector_count && !found; k++)
            found = selectorWithin(&a->selectors[i], &b->selectors[k]);
        if (!found) return false;
    }
    return true;
}

static bool passwordsWithin(const aclRules *a, const aclRules *b) {
    if (b->nopass) return true;
    if (a->nopass) return false;
    for (uint32_t i = 0; i < a->password_count; i++) {
        bool found = false;
        for (uint32_t k = 0; k < b->password_count && !found; k++)
            found = passwordHashesEqual(a->passwords[i], b->passwords[k]);
        if (!found) return false;
    }
    return true;
}

/* 0: no limit. */
static bool limitWithin(uint64_t a, uint64_t b) { return !b || (a && a <= b); }

bool aclRulesWithin(const aclRules *a, const aclRules *b) {
    hotCheck(a->selector_count > 0);
    if (a->on && !b->on) return false;
    return passwordsWithin(a, b) && limitWithin(a->maxmemory, b->maxmemory) &&
           limitWithin((uint64_t)a->cpu_percent, (uint64_t)b->cpu_percent) && selectorsWithin(a, b);
}

static bool textTakes(bool is_role, slice before, slice after) {
    reason why;
    const slice quiet = {NULL, 0};
    aclRules *a = parse(is_role, quiet, before, &why), *b = parse(is_role, quiet, after, &why);
    bool takes = !a || !b || !aclRulesWithin(a, b);
    memFree(a);
    memFree(b);
    return takes;
}

const userTextsKeeper aclTextsKeeper = {.each = eachText,
                                        .print = printText,
                                        .set = setText,
                                        .remove = removeNamed,
                                        .takes = textTakes};
