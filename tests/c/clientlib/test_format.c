/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Formatting commands: printf-like formats and vectors of arguments. */
#include "client_test.h"

static void expectText(char *cmd, long long len, const char *expected, size_t expected_len) {
    assert_int_equal(len, expected_len);
    assert_memory_equal(cmd, expected, expected_len + 1);
    valkeyFreeCommand(cmd);
}
#define EXPECT(expected, ...) \
    do { \
        char *cmd = NULL; \
        long long len = valkeyFormatCommand(&cmd, __VA_ARGS__); \
        expectText(cmd, len, expected, sizeof(expected) - 1); \
    } while (0)

static void formatsArguments(void **state) {
    (void)state;
    EXPECT("*3\r\n$3\r\nSET\r\n$3\r\nfoo\r\n$3\r\nbar\r\n", "SET foo bar");
    EXPECT("*3\r\n$3\r\nSET\r\n$3\r\nfoo\r\n$3\r\nbar\r\n", "  SET   %s %s ", "foo", "bar");
    EXPECT("*3\r\n$3\r\nSET\r\n$3\r\nfoo\r\n$0\r\n\r\n", "SET %s %s", "foo", "");
    EXPECT("*3\r\n$3\r\nSET\r\n$3\r\nf\0o\r\n$3\r\nb\0r\r\n", "SET %b %b", "f\0o", (size_t)3,
           "b\0r", (size_t)3);
    EXPECT("*3\r\n$3\r\nSET\r\n$0\r\n\r\n$3\r\nbar\r\n", "SET %b %b", NULL, (size_t)0, "bar",
           (size_t)3);
    EXPECT("*3\r\n$3\r\nSET\r\n$7\r\nkey:1:x\r\n$1\r\n%\r\n", "SET key:%d:%s %%", 1, "x");
    EXPECT("*2\r\n$1\r\n%\r\n$5\r\na b c\r\n", "%% %s", "a b c");
    EXPECT("*1\r\n$4\r\nPING\r\n", "PING");
    EXPECT("*2\r\n$1\r\na\r\n$2\r\nb%\r\n", "a b%");
    EXPECT("*0\r\n", "");
}

static void formatsNumbers(void **state) {
    (void)state;
    EXPECT("*9\r\n$1\r\nx\r\n$2\r\n-5\r\n$5\r\n00042\r\n$2\r\nff\r\n$2\r\n-1\r\n$3\r\n255\r\n"
           "$19\r\n1234567890123456789\r\n$4\r\n3.50\r\n$5\r\n1e+10\r\n",
           "x %i %05d %x %hhd %hu %lld %.2f %g", -5, 42, 255, -1, 255, 1234567890123456789LL, 3.5,
           1e10);
    EXPECT("*2\r\n$2\r\n+7\r\n$6\r\n-9-9-9\r\n", "%+d %ld%ld%ld", 7, -9L, -9L, -9L);
    char *cmd = NULL;
    /* Longer than the buffer for numbers. */
    assert_int_equal(valkeyFormatCommand(&cmd, "%300d %s %0200d", 5, "x", 6),
                     4 + 6 + 300 + 2 + 7 + 6 + 200 + 2);
    assert_memory_equal(cmd + 4 + 6 + 299, "5\r\n$1\r\nx\r\n$200\r\n000", 19);
    valkeyFreeCommand(cmd);
}

static int formatList(char **cmd, const char *format, ...) {
    va_list ap;
    va_start(ap, format);
    int len = valkeyvFormatCommand(cmd, format, ap);
    va_end(ap);
    return len;
}

static void refusesInvalidFormats(void **state) {
    (void)state;
    static const char *const formats[] = {
        "key:%08p %b", "%l", "%hs", "%Lf", "SET %y", "%000000000000000000000000000000000000d",
        "%lf"};
    for (size_t i = 0; i < sizeof(formats) / sizeof(*formats); i++) {
        char *cmd = NULL;
        assert_int_equal(valkeyFormatCommand(&cmd, formats[i], 1, 2, 3, 4), -1);
        assert_int_equal(formatList(&cmd, formats[i], 1, 2, 3, 4), -2);
        assert_null(cmd);
    }
    assert_int_equal(valkeyFormatCommand(NULL, "PING"), -1);
}

