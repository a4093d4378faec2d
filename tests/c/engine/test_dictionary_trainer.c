/* SPDX-License-Identifier: BSD-3-Clause
 *
 * The trainer of dictionaries, with its thread: what is accepted, what is left alone, drift of the
 * data, and its end. The monotonic clock is the real one plus what the tests skip. */
#include "engine_test.h"

#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "base/base.h"
#include "base/random.h"
#include "engine/dictionary_trainer.h"
#include "engine/engine_priv.h"
#include "store/compressed.h"
#include "store/dictionary.h"
#include "store/store.h"

enum { TEXT = 512, KEYS = 2500 };

static int64_t skipped_ns; /* written by the main thread, read by the trainer's */

static int64_t realNs(void) {
    struct timespec now;
    assert_int_equal(clock_gettime(CLOCK_MONOTONIC, &now), 0);
    return (int64_t)now.tv_sec * 1000000000 + now.tv_nsec;
}

static int64_t monoNs(void) { return realNs() + __atomic_load_n(&skipped_ns, __ATOMIC_RELAXED); }

static void skipSeconds(int64_t s) {
    __atomic_fetch_add(&skipped_ns, s * 1000000000, __ATOMIC_RELAXED);
}

static void set(int db_id, const char *key, const char *value) {
    dbPosition at;
    slice name = sliceOf(key);
    robj *old = dbFind(storeDb(db_id), name, storeHash(name), lookAt(START_MS), &at);
    dbSetString(storeDb(db_id), name, &at, old, sliceOf(value), NULL, OBJECT_NO_EXPIRE);
}

static void writeSession(char *to, const char *kind) {
    snprintf(to, TEXT,
             "{\"%s\":\"%016llx\",\"%s-device\":\"phone\",\"%s-language\":\"en\",\"%s-cart\":[],"
             "\"seen\":\"front page of %s\",\"%s-tracking\":false}",
             kind, (unsigned long long)randomNext(), kind, kind, kind, kind, kind);
}

static void fill(int db_id, const char *prefix, const char *kind) {
    char key[TEXT], value[TEXT];
    for (int i = 0; i < KEYS; i++) {
        snprintf(key, sizeof(key), "%s%d", prefix, i);
        writeSession(value, kind);
        set(db_id, key, value);
    }
}

static void tick(void) { dictionaryTrainerFeature.ticks[0].run(1000); }

static uint64_t number(const char *name) {
    str info = STR_EMPTY;
    char field[64];
    dictionaryTrainerFeature.info[0].print(&info);
    dictionaryTrainerFeature.info[1].print(&info);
    snprintf(field, sizeof(field), "%s:", name);
    const char *at = strstr(strText(&info), field);
    assert_non_null(at);
    unsigned long long value = 0;
    assert_int_equal(sscanf(at + strlen(field), "%llu", &value), 1);
    strFree(&info);
    return value;
}

/* Runs the cron, in a time of its own, until `is_done` or for five real minutes. */
static void runUntil(bool (*is_done)(void)) {
    int64_t end_ns = realNs() + INT64_C(300) * 1000000000;
    while (!is_done()) {
        tick();
        skipSeconds(1);
        (void)sched_yield(); /* always succeeds on Linux */
        if (realNs() > end_ns) fail_msg("five minutes have passed");
    }
}

static uint64_t rounds_wanted;
static bool roundsHavePassed(void) {
    /* The next round has begun to test: all results of the former ones are there. */
    return number("value_dictionary_rounds") >= rounds_wanted;
}
static void runRounds(uint64_t rounds) {
    rounds_wanted = number("value_dictionary_rounds") + rounds;
    runUntil(roundsHavePassed);
}

static void turn(bool on) {
    engineConf.value_compression = on ? COMPRESSION_IDLE : COMPRESSION_NO;
    engineConf.value_compression_min_bytes = 64;
    engineConf.value_compression_cpu = 50;
}

static int setUp(void **state) {
    static const clockSource source = {monoNs, NULL};
    engineTestSetUp(state);
    clockSetSource(&source);
    randomSeed(7);
    engineConf.value_compression_dict_memory = 32 << 20;
    return 0;
}

static int tearDown(void **state) {
    assert_int_equal(dictionaryTrainerFeature.on_shutdown(0, NULL), OK);
    turn(false);
    return engineTestTearDown(state);
}

static bool sessionsHaveOne(void) { return dictionaryOfKey(0, SLICE("sess:1")) != NULL; }

