/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Connections with a handshake, and decoded bytes that are pending (io/conn), with the transport of
 * xor_conn.h. */
#include "io_test.h"

#include <errno.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/clock.h"
#include "io/conn.h"
#include "xor_conn.h"

typedef struct owner {
    conn c;
    int reads, writes;
    size_t cap; /* bytes per read */
    size_t len;
    char got[128];
    bool closes, stops; /* in the callback */
} owner;

static struct {
    loop *l;
    owner o;
    int peer;
} fx;

static void readSome(conn *c) {
    owner *o = (owner *)c;
    o->reads++;
    if (o->closes) {
        connClose(c);
        return;
    }
    ssize_t got = connRead(c, o->got + o->len, o->cap);
    if (got > 0) o->len += (size_t)got;
    if (o->stops) assert_int_equal(connOnRead(c, NULL), OK);
}

static void countWrite(conn *c) {
    ((owner *)c)->writes++;
    assert_int_equal(connOnWrite(c, NULL), OK);
}

static void begin(connState state) {
    int ends[2];
    testPair(ends);
    fx.peer = ends[1];
    fx.o = (owner){.cap = sizeof(fx.o.got)};
    connInit(&fx.o.c, &xorType, fx.l, ends[0], state);
    assert_int_equal(connOnRead(&fx.o.c, readSome), OK);
}

static int openFixture(void **state) {
    (void)state;
    fx.l = loopNew(NULL, NULL);
    begin(CONN_OPEN);
    return 0;
}

static int closeFixture(void **state) {
    (void)state;
    connLimitHandshakes(0, 0);
    connClose(&fx.o.c);
    (void)close(fx.peer);
    loopFree(fx.l);
    return 0;
}

/* Turns until a turn has nothing to do. Pending bytes are read by a timer that is due in the next
 * microsecond, so there may be more to do after it: see awaitBytes(). */
static void runUntilIdle(void) {
    while (loopTurn(fx.l, false) > 0) {}
}

/* Turns until the owner has read `len` bytes, 10 s at most. */
static void awaitBytes(size_t len) {
    int64_t end_ms = clockMonoMs() + 10000;
    while (fx.o.len < len && clockMonoMs() < end_ms) loopTurn(fx.l, false);
    assert_int_equal(fx.o.len, len);
}

static void establish(void) {
    assert_true(xorGreet(fx.peer));
    for (int i = 0; i < 100 && fx.o.c.state == CONN_HANDSHAKING; i++) loopTurn(fx.l, false);
    assert_int_equal(fx.o.c.state, CONN_OPEN);
    char ready;
    assert_int_equal(recv(fx.peer, &ready, 1, MSG_DONTWAIT), 1);
    assert_int_equal(ready, XOR_READY);
}

static void test_nothing_is_read_before_the_handshake(void **state) {
    (void)state;
    assert_int_equal(fx.o.c.state, CONN_HANDSHAKING);
    runUntilIdle();
    assert_int_equal(fx.o.reads, 0);
    assert_int_equal(loopWatched(fx.l, fx.o.c.fd), LOOP_READ); /* the direction of the first step */
    establish();
    fx.o.reads = 0;
    assert_true(xorSend(fx.peer, "text", 4));
    runUntilIdle();
    assert_int_equal(fx.o.len, 4);
    assert_memory_equal(fx.o.got, "text", 4);
    assert_int_equal(fx.o.reads, 1);
}

static void test_pending_bytes_are_read_without_an_event(void **state) {
    (void)state;
    establish();
    fx.o.cap = 10;
    fx.o.reads = 0;
    assert_true(xorSend(fx.peer, "0123456789abcdefghijABCDEFGHIJ", 30));
    awaitBytes(30);
    runUntilIdle();
    assert_int_equal(fx.o.reads, 3);
    assert_memory_equal(fx.o.got, "0123456789abcdefghijABCDEFGHIJ", 30);
}

