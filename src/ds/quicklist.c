/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Quicklists (quicklist.h).
 *
 * Invariant: no node is empty; `size` is the uncompressed size of a node's content. With depth d,
 * the first d and the last d nodes are uncompressed, and all others are compressed, except while
 * they are changed or if compression saves too little. Nodes that are not used may be compressed by
 * a codec, too, but never the first and the last one (quicklist_coded.c). Nodes are split and
 * merged as in Valkey, so that the same commands produce the same nodes. ANY_THREAD that owns the
 * list.
 *
 * A listpack begins where its block begins, except that of the head: the unused part of its block
 * may be in front of it, `room` bytes, where entries are added and removed without moving the
 * others. The block has the same size as otherwise. Functions that change the head in another way,
 * or give it another place, close the room first. */
#include <lzf.h>

#include "base/fiber.h"
#include "ds/quicklist_private.h"

enum {
    COUNTED_NODE_BYTES_MAX = 8192, /* limit of a listpack whose entries are limited by number */
    ENTRY_OVERHEAD = 8,            /* assumed overhead of an entry in addition to its text */
    COMPRESS_FROM = 48,            /* minimum size in bytes */
    COMPRESS_GAIN_MIN = 8,
};

static size_t plain_from;

void quicklistSetPlainFrom(size_t bytes) { plain_from = bytes; }

/* ------------------------------------------------------------------ limits */

quicklistLimits quicklistLimitsOf(int fill) {
    enum { LEVELS = 5 };
    static const size_t level_bytes[LEVELS] = {4096, 8192, 16384, 32768, 65536};
    if (fill >= 0) return (quicklistLimits){SIZE_MAX, fill ? (size_t)fill : 1};
    int level = fill < -LEVELS ? LEVELS : -fill;
    return (quicklistLimits){level_bytes[level - 1], SIZE_MAX};
}

bool quicklistExceeds(int fill, size_t bytes, size_t entries) {
    quicklistLimits buffer = quicklistLimitsOf(fill);
    if (buffer.bytes != SIZE_MAX) return bytes > buffer.bytes;
    return bytes > COUNTED_NODE_BYTES_MAX || entries > buffer.entries;
}

/* True if a string gets a node of its own. */
static bool isLarge(const quicklist *q, size_t len) {
    hotCheck(q->fill >= -5);
    if (unlikely(plain_from)) return len >= plain_from;
    if (q->fill >= 0) return len > COUNTED_NODE_BYTES_MAX;
    return len > quicklistLimitsOf(q->fill).bytes;
}

static bool takesMore(const quicklist *q, const quicklistNode *n, size_t len) {
    if (!n || n->plain) return false;
    return !quicklistExceeds(q->fill, n->size + len + ENTRY_OVERHEAD, (size_t)n->count + 1);
}

static bool canMerge(const quicklist *q, const quicklistNode *a, const quicklistNode *b) {
    if (!a || !b || a->plain || b->plain) return false;
    return !quicklistExceeds(q->fill, a->size + b->size - LISTPACK_EMPTY_SIZE,
                             (size_t)a->count + b->count);
}

/* Before a node is changed in place: its block becomes its own. */
static void ownBytes(quicklistNode *n) {
    if (likely(!(n->frozen | n->marked | n->futile))) return;
    n->marked = n->futile = 0;
    if (!n->frozen) return;
    size_t size = quicklistBlockSize(n);
    uint8_t *copy = memAlloc(sizeMax(size, 1));
    memcpy(copy, n->bytes, size);
    quicklistRelease(n);
    n->bytes = copy;
    hotCheck(!n->frozen);
}

/* ------------------------------------------------------------------ room in the head's block */

/* The block that contains the content of a node. */
static uint8_t *blockOf(const quicklist *q, const quicklistNode *n) {
    return n->bytes - (n == q->head ? q->room : 0);
}

/* The head's listpack moves to `place`, `room` bytes from the start of its block. */
static void placeHead(quicklist *q, uint8_t *place, size_t room) {
    hotCheck(q->head->size <= room + q->head->size);
    memmove(place, q->head->bytes, q->head->size);
    q->head->bytes = place;
    q->room = (uint32_t)room;
}

