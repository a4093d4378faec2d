/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Client tracking through the gateway (caching.h), and GATEWAY TRACK, its other end. The owner of a
 * key tracks what a link reads; what the clients of the link have read is in the table of this
 * node. In broadcast mode each owner tells each gateway of all changes of keys with the prefixes of
 * all its clients, and pubsub selects among them.
 *
 * Invariant: while there are prefixes, each link has sent them to its node before any request on
 * keys, and each link to an owner of slots within a tick. When they have been received, all clients
 * forget everything: changes before that were not told of. Main thread only. */
#include "gateway/caching.h"

#include "base/base.h"
#include "cluster/owners.h"
#include "engine/reply.h"
#include "format/aof_reader.h"
#include "gateway/client.h"
#include "gateway/identity.h"
#include "gateway/merge.h"
#include "gateway/peer.h"
#include "gateway/procs.h"
#include "pubsub/pubsub.h"

enum { PREFIXES_MAX = 1000, OWNERS_MAX = 1024 };

static struct {
    str *prefixes; /* of broadcast mode, that nodes have been told */
    int count;
    int told;       /* all owners know so many of them */
    int waiting;    /* calls for the others */
    str error;      /* of one of these */
    uint64_t asker; /* the session that has asked for them; 0: it does so no more */
} caching;

/* ------------------------------------------------------------------ the owner of the keys */

/* GATEWAY TRACK [CACHE] [SILENT] [NONE] [PREFIX prefix]...: the keys that the next request of this
 * link reads are tracked; the link is not told of what it changes; of no prefix any more; of a
 * prefix, too. */
void gatewayTrackCommand(ctx *c) {
    bool caches = false, silent = false;
    if (!identityIsLink(c)) return;
    for (int i = 2; i < c->argc; i++) {
        bool has_value = i + 1 < c->argc;
        if (ctxArgIs(c, i, "cache")) {
            caches = true;
        } else if (ctxArgIs(c, i, "silent")) {
            silent = true;
        } else if (ctxArgIs(c, i, "none")) {
            pubsubLinkNoPrefixes(c->who);
        } else if (ctxArgIs(c, i, "prefix") && has_value) {
            pubsubLinkPrefix(c->who, c->argv[++i]);
        } else {
            replyError(c, ERR_SYNTAX_TEXT);
            return;
        }
    }
    pubsubLinkNext(c->who, caches, silent);
    replyOk(c);
}

/* ------------------------------------------------------------------ requests of clients */

/* The uses of a command's keys. */
enum { KEYS_READ = 1, KEYS_CHANGED = 2 };

static uint8_t useOf(const command *cmd) {
    if (cmd->spec->categories & UINT64_C(1) << CAT_SCRIPTING) return KEYS_READ | KEYS_CHANGED;
    uint8_t use = cmd->flags & CMD_READONLY ? KEYS_READ : 0;
    return cmd->flags & CMD_WRITE ? use | KEYS_CHANGED : use;
}

uint32_t cachingOf(const ctx *c) {
    uint32_t tracking = pubsubTrackingOf(c->who);
    if (likely(!tracking) || c->cmd->flags & CMD_RUNS_QUEUE) return tracking;
    uint8_t use = commandSpecHasKeys(c->cmd->spec) ? useOf(c->cmd) : 0;
    if (!(use & KEYS_READ)) tracking &= ~(uint32_t)(PUBSUB_CACHES | PUBSUB_BROADCASTS);
    if (!(use & KEYS_CHANGED)) tracking &= ~(uint32_t)PUBSUB_SILENT;
    return tracking;
}

uint32_t cachingCallFlags(uint32_t tracking) {
    return (tracking & PUBSUB_CACHES ? CALL_CACHES : 0) |
           (tracking & PUBSUB_SILENT ? CALL_SILENT : 0);
}

/* An entry is the use of the key, its length and its bytes. */
typedef struct keyHead {
    uint32_t use, len;
} keyHead;

static void appendKey(str *out, uint32_t use, slice key) {
    keyHead head = {.use = use, .len = (uint32_t)key.len};
    strAppend(out, (const char *)&head, sizeof(head));
    strAppendSlice(out, key);
}

void cachingAppendRead(str *out, slice key) { appendKey(out, KEYS_READ, key); }

