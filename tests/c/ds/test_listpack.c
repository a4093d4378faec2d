/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Tests of ds/listpack: random histories against an array of texts, the bytes of the disk format,
 * and bytes of strangers. */
#include "ds_test.h"

#include <stdio.h>
#include <stdlib.h>

#include "base/alloc.h"
#include "base/number.h"
#include "base/random.h"
#include "ds/listpack.h"

enum { MODEL_MAX = 400, TEXT_MAX = 20000 };

typedef struct model {
    char *text[MODEL_MAX];
    size_t len[MODEL_MAX];
    size_t count;
} model;

static model want;
static packBuffer buffer;

static void modelRemove(size_t at) {
    memFree(want.text[at]);
    for (size_t i = at; i + 1 < want.count; i++) {
        want.text[i] = want.text[i + 1];
        want.len[i] = want.len[i + 1];
    }
    want.count--;
}

static void modelInsert(size_t at, slice text) {
    for (size_t i = want.count; i > at; i--) {
        want.text[i] = want.text[i - 1];
        want.len[i] = want.len[i - 1];
    }
    want.text[at] = memDup(text.ptr, text.len);
    want.len[at] = text.len;
    want.count++;
}

static slice wanted(size_t i) { return sliceMake(want.text[i], want.len[i]); }

/* Numbers around every limit of the format, texts around every limit of length, and things in
 * between. */
static slice randomText(char *to) {
    static const int64_t limits[] = {
        0,       127,        128,        4095,        4096,        32767,    32768, 8388607,
        8388608, 2147483647, 2147483648, INT64_MAX,   -1,          -4096,    -4097, -32768,
        -32769,  -8388608,   -8388609,   -2147483648, -2147483649, INT64_MIN};
    static const size_t lens[] = {0, 1, 63, 64, 126, 127, 128, 4095, 4096, 16378, 16379, 16384};
    size_t len;
    switch (randomUniform(5)) {
    case 0: return sliceMake(to, numberPrintInt(to, limits[randomUniform(COUNT_OF(limits))]));
    case 1: return sliceMake(to, numberPrintInt(to, (int64_t)randomUniform(20000) - 10000));
    case 2: len = lens[randomUniform(COUNT_OF(lens))]; break;
    default: len = (size_t)randomUniform(30);
    }
    for (size_t i = 0; i < len; i++) to[i] = (char)('a' + randomUniform(3));
    /* Text that is nearly a number stays text. */
    if (len > 1 && randomUniform(4) == 0) memcpy(to, randomUniform(2) ? "01" : "-0", 2);
    return sliceMake(to, len);
}

static void inspect(void) {
    const uint8_t *lp = buffer.bytes;
    char digits[NUMBER_TEXT_MAX];
    assert_true(listpackIsValid(lp, listpackSize(lp), true, NULL, NULL));
    assert_int_equal(listpackCount(lp), want.count);
    const uint8_t *at = listpackFirst(lp);
    for (size_t i = 0; i < want.count; i++) {
        assert_true(sliceEqual(listpackGetText(at, digits), wanted(i)));
        assert_ptr_equal(listpackSeek(lp, (int64_t)i), at);
        assert_ptr_equal(listpackSeek(lp, (int64_t)i - (int64_t)want.count), at);
        at = listpackNext(lp, at);
    }
    assert_null(at);
    at = listpackLast(lp);
    for (size_t i = want.count; i-- > 0; at = listpackPrev(lp, at))
        assert_true(sliceEqual(listpackGetText(at, digits), wanted(i)));
    assert_null(at);
    assert_null(listpackSeek(lp, (int64_t)want.count));
    assert_null(listpackSeek(lp, -(int64_t)want.count - 1));
}

static void inspectFind(slice text) {
    unsigned skip = (unsigned)randomUniform(3);
    size_t from = want.count ? (size_t)randomUniform(want.count) : 0;
    const uint8_t *at = want.count ? listpackSeek(buffer.bytes, (int64_t)from) : NULL;
    listpackItem item = listpackItemOf(text);
    const uint8_t *found = listpackFind(buffer.bytes, at, &item, skip);
    for (; from < want.count; from += skip + 1) {
        if (!sliceEqual(wanted(from), text)) continue;
        assert_ptr_equal(found, listpackSeek(buffer.bytes, (int64_t)from));
        assert_true(listpackEquals(found, &item));
        return;
    }
    assert_null(found);
}