/* The head's listpack moves to the start of its block. */
void quicklistCloseRoom(quicklist *q) {
    if (q->room) placeHead(q, q->head->bytes - q->room, 0);
}

/* The head's listpack moves to the end of its block, which is replaced if that makes less than
 * `need` bytes of room. */
static void makeRoom(quicklist *q, size_t need) {
    hotCheck(q->room < need);
    hotCheck(!q->head->plain);
    uint8_t *old = q->head->bytes - q->room, *block = old;
    size_t size = q->head->size, block_size = memSizeOf(old);
    if (block_size - size < need) {
        block_size = memGoodSize(size + need);
        block = memAlloc(block_size);
    }
    placeHead(q, block + block_size - size, block_size - size);
    if (block != old) memFree(old);
}

/* Adds a text at the front of the head, a listpack. */
static void pushAtHead(quicklist *q, slice text) {
    hotCheck(!q->head->plain);
    hotCheck(!q->head->compressed);
    ownBytes(q->head);
    quicklistNode *n = q->head;
    listpackItem item = listpackItemOf(text);
    size_t need = listpackItemSize(&item);
    if (unlikely(q->room < need)) makeRoom(q, need);
    n->bytes = listpackExtendFront(n->bytes, &item);
    n->size += need;
    n->count++;
    q->room -= (uint32_t)need;
}

static uint8_t *keepBlock(packBuffer *buffer, size_t size) {
    (void)size; /* see popAtHead() */
    return buffer->bytes;
}

/* Removes `count` entries, not all, from one end of the head, a listpack. */
static void popAtHead(quicklist *q, bool front, size_t count) {
    hotCheck(count <= q->head->count);
    hotCheck(!q->head->plain);
    ownBytes(q->head);
    quicklistNode *n = q->head;
    if (front) {
        uint8_t *before = n->bytes;
        n->bytes = listpackTrimFront(before, count);
        q->room += (uint32_t)(n->bytes - before);
    } else {
        packBuffer buffer = {.bytes = n->bytes, .resize = keepBlock};
        listpackDeleteRange(&buffer, -(int64_t)count, count);
    }
    n->size = listpackSize(n->bytes);
    n->count -= count;
    if (memGoodSize(n->size) >= memSizeOf(n->bytes - q->room)) return;
    quicklistCloseRoom(q);
    n->bytes = memRealloc(n->bytes, n->size);
}

/* ------------------------------------------------------------------ compression */

static void compressNode(quicklistNode *n) {
    hotCheck(!n->frozen || n->bytes);
    if (n->compressed || n->size < COMPRESS_FROM || n->size > INT32_MAX) return;
    size_t most = n->size - COMPRESS_GAIN_MIN;
    uint8_t *block = memAlloc(sizeof(uint32_t) + most);
    unsigned size =
        lzf_compress(n->bytes, (unsigned)n->size, block + sizeof(uint32_t), (unsigned)most);
    if (size == 0) {
        memFree(block);
        return;
    }
    storeU32(block, size);
    quicklistRelease(n); /* it is not compressed yet */
    n->bytes = memRealloc(block, sizeof(uint32_t) + size);
    n->compressed = 1;
}

/* After nodes were removed: the ends are not coded. */
static void openEnds(quicklist *q) {
    if (!q->head) return;
    if (q->head->compressed) quicklistOpenNode(q->head);
    if (q->tail->compressed) quicklistOpenNode(q->tail);
    hotCheck(!q->head->compressed);
}

/* Decompresses the nodes near both ends and compresses the ones next to them. */
static void settleEnds(quicklist *q) {
    if (likely(!q->depth)) return;
    quicklistNode *front = q->head, *back = q->tail;
    for (int i = 0; i < q->depth && front; i++) {
        quicklistOpenNode(front);
        quicklistOpenNode(back);
        front = front->next;
        back = back->prev;
    }
    if (q->nodes <= 2 * (size_t)q->depth) return;
    compressNode(front);
    compressNode(back);
}

