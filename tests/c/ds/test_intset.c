/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Tests of ds/intset: random histories against a plain sorted array, the bytes of the format,
 * strangers' bytes. */
#include "ds_test.h"

#include "base/alloc.h"
#include "base/random.h"
#include "ds/intset.h"

enum { MODEL_MAX = 300 };

static int64_t want[MODEL_MAX];
static size_t want_count;
static packBuffer buffer;

static void begin(void) {
    uint8_t *set = memAlloc(INTSET_HEADER);
    intsetInit(set);
    buffer = packBufferHeap(set);
    want_count = 0;
}

static size_t placeOf(int64_t v) {
    size_t i = 0;
    while (i < want_count && want[i] < v) i++;
    return i;
}

static void inspect(void) {
    assert_int_equal(intsetCount(buffer.bytes), want_count);
    for (size_t i = 0; i < want_count; i++) {
        assert_true(intsetGet(buffer.bytes, i) == want[i]);
        size_t at;
        assert_true(intsetFind(buffer.bytes, want[i], &at));
        assert_int_equal(at, i);
    }
    assert_int_equal(intsetIsValid(buffer.bytes, intsetSize(buffer.bytes), true), want_count > 0);
}

static int64_t randomValue(int bits) {
    int64_t v = (int64_t)randomNext() >> (64 - bits);
    if (randomUniform(20) == 0) v = bits == 64 ? INT64_MIN : -(INT64_C(1) << (bits - 1));
    return v;
}

static void test_agrees_with_an_array(void **state) {
    testSeed(__func__);
    static const int widths[] = {7, 16, 17, 32, 33, 64};
    for (int history = 0; history < 60; history++) {
        begin();
        for (int step = 0; step < 200; step++) {
            /* Wider ones come later, so that every widening is met with entries. */
            int64_t v = randomValue(widths[randomUniform(1 + (uint64_t)step / 40 % 6)]);
            size_t at = placeOf(v), found;
            bool there = at < want_count && want[at] == v;
            assert_int_equal(intsetFind(buffer.bytes, v, &found), there);
            assert_int_equal(found, at);
            if (randomUniform(3)) {
                if (want_count == MODEL_MAX) continue;
                assert_int_equal(intsetAdd(&buffer, v), !there);
                if (there) continue;
                memmove(want + at + 1, want + at, (want_count - at) * sizeof(*want));
                want[at] = v;
                want_count++;
            } else {
                if (want_count && randomUniform(2)) {
                    at = (size_t)randomUniform(want_count);
                    v = want[at];
                    there = true;
                }
                assert_int_equal(intsetRemove(&buffer, v), there);
                if (!there) continue;
                memmove(want + at, want + at + 1, (want_count - at - 1) * sizeof(*want));
                want_count--;
            }
            inspect();
        }
        memFree(buffer.bytes);
    }
}

static void test_has_the_bytes_of_the_format(void **state) {
    begin();
    assert_true(intsetAdd(&buffer, 3));
    assert_true(intsetAdd(&buffer, -1));
    static const uint8_t two[] = {2, 0, 0, 0, 2, 0, 0, 0, 0xff, 0xff, 3, 0};
    assert_int_equal(intsetSize(buffer.bytes), sizeof(two));
    assert_memory_equal(buffer.bytes, two, sizeof(two));
    assert_true(intsetAdd(&buffer, 70000));
    static const uint8_t four[] = {4,    0,    0, 0, 3, 0, 0,    0,    0xff, 0xff,
                                   0xff, 0xff, 3, 0, 0, 0, 0x70, 0x11, 1,    0};
    assert_int_equal(intsetSize(buffer.bytes), sizeof(four));
    assert_memory_equal(buffer.bytes, four, sizeof(four));
    memFree(buffer.bytes);
}

static void test_untrusted_bytes_are_validated(void **state) {
    uint8_t set[] = {2, 0, 0, 0, 2, 0, 0, 0, 1, 0, 3, 0};
    assert_true(intsetIsValid(set, sizeof(set), true));
    assert_false(intsetIsValid(set, sizeof(set) - 1, true));
    assert_false(intsetIsValid(set, 7, true));
    set[8] = 3;
    assert_false(intsetIsValid(set, sizeof(set), true));
    assert_true(intsetIsValid(set, sizeof(set), false));
    set[0] = 3;
    assert_false(intsetIsValid(set, sizeof(set), false));
    set[0] = 2;
    set[4] = 0;
    assert_false(intsetIsValid(set, INTSET_HEADER, false));
    set[7] = 0x80; /* a count whose bytes do not fit a size of 32 bits */
    set[0] = 8;
    assert_false(intsetIsValid(set, sizeof(set), true));
}

int test_intset(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_agrees_with_an_array),
        cmocka_unit_test(test_has_the_bytes_of_the_format),
        cmocka_unit_test(test_untrusted_bytes_are_validated),
    };
    return cmocka_run_group_tests_name("intset", tests, NULL, NULL);
}
