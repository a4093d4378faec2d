/* SPDX-License-Identifier: BSD-3-Clause
 *
 * The cluster client and nodes that fail: they refuse connections, drop or hold them, send wrong
 * maps, leave the cluster, are all down when the client starts, or are named by host names and IPv6
 * addresses. Both clients, with a simulated clock for the asynchronous one. */
#include <pthread.h>
#include <sched.h>

#include <valkey/cluster.h>

#include "client_test.h"
#include "clientlib/command_keys.h"

enum { NODES = 4, RANGES = 3, SECOND = 1000000, NOBODY = -1, NO_MAP = -2 };
static const int first_slots[RANGES + 1] = {0, 5461, 10923, 16384};

/* Keys of the three ranges. */
#define KEY0 "bar" /* slot 5061 */
#define KEY1 "x1"  /* slot 10114 */
#define KEY2 "foo" /* slot 12182 */

static fakeServer *nodes;
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
/* Guarded by `lock`. */
static int owners[RANGES];      /* nodes that serve the ranges */
static int maps[NODES][RANGES]; /* what the nodes say about that; maps[n][0] NO_MAP: an error */
static const char *host;        /* of all addresses in maps and redirects */
static int ask_target = NOBODY; /* where requests for KEY2 are sent by ASK */
static int refusals;            /* replies CLUSTERDOWN */
static bool asking[1024];       /* by connection */
static char log_text[8192];     /* "node:word word;" per request */

#define LOCKED(statement) \
    do { \
        pthread_mutex_lock(&lock); \
        statement; \
        pthread_mutex_unlock(&lock); \
    } while (0)

/* ------------------------------------------------------------------ the nodes */

static void sendMap(fakeRequest *q) {
    const int *map = maps[q->node];
    int known = 0;
    for (int i = 0; i < RANGES; i++) known += map[i] >= 0;
    if (map[0] == NO_MAP) {
        fakeSend(q, "-ERR no map\r\n");
        return;
    }
    fakeSend(q, "*%d\r\n", known);
    for (int i = 0; i < RANGES; i++) {
        if (map[i] < 0) continue;
        fakeSend(q, "*3\r\n:%d\r\n:%d\r\n", first_slots[i], first_slots[i + 1] - 1);
        fakeSend(q, "*4\r\n$%zu\r\n%s\r\n:%d\r\n$3\r\nid%d\r\n*0\r\n", strlen(host), host,
                 fakePort(nodes, map[i]), map[i]);
    }
}

static void serveKey(fakeRequest *q, const char *key) {
    int slot = vkSlotOfKey(key, strlen(key)), range = 0;
    while (slot >= first_slots[range + 1]) range++;
    bool asked = asking[q->number % 1024];
    asking[q->number % 1024] = false;
    if (refusals > 0) {
        refusals--;
        fakeSend(q, "-CLUSTERDOWN The cluster is down\r\n");
    } else if (ask_target >= 0 && range == 2 && !asked) {
        fakeSend(q, "-ASK %d %s:%d\r\n", slot, host, fakePort(nodes, ask_target));
    } else if (q->node != owners[range] && !asked) {
        fakeSend(q, "-MOVED %d %s:%d\r\n", slot, host, fakePort(nodes, owners[range]));
    } else {
        fakeSend(q, "$%zu\r\n%s\r\n", strlen(key), key);
    }
}

static void serve(fakeRequest *q) {
    pthread_mutex_lock(&lock);
    size_t len = strlen(log_text);
    snprintf(log_text + len, sizeof(log_text) - len, "%d:%s%s%s;", q->node, q->argv[0],
             q->argc > 1 ? " " : "", q->argc > 1 ? q->argv[1] : "");
    if (fakeIs(q, 0, "CLUSTER")) {
        sendMap(q);
    } else if (fakeIs(q, 0, "ASKING")) {
        asking[q->number % 1024] = true;
        fakeSend(q, "+OK\r\n");
    } else if (fakeIs(q, 0, "GET")) {
        serveKey(q, q->argv[1]);
    } else if (fakeIs(q, 0, "SSUBSCRIBE")) {
        for (int i = 1; i < q->argc; i++)
            fakeSend(q, "*3\r\n$10\r\nssubscribe\r\n$%zu\r\n%s\r\n:%d\r\n", q->len[i], q->argv[i],
                     i);
    } else {
        fakeSend(q, "+OK\r\n");
    }
    pthread_mutex_unlock(&lock);
}

/* Range `range` is served by `owner`, as all nodes know. */
static void setOwner(int range, int owner) {
    pthread_mutex_lock(&lock);
    owners[range] = owner;
    for (int n = 0; n < NODES; n++) maps[n][range] = owner;
    pthread_mutex_unlock(&lock);
}

static void expectLog(const char *expected) {
    pthread_mutex_lock(&lock);
    char copy[sizeof(log_text)];
    strcpy(copy, log_text);
    log_text[0] = '\0';
    pthread_mutex_unlock(&lock);
    assert_string_equal(copy, expected);
}

static int logged(const char *text) {
    int count = 0;
    pthread_mutex_lock(&lock);
    for (const char *p = log_text; (p = strstr(p, text)); p++) count++;
    pthread_mutex_unlock(&lock);
    return count;
}

/* ------------------------------------------------------------------ the clients */

static char seeds[256], transcript[4096], events[256];
static int error_of_last; /* acc->err in the last callback without a reply */
static bool freed;

static void onEvent(const valkeyClusterContext *cc, int event, void *privdata) {
    (void)cc;
    (void)privdata;
    freed = event == VALKEYCLUSTER_EVENT_FREE_CONTEXT;
    strcat(events, event == VALKEYCLUSTER_EVENT_SLOTMAP_UPDATED ? "map "
                   : event == VALKEYCLUSTER_EVENT_READY         ? "ready "
                                                                : "free ");
}

static void onReply(valkeyClusterAsyncContext *acc, void *reply, void *privdata) {
    const valkeyReply *r = reply;
    size_t len = strlen(transcript);
    if (!r) error_of_last = acc->err;
    snprintf(transcript + len, sizeof(transcript) - len, "%s=%s ", (char *)privdata,
             !r       ? "NULL"
             : r->str ? r->str
                      : r->element[0]->str);
}

static valkeyClusterOptions options(int flags) {
    return (valkeyClusterOptions){.initial_nodes = seeds,
                                  .options = flags,
                                  .event_callback = onEvent,
                                  .attach_fn = simAttach};
}

