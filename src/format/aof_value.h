/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Values as commands that create them: base files of append only files that are not in the RDB
 * format. Main thread, or a forked child. */
#ifndef FORMAT_AOF_VALUE_H
#define FORMAT_AOF_VALUE_H

#include <stdint.h>

#include "format/rdb_writer.h"
#include "store/object.h"

/* Writes the commands that create the key, with its expiry time, in the selected database. */
void aofWriteKey(rdbWriter *w, const robj *o);
/* Writes the command that sets the expiry time of a member of a value of `type`, TYPE_SET or
 * TYPE_ZSET. */
void aofWriteMemberTime(rdbWriter *w, int type, slice key, slice member, int64_t time_ms);
/* Writes any command, for types of modules. */
void aofWriteCommand(rdbWriter *w, int argc, const slice *argv);
/* Writes SELECT. */
void aofWriteSelect(rdbWriter *w, int db_id);
/* Writes FUNCTION LOAD. */
void aofWriteLibrary(rdbWriter *w, slice code);
/* Writes the annotation of a time. */
void aofWriteTime(rdbWriter *w, int64_t time_s);

#endif
