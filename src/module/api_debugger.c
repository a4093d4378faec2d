/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Functions of modules: debuggers of the scripting engines that modules add. script/debug.h has the
 * session with the client. An engine adds a table of its own commands, and reports when its script
 * is stopped. Lines that such a command writes are sent when the engine asks for it; lines of the
 * commands that all engines have are sent at once. Main thread only. */
#include "base/base.h"
#include "module/call_reply.h"
#include "module/generated/api.h"
#include "module/scripting.h"
#include "script/debug.h"

typedef ValkeyModuleScriptingEngineDebuggerCommand debugCommand;

static moduleEngine *running; /* its script is debugged */

/* ------------------------------------------------------------------ callbacks of the engine */

typedef struct debugPart {
    moduleEngine *engine;
    slice source;
    scriptDebugResult result;
} debugPart;

static void callEnable(ValkeyModuleCtx *x, void *arg) {
    debugPart *p = arg;
    moduleEngine *e = p->engine;
    hotCheck(e->methods.debugger_enable);
    switch (e->methods.debugger_enable(x, e->context, VMSE_EVAL, &e->debug_commands,
                                       &e->debug_command_count)) {
    case VMSE_DEBUG_ENABLED: p->result = SCRIPT_DEBUG_ENABLED; break;
    case VMSE_DEBUG_ENABLE_FAIL: p->result = SCRIPT_DEBUG_FAILED; break;
    default: p->result = SCRIPT_DEBUG_UNSUPPORTED;
    }
}

static void callDisable(ValkeyModuleCtx *x, void *arg) {
    const debugPart *p = arg;
    hotCheck(p->engine);
    p->engine->methods.debugger_disable(x, p->engine->context, VMSE_EVAL);
}

static void callStart(ValkeyModuleCtx *x, void *arg) {
    const debugPart *p = arg;
    hotCheck(running == p->engine);
    ValkeyModuleString *source = moduleStringNew(p->source);
    p->engine->methods.debugger_start(x, p->engine->context, VMSE_EVAL, source);
    moduleStringRelease(source);
}

static void callEnd(ValkeyModuleCtx *x, void *arg) {
    const debugPart *p = arg;
    hotCheck(running == p->engine);
    p->engine->methods.debugger_end(x, p->engine->context, VMSE_EVAL);
}

static scriptDebugResult enable(const scriptEngine *e) {
    debugPart p = {.engine = (moduleEngine *)(uintptr_t)e};
    contextRun(p.engine->owner, 0, callEnable, &p);
    return p.result;
}

static void disable(const scriptEngine *e) {
    debugPart p = {.engine = (moduleEngine *)(uintptr_t)e};
    if (p.engine->methods.debugger_disable) contextRun(p.engine->owner, 0, callDisable, &p);
}

static void begin(const scriptEngine *e, slice source) {
    debugPart p = {.engine = (moduleEngine *)(uintptr_t)e, .source = source};
    hotCheck(!running);
    running = p.engine;
    if (p.engine->methods.debugger_start) contextRun(p.engine->owner, 0, callStart, &p);
}

static void end(const scriptEngine *e) {
    debugPart p = {.engine = (moduleEngine *)(uintptr_t)e};
    hotCheck(running == p.engine);
    if (p.engine->methods.debugger_end) contextRun(p.engine->owner, 0, callEnd, &p);
    running = NULL;
}

static scriptDebugResult refuse(const scriptEngine *e) {
    const moduleEngine *of = (const moduleEngine *)(const void *)e;
    logWarning("Scripting engine '%s' uses ABI version '%llu', which does not support debugger API",
               e->name, (unsigned long long)of->methods.version);
    return SCRIPT_DEBUG_UNSUPPORTED;
}

void debuggerOffer(moduleEngine *e) {
    if (e->methods.version < VERSION_DEBUGGER) e->engine.debug_enable = refuse;
    if (!e->methods.debugger_enable) return;
    e->engine.debug_enable = enable;
    e->engine.debug_disable = disable;
    e->engine.debug_begin = begin;
    e->engine.debug_end = end;
}

/* ------------------------------------------------------------------ lines */

/* Of the session; NULL: there is none, and nobody to show them to. */
static debugLines *lines(void) {
    debugSession *d = debugOfEngine();
    return d ? debugLinesOf(d) : NULL;
}

void apiScriptingEngineDebuggerLog(ValkeyModuleString *msg, int truncate) {
    debugLines *to = lines();
    if (!msg) return;
    if (to) (truncate ? debugAddCut : debugAdd)(to, moduleStringSlice(msg));
    moduleStringRelease(msg);
}

void apiScriptingEngineDebuggerLogRespReplyStr(const char *reply) {
    if (lines()) debugAddReply(lines(), sliceOf(reply));
}

void apiScriptingEngineDebuggerLogRespReply(ValkeyModuleCallReply *reply) {
    if (lines() && reply) debugAddReply(lines(), callReplyBytes(reply));
}

void apiScriptingEngineDebuggerFlushLogs(void) {
    debugSession *d = debugOfEngine();
    if (d) (void)debugSend(d); /* that the client has left shows when its commands are read */
}

