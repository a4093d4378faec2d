/* SPDX-License-Identifier: BSD-3-Clause
 *
 * The commands of channels, patterns and shard channels, and the gate that restricts RESP2 sessions
 * with subscriptions to a few commands. Main thread only. */
#include "base/base.h"
#include "base/glob.h"
#include "base/hash.h"
#include "engine/deliver.h"
#include "engine/execute.h"
#include "engine/job.h"
#include "engine/reply.h"
#include "pubsub/procs.h"
#include "pubsub/publish.h"
#include "pubsub/pubsub.h"
#include "pubsub/pubsub_priv.h"
#include "pubsub/channels.h"
#include "pubsub/pattern_index.h"
#include "pubsub/tracking.h"
#include "store/store.h"

/* ------------------------------------------------------------------ the RESP2 context */

/* The commands that a RESP2 session with subscriptions may use, besides PING, whose reply
 * differs. */
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
} words[CHANNEL_KINDS] = {
    [CHANNEL_PLAIN] = {"subscribe", "unsubscribe"},
    [CHANNEL_PATTERN] = {"psubscribe", "punsubscribe"},
    [CHANNEL_SHARD] = {"ssubscribe", "sunsubscribe"},
};

/* The count of a confirmation: shard channels are counted separately. */
static uint64_t countFor(const session *s, channelKind kind) {
    hotCheck(kind < CHANNEL_KINDS);
    if (kind == CHANNEL_SHARD) return subscriptionCount(s, CHANNEL_SHARD);
    return subscriptionCount(s, CHANNEL_PLAIN) + subscriptionCount(s, CHANNEL_PATTERN);
}

