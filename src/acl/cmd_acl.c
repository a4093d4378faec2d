/* SPDX-License-Identifier: BSD-3-Clause
 *
 * ACL and its subcommands but those of roles (cmd_role.c). Main thread only. */
#include "account/quota.h"
#include "account/share.h"
#include "acl/acl_priv.h"
#include "acl/catalog.h"
#include "acl/check.h"
#include "acl/cmd_acl.h"
#include "acl/file.h"
#include "acl/log.h"
#include "acl/password.h"
#include "acl/procs.h"
#include "acl/users.h"
#include "base/base.h"
#include "base/random.h"
#include "engine/reply.h"

enum { GENPASS_BITS_DEFAULT = 256, GENPASS_BITS_MAX = 4096, CATEGORY_SHOWN_MAX = 128 };

static const slice NO_FILE_TEXT = SLICE(
    "ERR This instance is not configured to use an ACL file. You may want to specify users via the "
    "ACL SETUSER command and then issue a CONFIG REWRITE (assuming you have a configuration file "
    "set) in order to store users in the configuration.");

/* --------------------------------------------------------------- ACL CAT, GENPASS, HELP, WHOAMI */

/* ACL CAT [category]. Reply: the categories, or the commands of one. */
void aclCatCommand(ctx *c) {
    hotCheck(c->argc >= 2);
    if (c->argc > 3) {
        replyErrorSubcommand(c);
        return;
    }
    if (c->argc == 2) {
        replyArray(c, commandCategoryCount());
        for (int i = 0; i < commandCategoryCount(); i++) replyBulkText(c, commandCategoryName(i));
        return;
    }
    const uint64_t *bits = aclCategoryBits(c->argv[2]);
    if (!bits) {
        replyErrorFormat(c, "ERR Unknown category '%.*s'",
                         (int)sizeMin(c->argv[2].len, CATEGORY_SHOWN_MAX), c->argv[2].ptr);
        return;
    }
    int64_t count = 0;
    for (int i = 0; i < aclCommandWords(); i++) count += __builtin_popcountll(bits[i]);
    replyArray(c, count);
    for (int id = 0; id < commandIdCount(); id++) {
        if (bits[id / 64] >> id % 64 & 1) replyBulk(c, commandById(id)->name);
    }
}

/* ACL GENPASS [bits]. Reply: unpredictable hexadecimal digits, 4 bits each. */
void aclGenpassCommand(ctx *c) {
    hotCheck(c->argc >= 2);
    int64_t bits = GENPASS_BITS_DEFAULT;
    char text[GENPASS_BITS_MAX / 4];
    if (c->argc > 3) {
        replyErrorSubcommand(c);
        return;
    }
    if (c->argc == 3) {
        if (!ctxArgInt(c, 2, &bits)) return;
        if (bits <= 0 || bits > GENPASS_BITS_MAX) {
            replyError(c,
                       SLICE("ERR ACL GENPASS argument must be the number of bits for the output "
                             "password, a positive number up to 4096"));
            return;
        }
    }
    size_t digits = (size_t)(bits + 3) / 4;
    randomHex(text, digits);
    replyBulk(c, sliceMake(text, digits));
    passwordWipe(sliceMake(text, digits));
}

/* ACL HELP. Reply: lines of text. */
void aclHelpCommand(ctx *c) {
    static const char *const lines[] = {
        "CAT [<category>]",
        "    List all commands that belong to <category>, or all command categories",
        "    when no category is specified.",
        "DELROLE <rolename> [<rolename> ...]",
        "    Delete a list of roles that no user holds.",
        "DELUSER <username> [<username> ...]",
        "    Delete a list of users.",
        "DIGEST",
        "    Return a digest of all users and roles, to compare those of servers.",
        "DRYRUN <username> <command> [<arg> ...]",
        "    Returns whether the user can execute the given command without executing the command.",
        "GETROLE <rolename>",
        "    Get the role's details.",
        "GETUSER <username>",
        "    Get the user's details.",
        "EXPORT",
        "    Show users details in config file format, as Valkey loads them.",
        "GENPASS [<bits>]",
        "    Generate a secure 256-bit user password. The optional `bits` argument can",
        "    be used to specify a different size.",
        "LIST",
        "    Show roles and users details in config file format.",
        "LOAD",
        "    Reload users from the ACL file.",
        "LOG [<count> | RESET]",
        "    Show the ACL log entries.",
        "SAVE",
        "    Save the current config to the ACL file.",
        "ROLES",
        "    List all the registered role names.",
        "SETROLE <rolename> <rule> [<rule> ...]",
        "    Create or modify a role with the specified rules.",
        "SETUSER <username> <rule> [<rule> ...]",
        "    Create or modify a user with the specified rules.",
        "USERS",
        "    List all the registered usernames.",
        "WHOAMI",
        "    Return the current connection username.",
        NULL,
    };
    replyHelp(c, lines);
}

