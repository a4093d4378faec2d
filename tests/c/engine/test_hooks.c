/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Tests of engine/hooks.c: each hook reaches all registered features, in the documented order, and
 * hooks that are not armed are not called. */
#include "engine_test.h"

#include "base/base.h"
#include "engine/engine.h"
#include "engine/gate_priv.h"
#include "engine/hooks_priv.h"
#include "engine/hot.h"
#include "store/store.h"

/* Two features that note their callbacks: `first` is before `second` in the list. */
static status second_shutdown;
static authVerdict first_verdict;
static uint32_t shutdown_flags;

static void firstDb(const dbEvent *e) { note("first db %d of %d;", e->kind, e->db_id); }
static void secondDb(const dbEvent *e) { note("second db %d of %d;", e->kind, e->db_id); }
static void firstSession(session *s, sessionEvent e) { note("first session %d;", e); }
static void secondChild(childEvent e, int kind, int exit_code, int signal) {
    note("second child %d %d %d %d;", e, kind, exit_code, signal);
}
static size_t firstPressure(void) { return 10; }
static size_t secondPressure(void) { return 32; }
static authVerdict firstAuth(ctx *c, slice name, slice password, user **who) {
    note("first auth;");
    return first_verdict;
}
static authVerdict secondAuth(ctx *c, slice name, slice password, user **who) {
    note("second auth of %.*s;", (int)name.len, name.ptr);
    return AUTH_GRANTED;
}
static status firstShutdown(uint32_t flags, reason *why) {
    note("first shutdown;");
    shutdown_flags = flags;
    return OK;
}
static status secondShutdown(uint32_t flags, reason *why) {
    note("second shutdown;");
    return second_shutdown == OK ? OK : reasonSet(why, second_shutdown, "not yet");
}
static void firstLog(void) { note("first log;"); }
static void firstFree(void) { note("first free;"); }
static void secondLog(void) { note("second log;"); }
static void secondWake(void) { note("second wake;"); }
static void printEarly(str *out) { strAppendText(out, "early"); }
static void printLate(str *out) { strAppendText(out, "late"); }
static void firstReset(void) { note("first reset;"); }

static const stageJob first_stages[] = {{STAGE_FREE, firstFree}, {STAGE_LOG, firstLog}, {0}};
static const stageJob second_stages[] = {{STAGE_WAKE, secondWake}, {STAGE_LOG, secondLog}, {0}};
static const infoSection first_info[] = {{"late", "# Late", INFO_NORMAL, INFO_KEYSPACE, printLate},
                                         {0}};
static const infoSection second_info[] = {
    {"early", "# Early", INFO_IN_ALL, INFO_SERVER, printEarly}, {0}};
static const feature first = {.name = "first",
                              .stages = first_stages,
                              .info = first_info,
                              .on_db = firstDb,
                              .on_session = firstSession,
                              .on_pressure = firstPressure,
                              .on_auth = firstAuth,
                              .on_shutdown = firstShutdown,
                              .on_stats_reset = firstReset};
static const feature second = {.name = "second",
                               .stages = second_stages,
                               .info = second_info,
                               .on_db = secondDb,
                               .on_child = secondChild,
                               .on_pressure = secondPressure,
                               .on_auth = secondAuth,
                               .on_shutdown = secondShutdown};
static const feature *const features[] = {&first, &second};

static int setUp(void **state) {
    engineTestSetUp(state);
    hooksUninstall();
    hooksInstall(features, COUNT_OF(features), NULL, 0);
    second_shutdown = OK;
    first_verdict = AUTH_NOT_MINE;
    return 0;
}

/* ------------------------------------------------------------------ callbacks of features */

static void stages_run_in_order_of_stage_then_of_feature(void **state) {
    stagesRun(STAGE_AFTER_SLEEP, STAGE_FREE);
    assert_noted("second wake;first log;second log;first free;");
    stagesRun(STAGE_LOG, STAGE_LOG);
    assert_noted("first log;second log;");
    stagesRun(STAGE_AFTER_SLEEP, STAGE_WAKE);
    assert_noted("second wake;");
    stagesRun(STAGE_REPLICATE, STAGE_WRITE);
    assert_noted("");
}

static void events_reach_all_features(void **state) {
    hooksDbEvent(&(dbEvent){.kind = DB_FLUSHED, .db_id = 1});
    assert_noted("first db 1 of 1;second db 1 of 1;");
    hooksSessionEvent(NULL, SESSION_ENDING);
    assert_noted("first session 1;");
    hooksChildEvent(CHILD_ENDED, 2, 3, 4);
    assert_noted("second child 3 2 3 4;");
    assert_int_equal(hooksPressure(), 42);
}

