/* SPDX-License-Identifier: BSD-3-Clause
 *
 * A counted B+ tree (ordered.h). Entries are in leaves, which are linked. An inner node has for
 * each child its first entry, that entry's rank, and the number of entries below. No node is empty;
 * all leaves have the same depth. A node that becomes too small is merged with a neighbour if both
 * fit in one. Not thread-safe. */
#include "ds/ordered_private.h"

int orderedCompareText(slice a, slice b) {
    int order = memcmp(a.ptr, b.ptr, sizeMin(a.len, b.len));
    return order ? order : (a.len > b.len) - (a.len < b.len);
}

/* ------------------------------------------------------------------ searching */

/* What is searched: the point between the entries before it and those after it. */
typedef struct probe {
    const orderedType *type;
    uint64_t rank;
    slice text;
    bool any_rank, any_text; /* ignore the rank, or the text */
    bool after;              /* equal entries are before the point */
    const void *entry;       /* the entry searched, if there is one; its contents are not read */
} probe;

static inline bool isBefore(const probe *p, const void *entry) {
    if (entry == p->entry) return p->after;
    if (!p->any_rank) {
        uint64_t rank = p->type->rank_of(entry);
        if (rank != p->rank) return rank < p->rank;
        if (p->any_text) return p->after;
    }
    int order = orderedCompareText(p->type->text_of(entry), p->text);
    return order < 0 || (order == 0 && p->after);
}

/* The name of a function that returns the number of sorted values below `v`. */
#define COUNT_BELOW(name, type) \
    static inline unsigned name(const type *values, unsigned count, type v) { \
        const type *base = values; \
        while (count > 1) { \
            unsigned half = count / 2; \
            base = base[half - 1] < v ? base + half : base; \
            count -= half; \
        } \
        return (unsigned)(base - values) + (count && *base < v); \
    }
COUNT_BELOW(ranksBelow, uint64_t)
COUNT_BELOW(tagsBelow, uint16_t)

/* Number of children whose first entry is before the point. */
static unsigned searchInner(const innerNode *n, const probe *p) {
    const uint64_t *ranks = innerRanks(n);
    unsigned low = 0, high = n->count;
    if (!p->any_rank) {
        low = ranksBelow(ranks, n->count, p->rank);
        if (p->rank != UINT64_MAX) high = low + ranksBelow(ranks + low, high - low, p->rank + 1);
    }
    while (low < high) {
        unsigned middle = (low + high) / 2;
        if (isBefore(p, innerFirsts(n)[middle])) {
            low = middle + 1;
        } else {
            high = middle;
        }
    }
    return low;
}

/* Number of entries of a leaf before the point. */
static unsigned searchLeaf(const leafNode *l, const probe *p) {
    enum { FEW = 8 };
    unsigned low = 0, high = l->count;
    if (!p->any_rank) {
        unsigned tag = leafTag(l, p->rank);
        low = tagsBelow(l->tag, l->count, (uint16_t)tag);
        if (tag < TAG_MAX) high = low + tagsBelow(l->tag + low, high - low, (uint16_t)(tag + 1));
        /* A known entry is found by its address, without reading entries. */
        for (unsigned i = low; p->entry && high - low <= FEW && i < high; i++) {
            if (leafEntry(l, i) == p->entry) return i + p->after;
        }
    }
    while (low < high) {
        unsigned middle = (low + high) / 2;
        if (isBefore(p, leafEntry(l, middle))) {
            low = middle + 1;
        } else {
            high = middle;
        }
    }
    return low;
}

/* The path from the root to a position in a leaf. */
typedef struct path {
    innerNode *node[LEVELS_MAX];
    unsigned at[LEVELS_MAX];
    leafNode *leaf;
    unsigned place;  /* index in the leaf */
    uint64_t before; /* number of entries before the position */
} path;

static void prefetchLeaf(const void *leaf, uint64_t count) {
    hotCheck(count <= LEAF_MAX);
    const size_t bytes = sizeof(uint16_t) + sizeof(uint32_t); /* an entry, unless it is wide */
    const char *end = (const char *)leaf + sizeof(leafNode) + count * bytes;
    for (const char *at = leaf; at < end; at += CACHE_LINE) prefetchRead(at);
}

