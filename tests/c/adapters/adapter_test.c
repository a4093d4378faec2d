/* SPDX-License-Identifier: BSD-3-Clause
 *
 * The same tests for every adapter: commands, a long reply, time limits, connections that fail or
 * end, callbacks that free the context, and contexts of a cluster. */
#include <netinet/in.h>
#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

#include "adapter_test.h"
#include "../clientlib/client_test.h"

/* A cluster of one node. */
static void serve(fakeRequest *q) {
    if (fakeIs(q, 0, "CLUSTER")) {
        fakeSend(q, "*1\r\n*3\r\n:0\r\n:16383\r\n*3\r\n$9\r\n127.0.0.1\r\n:%d\r\n$1\r\nn\r\n",
                 fakePort(q->server, 0));
    } else if (fakeIs(q, 0, "ECHO")) {
        fakeSend(q, "$%zu\r\n", q->len[1]);
        fakeSendBytes(q, q->argv[1], q->len[1]);
        fakeSend(q, "\r\n");
    } else if (fakeIs(q, 0, "CLOSE")) {
        fakeClose(q);
    } else if (!fakeIs(q, 0, "SILENT")) {
        fakeSend(q, "+OK\r\n");
    }
}

static int connected, disconnected, replies, failures, gone;

static void onConnect(valkeyAsyncContext *ac, int status) {
    (void)ac;
    connected = status == VALKEY_OK ? 1 : -1;
}
static void onDisconnect(const valkeyAsyncContext *ac, int status) {
    (void)ac;
    disconnected = status == VALKEY_OK ? 1 : -1;
}
static void onGone(void *data) {
    (void)data;
    gone = 1;
}
static void onReply(valkeyAsyncContext *ac, void *reply, void *privdata) {
    (void)ac;
    if (!reply) {
        failures++;
        return;
    }
    if (privdata) assert_int_equal(((valkeyReply *)reply)->len, *(size_t *)privdata);
    replies++;
}
static void onReplyThenFree(valkeyAsyncContext *ac, void *reply, void *privdata) {
    onReply(ac, reply, privdata);
    if (reply) valkeyAsyncFree(ac);
}

static int setup(void **state) {
    connected = disconnected = replies = failures = gone = 0;
    *state = fakeStart(1, serve, NULL);
    countingStart();
    adapter_loop.begin();
    return 0;
}

static int teardown(void **state) {
    /* An event loop may release things later. */
    for (int i = 0; i < 1000 && countingBlocks() > 0; i++) adapter_loop.turn();
    size_t blocks = countingBlocks();
    adapter_loop.end();
    countingStop();
    fakeStop(*state);
    assert_int_equal(blocks, 0);
    return 0;
}

/* Turns the loop until `*value` is at least `least` (or negative), within ten seconds. */
static void runUntil(const int *value, int least) {
    for (int i = 0; i < 10000 && *value >= 0 && *value < least; i++) {
        adapter_loop.turn();
        if (*value >= 0 && *value < least) poll(NULL, 0, 1);
    }
    assert_true(*value < 0 || *value >= least);
}

static valkeyAsyncContext *begin(int port, const struct timeval *limit) {
    valkeyOptions o = {.command_timeout = limit, .connect_timeout = limit};
    VALKEY_OPTIONS_SET_TCP(&o, "127.0.0.1", port);
    valkeyAsyncContext *ac = valkeyAsyncConnectWithOptions(&o);
    assert_int_equal(ac->err, 0);
    ac->dataCleanup = onGone;
    assert_int_equal(adapter_loop.attach(ac), VALKEY_OK);
    assert_int_equal(adapter_loop.attach(ac), VALKEY_ERR); /* it has one */
    valkeyAsyncSetConnectCallback(ac, onConnect);
    valkeyAsyncSetDisconnectCallback(ac, onDisconnect);
    return ac;
}

static void commandsAndALongReply(void **state) {
    valkeyAsyncContext *ac = begin(fakePort(*state, 0), NULL);
    static char text[1000000];
    static size_t len = sizeof(text), small = 1;
    memset(text, 'x', sizeof(text));
    for (int i = 0; i < 1000; i++)
        assert_int_equal(valkeyAsyncCommand(ac, onReply, &small, "ECHO %d", i % 10), VALKEY_OK);
    assert_int_equal(valkeyAsyncCommand(ac, onReply, &len, "ECHO %b", text, len), VALKEY_OK);
    runUntil(&replies, 1001);
    assert_int_equal(connected, 1);
    /* After a pause, and as the last command. */
    assert_int_equal(valkeyAsyncCommand(ac, onReply, &small, "ECHO x"), VALKEY_OK);
    valkeyAsyncDisconnect(ac);
    runUntil(&gone, 1);
    assert_int_equal(replies, 1002);
    assert_int_equal(disconnected, 1);
}

