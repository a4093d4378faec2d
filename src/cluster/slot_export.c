/* SPDX-License-Identifier: BSD-3-Clause
 *
 * The actions of a source of slots (slot_source.h) in this server: the pause of writes, and calls
 * of slot_export_link.c, which has the connection, and slot_export_stream.c, which sends keys and
 * changes over it. There is one server in a process, so the callbacks do not use their argument. */
#include "cluster/slot_export.h"

#include "base/base.h"
#include "base/clock.h"
#include "bus/slot_source.h"
#include "cluster/cluster_priv.h"
#include "cluster/server_map.h"
#include "cluster/slot_export_priv.h"
#include "cluster/slot_migration.h"
#include "cluster/slot_pause.h"
#include "engine/hot.h"
#include "net/net.h"
#include "repl/role.h"
#include "store/store.h"

enum { PROGRESS_MS = 5000 };

static const char lost_text[] =
    "Connection lost to target. Check CLUSTER GETSLOTMIGRATIONS on the target node for more "
    "information.";

/* ------------------------------------------------------------------ the pause */

void slotExportPause(void *arg) {
    (void)arg;
    slotMask paused = {{0}};
    int64_t end_ms = slotSourcePaused(&slotMigrations, &paused);
    check(end_ms >= 0);
    if (end_ms) {
        slotPauseSet(SLOT_PAUSE_HANDOVER, &paused,
                     engineHot.now_ms + end_ms - slotMigrations.now_ms);
    } else {
        slotPauseEnd(SLOT_PAUSE_HANDOVER);
    }
}

/* ------------------------------------------------------------------ begin and end */

void slotExportBegin(slotRanges *ranges, const clusterNode *target, slice who) {
    slotJob *job = slotSourceBegin(slotMigrationNow(), ranges, target);
    job->work = memNew(exportWork);
    *exportOf(job) = (exportWork){.job = job, .db_id = -1};
    outbufInit(&exportOf(job)->plain);
    slotMigrationSignal(job);
    logNotice("Slot migration initiated through CLUSTER MIGRATESLOTS command: %s (user request "
              "from '%.*s')",
              slotMigrationLabel(job).text, (int)who.len, who.ptr);
}

bool slotExportCancelAll(slice who) {
    if (!slotSourceCancelAll(slotMigrationNow())) return false;
    logNotice("Canceled all in progress slot migrations (user request from '%.*s')", (int)who.len,
              who.ptr);
    return true;
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
    logNotice("Slot migration %s connection lost", slotMigrationLabel(job).text);
    exportOf(job)->who = NULL;
    slotSourceLost(slotMigrationNow(), job, lost_text);
}

void slotExportEnded(slotJob *job, slice why) {
    str text = strNew(sliceOf(lost_text));
    check(!job->is_import);
    strAppendFormat(&text, " It says: %.*s", (int)why.len, why.ptr);
    logNotice("The target node ends slot migration %s: %.*s", slotMigrationLabel(job).text,
              (int)why.len, why.ptr);
    slotSourceLost(slotMigrationNow(), job, strText(&text));
    strFree(&text);
}

void slotExportClose(slotJob *job) {
    check(job->work);
    exportLinkClose(job);
    exportPackEnd(job);
    strFree(&exportOf(job)->received);
}

void exportFail(slotJob *job, const char *message) {
    slotSourceFail(slotMigrationNow(), job, message);
}

void exportOn(slotJob *job, slotJobEvent event) { slotSourceOn(slotMigrationNow(), job, event); }

/* ------------------------------------------------------------------ output */

static void sendWord(slotJob *job, const char *word) {
    str bytes = slotWordsOf(word);
    exportLinkSend(job, strSlice(&bytes));
    strFree(&bytes);
}

void slotExportSend(slotJob *job, uint32_t acts) {
    slice user_name, password;
    replCredentials(&user_name, &password);
    check(job->work);
    if (acts & JOB_ACT_SEND_AUTH) exportLinkAuth(job, user_name, password);
    if (acts & JOB_ACT_SEND_ESTABLISH) exportLinkEstablish(job);
    if (acts & JOB_ACT_SEND_ACK) sendWord(job, "ACK");
    if (acts & JOB_ACT_SEND_EOF) sendWord(job, "SNAPSHOT-EOF");
    if (acts & JOB_ACT_SEND_PAUSED) sendWord(job, "PAUSED");
    if (acts & JOB_ACT_SEND_GRANTED) sendWord(job, "FAILOVER-GRANTED");
}

int64_t slotExportHeardMs(const slotJob *job) {
    const session *s = exportOf(job)->who;
    return s ? s->active_ms : -1;
}

int64_t slotExportSentMs(void *arg, const slotJob *job) {
    (void)arg;
    return slotMigrationTimeOf(exportOf(job)->sent_any_ms);
}

size_t slotExportUnsentOf(void *arg, const slotJob *job) {
    (void)arg;
    return slotExportUnsent(job);
}

size_t slotExportQueued(void *arg, const slotJob *job) {
    (void)arg;
    return exportStreamUnsent(job);
}

/* ------------------------------------------------------------------ periodic */

static void logProgress(slotJob *job) {
    exportWork *w = exportOf(job);
    int64_t now_ms = engineHot.now_ms;
    if (job->state == JOB_WAITING_SNAPSHOT && now_ms - w->told_ms >= PROGRESS_MS) {
        w->told_ms = now_ms;
        logNotice("Slot migration %s waiting before snapshotting due to active child process.",
                  slotMigrationLabel(job).text);
    }
    slotExportProgress p;
    if (now_ms - w->told_ms < PROGRESS_MS || !slotExportProgressOf(job, &p)) return;
    w->told_ms = now_ms;
    logNotice("Slot migration %s: %.0f %% of %llu keys sent, %.1f MB/s, about %lld s left",
              slotMigrationLabel(job).text,
              p.keys_total ? 100.0 * (double)p.keys_sent / (double)p.keys_total : 100.0,
              (unsigned long long)p.keys_total, p.bytes_per_second / 1048576,
              (long long)p.seconds_left);
}

void slotExportTick(void) {
    hotCheck(threadIsMain());
    for (slotJob *job = exportNext(NULL); job; job = exportNext(job)) {
        logProgress(job);
        if (exportOf(job)->who) exportLinkLimit(job);
    }
}

size_t slotExportMemory(void) {
    size_t bytes = 0;
    if (!slotMigrations.log.active) return 0;
    for (slotJob *job = exportNext(NULL); job; job = exportNext(job)) {
        bytes += exportLinkMemory(job);
    }
    return bytes;
}
