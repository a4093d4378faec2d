/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Persistence during a synchronisation with a primary (sync_load.h). */
#include "persist/sync_load.h"

#include <stdio.h>
#include <unistd.h>

#include "base/base.h"
#include "io/file.h"
#include "persist/aof.h"
#include "persist/aof_files.h"
#include "persist/aof_position.h"
#include "persist/aof_rewrite.h"
#include "persist/foreign.h"
#include "persist/persist_priv.h"
#include "persist/rdb_load.h"
#include "persist/snapshot.h"
#include "persist/sync.h"

static str refused_types; /* of the last load; empty: it was not refused for them */

status persistSyncLoad(syncLoad *load, reason *why) {
    strClear(&refused_types);
    status st = rdbLoadSync(load, why);
    if (load->is_foreign) foreignAppendTypes(&refused_types);
    return st;
}

void persistPrintRefusal(str *out) {
    if (!refused_types.len) return;
    strAppendFormat(out, "master_sync_last_error:foreign values: %s\r\n", strText(&refused_types));
}

const char *persistSnapshotPath(void) { return persistConf.dbfilename; }

void persistSyncSaved(void) { snapshotNoteLoaded(); }

bool persistSavesItself(void) { return persistConf.save_point_count > 0; }

bool persistDeletesSyncFiles(void) {
    return persistConf.rdb_del_sync_files && !persistConf.save_point_count &&
           !persistConf.appendonly;
}

bool persistAofIsOn(void) { return aofStateNow() == AOF_IS_ON; }
uint64_t persistAofAppended(void) { return aofAppendedNumber(); }
uint64_t persistAofSynced(void) { return aofSyncedNumber(); }

const char *persistLoadedBirth(void) { return rdbLoadBirth(); }
void persistSetOriginProc(void (*found)(void)) { rdbLoadSetOriginProc(found); }

persistOrigin persistLoadedOrigin(void) { return rdbLoadOrigin(); }

void syncForbidAofPosition(void) { aofPositionForbid(); }

void persistSyncBegin(void) {
    snapshotKill();
    if (aofStateNow() != AOF_IS_OFF) aofSwitchOff();
}

/* Makes the file the base of the append only file, and continues in a new incremental file. */
static status adoptBase(const char *path, reason *why) {
    char temporary[64];
    appendFile next;
    snprintf(temporary, sizeof(temporary), "temp-sync-base-%d.rdb", (int)getpid());
    (void)unlink(temporary); /* of an earlier failure */
    if (link(path, temporary) != 0) return reasonSetErrno(why, "Can't link %s", path);
    status st = aofFilesAdoptBase(temporary, false, false, false, why);
    if (st != OK) {
        (void)unlink(temporary); /* it may have been renamed */
        return st;
    }
    st = aofFilesCreateIncr(&next, why);
    if (st != OK) return st;
    int64_t size = aofFilesSize();
    aofSetSizes(size, size);
    aofBegin(&next);
    aofFilesRemoveHistory();
    const aofFile *base = aofManifestBase(aofFilesManifest());
    logNotice("Reused RDB file from primary sync as AOF base file: %s", base->name);
    return OK;
}

void persistSyncEnd(const char *path) {
    hotCheck(threadIsMain());
    reason why;
    if (!persistConf.appendonly || aofStateNow() != AOF_IS_OFF) return;
    if (path && persistConf.aof_use_rdb_preamble) {
        if (adoptBase(path, &why) == OK) return;
        logWarning("The file of the primary cannot be the base of the append only file: %s",
                   why.text);
    }
    if (aofSwitchOn(&why) == OK) return;
    logWarning("%s A rewrite is tried again later.", why.text);
    aofBeginWaiting();
    aofRewriteSchedule();
}
