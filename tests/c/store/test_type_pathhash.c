/* SPDX-License-Identifier: BSD-3-Clause
 *
 * store/type_pathhash: random changes against a model, a table of paths by fields, with few limits
 * so that paths become tables; copies, memory, compaction and freeing. The tree itself is tested in
 * ds/test_radix_tree. TEST_SCALE makes it longer. */
#include <stdio.h>

#include "base/base.h"
#include "base/random.h"
#include "store/compact.h"
#include "store/slab.h"
#include "store/store.h"
#include "store/type_pathhash.h"
#include "store_test.h"

#ifdef TESTS_SANITIZED
enum { STEPS = 20000 };
#else
enum { STEPS = 200000 };
#endif
enum { PATHS = 160, FIELDS = 12 };
static const packLimits limits = {.entries = 6, .bytes = 20};

/* 0: the field is missing; else its value. */
static uint32_t model[PATHS][FIELDS];

static slice pathText(int i, char *to) {
    if (i == 0) return SLICE("");
    static const char *const before[] = {"root", "/a", "/a", "/a/", "", "/a"};
    static const char *const after[] = {"", "", "/b", "", "", "/b/c/long"};
    size_t form = (size_t)i % COUNT_OF(before);
    return sliceMake(to, (size_t)snprintf(to, 64, "%s%d%s", before[form], i / 6, after[form]));
}

static slice fieldText(int i, char *to) {
    return sliceMake(to, (size_t)snprintf(to, 64, "%s%d", i % 2 ? "" : "field", i));
}

/* Every ninth one is longer than a listpack may have. */
static slice valueText(uint32_t value, char *to) {
    const char *before = value % 9 == 0 ? "a value that is too long: " : value % 2 ? "" : "v";
    return sliceMake(to, (size_t)snprintf(to, 64, "%s%u", before, value));
}

static int fieldsOf(int path) {
    int count = 0;
    for (int i = 0; i < FIELDS; i++) count += model[path][i] != 0;
    return count;
}

static void setSome(pathHash *p) {
    char texts[FIELDS * 2][64], path[64];
    slice words[FIELDS * 2];
    int which = (int)randomUniform(PATHS);
    size_t count = 1 + (size_t)randomUniform(randomUniform(4) ? 3 : FIELDS);
    for (size_t i = 0; i < count; i++) {
        int field = (int)randomUniform(FIELDS);
        model[which][field] = 1 + (uint32_t)randomUniform(100000);
        words[2 * i] = fieldText(field, texts[2 * i]);
        words[2 * i + 1] = valueText(model[which][field], texts[2 * i + 1]);
    }
    pathHashSet(p, pathText(which, path), words, 2 * count, &limits);
}

static void deleteSome(pathHash *p) {
    char texts[2][64], path[64];
    slice fields[2];
    int which = (int)randomUniform(PATHS), numbers[2];
    uint64_t expected = 0;
    for (int i = 0; i < 2; i++) {
        numbers[i] = (int)randomUniform(FIELDS);
        fields[i] = fieldText(numbers[i], texts[i]);
        expected += model[which][numbers[i]] != 0;
        model[which][numbers[i]] = 0;
    }
    assert_int_equal(pathHashDeleteFields(p, pathText(which, path), fields, 2), expected);
}

static void deletePath(pathHash *p) {
    char path[64];
    int which = (int)randomUniform(PATHS);
    assert_int_equal(pathHashDelete(p, pathText(which, path)), fieldsOf(which) > 0);
    memset(model[which], 0, sizeof(model[which]));
}

static void deletePrefix(pathHash *p) {
    char text[64], path[64];
    slice prefix = pathText((int)randomUniform(PATHS), text);
    if (randomUniform(100)) prefix.len += prefix.len == 0;
    if (prefix.len == 1) prefix = SLICE("/a1");
    uint64_t expected = 0;
    for (int i = 0; i < PATHS; i++) {
        if (!fieldsOf(i) || !sliceHasPrefix(pathText(i, path), prefix)) continue;
        expected++;
        memset(model[i], 0, sizeof(model[i]));
    }
    assert_int_equal(pathHashDeletePrefix(p, prefix), expected);
}

static void step(pathHash *p) {
    switch (randomUniform(64)) {
    case 0: deletePrefix(p); break;
    case 1:
    case 2:
    case 3: deletePath(p); break;
    default: (randomUniform(5) < 3 ? setSome : deleteSome)(p);
    }
}

static void compareFields(const pathFields *f, int path) {
    char text[64], expected[64], digits[NUMBER_TEXT_MAX];
    slice value;
    int count = 0;
    for (int i = 0; i < FIELDS; i++) {
        bool found = pathFieldsGet(f, fieldText(i, text), digits, &value);
        assert_int_equal(found, model[path][i] != 0);
        if (found) assert_true(sliceEqual(value, valueText(model[path][i], expected)));
        count += found;
    }
    assert_int_equal(pathFieldsCount(f), count);
    pathFieldsIterator it;
    hashPair pair;
    pathFieldsIteratorInit(&it, f);
    for (; pathFieldsNext(&it, &pair); count--) {
        assert_true(pathFieldsGet(f, pair.field, digits, &value));
        assert_true(sliceEqual(value, pair.value));
    }
    pathFieldsIteratorClear(&it);
    assert_int_equal(count, 0);
}

static void compare(const pathHash *p) {
    char text[64];
    uint64_t paths = 0, fields = 0;
    for (int i = 0; i < PATHS; i++) {
        const pathFields *f = pathHashFind(p, pathText(i, text));
        assert_int_equal(f != NULL, fieldsOf(i) > 0);
        if (f) compareFields(f, i);
        paths += f != NULL;
        fields += (uint64_t)fieldsOf(i);
    }
    assert_int_equal(pathHashCount(p), paths);
    assert_int_equal(pathHashFields(p), fields);
    assert_null(pathHashVerify(p));
}

