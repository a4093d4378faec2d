/* SPDX-License-Identifier: BSD-3-Clause
 *
 * The registry of roles (roles.h). Invariant: a set is sorted by name, and each user holds only
 * roles of the current one. Lookup takes O(log n), adding one role O(n), changing one O(users).
 * Main thread only. */
#include "acl/roles.h"

#include "acl/users.h"
#include "base/base.h"
#include "engine/user_texts.h"

static aclRoleSet current;

const aclRoleSet *rolesCurrent(void) { return &current; }

/* Position of the first role whose name is not less. */
static int lowerBound(const aclRoleSet *set, slice name) {
    int low = 0, high = set->count;
    while (low < high) {
        int mid = low + (high - low) / 2;
        if (sliceCompare(strSlice(&set->list[mid].name), name) < 0) {
            low = mid + 1;
        } else {
            high = mid;
        }
    }
    return low;
}

static aclRole *findIn(const aclRoleSet *set, slice name) {
    int at = lowerBound(set, name);
    if (at == set->count || !sliceEqual(strSlice(&set->list[at].name), name)) return NULL;
    return &set->list[at];
}

const aclRole *rolesFind(const aclRoleSet *set, slice name) { return findIn(set, name); }

void rolesAddTake(aclRoleSet *set, slice name, aclRules *rules) {
    check(rules->role_count == 0);
    aclRole *existing = findIn(set, name);
    if (existing) {
        memFree(existing->rules);
        existing->rules = rules;
        return;
    }
    int at = lowerBound(set, name);
    if (set->count == set->cap) {
        set->cap = set->cap ? set->cap * 2 : 4;
        set->list = memRealloc(set->list, sizeof(aclRole) * (size_t)set->cap);
    }
    memmove(set->list + at + 1, set->list + at, sizeof(aclRole) * (size_t)(set->count - at));
    set->list[at] = (aclRole){strNew(name), rules};
    set->count++;
}

void rolesClear(aclRoleSet *set) {
    hotCheck(set->count <= set->cap);
    for (int i = 0; i < set->count; i++) {
        strFree(&set->list[i].name);
        memFree(set->list[i].rules);
    }
    memFree(set->list);
    *set = (aclRoleSet){0};
}

const char *roleNameError(slice name) {
    if (name.len == 0) return "Role names can't be empty";
    for (size_t i = 0; i < name.len; i++) {
        char c = name.ptr[i];
        if (c <= ' ' || c > '~')
            return "Role names can only contain printable ASCII characters, without spaces";
        if (c == ',') return "Role names can't contain commas";
        if (c == '"' || c == '\'' || c == '\\')
            return "Role names can't contain quotes or backslashes";
    }
    return NULL;
}

void roleDescribeLine(const aclRole *role, str *out) {
    hotCheck(role->name.len > 0);
    strAppendText(out, "role ");
    strAppendSlice(out, strSlice(&role->name));
    strAppendByte(out, ' ');
    aclDescribeRole(role->rules, out);
}

void rolesSetTake(slice name, aclRules *rules) {
    hotCheck(!roleNameError(name));
    rolesAddTake(&current, name, rules);
    usersRoleChanged(name);
    userTextsChanged(true, name);
}

bool rolesRemove(slice name) {
    aclRole *role = findIn(&current, name);
    if (!role) return false;
    check(!usersHoldRole(name));
    userTextsChanged(true, name);
    strFree(&role->name);
    memFree(role->rules);
    current.count--;
    memmove(role, role + 1, sizeof(*role) * (size_t)(current.count - (role - current.list)));
    return true;
}

void rolesReplaceTake(aclRoleSet *set) {
    check(set != &current);
    for (int i = 0; i < current.count; i++) userTextsChanged(true, strSlice(&current.list[i].name));
    rolesClear(&current);
    current = *set;
    *set = (aclRoleSet){0};
    for (int i = 0; i < current.count; i++) userTextsChanged(true, strSlice(&current.list[i].name));
}

void rolesCommandsChanged(void) {
    for (int i = 0; i < current.count; i++) {
        aclRole *role = &current.list[i];
        aclRules *before = role->rules;
        aclDraft d;
        aclDraftFrom(&d, before);
        role->rules = aclRulesNew(&d);
        hotCheck(role->rules->own_count == before->own_count);
        aclDraftClear(&d);
        memFree(before);
    }
}
