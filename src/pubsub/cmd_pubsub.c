/* SPDX-License-Identifier: BSD-3-Clause
 *
 * The commands of channels, patterns and shard channels, and the gate that restricts RESP2 sessions with subscriptions
 * to a few commands. Main thread only. */
#include "base/base.h"
#include "base/glob.h"
#include "base/hash.h"
#include "engine/deliver.h"
#include "engine/execute.h"
#include "engine/reply.h"
#include "pubsub/procs.h"
#include "pubsub/publish.h"
#include "pubsub/pubsub.h"
#include "pubsub/pubsub_priv.h"
#include "pubsub/topics.h"
#include "pubsub/tracking.h"
#include "store/store.h"

/* ------------------------------------------------------------------ the RESP2 context */

/* The commands that a RESP2 session with subscriptions may use, besides PING, whose reply differs. */
static bool isAllowedInContext(const commandSpec *spec) {
    static const char *const names[] = {"subscribe",  "unsubscribe",  "psubscribe", "punsubscribe",
                                        "ssubscribe", "sunsubscribe", "quit",       "reset"};
    for (size_t i = 0; i < COUNT_OF(names); i++) {
        if (!strcmp(spec->name, names[i])) return true;
    }
    return false;
}

static bool isRefusedInContext(const commandSpec *spec) { return !isAllowedInContext(spec); }

/* PING is replied with an array, as everything that a RESP2 session with subscriptions receives. */
static gateVerdict replyPong(ctx *c) {
    if (c->argc > 2) return GATE_PASS; /* refused by the command */
    replyArray(c, 2);
    replyBulkText(c, "pong");
    replyBulk(c, c->argc == 2 ? c->argv[1] : SLICE(""));
    executeCountCall(c);
    return GATE_DONE;
}

static gateVerdict refuseInContext(ctx *c) {
    if (c->who->proto != 2) return GATE_PASS;
    if (!strcmp(c->cmd->spec->name, "ping")) return replyPong(c);
    replyErrorFormat(c,
                     "ERR Can't execute '%.*s': only (P|S)SUBSCRIBE / (P|S)UNSUBSCRIBE / PING / "
                     "QUIT / RESET are allowed in this context",
                     (int)c->cmd->name.len, c->cmd->name.ptr);
    return GATE_REFUSED;
}

const gate pubsubContextGate = {.name = "pubsub-context",
                                .selects = isRefusedInContext,
                                .admit = refuseInContext,
                                .origins = GATE_FOR_CLIENTS};

/* ------------------------------------------------------------------ confirmations */

static const struct {
    const char *subscribed, *unsubscribed;
} words[TOPIC_KINDS] = {
    [TOPIC_CHANNEL] = {"subscribe", "unsubscribe"},
    [TOPIC_PATTERN] = {"psubscribe", "punsubscribe"},
    [TOPIC_SHARD] = {"ssubscribe", "sunsubscribe"},
};

/* The count of a confirmation: shard channels are counted separately. */
static uint64_t countFor(const session *s, topicKind kind) {
    if (kind == TOPIC_SHARD) return subscriptionCount(s, TOPIC_SHARD);
    return subscriptionCount(s, TOPIC_CHANNEL) + subscriptionCount(s, TOPIC_PATTERN);
}

/* [word, name, count]; a name without pointer is null. */
static void appendConfirmation(outbuf *out, int proto, const char *word, slice name,
                               uint64_t count) {
    respPush(out, proto, 3);
    respBulk(out, sliceOf(word));
    if (name.ptr) {
        respBulk(out, name);
    } else {
        respNull(out, proto);
    }
    respInteger(out, (int64_t)count);
}

static void deliverConfirmation(session *s, const char *word, slice name, uint64_t count) {
    outbuf out;
    outbufInit(&out);
    appendConfirmation(&out, s->proto, word, name, count);
    size_t len;
    char *bytes = outbufCopy(&out, &len);
    outbufClear(&out);
    sessionDeliver(s, DELIVER_PUSH, sliceMake(bytes, len));
    memFree(bytes);
}

/* Confirms the change number `index` of a command. CLIENT REPLY does not suppress confirmations. In a transaction the
 * first one is the element of EXEC's array, and the others follow that reply: an element more would desynchronize the
 * client. */
static void confirm(ctx *c, int index, const char *word, slice name, topicKind kind) {
    uint64_t count = countFor(c->who, kind);
    bool apart = (index > 0 && c->flags & CTX_IN_MULTI) || outbufIsNull(c->out);
    if (unlikely(apart)) {
        deliverConfirmation(c->who, word, name, count);
    } else {
        appendConfirmation(c->out, c->proto, word, name, count);
    }
}

