/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Changes of radix trees and lookups (radix_tree.h); nodes are explained in radix_node.h.
 *
 * Invariant: the path of a leaf is the prefixes and keys on the way to it, and its rest. A change
 * writes at most one node anew, and splits or joins at most one other. */
#include "ds/radix_tree.h"

#include "ds/radix_node.h"

/* ------------------------------------------------------------------ nodes */

/* A node, taken apart. */
typedef struct nodeParts {
    slice prefix;
    uint64_t value; /* the word, if has_value */
    bool has_value;
    size_t children;
    uint8_t keys[RADIX_CHILDREN_MAX];
    uint64_t words[RADIX_CHILDREN_MAX];
} nodeParts;

static size_t sizeFor(size_t children, bool has_value, size_t prefix) {
    hotCheck(children <= RADIX_CHILDREN_MAX);
    return RADIX_HEADER + radixKeysBytes(children) + prefix +
           sizeof(uint64_t) * (children + has_value);
}

static size_t sizeOf(const char *node) {
    return sizeFor(radixChildren(node), radixHasValue(node), radixPrefix(node).len);
}

static void takeApart(const char *node, nodeParts *p) {
    p->prefix = radixPrefix(node);
    p->children = radixChildren(node);
    p->has_value = radixHasValue(node);
    p->value = p->has_value ? radixWord(radixValuePlace(node)) : 0;
    if (p->children <= RADIX_KEYS_MAX) {
        memcpy(p->keys, radixKeys(node), p->children);
    } else {
        for (size_t i = 0; i < p->children; i++) p->keys[i] = radixKeyAt(node, i);
    }
    memcpy(p->words, radixChildPlace(node, 0), sizeof(uint64_t) * p->children);
}

static void writeKeys(char *to, const nodeParts *p) {
    hotCheck(p->children > 0);
    if (p->children <= RADIX_KEYS_MAX) {
        memcpy(to, p->keys, p->children);
        return;
    }
    uint64_t bits[RADIX_CHILDREN_MAX / 64] = {0};
    for (size_t i = 0; i < p->children; i++)
        bits[p->keys[i] / 64] |= UINT64_C(1) << p->keys[i] % 64;
    memcpy(to, bits, sizeof(bits));
}

/* A new node. The prefix of `p` may be in another one. */
static char *makeNode(radixTree *t, const radixType *type, const nodeParts *p) {
    hotCheck(p->children + p->has_value >= 2);
    size_t size = sizeFor(p->children, p->has_value, p->prefix.len);
    char *node = type->alloc(size);
    t->node_bytes += type->taken(size);
    uint64_t value_bit = p->has_value ? RADIX_VALUE_BIT : 0;
    storeU64(node, p->children | value_bit | (uint64_t)p->prefix.len << 16);
    writeKeys(node + RADIX_HEADER, p);
    bytesCopy((char *)(uintptr_t)radixPrefix(node).ptr, p->prefix.ptr, p->prefix.len);
    if (p->has_value) storeU64(radixValuePlace(node), p->value);
    memcpy(radixChildPlace(node, 0), p->words, sizeof(uint64_t) * p->children);
    return node;
}

static void freeNode(radixTree *t, const radixType *type, char *node) {
    size_t taken = type->taken(sizeOf(node));
    check(t->node_bytes >= taken);
    t->node_bytes -= taken;
    type->free(node, NULL);
}

/* Writes a node anew, whose reference is at `place`. */
static char *renewNode(radixTree *t, const radixType *type, char *place, const nodeParts *p) {
    char *old = radixNodeOf(radixWord(place)), *node = makeNode(t, type, p);
    freeNode(t, type, old);
    storeU64(place, (uintptr_t)node);
    return node;
}

static void insertChild(nodeParts *p, size_t index, uint8_t key, uint64_t word) {
    hotCheck(index <= p->children);
    hotCheck(p->children < RADIX_CHILDREN_MAX);
    size_t after = p->children - index;
    memmove(p->keys + index + 1, p->keys + index, after);
    memmove(p->words + index + 1, p->words + index, after * sizeof(*p->words));
    p->keys[index] = key;
    p->words[index] = word;
    p->children++;
}

static void deleteChild(nodeParts *p, size_t index) {
    hotCheck(index < p->children);
    size_t after = --p->children - index;
    memmove(p->keys + index, p->keys + index + 1, after);
    memmove(p->words + index, p->words + index + 1, after * sizeof(*p->words));
}

