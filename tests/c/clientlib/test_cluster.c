/* SPDX-License-Identifier: BSD-3-Clause
 *
 * The cluster client against scripted nodes: the map in both forms, redirects, pipelines of which a
 * part is redirected, sharded subscriptions, nodes that fail, and memory that is exhausted at any
 * point. */
#include <pthread.h>

#include <valkey/adapters/poll.h>
#include <valkey/cluster.h>

#include "client_test.h"
#include "clientlib/command_keys.h"

/* Three primaries; slots are split at 5461 and 10923. Node 3 is a replica of node 0. */
enum { PRIMARIES = 3, NODES = 4 };
static const int first_slots[PRIMARIES + 1] = {0, 5461, 10923, 16384};

static fakeServer *cluster;
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
/* Guarded by `lock`, as the servers' thread uses them. */
static char log_text[16384]; /* "node:word word;" per request other than CLUSTER */
static int shifted; /* the real owner of a slot is this many nodes further than the map says */
static int tries_refused; /* TRYAGAIN so many times */
static bool map_fails;    /* CLUSTER is refused */
static int maps_sent;

static int ownerOf(int slot) {
    int node = 0;
    while (slot >= first_slots[node + 1]) node++;
    return node;
}

static void logRequest(const fakeRequest *q) {
    size_t len = strlen(log_text);
    len += (size_t)snprintf(log_text + len, sizeof(log_text) - len, "%d:", q->node);
    for (int i = 0; i < q->argc; i++)
        len +=
            (size_t)snprintf(log_text + len, sizeof(log_text) - len, i ? " %s" : "%s", q->argv[i]);
    snprintf(log_text + len, sizeof(log_text) - len, ";");
}

static void sendSlots(fakeRequest *q) {
    fakeSend(q, "*%d\r\n", PRIMARIES);
    for (int i = 0; i < PRIMARIES; i++) {
        /* An empty address means that of the node that was asked. */
        fakeSend(q, "*%d\r\n:%d\r\n:%d\r\n", i == 0 ? 4 : 3, first_slots[i],
                 first_slots[i + 1] - 1);
        fakeSend(q, "*4\r\n$%d\r\n%s\r\n:%d\r\n$3\r\nid%d\r\n*0\r\n", i == 1 ? 0 : 9,
                 i == 1 ? "" : "127.0.0.1", fakePort(cluster, i), i);
        if (i == 0)
            fakeSend(q, "*3\r\n$9\r\n127.0.0.1\r\n:%d\r\n$3\r\nid3\r\n", fakePort(cluster, 3));
    }
}

static void sendNodes(fakeRequest *q) {
    char text[2048];
    size_t len = 0;
    len += (size_t)sprintf(text + len, "id3 127.0.0.1:%d@1,host slave id0 0 0 1 connected\n",
                           fakePort(cluster, 3));
    for (int i = 0; i < PRIMARIES; i++)
        len += (size_t)sprintf(
            text + len, "id%d 127.0.0.1:%d@1 %smaster - 0 0 1 connected %d-%d [5-<-id1]\n", i,
            fakePort(cluster, i), i == 0 ? "myself," : "", first_slots[i], first_slots[i + 1] - 1);
    fakeSend(q, "$%zu\r\n%s\r\n", len, text);
}

/* Connections on which the last command was ASKING. */
static bool asked[256];

