/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Frames of LZ4 (liblz4) and Zstandard (libzstd), decompressed in steps. A build without one of the
 * libraries (BUILD_LZ4=no, BUILD_ZSTD=no) has the same functions and refuses its frames. One thread
 * at a time per decompressor. */
#ifndef IO_COMPRESS_H
#define IO_COMPRESS_H

#include <stdbool.h>
#include <stddef.h>

#include "base/alloc.h"
#include "base/error.h"

/* The numbers are those of Valkey's files. */
typedef enum compressCodec { COMPRESS_NONE = 0, COMPRESS_LZ4 = 1, COMPRESS_ZSTD = 2 } compressCodec;

/* "none", "lz4" or "zstd". */
const char *compressName(compressCodec codec);
/* The codecs of this build, as "lz4,zstd"; "none" if there are none. */
const char *compressBuilt(void);

/* Reads one frame. */
typedef struct decompressor decompressor;

/* ERR_NOT_FOUND: this build has no such codec; ERR_NO_MEMORY. With `skip_checksums` the checksums
 * of the frame are read and not compared. */
status decompressorNew(compressCodec codec, bool skip_checksums, decompressor **out,
                       reason *why) MUST_USE;
void decompressorFree(decompressor *d);

/* One step: reads up to *in_len bytes and writes up to *out_len; sets both to what was done. If
 * *out_len bytes were written there may be more without further input. *done: the frame is
 * complete; the rest of the input is not part of it. ERR_SYNTAX: the frame is damaged. */
status decompressorStep(decompressor *d, const void *in, size_t *in_len, void *out, size_t *out_len,
                        bool *done, reason *why) MUST_USE;

#endif
