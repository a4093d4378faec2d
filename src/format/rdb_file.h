/* SPDX-License-Identifier: BSD-3-Clause
 *
 * RDB files: header, databases, keys, trailer.
 *
 * Writing is a sequence of calls, so any iteration over the keyspace can drive it: a forked child,
 * the event loop in steps, a test. Reading calls a handler for each record. Source and sink of the
 * bytes are abstract. One thread at a time. */
#ifndef FORMAT_RDB_FILE_H
#define FORMAT_RDB_FILE_H

#include <stdbool.h>
#include <stdint.h>

#include "base/slots.h"
#include "format/rdb_reader.h"
#include "format/rdb_value.h"
#include "format/rdb_writer.h"
#include "store/object.h"

/* ------------------------------------------------------------------ writing */

/* Which access data a key's record has; depends on the eviction policy. */
typedef enum rdbAccess { RDB_ACCESS_NONE, RDB_ACCESS_IDLE, RDB_ACCESS_FREQUENCY } rdbAccess;

/* The aux fields: the origin of a file. Texts are borrowed. */
typedef struct rdbFileInfo {
    int version;                /* RDB_VERSION, or 11 for older replicas */
    const char *server_version; /* "9.1.2" */
    int64_t time_s;             /* Unix time */
    uint64_t used_memory;
    bool is_aof_base;
    const char *repl_id; /* NULL: no replication fields */
    int64_t repl_offset;
    int repl_db;
} rdbFileInfo;

/* Magic and aux fields. Call rdbFileEnd() last; failures are kept in the writer. */
void rdbFileBegin(rdbWriter *w, const rdbFileInfo *info);
void rdbFileAux(rdbWriter *w, slice name, slice value);
/* A library of functions; before the first database. */
void rdbFileFunction(rdbWriter *w, slice source);
/* Slots that are being imported; after the functions, before the first database. */
void rdbFileSlotImport(rdbWriter *w, const slotImport *import);
/* Following keys belong to this database; from `keys` and `volatile_keys` (keys with a TTL) the
 * reader sizes its tables. */
void rdbFileDb(rdbWriter *w, int id, uint64_t keys, uint64_t volatile_keys);
/* Following keys belong to this database, which rdbFileDb() was called for. */
void rdbFileSelect(rdbWriter *w, int id);
/* Following keys belong to this slot. */
void rdbFileSlot(rdbWriter *w, int slot, uint64_t keys, uint64_t volatile_keys);
/* ERR_LIMIT, and nothing is written, if the file's version has no type for the value. */
status rdbFileKey(rdbWriter *w, const robj *o, int version, rdbAccess access) MUST_USE;
/* The record of a key whose value is written in parts (rdbTypeInParts()): what precedes the
 * elements. `o` needs no value. */
void rdbFileKeyInParts(rdbWriter *w, const robj *o, rdbType type, uint64_t count, rdbAccess access);
/* The end mark and the checksum; flushes. Returns the first failure of any of the calls. */
status rdbFileEnd(rdbWriter *w, reason *why) MUST_USE;

/* ------------------------------------------------------------------ reading */

/* A key as it was read. */
typedef struct rdbKey {
    slice name; /* borrowed for the call */
    int type;
    robj *o; /* owned by the handler; NULL: no elements, or skipped */
    /* With skip_foreign: the type of a value that this server has no type for, which was skipped;
     * or, with an object, the class of key metadata that was left out, as "metadata:name". Borrowed
     * for the call. NULL: neither. */
    const char *foreign;
    uint64_t foreign_bytes; /* of the value in the file */
    bool fields_dropped;
    int64_t expire_ms; /* OBJECT_NO_EXPIRE: none; not set in `o` */
    int64_t idle_s;    /* -1: not in the record */
    int frequency;     /* -1: not in the record */
} rdbKey;

/* Called for each record; all but `key` may be NULL. A failure ends the reading and is returned;
 * the handler sets the reason by rdbReaderFail() or in r->why. Slices are borrowed for the call. */
typedef struct rdbFileHandler {
    status (*version)(void *arg, rdbReader *r, int version);
    status (*aux)(void *arg, rdbReader *r, slice name, slice value);
    status (*db)(void *arg, rdbReader *r, uint64_t id);
    status (*db_size)(void *arg, rdbReader *r, uint64_t keys, uint64_t volatile_keys);
    status (*function)(void *arg, rdbReader *r, slice source);
    status (*key)(void *arg, rdbReader *r, rdbKey *key);
    status (*slot_import)(void *arg, rdbReader *r, const slotImport *import);
    /* Data of a module outside of keys that was skipped: with skip_modules, or because it is of
     * Redis and the module is not loaded. */
    status (*module_aux)(void *arg, rdbReader *r, const char *module);
    /* Called before each step, for the check tool. `at` is a word such as "read-key"; from there on
     * the key's type is known, and from "read-object-value" on its name (until then NULL). */
    status (*doing)(void *arg, rdbReader *r, const char *at, const rdbKey *key);
} rdbFileHandler;

typedef struct rdbFileOptions {
    rdbReadOptions values;
    bool relaxed; /* accept versions of other servers and later ones */
    /* Values of modules are skipped (`key` is called without an object), not refused. */
    bool skip_modules;
    /* In files of Redis 7.4 and later, and with foreign_everywhere in all: values of types that
     * this server has not are skipped, and `key` is called with their type. Else they are
     * refused. */
    bool skip_foreign, foreign_everywhere;
    bool check_checksum; /* the reader must maintain it */
} rdbFileOptions;

/* Result of reading. */
typedef struct rdbFileResult {
    int version;
    compressCodec codec; /* COMPRESS_NONE: the file is not compressed */
    /* With a codec: the offsets at which reading has ended, in the decompressed bytes and in the
     * file. */
    uint64_t logical, physical;
    bool bad_header;        /* not an RDB file, or of a version that is not accepted */
    bool checksum_disabled; /* the file has none */
    bool bad_checksum;
    uint64_t expected, found; /* checksums */
} rdbFileResult;

/* Reads a file up to and including its checksum; following bytes remain in the reader's source.
 * Fails with ERR_SYNTAX, ERR_IO or the handler's status; the reason is in r->why. */
status rdbFileRead(rdbReader *r, const rdbFileOptions *options, const rdbFileHandler *handler,
                   void *arg, rdbFileResult *out) MUST_USE;

#endif