static valkeyClusterAsyncContext *connectAsync(int flags) {
    valkeyClusterOptions o = options(flags);
    valkeyClusterAsyncContext *acc = valkeyClusterAsyncConnectWithOptions(&o);
    assert_non_null(acc);
    return acc;
}

static valkeyClusterContext *connectSync(void) {
    valkeyClusterOptions o = options(0);
    valkeyClusterContext *cc = valkeyClusterConnectWithOptions(&o);
    assert_non_null(cc);
    return cc;
}

/* Runs until the events are those. */
static void runUntilEvents(const char *expected) {
    for (int i = 0; i < 1000 && strlen(events) < strlen(expected); i++) simTurn(10);
    assert_string_equal(events, expected);
}

static valkeyClusterAsyncContext *readyAsync(void) {
    valkeyClusterAsyncContext *acc = connectAsync(0);
    runUntilEvents("map ready ");
    expectLog("0:CLUSTER SLOTS;");
    return acc;
}

static void command(valkeyClusterAsyncContext *acc, const char *name, const char *text) {
    assert_int_equal(valkeyClusterAsyncCommand(acc, onReply, (void *)name, text), VALKEY_OK);
}

static void expectReplies(const char *expected) {
    for (int i = 0; i < 1000 && strlen(transcript) < strlen(expected); i++) simTurn(10);
    assert_string_equal(transcript, expected);
    transcript[0] = '\0';
}

/* Runs until the log has `count` times the text. */
static void runUntilLogged(const char *text, int count) {
    for (int i = 0; i < 1000 && logged(text) < count; i++) simTurn(10);
    assert_int_equal(logged(text), count);
}

static void runUntilNotUpdating(const valkeyClusterAsyncContext *acc) {
    for (int i = 0; i < 1000 && acc->updating; i++) simTurn(10);
    assert_false(acc->updating);
}

static void expectReply(valkeyReply *r, const char *text) {
    assert_non_null(r);
    assert_string_equal(r->str, text);
    freeReplyObject(r);
}

static valkeyClusterNode *nodeOf(const char *key, valkeyClusterContext *cc) {
    return valkeyClusterGetNodeByKey(cc, (char *)key);
}

static int countNodes(valkeyClusterContext *cc) {
    valkeyClusterNodeIterator iterator;
    int count = 0;
    valkeyClusterInitNodeIterator(&iterator, cc);
    while (valkeyClusterNodeNext(&iterator)) count++;
    return count;
}

static int begin(fakeServer *s, const char *name) {
    nodes = s;
    host = name;
    for (int range = 0; range < RANGES; range++) setOwner(range, range);
    ask_target = NOBODY;
    refusals = 0;
    memset(asking, 0, sizeof(asking));
    log_text[0] = transcript[0] = events[0] = '\0';
    error_of_last = 0;
    freed = false;
    snprintf(seeds, sizeof(seeds), "%s:%d,%s:%d", host, fakePort(nodes, 0), host,
             fakePort(nodes, 1));
    countingStart();
    simStart();
    return 0;
}

static int setup(void **state) {
    (void)state;
    return begin(fakeStart(NODES, serve, NULL), "127.0.0.1");
}

static int teardown(void **state) {
    (void)state;
    fakeEnd(nodes);
    simStop();
    return 0;
}

static void setAll(fakeMode mode) {
    for (int i = 0; i < NODES; i++) fakeSetMode(nodes, i, mode);
}

/* ---------------------------------------------------------- a cluster that is down at the start */

static void syncClientStartedWhileDownRecovers(void **state) {
    (void)state;
    setAll(FAKE_REFUSE);
    valkeyClusterContext *cc = connectSync();
    assert_int_equal(cc->err, VALKEY_ERR_IO);
    for (int i = 0; i < 10; i++) assert_null(valkeyClusterCommand(cc, "GET foo"));
    setAll(FAKE_SERVE);
    expectReply(valkeyClusterCommand(cc, "GET foo"), "foo");
    assert_string_equal(events, "map ready ");
    valkeyClusterFree(cc);
}

static void asyncClientStartedWhileDownRecovers(void **state) {
    (void)state;
    setAll(FAKE_REFUSE);
    valkeyClusterAsyncContext *acc = connectAsync(0);
    /* More searches than max_retry, each after a longer time; no command is needed. */
    int searches = 0;
    for (int i = 0; i < 1000 && searches < 2; i++) {
        unsigned round = acc->cc.map_round;
        simTurn(10);
        searches += acc->cc.map_round != round;
    }
    assert_int_equal(searches, 2);
    assert_int_equal(valkeyClusterAsyncCommand(acc, onReply, NULL, "GET foo"), VALKEY_ERR);
    assert_string_equal(acc->errstr, "slotmap not available");
    acc->cc.nodes->failure_count = 100;
    setAll(FAKE_SERVE);
    runUntilEvents("map ready ");
    command(acc, "1", "GET foo");
    expectReplies("1=foo ");
    valkeyClusterAsyncFree(acc);
}

/* A program that does not watch the timer of the library, as it polls the connections of nodes
 * only. */
static void commandsLeadToTheMapWithoutTheTimer(void **state) {
    (void)state;
    setAll(FAKE_REFUSE);
    valkeyClusterAsyncContext *acc = connectAsync(0);
    for (int i = 0; i < 1000 && !acc->wake; i++) simTurn(10);
    assert_non_null(acc->wake);
    setAll(FAKE_SERVE);
    valkeyAsyncContext *timer = acc->wake;
    timer->ev.delRead(timer->ev.data);
    simPass(1500000);
    assert_int_equal(valkeyClusterAsyncCommand(acc, onReply, NULL, "GET foo"), VALKEY_ERR);
    assert_ptr_equal(acc->wake, timer);
    simPass(500000);
    assert_int_equal(valkeyClusterAsyncCommand(acc, onReply, NULL, "GET foo"), VALKEY_ERR);
    assert_null(acc->wake);
    runUntilEvents("map ready ");
    valkeyClusterAsyncFree(acc);
}