static void findPoint(const orderedIndex *x, const probe *p, path *out) {
    void *node = x->root;
    out->before = 0;
    for (unsigned level = 0; level < x->levels; level++) {
        innerNode *n = node;
        unsigned at = searchInner(n, p);
        if (at > 0) at--;
        node = innerNodes(n)[at];
        if (level + 1 == x->levels) prefetchLeaf(node, innerCounts(n)[at]);
        for (unsigned i = 0; i < at; i++) out->before += innerCounts(n)[i];
        out->node[level] = n;
        out->at[level] = at;
    }
    out->leaf = node;
    out->place = searchLeaf(node, p);
    out->before += out->place;
}

/* Finds an entry with the rank and text of `like`. */
static void findEntryLike(const orderedIndex *x, const orderedType *type, const void *like,
                          const void *entry, path *out) {
    probe p = {.type = type,
               .rank = type->rank_of(like),
               .text = type->text_of(like),
               .after = true,
               .entry = entry};
    check(x->count > 0);
    findPoint(x, &p, out);
    check(out->place > 0);
    out->place--;
    out->before--;
    check(leafEntry(out->leaf, out->place) == entry);
}

static void findEntry(const orderedIndex *x, const orderedType *type, const void *entry,
                      path *out) {
    findEntryLike(x, type, entry, entry, out);
}

static void findIndex(const orderedIndex *x, uint64_t index, path *out) {
    check(index < x->count);
    void *node = x->root;
    out->before = index;
    for (unsigned level = 0; level < x->levels; level++) {
        innerNode *n = node;
        const uint64_t *counts = innerCounts(n);
        unsigned at = 0;
        for (; index >= counts[at]; at++) index -= counts[at];
        out->node[level] = n;
        out->at[level] = at;
        node = innerNodes(n)[at];
    }
    out->leaf = node;
    out->place = (unsigned)index;
}

void orderedReplace(orderedIndex *x, const orderedType *type, const void *old, void *entry) {
    hotCheck(x->count > 0);
    path way;
    findEntryLike(x, type, entry, old, &way);
    leafNode *l = leafReach(x, way.leaf, entry);
    leafSetEntry(l, way.place, entry);
    if (x->levels == 0) {
        x->root = l;
        return;
    }
    innerNodes(way.node[x->levels - 1])[way.at[x->levels - 1]] = l;
    bool is_first = way.place == 0;
    for (unsigned level = x->levels; is_first && level-- > 0;) {
        innerFirsts(way.node[level])[way.at[level]] = entry;
        is_first = way.at[level] == 0;
    }
}

uint64_t orderedIndexOf(const orderedIndex *x, const orderedType *type, const void *entry) {
    hotCheck(x->root);
    hotCheck(x->count > 0);
    path way;
    findEntry(x, type, entry, &way);
    return way.before;
}

uint64_t orderedCountBefore(const orderedIndex *x, const orderedType *type,
                            const orderedPoint *point) {
    probe p = {.type = type,
               .rank = point->rank,
               .text = point->text,
               .any_rank = point->by == ORDERED_BY_TEXT,
               .any_text = point->by == ORDERED_BY_RANK,
               .after = point->after};
    path way;
    if (x->count == 0) return 0;
    findPoint(x, &p, &way);
    return way.before;
}

/* ------------------------------------------------------------------ inserting */

static leafNode *leafGrow(orderedIndex *x, const orderedType *type, leafNode *l) {
    hotCheck(l->count <= l->cap);
    if (l->count < l->cap) return l;
    l = leafFit(x, l, l->count + 1u);
    if (l->stale) leafScale(l, type);
    return l;
}

/* Inserts an entry into a full leaf by splitting it. *left remains at its position in the tree; the
 * new leaf after it is returned. Appending or prepending only leaves full nodes. */
static leafNode *leafSplit(orderedIndex *x, const orderedType *type, leafNode **left,
                           unsigned place, void *entry) {
    hotCheck(place <= (*left)->count);
    hotCheck((*left)->count == LEAF_MAX);
    leafNode *l = *left;
    unsigned from = l->count / 2;
    if (place == l->count && !l->next) from = l->count;
    if (place == 0 && !l->prev) from = 0;
    unsigned moved = l->count - from;
    leafNode *r = leafNew(x, moved + 1, originFor(moved ? leafEntry(l, from) : entry));
    r->base = l->base;
    r->shift = l->shift;
    r->stale = l->stale;
    r = leafAppend(x, r, l, from);
    l->count = (uint16_t)from;
    leafLinkAfter(r, l);
    l = leafFit(x, l, from + 1);
    uint64_t rank = type->rank_of(entry);
    if (place < from || (place == from && moved > 0)) {
        l = leafPut(x, l, place, rank, entry);
    } else {
        r = leafPut(x, r, place - from, rank, entry);
    }
    /* The tags of a leaf with one entry are chosen around it. */
    if (l->count == 1) leafScale(l, type);
    if (r->count == 1) leafScale(r, type);
    leafScaleIfCoarse(l, type);
    leafScaleIfCoarse(r, type);
    *left = l;
    return r;
}

