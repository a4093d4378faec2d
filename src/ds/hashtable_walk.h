/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Walks a hashtable in slices while it changes, with a cut that separates the entries visited from
 * the others.
 *
 * The cut is a position in the hash space, not in the array: whether an entry has been passed
 * depends on its hash alone, so neither a resize nor the displacement of an entry from its home
 * bucket can carry an entry across the cut. Unlike a scan (hashtableScan()), a walk never restarts.
 * It visits about 20 ns per entry when entries are read, because it prefetches them across buckets.
 * Same threads as the table. */
#ifndef DS_HASHTABLE_WALK_H
#define DS_HASHTABLE_WALK_H

#include <stdbool.h>
#include <stdint.h>

#include "ds/hashtable.h"

/* Position of a walk. The hash space is divided into 2^block_bits blocks of equal width, which are
 * visited in the order of their bit-reversed numbers; hashes ascend within a block. */
typedef struct hashtableCut {
    uint64_t place; /* places (see hashtable_walk.c) below it are passed */
    unsigned block_bits;
    bool ended; /* all hashes are passed */
} hashtableCut;

/* Starts a walk: no hash is passed. */
void hashtableCutBegin(hashtableCut *cut, const hashtable *t);
/* True if the walk has visited the part of the hash space that contains this hash. */
bool hashtableCutPassed(const hashtableCut *cut, uint64_t hash);

/* Receives an entry and its flags. It must not change the table. false: ends the slice. */
typedef bool hashtableWalkProc(void *context, void *entry, unsigned flags);

/* One slice: visits the entries of at most `buckets` home buckets (not 0) and moves the cut behind
 * them. If `visit` returns false, the slice ends at once and the cut stays where it was, so that
 * the next slice visits the same entries again. Returns true while there is more to visit. */
bool hashtableWalk(const hashtable *t, const hashtableType *type, hashtableCut *cut,
                   uint64_t buckets, hashtableWalkProc *visit, void *context);

#endif
