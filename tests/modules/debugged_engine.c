/* SPDX-License-Identifier: BSD-3-Clause
 *
 * A module for tests: the scripting engine STEPS, whose scripts can be debugged. The words of a
 * script are run one after the other, and its reply is the last of them:
 *
 *     call    runs PING      get     runs GET of the first key      raw    shows some raw replies
 *     long    shows a long line, cut and as a whole                 others do nothing
 *
 * The debugger stops before each word, until `continue`. An argument of the load makes the engine
 * refuse: `none` has no debugger, `fails` cannot enable it. STEPS.CALLS replies how often the
 * debugger was enabled, disabled, started and ended in this process. A number is the version of the
 * engine's table. STEPS.RESETS replies which resets there were since the last call: the use (e, f;
 * - without one), and 1 if asynchronous. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "valkeymodule.h"

static ValkeyModuleScriptingEngineDebuggerEnableRet enable_result = VMSE_DEBUG_ENABLED;
static int enabled, disabled, started, ended;
static int debugging, stepping;
static const char *current; /* the word that runs next */

static ValkeyModuleString *text(const char *bytes) {
    return ValkeyModule_CreateString(NULL, bytes, strlen(bytes));
}

static void say(const char *line) { ValkeyModule_ScriptingEngineDebuggerLog(text(line), 0); }

/* ------------------------------------------------------------------ compiling and running */

typedef struct program {
    char *words[64];
    int count;
    char *code;
} program;

static ValkeyModuleScriptingEngineCompiledFunction **compile(
    ValkeyModuleCtx *ctx, ValkeyModuleScriptingEngineCtx *engine,
    ValkeyModuleScriptingEngineSubsystemType type, const char *code, size_t code_len,
    size_t timeout, size_t *count, ValkeyModuleString **err) {
    (void)ctx, (void)engine, (void)type, (void)timeout, (void)err;
    program *p = ValkeyModule_Calloc(1, sizeof(*p));
    p->code = ValkeyModule_Calloc(1, code_len + 1);
    memcpy(p->code, code, code_len);
    char *rest = NULL;
    for (char *word = strtok_r(p->code, " \n", &rest); word && p->count < 64;
         word = strtok_r(NULL, " \n", &rest)) {
        if (strncmp(word, "#!", 2)) p->words[p->count++] = word;
    }
    ValkeyModuleScriptingEngineCompiledFunction *f = ValkeyModule_Calloc(1, sizeof(*f));
    f->version = VALKEYMODULE_SCRIPTING_ENGINE_ABI_COMPILED_FUNCTION_VERSION;
    f->function = p;
    ValkeyModuleScriptingEngineCompiledFunction **all = ValkeyModule_Calloc(1, sizeof(*all));
    all[0] = f;
    *count = 1;
    return all;
}

static void freeFunction(ValkeyModuleCtx *ctx, ValkeyModuleScriptingEngineCtx *engine,
                         ValkeyModuleScriptingEngineSubsystemType type,
                         ValkeyModuleScriptingEngineCompiledFunction *f) {
    (void)ctx, (void)engine, (void)type;
    program *p = f->function;
    ValkeyModule_Free(p->code);
    ValkeyModule_Free(p);
    ValkeyModule_Free(f);
}

/* False: the script is to be ended, and the reply was made. */
static int stop(ValkeyModuleCtx *ctx) {
    int disconnected = 0;
    ValkeyModuleString *err = NULL;
    say(current);
    ValkeyModule_ScriptingEngineDebuggerFlushLogs();
    ValkeyModule_ScriptingEngineDebuggerProcessCommands(&disconnected, &err);
    if (err) {
        ValkeyModule_ReplyWithErrorFormat(ctx, "ERR %s", ValkeyModule_StringPtrLen(err, NULL));
        ValkeyModule_FreeString(NULL, err);
    }
    if (disconnected) debugging = 0;
    return !err;
}

static void showCall(ValkeyModuleCtx *ctx, const char *name, ValkeyModuleString *key) {
    ValkeyModuleCallReply *reply =
        key ? ValkeyModule_Call(ctx, name, "SEs", key) : ValkeyModule_Call(ctx, name, "SE");
    if (debugging) ValkeyModule_ScriptingEngineDebuggerLogRespReply(reply);
    if (reply) ValkeyModule_FreeCallReply(reply);
}

static void showRaw(void) {
    static const char *const replies[] = {"+OK\r\n",
                                          ":42\r\n",
                                          "$5\r\nhello\r\n",
                                          "$-1\r\n",
                                          "-ERR wrong\r\n",
                                          "*2\r\n:1\r\n*1\r\n$1\r\na\r\n",
                                          "*0\r\n",
                                          "%1\r\n+k\r\n:1\r\n",
                                          "~2\r\n:1\r\n:2\r\n",
                                          "_\r\n",
                                          "#t\r\n",
                                          ",1.5\r\n"};
    for (size_t i = 0; i < sizeof(replies) / sizeof(replies[0]); i++)
        ValkeyModule_ScriptingEngineDebuggerLogRespReplyStr(replies[i]);
}

