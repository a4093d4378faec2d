/* SPDX-License-Identifier: BSD-3-Clause
 *
 * The states of a job that moves slots, as a table of events (slot_job.h), and the log of jobs.
 *
 * Invariant: slotLog.active is the number of jobs that have not ended. A job that has ended accepts
 * no event. */
#include "bus/slot_job.h"

#include <string.h>

#include "base/base.h"
#include "base/random.h"

/* ------------------------------------------------------------------ states */

static const char *const names[JOB_STATES] = {
    [JOB_CONNECTING] = "connecting",
    [JOB_SENDING_AUTH] = "sending-auth-command",
    [JOB_READING_AUTH] = "reading-auth-response",
    [JOB_SENDING_ESTABLISH] = "sending-establish-command",
    [JOB_READING_ESTABLISH] = "reading-establish-response",
    [JOB_WAITING_SNAPSHOT] = "waiting-to-snapshot",
    [JOB_SNAPSHOTTING] = "snapshotting",
    [JOB_REPLICATING] = "replicating",
    [JOB_WAITING_PAUSE] = "waiting-to-pause",
    [JOB_PAUSED] = "failover-paused",
    [JOB_GRANTED] = "failover-granted",
    [JOB_WAITING_ACK] = "waiting-for-ack",
    [JOB_RECEIVING] = "receiving-snapshot",
    [JOB_WAITING_PAUSED] = "waiting-for-paused",
    [JOB_REQUESTED] = "failover-requested",
    [JOB_TAKING] = "failover-granted",
    [JOB_CLEANING] = "cleaning-up",
    [JOB_ON_PRIMARY] = "occurring-on-primary",
    [JOB_SUCCESS] = "success",
    [JOB_FAILED] = "failed",
    [JOB_CANCELLED] = "cancelled",
};

const char *slotJobStateName(slotJobState state) {
    check(state < JOB_STATES);
    return names[state];
}

typedef struct jobRow {
    slotJobState state;
    slotJobEvent event;
    slotJobState next;
    uint32_t acts;
} jobRow;

static const jobRow rows[] = {
    {JOB_CONNECTING, JOB_OPENED, JOB_SENDING_ESTABLISH, JOB_ACT_SEND_ESTABLISH},
    {JOB_SENDING_AUTH, JOB_SENT, JOB_READING_AUTH, 0},
    {JOB_READING_AUTH, JOB_REPLIED_OK, JOB_SENDING_ESTABLISH, JOB_ACT_SEND_ESTABLISH},
    {JOB_SENDING_ESTABLISH, JOB_SENT, JOB_READING_ESTABLISH, 0},
    {JOB_READING_ESTABLISH, JOB_REPLIED_OK, JOB_WAITING_SNAPSHOT, JOB_ACT_SEND_ACK},
    {JOB_WAITING_SNAPSHOT, JOB_SNAPSHOT_BEGINS, JOB_SNAPSHOTTING, 0},
    {JOB_SNAPSHOTTING, JOB_SNAPSHOT_SENT, JOB_REPLICATING, JOB_ACT_SEND_EOF},
    {JOB_REPLICATING, JOB_REQUEST_PAUSE, JOB_WAITING_PAUSE, 0},
    {JOB_WAITING_PAUSE, JOB_DRAINED, JOB_PAUSED, JOB_ACT_PAUSE | JOB_ACT_SEND_PAUSED},
    {JOB_PAUSED, JOB_REQUEST_FAILOVER, JOB_GRANTED, JOB_ACT_PAUSE | JOB_ACT_SEND_GRANTED},
    {JOB_GRANTED, JOB_OWNER_SEEN, JOB_SUCCESS, JOB_ACT_END},
    {JOB_WAITING_ACK, JOB_ACK, JOB_RECEIVING, 0},
    {JOB_RECEIVING, JOB_SNAPSHOT_EOF, JOB_WAITING_PAUSED, JOB_ACT_SEND_REQUEST_PAUSE},
    {JOB_WAITING_PAUSED, JOB_PAUSED_WORD, JOB_REQUESTED, JOB_ACT_SEND_REQUEST_FAILOVER},
    {JOB_REQUESTED, JOB_GRANTED_WORD, JOB_TAKING, JOB_ACT_TAKE},
    {JOB_TAKING, JOB_TAKEN, JOB_SUCCESS, JOB_ACT_END},
    {JOB_CLEANING, JOB_CLEANED, JOB_FAILED, JOB_ACT_END},
};

