/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Streams as RDB bytes: nodes as listpacks, counters, groups with their pending entries, consumers.
 *
 * A group's pending entries are stored once with delivery time and count, and again as ids per
 * consumer. The reader keeps the first list in memory until the consumers are read. O(bytes). */
#include <stdlib.h>

#include "base/base.h"
#include "format/rdb_producers.h"
#include "format/rdb_redis.h"
#include "format/rdb_value_priv.h"
#include "store/type_stream.h"

enum {
    ID_BYTES = 16,
    PENDING_STEP = 4096, /* entries that memory is reserved for before they are read */
};

/* ------------------------------------------------------------------ writing */

/* Writes an id as 16 bytes, big-endian. */
static void packId(streamId id, uint8_t to[ID_BYTES]) {
    for (int i = 0; i < 8; i++) {
        to[i] = (uint8_t)(id.ms >> (56 - 8 * i));
        to[8 + i] = (uint8_t)(id.seq >> (56 - 8 * i));
    }
}

static void writePackedId(rdbWriter *w, streamId id) {
    uint8_t bytes[ID_BYTES];
    packId(id, bytes);
    rdbWriteBytes(w, bytes, sizeof(bytes));
}

static void writeId(rdbWriter *w, streamId id) {
    rdbWriteLength(w, id.ms);
    rdbWriteLength(w, id.seq);
}

void rdbWriteStreamNode(rdbWriter *w, streamId key, const streamNode *n) {
    uint8_t bytes[ID_BYTES];
    packId(key, bytes);
    rdbWriteString(w, sliceMake((const char *)bytes, sizeof(bytes)));
    size_t size = streamNodeListpackSize(n, key);
    uint8_t *listpack = memAlloc(size);
    streamNodeToListpack(n, key, listpack);
    rdbWriteString(w, sliceMake((const char *)listpack, size));
    memFree(listpack);
}

static void writeCounters(rdbWriter *w, const stream *s) {
    rdbWriteLength(w, streamLength(s));
    writeId(w, streamLastId(s));
    writeId(w, streamFirstId(s));
    writeId(w, streamMaxDeletedId(s));
    rdbWriteLength(w, streamEntriesAdded(s));
    rdbWriteLength(w, streamGroupCount(s));
}

static void writeGroup(rdbWriter *w, const streamGroup *g) {
    rdbWriteString(w, streamGroupName(g));
    writeId(w, streamGroupLastId(g));
    rdbWriteLength(w, (uint64_t)streamGroupEntriesRead(g)); /* STREAM_UNKNOWN has all bits set */
    rdbWriteLength(w, streamPendingCount(g));
}

static void writePending(rdbWriter *w, const streamPending *p) {
    writePackedId(w, p->id);
    rdbWriteU64(w, (uint64_t)p->delivered_ms);
    rdbWriteLength(w, p->deliveries);
}

static void writeConsumer(rdbWriter *w, const streamConsumer *c) {
    rdbWriteString(w, streamConsumerName(c));
    rdbWriteU64(w, (uint64_t)streamConsumerSeen(c));
    rdbWriteU64(w, (uint64_t)streamConsumerActive(c));
    rdbWriteLength(w, streamConsumerPending(c));
}

/* Writes one thing; false: all was written. */
static bool writeNext(rdbWriter *w, rdbStreamRest *r) {
    streamPending p;
    switch (r->next) {
    case RDB_REST_COUNTERS:
        writeCounters(w, r->from);
        r->group = streamGroupFirst(r->from, &r->groups);
        r->next = RDB_REST_GROUP;
        return true;
    case RDB_REST_GROUP:
        if (!r->group) return false;
        writeGroup(w, r->group);
        streamPendingSeek(&r->pending, r->group, NULL, STREAM_ID_MIN);
        r->next = RDB_REST_PENDING;
        return true;
    case RDB_REST_PENDING:
        if (streamPendingNext(&r->pending, &p)) {
            writePending(w, &p);
            return true;
        }
        rdbWriteLength(w, streamConsumerCount(r->group));
        r->consumer = streamConsumerFirst(r->group, &r->consumers);
        r->next = RDB_REST_CONSUMER;
        return true;
    case RDB_REST_CONSUMER:
        if (!r->consumer) {
            r->group = streamGroupNext(&r->groups);
            r->next = RDB_REST_GROUP;
            return true;
        }
        writeConsumer(w, r->consumer);
        streamPendingSeek(&r->pending, r->group, r->consumer, STREAM_ID_MIN);
        r->next = RDB_REST_OWNED;
        return true;
    default:
        if (streamPendingNext(&r->pending, &p)) {
            writePackedId(w, p.id);
            return true;
        }
        r->consumer = streamConsumerNext(&r->consumers);
        r->next = RDB_REST_CONSUMER;
        return true;
    }
}

bool rdbWriteStreamRest(rdbWriter *w, rdbStreamRest *r, uint64_t count) {
    bool more = true;
    for (; count > 0 && more; count--) more = writeNext(w, r);
    return more;
}

static bool writeNode(void *arg, streamId key, const streamNode *n) {
    rdbWriter *w = arg;
    rdbWriteStreamNode(w, key, n);
    return rdbWriterStatus(w) == OK;
}

