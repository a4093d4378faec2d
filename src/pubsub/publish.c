/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Publishing. A message is encoded at most once per protocol, into a block that the outputs of the
 * receivers share. Messages of one channel follow each other in such a block, so that a receiver
 * which has several of them pending needs one reference and sends them as one piece.
 *
 * Up to FANOUT_AT_ONCE receivers get it at once. For more, a delivery is queued that continues in
 * the following turns, FANOUT_STEP receivers at a time; while one is queued all later messages are
 * queued after it, so every receiver gets them in order. The receivers of a delivery are those at
 * the time of the command: later ones are appended to the array of the channel, after the end of
 * the delivery. The queue is bounded: a publisher that exceeds the bounds completes the oldest
 * deliveries itself. */
#include "pubsub/publish.h"

#include "base/base.h"
#include "base/number.h"
#include "engine/deliver.h"
#include "pubsub/pattern_index.h"
#include "pubsub/pubsub_priv.h"

enum {
    FANOUT_AT_ONCE = PUBSUB_CHOOSE(2048, 2),
    SEND_AT_ONCE = 32, /* to more, messages that tell of no change are sent over several turns */
    FANOUT_STEP = PUBSUB_CHOOSE(2048, 1),
    QUEUE_MAX = PUBSUB_CHOOSE(256, 3),
    QUEUE_BYTES_MAX = 4 << 20,
    WORDS_MAX = 4,
    LOGS = 16,                                 /* a power of two */
    LOGGED_MAX = PUBSUB_CHOOSE(16 * 1024, 64), /* longer messages have blocks of their own */
    CHUNK_MAX = PUBSUB_CHOOSE(64 * 1024, 256),
};

/* A part of a block. */
typedef struct part {
    blob *in; /* NULL: none; else one reference */
    size_t at, len;
} part;

/* A message as one kind of receivers gets it: [message, channel, payload] and the like. */
typedef struct message {
    slice words[WORDS_MAX];
    int count;
    const pubsubChannel *to;
    bool is_event;   /* tells of a change: all receivers are sent it in this turn */
    part encoded[2]; /* RESP2, RESP3; encoded when needed */
} message;

/* A message that is being delivered to a channel. Owns references to the encoded parts. */
typedef struct delivery {
    listNode queued;
    pubsubChannel *to;
    uint32_t next, end; /* positions in its array */
    part encoded[2];
} delivery;

/* The block to which messages of a channel are appended, for each protocol: a receiver that has not
 * got the previous one yet then sends both from one part. */
typedef struct messageLog {
    const pubsubChannel *of;
    blob *chunk[2];
    bool used; /* since the last publishLogsAge() */
} messageLog;

static messageLog logs[LOGS];

static struct {
    list queue;
    size_t bytes; /* of the encoded messages in it */
} deliveries;

/* ------------------------------------------------------------------ messages */

static size_t appendHead(char *to, char type, size_t n) {
    to[0] = type;
    size_t len = 1 + numberPrintInt(to + 1, (int64_t)n);
    to[len++] = '\r';
    to[len++] = '\n';
    return len;
}

enum { HEAD_MAX = NUMBER_TEXT_MAX + 3 };

/* An upper bound of the encoded size. */
static size_t sizeOf(const message *m) {
    hotCheck(m->count >= 3);
    size_t most = HEAD_MAX;
    for (int i = 0; i < m->count; i++) most += HEAD_MAX + m->words[i].len + 2;
    return most;
}

/* Returns the encoded size. */
static size_t encodeTo(char *to, const message *m, bool resp3) {
    hotCheck(m->count >= 3);
    char *at = to;
    at += appendHead(at, resp3 ? '>' : '*', (size_t)m->count);
    for (int i = 0; i < m->count; i++) {
        slice word = m->words[i];
        at += appendHead(at, '$', word.len);
        memcpy(at, word.ptr, word.len);
        at += word.len;
        *at++ = '\r';
        *at++ = '\n';
    }
    return (size_t)(at - to);
}

static messageLog *logOf(const pubsubChannel *t) {
    uint64_t mixed = (uint64_t)(uintptr_t)t * UINT64_C(0x9e3779b97f4a7c15);
    return &logs[mixed >> 32 & (LOGS - 1)];
}

static void releaseLog(messageLog *l) {
    for (int i = 0; i < 2; i++) {
        blobRelease(l->chunk[i]);
        l->chunk[i] = NULL;
    }
    l->of = NULL;
}

