/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Sorted set commands on ranges by rank, score or text. Main thread only. */
#include <stdlib.h>

#include "base/base.h"
#include "base/number.h"
#include "cmd/collection.h"
#include "cmd/procs.h"
#include "cmd/cmd_priv.h"
#include "cmd/zset_priv.h"
#include "engine/job.h"

/* ------------------------------------------------------------------ bounds */

/* Parses a number as strtod() does for range bounds: text without digits is 0, a NUL ends it,
 * overflow gives infinity and underflow 0. */
static bool parseNumber(slice text, double *out) {
    const char *zero = text.len ? memchr(text.ptr, 0, text.len) : NULL;
    if (zero) text.len = (size_t)(zero - text.ptr);
    *out = 0;
    if (text.len == 0 || numberParseDouble(text, out)) return true;
    char copy[512];
    if (text.len >= sizeof(copy)) return false;
    for (size_t i = 0; i < text.len; i++) {
        if (!strchr("0123456789+-.eE", text.ptr[i])) return false;
    }
    memcpy(copy, text.ptr, text.len);
    copy[text.len] = '\0';
    char *end;
    *out = strtod(copy, &end);
    return end == copy + text.len;
}

/* A score, or an exclusive one after '('. */
static bool parseScore(slice text, zsetBound *out) {
    *out = (zsetBound){.by = ZSET_BY_SCORE};
    if (text.len > 0 && text.ptr[0] == '(') {
        out->excluded = true;
        text = sliceMake(text.ptr + 1, text.len - 1);
    }
    if (text.len == 0 && cmdConf.zset_refuse_empty_bounds) return false;
    return parseNumber(text, &out->score);
}

bool zsetArgScoreBounds(ctx *c, int min_index, int max_index, zsetBound *min, zsetBound *max) {
    hotCheck(min_index > 0);
    hotCheck(min_index <= c->argc);
    hotCheck(max_index > 0);
    hotCheck(max_index <= c->argc);
    if (parseScore(c->argv[min_index], min) && parseScore(c->argv[max_index], max)) return true;
    replyError(c, SLICE("ERR min or max is not a float"));
    return false;
}

/* '-', '+', or text after '[' or '('. */
static bool parseText(slice text, zsetBound *out) {
    *out = (zsetBound){.by = ZSET_BY_LEX};
    if (text.len == 0) return false;
    char kind = text.ptr[0];
    out->text = sliceMake(text.ptr + 1, text.len - 1);
    out->excluded = kind == '(';
    if (text.len == 1 && kind == '-') out->by = ZSET_FIRST;
    if (text.len == 1 && kind == '+') out->by = ZSET_LAST;
    return kind == '(' || kind == '[' || out->by != ZSET_BY_LEX;
}

bool zsetArgLexBounds(ctx *c, int min_index, int max_index, zsetBound *min, zsetBound *max) {
    hotCheck(min_index > 0);
    hotCheck(min_index <= c->argc);
    hotCheck(max_index > 0);
    hotCheck(max_index <= c->argc);
    if (parseText(c->argv[min_index], min) && parseText(c->argv[max_index], max)) return true;
    replyError(c, SLICE("ERR min or max not valid string range item"));
    return false;
}

/* Converts ranks, negative ones counted from the end, to a range of `length` members. */
static zsetRange rangeOfRanks(int64_t start, int64_t stop, size_t length) {
    int64_t count = (int64_t)length;
    if (start < 0) start = start + count < 0 ? 0 : start + count;
    if (stop < 0) stop += count;
    if (stop >= count) stop = count - 1;
    if (start > stop) return (zsetRange){0, 0};
    return (zsetRange){(uint64_t)start, (uint64_t)(stop - start) + 1};
}

/* ------------------------------------------------------------------ queries */

typedef enum queryBy { BY_ANY, BY_RANK, BY_SCORE, BY_LEX } queryBy;
typedef enum queryDirection { GO_ANY, GO_FORWARD, GO_BACK } queryDirection;

typedef struct query {
    queryBy by; /* BY_ANY, GO_ANY: determined by the options */
    queryDirection direction;
    bool scores, stores;
    bool must_exist;       /* XX: the reply for a missing key is null, not an empty array */
    int64_t offset, limit; /* limit below 0: no limit */
    int64_t start, stop;
    zsetBound min, max;
} query;

/* Parses the option at *place and moves *place past it. */
static bool parseOption(ctx *c, query *q, int *arg_index) {
    hotCheck(*arg_index > 0);
    hotCheck(*arg_index < c->argc);
    int i = (*arg_index)++;
    if (!q->stores && ctxArgIs(c, i, "withscores")) {
        q->scores = true;
    } else if (!q->stores && ctxArgIs(c, i, "xx")) {
        q->must_exist = true;
    } else if (ctxArgIs(c, i, "limit") && i + 2 < c->argc) {
        *arg_index += 2;
        return ctxArgInt(c, i + 1, &q->offset) && ctxArgInt(c, i + 2, &q->limit);
    } else if (q->direction == GO_ANY && ctxArgIs(c, i, "rev")) {
        q->direction = GO_BACK;
    } else if (q->by == BY_ANY && ctxArgIs(c, i, "bylex")) {
        q->by = BY_LEX;
    } else if (q->by == BY_ANY && ctxArgIs(c, i, "byscore")) {
        q->by = BY_SCORE;
    } else {
        replyError(c, ERR_SYNTAX_TEXT);
        return false;
    }
    return true;
}

