/* SPDX-License-Identifier: BSD-3-Clause
 *
 * XREAD and XREADGROUP. Main thread only. */
#include "base/base.h"
#include "cmd/procs.h"
#include "cmd/stream_priv.h"
#include "engine/block.h"

/* Limits of the whole reply (MAXCOUNT, MAXSIZE), and its entries and bytes so far. The entry that
 * reaches `bytes_max` is the last one. */
typedef struct readLimits {
    int64_t entries_max, bytes_max; /* 0: no limit */
    int64_t entries, bytes;
} readLimits;

/* The options of the request. */
typedef struct readOptions {
    bool of_group, noack, blocks, claims;
    int64_t count, deadline_ms;
    int64_t min_idle_ms; /* of pending entries to claim */
    int group_arg;       /* the consumer follows; 0: none */
    int first, end;      /* arguments with keys; the same number of ids follows */
    readLimits *limits;  /* NULL: none */
} readOptions;

/* The part of a request that is about one stream. */
typedef struct readPlan {
    stream *s; /* NULL: the key does not exist */
    streamGroup *g;
    streamId after;
    bool undelivered; /* ">": entries never delivered to the group */
} readPlan;

/* ------------------------------------------------------------------ arguments */

static bool parseStreams(ctx *c, int first, readOptions *out) {
    hotCheck(first > 0);
    hotCheck(first <= c->argc);
    int words = c->argc - first;
    if (words % 2) {
        replyErrorFormat(c,
                         "ERR Unbalanced '%s' list of streams: for each stream key an ID or '%s' "
                         "must be specified.",
                         out->of_group ? "xreadgroup" : "xread", out->of_group ? ">" : "$");
        return false;
    }
    out->first = first;
    out->end = first + words / 2;
    return true;
}

/* True for XREADGROUP; else the error was replied that XREAD has no such option. */
static bool forGroups(ctx *c, const char *word, const readOptions *p) {
    if (p->of_group) return true;
    replyErrorFormat(
        c, "ERR The %s option is only supported by XREADGROUP. You called XREAD instead.", word);
    return false;
}

/* Parses the number after CLAIM at argument `i`. */
static bool parseMinIdle(ctx *c, int i, readOptions *out) {
    if (!forGroups(c, "CLAIM", out)) return false;
    out->claims = true;
    if (!numberParseInt(c->argv[i], &out->min_idle_ms)) {
        replyError(c, SLICE("ERR min-idle-time is not an integer or out of range"));
        return false;
    }
    if (out->min_idle_ms >= 0) return true;
    replyError(c, SLICE("ERR min-idle-time must be a positive integer"));
    return false;
}

/* Parses MAXCOUNT or MAXSIZE at argument `i`, which a number follows. False: the error was
 * replied. */
static bool parseLimit(ctx *c, int i, readLimits *limits, readOptions *out) {
    bool is_count = ctxArgIs(c, i, "maxcount");
    int64_t *most = is_count ? &limits->entries_max : &limits->bytes_max;
    out->limits = limits;
    return ctxArgIntIn(c, i + 1, 1, INT64_MAX, most,
                       is_count ? "ERR MAXCOUNT must be a positive integer"
                                : "ERR MAXSIZE must be a positive integer");
}

static bool isLimit(const ctx *c, int i) {
    return (ctxArgIs(c, i, "maxcount") || ctxArgIs(c, i, "maxsize")) && ctxHasExtensions(c);
}

/* Checks options that depend on other options. False: the error was replied. */
static bool checkRead(ctx *c, const readOptions *p) {
    if (!p->first) {
        replyError(c, ERR_SYNTAX_TEXT);
    } else if (p->of_group && !p->group_arg) {
        replyError(c, SLICE("ERR Missing GROUP option for XREADGROUP"));
    } else if (p->limits && p->limits->entries_max && p->limits->entries_max < p->count) {
        replyError(c, SLICE("ERR MAXCOUNT must be greater than or equal to COUNT"));
    } else {
        return true;
    }
    return false;
}

