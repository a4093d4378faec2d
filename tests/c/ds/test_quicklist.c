/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Tests of ds/quicklist: random histories against a plain array of texts, at many sizes of nodes,
 * depths of compression and thresholds of plain nodes. */
#include "coded_nodes.h"
#include "ds_test.h"

#include <lzf.h>
#include <string.h>

#include "base/alloc.h"
#include "base/number.h"
#include "base/random.h"
#include "ds/quicklist.h"
#include "../text_model.h"

enum { MODEL_MAX = 400, TEXT_MAX = 20000 };

static quicklist *list_;

/* Numbers, short words of which many are equal, and now and then a long text that compresses
 * well. */
static slice randomText(void) {
    static char bytes[TEXT_MAX];
    if (randomUniform(3) == 0) {
        int64_t number = (int64_t)randomUniform(8) - 3;
        if (number == 4) number = INT64_MIN;
        return sliceMake(bytes, numberPrintInt(bytes, number));
    }
    size_t len = (size_t)randomUniform(12);
    if (randomUniform(8) == 0) len = (size_t)randomUniform(600);
    if (randomUniform(60) == 0) len = (size_t)randomUniform(TEXT_MAX);
    memset(bytes, 'a' + (int)randomUniform(3), len);
    return sliceMake(bytes, len);
}

static void assertItem(const listpackItem *item, size_t i) {
    char digits[NUMBER_TEXT_MAX];
    assert_true(sliceEqual(listpackText(item, digits), wanted(i)));
}

static void inspectFrom(size_t start, bool backwards) {
    quicklistCursor at;
    listpackItem item;
    size_t i = start;
    quicklistCursorInit(&at, list_, start, backwards);
    for (; quicklistNext(&at, &item); i += backwards ? (size_t)-1 : 1) assertItem(&item, i);
    quicklistCursorClear(&at);
    assert_true(i == (backwards ? (size_t)-1 : want_count));
}

static void inspect(void) {
    assert_string_equal(soundOr(quicklistVerify(list_)), "sound");
    assert_int_equal(quicklistCount(list_), want_count);
    if (!want_count) return;
    inspectFrom(0, false);
    inspectFrom(want_count - 1, true);
    inspectFrom((size_t)randomUniform(want_count), randomUniform(2));
}

static void removeSome(void) {
    slice s = randomText();
    listpackItem item = listpackItemOf(s);
    bool from_back = randomUniform(2);
    size_t most = randomUniform(2) ? SIZE_MAX : 1 + (size_t)randomUniform(4), removed = 0;
    for (size_t k = 0; k < want_count && removed < most;) {
        size_t i = from_back ? want_count - 1 - k : k;
        if (sliceEqual(wanted(i), s)) {
            modelDelete(i, 1);
            removed++;
        } else {
            k++;
        }
    }
    assert_int_equal(quicklistRemove(list_, &item, most, from_back), removed);
}

static void changeOne(void) {
    size_t i = (size_t)randomUniform(want_count);
    slice s = randomText();
    switch (randomUniform(5)) {
    case 0:
    case 1: {
        bool after = randomUniform(2);
        quicklistInsert(list_, i, s, after);
        modelInsert(i + after, s);
        break;
    }
    case 2:
    case 3:
        quicklistSet(list_, i, s);
        modelDelete(i, 1);
        modelInsert(i, s);
        break;
    default: {
        size_t count = 1 + (size_t)randomUniform(6);
        quicklistDelete(list_, i, count);
        modelDelete(i, count < want_count - i ? count : want_count - i);
    }
    }
}

/* A piece of a walk, which changes interrupt. */
static void compactSome(void) {
    static bool more;
    uint64_t moved = 0, kept = 0;
    if (randomUniform(4) == 0) more = false;
    more = quicklistCompact(list_, !more, (size_t)randomUniform(40) + 1, &moved, &kept);
    if (want_count) assert_true(moved + kept > 0 || !more);
}

/* A piece of a visit. */
static void codeSome(void) {
    static bool more;
    if (randomUniform(4) == 0) more = false;
    more = quicklistCodeNodes(list_, !more, randomVisit());
}

