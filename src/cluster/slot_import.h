/* SPDX-License-Identifier: BSD-3-Clause
 *
 * This node as the target of slots (slot_target.h): the link of a source is a stream of changes
 * (engine/stream.h), whose keys stay hidden until this node takes the slots over. The stream is
 * passed on unchanged to the replicas, which hide the same slots until FINISH. Main thread only. */
#ifndef CLUSTER_SLOT_IMPORT_H
#define CLUSTER_SLOT_IMPORT_H

#include <stdbool.h>
#include <stddef.h>

#include "bus/slot_job.h"
#include "engine/ctx.h"
#include "engine/hooks.h"
#include "format/slot_imports.h"

extern const slotImportKeeper slotImportKeeperOfCluster;
/* The primary of this replica, or a file, says that slots are moving to it. No effect if the job is
 * known, and has not ended. */
void slotImportFollow(slice name, slotRanges *ranges);
/* SYNCSLOTS ESTABLISH: makes the session of the command a link. `ranges` move to the job. `codecs`:
 * those by which the source can compress the stream (slot_pack.h). */
void slotImportBegin(ctx *c, slice name, slice source, slotRanges *ranges, slice codecs);
/* The job of a link; NULL: the session is none. */
slotJob *slotImportOf(const session *s);
/* The session ends; no effect if it is none of the links. */
void slotImportLost(const session *s);
size_t slotImportMemory(void);

/* ---- slotMovesProcs, for slot_migration.c ---- */

void slotImportSend(const slotJob *job, uint32_t acts);
void slotImportClose(slotJob *job);
int64_t slotImportHeardMs(const slotJob *job);
void slotImportHide(void *arg, const slotJob *job, bool on);
bool slotImportClean(void *arg, slotJob *job);
void slotImportFinished(void *arg, const slotJob *job);
void slotImportTellAll(void *arg);
bool slotImportIsStill(void *arg);
void slotImportMark(void *arg, slotJob *job);
bool slotImportIsBehind(void *arg, const slotJob *job);
bool slotImportLacksQuorum(void *arg, const slotJob *job);
uint64_t slotImportKeys(void *arg, int slot);
bool slotImportDeletes(void *arg);

#endif
