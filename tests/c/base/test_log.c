/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Tests of base/log: the lines are those that Valkey 9.1.2 writes. */
#include "base_test.h"

#include <errno.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/log.h"

static char path[64];
static int64_t now_ms = 1795229071982; /* 2026-11-21 02:44:31.982 UTC */

static int64_t fakeWallUs(void) { return now_ms * 1000 + 999; }

static int logToFile(void **state) {
    (void)state;
    snprintf(path, sizeof(path), "/tmp/test_log.%d.log", (int)getpid());
    const clockSource fake = {NULL, fakeWallUs};
    clockSetSource(&fake);
    setenv("TZ", "UTC0", 1);
    tzset();
    now_ms += 3600000; /* so that a cached offset is out of date */
    unlink(path);
    logSetFile(path);
    return 0;
}

static int logToStdout(void **state) {
    (void)state;
    logSetFile("");
    logSetLevel(LOG_NOTICE);
    logSetFormat(LOG_FORMAT_LEGACY);
    logSetTime(LOG_TIME_LEGACY);
    logSetRole('M');
    clockSetSource(NULL);
    unlink(path);
    return 0;
}

/* What was logged since the last call. Valid until the next. */
static const char *logged(void) {
    static char text[65536];
    FILE *f = fopen(path, "r");
    if (!f) return "";
    text[fread(text, 1, sizeof(text) - 1, f)] = '\0';
    fclose(f);
    unlink(path);
    return text;
}

#define assert_logged(...) \
    do { \
        char expected[8192]; \
        snprintf(expected, sizeof(expected), __VA_ARGS__); \
        assert_string_equal(logged(), expected); \
    } while (0)

static void setTime(const char *zone, int64_t ms) {
    setenv("TZ", zone, 1);
    tzset();
    /* Long after the last conversion, so that the new zone is read. */
    now_ms = ms - 7200000;
    logNotice("ask");
    now_ms = ms;
    logged();
}

static void test_legacy_lines(void **state) {
    (void)state;
    int pid = (int)getpid();
    setTime("UTC0", 1795229071982);
    logWarning("plain %s", "text");
    logNotice("two\nlines \"q\"");
    assert_logged("%d:M 21 Nov 2026 02:44:31.982 # plain text\n"
                  "%d:M 21 Nov 2026 02:44:31.982 * two\nlines \"q\"\n",
                  pid, pid);
    logSetLevel(LOG_DEBUG);
    logSetRole('S');
    logDebug("d");
    logVerbose("v");
    assert_logged("%d:S 21 Nov 2026 02:44:31.982 . d\n%d:S 21 Nov 2026 02:44:31.982 - v\n", pid,
                  pid);
    now_ms = 1795229071004;
    logSetRole('C');
    logNotice("short milliseconds");
    assert_logged("%d:C 21 Nov 2026 02:44:31.004 * short milliseconds\n", pid);
}

static void test_other_time_formats(void **state) {
    (void)state;
    int pid = (int)getpid();
    setTime("UTC0", 1795229071974);
    logSetTime(LOG_TIME_ISO8601);
    logWarning("x");
    assert_logged("%d:M 2026-11-21T02:44:31.974+00:00 # x\n", pid);
    setTime("IST-5:30", 1795229071974);
    logWarning("x");
    assert_logged("%d:M 2026-11-21T08:14:31.974+05:30 # x\n", pid);
    setTime("NST3:30", 1795229071974);
    logWarning("x");
    assert_logged("%d:M 2026-11-20T23:14:31.974-03:30 # x\n", pid);
    logSetTime(LOG_TIME_MILLISECONDS);
    logWarning("x");
    assert_logged("%d:M 1795229071974 # x\n", pid);
}

