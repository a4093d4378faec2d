/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Functions of modules: scripting engines. The table of a module becomes one of script/engine.h;
 * what it has compiled is numbered, so that the rest of the server deals with numbers alone.
 *
 * Main thread only. */
#include "base/base.h"
#include "module/context.h"
#include "module/generated/api.h"
#include "module/scripting.h"
#include "script/engines.h"
#include "script/run.h"

typedef ValkeyModuleScriptingEngineCompiledFunction compiledFunction;

/* The interpreter of one use. */
typedef struct moduleVm {
    moduleEngine *of;
    ValkeyModuleScriptingEngineSubsystemType use;
    compiledFunction **functions; /* by handle; NULL: free */
    int count;
} moduleVm;

static moduleEngine *engines;

/* ------------------------------------------------------------------ handles */

static int keepFunction(moduleVm *vm, compiledFunction *f) {
    for (int i = 0; i < vm->count; i++) {
        if (vm->functions[i]) continue;
        vm->functions[i] = f;
        return i;
    }
    vm->functions = memRealloc(vm->functions, (size_t)(vm->count + 1) * sizeof(*vm->functions));
    vm->functions[vm->count] = f;
    return vm->count++;
}

typedef struct functionPart {
    moduleVm *vm;
    compiledFunction *function;
} functionPart;

static void freeFunction(ValkeyModuleCtx *x, void *arg) {
    const functionPart *p = arg;
    p->vm->of->methods.free_function(x, p->vm->of->context, p->vm->use, p->function);
}

static void drop(void *state, int handle) {
    moduleVm *vm = state;
    hotCheck(handle < vm->count);
    functionPart p = {vm, vm->functions[handle]};
    if (!p.function) return;
    vm->functions[handle] = NULL;
    contextRun(vm->of->owner, 0, freeFunction, &p);
}

/* ------------------------------------------------------------------ compiling */

typedef struct compilePart {
    moduleVm *vm;
    slice code;
    size_t limit_ms;
    compiledFunction **functions;
    size_t count;
    ValkeyModuleString *error;
} compilePart;

typedef compiledFunction **compileWithoutLength(ValkeyModuleCtx *, ValkeyModuleScriptingEngineCtx *,
                                                ValkeyModuleScriptingEngineSubsystemType,
                                                const char *, size_t, size_t *,
                                                ValkeyModuleString **);

static void compileCode(ValkeyModuleCtx *x, void *arg) {
    compilePart *p = arg;
    moduleEngine *e = p->vm->of;
    str code = strNew(p->code); /* followed by a NUL */
    if (e->methods.version < VERSION_CODE_LEN) {
        compileWithoutLength *compile = (compileWithoutLength *)(void *)e->methods.compile_code;
        p->functions =
            compile(x, e->context, p->vm->use, strText(&code), p->limit_ms, &p->count, &p->error);
    } else {
        p->functions = e->methods.compile_code(x, e->context, p->vm->use, strText(&code), code.len,
                                               p->limit_ms, &p->count, &p->error);
    }
    strFree(&code);
}

/* True if it gave at least one function; else the reason is in `error`. */
static bool compileAll(compilePart *p, str *error) {
    contextRun(p->vm->of->owner, 0, compileCode, p);
    if (p->functions && p->count) return true;
    slice text =
        p->functions ? SLICE("No functions registered") : SLICE("the engine has not said why");
    if (p->error) text = moduleStringSlice(p->error);
    strAppendSlice(error, text);
    if (p->error) moduleStringRelease(p->error);
    memFree(p->functions);
    return false;
}

static int compile(void *state, slice code, str *error) {
    compilePart p = {.vm = state, .code = code};
    if (!compileAll(&p, error)) return -1;
    int handle = keepFunction(p.vm, p.functions[0]);
    for (size_t i = 1; i < p.count; i++) { /* a script is one function */
        functionPart extra = {p.vm, p.functions[i]};
        contextRun(p.vm->of->owner, 0, freeFunction, &extra);
    }
    memFree(p.functions);
    return handle;
}

static unsigned flagsOf(uint64_t flags) {
    return (flags & VMSE_SCRIPT_FLAG_NO_WRITES ? SCRIPT_NO_WRITES : 0u) |
           (flags & VMSE_SCRIPT_FLAG_ALLOW_OOM ? SCRIPT_ALLOW_OOM : 0u) |
           (flags & VMSE_SCRIPT_FLAG_ALLOW_STALE ? SCRIPT_ALLOW_STALE : 0u) |
           (flags & VMSE_SCRIPT_FLAG_NO_CLUSTER ? SCRIPT_NO_CLUSTER : 0u) |
           (flags & VMSE_SCRIPT_FLAG_ALLOW_CROSS_SLOT ? SCRIPT_ALLOW_CROSS_SLOT_KEYS : 0u);
}

