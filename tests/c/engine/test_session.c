/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Tests of engine/session.c: birth, end, RESET, what arms the special bit, and the list of those
 * with output. */
#include "engine_test.h"

#include "base/base.h"
#include "engine/engine.h"
#include "engine/gate_priv.h"
#include "engine/session_name.h"
#include "engine/transaction.h"
#include "store/store.h"

static void a_session_begins_plain(void **state) {
    session s, next;
    sessionOpen(&s);
    sessionOpen(&next);
    assert_int_equal(s.proto, 2);
    assert_int_equal(s.db_id, 0);
    assert_ptr_equal(s.db, storeDb(0));
    assert_true(sessionIsAuthenticated(&s));
    assert_int_equal(s.armed, 0);
    assert_int_equal(s.created_ms, START_MS);
    assert_int_equal(next.id, s.id + 1);
    assert_null(s.multi);
    assert_null(s.slots);
    sessionClear(&s);
    sessionClear(&next);
}

static void internal_sessions_have_no_number(void **state) {
    session before, inner, after;
    sessionOpen(&before);
    sessionInit(&inner, NULL, SESSION_INTERNAL);
    sessionOpen(&after);
    assert_int_equal(inner.id, 0);
    assert_true(sessionIsAuthenticated(&inner));
    assert_int_equal(after.id, before.id + 1);
    sessionWantWrite(&inner); /* no carrier writes its output */
    assert_null(sessionNextPending());
    sessionCloseSoon(&inner);
    sessionCloseNow(&inner);
    sessionClear(&before);
    sessionClear(&inner);
    sessionClear(&after);
}

/* ------------------------------------------------------------------ events of sessions */

static void onSession(session *s, sessionEvent e) {
    static const char *const names[] = {
        [SESSION_OPENED] = "opened",
        [SESSION_ENDING] = "ending",
        [SESSION_USER_CHANGED] = "user",
        [SESSION_WAS_RESET] = "reset",
    };
    note("%s;", names[e]);
    if (e == SESSION_OPENED) sessionSetAuthenticated(s, NULL, false);
}

static const feature watcher = {.name = "watcher", .on_session = onSession};
static const feature *const features[] = {&watcher};
static const gate *const gate_order[] = {&noMultiGate, &queueGate};

static void opening_reset_and_end_are_reported(void **state) {
    session s, inner;
    hooksUninstall();
    hooksInstall(features, 1, gate_order, COUNT_OF(gate_order));
    sessionOpen(&s);
    assert_noted("opened;");
    assert_false(sessionIsAuthenticated(&s)); /* as acl does when a password is set */
    sessionReset(&s);
    assert_noted("reset;opened;");
    assert_false(sessionIsAuthenticated(&s));
    sessionClear(&s);
    assert_noted("ending;");
    sessionInit(&inner, NULL, SESSION_INTERNAL);
    sessionClear(&inner);
    assert_noted("");
}

static void the_end_is_reported_once(void **state) {
    session s;
    hooksUninstall();
    hooksInstall(features, 1, gate_order, COUNT_OF(gate_order));
    sessionOpen(&s);
    (void)noted();
    sessionClear(&s);
    sessionClear(&s);
    assert_noted("ending;");
}

/* ------------------------------------------------------------------ RESET */

static void reset_keeps_the_state_of_the_connection(void **state) {
    const uint64_t lasting = SESSION_UNIX_SOCKET | SESSION_LOCAL | SESSION_IN_BATCH |
                             SESSION_CLOSE_SOON | SESSION_CAPA_REDIRECT;
    session s;
    sessionOpen(&s);
    s.flags |= lasting | SESSION_REPLY_OFF | SESSION_NO_EVICT | SESSION_NO_TOUCH | SESSION_PUBSUB |
               SESSION_MONITOR | SESSION_WATCH_DIRTY;
    s.proto = 3;
    uint64_t id = s.id;
    assert_int_equal(sessionSelect(&s, 1), OK);
    sessionSetName(&s, SLICE("name"));
    gateArmSession(&s, &allGate, true);
    transactionBegin(&s);
    sessionReset(&s);
    assert_int_equal(s.flags, lasting | SESSION_AUTHENTICATED);
    assert_int_equal(s.armed, 0);
    assert_int_equal(s.proto, 2);
    assert_int_equal(s.db_id, 0);
    assert_ptr_equal(s.db, storeDb(0));
    assert_int_equal(s.id, id);
    assert_int_equal(sessionName(&s).len, 0);
    assert_null(s.multi);
    sessionClear(&s);
}

