/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Functions of modules: scans of the selected database, and of the elements of a key. The keys of a
 * step are collected before the module is called, so that it may change the database. */
#include <errno.h>

#include "base/base.h"
#include "engine/ctx.h"
#include "module/generated/api.h"
#include "module/key.h"
#include "module/thread_context.h"
#include "store/store.h"
#include "store/type_hash.h"
#include "store/type_set.h"
#include "store/type_zset.h"

struct ValkeyModuleScanCursor {
    uint64_t at;
    bool done;
};

ValkeyModuleScanCursor *apiScanCursorCreate(void) {
    ValkeyModuleScanCursor *cursor = memNew(ValkeyModuleScanCursor);
    apiScanCursorRestart(cursor);
    return cursor;
}

void apiScanCursorRestart(ValkeyModuleScanCursor *cursor) {
    *cursor = (ValkeyModuleScanCursor){0, false};
}

void apiScanCursorDestroy(ValkeyModuleScanCursor *cursor) {
    if (!cursor) return;
    memFree(cursor);
}

/* ------------------------------------------------------------------ collecting */

/* Results of a step: names, each with a second text if `has_values`. */
typedef struct found {
    ValkeyModuleString **texts; /* two for each */
    size_t count, max;
} found;

static void addFound(found *f, slice name, const slice *value) {
    hotCheck(f->count <= f->max);
    if (f->count == f->max) {
        f->max = f->max ? f->max * 2 : 16;
        f->texts = memRealloc(f->texts, f->max * 2 * sizeof(f->texts[0]));
    }
    f->texts[f->count * 2] = moduleStringNew(name);
    f->texts[f->count * 2 + 1] = value ? moduleStringNew(*value) : NULL;
    f->count++;
}

static void freeFound(found *f) {
    hotCheck(f->count <= f->max);
    for (size_t i = 0; i < f->count * 2; i++) {
        if (f->texts[i]) moduleStringRelease(f->texts[i]);
    }
    memFree(f->texts);
}

static void addKey(void *arg, const robj *o) { addFound(arg, objectKey(o), NULL); }

static void addPair(void *arg, const hashPair *pair) { addFound(arg, pair->field, &pair->value); }

static void addMember(void *arg, const listpackItem *member) {
    char digits[NUMBER_TEXT_MAX];
    addFound(arg, listpackText(member, digits), NULL);
}

static void addScored(void *arg, const zsetPair *pair) {
    char digits[NUMBER_TEXT_MAX];
    slice score = sliceMake(digits, numberPrintDouble(digits, pair->score));
    addFound(arg, pair->member, &score);
}

/* ------------------------------------------------------------------ keys */

int apiScan(ValkeyModuleCtx *ctx, ValkeyModuleScanCursor *cursor, ValkeyModuleScanCB fn,
            void *privdata) {
    const struct ctx *c = cursor->done ? NULL : contextUse(ctx);
    if (!c) {
        errno = ENOENT;
        return 0;
    }
    errno = 0;
    db *d = c->db;
    found keys = {NULL, 0, 0};
    cursor->at = dbScan(d, cursor->at, -1, addKey, &keys);
    cursor->done = cursor->at == 0;
    for (size_t i = 0; i < keys.count; i++) {
        ValkeyModuleString *name = keys.texts[i * 2];
        ValkeyModuleKey *key =
            keyOpen(ctx, d, name, VALKEYMODULE_READ | VALKEYMODULE_OPEN_KEY_NOEFFECTS);
        /* One that has expired, or that the module has deleted meanwhile, is left out. */
        if (key->object) fn(ctx, name, key, privdata);
        apiCloseKey(key);
    }
    freeFound(&keys);
    return !cursor->done;
}

/* ------------------------------------------------------------------ elements */

/* A step over a key of this type; false: it has no elements to scan. */
static bool scanObject(const ValkeyModuleKey *k, const robj *o, uint64_t *at, found *f) {
    switch (objectType(o)) {
    case TYPE_HASH: *at = hashScan(o, k->owner->run->look, *at, addPair, f); return true;
    case TYPE_SET: *at = setScan(o, *at, addMember, f); return true;
    case TYPE_ZSET: *at = zsetScan(o, *at, addScored, f); return true;
    default: return false;
    }
}

int apiScanKey(ValkeyModuleKey *key, ValkeyModuleScanCursor *cursor, ValkeyModuleScanKeyCB fn,
               void *privdata) {
    const robj *o = key ? keyValue(key) : NULL;
    found elements = {NULL, 0, 0};
    errno = 0;
    if (!o || !key->owner->run) {
        errno = EINVAL;
    } else if (cursor->done) {
        errno = ENOENT;
    } else if (!scanObject(key, o, &cursor->at, &elements)) {
        errno = EINVAL;
    }
    if (errno) return 0;
    cursor->done = cursor->at == 0;
    hotCheck(!elements.count || elements.texts);
    for (size_t i = 0; i < elements.count; i++)
        fn(key, elements.texts[i * 2], elements.texts[i * 2 + 1], privdata);
    freeFound(&elements);
    errno = 0;
    return !cursor->done;
}
