/* SPDX-License-Identifier: BSD-3-Clause
 *
 * ACL SETROLE, GETROLE, DELROLE, ROLES and DIGEST, as in Valkey 9.2. Main thread only. */
#include "acl/cmd_acl.h"
#include "acl/digest.h"
#include "acl/procs.h"
#include "acl/users.h"
#include "base/base.h"
#include "engine/reply.h"

/* ACL SETROLE rolename [rule ...]. Reply: OK. All rules apply, or none. */
void aclSetroleCommand(ctx *c) {
    hotCheck(c->argc >= 3);
    for (int i = 2; i < c->argc; i++) ctxRedact(c, i);
    slice name = c->argv[2];
    const char *bad_name = roleNameError(name);
    if (bad_name) {
        replyErrorFormat(c, "ERR %s", bad_name);
        return;
    }
    aclDraft d;
    const aclRole *existing = rolesFind(rolesCurrent(), name);
    if (existing) {
        aclDraftFrom(&d, existing->rules);
    } else {
        aclDraftInit(&d, aclGivesAllChannels());
    }
    d.is_role = true;
    if (aclApplyArguments(c, &d, "SETROLE")) {
        rolesSetTake(name, aclRulesNew(&d));
        replyOk(c);
    }
    aclDraftClear(&d);
}

/* The names of the users that hold the role. */
static void replyHolders(ctx *c, slice role) {
    hotCheck(role.len > 0);
    int count;
    int64_t holders = 0;
    aclUser *const *all = usersAll(&count);
    for (int i = 0; i < count; i++) holders += aclHoldsRole(all[i]->rules, role);
    replyArray(c, holders);
    for (int i = 0; i < count; i++) {
        if (aclHoldsRole(all[i]->rules, role)) replyBulk(c, all[i]->as_user.name);
    }
}

/* ACL GETROLE rolename. Reply: a map with the rules of the role and its users, or null. */
void aclGetroleCommand(ctx *c) {
    hotCheck(c->argc == 3);
    ctxRedact(c, 2);
    const aclRole *role = rolesFind(rolesCurrent(), c->argv[2]);
    if (!role) {
        replyNull(c);
        return;
    }
    const aclRules *rules = role->rules;
    replyMap(c, 6 + (rules->maxmemory != 0) + (rules->cpu_percent != 0));
    aclReplyRights(c, rules);
    replyBulkText(c, "users");
    replyHolders(c, strSlice(&role->name));
    if (rules->maxmemory) {
        replyBulkText(c, "maxmemory");
        replyInteger(c, (int64_t)rules->maxmemory);
    }
    if (rules->cpu_percent) {
        replyBulkText(c, "cpu");
        replyInteger(c, rules->cpu_percent);
    }
    aclWarnRules(rules);
}

/* ACL DELROLE rolename [rolename ...]. Reply: the number of removed roles. None is removed if one
 * of them is held by a user. */
void aclDelroleCommand(ctx *c) {
    hotCheck(c->argc >= 3);
    for (int i = 2; i < c->argc; i++) ctxRedact(c, i);
    for (int i = 2; i < c->argc; i++) {
        if (!usersHoldRole(c->argv[i])) continue;
        replyErrorFormat(
            c, "ERR Role '%.*s' is assigned to one or more users. Remove it from them first.",
            (int)c->argv[i].len, c->argv[i].ptr);
        return;
    }
    int64_t removed = 0;
    for (int i = 2; i < c->argc; i++) removed += rolesRemove(c->argv[i]);
    replyInteger(c, removed);
}

/* ACL ROLES. Reply: the names, sorted. */
void aclRolesCommand(ctx *c) {
    hotCheck(c->argc == 2);
    const aclRoleSet *roles = rolesCurrent();
    replyArray(c, roles->count);
    for (int i = 0; i < roles->count; i++) replyBulk(c, strSlice(&roles->list[i].name));
}

/* ACL DIGEST. Reply: 64 hexadecimal digits. */
void aclDigestCommand(ctx *c) {
    hotCheck(c->argc == 2);
    uint8_t hash[ACL_HASH_SIZE];
    str text = STR_EMPTY;
    aclDigest(hash);
    aclAppendHash(&text, hash);
    replyBulk(c, strSlice(&text));
    strFree(&text);
}