static void asyncClientStartedWithoutSlotsRecovers(void **state) {
    (void)state;
    /* The nodes reply, but have no slots yet. */
    for (int range = 0; range < RANGES; range++) setOwner(range, NOBODY);
    valkeyClusterAsyncContext *acc = connectAsync(0);
    runUntilLogged("CLUSTER", 4); /* two nodes, twice */
    assert_int_equal(acc->cc.err, VALKEY_ERR_OTHER);
    for (int range = 0; range < RANGES; range++) setOwner(range, range);
    runUntilEvents("map ready ");
    valkeyClusterAsyncFree(acc);
    assert_string_equal(events, "map ready free ");
}

static void waitingForTheClusterEndsWithTheClient(void **state) {
    (void)state;
    setAll(FAKE_REFUSE);
    for (int disconnect = 0; disconnect < 2; disconnect++) {
        valkeyClusterAsyncContext *acc = connectAsync(0);
        for (int i = 0; i < 1000 && !acc->wake; i++) simTurn(10);
        assert_non_null(acc->wake);
        if (disconnect) valkeyClusterAsyncDisconnect(acc);
        if (disconnect) assert_int_equal(simContexts(), 0);
        valkeyClusterAsyncFree(acc);
        assert_int_equal(simContexts(), 0);
    }
}

static void blockingUpdateLeavesNoConnection(void **state) {
    (void)state;
    valkeyClusterAsyncContext *acc = connectAsync(VALKEY_OPT_BLOCKING_INITIAL_UPDATE);
    assert_string_equal(events, "map ready ");
    for (valkeyClusterNode *n = acc->cc.nodes; n; n = n->next) assert_null(n->con);
    for (int i = 0; i < 1000 && fakeOpen(nodes) > 0; i++) simTurn(10);
    assert_int_equal(fakeOpen(nodes), 0);
    command(acc, "1", "GET foo");
    expectReplies("1=foo ");
    valkeyClusterAsyncFree(acc);
}

/* ------------------------------------------------------------------ dead nodes */

static void syncCommandsToADeadNodeRenewTheMap(void **state) {
    (void)state;
    valkeyClusterContext *cc = connectSync();
    fakeSetMode(nodes, 1, FAKE_REFUSE);
    setOwner(1, 3);
    int failures = 0, successes = 0;
    for (int round = 0; round < 3; round++) {
        valkeyClusterNodeIterator iterator;
        valkeyClusterInitNodeIterator(&iterator, cc);
        for (valkeyClusterNode *n; (n = valkeyClusterNodeNext(&iterator));) {
            valkeyReply *r = valkeyClusterCommandToNode(cc, n, "DBSIZE");
            failures += r == NULL;
            successes += r != NULL;
            freeReplyObject(r);
        }
    }
    /* The first walk fails at node 1, reads the map from node 2, and begins anew. */
    assert_int_equal(failures, 1);
    assert_int_equal(successes, 2 + 3 * 3);
    assert_int_equal(logged("CLUSTER"), 2);
    assert_int_equal(countNodes(cc), 3);
    assert_string_equal(nodeOf(KEY1, cc)->name, "id3");
    valkeyClusterFree(cc);
}

static void asyncCommandsToADeadNodeRenewTheMap(void **state) {
    (void)state;
    valkeyClusterAsyncContext *acc = readyAsync();
    fakeSetMode(nodes, 1, FAKE_REFUSE);
    setOwner(1, 3);
    simPass(2LL * SECOND);
    assert_int_equal(valkeyClusterAsyncCommandToNode(acc, nodeOf(KEY1, &acc->cc), onReply,
                                                     (void *)"1", "DBSIZE"),
                     VALKEY_OK);
    expectReplies("1=NULL ");
    assert_int_equal(error_of_last, VALKEY_ERR_IO);
    runUntilNotUpdating(acc);
    assert_string_equal(nodeOf(KEY1, &acc->cc)->name, "id3");
    assert_int_equal(countNodes(&acc->cc), 3);
    valkeyClusterAsyncFree(acc);
}

static void mapsAreNotQueriedWithinTransactions(void **state) {
    (void)state;
    valkeyClusterContext *cc = connectSync();
    fakeSetMode(nodes, 1, FAKE_REFUSE);
    expectReply(valkeyClusterCommandToNode(cc, nodeOf(KEY0, cc), "MULTI"), "OK");
    assert_null(valkeyClusterCommandToNode(cc, nodeOf(KEY1, cc), "PING"));
    expectLog("0:CLUSTER SLOTS;0:MULTI;");
    expectReply(valkeyClusterCommandToNode(cc, nodeOf(KEY0, cc), "PING"), "OK");
    expectLog("0:PING;");
    expectReply(valkeyClusterCommandToNode(cc, nodeOf(KEY0, cc), "EXEC"), "OK");
    expectLog("0:EXEC;0:CLUSTER SLOTS;");
    valkeyClusterFree(cc);
}

static void failedNodesAreAskedLast(void **state) {
    (void)state;
    valkeyClusterAsyncContext *acc = readyAsync();
    for (int failing = 0; failing < RANGES; failing++) {
        static const char *const gets[] = {"GET " KEY0, "GET " KEY1, "GET " KEY2};
        simPass(2LL * SECOND);
        fakeSetMode(nodes, failing, FAKE_DROP);
        command(acc, "1", gets[failing]);
        expectReplies("1=NULL ");
        assert_int_equal(nodeOf(gets[failing] + 4, &acc->cc)->failure_count, 1);
        runUntilNotUpdating(acc);
        /* One node was asked, and it replied. */
        assert_int_equal(logged("CLUSTER"), 1);
        char dead[32];
        sprintf(dead, "%d:", failing);
        assert_int_equal(logged(dead), 0);
        LOCKED(log_text[0] = '\0');
        fakeSetMode(nodes, failing, FAKE_SERVE);
        command(acc, "2", gets[failing]);
        simTurn(10);
        for (int i = 0; i < 1000 && !strstr(transcript, "2="); i++) simTurn(10);
        transcript[0] = '\0';
        assert_int_equal(nodeOf(gets[failing] + 4, &acc->cc)->failure_count, 0);
        LOCKED(log_text[0] = '\0');
    }
    valkeyClusterAsyncFree(acc);
}

static void failedNodesAreAskedLastSync(void **state) {
    (void)state;
    valkeyClusterContext *cc = connectSync();
    fakeSetMode(nodes, 0, FAKE_DROP);
    assert_null(valkeyClusterCommand(cc, "GET " KEY0));
    LOCKED(log_text[0] = '\0');
    setOwner(0, 3);
    int before = fakeAccepted(nodes);
    expectReply(valkeyClusterCommand(cc, "GET " KEY0), KEY0);
    /* Connections to the node that was asked for the map, and to the new owner. */
    assert_int_equal(fakeAccepted(nodes) - before, 2);
    assert_int_equal(logged("CLUSTER"), 1);
    valkeyClusterFree(cc);
}

