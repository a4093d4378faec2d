/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Whole files: read all, replace atomically and durably. ANY_THREAD. */
#ifndef IO_FILE_H
#define IO_FILE_H

#include <stdbool.h>
#include <stddef.h>
#include <sys/types.h>

#include "base/alloc.h"
#include "base/error.h"
#include "base/str.h"

/* Reads all of `path` ("-" reads standard input). `out` is the caller's to free. At most `max`
 * bytes. */
status fileReadAll(const char *path, size_t max, str *out, reason *why) MUST_USE;
/* Replaces `path` by `content` so that a crash leaves the old or the new whole: temporary file
 * in the same folder, fsync, rename, fsync of the folder. Keeps the old file's mode; `mode` for
 * a new one. */
status fileReplace(const char *path, slice content, mode_t mode, reason *why) MUST_USE;
/* Reads the beginning of a file of the kernel's (/proc, /sys) into `dst`, with a NUL behind it; at most `cap` - 1
 * bytes. Returns how many, -1 with errno when it cannot be read. Async-signal-safe. */
ssize_t fileReadText(const char *path, char *dst, size_t cap);
/* Writes `text` in one piece to a file of the kernel's, which must exist. ERR_IO with errno. */
status fileWriteText(const char *path, const char *text) MUST_USE;
/* Appends nothing and truncates nothing: only asks whether it could be written. */
bool fileIsWritable(const char *path);
/* fsync of the folder that holds `path`. */
status fileSyncFolder(const char *path, reason *why) MUST_USE;
/* An absolute form of `path` against the present folder; caller frees with memFree(). */
char *fileAbsolute(const char *path);

#endif
