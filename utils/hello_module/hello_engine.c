/* SPDX-License-Identifier: BSD-3-Clause
 *
 * A scripting engine, `steps`: each line of a script is a command, and the reply of the last one is
 * that of the script. A word KEY1 or ARG1 is replaced by the first key or argument. `forever` runs
 * until SCRIPT KILL or FUNCTION KILL.
 *
 *     EVAL "#!steps\nSET KEY1 ARG1\nGET KEY1" 1 key value
 *
 * In a library the line `function NAME` begins a function:
 *
 *     FUNCTION LOAD "#!steps name=lib\nfunction put\nSET KEY1 ARG1"
 *     FCALL put 1 key value */
#include <stdlib.h>
#include <string.h>

#include "valkeymodule.h"

enum { WORDS_MAX = 16 };

/* What the server calls a compiled function: its lines. */
typedef ValkeyModuleScriptingEngineCompiledFunction compiled;

static size_t used; /* bytes of all lines */

static compiled *newFunction(const char *name, size_t name_len, const char *lines, size_t len) {
    compiled *f = ValkeyModule_Calloc(1, sizeof(*f));
    f->version = VALKEYMODULE_SCRIPTING_ENGINE_ABI_COMPILED_FUNCTION_VERSION;
    if (name) f->name = ValkeyModule_CreateString(NULL, name, name_len);
    char *copy = ValkeyModule_Alloc(len + 1);
    memcpy(copy, lines, len);
    copy[len] = '\0';
    f->function = copy;
    used += len;
    return f;
}

static void freeFunction(ValkeyModuleCtx *ctx, ValkeyModuleScriptingEngineCtx *engine,
                         ValkeyModuleScriptingEngineSubsystemType type, compiled *f) {
    (void)ctx, (void)engine, (void)type;
    if (f->name) ValkeyModule_FreeString(NULL, f->name);
    used -= strlen(f->function);
    ValkeyModule_Free(f->function);
    ValkeyModule_Free(f);
}

static const char marker[] = "function ";

static compiled **compileLibrary(ValkeyModuleCtx *ctx, const char *code, size_t *count,
                                 ValkeyModuleString **error) {
    compiled **all = NULL;
    *count = 0;
    const char *at = strstr(code, marker);
    if (!at) *error = ValkeyModule_CreateStringPrintf(ctx, "no line begins with 'function'");
    while (at) {
        const char *name = at + sizeof(marker) - 1;
        size_t name_len = strcspn(name, "\n");
        const char *lines = name + name_len, *next = strstr(lines, marker);
        size_t len = next ? (size_t)(next - lines) : strlen(lines);
        all = ValkeyModule_Realloc(all, (*count + 1) * sizeof(*all));
        all[(*count)++] = newFunction(name, name_len, lines, len);
        at = next;
    }
    return all;
}

static compiled **compileCode(ValkeyModuleCtx *ctx, ValkeyModuleScriptingEngineCtx *engine,
                              ValkeyModuleScriptingEngineSubsystemType type, const char *code,
                              size_t len, size_t timeout, size_t *count,
                              ValkeyModuleString **error) {
    (void)engine, (void)timeout;
    if (type == VMSE_FUNCTION) return compileLibrary(ctx, code, count, error);
    if (code[strspn(code, "\n ")] == '\0') {
        *error = ValkeyModule_CreateStringPrintf(ctx, "the script has no steps");
        return NULL;
    }
    compiled **one = ValkeyModule_Alloc(sizeof(*one));
    one[0] = newFunction(NULL, 0, code, len);
    *count = 1;
    return one;
}

/* The string that a word of a step means: owned by the caller. */
static ValkeyModuleString *resolve(ValkeyModuleCtx *ctx, const char *word, size_t len,
                                   ValkeyModuleString **keys, size_t nkeys,
                                   ValkeyModuleString **args, size_t nargs) {
    if (len > 3) {
        size_t number = strtoul(word + 3, NULL, 10);
        if (!strncmp(word, "KEY", 3) && number >= 1 && number <= nkeys)
            return ValkeyModule_CreateStringFromString(ctx, keys[number - 1]);
        if (!strncmp(word, "ARG", 3) && number >= 1 && number <= nargs)
            return ValkeyModule_CreateStringFromString(ctx, args[number - 1]);
    }
    return ValkeyModule_CreateString(ctx, word, len);
}