/* Restores the compression invariant after a node was changed or added (NULL: removed). */
static void settle(quicklist *q, quicklistNode *n) {
    if (likely(!q->depth)) return;
    settleEnds(q);
    const quicklistNode *front = q->head, *back = q->tail;
    for (int i = 0; n && i < q->depth && front; i++, front = front->next, back = back->prev) {
        if (front == n || back == n) return;
    }
    if (n) compressNode(n);
}

/* Like settle(), for a node that was split and two nodes on each side. */
static void settleBoth(quicklist *q, quicklistNode *n) {
    quicklistNode *before = n->prev, *after = n->next;
    for (int i = 0; i < 2; i++) {
        if (before) settle(q, before);
        if (after) settle(q, after);
        before = before ? before->prev : NULL;
        after = after ? after->next : NULL;
    }
}

/* ------------------------------------------------------------------ nodes */

static quicklistNode *newNode(uint8_t *bytes, size_t size, size_t count, bool plain) {
    hotCheck(count > 0);
    hotCheck(!plain || count == 1);
    quicklistNode *n = memAlloc(sizeof(*n));
    *n = (quicklistNode){.bytes = bytes, .size = size, .count = count, .plain = plain};
    return n;
}

/* A node containing only this text. */
static quicklistNode *nodeOf(const quicklist *q, slice text) {
    if (unlikely(isLarge(q, text.len))) {
        uint8_t *bytes = memAlloc(sizeMax(text.len, 1));
        if (text.len) memcpy(bytes, text.ptr, text.len);
        return newNode(bytes, text.len, 1, true);
    }
    listpackItem item = listpackItemOf(text);
    packBuffer buffer = packBufferHeap(listpackNew());
    listpackAppend(&buffer, &item, 1);
    return newNode(buffer.bytes, listpackSize(buffer.bytes), 1, false);
}

static void link(quicklist *q, quicklistNode *prev, quicklistNode *n, quicklistNode *next) {
    hotCheck(prev != n);
    hotCheck(next != n);
    n->prev = prev;
    n->next = next;
    if (prev) {
        prev->next = n;
    } else {
        quicklistCloseRoom(q); /* the head is another node now */
        q->head = n;
    }
    if (next) {
        next->prev = n;
    } else {
        q->tail = n;
    }
    q->nodes++;
}

/* Links a node after or before `beside`. */
static void linkBeside(quicklist *q, quicklistNode *beside, quicklistNode *n, bool after) {
    if (after) {
        link(q, beside, n, beside->next);
    } else {
        link(q, beside->prev, n, beside);
    }
}

/* Unlinks and frees a node, and updates the counts. */
static void dropNode(quicklist *q, quicklistNode *n) {
    hotCheck(q->nodes > 0);
    if (unlikely(q->walk_next == n)) q->walk_next = n->next;
    n->bytes = blockOf(q, n);
    if (n->prev) {
        n->prev->next = n->next;
    } else {
        q->head = n->next;
        q->room = 0;
    }
    if (n->next) {
        n->next->prev = n->prev;
    } else {
        q->tail = n->prev;
    }
    q->nodes--;
    quicklistRelease(n);
    memFree(n);
}

static void noteChange(quicklistNode *n, const packBuffer *buffer, size_t count) {
    hotCheck(count > 0);
    n->bytes = buffer->bytes;
    n->size = listpackSize(buffer->bytes);
    n->count = count;
}

/* Inserts a text before entry `index` of an uncompressed listpack; at the end if that is the number
 * of entries. */
static void insertInNode(quicklist *q, quicklistNode *n, size_t index, slice text) {
    hotCheck(index <= n->count);
    hotCheck(!n->plain);
    if (n == q->head) {
        if (likely(index == 0)) {
            pushAtHead(q, text);
            return;
        }
        quicklistCloseRoom(q);
    }
    ownBytes(n);
    listpackItem item = listpackItemOf(text);
    packBuffer buffer = packBufferHeap(n->bytes);
    if (index == n->count) {
        listpackAppend(&buffer, &item, 1);
    } else {
        (void)listpackInsert(&buffer, listpackSeek(n->bytes, (int64_t)index), &item,
                             1); /* the position is known */
    }
    noteChange(n, &buffer, n->count + 1u);
}

