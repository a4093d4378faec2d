/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Memory from the kernel without an allocator. Mappings, counted by memCount(), for large blocks
 * that grow in place (tables); reserved address ranges of which parts are committed and
 * discarded. */
#ifndef BASE_MAP_H
#define BASE_MAP_H

#include <stdbool.h>
#include <stddef.h>

#include "base/alloc.h"

/* Sizes and alignments below are multiples of this. */
#define MAP_PAGE ((size_t)4096)

/* Maps `size` zeroed bytes at a multiple of `align` (a power of two). Pages use memory when first
 * touched. Never NULL: the process ends when memory is exhausted. ANY_THREAD. */
void *memMap(size_t size, size_t align) __attribute__((returns_nonnull));
/* Resizes a mapping; contents are kept, new bytes are zero. Nothing is copied, but the mapping may
 * move (to a multiple of `align`): the old pointer is invalid afterwards. ANY_THREAD. */
void *memRemap(void *ptr, size_t old_size, size_t new_size, size_t align)
    __attribute__((returns_nonnull));
/* Unmaps a mapping. ANY_THREAD. */
void memUnmap(void *ptr, size_t size);
/* Total size of all mappings. ANY_THREAD. */
size_t memMapped(void);

/* A reserved range is address space without memory; it grows in place as parts of it are committed.
 * It is not counted: the owner calls memCount() for the memory it uses. */

/* Reserves `size` bytes at a multiple of `align` (a power of two); NULL if the system or a resource
 * limit refuses. ANY_THREAD. */
void *memReserve(size_t size, size_t align) MUST_USE;
/* Commits a part of a reserved range: it then reads as zeros and uses memory where written. False
 * if the system refuses (strict overcommit). ANY_THREAD. */
bool memReserveOpen(void *ptr, size_t size) MUST_USE;
/* Makes all pages of a committed part resident with one call instead of a page fault for each.
 * Contents are kept. Does nothing if the kernel does not support it. ANY_THREAD. */
void memReserveFill(void *ptr, size_t size);
/* Returns the memory of a committed part to the kernel. The part stays usable; its contents are
 * lost. ANY_THREAD. */
void memReserveDiscard(void *ptr, size_t size);
/* Releases a reserved range including its committed parts. ANY_THREAD. */
void memReserveFree(void *ptr, size_t size);
/* Maximum address space of this process: RLIMIT_AS, SIZE_MAX if unlimited. ANY_THREAD. */
size_t memReserveLimit(void);

#endif
