/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Manual failover: the steps of the replica and of the primary (manual_failover.h).
 *
 * Invariant: without FORCE and TAKEOVER the replica starts its election only when its own offset is
 * the one at which the primary has paused writes. The primary ends the failover before it accepts
 * writes again. The replica claims no slot that the primary did not claim then. */
#include "bus/manual_failover.h"

#include "base/base.h"
#include "bus/topology.h"

enum {
    PAUSE_FACTOR = 2,     /* writes are paused for so many timeouts, the replica has one */
    PING_PERIOD_MS = 100, /* while they are */
    CLOCK_MARGIN = 20     /* the replica's clock may be slower by a 20th */
};

static void end(manualFailover *f) { *f = (manualFailover){.step = MANUAL_IDLE}; }

clusterNode *manualFailoverPeer(const manualFailover *f, const clusterMap *m) {
    check(f->step != MANUAL_IDLE);
    return clusterMapFind(m, sliceMake(f->peer_id, NODE_ID_LEN));
}

static void begin(manualFailover *f, manualStep step, const clusterNode *peer, int64_t end_ms) {
    check(peer);
    *f = (manualFailover){.step = step, .end_ms = end_ms};
    memcpy(f->peer_id, peer->id, NODE_ID_LEN);
}

/* ------------------------------------------------------------------ orders */

const char *manualFailoverRefusal(const clusterMap *m, manualOrder order) {
    const clusterNode *primary = m->myself->primary;
    if (m->myself->flags & NODE_PRIMARY) return "You should send CLUSTER FAILOVER to a replica";
    if (!primary) return "I'm a replica but my master is unknown to me";
    if (order == MANUAL_PLAIN && (primary->flags & NODE_FAILED || !primary->is_connected))
        return "Master is down or failed, please use CLUSTER FAILOVER FORCE";
    return NULL;
}

manualActs manualFailoverOrder(manualFailover *f, election *e, clusterMap *m, manualOrder order,
                               slice who, int64_t timeout_ms, int64_t now_ms) {
    const clusterNode *primary = m->myself->primary;
    const int len = (int)who.len;
    check(primary);
    check(timeout_ms >= 0);
    end(f);
    switch (order) {
    case MANUAL_PLAIN:
        logNotice("Manual failover user request accepted (user request from '%.*s').", len,
                  who.ptr);
        break;
    case MANUAL_FORCE:
        logNotice("Forced failover user request accepted (user request from '%.*s').", len,
                  who.ptr);
        break;
    case MANUAL_FORCE_BY_PRIMARY:
        logNotice("Forced failover primary request accepted (primary request from '%.*s').", len,
                  who.ptr);
        break;
    case MANUAL_TAKEOVER:
        logNotice("Taking over the primary (user request from '%.*s').", len, who.ptr);
        break;
    }
    electionReset(e);
    if (order == MANUAL_TAKEOVER) return (manualActs){.promoted = topologyTakeOver(m)};
    begin(f, order == MANUAL_PLAIN ? MANUAL_ASKED : MANUAL_READY, primary, now_ms + timeout_ms);
    f->has_data = m->myself->offset != 0;
    f->is_forced = order == MANUAL_FORCE;
    f->pinged_ms = now_ms;
    return (manualActs){.ask_primary = order == MANUAL_PLAIN,
                        .start_election = order != MANUAL_PLAIN};
}

/* ------------------------------------------------------------------ messages */

/* True if another replica has an order that may succeed. It was told where the stream ends and may
 * have asked for votes, so both could be elected, one after the other: what clients write to the
 * first winner until it hears of the second one would be lost. With a quorum that holds even if the
 * other replica has failed, once an election has begun. */
static bool mayBeReplaced(const manualFailover *f, const clusterMap *m, const clusterNode *from) {
    if (f->step != MANUAL_PAUSED) return false;
    const clusterNode *peer = manualFailoverPeer(f, m);
    bool has_other = m->paused_for[0] && memcmp(m->paused_for, from->id, NODE_ID_LEN) != 0;
    if (has_other && m->current_epoch != m->paused_epoch) return true;
    return peer && peer != from && !(peer->flags & (NODE_FAILED | NODE_MAYBE_FAILED));
}