/* Removes entries, but not all, from an uncompressed listpack. */
static void deleteInNode(quicklist *q, quicklistNode *n, size_t index, size_t count) {
    hotCheck(index < n->count);
    hotCheck(count > 0);
    hotCheck(index + count <= n->count);
    if (n == q->head) {
        bool at_end = index + count == n->count;
        if (index == 0 || (at_end && q->room)) {
            popAtHead(q, index == 0, count);
            return;
        }
        quicklistCloseRoom(q);
    }
    ownBytes(n);
    packBuffer buffer = packBufferHeap(n->bytes);
    listpackDeleteRange(&buffer, (int64_t)index, count);
    noteChange(n, &buffer, n->count - count);
}

/* Moves the entries from `index` on to a new node, which is not linked yet. */
static quicklistNode *cutNode(quicklist *q, quicklistNode *n, size_t index) {
    hotCheck(index > 0);
    hotCheck(index < n->count);
    hotCheck(!n->plain);
    packBuffer rest = packBufferHeap(memAlloc(n->size));
    memcpy(rest.bytes, n->bytes, n->size);
    listpackDeleteRange(&rest, 0, index);
    quicklistNode *cut = newNode(rest.bytes, listpackSize(rest.bytes), n->count - index, false);
    deleteInNode(q, n, index, cut->count);
    return cut;
}

/* Merges two neighbours; returns the resulting node. */
static quicklistNode *merge(quicklist *q, quicklistNode *a, quicklistNode *b) {
    hotCheck(a->next == b);
    hotCheck(!a->plain);
    hotCheck(!b->plain);
    quicklistOpenNode(a);
    quicklistOpenNode(b);
    if (a == q->head) quicklistCloseRoom(q);
    ownBytes(a);
    packBuffer buffer = packBufferHeap(a->bytes);
    size_t count = (size_t)a->count + b->count;
    listpackMerge(&buffer, b->bytes, false);
    noteChange(a, &buffer, count);
    dropNode(q, b);
    return a;
}

/* Merges a node that was split off with its neighbours where possible; returns the resulting
 * node. */
static quicklistNode *mergeAround(quicklist *q, quicklistNode *n) {
    if (n->prev && canMerge(q, n->prev->prev, n->prev)) settle(q, merge(q, n->prev->prev, n->prev));
    if (n->next && canMerge(q, n->next, n->next->next)) settle(q, merge(q, n->next, n->next->next));
    if (canMerge(q, n->prev, n)) n = merge(q, n->prev, n);
    if (canMerge(q, n, n->next)) n = merge(q, n, n->next);
    return n;
}

/* ------------------------------------------------------------------ the whole list */

static int clip(int value, int min, int max) {
    return value < min ? min : value > max ? max : value;
}

quicklist *quicklistNew(int fill, int depth) {
    quicklist *q = memNew(quicklist);
    q->fill = (int16_t)clip(fill, -5, QUICKLIST_FILL_MAX);
    q->depth = (uint16_t)clip(depth, 0, QUICKLIST_DEPTH_MAX);
    return q;
}

void quicklistTakeListpack(quicklist *q, uint8_t **take) {
    size_t count = listpackCount(*take);
    check(count > 0);
    link(q, q->tail, newNode(*take, listpackSize(*take), count, false), NULL);
    q->count += count;
    *take = NULL;
    settleEnds(q);
}

void quicklistAppendPlain(quicklist *q, slice text) {
    uint8_t *bytes = memAlloc(sizeMax(text.len, 1));
    if (text.len) memcpy(bytes, text.ptr, text.len);
    link(q, q->tail, newNode(bytes, text.len, 1, true), NULL);
    q->count++;
    settleEnds(q);
}

void quicklistFree(quicklist *q) {
    if (!q) return;
    while (q->head) dropNode(q, q->head);
    memFree(q);
}