static void stepInsert(void) {
    char text[3][TEXT_MAX];
    listpackItem items[3];
    size_t count = 1 + (size_t)randomUniform(3), at = (size_t)randomUniform(want.count + 1);
    if (want.count + count > MODEL_MAX) return;
    switch (randomUniform(3)) {
    case 0: at = 0; break;
    case 1: at = want.count; break;
    default: break;
    }
    for (size_t i = 0; i < count; i++) {
        slice s = randomText(text[i]);
        items[i] = listpackItemOf(s);
        modelInsert(at + i, s);
    }
    if (at == 0) {
        listpackPrepend(&buffer, items, count);
    } else if (at + count == want.count) {
        listpackAppend(&buffer, items, count);
    } else {
        const uint8_t *put =
            listpackInsert(&buffer, listpackSeek(buffer.bytes, (int64_t)at), items, count);
        assert_ptr_equal(put, listpackSeek(buffer.bytes, (int64_t)at));
    }
}

static void stepDelete(void) {
    size_t at = (size_t)randomUniform(want.count), count = (size_t)randomUniform(4);
    size_t gone = count < want.count - at ? count : want.count - at;
    if (randomUniform(2)) {
        listpackDeleteRange(
            &buffer, randomUniform(2) ? (int64_t)at : (int64_t)at - (int64_t)want.count, count);
    } else {
        const uint8_t *next =
            listpackDelete(&buffer, listpackSeek(buffer.bytes, (int64_t)at), count);
        for (size_t i = 0; i < gone; i++) modelRemove(at);
        assert_ptr_equal(next, listpackSeek(buffer.bytes, (int64_t)at));
        return;
    }
    for (size_t i = 0; i < gone; i++) modelRemove(at);
}

static void stepReplace(void) {
    char text[TEXT_MAX];
    slice s = randomText(text);
    size_t at = (size_t)randomUniform(want.count);
    listpackItem item = listpackItemOf(s);
    const uint8_t *put = listpackReplace(&buffer, listpackSeek(buffer.bytes, (int64_t)at), &item);
    assert_ptr_equal(put, listpackSeek(buffer.bytes, (int64_t)at));
    modelRemove(at);
    modelInsert(at, s);
}

/* Random groups go, first or last, neighbours or not. */
static void stepDeleteMany(void) {
    const uint8_t *places[MODEL_MAX], *chosen[MODEL_MAX];
    unsigned width = 1 + (unsigned)randomUniform(2);
    size_t groups = (want.count + width - 1) / width, n = 0, index[MODEL_MAX];
    listpackPositions(buffer.bytes, width, places);
    for (size_t i = 0; i < groups; i++) {
        if (randomUniform(4)) continue;
        index[n] = i;
        chosen[n++] = places[i];
    }
    listpackDeleteMany(&buffer, chosen, n, width);
    for (size_t i = n; i-- > 0;) {
        size_t at = index[i] * width;
        size_t gone = at + width <= want.count ? width : 1;
        /* After a truncated group, others have been removed already. */
        if (at + gone > want.count) gone = want.count - at;
        while (gone-- > 0) modelRemove(at);
    }
}

static void stepMerge(void) {
    packBuffer other = packBufferHeap(listpackNew());
    char text[TEXT_MAX];
    bool before = randomUniform(2);
    for (size_t i = 0; i < 3 && want.count < MODEL_MAX; i++) {
        slice s = randomText(text);
        listpackItem item = listpackItemOf(s);
        listpackAppend(&other, &item, 1);
        modelInsert(before ? i : want.count, s);
    }
    listpackMerge(&buffer, other.bytes, before);
    memFree(other.bytes);
}

/* Adds and removes entries at the front in place, in a block with room before the listpack. */
static void stepFront(void) {
    char text[TEXT_MAX];
    if (want.count == MODEL_MAX) return;
    slice s = randomText(text);
    listpackItem item = listpackItemOf(s);
    size_t gap = listpackItemSize(&item), size = listpackSize(buffer.bytes);
    uint8_t *block = memAlloc(gap + size);
    memcpy(block + gap, buffer.bytes, size);
    memFree(buffer.bytes);
    assert_ptr_equal(listpackExtendFront(block + gap, &item), block);
    modelInsert(0, s);
    size_t count = (size_t)randomUniform(randomUniform(4) ? 2 : want.count + 1);
    uint8_t *lp = listpackTrimFront(block, count);
    assert_ptr_equal(lp + listpackSize(lp), block + gap + size);
    while (count-- > 0) modelRemove(0);
    buffer = packBufferHeap(memDup(lp, listpackSize(lp)));
    memFree(block);
}

