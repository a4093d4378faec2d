/* SPDX-License-Identifier: BSD-3-Clause
 *
 * What programs and transports see of the library besides commands: sockets (net.h), lent memory,
 * options and commands that are refused, and errors of memory in pipelines. */
#include <errno.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sys/socket.h>
#include <unistd.h>

#include <valkey/adapters/poll.h>
#include <valkey/async.h>
#include <valkey/cluster.h>
#include <valkey/net.h>

#include "client_test.h"

/* A cluster of one node. */
static void serve(fakeRequest *q) {
    if (fakeIs(q, 0, "CLUSTER")) {
        fakeSend(q, "*1\r\n*3\r\n:0\r\n:16383\r\n*3\r\n$9\r\n127.0.0.1\r\n:%d\r\n$1\r\nn\r\n",
                 fakePort(q->server, 0));
    } else {
        fakeSend(q, "+OK\r\n");
    }
}

static int setup(void **state) {
    *state = fakeStart(1, serve, NULL);
    countingStart();
    return 0;
}

static bool isOk(valkeyReply *r) {
    bool ok = r && r->type == VALKEY_REPLY_STATUS && strcmp(r->str, "OK") == 0;
    freeReplyObject(r);
    return ok;
}

/* ------------------------------------------------------------------ sockets */

static int socketOption(const valkeyContext *c, int level, int option) {
    int value = -1;
    socklen_t len = sizeof(value);
    assert_int_equal(getsockopt(c->fd, level, option, &value, &len), 0);
    return value;
}

static void socketsOfContexts(void **state) {
    valkeyContext *c = valkeyConnectNonBlock("127.0.0.1", fakePort(*state, 0));
    int done = 0;
    for (int i = 0; i < 10000 && !done; i++) {
        assert_int_equal(valkeyCheckConnectDone(c, &done), VALKEY_OK);
        if (!done) usleep(100);
    }
    assert_true(done);
    assert_int_equal(valkeyCheckSocketError(c), VALKEY_OK);
    assert_int_equal(valkeySetTcpNoDelay(c), VALKEY_OK);
    assert_int_equal(socketOption(c, IPPROTO_TCP, TCP_NODELAY), 1);
    assert_int_equal(valkeyKeepAlive(c, 30), VALKEY_OK);
    assert_int_equal(socketOption(c, IPPROTO_TCP, TCP_KEEPIDLE), 30);
    assert_int_equal(valkeyContextSetTcpUserTimeout(c, 1234), VALKEY_OK);
    assert_int_equal(socketOption(c, IPPROTO_TCP, TCP_USER_TIMEOUT), 1234);
    assert_int_equal(valkeyTcpSetTimeout(c, (struct timeval){.tv_sec = 3}), VALKEY_OK);
    struct timeval tv = {0};
    socklen_t len = sizeof(tv);
    assert_int_equal(getsockopt(c->fd, SOL_SOCKET, SO_RCVTIMEO, &tv, &len), 0);
    assert_int_equal(tv.tv_sec, 3);
    int fd = c->fd;
    valkeyNetClose(c);
    assert_true(c->fd == VALKEY_INVALID_FD);
    assert_int_equal(write(fd, "x", 1), -1);
    valkeyNetClose(c);
    /* The same context connects anew. */
    valkeyOptions o = {0};
    VALKEY_OPTIONS_SET_TCP(&o, "127.0.0.1", fakePort(*state, 0));
    assert_int_equal(valkeyContextConnectTcp(c, &o), VALKEY_OK);
    assert_true(c->fd != VALKEY_INVALID_FD);
    valkeyFree(c);
}

static void endpointsThatAreNotPossible(void **state) {
    char path[200];
    memset(path, 'a', sizeof(path));
    path[sizeof(path) - 1] = '\0';
    valkeyContext *c = valkeyConnectUnix(path);
    assert_int_equal(c->err, VALKEY_ERR_OTHER);
    assert_string_equal(c->errstr, "Unix socket path too long");
    valkeyFree(c);
    valkeyOptions o = {0};
    VALKEY_OPTIONS_SET_MPTCP(&o, "127.0.0.1", fakePort(*state, 0));
    c = valkeyConnectWithOptions(&o);
    if (valkeyHasMptcp()) {
        assert_true(isOk(valkeyCommand(c, "PING")));
    } else {
        assert_string_equal(c->errstr, "MPTCP is not supported on this platform");
    }
    valkeyFree(c);
}