quicklist *quicklistCopy(const quicklist *q) {
    enum { NODE_POINTS = 32 }; /* a node takes as long as so many elements */
    quicklist *copy = memNew(quicklist);
    for (const quicklistNode *n = q->head; n; n = n->next) {
        size_t size = quicklistBlockSize(n);
        uint8_t *bytes = memAlloc(sizeMax(size, 1));
        memcpy(bytes, n->bytes, size);
        quicklistNode *twin = newNode(bytes, n->size, n->count, n->plain);
        twin->compressed = n->compressed;
        if (quicklistIsCoded(n)) codedCount(bytes, quicklistTextSize(n), true);
        link(copy, copy->tail, twin, NULL);
        (void)fiberPoint(NODE_POINTS); /* the copy is freed as a whole if nobody wants it */
    }
    copy->count = q->count;
    copy->fill = q->fill;
    copy->depth = q->depth;
    return copy;
}

size_t quicklistCount(const quicklist *q) { return q->count; }
size_t quicklistNodes(const quicklist *q) { return q->nodes; }

const uint8_t *quicklistOnlyListpack(const quicklist *q) {
    if (q->nodes != 1 || q->head->plain) return NULL;
    check(!q->head->compressed); /* the ends are never compressed */
    return q->head->bytes;
}

void quicklistGetStats(const quicklist *q, quicklistStats *out) {
    *out = (quicklistStats){.nodes = q->nodes, .fill = q->fill, .depth = q->depth};
    for (const quicklistNode *n = q->head; n; n = n->next) {
        out->packed_bytes += n->size;
        out->coded += quicklistIsCoded(n);
    }
}

size_t quicklistMemory(const quicklist *q, size_t samples) {
    size_t sum = 0, seen = 0;
    for (const quicklistNode *n = q->head; n && (!samples || seen < samples); n = n->next) {
        sum += memSizeOf(n) + memSizeOf(blockOf(q, n));
        seen++;
    }
    if (seen && seen < q->nodes) sum = (size_t)((double)sum / (double)seen * (double)q->nodes);
    return memSizeOf(q) + sum;
}

static void *moveBlock(void *block, uint64_t *moved, uint64_t *kept) {
    void *place = memMoveIfSparse(block);
    ++*(place ? moved : kept);
    return place ? place : block;
}

bool quicklistCompact(quicklist *q, bool begin, size_t entries, uint64_t *moved, uint64_t *kept) {
    quicklistNode *n = begin ? q->head : q->walk_next;
    size_t seen = 0;
    for (; n && seen < entries; n = n->next) {
        seen += n->count;
        if (unlikely(n->frozen)) { /* its address is noted */
            ++*kept;
            continue;
        }
        size_t room = n == q->head ? q->room : 0;
        n->bytes = (uint8_t *)moveBlock(n->bytes - room, moved, kept) + room;
        n = moveBlock(n, moved, kept);
        *(n->prev ? &n->prev->next : &q->head) = n;
        *(n->next ? &n->next->prev : &q->tail) = n;
    }
    q->walk_next = n;
    return n != NULL;
}

/* ------------------------------------------------------------------ reading */

/* The node that contains entry `index`; `index` becomes the index in that node. */
static quicklistNode *seekNode(const quicklist *q, size_t *index) {
    check(*index < q->count);
    if (*index < q->count / 2) {
        quicklistNode *n = q->head;
        for (; *index >= n->count; n = n->next) *index -= n->count;
        return n;
    }
    size_t after = q->count - 1 - *index; /* entries after it */
    quicklistNode *n = q->tail;
    for (; after >= n->count; n = n->prev) after -= n->count;
    *index = n->count - 1 - after;
    return n;
}

/* Prepares the cursor's node for reading. */
static void enterNode(quicklistCursor *c) {
    const quicklistNode *n = c->node;
    memFree(c->scratch);
    c->scratch = NULL;
    /* A note of the read is no change of the list. */
    if (unlikely(n->compressed | n->marked)) quicklistNoteRead((quicklistNode *)(uintptr_t)n);
    c->lp = n->bytes;
    if (unlikely(n->compressed)) {
        c->scratch = memAlloc(n->size);
        quicklistExpandNode(n, c->scratch);
        c->lp = c->scratch;
    }
    c->at = c->lp;
    if (!n->plain) c->at = c->backwards ? listpackLast(c->lp) : listpackFirst(c->lp);
    hotCheck(c->lp);
}

