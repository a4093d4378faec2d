/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Operations of each value type, with which keys of any type are freed, copied, measured and
 * compared. A value is embedded in its object or behind its pointer (FORM_POINTER). Main thread
 * only. */
#ifndef STORE_TYPE_H
#define STORE_TYPE_H

#include <stdbool.h>
#include <stddef.h>

#include "base/number.h"
#include "ds/hashtable.h"
#include "store/digest.h"
#include "store/look.h"
#include "store/object.h"
#include "store/slab.h"

/* How values are freed: all zero: by the main thread; by another thread through `remote`; or
 * together with `whole`, the store of their elements, so that only memory outside it is freed. */
typedef struct valueFreer {
    slabRemote *remote;
    const slabStore *whole;
    struct compressedDrops *drops; /* notes what is compressed; NULL: by the main thread */
} valueFreer;

/* Limits of the packed encoding. */
typedef struct packLimits {
    size_t entries, bytes; /* of the largest entry */
} packLimits;

/* The key that a value belongs to, for callbacks that want to know. Borrowed for the call. Where a
 * value has no key (yet, or any more) they get NULL. */
typedef struct valuePlace {
    int db_id; /* -1: unknown */
    slice key;
} valuePlace;

/* State of a compaction of values, in steps. */
typedef struct compaction {
    bool heap;            /* also move blocks outside the slab stores */
    valuePlace at;        /* of the value */
    size_t fields;        /* remaining elements that this step may visit */
    uint64_t moved, kept; /* numbers of blocks */
} compaction;

/* An element of a value that is a table, or a path. */
typedef struct valueElement {
    slice name;      /* the field, the member; may be in `digits` */
    slice value;     /* of a field */
    int64_t time_ms; /* of a field; -1: none. Not set by `read` if there is `times_of` */
    double score;
    const struct pathFields *fields; /* of a path, in place of what follows the name */
    char digits[NUMBER_TEXT_MAX];
} valueElement;

/* How to visit the elements of such a value. */
typedef struct valueElements {
    hashtable (*table_of)(const void *value); /* not owned; of NULL: an empty one */
    const hashtableType *type;
    void (*read)(const void *entry, valueElement *out);
    /* The hash under which the table has an element; `is_text` is true if it is
     * elementNameHash(). */
    uint64_t (*hash_of)(slice name, bool *is_text);
    /* Where the expiry times of its elements are; returns NULL if none has one. NULL: they are in
     * the elements. */
    struct memberTimes *(*times_of)(const void *value);
} valueElements;

typedef struct typeOps {
    /* As objectEncoding() and objectLength(), but not for compressed collections. */
    const char *(*encoding)(const robj *o);
    size_t (*length)(const robj *o);
    /* Adds the value to a digest: equal values add the same, whatever their encoding. Items not
     * visible to `look` are omitted. Not for compressed values. */
    void (*digest)(const robj *o, int db_id, storeLook look, digest *to);
    /* For values behind a pointer: free; copy or share; memory (estimated from `samples` elements;
     * 0: all); cost of freeing in elements (NULL: one). copy_value() returns NULL if it fails;
     * can_copy() is NULL where it never does. */
    void (*free_value)(void *value, valueFreer *by);
    bool (*can_copy)(const void *value);
    void *(*copy_value)(const valuePlace *from, const valuePlace *to, void *value);
    size_t (*free_effort)(const valuePlace *at, const void *value);
    /* Before the key is removed, on the main thread; not for databases that are flushed. NULL: not
     * needed. */
    void (*unlink_value)(const valuePlace *at, const void *value);
    /* True while the value has other references, so that only the main thread may free it. NULL:
     * never. ANY_THREAD, and so is free_value() if it is false. */
    bool (*is_shared)(const void *value);
    size_t (*value_memory)(const valuePlace *at, const void *value, size_t samples);
    /* Moves elements and blocks, including the value itself (*value changes), to reduce
     * fragmentation, starting at `cursor` (0 at first), until `fields` are used up. Returns the
     * next cursor, 0 at the end. */
    uint64_t (*compact_value)(void **value, uint64_t cursor, compaction *by);
    /* Large values have elements in the slab store of elements. */
    bool has_elements;
    /* Large values of this type are tables; NULL: they are not. */
    const valueElements *elements;
    /* Statistics of a value that is a table (NULL: never). */
    void (*table_stats)(const void *value, hashtableStats *out);
} typeOps;

extern const typeOps stringOps, listOps, hashOps, setOps, zsetOps, streamOps, moduleOps,
    pathHashOps;

/* Mixes type, value and whether there is an expiry time into the digest, without the key. `db_id`
 * -1: unknown. */
void objectDigestAt(const robj *o, int db_id, storeLook look, digest *out);
static inline void objectDigest(const robj *o, storeLook look, digest *out) {
    objectDigestAt(o, -1, look, out);
}

const typeOps *typeOf(const robj *o);
/* The encoding shown by OBJECT ENCODING; length of a string, number of elements of a collection. Of
 * compressed values, too. */
const char *objectEncoding(const robj *o);
size_t objectLength(const robj *o);
/* "string", "list" and so on; for TYPE_MODULE the name that the module has given. */
const char *objectTypeName(const robj *o);
/* A type to look for. */
typedef struct typeFilter {
    valueType type;
    const struct moduleType *module; /* for TYPE_MODULE */
} typeFilter;
/* The type with that name, ignoring case; false if there is none. */
bool typeFind(slice name, typeFilter *out);
bool typeMatches(const typeFilter *f, const robj *o);

#endif
