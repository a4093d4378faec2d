/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Builds a folder that a server starts on from a chain: dump.rdb if the asked state is that of the
 * full copy, else an append only file, whose base is the full copy and whose increment is the
 * stream up to the last whole unit (a command, or a transaction) that ends at or before the asked
 * offset. One thread. */
#ifndef TOOLS_BACKUP_EXTRACT_H
#define TOOLS_BACKUP_EXTRACT_H

#include "tools/backup/catalog.h"

typedef struct extractResult {
    int64_t offset;    /* after the last unit that was taken */
    uint64_t commands; /* of the stream */
    bool is_aof;       /* start with --appendonly yes */
} extractResult;

/* Verifies the SHA-256 of the parts of a chain that the plan needs. */
status extractVerify(const backupPlan *plan, reason *why) MUST_USE;
/* Builds the folder; `out` must not exist, or be empty. */
status extractBuild(const backupPlan *plan, const partForm *form, const char *out,
                    extractResult *result, reason *why) MUST_USE;
/* Reads the stream up to the plan's offset and the full copy, and writes nothing. */
status extractCheck(const backupPlan *plan, const partForm *form, extractResult *result,
                    reason *why) MUST_USE;

#endif
