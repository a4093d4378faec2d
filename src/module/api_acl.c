/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Functions of modules: users and rights.
 *
 * Main thread, or a thread that has the lock. */
#include <errno.h>

#include "acl/private_user.h"
#include "base/base.h"
#include "engine/command.h"
#include "module/context.h"
#include "module/generated/api.h"
#include "module/user.h"
#include "store/store.h"

struct ValkeyModuleUser {
    user *own; /* NULL: the registered one of this name */
    str name;
};

user *moduleUserOf(const ValkeyModuleUser *u) {
    if (!u) return NULL;
    return u->own ? u->own : userFind(strSlice(&u->name));
}

ValkeyModuleUser *apiCreateModuleUser(const char *name) {
    ValkeyModuleUser *u = memNew(ValkeyModuleUser);
    u->own = aclPrivateUserNew(sliceOf(name));
    hotCheck(!userIsOn(u->own));
    return u;
}

ValkeyModuleUser *apiGetModuleUserFromUserName(ValkeyModuleString *name) {
    if (!name || !userFind(moduleStringSlice(name))) return NULL;
    ValkeyModuleUser *u = memNew(ValkeyModuleUser);
    u->name = strNew(moduleStringSlice(name));
    return u;
}

void apiFreeModuleUser(ValkeyModuleUser *user) {
    if (!user) return;
    if (user->own) aclPrivateUserFree(user->own);
    strFree(&user->name);
    memFree(user);
}

/* errno for the error text of a rule. */
static int errnoOf(const char *error) { return strncmp(error, "Unknown", 7) ? EINVAL : ENOENT; }

int apiSetModuleUserACL(ValkeyModuleUser *user, const char *acl) {
    struct user *u = moduleUserOf(user);
    const char *error = u && acl ? aclUserApply(u, sliceOf(acl)) : "no such user";
    if (!error) return 0;
    errno = errnoOf(error);
    return -1;
}

int apiSetModuleUserACLString(ValkeyModuleCtx *ctx, ValkeyModuleUser *user, const char *acl,
                              ValkeyModuleString **error) {
    struct user *u = moduleUserOf(user);
    str text = STR_EMPTY;
    status st = u ? aclUserApplyLine(u, sliceOf(acl), &text) : ERR_NOT_FOUND;
    if (st != OK && error) *error = apiCreateString(ctx, strText(&text), text.len);
    strFree(&text);
    return st == OK ? VALKEYMODULE_OK : VALKEYMODULE_ERR;
}

ValkeyModuleString *apiGetModuleUserACLString(ValkeyModuleUser *user) {
    const struct user *u = moduleUserOf(user);
    if (!u) return NULL;
    str text = STR_EMPTY;
    aclUserDescribe(u, &text);
    return moduleStringNewTake(&text);
}

ValkeyModuleString *apiGetCurrentUserName(ValkeyModuleCtx *ctx) {
    if (!ctx->run || !ctx->run->who->user) {
        errno = EINVAL;
        return NULL;
    }
    slice name = userNameOf(ctx->run->who);
    return apiCreateString(ctx, name.ptr, name.len);
}

/* The user only has an effect on calls that ask for it. */
void apiSetContextUser(ValkeyModuleCtx *ctx, const ValkeyModuleUser *user) {
    ctx->as_user = moduleUserOf(user);
}

/* ------------------------------------------------------------------ questions */

static const struct {
    aclRefusal refusal;
    ValkeyModuleACLLogEntryReason reason;
} reasons[] = {{ACL_REFUSES_LOGIN, VALKEYMODULE_ACL_LOG_AUTH},
               {ACL_REFUSES_COMMAND, VALKEYMODULE_ACL_LOG_CMD},
               {ACL_REFUSES_KEY, VALKEYMODULE_ACL_LOG_KEY},
               {ACL_REFUSES_CHANNEL, VALKEYMODULE_ACL_LOG_CHANNEL},
               {ACL_REFUSES_DATABASE, VALKEYMODULE_ACL_LOG_DB}};
enum { REASONS = sizeof(reasons) / sizeof(reasons[0]) };

