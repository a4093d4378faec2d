/* SPDX-License-Identifier: BSD-3-Clause
 *
 * The connection to the server (connection.h). */
#include "tools/cli/connection.h"

#include <poll.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>

enum { HANDSHAKE_S = 10 }; /* of TLS, unless -t is given */

void connectionInit(connection *c, const cliOptions *options) {
    *c = (connection){.options = options, .port = options->port, .db = options->db, .protocol = 2};
    strAppendText(&c->host, options->host);
}

void connectionClear(connection *c) {
    connectionClose(c);
    strFree(&c->host);
}

void connectionClose(connection *c) {
    valkeyFree(c->context);
    c->context = NULL;
    c->in_transaction = c->answered = false;
    c->server_db = 0;
    c->protocol = 2;
}

static struct timeval timeoutOf(double seconds) {
    struct timeval timeout = {.tv_sec = (time_t)seconds};
    timeout.tv_usec = (suseconds_t)((seconds - (double)timeout.tv_sec) * 1e6);
    return timeout;
}

/* Begins TLS if the options ask for it. A failure is in the context. A server without TLS waits for
 * the end of a line: the time is bounded. */
static valkeyContext *secure(const cliOptions *o, valkeyContext *context) {
    if (!o->tls.on || !context || context->err) return context;
    toolTlsLoad(&o->tls);
    (void)valkeySetTimeout(context, timeoutOf(o->timeout_s > 0 ? o->timeout_s : HANDSHAKE_S));
    if (toolTlsBegin(context)) (void)valkeySetTimeout(context, timeoutOf(0));
    return context;
}

valkeyContext *connectionOpen(const cliOptions *o, const char *host, int port) {
    struct timeval timeout = timeoutOf(o->timeout_s);
    valkeyOptions options = {.connect_timeout = o->timeout_s > 0 ? &timeout : NULL};
    if (o->prefer_ipv4) options.options |= VALKEY_OPT_PREFER_IPV4;
    if (o->prefer_ipv6) options.options |= VALKEY_OPT_PREFER_IPV6;
    if (o->mptcp) options.options |= VALKEY_OPT_MPTCP;
    VALKEY_OPTIONS_SET_TCP(&options, host, port);
    return secure(o, valkeyConnectWithOptions(&options));
}

valkeyContext *connectionOpenUnix(const cliOptions *o, const char *path) {
    valkeyOptions options = {0};
    VALKEY_OPTIONS_SET_UNIX(&options, path);
    return secure(o, valkeyConnectWithOptions(&options));
}

valkeyReply *connectionLogIn(const cliOptions *o, valkeyContext *context) {
    return o->user ? valkeyCommand(context, "AUTH %s %s", o->user, o->password)
                   : valkeyCommand(context, "AUTH %s", o->password);
}

/* ------------------------------------------------------------------ after connecting */

/* False if the connection failed or the server refused; the latter is reported with `what`. */
static bool setUp(connection *c, valkeyReply *reply, const char *what) {
    if (!reply) {
        connectionReportError(c);
        connectionClose(c);
        return false;
    }
    c->answered = true;
    bool accepted = reply->type != VALKEY_REPLY_ERROR;
    if (!accepted && what) fprintf(stderr, "%s failed: %s\n", what, reply->str);
    freeReplyObject(reply);
    return accepted;
}

static bool logIn(connection *c) {
    if (!c->options->password) return true;
    return setUp(c, connectionLogIn(c->options, c->context), "AUTH");
}

/* False if the server refuses: commands for that database must not run in another one. A person at
 * a terminal sees that, and continues in database 0. */
static bool selectDb(connection *c) {
    c->owes_select = false;
    if (c->db == 0) return true;
    char what[64];
    snprintf(what, sizeof(what), "SELECT %d", c->db);
    valkeyReply *reply = valkeyCommand(c->context, "SELECT %d", c->db);
    if (reply && reply->type == VALKEY_REPLY_ERROR && !strncmp(reply->str, "NOAUTH", 6)) {
        freeReplyObject(reply);
        c->owes_select = true; /* the user may log in by a command */
        return true;
    }
    if (setUp(c, reply, what)) {
        c->server_db = c->db;
        return true;
    }
    if (!c->reopens) {
        connectionClose(c);
        return false;
    }
    c->db = 0;
    return c->context != NULL;
}

bool connectionSelectOwed(connection *c) { return !c->owes_select || selectDb(c); }

static void chooseProtocol(connection *c) {
    const cliOptions *o = c->options;
    bool json = o->output == OUTPUT_JSON || o->output == OUTPUT_QUOTED_JSON;
    int wanted = c->asked_protocol ? c->asked_protocol : o->protocol;
    if (wanted == 2 || (wanted == 0 && !json)) return;
    /* Servers before 6.0 have no HELLO; for JSON without -3 RESP2 will do. */
    if (setUp(c, valkeyCommand(c->context, "HELLO 3"), wanted == 3 ? "HELLO 3" : NULL))
        c->protocol = 3;
}

