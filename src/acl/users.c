/* SPDX-License-Identifier: BSD-3-Clause
 *
 * The registry of users (users.h). Invariant: the array is sorted by name and contains "default"; a
 * user outside of it is `removed` and has at least one session. Lookup takes O(log n), adding one
 * user O(n). Main thread only. */
#include "acl/users.h"

#include <stdlib.h>
#include <string.h>

#include "account/quota.h"
#include "account/share.h"
#include "acl/catalog.h"
#include "acl/check.h"
#include "acl/private_user.h"
#include "base/base.h"
#include "engine/hooks.h"
#include "engine/lifecycle.h"
#include "engine/user_texts.h"

static struct {
    aclUser **list;
    int count, cap;
    aclUser *of_default;
    aclUser *private; /* those outside of the list */
} users;

/* Position of the first user whose name is not less. */
static int lowerBound(slice name) {
    int low = 0, high = users.count;
    while (low < high) {
        int mid = low + (high - low) / 2;
        if (sliceCompare(users.list[mid]->as_user.name, name) < 0) {
            low = mid + 1;
        } else {
            high = mid;
        }
    }
    return low;
}

aclUser *usersFind(slice name) {
    int at = lowerBound(name);
    if (at == users.count || !sliceEqual(users.list[at]->as_user.name, name)) return NULL;
    return users.list[at];
}

aclUser *const *usersAll(int *count) {
    *count = users.count;
    return users.list;
}

void userDescribeLine(const aclUser *u, void (*describe)(const aclRules *rules, str *out),
                      str *out) {
    hotCheck(threadIsMain());
    strAppendText(out, "user ");
    strAppendSlice(out, u->as_user.name);
    strAppendByte(out, ' ');
    describe(u->rules, out);
}

aclUser *usersDefault(void) { return users.of_default; }

bool userNameIsValid(slice name) {
    for (size_t i = 0; i < name.len; i++) {
        char c = name.ptr[i];
        if (c == ' ' || (c >= '\t' && c <= '\r') || c == '\0') return false;
    }
    return true;
}

aclRules *defaultRulesNew(slice password) {
    static const char *const open[] = {"on", "nopass", "~*", "&*", "+@all"};
    aclDraft d;
    aclDraftInit(&d, true);
    for (size_t i = 0; i < COUNT_OF(open); i++) {
        const char *error = aclDraftApply(&d, sliceOf(open[i]), true);
        check(!error);
    }
    if (password.len) {
        str rule = STR_EMPTY;
        strAppendByte(&rule, '>');
        strAppendSlice(&rule, password);
        const char *error = aclDraftApply(&d, strSlice(&rule), true);
        check(!error);
        strFree(&rule);
    }
    aclRules *rules = aclRulesNew(&d);
    aclDraftClear(&d);
    return rules;
}

/* ------------------------------------------------------------------ adding and changing */

static void insertAt(int at, aclUser *u) {
    if (users.count == users.cap) {
        users.cap = users.cap ? users.cap * 2 : 4;
        users.list = memRealloc(users.list, sizeof(aclUser *) * (size_t)users.cap);
    }
    memmove(users.list + at + 1, users.list + at, sizeof(aclUser *) * (size_t)(users.count - at));
    users.list[at] = u;
    users.count++;
}

static bool ownsKey(void *arg, int db_id, slice key) {
    const aclUser *u = arg;
    return aclMayWrite(u->rules, db_id, key);
}

static bool isDescribedAs(const aclRules *a, const aclRules *b) {
    str x = STR_EMPTY, y = STR_EMPTY;
    aclDescribeExpanded(a, &x);
    aclDescribeExpanded(b, &y);
    bool same = sliceEqual(strSlice(&x), strSlice(&y));
    strFree(&x);
    strFree(&y);
    return same;
}

/* Makes the limit of the user that of its rules, which have replaced `before` (NULL: none).
 * Sentinel has no keyspace. */
