/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Writes and reads ids of producers (rdb_producers.h). Invariant: the layout is that of Redis,
 * which is the limits, the producers with their ids in the order in which these were added, and the
 * counters. O(ids). */
#include "format/rdb_producers.h"

#include "base/base.h"
#include "format/rdb_format.h"
#include "store/type_stream.h"

/* ------------------------------------------------------------------ writing */

static void writeProducer(rdbWriter *w, const streamProducer *p) {
    streamProducedCursor at;
    slice iid;
    streamId id;
    uint64_t written = 0;
    rdbWriteString(w, streamProducerName(p));
    rdbWriteLength(w, streamProducerIds(p));
    streamProducedBegin(&at, p);
    for (; streamProducedNext(&at, &iid, &id); written++) {
        rdbWriteString(w, iid);
        rdbWriteLength(w, id.ms);
        rdbWriteLength(w, id.seq);
    }
    check(written == streamProducerIds(p));
}

static void writeTable(rdbWriter *w, const streamProducers *t) {
    orderedCursor at;
    streamProducersState state = streamProducersGet(t);
    rdbWriteLength(w, state.duration_s);
    rdbWriteLength(w, state.ids_max);
    rdbWriteLength(w, streamProducersCount(t));
    const streamProducer *p = streamProducerFirst(t, &at);
    for (; p; p = streamProducerNext(&at)) writeProducer(w, p);
    rdbWriteLength(w, state.added);
    rdbWriteLength(w, state.duplicates);
}

bool rdbHasProducers(const stream *s) {
    const streamProducers *t = streamProducersOf(s);
    if (likely(!t)) return false;
    const streamProducersState state = streamProducersGet(t), none = streamProducersStateDefault();
    return streamProducersIds(t) > 0 || !streamProducersStateEqual(&state, &none);
}

void rdbWriteProducers(rdbWriter *w, const stream *s) {
    if (likely(!rdbHasProducers(s))) return;
    str bytes = STR_EMPTY;
    rdbStrSink sink;
    rdbWriter inner;
    rdbStrSinkInit(&sink, &bytes);
    rdbWriterInit(&inner, &sink.sink, false, false);
    writeTable(&inner, streamProducersOf(s));
    check(rdbWriterFlush(&inner) == OK); /* into memory */
    rdbWriteByte(w, RDB_OP_AUX);
    rdbWriteString(w, RDB_PRODUCERS_FIELD);
    rdbWriteString(w, strSlice(&bytes));
    rdbWriterClear(&inner);
    strFree(&bytes);
}

void rdbWriteProducersOf(rdbWriter *w, const robj *o) {
    if (unlikely(objectType(o) == TYPE_STREAM)) rdbWriteProducers(w, streamOf(o));
}

/* ------------------------------------------------------------------ reading */

/* Reads a producer with its ids. */
static status readProducer(rdbReader *r, streamProducers *t, str *name, str *iid) {
    uint64_t count = 0;
    status st = rdbReadStringInto(r, name);
    if (st == OK) st = rdbReadLength(r, &count);
    for (uint64_t i = 0; st == OK && i < count; i++) {
        streamId id = {0, 0}, before;
        st = rdbReadStringInto(r, iid);
        if (st == OK) st = rdbReadLength(r, &id.ms);
        if (st == OK) st = rdbReadLength(r, &id.seq);
        if (st != OK) return st;
        if (name->len == 0 || iid->len == 0)
            return rdbReaderFail(r, "Empty id of a stream's producer");
        if (streamProducedFind(t, 0, strSlice(name), strSlice(iid), &before))
            return rdbReaderFail(r, "Duplicate id of a stream's producer");
        streamProducedAdd(t, strSlice(name), strSlice(iid), id);
    }
    return st;
}

static status readTable(rdbReader *r, stream *s, const streamProducersState *limits,
                        uint64_t producers) {
    str name = STR_EMPTY, iid = STR_EMPTY;
    streamProducersState state = *limits;
    const streamProducersState none = streamProducersStateDefault();
    status st = OK;
    if (producers > 0) streamProducersSet(streamProducersMake(s), limits);
    for (uint64_t i = 0; st == OK && i < producers; i++)
        st = readProducer(r, streamProducersOf(s), &name, &iid);
    if (st == OK) st = rdbReadLength(r, &state.added);
    if (st == OK) st = rdbReadLength(r, &state.duplicates);
    /* A stream whose limits and counters are the defaults needs no table. */
    if (st == OK && (streamProducersOf(s) || !streamProducersStateEqual(&state, &none)))
        streamProducersSet(streamProducersMake(s), &state);
    strFree(&name);
    strFree(&iid);
    return st;
}

status rdbReadProducers(rdbReader *r, stream *s) {
    uint64_t duration_s = 0, ids_max = 0, producers = 0;
    status st = rdbReadLength(r, &duration_s);
    if (st == OK) st = rdbReadLength(r, &ids_max);
    if (st != OK) return st;
    streamProducersState limits = {.duration_s = (uint32_t)duration_s,
                                   .ids_max = (uint32_t)ids_max};
    if (duration_s > UINT32_MAX || ids_max > UINT32_MAX || !streamProducersStateIsValid(&limits))
        return rdbReaderFail(r, "Invalid limits of the ids of a stream's producers");
    st = rdbReadLength(r, &producers);
    return st == OK ? readTable(r, s, &limits, producers) : st;
}

status rdbReadProducersField(rdbReader *r, slice value, robj *o) {
    if (!o || objectType(o) != TYPE_STREAM || streamProducersOf(streamOf(o)))
        return rdbReaderFail(r, "Ids of producers of a value that is no stream, or has some");
    rdbSliceSource source;
    rdbReader inner;
    rdbSliceSourceInit(&source, value);
    rdbReaderInit(&inner, &source.source, false);
    status st = rdbReadProducers(&inner, streamOf(o));
    if (st == OK && rdbReaderOffset(&inner) != value.len)
        st = rdbReaderFail(&inner, "Bytes after the ids of a stream's producers");
    if (st != OK) {
        r->why = inner.why;
        st = ERR_SYNTAX; /* a short field is damage, not a failure of the source */
    }
    rdbReaderClear(&inner);
    return st;
}

status rdbReadProducersAfter(rdbReader *r, robj *o) {
    uint8_t opcode;
    str name = STR_EMPTY, value = STR_EMPTY;
    status st = rdbReadByte(r, &opcode);
    if (st == OK && opcode != RDB_OP_AUX) st = rdbReaderFail(r, "Bytes after the value");
    if (st == OK) st = rdbReadStringInto(r, &name);
    if (st == OK && !sliceEqual(strSlice(&name), RDB_PRODUCERS_FIELD))
        st = rdbReaderFail(r, "Unknown field after the value");
    if (st == OK) st = rdbReadStringInto(r, &value);
    if (st == OK) st = rdbReadProducersField(r, strSlice(&value), o);
    strFree(&name);
    strFree(&value);
    return st;
}