/* Longer than poll() can wait. */
static void limitsMayBeYears(void **state) {
    struct timeval years = {.tv_sec = (time_t)1 << 40};
    valkeyContext *c = valkeyConnectWithTimeout("127.0.0.1", fakePort(*state, 0), years);
    assert_string_equal(c->errstr, "");
    assert_true(isOk(valkeyCommand(c, "PING")));
    valkeyFree(c);
}

/* ------------------------------------------------------------------ transports */

static char lent[16];
static int returned;

static ssize_t lend(valkeyContext *c, char **buf) {
    ssize_t n = recv(c->fd, lent, sizeof(lent), 0);
    *buf = lent;
    return n;
}
static ssize_t takeBack(valkeyContext *c) {
    (void)c;
    memset(lent, '?', sizeof(lent));
    returned++;
    return 0;
}

static void transportsMayLendTheirMemory(void **state) {
    valkeyContext *c = valkeyConnect("127.0.0.1", fakePort(*state, 0));
    valkeyContextFuncs funcs = *c->funcs;
    funcs.read_zc = lend;
    funcs.read_zc_done = takeBack;
    c->funcs = &funcs;
    returned = 0;
    for (int i = 0; i < 3; i++) assert_true(isOk(valkeyCommand(c, "PING")));
    assert_true(returned >= 3);
    valkeyFree(c);
}

static int noted_connect, noted_disconnect;
static void noteConnect(valkeyAsyncContext *ac, int status) {
    (void)ac;
    noted_connect += status == VALKEY_OK;
}
static void noteDisconnect(const valkeyAsyncContext *ac, int status) {
    (void)ac;
    noted_disconnect += status == VALKEY_OK;
}
static int attachNothing(valkeyAsyncContext *ac, void *data) {
    (void)ac;
    return *(int *)data;
}

static void optionsAttachTheEventLoop(void **state) {
    valkeyOptions o = {.attach_fn = valkeyPollAttachAdapter,
                       .async_connect_callback = noteConnect,
                       .async_disconnect_callback = noteDisconnect};
    VALKEY_OPTIONS_SET_TCP(&o, "127.0.0.1", fakePort(*state, 0));
    valkeyAsyncContext *ac = valkeyAsyncConnectWithOptions(&o);
    assert_int_equal(ac->err, 0);
    noted_connect = noted_disconnect = 0;
    for (int i = 0; i < 1000 && !noted_connect; i++) valkeyPollTick(ac, 0.01);
    assert_int_equal(noted_connect, 1);
    valkeyAsyncDisconnect(ac);
    assert_int_equal(noted_disconnect, 1);
    int result = VALKEY_ERR;
    o.attach_fn = attachNothing;
    o.attach_data = &result;
    ac = valkeyAsyncConnectWithOptions(&o);
    assert_int_equal(ac->err, VALKEY_ERR_OTHER);
    assert_string_equal(ac->errstr, "Failed to attach event adapter");
    valkeyAsyncFree(ac);
}

static void clusterOptionsAreInOrder(void **state) {
    (void)state;
    struct timeval connect = {1, 0}, command = {2, 0};
    valkeyClusterOptions o = {
        "127.0.0.1:1", 0,    &connect, &command, "user", "password", 3,    4,   NULL,
        NULL,          NULL, NULL,     NULL,     NULL,   NULL,       NULL, NULL};
    assert_ptr_equal(o.connect_timeout, &connect);
    assert_ptr_equal(o.command_timeout, &command);
    assert_string_equal(o.username, "user");
    assert_string_equal(o.password, "password");
    assert_int_equal(o.max_retry, 3);
    assert_int_equal(o.select_db, 4);
    assert_int_equal(valkeyClusterOptionsUsePoll(&o), VALKEY_OK);
    assert_ptr_equal(o.attach_fn, valkeyPollAttachAdapter);
}

static void theVariableIsTheAllocatorInUse(void **state) {
    (void)state;
    size_t before = countingCalls();
    void *block = valkeyAllocFns.mallocFn(10);
    assert_int_equal(countingCalls(), before + 1);
    vk_free(block);
}

/* ------------------------------------------------------------------ what is refused */

