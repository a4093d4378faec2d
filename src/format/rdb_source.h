/* SPDX-License-Identifier: BSD-3-Clause
 *
 * An open file as the source of rdbReader and aofReader. One thread at a time. */
#ifndef FORMAT_RDB_SOURCE_H
#define FORMAT_RDB_SOURCE_H

#include "format/rdb_reader.h"
#include "io/file_stream.h"

typedef struct rdbFileSource {
    rdbSource source;
    fileReader file;
} rdbFileSource;

/* Fails as fileReaderOpen(). To be closed with fileReaderClose(&s->file), also after a failure. */
status rdbFileSourceOpen(rdbFileSource *s, const char *path, reason *why) MUST_USE;

#endif
