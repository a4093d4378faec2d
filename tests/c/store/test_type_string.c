/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Random histories of strings against a model that is a plain buffer: every change the commands
 * make, with replies that hold on to the bytes meanwhile. */
#include "store_test.h"

#include <stdio.h>

#include "base/base.h"
#include "base/number.h"
#include "base/random.h"
#include "store/slab.h"
#include "store/type_string.h"

#ifdef TESTS_SANITIZED
#define HISTORIES 300u
#else
#define HISTORIES 3000u
#endif
enum { STEPS = 120, MODEL_MAX = 1 << 16, REPLIES = 4 };

/* What the string must be. */
typedef struct model {
    slice key;
    char bytes[MODEL_MAX];
    size_t len;
    int64_t expire_ms;
    uint32_t lru;
    bool raw;    /* sticky */
    bool is_int; /* kept as an integer */
} model;

/* A reply that is not sent yet: bytes lent out, and what they were. */
typedef struct reply {
    blob *lent;
    size_t len;
    char *copy;
} reply;

static model want;
static reply replies[REPLIES];
static struct { unsigned in_place, moved, lent, blobs; } seen;

static slice wanted(void) { return sliceMake(want.bytes, want.len); }

static bool fitsEmbstr(bool expires) {
    return want.key.len + want.len + (want.key.len <= 31 ? 15 : 17) + (expires ? 8 : 0) <= 128;
}

/* A long key leaves a value where it was when it got its time. */
static bool isEmbstr(bool expires) { return fitsEmbstr(expires && want.key.len < 108); }

static void inspect(const robj *o) {
    char digits[NUMBER_TEXT_MAX];
    assert_true(sliceEqual(objectText(o, digits), wanted()));
    assert_true(sliceEqual(objectKey(o), want.key));
    assert_int_equal(objectExpire(o), want.expire_ms);
    assert_int_equal(objectLru(o), want.lru);
    assert_int_equal(objectType(o), TYPE_STRING);
    assert_int_equal(objectIsInt(o), want.is_int);
    assert_int_equal(stringLen(o), want.len);
    int64_t number, expected;
    bool is_number = want.len <= 20 && numberParseInt(wanted(), &expected);
    assert_int_equal(stringToInt(o, &number), is_number);
    if (is_number) assert_int_equal(number, expected);
    uint64_t bit = randomUniform(want.len * 8 + 20);
    bool set = bit / 8 < want.len && (want.bytes[bit / 8] >> (7 - bit % 8) & 1);
    assert_int_equal(stringBit(o, bit), set);
    bool raw = want.raw || !isEmbstr(want.expire_ms != OBJECT_NO_EXPIRE);
    assert_string_equal(objectStringEncoding(o), want.is_int ? "int" : raw ? "raw" : "embstr");
    seen.blobs += objectForm(o) == FORM_POINTER;
}

static void inspectReply(const reply *r) {
    if (r->lent) assert_memory_equal(r->lent->bytes, r->copy, r->len);
}

/* A reply is sent, another begins and holds the value's block if it has one. */
static void stepReply(const robj *o) {
    reply *r = &replies[randomUniform(REPLIES)];
    inspectReply(r);
    blobRelease(r->lent);
    memFree(r->copy);
    *r = (reply){0};
    if (objectForm(o) != FORM_POINTER) return;
    r->lent = blobRetain(objectPointer(o));
    r->len = want.len;
    r->copy = memDup(want.bytes, want.len);
    seen.lent++;
}

/* Mostly a little, sometimes much. */
static size_t anySize(void) {
    switch (randomUniform(10)) {
    case 0: return 0;
    case 1: return randomUniform(3000);
    case 2: return randomUniform(200);
    default: return randomUniform(20);
    }
}

static slice anyBytes(char *buffer, size_t len) {
    for (size_t i = 0; i < len; i++) buffer[i] = (char)randomNext();
    return sliceMake(buffer, len);
}

static void wantText(slice text);

static robj *stepStretch(robj *o, size_t offset, slice bytes) {
    char *text;
    assert_int_equal(stringStretch(&o, offset + bytes.len, &text), OK);
    memcpy(text + offset, bytes.ptr, bytes.len);
    if (offset > want.len) memset(want.bytes + want.len, 0, offset - want.len);
    memcpy(want.bytes + offset, bytes.ptr, bytes.len);
    want.len = sizeMax(want.len, offset + bytes.len);
    want.raw = true;
    want.is_int = false;
    return o;
}

