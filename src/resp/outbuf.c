/* SPDX-License-Identifier: BSD-3-Clause
 *
 * outbuf: pending output in a chain of blocks.
 *
 * Each block may begin with a borrowed part of a blob, followed by its own bytes. The last block is
 * open while the outbuf's `at` points into it; base..at are then its pending bytes. Sealing a block
 * stores these values in the block and sets `at` to NULL.
 *
 * Invariants: pending bytes = queued + (at - base). An outbuf without pending bytes has no block.
 * An outbuf with a sink is sealed unless the sink collects, so the inline append never finds space.
 * Cost: append and consume are O(bytes), everything else O(blocks); blocks of the default size come
 * from a bounded per-thread pool. One thread at a time uses an outbuf; only the thread that owns
 * the blobs retains and releases them. */
#include "base/bytes.h"
#include "resp/outblock.h"
#include "resp/outbuf_drop.h"

_Static_assert(OUTBLOCK_SIZE - offsetof(outblock, bytes) >= OUTBUF_RESERVE_MAX,
               "a reservation must fit in a block");
_Static_assert(OUTBLOCK_SHARED_SIZE - offsetof(outblock, bytes) >= OUTBUF_RESERVE_MAX,
               "a reservation must fit in a shared block");
_Static_assert(OUTBLOCK_SMALL_SIZE - offsetof(outblock, bytes) >= OUTBUF_RESERVE_MAX,
               "a reservation must fit in a small block");

/* Free blocks of this thread. `unused` is the minimum of `count` since the last call of
 * outbufPoolAge(). */
static _Thread_local struct {
    outblock *first;
    int count;
    int unused;
} spare;

/* ------------------------------------------------------------------ blocks */

static outblock *blockNew(uint32_t size) {
    outblock *b;
    if (size == OUTBLOCK_SIZE && spare.first != NULL) {
        b = spare.first;
        spare.first = b->next;
        spare.count--;
        if (spare.count < spare.unused) spare.unused = spare.count;
        hotCheck(b->size == OUTBLOCK_SIZE);
    } else {
        b = memAlloc(size);
    }
    b->next = NULL;
    b->lent = NULL;
    b->lent_at = 0;
    b->lent_left = 0;
    b->lent_len = 0;
    b->size = size;
    b->start = 0;
    b->used = 0;
    return b;
}

static void blockFree(outblock *b) {
    hotCheck(b->lent == NULL);
    if (b->size == OUTBLOCK_SIZE && spare.count < OUTBLOCK_POOL_MAX) {
        b->next = spare.first;
        spare.first = b;
        spare.count++;
        hotCheck(spare.count <= OUTBLOCK_POOL_MAX);
    } else {
        memFree(b);
    }
}

static size_t poolShrink(int count) {
    hotCheck(spare.unused <= spare.count);
    size_t bytes = 0;
    while (spare.count > count) {
        outblock *b = spare.first;
        spare.first = b->next;
        spare.count--;
        bytes += b->size;
        memFree(b);
    }
    return bytes;
}

size_t outbufPoolTrim(void) {
    spare.unused = 0;
    return poolShrink(0);
}

size_t outbufPoolAge(void) {
    size_t bytes = poolShrink(spare.count - spare.unused);
    spare.unused = spare.count;
    return bytes;
}

static size_t blockMemory(const outblock *b) { return b->size + b->lent_len; }

/* The pending own bytes of a block of `o`: returns their address and sets *len. */
static char *blockOwn(const outbuf *o, outblock *b, size_t *len) {
    hotCheck(b->start <= b->used || b == o->last);
    if (b == o->last && o->at != NULL) {
        *len = (size_t)(o->at - o->base);
        return o->base;
    }
    *len = b->used - b->start;
    return b->bytes + b->start;
}

/* Closes the open block: stores its position in the block itself. */
static void seal(outbuf *o) {
    if (o->at == NULL) return;
    outblock *b = o->last;
    b->start = (uint32_t)(o->base - b->bytes);
    b->used = (uint32_t)(o->at - b->bytes);
    hotCheck(b->start <= b->used);
    hotCheck(offsetof(outblock, bytes) + b->used <= b->size);
    o->queued += b->used - b->start;
    o->at = o->end = o->base = NULL;
}

/* Opens the last block for appending. */
static void unseal(outbuf *o) {
    hotCheck(o->at == NULL);
    outblock *b = o->last;
    o->base = b->bytes + b->start;
    o->at = b->bytes + b->used;
    o->end = (char *)b + b->size;
    hotCheck(o->at <= o->end);
    hotCheck(o->queued >= b->used - b->start);
    o->queued -= b->used - b->start;
}

