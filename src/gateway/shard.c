/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Shard channels of other nodes (shard.h), and GATEWAY SUBSCRIBE, the other end. All subscriptions
 * at a node use one link of their own, which speaks RESP3 whatever the clients speak. Clients are
 * subscribed here, as to channels of this node: pubsub keeps them when slots move.
 *
 * Invariant: a channel that has `at` is subscribed at that node over the link that `at` holds, and
 * no other one is in the list `ending` of a node. Main thread only. */
#include "gateway/shard.h"

#include "base/base.h"
#include "base/hash.h"
#include "cluster/cluster.h"
#include "cluster/owners.h"
#include "engine/execute.h"
#include "engine/hot.h"
#include "engine/reply.h"
#include "format/aof_reader.h"
#include "gateway/gateway.h"
#include "gateway/gateway_priv.h"
#include "gateway/identity.h"
#include "gateway/peer.h"
#include "gateway/procs.h"
#include "ds/hashtable.h"
#include "pubsub/pubsub.h"

enum { BATCH_MAX = 64, TICK_MAX = 2000 };

/* A node at which there are subscriptions. */
typedef struct shardFeed {
    listNode all;
    char id[NODE_ID_LEN];
    bool is_busy; /* a request is under way: the link is for one at a time */
    bool has_link;
    bool is_asked; /* while it was busy channels were wanted of it */
    list ending;   /* channels whose messages nobody needs, to be unsubscribed from */
    size_t count;  /* of channels that have it as `at` */
} shardFeed;

typedef struct shardChannel {
    listNode all;
    uint64_t hash;
    listNode ending;         /* among those of `at` */
    shardFeed *at;           /* NULL: no node sends its messages over a link */
    bool is_asked;           /* for it a request is under way */
    int64_t wanted_until_ms; /* for a client that is not subscribed yet */
    int slot;
    size_t len;
    char name[];
} shardChannel;

/* A request for some channels, or (`count` 0) to unsubscribe from some. */
typedef struct shardBatch {
    shardFeed *feed;
    int count;
    shardChannel *of[BATCH_MAX];
} shardBatch;

static struct {
    list feeds, channels;
    hashtable by_name;
} shard;

static list *allFeeds(void) {
    if (!shard.feeds.head.next) {
        listInit(&shard.feeds);
        listInit(&shard.channels);
    }
    return &shard.feeds;
}

/* ------------------------------------------------------------------ the owner of the slot */

/* GATEWAY SUBSCRIBE channel...: as SSUBSCRIBE, without confirmations. Reply: for each one 1, or 0
 * if another node has its slot. */
void gatewaySubscribeCommand(ctx *c) {
    if (!identityIsLink(c)) return;
    replyArray(c, c->argc - 2);
    for (int i = 2; i < c->argc; i++) {
        bool serves = clusterSharesSlot(hashSlot(c->argv[i]));
        if (serves) pubsubLinkShard(c->who, c->argv[i], true);
        replyInteger(c, serves);
    }
}

/* GATEWAY UNSUBSCRIBE channel...: ends that. */
void gatewayUnsubscribeCommand(ctx *c) {
    if (!identityIsLink(c)) return;
    for (int i = 2; i < c->argc; i++) pubsubLinkShard(c->who, c->argv[i], false);
    replyOk(c);
}

/* ------------------------------------------------------------------ channels */

static slice nameOf(const shardChannel *ch) { return sliceMake(ch->name, ch->len); }

static uint64_t hashOfChannel(const void *entry) { return ((const shardChannel *)entry)->hash; }

static bool channelMatches(const void *entry, const void *name, size_t len) {
    return sliceEqual(nameOf(entry), sliceMake(name, len));
}

static const hashtableType channels_type = {.hash_of = hashOfChannel, .match = channelMatches};

static shardChannel *findChannel(slice name) {
    uint64_t hash = hashBytes(name.ptr, name.len);
    return hashtableFind(&shard.by_name, &channels_type, hash, name.ptr, name.len);
}

static shardChannel *channelFor(slice name) {
    shardChannel *ch = findChannel(name);
    (void)allFeeds(); /* initialises both lists */
    check(shard.channels.head.next);
    if (!ch) {
        ch = memCalloc(1, sizeof(*ch) + name.len);
        ch->hash = hashBytes(name.ptr, name.len);
        ch->slot = hashSlot(name);
        ch->len = name.len;
        memcpy(ch->name, name.ptr, name.len);
        hashtableInsert(&shard.by_name, &channels_type, ch->hash, ch, 0);
        listAppend(&shard.channels, &ch->all);
    }
    ch->wanted_until_ms = engineHot.now_ms + 2 * gatewayConf.cluster_gateway_retry_ms + 1000;
    return ch;
}

/* The node sends messages of the channel. */
static void setAt(shardChannel *ch, shardFeed *f) {
    if (ch->at == f) return;
    check(!ch->at);
    ch->at = f;
    f->count++;
}

/* No node sends messages of the channel any more. */
static void clearAt(shardChannel *ch) {
    shardFeed *f = ch->at;
    if (!f) return;
    if (listHas(&ch->ending)) listRemove(&f->ending, &ch->ending);
    check(f->count > 0);
    f->count--;
    ch->at = NULL;
}

