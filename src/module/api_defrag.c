/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Functions of modules: defragmentation. A value is moved in one call of the module's callback, or
 * in several calls if that takes many steps; between these the module keeps a cursor. Only one
 * value at a time is moved in several calls, so there is one cursor. Memory that a module has
 * outside of values is moved once per pass. Main thread only. */
#include "base/base.h"
#include "defrag/defrag.h"
#include "module/generated/api.h"
#include "module/owned.h"
#include "module/types.h"

struct ValkeyModuleDefragCtx {
    uint64_t *moved, *kept;  /* numbers of blocks */
    ValkeyModuleString *key; /* NULL: none */
    int db_id;
    bool in_steps;
    int64_t deadline_us; /* of this step, monotonic */
    unsigned long cursor;
};

enum { STEP_US = 500 }; /* as active-defrag-cycle-us is by default */

/* Of the value that is moved in several steps. */
static unsigned long cursor_now;

uint64_t defragValue(const moduleType *t, void **value, uint64_t cursor, compaction *by) {
    const ValkeyModuleType *type = t->owner;
    hotCheck(type);
    bool in_steps = cursor != 0;
    if (!in_steps && t->ops->free_effort) {
        size_t effort = t->ops->free_effort(t, &by->at, *value);
        in_steps = effort > by->fields;
        cursor_now = 0;
    }
    ValkeyModuleDefragCtx d = {.moved = &by->moved,
                               .kept = &by->kept,
                               .key = moduleStringNew(by->at.key),
                               .db_id = by->at.db_id,
                               .in_steps = in_steps,
                               .cursor = cursor_now};
    if (in_steps) d.deadline_us = clockMonoUs() + STEP_US;
    hotCheck(type->methods.defrag);
    bool more = type->methods.defrag(&d, d.key, value) != 0;
    cursor_now = d.cursor;
    moduleStringRelease(d.key);
    return in_steps && more;
}

/* ------------------------------------------------------------------ outside of values */

typedef struct globalDefrag {
    ownedEntry entry;
    ValkeyModuleDefragFunc proc;
} globalDefrag;

static ownedList globals;

static void defragGlobals(uint64_t *moved, uint64_t *kept) {
    ownedWalkBegin(&globals);
    for (const globalDefrag *g = ownedFirst(&globals); g; g = ownedNext(&globals, &g->entry)) {
        ValkeyModuleDefragCtx d = {.moved = moved, .kept = kept, .db_id = -1};
        g->proc(&d);
    }
    ownedWalkEnd(&globals);
}

int apiRegisterDefragFunc(ValkeyModuleCtx *ctx, ValkeyModuleDefragFunc func) {
    module *m = ctx->module;
    if (!m) return VALKEYMODULE_ERR;
    (void)ownedRemoveAll(&globals, m); /* there need not be one */
    if (!func) return VALKEYMODULE_OK;
    globalDefrag *g = memNew(globalDefrag);
    g->proc = func;
    ownedAdd(&globals, &g->entry, m);
    defragSetOthers(defragGlobals);
    return VALKEYMODULE_OK;
}

void defragRemove(module *m) { (void)ownedRemoveAll(&globals, m); }

/* ------------------------------------------------------------------ what callbacks do */

int apiDefragShouldStop(ValkeyModuleDefragCtx *ctx) {
    return ctx->in_steps && clockMonoUs() >= ctx->deadline_us;
}

int apiDefragCursorSet(ValkeyModuleDefragCtx *ctx, unsigned long cursor) {
    if (!ctx->in_steps) return VALKEYMODULE_ERR;
    ctx->cursor = cursor;
    return VALKEYMODULE_OK;
}

int apiDefragCursorGet(ValkeyModuleDefragCtx *ctx, unsigned long *cursor) {
    if (!ctx->in_steps) return VALKEYMODULE_ERR;
    *cursor = ctx->cursor;
    return VALKEYMODULE_OK;
}

void *apiDefragAlloc(ValkeyModuleDefragCtx *ctx, void *ptr) {
    hotCheck(ctx->moved);
    hotCheck(ctx->kept);
    void *moved = ptr ? memMoveIfSparse(ptr) : NULL;
    *(moved ? ctx->moved : ctx->kept) += 1;
    return moved;
}

ValkeyModuleString *apiDefragValkeyModuleString(ValkeyModuleDefragCtx *ctx,
                                                ValkeyModuleString *str) {
    if (!str || str->refs != 1 || str->array) return NULL;
    hotCheck(!str->borrowed);
    ValkeyModuleString *moved = apiDefragAlloc(ctx, str);
    ValkeyModuleString *s = moved ? moved : str;
    char *text = s->bytes.ptr ? apiDefragAlloc(ctx, s->bytes.ptr) : NULL;
    if (text) s->bytes.ptr = text;
    return moved;
}

const ValkeyModuleString *apiGetKeyNameFromDefragCtx(ValkeyModuleDefragCtx *ctx) {
    return ctx->key;
}

int apiGetDbIdFromDefragCtx(ValkeyModuleDefragCtx *ctx) { return ctx->db_id; }
