/* SPDX-License-Identifier: BSD-3-Clause
 *
 * The source's side of slot migration (slot_export.h): jobs, their states and ends. The connection
 * is in slot_export_link.c, what is sent in slot_export_stream.c.
 *
 * The pause: writes to the slots wait from PAUSED on, for slot-migration-pause-ms at most; then
 * they go on, follow over the link, and wait again when the target asks for the slots. Whatever was
 * sent before FAILOVER-GRANTED is applied before the target takes them. After it nothing may be
 * written here that the target would not get: writes wait until the target is seen to own the
 * slots, or to have given up. */
#include "cluster/slot_export.h"

#include "base/base.h"
#include "base/clock.h"
#include "cluster/cluster_priv.h"
#include "cluster/server_map.h"
#include "cluster/slot_export_priv.h"
#include "cluster/slot_migration.h"
#include "engine/child.h"
#include "engine/hot.h"
#include "engine/pause.h"
#include "engine/transaction.h"
#include "net/net.h"
#include "repl/role.h"
#include "store/store.h"

enum {
    ACK_MS = 1000,
    PROGRESS_MS = 5000,
    GRANT_MS = 2000,      /* the target has so much more time to take the slots */
    PONGS_AFTER_LOSS = 3, /* the last one answers a PING that was sent after the loss */
    PAUSE_FOREVER_MS = 24 * 3600 * 1000,
};

static const char lost_text[] =
    "Connection lost to target. Check CLUSTER GETSLOTMIGRATIONS on the target node for more "
    "information.";

static bool isExport(const slotJob *job) { return !job->is_import && slotJobIsActive(job); }

/* ------------------------------------------------------------------ the pause */

/* The slots whose writes wait. */
static struct {
    slotMask slots;
    int jobs;
} paused;

/* Commands without keys may write anything: a script, FUNCTION, FLUSHALL. */
static bool isPaused(ctx *c) {
    int slot = c->cmd->flags & CMD_RUNS_QUEUE
                   ? transactionSlot(c->who)
                   : commandSlots(COMMAND_NO_SLOT, c->cmd, c->argv, c->argc);
    return slot < 0 || slotMaskHas(&paused.slots, slot);
}

static void updatePause(void) {
    int64_t end_ms = 0;
    paused.slots = (slotMask){{0}};
    paused.jobs = 0;
    for (slotJob *job = exportNext(NULL); job; job = exportNext(job)) {
        if (!exportOf(job)->pauses) continue;
        slotRangesAddTo(&job->ranges, &paused.slots);
        if (exportOf(job)->pause_end_ms > end_ms) end_ms = exportOf(job)->pause_end_ms;
        paused.jobs++;
    }
    if (!paused.jobs) {
        pauseEnd(PAUSE_FOR_SLOT_HANDOVER);
        return;
    }
    pauseSelect(isPaused);
    pauseBegin(PAUSE_FOR_SLOT_HANDOVER, PAUSE_SOME, end_ms);
}

static void setPause(slotJob *job, bool on, int64_t end_ms) {
    check(job->work);
    exportWork *w = exportOf(job);
    if (!on && !w->pauses) return;
    w->pauses = on;
    w->pause_end_ms = end_ms;
    updatePause();
}

/* ------------------------------------------------------------------ end */

static void end(slotJob *job, slotJobState state, const char *message) {
    check(isExport(job));
    exportWork *w = exportOf(job);
    exportStreamEnd(job);
    exportLinkClose(job);
    setPause(job, false, 0);
    strFree(&w->received);
    memFree(w);
    job->work = NULL;
    slotMigrationEnd(job, state, message);
    exportStreamUpdate();
}

void exportFail(slotJob *job, const char *message) {
    if (isExport(job)) end(job, JOB_FAILED, message);
}

/* After the grant the target may own the slots already, whatever happens here. */
static bool isDecided(const slotJob *job) { return job->state == JOB_GRANTED; }

void slotExportFailAll(const char *message) {
    for (slotJob *job = exportNext(NULL); job; job = exportNext(job)) exportFail(job, message);
}

bool slotExportCancelAll(slice who) {
    hotCheck(threadIsMain());
    bool any = false;
    for (slotJob *job = exportNext(NULL); job; job = exportNext(job)) {
        any = true;
        if (isDecided(job)) {
            exportLinkClose(job); /* the end follows */
        } else {
            end(job, JOB_CANCELLED, NULL);
        }
    }
    if (any)
        logNotice("Canceled all in progress slot migrations (user request from '%.*s')",
                  (int)who.len, who.ptr);
    return any;
}

