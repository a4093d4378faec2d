/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Sorted set commands on members: adding, removing, asking. Ranges: zset_range.c; several at once: zset_many.c,
 * zset_pop.c. Main thread only. */
#include "base/base.h"
#include "cmd/cmd_priv.h"
#include "cmd/collection.h"
#include "cmd/procs.h"
#include "cmd/scan.h"
#include "cmd/zset_priv.h"

packLimits zsetLimitsNow(void) {
    return (packLimits){.entries = (size_t)cmdConf.zset_max_listpack_entries,
                        .bytes = (size_t)cmdConf.zset_max_listpack_value};
}

static bool findRead(ctx *c, robj **out) { return collectionFindRead(c, 1, TYPE_ZSET, out); }
static bool findWrite(ctx *c, robj **out) { return collectionFindWrite(c, 1, TYPE_ZSET, out); }

/* ------------------------------------------------------------------ adding */

typedef struct adder {
    unsigned flags; /* of enum zsetAddFlag */
    bool count_changed;
    int first; /* argument of the first score */
    int pairs;
    double few[8];
    double *scores; /* `few`, or a block */
} adder;

/* Reads the options from argument 2 on. */
static void parseFlags(const ctx *c, adder *a) {
    static const struct {
        const char *word;
        unsigned flag;
    } words[] = {
        {"nx", ZSET_NX}, {"xx", ZSET_XX}, {"gt", ZSET_GT}, {"lt", ZSET_LT}, {"incr", ZSET_INCR}};
    for (a->first = 2; a->first < c->argc; a->first++) {
        size_t i = 0;
        while (i < COUNT_OF(words) && !ctxArgIs(c, a->first, words[i].word)) i++;
        if (i < COUNT_OF(words)) {
            a->flags |= words[i].flag;
        } else if (ctxArgIs(c, a->first, "ch")) {
            a->count_changed = true;
        } else {
            return;
        }
    }
}

/* What is wrong with the options, NULL when nothing is. */
static const char *judgeFlags(const adder *a, int words) {
    unsigned f = a->flags;
    if (words == 0 || words % 2) return "ERR syntax error";
    if ((f & ZSET_NX) && (f & ZSET_XX))
        return "ERR XX and NX options at the same time are not compatible";
    if (((f & ZSET_GT) && (f & (ZSET_NX | ZSET_LT))) || ((f & ZSET_LT) && (f & ZSET_NX)))
        return "ERR GT, LT, and/or NX options at the same time are not compatible";
    if ((f & ZSET_INCR) && words > 2)
        return "ERR INCR option supports a single increment-element pair";
    return NULL;
}

/* Reads the scores. False: the error was replied. */
static bool parseScores(ctx *c, adder *a) {
    a->scores = a->few;
    if (a->pairs > (int)COUNT_OF(a->few)) a->scores = memNewArray(double, (size_t)a->pairs);
    for (int i = 0; i < a->pairs; i++) {
        if (ctxArgDouble(c, a->first + 2 * i, &a->scores[i])) continue;
        if (a->scores != a->few) memFree(a->scores);
        return false;
    }
    return true;
}

static size_t longestMember(const ctx *c, const adder *a) {
    size_t longest = 0;
    for (int i = a->first + 1; i < c->argc; i += 2) longest = sizeMax(longest, c->argv[i].len);
    return longest;
}

/* INCR: the new score, or why there is none. */
static void replyIncremented(ctx *c, zsetAdded what, double score) {
    if (what == ZSET_NAN) {
        replyError(c, SLICE("ERR resulting score is not a number (NaN)"));
    } else if (what == ZSET_REFUSED) {
        replyNull(c);
    } else {
        replyDouble(c, score);
    }
}