/* ------------------------------------------------------------------ lookups */

/* The way of a text through the tree. */
typedef struct textWay {
    const char *place; /* of the next reference; NULL: the text leaves the tree */
    slice text;        /* what follows it */
    const char *end;   /* of the path of the last leaf, in the text */
    const char *leaf_place;
} textWay;

static textWay wayOf(const radixTree *t, slice text) {
    return (textWay){.place = t->root ? (const char *)&t->root : NULL, .text = text};
}

/* The next leaf whose path the text begins with; NULL: there are no more. */
ALWAYS_INLINE void *nextOnWay(textWay *way, const radixType *type) {
    while (way->place) {
        const char *place = way->place;
        uint64_t word = radixWord(place);
        way->place = NULL;
        bool is_leaf = radixIsLeaf(word);
        const char *node = radixNodeOf(word);
        slice own = is_leaf ? type->rest(radixLeafOf(word)) : radixPrefix(node);
        if (!sliceHasPrefix(way->text, own)) return NULL;
        slice text = radixAfter(way->text, own.len);
        if (!is_leaf && text.len) {
            bool found;
            size_t index = radixRank(node, (uint8_t)text.ptr[0], &found);
            if (found) {
                way->place = radixChildPlace(node, index);
                __builtin_prefetch(radixNodeOf(radixWord(way->place)));
                way->text = radixAfter(text, 1);
            }
        }
        if (!is_leaf && !radixHasValue(node)) continue;
        way->end = text.ptr;
        way->leaf_place = is_leaf ? place : radixValuePlace(node);
        return radixLeafOf(radixWord(way->leaf_place));
    }
    return NULL;
}

static void *lastOnWay(const radixTree *t, const radixType *type, slice text, textWay *way) {
    void *last = NULL;
    *way = wayOf(t, text);
    for (void *leaf; (leaf = nextOnWay(way, type));) last = leaf;
    return last;
}

void *radixFind(const radixTree *t, const radixType *type, slice path, radixPlace *at) {
    textWay way;
    void *leaf = lastOnWay(t, type, path, &way);
    if (!leaf || way.end != path.ptr + path.len) return NULL;
    if (at) at->word = (char *)(uintptr_t)way.leaf_place;
    return leaf;
}

void *radixLongest(const radixTree *t, const radixType *type, slice text, size_t *len) {
    textWay way;
    void *leaf = lastOnWay(t, type, text, &way);
    if (leaf) *len = (size_t)(way.end - text.ptr);
    return leaf;
}

void radixPrefixes(const radixTree *t, const radixType *type, slice text, radixVisitProc *visit,
                   void *arg) {
    textWay way = wayOf(t, text);
    for (void *leaf; (leaf = nextOnWay(&way, type));)
        visit(arg, (size_t)(way.end - text.ptr), leaf);
}

/* ------------------------------------------------------------------ adding */

void radixPut(radixPlace at, void *leaf) {
    hotCheck(leaf != NULL);
    check(((uintptr_t)leaf & 7) == 0);
    storeU64(at.word, (uintptr_t)leaf + 1);
}

/* The places of a new node with a new path. */
static radixPlace placeOfNew(const char *node, slice rest) {
    if (!rest.len) return (radixPlace){radixValuePlace(node)};
    bool found;
    size_t index = radixRank(node, (uint8_t)rest.ptr[0], &found);
    check(found);
    return (radixPlace){radixChildPlace(node, index)};
}

/* Adds a word without a leaf, for the path whose end is `text`. */
static void addWord(nodeParts *p, slice text, uint64_t word) {
    if (!text.len) {
        check(!p->has_value);
        p->has_value = true;
        p->value = word;
        return;
    }
    uint8_t key = (uint8_t)text.ptr[0];
    size_t index = 0;
    while (index < p->children && p->keys[index] < key) index++;
    insertChild(p, index, key, word);
}

static slice restAfterKey(slice text) { return text.len ? radixAfter(text, 1) : text; }

