/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Types that are added at run time, by modules. Their objects are of TYPE_MODULE: the pointer is to
 * a moduleValue, which names the type and holds the module's own pointer. How they are saved is in
 * `format` (format/rdb_module.h).
 *
 * Main thread only, unless said otherwise. */
#ifndef STORE_TYPE_MODULE_H
#define STORE_TYPE_MODULE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/alloc.h"
#include "base/error.h"
#include "base/slice.h"
#include "store/object.h"
#include "store/type.h"

typedef struct moduleType moduleType;

/* The callbacks of a type, with the module's own pointer as `value`; all but `free_value` may be
 * NULL. They must not change the keyspace. */
typedef struct moduleTypeOps {
    /* ANY_THREAD. */
    void (*free_value)(const moduleType *t, void *value);
    /* A copy for the key `to`; NULL: it failed, and the key is not copied. Without the callback it
     * never is. */
    void *(*copy)(const moduleType *t, const valuePlace *from, const valuePlace *to, void *value);
    /* Its memory, estimated from `samples` elements (0: all). */
    size_t (*memory)(const moduleType *t, const valuePlace *at, const void *value, size_t samples);
    /* How many steps it takes to free it; 0: as many as only the background should do. Without it:
     * 1. */
    size_t (*free_effort)(const moduleType *t, const valuePlace *at, const void *value);
    /* The key is about to be removed: before free_value(), which may be called much later by
     * another thread. Not for keys of a database that is flushed. */
    void (*unlink)(const moduleType *t, const valuePlace *at, const void *value);
    /* Adds the value to a digest. */
    void (*digest)(const moduleType *t, const valuePlace *at, const void *value, digest *to);
    /* typeOps.compact_value() */
    uint64_t (*compact)(const moduleType *t, void **value, uint64_t cursor, compaction *by);
} moduleTypeOps;

/* A type, in memory of its owner: valid until it was unregistered. */
struct moduleType {
    const char *name; /* nine characters: TYPE, SCAN TYPE */
    const moduleTypeOps *ops;
    const struct moduleCodec *codec; /* how it is saved; NULL: it is not registered with `format` */
    void *owner;                     /* the module's */
    moduleType *next;                /* private */
    uint64_t values;                 /* number of values that exist; private */
};

/* The value behind the pointer of an object of TYPE_MODULE. */
typedef struct moduleValue {
    moduleType *type;
    void *content; /* the module's */
} moduleValue;

/* ERR_EXISTS if there is a type of that name. */
status moduleTypeRegister(moduleType *t) MUST_USE;
/* ERR_AGAIN while values of it exist; a background thread may be freeing the last ones. */
status moduleTypeUnregister(moduleType *t) MUST_USE;
/* The type with that name, ignoring case, or NULL. */
moduleType *moduleTypeFind(slice name);
/* True if any type is registered. */
bool moduleTypesExist(void);

/* A new object, which owns `content`. */
robj *moduleObjectNew(slice key, moduleType *t, void *content);
static inline moduleValue *moduleValueOf(const robj *o) { return objectPointer(o); }

#endif
