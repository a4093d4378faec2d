/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Tests of ds/stream and ds/stream_group: random sequences of appending, removing, trimming,
 * reading by groups, acknowledging and claiming, compared with a model of plain arrays.
 * TEST_SCALE=50 makes a million steps. */
#include "coded_nodes.h"
#include "ds_test.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/base.h"
#include "base/random.h"
#include "ds/stream_group.h"

enum { FIELDS_MAX = 8, CONSUMERS = 6, GROUPS = 2, WAITING_MAX = 4000, ENTRIES_MAX = 3000 };

/* ------------------------------------------------------------------ the model */

typedef struct wantEntry {
    streamId id;
    uint32_t seed; /* determines its fields */
} wantEntry;

typedef struct wantPending {
    streamId id;
    int owner;
    int64_t delivered_ms;
    uint64_t deliveries;
} wantPending;

typedef struct wantGroup {
    bool there;
    streamId last_id;
    wantPending pending[WAITING_MAX];
    int count;
    bool consumer[CONSUMERS];
} wantGroup;

static stream *s;
static wantEntry entries[ENTRIES_MAX]; /* live ones */
static int entry_count;
static streamId last_id, max_deleted_id;
static wantGroup groups[GROUPS];
static streamLimits limits;
static int64_t now_ms;
/* Deliveries have the time of now, and are repeated only by claims, as usual: indexes of them are
 * kept. */
static bool steady;

/* The fields generated from a seed, as slices of `text`. */
static size_t makeFields(uint32_t seed, slice *fields, char (*text)[512]) {
    size_t pairs = 1 + seed % 3 * (seed % 5 == 0);
    for (size_t i = 0; i < pairs; i++) {
        char *name = text[2 * i], *value = text[2 * i + 1];
        int name_len =
            snprintf(name, 512, seed % 7 == 0 ? "%u" : "field%u", (unsigned)i + seed % 11 / 9);
        int value_len = snprintf(value, 512, seed % 4 == 0 ? "%u" : "value-%u", seed);
        if (seed % 13 == 0) {
            memset(value, 'x', 300);
            value_len = 300;
        }
        fields[2 * i] = sliceMake(name, (size_t)name_len);
        fields[2 * i + 1] = sliceMake(value, seed % 29 == 0 ? 0 : (size_t)value_len);
    }
    return 2 * pairs;
}

static void assertFields(streamFields fields, uint32_t seed) {
    slice expected[2 * FIELDS_MAX];
    char text[FIELDS_MAX * 2][512];
    size_t count = makeFields(seed, expected, text);
    assert_int_equal(fields.left, count / 2);
    for (size_t i = 0; i < count; i += 2) {
        listpackItem name, value;
        char digits[NUMBER_TEXT_MAX];
        streamFieldsNext(&fields, &name, &value);
        assert_true(sliceEqual(listpackText(&name, digits), expected[i]));
        assert_true(sliceEqual(listpackText(&value, digits), expected[i + 1]));
    }
}

static int entryAt(streamId id) {
    int i = 0;
    while (i < entry_count && streamIdLess(entries[i].id, id)) i++;
    return i;
}

static bool entryLives(streamId id) {
    int i = entryAt(id);
    return i < entry_count && streamIdEqual(entries[i].id, id);
}

static void forgetEntries(int at, int count) {
    entry_count -= count;
    memmove(&entries[at], &entries[at + count], (size_t)(entry_count - at) * sizeof(entries[0]));
}

static int pendingAt(const wantGroup *w, streamId id) {
    int i = 0;
    while (i < w->count && streamIdLess(w->pending[i].id, id)) i++;
    return i;
}

static bool isPending(const wantGroup *w, streamId id) {
    int i = pendingAt(w, id);
    return i < w->count && streamIdEqual(w->pending[i].id, id);
}

static void forgetPending(wantGroup *w, int at) {
    w->count--;
    memmove(&w->pending[at], &w->pending[at + 1], (size_t)(w->count - at) * sizeof(w->pending[0]));
}

static slice groupName(int i) { return i ? SLICE("group") : SLICE(""); }
static slice consumerName(int i) {
    static const char *const names[CONSUMERS] = {"a", "", "consumer", "b", "1", "zz"};
    return sliceOf(names[i]);
}

/* An existing id, or one close to it. */
static streamId anyId(void) {
    streamId id = {randomUniform(last_id.ms + 2), randomUniform(3)};
    if (entry_count && randomUniform(4)) id = entries[randomUniform((uint64_t)entry_count)].id;
    return id;
}

/* ------------------------------------------------------------------ comparing */

static void compareRange(streamId start, streamId end, bool backwards) {
    streamCursor c;
    streamId id;
    streamFields fields;
    int low = entryAt(start), high = entryAt(end) + entryLives(end);
    streamCursorInit(&c, s, start, end, backwards);
    for (int i = 0; i < high - low; i++) {
        const wantEntry *e = &entries[backwards ? high - 1 - i : low + i];
        assert_true(streamCursorNext(&c, &id, &fields));
        assert_true(streamIdEqual(id, e->id));
        assertFields(fields, e->seed);
    }
    assert_false(streamCursorNext(&c, &id, &fields));
    streamCursorClear(&c);
}

