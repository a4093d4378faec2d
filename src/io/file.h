/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Operations on whole files: read, replace atomically and durably. ANY_THREAD. */
#ifndef IO_FILE_H
#define IO_FILE_H

#include <stdbool.h>
#include <stddef.h>
#include <sys/types.h>

#include "base/alloc.h"
#include "base/error.h"
#include "base/str.h"

/* Reads at most `max` bytes of `path` ("-" is standard input). The caller frees `out`. */
status fileReadAll(const char *path, size_t max, str *out, reason *why) MUST_USE;
/* Replaces the content of `path` so that a crash leaves either the old or the new content:
 * temporary file in the same directory, fsync, rename, fsync of the directory. Keeps mode and owner
 * of an existing file, and writes the file that a symbolic link refers to; `mode` is for a new one.
 * A file that can only be written (it is mounted alone, its folder is not writable, it belongs to
 * another user) is overwritten in place, with fsync: a crash then may leave a part. Fails if this
 * process may not write the existing file. */
status fileReplace(const char *path, slice content, mode_t mode, reason *why) MUST_USE;

/* What is on disk before a replaced file gets its name. Without FILE_FLUSH_ALL a crash of the
 * system may leave the old or the new content, with FILE_FLUSH_NONE also an empty file; a crash of
 * the process always leaves one of the two. */
typedef enum fileFlush { FILE_FLUSH_NONE, FILE_FLUSH_CONTENT, FILE_FLUSH_ALL } fileFlush;
typedef enum fileStep {
    FILE_CREATE, /* or the existing file must not be written */
    FILE_OWNER,
    FILE_WRITE,
    FILE_SYNC,
    FILE_LINK,
    FILE_RENAME,
    FILE_SYNC_FOLDER,
} fileStep;
typedef struct fileFailure {
    fileStep step;
    int error; /* as errno */
} fileFailure;
/* As fileReplace(), but the caller chooses what is flushed, and is told which step has failed. */
status fileReplaceAs(const char *path, slice content, mode_t mode, fileFlush flush,
                     fileFailure *failure) MUST_USE;
/* The same with FILE_FLUSH_ALL, and `copy`, a name in the same folder, becomes another name of the
 * new file first: both names and their content are on the disk with a single flush of the content.
 * Fails at FILE_LINK, with nothing changed, where that is impossible. */
status fileReplaceBoth(const char *path, const char *copy, slice content, mode_t mode,
                       fileFailure *failure) MUST_USE;
/* True if both are names of one file. */
bool fileIsSame(const char *path, const char *other);
/* Reads the start of a kernel file (/proc, /sys) into `dst`, at most `cap` - 1 bytes and a NUL.
 * Returns the number of bytes, -1 with errno on failure. Async-signal-safe. */
ssize_t fileReadText(const char *path, char *dst, size_t cap);
/* Writes `text` to an existing kernel file with a single write. ERR_IO with errno on failure. */
status fileWriteText(const char *path, const char *text) MUST_USE;
/* True if the file can be opened for writing. Changes nothing. */
bool fileIsWritable(const char *path);
/* open() and fsync(), repeated when interrupted. */
int fileOpen(const char *path, int flags, mode_t mode);
int fileSync(int fd);
/* Flushes the directory of `path` to disk. */
status fileSyncFolder(const char *path, reason *why) MUST_USE;
/* The absolute form of `path` relative to the current directory; the caller frees it with
 * memFree(). */
char *fileAbsolute(const char *path);

#endif
