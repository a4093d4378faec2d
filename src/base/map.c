/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Memory straight from the kernel: anonymous private mappings, aligned, resized without a copy,
 * and address space reserved for later.
 *
 * Invariant: what memCount() was told equals the bytes of memMap()'s live mappings. Each call is a
 * system call or a few; moving a mapping moves page tables, whole 2 MB at a time when both ends
 * are aligned to that. Any thread. */
#define _GNU_SOURCE
#include "base/map.h"

#include <stdint.h>
#include <sys/mman.h>
#include <sys/resource.h>

#include "base/assert.h"

/* Maps without counting; NULL when the kernel refuses. */
static void *tryMapAligned(size_t size, size_t align, int protection) {
    /* Ask for enough to find an aligned start inside, and trim both ends. */
    size_t asked = size + (align > MAP_PAGE ? align : 0);
    char *start = mmap(NULL, asked, protection, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (start == MAP_FAILED) return NULL;
    char *aligned = (char *)(((uintptr_t)start + align - 1) & ~(uintptr_t)(align - 1));
    size_t before = (size_t)(aligned - start);
    size_t behind = asked - size - before;
    if (before) check(munmap(start, before) == 0);
    if (behind) check(munmap(aligned + size, behind) == 0);
    return aligned;
}

static void *mapAligned(size_t size, size_t align, int protection) {
    void *ptr = tryMapAligned(size, align, protection);
    if (!ptr) panic("out of memory mapping %zu bytes", size);
    return ptr;
}

void *memMap(size_t size, size_t align) {
    check(size % MAP_PAGE == 0);
    check(align % MAP_PAGE == 0);
    void *ptr = mapAligned(size, align, PROT_READ | PROT_WRITE);
    memCount((ptrdiff_t)size);
    return ptr;
}

void *memRemap(void *ptr, size_t old_size, size_t new_size, size_t align) {
    check(new_size % MAP_PAGE == 0);
    check(align % MAP_PAGE == 0);
    if (new_size == old_size) return ptr;
    /* In place when the neighbourhood is free (and always when shrinking), else to a new aligned
     * place. */
    if (mremap(ptr, old_size, new_size, 0) == MAP_FAILED) {
        void *to = mapAligned(new_size, align, PROT_NONE);
        void *moved = mremap(ptr, old_size, new_size, MREMAP_MAYMOVE | MREMAP_FIXED, to);
        if (moved == MAP_FAILED) panic("out of memory mapping %zu bytes", new_size);
        ptr = moved;
    }
    memCount((ptrdiff_t)new_size - (ptrdiff_t)old_size);
    return ptr;
}

void memUnmap(void *ptr, size_t size) {
    check(munmap(ptr, size) == 0);
    memCount(-(ptrdiff_t)size);
}

void *memReserve(size_t size, size_t align) {
    check(size % MAP_PAGE == 0);
    check(align % MAP_PAGE == 0);
    void *ptr = tryMapAligned(size, align, PROT_NONE);
    /* Of a huge page nothing goes back before all of it is unused. A kernel without them refuses. */
    if (ptr) (void)madvise(ptr, size, MADV_NOHUGEPAGE);
    return ptr;
}

bool memReserveOpen(void *ptr, size_t size) {
    return mprotect(ptr, size, PROT_READ | PROT_WRITE) == 0;
}

void memReserveDiscard(void *ptr, size_t size) {
    (void)madvise(ptr, size, MADV_DONTNEED); /* fails only for locked memory, which then stays */
}

void memReserveFree(void *ptr, size_t size) { check(munmap(ptr, size) == 0); }

size_t memReserveLimit(void) {
    struct rlimit limit;
    if (getrlimit(RLIMIT_AS, &limit) != 0) return SIZE_MAX;
    return limit.rlim_cur == RLIM_INFINITY ? SIZE_MAX : (size_t)limit.rlim_cur;
}
