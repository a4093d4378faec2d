/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Segments (segment.h). Invariant: a mark is written after its bytes are on disk, so what precedes
 * the last mark in the file is complete after any crash. */
#include "tools/backup/segment.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/base.h"
#include "base/clock.h"
#include "io/append_file.h"
#include "io/file.h"
#include "io/file_stream.h"

enum { STEP_BYTES = 256 * 1024 };

static status writeAll(int fd, const char *bytes, size_t len, reason *why) {
    while (len > 0) {
        ssize_t count = write(fd, bytes, len);
        if (count < 0 && errno == EINTR) continue;
        if (count < 0) return reasonSetErrno(why, "cannot write a segment");
        bytes += count;
        len -= (size_t)count;
    }
    return OK;
}

static int openNew(const segmentWriter *w, const char *ending, int flags) {
    str path = STR_EMPTY;
    openSegmentPath(&path, strText(&w->folder), w->segment.first, ending);
    int fd = open(path.ptr, O_WRONLY | O_CREAT | O_CLOEXEC | flags, 0640);
    strFree(&path);
    return fd;
}

status segmentOpen(segmentWriter *w, const char *folder, const char *repl_id, int64_t first,
                   reason *why) {
    *w = (segmentWriter){.folder = strNew(sliceOf(folder)),
                         .segment = {.first = first, .last = first},
                         .opened_ms = clockMonoMs()};
    memcpy(w->segment.repl_id, repl_id, sizeof(w->segment.repl_id));
    w->fd = openNew(w, "aof", O_TRUNC);
    w->marks_fd = openNew(w, "marks", O_TRUNC);
    status st = OK;
    if (w->fd < 0 || w->marks_fd < 0) st = reasonSetErrno(why, "cannot create a segment");
    if (st == OK) st = writeAll(w->marks_fd, repl_id, REPL_ID_LEN, why);
    if (st == OK) st = writeAll(w->marks_fd, "\n", 1, why);
    if (st != OK) segmentLeave(w);
    return st;
}

status segmentAdd(segmentWriter *w, const char *bytes, size_t len, reason *why) {
    status st = writeAll(w->fd, bytes, len, why);
    if (st == OK) w->segment.last += (int64_t)len;
    return st;
}

void segmentMark(segmentWriter *w, backupMark mark) {
    if (mark.offset >= w->segment.first) marksAdd(&w->waiting, mark);
}

status segmentSync(segmentWriter *w, reason *why) {
    int ready = 0;
    while (ready < w->waiting.count && w->waiting.list[ready].offset <= w->segment.last) ready++;
    if (!ready) return OK;
    str lines = STR_EMPTY;
    status st = fileSync(w->fd) < 0 ? reasonSetErrno(why, "cannot flush a segment") : OK;
    for (int i = 0; i < ready; i++)
        strAppendFormat(&lines, "%" PRId64 " %" PRId64 "\n", w->waiting.list[i].time_ms,
                        w->waiting.list[i].offset);
    if (st == OK) st = writeAll(w->marks_fd, lines.ptr, lines.len, why);
    if (st == OK && fileSync(w->marks_fd) < 0) st = reasonSetErrno(why, "cannot flush marks");
    strFree(&lines);
    if (st != OK) return st;
    for (int i = 0; i < ready; i++) marksAdd(&w->segment.marks, w->waiting.list[i]);
    w->waiting.count -= ready;
    memmove(w->waiting.list, w->waiting.list + ready,
            sizeof(*w->waiting.list) * (size_t)w->waiting.count);
    return OK;
}

/* ------------------------------------------------------------------ the final form */

static void removeOpen(const char *folder, int64_t first) {
    str path = STR_EMPTY;
    openSegmentPath(&path, folder, first, "aof");
    (void)unlink(path.ptr); /* if it stays, a described segment has the same bytes */
    openSegmentPath(&path, folder, first, "marks");
    (void)unlink(path.ptr);
    strFree(&path);
}

