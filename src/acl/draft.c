/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Drafts: the rules of a user while they are edited (rules.h). Invariant: a function that returns
 * an error text has changed nothing. Adding a pattern compares it with those that exist. Main
 * thread only. */
#include <stdlib.h>

#include "account/share.h"
#include "acl/catalog.h"
#include "acl/password.h"
#include "acl/roles.h"
#include "acl/rules.h"
#include "base/base.h"
#include "base/number.h"

static const char syntax_error[] = "Syntax error";
const char ACL_UNKNOWN_COMMAND[] = "Unknown command or category name in ACL";
static const char first_arg_of_sub[] = "Allowing first-arg of a subcommand is not supported";
static const char after_all_keys[] =
    "Adding a pattern after the * pattern (or the 'allkeys' flag) is not valid and does not have any effect. Try "
    "'resetkeys' to start with an empty list of patterns";
static const char after_all_channels[] =
    "Adding a pattern after the * pattern (or the 'allchannels' flag) is not valid and does not have any effect. "
    "Try 'resetchannels' to start with an empty list of channels";
static const char no_such_password[] =
    "The password you are trying to remove from the user does not exist";
static const char bad_hash[] =
    "The password hash must be exactly 64 characters and contain only lowercase hexadecimal "
    "characters";
const char ACL_UNKNOWN_ROLE[] = "The specified role does not exist";
static const char rule_of_user[] = "This rule can't be used in a role";
static const char bad_db[] = "The provided database ID is out of range";

/* Makes space for one more item; the capacity is a power of two. */
static void *grow(void *items, int count, size_t size) {
    hotCheck(count >= 0);
    hotCheck(size > 0);
    if (count & (count - 1)) return items;
    return memRealloc(items, size * (size_t)(count ? count * 2 : 1));
}

static slice sliceFrom(slice s, size_t from) { return sliceMake(s.ptr + from, s.len - from); }

/* ------------------------------------------------------------------ selectors */

static void patternsFree(aclDraftPattern *list, int count) {
    hotCheck(count >= 0);
    for (int i = 0; i < count; i++) strFree(&list[i].text);
    memFree(list);
}

static void resetKeys(aclDraftSelector *s) {
    patternsFree(s->keys, s->key_count);
    s->keys = NULL;
    s->key_count = 0;
    s->flags &= ~(uint32_t)ACL_ALL_KEYS;
}

static void resetChannels(aclDraftSelector *s) {
    patternsFree(s->channels, s->channel_count);
    s->channels = NULL;
    s->channel_count = 0;
    s->flags &= ~(uint32_t)ACL_ALL_CHANNELS;
}

static void resetDatabases(aclDraftSelector *s, bool all) {
    memFree(s->dbs);
    s->dbs = NULL;
    s->db_count = 0;
    s->flags = all ? s->flags | ACL_ALL_DBS : s->flags & ~(uint32_t)ACL_ALL_DBS;
}

static void resetCommands(aclDraftSelector *s, const char *base) {
    strClear(&s->commands);
    strAppendText(&s->commands, base);
}

static void allowAllKeys(aclDraftSelector *s) {
    resetKeys(s);
    s->flags |= ACL_ALL_KEYS;
}

static void allowAllChannels(aclDraftSelector *s) {
    resetChannels(s);
    s->flags |= ACL_ALL_CHANNELS;
}

static void selectorInit(aclDraftSelector *s, bool all_channels) {
    *s = (aclDraftSelector){.flags = ACL_ALL_DBS | (all_channels ? ACL_ALL_CHANNELS : 0)};
    resetCommands(s, "-@all");
}

void aclDraftSelectorClear(aclDraftSelector *s) {
    resetKeys(s);
    resetChannels(s);
    memFree(s->dbs);
    strFree(&s->commands);
}

/* ------------------------------------------------------------------ patterns */

/* Neither the list form nor ACL files could contain blanks. */
static bool hasBlank(slice text) {
    for (size_t i = 0; i < text.len; i++) {
        char c = text.ptr[i];
        if (c == ' ' || (c >= '\t' && c <= '\r') || c == '\0') return true;
    }
    return false;
}

static void addPattern(aclDraftPattern **list, int *count, slice text, uint8_t access) {
    hotCheck(*count >= 0);
    for (int i = 0; i < *count; i++) {
        if (!sliceEqual(strSlice(&(*list)[i].text), text)) continue;
        (*list)[i].access |= access;
        return;
    }
    *list = grow(*list, *count, sizeof(**list));
    (*list)[(*count)++] = (aclDraftPattern){strNew(text), access};
}

