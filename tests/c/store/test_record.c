/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Records: random histories of many hashes that share their fields, against listpacks in blocks of
 * their own: same bytes, same order, whatever form the hash has. */
#include "store_test.h"

#include <stdio.h>

#include "base/base.h"
#include "base/random.h"
#include "ds/listpack.h"
#include "store/hash_record.h"
#include "store/slab.h"
#include "store/type_hash.h"

#ifdef TESTS_SANITIZED
enum { STEPS = 60000 };
#else
enum { STEPS = 200000 };
#endif
enum { HASHES = 150, NAMES = 14, VALUE_MAX = 300, SWEEP_MS = 10000 };

static const packLimits limits = {.entries = 12, .bytes = 200};

static robj *hashes[HASHES];    /* NULL: there is none */
static packBuffer want[HASHES]; /* the same as listpacks */
static int64_t now_ms;

static slice nameOf(size_t i) {
    static char long_name[100];
    static const char *const names[NAMES] = {"id",    "name",  "email", "created", "a",
                                             "b",     "12345", "-7",    "007",     "description",
                                             "state", "",      "x",     "field:1"};
    if (i != NAMES - 1) return sliceOf(names[i]);
    memset(long_name, 'l', sizeof(long_name)); /* a length of two bytes */
    return sliceMake(long_name, sizeof(long_name));
}

static slice randomValue(char *to) {
    static const int64_t around[] = {0,     127,  128,   4095,    4096,       -4096,        -4097,
                                     32767, -128, 32768, 8388607, 2147483647, INT64_MAX - 2};
    if (randomUniform(2)) {
        int64_t number = around[randomUniform(COUNT_OF(around))] - 1 + (int64_t)randomUniform(3);
        return sliceMake(to, numberPrintInt(to, number));
    }
    size_t len = randomUniform(8) ? (size_t)randomUniform(12) : (size_t)randomUniform(200);
    memset(to, 'a' + (int)randomUniform(26), len);
    return sliceMake(to, len);
}

/* ---- the same on the listpack ---- */

static const uint8_t *wantFind(size_t at, slice name) {
    listpackItem item = listpackItemOf(name);
    return listpackFind(want[at].bytes, NULL, &item, 1);
}

static bool wantSet(size_t at, slice name, slice value) {
    listpackItem items[2] = {listpackItemOf(name), listpackItemOf(value)};
    const uint8_t *found = wantFind(at, name);
    if (found) {
        (void)listpackReplace(&want[at], listpackNext(want[at].bytes, found), &items[1]);
    } else {
        listpackAppend(&want[at], items, 2);
    }
    return !found;
}

/* ---- comparing ---- */

static void seePair(void *arg, const hashPair *pair) {
    size_t at = *(const size_t *)arg;
    char digits[NUMBER_TEXT_MAX];
    const uint8_t *found = wantFind(at, pair->field);
    assert_non_null(found);
    slice value = listpackGetText(listpackNext(want[at].bytes, found), digits);
    assert_true(sliceEqual(value, pair->value));
}

static void inspectRandom(size_t at, size_t length) {
    size_t count = 1 + (size_t)randomUniform(NAMES);
    hashRandom(hashes[at], lookAtAll(), count, randomUniform(2), seePair, &at);
    bool seen[NAMES] = {false};
    hashIterator it;
    hashPair pair;
    size_t pairs = 0;
    hashIteratorInit(&it, hashes[at], lookAtAll());
    for (; hashNext(&it, &pair); pairs++) {
        seePair(&at, &pair);
        for (size_t i = 0; i < NAMES; i++) {
            if (!sliceEqual(pair.field, nameOf(i))) continue;
            assert_false(seen[i]);
            seen[i] = true;
        }
    }
    hashIteratorClear(&it);
    assert_int_equal(pairs, length);
    assert_int_equal(hashScan(hashes[at], lookAtAll(), 0, seePair, &at), 0);
    assert_true(objectMemory(hashes[at], 0) >= objectSize(hashes[at]));
}

