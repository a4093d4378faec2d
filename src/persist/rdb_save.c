/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Iterates over the keyspace to write an RDB file (rdb_save.h). O(bytes of the dataset). */
#include "persist/rdb_save.h"

#include <stdio.h>
#include <unistd.h>

#include "base/base.h"
#include "base/number.h"
#include "engine/child.h"
#include "engine/job.h"
#include "engine/keyspace.h"
#include "engine/libraries.h"
#include "engine/lifecycle.h"
#include "engine/options.h"
#include "format/aof_value.h"
#include "format/rdb_envelope.h"
#include "format/rdb_file.h"
#include "format/rdb_module.h"
#include "format/slot_imports.h"
#include "io/file_stream.h"
#include "io/pipe.h"
#include "persist/persist.h"
#include "persist/persist_priv.h"
#include "store/placeholder.h"
#include "store/store.h"

enum { SYNC_BYTES = 4 * 1024 * 1024, REPORT_KEYS = 1024 };

typedef struct fileSink {
    rdbSink sink;
    fileWriter file;
} fileSink;

typedef struct pipeSink {
    rdbSink sink;
    int fd;
} pipeSink;

/* State of one save. */
typedef struct saving {
    rdbRecords records;
    int db_id;
    uint64_t keys_done, keys_total;
} saving;

static bool (*find_origin)(syncOrigin *out);

static const char *(*find_birth)(void);

void syncSetOriginProc(bool (*proc)(syncOrigin *out)) { find_origin = proc; }
void syncSetBirthProc(const char *(*proc)(void)) { find_birth = proc; }

bool rdbSaveFindOrigin(syncOrigin *out) { return find_origin && find_origin(out); }

static status writeToFile(rdbSink *sink, const void *bytes, size_t len, reason *why) {
    return fileWriterWrite(&((fileSink *)sink)->file, bytes, len, why);
}

static status writeToPipe(rdbSink *sink, const void *bytes, size_t len, reason *why) {
    status st = pipeWrite(((pipeSink *)sink)->fd, bytes, len, why);
    if (st == OK) childCountSent(len);
    childProgress now = childProgressNow();
    childReportProgress(now.done, now.total); /* a sign of life within long values, too */
    return st;
}

/* A key that the format's version has no type for. */
static void logRefused(const rdbRecords *r, int db_id, const robj *o) {
    hotCheck(db_id < storeDbCount());
    if (engineHidesUserData()) {
        logWarning("Can't store key (db %d) in RDB version %d", db_id, r->version);
        return;
    }
    slice key = objectKey(o);
    logWarning("Can't store key '%.*s' (db %d) in RDB version %d", (int)key.len, key.ptr, db_id,
               r->version);
}

void rdbRecordsDb(rdbRecords *r, int db_id, uint64_t keys, uint64_t volatile_keys) {
    hotCheck(db_id >= 0);
    hotCheck(db_id < storeDbCount());
    hotCheck(volatile_keys <= keys);
    if (r->job->as_commands) {
        aofWriteSelect(r->writer, db_id);
    } else {
        rdbFileDb(r->writer, db_id, keys, volatile_keys);
    }
}

void rdbRecordsSelect(rdbRecords *r, int db_id) {
    hotCheck(db_id >= 0);
    hotCheck(db_id < storeDbCount());
    if (r->job->as_commands) {
        aofWriteSelect(r->writer, db_id);
    } else {
        rdbFileSelect(r->writer, db_id);
    }
}

status rdbRecordsKey(rdbRecords *r, int db_id, const robj *o) {
    hotCheck(db_id >= 0);
    hotCheck(db_id < storeDbCount());
    if (unlikely(objectType(o) == TYPE_MODULE) && objectIsPlaceholder(o)) return OK;
    if (r->job->as_commands) {
        aofWriteKey(r->writer, o);
        return rdbWriterStatus(r->writer);
    }
    status st = rdbFileKey(r->writer, o, r->version, r->access);
    if (unlikely(st == ERR_LIMIT)) logRefused(r, db_id, o);
    return st;
}

static status saveKey(void *arg, const robj *o) {
    saving *s = arg;
    status st = rdbRecordsKey(&s->records, s->db_id, o);
    if (s->records.job->in_child && ++s->keys_done % REPORT_KEYS == 0)
        childReportProgress(s->keys_done, s->keys_total);
    if (persistConf.rdb_key_save_delay > 0)
        (void)usleep(
            (useconds_t)persistConf.rdb_key_save_delay); /* for tests; may be interrupted */
    return st;
}

static status saveSlots(saving *s, const db *d) {
    hotCheck(storeIsSlotted());
    status st = OK;
    for (int slot = 0; slot < SLOT_COUNT && st == OK; slot++) {
        uint64_t keys = dbSlotCount(d, slot);
        const slotMask *only = s->records.job->slots;
        if (keys == 0 || (only && !slotMaskHas(only, slot))) continue;
        if (!s->records.job->as_commands)
            rdbFileSlot(s->records.writer, slot, keys, dbSlotVolatileCount(d, slot));
        st = dbWalk(d, slot, saveKey, s);
    }
    return st;
}