static const char *const not_commands[] = {
    "",
    "PING\r\n",
    "*0\r\n",
    "*-1\r\n",
    "*1\r\n$4\r\nPING",
    "*1\r\n$4\r\nPINGxx",
    "*2\r\n$4\r\nPING\r\n",
    "*1\r\n$4\r\nPING\r\n*1\r\n$4\r\nPING\r\n",
    "*1\r\n$4\r\nPING\r\nx",
    "*1\r\n$99999999999999999999\r\nPING\r\n",
};
enum { NOT_COMMANDS = sizeof(not_commands) / sizeof(*not_commands) };

static void asynchronousContextsTakeOnlyCompleteCommands(void **state) {
    valkeyAsyncContext *ac = valkeyAsyncConnect("127.0.0.1", fakePort(*state, 0));
    for (size_t i = 0; i < NOT_COMMANDS; i++)
        assert_int_equal(
            valkeyAsyncFormattedCommand(ac, NULL, NULL, not_commands[i], strlen(not_commands[i])),
            VALKEY_ERR);
    assert_int_equal(valkeyAsyncFormattedCommand(ac, NULL, NULL, NULL, 5), VALKEY_ERR);
    assert_int_equal(valkeyAsyncCommand(ac, NULL, NULL, ""), VALKEY_ERR);
    assert_int_equal(valkeyAsyncCommandArgv(ac, NULL, NULL, 0, NULL, NULL), VALKEY_ERR);
    assert_null(ac->replies.head);
    assert_string_equal(ac->c.obuf, "");
    valkeyAsyncFree(ac);
}

static valkeyClusterOptions clusterOptions(fakeServer *s, int options) {
    static char seed[32];
    sprintf(seed, "127.0.0.1:%d", fakePort(s, 0));
    return (valkeyClusterOptions){.initial_nodes = seed, .options = options};
}

static void clustersTakeOnlyCompleteCommands(void **state) {
    valkeyClusterOptions o = clusterOptions(*state, VALKEY_OPT_BLOCKING_INITIAL_UPDATE);
    valkeyClusterContext *cc = valkeyClusterConnectWithOptions(&o);
    valkeyClusterAsyncContext *acc = valkeyClusterAsyncConnectWithOptions(&o);
    valkeyClusterNode *node = valkeyClusterGetNodeByKey(&acc->cc, (char *)"k");
    assert_non_null(node);
    for (size_t i = 0; i <= NOT_COMMANDS; i++) {
        char *cmd = (char *)(i < NOT_COMMANDS ? not_commands[i] : NULL);
        int len = cmd ? (int)strlen(cmd) : -1;
        assert_null(valkeyClusterFormattedCommand(cc, cmd, len));
        assert_int_equal(cc->err, VALKEY_ERR_OTHER);
        assert_int_equal(valkeyClusterAppendFormattedCommand(cc, cmd, len), VALKEY_ERR);
        assert_int_equal(valkeyClusterAsyncFormattedCommand(acc, NULL, NULL, cmd, len), VALKEY_ERR);
        assert_int_equal(valkeyClusterAsyncFormattedCommandToNode(acc, node, NULL, NULL, cmd, len),
                         VALKEY_ERR);
        assert_int_equal(acc->err, VALKEY_ERR_OTHER);
    }
    valkeyClusterAsyncFree(acc);
    valkeyClusterFree(cc);
}

static void noteClusterReply(valkeyClusterAsyncContext *acc, void *reply, void *privdata) {
    (void)acc;
    const valkeyReply *r = reply;
    *(int *)privdata = r && r->type == VALKEY_REPLY_STATUS ? 1 : -1;
}

static void vectorsAreSentToANode(void **state) {
    valkeyClusterOptions o = clusterOptions(*state, VALKEY_OPT_BLOCKING_INITIAL_UPDATE);
    valkeyClusterOptionsUsePoll(&o);
    valkeyClusterAsyncContext *acc = valkeyClusterAsyncConnectWithOptions(&o);
    valkeyClusterNode *node = valkeyClusterGetNodeByKey(&acc->cc, (char *)"k");
    const char *argv[] = {"DEBUG", "a\0b"}; /* a command without a key */
    size_t lens[] = {5, 3};
    int noted = 0;
    assert_int_equal(
        valkeyClusterAsyncCommandArgvToNode(acc, node, noteClusterReply, &noted, 2, argv, lens),
        VALKEY_OK);
    for (int i = 0; i < 1000 && !noted; i++) valkeyPollTick(node->acon, 0.01);
    assert_int_equal(noted, 1);
    argv[1] = NULL;
    assert_int_equal(
        valkeyClusterAsyncCommandArgvToNode(acc, node, noteClusterReply, &noted, 2, argv, lens),
        VALKEY_ERR);
    valkeyClusterAsyncFree(acc);
}

