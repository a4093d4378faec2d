/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Asynchronous contexts: replies, subscriptions in both protocols, MONITOR, disconnecting, time
 * limits, and memory that is exhausted at any point. */
#include <sys/socket.h>
#include <unistd.h>

#include <valkey/adapters/poll.h>

#include "client_test.h"
#include "clientlib/adapter_loop.h"

/* ------------------------------------------------------------------ a server with subscriptions */

/* The confirmation of one (un)subscription. */
static void confirm(fakeRequest *q, const char *word, const char *name, int count) {
    fakeSend(q, "%c3\r\n$%zu\r\n%s\r\n", *(bool *)q->arg ? '>' : '*', strlen(word), word);
    if (name) {
        fakeSend(q, "$%zu\r\n%s\r\n:%d\r\n", strlen(name), name, count);
    } else {
        fakeSend(q, "$-1\r\n:%d\r\n", count);
    }
}

static void message(fakeRequest *q, const char *word, const char *channel, const char *text) {
    fakeSend(q, "%c3\r\n$%zu\r\n%s\r\n$%zu\r\n%s\r\n$%zu\r\n%s\r\n", *(bool *)q->arg ? '>' : '*',
             strlen(word), word, strlen(channel), channel, strlen(text), text);
}

/* `arg` is whether the protocol is RESP3. */
static void serve(fakeRequest *q) {
    if (fakeIs(q, 0, "PING")) {
        fakeSend(q, "+PONG\r\n");
    } else if (fakeIs(q, 0, "ECHO")) {
        fakeSend(q, "$%zu\r\n%s\r\n", q->len[1], q->argv[1]);
    } else if (fakeIs(q, 0, "LIKEMESSAGE")) {
        fakeSend(q, "*3\r\n$7\r\nmessage\r\n$1\r\na\r\n$1\r\nb\r\n");
    } else if (fakeIs(q, 0, "SUBSCRIBE") || fakeIs(q, 0, "PSUBSCRIBE") ||
               fakeIs(q, 0, "SSUBSCRIBE")) {
        if (fakeIs(q, 1, "forbidden")) {
            fakeSend(q, "-NOPERM no\r\n");
            return;
        }
        const char *word = fakeIs(q, 0, "SUBSCRIBE")    ? "subscribe"
                           : fakeIs(q, 0, "PSUBSCRIBE") ? "psubscribe"
                                                        : "ssubscribe";
        for (int i = 1; i < q->argc; i++) confirm(q, word, q->argv[i], i);
        message(q, fakeIs(q, 0, "SSUBSCRIBE") ? "smessage" : "message", q->argv[1], "hello");
    } else if (fakeIs(q, 0, "UNSUBSCRIBE") || fakeIs(q, 0, "PUNSUBSCRIBE") ||
               fakeIs(q, 0, "SUNSUBSCRIBE")) {
        const char *word = fakeIs(q, 0, "UNSUBSCRIBE")    ? "unsubscribe"
                           : fakeIs(q, 0, "PUNSUBSCRIBE") ? "punsubscribe"
                                                          : "sunsubscribe";
        for (int i = 1; i < q->argc; i++) confirm(q, word, q->argv[i], 0);
        if (q->argc == 1) confirm(q, word, NULL, 0);
    } else if (fakeIs(q, 0, "MOVESLOT")) {
        confirm(q, "sunsubscribe", "shard", 0);
        fakeSend(q, "+OK\r\n");
    } else if (fakeIs(q, 0, "TRACKED")) {
        fakeSend(q, ">2\r\n$10\r\ninvalidate\r\n*1\r\n$1\r\nk\r\n+OK\r\n");
    } else if (fakeIs(q, 0, "MONITOR")) {
        fakeSend(q, "+OK\r\n+1700000000.123456 [0 127.0.0.1:1] \"PING\"\r\n");
    } else if (fakeIs(q, 0, "CLOSE")) {
        fakeClose(q);
    } else if (!fakeIs(q, 0, "SILENT")) {
        fakeSend(q, "-ERR unknown\r\n");
    }
}

/* ----------------------------------------------------------- a transcript of what callbacks got */

static char transcript[8192];
static bool connected, disconnected, gone;
static int status_connect, status_disconnect;

