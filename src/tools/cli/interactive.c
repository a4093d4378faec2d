/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Interactive use (interactive.h), with libedit. While a line is edited, the connection is watched,
 * too: messages are printed above the line. The hint after the line is unknown to libedit: it is
 * drawn before waiting for a key and removed after it. */
#define _GNU_SOURCE /* pipe2() */
#include "tools/cli/interactive.h"

#include <errno.h>
#include <fcntl.h>
#include <histedit.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <unistd.h>

#include "base/assert.h"
#include "base/clock.h"
#include "tools/cli/completion.h"
#include "tools/cli/hint.h"
#include "tools/cli/history_file.h"
#include "tools/cli/interrupt.h"
#include "tools/cli/preferences.h"
#include "tools/cli/print.h"
#include "tools/cli/script.h"
#include "tools/cli/terminal.h"

enum { PROMPT_MAX = 256, SLOW_MS = 500 };

typedef struct editor {
    commandRunner *runner;
    EditLine *line;
    History *history;
    valkeyContext *role_of; /* the connection whose role is known */
    bool replica;
    completion names;
    str text;            /* the lines of a command so far, if a quote is open */
    int keys;            /* terminalOpenKeys() */
    int interrupted_len; /* bytes of the line when Ctrl-C was pressed; -1: it was not */
    char prompt[PROMPT_MAX];
} editor;

/* ------------------------------------------------------------------ prompt */

static void readRole(editor *e) {
    connection *c = e->runner->connection;
    if (c->context == e->role_of || !c->context || commandIsSubscribed(e->runner) ||
        c->in_transaction || e->runner->debugging)
        return;
    e->role_of = c->context;
    e->replica = false;
    valkeyReply *reply = valkeyCommand(c->context, "ROLE");
    if (reply && reply->type == VALKEY_REPLY_ARRAY && reply->elements > 0)
        e->replica = !strcmp(reply->element[0]->str, "slave");
    freeReplyObject(reply);
}

static void buildPrompt(editor *e) {
    const connection *c = e->runner->connection;
    const char *path = c->redirected ? NULL : c->options->unix_socket;
    const char *host = strText(&c->host);
    char where[160], db[16] = "";
    if (e->text.len) {
        snprintf(e->prompt, sizeof(e->prompt), "... ");
        return;
    }
    if (e->runner->debugging) {
        snprintf(e->prompt, sizeof(e->prompt), "lua debugger> ");
        return;
    }
    if (!c->context) {
        snprintf(e->prompt, sizeof(e->prompt), "not connected> ");
        return;
    }
    if (path) {
        snprintf(where, sizeof(where), "valkey %.140s", path);
    } else {
        bool ipv6 = strchr(host, ':') != NULL;
        snprintf(where, sizeof(where), ipv6 ? "[%.120s]:%d" : "%.120s:%d", host, c->port);
    }
    if (c->server_db != 0) snprintf(db, sizeof(db), "[%d]", c->server_db);
    snprintf(e->prompt, sizeof(e->prompt), "%s%s%s%s%s> ", where, db, e->replica ? "(replica)" : "",
             c->in_transaction ? "(TX)" : "",
             commandIsSubscribed(e->runner) ? "(subscribed mode)" : "");
}

static editor *editorOf(EditLine *line) {
    void *data = NULL;
    el_get(line, EL_CLIENTDATA, &data);
    return data;
}

static char *promptProc(EditLine *line) { return editorOf(line)->prompt; }

/* ------------------------------------------------------------------ hints */

/* True if a hint was drawn. */
static bool drawHint(editor *e) {
    const LineInfo *info = el_line(e->line);
    slice typed = sliceMake(info->buffer, (size_t)(info->lastchar - info->buffer));
    if (!preferenceHints() || e->text.len || typed.len == 0 || info->cursor != info->lastchar)
        return false;
    str hint = STR_EMPTY;
    hintFor(typed, &hint);
    long room = terminalColumns() - 1 - (long)strlen(e->prompt) - (long)typed.len;
    bool draw = hint.len > 0 && room > 4;
    if (draw) {
        size_t len = hint.len < (size_t)room ? hint.len : (size_t)room;
        const char *blank = typed.ptr[typed.len - 1] == ' ' ? "" : " ";
        bool cut = len < hint.len;
        printf("\0337\033[90m%s%.*s%s\033[0m\0338", blank, (int)(cut ? len - 3 : len),
               strText(&hint), cut ? "..." : "");
        fflush(stdout);
    }
    strFree(&hint);
    return draw;
}

static void eraseHint(void) {
    fputs("\033[K", stdout);
    fflush(stdout);
}

