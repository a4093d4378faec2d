/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Running commands (command.h). */
#include "tools/cli/command.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "base/clock.h"
#include "tools/cli/bars.h"
#include "tools/cli/explain.h"
#include "tools/cli/help.h"
#include "tools/cli/histogram_view.h"
#include "tools/cli/interrupt.h"
#include "tools/cli/pager.h"
#include "tools/cli/print.h"
#include "tools/cli/sync.h"
#include "tools/cli/terminal.h"
#include "tools/server_uri.h"

/* Commands whose replies are texts for people, printed as they are also in the standard format. */
static bool repliesText(const words *w) {
    static const char *const commands[] = {"info",
                                           "lolwut",
                                           "debug htstats",
                                           "debug htstats-key",
                                           "memory malloc-stats",
                                           "memory doctor",
                                           "memory explain",
                                           "latency graph",
                                           "latency doctor",
                                           "cluster nodes",
                                           "cluster info",
                                           "client list",
                                           "client info",
                                           "proxy info"};
    for (size_t i = 0; i < sizeof(commands) / sizeof(*commands); i++) {
        if (wordsBegin(w, commands[i])) return true;
    }
    return false;
}

/* Which of r->subscriptions a command or confirmation is about, -1 for others. */
static int subscriptionKind(slice name, bool *ends) {
    static const char *const names[2][3] = {{"subscribe", "psubscribe", "ssubscribe"},
                                            {"unsubscribe", "punsubscribe", "sunsubscribe"}};
    for (int kind = 0; kind < 6; kind++) {
        *ends = kind >= 3;
        if (sliceIs(name, names[*ends][kind % 3])) return kind % 3;
    }
    return -1;
}

bool commandIsSubscribed(const commandRunner *r) {
    return r->subscriptions[0] + r->subscriptions[1] + r->subscriptions[2] > 0;
}

static void clearSubscriptions(commandRunner *r) {
    memset(r->subscriptions, 0, sizeof(r->subscriptions));
}

void commandDisconnect(commandRunner *r) {
    connectionClose(r->connection);
    clearSubscriptions(r);
    r->debugging = false;
}

/* Takes the count of a confirmation: that of shard channels, or that of channels and patterns
 * together. */
static void noteConfirmation(commandRunner *r, const valkeyReply *reply) {
    bool ends;
    if (reply->elements != 3 || reply->element[0]->type != VALKEY_REPLY_STRING ||
        reply->element[2]->type != VALKEY_REPLY_INTEGER)
        return;
    int kind = subscriptionKind(sliceMake(reply->element[0]->str, reply->element[0]->len), &ends);
    if (kind < 0) return;
    int *counts = r->subscriptions;
    int before = kind == 2 ? counts[2] : counts[0] + counts[1];
    counts[kind] += (int)reply->element[2]->integer - before;
    if (counts[kind] < 0) counts[kind] = 0;
}

/* ------------------------------------------------------------------ replies */

/* "-> invalidate: 'a', 'b'". False for other messages. */
static bool printInvalidation(str *out, const valkeyReply *push) {
    if (push->elements != 2 || push->element[0]->type != VALKEY_REPLY_STRING ||
        strcmp(push->element[0]->str, "invalidate") != 0 ||
        push->element[1]->type != VALKEY_REPLY_ARRAY)
        return false;
    const valkeyReply *keys = push->element[1];
    strAppendText(out, "-> invalidate: ");
    for (size_t i = 0; i < keys->elements; i++) {
        strAppendText(out, i ? ", '" : "'");
        strAppend(out, keys->element[i]->str, keys->element[i]->len);
        strAppendByte(out, '\'');
    }
    strAppendByte(out, '\n');
    return true;
}

void commandPrintPush(void *runner, void *reply) {
    commandRunner *r = runner;
    const cliOptions *o = r->connection->options;
    bool wanted = o->show_pushes > 0 || commandIsSubscribed(r);
    noteConfirmation(r, reply);
    if (wanted) {
        str out = STR_EMPTY;
        if (o->output != OUTPUT_STANDARD || !printInvalidation(&out, reply))
            printReply(&out, reply, o, false, r->colors);
        fwrite(out.ptr, 1, out.len, stdout);
        fflush(stdout);
        strFree(&out);
    }
    freeReplyObject(reply);
}

void commandAttach(commandRunner *r) {
    valkeyContext *context = r->connection->context;
    if (!context || context->privdata == r) return;
    context->privdata = r;
    valkeySetPushCallback(context, commandPrintPush);
}

