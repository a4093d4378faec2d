/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Writing the dataset to an RDB file. In the main process or a forked child; one at a time. */
#ifndef PERSIST_RDB_SAVE_H
#define PERSIST_RDB_SAVE_H

#include <stdbool.h>

#include "base/alloc.h"
#include "base/error.h"

/* Writes all databases to `name` in the working directory: complete and on disk, or not at all. `in_child`: reports its
 * progress to the parent. */
status rdbSaveFile(const char *name, bool in_child, reason *why) MUST_USE;
/* Removes what a process that ended has left of its temporary file. */
void rdbSaveRemoveTemporary(int process);

#endif
