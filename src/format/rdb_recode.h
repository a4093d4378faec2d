/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Changes how an RDB file is compressed as a whole (rdb_envelope.h) while it is received. All bytes
 * are untrusted; the records are not looked at. One thread at a time. */
#ifndef FORMAT_RDB_RECODE_H
#define FORMAT_RDB_RECODE_H

#include <stdbool.h>
#include <stddef.h>

#include "base/alloc.h"
#include "base/error.h"
#include "format/rdb_writer.h"
#include "io/compress.h"

typedef struct rdbRecoder rdbRecoder;

/* The file is written with this codec to `to`, which is borrowed; as it is if that is its codec.
 * `checksums`: what is compressed, or no longer compressed, gets a checksum. */
rdbRecoder *rdbRecoderNew(compressCodec codec, bool checksums, rdbSink *to);
void rdbRecoderFree(rdbRecoder *r);
/* ERR_SYNTAX: the file is damaged. */
status rdbRecoderWrite(rdbRecoder *r, const void *bytes, size_t len, reason *why) MUST_USE;
/* After the last byte of the file. */
status rdbRecoderEnd(rdbRecoder *r, reason *why) MUST_USE;

#endif