/* ------------------------------------------------------------------ events */

static void sendWord(slotJob *job, const char *word) {
    str bytes = slotWordsOf(word);
    exportLinkSend(job, strSlice(&bytes));
    strFree(&bytes);
}

static int64_t pauseMs(void) { return clusterConf.slot_migration_pause_ms; }

static void pauseFor(slotJob *job, slotJobState state) {
    check(job->work);
    check(state == JOB_PAUSED || state == JOB_GRANTED);
    int64_t now_ms = engineHot.now_ms;
    if (state == JOB_GRANTED) {
        setPause(job, true, now_ms + PAUSE_FOREVER_MS);
        exportOf(job)->since_ms = now_ms;
        return;
    }
    logNotice("Pausing writes (remaining_repl_size is %zu) to allow slot migration %s to finalize "
              "failover.",
              slotExportUnsent(job), slotJobLabelOf(job).text);
    exportOf(job)->since_ms = now_ms;
    setPause(job, true, now_ms + pauseMs());
}

void slotExportOn(slotJob *job, slotJobEvent event) {
    slotJobState next;
    uint32_t acts;
    slice user_name, password;
    check(isExport(job));
    replCredentials(&user_name, &password);
    if (!slotJobOn(job->state, event, password.len > 0, &next, &acts)) {
        if (!isDecided(job)) exportFail(job, "Unexpected state machine transition");
        return;
    }
    if (event == JOB_ACK) job->acked_s = slotMigrationNowS();
    if (event == JOB_OWNER_SEEN)
        logNotice("Slot migration %s slots are now owned by target node.",
                  slotJobLabelOf(job).text);
    if (acts & JOB_ACT_END) {
        end(job, next, NULL);
        return;
    }
    if (acts & JOB_ACT_PAUSE) pauseFor(job, next);
    slotMigrationSet(job, next);
    if (acts & JOB_ACT_SEND_AUTH) exportLinkAuth(job, user_name, password);
    if (acts & JOB_ACT_SEND_ESTABLISH) exportLinkEstablish(job);
    if (acts & JOB_ACT_SEND_ACK) sendWord(job, "ACK");
    if (acts & JOB_ACT_SEND_EOF) sendWord(job, "SNAPSHOT-EOF");
    if (acts & JOB_ACT_SEND_PAUSED) sendWord(job, "PAUSED");
    if (acts & JOB_ACT_SEND_GRANTED) sendWord(job, "FAILOVER-GRANTED");
}

/* ------------------------------------------------------------------ begin */

static bool isGranted(const clusterNode *to, int slot) {
    if (likely(!slotMigrations.active)) return false;
    for (slotJob *job = exportNext(NULL); job; job = exportNext(job)) {
        if (!isDecided(job) || !slotRangesHave(&job->ranges, slot)) continue;
        return !memcmp(job->target, to->id, NODE_ID_LEN);
    }
    return false;
}

void slotExportBegin(slotRanges *ranges, const clusterNode *target, slice who) {
    slotJob *job = slotLogAdd(&slotMigrations, false, SLICE(""), ranges, slotMigrationNowS());
    job->has_nodes = true;
    memcpy(job->source, serverMap.myself->id, NODE_ID_LEN);
    memcpy(job->target, target->id, NODE_ID_LEN);
    job->work = memNew(exportWork);
    *exportOf(job) = (exportWork){.job = job, .since_ms = engineHot.now_ms, .db_id = -1};
    serverMap.is_granted = isGranted;
    logNotice("Slot migration initiated through CLUSTER MIGRATESLOTS command: %s (user request "
              "from '%.*s')",
              slotJobLabelOf(job).text, (int)who.len, who.ptr);
}

slotJob *slotExportOf(const session *s) {
    if (!(s->flags & SESSION_SLOT_EXPORT)) return NULL;
    for (slotJob *job = exportNext(NULL); job; job = exportNext(job)) {
        if (exportOf(job)->who == s) return job;
    }
    return NULL;
}