/* Parses the bounds at arguments `first` and the next one, and the options after them. False: the
 * error was replied. */
static bool parseQuery(ctx *c, query *q, int first) {
    q->limit = -1;
    for (int i = first + 2; i < c->argc;) {
        if (!parseOption(c, q, &i)) return false;
    }
    if (q->by == BY_ANY) q->by = BY_RANK;
    if (q->by == BY_RANK && q->limit != -1) {
        replyError(c, SLICE("ERR syntax error, LIMIT is only supported in combination with either "
                            "BYSCORE or BYLEX"));
        return false;
    }
    if (q->by == BY_LEX && q->scores) {
        replyError(c,
                   SLICE("ERR syntax error, WITHSCORES not supported in combination with BYLEX"));
        return false;
    }
    if (q->by == BY_RANK)
        return ctxArgInt(c, first, &q->start) && ctxArgInt(c, first + 1, &q->stop);
    int min = q->direction == GO_BACK ? first + 1 : first, max = 2 * first + 1 - min;
    if (q->by == BY_SCORE) return zsetArgScoreBounds(c, min, max, &q->min, &q->max);
    return zsetArgLexBounds(c, min, max, &q->min, &q->max);
}

/* The requested members: their number and the rank of the first one, in the direction of the
 * query. */
static zsetRange findMembers(const query *q, const robj *o) {
    hotCheck(!o || objectType(o) == TYPE_ZSET);
    size_t length = zsetLength(o);
    zsetRange r;
    if (q->by == BY_RANK) {
        r = rangeOfRanks(q->start, q->stop, length);
        if (q->direction == GO_BACK) r.index = length - 1 - r.index;
        return r;
    }
    r = zsetFindRange(o, &q->min, &q->max);
    int64_t offset = q->offset;
    /* As in Valkey, skiplist-encoded sets count a negative offset from the end. */
    if (offset < 0 && !objectIsPacked(o)) offset += (int64_t)r.count;
    if (offset < 0 || (uint64_t)offset >= r.count) return (zsetRange){0, 0};
    uint64_t skip = (uint64_t)offset;
    r.index = q->direction == GO_BACK ? r.index + r.count - 1 - skip : r.index + skip;
    r.count -= skip;
    if (q->limit >= 0) r.count = sizeMin(r.count, (uint64_t)q->limit);
    return r;
}

static void replyRange(ctx *c, const query *q, const robj *o) {
    hotCheck(!o || objectType(o) == TYPE_ZSET);
    zsetRange r = {0, 0};
    if (o) r = findMembers(q, o);
    if (jobStart(c, r.count)) return;
    zsetReplyHead(c, r.count, q->scores, true);
    if (r.count == 0) return;
    zsetCursor cursor;
    zsetPair pairs[ZSET_MANY];
    zsetSeek(&cursor, o, r.index, q->direction == GO_BACK);
    while (r.count > 0) {
        unsigned count = zsetNextMany(&cursor, pairs, (unsigned)sizeMin(r.count, ZSET_MANY));
        check(count > 0);
        for (unsigned i = 0; i < count; i++) zsetReplyPair(c, &pairs[i], q->scores, true);
        r.count -= count;
        if (jobPoint(c, count)) break;
    }
}

static void runQuery(ctx *c, queryBy by, queryDirection direction) {
    query q = {.by = by, .direction = direction};
    robj *o;
    if (!parseQuery(c, &q, 2)) return;
    if (!collectionFindRead(c, 1, TYPE_ZSET, &o)) return;
    if (q.must_exist && !o) {
        replyNullArray(c);
    } else {
        replyRange(c, &q, o);
    }
}

/* The options of ZRANGE and its variants may be followed or preceded by XX: then the reply is null
 * if the key is missing.
 *
 * ZRANGE key start stop [BYSCORE|BYLEX] [REV] [LIMIT offset count] [WITHSCORES]. Reply: members. */
void zrangeCommand(ctx *c) { runQuery(c, BY_ANY, GO_ANY); }

/* ZREVRANGE key start stop [WITHSCORES]. Reply: members in descending order. */
void zrevrangeCommand(ctx *c) { runQuery(c, BY_RANK, GO_BACK); }

/* ZRANGEBYSCORE key min max [WITHSCORES] [LIMIT offset count]. Reply: members. */
void zrangebyscoreCommand(ctx *c) { runQuery(c, BY_SCORE, GO_FORWARD); }

/* ZREVRANGEBYSCORE key max min [WITHSCORES] [LIMIT offset count]. Reply: members in descending
 * order. */
