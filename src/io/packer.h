/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Writing a stream that is compressed for one peer, which reads it by conn_unpack.h: a head of kind
 * COMPRESS_STREAM, then a frame that ends with the connection. One thread at a time per packer. */
#ifndef IO_PACKER_H
#define IO_PACKER_H

#include <stdint.h>

#include "base/alloc.h"
#include "base/error.h"
#include "base/slice.h"
#include "base/str.h"
#include "io/compress.h"

typedef struct packer packer;

/* ERR_NOT_FOUND: this build does not have the codec. ERR_NO_MEMORY. */
status packerNew(compressCodec codec, packer **out, reason *why) MUST_USE;
/* NULL is allowed. */
void packerFree(packer *p);
/* ERR_NO_MEMORY: the stream is unusable. */
status packerAdd(packer *p, slice bytes, reason *why) MUST_USE;
/* Returns the bytes to be sent so that the peer can read all that was added; the caller frees them.
 * ERR_NO_MEMORY: the stream is unusable. */
status packerFlush(packer *p, str *out, reason *why) MUST_USE;
/* Bytes that were added, and those that packerFlush() has returned for them. */
uint64_t packerPlainBytes(const packer *p);
uint64_t packerPackedBytes(const packer *p);

#endif
