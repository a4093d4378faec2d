/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Synchronous contexts against a server that replies as the test decides. */
#include <errno.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <unistd.h>

#include "client_test.h"

/* Understands the few commands of these tests. */
static void reply(fakeRequest *q) {
    if (fakeIs(q, 0, "PING")) {
        fakeSend(q, "+PONG\r\n");
    } else if (fakeIs(q, 0, "ECHO")) {
        fakeSend(q, "$%zu\r\n", q->len[1]);
        fakeSendBytes(q, q->argv[1], q->len[1]);
        fakeSend(q, "\r\n");
    } else if (fakeIs(q, 0, "PUSH")) {
        fakeSend(q, ">2\r\n+message\r\n+%s\r\n+OK\r\n", q->argv[1]);
    } else if (fakeIs(q, 0, "GARBAGE")) {
        fakeSend(q, "@oops\r\n");
    } else if (fakeIs(q, 0, "CLOSE")) {
        fakeClose(q);
    } else if (fakeIs(q, 0, "FILL")) {
        size_t len = strtoul(q->argv[1], NULL, 10);
        char *bytes = calloc(1, len);
        assert_non_null(bytes);
        memset(bytes, 'y', len);
        fakeSend(q, "$%zu\r\n", len);
        fakeSendBytes(q, bytes, len);
        fakeSend(q, "\r\n");
        free(bytes);
    } else if (!fakeIs(q, 0, "SILENT")) {
        fakeSend(q, "-ERR unknown command '%s'\r\n", q->argv[0]);
    }
}

static int setup(void **state) {
    *state = fakeStart(1, reply, NULL);
    countingStart();
    return 0;
}

static valkeyContext *connectTo(fakeServer *s) {
    valkeyContext *c = valkeyConnect("127.0.0.1", fakePort(s, 0));
    assert_non_null(c);
    assert_string_equal(c->errstr, "");
    assert_int_equal(c->err, 0);
    return c;
}

static void expectString(valkeyReply *r, int type, const char *str) {
    assert_non_null(r);
    assert_int_equal(r->type, type);
    assert_string_equal(r->str, str);
    freeReplyObject(r);
}

static void commandsGiveReplies(void **state) {
    valkeyContext *c = connectTo(*state);
    expectString(valkeyCommand(c, "PING"), VALKEY_REPLY_STATUS, "PONG");
    expectString(valkeyCommand(c, "ECHO %s", "a b"), VALKEY_REPLY_STRING, "a b");
    expectString(valkeyCommand(c, "NOPE"), VALKEY_REPLY_ERROR, "ERR unknown command 'NOPE'");
    const char *argv[] = {"ECHO", "x\0y"};
    size_t lens[] = {4, 3};
    valkeyReply *r = valkeyCommandArgv(c, 2, argv, lens);
    assert_int_equal(r->len, 3);
    assert_memory_equal(r->str, "x\0y", 4);
    freeReplyObject(r);
    assert_null(valkeyCommand(c, "SET %y", 1));
    assert_int_equal(c->err, VALKEY_ERR_OTHER);
    assert_string_equal(c->errstr, "Invalid format string");
    valkeyFree(c);
}

static void pipelinesKeepTheirOrder(void **state) {
    valkeyContext *c = connectTo(*state);
    for (int i = 0; i < 1000; i++)
        assert_int_equal(valkeyAppendCommand(c, "ECHO %d", i), VALKEY_OK);
    /* obuf has its length before its bytes. */
    uint64_t len;
    memcpy(&len, c->obuf - 17, sizeof(len));
    assert_int_equal(len, strlen(c->obuf));
    assert_int_equal(c->obuf[-1], 4);
    for (int i = 0; i < 1000; i++) {
        void *r;
        char text[16];
        sprintf(text, "%d", i);
        assert_int_equal(valkeyGetReply(c, &r), VALKEY_OK);
        expectString(r, VALKEY_REPLY_STRING, text);
    }
    valkeyFree(c);
}

static void longRepliesAndRequests(void **state) {
    valkeyContext *c = connectTo(*state);
    valkeyReply *r = valkeyCommand(c, "FILL 3000000");
    assert_int_equal(r->len, 3000000);
    freeReplyObject(r);
    char *bytes = malloc(2000000);
    memset(bytes, 'z', 2000000);
    r = valkeyCommand(c, "ECHO %b", bytes, (size_t)2000000);
    assert_int_equal(r->len, 2000000);
    assert_memory_equal(r->str, bytes, 2000000);
    freeReplyObject(r);
    free(bytes);
    expectString(valkeyCommand(c, "PING"), VALKEY_REPLY_STATUS, "PONG");
    assert_true(countingBytes() < 4096);
    valkeyFree(c);
}