void zrevrangebyscoreCommand(ctx *c) { runQuery(c, BY_SCORE, GO_BACK); }

/* ZRANGEBYLEX key min max [LIMIT offset count]. Reply: members. */
void zrangebylexCommand(ctx *c) { runQuery(c, BY_LEX, GO_FORWARD); }

/* ZREVRANGEBYLEX key max min [LIMIT offset count]. Reply: members in descending order. */
void zrevrangebylexCommand(ctx *c) { runQuery(c, BY_LEX, GO_BACK); }

/* ------------------------------------------------------------------ storing */

/* A new object with the selected members. In Valkey only a range of ranks is sized in advance: the
 * others begin packed, where a score of -0 becomes 0, also when they outgrow that encoding
 * later. */
static robj *copyRange(const ctx *c, const query *q, const robj *o, zsetRange r) {
    hotCheck(!o || objectType(o) == TYPE_ZSET);
    if (r.count == 0) return NULL;
    packLimits most = zsetLimitsNow();
    zsetBuilder into;
    zsetBuilderInit(&into);
    zsetCursor cursor;
    zsetPair pair;
    bool packed = q->by != BY_RANK;
    zsetSeek(&cursor, o, r.index, q->direction == GO_BACK);
    for (uint64_t i = 0; i < r.count && zsetNext(&cursor, &pair); i++) {
        packed = packed && i < most.entries && pair.member.len <= most.bytes;
        if (packed && pair.score == 0) pair.score = 0;
        zsetBuilderAppend(&into, &pair);
        if (jobPoint(c, 1)) break;
    }
    return zsetBuilderTake(&into, c->argv[1], &most);
}

/* ZRANGESTORE destination key start stop [BYSCORE|BYLEX] [REV] [LIMIT offset count]. Reply: number
 * of members. */
void zrangestoreCommand(ctx *c) {
    query q = {.stores = true};
    robj *o;
    if (!parseQuery(c, &q, 3)) return;
    if (!collectionFindRead(c, 2, TYPE_ZSET, &o)) return;
    zsetRange r = {0, 0};
    if (o) r = findMembers(&q, o);
    if (jobStartStore(c, r.count)) return;
    collectionStore(c, 1, copyRange(c, &q, o, r), &eventZrangestore);
}

/* ------------------------------------------------------------------ counting, removing */

static void countRange(ctx *c, const zsetBound *min, const zsetBound *max) {
    robj *o;
    if (!collectionFindRead(c, 1, TYPE_ZSET, &o)) return;
    replyInteger(c, o ? (int64_t)zsetFindRange(o, min, max).count : 0);
}

/* ZCOUNT key min max. Reply: number of members with a score in the range. */
void zcountCommand(ctx *c) {
    zsetBound min, max;
    if (zsetArgScoreBounds(c, 2, 3, &min, &max)) countRange(c, &min, &max);
}

/* ZLEXCOUNT key min max. Reply: number of members in the range. */
void zlexcountCommand(ctx *c) {
    zsetBound min, max;
    if (zsetArgLexBounds(c, 2, 3, &min, &max)) countRange(c, &min, &max);
}

static void removeRange(ctx *c, const zsetBound *min, const zsetBound *max, const keyEvent *event) {
    robj *o;
    if (!collectionFindWrite(c, 1, TYPE_ZSET, &o)) return;
    zsetRange r = {0, 0};
    if (o) r = zsetFindRange(o, min, max);
    if (o && r.count < zsetLength(o) && jobStartChangeFound(c, r.count)) return;
    if (r.count > 0) zsetDeleteRange(c, 1, o, &r, event);
    replyInteger(c, (int64_t)r.count);
}

/* ZREMRANGEBYSCORE key min max. Reply: number of members removed. */
void zremrangebyscoreCommand(ctx *c) {
    zsetBound min, max;
    if (zsetArgScoreBounds(c, 2, 3, &min, &max)) removeRange(c, &min, &max, &eventZremrangebyscore);
}

/* ZREMRANGEBYLEX key min max. Reply: number of members removed. */
void zremrangebylexCommand(ctx *c) {
    zsetBound min, max;
    if (zsetArgLexBounds(c, 2, 3, &min, &max)) removeRange(c, &min, &max, &eventZremrangebylex);
}

/* ZREMRANGEBYRANK key start stop. Reply: number of members removed. */
void zremrangebyrankCommand(ctx *c) {
    int64_t start, stop;
    robj *o;
    if (!ctxArgInt(c, 2, &start) || !ctxArgInt(c, 3, &stop)) return;
    if (!collectionFindWrite(c, 1, TYPE_ZSET, &o)) return;
    zsetRange r = {0, 0};
    if (o) r = rangeOfRanks(start, stop, zsetLength(o));
    if (o && r.count < zsetLength(o) && jobStartChangeFound(c, r.count)) return;
    if (r.count > 0) zsetDeleteRange(c, 1, o, &r, &eventZremrangebyrank);
    replyInteger(c, (int64_t)r.count);
}
