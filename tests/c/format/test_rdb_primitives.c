/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Lengths and strings of the RDB format, compared with the bytes in the format's description. */
#include "format_test.h"

#include <stdlib.h>

static str written;

static rdbWriter writer(bool compress) {
    static rdbStrSink sink;
    strClear(&written);
    rdbStrSinkInit(&sink, &written);
    rdbWriter w;
    rdbWriterInit(&w, &sink.sink, true, compress);
    return w;
}

static void assertWritten(rdbWriter *w, const char *hex) {
    assert_int_equal(rdbWriterFlush(w), OK);
    str expected = testBytes(hex);
    assert_int_equal(written.len, expected.len);
    assert_memory_equal(written.ptr, expected.ptr, expected.len);
    strFree(&expected);
    rdbWriterClear(w);
}

static void lengths_take_the_fewest_bytes(void **state) {
    (void)state;
    static const struct {
        uint64_t len;
        const char *hex;
    } cases[] = {{0, "00"},
                 {63, "3f"},
                 {64, "4040"},
                 {300, "412c"},
                 {16383, "7fff"},
                 {16384, "8000004000"},
                 {UINT32_MAX, "80ffffffff"},
                 {(uint64_t)1 << 32, "810000000100000000"},
                 {UINT64_MAX, "81ffffffffffffffff"}};
    for (size_t i = 0; i < COUNT_OF(cases); i++) {
        rdbWriter w = writer(false);
        rdbWriteLength(&w, cases[i].len);
        assertWritten(&w, cases[i].hex);
        rdbSliceSource source;
        rdbSliceSourceInit(&source, strSlice(&written));
        rdbReader r;
        rdbReaderInit(&r, &source.source, false);
        uint64_t len;
        assert_int_equal(rdbReadLength(&r, &len), OK);
        assert_true(len == cases[i].len);
        assert_int_equal(rdbReadLength(&r, &len), ERR_IO);
        assert_true(r.short_read);
        rdbReaderClear(&r);
    }
}

static void strings_have_the_shortest_encoding(void **state) {
    (void)state;
    static const struct {
        const char *text, *hex;
    } cases[] = {
        {"", "00"},
        {"abc", "03616263"},
        {"7", "c007"},
        {"-1", "c0ff"},
        {"-129", "c17fff"},
        {"300", "c12c01"},
        {"65536", "c200000100"},
        {"2147483647", "c2ffffff7f"},
        {"2147483648", "0a32313437343833363438"},
        {"-0", "022d30"},
        {"007", "03303037"},
        {"aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa", "c3 09 28 01 6161 e0 1b 00 01 6161"},
        {"aaaaaaaaaaaaaaaaaaaa", "14 6161616161616161616161616161616161616161"},
    };
    for (size_t i = 0; i < COUNT_OF(cases); i++) {
        rdbWriter w = writer(true);
        rdbWriteString(&w, sliceOf(cases[i].text));
        assertWritten(&w, cases[i].hex);
        rdbSliceSource source;
        rdbSliceSourceInit(&source, strSlice(&written));
        rdbReader r;
        rdbReaderInit(&r, &source.source, false);
        slice text;
        assert_int_equal(rdbReadString(&r, &text), OK);
        assert_true(sliceEqual(text, sliceOf(cases[i].text)));
        rdbReaderClear(&r);
    }
}

/* After incompressible strings, fewer attempts are made, but compressible ones are noticed again;
 * both are read back. */