/* ------------------------------------------------------------------ subscribing */

static void subscribe(ctx *c, topicKind kind) {
    for (int i = 1; i < c->argc; i++) {
        (void)subscriptionAdd(c->who, kind, c->argv[i]); /* confirmed again if it exists */
        confirm(c, i - 1, words[kind].subscribed, c->argv[i], kind);
    }
}

/* SUBSCRIBE channel [channel ...]. Reply: a confirmation for each. */
void subscribeCommand(ctx *c) { subscribe(c, TOPIC_CHANNEL); }

/* PSUBSCRIBE pattern [pattern ...]. Reply: a confirmation for each. */
void psubscribeCommand(ctx *c) { subscribe(c, TOPIC_PATTERN); }

/* SSUBSCRIBE channel [channel ...]. Reply: a confirmation for each. */
void ssubscribeCommand(ctx *c) {
    if (c->who->flags & SESSION_DENY_BLOCKING) {
        replyError(c, SLICE("ERR SSUBSCRIBE isn't allowed for a DENY BLOCKING client"));
        return;
    }
    subscribe(c, TOPIC_SHARD);
}

/* Messages published before are sent before the confirmation; within EXEC after its reply. */
static void finishDeliveries(ctx *c, const topic *t) {
    if (likely(!t || !t->walks) || !subscriptionHas(c->who, t)) return;
    publishFinish(t);
    sessionDeliverBeforeReply(c);
}

/* Without arguments: from all topics of the kind. */
static void unsubscribeAll(ctx *c, topicKind kind) {
    str name = STR_EMPTY;
    topic *t;
    int index = 0;
    for (; (t = subscriptionAny(c->who, kind)) != NULL; index++) {
        finishDeliveries(c, t);
        strClear(&name);
        strAppendSlice(&name, topicName(t));
        (void)subscriptionRemove(c->who, kind, strSlice(&name)); /* it exists */
        confirm(c, index, words[kind].unsubscribed, strSlice(&name), kind);
    }
    strFree(&name);
    if (!index) confirm(c, 0, words[kind].unsubscribed, sliceMake(NULL, 0), kind);
}

static void unsubscribe(ctx *c, topicKind kind) {
    if (c->argc == 1) {
        unsubscribeAll(c, kind);
        return;
    }
    for (int i = 1; i < c->argc; i++) {
        finishDeliveries(c, topicFind(kind, c->argv[i]));
        (void)subscriptionRemove(c->who, kind, c->argv[i]); /* confirmed in any case */
        confirm(c, i - 1, words[kind].unsubscribed, c->argv[i], kind);
    }
}

/* UNSUBSCRIBE [channel ...]. Reply: a confirmation for each; without arguments for each subscription. */
void unsubscribeCommand(ctx *c) { unsubscribe(c, TOPIC_CHANNEL); }

/* PUNSUBSCRIBE [pattern ...]. Reply: as UNSUBSCRIBE. */
void punsubscribeCommand(ctx *c) { unsubscribe(c, TOPIC_PATTERN); }

/* SUNSUBSCRIBE [channel ...]. Reply: as UNSUBSCRIBE. */
void sunsubscribeCommand(ctx *c) { unsubscribe(c, TOPIC_SHARD); }

/* ------------------------------------------------------------------ slots */

typedef struct lostSlots {
    bool (*is_served)(int slot);
    topic **lost;
    size_t count, cap;
} lostSlots;

static void collectLost(void *arg, topic *t) {
    lostSlots *l = arg;
    if (l->is_served(hashSlot(topicName(t)))) return;
    if (l->count == l->cap) {
        l->cap = l->cap ? 2 * l->cap : 16;
        l->lost = memRealloc(l->lost, l->cap * sizeof(*l->lost));
    }
    l->lost[l->count++] = t;
}

/* Unsubscribes everyone from a shard channel. The topic is freed with its last subscriber. */
static void endTopic(topic *t) {
    str name = strNew(topicName(t));
    publishFinish(t);
    for (uint32_t left = t->count; left > 0; left--) {
        const subscriber *by = topicSubscriber(t, left - 1);
        if (!by->who) continue; /* its subscriptions are being removed */
        session *s = by->who;
        (void)subscriptionRemove(s, TOPIC_SHARD, strSlice(&name)); /* it exists */
        deliverConfirmation(s, words[TOPIC_SHARD].unsubscribed, strSlice(&name),
                            subscriptionCount(s, TOPIC_SHARD));
    }
    strFree(&name);
}

