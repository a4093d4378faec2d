/* SPDX-License-Identifier: BSD-3-Clause
 *
 * The debugger of EVAL scripts: SCRIPT DEBUG and the protocol of `valkey-cli --ldb`. A session
 * begins with EVAL, in a forked process or, in mode SYNC, in the server, which serves nobody else
 * meanwhile. While the script is stopped the client sends commands as arrays of bulks and gets
 * arrays of lines. The engine calls debugStop() at each line that debugStopsAt() selects, and shows
 * its state through a debugView. Main thread only. */
#ifndef SCRIPT_DEBUG_H
#define SCRIPT_DEBUG_H

#include <stdbool.h>

#include "base/slice.h"
#include "base/str.h"
#include "engine/ctx.h"
#include "engine/hooks.h"
#include "resp/reply_sink.h"

typedef struct debugSession debugSession;

typedef struct debugLines debugLines; /* lines for the client */
/* Adds a line; its line breaks become blanks. */
void debugAdd(debugLines *to, slice line);
/* The same for a text that maxlen may cut. */
void debugAddCut(debugLines *to, slice line);
/* Texts of values need not be longer than this. */
size_t debugTextMax(const debugLines *to);

/* How the debugger reads and changes the state of a stopped script. All of them add lines. */
typedef struct debugView {
    void *state;
    /* The value of the innermost variable with that name. */
    void (*print)(void *state, slice name, debugLines *to);
    /* All variables of the current function. */
    void (*print_all)(void *state, debugLines *to);
    /* The functions on the stack, each with its line by debugAddLine(). */
    void (*trace)(void *state, debugLines *to);
    /* Runs code and shows what it returns. */
    void (*evaluate)(void *state, slice code, debugLines *to);
    /* Runs a command as the script would. */
    void (*command)(void *state, const slice *argv, int argc);
} debugView;

/* A line of the script with its number and marks. */
void debugAddLine(debugLines *to, int line);

/* EVAL and EVAL_RO: true if the session of `c` debugs its scripts; `run` then runs the script, in
 * the process of the debugging session. */
typedef void debugRunProc(ctx *c, bool read_only);
bool debugEval(ctx *c, bool read_only, debugRunProc *run);
/* RESET ends the debug mode of a session. */
void debugSessionEvent(session *s, sessionEvent e);
/* True if the session of `c` debugs its scripts. */
bool debugIsWanted(const ctx *c);
/* The session of the script that is being run, NULL if there is none. */
debugSession *debugNow(void);

/* True if the script must stop before it executes `line`. */
bool debugStopsAt(debugSession *d, int line);
typedef enum debugOrder { DEBUG_CONTINUE, DEBUG_ABORT, DEBUG_PROTOCOL_ERROR } debugOrder;
/* The script is before `line`: runs commands of the client until one lets the script continue. */
debugOrder debugStop(debugSession *d, int line, const debugView *view);

/* server.breakpoint(): the script stops at its next line. */
void debugBreak(debugSession *d);
/* server.debug(): shows a line. */
void debugShow(debugSession *d, slice text);
/* An error that server.call() found itself. */
void debugShowError(debugSession *d, slice text);
debugLines *debugLinesOf(debugSession *d);
/* The script has run for `elapsed_us` since it was started. True: it must be ended, because it does
 * not reach a line at which it can be stopped. */
bool debugPoll(debugSession *d);

/* ---- for engines with a debugger of their own ---- */

/* The session of the script that such an engine runs; NULL: there is none. debugNow() is that of
 * Lua alone. */
debugSession *debugOfEngine(void);
/* Adds a reply as text. */
void debugAddReply(debugLines *to, slice bytes);
/* Adds the begin of the list of commands: those that all engines have. */
void debugAddHelp(debugLines *to, const char *engine_name);
/* Sends the lines. False: the connection has failed. */
bool debugSend(debugSession *d);
typedef enum debugReadResult {
    DEBUG_READ_COMMAND,
    DEBUG_READ_CLOSED,
    DEBUG_READ_BAD
} debugReadResult;
/* Waits for a command; the words are valid until the next one. */
debugReadResult debugReadCommand(debugSession *d, const slice **argv, int *argc);
/* The command maxlen. */
void debugSetMaxlen(debugLines *to, const slice *argv, int argc);
/* The text for what is no command. */
#define DEBUG_UNKNOWN_COMMAND "<error> Unknown debugger command or wrong number of arguments."

/* ---- commands of scripts ---- */

/* A command of the script is going to be run: if the client makes single steps, it is shown, and
 * the reply that is taken by the returned sink, which passes it on to `sink`. */
replySink *debugCommandBegins(debugSession *d, const slice *argv, int argc, replySink *sink);
void debugCommandEnds(debugSession *d, bool rejected);

#endif
