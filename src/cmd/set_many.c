/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Intersection, union and difference of sets: replied, counted or stored. Lookups are batched so
 * that their cache misses overlap. Main thread only. */
#include <stdlib.h>

#include "base/base.h"
#include "cmd/collection.h"
#include "cmd/key_walk.h"
#include "cmd/procs.h"
#include "cmd/set_priv.h"
#include "ds/hyperloglog.h"
#include "engine/job.h"

enum {
    BATCH = 32,
    COLLECTED_MAX = 1024, /* members collected before the table of the result is allocated */
    LOOKED_UP_MAX = 8,    /* sets of a union that is counted without building it */
};

typedef struct sources {
    const robj **sets; /* NULL for missing keys */
    size_t count, missing;
} sources;

/* Looks up the sets at arguments [first, end). False: the error was replied, and nothing is
 * allocated. */
static bool findSources(ctx *c, int first, int end, sources *out) {
    hotCheck(first > 0);
    hotCheck(first <= end);
    hotCheck(end <= c->argc);
    *out = (sources){.sets = memNewArray(const robj *, (size_t)(end - first))};
    keyWalk w;
    keyWalkInit(&w, c, first, end, 1);
    while (keyWalkNext(&w)) {
        const robj *o = collectionFindAny(c, w.key, w.hash);
        if (o && objectType(o) != TYPE_SET) {
            replyError(c, ERR_WRONG_TYPE_TEXT);
            memFree(out->sets);
            return false;
        }
        out->missing += !o;
        out->sets[out->count++] = o;
    }
    return true;
}

/* How many members a command on the sets visits, about: `all` of them, or those of the smallest set
 * and as many lookups in each of the others. */
static uint64_t workOf(const sources *s, bool all) {
    uint64_t sum = 0, least = s->count ? UINT64_MAX : 0;
    for (size_t i = 0; i < s->count; i++) {
        uint64_t length = s->sets[i] ? setLength(s->sets[i]) : 0;
        sum += length;
        if (length < least) least = length;
    }
    return all ? sum : least * s->count;
}

/* Flags of runsAsJob(): the command visits each member; it stores its result. */
enum { VISITS_ALL = 1, STORES = 2 };

/* Makes the command a job if it has that much to do: then the sources are freed. An intersection
 * with a missing set visits nothing; its other sets may have gone since they were found, by modules
 * that were told of an expired one. */
static bool runsAsJob(ctx *c, sources *s, unsigned how) {
    bool all = how & VISITS_ALL;
    if (!all && s->missing) return false;
    uint64_t work = workOf(s, all);
    if (!(how & STORES ? jobStartStore(c, work) : jobStart(c, work))) return false;
    memFree(s->sets);
    return true;
}

/* Destination of the members: replied, collected in a set, or only counted. */
typedef struct result {
    ctx *c;
    robj *into; /* NULL if replied */
    setLimits limits;
    bool replies;
    uint64_t count, limit; /* stop at `limit`; 0: no limit */
    /* The first members are collected until the size of the result can be estimated, so that the
     * table need not grow. */
    listpackItem *collected; /* COLLECTED_MAX entries, or NULL */
    unsigned collected_count;
    uint64_t visited, all; /* members of the first set visited so far; its length */
} result;

/* True if a set of this many members is a hash table whatever its members are. */
static bool isLarge(size_t count, const setLimits *limits) {
    return count > limits->ints && count > limits->packed.entries;
}

/* Adds the collected members to the set. */
static void resultFlush(result *r) {
    bool added;
    if (!r->collected) return;
    if (isLarge(r->collected_count, &r->limits)) {
        double share = (double)r->collected_count / (double)r->visited;
        robj *large = setNewLarge(objectKey(r->into), (size_t)((double)r->all * share));
        objectFree(r->into);
        r->into = large;
    }
    for (unsigned i = 0; i < r->collected_count; i++)
        r->into = setAdd(r->into, &r->collected[i], &r->limits, &added);
    memFree(r->collected);
    r->collected = NULL;
}

