/* SPDX-License-Identifier: BSD-3-Clause
 *
 * The ACL file (file.h). It is parsed completely before anything is replaced. Its lines are split
 * at single blanks, without quotes: no name or rule contains blanks. Main thread only. */
#include "acl/file.h"

#include <errno.h>
#include <stdlib.h>

#include "acl/users.h"
#include "base/base.h"
#include "io/file.h"

enum { FILE_BYTES_MAX = 1024 * 1024 * 1024, NEW_FILE_MODE = 0644, NAME_SHOWN_MAX = 256 };

/* The users and roles parsed so far. */
typedef struct loading {
    const char *path;
    loadedUser *users;
    int count, cap;
    aclRoleSet roles;
    str *errors;
} loading;

static void addUserTake(loading *l, slice name, aclRules *rules, int line) {
    if (l->count == l->cap) {
        l->cap = l->cap ? l->cap * 2 : 16;
        l->users = memRealloc(l->users, sizeof(loadedUser) * (size_t)l->cap);
    }
    l->users[l->count++] = (loadedUser){name, rules, line};
}

static void clearUsers(loading *l) {
    for (int i = 0; i < l->count; i++) memFree(l->users[i].rules);
    memFree(l->users);
    rolesClear(&l->roles);
    l->users = NULL;
    l->count = l->cap = 0;
}

/* ------------------------------------------------------------------ the ACL file */

slice *aclSplitAtBlanks(slice line, int *count) {
    int n = 1;
    for (size_t i = 0; i < line.len; i++) n += line.ptr[i] == ' ';
    slice *words = memNewArray(slice, (size_t)n);
    size_t start = 0;
    *count = 0;
    for (size_t i = 0; i <= line.len; i++) {
        if (i < line.len && line.ptr[i] != ' ') continue;
        words[(*count)++] = sliceMake(line.ptr + start, i - start);
        start = i + 1;
    }
    check(*count == n);
    return words;
}

/* Applies the rules of a line. All unknown commands are reported, of other errors the first. */
static void applyRules(loading *l, aclDraft *d, const slice *words, int count, int line) {
    str *rules;
    int rule_count;
    if (aclJoinSelectors(words, count, &rules, &rule_count) >= 0) {
        strAppendFormat(l->errors, "%s:%d: Unmatched parenthesis in selector definition.", l->path,
                        line);
        return;
    }
    bool reported = false;
    for (int i = 0; i < rule_count; i++) {
        slice rule = strSlice(&rules[i]);
        const char *error = aclDraftApply(d, rule, aclGivesAllChannels());
        if (!error) continue;
        if (strcmp(error, ACL_UNKNOWN_COMMAND) == 0) {
            strAppendFormat(l->errors, "%s:%d: Error in applying operation '", l->path, line);
            strAppendSlice(l->errors, rule);
            strAppendFormat(l->errors, "': %s. ", error);
        } else if (!reported) {
            strAppendFormat(l->errors, "%s:%d: %s. ", l->path, line, error);
            reported = true;
        }
    }
    strFreeWords(rules, rule_count);
}

/* A role that users of the lines after it may hold. */
static void takeRoleLine(loading *l, const slice *words, int count, int line) {
    hotCheck(count > 0);
    if (count < 2 || words[1].len == 0) {
        strAppendFormat(l->errors, "%s:%d: role declaration requires a role name. ", l->path, line);
        return;
    }
    const char *bad_name = roleNameError(words[1]);
    int shown = (int)sizeMin(words[1].len, NAME_SHOWN_MAX);
    if (bad_name) {
        strAppendFormat(l->errors, "%s:%d: invalid role name '%.*s': %s. ", l->path, line, shown,
                        words[1].ptr, bad_name);
        return;
    }
    if (rolesFind(&l->roles, words[1])) {
        strAppendFormat(l->errors, "WARNING: Duplicate role '%.*s' found on line %d. ", shown,
                        words[1].ptr, line);
        return;
    }
    aclDraft d;
    aclDraftInit(&d, aclGivesAllChannels());
    d.is_role = true;
    size_t before = l->errors->len;
    strAppendFormat(l->errors, "Error in role declaration '%.*s': ", shown, words[1].ptr);
    size_t without_error = l->errors->len;
    applyRules(l, &d, words + 2, count - 2, line);
    if (l->errors->len == without_error) strCut(l->errors, before);
    rolesAddTake(&l->roles, words[1], aclRulesNew(&d));
    aclDraftClear(&d);
}

