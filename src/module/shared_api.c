/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Functions that modules offer to each other by name. A name belongs to the module that has
 * registered it, and is removed with that module. Main thread only. */
#include "module/shared_api.h"

#include <string.h>

#include "base/base.h"
#include "module/context.h"
#include "module/generated/api.h"

typedef struct sharedFunction {
    struct sharedFunction *next;
    const module *owner;
    const char *name;
    void *func;
} sharedFunction;

/* A module has asked for a function of another one. */
typedef struct sharedUse {
    struct sharedUse *next;
    const module *user, *owner;
} sharedUse;

static sharedFunction *functions;
static sharedUse *uses;

static sharedFunction *find(const char *name) {
    sharedFunction *f = functions;
    while (f && strcmp(f->name, name) != 0) f = f->next;
    return f;
}

int apiExportSharedAPI(ValkeyModuleCtx *ctx, const char *apiname, void *func) {
    if (!ctx->module || find(apiname)) return VALKEYMODULE_ERR;
    sharedFunction *f = memNew(sharedFunction);
    *f = (sharedFunction){functions, ctx->module, apiname, func};
    functions = f;
    return VALKEYMODULE_OK;
}

static void noteUse(const module *user, const module *owner) {
    hotCheck(user);
    hotCheck(owner);
    if (user == owner) return;
    for (const sharedUse *u = uses; u; u = u->next) {
        if (u->user == user && u->owner == owner) return;
    }
    sharedUse *u = memNew(sharedUse);
    *u = (sharedUse){uses, user, owner};
    uses = u;
}

void *apiGetSharedAPI(ValkeyModuleCtx *ctx, const char *apiname) {
    const sharedFunction *f = find(apiname);
    if (!f) return NULL;
    if (ctx->module) noteUse(ctx->module, f->owner);
    return f->func;
}

bool sharedApiIsUsed(const module *m) {
    hotCheck(m);
    for (const sharedUse *u = uses; u; u = u->next) {
        if (u->owner == m) return true;
    }
    return false;
}

static void appendName(const module *m, bool *first, str *out) {
    hotCheck(m->name);
    if (!*first) strAppendByte(out, '|');
    strAppendText(out, m->name);
    *first = false;
}

void sharedApiAppendUsers(const module *m, str *out) {
    bool first = true;
    for (const sharedUse *u = uses; u; u = u->next) {
        if (u->owner == m) appendName(u->user, &first, out);
    }
}

void sharedApiAppendUsed(const module *m, str *out) {
    bool first = true;
    for (const sharedUse *u = uses; u; u = u->next) {
        if (u->user == m) appendName(u->owner, &first, out);
    }
}

void sharedApiRemove(module *m) {
    hotCheck(threadIsMain());
    for (sharedFunction **at = &functions; *at;) {
        sharedFunction *f = *at;
        if (f->owner != m) {
            at = &f->next;
            continue;
        }
        *at = f->next;
        memFree(f);
    }
    for (sharedUse **at = &uses; *at;) {
        sharedUse *u = *at;
        if (u->user != m && u->owner != m) {
            at = &u->next;
            continue;
        }
        *at = u->next;
        memFree(u);
    }
}