/* Takes the sessions in the order in which they are written: "0123" are their indexes. */
static void assert_order(session *first, const char *expected) {
    char order[16];
    size_t count = 0;
    session *s;
    while ((s = sessionNextPushed())) order[count++] = (char)('0' + (s - first));
    while ((s = sessionNextPending())) order[count++] = (char)('0' + (s - first));
    while ((s = sessionFirstLater())) {
        sessionTakeLater(s);
        order[count++] = (char)('0' + (s - first));
    }
    order[count] = 0;
    assert_string_equal(order, expected);
}

static void output_is_written_in_the_order_streams_deliveries_replies(void **state) {
    session s[6];
    for (int i = 0; i < 6; i++) sessionOpen(&s[i]);
    sessionWantWrite(&s[0]); /* a reply */
    sessionWantWrite(&s[1]); /* a reply, and then a delivery */
    sessionWantLater(&s[5]); /* one of many */
    sessionWantPush(&s[2]);
    sessionWantPush(&s[1]);
    sessionWantLater(&s[1]); /* stays where it is */
    s[3].flags |= SESSION_SLOT_EXPORT;
    sessionWantWrite(&s[3]);
    sessionWantWrite(&s[4]);
    s[4].flags |= SESSION_REPLICA; /* it has become one */
    sessionWantPush(&s[4]);
    sessionWantWrite(&s[4]);
    assert_order(s, "432105");
    sessionWantPush(&s[2]);
    sessionWantWrite(&s[0]);
    sessionWantWrite(&s[2]); /* a delivery, and then a reply */
    sessionWantLater(&s[5]);
    sessionWantPush(&s[5]);
    assert_order(s, "520");
    sessionWantLater(&s[0]);
    sessionWantLater(&s[1]);
    sessionWantWrite(&s[1]); /* its own reply must not wait */
    sessionWantPush(&s[2]);
    assert_int_equal(sessionLaterCount(), 1);
    for (int i = 0; i < 6; i++) sessionClear(&s[i]);
    assert_int_equal(sessionLaterCount(), 0);
    assert_null(sessionNextPushed());
    assert_null(sessionNextPending());
}

static void reset_keeps_the_output(void **state) {
    session s;
    sessionOpen(&s);
    ask(&s, "say a");
    sessionReset(&s);
    assert_ptr_equal(sessionNextPending(), &s);
    assert_replies(&s, "$1 a");
    sessionClear(&s);
}

/* ------------------------------------------------------------------ small things */

static void databases_are_checked(void **state) {
    session s;
    sessionOpen(&s);
    assert_int_equal(sessionSelect(&s, 1), OK);
    assert_ptr_equal(s.db, storeDb(1));
    assert_int_equal(sessionSelect(&s, 2), ERR_RANGE);
    assert_int_equal(sessionSelect(&s, -1), ERR_RANGE);
    assert_int_equal(sessionSelect(&s, INT64_MIN), ERR_RANGE);
    assert_int_equal(sessionSelect(&s, INT64_C(1) << 32), ERR_RANGE);
    assert_int_equal(s.db_id, 1);
    sessionClear(&s);
}