static void authentication_tries_features_until_one_decides(void **state) {
    user *who = NULL;
    assert_int_equal(hooksAuthenticate(NULL, SLICE("me"), SLICE(""), &who), AUTH_GRANTED);
    assert_noted("first auth;second auth of me;");
    first_verdict = AUTH_DENIED;
    assert_int_equal(hooksAuthenticate(NULL, SLICE("me"), SLICE(""), &who), AUTH_DENIED);
    assert_noted("first auth;");
    hooksUninstall();
    assert_int_equal(hooksAuthenticate(NULL, SLICE("me"), SLICE(""), &who), AUTH_DENIED);
}

static void shutdown_is_in_reverse_order_and_stops_at_a_refusal(void **state) {
    reason why = {""};
    assert_int_equal(hooksShutdown(SHUTDOWN_NOSAVE | SHUTDOWN_NOW, &why), OK);
    assert_noted("second shutdown;first shutdown;");
    assert_int_equal(shutdown_flags, SHUTDOWN_NOSAVE | SHUTDOWN_NOW);
    second_shutdown = ERR_AGAIN;
    assert_int_equal(hooksShutdown(0, &why), ERR_AGAIN);
    assert_noted("second shutdown;");
    assert_string_equal(why.text, "not yet");
}

static void gather(const infoSection *section, void *arg) {
    strAppendFormat(arg, "%s;", section->name);
}

static void sections_are_in_the_order_of_their_titles(void **state) {
    str names = STR_EMPTY;
    hooksEachInfoSection(gather, &names);
    assert_string_equal(strText(&names), "early;late;");
    strFree(&names);
}

static void sections_follow_features_that_come_and_go(void **state) {
    static const infoSection added_info[] = {
        {"middle", "# Middle", INFO_NORMAL, INFO_MEMORY, printLate}, {0}};
    static const feature added = {.name = "added", .info = added_info};
    str before = STR_EMPTY, with = STR_EMPTY, after = STR_EMPTY;
    hooksEachInfoSection(gather, &before);
    hooksAddFeature(&added);
    hooksEachInfoSection(gather, &with);
    hooksRemoveFeature(&added);
    hooksEachInfoSection(gather, &after);
    assert_non_null(strstr(with.ptr, "middle"));
    assert_null(strstr(before.ptr, "middle"));
    assert_string_equal(before.ptr, after.ptr);
    strFree(&before);
    strFree(&with);
    strFree(&after);
}

static void features_are_known_by_number(void **state) {
    assert_int_equal(hooksFeatureCount(), 2);
    assert_ptr_equal(hooksFeature(1), &second);
    hooksUninstall();
    assert_int_equal(hooksFeatureCount(), 0);
    stagesRun(STAGE_AFTER_SLEEP, STAGE_FREE);
    assert_noted("");
}

/* ------------------------------------------------------------------ what is armed while running */

static void otherTake(const propagated *p) { note("other;"); }
static void otherChanged(db *d, slice key, const keyEvent *event) { note("other;"); }
static void otherBefore(ctx *c) { note("other;"); }
static const sink other_sink = {.name = "other", .take = otherTake};
static const keyObserver other_observer = {.name = "other", .changed = otherChanged};
static const commandObserver other_seer = {.name = "other", .before = otherBefore};

static void sinks_take_in_the_order_of_arming(void **state) {
    const propagated p = {.db_id = 3, .slot = -1};
    assert_int_equal(engineHot.sinks, 0);
    sinkArm(&other_sink, true);
    sinkArm(&noteSink, true);
    sinkArm(&other_sink, true); /* registered already */
    assert_int_equal(engineHot.sinks, 2);
    hooksSinks(&p);
    assert_noted("other;db3;");
    sinkArm(&other_sink, false);
    sinkArm(&other_sink, false);
    assert_int_equal(engineHot.sinks, 1);
    hooksSinks(&p);
    assert_noted("db3;");
    sinkArm(&noteSink, false);
    hooksSinks(&p);
    assert_noted("");
}

static void observers_receive_keys_while_armed(void **state) {
    session s;
    sessionOpen(&s);
    (void)noted();
    keyObserverArm(&noteObserver, true);
    keyObserverArm(&other_observer, true);
    ask(&s, "put a 1|take a|drop none|quiet b|select 1|put a 1");
    assert_noted("put of a in 0;other;change of b in 0;other;put of a in 1;other;");
    keyObserverArm(&noteObserver, false);
    ask(&s, "put a 1");
    assert_noted("other;");
    keyObserverArm(&other_observer, false);
    ask(&s, "put a 1");
    assert_noted("");
    assert_int_equal(engineHot.observers, 0);
    sessionClear(&s);
}

