/* SPDX-License-Identifier: BSD-3-Clause
 *
 * The RESP protocol: parsing requests (arrays and inline lines), parsing replies, writing replies.
 * Independent of sockets, commands and keys. A parser, outbuf or reader is used by one thread at a
 * time; different ones may be used by different threads (ANY_THREAD throughout). */
#ifndef RESP_RESP_H
#define RESP_RESP_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <sys/uio.h>

#include "base/alloc.h"
#include "base/assert.h"
#include "base/blob.h"
#include "base/slice.h"
#include "resp/limits.h"

/* ------------------------------------------------------------------ requests */

/* A large argument that was read into a block of its own. */
typedef struct requestLarge {
    int arg;       /* index in argv */
    size_t gap_at; /* offset in `raw` at which the block's bytes belong; ascending */
    blob *bytes;   /* the request holds one reference */
} requestLarge;

/* One complete request. The slices point into the caller's buffer or into a large block and are
 * valid until the batch is cleared or the buffer moves. At least REQUEST_READ_SLACK bytes from the
 * first byte of each argument on are readable memory. */
typedef struct request {
    slice *argv; /* argc >= 1 */
    int argc;
    int large_count;
    requestLarge *large; /* NULL if there is none */
    slice raw; /* its bytes in the buffer, without those in large blocks; empty for inline */
    /* Offset in the buffer of the byte after it: parsing resumes here after the last request. */
    size_t raw_end;
    /* For the caller: filled after parsing, neither set nor read here. */
    const void *command;
    uint64_t key_hash, item_hash;
    uint32_t command_epoch;
    void *owner;
} request;

/* Requests of one or several sessions. A zeroed batch is empty; only `count` has to be zero. */
typedef struct requestBatch {
    int count;
    int pool_used;
    int owning; /* requests that own memory: an argv outside the pool, or large blocks */
    request items[REQUEST_BATCH_MAX];
    slice pool[REQUEST_POOL_SLICES];
} requestBatch;

void requestBatchInit(requestBatch *b);
/* Frees what the requests own (large blocks, argv outside the pool) and empties the batch. */
void requestBatchClear(requestBatch *b);
size_t requestBatchMemory(const requestBatch *b); /* of large blocks that it alone refers to */

typedef struct requestLimits {
    int64_t bulk_max;      /* proto-max-bulk-len */
    int32_t multibulk_max; /* arguments per request */
    bool authenticated; /* if false: 10 arguments of 16,384 bytes, with error texts of their own */
    bool trusted; /* arguments may be longer; up to bulk_max their block is allocated at once */
} requestLimits;

/* State of one incomplete request; all zero at the start of a request. */
typedef struct requestParser {
    struct requestPartial *partial; /* NULL: few arguments, none of them large, no long line */
} requestParser;

typedef enum requestStatus {
    REQUEST_NEED_MORE,  /* all complete requests were parsed; an incomplete one begins at *pos */
    REQUEST_BATCH_FULL, /* the batch has no space for the next request; clear it and call again */
    REQUEST_BAD,        /* protocol error after the requests in the batch; see *error */
} requestStatus;
/* The error reply "ERR Protocol error: ..." on one line. May contain any other byte, also NUL. */
typedef struct requestError {
    size_t len;
    char text[95];
    bool tls_hello; /* the sender speaks TLS */
} requestError;

/* Parses complete requests from buf[*pos..*len) into `batch` until it holds `max` requests, its
 * pool is used up, or no complete request remains. Moves *pos past the last complete one. Empty
 * requests (*0, empty lines) are skipped. An empty batch always accepts at least one request.
 *
 * Requirements for the caller:
 * - `buf` has REQUEST_READ_SLACK readable bytes after *len; their contents do not matter.
 * - Between two calls the buffer may move and grow (offsets are kept, not pointers). The bytes from
 *   *pos on must not change, and the next call starts there. Bytes before *pos may be dropped.
 * - Earlier requests of the same parser were run or put back before the next call.
 * - An incomplete large argument is read into a block: its bytes are moved from the end of the
 *   buffer into the block and *len is reduced. The following bytes go to requestParserTail() until
 *   the block is full. The CRLF after it and everything following goes into the buffer at *len
 *   again, so the buffer holds the request without the block's bytes. This happens only in a call
 *   that added no request; so call again after running a batch, before reading more.
 * - After REQUEST_BAD nothing more is parsed; another call gives the same error. */
