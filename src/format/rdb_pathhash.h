/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Path hashes, a type of Valkey 9.2 that this server does not have. All bytes are untrusted. */
#ifndef FORMAT_RDB_PATHHASH_H
#define FORMAT_RDB_PATHHASH_H

#include "format/rdb_reader.h"

/* Skips the value of a path hash. */
status rdbSkipPathHash(rdbReader *r) MUST_USE;

#endif
