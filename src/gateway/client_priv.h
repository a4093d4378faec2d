/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Clients of the gateway, for the files that handle their commands: every.c, fetch.c. Main thread
 * only. */
#ifndef GATEWAY_CLIENT_PRIV_H
#define GATEWAY_CLIENT_PRIV_H

#include "engine/ctx.h"
#include "engine/hooks.h"
#include "gateway/call.h"
#include "gateway/client.h"
#include "gateway/merge.h"
#include "gateway/reply_order.h"
#include "gateway/route.h"

typedef struct gatewayGather gatewayGather;

typedef struct gatewayClient {
    session *who;
    replyOrder order;
    listNode active; /* while the order is not empty */
    listNode held;
    listNode tried; /* was held in this turn and has kept something for its request */
    uint64_t may_leave;
    bool is_exclusive;     /* nothing is started before the order is empty */
    bool is_closing;       /* is to be closed once the order is empty */
    bool stopped;          /* reading has stopped while it is held */
    int watch_slot;        /* of keys that are watched at another node; -1: none */
    gatewayGather *gather; /* what the request that is held back needs; NULL: nothing */
    int64_t give_up_ms;    /* SSUBSCRIBE waits until then; 0: it does not */
    str peer;              /* its address; empty: nobody has asked */
    str label;             /* callRequest.client; scratch */
} gatewayClient;

/* A reply that comes from other nodes, in `count` parts. */
typedef struct gatewayPlace {
    replyPlace at;
    gatewayClient *client; /* NULL: it has gone */
    bool is_silent;        /* CLIENT REPLY */
    bool is_scan;          /* the reply is that of CLUSTERSCAN */
    bool is_alone;         /* its calls have links of their own */
    bool is_lenient;       /* the first reply counts without the others */
    bool is_shared;        /* one reply that is no error counts: the nodes tell each other */
    bool is_info;          /* the first reply is INFO, the others are its section keyspace */
    bool counts_here;      /* of INFO: the keys of this node count */
    int waiting, count;
    mergeKind merge;
    uint8_t proto;
    int *positions; /* of MERGE_VALUES */
    int total;
    str *replies;      /* `count` of them */
    uint32_t tracking; /* CACHING_... of caching.h; 0: the client does not track */
    str *keys;         /* of each part, if the client tracks */
} gatewayPlace;

/* ---- client.c */

/* Holds the request back until something has ended, or some ms have passed. */
gateVerdict gatewayHold(gatewayClient *gc, bool stops_reading);
/* A place for the reply, at the end of the order. */
gatewayPlace *gatewayKeepPlace(gatewayClient *gc, ctx *c, int count, mergeKind merge);
/* callRequest.client: who it is in logs of other nodes. Borrowed, until the next call. */
slice gatewayLabel(const session *s);
/* The parameters of a call for part of a place, without its slot and bytes. */
callRequest gatewayRequestOf(const ctx *c, gatewayPlace *p, int part);
void gatewayPartEnded(void *owner, int part, str *reply, bool is_tracked);
/* The gates that a part of a request does not ask: those that were asked already, and those that
 * hold requests back until jobs and expiry are done, as a part cannot be held. */
uint64_t gatewayGatesAsked(void);
/* Executes a part of the request here, past these gates. */
void gatewayRunHere(ctx *c, int argc, const slice *argv, str *out);
void gatewayEndPart(gatewayPlace *p, ctx *c, int part, int argc, const slice *argv);
/* True if the request, of which a part is executed here, is held back now: it was held. */
bool gatewayIsPaused(ctx *c);
/* The request was executed by other nodes: it is counted. */
void gatewayCountMerged(const ctx *c, bool any_here);
gateVerdict gatewayRefuseSlots(ctx *c);

/* ---- every.c: commands that several nodes execute */

/* By all primaries. */
gateVerdict gatewayCallAll(gatewayClient *gc, ctx *c, const route *way);
/* The same, each on a link of its own, as the command may take long. */
gateVerdict gatewayCallEach(gatewayClient *gc, ctx *c, const route *way);
/* By all nodes; those that cannot be reached do not count. */
gateVerdict gatewayCallNodes(gatewayClient *gc, ctx *c, const route *way);
gateVerdict gatewayPublish(gatewayClient *gc, ctx *c);
gateVerdict gatewayInfo(gatewayClient *gc, ctx *c);

/* ---- fetch.c: cluster-gateway-fetch */

/* A command that only reads keys of several slots. It is held back, and asked about again, until
 * their values are here. */
gateVerdict gatewayFetch(gatewayClient *gc, ctx *c);
/* True if the gather that the client has is for this request; it ends if it is not. */
bool gatewayFetchGoesOn(gatewayClient *gc, const ctx *c);
/* The client has gone. */
void gatewayFetchEnd(gatewayClient *gc);

#endif