manualActs manualFailoverRequested(manualFailover *f, clusterMap *m, clusterNode *from,
                                   int64_t timeout_ms, int64_t now_ms) {
    /* Only a replica of this primary may ask for that. */
    if (m->myself->flags & NODE_REPLICA || from->primary != m->myself) return (manualActs){0};
    /* That replica may not hear in time that another node has them. */
    if (clusterMapHasUnclaimed(m)) {
        logNotice("Manual failover of replica %s refused: slots are being handed over.",
                  clusterNodeLabel(from).text);
        return (manualActs){0};
    }
    if (mayBeReplaced(f, m, from)) {
        logNotice("Manual failover of replica %s refused: another one had an order before, and may "
                  "have been elected.",
                  clusterNodeLabel(from).text);
        return (manualActs){0};
    }
    logNotice("Manual failover requested by replica %s.", clusterNodeLabel(from).text);
    begin(f, MANUAL_PAUSED, from, now_ms + timeout_ms);
    f->pinged_ms = now_ms;
    f->began_epoch = m->current_epoch;
    check(from != m->myself);
    check(manualFailoverHasPaused(f));
    return (manualActs){.pause_ms = PAUSE_FACTOR * timeout_ms, .ping = from};
}

manualActs manualFailoverResume(manualFailover *f, const clusterMap *m, int64_t timeout_ms,
                                int64_t now_ms) {
    clusterNode *peer = clusterMapFind(m, sliceMake(m->paused_for, NODE_ID_LEN));
    if (!peer || m->myself->flags & NODE_REPLICA || f->step != MANUAL_IDLE) return (manualActs){0};
    logNotice("Writes stay paused: replica %s had an order to replace this primary before its "
              "restart.",
              clusterNodeLabel(peer).text);
    begin(f, MANUAL_PAUSED, peer, now_ms + timeout_ms);
    f->pinged_ms = now_ms;
    f->began_epoch = m->paused_epoch;
    return (manualActs){.pause_ms = PAUSE_FACTOR * timeout_ms, .ping = peer};
}

void manualFailoverAsked(manualFailover *f, uint64_t ping) {
    check(f->step == MANUAL_ASKED);
    check(ping > 0);
    f->asked_ping = ping;
}

/* The end of the stream of the primary is known; what is missing of it is awaited. */
static manualActs compareOffsets(manualFailover *f, int64_t offset) {
    check(f->step == MANUAL_WAITING);
    /* Both may be at 0: the primary has sent nothing since the replica has its data. */
    if (offset < 0 || (uint64_t)offset != f->primary_offset) return (manualActs){0};
    logNotice("All primary replication stream processed, manual failover can start.");
    f->step = MANUAL_READY;
    return (manualActs){.start_election = true};
}

/* The node for which this primary has paused may be elected yet: it follows this one; or it is a
 * primary without slots, or was one in a message that is late. A late message does not come as the
 * answer to a PING. */
static bool hasNotReplaced(const clusterMap *m, const clusterNode *peer) {
    if (peer->primary == m->myself) return true;
    return m->myself->flags & NODE_PRIMARY && peer->flags & NODE_PRIMARY && !peer->slot_count;
}

/* The primary hands over no slots while it is paused, nor does it pause during a hand-over. So the
 * slots of the primary that its reply does not claim belong to others, who were not heard yet. Had
 * this node still claimed them after its promotion, their new owner would have lost them with all
 * writes since, as the epoch of the election is greater. */
static void giveUpUnclaimed(clusterMap *m, const clusterNode *primary) {
    check(primary == m->myself->primary);
    for (int slot = 0; slot < SLOT_COUNT; slot++)
        if (clusterMapOwner(m, slot) == primary && !clusterMapIsClaimed(m, slot))
            clusterMapSetOwner(m, slot, NULL);
}

