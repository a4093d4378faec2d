/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Records of append only files: complete, cut at every byte, and invalid ones. */
#include "format_test.h"

#include "format/aof_reader.h"

/* A source that gives `step` bytes at a time. */
typedef struct stepSource {
    rdbSource source;
    slice rest;
    size_t step;
} stepSource;

static status readStep(rdbSource *source, void *dst, size_t cap, size_t *len, reason *why) {
    (void)why;
    stepSource *s = (stepSource *)source;
    *len = sizeMin(sizeMin(s->step, cap), s->rest.len);
    memcpy(dst, s->rest.ptr, *len);
    s->rest = sliceMake(s->rest.ptr + *len, s->rest.len - *len);
    return OK;
}

static stepSource source(slice bytes, size_t step) {
    return (stepSource){.source = {.read = readStep}, .rest = bytes, .step = step};
}

static const char sample[] =
    "#TS:1700000000\r\n*2\r\n$6\r\nSELECT\r\n$1\r\n0\r\n"
    "*3\r\n$3\r\nSET\r\n$1\r\nk\r\n$5\r\na\r\nb\n\r\n"
    "*1\r\n$5\r\nMULTI\r\n*3\r\n$3\r\nset\r\n$1\r\na\r\n$0\r\n\r\n*1\r\n$4\r\nEXEC\r\n"
    "*2\r\n$4\r\nINCR\r\n$1\r\nn\r\n";

/* Offsets after complete items outside of MULTI. */
static const size_t borders[] = {0, 16, 39, 70, 125, 146};

static void records_are_read_in_steps_of_any_size(void **state) {
    (void)state;
    static const int counts[] = {0, 2, 3, 1, 3, 1, 2};
    for (size_t step = 1; step < sizeof(sample); step++) {
        stepSource from = source(SLICE(sample), step);
        aofReader r;
        aofReaderInit(&r, &from.source, 100);
        for (size_t i = 0; i < COUNT_OF(counts); i++) {
            assert_int_equal(aofReaderNext(&r), i == 0 ? AOF_ANNOTATION : AOF_COMMAND);
            assert_int_equal(r.argc, counts[i]);
            assert_false(r.unexpected);
            assert_int_equal(r.in_multi, i == 3 || i == 4);
            int64_t time_s = 0;
            if (i == 0) assert_true(aofAnnotationTime(r.raw, &time_s));
            if (i == 0) assert_int_equal(time_s, 1700000000);
            if (i == 2) assert_true(sliceEqual(r.argv[2], SLICE("a\r\nb\n")));
            if (i == 4) assert_true(sliceEqual(r.argv[2], SLICE("")));
            str again = STR_EMPTY;
            if (i > 0) aofPrintCommand(&again, r.argc, r.argv);
            if (i > 0) assert_true(sliceEqual(strSlice(&again), r.raw));
            strFree(&again);
        }
        assert_int_equal(aofReaderNext(&r), AOF_END);
        assert_int_equal(r.safe_offset, 100 + sizeof(sample) - 1);
        assert_int_equal(r.line, 32);
        aofReaderClear(&r);
    }
}

static void a_file_cut_at_any_byte_is_truncated_after_its_last_whole_transaction(void **state) {
    (void)state;
    for (size_t len = 0; len < sizeof(sample); len++) {
        stepSource from = source(sliceMake(sample, len), 7);
        aofReader r;
        aofReaderInit(&r, &from.source, 0);
        aofItem item;
        do { item = aofReaderNext(&r); } while (item == AOF_COMMAND || item == AOF_ANNOTATION);
        size_t border = 0;
        bool at_border = false;
        for (size_t i = 0; i < COUNT_OF(borders); i++) {
            if (borders[i] <= len) border = borders[i];
            at_border |= borders[i] == len;
        }
        assert_int_equal(r.safe_offset, border);
        assert_true(item == AOF_END || item == AOF_TRUNCATED);
        if (at_border) assert_int_equal(item, AOF_END);
        if (item == AOF_END) assert_int_equal(r.in_multi, !at_border);
        /* With the rest of the bytes it continues. */
        from.rest = sliceMake(sample + len, sizeof(sample) - 1 - len);
        do { item = aofReaderNext(&r); } while (item == AOF_COMMAND || item == AOF_ANNOTATION);
        assert_int_equal(item, AOF_END);
        assert_int_equal(r.safe_offset, sizeof(sample) - 1);
        aofReaderClear(&r);
    }
}

static void assertStops(slice bytes, aofItem expected, uint64_t offset, const char *why) {
    stepSource from = source(bytes, 3);
    aofReader r;
    aofReaderInit(&r, &from.source, 0);
    aofItem item;
    do { item = aofReaderNext(&r); } while (item == AOF_COMMAND || item == AOF_ANNOTATION);
    assert_int_equal(item, expected);
    assert_string_equal(r.why.text, why);
    assert_int_equal(r.error_offset, offset);
    aofReaderClear(&r);
}