/* ACL WHOAMI. Reply: the name of the caller's user; null for a module, which has none. */
void aclWhoamiCommand(ctx *c) {
    if (c->who->user) {
        replyBulk(c, userNameOf(c->who));
    } else {
        replyNull(c);
    }
}

/* ------------------------------------------------------------------ listing */

/* ACL USERS. Reply: the names, sorted. */
void aclUsersCommand(ctx *c) {
    int count;
    aclUser *const *all = usersAll(&count);
    replyArray(c, count);
    for (int i = 0; i < count; i++) replyBulk(c, all[i]->as_user.name);
}

void aclWarnRules(const aclRules *rules) {
    for (uint32_t i = 0; i < rules->own_count; i++) {
        if (rules->selectors[i].first_arg_count) aclWarnFirstArgs(&rules->selectors[i]);
    }
}

static void replyUsers(ctx *c, void (*describe)(const aclRules *rules, str *out)) {
    hotCheck(threadIsMain());
    int count;
    aclUser *const *all = usersAll(&count);
    str line = STR_EMPTY;
    for (int i = 0; i < count; i++) {
        strClear(&line);
        userDescribeLine(all[i], describe, &line);
        replyBulk(c, strSlice(&line));
        aclWarnRules(all[i]->rules);
    }
    strFree(&line);
}

static void replyRoles(ctx *c, const aclRoleSet *roles) {
    hotCheck(threadIsMain());
    str line = STR_EMPTY;
    for (int i = 0; i < roles->count; i++) {
        strClear(&line);
        roleDescribeLine(&roles->list[i], &line);
        replyBulk(c, strSlice(&line));
        aclWarnRules(roles->list[i].rules);
    }
    strFree(&line);
}

/* ACL LIST. Reply: the roles and users in the form of ACL files. */
void aclListCommand(ctx *c) {
    int count;
    (void)usersAll(&count); /* for the count */
    const aclRoleSet *roles = rolesCurrent();
    replyArray(c, roles->count + count);
    replyRoles(c, roles);
    replyUsers(c, aclDescribe);
}

/* ACL EXPORT. Reply: the users as ACL LIST replies them, without the rules that only this server
 * has and with roles as selectors, so that Valkey loads them. */
void aclExportCommand(ctx *c) {
    int count;
    (void)usersAll(&count); /* for the count */
    replyArray(c, count);
    replyUsers(c, aclDescribePortable);
}

static void replyPart(ctx *c, const char *name, const aclSelector *s,
                      void (*describe)(const aclSelector *s, str *out)) {
    str text = STR_EMPTY;
    describe(s, &text);
    replyBulkText(c, name);
    replyBulk(c, strSlice(&text));
    strFree(&text);
}

static void replySelector(ctx *c, const aclSelector *s) {
    replyBulkText(c, "commands");
    replyBulk(c, s->rules);
    replyPart(c, "keys", s, aclDescribeKeys);
    replyPart(c, "channels", s, aclDescribeChannels);
    replyPart(c, "databases", s, aclDescribeDatabases);
}

void aclReplyRights(ctx *c, const aclRules *rules) {
    hotCheck(rules->own_count > 0);
    replySelector(c, &rules->selectors[0]);
    replyBulkText(c, "selectors");
    replyArray(c, rules->own_count - 1);
    for (uint32_t i = 1; i < rules->own_count; i++) {
        replyMap(c, 4);
        replySelector(c, &rules->selectors[i]);
    }
}

/* Only of users with a limit: others are shown as Valkey shows them. */
static void replyLimit(ctx *c, const quota *limit) {
    quotaReport r;
    accountsSettle();
    quotaReadOf(limit, &r);
    replyBulkText(c, "maxmemory");
    replyInteger(c, (int64_t)r.limit);
    replyBulkText(c, "used-memory");
    replyInteger(c, (int64_t)r.bytes);
}

static void replyShare(ctx *c, const share *s) {
    shareReport r;
    shareRead(s, &r);
    replyBulkText(c, "cpu");
    replyInteger(c, r.percent);
    replyBulkText(c, "used-cpu-usec");
    replyInteger(c, (int64_t)r.used_us);
}

