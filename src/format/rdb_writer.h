/* SPDX-License-Identifier: BSD-3-Clause
 *
 * rdbWriter: writes the primitives of the RDB format (lengths, strings, numbers) to a sink, with a
 * running checksum.
 *
 * Errors are kept: after the first failure of the sink the other writes do nothing, so a caller may
 * write a whole value and test rdbWriterStatus() once. One thread at a time. */
#ifndef FORMAT_RDB_WRITER_H
#define FORMAT_RDB_WRITER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/alloc.h"
#include "base/blob.h"
#include "base/error.h"
#include "base/slice.h"
#include "base/str.h"

/* Sink of the bytes: a file, a socket, several sockets, memory. */
typedef struct rdbSink rdbSink;
typedef struct rdbWriter rdbWriter;
struct rdbSink {
    /* Writes all of the `len` bytes or fails. Called with up to RDB_WRITER_BUFFER bytes, or more
     * for a longer string. */
    status (*write)(rdbSink *sink, const void *bytes, size_t len, reason *why);
    /* NULL, or takes a string of RDB_STRING_PLAIN_MAX + 1 bytes or more without its encoding, as
     * the next part of the output; it may take what is in the writer's buffer first. False: the
     * writer encodes the string itself. */
    bool (*string)(rdbSink *sink, rdbWriter *w, slice text);
    /* NULL, or the same for a string that it may keep a reference to. */
    bool (*shared)(rdbSink *sink, rdbWriter *w, blob *text);
    /* NULL, or the same for a string of `len` bytes that is expanded from these bytes with the
     * dictionary (store/dictionary.h). */
    bool (*expand)(rdbSink *sink, rdbWriter *w, uint32_t dictionary, slice packed, size_t len);
    /* NULL, or takes the bytes of a blob as they are, to which it keeps a reference, after what is
     * in the writer's buffer. False: the writer copies them. */
    bool (*lend)(rdbSink *sink, rdbWriter *w, blob *bytes);
};

/* A sink that appends to a string. */
typedef struct rdbStrSink {
    rdbSink sink;
    str *out;
} rdbStrSink;
void rdbStrSinkInit(rdbStrSink *s, str *out);

enum { RDB_WRITER_BUFFER = 64 * 1024, RDB_WRITER_CLASSES = 32 };
enum { RDB_STRING_PLAIN_MAX = 20 }; /* longer strings may be compressed */

struct rdbWriter {
    rdbSink *sink;
    bool checksum; /* maintain `crc` */
    /* LZF for strings over 20 bytes if that saves at least 4 bytes; tried less often if it rarely
     * does. */
    bool compress;
    bool released_types; /* values are written as types that Valkey has: rdbTypeWritten() */
    bool redis_types;    /* with released_types: types that Redis 7.4 has */
    uint64_t crc;        /* of all bytes sent to the sink */
    int db_id;           /* of the following values, for those of modules */
    uint64_t flushed;
    size_t used;
    status failed;
    reason why;
    char *buffer; /* RDB_WRITER_BUFFER bytes */
    /* Per binary logarithm of the length: consecutive strings that did not become shorter, and how
     * many of the next ones are not tried. */
    uint8_t futile[RDB_WRITER_CLASSES], untried[RDB_WRITER_CLASSES];
    char *packed; /* for compressed strings; grows */
    size_t packed_cap;
    bool owns_buffer;
};

/* The sink is borrowed. rdbWriterClear() frees buffers; what was not flushed is lost. */
void rdbWriterInit(rdbWriter *w, rdbSink *sink, bool checksum, bool compress);
/* The same with a buffer of RDB_WRITER_BUFFER bytes that belongs to the sink, so that it can keep
 * what is in it instead of copying it: write() and string() may exchange w->buffer, and string()
 * may change w->used. No checksum, as the sink sees strings that are not encoded. */
void rdbWriterInitBorrowed(rdbWriter *w, rdbSink *sink, char *buffer);
void rdbWriterClear(rdbWriter *w);
/* OK, or the first failure, whose reason is in `w->why`. */
static inline status rdbWriterStatus(const rdbWriter *w) { return w->failed; }
/* Makes the writer fail with this reason, because the data cannot be written correctly. No effect
 * if it has failed before. */
void rdbWriterFail(rdbWriter *w, const char *why);
/* Sends the buffered bytes to the sink. */
status rdbWriterFlush(rdbWriter *w);
/* Number of bytes written so far, including those in the buffer. */
static inline uint64_t rdbWriterOffset(const rdbWriter *w) { return w->flushed + w->used; }
/* The checksum of all bytes so far (0 without one). Flushes. */
uint64_t rdbWriterChecksum(rdbWriter *w);

void rdbWriteBytes(rdbWriter *w, const void *bytes, size_t len);
/* Writes the bytes of a blob as they are; a sink may keep a reference to it. No checksum. */
void rdbWriteBlobBytes(rdbWriter *w, blob *bytes);
void rdbWriteByte(rdbWriter *w, uint8_t byte);
void rdbWriteU64(rdbWriter *w, uint64_t v);
/* Writes a length in the fewest possible bytes. */
void rdbWriteLength(rdbWriter *w, uint64_t len);
/* Writes a string: as an integer if it is the canonical text of one of 32 bits, else compressed or
 * plain. */
void rdbWriteString(rdbWriter *w, slice text);
/* Writes the string in a blob; a sink may keep a reference to it, which the main thread drops. */
void rdbWriteShared(rdbWriter *w, blob *text);
/* Writes a string that is already compressed; `len` is the length of the text. */
void rdbWriteCompressed(rdbWriter *w, slice packed, size_t len);
/* Writes an integer as a string of decimal digits. */
void rdbWriteIntString(rdbWriter *w, int64_t v);
/* Writes 8 bytes, IEEE 754. */
void rdbWriteDouble(rdbWriter *w, double v);

#endif