/* 0, or a value of errno. */
static int refusalOf(const ValkeyModuleUser *user, ValkeyModuleString **argv, int argc, int db_id,
                     int unknown, ValkeyModuleACLLogEntryReason *reason) {
    const struct user *u = moduleUserOf(user);
    if (!u || argc < 1) return EINVAL;
    slice few[16], *args = moduleStringSlices(argv, argc, few, 16);
    bool unknown_sub;
    const command *cmd = commandResolve(args, argc, &unknown_sub);
    hotCheck(!cmd || !unknown_sub || cmd->sub_count);
    int error = 0, arg_index;
    if (!cmd || unknown_sub) {
        error = unknown;
    } else if (!commandArityFits(cmd, argc)) {
        error = EINVAL;
    } else {
        aclRefusal refusal = aclUserRefusal(u, cmd, args, argc, db_id, &arg_index);
        error = refusal == ACL_REFUSES_NOTHING ? 0 : EACCES;
        for (int i = 0; i < REASONS && reason; i++) {
            if (reasons[i].refusal == refusal) *reason = reasons[i].reason;
        }
    }
    if (args != few) memFree(args);
    return error;
}

static int resultOf(int error) {
    if (!error) return VALKEYMODULE_OK;
    errno = error;
    return VALKEYMODULE_ERR;
}

int apiACLCheckCommandPermissions(ValkeyModuleUser *user, ValkeyModuleString **argv, int argc) {
    return resultOf(refusalOf(user, argv, argc, -1, ENOENT, NULL));
}

int apiACLCheckPermissions(ValkeyModuleUser *user, ValkeyModuleString **argv, int argc, int dbid,
                           ValkeyModuleACLLogEntryReason *denial_reason) {
    if (dbid < 0 || dbid >= storeDbCount()) return resultOf(EINVAL);
    return resultOf(refusalOf(user, argv, argc, dbid, EINVAL, denial_reason));
}

enum {
    KEY_READS = KEY_ACCESS,
    KEY_WRITES = KEY_INSERT | KEY_UPDATE | KEY_DELETE,
};

static int checkKey(const ValkeyModuleUser *user, slice key, unsigned flags, bool all_of_prefix) {
    const struct user *u = moduleUserOf(user);
    if (!u || !key.ptr || flags & ~(unsigned)(KEY_READS | KEY_WRITES)) return resultOf(EINVAL);
    bool may = aclUserMayUseKey(u, key, flags & KEY_READS, flags & KEY_WRITES, all_of_prefix);
    return resultOf(may ? 0 : EACCES);
}

int apiACLCheckKeyPermissions(ValkeyModuleUser *user, ValkeyModuleString *key, int flags) {
    return checkKey(user, key ? moduleStringSlice(key) : sliceMake(NULL, 0), (unsigned)flags,
                    false);
}

int apiACLCheckKeyPrefixPermissions(ValkeyModuleUser *user, const char *key, size_t len,
                                    unsigned int flags) {
    return checkKey(user, sliceMake(key, len), flags, true);
}

int apiACLCheckChannelPermissions(ValkeyModuleUser *user, ValkeyModuleString *ch, int literal) {
    const struct user *u = moduleUserOf(user);
    if (!u || !ch) return resultOf(EINVAL);
    return aclUserMayUseChannel(u, moduleStringSlice(ch), !literal) ? VALKEYMODULE_OK
                                                                    : VALKEYMODULE_ERR;
}

/* ------------------------------------------------------------------ ACL LOG */

static void logEntry(ValkeyModuleCtx *x, slice user_name, ValkeyModuleString *object,
                     ValkeyModuleACLLogEntryReason reason) {
    for (int i = 0; i < REASONS; i++) {
        if (reasons[i].reason != reason) continue;
        aclLogByModule(x->run ? x->run->who : NULL, reasons[i].refusal, moduleStringSlice(object),
                       user_name);
        return;
    }
    contextMisuse(x, "ACLAddLogEntry() with the unknown reason %d", (int)reason);
}

void apiACLAddLogEntry(ValkeyModuleCtx *ctx, ValkeyModuleUser *user, ValkeyModuleString *object,
                       ValkeyModuleACLLogEntryReason reason) {
    const struct user *u = moduleUserOf(user);
    if (u && object) logEntry(ctx, u->name, object, reason);
}

void apiACLAddLogEntryByUserName(ValkeyModuleCtx *ctx, ValkeyModuleString *user,
                                 ValkeyModuleString *object, ValkeyModuleACLLogEntryReason reason) {
    if (user && object) logEntry(ctx, moduleStringSlice(user), object, reason);
}