static void invalid_records_are_told_from_incomplete_ones(void **state) {
    (void)state;
    static const char long_line[] =
        "*1111111111111111111111111111111111111111111111111111111111111111111111";
    assertStops(SLICE("+OK\r\n"), AOF_INVALID, 0, "Expected prefix '*', got: '+'");
    assertStops(SLICE("*1\r\n+OK\r\n"), AOF_INVALID, 4, "Expected prefix '$', got: '+'");
    assertStops(SLICE("*1\n$1\na\n"), AOF_INVALID, 1, "Expected \\r\\n, got: 310a");
    assertStops(SLICE("*0\r\n"), AOF_INVALID, 0, "Expected 1 to 2147483647 arguments, got: 0");
    assertStops(SLICE("*01\r\n"), AOF_INVALID, 1, "Expected a number, got: '01'");
    assertStops(SLICE("*\r\n"), AOF_INVALID, 1, "Expected a number, got: ''");
    assertStops(SLICE("*1\r\n$-6\r\n"), AOF_INVALID, 9,
                "Expected to read string of -6 bytes, which is not in the suitable range");
    assertStops(SLICE("*1\r\n$3\r\nabcxx"), AOF_INVALID, 11, "Expected \\r\\n, got: 7878");
    assertStops(SLICE(long_line), AOF_INVALID, 0, "Expected \\r\\n within 64 bytes");
    assertStops(SLICE("*1\r\n$3\r\n"), AOF_TRUNCATED, 8, "Expected to read 3 bytes, got 0 bytes");
    assertStops(SLICE("*1\r\n$3\r\nab"), AOF_TRUNCATED, 8, "Expected to read 3 bytes, got 2 bytes");
    assertStops(SLICE("*2147483648\r\n"), AOF_INVALID, 0,
                "Expected 1 to 2147483647 arguments, got: 2147483648");
    assertStops(
        SLICE("*1\r\n$9000000000000\r\n"), AOF_INVALID, 20,
        "Expected to read string of 9000000000000 bytes, which is not in the suitable range");
}

static void an_announced_length_allocates_nothing(void **state) {
    (void)state;
    size_t before = memUsed();
    stepSource from = source(SLICE("*2147483647\r\n$1000000000000\r\nabc"), 100);
    aofReader r;
    aofReaderInit(&r, &from.source, 0);
    assert_int_equal(aofReaderNext(&r), AOF_TRUNCATED);
    assert_true(memUsed() - before < 1024 * 1024);
    aofReaderClear(&r);
}

static void zero_bytes_at_the_end_count_as_a_cut(void **state) {
    (void)state;
    static const char record[] = "*1\r\n$4\r\nPING\r\n";
    str file = STR_EMPTY;
    strAppendText(&file, record);
    for (int i = 0; i < 1000000; i++) strAppendByte(&file, 0);
    assertStops(strSlice(&file), AOF_TRUNCATED, sizeof(record) - 1,
                "Expected prefix '*', got zero bytes up to the end");
    strAppendByte(&file, 'x');
    stepSource from = source(strSlice(&file), 4096);
    aofReader r;
    aofReaderInit(&r, &from.source, 0);
    assert_int_equal(aofReaderNext(&r), AOF_COMMAND);
    assert_int_equal(aofReaderNext(&r), AOF_INVALID);
    aofReaderClear(&r);
    strFree(&file);
}

static void nested_transactions_are_reported(void **state) {
    (void)state;
    stepSource from =
        source(SLICE("*1\r\n$4\r\nexec\r\n*1\r\n$5\r\nmulti\r\n*1\r\n$5\r\nMulti\r\n"), 100);
    aofReader r;
    aofReaderInit(&r, &from.source, 0);
    assert_int_equal(aofReaderNext(&r), AOF_COMMAND);
    assert_true(r.unexpected);
    assert_false(r.in_multi);
    assert_int_equal(aofReaderNext(&r), AOF_COMMAND);
    assert_false(r.unexpected);
    assert_int_equal(aofReaderNext(&r), AOF_COMMAND);
    assert_true(r.unexpected);
    assert_int_equal(r.safe_offset, 0); /* the first record was unexpected */
    assert_int_equal(aofReaderNext(&r), AOF_END);
    aofReaderClear(&r);
}

static status refuseToRead(rdbSource *s, void *dst, size_t cap, size_t *len, reason *why) {
    (void)s, (void)dst, (void)cap, (void)len;
    return reasonSet(why, ERR_IO, "read: broken");
}

static void a_failing_source_is_no_end(void **state) {
    (void)state;
    rdbSource broken = {.read = refuseToRead};
    aofReader r;
    aofReaderInit(&r, &broken, 0);
    assert_int_equal(aofReaderNext(&r), AOF_FAILED);
    assert_string_equal(r.why.text, "read: broken");
    aofReaderClear(&r);
}

static void preambles_and_annotations_are_recognised(void **state) {
    (void)state;
    int64_t time_s;
    assert_true(aofIsRdb(SLICE("REDIS0011")));
    assert_true(aofIsRdb(SLICE("VALKEY080")));
    assert_false(aofIsRdb(SLICE("REDIS")));
    assert_false(aofIsRdb(SLICE("*2\r\n$6\r\n")));
    assert_false(aofAnnotationTime(SLICE("#TS:\r\n"), &time_s));
    assert_false(aofAnnotationTime(SLICE("#T\r\n"), &time_s));
    str out = STR_EMPTY;
    aofPrintTime(&out, 5);
    assert_true(sliceEqual(strSlice(&out), SLICE("#TS:5\r\n")));
    strFree(&out);
}

int test_aof_reader(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(records_are_read_in_steps_of_any_size),
        cmocka_unit_test(a_file_cut_at_any_byte_is_truncated_after_its_last_whole_transaction),
        cmocka_unit_test(invalid_records_are_told_from_incomplete_ones),
        cmocka_unit_test(an_announced_length_allocates_nothing),
        cmocka_unit_test(zero_bytes_at_the_end_count_as_a_cut),
        cmocka_unit_test(nested_transactions_are_reported),
        cmocka_unit_test(a_failing_source_is_no_end),
        cmocka_unit_test(preambles_and_annotations_are_recognised),
    };
    return cmocka_run_group_tests_name("aof_reader", tests, NULL, NULL);
}
