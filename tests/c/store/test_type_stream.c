/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Streams as objects of the keyspace: random histories after which copies are equal, the memory
 * that is reported was taken, freeing gives all of it back, and compaction changes nothing but
 * addresses. ds/test_stream.c compares the contents with a model. */
#include "store_test.h"

#include <stdio.h>

#include "base/base.h"
#include "base/random.h"
#include "store/compact.h"
#include "store/slab.h"
#include "store/store.h"
#include "store/type_stream.h"

#ifdef TESTS_SANITIZED
enum { HISTORIES = 20, STEPS = 500, FILL_STEPS = 300 };
#else
enum { HISTORIES = 60, STEPS = 1500, FILL_STEPS = 400 };
#endif
enum { KEYS = 300, GROUPS = 3, CONSUMERS = 8, VALUE_MAX = 6000 };

/* ------------------------------------------------------------------ random steps */

static slice groupName(uint64_t i) {
    static const char *const names[GROUPS] = {"", "group",
                                              "another group with a name that is long"};
    return sliceOf(names[i]);
}

static slice consumerName(uint64_t i, char *to) {
    return sliceMake(to, (size_t)snprintf(to, 64, "consumer%0*d", (int)(i % 3) * 10 + 1, (int)i));
}

static streamId anyId(const stream *s) {
    streamId last = streamLastId(s);
    return (streamId){randomUniform(last.ms + 2), randomUniform(3)};
}

static void append(stream *s, const streamLimits *limits) {
    static char text[VALUE_MAX];
    size_t len = (size_t)randomUniform(randomUniform(50) ? 40 : VALUE_MAX);
    memset(text, 'a' + (int)(len % 26), len);
    slice fields[] = {SLICE("field"), sliceMake(text, len), SLICE("number"), SLICE("123456")};
    streamId id = streamLastId(s);
    id.ms += 1 + randomUniform(50);
    streamAppend(s, id, fields, randomUniform(3) ? 4 : 2, limits);
}

static void trim(stream *s) {
    streamTrimRule rule = {.by_id = randomUniform(2),
                           .whole_nodes = randomUniform(2),
                           .length = streamLength(s) - randomUniform(streamLength(s) / 4 + 1),
                           .min_id = {streamFirstId(s).ms + randomUniform(300), 0}};
    (void)streamTrim(s, &rule);
}

/* A consumer gets, or takes from another one, some entries. */
static void deliver(const stream *s, streamGroup *g) {
    char text[64];
    slice name = consumerName(randomUniform(CONSUMERS), text);
    streamConsumer *c = streamConsumerFind(g, name);
    if (!c) c = streamConsumerCreate(g, name, 1000);
    streamCursor cursor;
    streamId id;
    streamFields fields;
    int left = (int)randomUniform(60);
    streamCursorInit(&cursor, s, anyId(s), STREAM_ID_MAX, false);
    while (left-- && streamCursorNext(&cursor, &id, &fields)) {
        streamPending p = {.id = id,
                           .owner = c,
                           .delivered_ms = 1700000000000 + (int64_t)randomUniform(1000000),
                           .deliveries = 1 + randomUniform(3)};
        streamPendingSet(g, &p);
    }
    streamCursorClear(&cursor);
    streamConsumerSetActive(c, (int64_t)randomUniform(5000));
}

static void changeGroup(stream *s) {
    uint64_t which = randomUniform(GROUPS);
    streamGroup *g = streamGroupFind(s, groupName(which));
    char text[64];
    if (!g) g = streamGroupCreate(s, groupName(which), anyId(s), STREAM_UNKNOWN);
    switch (randomUniform(12)) {
    case 0: streamGroupDestroy(s, g); break;
    case 1: {
        streamConsumer *c = streamConsumerFind(g, consumerName(randomUniform(CONSUMERS), text));
        if (c) (void)streamConsumerRemove(g, c);
        break;
    }
    case 2:
    case 3:
    case 4: {
        streamPendingCursor at;
        streamPending p;
        int left = (int)randomUniform(40);
        streamPendingSeek(&at, g, NULL, anyId(s));
        while (left-- && streamPendingNext(&at, &p)) assert_true(streamPendingRemove(g, p.id));
        break;
    }
    default: deliver(s, g);
    }
}

static void step(stream *s, const streamLimits *limits) {
    switch (randomUniform(10)) {
    case 0: trim(s); break;
    case 1:
    case 2: {
        streamCursor c;
        streamId id;
        streamFields fields;
        streamCursorInit(&c, s, anyId(s), STREAM_ID_MAX, false);
        bool found = streamCursorNext(&c, &id, &fields);
        streamCursorClear(&c);
        if (found) assert_true(streamDelete(s, id));
        break;
    }
    case 3: changeGroup(s); break;
    default: append(s, limits);
    }
}

/* ------------------------------------------------------------------ what is compared */

static void mixNumber(digest *d, uint64_t v) {
    digestMix(d, sliceMake((const char *)&v, sizeof(v)));
}

static void mixId(digest *d, streamId id) {
    mixNumber(d, id.ms);
    mixNumber(d, id.seq);
}

static void mixGroup(digest *d, const streamGroup *g) {
    digestMix(d, streamGroupName(g));
    mixId(d, streamGroupLastId(g));
    mixNumber(d, (uint64_t)streamGroupEntriesRead(g));
    orderedCursor at;
    for (streamConsumer *c = streamConsumerFirst(g, &at); c; c = streamConsumerNext(&at)) {
        digestMix(d, streamConsumerName(c));
        mixNumber(d, (uint64_t)streamConsumerSeen(c));
        mixNumber(d, (uint64_t)streamConsumerActive(c));
        mixNumber(d, streamConsumerPending(c));
    }
    streamPendingCursor cursor;
    streamPending p;
    streamPendingSeek(&cursor, g, NULL, STREAM_ID_MIN);
    while (streamPendingNext(&cursor, &p)) {
        mixId(d, p.id);
        digestMix(d, streamConsumerName(p.owner));
        mixNumber(d, (uint64_t)p.delivered_ms);
        mixNumber(d, p.deliveries);
    }
}

