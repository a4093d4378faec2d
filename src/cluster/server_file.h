/* SPDX-License-Identifier: BSD-3-Clause
 *
 * The configuration file of this node, cluster-config-file, and what belongs to it:
 *
 *   nodes.conf       the map; its last line has a checksum
 *   nodes.conf.bak   a copy, made with each save that is flushed to the disk
 *   nodes.conf.old   the text that a start did not use
 *   nodes.conf.lock  locked while the server runs
 *
 * Invariants: epochs, votes and owners of slots are on the disk, under both names, before anything
 * that depends on them is sent, and a node that uses the copy has not lost them. The lock is on a
 * file that is never renamed, so it holds as long as the process.
 *
 * A save that is flushed gives both names to one new file, with one flush of the content and one of
 * the folder; then the copy becomes a file of its own. Saves are made by a thread (BIO_REPLACE),
 * one at a time. Main thread only. */
#ifndef CLUSTER_SERVER_FILE_H
#define CLUSTER_SERVER_FILE_H

#include "base/str.h"
#include "bus/map.h"

/* The name of the configuration file with a suffix, for a file beside it; the caller frees it.
 * ANY_THREAD: the directive cannot be changed. */
str serverFileName(const char *suffix) MUST_USE;
/* Takes the lock and reads the file, or its copy, into a new map. *found is false if there is
 * none: the map is not initialised then. *intact: file and copy are equal and complete. */
status serverFileOpen(clusterMap *m, bool *found, bool *intact, reason *why) MUST_USE;
/* Writes the map; `flush`: and its copy, both to the disk. A failure is logged; `why` has the words
 * of the system. Waits for the save that a thread makes, whose end is reported before. */
status serverFileWrite(const clusterMap *m, bool flush, reason *why) MUST_USE;
/* The same by the thread, which makes no other save. `done` is called from the event loop, or
 * by a function of this file that waits. */
typedef void serverFileDone(status st);
void serverFileBegin(const clusterMap *m, bool flush, serverFileDone *done);
/* Waits for the end of what the thread does. */
void serverFileWait(void);
/* Seconds of wall time at which the last save has ended without a failure; 0: none has. *failed:
 * the last one has failed. */
int64_t serverFileSavedAt(bool *failed);
/* In a forked child, which must not keep the lock longer than the server. */
void serverFileInChild(void);

#endif
