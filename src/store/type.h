/* SPDX-License-Identifier: BSD-3-Clause
 *
 * What each type of value must offer so that keys can be freed, copied, measured and compared whatever they
 * hold. A value is embedded in its object or stands behind its pointer (FORM_POINTER). Main thread only. */
#ifndef STORE_TYPE_H
#define STORE_TYPE_H

#include <stdbool.h>
#include <stddef.h>

#include "ds/hashtable.h"
#include "store/digest.h"
#include "store/look.h"
#include "store/object.h"
#include "store/slab.h"

/* How values are given up: all zero by the main thread; by another thread through `remote`; or because all
 * elements go with their store, `whole`, so that only what lies outside it is freed. */
typedef struct valueFreer {
    slabRemote *remote;
    const slabStore *whole;
} valueFreer;

/* Up to where a value is kept packed. */
typedef struct packLimits {
    size_t entries, bytes; /* of the largest one */
} packLimits;

/* A compaction of values, in steps. */
typedef struct compaction {
    bool heap;            /* blocks outside the stores of objects and elements move too */
    size_t fields;        /* elements this step may still look at */
    uint64_t moved, kept; /* blocks; counted up */
} compaction;

typedef struct typeOps {
    /* What OBJECT ENCODING answers. */
    const char *(*encoding)(const robj *o);
    /* Bytes of a string, elements of what has elements. */
    size_t (*length)(const robj *o);
    /* Adds the value to a digest: equal values, however kept, add the same. What `look` does not see is left out. */
    void (*digest)(const robj *o, storeLook look, digest *to);
    /* Of a value behind a pointer: gives it up; a second owner for an equal one; bytes it takes (elements
     * are sampled; 0 samples: all are looked at); what freeing it costs, in elements (NULL: one). */
    void (*free_value)(void *value, valueFreer *by);
    void *(*copy_value)(void *value);
    size_t (*free_effort)(const void *value);
    /* True while others hold the value too, so that only the main thread may free it. NULL: never. ANY_THREAD,
     * and free_value() where it says false. */
    bool (*is_shared)(const void *value);
    size_t (*value_memory)(const void *value, size_t samples);
    /* Moves elements and blocks that are better placed elsewhere, the value's own too (*value changes), from `cursor`
     * (0 to begin) on until `fields` are used up; returns the next cursor, 0 at the end. */
    uint64_t (*compact_value)(void **value, uint64_t cursor, compaction *by);
    /* Large values have elements in the store of elements. */
    bool has_elements;
    /* Bytes of the value in an RDB file without compression. */
    size_t (*saved_size)(const robj *o);
    /* Of a value that is one table (NULL: none ever is): walks it. */
    void (*table_stats)(const void *value, hashtableStats *out);
} typeOps;

/* Bytes of a text in an RDB file without compression: of itself, and of the length of `len` things. */
size_t savedTextSize(slice text);
static inline size_t savedLengthSize(size_t len) { return len < 64 ? 1 : len < 16384 ? 2 : 5; }

extern const typeOps stringOps, listOps, hashOps, setOps, zsetOps, streamOps;

/* Stands for type, value and whether there is an expire time; not for the key. `out` begins all zero. */
void objectDigest(const robj *o, storeLook look, digest *out);

const typeOps *typeOf(const robj *o);
/* "string", "list" and so on. */
const char *typeName(valueType type);
/* The type of that name, in any case; false when there is none. */
bool typeFind(slice name, valueType *out);

#endif
