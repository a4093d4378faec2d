/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Failure detection: when a node is marked as possibly failing (by this node alone) and as failed
 * (by the majority). Pure: a map and a message or the time in, a changed map and calls of `failed`
 * out.
 *
 *   from          event                                              to             act
 *   -             PING unanswered and no data for the node timeout   MAYBE_FAILED
 *   MAYBE_FAILED  PONG                                               -
 *   MAYBE_FAILED  reports of voters, and own vote, are a majority    FAILED         FAIL to all
 *   any           FAIL of a known node                               FAILED
 *   FAILED        PONG of a replica or a primary without slots       -
 *   FAILED        PONG of a primary 2 timeouts after it was marked   -
 *
 * Reports count for two timeouts. */
#ifndef CLUSTER_FAILURE_H
#define CLUSTER_FAILURE_H

#include "cluster/map.h"
#include "cluster/message.h"

typedef struct failureRules {
    int64_t timeout_ms;
    /* A node was marked as failed by the majority: the others must be told. */
    void (*failed)(void *arg, clusterNode *n);
    void *arg;
} failureRules;

/* Periodically. */
void failureTick(clusterMap *m, const failureRules *rules, int64_t now_ms);
/* A PING was sent, a PONG or other data received. */
void failurePinged(clusterNode *n, int64_t now_ms);
void failurePong(clusterMap *m, clusterNode *n, const failureRules *rules, int64_t now_ms);
void failureHeard(clusterNode *n, int64_t now_ms);
/* What `from` tells about `about` in its gossip. */
void failureGossip(clusterMap *m, const clusterNode *from, clusterNode *about,
                   const gossipEntry *entry, const failureRules *rules, int64_t now_ms);
/* A FAIL message. */
void failureReceived(clusterMap *m, const clusterNode *from, clusterNode *about, int64_t now_ms);
/* The number of reports that count. */
int failureCountReports(clusterNode *n, const failureRules *rules, int64_t now_ms);

#endif