static void step(void) {
    if (randomUniform(6) == 0) compactSome();
    if (randomUniform(3) == 0) codeSome();
    if (want_count && randomUniform(2)) {
        changeOne();
    } else if (randomUniform(12) == 0) {
        removeSome();
    } else {
        bool front = randomUniform(2);
        slice s = randomText();
        quicklistPush(list_, s, front);
        modelInsert(front ? 0 : want_count, s);
    }
    if (want_count < MODEL_MAX - 10) return;
    quicklistDelete(list_, 20, want_count);
    modelDelete(20, want_count - 20);
}

/* The list as it was when it was frozen, and how far it was read. */
static struct {
    quicklistFrozen *list;
    slice texts[TEXT_MODEL_MAX];
    size_t count, at;
} frozen;

static void freeze(void) {
    frozen.list = quicklistFreeze(list_);
    for (size_t i = 0; i < want_count; i++)
        frozen.texts[i] = sliceMake(memDup(wanted(i).ptr, wanted(i).len), wanted(i).len);
    frozen.count = want_count;
    frozen.at = 0;
}

static void thaw(void) {
    quicklistThaw(frozen.list);
    frozen.list = NULL;
    for (size_t i = 0; i < frozen.count; i++) memFree((char *)(uintptr_t)frozen.texts[i].ptr);
}

static void readNode(const quicklistNodeView *node) {
    const uint8_t *bytes = (const uint8_t *)node->content.ptr;
    uint8_t *scratch = memAlloc(node->bytes + 1);
    if (node->compressed) {
        assert_int_equal(
            lzf_decompress(bytes, (unsigned)node->content.len, scratch, (unsigned)node->bytes),
            node->bytes);
        bytes = scratch;
    }
    assert_true(frozen.at + node->entries <= frozen.count);
    if (node->plain) {
        assert_true(
            sliceEqual(sliceMake((const char *)bytes, node->bytes), frozen.texts[frozen.at++]));
    } else {
        char digits[NUMBER_TEXT_MAX];
        for (const uint8_t *at = listpackFirst(bytes); at; at = listpackNext(bytes, at))
            assert_true(sliceEqual(listpackGetText(at, digits), frozen.texts[frozen.at++]));
    }
    memFree(scratch);
}

/* Reads some nodes; the list is thawed at its end, or sometimes before. */
static void readFrozen(size_t nodes) {
    quicklistNodeView node;
    for (; nodes > 0; nodes--) {
        if (quicklistFrozenNext(frozen.list, &node)) {
            readNode(&node);
        } else {
            assert_int_equal(frozen.at, frozen.count);
            thaw();
            return;
        }
    }
    if (randomUniform(100) == 0) thaw();
}

static void endHistory(void) {
    quicklistFree(list_);
    if (!frozen.list) assertNoneCoded();
    modelDelete(0, want_count);
    quicklistSetPlainFrom(0);
}

static void test_agrees_with_an_array(void **state) {
    (void)state;
    testSeed(__func__);
    static const int fills[] = {-1, -2, -5, -9, 0, 1, 2, 3, 7, 100000};
    static const size_t thresholds[] = {0, 0, 1, 10, 500};
    uint64_t histories = 60 * testScale();
    for (uint64_t history = 0; history < histories; history++) {
        list_ = quicklistNew(fills[randomUniform(10)], (int)randomUniform(4));
        quicklistSetPlainFrom(thresholds[randomUniform(5)]);
        for (int i = 0; i < 200; i++) {
            step();
            inspect();
        }
        endHistory();
    }
}