static void clear(void) {
    while (want.count) modelRemove(want.count - 1);
    memFree(buffer.bytes);
}

static void test_agrees_with_an_array(void **state) {
    testSeed(__func__);
    for (int history = 0; history < 60; history++) {
        buffer = packBufferHeap(listpackNew());
        for (int step = 0; step < 80; step++) {
            char text[TEXT_MAX];
            switch (want.count ? randomUniform(10) : 0) {
            default: stepInsert(); break;
            case 4: stepDelete(); break;
            case 5: stepReplace(); break;
            case 6: stepMerge(); break;
            case 7: stepDeleteMany(); break;
            case 8: stepFront(); break;
            }
            inspect();
            bool known = want.count && randomUniform(2);
            inspectFind(known ? wanted((size_t)randomUniform(want.count)) : randomText(text));
        }
        clear();
    }
}

static void appendText(const char *text) {
    listpackItem item = listpackItemOf(sliceOf(text));
    listpackAppend(&buffer, &item, 1);
}

static void test_has_the_bytes_of_the_format(void **state) {
    buffer = packBufferHeap(listpackNew());
    static const char *const texts[] = {"a", "5", "-1", "1000", "70000", "01", "9000000000"};
    for (size_t i = 0; i < COUNT_OF(texts); i++) appendText(texts[i]);
    static const uint8_t bytes[] = {43,   0,    0,    0,    7,    0,    0x81, 'a', 2,
                                    5,    1,    0xdf, 0xff, 2,    0xc3, 0xe8, 2,   0xf2,
                                    0x70, 0x11, 0x01, 4,    0x82, '0',  '1',  3,   0xf4,
                                    0x00, 0x1a, 0x71, 0x18, 2,    0,    0,    0,   9};
    assert_int_equal(listpackSize(buffer.bytes), sizeof(bytes) + 1);
    assert_memory_equal(buffer.bytes + 6, bytes + 6, sizeof(bytes) - 6);
    assert_int_equal(buffer.bytes[sizeof(bytes)], 0xff);
    memFree(buffer.bytes);
}

/* Beyond what two bytes can count. */
/* Entries that were stored without their trailing lengths make the same listpack again. */
static void test_bodies_make_the_same_listpack(void **state) {
    (void)state; /* nothing is set up */
    static const size_t lens[] = {0, 1, 62, 63, 64, 127, 128, 4095, 4096, 16384};
    static const int64_t numbers[] = {0,         127,       128,       4095,      -4096,
                                      -4097,     32767,     32768,     8388607,   -8388609,
                                      INT32_MAX, INT32_MIN, INT64_MAX, INT64_MIN, 4096};
    static char text[16384];
    static uint8_t bodies[2 * sizeof(text)], built[4 * sizeof(text)];
    memset(text, 'x', sizeof(text));
    packBuffer whole = packBufferHeap(listpackNew());
    listpackItem items[COUNT_OF(lens) + COUNT_OF(numbers)];
    for (size_t i = 0; i < COUNT_OF(lens); i++) items[i] = listpackItemOf(sliceMake(text, lens[i]));
    for (size_t i = 0; i < COUNT_OF(numbers); i++)
        items[COUNT_OF(lens) + i] = listpackItemInt(numbers[i]);
    listpackAppend(&whole, items, COUNT_OF(items));
    uint8_t *end = bodies;
    for (size_t i = 0; i < COUNT_OF(items); i++) {
        uint8_t *next = listpackWriteBody(end, &items[i]);
        assert_int_equal(next - end, listpackBodySize(&items[i]));
        assert_ptr_equal(listpackSkipBody(end), next);
        end = next;
    }
    uint8_t *to = built + LISTPACK_HEADER;
    for (const uint8_t *at = bodies; at < end;) {
        listpackItem item;
        const uint8_t *next = listpackReadBody(at, &item);
        size_t len = (size_t)(next - at);
        memcpy(to, at, len);
        to = listpackWriteBack(to + len, len);
        at = next;
    }
    listpackFinish(built, to, COUNT_OF(items));
    assert_int_equal(listpackSize(built), listpackSize(whole.bytes));
    assert_memory_equal(built, whole.bytes, listpackSize(built));
    memFree(whole.bytes);
}

