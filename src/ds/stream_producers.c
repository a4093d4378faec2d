/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Ids of producers (stream_producers.h).
 *
 * Invariant: each id is in the index and in the list of its producer, and in `by_time`; each
 * producer in the index has at least one id. The tables of all streams are in one list, from which
 * ids are expired; copies for a saver are not in it. The list has a lock, because other threads
 * free streams. Main thread only, except streamProducersDrop(). */
#include "ds/stream_producers.h"

#include <pthread.h>

#include "ds/stream_private.h"

/* An id: the text that a producer has sent, and the id of its entry. */
typedef struct producedId {
    streamProducer *by;
    listNode node; /* in by->order */
    streamId entry;
    uint64_t number; /* makes ids of the same millisecond distinct */
    uint32_t len;
    char text[];
} producedId;

struct streamProducer {
    orderedIndex ids; /* by text */
    list order;       /* in the order in which they were added */
    uint32_t name_len;
    char name[];
};

struct streamProducers {
    streamProducersState state;
    orderedIndex producers; /* by name */
    orderedIndex by_time;   /* ids by the ms of their entries */
    uint64_t last_number;
    size_t bytes;  /* memory of producers and ids, without the indexes */
    listNode node; /* in `all.tables`, or in no list */
};

static struct {
    pthread_mutex_t lock;
    list tables;
    bool begun;
} all = {.lock = PTHREAD_MUTEX_INITIALIZER};

/* ------------------------------------------------------------------ indexes */

static uint64_t noRank(const void *entry) {
    (void)entry; /* the order depends on texts only */
    return 0;
}
static slice producerText(const void *entry) { return streamProducerName(entry); }
static slice idText(const void *entry) {
    const producedId *id = entry;
    return sliceMake(id->text, id->len);
}
static uint64_t idTime(const void *entry) { return ((const producedId *)entry)->entry.ms; }
static slice idNumber(const void *entry) {
    const producedId *id = entry;
    return sliceMake((const char *)&id->number, sizeof(id->number));
}
static const orderedType producers_type = {noRank, producerText};
static const orderedType ids_type = {noRank, idText};
static const orderedType times_type = {idTime, idNumber};

static void *firstOf(const orderedIndex *x, orderedCursor *at) {
    return x->count ? orderedSeek(x, 0, at) : NULL;
}

static void *findText(const orderedIndex *x, const orderedType *type, slice text) {
    orderedCursor at;
    const orderedPoint point = {.by = ORDERED_BY_TEXT, .text = text};
    uint64_t place = x->count ? orderedCountBefore(x, type, &point) : 0;
    if (place >= x->count) return NULL;
    void *entry = orderedSeek(x, place, &at);
    return sliceEqual(type->text_of(entry), text) ? entry : NULL;
}

/* ------------------------------------------------------------------ the state */

bool streamProducersStateIsValid(const streamProducersState *state) {
    return state->duration_s >= 1 && state->duration_s <= STREAM_IDS_DURATION_MAX_S &&
           state->ids_max >= 1 && state->ids_max <= STREAM_IDS_COUNT_MAX;
}

streamProducersState streamProducersStateDefault(void) {
    return (streamProducersState){.duration_s = STREAM_IDS_DEFAULT, .ids_max = STREAM_IDS_DEFAULT};
}

bool streamProducersStateEqual(const streamProducersState *a, const streamProducersState *b) {
    return a->duration_s == b->duration_s && a->ids_max == b->ids_max && a->added == b->added &&
           a->duplicates == b->duplicates;
}

streamProducersState streamProducersGet(const streamProducers *t) { return t->state; }
uint64_t streamProducersCount(const streamProducers *t) { return t->producers.count; }
uint64_t streamProducersIds(const streamProducers *t) { return t->by_time.count; }
void streamProducersCountDuplicate(streamProducers *t) { t->state.duplicates++; }

/* ------------------------------------------------------------------ ids */

static streamProducer *producerMake(streamProducers *t, slice name) {
    streamProducer *p = findText(&t->producers, &producers_type, name);
    if (p) return p;
    p = memCalloc(1, sizeof(*p) + name.len);
    listInit(&p->order);
    p->name_len = (uint32_t)name.len;
    if (name.len) memcpy(p->name, name.ptr, name.len);
    orderedInsert(&t->producers, &producers_type, p);
    t->bytes += memSizeOf(p);
    return p;
}

/* Frees the id, and its producer if it was the producer's last id. */
static void forget(streamProducers *t, producedId *id) {
    streamProducer *p = id->by;
    hotCheck(p->order.count == p->ids.count);
    orderedDelete(&t->by_time, &times_type, id);
    orderedDelete(&p->ids, &ids_type, id);
    listRemove(&p->order, &id->node);
    t->bytes -= memSizeOf(id);
    memFree(id);
    if (p->ids.count > 0) return;
    orderedDelete(&t->producers, &producers_type, p);
    t->bytes -= memSizeOf(p);
    memFree(p);
}