/* Grows by a little first, as a writer does that needs room for a while. */
static robj *stepCut(robj *o) {
    char zeros[8] = {0};
    o = stepStretch(o, want.len, sliceMake(zeros, randomUniform(sizeof(zeros))));
    want.len = randomUniform(4) ? want.len - randomUniform(sizeMin(want.len, 8) + 1)
                                : randomUniform(want.len + 1);
    stringCut(&o, want.len);
    return o;
}

static robj *stepTake(robj *o) {
    blob *b = blobNew(4000);
    b->len = 2000 + randomUniform(2000);
    wantText(anyBytes(b->bytes, b->len));
    want.raw = true;
    return stringSetTake(o, b);
}

static void wantText(slice text) {
    memcpy(want.bytes, text.ptr, text.len);
    want.len = text.len;
    want.raw = want.is_int = false;
}

static int64_t anyNumber(void) {
    int64_t number = (int64_t)(randomNext() >> randomUniform(64));
    return randomUniform(2) ? number : (int64_t)(0 - (uint64_t)number);
}

/* As INCR does: the value becomes a number, near the old one if that was one. */
static robj *stepInt(robj *o) {
    int64_t value;
    if (!stringToInt(o, &value) || randomUniform(4) == 0) value = anyNumber();
    (void)numberAdd(value, randomUniform(2) ? 1 : -1,
                    &value); /* at the end of the range it stays */
    char digits[NUMBER_TEXT_MAX];
    wantText(sliceMake(digits, numberPrintInt(digits, value)));
    want.is_int = true;
    return stringSetInt(o, value);
}

static robj *stepText(robj *o) {
    char buffer[3000];
    slice text = anyBytes(buffer, anySize());
    if (randomUniform(3) == 0) text = sliceMake(buffer, numberPrintInt(buffer, anyNumber()));
    wantText(text);
    want.raw = want.expire_ms != OBJECT_NO_EXPIRE && !fitsEmbstr(true);
    return stringSetText(o, text);
}

/* As SET does. */
static robj *stepOverwrite(robj *o) {
    char buffer[3000];
    slice text = anyBytes(buffer, anySize());
    if (randomUniform(3) == 0) text = sliceMake(buffer, numberPrintInt(buffer, anyNumber()));
    if (randomUniform(3) == 0) text.len = sizeMin(text.len, want.len); /* often the same class */
    int64_t number;
    bool is_int = numberParseInt(text, &number);
    wantText(text);
    want.is_int = is_int;
    if (objectOverwrite(o, text)) return o;
    robj *set =
        objectNewString(want.key, text, want.expire_ms, objectAccessOf(want.lru), KEEP_BEST);
    objectFree(o);
    return set;
}

static robj *stepExpire(robj *o) {
    static const int64_t times[] = {OBJECT_NO_EXPIRE, OBJECT_NO_EXPIRE, 1, 5,
                                    INT64_C(1) << 50, INT64_MAX};
    int64_t expire_ms = times[randomUniform(COUNT_OF(times))];
    bool changes = (expire_ms == OBJECT_NO_EXPIRE) != (want.expire_ms == OBJECT_NO_EXPIRE);
    if (changes && !want.is_int && !isEmbstr(true)) want.raw = true;
    want.expire_ms = expire_ms;
    return objectSetExpire(o, expire_ms);
}

static robj *step(robj *o) {
    char buffer[3000];
    slice bytes = anyBytes(buffer, anySize());
    switch (randomUniform(15)) {
    case 0: return stepOverwrite(o);
    case 1: return stepText(o);
    case 2: return stepExpire(o);
    case 3: objectSetLru(o, want.lru = (uint32_t)randomUniform(OBJECT_LRU_MAX)); return o;
    case 4:
    case 5: return stepInt(o);
    case 6: return stepStretch(o, 0, SLICE("")); /* SETRANGE of nothing new */
    case 7: return stepStretch(o, randomUniform(want.len + 50), bytes);
    case 8: return stepStretch(o, randomUniform(want.len + 1), SLICE("x"));
    case 9: return randomUniform(3) ? stepCut(o) : stepTake(o);
    case 10: return stepCut(o);
    default: return stepStretch(o, want.len, bytes);
    }
}

