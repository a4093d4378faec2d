/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Manual failover: how a replica replaces a primary that works, by order of a user, without losing
 * a write. Pure: a map and an order, a message or the time in, acts out. The election itself is
 * that of election.h.
 *
 * Replica (M: cluster-manual-failover-timeout):
 *
 *   step     event                                   to       act
 *   any      CLUSTER FAILOVER                        asked    MANUAL_FAILOVER to the primary
 *   any      the same with FORCE, or by order of the ready    starts an election
 *            primary that shuts down
 *   any      TAKEOVER                                idle     is the primary, without votes
 *   asked    PONG of the primary: it has paused      waiting  remembers its offset, gives up slots
 *                                                            that the PONG does not claim
 *   asked    PONG on a link that is newer            asked    MANUAL_FAILOVER to the primary
 *   asked    every 100 ms                                     PING to the primary
 *   waiting  its own offset is equal                 ready    starts an election
 *   any      M has passed since the order            idle
 *   any      it is a primary, or follows another one idle
 *   any      the epoch of the paused primary changes idle    (it was replaced, and is back)
 *
 * A primary may have paused for an earlier order, and a late message about that pause has an old
 * offset. So the replica sends a PING after MANUAL_FAILOVER on the same link, and takes the offset
 * only from the PONG for that PING or from a later one: the primary sends it after it has read the
 * order. Primaries that run Valkey reply in the same order.
 *
 * Each order ends an election and a manual failover that are under way. While the step is `ready`,
 * electionRules.manual_end_ms is set: the election begins without delay, and asks for votes
 * although the primary works.
 *
 * Primary:
 *
 *   step     event                                   to       act
 *   any      MANUAL_FAILOVER of one of its replicas  paused   pauses writes for 2M, PING to it; not
 *                                                            while it hands slots over, or is
 *                                                            paused for another one that works
 *   paused   every 100 ms                                     PING to it
 *   paused   M has passed                            idle     resumes writes
 *            (with replication-quorum see below)
 *   paused   it is a replica, or that node is not    idle     resumes writes (a replica redirects
 *            its replica any more                             them)
 *
 * With replication-quorum a primary must not confirm writes after its replica was elected, and it
 * may not have heard of the election if that replica was cut off at once. So when M has passed the
 * primary sends the replica a PING, and stays paused until the reply says that the replica still
 * follows it. When 2M have passed, the pause also ends if the current epoch is that of the
 * beginning of the pause: then no node has voted.
 *
 * While a primary is paused, the headers of its PINGs and PONGs to that replica have the flag
 * MESSAGE_PAUSED and the offset at which its stream has ended, and the primary votes for the
 * replica. A replica whose order was refused must not take the pause for an answer to it. */
#ifndef BUS_MANUAL_FAILOVER_H
#define BUS_MANUAL_FAILOVER_H

#include "bus/election.h"
#include "bus/map.h"
#include "bus/message.h"

typedef enum manualStep {
    MANUAL_IDLE,
    MANUAL_ASKED,   /* on the replica */
    MANUAL_WAITING, /* the same */
    MANUAL_READY,   /* the same */
    MANUAL_PAUSED,  /* on the primary */
} manualStep;

typedef struct manualFailover {
    manualStep step;
    char peer_id[NODE_ID_LEN]; /* the primary, or the replica that has asked */
    int64_t end_ms;
    int64_t pinged_ms;       /* of the last PING for it */
    uint64_t primary_offset; /* at which the primary has paused */
    uint64_t primary_epoch;  /* its epoch then; 0: it has not told that it has paused */
    uint64_t asked_ping;     /* asked: the PING that has followed the order */
    bool has_data;           /* the replica had data when it got the order */
    bool is_forced;          /* FORCE by a user */
    uint64_t began_epoch;    /* paused: the current epoch when it began */
    bool is_overdue;         /* paused: it has timed out, and the replica may have been elected */
    uint64_t last_ping;      /* overdue: of those sent before it has timed out; 0: none */
} manualFailover;

/* Which PING of this node a message answers: pings to a node have ascending numbers from 1 on. */
typedef struct manualReply {
    uint64_t ping;       /* at most that one; 0: none */
    uint64_t link_began; /* the last one before its link was opened */
} manualReply;

typedef enum manualOrder {
    MANUAL_PLAIN,
    MANUAL_FORCE,
    MANUAL_FORCE_BY_PRIMARY, /* CLUSTER FAILOVER FORCE REPLICAID in the stream of replication */
    MANUAL_TAKEOVER,
} manualOrder;

/* What is to be done after a call, besides what the map notes as changed. */
typedef struct manualActs {
    bool ask_primary;    /* send MANUAL_FAILOVER and a PING to the primary, manualFailoverAsked() */
    bool start_election; /* call electionTick() now */
    bool promoted;       /* this node is the primary: send a PONG to all */
    bool resume;         /* end the pause of writes */
    int64_t pause_ms;    /* pause writes for so long; 0: no */
    clusterNode *ping;   /* send this node a PING; NULL: none */
} manualActs;

/* The error with which an order of a user is refused; NULL: it is not. */
const char *manualFailoverRefusal(const clusterMap *m, manualOrder order);
/* An order, which is not refused. `who` ordered it: a client as in logs. `timeout_ms`: M. */
manualActs manualFailoverOrder(manualFailover *f, election *e, clusterMap *m, manualOrder order,
                               slice who, int64_t timeout_ms, int64_t now_ms);
/* This node has started again as a primary that had paused writes (clusterMap.paused_for). */
manualActs manualFailoverResume(manualFailover *f, const clusterMap *m, int64_t timeout_ms,
                                int64_t now_ms);
/* The primary was asked, and then sent the PING of this number on the same link. */
void manualFailoverAsked(manualFailover *f, uint64_t ping);
/* A MANUAL_FAILOVER. `timeout_ms`: M. */
manualActs manualFailoverRequested(manualFailover *f, clusterMap *m, clusterNode *from,
                                   int64_t timeout_ms, int64_t now_ms);
/* The header of any message of a known node. `offset`: how far this node is in the stream of its
 * present primary; -1: it does not receive that. */
manualActs manualFailoverHeader(manualFailover *f, clusterMap *m, const clusterNode *from,
                                const messageHeader *h, manualReply reply, int64_t offset);
/* Every 100 ms, after a change of roles, and before the server sleeps while
 * manualFailoverAwaitsOffset(). */
manualActs manualFailoverTick(manualFailover *f, clusterMap *m, int64_t offset, int64_t now_ms);
/* With replication-quorum, before that: keeps a primary paused whose time is over, see above.
 * `last_ping`: of those that were sent to the node for which it has paused; `timeout_ms`: M. True:
 * the pause is to be prolonged. */
bool manualFailoverKeepsPause(manualFailover *f, const clusterMap *m, uint64_t last_ping,
                              int64_t timeout_ms, int64_t now_ms);

/* The primary, or the replica that has asked; NULL: it was forgotten. There is a failover. */
clusterNode *manualFailoverPeer(const manualFailover *f, const clusterMap *m);
/* For electionRules.manual_end_ms: until when an election may replace a primary that works; 0: it
 * may not. */
static inline int64_t manualFailoverReadyUntil(const manualFailover *f) {
    return f->step == MANUAL_READY ? f->end_ms : 0;
}
/* For MESSAGE_PAUSED in headers. */
static inline bool manualFailoverHasPaused(const manualFailover *f) {
    return f->step == MANUAL_PAUSED;
}
static inline bool manualFailoverAwaitsOffset(const manualFailover *f) {
    return f->step == MANUAL_WAITING;
}

#endif