static void serveKey(fakeRequest *q, const char *key) {
    int slot = vkSlotOfKey(key, strlen(key)), owner = (ownerOf(slot) + shifted) % PRIMARIES;
    bool asking = asked[q->number % 256], asks = strstr(key, "ask") != NULL;
    asked[q->number % 256] = false;
    if (asks && !asking) {
        fakeSend(q, "-ASK %d 127.0.0.1:%d\r\n", slot, fakePort(cluster, (owner + 1) % PRIMARIES));
    } else if (!asks && q->node != owner) {
        fakeSend(q, "-MOVED %d 127.0.0.1:%d\r\n", slot, fakePort(cluster, owner));
    } else if (strstr(key, "again") && tries_refused > 0) {
        tries_refused--;
        fakeSend(q, "-TRYAGAIN Multiple keys request during rehashing of slot\r\n");
    } else if (fakeIs(q, 0, "SSUBSCRIBE")) {
        for (int i = 1; i < q->argc; i++)
            fakeSend(q, ">3\r\n$10\r\nssubscribe\r\n$%zu\r\n%s\r\n:%d\r\n", q->len[i], q->argv[i],
                     i);
        fakeSend(q, ">3\r\n$8\r\nsmessage\r\n$%zu\r\n%s\r\n$2\r\nhi\r\n", q->len[1], q->argv[1]);
    } else if (strstr(key, "close")) {
        fakeClose(q);
    } else {
        fakeSend(q, "$%zu\r\n%s\r\n", strlen(key), key);
    }
}