static bool isWanted(const shardChannel *ch) {
    return pubsubShardSubscribers(nameOf(ch)) || engineHot.now_ms < ch->wanted_until_ms;
}

static void freeChannel(shardChannel *ch) {
    check(!ch->is_asked);
    check(!ch->at);
    check(hashtableDeleteEntry(&shard.by_name, &channels_type, ch->hash, ch));
    listRemove(&shard.channels, &ch->all);
    memFree(ch);
}

/* ------------------------------------------------------------------ requests to owners */

static shardFeed *feedFor(const clusterNode *n) {
    check(!clusterIsMyself(n));
    list *all = allFeeds();
    for (listNode *at = listFirst(all); at; at = listNext(all, at)) {
        shardFeed *f = LIST_OWNER(at, shardFeed, all);
        if (memcmp(f->id, n->id, NODE_ID_LEN) == 0) return f;
    }
    shardFeed *f = memCalloc(1, sizeof(*f));
    memcpy(f->id, n->id, NODE_ID_LEN);
    listInit(&f->ending);
    listAppend(all, &f->all);
    return f;
}

/* The channels of a node whose link has ended have nobody. */
static void loseLink(shardFeed *f) {
    check(!f->is_busy);
    f->has_link = false;
    for (listNode *n = listFirst(&shard.channels); n; n = listNext(&shard.channels, n)) {
        shardChannel *ch = LIST_OWNER(n, shardChannel, all);
        if (ch->at == f) clearAt(ch);
    }
    check(f->count == 0);
}

static void askFeed(shardFeed *f);
static void endChannels(shardFeed *f);

static void endBatch(void *owner, int part, str *reply, bool is_tracked) {
    (void)part, (void)is_tracked; /* there is one part */
    shardBatch *b = owner;
    shardFeed *f = b->feed;
    check(b->count <= BATCH_MAX);
    slice items[BATCH_MAX];
    bool is_held = peerHeldBy(f) != NULL;
    int count = is_held ? mergeItems(strSlice(reply), items, BATCH_MAX) : -1;
    check(f->is_busy);
    f->is_busy = false;
    if (f->has_link && !is_held) loseLink(f);
    f->has_link = is_held;
    for (int i = 0; i < b->count; i++) {
        shardChannel *ch = b->of[i];
        ch->is_asked = false;
        if (count == b->count && sliceEqual(items[i], SLICE(":1\r\n"))) setAt(ch, f);
    }
    memFree(b);
    gatewayProgress();
    bool is_asked = f->is_asked;
    f->is_asked = false;
    if (is_asked) askFeed(f);
    if (!f->is_busy) endChannels(f);
}

static void send(shardBatch *b, slice request) {
    shardFeed *f = b->feed;
    uint32_t held = f->has_link ? CALL_ON_HELD : 0;
    check(!f->is_busy);
    f->is_busy = true;
    callStart(&(callRequest){.request = request,
                             .node_id = sliceMake(f->id, NODE_ID_LEN),
                             .slot = -1,
                             .proto = 3,
                             .flags = CALL_ALL_NODES | CALL_OWN_LINK | CALL_WATCHES | CALL_PROVEN |
                                      CALL_READS | CALL_UNIT | CALL_BY_NODE | held,
                             .end = endBatch,
                             .owner = b,
                             .holder = f});
}

static bool isWithout(const shardChannel *ch) {
    return !ch->at && !ch->is_asked && !clusterSharesSlot(ch->slot);
}

/* Asks a node for channels of its slots that nobody sends. */
static void askFeed(shardFeed *f) {
    check(!f->is_busy);
    slice words[2 + BATCH_MAX] = {SLICE("GATEWAY"), SLICE("SUBSCRIBE")};
    shardBatch *b = memCalloc(1, sizeof(*b));
    b->feed = f;
    for (listNode *n = listFirst(&shard.channels); n && b->count < BATCH_MAX;
         n = listNext(&shard.channels, n)) {
        shardChannel *ch = LIST_OWNER(n, shardChannel, all);
        const clusterNode *owner = isWithout(ch) ? clusterOwner(ch->slot) : NULL;
        if (!owner || memcmp(owner->id, f->id, NODE_ID_LEN) != 0) continue;
        words[2 + b->count] = nameOf(ch);
        b->of[b->count++] = ch;
        ch->is_asked = true;
    }
    if (b->count) {
        str bytes = STR_EMPTY;
        aofPrintCommand(&bytes, 2 + b->count, words);
        send(b, strSlice(&bytes));
        strFree(&bytes);
    } else {
        memFree(b);
    }
}

static void askFor(const shardChannel *ch) {
    const clusterNode *owner = isWithout(ch) ? clusterOwner(ch->slot) : NULL;
    shardFeed *f = owner ? feedFor(owner) : NULL;
    if (!f) return;
    if (f->is_busy) {
        f->is_asked = true;
    } else {
        askFeed(f);
    }
}

