/* SPDX-License-Identifier: BSD-3-Clause
 *
 * MODULE, as far as it exists: there is one module, `lua`, the built-in engine of scripts; others
 * cannot be loaded. Main thread only. */
#include "base/base.h"
#include "cmd/cmd.h"
#include "cmd/cmd_priv.h"
#include "cmd/module.h"
#include "cmd/procs.h"
#include "engine/options.h"
#include "engine/reply.h"

enum { LUA_MODULE_VERSION = 1 };

void moduleReplyAll(ctx *c) {
    replyArray(c, 1);
    replyMap(c, 4);
    replyBulkText(c, "name");
    replyBulkText(c, "lua");
    replyBulkText(c, "ver");
    replyInteger(c, LUA_MODULE_VERSION);
    replyBulkText(c, "path");
    replyBulkText(c, "lua");
    replyBulkText(c, "args");
    replyArray(c, 0);
}

void moduleAppendInfo(str *out) {
    strAppendFormat(out,
                    "module:name=lua,ver=%d,api=1,filters=0,usedby=[],using=[],"
                    "options=[handle-repl-async-load|handle-atomic-slot-migration]\r\n",
                    LUA_MODULE_VERSION);
}

/* MODULE LIST. Reply: one map per module. */
void moduleListCommand(ctx *c) { moduleReplyAll(c); }

/* MODULE HELP. */
void moduleHelpCommand(ctx *c) {
    static const char *const lines[] = {
        "LIST",
        "    Return a list of loaded modules.",
        "LOAD <path> [<arg> ...]",
        "    Load a module library from <path>, passing to it any optional arguments.",
        "LOADEX <path> [[CONFIG NAME VALUE] [CONFIG NAME VALUE]] [ARGS ...]",
        "    Load a module library from <path>, while passing it module configurations and "
        "optional arguments.",
        "UNLOAD <name>",
        "    Unload a module.",
        NULL};
    replyHelp(c, lines);
}

static void refuseLoad(ctx *c) {
    hotCheck(c->argc > 2);
    logWarning("Module %.*s failed to load: this server does not load modules", (int)c->argv[2].len,
               c->argv[2].ptr);
    replyError(c, SLICE("ERR Error loading the extension. Please check the server logs."));
}

/* MODULE LOAD path [arg ...]. */
void moduleLoadCommand(ctx *c) { refuseLoad(c); }

/* MODULE LOADEX path [CONFIG name value ...] [ARGS arg ...]. */
void moduleLoadexCommand(ctx *c) { refuseLoad(c); }

/* MODULE UNLOAD name. The built-in module cannot be unloaded. */
void moduleUnloadCommand(ctx *c) {
    replyError(c, ctxArgIs(c, 2, "lua")
                      ? SLICE("ERR Error unloading module: the module is part of the server")
                      : SLICE("ERR Error unloading module: no such module with that name"));
}

/* ------------------------------------------------------------------ the gate */

static bool changesModules(const commandSpec *spec) {
    return spec->proc == moduleLoadCommand || spec->proc == moduleLoadexCommand ||
           spec->proc == moduleUnloadCommand;
}

static gateVerdict checkModuleAllowed(ctx *c) {
    return checkRestricted(c, RESTRICTED_MODULE, "MODULE", "enable-module-command");
}

const gate moduleGate = {.name = "module", .selects = changesModules, .admit = checkModuleAllowed};
