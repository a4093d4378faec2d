/* SPDX-License-Identifier: BSD-3-Clause
 *
 * The jobs of this server that move slots (slot_moves.h): what its both sides share, and what the
 * rest of the server calls. slot_export.h is this node as a source, slot_import.h as a target.
 * Nothing of it costs anything while there is no job. Main thread only. */
#ifndef CLUSTER_SLOT_MIGRATION_H
#define CLUSTER_SLOT_MIGRATION_H

#include <stdbool.h>

#include "base/str.h"
#include "bus/slot_moves.h"
#include "engine/ctx.h"
#include "engine/hooks.h"

extern slotMoves slotMigrations;

/* ------------------------------------------------------------------ for the server */

void slotMigrationInit(void);
/* Before the map is saved (STAGE_LOG): what follows from what has happened in this turn. */
void slotMigrationStep(void);
/* Every 100 ms. */
void slotMigrationTick(int64_t budget_us);
bool slotMigrationIsBusy(void);
/* "import" or "export" while there is such a job, which the slots of this node must not be moved by
 * hand beside; else NULL. */
const char *slotMigrationRuns(void);
/* Implements on_db and on_session. */
void slotMigrationDbEvent(const dbEvent *e);
void slotMigrationSessionEvent(session *s, sessionEvent e);
/* The dataset has been loaded at the start. */
void slotMigrationAfterLoad(void);
/* Memory of the links of exports, or of imports, in bytes. */
size_t slotMigrationMemory(bool exports);
/* DEBUG SLOTMIGRATION: jobs wait before the pause of writes, or before slots are taken. */
void slotMigrationHold(bool before_pause, bool on);

/* ------------------------------------------------------------------ for both sides */

/* The jobs, with the time and the directives as they are now: for calls of slot_source.h and
 * slot_target.h. */
slotMoves *slotMigrationNow(void);
/* The time of the jobs, which does not jump, for one of engineHot.now_ms. */
int64_t slotMigrationTimeOf(int64_t at_ms);
/* A job begins or ends, in its new state: others are told. */
void slotMigrationSignal(const slotJob *job);
/* How a job is named in logs. */
slotJobLabel slotMigrationLabel(const slotJob *job);
/* Appends CLUSTER SYNCSLOTS and the words as a request. */
void slotWordsAppend(str *out, int count, const slice *words);
/* The same for one word. */
str slotWordsOf(const char *word);

#endif
