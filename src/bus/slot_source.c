/* SPDX-License-Identifier: BSD-3-Clause
 *
 * The source's state machine (slot_source.h).
 *
 * Before the state PAUSED writes to the slots are paused only while changes are made faster than
 * they are sent (stepBrake()). From PAUSED on writes are paused, for slot-migration-pause-ms at
 * most. When that time is over without a request of the target, they are accepted again and sent
 * over the link, and paused once more when the target requests the slots. All changes made before
 * FAILOVER-GRANTED are sent before it, so the target has applied them when it takes the slots.
 * After FAILOVER-GRANTED a write here would be lost. So writes wait until the map shows the target
 * as the owner of the slots, or until it can no longer take them. */
#include "bus/slot_source.h"

#include "base/base.h"

enum {
    ACK_MS = 1000,
    BRAKE_MS = 100, /* before the hand-over: then changes wait that are made faster than sent */
    BRAKE_SLACK = 64 * 1024,
    PONGS_AFTER_LOSS = 3, /* the last one answers a PING that was sent after the loss */
    PAUSE_FOREVER_MS = 24 * 3600 * 1000,
};

static slotJob *next(const slotMoves *m, const slotJob *after) {
    return slotLogNext(&m->log, after, false);
}

static bool isActive(const slotJob *job) {
    check(!job->is_import);
    return slotJobIsActive(job);
}

/* After the grant the target may own the slots already, whatever happens here. */
static bool isDecided(const slotJob *job) { return job->state == JOB_GRANTED; }

/* ------------------------------------------------------------------ the pause */

int64_t slotSourcePaused(const slotMoves *m, slotMask *slots) {
    int64_t end_ms = 0;
    for (slotJob *job = next(m, NULL); job; job = next(m, job)) {
        if (!job->run.pauses) continue;
        slotRangesAddTo(&job->ranges, slots);
        if (job->run.pause_end_ms > end_ms) end_ms = job->run.pause_end_ms;
    }
    return end_ms;
}

static void setPause(slotMoves *m, slotJob *job, int64_t ms) {
    check(ms >= 0);
    bool on = ms > 0;
    if (!on && !job->run.pauses) return;
    job->run.pauses = on;
    job->run.pause_end_ms = m->now_ms + ms;
    m->procs->pause(m->arg);
}

static void pauseFor(slotMoves *m, slotJob *job, slotJobState state) {
    check(state == JOB_PAUSED || state == JOB_GRANTED);
    job->run.since_ms = m->now_ms;
    if (state == JOB_GRANTED) {
        job->run.grant_epoch = m->map->myself->epoch;
        setPause(m, job, PAUSE_FOREVER_MS);
        return;
    }
    size_t unsent = m->procs->unsent(m->arg, job);
    logNotice("Pausing writes (remaining_repl_size is %zu) to allow slot migration %s to finalize "
              "failover.",
              unsent, slotJobLabelOf(m, job).text);
    setPause(m, job, m->rules.pause_ms);
}

/* ------------------------------------------------------------------ end */

/* Sets whether this node claims the slots of the job in its messages. */
static void setClaimed(slotMoves *m, const slotJob *job, bool claimed) {
    for (size_t i = 0; i < job->ranges.count; i++) {
        for (int slot = job->ranges.items[i].first; slot <= job->ranges.items[i].last; slot++)
            if (clusterMapIsMine(m->map, slot)) clusterMapSetClaimed(m->map, slot, claimed);
    }
    m->tells = true;
}

static void end(slotMoves *m, slotJob *job, slotJobState state, const char *message) {
    check(isActive(job));
    if (isDecided(job)) setClaimed(m, job, true);
    job->run.streams = false;
    m->procs->endStream(m->arg, job);
    m->procs->close(m->arg, job);
    setPause(m, job, 0);
    slotMovesEnd(m, job, state, message);
}

void slotSourceFail(slotMoves *m, slotJob *job, const char *message) {
    if (isActive(job)) end(m, job, JOB_FAILED, message);
}

void slotSourceFailAll(slotMoves *m, const char *message) {
    for (slotJob *job = next(m, NULL); job; job = next(m, job)) slotSourceFail(m, job, message);
}

