/* SPDX-License-Identifier: BSD-3-Clause
 *
 * The subsystem: sessions get the default user, AUTH and HELLO another one, `requirepass` is the
 * password of the default user. Main thread only. */
#include "acl/acl.h"
#include "acl/acl_priv.h"
#include "acl/catalog.h"
#include "acl/check.h"
#include "acl/file.h"
#include "acl/log.h"
#include "acl/password.h"
#include "acl/texts.h"
#include "acl/users.h"
#include "base/base.h"
#include "engine/server_event.h"

/* ------------------------------------------------------------------ passwords */

/* True if the user may log in with this password. The time does not depend on which of the
 * passwords it is. */
static bool passwordFits(const aclUser *u, slice password) {
    uint8_t hash[ACL_HASH_SIZE];
    passwordHash(password,
                 hash); /* also without user, so that the time does not show which users exist */
    if (!u || !u->rules->on) return false;
    bool fits = u->rules->nopass;
    for (uint32_t i = 0; i < u->rules->password_count; i++)
        fits |= passwordHashesEqual(u->rules->passwords[i], hash);
    return fits;
}

bool aclGivesAllChannels(void) { return aclConf.acl_pubsub_default == PUBSUB_ALLCHANNELS; }

bool aclDefaultNeedsPassword(void) {
    const aclRules *rules = usersDefault()->rules;
    return !rules->on || !rules->nopass;
}

status aclApplyRequirepass(reason *why) {
    hotCheck(threadIsMain());
    (void)why; /* cannot fail */
    aclDraft d;
    aclDraftFrom(&d, usersDefault()->rules);
    slice password = strSlice(&aclConf.requirepass);
    const char *error =
        aclDraftApply(&d, password.len ? SLICE("resetpass") : SLICE("nopass"), false);
    check(!error);
    if (password.len) {
        str rule = STR_EMPTY;
        strAppendByte(&rule, '>');
        strAppendSlice(&rule, password);
        error = aclDraftApply(&d, strSlice(&rule), false);
        check(!error);
        passwordWipe(strSlice(&rule));
        strFree(&rule);
    }
    usersSetTake(SLICE("default"), aclRulesNew(&d));
    aclDraftClear(&d);
    return OK;
}

static authVerdict authenticate(ctx *c, slice name, slice password, user **who) {
    if (name.ptr == NULL) {
        name = SLICE("default");
        if (usersDefault()->rules->nopass) return AUTH_NO_PASSWORD;
    }
    aclUser *u = usersFind(name);
    bool fits = passwordFits(u, password);
    passwordWipe(password);
    serverEventSignal(&(serverEvent){.kind = SERVER_LOGIN,
                                     .login = {.who = c->who, .name = name, .granted = fits}});
    if (fits) {
        *who = &u->as_user;
        return AUTH_GRANTED;
    }
    aclLogFailedLogin(c, name);
    return AUTH_NOT_MINE;
}

bool aclPasswordAllows(slice name, slice password, slice cmd_name) {
    aclUser *u = usersFind(name);
    if (!passwordFits(u, password)) {
        aclLogCountFailedLogin();
        return false;
    }
    const command *cmd = aclCommandFind(cmd_name);
    check(cmd != NULL);
    aclRequest q = {.cmd = cmd, .argv = &cmd_name, .argc = 1};
    int arg_index;
    return aclDecide(u->rules, &q, &arg_index) == ACL_ALLOWED;
}

void aclWipe(slice bytes) { passwordWipe(bytes); }

/* ------------------------------------------------------------------ sessions */

static void onSession(session *s, sessionEvent e) {
    if (e == SESSION_OPENED) {
        sessionSetAuthenticated(s, &usersDefault()->as_user, !aclDefaultNeedsPassword());
    } else if (e == SESSION_USER_CHANGED) {
        gatesArmFor(s);
    }
}

static user *findUser(slice name) {
    aclUser *u = usersFind(name);
    return u ? &u->as_user : NULL;
}

static bool readsAllKeys(const ctx *c, bool of_all_dbs) {
    hotCheck(c->argc > 0);
    aclRequest q = {.cmd = c->cmd, .argv = c->argv, .argc = c->argc, .db_id = c->who->db_id};
    return aclReadsEverything(aclUserOf(c->who)->rules, &q, of_all_dbs);
}

static bool mayRun(const session *s, const command *cmd, const slice *argv, int argc) {
    hotCheck(argc > 0);
    aclRequest q = {.cmd = cmd, .argv = argv, .argc = argc, .db_id = s->db_id};
    int arg_index;
    return aclDecide(aclUserOf(s)->rules, &q, &arg_index) == ACL_ALLOWED;
}

static bool mayReceive(const user *u, slice channel, bool is_pattern) {
    return aclAllowsChannel(((const aclUser *)u)->rules, channel, is_pattern);
}

static bool mayRead(const user *u, int db_id, slice key) {
    return aclMayRead(((const aclUser *)u)->rules, db_id, key);
}

static bool mayReadAll(const user *u) { return aclMayReadAll(((const aclUser *)u)->rules); }

static bool isOn(const user *u) { return ((const aclUser *)u)->rules->on; }

static const userPolicy policy = {.find = findUser,
                                  .last_left = userLastLeft,
                                  .reads_all_keys = readsAllKeys,
                                  .may_run = mayRun,
                                  .may_run_queue = mayRunQueue,
                                  .may_receive = mayReceive,
                                  .may_read = mayRead,
                                  .may_read_all = mayReadAll,
                                  .is_on = isOn,
                                  .log_certificate = aclLogCertificate};

/* ------------------------------------------------------------------ the feature */

static status init(reason *why) {
    if (aclConf.user_lines.count + aclConf.role_lines.count && aclConf.aclfile[0]) {
        return reasonSet(
            why, ERR_DENIED,
            "Configuring Valkey with users defined in valkey.conf and at the same setting an ACL file path is "
            "invalid. This setup is very likely to lead to configuration errors and security holes, please define "
            "either an ACL file or declare users directly in your valkey.conf, but not both.");
    }
    usersSetTake(SLICE("default"), defaultRulesNew(strSlice(&aclConf.requirepass)));
    userSetPolicy(&policy);
    userTextsSetKeeper(&aclTextsKeeper);
    return OK;
}

status aclLoadUsers(reason *why) {
    hotCheck(threadIsMain());
    check(!aclConf.users_are_loaded);
    aclConf.users_are_loaded = true;
    if (!aclConf.aclfile[0]) return aclLinesApply(why);
    str errors = STR_EMPTY;
    status st = aclFileLoad(&errors);
    if (st != OK) {
        logWarning("Aborting Valkey startup because of ACL errors: %s", strText(&errors));
        reasonSet(why, st, "Correct the ACL file %s, or remove the directive aclfile",
                  aclConf.aclfile);
    }
    strFree(&errors);
    return st;
}

static const infoSection sections[] = {
    {"stats", "# Stats", INFO_NORMAL, INFO_STATS, aclLogPrintStats}, {0}};

static const gate *const gates[] = {&aclGate, &aclKeyGate, &aclChannelGate, NULL};

const feature aclFeature = {.name = "acl",
                            .init = init,
                            .options = aclOptions,
                            .info = sections,
                            .gates = gates,
                            .on_commands = usersCommandsChanged,
                            .on_session = onSession,
                            .on_auth = authenticate};