static void compareGroup(const wantGroup *w, const streamGroup *g) {
    streamPendingCursor at;
    streamPending p;
    orderedCursor names;
    assert_int_equal(streamPendingCount(g), w->count);
    assert_true(streamIdEqual(streamGroupLastId(g), w->last_id));
    streamPendingSeek(&at, g, NULL, STREAM_ID_MIN);
    for (int i = 0; i < w->count; i++) {
        assert_true(streamPendingNext(&at, &p));
        assert_true(streamIdEqual(p.id, w->pending[i].id));
        assert_true(sliceEqual(streamConsumerName(p.owner), consumerName(w->pending[i].owner)));
        assert_int_equal(p.delivered_ms, w->pending[i].delivered_ms);
        assert_int_equal(p.deliveries, w->pending[i].deliveries);
    }
    assert_false(streamPendingNext(&at, &p));
    int consumers = 0;
    for (int k = 0; k < CONSUMERS; k++) {
        streamConsumer *c = streamConsumerFind(g, consumerName(k));
        assert_int_equal(c != NULL, w->consumer[k]);
        if (!c) continue;
        consumers++;
        streamPendingSeek(&at, g, c, STREAM_ID_MIN);
        for (int i = 0; i < w->count; i++) {
            if (w->pending[i].owner != k) continue;
            assert_true(streamPendingNext(&at, &p));
            assert_true(streamIdEqual(p.id, w->pending[i].id));
        }
        assert_false(streamPendingNext(&at, &p));
    }
    const streamConsumer *before = NULL;
    for (const streamConsumer *c = streamConsumerFirst(g, &names); c;
         c = streamConsumerNext(&names)) {
        if (before) {
            slice earlier = streamConsumerName(before);
            assert_true(orderedCompareText(earlier, streamConsumerName(c)) < 0);
        }
        before = c;
        consumers--;
    }
    assert_int_equal(consumers, 0);
}

static bool repackNode(void *arg, streamId key, const streamNode *n) {
    stream *to = arg;
    size_t size = streamNodeListpackSize(n, key);
    if (n->deleted == 0) assert_int_equal(size, streamNodePackedSize(n));
    uint8_t *lp = memAlloc(size);
    streamNodeToListpack(n, key, lp);
    streamNode *again = streamNodeFromListpack(lp, size, key);
    assert_non_null(again);
    assert_true(streamAddNode(to, key, &again));
    memFree(lp);
    return true;
}

static void compareAll(void) {
    assert_string_equal(soundOr(streamVerify(s)), "sound");
    assert_int_equal(streamLength(s), entry_count);
    assert_true(streamIdEqual(streamLastId(s), last_id));
    assert_true(streamIdEqual(streamMaxDeletedId(s), max_deleted_id));
    compareRange(STREAM_ID_MIN, STREAM_ID_MAX, false);
    compareRange(STREAM_ID_MIN, STREAM_ID_MAX, true);
    compareRange(anyId(), anyId(), false);
    compareRange(anyId(), anyId(), true);
    streamId id;
    assert_int_equal(streamLastLive(s, &id), entry_count > 0);
    if (entry_count) assert_true(streamIdEqual(id, entries[entry_count - 1].id));
    for (int i = 0; i < GROUPS; i++) {
        const streamGroup *g = streamGroupFind(s, groupName(i));
        assert_int_equal(g != NULL, groups[i].there);
        if (g) compareGroup(&groups[i], g);
    }
}

/* Compares with a copy, and with a stream built from saved and loaded nodes. */
static void compareCopies(void) {
    stream *original = s;
    s = streamCopy(original);
    compareAll();
    streamFree(s, NULL);
    stream *loaded = streamNew();
    streamEachNode(original, repackNode, loaded);
    streamSetLastId(loaded, last_id);
    s = loaded;
    assert_string_equal(soundOr(streamVerify(s)), "sound");
    compareRange(STREAM_ID_MIN, STREAM_ID_MAX, false);
    compareRange(STREAM_ID_MIN, STREAM_ID_MAX, true);
    streamFree(loaded, NULL);
    s = original;
}

/* ------------------------------------------------------------------ steps */

static void addEntry(void) {
    slice fields[2 * FIELDS_MAX];
    char text[FIELDS_MAX * 2][512];
    uint32_t seed = (uint32_t)randomNext();
    if (entry_count == ENTRIES_MAX) return;
    streamId id = last_id;
    switch (randomUniform(4)) {
    case 0: id.seq++; break;
    case 1: id = (streamId){id.ms + 1 + randomUniform(1000), 0}; break;
    case 2: id = (streamId){id.ms + 1, randomUniform(100000)}; break;
    default: id = (streamId){id.ms + 1 + (randomUniform(200) == 0 ? randomNext() >> 30 : 0), 0};
    }
    size_t count = makeFields(seed, fields, text);
    streamAppend(s, id, fields, count, &limits);
    entries[entry_count++] = (wantEntry){id, seed};
    last_id = id;
}

static void deleteEntry(void) {
    streamId id = anyId();
    bool there = entryLives(id);
    assert_int_equal(streamHas(s, id), there);
    assert_int_equal(streamDelete(s, id), there);
    if (!there) return;
    forgetEntries(entryAt(id), 1);
    if (streamIdLess(max_deleted_id, id)) max_deleted_id = id;
}

/* Counts in *arg the entries that a trim removes: the first ones, in order. */
static void nextIsRemoved(void *arg, streamId id) {
    int *told = arg;
    assert_true(*told < entry_count);
    assert_true(streamIdEqual(entries[*told].id, id));
    (*told)++;
}

static bool isPermitted(void *arg, streamId id) {
    (void)arg; /* the id decides */
    return id.ms % 3 != 0;
}

/* Permitted entries among the first `count`. */
static uint64_t permittedOf(int count) {
    uint64_t permitted = 0;
    for (int i = 0; i < count; i++) permitted += isPermitted(NULL, entries[i].id);
    return permitted;
}

/* By id and without whole nodes the result is exact. Otherwise a prefix of the permitted entries is
 * removed, and no entry that has to stay; by length at least the permitted ones of those that a
 * trim without `permits` removes. */
