/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Groups and consumers (stream_group.h). Main thread only, but for streamFreeGroups(). */
#include "ds/stream_private.h"

/* ------------------------------------------------------------------ indexes by name */

static uint64_t noRank(const void *entry) {
    (void)entry; /* the order depends on names only */
    return 0;
}
static slice groupText(const void *entry) { return streamGroupName(entry); }
static slice consumerText(const void *entry) { return streamConsumerName(entry); }
static const orderedType groups_type = {noRank, groupText};
static const orderedType consumers_type = {noRank, consumerText};

static void *findByName(const orderedIndex *x, const orderedType *type, slice name) {
    orderedCursor at;
    orderedPoint point = {.by = ORDERED_BY_TEXT, .text = name};
    if (x->count == 0) return NULL;
    uint64_t place = orderedCountBefore(x, type, &point);
    if (place == x->count) return NULL;
    void *entry = orderedSeek(x, place, &at);
    return sliceEqual(type->text_of(entry), name) ? entry : NULL;
}

static void *firstOf(const orderedIndex *x, orderedCursor *at) {
    return x->count ? orderedSeek(x, 0, at) : NULL;
}

/* ------------------------------------------------------------------ groups and producers */

streamParties *streamPartiesMake(stream *s) {
    if (!s->parties) s->parties = memNew(streamParties);
    return s->parties;
}

void streamPartiesDrop(stream *s) {
    if (!s->parties || s->parties->groups.count > 0 || s->parties->producers) return;
    orderedFree(&s->parties->groups);
    memFree(s->parties);
    s->parties = NULL;
}

/* ------------------------------------------------------------------ groups */

uint64_t streamGroupCount(const stream *s) { return s->parties ? s->parties->groups.count : 0; }
slice streamGroupName(const streamGroup *g) { return sliceMake(g->name, g->name_len); }
streamId streamGroupLastId(const streamGroup *g) { return g->last_id; }
int64_t streamGroupEntriesRead(const streamGroup *g) { return g->entries_read; }

void streamGroupSetLastId(streamGroup *g, streamId id, int64_t entries_read) {
    g->last_id = id;
    g->entries_read = entries_read;
}

streamGroup *streamGroupFind(const stream *s, slice name) {
    return s->parties ? findByName(&s->parties->groups, &groups_type, name) : NULL;
}

streamGroup *streamGroupCreate(stream *s, slice name, streamId last_id, int64_t entries_read) {
    if (streamGroupFind(s, name)) return NULL;
    streamGroup *g = memCalloc(1, sizeof(*g) + name.len);
    g->last_id = last_id;
    g->entries_read = entries_read;
    g->pending.values = 3;
    g->oldest_ms = INT64_MAX;
    g->name_len = (uint32_t)name.len;
    if (name.len) memcpy(g->name, name.ptr, name.len);
    orderedInsert(&streamPartiesMake(s)->groups, &groups_type, g);
    return g;
}

/* Frees a group and all it owns. */
static void freeGroup(streamGroup *g) {
    for (uint32_t i = 0; i < g->number_count; i++) {
        streamConsumer *c = g->by_number[i];
        if (!c) continue;
        idTreeClear(&c->pending);
        memFree(c);
    }
    memFree(g->by_number);
    orderedFree(&g->consumers);
    idTreeClear(&g->pending);
    streamTimesFree(g);
    memFree(g);
}

void streamGroupDestroy(stream *s, streamGroup *g) {
    hotCheck(streamGroupCount(s) > 0);
    orderedDelete(&s->parties->groups, &groups_type, g);
    streamPartiesDrop(s);
    freeGroup(g);
}

streamGroup *streamGroupFirst(const stream *s, orderedCursor *at) {
    return s->parties ? firstOf(&s->parties->groups, at) : NULL;
}

streamGroup *streamGroupNext(orderedCursor *at) { return orderedNext(at); }

/* ------------------------------------------------------------------ read position */

/* True if an entry at or above `from` was removed: then entries-read cannot be counted up from
 * there. */
static bool tombstoneAhead(const stream *s, streamId from) {
    if (streamIdIsZero(s->max_deleted_id) || s->length == 0) return false;
    return !streamIdLess(s->max_deleted_id, from);
}

int64_t streamEstimateRead(const stream *s, streamId id) {
    int64_t added = (int64_t)s->entries_added;
    if (added == 0) return 0;
    if (s->length == 0 && !streamIdLess(s->last_id, id)) return added;
    if (!streamIdIsZero(id) && streamIdLess(id, s->max_deleted_id)) return STREAM_UNKNOWN;
    int order = streamIdCompare(id, s->last_id);
    if (order == 0) return added;
    if (order > 0) return STREAM_UNKNOWN;
    bool counts_hold =
        streamIdIsZero(s->max_deleted_id) || streamIdLess(s->max_deleted_id, s->first_id);
    if (!counts_hold) return STREAM_UNKNOWN;
    int64_t before_first = added - (int64_t)s->length;
    if (streamIdLess(id, s->first_id)) return before_first;
    return streamIdEqual(id, s->first_id) ? before_first + 1 : STREAM_UNKNOWN;
}

