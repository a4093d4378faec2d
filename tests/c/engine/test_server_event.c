/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Tests of engine/server_event.c: who gets which event, also when listeners come and go
 * meanwhile. */
#include "engine_test.h"

#include "base/base.h"
#include "engine/child.h"
#include "engine/engine.h"
#include "engine/server_event.h"
#include "engine/tick.h"

static uint32_t bit(serverEventKind kind) { return 1u << kind; }

static const char *nameOf(const serverEvent *e) {
    return e->kind == SERVER_CRON ? "cron" : e->kind == SERVER_LINK ? "link" : "another";
}

static void other(const serverEvent *e) { note("other %s;", nameOf(e)); }

static void one(const serverEvent *e) {
    switch (e->kind) {
    case SERVER_FLUSH: note("flush %d of %d;", e->phase, e->flush.db_id); break;
    case SERVER_SWAP: note("swap %d %d;", e->swap.first, e->swap.second); break;
    case SERVER_CHILD: note("child %d of %d;", e->phase, e->child.kind); break;
    case SERVER_PERSISTENCE: note("save %d aof %d;", e->phase, e->persistence.is_aof); break;
    default: note("one %s;", nameOf(e));
    }
}

/* Ends itself at the first event, and lets `other` begin. */
static void once(const serverEvent *e) {
    note("once %s;", nameOf(e));
    serverEventsListen(once, 0);
    serverEventsListen(other, bit(SERVER_CRON));
}

static void signalKind(serverEventKind kind) { serverEventSignal(&(serverEvent){.kind = kind}); }

static void a_listener_gets_the_kinds_that_it_wants(void **state) {
    (void)state;
    assert_false(serverEventIsWanted(SERVER_CRON));
    signalKind(SERVER_CRON);
    serverEventsListen(one, bit(SERVER_CRON) | bit(SERVER_LINK));
    serverEventsListen(other, bit(SERVER_CRON));
    assert_true(serverEventIsWanted(SERVER_LINK));
    assert_false(serverEventIsWanted(SERVER_ROLE));
    signalKind(SERVER_CRON);
    signalKind(SERVER_LINK);
    signalKind(SERVER_ROLE);
    assert_noted("one cron;other cron;one link;");
}

static void a_listener_may_end_and_begin_within_an_event(void **state) {
    (void)state;
    serverEventsListen(once, bit(SERVER_CRON));
    serverEventsListen(one, bit(SERVER_CRON));
    signalKind(SERVER_CRON);
    assert_noted("once cron;one cron;");
    signalKind(SERVER_CRON);
    assert_noted("one cron;other cron;");
    serverEventsListen(one, 0);
    serverEventsListen(other, 0);
    assert_false(serverEventIsWanted(SERVER_CRON));
}

static void events_of_databases_are_passed_on_after_the_features(void **state) {
    (void)state;
    serverEventsListen(one, bit(SERVER_FLUSH) | bit(SERVER_SWAP));
    hooksDbEvent(&(dbEvent){.kind = DB_FLUSHING, .db_id = 2});
    hooksDbEvent(&(dbEvent){.kind = DB_FLUSHED, .db_id = 2});
    hooksDbEvent(&(dbEvent){.kind = DB_SWAPPING, .db_id = 0, .other_id = 1});
    hooksDbEvent(&(dbEvent){.kind = DB_SWAPPED, .db_id = 0, .other_id = 1});
    assert_noted("flush 0 of 2;flush 1 of 2;swap 0 1;");
}

static void stop(void) {}

static void a_job_of_this_process_saves_but_is_no_child(void **state) {
    (void)state;
    reason why;
    serverEventsListen(one, bit(SERVER_CHILD) | bit(SERVER_PERSISTENCE));
    assert_int_equal(childBeginHere(CHILD_AOF_REWRITE, stop, &why), OK);
    childEndHere(0);
    assert_noted("save 0 aof 1;save 1 aof 1;");
    assert_int_equal(childBeginHere(CHILD_RDB_SAVE, stop, &why), OK);
    childKill();
    assert_noted("save 0 aof 0;save 2 aof 0;");
}

static int leave(void *arg) {
    (void)arg;
    return 0;
}

static void a_child_that_saves_nothing_is_one_nevertheless(void **state) {
    (void)state;
    reason why;
    serverEventsListen(one, bit(SERVER_CHILD) | bit(SERVER_PERSISTENCE));
    assert_int_equal(childStart(&(childJob){.kind = CHILD_TEST, .run = leave}, &why), OK);
    childKill();
    assert_noted("child 0 of 5;child 1 of 5;");
}

static int drawn(void) {
    static int hz = 10;
    return hz++;
}

static void the_rate_of_the_cron_is_drawn_before_each_run(void **state) {
    (void)state;
    int before = tickHz();
    tickSetHzProc(drawn);
    assert_int_equal(tickHz(), before);
    assert_int_equal(tickDrawHz(), 10);
    assert_int_equal(tickDrawHz(), 11);
    assert_int_equal(tickHz(), 11);
    tickSetHzProc(NULL);
    assert_int_equal(tickDrawHz(), 11);
}

int test_server_event(void) {
#define TEST(name) cmocka_unit_test_setup_teardown(name, engineTestSetUp, engineTestTearDown)
    const struct CMUnitTest tests[] = {
        TEST(a_listener_gets_the_kinds_that_it_wants),
        TEST(a_listener_may_end_and_begin_within_an_event),
        TEST(events_of_databases_are_passed_on_after_the_features),
        TEST(a_job_of_this_process_saves_but_is_no_child),
        TEST(a_child_that_saves_nothing_is_one_nevertheless),
        TEST(the_rate_of_the_cron_is_drawn_before_each_run),
    };
    return cmocka_run_group_tests_name("engine/server_event", tests, NULL, NULL);
}