bool slotJobOn(slotJobState state, slotJobEvent event, bool has_auth, slotJobState *next,
               uint32_t *acts) {
    check(state < JOB_STATES);
    *next = state;
    *acts = 0;
    if (event == JOB_ACK && state != JOB_WAITING_ACK) return state < JOB_ON_PRIMARY;
    for (size_t i = 0; i < COUNT_OF(rows); i++) {
        if (rows[i].state != state || rows[i].event != event) continue;
        *next = rows[i].next;
        *acts = rows[i].acts;
        if (event == JOB_OPENED && has_auth) {
            *next = JOB_SENDING_AUTH;
            *acts = JOB_ACT_SEND_AUTH;
        }
        return true;
    }
    return false;
}

bool slotJobIsActive(const slotJob *job) { return job->state < JOB_SUCCESS; }

/* ------------------------------------------------------------------ the log */

void slotLogInit(slotLog *log) {
    listInit(&log->jobs);
    log->active = 0;
}

static void freeJob(slotJob *job) {
    check(!job->work);
    slotRangesClear(&job->ranges);
    strFree(&job->message);
    memFree(job);
}

void slotLogRemove(slotLog *log, slotJob *job) {
    check(!slotJobIsActive(job));
    listRemove(&log->jobs, &job->node);
    freeJob(job);
}

void slotLogClear(slotLog *log) {
    for (listNode *n; (n = listFirst(&log->jobs)) != NULL;) {
        listRemove(&log->jobs, n);
        freeJob(slotJobOf(n));
    }
    log->active = 0;
}

slotJob *slotLogAdd(slotLog *log, bool is_import, slice name, slotRanges *ranges, int64_t now_s) {
    check(ranges->count > 0);
    slotJob *job = memNew(slotJob);
    if (name.len) {
        check(name.len == SLOT_IMPORT_NAME_LEN);
        memcpy(job->name, name.ptr, SLOT_IMPORT_NAME_LEN);
    } else {
        randomHex(job->name, SLOT_IMPORT_NAME_LEN);
    }
    job->is_import = is_import;
    job->ranges = *ranges;
    *ranges = (slotRanges){.items = NULL};
    job->state = is_import ? JOB_WAITING_ACK : JOB_CONNECTING;
    job->created_s = job->updated_s = job->acked_s = now_s;
    listPrepend(&log->jobs, &job->node);
    log->active++;
    return job;
}

slotJob *slotLogNext(const slotLog *log, const slotJob *after, bool is_import) {
    listNode *n = after ? listNext(&log->jobs, &after->node) : listFirst(&log->jobs);
    for (; n; n = listNext(&log->jobs, n)) {
        slotJob *job = slotJobOf(n);
        check(job != after);
        if (job->is_import == is_import && slotJobIsActive(job)) return job;
    }
    return NULL;
}

slotJob *slotLogFind(const slotLog *log, slice name) {
    if (name.len != SLOT_IMPORT_NAME_LEN) return NULL;
    for (listNode *n = listFirst(&log->jobs); n; n = listNext(&log->jobs, n)) {
        if (!memcmp(slotJobOf(n)->name, name.ptr, SLOT_IMPORT_NAME_LEN)) return slotJobOf(n);
    }
    return NULL;
}

slotJob *slotLogOverlapping(const slotLog *log, const slotRanges *ranges) {
    if (!log->active) return NULL;
    for (listNode *n = listFirst(&log->jobs); n; n = listNext(&log->jobs, n)) {
        slotJob *job = slotJobOf(n);
        if (slotJobIsActive(job) && slotRangesOverlap(&job->ranges, ranges)) return job;
    }
    return NULL;
}

void slotLogTrim(slotLog *log, size_t most) {
    listNode *at = listIsEmpty(&log->jobs) ? NULL : log->jobs.head.prev;
    while (at && at != &log->jobs.head && log->jobs.count > most) {
        listNode *newer = at->prev;
        if (!slotJobIsActive(slotJobOf(at))) slotLogRemove(log, slotJobOf(at));
        at = newer;
    }
}

void slotLogSetState(slotLog *log, slotJob *job, slotJobState state, int64_t now_s) {
    check(slotJobIsActive(job));
    check(log->active > 0);
    job->state = state;
    job->updated_s = now_s;
    if (!slotJobIsActive(job)) log->active--;
}
