/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Nodes of ds/ordered.h: memory, tags, links. Not thread-safe. */
#include "ds/ordered_private.h"

/* ------------------------------------------------------------------ memory */

static void *nodeAlloc(orderedIndex *x, size_t size) {
    void *node = memAlloc(size);
    x->bytes += memSizeOf(node);
    return node;
}

void nodeFree(orderedIndex *x, void *node) {
    hotCheck(x->bytes >= memSizeOf(node));
    x->bytes -= memSizeOf(node);
    memFree(node);
}

static size_t leafSize(size_t cap, uint16_t origin) {
    return sizeof(leafNode) + cap * (sizeof(uint16_t) + leafRefBytes(origin));
}

/* Number of entries in a leaf whose block has space for `count`, at most LEAF_MAX. */
static size_t leafCapFor(size_t count, uint16_t origin) {
    count = sizeRoundUp(sizeMin(count, LEAF_MAX), CAP_UNIT);
    size_t room = memGoodSize(leafSize(count, origin)) - sizeof(leafNode);
    size_t cap = room / (sizeof(uint16_t) + leafRefBytes(origin));
    return sizeMin(LEAF_MAX, cap / CAP_UNIT * CAP_UNIT);
}

leafNode *leafNew(orderedIndex *x, size_t cap_min, uint16_t origin) {
    hotCheck(cap_min > 0);
    size_t cap = leafCapFor(cap_min, origin);
    leafNode *l = nodeAlloc(x, leafSize(cap, origin));
    *l = (leafNode){.cap = (uint16_t)cap, .origin = origin};
    return l;
}

/* Replaces a leaf by one with another capacity or origin. */
static leafNode *leafCopy(orderedIndex *x, leafNode *l, size_t cap, uint16_t origin) {
    check(cap >= l->count);
    leafNode *copy = nodeAlloc(x, leafSize(cap, origin));
    *copy = *l;
    copy->cap = (uint16_t)cap;
    copy->origin = origin;
    memcpy(copy->tag, l->tag, l->count * sizeof(*l->tag));
    if (origin == l->origin) {
        memcpy(leafRefs(copy), leafRefs(l), l->count * leafRefBytes(origin));
    } else {
        for (unsigned i = 0; i < l->count; i++) leafSetEntry(copy, i, leafEntry(l, i));
    }
    if (copy->prev) copy->prev->next = copy;
    if (copy->next) copy->next->prev = copy;
    nodeFree(x, l);
    return copy;
}

leafNode *leafFit(orderedIndex *x, leafNode *l, size_t count) {
    size_t cap = leafCapFor(count, l->origin);
    return cap == l->cap ? l : leafCopy(x, l, cap, l->origin);
}

leafNode *leafReach(orderedIndex *x, leafNode *l, const void *entry) {
    if (likely(originReaches(l->origin, entry))) return l;
    return leafCopy(x, l, leafCapFor(l->cap, WIDE), WIDE);
}

/* With one child less than a power of two, a node is a block of a power of two bytes. */
static size_t innerCapFor(size_t count) {
    return sizeMin(INNER_MAX, sizePowerOfTwo(count + 1) - 1);
}

innerNode *innerNew(orderedIndex *x, size_t cap_min) {
    hotCheck(cap_min > 0);
    hotCheck(cap_min <= INNER_MAX);
    size_t cap = innerCapFor(cap_min);
    innerNode *n = nodeAlloc(x, sizeof(*n) + cap * 4 * sizeof(uint64_t));
    n->count = 0;
    n->cap = (uint32_t)cap;
    return n;
}

/* ------------------------------------------------------------------ leaves */

void leafLinkAfter(leafNode *l, leafNode *previous) {
    hotCheck(l != previous);
    l->prev = previous;
    l->next = previous->next;
    previous->next = l;
    if (l->next) l->next->prev = l;
}

void leafUnlink(leafNode *l) {
    hotCheck(l->prev != l);
    if (l->prev) l->prev->next = l->next;
    if (l->next) l->next->prev = l->prev;
}

leafNode *leafAppend(orderedIndex *x, leafNode *l, const leafNode *other, unsigned from) {
    hotCheck(from <= other->count);
    unsigned more = other->count - from;
    l = leafFit(x, l, sizeMax(l->cap, l->count + more));
    if (likely(l->origin == other->origin)) {
        size_t bytes = leafRefBytes(l->origin);
        memcpy(l->tag + l->count, other->tag + from, more * sizeof(*l->tag));
        memcpy((char *)leafRefs(l) + l->count * bytes, (char *)leafRefs(other) + from * bytes,
               more * bytes);
        l->count = (uint16_t)(l->count + more);
        return l;
    }
    for (unsigned i = from; i < other->count; i++) {
        const void *entry = leafEntry(other, i);
        l = leafReach(x, l, entry);
        leafSetEntry(l, l->count, entry);
        l->tag[l->count++] = other->tag[i];
    }
    return l;
}

/* Moves the entries from `from` on to index `to`. */
static void shiftEntries(leafNode *l, unsigned to, unsigned from) {
    hotCheck(from <= l->count);
    size_t count = l->count - from, bytes = leafRefBytes(l->origin);
    char *refs = leafRefs(l);
    memmove(l->tag + to, l->tag + from, count * sizeof(*l->tag));
    memmove(refs + to * bytes, refs + from * bytes, count * bytes);
}

