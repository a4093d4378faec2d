/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Tests of io/net_addr on the loopback. */
#include "io_test.h"

#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <sys/stat.h>
#include <unistd.h>

#include "io/net_addr.h"
#include "io/sys.h"

static const netListenOptions plain = {.backlog = 16, .ip6_only = true};

static int option(int fd, int level, int name) {
    int value = -1;
    socklen_t len = sizeof(value);
    assert_int_equal(getsockopt(fd, level, name, &value, &len), 0);
    return value;
}

static void assertFlags(int fd) {
    assert_true(fcntl(fd, F_GETFL) & O_NONBLOCK);
    assert_true(fcntl(fd, F_GETFD) & FD_CLOEXEC);
}

/* Listens on a port of the kernel's choice; `*port` is which. -1 when the family is missing
 * here. */
static int listenAnywhere(const char *addr, int *port) {
    bool unsupported = true;
    reason why = {{0}};
    int fd = netListenTcp(addr, 0, &plain, &unsupported, &why);
    if (fd < 0) {
        assert_true(unsupported);
        return -1;
    }
    assert_false(unsupported);
    char text[NET_ADDR_TEXT_MAX];
    assert_true(netLocalText(fd, text));
    *port = atoi(strrchr(text, ':') + 1);
    assert_true(*port > 0);
    return fd;
}

static int acceptOne(int listen_fd) {
    testAwait(listen_fd, false);
    int fd = netAccept(listen_fd);
    assert_true(fd >= 0);
    return fd;
}

/* Both ends name each other in the same words. */
static void connectAndCompare(const char *bind_addr, const char *dial_addr,
                              const char *expected_host) {
    int port = 0;
    int listen_fd = listenAnywhere(bind_addr, &port);
    if (listen_fd < 0) return; /* no IPv6 here */
    assertFlags(listen_fd);
    assert_int_equal(netAccept(listen_fd), -1);
    assert_int_equal(errno, EAGAIN);
    reason why = {{0}};
    int client = netConnectTcp(dial_addr, port, "", false, &why);
    if (client < 0) fail_msg("%s", why.text);
    assertFlags(client);
    int served = acceptOne(listen_fd);
    assertFlags(served);
    testAwait(client, true);
    assert_int_equal(netSocketError(client), 0);
    char text[NET_ADDR_TEXT_MAX], other[NET_ADDR_TEXT_MAX], expected[NET_ADDR_TEXT_MAX];
    snprintf(expected, sizeof(expected), "%s:%d", expected_host, port);
    assert_true(netPeerText(client, text));
    assert_string_equal(text, expected);
    assert_true(netLocalText(served, text));
    assert_string_equal(text, expected);
    assert_true(netLocalText(client, text));
    assert_true(netPeerText(served, other));
    assert_string_equal(text, other);
    assert_true(netPeerIsLocal(client));
    assert_true(netPeerIsLocal(served));
    close(client);
    close(served);
    close(listen_fd);
}

static void test_ip4(void **state) {
    (void)state;
    connectAndCompare("127.0.0.1", "127.0.0.1", "127.0.0.1");
    connectAndCompare("*", "127.0.0.1", "127.0.0.1");
    connectAndCompare("0.0.0.0", "127.0.0.1", "127.0.0.1");
}

static void test_ip6(void **state) {
    (void)state;
    connectAndCompare("::1", "::1", "[::1]");
    connectAndCompare("::*", "::1", "[::1]");
}

static void test_ip6_only_leaves_ip4_free(void **state) {
    (void)state;
    reason why = {{0}};
    int four = -1, six[64], tried = 0;
    /* A connection of another program may use the IPv4 port; then the next free one is tried. */
    while (four < 0 && tried < (int)(sizeof(six) / sizeof(six[0]))) {
        int port = 0;
        six[tried] = listenAnywhere("::*", &port);
        if (six[tried++] < 0) return; /* no IPv6 here */
        four = netListenTcp("*", port, &plain, NULL, &why);
    }
    while (tried) close(six[--tried]);
    if (four < 0) fail_msg("%s", why.text);
    close(four);
}

static void test_source_address(void **state) {
    (void)state;
    int port = 0;
    int listen_fd = listenAnywhere("127.0.0.1", &port);
    int client = netConnectTcp("127.0.0.1", port, "127.0.0.2", false, NULL);
    assert_true(client >= 0);
    int served = acceptOne(listen_fd);
    char text[NET_ADDR_TEXT_MAX];
    assert_true(netPeerText(served, text));
    assert_memory_equal(text, "127.0.0.2:", 10);
    close(client);
    close(served);
    reason why = {{0}};
    assert_int_equal(netConnectTcp("127.0.0.1", port, "203.0.113.1", false, &why), -1);
    assert_non_null(strstr(why.text, "bind: "));
    close(listen_fd);
}