static void blockAdd(outbuf *o, uint32_t size) {
    seal(o);
    outblock *b = blockNew(size);
    if (o->last) {
        o->last->next = b;
    } else {
        o->first = b;
    }
    o->last = b;
    o->memory += size;
    unseal(o);
    hotCheck(o->last);
    hotCheck(o->at);
}

/* Removes the first block, which has been sent completely, from the chain. */
static void blockDropFirst(outbuf *o) {
    hotCheck(o->first);
    outblock *b = o->first;
    if (b == o->last) {
        seal(o);
        o->last = NULL;
    }
    o->first = b->next;
    if (b->lent) {
        b->next = o->spent;
        o->spent = b;
    } else {
        o->memory -= b->size;
        blockFree(b);
    }
}

void outbufReapSlow(outbuf *o) {
    while (o->spent) {
        outblock *b = o->spent;
        o->spent = b->next;
        o->memory -= blockMemory(b);
        blobRelease(b->lent);
        b->lent = NULL;
        blockFree(b);
    }
    hotCheck(!o->spent);
}

/* ------------------------------------------------------------------ init and clear */

/* Never written: nothing needs to be collected. */
static replySink null_sink;

void outbufInit(outbuf *o) { *o = (outbuf){.at = NULL}; }

void outbufInitNull(outbuf *o) {
    outbufInit(o);
    outbufSetNullSink(o, true);
}

void outbufClear(outbuf *o) {
    while (o->first) {
        outblock *b = o->first;
        if (b == o->last) o->at = o->end = o->base = NULL;
        blockDropFirst(o);
    }
    o->queued = 0;
    outbufReap(o);
    check(o->memory == 0);
    if (unlikely(o->sink != NULL) && o->sink->collecting) o->sink->collecting = false;
}

void outbufSetNullSink(outbuf *o, bool on) {
    seal(o);
    o->sink = on ? &null_sink : NULL;
}

bool outbufIsNull(const outbuf *o) { return sinkDrops(o); }

/* ------------------------------------------------------------------ appending */

/* Reopens the last block if it has more than `need` bytes free, else opens a new one. */
static void openBlock(outbuf *o, size_t need) {
    if (o->last && o->at == NULL) {
        unseal(o);
        if ((size_t)(o->end - o->at) > need) return;
    }
    blockAdd(o, OUTBLOCK_SIZE);
    hotCheck(o->at);
}

bool outbufReserve(outbuf *o, size_t need) {
    check(need <= OUTBUF_RESERVE_MAX);
    if (o->sink && !o->sink->collecting) return false;
    if ((size_t)(o->end - o->at) < need) openBlock(o, need);
    return true;
}

void outbufAppendSlow(outbuf *o, const void *bytes, size_t len) {
    const char *from = bytes;
    if (o->sink) {
        size_t taken;
        if (sinkTakeBytes(o, bytes, len, &taken)) return;
        from += taken;
        len -= taken;
    }
    while (len > 0) {
        if (o->at == o->end) openBlock(o, 0);
        size_t n = sizeMin(len, (size_t)(o->end - o->at));
        memcpy(o->at, from, n);
        o->at += n;
        from += n;
        len -= n;
    }
}

/* Adds a block that begins with a part of a blob, of which `counted` bytes count as memory. */
static void lend(outbuf *o, uint32_t size, blob *b, size_t offset, size_t len, size_t counted) {
    hotCheck(offset + len <= b->len);
    blockAdd(o, size);
    outblock *block = o->last;
    block->lent = blobRetain(b);
    block->lent_at = offset;
    block->lent_left = len;
    block->lent_len = counted;
    o->queued += len;
    o->memory += counted;
}

void outbufAppendBlob(outbuf *o, blob *b, size_t offset, size_t len) {
    if (sinkDrops(o) || len == 0) return;
    if (o->sink) sinkCollect(o);
    check(offset <= b->len);
    check(len <= b->len - offset);
    lend(o, OUTBLOCK_SMALL_SIZE, b, offset, len, len);
}

void outbufAppendShared(outbuf *o, blob *b, size_t offset, size_t len) {
    hotCheck(offset + len <= b->len);
    enum { COPY_MAX = 256 }; /* into a block that exists already */
    if (unlikely(o->sink != NULL)) {
        outbufAppend(o, b->bytes + offset, len);
        return;
    }
    outblock *last = o->last;
    if (last && o->at) {
        bool continues = last->lent == b && last->lent_at + last->lent_left == offset;
        if (continues && o->at == last->bytes) {
            last->lent_left += len;
            o->queued += len;
            return;
        }
        if (len <= COPY_MAX && (size_t)(o->end - o->at) > len) {
            outbufAppend(o, b->bytes + offset, len);
            return;
        }
    }
    lend(o, OUTBLOCK_SHARED_SIZE, b, offset, len, 0);
}