/* Inserts `child` into a full node by splitting it, like leafSplit(). */
static innerNode *innerSplit(orderedIndex *x, innerNode *n, unsigned at, const childRecord *child,
                             innerNode **left) {
    hotCheck(at <= n->count);
    unsigned from = at == n->count ? n->count : n->count / 2;
    innerNode *r = innerTake(x, innerNew(x, n->count - from + 1), n, from);
    if (at < from || (at == from && r->count > 0)) {
        n = innerInsert(x, n, at, child);
    } else {
        r = innerInsert(x, r, at - from, child);
    }
    *left = n;
    return r;
}

static void growRoot(orderedIndex *x, const childRecord *left, const childRecord *right) {
    check(x->levels < LEVELS_MAX);
    innerNode *n = innerNew(x, 2);
    n = innerInsert(x, n, 0, left);
    n = innerInsert(x, n, 1, right);
    x->root = n;
    x->levels++;
}

/* After a split: the leaf at the end of the path is `left` now, followed by `right`. Updates all
 * nodes above. */
static void updateAfterSplit(orderedIndex *x, const orderedType *type, path *way, leafNode *left,
                             leafNode *right) {
    hotCheck(left->next == right);
    childRecord l = leafRecord(left, type), r = leafRecord(right, type);
    bool split = true;
    for (unsigned level = x->levels; level-- > 0;) {
        innerNode *n = way->node[level];
        unsigned at = way->at[level];
        innerSet(n, at, &l);
        innerNode *other = NULL;
        if (split && n->count < INNER_MAX) {
            n = innerInsert(x, n, at + 1, &r);
        } else if (split) {
            other = innerSplit(x, n, at + 1, &r, &n);
        }
        l = innerRecord(n);
        split = other != NULL;
        if (split) r = innerRecord(other);
    }
    x->root = l.node;
    if (split) growRoot(x, &l, &r);
}

/* After an insert at the position of the path, in `leaf`: updates all nodes above. */
static void updateAfterInsert(orderedIndex *x, const path *way, leafNode *leaf, uint64_t rank,
                              void *entry) {
    bool is_first = way->place == 0;
    void *node = leaf;
    for (unsigned level = x->levels; level-- > 0;) {
        innerNode *n = way->node[level];
        unsigned at = way->at[level];
        innerNodes(n)[at] = node;
        innerCounts(n)[at]++;
        if (is_first) {
            innerRanks(n)[at] = rank;
            innerFirsts(n)[at] = entry;
            is_first = at == 0;
        }
        node = n;
    }
    x->root = node;
}

void orderedInsert(orderedIndex *x, const orderedType *type, void *entry) {
    check((uintptr_t)entry >> ENTRY_BITS == 0);
    check((uintptr_t)entry % ENTRY_UNIT == 0);
    uint64_t rank = type->rank_of(entry);
    if (x->count++ == 0) {
        leafNode *l = leafPut(x, leafNew(x, 1, originFor(entry)), 0, rank, entry);
        leafScale(l, type);
        x->root = l;
        return;
    }
    probe p = {.type = type, .rank = rank, .text = type->text_of(entry)};
    path way;
    findPoint(x, &p, &way);
    leafNode *l = way.leaf;
    if (unlikely(l->count == LEAF_MAX)) {
        leafNode *right = leafSplit(x, type, &l, way.place, entry);
        updateAfterSplit(x, type, &way, l, right);
        return;
    }
    l = leafGrow(x, type, l);
    l = leafPut(x, l, way.place, rank, entry);
    updateAfterInsert(x, &way, l, rank, entry);
}

/* ------------------------------------------------------------------ deleting */

/* Moves the entries of the right leaf to the left one. */
static leafNode *leafMerge(orderedIndex *x, const orderedType *type, leafNode *left,
                           leafNode *right) {
    hotCheck(left->next == right);
    hotCheck(left->count + right->count <= LEAF_MAX);
    left = leafAppend(x, left, right, 0);
    leafUnlink(right);
    nodeFree(x, right);
    leafScale(left, type);
    return left;
}

