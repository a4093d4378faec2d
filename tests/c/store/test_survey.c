/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Surveys of values: which classes are learned, what is kept, what a dictionary gains. */
#include "store_test.h"

#include <stdio.h>

#include "base/base.h"
#include "base/random.h"
#include "store/value_survey.h"

enum { WIDTH = 512 };

static slice text(char *to, const char *format, uint64_t number) {
    return sliceMake(to, (size_t)snprintf(to, WIDTH, format, (unsigned long long)number));
}

static slice session(char *to) {
    return text(to,
                "{\"session\":%llu,\"device\":\"phone\",\"language\":\"en\",\"cart\":[],"
                "\"seen\":\"front page\",\"roles\":[\"customer\"],\"tracking\":false}",
                randomNext());
}

static const char *prefixOf(const surveyClass *c, char *to) {
    memcpy(to, c->prefix.ptr, c->prefix.len);
    to[c->prefix.len] = 0;
    return to;
}

static void test_frequent_prefixes_are_classes(void **state) {
    testSeed("survey");
    valueSurvey *s = valueSurveyNew(1 << 20);
    char key[WIDTH], value[WIDTH], name[WIDTH];
    for (uint64_t i = 0; i < 5000; i++) {
        valueSurveyAdd(s, 0, text(key, "sess:%llu", i), session(value));
        valueSurveyAdd(s, 0, text(key, "%016llx-one", randomNext()), session(value));
        if (i % 4 == 0) valueSurveyAdd(s, 0, text(key, "n:%llu", i), text(value, "%llu", i));
        if (i % 4 == 1) valueSurveyAdd(s, 3, text(key, "n:%llu", i), text(value, "%llu", i));
    }
    unsigned count = valueSurveyEnd(s);
    uint64_t values = 0, rest = 0, sessions = 0, numbers[4] = {0};
    for (unsigned i = 0; i < count; i++) {
        surveyClass c;
        valueSurveyClass(s, i, &c);
        values += c.values;
        prefixOf(&c, name);
        if (!strcmp(name, "sess:")) sessions = c.values;
        if (!strcmp(name, "n:")) numbers[c.db_id] = c.values;
        if (!c.prefix.len && c.db_id == 0) rest = c.values;
    }
    assert_int_equal(values, 12500);
    assert_int_equal(sessions, 5000);
    assert_int_equal(numbers[0], 1250);
    assert_int_equal(numbers[3], 1250);
    assert_int_equal(rest, 5000);
    assert_int_equal(count, 4);
    valueSurveyFree(s);
}

static void test_rare_prefixes_share_a_class(void **state) {
    testSeed("survey");
    valueSurvey *s = valueSurveyNew(1 << 20);
    char key[WIDTH], value[WIDTH];
    for (uint64_t i = 0; i < 40; i++) {
        for (uint64_t k = 0; k < 5; k++)
            valueSurveyAdd(s, 0, text(key, "tenant%llu:x", i), session(value));
    }
    surveyClass c;
    assert_int_equal(valueSurveyEnd(s), 1);
    valueSurveyClass(s, 0, &c);
    assert_int_equal(c.prefix.len, 0);
    assert_int_equal(c.values, 200);
    assert_int_equal(c.samples, 200);
    valueSurveyFree(s);
}

static void test_more_databases_than_places(void **state) {
    valueSurvey *s = valueSurveyNew(1 << 20);
    for (int id = 0; id < 1000; id++) {
        valueSurveyAdd(s, id, SLICE("a:1"), SLICE("one"));
        valueSurveyAdd(s, id, SLICE("b"), SLICE("two"));
    }
    assert_true(valueSurveyEnd(s) <= SURVEY_CLASSES_MAX);
    valueSurveyFree(s);
    s = valueSurveyNew(1 << 20);
    assert_int_equal(valueSurveyEnd(s), 0);
    valueSurveyFree(s);
}

