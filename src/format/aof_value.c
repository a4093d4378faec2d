/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Values as commands (aof_value.h). The elements of a collection are spread over commands of
 * limited length. O(bytes).*/
#include "format/aof_value.h"

#include <stdio.h>

#include "base/base.h"
#include "base/number.h"
#include "ds/listpack.h"
#include "format/rdb_module.h"
#include "store/store.h"
#include "store/type_hash.h"
#include "store/type_list.h"
#include "store/type_set.h"
#include "store/type_stream.h"
#include "store/type_zset.h"

enum { ITEMS_PER_COMMAND = 64 };

static void writeNumberLine(rdbWriter *w, char prefix, uint64_t number) {
    char line[NUMBER_TEXT_MAX + 3];
    line[0] = prefix;
    size_t len = 1 + numberPrintUint(line + 1, number);
    line[len++] = '\r';
    line[len++] = '\n';
    rdbWriteBytes(w, line, len);
}

static void begin(rdbWriter *w, uint64_t argc) { writeNumberLine(w, '*', argc); }

static void word(rdbWriter *w, slice text) {
    writeNumberLine(w, '$', text.len);
    rdbWriteBytes(w, text.ptr, text.len);
    rdbWriteBytes(w, "\r\n", 2);
}

static void number(rdbWriter *w, int64_t value) {
    char digits[NUMBER_TEXT_MAX];
    word(w, sliceMake(digits, numberPrintInt(digits, value)));
}

static void unsignedNumber(rdbWriter *w, uint64_t value) {
    char digits[NUMBER_TEXT_MAX];
    word(w, sliceMake(digits, numberPrintUint(digits, value)));
}

static void item(rdbWriter *w, const listpackItem *i) {
    if (i->ptr) {
        word(w, sliceMake(i->ptr, i->len));
    } else {
        number(w, i->number);
    }
}

/* Begins a command "<name> <key>" with up to ITEMS_PER_COMMAND of the remaining items, of `words`
 * words each, when *room is used up. */
static void beginItems(rdbWriter *w, slice name, const robj *o, size_t *room, uint64_t remaining,
                       unsigned words) {
    hotCheck(words > 0);
    hotCheck(words <= 2);
    if ((*room)--) return;
    size_t now = remaining < ITEMS_PER_COMMAND ? (size_t)remaining : ITEMS_PER_COMMAND;
    begin(w, 2 + now * words);
    word(w, name);
    word(w, objectKey(o));
    *room = now - 1;
}

/* ------------------------------------------------------------------ types */

static void writeString(rdbWriter *w, const robj *o) {
    hotCheck(objectType(o) == TYPE_STRING);
    char digits[NUMBER_TEXT_MAX];
    begin(w, 3);
    word(w, SLICE("SET"));
    word(w, objectKey(o));
    if (objectForm(o) != FORM_POINTER) {
        word(w, objectText(o, digits));
        return;
    }
    blob *text = objectPointer(o);
    writeNumberLine(w, '$', text->len);
    rdbWriteBlobBytes(w, text);
    rdbWriteBytes(w, "\r\n", 2);
}

static void writeList(rdbWriter *w, const robj *o) {
    hotCheck(objectType(o) == TYPE_LIST);
    uint64_t remaining = listLength(o);
    size_t room = 0;
    listCursor cursor;
    listpackItem element;
    listCursorInit(&cursor, o, 0, false);
    while (listNextItem(&cursor, &element)) {
        beginItems(w, SLICE("RPUSH"), o, &room, remaining--, 1);
        item(w, &element);
    }
    listCursorClear(&cursor);
}

static void writeSet(rdbWriter *w, const robj *o) {
    hotCheck(objectType(o) == TYPE_SET);
    uint64_t remaining = setLength(o);
    size_t room = 0;
    setIterator it;
    listpackItem member;
    setIteratorInit(&it, o);
    while (setNext(&it, &member)) {
        beginItems(w, SLICE("SADD"), o, &room, remaining--, 1);
        item(w, &member);
    }
    setIteratorClear(&it);
}

