/* SPDX-License-Identifier: BSD-3-Clause
 *
 * The state machines of a Sentinel: polling, detection of failures, votes, failover, hello
 * messages. They change the view and act through its environment (view.h); nothing here waits.
 *
 * The failover of a primary (failover.c):
 *
 *   step              event                              next
 *   NONE              it is objectively down             WAIT_START, with a new epoch
 *   WAIT_START        this Sentinel is elected           SELECT_REPLICA
 *   SELECT_REPLICA    there is a good one                SEND_PROMOTION
 *   SEND_PROMOTION    the order was sent                 WAIT_PROMOTION
 *   WAIT_PROMOTION    its INFO says that it is primary   RECONF_REPLICAS
 *   RECONF_REPLICAS   the others follow it, or timeout   UPDATE_CONFIG
 *   UPDATE_CONFIG                                        NONE, with the new address
 *   before RECONF     timeout, no good replica           NONE; the next try comes later
 *
 * With replication-quorum SELECT_REPLICA goes on until enough replicas are there (quorum_choice.c).
 */
#ifndef MONITOR_MACHINE_H
#define MONITOR_MACHINE_H

#include "monitor/view.h"
#include "resp/resp.h"

/* ------------------------------------------------------------------ what happens to it */

/* Once per tick, at random intervals of 50 to 100 ms. */
void sentinelTick(sentinelView *v);
void sentinelLinkOpened(sentinelView *v, sentinelInstance *i, bool pubsub);
/* The connection has ended or could not be made. The environment has forgotten it. */
void sentinelLinkClosed(sentinelView *v, sentinelLink *l, bool pubsub, bool refused);

/* A reply with at most three items, which are of an array. Texts are borrowed. */
enum { SENTINEL_REPLY_ITEMS = 3, SENTINEL_HURRY_MS = 10 };
typedef struct sentinelReply {
    replyKind kind;
    slice text;
    int64_t integer;
    int count;
    struct {
        replyKind kind;
        slice text;
        int64_t integer;
    } items[SENTINEL_REPLY_ITEMS];
} sentinelReply;
/* The reply to the oldest pending command of a link. False: none is pending, the connection is to
 * be closed. */
bool sentinelReplied(sentinelView *v, sentinelLink *l, const sentinelReply *r) MUST_USE;
/* Anything has come on a connection for messages. */
void sentinelHeard(sentinelView *v, sentinelLink *l);

/* ------------------------------------------------------------------ parts */

/* Sends a command and notes it as pending. `words` are without the name of the command, which may
 * be renamed. False: the link is not open. */
bool sentinelSend(sentinelView *v, sentinelInstance *i, pendingKind kind, const char *command,
                  int count, const slice *words);
/* Asks for INFO, unless a reply is pending. */
void sentinelSendInfo(sentinelView *v, sentinelInstance *i);

/* hello.c: a hello message of another Sentinel. `direct`: it has sent it to this one; else it was
 * published on a server. If Sentinels have a password, only the former count. */
void sentinelHello(sentinelView *v, slice text, bool direct);
/* Appends the own message about a primary, as the other end of `to` sees it. False: the own address
 * is unknown. */
bool sentinelHelloText(sentinelView *v, const sentinelInstance *to, str *out);
/* All instances of a primary get a hello message in the next tick. */
void sentinelForceHello(sentinelInstance *primary);

/* info.c: the reply to INFO. */
void sentinelInfo(sentinelView *v, sentinelInstance *i, slice text);

/* down.c: whether an instance is down, for this Sentinel and for the group. */
void sentinelCheckSdown(sentinelView *v, sentinelInstance *i);
void sentinelCheckOdown(sentinelView *v, sentinelInstance *primary);
/* True if the primary may be trusted to be one. */
bool sentinelLooksSane(const sentinelView *v, const sentinelInstance *primary);

/* vote.c: asks other Sentinels whether the primary is down, and for votes; `at_once`: without the
 * usual pause. */
void sentinelAsk(sentinelView *v, sentinelInstance *primary, bool at_once);
/* The reply to it; `is_vote`: only the last vote was asked for. */
void sentinelAskReplied(sentinelView *v, sentinelInstance *peer, const sentinelReply *r,
                        bool is_vote);
/* A candidate asks for a vote in `epoch`. Afterwards `primary->leader` has the vote of
 * `primary->leader_epoch`. A vote that cannot be saved is not given. */
