/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Reference-counted byte blocks. Invariant: refs >= 1, len <= cap, and the block has one byte
 * beyond cap. Cost: one allocation per blob. A blob is used by one thread at a time. */
#include "base/blob.h"

#include "base/alloc.h"
#include "base/assert.h"

/* Allocation size of a blob with capacity `cap`; 0 if it would overflow. */
static size_t blobBytes(size_t cap) {
    return cap < PTRDIFF_MAX - sizeof(blob) ? sizeof(blob) + cap + 1 : 0;
}

static blob *blobInit(blob *b, size_t cap) {
    b->refs = 1;
    b->is_message = false;
    b->len = 0;
    b->cap = cap;
    return b;
}

blob *blobTryNew(size_t cap) {
    size_t bytes = blobBytes(cap);
    blob *b = bytes ? memTryAlloc(bytes) : NULL;
    hotCheck(!b || memSizeOf(b) >= bytes);
    return b ? blobInit(b, cap) : NULL;
}

blob *blobNew(size_t cap) {
    size_t bytes = blobBytes(cap);
    check(bytes > 0);
    return blobInit(memAlloc(bytes), cap);
}

static size_t message_bytes; /* atomic */

static void countMessage(ptrdiff_t bytes) {
    __atomic_fetch_add(&message_bytes, (size_t)bytes, __ATOMIC_RELAXED);
}

blob *blobNewMessage(size_t cap) {
    blob *b = blobNew(cap);
    b->is_message = true;
    countMessage((ptrdiff_t)blobMemory(b));
    return b;
}

size_t blobMessageBytes(void) { return __atomic_load_n(&message_bytes, __ATOMIC_RELAXED); }

void blobRelease(blob *b) {
    if (!b) return;
    check(b->refs > 0);
    hotCheck(b->len <= b->cap);
    if (b->refs == 1) {
        if (unlikely(b->is_message)) countMessage(-(ptrdiff_t)blobMemory(b));
        memFree(b);
    } else {
        /* A thread that reads 1 afterwards sees all earlier accesses to the bytes as finished. */
        __atomic_store_n(&b->refs, b->refs - 1, __ATOMIC_RELEASE);
    }
}

blob *blobTryReserve(blob *b, size_t cap) {
    check(b->refs == 1);
    hotCheck(b->len <= b->cap);
    check(!b->is_message);
    if (cap <= b->cap) return b;
    size_t bytes = blobBytes(cap);
    blob *moved = bytes ? memTryRealloc(b, bytes) : NULL;
    if (moved) moved->cap = cap;
    hotCheck(!moved || memSizeOf(moved) >= bytes);
    return moved;
}

size_t blobGoodSize(size_t cap) { return memGoodSize(blobBytes(cap)); }

size_t blobMemory(const blob *b) {
    hotCheck(b->refs > 0);
    return memSizeOf(b);
}