requestStatus requestParse(requestParser *p, char *buf, size_t *len, size_t *pos,
                           const requestLimits *limits, requestBatch *batch, int max,
                           requestError *error);

/* Where to store the next bytes from the socket while a large argument is incomplete: up to `*cap`
 * bytes at the returned address. Otherwise returns NULL and sets *cap to 0: read into the buffer.
 * The block has at most 16 times the bytes that have arrived (16 KB at least), beyond 512 KB twice;
 * that of a trusted sender has the announced length. NULL also if memory is exhausted:
 * requestParse() returns REQUEST_BAD. */
char *requestParserTail(requestParser *p, size_t *cap);
/* Bytes missing from the large argument. If requestParserTail() has space for all of them, one
 * readv() may read the bytes after it into the buffer at *len. */
size_t requestParserMissing(const requestParser *p);
/* Adds `n` bytes that were stored at requestParserTail(). */
void requestParserCommit(requestParser *p, size_t n);
/* Memory held by the partial state in bytes (of what arrived, not of what was announced). */
size_t requestParserMemory(const requestParser *p);
/* The part of it by which blocks are larger than the arguments they were allocated for. */
size_t requestParserRounding(const requestParser *p);
/* Bytes of large arguments that have arrived; all others are in the caller's buffer. */
size_t requestParserBytes(const requestParser *p);
void requestParserClear(requestParser *p);
/* For a request that is not going to be run now: must be the first request of its session that was
 * not run, and is called before its batch is cleared. The caller keeps the buffer from the first
 * byte of that request on and parses again from there later. Large blocks, whose bytes are not in
 * the buffer, move back into the parser. */
void requestPutBack(requestParser *p, request *r);

/* ------------------------------------------------------------------ output */

/* Pending output: a chain of blocks with borrowed blobs in between; bytes are appended inline to
 * the last block. An empty outbuf owns no block. Pending bytes and memory are known without walking
 * the chain. */
typedef struct outblock outblock;
typedef struct outbuf {
    char *at;   /* where the next byte is stored in the last block; NULL while that is sealed */
    char *end;  /* end of that block */
    char *base; /* first pending byte in that block */
    outblock *first; /* NULL if nothing is pending */
    outblock *last;
    outblock *spent;        /* sent blocks whose blobs still have to be released */
    size_t queued;          /* pending bytes other than base..at */
    size_t memory;          /* bytes of the blocks and of the borrowed parts of blobs */
    struct replySink *sink; /* NULL: appended bytes are kept. See resp/reply_sink.h */
} outbuf;

void outbufInit(outbuf *o);
/* Initialises a null sink, for replies that are not sent. */
void outbufInitNull(outbuf *o);
/* Discards everything and frees all blocks. Only on the owner of the blobs (see outbufReap). */
void outbufClear(outbuf *o);
/* Starts or stops discarding what is appended. Bytes already pending remain. */
void outbufSetNullSink(outbuf *o, bool on);
bool outbufIsNull(const outbuf *o);
/* Reserves at least `need` contiguous bytes at o->at (need <= OUTBUF_RESERVE_MAX); the caller
 * writes there and advances o->at. False for a null sink: write nothing. */