/* Every day of three leap cycles, and the borders of a century, against the C library. */
static void test_dates_agree_with_libc(void **state) {
    (void)state;
    setTime("UTC0", 86400000);
    for (int64_t day = 0; day < 51500; day += day % 365 < 100 ? 1 : 13) {
        time_t seconds = (time_t)(day * 86400 + 3661);
        now_ms = (int64_t)seconds * 1000;
        struct tm tm;
        char expected[64];
        gmtime_r(&seconds, &tm);
        strftime(expected, sizeof(expected), "%d %b %Y %H:%M:%S.000", &tm);
        logWarning("x");
        if (!strstr(logged(), expected)) fail_msg("%s", expected);
    }
}

static void test_logfmt_lines(void **state) {
    (void)state;
    int pid = (int)getpid();
    setTime("UTC0", 1795229071982);
    logSetFormat(LOG_FORMAT_LOGFMT);
    logWarning("%s", "a \"quoted\" \\back\nnewline\ttab \xc3\xa9\r.");
    assert_logged("pid=%d role=primary timestamp=\"21 Nov 2026 02:44:31.982\" level=warning "
                  "message=\"a 'quoted' \\back newline\ttab \xc3\xa9 .\"\n",
                  pid);
    logSetLevel(LOG_DEBUG);
    logSetTime(LOG_TIME_MILLISECONDS);
    static const struct {
        char role;
        const char *word;
    } roles[] = {{'M', "primary"}, {'S', "replica"}, {'C', "RDB/AOF"}, {'X', "sentinel"}};
    static const char *const levels[] = {"debug", "verbose", "notice", "warning"};
    for (int i = 0; i < 4; i++) {
        logSetRole(roles[i].role);
        logWrite((logLevel)i, "x");
        assert_logged("pid=%d role=%s timestamp=\"1795229071982\" level=%s message=\"x\"\n", pid,
                      roles[i].word, levels[i]);
    }
}

static void test_json_lines(void **state) {
    (void)state;
    int pid = (int)getpid();
    setTime("UTC0", 1795229071982);
    logSetFormat(LOG_FORMAT_JSON);
    logSetTime(LOG_TIME_ISO8601);
    logWarning("%s", "a \"quoted\" \\back\nnew\ttab \xc3\xa9 \x01\x7f\x1b\b\f\r \xff");
    assert_logged(
        "{\"pid\":%d,\"role\":\"primary\",\"timestamp\":\"2026-11-21T02:44:31.982+00:00\","
        "\"level\":\"warning\",\"message\":\"a \\\"quoted\\\" \\\\back\\nnew\\ttab \xc3\xa9 "
        "\\u0001\x7f\\u001b\\b\\f\\r \xff\"}\n",
        pid);
}

static void test_long_messages_are_cut_before_they_are_escaped(void **state) {
    (void)state;
    char text[3000];
    memset(text, 1, sizeof(text) - 1);
    text[sizeof(text) - 1] = '\0';
    logSetFormat(LOG_FORMAT_JSON);
    logWarning("%s", text);
    const char *line = logged();
    const char *message = strstr(line, "\"message\":\"") + 11;
    assert_int_equal(strlen(message), 1023 * 6 + 3);
    assert_string_equal(message + 1023 * 6, "\"}\n");
    logSetFormat(LOG_FORMAT_LEGACY);
    logWarning("%s", text);
    assert_int_equal(strspn(strchr(logged(), 1), "\x01"), 1023);
}

static int evaluated(void) {
    static int count;
    return ++count;
}

static void test_level_decides_before_arguments_are_evaluated(void **state) {
    (void)state;
    int before = evaluated();
    logSetLevel(LOG_WARNING);
    logNotice("no %d", evaluated());
    assert_string_equal(logged(), "");
    logSetLevel(LOG_NOTHING);
    logWarning("no %d", evaluated());
    assert_string_equal(logged(), "");
    assert_int_equal(evaluated(), before + 1);
    logWrite(LOG_NOTHING, "a level that no line has");
    assert_string_equal(logged(), "");
}

static void test_raw_text_has_no_prefix(void **state) {
    (void)state;
    logSetLevel(LOG_NOTHING);
    logRaw("  logo\n\n");
    logRaw("more");
    assert_string_equal(logged(), "  logo\n\nmore");
}