static void clustersRefuseOptionsOfSingleConnections(void **state) {
    static const int refused[] = {VALKEY_OPT_NONBLOCK, VALKEY_OPT_NOAUTOFREE,
                                  VALKEY_OPT_NO_PUSH_AUTOFREE, VALKEY_OPT_NOAUTOFREEREPLIES,
                                  1 << 20};
    for (size_t i = 0; i < sizeof(refused) / sizeof(*refused); i++) {
        valkeyClusterOptions o = clusterOptions(*state, refused[i]);
        valkeyClusterContext *cc = valkeyClusterConnectWithOptions(&o);
        assert_int_equal(cc->err, VALKEY_ERR_OTHER);
        assert_string_equal(cc->errstr, "Unsupported options");
        valkeyClusterFree(cc);
        valkeyClusterAsyncContext *acc = valkeyClusterAsyncConnectWithOptions(&o);
        assert_string_equal(acc->errstr, "Unsupported options");
        valkeyClusterAsyncFree(acc);
    }
    assert_int_equal(fakeAccepted(*state), 0);
    valkeyClusterOptions o = clusterOptions(*state, VALKEY_OPT_PREFER_IP_UNSPEC);
    valkeyClusterContext *cc = valkeyClusterConnectWithOptions(&o);
    assert_true(isOk(valkeyClusterCommand(cc, "GET k")));
    valkeyClusterFree(cc);
}

/* ------------------------------------------------------------------ memory in pipelines */

static void memoryExhaustedInAPipelineIsSaid(void **state) {
    valkeyClusterOptions o = clusterOptions(*state, 0);
    for (int all = 0; all < 2; all++) {
        for (long n = 0;; n++) {
            valkeyClusterContext *cc = valkeyClusterConnectWithOptions(&o);
            for (int i = 0; i < 3; i++)
                assert_int_equal(valkeyClusterAppendCommand(cc, "GET key:%d", i), VALKEY_OK);
            countingFailAt(n, all);
            for (int i = 0; i < 3; i++) {
                void *r;
                bool ok = valkeyClusterGetReply(cc, &r) == VALKEY_OK;
                assert_int_equal(isOk(r), ok);
                if (ok) continue;
                assert_true(countingHasFailed());
                assert_int_equal(cc->err, VALKEY_ERR_OOM);
                assert_string_equal(cc->errstr, "Out of memory");
            }
            bool failed = countingHasFailed();
            countingFailAt(-1, false);
            valkeyClusterFree(cc);
            assert_int_equal(countingBlocks(), 0);
            if (!failed) break;
        }
    }
}

int test_interface(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(socketsOfContexts, setup, fakeTeardown),
        cmocka_unit_test_setup_teardown(endpointsThatAreNotPossible, setup, fakeTeardown),
        cmocka_unit_test_setup_teardown(limitsMayBeYears, setup, fakeTeardown),
        cmocka_unit_test_setup_teardown(transportsMayLendTheirMemory, setup, fakeTeardown),
        cmocka_unit_test_setup_teardown(optionsAttachTheEventLoop, setup, fakeTeardown),
        cmocka_unit_test_setup_teardown(clusterOptionsAreInOrder, setup, fakeTeardown),
        cmocka_unit_test_setup_teardown(theVariableIsTheAllocatorInUse, setup, fakeTeardown),
        cmocka_unit_test_setup_teardown(asynchronousContextsTakeOnlyCompleteCommands, setup,
                                        fakeTeardown),
        cmocka_unit_test_setup_teardown(clustersTakeOnlyCompleteCommands, setup, fakeTeardown),
        cmocka_unit_test_setup_teardown(vectorsAreSentToANode, setup, fakeTeardown),
        cmocka_unit_test_setup_teardown(clustersRefuseOptionsOfSingleConnections, setup,
                                        fakeTeardown),
        cmocka_unit_test_setup_teardown(memoryExhaustedInAPipelineIsSaid, setup, fakeTeardown),
    };
    return cmocka_run_group_tests_name("interface", tests, NULL, NULL);
}