static void note(const char *format, ...) {
    size_t len = strlen(transcript);
    va_list ap;
    va_start(ap, format);
    vsnprintf(transcript + len, sizeof(transcript) - len, format, ap);
    va_end(ap);
}

static void noteReply(const valkeyReply *r) {
    if (r->type == VALKEY_REPLY_INTEGER) {
        note("%lld", r->integer);
    } else if (r->str) {
        note("%s", r->str);
    } else if (r->type == VALKEY_REPLY_NIL) {
        note("nil");
    }
    for (size_t i = 0; i < r->elements; i++) {
        if (i) note(",");
        noteReply(r->element[i]);
    }
}

static void onReply(valkeyAsyncContext *ac, void *reply, void *privdata) {
    (void)ac;
    note("%s=", privdata ? (char *)privdata : "");
    if (reply) {
        noteReply(reply);
    } else {
        note("NULL");
    }
    note(" ");
}

static void onReplyThenDisconnect(valkeyAsyncContext *ac, void *reply, void *privdata) {
    onReply(ac, reply, privdata);
    valkeyAsyncDisconnect(ac);
}

static void onReplyThenFree(valkeyAsyncContext *ac, void *reply, void *privdata) {
    onReply(ac, reply, privdata);
    valkeyAsyncFree(ac);
}

static void onPush(valkeyAsyncContext *ac, void *reply) { onReply(ac, reply, (void *)"push"); }
static void onConnect(valkeyAsyncContext *ac, int status) {
    (void)ac;
    connected = true;
    status_connect = status;
}
static void onDisconnect(const valkeyAsyncContext *ac, int status) {
    (void)ac;
    disconnected = true;
    status_disconnect = status;
}
static void onCleanup(void *data) {
    (void)data;
    gone = true;
}

static bool protocol3;

static int setup(void **state) {
    protocol3 = false;
    transcript[0] = '\0';
    connected = disconnected = gone = false;
    *state = fakeStart(1, serve, &protocol3);
    countingStart();
    return 0;
}

static valkeyAsyncContext *connectAsync(fakeServer *s, int options) {
    valkeyOptions o = {.options = options};
    VALKEY_OPTIONS_SET_TCP(&o, "127.0.0.1", fakePort(s, 0));
    valkeyAsyncContext *ac = valkeyAsyncConnectWithOptions(&o);
    if (!ac) return NULL;
    if (ac->err && countingHasFailed()) {
        valkeyAsyncFree(ac);
        return NULL;
    }
    ac->dataCleanup = onCleanup;
    if (valkeyPollAttach(ac) != VALKEY_OK) {
        valkeyAsyncFree(ac);
        return NULL;
    }
    valkeyAsyncSetConnectCallback(ac, onConnect);
    valkeyAsyncSetDisconnectCallback(ac, onDisconnect);
    return ac;
}

/* Runs until the transcript is complete, or the context is freed. */
static void runUntil(valkeyAsyncContext *ac, const char *expected) {
    for (int i = 0; i < 1000 && !gone && strlen(transcript) < strlen(expected); i++)
        valkeyPollTick(ac, 0.01);
    assert_string_equal(transcript, expected);
}

static void runUntilGone(valkeyAsyncContext *ac) {
    for (int i = 0; i < 1000 && !gone; i++) valkeyPollTick(ac, 0.01);
    assert_true(gone);
}

#define COMMAND(ac, name, ...) \
    assert_int_equal(valkeyAsyncCommand(ac, onReply, (void *)(name), __VA_ARGS__), VALKEY_OK)

/* ------------------------------------------------------------------ tests */

static void repliesComeInOrder(void **state) {
    valkeyAsyncContext *ac = connectAsync(*state, 0);
    COMMAND(ac, "1", "PING");
    assert_int_equal(valkeyAsyncCommand(ac, NULL, NULL, "PING"), VALKEY_OK);
    COMMAND(ac, "2", "ECHO %s", "two");
    const char *argv[] = {"ECHO", "three"};
    assert_int_equal(valkeyAsyncCommandArgv(ac, onReply, (void *)"3", 2, argv, NULL), VALKEY_OK);
    COMMAND(ac, "4", "NOPE");
    assert_int_equal(valkeyAsyncCommand(ac, onReply, NULL, "%y"), VALKEY_ERR);
    runUntil(ac, "1=PONG 2=two 3=three 4=ERR unknown ");
    assert_true(connected);
    assert_int_equal(status_connect, VALKEY_OK);
    COMMAND(ac, "5", "PING");
    valkeyAsyncDisconnect(ac);
    assert_int_equal(valkeyAsyncCommand(ac, onReply, NULL, "PING"), VALKEY_ERR);
    runUntilGone(ac);
    assert_string_equal(transcript, "1=PONG 2=two 3=three 4=ERR unknown 5=PONG ");
    assert_true(disconnected);
    assert_int_equal(status_disconnect, VALKEY_OK);
}