void publishLogsAge(int64_t budget_us) {
    hotCheck(threadIsMain());
    (void)budget_us; /* a few blocks */
    for (size_t i = 0; i < LOGS; i++) {
        if (!logs[i].used) releaseLog(&logs[i]);
        logs[i].used = false;
    }
}

/* The block of the channel's log with room for a message; it is replaced by a larger one when it is
 * full, and used again from its start when all receivers have got its messages. */
static blob *chunkFor(const pubsubChannel *t, bool resp3, size_t need) {
    hotCheck(need > 0);
    messageLog *l = logOf(t);
    if (l->of != t) releaseLog(l);
    l->of = t;
    l->used = true;
    blob *chunk = l->chunk[resp3];
    if (chunk && !blobIsShared(chunk)) chunk->len = 0;
    if (chunk && chunk->cap - chunk->len >= need) return chunk;
    size_t cap = sizeMin(chunk ? 2 * chunk->cap : 8 * need, CHUNK_MAX);
    blobRelease(chunk);
    l->chunk[resp3] = blobNewMessage(sizeMax(cap, need));
    return l->chunk[resp3];
}

static const part *encoded(message *m, bool resp3) {
    part *p = &m->encoded[resp3];
    if (likely(p->in != NULL)) return p;
    size_t most = sizeOf(m);
    bool logged = most <= LOGGED_MAX;
    p->in = logged ? blobRetain(chunkFor(m->to, resp3, most)) : blobNewMessage(most);
    p->at = p->in->len;
    p->len = encodeTo(p->in->bytes + p->at, m, resp3);
    p->in->len += p->len;
    return p;
}

static void messageClear(message *m) {
    blobRelease(m->encoded[0].in);
    blobRelease(m->encoded[1].in);
    m->encoded[0].in = m->encoded[1].in = NULL;
}

/* ------------------------------------------------------------------ queued deliveries */

/* Delivers to at most `most` positions; false if none remain. */
static bool deliverSome(delivery *d, uint32_t most) {
    hotCheck(d->next <= d->end);
    hotCheck(d->end <= d->to->count);
    uint32_t end = d->end - d->next > most ? d->next + most : d->end;
    for (; d->next < end; d->next++) {
        const subscriber *by = channelSubscriber(d->to, d->next);
        if (!by || !by->who) continue;
        const part *p = &d->encoded[by->who->proto == 3];
        sessionDeliverShared(by->who, DELIVER_MANY, p->in, p->at, p->len);
    }
    return d->next < d->end;
}

static delivery *oldest(void) {
    if (!deliveries.queue.count) return NULL;
    return LIST_OWNER(listFirst(&deliveries.queue), delivery, queued);
}

static void endDelivery(delivery *d) {
    hotCheck(d->to->walks > 0);
    listRemove(&deliveries.queue, &d->queued);
    for (int i = 0; i < 2; i++) {
        deliveries.bytes -= d->encoded[i].len;
        blobRelease(d->encoded[i].in);
    }
    channelWalkEnd(d->to);
    memFree(d);
}

static void finishOldest(void) {
    hotCheck(deliveries.queue.count > 0);
    delivery *d = oldest();
    (void)deliverSome(d, UINT32_MAX); /* all of them */
    endDelivery(d);
}

static void queueDelivery(pubsubChannel *to, message *m) {
    hotCheck(to->count > 0);
    delivery *d = memNew(delivery);
    d->to = to;
    d->end = to->count;
    for (int i = 0; i < 2; i++) {
        d->encoded[i] = *encoded(m, i == 1); /* a receiver may change its protocol */
        (void)blobRetain(d->encoded[i].in);
        deliveries.bytes += d->encoded[i].len;
    }
    channelWalkBegin(to);
    if (!deliveries.queue.head.next) listInit(&deliveries.queue);
    listAppend(&deliveries.queue, &d->queued);
    pubsubWorkLater();
}

/* A publisher that exceeds the bounds of the queue completes its oldest deliveries. */
static void boundQueue(void) {
    while (deliveries.queue.count > QUEUE_MAX ||
           (deliveries.bytes > QUEUE_BYTES_MAX && deliveries.queue.count > 1)) {
        finishOldest();
    }
}

