/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Slab store: memory of small blocks that know their size and have one owner reference, and so can
 * be moved: keyspace objects, elements of collections.
 *
 * A store reserves one range of addresses and cuts it into slabs; a slab holds slots of one size
 * class. All bookkeeping lies outside the range, so that a free writes nothing to pages of blocks
 * (cheap while a forked child shares them). Sizes over SLAB_SIZE_MAX, and all sizes once the range is
 * full or the system refuses memory, come from memAlloc(). used_memory counts slots in use and the
 * bookkeeping, exactly and at once.
 *
 * Threads: a store has one owner at a time, the main thread unless handed over; other threads free
 * through a slabRemote. A forked child may read blocks, but neither free nor allocate. */
#ifndef STORE_SLAB_H
#define STORE_SLAB_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/alloc.h"

#define SLAB_SIZE_MAX 4096

typedef struct slabStore slabStore;

/* ---- the stores of the keyspace in use ---- */

/* `size` bytes, 8-byte aligned; never NULL. */
void *slabAlloc(size_t size) __attribute__((returns_nonnull));
/* Gives a block back; `size` is what was asked for, or any other of the same class. */
void slabFree(void *ptr, size_t size);
/* The store behind the two; made on first use. */
slabStore *slabKeyspace(void) __attribute__((returns_nonnull));
/* Hands the whole store over, blocks and all, to be freed with slabStoreFree() by any one thread
 * (a flush of everything). The next slabAlloc() starts a new one. NULL when none was ever used. */
slabStore *slabKeyspaceTake(void);

/* Those of the store of elements of collections; likewise. */
slabStore *slabElements(void) __attribute__((returns_nonnull));
slabStore *slabElementsTake(void);

/* The memory of one keyspace: its objects, and the elements of its collections. NULL: not made yet. */
typedef struct slabPair {
    slabStore *objects, *elements;
} slabPair;
/* From now on slabKeyspace() and slabElements() are these two. Returns those that were, which slabFree() still finds
 * the blocks of, until slabDisown(). */
slabPair slabUse(slabPair pair);
/* Blocks of a pair that slabUse() has returned are no longer freed by slabFree(): the caller frees it whole. */
void slabDisown(slabPair pair);

/* Bytes a block of `size` really takes. ANY_THREAD. */
size_t slabClassSize(size_t size);
/* Bytes a block got for `size` can hold; it may be given back with any size up to that which is of the same
 * class. ANY_THREAD. */
size_t slabUsableSize(size_t size);
/* True when a block got for `a` bytes can hold `b` bytes without waste of another class.
 * ANY_THREAD. */
bool slabSameClass(size_t a, size_t b);

/* ---- stores ---- */

/* `reserve_max`: most bytes of address space, 0 for what is usual. Less when the system has less,
 * down to none. Never NULL. */
slabStore *slabStoreNew(size_t reserve_max) __attribute__((returns_nonnull));
/* Gives everything back at once, whatever still lives in it, but for blocks that are not the store's
 * own. Nobody may hold a slabRemote of the store any more. NULL is fine. ANY_THREAD that owns it. */
void slabStoreFree(slabStore *s);
/* False for a block that came from memAlloc(). ANY_THREAD. */
bool slabOwns(const slabStore *s, const void *ptr);
/* slabAlloc() and slabFree() with any store. */
void *slabAllocFrom(slabStore *s, size_t size) __attribute__((returns_nonnull));
void slabFreeTo(slabStore *s, void *ptr, size_t size);

/* ---- frees from other threads ---- */

/* One per thread and store, begun as {.store = s}. Pointers are collected in batches, so neither side
 * touches the dead blocks. used_memory follows when the owner drains. */
typedef struct slabRemote {
    slabStore *store;
    struct slabBatch *batch;
} slabRemote;
/* ANY_THREAD, but one remote belongs to one thread. */
void slabRemoteFree(slabRemote *r, void *ptr, size_t size);
/* Hands over what is collected: at the end, and whenever the thread pauses. ANY_THREAD. */
void slabRemoteFlush(slabRemote *r);
/* Owner: frees what has arrived, at most `max` blocks. Returns how many. */
size_t slabDrain(slabStore *s, size_t max);

/* ---- giving memory back: called by the owner's cron ---- */

/* Answers a move of `count` <= 32 blocks, each already copied from old[i] to moved[i]. Bit i set: the
 * one reference now points to moved[i]. Clear: refused, the copy is dropped: the block is lent out,
 * or no reference was found (on its way to be freed). May not call the store. */
typedef uint32_t slabRelocateProc(void *arg, void *const *old, void *const *moved, unsigned count);
/* What compaction did; calls add to it. */
typedef struct slabCompactReport {
    uint64_t moved_blocks, moved_bytes, freed_slabs, refused_blocks;
} slabCompactReport;
/* True when there is more to win than about a sixteenth of what lives, or a cycle has begun. */
bool slabShouldCompact(const slabStore *s);
/* Moves blocks out of the sparsest slabs for about `budget_us`, 32 blocks at least. `report` may be
 * NULL. True while a further call would win memory: then go on, now or in the next turn. Nobody may
 * hold pointers to blocks across the call. Does nothing while a child lives. */
bool slabCompact(slabStore *s, slabRelocateProc *proc, void *arg, int64_t budget_us,
                 slabCompactReport *report);
/* For blocks whose owner must be walked to find their references: moves one out of a slab that is emptier than
 * most of its class. Returns its new place, NULL when it stays. */
void *slabMoveIfSparse(slabStore *s, void *block, size_t size);
/* Returns up to `bytes_max` of empty slabs to the system, 10 us or so for 64 KB; returns the bytes.
 * Without it they are kept for reuse, and count as resident. */
size_t slabPurge(slabStore *s, size_t bytes_max);

/* ---- fork ---- */

/* Between the two calls new blocks are packed into slabs taken after the fork instead of into holes,
 * because a hole costs the copy of a page shared with the child. Before fork(), and when the child
 * has ended. */
void slabForkBegin(slabStore *s);
void slabForkEnd(slabStore *s);
/* While true do not write a block in place: replace it. */
bool slabForkActive(const slabStore *s);
/* The same for a block of any store. */
bool slabAnyForked(void);

/* ---- reports ---- */

typedef struct slabStats {
    uint64_t live_blocks;
    size_t live_bytes;        /* slots in use */
    size_t hole_bytes;        /* free slots of slabs in use */
    size_t tail_bytes;        /* ends of slabs too short for a slot */
    size_t empty_bytes;       /* empty slabs that slabPurge() would return */
    size_t metadata_bytes;    /* counted in used_memory, as live_bytes are */
    size_t resident_bytes;    /* the sum of all these: more than this the store never has in RSS */
    size_t recoverable_bytes; /* what compaction would win */
    size_t slabs_in_use;
} slabStats;
void slabGetStats(const slabStore *s, slabStats *out);
/* Walks everything and stops the process at the first broken invariant. Slow: tests, debugging. */
void slabVerify(const slabStore *s);

#endif
