/* SPDX-License-Identifier: BSD-3-Clause
 *
 * store/saving: whatever happens to the keyspace during the walk, the saver gets each object of the
 * start exactly once, as it was then, in the database in which it was then; afterwards no object
 * has a mark. TEST_SCALE makes it longer. */
#include <lzf.h>
#include <stdio.h>

#include "base/base.h"
#include "base/random.h"
#include "store/compact.h"
#include "store/db_priv.h"
#include "store/saving.h"
#include "store/slab.h"
#include "store/store.h"
#include "store/taken.h"
#include "store/type_hash.h"
#include "store/type_list.h"
#include "store/type_pathhash.h"
#include "store/type_set.h"
#include "store/type_stream.h"
#include "store/type_zset.h"
#include "store_test.h"

#ifdef TESTS_SANITIZED
enum { ROUNDS = 40 };
#else
enum { ROUNDS = 150 };
#endif
enum { DBS = 4, KEYS = 1200 };
static const packLimits limits = {.entries = 6, .bytes = 64};
static const setLimits set_limits = {.packed = {.entries = 6, .bytes = 64}, .ints = 6};

/* What is known of a key of the start. */
typedef struct record {
    bool present, written;
    digest value;
} record;
static record model[DBS][KEYS];
static uint64_t due, written;
static int64_t now_ms;
static bool refuses, may_refuse;

static slice keyText(int i, char *to) {
    return sliceMake(to, (size_t)snprintf(to, 32, "key %d", i));
}

static int keyNumber(const robj *o) {
    slice key = objectKey(o);
    int number = 0;
    for (size_t i = 4; i < key.len; i++) number = number * 10 + (key.ptr[i] - '0');
    return number;
}

static void mixTimes(digest *sum, const robj *o) {
    hashIterator it;
    hashPair pair;
    int64_t time_ms;
    hashIteratorInit(&it, o, lookAtAll());
    while (hashNextTimed(&it, &pair, &time_ms)) {
        digest own = {{0}};
        digestMix(&own, pair.field);
        digestMix(&own, sliceMake((const char *)&time_ms, sizeof(time_ms)));
        digestAddDigest(sum, &own);
    }
    hashIteratorClear(&it);
}

static void mixId(digest *sum, streamId id) {
    digestMix(sum, sliceMake((const char *)&id, sizeof(id)));
}

static void mixPending(digest *sum, const streamGroup *g) {
    streamPendingCursor at;
    streamPending p;
    streamPendingSeek(&at, g, NULL, STREAM_ID_MIN);
    while (streamPendingNext(&at, &p)) {
        mixId(sum, p.id);
        digestMix(sum, streamConsumerName(p.owner));
        digestMix(sum, sliceMake((const char *)&p.delivered_ms, sizeof(p.delivered_ms)));
        digestMix(sum, sliceMake((const char *)&p.deliveries, sizeof(p.deliveries)));
    }
}

static void mixGroups(digest *sum, const stream *s) {
    orderedCursor at, names;
    mixId(sum, streamLastId(s));
    mixId(sum, streamMaxDeletedId(s));
    for (const streamGroup *g = streamGroupFirst(s, &at); g; g = streamGroupNext(&at)) {
        digestMix(sum, streamGroupName(g));
        mixId(sum, streamGroupLastId(g));
        for (const streamConsumer *c = streamConsumerFirst(g, &names); c;
             c = streamConsumerNext(&names))
            digestMix(sum, streamConsumerName(c));
        mixPending(sum, g);
    }
}

static digest digestOf(const robj *o) {
    digest sum = {{0}};
    int64_t expire_ms = objectExpire(o);
    objectDigest(o, lookAtAll(), &sum);
    if (objectType(o) == TYPE_HASH) mixTimes(&sum, o);
    if (objectType(o) == TYPE_STREAM) mixGroups(&sum, streamOf(o));
    digestMix(&sum, sliceMake((const char *)&expire_ms, sizeof(expire_ms)));
    return sum;
}

