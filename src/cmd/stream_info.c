/* SPDX-License-Identifier: BSD-3-Clause
 *
 * XINFO. Main thread only. */
#include "base/base.h"
#include "cmd/procs.h"
#include "cmd/stream_priv.h"

/* For jobStart() and jobPoint(): what is replied for each takes as long as so many elements. */
enum { CONSUMER_FIELDS = 5, GROUP_FIELDS = 8 };

/* Looks up the stream at argument 2, which must exist. */
static bool findStream(ctx *c, stream **s) {
    if (!streamFindRead(c, 2, s)) return false;
    if (!*s) replyError(c, ERR_NO_KEY_TEXT);
    return *s != NULL;
}

static void replyIdField(ctx *c, const char *name, streamId id) {
    replyBulkText(c, name);
    streamReplyId(c, id);
}

/* Replies entries-read and lag. */
static void replyProgress(ctx *c, const stream *s, const streamGroup *g) {
    int64_t entries_read = streamGroupEntriesRead(g), lag;
    replyBulkText(c, "entries-read");
    if (entries_read == STREAM_UNKNOWN) {
        replyNull(c);
    } else {
        replyInteger(c, entries_read);
    }
    replyBulkText(c, "lag");
    if (streamGroupLag(s, g, &lag)) {
        replyInteger(c, lag);
    } else {
        replyNull(c);
    }
}

/* ------------------------------------------------------------------ STREAM */

/* Replies the fields common to STREAM and STREAM FULL. */
static void replyHead(ctx *c, const stream *s) {
    replyIntField(c, "length", (int64_t)streamLength(s));
    replyIntField(c, "radix-tree-keys", (int64_t)streamNodeCount(s));
    replyIntField(c, "radix-tree-nodes", (int64_t)streamTrieNodes(s));
    replyIdField(c, "last-generated-id", streamLastId(s));
    replyIdField(c, "max-deleted-entry-id", streamMaxDeletedId(s));
    replyIntField(c, "entries-added", (int64_t)streamEntriesAdded(s));
    replyIdField(c, "recorded-first-entry-id", streamFirstId(s));
    streamReplyProducers(c, s);
}

static void replyEnd(ctx *c, const char *name, const stream *s, bool last) {
    streamCursor at;
    streamId id;
    streamFields fields;
    replyBulkText(c, name);
    streamCursorInit(&at, s, STREAM_ID_MIN, STREAM_ID_MAX, last);
    if (streamCursorNext(&at, &id, &fields)) {
        streamReplyEntry(c, id, fields);
    } else {
        replyNull(c);
    }
    streamCursorClear(&at);
}

/* Replies the pending entries of one consumer, or those of the whole group with their consumers'
 * names. */
static void replyPending(ctx *c, const streamGroup *g, const streamConsumer *of, uint64_t most) {
    streamPendingCursor at;
    streamPending p;
    uint64_t found = 0;
    respDeferred array = respDeferBegin(c->out);
    streamPendingSeek(&at, g, of, STREAM_ID_MIN);
    while ((most == 0 || found < most) && streamPendingNext(&at, &p)) {
        replyArray(c, of ? 3 : 4);
        streamReplyId(c, p.id);
        if (!of) replyBulk(c, streamConsumerName(p.owner));
        replyInteger(c, p.delivered_ms);
        replyInteger(c, (int64_t)p.deliveries);
        found++;
        if (jobPoint(c, 1)) break;
    }
    respDeferEnd(c->out, array, '*', c->proto, (int64_t)found);
}

static void replyConsumerFull(ctx *c, const streamGroup *g, const streamConsumer *consumer,
                              uint64_t most) {
    replyMap(c, 5);
    replyBulkText(c, "name");
    replyBulk(c, streamConsumerName(consumer));
    replyIntField(c, "seen-time", streamConsumerSeen(consumer));
    replyIntField(c, "active-time", streamConsumerActive(consumer));
    replyIntField(c, "pel-count", (int64_t)streamConsumerPending(consumer));
    replyBulkText(c, "pending");
    replyPending(c, g, consumer, most);
}

/* Entries that XNACK has released: those of the consumer without a name, delivered at 0. */
static int64_t countReleased(const ctx *c, const streamGroup *g) {
    const streamConsumer *nobody = streamConsumerFind(g, SLICE(""));
    streamPendingCursor at;
    streamPending p;
    int64_t count = 0;
    if (!nobody) return 0;
    streamPendingSeek(&at, g, nobody, STREAM_ID_MIN);
    while (streamPendingNext(&at, &p) && !jobPoint(c, 1)) count += p.delivered_ms == 0;
    return count;
}

static void replyGroupFull(ctx *c, const stream *s, const streamGroup *g, uint64_t most) {
    orderedCursor at;
    int64_t released = countReleased(c, g);
    replyMap(c, released ? 8 : 7);
    replyBulkText(c, "name");
    replyBulk(c, streamGroupName(g));
    replyIdField(c, "last-delivered-id", streamGroupLastId(g));
    replyProgress(c, s, g);
    replyIntField(c, "pel-count", (int64_t)streamPendingCount(g));
    if (released) replyIntField(c, "nacked-count", released);
    replyBulkText(c, "pending");
    replyPending(c, g, NULL, most);
    replyBulkText(c, "consumers");
    replyArray(c, (int64_t)streamConsumerCount(g));
    for (const streamConsumer *consumer = streamConsumerFirst(g, &at); consumer;
         consumer = streamConsumerNext(&at)) {
        replyConsumerFull(c, g, consumer, most);
        if (jobPoint(c, CONSUMER_FIELDS)) break;
    }
}

