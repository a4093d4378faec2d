/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Slab store: memory for small blocks whose size is known and that have exactly one reference, so
 * that they can be moved: keyspace objects and elements of collections.
 *
 * A store reserves one address range and divides it into slabs; a slab holds slots of one size
 * class. All metadata is outside the slabs, so that freeing does not write to pages of blocks
 * (cheap while a forked child shares them). Sizes above SLAB_SIZE_MAX, and all sizes once the range
 * is full or the system refuses memory, come from memAlloc(). used_memory includes used slots and
 * metadata exactly.
 *
 * Threads: a store has one owner at a time, the main thread unless it was handed over; other
 * threads free blocks through a slabRemote. A forked child may read blocks, but must not free or
 * allocate. */
#ifndef STORE_SLAB_H
#define STORE_SLAB_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/alloc.h"

/* A fifteenth of a slab: room for an object with a key and 4,096 bytes of text, for which jemalloc
 * has blocks of 5,120. */
#ifdef HOSTILE_BUILD
#define SLAB_SIZE_MAX 4096 /* half of a small slab */
#else
#define SLAB_SIZE_MAX 4368
#endif

/* The largest size of slabAllocExact(). */
#define SLAB_EXACT_MAX 64u

typedef struct slabStore slabStore;

/* ---- the stores of the keyspace in use ---- */

/* Allocates `size` bytes, aligned to 8; never NULL. */
void *slabAlloc(size_t size) __attribute__((returns_nonnull));
/* Frees a block; `size` is the requested size, or another one of the same class. */
void slabFree(void *ptr, size_t size);
/* The store used by slabAlloc() and slabFree(); created on first use. */
slabStore *slabKeyspace(void) __attribute__((returns_nonnull));
/* Detaches the whole store with its blocks, to be freed with slabStoreFree() by any thread (when
 * everything is flushed). The next slabAlloc() creates a new one. NULL if there was none. */
slabStore *slabKeyspaceTake(void);

/* The same for the store of elements of collections. */
slabStore *slabElements(void) __attribute__((returns_nonnull));
slabStore *slabElementsTake(void);

/* The memory of one keyspace: its objects, and the elements of its collections. NULL: not made
 * yet. */
typedef struct slabPair {
    slabStore *objects, *elements;
} slabPair;
/* Makes these two the result of slabKeyspace() and slabElements(). Returns the previous ones, which
 * slabFree() still finds the blocks of, until slabDisown(). */
slabPair slabUse(slabPair pair);
/* Blocks of a pair that slabUse() has returned are no longer freed by slabFree(): the caller frees
 * it whole. */
void slabDisown(slabPair pair);

/* Bytes a block of `size` really takes. ANY_THREAD. */
size_t slabClassSize(size_t size);
/* Usable size of a block of `size`; the block may be freed with any size up to this one that is of
 * the same class. ANY_THREAD. */
size_t slabUsableSize(size_t size);
/* True if a block allocated with `a` bytes can hold `b` bytes, and both have the same class.
 * ANY_THREAD. */
bool slabSameClass(size_t a, size_t b);

/* ---- stores ---- */

/* `reserve_max`: maximum bytes of address space, 0 for the default. Less if the system has less,
 * possibly none. Never NULL. */
slabStore *slabStoreNew(size_t reserve_max) __attribute__((returns_nonnull));
/* Frees the store with all its blocks, except those from memAlloc(). No slabRemote of the store may
 * exist any more. NULL is allowed. ANY_THREAD that owns it. */
void slabStoreFree(slabStore *s);
/* False for a block from memAlloc(). ANY_THREAD. */
bool slabOwns(const slabStore *s, const void *ptr);
/* slabAlloc() and slabFree() for any store. */
void *slabAllocFrom(slabStore *s, size_t size) __attribute__((returns_nonnull));
void slabFreeTo(slabStore *s, void *ptr, size_t size);
/* Frees a block of any size. */
void slabFreeAny(slabStore *s, void *ptr);

/* ---- blocks whose size the store knows ---- */

