/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Persistence: snapshots of the dataset in RDB files, and the append only file. Main thread
 * only. */
#ifndef PERSIST_PERSIST_H
#define PERSIST_PERSIST_H

#include "base/alloc.h"
#include "base/error.h"
#include "engine/hooks.h"

extern const feature persistFeature;
extern const gate snapshotErrorGate, aofErrorGate, loadingGate, asyncLoadingGate, skippedKeysGate;

/* Memory of changes not yet written to the append only file, in bytes; time spent in writing them,
 * in us. */
size_t persistAofBufferBytes(void);
uint64_t persistAofUs(void);
/* rdb-key-save-delay: how long a snapshot waits after each key; not above 0: not at all. */
int64_t persistKeySaveDelayUs(void);
/* A primary drops expired keys of the snapshot, and propagates that. Loads the append only file if
 * it is configured, else the snapshot file, if they exist. Clients are served meanwhile: call it
 * once, after the listeners are open. */
status persistLoadAtStart(bool is_replica, reason *why) MUST_USE;
/* True if a shutdown with these flags (SHUTDOWN_... of engine/hooks.h) leaves the dataset in files:
 * there are save points or an append only file, and SHUTDOWN NOSAVE was not ordered. */
bool persistKeepsDataset(uint32_t flags);
/* For modules: saves the dataset to this file, at once. */
status persistSaveTo(const char *path, reason *why) MUST_USE;
/* Replaces the dataset by that of a file: `empty` removes what is there. ERR_NOT_FOUND: there is no
 * such file; another failure before `empty` was called: it does not begin as it should. Clients are
 * refused with -LOADING during the load, and the append only file begins anew. A load that fails
 * leaves what it has loaded. */
status persistLoadInstead(const char *path, void (*empty)(void), reason *why) MUST_USE;
/* For modules: serves clients while a load waits for a function of a module. Without effect in a
 * turn that the load has made. */
void persistServeInLoad(void);
/* Removes the unfinished file of a save in this process, if there is one. ANY_THREAD, from signal
 * handlers, too: for a process that ends at once. */
void persistRemoveUnfinished(void);

#endif
