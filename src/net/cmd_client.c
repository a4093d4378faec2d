/* SPDX-License-Identifier: BSD-3-Clause
 *
 * CLIENT: properties of connections, listing and closing them. Main thread only. */
#include <stdio.h>

#include "base/base.h"
#include "base/number.h"
#include "engine/block.h"
#include "engine/job.h"
#include "engine/keyspace.h"
#include "engine/pause.h"
#include "engine/reply.h"
#include "engine/session_name.h"
#include "engine/session_report.h"
#include "net/client_list.h"
#include "net/net.h"
#include "net/procs.h"

/* CLIENT ID. Reply: the id of the connection; ids only increase. */
void clientIdCommand(ctx *c) { replyInteger(c, (int64_t)c->who->id); }

/* ------------------------------------------------------------------ names and flags */

/* CLIENT SETNAME name. Reply: OK. An empty name removes the name. */
void clientSetnameCommand(ctx *c) {
    hotCheck(c->argc == 3);
    if (!sessionNameIsValid(c->argv[2])) {
        replyError(c, ERR_SESSION_NAME_TEXT);
        return;
    }
    sessionSetName(c->who, c->argv[2]);
    /* The name that Sentinels give themselves: a late answer counts as a failure. */
    static const char sentinel[] = "sentinel-";
    slice name = c->argv[2];
    if (name.len > sizeof(sentinel) && memcmp(name.ptr, sentinel, sizeof(sentinel) - 1) == 0)
        netSetPriority(c->who, true);
    replyOk(c);
}

/* CLIENT GETNAME. Reply: the name, null if there is none. */
void clientGetnameCommand(ctx *c) {
    slice name = sessionName(c->who);
    if (name.len) {
        replyBulk(c, name);
    } else {
        replyNull(c);
    }
}

/* CLIENT SETINFO (LIB-NAME|LIB-VER) text. Reply: OK. */
void clientSetinfoCommand(ctx *c) {
    hotCheck(c->argc == 4);
    slice option = c->argv[2];
    bool is_name = sliceIs(option, "lib-name");
    if (!is_name && !sliceIs(option, "lib-ver")) {
        replyErrorFormat(c, "ERR Unrecognized option '%.*s'", (int)option.len, option.ptr);
        return;
    }
    if (!sessionNameIsValid(c->argv[3])) {
        replyErrorFormat(c, "ERR %.*s cannot contain spaces, newlines or special characters.",
                         (int)option.len, option.ptr);
        return;
    }
    sessionExtra *extra = sessionExtraOf(c->who);
    str *to = is_name ? &extra->lib_name : &extra->lib_version;
    strClear(to);
    strAppendSlice(to, c->argv[3]);
    replyOk(c);
}

/* ON or OFF in argv[2] sets or clears a flag of the session. */
static void setFlag(ctx *c, uint32_t flag) {
    hotCheck((flag & (flag - 1)) == 0);
    hotCheck(c->argc > 2);
    if (ctxArgIs(c, 2, "on")) {
        c->who->flags |= flag;
    } else if (ctxArgIs(c, 2, "off")) {
        c->who->flags &= ~flag;
    } else {
        replyError(c, ERR_SYNTAX_TEXT);
        return;
    }
    replyOk(c);
}

/* CLIENT NO-EVICT (ON|OFF). Reply: OK. */
void clientNoEvictCommand(ctx *c) { setFlag(c, SESSION_NO_EVICT); }

/* CLIENT NO-TOUCH (ON|OFF). Reply: OK. */
void clientNoTouchCommand(ctx *c) { setFlag(c, SESSION_NO_TOUCH); }

/* CLIENT CAPA capability [capability ...]. Reply: OK, even for unknown capabilities. */
void clientCapaCommand(ctx *c) {
    hotCheck(c->argc >= 3);
    for (int i = 2; i < c->argc; i++) {
        if (ctxArgIs(c, i, "redirect")) c->who->flags |= SESSION_CAPA_REDIRECT;
    }
    replyOk(c);
}

/* CLIENT IMPORT-SOURCE (ON|OFF). Reply: OK; ON is allowed only in import mode. */
void clientImportSourceCommand(ctx *c) {
    if (ctxArgIs(c, 2, "off") || keyspaceIsImporting()) {
        setFlag(c, SESSION_IMPORT_SOURCE);
    } else {
        replyError(c, SLICE("ERR Server is not in import mode"));
    }
}

