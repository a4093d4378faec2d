/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Waits for replicas at shutdown (shutdown_wait.h). */
#include "repl/shutdown_wait.h"

#include "base/base.h"
#include "engine/hot.h"
#include "engine/job.h"
#include "engine/pause.h"
#include "psync/primary_peer.h"
#include "repl/replicas.h"

static bool isInSync(const replPrimary *p, const replPeer *peer) {
    return peer->acked >= primaryDataEnd(p);
}

static bool replicasLag(const replPrimary *p) {
    for (listNode *n = listFirst(&p->peers); n; n = listNext(&p->peers, n)) {
        const replPeer *peer = peerOf(n);
        if (peer->state == PEER_ONLINE && peerIsReplica(peer) && !isInSync(p, peer)) return true;
    }
    return false;
}

static void logResult(const replPrimary *p) {
    int in_sync = 0;
    str name = STR_EMPTY;
    for (listNode *n = listFirst(&p->peers); n; n = listNext(&p->peers, n)) {
        const replPeer *peer = peerOf(n);
        if (!peerIsReplica(peer)) continue;
        if (isInSync(p, peer)) {
            in_sync++;
            continue;
        }
        bool online = peer->state == PEER_ONLINE;
        int64_t lag_s = online ? (engineHot.now_ms - peer->heard_ms) / 1000 : 0;
        strClear(&name);
        p->env->name(peer, &name);
        logNotice("Lagging replica %s reported offset %lld behind master, lag=%lld, state=%s.",
                  strText(&name), (long long)(p->stream->history.offset - peer->acked),
                  (long long)lag_s, peerStateName(peer->state));
    }
    strFree(&name);
    size_t count = primaryReplicaCount(p);
    if (count) logNotice("%d of %zu replicas are in sync when shutting down.", in_sync, count);
}

status shutdownWaitForReplicas(uint32_t flags, reason *why) {
    hotCheck(threadIsMain());
    (void)why; /* never refused here */
    static bool waiting;
    replPrimary *p = replicasThis();
    if (!(flags & SHUTDOWN_NOW) && replicasLag(p)) {
        if (!waiting || pauseNow() == PAUSE_NONE) {
            logNotice("Waiting for replicas before shutting down.");
            (void)jobEndChanges(); /* a change that has begun has its effect before */
            pauseBegin(PAUSE_FOR_SHUTDOWN, PAUSE_WRITES, INT64_MAX);
            primaryWantAcks(p); /* once: each request for one makes the stream longer */
        }
        waiting = true;
        return ERR_AGAIN;
    }
    waiting = false;
    logResult(p);
    return OK;
}