static bool load(void *state, slice code, scriptRegisterProc *add, void *arg, int64_t limit_ms,
                 str *error) {
    compilePart p = {.vm = state, .code = code, .limit_ms = (size_t)limit_ms};
    strAppendText(error, "ERR ");
    if (!compileAll(&p, error)) return false;
    strClear(error);
    bool valid = true;
    for (size_t i = 0; i < p.count; i++) {
        const compiledFunction *f = p.functions[i];
        scriptFunctionInfo info = {.name = moduleStringSlice(f->name),
                                   .flags = flagsOf(f->f_flags),
                                   .handle = keepFunction(p.vm, p.functions[i])};
        if (f->desc) info.description = moduleStringSlice(f->desc);
        if (add(arg, &info, error) == OK) continue;
        drop(p.vm, info.handle);
        valid = false;
    }
    memFree(p.functions);
    return valid;
}

/* ------------------------------------------------------------------ running */

static void call(void *state, int handle, scriptRun *run) {
    moduleVm *vm = state;
    moduleEngine *e = vm->of;
    ValkeyModuleCtx x;
    contextInit(&x, e->owner, run->caller);
    x.flags = CONTEXT_HAS_CLIENT;
    x.script = run;
    argArray *keys = argArrayNew(run->keys, run->key_count);
    argArray *args = argArrayNew(run->args, run->arg_count);
    e->methods.call_function(&x, e->context, run, vm->functions[handle], vm->use, keys->argv,
                             (size_t)run->key_count, args->argv, (size_t)run->arg_count);
    argArrayEnd(args);
    argArrayEnd(keys);
    contextClear(&x);
}

ValkeyModuleScriptingEngineExecutionState apiGetFunctionExecutionState(
    ValkeyModuleScriptingEngineServerRuntimeCtx *server_ctx) {
    return scriptRunPoll(server_ctx) == SCRIPT_KILLED ? VMSE_STATE_KILLED : VMSE_STATE_EXECUTING;
}

/* ------------------------------------------------------------------ interpreters */

static ValkeyModuleScriptingEngineSubsystemType numberOfUse(scriptUse use) {
    return use == SCRIPT_USE_EVAL ? VMSE_EVAL : VMSE_FUNCTION;
}

static void *openVm(const scriptEngine *e, scriptUse use) {
    moduleVm *vm = memNew(moduleVm);
    vm->of = (moduleEngine *)e;
    vm->use = numberOfUse(use);
    return vm;
}

typedef ValkeyModuleScriptingEngineCallableLazyEnvReset *resetWithoutUse(
    ValkeyModuleCtx *, ValkeyModuleScriptingEngineCtx *, int);

typedef struct resetPart {
    const moduleEngine *of;
    ValkeyModuleScriptingEngineSubsystemType use;
    int later;
} resetPart;

static void resetEnvironment(ValkeyModuleCtx *x, void *arg) {
    const resetPart *p = arg;
    const ValkeyModuleScriptingEngineMethods *methods = &p->of->methods;
    ValkeyModuleScriptingEngineCallableLazyEnvReset *rest = NULL;
    if (methods->version >= VERSION_RESET_USE) {
        rest = methods->reset_env(x, p->of->context, p->use, p->later);
    } else if (p->use == VMSE_EVAL) {
        rest = ((resetWithoutUse *)(void *)methods->reset_env)(x, p->of->context, p->later);
    }
    if (!rest) return;
    if (rest->engineLazyEnvResetCallback) rest->engineLazyEnvResetCallback(rest->context);
    memFree(rest);
}

static void reset(const scriptEngine *engine, scriptUse use, bool later) {
    resetPart p = {
        .of = (const moduleEngine *)(const void *)engine, .use = numberOfUse(use), .later = later};
    if (p.of->methods.reset_env) contextRun(p.of->owner, 0, resetEnvironment, &p);
}

static void closeVm(void *state) {
    moduleVm *vm = state;
    for (int i = 0; i < vm->count; i++) drop(vm, i);
    memFree(vm->functions);
    memFree(vm);
}

