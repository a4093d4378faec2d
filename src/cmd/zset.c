/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Sorted set commands on members. Ranges: zset_range.c; several sets: zset_many.c; popping:
 * zset_pop.c. Main thread only. */
#include <stdio.h>

#include "base/base.h"
#include "cmd/cmd_priv.h"
#include "cmd/collection.h"
#include "cmd/procs.h"
#include "cmd/scan.h"
#include "cmd/zset_priv.h"
#include "engine/job.h"

packLimits zsetLimitsNow(void) {
    return (packLimits){.entries = (size_t)cmdConf.zset_max_listpack_entries,
                        .bytes = (size_t)cmdConf.zset_max_listpack_value};
}

static bool findRead(ctx *c, robj **out) { return collectionFindRead(c, 1, TYPE_ZSET, out); }
static bool findWrite(ctx *c, robj **out) { return collectionFindWrite(c, 1, TYPE_ZSET, out); }

/* ------------------------------------------------------------------ adding */

void zsetAddingInit(zsetAdding *a) {
    a->scores = a->few;
    if (a->count > (int)COUNT_OF(a->few)) a->scores = memNewArray(double, (size_t)a->count);
}

void zsetAddingClear(zsetAdding *a) {
    if (a->scores != a->few) memFree(a->scores);
}

static size_t longestMember(const ctx *c, const zsetAdding *a) {
    size_t longest = 0;
    for (int i = 0; i < a->count; i++)
        longest = sizeMax(longest, c->argv[a->first + i * a->step].len);
    return longest;
}

/* INCR: replies the new score, or why there is none. */
static void replyIncremented(ctx *c, zsetAdded what, double score) {
    if (what == ZSET_NAN) {
        replyError(c, SLICE("ERR resulting score is not a number (NaN)"));
    } else if (what == ZSET_REFUSED) {
        replyNull(c);
    } else {
        replyDouble(c, score);
    }
}

void zsetAddAll(ctx *c, const zsetAdding *a) {
    robj *o;
    if (!findWrite(c, &o)) return;
    bool is_new = !o;
    if (!o && (a->flags & ZSET_XX)) {
        if (a->flags & ZSET_INCR) {
            replyNull(c);
        } else {
            replyInteger(c, 0);
        }
        return;
    }
    packLimits most = zsetLimitsNow();
    size_t count = (size_t)a->count, longest = longestMember(c, a);
    o = o ? zsetPrepare(o, count, longest, &most) : zsetNew(c->argv[1], count, longest, &most);
    int64_t added = 0, updated = 0;
    zsetAdded what = ZSET_REFUSED;
    zsetPair pair = {{NULL, 0}, 0};
    for (int i = 0; i < a->count; i++) {
        if (jobIsDue(c, 1) && !collectionSuspend(c, 1, &o, is_new)) return;
        pair = (zsetPair){c->argv[a->first + i * a->step], a->scores[i]};
        o = zsetAdd(o, &pair, a->flags, &most, &what);
        added += what == ZSET_ADDED;
        updated += what == ZSET_UPDATED;
    }
    collectionPlaceLast(c, 1, o, is_new);
    const keyEvent *event = a->flags & ZSET_INCR ? &eventZincr : &eventZadd;
    if (added + updated > 0) collectionChanged(c, c->argv[1], event, (uint64_t)(added + updated));
    if (a->flags & ZSET_INCR) {
        replyIncremented(c, what, pair.score);
    } else {
        replyInteger(c, a->count_changed ? added + updated : added);
    }
}

/* Parses the options from argument 2 on; returns the index after them. */
static int parseFlags(const ctx *c, zsetAdding *a) {
    static const struct {
        const char *word;
        unsigned flag;
    } words[] = {
        {"nx", ZSET_NX}, {"xx", ZSET_XX}, {"gt", ZSET_GT}, {"lt", ZSET_LT}, {"incr", ZSET_INCR}};
    int arg_index = 2;
    for (; arg_index < c->argc; arg_index++) {
        size_t i = 0;
        while (i < COUNT_OF(words) && !ctxArgIs(c, arg_index, words[i].word)) i++;
        if (i < COUNT_OF(words)) {
            a->flags |= words[i].flag;
        } else if (ctxArgIs(c, arg_index, "ch")) {
            a->count_changed = true;
        } else {
            break;
        }
    }
    return arg_index;
}

