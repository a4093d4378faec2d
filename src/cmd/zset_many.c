/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Union, intersection and difference of sorted sets and sets: replied, counted or stored. Main
 * thread only. */
#include <math.h>
#include <stdlib.h>

#include "base/base.h"
#include "base/fiber.h"
#include "base/number.h"
#include "cmd/collection.h"
#include "cmd/key_walk.h"
#include "cmd/procs.h"
#include "cmd/zset_priv.h"
#include "engine/job.h"
#include "store/type_set.h"

/* ------------------------------------------------------------------ sources */

/* One source: a sorted set, or a set whose members all have score 1. */
typedef struct source {
    const robj *o; /* NULL for missing keys */
    double weight;
} source;

static bool isSet(const robj *o) { return objectType(o) == TYPE_SET; }

static size_t sourceLength(const source *s) {
    if (!s->o) return 0;
    return isSet(s->o) ? setLength(s->o) : zsetLength(s->o);
}

/* Looks up the members of `count` pairs, at most ZSET_MANY: the same result as that of
 * zsetScoreMany(). */
static uint32_t sourceScores(const source *s, const zsetPair *pairs, unsigned count,
                             double *scores) {
    if (!s->o) return 0;
    if (!isSet(s->o)) return zsetScoreMany(s->o, pairs, count, scores);
    listpackItem items[ZSET_MANY] = {{0}};
    for (unsigned i = 0; i < count; i++) {
        items[i] = listpackItemOf(pairs[i].member);
        scores[i] = 1;
    }
    return setHasMany(s->o, items, count);
}

/* Iterates over the members of a source. */
typedef struct sourceIterator {
    const source *from;
    setIterator set;
    zsetCursor zset;
    char digits[NUMBER_TEXT_MAX];
} sourceIterator;

static void sourceBegin(sourceIterator *it, const source *from) {
    it->from = from;
    if (!sourceLength(from)) return;
    if (isSet(from->o)) {
        setIteratorInit(&it->set, from->o);
    } else {
        zsetSeek(&it->zset, from->o, 0, false);
    }
}

static bool sourceNext(sourceIterator *it, zsetPair *out) {
    if (!sourceLength(it->from)) return false;
    if (!isSet(it->from->o)) return zsetNext(&it->zset, out);
    listpackItem member;
    if (!setNext(&it->set, &member)) return false;
    *out = (zsetPair){listpackText(&member, it->digits), 1};
    return true;
}

/* Like zsetNextMany(). */
static unsigned sourceNextMany(sourceIterator *it, zsetPair *out) {
    if (!sourceLength(it->from)) return 0;
    return isSet(it->from->o) ? sourceNext(it, out) : zsetNextMany(&it->zset, out, ZSET_MANY);
}

static void sourceEnd(sourceIterator *it) {
    if (sourceLength(it->from) && isSet(it->from->o)) setIteratorClear(&it->set);
}

/* ------------------------------------------------------------------ requests */

typedef enum setOperation { OPERATION_UNION, OPERATION_INTER, OPERATION_DIFF } setOperation;
/* AGGREGATE_COUNT adds up the weights of the sources that have the member. */
typedef enum aggregation {
    AGGREGATE_SUM,
    AGGREGATE_MIN,
    AGGREGATE_MAX,
    AGGREGATE_COUNT,
} aggregation;

enum { PROPAGATED_MAX = 512 }; /* pairs of one propagated ZADD */

typedef struct job {
    setOperation operation;
    bool stores, counts; /* ...STORE commands; ZINTERCARD */
    source *sources;
    size_t count;
    aggregation aggregate;
    bool scores;
    int64_t limit; /* 0: no limit */
} job;

static bool syntaxError(ctx *c) {
    replyError(c, ERR_SYNTAX_TEXT);
    return false;
}