/* ------------------------------------------------------------------ the saver */

static void limit(void *arg) { (void)arg; /* nothing slows this saver */ }

static void take(void *arg, int db_id, const robj *o) {
    (void)arg; /* everything is static */
    record *r = &model[db_id][keyNumber(o)];
    digest now = digestOf(o);
    assert_true(r->present);
    assert_false(r->written);
    assert_memory_equal(&r->value, &now, sizeof(now));
    r->written = true;
    written++;
}

static bool offer(void *arg, int db_id, const robj *o) {
    if (may_refuse && randomUniform(60) == 0) refuses = true;
    if (refuses) return false;
    take(arg, db_id, o);
    return true;
}

/* The value that is being passed on in parts. */
static struct {
    bool runs;
    int db_id;
    robj *o;
    uint64_t due, elements;
    size_t longest;
} parts;
static uint64_t divided, part_min;

static bool divides(void *arg, const robj *o) {
    (void)arg; /* everything is static */
    return typeOf(o)->length(o) >= part_min;
}

static void beginParts(void *arg, const savedValue *value) {
    (void)arg; /* everything is static */
    assert_false(parts.runs);
    slice key = objectKey(value->head);
    parts.runs = true;
    parts.db_id = value->db_id;
    parts.due = value->count;
    parts.elements = 0;
    switch (objectType(value->head)) {
    case TYPE_HASH: parts.o = hashNewLarge(key, 1); break;
    case TYPE_SET: parts.o = setNewLarge(key, 1); break;
    case TYPE_STREAM: parts.o = streamObjectNew(key); break;
    case TYPE_PATHHASH: parts.o = pathHashObjectNew(key); break;
    case TYPE_LIST:
        parts.o = objectNewPointer(key, TYPE_LIST, quicklistNew(1, 0), OBJECT_NO_EXPIRE, 0);
        break;
    default: parts.o = zsetNew(key, 1000, 1, &limits);
    }
    parts.o = objectSetExpire(parts.o, objectExpire(value->head));
}

static void addPath(const valueElement *e) {
    pathFieldsIterator it;
    hashPair pair;
    assert_null(pathHashFind(pathHashOf(parts.o), e->name));
    pathFieldsIteratorInit(&it, e->fields);
    while (pathFieldsNext(&it, &pair)) {
        slice words[2] = {pair.field, pair.value};
        pathHashSet(pathHashOf(parts.o), e->name, words, 2, &limits);
    }
    pathFieldsIteratorClear(&it);
}

static void addPart(void *arg, const valueElement *e) {
    (void)arg; /* everything is static */
    assert_true(parts.runs);
    hashOutcome outcome;
    zsetAdded zset_added = ZSET_ADDED;
    bool added = true;
    listpackItem member = listpackItemOf(e->name);
    zsetPair pair = {e->name, e->score};
    switch (objectType(parts.o)) {
    case TYPE_HASH:
        parts.o =
            hashSetTimed(parts.o, e->name, e->value, e->time_ms, lookAtAll(), &limits, &outcome);
        assert_int_equal(outcome, HASH_CREATED);
        break;
    case TYPE_SET: parts.o = setAdd(parts.o, &member, &set_limits, &added); break;
    case TYPE_PATHHASH: addPath(e); break;
    default: parts.o = zsetAdd(parts.o, &pair, 0, &limits, &zset_added);
    }
    assert_true(added);
    assert_int_equal(zset_added, ZSET_ADDED);
    parts.elements++;
}

static void addNode(void *arg, const quicklistNodeView *node) {
    (void)arg; /* everything is static */
    assert_true(parts.runs);
    uint8_t *bytes = memAlloc(node->bytes + 1);
    if (node->compressed) {
        assert_int_equal(lzf_decompress(node->content.ptr, (unsigned)node->content.len, bytes,
                                        (unsigned)node->bytes),
                         node->bytes);
    } else {
        memcpy(bytes, node->content.ptr, node->bytes);
    }
    if (node->plain) {
        quicklistAppendPlain(objectPointer(parts.o), sliceMake((const char *)bytes, node->bytes));
        memFree(bytes);
    } else {
        quicklistTakeListpack(objectPointer(parts.o), &bytes);
    }
    parts.elements++;
}