/* The number of unread entries according to the counters; false: they do not tell. Counters are
 * exact unless they were set by a request that is wrong. */
static bool lagByCounters(const stream *s, const streamGroup *g, uint64_t *lag) {
    int64_t entries_read = g->entries_read;
    if (entries_read == STREAM_UNKNOWN || tombstoneAhead(s, g->last_id))
        entries_read = streamEstimateRead(s, g->last_id);
    if (entries_read == STREAM_UNKNOWN) return false;
    *lag = s->entries_added - (uint64_t)entries_read;
    return true;
}

bool streamGroupLag(const stream *s, const streamGroup *g, int64_t *lag) {
    enum { NODES_COUNTED = 128 }; /* a few us */
    uint64_t unread;
    hotCheck(s->length <= INT64_MAX);
    *lag = (int64_t)s->length;
    if (s->length == 0 || streamIdLess(g->last_id, s->first_id)) return true;
    if (!lagByCounters(s, g, &unread)) return false;
    (void)streamCountAfter(s, g->last_id, NODES_COUNTED, &unread); /* if too long: as it is */
    *lag = (int64_t)unread;
    return unread < s->length; /* the first entry was read */
}

void streamGroupAdvance(const stream *s, streamGroup *g, streamId id) {
    bool counted = g->entries_read != STREAM_UNKNOWN && !streamIdLess(g->last_id, s->first_id) &&
                   !tombstoneAhead(s, g->last_id);
    g->entries_read =
        counted ? (int64_t)((uint64_t)g->entries_read + 1) : streamEstimateRead(s, id);
    g->last_id = id;
}

/* ------------------------------------------------------------------ consumers */

uint64_t streamConsumerCount(const streamGroup *g) { return g->consumers.count; }
slice streamConsumerName(const streamConsumer *c) { return sliceMake(c->name, c->name_len); }
int64_t streamConsumerSeen(const streamConsumer *c) { return c->seen_ms; }
int64_t streamConsumerActive(const streamConsumer *c) { return c->active_ms; }
void streamConsumerSetSeen(streamConsumer *c, int64_t ms) { c->seen_ms = ms; }
void streamConsumerSetActive(streamConsumer *c, int64_t ms) { c->active_ms = ms; }
uint64_t streamConsumerPending(const streamConsumer *c) { return c->pending.count; }

streamConsumer *streamConsumerFind(const streamGroup *g, slice name) {
    return findByName(&g->consumers, &consumers_type, name);
}

/* Returns an unused consumer number. */
static uint32_t takeNumber(streamGroup *g) {
    hotCheck(g->free <= g->number_count);
    hotCheck(g->number_count <= g->number_cap);
    while (g->free < g->number_count && g->by_number[g->free]) g->free++;
    if (g->free == g->number_cap) {
        g->number_cap = g->number_cap ? g->number_cap + g->number_cap / 2 + 1 : 2;
        g->by_number = memRealloc(g->by_number, g->number_cap * sizeof(*g->by_number));
    }
    if (g->free == g->number_count) g->number_count++;
    return g->free++;
}

streamConsumer *streamConsumerCreate(streamGroup *g, slice name, int64_t now_ms) {
    if (streamConsumerFind(g, name)) return NULL;
    streamConsumer *c = memCalloc(1, sizeof(*c) + name.len);
    c->seen_ms = now_ms;
    c->active_ms = STREAM_UNKNOWN;
    c->name_len = (uint32_t)name.len;
    if (name.len) memcpy(c->name, name.ptr, name.len);
    c->number = takeNumber(g);
    g->by_number[c->number] = c;
    orderedInsert(&g->consumers, &consumers_type, c);
    return c;
}

uint64_t streamConsumerRemove(streamGroup *g, streamConsumer *c) {
    uint64_t count = c->pending.count;
    idCursor at;
    idEntry entry;
    for (bool more = idTreeSeek(&c->pending, STREAM_ID_MIN, &at); more; more = idCursorNext(&at)) {
        idCursorRead(&at, &entry);
        check(idTreeRemove(&g->pending, entry.id, NULL));
    }
    idTreeClear(&c->pending);
    orderedDelete(&g->consumers, &consumers_type, c);
    g->by_number[c->number] = NULL;
    if (c->number < g->free) g->free = c->number;
    memFree(c);
    return count;
}