/* Child `at` is small: merges it with a neighbour if both fit in one node with some space left. */
static void mergeChild(orderedIndex *x, const orderedType *type, innerNode *n, unsigned at,
                       bool leaves) {
    hotCheck(at < n->count);
    const uint64_t most = (leaves ? LEAF_MAX : INNER_MAX) * 3 / 4;
    for (int side = 0; side < 2; side++) {
        unsigned left = side ? at : at - 1;
        if ((side == 0 && at == 0) || left + 1 >= n->count) continue;
        void *a = innerNodes(n)[left], *b = innerNodes(n)[left + 1];
        childRecord merged;
        if (leaves) {
            if (((leafNode *)a)->count + ((leafNode *)b)->count > most) continue;
            merged = leafRecord(leafMerge(x, type, a, b), type);
        } else {
            if (((innerNode *)a)->count + ((innerNode *)b)->count > most) continue;
            merged = innerRecord(innerTake(x, a, b, 0));
            nodeFree(x, b);
        }
        innerSet(n, left, &merged);
        innerRemove(n, left + 1);
        return;
    }
}

/* Updates the parent's record of child `at`, which has changed and may have moved. */
static void updateChild(const orderedType *type, innerNode *n, unsigned at, void *node, bool leaf,
                        bool first_too) {
    hotCheck(at < n->count);
    innerNodes(n)[at] = node;
    if (!first_too) return;
    innerFirsts(n)[at] = leaf ? leafEntry(node, 0) : innerFirsts((innerNode *)node)[0];
    innerRanks(n)[at] = leaf ? type->rank_of(innerFirsts(n)[at]) : innerRanks(node)[0];
}

/* After `count` entries were removed from the leaf: updates the nodes above. `node` is the leaf,
 * NULL if it was freed. */
static void updateAfterDelete(orderedIndex *x, const orderedType *type, const path *way, void *node,
                              uint64_t count, bool small) {
    bool leaves = true, first_too = way->place == 0;
    for (unsigned level = x->levels; level-- > 0; leaves = false) {
        innerNode *n = way->node[level];
        unsigned at = way->at[level];
        if (node) {
            updateChild(type, n, at, node, leaves, first_too);
            innerCounts(n)[at] -= count;
            if (small) mergeChild(x, type, n, at, leaves);
        } else {
            innerRemove(n, at);
        }
        first_too = first_too && at == 0;
        small = n->count < INNER_MAX / 4;
        node = n;
        if (n->count > 0) continue;
        nodeFree(x, n);
        node = NULL;
    }
    x->root = node;
    if (!node) x->levels = 0;
    while (x->levels > 0 && ((innerNode *)x->root)->count == 1) {
        void *child = innerNodes(x->root)[0];
        nodeFree(x, x->root);
        x->root = child;
        x->levels--;
    }
}

/* Removes `count` entries at the position of the path. */
static void deleteAt(orderedIndex *x, const orderedType *type, const path *way, unsigned count) {
    leafNode *l = way->leaf;
    leafCut(l, way->place, count);
    x->count -= count;
    if (l->count == 0) {
        leafUnlink(l);
        nodeFree(x, l);
        l = NULL;
    } else if (l->count < l->cap - l->cap / 3u) {
        l = leafFit(x, l, l->count + 1u);
    }
    updateAfterDelete(x, type, way, l, count, l && l->count < LEAF_MAX / 4);
}

void orderedDelete(orderedIndex *x, const orderedType *type, const void *entry) {
    hotCheck(x->count > 0);
    path way;
    findEntry(x, type, entry, &way);
    deleteAt(x, type, &way, 1);
}

bool orderedPrepareRank(orderedIndex *x, const orderedType *type, const void *entry,
                        uint64_t rank) {
    hotCheck(x->count > 0);
    path way;
    findEntry(x, type, entry, &way);
    leafNode *l = way.leaf;
    unsigned at = way.place;
    /* False if the neighbour is in another leaf, or for the first entry, whose rank is stored in
     * the parent. */
    bool may = at > 0 && at + 1u < l->count;
    if (may) {
        unsigned tag = leafTag(l, rank);
        may = type->rank_of(leafEntry(l, at - 1)) < rank &&
              type->rank_of(leafEntry(l, at + 1)) > rank;
        if (may) l->tag[at] = (uint16_t)tag;
    }
    if (!may) deleteAt(x, type, &way, 1);
    return may;
}