/* CLIENT REPLY (ON|OFF|SKIP). Reply: OK to ON, even if replies were off; else none. */
void clientReplyCommand(ctx *c) {
    session *s = c->who;
    if (ctxArgIs(c, 2, "on")) {
        sessionSetReplyMode(s, 0);
        replyUnmute(c);
        replyOk(c);
    } else if (ctxArgIs(c, 2, "off")) {
        sessionSetReplyMode(s, SESSION_REPLY_OFF);
    } else if (!ctxArgIs(c, 2, "skip")) {
        replyError(c, ERR_SYNTAX_TEXT);
    } else if (!(s->flags & SESSION_REPLY_OFF)) {
        sessionSetReplyMode(s, (s->flags & SESSION_REPLY_MODES) | SESSION_REPLY_SKIP_NEXT);
    }
}

/* ------------------------------------------------------------------ list of clients */

static void replyLines(ctx *c, str *lines) {
    replyVerbatim(c, strSlice(lines), "txt");
    strFree(lines);
}

/* CLIENT INFO. Reply: the caller's line of CLIENT LIST. */
void clientInfoCommand(ctx *c) {
    str line = STR_EMPTY;
    if (c->who->carrier == &clientCarrier) clientKeepAddresses(clientOf(c->who));
    sessionDescribe(c->who, &line);
    strAppendByte(&line, '\n');
    replyLines(c, &line);
}

/* For jobStart() and jobPoint(): a line takes as long as so many elements. */
enum { LINE_ELEMENTS = 16 };

/* replyLines() of a job, in parts. */
static void replyManyLines(ctx *c, str *lines) {
    enum { PART = 32 * 1024, PART_ELEMENTS = 200 };
    char head[40];
    const char *type = c->proto > 2 ? "txt:" : "";
    int len = snprintf(head, sizeof(head), "%c%zu\r\n%s", c->proto > 2 ? '=' : '$',
                       lines->len + strlen(type), type);
    outbufAppend(c->out, head, (size_t)len);
    for (size_t at = 0, part; at < lines->len && !jobPoint(c, PART_ELEMENTS); at += part) {
        part = sizeMin(lines->len - at, PART);
        outbufAppend(c->out, lines->ptr + at, part);
    }
    outbufAppend(c->out, "\r\n", 2);
    strFree(lines);
}

static void describeAll(ctx *c, const clientFilter *filter, str *lines) {
    enum { LINE_BYTES = 400 }; /* more than most have */
    clientsWalk w;
    client *cl;
    if (c->flags & CTX_SLICED) (void)strReserve(lines, clientAll()->count * LINE_BYTES);
    clientsWalkBegin(&w);
    while (!jobPoint(c, LINE_ELEMENTS) && (cl = clientsWalkNext(&w))) {
        if (!clientFilterMatches(filter, cl, c->who)) continue;
        clientKeepAddresses(cl);
        clientDescribe(&cl->session, lines);
        strAppendByte(lines, '\n');
    }
    clientsWalkEnd(&w);
}

/* CLIENT LIST [filter value ...]. Reply: one line per matching client. */
void clientListCommand(ctx *c) {
    clientFilter filter;
    if (!clientFilterParse(c, false, &filter)) return;
    if (jobStart(c, clientAll()->count * LINE_ELEMENTS)) {
        clientFilterClear(&filter);
        return;
    }
    str lines = STR_EMPTY;
    describeAll(c, &filter, &lines);
    clientFilterClear(&filter);
    if (c->flags & CTX_SLICED) {
        replyManyLines(c, &lines);
    } else {
        replyLines(c, &lines);
    }
}

/* Closes all matching clients except the caller. Returns their number; *myself is true if the
 * caller matches. */
static int64_t killMatching(const ctx *c, const clientFilter *filter, bool *myself) {
    int64_t killed = 0;
    *myself = false;
    const list *all = clientAll();
    for (listNode *n = listFirst(all); n; n = listNext(all, n)) {
        client *cl = LIST_OWNER(n, client, all);
        if (!clientFilterMatches(filter, cl, c->who)) continue;
        killed++;
        if (&cl->session == c->who) {
            *myself = true;
        } else {
            sessionCloseNow(&cl->session);
        }
    }
    return killed;
}