static void silenceIsLimited(void **state) {
    struct timeval limit = {.tv_usec = 30000};
    valkeyAsyncContext *ac = begin(fakePort(*state, 0), &limit);
    assert_int_equal(valkeyAsyncCommand(ac, onReply, NULL, "PING"), VALKEY_OK);
    runUntil(&replies, 1);
    assert_int_equal(valkeyAsyncCommand(ac, onReply, NULL, "SILENT"), VALKEY_OK);
    runUntil(&gone, 1);
    assert_int_equal(failures, 1);
    assert_int_equal(disconnected, -1);
}

static void refusedConnectionsAreReported(void **state) {
    (void)state;
    int fd = socket(AF_INET, SOCK_STREAM, 0); /* bound, but it does not listen */
    struct sockaddr_in a = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    socklen_t len = sizeof(a);
    assert_int_equal(bind(fd, (struct sockaddr *)&a, sizeof(a)), 0);
    assert_int_equal(getsockname(fd, (struct sockaddr *)&a, &len), 0);
    begin(ntohs(a.sin_port), NULL);
    runUntil(&gone, 1);
    assert_int_equal(connected, -1);
    close(fd);
}

static void closedConnectionsAreReported(void **state) {
    valkeyAsyncContext *ac = begin(fakePort(*state, 0), NULL);
    assert_int_equal(valkeyAsyncCommand(ac, onReply, NULL, "CLOSE"), VALKEY_OK);
    runUntil(&gone, 1);
    assert_int_equal(failures, 1);
    assert_int_equal(disconnected, -1);
}

static void callbacksMayFreeTheContext(void **state) {
    valkeyAsyncContext *ac = begin(fakePort(*state, 0), &(struct timeval){.tv_sec = 5});
    assert_int_equal(valkeyAsyncCommand(ac, onReplyThenFree, NULL, "PING"), VALKEY_OK);
    assert_int_equal(valkeyAsyncCommand(ac, onReply, NULL, "PING"), VALKEY_OK);
    runUntil(&gone, 1);
    assert_int_equal(replies, 1);
    assert_int_equal(failures, 1);
}

static void onClusterReply(valkeyClusterAsyncContext *acc, void *reply, void *privdata) {
    (void)acc;
    onReply(NULL, reply, privdata);
}

static void clustersUseTheAdapter(void **state) {
    char seed[32];
    sprintf(seed, "127.0.0.1:%d", fakePort(*state, 0));
    valkeyClusterOptions o = {.initial_nodes = seed,
                              .options = VALKEY_OPT_BLOCKING_INITIAL_UPDATE,
                              .async_disconnect_callback = onDisconnect};
    assert_int_equal(adapter_loop.use(&o), VALKEY_OK);
    valkeyClusterAsyncContext *acc = valkeyClusterAsyncConnectWithOptions(&o);
    assert_int_equal(acc->err, 0);
    for (int i = 0; i < 100; i++)
        assert_int_equal(valkeyClusterAsyncCommand(acc, onClusterReply, NULL, "SET k:%d v", i),
                         VALKEY_OK);
    runUntil(&replies, 100);
    valkeyClusterAsyncDisconnect(acc);
    runUntil(&disconnected, 1);
    assert_int_equal(disconnected, 1);
    valkeyClusterAsyncFree(acc);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(commandsAndALongReply, setup, teardown),
        cmocka_unit_test_setup_teardown(silenceIsLimited, setup, teardown),
        cmocka_unit_test_setup_teardown(refusedConnectionsAreReported, setup, teardown),
        cmocka_unit_test_setup_teardown(closedConnectionsAreReported, setup, teardown),
        cmocka_unit_test_setup_teardown(callbacksMayFreeTheContext, setup, teardown),
        cmocka_unit_test_setup_teardown(clustersUseTheAdapter, setup, teardown),
    };
    return cmocka_run_group_tests_name(adapter_loop.name, tests, NULL, NULL);
}
