/* SPDX-License-Identifier: BSD-3-Clause
 *
 * The target's state machine, also on replicas of the target (slot_target.h): when it takes the
 * slots, and when it deletes the keys that it has received.
 *
 * Invariant: the slots of active jobs that this node does not own, and no others, are hidden; slots
 * are taken only while a grant of the source is valid. */
#include "bus/slot_target.h"

#include "base/base.h"

enum {
    ACK_MS = 1000,
    /* Replicas that are so long behind the end of the snapshot are not waited for, if there are
     * enough others for replication-quorum. */
    REPLICAS_MS = 5000,
};

static const char no_quorum_text[] =
    "Not enough replicas of the target have confirmed the keys in time (replication-quorum)";

static slotJob *next(const slotMoves *m, const slotJob *after) {
    return slotLogNext(&m->log, after, true);
}

static void hide(const slotMoves *m, const slotJob *job, bool on) {
    check(job->ranges.count > 0);
    m->procs->hide(m->arg, job, on);
}

void slotTargetHideAll(const slotMoves *m) {
    for (slotJob *job = next(m, NULL); job; job = next(m, job)) hide(m, job, true);
}

/* ------------------------------------------------------------------ end */

static void end(slotMoves *m, slotJob *job, slotJobState state, const char *message) {
    check(job->is_import);
    hide(m, job, false);
    m->procs->close(m->arg, job);
    slotMovesEnd(m, job, state, message);
}

void slotTargetFail(slotMoves *m, slotJob *job, const char *message) {
    check(job->is_import);
    if (!slotJobIsActive(job) || job->state == JOB_CLEANING) return;
    strClear(&job->message);
    strAppendText(&job->message, message);
    m->procs->close(m->arg, job);
    job->run.cleaned = 0;
    slotMovesSet(m, job, JOB_CLEANING);
    hide(m, job, true); /* slots that have become those of this node are shown from now on */
    logNotice("Cleaning up slot migration %s after failed", slotJobLabelOf(m, job).text);
}

void slotTargetReject(slotMoves *m, slotJob *job, const char *message) {
    check(job->is_import);
    job->run.is_rejected = true;
    slotTargetFail(m, job, message);
}

void slotTargetFailAll(slotMoves *m, const char *message) {
    for (slotJob *job = next(m, NULL); job; job = next(m, job)) {
        if (job->state != JOB_ON_PRIMARY) slotTargetFail(m, job, message);
    }
}

void slotTargetFinish(slotMoves *m, slotJob *job, bool success, slice message) {
    check(slotJobIsActive(job));
    str text = strNew(message);
    end(m, job, success ? JOB_SUCCESS : JOB_FAILED, strText(&text));
    strFree(&text);
}

void slotTargetForget(slotMoves *m) {
    for (slotJob *job = next(m, NULL); job; job = next(m, job))
        end(m, job, JOB_FAILED, "Full resynchronization occurred");
}

/* Ends a job with success if this node owns its slots. That happens if the node was lost after the
 * other nodes and its configuration file had the new owner, but before its replicas and its append
 * only file had the end of the job. */
static bool succeedIfMine(slotMoves *m, slotJob *job) {
    if (!slotRangesAreOf(&job->ranges, m->map, m->map->myself)) return false;
    end(m, job, JOB_SUCCESS, NULL);
    m->procs->finish(m->arg, job);
    return true;
}

void slotTargetAfterLoad(slotMoves *m) {
    if (m->map->myself->flags & NODE_REPLICA) return;
    for (slotJob *job = next(m, NULL); job; job = next(m, job)) {
        if (succeedIfMine(m, job)) continue;
        end(m, job, JOB_FAILED, "Process restarted");
        m->procs->finish(m->arg, job);
    }
}

/* ------------------------------------------------------------------ begin */

/* Keys that are in the slots already would be mixed with those that arrive. */
static status checkEmpty(const slotMoves *m, const slotRanges *r, reason *why) {
    for (size_t i = 0; i < r->count; i++) {
        for (int slot = r->items[i].first; slot <= r->items[i].last; slot++) {
            uint64_t keys = m->procs->keys(m->arg, slot);
            if (!keys) continue;
            if (m->procs->deletes(m->arg))
                return reasonSet(why, ERR_AGAIN, "The target node is deleting old keys of slot %d",
                                 slot);
            return reasonSet(why, ERR_EXISTS,
                             "Slot %d has %llu keys on the target node already. Delete them there "
                             "with CLUSTER FLUSHSLOT %d, then try again.",
                             slot, (unsigned long long)keys, slot);
        }
    }
    return OK;
}

