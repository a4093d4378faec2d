/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Functions of modules: command filters. One request filter of the engine calls those of all
 * modules, in the order of their registration.
 *
 * The strings that a filter gets or hands over live until the last filter of the request has
 * returned, unless the module keeps them. Main thread only. */
#include "module/filters.h"

#include "base/base.h"
#include "engine/filter.h"
#include "module/context.h"
#include "module/generated/api.h"
#include "module/module_string.h"
#include "module/owned.h"

struct ValkeyModuleCommandFilter {
    ownedEntry entry;
    ValkeyModuleCommandFilterFunc proc;
    int flags;
};

/* A request that is being filtered. */
struct ValkeyModuleCommandFilterCtx {
    filteredRequest *request;
    argArray *args; /* its arguments as strings, made on demand; NULL after a change */
    /* Strings of before a change, and those that were handed over. */
    argArray **old_args;
    int old_count;
    ValkeyModuleString **taken;
    int taken_count;
};

static ownedList filters; /* a filter may cause another request */

/* ------------------------------------------------------------------ running them */

static void endStrings(ValkeyModuleCommandFilterCtx *f) {
    hotCheck(f->old_count >= 0);
    hotCheck(f->taken_count >= 0);
    if (f->args) argArrayEnd(f->args);
    for (int i = 0; i < f->old_count; i++) argArrayEnd(f->old_args[i]);
    for (int i = 0; i < f->taken_count; i++) moduleStringRelease(f->taken[i]);
    memFree(f->old_args);
    memFree(f->taken);
}

static void runFilters(filteredRequest *request);
static const requestFilter module_filters = {"modules", runFilters};

static void disarmWithoutFilters(void) {
    if (!filters.live && !filters.walks) requestFilterArm(&module_filters, false);
}

static void runFilters(filteredRequest *request) {
    ValkeyModuleCommandFilterCtx f = {.request = request};
    ownedWalkBegin(&filters);
    for (const ValkeyModuleCommandFilter *each = ownedFirst(&filters); each;
         each = ownedNext(&filters, &each->entry)) {
        if (each->flags & VALKEYMODULE_CMDFILTER_NOSELF && each->entry.owner->in_call) continue;
        each->proc(&f);
    }
    endStrings(&f);
    ownedWalkEnd(&filters);
    disarmWithoutFilters();
}

static void removeFilter(ValkeyModuleCommandFilter *f) {
    hotCheck(f->entry.owner->filters > 0);
    f->entry.owner->filters--;
    ownedRemove(&filters, &f->entry);
    disarmWithoutFilters();
}

void filtersRemove(module *m) {
    if (!ownedRemoveAll(&filters, m)) return;
    m->filters = 0;
    disarmWithoutFilters();
}

/* ------------------------------------------------------------------ registration */

ValkeyModuleCommandFilter *apiRegisterCommandFilter(ValkeyModuleCtx *ctx,
                                                    ValkeyModuleCommandFilterFunc cb, int flags) {
    module *m = ctx->module;
    if (!m || !cb) return NULL;
    ValkeyModuleCommandFilter *f = memNew(ValkeyModuleCommandFilter);
    f->proc = cb;
    f->flags = flags;
    ownedAdd(&filters, &f->entry, m);
    requestFilterArm(&module_filters, true);
    m->filters++;
    return f;
}

int apiUnregisterCommandFilter(ValkeyModuleCtx *ctx, ValkeyModuleCommandFilter *filter) {
    for (ValkeyModuleCommandFilter *f = ownedFirst(&filters); f;
         f = ownedNext(&filters, &f->entry)) {
        if (f != filter || f->entry.owner != ctx->module) continue;
        removeFilter(f);
        return VALKEYMODULE_OK;
    }
    return VALKEYMODULE_ERR;
}

/* ------------------------------------------------------------------ arguments */

int apiCommandFilterArgsCount(ValkeyModuleCommandFilterCtx *fctx) {
    return filteredCount(fctx->request);
}

static void makeStrings(ValkeyModuleCommandFilterCtx *f) {
    int count = filteredCount(f->request);
    hotCheck(!f->args);
    hotCheck(count > 0);
    slice few[16], *args = count <= 16 ? few : memNewArray(slice, (size_t)count);
    for (int i = 0; i < count; i++) args[i] = filteredArg(f->request, i);
    f->args = argArrayNew(args, count);
    if (args != few) memFree(args);
}

ValkeyModuleString *apiCommandFilterArgGet(ValkeyModuleCommandFilterCtx *fctx, int pos) {
    if (pos < 0 || pos >= filteredCount(fctx->request)) return NULL;
    if (!fctx->args) makeStrings(fctx);
    return fctx->args->argv[pos];
}

/* The positions have changed. Strings that a filter has got stay valid. */
static void noteChange(ValkeyModuleCommandFilterCtx *f) {
    if (!f->args) return;
    size_t count = (size_t)f->old_count + 1;
    f->old_args = memRealloc(f->old_args, count * sizeof(*f->old_args));
    f->old_args[f->old_count++] = f->args;
    f->args = NULL;
}

/* The caller gives its reference away. */
static void takeString(ValkeyModuleCommandFilterCtx *f, ValkeyModuleString *s) {
    size_t count = (size_t)f->taken_count + 1;
    hotCheck(s->refs > 0);
    f->taken = memRealloc(f->taken, count * sizeof(*f->taken));
    f->taken[f->taken_count++] = s;
    noteChange(f);
}

int apiCommandFilterArgInsert(ValkeyModuleCommandFilterCtx *fctx, int pos,
                              ValkeyModuleString *arg) {
    if (!arg || filteredInsert(fctx->request, pos, moduleStringSlice(arg)) != OK)
        return VALKEYMODULE_ERR;
    takeString(fctx, arg);
    return VALKEYMODULE_OK;
}

int apiCommandFilterArgReplace(ValkeyModuleCommandFilterCtx *fctx, int pos,
                               ValkeyModuleString *arg) {
    if (!arg || filteredReplace(fctx->request, pos, moduleStringSlice(arg)) != OK)
        return VALKEYMODULE_ERR;
    takeString(fctx, arg);
    return VALKEYMODULE_OK;
}

int apiCommandFilterArgDelete(ValkeyModuleCommandFilterCtx *fctx, int pos) {
    if (filteredRemove(fctx->request, pos) != OK) return VALKEYMODULE_ERR;
    noteChange(fctx);
    return VALKEYMODULE_OK;
}

unsigned long long apiCommandFilterGetClientId(ValkeyModuleCommandFilterCtx *fctx) {
    return filteredSession(fctx->request)->id;
}