/* "MOVED 3999 127.0.0.1:6381": sets the connection to that node. False for other errors. */
static bool redirect(commandRunner *r, const valkeyReply *reply, bool *ask) {
    connection *c = r->connection;
    bool moved = !strncmp(reply->str, "MOVED ", 6);
    *ask = !strncmp(reply->str, "ASK ", 4);
    if (!c->options->cluster || (!moved && !*ask)) return false;
    char *slot = strchr(reply->str, ' ') + 1, *address = strchr(slot, ' ');
    char *colon = address ? strrchr(address, ':') : NULL;
    if (!colon) return false;
    bool is_same = colon == address + 1 || !strncmp(address + 1, "?:", 2); /* as the sender's */
    if (!is_same) {
        strClear(&c->host);
        slice host = serverHostBare(sliceMake(address + 1, (size_t)(colon - address - 1)));
        strAppendSlice(&c->host, host);
    }
    c->port = atoi(colon + 1);
    c->redirected = true;
    if (r->explain)
        printf("-> Redirected to slot [%d] located at %s:%d\n", atoi(slot), strText(&c->host),
               c->port);
    connectionClose(c);
    return true;
}

static void printText(commandRunner *r, str *out) {
    if (r->explain && pagerShow(out)) return;
    fwrite(strText(out), 1, out->len, stdout);
    if (fflush(stdout) != 0 && errno == EPIPE) exit(1);
}

/* Draws what is easier to read than the reply, for people at a terminal. False for other
 * replies. */
static bool drawReply(const commandRunner *r, const words *command, const valkeyReply *reply,
                      str *out) {
    if (!r->explain || r->connection->options->force_standard ||
        !wordsBegin(command, "latency histogram"))
        return false;
    histogramStyle style = {terminalColumns(), barsAreBlocks(), r->colors};
    return histogramDraw(out, reply, style);
}

/* Prints a reply; false if it is an error and the program's status is to show that. */
static bool showReply(commandRunner *r, const words *command, const valkeyReply *reply) {
    const cliOptions *o = r->connection->options;
    r->failed = reply->type == VALKEY_REPLY_ERROR;
    r->any_failed |= r->failed;
    if (r->failed && o->error_status && r->endless) {
        fprintf(stderr, "%s\n", reply->str);
        return false;
    }
    str out = STR_EMPTY;
    if (!drawReply(r, command, reply, &out))
        printReply(&out, reply, o, repliesText(command), r->colors);
    printText(r, &out);
    strFree(&out);
    if (r->explain && r->failed) explainError(command, reply->str, r->connection);
    return true;
}

/* Waits for the next reply, which Ctrl-C ends. Pushed messages are printed. NULL after a
 * failure. */
static valkeyReply *waitReply(valkeyContext *context) {
    int done = 0;
    while (!done) {
        if (valkeyBufferWrite(context, &done) != VALKEY_OK) return NULL;
    }
    for (;;) {
        void *next = NULL;
        if (valkeyGetReplyFromReader(context, &next) != VALKEY_OK) return NULL;
        valkeyReply *reply = next;
        if (reply && reply->type == VALKEY_REPLY_PUSH && context->push_cb) {
            context->push_cb(context->privdata, reply);
            continue;
        }
        if (reply) return reply;
        if (interruptDescriptor() >= 0) interruptWait(context, -1);
        if (interruptPending() || valkeyBufferRead(context) != VALKEY_OK) return NULL;
    }
}

/* The next reply, or NULL after an error that was reported. */
static valkeyReply *nextReply(commandRunner *r, const words *command) {
    connection *c = r->connection;
    valkeyReply *reply = waitReply(c->context);
    c->answered |= reply != NULL;
    if (reply || interruptPending()) return reply;
    if (!wordsBegin(command, "shutdown")) connectionReportError(c);
    return NULL;
}

void commandShowReceived(commandRunner *r) {
    static const words none = {0};
    valkeyContext *context = r->connection->context;
    for (;;) {
        void *next = NULL;
        if (valkeyGetReplyFromReader(context, &next) != VALKEY_OK || !next) return;
        valkeyReply *reply = next;
        if (reply->type == VALKEY_REPLY_PUSH && context->push_cb) {
            context->push_cb(context->privdata, reply);
            continue;
        }
        noteConfirmation(r, reply);
        showReply(r, &none, reply);
        freeReplyObject(reply);
    }
}

/* ------------------------------------------------------------------ state of the connection */

/* Notes what an accepted command changed. */
static void noteEffects(commandRunner *r, const words *w, const valkeyReply *reply) {
    connection *c = r->connection;
    if (reply->type == VALKEY_REPLY_ERROR) {
        if (wordsBegin(w, "exec") && c->in_transaction && !strncmp(reply->str, "EXECABORT", 9))
            c->in_transaction = false;
        return;
    }
    if (wordsBegin(w, "multi")) c->in_transaction = true;
    if (wordsBegin(w, "exec") || wordsBegin(w, "discard")) c->in_transaction = false;
    if (wordsBegin(w, "select") && w->count == 2 && reply->type == VALKEY_REPLY_STATUS &&
        !strcmp(reply->str, "OK"))
        c->db = c->server_db = atoi(strText(&w->items[1]));
    if (wordsBegin(w, "hello") && w->count > 1)
        c->protocol = c->asked_protocol = atoi(strText(&w->items[1]));
    if (wordsBegin(w, "reset")) {
        c->in_transaction = false;
        c->db = c->server_db = 0;
        c->protocol = c->asked_protocol = 2;
        clearSubscriptions(r);
    }
}

