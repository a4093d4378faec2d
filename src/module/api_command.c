/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Functions of modules: creating commands, and reporting at which arguments their keys are.
 *
 * Main thread only. */
#include <errno.h>

#include "base/base.h"
#include "module/commands.h"
#include "module/generated/api.h"
#include "store/store.h"

static const struct {
    const char *word;
    uint64_t flag; /* CMD_; 0: has a meaning of its own, or none */
} flag_words[] = {
    {"write", CMD_WRITE},
    {"readonly", CMD_READONLY},
    {"admin", CMD_ADMIN},
    {"deny-oom", CMD_DENYOOM},
    {"deny-script", CMD_NOSCRIPT},
    {"allow-loading", CMD_LOADING},
    {"pubsub", CMD_PUBSUB},
    {"random", 0},
    {"blocking", CMD_BLOCKING},
    {"allow-stale", CMD_STALE},
    {"no-monitor", CMD_SKIP_MONITOR},
    {"no-slowlog", CMD_SKIP_COMMANDLOG},
    {"no-commandlog", CMD_SKIP_COMMANDLOG},
    {"fast", CMD_FAST},
    {"no-auth", CMD_NO_AUTH},
    {"may-replicate", CMD_MAY_REPLICATE},
    {"getkeys-api", CMD_MOVABLEKEYS},
    {"getchannels-api", 0},
    {"no-cluster", 0},
    {"no-mandatory-keys", CMD_NO_MANDATORY_KEYS},
    {"allow-busy", CMD_ALLOW_BUSY},
    {"all-dbs", 0},
};

static bool takeFlag(moduleCommand *m, slice word) {
    for (size_t i = 0; i < sizeof(flag_words) / sizeof(flag_words[0]); i++) {
        if (!sliceIs(word, flag_words[i].word)) continue;
        m->spec.flags |= flag_words[i].flag;
        m->reports_keys |= sliceIs(word, "getkeys-api");
        m->reports_channels |= sliceIs(word, "getchannels-api");
        m->not_in_cluster |= sliceIs(word, "no-cluster");
        return true;
    }
    return false;
}

/* Words separated by one blank each; an empty one is none of them. */
static bool takeFlags(moduleCommand *m, const char *text) {
    if (!text || !*text) return true;
    for (const char *at = text;;) {
        const char *end = at + strcspn(at, " ");
        if (!takeFlag(m, sliceMake(at, (size_t)(end - at)))) return false;
        if (!*end) return true;
        at = end + 1;
    }
}

static bool isName(const char *name) { return *name && !name[strcspn(name, " \r\n|@=,")]; }

/* The key specification that the three numbers say. */
static void describeKeys(moduleCommand *m, int first, int last, int step) {
    m->spec.first_key = (int8_t)first;
    m->spec.last_key = (int8_t)last;
    m->spec.key_step = (int8_t)step;
    if (!first) return;
    keySpec *keys = poolAlloc(&m->texts, sizeof(*keys));
    *keys = (keySpec){.flags = KEY_RW | KEY_ACCESS | KEY_UPDATE |
                               (m->reports_keys ? KEY_VARIABLE_FLAGS : 0),
                      .begin = KEY_BEGIN_INDEX,
                      .begin_at = first,
                      .find = KEY_FIND_RANGE,
                      .last = last >= 0 ? last - first : last,
                      .step = step};
    hotCheck(!m->spec.key_specs);
    m->spec.key_specs = keys;
    m->spec.key_spec_count = 1;
}

static moduleCommand *makeCommand(module *owner, const char *name, ValkeyModuleCmdFunc func,
                                  const char *flags, int first, int last, int step) {
    moduleCommand *m = memNew(moduleCommand);
    m->owner = owner;
    m->func = func;
    m->spec = (commandSpec){.flags = CMD_MODULE, .group = "module"};
    if (!takeFlags(m, flags) || !isName(name) || (m->not_in_cluster && storeIsSlotted())) {
        memFree(m);
        return NULL;
    }
    m->spec.name = poolText(&m->texts, name);
    describeKeys(m, first, last, step);
    return m;
}

