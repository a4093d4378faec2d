/* SPDX-License-Identifier: BSD-3-Clause
 *
 * A dictionary of Zstandard, prepared for compressing and expanding single values. The only file
 * that uses the library for values; a build without it refuses (valueCodecRequire()).
 *
 * A packed value is a frame without magic number, size, checksum and number of a dictionary, and,
 * if it is short, without its headers, which would be 5 bytes that are the same for all: only who
 * knows the codec and the size of the value can expand it. ANY_THREAD, also with the same
 * codec: contexts of the library are shared by a pool. */
#ifndef STORE_VALUE_CODEC_H
#define STORE_VALUE_CODEC_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/alloc.h"
#include "base/error.h"
#include "base/slice.h"

/* Sizes of dictionaries that are trained, in bytes. */
enum { VALUE_CODEC_DICTIONARY_MIN = 1024, VALUE_CODEC_DICTIONARY_MAX = 64 * 1024 };

/* A value is stored packed only if that saves so many bytes, and so large a part of it. */
enum { VALUE_SAVED_MIN = 16, VALUE_SAVED_SHARE = 8 };

typedef struct valueCodec valueCodec;

/* ERR_NOT_FOUND with a reason if this build has no Zstandard. */
status valueCodecRequire(reason *why) MUST_USE;
/* With a dictionary, which is copied: trained bytes, or any text; without one if it is empty.
 * ERR_NOT_FOUND: no Zstandard; ERR_NO_MEMORY. */
status valueCodecNew(slice dictionary, valueCodec **out, reason *why) MUST_USE;
/* NULL is allowed. */
void valueCodecFree(valueCodec *c);
/* Bytes that it takes, which count as used memory. */
size_t valueCodecMemory(const valueCodec *c);

/* Returns the bytes written to `out`, or 0 if they do not fit, or would not be fewer than `plain`
 * has: the library wants some bytes more than it writes, at most 32. Takes 1 to 5 us for 1 KB. */
size_t valueCodecCompress(const valueCodec *c, slice plain, char *out, size_t cap);
/* False if `packed` cannot be a value of `plain_len` bytes; `out` is undefined then. Bytes that
 * were changed may be another text: only what valueCodecCompress() wrote is to be passed. */
bool valueCodecExpand(const valueCodec *c, slice packed, char *out, size_t plain_len);

/* Trains a dictionary of at most `cap` bytes from samples that lie one after the other. Returns its
 * size, or 0 if they are too few or too different. Takes about a second for 2 MB, and some 10 MB in
 * addition to ten times the samples. */
size_t valueCodecTrain(const char *samples, const size_t *lengths, unsigned count, char *out,
                       size_t cap);

/* Memory of idle contexts; and freeing them, when no other thread uses a codec. */
size_t valueCodecContextsMemory(void);
void valueCodecFreeContexts(void);

#endif