static void aRedirectToADeadNodeAsksALivingOne(void **state) {
    (void)state;
    valkeyClusterAsyncContext *acc = readyAsync();
    simPass(2LL * SECOND);
    fakeSetMode(nodes, 3, FAKE_REFUSE);
    LOCKED(owners[2] = 3); /* node 2 says so, but node 3 is dead */
    command(acc, "1", "GET " KEY2);
    expectReplies("1=NULL ");
    runUntilNotUpdating(acc);
    expectLog("2:GET foo;2:CLUSTER SLOTS;");
    valkeyClusterAsyncFree(acc);

    valkeyClusterContext *cc = connectSync();
    LOCKED(log_text[0] = '\0');
    assert_null(valkeyClusterCommand(cc, "GET " KEY2));
    assert_int_equal(cc->err, VALKEY_ERR_IO);
    assert_int_equal(logged("3:"), 0);
    fakeSetMode(nodes, 3, FAKE_SERVE);
    expectReply(valkeyClusterCommand(cc, "GET " KEY2), KEY2);
    valkeyClusterFree(cc);
}

static void asksToADeadNodeFail(void **state) {
    (void)state;
    fakeSetMode(nodes, 3, FAKE_REFUSE);
    valkeyClusterContext *cc = connectSync();
    LOCKED(ask_target = 3);
    assert_null(valkeyClusterCommand(cc, "GET " KEY2));
    assert_int_equal(cc->err, VALKEY_ERR_IO);
    /* ASKING is for the target only. */
    assert_int_equal(logged("ASKING"), 0);
    LOCKED(ask_target = NOBODY);
    expectReply(valkeyClusterCommand(cc, "GET " KEY2), KEY2);
    valkeyClusterFree(cc);
}

/* A connection that cannot even begin: the name of the host is unknown now. */
static void nodesThatCannotBeNamedRenewTheMap(void **state) {
    (void)state;
    valkeyClusterAsyncContext *acc = readyAsync();
    simPass(2LL * SECOND);
    setOwner(1, 3);
    valkeyClusterNode *node = nodeOf(KEY1, &acc->cc);
    memcpy(node->host, "[[[[[[[[[", strlen(node->host));
    assert_int_equal(valkeyClusterAsyncCommand(acc, onReply, NULL, "GET " KEY1), VALKEY_ERR);
    assert_int_equal(acc->err, VALKEY_ERR_OTHER);
    assert_int_equal(node->failure_count, 1);
    runUntilNotUpdating(acc);
    command(acc, "1", "GET " KEY1);
    expectReplies("1=" KEY1 " ");
    valkeyClusterAsyncFree(acc);
}

static void subscriptionsEndWithTheirConnection(void **state) {
    (void)state;
    valkeyClusterAsyncContext *acc = readyAsync();
    for (int i = 0; i < 3; i++) {
        command(acc, "s", "SSUBSCRIBE {" KEY1 "}1 {" KEY1 "}2");
        expectReplies("s=ssubscribe s=ssubscribe ");
        assert_non_null(acc->requests);
        fakeSetMode(nodes, 1, FAKE_REFUSE);
        expectReplies("s=NULL s=NULL ");
        assert_null(acc->requests);
        fakeSetMode(nodes, 1, FAKE_SERVE);
    }
    valkeyClusterAsyncFree(acc);
}

/* ------------------------------------------------------------------ nodes that hang */

static void syncCommandsToAHangingNodeTimeOut(void **state) {
    (void)state;
    struct timeval limit = {.tv_usec = 20000};
    valkeyClusterContext *cc = connectSync();
    assert_int_equal(valkeyClusterSetOptionTimeout(cc, limit), VALKEY_OK);
    fakeSetMode(nodes, 1, FAKE_HOLD);
    assert_null(valkeyClusterCommand(cc, "GET " KEY1));
    assert_true(cc->err == VALKEY_ERR_IO || cc->err == VALKEY_ERR_TIMEOUT);
    setOwner(1, 3);
    /* The map is not asked of the one that hangs. */
    assert_int_equal(valkeyClusterSetOptionTimeout(cc, (struct timeval){.tv_sec = 60}), VALKEY_OK);
    expectReply(valkeyClusterCommand(cc, "GET " KEY1), KEY1);
    valkeyClusterFree(cc);
}

static void asyncCommandsToAHangingNodeTimeOut(void **state) {
    (void)state;
    struct timeval limit = {.tv_sec = 5};
    valkeyClusterOptions o = options(0);
    o.command_timeout = &limit;
    valkeyClusterAsyncContext *acc = valkeyClusterAsyncConnectWithOptions(&o);
    runUntilEvents("map ready ");
    fakeSetMode(nodes, 1, FAKE_HOLD);
    setOwner(1, 3);
    command(acc, "1", "GET " KEY1);
    runUntilLogged("1:GET", 1);
    simPass(5LL * SECOND);
    expectReplies("1=NULL ");
    assert_int_equal(error_of_last, VALKEY_ERR_TIMEOUT);
    runUntilNotUpdating(acc);
    command(acc, "2", "GET " KEY1);
    expectReplies("2=" KEY1 " ");
    valkeyClusterAsyncFree(acc);
}

static void lateRepliesAreReplies(void **state) {
    (void)state;
    valkeyClusterAsyncContext *acc = readyAsync();
    fakeSetMode(nodes, 1, FAKE_HOLD);
    command(acc, "1", "GET " KEY1);
    command(acc, "2", "GET " KEY2);
    expectReplies("2=foo ");
    fakeSetMode(nodes, 1, FAKE_SERVE);
    expectReplies("1=" KEY1 " ");
    valkeyClusterAsyncFree(acc);
}

/* Lets node 1 reply when it has received a request. */
static void *releaseLater(void *unused) {
    (void)unused;
    while (logged("1:GET") == 0) sched_yield();
    fakeSetMode(nodes, 1, FAKE_SERVE);
    return NULL;
}

