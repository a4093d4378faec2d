/* SPDX-License-Identifier: BSD-3-Clause
 *
 * This node as the target of slots: the link of a source is a stream of changes (engine/stream.h),
 * whose keys stay hidden until this node takes the slots over. What arrives is passed on unchanged
 * to the replicas, which hide the same slots until FINISH. Main thread only. */
#ifndef CLUSTER_SLOT_IMPORT_H
#define CLUSTER_SLOT_IMPORT_H

#include <stdbool.h>
#include <stddef.h>

#include "cluster/slot_job.h"
#include "engine/ctx.h"
#include "engine/hooks.h"
#include "engine/slot_imports.h"

extern const slotImportKeeper slotImportKeeperOfCluster;
/* SYNCSLOTS ESTABLISH: makes the session of the command a link. `ranges` move to the job. */
void slotImportBegin(ctx *c, slice name, slice source, slotRanges *ranges);
/* The same as the primary of this replica tells it, or the append only file. */
void slotImportFollow(slice name, slotRanges *ranges);
/* The job of a link; NULL: the session is none. */
slotJob *slotImportOf(const session *s);
/* A word of the source. */
void slotImportOn(slotJob *job, slotJobEvent event);
/* SYNCSLOTS FINISH. */
void slotImportFinish(slotJob *job, bool success, slice message);
/* What is wrong: keys that are hidden are deleted, then the job has failed. */
void slotImportFail(slotJob *job, const char *message);
void slotImportFailAll(const char *message);

void slotImportStep(void);
void slotImportTick(void);
/* The session ends; no effect if it is none of the links. */
void slotImportLost(const session *s);
/* Ends all links, and shows all slots: the dataset is going to be replaced. */
void slotImportForget(void);
/* Hides the slots of all jobs, after a dataset was loaded. */
void slotImportHideAll(void);
/* The dataset was loaded at the start. */
void slotImportAfterLoad(void);
size_t slotImportMemory(void);

#endif
