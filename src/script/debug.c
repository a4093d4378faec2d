/* SPDX-License-Identifier: BSD-3-Clause
 *
 * The debugger (debug.h). Invariant: `active` is set from the begin of EVAL to the end of the
 * script, or until the client has closed its connection: then the script continues without a
 * debugger, as it does in Valkey. */
#include "script/debug.h"

#include <signal.h>
#include <unistd.h>

#include "base/base.h"
#include "base/number.h"
#include "engine/child.h"
#include "engine/reply.h"
#include "engine/session_slot.h"
#include "script/debug_frame.h"
#include "script/debug_reply.h"
#include "script/engine.h"
#include "script/procs.h"
#include "script/run.h"
#include "script/script_priv.h"

enum { BREAKPOINTS_MAX = 64, CUT_DEFAULT = 256, CUT_MIN = 60, CONTEXT_DEFAULT = 5 };
enum {
    LOOP_MS_DEFAULT = 5000
}; /* until an endless loop is assumed, if busy-reply-threshold is 0 */

struct debugLines {
    str lines; /* in the protocol */
    int count;
    size_t cut; /* maxlen; 0: texts are not cut */
    bool hinted;
};

struct debugSession {
    session *who;
    outbuf *socket_out; /* of the command: what the session sends */
    bool is_child;
    debugLines out;
    debugFrames in;
    slice *source; /* its lines */
    int source_count;
    int breakpoints[BREAKPOINTS_MAX];
    int breakpoint_count;
    int line; /* at which the script is, or was stopped last */
    bool step, at_break, timed_out;
    int64_t resumed_us;
    debugReply reply; /* of the command being run, if it is shown */
    bool shows_reply;
};

/* At most one of them is set: a script of Lua, or one of an engine with a debugger of its own. */
static debugSession *active, *of_engine;

debugSession *debugNow(void) { return active; }
debugSession *debugOfEngine(void) { return of_engine; }
debugLines *debugLinesOf(debugSession *d) { return &d->out; }

/* ------------------------------------------------------------------ SCRIPT DEBUG */

typedef enum debugMode { MODE_FORK, MODE_SYNC } debugMode;

/* What a session wants. */
typedef struct debugRequest {
    debugMode mode;
    str engine; /* its name; it may have been removed since */
} debugRequest;

static const scriptEngine *engineOf(const debugRequest *w) {
    return scriptEngineFind(strSlice(&w->engine));
}

static void freeRequest(session *s, void *state) {
    hotCheck(state);
    (void)s; /* it does not matter whose it was */
    debugRequest *w = state;
    const scriptEngine *e = engineOf(w);
    if (e && e->debug_disable) e->debug_disable(e);
    strFree(&w->engine);
    memFree(w);
}

static const sessionSlot request_slot = {.name = "script debugger", .free = freeRequest};

static debugRequest *requestOf(const session *s) {
    return sessionSlotGet(s, sessionSlotRegister(&request_slot));
}

/* `take` NULL: none. */
static void setRequest(session *s, debugRequest *take) {
    debugRequest *before = requestOf(s);
    if (before) freeRequest(s, before);
    sessionSlotSet(s, sessionSlotRegister(&request_slot), take);
}

bool debugIsWanted(const ctx *c) { return unlikely(c->who->slots != NULL) && requestOf(c->who); }

void debugSessionEvent(session *s, sessionEvent e) {
    if (e == SESSION_WAS_RESET && s->slots) setRequest(s, NULL);
}

/* False: the error was replied. */
static bool enable(ctx *c, const scriptEngine *e) {
    scriptDebugResult result = SCRIPT_DEBUG_ENABLED; /* Lua's is in this folder */
    if (e != &luaEngine) result = e->debug_enable ? e->debug_enable(e) : SCRIPT_DEBUG_UNSUPPORTED;
    if (result == SCRIPT_DEBUG_ENABLED) return true;
    replyErrorFormat(c, "ERR The scripting engine '%s' %s", e->name,
                     result == SCRIPT_DEBUG_FAILED
                         ? "failed to initialize interactive script debugging"
                         : "does not support interactive script debugging");
    return false;
}