static void lateRepliesAreRepliesSync(void **state) {
    (void)state;
    valkeyClusterContext *cc = connectSync();
    pthread_t thread;
    fakeSetMode(nodes, 1, FAKE_HOLD);
    assert_int_equal(pthread_create(&thread, NULL, releaseLater, NULL), 0);
    expectReply(valkeyClusterCommand(cc, "GET " KEY1), KEY1);
    pthread_join(thread, NULL);
    valkeyClusterFree(cc);
}

/* ------------------------------------------------------------------ nodes that leave */

/* Without an error: what could not be sent is sent to the successor. */
static void syncClientFollowsAClusterThatShrinks(void **state) {
    (void)state;
    valkeyClusterContext *cc = connectSync();
    fakeSetMode(nodes, 1, FAKE_REFUSE);
    setOwner(1, 0);
    expectReply(valkeyClusterCommand(cc, "GET " KEY1), KEY1);
    assert_int_equal(countNodes(cc), 2);
    valkeyClusterFree(cc);
    /* Of a pipeline, too. */
    cc = connectSync();
    LOCKED(log_text[0] = '\0');
    fakeSetMode(nodes, 2, FAKE_REFUSE);
    setOwner(2, 0);
    for (int i = 0; i < 3; i++)
        assert_int_equal(valkeyClusterAppendCommand(cc, "GET {" KEY2 "}%d", i), VALKEY_OK);
    for (int i = 0; i < 3; i++) {
        void *reply;
        char expected[32];
        snprintf(expected, sizeof(expected), "{" KEY2 "}%d", i);
        assert_int_equal(valkeyClusterGetReply(cc, &reply), VALKEY_OK);
        expectReply(reply, expected);
    }
    assert_int_equal(countNodes(cc), 1);
    expectLog("0:CLUSTER SLOTS;0:GET {foo}0;0:GET {foo}1;0:GET {foo}2;");
    valkeyClusterFree(cc);
}

static void commandsOnANodeThatLeftAreCalledBack(void **state) {
    (void)state;
    valkeyClusterAsyncContext *acc = readyAsync();
    fakeSetMode(nodes, 1, FAKE_HOLD);
    command(acc, "1", "GET " KEY1);
    command(acc, "2", "GET {" KEY1 "}2");
    runUntilLogged("1:GET", 2);
    simPass(2LL * SECOND);
    setOwner(1, 3);
    setOwner(2, 0);
    command(acc, "3", "GET " KEY2); /* MOVED, so the map is read */
    for (int i = 0; i < 1000 && strlen(transcript) < strlen("1=NULL 2=NULL 3=foo "); i++)
        simTurn(10);
    assert_non_null(strstr(transcript, "1=NULL 2=NULL "));
    assert_non_null(strstr(transcript, "3=foo "));
    transcript[0] = '\0';
    assert_int_equal(error_of_last, VALKEY_ERR_EOF);
    command(acc, "4", "GET " KEY1);
    expectReplies("4=" KEY1 " ");
    assert_int_equal(countNodes(&acc->cc), 2);
    valkeyClusterAsyncFree(acc);
}

static void onReplyThenGet(valkeyClusterAsyncContext *acc, void *reply, void *privdata) {
    onReply(acc, reply, privdata);
    /* The new map is in use. */
    if (!reply) command(acc, "again", "GET " KEY1);
}

static void onReplyThenFree(valkeyClusterAsyncContext *acc, void *reply, void *privdata) {
    onReply(acc, reply, privdata);
    valkeyClusterAsyncFree(acc);
}

static void callbacksOfANodeThatLeftMayUseAndFreeTheClient(void **state) {
    (void)state;
    for (int frees = 0; frees < 2; frees++) {
        setOwner(1, 1);
        setOwner(2, 2);
        LOCKED(log_text[0] = '\0');
        events[0] = '\0';
        valkeyClusterAsyncContext *acc = readyAsync();
        fakeSetMode(nodes, 1, FAKE_HOLD);
        assert_int_equal(valkeyClusterAsyncCommand(acc, frees ? onReplyThenFree : onReplyThenGet,
                                                   (void *)"1", "GET " KEY1),
                         VALKEY_OK);
        runUntilLogged("1:GET", 1);
        simPass(2LL * SECOND);
        setOwner(1, 3);
        setOwner(2, 0);
        command(acc, "2", "GET " KEY2);
        for (int i = 0; i < 1000 && !strstr(transcript, frees ? "1=" : "again="); i++) simTurn(10);
        assert_non_null(strstr(transcript, frees ? "1=NULL " : "again=" KEY1 " "));
        transcript[0] = '\0';
        fakeSetMode(nodes, 1, FAKE_SERVE);
        if (!frees) valkeyClusterAsyncFree(acc);
        for (int i = 0; i < 1000 && simContexts() > 0; i++) simTurn(10);
        assert_true(freed);
        transcript[0] = '\0';
    }
}

static void aNodeThatSaysItLeftStillReplies(void **state) {
    (void)state;
    valkeyClusterAsyncContext *acc = readyAsync();
    simPass(2LL * SECOND);
    setOwner(2, 0); /* node 2 has no slots any more, and says so */
    command(acc, "1", "GET " KEY2);
    command(acc, "2", "GET " KEY2);
    command(acc, "3", "GET {" KEY2 "}3");
    expectReplies("1=foo 2=foo 3={foo}3 ");
    runUntilNotUpdating(acc);
    assert_int_equal(countNodes(&acc->cc), 2);
    assert_int_equal(logged("CLUSTER"), 1);
    valkeyClusterAsyncFree(acc);
}

static void aTargetOfAskThatIsNotInTheMapIsKept(void **state) {
    (void)state;
    valkeyClusterAsyncContext *acc = readyAsync();
    simPass(2LL * SECOND);
    LOCKED(ask_target = 3);
    fakeSetMode(nodes, 3, FAKE_HOLD);
    command(acc, "1", "GET " KEY2);
    runUntilLogged("3:GET", 1);
    setOwner(1, 0);
    command(acc, "2", "GET " KEY1); /* reads the map, in which node 3 is not */
    expectReplies("2=" KEY1 " ");
    runUntilNotUpdating(acc);
    assert_int_equal(acc->cc.route_version, 2);
    fakeSetMode(nodes, 3, FAKE_SERVE);
    expectReplies("1=foo ");
    valkeyClusterAsyncFree(acc);
}

/* ------------------------------------------------------------------ maps */

