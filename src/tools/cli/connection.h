/* SPDX-License-Identifier: BSD-3-Clause
 *
 * The connection of valkey-cli to a server: login, database, protocol, redirections. One thread. */
#ifndef TOOLS_CLI_CONNECTION_H
#define TOOLS_CLI_CONNECTION_H

#include <stdbool.h>
#include <valkey/valkey.h>

#include "base/str.h"
#include "tools/cli/options.h"

typedef struct connection {
    const cliOptions *options;
    valkeyContext *context; /* NULL: not connected */
    str host;               /* where to connect to: that of the options, or of a redirection */
    int port;
    bool redirected;     /* to a node of the cluster; a Unix socket is not used */
    int db;              /* to be selected after connecting */
    int server_db;       /* selected in the server */
    int protocol;        /* 2 or 3, in use */
    int asked_protocol;  /* of the last HELLO of the user, for the next connection; 0: none */
    bool owes_select;    /* the server wants a login before it selects `db` */
    bool in_transaction; /* MULTI was sent */
    bool answered;       /* the server has sent a reply */
    bool reopens; /* a connection that was closed while idle is opened again without a report */
} connection;

void connectionInit(connection *c, const cliOptions *options);
void connectionClear(connection *c);
/* Opens a connection without login, TLS included. Returns a context to be checked for `err`; NULL
 * if memory is exhausted. */
valkeyContext *connectionOpen(const cliOptions *options, const char *host, int port);
valkeyContext *connectionOpenUnix(const cliOptions *options, const char *path);
/* Sends AUTH with the user and password of the options, of which the latter must be given; returns
 * the reply, NULL if the connection fails. */
valkeyReply *connectionLogIn(const cliOptions *options, valkeyContext *context);
/* Connects, unless connected, with login, database and protocol. Reports failures on standard
 * error; false if there is no connection. */
bool connectionConnect(connection *c);
void connectionClose(connection *c);
/* After a login: selects the database that the options ask for. False if the server refuses, which
 * was reported. */
bool connectionSelectOwed(connection *c);
/* Prints "Error: ..." for the context's error on standard error. */
void connectionReportError(const connection *c);
/* Sends a command with the format of valkeyCommand() and returns its reply. Ends the program with
 * an error if the connection fails. The caller frees the reply. */
valkeyReply *connectionCommand(connection *c, const char *format, ...);
/* Sends commands without waiting: queue them, then take their replies in order. Ends the program as
 * above. */
void connectionQueue(connection *c, const char *format, ...);
void connectionQueueArgv(connection *c, int argc, const char **argv, const size_t *lengths);
valkeyReply *connectionNext(connection *c);
/* As connectionCommand(), for commands that must not fail: ends the program, naming `what`, if the
 * reply is an error. */
valkeyReply *connectionRequire(connection *c, const char *what, const char *format, ...);
/* The same for replies that are texts. */
valkeyReply *connectionRequireText(connection *c, const char *what, const char *format, ...);

#endif