bool commandAppend(connection *c, const words *w) {
    const char **argv = memAlloc(sizeof(*argv) * (size_t)w->count);
    size_t *lengths = memAlloc(sizeof(*lengths) * (size_t)w->count);
    for (int i = 0; i < w->count; i++) {
        argv[i] = strText(&w->items[i]);
        lengths[i] = w->items[i].len;
    }
    int result = valkeyAppendCommandArgv(c->context, w->count, argv, lengths);
    memFree(argv);
    memFree(lengths);
    return result == VALKEY_OK;
}

/* ------------------------------------------------------------------ kinds of commands */

/* MONITOR, and subscriptions without further input: prints whatever arrives. */
static bool readForever(commandRunner *r, const words *command) {
    static const words none = {0};
    (void)command;
    for (;;) {
        valkeyReply *reply = nextReply(r, &none);
        if (!reply) return false;
        showReply(r, &none, reply);
        freeReplyObject(reply);
    }
}

/* Each channel of a subscription is confirmed; in RESP3 by pushed messages. Without channels,
 * UNSUBSCRIBE ends all. */
static bool readConfirmations(commandRunner *r, const words *command, int kind) {
    connection *c = r->connection;
    int expected = command->count - 1;
    if (expected == 0) expected = r->subscriptions[kind] ? r->subscriptions[kind] : 1;
    bool accepted = true;
    valkeySetPushCallback(c->context, NULL);
    while (expected-- > 0 && accepted) {
        valkeyReply *reply = nextReply(r, command);
        if (!reply) return false;
        noteConfirmation(r, reply);
        accepted = showReply(r, command, reply);
        freeReplyObject(reply);
        if (r->failed) break; /* one error for the whole command */
    }
    if (accepted && commandIsSubscribed(r) && r->endless) return readForever(r, command);
    valkeySetPushCallback(c->context, commandPrintPush);
    return accepted;
}

static bool readMonitor(commandRunner *r, const words *command) {
    valkeyReply *reply = nextReply(r, command);
    if (!reply) return false;
    bool accepted = showReply(r, command, reply);
    bool started = reply->type == VALKEY_REPLY_STATUS;
    freeReplyObject(reply);
    return accepted && (!started || readForever(r, command));
}

/* SYNC and PSYNC. There is nothing to be done after them except for a user who has pressed
 * Ctrl-C. */
static bool readStream(commandRunner *r, const words *command) {
    syncShow(r->connection, command);
    if (interruptDescriptor() < 0) exit(1);
    commandDisconnect(r);
    return false;
}

/* Sends the command once and prints its reply, after redirections. False after failures as
 * commandRun(). */
static bool runOnce(commandRunner *r, const words *command) {
    connection *c = r->connection;
    bool ask = false;
    for (;;) {
        if (!connectionConnect(c)) return false;
        commandAttach(r);
        if (ask) {
            valkeyReply *asking = valkeyCommand(c->context, "ASKING");
            if (!asking) return false;
            freeReplyObject(asking);
        }
        if (!commandAppend(c, command)) return false;
        if (wordsBegin(command, "monitor")) return readMonitor(r, command);
        if (syncIsCommand(command)) return readStream(r, command);
        bool ends;
        int kind = subscriptionKind(strSlice(&command->items[0]), &ends);
        if (kind >= 0 && command->count + ends > 1) return readConfirmations(r, command, kind);
        if (wordsBegin(command, "client reply off") || wordsBegin(command, "client reply skip")) {
            int done = 0;
            while (!done) {
                if (valkeyBufferWrite(c->context, &done) != VALKEY_OK) return false;
            }
            return true; /* the server does not reply */
        }
        valkeyReply *reply = nextReply(r, command);
        if (!reply) return false;
        if (reply->type == VALKEY_REPLY_ERROR && redirect(r, reply, &ask)) {
            freeReplyObject(reply);
            continue;
        }
        noteEffects(r, command, reply);
        bool accepted = showReply(r, command, reply);
        bool logs_in = !r->failed && (wordsBegin(command, "auth") || wordsBegin(command, "hello"));
        freeReplyObject(reply);
        return accepted && (!logs_in || connectionSelectOwed(c));
    }
}

bool commandRun(commandRunner *r, const words *command, long repeat) {
    if (helpIsCommand(command)) {
        helpPrint(command);
        return true;
    }
    const cliOptions *o = r->connection->options;
    while (repeat < 0 || repeat-- > 0) {
        if (!runOnce(r, command)) {
            r->any_failed = true;
            bool failed = r->failed && r->connection->context && !r->connection->context->err;
            if (r->connection->context && r->connection->context->err) commandDisconnect(r);
            /* Only SHUTDOWN ends the connection on purpose. */
            return !failed && wordsBegin(command, "shutdown");
        }
        if (o->interval_us > 0 && repeat != 0) clockSleepUs(o->interval_us);
        fflush(stdout);
    }
    return true;
}