void pubsubSlotsChanged(bool (*is_served)(int slot)) {
    trackingSlotsChanged(is_served);
    if (!topicsOfKind(TOPIC_SHARD)) return;
    publishFinish(NULL);
    lostSlots l = {.is_served = is_served};
    topicsEach(TOPIC_SHARD, collectLost, &l);
    for (size_t i = 0; i < l.count; i++) endTopic(l.lost[i]);
    memFree(l.lost);
}

/* ------------------------------------------------------------------ publishing */

/* In cluster mode messages reach other nodes through the bus. */
static void propagateMessage(ctx *c) {
    if (!storeIsSlotted()) ctxPropagateTo(c, PROPAGATE_REPLICAS);
}

/* PUBLISH channel message. Reply: the number of deliveries. */
void publishCommand(ctx *c) {
    uint64_t receivers = publishToChannel(c->argv[1], c->argv[2]);
    propagateMessage(c);
    replyInteger(c, (int64_t)receivers);
}

/* SPUBLISH channel message. Reply: the number of deliveries. */
void spublishCommand(ctx *c) {
    uint64_t receivers = publishToShard(c->argv[1], c->argv[2]);
    propagateMessage(c);
    replyInteger(c, (int64_t)receivers);
}

/* ------------------------------------------------------------------ PUBSUB */

typedef struct topicList {
    ctx *c;
    slice pattern; /* ptr NULL: all */
    int64_t count;
} topicList;

static void replyTopic(void *arg, topic *t) {
    topicList *list = arg;
    if (!topicCount(t)) return; /* the last subscriber has left during a walk */
    if (list->pattern.ptr && !globMatch(list->pattern, topicName(t))) return;
    replyBulk(list->c, topicName(t));
    list->count++;
}

static void replyTopics(ctx *c, topicKind kind) {
    if (c->argc > 3) {
        replyErrorSubcommand(c);
        return;
    }
    topicList list = {.c = c};
    if (c->argc == 3) list.pattern = c->argv[2];
    respDeferred mark = respDeferBegin(c->out);
    topicsEach(kind, replyTopic, &list);
    respDeferEnd(c->out, mark, '*', c->proto, list.count);
}

/* PUBSUB CHANNELS [pattern]. Reply: the channels with subscribers. */
void pubsubChannelsCommand(ctx *c) { replyTopics(c, TOPIC_CHANNEL); }

/* PUBSUB SHARDCHANNELS [pattern]. Reply: the shard channels with subscribers. */
void pubsubShardchannelsCommand(ctx *c) { replyTopics(c, TOPIC_SHARD); }

static void replyCounts(ctx *c, topicKind kind) {
    replyArray(c, 2 * (int64_t)(c->argc - 2));
    for (int i = 2; i < c->argc; i++) {
        const topic *t = topicFind(kind, c->argv[i]);
        replyBulk(c, c->argv[i]);
        replyInteger(c, t ? (int64_t)topicCount(t) : 0);
    }
}

/* PUBSUB NUMSUB [channel ...]. Reply: each channel and its number of subscribers. */
void pubsubNumsubCommand(ctx *c) { replyCounts(c, TOPIC_CHANNEL); }

/* PUBSUB SHARDNUMSUB [channel ...]. Reply: each shard channel and its number of subscribers. */
void pubsubShardnumsubCommand(ctx *c) { replyCounts(c, TOPIC_SHARD); }

/* PUBSUB NUMPAT. Reply: the number of different patterns. */
void pubsubNumpatCommand(ctx *c) { replyInteger(c, (int64_t)topicsOfKind(TOPIC_PATTERN)); }

/* PUBSUB HELP. Reply: lines of text. */
void pubsubHelpCommand(ctx *c) {
    static const char *const lines[] = {
        "CHANNELS [<pattern>]",
        "    Return the currently active channels matching a <pattern> (default: '*').",
        "NUMPAT",
        "    Return number of subscriptions to patterns.",
        "NUMSUB [<channel> ...]",
        "    Return the number of subscribers for the specified channels, excluding",
        "    pattern subscriptions(default: no channels).",
        "SHARDCHANNELS [<pattern>]",
        "    Return the currently active shard level channels matching a <pattern> (default: '*').",
        "SHARDNUMSUB [<shardchannel> ...]",
        "    Return the number of subscribers for the specified shard level channel(s)",
        NULL,
    };
    replyHelp(c, lines);
}