static void test_failures_have_a_reason(void **state) {
    (void)state;
    int port = 0;
    int fd = listenAnywhere("127.0.0.1", &port);
    bool unsupported = true;
    reason why = {{0}};
    assert_int_equal(netListenTcp("127.0.0.1", port, &plain, &unsupported, &why), -1);
    assert_string_equal(why.text, "bind: Address already in use");
    assert_false(unsupported);
    close(fd);
    assert_int_equal(netListenTcp("203.0.113.1", 0, &plain, &unsupported, &why), -1);
    assert_string_equal(why.text, "bind: Cannot assign requested address");
    assert_true(unsupported);
    assert_int_equal(netListenTcp("256.1.1.1.", 0, &plain, &unsupported, &why), -1);
    assert_true(why.text[0] != '\0');
    assert_false(unsupported);
    assert_int_equal(netListenTcp("256.1.1.1.", 0, &plain, NULL, NULL), -1);
    assert_int_equal(netConnectTcp("256.1.1.1.", 1, "", false, &why), -1);
}

/* Nothing listens on a port that was just released. */
static void test_a_refused_connection_is_a_socket_error(void **state) {
    (void)state;
    int port = 0;
    int fd = listenAnywhere("127.0.0.1", &port);
    close(fd);
    reason why = {{0}};
    int client = netConnectTcp("127.0.0.1", port, NULL, false, &why);
    if (client < 0) { /* reported immediately */
        assert_non_null(strstr(why.text, "Connection refused"));
        return;
    }
    testAwait(client, true);
    assert_int_equal(netSocketError(client), ECONNREFUSED);
    assert_int_equal(netSocketError(client), 0); /* cleared by reading it */
    char text[NET_ADDR_TEXT_MAX];
    assert_false(netPeerText(client, text));
    assert_string_equal(text, "?:0");
    assert_false(netPeerIsLocal(client));
    close(client);
}

static int connectUnix(const char *path) {
    struct sockaddr_un addr = {.sun_family = AF_UNIX};
    snprintf(addr.sun_path, sizeof(addr.sun_path), "%s", path);
    int fd = socket(AF_UNIX, SOCK_STREAM, 0);
    assert_int_equal(connect(fd, (struct sockaddr *)&addr, sizeof(addr)), 0);
    return fd;
}

static void test_unix_sockets(void **state) {
    (void)state;
    const char *path = testPath("socket");
    reason why = {{0}};
    int listen_fd = netListenUnix(path, 0700, "", 16, &why);
    if (listen_fd < 0) fail_msg("%s", why.text);
    assertFlags(listen_fd);
    struct stat st;
    assert_int_equal(stat(path, &st), 0);
    assert_int_equal(st.st_mode & 0777, 0700);
    int client = connectUnix(path);
    int served = acceptOne(listen_fd);
    char text[NET_ADDR_TEXT_MAX], expected[NET_ADDR_TEXT_MAX];
    snprintf(expected, sizeof(expected), "%s:0", path);
    assert_true(netPeerText(client, text));
    assert_string_equal(text, expected);
    assert_true(netPeerText(served, text));
    assert_string_equal(text, expected);
    assert_true(netLocalText(client, text));
    assert_string_equal(text, expected);
    assert_true(netPeerIsLocal(served));
    close(client);
    close(served);
    /* The file remains when its listener is closed, and the next one replaces it. */
    close(listen_fd);
    listen_fd = netListenUnix(path, 0, NULL, 16, &why);
    assert_true(listen_fd >= 0);
    close(listen_fd);
    unlink(path);
}

static void test_unix_failures(void **state) {
    (void)state;
    char path[200];
    reason why = {{0}};
    memset(path, 'x', sizeof(path) - 1);
    path[0] = '/';
    path[sizeof(path) - 1] = '\0';
    assert_int_equal(netListenUnix(path, 0, "", 16, &why), -1);
    assert_non_null(strstr(why.text, "199 bytes"));
    assert_int_equal(netListenUnix("/nonexistent/x", 0, "", 16, &why), -1);
    assert_string_equal(why.text, "bind: No such file or directory");
    const char *socket_path = testPath("socket2");
    assert_int_equal(netListenUnix(socket_path, 0, "no such group", 16, &why), -1);
    assert_string_equal(why.text, "unknown group 'no such group'");
    assert_int_equal(access(socket_path, F_OK), -1); /* nothing is left */
}

static void test_socket_without_names(void **state) {
    (void)state;
    int ends[2];
    char text[NET_ADDR_TEXT_MAX];
    testPair(ends);
    assert_false(netPeerText(ends[0], text));
    assert_string_equal(text, "?:0");
    assert_true(netPeerIsLocal(ends[0]));
    close(ends[0]);
    close(ends[1]);
    assert_false(netLocalText(ends[0], text));
    assert_string_equal(text, "?:0");
    assert_true(netSocketError(-1) != 0);
}

