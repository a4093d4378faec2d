/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Which of two texts a node starts from: whatever happens to a sealed file, the copy is used, and
 * what Valkey or a person has written is used as it is. */
#include "bus_test.h"

#include "base/base.h"
#include "bus/file_choice.h"

#define LINES \
    "5b02a65170aa613549e484ca4baeaf32ceaf768e 127.0.0.1:7000@17000,,tls-port=0,shard-id=" \
    "ac4d68615128defe79e339f36faaf59e0f200e69 myself,master - 0 0 6 connected 0-5460\n" \
    "0f8ad70b8567ae2f4bb3e974528eb26dd2bf029a 127.0.0.1:7001@17001,,tls-port=0,shard-id=" \
    "ac4d68615128defe79e339f36faaf59e0f200e69 slave 5b02a65170aa613549e484ca4baeaf32ceaf768e " \
    "0 1795566112000 6 disconnected\n"
#define VARS "vars currentEpoch 6 lastVoteEpoch 6\n"

static const slice none = {NULL, 0};

static str sealed(const char *text) {
    str s = strNew(sliceOf(text));
    clusterFileSeal(&s);
    return s;
}

static void assertUse(fileUse use, slice main, slice copy, const char *why) {
    fileChoice c = clusterFileChoose(main, copy);
    assert_int_equal(c.use, use);
    assert_string_equal(c.why ? c.why : "", why);
}

static void the_checksum_is_a_variable_of_the_last_line(void **state) {
    str s = sealed(LINES VARS);
    const char *end = strstr(strText(&s), "vars");
    assert_int_equal(strlen(end), sizeof(VARS) - 1 + sizeof(" crc64 0123456789abcdef") - 1);
    assert_memory_equal(end, "vars currentEpoch 6 lastVoteEpoch 6 crc64 ", sizeof(VARS) + 5);
    assert_int_equal(s.ptr[s.len - 1], '\n');
    strFree(&s);
}

static void an_intact_file_is_used_whatever_the_copy_is(void **state) {
    str main = sealed(LINES VARS), copy = sealed(LINES LINES VARS);
    assertUse(FILE_MAIN, strSlice(&main), strSlice(&copy), "");
    assertUse(FILE_MAIN, strSlice(&main), strSlice(&main), "");
    assertUse(FILE_MAIN, strSlice(&main), none, "");
    assertUse(FILE_MAIN, strSlice(&main), SLICE("x"), "");
    strFree(&main);
    strFree(&copy);
}

static void after_every_cut_the_copy_is_used(void **state) {
    str main = sealed(LINES VARS), copy = sealed(LINES LINES VARS);
    for (size_t len = 0; len < main.len; len++) {
        fileChoice c = clusterFileChoose(sliceMake(main.ptr, len), strSlice(&copy));
        assert_int_equal(c.use, FILE_COPY);
        assert_non_null(c.why);
    }
    strFree(&main);
    strFree(&copy);
}

/* Every value of every byte; the line is named if it is in the content. */
static void with_any_byte_changed_the_copy_is_used(void **state) {
    str main = sealed(LINES VARS), copy = sealed(LINES LINES VARS);
    size_t content = main.len - strlen(" crc64 0123456789abcdef\n");
    int line = 1;
    for (size_t at = 0; at < main.len; at++) {
        char before = main.ptr[at];
        for (int value = 0; value < 256; value++) {
            if ((char)value == before) continue;
            main.ptr[at] = (char)value;
            fileChoice c = clusterFileChoose(strSlice(&main), strSlice(&copy));
            if (c.use != FILE_COPY) fail_msg("byte %zu is %d: %d", at, value, (int)c.use);
            if (at < content && value == 'x') assert_int_equal(c.line, line);
        }
        main.ptr[at] = before;
        line += before == '\n';
    }
    strFree(&main);
    strFree(&copy);
}

static void a_damaged_copy_is_never_used(void **state) {
    str main = sealed(LINES VARS), copy = sealed(LINES VARS);
    const char *words = "does not match its checksum in one byte";
    main.ptr[0] ^= 1;
    for (size_t at = 0; at < copy.len; at++) {
        copy.ptr[at] ^= 4;
        assertUse(FILE_REFUSED, strSlice(&main), strSlice(&copy), words);
        copy.ptr[at] ^= 4;
        assertUse(FILE_REFUSED, strSlice(&main), sliceMake(copy.ptr, at), words);
    }
    assertUse(FILE_COPY, strSlice(&main), strSlice(&copy), words);
    strFree(&main);
    strFree(&copy);
}

static void a_file_that_was_edited_is_used_if_it_is_valid(void **state) {
    str main = sealed(LINES VARS), copy = sealed(LINES VARS);
    memcpy(strstr(main.ptr, "5460"), "9999", 4);
    assertUse(FILE_MAIN_IF_VALID, strSlice(&main), strSlice(&copy), "does not match its checksum");
    assertUse(FILE_MAIN, strSlice(&main), none, "does not match its checksum");
    /* A line was added. */
    str longer = strNew(SLICE(LINES));
    strAppend(&longer, copy.ptr, copy.len);
    assertUse(FILE_MAIN_IF_VALID, strSlice(&longer), strSlice(&copy),
              "does not match its checksum");
    strFree(&longer);
    strFree(&main);
    strFree(&copy);
}

static void a_file_of_valkey_or_of_a_person_is_used_as_it_is(void **state) {
    str copy = sealed(LINES LINES VARS);
    assertUse(FILE_MAIN, SLICE(LINES VARS), strSlice(&copy), "");
    assertUse(FILE_MAIN, SLICE(LINES VARS "\n\n"), strSlice(&copy), "");
    assertUse(FILE_MAIN, SLICE(LINES "vars foo bar currentEpoch 6\n"), strSlice(&copy), "");
    assertUse(FILE_MAIN, SLICE("nonsense\n" VARS), strSlice(&copy), "");
    strFree(&copy);
}

static void an_incomplete_file_is_used_only_without_a_copy(void **state) {
    str copy = sealed(LINES VARS);
    assertUse(FILE_COPY, SLICE(LINES), strSlice(&copy), "has no complete last line");
    assertUse(FILE_MAIN, SLICE(LINES), none, "has no complete last line");
    assertUse(FILE_COPY, SLICE(LINES "vars currentEpoch 1"), strSlice(&copy),
              "has no complete last line");
    assertUse(FILE_COPY, SLICE("\n\n"), strSlice(&copy), "has no complete last line");
    strFree(&copy);
}

static void without_a_file_the_node_is_new(void **state) {
    str copy = sealed(LINES VARS);
    assertUse(FILE_NONE, none, none, "");
    assertUse(FILE_NONE, none, strSlice(&copy), "");
    assertUse(FILE_NONE, SLICE(""), none, "");
    assertUse(FILE_COPY, SLICE(""), strSlice(&copy), "is empty");
    strFree(&copy);
}

int test_file_choice(void);
int test_file_choice(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_checksum_is_a_variable_of_the_last_line),
        cmocka_unit_test(an_intact_file_is_used_whatever_the_copy_is),
        cmocka_unit_test(after_every_cut_the_copy_is_used),
        cmocka_unit_test(with_any_byte_changed_the_copy_is_used),
        cmocka_unit_test(a_damaged_copy_is_never_used),
        cmocka_unit_test(a_file_that_was_edited_is_used_if_it_is_valid),
        cmocka_unit_test(a_file_of_valkey_or_of_a_person_is_used_as_it_is),
        cmocka_unit_test(an_incomplete_file_is_used_only_without_a_copy),
        cmocka_unit_test(without_a_file_the_node_is_new),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