static void test_counts_more_than_65534_entries(void **state) {
    buffer = packBufferHeap(listpackNew());
    listpackItem items[1000];
    for (int i = 0; i < 1000; i++) items[i] = listpackItemInt(i);
    for (int i = 0; i < 66; i++) listpackAppend(&buffer, items, 1000);
    assert_int_equal(listpackCount(buffer.bytes), 66000);
    assert_int_equal(loadU16(buffer.bytes + 4), LISTPACK_COUNT_UNKNOWN);
    assert_int_equal(listpackGet(listpackSeek(buffer.bytes, 65999)).number, 999);
    assert_null(listpackSeek(buffer.bytes, 66000));
    assert_true(listpackIsValid(buffer.bytes, listpackSize(buffer.bytes), true, NULL, NULL));
    listpackDeleteRange(&buffer, 0, 465);
    assert_int_equal(loadU16(buffer.bytes + 4), LISTPACK_COUNT_UNKNOWN);
    listpackDeleteRange(&buffer, -1, 1);
    assert_int_equal(loadU16(buffer.bytes + 4), 65534);
    memFree(buffer.bytes);
}

/* A number written longer than need be, or as text, is found by its digits. */
static void test_finds_numbers_in_other_encodings(void **state) {
    static const uint8_t bytes[] = {19, 0, 0, 0,    3,   0, 0xf3, 5, 0,
                                    0,  0, 5, 0x81, '7', 2, 0xf1, 9, 0};
    uint8_t lp[sizeof(bytes) + 2];
    memcpy(lp, bytes, sizeof(bytes));
    lp[18] = 3;
    lp[19] = 0xff;
    lp[0] = 20;
    assert_true(listpackIsValid(lp, 20, true, NULL, NULL));
    static const char *const texts[] = {"5", "7", "9"};
    for (size_t i = 0; i < 3; i++) {
        listpackItem item = listpackItemOf(sliceOf(texts[i]));
        assert_ptr_equal(listpackFind(lp, NULL, &item, 0), listpackSeek(lp, (int64_t)i));
    }
    listpackItem none = listpackItemOf(SLICE("6"));
    assert_null(listpackFind(lp, NULL, &none, 0));
}

static bool countPick(void *arg, const uint8_t *at) {
    unsigned *seen = arg;
    seen[listpackGet(at).number]++;
    return true;
}

static void test_random_entries_are_fair(void **state) {
    testSeed(__func__);
    enum { GROUPS = 10, ROUNDS = 20000, WANT = 3 };
    buffer = packBufferHeap(listpackNew());
    for (int64_t i = 0; i < GROUPS; i++) {
        listpackItem pair[2] = {listpackItemInt(i), listpackItemInt(1000)};
        listpackAppend(&buffer, pair, 2);
    }
    unsigned one[GROUPS] = {0}, many[GROUPS] = {0};
    for (int i = 0; i < ROUNDS; i++) {
        one[listpackGet(listpackRandom(buffer.bytes, 2)).number]++;
        listpackRandomUnique(buffer.bytes, 2, WANT, countPick, many);
    }
    for (int i = 0; i < GROUPS; i++) {
        assert_in_range(one[i], ROUNDS / GROUPS * 8 / 10, ROUNDS / GROUPS * 12 / 10);
        assert_in_range(many[i], ROUNDS * WANT / GROUPS * 8 / 10, ROUNDS * WANT / GROUPS * 12 / 10);
    }
    unsigned all[GROUPS] = {0};
    listpackRandomUnique(buffer.bytes, 2, 100, countPick, all);
    for (int i = 0; i < GROUPS; i++) assert_int_equal(all[i], 1);
    memFree(buffer.bytes);
    uint8_t empty[LISTPACK_EMPTY_SIZE];
    listpackInit(empty);
    assert_null(listpackRandom(empty, 1));
}

