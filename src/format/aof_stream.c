/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Streams as commands (aof_stream.h). O(bytes). */
#include "format/aof_stream.h"

#include <stdio.h>

#include "base/base.h"
#include "base/number.h"
#include "format/aof_value.h"
#include "format/aof_words.h"

static void wordId(rdbWriter *w, streamId id) {
    char text[2 * NUMBER_TEXT_MAX];
    int len = snprintf(text, sizeof(text), "%llu-%llu", (unsigned long long)id.ms,
                       (unsigned long long)id.seq);
    aofWord(w, sliceMake(text, (size_t)len));
}

/* ------------------------------------------------------------------ entries */

static void writeEntry(rdbWriter *w, slice key, const streamNode *node, const streamEntry *e) {
    streamFields fields;
    hotCheck(!e->deleted);
    streamNodeFields(node, e, &fields);
    aofCommandBegin(w, 3 + 2 * (uint64_t)fields.left);
    aofWord(w, SLICE("XADD"));
    aofWord(w, key);
    wordId(w, e->id);
    while (fields.left) {
        listpackItem name, value;
        streamFieldsNext(&fields, &name, &value);
        aofItem(w, &name);
        aofItem(w, &value);
    }
}

void aofWriteStreamNode(rdbWriter *w, slice key, streamId first, const streamNode *node) {
    streamEntry e;
    uint32_t written = 0;
    for (bool more = streamNodeFirst(node, first, &e); more;
         more = streamNodeNext(node, first, &e)) {
        if (e.deleted) continue;
        writeEntry(w, key, node, &e);
        written++;
    }
    check(written == node->live);
}

/* ------------------------------------------------------------------ counters and groups */

/* Creates a stream without entries. */
static void writeEmptyStream(rdbWriter *w, slice key) {
    aofCommandBegin(w, 7);
    aofWord(w, SLICE("XADD"));
    aofWord(w, key);
    aofWord(w, SLICE("MAXLEN"));
    aofWord(w, SLICE("0"));
    aofWord(w, SLICE("0-1"));
    aofWord(w, SLICE("x"));
    aofWord(w, SLICE("y"));
}

static void writeCounters(rdbWriter *w, slice key, const stream *s) {
    if (!streamLength(s)) writeEmptyStream(w, key);
    aofCommandBegin(w, 7);
    aofWord(w, SLICE("XSETID"));
    aofWord(w, key);
    wordId(w, streamLastId(s));
    aofWord(w, SLICE("ENTRIESADDED"));
    aofUnsigned(w, streamEntriesAdded(s));
    aofWord(w, SLICE("MAXDELETEDID"));
    wordId(w, streamMaxDeletedId(s));
}

static void writeGroup(rdbWriter *w, slice key, const streamGroup *g) {
    aofCommandBegin(w, 7);
    aofWord(w, SLICE("XGROUP"));
    aofWord(w, SLICE("CREATE"));
    aofWord(w, key);
    aofWord(w, streamGroupName(g));
    wordId(w, streamGroupLastId(g));
    aofWord(w, SLICE("ENTRIESREAD"));
    aofNumber(w, streamGroupEntriesRead(g));
}

static void writePending(rdbWriter *w, slice key, const streamGroup *g, const streamPending *p) {
    hotCheck(p->owner);
    aofCommandBegin(w, 12);
    aofWord(w, SLICE("XCLAIM"));
    aofWord(w, key);
    aofWord(w, streamGroupName(g));
    aofWord(w, streamConsumerName(p->owner));
    aofWord(w, SLICE("0"));
    wordId(w, p->id);
    aofWord(w, SLICE("TIME"));
    aofNumber(w, p->delivered_ms);
    aofWord(w, SLICE("RETRYCOUNT"));
    aofUnsigned(w, p->deliveries);
    aofWord(w, SLICE("JUSTID"));
    aofWord(w, SLICE("FORCE"));
}

