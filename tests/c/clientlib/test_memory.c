/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Memory that is exhausted at the k-th allocation from the call of a function until its replies have come, for every k and
 * every public function of the asynchronous client and of both cluster clients: it succeeds or reports an error, every
 * callback is called, nothing leaks, and the context works afterwards or has an error. */
#include <valkey/cluster.h>

#include "client_test.h"
#include "clientlib/client_priv.h"

/* ------------------------------------------------------------------ two nodes */

static fakeServer *nodes;
static char seeds[64], unix_path[64];

/* Node 0 serves all slots, but says MOVED for "moved" and ASK for "ask". */
static void serve(fakeRequest *q) {
    const char *key = q->argc > 1 ? q->argv[1] : "";
    if (fakeIs(q, 0, "CLUSTER")) {
        fakeSend(q, "*2\r\n");
        for (int i = 0; i < 2; i++)
            fakeSend(q, "*3\r\n:%d\r\n:%d\r\n*3\r\n$9\r\n127.0.0.1\r\n:%d\r\n$3\r\nid%d\r\n",
                     i * 16383, i ? 16383 : 16382, fakePort(nodes, i), i);
    } else if (fakeIs(q, 0, "GET") && q->node == 0 && !strcmp(key, "moved")) {
        fakeSend(q, "-MOVED 3 127.0.0.1:%d\r\n", fakePort(nodes, 1));
    } else if (fakeIs(q, 0, "GET") && q->node == 0 && !strcmp(key, "ask")) {
        fakeSend(q, "-ASK 3 127.0.0.1:%d\r\n", fakePort(nodes, 1));
    } else if (fakeIs(q, 0, "SUBSCRIBE") || fakeIs(q, 0, "SSUBSCRIBE")) {
        for (int i = 1; i < q->argc; i++)
            fakeSend(q, "*3\r\n$%zu\r\n%s\r\n$%zu\r\n%s\r\n:%d\r\n",
                     strlen(fakeIs(q, 0, "SUBSCRIBE") ? "subscribe" : "ssubscribe"),
                     fakeIs(q, 0, "SUBSCRIBE") ? "subscribe" : "ssubscribe", q->len[i], q->argv[i],
                     i);
    } else {
        fakeSend(q, "*2\r\n+OK\r\n$%zu\r\n%s\r\n", strlen(key), key);
    }
}

static int setup(void **state) {
    (void)state;
    nodes = fakeStart(2, serve, NULL);
    sprintf(seeds, "127.0.0.1:%d", fakePort(nodes, 0));
    countingStart();
    simStart();
    return 0;
}

static int teardown(void **state) {
    (void)state;
    size_t blocks = countingBlocks();
    countingStop();
    simStop();
    fakeStop(nodes);
    assert_int_equal(blocks, 0);
    return 0;
}

/* ------------------------------------------------------------------ the context of a case */

static valkeyAsyncContext *ac; /* NULL: freed */
static valkeyClusterContext *cc;
static valkeyClusterAsyncContext *acc;
static int queued, called;

static void onGone(void *data) {
    (void)data;
    ac = NULL;
}
static void onReply(valkeyAsyncContext *from, void *reply, void *privdata) {
    (void)from;
    (void)reply;
    (void)privdata;
    called++;
}
static void onClusterReply(valkeyClusterAsyncContext *from, void *reply, void *privdata) {
    (void)from;
    (void)reply;
    (void)privdata;
    called++;
}
static void onConnect(valkeyAsyncContext *from, int status) {
    (void)from;
    (void)status;
}
static void onDisconnect(const valkeyAsyncContext *from, int status) {
    (void)from;
    (void)status;
}
static void onPush(valkeyAsyncContext *from, void *reply) {
    (void)from;
    (void)reply;
}

/* True if the call succeeded; a callback is expected then. */
static bool accepted(int status) {
    if (status == VALKEY_OK) queued++;
    return status == VALKEY_OK;
}

static bool settled(void) {
    if (queued > called) return false;
    return !acc || !acc->updating;
}