static void addStreamNode(void *arg, streamId key, const streamNode *node) {
    (void)arg; /* everything is static */
    assert_true(parts.runs);
    streamNode *copy = streamNodeCopy(node);
    assert_true(streamAddNode(streamOf(parts.o), key, &copy));
    parts.elements++;
}

static void addGroup(stream *to, const streamGroup *from) {
    orderedCursor names;
    streamPendingCursor at;
    streamPending p;
    streamGroup *g = streamGroupCreate(to, streamGroupName(from), streamGroupLastId(from),
                                       streamGroupEntriesRead(from));
    for (const streamConsumer *c = streamConsumerFirst(from, &names); c;
         c = streamConsumerNext(&names))
        assert_non_null(streamConsumerCreate(g, streamConsumerName(c), now_ms));
    streamPendingSeek(&at, from, NULL, STREAM_ID_MIN);
    while (streamPendingNext(&at, &p)) {
        p.owner = streamConsumerFind(g, streamConsumerName(p.owner));
        streamPendingSet(g, &p);
    }
}

static bool addStreamRest(void *arg, const stream *rest, uint64_t count) {
    (void)arg, (void)count; /* everything is static, and copied at once */
    static bool again;
    stream *to = streamOf(parts.o);
    orderedCursor at;
    again = !again;
    if (again) return true;
    assert_int_equal(streamLength(to), streamLength(rest));
    streamSetLastId(to, streamLastId(rest));
    streamSetMaxDeletedId(to, streamMaxDeletedId(rest));
    for (const streamGroup *g = streamGroupFirst(rest, &at); g; g = streamGroupNext(&at))
        addGroup(to, g);
    return false;
}

static void endParts(void *arg) {
    assert_true(parts.runs);
    assert_int_equal(parts.elements, parts.due);
    take(arg, parts.db_id, parts.o);
    objectFree(parts.o);
    parts.runs = false;
    divided++;
}

/* After a walk that was given up. */
static void dropParts(void) {
    if (parts.runs) objectFree(parts.o);
    parts.runs = false;
}

static const storeSaver saver = {.offer = offer,
                                 .take = take,
                                 .limit = limit,
                                 .divides = divides,
                                 .begin = beginParts,
                                 .element = addPart,
                                 .node = addNode,
                                 .stream_node = addStreamNode,
                                 .stream_rest = addStreamRest,
                                 .end = endParts};

static void noteKey(void *arg, const robj *o) {
    record *of_db = arg;
    of_db[keyNumber(o)] = (record){.present = true, .value = digestOf(o)};
    due++;
}

static void countMark(void *arg, const robj *o) { *(uint64_t *)arg += objectIsMarked(o); }

static uint64_t marks(void) {
    uint64_t count = 0;
    for (int i = 0; i < DBS; i++) dbEach(storeDb(i), -1, countMark, &count);
    return count;
}

/* ------------------------------------------------------------------ changes */

static char text_bytes[3000];

static slice anyText(void) {
    size_t len = randomUniform(randomUniform(20) ? 40 : sizeof(text_bytes));
    for (size_t i = 0; i < len; i++) text_bytes[i] = (char)('a' + randomUniform(26));
    return sliceMake(text_bytes, len);
}

static int64_t anyTime(void) {
    if (randomUniform(3)) return OBJECT_NO_EXPIRE;
    return now_ms + 1 + (int64_t)randomUniform(2000);
}

