/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Writing the dataset to an RDB file. In the main process or a forked child; one at a time. */
#ifndef PERSIST_RDB_SAVE_H
#define PERSIST_RDB_SAVE_H

#include <stdbool.h>

#include "base/alloc.h"
#include "base/error.h"

/* Writes all databases to `name` in the working directory. The file is replaced only when the new one is complete and
 * on disk. `in_child`: reports progress to the parent. */
status rdbSaveFile(const char *name, bool in_child, reason *why) MUST_USE;
/* Removes the temporary file of a process that has ended. */
void rdbSaveRemoveTemporary(int process);

#endif
