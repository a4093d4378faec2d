/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Random histories of lists against a plain array of texts, at many limits, so that they cross from
 * packed to nodes and back all the time. */
#include "store_test.h"

#include <stdio.h>

#include "base/base.h"
#include "base/number.h"
#include "base/random.h"
#include "store/type.h"
#include "store/type_list.h"
#include "../text_model.h"

#ifdef TESTS_SANITIZED
enum { HISTORIES = 60, STEPS = 150 };
#else
enum { HISTORIES = 400, STEPS = 300 };
#endif
enum { MODEL_MAX = 600, TEXT_MAX = 9000, TOGETHER = 20 };

/* Numbers, short words of which many are equal, and now and then one that no listpack of some sizes
 * takes. */
static slice randomText(char *to) {
    if (randomUniform(3) == 0)
        return sliceMake(to, numberPrintInt(to, (int64_t)randomUniform(9) - 4));
    size_t len = (size_t)randomUniform(randomUniform(20) ? 12 : 700);
    if (randomUniform(150) == 0) len = (size_t)randomUniform(TEXT_MAX);
    memset(to, 'a' + (int)randomUniform(3), len);
    return sliceMake(to, len);
}

static void inspectFrom(const robj *o, size_t start, bool backwards) {
    listCursor at;
    listpackItem item;
    char digits[NUMBER_TEXT_MAX];
    size_t seen = 0, most = backwards ? start + 1 : want_count - start;
    listCursorInit(&at, o, start, backwards);
    for (; listNextItem(&at, &item); seen++) {
        assert_true(seen < most);
        size_t i = backwards ? start - seen : start + seen;
        assert_true(sliceEqual(listpackText(&item, digits), wanted(i)));
    }
    listCursorClear(&at);
    assert_int_equal(seen, most);
}

static void inspect(const robj *o) {
    assert_int_equal(listLength(o), want_count);
    if (listQuicklist(o)) assert_null(quicklistVerify(listQuicklist(o)));
    assert_string_equal(typeOf(o)->encoding(o), listQuicklist(o) ? "quicklist" : "listpack");
    if (!want_count) return;
    inspectFrom(o, 0, false);
    inspectFrom(o, want_count - 1, true);
    inspectFrom(o, (size_t)randomUniform(want_count), randomUniform(2));
}

static robj *push(robj *o, const listLimits *limits) {
    static char buffer[TOGETHER][TEXT_MAX];
    slice texts[TOGETHER];
    size_t count = randomUniform(4) ? 1 : (size_t)randomUniform(TOGETHER) + 1;
    bool front = randomUniform(2);
    for (size_t i = 0; i < count; i++) {
        texts[i] = randomText(buffer[i]);
        modelInsert(front ? 0 : want_count, texts[i]);
    }
    o = listPrepare(o, texts, count, limits);
    return listPush(o, texts, count, front);
}

static robj *changeOne(robj *o, const listLimits *limits) {
    static char buffer[TEXT_MAX];
    size_t i = (size_t)randomUniform(want_count);
    slice s = randomText(buffer);
    o = listPrepare(o, &s, 1, limits);
    if (randomUniform(2)) {
        bool after = randomUniform(2);
        modelInsert(i + after, s);
        return listInsert(o, i, s, after);
    }
    modelDelete(i, 1);
    modelInsert(i, s);
    return listSet(o, i, s);
}

static robj *deleteEqual(robj *o) {
    static char buffer[TEXT_MAX];
    slice s = randomText(buffer);
    listpackItem item = listpackItemOf(s);
    bool from_back = randomUniform(2);
    size_t most = randomUniform(2) ? SIZE_MAX : 1 + (size_t)randomUniform(4), gone = 0, removed;
    for (size_t seen = 0; seen < want_count && gone < most;) {
        size_t i = from_back ? want_count - 1 - seen : seen;
        bool equal = sliceEqual(wanted(i), s);
        if (equal) modelDelete(i, 1);
        gone += equal;
        seen += !equal;
    }
    o = listDeleteEqual(o, &item, most, from_back, &removed);
    assert_int_equal(removed, gone);
    return o;
}

static robj *deleteRange(robj *o, size_t most) {
    size_t at = (size_t)randomUniform(want_count);
    size_t count = sizeMin((size_t)randomUniform(most) + 1, want_count - at);
    modelDelete(at, count);
    return listDelete(o, at, count);
}

/* Some of it, as the walk over the keyspace does between two commands. */
static void compactSome(robj *o) {
    static uint64_t cursor;
    if (!listQuicklist(o)) return;
    compaction by = {.heap = true, .fields = (size_t)randomUniform(50) + 1};
    void *value = objectPointer(o);
    if (randomUniform(4) == 0) cursor = 0;
    cursor = typeOf(o)->compact_value(&value, cursor, &by);
    objectSetPointer(o, value);
}

static robj *step(robj *o, const listLimits *limits) {
    if (!want_count) return push(o, limits);
    if (want_count > MODEL_MAX - TOGETHER - 2)
        return listTryPack(deleteRange(o, MODEL_MAX), limits);
    switch (randomUniform(10)) {
    case 0:
    case 1: return changeOne(o, limits);
    case 2: return listTryPack(deleteEqual(o), limits);
    case 3:
    case 4: return listTryPack(deleteRange(o, randomUniform(30) ? 8 : 200), limits);
    case 5: compactSome(o); return o;
    case 6: return randomUniform(4) ? o : testCopied(o);
    default: return push(o, limits);
    }
}

static void test_agrees_with_a_model(void **state) {
    testSeed(__func__);
    static const int fills[] = {-2, -1, 1, 2, 3, 7, 40, 128};
    static const size_t plain_from[] = {0, 0, 5, 300};
    for (int history = 0; history < HISTORIES; history++) {
        listLimits limits = {fills[history % (int)COUNT_OF(fills)], (int)randomUniform(3)};
        quicklistSetPlainFrom(plain_from[randomUniform(4)]);
        robj *o = listNew(SLICE("key"));
        for (int i = 0; i < STEPS; i++) {
            o = step(o, &limits);
            if (i % 4 == 0) inspect(o);
        }
        inspect(o);
        assert_true(objectMemory(o, 0) >= objectSize(o));
        objectFree(o);
        modelDelete(0, want_count);
    }
    quicklistSetPlainFrom(0);
}

/* Packed up to the limit, nodes beyond it, and packed again only when half of it is left. */
static void test_converts_to_packed_at_half_the_limit(void **state) {
    (void)state;
    listLimits limits = {.fill = 8};
    slice text = SLICE("element");
    robj *o = listNew(SLICE("key"));
    for (int i = 0; i < 9; i++) {
        o = listPrepare(o, &text, 1, &limits);
        assert_int_equal(listQuicklist(o) != NULL, i == 8);
        o = listPush(o, &text, 1, false);
    }
    for (size_t left = 8; left > 0; left--) {
        o = listTryPack(listDelete(o, left, 1), &limits);
        assert_int_equal(listLength(o), left);
        assert_int_equal(listQuicklist(o) != NULL, left > 4);
    }
    objectFree(o);
}

int test_type_list(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_agrees_with_a_model),
                                       cmocka_unit_test(test_converts_to_packed_at_half_the_limit)};
    return cmocka_run_group_tests_name("type_list", tests, NULL, testNoObjects);
}
