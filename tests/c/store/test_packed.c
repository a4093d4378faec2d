/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Collections packed in their objects: random changes against the same changes of a listpack in a
 * block of its own, with times, names and copies changing between them. */
#include "store_test.h"

#include <stdio.h>

#include "base/base.h"
#include "base/random.h"
#include "ds/intset.h"
#include "ds/listpack.h"
#include "store/object.h"
#include "store/slab.h"

#ifdef TESTS_SANITIZED
enum { HISTORIES = 30, STEPS = 200 };
#else
enum { HISTORIES = 200, STEPS = 400 };
#endif

/* Small slabs have coarse classes. */
#ifdef HOSTILE_BUILD
#define WASTE_MAX 3
#else
#define WASTE_MAX 7 / 4
#endif

static packBuffer want;
static int64_t want_expire;
static str want_key;

static void inspect(const robj *o) {
    const uint8_t *lp = objectPacked(o);
    size_t size = listpackSize(lp);
    assert_int_equal(size, listpackSize(want.bytes));
    assert_memory_equal(lp, want.bytes, size);
    assert_int_equal(objectType(o), TYPE_HASH);
    assert_int_equal(objectExpire(o), want_expire);
    assert_true(sliceEqual(objectKey(o), strSlice(&want_key)));
    assert_int_equal(objectLru(o), 77);
    /* What it has is used, and not wasted. */
    size_t block = slabClassSize(objectSize(o));
    assert_true(block >= size + want_key.len);
    assert_true(block <= (size + want_key.len + 40) * WASTE_MAX);
}

static robj *stepChange(robj *o) {
    objectBuffer r;
    objectBufferInit(&r, o);
    char text[300];
    memset(text, 'x', sizeof(text));
    size_t count = listpackCount(want.bytes);
    int64_t at = count ? (int64_t)randomUniform(count) : 0;
    listpackItem item = listpackItemOf(sliceMake(text, (size_t)randomUniform(sizeof(text))));
    if (randomUniform(2)) item = listpackItemInt((int64_t)randomUniform(1000));
    uint64_t what = count ? randomUniform(4) : 0;
    if (what == 0) {
        listpackAppend(&r.buffer, &item, 1);
        listpackAppend(&want, &item, 1);
    } else if (what == 1) {
        (void)listpackReplace(&r.buffer, listpackSeek(r.buffer.bytes, at), &item);
        (void)listpackReplace(&want, listpackSeek(want.bytes, at), &item);
    } else if (what == 2) {
        (void)listpackInsert(&r.buffer, listpackSeek(r.buffer.bytes, at), &item, 1);
        (void)listpackInsert(&want, listpackSeek(want.bytes, at), &item, 1);
    } else {
        size_t gone = 1 + (size_t)randomUniform(5);
        listpackDeleteRange(&r.buffer, at, gone);
        listpackDeleteRange(&want, at, gone);
    }
    assert_ptr_equal(r.buffer.bytes, objectPacked(r.o));
    return r.o;
}

static robj *stepOther(robj *o) {
    if (randomUniform(3) == 0) {
        static const int64_t times[] = {OBJECT_NO_EXPIRE, 1700000000000, INT64_MAX};
        want_expire = times[randomUniform(3)];
        return objectSetExpire(o, want_expire);
    }
    strClear(&want_key);
    for (uint64_t i = randomUniform(200); i > 0; i--) strAppendByte(&want_key, 'k');
    if (randomUniform(2)) return objectRename(o, strSlice(&want_key));
    robj *copy = objectCopy(o, strSlice(&want_key), objectAccessOf(77));
    objectFree(o);
    return copy;
}

static void test_packed_values_grow_and_shrink_in_their_objects(void **state) {
    testSeed(__func__);
    for (int history = 0; history < HISTORIES; history++) {
        want = packBufferHeap(listpackNew());
        want_key = strNew(SLICE("key"));
        want_expire = OBJECT_NO_EXPIRE;
        robj *o = objectNewPacked(strSlice(&want_key), TYPE_HASH, FORM_PACKED,
                                  sliceMake(want.bytes, LISTPACK_EMPTY_SIZE), OBJECT_NO_EXPIRE,
                                  objectAccessOf(77));
        for (int step = 0; step < STEPS; step++) {
            o = randomUniform(10) ? stepChange(o) : stepOther(o);
            inspect(o);
        }
        objectFree(o);
        memFree(want.bytes);
        strFree(&want_key);
    }
}

/* Around the lengths that need a longer length field. */
static void test_every_size_keeps_its_bytes(void **state) {
    static char bytes[20000];
    for (size_t i = 0; i < sizeof(bytes); i++) bytes[i] = (char)(i * 7);
    for (size_t len = 8; len < sizeof(bytes);
         len += len < 400 || (len > 16300 && len < 16500) ? 1 : 111) {
        robj *o = objectNewPacked(SLICE("k"), TYPE_SET, FORM_PACKED_INTS, sliceMake(bytes, len),
                                  OBJECT_NO_EXPIRE, 1);
        assert_memory_equal(objectPacked(o), bytes, len);
        assert_true(slabSameClass(objectSize(o), objectSize(o)));
        o = objectSetPacked(o, FORM_PACKED, sliceMake(bytes, len - 1));
        assert_int_equal(objectForm(o), FORM_PACKED);
        assert_memory_equal(objectPacked(o), bytes, len - 1);
        objectFree(o);
    }
}

static void test_a_value_moves_behind_a_pointer(void **state) {
    int elsewhere;
    robj *o = objectNewPacked(SLICE("key"), TYPE_HASH, FORM_PACKED, SLICE("1234567"), 5000,
                              objectAccessOf(3));
    o = objectUnpack(o, &elsewhere);
    assert_ptr_equal(objectPointer(o), &elsewhere);
    assert_int_equal(objectForm(o), FORM_POINTER);
    assert_int_equal(objectType(o), TYPE_HASH);
    assert_int_equal(objectExpire(o), 5000);
    assert_int_equal(objectLru(o), 3);
    slabFree(o, objectSize(o));
}

int test_packed(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_packed_values_grow_and_shrink_in_their_objects),
        cmocka_unit_test(test_every_size_keeps_its_bytes),
        cmocka_unit_test(test_a_value_moves_behind_a_pointer),
    };
    return cmocka_run_group_tests_name("packed", tests, NULL, testNoObjects);
}
