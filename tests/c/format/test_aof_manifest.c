/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Manifests of append only files: the grammar, the errors of a real server, and the changes of a
 * rewrite. */
#include "format_test.h"

#include "format/aof_manifest.h"

static void assertParses(const char *text, const char *printed) {
    aofManifest m;
    aofManifestError error;
    assert_int_equal(aofManifestParse(sliceOf(text), &m, &error), OK);
    str out = STR_EMPTY;
    aofManifestPrint(&m, &out);
    assert_string_equal(strText(&out), printed);
    strFree(&out);
    aofManifestClear(&m);
}

static void assertFails(slice text, int line, const char *at, const char *why) {
    aofManifest m;
    aofManifestError error;
    assert_int_equal(aofManifestParse(text, &m, &error), ERR_SYNTAX);
    assert_int_equal(error.line, line);
    assert_string_equal(strText(&error.text), at);
    assert_string_equal(error.why.text, why);
    assert_int_equal(m.count, 0);
    strFree(&error.text);
}

static void what_a_server_writes_is_read_and_written_again(void **state) {
    (void)state;
    static const char text[] = "file appendonly.aof.3.base.rdb seq 3 type b\n"
                               "file appendonly.aof.4.incr.aof seq 4 type h\n"
                               "file appendonly.aof.2.base.rdb seq 2 type h\n"
                               "file appendonly.aof.5.incr.aof seq 5 type i\n"
                               "file appendonly.aof.6.incr.aof seq 6 type i\n";
    assertParses(text, text);
    assertParses("file \" a file\" seq 1 type b\n", "file \" a file\" seq 1 type b\n");
}

static void keys_may_be_in_any_order_and_case(void **state) {
    (void)state;
    assertParses("# a comment\n\tTYPE incr future x FILE a Seq 7x \r\n# file b seq 1 type i\n",
                 "file a seq 7 type i\n");
    assertParses("# nothing else\n", "");
    assertParses("file a seq -1 type b\n", "file a seq -1 type b\n");
    assertParses("file a file b seq 1 seq 2 type i type b\n", "file b seq 2 type b\n");
}

static void invalid_manifests_are_refused_with_line_and_reason(void **state) {
    (void)state;
    static const char invalid[] = "Invalid AOF manifest file format";
    assertFails(SLICE(""), 0, "", "Found an empty AOF manifest");
    assertFails(SLICE("\n"), 1, "", invalid);
    assertFails(SLICE("#\n \t\r\n"), 2, "", invalid);
    assertFails(SLICE("file a seq 1\n"), 1, "file a seq 1", invalid);
    assertFails(SLICE("file a seq 1 type b x\n"), 1, "file a seq 1 type b x", invalid);
    assertFails(SLICE("file \"a seq 1 type b\n"), 1, "file \"a seq 1 type b", invalid);
    assertFails(SLICE("name a seq 1 type b\n"), 1, "name a seq 1 type b", invalid);
    assertFails(SLICE("file a seq 0 type b\n"), 1, "file a seq 0 type b", invalid);
    assertFails(SLICE("file a seq 99999999999999999999 type b\n"), 1,
                "file a seq 99999999999999999999 type b", invalid);
    assertFails(SLICE("file a\\x00b seq 1 type \"\"\n"), 1, "file a\\x00b seq 1 type \"\"",
                invalid);
    assertFails(SLICE("file \"a\\x00b\" seq 1 type b\n"), 1, "file \"a\\x00b\" seq 1 type b",
                invalid);
    assertFails(SLICE("file a/b seq 1 type b\n"), 1, "file a/b seq 1 type b",
                "File can't be a path, just a filename");
    assertFails(SLICE("file a seq 1 type b\nfile b seq 2 type b\n"), 2, "file b seq 2 type b",
                "Found duplicate base file information");
    assertFails(SLICE("file a seq 2 type i\nfile b seq 2 type i\n"), 2, "file b seq 2 type i",
                "Found a non-monotonic sequence number");
    assertFails(SLICE("file a seq 1 type x\n"), 1, "file a seq 1 type x", "Unknown AOF file type");
}

static void lines_end_with_a_line_break_and_have_a_limit(void **state) {
    (void)state;
    static const char too_long[] = "The AOF manifest file contains too long line";
    assertFails(SLICE("file a seq 1 type b"), 1, "file a seq 1 type b", too_long);
    assertFails(SLICE("file a\0 seq 1 type b\n"), 1, "file a", too_long);
    str line = STR_EMPTY;
    strAppendText(&line, "file a seq 1 type b");
    while (line.len < AOF_MANIFEST_LINE_MAX - 1) strAppendByte(&line, ' ');
    strAppendByte(&line, '\n');
    assertParses(strText(&line), "file a seq 1 type b\n");
    line.ptr[line.len - 1] = ' ';
    strAppendByte(&line, '\n');
    aofManifest m;
    aofManifestError error;
    assert_int_equal(aofManifestParse(strSlice(&line), &m, &error), ERR_SYNTAX);
    assert_string_equal(error.why.text, too_long);
    strFree(&error.text);
    strFree(&line);
}

static void a_rewrite_turns_files_into_history(void **state) {
    (void)state;
    aofManifest m = {0};
    aofManifestAdd(&m, AOF_BASE, "b1", 1);
    aofManifestAdd(&m, AOF_INCR, "i1", 1);
    aofManifestAdd(&m, AOF_INCR, "i2", 2);
    aofManifestAdd(&m, AOF_INCR, "i3", 3);
    aofManifest copy = aofManifestCopy(&m);
    aofManifestRetire(&m, 1);
    aofManifestAdd(&m, AOF_BASE, "b2", 2);
    str out = STR_EMPTY;
    aofManifestPrint(&m, &out);
    assert_string_equal(strText(&out),
                        "file b2 seq 2 type b\nfile i2 seq 2 type h\nfile i1 seq 1 type h\n"
                        "file b1 seq 1 type h\nfile i3 seq 3 type i\n");
    assert_int_equal(aofManifestCount(&m, AOF_HISTORY), 3);
    assert_string_equal(aofManifestBase(&m)->name, "b2");
    assert_string_equal(aofManifestLast(&m, AOF_INCR)->name, "i3");
    aofManifestRemove(&m, 2);
    assert_int_equal(m.count, 4);
    assert_string_equal(aofManifestLast(&m, AOF_HISTORY)->name, "b1");
    aofManifestClear(&m);
    strClear(&out);
    aofManifestPrint(&copy, &out);
    assert_string_equal(strText(&out), "file b1 seq 1 type b\nfile i1 seq 1 type i\n"
                                       "file i2 seq 2 type i\nfile i3 seq 3 type i\n");
    aofManifestRetire(&copy, 0);
    assert_int_equal(aofManifestCount(&copy, AOF_INCR), 0);
    assert_null(aofManifestLast(&copy, AOF_INCR));
    assert_null(aofManifestBase(&copy));
    aofManifestClear(&copy);
    strFree(&out);
}

int test_aof_manifest(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(what_a_server_writes_is_read_and_written_again),
        cmocka_unit_test(keys_may_be_in_any_order_and_case),
        cmocka_unit_test(invalid_manifests_are_refused_with_line_and_reason),
        cmocka_unit_test(lines_end_with_a_line_break_and_have_a_limit),
        cmocka_unit_test(a_rewrite_turns_files_into_history),
    };
    return cmocka_run_group_tests_name("aof_manifest", tests, NULL, NULL);
}