void cachingAppendKeys(str *out, const command *cmd, const slice *argv, int argc) {
    enum { KEYS_MAX = 32 };
    keyPosition few[KEYS_MAX];
    int count;
    keyPosition *places = commandAllKeys(cmd, argv, argc, few, KEYS_MAX, &count);
    for (int i = 0; i < count; i++) appendKey(out, useOf(cmd), argv[places[i].arg_index]);
    if (places != few) memFree(places);
}

static void hasRead(session *who, uint32_t tracking, slice key, bool is_tracked) {
    bool broadcasts = tracking & PUBSUB_BROADCASTS;
    check(who);
    if (is_tracked && tracking & PUBSUB_CACHES) pubsubHasRead(who, key);
    if (!is_tracked && (broadcasts || tracking & PUBSUB_CACHES)) pubsubMustForget(who, key);
}

void cachingEnded(session *who, uint32_t tracking, slice keys, bool has_failed, bool is_tracked) {
    for (size_t at = 0; at < keys.len;) {
        keyHead head;
        check(at + sizeof(head) <= keys.len);
        memcpy(&head, keys.ptr + at, sizeof(head));
        at += sizeof(head);
        slice key = sliceMake(keys.ptr + at, head.len);
        at += head.len;
        check(at <= keys.len);
        /* The link was not told: other clients of this node have to be. */
        if (tracking & PUBSUB_SILENT && head.use & KEYS_CHANGED) pubsubHasChanged(key, who);
        if (who && !has_failed && head.use & KEYS_READ) hasRead(who, tracking, key, is_tracked);
    }
}

/* ------------------------------------------------------------------ prefixes */

static void endPrefixes(void *owner, int part, str *reply, bool is_tracked) {
    (void)owner, (void)is_tracked; /* of the only one */
    check(caching.waiting > 0);
    caching.waiting--;
    if (reply->ptr[0] == '-' && !part && !caching.error.len)
        strAppend(&caching.error, reply->ptr + 1, reply->len - 3);
    gatewayProgress();
}

/* Sends a request about prefixes to a node. `flags`: CALL_PREFIXES, CALL_MORE; 0: it has
 * none, and it does not matter if it fails. */
static void tellNode(const clusterNode *n, slice request, uint32_t flags) {
    check(!clusterIsMyself(n));
    caching.waiting++;
    callStart(&(callRequest){.request = request,
                             .node_id = clusterNodeId(n),
                             .slot = -1,
                             .part = flags == 0,
                             .flags = CALL_ALL_NODES | CALL_READS | CALL_PROVEN | CALL_UNIT |
                                      CALL_BY_NODE | flags,
                             .end = endPrefixes,
                             .owner = &caching});
}

static void tellOwners(slice request, uint32_t flags) {
    const clusterNode *owners[OWNERS_MAX];
    int count = clusterOwners(owners, OWNERS_MAX);
    for (int i = 0; i < count && i < OWNERS_MAX; i++)
        if (!clusterIsMyself(owners[i])) tellNode(owners[i], request, flags);
}

static void appendNone(str *out) {
    slice words[] = {SLICE("GATEWAY"), SLICE("TRACK"), SLICE("NONE")};
    aofPrintCommand(out, COUNT_OF(words), words);
}

void cachingNoPrefixes(const clusterNode *n) {
    str request = STR_EMPTY;
    appendNone(&request);
    tellNode(n, strSlice(&request), 0);
    strFree(&request);
}

int cachingPrefixesTo(uint32_t flags) { return flags & CALL_MORE ? caching.told : caching.count; }

void cachingAppendPrefixes(str *out, int from, int to) {
    int count = 2 + 2 * (to - from);
    slice *words = memNewArray(slice, (size_t)count);
    words[0] = SLICE("GATEWAY");
    words[1] = SLICE("TRACK");
    check(from < to);
    check(to <= caching.count);
    for (int i = from; i < to; i++) {
        words[2 + 2 * (i - from)] = SLICE("PREFIX");
        words[3 + 2 * (i - from)] = strSlice(&caching.prefixes[i]);
    }
    aofPrintCommand(out, count, words);
    memFree(words);
}

static bool hasPrefix(slice name) {
    for (int i = 0; i < caching.count; i++)
        if (sliceEqual(strSlice(&caching.prefixes[i]), name)) return true;
    return false;
}

