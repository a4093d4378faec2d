/* SPDX-License-Identifier: BSD-3-Clause
 *
 * The exchange of shared users and functions with other nodes (shared_link.h).
 *
 * Invariants: at most one question is open, and a content that is being received is bounded. A node
 * is SHARING_DONE when this one has got all that it had at some time. */
#include "cluster/shared_link.h"

#include <string.h>

#include "base/base.h"
#include "bus/bus.h"
#include "bus/message_layout.h"
#include "cluster/server_bus.h"
#include "cluster/server_map.h"
#include "cluster/shared_state.h"

enum {
    DIGEST_MS = 1000,   /* between two digests to a node */
    NODE_MS = 10,       /* the same per node, in large clusters */
    QUESTION_MS = 3000, /* then another node is asked */
    PART_BYTES = 64 * 1024,
    BATCH_BYTES = 1 << 20, /* of small entries */
    CONTENT_BYTES_MAX =
        SHARED_VERSIONS_MAX * (SHARED_BODY_MAX + 4096) + SHARED_NAME_MAX + 2 * BATCH_BYTES,
    SENDERS_MAX = 1000, /* of contents that are not complete */
};

/* The type of a message. */
enum { DIGEST, SUMMARY, ENTRIES, END, CONTENTS };
enum { IS_FIRST = 0x40, IS_LAST = 0x80, CONTENT_BITS = 0x3f };

/* A content of which some messages have arrived. */
typedef struct partial {
    char id[NODE_ID_LEN];
    str bytes;
} partial;

static struct {
    partial *partials;
    int partial_count;
    char asked[NODE_ID_LEN];
    int64_t asked_ms; /* 0: no question is open */
    int64_t told_ms;  /* when all were last told the digest */
    int64_t complained_ms;
} exchange;

/* ------------------------------------------------------------------ sending */

/* True if something may be sent to the node. */
static bool isReachable(const clusterNode *n) {
    if (n == serverMap.myself || n->sharing < SHARING_BEGUN || n->flags & NODE_HANDSHAKE)
        return false;
    return n->links && n->links->to && n->links->to->is_open && n->links->to->is_proven;
}

static void sendContent(const clusterNode *to, int content, slice bytes) {
    size_t at = 0;
    check(content < CONTENTS);
    do {
        size_t size = sizeMin(bytes.len - at, PART_BYTES);
        int type = content | (at == 0 ? IS_FIRST : 0) | (at + size == bytes.len ? IS_LAST : 0);
        /* False only if the link is not open, which was asked before. */
        (void)busSendModule(&serverBus, to, SHARED_MODULE_ID, (uint8_t)type,
                            sliceMake(bytes.ptr + at, size));
        at += size;
    } while (at < bytes.len);
}

static void sendDigest(const clusterNode *to) {
    char bytes[8];
    storeBig64(bytes, sharedDigest(&serverShared));
    sendContent(to, DIGEST, sliceMake(bytes, sizeof(bytes)));
}

void sharedLinkPush(const sharedEntry *e) {
    str bytes = STR_EMPTY;
    sharedEntryAppend(e, &bytes);
    for (int i = 0; i < serverMap.node_count; i++)
        if (isReachable(serverMap.nodes[i]))
            sendContent(serverMap.nodes[i], ENTRIES, strSlice(&bytes));
    strFree(&bytes);
}

void sharedLinkTick(int64_t now_ms) {
    int64_t pause_ms = (int64_t)serverMap.node_count * NODE_MS;
    if (pause_ms < DIGEST_MS) pause_ms = DIGEST_MS;
    bool is_due = now_ms - exchange.told_ms >= pause_ms;
    if (is_due) exchange.told_ms = now_ms;
    for (int i = 0; i < serverMap.node_count; i++) {
        const clusterNode *n = serverMap.nodes[i];
        bool is_new = n->sharing == SHARING_BEGUN; /* it may wait for the answer */
        if ((is_due || is_new) && isReachable(n)) sendDigest(n);
    }
    check(exchange.partial_count <= SENDERS_MAX);
}

/* ------------------------------------------------------------------ contents */

static void takeDigest(clusterNode *from, slice bytes) {
    if (bytes.len != 8) return;
    if (loadBig64(bytes.ptr) == sharedDigest(&serverShared)) {
        from->sharing = SHARING_DONE;
        return;
    }
    int64_t now_ms = serverBusNowMs();
    if (exchange.asked_ms && now_ms - exchange.asked_ms < QUESTION_MS) return;
    if (!isReachable(from)) return;
    str summary = STR_EMPTY;
    sharedSummaryAppend(&serverShared, &summary);
    exchange.asked_ms = now_ms;
    memcpy(exchange.asked, from->id, NODE_ID_LEN);
    sendContent(from, SUMMARY, strSlice(&summary));
    strFree(&summary);
}

