/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Tests of io/conn and io/conn_socket. */
#include "io_test.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/alloc.h"
#include "io/conn.h"
#include "io/net_addr.h"
#include "io/sys.h"

/* A connection in its owner, as sessions embed it. */
typedef struct owner {
    conn c;
    int reads, writes;
    char got[64];
    size_t len;
} owner;

typedef struct fixture {
    loop *l;
    owner o;
    int other; /* the far end */
} fixture;

static fixture fx;

static int openFixture(void **state) {
    (void)state;
    int ends[2];
    memset(&fx, 0, sizeof(fx));
    fx.l = loopNew(NULL, NULL);
    if (!fx.l) return -1;
    testPair(ends);
    connInit(&fx.o.c, &connUnix, fx.l, ends[0], CONN_OPEN);
    fx.other = ends[1];
    return 0;
}

static int closeFixture(void **state) {
    (void)state;
    sysCallsSet(NULL);
    connClose(&fx.o.c);
    if (fx.other >= 0) close(fx.other);
    loopFree(fx.l);
    return 0;
}

static void readSome(conn *c) {
    owner *o = (owner *)c;
    o->reads++;
    ssize_t got = connRead(c, o->got + o->len, sizeof(o->got) - o->len);
    if (got > 0) o->len += (size_t)got;
}

static void countWrite(conn *c) { ((owner *)c)->writes++; }

static void test_reading_when_bytes_arrive(void **state) {
    (void)state;
    conn *c = &fx.o.c;
    assert_int_equal(connOnRead(c, readSome), OK);
    assert_int_equal(loopWatched(fx.l, c->fd), LOOP_READ);
    assert_int_equal(loopTurn(fx.l, false), 0);
    assert_int_equal(write(fx.other, "hello", 5), 5);
    assert_int_equal(loopTurn(fx.l, true), 1);
    assert_int_equal(fx.o.len, 5);
    assert_memory_equal(fx.o.got, "hello", 5);
    assert_int_equal(connOnRead(c, NULL), OK);
    assert_int_equal(loopWatched(fx.l, c->fd), 0);
    assert_int_equal(write(fx.other, "more", 4), 4);
    assert_int_equal(loopTurn(fx.l, false), 0);
    assert_int_equal(fx.o.reads, 1);
}

static void test_writing_when_the_socket_is_writable(void **state) {
    (void)state;
    conn *c = &fx.o.c;
    assert_int_equal(connOnWrite(c, countWrite), OK);
    assert_int_equal(loopTurn(fx.l, false), 1);
    assert_int_equal(fx.o.writes, 1);
    assert_int_equal(connOnRead(c, readSome), OK);
    assert_int_equal(loopWatched(fx.l, c->fd), LOOP_READ | LOOP_WRITE);
    assert_int_equal(connOnWrite(c, NULL), OK);
    assert_int_equal(connOnWrite(c, NULL), OK); /* once more changes nothing */
    assert_int_equal(loopWatched(fx.l, c->fd), LOOP_READ);
    assert_int_equal(loopTurn(fx.l, false), 0);
}

/* While it is detached its callbacks are noted; attached, they are called for what has arrived. */
static void test_a_detached_connection_keeps_its_callbacks(void **state) {
    (void)state;
    conn *c = &fx.o.c;
    connDetach(c);
    assert_int_equal(connOnRead(c, readSome), OK);
    assert_int_equal(connOnWrite(c, countWrite), OK);
    connSetPriority(c, true);
    assert_int_equal(loopWatched(fx.l, c->fd), 0);
    assert_int_equal(write(fx.other, "one", 3), 3);
    assert_int_equal(loopTurn(fx.l, false), 0);
    assert_int_equal(connOnWrite(c, NULL), OK);
    assert_int_equal(connAttach(c, fx.l), OK);
    assert_int_equal(loopWatched(fx.l, c->fd), LOOP_READ);
    assert_int_equal(loopTurn(fx.l, true), 1);
    assert_int_equal(fx.o.len, 3);
    assert_int_equal(fx.o.writes, 0);
}

