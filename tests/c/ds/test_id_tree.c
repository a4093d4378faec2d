/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Tests of ds/id_tree: random histories against a plain sorted array, with ids and values of many
 * kinds. */
#include "ds_test.h"

#include <stdlib.h>
#include <string.h>

#include "base/base.h"
#include "base/random.h"
#include "ds/id_tree.h"

enum { ENTRIES_MAX = 4000 };
static idEntry want[ENTRIES_MAX];
static unsigned want_count;
static idTree tree;

/* The place of the first entry that is not below `id`. */
static unsigned placeOf(streamId id) {
    unsigned low = 0, high = want_count;
    while (low < high) {
        unsigned middle = (low + high) / 2;
        if (streamIdLess(want[middle].id, id)) {
            low = middle + 1;
        } else {
            high = middle;
        }
    }
    return low;
}

static bool isThere(streamId id) {
    unsigned at = placeOf(id);
    return at < want_count && streamIdEqual(want[at].id, id);
}

typedef enum idKind { IDS_APPENDED, IDS_NEAR, IDS_ANY, IDS_ENDS, IDS_FALLING, ID_KINDS } idKind;

static streamId makeId(idKind kind) {
    static uint64_t next = UINT64_C(1) << 40;
    switch (kind) {
    case IDS_APPENDED: return (streamId){next += randomUniform(3), randomUniform(3)};
    case IDS_NEAR: return (streamId){1700000000000 + randomUniform(3000), randomUniform(2)};
    case IDS_ANY: return (streamId){randomNext() >> randomUniform(64), randomNext()};
    case IDS_FALLING: return (streamId){(UINT64_C(1) << 41) - (next += randomUniform(2)), 0};
    default:
        return (streamId){randomUniform(2) ? UINT64_MAX - randomUniform(2) : randomUniform(2),
                          randomUniform(2) ? UINT64_MAX - randomUniform(50) : randomUniform(50)};
    }
}

static uint64_t makeValue(void) {
    return randomUniform(4) ? randomUniform(3) : randomNext() >> randomUniform(64);
}

static idEntry makeEntry(idKind kind) {
    return (idEntry){makeId(kind), {makeValue(), makeValue(), makeValue()}};
}

static void assertSame(const idEntry *got, const idEntry *expected) {
    assert_true(streamIdEqual(got->id, expected->id));
    for (unsigned i = 0; i < tree.values; i++) assert_int_equal(got->value[i], expected->value[i]);
}

static void insertOne(idKind kind) {
    idEntry e = makeEntry(kind);
    bool there = isThere(e.id);
    unsigned at = placeOf(e.id);
    assert_int_equal(idTreeInsert(&tree, &e), !there);
    if (there) return;
    memmove(&want[at + 1], &want[at], (want_count - at) * sizeof(want[0]));
    want[at] = e;
    want_count++;
}

static void removeOne(idKind kind, bool first) {
    streamId id = makeId(kind);
    if (want_count && randomUniform(4)) id = want[first ? 0 : randomUniform(want_count)].id;
    unsigned at = placeOf(id);
    idEntry got;
    bool there = isThere(id);
    assert_int_equal(idTreeRemove(&tree, id, &got), there);
    if (!there) return;
    assertSame(&got, &want[at]);
    want_count--;
    memmove(&want[at], &want[at + 1], (want_count - at) * sizeof(want[0]));
}

static void setOne(void) {
    if (!want_count) return;
    idEntry *e = &want[randomUniform(want_count)];
    for (unsigned i = 0; i < ID_TREE_VALUES_MAX; i++) e->value[i] = makeValue();
    idTreeSet(&tree, e);
}

