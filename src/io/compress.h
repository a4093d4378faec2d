/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Decompresses frames of LZ4 (liblz4) and Zstandard (libzstd) in steps, and compresses with
 * Zstandard. A build without one of the libraries (BUILD_LZ4=no, BUILD_ZSTD=no) has the same
 * functions and refuses frames of that library. One thread at a time per instance. */
#ifndef IO_COMPRESS_H
#define IO_COMPRESS_H

#include <stdbool.h>
#include <stddef.h>

#include "base/alloc.h"
#include "base/error.h"

/* The numbers are those in compressed RDB files of Valkey. */
typedef enum compressCodec { COMPRESS_NONE = 0, COMPRESS_LZ4 = 1, COMPRESS_ZSTD = 2 } compressCodec;

/* "none", "lz4" or "zstd". */
const char *compressName(compressCodec codec);
/* The codecs of this build: "lz4,zstd", one of the two, or "none". */
const char *compressBuilt(void);

/* State for reading one frame. */
typedef struct decompressor decompressor;

/* Fails with ERR_NOT_FOUND if this build has no such codec, or with ERR_NO_MEMORY. With
 * `skip_checksums` the checksums of the frame are read and not compared. */
status decompressorNew(compressCodec codec, bool skip_checksums, decompressor **out,
                       reason *why) MUST_USE;
void decompressorFree(decompressor *d);

/* Does one step: reads up to *in_len bytes, writes up to *out_len bytes, and sets both to the
 * numbers of bytes that were read and written. If the output was filled, the next step may write
 * more without further input. *done: the frame is complete; the rest of the input is not part of
 * it. ERR_SYNTAX: the frame is damaged. */
status decompressorStep(decompressor *d, const void *in, size_t *in_len, void *out, size_t *out_len,
                        bool *done, reason *why) MUST_USE;

/* State for writing one frame, with a checksum. */
typedef struct compressor compressor;

/* Fails with ERR_NOT_FOUND for all but COMPRESS_ZSTD and in a build without it, or with
 * ERR_NO_MEMORY. */
status compressorNew(compressCodec codec, compressor **out, reason *why) MUST_USE;
void compressorFree(compressor *c);

/* Does one step: reads up to *in_len bytes, writes up to *out_len bytes, and sets both to the
 * numbers of bytes that were read and written. *done: all input was read, or, with `end`, the frame
 * is complete. */
status compressorStep(compressor *c, const void *in, size_t *in_len, void *out, size_t *out_len,
                      bool end, bool *done, reason *why) MUST_USE;

#endif
