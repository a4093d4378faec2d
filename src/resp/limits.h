/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Limits and sizes used in this folder. The hostile build makes them tiny, so that every test
 * crosses every boundary. Each one can be set on the command line (-DOUTBLOCK_SIZE=256). */
#ifndef RESP_LIMITS_H
#define RESP_LIMITS_H

#ifdef HOSTILE_BUILD
#define RESP_CHOOSE(normal, hostile) (hostile)
#else
#define RESP_CHOOSE(normal, hostile) (normal)
#endif

/* Maximum number of requests in a batch. */
#ifndef REQUEST_BATCH_MAX
#define REQUEST_BATCH_MAX 256
#endif
/* Arguments of one batch that fit in its pool without an allocation. */
#ifndef REQUEST_POOL_SLICES
#define REQUEST_POOL_SLICES RESP_CHOOSE(1024, 8)
#endif
/* An incomplete argument of at least this size is read into a block of its own. */
#ifndef REQUEST_LARGE_ARG
#define REQUEST_LARGE_ARG RESP_CHOOSE(16 * 1024, 48)
#endif
/* The parse state of an incomplete request is kept, instead of parsing it again, beyond this many
 * arguments ... */
#ifndef REQUEST_KEEP_ARGS
#define REQUEST_KEEP_ARGS RESP_CHOOSE(16, 1)
#endif
/* ... or this many bytes of an incomplete line. */
#ifndef REQUEST_KEEP_LINE
#define REQUEST_KEEP_LINE RESP_CHOOSE(1024, 4)
#endif
/* Bytes after the contents of a buffer that must be readable memory. */
#define REQUEST_READ_SLACK 32
/* Maximum length of an inline request or a length line. Visible to clients. */
#ifndef REQUEST_INLINE_MAX
#define REQUEST_INLINE_MAX (64 * 1024)
#endif

/* Memory of one output block in bytes, including its header. */
#ifndef OUTBLOCK_SIZE
#define OUTBLOCK_SIZE RESP_CHOOSE(16 * 1024, 128)
#endif
/* Size of the block after a borrowed blob: it holds the end of one reply and the header of the
 * next. */
#ifndef OUTBLOCK_SMALL_SIZE
#define OUTBLOCK_SMALL_SIZE RESP_CHOOSE(512, 128)
#endif
/* Size of a block for a part of a shared blob: header and the shortest reservation. */
#ifndef OUTBLOCK_SHARED_SIZE
#define OUTBLOCK_SHARED_SIZE 128
#endif
/* Maximum number of free blocks kept per thread. */
#ifndef OUTBLOCK_POOL_MAX
#define OUTBLOCK_POOL_MAX RESP_CHOOSE(64, 0)
#endif
/* Maximum argument of outbufReserve(). */
#define OUTBUF_RESERVE_MAX 64
/* Blobs of at least this size are sent by reference; below it, copying is cheaper than an iovec and
 * a block. */
#ifndef RESP_BORROW_MIN
#define RESP_BORROW_MIN RESP_CHOOSE(16 * 1024, 32)
#endif

/* Maximum nesting of aggregates in a reply; at most 32. */
#ifndef REPLY_DEPTH_MAX
#define REPLY_DEPTH_MAX 16
#endif
/* Maximum length of a reply line that holds a number. */
#define REPLY_NUMBER_LINE_MAX 512

#endif
