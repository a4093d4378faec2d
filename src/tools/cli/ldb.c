/* SPDX-License-Identifier: BSD-3-Clause
 *
 * The Lua debugger's front end (ldb.h). The server replies with arrays of lines; the line
 * <endsession> is followed by the reply of the script. */
#include "tools/cli/ldb.h"

#include <stdio.h>
#include <string.h>

#include "tools/cli/print.h"

static const words *script;

static void printLine(const char *line) {
    static const struct {
        const char *prefix, *color;
    } colors[] = {{"<debug>", "1;37"},  {"<command>", "0;32"}, {"<reply>", "0;36"},
                  {"<error>", "0;31"},  {"<hint>", "1;34"},    {"<value>", "0;35"},
                  {"<retval>", "0;35"}, {"->", "0;33"}};
    bool is_breakpoint = strlen(line) > 2 && line[2] == '#';
    const char *color = is_breakpoint ? "1;37" : "0;37";
    for (size_t i = 0; i < sizeof(colors) / sizeof(*colors); i++) {
        if (!strncmp(line, colors[i].prefix, strlen(colors[i].prefix))) color = colors[i].color;
    }
    printf("\033[%s;49m%s\033[0m\n", color, line);
}

static void printWhole(const valkeyReply *reply) {
    str out = STR_EMPTY;
    printStandard(&out, reply, false);
    fwrite(strText(&out), 1, out.len, stdout);
    strFree(&out);
}

static void endSession(commandRunner *r) {
    connection *c = r->connection;
    void *reply = NULL;
    r->debugging = false;
    putchar('\n');
    if (valkeyGetReply(c->context, &reply) == VALKEY_OK) printWhole(reply);
    freeReplyObject(reply);
    printf("\n(Lua debugging session ended%s)\n\n",
           c->options->ldb_sync ? "" : " -- dataset changes rolled back");
    /* In the forked mode the process that served this connection is gone. */
    connectionClose(c);
    connectionConnect(c);
}

/* Prints the output of a step. */
static bool printStep(commandRunner *r) {
    connection *c = r->connection;
    void *received = NULL;
    if (valkeyGetReply(c->context, &received) != VALKEY_OK) {
        connectionReportError(c);
        connectionClose(c);
        r->debugging = false;
        return false;
    }
    valkeyReply *reply = received;
    bool ended = false, lines = reply->type == VALKEY_REPLY_ARRAY;
    for (size_t i = 0; lines && i < reply->elements; i++) {
        const valkeyReply *line = reply->element[i];
        if (!line->str) continue;
        if (!strcmp(line->str, "<endsession>")) {
            ended = true;
        } else {
            printLine(line->str);
        }
    }
    if (!lines) {
        printWhole(reply);
        r->debugging = false; /* the script could not be compiled */
    }
    freeReplyObject(reply);
    if (ended) endSession(r);
    return lines;
}

static bool send(commandRunner *r, const words *command) {
    if (commandAppend(r->connection, command)) return printStep(r);
    connectionReportError(r->connection);
    return false;
}

bool ldbStart(commandRunner *r, const words *eval) {
    connection *c = r->connection;
    script = eval;
    if (!connectionConnect(c)) return false;
    valkeyReply *reply = connectionRequire(c, "SCRIPT DEBUG", "SCRIPT DEBUG %s",
                                           c->options->ldb_sync ? "sync" : "yes");
    freeReplyObject(reply);
    fputs("Lua debugging session started, please use:\n"
          "quit    -- End the session.\n"
          "restart -- Restart the script in debug mode again.\n"
          "help    -- Show Lua script debugging commands.\n\n",
          stdout);
    r->debugging = true;
    return send(r, eval);
}

bool ldbRestart(commandRunner *r) {
    connectionClose(r->connection);
    putchar('\n');
    return ldbStart(r, script);
}

void ldbCommand(commandRunner *r, const words *command) { send(r, command); }