static void a_name_can_be_set_and_removed(void **state) {
    session s;
    sessionOpen(&s);
    assert_int_equal(sessionName(&s).len, 0);
    sessionSetName(&s, SLICE("worker"));
    assert_true(sliceEqual(sessionName(&s), SLICE("worker")));
    sessionSetName(&s, SLICE("w2"));
    assert_true(sliceEqual(sessionName(&s), SLICE("w2")));
    sessionSetName(&s, SLICE(""));
    assert_int_equal(sessionName(&s).len, 0);
    assert_true(sessionNameIsValid(SLICE("a!~")));
    assert_true(sessionNameIsValid(SLICE("")));
    assert_false(sessionNameIsValid(SLICE("a b")));
    assert_false(sessionNameIsValid(SLICE("a\n")));
    assert_false(sessionNameIsValid(SLICE("\x7f")));
    assert_false(sessionNameIsValid(SLICE("\xc3\xa4")));
    sessionClear(&s);
}

/* One bit represents all that makes a session special. */
static void the_special_bit_follows_login_and_reply_modes(void **state) {
    session s;
    sessionOpen(&s);
    sessionSetAuthenticated(&s, NULL, false);
    assert_int_equal(s.armed, GATE_BIT_SPECIAL);
    sessionSetReplyMode(&s, SESSION_REPLY_OFF);
    sessionSetAuthenticated(&s, NULL, true);
    assert_int_equal(s.armed, GATE_BIT_SPECIAL);
    sessionSetReplyMode(&s, SESSION_REPLY_SKIP_NEXT);
    assert_int_equal(s.armed, GATE_BIT_SPECIAL);
    assert_int_equal(s.flags & SESSION_REPLY_MODES, SESSION_REPLY_SKIP_NEXT);
    sessionSetReplyMode(&s, 0);
    assert_int_equal(s.armed, 0);
    sessionClear(&s);
}

static void the_carrier_is_asked_once_to_close(void **state) {
    session s;
    sessionOpen(&s);
    sessionCloseSoon(&s);
    sessionCloseSoon(&s);
    assert_noted("closes soon;");
    sessionCloseNow(&s);
    sessionCloseNow(&s);
    assert_noted("closes now;");
    sessionClear(&s);
    sessionOpen(&s);
    sessionCloseNow(&s);
    sessionCloseSoon(&s); /* too late */
    assert_noted("closes now;");
    sessionClear(&s);
}

static void the_pending_list_is_a_queue_without_doubles(void **state) {
    session s[3];
    for (int i = 0; i < 3; i++) sessionOpen(&s[i]);
    sessionWantWrite(&s[1]);
    sessionWantWrite(&s[0]);
    sessionWantWrite(&s[1]);
    sessionWantWrite(&s[2]);
    sessionClear(&s[0]); /* takes itself off */
    assert_ptr_equal(sessionNextPending(), &s[1]);
    sessionWantWrite(&s[1]);
    assert_ptr_equal(sessionNextPending(), &s[2]);
    assert_ptr_equal(sessionNextPending(), &s[1]);
    assert_null(sessionNextPending());
    sessionClear(&s[1]);
    sessionClear(&s[2]);
}

int test_session(void) {
#define TEST(name) cmocka_unit_test_setup_teardown(name, engineTestSetUp, engineTestTearDown)
    const struct CMUnitTest tests[] = {
        TEST(a_session_begins_plain),
        TEST(internal_sessions_have_no_number),
        TEST(opening_reset_and_end_are_reported),
        TEST(the_end_is_reported_once),
        TEST(reset_keeps_the_state_of_the_connection),
        TEST(output_is_written_in_the_order_streams_deliveries_replies),
        TEST(reset_keeps_the_output),
        TEST(databases_are_checked),
        TEST(a_name_can_be_set_and_removed),
        TEST(the_special_bit_follows_login_and_reply_modes),
        TEST(the_carrier_is_asked_once_to_close),
        TEST(the_pending_list_is_a_queue_without_doubles),
    };
    return cmocka_run_group_tests_name("engine/session", tests, NULL, NULL);
}