/* One that the module has made; NULL if there is none of the name. */
static moduleCommand *findMade(moduleCommand *first, slice name) {
    for (moduleCommand *m = first; m; m = m->next) {
        if (sliceIs(name, m->spec.name)) return m;
    }
    return NULL;
}

int apiCreateCommand(ValkeyModuleCtx *ctx, const char *name, ValkeyModuleCmdFunc cmdfunc,
                     const char *strflags, int firstkey, int lastkey, int keystep) {
    module *owner = ctx->module;
    if (!owner || !owner->loading) return VALKEYMODULE_ERR;
    if (commandNameIsTaken(sliceOf(name)) || findMade(owner->commands, sliceOf(name)))
        return VALKEYMODULE_ERR;
    moduleCommand *m = makeCommand(owner, name, cmdfunc, strflags, firstkey, lastkey, keystep);
    if (!m) return VALKEYMODULE_ERR;
    m->spec.arity = cmdfunc ? -1 : -2;
    m->next = owner->commands;
    owner->commands = m;
    return VALKEYMODULE_OK;
}

ValkeyModuleCommand *apiGetCommand(ValkeyModuleCtx *ctx, const char *name) {
    if (!ctx->module) return NULL;
    const char *bar = name + strcspn(name, "|");
    slice first = sliceMake(name, (size_t)(bar - name));
    moduleCommand *m = findMade(ctx->module->commands, first);
    if (m && *bar) m = findMade(m->subs, sliceOf(bar + 1));
    return (ValkeyModuleCommand *)m;
}

int apiCreateSubcommand(ValkeyModuleCommand *parent, const char *name, ValkeyModuleCmdFunc cmdfunc,
                        const char *strflags, int firstkey, int lastkey, int keystep) {
    moduleCommand *container = (moduleCommand *)parent;
    if (!container || !container->owner->loading) return VALKEYMODULE_ERR;
    if (container->parent || container->func) return VALKEYMODULE_ERR;
    if (findMade(container->subs, sliceOf(name))) return VALKEYMODULE_ERR;
    moduleCommand *m =
        makeCommand(container->owner, name, cmdfunc, strflags, firstkey, lastkey, keystep);
    if (!m) return VALKEYMODULE_ERR;
    m->spec.arity = -2;
    m->parent = container;
    m->next = container->subs;
    container->subs = m;
    return VALKEYMODULE_OK;
}

/* ------------------------------------------------------------------ categories */

int apiSetCommandACLCategories(ValkeyModuleCommand *command, const char *ctgrsflags) {
    moduleCommand *m = (moduleCommand *)command;
    if (!m || !m->owner->loading) return VALKEYMODULE_ERR;
    uint64_t categories = 0;
    const char *at = ctgrsflags ? ctgrsflags : "";
    while (*at) {
        const char *end = at + strcspn(at, " ");
        int bit = commandCategoryFind(sliceMake(at, (size_t)(end - at)));
        if (bit < 0) {
            logWarning("Unrecognized categories flag %.*s on module load", (int)(end - at), at);
            return VALKEYMODULE_ERR;
        }
        categories |= UINT64_C(1) << bit;
        at = *end ? end + 1 : end;
    }
    m->spec.categories = categories;
    return VALKEYMODULE_OK;
}

int apiAddACLCategory(ValkeyModuleCtx *ctx, const char *name) {
    module *m = ctx->module;
    int error = 0;
    if (!m || !m->loading || !name || !resourceNameIsValid(name)) {
        error = EINVAL;
    } else {
        status st = commandCategoryAdd(name);
        error = st == OK ? 0 : st == ERR_EXISTS ? EBUSY : ENOMEM;
    }
    errno = error;
    return error ? VALKEYMODULE_ERR : VALKEYMODULE_OK;
}