/* CLIENT KILL address, or CLIENT KILL filter value ... Reply: OK, or the number of closed clients.
 * If the caller closes itself, it gets the reply first. */
void clientKillCommand(ctx *c) {
    hotCheck(c->argc >= 3);
    clientFilter filter;
    bool old_form = c->argc == 3, myself;
    if (old_form) {
        clientFilterAddress(&filter, c->argv[2]);
    } else if (!clientFilterParse(c, true, &filter)) {
        return;
    }
    int64_t killed = killMatching(c, &filter, &myself);
    clientFilterClear(&filter);
    if (!old_form) {
        replyInteger(c, killed);
    } else if (killed) {
        replyOk(c);
    } else {
        replyError(c, SLICE("ERR No such client"));
    }
    if (myself) sessionCloseSoon(c->who);
}

/* ------------------------------------------------------------------ PAUSE, UNPAUSE, UNBLOCK */

/* Parses a timeout in ms. False: the error was replied. */
static bool timeoutArg(ctx *c, int i, int64_t *end_ms) {
    hotCheck(i > 0);
    hotCheck(i <= c->argc);
    int64_t ms;
    if (!ctxArgIntIn(c, i, INT64_MIN, INT64_MAX, &ms,
                     "ERR timeout is not an integer or out of range")) {
        return false;
    }
    if (ms < 0) {
        replyError(c, SLICE("ERR timeout is negative"));
    } else if (!numberAdd(clockWallMs(), ms, end_ms)) {
        replyError(c, SLICE("ERR timeout is out of range"));
    } else {
        return true;
    }
    return false;
}

/* CLIENT PAUSE ms [WRITE|ALL]. Reply: OK. */
void clientPauseCommand(ctx *c) {
    hotCheck(c->argc >= 3);
    pauseScope scope = PAUSE_ALL;
    if (c->argc > 3) {
        bool writes = ctxArgIs(c, 3, "write");
        if (!writes && !ctxArgIs(c, 3, "all")) {
            replyError(c, SLICE("ERR CLIENT PAUSE mode must be WRITE or ALL"));
            return;
        }
        if (writes) scope = PAUSE_WRITES;
    }
    int64_t end_ms;
    if (!timeoutArg(c, 2, &end_ms)) return;
    (void)jobEndChanges(); /* a change that has begun has its effect before */
    pauseBegin(PAUSE_BY_COMMAND, scope, end_ms);
    replyOk(c);
}

/* CLIENT UNPAUSE. Reply: OK. */
void clientUnpauseCommand(ctx *c) {
    pauseEnd(PAUSE_BY_COMMAND);
    replyOk(c);
}

/* CLIENT UNBLOCK id [TIMEOUT|ERROR]. Reply: 1 if the client was blocked by a command, else 0. A
 * paused client is not blocked. */
void clientUnblockCommand(ctx *c) {
    hotCheck(c->argc >= 3);
    bool error = c->argc > 3 && ctxArgIs(c, 3, "error");
    if (c->argc > 3 && !error && !ctxArgIs(c, 3, "timeout")) {
        replyError(c, SLICE("ERR CLIENT UNBLOCK reason should be TIMEOUT or ERROR"));
        return;
    }
    int64_t id;
    if (!ctxArgInt(c, 2, &id)) return;
    session *s = id > 0 ? netFindClient((uint64_t)id) : NULL;
    slice text = error ? SLICE("UNBLOCKED client unblocked via CLIENT UNBLOCK") : SLICE("");
    replyInteger(c, s && blockEndByUser(s, text));
}

