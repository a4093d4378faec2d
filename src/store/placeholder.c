/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Creates placeholders and counts them (placeholder.h). Invariant: the names of their types are in
 * a table whose entries are never removed. The table has a fixed size, as the names come from
 * files; its last entry stands for all further names. */
#include "store/placeholder.h"

#include <stdio.h>
#include <string.h>

#include "base/base.h"
#include "store/type_module.h"

enum { TYPES_MAX = 32, TYPE_NAME_SIZE = 24 };

static void freeNothing(const moduleType *t, void *value) {
    (void)t, (void)value; /* there is no content */
}

static void *copyNothing(const moduleType *t, const valuePlace *from, const valuePlace *to,
                         void *value) {
    (void)t, (void)from, (void)to;
    return value; /* not NULL */
}

static const moduleTypeOps placeholder_ops = {.free_value = freeNothing, .copy = copyNothing};

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
    return moduleObjectNew(key, t, t); /* the value: any pointer that is not NULL */
}

bool objectIsPlaceholder(const robj *o) {
    return objectType(o) == TYPE_MODULE && moduleValueOf(o)->type->ops == &placeholder_ops;
}