/* Adds an id that the producer does not have. */
static void addNew(streamProducers *t, streamProducer *p, slice iid, streamId entry) {
    producedId *id = memAlloc(sizeof(*id) + iid.len);
    *id =
        (producedId){.by = p, .entry = entry, .number = ++t->last_number, .len = (uint32_t)iid.len};
    if (iid.len) memcpy(id->text, iid.ptr, iid.len);
    orderedInsert(&p->ids, &ids_type, id);
    orderedInsert(&t->by_time, &times_type, id);
    listAppend(&p->order, &id->node);
    t->bytes += memSizeOf(id);
}

/* True if the id has expired. */
static bool isExpired(const streamProducers *t, const producedId *id, int64_t now_ms) {
    int64_t until_ms = now_ms - (int64_t)t->state.duration_s * 1000;
    return until_ms >= 0 && id->entry.ms <= (uint64_t)until_ms;
}

bool streamProducedFind(const streamProducers *t, int64_t now_ms, slice producer, slice iid,
                        streamId *out) {
    const streamProducer *p = findText(&t->producers, &producers_type, producer);
    const producedId *id = p ? findText(&p->ids, &ids_type, iid) : NULL;
    if (!id || isExpired(t, id, now_ms)) return false;
    *out = id->entry;
    return true;
}

void streamProducedAdd(streamProducers *t, slice producer, slice iid, streamId entry) {
    streamProducer *p = findText(&t->producers, &producers_type, producer);
    producedId *same = p ? findText(&p->ids, &ids_type, iid) : NULL;
    if (same) forget(t, same);
    p = producerMake(t, producer);
    addNew(t, p, iid, entry);
    t->state.added++;
    if (p->order.count > t->state.ids_max)
        forget(t, LIST_OWNER(listFirst(&p->order), producedId, node));
    hotCheck(p->order.count <= t->state.ids_max);
}

uint64_t streamProducersExpire(streamProducers *t, int64_t now_ms, uint64_t most) {
    orderedCursor at;
    uint64_t expired = 0;
    for (; expired < most && t->by_time.count > 0; expired++) {
        producedId *oldest = orderedSeek(&t->by_time, 0, &at);
        if (!isExpired(t, oldest, now_ms)) break;
        forget(t, oldest);
    }
    return expired;
}

/* ------------------------------------------------------------------ iteration */

const streamProducer *streamProducerFirst(const streamProducers *t, orderedCursor *at) {
    return firstOf(&t->producers, at);
}

const streamProducer *streamProducerNext(orderedCursor *at) { return orderedNext(at); }
slice streamProducerName(const streamProducer *p) { return sliceMake(p->name, p->name_len); }
uint64_t streamProducerIds(const streamProducer *p) { return p->ids.count; }

void streamProducedBegin(streamProducedCursor *at, const streamProducer *p) {
    *at = (streamProducedCursor){.ids = &p->order, .next = listFirst(&p->order)};
}

bool streamProducedNext(streamProducedCursor *at, slice *iid, streamId *id) {
    if (!at->next) return false;
    const producedId *found = CONTAINER_OF(at->next, producedId, node);
    *iid = idText(found);
    *id = found->entry;
    at->next = listNext(at->ids, at->next);
    return true;
}

/* ------------------------------------------------------------------ tables of streams */

/* Frees all ids and producers. ANY_THREAD. */
static void clearIds(streamProducers *t) {
    orderedCursor at;
    orderedFree(&t->by_time);
    for (streamProducer *p = firstOf(&t->producers, &at); p;) {
        streamProducer *next = orderedNext(&at);
        for (listNode *n = listFirst(&p->order); n;) {
            producedId *id = LIST_OWNER(n, producedId, node);
            n = listNext(&p->order, n);
            memFree(id);
        }
        orderedFree(&p->ids);
        memFree(p);
        p = next;
    }
    orderedFree(&t->producers);
    t->bytes = 0;
}

streamProducers *streamProducersOf(const stream *s) {
    return s->parties ? s->parties->producers : NULL;
}

static streamProducers *tableNew(void) {
    streamProducers *t = memNew(streamProducers);
    t->state = streamProducersStateDefault();
    return t;
}

static void addToAll(streamProducers *t) {
    pthread_mutex_lock(&all.lock);
    if (!all.begun) listInit(&all.tables);
    all.begun = true;
    listAppend(&all.tables, &t->node);
    pthread_mutex_unlock(&all.lock);
}

streamProducers *streamProducersMake(stream *s) {
    streamParties *parties = streamPartiesMake(s);
    if (parties->producers) return parties->producers;
    parties->producers = tableNew();
    addToAll(parties->producers);
    return parties->producers;
}

void streamProducersSet(streamProducers *t, const streamProducersState *state) {
    check(streamProducersStateIsValid(state));
    if (t->state.duration_s != state->duration_s || t->state.ids_max != state->ids_max) clearIds(t);
    t->state = *state;
}