static void eventsComeInOrder(void **state) {
    (void)state;
    valkeyClusterContext *cc = connectSync();
    assert_string_equal(events, "map ready ");
    assert_int_equal(valkeyClusterUpdateSlotmap(cc), VALKEY_OK);
    assert_string_equal(events, "map ready map ");
    valkeyClusterFree(cc);
    assert_string_equal(events, "map ready map free ");
    events[0] = '\0';
    LOCKED(log_text[0] = '\0');
    valkeyClusterAsyncFree(readyAsync());
    assert_string_equal(events, "map ready free ");
}

/* A new node may not know the whole map: the one that sends MOVED is asked. */
static void theNodeThatSaysMovedIsAsked(void **state) {
    (void)state;
    for (int asynchronous = 0; asynchronous < 2; asynchronous++) {
        setOwner(2, 2);
        events[0] = '\0';
        valkeyClusterContext *cc = asynchronous ? NULL : connectSync();
        LOCKED(log_text[0] = '\0');
        valkeyClusterAsyncContext *acc = asynchronous ? readyAsync() : NULL;
        simPass(2LL * SECOND);
        setOwner(2, 3);
        LOCKED(maps[3][0] = maps[3][1] = NOBODY);
        if (asynchronous) {
            command(acc, "1", "GET " KEY2);
            expectReplies("1=foo ");
            runUntilNotUpdating(acc);
        } else {
            expectReply(valkeyClusterCommand(cc, "GET " KEY2), KEY2);
        }
        assert_int_equal(logged("CLUSTER"), 1);
        assert_int_equal(logged("2:CLUSTER"), 1);
        valkeyClusterContext *used = asynchronous ? &acc->cc : cc;
        assert_string_equal(nodeOf(KEY0, used)->name, "id0");
        assert_string_equal(nodeOf(KEY2, used)->name, "id3");
        LOCKED(log_text[0] = '\0');
        valkeyClusterAsyncFree(acc);
        valkeyClusterFree(cc);
    }
}

/* The node that says MOVED may have an old map nevertheless: the redirect counts. */
static void redirectsCountMoreThanMaps(void **state) {
    (void)state;
    valkeyClusterContext *cc = connectSync();
    LOCKED(owners[2] = 3);
    expectReply(valkeyClusterCommand(cc, "GET " KEY2), KEY2);
    LOCKED(log_text[0] = '\0');
    expectReply(valkeyClusterCommand(cc, "GET " KEY2), KEY2);
    expectLog("3:GET foo;");
    /* No map at all: another node's is used, and the redirect followed. */
    LOCKED(owners[2] = 1);
    for (int i = 0; i < NODES; i++) LOCKED(maps[i][0] = NO_MAP);
    expectReply(valkeyClusterCommand(cc, "GET " KEY2), KEY2);
    assert_int_equal(cc->err, 0);
    valkeyClusterFree(cc);
}

static void pipelinesAskOnceForAMove(void **state) {
    (void)state;
    valkeyClusterContext *cc = connectSync();
    LOCKED(log_text[0] = '\0');
    setOwner(2, 0);
    for (int i = 0; i < 20; i++)
        assert_int_equal(valkeyClusterAppendCommand(cc, "GET {foo}%d", i), VALKEY_OK);
    for (int i = 0; i < 20; i++) {
        void *reply;
        char expected[32];
        sprintf(expected, "{foo}%d", i);
        assert_int_equal(valkeyClusterGetReply(cc, &reply), VALKEY_OK);
        expectReply(reply, expected);
    }
    assert_int_equal(logged("CLUSTER"), 1);
    valkeyClusterFree(cc);
}

/* A command to the only node of an incomplete map, which dies: the initial nodes know the
 * others. */
static void theOnlyKnownNodeIsReplaced(void **state) {
    (void)state;
    for (int range = 1; range < RANGES; range++) setOwner(range, NOBODY);
    valkeyClusterContext *cc = connectSync();
    assert_int_equal(countNodes(cc), 1);
    valkeyClusterNode *node = cc->nodes;
    fakeSetMode(nodes, 0, FAKE_REFUSE);
    for (int range = 0; range < RANGES; range++) setOwner(range, 1);
    assert_null(valkeyClusterCommandToNode(cc, node, "DBSIZE"));
    assert_ptr_equal(cc->nodes, node);
    assert_null(valkeyClusterCommandToNode(cc, node, "DBSIZE"));
    /* The map has another node now, but the one that left may still be named. */
    assert_ptr_not_equal(cc->nodes, node);
    assert_int_equal(countNodes(cc), 1);
    assert_string_equal(node->name, "id0");
    expectReply(valkeyClusterCommandToNode(cc, cc->nodes, "DBSIZE"), "OK");
    valkeyClusterFree(cc);
}

/* An iteration comes to its end although a dead node, which is still in the map, renews that again
 * and again. */
static void iteratorsVisitAllNodesThoughOneIsDown(void **state) {
    (void)state;
    valkeyClusterContext *cc = connectSync();
    for (int dead = 0; dead < RANGES; dead++) {
        fakeSetMode(nodes, dead, FAKE_REFUSE);
        for (int round = 0; round < 3; round++) {
            valkeyClusterNodeIterator iterator;
            int failures = 0, successes = 0;
            valkeyClusterInitNodeIterator(&iterator, cc);
            for (valkeyClusterNode *n; (n = valkeyClusterNodeNext(&iterator));) {
                valkeyReply *r = valkeyClusterCommandToNode(cc, n, "DBSIZE");
                failures += r == NULL;
                successes += r != NULL;
                freeReplyObject(r);
            }
            assert_int_equal(failures, 1);
            assert_int_equal(successes, 2);
        }
        fakeSetMode(nodes, dead, FAKE_SERVE);
        assert_int_equal(valkeyClusterUpdateSlotmap(cc), VALKEY_OK);
    }
    valkeyClusterFree(cc);
}