/* SCRIPT DEBUG YES | SYNC | NO [engine] */
void scriptDebugCommand(ctx *c) {
    hotCheck(threadIsMain());
    hotCheck(c->argc >= 3);
    if (c->argc > 4) {
        replyErrorSubcommand(c);
        return;
    }
    if (outbufPending(c->out)) {
        replyError(c, SLICE("ERR SCRIPT DEBUG must be called outside a pipeline"));
        return;
    }
    slice name = c->argc == 4 ? c->argv[3] : sliceOf(luaEngine.name);
    const scriptEngine *engine = scriptEngineFind(name);
    bool forks = ctxArgIs(c, 2, "yes");
    if (!engine) {
        replyErrorFormat(c, "ERR No scripting engine found with name '%.*s' to enable debug",
                         (int)name.len, name.ptr);
    } else if (ctxArgIs(c, 2, "no")) {
        setRequest(c->who, NULL);
        replyOk(c);
    } else if (!forks && !ctxArgIs(c, 2, "sync")) {
        replyError(c, SLICE("ERR Use SCRIPT DEBUG YES/SYNC/NO"));
    } else {
        setRequest(c->who, NULL);
        if (!enable(c, engine)) return;
        debugRequest *w = memNew(debugRequest);
        w->mode = forks ? MODE_FORK : MODE_SYNC;
        w->engine = strNew(sliceOf(engine->name));
        setRequest(c->who, w);
        replyOk(c);
    }
}

/* ------------------------------------------------------------------ lines for the client */

void debugAdd(debugLines *to, slice line) {
    hotCheck(threadIsMain());
    strAppendByte(&to->lines, '+');
    size_t from = to->lines.len;
    strAppendSlice(&to->lines, line);
    for (size_t i = from; i < to->lines.len; i++) {
        if (to->lines.ptr[i] == '\r' || to->lines.ptr[i] == '\n') to->lines.ptr[i] = ' ';
    }
    strAppendText(&to->lines, "\r\n");
    to->count++;
}

static void add(debugSession *d, const char *text) { debugAdd(&d->out, sliceOf(text)); }

static void __attribute__((format(printf, 2, 3)))
addFormat(debugSession *d, const char *format, ...) {
    hotCheck(threadIsMain());
    str line = STR_EMPTY;
    va_list args;
    va_start(args, format);
    strAppendFormatV(&line, format, args);
    va_end(args);
    debugAdd(&d->out, strSlice(&line));
    strFree(&line);
}

size_t debugTextMax(const debugLines *to) { return to->cut ? to->cut + 1 : SIZE_MAX; }

void debugAddCut(debugLines *to, slice line) {
    hotCheck(threadIsMain());
    if (!to->cut || line.len <= to->cut) {
        debugAdd(to, line);
        return;
    }
    str cut = strNew(sliceMake(line.ptr, to->cut));
    strAppendText(&cut, " ...");
    debugAdd(to, strSlice(&cut));
    strFree(&cut);
    if (to->hinted) return;
    to->hinted = true;
    debugAdd(to, SLICE("<hint> The above reply was trimmed. Use 'maxlen 0' to disable trimming."));
}

static void addTagged(debugSession *d, const char *tag, slice text, bool may_cut) {
    str line = STR_EMPTY;
    strAppendText(&line, tag);
    strAppendSlice(&line, text);
    if (may_cut) {
        debugAddCut(&d->out, strSlice(&line));
    } else {
        debugAdd(&d->out, strSlice(&line));
    }
    strFree(&line);
}

bool debugSend(debugSession *d) {
    str head = STR_EMPTY;
    strAppendFormat(&head, "*%d\r\n", d->out.count);
    outbufAppend(d->socket_out, head.ptr, head.len);
    outbufAppend(d->socket_out, strText(&d->out.lines), d->out.lines.len);
    strFree(&head);
    strClear(&d->out.lines);
    d->out.count = 0;
    return d->who->carrier->write_all(d->who);
}

