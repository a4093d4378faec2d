/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Jobs that move slots from one node to another as a whole, and the log of them. Pure: no sockets,
 * clock, keys or directives. A job is seen by its source (export), its target (import), and the
 * replicas of the target (import, occurring on the primary). slotJobOn() returns the state that
 * follows an event, and what has to be done:
 *
 *   source                     event                        next, acts
 *     connecting               the connection is open       sending-establish-command, or with a
 *                                                           password sending-auth-command: send it
 *     sending-...              it was sent                  reading-...-response
 *     reading-auth-response    OK                           sending-establish-command
 *     reading-establish-...    OK                           waiting-to-snapshot: send ACK
 *     waiting-to-snapshot      the snapshot begins          snapshotting
 *     snapshotting             all of it was sent           replicating: send SNAPSHOT-EOF
 *     replicating              REQUEST-PAUSE                waiting-to-pause
 *     waiting-to-pause         little is unsent             failover-paused: pause, send PAUSED
 *     failover-paused          REQUEST-FAILOVER             failover-granted: pause, send GRANTED
 *     failover-granted         the target owns the slots    success
 *   target
 *     waiting-for-ack          ACK                          receiving-snapshot
 *     receiving-snapshot       SNAPSHOT-EOF                 waiting-for-paused: send REQUEST-PAUSE
 *     waiting-for-paused       PAUSED                       failover-requested: REQUEST-FAILOVER
 *     failover-requested       FAILOVER-GRANTED             failover-granted: take the slots
 *     failover-granted         taken                        success
 *     any                      it fails                     cleaning-up, then failed
 *     occurring-on-primary     FINISH                       success or failed
 *
 * In each active state an ACK of the other side is accepted. Anything else in a state is an error,
 * which fails the job. One thread at a time. */
#ifndef BUS_SLOT_JOB_H
#define BUS_SLOT_JOB_H

#include <stdbool.h>
#include <stdint.h>

#include "base/str.h"
#include "bus/protocol.h"
#include "bus/slot_ranges.h"
#include "ds/list.h"

typedef enum slotJobState {
    JOB_CONNECTING,
    JOB_SENDING_AUTH,
    JOB_READING_AUTH,
    JOB_SENDING_ESTABLISH,
    JOB_READING_ESTABLISH,
    JOB_WAITING_SNAPSHOT,
    JOB_SNAPSHOTTING,
    JOB_REPLICATING,
    JOB_WAITING_PAUSE,
    JOB_PAUSED,
    JOB_GRANTED,
    JOB_WAITING_ACK,
    JOB_RECEIVING,
    JOB_WAITING_PAUSED,
    JOB_REQUESTED,
    JOB_TAKING,
    JOB_CLEANING,
    JOB_ON_PRIMARY,
    JOB_SUCCESS,
    JOB_FAILED,
    JOB_CANCELLED,
    JOB_STATES,
} slotJobState;

typedef enum slotJobEvent {
    JOB_OPENED,
    JOB_SENT,
    JOB_REPLIED_OK,
    JOB_SNAPSHOT_BEGINS,
    JOB_SNAPSHOT_SENT,
    JOB_DRAINED,
    JOB_OWNER_SEEN,
    /* Words of the other side. */
    JOB_ACK,
    JOB_SNAPSHOT_EOF,
    JOB_REQUEST_PAUSE,
    JOB_PAUSED_WORD,
    JOB_REQUEST_FAILOVER,
    JOB_GRANTED_WORD,
    JOB_TAKEN,
    JOB_CLEANED,
} slotJobEvent;