void rdbWriteStream(rdbWriter *w, const robj *o) {
    const stream *s = streamOf(o);
    rdbWriteLength(w, streamNodeCount(s));
    streamEachNode(s, writeNode, w);
    rdbStreamRest rest = {.from = s};
    (void)rdbWriteStreamRest(w, &rest, UINT64_MAX); /* all of it */
}

/* ------------------------------------------------------------------ reading */

static streamId unpackId(const uint8_t *from) {
    streamId id = {0, 0};
    for (int i = 0; i < 8; i++) {
        id.ms = id.ms << 8 | from[i];
        id.seq = id.seq << 8 | from[8 + i];
    }
    return id;
}

static status readPackedId(rdbReader *r, streamId *out) {
    uint8_t bytes[ID_BYTES];
    status st = rdbReadBytes(r, bytes, sizeof(bytes));
    if (st == OK) *out = unpackId(bytes);
    return st;
}

static status readId(rdbReader *r, streamId *out) {
    status st = rdbReadLength(r, &out->ms);
    return st == OK ? rdbReadLength(r, &out->seq) : st;
}

static status readNode(rdbReader *r, stream *s) {
    slice text;
    status st = rdbReadString(r, &text);
    if (st != OK) return st;
    if (text.len != ID_BYTES)
        return rdbReaderFail(r, "Stream node key entry is not the size of a stream ID");
    streamId key = unpackId((const uint8_t *)text.ptr);
    st = rdbReadListpack(r, &text);
    if (st != OK) return st;
    streamNode *node = streamNodeFromListpack(text.ptr, text.len, key);
    if (!node) return rdbReaderFail(r, "Stream listpack integrity check failed.");
    if (streamAddNode(s, key, &node)) return OK;
    streamNodeFree(node, NULL);
    return rdbReaderFail(r, "Listpack re-added with existing key");
}

/* A pending entry of a group whose consumer has not been read. */
typedef struct loosePending {
    streamId id;
    int64_t delivered_ms;
    uint64_t deliveries;
} loosePending;
typedef struct looseList {
    loosePending *entries;
    size_t count, cap;
} looseList;

static int compareLoose(const void *a, const void *b) {
    return streamIdCompare(((const loosePending *)a)->id, ((const loosePending *)b)->id);
}

static status readLooseList(rdbReader *r, looseList *list) {
    uint64_t count;
    status st = rdbReadLength(r, &count);
    for (uint64_t i = 0; st == OK && i < count; i++) {
        if (list->count == list->cap) {
            list->cap = list->cap ? 2 * list->cap : sizeMin((size_t)count, PENDING_STEP);
            list->entries = memRealloc(list->entries, list->cap * sizeof(loosePending));
        }
        loosePending *p = &list->entries[list->count];
        uint64_t ms = 0;
        st = readPackedId(r, &p->id);
        if (st == OK) st = rdbReadU64(r, &ms);
        if (st == OK) st = rdbReadLength(r, &p->deliveries);
        p->delivered_ms = (int64_t)ms;
        if (st == OK) list->count++;
    }
    if (st != OK || list->count == 0) return st;
    qsort(list->entries, list->count, sizeof(loosePending), compareLoose);
    for (size_t i = 1; i < list->count; i++) {
        if (compareLoose(&list->entries[i - 1], &list->entries[i]) == 0)
            return rdbReaderFail(r, "Duplicated global PEL entry loading stream consumer group");
    }
    return OK;
}

/* Assigns a pending entry of the group to its consumer. */
static status claim(rdbReader *r, streamGroup *g, streamConsumer *c, const looseList *list,
                    streamId id) {
    loosePending wanted = {.id = id};
    const loosePending *found = list->count ? bsearch(&wanted, list->entries, list->count,
                                                      sizeof(loosePending), compareLoose)
                                            : NULL;
    if (!found) return rdbReaderFail(r, "Consumer entry not found in group global PEL");
    streamPending p;
    if (streamPendingFind(g, id, &p)) {
        if (p.owner == c)
            return rdbReaderFail(r,
                                 "Duplicated consumer PEL entry  loading a stream consumer group");
        return rdbReaderFail(
            r, "NACK already assigned to a different consumer, shared NACKs across consumers are "
               "not valid");
    }
    p = (streamPending){
        .id = id, .owner = c, .delivered_ms = found->delivered_ms, .deliveries = found->deliveries};
    streamPendingSet(g, &p);
    return OK;
}

/* True if a consumer has the time of its last successful read. */
static bool hasActiveTime(int type) {
    return type == RDB_TYPE_STREAM_3 || type == RDB_REDIS_STREAM_4 || type == RDB_REDIS_STREAM_5;
}

