/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Compaction: moves objects and blocks together, so that slabs which are mostly free can be
 * returned. Main thread only. */
#ifndef STORE_COMPACT_H
#define STORE_COMPACT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Memory of all keyspaces, and how much of it compaction could return. */
typedef struct storeWaste {
    size_t live;        /* in use */
    size_t recoverable; /* part of `holes` that compaction can recover */
    size_t holes;       /* free slots between used ones */
    size_t empty;       /* kept for reuse, returned soon */
    size_t metadata;    /* counted as used */
    size_t opened;      /* part of `metadata` in reserved ranges, as the blocks themselves */
} storeWaste;
void storeGetWaste(storeWaste *out);
/* Parameters of compaction. */
typedef struct storeCompaction {
    int64_t budget_us;  /* approximate time limit */
    size_t fields_max;  /* elements of one collection visited between two reads of the clock */
    bool only_if_worth; /* do nothing if less than 1/16 of the live memory can be recovered */
    bool heap;          /* also move blocks outside the slabs, if the allocator supports it */
} storeCompaction;
typedef struct storeCompactReport { /* calls add to it */
    uint64_t moved, kept;           /* blocks of any kind */
    uint64_t keys_moved, keys_kept; /* key objects */
} storeCompactReport;
/* Moves objects, elements and blocks of the main keyspace together; it must be in use. False when
 * nothing more can be won. Does nothing while a child lives. No pointer to an object or value
 * outlives it. */
bool storeCompact(const storeCompaction *plan, storeCompactReport *report);

#endif
