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
 * Reports count for two timeouts.
 *
 * When the kernel of a host refuses connections to a node's bus port, its process is gone. With
 * cluster-refused-timeout, a node to which all connections in so long a time were refused counts as
 * one that is silent for the node timeout: first row of the table. Others are told so as always, in
 * gossip, so the majority of voters must agree; reports of nodes that do not know this rule count,
 * too. As a restarted process is marked by this rule where it was not before, a primary without a
 * replica that could replace it is then unmarked by its next PONG, and others sooner. */
#ifndef BUS_FAILURE_H
#define BUS_FAILURE_H

#include "bus/map.h"
#include "bus/message.h"
#include "bus/rules.h"

typedef struct failureRules {
    const busRules *directives;
    /* A node was marked as failed by the majority: the others must be told. */
    void (*failed)(void *arg, clusterNode *n);
    void *arg;
} failureRules;

/* Periodically. True if this node suspects one that it did not before, and votes: the other voters
 * should be told soon. */
bool failureTick(clusterMap *m, const failureRules *rules, int64_t now_ms);
/* A PING was sent, a PONG or other data received. */
void failurePinged(clusterNode *n, int64_t now_ms);
void failurePong(clusterMap *m, clusterNode *n, const failureRules *rules, int64_t now_ms);
void failureHeard(clusterNode *n, int64_t now_ms);
/* A connection to the bus port of the node was refused; it was accepted, or has failed with another
 * error, which may be that of the network. */
void failureRefused(clusterNode *n, int64_t now_ms);
void failureNotRefused(clusterNode *n);
/* What `from` tells about `about` in its gossip. */
void failureGossip(clusterMap *m, const clusterNode *from, clusterNode *about,
                   const gossipEntry *entry, const failureRules *rules, int64_t now_ms);
/* The voter `from` has forgotten this node's primary: if this node cannot reach it either, that
 * counts as a report. Else it could never be replaced, as nobody else would report it. */
void failureForgotten(clusterMap *m, const clusterNode *from, clusterNode *about,
                      const failureRules *rules, int64_t now_ms);
/* A FAIL message. */
void failureReceived(clusterMap *m, const clusterNode *from, clusterNode *about, int64_t now_ms);
/* The number of reports that count. */
int failureCountReports(clusterNode *n, const failureRules *rules, int64_t now_ms);

#endif
