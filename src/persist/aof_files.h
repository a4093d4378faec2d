/* SPDX-License-Identifier: BSD-3-Clause
 *
 * The files of the append only file: their folder, names and manifest. A change of the manifest is
 * on disk when the function that makes it returns; what the manifest lists is on disk before it.
 * Main thread only. */
#ifndef PERSIST_AOF_FILES_H
#define PERSIST_AOF_FILES_H

#include <stdbool.h>
#include <stdint.h>

#include "base/alloc.h"
#include "base/error.h"
#include "base/str.h"
#include "format/aof_manifest.h"
#include "io/append_file.h"

/* Reads the manifest, if there is one. Failures are logged. */
status aofFilesReadManifest(void) MUST_USE;
/* The manifest as it is on disk. Valid until the next change. */
const aofManifest *aofFilesManifest(void);
/* Moves the single file of an old version into the folder, as its base. */
status aofFilesMigrate(reason *why) MUST_USE;
/* Fails if there are files with data in the folder but no manifest, which would be overwritten. */
status aofFilesCheckLost(reason *why) MUST_USE;

/* Path of a file of the folder; the caller frees it. */
str aofFilesPath(const char *name);
/* Size of all files that the manifest lists, without history; in bytes. */
int64_t aofFilesSize(void);
/* Size of the base file alone; 0 without one. */
int64_t aofFilesBaseSize(void);
/* True if the name is that of a single file of an old version. */
bool aofFilesIsOldStyle(const char *name);

/* Writes the dataset as the first base file. */
status aofFilesCreateBase(reason *why) MUST_USE;
/* Opens the last incremental file, or creates the first one. */
status aofFilesOpenLast(appendFile *out, reason *why) MUST_USE;
/* Creates the next incremental file. */
status aofFilesCreateIncr(appendFile *out, reason *why) MUST_USE;
/* Creates the file for the changes until the first rewrite has succeeded; not in the manifest. */
status aofFilesCreateTemporaryIncr(appendFile *out, reason *why) MUST_USE;
void aofFilesRemoveTemporaryIncr(void);
/* Puts a complete base file in the place of all files before it. `adopt_incr`: the temporary
 * incremental file becomes the next one; `keep_incr`: the last incremental file is newer than the
 * base. On failure nothing has changed. */
status aofFilesAdoptBase(const char *temporary, bool as_commands, bool adopt_incr, bool keep_incr,
                         reason *why) MUST_USE;
/* The same two in the background, so that nothing waits for the disk: the next incremental file
 * (`file`, closed after a failure), which is listed while the last one is still appended to; and
 * the base, after which the history files are removed. There is one such job at a time, and other
 * changes of files wait for it. `done` is called by the main thread. */
typedef void aofFilesDoneProc(status st, appendFile *file, const reason *why);
status aofFilesCreateIncrLater(aofFilesDoneProc *done, reason *why) MUST_USE;
status aofFilesAdoptBaseLater(const char *temporary, bool as_commands, bool adopt_incr,
                              bool keep_incr, aofFilesDoneProc *done, reason *why) MUST_USE;
bool aofFilesAreChanging(void);
/* Waits for the job; its `done` was called then. */
void aofFilesWait(void);
/* Removes the history files, and then their entries. */
void aofFilesRemoveHistory(void);
/* After the load: removes files of the folder that the manifest does not list. */
void aofFilesSweep(void);

#endif