void slotExportLost(const session *s) {
    slotJob *job = slotExportOf(s);
    if (!job) return;
    logNotice("Slot migration %s connection lost", slotJobLabelOf(job).text);
    exportOf(job)->who = NULL;
    exportLost(job, lost_text);
}

void exportLost(slotJob *job, const char *message) {
    check(job->work);
    exportWork *w = exportOf(job);
    const clusterNode *target = clusterMapFind(&serverMap, sliceMake(job->target, NODE_ID_LEN));
    if (!isDecided(job)) {
        exportFail(job, message);
        return;
    }
    w->is_lost = true;
    w->pongs = 0;
    w->pong_ms = target ? target->pong_ms : 0;
}

/* ------------------------------------------------------------------ in each turn */

static void stepWaiting(slotJob *job) {
    check(job->state == JOB_WAITING_PAUSE);
    int64_t most = clusterConf.slot_migration_max_failover_repl_bytes;
    exportWork *w = exportOf(job);
    if (slotMigrationHeld().before_pause) return;
    size_t unsent = slotExportUnsent(job);
    if (most < 0 || unsent <= (size_t)most) {
        slotExportOn(job, JOB_DRAINED);
    } else if (!w->pauses && engineHot.now_ms - w->since_ms >= EXPORT_BRAKE_MS) {
        /* Changes are made faster than they are sent: they wait until the rest has been sent. */
        w->since_ms = engineHot.now_ms;
        w->brakes = false; /* until nothing is unsent */
        setPause(job, true, engineHot.now_ms + pauseMs());
    }
}

/* The target takes less than is written here: memory does not grow, and the keys are sent, too. */
static void stepBrake(slotJob *job) {
    exportWork *w = exportOf(job);
    size_t unsent = slotExportUnsent(job);
    uint64_t sent = exportStreamSent(job);
    if (!w->pauses && unsent > 2 * (size_t)EXPORT_UNSENT_MAX) {
        w->brakes = true;
        w->walk_bytes = sent;
        setPause(job, true, engineHot.now_ms + pauseMs());
    } else if (w->brakes && w->pauses && unsent <= EXPORT_UNSENT_MAX + 64 * 1024 &&
               (sent == UINT64_MAX || sent - w->walk_bytes >= EXPORT_UNSENT_MAX)) {
        w->brakes = false;
        setPause(job, false, 0);
    }
}

/* The pause has been as long as it may be. */
static void stepPause(slotJob *job) {
    exportWork *w = exportOf(job);
    if (!w->pauses || job->state == JOB_GRANTED) return;
    if (engineHot.now_ms < w->pause_end_ms) return;
    if (!w->brakes)
        logNotice("Writes go on during slot migration %s: the target does not keep up within "
                  "slot-migration-pause-ms",
                  slotJobLabelOf(job).text);
    w->brakes = false;
    setPause(job, false, 0);
    if (job->state == JOB_WAITING_PAUSE) w->since_ms = engineHot.now_ms;
}

void slotExportStep(void) {
    check(!engineHot.current);
    for (slotJob *job = exportNext(NULL); job; job = exportNext(job)) {
        const clusterNode *target = clusterMapFind(&serverMap, sliceMake(job->target, NODE_ID_LEN));
        if (job->state == JOB_GRANTED && target &&
            slotRangesAreOf(&job->ranges, &serverMap, target)) {
            slotExportOn(job, JOB_OWNER_SEEN);
            continue;
        }
        stepPause(job);
        if (job->state == JOB_CONNECTING && !exportOf(job)->connection) exportLinkOpen(job);
        if (exportOf(job)->streams && job->state < JOB_PAUSED) stepBrake(job);
        if (job->state == JOB_WAITING_SNAPSHOT) exportStreamBegin(job);
        if (job->state == JOB_WAITING_PAUSE) stepWaiting(job);
    }
}

/* ------------------------------------------------------------------ periodic */

/* After the grant. The link may be lost because the target has taken the slots, and because it has
 * not: it says so over the bus. */