manualActs manualFailoverHeader(manualFailover *f, clusterMap *m, const clusterNode *from,
                                const messageHeader *h, manualReply reply, int64_t offset) {
    bool decided = f->step == MANUAL_PAUSED && f->is_overdue && reply.ping > f->last_ping;
    if (decided && from == manualFailoverPeer(f, m) && hasNotReplaced(m, from)) {
        logNotice("The replica of the manual failover was not elected.");
        end(f);
        return (manualActs){.resume = true};
    }
    if (f->step != MANUAL_ASKED || !reply.ping) return (manualActs){0};
    if (from != m->myself->primary || from != manualFailoverPeer(f, m)) return (manualActs){0};
    /* The order may have got lost with the link on which it was sent. */
    if (reply.link_began >= f->asked_ping) return (manualActs){.ask_primary = true};
    if (reply.ping < f->asked_ping || !(h->flags & MESSAGE_PAUSED)) return (manualActs){0};
    logNotice("Received replication offset for paused primary manual failover: %llu",
              (unsigned long long)h->offset);
    f->step = MANUAL_WAITING;
    f->primary_offset = h->offset;
    f->primary_epoch = from->epoch;
    giveUpUnclaimed(m, from);
    return compareOffsets(f, offset);
}

/* ------------------------------------------------------------------ time */

/* Whether both nodes still have the roles with which it began. */
static bool isStillWanted(const manualFailover *f, const clusterMap *m) {
    const clusterNode *peer = manualFailoverPeer(f, m);
    /* A replica that was forgotten meanwhile may be elected nevertheless; one that follows another
     * node of the shard was, and has been replaced in turn. */
    if (f->step == MANUAL_PAUSED)
        return !peer || hasNotReplaced(m, peer) ||
               (peer->primary && clusterNodesShareShard(peer, m->myself));
    if (!peer) return false;
    /* A synchronisation has begun since: a promotion would lose all keys. */
    if (f->has_data && !m->myself->offset) return false;
    /* A primary that was replaced in the meantime, and is back, has accepted writes since. */
    if (f->primary_epoch && peer->epoch != f->primary_epoch) return false;
    return m->myself->primary == peer;
}

bool manualFailoverKeepsPause(manualFailover *f, const clusterMap *m, uint64_t last_ping,
                              int64_t timeout_ms, int64_t now_ms) {
    if (f->step != MANUAL_PAUSED || now_ms <= f->end_ms) return false;
    const clusterNode *peer = manualFailoverPeer(f, m);
    if (!peer || !hasNotReplaced(m, peer)) return false;
    if (now_ms <= f->end_ms + timeout_ms / CLOCK_MARGIN) return true;
    if (!f->is_overdue) {
        logWarning("Manual failover timed out. Replica %s may have been elected: writes stay "
                   "paused until it is heard (replication-quorum).",
                   clusterNodeLabel(peer).text);
        f->is_overdue = true;
        f->last_ping = last_ping;
    }
    bool no_election = m->current_epoch == f->began_epoch;
    int64_t pause_end_ms = f->end_ms + (PAUSE_FACTOR - 1) * timeout_ms;
    return !no_election || now_ms <= pause_end_ms;
}

manualActs manualFailoverTick(manualFailover *f, clusterMap *m, int64_t offset, int64_t now_ms) {
    if (f->step == MANUAL_IDLE) return (manualActs){0};
    bool wanted = isStillWanted(f, m);
    if (wanted && now_ms <= f->end_ms) {
        if (f->step == MANUAL_WAITING) return compareOffsets(f, offset);
        bool pings = f->step == MANUAL_PAUSED || f->step == MANUAL_ASKED;
        if (!pings || now_ms - f->pinged_ms < PING_PERIOD_MS) return (manualActs){0};
        f->pinged_ms = now_ms;
        return (manualActs){.ping = manualFailoverPeer(f, m)};
    }
    if (wanted) logWarning("Manual failover timed out.");
    manualActs acts = {.resume = f->step == MANUAL_PAUSED};
    end(f);
    check(!manualFailoverHasPaused(f));
    return acts;
}