static void subscriptionsOfBothProtocols(void **state) {
    for (int resp3 = 0; resp3 < 2; resp3++) {
        protocol3 = resp3;
        transcript[0] = '\0';
        gone = false;
        valkeyAsyncContext *ac = connectAsync(*state, 0);
        /* A reply that looks like a message, before the first subscription. */
        COMMAND(ac, "r", "LIKEMESSAGE");
        COMMAND(ac, "c", "SUBSCRIBE a b");
        COMMAND(ac, "p", "PSUBSCRIBE x*");
        COMMAND(ac, "s", "SSUBSCRIBE shard");
        COMMAND(ac, "x", "PING");
        const char *first =
            "r=message,a,b c=subscribe,a,1 c=subscribe,b,2 c=message,a,hello p=psubscribe,x*,1 "
            "s=ssubscribe,shard,1 s=smessage,shard,hello x=PONG ";
        runUntil(ac, first);
        assert_true(ac->c.flags & VALKEY_SUBSCRIBED);
        transcript[0] = '\0';
        COMMAND(ac, NULL, "UNSUBSCRIBE a b");
        COMMAND(ac, NULL, "PUNSUBSCRIBE x*");
        COMMAND(ac, "y", "MOVESLOT");
        COMMAND(ac, "z", "LIKEMESSAGE");
        runUntil(
            ac,
            "c=unsubscribe,a,0 c=unsubscribe,b,0 p=punsubscribe,x*,0 s=sunsubscribe,shard,0 y=OK z=message,a,b ");
        assert_false(ac->c.flags & VALKEY_SUBSCRIBED);
        /* Again, now without a subscription to end. */
        transcript[0] = '\0';
        COMMAND(ac, NULL, "UNSUBSCRIBE");
        COMMAND(ac, "w", "PING");
        runUntil(ac, "w=PONG ");
        valkeyAsyncFree(ac);
    }
}

static void refusedSubscriptionsGetTheError(void **state) {
    valkeyAsyncContext *ac = connectAsync(*state, 0);
    COMMAND(ac, "a", "SUBSCRIBE forbidden other");
    COMMAND(ac, "b", "PING");
    runUntil(ac, "a=NOPERM no a=NOPERM no b=PONG ");
    assert_false(ac->c.flags & VALKEY_SUBSCRIBED);
    transcript[0] = '\0';
    valkeyAsyncFree(ac);
    assert_string_equal(transcript, "");
}

static void pushesGoToTheirCallback(void **state) {
    protocol3 = true;
    valkeyAsyncContext *ac = connectAsync(*state, 0);
    assert_null(valkeyAsyncSetPushCallback(ac, onPush));
    COMMAND(ac, "a", "TRACKED");
    runUntil(ac, "push=invalidate,k a=OK ");
    assert_true(valkeyAsyncSetPushCallback(ac, NULL) == onPush);
    COMMAND(ac, "b", "TRACKED");
    runUntil(ac, "push=invalidate,k a=OK b=OK ");
    valkeyAsyncFree(ac);
}

static void monitorGetsItsLines(void **state) {
    valkeyAsyncContext *ac = connectAsync(*state, 0);
    COMMAND(ac, "m", "MONITOR");
    COMMAND(ac, "p", "PING");
    runUntil(ac, "m=OK m=1700000000.123456 [0 127.0.0.1:1] \"PING\" p=PONG ");
    transcript[0] = '\0';
    valkeyAsyncFree(ac);
    assert_string_equal(transcript, "m=NULL ");
}