static void changeHash(db *d, slice key, uint64_t hash) {
    char field[32], digits[32];
    dbPosition at;
    robj *o = dbFind(d, key, hash, lookAt(now_ms), &at);
    if (o && objectType(o) != TYPE_HASH) return;
    if (!o) o = hashNew(key);
    bool created;
    hashOutcome outcome;
    for (unsigned n = 1 + (unsigned)randomUniform(10); n > 0; n--) {
        slice value =
            sliceMake(digits, (size_t)snprintf(digits, 32, "%d", (int)randomUniform(1000)));
        slice name = keyText((int)randomUniform(30), field);
        if (randomUniform(4) == 0) {
            o = hashSetTimed(o, name, value, now_ms + 1 + (int64_t)randomUniform(1000),
                             lookAt(now_ms), &limits, &outcome);
        } else {
            o = hashSet(o, name, value, &limits, &created);
        }
    }
    dbPlace(d, &at, o);
}

/* The number of changes of a collection. */
static unsigned changes(void) { return 1 + (unsigned)randomUniform(randomUniform(10) ? 10 : 400); }

static listpackItem anyMember(char *text) {
    int i = (int)randomUniform(randomUniform(20) ? 40 : 400);
    if (randomUniform(2)) return listpackItemInt(i - 20);
    return listpackItemOf(keyText(i, text));
}

static void ignoreMember(void *arg, const listpackItem *member) { (void)arg, (void)member; }

static void changeSet(db *d, slice key, uint64_t hash) {
    char text[32];
    dbPosition at;
    robj *o = dbFind(d, key, hash, lookAt(now_ms), &at);
    if (o && objectType(o) != TYPE_SET) return;
    listpackItem member = anyMember(text);
    if (!o) o = setNew(key, &member, 1, &set_limits);
    bool added;
    o = setAdd(o, &member, &set_limits, &added);
    for (unsigned n = changes(); n > 0; n--) {
        member = anyMember(text);
        if (randomUniform(3)) {
            o = setAdd(o, &member, &set_limits, &added);
        } else if (setLength(o) > 1) {
            (void)setRemove(&o, &member); /* if it is there */
        }
    }
    if (randomUniform(6) == 0) setPop(&o, randomUniform(setLength(o)), ignoreMember, NULL);
    if (randomUniform(10) == 0) o = setTryIntset(o, &set_limits);
    if (setLength(o) == 0) { o = setAdd(o, &member, &set_limits, &added); }
    dbPlace(d, &at, o);
}

static void changeZset(db *d, slice key, uint64_t hash) {
    char text[32];
    dbPosition at;
    robj *o = dbFind(d, key, hash, lookAt(now_ms), &at);
    if (o && objectType(o) != TYPE_ZSET) return;
    if (!o) o = zsetNew(key, 1, 1, &limits);
    zsetAdded added;
    for (unsigned n = changes(); n > 0; n--) {
        slice member = keyText((int)randomUniform(randomUniform(20) ? 40 : 400), text);
        zsetPair pair = {member, (double)randomUniform(1000) / 8};
        if (randomUniform(3) || zsetLength(o) < 2) {
            o = zsetAdd(o, &pair, randomUniform(4) ? 0 : ZSET_INCR, &limits, &added);
        } else {
            (void)zsetRemove(&o, member); /* if it is there */
        }
    }
    zsetRange range = {.index = randomUniform(zsetLength(o))};
    range.count = randomUniform(zsetLength(o) - range.index);
    if (range.count && randomUniform(6) == 0) zsetRemoveRange(&o, &range);
    dbPlace(d, &at, o);
}

