/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Which nodes vote, and whether a majority of them agrees. Pure: a map in, an answer out.
 *
 * In Valkey the primaries with slots vote; with fewer than three of them no majority is left when
 * one fails. With cluster-replicas-vote the nodes agree on a set of voters, of any role. Each node
 * has one set, in its configuration file, with the rule by which it counts; the first one is that
 * of Valkey. voters_change.h says who makes new sets. The README of src/cluster proves that two
 * majorities always have a node in common.
 *
 * Members of the set that were forgotten, or are not known yet, count as voters that do not
 * agree. So do nodes that have a later set than this one: they act by it already. */
#ifndef BUS_VOTERS_H
#define BUS_VOTERS_H

#include "bus/map.h"
#include "bus/message.h"

/* < 0, 0, > 0: `a` is earlier than, the same as, later than `b`. */
int voterStampCompare(voterStamp a, voterStamp b);
bool votersHas(const voterSet *set, const char id[NODE_ID_LEN]);

/* True for the primaries with slots, unless they vote as members of the set alone. */
bool clusterNodeVotesAsOwner(const clusterMap *m, const clusterNode *n);
/* True for the nodes that vote. */
bool clusterNodeIsVoter(const clusterMap *m, const clusterNode *n);
/* True if a majority of voters agrees, by the rule of this node's set. `agrees` is called for
 * voters; for this node, too. */
typedef bool voterTest(const void *arg, const clusterNode *n);
bool votersAgree(const clusterMap *m, voterTest *agrees, const void *arg);
/* An election in which this node is the candidate, and whether a node has voted in it. */
typedef struct voterBallot {
    const clusterMap *map;
    uint64_t epoch;
} voterBallot;
voterTest voterHasVoted; /* `arg`: a voterBallot */
/* True if this node can reach a majority of voters. Others have a later set for a while before they
 * have sent it: that counts only when it has lasted for `grace_ms`. */
bool votersAreReached(const clusterMap *m, int64_t grace_ms, int64_t now_ms);
/* Returns how many votes a majority needs; with VOTERS_BOTH: how many of members. For logs. */
int votersQuorum(const clusterMap *m);
/* What a node with that set has found out about others counts here: it may not be outdated. */
bool votersTrust(const clusterMap *m, voterStamp of);

/* Takes a set that is later than the present one; false: it is not. It must be on disk before
 * anything is sent. */
bool votersInstall(clusterMap *m, const voterSet *set);
/* This node has been promoted without votes, with an epoch of its own, as the voters are lost: it
 * begins again with the rule of Valkey, whether or not others agree. */
void votersTakeOver(clusterMap *m);
/* As before the first set: a node that is reset belongs to no cluster. */
void votersReset(clusterMap *m);
/* After a message of the node: what it tells about voters. */
void votersHeard(clusterMap *m, clusterNode *from, const messageHeader *h, int64_t now_ms);

#endif