static void callbacksMayDisconnectAndFree(void **state) {
    valkeyAsyncContext *ac = connectAsync(*state, 0);
    assert_int_equal(valkeyAsyncCommand(ac, onReplyThenDisconnect, (void *)"1", "PING"), VALKEY_OK);
    COMMAND(ac, "2", "PING");
    runUntilGone(ac);
    assert_string_equal(transcript, "1=PONG 2=PONG ");
    gone = false;
    transcript[0] = '\0';
    ac = connectAsync(*state, 0);
    assert_int_equal(valkeyAsyncCommand(ac, onReplyThenFree, (void *)"1", "PING"), VALKEY_OK);
    COMMAND(ac, "2", "PING");
    runUntilGone(ac);
    assert_string_equal(transcript, "1=PONG 2=NULL ");
}

static void lostConnectionsCallEverything(void **state) {
    valkeyAsyncContext *ac = connectAsync(*state, 0);
    COMMAND(ac, "s", "SUBSCRIBE a");
    runUntil(ac, "s=subscribe,a,1 s=message,a,hello ");
    transcript[0] = '\0';
    COMMAND(ac, "1", "CLOSE");
    COMMAND(ac, "2", "PING");
    runUntilGone(ac);
    assert_string_equal(transcript, "1=NULL 2=NULL s=NULL ");
    assert_int_equal(status_disconnect, VALKEY_ERR);

    /* With NOAUTOFREE the context remains, with the cause. */
    gone = disconnected = false;
    ac = connectAsync(*state, VALKEY_OPT_NOAUTOFREE);
    COMMAND(ac, "1", "CLOSE");
    for (int i = 0; i < 1000 && ac->err == 0; i++) valkeyPollTick(ac, 0.01);
    assert_int_equal(ac->err, VALKEY_ERR_EOF);
    assert_false(gone);
    valkeyAsyncFree(ac);
    assert_true(gone);
    assert_true(disconnected);
}

static void keptReply(valkeyAsyncContext *ac, void *reply, void *privdata) {
    (void)ac;
    *(valkeyReply **)privdata = reply;
}

static void repliesMayBeKept(void **state) {
    valkeyAsyncContext *ac = connectAsync(*state, VALKEY_OPT_NOAUTOFREEREPLIES);
    valkeyReply *kept = NULL;
    assert_int_equal(valkeyAsyncCommand(ac, keptReply, &kept, "PING"), VALKEY_OK);
    for (int i = 0; i < 1000 && !kept; i++) valkeyPollTick(ac, 0.01);
    valkeyAsyncFree(ac);
    assert_string_equal(kept->str, "PONG");
    freeReplyObject(kept);
}

static void connectionsThatFailSayWhy(void **state) {
    (void)state;
    valkeyAsyncContext *ac = valkeyAsyncConnect("127.0.0.1", 1);
    ac->dataCleanup = onCleanup;
    assert_int_equal(valkeyPollAttach(ac), VALKEY_OK);
    assert_int_equal(valkeyPollAttach(ac), VALKEY_ERR);
    valkeyAsyncSetConnectCallback(ac, onConnect);
    assert_int_equal(valkeyAsyncSetConnectCallback(ac, onConnect), VALKEY_ERR);
    runUntilGone(ac);
    assert_true(connected);
    assert_int_equal(status_connect, VALKEY_ERR);
    ac = valkeyAsyncConnectUnix("/nonexistent/socket");
    assert_int_equal(ac->err, VALKEY_ERR_IO);
    valkeyAsyncFree(ac);
}

static void silenceIsLimitedInTime(void **state) {
    valkeyAsyncContext *ac = connectAsync(*state, 0);
    assert_int_equal(valkeyAsyncSetTimeout(ac, (struct timeval){.tv_usec = 20000}), VALKEY_OK);
    COMMAND(ac, "1", "PING");
    COMMAND(ac, "2", "SILENT");
    runUntilGone(ac);
    assert_string_equal(transcript, "1=PONG 2=NULL ");
    assert_int_equal(status_disconnect, VALKEY_ERR);
}

static void ourLoopIsAnAdapter(void **state) {
    loop *l = loopNew(NULL, NULL);
    valkeyAsyncContext *ac = valkeyAsyncConnect("127.0.0.1", fakePort(*state, 0));
    ac->dataCleanup = onCleanup;
    assert_int_equal(valkeyLoopAttach(ac, l), VALKEY_OK);
    assert_int_equal(valkeyAsyncSetTimeout(ac, (struct timeval){.tv_sec = 10}), VALKEY_OK);
    COMMAND(ac, "1", "PING");
    COMMAND(ac, "2", "ECHO x");
    valkeyAsyncDisconnect(ac);
    for (int i = 0; i < 1000 && !gone; i++) loopTurn(l, true);
    assert_string_equal(transcript, "1=PONG 2=x ");
    loopFree(l);
}

