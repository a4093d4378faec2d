/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Ordered map of stream ids (id_tree.h): the tree above the leaves.
 *
 * Invariant: ids ascend from the first leaf to the last; the leaves are linked in that order; no
 * leaf and no inner node is empty. A leaf that is full and last is followed by a new one instead of
 * being split, so that entries appended in order fill their leaves. Neighbours that together fill
 * half a node at most are merged. ANY_THREAD that owns it. */
#include "ds/id_tree_private.h"

/* The path from the root to a leaf. */
typedef struct treePath {
    idInner *inner[ID_LEVELS_MAX]; /* from the root down */
    unsigned at[ID_LEVELS_MAX];    /* which child */
    idLeaf *leaf;
} treePath;

static idRow rowOf(const idTree *t, const idEntry *entry) {
    idRow row = {{entry->id.ms, entry->id.seq}};
    for (unsigned i = 0; i < t->values; i++) row.column[2 + i] = entry->value[i];
    return row;
}

static void entryOf(const idLeaf *l, unsigned at, idEntry *out) {
    idRow row = {{0}}; /* a tree may have fewer columns */
    idLeafRead(l, at, &row);
    out->id = (streamId){row.column[0], row.column[1]};
    for (unsigned i = 2; i < l->columns; i++) out->value[i - 2] = row.column[i];
}

/* ------------------------------------------------------------------ finding */

/* The last child whose key is not above the id. */
static unsigned childFor(const idInner *n, streamId id) {
    unsigned low = 1, high = n->count;
    while (low < high) {
        unsigned middle = (low + high) / 2;
        if (streamIdLess(id, n->key[middle])) {
            high = middle;
        } else {
            low = middle + 1;
        }
    }
    return low - 1;
}

/* Finds the leaf for an id; the tree must not be empty. */
static idLeaf *leafFor(const idTree *t, streamId id) {
    void *node = t->root;
    for (unsigned level = t->levels; level > 0; level--) {
        const idInner *n = node;
        node = n->child[childFor(n, id)];
    }
    return node;
}

static void pathFor(const idTree *t, streamId id, treePath *path) {
    void *node = t->root;
    for (unsigned i = 0; i < t->levels; i++) {
        path->inner[i] = node;
        path->at[i] = childFor(node, id);
        node = path->inner[i]->child[path->at[i]];
    }
    path->leaf = node;
}

bool idTreeSeek(const idTree *t, streamId id, idCursor *cursor) {
    *cursor = (idCursor){0};
    if (!t->root) return false;
    const idLeaf *l = leafFor(t, id);
    unsigned at = idLeafFind(l, id);
    if (at == l->count) {
        l = l->next;
        at = 0;
    }
    *cursor = (idCursor){l, at};
    hotCheck(!l || at < l->count);
    return l != NULL;
}

bool idTreeSeekBack(const idTree *t, streamId id, idCursor *cursor) {
    *cursor = (idCursor){0};
    if (!t->root) return false;
    const idLeaf *l = leafFor(t, id);
    unsigned at = idLeafFind(l, id);
    *cursor = (idCursor){l, at};
    if (at < l->count && streamIdEqual(idLeafId(l, at), id)) return true;
    return idCursorPrev(cursor);
}

void idCursorRead(const idCursor *cursor, idEntry *out) { entryOf(cursor->leaf, cursor->at, out); }

bool idCursorNext(idCursor *cursor) {
    hotCheck(cursor->at < cursor->leaf->count);
    if (++cursor->at < cursor->leaf->count) return true;
    *cursor = (idCursor){cursor->leaf->next, 0};
    hotCheck(!cursor->leaf || cursor->leaf->count > 0);
    return cursor->leaf != NULL;
}

bool idCursorPrev(idCursor *cursor) {
    if (cursor->at > 0) {
        cursor->at--;
        return true;
    }
    const idLeaf *prev = cursor->leaf->prev;
    hotCheck(!prev || prev->next == cursor->leaf);
    hotCheck(!prev || prev->count > 0);
    *cursor = (idCursor){prev, prev ? prev->count - 1u : 0};
    return prev != NULL;
}