/* False if the limit was reached. */
static bool resultAdd(result *r, const listpackItem *member) {
    hotCheck(!r->collected || r->collected_count <= r->count);
    bool added;
    r->count++;
    if (r->collected) {
        r->collected[r->collected_count++] = *member;
        if (r->collected_count == COLLECTED_MAX) resultFlush(r);
    } else if (r->into) {
        r->into = setAdd(r->into, member, &r->limits, &added);
    }
    if (r->replies) replyItem(r->c, member);
    return r->count != r->limit;
}

/* Adds the members of `from` that are in all other sets, or, if `in` is false, in none of them. */
static void filter(result *r, const robj *from, const robj *const *others, size_t count, bool in) {
    hotCheck(others || count == 0);
    setIterator it;
    listpackItem batch[BATCH];
    unsigned n;
    bool more = true;
    bool counts = !r->into && !r->replies;
    r->all = setLength(from);
    if (r->into) {
        setIteratorInit(&it, from);
    } else {
        setIteratorInitUnordered(&it, from);
    }
    while (more && (n = setNextMany(&it, batch, BATCH)) && !jobPoint(r->c, n)) {
        r->visited += n;
        for (size_t i = 0; i < count && n > 0; i++) {
            uint32_t found = setHasMany(others[i], batch, n);
            unsigned kept = 0;
            for (unsigned k = 0; k < n; k++) { /* without branches that nobody can predict */
                batch[kept] = batch[k];
                kept += (found >> k & 1) == in;
            }
            n = kept;
        }
        if (counts && !r->limit) {
            r->count += n;
            continue;
        }
        for (unsigned k = 0; k < n; k++) {
            if (resultAdd(r, &batch[k])) continue;
            more = false;
            break;
        }
    }
    setIteratorClear(&it);
}

static int compareLengths(const void *a, const void *b) {
    size_t first = setLength(*(const robj *const *)a), second = setLength(*(const robj *const *)b);
    return (first > second) - (first < second);
}

/* An empty set that accepts any members. */
static robj *newResult(const ctx *c, const setLimits *limits) {
    listpackItem number = listpackItemInt(0);
    return setNew(c->argv[1], &number, 0, limits);
}

/* ------------------------------------------------------------------ intersection */

static void intersect(result *r, sources *s) {
    hotCheck(s->count > 0);
    if (s->missing) return;
    qsort(s->sets, s->count, sizeof(*s->sets), compareLengths);
    filter(r, s->sets[0], s->sets + 1, s->count - 1, true);
}

/* SINTER key [key ...]. Reply: members contained in all sets. */
void sinterCommand(ctx *c) {
    hotCheck(c->argc >= 2);
    sources s;
    if (!findSources(c, 1, c->argc, &s) || runsAsJob(c, &s, 0)) return;
    result r = {.c = c, .replies = true};
    respDeferred head = respDeferBegin(c->out);
    intersect(&r, &s);
    respDeferEnd(c->out, head, '~', c->proto, (int64_t)r.count);
    memFree(s.sets);
}

/* SINTERSTORE destination key [key ...]. Reply: number of members. */
void sinterstoreCommand(ctx *c) {
    hotCheck(c->argc >= 3);
    sources s;
    if (!findSources(c, 2, c->argc, &s) || runsAsJob(c, &s, STORES)) return;
    result r = {.c = c, .limits = setLimitsNow()};
    if (!s.missing) {
        qsort(s.sets, s.count, sizeof(*s.sets), compareLengths);
        bool packed = objectIsPacked(s.sets[0]);
        r.into = packed ? setNewLike(c->argv[1], s.sets[0]) : newResult(c, &r.limits);
        if (!packed) r.collected = memNewArray(listpackItem, COLLECTED_MAX);
        intersect(&r, &s);
        resultFlush(&r);
        r.into = setTryIntset(r.into, &r.limits);
    }
    memFree(s.sets);
    collectionStore(c, 1, r.into, &eventSinterstore);
}

