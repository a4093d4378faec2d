/* SPDX-License-Identifier: BSD-3-Clause
 *
 * The most recent part of a replication stream, in a chain of blocks. There is one copy of the
 * bytes: replicas refer to them by a position each, and output buffers by references to the blocks.
 * A block is kept while a position is in it, so the chain may exceed its limit; its memory counts
 * until no output refers to it. The first byte of a stream has number 1. One thread at a time. */
#ifndef PSYNC_BACKLOG_H
#define PSYNC_BACKLOG_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/blob.h"
#include "base/slice.h"
#include "ds/list.h"

typedef struct backlogBlock {
    listNode node;
    blob *bytes;
    int64_t start;  /* number of its first byte */
    int64_t number; /* of the block; consecutive */
    int holders;    /* positions in it */
} backlogBlock;

typedef struct replBacklog {
    list blocks;   /* at least one */
    list lent;     /* blocks removed from `blocks` to which outputs refer */
    int64_t first; /* number of the oldest byte */
    int64_t next;  /* number of the next byte */
    size_t limit;  /* bytes that are kept without positions */
    size_t memory; /* of all blocks, lent ones included, in bytes */
} replBacklog;

/* The next byte that a reader needs. Not to be copied while it is open. */
typedef struct backlogPosition {
    backlogBlock *block; /* NULL: not open */
    int64_t next;
} backlogPosition;

/* An empty backlog of a stream whose next byte is `next`. */
void backlogInit(replBacklog *b, int64_t next, size_t limit);
/* No position may be open. */
void backlogClear(replBacklog *b);
/* Applies to the blocks that no position holds. */
void backlogSetLimit(replBacklog *b, size_t limit);
/* O(bytes), no allocation unless the last block is full. */
void backlogAppend(replBacklog *b, const slice *spans, int count);
/* Number of bytes available. */
static inline int64_t backlogLength(const replBacklog *b) { return b->next - b->first; }
/* True if all bytes from `from` on are available; `from` may be the next byte. */
bool backlogHas(const replBacklog *b, int64_t from);

/* Opens a position; backlogHas(b, from) must be true. O(number of blocks). */
void backlogOpen(replBacklog *b, backlogPosition *p, int64_t from);
/* May free blocks that only this position held. No effect if it is not open. */
void backlogClose(replBacklog *b, backlogPosition *p);
/* Moves over at most `most` contiguous bytes and returns their number, 0 at the end; they are in
 * `*bytes` at `*at`, which the caller retains if it keeps them. */
size_t backlogRead(replBacklog *b, backlogPosition *p, size_t most, blob **bytes, size_t *at);
/* Bytes in the blocks that the position keeps, and the number of these blocks. */
size_t backlogHeld(const replBacklog *b, const backlogPosition *p, int64_t *blocks);
/* Frees the lent blocks whose bytes have been sent; appending does it, too. O(lent blocks). */
void backlogReclaim(replBacklog *b);
/* Copies the last bytes, at most `most`; returns their number. */
size_t backlogTail(const replBacklog *b, char *to, size_t most);

#endif