bool outbufReserve(outbuf *o, size_t need);
void outbufAppendSlow(outbuf *o, const void *bytes, size_t len);
static inline void outbufAppend(outbuf *o, const void *bytes, size_t len) {
    if (likely((size_t)(o->end - o->at) > len)) {
        if (len) memcpy(o->at, bytes, len);
        o->at += len;
    } else {
        outbufAppendSlow(o, bytes, len);
    }
}
/* Sends `len` bytes from `offset` of a blob by reference: it is retained until they are sent. */
void outbufAppendBlob(outbuf *o, blob *b, size_t offset, size_t len);
/* The same for a part of a blob that many outputs send, such as a published message: its bytes do
 * not count as memory of this outbuf. A part that continues the previous one needs no block of its
 * own. Bytes may be appended to the blob behind the parts in use. */
void outbufAppendShared(outbuf *o, blob *b, size_t offset, size_t len);
/* Bytes not yet written. */
static inline size_t outbufPending(const outbuf *o) {
    return o->queued + (size_t)(o->at - o->base);
}
/* Memory held in bytes, with the bytes borrowed from blobs, but not those of shared ones. */
static inline size_t outbufMemory(const outbuf *o) { return o->memory; }
/* Number of blocks in the chain; each borrowed part has one. */
size_t outbufBlocks(const outbuf *o);
/* Fills at most `max` iovecs with the pending bytes; returns how many. */
int outbufIovecs(const outbuf *o, struct iovec *iov, int max);
/* Removes the first `n` pending bytes, which were sent; empty blocks go to the thread's pool. May
 * be called by any thread that currently owns the outbuf: blobs are not touched but kept for
 * outbufReap(). */
void outbufConsume(outbuf *o, size_t n);
void outbufReapSlow(outbuf *o);
/* Releases the blobs that were sent. For their owner, whenever it owns the outbuf again. */
static inline void outbufReap(outbuf *o) {
    if (unlikely(o->spent != NULL)) outbufReapSlow(o);
}
/* Appends everything pending in `from` to `to`, leaving `from` empty. */
void outbufMoveAll(outbuf *to, outbuf *from);
/* The current end, so that what follows can be removed again (a nested reply that became an error).
 * Valid until bytes are consumed or a container that respDeferBegin() opened before it ends. */
typedef struct outmark {
    size_t at; /* pending bytes before it */
} outmark;
outmark outbufMark(const outbuf *o);
void outbufCutTo(outbuf *o, outmark mark);
/* Copies all pending bytes to a new block with a NUL at its end, for memFree(). */
char *outbufCopy(const outbuf *o, size_t *len);
/* The encoding of a request in one block; likewise. */
char *respRequest(int argc, const slice *argv, size_t *len);
/* Frees this thread's pool of blocks, at its end or if memory is short; returns the bytes freed. */
size_t outbufPoolTrim(void);
/* Frees pooled blocks not needed since the last call; called periodically by each thread. */
size_t outbufPoolAge(void);

/* ------------------------------------------------------------------ writing replies
 * `proto` is 2 or 3. Functions without it write the same bytes in both protocols. */

void respStatus(outbuf *o, slice text);     /* +OK: CR and LF become blanks */
void respError(outbuf *o, slice text);      /* -ERR ...: CR and LF become blanks */
void respInteger(outbuf *o, int64_t value); /* :1 */
void respBulk(outbuf *o, slice bytes);      /* $3 */
/* A bulk stored in a blob: sent by reference from RESP_BORROW_MIN bytes on, else copied. */
void respBulkBlob(outbuf *o, blob *b, size_t offset, size_t len);
void respNull(outbuf *o, int proto);                     /* $-1 or _ */
void respNullArray(outbuf *o, int proto);                /* *-1 or _ */
void respArray(outbuf *o, int64_t count);                /* *N */
void respMap(outbuf *o, int proto, int64_t pairs);       /* *2N or %N */
void respSet(outbuf *o, int proto, int64_t count);       /* *N or ~N */
void respAttribute(outbuf *o, int proto, int64_t pairs); /* nothing in RESP2, |N */
void respPush(outbuf *o, int proto, int64_t count);      /* *N or >N */
void respDouble(outbuf *o, int proto, double value);     /* $.. or ,.. */
void respDoubleText(outbuf *o, int proto, slice text);   /* a double formatted by the caller */
void respBool(outbuf *o, int proto, bool value);         /* :1 or #t */
void respBigNumber(outbuf *o, int proto, slice digits);  /* $.. or (..: CR and LF become blanks */
/* $.. or =N txt:..; `format` is three characters, further ones are ignored. */
void respVerbatim(outbuf *o, int proto, slice bytes, const char *format);

