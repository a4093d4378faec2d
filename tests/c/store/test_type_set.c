/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Random histories of sets against a plain array of flags, at many limits, for text and integers of
 * any width. */
#include "store_test.h"

#include <stdio.h>

#include "base/base.h"
#include "base/hash.h"
#include "base/number.h"
#include "base/random.h"
#include "store/slab.h"
#include "store/type_set.h"

#ifdef TESTS_SANITIZED
enum { HISTORIES = 60, STEPS = 150 };
#else
enum { HISTORIES = 400, STEPS = 300 };
#endif
enum { MEMBERS = 90, TEXT_MAX = 5000 };

static bool want[MEMBERS];
static size_t want_count;
static bool only_ints;

/* Member `i` as text: integers of all widths, short text, a few long ones. */
static slice memberText(size_t i, char *to) {
    if (only_ints || i % 3 == 0) {
        int64_t number = (int64_t)i - 45;
        if (i % 5 == 1) number = number * (INT64_C(1) << (i * 60 / MEMBERS));
        if (i == 89) number = INT64_MIN;
        return sliceMake(to, numberPrintInt(to, number));
    }
    size_t len = i % 11 == 0 ? 60 + i : i == 88 ? TEXT_MAX : 2 + i % 20;
    memset(to, 'a' + (int)(i % 26), len);
    to[0] = (char)('0' + i / 26); /* nearly a number */
    to[1] = '_';
    return sliceMake(to, len);
}

static size_t indexOf(const listpackItem *member) {
    static char text[TEXT_MAX + 1];
    char digits[NUMBER_TEXT_MAX];
    slice own = listpackText(member, digits);
    for (size_t i = 0; i < MEMBERS; i++) {
        if (sliceEqual(memberText(i, text), own)) return i;
    }
    fail_msg("a member nobody added");
    return 0;
}

static void inspect(const robj *o) {
    bool seen[MEMBERS] = {false};
    setIterator it;
    listpackItem member;
    size_t count = 0;
    setIteratorInit(&it, o);
    for (; setNext(&it, &member); count++) {
        size_t i = indexOf(&member);
        assert_false(seen[i]);
        assert_true(want[i]);
        seen[i] = true;
    }
    setIteratorClear(&it);
    assert_int_equal(count, want_count);
    assert_int_equal(setLength(o), want_count);
    listpackItem batch[32];
    setIterator cheap;
    size_t met = 0;
    setIteratorInitUnordered(&cheap, o);
    for (unsigned n; (n = setNextMany(&cheap, batch, 32)) > 0; met += n) {
        for (unsigned i = 0; i < n; i++) assert_true(want[indexOf(&batch[i])]);
    }
    setIteratorClear(&cheap);
    assert_int_equal(met, want_count);
    static char text[32][TEXT_MAX + 1];
    size_t from = (size_t)randomUniform(MEMBERS - 32);
    for (size_t i = 0; i < 32; i++) batch[i] = listpackItemOf(memberText(from + i, text[i]));
    uint32_t found = setHasMany(o, batch, 32);
    for (size_t i = 0; i < 32; i++) {
        assert_int_equal(found >> i & 1, want[from + i]);
        assert_int_equal(setHas(o, &batch[i]), want[from + i]);
    }
}

static void countPicked(void *arg, const listpackItem *member) {
    unsigned *seen = arg;
    size_t i = indexOf(member);
    assert_true(want[i]);
    seen[i]++;
}

static void inspectRandom(const robj *o) {
    unsigned seen[MEMBERS] = {0}, picked = 0;
    size_t count = (size_t)randomUniform(MEMBERS);
    bool unique = randomUniform(2);
    setRandom(o, count, unique, countPicked, seen);
    for (size_t i = 0; i < MEMBERS; i++) {
        if (unique) assert_true(seen[i] <= 1);
        picked += seen[i];
    }
    assert_int_equal(picked, unique ? sizeMin(count, want_count) : count);
}

static void takePopped(void *arg, const listpackItem *member) {
    (void)arg; /* nothing else to know */
    size_t i = indexOf(member);
    assert_true(want[i]);
    want[i] = false;
    want_count--;
}

static robj *step(robj *o, const setLimits *limits) {
    static char text[TEXT_MAX + 1];
    size_t i = (size_t)randomUniform(MEMBERS);
    listpackItem member = listpackItemOf(memberText(i, text));
    bool changed;
    switch (randomUniform(8)) {
    default:
        o = setAdd(o, &member, limits, &changed);
        assert_int_equal(changed, !want[i]);
        want_count += !want[i];
        want[i] = true;
        break;
    case 4:
    case 5:
        assert_int_equal(setRemove(&o, &member), want[i]);
        want_count -= want[i];
        want[i] = false;
        break;
    case 6: setPop(&o, (size_t)randomUniform(4), takePopped, NULL); break;
    case 7: {
        robj *copy = objectCopy(o, SLICE("other"), 3);
        objectFree(o);
        o = randomUniform(2) ? copy : setTryIntset(copy, limits);
        break;
    }
    }
    return o;
}

static void test_agrees_with_a_model(void **state) {
    testSeed(__func__);
    static const size_t limits_of[][3] = {{512, 128, 64}, {0, 0, 64},  {4, 6, 30},
                                          {20, 10, 3},    {0, 50, 64}, {60, 0, 64}};
    for (int history = 0; history < HISTORIES; history++) {
        const size_t *l = limits_of[history % COUNT_OF(limits_of)];
        setLimits limits = {.ints = l[0], .packed = {.entries = l[1], .bytes = l[2]}};
        only_ints = randomUniform(2);
        memset(want, 0, sizeof(want));
        want_count = 0;
        listpackItem first = listpackItemInt(1);
        robj *o = setNew(SLICE("key"), &first, 1, &limits);
        for (int i = 0; i < STEPS; i++) {
            o = step(o, &limits);
            if (i % 8) continue;
            inspect(o);
            if (want_count) inspectRandom(o);
        }
        assert_true(objectMemory(o, 0) >= objectSize(o));
        objectFree(o);
    }
}

int test_type_set(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_agrees_with_a_model)};
    return cmocka_run_group_tests_name("type_set", tests, NULL, testNoObjects);
}
