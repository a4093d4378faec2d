/* SPDX-License-Identifier: BSD-3-Clause
 *
 * The wire language: parse requests (RESP arrays and inline lines), parse replies, write replies.
 * Nothing here knows a socket, a command or a key. One parser, outbuf or reader belongs to one thread
 * at a time; different ones may be used by different threads at once (ANY_THREAD throughout). */
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
    int arg;       /* its place in argv */
    size_t gap_at; /* offset in `raw` where the block's bytes belong; ascending */
    blob *bytes;   /* one reference belongs to the request */
} requestLarge;

/* One complete request. Slices point into the caller's buffer, or into a large block: valid until the
 * batch is cleared or the buffer moves. From each argument's first byte on, REQUEST_READ_SLACK bytes are
 * readable memory at least. */
typedef struct request {
    slice *argv; /* argc >= 1 */
    int argc;
    int large_count;
    requestLarge *large; /* NULL when there is none */
    slice raw;      /* its own bytes in the buffer, the large blocks' left out; empty for inline */
    size_t raw_end; /* offset in the buffer just behind it: where parsing goes on if it is the
                          * last one run */
    /* For the caller: filled after parsing, neither set nor read here. */
    const void *command;
    uint64_t key_hash;
    uint32_t command_epoch;
    void *owner;
} request;

/* Requests of one or of several sessions. Empty when zeroed; only `count` needs to be. */
typedef struct requestBatch {
    int count;
    int pool_used;
    int owning; /* requests that own memory: an argv outside the pool, large blocks */
    request items[REQUEST_BATCH_MAX];
    slice pool[REQUEST_POOL_SLICES];
} requestBatch;

void requestBatchInit(requestBatch *b);
/* Releases what the requests hold (large blocks, argv arrays outside the pool) and empties the batch. */
void requestBatchClear(requestBatch *b);

typedef struct requestLimits {
    int64_t bulk_max;      /* proto-max-bulk-len */
    int32_t multibulk_max; /* items of one request */
    bool authenticated;    /* false: 10 items of 16,384 bytes, with texts of their own */
} requestLimits;

/* State of one request that has not arrived whole; all zero at a request's start. */
typedef struct requestParser {
    struct requestPartial
        *partial; /* NULL unless arguments are many, a line is long or an argument large */
} requestParser;

typedef enum requestStatus {
    REQUEST_NEED_MORE, /* all complete requests are taken; what stands at *pos is a request's beginning */
    REQUEST_BATCH_FULL, /* the batch cannot take the next request; clear it and call again */
    REQUEST_BAD,        /* protocol error after the requests in the batch: *error says which */
} requestStatus;

/* The reply's text, "ERR Protocol error: ...", on one line. It may hold any other byte, NUL too. */
typedef struct requestError {
    size_t len;
    char text[96];
} requestError;

/* Parses complete requests out of buf[*pos..*len) into `batch`, until `max` of them stand there in all,
 * its pool is used up, or bytes run out; moves *pos behind the last complete one. Empty requests (*0,
 * empty lines) are skipped. An empty batch always takes at least one request.
 *
 * The caller's duties:
 * - `buf` has REQUEST_READ_SLACK readable bytes behind *len; their content does not matter.
 * - Between two calls the buffer may move (offsets are kept, not pointers) and grow, but the bytes from
 *   *pos on stay as they are, and the next call begins at that same *pos. Bytes before *pos may be dropped.
 * - Earlier requests of the same parser were run, or put back, before the next call.
 * - A large argument that is not complete is read into a block: its bytes move from the buffer's end into
 *   the block, *len comes back smaller, and what arrives next goes where requestParserTail() says until
 *   the block is full. The CRLF behind it, and all that follows, goes into the buffer at *len again, so
 *   the buffer holds the request without the block's bytes. This happens only in a call that added no
 *   request: so parse what is left again after a batch was run, and before reading more.
 * - After REQUEST_BAD nothing more is read; a second call gives the same error. */
requestStatus requestParse(requestParser *p, char *buf, size_t *len, size_t *pos,
                           const requestLimits *limits, requestBatch *batch, int max,
                           requestError *error);

/* Where the next bytes from the socket should go, when the parser is inside a large argument: up to `*cap`
 * bytes at the result; NULL with *cap = 0 otherwise (read into the buffer). The block grows with what has
 * arrived: at most twice that (and 16 KB), never beyond the announced length. When memory is out the
 * result is NULL too, and requestParse() answers REQUEST_BAD from then on. */
char *requestParserTail(requestParser *p, size_t *cap);
/* Bytes of the large argument that are still to come. When requestParserTail() gives room for all of them,
 * a readv may take what follows into the buffer at *len in the same call. */