/* The number of entries and pending entries that replyFull() visits, at most. */
static uint64_t mostInFull(const stream *s, uint64_t most) {
    orderedCursor at;
    uint64_t sum = streamReplyMost(s, (int64_t)most);
    hotCheck(most <= INT64_MAX);
    for (const streamGroup *g = streamGroupFirst(s, &at); g; g = streamGroupNext(&at)) {
        const streamConsumer *nobody = streamConsumerFind(g, SLICE(""));
        uint64_t pending = streamPendingCount(g), consumers = streamConsumerCount(g);
        if (most && most < pending) pending = sizeMin(pending, most * (1 + consumers));
        sum += pending + consumers * CONSUMER_FIELDS + GROUP_FIELDS;
        if (nobody) sum += streamConsumerPending(nobody);
    }
    return sum;
}

static void replyFull(ctx *c, const stream *s, uint64_t most) {
    orderedCursor at;
    replyMap(c, 9 + streamProducersInfoFields(s));
    replyHead(c, s);
    replyBulkText(c, "entries");
    (void)streamReplyRange(c, s, STREAM_ID_MIN, STREAM_ID_MAX, false, most);
    replyBulkText(c, "groups");
    replyArray(c, (int64_t)streamGroupCount(s));
    for (const streamGroup *g = streamGroupFirst(s, &at); g; g = streamGroupNext(&at)) {
        replyGroupFull(c, s, g, most);
        if (jobPoint(c, GROUP_FIELDS)) break;
    }
}

/* Parses FULL [COUNT count] from argument 3 on. */
static bool parseFull(ctx *c, int64_t *count) {
    const int64_t usual = 10;
    *count = usual;
    bool valid = (c->argc == 4 || c->argc == 6) && ctxArgIs(c, 3, "full");
    if (valid && c->argc == 6) {
        valid = ctxArgIs(c, 4, "count");
        if (valid && !ctxArgInt(c, 5, count)) return false;
        if (*count < 0) *count = usual;
    }
    if (!valid) replyErrorSubcommand(c);
    return valid;
}

/* XINFO STREAM key [FULL [COUNT count]]. Reply: a map of fields. */
void xinfoStreamCommand(ctx *c) {
    hotCheck(c->argc >= 3);
    stream *s;
    int64_t count;
    if (!findStream(c, &s)) return;
    if (c->argc > 3) {
        if (!parseFull(c, &count) || jobStart(c, mostInFull(s, (uint64_t)count))) return;
        replyFull(c, s, (uint64_t)count);
        return;
    }
    replyMap(c, 10 + streamProducersInfoFields(s));
    replyHead(c, s);
    replyIntField(c, "groups", (int64_t)streamGroupCount(s));
    replyEnd(c, "first-entry", s, false);
    replyEnd(c, "last-entry", s, true);
}

/* ------------------------------------------------------------------ GROUPS, CONSUMERS, HELP */

/* XINFO GROUPS key. Reply: an array of maps. */
void xinfoGroupsCommand(ctx *c) {
    stream *s;
    orderedCursor at;
    if (!findStream(c, &s) || jobStart(c, streamGroupCount(s) * GROUP_FIELDS)) return;
    replyArray(c, (int64_t)streamGroupCount(s));
    for (const streamGroup *g = streamGroupFirst(s, &at); g; g = streamGroupNext(&at)) {
        if (jobPoint(c, GROUP_FIELDS)) break;
        replyMap(c, 6);
        replyBulkText(c, "name");
        replyBulk(c, streamGroupName(g));
        replyIntField(c, "consumers", (int64_t)streamConsumerCount(g));
        replyIntField(c, "pending", (int64_t)streamPendingCount(g));
        replyIdField(c, "last-delivered-id", streamGroupLastId(g));
        replyProgress(c, s, g);
    }
}

static int64_t msSince(const ctx *c, int64_t ms) { return c->now_ms < ms ? 0 : c->now_ms - ms; }

/* XINFO CONSUMERS key group. Reply: an array of maps. */
void xinfoConsumersCommand(ctx *c) {
    hotCheck(c->argc == 4);
    stream *s;
    orderedCursor at;
    if (!findStream(c, &s)) return;
    const streamGroup *g = streamGroupFind(s, c->argv[3]);
    if (!g) {
        replyErrorFormat(c, "NOGROUP No such consumer group '%.*s' for key name '%.*s'",
                         (int)c->argv[3].len, c->argv[3].ptr, (int)c->argv[2].len, c->argv[2].ptr);
        return;
    }
    if (jobStart(c, streamConsumerCount(g) * CONSUMER_FIELDS)) return;
    replyArray(c, (int64_t)streamConsumerCount(g));
    for (const streamConsumer *o = streamConsumerFirst(g, &at); o; o = streamConsumerNext(&at)) {
        if (jobPoint(c, CONSUMER_FIELDS)) break;
        int64_t active_ms = streamConsumerActive(o);
        replyMap(c, 4);
        replyBulkText(c, "name");
        replyBulk(c, streamConsumerName(o));
        replyIntField(c, "pending", (int64_t)streamConsumerPending(o));
        replyIntField(c, "idle", msSince(c, streamConsumerSeen(o)));
        replyIntField(c, "inactive",
                      active_ms == STREAM_UNKNOWN ? STREAM_UNKNOWN : msSince(c, active_ms));
    }
}

/* XINFO HELP. Reply: lines of text. */
void xinfoHelpCommand(ctx *c) {
    static const char *const lines[] = {
        "CONSUMERS <key> <groupname>",
        "    Show consumers of <groupname>.",
        "GROUPS <key>",
        "    Show the stream consumer groups.",
        "STREAM <key> [FULL [COUNT <count>]",
        "    Show information about the stream.",
        NULL,
    };
    replyHelp(c, lines);
}
