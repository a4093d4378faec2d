/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Gates that ask for the rights of a session's user. They are armed per session, and only those
 * that can refuse something: none for +@all ~* &*, only that for commands with keys (or channels)
 * if just keys (or channels) are limited, else the one for all commands. Invariant: a request meets
 * at most one armed gate of these, or two if it has both keys and channels, as those of modules
 * can. Main thread only. */
#include "acl/acl.h"
#include "acl/catalog.h"
#include "acl/check.h"
#include "acl/log.h"
#include "acl/private_user.h"
#include "acl/users.h"
#include "base/base.h"
#include "base/number.h"
#include "engine/lifecycle.h"
#include "engine/reply.h"
#include "engine/server_event.h"
#include "engine/session_slot.h"
#include "engine/stats.h"
#include "engine/transaction.h"

/* ------------------------------------------------------------- the database of a queued command */

/* For a user with limited databases: the database that the commands queued since MULTI have
 * selected, plus 1. Nothing is allocated for it. */
static const sessionSlot queued_db_slot = {.name = "acl-queued-db"};

static int queuedDbSlot(void) {
    static int index = -1;
    if (index < 0) index = sessionSlotRegister(&queued_db_slot);
    return index;
}

static bool isQueueing(const ctx *c) {
    return c->who->flags & SESSION_IN_MULTI && c->origin == ORIGIN_CLIENT &&
           !(c->flags & CTX_IN_MULTI) && !(c->cmd->flags & CMD_RUNS_QUEUE);
}

static int databaseOf(const ctx *c) {
    session *s = c->who;
    if (!isQueueing(c) || transactionCount(s) <= 0) return s->db_id;
    void *queued = sessionSlotGet(s, queuedDbSlot());
    return queued ? (int)(uintptr_t)queued - 1 : s->db_id;
}

/* An admitted command is going to be queued. */
static void noteQueued(const ctx *c) {
    int64_t db;
    if (transactionCount(c->who) <= 0) sessionSlotSet(c->who, queuedDbSlot(), NULL);
    if (aclNeedsOf(c->cmd)->databases != DBS_SELECT || !numberParseInt(c->argv[1], &db)) return;
    if (db < 0 || db >= engineDatabaseCount()) return;
    sessionSlotSet(c->who, queuedDbSlot(), (void *)(uintptr_t)(db + 1));
}

/* ------------------------------------------------------------------ refusing */

static void replyRefused(ctx *c, aclVerdict verdict) {
    slice name = userNameOf(c->who);
    switch (verdict) {
    case ACL_DENIED_COMMAND:
        replyErrorFormat(c, "NOPERM User %.*s has no permissions to run the '%.*s' command",
                         (int)name.len, name.ptr, (int)c->cmd->name.len, c->cmd->name.ptr);
        return;
    case ACL_DENIED_KEY: replyError(c, SLICE("NOPERM No permissions to access a key")); return;
    case ACL_DENIED_CHANNEL:
        replyError(c, SLICE("NOPERM No permissions to access a channel"));
        return;
    case ACL_DENIED_DATABASE:
        replyError(c, SLICE("NOPERM No permissions to access database"));
        return;
    case ACL_ALLOWED: break;
    }
    panic("an allowed command is not refused");
}

/* A command of EXEC that was admitted when it was queued. */
static void describeRevoked(aclVerdict verdict, str *out) {
    static const char *const reasons[] = {
        [ACL_DENIED_DATABASE] = "no permission",
        [ACL_DENIED_COMMAND] = "no permission to execute the command or subcommand",
        [ACL_DENIED_KEY] = "no permission to touch the specified keys",
        [ACL_DENIED_CHANNEL] = "no permission to access one of the channels used as arguments",
    };
    check(verdict != ACL_ALLOWED);
    strAppendFormat(
        out,
        "NOPERM ACLs rules changed between the moment the transaction was accumulated and the EXEC "
        "call. This command is no longer allowed for the following reason: %s",
        reasons[verdict]);
}

/* The same if EXEC itself has changed the rules. */
static void replyRefusedInExec(ctx *c, aclVerdict verdict) {
    str text = STR_EMPTY;
    describeRevoked(verdict, &text);
    replyError(c, strSlice(&text));
    strFree(&text);
}

/* The error that a script receives; errorstats count it as NOPERM. */
static void replyRefusedInScript(ctx *c, aclVerdict verdict) {
    slice name = userNameOf(c->who);
    str text = STR_EMPTY;
    strAppendText(&text, "ERR ACL failure in script: ");
    switch (verdict) {
    case ACL_DENIED_COMMAND:
        strAppendFormat(&text, "User %.*s has no permissions to run the '%.*s' command",
                        (int)name.len, name.ptr, (int)c->cmd->name.len, c->cmd->name.ptr);
        break;
    case ACL_DENIED_KEY: strAppendText(&text, "No permissions to access a key"); break;
    case ACL_DENIED_CHANNEL: strAppendText(&text, "No permissions to access a channel"); break;
    default: strAppendText(&text, "No permissions to access database"); break;
    }
    statsCountError(SLICE("NOPERM"));
    c->flags |= CTX_FAILED;
    respError(c->out, strSlice(&text));
    strFree(&text);
}

