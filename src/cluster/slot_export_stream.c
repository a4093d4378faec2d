/* SPDX-License-Identifier: BSD-3-Clause
 *
 * The stream of an export (slot_export_priv.h): the keys of the slots, and their changes.
 *
 * Invariant: each change of a slot of the job that is executed before FAILOVER-GRANTED is sent
 * before FAILOVER-GRANTED, in the order of execution, and for the database in which it was
 * executed. There is one server in a process, so the callbacks do not use their argument. */
#include "base/base.h"
#include "base/clock.h"
#include "base/number.h"
#include "cluster/cluster_priv.h"
#include "cluster/server_map.h"
#include "cluster/slot_export.h"
#include "cluster/slot_export_priv.h"
#include "cluster/slot_migration.h"
#include "cluster/slot_walk.h"
#include "engine/deliver.h"
#include "engine/hot.h"
#include "engine/job.h"
#include "engine/lifecycle.h"
#include "resp/resp.h"
#include "store/store.h"

static size_t walkPending(const slotJob *job) {
    return job->state == JOB_SNAPSHOTTING ? slotWalkPending() : 0;
}

size_t slotExportUnsent(const slotJob *job) {
    const exportWork *w = job->work;
    if (job->is_import || !w) return 0;
    return walkPending(job) + exportLinkPending(job);
}

size_t exportStreamUnsent(const slotJob *job) { return walkPending(job) + exportLinkUnsent(job); }

/* ------------------------------------------------------------------ the keys */

static size_t room(void *arg) {
    const exportWork *w = arg;
    size_t unsent = w->who ? exportLinkPending(w->job) : SLOT_UNSENT_MAX;
    return unsent < SLOT_UNSENT_MAX ? SLOT_UNSENT_MAX - unsent : 0;
}

static void send(void *arg, slice bytes) { exportLinkSend(((exportWork *)arg)->job, bytes); }

static void lend(void *arg, blob *bytes) { exportLinkLend(((exportWork *)arg)->job, bytes); }

static void ended(void *arg) {
    exportWork *w = arg;
    check(w->job->state == JOB_SNAPSHOTTING);
    slotWalkProgress p = slotWalkCount();
    w->db_id = slotWalkDb();
    logNotice("Slot migration %s snapshot finished, starting streaming.",
              slotMigrationLabel(w->job).text);
    logNotice("Snapshot of slots without a fork: %llu keys, %.1f MB; %.1f ms of the main thread, "
              "at most %.3f ms and %llu bytes in one turn",
              (unsigned long long)p.keys, (double)p.bytes / 1048576, (double)p.main_us / 1e3,
              (double)p.longest_us / 1e3, (unsigned long long)p.most_bytes);
    exportOn(w->job, JOB_SNAPSHOT_SENT);
}

static void stopped(void *arg) {
    exportFail(((exportWork *)arg)->job, "Failed to perform snapshot");
}

static const slotWalkProcs walk_procs = {
    .room = room, .send = send, .lend = lend, .ended = ended, .stopped = stopped};

bool slotExportCanStream(void *arg, const slotJob *job) {
    (void)arg;
    const exportWork *w = exportOf(job);
    check(w->who);
    if (!slotWalkCanBegin() || exportLinkPending(job)) return false;
    (void)jobEndChanges(); /* the stream begins with the dataset, which has them then */
    return true;
}

/* Arms the sink if any job needs it. */
static void armSink(void) {
    static bool armed;
    bool any = false;
    for (slotJob *job = exportNext(NULL); job; job = exportNext(job)) { any |= job->run.streams; }
    if (any != armed) sinkArm(&slotExportSink, any);
    armed = any;
}

void slotExportBeginStream(void *arg, slotJob *job) {
    (void)arg;
    exportWork *w = exportOf(job);
    slotMask slots = {{0}};
    check(job->run.streams);
    slotRangesAddTo(&job->ranges, &slots);
    w->began_ms = w->told_ms = engineHot.now_ms;
    slotWalkBegin(&slots, &walk_procs, w);
    armSink();
}

void slotExportEndStream(void *arg, slotJob *job) {
    (void)arg;
    check(!job->run.streams);
    slotWalkStop(exportOf(job));
    armSink();
}

uint64_t slotExportSentKeys(void *arg, const slotJob *job) {
    (void)arg;
    return job->state == JOB_SNAPSHOTTING ? slotWalkCount().bytes : UINT64_MAX;
}

bool slotExportProgressOf(const slotJob *job, slotExportProgress *out) {
    if (job->is_import || job->state != JOB_SNAPSHOTTING) return false;
    slotWalkProgress p = slotWalkCount();
    double seconds = (double)(engineHot.now_ms - exportOf(job)->began_ms) / 1000;
    uint64_t total = p.keys > p.keys_total ? p.keys : p.keys_total; /* new keys */
    double part = total ? (double)p.keys / (double)total : 1;
    *out = (slotExportProgress){.keys_total = total, .keys_sent = p.keys, .bytes_sent = p.bytes};
    hotCheck(out->keys_sent <= out->keys_total);
    if (seconds > 0) out->bytes_per_second = (double)p.bytes / seconds;
    if (part > 0 && part < 1) out->seconds_left = (int64_t)(seconds / part - seconds + 0.5);
    return true;
}

/* ------------------------------------------------------------------ the changes */

static void appendSelect(slotJob *job, int db_id) {
    exportWork *w = exportOf(job);
    char digits[NUMBER_TEXT_MAX];
    if (db_id < 0 || db_id == w->db_id) return;
    const slice words[] = {SLICE("SELECT"), sliceMake(digits, numberPrintInt(digits, db_id))};
    size_t len;
    char *bytes = respRequest(2, words, &len);
    exportLinkSend(job, sliceMake(bytes, len));
    memFree(bytes);
    w->db_id = db_id;
}

static void sendChange(slotJob *job, slotChange how, int db_id, const slice *spans, int count) {
    hotCheck(db_id >= 0);
    hotCheck(count > 0);
    switch (how) {
    case SLOT_CHANGE_IGNORED: return;
    case SLOT_CHANGE_WALKED: slotWalkChange(db_id, spans, count); return;
    case SLOT_CHANGE_LATE:
        logWarning("A change of slots that were granted to another node is not sent to it: %s",
                   slotMigrationLabel(job).text);
        return;
    case SLOT_CHANGE_SENT: break;
    }
    appendSelect(job, db_id);
    for (int i = 0; i < count; i++) exportLinkSend(job, spans[i]);
}

/* The slot of CLUSTER FLUSHSLOT, which has no keys; -1: another command. */
static int flushedSlot(const propagated *p) {
    int64_t slot;
    if (p->argc < 3 || !sliceIs(p->argv[0], "cluster") || !sliceIs(p->argv[1], "flushslot"))
        return -1;
    return numberParseInt(p->argv[2], &slot) && slot >= 0 && slot < SLOT_COUNT ? (int)slot : -1;
}

static void take(const propagated *p) {
    hotCheck(p->argc > 0);
    int slot = p->slot >= 0 ? p->slot : flushedSlot(p);
    /* MULTI and EXEC: the target applies nothing in between. FUNCTION: it has its own libraries. */
    if (p->db_id < 0 || slot < 0) return;
    for (slotJob *job = exportNext(NULL); job; job = exportNext(job)) {
        if (!job->run.streams) continue;
        sendChange(job, slotSourceTakes(job, slot), p->db_id, p->spans, p->span_count);
    }
}

const sink slotExportSink = {.name = "slot export", .take = take, .targets = PROPAGATE_SLOT_EXPORT};