bool idTreeFind(const idTree *t, streamId id, idEntry *out) {
    if (!t->root) return false;
    const idLeaf *l = leafFor(t, id);
    unsigned at = idLeafFind(l, id);
    if (at == l->count || !streamIdEqual(idLeafId(l, at), id)) return false;
    entryOf(l, at, out);
    return true;
}

/* ------------------------------------------------------------------ leaves and their parents */

static idLeaf *newLeaf(idTree *t, const idRow *rows, unsigned count, unsigned cap) {
    hotCheck(count <= cap);
    hotCheck(cap <= ID_LEAF_MAX);
    idLeaf *l = idLeafNew(rows, count, 2u + t->values, cap);
    t->bytes += memSizeOf(l);
    return l;
}

static void freeNode(idTree *t, void *node) {
    hotCheck(t->bytes >= memSizeOf(node));
    t->bytes -= memSizeOf(node);
    memFree(node);
}

static idInner *newInner(idTree *t) {
    idInner *n = memAlloc(sizeof(*n));
    n->count = 0;
    t->bytes += memSizeOf(n);
    return n;
}

/* Inserts `l` into the order of leaves after `before`. */
static void linkAfter(idLeaf *l, idLeaf *before) {
    hotCheck(l != before);
    l->prev = before;
    l->next = before->next;
    if (l->next) l->next->prev = l;
    before->next = l;
}

static void unlinkLeaf(const idLeaf *l) {
    hotCheck(l->prev != l);
    hotCheck(l->next != l);
    if (l->prev) l->prev->next = l->next;
    if (l->next) l->next->prev = l->prev;
}

/* Updates the parent after the path's node at `level` (t->levels: the leaf) has moved. */
static void setNode(idTree *t, treePath *path, unsigned level, void *node) {
    hotCheck(level <= t->levels);
    if (level == 0) {
        t->root = node;
    } else {
        path->inner[level - 1]->child[path->at[level - 1]] = node;
    }
    if (level == t->levels) {
        path->leaf = node;
    } else {
        path->inner[level] = node;
    }
}

/* Replaces the path's leaf with one that has these rows. */
static void replaceLeaf(idTree *t, treePath *path, const idRow *rows, unsigned count,
                        unsigned cap) {
    idLeaf *old = path->leaf, *l = newLeaf(t, rows, count, cap);
    l->prev = old->prev;
    l->next = old->next;
    if (l->prev) l->prev->next = l;
    if (l->next) l->next->prev = l;
    freeNode(t, old);
    setNode(t, path, t->levels, l);
}

static void insertChild(idInner *n, unsigned at, streamId key, void *child) {
    hotCheck(at <= n->count);
    hotCheck(n->count < ID_INNER_MAX);
    memmove(&n->key[at + 1], &n->key[at], (n->count - at) * sizeof(n->key[0]));
    memmove(&n->child[at + 1], &n->child[at], (n->count - at) * sizeof(n->child[0]));
    n->key[at] = key;
    n->child[at] = child;
    n->count++;
    hotCheck(at < 2 || streamIdLess(n->key[at - 1], key));
    hotCheck(at == 0 || at + 1u == n->count || streamIdLess(key, n->key[at + 1]));
}

static void removeChild(idInner *n, unsigned at) {
    hotCheck(at < n->count);
    n->count--;
    memmove(&n->key[at], &n->key[at + 1], (n->count - at) * sizeof(n->key[0]));
    memmove(&n->child[at], &n->child[at + 1], (n->count - at) * sizeof(n->child[0]));
}

/* Moves the children of `other` from index `from` on to the end of this node. */
static void takeChildren(idInner *n, idInner *other, unsigned from) {
    hotCheck(from <= other->count);
    hotCheck(n->count + other->count - from <= ID_INNER_MAX);
    unsigned count = other->count - from;
    memcpy(&n->key[n->count], &other->key[from], count * sizeof(n->key[0]));
    memcpy(&n->child[n->count], &other->child[from], count * sizeof(n->child[0]));
    n->count += count;
    other->count = from;
}

/* Adds a node after the path's node at `level`, whose first id it has: its parents are split as
 * needed. */
