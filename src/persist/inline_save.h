/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Saving the dataset in this process, in slices between requests, as it was at one moment: the
 * alternative to a forked child. The store passes on each key before its first change
 * (store/saving.h); a worker thread encodes and writes (snapshot_stream.h).
 *
 * For the rest of the server the job is a child of its kind (childBeginHere()): one at a time, with
 * the same events. Main thread only. */
#ifndef PERSIST_INLINE_SAVE_H
#define PERSIST_INLINE_SAVE_H

#include <stdbool.h>

#include "base/alloc.h"
#include "base/blob.h"
#include "base/error.h"
#include "base/str.h"
#include "engine/child.h"
#include "persist/rdb_save.h"

/* Exit code for on_child: the dataset has a value that is too large to be saved between two
 * requests (mode auto). Nothing was saved; if the job is started again, a child does it. */
enum { INLINE_SAVE_NEEDS_FORK = 100 };

typedef struct inlineSave {
    childKind kind;
    rdbSaveJob job;   /* without `name`: no file. Texts are borrowed for the call */
    int mode;         /* enum snapshotMode: in SNAPSHOT_AUTO it may end with NEEDS_FORK */
    bool relays;      /* encoded bytes are for inlineSaveTake() */
    const char *cpus; /* of the worker, as in threadSetCpus() */
} inlineSave;

/* True if the mode (enum snapshotMode) and the dataset call for it, and it is possible now.
 * `as_commands`: of the job. */
bool inlineSaveIsWanted(int mode, bool as_commands);
/* Defines the moment, which is now, and begins. It ends with on_child, CHILD_ENDED; exit code 0:
 * the file is on disk under its name, and everything relayed was taken. ERR_EXISTS: there is a
 * child. ERR_IO: no thread could be started. */
status inlineSaveStart(const inlineSave *save, reason *why) MUST_USE;
/* The next bytes for replicas; the caller releases them. NULL: none now. */
blob *inlineSaveTake(void);
/* True while more than half of snapshot-excess-limit is put aside: slow receivers are to be
 * disconnected before writes have to wait for them. */
bool inlineSaveIsPressed(void);
/* A name for the temporary file that no other save uses. */
void inlineSaveTemporary(char *to, size_t cap);
/* At shutdown: waits until the worker of a job that was killed has ended, 2 s at most in case the
 * disk stands still. Then a temporary file may remain. */
void inlineSaveWait(void);
/* Appends fields of INFO. */
void inlineSavePrintInfo(str *out);

#endif