static robj *begin(char *key_bytes) {
    want.key = anyBytes(key_bytes, randomUniform(4) ? randomUniform(115) : randomUniform(1200));
    want.expire_ms = OBJECT_NO_EXPIRE;
    want.lru = 0;
    want.is_int = false;
    want.raw = true;
    if (randomUniform(2)) {
        want.len = anySize();
        memset(want.bytes, 0, want.len);
        robj *o;
        char *text;
        assert_int_equal(stringNewRaw(want.key, want.len, &o, &text), OK);
        assert_memory_equal(text, want.bytes, want.len);
        return o;
    }
    want.len = 0;
    want.raw = false;
    return objectNewString(want.key, SLICE(""), OBJECT_NO_EXPIRE, 0, KEEP_BEST);
}

static void historiesMatchTheModel(void **state) {
    (void)state;
    testSeed("store/type_string");
    char key_bytes[1200];
    for (unsigned h = 0; h < HISTORIES * testScale(); h++) {
        robj *o = begin(key_bytes);
        inspect(o);
        for (int i = 0; i < STEPS && want.len + 6000 < MODEL_MAX; i++) {
            const robj *before = o;
            o = step(o);
            seen.in_place += o == before;
            seen.moved += o != before;
            inspect(o);
            if (randomUniform(4) == 0) stepReply(o);
        }
        objectFree(o);
        for (int i = 0; i < REPLIES; i++) inspectReply(&replies[i]);
    }
    for (int i = 0; i < REPLIES; i++) {
        blobRelease(replies[i].lent);
        memFree(replies[i].copy);
        replies[i] = (reply){0};
    }
    printf("store/type_string: in place %u, moved %u, lent %u, in blobs %u\n", seen.in_place,
           seen.moved, seen.lent, seen.blobs);
    assert_true(seen.moved > 100);
    assert_true(seen.lent > 100);
    assert_true(seen.blobs > 100);
}

/* ------------------------------------------------------------------ single demands */

static void countingAllocatesNothing(void **state) {
    (void)state;
#ifndef HOSTILE_BUILD
    robj *o = objectNewInt(SLICE("counter:1234567890"), 1000, OBJECT_NO_EXPIRE, 0);
    for (int64_t value = 1001; value < 20000; value++) {
        robj *now = stringSetInt(o, value);
        assert_ptr_equal(now, o);
        assert_int_equal(objectInt(now), value);
    }
    objectFree(o);
#endif
}

static void nothingChangesInPlaceWhileAChildLives(void **state) {
    (void)state;
    char *text;
    robj *count = objectNewInt(SLICE("count"), 1000, 5, 0);
    robj *bits = objectNewString(SLICE("bits"), SLICE("abc"), 5, 0, KEEP_BEST);
    slabForkBegin(slabKeyspace());
    const robj *old_count = count, *old_bits = bits;
    count = stringSetInt(count, 1001);
    assert_ptr_not_equal(count, old_count);
    assert_int_equal(objectInt(count), 1001);
    assert_int_equal(stringStretch(&bits, 3, &text), OK);
    assert_ptr_not_equal(bits, old_bits);
    assert_memory_equal(text, "abc", 3);
    assert_false(objectOverwrite(bits, SLICE("xyz")));
    old_bits = bits;
    bits = objectSetExpire(bits, 6);
    assert_ptr_not_equal(bits, old_bits);
    slabForkEnd(slabKeyspace());
#ifndef HOSTILE_BUILD
    assert_true(objectOverwrite(bits, SLICE("xyz")));
    assert_ptr_equal(stringSetInt(count, 1002), count);
#endif
    objectFree(count);
    objectFree(bits);
}

/* A blob would get spare capacity. */
static void textThatDoesNotGrowRemainsEmbeddedWhileAChildLives(void **state) {
    (void)state;
    static const char zeros[4500];
    char *text;
    for (size_t len = 100; len <= sizeof(zeros); len += 100) {
        slice value = sliceMake(zeros, len);
        robj *o = objectNewString(SLICE("bits"), value, OBJECT_NO_EXPIRE, 0, KEEP_BEST);
        size_t before = objectMemory(o, 0);
        slabForkBegin(slabKeyspace());
        assert_int_equal(stringStretch(&o, 1, &text), OK);
        slabForkEnd(slabKeyspace());
        assert_int_equal(stringLen(o), len);
        assert_int_equal(objectMemory(o, 0), before);
        objectFree(o);
    }
}