static void addAfter(idTree *t, treePath *path, unsigned level, streamId key, void *node) {
    while (level > 0) {
        idInner *n = path->inner[--level];
        unsigned at = path->at[level] + 1;
        if (n->count < ID_INNER_MAX) {
            insertChild(n, at, key, node);
            return;
        }
        /* Nodes filled in ascending order are not split, so they stay full. */
        unsigned keep = at == ID_INNER_MAX ? ID_INNER_MAX - 1 : ID_INNER_MAX / 2;
        idInner *more = newInner(t);
        takeChildren(more, n, keep);
        if (at > keep) {
            insertChild(more, at - keep, key, node);
        } else {
            insertChild(n, at, key, node);
        }
        key = more->key[0];
        node = more;
    }
    idInner *root = newInner(t);
    check(t->levels < ID_LEVELS_MAX);
    insertChild(root, 0, STREAM_ID_MIN, t->root);
    insertChild(root, 1, key, node);
    t->root = root;
    t->levels++;
}

/* ------------------------------------------------------------------ inserting */

/* Capacity for `count` rows with some spare. */
static unsigned capFor(unsigned count) {
    hotCheck(count <= ID_LEAF_MAX);
    unsigned cap = count + count / 2 + 2;
    return cap < ID_LEAF_MAX ? cap : ID_LEAF_MAX;
}

static streamId rowId(const idRow *row) { return (streamId){row->column[0], row->column[1]}; }

/* The path's leaf is full: inserts the row at index `at` of it or of a new neighbour. */
static void splitLeaf(idTree *t, treePath *path, unsigned at, const idRow *row) {
    hotCheck(at <= path->leaf->count);
    idLeaf *l = path->leaf, *more;
    if (at == l->count && !l->next) {
        more = newLeaf(t, row, 1, capFor(1));
        linkAfter(more, l);
        addAfter(t, path, t->levels, rowId(row), more);
        return;
    }
    idRow rows[ID_LEAF_MAX + 1];
    unsigned count = idLeafReadAll(l, rows), half = (count + 1) / 2;
    memmove(&rows[at + 1], &rows[at], (count - at) * sizeof(rows[0]));
    rows[at] = *row;
    replaceLeaf(t, path, rows, half, capFor(half));
    more = newLeaf(t, rows + half, count + 1 - half, capFor(count + 1 - half));
    linkAfter(more, path->leaf);
    addAfter(t, path, t->levels, rowId(&rows[half]), more);
}

/* Rebuilds the path's leaf with the row inserted at `at`, or replacing the existing row if
 * `replace`. */
static void rebuildLeaf(idTree *t, treePath *path, unsigned at, const idRow *row, bool replace) {
    hotCheck(at <= path->leaf->count);
    idRow rows[ID_LEAF_MAX + 1];
    unsigned count = idLeafReadAll(path->leaf, rows);
    if (!replace) {
        memmove(&rows[at + 1], &rows[at], (count - at) * sizeof(rows[0]));
        count++;
    }
    rows[at] = *row;
    unsigned cap = path->leaf->cap;
    replaceLeaf(t, path, rows, count, count > cap ? capFor(count) : cap);
}

bool idTreeInsert(idTree *t, const idEntry *entry) {
    idRow row = rowOf(t, entry);
    if (!t->root) {
        t->root = newLeaf(t, &row, 1, capFor(1));
        t->count = 1;
        return true;
    }
    treePath path;
    pathFor(t, entry->id, &path);
    idLeaf *l = path.leaf;
    unsigned at = idLeafFind(l, entry->id);
    if (at < l->count && streamIdEqual(idLeafId(l, at), entry->id)) return false;
    t->count++;
    if (likely(idLeafInsert(l, at, &row))) return true;
    if (l->count == ID_LEAF_MAX) {
        splitLeaf(t, &path, at, &row);
    } else {
        rebuildLeaf(t, &path, at, &row, false);
    }
    return true;
}

void idTreeSet(idTree *t, const idEntry *entry) {
    treePath path;
    check(t->root != NULL);
    pathFor(t, entry->id, &path);
    unsigned at = idLeafFind(path.leaf, entry->id);
    check(at < path.leaf->count);
    check(streamIdEqual(idLeafId(path.leaf, at), entry->id));
    idRow row = rowOf(t, entry);
    if (!idLeafSet(path.leaf, at, &row)) rebuildLeaf(t, &path, at, &row, true);
}

/* ------------------------------------------------------------------ removing */