/* Replaces the leaf at `place`, whose rest is not a prefix of `text`, by a node with both. */
static radixPlace splitLeaf(radixTree *t, const radixType *type, char *place, slice text,
                            slice *rest) {
    void *leaf = radixLeafOf(radixWord(place));
    slice own = type->rest(leaf);
    size_t common = radixCommon(own, text);
    check(common < own.len || common < text.len);
    nodeParts p;
    p.prefix = sliceMake(text.ptr, common);
    p.children = 0;
    p.has_value = false;
    slice own_end = radixAfter(own, common), new_end = radixAfter(text, common);
    slice own_rest = restAfterKey(own_end);
    addWord(&p, new_end, 0);
    addWord(&p, own_end, (uintptr_t)leaf + 1);
    radixPlace own_place;
    char *node = makeNode(t, type, &p);
    storeU64(place, (uintptr_t)node);
    own_place = placeOfNew(node, own_end);
    radixPut(own_place, type->set_rest(t, leaf, own_rest));
    *rest = restAfterKey(new_end);
    return placeOfNew(node, new_end);
}

/* Splits the prefix of the node at `place` after its first `common` bytes, where `text` leaves. */
static radixPlace splitNode(radixTree *t, const radixType *type, char *place, slice text,
                            size_t common, slice *rest) {
    nodeParts p;
    takeApart(radixNodeOf(radixWord(place)), &p);
    slice own_end = radixAfter(p.prefix, common), new_end = radixAfter(text, common);
    uint8_t own_key[1] = {(uint8_t)own_end.ptr[0]};
    p.prefix = restAfterKey(own_end);
    char *lower = renewNode(t, type, place, &p);
    p.prefix = sliceMake(text.ptr, common);
    p.children = 0;
    p.has_value = false;
    addWord(&p, new_end, 0);
    addWord(&p, sliceMake(own_key, 1), (uintptr_t)lower);
    char *node = makeNode(t, type, &p);
    storeU64(place, (uintptr_t)node);
    *rest = restAfterKey(new_end);
    return placeOfNew(node, new_end);
}

/* Adds a word to the node at `place`, which has none for `text`. */
static radixPlace extendNode(radixTree *t, const radixType *type, char *place, slice text,
                             slice *rest) {
    nodeParts p;
    takeApart(radixNodeOf(radixWord(place)), &p);
    addWord(&p, text, 0);
    *rest = restAfterKey(text);
    return placeOfNew(renewNode(t, type, place, &p), text);
}

radixPlace radixAdd(radixTree *t, const radixType *type, slice path, slice *rest) {
    char *place = (char *)&t->root;
    t->count++;
    if (!t->root) {
        *rest = path;
        return (radixPlace){place};
    }
    for (slice text = path;;) {
        uint64_t word = radixWord(place);
        if (radixIsLeaf(word)) return splitLeaf(t, type, place, text, rest);
        const char *node = radixNodeOf(word);
        slice prefix = radixPrefix(node);
        size_t common = radixCommon(prefix, text);
        if (common < prefix.len) return splitNode(t, type, place, text, common, rest);
        text = radixAfter(text, common);
        bool found = false;
        size_t index = text.len ? radixRank(node, (uint8_t)text.ptr[0], &found) : 0;
        if (!found) return extendNode(t, type, place, text, rest);
        place = radixChildPlace(node, index);
        text = radixAfter(text, 1);
    }
}

/* ------------------------------------------------------------------ removing */

/* Replaces the node at `place`, of which a single child remains, by this child. */
static void joinChild(radixTree *t, const radixType *type, char *place, const nodeParts *p) {
    hotCheck(p->children == 1);
    hotCheck(!p->has_value);
    char *old = radixNodeOf(radixWord(place));
    uint64_t word = p->words[0];
    str prefix = STR_EMPTY;
    strAppendSlice(&prefix, p->prefix);
    strAppendByte(&prefix, (char)p->keys[0]);
    if (radixIsLeaf(word)) {
        void *leaf = radixLeafOf(word);
        strAppendSlice(&prefix, type->rest(leaf));
        radixPut((radixPlace){place}, type->set_rest(t, leaf, strSlice(&prefix)));
    } else {
        nodeParts child;
        takeApart(radixNodeOf(word), &child);
        strAppendSlice(&prefix, child.prefix);
        child.prefix = strSlice(&prefix);
        char *node = makeNode(t, type, &child);
        freeNode(t, type, radixNodeOf(word));
        storeU64(place, (uintptr_t)node);
    }
    freeNode(t, type, old);
    strFree(&prefix);
}

/* Replaces the node at `place`, of which the value remains, by the leaf. */
static void joinValue(radixTree *t, const radixType *type, char *place, const nodeParts *p) {
    hotCheck(p->children == 0);
    hotCheck(p->has_value);
    char *old = radixNodeOf(radixWord(place));
    radixPut((radixPlace){place}, type->set_rest(t, radixLeafOf(p->value), p->prefix));
    freeNode(t, type, old);
}

