/* SPDX-License-Identifier: BSD-3-Clause
 *
 * The replaceable allocator. All memory of the library comes from here. */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <valkey/alloc.h>

/* Not strdup(): in a library that was loaded with its own C library first (RTLD_DEEPBIND, as
 * servers load modules), it may allocate with another malloc() than the one that belongs to our
 * free(). */
static char *duplicate(const char *text) {
    size_t size = strlen(text) + 1;
    char *copy = malloc(size);
    return copy ? memcpy(copy, text, size) : NULL;
}

#define DEFAULT_FUNCS \
    { malloc, calloc, realloc, duplicate, free }

valkeyAllocFuncs valkeyAllocFns = DEFAULT_FUNCS;

valkeyAllocFuncs valkeySetAllocators(valkeyAllocFuncs *funcs) {
    valkeyAllocFuncs previous = valkeyAllocFns;
    valkeyAllocFns = *funcs;
    return previous;
}

void valkeyResetAllocators(void) { valkeyAllocFns = (valkeyAllocFuncs)DEFAULT_FUNCS; }

void *vk_malloc(size_t size) { return valkeyAllocFns.mallocFn(size); }

void *vk_calloc(size_t count, size_t size) {
    /* A replaced calloc() may not check it. */
    if (size != 0 && count > SIZE_MAX / size) return NULL;
    return valkeyAllocFns.callocFn(count, size);
}

void *vk_realloc(void *ptr, size_t size) { return valkeyAllocFns.reallocFn(ptr, size); }
char *vk_strdup(const char *text) { return valkeyAllocFns.strdupFn(text); }
void vk_free(void *ptr) { valkeyAllocFns.freeFn(ptr); }
