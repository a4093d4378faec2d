/* SPDX-License-Identifier: BSD-3-Clause
 *
 * The segment of the stream that is being written. One thread. */
#ifndef TOOLS_BACKUP_SEGMENT_H
#define TOOLS_BACKUP_SEGMENT_H

#include "tools/backup/copy.h"

typedef struct segmentWriter {
    str folder; /* of the chain */
    backupSegment segment;
    backupMarks waiting; /* marks of bytes that have not come, or are not on disk */
    int fd, marks_fd;    /* -1: closed */
    int64_t opened_ms;   /* monotonic */
} segmentWriter;

/* Begins a segment after this offset. */
status segmentOpen(segmentWriter *w, const char *folder, const char *repl_id, int64_t first,
                   reason *why) MUST_USE;
status segmentAdd(segmentWriter *w, const char *bytes, size_t len, reason *why) MUST_USE;
/* The server had this offset at this time; its bytes may come later. */
void segmentMark(segmentWriter *w, backupMark mark);
/* Flushes bytes, then the marks whose bytes are there, to disk. */
status segmentSync(segmentWriter *w, reason *why) MUST_USE;
/* Flushes all, stores the segment in its final form and describes it. One without bytes is
 * removed. Closes the files also after a failure: segmentsRecover() completes it later. */
status segmentEnd(segmentWriter *w, const backupJob *job, reason *why) MUST_USE;
/* Closes the files. */
void segmentLeave(segmentWriter *w);
/* Completes the open segments of a chain that a former process has left: each is cut after its last
 * mark. */
status segmentsRecover(backupChain *chain, const backupJob *job, reason *why) MUST_USE;

#endif