static void takeUserLine(loading *l, const slice *words, int count, int line) {
    bool is_user = sliceEqual(words[0], SLICE("user"));
    if (!is_user || count < 2 || words[1].len == 0) {
        strAppendFormat(l->errors,
                        "%s:%d should start with user keyword followed by the username. ", l->path,
                        line);
        return;
    }
    if (!userNameIsValid(words[1])) {
        strAppendFormat(l->errors, "'%s:%d: username '", l->path, line);
        strAppendSlice(l->errors, words[1]);
        strAppendText(l->errors, "' contains invalid characters. ");
        return;
    }
    aclDraft d;
    aclDraftInit(&d, aclGivesAllChannels());
    d.known = &l->roles;
    applyRules(l, &d, words + 2, count - 2, line);
    addUserTake(l, words[1], aclRulesNew(&d), line);
    aclDraftClear(&d);
}

static int compareByName(const void *a, const void *b) {
    const loadedUser *x = a, *y = b;
    int order = memcmp(x->name.ptr, y->name.ptr, sizeMin(x->name.len, y->name.len));
    if (order) return order;
    if (x->name.len != y->name.len) return x->name.len > y->name.len ? 1 : -1;
    return x->line - y->line;
}

/* Sorts the users and reports those with several lines. Returns true if the default user is among
 * them. */
static bool findRepeated(loading *l) {
    bool has_default = false;
    if (l->count) qsort(l->users, (size_t)l->count, sizeof(*l->users), compareByName);
    for (int i = 0; i < l->count; i++) {
        slice name = l->users[i].name;
        has_default |= sliceEqual(name, SLICE("default"));
        if (i == 0 || !sliceEqual(l->users[i - 1].name, name)) continue;
        strAppendText(l->errors, "WARNING: Duplicate user '");
        strAppendSlice(l->errors, name);
        strAppendFormat(l->errors, "' found on line %d. ", l->users[i].line);
    }
    return has_default;
}

static status parseFile(loading *l, slice content) {
    size_t before = l->errors->len;
    for (int number = 1; content.len; number++) {
        const char *end = memchr(content.ptr, '\n', content.len);
        size_t len = end ? (size_t)(end - content.ptr) : content.len;
        slice line = sliceTrim(sliceMake(content.ptr, len));
        if (line.len) {
            int count;
            slice *words = aclSplitAtBlanks(line, &count);
            if (sliceEqual(words[0], SLICE("role"))) {
                takeRoleLine(l, words, count, number);
            } else {
                takeUserLine(l, words, count, number);
            }
            memFree(words);
        }
        len += end != NULL;
        content = sliceMake(content.ptr + len, content.len - len);
    }
    if (!findRepeated(l))
        addUserTake(l, SLICE("default"), defaultRulesNew(strSlice(&aclConf.requirepass)), 0);
    if (l->errors->len == before) return OK;
    strAppendText(l->errors, "WARNING: ACL errors detected, no change to the previously active ACL "
                             "rules was performed");
    return ERR_SYNTAX;
}

status aclFileCheck(const char *path, slice content, str *errors) {
    hotCheck(threadIsMain());
    loading l = {.path = path, .errors = errors};
    status st = parseFile(&l, content);
    clearUsers(&l);
    return st;
}

status aclFileLoad(str *errors) {
    hotCheck(threadIsMain());
    loading l = {.path = aclConf.aclfile, .errors = errors};
    str content = STR_EMPTY;
    reason why;
    status st = fileReadAll(l.path, FILE_BYTES_MAX, &content, &why);
    if (st != OK) {
        strAppendFormat(errors, "Error loading ACLs, opening file '%s': %s", l.path,
                        st == ERR_LIMIT ? why.text : strerror(errno));
        return st;
    }
    st = parseFile(&l, strSlice(&content));
    if (st == OK) usersReplaceTake(l.users, l.count, &l.roles);
    clearUsers(&l);
    strFree(&content);
    return st;
}

status aclFileSave(reason *why) {
    hotCheck(threadIsMain());
    str content = STR_EMPTY;
    int count;
    aclUser *const *all = usersAll(&count);
    const aclRoleSet *roles = rolesCurrent();
    for (int i = 0; i < roles->count; i++) {
        roleDescribeLine(&roles->list[i], &content);
        strAppendByte(&content, '\n');
    }
    for (int i = 0; i < count; i++) {
        userDescribeLine(all[i], aclDescribe, &content);
        strAppendByte(&content, '\n');
    }
    status st = fileReplace(aclConf.aclfile, strSlice(&content), NEW_FILE_MODE, why);
    strFree(&content);
    return st;
}
