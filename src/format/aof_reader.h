/* SPDX-License-Identifier: BSD-3-Clause
 *
 * aofReader: reads the records of an append only file, which are commands as RESP arrays and
 * annotation lines. Knows nothing of commands except MULTI and EXEC, between which a file must not
 * end. All bytes are untrusted: memory is allocated as bytes arrive, not by announced lengths.
 *
 * A preamble in the RDB format at the start of a file (aofIsRdb()) is read by rdbReader; the
 * records follow at its end. One thread at a time. */
#ifndef FORMAT_AOF_READER_H
#define FORMAT_AOF_READER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/alloc.h"
#include "base/error.h"
#include "base/slice.h"
#include "format/rdb_reader.h"

enum {
    AOF_READ_STEP = 256 * 1024,
    AOF_ARGS_MAX = INT32_MAX, /* arguments of a record: as many as a request may have */
    AOF_SLACK = 64,           /* readable bytes after the last argument of a record */
    AOF_RDB_MAGIC = 6,        /* bytes that aofIsRdb() needs */
};
/* Bytes of an argument: no limit of the directive `proto-max-bulk-len` makes a file unreadable. */
#define AOF_BULK_MAX (INT64_C(1) << 40)

typedef enum aofItem {
    AOF_COMMAND,    /* argv, raw */
    AOF_ANNOTATION, /* a line that begins with '#' */
    AOF_END,        /* the end of the file, after a complete record */
    AOF_TRUNCATED,  /* the file ends inside a record, or with zero bytes only */
    AOF_INVALID,    /* not a record */
    AOF_FAILED,     /* the source cannot be read */
} aofItem;

typedef struct aofReader {
    rdbSource *source; /* borrowed */
    char *buffer;      /* holds the whole record; AOF_SLACK bytes longer than `cap` */
    size_t cap, at, end;
    uint64_t base; /* offset in the file of the buffer's first byte */
    bool at_end;   /* the source has no more bytes */
    /* The last item. */
    slice raw; /* the bytes of the record or line; borrowed until the next call */
    slice *argv;
    size_t argv_cap;
    int argc;
    /* MULTI and EXEC seen: the file may be cut only outside of transactions. */
    bool in_multi;
    /* The last record was a MULTI within MULTI, or an EXEC without; in_multi is then unchanged. */
    bool unexpected;
    /* After the last complete record outside of MULTI: offset in the file, and number of its line,
     * from 1. */
    uint64_t safe_offset;
    int64_t safe_line;
    int64_t line; /* number of the line after the last item */
    /* Of AOF_TRUNCATED, AOF_INVALID, AOF_FAILED: where the unexpected bytes are. */
    uint64_t error_offset;
    reason why; /* of the same */
} aofReader;

/* Reads from `source`, whose first byte is at `offset` in the file. The source is borrowed. */
void aofReaderInit(aofReader *r, rdbSource *source, uint64_t offset);
void aofReaderClear(aofReader *r);
/* Reads the next item. After AOF_END or AOF_TRUNCATED it may be called again if the source has got
 * more bytes: an incomplete record is read again from its start. After AOF_INVALID or AOF_FAILED
 * only aofReaderClear(). */
aofItem aofReaderNext(aofReader *r);
/* Offset in the file after the last complete item. */
static inline uint64_t aofReaderOffset(const aofReader *r) { return r->base + r->at; }
/* The time of a `#TS:` annotation, in seconds; false for other annotations. */
bool aofAnnotationTime(slice line, int64_t *time_s);
/* True if the file begins with an RDB preamble; `start` has its first AOF_RDB_MAGIC bytes, or all
 * of them. */
bool aofIsRdb(slice start);
/* The same for the file at `path`. Fails if it cannot be read. */
status aofFileIsRdb(const char *path, bool *yes, reason *why) MUST_USE;

/* Appends a command as a record. */
void aofPrintCommand(str *out, int argc, const slice *argv);
/* Appends the annotation of a time. */
void aofPrintTime(str *out, int64_t time_s);

#endif
