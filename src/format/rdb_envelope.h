/* SPDX-License-Identifier: BSD-3-Clause
 *
 * RDB files that are compressed as a whole, as Valkey 9.2 writes them: 7 bytes (the signature VCS,
 * version, codec, a reserved byte, kind of stream), then one frame of LZ4 or Zstandard with a
 * complete RDB file. All bytes are untrusted. One thread at a time. */
#ifndef FORMAT_RDB_ENVELOPE_H
#define FORMAT_RDB_ENVELOPE_H

#include "base/slice.h"
#include "format/rdb_reader.h"

enum { RDB_ENVELOPE_LEN = 7, RDB_ENVELOPE_MAGIC = 3 };

/* True if a file with these first bytes is such a file. `start` should have RDB_ENVELOPE_MAGIC
 * bytes or more. */
bool rdbIsEnvelope(slice start);

typedef struct rdbEnvelope rdbEnvelope;

/* Called after the first RDB_ENVELOPE_LEN bytes were read into `head`: the reader continues with
 * the decompressed bytes, whose offsets start at 0. Fails if version, codec or kind is not
 * supported. */
status rdbEnvelopeBegin(rdbReader *r, const char head[RDB_ENVELOPE_LEN], bool skip_checksums,
                        rdbEnvelope **out) MUST_USE;
/* Reads the end of the frame, after the last decompressed byte was consumed. The reader then
 * continues with the bytes of the file after the frame, and its offsets are those of the file
 * again. */
status rdbEnvelopeEnd(rdbEnvelope *e) MUST_USE;
/* NULL is allowed. The reader must not read on unless rdbEnvelopeEnd() was successful. */
void rdbEnvelopeFree(rdbEnvelope *e);

#endif