static void changeList(db *d, slice key, uint64_t hash) {
    listLimits list_limits = {.fill = 1 + (int)randomUniform(8), .depth = (int)randomUniform(3)};
    dbPosition at;
    robj *o = dbFind(d, key, hash, lookAt(now_ms), &at);
    if (o && objectType(o) != TYPE_LIST) return;
    if (!o) o = listNew(key);
    for (unsigned n = 1 + (unsigned)randomUniform(40); n > 0; n--) {
        slice text = randomUniform(20) ? SLICE("some text") : anyText();
        if (listLength(o) > 60) o = listDelete(o, randomUniform(40), 20);
        size_t length = listLength(o), index = length ? randomUniform(length) : 0, removed;
        unsigned what = length < 2 ? 0 : (unsigned)randomUniform(8);
        if (what < 5) o = listPrepare(o, &text, 1, &list_limits);
        switch (what) {
        case 3: o = listSet(o, index, text); break;
        case 4: o = listInsert(o, index, text, randomUniform(2)); break;
        case 5: o = listDelete(o, randomUniform(2) ? 0 : length - 1, 1); break;
        case 6:
            if (randomUniform(20) == 0) o = listDelete(o, 1, index);
            break;
        case 7: {
            listpackItem item = listpackItemOf(SLICE("none"));
            o = listDeleteEqual(o, &item, 2, false, &removed);
            break;
        }
        default: o = listPush(o, &text, 1, randomUniform(2));
        }
    }
    dbPlace(d, &at, listTryPack(o, &list_limits));
}

static void readSome(stream *s, streamGroup *g) {
    char text[32];
    streamCursor cursor;
    streamId id;
    streamFields fields;
    slice name = keyText((int)randomUniform(3), text);
    streamConsumer *c = streamConsumerFind(g, name);
    if (!c) c = streamConsumerCreate(g, name, now_ms);
    unsigned count = (unsigned)randomUniform(10);
    streamCursorInit(&cursor, s, streamGroupLastId(g), STREAM_ID_MAX, false);
    while (count-- > 0 && streamCursorNext(&cursor, &id, &fields)) {
        streamPending p = {id, c, now_ms, 1};
        streamPendingSet(g, &p);
        streamGroupAdvance(s, g, id);
    }
    streamCursorClear(&cursor);
}

static void changeGroups(stream *s) {
    char text[32];
    slice name = keyText((int)randomUniform(2), text);
    streamGroup *g = streamGroupFind(s, name);
    streamPending p;
    if (!g) g = streamGroupCreate(s, name, STREAM_ID_MIN, 0);
    switch (randomUniform(6)) {
    case 0: streamGroupDestroy(s, g); break;
    case 1:
        if (streamPendingLast(g, &p)) (void)streamPendingRemove(g, p.id); /* it is there */
        break;
    default: readSome(s, g);
    }
}

static void changeStream(db *d, slice key, uint64_t hash) {
    static const streamLimits stream_limits = {.node_bytes = 200, .node_entries = 6};
    dbPosition at;
    robj *o = dbFind(d, key, hash, lookAt(now_ms), &at);
    if (o && objectType(o) != TYPE_STREAM) return;
    if (!o) o = streamObjectNew(key);
    stream *s = streamOf(o);
    for (unsigned n = changes(); n > 0; n--) {
        slice fields[] = {SLICE("field"), randomUniform(20) ? SLICE("value") : anyText()};
        streamId id = streamLastId(s);
        if (randomUniform(3)) {
            id.ms++;
            streamAppend(s, id, fields, 2, &stream_limits);
        } else {
            id.ms -= randomUniform(id.ms + 1);
            (void)streamDelete(s, id); /* if it is there */
        }
    }
    streamTrimRule rule = {.whole_nodes = randomUniform(2), .length = randomUniform(60)};
    if (randomUniform(6) == 0) (void)streamTrim(s, &rule); /* how many does not matter */
    if (streamNodeCount(s) == 0) streamSetLastId(s, (streamId){randomUniform(5), 0});
    changeGroups(s);
    dbPlace(d, &at, o);
}