static void closedConnectionsAreReportedAndReconnect(void **state) {
    valkeyContext *c = connectTo(*state);
    assert_null(valkeyCommand(c, "CLOSE"));
    assert_int_equal(c->err, VALKEY_ERR_EOF);
    assert_string_equal(c->errstr, "Server closed the connection");
    assert_null(valkeyCommand(c, "PING"));
    assert_int_equal(valkeyReconnect(c), VALKEY_OK);
    assert_int_equal(c->err, 0);
    expectString(valkeyCommand(c, "PING"), VALKEY_REPLY_STATUS, "PONG");
    assert_null(valkeyCommand(c, "GARBAGE"));
    assert_int_equal(c->err, VALKEY_ERR_PROTOCOL);
    assert_string_equal(c->errstr, "Protocol error, got \"@\" as reply type byte");
    assert_int_equal(valkeyReconnect(c), VALKEY_OK);
    expectString(valkeyCommand(c, "PING"), VALKEY_REPLY_STATUS, "PONG");
    valkeyFree(c);
}

static void timeoutsEndACommand(void **state) {
    struct timeval limit = {.tv_usec = 20000};
    valkeyOptions o = {.command_timeout = &limit, .connect_timeout = &limit};
    VALKEY_OPTIONS_SET_TCP(&o, "127.0.0.1", fakePort(*state, 0));
    valkeyContext *c = valkeyConnectWithOptions(&o);
    assert_non_null(c);
    assert_int_equal(c->err, 0);
    assert_null(valkeyCommand(c, "SILENT"));
    assert_int_equal(c->err, VALKEY_ERR_IO);
    assert_string_equal(c->errstr, strerror(EAGAIN));
    /* The limit also holds after reconnecting. */
    assert_int_equal(valkeyReconnect(c), VALKEY_OK);
    assert_null(valkeyCommand(c, "SILENT"));
    assert_string_equal(c->errstr, strerror(EAGAIN));
    valkeyFree(c);

    struct timeval wrong = {.tv_sec = -1};
    c = valkeyConnectWithTimeout("127.0.0.1", fakePort(*state, 0), wrong);
    assert_int_equal(c->err, VALKEY_ERR_IO);
    assert_string_equal(c->errstr, "Invalid timeout specified");
    valkeyFree(c);
}

/* A listener whose backlog is full does not reply to further connections. */
static void connectingIsLimitedInTime(void **state) {
    (void)state;
    struct sockaddr_in a = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    socklen_t len = sizeof(a);
    int fd = socket(AF_INET, SOCK_STREAM, 0);
    assert_int_equal(bind(fd, (struct sockaddr *)&a, sizeof(a)), 0);
    assert_int_equal(listen(fd, 0), 0);
    assert_int_equal(getsockname(fd, (struct sockaddr *)&a, &len), 0);
    valkeyContext *fill[4], *c;
    for (int i = 0; i < 4; i++) fill[i] = valkeyConnectNonBlock("127.0.0.1", ntohs(a.sin_port));
    struct timeval limit = {.tv_usec = 20000};
    c = valkeyConnectWithTimeout("127.0.0.1", ntohs(a.sin_port), limit);
    assert_int_equal(c->err, VALKEY_ERR_IO);
    assert_string_equal(c->errstr, strerror(ETIMEDOUT));
    valkeyFree(c);
    for (int i = 0; i < 4; i++) valkeyFree(fill[i]);
    close(fd);
}

static void connectionsThatFailSayWhy(void **state) {
    (void)state;
    int fd = socket(AF_INET, SOCK_STREAM, 0); /* bound, but it does not listen */
    struct sockaddr_in a = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    socklen_t len = sizeof(a);
    assert_int_equal(bind(fd, (struct sockaddr *)&a, sizeof(a)), 0);
    assert_int_equal(getsockname(fd, (struct sockaddr *)&a, &len), 0);
    valkeyContext *c = valkeyConnect("127.0.0.1", ntohs(a.sin_port));
    assert_int_equal(c->err, VALKEY_ERR_IO);
    assert_string_equal(c->errstr, strerror(ECONNREFUSED));
    valkeyFree(c);
    close(fd);
    c = valkeyConnectUnix("/nonexistent/socket");
    assert_int_equal(c->err, VALKEY_ERR_IO);
    assert_string_equal(c->errstr, strerror(ENOENT));
    valkeyFree(c);
    c = valkeyConnect("300.1.2.3.4", 1);
    assert_int_equal(c->err, VALKEY_ERR_OTHER);
    valkeyFree(c);
    valkeyOptions o = {.type = VALKEY_CONN_RDMA};
    c = valkeyConnectWithOptions(&o);
    assert_string_equal(c->errstr, "The type of connection is not supported");
    valkeyFree(c);
    o.type = 77;
    assert_null(valkeyConnectWithOptions(&o));
}