/* A root with a single child is replaced by it. */
static void lowerRoot(idTree *t) {
    while (t->levels > 0 && ((idInner *)t->root)->count == 1) {
        idInner *root = t->root;
        t->root = root->child[0];
        t->levels--;
        freeNode(t, root);
    }
    hotCheck(t->levels == 0 || ((const idInner *)t->root)->count > 1);
}

/* Merges children at and at + 1 of an inner node, which are inner nodes, if both fill half a node
 * at most. */
static bool mergeInners(idTree *t, idInner *parent, unsigned at) {
    hotCheck(at + 1 < parent->count);
    idInner *left = parent->child[at], *right = parent->child[at + 1];
    if (left->count + right->count > ID_INNER_MAX / 2) return false;
    right->key[0] = parent->key[at + 1]; /* its own may have been lower than all keys */
    takeChildren(left, right, 0);
    freeNode(t, right);
    removeChild(parent, at + 1);
    return true;
}

/* Removes the path's node at `level`, already freed, from its parent. */
static void removeNode(idTree *t, treePath *path, unsigned level) {
    hotCheck(level <= t->levels);
    while (level > 0) {
        idInner *n = path->inner[--level];
        removeChild(n, path->at[level]);
        if (n->count == 0) {
            freeNode(t, n);
            continue;
        }
        if (level > 0 && n->count <= ID_INNER_MAX / 4) {
            idInner *parent = path->inner[level - 1];
            unsigned at = path->at[level - 1];
            bool merged = at + 1 < parent->count && mergeInners(t, parent, at);
            if (!merged && at > 0)
                (void)mergeInners(t, parent, at - 1); /* else they stay separate */
        }
        lowerRoot(t);
        return;
    }
    t->root = NULL;
    t->levels = 0;
}

/* Merges the leaves at `at` and at + 1 below the path's last inner node, if both fill half a leaf
 * at most. */
static bool mergeLeaves(idTree *t, treePath *path, unsigned at) {
    hotCheck(t->levels > 0);
    idInner *parent = path->inner[t->levels - 1];
    idLeaf *left = parent->child[at], *right = parent->child[at + 1];
    unsigned count = left->count + right->count;
    if (count > ID_LEAF_MAX / 2) return false;
    idRow rows[ID_LEAF_MAX];
    (void)idLeafReadAll(left, rows); /* counted above */
    (void)idLeafReadAll(right, rows + left->count);
    path->at[t->levels - 1] = at;
    path->leaf = left;
    replaceLeaf(t, path, rows, count, capFor(count));
    unlinkLeaf(right);
    freeNode(t, right);
    path->at[t->levels - 1] = at + 1;
    removeNode(t, path, t->levels);
    return true;
}

/* Rebalances after an entry was removed from the path's leaf. */
static void settleLeaf(idTree *t, treePath *path) {
    idLeaf *l = path->leaf;
    if (l->count == 0) {
        unlinkLeaf(l);
        freeNode(t, l);
        removeNode(t, path, t->levels);
        return;
    }
    if (t->levels > 0 && l->count <= ID_LEAF_MAX / 4) {
        const idInner *parent = path->inner[t->levels - 1];
        unsigned at = path->at[t->levels - 1];
        if (at + 1 < parent->count && mergeLeaves(t, path, at)) return;
        if (at > 0 && mergeLeaves(t, path, at - 1)) return;
    }
    if (l->cap > 8 && l->count <= l->cap / 3) {
        idRow rows[ID_LEAF_MAX];
        unsigned count = idLeafReadAll(l, rows);
        replaceLeaf(t, path, rows, count, capFor(count));
    }
}

bool idTreeRemove(idTree *t, streamId id, idEntry *out) {
    if (!t->root) return false;
    treePath path;
    pathFor(t, id, &path);
    unsigned at = idLeafFind(path.leaf, id);
    if (at == path.leaf->count || !streamIdEqual(idLeafId(path.leaf, at), id)) return false;
    if (out) entryOf(path.leaf, at, out);
    idLeafRemove(path.leaf, at);
    t->count--;
    settleLeaf(t, &path);
    return true;
}

/* ------------------------------------------------------------------ the whole */

static void clearNode(void *node, unsigned level) {
    idInner *n = node;
    if (level > 0) {
        for (unsigned i = 0; i < n->count; i++) clearNode(n->child[i], level - 1);
    }
    memFree(node);
}