void quicklistCursorInit(quicklistCursor *c, const quicklist *q, size_t index, bool backwards) {
    *c = (quicklistCursor){.backwards = backwards};
    if (index >= q->count) return;
    c->node = seekNode(q, &index);
    enterNode(c);
    if (!c->node->plain) c->at = listpackSeek(c->lp, (int64_t)index);
}

bool quicklistNext(quicklistCursor *c, listpackItem *out) {
    if (unlikely(!c->at)) {
        if (!c->node) return false;
        c->node = c->backwards ? c->node->prev : c->node->next;
        if (!c->node) return false;
        enterNode(c);
    }
    if (unlikely(c->node->plain)) {
        *out = listpackItemOf(sliceMake((const char *)c->lp, c->node->size));
        c->at = NULL;
        return true;
    }
    const uint8_t *next = listpackRead(c->at, out);
    c->at = c->backwards ? listpackPrev(c->lp, c->at) : next;
    return true;
}

void quicklistCursorClear(quicklistCursor *c) {
    memFree(c->scratch);
    *c = (quicklistCursor){0};
}

void quicklistEachNode(const quicklist *q, quicklistNodeProc *visit, void *arg) {
    uint8_t *scratch = NULL;
    for (const quicklistNode *n = q->head; n; n = n->next) {
        quicklistNodeView view = quicklistViewOf(n, &scratch);
        visit(arg, &view);
    }
    memFree(scratch);
}

/* ------------------------------------------------------------------ changes */

void quicklistPush(quicklist *q, slice text, bool front) {
    quicklistNode *end = front ? q->head : q->tail;
    q->count++;
    if (likely(!isLarge(q, text.len)) && likely(takesMore(q, end, text.len))) {
        insertInNode(q, end, front ? 0 : end->count, text);
        return;
    }
    quicklistNode *n = nodeOf(q, text);
    if (front) {
        link(q, NULL, n, q->head);
    } else {
        link(q, q->tail, n, NULL);
    }
    settleEnds(q);
    hotCheck(q->nodes <= q->count);
}

/* Inserts a text before or after entry `index` of a node. Returns the node that contains that entry
 * afterwards. */
static quicklistNode *insertBeside(quicklist *q, quicklistNode *n, size_t index, slice text,
                                   bool after) {
    bool large = isLarge(q, text.len);
    bool at_border = after ? index + 1 == n->count : index == 0;
    quicklistNode *neighbour = after ? n->next : n->prev;
    q->count++;
    quicklistOpenNode(n);
    if (!large && takesMore(q, n, text.len)) {
        insertInNode(q, n, index + after, text);
    } else if (at_border && !large && takesMore(q, neighbour, text.len)) {
        quicklistOpenNode(neighbour);
        insertInNode(q, neighbour, after ? 0 : neighbour->count, text);
        settle(q, neighbour);
    } else if (at_border) {
        quicklistNode *alone = nodeOf(q, text);
        linkBeside(q, n, alone, after);
        settle(q, alone);
    } else {
        /* The entries on the other side of the new text move to a node of their own. */
        quicklistNode *rest = cutNode(q, n, index + after);
        link(q, n, rest, n->next);
        quicklistNode *with_entry = after ? n : rest, *other = after ? rest : n;
        if (large) {
            linkBeside(q, with_entry, nodeOf(q, text), after);
            n = with_entry;
        } else {
            insertInNode(q, other, after ? 0 : other->count, text);
            n = mergeAround(q, with_entry);
        }
        settleBoth(q, n);
    }
    return n;
}

void quicklistInsert(quicklist *q, size_t index, slice text, bool after) {
    hotCheck(index < q->count);
    quicklistNode *n = seekNode(q, &index);
    settle(q, insertBeside(q, n, index, text, after));
}

