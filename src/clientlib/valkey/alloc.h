/* SPDX-License-Identifier: BSD-3-Clause
 *
 * The allocator of the library, which programs may replace. Any of the functions may return NULL;
 * the library then fails with VALKEY_ERR_OOM or NULL, without leaks. */
#ifndef VALKEY_ALLOC_H
#define VALKEY_ALLOC_H

#include <stddef.h>

#include <valkey/visibility.h>

#ifdef __cplusplus
extern "C" {
#endif

typedef struct valkeyAllocFuncs {
    void *(*mallocFn)(size_t);
    void *(*callocFn)(size_t, size_t);
    void *(*reallocFn)(void *, size_t);
    char *(*strdupFn)(const char *);
    void (*freeFn)(void *);
} valkeyAllocFuncs;

/* The functions in use. */
extern LIBVALKEY_API valkeyAllocFuncs valkeyAllocFns;

/* Replaces all five functions; returns the previous ones. Not thread-safe: to be called before the
 * library is used, or while nothing is allocated. */
LIBVALKEY_API valkeyAllocFuncs valkeySetAllocators(valkeyAllocFuncs *funcs);
/* Restores those of the C library. */
LIBVALKEY_API void valkeyResetAllocators(void);

/* Call them. vk_calloc() fails if the product overflows. */
LIBVALKEY_API void *vk_malloc(size_t size);
LIBVALKEY_API void *vk_calloc(size_t count, size_t size);
LIBVALKEY_API void *vk_realloc(void *ptr, size_t size);
LIBVALKEY_API char *vk_strdup(const char *text);
LIBVALKEY_API void vk_free(void *ptr);

#ifdef __cplusplus
}
#endif

#endif