void idTreeClear(idTree *t) {
    if (t->root) clearNode(t->root, t->levels);
    *t = (idTree){.values = t->values};
}

/* Copies the subtree for `to`; *last is the leaf that precedes it, and is set to its last leaf. */
static void *copyNode(idTree *to, const void *node, unsigned level, idLeaf **last) {
    if (level == 0) {
        const idLeaf *from = node;
        idLeaf *l = memAlloc(idLeafSize(from));
        to->bytes += memSizeOf(l);
        memcpy(l, from, idLeafSize(from));
        l->prev = *last;
        l->next = NULL;
        if (l->prev) l->prev->next = l;
        *last = l;
        return l;
    }
    const idInner *from = node;
    idInner *n = newInner(to);
    memcpy(n, from, sizeof(*n));
    for (unsigned i = 0; i < n->count; i++)
        n->child[i] = copyNode(to, from->child[i], level - 1, last);
    return n;
}

void idTreeCopy(idTree *to, const idTree *from) {
    idLeaf *last = NULL;
    *to = *from;
    to->bytes = 0;
    if (from->root) to->root = copyNode(to, from->root, from->levels, &last);
    hotCheck(to->count == from->count);
}

bool idTreeCompact(idTree *t, streamId *from, uint64_t *moved, uint64_t *kept) {
    if (!t->root) return false;
    treePath path;
    pathFor(t, *from, &path);
    for (unsigned level = 0; level <= t->levels; level++) {
        void *old = level == t->levels ? (void *)path.leaf : (void *)path.inner[level];
        size_t size = memSizeOf(old);
        void *now = memMoveIfSparse(old);
        *moved += now != NULL;
        *kept += now == NULL;
        if (!now) continue;
        t->bytes += memSizeOf(now) - size;
        setNode(t, &path, level, now);
        if (level < t->levels) continue;
        if (path.leaf->prev) path.leaf->prev->next = path.leaf;
        if (path.leaf->next) path.leaf->next->prev = path.leaf;
    }
    const idLeaf *next = path.leaf->next;
    if (next) *from = idLeafId(next, 0);
    return next != NULL;
}

/* State of the check of the whole tree. */
typedef struct treeCheck {
    const idLeaf *last;
    streamId last_id;
    uint64_t count;
    size_t bytes;
    const char *broken;
} treeCheck;

static void verifyLeaf(treeCheck *v, const idTree *t, const idLeaf *l) {
    if (l->count == 0 || l->count > l->cap || l->cap > ID_LEAF_MAX) v->broken = "count of a leaf";
    if (l->columns != 2u + t->values) v->broken = "columns of a leaf";
    if (l->prev != v->last || (v->last && v->last->next != l)) v->broken = "links of leaves";
    for (unsigned i = 0; i < l->count; i++) {
        streamId id = idLeafId(l, i);
        if (v->count > 0 && !streamIdLess(v->last_id, id)) v->broken = "order of ids";
        v->last_id = id;
        v->count++;
    }
    v->last = l;
}

static void verifyNode(treeCheck *v, const idTree *t, const void *node, unsigned level) {
    hotCheck(level <= t->levels);
    v->bytes += memSizeOf(node);
    if (level == 0) {
        verifyLeaf(v, t, node);
        return;
    }
    const idInner *n = node;
    if (n->count == 0 || n->count > ID_INNER_MAX) v->broken = "count of an inner node";
    for (unsigned i = 0; i < n->count && !v->broken; i++) {
        if (i > 0 && v->count > 0 && !streamIdLess(v->last_id, n->key[i]))
            v->broken = "key at or below an earlier id";
        uint64_t before = v->count;
        verifyNode(v, t, n->child[i], level - 1);
        if (v->broken) return;
        if (v->count == before) v->broken = "empty child";
        if (i + 1 < n->count && !streamIdLess(v->last_id, n->key[i + 1]))
            v->broken = "id at or above the next key";
    }
}

const char *idTreeVerify(const idTree *t) {
    treeCheck v = {0};
    if (t->root) verifyNode(&v, t, t->root, t->levels);
    if (v.broken) return v.broken;
    if (v.last && v.last->next) return "a leaf after the last one";
    if (v.count != t->count) return "count of the tree";
    return v.bytes == t->bytes ? NULL : "bytes of the tree";
}