/* The module's code belongs to the main thread. */
static bool closesAnywhere(const void *state) {
    (void)state;
    return false;
}

typedef struct memoryPart {
    const moduleEngine *of;
    ValkeyModuleScriptingEngineSubsystemType use;
    scriptMemory found;
} memoryPart;

static void askMemory(ValkeyModuleCtx *x, void *arg) {
    memoryPart *p = arg;
    ValkeyModuleScriptingEngineMemoryInfo info =
        p->of->methods.get_memory_info(x, p->of->context, p->use);
    p->found = (scriptMemory){info.used_memory, info.engine_memory_overhead};
}

static scriptMemory memoryFor(const scriptEngine *e, ValkeyModuleScriptingEngineSubsystemType use) {
    memoryPart p = {(const moduleEngine *)(const void *)e, use, {0, 0}};
    if (p.of->methods.get_memory_info) contextRun(p.of->owner, 0, askMemory, &p);
    return p.found;
}

static size_t memoryOfUse(const scriptEngine *e, scriptUse use, const void *vm) {
    (void)vm; /* the module knows */
    return memoryFor(e, numberOfUse(use)).used;
}

static scriptMemory memoryOfAll(const scriptEngine *e) { return memoryFor(e, VMSE_ALL); }

/* Engines collect their garbage themselves. */
static bool collect(void *state, int64_t budget_us) {
    (void)state, (void)budget_us;
    return false;
}

/* ------------------------------------------------------------------ registration */

static moduleEngine *find(const module *owner, const char *name) {
    for (moduleEngine *e = engines; e; e = e->next) {
        if (e->owner == owner && sliceIs(sliceOf(name), e->name)) return e;
    }
    return NULL;
}

int apiRegisterScriptingEngine(ValkeyModuleCtx *module_ctx, const char *engine_name,
                               ValkeyModuleScriptingEngineCtx *engine_ctx,
                               ValkeyModuleScriptingEngineMethods *engine_methods) {
    uint64_t version = engine_methods->version;
    if (!module_ctx->module || version == 0) return VALKEYMODULE_ERR;
    if (version > VALKEYMODULE_SCRIPTING_ENGINE_ABI_VERSION) {
        logWarning("The engine implementation version is greater than what this server supports. "
                   "Server ABI Version: %lu, Engine ABI version: %llu",
                   VALKEYMODULE_SCRIPTING_ENGINE_ABI_VERSION, (unsigned long long)version);
        return VALKEYMODULE_ERR;
    }
    if (version < VERSION_DEBUGGER)
        logWarning("Registering scripting engine '%s' with ABI version '%llu'", engine_name,
                   (unsigned long long)version);
    moduleEngine *e = memNew(moduleEngine);
    e->name = memDup(engine_name, strlen(engine_name));
    size_t size = version < VERSION_DEBUGGER
                      ? offsetof(ValkeyModuleScriptingEngineMethods, debugger_enable)
                      : sizeof(e->methods);
    memcpy(&e->methods, engine_methods, size);
    e->context = engine_ctx;
    e->owner = module_ctx->module;
    e->engine = (scriptEngine){.name = e->name,
                               .open = openVm,
                               .close = closeVm,
                               .closes_anywhere = closesAnywhere,
                               .memory = memoryOfUse,
                               .memory_of_all = memoryOfAll,
                               .reset = reset,
                               .compile = compile,
                               .load = load,
                               .drop = drop,
                               .call = call,
                               .collect = collect};
    debuggerOffer(e);
    if (scriptEngineAdd(&e->engine, e->owner->name, (int)version) != OK) {
        memFree(e->name);
        memFree(e);
        return VALKEYMODULE_ERR;
    }
    e->next = engines;
    engines = e;
    return VALKEYMODULE_OK;
}

static void removeEngine(moduleEngine *e) {
    moduleEngine **at = &engines;
    while (*at != e) at = &(*at)->next;
    *at = e->next;
    scriptEngineRemove(&e->engine);
    memFree(e->name);
    memFree(e);
}

int apiUnregisterScriptingEngine(ValkeyModuleCtx *module_ctx, const char *engine_name) {
    moduleEngine *e = find(module_ctx->module, engine_name);
    if (!e) return VALKEYMODULE_ERR;
    removeEngine(e);
    return VALKEYMODULE_OK;
}

void scriptingRemove(module *m) {
    for (moduleEngine *e = engines, *next; e; e = next) {
        next = e->next;
        if (e->owner == m) removeEngine(e);
    }
}