static ssize_t writeNothing(valkeyContext *c) {
    (void)c;
    return 0;
}
static int writeWaits(valkeyContext *c) {
    (void)c;
    return 1;
}

/* A handshake that waits for the server must not keep the loop busy with a writable socket. */
static void writesThatWaitForAReadAreNotWatched(void **state) {
    valkeyAsyncContext *ac = connectAsync(*state, 0);
    COMMAND(ac, "1", "PING");
    runUntil(ac, "1=PONG ");
    valkeyContextFuncs funcs = *ac->c.funcs;
    const valkeyContextFuncs *own = ac->c.funcs;
    funcs.write = writeNothing;
    funcs.write_waits = writeWaits;
    ac->c.funcs = &funcs;
    COMMAND(ac, "2", "PING");
    assert_int_equal(valkeyPollTick(ac, 10), VALKEY_POLL_HANDLED_WRITE);
    assert_false(((valkeyPollEvents *)ac->ev.data)->writing);
    ac->c.funcs = own;
    ac->ev.addWrite(ac->ev.data);
    runUntil(ac, "1=PONG 2=PONG ");
    valkeyAsyncFree(ac);
}

static void memoryExhaustedAtAnyPointIsAnError(void **state) {
    for (int all = 0; all < 2; all++) {
        for (long n = 0;; n++) {
            transcript[0] = '\0';
            gone = false;
            protocol3 = n % 2;
            countingFailAt(n, all);
            valkeyAsyncContext *ac = connectAsync(*state, 0);
            if (ac) {
                int queued = 0;
                queued += valkeyAsyncCommand(ac, onReply, NULL, "ECHO %s", "text") == VALKEY_OK;
                queued += valkeyAsyncCommand(ac, onReply, NULL, "SUBSCRIBE a b c d e f g h i") ==
                          VALKEY_OK;
                queued += valkeyAsyncCommand(ac, onReply, NULL, "UNSUBSCRIBE a b c d e f g h i") ==
                          VALKEY_OK;
                queued += valkeyAsyncCommand(ac, onReply, NULL, "MONITOR") == VALKEY_OK;
                valkeyAsyncSetTimeout(ac, (struct timeval){.tv_sec = 10});
                valkeyAsyncDisconnect(ac);
                for (int i = 0; i < 1000 && !gone && queued; i++) valkeyPollTick(ac, 0.01);
                assert_true(gone);
            }
            bool failed = countingHasFailed();
            assert_int_equal(countingBlocks(), 0);
            if (!failed) break;
        }
    }
    countingFailAt(-1, false);
}

int test_async(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(repliesComeInOrder, setup, fakeTeardown),
        cmocka_unit_test_setup_teardown(subscriptionsOfBothProtocols, setup, fakeTeardown),
        cmocka_unit_test_setup_teardown(refusedSubscriptionsGetTheError, setup, fakeTeardown),
        cmocka_unit_test_setup_teardown(pushesGoToTheirCallback, setup, fakeTeardown),
        cmocka_unit_test_setup_teardown(monitorGetsItsLines, setup, fakeTeardown),
        cmocka_unit_test_setup_teardown(callbacksMayDisconnectAndFree, setup, fakeTeardown),
        cmocka_unit_test_setup_teardown(lostConnectionsCallEverything, setup, fakeTeardown),
        cmocka_unit_test_setup_teardown(repliesMayBeKept, setup, fakeTeardown),
        cmocka_unit_test_setup_teardown(connectionsThatFailSayWhy, setup, fakeTeardown),
        cmocka_unit_test_setup_teardown(silenceIsLimitedInTime, setup, fakeTeardown),
        cmocka_unit_test_setup_teardown(ourLoopIsAnAdapter, setup, fakeTeardown),
        cmocka_unit_test_setup_teardown(writesThatWaitForAReadAreNotWatched, setup, fakeTeardown),
        cmocka_unit_test_setup_teardown(memoryExhaustedAtAnyPointIsAnError, setup, fakeTeardown),
    };
    return cmocka_run_group_tests_name("async", tests, NULL, NULL);
}
