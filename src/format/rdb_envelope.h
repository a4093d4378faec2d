/* SPDX-License-Identifier: BSD-3-Clause
 *
 * RDB files that Valkey 9.2 has compressed as a whole: 7 bytes (the signature VCS, version, codec,
 * a reserved byte, kind of stream), then one frame of LZ4 or Zstandard with a complete RDB file.
 * All bytes are untrusted. One thread at a time. */
#ifndef FORMAT_RDB_ENVELOPE_H
#define FORMAT_RDB_ENVELOPE_H

#include "base/slice.h"
#include "format/rdb_reader.h"

enum { RDB_ENVELOPE_LEN = 7, RDB_ENVELOPE_MAGIC = 3 };

/* True if the bytes, RDB_ENVELOPE_MAGIC or more, start such a file. */
bool rdbIsEnvelope(slice start);

typedef struct rdbEnvelope rdbEnvelope;

/* Called after the first RDB_ENVELOPE_LEN bytes, in `head`, were read: the reader continues with
 * the decompressed bytes, whose offsets start at 0. Fails if the bytes are not supported. */
status rdbEnvelopeBegin(rdbReader *r, const char head[RDB_ENVELOPE_LEN], bool skip_checksums,
                        rdbEnvelope **out) MUST_USE;
/* Reads the end of the frame, after the last decompressed byte was consumed. The reader continues
 * after the frame in the file, whose offsets count again. */
status rdbEnvelopeEnd(rdbEnvelope *e) MUST_USE;
/* NULL is allowed. The reader must not read on unless rdbEnvelopeEnd() was successful. */
void rdbEnvelopeFree(rdbEnvelope *e);

#endif
