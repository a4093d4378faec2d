/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Writing the dataset to an RDB file. In the main process or a forked child; one at a time. */
#ifndef PERSIST_RDB_SAVE_H
#define PERSIST_RDB_SAVE_H

#include <stdbool.h>

#include "base/alloc.h"
#include "base/error.h"

/* What to write and where. */
typedef struct rdbSaveJob {
    const char *temporary; /* the path during writing */
    const char *name;      /* the final path */
    bool in_child;         /* reports progress to the parent */
    bool is_aof_base;
    bool as_commands; /* writes commands instead of the RDB format */
    bool syncs;       /* flushes to disk while it writes, not only at the end */
} rdbSaveJob;

/* Writes all databases to a file, which is replaced only when the new one is complete and on disk. */
status rdbSaveTo(const rdbSaveJob *job, reason *why) MUST_USE;
/* The same for a snapshot named `name` in the working directory. */
status rdbSaveFile(const char *name, bool in_child, reason *why) MUST_USE;
/* Removes the temporary file of a process that has ended. */
void rdbSaveRemoveTemporary(int process);

#endif
