/* SPDX-License-Identifier: BSD-3-Clause
 *
 * The digest of ACL DIGEST: SHA-256 of a text with a line per role and user. Invariant: parts of a
 * line whose order means nothing are sorted; rules for commands are not, as the later one of two
 * wins. Main thread only. */
#include "acl/digest.h"

#include <stdlib.h>

#include "acl/password.h"
#include "acl/users.h"
#include "base/base.h"

/* The parts of a line before they are sorted. */
typedef struct partList {
    str *parts;
    int count, cap;
} partList;

/* The returned text is empty, and belongs to the list. */
static str *newPart(partList *list) {
    hotCheck(list->count <= list->cap);
    if (list->count == list->cap) {
        list->cap = list->cap ? list->cap * 2 : 8;
        list->parts = memRealloc(list->parts, sizeof(str) * (size_t)list->cap);
    }
    list->parts[list->count] = STR_EMPTY;
    return &list->parts[list->count++];
}

static int compareParts(const void *a, const void *b) {
    return sliceCompare(strSlice(a), strSlice(b));
}

/* Appends the sorted parts, each after its length, and frees them. */
static void appendSorted(partList *list, str *out) {
    hotCheck(list->count >= 0);
    if (list->count) qsort(list->parts, (size_t)list->count, sizeof(str), compareParts);
    for (int i = 0; i < list->count; i++) {
        strAppendFormat(out, "%zu:", list->parts[i].len);
        strAppendSlice(out, strSlice(&list->parts[i]));
    }
    strFreeWords(list->parts, list->count);
    *list = (partList){0};
}

static void appendPatterns(const aclPattern *patterns, uint32_t count, str *out) {
    partList list = {0};
    for (uint32_t i = 0; i < count; i++) {
        str *part = newPart(&list);
        strAppendFormat(part, "%u", (unsigned)patterns[i].access);
        strAppend(part, patterns[i].text, patterns[i].len);
    }
    strAppendFormat(out, "%u ", (unsigned)count);
    appendSorted(&list, out);
}

static void appendSelector(const aclSelector *s, str *out) {
    strAppendFormat(out, "%u ", (unsigned)s->flags);
    appendPatterns(s->keys, s->key_count, out);
    appendPatterns(s->channels, s->channel_count, out);
    aclDescribeDatabases(s, out);
    strAppendByte(out, ' ');
    strAppendSlice(out, s->rules);
}

/* Appends what a user and a role have in common. */
static void appendRights(const aclRules *rules, str *out) {
    hotCheck(rules->own_count > 0);
    strAppendFormat(out, "%llu %d ", (unsigned long long)rules->own_maxmemory,
                    rules->own_cpu_percent);
    appendSelector(&rules->selectors[0], out);
    partList list = {0};
    for (uint32_t i = 1; i < rules->own_count; i++)
        appendSelector(&rules->selectors[i], newPart(&list));
    appendSorted(&list, out);
}

static void appendUser(const aclUser *u, str *out) {
    const aclRules *rules = u->rules;
    partList list = {0};
    strAppendFormat(out, "user %zu:", u->as_user.name.len);
    strAppendSlice(out, u->as_user.name);
    strAppendFormat(out, " %d %d ", (int)rules->on, (int)rules->nopass);
    for (uint32_t i = 0; i < rules->password_count; i++)
        aclAppendHash(newPart(&list), rules->passwords[i]);
    appendSorted(&list, out);
    for (uint32_t i = 0; i < rules->role_count; i++) {
        strAppendFormat(out, " role=%zu:", rules->roles[i].len);
        strAppendSlice(out, rules->roles[i]);
    }
    strAppendByte(out, ' ');
    appendRights(rules, out);
    strAppendByte(out, '\n');
}

void aclDigest(uint8_t hash[ACL_HASH_SIZE]) {
    hotCheck(threadIsMain());
    str text = STR_EMPTY;
    int count;
    aclUser *const *all = usersAll(&count);
    const aclRoleSet *roles = rolesCurrent();
    for (int i = 0; i < roles->count; i++) {
        strAppendFormat(&text, "role %zu:", roles->list[i].name.len);
        strAppendSlice(&text, strSlice(&roles->list[i].name));
        strAppendByte(&text, ' ');
        appendRights(roles->list[i].rules, &text);
        strAppendByte(&text, '\n');
    }
    for (int i = 0; i < count; i++) appendUser(all[i], &text);
    passwordHash(strSlice(&text), hash);
    passwordWipe(strSlice(&text));
    strFree(&text);
}
