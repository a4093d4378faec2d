/* SPDX-License-Identifier: BSD-3-Clause
 *
 * rdbReader: the primitives of the RDB format out of a source, with offset and running checksum. Every byte is
 * hostile: lengths are checked against what is there before memory is taken for them.
 *
 * Functions return OK, or a failure whose reason is in `r->why`: ERR_SYNTAX for bytes that are not the format,
 * ERR_IO for the source's own failures, its end among them. After a failure the reader is only good for
 * rdbReaderClear() and the questions. One thread at a time. */
#ifndef FORMAT_RDB_READER_H
#define FORMAT_RDB_READER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/alloc.h"
#include "base/error.h"
#include "base/slice.h"
#include "base/str.h"

/* Where the bytes come from. */
typedef struct rdbSource rdbSource;
struct rdbSource {
    /* Reads 1 to `cap` bytes into `dst`; *len 0 is the end. */
    status (*read)(rdbSource *source, void *dst, size_t cap, size_t *len, reason *why);
};

/* A source of bytes in memory, which it borrows. */
typedef struct rdbSliceSource {
    rdbSource source;
    slice rest;
} rdbSliceSource;
void rdbSliceSourceInit(rdbSliceSource *s, slice bytes);

enum { RDB_READER_BUFFER = 64 * 1024 };

typedef struct rdbReader {
    rdbSource *source;
    bool checksum;          /* maintain `crc` */
    bool short_read;        /* the failure is the end of the source */
    uint64_t crc;           /* of all bytes consumed up to `summed` */
    uint64_t base;          /* offset of the buffer's first byte */
    size_t at, end, summed; /* in the buffer */
    char *buffer;
    str text, packed; /* the last string, and its compressed form */
    reason why;
} rdbReader;

/* The source is borrowed. */
void rdbReaderInit(rdbReader *r, rdbSource *source, bool checksum);
void rdbReaderClear(rdbReader *r);
/* Bytes consumed. */
static inline uint64_t rdbReaderOffset(const rdbReader *r) { return r->base + r->at; }
/* The checksum of all bytes consumed. */
uint64_t rdbReaderChecksum(rdbReader *r);
/* A failure of the content: sets the reason, returns ERR_SYNTAX. */
status rdbReaderFail(rdbReader *r, const char *format, ...) __attribute__((format(printf, 2, 3)));

status rdbReadBytes(rdbReader *r, void *dst, size_t len) MUST_USE;
status rdbReadByte(rdbReader *r, uint8_t *out) MUST_USE;
status rdbReadU16(rdbReader *r, uint16_t *out) MUST_USE;
status rdbReadU32(rdbReader *r, uint32_t *out) MUST_USE;
status rdbReadU64(rdbReader *r, uint64_t *out) MUST_USE;
/* A length; one that announces an encoded string is refused. */
status rdbReadLength(rdbReader *r, uint64_t *out) MUST_USE;
/* A string in any encoding; *out is borrowed until the next read of any kind. */
status rdbReadString(rdbReader *r, slice *out) MUST_USE;
/* The same into a string of the caller's, which it replaces. */
status rdbReadStringInto(rdbReader *r, str *out) MUST_USE;
/* 8 bytes, IEEE 754. */
status rdbReadDouble(rdbReader *r, double *out) MUST_USE;
/* The text form of old sorted sets. */
status rdbReadDoubleText(rdbReader *r, double *out) MUST_USE;

#endif
