/* SPDX-License-Identifier: BSD-3-Clause
 *
 * The state of a save in slices, shared by inline_save.c (start, end, stage), inline_save_walk.c
 * (how far the walk gets in a turn) and inline_save_write.c (what is written for each key).
 *
 * Invariants: `runs` is set if and only if the current child is ours; `job.stream` exists while it
 * is. `job.walks` implies `runs`, and so does `job.in_value`. The costs of a job can be read until
 * the next one starts. */
#ifndef PERSIST_INLINE_SAVE_PRIV_H
#define PERSIST_INLINE_SAVE_PRIV_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/error.h"
#include "base/str.h"
#include "format/rdb_file.h"
#include "format/rdb_value.h"
#include "persist/inline_save.h"
#include "persist/snapshot_stream.h"
#include "store/saving.h"

/* A database as of the start. */
typedef struct savedDb {
    uint64_t keys, volatile_keys;
    bool announced; /* its size was written */
} savedDb;

/* What a job has cost. */
typedef struct jobCosts {
    int64_t main_us, longest_us; /* of the walk: in all turns; in the longest one */
    uint64_t early;              /* keys written before a change */
    uint64_t divided;            /* values written in parts */
    size_t excess_peak;          /* bytes beyond the fixed memory */
} jobCosts;

typedef struct inlineJob {
    inlineSave save; /* its texts are owned */
    snapshotStream *stream;
    rdbRecords records;
    savedDb *dbs;
    int db_count;
    int db_id;         /* selected in the stream; -1: none */
    bool walks, taken; /* taken: the receivers have everything */
    /* The buffer of the block that had room when it was tested; NULL: test again. */
    const char *roomy_block;
    status failed; /* of a key */
    reason failed_why;
    /* A value that is being written in parts: other keys go to the side writer. */
    bool in_value;
    rdbType value_type;
    rdbStreamRest stream_rest;
    uint64_t elements; /* written so */
    uint64_t keys_done, keys_total;
    /* What the walk may and has to do. */
    int64_t left_us;     /* when the stage was left last */
    int64_t resume_us;   /* rdb-key-save-delay: no step before this time */
    uint64_t owed;       /* buckets that the walk has to visit */
    uint64_t added_paid; /* new keys for which it has */
    size_t excess_paid;  /* bytes likewise */
    bool is_pressed;     /* inlineSaveIsPressed() */
    bool pauses;         /* writes wait */
    bool found_large;    /* a value that is left to a child */
    jobCosts costs;
} inlineJob;

/* The value that was found too large last. */
typedef struct largeValue {
    str key;
    int db_id; /* -1: none */
} largeValue;

typedef struct inlineSaver {
    bool runs;
    inlineJob job; /* the current one, else the last one */
    largeValue large;
    /* What a killed job has left behind. */
    snapshotStream *ending;
    char *unwanted; /* a file of `ending` to be removed */
    bool has_stage; /* registered */
    uint64_t count; /* of temporary names */
    uint64_t fallbacks;
} inlineSaver;

extern inlineSaver inlineSaving;

/* ------------------------------------------------------------------ inline_save.c */

/* The walk writes no more keys. */
void inlineJobEndWalk(inlineJob *job);

/* ------------------------------------------------------------------ inline_save_write.c */

/* What the walk calls. */
extern const storeSaver inlineSaveCallbacks;
/* True if the dataset still has the value that was found last. */
bool inlineJobLargeExists(largeValue *large, bool as_commands);

/* ------------------------------------------------------------------ inline_save_walk.c */

/* Bytes put aside beyond the fixed memory. */
size_t inlineJobExcess(const inlineJob *job);
/* Begins or ends a pause of writes. */
void inlineJobPause(inlineJob *job, bool on);
/* Called within a batch of requests, too: then the next write waits if too much is put aside. */
void inlineJobLimit(inlineJob *job);
/* Acts on what was put aside beyond the fixed memory. False: the job is to be given up. */
bool inlineJobCheckExcess(inlineJob *job, reason *why);
/* Gives the walk its share of the time since the last turn. It stops while the stream has no
 * room. */
void inlineJobWalk(inlineJob *job, int64_t now_us);
/* After a job was given up: the walk removes its marks, in the same share of the time. */
void inlineJobClean(const inlineJob *job, int64_t now_us);

#endif