/* The error text for invalid options, NULL if they are valid. */
static const char *flagsError(unsigned f, int words) {
    if (words == 0 || words % 2) return "ERR syntax error";
    if ((f & ZSET_NX) && (f & ZSET_XX))
        return "ERR XX and NX options at the same time are not compatible";
    if (((f & ZSET_GT) && (f & (ZSET_NX | ZSET_LT))) || ((f & ZSET_LT) && (f & ZSET_NX)))
        return "ERR GT, LT, and/or NX options at the same time are not compatible";
    if ((f & ZSET_INCR) && words > 2)
        return "ERR INCR option supports a single increment-element pair";
    return NULL;
}

/* Parses the scores, which precede their members, and adds all. */
static void parseAndAdd(ctx *c, zsetAdding *a) {
    zsetAddingInit(a);
    int i = 0;
    while (i < a->count && ctxArgDouble(c, a->first + i * a->step - 1, &a->scores[i])) {
        i++;
        if (i < a->count && jobIsDue(c, 1) && !jobSuspend()) break;
    }
    if (i == a->count) zsetAddAll(c, a);
    zsetAddingClear(a);
}

/* ZADD key [NX|XX] [GT|LT] [CH] [INCR] score member [score member ...]. Reply: number of new
 * members, with CH of changed ones too; with INCR the new score or null. */
void zaddCommand(ctx *c) {
    hotCheck(c->argc >= 4);
    zsetAdding a = {.step = 2};
    int arg_index = parseFlags(c, &a), words = c->argc - arg_index;
    const char *wrong = flagsError(a.flags, words);
    if (wrong) {
        replyError(c, sliceOf(wrong));
        return;
    }
    a.first = arg_index + 1;
    a.count = words / 2;
    if (a.flags & ZSET_INCR || !jobStartChange(c, (uint64_t)a.count)) parseAndAdd(c, &a);
}

/* ZINCRBY key increment member. Reply: the new score. An option of ZADD in place of the increment
 * leaves no pair of increment and member, so it is a syntax error. */
void zincrbyCommand(ctx *c) {
    zsetAdding a = {.step = 2};
    if (parseFlags(c, &a) != 2) {
        replyError(c, ERR_SYNTAX_TEXT);
        return;
    }
    a.flags = ZSET_INCR;
    a.first = 3;
    a.count = 1;
    parseAndAdd(c, &a);
}

/* ------------------------------------------------------------------ removing */

void zsetDeleteRange(ctx *c, int arg_index, robj *o, const zsetRange *range,
                     const keyEvent *event) {
    hotCheck(arg_index > 0);
    hotCheck(arg_index <= c->argc);
    hotCheck(!o || objectType(o) == TYPE_ZSET);
    bool emptied = range->count == zsetLength(o);
    bool pops = event == &eventZpopmin || event == &eventZpopmax;
    if (pops || !emptied) { /* else all are freed with the value, in the background */
        for (uint64_t left = range->count, part; left > 0; left -= part) {
            part = jobPart(c, left);
            zsetRemoveRange(&o, &(zsetRange){range->index, part});
            bool waits = part < left && jobIsDue(c, (unsigned)part);
            if (waits && !collectionSuspend(c, arg_index, &o, false)) return;
        }
        collectionPlace(c, arg_index, o);
    }
    if (!pops) {
        collectionReduced(c, arg_index, event, range->count, emptied);
        return;
    }
    collectionChanged(c, c->argv[arg_index], event, range->count);
    if (emptied) collectionRemove(c, arg_index);
}

/* ZREM key member [member ...]. Reply: number of members removed. */
void zremCommand(ctx *c) {
    hotCheck(c->argc >= 3);
    robj *o;
    if (jobStartChange(c, (uint64_t)c->argc) || !findWrite(c, &o)) return;
    int64_t removed = 0;
    bool emptied = false;
    for (int i = 2; o && i < c->argc && !emptied; i++) {
        if (jobIsDue(c, 1) && !collectionSuspend(c, 1, &o, false)) return;
        if (!zsetRemove(&o, c->argv[i])) continue;
        removed++;
        emptied = zsetLength(o) == 0;
    }
    if (removed) {
        collectionPlace(c, 1, o);
        collectionReduced(c, 1, &eventZrem, (uint64_t)removed, emptied);
    }
    replyInteger(c, removed);
}