/* Unsubscribes from channels in `ending`, unless they are wanted again. The others follow when the
 * reply has come. */
static void endChannels(shardFeed *f) {
    check(!f->is_busy);
    shardChannel *of[BATCH_MAX];
    slice words[2 + BATCH_MAX] = {SLICE("GATEWAY"), SLICE("UNSUBSCRIBE")};
    int count = 0;
    for (listNode *n; count < BATCH_MAX && (n = listFirst(&f->ending));) {
        shardChannel *ch = LIST_OWNER(n, shardChannel, ending);
        listRemove(&f->ending, n);
        if (isWanted(ch) && !clusterSharesSlot(ch->slot)) continue;
        clearAt(ch);
        words[2 + count] = nameOf(ch);
        of[count++] = ch;
    }
    if (!count) return;
    shardBatch *b = memCalloc(1, sizeof(*b));
    str bytes = STR_EMPTY;
    b->feed = f;
    aofPrintCommand(&bytes, 2 + count, words);
    for (int i = 0; i < count; i++)
        if (!isWanted(of[i])) freeChannel(of[i]);
    send(b, strSlice(&bytes));
    strFree(&bytes);
}

/* ------------------------------------------------------------------ clients */

static gateVerdict runHere(ctx *c) {
    ctx inner;
    ctxInitInner(&inner, c);
    inner.argv = c->argv;
    inner.argc = c->argc;
    inner.gates_exempt = gatewayGatesAsked();
    executeInner(&inner);
    return GATE_DONE;
}

/* True if the messages of all channels come here. */
static bool isFed(const ctx *c) {
    bool is_fed = true;
    for (int i = 1; i < c->argc; i++) {
        const shardChannel *ch = channelFor(c->argv[i]);
        if (ch->at || clusterSharesSlot(ch->slot)) continue;
        is_fed = false;
        askFor(ch);
    }
    return is_fed;
}

gateVerdict shardAdmit(gatewayClient *gc, ctx *c) {
    check(gc->who == c->who);
    bool subscribes = sliceEqual(c->cmd->name, SLICE("ssubscribe"));
    if (!subscribes || isFed(c)) {
        gc->give_up_ms = 0;
        return runHere(c);
    }
    if (!clusterSecret().len) {
        replyError(c, SLICE("ERR Shard channels of other nodes need cluster-bus-secret"));
        return GATE_REFUSED;
    }
    if (!gc->give_up_ms)
        gc->give_up_ms = engineHot.now_ms + gatewayConf.cluster_gateway_retry_ms + 1;
    if (engineHot.now_ms < gc->give_up_ms) return gatewayHold(gc, true);
    gc->give_up_ms = 0;
    replyError(c, SLICE("CLUSTERDOWN Hash slot not served"));
    return GATE_REFUSED;
}

/* ------------------------------------------------------------------ what nodes tell */

void shardTakePush(slice push) {
    slice items[3];
    if (mergeItems(push, items, 3) != 3) return; /* of another kind */
    slice kind = mergeBulk(items[0]), name = mergeBulk(items[1]);
    shardChannel *ch = findChannel(name);
    if (!ch || clusterSharesSlot(ch->slot)) return; /* the bus brings its messages */
    if (sliceEqual(kind, SLICE("smessage"))) pubsubDeliver(true, name, mergeBulk(items[2]));
    if (sliceEqual(kind, SLICE("sunsubscribe"))) {
        clearAt(ch);
        askFor(ch);
    }
}

/* ------------------------------------------------------------------ time */

static void checkFeeds(void) {
    list *all = allFeeds();
    for (listNode *n = listFirst(all), *next; n; n = next) {
        next = listNext(all, n);
        shardFeed *f = LIST_OWNER(n, shardFeed, all);
        if (f->is_busy) continue;
        if (f->has_link && !peerHeldBy(f)) loseLink(f);
        if (f->count) continue;
        peerDrop(f);
        listRemove(all, &f->all);
        memFree(f);
    }
}

static void checkChannel(shardChannel *ch) {
    const clusterNode *owner = clusterOwner(ch->slot);
    shardFeed *f = ch->at;
    bool is_wanted = isWanted(ch);
    if (!is_wanted || clusterSharesSlot(ch->slot)) {
        if (ch->is_asked) return;
        if (!f && !is_wanted) freeChannel(ch);
        if (!f || listHas(&ch->ending)) return;
        listAppend(&f->ending, &ch->ending);
        if (!f->is_busy) endChannels(f);
        return;
    }
    bool moved = f && owner && memcmp(f->id, owner->id, NODE_ID_LEN) != 0;
    if (moved) clearAt(ch); /* the former owner has ended it */
    askFor(ch);
}

void shardTick(void) {
    checkFeeds();
    list *all = &shard.channels;
    size_t count = all->count < TICK_MAX ? all->count : TICK_MAX;
    for (; count > 0 && !listIsEmpty(all); count--) { /* checkChannel() frees others, too */
        listNode *first = listFirst(all);
        listRemove(all, first);
        listAppend(all, first);
        checkChannel(LIST_OWNER(first, shardChannel, all));
    }
}