static void applyMaxmemory(aclUser *u, const aclRules *before) {
    hotCheck(threadIsMain());
    hotCheck(u->rules != before);
    uint64_t limit = u->rules->maxmemory;
    if (likely(!limit && !u->as_user.quota) || !engineDatabaseCount()) return;
    if (!limit) {
        quotaFree(u->as_user.quota);
        u->as_user.quota = NULL;
    } else if (!u->as_user.quota) {
        u->as_user.quota = quotaNew(&u->as_user, ownsKey, u, limit);
    } else {
        quotaSetLimit(u->as_user.quota, limit);
        if (!before || !isDescribedAs(before, u->rules)) quotaRestart(u->as_user.quota);
    }
}

static void applyCpu(aclUser *u) {
    int percent = u->rules->cpu_percent;
    hotCheck(percent >= 0);
    if (!percent) {
        shareFree(&u->as_user);
    } else if (!u->as_user.share) {
        shareNew(&u->as_user, percent);
    } else {
        shareSetPercent(u->as_user.share, percent);
    }
}

static aclUser *userNewTake(slice name, aclRules *rules) {
    aclUser *u = memNew(aclUser);
    u->as_user.name = sliceMake(memDup(name.ptr, name.len), name.len);
    u->as_user.session_count = 0;
    u->rules = rules;
    u->checks = aclChecksOf(rules);
    u->as_user.quota = NULL;
    u->as_user.share = NULL;
    applyMaxmemory(u, NULL);
    applyCpu(u);
    return u;
}

/* One of the registry. */
static aclUser *listedNewTake(slice name, aclRules *rules) {
    aclUser *u = userNewTake(name, rules);
    if (sliceEqual(name, SLICE("default"))) users.of_default = u;
    return u;
}

static void userFree(aclUser *u) {
    quotaFree(u->as_user.quota);
    shareFree(&u->as_user);
    memFree((void *)(uintptr_t)u->as_user.name.ptr);
    memFree(u->rules);
    memFree(u->actions);
    memFree(u);
}

void userActionsNew(aclUser *u) {
    hotCheck(threadIsMain());
    check(!u->actions);
    u->action_count = (uint32_t)commandIdCount();
    u->actions = memAlloc(u->action_count);
    aclActionsFill(u->rules, u->actions, commandIdCount());
    const aclSelector *usual = aclUsualSelector(u->rules);
    u->keys = usual->keys;
    u->key_count = usual->key_count;
}

static bool hasAllChannels(const aclRules *rules) {
    for (uint32_t i = 0; i < rules->selector_count; i++) {
        if (rules->selectors[i].flags & ACL_ALL_CHANNELS) return true;
    }
    return false;
}

/* True if `after` does not list a channel pattern that `before` lists. */
static bool takesChannels(const aclRules *before, const aclRules *after) {
    if (hasAllChannels(after)) return false;
    if (hasAllChannels(before)) return true;
    for (uint32_t i = 0; i < before->selector_count; i++) {
        const aclSelector *s = &before->selectors[i];
        for (uint32_t k = 0; k < s->channel_count; k++) {
            slice pattern = sliceMake(s->channels[k].text, s->channels[k].len);
            if (!aclAllowsChannel(after, pattern, true)) return true;
        }
    }
    return false;
}

static void signalChannelsTaken(session *s) {
    if (s->flags & SESSION_PUBSUB) hooksSessionEvent(s, SESSION_CHANNELS_TAKEN);
}

static void signalLogin(session *s) {
    if (s->flags & SESSION_NODE_LINK) hooksSessionEvent(s, SESSION_USER_CHANGED);
}