/* A block of `size` bytes, which slabExactSize() (slab_exact.h) returns for it: so a text whose
 * length is the size needs none before it. Aligned to 4, or to 8 if `size` is a multiple of 8. NULL
 * if a block of `size` + 1 bytes takes no more memory, which a length before the text may use, or
 * if there is no memory in the store. Freed with slabFreeAny(). */
void *slabAllocExact(slabStore *s, size_t size);

/* ---- frees from other threads ---- */

/* One per thread and store, initialised with {.store = s}. Pointers are collected in batches; freed
 * blocks are not accessed. used_memory is updated when the owner drains. */
typedef struct slabRemote {
    slabStore *store;
    struct slabBatch *batch;
} slabRemote;
/* ANY_THREAD, but each slabRemote is used by one thread. */
void slabRemoteFree(slabRemote *r, void *ptr);
/* Submits the collected pointers: at the end, and whenever the thread is idle. ANY_THREAD. */
void slabRemoteFlush(slabRemote *r);
/* Owner: frees at most `max` of the submitted blocks. Returns their number. */
size_t slabDrain(slabStore *s, size_t max);

/* ---- returning memory: called by the owner's cron ---- */

/* Called after `count` <= 32 blocks were copied from old[i] to moved[i]. Returns a mask: bit i set:
 * the reference now points to moved[i]. Bit clear: refused, and the copy is freed, because the
 * block is in use elsewhere or its reference was not found (it is about to be freed). Must not call
 * the store. */
typedef uint32_t slabRelocateProc(void *arg, void *const *old, void *const *moved, unsigned count);
/* Results of compaction; calls add to it. */
typedef struct slabCompactReport {
    uint64_t moved_blocks, moved_bytes, freed_slabs, refused_blocks;
} slabCompactReport;
/* True if more than about 1/16 of the live memory can be recovered, or a cycle is running. */
bool slabShouldCompact(const slabStore *s);
/* Moves blocks from the sparsest slabs for about `budget_us`, at least 32 blocks. `report` may be
 * NULL. True if more can be recovered: call again, now or in the next turn. Pointers to blocks are
 * invalid afterwards. Does nothing while a child exists. */
bool slabCompact(slabStore *s, slabRelocateProc *proc, void *arg, int64_t budget_us,
                 slabCompactReport *report);
/* For blocks whose references are found by walking their owner: moves a block if its slab is
 * emptier than the average of its class. Returns the new address, NULL if it was not moved. */
void *slabMoveIfSparse(slabStore *s, void *block);
/* Returns up to `bytes_max` of empty slabs to the system, in about 10 us per 64 KB; returns the
 * number of bytes. Otherwise empty slabs are kept for reuse and remain resident. */
size_t slabPurge(slabStore *s, size_t bytes_max);

/* ---- fork ---- */

/* Between these calls new blocks are placed in slabs taken after the fork instead of in free slots
 * of older ones, which would copy pages shared with the child. Call before fork(), and when the
 * child has ended. */
void slabForkBegin(slabStore *s);
void slabForkEnd(slabStore *s);
/* While true, replace blocks instead of modifying them. */
bool slabForkActive(const slabStore *s);
/* The same for a block of any store. */
bool slabAnyForked(void);

/* ---- statistics ---- */

typedef struct slabStats {
    uint64_t live_blocks;
    size_t live_bytes;        /* used slots */
    size_t hole_bytes;        /* free slots in used slabs */
    size_t tail_bytes;        /* unused ends of slabs */
    size_t empty_bytes;       /* empty slabs that slabPurge() can return */
    size_t metadata_bytes;    /* included in used_memory, as are live_bytes */
    size_t open_bytes;        /* the part of metadata_bytes in a reserved range */
    size_t resident_bytes;    /* sum of the above: upper bound of the store's RSS */
    size_t recoverable_bytes; /* recoverable by compaction */
    size_t slabs_in_use;
} slabStats;
void slabGetStats(const slabStore *s, slabStats *out);
/* Checks all invariants and aborts at the first violation. Slow; for tests and debugging. */
void slabVerify(const slabStore *s);

#endif
