/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Publishing. A message is encoded at most once per protocol, into a block that the outputs of the receivers share.
 *
 * Up to FANOUT_AT_ONCE receivers get it at once. For more, a delivery is queued that continues in the following turns,
 * FANOUT_STEP receivers at a time; while one is queued all later messages are queued after it, so every receiver gets
 * them in order. The receivers of a delivery are those at the time of the command: later ones are appended to the array
 * of the topic, after the end of the delivery. The queue is bounded: a publisher that exceeds the bounds completes the
 * oldest deliveries itself. */
#include "pubsub/publish.h"

#include "base/base.h"
#include "base/number.h"
#include "engine/deliver.h"
#include "pubsub/pattern_index.h"
#include "pubsub/pubsub_priv.h"

enum {
    FANOUT_AT_ONCE = PUBSUB_CHOOSE(2048, 2),
    FANOUT_STEP = PUBSUB_CHOOSE(2048, 1),
    QUEUE_MAX = PUBSUB_CHOOSE(256, 3),
    QUEUE_BYTES_MAX = 4 << 20,
    WORDS_MAX = 4,
};

/* A message as one kind of receivers gets it: [message, channel, payload] and the like. */
typedef struct message {
    slice words[WORDS_MAX];
    int count;
    blob *encoded[2]; /* RESP2, RESP3; NULL until needed */
} message;

/* A message that is being delivered to a topic. Owns the encoded blocks. */
typedef struct delivery {
    listNode queued;
    topic *to;
    uint32_t next, end; /* positions in its array */
    blob *encoded[2];
} delivery;

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

static blob *encode(const message *m, bool resp3) {
    enum { HEAD_MAX = NUMBER_TEXT_MAX + 3 };
    size_t most = HEAD_MAX;
    for (int i = 0; i < m->count; i++) most += HEAD_MAX + m->words[i].len + 2;
    blob *b = blobNew(most);
    char *at = b->bytes;
    at += appendHead(at, resp3 ? '>' : '*', (size_t)m->count);
    for (int i = 0; i < m->count; i++) {
        slice word = m->words[i];
        at += appendHead(at, '$', word.len);
        memcpy(at, word.ptr, word.len);
        at += word.len;
        *at++ = '\r';
        *at++ = '\n';
    }
    b->len = (size_t)(at - b->bytes);
    return b;
}

static blob *encoded(message *m, bool resp3) {
    if (!m->encoded[resp3]) m->encoded[resp3] = encode(m, resp3);
    return m->encoded[resp3];
}

static void messageClear(message *m) {
    blobRelease(m->encoded[0]);
    blobRelease(m->encoded[1]);
    m->encoded[0] = m->encoded[1] = NULL;
}

/* ------------------------------------------------------------------ queued deliveries */

/* Delivers to at most `most` positions; false if none remain. */
static bool deliverSome(delivery *d, uint32_t most) {
    uint32_t end = d->end - d->next > most ? d->next + most : d->end;
    for (; d->next < end; d->next++) {
        const subscriber *by = topicSubscriber(d->to, d->next);
        if (by && by->who)
            sessionDeliverShared(by->who, DELIVER_PUSH, d->encoded[by->who->proto == 3]);
    }
    return d->next < d->end;
}

static delivery *oldest(void) {
    if (!deliveries.queue.count) return NULL;
    return LIST_OWNER(listFirst(&deliveries.queue), delivery, queued);
}

static void endDelivery(delivery *d) {
    listRemove(&deliveries.queue, &d->queued);
    for (int i = 0; i < 2; i++) {
        deliveries.bytes -= d->encoded[i]->len;
        blobRelease(d->encoded[i]);
    }
    topicWalkEnd(d->to);
    memFree(d);
}

static void finishOldest(void) {
    delivery *d = oldest();
    (void)deliverSome(d, UINT32_MAX); /* all of them */
    endDelivery(d);
}

static void queueDelivery(topic *to, message *m) {
    delivery *d = memNew(delivery);
    d->to = to;
    d->end = to->count;
    for (int i = 0; i < 2; i++) {
        d->encoded[i] = blobRetain(encoded(m, i == 1)); /* a receiver may change its protocol */
        deliveries.bytes += d->encoded[i]->len;
    }
    topicWalkBegin(to);
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

void publishFinish(const topic *t) {
    if (t && !t->walks) return;
    while (oldest() && (!t || t->walks)) finishOldest();
}

/* ------------------------------------------------------------------ publishing */

static uint64_t deliver(topic *to, message *m) {
    uint64_t receivers = topicCount(to);
    if (unlikely(deliveries.queue.count) || unlikely(to->count > FANOUT_AT_ONCE)) {
        queueDelivery(to, m);
        return receivers;
    }
    for (uint32_t i = 0; i < to->count; i++) {
        session *s = topicSubscriber(to, i)->who;
        if (s) sessionDeliverShared(s, DELIVER_PUSH, encoded(m, s->proto == 3));
    }
    return receivers;
}

static uint64_t publish(topicKind kind, slice word, slice channel, slice payload) {
    topic *t = topicFind(kind, channel);
    if (!t) return 0;
    message m = {.words = {word, channel, payload}, .count = 3};
    uint64_t receivers = deliver(t, &m);
    messageClear(&m);
    return receivers;
}

typedef struct publication {
    slice channel, payload;
    uint64_t receivers;
} publication;

static void publishToPattern(void *arg, topic *pattern) {
    publication *p = arg;
    message m = {.words = {SLICE("pmessage"), topicName(pattern), p->channel, p->payload},
                 .count = 4};
    p->receivers += deliver(pattern, &m);
    messageClear(&m);
}

uint64_t publishToChannel(slice channel, slice payload) {
    publication p = {.channel = channel, .payload = payload};
    p.receivers = publish(TOPIC_CHANNEL, SLICE("message"), channel, payload);
    if (topicsOfKind(TOPIC_PATTERN)) patternIndexMatch(channel, publishToPattern, &p);
    boundQueue();
    return p.receivers;
}

uint64_t publishToShard(slice channel, slice payload) {
    uint64_t receivers = publish(TOPIC_SHARD, SLICE("smessage"), channel, payload);
    boundQueue();
    return receivers;
}
