/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Types of values, and reasons for removing keys, for headers that pass objects (object.h) on and
 * do not look into them. */
#ifndef STORE_VALUE_TYPE_H
#define STORE_VALUE_TYPE_H

typedef struct robj robj;

typedef enum valueType {
    TYPE_STRING,
    TYPE_LIST,
    TYPE_SET,
    TYPE_ZSET,
    TYPE_HASH,
    TYPE_STREAM,
    TYPE_MODULE,
    TYPE_PATHHASH, /* the last number that the three bits of an object have room for */
    TYPE_COUNT,
} valueType;

/* Reasons for removing a key. A value that is changed in place is not removed. */
typedef enum storeRemoval {
    REMOVAL_DELETED, /* by a command; a collection that became empty; the key of a flushed slot */
    REMOVAL_EXPIRED, /* found expired, or given a time in the past */
    REMOVAL_EVICTED, /* to stay below the memory limit */
    REMOVAL_OVERWRITTEN, /* another value takes its place */
    REMOVAL_MOVED,       /* renamed, or moved to another database: the value lives on */
} storeRemoval;

#endif