static void writeZset(rdbWriter *w, const robj *o) {
    hotCheck(objectType(o) == TYPE_ZSET);
    uint64_t remaining = zsetLength(o);
    size_t room = 0;
    zsetCursor cursor;
    zsetPair pair;
    char digits[NUMBER_TEXT_MAX];
    zsetSeek(&cursor, o, 0, false);
    while (zsetNext(&cursor, &pair)) {
        beginItems(w, SLICE("ZADD"), o, &room, remaining--, 2);
        word(w, sliceMake(digits, numberPrintDouble(digits, pair.score)));
        word(w, pair.member);
    }
}

static void writeTimedFields(rdbWriter *w, const robj *o) {
    hotCheck(objectType(o) == TYPE_HASH);
    hashIterator it;
    hashPair pair;
    int64_t time_ms;
    hashIteratorInit(&it, o, lookAtAll());
    while (hashNextTimed(&it, &pair, &time_ms)) {
        if (time_ms == HASH_NO_TIME) continue;
        begin(w, 8);
        word(w, SLICE("HSETEX"));
        word(w, objectKey(o));
        word(w, SLICE("PXAT"));
        number(w, time_ms);
        word(w, SLICE("FIELDS"));
        word(w, SLICE("1"));
        word(w, pair.field);
        word(w, pair.value);
    }
    hashIteratorClear(&it);
}

static void writeHash(rdbWriter *w, const robj *o) {
    hotCheck(objectType(o) == TYPE_HASH);
    uint64_t timed = hashTimedCount(o), remaining = hashLength(o) - timed;
    if (timed) writeTimedFields(w, o);
    size_t room = 0;
    hashIterator it;
    hashPair pair;
    int64_t time_ms;
    hashIteratorInit(&it, o, lookAtAll());
    while (hashNextTimed(&it, &pair, &time_ms)) {
        if (time_ms != HASH_NO_TIME) continue;
        beginItems(w, SLICE("HMSET"), o, &room, remaining--, 2);
        word(w, pair.field);
        word(w, pair.value);
    }
    hashIteratorClear(&it);
}

/* ------------------------------------------------------------------ streams */

static void wordId(rdbWriter *w, streamId id) {
    char text[2 * NUMBER_TEXT_MAX];
    int len = snprintf(text, sizeof(text), "%llu-%llu", (unsigned long long)id.ms,
                       (unsigned long long)id.seq);
    word(w, sliceMake(text, (size_t)len));
}

static void writeEntries(rdbWriter *w, const robj *o) {
    hotCheck(objectType(o) == TYPE_STREAM);
    const stream *s = streamOf(o);
    streamCursor cursor;
    streamId id;
    streamFields fields;
    streamCursorInit(&cursor, s, STREAM_ID_MIN, STREAM_ID_MAX, false);
    while (streamCursorNext(&cursor, &id, &fields)) {
        begin(w, 3 + 2 * (uint64_t)fields.left);
        word(w, SLICE("XADD"));
        word(w, objectKey(o));
        wordId(w, id);
        while (fields.left) {
            listpackItem name, value;
            streamFieldsNext(&fields, &name, &value);
            item(w, &name);
            item(w, &value);
        }
    }
    streamCursorClear(&cursor);
}

/* Creates a stream without entries. */
static void writeEmptyStream(rdbWriter *w, const robj *o) {
    hotCheck(objectType(o) == TYPE_STREAM);
    begin(w, 7);
    word(w, SLICE("XADD"));
    word(w, objectKey(o));
    word(w, SLICE("MAXLEN"));
    word(w, SLICE("0"));
    word(w, SLICE("0-1"));
    word(w, SLICE("x"));
    word(w, SLICE("y"));
}

static void writePending(rdbWriter *w, const robj *o, const streamGroup *g) {
    hotCheck(objectType(o) == TYPE_STREAM);
    streamPendingCursor cursor;
    streamPending p;
    streamPendingSeek(&cursor, g, NULL, STREAM_ID_MIN);
    while (streamPendingNext(&cursor, &p)) {
        begin(w, 12);
        word(w, SLICE("XCLAIM"));
        word(w, objectKey(o));
        word(w, streamGroupName(g));
        word(w, streamConsumerName(p.owner));
        word(w, SLICE("0"));
        wordId(w, p.id);
        word(w, SLICE("TIME"));
        number(w, p.delivered_ms);
        word(w, SLICE("RETRYCOUNT"));
        unsignedNumber(w, p.deliveries);
        word(w, SLICE("JUSTID"));
        word(w, SLICE("FORCE"));
    }
}