status slotTargetCheck(const slotMoves *m, slice source, slice name, const slotRanges *ranges,
                       const clusterNode *owner, reason *why) {
    const clusterNode *from = clusterMapFind(m->map, source);
    check(ranges->count > 0);
    if (!from) return reasonSet(why, ERR_DENIED, "Target node does not know the source node");
    if (from == m->map->myself)
        return reasonSet(why, ERR_DENIED, "Source node is target node itself");
    const slotJob *same = slotLogFind(&m->log, name);
    if ((same && slotJobIsActive(same)) || slotLogOverlapping(&m->log, ranges))
        return reasonSet(why, ERR_EXISTS,
                         "Slot is already being imported on the target by a different migration");
    if (owner != from)
        return reasonSet(why, ERR_DENIED,
                         "Target node does not agree about current slot ownership");
    if (m->procs->isStill(m->arg))
        return reasonSet(why, ERR_AGAIN, "A failover of the target node is under way");
    return checkEmpty(m, ranges, why);
}

slotJob *slotTargetBegin(slotMoves *m, slice source, slice name, slotRanges *ranges) {
    check(source.len == NODE_ID_LEN);
    slotJob *job = slotLogAdd(&m->log, true, name, ranges, m->now_s);
    job->has_nodes = true;
    memcpy(job->source, source.ptr, NODE_ID_LEN);
    memcpy(job->target, m->map->myself->id, NODE_ID_LEN);
    job->run = (slotJobRun){.since_ms = m->now_ms, .told_ms = m->now_ms};
    logNotice("New slot import job created: %s.", slotJobLabelOf(m, job).text);
    hide(m, job, true);
    return job;
}

slotJob *slotTargetFollow(slotMoves *m, slice name, slotRanges *ranges) {
    const slotJob *same = slotLogFind(&m->log, name);
    if (same && slotJobIsActive(same)) return NULL;
    slotJob *job = slotLogAdd(&m->log, true, name, ranges, m->now_s);
    slotLogSetState(&m->log, job, JOB_ON_PRIMARY, m->now_s);
    hide(m, job, true);
    logNotice("New slot import job created: %s.", slotJobLabelOf(m, job).text);
    return job;
}

/* ------------------------------------------------------------------ events */

void slotTargetOn(slotMoves *m, slotJob *job, slotJobEvent event) {
    slotJobState state;
    uint32_t acts;
    check(job->is_import);
    if (!slotJobOn(job->state, event, false, &state, &acts)) {
        slotTargetReject(m, job, "Unexpected state machine transition");
        return;
    }
    if (event == JOB_ACK) job->acked_s = m->now_s;
    if (event == JOB_SNAPSHOT_EOF)
        logNotice("Slot migration %s successfully received slot snapshot. Beginning incremental "
                  "stream...",
                  slotJobLabelOf(m, job).text);
    slotMovesSet(m, job, state);
    if (state == JOB_WAITING_PAUSED && event != JOB_ACK) {
        job->run.since_ms = m->now_ms;
        m->procs->markStream(m->arg, job);
    } else if (acts & JOB_ACT_SEND_REQUEST_FAILOVER) {
        job->run.since_ms = m->now_ms;
        m->procs->send(m->arg, job, acts);
    } else if (acts & JOB_ACT_TAKE) {
        m->procs->markStream(m->arg, job);
    }
    /* REQUEST-PAUSE, and taking the slots: slotTargetStep(), when no command is executed. */
}

/* ------------------------------------------------------------------ taking the slots */

/* The whole snapshot has been applied here. Replicas get it before writes have to wait. */
static void askForPause(slotMoves *m, slotJob *job) {
    check(job->state == JOB_WAITING_PAUSED);
    if (job->run.has_asked) return;
    int64_t waited_ms = m->now_ms - job->run.since_ms;
    if (m->procs->lacksQuorum(m->arg, job)) {
        if (waited_ms > m->rules.silence_ms) slotTargetFail(m, job, no_quorum_text);
        return;
    }
    if (waited_ms < REPLICAS_MS && m->procs->isBehind(m->arg, job)) return;
    job->run.has_asked = true;
    m->procs->send(m->arg, job, JOB_ACT_SEND_REQUEST_PAUSE);
}

static void takeSlots(slotMoves *m, slotJob *job) {
    clusterMap *map = m->map;
    if (clusterMapBumpEpoch(map))
        logNotice("New configEpoch set to %llu", (unsigned long long)map->myself->epoch);
    for (size_t i = 0; i < job->ranges.count; i++) {
        for (int slot = job->ranges.items[i].first; slot <= job->ranges.items[i].last; slot++)
            clusterMapSetOwner(map, slot, map->myself);
    }
    logNotice("Slot migration %s completed successfully. This node is now the owner of the slots",
              slotJobLabelOf(m, job).text);
    end(m, job, JOB_SUCCESS, NULL);
    m->procs->finish(m->arg, job);
    m->tells = true;
}