void slotSourceLost(slotMoves *m, slotJob *job, const char *message) {
    if (!isActive(job)) return;
    if (!isDecided(job)) {
        slotSourceFail(m, job, message);
        return;
    }
    const clusterNode *target = slotMovesPeer(m, job);
    job->run.is_lost = true;
    job->run.pongs = 0;
    job->run.pong_ms = target ? target->pong_ms : 0;
}

/* The end follows, when the target has said which one it is. */
static void closeDecided(slotMoves *m, slotJob *job) {
    check(isDecided(job));
    if (job->run.is_lost) return;
    m->procs->close(m->arg, job);
    slotSourceLost(m, job, NULL);
}

bool slotSourceCancelAll(slotMoves *m) {
    bool any = false;
    for (slotJob *job = next(m, NULL); job; job = next(m, job)) {
        any = true;
        if (isDecided(job)) {
            job->run.is_cancelled = true;
            closeDecided(m, job);
        } else {
            end(m, job, JOB_CANCELLED, NULL);
        }
    }
    return any;
}

/* ------------------------------------------------------------------ events */

void slotSourceOn(slotMoves *m, slotJob *job, slotJobEvent event) {
    slotJobState state;
    uint32_t acts;
    check(isActive(job));
    if (!slotJobOn(job->state, event, m->rules.has_auth, &state, &acts)) {
        if (!isDecided(job)) slotSourceFail(m, job, "Unexpected state machine transition");
        return;
    }
    /* The replica that becomes the primary claims these slots, too, as it may not know yet that
     * the target has them. */
    if (acts & JOB_ACT_SEND_GRANTED && m->procs->isStill(m->arg)) {
        slotSourceFail(m, job, "A failover of the source node is under way");
        return;
    }
    if (event == JOB_ACK) job->acked_s = m->now_s;
    if (event == JOB_OWNER_SEEN)
        logNotice("Slot migration %s slots are now owned by target node.",
                  slotJobLabelOf(m, job).text);
    if (acts & JOB_ACT_END) {
        end(m, job, state, NULL);
        return;
    }
    if (acts & JOB_ACT_PAUSE) pauseFor(m, job, state);
    slotMovesSet(m, job, state);
    if (acts & JOB_ACT_SEND_GRANTED) setClaimed(m, job, false);
    if (acts & ~(uint32_t)JOB_ACT_PAUSE) m->procs->send(m->arg, job, acts);
}

/* ------------------------------------------------------------------ begin */

/* A node of Valkey may not know the epoch of this one. From others it is a message from before the
 * grant, of a time when that node had the slot already. */
static bool isGranted(const void *arg, const clusterNode *to, int slot, uint64_t epoch) {
    const slotMoves *m = arg;
    if (likely(!m->log.active)) return false;
    for (slotJob *job = next(m, NULL); job; job = next(m, job)) {
        if (!isDecided(job) || !slotRangesHave(&job->ranges, slot)) continue;
        if (to->unclaims && epoch <= job->run.grant_epoch) return false;
        return !memcmp(job->target, to->id, NODE_ID_LEN);
    }
    return false;
}

slotJob *slotSourceBegin(slotMoves *m, slotRanges *ranges, const clusterNode *target) {
    check(target != m->map->myself);
    slotJob *job = slotLogAdd(&m->log, false, SLICE(""), ranges, m->now_s);
    job->has_nodes = true;
    memcpy(job->source, m->map->myself->id, NODE_ID_LEN);
    memcpy(job->target, target->id, NODE_ID_LEN);
    job->run = (slotJobRun){.since_ms = m->now_ms};
    m->map->is_granted = isGranted;
    m->map->is_granted_arg = m;
    return job;
}

/* ------------------------------------------------------------------ keys and changes */

slotChange slotSourceTakes(const slotJob *job, int slot) {
    if (!job->run.streams || !slotRangesHave(&job->ranges, slot)) return SLOT_CHANGE_IGNORED;
    if (isDecided(job)) return SLOT_CHANGE_LATE;
    return job->state == JOB_SNAPSHOTTING ? SLOT_CHANGE_WALKED : SLOT_CHANGE_SENT;
}