static int runForever(ValkeyModuleScriptingEngineServerRuntimeCtx *run) {
    while (ValkeyModule_GetFunctionExecutionState(run) == VMSE_STATE_EXECUTING) {}
    return 1;
}

static void callFunction(ValkeyModuleCtx *ctx, ValkeyModuleScriptingEngineCtx *engine,
                         ValkeyModuleScriptingEngineServerRuntimeCtx *run, compiled *f,
                         ValkeyModuleScriptingEngineSubsystemType type, ValkeyModuleString **keys,
                         size_t nkeys, ValkeyModuleString **args, size_t nargs) {
    (void)engine, (void)type;
    ValkeyModule_AutoMemory(ctx);
    ValkeyModuleCallReply *reply = NULL;
    for (const char *line = f->function; *line;) {
        size_t len = strcspn(line, "\n");
        ValkeyModuleString *words[WORDS_MAX];
        size_t count = 0;
        for (size_t at = 0; at < len && count < WORDS_MAX;) {
            size_t word = strcspn(line + at, " \n");
            if (word)
                words[count++] = resolve(ctx, line + at, word, keys, nkeys, args, nargs);
            at += word + 1;
        }
        line += line[len] ? len + 1 : len;
        if (!count) continue;
        const char *name = ValkeyModule_StringPtrLen(words[0], NULL);
        if (!strcmp(name, "forever") && runForever(run)) {
            ValkeyModule_ReplyWithError(ctx, "ERR the steps were killed");
            return;
        }
        reply = ValkeyModule_Call(ctx, name, "S!E0v", words + 1, count - 1);
        if (ValkeyModule_CallReplyType(reply) == VALKEYMODULE_REPLY_ERROR) break;
    }
    if (reply) {
        ValkeyModule_ReplyWithCallReply(ctx, reply);
    } else {
        ValkeyModule_ReplyWithNull(ctx);
    }
}

static size_t functionMemory(ValkeyModuleCtx *ctx, compiled *f) {
    (void)ctx;
    return ValkeyModule_MallocSize(f->function);
}

/* There is no environment: all functions have been freed before. */
static ValkeyModuleScriptingEngineCallableLazyEnvReset *resetEnv(
    ValkeyModuleCtx *ctx, ValkeyModuleScriptingEngineCtx *engine,
    ValkeyModuleScriptingEngineSubsystemType type, int async) {
    (void)ctx, (void)engine, (void)type, (void)async;
    return NULL;
}

static ValkeyModuleScriptingEngineMemoryInfo memoryInfo(
    ValkeyModuleCtx *ctx, ValkeyModuleScriptingEngineCtx *engine,
    ValkeyModuleScriptingEngineSubsystemType type) {
    (void)ctx, (void)engine, (void)type;
    ValkeyModuleScriptingEngineMemoryInfo info = {
        .version = VALKEYMODULE_SCRIPTING_ENGINE_ABI_MEMORY_INFO_VERSION, .used_memory = used};
    return info;
}

int ValkeyModule_OnLoad(ValkeyModuleCtx *ctx, ValkeyModuleString **argv, int argc) {
    (void)argv, (void)argc;
    if (ValkeyModule_Init(ctx, "helloengine", 1, VALKEYMODULE_APIVER_1) == VALKEYMODULE_ERR)
        return VALKEYMODULE_ERR;
    ValkeyModuleScriptingEngineMethods methods = {
        .version = VALKEYMODULE_SCRIPTING_ENGINE_ABI_VERSION,
        .compile_code = compileCode,
        .free_function = freeFunction,
        .call_function = callFunction,
        .get_function_memory_overhead = functionMemory,
        .reset_env = resetEnv,
        .get_memory_info = memoryInfo};
    return ValkeyModule_RegisterScriptingEngine(ctx, "steps", NULL, &methods);
}

int ValkeyModule_OnUnload(ValkeyModuleCtx *ctx) {
    ValkeyModule_UnregisterScriptingEngine(ctx, "steps");
    return VALKEYMODULE_OK;
}