void leafCut(leafNode *l, unsigned at, unsigned count) {
    check(at + count <= l->count);
    shiftEntries(l, at, at + count);
    l->count = (uint16_t)(l->count - count);
}

leafNode *leafPut(orderedIndex *x, leafNode *l, unsigned at, uint64_t rank, const void *entry) {
    hotCheck(l->count < l->cap);
    l = leafReach(x, l, entry);
    shiftEntries(l, at + 1, at);
    unsigned tag = leafTag(l, rank);
    if (tag == 0 || tag == TAG_MAX) l->stale = true;
    l->tag[at] = (uint16_t)tag;
    leafSetEntry(l, at, entry);
    l->count++;
    return l;
}

void leafScale(leafNode *l, const orderedType *type) {
    /* A quarter of the tags remains free below the first entry and another one above the last. */
    enum { SPAN_BITS = 15, FREE_BELOW = 1 << 14 };
    check(l->count > 0);
    uint64_t first = type->rank_of(leafEntry(l, 0));
    uint64_t last = type->rank_of(leafEntry(l, l->count - 1u));
    check(first <= last);
    uint64_t span = last - first;
    int bits = span ? 64 - __builtin_clzll(span) : 0;
    l->shift = (uint8_t)(bits > SPAN_BITS ? bits - SPAN_BITS : 0);
    uint64_t below = (uint64_t)FREE_BELOW << l->shift;
    l->base = first > below ? first - below : 0;
    l->stale = false;
    for (unsigned i = 0; i < l->count; i++) prefetchRead(leafEntry(l, i));
    for (unsigned i = 0; i < l->count; i++)
        l->tag[i] = (uint16_t)leafTag(l, type->rank_of(leafEntry(l, i)));
}

void leafScaleIfCoarse(leafNode *l, const orderedType *type) {
    enum { FINE = 1 << 11 }; /* number of tags between first and last that is sufficient */
    if (l->count < 2) return;
    unsigned spread = (unsigned)l->tag[l->count - 1] - l->tag[0];
    if (l->stale || (l->shift > 0 && spread < FINE)) leafScale(l, type);
}

childRecord leafRecord(const leafNode *l, const orderedType *type) {
    hotCheck(l->count > 0);
    void *first = leafEntry(l, 0);
    return (childRecord){type->rank_of(first), first, (void *)(uintptr_t)l, l->count};
}

/* ------------------------------------------------------------------ inner nodes */

void innerSet(innerNode *n, unsigned at, const childRecord *child) {
    hotCheck(at < n->count);
    innerRanks(n)[at] = child->rank;
    innerFirsts(n)[at] = child->first;
    innerNodes(n)[at] = child->node;
    innerCounts(n)[at] = child->count;
}

/* Moves the children from `from` on to index `to`. */
static void shiftChildren(innerNode *n, unsigned to, unsigned from) {
    hotCheck(from <= n->count);
    hotCheck(to <= n->cap);
    for (unsigned array = 0; array < 4; array++) {
        uint64_t *at = innerRanks(n) + (size_t)array * n->cap;
        memmove(at + to, at + from, (n->count - from) * sizeof(*at));
    }
}

static void copyChildren(innerNode *to, unsigned to_at, const innerNode *from, unsigned from_at,
                         unsigned count) {
    hotCheck(to_at + count <= to->cap);
    hotCheck(from_at + count <= from->count);
    for (unsigned array = 0; array < 4; array++) {
        memcpy(innerRanks(to) + (size_t)array * to->cap + to_at,
               innerRanks(from) + (size_t)array * from->cap + from_at, count * sizeof(uint64_t));
    }
}

static innerNode *innerFit(orderedIndex *x, innerNode *n, size_t count) {
    if (count <= n->cap) return n;
    innerNode *moved = innerNew(x, count);
    check(count <= moved->cap);
    moved->count = n->count;
    copyChildren(moved, 0, n, 0, n->count);
    nodeFree(x, n);
    return moved;
}

innerNode *innerInsert(orderedIndex *x, innerNode *n, unsigned at, const childRecord *child) {
    check(at <= n->count);
    n = innerFit(x, n, n->count + 1);
    shiftChildren(n, at + 1, at);
    n->count++;
    innerSet(n, at, child);
    return n;
}

void innerRemove(innerNode *n, unsigned at) {
    check(at < n->count);
    shiftChildren(n, at, at + 1);
    n->count--;
}

innerNode *innerTake(orderedIndex *x, innerNode *n, innerNode *other, unsigned from) {
    check(from <= other->count);
    unsigned more = other->count - from;
    n = innerFit(x, n, n->count + more);
    copyChildren(n, n->count, other, from, more);
    n->count += more;
    other->count = from;
    return n;
}

childRecord innerRecord(const innerNode *n) {
    hotCheck(n->count > 0);
    hotCheck(n->count <= n->cap);
    childRecord r = {innerRanks(n)[0], innerFirsts(n)[0], (void *)(uintptr_t)n, 0};
    for (unsigned i = 0; i < n->count; i++) r.count += innerCounts(n)[i];
    return r;
}