/* ~pattern and %RW~pattern. */
static const char *applyKeys(aclDraftSelector *s, slice rule) {
    hotCheck(rule.len > 0);
    uint8_t access = ACL_READ_WRITE;
    size_t at = 1;
    if (rule.ptr[0] == '%') {
        access = 0;
        for (; at < rule.len && rule.ptr[at] != '~'; at++) {
            char letter = (char)(rule.ptr[at] | 32);
            uint8_t one = letter == 'r' ? ACL_READ : letter == 'w' ? ACL_WRITE : 0;
            if (!one || access & one) return syntax_error;
            access |= one;
        }
        if (!access) return syntax_error;
        if (at < rule.len) at++;
    }
    slice pattern = sliceFrom(rule, at);
    if (hasBlank(pattern)) return syntax_error;
    bool is_star = sliceEqual(pattern, SLICE("*"));
    if (is_star && access == ACL_READ_WRITE) {
        allowAllKeys(s);
        return NULL;
    }
    if (s->flags & ACL_ALL_KEYS) return after_all_keys;
    addPattern(&s->keys, &s->key_count, pattern, access);
    return NULL;
}

static const char *applyChannels(aclDraftSelector *s, slice pattern) {
    if (hasBlank(pattern)) return syntax_error;
    if (sliceEqual(pattern, SLICE("*"))) {
        allowAllChannels(s);
        return NULL;
    }
    if (s->flags & ACL_ALL_CHANNELS) return after_all_channels;
    addPattern(&s->channels, &s->channel_count, pattern, ACL_READ_WRITE);
    return NULL;
}

/* ------------------------------------------------------------------ databases */

static int compareDbs(const void *a, const void *b) {
    int32_t x = *(const int32_t *)a, y = *(const int32_t *)b;
    return (x > y) - (x < y);
}

/* A database id with optional blanks and a sign before it, as strtol() accepts it. */
static const char *parseDb(slice text, int32_t *out) {
    size_t at = 0;
    while (at < text.len && (text.ptr[at] == ' ' || (text.ptr[at] >= '\t' && text.ptr[at] <= '\r')))
        at++;
    bool negative = at < text.len && text.ptr[at] == '-';
    if (at < text.len && (text.ptr[at] == '+' || negative)) at++;
    if (at == text.len) return syntax_error;
    int64_t value = 0;
    for (; at < text.len; at++) {
        if (text.ptr[at] < '0' || text.ptr[at] > '9') return syntax_error;
        if (value <= INT32_MAX) value = value * 10 + (text.ptr[at] - '0');
    }
    if ((negative && value) || value > INT32_MAX) return bad_db;
    *out = (int32_t)value;
    return NULL;
}

static const char *applyDatabases(aclDraftSelector *s, slice list) {
    int32_t *dbs = NULL;
    int count = 0;
    const char *error = NULL;
    for (bool more = true; more && !error;) {
        const char *comma = list.len ? memchr(list.ptr, ',', list.len) : NULL;
        size_t len = comma ? (size_t)(comma - list.ptr) : list.len;
        dbs = grow(dbs, count, sizeof(*dbs));
        error = parseDb(sliceMake(list.ptr, len), &dbs[count]);
        if (!error) count++;
        more = comma != NULL;
        if (more) list = sliceFrom(list, len + 1);
    }
    if (error) {
        memFree(dbs);
        return error;
    }
    qsort(dbs, (size_t)count, sizeof(*dbs), compareDbs);
    int unique = 0;
    for (int i = 0; i < count; i++) {
        if (unique == 0 || dbs[unique - 1] != dbs[i]) dbs[unique++] = dbs[i];
    }
    resetDatabases(s, false);
    s->dbs = dbs;
    s->db_count = unique;
    return NULL;
}

/* ------------------------------------------------------------------ commands */

/* True if `listed` (without its sign) is `name`, or a subcommand or first argument of it. */
static bool isCovered(slice listed, slice name) {
    if (listed.len < name.len || memcmp(listed.ptr, name.ptr, name.len) != 0) return false;
    return listed.len == name.len || (listed.ptr[name.len] == '|' && name.ptr[0] != '@');
}

