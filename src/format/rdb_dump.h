/* SPDX-License-Identifier: BSD-3-Clause
 *
 * The payload of DUMP and RESTORE: type byte, value, RDB version, checksum. Main thread. */
#ifndef FORMAT_RDB_DUMP_H
#define FORMAT_RDB_DUMP_H

#include <stdbool.h>

#include "base/blob.h"
#include "base/error.h"
#include "base/slice.h"
#include "base/str.h"
#include "format/rdb_module.h"
#include "format/rdb_settings.h"
#include "format/rdb_value.h"
#include "store/object.h"

enum { RDB_DUMP_FOOTER = 10 };

/* Appends the payload of the object's value; `db_id` is where the key is, for types of modules.
 * Main thread. */
void rdbDump(const robj *o, int db_id, rdbForm form, str *out);
/* The same as a blob of its own, which the caller releases; NULL when memory is exhausted. Within
 * a fiber (base/fiber.h) it may be suspended; the value must not change meanwhile. Text above
 * RDB_DUMP_PLAIN_MIN bytes is not compressed: that cannot be suspended. */
enum { RDB_DUMP_PLAIN_MIN = 1024 * 1024 };
blob *rdbDumpBlob(const robj *o, int db_id, rdbForm form, bool in_fiber) MUST_USE;
/* Appends the version, and the checksum of all bytes of `out` from `from` on. */
void rdbDumpAppendFooter(str *out, size_t from, int version);
/* True if the payload ends with an accepted version (`relaxed`: also unknown ones) and a correct
 * checksum, which is not compared if `skip_checksum`, or if it is 0 in a version of Redis that
 * allows this. *version is set. */
bool rdbDumpHasFooter(slice payload, bool relaxed, bool skip_checksum, int *version);
/* Reads type and value from a payload without its footer into a new object for `key`, which the
 * caller owns; `version` is that of the footer. Fails if bytes remain or the value has no elements;
 * with ERR_NOT_FOUND for a type of another server, in *type. */
status rdbDumpRead(slice body, int version, slice key, const rdbReadOptions *options, robj **out,
                   uint8_t *type, reason *why) MUST_USE;

/* Finds the name of the module's type in `body`, a payload without footer. False: it is no value of
 * RDB_TYPE_MODULE_2, or the module is loaded. */
bool rdbDumpForeignModule(slice body, char name[RDB_MODULE_NAME_SIZE]);

#endif