streamConsumer *streamConsumerFirst(const streamGroup *g, orderedCursor *at) {
    return firstOf(&g->consumers, at);
}

streamConsumer *streamConsumerNext(orderedCursor *at) { return orderedNext(at); }

/* ------------------------------------------------------------------ pending entries */

uint64_t streamPendingCount(const streamGroup *g) { return g->pending.count; }

void streamToPending(const streamGroup *g, const idEntry *entry, streamPending *out) {
    hotCheck(entry->value[2] < g->number_count);
    *out = (streamPending){.id = entry->id,
                           .owner = g->by_number[entry->value[2]],
                           .delivered_ms = (int64_t)entry->value[0],
                           .deliveries = entry->value[1]};
}

bool streamPendingFind(const streamGroup *g, streamId id, streamPending *out) {
    idEntry entry;
    if (!idTreeFind(&g->pending, id, &entry)) return false;
    streamToPending(g, &entry, out);
    return true;
}

void streamPendingSet(streamGroup *g, const streamPending *p) {
    idEntry entry = {p->id, {(uint64_t)p->delivered_ms, p->deliveries, p->owner->number}};
    idEntry id_alone = {.id = p->id}, old;
    if (p->delivered_ms < g->oldest_ms) g->oldest_ms = p->delivered_ms;
    if (likely(idTreeInsert(&g->pending, &entry))) {
        check(idTreeInsert(&p->owner->pending, &id_alone));
        if (unlikely(g->times)) streamTimesAdd(g, p, STREAM_UNKNOWN);
        return;
    }
    check(idTreeFind(&g->pending, p->id, &old));
    idTreeSet(&g->pending, &entry);
    if (unlikely(g->times)) streamTimesAdd(g, p, (int64_t)old.value[0]);
    if (old.value[2] == p->owner->number) return;
    check(idTreeRemove(&g->by_number[old.value[2]]->pending, p->id, NULL));
    check(idTreeInsert(&p->owner->pending, &id_alone));
}

bool streamPendingRemove(streamGroup *g, streamId id) {
    idEntry entry;
    if (!idTreeRemove(&g->pending, id, &entry)) return false;
    check(idTreeRemove(&g->by_number[entry.value[2]]->pending, id, NULL));
    return true;
}

void streamPendingSeek(streamPendingCursor *at, const streamGroup *g, const streamConsumer *of,
                       streamId from) {
    *at = (streamPendingCursor){.g = g, .ids = of ? &of->pending : &g->pending, .next = from};
}

bool streamPendingNext(streamPendingCursor *at, streamPending *out) {
    idCursor place;
    idEntry entry;
    if (at->ended || !idTreeSeek(at->ids, at->next, &place)) return false;
    idCursorRead(&place, &entry);
    at->next = entry.id;
    at->ended = !streamIdNext(&at->next);
    if (at->ids == &at->g->pending) {
        streamToPending(at->g, &entry, out);
    } else {
        check(streamPendingFind(at->g, entry.id, out));
    }
    return true;
}

bool streamPendingLast(const streamGroup *g, streamPending *out) {
    idCursor place;
    idEntry entry;
    if (!idTreeSeekBack(&g->pending, STREAM_ID_MAX, &place)) return false;
    idCursorRead(&place, &entry);
    streamToPending(g, &entry, out);
    return true;
}

/* ------------------------------------------------------------------ all groups of a stream */

bool streamIsReferenced(const stream *s, streamId id) {
    orderedCursor at;
    streamPending p;
    for (const streamGroup *g = streamGroupFirst(s, &at); g; g = streamGroupNext(&at)) {
        if (streamIdLess(streamGroupLastId(g), id) || streamPendingFind(g, id, &p)) return true;
    }
    return false;
}

void streamFreeGroups(stream *s) {
    orderedCursor at;
    for (streamGroup *g = streamGroupFirst(s, &at); g;) {
        streamGroup *next = streamGroupNext(&at);
        freeGroup(g);
        g = next;
    }
    if (!s->parties) return;
    orderedFree(&s->parties->groups);
    s->parties->groups = (orderedIndex){0};
    streamPartiesDrop(s);
}

static void copyConsumers(streamGroup *to, const streamGroup *from) {
    hotCheck(from->number_count <= from->number_cap);
    if (!from->number_cap) return;
    to->by_number = memAlloc(from->number_cap * sizeof(*to->by_number));
    to->number_cap = from->number_cap;
    to->number_count = from->number_count;
    to->free = from->free;
    for (uint32_t i = 0; i < from->number_count; i++) {
        const streamConsumer *c = from->by_number[i];
        to->by_number[i] = NULL;
        if (!c) continue;
        streamConsumer *copy = memAlloc(sizeof(*c) + c->name_len);
        memcpy(copy, c, sizeof(*c) + c->name_len);
        idTreeCopy(&copy->pending, &c->pending);
        to->by_number[i] = copy;
        orderedInsert(&to->consumers, &consumers_type, copy);
    }
}

