/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Files that grow at their end, and operations on a folder of them. ANY_THREAD; one thread at a
 * time per file, except appendFileSync(). */
#ifndef IO_APPEND_FILE_H
#define IO_APPEND_FILE_H

#include <stdbool.h>
#include <stdint.h>

#include "base/alloc.h"
#include "base/error.h"
#include "base/slice.h"

typedef struct appendFile {
    int fd;       /* -1: not open */
    int64_t size; /* in bytes */
} appendFile;

/* Opens a file for appending and creates it if necessary; `empty` truncates it. */
status appendFileOpen(appendFile *f, const char *path, bool empty, reason *why) MUST_USE;
/* Writes with one call, repeated only when interrupted. Returns the number of bytes written, which
 * may be less than those of `bytes`; -1 with errno if none were. */
int64_t appendFileWrite(appendFile *f, slice bytes);
/* Removes what follows the first `size` bytes. Returns 0 or an errno. */
int appendFileCut(appendFile *f, int64_t size);
/* Flushes a file to disk. Returns 0 or an errno. */
int appendFileSync(int fd);
/* No effect if the file is not open. */
void appendFileClose(appendFile *f);

/* Truncates a closed file to `size` bytes and flushes it to disk. */
status fileCut(const char *path, int64_t size, reason *why) MUST_USE;
/* Creates a folder; it is no error if it exists. */
status folderCreate(const char *path, reason *why) MUST_USE;
/* Size of a file in bytes; -1 with errno if there is none. */
int64_t fileSize(const char *path);
/* Calls `visit` with the name of each entry of a folder, in no particular order. A missing folder
 * has none. */
status folderEach(const char *path, void (*visit)(const char *name, void *arg), void *arg,
                  reason *why) MUST_USE;

#endif
