/* SPDX-License-Identifier: BSD-3-Clause
 *
 * This node as the source of slots (slot_source.h): a connection to the target per job, over which
 * go the keys of the slots as of one moment (slot_walk.h) and all later changes of them, in order.
 * During the hand-over only writes to these slots wait. Main thread only. */
#ifndef CLUSTER_SLOT_EXPORT_H
#define CLUSTER_SLOT_EXPORT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "bus/slot_job.h"
#include "engine/hooks.h"

/* Changes of slots that are moved; armed while there are any. */
extern const sink slotExportSink;

/* A new job. `ranges` move to it. */
void slotExportBegin(slotRanges *ranges, const clusterNode *target, slice who);
/* Ends all jobs by order of a user; false if there are none. */
bool slotExportCancelAll(slice who);
/* The job of a link; NULL: the session is none. */
slotJob *slotExportOf(const session *s);
/* Bytes of a job that were not sent yet. */
size_t slotExportUnsent(const slotJob *job);
typedef struct slotExportProgress {
    uint64_t keys_total, keys_sent, bytes_sent;
    double bytes_per_second;
    int64_t seconds_left;
} slotExportProgress;
/* How far the keys of a job have been sent. False: they are not being sent now. */
bool slotExportProgressOf(const slotJob *job, slotExportProgress *out);
void slotExportTick(void);
/* Compresses what the links were given in this turn. */
void slotExportPack(void);
/* The session ends; no effect if it is none of the links. */
void slotExportLost(const session *s);
/* The target has told why it ends the job. */
void slotExportEnded(slotJob *job, slice why);
size_t slotExportMemory(void);

/* ---- slotMovesProcs, for slot_migration.c ---- */

void slotExportSend(slotJob *job, uint32_t acts);
void slotExportClose(slotJob *job);
int64_t slotExportHeardMs(const slotJob *job);
void slotExportConnect(void *arg, slotJob *job);
bool slotExportCanStream(void *arg, const slotJob *job);
void slotExportBeginStream(void *arg, slotJob *job);
void slotExportEndStream(void *arg, slotJob *job);
size_t slotExportUnsentOf(void *arg, const slotJob *job);
size_t slotExportQueued(void *arg, const slotJob *job);
uint64_t slotExportSentKeys(void *arg, const slotJob *job);
int64_t slotExportSentMs(void *arg, const slotJob *job);
void slotExportPause(void *arg);

#endif
