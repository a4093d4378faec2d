/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Items for sinks (reply_sink.h). Writers come here when an outbuf has no room because it has a
 * sink. Invariant: while a sink does not collect, its outbuf has no block; while it does,
 * everything goes into blocks, so the order of items is kept. Cost: nothing is copied but lines
 * with a break in them and what is collected. */
#include "resp/reply_sink.h"

#include "base/base.h"
#include "base/number.h"
#include "resp/outblock.h"

void sinkTake(const outbuf *o, const replyEvent *event) {
    if (o->sink->take) o->sink->take(o->sink->state, event);
}

void sinkTakeText(const outbuf *o, replyKind kind, slice text) {
    hotCheck(o->sink);
    if (!o->sink->take) return;
    replyEvent event = {.kind = kind, .text = text};
    if (kind == REPLY_BULK) event.integer = (int64_t)text.len;
    if (kind == REPLY_DOUBLE)
        (void)numberParseDouble(text, &event.number); /* a command printed it */
    sinkTake(o, &event);
}

void sinkTakeLine(const outbuf *o, replyKind kind, slice text) {
    if (!o->sink->take) return;
    str line = strNew(text);
    for (size_t i = 0; i < line.len; i++) {
        if (line.ptr[i] == '\r' || line.ptr[i] == '\n') line.ptr[i] = ' ';
    }
    sinkTakeText(o, kind, strSlice(&line));
    strFree(&line);
}

void sinkTakeHead(const outbuf *o, char kind, uint64_t n) {
    static const char kinds[] = "*%~>|";
    const char *at = strchr(kinds, kind);
    check(at != NULL);
    replyEvent event = {.kind = (replyKind)(REPLY_ARRAY + (at - kinds)), .integer = (int64_t)n};
    sinkTake(o, &event);
}

/* Hands over the items of a text; true when it ends with an item. *pos is where the first
 * incomplete one begins. */
static bool takeItems(const outbuf *o, const char *bytes, size_t len, size_t *pos) {
    replyReader reader;
    replyReaderInit(&reader);
    reader.bulk_max = INT64_MAX;
    replyEvent event;
    replyReadStatus st;
    while ((st = replyRead(&reader, bytes, len, pos, &event)) == REPLY_EVENT) {
        event.depth = 0;
        event.complete = false;
        sinkTake(o, &event);
    }
    check(st == REPLY_NEED_MORE); /* we have written it */
    return *pos == len;
}

bool sinkTakeBytes(outbuf *o, const void *bytes, size_t len, size_t *taken) {
    *taken = 0;
    if (o->sink->collecting) return false;
    if (!o->sink->take || takeItems(o, bytes, len, taken)) return true;
    sinkCollect(o);
    return false;
}

void outbufInitSink(outbuf *o, replySink *sink) {
    outbufInit(o);
    o->sink = sink;
    sink->collecting = false;
}

void outbufSinkFlush(outbuf *o) {
    if (!o->sink || !o->sink->collecting) return;
    size_t len, pos = 0;
    char *bytes = outbufCopy(o, &len);
    bool whole = takeItems(o, bytes, len, &pos);
    check(whole);
    memFree(bytes);
    outbufClear(o);
}
