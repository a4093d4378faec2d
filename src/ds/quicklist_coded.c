/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Compressed nodes of quicklists (quicklist.h, ds/node_codec.h): expanding them, and coding those
 * that are not used.
 *
 * Invariant: the first and the last node are not coded, nor are more of them where `depth` says so:
 * pushes and pops cost what they always do. The text that is coded is that of a plain node, or the
 * entries of a listpack. Coding or expanding a node is no change of the list. ANY_THREAD that owns
 * the list. */
#include <lzf.h>

#include "ds/quicklist_private.h"

size_t quicklistBlockSize(const quicklistNode *n) {
    if (!n->compressed) return n->size;
    return quicklistIsCoded(n) ? CODED_HEAD + codedLength(n->bytes)
                               : sizeof(uint32_t) + loadU32(n->bytes);
}

size_t quicklistTextSize(const quicklistNode *n) {
    return n->plain ? n->size : n->size - LISTPACK_EMPTY_SIZE;
}

/* The text in the content of a node, which is not compressed there. */
static slice textIn(const quicklistNode *n, const uint8_t *content) {
    hotCheck(n->plain || n->size > LISTPACK_EMPTY_SIZE);
    return sliceMake(content + (n->plain ? 0 : LISTPACK_HEADER), quicklistTextSize(n));
}

void quicklistExpandNode(const quicklistNode *n, uint8_t *to) {
    if (!quicklistIsCoded(n)) {
        size_t size =
            lzf_decompress(n->bytes + sizeof(uint32_t), loadU32(n->bytes), to, (unsigned)n->size);
        check(size == n->size);
        return;
    }
    slice text = textIn(n, to);
    codedExpand(n->bytes, to + (text.ptr - (const char *)to), text.len);
    if (!n->plain) listpackFinish(to, to + LISTPACK_HEADER + text.len, n->count);
}

void quicklistOpenNode(quicklistNode *n) {
    n->futile = n->marked = 0;
    if (likely(!n->compressed)) return;
    uint8_t *bytes = memAlloc(n->size);
    quicklistExpandNode(n, bytes);
    quicklistRelease(n);
    n->bytes = bytes;
    n->compressed = 0;
}

void quicklistNoteRead(quicklistNode *n) {
    hotCheck(n->compressed || n->marked);
    bool is_coded = quicklistIsCoded(n);
    if (!is_coded && !n->marked) return;
    nodeRead read = codedRead(is_coded && n->marked);
    if (read == NODE_STAYS) return;
    if (!is_coded) {
        n->marked = 0;
    } else if (read == NODE_EXPANDS) {
        quicklistOpenNode(n);
    } else {
        n->marked = 1;
    }
}

/* ------------------------------------------------------------------ coding */

/* Codes a node if that gains enough. */
static void codeNode(quicklistNode *n, const nodeVisit *v) {
    hotCheck(!n->frozen);
    bool was_coded = quicklistIsCoded(n); /* with another dictionary: this one need not be better */
    size_t most = codedMemoryMost(was_coded ? memGoodSize(n->size) : memSizeOf(n->bytes));
    uint8_t *expanded = n->compressed ? memAlloc(n->size) : NULL;
    if (expanded) quicklistExpandNode(n, expanded);
    slice text = textIn(n, expanded ? expanded : n->bytes);
    slice coded = most ? v->code(v->arg, text, most - CODED_HEAD) : SLICE("");
    size_t size = CODED_HEAD + coded.len;
    bool gains = coded.len && memGoodSize(size) <= most;
    n->marked = 0;
    n->futile = !gains;
    if (gains) {
        uint8_t *block = memAlloc(size);
        codedWrite(block, v->dictionary, coded, text.len);
        quicklistRelease(n);
        n->bytes = block;
        n->compressed = 1;
    }
    memFree(expanded);
}

/* Visits one node; returns whether its text was tried. */
static bool visitNode(quicklistNode *n, const nodeVisit *v) {
    if (unlikely(n->frozen)) return false; /* its block stays as long as it is */
    unsigned dictionary = quicklistIsCoded(n) ? codedDictionary(n->bytes) : 0;
    bool mark = n->marked;
    bool tries = codedVisit(v, quicklistTextSize(n), dictionary, n->futile, &mark);
    n->marked = mark;
    if (tries) codeNode(n, v);
    return tries;
}

/* True if the node is one of the first `depth` ones. */
static bool isAmongFirst(const quicklist *q, const quicklistNode *n, size_t depth) {
    const quicklistNode *at = q->head;
    for (size_t i = 0; i < depth && at; i++, at = at->next) {
        if (at == n) return true;
    }
    return false;
}

bool quicklistCodeNodes(quicklist *q, bool begin, const nodeVisit *v) {
    size_t depth = sizeMax(q->depth, 1), seen = 0;
    if (q->nodes <= 2 * depth) return false;
    quicklistNode *n = begin ? q->head : q->walk_next;
    const quicklistNode *end = q->tail;
    for (size_t i = 1; i < depth; i++) end = end->prev;
    for (size_t i = 0; begin && i < depth; i++) n = n->next;
    while (!begin && n && isAmongFirst(q, n, depth)) n = n->next;
    for (const quicklistNode *last = end; n && last; last = last->next) {
        if (last == n) n = NULL; /* what remained has become an end of the list */
    }
    for (bool over = false; n && n != end && !over; n = n->next) {
        if (visitNode(n, v)) {
            over = v->is_over(v->arg);
        } else if (++seen % CODED_VISITS == 0) {
            over = v->is_over(v->arg);
        }
    }
    q->walk_next = n == end ? NULL : n;
    return q->walk_next != NULL;
}

size_t quicklistNodesBetween(const quicklist *q) {
    size_t ends = 2 * sizeMax(q->depth, 1);
    return q->nodes > ends ? q->nodes - ends : 0;
}

void quicklistSample(const quicklist *q, size_t skip, bool backwards, size_t most,
                     nodeTextProc *visit, void *arg) {
    const quicklistNode *n = backwards ? q->tail : q->head;
    hotCheck(skip + most <= quicklistNodesBetween(q));
    skip += sizeMax(q->depth, 1);
    for (size_t i = 0; i < skip; i++) n = backwards ? n->prev : n->next;
    for (size_t i = 0; i < most; i++, n = backwards ? n->prev : n->next) {
        if (n->size > NODE_TEXT_MAX) continue;
        uint8_t *expanded = n->compressed ? memAlloc(n->size) : NULL;
        if (expanded) quicklistExpandNode(n, expanded);
        visit(arg, textIn(n, expanded ? expanded : n->bytes));
        memFree(expanded);
    }
}