static void writeGroup(rdbWriter *w, const robj *o, const streamGroup *g) {
    hotCheck(objectType(o) == TYPE_STREAM);
    begin(w, 7);
    word(w, SLICE("XGROUP"));
    word(w, SLICE("CREATE"));
    word(w, objectKey(o));
    word(w, streamGroupName(g));
    wordId(w, streamGroupLastId(g));
    word(w, SLICE("ENTRIESREAD"));
    number(w, streamGroupEntriesRead(g));
    writePending(w, o, g);
    orderedCursor at;
    for (streamConsumer *c = streamConsumerFirst(g, &at); c; c = streamConsumerNext(&at)) {
        if (streamConsumerPending(c)) continue; /* XCLAIM creates the others */
        begin(w, 5);
        word(w, SLICE("XGROUP"));
        word(w, SLICE("CREATECONSUMER"));
        word(w, objectKey(o));
        word(w, streamGroupName(g));
        word(w, streamConsumerName(c));
    }
}

static void writeStream(rdbWriter *w, const robj *o) {
    hotCheck(objectType(o) == TYPE_STREAM);
    const stream *s = streamOf(o);
    if (streamLength(s)) {
        writeEntries(w, o);
    } else {
        writeEmptyStream(w, o);
    }
    begin(w, 7);
    word(w, SLICE("XSETID"));
    word(w, objectKey(o));
    wordId(w, streamLastId(s));
    word(w, SLICE("ENTRIESADDED"));
    unsignedNumber(w, streamEntriesAdded(s));
    word(w, SLICE("MAXDELETEDID"));
    wordId(w, streamMaxDeletedId(s));
    orderedCursor at;
    for (streamGroup *g = streamGroupFirst(s, &at); g; g = streamGroupNext(&at))
        writeGroup(w, o, g);
}

/* ------------------------------------------------------------------ types of modules */

static void writeModule(rdbWriter *w, const robj *o) {
    const moduleValue *v = moduleValueOf(o);
    const moduleCodec *c = v->type->codec;
    valuePlace at = {w->db_id, objectKey(o)};
    check(c != NULL);
    if (c->write_commands) c->write_commands(c, w, &at, v->content);
}

void aofWriteCommand(rdbWriter *w, int argc, const slice *argv) {
    begin(w, (uint64_t)argc);
    for (int i = 0; i < argc; i++) word(w, argv[i]);
}

/* ------------------------------------------------------------------ keys */

void aofWriteKey(rdbWriter *w, const robj *o) {
    static void (*const writers[TYPE_COUNT])(rdbWriter * to, const robj *value) = {
        [TYPE_STRING] = writeString, [TYPE_LIST] = writeList, [TYPE_SET] = writeSet,
        [TYPE_ZSET] = writeZset,     [TYPE_HASH] = writeHash, [TYPE_STREAM] = writeStream,
        [TYPE_MODULE] = writeModule};
    writers[objectType(o)](w, o);
    if (!objectHasExpire(o)) return;
    begin(w, 3);
    word(w, SLICE("PEXPIREAT"));
    word(w, objectKey(o));
    number(w, objectExpire(o));
}

void aofWriteSelect(rdbWriter *w, int db_id) {
    w->db_id = db_id;
    begin(w, 2);
    word(w, SLICE("SELECT"));
    number(w, db_id);
}

void aofWriteLibrary(rdbWriter *w, slice code) {
    begin(w, 3);
    word(w, SLICE("FUNCTION"));
    word(w, SLICE("LOAD"));
    word(w, code);
}

void aofWriteTime(rdbWriter *w, int64_t time_s) {
    char text[64];
    int len = snprintf(text, sizeof(text), "#TS:%lld\r\n", (long long)time_s);
    rdbWriteBytes(w, text, (size_t)len);
}
