/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Commands of modules and how they run. A command is found by the number that the engine gives it,
 * so running one costs no lookup by name.
 *
 * Main thread only. */
#include "module/commands.h"

#include "base/base.h"
#include "engine/channel_use.h"
#include "engine/execute.h"
#include "engine/propagate.h"
#include "module/block_client.h"
#include "module/generated/command_info.h"

static struct {
    moduleCommand **by_id; /* by command.id; NULL: of no module */
    int count;
} installed;

moduleCommand *commandsOf(const command *cmd) {
    return cmd && cmd->id < installed.count ? installed.by_id[cmd->id] : NULL;
}

static void runCommand(ctx *c) {
    moduleCommand *m = commandsOf(c->cmd);
    check(m);
    hotCheck(m->func);
    if (unlikely(c->flags & CTX_WOKEN) && blockClientContinue(c)) return;
    ValkeyModuleCtx x;
    contextInit(&x, m->owner, c);
    x.flags = CONTEXT_HAS_CLIENT;
    x.args = argArrayNew(c->argv, c->argc);
    (void)m->func(&x, x.args->argv, c->argc); /* its result has no meaning */
    blockClientKeepArgs(&x);
    contextClear(&x);
    ctxPropagateNothing(c); /* what the module wants propagated has been queued */
}

/* Asks the function of a command for positions. `asks`: CONTEXT_ASKS_KEYS or _CHANNELS. Those that
 * are no argument are ignored. */
static int findPositions(const slice *argv, int argc, keyPosition *out, int max, uint32_t asks) {
    hotCheck(argc > 0);
    bool unknown_sub;
    moduleCommand *m = commandsOf(commandResolve(argv, argc, &unknown_sub));
    if (!m || unknown_sub || !m->func) return 0;
    ValkeyModuleCtx x;
    contextInit(&x, m->owner, NULL);
    x.flags = asks;
    x.args = argArrayNew(argv, argc);
    (void)m->func(&x, x.args->argv, argc); /* it reports positions */
    int count = 0;
    for (int i = 0; i < x.position_count; i++) {
        if (x.positions[i].arg_index >= argc) continue;
        if (count < max) out[count] = x.positions[i];
        count++;
    }
    contextClear(&x);
    return count;
}

static int findKeys(const slice *argv, int argc, keyPosition *out, int max) {
    int count = findPositions(argv, argc, out, max, CONTEXT_ASKS_KEYS);
    return count ? count : -1;
}

_Static_assert(CHANNEL_USE_PATTERN == VALKEYMODULE_CMD_CHANNEL_PATTERN, "flags of modules");
_Static_assert(CHANNEL_USE_PUBLISH == VALKEYMODULE_CMD_CHANNEL_PUBLISH, "flags of modules");
_Static_assert(CHANNEL_USE_SUBSCRIBE == VALKEYMODULE_CMD_CHANNEL_SUBSCRIBE, "flags of modules");
_Static_assert(CHANNEL_USE_UNSUBSCRIBE == VALKEYMODULE_CMD_CHANNEL_UNSUBSCRIBE, "flags of modules");

static int findChannels(const slice *argv, int argc, keyPosition *out, int max) {
    return findPositions(argv, argc, out, max, CONTEXT_ASKS_CHANNELS);
}

/* ------------------------------------------------------------------ installing */

static void noteInstalled(moduleCommand *m, slice full_name) {
    const command *cmd = commandFindByFullName(full_name);
    check(cmd);
    if (cmd->id >= installed.count) {
        int count = cmd->id + 64;
        installed.by_id = memRealloc(installed.by_id, (size_t)count * sizeof(*installed.by_id));
        memset(installed.by_id + installed.count, 0,
               (size_t)(count - installed.count) * sizeof(*installed.by_id));
        installed.count = count;
    }
    hotCheck(!installed.by_id[cmd->id]);
    installed.by_id[cmd->id] = m;
    m->is_installed = true;
}

static void prepareSpec(moduleCommand *m) {
    hotCheck(m->owner);
    m->spec.module = m->owner->name;
    m->spec.proc = m->func ? runCommand : NULL;
    if (m->spec.flags & CMD_FAST && !(m->spec.flags & CMD_BLOCKING)) m->spec.flags |= CMD_QUICK;
    if (m->reports_keys) m->spec.find_keys = findKeys;
    if (m->reports_channels) m->spec.find_channels = findChannels;
}

/* Puts the specifications of the subcommands, which were made one by one, in one array. */
static void gatherSubs(moduleCommand *m) {
    int count = 0;
    for (moduleCommand *sub = m->subs; sub; sub = sub->next) count++;
    if (!count) return;
    commandSpec *specs = poolAlloc(&m->texts, (size_t)count * sizeof(*specs));
    int at = count;
    for (moduleCommand *sub = m->subs; sub; sub = sub->next) {
        prepareSpec(sub);
        specs[--at] = sub->spec;
    }
    check(at == 0);
    m->spec.subs = specs;
    m->spec.sub_count = count;
}

status commandsInstall(module *m, reason *why) {
    moduleCommand *reversed = NULL; /* the order of their creation */
    while (m->commands) {
        moduleCommand *cmd = m->commands;
        m->commands = cmd->next;
        cmd->next = reversed;
        reversed = cmd;
    }
    m->commands = reversed;
    for (moduleCommand *cmd = m->commands; cmd; cmd = cmd->next) {
        prepareSpec(cmd);
        gatherSubs(cmd);
        if (commandLoad(&cmd->spec, 1) != OK)
            return reasonSet(why, ERR_EXISTS, "Module %s: the command %s cannot be added", m->name,
                             cmd->spec.name);
        noteInstalled(cmd, sliceOf(cmd->spec.name));
        for (moduleCommand *sub = cmd->subs; sub; sub = sub->next) {
            str name = STR_EMPTY;
            strAppendFormat(&name, "%s|%s", cmd->spec.name, sub->spec.name);
            noteInstalled(sub, strSlice(&name));
            strFree(&name);
        }
    }
    return OK;
}

static void freeCommand(moduleCommand *m) {
    while (m->subs) {
        moduleCommand *sub = m->subs;
        m->subs = sub->next;
        freeCommand(sub);
    }
    poolFree(&m->texts);
    memFree(m);
}

void commandsRemove(module *m) {
    while (m->commands) {
        moduleCommand *cmd = m->commands;
        m->commands = cmd->next;
        if (cmd->is_installed) {
            status st = commandUnload(sliceOf(cmd->spec.name));
            check(st == OK);
        }
        for (int i = 0; i < installed.count; i++) {
            moduleCommand *at = installed.by_id[i];
            if (at && (at == cmd || at->parent == cmd)) installed.by_id[i] = NULL;
        }
        freeCommand(cmd);
    }
}
