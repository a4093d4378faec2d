/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Commands of lines (script.h). */
#include "tools/cli/script.h"

#include <errno.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/clock.h"
#include "tools/cli/careful.h"
#include "tools/cli/ldb.h"
#include "tools/cli/preferences.h"
#include "tools/server_uri.h"

enum { SLOW_MS = 500 }; /* from here on, the time of a command is printed */

/* `connect HOST PORT`: later commands go there. */
static void reconnect(commandRunner *r, const words *w) {
    connection *c = r->connection;
    commandDisconnect(r);
    strClear(&c->host);
    strAppendSlice(&c->host, serverHostBare(strSlice(&w->items[1])));
    c->port = atoi(strText(&w->items[2]));
    c->redirected = true;
    connectionConnect(c);
}

/* A number before the command repeats it. Returns it, 1 without one, 0 if it is not valid. */
static long takeRepeat(words *w) {
    const char *text = strText(&w->items[0]);
    char *end;
    errno = 0;
    long repeat = strtol(text, &end, 10);
    if (w->count < 2 || end == text || *end) return 1;
    if (errno == ERANGE || repeat <= 0) {
        fputs("Invalid valkey-cli repeat command option value.\n", stdout);
        return 0;
    }
    strFree(&w->items[0]);
    w->count--;
    memmove(w->items, w->items + 1, sizeof(*w->items) * (size_t)w->count);
    return repeat;
}

static void runWords(commandRunner *r, words *w) {
    long repeat = r->debugging ? 1 : takeRepeat(w);
    if (repeat == 0) return;
    if (r->debugging && wordsBegin(w, "restart") && w->count == 1) {
        ldbRestart(r);
    } else if (r->debugging) {
        ldbCommand(r, w);
    } else if (wordsBegin(w, "restart") && w->count == 1) {
        puts("Use 'restart' only in Lua debugging mode.");
    } else if (wordsBegin(w, "connect") && w->count == 3) {
        reconnect(r, w);
    } else if (wordsBegin(w, "clear") && w->count == 1) {
        fputs("\x1b[H\x1b[2J", stdout);
    } else if (carefulAllows(r, w)) {
        commandRun(r, w, repeat); /* reports its failures */
    }
}

/* `:get pubsub`: 1 while there are subscriptions. */
static void printState(const commandRunner *r, const char *name) {
    if (sliceIs(sliceOf(name), "pubsub")) {
        printf("%d\n", commandIsSubscribed(r));
    } else {
        printf("unknown valkey-cli get option '%s'\n", name);
    }
}

/* What the debugger evaluates is Lua: its quotes and blanks are kept. */
static bool splitExpression(slice line, words *out) {
    static const char *const names[] = {"e ", "eval "};
    for (size_t i = 0; i < sizeof(names) / sizeof(*names); i++) {
        size_t len = strlen(names[i]);
        if (line.len <= len || memcmp(line.ptr, names[i], len) != 0) continue;
        wordsAdd(out, sliceMake(names[i], len - 1));
        wordsAdd(out, sliceMake(line.ptr + len, line.len - len));
        return true;
    }
    return false;
}

bool scriptRunLine(commandRunner *r, slice line) {
    words w = {0};
    bool is_expression = r->debugging && splitExpression(line, &w);
    if (!is_expression && !wordsSplit(line, &w)) {
        puts("Invalid argument(s)");
        r->any_failed = true;
        return true;
    }
    bool more = !(w.count == 1 && (wordsBegin(&w, "quit") || wordsBegin(&w, "exit")));
    if (more && w.count > 1 && wordsBegin(&w, ":get")) {
        printState(r, strText(&w.items[1]));
    } else if (more && w.count > 0 && strText(&w.items[0])[0] == ':') {
        preferenceSet(&w);
    } else if (more && w.count > 0) {
        runWords(r, &w);
    }
    wordsClear(&w);
    fflush(stdout);
    return more;
}

/* Waits for input, and prints the messages that arrive meanwhile. */
static void waitForInput(commandRunner *r) {
    bool announce = r->connection->options->output == OUTPUT_STANDARD;
    const char *terminal = getenv("TERM");
    bool dumb = terminal && !strcmp(terminal, "dumb");
    for (;;) {
        valkeyContext *context = r->connection->context;
        if (context) commandShowReceived(r);
        if (!context || !commandIsSubscribed(r)) return;
        if (announce)
            printf("%sReading messages... (press Ctrl-C to quit or any key to type command)\r%s",
                   dumb ? "" : "\x1b[1;90m", dumb ? "" : "\x1b[0m");
        fflush(stdout);
        struct pollfd fds[2] = {{.fd = STDIN_FILENO, .events = POLLIN},
                                {.fd = context->fd, .events = POLLIN}};
        int ready = poll(fds, 2, -1);
        if (announce) fputs("\x1b[K", stdout);
        if (ready > 0 && fds[1].revents) {
            if (valkeyBufferRead(context) == VALKEY_OK) continue;
            connectionReportError(r->connection);
            commandDisconnect(r);
        }
        if (ready > 0) return;
    }
}

/* Takes the next line of standard input from `pending`, without its end. False at the end of the
 * input. */
static bool readLine(commandRunner *r, str *pending, str *line) {
    strClear(line);
    for (;;) {
        char *end = pending->len ? memchr(pending->ptr, '\n', pending->len) : NULL;
        if (end) {
            size_t len = (size_t)(end - pending->ptr), rest = pending->len - len - 1;
            strAppend(line, pending->ptr, len);
            memmove(pending->ptr, end + 1, rest);
            strCut(pending, rest);
            return true;
        }
        if (pending->len == 0) waitForInput(r);
        ssize_t count = read(STDIN_FILENO, strReserve(pending, 4096), 4096);
        if (count < 0 && errno == EINTR) continue;
        if (count > 0) {
            strGrow(pending, (size_t)count);
            continue;
        }
        strAppendSlice(line, strSlice(pending));
        strClear(pending);
        return line->len > 0;
    }
}

static void runTimed(commandRunner *r, slice line, bool *more) {
    int64_t start_ms = clockMonoMs();
    *more = scriptRunLine(r, line);
    int64_t elapsed_ms = clockMonoMs() - start_ms;
    if (elapsed_ms >= SLOW_MS && r->connection->options->output == OUTPUT_STANDARD)
        printf("(%.2fs)\n", (double)elapsed_ms / 1000);
}

int scriptRunStdin(commandRunner *r) {
    connectionConnect(r->connection);
    commandAttach(r);
    str pending = STR_EMPTY, line = STR_EMPTY;
    bool more = true;
    while (more && readLine(r, &pending, &line)) {
        while (line.len > 0 && line.ptr[line.len - 1] == '\r') strCut(&line, line.len - 1);
        if (line.len > 0) runTimed(r, strSlice(&line), &more);
    }
    strFree(&pending);
    strFree(&line);
    return r->any_failed && r->connection->options->error_status ? 1 : 0;
}