static void settle(void) {
    for (int i = 0; i < 1000 && !settled(); i++) simTurn(10);
    assert_true(queued <= called);
}

#define FORMAT "GET %s"
static int withList(int (*run)(va_list ap), ...) {
    va_list ap;
    va_start(ap, run);
    int result = run(ap);
    va_end(ap);
    return result;
}
static const char *argv[] = {"GET", "key"};
static char formatted[] = "*2\r\n$3\r\nGET\r\n$3\r\nkey\r\n";
enum { FORMATTED = sizeof(formatted) - 1 };

/* ------------------------------------------------------------------ asynchronous contexts */

static bool began(valkeyAsyncContext *made) {
    ac = made;
    if (!ac) return false;
    if (ac->err) return false;
    ac->dataCleanup = onGone;
    simAttach(ac, NULL);
    valkeyAsyncSetConnectCallback(ac, onConnect);
    return accepted(valkeyAsyncCommand(ac, onReply, NULL, "PING"));
}

static bool asyncConnect(void) {
    return began(valkeyAsyncConnect("127.0.0.1", fakePort(nodes, 0)));
}
static bool asyncConnectBind(void) {
    return began(valkeyAsyncConnectBind("127.0.0.1", fakePort(nodes, 0), "127.0.0.1"));
}
static bool asyncConnectBindWithReuse(void) {
    return began(valkeyAsyncConnectBindWithReuse("127.0.0.1", fakePort(nodes, 0), "127.0.0.1"));
}
static bool asyncConnectUnix(void) {
    /* There is no such socket; what counts is that memory is given back. */
    bool ok = began(valkeyAsyncConnectUnix(unix_path));
    assert_false(ok);
    return ac != NULL;
}
static bool asyncConnectWithOptions(void) {
    struct timeval tv = {.tv_sec = 5};
    valkeyOptions o = {.connect_timeout = &tv, .command_timeout = &tv};
    VALKEY_OPTIONS_SET_TCP(&o, "127.0.0.1", fakePort(nodes, 0));
    return began(valkeyAsyncConnectWithOptions(&o));
}
static bool asyncSetters(void) {
    valkeyAsyncSetPushCallback(ac, onPush);
    valkeyAsyncSetDisconnectCallback(ac, onDisconnect);
    return valkeyAsyncSetTimeout(ac, (struct timeval){.tv_sec = 5}) == VALKEY_OK;
}
static bool asyncCommand(void) {
    return accepted(valkeyAsyncCommand(ac, onReply, NULL, "GET %s", "key"));
}
static int asyncList(va_list ap) { return valkeyvAsyncCommand(ac, onReply, NULL, FORMAT, ap); }
static bool asyncvCommand(void) { return accepted(withList(asyncList, "key")); }
static bool asyncCommandArgv(void) {
    return accepted(valkeyAsyncCommandArgv(ac, onReply, NULL, 2, argv, NULL));
}
static bool asyncFormattedCommand(void) {
    return accepted(valkeyAsyncFormattedCommand(ac, onReply, NULL, formatted, FORMATTED));
}
static bool asyncSubscribe(void) {
    bool ok = valkeyAsyncCommand(ac, onReply, NULL, "SUBSCRIBE a b c") == VALKEY_OK;
    queued += ok ? 3 : 0;
    return ok;
}
static bool asyncDisconnect(void) {
    bool ok = asyncCommand();
    valkeyAsyncDisconnect(ac);
    return ok;
}
static bool asyncFree(void) {
    bool ok = asyncCommand();
    valkeyAsyncFree(ac);
    return ok;
}
static bool asyncTimeout(void) {
    bool ok = asyncCommand();
    ac->ev.scheduleTimer = NULL; /* the program keeps the time */
    valkeyAsyncHandleTimeout(ac);
    return ok;
}
static bool asyncTransfer(void) {
    bool ok = asyncCommand();
    valkeyAsyncHandleWrite(ac);
    if (ac) valkeyAsyncWrite(ac);
    if (ac) valkeyAsyncRead(ac);
    if (ac) valkeyAsyncHandleRead(ac);
    return ok;
}