/* Replaces an entry of an uncompressed listpack by a text that needs a node of its own: the entries
 * after it are split off, and both parts are merged with their neighbours. */
static void setPlain(quicklist *q, quicklistNode *n, size_t index, slice text) {
    hotCheck(index < n->count);
    quicklistNode *own = nodeOf(q, text);
    if (index == 0) {
        linkBeside(q, n, own, false);
        if (n->count == 1) {
            dropNode(q, n);
        } else {
            deleteInNode(q, n, 0, 1);
        }
    } else {
        quicklistNode *rest = cutNode(q, n, index);
        link(q, n, rest, n->next);
        linkBeside(q, n, own, true);
        if (rest->count == 1) {
            dropNode(q, rest);
        } else {
            deleteInNode(q, rest, 0, 1);
            (void)mergeAround(q, rest); /* settled below */
        }
        (void)mergeAround(q, n); /* settled below */
    }
    settleBoth(q, own);
    settle(q, own);
}

void quicklistSet(quicklist *q, size_t index, slice text) {
    hotCheck(index < q->count);
    quicklistNode *n = seekNode(q, &index);
    bool large = isLarge(q, text.len);
    quicklistOpenNode(n);
    if (n == q->head) quicklistCloseRoom(q);
    ownBytes(n);
    if (n->plain && large) {
        n->bytes = memRealloc(n->bytes, text.len);
        memcpy(n->bytes, text.ptr, text.len);
        n->size = text.len;
        settle(q, n);
    } else if (!n->plain && !large && listpackCanGrow(n->bytes, text.len)) {
        listpackItem item = listpackItemOf(text);
        packBuffer buffer = packBufferHeap(n->bytes);
        (void)listpackReplace(&buffer, listpackSeek(n->bytes, (int64_t)index),
                              &item); /* the position is known */
        noteChange(n, &buffer, n->count);
        settle(q, n);
    } else if (n->plain) {
        (void)insertBeside(q, n, 0, text, true); /* it remains a separate node */
        q->count--;
        dropNode(q, n);
        settle(q, NULL);
    } else {
        setPlain(q, n, index, text);
    }
}

void quicklistDelete(quicklist *q, size_t index, size_t count) {
    if (index >= q->count || count == 0) return;
    count = sizeMin(count, q->count - index);
    quicklistNode *n = seekNode(q, &index);
    q->count -= count;
    bool drops = false;
    while (count > 0) {
        quicklistNode *next = n->next;
        size_t here = sizeMin(count, n->count - index);
        if (here == n->count) {
            drops = true;
            dropNode(q, n);
        } else {
            quicklistOpenNode(n);
            deleteInNode(q, n, index, here);
            settle(q, n);
        }
        count -= here;
        index = 0;
        n = next;
    }
    if (unlikely(drops)) openEnds(q);
    settle(q, NULL);
    hotCheck((q->count == 0) == (q->nodes == 0));
}

/* Stores the positions of at most `most` entries equal to `item` in order; the last ones if
 * `from_back`. */
static size_t findInNode(const quicklistNode *n, const listpackItem *item, size_t most,
                         bool from_back, const uint8_t **places) {
    hotCheck(!n->plain);
    hotCheck(!n->compressed);
    const uint8_t *lp = n->bytes;
    size_t found = 0;
    if (!from_back) {
        const uint8_t *at = listpackFind(lp, NULL, item, 0);
        while (at && found < most) {
            places[found++] = at;
            at = listpackNext(lp, at);
            if (at) at = listpackFind(lp, at, item, 0);
        }
        return found;
    }
    for (const uint8_t *at = listpackLast(lp); at && found < most; at = listpackPrev(lp, at)) {
        if (listpackEquals(at, item)) places[found++] = at;
    }
    for (size_t i = 0; i < found / 2; i++) {
        const uint8_t *swapped = places[i];
        places[i] = places[found - 1 - i];
        places[found - 1 - i] = swapped;
    }
    return found;
}

