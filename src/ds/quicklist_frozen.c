/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Quicklists as of one moment (quicklist.h).
 *
 * Invariant: while a node is frozen, its block is freed neither by the list, which puts it into
 * `released` instead, nor by the reader, who frees it when it has been read. Main thread only. */
#include "base/hash.h"
#include "ds/hashtable.h"
#include "ds/quicklist_private.h"

static bool isBlock(const void *entry, const void *block, size_t len) {
    (void)len; /* an address */
    return entry == block;
}

/* Blocks of frozen nodes that no list uses any more: quicklistFrozenNext() frees them. */
static hashtable released;
static size_t released_bytes;
static const hashtableType released_type = {.hash_of = hashAddress, .match = isBlock};

static void freeBytes(const quicklistNode *n) {
    if (quicklistIsCoded(n)) codedCount(n->bytes, quicklistTextSize(n), false);
    memFree(n->bytes);
}

void quicklistReleaseUnusual(quicklistNode *n) {
    if (likely(!n->frozen)) {
        freeBytes(n);
        return;
    }
    hotCheck(threadIsMain());
    hashtableInsert(&released, &released_type, hashAddress(n->bytes), n->bytes, 0);
    released_bytes += quicklistBlockSize(n);
    n->frozen = 0;
}

quicklistNodeView quicklistViewOf(const quicklistNode *n, uint8_t **scratch) {
    hotCheck(n->count > 0);
    const uint8_t *bytes = n->bytes;
    bool is_coded = quicklistIsCoded(n), is_lzf = n->compressed && !is_coded;
    if (is_coded) {
        *scratch = memRealloc(*scratch, n->size);
        quicklistExpandNode(n, *scratch);
        bytes = *scratch;
    }
    quicklistNodeView view = {.listpack = n->plain || is_lzf ? NULL : bytes,
                              .entries = n->count,
                              .bytes = n->size,
                              .block_bytes = quicklistBlockSize(n),
                              .plain = n->plain,
                              .compressed = is_lzf};
    const char *text = (const char *)bytes;
    view.content =
        is_lzf ? sliceMake(text + sizeof(uint32_t), loadU32(bytes)) : sliceMake(text, n->size);
    return view;
}

/* A node of the start; `now` is valid while the block has not been released. */
typedef struct frozenNode {
    quicklistNode *now;
    quicklistNode then; /* without links */
} frozenNode;

struct quicklistFrozen {
    size_t count, at;
    bool reads;       /* the node before `at` is being read */
    uint8_t *scratch; /* its content, if it is coded */
    frozenNode nodes[];
};

quicklistFrozen *quicklistFreeze(quicklist *q) {
    quicklistCloseRoom(q);
    quicklistFrozen *f = memAlloc(sizeof(*f) + q->nodes * sizeof(f->nodes[0]));
    *f = (quicklistFrozen){.count = q->nodes};
    frozenNode *to = f->nodes;
    for (quicklistNode *n = q->head; n; n = n->next) {
        check(!n->frozen);
        *to++ = (frozenNode){.now = n, .then = *n};
        n->frozen = 1;
    }
    return f;
}

size_t quicklistFrozenNodes(const quicklistFrozen *f) { return f->count; }
size_t quicklistFrozenBytes(void) { return released_bytes; }

static void thawNode(frozenNode *n) {
    hotCheck(n->then.count > 0);
    uint8_t *bytes = n->then.bytes;
    if (hashtableCount(&released) > 0 &&
        hashtableDelete(&released, &released_type, hashAddress(bytes), bytes, 0)) {
        released_bytes -= quicklistBlockSize(&n->then);
        freeBytes(&n->then);
        if (hashtableCount(&released) == 0) hashtableFree(&released, NULL, NULL);
    } else {
        n->now->frozen = 0;
    }
}

bool quicklistFrozenNext(quicklistFrozen *f, quicklistNodeView *out) {
    if (f->reads) thawNode(&f->nodes[f->at - 1]);
    f->reads = f->at < f->count;
    if (!f->reads) return false;
    *out = quicklistViewOf(&f->nodes[f->at++].then, &f->scratch);
    return true;
}

void quicklistThaw(quicklistFrozen *f) {
    if (!f) return;
    for (size_t i = f->at - f->reads; i < f->count; i++) thawNode(&f->nodes[i]);
    memFree(f->scratch);
    memFree(f);
}
