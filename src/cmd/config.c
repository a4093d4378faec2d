/* SPDX-License-Identifier: BSD-3-Clause
 *
 * CONFIG: access to the configuration registry (config/config.h). GET costs O(options x patterns).
 * Main thread only. */
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