static void trimPermittedEntries(void) {
    streamTrimRule rule = {.by_id = randomUniform(2),
                           .whole_nodes = randomUniform(3) == 0,
                           .length = randomUniform((uint64_t)entry_count + 2),
                           .min_id = anyId()};
    if (rule.whole_nodes && randomUniform(2)) rule.max_removed = 1 + randomUniform(50);
    uint64_t least = 0, want = 0;
    if (!rule.by_id && !rule.whole_nodes && rule.length < (uint64_t)entry_count)
        least = permittedOf(entry_count - (int)rule.length);
    uint64_t removed = streamTrimPermitted(s, &rule, isPermitted);
    assert_true(removed >= least);
    if (rule.max_removed) assert_true(removed <= rule.max_removed);
    for (int i = 0; i < entry_count;) {
        bool ends = rule.by_id ? !streamIdLess(entries[i].id, rule.min_id)
                               : (uint64_t)entry_count <= rule.length;
        if (ends || ((rule.whole_nodes || !rule.by_id) && want == removed)) break;
        if (!isPermitted(NULL, entries[i].id)) {
            i++;
            continue;
        }
        if (streamIdLess(max_deleted_id, entries[i].id)) max_deleted_id = entries[i].id;
        forgetEntries(i, 1);
        want++;
    }
    assert_int_equal(removed, want);
}

/* The removed entries are a prefix: exactly the requested one, or, with whole nodes, at most
 * that. */
static void trimEntries(void) {
    streamTrimRule rule = {.by_id = randomUniform(2),
                           .whole_nodes = randomUniform(2),
                           .length = randomUniform((uint64_t)entry_count + 2),
                           .min_id = anyId()};
    if (rule.whole_nodes && randomUniform(2)) rule.max_removed = 1 + randomUniform(50);
    uint64_t exact = rule.by_id                            ? (uint64_t)entryAt(rule.min_id)
                     : rule.length < (uint64_t)entry_count ? (uint64_t)entry_count - rule.length
                                                           : 0;
    int told = 0;
    rule.removes = randomUniform(2) ? nextIsRemoved : NULL;
    rule.arg = &told;
    uint64_t removed = streamTrim(s, &rule);
    if (rule.removes) assert_int_equal(told, removed);
    if (rule.whole_nodes) {
        assert_true(removed <= exact);
        if (rule.max_removed) assert_true(removed <= rule.max_removed);
    } else {
        assert_int_equal(removed, exact);
    }
    forgetEntries(0, (int)removed);
}

static streamConsumer *consumerOf(wantGroup *w, streamGroup *g, int which) {
    streamConsumer *c = streamConsumerFind(g, consumerName(which));
    if (!c) c = streamConsumerCreate(g, consumerName(which), now_ms);
    assert_null(streamConsumerCreate(g, consumerName(which), now_ms));
    w->consumer[which] = true;
    return c;
}

static void setPending(wantGroup *w, streamGroup *g, const streamPending *p, int owner) {
    int at = pendingAt(w, p->id);
    streamPendingSet(g, p);
    if (!isPending(w, p->id)) {
        memmove(&w->pending[at + 1], &w->pending[at],
                (size_t)(w->count - at) * sizeof(w->pending[0]));
        w->count++;
    }
    w->pending[at] = (wantPending){p->id, owner, p->delivered_ms, p->deliveries};
}

static void readGroup(wantGroup *w, streamGroup *g) {
    int which = (int)randomUniform(CONSUMERS), most = 1 + (int)randomUniform(10);
    streamConsumer *c = consumerOf(w, g, which);
    for (int i = entryAt(w->last_id) + entryLives(w->last_id); i < entry_count && most-- > 0; i++) {
        if (w->count == WAITING_MAX) return;
        streamPending p = {entries[i].id, c, now_ms, 1};
        setPending(w, g, &p, which);
        streamGroupAdvance(s, g, p.id);
        w->last_id = p.id;
    }
}

static void ackSome(wantGroup *w, streamGroup *g) {
    for (uint64_t i = 1 + randomUniform(10); i > 0; i--) {
        streamId id = anyId();
        if (w->count && randomUniform(3))
            id = w->pending[randomUniform(2) ? 0 : randomUniform((uint64_t)w->count)].id;
        bool there = isPending(w, id);
        assert_int_equal(streamPendingRemove(g, id), there);
        if (there) forgetPending(w, pendingAt(w, id));
    }
}

static void claimOne(wantGroup *w, streamGroup *g) {
    int which = (int)randomUniform(CONSUMERS);
    streamConsumer *c = consumerOf(w, g, which);
    streamId id = anyId();
    if (w->count && randomUniform(4)) id = w->pending[randomUniform((uint64_t)w->count)].id;
    if (!isPending(w, id) && (steady || w->count == WAITING_MAX)) return;
    bool any_time = !steady && randomUniform(3) == 0;
    int64_t delivered_ms = any_time ? (int64_t)(randomNext() >> 2) : now_ms;
    streamPending p = {id, c, delivered_ms, randomUniform(20) ? 2 : randomNext()};
    setPending(w, g, &p, which);
}

static bool deliveredBefore(const wantPending *a, const wantPending *b) {
    if (a->delivered_ms != b->delivered_ms) return a->delivered_ms < b->delivered_ms;
    return streamIdLess(a->id, b->id);
}

/* The oldest pending entry of the model that is in the stream, idle, and delivered after `last`
 * (NULL: any); NULL: there is none. */
static const wantPending *nextIdle(const wantGroup *w, int64_t until_ms, const wantPending *last) {
    const wantPending *found = NULL;
    for (int i = 0; i < w->count; i++) {
        const wantPending *p = &w->pending[i];
        if (p->delivered_ms > until_ms || (last && !deliveredBefore(last, p))) continue;
        if (found && !deliveredBefore(p, found)) continue;
        if (entryLives(p->id)) found = p;
    }
    return found;
}

