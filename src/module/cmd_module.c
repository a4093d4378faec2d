/* SPDX-License-Identifier: BSD-3-Clause
 *
 * MODULE: LIST, LOAD, LOADEX, UNLOAD. Main thread only. */
#include "base/base.h"
#include "engine/options.h"
#include "engine/reply.h"
#include "module/load.h"
#include "module/module.h"
#include "module/procs.h"
#include "module/registry.h"

/* MODULE LIST. Reply: one map per module. */
void moduleListCommand(ctx *c) { registryReplyAll(c); }

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

static void load(ctx *c, slice path, const slice *args, int count) {
    char *name = memDup(path.ptr, path.len);
    reason why;
    if (moduleLoad(name, args, count, &why) == OK) {
        replyOk(c);
    } else {
        replyError(c, SLICE("ERR Error loading the extension. Please check the server logs."));
    }
    memFree(name);
}

/* MODULE LOAD path [arg ...]. */
void moduleLoadCommand(ctx *c) { load(c, c->argv[2], c->argv + 3, c->argc - 3); }

/* MODULE LOADEX path [CONFIG name value ...] [ARGS arg ...]. */
void moduleLoadexCommand(ctx *c) {
    int at = 3;
    while (at < c->argc && !ctxArgIs(c, at, "args")) {
        if (!ctxArgIs(c, at, "config")) {
            replyErrorFormat(c, "ERR Syntax Error from arguments to loadex around %.*s.",
                             (int)c->argv[at].len, c->argv[at].ptr);
            return;
        }
        if (at + 2 >= c->argc) {
            replyError(c, SLICE("ERR CONFIG specified without name value pair"));
            return;
        }
        at += 3;
    }
    int first = at < c->argc ? at + 1 : at;
    load(c, c->argv[2], c->argv + first, c->argc - first);
}

/* MODULE UNLOAD name. */
void moduleUnloadCommand(ctx *c) {
    reason why;
    if (moduleUnload(c->argv[2], &why) == OK) {
        replyOk(c);
        return;
    }
    logWarning("Error unloading module %.*s: %s", (int)c->argv[2].len, c->argv[2].ptr, why.text);
    replyErrorFormat(c, "ERR Error unloading module: %s", why.text);
}

/* ------------------------------------------------------------------ the gate */

static bool changesModules(const commandSpec *spec) {
    return spec->proc == moduleLoadCommand || spec->proc == moduleLoadexCommand ||
           spec->proc == moduleUnloadCommand;
}

static gateVerdict checkModuleAllowed(ctx *c) {
    return optionsCheckRestricted(c, RESTRICTED_MODULE, "MODULE", "enable-module-command");
}

const gate moduleGate = {.name = "module", .selects = changesModules, .admit = checkModuleAllowed};