/* Parses the options. If there are limits of the reply, they are stored in `limits`. */
static bool parseRead(ctx *c, bool of_group, readLimits *limits, readOptions *out) {
    *out = (readOptions){.of_group = of_group};
    for (int i = 1; i < c->argc && !out->first; i++) {
        int more = c->argc - 1 - i;
        if (more && ctxArgIs(c, i, "block")) {
            out->blocks = true;
            if (!blockArgDeadlineMs(c, ++i, &out->deadline_ms)) return false;
        } else if (more && ctxArgIs(c, i, "count")) {
            if (!ctxArgInt(c, ++i, &out->count)) return false;
            if (out->count < 0) out->count = 0;
        } else if (more && ctxArgIs(c, i, "streams")) {
            if (!parseStreams(c, i + 1, out)) return false;
        } else if (more >= 2 && ctxArgIs(c, i, "group")) {
            if (!forGroups(c, "GROUP", out)) return false;
            out->group_arg = i + 1;
            i += 2;
        } else if (ctxArgIs(c, i, "noack")) {
            if (!forGroups(c, "NOACK", out)) return false;
            out->noack = true;
        } else if (more && ctxArgIs(c, i, "claim") && ctxHasExtensions(c)) {
            if (!parseMinIdle(c, ++i, out)) return false;
        } else if (more && isLimit(c, i)) {
            if (!parseLimit(c, i++, limits, out)) return false;
        } else {
            break;
        }
    }
    return checkRead(c, out);
}

/* Parses `$`, `+` and `>`; false: the argument is none of them. *valid: it is allowed here, else
 * the error was replied. */
static bool planSpecial(ctx *c, const readOptions *p, slice id, readPlan *plan, bool *valid) {
    *valid = true;
    if (streamIsWord(id, '$') || streamIsWord(id, '+')) {
        if (p->of_group) {
            replyErrorFormat(c,
                             "ERR The %c ID is meaningless in the context of XREADGROUP: you want "
                             "to read the history of this consumer by specifying a proper ID, or "
                             "use the > ID to get new messages. The %c ID would just return an "
                             "empty result set.",
                             id.ptr[0], id.ptr[0]);
            *valid = false;
            return true;
        }
        plan->after = plan->s ? streamLastId(plan->s) : STREAM_ID_MIN;
        if (streamIsWord(id, '+')) (void)streamIdPrev(&plan->after); /* 0-0 without an entry */
        return true;
    }
    if (!streamIsWord(id, '>')) return false;
    plan->undelivered = true;
    if (p->of_group) return true;
    replyError(c, SLICE("ERR The > ID can be specified only when calling XREADGROUP using the "
                        "GROUP <group> <consumer> option."));
    *valid = false;
    return true;
}

/* Looks up the stream at argument `i`. False: the error was replied. */
static bool planStream(ctx *c, const readOptions *p, int i, readPlan *plan) {
    hotCheck(i > 0);
    hotCheck(i <= c->argc);
    *plan = (readPlan){0};
    if (!(p->of_group ? streamFindWrite : streamFindRead)(c, i, &plan->s)) return false;
    if (p->of_group) {
        slice group = c->argv[p->group_arg], key = c->argv[i];
        plan->g = plan->s ? streamGroupFind(plan->s, group) : NULL;
        if (!plan->s) ctxKeyEvent(c, key, &eventKeymiss);
        if (!plan->g) {
            replyErrorFormat(c,
                             "NOGROUP No such key '%.*s' or consumer group '%.*s' in XREADGROUP "
                             "with GROUP option",
                             (int)key.len, key.ptr, (int)group.len, group.ptr);
            return false;
        }
    }
    slice id = c->argv[i + p->end - p->first];
    bool valid;
    if (planSpecial(c, p, id, plan, &valid)) return valid;
    if (!streamArgId(c, i + p->end - p->first, 0, &plan->after)) return false;
    plan->undelivered = p->of_group && streamIdEqual(plan->after, STREAM_ID_MAX);
    return true;
}

/* ------------------------------------------------------------------ limits of the reply */

/* True unless the reply has reached a limit. */
static bool hasRoom(const readOptions *p) {
    const readLimits *l = p->limits;
    if (likely(!l)) return true;
    return (!l->entries_max || l->entries < l->entries_max) &&
           (!l->bytes_max || l->bytes < l->bytes_max);
}

/* Counts an entry of the reply, with about the bytes that the protocol adds. */
static void countEntry(const readOptions *p, streamFields fields) {
    enum { ENTRY_BYTES = 40, ITEM_BYTES = 8 };
    if (likely(!p->limits)) return;
    listpackItem item[2];
    char digits[NUMBER_TEXT_MAX];
    p->limits->entries++;
    p->limits->bytes += ENTRY_BYTES;
    while (fields.left) {
        streamFieldsNext(&fields, &item[0], &item[1]);
        for (int i = 0; i < 2; i++)
            p->limits->bytes += ITEM_BYTES + (int64_t)listpackText(&item[i], digits).len;
    }
}

