/* SPDX-License-Identifier: BSD-3-Clause
 *
 * blob: a reference-counted byte block that several owners share without copying. Example: a large
 * argument read from a socket becomes the value of a key and is later sent in a reply, always as
 * the same block. The bytes of a blob with more than one reference are never changed; its
 * owner may append bytes that the others do not read. Only one thread at a
 * time may change the reference count: the main thread, or a thread that received the blob through
 * a ring. */
#ifndef BASE_BLOB_H
#define BASE_BLOB_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

typedef struct blob {
    uint32_t refs;
    uint32_t is_message; /* see blobNewMessage() */
    size_t len;          /* bytes in use */
    size_t cap;          /* capacity, without one extra byte for a NUL */
    char bytes[];
} blob;

/* A blob with one reference, len 0 and room for `cap` bytes. Never NULL. */
blob *blobNew(size_t cap);
/* Like blobNew(); NULL when memory is exhausted. */
blob *blobTryNew(size_t cap);
/* Like blobNew(), for bytes that are only sent, to any number of receivers, and must not be
 * resized: blobMessageBytes() counts it once until it is freed. ANY_THREAD. */
blob *blobNewMessage(size_t cap);
size_t blobMessageBytes(void);
static inline blob *blobRetain(blob *b) {
    __atomic_store_n(&b->refs, b->refs + 1, __ATOMIC_RELAXED);
    return b;
}
/* False if the caller holds the only reference; and only the caller can change that. May also be
 * called by a thread that does not change the count. ANY_THREAD. */
static inline bool blobIsShared(const blob *b) {
    return __atomic_load_n(&b->refs, __ATOMIC_ACQUIRE) > 1;
}
/* Drops one reference and frees the blob with the last one. NULL is allowed. */
void blobRelease(blob *b);
/* Makes room for at least `cap` bytes. The blob must have one reference. Returns the possibly moved
 * blob, or NULL when memory is exhausted (the old one remains valid). */
blob *blobTryReserve(blob *b, size_t cap);
/* Memory that a blob with room for `cap` bytes would use; `cap` is at most SIZE_MAX / 2. */
size_t blobGoodSize(size_t cap);
/* Memory used by the blob in bytes. */
size_t blobMemory(const blob *b);

#endif
