/* SPDX-License-Identifier: BSD-3-Clause
 *
 * blob: a counted block of bytes that several owners share without a copy: a large argument read
 * from a socket, the same block adopted by a key, and again by a reply on its way out. A blob
 * with more than one reference is never written to. References are taken and given back by one
 * thread at a time: the main one, or an owner a ring hands it to. */
#ifndef BASE_BLOB_H
#define BASE_BLOB_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

typedef struct blob {
    uint32_t refs;
    uint32_t unused;
    size_t len; /* bytes that hold content */
    size_t cap; /* bytes there is room for, plus one for a NUL nobody counts */
    char bytes[];
} blob;

/* One reference, len 0, room for `cap` bytes. Never NULL. */
blob *blobNew(size_t cap);
/* The same; NULL when memory is out. */
blob *blobTryNew(size_t cap);
static inline blob *blobRetain(blob *b) {
    __atomic_store_n(&b->refs, b->refs + 1, __ATOMIC_RELAXED);
    return b;
}
/* False for whoever holds the only reference, and it stays so; a thread that counts no references may
 * ask. ANY_THREAD. */
static inline bool blobIsShared(const blob *b) {
    return __atomic_load_n(&b->refs, __ATOMIC_ACQUIRE) > 1;
}
/* Gives one reference back; the last one frees. NULL is fine. */
void blobRelease(blob *b);
/* Room for at least `cap` bytes; only for a blob with one reference. Returns the block's new
 * place, or NULL when memory is out (the old one stays). */
blob *blobTryReserve(blob *b, size_t cap);
/* Bytes of memory it takes. */
size_t blobMemory(const blob *b);

#endif