size_t requestParserMissing(const requestParser *p);
/* Takes in `n` bytes written at requestParserTail(). */
void requestParserCommit(requestParser *p, size_t n);
/* Memory ran out for the request that is being read. */
bool requestParserFailed(const requestParser *p);
/* Bytes of memory the partial state holds (arrived, not announced). */
size_t requestParserMemory(const requestParser *p);
/* Bytes of large arguments that have arrived; the others stand in the caller's buffer. */
size_t requestParserBytes(const requestParser *p);
/* Drops the partial state and what it holds. */
void requestParserClear(requestParser *p);
/* For a request that will not be run now, before its batch is cleared: the first one of its session that
 * was not run. The caller keeps the buffer from that request's first byte on and parses from there later;
 * large blocks, whose bytes the buffer no longer has, go back into the parser here. */
void requestPutBack(requestParser *p, request *r);

/* ------------------------------------------------------------------ output */

/* Bytes on their way out: a chain of blocks, the last of which is appended to inline; borrowed blobs stand
 * in between. An idle outbuf owns no block; pending bytes and memory are known without a walk. */
typedef struct outblock outblock;
typedef struct outbuf {
    char *at;        /* where the next byte goes, in the last block; NULL while that is sealed */
    char *end;       /* end of that block's room */
    char *base;      /* first pending byte of that block's own */
    outblock *first; /* NULL when nothing is pending */
    outblock *last;
    outblock *spent;        /* written blocks whose blobs are still to be released */
    size_t queued;          /* pending bytes apart from base..at */
    size_t memory;          /* bytes of the blocks, and of the pieces of blobs they borrow */
    struct replySink *sink; /* NULL: what is appended is kept as bytes. See resp/reply_sink.h */
} outbuf;

void outbufInit(outbuf *o);
/* For replies that nobody wants: a null sink from the start. */
void outbufInitNull(outbuf *o);
/* Drops everything and gives all blocks back, as the owner of the blobs (see outbufReap). */
void outbufClear(outbuf *o);
/* From now on everything appended is dropped, or no longer so. What is pending stays. */
void outbufSetNullSink(outbuf *o, bool on);
/* Makes at least `need` bytes of contiguous room at o->at (need <= OUTBUF_ROOM_MAX); the caller writes
 * there and moves o->at on. False for a null sink: write nothing. */
bool outbufMakeRoom(outbuf *o, size_t need);
void outbufAppendSlow(outbuf *o, const void *bytes, size_t len);
static inline void outbufAppend(outbuf *o, const void *bytes, size_t len) {
    if (likely((size_t)(o->end - o->at) > len)) {
        if (len) memcpy(o->at, bytes, len);
        o->at += len;
    } else {
        outbufAppendSlow(o, bytes, len);
    }
}
/* Sends `len` bytes from `offset` of a blob by reference: retains it until they are written. */
void outbufAppendBlob(outbuf *o, blob *b, size_t offset, size_t len);
/* Bytes not yet written. */
static inline size_t outbufPending(const outbuf *o) {
    return o->queued + (size_t)(o->at - o->base);
}
/* Bytes of memory held; a borrowed blob counts with the bytes borrowed from it. */
static inline size_t outbufMemory(const outbuf *o) { return o->memory; }
/* Number of blocks in the chain; a borrowed piece makes one. */
size_t outbufBlocks(const outbuf *o);
/* Fills at most `max` iovecs with what is pending; returns how many. */
int outbufIovecs(const outbuf *o, struct iovec *iov, int max);
/* Drops the first `n` pending bytes, which were written; gives empty blocks to the thread's pool. Any
 * thread that has the outbuf may call it: blobs are not touched, but kept for outbufReap(). */
void outbufConsume(outbuf *o, size_t n);
void outbufReapSlow(outbuf *o);
/* Releases the blobs that are written. To be called by the thread that owns the blobs, whenever it has
 * the outbuf again. */
static inline void outbufReap(outbuf *o) {
    if (unlikely(o->spent != NULL)) outbufReapSlow(o);
}
/* Moves everything pending in `from` behind what is pending in `to`. */
void outbufMoveAll(outbuf *to, outbuf *from);
/* A mark of the present end, to take back what follows (a nested reply that turned into an error). It holds
 * until something is consumed, or a container opened before it with respDeferBegin() is closed. */
typedef struct outmark {
    size_t at; /* pending bytes before it */
} outmark;
outmark outbufMark(const outbuf *o);
void outbufCutTo(outbuf *o, outmark mark);
/* All pending bytes in one new block with a NUL behind: for tests, MONITOR, scripts. Caller frees with
 * memFree(). */