static void checkNothingLeft(void) {
    slabStats stats;
    slabGetStats(slabElements(), &stats);
    assert_int_equal(stats.live_blocks, 0);
    assert_false(pathHashesExist());
}

static void test_random_changes_agree_with_a_table(void **state) {
    testSeed(__func__);
    memset(model, 0, sizeof(model));
    robj *o = pathHashObjectNew(SLICE("key"));
    assert_true(pathHashesExist());
    assert_string_equal(typeOf(o)->encoding(o), "pathhash");
    for (uint64_t i = 0; i < STEPS * testScale(); i++) {
        step(pathHashOf(o));
        if (i % 500 == 0) compare(pathHashOf(o));
        if (i % 20000 == 0) o = testCopied(o);
    }
    compare(pathHashOf(o));
    assert_int_equal(typeOf(o)->length(o), pathHashCount(pathHashOf(o)));
    objectFree(o);
    checkNothingLeft();
}

static size_t bytesTaken(void) {
    slabStats objects, elements;
    slabGetStats(slabKeyspace(), &objects);
    slabGetStats(slabElements(), &elements);
    return memUsed() - objects.metadata_bytes - elements.metadata_bytes;
}

static void test_memory_is_what_is_reported(void **state) {
    testSeed(__func__);
    memset(model, 0, sizeof(model));
    (void)slabKeyspace(), (void)slabElements(); /* made now */
    for (int rounds = 0; rounds < 20; rounds++) {
        size_t before = bytesTaken();
        robj *o = pathHashObjectNew(SLICE("key"));
        memset(model, 0, sizeof(model));
        for (int i = 0; i < 500; i++) step(pathHashOf(o));
        size_t taken = bytesTaken() - before;
        assert_in_range(objectMemory(o, 0), taken * 9 / 10, taken * 11 / 10);
        assert_in_range(objectMemory(o, 5), taken / 2, taken * 2);
        objectFree(o);
        assert_int_equal(bytesTaken(), before);
    }
    checkNothingLeft();
}

/* One path with short text takes the path, the text and some 20 bytes. */
static void test_a_path_takes_little_more_than_its_bytes(void **state) {
    enum { COUNT = 20000, PATH = 22, TEXT = 6, MORE = 34 };
    static const packLimits usual = {512, 64};
    robj *o = pathHashObjectNew(SLICE("key"));
    for (int i = 0; i < COUNT; i++) {
        char text[PATH + 1];
        slice words[] = {SLICE("f"), SLICE("value")};
        int len = snprintf(text, sizeof(text), "/part%03d/other/%06d", i % 1000, i);
        pathHashSet(pathHashOf(o), sliceMake(text, (size_t)len), words, 2, &usual);
    }
    assert_null(pathHashVerify(pathHashOf(o)));
    assert_in_range(objectMemory(o, 0) / COUNT, 1, PATH + TEXT + MORE);
    objectFree(o);
}

static digest digestOf(slice key) {
    digest sum = {{0}};
    objectDigest(dbPeek(storeDb(0), key, storeHash(key)), lookAtAll(), &sum);
    return sum;
}

static void grow(slice key) {
    dbPosition at;
    robj *o = dbFind(storeDb(0), key, storeHash(key), lookAt(1000), &at);
    bool is_new = !o;
    if (is_new) o = pathHashObjectNew(key);
    for (int i = 0; i < 30; i++) setSome(pathHashOf(o));
    if (is_new) dbPlace(storeDb(0), &at, o);
}

static void test_compaction_keeps_contents(void **state) {
    testSeed(__func__);
    enum { KEYS = 64, KEPT_EACH = 8, ROUNDS = 12, TURNS_MAX = 100000 };
    char text[32];
    digest kept[KEYS];
    storeInit(1, false);
    for (int i = 0; i < ROUNDS; i++)
        for (int k = 0; k < KEYS; k++)
            grow(sliceMake(text, (size_t)snprintf(text, sizeof(text), "key:%d", k)));
    for (int k = 0; k < KEYS; k++) {
        slice key = sliceMake(text, (size_t)snprintf(text, sizeof(text), "key:%d", k));
        if (k % KEPT_EACH) {
            dbDelete(storeDb(0), key, storeHash(key), lookAt(1000));
        } else {
            kept[k] = digestOf(key);
        }
    }
    storeCompaction plan = {.budget_us = 1000, .fields_max = 7, .heap = true};
    storeCompactReport report = {0};
    for (int i = 0; i < TURNS_MAX && storeCompact(&plan, &report); i++) {}
    assert_true(report.moved > 0);
    for (int k = 0; k < KEYS; k += KEPT_EACH) {
        slice key = sliceMake(text, (size_t)snprintf(text, sizeof(text), "key:%d", k));
        digest now = digestOf(key);
        assert_memory_equal(&now, &kept[k], sizeof(now));
        assert_null(pathHashVerify(pathHashOf(dbPeek(storeDb(0), key, storeHash(key)))));
    }
    storeShutdown();
}

int test_type_pathhash(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_random_changes_agree_with_a_table),
        cmocka_unit_test(test_memory_is_what_is_reported),
        cmocka_unit_test(test_a_path_takes_little_more_than_its_bytes),
        cmocka_unit_test(test_compaction_keeps_contents),
    };
    return cmocka_run_group_tests_name("type_pathhash", tests, NULL, testNoObjects);
}
