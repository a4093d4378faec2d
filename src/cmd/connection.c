/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Commands on the caller's own connection: PING, ECHO, SELECT, AUTH, HELLO, QUIT, RESET. They
 * change only the session. Main thread only. */
#include "base/base.h"
#include "base/number.h"
#include "cmd/cmd.h"
#include "cmd/procs.h"
#include "engine/hooks.h"
#include "engine/lifecycle.h"
#include "engine/reply.h"
#include "engine/session_name.h"

static const slice WRONG_PASSWORD_TEXT =
    SLICE("WRONGPASS invalid username-password pair or user is disabled.");
static const slice NO_PASSWORD_TEXT =
    SLICE("ERR AUTH <password> called without any password configured for the default user. "
          "Are you sure your configuration is correct?");
static const slice HELLO_NO_AUTH_TEXT =
    SLICE("NOAUTH HELLO must be called with the client already authenticated, otherwise the HELLO "
          "<proto> AUTH <user> <pass> option can be used to authenticate the client and select the "
          "RESP protocol version at the same time");

/* PING [message]. Reply: PONG, or the message. */
void pingCommand(ctx *c) {
    if (c->argc > 2) {
        replyErrorArity(c);
    } else if (c->argc == 2) {
        replyBulk(c, c->argv[1]);
    } else {
        replyLiteral(c, "+PONG\r\n");
    }
}

/* ECHO message. Reply: the message. */
void echoCommand(ctx *c) { replyBulk(c, c->argv[1]); }

/* SELECT index. Reply: OK. */
void selectCommand(ctx *c) {
    int64_t id;
    if (!ctxArgInt(c, 1, &id)) return;
    if (id < INT32_MIN || id > INT32_MAX) {
        replyErrorFormat(c, "ERR value is out of range, value must between %d and %d", INT32_MIN,
                         INT32_MAX);
    } else if (sessionSelect(c->who, id) != OK) {
        replyError(c, ERR_DB_RANGE_TEXT);
    } else {
        replyOk(c);
    }
}

/* Authenticates the caller; on failure replies the error and changes nothing. name.ptr is NULL for
 * the short form. */
static bool authenticate(ctx *c, slice name, slice password) {
    user *who = NULL;
    switch (hooksAuthenticate(c, name, password, &who)) {
    case AUTH_GRANTED: sessionSetAuthenticated(c->who, who, true); return true;
    case AUTH_NO_PASSWORD: replyError(c, NO_PASSWORD_TEXT); return false;
    case AUTH_BLOCKED: return false; /* it runs again */
    case AUTH_REPLIED: return false;
    case AUTH_DENIED:
    case AUTH_NOT_MINE: break;
    }
    replyError(c, WRONG_PASSWORD_TEXT);
    return false;
}

/* AUTH [username] password. Reply: OK. */
void authCommand(ctx *c) {
    hotCheck(c->argc >= 2);
    for (int i = 1; i < c->argc; i++) ctxRedact(c, i);
    if (c->argc > 3) {
        replyError(c, ERR_SYNTAX_TEXT);
        return;
    }
    slice name = c->argc == 3 ? c->argv[1] : sliceMake(NULL, 0);
    if (authenticate(c, name, c->argv[c->argc - 1])) replyOk(c);
}

/* Arguments of HELLO. */
typedef struct helloArgs {
    int64_t proto;              /* 0: keep the current one */
    slice user, password, name; /* ptr NULL if not given */
} helloArgs;

/* Parses the arguments. False: the error was replied and nothing may be changed. */
static bool parseHello(ctx *c, helloArgs *g) {
    if (c->argc == 1) return true;
    ctxRedactAfter(c, 1, "auth", 2);
    const char *not_integer = "ERR Protocol version is not an integer or out of range";
    if (!ctxArgIntIn(c, 1, INT64_MIN, INT64_MAX, &g->proto, not_integer)) return false;
    if (g->proto != 2 && g->proto != 3) {
        replyError(c, SLICE("NOPROTO unsupported protocol version"));
        return false;
    }
    for (int i = 2; i < c->argc; i++) {
        int left = c->argc - 1 - i;
        if (ctxArgIs(c, i, "auth") && left >= 2) {
            g->user = c->argv[++i];
            g->password = c->argv[++i];
        } else if (ctxArgIs(c, i, "setname") && left >= 1) {
            g->name = c->argv[++i];
            if (sessionNameIsValid(g->name)) continue;
            replyError(c, ERR_SESSION_NAME_TEXT);
            return false;
        } else {
            replyErrorFormat(c, "ERR Syntax error in HELLO option '%.*s'", (int)c->argv[i].len,
                             c->argv[i].ptr);
            return false;
        }
    }
    return true;
}

static void replyHello(ctx *c) {
    engineIdentity server;
    engineIdentify(&server);
    bool has_zone = server.availability_zone[0] != 0;
    replyMap(c, 6 + has_zone + (server.role != NULL));
    replyBulkText(c, "server");
    replyBulkText(c, cmdNamesRedis() ? "redis" : "valkey");
    replyBulkText(c, "version");
    replyBulkText(c, cmdNamesRedis() ? server.redis_version : server.version);
    replyBulkText(c, "proto");
    replyInteger(c, c->proto);
    replyBulkText(c, "id");
    replyInteger(c, (int64_t)c->who->id);
    replyBulkText(c, "mode");
    replyBulkText(c, c->who->flags & SESSION_GATEWAY ? "standalone" : server.mode);
    if (server.role) {
        replyBulkText(c, "role");
        replyBulkText(c, server.role);
    }
    replyBulkText(c, "modules");
    engineReplyModules(c);
    if (has_zone) {
        replyBulkText(c, "availability_zone");
        replyBulkText(c, server.availability_zone);
    }
}

/* HELLO [version [AUTH user password] [SETNAME name]]. Reply: a map with properties of the
 * server. */
void helloCommand(ctx *c) {
    helloArgs g = {0};
    if (!parseHello(c, &g)) return;
    if (g.user.ptr && !authenticate(c, g.user, g.password)) return;
    if (!sessionIsAuthenticated(c->who)) {
        replyError(c, HELLO_NO_AUTH_TEXT);
        return;
    }
    if (g.name.ptr) sessionSetName(c->who, g.name);
    if (g.proto) ctxSetProto(c, (int)g.proto);
    replyHello(c);
}

/* QUIT. Reply: OK, then the connection is closed. */
void quitCommand(ctx *c) {
    replyOk(c);
    sessionCloseSoon(c->who);
}

/* RESET. Reply: RESET, even if replies were off, because it switches them on again. Only CLIENT
 * REPLY SKIP suppresses it. */
void resetCommand(ctx *c) {
    bool skipped = c->who->flags & SESSION_REPLY_SKIP;
    if (c->who->flags & (SESSION_INTERNAL | SESSION_PRIMARY | SESSION_REPLICA)) {
        replyError(c, SLICE("ERR can only reset normal client connections"));
        return;
    }
    sessionReset(c->who);
    ctxSetProto(c, c->who->proto);
    if (!skipped) replyUnmute(c);
    replyStatus(c, SLICE("RESET"));
}