static void test_pending_bytes_wait_without_a_read_callback(void **state) {
    (void)state;
    establish();
    fx.o.cap = 10;
    assert_true(xorSend(fx.peer, "0123456789abcdefghij", 20));
    fx.o.stops = true;
    awaitBytes(10);
    int64_t armed_us = clockMonoUs();
    while (clockMonoUs() <= armed_us + 1) {} /* a timer of the pending bytes would be due by now */
    runUntilIdle();
    assert_int_equal(fx.o.len, 10);
    assert_int_equal(connOnRead(&fx.o.c, readSome), OK);
    awaitBytes(20);
    assert_memory_equal(fx.o.got, "0123456789abcdefghij", 20);
}

static void test_a_wrong_handshake_fails(void **state) {
    (void)state;
    assert_int_equal(send(fx.peer, "?", 1, 0), 1);
    fx.o.closes = true;
    runUntilIdle();
    assert_int_equal(fx.o.reads, 1);
    assert_int_equal(fx.o.c.state, CONN_CLOSED);
    assert_int_equal(fx.o.c.last_errno, EPROTO);
}

static void test_a_handshake_times_out(void **state) {
    (void)state;
    connClose(&fx.o.c);
    (void)close(fx.peer);
    connLimitHandshakes(1, 0);
    begin(CONN_OPEN);
    fx.o.closes = true;
    for (int i = 0; i < 1000 && fx.o.reads == 0; i++) loopTurn(fx.l, true);
    assert_int_equal(fx.o.reads, 1);
    assert_int_equal(fx.o.c.last_errno, ETIMEDOUT);
}

static void test_a_turn_makes_no_more_steps_than_allowed(void **state) {
    (void)state;
    enum { CONNS = 5 };
    connClose(&fx.o.c);
    connLimitHandshakes(0, 2);
    owner many[CONNS];
    int peers[CONNS];
    for (int i = 0; i < CONNS; i++) {
        int ends[2];
        testPair(ends);
        peers[i] = ends[1];
        many[i] = (owner){.cap = sizeof(many[i].got)};
        connInit(&many[i].c, &xorType, fx.l, ends[0], CONN_OPEN);
        assert_true(xorGreet(peers[i]));
    }
    int turns = 0, open = 0;
    while (open < CONNS && turns < 100) {
        int before = open;
        loopTurn(fx.l, false);
        turns++;
        open = 0;
        for (int i = 0; i < CONNS; i++) open += many[i].c.state == CONN_OPEN;
        assert_true(open - before <= 2);
    }
    assert_int_equal(open, CONNS);
    assert_true(turns >= CONNS * 2 / 2); /* two steps each, two a turn */
    for (int i = 0; i < CONNS; i++) {
        connClose(&many[i].c);
        (void)close(peers[i]);
    }
}

static void test_a_connecting_stream_does_its_handshake_when_connected(void **state) {
    (void)state;
    connClose(&fx.o.c);
    (void)close(fx.peer);
    begin(CONN_CONNECTING);
    assert_int_equal(connOnWrite(&fx.o.c, countWrite), OK);
    assert_int_equal(fx.o.c.state, CONN_CONNECTING);
    loopTurn(fx.l, false);
    assert_int_equal(fx.o.c.state, CONN_HANDSHAKING);
    assert_int_equal(fx.o.reads + fx.o.writes, 0);
    establish();
    runUntilIdle();
    assert_int_equal(fx.o.writes, 1);
}

static void test_closing_in_the_middle_frees_all(void **state) {
    (void)state;
    connLimitHandshakes(60000, 0);
    connClose(&fx.o.c);
    (void)close(fx.peer);
    begin(CONN_OPEN);
    assert_true(xorGreet(fx.peer));
    loopTurn(fx.l, false);
    assert_int_equal(fx.o.c.state, CONN_HANDSHAKING);
    connClose(&fx.o.c);
    assert_int_equal(fx.o.c.state, CONN_CLOSED);
    assert_null(fx.o.c.secure);
    runUntilIdle();
    assert_int_equal(fx.o.reads, 0);
}

/* Steps that were lent, and are made by awaitLent(). */
static int lent;

static bool lendStep(conn *c) {
    lent++;
    connLendHandshake(c);
    return true;
}

static bool refuseStep(conn *c) {
    (void)c;
    lent++;
    return false;
}