static void serve(fakeRequest *q) {
    pthread_mutex_lock(&lock);
    if (fakeIs(q, 0, "CLUSTER")) {
        maps_sent++;
        if (map_fails) {
            fakeSend(q, "-ERR This instance has cluster support disabled\r\n");
        } else if (fakeIs(q, 1, "SLOTS")) {
            sendSlots(q);
        } else {
            sendNodes(q);
        }
    } else {
        logRequest(q);
        if (fakeIs(q, 0, "ASKING")) {
            asked[q->number % 256] = true;
            fakeSend(q, "+OK\r\n");
        } else if (fakeIs(q, 0, "AUTH") || fakeIs(q, 0, "PING") || fakeIs(q, 0, "SELECT")) {
            fakeSend(q, "+OK\r\n");
        } else {
            serveKey(q, q->argv[1]);
        }
    }
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

#define LOCKED(statement) \
    do { \
        pthread_mutex_lock(&lock); \
        statement; \
        pthread_mutex_unlock(&lock); \
    } while (0)

static char seeds[128];

static int setup(void **state) {
    (void)state;
    log_text[0] = '\0';
    shifted = tries_refused = maps_sent = 0;
    map_fails = false;
    memset(asked, 0, sizeof(asked));
    cluster = fakeStart(NODES, serve, NULL);
    sprintf(seeds, "127.0.0.1:%d,127.0.0.1:%d", fakePort(cluster, 0), fakePort(cluster, 1));
    countingStart();
    return 0;
}

static int teardown(void **state) {
    (void)state;
    fakeEnd(cluster);
    return 0;
}

static valkeyClusterContext *connectSync(int options) {
    valkeyClusterOptions o = {.initial_nodes = seeds, .options = options};
    return valkeyClusterConnectWithOptions(&o);
}

static void expectReply(valkeyReply *r, const char *text) {
    assert_non_null(r);
    assert_string_equal(r->str, text);
    freeReplyObject(r);
}

/* ------------------------------------------------------------------ slots */

static int slotOf(const char *format, ...) {
    char *cmd;
    va_list ap;
    va_start(ap, format);
    int len = valkeyvFormatCommand(&cmd, format, ap);
    va_end(ap);
    int slot = vkSlotOfCommand(cmd, (size_t)len);
    valkeyFreeCommand(cmd);
    return slot;
}

static void slotsOfCommands(void **state) {
    (void)state;
    /* As CLUSTER KEYSLOT of a server replies. */
    assert_int_equal(vkSlotOfKey("foo", 3), 12182);
    assert_int_equal(vkSlotOfKey("bar", 3), 5061);
    assert_int_equal(vkSlotOfKey("{foo}x", 6), 12182);
    assert_int_equal(vkSlotOfKey("x{foo}{bar}", 11), 12182);
    assert_int_equal(vkSlotOfKey("{}foo", 5), 9500);
    assert_int_equal(vkSlotOfKey("", 0), 0);
    assert_int_equal(valkeyClusterGetSlotByKey((char *)"123456789"), 12739);
    assert_int_equal(slotOf("GET foo"), 12182);
    assert_int_equal(slotOf("get foo"), 12182);
    assert_int_equal(slotOf("MSET foo 1 {foo}2 2"), 12182);
    assert_int_equal(slotOf("EVAL %s 1 foo", "return 1"), 12182);
    assert_int_equal(slotOf("EVAL %s 0 foo", "return 1"), -1);
    assert_int_equal(slotOf("XREAD COUNT 2 STREAMS foo 0"), 12182);
    assert_int_equal(slotOf("XREADGROUP GROUP streams c STREAMS foo >"), 12182);
    assert_int_equal(slotOf("XGROUP CREATE foo g $"), 12182);
    assert_int_equal(slotOf("OBJECT ENCODING foo"), 12182);
    assert_int_equal(slotOf("ZUNION 2 foo bar"), 12182);
    assert_int_equal(slotOf("BITOP AND foo bar"), 12182);
    assert_int_equal(slotOf("SSUBSCRIBE foo"), 12182);
    assert_int_equal(slotOf("PING"), -1);
    assert_int_equal(slotOf("GET"), -1);
    assert_int_equal(slotOf("NOSUCHCOMMAND foo"), -1);
}

/* ------------------------------------------------------------------ synchronous */

static void mapsOfBothForms(void **state) {
    (void)state;
    for (int form = 0; form < 4; form++) {
        int options = (form & 1 ? VALKEY_OPT_USE_CLUSTER_NODES : 0) |
                      (form & 2 ? VALKEY_OPT_USE_REPLICAS : 0);
        valkeyClusterContext *cc = connectSync(options);
        assert_string_equal(cc->errstr, "");
        valkeyClusterNodeIterator iterator;
        valkeyClusterInitNodeIterator(&iterator, cc);
        int primaries = 0, replicas = 0;
        for (valkeyClusterNode *n; (n = valkeyClusterNodeNext(&iterator));) {
            primaries += n->role == VALKEY_ROLE_PRIMARY;
            replicas += n->role == VALKEY_ROLE_REPLICA;
            if (n->role == VALKEY_ROLE_REPLICA) assert_string_equal(n->primary->name, "id0");
        }
        assert_int_equal(primaries, 3);
        assert_int_equal(replicas, form & 2 ? 1 : 0);
        assert_string_equal(valkeyClusterGetNodeByKey(cc, (char *)"foo")->name, "id2");
        assert_string_equal(valkeyClusterGetNodeByKey(cc, (char *)"bar")->name, "id0");
        expectReply(valkeyClusterCommand(cc, "GET %s", "foo"), "foo");
        expectReply(valkeyClusterCommand(cc, "GET %s", "bar"), "bar");
        expectLog("2:GET foo;0:GET bar;");
        valkeyClusterFree(cc);
    }
}

static void redirectsAreFollowed(void **state) {
    (void)state;
    valkeyClusterContext *cc = connectSync(0);
    expectReply(valkeyClusterCommand(cc, "GET ask"), "ask"); /* slot 11694: node 2, asks node 0 */
    expectLog("2:GET ask;0:ASKING;0:GET ask;");
    LOCKED(tries_refused = 2);
    expectReply(valkeyClusterCommand(cc, "GET again"), "again");
    expectLog("2:GET again;2:GET again;2:GET again;");
    LOCKED(tries_refused = 1000);
    assert_null(valkeyClusterCommand(cc, "GET again"));
    assert_int_equal(cc->err, VALKEY_ERR_CLUSTER_TOO_MANY_RETRIES);
    LOCKED(tries_refused = 0);
    LOCKED(log_text[0] = '\0');
    /* A move that the map does not know of. */
    LOCKED(shifted = 1);
    expectReply(valkeyClusterCommand(cc, "GET foo"), "foo");
    expectLog("2:GET foo;0:GET foo;");
    expectReply(valkeyClusterCommand(cc, "GET foo"), "foo");
    expectLog("0:GET foo;");
    assert_null(valkeyClusterCommand(cc, "PING"));
    assert_string_equal(cc->errstr, "No keys in command(must have keys for valkey cluster mode)");
    expectReply(valkeyClusterCommandToNode(cc, cc->nodes, "PING"), "OK");
    valkeyClusterFree(cc);
}

static void pipelinesResendOnlyWhatWasRedirected(void **state) {
    (void)state;
    valkeyClusterContext *cc = connectSync(0);
    const char *argv[] = {"GET", "x"};
    assert_int_equal(valkeyClusterAppendCommand(cc, "GET %s", "foo"), VALKEY_OK);
    assert_int_equal(valkeyClusterAppendCommand(cc, "GET ask"), VALKEY_OK);
    assert_int_equal(valkeyClusterAppendCommand(cc, "GET bar"), VALKEY_OK);
    assert_int_equal(valkeyClusterAppendCommandArgv(cc, 2, argv, NULL), VALKEY_OK);
    assert_int_equal(valkeyClusterAppendCommand(cc, "PING"), VALKEY_ERR);
    assert_int_equal(
        valkeyClusterAppendCommandToNode(cc, valkeyClusterGetNodeByKey(cc, (char *)"foo"), "PING"),
        VALKEY_OK);
    static const char *const expected[] = {"foo", "ask", "bar", "x", "OK"};
    for (int i = 0; i < 5; i++) {
        void *r;
        assert_int_equal(valkeyClusterGetReply(cc, &r), VALKEY_OK);
        expectReply(r, expected[i]);
    }
    void *none;
    assert_int_equal(valkeyClusterGetReply(cc, &none), VALKEY_ERR);
    /* The last two are those that were redirected. */
    pthread_mutex_lock(&lock);
    const char *end = log_text + strlen(log_text) - strlen("0:ASKING;0:GET ask;");
    assert_string_equal(end, "0:ASKING;0:GET ask;");
    int gets = 0;
    for (const char *p = log_text; (p = strstr(p, "GET")); p++) gets++;
    pthread_mutex_unlock(&lock);
    assert_int_equal(gets, 5);
    /* What is dropped does not disturb what follows. */
    assert_int_equal(valkeyClusterAppendCommand(cc, "GET foo"), VALKEY_OK);
    assert_int_equal(valkeyClusterAppendCommand(cc, "GET bar"), VALKEY_OK);
    assert_int_equal(valkeyClusterGetReply(cc, &none), VALKEY_OK);
    freeReplyObject(none);
    valkeyClusterReset(cc);
    expectReply(valkeyClusterCommand(cc, "GET bar"), "bar");
    valkeyClusterFree(cc);
}

static void failuresAreReportedAndRecovered(void **state) {
    (void)state;
    valkeyClusterContext *cc = connectSync(0);
    assert_null(valkeyClusterCommand(cc, "GET close"));
    assert_int_equal(cc->err, VALKEY_ERR_EOF);
    expectReply(valkeyClusterCommand(cc, "GET foo"), "foo");
    assert_int_equal(cc->err, 0);
    assert_int_equal(valkeyClusterSetOptionTimeout(cc, (struct timeval){.tv_sec = 5}), VALKEY_OK);
    valkeyClusterFree(cc);
    LOCKED(map_fails = true);
    cc = connectSync(0);
    assert_string_equal(cc->errstr, "ERR This instance has cluster support disabled");
    assert_null(valkeyClusterCommand(cc, "GET foo"));
    LOCKED(map_fails = false);
    expectReply(valkeyClusterCommand(cc, "GET foo"), "foo");
    valkeyClusterFree(cc);
    cc = valkeyClusterConnect("nonsense");
    assert_string_equal(cc->errstr, "Server address is incorrect, use host:port");
    valkeyClusterFree(cc);
    cc = valkeyClusterConnectWithTimeout("127.0.0.1:1", (struct timeval){.tv_sec = 1});
    assert_int_equal(cc->err, VALKEY_ERR_IO);
    valkeyClusterFree(cc);
}

static void loginOnEachConnection(void **state) {
    (void)state;
    valkeyClusterOptions o = {
        .initial_nodes = seeds, .username = "u", .password = "p", .select_db = 2};
    valkeyClusterContext *cc = valkeyClusterConnectWithOptions(&o);
    expectReply(valkeyClusterCommand(cc, "GET foo"), "foo");
    expectLog("0:AUTH u p;0:SELECT 2;2:AUTH u p;2:SELECT 2;2:GET foo;");
    valkeyClusterFree(cc);
}

static void memoryExhaustedIsAnErrorSync(void **state) {
    (void)state;
    for (int all = 0; all < 2; all++) {
        for (long n = 0;; n++) {
            LOCKED(shifted = (int)(n & 1));
            countingFailAt(n, all);
            valkeyClusterContext *cc =
                connectSync(n & 2 ? VALKEY_OPT_USE_CLUSTER_NODES : VALKEY_OPT_USE_REPLICAS);
            bool ok = cc && cc->err == 0;
            if (cc) {
                valkeyReply *r = valkeyClusterCommand(cc, "GET foo");
                ok = ok && r;
                assert_true(r || cc->err);
                freeReplyObject(r);
                r = valkeyClusterCommand(cc, "GET ask");
                ok = ok && r;
                freeReplyObject(r);
                int queued = 0;
                queued += valkeyClusterAppendCommand(cc, "GET foo") == VALKEY_OK;
                queued += valkeyClusterAppendCommand(cc, "GET bar") == VALKEY_OK;
                ok = ok && queued == 2;
                while (queued-- > 0) {
                    void *reply;
                    ok = valkeyClusterGetReply(cc, &reply) == VALKEY_OK && ok;
                    freeReplyObject(reply);
                }
                valkeyClusterFree(cc);
            }
            bool failed = countingHasFailed();
            assert_int_equal(countingBlocks(), 0);
            if (!failed) {
                assert_true(ok);
                break;
            }
        }
    }
    countingFailAt(-1, false);
}

/* ------------------------------------------------------------------ asynchronous */

static char transcript[4096];
static int ready, freed;

static void onEvent(const valkeyClusterContext *cc, int event, void *privdata) {
    (void)cc;
    assert_string_equal(privdata, "events");
    ready += event == VALKEYCLUSTER_EVENT_READY;
    freed += event == VALKEYCLUSTER_EVENT_FREE_CONTEXT;
}

static void onReply(valkeyClusterAsyncContext *acc, void *reply, void *privdata) {
    (void)acc;
    const valkeyReply *r = reply;
    size_t len = strlen(transcript);
    const char *text = !r ? "NULL" : r->str ? r->str : r->element[0]->str;
    snprintf(transcript + len, sizeof(transcript) - len, "%s=%s ", (char *)privdata, text);
}

static void onReplyThenFree(valkeyClusterAsyncContext *acc, void *reply, void *privdata) {
    onReply(acc, reply, privdata);
    valkeyClusterAsyncFree(acc);
}

static int attach(valkeyAsyncContext *ac, void *data) {
    (void)data;
    return valkeyPollAttach(ac);
}

static valkeyClusterAsyncContext *connectAsync(int options) {
    valkeyClusterOptions o = {.initial_nodes = seeds,
                              .options = options,
                              .attach_fn = attach,
                              .event_callback = onEvent,
                              .event_privdata = (void *)"events"};
    transcript[0] = '\0';
    ready = freed = 0;
    return valkeyClusterAsyncConnectWithOptions(&o);
}

/* Handles what is ready on all connections, waiting up to 10 ms. */
static void turn(valkeyClusterAsyncContext *acc) {
    valkeyClusterNodeIterator iterator;
    valkeyClusterInitNodeIterator(&iterator, &acc->cc);
    for (valkeyClusterNode *n; !freed && (n = valkeyClusterNodeNext(&iterator));) {
        if (n->acon) valkeyPollTick(n->acon, 0.003);
    }
}

static void runUntil(valkeyClusterAsyncContext *acc, const char *expected) {
    for (int i = 0; i < 1000 && !freed && strlen(transcript) < strlen(expected); i++) turn(acc);
    assert_string_equal(transcript, expected);
}

#define COMMAND(acc, name, ...) \
    assert_int_equal(valkeyClusterAsyncCommand(acc, onReply, (void *)(name), __VA_ARGS__), \
                     VALKEY_OK)

static void asynchronousCommandsFollowRedirects(void **state) {
    (void)state;
    valkeyClusterAsyncContext *acc = connectAsync(0);
    assert_int_equal(valkeyClusterAsyncCommand(acc, onReply, NULL, "GET foo"), VALKEY_ERR);
    assert_string_equal(acc->errstr, "slotmap not available");
    for (int i = 0; i < 1000 && !ready; i++) turn(acc);
    assert_int_equal(ready, 1);
    COMMAND(acc, "1", "GET foo");
    runUntil(acc, "1=foo ");
    COMMAND(acc, "2", "GET ask");
    runUntil(acc, "1=foo 2=ask ");
    expectLog("2:GET foo;2:GET ask;0:ASKING;0:GET ask;");
    LOCKED(shifted = 1);
    LOCKED(tries_refused = 2);
    transcript[0] = '\0';
    COMMAND(acc, "3", "GET again");
    runUntil(acc, "3=again ");
    expectLog("2:GET again;0:GET again;0:GET again;0:GET again;");
    assert_int_equal(valkeyClusterAsyncCommand(acc, onReply, NULL, "PING"), VALKEY_ERR);
    assert_int_equal(
        valkeyClusterAsyncCommandToNode(acc, acc->cc.nodes, onReply, (void *)"4", "PING"),
        VALKEY_OK);
    runUntil(acc, "3=again 4=OK ");
    valkeyClusterAsyncDisconnect(acc);
    assert_int_equal(valkeyClusterAsyncCommand(acc, onReply, NULL, "GET foo"), VALKEY_ERR);
    valkeyClusterAsyncFree(acc);
}

static void shardedSubscriptionsAreRedirected(void **state) {
    (void)state;
    valkeyClusterAsyncContext *acc = connectAsync(VALKEY_OPT_BLOCKING_INITIAL_UPDATE);
    assert_int_equal(ready, 1);
    COMMAND(acc, "s", "SSUBSCRIBE {ask}1 {ask}2");
    runUntil(acc, "s=ssubscribe s=ssubscribe s=smessage ");
    expectLog("2:SSUBSCRIBE {ask}1 {ask}2;0:ASKING;0:SSUBSCRIBE {ask}1 {ask}2;");
    transcript[0] = '\0';
    LOCKED(shifted = 1);
    COMMAND(acc, "m", "SSUBSCRIBE foo");
    runUntil(acc, "m=ssubscribe m=smessage ");
    expectLog("2:SSUBSCRIBE foo;0:SSUBSCRIBE foo;");
    transcript[0] = '\0';
    valkeyClusterAsyncFree(acc);
    assert_int_equal(strlen(transcript), strlen("s=NULL s=NULL m=NULL "));
}

static void callbacksMayFreeTheContext(void **state) {
    (void)state;
    valkeyClusterAsyncContext *acc = connectAsync(VALKEY_OPT_BLOCKING_INITIAL_UPDATE);
    assert_int_equal(valkeyClusterAsyncCommand(acc, onReplyThenFree, (void *)"1", "GET foo"),
                     VALKEY_OK);
    COMMAND(acc, "2", "GET foo");
    COMMAND(acc, "3", "GET bar");
    for (int i = 0; i < 1000 && !freed; i++) turn(acc);
    assert_int_equal(freed, 1);
    assert_non_null(strstr(transcript, "1=foo "));
    assert_non_null(strstr(transcript, "2=NULL "));
}

static void lostConnectionsAreReported(void **state) {
    (void)state;
    valkeyClusterAsyncContext *acc = connectAsync(VALKEY_OPT_BLOCKING_INITIAL_UPDATE);
    COMMAND(acc, "1", "GET close");
    runUntil(acc, "1=NULL ");
    assert_int_equal(acc->err, VALKEY_ERR_EOF);
    COMMAND(acc, "2", "GET {close}");
    runUntil(acc, "1=NULL 2=NULL ");
    COMMAND(acc, "3", "GET foo");
    runUntil(acc, "1=NULL 2=NULL 3=foo ");
    valkeyClusterAsyncFree(acc);
}

static void memoryExhaustedIsAnErrorAsync(void **state) {
    (void)state;
    for (int all = 0; all < 2; all++) {
        for (long n = 0;; n++) {
            LOCKED(shifted = (int)(n & 1));
            countingFailAt(n, all);
            valkeyClusterAsyncContext *acc =
                connectAsync(n & 2 ? VALKEY_OPT_BLOCKING_INITIAL_UPDATE : 0);
            if (acc) {
                for (int i = 0; i < 20 && !ready && !countingHasFailed(); i++) turn(acc);
                size_t expected = 0;
                static const char *const commands[] = {"GET foo", "GET ask",
                                                       "SSUBSCRIBE {ask}1 {ask}2", "GET bar"};
                for (int i = 0; i < 4; i++) {
                    bool queued = valkeyClusterAsyncCommand(acc, onReply, (void *)"r",
                                                            commands[i]) == VALKEY_OK;
                    assert_true(queued || acc->err);
                    expected += queued && i != 2;
                }
                /* Each has a reply, or NULL. */
                size_t replies = 0;
                for (int i = 0; i < 1000 && replies < expected; i++) {
                    turn(acc);
                    replies = 0;
                    for (const char *p = transcript; (p = strstr(p, "r=")); p++) replies++;
                }
                assert_true(replies >= expected);
                valkeyClusterAsyncFree(acc);
            }
            bool failed = countingHasFailed();
            assert_int_equal(countingBlocks(), 0);
            if (!failed) break;
        }
    }
    countingFailAt(-1, false);
}

int test_cluster(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(slotsOfCommands),
        cmocka_unit_test_setup_teardown(mapsOfBothForms, setup, teardown),
        cmocka_unit_test_setup_teardown(redirectsAreFollowed, setup, teardown),
        cmocka_unit_test_setup_teardown(pipelinesResendOnlyWhatWasRedirected, setup, teardown),
        cmocka_unit_test_setup_teardown(failuresAreReportedAndRecovered, setup, teardown),
        cmocka_unit_test_setup_teardown(loginOnEachConnection, setup, teardown),
        cmocka_unit_test_setup_teardown(memoryExhaustedIsAnErrorSync, setup, teardown),
        cmocka_unit_test_setup_teardown(asynchronousCommandsFollowRedirects, setup, teardown),
        cmocka_unit_test_setup_teardown(shardedSubscriptionsAreRedirected, setup, teardown),
        cmocka_unit_test_setup_teardown(callbacksMayFreeTheContext, setup, teardown),
        cmocka_unit_test_setup_teardown(lostConnectionsAreReported, setup, teardown),
        cmocka_unit_test_setup_teardown(memoryExhaustedIsAnErrorAsync, setup, teardown),
    };
    return cmocka_run_group_tests_name("cluster", tests, NULL, NULL);
}