/* Appends a rule to the list and removes those that it replaces. */
static void listCommand(aclDraftSelector *s, slice rule) {
    hotCheck(rule.len > 1);
    str now = STR_EMPTY, folded = strNew(rule);
    for (size_t i = 0; i < folded.len; i++) {
        if (folded.ptr[i] >= 'A' && folded.ptr[i] <= 'Z')
            folded.ptr[i] = (char)(folded.ptr[i] + 32);
    }
    slice name = sliceFrom(strSlice(&folded), 1), rest = strSlice(&s->commands);
    for (bool first = true; rest.len; first = false) {
        const char *blank = memchr(rest.ptr, ' ', rest.len);
        size_t len = blank ? (size_t)(blank - rest.ptr) : rest.len;
        if (first || !isCovered(sliceMake(rest.ptr + 1, len - 1), name)) {
            if (!first) strAppendByte(&now, ' ');
            strAppend(&now, rest.ptr, len);
        }
        rest = sliceFrom(rest, len + (blank != NULL));
    }
    strAppendByte(&now, ' ');
    strAppendSlice(&now, strSlice(&folded));
    strFree(&folded);
    strFree(&s->commands);
    s->commands = now;
}

/* A first argument is listed without quotes. */
static bool isPlainWord(slice word) {
    for (size_t i = 0; i < word.len; i++) {
        if ((uint8_t)word.ptr[i] <= ' ' || word.ptr[i] == '"' || word.ptr[i] == '\'' ||
            word.ptr[i] == 0x7f)
            return false;
    }
    return true;
}

/* Validates +command|argument: only for commands without subcommands. */
static const char *checkFirstArg(slice rule) {
    slice name = sliceFrom(rule, 1);
    size_t bar = name.len;
    while (bar > 0 && name.ptr[bar - 1] != '|') bar--;
    if (bar == 0) return ACL_UNKNOWN_COMMAND;
    const command *cmd = aclCommandFind(sliceMake(name.ptr, bar - 1));
    if (!cmd) return ACL_UNKNOWN_COMMAND;
    if (cmd->parent) return first_arg_of_sub;
    if (bar == name.len) return syntax_error;
    if (cmd->sub_count) return ACL_UNKNOWN_COMMAND;
    return isPlainWord(sliceFrom(name, bar)) ? NULL : syntax_error;
}

static const char *applyCommand(aclDraftSelector *s, slice rule) {
    hotCheck(rule.len > 0);
    slice name = sliceFrom(rule, 1);
    bool allow = rule.ptr[0] == '+';
    if (sliceIs(name, "@all")) {
        resetCommands(s, allow ? "+@all" : "-@all");
        return NULL;
    }
    if (name.len && name.ptr[0] == '@') {
        if (!aclCategoryBits(sliceFrom(name, 1))) return ACL_UNKNOWN_COMMAND;
    } else if (!aclCommandFind(name)) {
        const char *error = allow ? checkFirstArg(rule) : ACL_UNKNOWN_COMMAND;
        if (error) return error;
    }
    listCommand(s, rule);
    return NULL;
}

/* A rule for keys, channels, databases or commands. */
static const char *applyToSelector(aclDraftSelector *s, slice rule) {
    if (rule.len == 0) return NULL;
    switch (rule.ptr[0]) {
    case '~':
    case '%': return applyKeys(s, rule);
    case '&': return applyChannels(s, sliceFrom(rule, 1));
    case '+':
    case '-': return applyCommand(s, rule);
    default: break;
    }
    if (rule.len >= 3 && sliceIs(sliceMake(rule.ptr, 3), "db="))
        return applyDatabases(s, sliceFrom(rule, 3));
    if (sliceIs(rule, "allkeys")) {
        allowAllKeys(s);
    } else if (sliceIs(rule, "resetkeys")) {
        resetKeys(s);
    } else if (sliceIs(rule, "allchannels")) {
        allowAllChannels(s);
    } else if (sliceIs(rule, "resetchannels")) {
        resetChannels(s);
    } else if (sliceIs(rule, "alldbs")) {
        resetDatabases(s, true);
    } else if (sliceIs(rule, "resetdbs")) {
        resetDatabases(s, false);
    } else if (sliceIs(rule, "allcommands")) {
        resetCommands(s, "+@all");
    } else if (sliceIs(rule, "nocommands")) {
        resetCommands(s, "-@all");
    } else {
        return syntax_error;
    }
    return NULL;
}