/* Looks up the values of the keys. False: the error was replied. */
static bool findSources(ctx *c, job *j, int first) {
    keyWalk w;
    keyWalkInit(&w, c, first, first + (int)j->count, 1);
    for (size_t i = 0; keyWalkNext(&w); i++) {
        const robj *o = collectionFindAny(c, w.key, w.hash);
        if (o && objectType(o) != TYPE_ZSET && !isSet(o)) {
            replyError(c, ERR_WRONG_TYPE_TEXT);
            return false;
        }
        j->sources[i] = (source){o, 1};
    }
    return true;
}

static bool parseWeights(ctx *c, job *j, int arg_index) {
    hotCheck(arg_index > 0);
    hotCheck(arg_index <= c->argc);
    for (size_t i = 0; i < j->count; i++) {
        if (numberParseDouble(c->argv[arg_index + (int)i], &j->sources[i].weight)) continue;
        replyError(c, SLICE("ERR weight value is not a float"));
        return false;
    }
    return true;
}

static bool parseAggregate(ctx *c, job *j, int arg_index) {
    hotCheck(arg_index > 0);
    hotCheck(arg_index <= c->argc);
    static const char *const names[] = {"sum", "min", "max", "count"};
    for (size_t i = 0; i < COUNT_OF(names); i++) {
        if (!ctxArgIs(c, arg_index, names[i])) continue;
        if (i == AGGREGATE_COUNT && !ctxHasExtensions(c)) continue;
        j->aggregate = (aggregation)i;
        return true;
    }
    return syntaxError(c);
}

/* Parses the options from argument `arg_index` on. False: the error was replied. */
static bool parseOptions(ctx *c, job *j, int arg_index) {
    hotCheck(arg_index > 0);
    hotCheck(arg_index <= c->argc);
    bool combines = j->operation != OPERATION_DIFF && !j->counts;
    while (arg_index < c->argc) {
        int left = c->argc - arg_index;
        if (combines && (size_t)left >= j->count + 1 && ctxArgIs(c, arg_index, "weights")) {
            if (!parseWeights(c, j, arg_index + 1)) return false;
            arg_index += 1 + (int)j->count;
        } else if (combines && left >= 2 && ctxArgIs(c, arg_index, "aggregate")) {
            if (!parseAggregate(c, j, arg_index + 1)) return false;
            arg_index += 2;
        } else if (!j->stores && !j->counts && ctxArgIs(c, arg_index, "withscores")) {
            j->scores = true;
            arg_index++;
        } else if (j->counts && left >= 2 && ctxArgIs(c, arg_index, "limit")) {
            if (!ctxArgIntIn(c, arg_index + 1, 0, INT64_MAX, &j->limit,
                             "ERR LIMIT can't be negative"))
                return false;
            arg_index += 2;
        } else {
            return syntaxError(c);
        }
    }
    return true;
}

/* Parses the request from numkeys at `arg_index` on. False: the error was replied; else the caller
 * frees j->sources. */
static bool parseJob(ctx *c, job *j, int arg_index) {
    hotCheck(arg_index > 0);
    hotCheck(arg_index <= c->argc);
    int64_t keys;
    if (!ctxArgInt(c, arg_index, &keys)) return false;
    if (keys < 1) {
        replyErrorFormat(c, "ERR at least 1 input key is needed for '%.*s' command",
                         (int)c->cmd->name.len, c->cmd->name.ptr);
        return false;
    }
    if (keys > c->argc - arg_index - 1) return syntaxError(c);
    j->count = (size_t)keys;
    j->sources = memNewArray(source, j->count);
    if (findSources(c, j, arg_index + 1) && parseOptions(c, j, arg_index + 1 + (int)keys))
        return true;
    memFree(j->sources);
    return false;
}

/* ------------------------------------------------------------------ computing */

static double weigh(const job *j, const source *s, double score) {
    return j->aggregate == AGGREGATE_COUNT ? s->weight : s->weight * score;
}

static double weightedScore(const job *j, const source *s, double score) {
    double weighed = weigh(j, s, score);
    return isnan(weighed) ? 0 : weighed;
}

