/* SPDX-License-Identifier: BSD-3-Clause
 *
 * `user` and `role` lines of the configuration (file.h). Invariant: roles are set before users, so
 * the order of lines does not matter. A command or role that a line names may be known only later:
 * it is looked up when all are. Main thread only. */
#include "acl/file.h"
#include "acl/users.h"
#include "base/base.h"

/* True for errors of rules that name what may be defined later: commands of modules, roles. */
static bool mayBeKnownLater(const char *error) {
    hotCheck(error);
    return strcmp(error, ACL_UNKNOWN_COMMAND) == 0 || strcmp(error, ACL_UNKNOWN_ROLE) == 0;
}

/* Applies the rules of a line; NULL or the error text. `*bad` is the rule with the error. */
static const char *applyLine(aclDraft *d, const slice *words, int count, str *bad) {
    str *rules;
    int rule_count;
    if (aclJoinSelectors(words, count, &rules, &rule_count) >= 0) return "Wrong format";
    const char *error = NULL;
    for (int i = 0; i < rule_count && !error; i++) {
        const char *of_rule = aclDraftApply(d, strSlice(&rules[i]), aclGivesAllChannels());
        if (!of_rule || (!aclConf.users_are_loaded && mayBeKnownLater(of_rule))) continue;
        error = of_rule;
        strAppendSlice(bad, strSlice(&rules[i]));
    }
    strFreeWords(rules, rule_count);
    return error;
}

static status checkLine(bool is_role, const slice *words, int count, reason *why) {
    hotCheck(threadIsMain());
    aclDraft d;
    str bad = STR_EMPTY;
    aclDraftInit(&d, aclGivesAllChannels());
    d.is_role = is_role;
    const char *error = applyLine(&d, words + 1, count - 1, &bad);
    aclDraftClear(&d);
    strFree(&bad);
    if (!error || mayBeKnownLater(error)) return OK;
    return reasonSet(why, ERR_SYNTAX, "Error in %s declaration '%.*s': %s",
                     is_role ? "role" : "user", (int)sizeMin(words[0].len, 64), words[0].ptr,
                     error);
}

status aclUserLineCheck(const slice *words, int count, reason *why) {
    return checkLine(false, words, count, why);
}

status aclRoleLineCheck(const slice *words, int count, reason *why) {
    hotCheck(count > 0);
    const char *bad_name = roleNameError(words[0]);
    if (bad_name)
        return reasonSet(why, ERR_SYNTAX, "Error in role declaration: invalid role name '%.*s': %s",
                         (int)sizeMin(words[0].len, 64), words[0].ptr, bad_name);
    return checkLine(true, words, count, why);
}

static status parseLine(bool is_role, const aclLine *line, aclRules **rules) {
    slice *words = memNewArray(slice, (size_t)line->count);
    for (int i = 0; i < line->count; i++) words[i] = strSlice(&line->words[i]);
    aclDraft d;
    str bad = STR_EMPTY;
    aclDraftInit(&d, aclGivesAllChannels());
    d.is_role = is_role;
    const char *error = applyLine(&d, words + 1, line->count - 1, &bad);
    if (error) {
        /* Not the rule of another error: it might be a password. */
        bool shown = mayBeKnownLater(error);
        logWarning("Error loading ACL rule '%s' for the %s named '%s': %s",
                   shown ? strText(&bad) : "(hidden)", is_role ? "role" : "user",
                   strText(&line->words[0]), error);
    } else {
        *rules = aclRulesNew(&d);
        if (!is_role && !(*rules)->on) {
            logNotice(
                "The user '%s' is disabled (there is no 'on' modifier in the user description). Make "
                "sure this is not a configuration error.",
                strText(&line->words[0]));
        }
    }
    aclDraftClear(&d);
    strFree(&bad);
    memFree(words);
    return error ? ERR_SYNTAX : OK;
}

static status applyFailed(reason *why) {
    return reasonSet(why, ERR_SYNTAX, "Critical error while loading ACLs. Exiting.");
}

