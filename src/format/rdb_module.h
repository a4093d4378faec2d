/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Data of modules in RDB files: a sequence of typed items that ends with an end mark, so it can be skipped without the
 * module. */
#ifndef FORMAT_RDB_MODULE_H
#define FORMAT_RDB_MODULE_H

#include "format/rdb_reader.h"

enum { RDB_MODULE_NAME_SIZE = 10 };

/* The name of a module's type from its 64-bit id: nine characters of 6 bits, then 10 bits of version. */
void rdbModuleName(uint64_t id, char name[RDB_MODULE_NAME_SIZE]);
/* Skips items up to and including the end mark. */
status rdbSkipModuleData(rdbReader *r) MUST_USE;
/* Skips a value of RDB_TYPE_MODULE_2: the type's id and its items. */
status rdbSkipModuleValue(rdbReader *r) MUST_USE;

#endif