static void replaceRulesTake(aclUser *u, aclRules *rules) {
    aclRules *before = u->rules;
    bool takes = takesChannels(before, rules);
    u->rules = rules;
    memFree(u->actions);
    u->actions = NULL;
    u->action_count = 0;
    uint32_t checks = aclChecksOf(rules);
    if (checks && u->as_user.session_count > 0) userActionsNew(u);
    if (checks != u->checks) {
        u->checks = checks;
        userEachSession(&u->as_user, gatesArmFor);
    }
    userRightsChanged();
    if (takes) userEachSession(&u->as_user, signalChannelsTaken);
    if (before->on != rules->on) userEachSession(&u->as_user, signalLogin);
    applyMaxmemory(u, before);
    applyCpu(u);
    memFree(before);
}

void usersSetRulesTake(aclUser *u, aclRules *rules) { replaceRulesTake(u, rules); }

static void compileAgain(aclUser *u) {
    hotCheck(u->rules);
    aclDraft d;
    aclDraftFrom(&d, u->rules);
    replaceRulesTake(u, aclRulesNew(&d));
    aclDraftClear(&d);
}

void usersCommandsChanged(void) {
    aclCatalogFree();
    rolesCommandsChanged();
    for (int i = 0; i < users.count; i++) compileAgain(users.list[i]);
    for (aclUser *u = users.private; u; u = u->next_private) compileAgain(u);
}

void usersRoleChanged(slice role) {
    hotCheck(threadIsMain());
    for (int i = 0; i < users.count; i++) {
        if (aclHoldsRole(users.list[i]->rules, role)) compileAgain(users.list[i]);
    }
    for (aclUser *u = users.private; u; u = u->next_private) {
        if (aclHoldsRole(u->rules, role)) compileAgain(u);
    }
}

bool usersHoldRole(slice role) {
    hotCheck(threadIsMain());
    for (int i = 0; i < users.count; i++) {
        if (aclHoldsRole(users.list[i]->rules, role)) return true;
    }
    for (const aclUser *u = users.private; u; u = u->next_private) {
        if (aclHoldsRole(u->rules, role)) return true;
    }
    return false;
}

void usersSetTake(slice name, aclRules *rules) {
    hotCheck(threadIsMain());
    int at = lowerBound(name);
    if (at < users.count && sliceEqual(users.list[at]->as_user.name, name)) {
        replaceRulesTake(users.list[at], rules);
    } else {
        insertAt(at, listedNewTake(name, rules));
    }
    userTextsChanged(false, name);
}

/* ------------------------------------------------------------------ rules that name commands */

/* The command of a rule such as "-config|set"; NULL: it names a category, or none that exists. */
static const command *commandOfRule(slice rule) {
    if (rule.len < 2 || rule.ptr[1] == '@') return NULL;
    slice name = sliceMake(rule.ptr + 1, rule.len - 1);
    const char *bar = memchr(name.ptr, '|', name.len);
    if (bar) name.len = (size_t)(bar - name.ptr);
    return aclCommandFind(name);
}

typedef bool wantedProc(const command *cmd, const void *arg);

static slice ruleNaming(const aclRules *rules, wantedProc *is_wanted, const void *arg) {
    hotCheck(rules->own_count > 0);
    for (uint32_t k = 0; k < rules->own_count; k++) {
        slice left = rules->selectors[k].rules;
        while (left.len) {
            const char *blank = memchr(left.ptr, ' ', left.len);
            slice rule = sliceMake(left.ptr, blank ? (size_t)(blank - left.ptr) : left.len);
            const command *cmd = commandOfRule(rule);
            if (cmd && is_wanted(cmd, arg)) return rule;
            size_t used = rule.len + (blank != NULL);
            left = sliceMake(left.ptr + used, left.len - used);
        }
    }
    return SLICE("");
}

slice aclRuleNaming(wantedProc *is_wanted, const void *arg) {
    hotCheck(threadIsMain());
    slice rule = SLICE("");
    const aclRoleSet *roles = rolesCurrent();
    for (int i = 0; i < users.count && !rule.len; i++)
        rule = ruleNaming(users.list[i]->rules, is_wanted, arg);
    for (int i = 0; i < roles->count && !rule.len; i++)
        rule = ruleNaming(roles->list[i].rules, is_wanted, arg);
    return rule;
}