/* Everything in the tree, both ways, and searches from a random id. */
static void compareAll(idKind kind) {
    idCursor at;
    idEntry got;
    assert_string_equal(soundOr(idTreeVerify(&tree)), "sound");
    assert_int_equal(tree.count, want_count);
    bool more = idTreeSeek(&tree, STREAM_ID_MIN, &at);
    for (unsigned i = 0; i < want_count; i++) {
        assert_true(more);
        idCursorRead(&at, &got);
        assertSame(&got, &want[i]);
        more = idCursorNext(&at);
    }
    assert_false(more);
    more = idTreeSeekBack(&tree, STREAM_ID_MAX, &at);
    for (unsigned i = want_count; i-- > 0;) {
        assert_true(more);
        idCursorRead(&at, &got);
        assertSame(&got, &want[i]);
        more = idCursorPrev(&at);
    }
    assert_false(more);
    streamId id = makeId(kind);
    unsigned place = placeOf(id);
    assert_int_equal(idTreeFind(&tree, id, &got), isThere(id));
    assert_int_equal(idTreeSeek(&tree, id, &at), place < want_count);
    if (place < want_count) {
        idCursorRead(&at, &got);
        assertSame(&got, &want[place]);
    }
    place += isThere(id);
    assert_int_equal(idTreeSeekBack(&tree, id, &at), place > 0);
    if (place > 0) {
        idCursorRead(&at, &got);
        assertSame(&got, &want[place - 1]);
    }
}

static void clearBoth(void) {
    idTreeClear(&tree);
    want_count = 0;
    assert_int_equal(tree.bytes, 0);
}

static void testHistories(void **state) {
    testSeed("id_tree");
    for (unsigned round = 0; round < 40 * testScale(); round++) {
        tree = (idTree){.values = (uint8_t)randomUniform(ID_TREE_VALUES_MAX + 1)};
        unsigned steps = 1 + (unsigned)randomUniform(ENTRIES_MAX);
        unsigned grow = (unsigned)randomUniform(100);
        idKind kind = (idKind)randomUniform(ID_KINDS);
        for (unsigned i = 0; i < steps; i++) {
            if (i == steps / 2) grow = 100 - grow;
            unsigned dice = (unsigned)randomUniform(110);
            if (dice < grow) {
                insertOne(kind);
            } else if (dice < 100) {
                removeOne(kind, round % 2);
            } else {
                setOne();
            }
            if (randomUniform(200) == 0) compareAll(kind);
        }
        compareAll(kind);
        clearBoth();
    }
}

static void testCopyIsEqualAndSeparate(void **state) {
    tree = (idTree){.values = 2};
    for (unsigned i = 0; i < 2000; i++) insertOne(IDS_NEAR);
    idTree copy;
    idTreeCopy(&copy, &tree);
    idTree original = tree;
    tree = copy;
    compareAll(IDS_NEAR);
    while (want_count) removeOne(IDS_NEAR, true);
    compareAll(IDS_NEAR);
    tree = original;
    assert_string_equal(soundOr(idTreeVerify(&tree)), "sound");
    assert_true(tree.count > 0);
    clearBoth();
}

/* A walk of compaction visits every leaf, and the tree is as it was. */
static void testCompactionKeepsEverything(void **state) {
    tree = (idTree){.values = 3};
    for (unsigned i = 0; i < 3000; i++) insertOne(IDS_APPENDED);
    for (unsigned i = 0; i < 1000; i++) removeOne(IDS_APPENDED, false);
    streamId from = STREAM_ID_MIN;
    uint64_t moved = 0, kept = 0;
    unsigned steps = 1;
    while (idTreeCompact(&tree, &from, &moved, &kept)) steps++;
    assert_true(moved + kept >= steps);
    compareAll(IDS_APPENDED);
    clearBoth();
}

/* Pending entries of a busy group: ids and times close together. */
static void testNearbyEntriesAreSmall(void **state) {
    enum { COUNT = 100000 };
    tree = (idTree){.values = 3};
    for (unsigned i = 0; i < COUNT; i++) {
        idEntry e = {{1700000000000 + i / 50, i % 50}, {1700000100000 + i / 20, 1, i % 10}};
        assert_true(idTreeInsert(&tree, &e));
    }
#ifndef HOSTILE_BUILD
    assert_true(tree.bytes < 10 * COUNT);
#endif
    assert_string_equal(soundOr(idTreeVerify(&tree)), "sound");
    idTreeClear(&tree);
}

int test_id_tree(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(testHistories),
        cmocka_unit_test(testCopyIsEqualAndSeparate),
        cmocka_unit_test(testCompactionKeepsEverything),
        cmocka_unit_test(testNearbyEntriesAreSmall),
    };
    return cmocka_run_group_tests_name("id_tree", tests, NULL, NULL);
}