/* ------------------------------------------------------------------ positions of keys */

int apiIsKeysPositionRequest(ValkeyModuleCtx *ctx) { return !!(ctx->flags & CONTEXT_ASKS_KEYS); }

int apiIsChannelsPositionRequest(ValkeyModuleCtx *ctx) {
    return !!(ctx->flags & CONTEXT_ASKS_CHANNELS);
}

static void report(ValkeyModuleCtx *x, int pos, uint32_t flags) {
    hotCheck(x->flags & (CONTEXT_ASKS_KEYS | CONTEXT_ASKS_CHANNELS));
    if (pos <= 0) return;
    if (x->position_count == x->position_max) {
        x->position_max = x->position_max ? x->position_max * 2 : 8;
        x->positions = memRealloc(x->positions, (size_t)x->position_max * sizeof(*x->positions));
    }
    x->positions[x->position_count++] = (keyPosition){pos, flags};
}

void apiKeyAtPosWithFlags(ValkeyModuleCtx *ctx, int pos, int flags) {
    if (ctx->flags & CONTEXT_ASKS_KEYS) report(ctx, pos, (uint32_t)flags);
}

void apiKeyAtPos(ValkeyModuleCtx *ctx, int pos) {
    apiKeyAtPosWithFlags(ctx, pos, KEY_RW | KEY_ACCESS | KEY_UPDATE);
}

void apiChannelAtPosWithFlags(ValkeyModuleCtx *ctx, int pos, int flags) {
    if (ctx->flags & CONTEXT_ASKS_CHANNELS) report(ctx, pos, (uint32_t)flags);
}

/* The keys of a request as an array that the module frees. */
static int *keysOf(ValkeyModuleString **argv, int argc, int *num_keys, int **out_flags) {
    slice few[16], *args = moduleStringSlices(argv, argc, few, 16);
    bool unknown_sub;
    const command *cmd = argc > 0 ? commandResolve(args, argc, &unknown_sub) : NULL;
    int *found = NULL;
    *num_keys = 0;
    errno = 0;
    if (!cmd || unknown_sub) {
        errno = ENOENT;
    } else if (!commandArityFits(cmd, argc)) {
        errno = EINVAL;
    } else {
        keyPosition some[16];
        int count;
        keyPosition *keys = commandAllKeys(cmd, args, argc, some, 16, &count);
        if (count > 0) {
            found = memNewArray(int, (size_t)count);
            if (out_flags) *out_flags = memNewArray(int, (size_t)count);
            for (int i = 0; i < count; i++) {
                found[i] = keys[i].arg_index;
                if (out_flags) (*out_flags)[i] = (int)keys[i].flags;
            }
            *num_keys = count;
        }
        if (keys != some) memFree(keys);
    }
    if (args != few) memFree(args);
    return found;
}

int *apiGetCommandKeys(ValkeyModuleCtx *ctx, ValkeyModuleString **argv, int argc, int *num_keys) {
    (void)ctx; /* positions depend on the arguments alone */
    return keysOf(argv, argc, num_keys, NULL);
}

int *apiGetCommandKeysWithFlags(ValkeyModuleCtx *ctx, ValkeyModuleString **argv, int argc,
                                int *num_keys, int **out_flags) {
    (void)ctx;
    return keysOf(argv, argc, num_keys, out_flags);
}

const char *apiGetCurrentCommandName(ValkeyModuleCtx *ctx) {
    return ctx->cmd ? ctx->cmd->name.ptr : NULL;
}

int apiUpdateRuntimeArgs(ValkeyModuleCtx *ctx, ValkeyModuleString **argv, int argc) {
    if (!ctx->module || argc < 1) return VALKEYMODULE_OK;
    slice few[16], *args = moduleStringSlices(argv + 1, argc - 1, few, 16);
    moduleSetArgs(ctx->module, args, argc - 1);
    if (args != few) memFree(args);
    return VALKEYMODULE_OK;
}
