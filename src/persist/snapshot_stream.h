/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Output of a snapshot that the main thread produces in slices: one stream of RDB bytes (or
 * commands) with a fixed amount of memory. The main thread copies records into blocks; a worker
 * thread encodes strings (LZF), computes the checksum, writes the file, and passes encoded bytes
 * back for replicas.
 *
 *   main thread                          worker                               main thread
 *   rdbWriter -> blocks of records  ->   rdbWriter -> file
 *                                                  -> encoded blobs      ->   snapshotStreamTake(),
 *                                                  sockets
 *
 * Nothing here blocks the main thread, except snapshotStreamFree(). The producer asks for
 * snapshotStreamRoom() before each step of its walk and ends its slice without it. What must be
 * written at once (the value of a key before its first change) is written in any case: blocks are
 * then allocated beyond the fixed amount, and counted as excess.
 *
 * All functions: main thread. */
#ifndef PERSIST_SNAPSHOT_STREAM_H
#define PERSIST_SNAPSHOT_STREAM_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/alloc.h"
#include "base/blob.h"
#include "base/error.h"
#include "format/rdb_writer.h"
#include "io/compress.h"
#include "io/loop.h"

typedef struct snapshotStream snapshotStream;

typedef struct snapshotStreamOptions {
    /* The file, written to `temporary` and renamed to `name` once it is on disk. NULL: no file. The
     * worker creates it. */
    const char *temporary, *name;
    /* The file is flushed to disk each time so many bytes were written; 0: at its end only. */
    int64_t sync_bytes;
    bool relays;         /* encoded bytes are also passed to snapshotStreamTake() */
    bool is_rdb;         /* the stream ends with the RDB format's end mark and checksum */
    bool checksum;       /* of an RDB file, or of the frame; else its checksum is 0 */
    compressCodec codec; /* of the whole */
    bool compress;       /* strings of more than RDB_STRING_PLAIN_MAX bytes */
    const char *cpus;    /* of the worker, as in threadSetCpus(); NULL: all */
    loop *loop;          /* woken when there is something to do; NULL: never */
} snapshotStreamOptions;

/* Texts are copied. ERR_IO: no thread could be started. */
status snapshotStreamNew(const snapshotStreamOptions *options, snapshotStream **out,
                         reason *why) MUST_USE;
/* Waits for the worker, which may be writing to a slow disk; an unfinished file is removed. NULL is
 * allowed. */
void snapshotStreamFree(snapshotStream *s);

/* ------------------------------------------------------------------ the producer */

/* Receives the header and the records, but not the end. Its checksum and offset are not those of
 * the file. It fails after the worker has failed. It keeps references to long strings of
 * rdbWriteShared(). */
rdbWriter *snapshotStreamWriter(snapshotStream *s);
/* A second writer for records that have to wait, because the first writer is within a record. */
rdbWriter *snapshotStreamSide(snapshotStream *s);
/* Appends what was written to the side writer, between two records of the first one. O(1). */
void snapshotStreamJoinSide(snapshotStream *s);
/* Bytes that may be written within the fixed amount of memory: RDB_WRITER_BUFFER at least, or 0;
 * then the loop is woken as soon as a quarter of it is free. After a failure it may be 0 forever.
 * Also releases what the worker has processed. */
size_t snapshotStreamRoom(snapshotStream *s);
/* Bytes held beyond the fixed amount of memory: blocks, also those of the side writer, and copies
 * of long strings. */
size_t snapshotStreamExcess(const snapshotStream *s);
/* No more records follow. */
void snapshotStreamEnd(snapshotStream *s);
/* Ends the stream without a result; the worker stops soon after, seen by snapshotStreamPoll(). */
void snapshotStreamCancel(snapshotStream *s);

/* ------------------------------------------------------------------ results */

typedef enum snapshotStreamState {
    SNAPSHOT_STREAM_RUNS,
    SNAPSHOT_STREAM_DONE,     /* everything was written, the file is on disk under its name */
    SNAPSHOT_STREAM_FAILED,   /* `why` is set; the temporary file was removed */
    SNAPSHOT_STREAM_CANCELLED /* the temporary file was removed */
} snapshotStreamState;
/* The last three are final: the worker has ended. The loop is woken for them. */
snapshotStreamState snapshotStreamPoll(snapshotStream *s, reason *why);
/* The next encoded bytes, in order; the caller releases them. NULL: none now (the loop is woken
 * when there are), or, in a final state, at all. The worker waits while SNAPSHOT_STREAM_RELAY bytes
 * have not been taken. */
enum { SNAPSHOT_STREAM_RELAY = 1024 * 1024 };
blob *snapshotStreamTake(snapshotStream *s);
/* The relayed bytes are unwanted from now on: there is no receiver. */
void snapshotStreamDropRelay(snapshotStream *s);

typedef struct snapshotStreamNumbers {
    uint64_t written; /* encoded bytes, compressed if there is a codec */
    size_t memory;    /* allocated for the stream now, in bytes */
    size_t peak;      /* the most so far */
} snapshotStreamNumbers;
snapshotStreamNumbers snapshotStreamCount(const snapshotStream *s);

#endif
