/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Values as commands that create them: base files of append only files that are not in the RDB
 * format. Main thread, or a forked child. */
#ifndef FORMAT_AOF_VALUE_H
#define FORMAT_AOF_VALUE_H

#include <stdint.h>

#include "format/rdb_writer.h"
#include "store/object.h"
#include "store/path_fields.h"

/* Writes the commands that create the key, with its expiry time, in the selected database. */
void aofWriteKey(rdbWriter *w, const robj *o);
/* Writes the command that sets the expiry time of a member of a value of `type`, TYPE_SET or
 * TYPE_ZSET. */
void aofWriteMemberTime(rdbWriter *w, int type, slice key, slice member, int64_t time_ms);
/* Writes the commands that set the fields of a path of a path hash. */
void aofWritePath(rdbWriter *w, slice key, slice path, const pathFields *fields);
/* Writes any command, for types of modules. */
void aofWriteCommand(rdbWriter *w, int argc, const slice *argv);
/* Writes SELECT. */
void aofWriteSelect(rdbWriter *w, int db_id);
/* Ids of producers of a stream (ds/stream_producers.h) are written and propagated as XACK of this
 * reserved group name, which no stream has. Other servers reply 0 to such an XACK and change
 * nothing.
 *
 *   XACK key AOF_PRODUCERS LIMITS duration-s ids-max      sets both; forgets ids if one changes
 *   XACK key AOF_PRODUCERS ID producer iid id             adds an id, and counts it
 *   XACK key AOF_PRODUCERS DUPLICATE                      counts a duplicate
 *   XACK key AOF_PRODUCERS COUNTERS added duplicates      sets the counters */
#define AOF_PRODUCERS SLICE("\0idmp")
/* Writes FUNCTION LOAD. */
void aofWriteLibrary(rdbWriter *w, slice code);
/* Writes the annotation of a time. */
void aofWriteTime(rdbWriter *w, int64_t time_s);

#endif