/* ---------------------------------------------------------------- waiting for keys and messages */

/* Prints what the server sent while a line is edited. */
static void showMessages(editor *e) {
    connection *c = e->runner->connection;
    fputs("\r\033[K", stdout);
    if (valkeyBufferRead(c->context) != VALKEY_OK) {
        commandDisconnect(e->runner);
        buildPrompt(e);
    } else {
        commandShowReceived(e->runner);
    }
    fflush(stdout);
    el_set(e->line, EL_REFRESH);
}

/* Readable after SIGWINCH, so that a signal just before poll() is not lost. */
static int resize_ends[2];

static void onResize(int signal_number) {
    (void)signal_number;
    int saved = errno;
    /* If the pipe is full, it is readable already. */
    if (write(resize_ends[1], "", 1) < 0) errno = saved;
    errno = saved;
}

static void catchResize(void) {
    check(pipe2(resize_ends, O_NONBLOCK | O_CLOEXEC) == 0);
    sigaction(SIGWINCH, &(struct sigaction){.sa_handler = onResize}, NULL);
}

/* Draws the line again for the new size. */
static void followSize(editor *e) {
    char bytes[64];
    while (read(resize_ends[0], bytes, sizeof(bytes)) > 0) {}
    el_resize(e->line);
    fputs("\r\033[J", stdout);
    fflush(stdout);
    el_set(e->line, EL_REFRESH);
}

/* Waits for a key and takes its first byte. False at the end of the input and after Ctrl-C. */
static bool waitForKey(editor *e, char *byte) {
    for (;;) {
        connection *c = e->runner->connection;
        struct pollfd fds[4] = {{.fd = e->keys, .events = POLLIN},
                                {.fd = interruptDescriptor(), .events = POLLIN},
                                {.fd = c->context ? c->context->fd : -1, .events = POLLIN},
                                {.fd = resize_ends[0], .events = POLLIN}};
        int ready = poll(fds, 4, -1);
        if (ready < 0 && errno != EINTR) return false;
        if (ready > 0 && fds[3].revents) followSize(e);
        if (interruptPending()) {
            const LineInfo *info = el_line(e->line);
            e->interrupted_len = (int)(info->lastchar - info->buffer);
            return false;
        }
        if (ready > 0 && fds[0].revents) {
            terminalKey key = terminalReadKey(e->keys, byte);
            if (key != TERMINAL_NO_KEY) return key == TERMINAL_KEY;
        }
        if (ready > 0 && c->context && fds[2].revents) {
            eraseHint();
            showMessages(e);
            drawHint(e);
        }
    }
}

static int readKey(EditLine *line, wchar_t *out) {
    editor *e = editorOf(line);
    bool hint = drawHint(e);
    char byte;
    bool ready = waitForKey(e, &byte);
    if (hint) eraseHint();
    mbstate_t state = {0};
    for (; ready; ready = waitForKey(e, &byte)) {
        size_t used = mbrtowc(out, &byte, 1, &state);
        if (used == (size_t)-2) continue;
        if (used != (size_t)-1) return 1;
        *out = (unsigned char)byte; /* not valid in this character set */
        return 1;
    }
    return 0;
}

/* ------------------------------------------------------------------ completion */

/* Inserts what all commands that begin like the line have in common; lists them if that is
 * nothing. */
static unsigned char completeProc(EditLine *line, int key) {
    (void)key;
    editor *e = editorOf(line);
    const LineInfo *info = el_line(line);
    slice typed = sliceMake(info->buffer, (size_t)(info->cursor - info->buffer));
    if (typed.len >= 5 && !strncasecmp(typed.ptr, "help ", 5))
        typed = sliceMake(typed.ptr + 5, typed.len - 5);
    completionLoad(&e->names, e->runner);
    str text = STR_EMPTY;
    unsigned char result = CC_REDISPLAY;
    int count = completionCommon(&e->names, typed, &text);
    if (count == 0) {
        result = CC_REFRESH_BEEP;
    } else if (text.len > typed.len || count == 1) {
        if (count == 1) strAppendByte(&text, ' ');
        el_deletestr(line, (int)typed.len);
        el_insertstr(line, strText(&text));
        result = CC_REFRESH;
    } else {
        strClear(&text);
        completionList(&e->names, typed, terminalColumns(), &text);
        printf("\n%s", strText(&text));
        fflush(stdout);
    }
    strFree(&text);
    return result;
}

/* ------------------------------------------------------------------ lines */

static void addLine(const char *text, void *arg) {
    HistEvent event;
    history(arg, &event, H_ENTER, text);
}

