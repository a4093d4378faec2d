/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Tests of store/object.c: what is stored in an object can be read again, at every size where its
 * form changes. */
#include "store_test.h"

#include <stdio.h>

#include "base/base.h"
#include "base/number.h"
#include "store/object.h"
#include "store/slab.h"

/* The longest value of a test, with room for any key. */
enum { TEXT_MAX = 5000 };

static char texts[2][TEXT_MAX];

/* `len` bytes that are no number; another run of bytes for another `which`. */
static slice anyText(int which, size_t len) {
    for (size_t i = 0; i < len; i++) texts[which][i] = (char)('a' + (i * 7 + (size_t)which) % 25);
    return sliceMake(texts[which], len);
}

static char key_bytes[TEXT_MAX];

static slice keyOf(size_t len) {
    for (size_t i = 0; i < len; i++) key_bytes[i] = (char)('A' + i * 5 % 26);
    return sliceMake(key_bytes, len);
}

static const size_t key_sizes[] = {0,   1,   16,  31,   32,   100,  112, 127,
                                   128, 129, 900, 1015, 1020, 1100, 2000};
static const int64_t times[] = {OBJECT_NO_EXPIRE, 0,         1,         (INT64_C(1) << 48) - 1,
                                INT64_C(1) << 48, INT64_MAX, INT64_MIN, -2};
static const int64_t numbers[] = {0,
                                  1,
                                  -1,
                                  INT8_MAX,
                                  INT8_MAX + 1,
                                  INT8_MIN,
                                  INT8_MIN - 1,
                                  INT16_MAX,
                                  INT16_MAX + 1,
                                  INT16_MIN,
                                  INT16_MIN - 1,
                                  (1 << 23) - 1,
                                  1 << 23,
                                  -(1 << 23),
                                  -(1 << 23) - 1,
                                  INT32_MAX,
                                  INT32_MAX + INT64_C(1),
                                  INT32_MIN,
                                  INT32_MIN - INT64_C(1),
                                  INT64_MAX - 1,
                                  INT64_MAX,
                                  INT64_MIN + 1,
                                  INT64_MIN};
/* Around the borders of Valkey's embstr, of our length field, of our embedding. */
static const size_t text_sizes[] = {
    0,    1,    2,    19,   20,   21,   40,   80,   103,  104,  105,  106,  111,  112,  113,  114,
    126,  127,  128,  129,  500,  880,  990,  995,  1000, 1003, 1005, 1010, 1015, 1016, 1017, 1018,
    1019, 1020, 1021, 1022, 1023, 1024, 1025, 2000, 2001, 3500, 4096, 4361, 4362, 4370};

/* Sizes of keys and times, all with all. */
typedef struct shape {
    slice key;
    int64_t expire_ms;
} shape;

static void eachShape(void (*test)(const shape *s)) {
    for (size_t k = 0; k < COUNT_OF(key_sizes); k++) {
        for (size_t t = 0; t < COUNT_OF(times); t++) {
            test(&(shape){keyOf(key_sizes[k]), times[t]});
        }
    }
}

static uint32_t lruOf(const shape *s) {
    return (uint32_t)(s->key.len * 7919 + (uint64_t)s->expire_ms) & OBJECT_LRU_MAX;
}

static bool markOf(const shape *s) { return s->key.len % 2; }

static uint32_t accessOf(const shape *s) { return objectAccessOf(lruOf(s)) | markOf(s); }

static void expectShape(const robj *o, const shape *s) {
    assert_int_equal(objectType(o), TYPE_STRING);
    assert_int_equal(objectLru(o), lruOf(s));
    assert_int_equal(objectIsMarked(o), markOf(s));
    assert_int_equal(objectAccess(o), accessOf(s));
    assert_int_equal(objectHasExpire(o), s->expire_ms != OBJECT_NO_EXPIRE);
    assert_int_equal(objectExpire(o), s->expire_ms);
    assert_true(sliceEqual(objectKey(o), s->key));
}

static void expectText(const robj *o, slice text) {
    char digits[NUMBER_TEXT_MAX];
    assert_true(sliceEqual(objectText(o, digits), text));
}

/* Valkey's rule, written another way: sizes of its header, of key and value with theirs, and of the
 * time. */
static bool fitsBesideTime(size_t key, size_t value, bool expires) {
    size_t header = 8, key_size = key + (key <= 31 ? 3 : 5), value_size = value + 4;
    return header + key_size + value_size + (expires ? 8 : 0) <= 128;
}

/* The same for a value that got its time later; long keys leave it where it was. */
static bool isEmbstr(size_t key, size_t value, bool expires) {
    return fitsBesideTime(key, value, expires && key < 108);
}

