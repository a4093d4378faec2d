/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Transfer of keys to another server by RESTORE, for MIGRATE. The transfer is driven by an event
 * loop and serves other clients meanwhile: at most MIGRATE_CHUNK bytes (or one value) are
 * serialised at once.
 *
 * A key is removed here only if its copy there is equal. Therefore a key that changes after it was
 * serialised is sent again; after MIGRATE_FREE_ROUNDS such rounds the last one runs while writes
 * are paused. With COPY nothing is sent again. Main thread. */
#ifndef CLUSTER_MIGRATE_H
#define CLUSTER_MIGRATE_H

#include <stdbool.h>
#include <stdint.h>

#include "base/slice.h"
#include "base/str.h"
#include "engine/hooks.h"
#include "store/store.h"

enum { MIGRATE_CHUNK = 64 * 1024, MIGRATE_FREE_ROUNDS = 3 };

typedef struct migration migration;

/* What to transfer. Slices are borrowed for the call of migrateNew(). */
typedef struct migrateParams {
    slice host;
    int port, source_db, target_db;
    int64_t timeout_ms; /* without progress */
    bool copy, replace;
    slice user, password; /* `ptr` is NULL: none */
    const slice *keys;    /* existing ones */
    int key_count;
} migrateParams;

/* Called when migrateConclude() has to be called. */
typedef void migrateDoneProc(migration *m, void *arg);

migration *migrateNew(const migrateParams *params);
/* Starts the transfer in the main loop; `done` is called later, from there. */
void migrateStart(migration *m, migrateDoneProc *done, void *arg);
/* Ends the transfer if everything was sent and has not changed since; otherwise it continues, and
 * false is returned. To be called where keys may be removed, which follows immediately. */
bool migrateConclude(migration *m);
/* Transfers without serving anybody meanwhile. */
void migrateRun(migration *m);
/* After the end: the error to reply, empty if there was none. */
slice migrateError(const migration *m);
/* The next key whose copy the target has acknowledged; NULL at the end. `*at` starts at 0. */
const str *migrateNextMoved(const migration *m, int *at);
/* True if the key is one of a transfer that is under way. While it is, the key is of this server,
 * even if it does not exist: the target may have a copy that is outdated. */
bool migrateHolds(const db *d, slice key);
/* Ends a transfer that is under way. */
void migrateFree(migration *m);

/* Marks keys that change during a transfer; armed meanwhile. */
extern const keyObserver migrateObserver;
void migrateDbEvent(const dbEvent *e);
/* Closes connections that have been idle for 10 seconds. */
void migrateCloseIdle(int64_t budget_us);
int migrateIdleConnections(void);

#endif