static void takeSummary(const clusterNode *from, slice summary) {
    if (summary.len % 8 || !isReachable(from) || !sharedMayTake()) return;
    str batch = STR_EMPTY;
    for (int i = 0; i < serverShared.count; i++) {
        const sharedEntry *e = serverShared.list[i];
        if (sharedSummaryHas(summary, e)) continue;
        sharedEntryAppend(e, &batch);
        if (batch.len < BATCH_BYTES) continue;
        sendContent(from, ENTRIES, strSlice(&batch));
        strClear(&batch);
    }
    if (batch.len) sendContent(from, ENTRIES, strSlice(&batch));
    sendContent(from, END, SLICE(""));
    strFree(&batch);
}

static void complain(const clusterNode *from, const char *what) {
    if (logIsDue(&exchange.complained_ms, serverBusNowMs(), BUS_COMPLAINT_MS))
        logWarning("Shared users and functions: node %s has sent %s, which is ignored",
                   clusterNodeLabel(from).text, what);
}

static void takeEntries(const clusterNode *from, slice bytes) {
    if (!sharedMayTake()) return; /* they come again */
    while (bytes.len) {
        sharedEntry e;
        if (sharedEntryTake(&bytes, &e) != OK) {
            complain(from, "an invalid entry");
            break;
        }
        sharedTake(&e, clusterNodeLabel(from).text);
        sharedEntryClear(&e);
    }
    sharedApply();
}

static void takeEnd(clusterNode *from) {
    if (!exchange.asked_ms || memcmp(exchange.asked, from->id, NODE_ID_LEN) != 0) return;
    exchange.asked_ms = 0;
    from->sharing = SHARING_DONE;
    if (isReachable(from)) sendDigest(from);
}

static void takeContent(clusterNode *from, int content, slice bytes) {
    switch (content) {
    case DIGEST: takeDigest(from, bytes); break;
    case SUMMARY: takeSummary(from, bytes); break;
    case ENTRIES: takeEntries(from, bytes); break;
    case END: takeEnd(from); break;
    default: break; /* of a later version of this server */
    }
}

/* ------------------------------------------------------------------ parts */

static int findPartial(const clusterNode *of) {
    int i = 0;
    while (i < exchange.partial_count && memcmp(exchange.partials[i].id, of->id, NODE_ID_LEN) != 0)
        i++;
    return i;
}

static void removePartial(int at) {
    check(at < exchange.partial_count);
    strFree(&exchange.partials[at].bytes);
    exchange.partials[at] = exchange.partials[--exchange.partial_count];
}

/* The partial content of the node, a new one if there was none; NULL: there is no room. */
static partial *partialOf(const clusterNode *of) {
    int at = findPartial(of);
    if (at < exchange.partial_count) return &exchange.partials[at];
    if (at == SENDERS_MAX) return NULL;
    exchange.partials = memRealloc(exchange.partials, (size_t)(at + 1) * sizeof(partial));
    exchange.partials[at] = (partial){.bytes = STR_EMPTY};
    memcpy(exchange.partials[at].id, of->id, NODE_ID_LEN);
    exchange.partial_count++;
    return &exchange.partials[at];
}

void sharedLinkReceived(clusterNode *from, uint8_t type, slice payload) {
    check(from != serverMap.myself);
    if (!sharedIsOn() || from->flags & NODE_HANDSHAKE) return;
    int at = findPartial(from);
    if (type & IS_FIRST && at < exchange.partial_count) removePartial(at); /* its link was cut */
    if (type & IS_FIRST && type & IS_LAST) {
        takeContent(from, type & CONTENT_BITS, payload);
        return;
    }
    if (!(type & IS_FIRST) && findPartial(from) == exchange.partial_count) return;
    partial *p = partialOf(from);
    if (!p) return;
    if (p->bytes.len + payload.len > CONTENT_BYTES_MAX) {
        complain(from, "too much");
        removePartial(findPartial(from));
        return;
    }
    strAppendSlice(&p->bytes, payload);
    if (!(type & IS_LAST)) return;
    str whole = p->bytes;
    p->bytes = STR_EMPTY;
    removePartial(findPartial(from));
    takeContent(from, type & CONTENT_BITS, strSlice(&whole));
    strFree(&whole);
}

/* ------------------------------------------------------------------ new nodes */

bool sharedLinkIsBehind(void) {
    const uint32_t gone = NODE_FAILED | NODE_MAYBE_FAILED | NODE_NO_ADDRESS;
    check(serverMap.node_count > 0);
    for (int i = 0; i < serverMap.node_count; i++) {
        const clusterNode *n = serverMap.nodes[i];
        if (n == serverMap.myself || n->flags & gone) continue;
        if (n->sharing == SHARING_UNKNOWN || n->sharing == SHARING_BEGUN) return true;
    }
    return false;
}

void sharedLinkForget(void) {
    while (exchange.partial_count) removePartial(exchange.partial_count - 1);
    exchange.asked_ms = 0;
    for (int i = 0; i < serverMap.node_count; i++)
        if (serverMap.nodes[i]->sharing == SHARING_DONE)
            serverMap.nodes[i]->sharing = SHARING_BEGUN;
}
