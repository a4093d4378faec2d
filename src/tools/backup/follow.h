/* SPDX-License-Identifier: BSD-3-Clause
 *
 * --follow: a full copy and the stream after it, until the program is interrupted. */
#ifndef TOOLS_BACKUP_FOLLOW_H
#define TOOLS_BACKUP_FOLLOW_H

#include "tools/backup/copy.h"

/* Returns the exit code. Failures of the server or of the target are reported and tried again; only
 * wrong use ends it. */
int followRun(const backupJob *job, const char *host, int port);

#endif
