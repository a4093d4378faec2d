/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Building, freeing and verifying whole trees of ds/ordered.h. Not thread-safe. */
#include "base/fiber.h"
#include "ds/ordered_private.h"

/* ------------------------------------------------------------------ filling */

/* Number of equally filled nodes for `count` items, with some space left. */
static size_t nodesFor(size_t count, size_t max) {
    hotCheck(max > 0);
    size_t fill = max - max / 8;
    return (count + fill - 1) / fill;
}

static leafNode *fillLeaf(orderedIndex *x, const orderedType *type, void *const *entries,
                          size_t count, leafNode *previous) {
    hotCheck(count > 0);
    hotCheck(count <= LEAF_MAX);
    leafNode *l = leafNew(x, count, originFor(entries[0]));
    for (unsigned i = 0; i < count; i++) {
        l = leafReach(x, l, entries[i]);
        leafSetEntry(l, i, entries[i]);
        l->tag[i] = 0; /* scaled below */
        l->count++;
    }
    if (previous) leafLinkAfter(l, previous);
    leafScale(l, type);
    return l;
}

/* Builds one level of nodes above `count` children; returns their number and stores them in place
 * of the children. */
static size_t fillLevel(orderedIndex *x, childRecord *children, size_t count) {
    hotCheck(count > 0);
    size_t nodes = nodesFor(count, INNER_MAX);
    for (size_t i = 0; i < nodes; i++) {
        size_t from = count * i / nodes, end = count * (i + 1) / nodes;
        innerNode *n = innerNew(x, end - from);
        for (size_t k = from; k < end; k++) n = innerInsert(x, n, n->count, &children[k]);
        children[i] = innerRecord(n);
    }
    return nodes;
}

void orderedFill(orderedIndex *x, const orderedType *type, void *const *entries, size_t count) {
    check(x->count == 0);
    if (count == 0) return;
    size_t nodes = nodesFor(count, LEAF_MAX);
    childRecord *records = memNewArray(childRecord, nodes);
    leafNode *last = NULL;
    for (size_t i = 0; i < nodes; i++) {
        size_t from = count * i / nodes, end = count * (i + 1) / nodes;
        last = fillLeaf(x, type, entries + from, end - from, last);
        records[i] = leafRecord(last, type);
        (void)fiberPoint((unsigned)(end - from)); /* a part of a tree is of no use */
    }
    for (; nodes > 1; x->levels++) nodes = fillLevel(x, records, nodes);
    x->root = records[0].node;
    x->count = count;
    memFree(records);
}

/* ------------------------------------------------------------------ freeing */

static void freeBelow(orderedIndex *x, void *node, unsigned levels) {
    if (levels > 0) {
        innerNode *n = node;
        for (unsigned i = 0; i < n->count; i++) freeBelow(x, innerNodes(n)[i], levels - 1);
    }
    nodeFree(x, node);
}

void orderedFree(orderedIndex *x) {
    if (x->root) freeBelow(x, x->root, x->levels);
    check(x->bytes == 0);
    *x = (orderedIndex){0};
}

/* ------------------------------------------------------------------ checking */

typedef struct verifier {
    const orderedType *type;
    const leafNode *last;
    const void *entry; /* the previous one */
    uint64_t bytes;
} verifier;

#define DEMAND(cond) \
    if (!(cond)) return #cond

static const char *verifyOrder(verifier *v, const void *entry) {
    if (v->entry) {
        uint64_t a = v->type->rank_of(v->entry), b = v->type->rank_of(entry);
        DEMAND(a <= b);
        if (a == b)
            DEMAND(orderedCompareText(v->type->text_of(v->entry), v->type->text_of(entry)) < 0);
    }
    v->entry = entry;
    return NULL;
}

static const char *verifyLeaf(verifier *v, const leafNode *l) {
    DEMAND(l->count > 0);
    DEMAND(l->count <= l->cap);
    DEMAND(l->cap <= LEAF_MAX);
    DEMAND(l->cap % CAP_UNIT == 0);
    DEMAND(l->prev == v->last);
    if (v->last) DEMAND(v->last->next == l);
    for (unsigned i = 0; i < l->count; i++) {
        const void *entry = leafEntry(l, i);
        const char *wrong = verifyOrder(v, entry);
        if (wrong) return wrong;
        DEMAND(l->tag[i] == leafTag(l, v->type->rank_of(entry)));
    }
    v->last = l;
    v->bytes += memSizeOf(l);
    return NULL;
}

static const char *verifyNode(verifier *v, const void *node, unsigned levels,
                              const childRecord *record);

static const char *verifyInner(verifier *v, const innerNode *n, unsigned levels) {
    DEMAND(n->count > 0);
    DEMAND(n->count <= n->cap);
    DEMAND(n->cap <= INNER_MAX);
    v->bytes += memSizeOf(n);
    for (unsigned i = 0; i < n->count; i++) {
        childRecord child = {innerRanks(n)[i], innerFirsts(n)[i], innerNodes(n)[i],
                             innerCounts(n)[i]};
        const char *wrong = verifyNode(v, child.node, levels - 1, &child);
        if (wrong) return wrong;
    }
    return NULL;
}

static const char *verifyNode(verifier *v, const void *node, unsigned levels,
                              const childRecord *record) {
    childRecord own = levels ? innerRecord(node) : leafRecord(node, v->type);
    if (record) {
        DEMAND(own.first == record->first);
        DEMAND(own.rank == record->rank);
        DEMAND(own.count == record->count);
    }
    DEMAND(own.rank == v->type->rank_of(own.first));
    return levels ? verifyInner(v, node, levels) : verifyLeaf(v, node);
}

const char *orderedVerify(const orderedIndex *x, const orderedType *type) {
    verifier v = {.type = type};
    if (!x->root) {
        DEMAND(x->count == 0);
        DEMAND(x->levels == 0);
        DEMAND(x->bytes == 0);
        return NULL;
    }
    const char *wrong = verifyNode(&v, x->root, x->levels, NULL);
    if (wrong) return wrong;
    DEMAND(v.last->next == NULL);
    DEMAND(v.bytes == x->bytes);
    uint64_t count = x->levels ? innerRecord(x->root).count : ((leafNode *)x->root)->count;
    DEMAND(count == x->count);
    if (x->levels) DEMAND(((innerNode *)x->root)->count > 1);
    return NULL;
}