static void test_samples_are_bounded_and_random(void **state) {
    testSeed("survey");
    enum { BYTES = 100 * 1000, VALUES = 20000 };
    size_t before = memUsed();
    valueSurvey *s = valueSurveyNew(BYTES);
    char key[WIDTH], value[WIDTH];
    for (uint64_t i = 0; i < VALUES; i++) {
        slice v = session(value);
        valueSurveyAdd(s, 0, text(key, i < 10000 ? "a:%llu" : "b:%llu", i), v);
    }
    surveyClass a, b;
    assert_int_equal(valueSurveyEnd(s), 2);
    valueSurveyClass(s, 0, &a);
    valueSurveyClass(s, 1, &b);
    assert_int_equal(a.values, 10000);
    assert_int_equal(b.values, 10000);
    /* Both have about half of the room, though one came first. */
    assert_true(a.samples > 200);
    assert_true(b.samples > 200);
    assert_true(memUsed() < before + 4 * BYTES);
    valueSurveyFree(s);
    char *large = memAlloc(3 * SURVEY_VALUE_MAX);
    memset(large, 'x', 3 * SURVEY_VALUE_MAX);
    s = valueSurveyNew(16 << 20);
    for (int i = 0; i < 500; i++)
        valueSurveyAdd(s, 0, SLICE("a:1"), sliceMake(large, 3 * SURVEY_VALUE_MAX));
    assert_int_equal(valueSurveyEnd(s), 1);
    valueSurveyClass(s, 0, &a);
    assert_int_equal(a.bytes, 500 * 3 * SURVEY_VALUE_MAX);
    assert_int_equal(a.samples, SURVEY_CLASS_BYTES / SURVEY_VALUE_MAX);
    valueSurveyFree(s);
    memFree(large);
}

static void test_a_dictionary_wins_on_values_it_has_not_seen(void **state) {
    if (valueCodecRequire(NULL) != OK) skip();
    testSeed("survey");
    valueSurvey *s = valueSurveyNew(4 << 20);
    char key[WIDTH], value[WIDTH], noise[64];
    for (uint64_t i = 0; i < 2000; i++) {
        valueSurveyAdd(s, 0, text(key, "sess:%llu", i), session(value));
        randomSecret(noise, sizeof(noise));
        valueSurveyAdd(s, 0, text(key, "noise:%llu", i), sliceMake(noise, sizeof(noise)));
        if (i < SURVEY_SAMPLES_MIN - 1)
            valueSurveyAdd(s, 0, text(key, "few:%llu", i), session(value));
    }
    unsigned count = valueSurveyEnd(s), seen = 0;
    for (unsigned i = 0; i < count; i++) {
        surveyClass c;
        char name[WIDTH];
        valueTrial t;
        valueSurveyClass(s, i, &c);
        prefixOf(&c, name);
        valueTrialPlan plan = {.dictionary_max = VALUE_CODEC_DICTIONARY_MAX};
        valueSurveyTry(s, i, &plan, &t);
        if (!strcmp(name, "sess:")) {
            assert_true(t.tested > 400);
            assert_true(t.tested < 600);
            assert_true(t.share < 0.35);
            assert_true(t.share < t.alone);
            assert_non_null(t.codec);
            valueTrial again;
            plan.former = t.codec;
            plan.train_above = t.share;
            valueSurveyTry(s, i, &plan, &again);
            assert_true(again.former == t.share);
            assert_null(again.codec);
            assert_true(again.share == 1);
            plan.train_above = t.share * 0.99;
            valueSurveyTry(s, i, &plan, &again);
            assert_non_null(again.codec);
            assert_true(again.share == t.share);
            valueCodecFree(again.codec);
            plan.is_quick = true;
            valueSurveyTry(s, i, &plan, &again);
            assert_int_equal(again.tested, 100);
            assert_true(again.share < t.share * 1.5);
            assert_true(again.share > t.share * 0.7);
            valueCodecFree(again.codec);
            seen++;
        } else if (!strcmp(name, "noise:")) {
            assert_true(t.share > 0.97); /* trained or not */
            assert_true(t.alone == 1);
            seen++;
        } else {
            assert_int_equal(t.tested, 0);
            assert_null(t.codec);
            seen++;
        }
        assert_true(t.former == 1);
        valueCodecFree(t.codec);
    }
    assert_int_equal(seen, 3);
    valueSurveyFree(s);
    valueCodecFreeContexts();
}

int test_survey(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_frequent_prefixes_are_classes),
        cmocka_unit_test(test_rare_prefixes_share_a_class),
        cmocka_unit_test(test_more_databases_than_places),
        cmocka_unit_test(test_samples_are_bounded_and_random),
        cmocka_unit_test(test_a_dictionary_wins_on_values_it_has_not_seen),
    };
    return cmocka_run_group_tests_name("surveys of values", tests, NULL, NULL);
}