/* ------------------------------------------------------------------ source and breakpoints */

static int findBreakpoint(const debugSession *d, int line) {
    hotCheck(d->breakpoint_count >= 0);
    for (int i = 0; i < d->breakpoint_count; i++) {
        if (d->breakpoints[i] == line) return i;
    }
    return -1;
}

static void addLine(debugSession *d, int line) {
    hotCheck(d->source_count >= 0);
    if (line < 1 || line > d->source_count) return;
    const char *mark = "   ";
    bool is_current = line == d->line, has_break = findBreakpoint(d, line) >= 0;
    if (is_current) mark = has_break ? "->#" : "-> ";
    if (!is_current && has_break) mark = "  #";
    slice text = d->source[line - 1];
    str out = STR_EMPTY;
    strAppendFormat(&out, "%s%-3d ", mark, line);
    strAppendSlice(&out, text);
    debugAdd(&d->out, strSlice(&out));
    strFree(&out);
}

void debugAddLine(debugLines *to, int line) { addLine(CONTAINER_OF(to, debugSession, out), line); }

static void addLines(debugSession *d, int around, int64_t context) {
    for (int i = 1; i <= d->source_count; i++) {
        if (i >= around - context && i <= around + context) addLine(d, i);
    }
}

static void splitSource(debugSession *d, slice body) {
    const char *at = body.ptr, *end = body.ptr + body.len;
    while (at < end) {
        const char *to = memchr(at, '\n', (size_t)(end - at));
        if (!to) to = end;
        d->source = memRealloc(d->source, (size_t)(d->source_count + 1) * sizeof(slice));
        d->source[d->source_count++] = sliceMake(at, (size_t)(to - at));
        at = to + 1;
    }
}

static void listBreakpoints(debugSession *d) {
    if (!d->breakpoint_count) {
        add(d, "No breakpoints set. Use 'b <line>' to add one.");
        return;
    }
    addFormat(d, "%d breakpoints set:", d->breakpoint_count);
    for (int i = 0; i < d->breakpoint_count; i++) addLine(d, d->breakpoints[i]);
}

static void setBreakpoint(debugSession *d, slice arg) {
    int64_t line;
    if (!numberParseInt(arg, &line)) {
        addFormat(d, "Invalid argument:'%.*s'", (int)arg.len, arg.ptr);
    } else if (line == 0) {
        d->breakpoint_count = 0;
        add(d, "All breakpoints removed.");
    } else if (line > 0) {
        if (d->breakpoint_count == BREAKPOINTS_MAX) {
            add(d, "Too many breakpoints set.");
        } else if (line > d->source_count || findBreakpoint(d, (int)line) >= 0) {
            add(d, "Wrong line number.");
        } else {
            d->breakpoints[d->breakpoint_count++] = (int)line;
            addLines(d, (int)line, 1);
        }
    } else {
        int at = -line > d->source_count ? -1 : findBreakpoint(d, (int)-line);
        if (at < 0) {
            add(d, "No breakpoint in the specified line.");
        } else {
            d->breakpoint_count--;
            for (int i = at; i < d->breakpoint_count; i++)
                d->breakpoints[i] = d->breakpoints[i + 1];
            add(d, "Breakpoint removed.");
        }
    }
}

/* ------------------------------------------------------------------ commands of the client */

void debugAddHelp(debugLines *to, const char *engine_name) {
    hotCheck(engine_name);
    static const char *const lines[] = {
        "[h]elp               Show this help.",
        "[max]len [len]       Trim logged replies to len. Specifying zero as",
        "                     <len> means unlimited. If no <len> is specified,",
        "                     the current value is shown. Usage: maxlen [len]"};
    str title = STR_EMPTY;
    strAppendFormat(&title, "%s debugger help:", engine_name);
    debugAdd(to, strSlice(&title));
    strFree(&title);
    for (size_t i = 0; i < COUNT_OF(lines); i++) debugAdd(to, sliceOf(lines[i]));
}

