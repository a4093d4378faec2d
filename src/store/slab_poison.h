/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Marking of free slots, for tests. With ASAN they are poisoned, as is a red zone after each block;
 * in hostile builds they are filled with SLAB_POISON and checked on allocation, to detect writes to
 * freed blocks. Does nothing in other builds. Header only. */
#ifndef STORE_SLAB_POISON_H
#define STORE_SLAB_POISON_H

#include <string.h>

#include "store/slab_priv.h"

#define SLAB_POISON 0xDB

#ifdef LEAK_CHECKED
#include <sanitizer/asan_interface.h>
#include <sanitizer/lsan_interface.h>
#else
#define __asan_poison_memory_region(ptr, size) ((void)(ptr), (void)(size))
#define __asan_unpoison_memory_region(ptr, size) ((void)(ptr), (void)(size))
#define __lsan_register_root_region(ptr, size) ((void)(ptr), (void)(size))
#define __lsan_unregister_root_region(ptr, size) ((void)(ptr), (void)(size))
#endif

/* Called when a block is freed or a new slab is taken. */
static inline void slabPoison(void *ptr, size_t size) {
#ifdef HOSTILE_BUILD
    __asan_unpoison_memory_region(ptr, size);
    memset(ptr, SLAB_POISON, size);
#endif
    __asan_poison_memory_region(ptr, size);
}

/* Called when a slot is allocated. */
static inline void slabUnpoison(void *ptr, size_t size) {
    __asan_unpoison_memory_region(ptr, size - SLAB_RED_ZONE);
#ifdef HOSTILE_BUILD
    const unsigned char *bytes = ptr;
    for (size_t i = 0; i < size - SLAB_RED_ZONE; i++) check(bytes[i] == SLAB_POISON);
#endif
}

/* Called when the pages of `size` bytes at `ptr` are returned to the kernel or used otherwise. */
static inline void slabUnpoisonPages(void *ptr, size_t size) {
    __asan_unpoison_memory_region(ptr, size);
}

/* Registers the range with leak checkers, because blocks contain pointers. */
static inline void slabRootAdd(void *ptr, size_t size) { __lsan_register_root_region(ptr, size); }
static inline void slabRootRemove(void *ptr, size_t size) {
    __lsan_unregister_root_region(ptr, size);
}

#endif