static void showLong(void) {
    char line[401];
    memset(line, 'x', 400);
    line[400] = 0;
    ValkeyModule_ScriptingEngineDebuggerLog(text(line), 1);
    ValkeyModule_ScriptingEngineDebuggerLog(text(line), 0);
}

static void call(ValkeyModuleCtx *ctx, ValkeyModuleScriptingEngineCtx *engine,
                 ValkeyModuleScriptingEngineServerRuntimeCtx *server,
                 ValkeyModuleScriptingEngineCompiledFunction *f,
                 ValkeyModuleScriptingEngineSubsystemType type, ValkeyModuleString **keys,
                 size_t nkeys, ValkeyModuleString **args, size_t nargs) {
    (void)engine, (void)server, (void)type, (void)args, (void)nargs;
    const program *p = f->function;
    for (int i = 0; i < p->count; i++) {
        current = p->words[i];
        if (debugging && stepping && !stop(ctx)) return;
        if (!strcmp(current, "call")) showCall(ctx, "PING", NULL);
        if (!strcmp(current, "get")) showCall(ctx, "GET", nkeys ? keys[0] : NULL);
        if (debugging && !strcmp(current, "raw")) showRaw();
        if (debugging && !strcmp(current, "long")) showLong();
    }
    ValkeyModule_ReplyWithCString(ctx, p->count ? p->words[p->count - 1] : "");
}

static size_t overhead(ValkeyModuleCtx *ctx, ValkeyModuleScriptingEngineCompiledFunction *f) {
    (void)ctx, (void)f;
    return 0;
}

static char resets[256];

static void noteReset(char use, int async) {
    size_t len = strlen(resets);
    snprintf(resets + len, sizeof(resets) - len, "%s%c%d", len ? " " : "", use, async);
}

static int resetsCommand(ValkeyModuleCtx *ctx, ValkeyModuleString **argv, int argc) {
    (void)argv, (void)argc;
    ValkeyModule_ReplyWithCString(ctx, resets);
    resets[0] = 0;
    return VALKEYMODULE_OK;
}

static ValkeyModuleScriptingEngineCallableLazyEnvReset *reset(
    ValkeyModuleCtx *ctx, ValkeyModuleScriptingEngineCtx *engine,
    ValkeyModuleScriptingEngineSubsystemType type, int async) {
    (void)ctx, (void)engine;
    noteReset(type == VMSE_EVAL ? 'e' : 'f', async);
    return NULL;
}

/* That of versions 1 and 2. */
static ValkeyModuleScriptingEngineCallableLazyEnvReset *resetBefore(
    ValkeyModuleCtx *ctx, ValkeyModuleScriptingEngineCtx *engine, int async) {
    (void)ctx, (void)engine;
    noteReset('-', async);
    return NULL;
}

static ValkeyModuleScriptingEngineMemoryInfo memory(ValkeyModuleCtx *ctx,
                                                    ValkeyModuleScriptingEngineCtx *engine,
                                                    ValkeyModuleScriptingEngineSubsystemType type) {
    (void)ctx, (void)engine, (void)type;
    return (ValkeyModuleScriptingEngineMemoryInfo){
        .version = VALKEYMODULE_SCRIPTING_ENGINE_ABI_MEMORY_INFO_VERSION,
        .used_memory = 77,
        .engine_memory_overhead = 33};
}

/* ------------------------------------------------------------------ the debugger */

static int onStep(ValkeyModuleString **argv, size_t argc, void *context) {
    (void)argv, (void)argc, (void)context;
    stepping = 1;
    return 0;
}

static int onContinue(ValkeyModuleString **argv, size_t argc, void *context) {
    (void)argv, (void)argc, (void)context;
    stepping = 0;
    return 0;
}

static int onPrint(ValkeyModuleString **argv, size_t argc, void *context) {
    for (size_t i = 0; i < argc; i++)
        ValkeyModule_ScriptingEngineDebuggerLog(
            ValkeyModule_CreateStringPrintf(NULL, "%d of %d: %s", (int)i, (int)argc,
                                            ValkeyModule_StringPtrLen(argv[i], NULL)),
            0);
    say(context == &enabled ? "context of the command" : "context of the engine");
    return 1;
}

static int onQuiet(ValkeyModuleString **argv, size_t argc, void *context) {
    (void)argv, (void)argc, (void)context;
    return 1;
}

static const ValkeyModuleScriptingEngineDebuggerCommandParam print_params[] = {{"what", 1, 0}};
static const ValkeyModuleScriptingEngineDebuggerCommandParam show_params[] = {{"first", 0, 0},
                                                                              {"more", 0, 1}};
#define COMMAND(the_name, prefix, the_params, count, text, hide, proc, the_context) \
    { \
        .version = VALKEYMODULE_SCRIPTING_ENGINE_ABI_DEBUGGER_COMMAND_VERSION, .name = the_name, \
        .prefix_len = prefix, .params = the_params, .params_len = count, .desc = text, \
        .invisible = hide, .handler = proc, .context = the_context \
    }