/* True if a coded node has the item. */
static bool codedHasItem(const quicklistNode *n, const listpackItem *item) {
    uint8_t *bytes = memAlloc(n->size);
    quicklistExpandNode(n, bytes);
    listpackItem own = {0};
    if (n->plain) own = listpackItemOf(sliceMake(bytes, n->size));
    bool has =
        n->plain ? listpackItemEquals(&own, item) : listpackFind(bytes, NULL, item, 0) != NULL;
    memFree(bytes);
    return has;
}

/* Removes matches from a node, which is freed if it becomes empty. */
static size_t removeInNode(quicklist *q, quicklistNode *n, const listpackItem *item, size_t most,
                           bool from_back) {
    if (quicklistIsCoded(n) && !codedHasItem(n, item)) return 0;
    quicklistOpenNode(n);
    if (n->plain) {
        listpackItem own = listpackItemOf(sliceMake((const char *)n->bytes, n->size));
        if (!listpackItemEquals(&own, item)) {
            settle(q, n);
            return 0;
        }
        dropNode(q, n);
        return 1;
    }
    const uint8_t **places = memAlloc(n->count * sizeof(*places));
    size_t found = findInNode(n, item, most, from_back, places);
    if (found == n->count) {
        dropNode(q, n);
    } else {
        if (found) {
            const uint8_t *before = n->bytes;
            ownBytes(n);
            for (size_t i = 0; i < found; i++) places[i] = n->bytes + (places[i] - before);
            packBuffer buffer = packBufferHeap(n->bytes);
            listpackDeleteMany(&buffer, places, found, 1);
            noteChange(n, &buffer, n->count - found);
        }
        settle(q, n);
    }
    memFree(places);
    return found;
}

size_t quicklistRemove(quicklist *q, const listpackItem *item, size_t most, bool from_back) {
    size_t removed = 0;
    quicklistNode *n = from_back ? q->tail : q->head;
    quicklistCloseRoom(q);
    while (n && removed < most) {
        quicklistNode *next = from_back ? n->prev : n->next;
        removed += removeInNode(q, n, item, most - removed, from_back);
        n = next;
    }
    q->count -= removed;
    openEnds(q);
    settle(q, NULL);
    return removed;
}

/* ------------------------------------------------------------------ for tests */

static const char *verifyNode(const quicklistNode *n) {
    if (n->count == 0) return "an empty node";
    if (n->compressed) {
        uint8_t *bytes = memAlloc(n->size);
        quicklistExpandNode(n, bytes);
        bool sound = n->plain || listpackIsValid(bytes, n->size, true, NULL, NULL);
        memFree(bytes);
        return sound ? NULL : "a compressed node that is broken";
    }
    if (n->plain) return n->count == 1 ? NULL : "a plain node of several";
    if (!listpackIsValid(n->bytes, n->size, true, NULL, NULL)) return "a broken listpack";
    return listpackCount(n->bytes) == n->count ? NULL : "a node's count";
}

static const char *verifyRoom(const quicklist *q) {
    const quicklistNode *n = q->head;
    if (!n || n->plain || n->compressed || n->frozen) return "room in a node that cannot have it";
    return q->room + n->size <= memSizeOf(n->bytes - q->room) ? NULL : "room outside the block";
}

const char *quicklistVerify(const quicklist *q) {
    size_t count = 0, nodes = 0;
    const quicklistNode *prev = NULL;
    for (const quicklistNode *n = q->head; n; prev = n, n = n->next) {
        const char *broken = verifyNode(n);
        if (broken) return broken;
        if (n->prev != prev) return "a link";
        size_t depth = quicklistIsCoded(n) ? sizeMax(q->depth, 1) : q->depth;
        bool near_end = nodes < depth || nodes + depth >= q->nodes;
        if (n->compressed && (near_end || !depth)) return "a compressed node near an end";
        count += n->count;
        nodes++;
    }
    if (q->tail != prev) return "the tail";
    if (nodes != q->nodes) return "the number of nodes";
    const char *broken = q->room ? verifyRoom(q) : NULL;
    if (broken) return broken;
    return count == q->count ? NULL : "the number of entries";
}