void orderedDeleteRange(orderedIndex *x, const orderedType *type, uint64_t index, uint64_t count,
                        orderedVisitProc *visit, void *context) {
    check(index <= x->count);
    check(count <= x->count - index);
    while (count > 0) {
        path way;
        void *gone[LEAF_MAX];
        findIndex(x, index, &way);
        unsigned some = (unsigned)sizeMin(count, way.leaf->count - way.place);
        for (unsigned i = 0; i < some; i++) {
            gone[i] = leafEntry(way.leaf, way.place + i);
            prefetchRead(gone[i]);
        }
        deleteAt(x, type, &way, some);
        for (unsigned i = 0; i < some; i++) visit(context, gone[i]);
        count -= some;
    }
}

/* ------------------------------------------------------------------ iteration */

enum { FETCH_AHEAD = 8 };

void *orderedSeek(const orderedIndex *x, uint64_t index, orderedCursor *cursor) {
    hotCheck(index < x->count);
    path way;
    findIndex(x, index, &way);
    *cursor = (orderedCursor){way.leaf, way.place};
    const leafNode *l = way.leaf;
    unsigned end = (unsigned)sizeMin(l->count, way.place + FETCH_AHEAD);
    for (unsigned i = way.place; i < end; i++) prefetchRead(leafEntry(l, i));
    return leafEntry(l, way.place);
}

void *orderedNext(orderedCursor *cursor) {
    const leafNode *l = cursor->leaf;
    hotCheck(cursor->at < l->count);
    if (++cursor->at >= l->count) {
        l = l->next;
        if (!l) return NULL;
        *cursor = (orderedCursor){l, 0};
    }
    if (cursor->at + FETCH_AHEAD < l->count) prefetchRead(leafEntry(l, cursor->at + FETCH_AHEAD));
    return leafEntry(l, cursor->at);
}

void *orderedPrev(orderedCursor *cursor) {
    const leafNode *l = cursor->leaf;
    hotCheck(cursor->at < l->count);
    if (cursor->at == 0) {
        l = l->prev;
        if (!l) return NULL;
        *cursor = (orderedCursor){l, l->count};
    }
    cursor->at--;
    if (cursor->at >= FETCH_AHEAD) prefetchRead(leafEntry(l, cursor->at - FETCH_AHEAD));
    return leafEntry(l, cursor->at);
}

unsigned orderedReadMany(orderedCursor *cursor, bool reverse, void **out, unsigned most) {
    unsigned count = 0;
    const leafNode *l = cursor->leaf;
    unsigned at = cursor->at;
    hotCheck(at < l->count);
    for (;;) {
        unsigned more = (unsigned)sizeMin(most - count, reverse ? at : l->count - at - 1u);
        for (; more; more--) {
            at = reverse ? at - 1 : at + 1;
            out[count] = leafEntry(l, at);
            prefetchRead(out[count]);
            prefetchRead((char *)out[count++] + 24); /* many entries cross a cache line */
        }
        *cursor = (orderedCursor){l, at};
        const leafNode *next = reverse ? l->prev : l->next;
        if (count == most || !next) return count;
        l = next;
        at = reverse ? l->count : UINT32_MAX; /* before the next one */
    }
}

/* ------------------------------------------------------------------ moving nodes */

/* Moves the node at `link` if that reduces fragmentation; returns its address. */
static void *moveNode(void **link, uint64_t *moved, uint64_t *kept) {
    void *place = memMoveIfSparse(*link);
    ++*(place ? moved : kept);
    if (place) *link = place;
    return *link;
}

uint64_t orderedCompact(orderedIndex *x, uint64_t index, uint64_t *moved, uint64_t *kept) {
    if (index >= x->count) return 0;
    path way;
    findIndex(x, index, &way);
    void **link = &x->root;
    for (unsigned level = 0; level < x->levels; level++) {
        /* Each inner node once: on the path to its first child. */
        innerNode *n = way.at[level] == 0 ? moveNode(link, moved, kept) : *link;
        link = &innerNodes(n)[way.at[level]];
    }
    leafNode *l = moveNode(link, moved, kept);
    if (l->prev) l->prev->next = l;
    if (l->next) l->next->prev = l;
    uint64_t end = index - way.place + l->count;
    return end < x->count ? end : 0;
}
