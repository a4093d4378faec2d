/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Payloads found by tests/fuzz/fuzz_rdb_value.c and fuzz_rdb_file.c, one test for each fault. */
#include "format_test.h"

#include "store/type_stream.h"

/* Ended the process: lzf_decompress() reads the first byte whatever the length. */
static void a_compressed_string_without_bytes_is_refused(void **state) {
    (void)state;
    rdbReadOptions options = testOptions();
    str bytes = testBytes("00 c3 00 01");
    reason why = {""};
    robj *o;
    assert_int_equal(testRead(strSlice(&bytes), &options, &o, &why), ERR_SYNTAX);
    assert_null(o);
    assert_string_equal(why.text, "Invalid LZF compressed string");
    strFree(&bytes);
}

/* An entry appended to such a stream was stored below one that was there. */
static void the_last_id_of_a_stream_is_at_least_that_of_its_entries(void **state) {
    (void)state;
    rdbReadOptions options = testOptions();
    /* One entry 5-1 f v; length 1, last id 3-0, no groups. */
    str bytes =
        testBytes("0f 01 10 0000000000000005 0000000000000001 1d 1d000000 0a00 0101 0001 0101 "
                  "816602 0001 0201 0001 0001 817602 0401 ff 01 03 00 00");
    reason why = {""};
    robj *o;
    if (testRead(strSlice(&bytes), &options, &o, &why) != OK) fail_msg("%s", why.text);
    stream *s = streamOf(o);
    streamId first = {5, 1}, found;
    assert_true(streamIdEqual(streamLastId(s), first));
    assert_null(streamVerify(s));
    slice fields[2] = {SLICE("f"), SLICE("w")};
    streamLimits limits = {4096, 100};
    streamAppend(s, (streamId){5, 2}, fields, 2, &limits);
    assert_null(streamVerify(s));
    assert_true(streamLastLive(s, &found));
    assert_true(streamIdEqual(found, (streamId){5, 2}));
    objectFree(o);
    strFree(&bytes);
}

int test_rdb_hostile(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_compressed_string_without_bytes_is_refused),
        cmocka_unit_test(the_last_id_of_a_stream_is_at_least_that_of_its_entries),
    };
    return cmocka_run_group_tests_name("rdb_hostile", tests, testSetUp, testTearDown);
}
