/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Scripting engines that modules add. Main thread only. */
#ifndef MODULE_SCRIPTING_H
#define MODULE_SCRIPTING_H

#include "module/context.h"
#include "module/generated/scripting_engines.h"
#include "script/engine.h"

/* Tables from these versions on: compile_code() takes a length, reset_env() the use; there is a
 * debugger. */
enum { VERSION_CODE_LEN = 2, VERSION_RESET_USE = 3, VERSION_DEBUGGER = 4 };

/* An engine that a module has registered. */
typedef struct moduleEngine moduleEngine;
struct moduleEngine {
    scriptEngine engine; /* first: what the folder `script` has */
    ValkeyModuleScriptingEngineMethods methods;
    ValkeyModuleScriptingEngineCtx *context;
    module *owner;
    char *name;
    moduleEngine *next;
    /* Commands of its debugger, after this was enabled; borrowed from the module. */
    const ValkeyModuleScriptingEngineDebuggerCommand *debug_commands;
    size_t debug_command_count;
};

/* Offers the debugger of an engine whose methods are set, if it has one. */
void debuggerOffer(moduleEngine *e);

/* The module ends: its engines are removed, with their libraries and scripts. */
void scriptingRemove(module *m);

#endif