/* ------------------------------------------------------------------ the synchronous cluster client */

static bool made(valkeyClusterContext *context) {
    cc = context;
    return cc && !cc->err;
}
static bool got(void *reply) {
    bool ok = reply != NULL;
    assert_true(ok || cc->err != 0);
    freeReplyObject(reply);
    return ok;
}
/* The reply to a queued command. */
static bool gotQueued(int status) {
    void *reply = NULL;
    assert_true(status == VALKEY_OK || cc->err == VALKEY_ERR_OOM);
    if (status != VALKEY_OK) return false;
    int result = valkeyClusterGetReply(cc, &reply);
    assert_true((result == VALKEY_OK) == (reply != NULL));
    return got(reply);
}

static bool clusterConnect(void) { return made(valkeyClusterConnect(seeds)); }
static bool clusterConnectWithTimeout(void) {
    return made(valkeyClusterConnectWithTimeout(seeds, (struct timeval){.tv_sec = 5}));
}
static bool clusterConnectWithOptions(void) {
    struct timeval tv = {.tv_sec = 5};
    valkeyClusterOptions o = {.initial_nodes = seeds,
                              .options = VALKEY_OPT_USE_REPLICAS,
                              .username = "u",
                              .password = "p",
                              .select_db = 1,
                              .connect_timeout = &tv,
                              .command_timeout = &tv};
    return made(valkeyClusterConnectWithOptions(&o));
}
static bool clusterUpdate(void) { return valkeyClusterUpdateSlotmap(cc) == VALKEY_OK; }
static bool clusterSetTimeout(void) {
    return valkeyClusterSetOptionTimeout(cc, (struct timeval){.tv_sec = 5}) == VALKEY_OK;
}
static bool clusterCommand(void) { return got(valkeyClusterCommand(cc, "GET %s", "key")); }
static bool clusterMoved(void) { return got(valkeyClusterCommand(cc, "GET moved")); }
static bool clusterAsk(void) { return got(valkeyClusterCommand(cc, "GET ask")); }
static int clusterList(va_list ap) { return got(valkeyClustervCommand(cc, FORMAT, ap)); }
static bool clustervCommand(void) { return withList(clusterList, "key"); }
static bool clusterArgv(void) { return got(valkeyClusterCommandArgv(cc, 2, argv, NULL)); }
static bool clusterFormatted(void) {
    return got(valkeyClusterFormattedCommand(cc, formatted, FORMATTED));
}
static bool clusterToNode(void) {
    return got(valkeyClusterCommandToNode(cc, cc->nodes, "GET %s", "key"));
}
static int clusterNodeList(va_list ap) {
    return got(valkeyClustervCommandToNode(cc, cc->nodes, FORMAT, ap));
}
static bool clustervToNode(void) { return withList(clusterNodeList, "key"); }
static bool clusterAppend(void) {
    return gotQueued(valkeyClusterAppendCommand(cc, "GET %s", "key"));
}
static bool clusterAppendMoved(void) {
    bool ok = valkeyClusterAppendCommand(cc, "GET ask") == VALKEY_OK;
    ok = gotQueued(valkeyClusterAppendCommand(cc, "GET moved")) && ok;
    valkeyClusterReset(cc);
    return ok;
}
static int appendList(va_list ap) { return gotQueued(valkeyClustervAppendCommand(cc, FORMAT, ap)); }
static bool clustervAppend(void) { return withList(appendList, "key"); }
static bool clusterAppendArgv(void) {
    return gotQueued(valkeyClusterAppendCommandArgv(cc, 2, argv, NULL));
}
static bool clusterAppendFormatted(void) {
    return gotQueued(valkeyClusterAppendFormattedCommand(cc, formatted, FORMATTED));
}
static bool clusterAppendToNode(void) {
    return gotQueued(valkeyClusterAppendCommandToNode(cc, cc->nodes, "GET %s", "key"));
}
static int appendNodeList(va_list ap) {
    return gotQueued(valkeyClustervAppendCommandToNode(cc, cc->nodes, FORMAT, ap));
}
static bool clustervAppendToNode(void) { return withList(appendNodeList, "key"); }
static bool clusterContext(void) {
    valkeyContext *c = valkeyClusterGetValkeyContext(cc, cc->nodes->next);
    assert_true(c || cc->err == VALKEY_ERR_OOM);
    return c != NULL;
}
static bool clusterLookups(void) {
    valkeyClusterNodeIterator iterator;
    valkeyClusterInitNodeIterator(&iterator, cc);
    int count = 0;
    while (valkeyClusterNodeNext(&iterator)) count++;
    assert_int_equal(count, 2);
    assert_int_equal(valkeyClusterGetSlotByKey((char *)"foo"), 12182);
    return valkeyClusterGetNodeByKey(cc, (char *)"foo") != NULL;
}

