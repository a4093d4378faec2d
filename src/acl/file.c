/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Users from files (file.h). A file is parsed completely before anything is replaced. Its lines are
 * split at single blanks, without quotes: no name or rule contains blanks. Main thread only. */
#include "acl/file.h"

#include <errno.h>
#include <stdlib.h>

#include "acl/users.h"
#include "base/base.h"
#include "io/file.h"

enum { FILE_BYTES_MAX = 1024 * 1024 * 1024, NEW_FILE_MODE = 0644 };

static const char unknown_rule[] = "Unknown command or category name in ACL";

/* The users parsed so far. */
typedef struct loading {
    const char *path;
    loadedUser *users;
    int count, cap;
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
    l->users = NULL;
    l->count = l->cap = 0;
}

/* ------------------------------------------------------------------ the ACL file */

/* Splits at every single blank; memFree() the result. */
static slice *splitAtBlanks(slice line, int *count) {
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
        if (strcmp(error, unknown_rule) == 0) {
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
            slice *words = splitAtBlanks(line, &count);
            takeUserLine(l, words, count, number);
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
    if (st == OK) usersReplaceTake(l.users, l.count);
    clearUsers(&l);
    strFree(&content);
    return st;
}

static void appendUser(str *out, const aclUser *u) {
    strAppendSlice(out, u->as_user.name);
    strAppendByte(out, ' ');
    aclDescribe(u->rules, out);
}

status aclFileSave(reason *why) {
    hotCheck(threadIsMain());
    str content = STR_EMPTY;
    int count;
    aclUser *const *all = usersAll(&count);
    for (int i = 0; i < count; i++) {
        strAppendText(&content, "user ");
        appendUser(&content, all[i]);
        strAppendByte(&content, '\n');
    }
    status st = fileReplace(aclConf.aclfile, strSlice(&content), NEW_FILE_MODE, why);
    strFree(&content);
    return st;
}

/* ------------------------------------------------------------------ lines of the configuration */

/* Applies the rules of a line; NULL or the error text. `*bad` is the rule with the error. */
static const char *applyLine(aclDraft *d, const slice *words, int count, str *bad) {
    str *rules;
    int rule_count;
    if (aclJoinSelectors(words, count, &rules, &rule_count) >= 0) return "Wrong format";
    const char *error = NULL;
    for (int i = 0; i < rule_count && !error; i++) {
        const char *of_rule = aclDraftApply(d, strSlice(&rules[i]), aclGivesAllChannels());
        bool is_known = commandIdCount() > 0 || !of_rule || strcmp(of_rule, unknown_rule) != 0;
        if (!of_rule || !is_known) continue;
        error = of_rule;
        strAppendSlice(bad, strSlice(&rules[i]));
    }
    strFreeWords(rules, rule_count);
    return error;
}

status aclUserLineCheck(const slice *words, int count, reason *why) {
    hotCheck(threadIsMain());
    aclDraft d;
    str bad = STR_EMPTY;
    aclDraftInit(&d, aclGivesAllChannels());
    const char *error = applyLine(&d, words + 1, count - 1, &bad);
    aclDraftClear(&d);
    strFree(&bad);
    if (!error || strcmp(error, unknown_rule) == 0) return OK; /* known once modules are loaded */
    return reasonSet(why, ERR_SYNTAX, "Error in user declaration '%.*s': %s",
                     (int)sizeMin(words[0].len, 64), words[0].ptr, error);
}

static status parseLine(const aclUserLine *line, aclRules **rules) {
    slice *words = memNewArray(slice, (size_t)line->count);
    for (int i = 0; i < line->count; i++) words[i] = strSlice(&line->words[i]);
    aclDraft d;
    str bad = STR_EMPTY;
    aclDraftInit(&d, aclGivesAllChannels());
    const char *error = applyLine(&d, words + 1, line->count - 1, &bad);
    if (error) {
        /* Not the rule of another error: it might be a password. */
        bool shown = strcmp(error, unknown_rule) == 0;
        logWarning("Error loading ACL rule '%s' for the user named '%s': %s",
                   shown ? strText(&bad) : "(hidden)", strText(&line->words[0]), error);
    } else {
        *rules = aclRulesNew(&d);
        if (!(*rules)->on) {
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

status aclUserLinesApply(reason *why) {
    hotCheck(threadIsMain());
    for (int i = 0; i < aclConf.user_line_count; i++) {
        const aclUserLine *line = &aclConf.user_lines[i];
        aclRules *rules;
        slice name = strSlice(&line->words[0]);
        bool valid = userNameIsValid(name);
        if (!valid) logWarning("Spaces not allowed in ACL usernames");
        if (!valid || parseLine(line, &rules) != OK)
            return reasonSet(why, ERR_SYNTAX, "Critical error while loading ACLs. Exiting.");
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

static void addUserLine(configLines *lines, const slice *words, int count) {
    hotCheck(count > 0);
    str line = STR_EMPTY;
    for (int i = 0; i < count; i++) {
        if (i) strAppendByte(&line, ' ');
        appendConfigWord(&line, words[i]);
    }
    configLinesAdd(lines, strSlice(&line));
    strFree(&line);
}

static void addUser(configLines *lines, slice name, const aclRules *rules) {
    str text = STR_EMPTY;
    strAppendSlice(&text, name);
    strAppendByte(&text, ' ');
    aclDescribe(rules, &text);
    int count;
    slice *words = splitAtBlanks(strSlice(&text), &count);
    addUserLine(lines, words, count);
    memFree(words);
    strFree(&text);
}

/* Users whose line in an included file would bring them back get one without any right. */
static void addDeleted(configLines *lines) {
    hotCheck(aclConf.users_are_loaded);
    aclDraft d;
    aclDraftInit(&d, false);
    aclRules *none = aclRulesNew(&d);
    for (int i = 0; i < aclConf.user_line_count; i++) {
        const aclUserLine *line = &aclConf.user_lines[i];
        slice name = strSlice(&line->words[0]);
        if (line->is_included && !usersFind(name)) addUser(lines, name, none);
    }
    memFree(none);
    aclDraftClear(&d);
}

/* A module may rewrite the file while it is loaded. */
static void addUnchanged(configLines *lines) {
    hotCheck(!aclConf.users_are_loaded);
    for (int i = 0; i < aclConf.user_line_count; i++) {
        const aclUserLine *line = &aclConf.user_lines[i];
        slice *words = memNewArray(slice, (size_t)line->count);
        for (int k = 0; k < line->count; k++) words[k] = strSlice(&line->words[k]);
        addUserLine(lines, words, line->count);
        memFree(words);
    }
}

void aclUserLinesRewrite(configLines *lines) {
    hotCheck(threadIsMain());
    if (aclConf.aclfile[0]) return;
    if (!aclConf.users_are_loaded) {
        addUnchanged(lines);
        return;
    }
    int count;
    aclUser *const *all = usersAll(&count);
    for (int i = 0; i < count; i++) addUser(lines, all[i]->as_user.name, all[i]->rules);
    addDeleted(lines);
}