/* ------------------------------------------------------------------ HELP */
static const char *const client_help[] = {
    "CACHING (YES|NO)",
    "    Enable/disable tracking of the keys for next command in OPTIN/OPTOUT modes.",
    "CAPA <option> [options...]",
    "    The client claims its some capability options. Options are:",
    "    * REDIRECT",
    "      The client can handle redirection during primary and replica failover in "
    "standalone mode.",
    "GETREDIR",
    "    Return the client ID we are redirecting to when tracking is enabled.",
    "GETNAME",
    "    Return the name of the current connection.",
    "ID",
    "    Return the ID of the current connection.",
    "INFO",
    "    Return information about the current client connection.",
    "KILL <ip:port>",
    "    Kill connection made from <ip:port>.",
    "KILL <option> <value> [<option> <value> [...]]",
    "    Kill connections. Options are:",
    "    * ADDR (<ip:port>|<unixsocket>:0)",
    "      Kill connections made from the specified address.",
    "    * LADDR (<ip:port>|<unixsocket>:0)",
    "      Kill connections made to the specified local address.",
    "    * TYPE (NORMAL|PRIMARY|REPLICA|PUBSUB)",
    "      Kill connections by type.",
    "    * USER <username>",
    "      Kill connections authenticated by <username>.",
    "    * SKIPME (YES|NO)",
    "      Skip killing current connection (default: yes).",
    "    * ID <client-id> [<client-id>...]",
    "      Kill connections by client IDs.",
    "    * MAXAGE <maxage>",
    "      Kill connections older than the specified age.",
    "    * FLAGS <flags>",
    "      Kill connections that include the specified flags.",
    "    * NAME <client-name>",
    "      Kill connections with the specified name.",
    "    * IDLE <idle>",
    "      Kill connections with idle time greater than or equal to <idle> seconds.",
    "    * LIB-NAME <library-name>",
    "      Kill connections with the specified library name.",
    "    * LIB-VER <library-version>",
    "      Kill connections with the specified library version.",
    "    * DB <db-id>",
    "      Kill connections currently operating on the specified database ID.",
    "    * CAPA <capa>",
    "      Kill connections currently with the specified capa.",
    "    * IP <ip>",
    "      Kill connections made from the specified ip.",
    "LIST [options ...]",
    "    Return information about client connections. Options:",
    "    * TYPE (NORMAL|PRIMARY|REPLICA|PUBSUB)",
    "      Return clients of specified type.",
    "    * USER <username>",
    "      Return clients authenticated by <username>.",
    "    * ADDR <ip:port>",
    "      Return clients connected from the specified address.",
    "    * LADDR <ip:port>",
    "      Return clients connected to the specified local address.",
    "    * ID <client-id> [<client-id>...]",
    "      Return clients with the specified IDs.",
    "    * SKIPME (YES|NO)",
    "      Exclude the current client from the list (default: no).",
    "    * MAXAGE <maxage>",
    "      List connections older than the specified age.",
    "    * FLAGS <flags>",
    "      Return clients with the specified flags.",
    "    * NAME <client-name>",
    "      Return clients with the specified name.",
    "    * IDLE <idle>",
    "      Return clients with idle time greater than or equal to <idle> seconds.",
    "    * LIB-NAME <lib-name>",
    "      Return clients with the specified lib name.",
    "    * LIB-VER <lib-version>",
    "      Return clients with the specified lib version.",
    "    * DB <db-id>",
    "      Return clients currently operating on the specified database ID.",
    "    * CAPA <capa>",
    "      Return connections currently with the specified capa.",
    "    * IP <ip>",
    "      Return connections made from the specified ip.",
    "UNPAUSE",
    "    Stop the current client pause, resuming traffic.",
    "PAUSE <timeout> [WRITE|ALL]",
    "    Suspend all, or just write, clients for <timeout> milliseconds.",
    "REPLY (ON|OFF|SKIP)",
    "    Control the replies sent to the current connection.",
    "SETNAME <name>",
    "    Assign the name <name> to the current connection.",
    "SETINFO <option> <value>",
    "    Set client meta attr. Options are:",
    "    * LIB-NAME: the client lib name.",
    "    * LIB-VER: the client lib version.",
    "UNBLOCK <clientid> [TIMEOUT|ERROR]",
    "    Unblock the specified blocked client.",
    "TRACKING (ON|OFF) [REDIRECT <id>] [BCAST] [PREFIX <prefix> [...]]",
    "         [OPTIN] [OPTOUT] [NOLOOP]",
    "    Control server assisted client side caching.",
    "TRACKINGINFO",
    "    Report tracking status for the current connection.",
    "NO-EVICT (ON|OFF)",
    "    Protect current client connection from eviction.",
    "NO-TOUCH (ON|OFF)",
    "    Will not touch LRU/LFU stats when this mode is on.",
    "IMPORT-SOURCE (ON|OFF)",
    "    Mark this connection as an import source if import-mode is enabled.",
    "    Sync tools can set their connections into 'import-source' state to visit",
    "    expired keys.",
    NULL,
};

void clientHelpCommand(ctx *c) { replyHelp(c, client_help); }
