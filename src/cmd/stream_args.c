/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Functions shared by the stream commands: ids as arguments, replies with entries, propagation of
 * group changes. Main thread only. */
#include "base/base.h"
#include "cmd/cmd_priv.h"
#include "cmd/stream_priv.h"

/* ------------------------------------------------------------------ ids */

void streamReplyInvalidId(ctx *c) {
    replyError(c, SLICE("ERR Invalid stream ID specified as stream command argument"));
}

/* Only digits; leading zeros are allowed. */
static bool parseDigits(slice text, uint64_t *out) {
    uint64_t v = 0;
    if (text.len == 0) return false;
    for (size_t i = 0; i < text.len; i++) {
        unsigned digit = (unsigned)(text.ptr[i] - '0');
        if (digit > 9) return false;
        if (__builtin_mul_overflow(v, 10u, &v) || __builtin_add_overflow(v, digit, &v))
            return false;
    }
    *out = v;
    return true;
}

/* Parses one of an id's two numbers as Valkey does: canonical negative numbers are refused,
 * everything else follows strtoull(), which accepts blanks and a sign before the digits and wraps a
 * negated number. */
static bool parsePart(slice text, uint64_t *out) {
    int64_t negative;
    if (parseDigits(text, out)) return true;
    if (numberParseInt(text, &negative)) return false;
    size_t i = 0;
    while (i < text.len && byteIsBlank(text.ptr[i])) i++;
    bool minus = i < text.len && text.ptr[i] == '-';
    if (minus || (i < text.len && text.ptr[i] == '+')) i++;
    if (!parseDigits(sliceMake(text.ptr + i, text.len - i), out)) return false;
    if (minus) *out = 0 - *out;
    return true;
}

slice streamBeforeZero(slice text) {
    const char *zero = text.len ? memchr(text.ptr, '\0', text.len) : NULL;
    return zero ? sliceMake(text.ptr, (size_t)(zero - text.ptr)) : text;
}

bool streamIsWord(slice text, char word) {
    if (text.len == 0 || text.ptr[0] != word) return false;
    return text.len == 1 || text.ptr[1] == '\0';
}

bool streamParseId(slice text, uint64_t missing_seq, streamId *out) {
    enum { TEXT_MAX = 127 };
    if (text.len == 0 || text.len > TEXT_MAX) return false;
    text = streamBeforeZero(text);
    const char *dash = memchr(text.ptr, '-', text.len);
    if (!dash) {
        out->seq = missing_seq;
        return parsePart(text, &out->ms);
    }
    size_t at = (size_t)(dash - text.ptr);
    return parsePart(sliceMake(text.ptr, at), &out->ms) &&
           parsePart(sliceMake(dash + 1, text.len - at - 1), &out->seq);
}

/* Parses an id, `-` or `+`. */
static bool parseIdOrEnd(slice text, uint64_t missing_seq, streamId *out) {
    if (streamIsWord(text, '-')) {
        *out = STREAM_ID_MIN;
        return true;
    }
    if (streamIsWord(text, '+')) {
        *out = STREAM_ID_MAX;
        return true;
    }
    return streamParseId(text, missing_seq, out);
}

bool streamArgId(ctx *c, int i, uint64_t missing_seq, streamId *out) {
    hotCheck(i > 0);
    hotCheck(i <= c->argc);
    if (streamParseId(c->argv[i], missing_seq, out)) return true;
    streamReplyInvalidId(c);
    return false;
}

bool streamArgIdOrEnd(ctx *c, int i, uint64_t missing_seq, streamId *out) {
    hotCheck(i > 0);
    hotCheck(i <= c->argc);
    if (parseIdOrEnd(c->argv[i], missing_seq, out)) return true;
    streamReplyInvalidId(c);
    return false;
}

bool streamArgIdCount(ctx *c, int *i, int *first, int *count) {
    hotCheck(*i > 0);
    hotCheck(*i + 1 < c->argc);
    int64_t ids;
    if (!ctxArgIntIn(c, *i + 1, 1, INT64_MAX, &ids, "ERR Number of IDs must be a positive integer"))
        return false;
    *first = *i + 2;
    if (ids > c->argc - *first) {
        replyError(c, SLICE("ERR The `numids` parameter must match the number of arguments"));
        return false;
    }
    *count = (int)ids;
    *i = *first + *count - 1;
    return true;
}

/* Parses one end of a range; *excluded: the range does not include it. */
static bool argInterval(ctx *c, int i, uint64_t missing_seq, streamId *out, bool *excluded) {
    hotCheck(i > 0);
    hotCheck(i <= c->argc);
    slice text = c->argv[i];
    *excluded = text.len > 1 && text.ptr[0] == '(';
    bool valid = *excluded ? streamParseId(sliceMake(text.ptr + 1, text.len - 1), missing_seq, out)
                           : parseIdOrEnd(text, missing_seq, out);
    if (!valid) streamReplyInvalidId(c);
    return valid;
}

bool streamArgRangeStart(ctx *c, int i, streamId *out) {
    hotCheck(i > 0);
    hotCheck(i <= c->argc);
    bool excluded;
    if (!argInterval(c, i, 0, out, &excluded)) return false;
    if (!excluded || streamIdNext(out)) return true;
    replyError(c, SLICE("ERR invalid start ID for the interval"));
    return false;
}

bool streamArgRangeEnd(ctx *c, int i, streamId *out) {
    hotCheck(i > 0);
    hotCheck(i <= c->argc);
    bool excluded;
    if (!argInterval(c, i, UINT64_MAX, out, &excluded)) return false;
    if (!excluded || streamIdPrev(out)) return true;
    replyError(c, SLICE("ERR invalid end ID for the interval"));
    return false;
}