static ValkeyModuleScriptingEngineDebuggerCommand commands[] = {
    COMMAND("step", 1, NULL, 0, "Run the next word.", 0, onStep, NULL),
    COMMAND("continue", 1, NULL, 0, "Run the rest.", 0, onContinue, NULL),
    COMMAND("print", 1, print_params, 1, "Show the words\nof the command.", 0, onPrint, &enabled),
    COMMAND("show", 3, show_params, 2, "Show more words.", 0, onPrint, NULL),
    COMMAND("quiet", 5, NULL, 0, "Say nothing.", 1, onQuiet, NULL)};

static ValkeyModuleScriptingEngineDebuggerEnableRet enable(
    ValkeyModuleCtx *ctx, ValkeyModuleScriptingEngineCtx *engine,
    ValkeyModuleScriptingEngineSubsystemType type,
    const ValkeyModuleScriptingEngineDebuggerCommand **out, size_t *count) {
    (void)ctx, (void)engine, (void)type;
    enabled++;
    *out = commands;
    *count = sizeof(commands) / sizeof(commands[0]);
    return enable_result;
}

static void disable(ValkeyModuleCtx *ctx, ValkeyModuleScriptingEngineCtx *engine,
                    ValkeyModuleScriptingEngineSubsystemType type) {
    (void)ctx, (void)engine, (void)type;
    disabled++;
}

static void start(ValkeyModuleCtx *ctx, ValkeyModuleScriptingEngineCtx *engine,
                  ValkeyModuleScriptingEngineSubsystemType type, ValkeyModuleString *source) {
    (void)engine, (void)type;
    started++;
    debugging = stepping = 1;
    ValkeyModule_Log(ctx, "notice", "debugging of: %s", ValkeyModule_StringPtrLen(source, NULL));
}

static void end(ValkeyModuleCtx *ctx, ValkeyModuleScriptingEngineCtx *engine,
                ValkeyModuleScriptingEngineSubsystemType type) {
    (void)ctx, (void)engine, (void)type;
    ended++;
    debugging = 0;
}

/* ------------------------------------------------------------------ the module */

static int calls(ValkeyModuleCtx *ctx, ValkeyModuleString **argv, int argc) {
    (void)argv, (void)argc;
    ValkeyModule_ReplyWithArray(ctx, 4);
    ValkeyModule_ReplyWithLongLong(ctx, enabled);
    ValkeyModule_ReplyWithLongLong(ctx, disabled);
    ValkeyModule_ReplyWithLongLong(ctx, started);
    return ValkeyModule_ReplyWithLongLong(ctx, ended);
}

int ValkeyModule_OnLoad(ValkeyModuleCtx *ctx, ValkeyModuleString **argv, int argc) {
    if (ValkeyModule_Init(ctx, "steps", 1, VALKEYMODULE_APIVER_1) == VALKEYMODULE_ERR)
        return VALKEYMODULE_ERR;
    ValkeyModuleScriptingEngineMethods methods = {.version =
                                                      VALKEYMODULE_SCRIPTING_ENGINE_ABI_VERSION,
                                                  .compile_code = compile,
                                                  .free_function = freeFunction,
                                                  .call_function = call,
                                                  .get_function_memory_overhead = overhead,
                                                  .reset_env = reset,
                                                  .get_memory_info = memory,
                                                  .debugger_enable = enable,
                                                  .debugger_disable = disable,
                                                  .debugger_start = start,
                                                  .debugger_end = end};
    const char *how = argc ? ValkeyModule_StringPtrLen(argv[0], NULL) : "";
    if (!strcmp(how, "none")) enable_result = VMSE_DEBUG_NOT_SUPPORTED;
    if (!strcmp(how, "fails")) enable_result = VMSE_DEBUG_ENABLE_FAIL;
    if (!strcmp(how, "null"))
        methods.debugger_enable = NULL, methods.debugger_disable = NULL,
        methods.debugger_start = NULL, methods.debugger_end = NULL;
    if (how[0] >= '0' && how[0] <= '9') methods.version = (uint64_t)atoi(how);
    if (methods.version < 3)
        methods.reset_env = (ValkeyModuleScriptingEngineResetEnvFunc)(void *)resetBefore;
    if (ValkeyModule_CreateCommand(ctx, "steps.calls", calls, "", 0, 0, 0) == VALKEYMODULE_ERR ||
        ValkeyModule_CreateCommand(ctx, "steps.resets", resetsCommand, "", 0, 0, 0))
        return VALKEYMODULE_ERR;
    return ValkeyModule_RegisterScriptingEngine(ctx, "STEPS", NULL, &methods);
}

int ValkeyModule_OnUnload(ValkeyModuleCtx *ctx) {
    return ValkeyModule_UnregisterScriptingEngine(ctx, "STEPS");
}