static void addHelp(debugSession *d) {
    static const char *const lines[] = {
        "[s]tep               Run current line and stop again.",
        "[n]ext               Alias for step.",
        "[c]ontinue           Run till next breakpoint.",
        "[l]ist [line] [ctx]  List source code around a specific line. If no",
        "                     line is specified the list is printed around the",
        "                     current line. [ctx] specifies how many lines to",
        "                     show before/after [line].",
        "[w]hole              List all source code. Alias for 'list 1 1000000'.",
        "[p]rint [var]        Show the value of the specified variable [var].",
        "                     Can also show global vars KEYS and ARGV. If no",
        "                     [var] is specidied, shows the value of all local",
        "                     variables.",
        "[b]reak [line|-line] Add/Remove a breakpoint to the specified line.",
        "                     If no [line] is specified, it shows all",
        "                     breakpoints. When line = 0, it removes all",
        "                     breakpoints.",
        "[t]race              Show a backtrace.",
        "[e]val <code>        Execute some Lua code (in a different callframe).",
        "[v]alkey <cmd>       Execute a command.",
        "[a]bort              Stop the execution of the script. In sync mode",
        "                     dataset changes will be retained."};
    debugAddHelp(&d->out, luaEngine.name);
    for (size_t i = 0; i < COUNT_OF(lines); i++) add(d, lines[i]);
}

void debugSetMaxlen(debugLines *to, const slice *argv, int argc) {
    hotCheck(argc > 0);
    debugSession *d = CONTAINER_OF(to, debugSession, out);
    if (argc == 1) {
        addFormat(d, "Current maxlen is %zu", to->cut);
        return;
    }
    int64_t len;
    if (!numberParseInt(argv[1], &len) || len < 0) {
        add(d, "<error> Invalid maxlen value.");
        return;
    }
    to->hinted = true; /* the client knows the command */
    to->cut = len > 0 && len < CUT_MIN ? CUT_MIN : (size_t)len;
    if (to->cut) {
        addFormat(d, "<value> replies are truncated at %zu bytes.", to->cut);
    } else {
        add(d, "<value> replies are not truncated.");
    }
}

/* A number at the begin of a text, 0 without one. */
static int64_t leadingNumber(slice text) {
    size_t len = 0;
    while (len < text.len &&
           ((text.ptr[len] >= '0' && text.ptr[len] <= '9') || (len == 0 && text.ptr[0] == '-')))
        len++;
    int64_t number;
    return numberParseInt(sliceMake(text.ptr, len), &number) ? number : 0;
}

static void listSource(debugSession *d, const slice *argv, int argc) {
    hotCheck(argc > 0);
    int64_t around = argc > 1 ? leadingNumber(argv[1]) : 0, context = CONTEXT_DEFAULT;
    if (argc > 2) context = leadingNumber(argv[2]);
    if (around <= 0) around = d->line;
    if (around > d->source_count + context || context < 0) return;
    addLines(d, (int)around, context);
}

/* The words from the second on, separated by blanks. */
static void joinWords(const slice *argv, int argc, str *out) {
    hotCheck(argc > 0);
    for (int i = 1; i < argc; i++) {
        if (i > 1) strAppendByte(out, ' ');
        strAppendSlice(out, argv[i]);
    }
}

typedef enum verb {
    VERB_STEP,
    VERB_CONTINUE,
    VERB_TRACE,
    VERB_MAXLEN,
    VERB_BREAK,
    VERB_EVAL,
    VERB_ABORT,
    VERB_COMMAND,
    VERB_PRINT,
    VERB_LIST,
    VERB_WHOLE,
    VERB_HELP,
    VERB_NONE,
} verb;

