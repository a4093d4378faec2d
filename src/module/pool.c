/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Memory that is freed together (pool.h). A piece that does not fit into the latest block gets a
 * new block. */
#include "module/pool.h"

#include "base/base.h"

enum { POOL_BLOCK = 8192 };

struct poolBlock {
    struct poolBlock *next;
    size_t used, size;
    char bytes[];
};

static size_t alignmentOf(size_t bytes) {
    size_t align = 1;
    while (align < bytes && align < sizeof(void *)) align *= 2;
    return align;
}

void *poolAlloc(pool *p, size_t bytes) {
    if (bytes == 0) return NULL;
    size_t align = alignmentOf(bytes);
    struct poolBlock *b = p->blocks;
    hotCheck(align <= sizeof(void *));
    size_t at = b ? (b->used + align - 1) & ~(align - 1) : 0;
    if (!b || at > b->size || b->size - at < bytes) {
        size_t size = bytes > POOL_BLOCK ? bytes : POOL_BLOCK;
        b = memAlloc(sizeof(*b) + size);
        *b = (struct poolBlock){.next = p->blocks, .size = size};
        p->blocks = b;
        at = 0;
    }
    b->used = at + bytes;
    hotCheck(b->used <= b->size);
    return b->bytes + at;
}

char *poolText(pool *p, const char *text) {
    if (!text) return NULL;
    size_t size = strlen(text) + 1;
    return memcpy(poolAlloc(p, size), text, size);
}

void poolFree(pool *p) {
    while (p->blocks) {
        struct poolBlock *next = p->blocks->next;
        memFree(p->blocks);
        p->blocks = next;
    }
}