static NO_INLINE gateVerdict refuse(ctx *c, aclVerdict verdict, int arg_index) {
    static const serverRefusal kinds[] = {[ACL_DENIED_DATABASE] = REFUSED_DATABASE,
                                          [ACL_DENIED_COMMAND] = REFUSED_COMMAND,
                                          [ACL_DENIED_KEY] = REFUSED_KEY,
                                          [ACL_DENIED_CHANNEL] = REFUSED_CHANNEL};
    hotCheck(arg_index <= c->argc);
    slice object = arg_index ? c->argv[arg_index] : c->cmd->name;
    aclLogRefusal(c, verdict, object);
    if (c->origin == ORIGIN_CLIENT && !(c->flags & CTX_IN_MULTI))
        serverEventSignal(&(serverEvent){
            .kind = SERVER_ACL_REFUSAL,
            .acl_refusal = {.request = c, .what = kinds[verdict], .object = object}});
    if (c->origin == ORIGIN_SCRIPT && !(c->flags & CTX_BY_ENGINE)) {
        replyRefusedInScript(c, verdict);
    } else if (c->flags & CTX_IN_MULTI) {
        replyRefusedInExec(c, verdict);
    } else {
        replyRefused(c, verdict);
        c->who->flags |= SESSION_REFUSED;
    }
    return GATE_REFUSED;
}

/* ------------------------------------------------------------------ the queue of EXEC */

/* The check of a queue, and what it has found. */
typedef struct queueCheck {
    const aclRules *rules;
    int db_id; /* selected by the commands checked so far */
    aclVerdict verdict;
    slice object; /* if refused */
} queueCheck;

static bool checkQueued(void *arg, const command *cmd, const slice *argv, int argc) {
    hotCheck(argc > 0);
    queueCheck *check = arg;
    int64_t db;
    int arg_index;
    aclRequest q = {.cmd = cmd, .argv = argv, .argc = argc, .db_id = check->db_id};
    check->verdict = aclDecide(check->rules, &q, &arg_index);
    if (check->verdict != ACL_ALLOWED) {
        check->object = arg_index ? argv[arg_index] : cmd->name;
        return false;
    }
    bool selects = aclNeedsOf(cmd)->databases == DBS_SELECT && numberParseInt(argv[1], &db);
    if (selects && db >= 0 && db < engineDatabaseCount()) check->db_id = (int)db;
    return true;
}

bool mayRunQueue(const ctx *c, str *why) {
    hotCheck(c->who->flags & SESSION_IN_MULTI);
    queueCheck check = {.rules = aclUserOf(c->who)->rules, .db_id = c->who->db_id};
    if (transactionEach(c->who, checkQueued, &check)) return true;
    aclLogRefusal(c, check.verdict, check.object);
    describeRevoked(check.verdict, why);
    return false;
}

/* ------------------------------------------------------------------ the gates */

static NO_INLINE gateVerdict decide(ctx *c) {
    const aclRules *rules = aclUserOf(c->who)->rules;
    bool limits_dbs = aclLimitsDatabases(rules);
    int arg_index, db = limits_dbs ? databaseOf(c) : c->who->db_id;
    aclRequest q = {.cmd = c->cmd, .argv = c->argv, .argc = c->argc, .db_id = db};
    aclVerdict verdict = aclDecide(rules, &q, &arg_index);
    if (unlikely(verdict != ACL_ALLOWED)) return refuse(c, verdict, arg_index);
    if (!limits_dbs) return GATE_PASS;
    if (isQueueing(c)) noteQueued(c);
    return GATE_PASS;
}

static gateVerdict admit(ctx *c) {
    const aclUser *u = aclUserOf(c->who);
    unsigned id = c->cmd->id;
    if (unlikely(id >= u->action_count)) return decide(c); /* loaded since */
    unsigned action = u->actions[id];
    if (action == ACTION_ALLOW) return GATE_PASS;
    bool fits = action >= ACTION_KEY &&
                aclAllowsKey(u->keys, u->key_count, c->argv[1], action - ACTION_KEY);
    return likely(fits) ? GATE_PASS : decide(c);
}

static bool hasKeys(const commandSpec *spec) { return commandSpecHasKeys(spec); }

static bool hasChannels(const commandSpec *spec) { return aclSpecHasChannels(spec); }

/* Commands that belong to a user: for the stream of a slot, too, the other node has logged in.
 * Modules decide themselves whether theirs do. */
enum { ORIGINS = GATE_FOR_CLIENTS | 1u << ORIGIN_SCRIPT | 1u << ORIGIN_IMPORT };

const gate aclGate = {.name = "acl", .admit = admit, .again = true, .origins = ORIGINS};
const gate aclKeyGate = {
    .name = "acl-keys", .selects = hasKeys, .admit = admit, .again = true, .origins = ORIGINS};
const gate aclChannelGate = {.name = "acl-channels",
                             .selects = hasChannels,
                             .admit = admit,
                             .again = true,
                             .origins = ORIGINS};

void gatesArmFor(session *s) {
    hotCheck(threadIsMain());
    aclUser *u = aclUserOf(s);
    uint32_t checks = u ? u->checks : 0;
    if (checks && !u->actions) userActionsNew(u);
    gateArmSession(s, &aclGate, checks & ACL_CHECK_ALL);
    gateArmSession(s, &aclKeyGate, checks & ACL_CHECK_KEYS);
    gateArmSession(s, &aclChannelGate, checks & ACL_CHECK_CHANNELS);
}

void aclSessionRunsAs(session *s, user *u) {
    hotCheck(s->flags & SESSION_INTERNAL);
    bool is_other = s->user != u;
    sessionSetAuthenticated(s, u, true);
    if (is_other) gatesArmFor(s);
}
