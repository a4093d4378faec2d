/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Registries that grow after the start: commands, features with their stages, jobs and INFO
 * sections, armed hooks, latency events, directives. */
#include "engine_test.h"

#include <stdio.h>

#include "base/base.h"
#include "config/config.h"
#include "engine/engine_priv.h"
#include "engine/hooks_priv.h"
#include "engine/hot.h"
#include "engine/latency.h"
#include "engine/reply.h"
#include "engine/tick.h"

static session s;

static int build(void **state) {
    int failed = engineTestSetUp(state);
    sessionOpen(&s);
    return failed;
}

static int raze(void **state) {
    sessionClear(&s);
    return engineTestTearDown(state);
}

/* ------------------------------------------------------------------ commands */

static void loadedCommand(ctx *c) { replyStatus(c, SLICE("loaded")); }

static const commandSpec subs[] = {{.name = "one", .proc = loadedCommand, .arity = 2}};
static const commandSpec module_specs[] = {
    {.name = "loaded.command", .proc = loadedCommand, .arity = 1},
    {.name = "loaded.with.a.long.name", .proc = loadedCommand, .arity = -1, .flags = CMD_WRITE},
    {.name = "loaded.box", .arity = -2, .subs = subs, .sub_count = COUNT_OF(subs)},
};

static void loadCommand(ctx *c) {
    assert_int_equal(commandLoad(module_specs, COUNT_OF(module_specs)), OK);
    replyOk(c);
}

static void unloadCommand(ctx *c) {
    for (size_t i = 0; i < COUNT_OF(module_specs); i++)
        assert_int_equal(commandUnload(sliceOf(module_specs[i].name)), OK);
    replyOk(c);
}

static const commandSpec loader_specs[] = {
    {.name = "load", .proc = loadCommand, .arity = 1, .flags = CMD_STOPS_BATCH},
    {.name = "unload", .proc = unloadCommand, .arity = 1, .flags = CMD_STOPS_BATCH},
};

/* Runs one request after the other, like the reader, which parses again after a command that stops
 * batches. */
static void askEach(const char *const *requests, size_t count) {
    for (size_t i = 0; i < count; i++) {
        ask(&s, requests[i]);
        s.flags &= ~SESSION_REPARSE;
    }
}

static void commands_come_and_go_while_the_server_runs(void **state) {
    assert_int_equal(commandLoad(loader_specs, COUNT_OF(loader_specs)), OK);
    int before = commandCount();
    const command *put = commandFind(SLICE("put"));
    const char *const requests[] = {"loaded.command",
                                    "load",
                                    "LOADED.command|loaded.with.a.long.name x|loaded.box one",
                                    "put a 1|take a",
                                    "unload",
                                    "loaded.box one",
                                    "load",
                                    "loaded.box one"};
    askEach(requests, COUNT_OF(requests));
    assert_replies(
        &s, "-ERR unknown command 'loaded.command', with args beginning with:  +OK "
            "+loaded +loaded +loaded +OK $1 1 +OK "
            "-ERR unknown command 'loaded.box', with args beginning with: 'one'  +OK +loaded");
    assert_int_equal(commandCount(), before + 3);
    assert_ptr_equal(commandFind(SLICE("put")), put);
}

static void a_command_that_is_loaded_again_needs_no_new_id(void **state) {
    assert_int_equal(commandLoad(&module_specs[2], 1), OK);
    int count = commandIdCount(), id = commandFind(SLICE("loaded.box"))->id;
    for (int i = 0; i < 100; i++) {
        ask(&s, "loaded.box one");
        assert_replies(&s, "+loaded");
        assert_int_equal(commandUnload(SLICE("loaded.box")), OK);
        ask(&s, "loaded.box one");
        assert_replies(&s, "-ERR unknown command 'loaded.box', with args beginning with: 'one' ");
        assert_int_equal(commandLoad(&module_specs[2], 1), OK);
    }
    assert_int_equal(commandIdCount(), count);
    assert_int_equal(commandFind(SLICE("loaded.box"))->id, id);
    assert_int_equal(commandFindByFullName(SLICE("loaded.box|one"))->calls, 0);
    /* A transaction may have queued the one with other arguments. */
    commandSpec other = module_specs[0];
    assert_int_equal(commandLoad(&other, 1), OK);
    ask(&s, "multi|loaded.command");
    assert_int_equal(commandUnload(sliceOf(other.name)), OK);
    other.arity = -2;
    assert_int_equal(commandLoad(&other, 1), OK);
    assert_int_equal(commandIdCount(), count + 2);
    ask(&s, "exec");
    assert_replies(&s, "+OK +QUEUED -EXECABORT Transaction discarded because of: wrong number of "
                       "arguments for 'loaded.command' command");
}