/* ------------------------------------------------------------------ help */

enum { HELP_COLUMN = 21, HELP_WIDTH = 48 };

/* Adds `head` and a text in the column after it, in lines of whole words. */
static void addHelpText(debugLines *to, str *head, slice text) {
    hotCheck(text.ptr);
    if (head->len >= HELP_COLUMN) {
        strAppendText(head, "  ");
        debugAdd(to, strSlice(head));
        strClear(head);
    }
    while (text.len) {
        size_t len = text.len;
        if (len > HELP_WIDTH) {
            len = HELP_WIDTH + 1;
            while (len && text.ptr[len - 1] != ' ') len--;
            len = len ? len - 1 : HELP_WIDTH;
        }
        while (head->len < HELP_COLUMN) strAppendByte(head, ' ');
        strAppend(head, text.ptr, len);
        debugAdd(to, strSlice(head));
        strClear(head);
        while (len < text.len && text.ptr[len] == ' ') len++;
        text = sliceMake(text.ptr + len, text.len - len);
    }
}

/* "[n]ame [optional] <required>" and what it does. */
static void addHelpOf(debugLines *to, const debugCommand *c) {
    hotCheck(c->name);
    str head = STR_EMPTY;
    size_t len = strlen(c->name), prefix = sizeMin(c->prefix_len, len);
    if (prefix && prefix < len) {
        strAppendFormat(&head, "[%.*s]%s", (int)prefix, c->name, c->name + prefix);
    } else {
        strAppendText(&head, c->name);
    }
    for (size_t i = 0; i < c->params_len; i++)
        strAppendFormat(&head, c->params[i].optional ? " [%s]" : " <%s>", c->params[i].name);
    addHelpText(to, &head, sliceOf(c->desc ? c->desc : ""));
    if (head.len) debugAdd(to, strSlice(&head));
    strFree(&head);
}

static void addHelp(debugLines *to, const moduleEngine *e) {
    hotCheck(to);
    debugAddHelp(to, e->name);
    for (size_t i = 0; i < e->debug_command_count; i++) {
        if (!e->debug_commands[i].invisible) addHelpOf(to, &e->debug_commands[i]);
    }
}

/* ------------------------------------------------------------------ commands */

static bool wordIs(slice word, const char *name, size_t prefix_len) {
    return sliceIs(word, name) ||
           (prefix_len && word.len == prefix_len && prefix_len < strlen(name) &&
            sliceEqualFold(word, sliceMake(name, prefix_len)));
}

static bool argsFit(const debugCommand *c, int count) {
    hotCheck(count >= 0);
    int least = 0, most = 0;
    for (size_t i = 0; i < c->params_len; i++) {
        bool is_needed = !c->params[i].optional && !c->params[i].variadic;
        least += is_needed;
        most = c->params[i].variadic || most == INT32_MAX ? INT32_MAX : most + 1;
    }
    return count >= least && count <= most;
}

static const debugCommand *findCommand(const moduleEngine *e, const slice *argv, int argc) {
    hotCheck(argc > 0);
    for (size_t i = 0; i < e->debug_command_count; i++) {
        const debugCommand *c = &e->debug_commands[i];
        if (wordIs(argv[0], c->name, c->prefix_len)) return argsFit(c, argc - 1) ? c : NULL;
    }
    return NULL;
}

/* True if the script continues. */
static bool runCommand(const moduleEngine *e, const debugCommand *c, const slice *argv, int argc) {
    enum { STAYS = 1 };
    hotCheck(argc > 0);
    hotCheck(c->handler);
    argArray *args = argArrayNew(argv, argc);
    int result = c->handler(args->argv, (size_t)argc, c->context ? c->context : e->context);
    argArrayEnd(args);
    return result != STAYS;
}

void apiScriptingEngineDebuggerProcessCommands(int *client_disconnected, ValkeyModuleString **err) {
    debugSession *d = debugOfEngine();
    int nowhere, *disconnected = client_disconnected ? client_disconnected : &nowhere;
    *disconnected = 0;
    if (err) *err = NULL;
    for (bool continues = !d || !running; !continues;) {
        const slice *argv;
        int argc;
        debugReadResult read = debugReadCommand(d, &argv, &argc);
        *disconnected = read == DEBUG_READ_CLOSED;
        if (read == DEBUG_READ_BAD && err) *err = moduleStringNew(SLICE("protocol error"));
        if (read != DEBUG_READ_COMMAND) return;
        const debugCommand *c = NULL;
        if (argc == 1 && wordIs(argv[0], "help", 1)) {
            addHelp(lines(), running);
        } else if (argc <= 2 && wordIs(argv[0], "maxlen", 3)) {
            debugSetMaxlen(lines(), argv, argc);
        } else {
            c = findCommand(running, argv, argc);
            if (!c) debugAdd(lines(), SLICE(DEBUG_UNKNOWN_COMMAND));
        }
        if (c) {
            continues = runCommand(running, c, argv, argc);
        } else if (!debugSend(d)) {
            *disconnected = 1;
            return;
        }
    }
}