/* Only where roles exist: else the reply is that of Valkey 9.1. */
static void replyRolesOf(ctx *c, const aclRules *rules) {
    hotCheck(rules->role_count <= (uint32_t)rolesCurrent()->count);
    replyBulkText(c, "roles");
    replyArray(c, rules->role_count);
    for (uint32_t i = 0; i < rules->role_count; i++) replyBulk(c, rules->roles[i]);
}

/* ACL GETUSER username. Reply: a map with the rules of the user, or null. */
void aclGetuserCommand(ctx *c) {
    hotCheck(c->argc == 3);
    ctxRedact(c, 2);
    const aclUser *u = usersFind(c->argv[2]);
    if (!u) {
        replyNull(c);
        return;
    }
    const aclRules *rules = u->rules;
    const quota *limit = u->as_user.quota;
    const share *part = u->as_user.share;
    bool has_roles = rolesCurrent()->count > 0;
    replyMap(c, 7 + has_roles + (limit ? 2 : 0) + (part ? 2 : 0));
    replyBulkText(c, "flags");
    replySet(c, 1 + rules->nopass);
    replyBulkText(c, rules->on ? "on" : "off");
    if (rules->nopass) replyBulkText(c, "nopass");
    replyBulkText(c, "passwords");
    replyArray(c, rules->password_count);
    for (uint32_t i = 0; i < rules->password_count; i++) {
        str hash = STR_EMPTY;
        aclAppendHash(&hash, rules->passwords[i]);
        replyBulk(c, strSlice(&hash));
        strFree(&hash);
    }
    aclReplyRights(c, rules);
    if (has_roles) replyRolesOf(c, rules);
    if (limit) replyLimit(c, limit);
    if (part) replyShare(c, part);
    aclWarnRules(rules);
}

/* ------------------------------------------------------------------ changing */

bool aclApplyArguments(ctx *c, aclDraft *d, const char *subcommand) {
    hotCheck(c->argc >= 3);
    str *rules;
    int count;
    int open = aclJoinSelectors(c->argv + 3, c->argc - 3, &rules, &count);
    if (open >= 0) {
        slice word = c->argv[3 + open];
        replyErrorFormat(c, "ERR Unmatched parenthesis in acl selector starting at '%.*s'.",
                         (int)strnlen(word.ptr, word.len), word.ptr);
        return false;
    }
    const char *error = NULL;
    for (int i = 0; i < count && !error; i++) {
        slice rule = strSlice(&rules[i]);
        error = aclDraftApply(d, rule, aclGivesAllChannels());
        if (error) {
            replyErrorFormat(c, "ERR Error in ACL %s modifier '%.*s': %s", subcommand,
                             (int)strnlen(rule.ptr, rule.len), rule.ptr, error);
        }
        passwordWipe(rule);
    }
    for (int i = 0; i < count; i++) passwordWipe(strSlice(&rules[i]));
    strFreeWords(rules, count);
    return !error;
}

/* ACL SETUSER username [rule ...]. Reply: OK. All rules apply, or none. */
void aclSetuserCommand(ctx *c) {
    hotCheck(c->argc >= 3);
    for (int i = 2; i < c->argc; i++) ctxRedact(c, i);
    slice name = c->argv[2];
    if (!userNameIsValid(name)) {
        replyError(c, SLICE("ERR Usernames can't contain spaces or null characters"));
        return;
    }
    aclDraft d;
    const aclUser *existing = usersFind(name);
    if (existing) {
        aclDraftFrom(&d, existing->rules);
    } else {
        aclDraftInit(&d, aclGivesAllChannels());
    }
    if (aclApplyArguments(c, &d, "SETUSER")) {
        usersSetTake(name, aclRulesNew(&d));
        replyOk(c);
    }
    aclDraftClear(&d);
    for (int i = 3; i < c->argc; i++) passwordWipe(c->argv[i]);
}

/* ACL DELUSER username [username ...]. Reply: the number of removed users. */
void aclDeluserCommand(ctx *c) {
    hotCheck(c->argc >= 3);
    for (int i = 2; i < c->argc; i++) ctxRedact(c, i);
    for (int i = 2; i < c->argc; i++) {
        if (!sliceEqual(c->argv[i], SLICE("default"))) continue;
        replyError(c, SLICE("ERR The 'default' user cannot be removed"));
        return;
    }
    int64_t removed = 0;
    for (int i = 2; i < c->argc; i++) removed += usersRemove(c->argv[i]);
    replyInteger(c, removed);
}