static void beginStream(slotMoves *m, slotJob *job) {
    check(!job->run.streams);
    if (!m->procs->canStream(m->arg, job)) return;
    logNotice("Beginning snapshot of slot migration %s.", slotJobLabelOf(m, job).text);
    job->run.streams = true;
    slotSourceOn(m, job, JOB_SNAPSHOT_BEGINS);
    m->procs->beginStream(m->arg, job);
}

/* ------------------------------------------------------------------ in each turn */

static void stepWaiting(slotMoves *m, slotJob *job) {
    check(job->state == JOB_WAITING_PAUSE);
    if (m->rules.hold_pause || m->procs->isStill(m->arg)) return;
    size_t unsent = m->procs->unsent(m->arg, job);
    if (m->rules.unsent_max < 0 || unsent <= (size_t)m->rules.unsent_max) {
        slotSourceOn(m, job, JOB_DRAINED);
    } else if (!job->run.pauses && m->now_ms - job->run.since_ms >= BRAKE_MS) {
        /* Changes are made faster than they are sent: they wait until the rest has been sent. */
        job->run.since_ms = m->now_ms;
        job->run.brakes = false; /* until nothing is unsent */
        setPause(m, job, m->rules.pause_ms);
    }
}

/* The target takes less than is written here: memory does not grow, and the keys are sent, too. */
static void stepBrake(slotMoves *m, slotJob *job) {
    slotJobRun *run = &job->run;
    size_t unsent = m->procs->queued(m->arg, job);
    uint64_t sent = m->procs->sentKeys(m->arg, job);
    if (!run->pauses && unsent > 2 * (size_t)SLOT_UNSENT_MAX) {
        run->brakes = true;
        run->sent_keys = sent;
        setPause(m, job, m->rules.pause_ms);
    } else if (run->brakes && run->pauses && unsent <= SLOT_UNSENT_MAX + BRAKE_SLACK &&
               (sent == UINT64_MAX || sent - run->sent_keys >= SLOT_UNSENT_MAX)) {
        run->brakes = false;
        setPause(m, job, 0);
    }
}

/* Ends a pause that has lasted as long as it may. */
static void stepPause(slotMoves *m, slotJob *job) {
    slotJobRun *run = &job->run;
    if (!run->pauses || isDecided(job) || m->now_ms < run->pause_end_ms) return;
    if (!run->brakes)
        logNotice("Writes go on during slot migration %s: the target does not keep up within "
                  "slot-migration-pause-ms",
                  slotJobLabelOf(m, job).text);
    run->brakes = false;
    setPause(m, job, 0);
    if (job->state == JOB_WAITING_PAUSE) run->since_ms = m->now_ms;
}

void slotSourceStep(slotMoves *m) {
    for (slotJob *job = next(m, NULL); job; job = next(m, job)) {
        const clusterNode *target = slotMovesPeer(m, job);
        if (isDecided(job) && target && slotRangesAreOf(&job->ranges, m->map, target)) {
            /* Writes are redirected at once. The job ends when that is saved: then the keys are
             * deleted, so that the slots can come back at once. */
            if (m->rules.is_saving) {
                setPause(m, job, 0);
            } else {
                slotSourceOn(m, job, JOB_OWNER_SEEN);
            }
            continue;
        }
        stepPause(m, job);
        if (job->state == JOB_CONNECTING && !job->run.has_begun) {
            job->run.has_begun = true;
            m->procs->connect(m->arg, job);
            if (!isActive(job)) continue;
        }
        if (job->run.streams && job->state < JOB_PAUSED) stepBrake(m, job);
        if (job->state == JOB_WAITING_SNAPSHOT) beginStream(m, job);
        if (job->state == JOB_WAITING_PAUSE) stepWaiting(m, job);
    }
}

/* ------------------------------------------------------------------ periodic */

/* After the grant. The link may be lost because the target has taken the slots, and because it has
 * not: it says so over the bus. Until its lease has ended it may still do so, as what it says may
 * have been overtaken by the grant on a connection that is stalled. */
