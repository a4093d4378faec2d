/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Receives a dataset into a file (download.h).
 *
 * Invariant: the file has all bytes received before the last `tail` ones, perhaps with another
 * compression (rdbcompression), and `crc` is their checksum. The last `tail` bytes are in `buffer`:
 * at the end they are the checksum, and the end mark if there is one. */
#include "repl/download.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "base/base.h"
#include "base/hash.h"
#include "format/rdb_recode.h"
#include "io/file.h"
#include "io/file_stream.h"
#include "io/sys.h"
#include "io/thread.h"
#include "persist/sync.h"

enum {
    CHUNK_BYTES = 256 * 1024,
    CHECKSUM_BYTES = 8,
    SYNC_BYTES = 8 * 1024 * 1024, /* the file is flushed to disk in pieces of this size */
    POLL_MS = 100,
};

typedef struct downloadSink {
    rdbSink sink;
    fileWriter *file;
} downloadSink;

struct download {
    linkTransfer what;
    conn *from;
    loop *loop;
    thread runner;
    fileWriter file;
    downloadSink sink; /* writes to the file */
    rdbRecoder *recoder;
    char *path;
    str first; /* received before the thread started */
    size_t first_used;
    size_t tail_max; /* bytes to keep back: checksum and mark */
    size_t tail;     /* kept back in `buffer` */
    uint64_t crc;
    bool has_begun;
    bool is_compressed; /* as a whole: the checksum is that of the frame */
    char *buffer;       /* the tail, followed by what was read */
    status result;
    reason why;
    int64_t received;     /* shared */
    bool cancelled, done; /* shared */
    bool cut;             /* the connection was lost */
};

bool downloadIsDone(const download *d) { return __atomic_load_n(&d->done, __ATOMIC_ACQUIRE); }

int64_t downloadBytes(const download *d) { return __atomic_load_n(&d->received, __ATOMIC_RELAXED); }

const char *downloadPath(const download *d) { return d->path; }

slice downloadRest(const download *d) {
    return sliceMake(d->first.ptr + d->first_used, d->first.len - d->first_used);
}

/* ------------------------------------------------------------------ the thread */

static status writeToFile(rdbSink *sink, const void *bytes, size_t len, reason *why) {
    return fileWriterWrite(((downloadSink *)sink)->file, bytes, len, why);
}

/* `len` bytes were added to the buffer. */
static status take(download *d, size_t len) {
    hotCheck(d->tail + len <= CHECKSUM_BYTES + CHUNK_BYTES + REPL_ID_LEN + CHUNK_BYTES);
    __atomic_store_n(&d->received, d->received + (int64_t)len, __ATOMIC_RELAXED);
    d->tail += len;
    if (d->tail <= d->tail_max) return OK;
    size_t ready = d->tail - d->tail_max;
    if (!d->has_begun) d->is_compressed = compressIsHead(sliceMake(d->buffer, d->tail));
    d->has_begun = true;
    d->crc = crc64(d->crc, d->buffer, ready);
    status st = rdbRecoderWrite(d->recoder, d->buffer, ready, &d->why);
    memmove(d->buffer, d->buffer + ready, d->tail_max);
    d->tail = d->tail_max;
    return st;
}

static bool isComplete(const download *d) {
    hotCheck(d->tail <= d->tail_max);
    hotCheck(d->what.bytes < 0 || d->received <= d->what.bytes);
    if (d->what.bytes >= 0) return d->received == d->what.bytes;
    return d->tail == d->tail_max && !memcmp(d->buffer + CHECKSUM_BYTES, d->what.mark, REPL_ID_LEN);
}

static size_t mayRead(const download *d) {
    hotCheck(!isComplete(d));
    if (d->what.bytes < 0) return CHUNK_BYTES;
    return sizeMin(CHUNK_BYTES, (size_t)(d->what.bytes - d->received));
}

static status readSome(download *d) {
    ssize_t n = connRead(d->from, d->buffer + d->tail, mayRead(d));
    if (n > 0) return take(d, (size_t)n);
    d->cut = n == 0 || (errno != EINTR && errno != EAGAIN);
    if (n == 0) return reasonSet(&d->why, ERR_IO, "connection lost");
    if (errno == EINTR) return OK;
    if (errno != EAGAIN) return reasonSet(&d->why, ERR_IO, "%s", connErrorText(d->from));
    return connWait(d->from, LOOP_READ, POLL_MS);
}