static void changePaths(db *d, slice key, uint64_t hash) {
    dbPosition at;
    robj *o = dbFind(d, key, hash, lookAt(now_ms), &at);
    if (o && objectType(o) != TYPE_PATHHASH) return;
    if (!o) o = pathHashObjectNew(key);
    for (unsigned n = changes(); n > 0; n--) {
        char path[32], field[32];
        slice name = keyText((int)randomUniform(60), path);
        name.len -= (size_t)randomUniform(3);
        slice words[2] = {keyText((int)randomUniform(9), field),
                          randomUniform(3) ? SLICE("v") : anyText()};
        switch (randomUniform(8)) {
        case 0: (void)pathHashDelete(pathHashOf(o), name); break; /* if it is there */
        case 1: (void)pathHashDeleteFields(pathHashOf(o), name, words, 1); break; /* likewise */
        case 2:
            if (randomUniform(8) == 0) (void)pathHashDeletePrefix(pathHashOf(o), name);
            break;
        default: pathHashSet(pathHashOf(o), name, words, 2, &limits);
        }
    }
    dbPlace(d, &at, o);
}

/* Removes or changes the TTL of fields, and removes fields. */
static void thinHash(db *d, slice key, uint64_t hash) {
    char text[32];
    dbPosition at;
    robj *o = dbFind(d, key, hash, lookAt(now_ms), &at);
    if (!o || objectType(o) != TYPE_HASH) return;
    for (unsigned n = changes(); n > 0; n--) {
        slice field = keyText((int)randomUniform(30), text);
        int64_t time_ms =
            randomUniform(2) ? HASH_NO_TIME : now_ms + 1 + (int64_t)randomUniform(1000);
        if (randomUniform(2)) {
            (void)hashSetTime(&o, field, time_ms, lookAt(now_ms)); /* if it is there */
        } else if (hashLength(o) > 1) {
            (void)hashDelete(&o, field, lookAt(now_ms)); /* likewise */
        }
    }
    dbPlace(d, &at, o);
}

static void setString(db *d, slice key, uint64_t hash) {
    dbPosition at;
    robj *old = dbFind(d, key, hash, lookAt(now_ms), &at);
    slice value = randomUniform(3) ? anyText() : SLICE("12345");
    dbSetString(d, key, &at, old, value, NULL, anyTime());
}

static void setTime(db *d, slice key, uint64_t hash) {
    dbPosition at;
    robj *o = dbFind(d, key, hash, lookAt(now_ms), &at);
    if (o) dbPlace(d, &at, objectSetExpire(o, anyTime()));
}

static void moveOrCopy(db *d, slice key, uint64_t hash, bool copies) {
    char text[32];
    dbKey from = {d, key, hash}, to = {.db = storeDb((int)randomUniform(DBS))};
    to.key = keyText((int)randomUniform(KEYS), text);
    to.hash = storeHash(to.key);
    if (!dbPeek(d, key, hash) || dbPeek(to.db, to.key, to.hash)) return;
    if (copies) {
        assert_int_equal(copyKey(&from, &to), OK);
    } else {
        dbMove(&from, &to);
    }
}

static void passTime(void) {
    now_ms += (int64_t)randomUniform(40);
    storeSetClock(now_ms);
    if (randomUniform(2)) storeExpireTurn(keyspaceMain(), now_ms, 1000000, 10);
}

static void compact(void) {
    storeCompaction plan = {.budget_us = 100, .fields_max = 128, .heap = randomUniform(2)};
    storeCompactReport report = {0};
    (void)storeCompact(&plan, &report); /* continued next time */
    storeTidy(100);
}

/* Keys of a slot that were taken out: the walk has passed them on, or is reading their values. */
static takenKeys *taken;

static void ignoreKey(void *arg, const robj *o) { (void)arg, (void)o; }

static void stepTaken(void) {
    if (!taken) return;
    if (randomUniform(8) == 0) {
        takenFree(taken);
        taken = NULL;
    } else if (!takenStep(taken, 1 + randomUniform(4), randomUniform(2) ? ignoreKey : NULL, NULL)) {
        taken = NULL;
    }
}