static void findIdle(const wantGroup *w, streamGroup *g) {
    int64_t until_ms = randomUniform(4) ? now_ms - (int64_t)randomUniform(100) : INT64_MAX;
    uint64_t max = randomUniform(20);
    streamPending *found;
    size_t count = streamPendingIdle(s, g, until_ms, max, &found);
    const wantPending *want = NULL;
    /* The order of those of the same time is not defined. */
    for (size_t i = 0; i < count; i++) {
        want = nextIdle(w, until_ms, want);
        assert_non_null(want);
        assert_int_equal(found[i].delivered_ms, want->delivered_ms);
        assert_true(isPending(w, found[i].id));
        const wantPending *p = &w->pending[pendingAt(w, found[i].id)];
        assert_int_equal(found[i].delivered_ms, p->delivered_ms);
        assert_int_equal(found[i].deliveries, p->deliveries);
        assert_true(entryLives(found[i].id));
        for (size_t k = i; k-- > 0 && found[k].delivered_ms == found[i].delivered_ms;)
            assert_false(streamIdEqual(found[k].id, found[i].id));
    }
    if (max == 0 || count < max) assert_null(nextIdle(w, until_ms, want));
    if (count == 0) assert_true(streamPendingOldest(g) > until_ms || until_ms == INT64_MAX);
    memFree(found);
}

static void checkReferences(void) {
    streamId id = anyId();
    bool want = false;
    for (int i = 0; i < GROUPS; i++) {
        const wantGroup *w = &groups[i];
        want |= w->there && (streamIdLess(w->last_id, id) || isPending(w, id));
    }
    assert_int_equal(streamIsReferenced(s, id), want);
}

static void dropConsumer(wantGroup *w, streamGroup *g) {
    int which = (int)randomUniform(CONSUMERS);
    streamConsumer *c = streamConsumerFind(g, consumerName(which));
    assert_int_equal(c != NULL, w->consumer[which]);
    if (!c) return;
    uint64_t count = streamConsumerPending(c), want = 0;
    for (int i = w->count; i-- > 0;) {
        if (w->pending[i].owner != which) continue;
        forgetPending(w, i);
        want++;
    }
    assert_int_equal(streamConsumerRemove(g, c), count);
    assert_int_equal(count, want);
    w->consumer[which] = false;
}

static void groupStep(void) {
    int which = (int)randomUniform(GROUPS);
    wantGroup *w = &groups[which];
    streamGroup *g = streamGroupFind(s, groupName(which));
    if (!g) {
        streamId from = randomUniform(2) ? STREAM_ID_MIN : anyId();
        g = streamGroupCreate(s, groupName(which), from, STREAM_UNKNOWN);
        memset(w, 0, sizeof(*w));
        w->there = true;
        w->last_id = from;
    }
    assert_null(streamGroupCreate(s, groupName(which), STREAM_ID_MIN, 0));
    if (steady && randomUniform(5) == 0) {
        findIdle(w, g);
        return;
    }
    switch (randomUniform(100)) {
    case 0:
        streamGroupDestroy(s, g);
        w->there = false;
        return;
    case 1:
    case 2: dropConsumer(w, g); return;
    case 3:
        if (steady) return;
        w->last_id = anyId();
        streamGroupSetLastId(g, w->last_id, STREAM_UNKNOWN);
        return;
    case 4:
    case 5:
    case 6: findIdle(w, g); return;
    case 7: checkReferences(); return;
    default: break;
    }
    uint64_t kind = randomUniform(3);
    if (kind == 0) {
        readGroup(w, g);
    } else if (kind == 1) {
        ackSome(w, g);
    } else {
        claimOne(w, g);
    }
}

static void reset(void) {
    s = streamNew();
    entry_count = 0;
    last_id = max_deleted_id = STREAM_ID_MIN;
    memset(groups, 0, sizeof(groups));
    static const streamLimits choices[] = {{4096, 100}, {200, 0}, {0, 7},
                                           {0, 0},      {1, 0},   {1000, 50}};
    limits = choices[randomUniform(COUNT_OF(choices))];
}

static void historyStep(int64_t time_ms) {
    uint64_t dice = randomUniform(100);
    now_ms = time_ms;
    static streamId visited;
    if (randomUniform(8) == 0 && !streamCodeNodes(s, &visited, randomVisit()))
        visited = STREAM_ID_MIN;
    if (dice < 45) {
        addEntry();
    } else if (dice < 60) {
        deleteEntry();
    } else if (dice < 61) {
        if (randomUniform(2)) {
            trimEntries();
        } else {
            trimPermittedEntries();
        }
    } else {
        groupStep();
    }
}

static void testHistories(void **state) {
    testSeed("stream");
    for (uint64_t round = 0; round < 10 * testScale(); round++) {
        reset();
        steady = round % 2;
        for (int step = 0; step < 2000; step++) {
            historyStep(1700000000000 + (int64_t)round * 100 + step / 20);
            if (randomUniform(100) == 0) compareAll();
        }
        compareAll();
        compareCopies();
        streamFree(s, NULL);
        assertNoneCoded();
    }
}

/* ------------------------------------------------------------------ the index of deliveries */

/* What streamPendingIdle() should find, by a walk. */
static size_t walkIdle(const streamGroup *g, int64_t until_ms) {
    streamPendingCursor at;
    streamPending p;
    size_t count = 0;
    streamPendingSeek(&at, g, NULL, STREAM_ID_MIN);
    while (streamPendingNext(&at, &p)) count += p.delivered_ms <= until_ms;
    return count;
}