/* Replies the entries after an id. */
static void replyAfter(ctx *c, const readOptions *p, const stream *s, streamId start) {
    if (likely(!p->limits)) {
        (void)streamReplyRange(c, s, start, STREAM_ID_MAX, false, (uint64_t)p->count);
        return;
    }
    streamCursor at;
    streamId id;
    streamFields fields;
    int64_t found = 0;
    respDeferred array = respDeferBegin(c->out);
    streamCursorInit(&at, s, start, STREAM_ID_MAX, false);
    while ((p->count == 0 || found < p->count) && hasRoom(p) &&
           streamCursorNext(&at, &id, &fields)) {
        countEntry(p, fields);
        streamReplyEntry(c, id, fields);
        found++;
        if (jobPoint(c, 1)) break;
    }
    streamCursorClear(&at);
    respDeferEnd(c->out, array, '*', c->proto, found);
}

/* ------------------------------------------------------------------ reading for groups */

/* Replies an entry; with CLAIM followed by the time since its last delivery and their number. */
static void replyDelivered(ctx *c, const readOptions *p, streamId id, streamFields fields,
                           int64_t idle_ms, uint64_t deliveries) {
    countEntry(p, fields);
    if (likely(!p->claims)) {
        streamReplyEntry(c, id, fields);
        return;
    }
    replyArray(c, 4);
    streamReplyEntryParts(c, id, fields);
    replyInteger(c, idle_ms);
    replyInteger(c, (int64_t)deliveries);
}

/* Delivers entries that the group has not read to the consumer, until `found` entries in total are
 * the requested number. Returns that total. */
static int64_t deliverNews(ctx *c, slice key, const readOptions *p, const readPlan *plan,
                           streamConsumer *consumer, int64_t found) {
    streamCursor at;
    streamId id, start = streamGroupLastId(plan->g);
    streamFields fields;
    if (!streamIdNext(&start)) return found;
    streamCursorInit(&at, plan->s, start, STREAM_ID_MAX, false);
    while ((p->count == 0 || found < p->count) && hasRoom(p) &&
           streamCursorNext(&at, &id, &fields)) {
        replyDelivered(c, p, id, fields, 0, 0);
        streamGroupAdvance(plan->s, plan->g, id);
        found++;
        if (p->noack) continue;
        streamPending pending = {id, consumer, c->now_ms, 1};
        streamPendingSet(plan->g, &pending);
        if (engineHot.sinks) streamPropagateClaim(c, key, plan->g, &pending);
    }
    streamCursorClear(&at);
    return found;
}

/* Delivers a pending entry of any consumer once more, to this one. */
static void deliverIdle(ctx *c, slice key, const readOptions *p, const readPlan *plan,
                        streamConsumer *consumer, const streamPending *idle) {
    streamCursor at;
    streamId id;
    streamFields fields;
    streamCursorInit(&at, plan->s, idle->id, idle->id, false);
    check(streamCursorNext(&at, &id, &fields));
    replyDelivered(c, p, id, fields, c->now_ms - idle->delivered_ms, idle->deliveries);
    streamCursorClear(&at);
    streamPending pending = {id, consumer, c->now_ms, idle->deliveries + 1};
    streamPendingSet(plan->g, &pending);
    if (engineHot.sinks) streamPropagateClaim(c, key, plan->g, &pending);
}

/* Delivers these pending entries (CLAIM), and then entries that the group has not read. True if one
 * of them is pending for the consumer now, which creates it on a replica. */
static bool readNews(ctx *c, slice key, const readOptions *p, const readPlan *plan,
                     streamConsumer *consumer, const streamPending *idle, size_t idle_count) {
    respDeferred array = respDeferBegin(c->out);
    int64_t claimed = 0;
    for (; claimed < (int64_t)idle_count && hasRoom(p); claimed++)
        deliverIdle(c, key, p, plan, consumer, &idle[claimed]);
    int64_t found = deliverNews(c, key, p, plan, consumer, claimed);
    respDeferEnd(c->out, array, '*', c->proto, found);
    if (!found) return false;
    bool given = !p->noack || claimed;
    if (given) streamConsumerSetActive(consumer, c->now_ms);
    if (found > claimed) streamPropagateGroup(c, key, plan->g);
    ctxDatasetChanged(c, 1); /* as in Valkey one for the stream, not for each entry */
    return given;
}