/* What is to be done after an event. */
enum slotJobAct {
    JOB_ACT_SEND_AUTH = 1u << 0,
    JOB_ACT_SEND_ESTABLISH = 1u << 1,
    JOB_ACT_SEND_ACK = 1u << 2,
    JOB_ACT_SEND_EOF = 1u << 3,
    JOB_ACT_PAUSE = 1u << 4, /* before what is sent */
    JOB_ACT_SEND_PAUSED = 1u << 5,
    JOB_ACT_SEND_GRANTED = 1u << 6,
    JOB_ACT_SEND_REQUEST_PAUSE = 1u << 7,
    JOB_ACT_SEND_REQUEST_FAILOVER = 1u << 8,
    JOB_ACT_TAKE = 1u << 9,
    JOB_ACT_END = 1u << 10,
};

/* The state that slot_source.c and slot_target.c keep while the job is active. Times are
 * monotonic. */
typedef struct slotJobRun {
    /* Source: of the attempt to connect; of the pause, the wait for it, or the grant. Target: of
     * the request that precedes the state. */
    int64_t since_ms;
    int64_t told_ms; /* the last ACK was sent */
    /* Source. */
    bool has_begun; /* to connect */
    bool streams;   /* changes are sent */
    bool pauses;    /* writes to the slots wait, until: */
    int64_t pause_end_ms;
    bool brakes;        /* it is because too much is unsent, */
    uint64_t sent_keys; /* since so many bytes of keys were sent */
    /* After the grant, at which this node had that epoch: the link is lost, and so many PONGs have
     * arrived since. */
    uint64_t grant_epoch;
    bool is_lost;
    bool is_cancelled; /* by a user; it ends so if the target does not take the slots */
    int pongs;
    int64_t pong_ms;
    /* Target. */
    bool has_asked;    /* for the pause */
    bool is_rejected;  /* slotTargetReject() */
    int64_t stream_at; /* the end of the stream of replication: slotMovesProcs.markStream() */
    int cleaned;       /* slots below are cleaned up */
} slotJobRun;

typedef struct slotJob {
    listNode node; /* in the log */
    char name[SLOT_IMPORT_NAME_LEN];
    bool is_import;
    bool has_nodes; /* false: only the primary of this replica knows them */
    char source[NODE_ID_LEN], target[NODE_ID_LEN];
    slotRanges ranges;
    slotJobState state;
    int64_t created_s, updated_s, acked_s; /* Unix time */
    str message;                           /* why it failed */
    slotJobRun run;
    void *work; /* of its owner, while it is active */
} slotJob;

/* All jobs, the newest first. */
typedef struct slotLog {
    list jobs;
    size_t active; /* those that have not ended */
} slotLog;

void slotLogInit(slotLog *log);
void slotLogClear(slotLog *log);
/* A new job in a random or given name; `ranges` move to it. */
slotJob *slotLogAdd(slotLog *log, bool is_import, slice name, slotRanges *ranges, int64_t now_s);
/* The newest one of that name; an older one has ended. */
slotJob *slotLogFind(const slotLog *log, slice name);
/* The next active import or export after that job; NULL: the first one. A job may end meanwhile. */
slotJob *slotLogNext(const slotLog *log, const slotJob *after, bool is_import);
/* The first active job that has a slot of `ranges`; NULL: none. */
slotJob *slotLogOverlapping(const slotLog *log, const slotRanges *ranges);
/* Removes the oldest ended jobs until there are no more than `most`, active ones included. */
void slotLogTrim(slotLog *log, size_t most);
/* Removes ended ones. */
void slotLogRemove(slotLog *log, slotJob *job);
static inline slotJob *slotJobOf(listNode *n) { return LIST_OWNER(n, slotJob, node); }

/* True until it has succeeded, failed or was cancelled. */
bool slotJobIsActive(const slotJob *job);
const char *slotJobStateName(slotJobState state);
/* The state after an event, in *next, and the acts. False: the event is none of this state.
 * `has_auth`: a password has to be sent. */
bool slotJobOn(slotJobState state, slotJobEvent event, bool has_auth, slotJobState *next,
               uint32_t *acts);
/* Changes the state, which is then in the log. */
void slotLogSetState(slotLog *log, slotJob *job, slotJobState state, int64_t now_s);

#endif