status aclLinesApply(reason *why) {
    hotCheck(threadIsMain());
    aclRules *rules;
    for (int i = 0; i < aclConf.role_lines.count; i++) {
        const aclLine *line = &aclConf.role_lines.list[i];
        if (parseLine(true, line, &rules) != OK) return applyFailed(why);
        rolesSetTake(strSlice(&line->words[0]), rules);
    }
    for (int i = 0; i < aclConf.user_lines.count; i++) {
        const aclLine *line = &aclConf.user_lines.list[i];
        slice name = strSlice(&line->words[0]);
        bool valid = userNameIsValid(name);
        if (!valid) logWarning("Spaces not allowed in ACL usernames");
        if (!valid || parseLine(false, line, &rules) != OK) return applyFailed(why);
        usersSetTake(name, rules);
    }
    return OK;
}

/* Quotes what the configuration parser would not read as it is. */
static void appendConfigWord(str *out, slice word) {
    bool quoted = word.len == 0;
    for (size_t i = 0; i < word.len && !quoted; i++) {
        uint8_t c = (uint8_t)word.ptr[i];
        quoted = c <= ' ' || c >= 0x7f || c == '"' || c == '\'' || c == '\\';
    }
    if (quoted) {
        strAppendQuoted(out, word);
    } else {
        strAppendSlice(out, word);
    }
}

static void addWords(configLines *lines, const slice *words, int count) {
    hotCheck(count > 0);
    str line = STR_EMPTY;
    for (int i = 0; i < count; i++) {
        if (i) strAppendByte(&line, ' ');
        appendConfigWord(&line, words[i]);
    }
    configLinesAdd(lines, strSlice(&line));
    strFree(&line);
}

/* Adds a line of a name and rules as they are listed. */
static void addListed(configLines *lines, slice name, const aclRules *rules,
                      void (*describe)(const aclRules *rules, str *out)) {
    str text = STR_EMPTY;
    strAppendSlice(&text, name);
    strAppendByte(&text, ' ');
    describe(rules, &text);
    int count;
    slice *words = aclSplitAtBlanks(strSlice(&text), &count);
    addWords(lines, words, count);
    memFree(words);
    strFree(&text);
}

static bool userExists(slice name) { return usersFind(name) != NULL; }

static bool roleExists(slice name) { return rolesFind(rolesCurrent(), name) != NULL; }

/* Users and roles whose line in an included file would bring them back get one without any
 * right. */
static void addDeleted(configLines *lines, const aclLines *read, bool (*exists)(slice name),
                       void (*describe)(const aclRules *rules, str *out)) {
    hotCheck(aclConf.users_are_loaded);
    aclRules *none = aclRulesNone();
    for (int i = 0; i < read->count; i++) {
        const aclLine *line = &read->list[i];
        slice name = strSlice(&line->words[0]);
        if (line->is_included && !exists(name)) addListed(lines, name, none, describe);
    }
    memFree(none);
}

/* A module may rewrite the file while it is loaded. */
static void addUnchanged(configLines *lines, const aclLines *read) {
    hotCheck(!aclConf.users_are_loaded);
    for (int i = 0; i < read->count; i++) {
        const aclLine *line = &read->list[i];
        slice *words = memNewArray(slice, (size_t)line->count);
        for (int k = 0; k < line->count; k++) words[k] = strSlice(&line->words[k]);
        addWords(lines, words, line->count);
        memFree(words);
    }
}

void aclUserLinesRewrite(configLines *lines) {
    hotCheck(threadIsMain());
    if (aclConf.aclfile[0]) return;
    if (!aclConf.users_are_loaded) {
        addUnchanged(lines, &aclConf.user_lines);
        return;
    }
    int count;
    aclUser *const *all = usersAll(&count);
    for (int i = 0; i < count; i++)
        addListed(lines, all[i]->as_user.name, all[i]->rules, aclDescribe);
    addDeleted(lines, &aclConf.user_lines, userExists, aclDescribe);
}

void aclRoleLinesRewrite(configLines *lines) {
    hotCheck(threadIsMain());
    if (aclConf.aclfile[0]) return;
    if (!aclConf.users_are_loaded) {
        addUnchanged(lines, &aclConf.role_lines);
        return;
    }
    const aclRoleSet *roles = rolesCurrent();
    for (int i = 0; i < roles->count; i++)
        addListed(lines, strSlice(&roles->list[i].name), roles->list[i].rules, aclDescribeRole);
    addDeleted(lines, &aclConf.role_lines, roleExists, aclDescribeRole);
}
