/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Memory from the kernel without an allocator: aligned anonymous private mappings that are resized
 * without copying, and reserved address space.
 *
 * Invariant: the bytes passed to memCount() equal the total size of the mappings made by memMap().
 * Each call is one or a few system calls. Moving a mapping moves page tables, in units of 2 MB if
 * both ends are aligned to that. ANY_THREAD. */
#define _GNU_SOURCE
#include "base/map.h"

#include <stdint.h>
#include <sys/mman.h>
#include <sys/resource.h>

#include "base/assert.h"

static size_t mapped; /* atomic */

static void countMapped(ptrdiff_t bytes) {
    memCount(bytes);
    __atomic_fetch_add(&mapped, (size_t)bytes, __ATOMIC_RELAXED);
}

size_t memMapped(void) { return __atomic_load_n(&mapped, __ATOMIC_RELAXED); }

/* Maps without counting; NULL if the kernel refuses. */
static void *tryMapAligned(size_t size, size_t align, int protection) {
    /* Map enough to contain an aligned range and unmap both ends. */
    size_t asked = size + (align > MAP_PAGE ? align : 0);
    char *start = mmap(NULL, asked, protection, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (start == MAP_FAILED) return NULL;
    char *aligned = (char *)(((uintptr_t)start + align - 1) & ~(uintptr_t)(align - 1));
    size_t before = (size_t)(aligned - start);
    size_t after = asked - size - before;
    if (before) check(munmap(start, before) == 0);
    if (after) check(munmap(aligned + size, after) == 0);
    return aligned;
}

static void *mapAligned(size_t size, size_t align, int protection) {
    hotCheck(size > 0);
    hotCheck((align & (align - 1)) == 0);
    void *ptr = tryMapAligned(size, align, protection);
    if (!ptr) panic("out of memory mapping %zu bytes", size);
    return ptr;
}

void *memMap(size_t size, size_t align) {
    check(size % MAP_PAGE == 0);
    check(align % MAP_PAGE == 0);
    void *ptr = mapAligned(size, align, PROT_READ | PROT_WRITE);
    countMapped((ptrdiff_t)size);
    return ptr;
}

void *memRemap(void *ptr, size_t old_size, size_t new_size, size_t align) {
    check(new_size % MAP_PAGE == 0);
    check(align % MAP_PAGE == 0);
    if (new_size == old_size) return ptr;
    /* In place if the following addresses are free (always when shrinking), else at a new aligned
     * address. */
    if (mremap(ptr, old_size, new_size, 0) == MAP_FAILED) {
        void *to = mapAligned(new_size, align, PROT_NONE);
        void *moved = mremap(ptr, old_size, new_size, MREMAP_MAYMOVE | MREMAP_FIXED, to);
        if (moved == MAP_FAILED) panic("out of memory mapping %zu bytes", new_size);
        ptr = moved;
    }
    countMapped((ptrdiff_t)new_size - (ptrdiff_t)old_size);
    return ptr;
}

void memUnmap(void *ptr, size_t size) {
    check(munmap(ptr, size) == 0);
    countMapped(-(ptrdiff_t)size);
}

void *memReserve(size_t size, size_t align) {
    check(size % MAP_PAGE == 0);
    check(align % MAP_PAGE == 0);
    void *ptr = tryMapAligned(size, align, PROT_NONE);
    /* With huge pages, memory would be returned only when a whole huge page is unused. Fails
     * harmlessly on kernels without huge pages. */
    if (ptr) (void)madvise(ptr, size, MADV_NOHUGEPAGE);
    return ptr;
}

bool memReserveOpen(void *ptr, size_t size) {
    return mprotect(ptr, size, PROT_READ | PROT_WRITE) == 0;
}

void memReserveFill(void *ptr, size_t size) {
#ifdef MADV_POPULATE_WRITE
    (void)madvise(ptr, size, MADV_POPULATE_WRITE);
#else
    (void)ptr, (void)size;
#endif
}

void memReserveDiscard(void *ptr, size_t size) {
    (void)madvise(ptr, size,
                  MADV_DONTNEED); /* fails only for locked memory, which then stays resident */
}

void memReserveFree(void *ptr, size_t size) { check(munmap(ptr, size) == 0); }

size_t memReserveLimit(void) {
    struct rlimit limit;
    if (getrlimit(RLIMIT_AS, &limit) != 0) return SIZE_MAX;
    return limit.rlim_cur == RLIM_INFINITY ? SIZE_MAX : (size_t)limit.rlim_cur;
}