/* Parses [LIMIT limit] from argument `arg_index` on. False: the error was replied. */
static bool parseLimit(ctx *c, int arg_index, int64_t *limit) {
    hotCheck(arg_index > 0);
    hotCheck(arg_index <= c->argc);
    *limit = 0;
    for (; arg_index < c->argc; arg_index += 2) {
        if (!ctxArgIs(c, arg_index, "limit") || arg_index + 1 == c->argc) {
            replyError(c, ERR_SYNTAX_TEXT);
            return false;
        }
        if (!ctxArgIntIn(c, arg_index + 1, 0, INT64_MAX, limit, "ERR LIMIT can't be negative"))
            return false;
    }
    return true;
}

/* Parses the number of keys at argument 1. False: the error was replied. */
static bool parseNumkeys(ctx *c, int *keys) {
    hotCheck(c->argc >= 3);
    int64_t count;
    if (!ctxArgIntIn(c, 1, 1, INT64_MAX, &count, "ERR numkeys should be greater than 0"))
        return false;
    if (count > c->argc - 2) {
        replyError(c, SLICE("ERR Number of keys can't be greater than number of args"));
        return false;
    }
    *keys = (int)count;
    return true;
}

/* Runs a command with the arguments "numkeys key [key ...] [LIMIT limit]": replies how many members
 * `combine` finds, at most the limit. */
static void replyCard(ctx *c, void (*combine)(result *r, sources *s), bool all) {
    int keys;
    int64_t limit;
    if (!parseNumkeys(c, &keys) || !parseLimit(c, 2 + keys, &limit)) return;
    sources s;
    if (!findSources(c, 2, 2 + keys, &s) || runsAsJob(c, &s, all ? VISITS_ALL : 0)) return;
    result r = {.c = c, .limit = (uint64_t)limit};
    combine(&r, &s);
    memFree(s.sets);
    replyInteger(c, (int64_t)r.count);
}

/* SINTERCARD numkeys key [key ...] [LIMIT limit]. Reply: number of members contained in all sets,
 * at most the limit. */
void sintercardCommand(ctx *c) { replyCard(c, intersect, false); }

/* ------------------------------------------------------------------ union */

static robj *unite(const ctx *c, const sources *s) {
    setLimits limits = setLimitsNow();
    size_t largest = 0;
    for (size_t i = 0; i < s->count; i++) {
        if (s->sets[i]) largest = sizeMax(largest, setLength(s->sets[i]));
    }
    robj *into =
        isLarge(largest, &limits) ? setNewLarge(c->argv[1], largest) : newResult(c, &limits);
    for (size_t i = 0; i < s->count; i++) {
        if (!s->sets[i]) continue;
        setIterator it;
        listpackItem batch[BATCH];
        unsigned n;
        bool added;
        setIteratorInit(&it, s->sets[i]);
        while ((n = setNextMany(&it, batch, BATCH)) && !jobPoint(c, n)) {
            for (unsigned k = 0; k < n; k++) into = setAdd(into, &batch[k], &limits, &added);
        }
        setIteratorClear(&it);
    }
    return into;
}

/* Leaves out the missing sets. */
static void dropMissing(sources *s) {
    size_t sets = 0;
    for (size_t i = 0; i < s->count; i++) {
        if (s->sets[i]) s->sets[sets++] = s->sets[i];
    }
    s->count = sets;
    s->missing = 0;
}

/* True if the members of one set after the other are the reply: their order is then that of the
 * set that SUNIONSTORE would make. A set of integers is sorted, and lookups in many sets cost more
 * than to make the union. */
static bool isRepliedInParts(const sources *s) {
    if (s->count > LOOKED_UP_MAX) return false;
    for (size_t i = 0; i < s->count; i++) {
        if (objectForm(s->sets[i]) == FORM_PACKED_INTS) return false;
    }
    return true;
}

