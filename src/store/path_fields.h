/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Fields and values of one path of a path hash, in one block that also has the rest of the path
 * (ds/radix_tree.h):
 *
 *   [255, if the fields are a table] [length] [rest of the path] [listpack of fields and values]
 *                                                    or: [object without key, with a table: 13]
 *
 * Lengths are encoded as in objects (object.h) and never begin with 255. Few short fields are a
 * listpack, others a table as in a large hash (type_hash.h). The block has a field at least, except
 * between pathFieldsNew() and the first pathFieldsSet(). Functions that change it return where it
 * is afterwards. Main thread only, except freeing. */
#ifndef STORE_PATH_FIELDS_H
#define STORE_PATH_FIELDS_H

#include <stdbool.h>
#include <stddef.h>

#include "base/alloc.h"
#include "store/type.h"
#include "store/type_hash.h"

typedef struct pathFields pathFields;

/* Without fields. */
pathFields *pathFieldsNew(slice rest) MUST_USE;
slice pathFieldsRest(const pathFields *f);
/* The same fields with another rest, which may be a part of `f`, which is freed. */
pathFields *pathFieldsMove(pathFields *f, slice rest) MUST_USE;
/* A copy with another rest. */
pathFields *pathFieldsCopy(const pathFields *f, slice rest) MUST_USE;
void pathFieldsFree(pathFields *f, valueFreer *by);
size_t pathFieldsCount(const pathFields *f);
bool pathFieldsAreTable(const pathFields *f);
/* Memory of the block, and of the table, estimated from `samples` elements. */
size_t pathFieldsBlockBytes(const pathFields *f);
size_t pathFieldsTableBytes(const pathFields *f, size_t samples);
/* The value of a field, which may be in `digits` (NUMBER_TEXT_MAX). */
bool pathFieldsGet(const pathFields *f, slice field, char *digits, slice *value);
/* Sets a field; the texts must not be in the block. *created is true if it is new. */
pathFields *pathFieldsSet(pathFields *f, slice field, slice value, const packLimits *limits,
                          bool *created) MUST_USE;
/* Removes a field; false if it is missing. */
bool pathFieldsDelete(pathFields **f, slice field);
/* Moves the block and the table's parts to reduce fragmentation; *cursor is 0 at first, and at the
 * end. */
pathFields *pathFieldsCompact(pathFields *f, uint64_t *cursor, compaction *by) MUST_USE;

/* Iterates over the fields, which must not change meanwhile. */
typedef struct pathFieldsIterator {
    const uint8_t *at; /* private */
    bool is_table;
    hashIterator table;
    char digits[2][NUMBER_TEXT_MAX];
} pathFieldsIterator;
void pathFieldsIteratorInit(pathFieldsIterator *it, const pathFields *f);
/* False at the end. The pair is valid until the next call. */
bool pathFieldsNext(pathFieldsIterator *it, hashPair *out);
void pathFieldsIteratorClear(pathFieldsIterator *it);

#endif
