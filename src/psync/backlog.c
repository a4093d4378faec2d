/* SPDX-License-Identifier: BSD-3-Clause
 *
 * The replication backlog: a list of blocks to which the stream is appended, and positions in it
 * (backlog.h).
 *
 * Invariants: there is always a last block, to which bytes are appended; each block begins where
 * the one before it ends; `first` is the start of the first block. A block is not removed while a
 * position is in it. */
#include "psync/backlog.h"

#include <string.h>

#include "base/base.h"

enum { BLOCK_MIN = 16 * 1024, BLOCKS_PER_BACKLOG = 16 };

static backlogBlock *blockOf(listNode *n) { return LIST_OWNER(n, backlogBlock, node); }

static backlogBlock *firstBlock(const replBacklog *b) { return blockOf(b->blocks.head.next); }

static backlogBlock *lastBlock(const replBacklog *b) { return blockOf(b->blocks.head.prev); }

static backlogBlock *nextBlock(const replBacklog *b, const backlogBlock *block) {
    listNode *n = listNext(&b->blocks, &block->node);
    return n ? blockOf(n) : NULL;
}

static size_t blockMemory(const backlogBlock *block) {
    return blobMemory(block->bytes) + sizeof(*block);
}

/* Blocks grow with the backlog: a small one costs little memory, a large one has few blocks. With
 * the header of the blob a block is a power of two, which the allocator does not round up. */
static size_t blockCapacity(const replBacklog *b) {
    hotCheck(backlogLength(b) >= 0);
    size_t share = sizeMin((size_t)backlogLength(b), b->limit) / BLOCKS_PER_BACKLOG;
    size_t size = BLOCK_MIN;
    while (size * 2 <= share) size *= 2;
    return size - sizeof(blob) - 1;
}

static backlogBlock *addBlock(replBacklog *b) {
    hotCheck(listIsEmpty(&b->blocks) || lastBlock(b)->bytes->len == lastBlock(b)->bytes->cap);
    backlogBlock *block = memNew(backlogBlock);
    block->number = listIsEmpty(&b->blocks) ? 0 : lastBlock(b)->number + 1;
    block->bytes = blobNew(blockCapacity(b));
    block->start = b->next;
    listAppend(&b->blocks, &block->node);
    b->memory += blockMemory(block);
    return block;
}

static void freeBlock(replBacklog *b, backlogBlock *block) {
    hotCheck(block->holders == 0);
    hotCheck(b->memory >= blockMemory(block));
    b->memory -= blockMemory(block);
    blobRelease(block->bytes);
    memFree(block);
}

static void removeBlock(replBacklog *b, backlogBlock *block) {
    hotCheck(block->holders == 0);
    listRemove(&b->blocks, &block->node);
    if (blobIsShared(block->bytes)) {
        listAppend(&b->lent, &block->node);
    } else {
        freeBlock(b, block);
    }
}

void backlogReclaim(replBacklog *b) {
    for (listNode *n = listFirst(&b->lent), *next; n; n = next) {
        next = listNext(&b->lent, n);
        if (blobIsShared(blockOf(n)->bytes)) continue;
        listRemove(&b->lent, n);
        freeBlock(b, blockOf(n));
    }
}

/* Removes the oldest blocks that are not needed. */
static void trim(replBacklog *b) {
    for (;;) {
        backlogBlock *block = firstBlock(b);
        if (block == lastBlock(b) || block->holders) break;
        if ((size_t)backlogLength(b) < b->limit + block->bytes->len) break;
        removeBlock(b, block);
        b->first = firstBlock(b)->start;
    }
    hotCheck(b->first == firstBlock(b)->start);
    hotCheck(b->first <= b->next);
}

void backlogInit(replBacklog *b, int64_t next, size_t limit) {
    hotCheck(next >= 0);
    hotCheck(limit > 0);
    listInit(&b->blocks);
    listInit(&b->lent);
    b->first = b->next = next;
    b->limit = limit;
    b->memory = 0;
    addBlock(b);
    hotCheck(backlogLength(b) == 0);
}

void backlogClear(replBacklog *b) {
    while (!listIsEmpty(&b->blocks)) {
        check(firstBlock(b)->holders == 0);
        removeBlock(b, firstBlock(b));
    }
    for (listNode *n; (n = listFirst(&b->lent)) != NULL;) { /* outputs keep the bytes */
        listRemove(&b->lent, n);
        freeBlock(b, blockOf(n));
    }
}

void backlogSetLimit(replBacklog *b, size_t limit) {
    hotCheck(limit > 0);
    b->limit = limit;
    trim(b);
}

static void appendSpan(replBacklog *b, slice span) {
    while (span.len) {
        backlogBlock *block = lastBlock(b);
        if (block->bytes->len == block->bytes->cap) {
            block = addBlock(b);
            trim(b);
            backlogReclaim(b);
        }
        blob *to = block->bytes;
        size_t n = sizeMin(span.len, to->cap - to->len);
        memcpy(to->bytes + to->len, span.ptr, n);
        to->len += n;
        b->next += (int64_t)n;
        span = sliceMake(span.ptr + n, span.len - n);
    }
}

void backlogAppend(replBacklog *b, const slice *spans, int count) {
    for (int i = 0; i < count; i++) appendSpan(b, spans[i]);
}

bool backlogHas(const replBacklog *b, int64_t from) { return from >= b->first && from <= b->next; }

static void enter(backlogPosition *p, backlogBlock *block) {
    hotCheck(block->holders >= 0);
    p->block = block;
    block->holders++;
}

void backlogOpen(replBacklog *b, backlogPosition *p, int64_t from) {
    check(backlogHas(b, from));
    backlogBlock *block = lastBlock(b);
    while (block->start > from) block = blockOf(block->node.prev);
    p->next = from;
    enter(p, block);
}

void backlogClose(replBacklog *b, backlogPosition *p) {
    hotCheck(!p->block || p->block->holders > 0);
    if (!p->block) return;
    p->block->holders--;
    p->block = NULL;
    trim(b);
}

size_t backlogRead(replBacklog *b, backlogPosition *p, size_t most, blob **bytes, size_t *at) {
    hotCheck(p->next >= p->block->start);
    hotCheck(p->next <= b->next);
    size_t done = (size_t)(p->next - p->block->start);
    backlogBlock *after = nextBlock(b, p->block);
    if (done == p->block->bytes->len && after) {
        p->block->holders--;
        enter(p, after);
        trim(b);
        done = 0;
    }
    size_t n = sizeMin(most, p->block->bytes->len - done);
    *bytes = p->block->bytes;
    *at = done;
    p->next += (int64_t)n;
    return n;
}

size_t backlogHeld(const replBacklog *b, const backlogPosition *p, int64_t *blocks) {
    hotCheck(p->block->number <= lastBlock(b)->number);
    hotCheck(p->next >= b->first);
    *blocks = lastBlock(b)->number - p->block->number + 1;
    return (size_t)(b->next - p->block->start);
}

size_t backlogTail(const replBacklog *b, char *to, size_t most) {
    hotCheck(backlogLength(b) >= 0);
    size_t len = sizeMin(most, (size_t)backlogLength(b));
    size_t left = len;
    for (backlogBlock *block = lastBlock(b); left; block = blockOf(block->node.prev)) {
        size_t n = sizeMin(left, block->bytes->len);
        left -= n;
        memcpy(to + left, block->bytes->bytes + block->bytes->len - n, n);
    }
    return len;
}