/* Replies the members of each set that are in no set before it. */
static void replyUnionInParts(ctx *c, const sources *s) {
    hotCheck(s->missing == 0);
    result r = {.c = c, .replies = true};
    respDeferred head = respDeferBegin(c->out);
    for (size_t i = 0; i < s->count; i++) filter(&r, s->sets[i], s->sets, i, false);
    respDeferEnd(c->out, head, '~', c->proto, (int64_t)r.count);
}

/* SUNION key [key ...]. Reply: members contained in any set. */
void sunionCommand(ctx *c) {
    hotCheck(c->argc >= 2);
    sources s;
    if (!findSources(c, 1, c->argc, &s) || runsAsJob(c, &s, VISITS_ALL)) return;
    dropMissing(&s);
    if (s.count == 1) {
        setReplyAll(c, s.sets[0]);
    } else if (isRepliedInParts(&s)) {
        replyUnionInParts(c, &s);
    } else {
        robj *into = unite(c, &s);
        setReplyAll(c, into);
        objectFree(into);
    }
    memFree(s.sets);
}

/* SUNIONSTORE destination key [key ...]. Reply: number of members. */
void sunionstoreCommand(ctx *c) {
    hotCheck(c->argc >= 3);
    sources s;
    if (!findSources(c, 2, c->argc, &s) || runsAsJob(c, &s, VISITS_ALL | STORES)) return;
    robj *into = unite(c, &s);
    memFree(s.sets);
    collectionStore(c, 1, into, &eventSunionstore);
}

/* Counts the members of the union, at most the limit. A few sets are counted without building the
 * union: all members of the largest set, then the members of each further set that are in no larger
 * one. */
static uint64_t countUnion(ctx *c, sources *s, uint64_t limit) {
    dropMissing(s);
    size_t sets = s->count;
    if (sets == 0) return 0;
    qsort(s->sets, sets, sizeof(*s->sets), compareLengths);
    uint64_t count = setLength(s->sets[sets - 1]);
    if (sets > LOOKED_UP_MAX && (!limit || count < limit)) {
        robj *into = unite(c, s);
        count = setLength(into);
        objectFree(into);
        return limit && count > limit ? limit : count;
    }
    for (size_t i = sets - 1; i > 0 && (!limit || count < limit); i--) {
        result r = {.c = c, .limit = limit ? limit - count : 0};
        filter(&r, s->sets[i - 1], s->sets + i, sets - i, false);
        count += r.count;
    }
    return limit && count > limit ? limit : count;
}

/* Estimates the size of the union with a HyperLogLog (standard error: 0.81 %). */
static uint64_t estimateUnion(const ctx *c, const sources *s) {
    uint8_t *registers = memCalloc(HLL_REGISTERS, 1);
    char digits[NUMBER_TEXT_MAX];
    for (size_t i = 0; i < s->count; i++) {
        if (!s->sets[i]) continue;
        setIterator it;
        listpackItem batch[BATCH];
        unsigned n;
        setIteratorInitUnordered(&it, s->sets[i]);
        while ((n = setNextMany(&it, batch, BATCH)) && !jobPoint(c, n)) {
            for (unsigned k = 0; k < n; k++) {
                hllUpdate update = hllUpdateOf(listpackText(&batch[k], digits));
                if (registers[update.index] < update.rank)
                    registers[update.index] = (uint8_t)update.rank;
            }
        }
        setIteratorClear(&it);
    }
    uint64_t count = hllEstimate(registers);
    memFree(registers);
    return count;
}

/* SUNIONCARD numkeys key [key ...] [APPROX] [LIMIT limit]. Reply: number of members contained in
 * any set, at most the limit. */
void sunioncardCommand(ctx *c) {
    int keys;
    int64_t limit;
    if (!parseNumkeys(c, &keys)) return;
    int more = 2 + keys;
    bool approximate = more < c->argc && ctxArgIs(c, more, "approx");
    if (!parseLimit(c, more + approximate, &limit)) return;
    sources s;
    if (!findSources(c, 2, 2 + keys, &s) || runsAsJob(c, &s, VISITS_ALL)) return;
    uint64_t most = (uint64_t)limit;
    uint64_t count = approximate ? estimateUnion(c, &s) : countUnion(c, &s, most);
    memFree(s.sets);
    replyInteger(c, (int64_t)(most && count > most ? most : count));
}