/* Replies the entry of a pending id. False: the entry does not exist any more, and nothing was
 * replied. */
static bool replyPending(ctx *c, const readOptions *p, const stream *s, streamId id) {
    streamCursor at;
    streamFields fields = {0};
    streamCursorInit(&at, s, id, id, false);
    bool exists = streamCursorNext(&at, &id, &fields);
    countEntry(p, fields);
    if (exists) streamReplyEntry(c, id, fields);
    streamCursorClear(&at);
    return exists;
}

/* Replies the consumer's pending entries after an id and counts the delivery. */
static void readHistory(ctx *c, const readOptions *p, const readPlan *plan,
                        const streamConsumer *consumer) {
    streamPendingCursor at;
    streamPending pending;
    streamId start = plan->after;
    int64_t found = 0;
    respDeferred array = respDeferBegin(c->out);
    bool any = streamIdNext(&start);
    streamPendingSeek(&at, plan->g, consumer, start);
    while (any && (p->count == 0 || found < p->count) && hasRoom(p) &&
           streamPendingNext(&at, &pending)) {
        found++;
        if (!replyPending(c, p, plan->s, pending.id)) {
            replyArray(c, 2);
            streamReplyId(c, pending.id);
            replyNullArray(c);
            continue;
        }
        pending.delivered_ms = c->now_ms;
        pending.deliveries++;
        streamPendingSet(plan->g, &pending);
    }
    respDeferEnd(c->out, array, '*', c->proto, found);
}

/* ------------------------------------------------------------------ both commands */

/* A reply that is opened at the first stream with entries. */
typedef struct readReply {
    respDeferred head;
    int64_t count;
} readReply;

static void beginStream(ctx *c, readReply *r, slice key) {
    if (r->count++ == 0) r->head = respDeferBegin(c->out);
    if (c->proto == 2) replyArray(c, 2);
    replyBulk(c, key);
}

/* True if there is a live entry above `id`. */
static bool hasAfter(const stream *s, streamId id) {
    streamId last;
    return s && streamLastLive(s, &last) && streamIdLess(id, last);
}

/* XREADGROUP with CLAIM. Returns the result of readNews(). */
static bool serveClaims(ctx *c, const readOptions *p, slice key, const readPlan *plan,
                        streamConsumer *consumer, readReply *r) {
    streamPending *idle;
    bool given = false;
    size_t count =
        streamPendingIdle(plan->s, plan->g, c->now_ms - p->min_idle_ms, (uint64_t)p->count, &idle);
    if (count || hasAfter(plan->s, streamGroupLastId(plan->g))) {
        beginStream(c, r, key);
        given = readNews(c, key, p, plan, consumer, idle, count);
    }
    memFree(idle);
    return given;
}

static void serveGroup(ctx *c, const readOptions *p, int i, const readPlan *plan, readReply *r) {
    hotCheck(i > 0);
    hotCheck(i <= c->argc);
    slice key = c->argv[i], name = c->argv[p->group_arg + 1];
    bool created, given = false;
    streamConsumer *consumer = streamConsumerFor(c, key, plan->g, name, &created);
    if (created && p->noack) streamPropagateConsumer(c, key, plan->g, name);
    if (!plan->undelivered) {
        beginStream(c, r, key);
        readHistory(c, p, plan, consumer);
        engineHot.dirty++; /* as in Valkey, though nothing has changed */
    } else if (unlikely(p->claims)) {
        given = serveClaims(c, p, key, plan, consumer, r);
    } else if (hasAfter(plan->s, streamGroupLastId(plan->g))) {
        beginStream(c, r, key);
        given = readNews(c, key, p, plan, consumer, NULL, 0);
    }
    if (created && !p->noack && !given) streamPropagateConsumer(c, key, plan->g, name);
}

static void serve(ctx *c, const readOptions *p, int i, const readPlan *plan, readReply *r) {
    hotCheck(i > 0);
    hotCheck(i <= c->argc);
    streamId start = plan->after;
    if (p->of_group) {
        serveGroup(c, p, i, plan, r);
    } else if (!plan->s) {
        ctxKeyEvent(c, c->argv[i], &eventKeymiss); /* as in Valkey, which looks it up twice */
    } else if (hasAfter(plan->s, plan->after)) {
        beginStream(c, r, c->argv[i]);
        (void)streamIdNext(&start); /* there is an entry after it */
        replyAfter(c, p, plan->s, start);
    }
}

