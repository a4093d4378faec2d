/* SPDX-License-Identifier: BSD-3-Clause
 *
 * What a scripting engine offers: compile, call, memory. The rest of the folder knows no language.
 * An engine calls back through run.h: for commands of the script, and regularly while it runs so
 * that a script can be ended. Main thread only. */
#ifndef SCRIPT_ENGINE_H
#define SCRIPT_ENGINE_H

#include <stdbool.h>
#include <stddef.h>

#include "base/error.h"
#include "base/slice.h"
#include "base/str.h"

typedef struct scriptRun scriptRun;

/* EVAL scripts and functions have separate interpreters. */
typedef enum scriptUse { SCRIPT_USE_EVAL, SCRIPT_USE_FUNCTIONS } scriptUse;

/* A function that a library registers while it is loaded; borrowed for the call. `handle` moves to
 * the receiver. */
typedef struct scriptFunctionInfo {
    slice name;
    slice description; /* ptr NULL: none */
    unsigned flags;    /* enum scriptFlag */
    int handle;
} scriptFunctionInfo;
/* Takes a registered function. On failure the error text is in `error` (without code), the handle
 * stays the engine's. */
typedef status scriptRegisterProc(void *arg, const scriptFunctionInfo *info, str *error);

typedef enum scriptDebugResult {
    SCRIPT_DEBUG_ENABLED,
    SCRIPT_DEBUG_UNSUPPORTED,
    SCRIPT_DEBUG_FAILED
} scriptDebugResult;

typedef struct scriptMemory {
    size_t used, overhead;
} scriptMemory;

typedef struct scriptEngine scriptEngine;
struct scriptEngine {
    const char *name; /* "LUA", as it is listed */
    /* Opens an interpreter. */
    void *(*open)(const scriptEngine *e, scriptUse use);
    void (*close)(void *vm);
    /* True if another thread may close it: no code of scripts is run by that. */
    bool (*closes_anywhere)(const void *vm);
    /* Bytes held for one use; `vm` NULL: no interpreter is open. */
    size_t (*memory)(const scriptEngine *e, scriptUse use, const void *vm);
    /* Bytes held for all uses, and what the engine itself takes. NULL: memory(), and nothing. */
    scriptMemory (*memory_of_all)(const scriptEngine *e);
    /* All scripts of one use have been flushed; `later`: by a command with ASYNC. NULL: a new
     * interpreter is all that it needs. */
    void (*reset)(const scriptEngine *e, scriptUse use, bool later);
    /* Compiles the body of an EVAL script. Returns a handle, or -1 with the reason in `error`. */
    int (*compile)(void *vm, slice code, str *error);
    /* Runs the code of a library, which registers functions. False: the reason is in `error`.
     * `limit_ms` is the time it may take. */
    bool (*load)(void *vm, slice code, scriptRegisterProc *add, void *arg, int64_t limit_ms,
                 str *error);
    /* Frees what a handle refers to. */
    void (*drop)(void *vm, int handle);
    /* Calls a compiled script or function, and replies its result or error to the command that runs
     * it. */
    void (*call)(void *vm, int handle, scriptRun *run);
    /* Frees unreachable memory for at most `budget_us` (in the background). True: there is more to
     * do. */
    bool (*collect)(void *vm, int64_t budget_us);
    /* The debugger of its EVAL scripts, for engines that have one of their own (debug.h); NULL:
     * this one has none. A session wants it, and does not any more; a debugged script begins, and
     * has ended. */
    scriptDebugResult (*debug_enable)(const scriptEngine *e);
    void (*debug_disable)(const scriptEngine *e);
    void (*debug_begin)(const scriptEngine *e, slice source);
    void (*debug_end)(const scriptEngine *e);
};

/* Lua 5.1. */
extern const scriptEngine luaEngine;

/* The engine of that name, ignoring case; NULL if there is none. */
const scriptEngine *scriptEngineFind(slice name);

#endif