static void inspect(size_t at) {
    const robj *o = hashes[at];
    size_t length = listpackCount(want[at].bytes) / 2;
    assert_int_equal(hashLength(o), length);
    assert_true(objectIsPacked(o));
    slice bytes = hashListpack(o);
    assert_int_equal(bytes.len, listpackSize(want[at].bytes));
    assert_memory_equal(bytes.ptr, want[at].bytes, bytes.len);
    for (size_t i = 0; i < NAMES; i++) {
        char digits[NUMBER_TEXT_MAX];
        slice value;
        bool has = hashGet(o, nameOf(i), lookAtAll(), digits, &value);
        assert_int_equal(has, wantFind(at, nameOf(i)) != NULL);
        assert_int_equal(hashTime(o, nameOf(i), lookAtAll()), has ? HASH_NO_TIME : HASH_NO_FIELD);
        hashPair pair = {nameOf(i), value};
        if (has) seePair(&at, &pair);
    }
    inspectRandom(at, length);
}

/* ---- steps ---- */

static void drop(size_t at) {
    objectFree(hashes[at]);
    memFree(want[at].bytes);
    hashes[at] = NULL;
}

/* Most hashes are one of a few kinds. */
static size_t randomName(size_t at, size_t i) {
    if (randomUniform(40) == 0) return (size_t)randomUniform(NAMES);
    return (at % 3 * 4 + i) % NAMES; /* the fields that it had at first, and one or two */
}

static void stepSetMany(size_t at) {
    static char texts[NAMES][VALUE_MAX];
    slice words[2 * NAMES];
    size_t fields = 1 + at % 5, count = 0;
    if (hashes[at]) fields = 1 + (size_t)randomUniform(4);
    for (size_t i = 0; i < fields; i++) {
        words[count++] = nameOf(randomName(at, hashes[at] ? (size_t)randomUniform(4) : i));
        words[count++] = randomValue(texts[i]);
    }
    if (!hashes[at]) want[at] = packBufferHeap(listpackNew());
    hashSetCounts counts;
    hashes[at] =
        hashSetPairs(hashes[at], SLICE("key"), words, count, lookAtAll(), &limits, &counts);
    uint64_t created = 0;
    for (size_t i = 0; i < count; i += 2) created += wantSet(at, words[i], words[i + 1]);
    assert_int_equal(counts.created, created);
    assert_int_equal(counts.replaced_expired, 0);
}

static void stepSet(size_t at) {
    static char text[VALUE_MAX];
    bool created;
    slice name = nameOf(randomName(at, (size_t)randomUniform(4))), value = randomValue(text);
    hashes[at] = hashSet(hashes[at], name, value, &limits, &created);
    assert_int_equal(created, wantSet(at, name, value));
}

static void stepDelete(size_t at) {
    slice name = nameOf(randomName(at, (size_t)randomUniform(4)));
    const uint8_t *found = wantFind(at, name);
    if (found) (void)listpackDelete(&want[at], found, 2);
    assert_int_equal(hashDelete(&hashes[at], name, lookAtAll()), found != NULL);
}

/* As if it was written to a file and loaded. */
static void stepReload(size_t at) {
    slice key = SLICE("other"), bytes = sliceMake(want[at].bytes, listpackSize(want[at].bytes));
    robj *loaded = hashNewShaped(key, want[at].bytes);
    if (!loaded) loaded = objectNewPacked(key, TYPE_HASH, FORM_PACKED, bytes, OBJECT_NO_EXPIRE, 0);
    objectFree(hashes[at]);
    hashes[at] = loaded;
}

/* As a table it has no order: it ends. */
static void stepTable(size_t at) {
    uint64_t count = hashLength(hashes[at]);
    digest before = {{0}}, after = {{0}};
    objectDigest(hashes[at], lookAtAll(), &before);
    slice name = nameOf(randomName(at, 0));
    bool timed = hashSetTime(&hashes[at], name, 12345, lookAtAll());
    assert_int_equal(objectIsPacked(hashes[at]), !timed);
    assert_int_equal(hashLength(hashes[at]), count);
    objectDigest(hashes[at], lookAtAll(), &after);
    assert_memory_equal(&before, &after, sizeof(before));
    drop(at);
}

static void stepObject(size_t at) {
    switch (randomUniform(4)) {
    case 0: hashes[at] = testCopied(hashes[at]); break;
    case 1: hashes[at] = objectRename(hashes[at], SLICE("a longer name than before")); break;
    case 2: hashes[at] = objectSetExpire(hashes[at], (int64_t)randomUniform(2) * 5000 - 1); break;
    default: stepReload(at);
    }
}

static void stepSettings(void) {
    const shapeLimits all[] = {
        {4096, 12, 1000}, {30, 12, 1000}, {4096, 12, 1000}, {4096, 5, 20}, {0, 0, 0}};
    if (randomUniform(1000) == 0) shapeSetLimits(&all[randomUniform(COUNT_OF(all))]);
    if (randomUniform(20) == 0) shapesSweep(now_ms += SWEEP_MS);
}

