/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Memory straight from the kernel: mappings for blocks that grow in place and go back whole (big
 * tables), each byte counted by memCount(); and reserved ranges, opened and emptied in parts. */
#ifndef BASE_MAP_H
#define BASE_MAP_H

#include <stdbool.h>
#include <stddef.h>

#include "base/alloc.h"

/* Sizes and alignments below are multiples of this. */
#define MAP_PAGE ((size_t)4096)

/* Maps `size` zeroed bytes at a multiple of `align` (a power of two). Pages take real memory
 * when first touched. Never NULL: out of memory ends the process. ANY_THREAD. */
void *memMap(size_t size, size_t align) __attribute__((returns_nonnull));
/* Grows or shrinks a mapping; contents stay, new bytes are zero. No byte is copied, but the
 * mapping may move (again to a multiple of `align`): the old pointer is gone. ANY_THREAD. */
void *memRemap(void *ptr, size_t old_size, size_t new_size, size_t align)
    __attribute__((returns_nonnull));
/* Gives a mapping back. ANY_THREAD. */
void memUnmap(void *ptr, size_t size);

/* A reserved range is address space without memory: it grows in place as parts of it are opened.
 * Nothing of it is counted; its owner tells memCount() what he uses. */

/* Reserves `size` bytes at a multiple of `align` (a power of two); NULL when the system, or its
 * limit, has not so much. ANY_THREAD. */
void *memReserve(size_t size, size_t align) MUST_USE;
/* Opens a part of a reserved range, which then reads as zeros and takes memory where written.
 * False when the system refuses (strict overcommit). ANY_THREAD. */
bool memReserveOpen(void *ptr, size_t size) MUST_USE;
/* Gives the memory of an open part back; it stays open, its contents are lost. ANY_THREAD. */
void memReserveDiscard(void *ptr, size_t size);
/* Gives a reserved range back, open parts and all. ANY_THREAD. */
void memReserveFree(void *ptr, size_t size);
/* Most address space this process may have: RLIMIT_AS, SIZE_MAX when unlimited. ANY_THREAD. */
size_t memReserveLimit(void);

#endif