/* ------------------------------------------------------------------ queries */

/* ZCARD key. Reply: number of members. */
void zcardCommand(ctx *c) {
    robj *o;
    if (collectionFindToCount(c, 1, TYPE_ZSET, &o)) replyInteger(c, collectionCount(o, zsetLength));
}

static void replyScore(ctx *c, const robj *o, slice member) {
    hotCheck(!o || objectType(o) == TYPE_ZSET);
    double score;
    if (o && zsetScore(o, member, &score)) {
        replyDouble(c, score);
    } else {
        replyNull(c);
    }
}

/* ZSCORE key member. Reply: the score or null. */
void zscoreCommand(ctx *c) {
    hotCheck(c->argc == 3);
    robj *o;
    if (findRead(c, &o)) replyScore(c, o, c->argv[2]);
}

/* ZMSCORE key member [member ...]. Reply: the scores, null for missing members. */
void zmscoreCommand(ctx *c) {
    hotCheck(c->argc >= 3);
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

/* ZRANK key member [WITHSCORE]. Reply: number of members before it, or null. */
void zrankCommand(ctx *c) { replyRank(c, false); }

/* ZREVRANK key member [WITHSCORE]. Reply: number of members after it, or null. */
void zrevrankCommand(ctx *c) { replyRank(c, true); }

/* ------------------------------------------------------------------ ZRANDMEMBER, ZSCAN */

void zsetReplyPair(ctx *c, const zsetPair *pair, bool scores, bool nested) {
    if (scores && nested && c->proto > 2) replyArray(c, 2);
    replyBulk(c, pair->member);
    if (scores) replyDouble(c, pair->score);
}

void zsetReplyHead(ctx *c, uint64_t count, bool scores, bool nested) {
    bool flat = scores && !(nested && c->proto > 2);
    replyArray(c, (int64_t)(flat ? 2 * count : count));
}

typedef struct pairReply {
    ctx *c;
    bool scores, packed;
    scanOptions options; /* of ZSCAN */
    collectionScanned scanned;
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
    if (jobStart(c, wanted)) return;
    pairReply r = {.c = c, .scores = scores};
    if (o && count < -DRAWS_MANY) {
        outmark mark = outbufMark(c->out);
        zsetRandom(o, DRAWS_PROBED, false, replyPicked, &r);
        if (!collectionDrawsFit(c, mark, wanted)) return;
    }
    zsetReplyHead(c, wanted, scores, true);
    if (wanted) zsetRandom(o, wanted, count > 0, replyPicked, &r);
}

/* ZRANDMEMBER key [count [WITHSCORES]]. Reply: a member or null; with a count, that many distinct
 * members, or if it is negative, that many draws with repetition. */
void zrandmemberCommand(ctx *c) {
    hotCheck(c->argc >= 2);
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

/* As in Valkey, scores of skiplist-encoded sets are printed with all digits here. */
static size_t printScanned(const pairReply *r, char *digits, double score) {
    if (r->packed) return numberPrintDouble(digits, score);
    return (size_t)snprintf(digits, NUMBER_TEXT_MAX, "%.17g", score);
}

static void replyScanned(void *arg, const zsetPair *pair) {
    pairReply *r = arg;
    r->scanned.visited++;
    if (!scanMatches(&r->options, pair->member)) return;
    char digits[NUMBER_TEXT_MAX];
    replyBulk(r->c, pair->member);
    if (r->scores) replyBulk(r->c, sliceMake(digits, printScanned(r, digits, pair->score)));
    r->scanned.replied += r->scores ? 2 : 1;
}

static uint64_t scanSome(ctx *c, const robj *o, uint64_t cursor, void *arg) {
    hotCheck(!o || objectType(o) == TYPE_ZSET);
    (void)c; /* the visitor has it */
    return zsetScan(o, cursor, replyScanned, arg);
}

/* ZSCAN key cursor [MATCH pattern] [COUNT count] [NOSCORES]. Reply: the next cursor and an array of
 * members. */
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
    r.packed = objectIsPacked(o);
    collectionReplyScan(c, o, cursor, r.options.count, scanSome, &r, &r.scanned);
}