static status takeFirst(download *d) {
    hotCheck(d->first_used <= d->first.len);
    while (d->first_used < d->first.len && !isComplete(d)) {
        size_t n = sizeMin(mayRead(d), d->first.len - d->first_used);
        memcpy(d->buffer + d->tail, d->first.ptr + d->first_used, n);
        status st = take(d, n);
        if (st != OK) return st;
        d->first_used += n;
    }
    return OK;
}

/* Compares the checksum, which is in the tail; 0: the primary computes none. The checksum of a
 * compressed file is compared when the file is loaded. */
static status finish(download *d) {
    hotCheck(isComplete(d));
    if (d->tail < CHECKSUM_BYTES)
        return reasonSet(&d->why, ERR_SYNTAX, "the dataset has only %zu bytes", d->tail);
    uint64_t expected = loadU64(d->buffer);
    if (expected && expected != d->crc && !d->is_compressed)
        return reasonSet(&d->why, ERR_SYNTAX, "wrong checksum: expected %llx, found %llx",
                         (unsigned long long)expected, (unsigned long long)d->crc);
    status st = rdbRecoderWrite(d->recoder, d->buffer, CHECKSUM_BYTES, &d->why);
    if (st == OK) st = rdbRecoderEnd(d->recoder, &d->why);
    if (st == OK && fileSync(d->file.fd) < 0)
        st = reasonSetErrno(&d->why, "fsync of '%s'", d->path);
    return st;
}

static void *run(void *arg) {
    download *d = arg;
    status st = takeFirst(d);
    while (st == OK && !isComplete(d)) {
        if (__atomic_load_n(&d->cancelled, __ATOMIC_RELAXED)) {
            st = reasonSet(&d->why, ERR_IO, "cancelled");
        } else {
            st = readSome(d);
        }
    }
    if (st == OK) {
        logNotice("Replica bio thread: Done downloading RDB");
        st = finish(d);
    }
    d->result = st;
    __atomic_store_n(&d->done, true, __ATOMIC_RELEASE);
    loopWake(d->loop);
    return NULL;
}

/* ------------------------------------------------------------------ begin and end */

download *downloadStart(const linkTransfer *what, conn *c, slice received, reason *why) {
    hotCheck(what->bytes != 0);
    char name[64];
    snprintf(name, sizeof(name), "temp-%lld.%d.rdb", (long long)time(NULL), (int)getpid());
    download *d = memNew(download);
    *d = (download){.what = *what, .from = c, .loop = c->loop};
    if (fileWriterOpen(&d->file, name, SYNC_BYTES, why) != OK) {
        memFree(d);
        return NULL;
    }
    d->sink = (downloadSink){.sink = {.write = writeToFile}, .file = &d->file};
    d->recoder = rdbRecoderNew(syncFileCodec(), syncFileHasChecksum(), &d->sink.sink);
    d->path = memDup(name, strlen(name));
    d->tail_max = CHECKSUM_BYTES + (what->bytes < 0 ? REPL_ID_LEN : 0);
    d->buffer = memAlloc(d->tail_max + CHUNK_BYTES);
    d->first = strNew(received);
    connDetach(c);
    if (threadStart(&d->runner, "repl_download", "", run, d, why) == OK) return d;
    check(connAttach(c, d->loop) == OK); /* without callbacks it cannot fail */
    downloadFree(d);
    return NULL;
}

status downloadEnd(download *d, reason *why) {
    __atomic_store_n(&d->cancelled, true, __ATOMIC_RELAXED);
    threadJoin(&d->runner);
    check(connAttach(d->from, d->loop) == OK); /* without callbacks it cannot fail */
    *why = d->why;
    return d->result;
}

bool downloadWasCut(const download *d) { return d->cut; }

void downloadFree(download *d) {
    fileWriterAbort(&d->file);
    memFree(d->path);
    memFree(d->buffer);
    rdbRecoderFree(d->recoder);
    strFree(&d->first);
    memFree(d);
}

status downloadCanKeep(const char *path, reason *why) {
    struct stat s;
    if (stat(path, &s) == 0 && S_ISDIR(s.st_mode)) {
        errno = EISDIR;
        return reasonSetErrno(why, "rename to '%s'", path);
    }
    if (access(".", W_OK) != 0) return reasonSetErrno(why, "rename to '%s'", path);
    return OK;
}

status downloadKeep(download *d, const char *path, reason *why) {
    return fileWriterPublish(&d->file, path, why);
}