static void addPrefix(slice name) {
    if (caching.count >= PREFIXES_MAX) name = SLICE(""); /* all keys */
    if (hasPrefix(name)) return;
    caching.prefixes =
        memRealloc(caching.prefixes, (size_t)(caching.count + 1) * sizeof(*caching.prefixes));
    caching.prefixes[caching.count++] = strNew(name);
}

static void dropPrefixes(int from) {
    for (int i = from; i < caching.count; i++) strFree(&caching.prefixes[i]);
    caching.count = from;
    if (caching.told > from) caching.told = from;
    peersCutPrefixes(from);
}

/* Adds those of the request. False: it has no broadcast mode. */
static bool addPrefixesOf(const ctx *c) {
    bool is_on = ctxArgIs(c, 2, "on"), broadcasts = false, any = false;
    for (int i = 3; i < c->argc; i++) {
        if (ctxArgIs(c, i, "bcast")) broadcasts = true;
        if (ctxArgIs(c, i, "prefix") || ctxArgIs(c, i, "redirect")) i++;
    }
    if (!is_on || !broadcasts) return false;
    for (int i = 3; i + 1 < c->argc; i++) {
        if (ctxArgIs(c, i, "redirect")) i++;
        if (!ctxArgIs(c, i, "prefix")) continue;
        addPrefix(c->argv[++i]);
        any = true;
    }
    if (!any) addPrefix(SLICE(""));
    return true;
}

/* The nodes do not know all prefixes: those are dropped. True: this request has asked for them, and
 * the error was replied. */
static bool takeError(ctx *c) {
    bool is_asker = caching.asker == c->who->id;
    str error = caching.error;
    check(!caching.waiting);
    if (!error.len) return false;
    caching.error = STR_EMPTY;
    dropPrefixes(caching.told);
    if (is_asker) replyError(c, strSlice(&error));
    strFree(&error);
    return is_asker;
}

gateVerdict cachingAdmit(ctx *c) {
    if (caching.waiting) return GATE_HELD;
    if (takeError(c)) return GATE_REFUSED;
    caching.told = caching.count;
    if (!addPrefixesOf(c) || caching.told == caching.count) return GATE_PASS;
    str request = STR_EMPTY;
    cachingAppendPrefixes(&request, caching.told, caching.count);
    caching.asker = c->who->id;
    tellOwners(strSlice(&request), caching.told ? CALL_MORE : CALL_PREFIXES);
    strFree(&request);
    if (caching.waiting) return GATE_HELD;
    if (takeError(c)) return GATE_REFUSED;
    caching.told = caching.count; /* there are no other owners */
    caching.asker = 0;
    return GATE_PASS;
}

void cachingRequestEnded(const session *s) {
    if (caching.asker == s->id) caching.asker = 0;
}

/* ------------------------------------------------------------------ what nodes tell */

/* Changes before it were not told of. */
void cachingPrefixesTold(void) {
    pubsubForgetAll();
    gatewayProgress();
}

void cachingTakePush(slice push) {
    slice items[2];
    if (mergeItems(push, items, 2) != 2) return; /* of another kind */
    if (!sliceEqual(mergeBulk(items[0]), SLICE("invalidate"))) return;
    int count = mergeItems(items[1], NULL, 0);
    if (count < 0) {
        pubsubForgetAll();
        return;
    }
    slice *keys = memNewArray(slice, (size_t)count + 1);
    check(mergeItems(items[1], keys, count) == count);
    for (int i = 0; i < count; i++) pubsubHasChanged(mergeBulk(keys[i]), NULL);
    memFree(keys);
}

void cachingLinkEnded(void) { pubsubForgetAll(); }

void cachingTick(void) {
    if (!caching.count || caching.waiting) return;
    if (!caching.asker) { /* nobody will be told of the result */
        if (caching.error.len) dropPrefixes(caching.told);
        strFree(&caching.error);
        caching.told = caching.count;
    }
    if (!pubsubBroadcasts() && caching.told == caching.count) {
        dropPrefixes(0);
        str request = STR_EMPTY;
        appendNone(&request);
        tellOwners(strSlice(&request), 0);
        strFree(&request);
        return;
    }
    const clusterNode *owners[OWNERS_MAX];
    int count = clusterOwners(owners, OWNERS_MAX);
    for (int i = 0; i < count && i < OWNERS_MAX; i++) {
        bool is_other = !clusterIsMyself(owners[i]) && !(owners[i]->flags & NODE_FAILED);
        if (is_other) (void)peerTo(owners[i]); /* tried again in the next tick */
    }
}