static void test_only_what_gains_gets_a_dictionary(void **state) {
    if (valueCodecRequire(NULL) != OK) skip();
    char key[TEXT], value[2 * TEXT], noise[96];
    fill(0, "sess:", "session");
    for (int i = 0; i < KEYS; i++) {
        snprintf(key, sizeof(key), "noise:%d", i);
        for (size_t j = 0; j < sizeof(noise); j++) noise[j] = (char)(' ' + 1 + randomUniform(94));
        snprintf(value, sizeof(value), "%.*s", (int)sizeof(noise), noise);
        set(0, key, value);
        snprintf(key, sizeof(key), "short:%d", i);
        set(0, key, "of sixty-four bytes none");
    }
    tick();
    assert_int_equal(number("value_dictionary_rounds"), 0); /* it is off */
    turn(true);
    runUntil(sessionsHaveOne);
    runRounds(1);
    assert_null(dictionaryOfKey(0, SLICE("noise:1")));
    assert_null(dictionaryOfKey(0, SLICE("short:1")));
    assert_null(dictionaryOfKey(1, SLICE("sess:1")));
    assert_int_equal(number("value_dictionaries"), 1);
    assert_int_equal(number("value_dictionaries_accepted"), 1);
    /* It is of use for values that did not exist. */
    const valueDictionary *d = dictionaryOfKey(0, SLICE("sess:1"));
    char packed[TEXT];
    writeSession(value, "session");
    size_t len = strlen(value), n = dictionaryCompress(d, sliceMake(value, len), packed, len);
    assert_true(n > 0);
    assert_true(n < len / 3);
    /* Nothing has changed: neither class is trained again. */
    uint64_t trained = number("value_dictionaries_trained");
    runRounds(1);
    uint64_t after = number("value_dictionaries_trained");
    assert_true(after <= trained + 1); /* noise, once in 1, 2, 4 ... rounds */
    assert_int_equal(number("value_dictionaries_accepted"), 1);
}

static const valueDictionary *first;
static bool thereIsANewerOne(void) { return dictionaryOfKey(0, SLICE("sess:1")) != first; }

static void test_values_that_have_changed_get_a_newer_one(void **state) {
    if (valueCodecRequire(NULL) != OK) skip();
    fill(0, "sess:", "session");
    turn(true);
    runUntil(sessionsHaveOne);
    first = dictionaryOfKey(0, SLICE("sess:1"));
    uint32_t id = dictionaryId(first);
    dictionaryUse(id);
    fill(0, "sess:", "visitor");
    runUntil(thereIsANewerOne);
    dictionariesSweep(1);
    dictionaryReport r;
    assert_true(dictionaryRead(id, &r));
    assert_false(r.is_current);
    dictionaryRelease(id, 1);
    dictionariesSweep(2);
    assert_null(dictionaryById(id));
}

static void test_a_limit_of_memory_is_kept(void **state) {
    if (valueCodecRequire(NULL) != OK) skip();
    engineConf.value_compression_dict_memory = 1 << 17;
    fill(0, "sess:", "session");
    turn(true);
    runRounds(2);
    assert_true(number("value_dictionaries_without_memory") > 0);
    assert_null(dictionaryOfKey(0, SLICE("sess:1")));
}

static void test_databases_that_change_end_a_round(void **state) {
    if (valueCodecRequire(NULL) != OK) skip();
    fill(0, "sess:", "session");
    turn(true);
    runRounds(1);
    tick(); /* starts the thread */
    dictionaryTrainerFeature.on_db(&(dbEvent){.kind = DB_SWAPPED, .db_id = 0, .other_id = 1});
    uint64_t rounds = number("value_dictionary_rounds");
    while (number("value_dictionary_rounds") == rounds) {
        assert_null(dictionaryOfKey(0, SLICE("sess:1")));
        tick();
        skipSeconds(1);
    }
    runUntil(sessionsHaveOne);
}

static void test_it_can_be_turned_off_at_any_time(void **state) {
    if (valueCodecRequire(NULL) != OK) skip();
    fill(0, "sess:", "session");
    for (int ticks = 1; ticks < 8; ticks++) {
        turn(true);
        for (int i = 0; i < ticks; i++) {
            tick();
            skipSeconds(1);
        }
        turn(false);
        tick();
    }
    turn(true);
    tick();
    tick();
    assert_int_equal(dictionaryTrainerFeature.on_shutdown(0, NULL), OK);
    turn(false);
    uint64_t rounds = number("value_dictionary_rounds");
    skipSeconds(1000);
    tick();
    assert_int_equal(number("value_dictionary_rounds"), rounds);
}

/* ------------------------------------------------------------------ a day */

enum { WORDS = 96, WORD = 8, DAY_KEYS = 2000, NEW_WORDS = 12 /* in an hour */ };

