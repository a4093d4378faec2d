/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Values of keys in the RDB format: what is stored in a file for a key, and the body of DUMP. Main thread, or a
 * forked child. */
#ifndef FORMAT_RDB_VALUE_H
#define FORMAT_RDB_VALUE_H

#include <stdbool.h>
#include <stdint.h>

#include "format/rdb_format.h"
#include "format/rdb_reader.h"
#include "format/rdb_writer.h"
#include "store/store.h"
#include "store/type_list.h"
#include "store/type_set.h"

/* The type byte that goes with rdbWriteValue(). */
rdbType rdbTypeOf(const robj *o);
/* Whether a reader of this RDB version knows the type. */
bool rdbTypeInVersion(rdbType type, int version);
/* Writes the value, without type and key. Fields of a hash that have expired are written, too. */
void rdbWriteValue(rdbWriter *w, const robj *o);
/* Bytes of the value without compression: DEBUG OBJECT's serializedlength. */
size_t rdbValueSize(const robj *o);

#endif