/* ------------------------------------------------------------------ difference */

/* Copies the first set and removes the members of the others from the copy. Cheaper than looking up
 * each member in all others if these are many and small. */
static void subtract(result *r, const sources *s) {
    hotCheck(s->count > 0);
    const sources first = {.sets = s->sets, .count = 1};
    bool sliced = r->c->flags & CTX_SLICED; /* a copy is made in one piece */
    robj *rest = sliced ? unite(r->c, &first) : objectCopy(s->sets[0], SLICE(""), 0);
    setIterator it;
    listpackItem member;
    for (size_t i = 1; i < s->count && setLength(rest) > 0; i++) {
        setIteratorInit(&it, s->sets[i]);
        while (setNext(&it, &member) && setLength(rest) > 0) {
            (void)setRemove(&rest, &member); /* it may be missing */
            if (jobPoint(r->c, 1)) break;
        }
        setIteratorClear(&it);
    }
    r->all = setLength(rest);
    setIteratorInit(&it, rest);
    do {
        r->visited++;
    } while (setNext(&it, &member) && resultAdd(r, &member) && !jobPoint(r->c, 1));
    setIteratorClear(&it);
    resultFlush(r); /* the collected members are those of `rest` */
    objectFree(rest);
}

static void differ(result *r, sources *s) {
    hotCheck(s->count > 0);
    const robj *first = s->sets[0];
    if (!first) return;
    size_t others = 0, sum = setLength(first);
    double by_lookup = 0;
    for (size_t i = 1; i < s->count; i++) {
        if (s->sets[i] == first) return;
        if (!s->sets[i]) continue;
        others++;
        s->sets[others] = s->sets[i];
        sum += setLength(s->sets[i]);
    }
    s->count = others + 1;
    /* A batched lookup costs half of a removal. */
    by_lookup = (double)setLength(first) * (double)s->count / 2;
    if (by_lookup <= (double)sum) {
        /* Start with the largest, which removes most members. */
        qsort(s->sets + 1, others, sizeof(*s->sets), compareLengths);
        for (size_t i = 1, k = others; i < k; i++, k--) {
            const robj *swapped = s->sets[i];
            s->sets[i] = s->sets[k];
            s->sets[k] = swapped;
        }
        filter(r, first, s->sets + 1, others, false);
    } else {
        subtract(r, s);
    }
}

/* SDIFF key [key ...]. Reply: members of the first set contained in no other. */
void sdiffCommand(ctx *c) {
    hotCheck(c->argc >= 2);
    sources s;
    if (!findSources(c, 1, c->argc, &s) || runsAsJob(c, &s, VISITS_ALL)) return;
    result r = {.c = c, .replies = true};
    respDeferred head = respDeferBegin(c->out);
    differ(&r, &s);
    respDeferEnd(c->out, head, '~', c->proto, (int64_t)r.count);
    memFree(s.sets);
}

/* SDIFFSTORE destination key [key ...]. Reply: number of members. */
void sdiffstoreCommand(ctx *c) {
    hotCheck(c->argc >= 3);
    sources s;
    if (!findSources(c, 2, c->argc, &s) || runsAsJob(c, &s, VISITS_ALL | STORES)) return;
    result r = {.c = c, .limits = setLimitsNow()};
    r.into = newResult(c, &r.limits);
    if (s.sets[0] && !objectIsPacked(s.sets[0]))
        r.collected = memNewArray(listpackItem, COLLECTED_MAX);
    differ(&r, &s);
    resultFlush(&r);
    memFree(s.sets);
    collectionStore(c, 1, r.into, &eventSdiffstore);
}

/* SDIFFCARD numkeys key [key ...] [LIMIT limit]. Reply: number of members of the first set
 * contained in no other, at most the limit. */
void sdiffcardCommand(ctx *c) { replyCard(c, differ, true); }