/* True if what came during the handshake was not TLS, or nothing came. */
static bool isUnknownProtocol(const valkeyContext *context) {
    return context->err == VALKEY_ERR_TIMEOUT || context->err == VALKEY_ERR_EOF ||
           context->err == VALKEY_ERR_IO || strstr(context->errstr, "wrong version number") ||
           strstr(context->errstr, "packet length too long");
}

static void reportNoConnection(const connection *c, const char *why) {
    if (c->options->tls.on && c->context && c->context->flags & VALKEY_CONNECTED) {
        fprintf(stderr, "Could not negotiate a TLS connection: %s\n", why);
        if (isUnknownProtocol(c->context))
            fputs("Does the port speak TLS? Without it: no --tls, and valkey:// in URIs.\n",
                  stderr);
        if (strstr(why, "certificate verify failed"))
            fputs("Is the certificate signed by a CA of your own? Then name it with --cacert.\n",
                  stderr);
        return;
    }
    const char *path = c->redirected ? NULL : c->options->unix_socket;
    if (path) {
        fprintf(stderr, "Could not connect to Valkey at %s: %s\n", path, why);
    } else {
        fprintf(stderr, "Could not connect to Valkey at %s:%d: %s\n", strText(&c->host), c->port,
                why);
    }
}

/* True if the server has closed the connection while nothing was asked. A command sent now would be
 * lost, or might have been executed: nobody could tell. */
static bool wasClosed(const connection *c) {
    char byte;
    struct pollfd fd = {.fd = c->context->fd, .events = POLLIN};
    return poll(&fd, 1, 0) == 1 && recv(c->context->fd, &byte, 1, MSG_PEEK | MSG_DONTWAIT) == 0;
}

bool connectionConnect(connection *c) {
    /* A lost transaction is reported by the command that follows. */
    if (c->reopens && c->context && !c->in_transaction && wasClosed(c)) connectionClose(c);
    if (c->context) return true;
    c->context = c->options->unix_socket && !c->redirected
                     ? connectionOpenUnix(c->options, c->options->unix_socket)
                     : connectionOpen(c->options, strText(&c->host), c->port);
    if (!c->context || c->context->err) {
        reportNoConnection(c, c->context ? c->context->errstr : "out of memory");
        connectionClose(c);
        return false;
    }
    valkeyEnableKeepAliveWithInterval(c->context, VALKEY_KEEPALIVE_INTERVAL);
    if (logIn(c) && selectDb(c)) chooseProtocol(c);
    return c->context != NULL;
}

/* ------------------------------------------------------------------ commands of the modes */

void connectionReportError(const connection *c) {
    fprintf(stderr, "Error: %s\n", c->context ? c->context->errstr : "not connected");
    if (c->answered || !c->context) return;
    /* A server that expects TLS closes the connection. With TLS 1.3 one that demands a certificate
     * does it after the handshake. */
    const toolTls *tls = &c->options->tls;
    if (!tls->on) {
        fputs("The server closed the connection at once. Does the port need --tls?\n", stderr);
    } else if (!tls->cert) {
        fputs("The server closed the connection at once. Does it demand a client certificate "
              "(--cert and --key)?\n",
              stderr);
    }
}

static void stop(const connection *c) {
    fputc('\n', stderr);
    connectionReportError(c);
    exit(1);
}

void connectionQueue(connection *c, const char *format, ...) {
    va_list args;
    va_start(args, format);
    if (valkeyvAppendCommand(c->context, format, args) != VALKEY_OK) stop(c);
    va_end(args);
}

void connectionQueueArgv(connection *c, int argc, const char **argv, const size_t *lengths) {
    if (valkeyAppendCommandArgv(c->context, argc, argv, lengths) != VALKEY_OK) stop(c);
}

valkeyReply *connectionNext(connection *c) {
    void *reply = NULL;
    if (valkeyGetReply(c->context, &reply) != VALKEY_OK) stop(c);
    c->answered = true;
    return reply;
}

static valkeyReply *command(connection *c, const char *format, va_list args) {
    valkeyReply *reply = valkeyvCommand(c->context, format, args);
    if (!reply) stop(c);
    c->answered = true;
    return reply;
}

valkeyReply *connectionCommand(connection *c, const char *format, ...) {
    va_list args;
    va_start(args, format);
    valkeyReply *reply = command(c, format, args);
    va_end(args);
    return reply;
}

static valkeyReply *require(connection *c, const char *what, const char *format, va_list args) {
    valkeyReply *reply = command(c, format, args);
    if (reply->type != VALKEY_REPLY_ERROR) return reply;
    fprintf(stderr, "%s error: %s\n", what, reply->str);
    exit(1);
}

valkeyReply *connectionRequire(connection *c, const char *what, const char *format, ...) {
    va_list args;
    va_start(args, format);
    valkeyReply *reply = require(c, what, format, args);
    va_end(args);
    return reply;
}

valkeyReply *connectionRequireText(connection *c, const char *what, const char *format, ...) {
    va_list args;
    va_start(args, format);
    valkeyReply *reply = require(c, what, format, args);
    va_end(args);
    if (reply->str) return reply;
    fprintf(stderr, "%s error: unexpected reply\n", what);
    exit(1);
}
