/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Tests of metrics/http_parse: heads of requests. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "base/base.h"
#include "metrics/metrics_priv.h"

static void test_a_request_is_parsed(void **state) {
    (void)state;
    static const char bytes[] =
        "\r\nGET /metrics?x=1 HTTP/1.1\r\nHost: a\r\nACCEPT:  text/plain \r\n\r\nGET";
    httpRequest r;
    assert_int_equal(httpParse(sliceOf(bytes), &r), sizeof(bytes) - 1 - 3);
    assert_true(sliceEqual(r.method, SLICE("GET")));
    assert_true(sliceEqual(r.path, SLICE("/metrics")));
    assert_true(sliceEqual(r.accept, SLICE("text/plain")));
    assert_true(r.keep_alive);
    assert_false(r.has_body);
}

static void test_every_prefix_of_a_request_is_incomplete(void **state) {
    (void)state;
    static const char bytes[] = "GET / HTTP/1.0\r\nConnection: x\r\nA: b\r\n\r\n";
    httpRequest r;
    for (size_t len = 0; len < sizeof(bytes) - 1; len++)
        assert_int_equal(httpParse(sliceMake(bytes, len), &r), 0);
    assert_int_equal(httpParse(sliceOf(bytes), &r), sizeof(bytes) - 1);
    assert_false(r.keep_alive);
}

static void test_closing_and_bodies_are_noticed(void **state) {
    (void)state;
    httpRequest r;
    assert_true(httpParse(SLICE("GET / HTTP/1.1\nconnection: Close\n\n"), &r) > 0);
    assert_false(r.keep_alive);
    assert_true(httpParse(SLICE("GET / HTTP/1.1\nContent-Length: 3\n\nabc"), &r) > 0);
    assert_true(r.has_body);
    assert_true(httpParse(SLICE("GET / HTTP/1.1\nContent-Length: 0\n\n"), &r) > 0);
    assert_false(r.has_body);
    assert_true(httpParse(SLICE("GET / HTTP/1.1\nTransfer-Encoding: chunked\n\n"), &r) > 0);
    assert_true(r.has_body);
}

static void test_invalid_requests_are_refused(void **state) {
    (void)state;
    static const char *const bad[] = {
        "PING\n\n",
        "GET /\n\n",
        "GET x HTTP/1.1\n\n",
        "GET  / HTTP/1.1\n\n",
        " / HTTP/1.1\n\n",
        "GET / HTTP/2\n\n",
        "GET / HTTP/1.1 x\n\n",
        "GET /\t HTTP/1.1\n\n",
        "GET / HTTP/1.1\nx\n\n",
        "GET / HTTP/1.1\n: x\n\n",
    };
    httpRequest r;
    for (size_t i = 0; i < COUNT_OF(bad); i++) assert_int_equal(httpParse(sliceOf(bad[i]), &r), -1);
}

static void test_base64_is_decoded(void **state) {
    (void)state;
    static const struct {
        const char *text, *decoded;
    } cases[] = {{"", ""},      {"YQ==", "a"},   {"YWI=", "ab"},
                 {"YWI", "ab"}, {"YWJj", "abc"}, {"+/8=", "\xfb\xff"}};
    char bytes[8];
    for (size_t i = 0; i < COUNT_OF(cases); i++) {
        size_t len = strlen(cases[i].decoded);
        assert_int_equal(httpDecodeBase64(sliceOf(cases[i].text), bytes, sizeof(bytes)), len);
        assert_memory_equal(bytes, cases[i].decoded, len);
    }
    assert_int_equal(httpDecodeBase64(SLICE("Y W="), bytes, sizeof(bytes)), -1);
    assert_int_equal(httpDecodeBase64(SLICE("YWJj"), bytes, 2), -1);
}

int test_http_parse(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_a_request_is_parsed),
        cmocka_unit_test(test_every_prefix_of_a_request_is_incomplete),
        cmocka_unit_test(test_closing_and_bodies_are_noticed),
        cmocka_unit_test(test_base64_is_decoded),
        cmocka_unit_test(test_invalid_requests_are_refused),
    };
    return cmocka_run_group_tests_name("http_parse", tests, NULL, NULL);
}
