/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Creates placeholders and counts them (placeholder.h). Invariant: the names of their types are in
 * a table whose entries are never removed. The table has a fixed size, as the names come from
 * files; its last entry stands for all further names.
 *
 * The content of a placeholder is a packed set of the numbers of its elements, or `unknown_items`.
 * Background threads free values, so the number of all elements is atomic. */
#include "store/placeholder.h"

#include <stdio.h>
#include <string.h>

#include "base/base.h"
#include "ds/intset.h"
#include "store/type_module.h"

enum { TYPES_MAX = 32, TYPE_NAME_SIZE = 24 };

static char unknown_items; /* its address is the content of placeholders with unknown elements */
static int64_t items_total;

static void countItems(int64_t change) {
    int64_t now = __atomic_add_fetch(&items_total, change, __ATOMIC_RELAXED);
    hotCheck(now >= 0);
}

static void freeItems(const moduleType *t, void *value) {
    (void)t; /* all types have the same content */
    if (value == &unknown_items) return;
    countItems(-(int64_t)intsetCount(value));
    memFree(value);
}

/* True if one more placeholder may know `count` elements. */
static bool itemsFit(size_t count) {
    int64_t sum = __atomic_load_n(&items_total, __ATOMIC_RELAXED) + (int64_t)count;
    return sum <= PLACEHOLDER_ITEMS_TOTAL_MAX;
}

static void *copyItems(const moduleType *t, const valuePlace *from, const valuePlace *to,
                       void *value) {
    (void)t, (void)from, (void)to; /* the content depends on none of them */
    if (value == &unknown_items || !itemsFit(intsetCount(value))) return &unknown_items;
    void *copy = memAlloc(intsetSize(value));
    memcpy(copy, value, intsetSize(value));
    countItems((int64_t)intsetCount(copy));
    return copy;
}

static size_t itemsMemory(const moduleType *t, const valuePlace *at, const void *value,
                          size_t samples) {
    (void)t, (void)at, (void)samples; /* one block */
    return value == &unknown_items ? 0 : memSizeOf(value);
}

static const moduleTypeOps placeholder_ops = {
    .free_value = freeItems, .copy = copyItems, .memory = itemsMemory};

static struct {
    moduleType types[TYPES_MAX];
    char names[TYPES_MAX][TYPE_NAME_SIZE];
    int count;
    bool allowed;
    void (*made)(void);
} placeholders;

void placeholdersAllow(bool on) { placeholders.allowed = on; }
void placeholdersSetProc(void (*made)(void)) { placeholders.made = made; }
bool placeholdersAreAllowed(void) { return placeholders.allowed; }

static moduleType *typeNamed(const char *name) {
    hotCheck(placeholders.count <= TYPES_MAX);
    for (int i = 0; i < placeholders.count; i++) {
        if (!strncmp(placeholders.names[i], name, TYPE_NAME_SIZE - 1))
            return &placeholders.types[i];
    }
    if (placeholders.count == TYPES_MAX) return &placeholders.types[TYPES_MAX - 1];
    int at = placeholders.count++;
    if (placeholders.count == TYPES_MAX) name = "others";
    snprintf(placeholders.names[at], TYPE_NAME_SIZE, "%s", name);
    placeholders.types[at] = (moduleType){.name = placeholders.names[at], .ops = &placeholder_ops};
    return &placeholders.types[at];
}

const moduleType *placeholderTypeFind(slice name) {
    hotCheck(placeholders.count <= TYPES_MAX);
    for (int i = 0; i < placeholders.count; i++) {
        if (sliceIs(name, placeholders.names[i])) return &placeholders.types[i];
    }
    return NULL;
}

uint64_t placeholderCount(void) {
    uint64_t sum = 0;
    for (int i = 0; i < placeholders.count; i++)
        sum += __atomic_load_n(&placeholders.types[i].values, __ATOMIC_ACQUIRE);
    return sum;
}

robj *placeholderNew(slice key, const char *type) {
    check(type != NULL);
    if (placeholderCount() >= PLACEHOLDERS_MAX) return NULL;
    moduleType *t = typeNamed(type);
    if (placeholders.made) placeholders.made();
    return moduleObjectNew(key, t, &unknown_items);
}

bool objectIsPlaceholder(const robj *o) {
    return objectType(o) == TYPE_MODULE && moduleValueOf(o)->type->ops == &placeholder_ops;
}

bool placeholderHasType(const robj *o, const char *type) {
    hotCheck(objectIsPlaceholder(o));
    return moduleValueOf(o)->type == typeNamed(type);
}

/* ------------------------------------------------------------------ elements */

static bool itemsAreKnown(const robj *o) { return moduleValueOf(o)->content != &unknown_items; }

void placeholderItemsForget(robj *o) {
    hotCheck(objectIsPlaceholder(o));
    moduleValue *v = moduleValueOf(o);
    freeItems(v->type, v->content);
    v->content = &unknown_items;
}

void placeholderItemsBegin(robj *o) {
    placeholderItemsForget(o);
    uint8_t *set = memAlloc(INTSET_HEADER);
    intsetInit(set);
    moduleValueOf(o)->content = set;
}

void placeholderItemAdd(robj *o, int64_t item) {
    hotCheck(objectIsPlaceholder(o));
    if (!itemsAreKnown(o)) return;
    moduleValue *v = moduleValueOf(o);
    packBuffer buffer = packBufferHeap(v->content);
    if (intsetCount(v->content) < PLACEHOLDER_ITEMS_MAX && itemsFit(1)) {
        countItems(intsetAdd(&buffer, item));
        v->content = buffer.bytes;
    } else if (!intsetFind(v->content, item, NULL)) {
        placeholderItemsForget(o);
    }
}

void placeholderItemsRemove(robj *o, int64_t from, int64_t to) {
    hotCheck(from <= to);
    if (!itemsAreKnown(o)) return;
    moduleValue *v = moduleValueOf(o);
    packBuffer buffer = packBufferHeap(v->content);
    size_t first, end;
    (void)intsetFind(buffer.bytes, from, &first); /* the result is in `first` */
    end = first;
    while (end < intsetCount(buffer.bytes) && intsetGet(buffer.bytes, end) <= to) end++;
    countItems((int64_t)first - (int64_t)end);
    while (end-- > first) intsetRemoveAt(&buffer, end);
    v->content = buffer.bytes;
}

bool placeholderIsEmpty(const robj *o) {
    hotCheck(objectIsPlaceholder(o));
    return itemsAreKnown(o) && intsetCount(moduleValueOf(o)->content) == 0;
}
