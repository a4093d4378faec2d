/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Memory that is freed together: blocks from which pieces are taken one after the other. A zeroed
 * pool is empty. Used by one thread at a time. */
#ifndef MODULE_POOL_H
#define MODULE_POOL_H

#include <stddef.h>

typedef struct pool {
    struct poolBlock *blocks; /* the latest first */
} pool;

/* `bytes` of memory, uninitialised, aligned for pointers or, below their size, for the power of two
 * that holds it. NULL for 0 bytes. */
void *poolAlloc(pool *p, size_t bytes);
/* A copy of a C string; NULL for NULL. */
char *poolText(pool *p, const char *text);
void poolFree(pool *p);

#endif
