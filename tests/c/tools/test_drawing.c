/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Bars, sparklines and histograms of valkey-cli. */
#include "tools/cli/bars.h"
#include "tools/cli/histogram_view.h"
#include "tools_test.h"

static void barsHaveEighthsOfAColumn(void **state) {
    static const struct {
        double share;
        const char *blocks, *ascii;
    } cases[] = {{0, "", ""},       {1, "████", "####"},  {0.5, "██", "##"}, {2, "████", "####"},
                 {0.001, "▏", "#"}, {0.28125, "█▏", "#"}, {-1, "", ""}};
    for (size_t i = 0; i < sizeof(cases) / sizeof(*cases); i++) {
        str out = STR_EMPTY;
        barsAppend(&out, cases[i].share, 4, true);
        assert_string_equal(strText(&out), cases[i].blocks);
        strClear(&out);
        barsAppend(&out, cases[i].share, 4, false);
        assert_string_equal(strText(&out), cases[i].ascii);
        strFree(&out);
    }
}

static void latenciesHaveALogarithmicScale(void **state) {
    static const uint64_t us[] = {0, 31, 32, 63, 64, 1000, 2047, 2048, 1000000};
    str blocks = STR_EMPTY, ascii = STR_EMPTY;
    for (size_t i = 0; i < sizeof(us) / sizeof(*us); i++) {
        barsAppendLatency(&blocks, us[i], true);
        barsAppendLatency(&ascii, us[i], false);
    }
    assert_string_equal(strText(&blocks), "▁▁▂▂▃▆▇██");
    assert_string_equal(strText(&ascii), "__..-+*##");
    strFree(&blocks);
    strFree(&ascii);
}

static valkeyReply *parse(const char *bytes) {
    void *reply = NULL;
    valkeyReader *reader = valkeyReaderCreate();
    assert_int_equal(valkeyReaderFeed(reader, bytes, strlen(bytes)), VALKEY_OK);
    assert_int_equal(valkeyReaderGetReply(reader, &reply), VALKEY_OK);
    assert_non_null(reply);
    valkeyReaderFree(reader);
    return reply;
}

static void expectDrawing(const char *bytes, histogramStyle style, const char *expected) {
    str out = STR_EMPTY;
    valkeyReply *reply = parse(bytes);
    assert_true(histogramDraw(&out, reply, style) == (expected != NULL));
    assert_string_equal(strText(&out), expected ? expected : "");
    freeReplyObject(reply);
    strFree(&out);
}

static void histogramsAreDrawnInBothProtocols(void **state) {
    static const char expected[] = "get  10 calls, p50 <= 8 us, p99 <= 1.06 ms\n"
                                   "  <=     8 us            8  ########\n"
                                   "  <=    16 us            0\n"
                                   "  <=  1.06 ms            2  ##\n"
                                   "\n"
                                   "set  1 call, p50 <= 2.16 s, p99 <= 2.16 s\n"
                                   "  <=   2.16 s            1  ########\n";
    histogramStyle style = {38, false, false};
    expectDrawing(
        "*4\r\n$3\r\nget\r\n*4\r\n$5\r\ncalls\r\n:10\r\n$14\r\nhistogram_usec\r\n*6\r\n:8\r\n:8\r\n"
        ":16\r\n:8\r\n:1056\r\n:10\r\n$3\r\nset\r\n*4\r\n$5\r\ncalls\r\n:1\r\n$14\r\n"
        "histogram_usec\r\n*2\r\n:2162688\r\n:1\r\n",
        style, expected);
    expectDrawing(
        "%2\r\n$3\r\nget\r\n%2\r\n$5\r\ncalls\r\n:10\r\n$14\r\nhistogram_usec\r\n%3\r\n:8\r\n:8\r\n"
        ":16\r\n:8\r\n:1056\r\n:10\r\n$3\r\nset\r\n%2\r\n$5\r\ncalls\r\n:1\r\n$14\r\n"
        "histogram_usec\r\n%1\r\n:2162688\r\n:1\r\n",
        style, expected);
}

static void aNarrowTerminalHasNoBars(void **state) {
    histogramStyle style = {20, true, true};
    expectDrawing(
        "*2\r\n$3\r\nget\r\n*2\r\n$14\r\nhistogram_usec\r\n*2\r\n:8\r\n:3\r\n", style,
        "\033[1mget\033[0m  3 calls, p50 <= 8 us, p99 <= 8 us\n  <=     8 us            3\n");
}

static void otherRepliesAreNotDrawn(void **state) {
    static const char *const replies[] = {
        "*0\r\n",
        ":1\r\n",
        "-ERR x\r\n",
        "*2\r\n$3\r\nget\r\n:1\r\n",
        "*1\r\n$3\r\nget\r\n",
        "*2\r\n$3\r\nget\r\n*2\r\n$14\r\nhistogram_usec\r\n*2\r\n$1\r\n8\r\n:3\r\n",
        "*2\r\n$3\r\nget\r\n*2\r\n$14\r\nhistogram_usec\r\n*1\r\n:8\r\n",
        "*2\r\n$3\r\nget\r\n*2\r\n$5\r\ncalls\r\n:1\r\n",
        "*2\r\n:3\r\n*2\r\n$14\r\nhistogram_usec\r\n*2\r\n:8\r\n:3\r\n"};
    for (size_t i = 0; i < sizeof(replies) / sizeof(*replies); i++)
        expectDrawing(replies[i], (histogramStyle){80, true, true}, NULL);
}

int test_drawing(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(barsHaveEighthsOfAColumn),
        cmocka_unit_test(latenciesHaveALogarithmicScale),
        cmocka_unit_test(histogramsAreDrawnInBothProtocols),
        cmocka_unit_test(aNarrowTerminalHasNoBars),
        cmocka_unit_test(otherRepliesAreNotDrawn),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
