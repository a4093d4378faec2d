/* SPDX-License-Identifier: BSD-3-Clause
 *
 * cluster-replicas-vote: how the set of voters (voters.h) changes. Pure: a map and the time or a
 * message in, a changed map and acts out.
 *
 * A new set is made by one node at a time, the leader, which is elected for it with the votes of
 * the present set, in an epoch as any other: nobody votes twice in an epoch. With the rule of
 * Valkey all known nodes have to vote for it. It is the working primary with slots that has the
 * smallest id. It begins with the present set under a new term, and makes each further one when a
 * majority of the present one has told that it has it, and that the epoch is still that of the
 * leader's election. Nodes take the latest set that they hear of, have it on disk before they tell
 * so, do not vote for candidates with an earlier one, and do not count for nodes with an earlier
 * one.
 *
 *   rule     when                                                        next
 *   owners   all known nodes have the directive, all slots have owners   both, all known nodes
 *   both     all have it, and this set                                   all
 *   both     one does not                                                owners
 *   all      one does not                                                both
 *   both, all   a member is not known any more, or                       without it
 *               a known node that has the directive and the set is none  with it
 *
 * "Have" and "have not" are what a node has told since this one started; the rule is changed only
 * while all known nodes work. A majority of each set has nodes in common with one of the next:
 * owners, or members, which change one by one. */
#ifndef BUS_VOTERS_CHANGE_H
#define BUS_VOTERS_CHANGE_H

#include "bus/election.h"
#include "bus/rules.h"
#include "bus/voters.h"

typedef struct votersChange {
    int64_t since_ms; /* since when there is something to change; 0: there is not */
    int64_t retry_ms; /* an election is not tried again before */
    uint64_t term;    /* the epoch of the election */
    bool asked, leads;
    int64_t told_ms; /* of the last line in the log about nodes without the directive */
} votersChange;

typedef struct votersActs {
    bool ask;  /* send AUTH_REQUEST with MESSAGE_ABOUT_VOTERS to all, once the map is saved */
    bool tell; /* send a PONG to all, once the map is saved */
} votersActs;

/* Periodically. */
votersActs votersTick(votersChange *c, clusterMap *m, const busRules *rules, int64_t now_ms);
/* An AUTH_ACK. */
votersActs votersVote(votersChange *c, clusterMap *m, clusterNode *from, const messageHeader *h);
/* An AUTH_REQUEST with MESSAGE_ABOUT_VOTERS. `started_ms`: when this node started. True: send
 * AUTH_ACK once the map is saved. */
bool votersRequest(clusterMap *m, clusterNode *candidate, const messageHeader *h,
                   int64_t started_ms, int64_t now_ms);

#endif
