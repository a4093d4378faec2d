/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Declarations shared by the files of stream commands. */
#ifndef CMD_STREAM_PRIV_H
#define CMD_STREAM_PRIV_H

#include "cmd/collection.h"
#include "store/type_stream.h"

/* ---- ids ---- */

/* "ms-seq" or "ms", which stands for ms-`missing_seq`. False: `text` is none. */
bool streamParseId(slice text, uint64_t missing_seq, streamId *out);
/* Argument `i` as such an id. False: the error was replied. */
bool streamArgId(ctx *c, int i, uint64_t missing_seq, streamId *out);
/* The same; `-` and `+` are the lowest and the highest one. */
bool streamArgIdOrEnd(ctx *c, int i, uint64_t missing_seq, streamId *out);
/* An end of a range: likewise, and "(" before an id excludes it. */
bool streamArgRangeStart(ctx *c, int i, streamId *out);
bool streamArgRangeEnd(ctx *c, int i, streamId *out);
void streamReplyInvalidId(ctx *c);

enum { STREAM_ID_TEXT_MAX = 48 };
/* "ms-seq" in `text`, which has room for STREAM_ID_TEXT_MAX bytes. */
slice streamIdText(streamId id, char *text);

/* ---- streams ---- */

/* The stream of the key at argument `arg_index`, NULL when the key does not exist. False: WRONGTYPE was replied. */
bool streamFindRead(ctx *c, int arg_index, stream **out);
bool streamFindWrite(ctx *c, int arg_index, stream **out);
streamLimits streamLimitsNow(void);

/* ---- replies ---- */

void streamReplyId(ctx *c, streamId id);
/* [id, [field, value, ...]] */
void streamReplyEntry(ctx *c, streamId id, streamFields fields);
/* Entries from start to end, or back, as an array; `count` 0: no limit. Returns how many. */
int64_t streamReplyRange(ctx *c, const stream *s, streamId start, streamId end, bool backwards,
                         uint64_t count);
/* The entry with this id; false: there is none, and nothing was replied. */
bool streamReplyOne(ctx *c, const stream *s, streamId id);

/* ---- groups ---- */

/* A change of groups or ids, which WATCH and caches do not see: counts, is propagated and told as `event`. */
void streamGroupChanged(ctx *c, slice key, const char *event);
/* The consumer of that name, created if need be, which is told; seen now. */
streamConsumer *streamConsumerFor(ctx *c, slice key, streamGroup *g, slice name, bool *created);
/* Propagates what makes a replica's pending entry equal to `p`. */
void streamPropagateClaim(ctx *c, slice key, const streamGroup *g, const streamPending *p);
/* Propagates the group's last id and entries-read. */
void streamPropagateGroup(ctx *c, slice key, const streamGroup *g);

#endif
