/* SPDX-License-Identifier: BSD-3-Clause
 *
 * This node as the source of slots: a connection to the target per job, over which go the keys of
 * the slots as of one moment (slot_walk.h) and all later changes of them, in order. During the
 * hand-over only writes to these slots wait. Main thread only. */
#ifndef CLUSTER_SLOT_EXPORT_H
#define CLUSTER_SLOT_EXPORT_H

#include <stdbool.h>
#include <stddef.h>

#include "cluster/slot_job.h"
#include "engine/hooks.h"

/* Changes of slots that are moved; armed while there are any. */
extern const sink slotExportSink;

/* A new job: connects to the target in the next step. `ranges` move to it. */
void slotExportBegin(slotRanges *ranges, const clusterNode *target, slice who);
/* Ends all jobs by order of a user; false if there are none. */
bool slotExportCancelAll(slice who);
void slotExportFailAll(const char *message);
/* The job of a link; NULL: the session is none. */
slotJob *slotExportOf(const session *s);
/* A word of the target. */
void slotExportOn(slotJob *job, slotJobEvent event);
/* Bytes of a job that were not sent yet. */
size_t slotExportUnsent(const slotJob *job);

/* The owners of slots have changed. */
void slotExportCheckOwners(void);
void slotExportStep(void);
void slotExportTick(void);
/* The session ends; no effect if it is none of the links. */
void slotExportLost(const session *s);
size_t slotExportMemory(void);

#endif