static void refusesArgumentsThatAreNull(void **state) {
    (void)state;
    char *cmd = NULL;
    const char *none = NULL;
    assert_int_equal(valkeyFormatCommand(&cmd, "SET a %s", none), -1);
    assert_int_equal(formatList(&cmd, "SET a %s", none), -2);
    assert_int_equal(formatList(&cmd, "SET %b a", none, (size_t)3), -2);
    const char *argv[] = {"SET", NULL, "x"};
    size_t lens[] = {3, 1, 1};
    assert_int_equal(valkeyFormatCommandArgv(&cmd, 3, argv, NULL), -1);
    assert_int_equal(valkeyFormatCommandArgv(&cmd, 3, argv, lens), -1);
    assert_int_equal(valkeyFormatCommandArgv(&cmd, -1, argv, lens), -1);
    argv[1] = "k";
    lens[1] = SIZE_MAX - 4;
    assert_int_equal(valkeyFormatCommandArgv(&cmd, 3, argv, lens), -1);
    assert_null(cmd);
    argv[1] = NULL;
    lens[1] = 0;
    static const char empty[] = "*3\r\n$3\r\nSET\r\n$0\r\n\r\n$1\r\nx\r\n";
    long long len = valkeyFormatCommandArgv(&cmd, 3, argv, lens);
    expectText(cmd, len, empty, sizeof(empty) - 1);
}

static void formatsVectors(void **state) {
    (void)state;
    const char *argv[] = {"SET", "f\0o", "bar"};
    size_t lens[] = {3, 3, 3};
    char *cmd = NULL;
    long long len = valkeyFormatCommandArgv(&cmd, 3, argv, lens);
    static const char binary[] = "*3\r\n$3\r\nSET\r\n$3\r\nf\0o\r\n$3\r\nbar\r\n";
    expectText(cmd, len, binary, sizeof(binary) - 1);
    len = valkeyFormatCommandArgv(&cmd, 3, argv, NULL);
    static const char text[] = "*3\r\n$3\r\nSET\r\n$1\r\nf\r\n$3\r\nbar\r\n";
    expectText(cmd, len, text, sizeof(text) - 1);
}

static void formatsManyPieces(void **state) {
    (void)state;
    char format[1024] = "", expected[4096] = "*100\r\n";
    for (int i = 0; i < 100; i++) {
        strcat(format, "a%%b ");
        strcat(expected, "$3\r\na%b\r\n");
    }
    char *cmd;
    int len = valkeyFormatCommand(&cmd, format);
    expectText(cmd, len, expected, strlen(expected));
}

static void memoryExhaustedIsAnError(void **state) {
    (void)state;
    countingStart();
    for (long n = 0;; n++) {
        char *cmd = NULL;
        countingFailAt(n, true);
        int len = valkeyFormatCommand(&cmd, "a%sb%sc%sd%se%sf%sg%sh%si%sj%sk%sl%sm%sn%s %300d", "",
                                      "", "", "", "", "", "", "", "", "", "", "", "", "", 1);
        bool failed = countingHasFailed();
        if (failed) {
            assert_int_equal(len, -1);
            assert_null(cmd);
        } else {
            valkeyFreeCommand(cmd);
        }
        assert_int_equal(countingBlocks(), 0);
        if (!failed) break;
    }
    countingStop();
}

int test_format(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(formatsArguments),         cmocka_unit_test(formatsNumbers),
        cmocka_unit_test(refusesInvalidFormats),    cmocka_unit_test(refusesArgumentsThatAreNull),
        cmocka_unit_test(formatsVectors),           cmocka_unit_test(formatsManyPieces),
        cmocka_unit_test(memoryExhaustedIsAnError),
    };
    return cmocka_run_group_tests_name("format", tests, NULL, NULL);
}
