/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Functions of modules: keys with a sorted set. An iterator has the range of ranks that was
 * found at its start, and the current rank; the iteration ends earlier if elements are removed
 * meanwhile. */
#include <math.h>

#include "base/base.h"
#include "format/rdb_settings.h"
#include "module/generated/api.h"
#include "module/key.h"
#include "store/type_zset.h"

/* An iteration: the ranks [first, end), of which `at` is the current one. */
typedef struct zsetWalk {
    uint64_t first, end, at;
    bool ended;
} zsetWalk;

static robj *setOf(ValkeyModuleKey *k) {
    robj *o = k ? keyValue(k) : NULL;
    return o && objectType(o) == TYPE_ZSET ? o : NULL;
}

/* ------------------------------------------------------------------ members */

static int flagsOut(zsetAdded added) {
    switch (added) {
    case ZSET_ADDED: return VALKEYMODULE_ZADD_ADDED;
    case ZSET_UPDATED: return VALKEYMODULE_ZADD_UPDATED;
    default: return VALKEYMODULE_ZADD_NOP;
    }
}

/* True if these conditions can be met together. */
static bool flagsIn(int given, unsigned *out) {
    static const struct {
        int given;
        unsigned flag;
    } table[] = {{VALKEYMODULE_ZADD_XX, ZSET_XX},
                 {VALKEYMODULE_ZADD_NX, ZSET_NX},
                 {VALKEYMODULE_ZADD_GT, ZSET_GT},
                 {VALKEYMODULE_ZADD_LT, ZSET_LT}};
    for (size_t i = 0; i < COUNT_OF(table); i++) {
        if (given & table[i].given) *out |= table[i].flag;
    }
    unsigned exclusive = *out & (ZSET_NX | ZSET_GT | ZSET_LT);
    return !(exclusive & (exclusive - 1)) && !(*out & ZSET_NX && *out & ZSET_XX);
}

static int add(ValkeyModuleKey *k, zsetPair *pair, unsigned flags, int *flagsptr) {
    if (!keyIsWritable(k) || isnan(pair->score)) return VALKEYMODULE_ERR;
    if (flagsptr && !flagsIn(*flagsptr, &flags)) return VALKEYMODULE_ERR;
    robj *o = keyFind(k);
    if (!k->owner->run || (o && objectType(o) != TYPE_ZSET)) return VALKEYMODULE_ERR;
    if (!o && flags & ZSET_XX) {
        if (flagsptr) *flagsptr = VALKEYMODULE_ZADD_NOP;
        return VALKEYMODULE_OK;
    }
    const packLimits *limits = &rdbLimitsNow()->zset;
    size_t len = pair->member.len;
    o = o ? zsetPrepare(o, 1, len, limits) : zsetNew(keyName(k), 1, len, limits);
    zsetAdded added;
    keyPlace(k, zsetAdd(o, pair, flags, limits, &added));
    hotCheck(added != ZSET_REFUSED || flags);
    if (added == ZSET_NAN) return VALKEYMODULE_ERR;
    if (flagsptr) *flagsptr = flagsOut(added);
    return VALKEYMODULE_OK;
}

int apiZsetAdd(ValkeyModuleKey *key, double score, ValkeyModuleString *ele, int *flagsptr) {
    if (!ele) return VALKEYMODULE_ERR;
    zsetPair pair = {moduleStringSlice(ele), score};
    return add(key, &pair, 0, flagsptr);
}

int apiZsetIncrby(ValkeyModuleKey *key, double score, ValkeyModuleString *ele, int *flagsptr,
                  double *newscore) {
    if (!ele) return VALKEYMODULE_ERR;
    zsetPair pair = {moduleStringSlice(ele), score};
    int result = add(key, &pair, ZSET_INCR, flagsptr);
    if (result == VALKEYMODULE_OK && newscore) *newscore = pair.score;
    return result;
}

/* A member of this rank is removed: the iteration keeps its current element, or goes on with the
 * one after it. */
static void adjust(zsetWalk *walk, uint64_t rank) {
    hotCheck(walk->first <= walk->end);
    if (rank >= walk->end) return;
    walk->end--;
    if (rank < walk->first) walk->first--;
    if (rank < walk->at) walk->at--;
}

int apiZsetRem(ValkeyModuleKey *key, ValkeyModuleString *ele, int *deleted) {
    if (!keyIsWritable(key) || !ele) return VALKEYMODULE_ERR;
    robj *o = keyFind(key);
    if (!key->owner->run || (o && objectType(o) != TYPE_ZSET)) return VALKEYMODULE_ERR;
    uint64_t rank;
    double score;
    slice member = moduleStringSlice(ele);
    if (o && key->iterator && zsetRank(o, member, &rank, &score)) adjust(key->iterator, rank);
    bool found = o && zsetRemove(&o, member);
    if (found) {
        keyPlace(key, o);
        if (!zsetLength(o)) {
            zsetWalk *walk = key->iterator; /* it ends with the elements */
            key->iterator = NULL;
            keyDelete(key, false);
            key->iterator = walk;
        }
    }
    if (deleted) *deleted = found;
    return VALKEYMODULE_OK;
}