/* ------------------------------------------------------------------ files */

/* ACL LOAD. Reply: OK. */
void aclLoadCommand(ctx *c) {
    if (!aclConf.aclfile[0]) {
        replyError(c, NO_FILE_TEXT);
        return;
    }
    str errors = STR_EMPTY;
    if (aclFileLoad(&errors) == OK) {
        replyOk(c);
    } else {
        str text = STR_EMPTY;
        strAppendText(&text, "ERR ");
        strAppendSlice(&text, strSlice(&errors));
        replyError(c, strSlice(&text));
        strFree(&text);
    }
    strFree(&errors);
}

/* ACL SAVE. Reply: OK. */
void aclSaveCommand(ctx *c) {
    reason why = {""};
    if (!aclConf.aclfile[0]) {
        replyError(c, NO_FILE_TEXT);
    } else if (aclFileSave(&why) == OK) {
        replyOk(c);
    } else {
        logWarning("Saving the ACL file %s: %s", aclConf.aclfile, why.text);
        replyError(c, SLICE("ERR There was an error trying to save the ACLs. Please check the "
                            "server logs for more information"));
    }
}

/* ------------------------------------------------------------------ ACL LOG, DRYRUN */

/* ACL LOG [count | RESET]. Reply: the newest entries, or OK. */
void aclLogCommand(ctx *c) {
    hotCheck(c->argc >= 2);
    int64_t count = 10;
    if (c->argc > 3) {
        replyErrorSubcommand(c);
        return;
    }
    if (c->argc == 3 && ctxArgIs(c, 2, "reset")) {
        aclLogReset();
        replyOk(c);
        return;
    }
    if (c->argc == 3 && !ctxArgInt(c, 2, &count)) return;
    aclLogReply(c, count);
}

static void replyVerdict(ctx *c, const aclRequest *q, aclVerdict verdict, int arg_index) {
    hotCheck(arg_index <= c->argc);
    str text = STR_EMPTY;
    slice arg = q->argv[arg_index];
    strAppendText(&text, "User ");
    strAppendSlice(&text, c->argv[2]);
    strAppendText(&text, " has no permissions to ");
    switch (verdict) {
    case ACL_DENIED_COMMAND:
        strAppendFormat(&text, "run the '%.*s' command", (int)q->cmd->name.len, q->cmd->name.ptr);
        break;
    case ACL_DENIED_DATABASE:
        strAppendText(&text, "access database ");
        strAppendSlice(&text, arg);
        break;
    case ACL_DENIED_KEY:
    case ACL_DENIED_CHANNEL:
        strAppendText(&text, "access the '");
        strAppendSlice(&text, arg);
        strAppendText(&text, verdict == ACL_DENIED_KEY ? "' key" : "' channel");
        break;
    case ACL_ALLOWED: break;
    }
    replyBulk(c, strSlice(&text));
    strFree(&text);
}

/* ACL DRYRUN username command [arg ...]. Reply: OK, or a text that says what is not allowed. */
void aclDryrunCommand(ctx *c) {
    hotCheck(c->argc >= 4);
    const aclUser *u = usersFind(c->argv[2]);
    if (!u) {
        replyErrorFormat(c, "ERR User '%.*s' not found", (int)c->argv[2].len, c->argv[2].ptr);
        return;
    }
    bool unknown_sub;
    aclRequest q = {.argv = c->argv + 3, .argc = c->argc - 3, .db_id = c->who->db_id};
    q.cmd = commandResolve(q.argv, q.argc, &unknown_sub);
    if (!q.cmd || (unknown_sub && q.argc > 1)) {
        replyErrorFormat(c, "ERR Command '%.*s' not found", (int)c->argv[3].len, c->argv[3].ptr);
        return;
    }
    int arity = q.cmd->arity;
    if (arity >= 0 ? q.argc != arity : q.argc < -arity) {
        replyErrorFormat(c, "ERR wrong number of arguments for '%.*s' command",
                         (int)q.cmd->name.len, q.cmd->name.ptr);
        return;
    }
    int arg_index;
    aclVerdict verdict = aclDecide(u->rules, &q, &arg_index);
    if (verdict == ACL_ALLOWED) {
        replyOk(c);
    } else {
        replyVerdict(c, &q, verdict, arg_index);
    }
}
