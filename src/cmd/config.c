/* SPDX-License-Identifier: BSD-3-Clause
 *
 * CONFIG: access to the configuration registry (config/config.h). GET and INFO cost
 * O(options x patterns). Main thread only. */
#include <inttypes.h>
#include <stdio.h>

#include "base/base.h"
#include "cmd/procs.h"
#include "config/config.h"
#include "engine/lifecycle.h"
#include "engine/options.h"
#include "engine/reply.h"
#include "engine/server_event.h"
#include "engine/stats.h"

/* CONFIG GET pattern [pattern ...]. Reply: a map of names and values. */
void configGetCommand(ctx *c) {
    hotCheck(c->argc >= 3);
    configMatch *found;
    int count = configMatchAll(c->argv + 2, c->argc - 2, &found);
    str value = STR_EMPTY;
    replyMap(c, count);
    for (int i = 0; i < count; i++) {
        strClear(&value);
        configGet(found[i].option, &value);
        replyBulk(c, found[i].name);
        replyBulk(c, strSlice(&value));
    }
    strFree(&value);
    memFree(found);
}

/* ------------------------------------------------------------------ CONFIG INFO */

static bool isOfModule(const configOption *o) { return strchr(o->name, '.') != NULL; }

static const char *typeOf(configKind kind) {
    switch (kind) {
    case CONFIG_KIND_BOOL: return "bool";
    case CONFIG_KIND_INT:
    case CONFIG_KIND_OCTAL:
    case CONFIG_KIND_MEMORY:
    case CONFIG_KIND_MEMORY_OR_PERCENT: return "numeric";
    case CONFIG_KIND_ENUM: return "enum";
    case CONFIG_KIND_STRING: return "string";
    default: return "special";
    }
}

static void replyWord(ctx *c, const char *word) { replyBulk(c, sliceOf(word)); }

static void replyFlags(ctx *c, const configOption *o, bool by_alias) {
    const char *flags[7];
    int count = 0;
    if (o->flags & CONFIG_IMMUTABLE) flags[count++] = "immutable";
    if (o->flags & CONFIG_SENSITIVE) flags[count++] = "sensitive";
    if (o->flags & CONFIG_PROTECTED) flags[count++] = "protected";
    if (by_alias) flags[count++] = "alias";
    if (isOfModule(o)) flags[count++] = "module";
    if (o->flags & CONFIG_MULTI_WORD) flags[count++] = "multi-arg";
    if (o->flags & CONFIG_NOT_WHILE_LOADING) flags[count++] = "deny-loading";
    replyArray(c, count);
    for (int i = 0; i < count; i++) replyWord(c, flags[i]);
}

static void replyRange(ctx *c, const configOption *o) {
    char min[32], max[32];
    bool octal = o->kind == CONFIG_KIND_OCTAL;
    (void)snprintf(min, sizeof(min), octal ? "%" PRIo64 : "%" PRId64, o->min); /* they fit */
    (void)snprintf(max, sizeof(max), octal ? "%" PRIo64 : "%" PRIu64, o->max);
    replyArray(c, 2);
    replyWord(c, min);
    replyWord(c, max);
}

static void describe(ctx *c, const configMatch *m) {
    const configOption *o = m->option;
    const char *type = typeOf(o->kind);
    bool is_numeric = !strcmp(type, "numeric"), is_enum = o->kind == CONFIG_KIND_ENUM;
    bool by_alias = o->alias && sliceEqualFold(m->name, sliceOf(o->alias));
    replyMap(c, 3 + (o->alias != NULL) + (is_numeric || is_enum));
    replyWord(c, "name");
    replyBulk(c, m->name);
    replyWord(c, "type");
    replyWord(c, type);
    replyWord(c, "flags");
    replyFlags(c, o, by_alias);
    if (o->alias) {
        replyWord(c, "alias");
        replyWord(c, by_alias ? o->name : o->alias);
    }
    if (is_numeric) {
        replyWord(c, "range");
        replyRange(c, o);
    }
    if (!is_enum) return;
    int count = 0;
    while (o->words[count].name) count++;
    replyWord(c, "values");
    replyArray(c, count);
    for (int i = 0; i < count; i++) replyWord(c, o->words[i].name);
}

/* CONFIG INFO pattern [pattern ...]. Reply: an array with a map for each directive: its name, type,
 * flags, other name, and the values that it can have. */
void configInfoCommand(ctx *c) {
    hotCheck(c->argc >= 3);
    configMatch *found;
    int count = configMatchAll(c->argv + 2, c->argc - 2, &found);
    replyArray(c, count);
    for (int i = 0; i < count; i++) describe(c, &found[i]);
    memFree(found);
}

/* ------------------------------------------------------------------ CONFIG SET and others */

static void signalSet(const ctx *c) {
    if (likely(!serverEventIsWanted(SERVER_CONFIG))) return;
    int count = (c->argc - 2) / 2;
    slice *names = memNewArray(slice, (size_t)count);
    for (int i = 0; i < count; i++) names[i] = c->argv[2 + 2 * i];
    serverEventSignal(&(serverEvent){.kind = SERVER_CONFIG, .config = {names, count}});
    memFree(names);
}

/* CONFIG SET name value [name value ...]: sets all or none. */
void configSetCommand(ctx *c) {
    hotCheck(c->argc >= 4);
    /* At each position: a value may have been forgotten. */
    for (int i = 2; i + 1 < c->argc; i++) {
        if (configIsSensitive(c->argv[i])) ctxRedact(c, i + 1);
    }
    if (c->argc % 2) {
        replyError(c, ERR_SYNTAX_TEXT);
        return;
    }
    str error = STR_EMPTY;
    bool loads = engineHot.loading || engineLoadsBeside();
    unsigned allowed = loads ? 0 : CONFIG_ALLOW_NOT_WHILE_LOADING;
    if (enginePermits(RESTRICTED_CONFIGS, c->who)) allowed |= CONFIG_ALLOW_PROTECTED;
    if (configSet(c->argv + 2, (c->argc - 2) / 2, allowed, &error) == OK) {
        signalSet(c);
        replyOk(c);
    } else {
        replyError(c, strSlice(&error));
    }
    strFree(&error);
}

/* CONFIG REWRITE: writes the current values to the file the server was started with. */
void configRewriteCommand(ctx *c) {
    reason why;
    if (!configFilePath()) {
        replyError(c, SLICE("ERR The server is running without a config file"));
    } else if (configRewrite(0, &why) != OK) {
        logWarning("CONFIG REWRITE failed: %s", why.text);
        replyErrorFormat(c, "ERR Rewriting config file: %s", why.text);
    } else {
        logNotice("CONFIG REWRITE executed with success.");
        replyOk(c);
    }
}

/* CONFIG RESETSTAT: resets the counters of INFO. */
void configResetstatCommand(ctx *c) {
    statsReset();
    replyOk(c);
}

void configHelpCommand(ctx *c) {
    static const char *const lines[] = {
        "GET <pattern>",
        "    Return parameters matching the glob-like <pattern> and their values.",
        "INFO <pattern>",
        "    Return type, flags and possible values of parameters matching <pattern>.",
        "SET <directive> <value>",
        "    Set the configuration <directive> to <value>.",
        "RESETSTAT",
        "    Reset statistics reported by the INFO command.",
        "REWRITE",
        "    Rewrite the configuration file.",
        NULL,
    };
    replyHelp(c, lines);
}