/* ------------------------------------------------------------------ the asynchronous cluster client */

static bool sent(int status) {
    assert_true(status == VALKEY_OK || acc->err != 0);
    return accepted(status);
}
static bool asyncMade(int options) {
    struct timeval tv = {.tv_sec = 5};
    valkeyClusterOptions o = {.initial_nodes = seeds,
                              .options = options,
                              .password = "p",
                              .connect_timeout = &tv,
                              .command_timeout = &tv,
                              .async_connect_callback = onConnect,
                              .async_disconnect_callback = onDisconnect,
                              .attach_fn = simAttach};
    acc = valkeyClusterAsyncConnectWithOptions(&o);
    if (!acc) return false;
    settle();
    return acc->cc.route_version > 0;
}
static bool clusterAsyncConnect(void) { return asyncMade(0); }
static bool clusterAsyncConnectBlocking(void) {
    return asyncMade(VALKEY_OPT_BLOCKING_INITIAL_UPDATE);
}
static bool clusterAsyncCommand(void) {
    return sent(valkeyClusterAsyncCommand(acc, onClusterReply, NULL, "GET %s", "key"));
}
static bool clusterAsyncMoved(void) {
    simPass(5000000); /* the map may be asked for again */
    return sent(valkeyClusterAsyncCommand(acc, onClusterReply, NULL, "GET moved"));
}
static bool clusterAsyncAsk(void) {
    return sent(valkeyClusterAsyncCommand(acc, onClusterReply, NULL, "GET ask"));
}
static bool clusterAsyncSubscribe(void) {
    return sent(valkeyClusterAsyncCommand(acc, onClusterReply, NULL, "SSUBSCRIBE key"));
}
static int asyncClusterList(va_list ap) {
    return sent(valkeyClustervAsyncCommand(acc, onClusterReply, NULL, FORMAT, ap));
}
static bool clusterAsyncvCommand(void) { return withList(asyncClusterList, "key"); }
static bool clusterAsyncArgv(void) {
    return sent(valkeyClusterAsyncCommandArgv(acc, onClusterReply, NULL, 2, argv, NULL));
}
static bool clusterAsyncFormatted(void) {
    return sent(
        valkeyClusterAsyncFormattedCommand(acc, onClusterReply, NULL, formatted, FORMATTED));
}
static bool clusterAsyncToNode(void) {
    return sent(valkeyClusterAsyncCommandToNode(acc, acc->cc.nodes->next, onClusterReply, NULL,
                                                "GET %s", "key"));
}
static int asyncNodeList(va_list ap) {
    return sent(valkeyClustervAsyncCommandToNode(acc, acc->cc.nodes->next, onClusterReply, NULL,
                                                 FORMAT, ap));
}
static bool clusterAsyncvToNode(void) { return withList(asyncNodeList, "key"); }
static bool clusterAsyncArgvToNode(void) {
    return sent(valkeyClusterAsyncCommandArgvToNode(acc, acc->cc.nodes->next, onClusterReply, NULL,
                                                    2, argv, NULL));
}
static bool clusterAsyncFormattedToNode(void) {
    return sent(valkeyClusterAsyncFormattedCommandToNode(acc, acc->cc.nodes->next, onClusterReply,
                                                         NULL, formatted, FORMATTED));
}
static bool clusterAsyncContext(void) {
    valkeyAsyncContext *c = valkeyClusterGetValkeyAsyncContext(acc, acc->cc.nodes->next);
    assert_true(c || acc->err == VALKEY_ERR_OOM);
    return c != NULL;
}
static bool clusterAsyncDisconnect(void) {
    bool ok = clusterAsyncCommand();
    valkeyClusterAsyncDisconnect(acc);
    return ok;
}