static verb verbOf(const slice *argv, int argc) {
    hotCheck(argc > 0);
    static const struct {
        const char *brief, *full;
        verb is;
        int words_min, words_max; /* with the verb */
    } all[] = {
        {"s", "step", VERB_STEP, 1, 1},
        {"n", "next", VERB_STEP, 1, 1},
        {"c", "continue", VERB_CONTINUE, 1, 1},
        {"t", "trace", VERB_TRACE, 1, 1},
        {"max", "maxlen", VERB_MAXLEN, 1, 2},
        {"b", "break", VERB_BREAK, 1, 2},
        {"e", "eval", VERB_EVAL, 2, DEBUG_WORDS_MAX},
        {"a", "abort", VERB_ABORT, 1, 1},
        {"v", "valkey", VERB_COMMAND, 2, DEBUG_WORDS_MAX},
        {"r", "redis", VERB_COMMAND, 2, DEBUG_WORDS_MAX},
        {"server", "server", VERB_COMMAND, 2, DEBUG_WORDS_MAX},
        {"p", "print", VERB_PRINT, 1, 2},
        {"l", "list", VERB_LIST, 1, 3},
        {"w", "whole", VERB_WHOLE, 1, 1},
        {"h", "help", VERB_HELP, 1, 1},
    };
    for (size_t i = 0; i < COUNT_OF(all); i++) {
        if (!sliceIs(argv[0], all[i].brief) && !sliceIs(argv[0], all[i].full)) continue;
        return argc >= all[i].words_min && argc <= all[i].words_max ? all[i].is : VERB_NONE;
    }
    return VERB_NONE;
}

static void evaluate(debugSession *d, const slice *argv, int argc, const debugView *view) {
    hotCheck(argc > 0);
    str code = STR_EMPTY;
    joinWords(argv, argc, &code);
    /* A forked process in which the code does not end is ended. Nothing can end it in the
     * server. */
    int64_t limit_ms =
        scriptConf.busy_reply_threshold ? scriptConf.busy_reply_threshold : LOOP_MS_DEFAULT;
    if (d->is_child) (void)alarm((unsigned)(limit_ms / 1000 + 1));
    view->evaluate(view->state, strSlice(&code), &d->out);
    if (d->is_child) (void)alarm(0);
    strFree(&code);
}

/* Runs one command that does not let the script continue. */
static void runVerb(debugSession *d, verb what, const slice *argv, int argc,
                    const debugView *view) {
    hotCheck(argc > 0);
    switch (what) {
    case VERB_TRACE: view->trace(view->state, &d->out); break;
    case VERB_MAXLEN: debugSetMaxlen(&d->out, argv, argc); break;
    case VERB_EVAL: evaluate(d, argv, argc, view); break;
    case VERB_LIST: listSource(d, argv, argc); break;
    case VERB_WHOLE: addLines(d, 1, INT32_MAX); break;
    case VERB_HELP: addHelp(d); break;
    case VERB_BREAK:
        if (argc == 1) {
            listBreakpoints(d);
        } else {
            setBreakpoint(d, argv[1]);
        }
        break;
    case VERB_PRINT:
        if (argc == 1) {
            view->print_all(view->state, &d->out);
        } else {
            view->print(view->state, argv[1], &d->out);
        }
        break;
    case VERB_COMMAND:
        d->step = true; /* the command and its reply are shown */
        view->command(view->state, argv + 1, argc - 1);
        d->step = false;
        break;
    default: add(d, DEBUG_UNKNOWN_COMMAND);
    }
}

debugReadResult debugReadCommand(debugSession *d, const slice **argv, int *argc) {
    for (;;) {
        debugFrameState state = debugFrameNext(&d->in);
        if (state == DEBUG_FRAME_BAD) return DEBUG_READ_BAD;
        if (state == DEBUG_FRAME_READY) {
            *argv = d->in.words;
            *argc = d->in.count;
            return DEBUG_READ_COMMAND;
        }
        char *dst = strReserve(&d->in.bytes, DEBUG_READ_BYTES);
        size_t got = d->who->carrier->read_wait(d->who, dst, DEBUG_READ_BYTES);
        if (!got) return DEBUG_READ_CLOSED;
        strGrow(&d->in.bytes, got);
    }
}

