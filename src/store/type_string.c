/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Modification of strings (type_string.h).
 *
 * A small string remains embedded in its object, which is reallocated when it outgrows its size
 * class; a larger one that grows is moved to a blob with spare capacity, so that n appends cost
 * O(n). Invariant: a blob with more than one reference is never written to. Main thread only. */
#include "store/type_string.h"

#include "base/base.h"
#include "base/number.h"
#include "store/compressed.h"
#include "store/element.h"
#include "store/type.h"

enum {
    EMBED_GROWN_MAX =
        128, /* maximum size of an object with a growing string that remains embedded */
    SPARE_BYTES_MAX = 1024 * 1024, /* a block is doubled, but grows by at most this */
};

size_t stringLen(const robj *o) {
    if (unlikely(objectIsCompressed(o))) return compressedRead(o).len;
    char digits[NUMBER_TEXT_MAX];
    return objectText(o, digits).len;
}

bool stringToInt(const robj *o, int64_t *out) {
    if (likely(objectIsInt(o))) {
        *out = objectInt(o);
        return true;
    }
    return numberParseInt(objectText(o, NULL), out);
}

bool stringBit(const robj *o, uint64_t offset) {
    char digits[NUMBER_TEXT_MAX];
    slice text = objectText(o, digits);
    uint64_t at = offset / 8;
    return at < text.len && ((unsigned char)text.ptr[at] >> (7 - offset % 8) & 1);
}

robj *stringSetInt(robj *o, int64_t value) {
    if (likely(objectOverwriteInt(o, value))) return o;
    robj *changed = objectNewInt(objectKey(o), value, objectExpire(o), objectAccess(o));
    objectFree(o);
    return changed;
}

robj *stringSetText(robj *o, slice text) {
    robj *changed =
        objectNewString(objectKey(o), text, objectExpire(o), objectAccess(o), KEEP_TEXT);
    if (objectHasExpire(o)) objectMarkRawWithTtl(changed);
    objectFree(o);
    return changed;
}

static void fillZeros(char *bytes, size_t from, size_t to) {
    if (to > from) memset(bytes + from, 0, to - from);
}

/* Capacity for `len` bytes and future growth, a whole allocator block. */
static size_t capacityFor(size_t len) {
    size_t capacity = sizeof(blob) + len + sizeMin(len, SPARE_BYTES_MAX) + 1;
    return memGoodSize(capacity) - sizeof(blob) - 1;
}

/* A blob of `len` bytes that begins with `text` and has spare capacity; NULL if memory is
 * exhausted. */
static blob *newGrown(slice text, size_t len) {
    blob *b = len <= SIZE_MAX / 2 ? blobTryNew(capacityFor(len)) : NULL;
    if (!b) return NULL;
    memcpy(b->bytes, text.ptr, text.len);
    fillZeros(b->bytes, text.len, len);
    b->len = len;
    return b;
}

static status stretchBlob(robj *o, size_t len, char **bytes) {
    blob *was = objectPointer(o), *b = was;
    len = sizeMax(len, was->len);
    if (was->refs > 1) {
        b = newGrown(sliceMake(was->bytes, was->len), len);
        if (b) blobRelease(was);
    } else if (len > was->cap) {
        b = len <= SIZE_MAX / 2 ? blobTryReserve(was, capacityFor(len)) : NULL;
    }
    if (!b) return ERR_NO_MEMORY;
    fillZeros(b->bytes, b->len, len);
    b->len = len;
    *bytes = b->bytes;
    objectSetPointer(o, b);
    return OK;
}

/* A new object with `len` bytes of raw text that begin with `text`; NULL if memory is exhausted.
 * Text that was embedded and does not grow, but may not be changed in place, remains embedded: in a
 * blob it would get spare capacity. */
static robj *newRaw(slice key, slice text, size_t len, int64_t expire_ms, uint32_t access,
                    char **bytes) {
    if (len == text.len || objectTextSize(key, len, expire_ms) <= EMBED_GROWN_MAX) {
        robj *o = objectNewRaw(key, len, expire_ms, access, bytes);
        memcpy(*bytes, text.ptr, text.len);
        fillZeros(*bytes, text.len, len);
        return o;
    }
    blob *b = newGrown(text, len);
    if (!b) return NULL;
    *bytes = b->bytes;
    return objectNewStringTake(key, b, expire_ms, access);
}