static void addAll(ctx *c, const adder *a) {
    robj *o;
    if (!findWrite(c, &o)) return;
    if (!o && (a->flags & ZSET_XX)) {
        if (a->flags & ZSET_INCR) {
            replyNull(c);
        } else {
            replyInteger(c, 0);
        }
        return;
    }
    packLimits most = zsetLimitsNow();
    size_t pairs = (size_t)a->pairs, longest = longestMember(c, a);
    o = o ? zsetPrepare(o, pairs, longest, &most) : zsetNew(c->argv[1], pairs, longest, &most);
    int64_t added = 0, updated = 0;
    zsetAdded what = ZSET_REFUSED;
    zsetPair pair = {{NULL, 0}, 0};
    for (int i = 0; i < a->pairs; i++) {
        pair = (zsetPair){c->argv[a->first + 2 * i + 1], a->scores[i]};
        o = zsetAdd(o, &pair, a->flags, &most, &what);
        added += what == ZSET_ADDED;
        updated += what == ZSET_UPDATED;
    }
    collectionPlace(c, 1, o);
    const char *event = a->flags & ZSET_INCR ? "zincr" : "zadd";
    if (added + updated > 0) collectionChanged(c, c->argv[1], event, (uint64_t)(added + updated));
    if (a->flags & ZSET_INCR) {
        replyIncremented(c, what, pair.score);
    } else {
        replyInteger(c, a->count_changed ? added + updated : added);
    }
}

/* ZADD key [NX|XX] [GT|LT] [CH] [INCR] score member [score member ...]. Reply: how many are new, with CH how many
 * changed, with INCR the new score or null. */
void zaddCommand(ctx *c) {
    adder a = {0};
    parseFlags(c, &a);
    int words = c->argc - a.first;
    const char *wrong = judgeFlags(&a, words);
    if (wrong) {
        replyError(c, sliceOf(wrong));
        return;
    }
    a.pairs = words / 2;
    if (!parseScores(c, &a)) return;
    addAll(c, &a);
    if (a.scores != a.few) memFree(a.scores);
}

/* ZINCRBY key increment member. Reply: the new score. */
void zincrbyCommand(ctx *c) {
    adder a = {.flags = ZSET_INCR, .first = 2, .pairs = 1};
    if (parseScores(c, &a)) addAll(c, &a);
}

/* ------------------------------------------------------------------ removing */

void zsetDropRange(ctx *c, int place, robj *o, const zsetRange *range, const char *event) {
    bool emptied = range->count == zsetLength(o);
    zsetRemoveRange(&o, range);
    collectionPlace(c, place, o);
    collectionChanged(c, c->argv[place], event, range->count);
    if (emptied) collectionRemove(c, place);
}

/* ZREM key member [member ...]. Reply: how many there were. */
void zremCommand(ctx *c) {
    robj *o;
    if (!findWrite(c, &o)) return;
    int64_t removed = 0;
    bool emptied = false;
    for (int i = 2; o && i < c->argc && !emptied; i++) {
        if (!zsetRemove(&o, c->argv[i])) continue;
        removed++;
        emptied = zsetLength(o) == 0;
    }
    if (removed) {
        collectionPlace(c, 1, o);
        collectionChanged(c, c->argv[1], "zrem", (uint64_t)removed);
        if (emptied) collectionRemove(c, 1);
    }
    replyInteger(c, removed);
}

/* ------------------------------------------------------------------ asking */

/* ZCARD key. Reply: number of members. */
void zcardCommand(ctx *c) {
    robj *o;
    if (findRead(c, &o)) replyInteger(c, o ? (int64_t)zsetLength(o) : 0);
}

static void replyScore(ctx *c, const robj *o, slice member) {
    double score;
    if (o && zsetScore(o, member, &score)) {
        replyDouble(c, score);
    } else {
        replyNull(c);
    }
}

/* ZSCORE key member. Reply: the score or null. */
void zscoreCommand(ctx *c) {
    robj *o;
    if (findRead(c, &o)) replyScore(c, o, c->argv[2]);
}

/* ZMSCORE key member [member ...]. Reply: the scores, null for who is missing. */
void zmscoreCommand(ctx *c) {
    robj *o;
    if (!findRead(c, &o)) return;
    replyArray(c, c->argc - 2);
    for (int i = 2; i < c->argc; i++) replyScore(c, o, c->argv[i]);
}

static void replyRank(ctx *c, bool reverse) {
    if (c->argc > 4) {
        replyErrorArity(c);
        return;
    }
    bool scores = c->argc > 3;
    if (scores && !ctxArgIs(c, 3, "withscore")) {
        replyError(c, ERR_SYNTAX_TEXT);
        return;
    }
    robj *o;
    uint64_t rank;
    double score;
    if (!findRead(c, &o)) return;
    if (!o || !zsetRank(o, c->argv[2], &rank, &score)) {
        if (scores) {
            replyNullArray(c);
        } else {
            replyNull(c);
        }
        return;
    }
    if (reverse) rank = zsetLength(o) - 1 - rank;
    if (scores) replyArray(c, 2);
    replyInteger(c, (int64_t)rank);
    if (scores) replyDouble(c, score);
}

