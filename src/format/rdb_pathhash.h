/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Path hashes, a type of version 81, the one of Valkey 9.2. All bytes that are read are
 * untrusted. */
#ifndef FORMAT_RDB_PATHHASH_H
#define FORMAT_RDB_PATHHASH_H

#include "format/rdb_value_priv.h"
#include "store/path_fields.h"

/* Writes one path: its name, the number of its fields, the fields. */
void rdbWritePath(rdbWriter *w, slice path, const pathFields *fields);
/* Writes the number of paths, and the paths. */
void rdbWritePathHash(rdbWriter *w, const robj *o);
/* Reads that. */
status rdbReadPathHash(valueReader *v) MUST_USE;

#endif
