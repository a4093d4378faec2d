/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Words, secrets, hints, suggestions and formats of replies of valkey-cli. */
#include <valkey/valkey.h>

#include "tools/cli/explain.h"
#include "tools/cli/hint.h"
#include "tools/cli/history_file.h"
#include "tools/cli/info.h"
#include "tools/cli/print.h"
#include "tools_test.h"

/* ------------------------------------------------------------------ words */

static void linesAreSplitAtBlanksOutsideOfQuotes(void **state) {
    words w = {0};
    assert_true(wordsSplit(SLICE("  set  \"a b\\x00\\n\" 'c\\' \\x' \t\"\""), &w));
    assert_int_equal(w.count, 4);
    assert_string_equal(strText(&w.items[0]), "set");
    assert_int_equal(w.items[1].len, 5);
    assert_memory_equal(w.items[1].ptr, "a b\0\n", 5);
    assert_string_equal(strText(&w.items[2]), "c' \\x");
    assert_int_equal(w.items[3].len, 0);
    wordsClear(&w);
    static const char *const unbalanced[] = {"\"", "set 'a", "a \"\\\"x"};
    for (size_t i = 0; i < sizeof(unbalanced) / sizeof(*unbalanced); i++) {
        assert_false(wordsSplit(sliceOf(unbalanced[i]), &w));
        wordsClear(&w);
    }
}

static void aQuotedWordIsOneWord(void **state) {
    str out = STR_EMPTY;
    assert_true(wordUnquote(SLICE("\"a\\xffb\""), &out));
    assert_int_equal(out.len, 3);
    assert_true(wordUnquote(SLICE("plain"), &out));
    assert_false(wordUnquote(SLICE("a b"), &out));
    assert_false(wordUnquote(SLICE("\"a"), &out));
    assert_false(wordUnquote(SLICE(""), &out));
    strFree(&out);
}

static void beginningsIgnoreCaseAndEndAtWords(void **state) {
    words w = {0};
    assert_true(wordsSplit(SLICE("CONFIG Set x"), &w));
    assert_true(wordsBegin(&w, "config"));
    assert_true(wordsBegin(&w, "config set"));
    assert_false(wordsBegin(&w, "conf"));
    assert_false(wordsBegin(&w, "config set x y"));
    wordsClear(&w);
}

static bool isSecret(const char *line) {
    words w = {0};
    assert_true(wordsSplit(sliceOf(line), &w));
    bool secret = historyIsSecret(&w);
    wordsClear(&w);
    return secret;
}

static void commandsWithPasswordsAreSecret(void **state) {
    static const char *const secret[] = {"auth x",
                                         "AUTH user x",
                                         "acl setuser u >x",
                                         "ACL DELUSER u",
                                         "hello 3 auth u p",
                                         "config set requirepass x",
                                         "config set maxmemory 1 primaryauth x",
                                         "CONFIG SET tls-key-file-pass x",
                                         "migrate h 1 k 0 5 auth p",
                                         "migrate h 1 \"\" 0 5 copy auth2 u p keys k",
                                         "sentinel set m auth-pass x",
                                         "sentinel config set sentinel-pass x"};
    static const char *const plain[] = {"get auth",
                                        "set requirepass x",
                                        "hello 3",
                                        "acl getuser u",
                                        "config get requirepass",
                                        "migrate h 1 k 0 5",
                                        "config set maxmemory 1",
                                        "migrate auth 1 k 0 5"};
    for (size_t i = 0; i < sizeof(secret) / sizeof(*secret); i++) assert_true(isSecret(secret[i]));
    for (size_t i = 0; i < sizeof(plain) / sizeof(*plain); i++) assert_false(isSecret(plain[i]));
}

/* ------------------------------------------------------------------ hints and suggestions */

static void hintsAreTheRemainingArguments(void **state) {
    static const char *const cases[][2] = {
        {"get ", "key"},
        {"get k ", ""},
        {"nosuch ", ""},
        {"", ""},
        {"set k ex 5 \"open", ""},
        {"del a ", "[key ...]"},
        {"config get ", "parameter [parameter ...]"},
    };
    for (size_t i = 0; i < sizeof(cases) / sizeof(*cases); i++) {
        str hint = STR_EMPTY;
        hintFor(sliceOf(cases[i][0]), &hint);
        assert_string_equal(strText(&hint), cases[i][1]);
        strFree(&hint);
    }
}