static void observers_receive_expired_keys(void **state) {
    session s;
    reason why;
    assert_int_equal(keyspaceFeature.init(&why), OK);
    sessionOpen(&s);
    ask(&s, "put a 1 1000100");
    (void)noted();
    keyObserverArm(&noteObserver, true);
    uint64_t dirty = engineHot.dirty;
    setTestTime(START_MS + 101);
    ask(&s, "take a");
    assert_noted("expired of a in 0;");
    assert_int_equal(engineHot.dirty, dirty); /* nothing was changed */
    keyObserverArm(&noteObserver, false);
    sessionClear(&s);
}

static void observers_hear_of_removals_before_only_if_they_ask(void **state) {
    session s;
    reason why;
    assert_int_equal(keyspaceFeature.init(&why), OK);
    sessionOpen(&s);
    ask(&s, "put a 1|put b 1");
    (void)noted();
    keyObserverArm(&noteObserver, true);
    ask(&s, "drop a");
    assert_noted("drop of a in 0;");
    keyObserverArm(&removalObserver, true);
    keyObserverArm(&noteObserver, false);
    ask(&s, "drop b");
    assert_noted("deleting b;drop of b in 0;");
    keyObserverArm(&removalObserver, false);
    ask(&s, "put b 1|drop b");
    assert_noted("");
    sessionClear(&s);
}

static uint32_t wantLoaded(void) { return NOTIFY_LOADED; }

static void noteEvent(db *d, slice key, const keyEvent *event) {
    (void)d; /* there is one */
    note("%s %.*s %u;", event->name, (int)key.len, key.ptr, event->class);
}

static void loaded_keys_are_told_to_those_who_want_it(void **state) {
    static const keyObserver observer = {
        .name = "loaded", .changed = noteEvent, .event = noteEvent, .notes = wantLoaded};
    (void)noted();
    keyObserversTellLoaded(storeDb(0), SLICE("a"));
    keyObserverArm(&observer, true);
    keyObserversTellLoaded(storeDb(0), SLICE("a"));
    assert_noted("loaded a 4096;");
    keyObserverArm(&observer, false);
    keyObserversTellLoaded(storeDb(0), SLICE("a"));
    assert_noted("");
}

/* A commandObserver makes every command special, so that none of this costs anything on the fast
 * path. */
static void command_observers_see_executed_commands(void **state) {
    session s;
    sessionOpen(&s);
    (void)noted();
    commandObserverArm(&noteCommandObserver, true);
    assert_true(engineHot.armed & GATE_BIT_SPECIAL);
    ask(&s, "put a 1|take|nosuch|inner take a");
    assert_noted("before put;after put;before inner;before take;after take;after inner;");
    commandObserverArm(&other_seer, true);
    ask(&s, "take a");
    assert_noted("before take;other;after take;");
    commandObserverArm(&noteCommandObserver, false);
    assert_true(engineHot.armed & GATE_BIT_SPECIAL);
    commandObserverArm(&other_seer, false);
    assert_false(engineHot.armed & GATE_BIT_SPECIAL);
    ask(&s, "take a");
    assert_noted("");
    sessionClear(&s);
}

static void every_changed_key_counts_as_dirty(void **state) {
    session s;
    sessionOpen(&s);
    uint64_t dirty = engineHot.dirty;
    ask(&s, "put a 1|take a|drop none|put b 1|drop a|fail");
    assert_int_equal(engineHot.dirty, dirty + 3);
    ask(&s, "put c 1|flush");
    assert_int_equal(engineHot.dirty, dirty + 4 + 2);
    sessionClear(&s);
}

int test_hooks(void) {
#define TEST(name) cmocka_unit_test_setup_teardown(name, setUp, engineTestTearDown)
    const struct CMUnitTest tests[] = {
        TEST(stages_run_in_order_of_stage_then_of_feature),
        TEST(events_reach_all_features),
        TEST(authentication_tries_features_until_one_decides),
        TEST(shutdown_is_in_reverse_order_and_stops_at_a_refusal),
        TEST(sections_are_in_the_order_of_their_titles),
        TEST(sections_follow_features_that_come_and_go),
        TEST(features_are_known_by_number),
        TEST(sinks_take_in_the_order_of_arming),
        TEST(observers_receive_keys_while_armed),
        TEST(observers_receive_expired_keys),
        TEST(observers_hear_of_removals_before_only_if_they_ask),
        TEST(loaded_keys_are_told_to_those_who_want_it),
        TEST(command_observers_see_executed_commands),
        TEST(every_changed_key_counts_as_dirty),
    };
    return cmocka_run_group_tests_name("engine/hooks", tests, NULL, NULL);
}
