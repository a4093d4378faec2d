/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Tests of ds/stream_producers: random histories against a plain array, copies, limits, expiry, and
 * streams that another thread frees while ids expire. */
#include "ds_test.h"

#include <pthread.h>
#include <stdio.h>
#include <string.h>

#include "base/base.h"
#include "base/random.h"
#include "ds/stream_private.h"

enum { PRODUCERS = 5, IIDS = 40, IDS_MAX = 7, ROUNDS = 4000, DURATION_S = 100 };

/* An id of the model; number 0: it is not there. */
typedef struct wantedId {
    streamId entry;
    uint64_t number; /* in the order in which they were added */
} wantedId;
static wantedId want[PRODUCERS][IIDS];
static uint64_t last_number;

static slice nameOf(const char *prefix, unsigned n, char *text) {
    int len = snprintf(text, 32, "%s%u", prefix, n);
    return sliceMake(text, (size_t)len);
}

static unsigned wantedOf(unsigned p) {
    unsigned count = 0;
    for (unsigned i = 0; i < IIDS; i++) count += want[p][i].number != 0;
    return count;
}

static void addWanted(unsigned p, unsigned i, streamId entry) {
    want[p][i] = (wantedId){entry, ++last_number};
    if (wantedOf(p) <= IDS_MAX) return;
    unsigned oldest = i;
    for (unsigned o = 0; o < IIDS; o++) {
        if (want[p][o].number && want[p][o].number < want[p][oldest].number) oldest = o;
    }
    want[p][oldest].number = 0;
}

static void expireWanted(int64_t now_ms) {
    for (unsigned n = 0; n < PRODUCERS * IIDS; n++) {
        wantedId *w = &want[n / IIDS][n % IIDS];
        if ((int64_t)w->entry.ms <= now_ms - DURATION_S * 1000) w->number = 0;
    }
}

static void compareAll(const stream *s) {
    const streamProducers *t = streamProducersOf(s);
    uint64_t ids = 0, producers = 0;
    const char *broken = streamVerify(s);
    if (broken) fail_msg("%s", broken);
    for (unsigned p = 0; p < PRODUCERS; p++) {
        ids += wantedOf(p);
        producers += wantedOf(p) > 0;
        for (unsigned i = 0; i < IIDS; i++) {
            char name[32], iid[32];
            streamId found;
            bool has = streamProducedFind(t, 0, nameOf("p", p, name), nameOf("i", i, iid), &found);
            assert_int_equal(has, want[p][i].number != 0);
            if (has) assert_true(streamIdEqual(found, want[p][i].entry));
        }
    }
    assert_int_equal(streamProducersIds(t), ids);
    assert_int_equal(streamProducersCount(t), producers);
}

static void test_history(void **unused) {
    (void)unused;
    stream *s = streamNew();
    assert_null(streamProducersOf(s));
    streamProducers *t = streamProducersMake(s);
    streamProducersState state = {.duration_s = DURATION_S, .ids_max = IDS_MAX};
    streamProducersSet(t, &state);
    for (int64_t round = 0; round < ROUNDS; round++) {
        char name[32], iid[32];
        unsigned p = (unsigned)randomUniform(PRODUCERS), i = (unsigned)randomUniform(IIDS);
        int64_t now_ms = round * 1000;
        streamId entry = {(uint64_t)now_ms, randomUniform(3)};
        if (randomUniform(10) == 0) entry.ms /= 2; /* XIDMPRECORD of an old entry */
        streamProducedAdd(t, nameOf("p", p, name), nameOf("i", i, iid), entry);
        addWanted(p, i, entry);
        if (randomUniform(20) == 0) {
            (void)streamProducersExpire(t, now_ms, UINT64_MAX);
            expireWanted(now_ms);
        }
        if (randomUniform(50) == 0) compareAll(s);
    }
    compareAll(s);
    assert_int_equal(streamProducersGet(t).added, ROUNDS);
    assert_true(streamBytes(s, 0) > memSizeOf(s) + streamProducersIds(t) * sizeof(void *));

    stream *copy = streamCopy(s);
    compareAll(copy);
    streamFrozen *frozen = streamFreeze(s);
    state.ids_max++;
    streamProducersSet(t, &state); /* forgets all */
    assert_int_equal(streamProducersIds(t), 0);
    assert_true(streamProducersIds(streamProducersOf(streamFrozenRest(frozen))) > 0);
    streamThaw(frozen, s);
    compareAll(copy);
    uint64_t moved = 0, kept = 0;
    streamProducersCompact(streamProducersOf(copy), &moved, &kept);
    compareAll(copy);
    streamFree(s, NULL);
    streamFree(copy, NULL);
}