static void a_loaded_command_gets_its_gates(void **state) {
    assert_int_equal(commandLoad(module_specs, COUNT_OF(module_specs)), OK);
    gateArm(&writesGate, true);
    verdict = GATE_REFUSED;
    ask(&s, "loaded.with.a.long.name|loaded.command");
    assert_replies(&s, "-REFUSED by writes +loaded");
    gateArm(&writesGate, false);
}

static void names_in_use_are_refused_and_nothing_is_loaded(void **state) {
    static const commandSpec two[] = {{.name = "fresh", .proc = loadedCommand, .arity = 1},
                                      {.name = "PUT", .proc = loadedCommand, .arity = 1}};
    static const commandSpec twice[] = {{.name = "fresh", .proc = loadedCommand, .arity = 1},
                                        {.name = "Fresh", .proc = loadedCommand, .arity = 1}};
    int before = commandCount();
    assert_int_equal(commandLoad(two, 2), ERR_EXISTS);
    assert_int_equal(commandLoad(twice, 2), ERR_EXISTS);
    assert_int_equal(commandCount(), before);
    assert_int_equal(commandUnload(SLICE("fresh")), ERR_NOT_FOUND);
}

static void a_queued_command_that_was_unloaded_is_refused_by_exec(void **state) {
    assert_int_equal(commandLoad(module_specs, COUNT_OF(module_specs)), OK);
    ask(&s, "multi|loaded.command|say x");
    assert_int_equal(commandUnload(SLICE("loaded.command")), OK);
    ask(&s, "exec");
    assert_replies(&s, "+OK +QUEUED +QUEUED -EXECABORT Transaction discarded because of: unknown "
                       "command 'loaded.command', with args beginning with: ");
}

/* ------------------------------------------------------------------ features */

static void jobOfModule(void) { note("stage;"); }
static void tickOfModule(int64_t budget_us) { note("tick;"); }
static void printModule(str *out) { strAppendText(out, "module_field:1\r\n"); }
static void onDb(const dbEvent *e) { note("event %d;", e->kind); }

static const stageJob module_stages[] = {{STAGE_LOG, jobOfModule}, {0}};
static bool module_is_busy;
static bool moduleIsBusy(void) { return module_is_busy; }
static const tickJob module_ticks[] = {{"module", 0, tickOfModule, moduleIsBusy}, {0}};
static const infoSection module_info[] = {
    {"module", "# Module", INFO_NORMAL, INFO_MODULES, printModule}, {0}};
static const feature module_feature = {.name = "module",
                                       .stages = module_stages,
                                       .ticks = module_ticks,
                                       .info = module_info,
                                       .on_db = onDb};

static void findSection(const infoSection *section, void *arg) {
    *(bool *)arg |= section == module_info;
}

static bool hasSection(void) {
    bool found = false;
    hooksEachInfoSection(findSection, &found);
    return found;
}

static const feature adder;
static bool add_it;

/* Changes the features from inside of a stage, as a command that loads a module does. */
static void changeFeatures(void) {
    if (add_it) {
        hooksAddFeature(&module_feature);
    } else {
        hooksRemoveFeature(&module_feature);
    }
    hooksRemoveFeature(&adder);
}

static const stageJob adder_stages[] = {{STAGE_EXECUTE, changeFeatures}, {0}};
static const feature adder = {.name = "adder", .stages = adder_stages};

