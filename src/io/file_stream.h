/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Sequential reading and writing of large files. A written file becomes visible under its name only
 * when it is complete and on disk. One thread at a time. */
#ifndef IO_FILE_STREAM_H
#define IO_FILE_STREAM_H

#include <stdint.h>
#include <sys/types.h>

#include "base/alloc.h"
#include "base/error.h"

/* A file being written under a temporary name. */
typedef struct fileWriter {
    int fd;          /* -1: not open */
    char *temporary; /* the path until fileWriterPublish() */
    int64_t written, synced;
    int64_t sync_bytes; /* data is synced each time so many bytes are written; 0: only at the end */
} fileWriter;

/* Creates or truncates `temporary`. */
status fileWriterOpen(fileWriter *w, const char *temporary, int64_t sync_bytes,
                      reason *why) MUST_USE;
status fileWriterWrite(fileWriter *w, const void *bytes, size_t len, reason *why) MUST_USE;
/* fsync, close, rename to `path`, fsync of the folder. On failure the temporary file is removed. */
status fileWriterPublish(fileWriter *w, const char *path, reason *why) MUST_USE;
/* Closes and removes the temporary file. No effect after fileWriterPublish(). */
void fileWriterAbort(fileWriter *w);

/* A file open for reading. */
typedef struct fileReader {
    int fd;
    int64_t size; /* at the time of opening */
} fileReader;

/* ERR_NOT_FOUND: there is no such file. */
status fileReaderOpen(fileReader *r, const char *path, reason *why) MUST_USE;
/* Reads up to `cap` bytes; *len is 0 at the end. */
status fileReaderRead(fileReader *r, void *dst, size_t cap, size_t *len, reason *why) MUST_USE;
/* Continues at this offset. */
status fileReaderSkip(fileReader *r, int64_t offset, reason *why) MUST_USE;
void fileReaderClose(fileReader *r);

#endif
