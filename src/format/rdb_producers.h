/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Ids of producers of a stream (ds/stream_producers.h) in files and payloads.
 *
 * Redis writes these ids at the end of the value. This server writes them as an aux field, which
 * servers that do not know the field ignore: in a file before the record of the key, in a payload
 * of DUMP after the value. All bytes are untrusted. Main thread, or a forked child. */
#ifndef FORMAT_RDB_PRODUCERS_H
#define FORMAT_RDB_PRODUCERS_H

#include <stdbool.h>

#include "ds/stream_producers.h"
#include "format/rdb_reader.h"
#include "format/rdb_value.h"
#include "format/rdb_writer.h"
#include "store/object.h"

/* The name of the aux field. */
#define RDB_PRODUCERS_FIELD SLICE("stream-idmp")

/* Calls rdbWriteProducers() if the value is a stream. */
void rdbWriteProducersOf(rdbWriter *w, const robj *o);
/* Reads the ids at the end of a value of Redis into the stream. */
status rdbReadProducers(rdbReader *r, stream *s) MUST_USE;
/* Reads the value of the aux field into the stream `o`. ERR_SYNTAX: the reason is in r->why. */
status rdbReadProducersField(rdbReader *r, slice value, robj *o) MUST_USE;
/* Reads the whole aux field after a value in a payload; nothing else may follow a value there. */
status rdbReadProducersAfter(rdbReader *r, robj *o) MUST_USE;

#endif