bool publishWork(void) {
    delivery *d = oldest();
    if (!d) return false;
    if (!deliverSome(d, FANOUT_STEP)) endDelivery(d);
    return deliveries.queue.count > 0;
}

void publishFinish(const pubsubChannel *t) {
    if (t && !t->walks) return;
    while (oldest() && (!t || t->walks)) finishOldest();
}

/* ------------------------------------------------------------------ publishing */

/* To a single receiver the bytes are copied: a block that it shares with none would cost more. */
static void deliverToOne(session *s, const message *m) {
    static char scratch[LOGGED_MAX];
    if (sizeOf(m) <= sizeof(scratch)) {
        size_t len = encodeTo(scratch, m, s->proto == 3);
        sessionDeliver(s, DELIVER_PUSH, sliceMake(scratch, len));
        return;
    }
    blob *b = blobNewMessage(sizeOf(m));
    b->len = encodeTo(b->bytes, m, s->proto == 3);
    sessionDeliverShared(s, DELIVER_PUSH, b, 0, b->len);
    blobRelease(b);
}

/* Fetches the sessions of receivers some steps ahead, so that the cache misses overlap. */
static inline void prefetchReceivers(const pubsubChannel *t, uint32_t at) {
    enum { AHEAD = 8 };
    if (at + 2 * AHEAD < t->count) prefetchRead(t->of.many[at + 2 * AHEAD]);
    if (at + AHEAD >= t->count) return;
    const subscriber *by = t->of.many[at + AHEAD];
    if (!by || !by->who) return;
    prefetchRead(by->who);
    prefetchRead((const char *)by->who + CACHE_LINE);
}

static void deliverToAll(const pubsubChannel *to, message *m) {
    hotCheck(to->count > 0);
    hotCheck(to->cap > 0);
    deliverKind kind = m->is_event || to->count <= SEND_AT_ONCE ? DELIVER_PUSH : DELIVER_MANY;
    for (uint32_t i = 0; i < to->count; i++) {
        prefetchReceivers(to, i);
        session *s = to->of.many[i]->who;
        if (unlikely(!s)) continue;
        const part *p = encoded(m, s->proto == 3);
        sessionDeliverShared(s, kind, p->in, p->at, p->len);
    }
}

static uint64_t deliver(pubsubChannel *to, message *m) {
    m->to = to;
    uint64_t receivers = channelCount(to);
    if (unlikely(deliveries.queue.count) || unlikely(to->count > FANOUT_AT_ONCE)) {
        queueDelivery(to, m);
    } else if (to->count > 1) {
        deliverToAll(to, m);
    } else if (channelSubscriber(to, 0)->who) {
        deliverToOne(channelSubscriber(to, 0)->who, m);
    }
    return receivers;
}

typedef struct publication {
    slice channel, payload;
    bool is_event;
    uint64_t receivers;
} publication;

static uint64_t publish(channelKind kind, slice word, const publication *p) {
    pubsubChannel *t = channelFind(kind, p->channel);
    if (!t) return 0;
    message m = {.words = {word, p->channel, p->payload}, .count = 3, .is_event = p->is_event};
    uint64_t receivers = deliver(t, &m);
    messageClear(&m);
    return receivers;
}

static void publishToPattern(void *arg, pubsubChannel *pattern) {
    publication *p = arg;
    message m = {.words = {SLICE("pmessage"), channelName(pattern), p->channel, p->payload},
                 .count = 4,
                 .is_event = p->is_event};
    p->receivers += deliver(pattern, &m);
    messageClear(&m);
}

static uint64_t publishToAll(publication *p) {
    p->receivers = publish(CHANNEL_PLAIN, SLICE("message"), p);
    if (channelsOfKind(CHANNEL_PATTERN)) patternIndexMatch(p->channel, publishToPattern, p);
    boundQueue();
    return p->receivers;
}

uint64_t publishToChannel(slice channel, slice payload) {
    publication p = {.channel = channel, .payload = payload};
    return publishToAll(&p);
}

void publishEvent(slice channel, slice payload) {
    publication p = {.channel = channel, .payload = payload, .is_event = true};
    (void)publishToAll(&p); /* how many get it is not needed */
}

uint64_t publishToShard(slice channel, slice payload) {
    publication p = {.channel = channel, .payload = payload};
    uint64_t receivers = publish(CHANNEL_SHARD, SLICE("smessage"), &p);
    boundQueue();
    return receivers;
}
