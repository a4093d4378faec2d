/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Elections: how a replica replaces a failed primary with the votes of the majority, and how a node
 * votes. Pure: a map and the time or a message in, a changed map and acts out.
 *
 * Candidate, a replica of a primary that is marked as failed and has slots (d: a 30th of the node
 * timeout, 500 ms at most):
 *
 *   state      event                              to         act
 *   idle       its primary has failed             delayed    tells the other replicas its offset
 *   delayed    d + random d + 2d per better replica + d per primary before it + 500 ms without data
 *   have passed
 *                                                 asked      takes a new epoch and asks all for
 *                                                 votes
 *     it is the best and all replicas agree       asked      the same, at once
 *   asked      votes of the majority              idle       it is the primary
 *   asked      two timeouts have passed           expired
 *   expired    two more have passed               delayed
 *   asked      too many voters have refused to
 *              vote in its epoch, or have failed  idle       after a growing delay it begins again
 *   any        its primary has changed or works   idle
 *   asked      a node of its shard owns the slots with the epoch of the election or a greater one,
 *              or one of another shard has won its epoch
 *                                                 idle
 *
 * Among replicas with data the one with the lowest cluster-replica-priority is the best, and among
 * equal ones the one with the most data. Priorities do not count while the shard has a replica of a
 * version that does not know them: all replicas must have the same order, or votes are split. With
 * replication-quorum one that has less data than another one waits for that one, whatever its
 * priority.
 *
 * A primary is before its own if it is failing too, or silent, and has a smaller shard id. When
 * another election has begun, those that wait start at least d per primary after it.
 *
 * With replication-quorum N a candidate only asks if at least (replicas - N + 1), itself included,
 * say that the primary has failed (NODE_PRIMARY_FAILED), none of which has more data, and after the
 * lease for reads. A replica that says so acknowledges nothing more to that primary
 * (electionHoldMs()), so each change that N replicas have acknowledged is on one of those, and on
 * the candidate.
 *
 * By a manual failover (manual_failover.h) the primary need not have failed, and there is no delay;
 * with FORCE and a quorum it must have.
 *
 * A replica that does not tell of a stream (clusterNode.stream) has no replication-quorum, as
 * released servers have none, and asks at once, however little it has. If its primary has told of
 * one, no voter of this project votes for it once the primary has failed.
 *
 * Voter, a primary with slots: one vote in each epoch, also over restarts, as the epoch of the vote
 * is on disk before it is sent; for a replica of a failed primary whose claim is not older than
 * what the voter knows. */
#ifndef BUS_ELECTION_H
#define BUS_ELECTION_H

#include "bus/map.h"
#include "bus/message.h"

typedef enum electionStep {
    ELECTION_IDLE,
    ELECTION_DELAYED,
    ELECTION_ASKED,
    ELECTION_EXPIRED
} electionStep;

typedef struct election {
    electionStep step;
    char primary_id[NODE_ID_LEN]; /* of the one that is to be replaced */
    int64_t start_ms;             /* when it asks, or has asked */
    int64_t end_ms;               /* votes count until then */
    int rank, failed_rank;        /* better replicas; failed primaries before its own */
    uint64_t seen_epoch;          /* the current one when it last looked, while it is delayed */
    uint64_t epoch;
    int votes;
    int nacks;         /* voters that give no vote in this epoch any more */
    int refusals;      /* elections in a row that ended because of them */
    voterStamp voters; /* the set of voters by which it has asked */
    bool has_data;     /* this node had data when it asked */
    bool asked;        /* for votes of that epoch, and has not won; also when it has given up */
    bool force;        /* the votes are wanted even of nodes that do not know of the failure yet */
    /* With a quorum of replication: since when enough replicas agree; 0: they do not. */
    int64_t agreed_ms;
    int64_t told_ms; /* of the last line in the log that tells why there is no failover so far */
    int told_reason;
} election;

typedef struct electionRules {
    int64_t timeout_ms;
    bool allowed;            /* not cluster-replica-no-failover */
    int64_t manual_end_ms;   /* manualFailoverReadyUntil() */
    bool is_forced;          /* CLUSTER FAILOVER FORCE: the quorum matters as without an order */
    int64_t data_age_ms;     /* since the link to the primary was up */
    int64_t data_age_max_ms; /* 0: no limit */
    int validity_factor; /* how long a failed primary delays the election of others, in timeouts */
    int quorum;          /* replication-quorum; 0: off */
    int64_t lease_ms;    /* replication-read-lease; 0: none */
} electionRules;

typedef struct electionActs {
    bool tell_replicas; /* send a PONG to the other replicas of the primary */
    bool ask;           /* send AUTH_REQUEST to all, with MESSAGE_FORCE_ACK if `force` is set */
    bool won;           /* this node is the primary: send a PONG to all */
} electionActs;

/* Periodically. */
electionActs electionTick(election *e, clusterMap *m, const electionRules *rules, int64_t now_ms);
/* False if a replica that is promoted by force may lack what was acknowledged with that
 * replication-quorum, as far as this one knows. `timeout_ms`: that of elections. */
bool electionMayForce(const clusterMap *m, int quorum, int64_t timeout_ms, int64_t now_ms);
/* True for a replica that was heard and has no replication-quorum, as its primary has. */
bool electionLacksQuorum(const clusterMap *m, const clusterNode *n);
/* Periodically: the log has a line about each one that is so for a timeout. */
void electionTellLacking(clusterMap *m, int64_t timeout_ms, int64_t now_ms);
/* For how long after it has said so a replica does not acknowledge what its primary sends, should
 * the failure not be one: what it said may count for an election until then. */
int64_t electionHoldMs(int64_t timeout_ms);
/* An AUTH_ACK. */
electionActs electionVote(election *e, clusterMap *m, clusterNode *from, const messageHeader *h,
                          int64_t now_ms);
/* Takes an AUTH_NACK for the request of `epoch`. It is a hint that avoids waiting for votes which
 * cannot come; counting votes does not depend on it. */
void electionNack(election *e, const clusterMap *m, clusterNode *from, uint64_t epoch,
                  unsigned why);

/* After topologyHeader() with that header of a primary, or after an UPDATE about it: an election
 * for the place that it has taken ends. */
void electionClaim(election *e, const clusterMap *m, const clusterNode *claimer, uint64_t epoch);
/* Ends an election that is under way, as a new manual failover begins. */
void electionReset(election *e);
/* The number of failed primaries with slots that have replicas which work, none of which has got
 * any data: their promotion would lose all keys. For CLUSTER INFO. */
int electionCountUnsynced(const clusterMap *m);

typedef struct electionVerdict {
    bool granted;        /* send AUTH_ACK once the map is saved */
    clusterNode *update; /* send the candidate an UPDATE about this node; NULL: none */
    /* Reason for refusing the vote; NACK_NONE: no AUTH_NACK is sent, as this node does not vote. */
    enum nackReason nack;
} electionVerdict;

/* An AUTH_REQUEST. `started_ms`: when this node started. */
electionVerdict electionRequest(clusterMap *m, clusterNode *candidate, const messageHeader *h,
                                int64_t started_ms, int64_t now_ms);

#endif