/* A container whose count is known only at its end: space for the longest header is reserved, and
 * closed afterwards by moving the bytes that follow it in the same block. Nothing may be consumed
 * or moved from `o` in between. Containers may nest; the inner one is ended first. */
typedef struct respDeferred {
    outblock *block; /* NULL for a null sink */
    uint32_t offset;
} respDeferred;
respDeferred respDeferBegin(outbuf *o);
/* `kind` is '*', '%', '~', '>' or '|' as for the functions above; of maps `count` is of pairs. */
void respDeferEnd(outbuf *o, respDeferred mark, char kind, int proto, int64_t count);

/* ------------------------------------------------------------------ reading replies */

typedef enum replyKind {
    REPLY_STATUS,
    REPLY_ERROR, /* a line, or RESP3's bulk error */
    REPLY_INTEGER,
    REPLY_BULK,
    REPLY_NULL,
    REPLY_ARRAY,
    REPLY_MAP,
    REPLY_SET,
    REPLY_PUSH,
    REPLY_ATTRIBUTE,
    REPLY_DOUBLE,
    REPLY_BOOL,
    REPLY_BIG_NUMBER,
    REPLY_VERBATIM,
} replyKind;

/* One event of the reader. Bytes are borrowed from the buffer given to replyRead(). */
typedef struct replyEvent {
    replyKind kind;
    int depth;       /* 0 for a top-level reply */
    bool complete;   /* this event completes a top-level reply */
    slice text;      /* of status, error, bulk, double, big number, verbatim (without "txt:") */
    int64_t integer; /* integer, bool, or number of items of an aggregate (pairs for maps) */
    double number;   /* of doubles */
    char format[4];  /* of verbatim strings, NUL-terminated */
} replyEvent;

typedef struct replyReader {
    bool skip;           /* one event per top-level reply; may change only between replies */
    int depth;           /* number of open aggregates */
    uint32_t attributes; /* bit d: the aggregate open at depth d is an attribute */
    int64_t bulk_max;    /* longest bulk or line accepted */
    const char *error;   /* reason of REPLY_BAD */
    size_t scanned;      /* bytes after *pos known to contain no end of line */
    int64_t skipping;    /* skip mode: bytes of a bulk still to be skipped, including its CRLF */
    replyEvent head;     /* skip mode: the event to emit at the end of the reply */
    int64_t left[REPLY_DEPTH_MAX]; /* remaining items per open aggregate */
} replyReader;

typedef enum replyReadStatus { REPLY_EVENT, REPLY_NEED_MORE, REPLY_BAD } replyReadStatus;

void replyReaderInit(replyReader *r);
/* Reads the next event from buf[*pos..len) and moves *pos past it. An aggregate gives one event for
 * its header; its items follow with depth + 1. An attribute precedes the value it belongs to, at
 * the same depth, and is not an item itself. Bytes before *pos may be dropped and the buffer may
 * move between calls.
 *
 * In skip mode there is one event per top-level reply, for its header, when its last byte has
 * arrived. Bulks are skipped as they arrive and have no text (`integer` is their length). After
 * REPLY_BAD the reader cannot be used any more. */
replyReadStatus replyRead(replyReader *r, const char *buf, size_t len, size_t *pos,
                          replyEvent *event);

#endif
