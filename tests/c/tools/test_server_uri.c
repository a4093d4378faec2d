/* SPDX-License-Identifier: BSD-3-Clause
 *
 * URIs of servers. */
#include "tools/server_uri.h"
#include "tools_test.h"

static void expectText(const char *text, const char *expected) {
    if (expected) {
        assert_non_null(text);
        assert_string_equal(text, expected);
    } else {
        assert_null(text);
    }
}

static void partsAreOptional(void **state) {
    static const struct {
        const char *uri;
        serverUri parts;
    } cases[] = {
        {"valkey://", {false, NULL, NULL, NULL, -1, -1}},
        {"redis://h", {false, NULL, NULL, (char *)"h", -1, -1}},
        {"VALKEYS://h:7000/3", {true, NULL, NULL, (char *)"h", 7000, 3}},
        {"rediss://secret@h", {true, NULL, (char *)"secret", (char *)"h", -1, -1}},
        {"valkey://u:p:q@h:1/", {false, (char *)"u", (char *)"p:q", (char *)"h", 1, -1}},
        {"valkey://:p@:1", {false, NULL, (char *)"p", NULL, 1, -1}},
        {"valkey:///4", {false, NULL, NULL, NULL, -1, 4}},
        {"valkey://h:x/y", {false, NULL, NULL, (char *)"h", 0, 0}},
        {"valkey://u%40%3a:p%2F%41@h", {false, (char *)"u@:", (char *)"p/A", (char *)"h", -1, -1}},
        {"valkey://h%41", {false, NULL, NULL, (char *)"h%41", -1, -1}},
        {"valkey://a@b@h:1", {false, NULL, (char *)"a", (char *)"b@h", 1, -1}},
    };
    for (size_t i = 0; i < sizeof(cases) / sizeof(*cases); i++) {
        serverUri uri;
        const serverUri *expected = &cases[i].parts;
        assert_null(serverUriParse(cases[i].uri, &uri));
        assert_true(uri.tls == expected->tls);
        expectText(uri.user, expected->user);
        expectText(uri.password, expected->password);
        expectText(uri.host, expected->host);
        assert_int_equal(uri.port, expected->port);
        assert_int_equal(uri.db, expected->db);
        serverUriClear(&uri);
    }
}

/* valkey-benchmark once took "[" for the host. */
static void addressesOfIpv6AreInBrackets(void **state) {
    static const struct {
        const char *uri, *host;
        int port;
    } cases[] = {{"valkey://[::1]:7000/1", "::1", 7000},
                 {"valkey://[fe80::1%eth0]", "fe80::1%eth0", -1},
                 {"valkey://u:p@[::1]/1", "::1", -1}};
    for (size_t i = 0; i < sizeof(cases) / sizeof(*cases); i++) {
        serverUri uri;
        assert_null(serverUriParse(cases[i].uri, &uri));
        expectText(uri.host, cases[i].host);
        assert_int_equal(uri.port, cases[i].port);
        serverUriClear(&uri);
    }
}

/* valkey-benchmark once sent such passwords as they are. */
static void invalidUrisAreRefused(void **state) {
    static const char *const cases[][2] = {
        {"h:7000", "Invalid URI scheme"},
        {"http://h", "Invalid URI scheme"},
        {"valkey:/h", "Invalid URI scheme"},
        {"valkey://u%@h", "Incomplete URI encoding"},
        {"valkey://u%4@h", "Illegal character in URI encoding"},
        {"valkey://u:p%4g@h", "Illegal character in URI encoding"},
        {"valkey://u%zz:p@h", "Illegal character in URI encoding"},
    };
    for (size_t i = 0; i < sizeof(cases) / sizeof(*cases); i++) {
        serverUri uri;
        expectText(serverUriParse(cases[i][0], &uri), cases[i][1]);
        serverUriClear(&uri);
    }
}

int test_server_uri(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(partsAreOptional),
        cmocka_unit_test(addressesOfIpv6AreInBrackets),
        cmocka_unit_test(invalidUrisAreRefused),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