/* A consumer that acknowledges most of its entries, and another one that claims the rest. */
static void testIdleIndexOfABusyGroup(void **state) {
    (void)state;
    enum { BATCH = 10, ROUNDS = 2000, IDLE = 100 };
    reset();
    limits = (streamLimits){4096, 100}; /* with nodes of one entry the stream has 1 MB by itself */
    streamGroup *g = streamGroupCreate(s, SLICE("g"), STREAM_ID_MIN, 0);
    streamConsumer *c = streamConsumerCreate(g, SLICE("c"), 1);
    const slice words[] = {SLICE("f"), SLICE("v")};
    size_t bytes_max = 0;
    for (int64_t t = 1000; t < 1000 + ROUNDS; t++) {
        for (uint64_t i = 0; i < BATCH; i++) {
            streamId id = {(uint64_t)t, i};
            streamAppend(s, id, words, 2, &limits);
            streamPendingSet(g, &(streamPending){id, c, t, 1});
            streamGroupAdvance(s, g, id);
            if (i < 8) assert_true(streamPendingRemove(g, id));
        }
        if (t % 5) continue;
        streamPending *found;
        size_t want = walkIdle(g, t - IDLE), count = streamPendingIdle(s, g, t - IDLE, 13, &found);
        assert_int_equal(count, want < 13 ? want : 13);
        for (size_t i = 0; i < count; i++) {
            assert_true(found[i].delivered_ms <= t - IDLE);
            if (i) assert_true(found[i - 1].delivered_ms <= found[i].delivered_ms);
        }
        for (size_t i = 0; i < count; i++) {
            found[i].delivered_ms = t;
            found[i].deliveries++;
            streamPendingSet(g, &found[i]);
        }
        memFree(found);
        if (t % 100 == 0) assert_null(streamVerify(s));
        bytes_max = sizeMax(bytes_max, streamBytes(s, 0));
    }
    assert_null(streamVerify(s));
    /* Nobody claims any more: the index is given up. */
    for (uint64_t i = 0; i < 50000; i++) {
        streamId id = {1000000, i};
        streamPendingSet(g, &(streamPending){id, c, 1000000, 1});
        assert_true(streamPendingRemove(g, id));
        bytes_max = sizeMax(bytes_max, i % 100 ? 0 : streamBytes(s, 0));
    }
    assert_true(bytes_max < 1000000);
    assert_null(streamVerify(s));
    streamFree(s, NULL);
}

/* ------------------------------------------------------------------ as of one moment */

/* The stream as it was when it was frozen, and what was read of it. */
static struct {
    streamFrozen *frozen;
    stream *read;
    wantEntry entries[ENTRIES_MAX];
    int entry_count;
    streamId last_id;
    wantGroup groups[GROUPS];
    uint64_t nodes;
} past;

static void freezeStream(void) {
    past.frozen = streamFreeze(s);
    past.read = streamNew();
    memcpy(past.entries, entries, sizeof(entries));
    memcpy(past.groups, groups, sizeof(groups));
    past.entry_count = entry_count;
    past.last_id = last_id;
    past.nodes = streamNodeCount(s);
    assert_int_equal(streamFrozenNodes(past.frozen), past.nodes);
}

static void thawStream(void) {
    streamThaw(past.frozen, s);
    streamFree(past.read, NULL);
    past.frozen = NULL;
    assert_int_equal(streamFrozenBytes(), 0);
}

/* Everything was read. */
static void comparePast(void) {
    static wantEntry present[ENTRIES_MAX];
    const stream *rest = streamFrozenRest(past.frozen);
    stream *now = s;
    int count = entry_count;
    assert_int_equal(streamNodeCount(past.read), past.nodes);
    assert_int_equal(streamLength(rest), past.entry_count);
    assert_true(streamIdEqual(streamLastId(rest), past.last_id));
    memcpy(present, entries, sizeof(entries));
    memcpy(entries, past.entries, sizeof(entries));
    entry_count = past.entry_count;
    s = past.read;
    compareRange(STREAM_ID_MIN, STREAM_ID_MAX, false);
    s = now;
    entry_count = count;
    memcpy(entries, present, sizeof(entries));
    for (int i = 0; i < GROUPS; i++) {
        const streamGroup *g = streamGroupFind(rest, groupName(i));
        assert_int_equal(g != NULL, past.groups[i].there);
        if (g) compareGroup(&past.groups[i], g);
    }
}

/* Reads some nodes; the stream is thawed at its end, or sometimes before. */
static void readPast(uint64_t count) {
    streamId key;
    const streamNode *node;
    for (; count > 0; count--) {
        if (streamFrozenNext(past.frozen, s, &key, &node)) {
            (void)repackNode(past.read, key, node); /* always true */
        } else {
            comparePast();
            thawStream();
            return;
        }
    }
    if (randomUniform(100) == 0) thawStream();
}

/* As XSETID in a stream without entries: later nodes may have keys of earlier ones. */
static void lowerLastId(void) {
    if (streamNodeCount(s) > 0) return;
    last_id = (streamId){randomUniform(last_id.ms + 1), 0};
    streamSetLastId(s, last_id);
}

static void testFrozenStreamIsReadAsItWas(void **state) {
    testSeed("frozen stream");
    for (uint64_t round = 0; round < 20 * testScale(); round++) {
        reset();
        for (int step = 0; step < 1500; step++) {
            historyStep(1700000000000 + step);
            if (randomUniform(60) == 0) trimEntries();
            if (randomUniform(4) == 0) lowerLastId();
            if (!past.frozen && randomUniform(30) == 0) freezeStream();
            if (past.frozen && randomUniform(8) == 0) readPast(randomUniform(4));
            if (randomUniform(100) == 0) compareAll();
        }
        if (past.frozen) readPast(randomUniform(2) ? UINT64_MAX : 0);
        if (past.frozen) thawStream();
        compareAll();
        streamFree(s, NULL);
        assertNoneCoded();
    }
}

/* ------------------------------------------------------------------ the border of one node */

/* Each block has another address. */
static void *moveBlock(void *arg, void *block, size_t size) {
    (void)arg;
    void *now = memAlloc(size);
    memcpy(now, block, size);
    memFree(block);
    return now;
}

static void compactStream(void) {
    uint64_t moved = 0, kept = 0;
    size_t most = 1 + randomUniform(3);
    for (bool begin = true;
         streamCompact(s, begin, most, moveBlock, NULL, randomUniform(2), &moved, &kept);)
        begin = false;
    assert_string_equal(soundOr(streamVerify(s)), "sound");
}