static void test_edges_of_expiry(void **unused) {
    (void)unused;
    stream *s = streamNew();
    streamProducers *t = streamProducersMake(s);
    streamId found;
    streamProducedAdd(t, SLICE("p"), SLICE("i"), (streamId){5000, 1});
    streamProducedAdd(t, SLICE("p"), SLICE("future"), (streamId){UINT64_MAX, UINT64_MAX});
    streamProducedAdd(t, SLICE("q"), SLICE("zero"), (streamId){0, 1});
    assert_true(streamProducedFind(t, 104999, SLICE("p"), SLICE("i"), &found));
    assert_false(streamProducedFind(t, 105000, SLICE("p"), SLICE("i"), &found));
    assert_true(streamProducedFind(t, INT64_MAX, SLICE("p"), SLICE("future"), &found));
    assert_int_equal(streamProducersExpire(t, 99999, UINT64_MAX), 0);
    assert_int_equal(streamProducersExpire(t, 200000, 1), 1);
    assert_int_equal(streamProducersCount(t), 1); /* q is gone */
    assert_int_equal(streamProducersExpire(t, 200000, 9), 1);
    assert_int_equal(streamProducersIds(t), 1);
    assert_null(streamVerify(s));
    streamFree(s, NULL);
}

static void test_limits_are_valid(void **unused) {
    (void)unused;
    streamProducersState state = streamProducersStateDefault();
    assert_true(streamProducersStateIsValid(&state));
    state.duration_s = 0;
    assert_false(streamProducersStateIsValid(&state));
    state.duration_s = STREAM_IDS_DURATION_MAX_S + 1;
    assert_false(streamProducersStateIsValid(&state));
    state = streamProducersStateDefault();
    state.ids_max = STREAM_IDS_COUNT_MAX + 1;
    assert_false(streamProducersStateIsValid(&state));
    state.ids_max = 0;
    assert_false(streamProducersStateIsValid(&state));
}

static void *freeStreams(void *arg) {
    stream **streams = arg;
    for (int i = 0; i < 200; i++) streamFree(streams[i], NULL);
    return NULL;
}

static void test_another_thread_frees(void **unused) {
    (void)unused;
    stream *streams[200];
    pthread_t thread;
    for (unsigned i = 0; i < 200; i++) {
        streams[i] = streamNew();
        for (unsigned j = 0; j < 50; j++) {
            char iid[32];
            streamProducedAdd(streamProducersMake(streams[i]), SLICE("p"), nameOf("i", j, iid),
                              (streamId){j + 1, 1});
        }
    }
    assert_int_equal(pthread_create(&thread, NULL, freeStreams, streams), 0);
    for (int i = 0; i < 200; i++) streamProducersExpireSome(100000 + i);
    assert_int_equal(pthread_join(thread, NULL), 0);
    streamProducersExpireSome(INT64_MAX); /* there is none left */
}

int test_stream_producers(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_history),
        cmocka_unit_test(test_edges_of_expiry),
        cmocka_unit_test(test_limits_are_valid),
        cmocka_unit_test(test_another_thread_frees),
    };
    testSeed("stream_producers");
    return cmocka_run_group_tests_name("stream_producers", tests, NULL, NULL);
}