static void unixSockets(void **state) {
    (void)state;
    char path[64];
    sprintf(path, "/tmp/clientlib-test-%d.sock", (int)getpid());
    unlink(path);
    fakeServer *s = fakeStartUnix(path, reply, NULL);
    struct timeval limit = {.tv_sec = 5};
    valkeyContext *c = valkeyConnectUnixWithTimeout(path, limit);
    assert_int_equal(c->err, 0);
    expectString(valkeyCommand(c, "PING"), VALKEY_REPLY_STATUS, "PONG");
    assert_int_equal(valkeyReconnect(c), VALKEY_OK);
    expectString(valkeyCommand(c, "PING"), VALKEY_REPLY_STATUS, "PONG");
    valkeyFree(c);
    fakeStop(s);
    unlink(path);
}

static char pushed[64];
static void onPush(void *privdata, void *r) {
    valkeyReply *push = r;
    snprintf(pushed, sizeof(pushed), "%s/%s", (char *)privdata, push->element[1]->str);
    freeReplyObject(r);
}
static int privdata_freed;
static void freePrivdata(void *privdata) {
    assert_string_equal(privdata, "data");
    privdata_freed++;
}

static void pushesGoToTheCallback(void **state) {
    valkeyContext *c = connectTo(*state);
    expectString(valkeyCommand(c, "PUSH one"), VALKEY_REPLY_STATUS, "OK");
    valkeySetPushCallback(c, NULL);
    valkeyReply *r = valkeyCommand(c, "PUSH two");
    assert_int_equal(r->type, VALKEY_REPLY_PUSH);
    freeReplyObject(r);
    assert_int_equal(valkeyGetReply(c, (void **)&r), VALKEY_OK);
    expectString(r, VALKEY_REPLY_STATUS, "OK");
    valkeyFree(c);

    valkeyOptions o = {.push_cb = onPush};
    VALKEY_OPTIONS_SET_TCP(&o, "127.0.0.1", fakePort(*state, 0));
    VALKEY_OPTIONS_SET_PRIVDATA(&o, (void *)"data", freePrivdata);
    c = valkeyConnectWithOptions(&o);
    expectString(valkeyCommand(c, "PUSH three"), VALKEY_REPLY_STATUS, "OK");
    assert_string_equal(pushed, "data/three");
    assert_true(valkeySetPushCallback(c, NULL) == onPush);
    valkeyFree(c);
    assert_int_equal(privdata_freed, 1);
}

static void nonBlockingContexts(void **state) {
    valkeyContext *c = valkeyConnectNonBlock("127.0.0.1", fakePort(*state, 0));
    assert_int_equal(c->err, 0);
    assert_null(valkeyCommand(c, "PING"));
    int done = 0;
    while (!done) assert_int_equal(valkeyBufferWrite(c, &done), VALKEY_OK);
    void *r = NULL;
    while (!r) {
        assert_int_equal(valkeyBufferRead(c), VALKEY_OK);
        assert_int_equal(valkeyGetReply(c, &r), VALKEY_OK);
    }
    expectString(r, VALKEY_REPLY_STATUS, "PONG");
    static const char ping[] = "*1\r\n$4\r\nPING\r\n";
    assert_int_equal(valkeyWriteBytes(c, ping, sizeof(ping) - 1), sizeof(ping) - 1);
    for (r = NULL; !r;) {
        assert_int_equal(valkeyBufferRead(c), VALKEY_OK);
        assert_int_equal(valkeyGetReply(c, &r), VALKEY_OK);
    }
    expectString(r, VALKEY_REPLY_STATUS, "PONG");
    assert_int_equal(valkeySetTimeout(c, (struct timeval){1, 0}), VALKEY_ERR);
    valkeyFree(c);
}

static void descriptorsAndOptions(void **state) {
    valkeyContext *c = connectTo(*state);
    assert_int_equal(valkeyEnableKeepAlive(c), VALKEY_OK);
    assert_int_equal(valkeyEnableKeepAliveWithInterval(c, 1), VALKEY_OK);
    assert_int_equal(valkeySetTcpUserTimeout(c, 5000), VALKEY_OK);
    int fd = valkeyFreeKeepFd(c);
    c = valkeyConnectFd(fd);
    expectString(valkeyCommand(c, "PING"), VALKEY_REPLY_STATUS, "PONG");
    assert_int_equal(valkeyReconnect(c), VALKEY_ERR);
    assert_string_equal(c->errstr, "Not enough information to reconnect");
    valkeyFree(c);
    valkeyOptions o = {.options = VALKEY_OPT_PREFER_IP_UNSPEC | VALKEY_OPT_REUSEADDR};
    VALKEY_OPTIONS_SET_TCP(&o, "localhost", fakePort(*state, 0));
    o.endpoint.tcp.source_addr = "127.0.0.1";
    c = valkeyConnectWithOptions(&o);
    assert_string_equal(c->errstr, "");
    expectString(valkeyCommand(c, "PING"), VALKEY_REPLY_STATUS, "PONG");
    valkeyFree(c);
}