static void changeTables(db *d, uint64_t hash) {
    switch (randomUniform(7)) {
    case 0: (void)dbFlush(d, randomUniform(2)); break; /* how many does not matter */
    case 1:
        if (randomUniform(10) == 0) (void)storeFlush(keyspaceMain(), false); /* likewise */
        break;
    case 2:
        if (storeIsSlotted()) (void)dbFlushSlot(d, storeHashSlot(hash), false); /* likewise */
        break;
    case 3:
        if (storeIsSlotted() && !taken) taken = dbTakeSlot(d, storeHashSlot(hash));
        break;
    default: storeSwap(d, storeDb((int)randomUniform(DBS)));
    }
}

static void operate(void) {
    char text[32];
    db *d = storeDb((int)randomUniform(randomUniform(2) ? 1 : DBS));
    slice key = keyText((int)randomUniform(KEYS), text);
    uint64_t hash = storeHash(key);
    evictRule rule = {.order = (evictOrder)randomUniform(4), .samples = 5};
    rule.only_volatile = rule.order == EVICT_TTL;
    switch (randomUniform(23)) {
    case 21: changePaths(d, key, hash); break;
    case 20: changeStream(d, key, hash); break;
    case 19: changeList(d, key, hash); break;
    case 16: changeSet(d, key, hash); break;
    case 17: changeZset(d, key, hash); break;
    case 18: thinHash(d, key, hash); break;
    case 0:
    case 1: changeHash(d, key, hash); break;
    case 2: (void)dbDelete(d, key, hash, lookAt(now_ms)); break; /* if it exists */
    case 3: (void)dbUnlink(d, key, hash, lookAt(now_ms)); break; /* likewise */
    case 4: setTime(d, key, hash); break;
    case 5: moveOrCopy(d, key, hash, false); break;
    case 6: moveOrCopy(d, key, hash, true); break;
    case 7:
        stepTaken();
        if (randomUniform(10) == 0) passTime();
        break;
    case 8:
        if (randomUniform(4) == 0) (void)storeEvictOne(keyspaceMain(), &rule); /* if any may go */
        break;
    case 9:
        if (randomUniform(storeIsSlotted() ? 10 : 100) == 0) changeTables(d, hash);
        break;
    case 10: (void)dbFindRead(d, key, hash, lookAt(now_ms)); break; /* may remove it */
    case 11:
        if (randomUniform(50) == 0) compact();
        break;
    default: setString(d, key, hash);
    }
}

/* ------------------------------------------------------------------ rounds */

static void noteStart(void) {
    memset(model, 0, sizeof(model));
    due = written = 0;
    for (int i = 0; i < DBS; i++) dbEach(storeDb(i), -1, noteKey, model[i]);
}

static void oneWalk(bool abandons) {
    for (int i = (int)randomUniform(3000); i > 0; i--) operate();
    noteStart();
    storeSavingBegin(&saver, NULL);
    unsigned pace = 1 + (unsigned)randomUniform(60);
    may_refuse = randomUniform(2);
    part_min = randomUniform(3) ? 7 + randomUniform(60) : UINT64_MAX;
    do {
        refuses = false;
        for (unsigned i = (unsigned)randomUniform(pace); i > 0; i--) operate();
        if (abandons && randomUniform(20) == 0) {
            storeSavingAbandon();
            dropParts(); /* now, because a flush may free the memory of all objects as a whole */
        }
    } while (storeSavingStep(1 + randomUniform(8)));
    if (!abandons) assert_int_equal(written, due);
    dropParts();
    assert_false(storeSavingRuns());
    assert_int_equal(storeSavingBytes(), 0);
    assert_int_equal(storeSavingKeptBytes(), 0);
    assert_int_equal(marks(), 0);
    for (int i = 0; i < DBS; i++) assert_null(dbVerify(storeDb(i)));
}