char *outbufCopy(const outbuf *o, size_t *len);
/* Frees this thread's pool of spare blocks; returns the bytes given back (memory pressure, thread end). */
size_t outbufPoolTrim(void);
/* Frees the spare blocks that were not needed since the last call: for a slow tick of each thread. */
size_t outbufPoolAge(void);

/* ------------------------------------------------------------------ writing replies
 * `proto` is 2 or 3. A function without it writes the same bytes in both. */

void respStatus(outbuf *o, slice text);     /* +OK: CR and LF become blanks */
void respError(outbuf *o, slice text);      /* -ERR ...: CR and LF become blanks */
void respInteger(outbuf *o, int64_t value); /* :1 */
void respBulk(outbuf *o, slice bytes);      /* $3 */
/* A bulk whose bytes lie in a counted block: by reference from RESP_BORROW_MIN bytes on, else copied. */
void respBulkBlob(outbuf *o, blob *b, size_t offset, size_t len);
void respNull(outbuf *o, int proto);                     /* $-1 or _ */
void respNullArray(outbuf *o, int proto);                /* *-1 or _ */
void respArray(outbuf *o, int64_t count);                /* *N */
void respMap(outbuf *o, int proto, int64_t pairs);       /* *2N or %N */
void respSet(outbuf *o, int proto, int64_t count);       /* *N or ~N */
void respAttribute(outbuf *o, int proto, int64_t pairs); /* nothing in RESP2, |N */
void respPush(outbuf *o, int proto, int64_t count);      /* *N or >N */
void respDouble(outbuf *o, int proto, double value);     /* $.. or ,.. */
void respDoubleText(outbuf *o, int proto,
                    slice text); /* a double some other way than respDouble() writes it */
void respBool(outbuf *o, int proto, bool value);        /* :1 or #t */
void respBigNumber(outbuf *o, int proto, slice digits); /* $.. or (..: CR and LF become blanks */
/* $.. or =N txt:..; `format` is three characters, what comes behind is not looked at. */
void respVerbatim(outbuf *o, int proto, slice bytes, const char *format);

/* A container whose count is known only at its end: room for the longest head is kept, and closed again
 * by moving what follows in the same block. Nothing may be consumed or moved from `o` in between.
 * Containers may nest; the inner one is closed first. */
typedef struct respDeferred {
    outblock *block; /* NULL for a null sink */
    uint32_t offset;
} respDeferred;
respDeferred respDeferBegin(outbuf *o);
/* `kind` is '*', '%', '~', '>' or '|' as for the functions above; count is of pairs for maps. */
void respDeferEnd(outbuf *o, respDeferred mark, char kind, int proto, int64_t count);

/* ------------------------------------------------------------------ reading replies */

typedef enum replyKind {
    REPLY_STATUS,
    REPLY_ERROR, /* a line, or RESP3's counted error */
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
    int depth;       /* 0 for a whole reply */
    bool complete;   /* with this event a whole reply has arrived */
    slice text;      /* status, error, bulk, double, big number, verbatim (without "txt:") */
    int64_t integer; /* integer, bool, or the count of items of an aggregate (pairs for maps) */
    double number;   /* doubles */
    char format[4];  /* verbatim, with a NUL */
} replyEvent;

typedef struct replyReader {
    bool skip; /* no inner events: one event per whole reply. Change it between replies only */
    int depth; /* open aggregates */
    uint32_t attributes; /* bit d: the aggregate open at depth d is an attribute */
    int64_t bulk_max;    /* longest bulk or line accepted */
    const char *error;   /* what was wrong, after REPLY_BAD */
    size_t scanned;      /* bytes behind *pos known to hold no end of line */
    int64_t passing; /* skip mode: bytes of a bulk still to be passed over, its CRLF with them */
    replyEvent head; /* skip mode: the event to be given at the end of the reply */
    int64_t left[REPLY_DEPTH_MAX]; /* items still to come per open aggregate */
} replyReader;

typedef enum replyReadStatus { REPLY_EVENT, REPLY_NEED_MORE, REPLY_BAD } replyReadStatus;

void replyReaderInit(replyReader *r);
/* Takes the next event out of buf[*pos..len); moves *pos behind it. An aggregate gives one event at its
 * head, its items follow with depth + 1; an attribute stands before what it belongs to, at the same depth,
 * and is no item itself. Bytes before *pos may be dropped and the buffer moved between calls.
 * In skip mode one event per whole reply is given, its head, when its last byte is there; the bytes of
 * bulks are then passed over as they arrive, and have no text (their length is in `integer`).
 * After REPLY_BAD the reader is of no more use. */
replyReadStatus replyRead(replyReader *r, const char *buf, size_t len, size_t *pos,
                          replyEvent *event);

#endif