/* Turns until a step is lent; nothing is watched from then on. */
static void awaitLent(int count) {
    int64_t end_ms = clockMonoMs() + 10000;
    while (lent < count && clockMonoMs() < end_ms) loopTurn(fx.l, false);
    assert_int_equal(lent, count);
    assert_int_equal(loopWatched(fx.l, fx.o.c.fd), 0);
    assert_int_equal(loopTurn(fx.l, false), 0);
}

static void test_steps_of_a_handshake_can_be_lent(void **state) {
    (void)state;
    lent = 0;
    connOnHandshake(&fx.o.c, lendStep);
    assert_true(xorGreet(fx.peer));
    status st = ERR_AGAIN;
    for (int step = 1; st == ERR_AGAIN; step++) {
        assert_true(step < 100);
        awaitLent(step);
        assert_int_equal(fx.o.reads, 0);
        int wants = 0;
        st = connStepHandshake(&fx.o.c, &wants);
        connReturnHandshake(&fx.o.c, st, wants);
    }
    assert_int_equal(st, OK);
    assert_int_equal(fx.o.c.state, CONN_OPEN);
    fx.o.reads = 0;
    assert_true(xorSend(fx.peer, "text", 4));
    awaitBytes(4);
}

static void test_a_step_that_is_not_lent_is_made_here(void **state) {
    (void)state;
    lent = 0;
    connOnHandshake(&fx.o.c, refuseStep);
    establish();
    assert_true(lent >= 1);
}

static void test_a_handshake_that_is_lent_times_out_when_it_is_back(void **state) {
    (void)state;
    connClose(&fx.o.c);
    (void)close(fx.peer);
    connLimitHandshakes(1, 0);
    begin(CONN_OPEN);
    lent = 0;
    connOnHandshake(&fx.o.c, lendStep);
    assert_true(xorGreet(fx.peer));
    awaitLent(1);
    int64_t armed_us = clockMonoUs();
    while (clockMonoUs() <= armed_us + 2000) {} /* the timer is due by now */
    (void)loopTurn(fx.l, false);
    assert_int_equal(fx.o.c.state, CONN_HANDSHAKING);
    int wants = 0;
    status st = connStepHandshake(&fx.o.c, &wants);
    fx.o.closes = true;
    connReturnHandshake(&fx.o.c, st, wants);
    assert_int_equal(fx.o.reads, 1);
    assert_int_equal(fx.o.c.state, CONN_CLOSED);
    assert_int_equal(fx.o.c.last_errno, ETIMEDOUT);
}

static void test_a_lent_handshake_that_fails_is_reported(void **state) {
    (void)state;
    lent = 0;
    connOnHandshake(&fx.o.c, lendStep);
    assert_int_equal(send(fx.peer, "?", 1, 0), 1);
    fx.o.closes = true;
    for (int step = 1; fx.o.reads == 0; step++) {
        assert_true(step < 100);
        awaitLent(step);
        int wants = 0;
        status st = connStepHandshake(&fx.o.c, &wants);
        connReturnHandshake(&fx.o.c, st, wants);
    }
    assert_int_equal(fx.o.c.state, CONN_CLOSED);
    assert_int_equal(fx.o.c.last_errno, EPROTO);
}

int test_conn_handshake(void) {
#define TEST(name) cmocka_unit_test_setup_teardown(name, openFixture, closeFixture)
    const struct CMUnitTest tests[] = {
        TEST(test_nothing_is_read_before_the_handshake),
        TEST(test_pending_bytes_are_read_without_an_event),
        TEST(test_pending_bytes_wait_without_a_read_callback),
        TEST(test_a_wrong_handshake_fails),
        TEST(test_a_handshake_times_out),
        TEST(test_a_turn_makes_no_more_steps_than_allowed),
        TEST(test_a_connecting_stream_does_its_handshake_when_connected),
        TEST(test_closing_in_the_middle_frees_all),
        TEST(test_steps_of_a_handshake_can_be_lent),
        TEST(test_a_step_that_is_not_lent_is_made_here),
        TEST(test_a_handshake_that_is_lent_times_out_when_it_is_back),
        TEST(test_a_lent_handshake_that_fails_is_reported),
    };
    return cmocka_run_group_tests_name("conn_handshake", tests, NULL, NULL);
}