/* ------------------------------------------------------------------ making */

static void testText(const shape *s) {
    bool expires = s->expire_ms != OBJECT_NO_EXPIRE;
    for (size_t i = 0; i < COUNT_OF(text_sizes); i++) {
        slice text = anyText(0, text_sizes[i]);
        for (stringKeep keep = KEEP_BEST; keep <= KEEP_RAW; keep++) {
            robj *o = objectNewString(s->key, text, s->expire_ms, accessOf(s), keep);
            expectShape(o, s);
            expectText(o, text);
            assert_false(objectIsInt(o));
            bool embstr = keep != KEEP_RAW && isEmbstr(s->key.len, text.len, expires);
            assert_string_equal(objectStringEncoding(o), embstr ? "embstr" : "raw");
            size_t whole = objectTextSize(s->key, text.len, s->expire_ms);
            assert_true(whole >= 4 + s->key.len + text.len + 2);
            if (whole <= OBJECT_EMBED_ALWAYS) assert_int_not_equal(objectForm(o), FORM_POINTER);
            if (whole > OBJECT_EMBED_MAX) assert_int_equal(objectForm(o), FORM_POINTER);
            objectSetLru(o, 0x123456);
            assert_int_equal(objectLru(o), 0x123456);
            objectSetLru(o, lruOf(s));
            objectMarkRawWithTtl(o);
            expectShape(o, s);
            expectText(o, text);
            if (!fitsBesideTime(s->key.len, text.len, true)) embstr = false;
            assert_string_equal(objectStringEncoding(o), embstr ? "embstr" : "raw");
            objectFree(o);
        }
    }
}

static void textIsKept(void **state) {
    (void)state;
    eachShape(testText);
}

/* Memory of an object with `len` bytes of text in a blob. */
static size_t bytesWithBlob(slice key, size_t len) {
    blob *b = blobNew(len);
    b->len = len;
    robj *o = objectNewStringTake(key, b, OBJECT_NO_EXPIRE, 0);
    size_t bytes = objectMemory(o, 0);
    objectFree(o);
    return bytes;
}

static void longTextTakesTheSmallerForm(void **state) {
    (void)state;
    enum { LIBC_SPARE = 16 }; /* its blocks may be larger than memGoodSize() */
    static const size_t keys[] = {0, 8, 16, 40, 100, 200, 1000};
    int forms[2] = {0};
    for (size_t k = 0; k < COUNT_OF(keys); k++) {
        slice key = keyOf(keys[k]);
        for (size_t len = OBJECT_EMBED_ALWAYS;; len++) {
            size_t whole = objectTextSize(key, len, OBJECT_NO_EXPIRE);
            if (whole > OBJECT_EMBED_MAX) break;
            robj *o =
                objectNewString(key, sliceMake(texts[0], len), OBJECT_NO_EXPIRE, 0, KEEP_TEXT);
            size_t bytes = objectMemory(o, 0);
            bool in_blob = objectForm(o) == FORM_POINTER;
            assert_true(bytes < slabClassSize(whole) + (in_blob ? LIBC_SPARE : 1));
            assert_true(bytes <= bytesWithBlob(key, len) + (in_blob ? LIBC_SPARE : 0));
            forms[in_blob]++;
            objectFree(o);
        }
    }
    assert_true(forms[false] > 0 && forms[true] > 0);
}

#if defined(USE_JEMALLOC) && !defined(HOSTILE_BUILD)
/* The allocator's block for 4,096 bytes and a header would have 5,120. */
static void textOf4096BytesTakes4368(void **state) {
    (void)state;
    for (size_t k = 1; k <= 200; k++) {
        robj *o = objectNewString(keyOf(k), anyText(0, 4096), INT64_C(1) << 40, 0, KEEP_BEST);
        assert_int_equal(objectMemory(o, 0), 4368);
        objectFree(o);
    }
}
#endif

static void testNumbers(const shape *s) {
    for (size_t i = 0; i < COUNT_OF(numbers); i++) {
        char digits[NUMBER_TEXT_MAX];
        slice text = sliceMake(digits, numberPrintInt(digits, numbers[i]));
        robj *made[3] = {objectNewInt(s->key, numbers[i], s->expire_ms, accessOf(s)),
                         objectNewString(s->key, text, s->expire_ms, accessOf(s), KEEP_BEST),
                         objectNewString(s->key, text, s->expire_ms, accessOf(s), KEEP_TEXT)};
        for (int k = 0; k < 3; k++) {
            expectShape(made[k], s);
            expectText(made[k], text);
            assert_int_equal(objectIsInt(made[k]), k < 2);
            if (k < 2) assert_int_equal(objectInt(made[k]), numbers[i]);
            if (k < 2) assert_string_equal(objectStringEncoding(made[k]), "int");
            objectFree(made[k]);
        }
    }
}