static char words[WORDS][WORD + 1];

static void changeWord(unsigned index) {
    for (int i = 0; i < WORD; i++) words[index][i] = (char)('a' + randomUniform(26));
}

static const char *anyWord(void) { return words[randomUniform(WORDS)]; }

static void writeRecord(char *to) {
    int len = snprintf(to, TEXT, "{\"id\":%llu,\"tags\":[", (unsigned long long)randomNext());
    for (int i = 0; i < 24; i++)
        len += snprintf(to + len, TEXT - (size_t)len, i % 4 ? "%s " : "\"],\"%s ", anyWord());
}

/* Writes some of the keys anew, with the words of this time. */
static void writeSome(unsigned from, unsigned to) {
    char key[TEXT], value[TEXT];
    for (unsigned i = from; i < to; i++) {
        snprintf(key, sizeof(key), "sess:%u", i);
        writeRecord(value);
        set(0, key, value);
    }
}

static double ratioNow(void) {
    compressedReport r;
    compressedGetReport(&r);
    return r.text_bytes ? (double)r.packed_bytes / (double)r.text_bytes : 1;
}

static void compressAll(int64_t now_ms) {
    compressPlan plan = {.min = 64, .idle_s = 0, .pause_s = 0, .budget_us = 1000000};
    storeSetClock(now_ms);
    while (storeCompressTurn(&plan)) {}
    dictionariesSweep(now_ms);
}

/* Words are replaced all the time, so that after eight hours none of the first ones is left, and
 * values are written anew within two hours. New dictionaries keep the values as small as the first
 * one did, and replace those before. DAY_STEPS: steps in an hour; with DAY_REPORT each is printed.
 */
static void test_a_day_of_values_that_drift(void **state) {
    if (valueCodecRequire(NULL) != OK) skip();
    enum { HOURS = 24, DICTIONARIES_MOST = 4 };
    const char *text = getenv("DAY_STEPS");
    unsigned steps = text ? (unsigned)strtoul(text, NULL, 10) : 1;
    bool report = getenv("DAY_REPORT") != NULL;
    if (steps < 1 || steps > NEW_WORDS) fail_msg("DAY_STEPS is 1 to %d", NEW_WORDS);
    for (unsigned i = 0; i < WORDS; i++) changeWord(i);
    writeSome(0, DAY_KEYS);
    turn(true);
    runUntil(sessionsHaveOne);
    int64_t now_ms = START_MS;
    compressAll(now_ms);
    double first_ratio = ratioNow(), worst = 0, last = 1;
    uint64_t most = 0;
    unsigned word = 0, at = 0;
    for (unsigned step = 1; step <= HOURS * steps; step++) {
        for (unsigned i = 0; i < NEW_WORDS / steps; i++) changeWord(word++ % WORDS);
        unsigned part = DAY_KEYS / 2 / steps;
        writeSome(at, at + part);
        at = (at + part) % (2 * steps * part);
        now_ms += 3600 * 1000 / steps;
        runRounds(2); /* the first one may have sampled before */
        compressAll(now_ms);
        uint64_t count = number("value_dictionaries");
        if (count > most) most = count;
        last = ratioNow();
        if (last > worst) worst = last;
        assert_true(dictionariesMemory() <= (size_t)engineConf.value_compression_dict_memory);
        if (report)
            print_message("hour %.2f: ratio %.3f, %llu dictionaries, %llu accepted, %zu bytes\n",
                          (double)step / steps, last, (unsigned long long)count,
                          (unsigned long long)number("value_dictionaries_accepted"),
                          dictionariesMemory());
    }
    assert_true(number("value_dictionaries_accepted") >= 3);
    assert_true(most <= DICTIONARIES_MOST);
    assert_true(first_ratio < 0.5);
    assert_true(worst < first_ratio * 1.5);
    assert_true(last < first_ratio * 1.3);
}

int test_dictionary_trainer(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(test_only_what_gains_gets_a_dictionary, setUp, tearDown),
        cmocka_unit_test_setup_teardown(test_values_that_have_changed_get_a_newer_one, setUp,
                                        tearDown),
        cmocka_unit_test_setup_teardown(test_a_limit_of_memory_is_kept, setUp, tearDown),
        cmocka_unit_test_setup_teardown(test_databases_that_change_end_a_round, setUp, tearDown),
        cmocka_unit_test_setup_teardown(test_it_can_be_turned_off_at_any_time, setUp, tearDown),
        cmocka_unit_test_setup_teardown(test_a_day_of_values_that_drift, setUp, tearDown),
    };
    return cmocka_run_group_tests_name("trainer of dictionaries", tests, NULL, NULL);
}
