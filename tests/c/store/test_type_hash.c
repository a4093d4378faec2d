/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Random histories of hashes against a plain array of values, at many limits. */
#include "store_test.h"

#include <stdio.h>

#include "base/base.h"
#include "base/hash.h"
#include "base/random.h"
#include "store/slab.h"
#include "store/type_hash.h"

#ifdef TESTS_SANITIZED
enum { HISTORIES = 60, STEPS = 200 };
#else
enum { HISTORIES = 400, STEPS = 400 };
#endif
enum { FIELDS = 60, VALUE_MAX = 5000, ABSENT = -1 };

/* Values are `len` times a letter that depends on the field; lens[i] ABSENT: there is no such
 * field. */
static int lens[FIELDS];
static size_t want_count;

static slice fieldText(size_t i, char *to) {
    size_t len = i % 7 == 0 ? 100 + i : 3;
    memset(to, 'f', len);
    to[0] = (char)('0' + i / 10);
    to[1] = (char)('0' + i % 10);
    if (i % 2) return sliceMake(to, 2); /* a number, or nearly one */
    return sliceMake(to, len);
}

static slice valueText(size_t i, int len, char *to) {
    memset(to, '1' + (int)(i % 9), (size_t)len);
    return sliceMake(to, (size_t)len);
}

static int randomLen(void) {
    static const int around[] = {0, 1, 18, 19, 63, 64, 65, 127, 128, 4000, VALUE_MAX};
    return randomUniform(3) ? (int)randomUniform(40) : around[randomUniform(COUNT_OF(around))];
}

static void inspectField(const robj *o, size_t i) {
    static char field[200], value[VALUE_MAX];
    char digits[NUMBER_TEXT_MAX];
    slice found;
    bool has = hashGet(o, fieldText(i, field), lookAtAll(), digits, &found);
    assert_int_equal(has, lens[i] != ABSENT);
    if (has) assert_true(sliceEqual(found, valueText(i, lens[i], value)));
}

static void countPair(void *arg, const hashPair *pair) {
    static char field[200], value[VALUE_MAX];
    unsigned *seen = arg;
    for (size_t i = 0; i < FIELDS; i++) {
        if (!sliceEqual(fieldText(i, field), pair->field)) continue;
        assert_true(lens[i] != ABSENT);
        assert_true(sliceEqual(pair->value, valueText(i, lens[i], value)));
        seen[i]++;
        return;
    }
    fail_msg("a field nobody set");
}

static void inspect(const robj *o) {
    unsigned seen[FIELDS] = {0}, scanned[FIELDS] = {0}, picked[FIELDS] = {0};
    assert_int_equal(hashLength(o), want_count);
    hashIterator it;
    hashPair pair;
    hashIteratorInit(&it, o, lookAtAll());
    while (hashNext(&it, &pair)) countPair(seen, &pair);
    hashIteratorClear(&it);
    uint64_t cursor = 0;
    do { cursor = hashScan(o, lookAtAll(), cursor, countPair, scanned); } while (cursor);
    size_t want_picked = (size_t)randomUniform(FIELDS), all = 0;
    hashRandom(o, lookAtAll(), want_picked, true, countPair, picked);
    for (size_t i = 0; i < FIELDS; i++) {
        inspectField(o, i);
        assert_int_equal(seen[i], lens[i] != ABSENT);
        assert_int_equal(scanned[i], lens[i] != ABSENT);
        assert_true(picked[i] <= 1);
        all += picked[i];
    }
    assert_int_equal(all, sizeMin(want_picked, want_count));
}

static robj *step(robj *o, const packLimits *limits) {
    static char field[200], value[VALUE_MAX];
    size_t i = (size_t)randomUniform(FIELDS);
    uint64_t what = randomUniform(8);
    if (what < 5) {
        int len = randomLen();
        bool created;
        slice words[2] = {fieldText(i, field), valueText(i, len, value)};
        if (what == 0) o = hashPrepare(o, words, 2, limits);
        o = hashSet(o, words[0], words[1], limits, &created);
        assert_int_equal(created, lens[i] == ABSENT);
        want_count += created;
        lens[i] = len;
    } else if (what < 7) {
        assert_int_equal(hashDelete(&o, fieldText(i, field), lookAtAll()), lens[i] != ABSENT);
        want_count -= lens[i] != ABSENT;
        lens[i] = ABSENT;
    } else {
        o = testCopied(o);
    }
    return o;
}

static void test_agrees_with_a_model(void **state) {
    testSeed(__func__);
    static const packLimits limits[] = {{512, 64}, {0, 64}, {5, 64}, {30, 10}, {512, 100000}};
    for (int history = 0; history < HISTORIES; history++) {
        for (size_t i = 0; i < FIELDS; i++) lens[i] = ABSENT;
        want_count = 0;
        robj *o = hashNew(SLICE("key"));
        for (int i = 0; i < STEPS; i++) {
            o = step(o, &limits[history % COUNT_OF(limits)]);
            if (i % 10 == 0) inspect(o);
        }
        assert_true(objectMemory(o, 5) >= objectSize(o));
        objectFree(o);
    }
}

int test_type_hash(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_agrees_with_a_model)};
    return cmocka_run_group_tests_name("type_hash", tests, NULL, testNoObjects);
}