/* ------------------------------------------------------------------ removing */

/* The user is no longer in the array. True: it has sessions, which have to leave it. */
static bool retire(aclUser *u) {
    u->removed = true;
    bool has_sessions = u->as_user.session_count > 0;
    if (!has_sessions) userFree(u);
    return has_sessions;
}

static void retireAlone(aclUser *u) {
    if (retire(u)) userEachSession(&u->as_user, userLeaveSession);
}

static void leaveRetired(session *s) {
    const aclUser *u = aclUserOf(s);
    if (u && u->removed) userLeaveSession(s);
}

void userLastLeft(user *u) {
    aclUser *left = (aclUser *)u;
    if (left->removed) userFree(left);
}

aclUser *usersNewPrivateTake(slice name, aclRules *rules) {
    hotCheck(threadIsMain());
    aclUser *u = userNewTake(name, rules);
    hotCheck(!u->removed);
    u->next_private = users.private;
    users.private = u;
    return u;
}

void usersFreePrivate(aclUser *u) {
    check(!u->removed);
    aclUser **at = &users.private;
    while (*at != u) at = &(*at)->next_private;
    *at = u->next_private;
    retireAlone(u);
}

bool usersRemove(slice name) {
    aclUser *u = usersFind(name);
    if (!u) return false;
    check(u != users.of_default);
    int at = lowerBound(name);
    users.count--;
    memmove(users.list + at, users.list + at + 1, sizeof(aclUser *) * (size_t)(users.count - at));
    userTextsChanged(false, name);
    retireAlone(u);
    return true;
}

static int compareLoaded(const void *a, const void *b) {
    return sliceCompare(((const loadedUser *)a)->name, ((const loadedUser *)b)->name);
}

/* Retires those that are not among the users of the file. All clients are visited once. */
static void retireMissing(aclUser *const *missing, int count) {
    hotCheck(count >= 0);
    bool any_sessions = false;
    for (int i = 0; i < count; i++) {
        userTextsChanged(false, missing[i]->as_user.name);
        any_sessions |= retire(missing[i]);
    }
    if (any_sessions) userEverySession(leaveRetired);
}

void usersReplaceTake(loadedUser *list, int count, aclRoleSet *roles) {
    hotCheck(threadIsMain());
    rolesReplaceTake(roles);
    for (aclUser *u = users.private; u; u = u->next_private) {
        if (u->rules->role_count) compileAgain(u);
    }
    qsort(list, (size_t)count, sizeof(*list), compareLoaded);
    aclUser **before = users.list;
    int before_count = users.count, old = 0, gone = 0;
    users.list = memAlloc(sizeof(aclUser *) * (size_t)count);
    users.count = users.cap = count;
    for (int i = 0; i < count; i++) {
        int order = 1;
        while (old < before_count &&
               (order = sliceCompare(before[old]->as_user.name, list[i].name)) < 0)
            before[gone++] = before[old++];
        bool is_same = old < before_count && order == 0;
        if (is_same) {
            users.list[i] = before[old++];
            replaceRulesTake(users.list[i], list[i].rules);
        } else {
            users.list[i] = listedNewTake(list[i].name, list[i].rules);
        }
        list[i].rules = NULL;
    }
    while (old < before_count) before[gone++] = before[old++];
    /* Not before the list is complete: their sessions may become those of another user. */
    retireMissing(before, gone);
    memFree(before);
    for (int i = 0; i < count; i++) userTextsChanged(false, list[i].name);
    check(usersFind(SLICE("default")) == users.of_default);
}

void usersFree(void) {
    for (int i = 0; i < users.count; i++) userFree(users.list[i]);
    memFree(users.list);
    memset(&users, 0, sizeof(users));
    aclRoleSet none = {0};
    rolesReplaceTake(&none);
}