/* Aggregates two scores. `b` may be NaN in an intersection: MIN and MAX ignore it, a sum
 * becomes 0. */
static double combine(aggregation how, double a, double b) {
    switch (how) {
    case AGGREGATE_MIN: return b < a ? b : a;
    case AGGREGATE_MAX: return b > a ? b : a;
    default: break;
    }
    double sum = a + b;
    return isnan(sum) ? 0 : sum; /* also for opposite infinities */
}

static void unite(const job *j, zsetBuilder *into) {
    zsetBuilderReserve(into, sourceLength(&j->sources[j->count - 1])); /* the longest */
    for (size_t i = 0; i < j->count; i++) {
        const source *s = &j->sources[i];
        sourceIterator it;
        zsetPair pair;
        sourceBegin(&it, s);
        while (sourceNext(&it, &pair) && !fiberPoint(1)) {
            bool created;
            void *arg_index = zsetBuilderAt(into, pair.member, &created);
            double score = weightedScore(j, s, pair.score);
            if (!created) score = combine(j->aggregate, zsetBuilderRead(arg_index), score);
            zsetBuilderWrite(arg_index, score);
        }
        sourceEnd(&it);
    }
}

/* Receives a member of all sources; returns false to stop. */
typedef bool commonProc(void *arg, const zsetPair *pair);

/* Keeps the pairs whose members are in `s`, with combined scores. Returns their number. */
static unsigned keepCommon(const job *j, const source *s, zsetPair *pairs, unsigned count) {
    double scores[ZSET_MANY];
    uint32_t found = sourceScores(s, pairs, count, scores);
    unsigned kept = 0;
    for (unsigned k = 0; k < count; k++) {
        if (!(found >> k & 1)) continue;
        double score = combine(j->aggregate, pairs[k].score, weigh(j, s, scores[k]));
        pairs[kept++] = (zsetPair){pairs[k].member, score};
    }
    return kept;
}

/* Visits the members contained in all sources. The sources are sorted by length. */
static void visitCommon(const job *j, commonProc *visit, void *arg) {
    sourceIterator it;
    zsetPair pairs[ZSET_MANY];
    unsigned n;
    bool more = true;
    sourceBegin(&it, &j->sources[0]);
    while (more && (n = sourceNextMany(&it, pairs)) && !fiberPoint(n)) {
        for (unsigned k = 0; k < n; k++)
            pairs[k].score = weightedScore(j, &j->sources[0], pairs[k].score);
        for (size_t i = 1; i < j->count && n > 0; i++) n = keepCommon(j, &j->sources[i], pairs, n);
        for (unsigned k = 0; k < n && more; k++) more = visit(arg, &pairs[k]);
    }
    sourceEnd(&it);
}

static bool addCommon(void *arg, const zsetPair *pair) {
    zsetBuilderAppend(arg, pair);
    return true;
}

/* Keeps the pairs whose members are not in `s`. Returns their number. */
static unsigned keepOthers(const source *s, zsetPair *pairs, unsigned count) {
    double scores[ZSET_MANY];
    uint32_t found = sourceScores(s, pairs, count, scores);
    unsigned kept = 0;
    for (unsigned k = 0; k < count; k++) {
        if (!(found >> k & 1)) pairs[kept++] = pairs[k];
    }
    return kept;
}

/* Members of the first source contained in no other, by looking up each in all others. */
static void subtractFound(const job *j, zsetBuilder *into) {
    sourceIterator it;
    zsetPair pairs[ZSET_MANY];
    unsigned n;
    sourceBegin(&it, &j->sources[0]);
    while ((n = sourceNextMany(&it, pairs)) && !fiberPoint(n)) {
        for (size_t i = 1; i < j->count && n > 0; i++) n = keepOthers(&j->sources[i], pairs, n);
        for (unsigned k = 0; k < n; k++) zsetBuilderAppend(into, &pairs[k]);
    }
    sourceEnd(&it);
}

