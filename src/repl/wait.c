/* SPDX-License-Identifier: BSD-3-Clause
 *
 * WAIT, and the part of WAITAOF that concerns replicas. Sessions that wait cause at most one
 * REPLCONF GETACK per turn in the stream. Main thread only. */
#include "base/base.h"
#include "engine/block.h"
#include "engine/hot.h"
#include "engine/reply.h"
#include "persist/sync.h"
#include "repl/procs.h"
#include "repl/replica.h"
#include "repl/replicas.h"
#include "repl/wait.h"

typedef struct replicaWait {
    int64_t offset; /* after the session's last change */
    int64_t replicas;
} replicaWait;

static int countAcked(const replicaWait *w) { return primaryCountAcked(replicasThis(), w->offset); }

static bool isReached(const blockQuery *q) {
    const replicaWait *w = q->state;
    return countAcked(w) >= w->replicas;
}

static void endWait(ctx *c) { replyInteger(c, countAcked(blockState(c))); }

/* WAIT numreplicas timeout: waits until so many replicas have acknowledged the session's changes.
 * Reply: how many have. */
void waitCommand(ctx *c) {
    hotCheck(c->argc == 3);
    if (replicaIsOn()) {
        replyError(c, SLICE("ERR WAIT cannot be used with replica instances. Please also note that "
                            "if a replica is configured to be writable (which is not the default) "
                            "writes to replicas are just local and are not propagated."));
        return;
    }
    replicaWait w = {.offset = replicasOffsetOf(c->who)};
    int64_t deadline_ms;
    if (!ctxArgInt(c, 1, &w.replicas) || !blockArgDeadlineMs(c, 2, &deadline_ms)) return;
    int acked = countAcked(&w);
    if (acked >= w.replicas || blockIsDenied(c)) {
        replyInteger(c, acked);
        return;
    }
    replicaWait *state = memNew(replicaWait);
    *state = w;
    primaryWantAcks(replicasThis());
    blockStart(c, &(blockParams){.kind = BLOCK_OFFSET,
                                 .ready = isReached,
                                 .deadline_ms = deadline_ms,
                                 .timed_out = endWait,
                                 .finish = endWait,
                                 .state = state,
                                 .free_state = memFree});
}

/* ------------------------------------------------------------------ WAITAOF */

static int countFsynced(int64_t offset) { return primaryCountFsynced(replicasThis(), offset); }

static void wantAcks(void) { primaryWantAcks(replicasThis()); }

static const syncReplicas for_waitaof = {.is_replica = replicaIsOn,
                                         .offset_of = replicasOffsetOf,
                                         .count_fsynced = countFsynced,
                                         .want_acks = wantAcks};

void waitInit(void) { syncSetReplicas(&for_waitaof); }
