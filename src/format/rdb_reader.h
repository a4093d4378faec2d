/* SPDX-License-Identifier: BSD-3-Clause
 *
 * rdbReader: reads the primitives of the RDB format from a source, with offset and running
 * checksum. All bytes are untrusted: memory is allocated as bytes arrive, not by announced lengths.
 *
 * Functions return OK, or a failure whose reason is in `r->why`: ERR_SYNTAX for invalid content,
 * ERR_IO for failures of the source, including its end. After a failure only rdbReaderClear() and
 * the query functions may be called. One thread at a time. */
#ifndef FORMAT_RDB_READER_H
#define FORMAT_RDB_READER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/alloc.h"
#include "base/error.h"
#include "base/slice.h"
#include "base/str.h"
#include "io/compress.h"

/* Source of the bytes. */
typedef struct rdbSource rdbSource;
struct rdbSource {
    /* Reads 1 to `cap` bytes into `dst`; *len is 0 at the end. */
    status (*read)(rdbSource *source, void *dst, size_t cap, size_t *len, reason *why);
};

/* A source that reads from memory, which it borrows. */
typedef struct rdbSliceSource {
    rdbSource source;
    slice rest;
} rdbSliceSource;
void rdbSliceSourceInit(rdbSliceSource *s, slice bytes);

enum { RDB_READER_BUFFER = 64 * 1024 };

typedef struct rdbReader {
    rdbSource *source;
    bool checksum;                  /* maintain `crc` */
    int db_id;                      /* of the following values, for those of modules */
    bool redis;                     /* types and opcodes have the meaning of rdb_redis.h */
    struct rdbTemplates *templates; /* of the file (rdb_redis.h); NULL: none, or a payload */
    bool short_read;                /* the failure was an unexpected end */
    compressCodec codec;            /* of the file (rdb_envelope.h) */
    uint64_t raw;                   /* with a codec: bytes of the file that were decompressed */
    uint64_t crc;                   /* of all bytes consumed up to `summed` */
    uint64_t base;                  /* offset of the buffer's first byte */
    size_t at, end, summed;         /* in the buffer */
    char *buffer;
    str text, packed; /* the last string, and its compressed form */
    reason why;
} rdbReader;

/* The source is borrowed. */
void rdbReaderInit(rdbReader *r, rdbSource *source, bool checksum);
void rdbReaderClear(rdbReader *r);
/* Number of bytes consumed. */
static inline uint64_t rdbReaderOffset(const rdbReader *r) { return r->base + r->at; }
/* Number of bytes of the file that were consumed, also if the file is compressed. */
static inline uint64_t rdbReaderProgress(const rdbReader *r) {
    return r->codec ? r->raw : rdbReaderOffset(r);
}
/* The checksum of all bytes consumed. */
uint64_t rdbReaderChecksum(rdbReader *r);
/* Reports invalid content: sets the reason, returns ERR_SYNTAX. */
status rdbReaderFail(rdbReader *r, const char *format, ...) __attribute__((format(printf, 2, 3)));

status rdbReadBytes(rdbReader *r, void *dst, size_t len) MUST_USE;
status rdbReadByte(rdbReader *r, uint8_t *out) MUST_USE;
status rdbReadU32(rdbReader *r, uint32_t *out) MUST_USE;
status rdbReadU64(rdbReader *r, uint64_t *out) MUST_USE;
/* Reads a length; fails if it announces an encoded string. */
status rdbReadLength(rdbReader *r, uint64_t *out) MUST_USE;
/* Reads a string in any encoding; *out is borrowed until the next read of any kind. */
status rdbReadString(rdbReader *r, slice *out) MUST_USE;
/* The same into the caller's string, whose content is replaced. */
status rdbReadStringInto(rdbReader *r, str *out) MUST_USE;
/* Reads 8 bytes, IEEE 754. */
status rdbReadDouble(rdbReader *r, double *out) MUST_USE;
/* Reads the text form of old sorted sets. */
status rdbReadDoubleText(rdbReader *r, double *out) MUST_USE;

#endif
