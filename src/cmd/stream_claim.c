/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Pending entries: XPENDING, XCLAIM, XAUTOCLAIM, XNACK. Main thread only. */
#include "base/base.h"
#include "cmd/procs.h"
#include "cmd/stream_priv.h"

/* Looks up the group at arguments 1 and 2. False: the error was replied. */
static bool findGroup(ctx *c, bool writes, stream **s, streamGroup **g) {
    if (!(writes ? streamFindWrite : streamFindRead)(c, 1, s)) return false;
    if (writes && !*s) ctxKeyEvent(c, c->argv[1], &eventKeymiss);
    *g = *s ? streamGroupFind(*s, c->argv[2]) : NULL;
    if (*g) return true;
    replyErrorFormat(c, "NOGROUP No such key '%.*s' or consumer group '%.*s'", (int)c->argv[1].len,
                     c->argv[1].ptr, (int)c->argv[2].len, c->argv[2].ptr);
    return false;
}

/* ------------------------------------------------------------------ XPENDING */

static void replySummary(ctx *c, const streamGroup *g) {
    streamPendingCursor at;
    streamPending first, last;
    orderedCursor names;
    int64_t owners = 0;
    replyArray(c, 4);
    replyInteger(c, (int64_t)streamPendingCount(g));
    streamPendingSeek(&at, g, NULL, STREAM_ID_MIN);
    if (!streamPendingNext(&at, &first) || !streamPendingLast(g, &last)) {
        replyNull(c);
        replyNull(c);
        replyNullArray(c);
        return;
    }
    streamReplyId(c, first.id);
    streamReplyId(c, last.id);
    respDeferred array = respDeferBegin(c->out);
    for (const streamConsumer *o = streamConsumerFirst(g, &names); o;
         o = streamConsumerNext(&names)) {
        char digits[NUMBER_TEXT_MAX];
        uint64_t pending = streamConsumerPending(o);
        if (jobPoint(c, 1)) break;
        if (!pending) continue;
        replyArray(c, 2);
        replyBulk(c, streamConsumerName(o));
        replyBulk(c, sliceMake(digits, numberPrintUint(digits, pending)));
        owners++;
    }
    respDeferEnd(c->out, array, '*', c->proto, owners);
}

typedef struct pendingRange {
    int64_t min_idle_ms, count;
    streamId start, end;
    int consumer_arg; /* 0: of all */
} pendingRange;

static bool parsePending(ctx *c, pendingRange *out) {
    enum { WORDS_MIN = 6, WORDS_MAX = 9, WITH_IDLE_MIN = 8 };
    int at = 3;
    *out = (pendingRange){0};
    if (c->argc < WORDS_MIN || c->argc > WORDS_MAX) {
        replyError(c, ERR_SYNTAX_TEXT);
        return false;
    }
    if (ctxArgIs(c, 3, "idle")) {
        if (!ctxArgInt(c, 4, &out->min_idle_ms)) return false;
        if (c->argc < WITH_IDLE_MIN) {
            replyError(c, ERR_SYNTAX_TEXT);
            return false;
        }
        at = 5;
    }
    if (!ctxArgInt(c, at + 2, &out->count)) return false;
    if (!streamArgRangeStart(c, at, &out->start)) return false;
    if (!streamArgRangeEnd(c, at + 1, &out->end)) return false;
    if (at + 3 < c->argc) out->consumer_arg = at + 3;
    return true;
}

static int64_t idleMs(const ctx *c, const streamPending *p) {
    int64_t idle = (int64_t)((uint64_t)c->now_ms - (uint64_t)p->delivered_ms);
    return idle < 0 ? 0 : idle;
}