/* Everything a stream holds: the object's digest, which has no counters and groups, and those. */
static digest wholeDigest(const robj *o) {
    const stream *s = streamOf(o);
    digest d = {{0}};
    const char *broken = streamVerify(s);
    if (broken) fail_msg("broken: %s", broken);
    objectDigest(o, lookAtAll(), &d);
    mixNumber(&d, streamLength(s));
    mixNumber(&d, streamEntriesAdded(s));
    mixId(&d, streamLastId(s));
    mixId(&d, streamFirstId(s));
    mixId(&d, streamMaxDeletedId(s));
    orderedCursor at;
    for (streamGroup *g = streamGroupFirst(s, &at); g; g = streamGroupNext(&at)) mixGroup(&d, g);
    return d;
}

/* memUsed() without the metadata of slabs, which grows by whole pages. */
static size_t bytesTaken(void) {
    slabStats objects, elements;
    slabGetStats(slabKeyspace(), &objects);
    slabGetStats(slabElements(), &elements);
    return memUsed() - objects.metadata_bytes - elements.metadata_bytes;
}

/* A copy is equal and independent, takes the memory that is reported, and gives it back. */
static robj *compareCopy(robj *o, const streamLimits *limits) {
    digest all = wholeDigest(o);
    size_t before = bytesTaken();
    robj *copy = objectCopy(o, SLICE("other"), 3);
    size_t taken = bytesTaken() - before;
    assert_in_range(objectMemory(copy, 0), taken * 9 / 10, taken * 11 / 10);
    digest copied = wholeDigest(copy);
    assert_memory_equal(&copied, &all, sizeof(all));
    for (int i = 0; i < 20; i++) step(streamOf(copy), limits);
    (void)wholeDigest(copy);
    digest now = wholeDigest(o);
    assert_memory_equal(&now, &all, sizeof(all));
    if (randomUniform(2)) {
        objectFree(o);
        return copy;
    }
    objectFree(copy);
    return o;
}

static void a_copy_is_equal_and_takes_what_is_reported(void **state) {
    (void)state;
    testSeed(__func__);
    static const streamLimits limits_of[] = {{4096, 100}, {200, 0}, {0, 7}, {100000, 0}};
    streamTypeInit();
    for (uint64_t history = 0; history < HISTORIES * testScale(); history++) {
        const streamLimits *limits = &limits_of[history % COUNT_OF(limits_of)];
        robj *o = streamObjectNew(SLICE("key"));
        for (int i = 0; i < STEPS; i++) {
            step(streamOf(o), limits);
            if (i % 97 == 0) o = compareCopy(o, limits);
        }
        assert_int_equal(typeOf(o)->length(o), streamLength(streamOf(o)));
        objectFree(o);
        slabStats stats;
        slabGetStats(slabElements(), &stats);
        assert_int_equal(stats.live_blocks, 0);
    }
}

/* ------------------------------------------------------------------ compaction */

static slice keyText(int k, char *to) {
    return sliceMake(to, (size_t)snprintf(to, 32, "key:%d", k));
}

/* The streams grow in turns, so that their nodes lie between those of others. */
static void fill(const streamLimits *limits) {
    char text[32];
    for (int i = 0; i < FILL_STEPS; i++) {
        for (int k = 0; k < KEYS; k++) {
            slice key = keyText(k, text);
            dbPosition at;
            robj *o = dbFind(storeDb(0), key, storeHash(key), lookAt(1000), &at);
            if (!o) o = streamObjectNew(key);
            step(streamOf(o), limits);
            dbPlace(storeDb(0), &at, o);
        }
    }
}

static void compaction_keeps_contents(void **state) {
    (void)state;
    testSeed(__func__);
    enum { KEPT_EACH = 8, TURNS_MAX = 100000 };
    static digest kept[KEYS];
    char text[32];
    storeInit(1, false);
    fill(&(streamLimits){400, 20});
    for (int k = 0; k < KEYS; k++) {
        slice key = keyText(k, text);
        if (k % KEPT_EACH) {
            dbDelete(storeDb(0), key, storeHash(key), lookAt(1000));
        } else {
            kept[k] = wholeDigest(dbPeek(storeDb(0), key, storeHash(key)));
        }
    }
    storeTidy(0); /* makes the store of elements */
    storeCompaction plan = {.budget_us = 50, .fields_max = 10, .heap = true};
    storeCompactReport report = {0};
    int turns = 0;
    while (storeCompact(&plan, &report) && ++turns < TURNS_MAX) {}
    assert_in_range(turns, 0, TURNS_MAX - 1);
    assert_true(report.moved > 0);
    slabVerify(slabElements());
    for (int k = 0; k < KEYS; k += KEPT_EACH) {
        slice key = keyText(k, text);
        const robj *o = dbPeek(storeDb(0), key, storeHash(key));
        assert_non_null(o);
        digest now = wholeDigest(o);
        assert_memory_equal(&now, &kept[k], sizeof(now));
    }
    storeShutdown();
}

int test_type_stream(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_copy_is_equal_and_takes_what_is_reported),
        cmocka_unit_test(compaction_keeps_contents),
    };
    return cmocka_run_group_tests_name("type_stream", tests, NULL, testNoObjects);
}