/* Copies the first bytes of an open segment into a part. */
static status storePart(const char *folder, const backupSegment *open, const partForm *form,
                        partInfo *out, reason *why) {
    str path = STR_EMPTY, name = STR_EMPTY;
    fileReader file;
    partWriter writer;
    uint64_t rest = (uint64_t)(open->last - open->first);
    openSegmentPath(&path, folder, open->first, "aof");
    status st = fileReaderOpen(&file, path.ptr, why);
    strFree(&path);
    if (st != OK) return st;
    strAppendFormat(&name, "segment-%020" PRId64 ".aof", open->first);
    st = partWriterOpen(&writer, folder, name.ptr, form, why);
    bool opened = st == OK;
    char *buffer = memAlloc(STEP_BYTES);
    while (st == OK && rest > 0) {
        size_t len = 0;
        st = fileReaderRead(&file, buffer, sizeMin(STEP_BYTES, rest), &len, why);
        if (st == OK && !len) st = reasonSet(why, ERR_IO, "a segment became shorter");
        if (st == OK) st = partWriterAdd(&writer, buffer, len, why);
        rest -= len;
    }
    if (st == OK) {
        st = partWriterEnd(&writer, out, why);
    } else if (opened) {
        partWriterAbort(&writer);
    }
    memFree(buffer);
    fileReaderClose(&file);
    strFree(&name);
    return st;
}

static status upload(const char *folder, const backupSegment *stored, const backupJob *job,
                     reason *why) {
    str json = STR_EMPTY;
    strAppendFormat(&json, "segment-%020" PRId64 ".json", stored->first);
    status st = uploadFile(job, folder, strText(&stored->part.file), why);
    if (st == OK) st = uploadFile(job, folder, json.ptr, why);
    strFree(&json);
    return st;
}

static status store(const char *folder, backupSegment *open, const backupJob *job, reason *why) {
    check(open->last >= open->first);
    status st = OK;
    if (open->last > open->first) {
        partInfoClear(&open->part);
        st = storePart(folder, open, &job->form, &open->part, why);
        if (st == OK) st = segmentInfoSave(open, folder, why);
        if (st == OK) st = upload(folder, open, job, why);
    }
    if (st == OK) removeOpen(folder, open->first);
    return st;
}

void segmentLeave(segmentWriter *w) {
    if (w->fd >= 0) close(w->fd);
    if (w->marks_fd >= 0) close(w->marks_fd);
    w->fd = w->marks_fd = -1;
    strFree(&w->folder);
    marksClear(&w->waiting);
    segmentInfoClear(&w->segment);
}

status segmentEnd(segmentWriter *w, const backupJob *job, reason *why) {
    status st = segmentSync(w, why);
    if (st == OK) st = store(strText(&w->folder), &w->segment, job, why);
    segmentLeave(w);
    return st;
}

/* ------------------------------------------------------------------ after a crash */

/* The described segment with the same first byte, which has all that the open one had. */
static const backupSegment *findStored(const backupChain *chain, int64_t first) {
    for (int i = 0; i < chain->count; i++) {
        if (!chain->segments[i].is_open && chain->segments[i].first == first)
            return &chain->segments[i];
    }
    return NULL;
}

/* Files of a segment that has no mark, of which nothing can be restored. */
static void visitUseless(const char *name, void *arg) {
    const char *folder = arg;
    size_t len = strlen(name);
    backupSegment segment;
    reason why;
    if (strncmp(name, "open-", 5) != 0 || strcmp(name + len - 4, ".aof") != 0) return;
    int64_t first = strtoll(name + 5, NULL, 10);
    if (openSegmentRead(folder, first, &segment, &why) != OK) removeOpen(folder, first);
    segmentInfoClear(&segment);
}

status segmentsRecover(backupChain *chain, const backupJob *job, reason *why) {
    const char *folder = strText(&chain->folder);
    status st = OK;
    for (int i = 0; i < chain->count && st == OK; i++) {
        backupSegment *open = &chain->segments[i];
        if (!open->is_open) continue;
        const backupSegment *stored = findStored(chain, open->first);
        if (stored) {
            st = upload(folder, stored, job, why);
            if (st == OK) removeOpen(folder, open->first);
        } else {
            st = store(folder, open, job, why);
            open->is_open = false;
        }
    }
    if (st == OK) st = folderEach(folder, visitUseless, (void *)folder, why);
    return st;
}