static void replyPending(ctx *c, const streamGroup *g, const pendingRange *range) {
    const streamConsumer *of =
        range->consumer_arg ? streamConsumerFind(g, c->argv[range->consumer_arg]) : NULL;
    if (range->count <= 0 || (range->consumer_arg && !of)) {
        replyArray(c, 0);
        return;
    }
    streamPendingCursor at;
    streamPending p;
    int64_t found = 0;
    respDeferred array = respDeferBegin(c->out);
    streamPendingSeek(&at, g, of, range->start);
    while (found < range->count && streamPendingNext(&at, &p) && !streamIdLess(range->end, p.id)) {
        int64_t idle_ms = idleMs(c, &p);
        if (jobPoint(c, 1)) break;
        if (idle_ms < range->min_idle_ms) continue;
        replyArray(c, 4);
        streamReplyId(c, p.id);
        replyBulk(c, streamConsumerName(p.owner));
        replyInteger(c, idle_ms);
        replyInteger(c, (int64_t)p.deliveries);
        found++;
    }
    respDeferEnd(c->out, array, '*', c->proto, found);
}

/* How many pending entries are looked at, at most. */
static uint64_t mostPending(const streamGroup *g, const pendingRange *range) {
    uint64_t all = streamPendingCount(g);
    if (range->count <= 0) return 0;
    return range->min_idle_ms > 0 ? all : sizeMin((uint64_t)range->count, all);
}

/* XPENDING key group [[IDLE min-idle-time] start end count [consumer]]. Reply: number, first and
 * last id and owners of the pending entries, or the entries themselves. */
void xpendingCommand(ctx *c) {
    hotCheck(c->argc >= 3);
    pendingRange range;
    stream *s;
    streamGroup *g;
    bool summary = c->argc == 3;
    if (!summary && !parsePending(c, &range)) return;
    if (!findGroup(c, false, &s, &g)) return;
    if (jobStart(c, summary ? streamConsumerCount(g) : mostPending(g, &range))) return;
    if (summary) {
        replySummary(c, g);
    } else {
        replyPending(c, g, &range);
    }
}

/* ------------------------------------------------------------------ claiming */

typedef struct claim {
    stream *s;
    streamGroup *g;
    streamConsumer *consumer;
    bool created;
    int64_t min_idle_ms, delivered_ms;
    int64_t deliveries; /* -1: incremented, unless just_id */
    bool force, just_id;
    bool propagated; /* something was propagated */
    bool given;      /* an entry was assigned to the consumer, which creates it on a replica */
} claim;

/* Parses the min-idle-time at argument 4. */
static bool argMinIdle(ctx *c, const char *command, int64_t *out) {
    if (!numberParseInt(c->argv[4], out)) {
        replyErrorFormat(c, "ERR Invalid min-idle-time argument for %s", command);
        return false;
    }
    if (*out < 0) *out = 0;
    return true;
}

/* Removes a pending entry whose stream entry was removed. */
static void dropPending(ctx *c, claim *how, const streamPending *p) {
    streamPending told = *p;
    if (engineHot.sinks) streamPropagateClaim(c, c->argv[1], how->g, &told);
    check(streamPendingRemove(how->g, p->id));
    ctxDatasetChanged(c, 1);
    how->propagated = true;
}

/* Assigns the pending entry `p` to its new owner and replies it. */
static void giveTo(ctx *c, claim *how, streamPending *p) {
    p->owner = how->consumer;
    p->delivered_ms = how->delivered_ms;
    if (how->deliveries >= 0) {
        p->deliveries = (uint64_t)how->deliveries;
    } else if (!how->just_id) {
        p->deliveries++;
    }
    streamPendingSet(how->g, p);
    streamConsumerSetActive(how->consumer, c->now_ms);
    if (how->just_id) {
        streamReplyId(c, p->id);
    } else {
        check(streamReplyOne(c, how->s, p->id));
    }
    if (engineHot.sinks) streamPropagateClaim(c, c->argv[1], how->g, p);
    ctxDatasetChanged(c, 1);
    how->propagated = true;
    how->given = true;
}

/* Propagates a consumer that was created without getting an entry. */
static void finishConsumer(ctx *c, const claim *how) {
    if (how->created && !how->given) streamPropagateConsumer(c, c->argv[1], how->g, c->argv[3]);
}