/* A source of Valkey claims slots until it sees the new owner. */
static bool isGiven(const slotMoves *m, const slotJob *job, const clusterNode *source) {
    for (size_t i = 0; i < job->ranges.count && source->unclaims; i++) {
        for (int slot = job->ranges.items[i].first; slot <= job->ranges.items[i].last; slot++)
            if (clusterMapIsClaimed(m->map, slot)) return false;
    }
    return true;
}

/* A write that a replica of the source has confirmed must not get lost with this node, either. With
 * replication-quorum it rather does not take the slots: the grant ends. */
static void takeOver(slotMoves *m, slotJob *job) {
    check(job->state == JOB_TAKING);
    const clusterNode *source = slotMovesPeer(m, job);
    if (m->rules.hold_takeover) {
        job->run.since_ms = m->now_ms;
        return;
    }
    int64_t waited_ms = m->now_ms - job->run.since_ms, lease_ms = slotMovesLease(m);
    if (!source || !slotRangesAreOf(&job->ranges, m->map, source)) {
        slotTargetFail(m, job, "Slots are no longer owned by source node");
    } else if (waited_ms >= lease_ms) {
        bool lacks = m->procs->lacksQuorum(m->arg, job);
        slotTargetFail(m, job, lacks ? no_quorum_text : "The grant of the source came too late");
    } else if (!isGiven(m, job, source)) {
        return; /* it is told */
    } else if (m->procs->lacksQuorum(m->arg, job)) {
        return; /* it is confirmed, or the grant ends */
    } else if (waited_ms >= lease_ms / 2 || !m->procs->isBehind(m->arg, job)) {
        takeSlots(m, job);
    }
}

/* The role of this node has changed: its replicas, or its primary, go on without the link. */
static bool followsRole(slotMoves *m, slotJob *job) {
    check(slotJobIsActive(job));
    bool is_primary = m->map->myself->flags & NODE_PRIMARY;
    if (is_primary && job->state == JOB_ON_PRIMARY) {
        if (!succeedIfMine(m, job))
            slotTargetFail(m, job, "A failover occurred during slot import");
        return true;
    }
    if (is_primary || job->state == JOB_ON_PRIMARY) return false;
    m->procs->close(m->arg, job);
    slotMovesSet(m, job, JOB_ON_PRIMARY);
    return true;
}

void slotTargetStep(slotMoves *m) {
    for (slotJob *job = next(m, NULL); job; job = next(m, job)) {
        if (followsRole(m, job)) continue;
        if (m->procs->isStill(m->arg)) continue;
        if (job->state == JOB_WAITING_PAUSED) askForPause(m, job);
        if (job->state == JOB_TAKING) takeOver(m, job);
        if (job->state == JOB_CLEANING && m->procs->clean(m->arg, job)) {
            end(m, job, JOB_FAILED, NULL);
            m->procs->finish(m->arg, job);
        }
    }
}

/* ------------------------------------------------------------------ periodic */

static void watch(slotMoves *m, slotJob *job, int64_t heard_ms) {
    const clusterNode *source = slotMovesPeer(m, job);
    if (!source || !slotRangesAreOf(&job->ranges, m->map, source)) {
        bool mine = slotRangesAreOf(&job->ranges, m->map, m->map->myself);
        slotTargetFail(m, job,
                       mine ? "Slots were unexpectedly assigned to myself during import"
                            : "Slots are no longer owned by source node");
    } else if (m->now_ms - heard_ms > m->rules.silence_ms) {
        logWarning("Timing out slot migration %s after not receiving ack for too long",
                   slotJobLabelOf(m, job).text);
        slotTargetFail(m, job, "Timed out after too long with no interaction");
    } else if (job->state != JOB_WAITING_ACK && m->now_ms - job->run.told_ms >= ACK_MS) {
        job->run.told_ms = m->now_ms;
        m->procs->send(m->arg, job, JOB_ACT_SEND_ACK);
    }
}

void slotTargetTick(slotMoves *m) {
    slotTargetStep(m);
    for (slotJob *job = next(m, NULL); job; job = next(m, job)) {
        int64_t heard_ms = m->procs->heardMs(m->arg, job);
        if (heard_ms >= 0) watch(m, job, heard_ms);
    }
}