static void watchGrant(slotJob *job) {
    check(job->state == JOB_GRANTED);
    exportWork *w = exportOf(job);
    const clusterNode *target = clusterMapFind(&serverMap, sliceMake(job->target, NODE_ID_LEN));
    int64_t most_ms = 2 * (int64_t)clusterConf.cluster_manual_failover_timeout + GRANT_MS;
    if (!w->is_lost) {
        if (engineHot.now_ms - w->since_ms > most_ms) exportLinkClose(job);
        return;
    }
    if (target && target->pong_ms != w->pong_ms) {
        w->pong_ms = target->pong_ms;
        w->pongs++;
    }
    bool has_failed = !target || target->flags & NODE_FAILED;
    if (!has_failed && w->pongs < PONGS_AFTER_LOSS) return;
    if (has_failed) {
        /* Should it have taken them in its last moments, and come back, its claim is older. */
        clusterMapSetEpochs(&serverMap, clusterMapNextEpoch(&serverMap) + 1, serverMap.vote_epoch);
        clusterMapSetNodeEpoch(&serverMap, serverMap.myself, serverMap.current_epoch);
    }
    exportFail(job, "Unpaused before migration completed: the target did not take the slots");
}

static void watchLink(slotJob *job) {
    check(job->state != JOB_GRANTED);
    exportWork *w = exportOf(job);
    int64_t now_ms = engineHot.now_ms, timeout_ms = replTimeoutMs();
    int64_t heard_ms = w->who ? w->who->active_ms : w->since_ms;
    int64_t pause_ms = 2 * (int64_t)clusterConf.cluster_manual_failover_timeout;
    if (job->state == JOB_SNAPSHOTTING && w->sent_any_ms > heard_ms) heard_ms = w->sent_any_ms;
    if (now_ms - heard_ms > timeout_ms) {
        logWarning("Timing out slot migration %s after not receiving ack for too long",
                   slotJobLabelOf(job).text);
        exportFail(job, "Timed out after too long with no interaction");
    } else if (job->state == JOB_PAUSED && now_ms - w->since_ms > pause_ms) {
        exportFail(job, "Timed out before streaming completed");
    } else if (w->who && job->state != JOB_SNAPSHOTTING && now_ms - w->acked_ms >= ACK_MS) {
        w->acked_ms = now_ms;
        sendWord(job, "ACK");
    }
}

static bool areLost(const slotJob *job) {
    for (size_t i = 0; i < job->ranges.count; i++) {
        for (int slot = job->ranges.items[i].first; slot <= job->ranges.items[i].last; slot++) {
            const clusterNode *owner = clusterMapOwner(&serverMap, slot);
            if (owner && owner != serverMap.myself) return true;
        }
    }
    return false;
}

static void logProgress(slotJob *job) {
    exportWork *w = exportOf(job);
    int64_t now_ms = engineHot.now_ms;
    if (job->state == JOB_WAITING_SNAPSHOT && now_ms - w->told_ms >= PROGRESS_MS) {
        w->told_ms = now_ms;
        logNotice("Slot migration %s waiting before snapshotting due to active child process.",
                  slotJobLabelOf(job).text);
    }
    if (job->state != JOB_SNAPSHOTTING || now_ms - w->told_ms < PROGRESS_MS) return;
    exportProgress p = exportStreamProgress(job);
    w->told_ms = now_ms;
    logNotice("Slot migration %s: %.0f %% of %llu keys sent, %.1f MB/s, about %lld s left",
              slotJobLabelOf(job).text, p.percent, (unsigned long long)p.keys_total,
              p.bytes_per_second / 1048576, (long long)p.seconds_left);
}

void slotExportCheckOwners(void) {
    for (slotJob *job = exportNext(NULL); job; job = exportNext(job)) {
        const clusterNode *target = clusterMapFind(&serverMap, sliceMake(job->target, NODE_ID_LEN));
        bool granted =
            target && isDecided(job) && slotRangesAreOf(&job->ranges, &serverMap, target);
        if (!granted && areLost(job)) exportFail(job, "Slots are no longer owned by myself");
    }
}

void slotExportTick(void) {
    hotCheck(threadIsMain());
    slotExportCheckOwners();
    for (slotJob *job = exportNext(NULL); job; job = exportNext(job)) {
        if (isDecided(job)) {
            watchGrant(job);
        } else {
            logProgress(job);
            watchLink(job);
        }
        if (isExport(job) && exportOf(job)->who) exportLinkLimit(job);
    }
    slotExportStep();
}

size_t slotExportMemory(void) {
    size_t bytes = 0;
    if (!slotMigrations.active) return 0;
    for (slotJob *job = exportNext(NULL); job; job = exportNext(job)) {
        bytes += exportLinkMemory(job);
    }
    return bytes;
}