static void idleContextsAreSmall(void **state) {
    valkeyContext *c = connectTo(*state);
    for (int i = 0; i < 100; i++) assert_int_equal(valkeyAppendCommand(c, "FILL 1000"), VALKEY_OK);
    for (int i = 0; i < 100; i++) assert_int_equal(valkeyGetReply(c, NULL), VALKEY_OK);
    assert_true(countingBytes() < 4096);
    valkeyFree(c);
}

/* All calls of a synchronous program; true if every one succeeded. */
static bool useContext(fakeServer *s) {
    struct timeval limit = {.tv_sec = 5};
    valkeyOptions o = {.command_timeout = &limit, .connect_timeout = &limit, .push_cb = onPush};
    VALKEY_OPTIONS_SET_TCP(&o, "127.0.0.1", fakePort(s, 0));
    o.endpoint.tcp.source_addr = "127.0.0.1";
    valkeyContext *c = valkeyConnectWithOptions(&o);
    if (!c) return false;
    bool ok = c->err == 0;
    const char *argv[] = {"ECHO", "x"};
    for (int round = 0; round < 2 && ok; round++) {
        valkeyReply *r = valkeyCommand(c, "ECHO %s:%d", "text", 5);
        ok = r != NULL;
        freeReplyObject(r);
        r = ok ? valkeyCommandArgv(c, 2, argv, NULL) : NULL;
        ok = ok && r;
        freeReplyObject(r);
        for (int i = 0; i < 20 && ok; i++) ok = valkeyAppendCommand(c, "FILL 2000") == VALKEY_OK;
        for (int i = 0; i < 20 && ok; i++) ok = valkeyGetReply(c, NULL) == VALKEY_OK;
        ok = ok && valkeySetTimeout(c, limit) == VALKEY_OK;
        r = ok ? valkeyCommand(c, "PUSH one") : NULL;
        ok = ok && r;
        freeReplyObject(r);
        assert_true(ok || c->err == VALKEY_ERR_OOM);
        ok = ok && valkeyReconnect(c) == VALKEY_OK;
    }
    /* After an error the context can be used again, once there is memory. */
    if (!ok) {
        countingFailAt(-1, false);
        assert_int_equal(valkeyReconnect(c), c->tcp.host ? VALKEY_OK : VALKEY_ERR);
        if (c->tcp.host) expectString(valkeyCommand(c, "PING"), VALKEY_REPLY_STATUS, "PONG");
    }
    valkeyFree(c);
    return ok;
}

static void memoryExhaustedAtAnyPointIsAnError(void **state) {
    for (int all = 0; all < 2; all++) {
        for (long n = 0;; n++) {
            countingFailAt(n, all);
            bool ok = useContext(*state);
            assert_int_equal(countingBlocks(), 0);
            if (ok && !countingHasFailed()) break;
        }
    }
    countingFailAt(-1, false);
}

int test_context(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(commandsGiveReplies, setup, fakeTeardown),
        cmocka_unit_test_setup_teardown(pipelinesKeepTheirOrder, setup, fakeTeardown),
        cmocka_unit_test_setup_teardown(longRepliesAndRequests, setup, fakeTeardown),
        cmocka_unit_test_setup_teardown(closedConnectionsAreReportedAndReconnect, setup,
                                        fakeTeardown),
        cmocka_unit_test_setup_teardown(timeoutsEndACommand, setup, fakeTeardown),
        cmocka_unit_test_setup_teardown(connectingIsLimitedInTime, setup, fakeTeardown),
        cmocka_unit_test_setup_teardown(connectionsThatFailSayWhy, setup, fakeTeardown),
        cmocka_unit_test_setup_teardown(unixSockets, setup, fakeTeardown),
        cmocka_unit_test_setup_teardown(pushesGoToTheCallback, setup, fakeTeardown),
        cmocka_unit_test_setup_teardown(nonBlockingContexts, setup, fakeTeardown),
        cmocka_unit_test_setup_teardown(descriptorsAndOptions, setup, fakeTeardown),
        cmocka_unit_test_setup_teardown(idleContextsAreSmall, setup, fakeTeardown),
        cmocka_unit_test_setup_teardown(memoryExhaustedAtAnyPointIsAnError, setup, fakeTeardown),
    };
    return cmocka_run_group_tests_name("context", tests, NULL, NULL);
}