/* XCLAIM of one id. True if something was replied. */
static bool claimOne(ctx *c, claim *how, streamId id) {
    streamPending p;
    bool pending = streamPendingFind(how->g, id, &p);
    if (!streamHas(how->s, id)) {
        if (pending) dropPending(c, how, &p);
        return false;
    }
    if (!pending) {
        if (!how->force) return false;
        p = (streamPending){.id = id, .deliveries = 1};
    } else if (how->min_idle_ms && c->now_ms - p.delivered_ms < how->min_idle_ms) {
        return false;
    }
    giveTo(c, how, &p);
    return true;
}

typedef struct claimOptions {
    int ids_end; /* the ids are arguments 5 to ids_end - 1 */
    bool has_last;
    streamId last;
} claimOptions;

/* Parses the number of an option at argument `i`. */
static bool claimNumber(ctx *c, int i, const char *option, int64_t *out) {
    hotCheck(i > 0);
    hotCheck(i <= c->argc);
    if (numberParseInt(c->argv[i], out)) return true;
    replyErrorFormat(c, "ERR Invalid %s option argument for XCLAIM", option);
    return false;
}

static bool parseClaimOption(ctx *c, int *i, claim *how, claimOptions *out) {
    hotCheck(*i > 0);
    hotCheck(*i < c->argc);
    bool has_value = *i + 1 < c->argc;
    int64_t n;
    if (ctxArgIs(c, *i, "force")) {
        how->force = true;
    } else if (ctxArgIs(c, *i, "justid")) {
        how->just_id = true;
    } else if (has_value && ctxArgIs(c, *i, "idle")) {
        if (!claimNumber(c, ++*i, "IDLE", &n)) return false;
        how->delivered_ms = (int64_t)((uint64_t)c->now_ms - (uint64_t)n);
    } else if (has_value && ctxArgIs(c, *i, "time")) {
        if (!claimNumber(c, ++*i, "TIME", &how->delivered_ms)) return false;
    } else if (has_value && ctxArgIs(c, *i, "retrycount")) {
        if (!claimNumber(c, ++*i, "RETRYCOUNT", &how->deliveries)) return false;
    } else if (has_value && ctxArgIs(c, *i, "lastid")) {
        out->has_last = true;
        if (!streamArgId(c, ++*i, 0, &out->last)) return false;
    } else {
        replyErrorFormat(c, "ERR Unrecognized XCLAIM option '%.*s'", (int)c->argv[*i].len,
                         c->argv[*i].ptr);
        return false;
    }
    return true;
}

static bool parseClaim(ctx *c, claim *how, claimOptions *out) {
    streamId id;
    *out = (claimOptions){0};
    how->delivered_ms = c->now_ms;
    how->deliveries = -1;
    if (!argMinIdle(c, "XCLAIM", &how->min_idle_ms)) return false;
    int i = 5;
    while (i < c->argc && streamParseId(c->argv[i], 0, &id)) i++;
    out->ids_end = i;
    for (; i < c->argc; i++) {
        if (!parseClaimOption(c, &i, how, out)) return false;
    }
    if (how->delivered_ms < 0 || how->delivered_ms > c->now_ms) how->delivered_ms = c->now_ms;
    return true;
}

/* XCLAIM key group consumer min-idle-time id [id ...] [IDLE ms] [TIME unix-time-ms] [RETRYCOUNT
 * count] [FORCE] [JUSTID] [LASTID last-id]. Reply: the claimed entries, or their ids. */
