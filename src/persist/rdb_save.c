/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Iterates over the keyspace to write an RDB file (rdb_save.h). O(bytes of the dataset). */
#include "persist/rdb_save.h"

#include <stdio.h>
#include <unistd.h>

#include "base/base.h"
#include "engine/child.h"
#include "engine/keyspace.h"
#include "engine/libraries.h"
#include "engine/lifecycle.h"
#include "format/aof_value.h"
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
    const rdbSaveJob *job;
} saving;

static status writeToFile(rdbSink *sink, const void *bytes, size_t len, reason *why) {
    return fileWriterWrite(&((fileSink *)sink)->file, bytes, len, why);
}

static status saveKey(void *arg, const robj *o) {
    saving *s = arg;
    status st = OK;
    if (s->job->as_commands) {
        aofWriteKey(&s->writer, o);
        st = rdbWriterStatus(&s->writer);
    } else {
        st = rdbFileKey(&s->writer, o, RDB_VERSION, s->access);
    }
    if (s->job->in_child && ++s->keys_done % REPORT_KEYS == 0)
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
        if (!s->job->as_commands) rdbFileSlot(&s->writer, slot, keys, dbSlotVolatileCount(d, slot));
        st = dbWalk(d, slot, saveKey, s);
    }
    return st;
}

static status saveDatabases(saving *s) {
    status st = OK;
    for (int id = 0; id < storeDbCount() && st == OK; id++) {
        const db *d = storeDb(id);
        if (dbSize(d) == 0) continue;
        if (s->job->as_commands) {
            aofWriteSelect(&s->writer, id);
        } else {
            rdbFileDb(&s->writer, id, dbSize(d), dbVolatileCount(d));
        }
        st = storeIsSlotted() ? saveSlots(s, d) : dbWalk(d, -1, saveKey, s);
    }
    return st;
}

static void saveLibrary(void *arg, slice code) {
    saving *s = arg;
    if (s->job->as_commands) {
        aofWriteLibrary(&s->writer, code);
    } else {
        rdbFileFunction(&s->writer, code);
    }
}

static void temporaryName(int process, char *to, size_t cap) {
    snprintf(to, cap, "temp-%d.rdb", process);
}

void rdbSaveRemoveTemporary(int process) {
    char name[64];
    temporaryName(process, name, sizeof(name));
    (void)unlink(name); /* it may not exist */
}

static void begin(saving *s) {
    int64_t now_s = clockWallMs() / 1000;
    if (s->job->as_commands) {
        if (persistConf.aof_timestamp_enabled) aofWriteTime(&s->writer, now_s);
        return;
    }
    engineIdentity server;
    engineIdentify(&server);
    rdbFileInfo info = {.version = RDB_VERSION,
                        .server_version = server.version,
                        .time_s = now_s,
                        .used_memory = memUsed(),
                        .is_aof_base = s->job->is_aof_base};
    rdbFileBegin(&s->writer, &info);
}

status rdbSaveTo(const rdbSaveJob *job, reason *why) {
    fileSink to = {.sink = {.write = writeToFile}};
    status st = fileWriterOpen(&to.file, job->temporary, job->syncs ? SYNC_BYTES : 0, why);
    if (st != OK) return st;
    saving s = {.job = job,
                .access = keyspaceCountsAccesses()  ? RDB_ACCESS_FREQUENCY
                          : keyspaceRecordsAccess() ? RDB_ACCESS_IDLE
                                                    : RDB_ACCESS_NONE};
    rdbWriterInit(&s.writer, &to.sink, persistConf.rdbchecksum && !job->as_commands,
                  persistConf.rdbcompression);
    for (int id = 0; id < storeDbCount(); id++) s.keys_total += dbSize(storeDb(id));
    begin(&s);
    librariesEach(saveLibrary, &s);
    st = saveDatabases(&s);
    if (st != OK) {
        *why = s.writer.why;
    } else if (job->as_commands) {
        st = rdbWriterFlush(&s.writer);
        *why = s.writer.why;
    } else {
        st = rdbFileEnd(&s.writer, why);
    }
    rdbWriterClear(&s.writer);
    if (st == OK) return fileWriterPublish(&to.file, job->name, why);
    fileWriterAbort(&to.file);
    return st;
}

status rdbSaveFile(const char *name, bool in_child, reason *why) {
    char temporary[64];
    temporaryName((int)getpid(), temporary, sizeof(temporary));
    const rdbSaveJob job = {.temporary = temporary,
                            .name = name,
                            .in_child = in_child,
                            .syncs = persistConf.rdb_save_incremental_fsync};
    return rdbSaveTo(&job, why);
}