static void features_come_and_go_at_a_safe_point(void **state) {
    engineConf.active_expire_effort = 1; /* the keyspace's own jobs run, too */
    add_it = true;
    hooksAddFeature(&adder);
    stagesRun(STAGE_EXECUTE, STAGE_FREE);
    assert_noted(""); /* its stages begin with the next turn */
    stagesRun(STAGE_EXECUTE, STAGE_FREE);
    assert_noted("stage;");
    ticksRun(1000);
    hooksDbEvent(&(dbEvent){.kind = DB_FLUSHED, .db_id = 0});
    assert_noted("tick;event 1;");
    assert_true(hasSection());
    assert_false(ticksAreBusy());
    module_is_busy = true;
    assert_true(ticksAreBusy());
    add_it = false;
    hooksAddFeature(&adder);
    stagesRun(STAGE_EXECUTE, STAGE_FREE);
    assert_noted(""); /* it ends in the same turn */
    stagesRun(STAGE_EXECUTE, STAGE_FREE);
    ticksRun(1000);
    assert_noted("");
    assert_false(hasSection());
    assert_false(ticksAreBusy());
}

static void many_hooks_of_a_kind_are_armed_at_once(void **state) {
    enum { MANY = 40 };
    static sink sinks[MANY];
    static keyObserver observers[MANY];
    static commandObserver command_observers[MANY];
    for (int i = 0; i < MANY; i++) {
        sinks[i] = noteSink;
        observers[i] = noteObserver;
        command_observers[i] = noteCommandObserver;
        sinkArm(&sinks[i], true);
        keyObserverArm(&observers[i], true);
        commandObserverArm(&command_observers[i], true);
    }
    ask(&s, "put a 1");
    const char *text = noted();
    int counts[3] = {0};
    for (const char *at = text; (at = strstr(at, "db0 put a 1;")); at++) counts[0]++;
    for (const char *at = text; (at = strstr(at, "put of a in 0;")); at++) counts[1]++;
    for (const char *at = text; (at = strstr(at, "before put;")); at++) counts[2]++;
    assert_int_equal(counts[0], MANY);
    assert_int_equal(counts[1], MANY);
    assert_int_equal(counts[2], MANY);
    for (int i = 0; i < MANY; i++) {
        sinkArm(&sinks[i], false);
        keyObserverArm(&observers[i], false);
        commandObserverArm(&command_observers[i], false);
    }
    assert_int_equal(engineHot.sinks + engineHot.observers + engineHot.command_observers, 0);
}

/* ---------------------------------------------------------------- latency events and directives */

static void there_may_be_any_number_of_latency_events(void **state) {
    enum { MANY = 100 };
    static char names[MANY][24];
    (void)latencyReset((slice){0}); /* how many there were is of no interest */
    engineConf.latency_monitor_threshold = 1;
    for (int i = 0; i < MANY; i++) {
        snprintf(names[i], sizeof(names[i]), "event-%d", i);
        latencyNote(names[i], 5);
    }
    assert_int_equal(latencyEventCount(), MANY);
    assert_int_equal(latencyFind(SLICE("event-99"))->max_ms, 5);
    assert_int_equal(latencyReset((slice){0}), MANY);
    engineConf.latency_monitor_threshold = 0;
}

int test_registries(void) {
#define TEST(name) cmocka_unit_test_setup_teardown(name, build, raze)
    const struct CMUnitTest tests[] = {
        TEST(commands_come_and_go_while_the_server_runs),
        TEST(a_command_that_is_loaded_again_needs_no_new_id),
        TEST(a_loaded_command_gets_its_gates),
        TEST(names_in_use_are_refused_and_nothing_is_loaded),
        TEST(a_queued_command_that_was_unloaded_is_refused_by_exec),
        TEST(features_come_and_go_at_a_safe_point),
        TEST(many_hooks_of_a_kind_are_armed_at_once),
        TEST(there_may_be_any_number_of_latency_events),
    };
    return cmocka_run_group_tests_name("engine/registries", tests, NULL, NULL);
#undef TEST
}
