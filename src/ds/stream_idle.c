/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Pending entries by the time of their delivery (stream_group.h).
 *
 * A bound (oldest_ms) says whether any entry can be old enough. If so, all are looked at the first
 * time, and the oldest ones are kept in a heap. From the second time on there is an index, `times`:
 * a queue of (time, id) in the order of delivery, of 6 to 8 bytes each. Deliveries are appended. An
 * entry that was acknowledged or delivered again stays in the queue as an outdated one, which is
 * removed when it is the first, or when they are the majority; so a search costs what it returns,
 * and removals nothing.
 *
 * Invariant: an entry of the group that is in the stream is in the queue once with its time, and
 * the queue is sorted by time. What would break this, which is rare (an entry gets an earlier time
 * than the last delivery, or is delivered for the first time again), frees the queue. Main thread
 * only. */
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

static void appendFound(idleList *l, const streamPending *p) {
    hotCheck(l->count < l->max);
    enum { FIRST = 16 };
    bool full = l->count == 0 || (l->count >= FIRST && (l->count & (l->count - 1)) == 0);
    if (full) l->list = memRealloc(l->list, sizeMax(2 * l->count, FIRST) * sizeof(*l->list));
    l->list[l->count++] = *p;
}

static void add(idleList *l, const streamPending *p) {
    hotCheck(l->count <= l->max);
    if (l->count == l->max) {
        l->list[0] = *p;
        sink(l, 0);
        return;
    }
    appendFound(l, p);
    if (l->count < l->max) return;
    for (size_t i = l->count / 2; i-- > 0;) sink(l, i);
}

int64_t streamPendingOldest(const streamGroup *g) {
    return g->pending.count ? g->oldest_ms : INT64_MAX;
}

void streamForgetOldest(stream *s) {
    orderedCursor at;
    for (streamGroup *g = streamGroupFirst(s, &at); g; g = streamGroupNext(&at)) {
        g->oldest_ms = INT64_MIN;
        streamTimesFree(g);
    }
}

/* ------------------------------------------------------------------ the queue */

struct streamTimes {
    idTree queue;    /* (time, number in order of delivery); values: the two halves of the id */
    int64_t last_ms; /* time of the last one */
    uint64_t next;   /* number of the next one */
    streamId top_id; /* the largest id that ever was in the queue */
    bool used;       /* since outdated entries were removed */
};

void streamTimesFree(streamGroup *g) {
    g->time_walks = 0;
    if (likely(!g->times)) return;
    idTreeClear(&g->times->queue);
    memFree(g->times);
    g->times = NULL;
}

static void append(streamTimes *t, const streamPending *p) {
    hotCheck(p->delivered_ms >= t->last_ms);
    idEntry entry = {{(uint64_t)p->delivered_ms, t->next++}, {p->id.ms, p->id.seq}};
    check(idTreeInsert(&t->queue, &entry));
    t->last_ms = p->delivered_ms;
    if (streamIdLess(t->top_id, p->id)) t->top_id = p->id;
}

/* The pending entry of a place in the queue; false: it is outdated. */
static bool timesRead(const streamGroup *g, const idEntry *entry, streamPending *out) {
    streamId id = {entry->value[0], entry->value[1]};
    return streamPendingFind(g, id, out) && (uint64_t)out->delivered_ms == entry->id.ms;
}

/* Makes the queue of all pending entries; not if one has a time before 1970. */
static void timesBuild(streamGroup *g) {
    streamPending *list = memNewArray(streamPending, g->pending.count);
    size_t count = 0;
    bool sorted = true;
    idCursor at;
    for (bool more = idTreeSeek(&g->pending, STREAM_ID_MIN, &at); more; more = idCursorNext(&at)) {
        idEntry entry;
        idCursorRead(&at, &entry);
        streamToPending(g, &entry, &list[count]);
        if (count && list[count].delivered_ms < list[count - 1].delivered_ms) sorted = false;
        count++;
    }
    if (!sorted) qsort(list, count, sizeof(*list), compareDelivery);
    if (!count || list[0].delivered_ms >= 0) {
        g->times = memCalloc(1, sizeof(*g->times));
        g->times->queue.values = 2;
        for (size_t i = 0; i < count; i++) append(g->times, &list[i]);
    }
    memFree(list);
}

/* Most places in the queue are outdated: removes these, or all if nobody asks any more. */
static void timesPurge(streamGroup *g) {
    streamTimes old = *g->times;
    idCursor at;
    if (!old.used) {
        streamTimesFree(g);
        return;
    }
    streamTimes *t = g->times;
    t->queue = (idTree){.values = 2};
    t->used = false;
    for (bool more = idTreeSeek(&old.queue, STREAM_ID_MIN, &at); more; more = idCursorNext(&at)) {
        idEntry entry;
        streamPending p;
        idCursorRead(&at, &entry);
        if (timesRead(g, &entry, &p)) check(idTreeInsert(&t->queue, &entry));
    }
    idTreeClear(&old.queue);
}

