/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Copies a part of the backlog and parses it as requests (change_window.h).
 *
 * Invariant: the words of the requests point into `bytes`, which does not move after it was
 * parsed. */
#include "psync/change_window.h"

#include <string.h>

#include "base/base.h"
#include "resp/resp.h"

#ifdef HOSTILE_BUILD
enum { WINDOW_BYTES = 2048 };
#else
enum { WINDOW_BYTES = 256 * 1024 };
#endif

static const requestLimits limits = {
    .bulk_max = INT64_MAX, .multibulk_max = INT32_MAX, .authenticated = true};

/* Copies `size` bytes from number `from` on. */
static void load(changeWindow *w, replBacklog *b, int64_t from, size_t size) {
    hotCheck(backlogHas(b, from + (int64_t)size));
    backlogPosition p;
    w->bytes = memRealloc(w->bytes, size + REQUEST_READ_SLACK);
    memset(w->bytes + size, 0, REQUEST_READ_SLACK);
    backlogOpen(b, &p, from);
    for (size_t done = 0; done < size;) {
        blob *bytes;
        size_t at;
        size_t n = backlogRead(b, &p, size - done, &bytes, &at);
        memcpy(w->bytes + done, bytes->bytes + at, n);
        done += n;
    }
    backlogClose(b, &p);
}

static void takeItem(changeWindow *w, const request *r, int64_t from) {
    hotCheck(r->argc > 0);
    check(!r->large_count); /* the buffer has all bytes of what is complete */
    while (w->word_count + r->argc > w->word_cap) {
        w->word_cap = w->word_cap ? w->word_cap * 2 : 64;
        w->words = memRealloc(w->words, (size_t)w->word_cap * sizeof(slice));
    }
    if (w->item_count == w->item_cap) {
        w->item_cap = w->item_cap ? w->item_cap * 2 : 16;
        w->items = memRealloc(w->items, (size_t)w->item_cap * sizeof(changeItem));
    }
    memcpy(w->words + w->word_count, r->argv, (size_t)r->argc * sizeof(slice));
    w->items[w->item_count++] = (changeItem){
        .first = w->word_count, .argc = r->argc, .last = from + (int64_t)r->raw_end - 1};
    w->word_count += r->argc;
}

/* False: there is one that the stream cannot have, an inline request. */
static bool takeAll(changeWindow *w, const requestBatch *batch, int64_t from) {
    for (int i = 0; i < batch->count; i++) {
        if (!batch->items[i].raw.len) return false;
        takeItem(w, &batch->items[i], from);
    }
    return true;
}

static void parse(changeWindow *w, size_t size, int64_t from) {
    requestParser parser = {NULL};
    requestBatch *batch = memNew(requestBatch);
    requestError error;
    requestStatus st;
    size_t pos = 0;
    w->word_count = w->item_count = 0;
    requestBatchInit(batch);
    do {
        st =
            requestParse(&parser, w->bytes, &size, &pos, &limits, batch, REQUEST_BATCH_MAX, &error);
        w->bad = !takeAll(w, batch, from) || st == REQUEST_BAD;
        requestBatchClear(batch);
    } while (st == REQUEST_BATCH_FULL && !w->bad);
    requestParserClear(&parser);
    memFree(batch);
}

void changeWindowRead(changeWindow *w, replBacklog *b, int64_t from) {
    *w = (changeWindow){0};
    check(backlogHas(b, from));
    size_t available = (size_t)(b->next - from);
    for (size_t size = WINDOW_BYTES;; size *= 2) {
        w->whole = size >= available;
        if (w->whole) size = available;
        load(w, b, from, size);
        parse(w, size, from);
        if (w->whole || w->bad || (w->item_count && changeUnitEnd(w, 0))) return;
    }
}

void changeWindowClear(changeWindow *w) {
    memFree(w->bytes);
    memFree(w->words);
    memFree(w->items);
}

static bool itemIs(const changeWindow *w, int i, const char *word) {
    return sliceIs(changeWords(w, &w->items[i])[0], word);
}

int changeUnitEnd(const changeWindow *w, int i) {
    hotCheck(i >= 0);
    hotCheck(i < w->item_count);
    if (!itemIs(w, i, "multi")) return i + 1;
    while (++i < w->item_count) {
        if (itemIs(w, i, "exec")) return i + 1;
    }
    return 0;
}
