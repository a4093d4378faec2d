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

struct ValkeyModuleCommandFilter {
    listNode node;
    module *owner; /* NULL: it was unregistered while filters run, and is freed after them */
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

static struct {
    list all;
    bool ready;
    int depth; /* of requests that are being filtered: a filter may cause another one */
    int gone;  /* filters without an owner */
} filters;

static list *allFilters(void) {
    if (!filters.ready) listInit(&filters.all);
    filters.ready = true;
    return &filters.all;
}

static ValkeyModuleCommandFilter *filterAt(listNode *n) {
    return n ? LIST_OWNER(n, ValkeyModuleCommandFilter, node) : NULL;
}

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

static void freeGone(void);

static void runFilters(filteredRequest *request) {
    ValkeyModuleCommandFilterCtx f = {.request = request};
    hotCheck(filters.depth >= 0);
    filters.depth++;
    listNode *next;
    for (listNode *n = listFirst(&filters.all); n; n = next) {
        const ValkeyModuleCommandFilter *each = filterAt(n);
        module *m = each->owner;
        if (m && !(each->flags & VALKEYMODULE_CMDFILTER_NOSELF && m->in_call)) each->proc(&f);
        next = listNext(&filters.all, n);
    }
    endStrings(&f);
    if (!--filters.depth && filters.gone) freeGone();
}

static const requestFilter module_filters = {"modules", runFilters};

static void freeGone(void) {
    hotCheck(!filters.depth);
    listNode *next;
    for (listNode *n = listFirst(&filters.all); n; n = next) {
        next = listNext(&filters.all, n);
        ValkeyModuleCommandFilter *f = filterAt(n);
        if (f->owner) continue;
        listRemove(&filters.all, n);
        memFree(f);
    }
    filters.gone = 0;
    if (!filters.all.count) requestFilterArm(&module_filters, false);
}

static void removeFilter(ValkeyModuleCommandFilter *f) {
    hotCheck(f->owner->filters > 0);
    f->owner->filters--;
    f->owner = NULL;
    filters.gone++;
    if (!filters.depth) freeGone();
}

void filtersRemove(module *m) {
    listNode *next;
    for (listNode *n = listFirst(allFilters()); n; n = next) {
        next = listNext(&filters.all, n);
        if (filterAt(n)->owner == m) removeFilter(filterAt(n));
    }
    check(!m->filters);
}

/* ------------------------------------------------------------------ registration */

ValkeyModuleCommandFilter *apiRegisterCommandFilter(ValkeyModuleCtx *ctx,
                                                    ValkeyModuleCommandFilterFunc cb, int flags) {
    module *m = ctx->module;
    if (!m || !cb) return NULL;
    ValkeyModuleCommandFilter *f = memNew(ValkeyModuleCommandFilter);
    f->owner = m;
    f->proc = cb;
    f->flags = flags;
    if (!allFilters()->count) requestFilterArm(&module_filters, true);
    listAppend(&filters.all, &f->node);
    m->filters++;
    return f;
}

int apiUnregisterCommandFilter(ValkeyModuleCtx *ctx, ValkeyModuleCommandFilter *filter) {
    for (listNode *n = listFirst(allFilters()); n; n = listNext(&filters.all, n)) {
        if (filterAt(n) != filter || !filter->owner || filter->owner != ctx->module) continue;
        removeFilter(filter);
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
