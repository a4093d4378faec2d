/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Iterates over the keyspace to write an RDB file (rdb_save.h). O(bytes of the dataset). */
#include "persist/rdb_save.h"

#include <stdio.h>
#include <unistd.h>

#include "base/base.h"
#include "engine/child.h"
#include "engine/keyspace.h"
#include "engine/lifecycle.h"
#include "format/rdb_file.h"
#include "io/file_stream.h"
#include "persist/persist_priv.h"
#include "store/store.h"

enum { SYNC_BYTES = 4 * 1024 * 1024, REPORT_KEYS = 1024 };

typedef struct fileSink {
    rdbSink sink;
    fileWriter file;
} fileSink;

/* State of one save. */
typedef struct saving {
    rdbWriter writer;
    rdbAccess access;
    uint64_t keys_done, keys_total;
    bool reports; /* in a child */
} saving;

static status writeToFile(rdbSink *sink, const void *bytes, size_t len, reason *why) {
    return fileWriterWrite(&((fileSink *)sink)->file, bytes, len, why);
}

static status saveKey(void *arg, const robj *o) {
    saving *s = arg;
    status st = rdbFileKey(&s->writer, o, RDB_VERSION, s->access);
    if (s->reports && ++s->keys_done % REPORT_KEYS == 0)
        childReportProgress(s->keys_done, s->keys_total);
    if (persistConf.rdb_key_save_delay > 0)
        (void)usleep(
            (useconds_t)persistConf.rdb_key_save_delay); /* for tests; may be interrupted */
    return st;
}

static status saveSlots(saving *s, const db *d) {
    status st = OK;
    for (int slot = 0; slot < SLOT_COUNT && st == OK; slot++) {
        uint64_t keys = dbSlotCount(d, slot);
        if (keys == 0) continue;
        rdbFileSlot(&s->writer, slot, keys, dbSlotVolatileCount(d, slot));
        st = dbWalk(d, slot, saveKey, s);
    }
    return st;
}

static status saveDatabases(saving *s) {
    status st = OK;
    for (int id = 0; id < storeDbCount() && st == OK; id++) {
        const db *d = storeDb(id);
        if (dbSize(d) == 0) continue;
        rdbFileDb(&s->writer, id, dbSize(d), dbVolatileCount(d));
        st = storeIsSlotted() ? saveSlots(s, d) : dbWalk(d, -1, saveKey, s);
    }
    return st;
}

static void temporaryName(int process, char *to, size_t cap) {
    snprintf(to, cap, "temp-%d.rdb", process);
}

void rdbSaveRemoveTemporary(int process) {
    char name[64];
    temporaryName(process, name, sizeof(name));
    (void)unlink(name); /* it may not exist */
}

status rdbSaveFile(const char *name, bool in_child, reason *why) {
    char temporary[64];
    temporaryName((int)getpid(), temporary, sizeof(temporary));
    fileSink to = {.sink = {.write = writeToFile}};
    status st = fileWriterOpen(&to.file, temporary,
                               persistConf.rdb_save_incremental_fsync ? SYNC_BYTES : 0, why);
    if (st != OK) return st;
    engineIdentity server;
    engineIdentify(&server);
    rdbFileInfo info = {.version = RDB_VERSION,
                        .server_version = server.version,
                        .time_s = clockWallMs() / 1000,
                        .used_memory = memUsed()};
    saving s = {.reports = in_child,
                .access = keyspaceCountsAccesses()  ? RDB_ACCESS_FREQUENCY
                          : keyspaceRecordsAccess() ? RDB_ACCESS_IDLE
                                                    : RDB_ACCESS_NONE};
    rdbWriterInit(&s.writer, &to.sink, persistConf.rdbchecksum, persistConf.rdbcompression);
    for (int id = 0; id < storeDbCount(); id++) s.keys_total += dbSize(storeDb(id));
    rdbFileBegin(&s.writer, &info);
    st = saveDatabases(&s);
    if (st == OK) {
        st = rdbFileEnd(&s.writer, why);
    } else {
        *why = s.writer.why;
    }
    rdbWriterClear(&s.writer);
    if (st == OK) return fileWriterPublish(&to.file, name, why);
    fileWriterAbort(&to.file);
    return st;
}