slice streamIdText(streamId id, char *text) {
    size_t len = numberPrintUint(text, id.ms);
    text[len++] = '-';
    len += numberPrintUint(text + len, id.seq);
    return sliceMake(text, len);
}

/* ------------------------------------------------------------------ streams */

static bool findStream(bool found, const robj *o, stream **out) {
    *out = found && o ? streamOf(o) : NULL;
    return found;
}

bool streamFindRead(ctx *c, int arg_index, stream **out) {
    hotCheck(arg_index > 0);
    hotCheck(arg_index <= c->argc);
    robj *o;
    bool found = collectionFindRead(c, arg_index, TYPE_STREAM, &o);
    return findStream(found, o, out);
}

bool streamFindWrite(ctx *c, int arg_index, stream **out) {
    hotCheck(arg_index > 0);
    hotCheck(arg_index <= c->argc);
    robj *o;
    bool found = collectionFindWrite(c, arg_index, TYPE_STREAM, &o);
    return findStream(found, o, out);
}

/* ------------------------------------------------------------------ replies */

void streamReplyId(ctx *c, streamId id) {
    char text[STREAM_ID_TEXT_MAX];
    replyBulk(c, streamIdText(id, text));
}

void streamReplyEntryParts(ctx *c, streamId id, streamFields fields) {
    streamReplyId(c, id);
    replyArray(c, 2 * (int64_t)fields.left);
    while (fields.left) {
        listpackItem name, value;
        streamFieldsNext(&fields, &name, &value);
        replyItem(c, &name);
        replyItem(c, &value);
    }
}

void streamReplyEntry(ctx *c, streamId id, streamFields fields) {
    replyArray(c, 2);
    streamReplyEntryParts(c, id, fields);
}

int64_t streamReplyRange(ctx *c, const stream *s, streamId start, streamId end, bool backwards,
                         uint64_t count) {
    streamCursor at;
    streamId id;
    streamFields fields;
    int64_t found = 0;
    respDeferred array = respDeferBegin(c->out);
    streamCursorInit(&at, s, start, end, backwards);
    while ((count == 0 || (uint64_t)found < count) && streamCursorNext(&at, &id, &fields)) {
        unsigned items = (unsigned)fields.left;
        streamReplyEntry(c, id, fields);
        found++;
        if (jobPoint(c, 1 + items)) break;
    }
    streamCursorClear(&at);
    respDeferEnd(c->out, array, '*', c->proto, found);
    return found;
}

bool streamReplyOne(ctx *c, const stream *s, streamId id) {
    streamCursor at;
    streamFields fields;
    streamCursorInit(&at, s, id, id, false);
    bool found = streamCursorNext(&at, &id, &fields);
    if (found) streamReplyEntry(c, id, fields);
    streamCursorClear(&at);
    return found;
}

/* ------------------------------------------------------------------ groups */

void streamGroupChanged(ctx *c, slice key, const keyEvent *event) {
    ctxDatasetChanged(c, 1);
    ctxKeyEvent(c, key, event);
}

streamConsumer *streamConsumerFor(ctx *c, slice key, streamGroup *g, slice name, bool *created) {
    streamConsumer *consumer = streamConsumerFind(g, name);
    *created = consumer == NULL;
    if (*created) {
        engineHot.dirty++;
        consumer = streamConsumerCreate(g, name, c->now_ms);
        ctxKeyEvent(c, key, &eventXgroupCreateconsumer);
    }
    streamConsumerSetSeen(consumer, c->now_ms);
    return consumer;
}

void streamPropagateConsumer(ctx *c, slice key, const streamGroup *g, slice name) {
    hotCheck(streamConsumerFind(g, name));
    slice words[] = {SLICE("XGROUP"), SLICE("CREATECONSUMER"), key, streamGroupName(g), name};
    ctxPropagateAs(c, COUNT_OF(words), words);
}

static slice intText(int64_t v, char *digits) {
    return sliceMake(digits, numberPrintInt(digits, v));
}

void streamPropagateClaim(ctx *c, slice key, const streamGroup *g, const streamPending *p) {
    char id[STREAM_ID_TEXT_MAX], last[STREAM_ID_TEXT_MAX];
    char time[NUMBER_TEXT_MAX], count[NUMBER_TEXT_MAX];
    slice words[] = {SLICE("XCLAIM"),     key,
                     streamGroupName(g),  streamConsumerName(p->owner),
                     SLICE("0"),          streamIdText(p->id, id),
                     SLICE("TIME"),       intText(p->delivered_ms, time),
                     SLICE("RETRYCOUNT"), intText((int64_t)p->deliveries, count),
                     SLICE("FORCE"),      SLICE("JUSTID"),
                     SLICE("LASTID"),     streamIdText(streamGroupLastId(g), last)};
    ctxPropagateAs(c, COUNT_OF(words), words);
}

void streamPropagateGroup(ctx *c, slice key, const streamGroup *g) {
    char id[STREAM_ID_TEXT_MAX], digits[NUMBER_TEXT_MAX];
    slice words[] = {SLICE("XGROUP"),
                     SLICE("SETID"),
                     key,
                     streamGroupName(g),
                     streamIdText(streamGroupLastId(g), id),
                     SLICE("ENTRIESREAD"),
                     intText(streamGroupEntriesRead(g), digits)};
    ctxPropagateAs(c, COUNT_OF(words), words);
}
