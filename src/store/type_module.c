/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Types added at run time (type_module.h): their list, and the operations of TYPE_MODULE, which
 * pass each call on to the type that the value names. */
#include "store/type_module.h"

#include "base/base.h"
#include "store/db_priv.h"

static moduleType *registered;

/* ------------------------------------------------------------------ the list */

moduleType *moduleTypeFind(slice name) {
    moduleType *t = registered;
    while (t && !sliceIs(name, t->name)) t = t->next;
    return t;
}

bool moduleTypesExist(void) { return registered != NULL; }

/* Callbacks for unlinking are wanted while there are types. */
static void setUnlinks(void) { removalSetUnlinks(registered != NULL); }

status moduleTypeRegister(moduleType *t) {
    check(t->ops->free_value != NULL);
    if (moduleTypeFind(sliceOf(t->name))) return ERR_EXISTS;
    t->values = 0;
    t->next = registered;
    registered = t;
    setUnlinks();
    return OK;
}

status moduleTypeUnregister(moduleType *t) {
    if (__atomic_load_n(&t->values, __ATOMIC_ACQUIRE) != 0) return ERR_AGAIN;
    moduleType **link = &registered;
    while (*link && *link != t) link = &(*link)->next;
    check(*link == t);
    *link = t->next;
    setUnlinks();
    return OK;
}

/* ------------------------------------------------------------------ values */

static moduleValue *valueNew(moduleType *t, void *content) {
    moduleValue *v = memNew(moduleValue);
    v->type = t;
    v->content = content;
    __atomic_fetch_add(&t->values, 1, __ATOMIC_RELAXED);
    return v;
}

robj *moduleObjectNew(slice key, moduleType *t, void *content) {
    return objectNewPointer(key, TYPE_MODULE, valueNew(t, content), OBJECT_NO_EXPIRE, 0);
}

static const char *encodingOf(const robj *o) {
    (void)o; /* the server knows nothing about it */
    return "raw";
}

/* Modules have no number of elements; a value of theirs is never empty. */
static size_t lengthOf(const robj *o) {
    (void)o; /* see above */
    return 1;
}

static void digestValue(const robj *o, int db_id, storeLook look, digest *to) {
    (void)look; /* nothing in it expires, as far as the server knows */
    const moduleValue *v = moduleValueOf(o);
    valuePlace at = {db_id, objectKey(o)};
    if (v->type->ops->digest) v->type->ops->digest(v->type, &at, v->content, to);
}

static void freeValue(void *value, valueFreer *by) {
    (void)by; /* nothing of it is in the store's slabs */
    moduleValue *v = value;
    moduleType *t = v->type;
    t->ops->free_value(t, v->content);
    memFree(v);
    __atomic_fetch_sub(&t->values, 1, __ATOMIC_RELEASE);
}

static bool canCopy(const void *value) {
    const moduleValue *v = value;
    return v->type->ops->copy != NULL;
}

static void *copyValue(const valuePlace *from, const valuePlace *to, void *value) {
    const moduleValue *v = value;
    check(canCopy(v));
    void *content = v->type->ops->copy(v->type, from, to, v->content);
    return content ? valueNew(v->type, content) : NULL;
}

static size_t freeEffort(const valuePlace *at, const void *value) {
    const moduleValue *v = value;
    if (!v->type->ops->free_effort) return 1;
    size_t effort = v->type->ops->free_effort(v->type, at, v->content);
    return effort ? effort : SIZE_MAX;
}

static void unlinkValue(const valuePlace *at, const void *value) {
    const moduleValue *v = value;
    if (v->type->ops->unlink) v->type->ops->unlink(v->type, at, v->content);
}

static size_t memoryOf(const valuePlace *at, const void *value, size_t samples) {
    const moduleValue *v = value;
    size_t bytes = memSizeOf(v);
    return v->type->ops->memory ? bytes + v->type->ops->memory(v->type, at, v->content, samples)
                                : bytes;
}

static uint64_t compactValue(void **value, uint64_t cursor, compaction *by) {
    moduleValue *v = *value;
    return v->type->ops->compact ? v->type->ops->compact(v->type, &v->content, cursor, by) : 0;
}

const typeOps moduleOps = {
    .encoding = encodingOf,
    .length = lengthOf,
    .digest = digestValue,
    .free_value = freeValue,
    .can_copy = canCopy,
    .copy_value = copyValue,
    .free_effort = freeEffort,
    .unlink_value = unlinkValue,
    .value_memory = memoryOf,
    .compact_value = compactValue,
};
