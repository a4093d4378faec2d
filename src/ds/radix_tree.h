/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Radix tree: a sorted map of byte strings to leaves, which finds the stored paths that are a
 * prefix of a text in one descent. Paths may be empty, may contain any byte, and may be prefixes of
 * each other.
 *
 * A leaf is a block of the caller's. It has the end of its path, the `rest`, which no other path
 * shares; the beginning is in the nodes above it. So a path whose neighbours differ early takes
 * little more than its own bytes and one word. The functions get the radixType that tells where the
 * rest is. Cost of an operation: O(bytes of the path), one cache miss or two for each byte at which
 * paths part. One thread at a time. */
#ifndef DS_RADIX_TREE_H
#define DS_RADIX_TREE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/alloc.h"
#include "base/slice.h"
#include "base/str.h"

/* All zero: an empty tree. Leaves and nodes are aligned to 8. */
typedef struct radixTree {
    uint64_t root;
    uint64_t count;    /* of paths */
    size_t node_bytes; /* memory of the nodes */
} radixTree;

/* Leaves of the caller's, and the memory of nodes. */
typedef struct radixType {
    /* The rest of a leaf; borrowed. */
    slice (*rest)(const void *leaf);
    /* Gives a leaf another rest, which may be a part of it; returns its new address. */
    void *(*set_rest)(radixTree *t, void *leaf, slice rest);
    void *(*alloc)(size_t size);
    /* `by` is the argument of radixFree(), else NULL. */
    void (*free)(void *node, void *by);
    /* Bytes that alloc(size) takes. */
    size_t (*taken)(size_t size);
} radixType;

/* Where the reference to a leaf is. Valid until the tree changes. */
typedef struct radixPlace {
    char *word;
} radixPlace;

/* The leaf with exactly this path, NULL if there is none. `at` may be NULL. */
void *radixFind(const radixTree *t, const radixType *type, slice path, radixPlace *at);
/* The leaf of the longest path that `text` begins with, NULL if there is none. *len is its
 * length. */
void *radixLongest(const radixTree *t, const radixType *type, slice text, size_t *len);
/* Visits the leaves of all paths that `text` begins with, shortest first. */
typedef void radixVisitProc(void *arg, size_t len, void *leaf);
void radixPrefixes(const radixTree *t, const radixType *type, slice text, radixVisitProc *visit,
                   void *arg);
/* Makes a place for a path that is missing. The caller creates the leaf with *rest, a part of
 * `path`, and must call radixPut() before any other function. */
radixPlace radixAdd(radixTree *t, const radixType *type, slice path, slice *rest) MUST_USE;
/* Stores the address of a leaf: a new one, or one that has moved. */
void radixPut(radixPlace at, void *leaf);
/* Removes a path. Returns its leaf, which is the caller's, or NULL if there is none. */
void *radixRemove(radixTree *t, const radixType *type, slice path) MUST_USE;
/* Frees the nodes and passes each leaf on; the tree is empty then. */
void radixFree(radixTree *t, const radixType *type, void (*free_leaf)(void *leaf, void *by),
               void *by);
/* Checks all invariants; NULL, or what is wrong. For tests. */
const char *radixVerify(const radixTree *t, const radixType *type);

/* ---- walks in byte order ---- */

/* Position in the tree, which must not change meanwhile except by radixPut(). */
typedef struct radixCursor {
    const radixTree *t; /* private */
    const radixType *type;
    void *(*move)(void *node, void *arg);
    void *arg;
    str path;
    struct radixFrame *frames;
    size_t depth, cap;
    radixPlace last;
} radixCursor;
/* Before the first path. */
void radixCursorInit(radixCursor *c, const radixTree *t, const radixType *type);
/* The same for a walk that moves nodes: move() returns the new address of a node, or NULL. */
void radixCursorInitMoving(radixCursor *c, radixTree *t, const radixType *type,
                           void *(*move)(void *node, void *arg), void *arg);
/* Before the first path that is not less than `from`; `after`: that is greater. */
void radixCursorSeek(radixCursor *c, slice from, bool after);
/* False at the end. The path is valid until the next call. */
bool radixCursorNext(radixCursor *c, slice *path, void **leaf);
/* Where the reference to the leaf of the last radixCursorNext() is. */
static inline radixPlace radixCursorPlace(const radixCursor *c) { return c->last; }
void radixCursorClear(radixCursor *c);

#endif
