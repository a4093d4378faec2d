/* SPDX-License-Identifier: BSD-3-Clause
 *
 * The only door to malloc: allocation that stops the process when memory is out, `Try` forms that
 * return NULL instead, and an exact count of the bytes in use. */
#ifndef BASE_ALLOC_H
#define BASE_ALLOC_H

#include <stddef.h>
#include <stdint.h>

/* Marks functions that any thread may call; all others belong to the main thread. */
#define ANY_THREAD
/* The result must be looked at. */
#define MUST_USE __attribute__((warn_unused_result))

/* Returns `size` uninitialised bytes; never NULL: out of memory ends the process. ANY_THREAD. */
void *memAlloc(size_t size) __attribute__((malloc, returns_nonnull));
/* The same, zeroed; the product is checked for overflow. ANY_THREAD. */
void *memCalloc(size_t count, size_t size) __attribute__((malloc, returns_nonnull));
/* Grows or shrinks `ptr` (NULL allocates). The old pointer is gone. ANY_THREAD. */
void *memRealloc(void *ptr, size_t size) __attribute__((returns_nonnull));
/* Forms for sizes a user can choose: NULL when memory is out, the old block stays. ANY_THREAD. */
void *memTryAlloc(size_t size) MUST_USE;
void *memTryRealloc(void *ptr, size_t size) MUST_USE;
/* Frees `ptr`; NULL is fine. ANY_THREAD. */
void memFree(void *ptr);
/* Bytes really taken by the block behind `ptr`, at least what was asked for. ANY_THREAD. */
size_t memSizeOf(const void *ptr);
/* The size the allocator would really hand out for `size` (a good guess with libc): to use a whole
 * block, allocate this size. ANY_THREAD. */
size_t memGoodSize(size_t size);
/* A copy of `len` bytes with a NUL behind them (not counted). ANY_THREAD. */
char *memDup(const void *bytes, size_t len);

#define memNew(type) ((type *)memCalloc(1, sizeof(type)))
#define memNewArray(type, count) ((type *)memCalloc((count), sizeof(type)))

/* Bytes in use: all blocks handed out (usable size) plus what memCount() added. ANY_THREAD. */
size_t memUsed(void);
/* Counts bytes that live outside the allocator (slabs, mapped tables); negative gives back.
 * ANY_THREAD. */
void memCount(ptrdiff_t bytes);

#ifdef HOT_CHECKS
/* How often this thread has asked for memory so far, slots of slab stores included: for tests of what must not
 * allocate. Builds without HOT_CHECKS do not count. ANY_THREAD. */
uint64_t memRequests(void);
/* Another allocator has handed out a block. ANY_THREAD. */
void memNoteRequest(void);
#else
#define memNoteRequest() ((void)0)
#endif

/* What the allocator and the kernel say of the process. Bytes. */
typedef struct memReport {
    size_t allocated; /* in blocks handed out */
    size_t active;    /* in pages with such blocks */
    size_t resident;  /* mapped by the allocator */
    size_t muzzy;     /* given back lazily */
    size_t rss;       /* resident set of the process */
} memReport;
/* Bytes of memory this process may hope for: the machine's, or its control group's limit when that is lower; read
 * anew by each call. ANY_THREAD. */
uint64_t memMachineBytes(void);
/* Reads the figures afresh (some 10 us: not for every command). ANY_THREAD. */
void memReportRead(memReport *out);
/* The allocator's name and version, as INFO mem_allocator shows it: "jemalloc-5.3.0" or "libc". */
const char *memAllocatorName(void);
/* Asks the allocator to give unused pages back now. */
void memPurge(void);
/* Moves a block of memAlloc() out of a page run that is emptier than most of its size, if the allocator can tell:
 * returns its new place, and the old one is gone. NULL: it stays. */
void *memMoveIfSparse(void *ptr);
/* What moving all blocks together would win at most, in bytes; 0 where memMoveIfSparse() never moves any. Some 10 us. */
size_t memSparseBytes(void);
/* Switches the allocator's background thread on or off; nothing where there is none. */
void memSetBackgroundThread(int on);
/* The allocator's own statistics as text; caller frees with memFree(). */
char *memAllocatorStats(void);
/* Called with the size asked for before an out-of-memory stop. Set once by the roof. */
extern void memSetOutOfMemoryProc(void (*proc)(size_t size));

#endif