void xclaimCommand(ctx *c) {
    hotCheck(c->argc >= 6);
    claim how = {0};
    claimOptions p;
    if (!findGroup(c, true, &how.s, &how.g)) return;
    if (!parseClaim(c, &how, &p)) return;
    bool raises_last = p.has_last && streamIdLess(streamGroupLastId(how.g), p.last);
    if (raises_last) streamGroupSetLastId(how.g, p.last, streamGroupEntriesRead(how.g));
    how.consumer = streamConsumerFor(c, c->argv[1], how.g, c->argv[3], &how.created);
    ctxPropagateNothing(c); /* but for what is propagated instead */
    int64_t found = 0;
    respDeferred array = respDeferBegin(c->out);
    for (int i = 5; i < p.ids_end; i++) {
        streamId id;
        check(streamParseId(c->argv[i], 0, &id));
        found += claimOne(c, &how, id);
    }
    respDeferEnd(c->out, array, '*', c->proto, found);
    finishConsumer(c, &how);
    if (raises_last && !how.propagated) {
        streamPropagateGroup(c, c->argv[1], how.g);
        ctxDatasetChanged(c, 1);
    }
}

/* ------------------------------------------------------------------ XAUTOCLAIM */

typedef struct autoclaimOptions {
    streamId start;
    int64_t count;
} autoclaimOptions;

static bool parseAutoclaim(ctx *c, claim *how, autoclaimOptions *out) {
    const int64_t count_max = INT64_MAX / 16;
    *out = (autoclaimOptions){.count = 100};
    how->delivered_ms = c->now_ms;
    how->deliveries = -1;
    if (!argMinIdle(c, "XAUTOCLAIM", &how->min_idle_ms)) return false;
    if (!streamArgRangeStart(c, 5, &out->start)) return false;
    for (int i = 6; i < c->argc; i++) {
        if (i + 1 < c->argc && ctxArgIs(c, i, "count")) {
            if (!ctxArgIntIn(c, ++i, 1, count_max, &out->count, "ERR COUNT must be > 0"))
                return false;
        } else if (ctxArgIs(c, i, "justid")) {
            how->just_id = true;
        } else {
            replyError(c, ERR_SYNTAX_TEXT);
            return false;
        }
    }
    return true;
}

/* XAUTOCLAIM key group consumer min-idle-time start [COUNT count] [JUSTID]. Reply: the id to
 * continue from, the claimed entries or their ids, and the pending ids whose entries were removed
 * from the stream. */
void xautoclaimCommand(ctx *c) {
    hotCheck(c->argc >= 6);
    enum { ATTEMPTS = 10 }; /* pending entries examined per requested one */
    claim how = {0};
    autoclaimOptions p;
    if (!parseAutoclaim(c, &how, &p)) return;
    if (!findGroup(c, true, &how.s, &how.g)) return;
    how.consumer = streamConsumerFor(c, c->argv[1], how.g, c->argv[3], &how.created);
    ctxPropagateNothing(c); /* but for what is propagated instead */
    outbuf claimed, gone, *out = c->out;
    int64_t claimed_count = 0, gone_count = 0;
    uint64_t attempts = (uint64_t)p.count * ATTEMPTS;
    outbufInit(&claimed);
    outbufInit(&gone);
    streamPendingCursor at;
    streamPending pending;
    streamPendingSeek(&at, how.g, NULL, p.start);
    int64_t left = p.count;
    while (left > 0 && attempts-- > 0 && streamPendingNext(&at, &pending)) {
        if (!streamHas(how.s, pending.id)) {
            c->out = &gone;
            streamReplyId(c, pending.id);
            gone_count++;
            left--;
            dropPending(c, &how, &pending);
            continue;
        }
        if (how.min_idle_ms && c->now_ms - pending.delivered_ms < how.min_idle_ms) continue;
        c->out = &claimed;
        giveTo(c, &how, &pending);
        claimed_count++;
        left--;
    }
    c->out = out;
    finishConsumer(c, &how);
    replyArray(c, 3);
    streamReplyId(c, streamPendingNext(&at, &pending) ? pending.id : STREAM_ID_MIN);
    replyArray(c, claimed_count);
    outbufMoveAll(c->out, &claimed);
    replyArray(c, gone_count);
    outbufMoveAll(c->out, &gone);
}

/* ------------------------------------------------------------------ XNACK */

