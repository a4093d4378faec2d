/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Strings of modules. An array for up to SPARE_ARGS arguments is kept for the next call, so that a
 * command of a module allocates nothing for its arguments. */
#include "module/module_string.h"

#include "base/base.h"

enum { SPARE_ARGS = 16, SPARES = 4 };

static struct {
    argArray *arrays[SPARES];
    int count;
} spare; /* main thread */

/* Threads of modules act for the main thread at times, but have no part in the spares. */
static __thread bool has_spares;

void argArraysStart(void) { has_spares = true; }

ValkeyModuleString *moduleStringNew(slice bytes) {
    ValkeyModuleString *s = memNew(ValkeyModuleString);
    s->bytes = strNew(bytes);
    s->refs = 1;
    return s;
}

ValkeyModuleString *moduleStringNewTake(str *bytes) {
    ValkeyModuleString *s = memNew(ValkeyModuleString);
    s->bytes = *bytes;
    s->refs = 1;
    *bytes = STR_EMPTY;
    return s;
}

void moduleStringOwn(ValkeyModuleString *s) {
    hotCheck(s->refs > 0);
    if (!s->borrowed) return;
    s->bytes = strNew(sliceMake(s->bytes.ptr, s->bytes.len));
    s->borrowed = false;
    if (s->array) s->array->extra++;
}

const char *moduleStringText(ValkeyModuleString *s) {
    if (s->borrowed) moduleStringOwn(s);
    return strText(&s->bytes);
}

void moduleStringKeep(ValkeyModuleString *s) {
    hotCheck(s->refs > 0);
    if (s->borrowed) moduleStringOwn(s);
    moduleStringRef(s);
}

static void arrayRelease(argArray *a) {
    hotCheck(a->live > 0);
    if (--a->live) return;
    bool is_spare = a->count <= SPARE_ARGS && spare.count < SPARES && has_spares;
    if (is_spare) {
        spare.arrays[spare.count++] = a;
    } else {
        memFree(a);
    }
}

void moduleStringRelease(ValkeyModuleString *s) {
    hotCheck(s->refs > 0);
    if (--s->refs) {
        if (s->array) s->array->extra--;
        return;
    }
    if (!s->borrowed) strFree(&s->bytes);
    if (s->array) {
        arrayRelease(s->array);
    } else {
        memFree(s);
    }
}

argArray *argArrayNew(const slice *argv, int argc) {
    hotCheck(threadIsMain());
    hotCheck(argc >= 0);
    argArray *a;
    if (argc <= SPARE_ARGS && has_spares && spare.count) {
        a = spare.arrays[--spare.count];
    } else {
        size_t room = argc <= SPARE_ARGS ? SPARE_ARGS : (size_t)argc;
        a = memAlloc(sizeof(*a) + room * (sizeof(a->items[0]) + sizeof(a->argv[0])));
        a->argv = (ValkeyModuleString **)&a->items[room];
    }
    a->count = argc;
    a->live = argc + 1;
    a->extra = 0;
    for (int i = 0; i < argc; i++) {
        a->items[i] =
            (ValkeyModuleString){.bytes = {.ptr = (char *)argv[i].ptr, .len = argv[i].len},
                                 .refs = 1,
                                 .borrowed = true,
                                 .array = a};
        a->argv[i] = &a->items[i];
    }
    return a;
}

void argArrayEnd(argArray *a) {
    hotCheck(a->live > 0);
    hotCheck(a->extra >= 0);
    if (likely(!a->extra && a->live == a->count + 1)) { /* nobody kept any */
        a->live = 1;
        arrayRelease(a);
        return;
    }
    for (int i = 0; i < a->count; i++) {
        if (a->items[i].refs) moduleStringRelease(&a->items[i]);
    }
    arrayRelease(a);
}

slice *moduleStringSlices(ValkeyModuleString **strings, int count, slice *few, int max) {
    hotCheck(count >= 0);
    slice *all = count <= max ? few : memAlloc((size_t)count * sizeof(*all));
    for (int i = 0; i < count; i++) all[i] = moduleStringSlice(strings[i]);
    return all;
}