static void appendingIsLinear(void **state) {
    (void)state;
    robj *o = objectNewString(SLICE("log"), SLICE(""), OBJECT_NO_EXPIRE, 0, KEEP_BEST);
    const void *block = NULL;
    unsigned moves = 0;
    const size_t total = 8 * 1024 * 1024, piece = 100;
    for (size_t len = 0; len < total; len += piece) {
        char *text;
        assert_int_equal(stringStretch(&o, len + piece, &text), OK);
        memset(text + len, 'x', piece);
        if (objectForm(o) == FORM_POINTER && objectPointer(o) != block) {
            block = objectPointer(o);
            moves++;
        }
    }
    assert_true(stringLen(o) >= total);
    /* Doubling to 1 MB, then a megabyte at a time. */
    assert_true(moves <= 24);
    assert_true(objectMemory(o, 0) <= total + 2 * 1024 * 1024 + 4096);
    objectFree(o);
}

static void smallGrownStringsStayEmbedded(void **state) {
    (void)state;
    robj *o = objectNewString(SLICE("key"), SLICE(""), OBJECT_NO_EXPIRE, 0, KEEP_BEST);
    char *text;
    for (size_t len = 1; len <= 100; len++) {
        assert_int_equal(stringStretch(&o, len, &text), OK);
        assert_int_equal(objectForm(o), FORM_EMBED_RAW);
    }
    assert_true(objectMemory(o, 0) <= 128);
    assert_int_equal(stringStretch(&o, 500, &text), OK);
    assert_int_equal(objectForm(o), FORM_POINTER);
    objectFree(o);
}

static void aLentBlockIsCopiedBeforeAWrite(void **state) {
    (void)state;
    blob *b = blobNew(50);
    memset(b->bytes, 'a', 50);
    b->len = 50;
    robj *o = objectNewStringTake(SLICE("k"), blobRetain(b), OBJECT_NO_EXPIRE, 0);
    char *text;
    assert_int_equal(stringStretch(&o, 10, &text), OK);
    assert_ptr_not_equal(objectPointer(o), b);
    assert_int_equal(b->refs, 1);
    text[0] = 'b';
    assert_int_equal(b->bytes[0], 'a');
    assert_int_equal(stringLen(o), 50);
    /* No other references now: modified in place. */
    char *again;
    assert_int_equal(stringStretch(&o, 20, &again), OK);
    assert_ptr_equal(again, text);
    objectFree(o);
    blobRelease(b);
}

static void sizesBeyondMemoryChangeNothing(void **state) {
    (void)state;
    static const size_t sizes[] = {SIZE_MAX / 2, (size_t)1 << 62, ((size_t)1 << 60) + 1};
    static const slice values[] = {SLICE("7"), SLICE("text"), SLICE("")};
    for (size_t i = 0; i < COUNT_OF(sizes); i++) {
        robj *o;
        char *text;
        assert_int_equal(stringNewRaw(SLICE("k"), sizes[i], &o, &text), ERR_NO_MEMORY);
        for (size_t k = 0; k <= COUNT_OF(values); k++) {
            blob *b = blobNew(4);
            bool is_blob = k == COUNT_OF(values);
            if (is_blob) {
                o = objectNewStringTake(SLICE("k"), blobRetain(b), 3, 0);
            } else {
                o = objectNewString(SLICE("k"), values[k], 3, 0, KEEP_BEST);
            }
            const robj *before = o;
            valueForm form = objectForm(o);
            for (int lent = 1; lent >= 0; lent--) {
                assert_int_equal(stringStretch(&o, sizes[i], &text), ERR_NO_MEMORY);
                assert_ptr_equal(o, before);
                assert_int_equal(objectForm(o), form);
                char digits[NUMBER_TEXT_MAX];
                assert_true(sliceEqual(objectText(o, digits), is_blob ? SLICE("") : values[k]));
                if (lent) blobRelease(b);
            }
            objectFree(o);
        }
    }
}

int test_type_string(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(historiesMatchTheModel),
        cmocka_unit_test(countingAllocatesNothing),
        cmocka_unit_test(nothingChangesInPlaceWhileAChildLives),
        cmocka_unit_test(textThatDoesNotGrowRemainsEmbeddedWhileAChildLives),
        cmocka_unit_test(appendingIsLinear),
        cmocka_unit_test(smallGrownStringsStayEmbedded),
        cmocka_unit_test(aLentBlockIsCopiedBeforeAWrite),
        cmocka_unit_test(sizesBeyondMemoryChangeNothing),
    };
    return cmocka_run_group_tests_name("store/type_string", tests, NULL, testNoObjects);
}