/* ------------------------------------------------------------------ running */

typedef enum prepared { NOTHING, CONTEXT, CLUSTER, ASYNC_CLUSTER } prepared;

typedef struct memoryCase {
    const char *name;
    prepared first; /* what exists before the call */
    bool (*run)(void);
} memoryCase;

static const memoryCase cases[] = {
    {"valkeyAsyncConnect", NOTHING, asyncConnect},
    {"valkeyAsyncConnectBind", NOTHING, asyncConnectBind},
    {"valkeyAsyncConnectBindWithReuse", NOTHING, asyncConnectBindWithReuse},
    {"valkeyAsyncConnectUnix", NOTHING, asyncConnectUnix},
    {"valkeyAsyncConnectWithOptions", NOTHING, asyncConnectWithOptions},
    {"valkeyAsyncSetTimeout and the callbacks", CONTEXT, asyncSetters},
    {"valkeyAsyncCommand", CONTEXT, asyncCommand},
    {"valkeyvAsyncCommand", CONTEXT, asyncvCommand},
    {"valkeyAsyncCommandArgv", CONTEXT, asyncCommandArgv},
    {"valkeyAsyncFormattedCommand", CONTEXT, asyncFormattedCommand},
    {"valkeyAsyncCommand, SUBSCRIBE", CONTEXT, asyncSubscribe},
    {"valkeyAsyncDisconnect", CONTEXT, asyncDisconnect},
    {"valkeyAsyncFree", CONTEXT, asyncFree},
    {"valkeyAsyncHandleTimeout", CONTEXT, asyncTimeout},
    {"valkeyAsyncHandleRead, ...Write, valkeyAsyncRead, ...Write", CONTEXT, asyncTransfer},
    {"valkeyClusterConnect", NOTHING, clusterConnect},
    {"valkeyClusterConnectWithTimeout", NOTHING, clusterConnectWithTimeout},
    {"valkeyClusterConnectWithOptions", NOTHING, clusterConnectWithOptions},
    {"valkeyClusterUpdateSlotmap", CLUSTER, clusterUpdate},
    {"valkeyClusterSetOptionTimeout", CLUSTER, clusterSetTimeout},
    {"valkeyClusterCommand", CLUSTER, clusterCommand},
    {"valkeyClusterCommand, MOVED", CLUSTER, clusterMoved},
    {"valkeyClusterCommand, ASK", CLUSTER, clusterAsk},
    {"valkeyClustervCommand", CLUSTER, clustervCommand},
    {"valkeyClusterCommandArgv", CLUSTER, clusterArgv},
    {"valkeyClusterFormattedCommand", CLUSTER, clusterFormatted},
    {"valkeyClusterCommandToNode", CLUSTER, clusterToNode},
    {"valkeyClustervCommandToNode", CLUSTER, clustervToNode},
    {"valkeyClusterAppendCommand", CLUSTER, clusterAppend},
    {"valkeyClusterAppendCommand, redirects, valkeyClusterReset", CLUSTER, clusterAppendMoved},
    {"valkeyClustervAppendCommand", CLUSTER, clustervAppend},
    {"valkeyClusterAppendCommandArgv", CLUSTER, clusterAppendArgv},
    {"valkeyClusterAppendFormattedCommand", CLUSTER, clusterAppendFormatted},
    {"valkeyClusterAppendCommandToNode", CLUSTER, clusterAppendToNode},
    {"valkeyClustervAppendCommandToNode", CLUSTER, clustervAppendToNode},
    {"valkeyClusterGetValkeyContext", CLUSTER, clusterContext},
    {"valkeyClusterInitNodeIterator, ...NodeNext, ...GetSlotByKey, ...GetNodeByKey", CLUSTER,
     clusterLookups},
    {"valkeyClusterAsyncConnectWithOptions", NOTHING, clusterAsyncConnect},
    {"valkeyClusterAsyncConnectWithOptions, blocking", NOTHING, clusterAsyncConnectBlocking},
    {"valkeyClusterAsyncCommand", ASYNC_CLUSTER, clusterAsyncCommand},
    {"valkeyClusterAsyncCommand, MOVED", ASYNC_CLUSTER, clusterAsyncMoved},
    {"valkeyClusterAsyncCommand, ASK", ASYNC_CLUSTER, clusterAsyncAsk},
    {"valkeyClusterAsyncCommand, SSUBSCRIBE", ASYNC_CLUSTER, clusterAsyncSubscribe},
    {"valkeyClustervAsyncCommand", ASYNC_CLUSTER, clusterAsyncvCommand},
    {"valkeyClusterAsyncCommandArgv", ASYNC_CLUSTER, clusterAsyncArgv},
    {"valkeyClusterAsyncFormattedCommand", ASYNC_CLUSTER, clusterAsyncFormatted},
    {"valkeyClusterAsyncCommandToNode", ASYNC_CLUSTER, clusterAsyncToNode},
    {"valkeyClustervAsyncCommandToNode", ASYNC_CLUSTER, clusterAsyncvToNode},
    {"valkeyClusterAsyncCommandArgvToNode", ASYNC_CLUSTER, clusterAsyncArgvToNode},
    {"valkeyClusterAsyncFormattedCommandToNode", ASYNC_CLUSTER, clusterAsyncFormattedToNode},
    {"valkeyClusterGetValkeyAsyncContext", ASYNC_CLUSTER, clusterAsyncContext},
    {"valkeyClusterAsyncDisconnect and ...Free", ASYNC_CLUSTER, clusterAsyncDisconnect},
};