/* "(rule rule ...)". Words may be quoted, as a pattern that contains a quote is listed. */
static const char *addSelector(aclDraft *d, slice rule, bool all_channels) {
    check(rule.len >= 2);
    if (memchr(rule.ptr, '\0', rule.len)) return syntax_error;
    str *words;
    int count;
    if (!strSplitWords(sliceMake(rule.ptr + 1, rule.len - 2), &words, &count)) return syntax_error;
    aclDraftSelector s;
    selectorInit(&s, all_channels);
    const char *error = NULL;
    for (int i = 0; i < count && !error; i++) error = applyToSelector(&s, strSlice(&words[i]));
    strFreeWords(words, count);
    if (error) {
        aclDraftSelectorClear(&s);
        return error;
    }
    d->selectors = grow(d->selectors, d->selector_count, sizeof(*d->selectors));
    d->selectors[d->selector_count++] = s;
    return NULL;
}

/* ------------------------------------------------------------------ users */

void aclDraftInit(aclDraft *d, bool all_channels) {
    *d = (aclDraft){
        .selector_count = 1, .selectors = memNew(aclDraftSelector), .known = rolesCurrent()};
    selectorInit(d->selectors, all_channels);
}

static void clearSelectors(aclDraft *d) {
    while (d->selector_count > 1) aclDraftSelectorClear(&d->selectors[--d->selector_count]);
}

void aclDraftClear(aclDraft *d) {
    hotCheck(threadIsMain());
    clearSelectors(d);
    if (d->selector_count) aclDraftSelectorClear(&d->selectors[0]);
    strFreeWords(d->roles, d->role_count);
    memFree(d->selectors);
    memFree(d->passwords);
    *d = (aclDraft){0};
}

static int findPassword(const aclDraft *d, const uint8_t *hash) {
    for (int i = 0; i < d->password_count; i++) {
        if (passwordHashesEqual(d->passwords[i], hash)) return i;
    }
    return -1;
}

static void addPassword(aclDraft *d, const uint8_t *hash) {
    d->nopass = false;
    if (findPassword(d, hash) >= 0) return;
    d->passwords = grow(d->passwords, d->password_count, sizeof(*d->passwords));
    memcpy(d->passwords[d->password_count++], hash, ACL_HASH_SIZE);
}

static const char *removePassword(aclDraft *d, const uint8_t *hash) {
    hotCheck(d->password_count >= 0);
    int at = findPassword(d, hash);
    if (at < 0) return no_such_password;
    d->password_count--;
    memmove(d->passwords[at], d->passwords[at + 1],
            (size_t)(d->password_count - at) * ACL_HASH_SIZE);
    return NULL;
}

static void resetPasswords(aclDraft *d, bool nopass) {
    d->password_count = 0;
    d->nopass = nopass;
}

static const char *applyPassword(aclDraft *d, slice rule) {
    hotCheck(rule.len > 0);
    uint8_t hash[ACL_HASH_SIZE];
    slice text = sliceFrom(rule, 1);
    bool is_hash = rule.ptr[0] == '#' || rule.ptr[0] == '!';
    if (!is_hash) {
        passwordHash(text, hash);
    } else if (!passwordHashParse(text, hash)) {
        return bad_hash;
    }
    if (rule.ptr[0] == '<' || rule.ptr[0] == '!') return removePassword(d, hash);
    addPassword(d, hash);
    return NULL;
}

/* maxmemory=<bytes>, with units as in directives. */
static const char *applyMaxmemory(aclDraft *d, slice text) {
    hotCheck(d->selector_count >= 1);
    uint64_t bytes;
    if (!text.len || !numberParseMemory(text, &bytes)) return syntax_error;
    d->maxmemory = bytes;
    return NULL;
}

/* Applies cpu=<percent>; a percent sign at the end is optional. */
static const char *applyCpu(aclDraft *d, slice text) {
    hotCheck(d->selector_count >= 1);
    return shareParsePercent(text, &d->cpu_percent) ? NULL : syntax_error;
}

static void resetRoles(aclDraft *d) {
    strFreeWords(d->roles, d->role_count);
    d->roles = NULL;
    d->role_count = 0;
}

static int compareRoles(const void *a, const void *b) {
    return sliceCompare(strSlice(a), strSlice(b));
}

