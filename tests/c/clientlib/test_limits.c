/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Time limits of contexts, with a clock that the tests move: connecting, silence of the server, and
 * what is no sign of life. */
#include <sys/socket.h>

#include "client_test.h"
#include "clientlib/client_priv.h"

enum { SECOND = 1000000 };

/* ------------------------------------------------------------------ server and callbacks */

static void serve(fakeRequest *q) {
    if (fakeIs(q, 0, "PING")) {
        fakeSend(q, "+PONG\r\n");
    } else if (fakeIs(q, 0, "BEGIN")) {
        fakeSend(q, "$6\r\nab");
    } else if (fakeIs(q, 0, "MORE")) {
        fakeSend(q, "cd");
    } else if (fakeIs(q, 0, "END")) {
        fakeSend(q, "ef\r\n+1\r\n+2\r\n");
    } else if (fakeIs(q, 0, "RELEASE")) {
        fakeSend(q, "+released\r\n+OK\r\n");
    } /* HANG: no reply */
}

static char transcript[1024];
static int connect_status, connect_error;
static bool gone;

static void onReply(valkeyAsyncContext *ac, void *reply, void *privdata) {
    (void)ac;
    (void)privdata;
    const valkeyReply *r = reply;
    strcat(strcat(transcript, r ? r->str : "NULL"), " ");
}
static void onConnect(valkeyAsyncContext *ac, int status) {
    connect_status = status;
    connect_error = ac->err;
}
static void onCleanup(void *data) {
    (void)data;
    gone = true;
}

static int setup(void **state) {
    simStart();
    transcript[0] = '\0';
    gone = false;
    connect_status = -2;
    *state = fakeStart(1, serve, NULL);
    countingStart();
    return 0;
}

static int teardown(void **state) {
    fakeEnd(*state);
    simStop();
    return 0;
}

static const struct timeval none = {0};

static valkeyAsyncContext *begin(fakeServer *s, const struct timeval *connecting,
                                 const struct timeval *command) {
    valkeyOptions o = {.connect_timeout = connecting, .command_timeout = command};
    VALKEY_OPTIONS_SET_TCP(&o, "127.0.0.1", fakePort(s, 0));
    valkeyAsyncContext *ac = valkeyAsyncConnectWithOptions(&o);
    assert_non_null(ac);
    ac->dataCleanup = onCleanup;
    simAttach(ac, NULL);
    valkeyAsyncSetConnectCallback(ac, onConnect);
    return ac;
}

static valkeyAsyncContext *connected(fakeServer *s, const struct timeval *connecting,
                                     const struct timeval *command) {
    valkeyAsyncContext *ac = begin(s, connecting, command);
    for (int i = 0; i < 1000 && connect_status != VALKEY_OK; i++) simTurn(10);
    assert_int_equal(connect_status, VALKEY_OK);
    return ac;
}

static void command(valkeyAsyncContext *ac, const char *command) {
    assert_int_equal(valkeyAsyncCommand(ac, onReply, NULL, command), VALKEY_OK);
}

static void expect(const char *text) {
    for (int i = 0; i < 1000 && strlen(transcript) < strlen(text); i++) simTurn(10);
    assert_string_equal(transcript, text);
    transcript[0] = '\0';
}

/* ------------------------------------------------------------------ tests */

static void connectLimitDoesNotEndAWaitingCommand(void **state) {
    struct timeval limit = {.tv_usec = 300000};
    valkeyAsyncContext *ac = begin(*state, &limit, NULL);
    command(ac, "HANG");
    assert_int_equal(simTimers(), 1);
    for (int i = 0; i < 1000 && connect_status != VALKEY_OK; i++) simTurn(10);
    simPass(3600LL * SECOND);
    assert_false(gone);
    command(ac, "RELEASE");
    expect("released OK ");
    /* A limit for commands that is longer than the one for connecting. */
    assert_int_equal(valkeyAsyncSetTimeout(ac, (struct timeval){.tv_sec = 5}), VALKEY_OK);
    command(ac, "HANG");
    simTurn(10);
    simPass(5LL * SECOND - 1);
    assert_false(gone);
    simPass(1);
    assert_true(gone);
    expect("NULL ");
}

static void connectLimitAppliesWithoutCommands(void **state) {
    struct timeval limit = {.tv_sec = 2};
    begin(*state, &limit, NULL);
    /* The event loop reports nothing. */
    simPass(2LL * SECOND - 1);
    assert_int_equal(connect_status, -2);
    simPass(1);
    assert_int_equal(connect_status, VALKEY_ERR);
    assert_int_equal(connect_error, VALKEY_ERR_TIMEOUT);
    assert_true(gone);
}

static void commandsDoNotProlongTheLimit(void **state) {
    struct timeval limit = {.tv_sec = 1};
    valkeyAsyncContext *ac = connected(*state, NULL, &limit);
    simPass(100LL * SECOND); /* idle */
    int sent = 0;
    for (; !gone && sent < 100; sent++) {
        command(ac, "HANG");
        for (int i = 0; i < 1000 && vkTextLen(ac->c.obuf) > 0; i++) simTurn(10);
        simPass(SECOND / 10);
    }
    assert_true(gone);
    assert_int_equal(sent, 10);
    assert_int_equal(strlen(transcript), 10 * strlen("NULL "));
}