static void test_a_frozen_list_is_read_as_it_was(void **state) {
    (void)state;
    testSeed(__func__);
    static const int fills[] = {-1, -2, 0, 1, 2, 3, 7, 100000};
    static const size_t thresholds[] = {0, 0, 10, 500};
    uint64_t histories = 60 * testScale();
    for (uint64_t history = 0; history < histories; history++) {
        list_ = quicklistNew(fills[randomUniform(8)], (int)randomUniform(4));
        quicklistSetPlainFrom(thresholds[randomUniform(4)]);
        for (int i = 0; i < 400; i++) {
            step();
            if (!frozen.list && randomUniform(10) == 0) freeze();
            if (frozen.list && randomUniform(3) == 0) readFrozen((size_t)randomUniform(4));
            if (randomUniform(50) == 0) inspect();
        }
        inspect();
        endHistory();
        if (frozen.list) readFrozen(randomUniform(2) ? SIZE_MAX : 0);
        if (frozen.list) thaw();
        assertNoneCoded();
    }
}

static void test_a_copy_is_independent(void **state) {
    (void)state;
    testSeed(__func__);
    list_ = quicklistNew(4, 1);
    for (int i = 0; i < 300; i++) step();
    quicklist *original = list_;
    list_ = quicklistCopy(original);
    inspect();
    quicklistFree(original);
    inspect();
    for (int i = 0; i < 50; i++) {
        step();
        inspect();
    }
    endHistory();
}

static void test_inner_nodes_are_compressed(void **state) {
    (void)state;
    static char bytes[1000];
    memset(bytes, 'x', sizeof(bytes));
    quicklist *plain = quicklistNew(-1, 0), *packed = quicklistNew(-1, 1);
    for (int i = 0; i < 100; i++) {
        quicklistPush(plain, sliceMake(bytes, sizeof(bytes)), false);
        quicklistPush(packed, sliceMake(bytes, sizeof(bytes)), i & 1);
    }
    assert_true(quicklistMemory(packed, 0) < quicklistMemory(plain, 0) / 2);
    assert_int_equal(quicklistMemory(packed, 1) > 0, true);
    quicklistStats a, b;
    quicklistGetStats(plain, &a);
    quicklistGetStats(packed, &b);
    assert_int_equal(a.packed_bytes / 1000, b.packed_bytes / 1000);
    /* Ends that come near open up. */
    quicklistDelete(packed, 0, 95);
    assert_null(quicklistVerify(packed));
    quicklistFree(plain);
    quicklistFree(packed);
}

/* Entries are added and removed mostly at the front, where the head's block has room. */
static void test_changes_at_the_front_agree_with_an_array(void **state) {
    (void)state;
    testSeed(__func__);
    static const int fills[] = {-1, -2, -5, 3, 100, 100000};
    uint64_t histories = 60 * testScale();
    for (uint64_t history = 0; history < histories; history++) {
        list_ = quicklistNew(fills[randomUniform(6)], (int)randomUniform(2));
        for (int i = 0; i < 600; i++) {
            uint64_t what = randomUniform(16);
            if (want_count && what < 5) {
                size_t count = 1 + (size_t)randomUniform(randomUniform(8) ? 2 : want_count);
                size_t at = what < 3 ? 0 : want_count - sizeMin(count, want_count);
                quicklistDelete(list_, at, count);
                modelDelete(at, sizeMin(count, want_count - at));
            } else if (what < 15 && want_count < MODEL_MAX) {
                slice s = randomText();
                quicklistPush(list_, s, true);
                modelInsert(0, s);
            } else {
                step();
            }
            if (!frozen.list && randomUniform(40) == 0) freeze();
            if (frozen.list && randomUniform(3) == 0) readFrozen((size_t)randomUniform(4));
            inspect();
        }
        endHistory();
        if (frozen.list) thaw();
    }
}

/* The same texts, pushed at the front or at the back. */
static void test_room_in_front_takes_no_memory(void **state) {
    (void)state;
    for (size_t count = 1; count < 3000; count += 97) {
        quicklist *front = quicklistNew(-2, 0), *back = quicklistNew(-2, 0);
        for (size_t i = 0; i < count; i++) {
            quicklistPush(front, SLICE("an element of a list"), true);
            quicklistPush(back, SLICE("an element of a list"), false);
        }
        assert_int_equal(quicklistMemory(front, 0), quicklistMemory(back, 0));
        quicklistDelete(front, 0, count / 2);
        quicklistDelete(back, count - count / 2, count / 2);
        assert_null(quicklistVerify(front));
        assert_int_equal(quicklistMemory(front, 0), quicklistMemory(back, 0));
        quicklistFree(front);
        quicklistFree(back);
    }
}

