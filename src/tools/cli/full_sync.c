/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Full synchronisation (full_sync.h). */
#define _GNU_SOURCE /* memmem() */
#include "tools/cli/full_sync.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "tools/cli/interrupt.h"

/* Receives at least one byte into the buffer, at most a part. False after a failure and after
 * Ctrl-C. */
static bool readPart(valkeyContext *context, fullSync *s) {
    size_t room = sizeof(s->buffer) - s->buffered;
    for (;;) {
        interruptWait(context, -1);
        if (interruptPending()) return false;
        ssize_t count = context->funcs->read(context, s->buffer + s->buffered, room);
        if (count < 0) return false;
        s->buffered += (size_t)count;
        if (count > 0) return true;
    }
}

/* Removes bytes from the start of the buffer. */
static void drop(fullSync *s, size_t len) {
    s->buffered -= len;
    memmove(s->buffer, s->buffer + len, s->buffered);
}

bool fullSyncSend(valkeyContext *context) {
    int done = 0;
    while (!done) {
        if (valkeyBufferWrite(context, &done) != VALKEY_OK) return false;
    }
    return true;
}

bool fullSyncReadLine(valkeyContext *context, fullSync *s) {
    size_t len;
    do { /* empty lines are sent while the server prepares the snapshot */
        const char *end;
        while (!(end = memchr(s->buffer, '\n', s->buffered))) {
            if (s->buffered >= sizeof(s->line) || !readPart(context, s)) return false;
        }
        size_t taken = (size_t)(end - s->buffer) + 1;
        len = taken - 1;
        if (len > 0 && s->buffer[len - 1] == '\r') len--;
        if (len >= sizeof(s->line)) len = sizeof(s->line) - 1;
        memcpy(s->line, s->buffer, len);
        s->line[len] = '\0';
        drop(s, taken);
    } while (len == 0);
    return true;
}

bool fullSyncHasSnapshot(fullSync *s) {
    static const char mark[] = "$EOF:";
    const size_t mark_len = sizeof(mark) - 1;
    if (s->line[0] != '$') return false;
    s->has_marker =
        !strncmp(s->line, mark, mark_len) && strlen(s->line) == mark_len + FULL_SYNC_MARKER_LEN;
    if (s->has_marker) {
        memcpy(s->marker, s->line + mark_len, FULL_SYNC_MARKER_LEN);
    } else {
        s->length = strtoull(s->line + 1, NULL, 10);
    }
    return true;
}

/* Number of bytes at the start of the buffer that belong to the snapshot; the last ones may be part
 * of the marker. */
static size_t snapshotPart(const fullSync *s, uint64_t received, bool *ended) {
    if (!s->has_marker) {
        uint64_t left = s->length - received;
        *ended = s->buffered >= left;
        return *ended ? (size_t)left : s->buffered;
    }
    const char *end = memmem(s->buffer, s->buffered, s->marker, FULL_SYNC_MARKER_LEN);
    *ended = end != NULL;
    if (end) return (size_t)(end - s->buffer);
    return s->buffered > FULL_SYNC_MARKER_LEN ? s->buffered - FULL_SYNC_MARKER_LEN : 0;
}

bool fullSyncReceive(valkeyContext *context, fullSync *s, const fullSyncSink *sink, jobProgress *p,
                     uint64_t *received) {
    bool ended;
    *received = 0;
    for (;;) {
        size_t len = snapshotPart(s, *received, &ended);
        if (sink && !sink->write(sink->arg, s->buffer, len)) return false;
        *received += len;
        drop(s, len + (ended && s->has_marker ? FULL_SYNC_MARKER_LEN : 0));
        if (ended) return true;
        if (p) jobProgressAt(p, *received);
        if (!readPart(context, s)) return false;
    }
}

void fullSyncPassRest(valkeyContext *context, fullSync *s) {
    if (s->buffered > 0) valkeyReaderFeed(context->reader, s->buffer, s->buffered);
    s->buffered = 0;
}

/* ------------------------------------------------------------------ to a file */

typedef struct fileSink {
    int fd, error; /* errno of the failure; 0: none */
} fileSink;

static bool writeFile(void *arg, const char *bytes, size_t len) {
    fileSink *file = arg;
    while (len > 0) {
        ssize_t count = write(file->fd, bytes, len);
        if (count < 0 && errno == EINTR) continue;
        if (count < 0) {
            file->error = errno;
            return false;
        }
        bytes += count;
        len -= (size_t)count;
    }
    return true;
}

static bool begin(valkeyContext *context, fullSync *s, const char *path) {
    valkeyAppendCommand(context, "SYNC");
    if (!fullSyncSend(context) || !fullSyncReadLine(context, s)) {
        fputs("Error reading bulk length while SYNCing\n", stderr);
        return false;
    }
    if (!fullSyncHasSnapshot(s)) {
        fprintf(stderr, "SYNC with primary failed: %s\n", s->line);
        return false;
    }
    if (s->has_marker) {
        fprintf(stderr,
                "SYNC sent to primary, writing bytes of bulk transfer until EOF marker to '%s'\n",
                path);
    } else {
        fprintf(stderr, "SYNC sent to primary, writing %llu bytes to '%s'\n",
                (unsigned long long)s->length, path);
    }
    return true;
}

bool fullSyncSave(valkeyContext *context, const char *path, progressStyle style) {
    static fullSync s; /* too large for a stack */
    s.buffered = 0;
    if (!begin(context, &s, path)) return false;
    bool to_stdout = !strcmp(path, "-");
    int fd = to_stdout ? STDOUT_FILENO : open(path, O_CREAT | O_WRONLY | O_TRUNC, 0644);
    if (fd < 0) {
        fprintf(stderr, "Error opening '%s': %s\n", path, strerror(errno));
        return false;
    }
    jobProgress progress;
    uint64_t received;
    fileSink file = {.fd = fd};
    const fullSyncSink sink = {.write = writeFile, .arg = &file};
    jobProgressBegin(&progress, style, "rdb", "bytes", s.length);
    bool done = fullSyncReceive(context, &s, &sink, &progress, &received);
    jobProgressEnd(&progress, received);
    if (file.error) {
        fprintf(stderr, "Error writing data to file '%s': %s\n", path, strerror(file.error));
    } else if (!done) {
        fputs("I/O Error reading RDB payload from socket\n", stderr);
    } else if (!to_stdout && fsync(fd) < 0 && errno != EINVAL && errno != EROFS) {
        fprintf(stderr, "Fail to fsync '%s': %s\n", path, strerror(errno));
        done = false;
    }
    if (!to_stdout && close(fd) < 0 && done) {
        fprintf(stderr, "Error writing data to file '%s': %s\n", path, strerror(errno));
        done = false;
    }
    if (done && s.has_marker) {
        fprintf(stderr, "Transfer finished with success after %llu bytes\n",
                (unsigned long long)received);
    } else if (done) {
        fputs("Transfer finished with success.\n", stderr);
    }
    return done;
}
