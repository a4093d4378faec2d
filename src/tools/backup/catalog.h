/* SPDX-License-Identifier: BSD-3-Clause
 *
 * The content of a backup's folder, for one server or one shard of a cluster:
 *
 *   full-20261128T140300.000Z-4711/       a chain: a full copy and the stream after it
 *     full.json                           its description; a chain without one is incomplete
 *     dump.rdb, dump.rdb.zst.age          the full copy, as it is stored (part.h)
 *     segment-00000000000000004711.json   the stream after offset 4711: offsets, marks, SHA-256
 *     segment-00000000000000004711.aof
 *     open-00000000000000009422.aof       the segment that is being written, always plain
 *     open-00000000000000009422.marks     its marks, one a line, each after its bytes are on disk
 *
 * A mark tells which offset the stream had at a time of the server's clock. The folder of a cluster
 * has a folder shard-<id> for each shard. One thread. */
#ifndef TOOLS_BACKUP_CATALOG_H
#define TOOLS_BACKUP_CATALOG_H

#include <stdbool.h>
#include <stdint.h>

#include "base/alloc.h"
#include "base/error.h"
#include "base/str.h"
#include "tools/backup/part.h"

enum { REPL_ID_LEN = 40 };
#define FULL_FILE "full.json"

typedef struct backupMark {
    int64_t time_ms, offset;
} backupMark;

typedef struct backupMarks {
    backupMark *list;
    int count, cap;
} backupMarks;

void marksAdd(backupMarks *marks, backupMark mark);
void marksClear(backupMarks *marks);
/* How far the server's clock was set forward, or back if negative, between two marks that were
 * taken at these monotonic times; 0: it was not, as far as the way to the server lets tell. */
int64_t marksClockStep(backupMark before, int64_t before_mono_ms, backupMark now,
                       int64_t now_mono_ms);
/* "[[1790000000123,4711],...]" */
void marksPrint(const backupMarks *marks, str *out);
void marksParse(slice text, backupMarks *out);

/* Bytes of the stream after the offset `first` up to `last`. */
typedef struct backupSegment {
    char repl_id[REPL_ID_LEN + 1];
    int64_t first, last;
    backupMarks marks;
    partInfo part;
    bool is_open; /* not yet described: `part` has the name only */
} backupSegment;

/* A full copy. */
typedef struct backupFull {
    char repl_id[REPL_ID_LEN + 1];
    int64_t offset, time_ms;
    str server, version, source, slots, shard;
    partInfo part;
} backupFull;

typedef struct backupChain {
    str folder;
    backupFull full;
    backupSegment *segments; /* by `first` */
    int count;
} backupChain;

typedef struct backupCatalog {
    backupChain *chains; /* by the time of the full copy */
    int count;
    str *problems; /* descriptions that cannot be used, a line each */
    int problem_count;
} backupCatalog;

void fullClear(backupFull *full);
status fullSave(const backupFull *full, const char *folder, reason *why) MUST_USE;
void segmentInfoClear(backupSegment *segment);
status segmentInfoSave(const backupSegment *segment, const char *folder, reason *why) MUST_USE;
/* Names of the files of an open segment, in `folder`. */
void openSegmentPath(str *out, const char *folder, int64_t first, const char *ending);
/* Reads an open segment: what of it is certainly on disk, that is up to its last mark. */
status openSegmentRead(const char *folder, int64_t first, backupSegment *out, reason *why) MUST_USE;

/* Fails if the folder cannot be read; damaged descriptions are among the problems. */
status catalogLoad(const char *folder, backupCatalog *out, reason *why) MUST_USE;
void catalogClear(backupCatalog *catalog);
/* Removes a chain, its description first: after a crash an incomplete chain remains. */
status chainRemove(const char *folder, reason *why) MUST_USE;
/* The offset up to which the chain has the whole stream. */
int64_t chainEnd(const backupChain *chain);
/* Time of the last mark up to there; that of the full copy, if there is none. */
int64_t chainEndTime(const backupChain *chain);

/* What is to be restored. */
typedef enum planGoal { PLAN_LATEST, PLAN_TIME, PLAN_OFFSET } planGoal;
typedef struct backupPlan {
    const backupChain *chain;
    int64_t offset;  /* the stream is cut there, or at the last whole unit before */
    int64_t time_ms; /* of that offset, by the server's clock; -1: not known */
    /* The clock was set back: the asked time exists twice, and the later one was taken. */
    bool is_ambiguous;
} backupPlan;
/* The last state that existed at a time, or at an offset of the newest chain that has it.
 * ERR_NOT_FOUND: there is none. */
status catalogPlan(const backupCatalog *catalog, planGoal goal, int64_t value, backupPlan *out,
                   reason *why) MUST_USE;

/* Folders of the shards of a cluster, or the folder itself; `visit` fails or returns OK. */
typedef status shardVisit(const char *folder, const char *name, void *arg, reason *why);
status catalogEachShard(const char *target, shardVisit *visit, void *arg, reason *why) MUST_USE;

/* "2026-11-28 14:03:00.123" in UTC. */
enum { TIME_TEXT_MAX = 40 };
const char *timePrint(int64_t time_ms, char out[TIME_TEXT_MAX]);
/* Reads such a text, with "T" or a blank, with or without a fraction and "Z"; or a Unix time in
 * seconds. */
bool timeParse(const char *text, int64_t *time_ms);
/* "90", "15m", "24h", "7d": seconds. */
bool durationParse(const char *text, int64_t *seconds);

#endif