static void compression_is_tried_again(void **state) {
    (void)state;
    enum { LEN = 1000, NOISE = 300, PLAIN = 200 };
    static char noise[LEN], plain[LEN];
    for (int i = 0; i < LEN; i++)
        noise[i] = (char)((unsigned)i * (unsigned)i * 7919u >> 3 ^ (unsigned)i * 131u);
    rdbWriter w = writer(true);
    for (int i = 0; i < NOISE; i++) rdbWriteString(&w, sliceMake(noise, LEN));
    uint64_t before = rdbWriterOffset(&w);
    assert_true(before >= (uint64_t)NOISE * LEN);
    for (int i = 0; i < PLAIN; i++) rdbWriteString(&w, sliceMake(plain, LEN));
    uint64_t took = rdbWriterOffset(&w) - before;
    assert_in_range(took, 0,
                    70 * LEN); /* at most 64 strings are skipped, the others take some 20 bytes */
    assert_int_equal(rdbWriterFlush(&w), OK);
    rdbWriterClear(&w);
    rdbSliceSource source;
    rdbSliceSourceInit(&source, strSlice(&written));
    rdbReader r;
    rdbReaderInit(&r, &source.source, false);
    for (int i = 0; i < NOISE + PLAIN; i++) {
        slice text;
        assert_int_equal(rdbReadString(&r, &text), OK);
        assert_true(sliceEqual(text, sliceMake(i < NOISE ? noise : plain, LEN)));
    }
    rdbReaderClear(&r);
}

static void a_wrong_length_costs_little_memory(void **state) {
    (void)state;
    static const char *const cases[] = {
        "81ffffffffffffffff 6161",
        "80ffffffff 61", /* plain */
        "c3 81ffffffffffffffff 05 61",
        "c3 05 80ffffffff 6161616161",
        "c3 03 00 000061",
        "c3 03 05 e00000",
        "c4 00",
        "82 00",
        "c3 c0 00",
    };
    for (size_t i = 0; i < COUNT_OF(cases); i++) {
        str bytes = testBytes(cases[i]);
        rdbSliceSource source;
        rdbSliceSourceInit(&source, strSlice(&bytes));
        rdbReader r;
        rdbReaderInit(&r, &source.source, false);
        size_t before = memUsed();
        slice text;
        assert_int_not_equal(rdbReadString(&r, &text), OK);
        assert_true(r.why.text[0] != 0);
        assert_true(memUsed() - before < 8 * 1024 * 1024);
        rdbReaderClear(&r);
        strFree(&bytes);
    }
}

static void the_checksum_covers_what_was_consumed(void **state) {
    (void)state;
    rdbWriter w = writer(false);
    rdbWriteBytes(&w, "123456789", 9);
    assert_true(rdbWriterChecksum(&w) == 0xe9c6d914c4b8d9caULL);
    rdbWriterClear(&w);
    rdbSliceSource source;
    rdbSliceSourceInit(&source, SLICE("123456789 and more"));
    rdbReader r;
    rdbReaderInit(&r, &source.source, true);
    char bytes[9];
    assert_int_equal(rdbReadBytes(&r, bytes, 4), OK);
    (void)rdbReaderChecksum(&r); /* while there is more to read */
    assert_int_equal(rdbReadBytes(&r, bytes, 5), OK);
    assert_true(rdbReaderChecksum(&r) == 0xe9c6d914c4b8d9caULL);
    assert_int_equal(rdbReaderOffset(&r), 9);
    rdbReaderClear(&r);
}

static status failing(rdbSink *sink, const void *bytes, size_t len, reason *why) {
    (void)sink;
    (void)bytes;
    (void)len;
    return reasonSet(why, ERR_IO, "no space");
}

static void a_failure_of_the_sink_is_kept(void **state) {
    (void)state;
    rdbSink sink = {.write = failing};
    rdbWriter w;
    rdbWriterInit(&w, &sink, true, true);
    for (int i = 0; i < 100000; i++) rdbWriteString(&w, SLICE("some text of this and that"));
    assert_int_equal(rdbWriterFlush(&w), ERR_IO);
    assert_string_equal(w.why.text, "no space");
    rdbWriterClear(&w);
}

int test_rdb_primitives(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(lengths_take_the_fewest_bytes),
        cmocka_unit_test(strings_have_the_shortest_encoding),
        cmocka_unit_test(compression_is_tried_again),
        cmocka_unit_test(a_wrong_length_costs_little_memory),
        cmocka_unit_test(the_checksum_covers_what_was_consumed),
        cmocka_unit_test(a_failure_of_the_sink_is_kept),
    };
    int failed = cmocka_run_group_tests_name("format/rdb primitives", tests, NULL, NULL);
    strFree(&written);
    return failed;
}
