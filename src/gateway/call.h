/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Calls: requests on their way to other nodes. A call is waiting (its slot has no owner, or its
 * node cannot be reached), or it is with a peer, which sends it. Its end is a reply that is passed
 * to its owner: that of the node, or an error of the gateway.
 *
 * Invariant: of one client and slot, a later request never overtakes an earlier one: all calls of a
 * slot are with one peer, or all wait; callMayStart() is false where that would not be so. Calls on
 * links of their own are not among them: their clients start nothing else meanwhile. Main thread
 * only. */
#ifndef GATEWAY_CALL_H
#define GATEWAY_CALL_H

#include <stdbool.h>
#include <stdint.h>

#include "base/slice.h"
#include "base/str.h"
#include "ds/list.h"

typedef struct gatewayPeer gatewayPeer;
typedef struct gatewayCall gatewayCall;

/* The reply of a call as RESP, taken: `part` is that of callRequest. `is_tracked`: what CALL_CACHES
 * and CALL_SILENT ask for was done. */
typedef void callEndProc(void *owner, int part, str *reply, bool is_tracked);

enum {
    CALL_READS = 1u << 0,     /* may be repeated */
    CALL_PROVEN = 1u << 1,    /* only where the owner checks the user's rights */
    CALL_ASKS = 1u << 2,      /* ASKING comes before it */
    CALL_UNIT = 1u << 3,      /* a transaction: `extra` more replies precede its own */
    CALL_ALL_NODES = 1u << 4, /* for one node, whatever slots it has */
    CALL_OWN_LINK = 1u << 5,  /* on a link that no other call uses meanwhile: it may block */
    CALL_WATCHES = 1u << 6,   /* if it succeeds its link stays that of `holder` */
    CALL_ON_HELD = 1u << 7,   /* EXEC on that link; elsewhere its watched keys are unknown */
    CALL_CACHES = 1u << 8,    /* the keys that it reads are tracked */
    CALL_SILENT = 1u << 9,    /* the link is not told of what it changes */
    CALL_TRACKED = 1u << 10,  /* its node has been asked for that */
    CALL_ONCE = 1u << 11,     /* it fails instead of waiting for its node */
    CALL_PREFIXES = 1u << 12, /* it has all prefixes of broadcast mode */
    CALL_MORE = 1u << 13,     /* it has some of them: the node must have the others */
    CALL_BY_NODE = 1u << 14,  /* GATEWAY ... of this node itself: it needs no user there */
    CALL_HISTORY = 1u << 15,  /* about what its node has done: no other one can tell */
};

struct gatewayCall {
    listNode node; /* among those that wait, or those of its peer */
    gatewayPeer *peer;
    callEndProc *end;
    void *owner;
    const void *holder; /* of CALL_WATCHES and CALL_ON_HELD: whom the link belongs to */
    int part;
    int slot; /* -1: none, of CALL_ALL_NODES */
    char node_id[40];
    char shard_id[40]; /* of that node when the call started; empty: it was not known */
    uint32_t flags;
    int db_id;
    uint8_t proto;
    int extra;
    int skip;            /* replies that still precede its own */
    str early;           /* the first error among them */
    uint64_t begins_at;  /* in the stream of its peer; of calls that were written */
    int64_t sent_ms;     /* when that was */
    int64_t deadline_ms; /* it ends with an error if it still waits then */
    int redirects, repeats;
    size_t user_len, client_len, request_len;
    char bytes[]; /* the user's name, the client, the request */
};

/* The parameters of callStart(); `request` are complete requests as RESP. Calls with CALL_BY_NODE
 * have no user and no database; `proto` 0: any. They have CALL_PROVEN, too. */
typedef struct callRequest {
    slice user, request, node_id; /* node_id: of CALL_ALL_NODES */
    slice client;                 /* its address, and after a blank its name, for logs */
    int slot, db_id, extra, part;
    uint8_t proto;
    uint32_t flags;
    callEndProc *end;
    void *owner;
    const void *holder;
} callRequest;

static inline slice callUser(const gatewayCall *c) { return sliceMake(c->bytes, c->user_len); }
static inline slice callClient(const gatewayCall *c) {
    return sliceMake(c->bytes + c->user_len, c->client_len);
}
static inline slice callBytes(const gatewayCall *c) {
    return sliceMake(c->bytes + c->user_len + c->client_len, c->request_len);
}

/* False: a request on that slot has to wait until the calls before it have ended. `here`: it would
 * be executed by this node. */
bool callMayStart(int slot, bool here);
/* Starts a call; `end` may be called before this returns. */
void callStart(const callRequest *r);
/* For peers. callReplied(): the reply of a call, without the replies that precede it. callLost():
 * the link of a call has ended: the call waits again if it was certainly not executed or may be
 * repeated, else its client gets an error. */
void callReplied(gatewayCall *c, slice reply);
void callLost(gatewayCall *c, bool was_sent);
void callFail(gatewayCall *c, slice error);
/* Ends the call of that owner, on a link of its own, without a reply. */
void callCancel(const void *owner);
/* Calls that wait are tried again; at most every few ms. */
void callsRetry(void);
bool callsWait(void);
/* Bytes of all calls. */
size_t callsMemory(void);

typedef struct callCounts {
    uint64_t sent, redirected, repeated, unknown, gave_up;
} callCounts;
extern callCounts callStatistics;

#endif