static void similarNamesAreSuggested(void **state) {
    assert_string_equal(explainSimilar(SLICE("gte")), "GET");
    assert_string_equal(explainSimilar(SLICE("zragne")), "ZRANGE");
    assert_null(explainSimilar(SLICE("completelydifferent")));
    assert_null(explainSimilar(SLICE("")));
}

static void fieldsOfInfoBeginALine(void **state) {
    static const char info[] = "# Memory\r\nused_memory_peak:9\r\nused_memory:5\r\n# Keyspace\r\n"
                               "db0:keys=3,expires=0\r\ndb12:keys=4,expires=1\r\n";
    assert_int_equal(infoNumber(info, "used_memory"), 5);
    assert_int_equal(infoNumber(info, "memory"), 0);
    assert_int_equal(infoNumber(info, "nosuch"), 0);
    assert_int_equal(infoKeys(info), 7);
}

/* ------------------------------------------------------------------ replies */

static valkeyReply *parse(const char *bytes, size_t len) {
    void *reply = NULL;
    valkeyReader *reader = valkeyReaderCreate();
    assert_int_equal(valkeyReaderFeed(reader, bytes, len), VALKEY_OK);
    assert_int_equal(valkeyReaderGetReply(reader, &reply), VALKEY_OK);
    assert_non_null(reply);
    valkeyReaderFree(reader);
    return reply;
}

static void everyFormatEscapesWhatItMust(void **state) {
    static const char bytes[] = "*7\r\n$6\r\na\"\\\0\n\xe9\r\n:-7\r\n$-1\r\n-ERR no \"x\"\r\n"
                                "%1\r\n:1\r\n#t\r\n*0\r\n,1.5\r\n";
    static const struct {
        outputFormat format;
        const char *text;
        size_t len;
    } cases[] = {
#define TEXT(s) s, sizeof(s) - 1
        {OUTPUT_CSV,
         TEXT("\"a\\\"\\\\\\x00\\n\\xe9\",-7,NULL,ERROR,\"ERR no \\\"x\\\"\",1,true,,1.5\n")},
        {OUTPUT_JSON,
         TEXT(
             "[\"a\\\"\\\\\\u0000\\n\xe9\",-7,null,error:\"ERR no \\\"x\\\"\",{\"1\":true},[],1.5]\n")},
        {OUTPUT_QUOTED_JSON,
         TEXT(
             "[\"a\\\\\\\"\\\\\\\\\\\\x00\\\\n\\\\xe9\",-7,null,error:\"ERR no \\\\\\\"x\\\\\\\"\","
             "{\"1\":true},[],1.5]\n")},
        {OUTPUT_RAW, TEXT("a\"\\\0\n\xe9\n-7\n\nERR no \"x\"\n\n1 (true)\n\n1.5\n")},
        {OUTPUT_STANDARD, TEXT("1) \"a\\\"\\\\\\x00\\n\\xe9\"\n2) (integer) -7\n3) (nil)\n"
                               "4) (error) ERR no \"x\"\n5) 1# (integer) 1 => (true)\n"
                               "6) (empty array)\n7) (double) 1.5\n")},
    };
    valkeyReply *reply = parse(bytes, sizeof(bytes) - 1);
    for (size_t i = 0; i < sizeof(cases) / sizeof(*cases); i++) {
        cliOptions options = {
            .output = cases[i].format, .item_delimiter = "\n", .reply_delimiter = "\n"};
        str out = STR_EMPTY;
        printReply(&out, reply, &options, false, false);
        assert_int_equal(out.len, cases[i].len);
        assert_memory_equal(out.ptr, cases[i].text, cases[i].len);
        strFree(&out);
    }
    freeReplyObject(reply);
}

int test_cli_text(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(linesAreSplitAtBlanksOutsideOfQuotes),
        cmocka_unit_test(aQuotedWordIsOneWord),
        cmocka_unit_test(beginningsIgnoreCaseAndEndAtWords),
        cmocka_unit_test(commandsWithPasswordsAreSecret),
        cmocka_unit_test(hintsAreTheRemainingArguments),
        cmocka_unit_test(similarNamesAreSuggested),
        cmocka_unit_test(fieldsOfInfoBeginALine),
        cmocka_unit_test(everyFormatEscapesWhatItMust),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