static void replyTimedOut(ctx *c) { replyNullArray(c); }

/* The time at which a pending entry can be claimed, if nothing happens until then; 0: never. */
static int64_t claimTime(const readOptions *p, const readPlan *plans) {
    int64_t first_ms = INT64_MAX, at_ms;
    for (int i = 0; p->claims && i < p->end - p->first; i++) {
        if (!plans[i].undelivered) continue;
        bool later = !numberAdd(streamPendingOldest(plans[i].g), p->min_idle_ms, &at_ms);
        if (!later && at_ms < first_ms) first_ms = at_ms;
    }
    return first_ms == INT64_MAX ? 0 : first_ms;
}

/* Blocks until one of the streams has entries. `$` is replaced by the current last id. */
static void blockForStreams(ctx *c, const readOptions *p, const readPlan *plans) {
    hotCheck(p->first < p->end);
    hotCheck(p->end <= c->argc);
    int streams = p->end - p->first;
    slice *words = memNewArray(slice, (size_t)c->argc);
    char(*texts)[STREAM_ID_TEXT_MAX] = memAlloc((size_t)streams * STREAM_ID_TEXT_MAX);
    memcpy(words, c->argv, (size_t)c->argc * sizeof(*words));
    for (int i = 0; i < streams; i++) {
        if (streamIsWord(words[p->end + i], '$'))
            words[p->end + i] = streamIdText(plans[i].after, texts[i]);
    }
    blockParams params = {.keys = c->argv + p->first,
                          .key_count = streams,
                          .type = TYPE_STREAM,
                          .when_gone = p->of_group,
                          .deadline_ms = p->deadline_ms,
                          .again_ms = claimTime(p, plans),
                          .timed_out = replyTimedOut,
                          .argv = words,
                          .argc = c->argc};
    blockStart(c, &params);
    memFree(texts);
    memFree(words);
}

/* True if XREAD is or becomes a job. */
static bool isReadByJob(ctx *c, const readOptions *p, const readPlan *plans) {
    uint64_t most = 0;
    for (int i = p->first; i < p->end; i++) {
        const readPlan *plan = &plans[i - p->first];
        if (hasAfter(plan->s, plan->after)) most += streamReplyMost(plan->s, p->count);
    }
    if (likely(most < engineHot.job_from)) return false;
    for (int i = p->first; i < p->end; i++) {
        if (!plans[i - p->first].s) return false; /* its event comes amid the reply */
    }
    return jobStart(c, most);
}

static void readOrBlock(ctx *c, bool of_group) {
    readOptions p;
    readReply r = {.count = 0};
    readLimits limits = {0};
    if (!parseRead(c, of_group, &limits, &p)) return;
    readPlan *plans = memNewArray(readPlan, (size_t)(p.end - p.first));
    for (int i = p.first; i < p.end; i++) {
        if (!planStream(c, &p, i, &plans[i - p.first])) goto done;
    }
    if (of_group) {
        ctxPropagateNothing(c); /* but for what is propagated instead */
    } else if (isReadByJob(c, &p, plans)) {
        goto done;
    }
    for (int i = p.first; i < p.end && hasRoom(&p); i++) serve(c, &p, i, &plans[i - p.first], &r);
    if (r.count) {
        respDeferEnd(c->out, r.head, c->proto == 2 ? '*' : '%', c->proto, r.count);
    } else if (!p.blocks || blockIsDenied(c)) {
        replyNullArray(c);
    } else {
        blockForStreams(c, &p, plans);
    }
done:
    memFree(plans);
}

/* XREAD [COUNT count] [MAXCOUNT count] [MAXSIZE bytes] [BLOCK ms] STREAMS key [key ...] id
 * [id ...]. Reply: the key and the entries of each stream that has entries after its id; null if
 * none has. */
void xreadCommand(ctx *c) { readOrBlock(c, false); }

/* XREADGROUP GROUP group consumer [COUNT count] [MAXCOUNT count] [MAXSIZE bytes] [BLOCK ms] [CLAIM
 * min-idle-time] [NOACK] STREAMS key [key ...] id [id ...]. Reply: the same, with entries not
 * delivered to the group before (">"), or the consumer's pending entries. With CLAIM entries that
 * have been pending for so long precede those of ">", and each has the time since its last
 * delivery, and their number. */
void xreadgroupCommand(ctx *c) { readOrBlock(c, true); }
