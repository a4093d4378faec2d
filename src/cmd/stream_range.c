/* SPDX-License-Identifier: BSD-3-Clause
 *
 * XRANGE and XREVRANGE. Main thread only. */
#include "base/base.h"
#include "cmd/procs.h"
#include "cmd/stream_priv.h"

/* Parses COUNT, the last one if repeated; -1: none. False: the error was replied. */
static bool parseCount(ctx *c, int64_t *count) {
    *count = -1;
    for (int i = 4; i < c->argc; i += 2) {
        if (i + 1 == c->argc || !ctxArgIs(c, i, "count")) {
            replyError(c, ERR_SYNTAX_TEXT);
            return false;
        }
        if (!ctxArgInt(c, i + 1, count)) return false;
        if (*count < 0) *count = 0;
    }
    return true;
}

static void replyRange(ctx *c, bool backwards) {
    streamId start, end;
    int64_t count;
    stream *s;
    if (!streamArgRangeStart(c, backwards ? 3 : 2, &start)) return;
    if (!streamArgRangeEnd(c, backwards ? 2 : 3, &end)) return;
    if (!parseCount(c, &count)) return;
    if (!streamFindRead(c, 1, &s)) return;
    if (!s) {
        replyArray(c, 0);
    } else if (count == 0) {
        replyNullArray(c);
    } else if (!jobStart(c, streamReplyMost(s, count))) {
        (void)streamReplyRange(c, s, start, end, backwards, count < 0 ? 0 : (uint64_t)count);
    }
}

/* XRANGE key start end [COUNT count]. Reply: the entries, each with its id and an array of fields
 * and values. */
void xrangeCommand(ctx *c) { replyRange(c, false); }

/* XREVRANGE key end start [COUNT count]. Reply: the same in reverse order. */
void xrevrangeCommand(ctx *c) { replyRange(c, true); }
