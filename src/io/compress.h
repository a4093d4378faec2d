/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Compresses and decompresses frames of LZ4 (liblz4) and Zstandard (libzstd) in steps. A build
 * without one of the libraries (BUILD_LZ4=no, BUILD_ZSTD=no) has the same functions and refuses
 * frames of that library. One thread at a time per compressor or decompressor. */
#ifndef IO_COMPRESS_H
#define IO_COMPRESS_H

#include <stdbool.h>
#include <stddef.h>

#include "base/alloc.h"
#include "base/error.h"
#include "base/slice.h"
#include "base/str.h"

/* The numbers are those in compressed RDB files of Valkey. */
typedef enum compressCodec { COMPRESS_NONE = 0, COMPRESS_LZ4 = 1, COMPRESS_ZSTD = 2 } compressCodec;

/* "none", "lz4" or "zstd". */
const char *compressName(compressCodec codec);
/* The codecs of this build: "lz4,zstd", one of the two, or "none". */
const char *compressBuilt(void);
/* False if this build does not have the codec. */
bool compressHas(compressCodec codec);
/* ERR_NOT_FOUND with the reason of Valkey if this build does not have the codec. */
status compressRequire(compressCodec codec, reason *why) MUST_USE;

/* ------------------------------------------------------------------ the head of a frame */

/* In files and streams of Valkey 9.2 a frame follows these bytes: the signature VCS, version,
 * codec, a reserved byte, kind. */
enum { COMPRESS_HEAD_LEN = 7, COMPRESS_SIGNATURE_LEN = 3 };
typedef enum compressKind { COMPRESS_FILE = 1, COMPRESS_STREAM = 2 } compressKind;

/* True if these first bytes are those of a head; COMPRESS_SIGNATURE_LEN of them are needed. */
bool compressIsHead(slice start);
void compressHeadPrint(char head[COMPRESS_HEAD_LEN], compressCodec codec, compressKind kind);
/* COMPRESS_NONE if version, codec or kind is not supported; a codec that this build does not have
 * is returned. */
compressCodec compressHeadParse(const char head[COMPRESS_HEAD_LEN], compressKind kind);

/* ------------------------------------------------------------------ compressing */

/* State for writing one frame. */
typedef struct compressor compressor;

/* Checksums of a frame of LZ4: of each block and of the content; Zstandard has only that of the
 * content. */
typedef struct compressChecksums {
    bool blocks, content;
} compressChecksums;

/* Fails with ERR_NOT_FOUND if this build has no such codec, or with ERR_NO_MEMORY. */
status compressorNew(compressCodec codec, compressChecksums checksums, compressor **out,
                     reason *why) MUST_USE;
/* NULL is allowed. */
void compressorFree(compressor *c);
/* Each appends compressed bytes to `out`, if there are any: more content; what is needed to
 * decompress all content so far; the end of the frame, after which the compressor is only freed.
 * ERR_NO_MEMORY: the frame is unusable. */
status compressorAdd(compressor *c, const void *bytes, size_t len, str *out, reason *why) MUST_USE;
status compressorFlush(compressor *c, str *out, reason *why) MUST_USE;
status compressorEnd(compressor *c, str *out, reason *why) MUST_USE;

/* ------------------------------------------------------------------ decompressing */

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

#endif