static void integersAreKept(void **state) {
    (void)state;
    eachShape(testNumbers);
}

static void onlyCanonicalIntegersAreIntegers(void **state) {
    (void)state;
    static const char *const others[] = {"",
                                         "-",
                                         "+1",
                                         "01",
                                         "-0",
                                         "-01",
                                         " 1",
                                         "1 ",
                                         "1.0",
                                         "9223372036854775808",
                                         "-9223372036854775809",
                                         "00",
                                         "1e3",
                                         "0x1"};
    for (size_t i = 0; i < COUNT_OF(others); i++) {
        robj *o = objectNewString(SLICE("k"), sliceOf(others[i]), OBJECT_NO_EXPIRE, 0, KEEP_BEST);
        assert_false(objectIsInt(o));
        expectText(o, sliceOf(others[i]));
        assert_string_equal(objectStringEncoding(o), "embstr");
        objectFree(o);
    }
}

static void aBlobIsAdopted(void **state) {
    (void)state;
    blob *b = blobNew(100);
    memset(b->bytes, 'x', 100);
    b->len = 100;
    robj *o = objectNewStringTake(SLICE("k"), blobRetain(b), 5, 9);
    assert_int_equal(b->refs, 2);
    assert_ptr_equal(objectPointer(o), b);
    expectText(o, sliceMake(b->bytes, 100));
    assert_string_equal(objectStringEncoding(o), "raw");
    blob *other = blobNew(3);
    memcpy(other->bytes, "abc", 3);
    other->len = 3;
    objectSetPointer(o, other);
    expectText(o, SLICE("abc"));
    assert_int_equal(objectExpire(o), 5);
    objectFree(o);
    assert_int_equal(b->refs, 2);
    blobRelease(b);
    blobRelease(b);
}

static void memoryIsCounted(void **state) {
    (void)state;
    size_t before = memUsed();
    robj *o = objectNewString(keyOf(20), anyText(0, 300), 77, 0, KEEP_BEST);
    assert_true(objectMemory(o, 0) >= objectTextSize(keyOf(20), 300, 77));
    assert_true(memUsed() >= before + 300);
    objectFree(o);
    o = objectNewString(keyOf(20), anyText(0, 2000), 77, 0, KEEP_BEST);
    assert_true(objectMemory(o, 0) >= 2000 + 20);
    objectFree(o);
}

/* ------------------------------------------------------------------ changing in place */

/* The hostile build changes nothing in place. */
#ifdef HOSTILE_BUILD
enum { CHANGES_IN_PLACE = false };
#else
enum { CHANGES_IN_PLACE = true };
#endif

static robj *newOf(const shape *s, size_t i) {
    if (i < COUNT_OF(text_sizes)) {
        return objectNewString(s->key, anyText(0, text_sizes[i]), s->expire_ms, accessOf(s),
                               i % 2 ? KEEP_RAW : KEEP_BEST);
    }
    return objectNewInt(s->key, numbers[i - COUNT_OF(text_sizes)], s->expire_ms, accessOf(s));
}

enum { VALUES = COUNT_OF(text_sizes) + COUNT_OF(numbers) };

/* Overwrites each kind of value with text and with a number of its own and of other sizes. */
static void testOverwrite(const shape *s) {
    for (size_t i = 0; i < VALUES; i++) {
        for (size_t k = 0; k < VALUES; k++) {
            robj *o = newOf(s, i), *wanted = newOf(s, k), *same = newOf(s, i);
            valueForm form = objectForm(o);
            char digits[2][NUMBER_TEXT_MAX];
            slice text = objectText(wanted, digits[0]);
            bool done = k % 2 && objectIsInt(wanted) ? objectOverwriteInt(o, objectInt(wanted))
                                                     : objectOverwrite(o, text);
            if (form == FORM_POINTER) assert_false(done);
            if (i == k && form != FORM_POINTER) assert_int_equal(done, CHANGES_IN_PLACE);
            expectShape(o, s);
            expectText(o, done ? text : objectText(same, digits[1]));
            assert_int_equal(objectForm(o) == FORM_EMBED_RAW, !done && form == FORM_EMBED_RAW);
            if (done) assert_int_equal(objectIsInt(o), objectIsInt(wanted));
            objectFree(o);
            objectFree(wanted);
            objectFree(same);
        }
    }
}

static void valuesAreOverwritten(void **state) {
    (void)state;
    for (size_t k = 0; k < COUNT_OF(key_sizes); k += 2) {
        testOverwrite(&(shape){keyOf(key_sizes[k]), OBJECT_NO_EXPIRE});
        testOverwrite(&(shape){keyOf(key_sizes[k]), INT64_MAX});
    }
}