static void test_vectors(void **state) {
    (void)state;
    conn *c = &fx.o.c;
    char one[] = "one ", two[] = "two ", three[] = "three";
    struct iovec out[] = {{one, 4}, {two, 4}, {three, 5}};
    char bytes[32] = {0};
    assert_int_equal(connWritev(c, out, 3), 13);
    assert_int_equal(connWritev(c, out, 1), 4);
    assert_int_equal(read(fx.other, bytes, sizeof(bytes)), 17);
    assert_string_equal(bytes, "one two threeone ");
    assert_int_equal(write(fx.other, "abcdef", 6), 6);
    char a[2], b[10];
    struct iovec in[] = {{a, 2}, {b, 10}};
    assert_int_equal(connReadv(c, in, 2), 6);
    assert_memory_equal(a, "ab", 2);
    assert_memory_equal(b, "cdef", 4);
    assert_int_equal(c->state, CONN_OPEN);
}

static void test_closing_by_the_peer_closes_the_connection(void **state) {
    (void)state;
    conn *c = &fx.o.c;
    char bytes[4];
    assert_int_equal(connRead(c, bytes, 4), -1);
    assert_int_equal(errno, EAGAIN);
    assert_int_equal(c->state, CONN_OPEN);
    assert_true(connRead(c, bytes, 0) <= 0); /* no room is no end */
    assert_int_equal(c->state, CONN_OPEN);
    close(fx.other);
    fx.other = -1;
    assert_int_equal(connRead(c, bytes, 4), 0);
    assert_int_equal(c->state, CONN_CLOSED);
}

static void test_broken_pipe_fails_the_state(void **state) {
    (void)state;
    conn *c = &fx.o.c;
    char byte = 'x';
    struct iovec out = {&byte, 1};
    close(fx.other);
    fx.other = -1;
    assert_int_equal(connWritev(c, &out, 1), -1);
    assert_int_equal(c->last_errno, EPIPE);
    assert_int_equal(c->state, CONN_FAILED);
}

static int interruptions;

static ssize_t interruptedRecv(int fd, void *dst, size_t len, int flags) {
    if (interruptions++ < 2) {
        errno = EINTR;
        return -1;
    }
    return recv(fd, dst, len, flags);
}

static ssize_t interruptedReadv(int fd, const struct iovec *iov, int count) {
    if (interruptions++ < 2) {
        errno = EINTR;
        return -1;
    }
    return readv(fd, iov, count);
}

static ssize_t interruptedSend(int fd, const void *src, size_t len, int flags) {
    if (interruptions++ < 2) {
        errno = EINTR;
        return -1;
    }
    return send(fd, src, len, flags);
}

static ssize_t interruptedWritev(int fd, const struct iovec *iov, int count) {
    if (interruptions++ < 2) {
        errno = EINTR;
        return -1;
    }
    return writev(fd, iov, count);
}

static void test_interruptions_are_not_seen(void **state) {
    (void)state;
    const sysCalls bent = {.recv = interruptedRecv,
                           .send = interruptedSend,
                           .readv = interruptedReadv,
                           .writev = interruptedWritev};
    conn *c = &fx.o.c;
    char bytes[8];
    struct iovec vectors[] = {{bytes, 2}, {bytes + 2, 2}};
    sysCallsSet(&bent);
    interruptions = 0;
    assert_int_equal(connWritev(c, vectors, 1), 2);
    interruptions = 0;
    assert_int_equal(connWritev(c, vectors, 2), 4);
    assert_int_equal(write(fx.other, "12345678", 8), 8);
    interruptions = 0;
    assert_int_equal(connRead(c, bytes, 4), 4);
    interruptions = 0;
    assert_int_equal(connReadv(c, vectors, 2), 4);
    assert_int_equal(interruptions, 3);
}

static void closeInRead(conn *c) {
    owner *o = (owner *)c;
    o->reads++;
    connClose(c);
    connClose(c);
}

static void test_closing_in_a_callback(void **state) {
    (void)state;
    conn *c = &fx.o.c;
    int fd = c->fd;
    assert_int_equal(connOnRead(c, closeInRead), OK);
    assert_int_equal(connOnWrite(c, countWrite), OK);
    assert_int_equal(write(fx.other, "x", 1), 1);
    assert_int_equal(loopTurn(fx.l, true), 1);
    assert_int_equal(fx.o.reads, 1);
    assert_int_equal(fx.o.writes, 0); /* was ready too, but has no callback any more */
    assert_int_equal(c->fd, -1);
    assert_int_equal(c->state, CONN_CLOSED);
    assert_int_equal(loopWatched(fx.l, fd), 0);
    assert_int_equal(fcntl(fd, F_GETFD), -1);
    assert_int_equal(connOnRead(c, NULL), OK);
    assert_int_equal(connOnRead(c, readSome), ERR_IO);
}