/* Members of the first source contained in no other. If the others are small, their members are
 * removed from a copy of the first one. */
static void subtract(const job *j, zsetBuilder *into) {
    const source *first = &j->sources[0];
    size_t length = sourceLength(first), others = 0;
    for (size_t i = 1; i < j->count; i++) {
        if (j->sources[i].o == first->o) return;
        others += sourceLength(&j->sources[i]);
    }
    if (others >= length) {
        subtractFound(j, into);
        return;
    }
    sourceIterator it;
    zsetPair pair;
    bool created;
    zsetBuilderReserve(into, length);
    sourceBegin(&it, first);
    while (sourceNext(&it, &pair) && !fiberPoint(1))
        zsetBuilderWrite(zsetBuilderAt(into, pair.member, &created), pair.score);
    sourceEnd(&it);
    for (size_t i = 1; i < j->count; i++) {
        sourceBegin(&it, &j->sources[i]);
        while (sourceNext(&it, &pair) && !fiberPoint(1)) zsetBuilderRemove(into, pair.member);
        sourceEnd(&it);
    }
}

static int compareLengths(const void *a, const void *b) {
    size_t first = sourceLength(a), second = sourceLength(b);
    return (first > second) - (first < second);
}

static void compute(job *j, zsetBuilder *into) {
    /* Smallest first, which is also the order of adding up the scores. */
    if (j->operation != OPERATION_DIFF)
        qsort(j->sources, j->count, sizeof(*j->sources), compareLengths);
    switch (j->operation) {
    case OPERATION_UNION: unite(j, into); break;
    case OPERATION_INTER: visitCommon(j, addCommon, into); break;
    case OPERATION_DIFF: subtract(j, into); break;
    }
}

/* ------------------------------------------------------------------ commands */

typedef struct pairReply {
    ctx *c;
    bool scores;
} pairReply;

static void replyBuilt(void *arg, const zsetPair *pair) {
    const pairReply *r = arg;
    zsetReplyPair(r->c, pair, r->scores, true);
}

/* How many members the command visits, about. */
static uint64_t workOf(const job *j) {
    uint64_t sum = 0, least = UINT64_MAX;
    for (size_t i = 0; i < j->count; i++) {
        uint64_t length = sourceLength(&j->sources[i]);
        sum += length;
        if (length < least) least = length;
    }
    return j->operation == OPERATION_INTER ? least * j->count : sum;
}

/* Makes the command a job in slices if it has much to do: then the sources are freed. */
static bool runsInSlices(ctx *c, job *j) {
    uint64_t work = workOf(j);
    if (!(j->stores ? jobStartStore(c, work) : jobStart(c, work))) return false;
    memFree(j->sources);
    return true;
}

static void replyJob(ctx *c, setOperation operation) {
    job j = {.operation = operation};
    if (!parseJob(c, &j, 1) || runsInSlices(c, &j)) return;
    zsetBuilder built;
    zsetBuilderInit(&built);
    compute(&j, &built);
    pairReply r = {c, j.scores};
    zsetReplyHead(c, zsetBuilderCount(&built), j.scores, true);
    zsetBuilderVisit(&built, replyBuilt, &r);
    zsetBuilderClear(&built);
    memFree(j.sources);
}

/* Scores and members to propagate, as the words of a ZADD. */
typedef struct pairWords {
    ctx *c;
    int count;
    slice words[2 + 2 * PROPAGATED_MAX];
    char scores[PROPAGATED_MAX][NUMBER_TEXT_MAX];
} pairWords;

static void propagatePairs(pairWords *p) {
    if (p->count > 2) ctxPropagateAs(p->c, p->count, p->words);
    p->count = 2;
}

static void addPair(void *arg, const zsetPair *pair) {
    pairWords *p = arg;
    char *text = p->scores[(p->count - 2) / 2];
    p->words[p->count++] = sliceMake(text, numberPrintDouble(text, pair->score));
    p->words[p->count++] = pair->member;
    if (p->count == (int)COUNT_OF(p->words)) propagatePairs(p);
}

