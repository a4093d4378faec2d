/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Values of keys in the RDB format: what is stored in a file for a key, and the body of DUMP. Main thread, or a
 * forked child. */
#ifndef FORMAT_RDB_VALUE_H
#define FORMAT_RDB_VALUE_H

#include <stdbool.h>
#include <stdint.h>

#include "format/rdb_format.h"
#include "format/rdb_reader.h"
#include "format/rdb_writer.h"
#include "store/store.h"
#include "store/type_list.h"
#include "store/type_set.h"

/* The type byte that goes with rdbWriteValue(). */
rdbType rdbTypeOf(const robj *o);
/* Whether a reader of this RDB version knows the type. */
bool rdbTypeInVersion(rdbType type, int version);
/* Writes the value, without type and key. Fields of a hash that have expired are written, too. */
void rdbWriteValue(rdbWriter *w, const robj *o);
/* Bytes that rdbWriteValue() writes, with compression: DEBUG OBJECT's serializedlength. */
size_t rdbValueSize(const robj *o);

/* How large packed values may be, as the directives of the types say. */
typedef struct rdbLimits {
    packLimits hash, zset;
    setLimits set;
    listLimits list;
} rdbLimits;

/* How values are read. */
typedef struct rdbReadOptions {
    rdbLimits limits;
    storeLook look; /* fields of hashes that have expired by it are dropped; lookAtAll(): none */
    /* Told of each dropped field; NULL: nobody. */
    void (*field_dropped)(void *arg, slice key, slice field);
    void *arg;
} rdbReadOptions;

/* Reads a value of `type` into a new object for `key`, which the caller owns, without expiry time. *out is NULL after
 * OK when the value has no elements, or all its fields were dropped (*dropped). Fails with ERR_SYNTAX for content that
 * is not valid, ERR_NOT_FOUND for an unknown type, both with the reason in the reader. */
status rdbReadValue(rdbReader *r, int type, slice key, const rdbReadOptions *options, robj **out,
                    bool *dropped) MUST_USE;
/* True if rdbReadValue() has a reader for the type. */
bool rdbTypeIsKnown(int type);

#endif