/* The client has left. */
static debugOrder leave(debugSession *d) {
    if (d->is_child) _exit(0); /* nobody will see what the script does */
    d->step = d->at_break = false;
    d->breakpoint_count = 0;
    active = NULL;
    return DEBUG_CONTINUE;
}

static debugOrder converse(debugSession *d, const debugView *view) {
    for (;;) {
        const slice *argv;
        int argc;
        if (!debugSend(d)) return leave(d);
        debugReadResult read = debugReadCommand(d, &argv, &argc);
        if (read != DEBUG_READ_COMMAND)
            return read == DEBUG_READ_BAD ? DEBUG_PROTOCOL_ERROR : leave(d);
        verb what = verbOf(argv, argc);
        if (what == VERB_ABORT) return DEBUG_ABORT;
        d->step = what == VERB_STEP;
        if (what == VERB_STEP || what == VERB_CONTINUE) return DEBUG_CONTINUE;
        runVerb(d, what, argv, argc, view);
    }
}

/* ------------------------------------------------------------------ the running script */

bool debugStopsAt(debugSession *d, int line) {
    hotCheck(threadIsMain());
    hotCheck(line >= 0);
    d->line = line;
    return d->step || d->at_break || d->timed_out || findBreakpoint(d, line) >= 0;
}

debugOrder debugStop(debugSession *d, int line, const debugView *view) {
    hotCheck(threadIsMain());
    hotCheck(line >= 0);
    const char *why = "step over";
    if (d->timed_out) why = "timeout reached, infinite loop?";
    if (findBreakpoint(d, line) >= 0) why = "break point";
    if (d->at_break) why = "server.breakpoint() called";
    d->step = d->at_break = d->timed_out = false;
    addFormat(d, "* Stopped at %d, stop reason = %s", line, why);
    addLine(d, line);
    debugOrder order = converse(d, view);
    d->resumed_us = clockMonoUs();
    return order;
}

void debugBreak(debugSession *d) { d->at_break = true; }

void debugShow(debugSession *d, slice text) {
    hotCheck(threadIsMain());
    str line = STR_EMPTY;
    strAppendFormat(&line, "<debug> line %d: ", d->line);
    strAppendSlice(&line, text);
    debugAdd(&d->out, strSlice(&line));
    strFree(&line);
}

/* Without the code ERR, as Valkey shows errors that it finds before the command runs. */
void debugShowError(debugSession *d, slice text) {
    hotCheck(threadIsMain());
    if (!d->step) return;
    if (text.len > 4 && memcmp(text.ptr, "ERR ", 4) == 0)
        text = sliceMake(text.ptr + 4, text.len - 4);
    addTagged(d, "<error> ", text, false);
}

bool debugPoll(debugSession *d) {
    hotCheck(threadIsMain());
    int64_t limit_ms =
        scriptConf.busy_reply_threshold ? scriptConf.busy_reply_threshold : LOOP_MS_DEFAULT;
    int64_t elapsed_ms = (clockMonoUs() - d->resumed_us) / 1000;
    if (elapsed_ms >= limit_ms) d->timed_out = true;
    return elapsed_ms >= 2 * limit_ms;
}

replySink *debugCommandBegins(debugSession *d, const slice *argv, int argc, replySink *sink) {
    hotCheck(threadIsMain());
    hotCheck(argc > 0);
    if (!d->step) return sink;
    str line = STR_EMPTY;
    strAppendText(&line, "<command>");
    for (int i = 0; i < argc; i++) {
        strAppendByte(&line, ' ');
        strAppendSlice(&line, argv[i]);
    }
    debugAdd(&d->out, strSlice(&line));
    strFree(&line);
    debugReplyInit(&d->reply, sink, scriptRunNow()->proto);
    d->shows_reply = true;
    return &d->reply.sink;
}