/* The retries of one command are enough for a pipeline. */
static void pipelinesShareTheirRetries(void **state) {
    (void)state;
    valkeyClusterContext *cc = connectSync();
    LOCKED(refusals = 1000);
    for (int i = 0; i < 20; i++)
        assert_int_equal(valkeyClusterAppendCommand(cc, "GET {foo}%d", i), VALKEY_OK);
    for (int i = 0; i < 20; i++) {
        void *reply;
        assert_int_equal(valkeyClusterGetReply(cc, &reply), VALKEY_ERR);
        assert_int_equal(cc->err, VALKEY_ERR_CLUSTER_TOO_MANY_RETRIES);
        assert_string_equal(cc->errstr, "too many cluster retries");
    }
    assert_int_equal(logged("GET"), 20 + 6);
    LOCKED(refusals = 0);
    /* And two attempts to connect: before and after the map was read. */
    fakeSetMode(nodes, 2, FAKE_REFUSE);
    /* The first time the connection is lost, then there is none. */
    for (int tries = 1; tries < 3; tries++) {
        for (int i = 0; i < 20; i++)
            assert_int_equal(valkeyClusterAppendCommand(cc, "GET {foo}%d", i), VALKEY_OK);
        for (int i = 0; i < 20; i++) {
            void *reply;
            assert_int_equal(valkeyClusterGetReply(cc, &reply), VALKEY_ERR);
        }
        assert_int_equal(nodeOf(KEY2, cc)->failure_count, tries == 1 ? 1 : 1 + 2);
    }
    valkeyClusterFree(cc);
}

static void slotsWithoutANodeFailAlone(void **state) {
    (void)state;
    setOwner(1, NOBODY);
    valkeyClusterContext *cc = connectSync();
    static const char *const keys[] = {KEY0, KEY1, KEY2};
    void *reply;
    assert_null(valkeyClusterCommand(cc, "GET " KEY1));
    assert_string_equal(cc->errstr, "slot not served by any node");
    for (int i = 0; i < RANGES; i++)
        assert_int_equal(valkeyClusterAppendCommand(cc, "GET %s", keys[i]), VALKEY_OK);
    for (int i = 0; i < RANGES; i++) {
        assert_int_equal(valkeyClusterGetReply(cc, &reply), i == 1 ? VALKEY_ERR : VALKEY_OK);
        if (i == 1) assert_string_equal(cc->errstr, "slot not served by any node");
        if (i != 1) expectReply(reply, keys[i]);
    }
    valkeyClusterFree(cc);
}

/* Each command has its failure, so that later replies belong to later commands. */
static void pipelinesWithoutAClusterFail(void **state) {
    (void)state;
    valkeyClusterContext *cc = connectSync();
    void *reply;
    setAll(FAKE_REFUSE);
    for (int tries = 0; tries < 2; tries++) {
        assert_int_equal(valkeyClusterAppendCommand(cc, "GET {foo}1"), VALKEY_OK);
        assert_int_equal(valkeyClusterAppendCommand(cc, "GET {foo}2"), VALKEY_OK);
        for (int i = 0; i < 2; i++) {
            assert_int_equal(valkeyClusterGetReply(cc, &reply), VALKEY_ERR);
            assert_true(cc->err == VALKEY_ERR_IO || cc->err == VALKEY_ERR_EOF);
        }
    }
    setAll(FAKE_SERVE);
    assert_int_equal(valkeyClusterAppendCommand(cc, "GET {foo}3"), VALKEY_OK);
    assert_int_equal(valkeyClusterGetReply(cc, &reply), VALKEY_OK);
    expectReply(reply, "{foo}3");
    valkeyClusterFree(cc);
}

static void failuresAskForTheMapOnceASecond(void **state) {
    (void)state;
    valkeyClusterAsyncContext *acc = readyAsync();
    fakeSetMode(nodes, 2, FAKE_DROP);
    for (int i = 0; i < 3; i++) {
        command(acc, "1", "GET foo");
        expectReplies("1=NULL ");
    }
    assert_int_equal(logged("CLUSTER"), 0); /* the first map is not old enough */
    simPass(SECOND);
    for (int i = 0; i < 3; i++) {
        command(acc, "1", "GET foo");
        expectReplies("1=NULL ");
        runUntilNotUpdating(acc);
    }
    assert_int_equal(logged("CLUSTER"), 1);
    valkeyClusterAsyncFree(acc);
}

/* When no node of the map is reachable, the initial nodes are asked. */
static void initialNodesAreAskedWhenTheMapIsUseless(void **state) {
    (void)state;
    snprintf(seeds, sizeof(seeds), "127.0.0.1:%d", fakePort(nodes, 3));
    for (int asynchronous = 0; asynchronous < 2; asynchronous++) {
        for (int range = 0; range < RANGES; range++) setOwner(range, range);
        events[0] = '\0';
        valkeyClusterContext *cc = asynchronous ? NULL : connectSync();
        valkeyClusterAsyncContext *acc = asynchronous ? connectAsync(0) : NULL;
        runUntilEvents("map ready ");
        for (int n = 0; n < 3; n++) fakeSetMode(nodes, n, FAKE_REFUSE);
        for (int range = 0; range < RANGES; range++) setOwner(range, 3);
        simPass(2LL * SECOND);
        if (asynchronous) {
            command(acc, "1", "GET foo");
            expectReplies("1=NULL ");
            runUntilNotUpdating(acc);
            command(acc, "2", "GET foo");
            expectReplies("2=foo ");
        } else {
            expectReply(valkeyClusterCommand(cc, "GET foo"), "foo");
        }
        assert_int_equal(countNodes(asynchronous ? &acc->cc : cc), 1);
        valkeyClusterAsyncFree(acc);
        valkeyClusterFree(cc);
        for (int n = 0; n < 3; n++) fakeSetMode(nodes, n, FAKE_SERVE);
    }
}

static void nodesListTheirSlotsAndReplicas(void **state) {
    (void)state;
    valkeyClusterContext *cc = connectSync();
    setOwner(1, 0);
    assert_int_equal(valkeyClusterUpdateSlotmap(cc), VALKEY_OK);
    const valkeyClusterNode *n = nodeOf(KEY0, cc);
    assert_int_equal(n->slot_ranges, 2);
    assert_int_equal(n->slots[1].start, 5461);
    assert_int_equal(n->slots[1].end, 10922);
    assert_ptr_equal(n->slots[1].node, n);
    assert_null(n->replicas);
    assert_true(n->lastConnectionAttempt > 0);
    valkeyClusterFree(cc);
}

static void tooManyRetriesAreAnError(void **state) {
    (void)state;
    LOCKED(refusals = 6);
    valkeyClusterAsyncContext *acc = readyAsync();
    command(acc, "1", "GET foo");
    expectReplies("1=NULL ");
    assert_int_equal(error_of_last, VALKEY_ERR_CLUSTER_TOO_MANY_RETRIES);
    assert_int_equal(acc->cc.retry_count, 5);
    LOCKED(refusals = 5);
    command(acc, "2", "GET foo");
    expectReplies("2=foo ");
    valkeyClusterAsyncFree(acc);
}

