/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Client tracking through the gateway: which keys of a request are tracked, and the prefixes of
 * broadcast mode. What clients have read is in the table of pubsub. Main thread only. */
#ifndef GATEWAY_CACHING_H
#define GATEWAY_CACHING_H

#include "bus/map.h"
#include "engine/ctx.h"
#include "engine/hooks.h"
#include "gateway/call.h"

/* What a client that tracks wants for a request (PUBSUB_CACHES and others), and what it reads and
 * changes. */
uint32_t cachingOf(const ctx *c);
/* The flags of a call for such a request. */
uint32_t cachingCallFlags(uint32_t tracking);
/* Appends the keys of a request that matter: those that it reads (PUBSUB_CACHES,
 * PUBSUB_BROADCASTS) or changes (PUBSUB_SILENT). */
void cachingAppendKeys(str *out, const command *cmd, const slice *argv, int argc);
/* The same for one key that is read. */
void cachingAppendRead(str *out, slice key);
/* The request was executed by another node, which has tracked it or (false) could not. `who`: NULL
 * if the client has gone. */
void cachingEnded(session *who, uint32_t tracking, slice keys, bool has_failed, bool is_tracked);

/* CLIENT TRACKING: GATE_HELD until all nodes will tell of the prefixes of broadcast mode. */
gateVerdict cachingAdmit(ctx *c);
/* The request that was held is not any more. */
void cachingRequestEnded(const session *s);

/* For peers. The number of prefixes of broadcast mode that a node has to know before a call with
 * these flags: all, with CALL_MORE those that the call itself does not have. */
int cachingPrefixesTo(uint32_t flags);
/* Appends the request that tells a node those from `from` to `to`, exclusive. */
void cachingAppendPrefixes(str *out, int from, int to);
/* Its reply has come. */
void cachingPrefixesTold(void);
/* A node that has prefixes is no owner of slots any more. */
void cachingNoPrefixes(const clusterNode *n);
/* An invalidation has come from a node. */
void cachingTakePush(slice push);
/* A link has ended that nodes have tracked keys for. */
void cachingLinkEnded(void);

/* Keeps links to all owners of slots while clients track in broadcast mode. */
void cachingTick(void);

#endif
