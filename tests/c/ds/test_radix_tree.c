/* SPDX-License-Identifier: BSD-3-Clause
 *
 * ds/radix_tree against a model: a sorted list of all paths that may exist, and whether each one
 * does. Lookups of every kind, walks and moves of nodes between random changes; the checker of
 * invariants runs in between. TEST_SCALE=20 makes it twenty times longer. */
#include "ds_test.h"

#include <stdlib.h>
#include <string.h>

#include "base/base.h"
#include "base/random.h"
#include "ds/radix_tree.h"

#ifdef TESTS_SANITIZED
enum { STEPS = 100000 };
#else
enum { STEPS = 1000000 };
#endif

/* A leaf: the number of its path, and the rest. */
typedef struct testLeaf {
    uint64_t id;
    size_t len;
    char bytes[];
} testLeaf;

static testLeaf *leafNew(uint64_t id, slice rest) {
    testLeaf *leaf = memAlloc(sizeof(*leaf) + rest.len);
    leaf->id = id;
    leaf->len = rest.len;
    bytesCopy(leaf->bytes, rest.ptr, rest.len);
    return leaf;
}

static slice restOf(const void *leaf) {
    const testLeaf *l = leaf;
    return sliceMake(l->bytes, l->len);
}

static void *setRest(radixTree *t, void *leaf, slice rest) {
    assert_non_null(t);
    testLeaf *changed = leafNew(((testLeaf *)leaf)->id, rest);
    memFree(leaf);
    return changed;
}

static void freeNode(void *node, void *by) {
    if (by) ++*(uint64_t *)by;
    memFree(node);
}

static void freeLeaf(void *leaf, void *by) {
    ++*(uint64_t *)by;
    memFree(leaf);
}

static size_t taken(size_t size) { return size; }

static void *allocNode(size_t size) { return memAlloc(size); }

static const radixType test_type = {
    .rest = restOf, .set_rest = setRest, .alloc = allocNode, .free = freeNode, .taken = taken};

/* ------------------------------------------------------------------ model */

typedef struct model {
    radixTree tree;
    slice *paths; /* sorted, distinct */
    bool *exists;
    size_t count, present;
} model;

static int comparePaths(const void *a, const void *b) {
    return sliceCompare(*(const slice *)a, *(const slice *)b);
}

static void modelSort(model *m) {
    qsort(m->paths, m->count, sizeof(*m->paths), comparePaths);
    size_t distinct = 0;
    for (size_t i = 0; i < m->count; i++) {
        if (distinct && sliceEqual(m->paths[distinct - 1], m->paths[i])) {
            memFree((void *)(uintptr_t)m->paths[i].ptr);
        } else {
            m->paths[distinct++] = m->paths[i];
        }
    }
    m->count = distinct;
    m->exists = memNewArray(bool, m->count);
}

/* Random paths of up to `len_max` bytes out of the first `letters` of a shuffled alphabet. */
static void modelInit(model *m, size_t count, size_t len_max, unsigned letters) {
    char text[256];
    *m = (model){.count = count};
    m->paths = memNewArray(slice, count);
    for (size_t i = 0; i < count; i++) {
        size_t len = (size_t)randomUniform(len_max + 1);
        for (size_t k = 0; k < len; k++) text[k] = (char)(randomUniform(letters) * 167);
        m->paths[i] = sliceMake(memDup(text, len), len);
    }
    modelSort(m);
}

static void modelClear(model *m) {
    uint64_t freed = 0;
    radixFree(&m->tree, &test_type, freeLeaf, &freed);
    assert_true(freed >= m->present);
    assert_int_equal(m->tree.root, 0);
    for (size_t i = 0; i < m->count; i++) memFree((void *)(uintptr_t)m->paths[i].ptr);
    memFree(m->paths);
    memFree(m->exists);
}

