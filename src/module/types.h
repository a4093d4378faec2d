/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Types of values that modules add. Main thread only. */
#ifndef MODULE_TYPES_H
#define MODULE_TYPES_H

#include <stdbool.h>

#include "format/rdb_module.h"
#include "module/context.h"

enum { TYPE_NAME_LEN = 9 };

struct ValkeyModuleType {
    moduleType type;
    moduleTypeOps ops;
    moduleCodec codec;
    module *owner;
    ValkeyModuleTypeMethods methods; /* zero beyond the version that the module has stated */
    char name[TYPE_NAME_LEN + 1];
    ValkeyModuleType *next;
};

/* What a callback may ask about the key of a value. */
struct ValkeyModuleKeyOptCtx {
    ValkeyModuleString *from, *to; /* NULL: unknown */
    int from_db, to_db;
};

/* What a value is read from or written to. */
struct ValkeyModuleIO {
    rdbReader *reader; /* one of the two */
    rdbWriter *writer;
    const ValkeyModuleType *type;
    ValkeyModuleString *key; /* NULL: none */
    int db_id;
    bool failed;
    bool has_context;
    ValkeyModuleCtx context;
};

void ioInit(ValkeyModuleIO *io, const ValkeyModuleType *t, const valuePlace *at);
void ioClear(ValkeyModuleIO *io);
static inline const ValkeyModuleType *typeOfCodec(const moduleCodec *c) { return c->type->owner; }
/* The functions of codecs: format/rdb_module.h. */
status ioRead(const moduleCodec *c, rdbReader *r, int version, const valuePlace *at, void **value);
void ioWrite(const moduleCodec *c, rdbWriter *w, const valuePlace *at, const void *value);
void ioWriteCommands(const moduleCodec *c, rdbWriter *w, const valuePlace *at, const void *value);
status ioReadAux(const moduleCodec *c, rdbReader *r, int version, int when);
void ioWriteAux(const moduleCodec *c, rdbWriter *w, int when);

/* moduleTypeOps.compact() by the callback `defrag` of the type. */
uint64_t defragValue(const moduleType *t, void **value, uint64_t cursor, compaction *by);
/* Ends the global callbacks of a module. */
void defragRemove(module *m);

/* Adds a value to a digest. */
void digestOfModule(const moduleType *t, const valuePlace *at, const void *value, digest *to);

/* True if the module has registered any. */
bool typesExist(const module *m);
/* Removes those of a module of which no values exist. */
void typesRemove(module *m);

#endif