/* Valid listpacks with changed bytes are refused, or can be iterated within their bounds. */
static void test_hostile_bytes_are_refused_or_harmless(void **state) {
    testSeed(__func__);
    unsigned refused = 0, taken = 0;
    for (int round = 0; round < 3000; round++) {
        buffer = packBufferHeap(listpackNew());
        char text[TEXT_MAX];
        for (uint64_t i = randomUniform(6); i > 0; i--) {
            slice s = randomText(text);
            listpackItem item = listpackItemOf(sliceMake(s.ptr, s.len < 300 ? s.len : 300));
            listpackAppend(&buffer, &item, 1);
        }
        size_t size = listpackSize(buffer.bytes);
        if (randomUniform(4) == 0) {
            size = (size_t)randomUniform(size + 1);
            /* A size that claims to be right, so that the entries are looked at. */
            if (size >= 7) storeU32(buffer.bytes, (uint32_t)size);
        }
        for (uint64_t i = 1 + randomUniform(2); i > 0 && size; i--)
            buffer.bytes[randomUniform(size)] = (uint8_t)randomNext();
        uint8_t *exact = memAlloc(size ? size : 1); /* ASAN guards its end */
        memcpy(exact, buffer.bytes, size);
        if (listpackIsValid(exact, size, true, NULL, NULL)) {
            taken++;
            size_t count = 0;
            for (const uint8_t *at = listpackFirst(exact); at; at = listpackNext(exact, at))
                count++;
            for (const uint8_t *at = listpackLast(exact); at; at = listpackPrev(exact, at)) count--;
            assert_int_equal(count, 0);
        } else {
            refused++;
        }
        memFree(exact);
        memFree(buffer.bytes);
    }
    assert_true(refused > 100);
    assert_true(taken > 100);
}

/* A listpack of texts of these lengths, whose entries of 2^14 - 1 bytes have a trailing length of
 * three bytes. */
static uint8_t *wideListpack(const size_t *lens, size_t count, size_t *size) {
    uint8_t *lp = memAlloc(LISTPACK_EMPTY_SIZE + count * (TEXT_MAX + 10)),
            *to = lp + LISTPACK_HEADER;
    char text[TEXT_MAX];
    memset(text, 'x', sizeof(text));
    for (size_t i = 0; i < count; i++) {
        listpackItem item = {.ptr = text, .len = lens[i]};
        size_t body = listpackBodySize(&item);
        to = listpackWriteBody(to, &item);
        if (body == 16383) *to++ = 0;
        to = listpackWriteBack(to, body);
        if (body == 16383) to[-2] = 0xff;
    }
    listpackFinish(lp, to, count);
    *size = listpackSize(lp);
    return lp;
}

static void test_wide_lengths_become_narrow(void **state) {
    testSeed(__func__);
    for (int round = 0; round < 300; round++) {
        size_t lens[5], size, wide = 0, count = 1 + randomUniform(5);
        for (size_t i = 0; i < count; i++) {
            lens[i] = randomUniform(2) ? 16378 : randomUniform(TEXT_MAX);
            wide += lens[i] == 16378;
        }
        uint8_t *lp = wideListpack(lens, count, &size);
        assert_int_equal(listpackIsValid(lp, size, true, NULL, NULL), wide == 0);
        size_t cut = randomUniform(4) ? size : randomUniform(size);
        uint8_t *exact = (uint8_t *)memDup(lp, cut); /* ASAN guards its end */
        if (cut >= LISTPACK_EMPTY_SIZE) storeU32(exact, (uint32_t)cut);
        if (cut < size && cut > 0) exact[cut - 1] = 0xff;
        size_t narrow = listpackNarrow(exact, cut);
        if (cut == size) {
            assert_int_equal(narrow, size - wide);
            assert_true(listpackIsValid(exact, narrow, true, NULL, NULL));
            const uint8_t *at = listpackFirst(exact);
            for (size_t i = 0; i < count; i++, at = listpackNext(exact, at))
                assert_int_equal(listpackGet(at).len, lens[i]);
            assert_null(at);
        }
        memFree(exact);
        memFree(lp);
    }
}

int test_listpack(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_agrees_with_an_array),
        cmocka_unit_test(test_has_the_bytes_of_the_format),
        cmocka_unit_test(test_bodies_make_the_same_listpack),
        cmocka_unit_test(test_counts_more_than_65534_entries),
        cmocka_unit_test(test_finds_numbers_in_other_encodings),
        cmocka_unit_test(test_random_entries_are_fair),
        cmocka_unit_test(test_wide_lengths_become_narrow),
        cmocka_unit_test(test_hostile_bytes_are_refused_or_harmless),
    };
    return cmocka_run_group_tests_name("listpack", tests, NULL, NULL);
}