/* -------------------------------------------------------------- names and families of addresses */

static void useAndMove(void) {
    valkeyClusterContext *cc = connectSync();
    assert_string_equal(cc->errstr, "");
    expectReply(valkeyClusterCommand(cc, "GET " KEY2), KEY2);
    assert_string_equal(nodeOf(KEY2, cc)->host, host);
    setOwner(2, 3);
    expectReply(valkeyClusterCommand(cc, "GET " KEY2), KEY2);
    LOCKED(ask_target = 1);
    expectReply(valkeyClusterCommand(cc, "GET " KEY2), KEY2);
    valkeyClusterFree(cc);
    LOCKED(ask_target = NOBODY);
    setOwner(2, 2);
    LOCKED(log_text[0] = '\0');
    events[0] = '\0';
    valkeyClusterAsyncContext *acc = readyAsync();
    command(acc, "1", "GET " KEY2);
    expectReplies("1=foo ");
    setOwner(2, 3);
    command(acc, "2", "GET " KEY2);
    expectReplies("2=foo ");
    LOCKED(ask_target = 1);
    command(acc, "3", "GET " KEY2);
    expectReplies("3=foo ");
    valkeyClusterAsyncFree(acc);
}

static void hostNamesAreUsedAsGiven(void **state) {
    (void)state;
    LOCKED(host = "localhost");
    snprintf(seeds, sizeof(seeds), "localhost:%d", fakePort(nodes, 0));
    useAndMove();
}

/* The address of a redirect without a host is that of the node that sent it. */
static void emptyHostsAreThoseOfTheSender(void **state) {
    (void)state;
    LOCKED(host = "");
    valkeyClusterContext *cc = connectSync();
    setOwner(2, 3);
    expectReply(valkeyClusterCommand(cc, "GET " KEY2), KEY2);
    assert_string_equal(nodeOf(KEY2, cc)->host, "127.0.0.1");
    valkeyClusterFree(cc);
}

static int teardownIpv6(void **state) { return nodes ? teardown(state) : 0; }

static int setupIpv6(void **state) {
    (void)state;
    nodes = fakeStartIpv6(NODES, serve, NULL);
    return nodes ? begin(nodes, "::1") : 0;
}

static void ipv6AddressesAreUsed(void **state) {
    (void)state;
    if (!nodes) skip();
    useAndMove();
}

/* ------------------------------------------------------------------ ending */

static valkeyClusterAsyncContext *ending;

static void freeOnDisconnect(const valkeyAsyncContext *ac, int status) {
    (void)ac;
    (void)status;
    valkeyClusterAsyncFree(ending);
}

static void disconnectCallbacksMayFreeTheClient(void **state) {
    (void)state;
    valkeyClusterOptions o = options(0);
    o.async_disconnect_callback = freeOnDisconnect;
    ending = valkeyClusterAsyncConnectWithOptions(&o);
    assert_ptr_equal(ending->onDisconnect, freeOnDisconnect);
    runUntilEvents("map ready ");
    command(ending, "1", "GET " KEY1);
    command(ending, "2", "GET " KEY2);
    for (int i = 0; i < 1000 && strlen(transcript) < strlen("1=x1 2=foo "); i++) simTurn(10);
    assert_int_equal(simContexts(), 3);
    valkeyClusterAsyncDisconnect(ending);
    assert_true(freed);
    assert_int_equal(simContexts(), 0);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)

int test_cluster_nodes(void) {
    const struct CMUnitTest tests[] = {
        TEST(syncClientStartedWhileDownRecovers),
        TEST(asyncClientStartedWhileDownRecovers),
        TEST(commandsLeadToTheMapWithoutTheTimer),
        TEST(asyncClientStartedWithoutSlotsRecovers),
        TEST(waitingForTheClusterEndsWithTheClient),
        TEST(blockingUpdateLeavesNoConnection),
        TEST(syncCommandsToADeadNodeRenewTheMap),
        TEST(asyncCommandsToADeadNodeRenewTheMap),
        TEST(mapsAreNotQueriedWithinTransactions),
        TEST(failedNodesAreAskedLast),
        TEST(failedNodesAreAskedLastSync),
        TEST(aRedirectToADeadNodeAsksALivingOne),
        TEST(asksToADeadNodeFail),
        TEST(nodesThatCannotBeNamedRenewTheMap),
        TEST(subscriptionsEndWithTheirConnection),
        TEST(syncCommandsToAHangingNodeTimeOut),
        TEST(asyncCommandsToAHangingNodeTimeOut),
        TEST(lateRepliesAreReplies),
        TEST(lateRepliesAreRepliesSync),
        TEST(syncClientFollowsAClusterThatShrinks),
        TEST(commandsOnANodeThatLeftAreCalledBack),
        TEST(callbacksOfANodeThatLeftMayUseAndFreeTheClient),
        TEST(aNodeThatSaysItLeftStillReplies),
        TEST(aTargetOfAskThatIsNotInTheMapIsKept),
        TEST(eventsComeInOrder),
        TEST(theNodeThatSaysMovedIsAsked),
        TEST(redirectsCountMoreThanMaps),
        TEST(pipelinesAskOnceForAMove),
        TEST(theOnlyKnownNodeIsReplaced),
        TEST(iteratorsVisitAllNodesThoughOneIsDown),
        TEST(pipelinesShareTheirRetries),
        TEST(slotsWithoutANodeFailAlone),
        TEST(pipelinesWithoutAClusterFail),
        TEST(failuresAskForTheMapOnceASecond),
        TEST(initialNodesAreAskedWhenTheMapIsUseless),
        TEST(nodesListTheirSlotsAndReplicas),
        TEST(tooManyRetriesAreAnError),
        TEST(hostNamesAreUsedAsGiven),
        TEST(emptyHostsAreThoseOfTheSender),
        cmocka_unit_test_setup_teardown(ipv6AddressesAreUsed, setupIpv6, teardownIpv6),
        TEST(disconnectCallbacksMayFreeTheClient),
    };
    return cmocka_run_group_tests_name("cluster nodes", tests, NULL, NULL);
}
