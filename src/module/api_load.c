/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Functions of modules: those that ValkeyModule_Init() of the header calls, to get the other
 * functions by name and to register the module; and options of a module. */
#include <string.h>

#include "base/base.h"
#include "module/api_table.h"
#include "module/context.h"
#include "module/generated/api.h"

enum {
    SERVER_VERSION = 0x00090102, /* 9.1.2: what modules may expect of this server */
    ALL_OPTIONS = 0x7f,
};

static const apiFunction *find(const char *name) {
    int low = 0, high = apiFunctionCount;
    while (low < high) {
        int middle = (low + high) / 2;
        int order = strcmp(name, apiFunctions[middle].name);
        if (order == 0) return &apiFunctions[middle];
        if (order < 0) {
            high = middle;
        } else {
            low = middle + 1;
        }
    }
    return NULL;
}

int apiGet(const char *name, void *target) {
    static const char valkey[] = "ValkeyModule_", redis[] = "RedisModule_";
    const apiFunction *f = NULL;
    if (!strncmp(name, valkey, sizeof(valkey) - 1)) {
        f = find(name + sizeof(valkey) - 1);
    } else if (!strncmp(name, redis, sizeof(redis) - 1)) {
        const char *rest = name + sizeof(redis) - 1;
        f = find(!strcmp(rest, "DefragRedisModuleString") ? "DefragValkeyModuleString" : rest);
    }
    if (!f) {
        logDebug("A module has asked for the function %s, which does not exist", name);
        return VALKEYMODULE_ERR;
    }
    memcpy(target, &f->proc, sizeof(f->proc));
    return VALKEYMODULE_OK;
}

void apiSetModuleAttribs(ValkeyModuleCtx *ctx, const char *name, int ver, int apiver) {
    if (ctx->module) return;
    ctx->module = moduleNew(name, ver, apiver);
}

int apiIsModuleNameBusy(const char *name) { return registryFind(sliceOf(name)) != NULL; }

void apiSetModuleOptions(ValkeyModuleCtx *ctx, int options) {
    if (ctx->module) ctx->module->options = options;
}

int apiGetModuleOptionsAll(void) { return ALL_OPTIONS; }

int apiGetServerVersion(void) { return SERVER_VERSION; }
