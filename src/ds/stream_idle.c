/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Pending entries by the time of their delivery (stream_group.h). There is no index by time: a
 * bound (oldest_ms) says whether any entry can be old enough; if so, all are looked at, and the
 * oldest ones are kept in a heap. Main thread only. */
#include <stdlib.h>

#include "ds/stream_private.h"

/* The entries found so far: while there are as many as wanted, a heap with the latest on top. */
typedef struct idleList {
    streamPending *list;
    size_t count, max;
} idleList;

/* Order of delivery: negative if `a` was delivered before `b`. */
static int compareDelivery(const void *a, const void *b) {
    const streamPending *x = a, *y = b;
    if (x->delivered_ms != y->delivered_ms) return x->delivered_ms < y->delivered_ms ? -1 : 1;
    return streamIdCompare(x->id, y->id);
}

/* Moves the entry at `i` down to its place in the heap. */
static void sink(idleList *l, size_t i) {
    for (;;) {
        size_t child = 2 * i + 1;
        if (child >= l->count) return;
        if (child + 1 < l->count && compareDelivery(&l->list[child], &l->list[child + 1]) < 0)
            child++;
        if (compareDelivery(&l->list[child], &l->list[i]) <= 0) return;
        streamPending moved = l->list[i];
        l->list[i] = l->list[child];
        l->list[child] = moved;
        i = child;
    }
}

/* True if the entry is among the `max` oldest ones so far. */
static bool isWanted(const idleList *l, const streamPending *p) {
    return l->count < l->max || compareDelivery(p, &l->list[0]) < 0;
}

static void add(idleList *l, const streamPending *p) {
    hotCheck(l->count <= l->max);
    if (l->count == l->max) {
        l->list[0] = *p;
        sink(l, 0);
        return;
    }
    enum { FIRST = 16 };
    bool full = l->count == 0 || (l->count >= FIRST && (l->count & (l->count - 1)) == 0);
    if (full) l->list = memRealloc(l->list, sizeMax(2 * l->count, FIRST) * sizeof(*l->list));
    l->list[l->count++] = *p;
    if (l->count < l->max) return;
    for (size_t i = l->count / 2; i-- > 0;) sink(l, i);
}

int64_t streamPendingOldest(const streamGroup *g) {
    return g->pending.count ? g->oldest_ms : INT64_MAX;
}

void streamForgetOldest(stream *s) {
    orderedCursor at;
    for (streamGroup *g = streamGroupFirst(s, &at); g; g = streamGroupNext(&at))
        g->oldest_ms = INT64_MIN;
}

size_t streamPendingIdle(const stream *s, streamGroup *g, int64_t until_ms, uint64_t max,
                         streamPending **out) {
    idleList found = {.max = max ? (size_t)max : SIZE_MAX};
    *out = NULL;
    if (streamPendingOldest(g) > until_ms) return 0;
    int64_t oldest_ms = INT64_MAX;
    idCursor at;
    for (bool more = idTreeSeek(&g->pending, STREAM_ID_MIN, &at); more; more = idCursorNext(&at)) {
        idEntry entry;
        streamPending p;
        idCursorRead(&at, &entry);
        streamToPending(g, &entry, &p);
        bool idle = p.delivered_ms <= until_ms && isWanted(&found, &p);
        if (!idle && p.delivered_ms >= oldest_ms) continue;
        if (!streamHas(s, p.id)) continue;
        if (p.delivered_ms < oldest_ms) oldest_ms = p.delivered_ms;
        if (idle) add(&found, &p);
    }
    g->oldest_ms = oldest_ms;
    if (found.count) qsort(found.list, found.count, sizeof(*found.list), compareDelivery);
    *out = found.list;
    return found.count;
}