typedef struct release {
    enum { RELEASE_SILENT, RELEASE_FAIL, RELEASE_FATAL } how;
    int first, count;   /* arguments with ids; 0: not given */
    int64_t deliveries; /* RETRYCOUNT; -1: not given */
    bool force;
} release;

/* True if all ids are valid; else the error was replied. */
static bool areIdsValid(ctx *c, const release *r) {
    streamId id;
    for (int i = r->first; i < r->first + r->count; i++) {
        if (!streamArgId(c, i, 0, &id)) return false;
    }
    return true;
}

static bool parseRelease(ctx *c, release *out) {
    hotCheck(c->argc >= 7);
    static const char *const words[] = {"silent", "fail", "fatal"};
    bool valid = false;
    *out = (release){.deliveries = -1};
    for (int how = RELEASE_SILENT; how <= RELEASE_FATAL; how++) {
        if (!ctxArgIs(c, 3, words[how])) continue;
        out->how = how;
        valid = true;
    }
    for (int i = 4; valid && i < c->argc; i++) {
        bool has_value = i + 1 < c->argc;
        if (has_value && !out->first && ctxArgIs(c, i, "ids")) {
            if (!streamArgIdCount(c, &i, &out->first, &out->count) || !areIdsValid(c, out))
                return false;
        } else if (has_value && out->deliveries < 0 && ctxArgIs(c, i, "retrycount")) {
            if (!ctxArgIntIn(c, ++i, 0, INT64_MAX, &out->deliveries,
                             "ERR Invalid RETRYCOUNT option argument for XNACK"))
                return false;
        } else if (!out->force && ctxArgIs(c, i, "force")) {
            out->force = true;
        } else {
            valid = false;
        }
    }
    if (valid && out->first) return true;
    replyError(c, ERR_SYNTAX_TEXT);
    return false;
}

static uint64_t releasedDeliveries(const release *r, uint64_t before) {
    if (r->deliveries >= 0) return (uint64_t)r->deliveries;
    switch (r->how) {
    case RELEASE_SILENT: return before ? before - 1 : 0;
    case RELEASE_FATAL: return INT64_MAX;
    default: return before;
    }
}

/* Releases a pending entry. False: the entry is not pending, or is not in the stream any more. */
static bool releaseOne(ctx *c, claim *how, const release *r, streamId id) {
    hotCheck(how->g);
    streamPending p;
    bool pending = streamPendingFind(how->g, id, &p);
    if (!streamHas(how->s, id)) {
        if (pending) dropPending(c, how, &p);
        return false;
    }
    if (!pending && !r->force) return false;
    if (!pending) p = (streamPending){.id = id};
    if (!how->consumer)
        how->consumer = streamConsumerFor(c, c->argv[1], how->g, SLICE(""), &how->created);
    p.owner = how->consumer;
    p.delivered_ms = 0;
    p.deliveries = releasedDeliveries(r, p.deliveries);
    streamPendingSet(how->g, &p);
    if (engineHot.sinks) streamPropagateClaim(c, c->argv[1], how->g, &p);
    ctxDatasetChanged(c, 1);
    return true;
}

/* XNACK key group SILENT|FAIL|FATAL IDS numids id [id ...] [RETRYCOUNT count] [FORCE]. Reply:
 * number of entries that were released. They remain pending in the group, for the consumer without
 * a name and delivered at 0, so that XAUTOCLAIM and XREADGROUP with CLAIM give them first. */
void xnackCommand(ctx *c) {
    hotCheck(c->argc >= 7);
    claim how = {0};
    release r;
    if (!parseRelease(c, &r) || !findGroup(c, true, &how.s, &how.g)) return;
    ctxPropagateNothing(c); /* but for what is propagated instead */
    int64_t released = 0;
    for (int i = r.first; i < r.first + r.count; i++) {
        streamId id;
        check(streamParseId(c->argv[i], 0, &id));
        released += releaseOne(c, &how, &r, id);
    }
    replyInteger(c, released);
}