/* Propagates the result as DEL and ZADD, for servers that do not know AGGREGATE COUNT. */
static void propagateBuilt(ctx *c, zsetBuilder *built) {
    const robj *old = dbFind(c->db, c->argv[1], collectionHash(c, 1), c->look, &c->at);
    if (!engineHot.sinks || (!old && !zsetBuilderCount(built))) return;
    slice words[2] = {SLICE("DEL"), c->argv[1]};
    ctxPropagateAs(c, 2, words);
    pairWords *p = memNew(pairWords);
    p->c = c;
    p->words[0] = SLICE("ZADD");
    p->words[1] = c->argv[1];
    p->count = 2;
    zsetBuilderVisit(built, addPair, p);
    propagatePairs(p);
    memFree(p);
}

static void storeJob(ctx *c, setOperation operation, const keyEvent *event) {
    job j = {.operation = operation, .stores = true};
    if (!parseJob(c, &j, 2) || runsInSlices(c, &j)) return;
    zsetBuilder built;
    zsetBuilderInit(&built);
    compute(&j, &built);
    memFree(j.sources);
    if (jobPoint(c, 0)) {
        zsetBuilderClear(&built);
        return;
    }
    if (unlikely(j.aggregate == AGGREGATE_COUNT) && jobMayStore(c)) propagateBuilt(c, &built);
    packLimits most = zsetLimitsNow();
    collectionStore(c, 1, zsetBuilderTake(&built, c->argv[1], &most), event);
}

/* ZUNION numkeys key [key ...] [WEIGHTS weight ...] [AGGREGATE SUM|MIN|MAX|COUNT] [WITHSCORES].
 * Reply: members contained in any source. */
void zunionCommand(ctx *c) { replyJob(c, OPERATION_UNION); }

/* ZINTER numkeys key [key ...] [WEIGHTS weight ...] [AGGREGATE SUM|MIN|MAX|COUNT] [WITHSCORES].
 * Reply: members contained in all sources. */
void zinterCommand(ctx *c) { replyJob(c, OPERATION_INTER); }

/* ZDIFF numkeys key [key ...] [WITHSCORES]. Reply: members of the first source contained in no
 * other. */
void zdiffCommand(ctx *c) { replyJob(c, OPERATION_DIFF); }

/* ZUNIONSTORE destination numkeys key [key ...] [WEIGHTS weight ...] [AGGREGATE SUM|MIN|MAX|COUNT].
 * Reply: number of members. */
void zunionstoreCommand(ctx *c) { storeJob(c, OPERATION_UNION, &eventZunionstore); }

/* ZINTERSTORE destination numkeys key [key ...] [WEIGHTS weight ...] [AGGREGATE SUM|MIN|MAX|COUNT].
 * Reply: number of members. */
void zinterstoreCommand(ctx *c) { storeJob(c, OPERATION_INTER, &eventZinterstore); }

/* ZDIFFSTORE destination numkeys key [key ...]. Reply: number of members. */
void zdiffstoreCommand(ctx *c) { storeJob(c, OPERATION_DIFF, &eventZdiffstore); }

typedef struct counter {
    uint64_t count, limit;
} counter;

static bool countCommon(void *arg, const zsetPair *pair) {
    (void)pair; /* only counted */
    counter *n = arg;
    return ++n->count != n->limit;
}

/* ZINTERCARD numkeys key [key ...] [LIMIT limit]. Reply: number of members contained in all
 * sources, at most the limit. */
void zintercardCommand(ctx *c) {
    job j = {.operation = OPERATION_INTER, .counts = true};
    if (!parseJob(c, &j, 1) || runsInSlices(c, &j)) return;
    qsort(j.sources, j.count, sizeof(*j.sources), compareLengths);
    counter n = {.limit = (uint64_t)j.limit};
    visitCommon(&j, countCommon, &n);
    memFree(j.sources);
    replyInteger(c, (int64_t)n.count);
}