void sentinelVote(sentinelView *v, sentinelInstance *primary, uint64_t epoch, slice candidate);
/* Whom a majority has elected in `epoch`; empty: nobody. Votes itself if it has not yet. */
slice sentinelLeader(sentinelView *v, sentinelInstance *primary, uint64_t epoch);
/* True if a majority has voted in `epoch`, and nobody can win it with the votes that are open. */
bool sentinelVoteIsSplit(const sentinelInstance *primary, uint64_t epoch);
/* An epoch that was heard of. */
void sentinelSawEpoch(sentinelView *v, sentinelInstance *primary, uint64_t epoch);

/* promotion.c: true if the own vote is newer than the configuration, and not too old: who was
 * elected may have promoted a replica. */
bool sentinelHasOpenVote(const sentinelView *v, const sentinelInstance *primary);
/* True if the leader that this Sentinel has voted for, or that has defeated it, seems to have
 * promoted this replica, and not to have lived to tell so. Its writes must not be lost: the replica
 * is not turned back, but the failover repeated with it. */
bool sentinelIsUnfinished(const sentinelView *v, const sentinelInstance *replica);
/* A replica reports that it is a primary now. */
void sentinelNotePromotion(const sentinelView *v, sentinelInstance *replica);
/* It is another process now, with perhaps no data: what the one before was does not count. */
void sentinelForgetPromotion(sentinelInstance *replica);
/* True if this Sentinel has not voted, or only for one that has not promoted the replica, and does
 * not know whether a majority has voted: a replica that it knew is not turned back before it knows,
 * or has waited as long as a failover may take. */
bool sentinelIsUnsure(const sentinelView *v, sentinelInstance *replica);
/* One that another leader may have promoted has what clients have written since. */
bool sentinelMayBePromoted(const sentinelView *v, const sentinelInstance *replica);
/* True if that is so for a replica of this primary. */
bool sentinelWantsVotes(const sentinelView *v, const sentinelInstance *primary);

/* quorum_choice.c: true if the replica that is to be promoted must have all that the primary has
 * confirmed: the servers have replication-quorum. */
bool sentinelNeedsConfirmed(const sentinelView *v, const sentinelInstance *primary);
/* A step towards that choice, at each tick: makes the replicas acknowledge nothing more, and waits
 * until enough do so and reads of the old primary have ended. Returns the replica, or NULL while
 * there is none, with the reason in primary->sync.waiting_why and, if it may last, as an event. */
sentinelInstance *sentinelChooseConfirmed(sentinelView *v, sentinelInstance *primary);
/* A promotion that was ordered is refused, or done, within that time. */
int64_t sentinelPromotionMs(void);
/* It was not ordered: replicas may acknowledge again. */
void sentinelReleaseHolds(sentinelView *v, sentinelInstance *primary);
/* INFO of `i` was replied; `i->sync.acks_held_ms` is from it. */
void sentinelNoteHold(const sentinelView *v, sentinelInstance *i);

/* failover.c */
/* Begins an epoch. False if it cannot be saved: after a restart it would be used again. */
bool sentinelStartFailover(sentinelView *v, sentinelInstance *primary) MUST_USE;
/* Starts one if it is time. True if it was started. */
bool sentinelMaybeStartFailover(sentinelView *v, sentinelInstance *primary);
void sentinelFailoverStep(sentinelView *v, sentinelInstance *primary);
/* How soon the next tick is wanted: clients wait in a coordinated failover. 0: no sooner. */
int64_t sentinelHurryMs(const sentinelView *v);
/* At the end of a tick: the new address is taken. */
void sentinelFailoverFinish(sentinelView *v, sentinelInstance *primary);
/* SENTINEL FAILOVER. ERR_EXISTS: one is in progress; ERR_NOT_FOUND: no replica is good enough;
 * ERR_IO: the file cannot be written. */
status sentinelOrderFailover(sentinelView *v, sentinelInstance *primary, bool coordinated) MUST_USE;
void sentinelAbortFailover(sentinelView *v, sentinelInstance *primary);
/* Its INFO says that the promotion was done. */
void sentinelPromoted(sentinelView *v, sentinelInstance *replica);
/* Makes an instance a replica of `addr`, a primary with NULL. False: its link is not open. */
bool sentinelSendReplicaOf(sentinelView *v, sentinelInstance *i, const sentinelAddr *addr);
/* The replica that is to be promoted; NULL: none is good enough. */
sentinelInstance *sentinelSelectReplica(const sentinelView *v, const sentinelInstance *primary);
/* Runs the script of a primary that reconfigures clients. */
void sentinelRunReconfig(sentinelView *v, sentinelInstance *primary, const char *role,
                         const sentinelAddr *from, const sentinelAddr *to);

#endif
