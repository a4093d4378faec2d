/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Readers of changes: any stream of bytes in the backlog, read in windows, is compared with the
 * same bytes parsed at once. Both have the same requests and end at the same error.
 *
 * Input: the stream, appended in pieces whose length is that of a byte of it; a byte from 0xf0 on
 * stands for an argument that is longer than a window. */
#include <stdio.h>
#include <string.h>

#include "base/base.h"
#include "psync/change_window.h"
#include "resp/resp.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

enum { STREAM_MAX = 96 * 1024, FIRST = 1001, LIMIT = 1 << 20 };
static char stream[STREAM_MAX];
static size_t stream_len;

static void put(const char *bytes, size_t len) {
    if (len > STREAM_MAX - stream_len) len = STREAM_MAX - stream_len;
    memcpy(stream + stream_len, bytes, len);
    stream_len += len;
}

static void putLongArgument(size_t len) {
    static char bytes[16 * 1024];
    char head[24];
    put(head, (size_t)snprintf(head, sizeof(head), "$%zu\r\n", len));
    memset(bytes, 'x', len);
    put(bytes, len);
    put("\r\n", 2);
}

static void fillBacklog(replBacklog *b) {
    backlogInit(b, FIRST, LIMIT);
    for (size_t at = 0; at < stream_len;) {
        size_t len = 1 + (uint8_t)stream[at];
        if (len > stream_len - at) len = stream_len - at;
        slice span = sliceMake(stream + at, len);
        backlogAppend(b, &span, 1);
        at += len;
    }
}

/* The same bytes in one buffer, read by the parser of requests itself. */
typedef struct direct {
    requestParser parser;
    requestBatch batch;
    size_t size, pos;
    int next; /* of the batch */
    requestStatus status;
    char bytes[STREAM_MAX + REQUEST_READ_SLACK];
} direct;

static void directInit(direct *d) {
    memset(d, 0, sizeof(*d));
    memcpy(d->bytes, stream, stream_len);
    d->size = stream_len;
    d->status = REQUEST_BATCH_FULL;
    requestBatchInit(&d->batch);
}

/* The next request; NULL: there is none that is complete, or it is an error. */
static const request *directNext(direct *d) {
    static const requestLimits limits = {
        .bulk_max = INT64_MAX, .multibulk_max = INT32_MAX, .authenticated = true};
    while (d->next == d->batch.count) {
        requestError error;
        if (d->status != REQUEST_BATCH_FULL) return NULL;
        requestBatchClear(&d->batch);
        d->next = 0;
        d->status = requestParse(&d->parser, d->bytes, &d->size, &d->pos, &limits, &d->batch,
                                 REQUEST_BATCH_MAX, &error);
        if (!d->batch.count) return NULL;
    }
    const request *r = &d->batch.items[d->next];
    if (!r->raw.len) return NULL; /* inline: the stream has none */
    d->next++;
    return r;
}

static void expectSame(const changeWindow *w, int i, const request *r) {
    const changeItem *item = &w->items[i];
    check(r != NULL);
    check(item->argc == r->argc);
    check(item->last == FIRST + (int64_t)r->raw_end - 1);
    for (int k = 0; k < r->argc; k++) check(sliceEqual(changeWords(w, item)[k], r->argv[k]));
}

/* Reads one window from `from` on and compares its complete units. Returns the byte after them, or
 * -1 at the end. */
static int64_t readWindow(replBacklog *b, int64_t from, direct *d) {
    changeWindow w;
    changeWindowRead(&w, b, from);
    int i = 0;
    int64_t last = from - 1;
    while (i < w.item_count) {
        int end = changeUnitEnd(&w, i);
        if (!end) break;
        for (; i < end; i++) {
            expectSame(&w, i, directNext(d));
            check(w.items[i].last > last);
            last = w.items[i].last;
        }
    }
    bool ends = w.bad || w.whole;
    if (ends) { /* what follows are the requests of an incomplete unit */
        for (; i < w.item_count; i++) expectSame(&w, i, directNext(d));
        check(!directNext(d));
    } else {
        check(last >= from);
    }
    changeWindowClear(&w);
    return ends ? -1 : last + 1;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    stream_len = 0;
    for (size_t i = 0; i < size; i++) {
        if (data[i] >= 0xf0) {
            putLongArgument((size_t)(data[i] - 0xef) * 997);
        } else {
            put((const char *)data + i, 1);
        }
    }
    replBacklog b;
    fillBacklog(&b);
    direct *d = memNew(direct);
    directInit(d);
    for (int64_t from = FIRST; from >= 0;) from = readWindow(&b, from, d);
    requestBatchClear(&d->batch);
    requestParserClear(&d->parser);
    memFree(d);
    backlogClear(&b);
    return 0;
}
