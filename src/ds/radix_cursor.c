/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Walks over radix trees in byte order (radix_tree.h).
 *
 * Invariant: the frames are the nodes from the root to the present one, at last possibly a leaf
 * that is not passed on yet; `path` begins with the bytes up to the end of the last frame's prefix.
 * No recursion: paths that are prefixes of each other make a tree as deep as a path is long. */
#include "ds/radix_node.h"
#include "ds/radix_tree.h"

/* `next`: 0: the value, n + 1: child n. */
struct radixFrame {
    char *place; /* of the reference */
    size_t next;
    size_t len; /* of the path: with the prefix of a node, without the rest of a leaf */
};

enum { FRAMES_FIRST = 8 };

void radixCursorInitMoving(radixCursor *c, radixTree *t, const radixType *type,
                           void *(*move)(void *node, void *arg), void *arg) {
    *c = (radixCursor){.t = t, .type = type, .move = move, .arg = arg, .path = STR_EMPTY};
    radixCursorSeek(c, SLICE(""), false);
}

void radixCursorInit(radixCursor *c, const radixTree *t, const radixType *type) {
    radixCursorInitMoving(c, (radixTree *)(uintptr_t)t, type, NULL, NULL);
}

void radixCursorClear(radixCursor *c) {
    strFree(&c->path);
    memFree(c->frames);
    *c = (radixCursor){.path = STR_EMPTY};
}

/* Enters the node or leaf whose reference is at `place`; the path ends before it. Returns its
 * word. */
static uint64_t enter(radixCursor *c, char *place) {
    if (c->depth == c->cap) {
        c->cap = c->cap ? 2 * c->cap : FRAMES_FIRST;
        c->frames = memRealloc(c->frames, c->cap * sizeof(*c->frames));
    }
    uint64_t word = radixWord(place);
    hotCheck(word != 0);
    if (!radixIsLeaf(word)) {
        void *moved = c->move ? c->move(radixNodeOf(word), c->arg) : NULL;
        if (moved) storeU64(place, word = (uintptr_t)moved);
        strAppendSlice(&c->path, radixPrefix(radixNodeOf(word)));
    }
    c->frames[c->depth++] = (struct radixFrame){.place = place, .len = c->path.len};
    return word;
}

static void leave(radixCursor *c) {
    check(c->depth > 0);
    c->depth--;
}

static void seekLeaf(radixCursor *c, const void *leaf, slice from, bool after) {
    int order = sliceCompare(c->type->rest(leaf), from);
    if (order < 0 || (after && order == 0)) leave(c);
}

/* *from is the rest of the path to seek. True if it is below a child, which follows; false: the
 * cursor is where the path is, or the next one. */
static bool seekNode(radixCursor *c, const char *node, slice *from, bool after) {
    struct radixFrame *top = &c->frames[c->depth - 1];
    slice prefix = radixPrefix(node);
    size_t common = radixCommon(prefix, *from);
    if (common < prefix.len) {
        bool less = common < from->len && (uint8_t)prefix.ptr[common] < (uint8_t)from->ptr[common];
        if (less) leave(c);
        return false;
    }
    *from = radixAfter(*from, common);
    if (!from->len) {
        top->next = after ? 1 : 0;
        return false;
    }
    bool found;
    size_t index = radixRank(node, (uint8_t)from->ptr[0], &found);
    top->next = 1 + index + found;
    return found;
}

void radixCursorSeek(radixCursor *c, slice from, bool after) {
    hotCheck(c->t != NULL);
    c->depth = 0;
    strClear(&c->path);
    if (!c->t->root) return;
    char *place = (char *)(uintptr_t)&c->t->root;
    for (;;) {
        uint64_t word = enter(c, place);
        if (radixIsLeaf(word)) {
            seekLeaf(c, radixLeafOf(word), from, after);
            return;
        }
        const char *node = radixNodeOf(word);
        if (!seekNode(c, node, &from, after)) return;
        place = radixChildPlace(node, c->frames[c->depth - 1].next - 2);
        strAppendByte(&c->path, from.ptr[0]);
        from = radixAfter(from, 1);
    }
}

static bool yield(radixCursor *c, char *place, slice *path, void **leaf) {
    hotCheck(radixIsLeaf(radixWord(place)));
    c->last.word = place;
    *leaf = radixLeafOf(radixWord(place));
    *path = strSlice(&c->path);
    return true;
}

bool radixCursorNext(radixCursor *c, slice *path, void **leaf) {
    while (c->depth) {
        struct radixFrame *top = &c->frames[c->depth - 1];
        uint64_t word = radixWord(top->place);
        strCut(&c->path, top->len);
        if (radixIsLeaf(word)) {
            char *place = top->place;
            strAppendSlice(&c->path, c->type->rest(radixLeafOf(word)));
            leave(c);
            return yield(c, place, path, leaf);
        }
        const char *node = radixNodeOf(word);
        size_t next = top->next++;
        if (next == 0) {
            if (radixHasValue(node)) return yield(c, radixValuePlace(node), path, leaf);
        } else if (next > radixChildren(node)) {
            leave(c);
        } else {
            strAppendByte(&c->path, (char)radixKeyAt(node, next - 1));
            (void)enter(c, radixChildPlace(node, next - 1)); /* the next turn reads it */
        }
    }
    return false;
}
