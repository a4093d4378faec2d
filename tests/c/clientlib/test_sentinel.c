/* SPDX-License-Identifier: BSD-3-Clause
 *
 * valkey/sentinel.h: two Sentinels (nodes 0 and 1), and servers (2 to 4) that say which one they
 * are. */
#include <unistd.h>

#include <valkey/sentinel.h>

#include "client_test.h"

enum { FIRST = 2, SECOND = 3, THIRD = 4, NODES = 5 };

static fakeServer *nodes;
static _Atomic int primary, told; /* what is so, and what Sentinels say */
static _Atomic int refusals, logins, lookups;
static _Atomic bool tells_switch; /* with the next subscription */

static void serveSentinel(fakeRequest *q) {
    if (fakeIs(q, 0, "AUTH")) {
        logins += fakeIs(q, 1, "watcher") && fakeIs(q, 2, "secret");
        fakeSend(q, "+OK\r\n");
    } else if (fakeIs(q, 0, "HELLO")) {
        fakeSend(q, "%%1\r\n$5\r\nproto\r\n:3\r\n");
    } else if (fakeIs(q, 0, "SUBSCRIBE")) {
        fakeSend(q, ">3\r\n$9\r\nsubscribe\r\n$14\r\n+switch-master\r\n:1\r\n");
    } else if (fakeIs(q, 1, "GET-MASTER-ADDR-BY-NAME") && fakeIs(q, 2, "mym")) {
        lookups++;
        fakeSend(q, "*2\r\n$9\r\n127.0.0.1\r\n$5\r\n%05d\r\n", fakePort(q->server, told));
        if (tells_switch)
            fakeSend(q, ">3\r\n$7\r\nmessage\r\n$14\r\n+switch-master\r\n"
                        "$11\r\nmym a 1 b 2\r\n");
        tells_switch = false;
    } else if (fakeIs(q, 1, "SLAVES")) {
        fakeSend(q,
                 "*2\r\n%%3\r\n$2\r\nip\r\n$9\r\n127.0.0.1\r\n$4\r\nport\r\n$5\r\n%05d\r\n"
                 "$5\r\nflags\r\n$12\r\ns_down,slave\r\n"
                 "%%3\r\n$2\r\nip\r\n$9\r\n127.0.0.1\r\n$4\r\nport\r\n$5\r\n%05d\r\n"
                 "$5\r\nflags\r\n$5\r\nslave\r\n",
                 fakePort(q->server, SECOND), fakePort(q->server, THIRD));
    } else {
        fakeSend(q, "_\r\n");
    }
}

static void serve(fakeRequest *q) {
    if (q->node < FIRST) {
        serveSentinel(q);
    } else if (fakeIs(q, 0, "ROLE")) {
        fakeSend(q, primary == q->node ? "*1\r\n$6\r\nmaster\r\n" : "*1\r\n$5\r\nslave\r\n");
    } else if (fakeIs(q, 0, "CLOSE")) {
        fakeClose(q);
    } else if (fakeIs(q, 0, "SET") && refusals) {
        refusals--;
        primary = told = SECOND;
        fakeSend(q, "-READONLY You can't write against a read only replica.\r\n");
    } else {
        fakeSend(q, ":%d\r\n", q->node);
    }
}

static int setup(void **state) {
    nodes = fakeStart(NODES, serve, NULL);
    *state = nodes;
    primary = told = FIRST;
    refusals = logins = lookups = 0;
    tells_switch = false;
    countingStart();
    return 0;
}

static char addrs[64];

static valkeySentinelOptions options(void) {
    snprintf(addrs, sizeof(addrs), "127.0.0.1:%d,127.0.0.1:%d", fakePort(nodes, 0),
             fakePort(nodes, 1));
    return (valkeySentinelOptions){.sentinels = addrs, .name = "mym", .wait_ms = 10000};
}

static valkeySentinelContext *connected(const valkeySentinelOptions *o) {
    valkeySentinelContext *sc = valkeySentinelConnect(o);
    assert_non_null(sc);
    assert_int_equal(sc->err, 0);
    return sc;
}

/* The node that has replied; -1: an error. */
static int whoServes(valkeySentinelContext *sc, const char *command) {
    valkeyReply *r = valkeySentinelCommand(sc, command);
    int node = r ? (int)r->integer : -1;
    freeReplyObject(r);
    return node;
}

static void the_primary_that_a_sentinel_names_is_used(void **state) {
    (void)state;
    fakeSetMode(nodes, 0, FAKE_REFUSE); /* the other one is asked */
    valkeySentinelOptions o = options();
    o.sentinel_username = "watcher";
    o.sentinel_password = "secret";
    valkeySentinelContext *sc = connected(&o);
    assert_int_equal(whoServes(sc, "GET k"), FIRST);
    assert_int_equal(sc->port, fakePort(nodes, FIRST));
    assert_string_equal(sc->host, "127.0.0.1");
    assert_int_equal(logins, 1);
    const char *argv[] = {"GET", "k"};
    valkeyReply *r = valkeySentinelCommandArgv(sc, 2, argv, NULL);
    assert_int_equal(r->integer, FIRST);
    freeReplyObject(r);
    assert_int_equal(lookups, 1);
    valkeySentinelFree(sc);
}