void streamCopyGroups(stream *to, const stream *from) {
    orderedCursor at;
    for (const streamGroup *g = streamGroupFirst(from, &at); g; g = streamGroupNext(&at)) {
        streamGroup *copy = streamGroupCreate(to, streamGroupName(g), g->last_id, g->entries_read);
        copy->oldest_ms = g->oldest_ms;
        copyConsumers(copy, g);
        idTreeCopy(&copy->pending, &g->pending);
    }
}

/* Extrapolates the size of `count` objects from `bytes`, the size of the first `samples`. */
static size_t scale(size_t bytes, uint64_t count, uint64_t seen) {
    return seen ? (size_t)((double)bytes * ((double)count / (double)seen)) : 0;
}

static size_t consumersBytes(const streamGroup *g, size_t samples) {
    orderedCursor at;
    size_t bytes = 0, seen = 0;
    for (const streamConsumer *c = streamConsumerFirst(g, &at); c && (!samples || seen < samples);
         c = streamConsumerNext(&at), seen++)
        bytes += memSizeOf(c) + c->pending.bytes;
    return scale(bytes, g->consumers.count, seen);
}

size_t streamGroupsBytes(const stream *s, size_t samples) {
    orderedCursor at;
    size_t bytes = 0, seen = 0;
    for (const streamGroup *g = streamGroupFirst(s, &at); g && (!samples || seen < samples);
         g = streamGroupNext(&at), seen++)
        bytes += memSizeOf(g) + memSizeOf(g->by_number) + g->pending.bytes + g->consumers.bytes +
                 streamTimesBytes(g) + consumersBytes(g, samples);
    if (!s->parties) return 0;
    const orderedIndex *groups = &s->parties->groups;
    return memSizeOf(s->parties) + groups->bytes + scale(bytes, groups->count, seen);
}

size_t streamGroupsEffort(const stream *s) {
    enum { GROUPS_LOOKED_AT = 100 };
    orderedCursor at;
    size_t effort = 0, seen = 0;
    for (const streamGroup *g = streamGroupFirst(s, &at); g && seen < GROUPS_LOOKED_AT;
         g = streamGroupNext(&at), seen++)
        effort += 1 + g->consumers.count + g->pending.count / 64;
    const streamProducers *producers = streamProducersOf(s);
    effort = scale(effort, streamGroupCount(s), seen);
    return producers ? effort + streamProducersIds(producers) : effort;
}

static void compactTree(idTree *t, uint64_t *moved, uint64_t *kept) {
    streamId from = STREAM_ID_MIN;
    while (idTreeCompact(t, &from, moved, kept)) {}
}

void streamCompactGroups(stream *s, uint64_t *moved, uint64_t *kept) {
    orderedCursor at;
    for (streamGroup *g = streamGroupFirst(s, &at); g; g = streamGroupNext(&at)) {
        compactTree(&g->pending, moved, kept);
        streamTimesCompact(g, moved, kept);
        for (uint32_t i = 0; i < g->number_count; i++) {
            if (g->by_number[i]) compactTree(&g->by_number[i]->pending, moved, kept);
        }
    }
}

static const char *verifyGroup(const stream *s, const streamGroup *g) {
    uint64_t owned = 0, consumers = 0;
    const char *broken = idTreeVerify(&g->pending);
    if (broken) return broken;
    for (uint32_t i = 0; i < g->number_count; i++) {
        const streamConsumer *c = g->by_number[i];
        if (!c) continue;
        if (i >= g->number_cap || c->number != i) return "number of a consumer";
        consumers++;
        owned += c->pending.count;
        broken = idTreeVerify(&c->pending);
        if (broken) return broken;
        streamPendingCursor at;
        streamPending p;
        streamPendingSeek(&at, g, c, STREAM_ID_MIN);
        while (streamPendingNext(&at, &p)) {
            if (p.owner != c) return "owner of a pending entry";
            if (p.delivered_ms < g->oldest_ms && streamHas(s, p.id)) return "oldest delivery";
        }
    }
    if (consumers != g->consumers.count) return "consumers";
    if (owned != g->pending.count) return "pending entries";
    broken = streamTimesVerify(s, g);
    return broken ? broken : orderedVerify(&g->consumers, &consumers_type);
}

const char *streamVerifyGroups(const stream *s) {
    orderedCursor at;
    for (const streamGroup *g = streamGroupFirst(s, &at); g; g = streamGroupNext(&at)) {
        const char *broken = verifyGroup(s, g);
        if (broken) return broken;
    }
    return s->parties ? orderedVerify(&s->parties->groups, &groups_type) : NULL;
}