/* Removes the word at `gone` from the node at `place`. */
static void removeWord(radixTree *t, const radixType *type, char *place, const char *gone) {
    const char *node = radixNodeOf(radixWord(place));
    nodeParts p;
    takeApart(node, &p);
    if (p.has_value && gone == radixValuePlace(node)) {
        p.has_value = false;
    } else {
        deleteChild(&p, (size_t)(gone - radixChildPlace(node, 0)) / sizeof(uint64_t));
    }
    if (p.children == 0) {
        joinValue(t, type, place, &p);
    } else if (p.children == 1 && !p.has_value) {
        joinChild(t, type, place, &p);
    } else {
        (void)renewNode(t, type, place, &p); /* its reference is updated */
    }
}

void *radixRemove(radixTree *t, const radixType *type, slice path) {
    radixPlace at;
    void *leaf = radixFind(t, type, path, &at);
    if (!leaf) return NULL;
    check(t->count > 0);
    t->count--;
    if (at.word == (char *)&t->root) {
        t->root = 0;
        return leaf;
    }
    /* The node with this word. */
    char *place = (char *)&t->root;
    slice text = path;
    for (;;) {
        const char *node = radixNodeOf(radixWord(place));
        text = radixAfter(text, radixPrefix(node).len);
        if (!text.len) break;
        bool found;
        char *next = radixChildPlace(node, radixRank(node, (uint8_t)text.ptr[0], &found));
        check(found);
        if (next == at.word) break;
        text = radixAfter(text, 1);
        place = next;
    }
    removeWord(t, type, place, at.word);
    return leaf;
}

/* ------------------------------------------------------------------ whole trees */

static void pushWords(str *stack, const char *node) {
    size_t words = radixChildren(node) + radixHasValue(node);
    strAppend(stack, radixValuePlace(node), words * sizeof(uint64_t));
    hotCheck(words >= 2);
}

static uint64_t popWord(str *stack) {
    check(stack->len >= sizeof(uint64_t));
    uint64_t word = loadU64(stack->ptr + stack->len - sizeof(uint64_t));
    strCut(stack, stack->len - sizeof(word));
    return word;
}

void radixFree(radixTree *t, const radixType *type, void (*free_leaf)(void *leaf, void *by),
               void *by) {
    str stack = STR_EMPTY;
    if (t->root) strAppend(&stack, &t->root, sizeof(t->root));
    while (stack.len) {
        uint64_t word = popWord(&stack);
        if (radixIsLeaf(word)) {
            free_leaf(radixLeafOf(word), by);
            continue;
        }
        char *node = radixNodeOf(word);
        pushWords(&stack, node);
        type->free(node, by);
    }
    strFree(&stack);
    *t = (radixTree){0};
}

static const char *verifyNode(const char *node) {
    if (radixChildren(node) == 0) return "a node without children";
    if (radixChildren(node) + radixHasValue(node) < 2) return "a node with one word";
    for (size_t i = 0; i < radixChildren(node); i++) {
        bool found;
        uint8_t key = radixKeyAt(node, i);
        if (radixRank(node, key, &found) != i || !found) return "a key out of order";
        if (radixWord(radixChildPlace(node, i)) == 0) return "a child without a reference";
    }
    if (radixHasValue(node) && !radixIsLeaf(radixWord(radixValuePlace(node))))
        return "a value that is not a leaf";
    return NULL;
}

const char *radixVerify(const radixTree *t, const radixType *type) {
    str stack = STR_EMPTY;
    const char *wrong = NULL;
    uint64_t leaves = 0;
    size_t bytes = 0;
    if (t->root) strAppend(&stack, &t->root, sizeof(t->root));
    while (stack.len && !wrong) {
        uint64_t word = popWord(&stack);
        if (radixIsLeaf(word)) {
            leaves++;
            continue;
        }
        const char *node = radixNodeOf(word);
        wrong = verifyNode(node);
        bytes += type->taken(sizeOf(node));
        if (!wrong && radixHasValue(node) &&
            type->rest(radixLeafOf(radixWord(radixValuePlace(node)))).len)
            wrong = "a value with a rest";
        pushWords(&stack, node);
    }
    strFree(&stack);
    if (!wrong && leaves != t->count) wrong = "the number of paths";
    if (!wrong && bytes != t->node_bytes) wrong = "the memory of nodes";
    return wrong;
}