static void a_server_with_another_role_is_not_used(void **state) {
    (void)state;
    primary = SECOND;
    valkeySentinelOptions o = options();
    o.wait_ms = 300;
    valkeySentinelContext *sc = valkeySentinelConnect(&o);
    assert_int_equal(sc->err, VALKEY_ERR_OTHER);
    assert_string_equal(sc->errstr, "The server is not a primary");
    assert_null(sc->con);
    told = SECOND;
    assert_int_equal(whoServes(sc, "GET k"), SECOND); /* found when it is told right */
    valkeySentinelFree(sc);
    o.name = "other";
    sc = valkeySentinelConnect(&o);
    assert_string_equal(sc->errstr, "The Sentinel does not know the primary");
    assert_int_equal(whoServes(sc, "GET k"), -1);
    valkeySentinelFree(sc);
}

static void a_switch_that_is_told_is_followed(void **state) {
    (void)state;
    tells_switch = true;
    valkeySentinelOptions o = options();
    valkeySentinelContext *sc = connected(&o);
    primary = told = SECOND;
    int node = FIRST;
    for (int i = 0; i < 1000 && node == FIRST; i++) { /* the message is on its way */
        node = whoServes(sc, "GET k");
        if (node == FIRST) usleep(10000);
    }
    assert_int_equal(node, SECOND);
    assert_int_equal(whoServes(sc, "GET k"), SECOND);
    assert_int_equal(lookups, 2);
    valkeySentinelFree(sc);
}

static void what_a_replica_refuses_is_sent_to_the_new_primary(void **state) {
    (void)state;
    valkeySentinelOptions o = options();
    valkeySentinelContext *sc = connected(&o);
    refusals = 1;
    assert_int_equal(whoServes(sc, "SET k v"), SECOND);
    assert_int_equal(whoServes(sc, "GET k"), SECOND);
    valkeySentinelFree(sc);
}

static void a_command_whose_connection_fails_is_not_repeated(void **state) {
    (void)state;
    valkeySentinelOptions o = options();
    valkeySentinelContext *sc = connected(&o);
    assert_int_equal(whoServes(sc, "CLOSE"), -1);
    assert_int_equal(sc->err, VALKEY_ERR_EOF);
    assert_null(sc->con);
    primary = told = SECOND;
    assert_int_equal(valkeySentinelCheck(sc), VALKEY_OK);
    assert_int_equal(sc->err, 0);
    assert_int_equal(whoServes(sc, "GET k"), SECOND);
    valkeySentinelFree(sc);
}

static void the_server_is_used_while_no_sentinel_is_there(void **state) {
    (void)state;
    valkeySentinelOptions o = options();
    valkeySentinelContext *sc = connected(&o);
    fakeSetMode(nodes, 0, FAKE_REFUSE);
    fakeSetMode(nodes, 1, FAKE_REFUSE);
    for (int i = 0; i < 3; i++) assert_int_equal(whoServes(sc, "GET k"), FIRST);
    valkeySentinelFree(sc);
}

static void a_replica_that_is_up_is_used_if_wanted(void **state) {
    (void)state;
    valkeySentinelOptions o = options();
    o.use_replica = 1;
    valkeySentinelContext *sc = connected(&o);
    assert_int_equal(whoServes(sc, "GET k"), THIRD);
    fakeSetMode(nodes, THIRD, FAKE_REFUSE);
    assert_int_equal(valkeySentinelCheck(sc), VALKEY_OK);
    valkeySentinelFree(sc);
    sc = connected(&o);
    assert_int_equal(whoServes(sc, "GET k"), FIRST); /* there is no other */
    valkeySentinelFree(sc);
}

static void options_that_are_not_valid_are_refused(void **state) {
    (void)state;
    static const char *const lists[] = {"", "host", "host:", "host:0", "host:65536", ":1", "a:1,b"};
    for (size_t i = 0; i < sizeof(lists) / sizeof(*lists); i++) {
        valkeySentinelOptions o = {.sentinels = lists[i], .name = "mym"};
        assert_null(valkeySentinelConnect(&o));
    }
    valkeySentinelOptions o = {.sentinels = "host:1", .name = ""};
    assert_null(valkeySentinelConnect(&o));
}

static void without_memory_there_is_an_error(void **state) {
    (void)state;
    valkeySentinelOptions o = options();
    o.wait_ms = 1;
    for (long number = 0; number < 400; number++) {
        countingFailAt(number, false);
        valkeySentinelContext *sc = valkeySentinelConnect(&o);
        int node = sc ? whoServes(sc, "GET k") : -1;
        bool failed = countingHasFailed();
        countingFailAt(-1, false);
        valkeySentinelFree(sc);
        if (!failed) {
            assert_int_equal(node, FIRST);
            return;
        }
    }
    fail_msg("more allocations than expected");
}

int test_sentinel(void) {
#define TEST(name) cmocka_unit_test_setup_teardown(name, setup, fakeTeardown)
    const struct CMUnitTest tests[] = {
        TEST(the_primary_that_a_sentinel_names_is_used),
        TEST(a_server_with_another_role_is_not_used),
        TEST(a_switch_that_is_told_is_followed),
        TEST(what_a_replica_refuses_is_sent_to_the_new_primary),
        TEST(a_command_whose_connection_fails_is_not_repeated),
        TEST(the_server_is_used_while_no_sentinel_is_there),
        TEST(a_replica_that_is_up_is_used_if_wanted),
        TEST(options_that_are_not_valid_are_refused),
        TEST(without_memory_there_is_an_error),
    };
    return cmocka_run_group_tests_name("sentinel", tests, NULL, NULL);
}