/* A stream of one node, or none, has no index: it takes no more than one that was never longer. */
static void testStreamsGrowAndShrinkOverOneNode(void **state) {
    testSeed("one node");
    for (uint64_t round = 0; round < 10 * testScale(); round++) {
        reset();
        limits = (streamLimits){0, 1 + randomUniform(2)};
        for (int step = 0; step < 1000; step++) {
            now_ms = 1700000000000 + step;
            if (randomUniform(2 + (uint64_t)entry_count) < 2) {
                addEntry();
            } else if (randomUniform(4)) {
                deleteEntry();
            } else {
                trimEntries();
            }
            if (randomUniform(8) == 0) groupStep();
            if (randomUniform(5) == 0) lowerLastId();
            if (!past.frozen && randomUniform(5) == 0) freezeStream();
            if (past.frozen && randomUniform(2) == 0) readPast(randomUniform(3));
            if (randomUniform(3) == 0) compactStream();
            compareAll();
        }
        if (past.frozen) thawStream();
        compareCopies();
        streamFree(s, NULL);
    }
}

static void testOneNodeNeedsNoIndex(void **state) {
    (void)state; /* none */
    s = streamNew();
    limits = (streamLimits){0, 1};
    size_t none = streamBytes(s, 0);
    slice fields[2] = {SLICE("f"), SLICE("v")};
    streamAppend(s, (streamId){1, 0}, fields, 2, &limits);
    size_t one = streamBytes(s, 0);
    assert_true(one <= none + 160);
    streamAppend(s, (streamId){2, 0}, fields, 2, &limits);
    assert_true(streamBytes(s, 0) > 2 * one - none);
    assert_true(streamDelete(s, (streamId){1, 0}));
    assert_true(streamBytes(s, 0) <= one);
    streamGroup *g = streamGroupCreate(s, SLICE("g"), STREAM_ID_MIN, 0);
    assert_true(streamBytes(s, 0) > one);
    streamGroupDestroy(s, g);
    assert_true(streamBytes(s, 0) <= one);
    assert_true(streamDelete(s, (streamId){2, 0}));
    assert_int_equal(streamBytes(s, 0), none);
    streamFree(s, NULL);
}

/* ------------------------------------------------------------------ single cases */

static void add(uint64_t ms, uint64_t seq, const char *value) {
    slice fields[2] = {SLICE("f"), sliceOf(value)};
    streamAppend(s, (streamId){ms, seq}, fields, 2, &limits);
}

/* A node ends by Valkey's rule: size as a listpack plus that of the new entry's texts, or number of
 * entries. */
static void testNodesEndAtTheirLimits(void **state) {
    s = streamNew();
    limits = (streamLimits){0, 10};
    for (uint64_t i = 1; i <= 35; i++) add(i, 0, "v");
    assert_int_equal(streamNodeCount(s), 4);
    streamTrimRule rule = {.whole_nodes = true, .length = 30};
    assert_int_equal(streamTrim(s, &rule), 0);
    rule.length = 25;
    assert_int_equal(streamTrim(s, &rule), 10);
    streamFree(s, NULL);
    s = streamNew();
    limits = (streamLimits){1, 0};
    for (uint64_t i = 1; i <= 5; i++) add(i, 0, "v");
    assert_int_equal(streamNodeCount(s), 5);
    streamFree(s, NULL);
}

static void testTrieNodes(void **state) {
    s = streamNew();
    limits = (streamLimits){0, 1};
    assert_int_equal(streamTrieNodes(s), 1);
    add(1, 0, "v");
    assert_int_equal(streamTrieNodes(s), 2);
    for (uint64_t i = 2; i <= 5; i++) add(i, 0, "v");
    assert_int_equal(streamTrieNodes(s), 2 * 5 + 2);
    streamFree(s, NULL);
}

/* A node that can take no second entry of its size reserves nothing for one. */
static void testNodeOfOneEntryHasItsSize(void **state) {
    (void)state; /* none */
    char text[121];
    memset(text, 'x', sizeof(text) - 1);
    text[sizeof(text) - 1] = 0;
    size_t bytes[2];
    for (int i = 0; i < 2; i++) {
        s = streamNew();
        limits = (streamLimits){i ? 128 : 4096, 100};
        add(1, 0, text);
        bytes[i] = streamBytes(s, 0);
        streamFree(s, NULL);
    }
    assert_true(bytes[1] + 100 < bytes[0]);
}

/* Fields of removed entries are dropped once they take half of a node; their ids are kept. */
static void testRemovedFieldsAreDropped(void **state) {
    char text[1000];
    memset(text, 'x', sizeof(text) - 1);
    text[sizeof(text) - 1] = 0;
    s = streamNew();
    limits = (streamLimits){0, 0};
    for (uint64_t i = 1; i <= 100; i++) add(i, 0, text);
    size_t full = streamBytes(s, 0);
    for (uint64_t i = 1; i < 100; i++) assert_true(streamDelete(s, (streamId){i, 0}));
    assert_int_equal(streamNodeCount(s), 1);
    assert_true(streamBytes(s, 0) < full / 10);
    streamId kept;
    assert_true(streamFirstKept(s, &kept));
    assert_int_equal(kept.ms, 1);
    assert_int_equal(streamFirstId(s).ms, 100);
    assert_string_equal(soundOr(streamVerify(s)), "sound");
    streamFree(s, NULL);
}

static void testIdsAtTheEndOfTheirRange(void **state) {
    s = streamNew();
    limits = (streamLimits){4096, 100};
    add(0, 1, "a");
    add(0, UINT64_MAX, "b");
    add(UINT64_MAX, 0, "c");
    add(UINT64_MAX, UINT64_MAX, "d");
    streamCursor c;
    streamId id;
    streamFields fields;
    streamCursorInit(&c, s, STREAM_ID_MAX, STREAM_ID_MAX, false);
    assert_true(streamCursorNext(&c, &id, &fields));
    assert_true(streamIdEqual(id, STREAM_ID_MAX));
    assert_false(streamCursorNext(&c, &id, &fields));
    streamCursorClear(&c);
    stream *to = streamNew();
    streamEachNode(s, repackNode, to);
    assert_int_equal(streamLength(to), 4);
    assert_true(streamHas(to, (streamId){0, UINT64_MAX}));
    assert_true(streamHas(to, STREAM_ID_MAX));
    streamFree(to, NULL);
    streamFree(s, NULL);
}