static void change(model *m, size_t i, bool add) {
    testLeaf *leaf = radixFind(&m->tree, &test_type, m->paths[i], NULL);
    assert_int_equal(leaf != NULL, m->exists[i]);
    if (leaf) assert_int_equal(leaf->id, i);
    if (add && !leaf) {
        slice rest;
        radixPlace at = radixAdd(&m->tree, &test_type, m->paths[i], &rest);
        radixPut(at, leafNew(i, rest));
        m->present++;
    } else if (!add && leaf) {
        leaf = radixRemove(&m->tree, &test_type, m->paths[i]);
        assert_int_equal(leaf->id, i);
        memFree(leaf);
        m->present--;
    } else if (!add) {
        assert_null(radixRemove(&m->tree, &test_type, m->paths[i]));
    }
    m->exists[i] = add;
    assert_int_equal(m->tree.count, m->present);
}

/* ------------------------------------------------------------------ lookups */

typedef struct visits {
    const model *m;
    slice text;
    size_t next; /* in the model */
    size_t last_len, count;
} visits;

static bool isOnWay(const model *m, size_t i, slice text) {
    return m->exists[i] && sliceHasPrefix(text, m->paths[i]);
}

static void visit(void *arg, size_t len, void *leaf) {
    visits *v = arg;
    while (v->next < v->m->count && !isOnWay(v->m, v->next, v->text)) v->next++;
    assert_true(v->next < v->m->count);
    assert_int_equal(((testLeaf *)leaf)->id, v->next);
    assert_int_equal(len, v->m->paths[v->next].len);
    v->last_len = len;
    v->count++;
    v->next++;
}

static void comparePrefixes(const model *m, slice text) {
    visits v = {.m = m, .text = text};
    radixPrefixes(&m->tree, &test_type, text, visit, &v);
    for (size_t i = v.next; i < m->count; i++) assert_false(isOnWay(m, i, text));
    size_t len = 0;
    testLeaf *longest = radixLongest(&m->tree, &test_type, text, &len);
    assert_int_equal(longest != NULL, v.count > 0);
    assert_int_equal(len, v.last_len);
    if (longest) assert_int_equal(longest->id, v.next - 1);
}

static void *moveNode(void *node, void *arg) {
    size_t size = memSizeOf(node);
    if (randomUniform(2)) return NULL;
    void *moved = memAlloc(size);
    memcpy(moved, node, size);
    memFree(node);
    ++*(uint64_t *)arg;
    return moved;
}

/* Walks from a path on, at most `steps` paths. */
static void compareWalk(model *m, size_t from, bool after, size_t steps, bool moving) {
    radixCursor c;
    slice path;
    void *leaf;
    uint64_t moved = 0;
    if (moving) {
        radixCursorInitMoving(&c, &m->tree, &test_type, moveNode, &moved);
    } else {
        radixCursorInit(&c, &m->tree, &test_type);
    }
    if (from || after) radixCursorSeek(&c, m->paths[from], after);
    size_t next = from + after;
    for (bool more = true; more && steps > 0; steps--) {
        more = radixCursorNext(&c, &path, &leaf);
        while (next < m->count && !m->exists[next]) next++;
        assert_int_equal(more, next < m->count);
        if (!more) break;
        assert_true(sliceEqual(path, m->paths[next]));
        assert_int_equal(((testLeaf *)leaf)->id, next);
        if (moving) { /* the leaf, too */
            leaf = setRest(&m->tree, leaf, restOf(leaf));
            radixPut(radixCursorPlace(&c), leaf);
        }
        next++;
    }
    radixCursorClear(&c);
}

static void verify(const model *m) {
    const char *wrong = radixVerify(&m->tree, &test_type);
    if (wrong) print_error("%s\n", wrong);
    assert_null(wrong);
}

/* Steps that mostly add or mostly remove, in turns. */
static void run(size_t steps, size_t count, size_t len_max, unsigned letters) {
    enum { TURN = 20000 };
    model m;
    modelInit(&m, count, len_max, letters);
    for (size_t i = 0; i < steps; i++) {
        size_t one = (size_t)randomUniform(m.count);
        bool grows = i / TURN % 2 == 0;
        change(&m, one, randomUniform(4) ? grows : !grows);
        size_t other = (size_t)randomUniform(m.count);
        if (i % 64 == 0) comparePrefixes(&m, m.paths[other]);
        if (i % 16 == 0) compareWalk(&m, other, i % 32, 5, i % 48 == 0);
        if (i % 5000 == 0) verify(&m);
        if (i % 50000 == 0) compareWalk(&m, 0, false, SIZE_MAX, i % 100000 == 0);
    }
    for (size_t i = 0; i < m.count; i++) change(&m, i, false);
    assert_int_equal(m.tree.root, 0);
    assert_int_equal(m.tree.node_bytes, 0);
    modelClear(&m);
}