static void writeConsumer(rdbWriter *w, slice key, const streamGroup *g, const streamConsumer *c) {
    if (streamConsumerPending(c)) return; /* XCLAIM has created it */
    aofCommandBegin(w, 5);
    aofWord(w, SLICE("XGROUP"));
    aofWord(w, SLICE("CREATECONSUMER"));
    aofWord(w, key);
    aofWord(w, streamGroupName(g));
    aofWord(w, streamConsumerName(c));
}

/* ------------------------------------------------------------------ producers */

static void producersBegin(rdbWriter *w, slice key, uint64_t words, slice what) {
    aofCommandBegin(w, 4 + words);
    aofWord(w, SLICE("XACK"));
    aofWord(w, key);
    aofWord(w, AOF_PRODUCERS);
    aofWord(w, what);
}

static void writeLimits(rdbWriter *w, slice key, const streamProducers *t) {
    streamProducersState state = streamProducersGet(t);
    producersBegin(w, key, 2, SLICE("LIMITS"));
    aofUnsigned(w, state.duration_s);
    aofUnsigned(w, state.ids_max);
}

static void writeProducerCounters(rdbWriter *w, slice key, const streamProducers *t) {
    streamProducersState state = streamProducersGet(t);
    producersBegin(w, key, 2, SLICE("COUNTERS"));
    aofUnsigned(w, state.added);
    aofUnsigned(w, state.duplicates);
}

static void writeProduced(rdbWriter *w, slice key, const streamProducer *p, slice iid,
                          streamId id) {
    producersBegin(w, key, 3, SLICE("ID"));
    aofWord(w, streamProducerName(p));
    aofWord(w, iid);
    wordId(w, id);
}

/* Begins to write the ids of producers. False: the stream has no table of them. */
static bool beginProducers(rdbWriter *w, slice key, aofStreamRest *r) {
    const streamProducers *t = streamProducersOf(r->from);
    if (!t) return false;
    writeLimits(w, key, t);
    r->producer = streamProducerFirst(t, &r->consumers);
    if (r->producer) streamProducedBegin(&r->ids, r->producer);
    r->next = AOF_REST_IDS;
    return true;
}

/* Writes the next id. After the last id, writes the counters and returns false. */
static bool writeNextId(rdbWriter *w, slice key, aofStreamRest *r) {
    slice iid;
    streamId id;
    if (!r->producer) {
        writeProducerCounters(w, key, streamProducersOf(r->from));
        return false;
    }
    if (streamProducedNext(&r->ids, &iid, &id)) {
        writeProduced(w, key, r->producer, iid, id);
        return true;
    }
    r->producer = streamProducerNext(&r->consumers);
    if (r->producer) streamProducedBegin(&r->ids, r->producer);
    return true;
}

/* Writes one thing; false: all was written. */
static bool writeNext(rdbWriter *w, slice key, aofStreamRest *r) {
    streamPending p;
    switch (r->next) {
    case AOF_REST_COUNTERS:
        writeCounters(w, key, r->from);
        r->group = streamGroupFirst(r->from, &r->groups);
        r->next = AOF_REST_GROUP;
        return true;
    case AOF_REST_GROUP:
        if (!r->group) return beginProducers(w, key, r);
        writeGroup(w, key, r->group);
        streamPendingSeek(&r->pending, r->group, NULL, STREAM_ID_MIN);
        r->next = AOF_REST_PENDING;
        return true;
    case AOF_REST_PENDING:
        if (streamPendingNext(&r->pending, &p)) {
            writePending(w, key, r->group, &p);
            return true;
        }
        r->consumer = streamConsumerFirst(r->group, &r->consumers);
        r->next = AOF_REST_CONSUMER;
        return true;
    case AOF_REST_IDS: return writeNextId(w, key, r);
    default:
        if (r->consumer) {
            writeConsumer(w, key, r->group, r->consumer);
            r->consumer = streamConsumerNext(&r->consumers);
        } else {
            r->group = streamGroupNext(&r->groups);
            r->next = AOF_REST_GROUP;
        }
        return true;
    }
}

bool aofWriteStreamRest(rdbWriter *w, slice key, aofStreamRest *r, uint64_t count) {
    check(r->from);
    bool more = true;
    for (; count > 0 && more; count--) more = writeNext(w, key, r);
    return more;
}