void debugCommandEnds(debugSession *d, bool rejected) {
    hotCheck(threadIsMain());
    if (!d->shows_reply) return;
    d->shows_reply = false;
    addTagged(d, "<reply> ", strSlice(&d->reply.text), true);
    slice error = strSlice(&d->reply.error);
    if (error.len && rejected) {
        debugShowError(d, error);
    } else if (error.len) {
        addTagged(d, "<error> -", error, false);
    }
    debugReplyClear(&d->reply);
}

static void dropEvent(void *state, const replyEvent *e) { (void)state, (void)e; }

void debugAddReply(debugLines *to, slice bytes) {
    hotCheck(threadIsMain());
    replySink nowhere = {.take = dropEvent};
    debugReply reply;
    debugReplyInit(&reply, &nowhere, 2);
    replyReader r;
    replyReaderInit(&r);
    size_t at = 0;
    replyEvent e;
    while (at < bytes.len) {
        reply.proto = bytes.ptr[at] == '_' ? 3 : 2; /* the two protocols' nulls are shown so */
        if (replyRead(&r, bytes.ptr, bytes.len, &at, &e) != REPLY_EVENT) break;
        reply.sink.take(reply.sink.state, &e);
    }
    addTagged(CONTAINER_OF(to, debugSession, out), "<reply> ", strSlice(&reply.text), true);
    debugReplyClear(&reply);
}

/* ------------------------------------------------------------------ sessions */

typedef struct evalCall {
    ctx *c;
    const scriptEngine *engine; /* that is debugged; the script may be one of another */
    bool read_only, is_child;
    debugRunProc *run;
} evalCall;

/* Runs EVAL with a debugger: lines that are left, the mark of the end, then the reply. */
static void runSession(const evalCall *call) {
    ctx *c = call->c;
    debugSession d = {
        .who = c->who, .socket_out = c->out, .is_child = call->is_child, .step = true};
    d.out.cut = CUT_DEFAULT;
    d.resumed_us = clockMonoUs();
    splitSource(&d, c->argv[1]);
    outbuf reply, *usual = c->out;
    outbufInit(&reply);
    c->out = &reply;
    const scriptEngine *e = call->engine;
    *(e == &luaEngine ? &active : &of_engine) = &d;
    if (e->debug_begin) e->debug_begin(e, c->argv[1]);
    call->run(c, call->read_only);
    if (e->debug_end) e->debug_end(e);
    active = of_engine = NULL;
    c->out = usual;
    add(&d, "<endsession>");
    (void)debugSend(&d); /* if it fails, the reply is not sent either */
    outbufMoveAll(usual, &reply);
    outbufClear(&reply);
    debugFramesClear(&d.in);
    strFree(&d.out.lines);
    memFree(d.source);
}

static int runInChild(void *arg) {
    evalCall *call = arg;
    logSetRole('C');
    logNotice("Valkey forked for debugging eval");
    runSession(call);
    (void)call->c->who->carrier->write_all(call->c->who); /* the client may have closed */
    logNotice("Lua debugging session child exiting");
    return 0;
}

bool debugEval(ctx *c, bool read_only, debugRunProc *run) {
    hotCheck(threadIsMain());
    if (!debugIsWanted(c)) return false;
    if (c->outer || c->origin != ORIGIN_CLIENT) {
        replyError(c, SLICE("ERR a script cannot be debugged inside of MULTI"));
        return true;
    }
    const debugRequest *asked = requestOf(c->who);
    evalCall call = {.c = c, .engine = engineOf(asked), .read_only = read_only, .run = run};
    if (!call.engine) return false; /* it was removed */
    if (asked->mode == MODE_SYNC) {
        logNotice("Valkey synchronous debugging eval session started");
        runSession(&call);
        logNotice("Valkey synchronous debugging eval session ended");
        sessionCloseSoon(c->who);
        return true;
    }
    reason why;
    call.is_child = true;
    if (childStartBeside(runInChild, &call, &why) != OK) {
        replyErrorFormat(c, "ERR no debugging session: %s", why.text);
        return true;
    }
    c->who->carrier->hand_over(c->who);
    return true;
}
