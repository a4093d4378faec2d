/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Removal of what is older than --keep, and of incomplete chains. One thread. */
#ifndef TOOLS_BACKUP_RETENTION_H
#define TOOLS_BACKUP_RETENTION_H

#include "tools/backup/copy.h"

/* Removes chains that no time since `since_ms` needs: those that another full copy from before that
 * time follows. */
status retentionApply(const backupJob *job, int64_t since_ms, reason *why) MUST_USE;
/* Removes folders of full copies that were not completed. */
status retentionRemoveIncomplete(const backupJob *job, reason *why) MUST_USE;

#endif
