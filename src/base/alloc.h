/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Memory allocation. No other file calls malloc(). The plain functions end the process when memory
 * is exhausted, the `Try` functions return NULL instead. The bytes in use are counted exactly. */
#ifndef BASE_ALLOC_H
#define BASE_ALLOC_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Marks functions that any thread may call; all others belong to the main thread. */
#define ANY_THREAD
/* The caller must use the result. */
#define MUST_USE __attribute__((warn_unused_result))

/* Returns `size` uninitialised bytes, never NULL: the process ends when memory is exhausted.
 * ANY_THREAD. */
void *memAlloc(size_t size) __attribute__((malloc, returns_nonnull));
/* Like memAlloc(), zeroed; count * size is checked for overflow. ANY_THREAD. */
void *memCalloc(size_t count, size_t size) __attribute__((malloc, returns_nonnull));
/* Resizes `ptr` (NULL allocates). The old pointer is invalid afterwards. ANY_THREAD. */
void *memRealloc(void *ptr, size_t size) __attribute__((returns_nonnull));
/* For sizes that a user can choose: NULL when memory is exhausted; the old block remains valid.
 * ANY_THREAD. */
void *memTryAlloc(size_t size) MUST_USE;
void *memTryRealloc(void *ptr, size_t size) MUST_USE;
/* Frees `ptr`, which may be NULL. ANY_THREAD. */
void memFree(void *ptr);
/* The same for owners that remember what size they asked for, as interpreters do: nothing is looked
 * up. `size` is that of the last allocation, by whichever function. */
void *memTryAllocKnown(size_t size) MUST_USE;
void memFreeKnown(void *ptr, size_t size);
/* True if `bytes` can be allocated now, in blocks of up to 4 MB if `in_pieces`, and enough remains
 * of a limited address space (ulimit -v) for all else. For sizes that users choose and that
 * memAlloc() is going to ask for. Takes some us and more for many bytes. ANY_THREAD. */
bool memHasRoom(size_t bytes, bool in_pieces);
/* Usable size of the block at `ptr` in bytes, at least the requested size. ANY_THREAD. */
size_t memSizeOf(const void *ptr);
/* The usable size of a block allocated with `size` bytes (an estimate with libc). Callers that can
 * use the whole block allocate this size. ANY_THREAD. */
size_t memGoodSize(size_t size);
/* A copy of `len` bytes followed by a NUL that is not counted. ANY_THREAD. */
char *memDup(const void *bytes, size_t len);

#define memNew(type) ((type *)memCalloc(1, sizeof(type)))
#define memNewArray(type, count) ((type *)memCalloc((count), sizeof(type)))

/* Bytes in use: the usable size of all allocated blocks plus what memCount() added. ANY_THREAD. */
size_t memUsed(void);
/* Adds bytes that are not allocated here (slabs, mapped tables) to memUsed(); a negative number
 * subtracts. ANY_THREAD. */
void memCount(ptrdiff_t bytes);

#ifdef HOT_CHECKS
/* Number of allocations made by this thread, slots of slab stores included. For tests which assert
 * that a path does not allocate; only builds with HOT_CHECKS count. ANY_THREAD. */
uint64_t memAllocationCount(void);
/* Counts one allocation made by another allocator. ANY_THREAD. */
void memNoteAllocation(void);
#else
#define memNoteAllocation() ((void)0)
#endif

/* Memory statistics of the allocator and the kernel, in bytes. */
typedef struct memReport {
    size_t allocated; /* in allocated blocks */
    size_t active;    /* in pages that hold at least one allocated block */
    size_t resident;  /* mapped by the allocator */
    size_t muzzy;     /* returned lazily, still mapped */
    size_t rss;       /* resident set size of the process */
    bool is_whole;    /* `active` and `resident` are `rss`: the allocator has no figures */
} memReport;
/* Bytes of memory available to this process: that of the machine, or the limit of its control group
 * if that is lower. Determined anew by each call. ANY_THREAD. */
uint64_t memMachineBytes(void);
/* Fills `out` with current values. Takes about 10 us, so do not call it per command. ANY_THREAD. */
void memReportRead(memReport *out);
/* Name and version of the allocator as shown by INFO mem_allocator: "jemalloc-5.3.0" or "libc". */
const char *memAllocatorName(void);
/* Returns unused pages to the kernel now. */
void memPurge(void);
/* Moves a block of memAlloc() if it is in a page run that is emptier than the average run of its
 * size class. Returns the new address (the old one is invalid then), or NULL if the block was not
 * moved. Blocks of 16 KB and more stay: they have pages of their own and leave no holes. */
void *memMoveIfSparse(void *ptr);
/* Upper bound of the bytes that moving all blocks could save; 0 if memMoveIfSparse() never moves a
 * block. Takes about 10 us. */
size_t memSparseBytes(void);
/* Starts or stops the allocator's background thread; no effect if it has none. */
void memSetBackgroundThread(int on);
/* In a child that replaces its parent: starts that thread again, because fork() copies only the
 * caller. */
void memAfterFork(void);
/* Reads an integer setting of the allocator, mallctl() of jemalloc, and changes it to `*set` unless
 * that is NULL. Returns 0 or a value of errno. */
int memControlInt(const char *name, const int64_t *set, int64_t *value) MUST_USE;
/* Reads a text of the allocator, which is its own. Returns 0 or a value of errno. */
int memControlText(const char *name, const char **text) MUST_USE;
/* The allocator's statistics as text; the caller frees it with memFree(). */
char *memAllocatorStats(void);
/* Registers a function that is called with the requested size before the process ends for lack of
 * memory. Called once, at startup. */
extern void memSetOutOfMemoryProc(void (*proc)(size_t size));

#endif