static void test_signal_line(void **state) {
    (void)state;
    errno = ENOENT;
    logFromSignal("Received SIGTERM scheduling shutdown...");
    assert_int_equal(errno, ENOENT);
    char expected[64];
    const char *line = logged();
    int len = snprintf(expected, sizeof(expected), "%d:signal-handler (", (int)getpid());
    assert_memory_equal(line, expected, (size_t)len);
    assert_string_equal(strchr(line, ')'), ") Received SIGTERM scheduling shutdown...\n");
    assert_int_equal(strspn(line + len, "0123456789"), strchr(line, ')') - (line + len));
}

static void test_errno_survives(void **state) {
    (void)state;
    logSetFile("/nonexistent/folder/file.log");
    errno = EDOM;
    logWarning("goes nowhere");
    assert_int_equal(errno, EDOM);
    logRaw("goes nowhere");
    assert_int_equal(errno, EDOM);
}

/* There need not be a syslog: switching it on and off, and logging meanwhile, must go well. */
static void test_syslog_in_addition_to_the_file(void **state) {
    (void)state;
    logSetSyslog(1, "valkey-test", 0);
    logSetSyslog(1, "valkey-test", -1);
    logWarning("both");
    logSetSyslog(0, "", 0);
    assert_non_null(strstr(logged(), " # both\n"));
}

enum { WRITERS = 4, LINES = 200 };

static void *writeLines(void *arg) {
    for (int i = 0; i < LINES; i++) logWarning("<thread %d line %03d>", *(int *)arg, i);
    return NULL;
}

static void test_lines_of_threads_do_not_mix(void **state) {
    (void)state;
    pthread_t ids[WRITERS];
    int numbers[WRITERS];
    for (int i = 0; i < WRITERS; i++) {
        numbers[i] = i;
        assert_int_equal(pthread_create(&ids[i], NULL, writeLines, &numbers[i]), 0);
    }
    for (int i = 0; i < WRITERS; i++) assert_int_equal(pthread_join(ids[i], NULL), 0);
    int next[WRITERS] = {0}, lines = 0;
    for (const char *line = logged(); *line; line = strchr(line, '\n') + 1) {
        int thread, number;
        const char *message = strstr(line, " # <thread ");
        assert_non_null(message);
        assert_int_equal(sscanf(message, " # <thread %d line %d>\n", &thread, &number), 2);
        assert_in_range(thread, 0, WRITERS - 1);
        assert_int_equal(number, next[thread]);
        next[thread]++;
        lines++;
    }
    assert_int_equal(lines, WRITERS * LINES);
}

int test_log(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(test_legacy_lines, logToFile, logToStdout),
        cmocka_unit_test_setup_teardown(test_other_time_formats, logToFile, logToStdout),
        cmocka_unit_test_setup_teardown(test_dates_agree_with_libc, logToFile, logToStdout),
        cmocka_unit_test_setup_teardown(test_logfmt_lines, logToFile, logToStdout),
        cmocka_unit_test_setup_teardown(test_json_lines, logToFile, logToStdout),
        cmocka_unit_test_setup_teardown(test_long_messages_are_cut_before_they_are_escaped,
                                        logToFile, logToStdout),
        cmocka_unit_test_setup_teardown(test_level_decides_before_arguments_are_evaluated,
                                        logToFile, logToStdout),
        cmocka_unit_test_setup_teardown(test_raw_text_has_no_prefix, logToFile, logToStdout),
        cmocka_unit_test_setup_teardown(test_signal_line, logToFile, logToStdout),
        cmocka_unit_test_setup_teardown(test_errno_survives, logToFile, logToStdout),
        cmocka_unit_test_setup_teardown(test_syslog_in_addition_to_the_file, logToFile,
                                        logToStdout),
        cmocka_unit_test_setup_teardown(test_lines_of_threads_do_not_mix, logToFile, logToStdout),
    };
    return cmocka_run_group_tests_name("log", tests, NULL, NULL);
}