static status readConsumer(rdbReader *r, streamGroup *g, int type, const looseList *list) {
    slice name;
    uint64_t seen = 0, active = 0, count = 0;
    status st = rdbReadString(r, &name);
    if (st != OK) return st;
    streamConsumer *c = streamConsumerCreate(g, name, 0);
    if (!c) return rdbReaderFail(r, "Duplicate stream consumer detected.");
    st = rdbReadU64(r, &seen);
    active = seen;
    if (st == OK && hasActiveTime(type)) st = rdbReadU64(r, &active);
    if (st == OK) st = rdbReadLength(r, &count);
    streamConsumerSetSeen(c, (int64_t)seen);
    streamConsumerSetActive(c, (int64_t)active);
    for (uint64_t i = 0; st == OK && i < count; i++) {
        streamId id;
        st = readPackedId(r, &id);
        if (st == OK) st = claim(r, g, c, list, id);
    }
    return st;
}

/* Reads pending entries that a consumer has released (XNACK). They belong to no consumer there;
 * here to one without a name, delivered at 0, so that XAUTOCLAIM and XREADGROUP CLAIM give them
 * first. */
static status readReleased(rdbReader *r, streamGroup *g, const looseList *list) {
    uint64_t count;
    status st = rdbReadLength(r, &count);
    if (st != OK || count == 0) return st;
    hotCheck(list->count >= streamPendingCount(g));
    streamConsumer *nobody = streamConsumerFind(g, SLICE(""));
    if (!nobody) nobody = streamConsumerCreate(g, SLICE(""), 0);
    for (uint64_t i = 0; st == OK && i < count; i++) {
        streamPending p;
        streamId id;
        st = readPackedId(r, &id);
        if (st == OK) st = claim(r, g, nobody, list, id);
        if (st != OK) break;
        check(streamPendingFind(g, id, &p));
        p.delivered_ms = 0;
        streamPendingSet(g, &p);
    }
    return st;
}

static status readConsumers(rdbReader *r, streamGroup *g, int type) {
    looseList list = {NULL, 0, 0};
    uint64_t consumers = 0;
    status st = readLooseList(r, &list);
    if (st == OK) st = rdbReadLength(r, &consumers);
    for (uint64_t i = 0; st == OK && i < consumers; i++) st = readConsumer(r, g, type, &list);
    if (st == OK && type == RDB_REDIS_STREAM_5) st = readReleased(r, g, &list);
    if (st == OK && streamPendingCount(g) != list.count)
        st = rdbReaderFail(r, "Stream CG PEL entry without consumer");
    memFree(list.entries);
    return st;
}

static status readGroup(rdbReader *r, stream *s, int type) {
    str name = STR_EMPTY;
    streamId last = {0, 0};
    uint64_t entries_read = 0;
    status st = rdbReadStringInto(r, &name);
    if (st == OK) st = readId(r, &last);
    if (st == OK && type != RDB_TYPE_STREAM) st = rdbReadLength(r, &entries_read);
    if (st == OK) {
        int64_t read =
            type == RDB_TYPE_STREAM ? streamEstimateRead(s, last) : (int64_t)entries_read;
        if (read < 0) read = STREAM_UNKNOWN;
        streamGroup *g = streamGroupCreate(s, strSlice(&name), last, read);
        st = g ? readConsumers(r, g, type) : rdbReaderFail(r, "Duplicated consumer group name");
    }
    strFree(&name);
    return st;
}

/* Length and counters, after the nodes. */
static status readCounters(rdbReader *r, stream *s, int type) {
    uint64_t length = 0, added = 0;
    streamId last = {0, 0}, first = {0, 0}, max_deleted = {0, 0};
    status st = rdbReadLength(r, &length);
    if (st == OK) st = readId(r, &last);
    added = length;
    if (type != RDB_TYPE_STREAM) {
        if (st == OK) st = readId(r, &first); /* unused: derived from the nodes */
        if (st == OK) st = readId(r, &max_deleted);
        if (st == OK) st = rdbReadLength(r, &added);
    }
    if (st != OK) return st;
    if (length && streamNodeCount(s) == 0)
        return rdbReaderFail(r, "Stream length inconsistent with rax entries");
    if (length != streamLength(s))
        return rdbReaderFail(r, "Stream length inconsistent with the number of valid entries");
    /* Never below an entry: ids that are appended must be above all there are. */
    if (streamIdLess(streamLastId(s), last)) streamSetLastId(s, last);
    /* Counters that XSETID would refuse could not be written to an append only file. */
    last = streamLastId(s);
    streamSetMaxDeletedId(s, streamIdLess(last, max_deleted) ? last : max_deleted);
    if (added < length || added > INT64_MAX) added = length;
    streamSetEntriesAdded(s, added);
    return OK;
}

status rdbReadStream(valueReader *v, int type) {
    uint64_t nodes = 0, groups = 0;
    v->o = streamObjectNew(v->key);
    stream *s = streamOf(v->o);
    status st = rdbReadLength(v->r, &nodes);
    for (uint64_t i = 0; st == OK && i < nodes; i++) st = readNode(v->r, s);
    if (st == OK) st = readCounters(v->r, s, type);
    if (st == OK) st = rdbReadLength(v->r, &groups);
    for (uint64_t i = 0; st == OK && i < groups; i++) st = readGroup(v->r, s, type);
    bool has_producers = type == RDB_REDIS_STREAM_4 || type == RDB_REDIS_STREAM_5;
    return st == OK && has_producers ? rdbReadProducers(v->r, s) : st;
}