status stringStretch(robj **o, size_t len, char **bytes) {
    hotCheck(threadIsMain());
    char digits[NUMBER_TEXT_MAX];
    robj *was = *o;
    if (objectForm(was) == FORM_POINTER) return stretchBlob(was, len, bytes);
    slice old = objectText(was, digits);
    size_t old_len = old.len;
    len = sizeMax(len, old_len);
    *bytes = objectStretch(was, len);
    if (*bytes) {
        fillZeros(*bytes, old_len, len);
        return OK;
    }
    robj *changed = newRaw(objectKey(was), old, len, objectExpire(was), objectAccess(was), bytes);
    if (!changed) return ERR_NO_MEMORY;
    objectFree(was);
    *o = changed;
    return OK;
}

void stringCut(robj **o, size_t len) {
    hotCheck(threadIsMain());
    robj *was = *o;
    check(len <= stringLen(was));
    if (objectForm(was) == FORM_POINTER) {
        blob *b = objectPointer(was);
        check(b->refs == 1);
        b->len = len;
    } else if (!objectStretch(was, len)) {
        char *bytes;
        *o = objectNewRaw(objectKey(was), len, objectExpire(was), objectAccess(was), &bytes);
        memcpy(bytes, objectText(was, NULL).ptr, len);
        objectFree(was);
    }
}

robj *stringSetTake(robj *o, blob *take) {
    robj *changed = objectNewStringTake(objectKey(o), take, objectExpire(o), objectAccess(o));
    objectFree(o);
    return changed;
}

status stringNewRaw(slice key, size_t len, robj **out, char **bytes) {
    hotCheck(threadIsMain());
    if (objectTextSize(key, len, OBJECT_NO_EXPIRE) <= EMBED_GROWN_MAX) {
        *out = newRaw(key, SLICE(""), len, OBJECT_NO_EXPIRE, 0, bytes);
        return OK;
    }
    blob *b = blobTryNew(len); /* without spare capacity */
    if (!b) return ERR_NO_MEMORY;
    fillZeros(b->bytes, 0, len);
    b->len = len;
    *bytes = b->bytes;
    *out = objectNewStringTake(key, b, OBJECT_NO_EXPIRE, 0);
    return OK;
}

/* ------------------------------------------------------------------ type operations */

static void digestString(const robj *o, int db_id, storeLook look, digest *to) {
    (void)db_id; /* the same everywhere */
    (void)look;  /* strings have no items that expire */
    char digits[NUMBER_TEXT_MAX];
    digestMix(to, objectText(o, digits));
}

static void freeBlob(void *value, valueFreer *by) {
    (void)by; /* a blob is not in a slab store */
    blobRelease(value);
}

static void *shareBlob(const valuePlace *from, const valuePlace *to, void *value) {
    (void)from, (void)to; /* not needed */
    return blobRetain(value);
}

static bool isSharedBlob(const void *value) { return blobIsShared(value); }

static size_t blobBytes(const valuePlace *at, const void *value, size_t samples) {
    (void)at;      /* not needed */
    (void)samples; /* a single block */
    return blobMemory(value);
}

static uint64_t compactBlob(void **value, uint64_t cursor, compaction *by) {
    void *moved = cursor == 0 && !blobIsShared(*value) ? elementMoveBlock(*value, by) : NULL;
    if (moved) *value = moved;
    return 0;
}

/* Freeing a long text takes time because the kernel takes its pages back. */
static size_t blobEffort(const valuePlace *at, const void *value) {
    enum { BYTES_PER_STEP = 64 * 1024 };
    (void)at; /* the same everywhere */
    return ((const blob *)value)->cap / BYTES_PER_STEP;
}

const typeOps stringOps = {
    .length = stringLen,
    .encoding = objectStringEncoding,
    .digest = digestString,
    .free_value = freeBlob,
    .free_effort = blobEffort,
    .copy_value = shareBlob,
    .is_shared = isSharedBlob,
    .value_memory = blobBytes,
    .compact_value = compactBlob,
};