static status saveDatabases(saving *s) {
    status st = OK;
    for (int id = 0; id < storeDbCount() && st == OK; id++) {
        const db *d = storeDb(id);
        if (dbSize(d) == 0 && !dbHasHidden(d)) continue;
        s->db_id = id;
        rdbRecordsDb(&s->records, id, dbSize(d), dbVolatileCount(d));
        st = storeIsSlotted() ? saveSlots(s, d) : dbWalk(d, -1, saveKey, s);
    }
    return st;
}

static void saveLibrary(void *arg, slice code) {
    const rdbRecords *r = arg;
    if (r->job->as_commands) {
        aofWriteLibrary(r->writer, code);
    } else {
        rdbFileFunction(r->writer, code);
    }
}

/* The command that hides the slots again while an append only file is loaded. Its source matters to
 * a connection alone. */
static void writeEstablish(rdbWriter *w, const slotImport *import) {
    enum { FIRST_WORDS = 8, NODE_ID_LEN = 40 };
    size_t count = FIRST_WORDS + 2 * import->count;
    char no_node[NODE_ID_LEN];
    memset(no_node, '0', sizeof(no_node));
    slice *words = memNewArray(slice, count);
    char(*digits)[NUMBER_TEXT_MAX] = memAlloc(2 * import->count * sizeof(*digits));
    const slice first[FIRST_WORDS] = {SLICE("CLUSTER"),
                                      SLICE("SYNCSLOTS"),
                                      SLICE("ESTABLISH"),
                                      SLICE("SOURCE"),
                                      {no_node, NODE_ID_LEN},
                                      SLICE("NAME"),
                                      {import->job.ptr, import->job.len},
                                      SLICE("SLOTSRANGE")};
    memcpy(words, first, sizeof(first));
    for (size_t i = 0; i < 2 * import->count; i++) {
        const slotRange *range = &import->ranges[i / 2];
        int slot = i % 2 ? range->last : range->first;
        words[FIRST_WORDS + i] = sliceMake(digits[i], numberPrintInt(digits[i], slot));
    }
    aofWriteCommand(w, (int)count, words);
    memFree(digits);
    memFree(words);
}

static void saveSlotImport(void *arg, const slotImport *import) {
    const rdbRecords *r = arg;
    if (r->job->as_commands) {
        writeEstablish(r->writer, import);
    } else if (r->version >= RDB_VERSION) {
        rdbFileSlotImport(r->writer, import);
    } else {
        logWarning("Can't store slot migrations in RDB version %d", r->version);
    }
}

enum { TEMPORARY_NAME_MAX = 64 };

static void temporaryName(int process, char *to, size_t cap) {
    snprintf(to, cap, "temp-%d.rdb", process);
}

void rdbSaveRemoveTemporary(int process) {
    hotCheck(process > 0);
    char name[TEMPORARY_NAME_MAX];
    temporaryName(process, name, sizeof(name));
    (void)unlink(name); /* it may not exist */
}

static void writeSlotStates(rdbWriter *w) {
    str text = STR_EMPTY;
    slotStatesPrint(&text);
    if (text.len) rdbFileAux(w, RDB_SLOT_STATES_FIELD, strSlice(&text));
    strFree(&text);
}

static void writeHeader(const rdbRecords *r) {
    int64_t now_s = clockWallMs() / 1000;
    if (r->job->as_commands) {
        if (persistConf.aof_timestamp_enabled) aofWriteTime(r->writer, now_s);
        return;
    }
    engineIdentity server;
    engineIdentify(&server);
    rdbFileInfo info = {.version = r->version,
                        .server_version = server.version,
                        .time_s = now_s,
                        .used_memory = memUsed(),
                        .is_aof_base = r->job->is_aof_base};
    syncOrigin origin;
    if (!r->job->is_aof_base && rdbSaveFindOrigin(&origin)) {
        info.repl_id = origin.id;
        info.repl_offset = origin.offset;
        info.repl_db = origin.db < 0 ? 0 : origin.db; /* else SELECT comes first */
    }
    rdbFileBegin(r->writer, &info);
    if (find_birth && *find_birth()) rdbFileAux(r->writer, RDB_BIRTH_FIELD, sliceOf(find_birth()));
    if (r->job->content.slot_states) writeSlotStates(r->writer);
}

void rdbRecordsBegin(rdbRecords *r, rdbWriter *w, const rdbSaveJob *job) {
    const syncContent *content = &job->content;
    *r = (rdbRecords){.writer = w,
                      .job = job,
                      .version = content->version ? content->version : rdbVersionOfDataset(),
                      .access = keyspaceCountsAccesses()  ? RDB_ACCESS_FREQUENCY
                                : keyspaceRecordsAccess() ? RDB_ACCESS_IDLE
                                                          : RDB_ACCESS_NONE};
    w->redis_types = r->version == RDB_VERSION_REDIS_TIMES;
    w->released_types = content->released_types || w->redis_types;
    writeHeader(r);
    bool is_rdb = !job->as_commands;
    if (is_rdb && !content->no_keys) rdbWriteModuleAux(w, RDB_AUX_BEFORE);
    if (!content->no_functions) librariesEach(saveLibrary, r);
    if (!content->no_keys) slotImportsEach(saveSlotImport, r);
}