static void step(void) {
    size_t at = (size_t)randomUniform(HASHES);
    uint64_t what = hashes[at] ? randomUniform(16) : 0;
    stepSettings();
    if (what < 5) {
        stepSetMany(at);
    } else if (what < 8) {
        stepSet(at);
    } else if (what < 12) {
        stepDelete(at);
    } else if (what < 14) {
        stepObject(at);
    } else if (randomUniform(10) == 0) {
        stepTable(at);
    } else {
        hashes[at] = objectHasExpire(hashes[at]) ? hashes[at] : hashFindShape(hashes[at]);
    }
    if (!hashes[at]) return;
    if (hashLength(hashes[at]) == 0 || !objectIsPacked(hashes[at]) || randomUniform(10) == 0) {
        drop(at);
    } else {
        inspect(at);
    }
}

/* Every shape counts the hashes that have it. */
static size_t inspectCounts(void) {
    uint64_t counts[SHAPES_MAX + 1] = {0};
    size_t records = 0;
    for (size_t i = 0; i < HASHES; i++) {
        if (!hashes[i] || !objectIsShaped(hashes[i])) continue;
        counts[recordShapeId(hashes[i])]++;
        records++;
    }
    for (unsigned id = 1; id < SHAPES_MAX; id++) {
        const shape *s = shapeOfId(id);
        assert_int_equal(s ? s->users : 0, counts[id]);
    }
    return records;
}

static void test_records_agree_with_listpacks(void **state) {
    testSeed(__func__);
    size_t most = 0;
    const shapeLimits none = {0}, some = {4096, 12, 1000};
    shapeSetLimits(&some);
    for (uint64_t i = 0; i < STEPS * testScale(); i++) {
        step();
        if (i % 5000 == 0) most = sizeMax(most, inspectCounts());
    }
    printf("at most %zu records\n", most);
    assert_true(most > HASHES / 4); /* the test is about them */
    for (size_t i = 0; i < HASHES; i++)
        if (hashes[i]) drop(i);
    assert_int_equal(inspectCounts(), 0);
    shapesFree();
    recordFreeBuffer();
    shapeSetLimits(&none);
}

/* Values of a hash that cannot grow any more as a record. */
static void test_a_large_record_becomes_a_listpack(void **state) {
    enum { FIELDS = 4, PART = RECORD_SIZE_MAX / 5 };
    static char text[RECORD_SIZE_MAX];
    const shapeLimits none = {0}, some = {4096, 12, 1000};
    const packLimits wide = {.entries = 12, .bytes = RECORD_SIZE_MAX};
    memset(text, 'v', sizeof(text));
    shapeSetLimits(&some);
    slice value = sliceMake(text, PART);
    slice words[2 * FIELDS] = {SLICE("a"), value, SLICE("b"), value,
                               SLICE("c"), value, SLICE("d"), value};
    robj *o = NULL;
    hashSetCounts counts;
    for (int i = 0; i < SHAPE_HASHES_MIN; i++) {
        if (o) objectFree(o);
        o = hashSetPairs(NULL, SLICE("key"), words, COUNT_OF(words), lookAtAll(), &wide, &counts);
    }
    assert_true(objectIsShaped(o));
    bool created;
    o = hashSet(o, SLICE("b"), sliceMake(text, 2 * PART), &wide, &created);
    assert_false(created);
    assert_false(objectIsShaped(o));
    assert_int_equal(hashLength(o), FIELDS);
    char digits[NUMBER_TEXT_MAX];
    slice found;
    assert_true(hashGet(o, SLICE("b"), lookAtAll(), digits, &found));
    assert_int_equal(found.len, 2 * PART);
    objectFree(o);
    words[1] = words[3] = sliceMake(text, 2 * PART);
    o = hashSetPairs(NULL, SLICE("key"), words, COUNT_OF(words), lookAtAll(), &wide, &counts);
    assert_false(objectIsShaped(o));
    assert_int_equal(counts.created, FIELDS);
    objectFree(o);
    shapesFree();
    recordFreeBuffer();
    shapeSetLimits(&none);
}

int test_record(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_records_agree_with_listpacks),
        cmocka_unit_test(test_a_large_record_becomes_a_listpack),
    };
    return cmocka_run_group_tests_name("record", tests, NULL, testNoObjects);
}
