/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Functions of jobs for the engine. Main thread only. */
#ifndef ENGINE_JOB_PRIV_H
#define ENGINE_JOB_PRIV_H

#include <stdbool.h>
#include <stdint.h>

#include "store/store.h"

/* True if a job reads the key with this hash in this database; NULL: in any. */
bool jobReads(const db *d, uint64_t hash);
extern unsigned jobsChanging; /* jobs that change keys in place */
/* True if a job changes it in place. */
bool jobChanges(const db *d, uint64_t hash);

#endif