static void freeOwner(conn *c) {
    connClose(c);
    memFree(c);
}

static void test_the_owner_may_be_freed_in_a_callback(void **state) {
    (void)state;
    int ends[2];
    testPair(ends);
    owner *o = memNew(owner);
    connInit(&o->c, &connTcp, fx.l, ends[0], CONN_OPEN);
    assert_int_equal(connOnRead(&o->c, freeOwner), OK);
    assert_int_equal(connOnWrite(&o->c, countWrite), OK);
    close(ends[1]); /* both directions are ready now */
    assert_int_equal(loopTurn(fx.l, true), 1);
    assert_int_equal(loopTurn(fx.l, false), 0);
}

static void test_shutdown_ends_both_directions(void **state) {
    (void)state;
    conn *c = &fx.o.c;
    char byte;
    c->type->shutdown(c);
    assert_int_equal(read(fx.other, &byte, 1), 0);
    assert_int_equal(connRead(c, &byte, 1), 0);
}

static void test_connect_completes_or_fails_before_its_callback(void **state) {
    (void)state;
    const netListenOptions options = {.backlog = 4};
    int listen_fd = netListenTcp("127.0.0.1", 0, &options, NULL, NULL);
    char text[NET_ADDR_TEXT_MAX];
    assert_true(netLocalText(listen_fd, text));
    int port = atoi(strrchr(text, ':') + 1);
    owner dialled = {0};
    connInit(&dialled.c, &connTcp, fx.l, netConnectTcp("127.0.0.1", port, "", false, NULL),
             CONN_CONNECTING);
    assert_int_equal(connOnWrite(&dialled.c, countWrite), OK);
    while (!dialled.writes) loopTurn(fx.l, true);
    assert_int_equal(dialled.c.state, CONN_OPEN);
    assert_int_equal(dialled.c.last_errno, 0);
    connClose(&dialled.c);
    close(listen_fd);

    int fd = netConnectTcp("127.0.0.1", port, "", false, NULL);
    if (fd < 0) return; /* refused immediately */
    memset(&dialled, 0, sizeof(dialled));
    connInit(&dialled.c, &connTcp, fx.l, fd, CONN_CONNECTING);
    assert_int_equal(connOnWrite(&dialled.c, countWrite), OK);
    while (!dialled.writes) loopTurn(fx.l, true);
    assert_int_equal(dialled.c.state, CONN_FAILED);
    assert_int_equal(dialled.c.last_errno, ECONNREFUSED);
    connClose(&dialled.c);
}

int test_conn(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(test_reading_when_bytes_arrive, openFixture, closeFixture),
        cmocka_unit_test_setup_teardown(test_writing_when_the_socket_is_writable, openFixture,
                                        closeFixture),
        cmocka_unit_test_setup_teardown(test_a_detached_connection_keeps_its_callbacks, openFixture,
                                        closeFixture),
        cmocka_unit_test_setup_teardown(test_vectors, openFixture, closeFixture),
        cmocka_unit_test_setup_teardown(test_closing_by_the_peer_closes_the_connection, openFixture,
                                        closeFixture),
        cmocka_unit_test_setup_teardown(test_broken_pipe_fails_the_state, openFixture,
                                        closeFixture),
        cmocka_unit_test_setup_teardown(test_interruptions_are_not_seen, openFixture, closeFixture),
        cmocka_unit_test_setup_teardown(test_closing_in_a_callback, openFixture, closeFixture),
        cmocka_unit_test_setup_teardown(test_the_owner_may_be_freed_in_a_callback, openFixture,
                                        closeFixture),
        cmocka_unit_test_setup_teardown(test_shutdown_ends_both_directions, openFixture,
                                        closeFixture),
        cmocka_unit_test_setup_teardown(test_connect_completes_or_fails_before_its_callback,
                                        openFixture, closeFixture),
    };
    return cmocka_run_group_tests_name("conn", tests, NULL, NULL);
}
