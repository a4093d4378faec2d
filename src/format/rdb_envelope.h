/* SPDX-License-Identifier: BSD-3-Clause
 *
 * RDB files that are compressed as a whole, as Valkey 9.2 writes them: 7 bytes (the signature VCS,
 * version, codec, a reserved byte, kind of stream), then one frame of LZ4 or Zstandard with a
 * complete RDB file. All bytes are untrusted. One thread at a time. */
#ifndef FORMAT_RDB_ENVELOPE_H
#define FORMAT_RDB_ENVELOPE_H

#include "base/slice.h"
#include "format/rdb_reader.h"
#include "format/rdb_writer.h"
#include "io/compress.h"

enum { RDB_ENVELOPE_LEN = COMPRESS_HEAD_LEN };

/* ------------------------------------------------------------------ reading */

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

/* ------------------------------------------------------------------ writing */

/* A sink that compresses what it gets, and passes it to another sink. */
typedef struct rdbEnvelopeSink {
    rdbSink sink;
    rdbSink *to;
    compressor *codec; /* NULL: what it gets is passed on as it is */
    str packed;        /* not yet passed on */
    uint64_t in_bytes, out_bytes;
} rdbEnvelopeSink;

/* Borrows `to`. COMPRESS_NONE: nothing is compressed. `checksums`: the frame has some. Fails as
 * compressorNew() does; then there is nothing to clear. */
status rdbEnvelopeSinkInit(rdbEnvelopeSink *s, compressCodec codec, bool checksums, rdbSink *to,
                           reason *why) MUST_USE;
/* Writes the end of the frame, after the last byte of the file. */
status rdbEnvelopeSinkEnd(rdbEnvelopeSink *s, reason *why) MUST_USE;
void rdbEnvelopeSinkClear(rdbEnvelopeSink *s);

#endif