static void manyWalks(bool slotted, uint64_t rounds) {
    divided = 0;
    now_ms = 1700000000000;
    storeInit(DBS, slotted);
    storeSetClock(now_ms);
    for (uint64_t i = 0; i < rounds; i++) oneWalk(i % 5 == 4);
    assert_true(divided > 0);
    noteStart();
    storeSavingBegin(&saver, NULL); /* a shutdown during a walk */
    (void)storeSavingStep(1);
    (void)dbFlush(storeDb(0), true);
    dropParts();
    if (taken) takenFree(taken);
    taken = NULL;
    storeShutdown();
}

static void test_each_object_of_the_start_is_passed_on_once_as_it_was(void **state) {
    (void)state;
    testSeed(__func__);
    manyWalks(false, ROUNDS * testScale());
}

static void test_the_same_with_a_table_per_slot(void **state) {
    (void)state;
    testSeed(__func__);
    manyWalks(true, ROUNDS / 4 * testScale());
}

/* The slots of every second key. */
static void leaveOut(slotMask *of) {
    for (int number = 0; number < KEYS; number += 2) {
        char text[32];
        slotMaskRemove(of, storeHashSlot(storeHash(keyText(number, text))));
    }
}

static void hideSlots(bool hide) {
    for (int number = 0; number < KEYS; number += 2) {
        char text[32];
        int slot = storeHashSlot(storeHash(keyText(number, text)));
        storeHideSlot(keyspaceMain(), slot, hide);
    }
}

/* A walk over `slots`, whose objects were noted, while slots are hidden and shown. */
static void walkAndHide(const slotMask *slots) {
    storeSavingBegin(&saver, slots);
    do {
        refuses = false;
        if (randomUniform(1000) == 0) hideSlots(randomUniform(2));
        if (randomUniform(8) == 0) operate();
    } while (storeSavingStep(1 + randomUniform(8)));
    assert_int_equal(written, due);
    dropParts();
    hideSlots(false);
    assert_int_equal(marks(), 0);
}

static void test_a_walk_over_some_slots_passes_on_those_alone(void **state) {
    (void)state;
    testSeed(__func__);
    now_ms = 1700000000000;
    storeInit(DBS, true);
    storeSetClock(now_ms);
    slotMask others;
    memset(&others, 0xff, sizeof(others));
    leaveOut(&others);
    for (int round = 0; round < 2; round++) {
        for (int i = 0; i < 300; i++) operate();
        hideSlots(true);
        noteStart(); /* what is visible */
        walkAndHide(&others);
    }
    storeShutdown();
}

static void test_hidden_slots_are_passed_on_like_others(void **state) {
    (void)state;
    testSeed(__func__);
    now_ms = 1700000000000;
    storeInit(DBS, true);
    storeSetClock(now_ms);
    for (int round = 0; round < 2; round++) {
        for (int i = 0; i < 300; i++) operate();
        noteStart();
        hideSlots(true);
        walkAndHide(NULL);
    }
    storeShutdown();
}

static void test_swapping_keyspaces_abandons_the_walk(void **state) {
    (void)state;
    testSeed(__func__);
    storeInit(DBS, false);
    for (int i = 0; i < 500; i++) operate();
    noteStart();
    storeSavingBegin(&saver, NULL);
    (void)storeSavingStep(1);
    for (int i = 0; i < 100; i++) operate();
    keyspace *other = keyspaceNew();
    keyspaceSwap(keyspaceMain(), other);
    assert_true(storeSavingIsAbandoned());
    keyspaceFree(other, false);
    while (storeSavingStep(64)) {}
    dropParts();
    storeShutdown();
}

int test_saving(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_each_object_of_the_start_is_passed_on_once_as_it_was),
        cmocka_unit_test(test_the_same_with_a_table_per_slot),
        cmocka_unit_test(test_a_walk_over_some_slots_passes_on_those_alone),
        cmocka_unit_test(test_hidden_slots_are_passed_on_like_others),
        cmocka_unit_test(test_swapping_keyspaces_abandons_the_walk),
    };
    return cmocka_run_group_tests_name("saving", tests, NULL, testNoObjects);
}
