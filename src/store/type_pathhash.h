/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Path hashes as values of objects: a sorted map of paths, binary strings that may be empty, to
 * fields with values. Always behind the pointer of its object, and changed in place. A path has a
 * field at least; the map may have no path. Main thread only, except freeing. */
#ifndef STORE_TYPE_PATHHASH_H
#define STORE_TYPE_PATHHASH_H

#include <stdbool.h>
#include <stdint.h>

#include "base/alloc.h"
#include "ds/radix_tree.h"
#include "store/object.h"
#include "store/path_fields.h"

typedef struct pathHash pathHash;

/* Creates an object with an empty map, for a key that does not exist. */
robj *pathHashObjectNew(slice key) MUST_USE;
/* The map of an object of TYPE_PATHHASH. */
static inline pathHash *pathHashOf(const robj *o) { return objectPointer(o); }
/* True if there is a value of this type in the process, or one is still to be freed. */
bool pathHashesExist(void);

uint64_t pathHashCount(const pathHash *p);
/* Number of fields of all paths. */
uint64_t pathHashFields(const pathHash *p);
/* The greatest number of fields that a path with a table has ever had, 0 if there was none. */
size_t pathHashLargest(const pathHash *p);
/* The fields of a path; NULL if it is missing. Borrowed until the next change of the map. */
const pathFields *pathHashFind(const pathHash *p, slice path);
/* The fields of the longest path that `text` begins with, whose length is in *len; NULL: there is
 * none. */
const pathFields *pathHashLongest(const pathHash *p, slice text, size_t *len);
/* Visits all paths that `text` begins with, shortest first. */
void pathHashPrefixes(const pathHash *p, slice text, radixVisitProc *visit, void *arg);
/* Sets fields of a path: `count` words, alternating field and value, not 0. */
void pathHashSet(pathHash *p, slice path, const slice *words, size_t count,
                 const packLimits *limits);
/* Removes fields of a path, and the path with its last one. Returns the number of fields
 * removed. */
uint64_t pathHashDeleteFields(pathHash *p, slice path, const slice *fields, size_t count);
/* Removes a path; false if it is missing. */
bool pathHashDelete(pathHash *p, slice path);
/* Removes all paths that begin with `prefix`. Returns their number. */
uint64_t pathHashDeletePrefix(pathHash *p, slice prefix);
/* Checks all invariants; NULL, or what is wrong. For tests. */
const char *pathHashVerify(const pathHash *p);

/* Iterates over the paths in byte order; the map must not change meanwhile. */
typedef struct pathHashCursor {
    radixCursor walk; /* private */
} pathHashCursor;
void pathHashCursorInit(pathHashCursor *c, const pathHash *p);
/* Before the first path that is not less than `from`; `after`: that is greater. */
void pathHashCursorSeek(pathHashCursor *c, slice from, bool after);
/* False at the end. The path is valid until the next call. */
bool pathHashNext(pathHashCursor *c, slice *path, const pathFields **fields);
void pathHashCursorClear(pathHashCursor *c);

#endif