/* Keeps a command in the history, on one line. */
static void keepLine(editor *e, const char *text) {
    words w = {0};
    if (!wordsSplit(sliceOf(text), &w)) return;
    str line = STR_EMPTY;
    if (strchr(text, '\n')) {
        for (int i = 0; i < w.count; i++) {
            if (i) strAppendByte(&line, ' ');
            strAppendQuoted(&line, strSlice(&w.items[i]));
        }
    } else {
        strAppendText(&line, text);
    }
    if (w.count > 0 && !historyIsSecret(&w)) {
        addLine(strText(&line), e->history);
        historyAppend(strText(&line));
    }
    wordsClear(&w);
    strFree(&line);
}

static bool runLine(editor *e, const char *text) {
    commandRunner *r = e->runner;
    r->asked_ms = 0;
    int64_t start_ms = clockMonoMs();
    bool more = scriptRunLine(r, sliceOf(text));
    int64_t elapsed_ms = clockMonoMs() - start_ms - r->asked_ms;
    if (interruptPending()) putchar('\n'); /* the terminal has printed ^C */
    if (elapsed_ms >= SLOW_MS && r->connection->options->output == OUTPUT_STANDARD)
        printf("(%.2fs)\n", (double)elapsed_ms / 1000);
    if (interruptPending()) {
        /* The reply of the interrupted command would be taken for that of the next one. */
        interruptClear();
        commandDisconnect(r);
        connectionConnect(r->connection);
        commandAttach(r);
    }
    return more;
}

static void setUpEditor(editor *e) {
    HistEvent event;
    e->history = history_init();
    history(e->history, &event, H_SETSIZE, 1000);
    history(e->history, &event, H_SETUNIQUE, 1);
    historyLoad(addLine, e->history);
    e->line = el_init("valkey-cli", stdin, stdout, stderr);
    el_set(e->line, EL_CLIENTDATA, e);
    el_set(e->line, EL_EDITOR, "emacs");
    el_set(e->line, EL_PROMPT, promptProc);
    el_set(e->line, EL_HIST, history, e->history);
    el_set(e->line, EL_GETCFN, readKey);
    el_set(e->line, EL_ADDFN, "complete-command", "Completes the name of a command", completeProc);
    el_set(e->line, EL_BIND, "^I", "complete-command", NULL);
    el_set(e->line, EL_BIND, "^R", "em-inc-search-prev", NULL);
    el_set(e->line, EL_SIGNAL, 0);
    el_source(e->line, NULL);
}

/* Runs a line, or keeps it until the quote in it is closed. False: the program shall end. */
static bool takeLine(editor *e, slice line) {
    while (line.len > 0 && strchr("\r\n", line.ptr[line.len - 1])) line.len--;
    if (e->text.len) strAppendByte(&e->text, '\n');
    strAppendSlice(&e->text, line);
    if (e->text.len == 0 || (!e->runner->debugging && wordsIsOpen(strSlice(&e->text)))) return true;
    keepLine(e, strText(&e->text));
    bool more = runLine(e, strText(&e->text));
    strClear(&e->text);
    return more;
}

int interactiveRun(commandRunner *r) {
    editor e = {.runner = r};
    interruptInstall();
    catchResize();
    e.keys = terminalOpenKeys(STDIN_FILENO);
    if (e.keys < 0) {
        fprintf(stderr, "Could not open the terminal: %s\n", strerror(errno));
        return 1;
    }
    r->connection->reopens = true;
    preferencesLoad();
    connectionConnect(r->connection);
    setUpEditor(&e);
    bool more = true;
    while (more) {
        commandAttach(r);
        if (r->connection->context) commandShowReceived(r);
        readRole(&e);
        buildPrompt(&e);
        int len = 0;
        e.interrupted_len = -1;
        el_resize(e.line);
        el_set(e.line, EL_PREP_TERM, 1); /* before the prompt: libedit itself does it after that */
        interruptClear();                /* a Ctrl-C that came too late for the last command */
        const char *text = el_gets(e.line, &len);
        if (e.interrupted_len >= 0) {
            /* On an empty line, Ctrl-C ends the program. */
            more = e.interrupted_len > 0 || e.text.len > 0;
            strClear(&e.text);
            interruptClear();
            fputs("^C\n\033[J", stdout); /* the rest of the line may be below */
            el_reset(e.line);
            continue;
        }
        if (!text || len <= 0) break;
        more = takeLine(&e, sliceMake(text, (size_t)len));
    }
    strFree(&e.text);
    completionClear(&e.names);
    el_end(e.line);
    history_end(e.history);
    close(e.keys);
    return 0;
}
