/* SPDX-License-Identifier: BSD-3-Clause
 *
 * The numbers of this folder. The hostile build makes them tiny, so that every seam is crossed in each
 * test; a single one may be set from the command line (-DOUTBLOCK_SIZE=256). */
#ifndef RESP_LIMITS_H
#define RESP_LIMITS_H

#ifdef HOSTILE_BUILD
#define RESP_CHOOSE(normal, hostile) (hostile)
#else
#define RESP_CHOOSE(normal, hostile) (normal)
#endif

/* Requests parsed ahead at most. */
#ifndef REQUEST_BATCH_MAX
#define REQUEST_BATCH_MAX 64
#endif
/* Arguments of a batch that need no allocation. */
#ifndef REQUEST_POOL_SLICES
#define REQUEST_POOL_SLICES RESP_CHOOSE(1024, 8)
#endif
/* An incomplete argument of this size gets a block of its own. */
#ifndef REQUEST_LARGE_ARG
#define REQUEST_LARGE_ARG RESP_CHOOSE(16 * 1024, 48)
#endif
/* An incomplete request is remembered, not parsed again, beyond this many arguments ... */
#ifndef REQUEST_KEEP_ARGS
#define REQUEST_KEEP_ARGS RESP_CHOOSE(16, 1)
#endif
/* ... or this many bytes of a line without an end. */
#ifndef REQUEST_KEEP_LINE
#define REQUEST_KEEP_LINE RESP_CHOOSE(1024, 4)
#endif
/* Bytes behind a buffer's content that must be readable memory. */
#define REQUEST_READ_SLACK 32
/* An inline line, or a length line, without its end. Clients see this one. */
#ifndef REQUEST_INLINE_MAX
#define REQUEST_INLINE_MAX (64 * 1024)
#endif

/* Memory one block of output takes, its header included. */
#ifndef OUTBLOCK_SIZE
#define OUTBLOCK_SIZE RESP_CHOOSE(16 * 1024, 128)
#endif
/* The block behind a borrowed blob: room for the end of one reply and the head of the next. */
#ifndef OUTBLOCK_SMALL_SIZE
#define OUTBLOCK_SMALL_SIZE RESP_CHOOSE(512, 128)
#endif
/* Spare blocks kept per thread. */
#ifndef OUTBLOCK_POOL_MAX
#define OUTBLOCK_POOL_MAX RESP_CHOOSE(64, 0)
#endif
/* The most outbufMakeRoom() can be asked for. */
#define OUTBUF_ROOM_MAX 64
/* From this size on a blob is sent by reference: below, a copy is cheaper than an iovec and a block. */
#ifndef RESP_BORROW_MIN
#define RESP_BORROW_MIN RESP_CHOOSE(16 * 1024, 32)
#endif

/* Aggregates within aggregates a reply may have; at most 32. */
#ifndef REPLY_DEPTH_MAX
#define REPLY_DEPTH_MAX 16
#endif
/* The longest line of a reply that holds a number. */
#define REPLY_NUMBER_LINE_MAX 512

#endif
