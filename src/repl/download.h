/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Receives a dataset into a temporary file, in a thread of its own, and compares its checksum. Main
 * thread only, except what is marked. */
#ifndef REPL_DOWNLOAD_H
#define REPL_DOWNLOAD_H

#include <stdbool.h>
#include <stdint.h>

#include "base/alloc.h"
#include "base/error.h"
#include "io/conn.h"
#include "psync/link.h"

typedef struct download download;

/* Starts the thread, which owns the connection until downloadEnd(). NULL with the reason in
 * `why`. */
download *downloadStart(const linkTransfer *what, conn *c, slice received, reason *why);
/* The thread has ended by itself: it has woken the loop of the connection. */
bool downloadIsDone(const download *d);
/* Bytes received so far. */
int64_t downloadBytes(const download *d);
/* Waits for the thread, which stops within 0.1 s if it is not done, and gives the connection back.
 * OK: the file at downloadPath() is complete, on disk, and its checksum is right. */
status downloadEnd(download *d, reason *why) MUST_USE;
const char *downloadPath(const download *d);
/* After downloadEnd() has failed: because the connection was lost. */
bool downloadWasCut(const download *d);

/* Returns the bytes given to downloadStart() that follow the dataset; borrowed. */
slice downloadRest(const download *d);
/* Fails if downloadKeep() with this path, a name in the current directory, would certainly fail. */
status downloadCanKeep(const char *path, reason *why) MUST_USE;
/* Removes the file unless downloadKeep() was called. After downloadEnd(). */
void downloadFree(download *d);
/* Renames the file. */
status downloadKeep(download *d, const char *path, reason *why) MUST_USE;

#endif