/* [word, name, count]; a name without pointer is null. */
static void appendConfirmation(outbuf *out, int proto, const char *word, slice name,
                               uint64_t count) {
    hotCheck(proto == 2 || proto == 3);
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

/* Confirms the change number `index` of a command. CLIENT REPLY does not suppress confirmations. In
 * a transaction the first one is the element of EXEC's array, and the others follow that reply: an
 * element more would desynchronize the client. */
static void confirm(ctx *c, int index, const char *word, slice name, channelKind kind) {
    hotCheck(index >= 0);
    uint64_t count = countFor(c->who, kind);
    bool apart = (index > 0 && c->flags & CTX_IN_MULTI) || outbufIsNull(c->out);
    if (unlikely(apart)) {
        deliverConfirmation(c->who, word, name, count);
    } else {
        appendConfirmation(c->out, c->proto, word, name, count);
    }
}

/* ------------------------------------------------------------------ subscribing */

static void subscribe(ctx *c, channelKind kind, const char *name) {
    hotCheck(c->argc > 1);
    hotCheck(kind < CHANNEL_KINDS);
    if (c->who->flags & SESSION_DENY_BLOCKING && !(c->flags & CTX_IN_MULTI)) {
        replyErrorFormat(c, "ERR %s isn't allowed for a DENY BLOCKING client", name);
        return;
    }
    for (int i = 1; i < c->argc; i++) {
        (void)subscriptionAdd(c->who, kind, c->argv[i]); /* confirmed again if it exists */
        confirm(c, i - 1, words[kind].subscribed, c->argv[i], kind);
    }
}

/* SUBSCRIBE channel [channel ...]. Reply: a confirmation for each. */
void subscribeCommand(ctx *c) { subscribe(c, CHANNEL_PLAIN, "SUBSCRIBE"); }

/* PSUBSCRIBE pattern [pattern ...]. Reply: a confirmation for each. */
void psubscribeCommand(ctx *c) { subscribe(c, CHANNEL_PATTERN, "PSUBSCRIBE"); }

/* SSUBSCRIBE channel [channel ...]. Reply: a confirmation for each. */
void ssubscribeCommand(ctx *c) {
    if (c->who->flags & SESSION_DENY_BLOCKING) {
        replyError(c, SLICE("ERR SSUBSCRIBE isn't allowed for a DENY BLOCKING client"));
        return;
    }
    subscribe(c, CHANNEL_SHARD, "SSUBSCRIBE");
}

/* Messages published before are sent before the confirmation; within EXEC after its reply. */
static void finishDeliveries(ctx *c, const pubsubChannel *t) {
    if (likely(!t || !t->walks) || !subscriptionHas(c->who, t)) return;
    publishFinish(t);
    sessionDeliverBeforeReply(c);
}

/* Without arguments: from all channels of the kind. */
static void unsubscribeAll(ctx *c, channelKind kind) {
    hotCheck(kind < CHANNEL_KINDS);
    str name = STR_EMPTY;
    pubsubChannel *t;
    int index = 0;
    /* In slices it is like many commands for some channels each. Confirmations beside the reply are
     * not suppressed with it. */
    enum { CHANNEL_ELEMENTS = 16 };
    bool may_job = !outbufIsNull(c->out);
    if (may_job && jobStart(c, subscriptionCount(c->who, kind) * CHANNEL_ELEMENTS)) return;
    for (; !jobPoint(c, CHANNEL_ELEMENTS) && (t = subscriptionAny(c->who, kind)); index++) {
        finishDeliveries(c, t);
        strClear(&name);
        strAppendSlice(&name, channelName(t));
        (void)subscriptionRemove(c->who, kind, strSlice(&name)); /* it exists */
        confirm(c, index, words[kind].unsubscribed, strSlice(&name), kind);
    }
    strFree(&name);
    if (!index) confirm(c, 0, words[kind].unsubscribed, sliceMake(NULL, 0), kind);
}

static void unsubscribe(ctx *c, channelKind kind) {
    hotCheck(kind < CHANNEL_KINDS);
    if (c->argc == 1) {
        unsubscribeAll(c, kind);
        return;
    }
    for (int i = 1; i < c->argc; i++) {
        finishDeliveries(c, channelFind(kind, c->argv[i]));
        (void)subscriptionRemove(c->who, kind, c->argv[i]); /* confirmed in any case */
        confirm(c, i - 1, words[kind].unsubscribed, c->argv[i], kind);
    }
}

/* UNSUBSCRIBE [channel ...]. Reply: a confirmation for each; without arguments for each
 * subscription. */
void unsubscribeCommand(ctx *c) { unsubscribe(c, CHANNEL_PLAIN); }

/* PUNSUBSCRIBE [pattern ...]. Reply: as UNSUBSCRIBE. */
void punsubscribeCommand(ctx *c) { unsubscribe(c, CHANNEL_PATTERN); }

/* SUNSUBSCRIBE [channel ...]. Reply: as UNSUBSCRIBE. */
void sunsubscribeCommand(ctx *c) { unsubscribe(c, CHANNEL_SHARD); }

/* ------------------------------------------------------------------ slots */

typedef struct lostSlots {
    bool (*is_served)(int slot);
    pubsubChannel **lost;
    size_t count, cap;
} lostSlots;

static void collectLost(void *arg, pubsubChannel *t) {
    hotCheck(((const lostSlots *)arg)->count <= ((const lostSlots *)arg)->cap);
    lostSlots *l = arg;
    if (l->is_served(hashSlot(channelName(t)))) return;
    if (l->count == l->cap) {
        l->cap = l->cap ? 2 * l->cap : 16;
        l->lost = memRealloc(l->lost, l->cap * sizeof(*l->lost));
    }
    l->lost[l->count++] = t;
}

/* Unsubscribes everyone from a shard channel. The channel is freed with its last subscriber. */
static void endChannel(pubsubChannel *t) {
    str name = strNew(channelName(t));
    publishFinish(t);
    for (uint32_t left = t->count; left > 0; left--) {
        const subscriber *by = channelSubscriber(t, left - 1);
        /* Its subscriptions are being removed, or the gateway gets the messages from elsewhere. */
        if (!by->who || by->who->flags & SESSION_GATEWAY) continue;
        session *s = by->who;
        (void)subscriptionRemove(s, CHANNEL_SHARD, strSlice(&name)); /* it exists */
        deliverConfirmation(s, words[CHANNEL_SHARD].unsubscribed, strSlice(&name),
                            subscriptionCount(s, CHANNEL_SHARD));
    }
    strFree(&name);
}

void pubsubSlotsChanged(bool (*is_served)(int slot)) {
    hotCheck(threadIsMain());
    trackingSlotsChanged(is_served);
    if (!channelsOfKind(CHANNEL_SHARD)) return;
    publishFinish(NULL);
    lostSlots l = {.is_served = is_served};
    channelsEach(CHANNEL_SHARD, collectLost, &l);
    for (size_t i = 0; i < l.count; i++) endChannel(l.lost[i]);
    memFree(l.lost);
}

/* ------------------------------------------------------------------ publishing */

static pubsubOutwardProc *outward;

void pubsubSetOutward(pubsubOutwardProc *proc) { outward = proc; }

static pubsubInwardProc *inward;

void pubsubSetInward(pubsubInwardProc *proc) { inward = proc; }

static void countPattern(void *arg, pubsubChannel *pattern) {
    *(uint64_t *)arg += channelCount(pattern);
}

uint64_t pubsubReceivers(slice channel) {
    hotCheck(threadIsMain());
    const pubsubChannel *t = channelFind(CHANNEL_PLAIN, channel);
    uint64_t count = t ? channelCount(t) : 0;
    patternIndexMatch(channel, countPattern, &count);
    return count;
}

void pubsubLinkShard(session *link, slice channel, bool on) {
    hotCheck(threadIsMain());
    (void)(on ? subscriptionAdd : subscriptionRemove)(link, CHANNEL_SHARD, channel); /* or had it */
}

uint64_t pubsubShardSubscribers(slice channel) {
    const pubsubChannel *t = channelFind(CHANNEL_SHARD, channel);
    return t ? channelCount(t) : 0;
}

void pubsubDeliver(bool shard, slice channel, slice message) {
    hotCheck(threadIsMain());
    (void)(shard ? publishToShard : publishToChannel)(channel, message); /* need not be known */
}

/* In cluster mode messages reach other nodes through the bus. */
static void propagateMessage(ctx *c, bool shard) {
    if (outward) {
        outward(shard, c->argv[1], c->argv[2]);
    } else {
        ctxPropagateTo(c, PROPAGATE_REPLICAS);
    }
}

uint64_t pubsubPublish(bool shard, slice channel, slice message) {
    hotCheck(threadIsMain());
    uint64_t receivers =
        shard ? publishToShard(channel, message) : publishToChannel(channel, message);
    if (outward) outward(shard, channel, message);
    return receivers;
}

/* PUBLISH channel message. Reply: the number of deliveries. */
void publishCommand(ctx *c) {
    hotCheck(c->argc == 3);
    if (inward && inward(c)) return;
    uint64_t receivers = publishToChannel(c->argv[1], c->argv[2]);
    propagateMessage(c, false);
    replyInteger(c, (int64_t)receivers);
}

/* SPUBLISH channel message. Reply: the number of deliveries. */
void spublishCommand(ctx *c) {
    hotCheck(c->argc == 3);
    uint64_t receivers = publishToShard(c->argv[1], c->argv[2]);
    propagateMessage(c, true);
    replyInteger(c, (int64_t)receivers);
}

/* ------------------------------------------------------------------ PUBSUB */

typedef struct channelList {
    ctx *c;
    slice pattern; /* ptr NULL: all */
    int64_t count;
} channelList;

static void replyChannel(void *arg, pubsubChannel *t) {
    channelList *list = arg;
    if (!channelCount(t)) return; /* the last subscriber has left during a walk */
    if (list->pattern.ptr && !globMatch(list->pattern, channelName(t))) return;
    replyBulk(list->c, channelName(t));
    list->count++;
}

static void replyChannels(ctx *c, channelKind kind) {
    if (c->argc > 3) {
        replyErrorSubcommand(c);
        return;
    }
    if (jobStart(c, channelsOfKind(kind))) return;
    channelList list = {.c = c};
    if (c->argc == 3) list.pattern = c->argv[2];
    respDeferred mark = respDeferBegin(c->out);
    if (c->flags & CTX_SLICED) {
        enum { BUCKETS = 16, BUCKET_CHANNELS = 7 };
        hashtableCut cut;
        channelsWalkBegin(kind, &cut);
        while (channelsWalk(kind, &cut, BUCKETS, replyChannel, &list) &&
               !jobPoint(c, BUCKETS * BUCKET_CHANNELS))
            continue;
    } else {
        channelsEach(kind, replyChannel, &list);
    }
    respDeferEnd(c->out, mark, '*', c->proto, list.count);
}

/* PUBSUB CHANNELS [pattern]. Reply: the channels with subscribers. */
void pubsubChannelsCommand(ctx *c) { replyChannels(c, CHANNEL_PLAIN); }

/* PUBSUB SHARDCHANNELS [pattern]. Reply: the shard channels with subscribers. */
void pubsubShardchannelsCommand(ctx *c) { replyChannels(c, CHANNEL_SHARD); }

static void replyCounts(ctx *c, channelKind kind) {
    hotCheck(c->argc >= 2);
    replyArray(c, 2 * (int64_t)(c->argc - 2));
    for (int i = 2; i < c->argc; i++) {
        const pubsubChannel *t = channelFind(kind, c->argv[i]);
        replyBulk(c, c->argv[i]);
        replyInteger(c, t ? (int64_t)channelCount(t) : 0);
    }
}

/* PUBSUB NUMSUB [channel ...]. Reply: each channel and its number of subscribers. */
void pubsubNumsubCommand(ctx *c) { replyCounts(c, CHANNEL_PLAIN); }

/* PUBSUB SHARDNUMSUB [channel ...]. Reply: each shard channel and its number of subscribers. */
void pubsubShardnumsubCommand(ctx *c) { replyCounts(c, CHANNEL_SHARD); }

/* PUBSUB NUMPAT. Reply: the number of different patterns. */
void pubsubNumpatCommand(ctx *c) { replyInteger(c, (int64_t)channelsOfKind(CHANNEL_PATTERN)); }

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