void streamProducersDrop(stream *s) {
    streamProducers *t = streamProducersOf(s);
    if (!t) return;
    s->parties->producers = NULL;
    streamPartiesDrop(s);
    if (listHas(&t->node)) {
        pthread_mutex_lock(&all.lock);
        listRemove(&all.tables, &t->node);
        pthread_mutex_unlock(&all.lock);
    }
    clearIds(t);
    memFree(t);
}

void streamProducersCopy(stream *to, const stream *of, bool of_stream) {
    const streamProducers *from = streamProducersOf(of);
    if (!from) return;
    streamProducers *t = tableNew();
    orderedCursor at;
    t->state = from->state;
    const streamProducer *p = streamProducerFirst(from, &at);
    for (; p; p = streamProducerNext(&at)) {
        streamProducer *copy = producerMake(t, streamProducerName(p));
        streamProducedCursor ids;
        slice iid;
        streamId id;
        streamProducedBegin(&ids, p);
        while (streamProducedNext(&ids, &iid, &id)) addNew(t, copy, iid, id);
    }
    check(t->by_time.count == from->by_time.count);
    if (of_stream) addToAll(t);
    streamPartiesMake(to)->producers = t;
}

/* The memory of the indexes of ids is estimated from some producers. */
static size_t idIndexBytes(const streamProducers *t) {
    enum { SAMPLES = 16 };
    orderedCursor at;
    size_t bytes = 0, seen = 0;
    for (const streamProducer *p = streamProducerFirst(t, &at); p && seen < SAMPLES;
         p = streamProducerNext(&at), seen++)
        bytes += p->ids.bytes;
    return seen ? (size_t)((double)bytes * ((double)t->producers.count / (double)seen)) : 0;
}

size_t streamProducersBytes(const streamProducers *t) {
    if (!t) return 0;
    return memSizeOf(t) + t->bytes + t->producers.bytes + t->by_time.bytes + idIndexBytes(t);
}

static void compactIndex(orderedIndex *x, uint64_t *moved, uint64_t *kept) {
    uint64_t at = 0;
    if (x->count == 0) return;
    do { at = orderedCompact(x, at, moved, kept); } while (at);
}

void streamProducersCompact(streamProducers *t, uint64_t *moved, uint64_t *kept) {
    if (!t) return;
    orderedCursor at;
    compactIndex(&t->producers, moved, kept);
    compactIndex(&t->by_time, moved, kept);
    for (streamProducer *p = firstOf(&t->producers, &at); p; p = orderedNext(&at))
        compactIndex(&p->ids, moved, kept);
}

void streamProducersExpireSome(int64_t now_ms) {
    enum { TABLES = 200, IDS = 2000 }; /* limits of one call, which takes about 200 us */
    uint64_t expired = 0;
    pthread_mutex_lock(&all.lock);
    size_t left = all.begun ? sizeMin(all.tables.count, TABLES) : 0;
    for (; left > 0 && expired < IDS; left--) {
        listNode *n = listFirst(&all.tables);
        streamProducers *t = LIST_OWNER(n, streamProducers, node);
        expired += streamProducersExpire(t, now_ms, IDS);
        listRemove(&all.tables, n);
        listAppend(&all.tables, n);
    }
    pthread_mutex_unlock(&all.lock);
}

/* ------------------------------------------------------------------ check of all invariants */

static const char *verifyProducer(const streamProducers *t, const streamProducer *p,
                                  size_t *bytes) {
    size_t count = 0;
    if (p->ids.count == 0) return "producer without ids";
    if (p->ids.count > t->state.ids_max) return "too many ids of a producer";
    for (const listNode *n = listFirst(&p->order); n; n = listNext(&p->order, n), count++) {
        const producedId *id = CONTAINER_OF(n, producedId, node);
        if (id->by != p) return "producer of an id";
        if (findText(&p->ids, &ids_type, idText(id)) != id) return "index of ids";
        *bytes += memSizeOf(id);
    }
    if (count != p->ids.count || count != p->order.count) return "number of ids of a producer";
    *bytes += memSizeOf(p);
    return orderedVerify(&p->ids, &ids_type);
}

const char *streamProducersVerify(const streamProducers *t) {
    if (!t) return NULL;
    orderedCursor at;
    size_t bytes = 0;
    uint64_t ids = 0;
    const streamProducer *p = streamProducerFirst(t, &at);
    for (; p; p = streamProducerNext(&at)) {
        const char *broken = verifyProducer(t, p, &bytes);
        if (broken) return broken;
        ids += p->ids.count;
    }
    if (ids != t->by_time.count) return "index of ids by time";
    if (bytes != t->bytes) return "bytes of producers";
    if (!streamProducersStateIsValid(&t->state)) return "limits of producers";
    const char *broken = orderedVerify(&t->producers, &producers_type);
    return broken ? broken : orderedVerify(&t->by_time, &times_type);
}