int apiZsetScore(ValkeyModuleKey *key, ValkeyModuleString *ele, double *score) {
    const robj *o = setOf(key);
    if (!o || !ele || !zsetScore(o, moduleStringSlice(ele), score)) return VALKEYMODULE_ERR;
    return VALKEYMODULE_OK;
}

/* ------------------------------------------------------------------ ranges */

static int begin(ValkeyModuleKey *k, const zsetBound *min, const zsetBound *max, bool last) {
    const robj *o = setOf(k);
    if (!o) return VALKEYMODULE_ERR;
    keyStopIterator(k);
    hotCheck(!k->iterator);
    zsetRange range = zsetFindRange(o, min, max);
    zsetWalk *walk = memNew(zsetWalk);
    walk->first = range.index;
    walk->end = range.index + range.count;
    walk->at = last && range.count ? walk->end - 1 : walk->first;
    walk->ended = range.count == 0;
    k->iterator = walk;
    k->iterator_free = memFree;
    return VALKEYMODULE_OK;
}

static int beginByScore(ValkeyModuleKey *k, double min, double max, int minex, int maxex,
                        bool last) {
    zsetBound low = {.by = ZSET_BY_SCORE, .excluded = minex != 0, .score = min};
    zsetBound high = {.by = ZSET_BY_SCORE, .excluded = maxex != 0, .score = max};
    return begin(k, &low, &high, last);
}

int apiZsetFirstInScoreRange(ValkeyModuleKey *key, double min, double max, int minex, int maxex) {
    return beginByScore(key, min, max, minex, maxex, false);
}

int apiZsetLastInScoreRange(ValkeyModuleKey *key, double min, double max, int minex, int maxex) {
    return beginByScore(key, min, max, minex, maxex, true);
}

/* `-`, `+`, `(text`, `[text`. */
static bool parseBound(slice text, zsetBound *out) {
    *out = (zsetBound){.by = ZSET_FIRST};
    if (sliceEqual(text, SLICE("-"))) return true;
    out->by = ZSET_LAST;
    if (sliceEqual(text, SLICE("+"))) return true;
    if (!text.len || (text.ptr[0] != '(' && text.ptr[0] != '[')) return false;
    out->by = ZSET_BY_LEX;
    out->excluded = text.ptr[0] == '(';
    out->text = sliceMake(text.ptr + 1, text.len - 1);
    return true;
}

static int beginByText(ValkeyModuleKey *k, ValkeyModuleString *min, ValkeyModuleString *max,
                       bool last) {
    zsetBound low, high;
    if (!min || !max || !parseBound(moduleStringSlice(min), &low) ||
        !parseBound(moduleStringSlice(max), &high))
        return VALKEYMODULE_ERR;
    return begin(k, &low, &high, last);
}

int apiZsetFirstInLexRange(ValkeyModuleKey *key, ValkeyModuleString *min, ValkeyModuleString *max) {
    return beginByText(key, min, max, false);
}

int apiZsetLastInLexRange(ValkeyModuleKey *key, ValkeyModuleString *min, ValkeyModuleString *max) {
    return beginByText(key, min, max, true);
}

/* ------------------------------------------------------------------ iterating */

/* The iteration, if it has a current element. */
static zsetWalk *current(ValkeyModuleKey *k, const robj **o) {
    *o = setOf(k);
    zsetWalk *walk = *o ? k->iterator : NULL;
    if (!walk || walk->ended) return NULL;
    uint64_t length = zsetLength(*o);
    if (walk->end > length) walk->end = length;
    hotCheck(walk->first <= walk->at);
    return walk->at < walk->end ? walk : NULL;
}

void apiZsetRangeStop(ValkeyModuleKey *key) {
    if (setOf(key)) keyStopIterator(key);
}

int apiZsetRangeEndReached(ValkeyModuleKey *key) {
    const robj *o;
    return !key || !current(key, &o);
}

ValkeyModuleString *apiZsetRangeCurrentElement(ValkeyModuleKey *key, double *score) {
    const robj *o;
    zsetWalk *walk = key ? current(key, &o) : NULL;
    if (!walk) return NULL;
    hotCheck(walk->at < zsetLength(o));
    zsetCursor cursor;
    zsetSeek(&cursor, o, walk->at, false);
    zsetPair pair;
    if (!zsetNext(&cursor, &pair)) return NULL;
    if (score) *score = pair.score;
    return apiCreateString(key->owner, pair.member.ptr, pair.member.len);
}

static int step(ValkeyModuleKey *k, bool up) {
    const robj *o;
    zsetWalk *walk = k ? current(k, &o) : NULL;
    if (!walk) return 0;
    hotCheck(walk->at >= walk->first);
    bool possible = up ? walk->at + 1 < walk->end : walk->at > walk->first;
    if (possible) {
        walk->at += up ? 1 : UINT64_MAX;
    } else {
        walk->ended = true;
    }
    return possible;
}

int apiZsetRangeNext(ValkeyModuleKey *key) { return step(key, true); }
int apiZsetRangePrev(ValkeyModuleKey *key) { return step(key, false); }