static void testStretch(const shape *s) {
    for (size_t i = 0; i < VALUES; i++) {
        for (size_t more = 0; more < 12; more++) {
            robj *o = newOf(s, i), *same = newOf(s, i);
            char digits[NUMBER_TEXT_MAX];
            slice old = objectText(same, digits);
            bool may = objectForm(o) <= FORM_EMBED_RAW;
            char *text = objectStretch(o, old.len + more);
            if (!may) assert_null(text);
            if (may && more == 0) assert_int_equal(text != NULL, CHANGES_IN_PLACE);
            if (text) {
                assert_int_equal(objectForm(o), FORM_EMBED_RAW);
                memset(text + old.len, '!', more);
                slice now = objectText(o, NULL);
                assert_ptr_equal(now.ptr, text);
                assert_int_equal(now.len, old.len + more);
                assert_memory_equal(now.ptr, old.ptr, old.len);
                assert_true(objectTextSize(s->key, now.len, s->expire_ms) <= OBJECT_EMBED_MAX ||
                            more == 0);
            } else {
                expectText(o, old);
                assert_int_equal(objectForm(o), objectForm(same));
            }
            expectShape(o, s);
            objectFree(o);
            objectFree(same);
        }
    }
}

static void textIsStretched(void **state) {
    (void)state;
    for (size_t k = 0; k < COUNT_OF(key_sizes); k += 3) {
        testStretch(&(shape){keyOf(key_sizes[k]), OBJECT_NO_EXPIRE});
        testStretch(&(shape){keyOf(key_sizes[k]), 1});
    }
}

static void rawTextIsEmbeddedAtAnySize(void **state) {
    (void)state;
    for (size_t i = 0; i < COUNT_OF(text_sizes); i++) {
        char *text;
        robj *o = objectNewRaw(SLICE("key"), text_sizes[i], 12, objectAccessOf(34), &text);
        slice wanted = anyText(1, text_sizes[i]);
        memcpy(text, wanted.ptr, wanted.len);
        expectText(o, wanted);
        assert_string_equal(objectStringEncoding(o), "raw");
        assert_int_equal(objectForm(o), FORM_EMBED_RAW);
        assert_int_equal(objectExpire(o), 12);
        assert_int_equal(objectLru(o), 34);
        objectFree(o);
    }
}

/* ------------------------------------------------------------------ expire times */

/* From every time to every other and back, with every kind of value. */
static void testExpire(const shape *s) {
    for (size_t i = 0; i < VALUES; i += 1 + s->key.len % 3) {
        for (size_t t = 0; t < COUNT_OF(times); t++) {
            robj *o = newOf(s, i), *same = newOf(s, i);
            bool was_raw = strcmp(objectStringEncoding(o), "raw") == 0;
            char digits[NUMBER_TEXT_MAX];
            slice text = objectText(same, digits);
            bool kept_time = objectHasExpire(o) == (times[t] != OBJECT_NO_EXPIRE);
            for (int back = 0; back < 2; back++) {
                shape now = {s->key, back ? s->expire_ms : times[t]};
                o = objectSetExpire(o, now.expire_ms);
                objectSetLru(o, lruOf(&now));
                expectShape(o, &now);
                expectText(o, text);
                if (objectIsInt(same)) {
                    assert_string_equal(objectStringEncoding(o), "int");
                } else {
                    bool raw = was_raw || (!kept_time && !isEmbstr(s->key.len, text.len, true));
                    assert_string_equal(objectStringEncoding(o), raw ? "raw" : "embstr");
                }
            }
            objectFree(o);
            objectFree(same);
        }
    }
}

static void timesChangeAndValuesStay(void **state) {
    (void)state;
    eachShape(testExpire);
}

int test_object(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(textIsKept),
        cmocka_unit_test(longTextTakesTheSmallerForm),
#if defined(USE_JEMALLOC) && !defined(HOSTILE_BUILD)
        cmocka_unit_test(textOf4096BytesTakes4368),
#endif
        cmocka_unit_test(integersAreKept),
        cmocka_unit_test(onlyCanonicalIntegersAreIntegers),
        cmocka_unit_test(aBlobIsAdopted),
        cmocka_unit_test(memoryIsCounted),
        cmocka_unit_test(valuesAreOverwritten),
        cmocka_unit_test(textIsStretched),
        cmocka_unit_test(rawTextIsEmbeddedAtAnySize),
        cmocka_unit_test(timesChangeAndValuesStay),
    };
    return cmocka_run_group_tests_name("store/object", tests, NULL, testNoObjects);
}