static void watchGrant(slotMoves *m, slotJob *job) {
    slotJobRun *run = &job->run;
    const clusterNode *target = slotMovesPeer(m, job);
    int64_t granted_ms = m->now_ms - run->since_ms;
    if (target && slotRangesAreOf(&job->ranges, m->map, target)) return; /* it ends soon */
    if (!run->is_lost) {
        if (granted_ms > 2 * m->rules.manual_timeout_ms + SLOT_LEASE_MS) closeDecided(m, job);
        return;
    }
    if (target && target->pong_ms != run->pong_ms) {
        run->pong_ms = target->pong_ms;
        run->pongs++;
    }
    bool has_failed = !target || target->flags & NODE_FAILED;
    if (granted_ms < slotMovesLease(m) + SLOT_LEASE_MARGIN_MS) return;
    if (!has_failed && run->pongs < PONGS_AFTER_LOSS) return;
    if (has_failed) {
        /* Should it have taken them in its last moments, and come back, its claim is older. */
        clusterMapSetEpochs(m->map, clusterMapNextEpoch(m->map) + 1, m->map->vote_epoch);
        clusterMapSetNodeEpoch(m->map, m->map->myself, m->map->current_epoch);
    }
    if (run->is_cancelled) {
        end(m, job, JOB_CANCELLED, NULL);
    } else {
        slotSourceFail(m, job,
                       "Unpaused before migration completed: the target did not take the slots");
    }
}

static void watchLink(slotMoves *m, slotJob *job) {
    check(!isDecided(job));
    slotJobRun *run = &job->run;
    int64_t heard_ms = m->procs->heardMs(m->arg, job);
    bool is_linked = heard_ms >= 0;
    if (!is_linked) heard_ms = run->since_ms;
    if (job->state == JOB_SNAPSHOTTING) {
        int64_t sent_ms = m->procs->sentMs(m->arg, job);
        if (sent_ms > heard_ms) heard_ms = sent_ms;
    }
    if (m->now_ms - heard_ms > m->rules.silence_ms) {
        logWarning("Timing out slot migration %s after not receiving ack for too long",
                   slotJobLabelOf(m, job).text);
        slotSourceFail(m, job, "Timed out after too long with no interaction");
    } else if (job->state == JOB_PAUSED &&
               m->now_ms - run->since_ms > 2 * m->rules.manual_timeout_ms) {
        slotSourceFail(m, job, "Timed out before streaming completed");
    } else if (is_linked && job->state >= JOB_WAITING_SNAPSHOT && job->state != JOB_SNAPSHOTTING &&
               m->now_ms - run->told_ms >= ACK_MS) {
        run->told_ms = m->now_ms;
        m->procs->send(m->arg, job, JOB_ACT_SEND_ACK);
    }
}

static bool areLost(const slotMoves *m, const slotJob *job) {
    for (size_t i = 0; i < job->ranges.count; i++) {
        for (int slot = job->ranges.items[i].first; slot <= job->ranges.items[i].last; slot++) {
            const clusterNode *owner = clusterMapOwner(m->map, slot);
            if (owner && owner != m->map->myself) return true;
        }
    }
    return false;
}

/* After the grant the target may have passed on slots before this node has seen that it has taken
 * them: then it has the others, too, and they must not be written to here. */
static bool mayBeTaken(const slotMoves *m, const slotJob *job) {
    if (!isDecided(job)) return false;
    const clusterNode *target = slotMovesPeer(m, job);
    if (target && slotRangesAreOf(&job->ranges, m->map, target)) return true;
    for (size_t i = 0; i < job->ranges.count; i++) {
        for (int slot = job->ranges.items[i].first; slot <= job->ranges.items[i].last; slot++)
            if (clusterMapIsMine(m->map, slot)) return true;
    }
    return false;
}

void slotSourceCheckOwners(slotMoves *m) {
    for (slotJob *job = next(m, NULL); job; job = next(m, job)) {
        if (!mayBeTaken(m, job) && areLost(m, job))
            slotSourceFail(m, job, "Slots are no longer owned by myself");
    }
}

void slotSourceTick(slotMoves *m) {
    slotSourceCheckOwners(m);
    for (slotJob *job = next(m, NULL); job; job = next(m, job)) {
        if (isDecided(job)) {
            watchGrant(m, job);
        } else {
            watchLink(m, job);
        }
    }
    slotSourceStep(m);
}
