/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Values as commands (aof_value.h). The elements of a collection are spread over commands of
 * limited length. O(bytes).*/
#include "format/aof_value.h"

#include <stdio.h>

#include "base/base.h"
#include "base/number.h"
#include "ds/listpack.h"
#include "format/aof_stream.h"
#include "format/aof_words.h"
#include "format/rdb_dump.h"
#include "format/rdb_module.h"
#include "store/compressed.h"
#include "store/member_expiry.h"
#include "store/store.h"
#include "store/type_hash.h"
#include "store/type_list.h"
#include "store/type_pathhash.h"
#include "store/type_set.h"
#include "store/type_stream.h"
#include "store/type_zset.h"

enum { ITEMS_PER_COMMAND = 64 };

/* Begins a command "<name> <key>" with up to ITEMS_PER_COMMAND of the remaining items, of `words`
 * words each, when *room is used up. */
static void beginItems(rdbWriter *w, slice name, const robj *o, size_t *room, uint64_t remaining,
                       unsigned words) {
    hotCheck(words > 0);
    hotCheck(words <= 2);
    if ((*room)--) return;
    size_t now = remaining < ITEMS_PER_COMMAND ? (size_t)remaining : ITEMS_PER_COMMAND;
    aofCommandBegin(w, 2 + now * words);
    aofWord(w, name);
    aofWord(w, objectKey(o));
    *room = now - 1;
}

/* ------------------------------------------------------------------ types */

static void writeCompressed(rdbWriter *w, const robj *o) {
    size_t len = compressedRead(o).len;
    char *text = memAlloc(len);
    compressedExpand(o, text);
    aofWord(w, sliceMake(text, len));
    memFree(text);
}

static void writeString(rdbWriter *w, const robj *o) {
    hotCheck(objectType(o) == TYPE_STRING);
    char digits[NUMBER_TEXT_MAX];
    aofCommandBegin(w, 3);
    aofWord(w, SLICE("SET"));
    aofWord(w, objectKey(o));
    if (unlikely(objectIsCompressed(o))) {
        writeCompressed(w, o);
        return;
    }
    if (objectForm(o) != FORM_POINTER) {
        aofWord(w, objectText(o, digits));
        return;
    }
    blob *text = objectPointer(o);
    aofWordBegin(w, text->len);
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
        aofItem(w, &element);
    }
    listCursorClear(&cursor);
}

/* The times of members, in order. */
static void writeMemberTimes(rdbWriter *w, const robj *o) {
    const memberTimes *times = membersTimes(o);
    for (uint64_t i = 0; i < memberTimesCount(times); i++) {
        timedMember m = memberTimesAt(times, i);
        aofWriteMemberTime(w, objectType(o), objectKey(o), m.member, m.time_ms);
    }
}

static void writeSet(rdbWriter *w, const robj *o) {
    hotCheck(objectType(o) == TYPE_SET);
    const memberTimes *times = membersTimes(o);
    uint64_t remaining = setLength(o) + memberTimesHidden(times);
    size_t room = 0;
    setIterator it;
    listpackItem member;
    setIteratorInit(&it, o);
    while (setNext(&it, &member)) {
        beginItems(w, SLICE("SADD"), o, &room, remaining--, 1);
        aofItem(w, &member);
    }
    setIteratorClear(&it);
    for (uint64_t i = 0; i < memberTimesHidden(times); i++) {
        beginItems(w, SLICE("SADD"), o, &room, remaining--, 1);
        aofWord(w, memberTimesAt(times, i).member);
    }
    writeMemberTimes(w, o);
}

static void writePair(rdbWriter *w, const zsetPair *pair) {
    char digits[NUMBER_TEXT_MAX];
    aofWord(w, sliceMake(digits, numberPrintDouble(digits, pair->score)));
    aofWord(w, pair->member);
}

static void writeZset(rdbWriter *w, const robj *o) {
    hotCheck(objectType(o) == TYPE_ZSET);
    const memberTimes *times = membersTimes(o);
    uint64_t visible = zsetLength(o), remaining = visible + memberTimesHidden(times);
    size_t room = 0;
    zsetCursor cursor;
    zsetPair pair;
    if (visible) zsetSeek(&cursor, o, 0, false);
    while (visible-- && zsetNext(&cursor, &pair)) {
        beginItems(w, SLICE("ZADD"), o, &room, remaining--, 2);
        writePair(w, &pair);
    }
    for (uint64_t i = 0; i < memberTimesHidden(times); i++) {
        timedMember hidden = memberTimesAt(times, i);
        beginItems(w, SLICE("ZADD"), o, &room, remaining--, 2);
        writePair(w, &(zsetPair){hidden.member, hidden.score});
    }
    writeMemberTimes(w, o);
}

static void writeTimedFields(rdbWriter *w, const robj *o) {
    hotCheck(objectType(o) == TYPE_HASH);
    hashIterator it;
    hashPair pair;
    int64_t time_ms;
    hashIteratorInit(&it, o, lookAtAll());
    while (hashNextTimed(&it, &pair, &time_ms)) {
        if (time_ms == HASH_NO_TIME) continue;
        aofCommandBegin(w, 8);
        aofWord(w, SLICE("HSETEX"));
        aofWord(w, objectKey(o));
        aofWord(w, SLICE("PXAT"));
        aofNumber(w, time_ms);
        aofWord(w, SLICE("FIELDS"));
        aofWord(w, SLICE("1"));
        aofWord(w, pair.field);
        aofWord(w, pair.value);
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
        aofWord(w, pair.field);
        aofWord(w, pair.value);
    }
    hashIteratorClear(&it);
}

/* ------------------------------------------------------------------ streams */

typedef struct streamTarget {
    rdbWriter *writer;
    slice key;
} streamTarget;