static void test_random_steps_agree_with_a_sorted_list(void **state) {
    testSeed(__func__);
    size_t steps = STEPS * testScale() / 5;
    run(steps, 3000, 12, 2);
    run(steps, 3000, 3, 40);
    run(steps, 3000, 2, 256);
    run(steps, 1000, 200, 3);
    run(steps, 10, 5, 2);
}

static void addPath(radixTree *t, slice path) {
    slice rest;
    radixPlace at = radixAdd(t, &test_type, path, &rest);
    radixPut(at, leafNew(path.len, rest));
}

static void test_paths_that_are_prefixes_of_each_other_need_no_recursion(void **state) {
    enum { DEPTH = 20000 };
    radixTree t = {0};
    char *text = memAlloc(DEPTH);
    memset(text, 'a', DEPTH);
    for (size_t len = 0; len <= DEPTH; len++) addPath(&t, sliceMake(text, len));
    assert_null(radixVerify(&t, &test_type));
    size_t len;
    assert_non_null(radixLongest(&t, &test_type, sliceMake(text, DEPTH), &len));
    assert_int_equal(len, DEPTH);
    radixCursor c;
    slice path;
    void *leaf;
    radixCursorInit(&c, &t, &test_type);
    for (size_t i = 0; i <= DEPTH; i++) {
        assert_true(radixCursorNext(&c, &path, &leaf));
        assert_int_equal(path.len, i);
    }
    assert_false(radixCursorNext(&c, &path, &leaf));
    radixCursorClear(&c);
    uint64_t freed = 0;
    radixFree(&t, &test_type, freeLeaf, &freed);
    memFree(text);
}

static void test_an_empty_tree_and_the_empty_path(void **state) {
    radixTree t = {0};
    size_t len;
    radixCursor c;
    slice path;
    void *leaf;
    assert_null(radixFind(&t, &test_type, SLICE(""), NULL));
    assert_null(radixLongest(&t, &test_type, SLICE("a"), &len));
    radixCursorInit(&c, &t, &test_type);
    assert_false(radixCursorNext(&c, &path, &leaf));
    radixCursorClear(&c);
    addPath(&t, SLICE(""));
    assert_non_null(radixLongest(&t, &test_type, SLICE("a"), &len));
    assert_int_equal(len, 0);
    leaf = radixRemove(&t, &test_type, SLICE(""));
    memFree(leaf);
    assert_int_equal(t.root, 0);
}

static void test_a_path_with_a_common_beginning_takes_its_end_and_a_word(void **state) {
    radixTree t = {0};
    for (int i = 0; i < 256; i++) {
        char text[] = "/the/same/beginning/for/all/of/them/X/and/an/end";
        text[36] = (char)i;
        addPath(&t, SLICE(text));
    }
    assert_null(radixVerify(&t, &test_type));
    assert_int_equal(t.count, 256);
    assert_int_equal(t.node_bytes, 8 + 32 + 36 + 256 * 8);
    uint64_t freed = 0;
    radixFree(&t, &test_type, freeLeaf, &freed);
    assert_int_equal(freed, 257); /* the node, too */
}

int test_radix_tree(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_random_steps_agree_with_a_sorted_list),
        cmocka_unit_test(test_paths_that_are_prefixes_of_each_other_need_no_recursion),
        cmocka_unit_test(test_an_empty_tree_and_the_empty_path),
        cmocka_unit_test(test_a_path_with_a_common_beginning_takes_its_end_and_a_word),
    };
    return cmocka_run_group_tests_name("radix_tree", tests, NULL, NULL);
}