void rdbRecordsEnd(rdbRecords *r) {
    if (!r->job->as_commands) rdbWriteModuleAux(r->writer, RDB_AUX_AFTER);
}

bool rdbSaveHasChecksum(const rdbSaveJob *job) {
    return persistConf.rdbchecksum && !job->as_commands && !job->content.no_checksum;
}

bool rdbSaveCompressesStrings(const rdbSaveJob *job) {
    bool lzf = persistConf.rdbcompression != RDB_COMPRESS_NO;
    return lzf && job->codec == COMPRESS_NONE && !job->as_commands;
}

compressCodec rdbSaveCodecOf(int compression) {
    if (compression == RDB_COMPRESS_LZ4) return COMPRESS_LZ4;
    return compression == RDB_COMPRESS_ZSTD ? COMPRESS_ZSTD : COMPRESS_NONE;
}

compressCodec rdbSaveCodec(void) { return rdbSaveCodecOf(persistConf.rdbcompression); }

/* Writes everything the job asks for to the sink, without compressing the whole. */
static status savePlain(const rdbSaveJob *job, rdbSink *to, reason *why) {
    saving s = {.keys_total = keyspaceKeyCount(keyspaceMain())};
    rdbWriter w;
    rdbWriterInit(&w, to, rdbSaveHasChecksum(job) && job->codec == COMPRESS_NONE,
                  rdbSaveCompressesStrings(job));
    rdbRecordsBegin(&s.records, &w, job);
    status st = job->content.no_keys ? OK : saveDatabases(&s);
    if (!job->content.no_keys) rdbRecordsEnd(&s.records);
    if (st != OK) {
        *why = w.why;
    } else if (job->as_commands) {
        st = rdbWriterFlush(&w);
        *why = w.why;
    } else {
        st = rdbFileEnd(&w, why);
    }
    rdbWriterClear(&w);
    return st;
}

static status saveAll(const rdbSaveJob *job, rdbSink *to, reason *why) {
    if (job->codec == COMPRESS_NONE || job->as_commands) return savePlain(job, to, why);
    rdbEnvelopeSink packed;
    status st = rdbEnvelopeSinkInit(&packed, job->codec, rdbSaveHasChecksum(job), to, why);
    if (st != OK) return st;
    st = savePlain(job, &packed.sink, why);
    if (st == OK) st = rdbEnvelopeSinkEnd(&packed, why);
    if (st == OK)
        logNotice("Compressed by %s: %.1f MB of %.1f MB", compressName(job->codec),
                  (double)packed.out_bytes / 1048576, (double)packed.in_bytes / 1048576);
    rdbEnvelopeSinkClear(&packed);
    return st;
}

/* The file that a save without a child is writing, else "": read by a signal handler. */
static char unfinished[TEMPORARY_NAME_MAX];

void persistRemoveUnfinished(void) {
    if (unfinished[0]) (void)unlink(unfinished); /* the process ends */
}

status rdbSaveTo(const rdbSaveJob *job, reason *why) {
    hotCheck(job->temporary);
    fileSink to = {.sink = {.write = writeToFile}};
    status st = fileWriterOpen(&to.file, job->temporary, job->syncs ? SYNC_BYTES : 0, why);
    if (st != OK) return st;
    st = saveAll(job, &to.sink, why);
    if (job->in_child) childConfirmParent();
    if (st == OK) return fileWriterPublish(&to.file, job->name, why);
    fileWriterAbort(&to.file);
    return st;
}

status rdbSaveFile(const char *name, bool in_child, const syncContent *content, reason *why) {
    char temporary[TEMPORARY_NAME_MAX];
    temporaryName((int)getpid(), temporary, sizeof(temporary));
    const rdbSaveJob job = {.temporary = temporary,
                            .name = name,
                            .content = content ? *content : (syncContent){.version = 0},
                            .codec = content ? content->codec : rdbSaveCodec(),
                            .in_child = in_child,
                            .syncs = persistConf.rdb_save_incremental_fsync};
    if (in_child) return rdbSaveTo(&job, why);
    (void)jobEndChanges();
    memcpy(unfinished, temporary, sizeof(unfinished));
    status st = rdbSaveTo(&job, why);
    unfinished[0] = 0;
    return st;
}

status rdbSaveToPipe(int fd, const char *mark, const syncContent *content, reason *why) {
    hotCheck(fd >= 0);
    pipeSink to = {.sink = {.write = writeToPipe}, .fd = fd};
    char line[SYNC_MARK_LEN + 16];
    int len = snprintf(line, sizeof(line), "$EOF:%.*s\r\n", SYNC_MARK_LEN, mark);
    const rdbSaveJob job = {.in_child = true, .content = *content, .codec = content->codec};
    status st = writeToPipe(&to.sink, line, (size_t)len, why);
    if (st == OK) st = saveAll(&job, &to.sink, why);
    return st == OK ? writeToPipe(&to.sink, mark, SYNC_MARK_LEN, why) : st;
}