static bool writeNode(void *arg, streamId first, const streamNode *node) {
    const streamTarget *to = arg;
    aofWriteStreamNode(to->writer, to->key, first, node);
    return true;
}

static void writeStream(rdbWriter *w, const robj *o) {
    hotCheck(objectType(o) == TYPE_STREAM);
    streamTarget to = {w, objectKey(o)};
    aofStreamRest rest = {.from = streamOf(o)};
    streamEachNode(rest.from, writeNode, &to);
    (void)aofWriteStreamRest(w, to.key, &rest, UINT64_MAX); /* all of it */
}

/* ------------------------------------------------------------------ path hashes */

static void beginPath(rdbWriter *w, slice key, slice path, size_t fields) {
    hotCheck(fields > 0);
    aofCommandBegin(w, 5 + 2 * fields);
    aofWord(w, SLICE("PHSET"));
    aofWord(w, key);
    aofWord(w, path);
    aofWord(w, SLICE("FIELDS"));
    aofNumber(w, (int64_t)fields);
}

void aofWritePath(rdbWriter *w, slice key, slice path, const pathFields *fields) {
    size_t remaining = pathFieldsCount(fields), room = 0;
    pathFieldsIterator it;
    hashPair pair;
    pathFieldsIteratorInit(&it, fields);
    while (pathFieldsNext(&it, &pair)) {
        if (room == 0) {
            room = remaining < ITEMS_PER_COMMAND ? remaining : ITEMS_PER_COMMAND;
            remaining -= room;
            beginPath(w, key, path, room);
        }
        room--;
        aofWord(w, pair.field);
        aofWord(w, pair.value);
    }
    pathFieldsIteratorClear(&it);
    hotCheck(remaining == 0);
}

/* PHDEL of the last path would remove the key, unless pathhash-keep-empty is on. */
static void writeNoPaths(rdbWriter *w, const robj *o) {
    hotCheck(pathHashCount(pathHashOf(o)) == 0);
    str payload = STR_EMPTY;
    rdbDump(o, w->db_id, RDB_FORM_VALKEY, &payload);
    const slice words[] = {SLICE("RESTORE"), objectKey(o), SLICE("0"), strSlice(&payload)};
    aofWriteCommand(w, (int)COUNT_OF(words), words);
    strFree(&payload);
}

static void writePathHash(rdbWriter *w, const robj *o) {
    hotCheck(objectType(o) == TYPE_PATHHASH);
    pathHashCursor c;
    slice path;
    const pathFields *fields;
    if (pathHashCount(pathHashOf(o)) == 0) writeNoPaths(w, o);
    pathHashCursorInit(&c, pathHashOf(o));
    while (pathHashNext(&c, &path, &fields)) aofWritePath(w, objectKey(o), path, fields);
    pathHashCursorClear(&c);
}

/* ------------------------------------------------------------------ types of modules */

static void writeModule(rdbWriter *w, const robj *o) {
    const moduleValue *v = moduleValueOf(o);
    const moduleCodec *c = v->type->codec;
    valuePlace at = {w->db_id, objectKey(o)};
    check(c != NULL);
    if (c->write_commands) c->write_commands(c, w, &at, v->content);
}

void aofWriteMemberTime(rdbWriter *w, int type, slice key, slice member, int64_t time_ms) {
    char digits[NUMBER_TEXT_MAX];
    const slice words[] = {type == TYPE_SET ? SLICE("SPEXPIREAT") : SLICE("ZPEXPIREAT"),
                           key,
                           sliceMake(digits, numberPrintInt(digits, time_ms)),
                           SLICE("MEMBERS"),
                           SLICE("1"),
                           member};
    aofWriteCommand(w, (int)COUNT_OF(words), words);
}

void aofWriteCommand(rdbWriter *w, int argc, const slice *argv) {
    aofCommandBegin(w, (uint64_t)argc);
    for (int i = 0; i < argc; i++) aofWord(w, argv[i]);
}

/* ------------------------------------------------------------------ keys */

void aofWriteKey(rdbWriter *w, const robj *o) {
    static void (*const writers[TYPE_COUNT])(rdbWriter * to, const robj *value) = {
        [TYPE_STRING] = writeString, [TYPE_LIST] = writeList,        [TYPE_SET] = writeSet,
        [TYPE_ZSET] = writeZset,     [TYPE_HASH] = writeHash,        [TYPE_STREAM] = writeStream,
        [TYPE_MODULE] = writeModule, [TYPE_PATHHASH] = writePathHash};
    bool opens = objectIsCompressed(o) && objectType(o) != TYPE_STRING;
    robj *plain = opens ? compressedOpen(o) : NULL;
    writers[objectType(o)](w, plain ? plain : o);
    if (plain) compressedClose(plain);
    if (!objectHasExpire(o)) return;
    aofCommandBegin(w, 3);
    aofWord(w, SLICE("PEXPIREAT"));
    aofWord(w, objectKey(o));
    aofNumber(w, objectExpire(o));
}

void aofWriteSelect(rdbWriter *w, int db_id) {
    w->db_id = db_id;
    aofCommandBegin(w, 2);
    aofWord(w, SLICE("SELECT"));
    aofNumber(w, db_id);
}

void aofWriteLibrary(rdbWriter *w, slice code) {
    aofCommandBegin(w, 3);
    aofWord(w, SLICE("FUNCTION"));
    aofWord(w, SLICE("LOAD"));
    aofWord(w, code);
}

void aofWriteTime(rdbWriter *w, int64_t time_s) {
    char text[64];
    int len = snprintf(text, sizeof(text), "#TS:%lld\r\n", (long long)time_s);
    rdbWriteBytes(w, text, (size_t)len);
}