/* ZRANK key member [WITHSCORE]. Reply: how many members stand before it, or null. */
void zrankCommand(ctx *c) { replyRank(c, false); }

/* ZREVRANK key member [WITHSCORE]. Reply: how many members stand behind it, or null. */
void zrevrankCommand(ctx *c) { replyRank(c, true); }

/* ------------------------------------------------------------------ ZRANDMEMBER, ZSCAN */

void zsetReplyPair(ctx *c, const zsetPair *pair, bool scores, bool nested) {
    if (scores && nested && c->who->proto > 2) replyArray(c, 2);
    replyBulk(c, pair->member);
    if (scores) replyDouble(c, pair->score);
}

void zsetReplyHead(ctx *c, uint64_t count, bool scores, bool nested) {
    bool flat = scores && !(nested && c->who->proto > 2);
    replyArray(c, (int64_t)(flat ? 2 * count : count));
}

typedef struct pairReply {
    ctx *c;
    bool scores;
    scanOptions options; /* ZSCAN */
    int64_t found;
} pairReply;

static void replyPicked(void *arg, const zsetPair *pair) {
    const pairReply *r = arg;
    zsetReplyPair(r->c, pair, r->scores, true);
}

/* ZRANDMEMBER key count [WITHSCORES]. */
static void replyRandom(ctx *c, int64_t count, bool scores) {
    robj *o;
    if (!findRead(c, &o)) return;
    uint64_t wanted = o ? (uint64_t)(count < 0 ? -count : count) : 0;
    if (o && count > 0) wanted = sizeMin(wanted, zsetLength(o));
    pairReply r = {.c = c, .scores = scores};
    zsetReplyHead(c, wanted, scores, true);
    if (wanted) zsetRandom(o, wanted, count > 0, replyPicked, &r);
}

/* ZRANDMEMBER key [count [WITHSCORES]]. Reply: a member or null; with a count different ones, or when it is
 * negative so many draws. */
void zrandmemberCommand(ctx *c) {
    int64_t count;
    if (c->argc > 2) {
        if (!collectionArgCount(c, 2, &count)) return;
        bool scores = c->argc > 3;
        if (c->argc > 4 || (scores && !ctxArgIs(c, 3, "withscores"))) {
            replyError(c, ERR_SYNTAX_TEXT);
        } else if (scores && (count < -INT64_MAX / 2 || count > INT64_MAX / 2)) {
            replyError(c, SLICE("ERR value is out of range"));
        } else {
            replyRandom(c, count, scores);
        }
        return;
    }
    robj *o;
    if (!findRead(c, &o)) return;
    pairReply r = {.c = c};
    if (o) {
        zsetRandom(o, 1, false, replyPicked, &r);
    } else {
        replyNull(c);
    }
}

static void replyScanned(void *arg, const zsetPair *pair) {
    pairReply *r = arg;
    if (!scanMatches(&r->options, pair->member)) return;
    char digits[NUMBER_TEXT_MAX];
    replyBulk(r->c, pair->member);
    if (r->scores) replyBulk(r->c, sliceMake(digits, numberPrintDouble(digits, pair->score)));
    r->found += r->scores ? 2 : 1;
}

static uint64_t scanSome(ctx *c, const robj *o, uint64_t cursor, void *arg) {
    (void)c; /* the visitor has it */
    return zsetScan(o, cursor, replyScanned, arg);
}

/* ZSCAN key cursor [MATCH pattern] [COUNT count] [NOSCORES]. Reply: the next cursor and some members. */
void zscanCommand(ctx *c) {
    uint64_t cursor;
    robj *o;
    pairReply r = {.c = c};
    if (!scanParseCursor(c, 2, &cursor)) return;
    if (!findRead(c, &o)) return;
    if (!o) {
        replyLiteral(c, "*2\r\n$1\r\n0\r\n*0\r\n");
        return;
    }
    if (!scanParseOptions(c, 3, SCAN_ZSET, &r.options)) return;
    r.scores = !r.options.names_only;
    collectionReplyScan(c, o, cursor, r.options.count, scanSome, &r, &r.found);
}