static void repliesProlongTheLimit(void **state) {
    struct timeval limit = {.tv_sec = 1};
    valkeyAsyncContext *ac = connected(*state, NULL, &limit);
    for (int i = 0; i < 20; i++) {
        command(ac, "PING");
        simPass(SECOND * 9 / 10);
        expect("PONG ");
    }
    /* Parts of a long reply, too. */
    command(ac, "BEGIN");
    command(ac, "MORE");
    command(ac, "END");
    expect("abcdef 1 2 ");
    command(ac, "BEGIN");
    for (int i = 0; i < 1000 && ac->c.reader->len == ac->c.reader->pos; i++) simTurn(10);
    simPass(SECOND * 9 / 10);
    command(ac, "MORE");
    size_t before = ac->c.reader->len;
    for (int i = 0; i < 1000 && ac->c.reader->len == before; i++) simTurn(10);
    simPass(SECOND * 9 / 10);
    assert_false(gone);
    simPass(SECOND / 10);
    assert_true(gone);
}

static ssize_t writeALittle(valkeyContext *c) {
    size_t len = vkTextLen(c->obuf);
    return vkSocketFuncs.write_bytes(c, c->obuf, len < 100 ? len : 100);
}

static void aLongCommandMayTakeItsTime(void **state) {
    struct timeval limit = {.tv_sec = 1};
    valkeyAsyncContext *ac = connected(*state, NULL, &limit);
    valkeyContextFuncs funcs = *ac->c.funcs;
    funcs.write = writeALittle;
    ac->c.funcs = &funcs;
    char long_text[1000];
    memset(long_text, 'x', sizeof(long_text));
    assert_int_equal(valkeyAsyncCommand(ac, onReply, NULL, "HANG %b", long_text, sizeof(long_text)),
                     VALKEY_OK);
    int writes = 0;
    for (; vkTextLen(ac->c.obuf) > 0 && writes < 100; writes++) {
        valkeyAsyncHandleWrite(ac);
        simPass(SECOND * 9 / 10);
        assert_false(gone);
    }
    assert_true(writes > 10);
    /* A second one does not prolong the time of the first. */
    assert_int_equal(valkeyAsyncCommand(ac, onReply, NULL, "HANG %b", long_text, sizeof(long_text)),
                     VALKEY_OK);
    valkeyAsyncHandleWrite(ac);
    simPass(SECOND / 10);
    assert_true(gone);
    expect("NULL NULL ");
}

static void aShorterLimitAppliesAtOnce(void **state) {
    struct timeval limit = {.tv_sec = 100};
    valkeyAsyncContext *ac = connected(*state, NULL, &limit);
    command(ac, "HANG");
    simPass(SECOND);
    assert_int_equal(valkeyAsyncSetTimeout(ac, (struct timeval){.tv_sec = 2}), VALKEY_OK);
    simPass(SECOND);
    assert_true(gone);
    expect("NULL ");
    /* None at all. */
    gone = false;
    ac = connected(*state, NULL, &none);
    int timers = simTimers();
    command(ac, "HANG");
    simPass(1000LL * SECOND);
    assert_false(gone);
    assert_int_equal(simTimers(), timers);
    valkeyAsyncFree(ac);
}

/* Adapters without timers: the program calls valkeyAsyncHandleTimeout() when it thinks fit. */
static void theProgramMayKeepTheTime(void **state) {
    valkeyAsyncContext *ac = connected(*state, NULL, NULL);
    ac->ev.scheduleTimer = NULL;
    valkeyAsyncHandleTimeout(ac);
    assert_false(gone);
    command(ac, "HANG");
    valkeyAsyncHandleTimeout(ac);
    assert_true(gone);
    expect("NULL ");
}

/* The synchronous counterpart: the limit for connecting does not remain on the socket. */
static void connectLimitDoesNotRemainOnASocket(void **state) {
    valkeyContext *c = valkeyConnectWithTimeout("127.0.0.1", fakePort(*state, 0),
                                                (struct timeval){.tv_usec = 300000});
    assert_int_equal(c->err, 0);
    struct timeval tv[2];
    socklen_t len = sizeof(*tv);
    assert_int_equal(getsockopt(c->fd, SOL_SOCKET, SO_RCVTIMEO, &tv[0], &len), 0);
    assert_int_equal(getsockopt(c->fd, SOL_SOCKET, SO_SNDTIMEO, &tv[1], &len), 0);
    for (int i = 0; i < 2; i++) assert_int_equal(tv[i].tv_sec * SECOND + tv[i].tv_usec, 0);
    valkeyFree(c);
}

int test_limits(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(connectLimitDoesNotEndAWaitingCommand, setup, teardown),
        cmocka_unit_test_setup_teardown(connectLimitAppliesWithoutCommands, setup, teardown),
        cmocka_unit_test_setup_teardown(commandsDoNotProlongTheLimit, setup, teardown),
        cmocka_unit_test_setup_teardown(repliesProlongTheLimit, setup, teardown),
        cmocka_unit_test_setup_teardown(aLongCommandMayTakeItsTime, setup, teardown),
        cmocka_unit_test_setup_teardown(aShorterLimitAppliesAtOnce, setup, teardown),
        cmocka_unit_test_setup_teardown(theProgramMayKeepTheTime, setup, teardown),
        cmocka_unit_test_setup_teardown(connectLimitDoesNotRemainOnASocket, setup, teardown),
    };
    return cmocka_run_group_tests_name("limits", tests, NULL, NULL);
}
