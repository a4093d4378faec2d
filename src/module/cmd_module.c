/* SPDX-License-Identifier: BSD-3-Clause
 *
 * The command MODULE with its subcommands LIST, LOAD, LOADEX, UNLOAD and HELP. Main thread only. */
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

static void replyFailed(ctx *c) {
    replyError(c, SLICE("ERR Error loading the extension. Please check the server logs."));
}

static void load(ctx *c, slice path, const moduleLoadArgs *given) {
    char *name = memDup(path.ptr, path.len);
    reason why;
    if (moduleLoad(name, given, &why) == OK) {
        replyOk(c);
    } else {
        replyFailed(c);
    }
    memFree(name);
}

/* MODULE LOAD path [arg ...]. */
void moduleLoadCommand(ctx *c) {
    moduleLoadArgs given = {.args = c->argv + 3, .count = c->argc - 3};
    load(c, c->argv[2], &given);
}

/* Collects the pairs after CONFIG; `pairs` has room for all arguments. False: the syntax is wrong,
 * which was logged. */
static bool parseLoadex(ctx *c, slice *pairs, moduleLoadArgs *out) {
    int at = 3;
    for (; at < c->argc && !ctxArgIs(c, at, "args"); at += 3) {
        if (!ctxArgIs(c, at, "config")) {
            logWarning("Syntax Error from arguments to loadex around %.*s.", (int)c->argv[at].len,
                       c->argv[at].ptr);
            return false;
        }
        if (at + 2 >= c->argc) {
            logWarning("CONFIG specified without name value pair");
            return false;
        }
        pairs[2 * out->setting_count] = c->argv[at + 1];
        pairs[2 * out->setting_count++ + 1] = c->argv[at + 2];
    }
    int first = at < c->argc ? at + 1 : at;
    out->settings = pairs;
    out->args = c->argv + first;
    out->count = c->argc - first;
    return true;
}

/* MODULE LOADEX path [CONFIG name value ...] [ARGS arg ...]. */
void moduleLoadexCommand(ctx *c) {
    slice *pairs = memNewArray(slice, (size_t)c->argc);
    moduleLoadArgs given = {0};
    if (parseLoadex(c, pairs, &given)) {
        load(c, c->argv[2], &given);
    } else {
        replyFailed(c);
    }
    memFree(pairs);
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