void outbufMoveAll(outbuf *to, outbuf *from) {
    outblock *b = from->first;
    if (b == NULL) return;
    if (sinkDrops(to)) {
        outbufClear(from);
        return;
    }
    if (to->sink) sinkCollect(to);
    size_t len;
    const char *bytes = blockOwn(from, b, &len);
    if (b == from->last && b->lent == NULL && len <= OUTBLOCK_SIZE / 4) {
        outbufAppend(to, bytes, len);
        outbufClear(from);
        return;
    }
    seal(to);
    seal(from);
    if (to->last) {
        to->last->next = from->first;
    } else {
        to->first = from->first;
    }
    to->last = from->last;
    to->queued += from->queued;
    for (; b; b = b->next) {
        to->memory += blockMemory(b);
        from->memory -= blockMemory(b);
    }
    from->first = from->last = NULL;
    from->queued = 0;
}

/* ------------------------------------------------------------------ sending */

size_t outbufBlocks(const outbuf *o) {
    size_t count = 0;
    for (const outblock *b = o->first; b; b = b->next) count++;
    return count;
}

int outbufIovecs(const outbuf *o, struct iovec *iov, int max) {
    int count = 0;
    for (outblock *b = o->first; b && count < max; b = b->next) {
        if (b->lent_left > 0) {
            iov[count++] = (struct iovec){b->lent->bytes + b->lent_at, b->lent_left};
            if (count == max) break;
        }
        size_t own;
        char *bytes = blockOwn(o, b, &own);
        if (own > 0) iov[count++] = (struct iovec){bytes, own};
    }
    return count;
}

/* Blocks of dropped outputs. Main thread. */
static outblock *dropped;

void outbufDrop(outbuf *o) {
    enum { AT_ONCE = 1024 * 1024 };
    if (likely(o->memory <= AT_ONCE) || o->sink || !o->first) {
        outbufClear(o);
        return;
    }
    hotCheck(threadIsMain());
    seal(o);
    o->last->next = dropped;
    dropped = o->first;
    o->first = o->last = NULL;
    outbufReap(o);
    o->memory = o->queued = 0;
}

bool outbufFreeDropped(size_t bytes) {
    hotCheck(threadIsMain());
    for (size_t freed = 0; dropped && freed < bytes;) {
        outblock *b = dropped;
        dropped = b->next;
        freed += blockMemory(b);
        blobRelease(b->lent);
        b->lent = NULL;
        blockFree(b);
    }
    return dropped != NULL;
}

void outbufConsume(outbuf *o, size_t n) {
    check(n <= outbufPending(o));
    while (o->first) {
        outblock *b = o->first;
        size_t lent = sizeMin(n, b->lent_left);
        b->lent_at += lent;
        b->lent_left -= lent;
        o->queued -= lent;
        n -= lent;
        size_t own;
        blockOwn(o, b, &own);
        size_t gone = sizeMin(n, own);
        if (b == o->last && o->at != NULL) {
            o->base += gone;
        } else {
            b->start += (uint32_t)gone;
            o->queued -= gone;
        }
        n -= gone;
        if (b->lent_left > 0) return;
        if (gone < own) return;
        blockDropFirst(o);
    }
}

outmark outbufMark(const outbuf *o) {
    if (unlikely(o->sink != NULL)) sinkCollect(o);
    return (outmark){outbufPending(o)};
}

void outbufCutTo(outbuf *o, outmark mark) {
    size_t pending = outbufPending(o);
    check(mark.at <= pending);
    if (mark.at == pending) return;
    seal(o);
    outblock *keep = NULL;
    outblock *b = o->first;
    size_t before = 0; /* pending bytes before `b` */
    while (before < mark.at) {
        size_t here = b->lent_left + (b->used - b->start);
        if (before + here > mark.at) {
            check(mark.at - before >= b->lent_left); /* a mark is never inside a blob */
            b->used = b->start + (uint32_t)(mark.at - before - b->lent_left);
            here = mark.at - before;
        }
        before += here;
        keep = b;
        b = b->next;
    }
    while (b) {
        outblock *next = b->next;
        o->memory -= blockMemory(b);
        blobRelease(b->lent);
        b->lent = NULL;
        blockFree(b);
        b = next;
    }
    o->last = keep;
    if (keep) {
        keep->next = NULL;
    } else {
        o->first = NULL;
    }
    o->queued = mark.at;
}

char *outbufCopy(const outbuf *o, size_t *len) {
    *len = outbufPending(o);
    char *copy = memAlloc(*len + 1), *to = copy;
    for (outblock *b = o->first; b; b = b->next) {
        if (b->lent_left > 0) memcpy(to, b->lent->bytes + b->lent_at, b->lent_left);
        to += b->lent_left;
        size_t own;
        const char *bytes = blockOwn(o, b, &own);
        memcpy(to, bytes, own);
        to += own;
    }
    *to = 0;
    check(to == copy + *len);
    return copy;
}