/* The node of spec/rdb.md, as Valkey wrote it. */
static void testValkeysListpackIsRead(void **state) {
    static const uint8_t lp[] = {
        0x44, 0,    0,    0,    0x19, 0,    0x02, 0x01, 0x01, 0x01, 0x02, 0x01, 0x81, 0x66,
        0x02, 0x81, 0x67, 0x02, 0x00, 0x01, 0x02, 0x01, 0x00, 0x01, 0x00, 0x01, 0x81, 0x76,
        0x02, 0x81, 0x77, 0x02, 0x05, 0x01, 0x03, 0x01, 0x00, 0x01, 0x01, 0x01, 0x82, 0x76,
        0x32, 0x03, 0x82, 0x77, 0x32, 0x03, 0x05, 0x01, 0x00, 0x01, 0x04, 0x01, 0xdf, 0xff,
        0x02, 0x01, 0x01, 0x81, 0x6b, 0x02, 0x81, 0x7a, 0x02, 0x06, 0x01, 0xff};
    uint8_t copy[sizeof(lp)];
    _Static_assert(sizeof(lp) >= 0x44, "the whole listpack");
    memcpy(copy, lp, sizeof(lp));
    storeU32(copy, sizeof(lp));
    copy[4] = 0;
    size_t count = 0;
    for (const uint8_t *at = copy + LISTPACK_HEADER; *at != LISTPACK_END;
         at += listpackEntrySize(at))
        count++;
    storeU16(copy + 4, (uint16_t)count);
    streamId key = {1, 1};
    streamNode *n = streamNodeFromListpack(copy, sizeof(copy), key);
    assert_non_null(n);
    assert_int_equal(n->live, 2);
    assert_int_equal(n->deleted, 1);
    uint8_t again[sizeof(lp)];
    assert_int_equal(streamNodeListpackSize(n, key), sizeof(lp));
    streamNodeToListpack(n, key, again);
    assert_memory_equal(again, copy, sizeof(lp));
    streamNodeFree(n, NULL);
}

typedef struct onlyNode {
    uint8_t *lp;
    size_t size;
    streamId key;
} onlyNode;

static bool takeListpack(void *arg, streamId key, const streamNode *n) {
    onlyNode *out = arg;
    out->key = key;
    out->size = streamNodeListpackSize(n, key);
    out->lp = memAlloc(out->size);
    streamNodeToListpack(n, key, out->lp);
    return false;
}

/* Listpacks with a changed byte are refused, or read as another valid node. */
static void testDamagedListpacks(void **state) {
    testSeed("damaged listpacks");
    for (uint64_t round = 0; round < 200 * testScale(); round++) {
        onlyNode only;
        reset();
        limits = (streamLimits){0, 0};
        for (uint64_t i = 1 + randomUniform(20); i > 0; i--) addEntry();
        for (uint64_t i = randomUniform(5); i > 0 && entry_count > 1; i--) deleteEntry();
        streamEachNode(s, takeListpack, &only);
        streamFree(s, NULL);
        for (int i = 0; i < 100; i++) {
            uint8_t *lp =
                memAlloc(only.size); /* its own block, so that sanitizers detect overruns */
            memcpy(lp, only.lp, only.size);
            for (uint64_t k = 1 + randomUniform(3); k > 0; k--)
                lp[randomUniform(only.size)] = (uint8_t)randomNext();
            streamNode *n = streamNodeFromListpack(lp, only.size, only.key);
            memFree(lp);
            if (!n) continue;
            s = streamNew();
            assert_true(streamAddNode(s, only.key, &n));
            streamSetLastId(s, STREAM_ID_MAX);
            assert_string_equal(soundOr(streamVerify(s)), "sound");
            streamCursor c;
            streamId id;
            streamFields fields;
            size_t bytes = 0;
            streamCursorInit(&c, s, STREAM_ID_MIN, STREAM_ID_MAX, randomUniform(2));
            while (streamCursorNext(&c, &id, &fields)) {
                while (fields.left) {
                    listpackItem name, value;
                    streamFieldsNext(&fields, &name, &value);
                    for (size_t k = 0; value.ptr && k < value.len; k++)
                        bytes += (uint8_t)value.ptr[k];
                }
            }
            assert_true(bytes < (size_t)256 * 4 * only.size);
            streamCursorClear(&c);
            streamFree(s, NULL);
        }
        memFree(only.lp);
    }
}

static void testManyConsumersAndGroups(void **state) {
    enum { MANY = 3000 };
    char name[16];
    s = streamNew();
    limits = (streamLimits){4096, 100};
    for (uint64_t i = 1; i <= MANY; i++) add(i, 0, "v");
    streamGroup *g = streamGroupCreate(s, SLICE("g"), STREAM_ID_MIN, 0);
    for (uint64_t i = 1; i <= MANY; i++) {
        slice text = sliceMake(name, (size_t)sprintf(name, "c%u", (unsigned)i));
        streamConsumer *c = streamConsumerCreate(g, text, 0);
        streamPending p = {{i, 0}, c, 5, 1};
        streamPendingSet(g, &p);
        assert_non_null(streamGroupCreate(s, text, STREAM_ID_MIN, STREAM_UNKNOWN));
    }
    assert_string_equal(soundOr(streamVerify(s)), "sound");
    for (uint64_t i = 1; i <= MANY; i += 2) {
        slice text = sliceMake(name, (size_t)sprintf(name, "c%u", (unsigned)i));
        assert_int_equal(streamConsumerRemove(g, streamConsumerFind(g, text)), 1);
        streamGroupDestroy(s, streamGroupFind(s, text));
    }
    assert_string_equal(soundOr(streamVerify(s)), "sound");
    assert_int_equal(streamPendingCount(g), MANY / 2);
    assert_non_null(streamConsumerCreate(g, SLICE("new"), 0));
    assert_string_equal(soundOr(streamVerify(s)), "sound");
    streamFree(s, NULL);
}