static void test_valid_addresses(void **state) {
    (void)state;
    static const char *const good[] = {"127.0.0.1", "255.255.255.255", "::1",
                                       "::",        "fe80::1",         "::ffff:1.2.3.4"};
    static const char *const bad[] = {"",          "localhost", "127.0.0.1:80", "1.2.3",
                                      "256.1.1.1", "[::1]",     "::1%lo",       "*",
                                      "1.2.3.4 ",  "0x7f.1.1.1"};
    for (size_t i = 0; i < sizeof(good) / sizeof(good[0]); i++)
        assert_true(netAddrIsValid(good[i]));
    for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) assert_false(netAddrIsValid(bad[i]));
}

static void test_options(void **state) {
    (void)state;
    int port = 0;
    int fd = listenAnywhere("127.0.0.1", &port);
    assert_int_equal(netSetNoDelay(fd, true), OK);
    assert_true(option(fd, IPPROTO_TCP, TCP_NODELAY) != 0);
    assert_int_equal(netSetNoDelay(fd, false), OK);
    assert_int_equal(option(fd, IPPROTO_TCP, TCP_NODELAY), 0);
    assert_int_equal(netSetKeepAlive(fd, 300), OK);
    assert_true(option(fd, SOL_SOCKET, SO_KEEPALIVE) != 0);
#ifdef TCP_KEEPIDLE
    assert_int_equal(option(fd, IPPROTO_TCP, TCP_KEEPIDLE), 300);
    assert_int_equal(option(fd, IPPROTO_TCP, TCP_KEEPINTVL), 100);
    assert_int_equal(option(fd, IPPROTO_TCP, TCP_KEEPCNT), 3);
    assert_int_equal(netSetKeepAlive(fd, 1), OK);
    assert_int_equal(option(fd, IPPROTO_TCP, TCP_KEEPINTVL), 1);
#endif
    assert_int_equal(netSetKeepAlive(fd, 0), OK);
    assert_int_equal(option(fd, SOL_SOCKET, SO_KEEPALIVE), 0);
    assert_int_equal(netSetMark(fd, 0), OK);
    close(fd);
    assert_int_equal(netSetNoDelay(fd, true), ERR_IO);
    assert_int_equal(netSetKeepAlive(fd, 10), ERR_IO);
    assert_int_equal(netSetMark(fd, 7), ERR_IO);
}

static int accepts;

static int hesitantAccept(int fd, struct sockaddr *addr, socklen_t *len, int flags) {
    (void)fd, (void)addr, (void)len, (void)flags;
    static const int errors[] = {EINTR, ECONNABORTED, EMFILE};
    errno = errors[accepts++];
    return -1;
}

static void test_accept_ignores_transient_errors(void **state) {
    (void)state;
    const sysCalls bent = {.accept4 = hesitantAccept};
    sysCallsSet(&bent);
    accepts = 0;
    assert_int_equal(netAccept(0), -1);
    assert_int_equal(errno, EMFILE);
    assert_int_equal(accepts, 3);
    sysCallsSet(NULL);
}

static void test_fd_limit(void **state) {
    (void)state;
    struct rlimit before, limit;
    assert_int_equal(getrlimit(RLIMIT_NOFILE, &before), 0);
    limit = before;
    limit.rlim_cur = 200;
    assert_int_equal(setrlimit(RLIMIT_NOFILE, &limit), 0);
    assert_int_equal(netRaiseFdLimit(100), 200); /* never lowered */
    assert_int_equal(netRaiseFdLimit(250), 250);
    assert_int_equal(getrlimit(RLIMIT_NOFILE, &limit), 0);
    assert_int_equal(limit.rlim_cur, 250);
    /* More than any kernel gives: as much as can be had, and it comes back. */
    int64_t most = netRaiseFdLimit((int64_t)1 << 40);
    assert_true(most >= 250);
    assert_int_equal(getrlimit(RLIMIT_NOFILE, &limit), 0);
    assert_int_equal(limit.rlim_cur, most);
    limit = before;
    limit.rlim_max = before.rlim_max > limit.rlim_max ? before.rlim_max : limit.rlim_max;
    assert_int_equal(setrlimit(RLIMIT_NOFILE, &limit), 0);
}

int test_net_addr(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_ip4),
        cmocka_unit_test(test_ip6),
        cmocka_unit_test(test_ip6_only_leaves_ip4_free),
        cmocka_unit_test(test_source_address),
        cmocka_unit_test(test_failures_have_a_reason),
        cmocka_unit_test(test_a_refused_connection_is_a_socket_error),
        cmocka_unit_test(test_unix_sockets),
        cmocka_unit_test(test_unix_failures),
        cmocka_unit_test(test_socket_without_names),
        cmocka_unit_test(test_valid_addresses),
        cmocka_unit_test(test_options),
        cmocka_unit_test(test_accept_ignores_transient_errors),
        cmocka_unit_test(test_fd_limit),
    };
    return cmocka_run_group_tests_name("net_addr", tests, NULL, NULL);
}
