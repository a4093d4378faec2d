/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Data of modules in RDB files: a sequence of typed items that ends with an end mark, so it can be
 * skipped without the module. Types that modules add (store/type_module.h) register here how they
 * are read and written.
 *
 * Main thread; a forked child for writing. */
#ifndef FORMAT_RDB_MODULE_H
#define FORMAT_RDB_MODULE_H

#include "format/rdb_reader.h"
#include "format/rdb_writer.h"
#include "store/type_module.h"

enum { RDB_MODULE_NAME_SIZE = 10, RDB_METADATA_NAME_SIZE = 5, RDB_MODULE_VERSION_MAX = 1023 };

/* The name of a module's type from its 64-bit id: nine characters of 6 bits, then 10 bits of
 * version. */
void rdbModuleName(uint64_t id, char name[RDB_MODULE_NAME_SIZE]);
/* The id; 0 if `name` is not nine characters of A-Z, a-z, 0-9, - and _, or the version is out of
 * range. */
uint64_t rdbModuleId(slice name, int version);
/* The name of a class of key metadata (rdb_redis.h): four such characters. */
void rdbMetadataName(uint32_t class, char name[RDB_METADATA_NAME_SIZE]);
/* True if a type with the name in this id is registered, in whichever version. */
bool rdbModuleIsLoaded(uint64_t id);
/* Skips items up to and including the end mark. */
status rdbSkipModuleData(rdbReader *r) MUST_USE;
/* Skips a value of RDB_TYPE_MODULE_2: the type's id and its items. */
status rdbSkipModuleValue(rdbReader *r) MUST_USE;

/* When a type's own data, which belongs to no key, is written: before or after the keys. */
enum { RDB_AUX_BEFORE = 1, RDB_AUX_AFTER = 2 };

/* How a type is saved. The database of a value is in `db_id` of the reader or writer, too. Failures
 * of a reader are kept in it (rdbReaderFail()), those of a writer in the writer. */
typedef struct moduleCodec {
    uint64_t id; /* rdbModuleId() */
    moduleType *type;
    status (*read)(const struct moduleCodec *c, rdbReader *r, int version, const valuePlace *at,
                   void **value);
    void (*write)(const struct moduleCodec *c, rdbWriter *w, const valuePlace *at,
                  const void *value);
    /* Writes the commands that create the value: aofWriteCommand(). NULL: the key is lost in such a
     * file. */
    void (*write_commands)(const struct moduleCodec *c, rdbWriter *w, const valuePlace *at,
                           const void *value);
    /* Data of the type as a whole; `when` is one of RDB_AUX_. */
    unsigned aux_when; /* 0: none */
    /* Nothing is written if write_aux() writes nothing: such a file needs no module. */
    bool aux_if_any;
    status (*read_aux)(const struct moduleCodec *c, rdbReader *r, int version, int when);
    void (*write_aux)(const struct moduleCodec *c, rdbWriter *w, int when);
    struct moduleCodec *next; /* private */
} moduleCodec;

/* Sets type->codec; the type is registered and unregistered with it. ERR_EXISTS as
 * moduleTypeRegister(). */
status moduleCodecRegister(moduleCodec *c) MUST_USE;
/* ERR_AGAIN while values of its type exist. */
status moduleCodecUnregister(moduleCodec *c) MUST_USE;

/* The items. Valkey writes signed numbers with the opcode of unsigned ones, and reads no others. */
void rdbWriteModuleSigned(rdbWriter *w, int64_t v);
void rdbWriteModuleUnsigned(rdbWriter *w, uint64_t v);
void rdbWriteModuleFloat(rdbWriter *w, float v);
void rdbWriteModuleDouble(rdbWriter *w, double v);
void rdbWriteModuleString(rdbWriter *w, slice text);
/* Reading fails if the next item is of another type. */
status rdbReadModuleSigned(rdbReader *r, int64_t *out) MUST_USE;
status rdbReadModuleUnsigned(rdbReader *r, uint64_t *out) MUST_USE;
status rdbReadModuleFloat(rdbReader *r, float *out) MUST_USE;
status rdbReadModuleDouble(rdbReader *r, double *out) MUST_USE;
status rdbReadModuleString(rdbReader *r, slice *out) MUST_USE;

/* ---- for the rest of this folder ---- */

/* The value of RDB_TYPE_MODULE_2, without the type byte. */
void rdbWriteModuleValue(rdbWriter *w, const robj *o);
/* Reads one, after its id, into a new object. ERR_NOT_FOUND if its type is not registered. */
status rdbReadModuleValue(rdbReader *r, uint64_t id, slice key, robj **out) MUST_USE;
/* Writes the data of all types that is due before or after the keys. */
void rdbWriteModuleAux(rdbWriter *w, int when);
/* Reads or skips one record, after its opcode, and sets `name`. With `skips` nothing is read by
 * modules; a record of Redis whose module is not loaded is skipped, too. */
status rdbReadModuleAux(rdbReader *r, bool skips, char name[RDB_MODULE_NAME_SIZE],
                        bool *skipped) MUST_USE;

#endif