/* Examples of lag and entries-read from the description of Valkey's behaviour. */
static void testLag(void **state) {
    int64_t lag;
    s = streamNew();
    limits = (streamLimits){4096, 100};
    for (uint64_t i = 1; i <= 5; i++) add(i, 0, "v");
    streamGroup *g = streamGroupCreate(s, SLICE("g"), STREAM_ID_MIN, STREAM_UNKNOWN);
    assert_true(streamGroupLag(s, g, &lag));
    assert_int_equal(lag, 5);
    streamGroupSetLastId(g, (streamId){2, 0}, STREAM_UNKNOWN);
    assert_false(streamGroupLag(s, g, &lag));
    streamGroupSetLastId(g, (streamId){1, 0}, STREAM_UNKNOWN);
    assert_true(streamGroupLag(s, g, &lag));
    assert_int_equal(lag, 4);
    streamGroupSetLastId(g, (streamId){99, 0}, STREAM_UNKNOWN);
    assert_false(streamGroupLag(s, g, &lag));
    streamGroupSetLastId(g, (streamId){2, 0}, 77); /* set by hand */
    assert_true(streamGroupLag(s, g, &lag));
    assert_int_equal(lag, 3);
    streamGroupSetLastId(g, STREAM_ID_MIN, STREAM_UNKNOWN);
    streamGroupAdvance(s, g, (streamId){1, 0});
    assert_int_equal(streamGroupEntriesRead(g), 1);
    assert_true(streamDelete(s, (streamId){4, 0}));
    assert_false(streamGroupLag(s, g, &lag));
    for (uint64_t i = 2; i <= 5; i++) {
        if (i != 4) streamGroupAdvance(s, g, (streamId){i, 0});
    }
    assert_int_equal(streamGroupEntriesRead(g), 5);
    assert_true(streamGroupLag(s, g, &lag));
    assert_int_equal(lag, 0);
    streamGroupSetLastId(g, STREAM_ID_MIN, STREAM_UNKNOWN);
    assert_true(streamGroupLag(s, g, &lag));
    assert_int_equal(lag, 4);
    streamFree(s, NULL);
}

/* A lag follows from the counters if the unread entries are in too many nodes to be counted. */
static void testLagOfManyNodes(void **state) {
    enum { MANY = 1000 };
    int64_t lag;
    uint64_t count = 0;
    s = streamNew();
    limits = (streamLimits){4096, 1};
    for (uint64_t i = 1; i <= MANY; i++) add(i, 0, "v");
    assert_false(streamCountAfter(s, (streamId){2, 0}, MANY - 2, &count));
    assert_int_equal(count, 0);
    assert_true(streamCountAfter(s, (streamId){2, 0}, MANY - 1, &count));
    assert_int_equal(count, MANY - 2);
    assert_true(streamCountAfter(s, STREAM_ID_MIN, MANY, &count));
    assert_int_equal(count, MANY);
    assert_true(streamCountAfter(s, STREAM_ID_MAX, 1, &count));
    assert_int_equal(count, 0);
    streamGroup *g = streamGroupCreate(s, SLICE("g"), (streamId){2, 0}, 2);
    assert_true(streamGroupLag(s, g, &lag));
    assert_int_equal(lag, MANY - 2);
    streamGroupSetLastId(g, (streamId){2, 0}, 0); /* the first entry was read */
    assert_false(streamGroupLag(s, g, &lag));
    streamGroupSetLastId(g, (streamId){2, 0}, MANY + 1);
    assert_false(streamGroupLag(s, g, &lag));
    streamFree(s, NULL);
}

static void findLetter(void *arg, slice text) {
    bool *seen = arg;
    for (size_t i = 0; i < text.len; i++) {
        if (text.ptr[i] >= 'P' && text.ptr[i] <= 'T') seen[text.ptr[i] - 'P'] = true;
    }
}

/* Any node may be a sample but the tail, which is not coded. */
static void testSamplesAreNotOfTheTail(void **state) {
    enum { NODES = 5 };
    (void)state;
    for (int step_ms = 0; step_ms < 1000; step_ms += 100) {
        bool seen[NODES] = {false};
        s = streamNew();
        limits = (streamLimits){4096, 1};
        for (unsigned i = 0; i < NODES; i++) {
            add(1 + i * (uint64_t)step_ms, 1 + i, (const char *[]){"P", "Q", "R", "S", "T"}[i]);
        }
        for (uint64_t part = 0; part < 4000; part += 37) {
            bool now[NODES] = {false};
            streamSample(s, part, 1, findLetter, now);
            streamSample(s, part, 2, findLetter, seen);
            assert_int_equal(now[0] + now[1] + now[2] + now[3] + now[4], 1);
        }
        assert_true(seen[0] && seen[1]);
        assert_true(step_ms == 0 || (seen[2] && seen[3]));
        assert_false(seen[NODES - 1]);
        streamFree(s, NULL);
    }
}

int test_stream(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(testHistories),
        cmocka_unit_test(testIdleIndexOfABusyGroup),
        cmocka_unit_test(testFrozenStreamIsReadAsItWas),
        cmocka_unit_test(testStreamsGrowAndShrinkOverOneNode),
        cmocka_unit_test(testOneNodeNeedsNoIndex),
        cmocka_unit_test(testNodesEndAtTheirLimits),
        cmocka_unit_test(testTrieNodes),
        cmocka_unit_test(testNodeOfOneEntryHasItsSize),
        cmocka_unit_test(testRemovedFieldsAreDropped),
        cmocka_unit_test(testIdsAtTheEndOfTheirRange),
        cmocka_unit_test(testValkeysListpackIsRead),
        cmocka_unit_test(testDamagedListpacks),
        cmocka_unit_test(testManyConsumersAndGroups),
        cmocka_unit_test(testLag),
        cmocka_unit_test(testLagOfManyNodes),
        cmocka_unit_test(testSamplesAreNotOfTheTail),
    };
    return cmocka_run_group_tests_name("stream", tests, NULL, NULL);
}