static void test_one_listpack_in_and_out(void **state) {
    (void)state;
    packBuffer buffer = packBufferHeap(listpackNew());
    listpackItem items[3] = {listpackItemInt(1), listpackItemOf(SLICE("two")), listpackItemInt(-3)};
    listpackAppend(&buffer, items, 3);
    quicklist *q = quicklistNew(3, 0);
    quicklistTakeListpack(q, &buffer.bytes);
    assert_null(buffer.bytes);
    assert_int_equal(quicklistCount(q), 3);
    assert_non_null(quicklistOnlyListpack(q));
    quicklistPush(q, SLICE("x"), false);
    assert_null(quicklistOnlyListpack(q));
    quicklistDelete(q, 1, 3);
    assert_int_equal(listpackCount(quicklistOnlyListpack(q)), 1);
    quicklistFree(q);
}

/* Entry i is a text of the letter 'a' + i, in a node of its own. */
static void countInner(void *arg, slice text) {
    size_t *seen = arg;
    assert_true(text.len > 40);
    char letter = text.ptr[20];
    assert_in_range(letter, 'a' + 2, 'a' + 5);
    seen[letter - 'a']++;
}

static void test_samples_are_no_ends(void **state) {
    enum { DEPTH = 2, NODES = 8, MOST = 2 };
    (void)state;
    size_t seen[NODES] = {0};
    quicklist *q = quicklistNew(1, DEPTH);
    for (int i = 0; i < NODES; i++) {
        char text[50];
        memset(text, 'a' + i, sizeof(text));
        assert_int_equal(quicklistNodesBetween(q), i > 2 * DEPTH ? i - 2 * DEPTH : 0);
        quicklistPush(q, sliceMake(text, sizeof(text)), false);
    }
    for (size_t skip = 0; skip <= NODES - 2 * DEPTH - MOST; skip++) {
        for (int backwards = 0; backwards < 2; backwards++)
            quicklistSample(q, skip, backwards, MOST, countInner, seen);
    }
    for (int i = DEPTH; i < NODES - DEPTH; i++) assert_true(seen[i] > 0);
    quicklistFree(q);
    q = quicklistNew(1, 0);
    for (int i = 0; i < 2; i++) quicklistPush(q, SLICE("x"), false);
    assert_int_equal(quicklistNodesBetween(q), 0);
    quicklistFree(q);
}

static void test_limits(void **state) {
    (void)state;
    assert_int_equal(quicklistLimitsOf(-2).bytes, 8192);
    assert_int_equal(quicklistLimitsOf(-7).bytes, 65536);
    assert_int_equal(quicklistLimitsOf(0).entries, 1);
    assert_true(quicklistLimitsOf(5).bytes == SIZE_MAX);
    assert_false(quicklistExceeds(-2, 8192, 100000));
    assert_true(quicklistExceeds(-2, 8193, 1));
    assert_false(quicklistExceeds(4, 8192, 4));
    assert_true(quicklistExceeds(4, 100, 5));
    assert_true(quicklistExceeds(4, 8193, 1));
}

int test_quicklist(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_agrees_with_an_array),
        cmocka_unit_test(test_a_frozen_list_is_read_as_it_was),
        cmocka_unit_test(test_a_copy_is_independent),
        cmocka_unit_test(test_inner_nodes_are_compressed),
        cmocka_unit_test(test_changes_at_the_front_agree_with_an_array),
        cmocka_unit_test(test_room_in_front_takes_no_memory),
        cmocka_unit_test(test_one_listpack_in_and_out),
        cmocka_unit_test(test_samples_are_no_ends),
        cmocka_unit_test(test_limits),
    };
    return cmocka_run_group_tests_name("quicklist", tests, NULL, NULL);
}