/* role=<name>[,<name>...] replaces the roles. */
static const char *applyRoles(aclDraft *d, slice list) {
    hotCheck(d->known);
    str *roles = NULL;
    int count = 0;
    const char *error = NULL;
    for (bool more = true; more && !error;) {
        const char *comma = list.len ? memchr(list.ptr, ',', list.len) : NULL;
        slice name = sliceMake(list.ptr, comma ? (size_t)(comma - list.ptr) : list.len);
        more = comma != NULL;
        if (more) list = sliceFrom(list, name.len + 1);
        if (roleNameError(name)) {
            error = syntax_error;
        } else if (!rolesFind(d->known, name)) {
            error = ACL_UNKNOWN_ROLE;
        } else {
            roles = grow(roles, count, sizeof(*roles));
            roles[count++] = strNew(name);
        }
    }
    if (error) {
        strFreeWords(roles, count);
        return error;
    }
    qsort(roles, (size_t)count, sizeof(*roles), compareRoles);
    int unique = 0;
    for (int i = 0; i < count; i++) {
        if (unique && sliceEqual(strSlice(&roles[unique - 1]), strSlice(&roles[i]))) {
            strFree(&roles[i]);
        } else {
            roles[unique++] = roles[i];
        }
    }
    resetRoles(d);
    d->roles = roles;
    d->role_count = unique;
    return NULL;
}

static void reset(aclDraft *d, bool all_channels) {
    resetPasswords(d, false);
    resetRoles(d);
    d->on = false;
    d->maxmemory = 0;
    d->cpu_percent = 0;
    clearSelectors(d);
    aclDraftSelectorClear(&d->selectors[0]);
    selectorInit(&d->selectors[0], all_channels);
}

/* True for "cpu=20%" and prefix "cpu="; `*value` receives "20%". */
static bool hasPrefix(slice rule, const char *prefix, slice *value) {
    size_t len = strlen(prefix);
    hotCheck(len > 0);
    if (rule.len < len || !sliceIs(sliceMake(rule.ptr, len), prefix)) return false;
    *value = sliceFrom(rule, len);
    return true;
}

/* True for rules about passwords, the state and roles, which only users have. */
static bool isOfUsers(slice rule) {
    hotCheck(rule.len > 0);
    static const char *const words[] = {"on", "off", "nopass", "resetpass", "reset", "resetroles"};
    slice value;
    if (memchr("><#!", rule.ptr[0], 4) || hasPrefix(rule, "role=", &value)) return true;
    for (size_t i = 0; i < COUNT_OF(words); i++) {
        if (sliceIs(rule, words[i])) return true;
    }
    return false;
}

const char *aclDraftApply(aclDraft *d, slice rule, bool all_channels) {
    slice value;
    if (rule.len == 0) return NULL;
    if (d->is_role && isOfUsers(rule)) return rule_of_user;
    if (memchr("><#!", rule.ptr[0], 4)) return applyPassword(d, rule);
    if (hasPrefix(rule, "maxmemory=", &value)) return applyMaxmemory(d, value);
    if (hasPrefix(rule, "cpu=", &value)) return applyCpu(d, value);
    if (hasPrefix(rule, "role=", &value)) return applyRoles(d, value);
    bool closed = rule.ptr[rule.len - 1] == ')';
    if (rule.ptr[0] == '(' && closed) return addSelector(d, rule, all_channels);
    if (sliceIs(rule, "on") || sliceIs(rule, "off")) {
        d->on = rule.len == 2;
    } else if (sliceIs(rule, "nopass") || sliceIs(rule, "resetpass")) {
        resetPasswords(d, rule.len == 6);
    } else if (sliceIs(rule, "clearselectors")) {
        clearSelectors(d);
    } else if (sliceIs(rule, "reset")) {
        reset(d, all_channels);
    } else if (sliceIs(rule, "resetroles")) {
        resetRoles(d);
    } else if (sliceIs(rule, "sanitize-payload") || sliceIs(rule, "skip-sanitize-payload")) {
        return NULL; /* accepted for compatibility: payloads are always validated */
    } else {
        return applyToSelector(&d->selectors[0], rule);
    }
    return NULL;
}

int aclJoinSelectors(const slice *words, int word_count, str **joined, int *count) {
    *joined = memNewArray(str, (size_t)word_count);
    *count = 0;
    int open = -1;
    for (int i = 0; i < word_count; i++) {
        slice word = words[i];
        if (open < 0) {
            str *next = &(*joined)[(*count)++];
            *next = strNew(word);
            if (word.len && word.ptr[0] == '(') open = i;
        } else {
            str *last = &(*joined)[*count - 1];
            strAppendByte(last, ' ');
            strAppendSlice(last, word);
        }
        if (open >= 0 && word.len && word.ptr[word.len - 1] == ')') open = -1;
    }
    if (open < 0) return -1;
    strFreeWords(*joined, *count);
    return open;
}