static void prepare(prepared first) {
    if (first == CONTEXT) assert_true(asyncConnect());
    if (first == CLUSTER) assert_true(clusterConnect());
    if (first == ASYNC_CLUSTER) assert_true(clusterAsyncConnect());
    settle();
    queued = called = 0;
}

/* With memory, the context works or has an error. */
static void useAgain(void) {
    if (cc && cc->nodes) assert_true(clusterCommand());
    if (ac && !ac->err && !(ac->c.flags & VALKEY_DISCONNECTING)) {
        asyncCommand();
        settle();
    }
    if (acc && !(acc->cc.flags & VALKEY_DISCONNECTING) && acc->cc.route_version > 0) {
        assert_true(clusterAsyncCommand());
        settle();
    }
}

/* True if the case ended before an allocation failed. */
static bool runOnce(const memoryCase *m, long n, bool all) {
    prepare(m->first);
    countingFailAt(n, all);
    bool ok = m->run();
    settle();
    bool failed = countingHasFailed();
    countingFailAt(-1, false);
    if (!failed && !ok) fail_msg("%s fails without a reason", m->name);
    useAgain();
    if (ac) valkeyAsyncFree(ac);
    valkeyClusterFree(cc);
    valkeyClusterAsyncFree(acc);
    ac = NULL;
    cc = NULL;
    acc = NULL;
    assert_int_equal(simContexts(), 0);
    if (countingBlocks() != 0) fail_msg("%s leaks at allocation %ld", m->name, n);
    return !failed;
}

static void everyFunctionSurvivesTheLackOfMemory(void **state) {
    (void)state;
    snprintf(unix_path, sizeof(unix_path), "/nonexistent/socket");
    for (size_t i = 0; i < sizeof(cases) / sizeof(*cases); i++) {
        for (int all = 0; all < 2; all++) {
            for (long n = 0; !runOnce(&cases[i], n, all); n++) assert_true(n < 1000);
        }
    }
}

int test_memory(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(everyFunctionSurvivesTheLackOfMemory, setup, teardown),
    };
    return cmocka_run_group_tests_name("memory", tests, NULL, NULL);
}