void streamTimesAdd(streamGroup *g, const streamPending *p, int64_t before_ms) {
    enum { OUTDATED_MIN = 1024 };
    streamTimes *t = g->times;
    if (before_ms == p->delivered_ms) return;
    bool again = before_ms == STREAM_UNKNOWN && !streamIdLess(t->top_id, p->id);
    if (unlikely(p->delivered_ms < t->last_ms || again)) {
        streamTimesFree(g);
        return;
    }
    append(t, p);
    if (t->queue.count > 2 * g->pending.count + OUTDATED_MIN) timesPurge(g);
}

/* Adds the first places in the queue that are old enough to the list. */
static void timesTake(const stream *s, streamGroup *g, int64_t until_ms, idleList *found) {
    idTree *queue = &g->times->queue;
    idEntry entry;
    idCursor at;
    g->times->used = true;
    streamId from = STREAM_ID_MIN;
    g->oldest_ms = INT64_MAX;
    while (idTreeSeek(queue, from, &at)) {
        streamPending p;
        idCursorRead(&at, &entry);
        if ((int64_t)entry.id.ms > until_ms || found->count == found->max) {
            g->oldest_ms = found->count ? found->list[0].delivered_ms : (int64_t)entry.id.ms;
            return;
        }
        from = (streamId){entry.id.ms, entry.id.seq + 1};
        /* An entry that is not in the stream does not return. */
        if (timesRead(g, &entry, &p) && streamHas(s, p.id)) {
            appendFound(found, &p);
        } else {
            check(idTreeRemove(queue, entry.id, NULL));
        }
    }
    if (found->count) g->oldest_ms = found->list[0].delivered_ms;
}

size_t streamTimesBytes(const streamGroup *g) {
    return g->times ? memSizeOf(g->times) + g->times->queue.bytes : 0;
}

void streamTimesCompact(streamGroup *g, uint64_t *moved, uint64_t *kept) {
    streamId from = STREAM_ID_MIN;
    while (g->times && idTreeCompact(&g->times->queue, &from, moved, kept)) {}
}

const char *streamTimesVerify(const stream *s, const streamGroup *g) {
    if (!g->times) return NULL;
    uint64_t current = 0, pending = 0;
    idCursor at;
    idEntry entry;
    streamPending p;
    const idTree *queue = &g->times->queue;
    for (bool more = idTreeSeek(queue, STREAM_ID_MIN, &at); more; more = idCursorNext(&at)) {
        idCursorRead(&at, &entry);
        current += timesRead(g, &entry, &p) && streamHas(s, p.id);
    }
    for (bool more = idTreeSeek(&g->pending, STREAM_ID_MIN, &at); more; more = idCursorNext(&at)) {
        idCursorRead(&at, &entry);
        pending += streamHas(s, entry.id);
    }
    return current == pending ? idTreeVerify(queue) : "queue of deliveries";
}

/* ------------------------------------------------------------------ finding */

/* Looks at all pending entries. */
static void walk(const stream *s, streamGroup *g, int64_t until_ms, idleList *found) {
    int64_t oldest_ms = INT64_MAX;
    idCursor at;
    for (bool more = idTreeSeek(&g->pending, STREAM_ID_MIN, &at); more; more = idCursorNext(&at)) {
        idEntry entry;
        streamPending p;
        idCursorRead(&at, &entry);
        streamToPending(g, &entry, &p);
        bool idle = p.delivered_ms <= until_ms && isWanted(found, &p);
        if (!idle && p.delivered_ms >= oldest_ms) continue;
        if (!streamHas(s, p.id)) continue;
        if (p.delivered_ms < oldest_ms) oldest_ms = p.delivered_ms;
        if (idle) add(found, &p);
    }
    g->oldest_ms = oldest_ms;
    if (found->count) qsort(found->list, found->count, sizeof(*found->list), compareDelivery);
}

size_t streamPendingIdle(const stream *s, streamGroup *g, int64_t until_ms, uint64_t max,
                         streamPending **out) {
    idleList found = {.max = max ? (size_t)max : SIZE_MAX};
    *out = NULL;
    if (streamPendingOldest(g) > until_ms) return 0;
    if (!g->times && g->time_walks > 0) timesBuild(g);
    if (g->times) {
        timesTake(s, g, until_ms, &found);
    } else {
        walk(s, g, until_ms, &found);
        g->time_walks++;
    }
    *out = found.list;
    return found.count;
}
