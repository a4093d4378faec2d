/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Sorted sets (type_zset.h). A packed one is a listpack of member, score, member, score in order.
 * In a large one, each element (zset_priv.h) is in the table and in the index. Main thread only,
 * except for freeing. */
#include "store/type_zset.h"

#include <math.h>

#include "base/fiber.h"
#include "ds/hashtable_inline.h"
#include "store/member_priv.h"
#include "store/random_elements.h"
#include "store/saving_value.h"
#include "store/zset_priv.h"

/* ------------------------------------------------------------------ elements */

static uint64_t hashOfElement(const void *element) {
    slice member = zsetElementMember(element);
    return hashBytes(member.ptr, member.len);
}

static uint64_t rankOfElement(const void *element) {
    return zsetScoreRank(zsetElementScore(element));
}

static bool elementHas(const void *element, const void *member, size_t len) {
    return zsetElementHas(element, member, len);
}

const hashtableType zset_members = {
    .hash_of = hashOfElement, .match = elementHas, .entry_mark = HASHTABLE_MARK};
const orderedType zset_order = {.rank_of = rankOfElement, .text_of = zsetElementMember};

void *zsetElementNew(slice member, double score) {
    hotCheck(score == score);
    char *element = elementAllocExact(SCORE_BYTES + member.len);
    bool has_length = !element;
    if (has_length)
        element = elementAlloc(SCORE_BYTES + objectLengthBytes(member.len) + member.len);
    char *at = element + SCORE_BYTES;
    if (has_length) at = objectWriteLength(at, member.len);
    zsetElementSetScore(element, score);
    memcpy(at, member.ptr, member.len);
    return element;
}

static zsetPair pairOf(const void *element) {
    return (zsetPair){zsetElementMember(element), zsetElementScore(element)};
}

static inline zsetLarge *largeOf(const robj *o) { return objectPointer(o); }

static inline void *findElement(const zsetLarge *z, slice member) {
    return hashtableInlineFind(&z->members, &zset_members, elementNameHash(member), zsetElementHas,
                               member.ptr, member.len);
}

/* ------------------------------------------------------------------ listpacks */

listpackItem zsetScoreItem(double score, char *digits) {
    const double most = (double)(INT64_MAX / 2);
    if (score >= -most && score <= most) {
        int64_t whole = (int64_t)score;
        if ((double)whole == score) return listpackItemInt(whole);
    }
    return (listpackItem){.ptr = digits, .len = numberPrintDouble(digits, score)};
}

static double scoreOf(const listpackItem *item) {
    if (!item->ptr) return (double)item->number;
    double score = 0;
    check(numberParseDouble(sliceMake(item->ptr, item->len), &score));
    return score;
}

/* The score after the member at `at`. */
static inline double scoreAfter(const uint8_t *at) {
    listpackItem item = listpackGet(at + listpackEntrySize(at));
    return scoreOf(&item);
}

static const uint8_t *nextPair(const uint8_t *lp, const uint8_t *at) {
    return listpackNext(lp, listpackNext(lp, at));
}

/* The position of a member, NULL if missing. */
static const uint8_t *findPacked(const uint8_t *lp, slice member) {
    listpackItem item = listpackItemOf(member);
    return listpackFind(lp, NULL, &item, 1);
}

static int comparePairs(const zsetPair *a, const zsetPair *b) {
    if (a->score != b->score) return a->score < b->score ? -1 : 1;
    return orderedCompareText(a->member, b->member);
}

/* Reads the pair at `at`; returns the position of the next one, NULL at the end. */
static const uint8_t *readPair(const uint8_t *at, char *digits, zsetPair *out) {
    listpackItem member, score;
    const uint8_t *next = listpackRead(listpackRead(at, &member), &score);
    *out = (zsetPair){listpackText(&member, digits), scoreOf(&score)};
    return next;
}

static void insertPacked(packBuffer *buffer, const zsetPair *pair) {
    const uint8_t *at = listpackFirst(buffer->bytes);
    char member_digits[NUMBER_TEXT_MAX], digits[NUMBER_TEXT_MAX];
    while (at) {
        double score = scoreAfter(at);
        if (score > pair->score) break;
        if (score == pair->score) {
            zsetPair other = {listpackGetText(at, member_digits), score};
            if (comparePairs(&other, pair) > 0) break;
        }
        at = nextPair(buffer->bytes, at);
    }
    listpackItem items[2] = {listpackItemOf(pair->member), zsetScoreItem(pair->score, digits)};
    listpackInsert(buffer, at, items, 2);
}

/* ------------------------------------------------------------------ creation */

/* A large set with the given sorted elements and space for `capacity` members. */
static zsetLarge *largeNew(void *const *sorted, size_t count, size_t capacity) {
    hotCheck(count <= capacity);
    zsetLarge *z = memNew(zsetLarge);
    hashtableReserve(&z->members, &zset_members, sizeMax(count, capacity));
    for (size_t i = 0; i < count; i++) {
        hashtableInsert(&z->members, &zset_members, hashOfElement(sorted[i]), sorted[i], 0);
        (void)fiberPoint(1); /* all are inserted */
    }
    orderedFill(&z->order, &zset_order, sorted, count);
    return z;
}

robj *zsetNew(slice key, size_t count, size_t longest, const packLimits *limits) {
    if (count > limits->entries || longest > limits->bytes)
        return objectNewPointer(key, TYPE_ZSET, largeNew(NULL, 0, 0), OBJECT_NO_EXPIRE, 0);
    uint8_t empty[LISTPACK_EMPTY_SIZE];
    listpackInit(empty);
    return objectNewPacked(key, TYPE_ZSET, FORM_PACKED, sliceMake(empty, sizeof(empty)),
                           OBJECT_NO_EXPIRE, 0);
}

static robj *toLarge(robj *o, size_t capacity) {
    hotCheck(objectType(o) == TYPE_ZSET);
    size_t count = zsetLength(o), n = 0;
    void **sorted = memNewArray(void *, sizeMax(count, 1));
    zsetCursor cursor;
    zsetPair pair;
    if (count) {
        zsetSeek(&cursor, o, 0, false);
        while (zsetNext(&cursor, &pair)) sorted[n++] = zsetElementNew(pair.member, pair.score);
    }
    check(n == count);
    zsetLarge *z = largeNew(sorted, count, capacity);
    memFree(sorted);
    return objectUnpack(o, z);
}

robj *zsetPrepare(robj *o, size_t count, size_t longest, const packLimits *limits) {
    hotCheck(objectType(o) == TYPE_ZSET);
    if (!objectIsPacked(o)) return o;
    if (likely(count <= limits->entries) && likely(longest <= limits->bytes)) return o;
    return toLarge(o, zsetLength(o) + count);
}

size_t zsetLength(const robj *o) {
    hotCheck(objectType(o) == TYPE_ZSET);
    if (objectIsPacked(o)) return listpackCount(objectPacked(o)) / 2;
    return largeOf(o)->order.count;
}

/* ------------------------------------------------------------------ single members */

bool zsetScore(const robj *o, slice member, double *score) {
    hotCheck(objectType(o) == TYPE_ZSET);
    if (objectIsPacked(o)) {
        const uint8_t *at = findPacked(objectPacked(o), member);
        if (at) *score = scoreAfter(at);
        return at != NULL;
    }
    const void *element = findElement(largeOf(o), member);
    if (element) *score = zsetElementScore(element);
    return element != NULL;
}

uint32_t zsetScoreMany(const robj *o, const zsetPair *pairs, unsigned count, double *scores) {
    hotCheck(objectType(o) == TYPE_ZSET);
    check(count <= ZSET_MANY);
    uint32_t found = 0;
    if (objectIsPacked(o)) {
        for (unsigned i = 0; i < count; i++)
            found |= (uint32_t)zsetScore(o, pairs[i].member, &scores[i]) << i;
        return found;
    }
    const hashtable *t = &largeOf(o)->members;
    tableProbe probes[ZSET_MANY];
    if (!t->body) return 0;
    for (unsigned i = 0; i < count; i++) {
        slice member = pairs[i].member;
        probes[i] = tableProbeAt(t, hashBytes(member.ptr, member.len));
        prefetchRead(probes[i].home);
    }
    uint64_t *candidates[ZSET_MANY];
    for (unsigned i = 0; i < count; i++) {
        candidates[i] = tableProbeCandidate(&probes[i]);
        if (candidates[i]) prefetchRead(wordEntry(*candidates[i]));
    }
    for (unsigned i = 0; i < count; i++) {
        slice member = pairs[i].member;
        const uint64_t *word = tableProbeConfirm(&probes[i], candidates[i], &zset_members,
                                                 zsetElementHas, member.ptr, member.len);
        if (!word) continue;
        scores[i] = zsetElementScore(wordEntryOfType(*word, &zset_members));
        found |= UINT32_C(1) << i;
    }
    return found;
}

/* Applies the flags to a member with score `old`; sets `pair->score` to the new score. */
static zsetAdded applyFlags(zsetPair *pair, unsigned flags, double old) {
    if (flags & ZSET_NX) return ZSET_REFUSED;
    double score = flags & ZSET_INCR ? old + pair->score : pair->score;
    if (isnan(score)) return ZSET_NAN;
    if ((flags & ZSET_GT) && !(score > old)) return ZSET_REFUSED;
    if ((flags & ZSET_LT) && !(score < old)) return ZSET_REFUSED;
    pair->score = score;
    return score == old ? ZSET_SAME : ZSET_UPDATED;
}

static robj *addLarge(robj *o, zsetPair *pair, unsigned flags, zsetAdded *added) {
    hotCheck(objectType(o) == TYPE_ZSET);
    zsetLarge *z = largeOf(o);
    slice member = pair->member;
    hashtablePosition position;
    void *element = hashtableInlineFindPosition(&z->members, &zset_members, elementNameHash(member),
                                                zsetElementHas, member.ptr, member.len, &position);
    if (!element) {
        *added = flags & ZSET_XX ? ZSET_REFUSED : ZSET_ADDED;
        if (*added == ZSET_REFUSED) return o;
        element = zsetElementNew(member, pair->score);
        hashtableInsertAt(&z->members, &zset_members, &position, element, 0);
        orderedInsert(&z->order, &zset_order, element);
        elementAdded(z, element);
        return o;
    }
    *added = applyFlags(pair, flags, zsetElementScore(element));
    if (*added != ZSET_UPDATED) return o;
    beforeElement(z, element);
    if (likely(elementMayStay())) {
        bool kept = orderedPrepareRank(&z->order, &zset_order, element, zsetScoreRank(pair->score));
        zsetElementSetScore(element, pair->score);
        if (!kept) orderedInsert(&z->order, &zset_order, element);
        return o;
    }
    void *moved = zsetElementNew(member, pair->score);
    orderedDelete(&z->order, &zset_order, element);
    orderedInsert(&z->order, &zset_order, moved);
    hashtableReplaceAt(&position, &zset_members, moved);
    elementFree(element, NULL);
    return o;
}

static robj *updatePacked(robj *o, const uint8_t *at, const zsetPair *pair) {
    hotCheck(objectType(o) == TYPE_ZSET);
    objectBuffer r;
    objectBufferInit(&r, o);
    (void)listpackDelete(&r.buffer, at, 2); /* the position is searched again */
    insertPacked(&r.buffer, pair);
    return r.o;
}

robj *zsetAdd(robj *o, zsetPair *pair, unsigned flags, const packLimits *limits, zsetAdded *added) {
    hotCheck(objectType(o) == TYPE_ZSET);
    if (!objectIsPacked(o)) return addLarge(o, pair, flags, added);
    const uint8_t *lp = objectPacked(o), *at = findPacked(lp, pair->member);
    if (at) {
        *added = applyFlags(pair, flags, scoreAfter(at));
        return *added == ZSET_UPDATED ? updatePacked(o, at, pair) : o;
    }
    *added = flags & ZSET_XX ? ZSET_REFUSED : ZSET_ADDED;
    if (*added == ZSET_REFUSED) return o;
    size_t count = listpackCount(lp) / 2, len = pair->member.len;
    if (count < limits->entries && len <= limits->bytes &&
        listpackCanGrow(lp, len + NUMBER_TEXT_MAX)) {
        objectBuffer r;
        objectBufferInit(&r, o);
        insertPacked(&r.buffer, pair);
        return r.o;
    }
    return addLarge(toLarge(o, count + 1), pair, flags, added);
}

static bool removeLarge(zsetLarge *z, slice member) {
    void *element = hashtableDelete(&z->members, &zset_members, elementNameHash(member), member.ptr,
                                    member.len);
    if (!element) return false;
    beforeElement(z, element);
    orderedDelete(&z->order, &zset_order, element);
    elementFree(element, NULL);
    return true;
}

/* Frees the times if none is left. */
static void settleTimed(robj *o) {
    hotCheck(!objectIsPacked(o));
    zsetLarge *z = largeOf(o);
    if (memberTimesCount(z->times)) return;
    memberTimesFree(z->times);
    z->times = NULL;
}

bool zsetRemove(robj **o, slice member) {
    if (objectIsPacked(*o)) {
        const uint8_t *at = findPacked(objectPacked(*o), member);
        if (!at) return false;
        objectBuffer r;
        objectBufferInit(&r, *o);
        (void)listpackDelete(&r.buffer, at, 2); /* the next entry is not needed */
        *o = r.o;
        return true;
    }
    zsetLarge *z = largeOf(*o);
    if (!removeLarge(z, member)) return false;
    if (unlikely(z->times != NULL)) {
        memberTimesForget(z->times, member);
        settleTimed(*o);
    }
    return true;
}

/* ------------------------------------------------------------------ ranks and ranges */

bool zsetRank(const robj *o, slice member, uint64_t *rank, double *score) {
    hotCheck(objectType(o) == TYPE_ZSET);
    if (!objectIsPacked(o)) {
        const zsetLarge *z = largeOf(o);
        const void *element = findElement(z, member);
        if (!element) return false;
        *score = zsetElementScore(element);
        *rank = orderedIndexOf(&z->order, &zset_order, element);
        return true;
    }
    listpackItem item = listpackItemOf(member);
    const uint8_t *lp = objectPacked(o);
    uint64_t place = 0;
    for (const uint8_t *at = listpackFirst(lp); at; at = nextPair(lp, at), place++) {
        if (!listpackEquals(at, &item)) continue;
        *rank = place;
        *score = scoreAfter(at);
        return true;
    }
    return false;
}

/* True if a pair in a listpack is before a bound; equal ones are with `after`. */
static bool pairIsBefore(const uint8_t *at, const zsetBound *bound, bool after) {
    if (bound->by == ZSET_BY_SCORE) {
        double score = scoreAfter(at);
        return after ? score <= bound->score : score < bound->score;
    }
    char digits[NUMBER_TEXT_MAX];
    return orderedCompareText(listpackGetText(at, digits), bound->text) < (after ? 1 : 0);
}

/* Advances *at, the position of pair number `place` of a listpack or NULL at its end, to the first
 * pair that is not before a bound; returns the number of that pair. */
static uint64_t skipPacked(const uint8_t *lp, const uint8_t **at, uint64_t place,
                           const zsetBound *bound, bool after) {
    for (; *at && pairIsBefore(*at, bound, after); *at = nextPair(lp, *at)) place++;
    return place;
}

/* zsetFindRange() of a packed set. The bounds are first compared with the last pair, because ranges
 * beyond all members and ranges without an upper limit are frequent. */
static zsetRange findPackedRange(const robj *o, const zsetBound *min, const zsetBound *max) {
    hotCheck(objectIsPacked(o));
    const uint8_t *lp = objectPacked(o), *at = listpackFirst(lp), *last = listpackSeek(lp, -2);
    uint64_t begin = 0, length = listpackCount(lp) / 2, end = length;
    if (!last || min->by == ZSET_LAST || max->by == ZSET_FIRST) return (zsetRange){0, 0};
    if (min->by != ZSET_FIRST) {
        if (pairIsBefore(last, min, min->excluded)) return (zsetRange){length, 0};
        begin = skipPacked(lp, &at, 0, min, min->excluded);
    }
    /* If scores differ, the texts are not in order, and only a walk stops at the same member as
     * Valkey. */
    bool to_last = max->by == ZSET_LAST ||
                   (max->by == ZSET_BY_SCORE && pairIsBefore(last, max, !max->excluded));
    if (!to_last) end = skipPacked(lp, &at, begin, max, !max->excluded);
    return (zsetRange){begin, end - begin};
}

/* Number of members of a large set before a bound. */
static uint64_t countBefore(const robj *o, const zsetBound *bound, bool after) {
    hotCheck(!objectIsPacked(o));
    if (bound->by == ZSET_FIRST) return 0;
    if (bound->by == ZSET_LAST) return zsetLength(o);
    orderedPoint point = {.by = ORDERED_BY_RANK, .after = after};
    if (bound->by == ZSET_BY_LEX) {
        point.by = ORDERED_BY_TEXT;
        point.text = bound->text;
    } else {
        point.rank = zsetScoreRank(bound->score);
    }
    return orderedCountBefore(&largeOf(o)->order, &zset_order, &point);
}

zsetRange zsetFindRange(const robj *o, const zsetBound *min, const zsetBound *max) {
    hotCheck(objectType(o) == TYPE_ZSET);
    if (objectIsPacked(o)) return findPackedRange(o, min, max);
    uint64_t begin = countBefore(o, min, min->excluded), end = countBefore(o, max, !max->excluded);
    return (zsetRange){begin, end > begin ? end - begin : 0};
}

void zsetSeek(zsetCursor *cursor, const robj *o, uint64_t index, bool reverse) {
    hotCheck(objectType(o) == TYPE_ZSET);
    check(index < zsetLength(o));
    cursor->o = o;
    cursor->reverse = reverse;
    if (objectIsPacked(o)) {
        cursor->at = listpackSeek(objectPacked(o), (int64_t)index * 2);
    } else {
        cursor->element = orderedSeek(&largeOf(o)->order, index, &cursor->walk);
    }
}

bool zsetNext(zsetCursor *cursor, zsetPair *out) {
    if (!objectIsPacked(cursor->o)) {
        const void *element = cursor->element;
        if (!element) return false;
        *out = pairOf(element);
        cursor->element = cursor->reverse ? orderedPrev(&cursor->walk) : orderedNext(&cursor->walk);
        return true;
    }
    const uint8_t *lp = objectPacked(cursor->o), *at = cursor->at;
    if (!at) return false;
    cursor->at = readPair(at, cursor->digits, out);
    if (cursor->reverse) {
        at = listpackPrev(lp, at);
        cursor->at = at ? listpackPrev(lp, at) : NULL;
    }
    return true;
}

unsigned zsetNextMany(zsetCursor *cursor, zsetPair *out, unsigned most) {
    check(most <= ZSET_MANY);
    if (objectIsPacked(cursor->o)) return zsetNext(cursor, out);
    if (!cursor->element) return 0;
    void *elements[ZSET_MANY + 1]; /* the last one is the first of the next call */
    elements[0] = (void *)(uintptr_t)cursor->element;
    unsigned count = 1 + orderedReadMany(&cursor->walk, cursor->reverse, elements + 1, most);
    cursor->element = count > most ? elements[--count] : NULL;
    for (unsigned i = 0; i < count; i++) out[i] = pairOf(elements[i]);
    return count;
}

static void dropElement(void *context, void *element) {
    zsetLarge *z = context;
    beforeElement(z, element);
    check(hashtableDeleteEntry(&z->members, &zset_members, hashOfElement(element), element));
    if (unlikely(z->times != NULL)) memberTimesForget(z->times, zsetElementMember(element));
    elementFree(element, NULL);
}

void zsetRemoveRange(robj **o, const zsetRange *range) {
    if (!objectIsPacked(*o)) {
        zsetLarge *z = largeOf(*o);
        orderedDeleteRange(&z->order, &zset_order, range->index, range->count, dropElement, z);
        if (unlikely(z->times != NULL)) settleTimed(*o);
        return;
    }
    objectBuffer r;
    objectBufferInit(&r, *o);
    listpackDeleteRange(&r.buffer, (int64_t)range->index * 2, range->count * 2);
    *o = r.o;
}

/* ------------------------------------------------------------------ scanning, random members */

typedef struct visitor {
    zsetVisitProc *visit;
    void *arg;
} visitor;

static void visitElement(void *context, void *element, unsigned flags) {
    const visitor *v = context;
    zsetPair pair = pairOf(elementVisited(element, flags));
    v->visit(v->arg, &pair);
}

static void visitAll(const robj *o, zsetVisitProc *visit, void *arg) {
    hotCheck(objectType(o) == TYPE_ZSET);
    zsetCursor cursor;
    zsetPair pair;
    if (zsetLength(o) == 0) return;
    zsetSeek(&cursor, o, 0, false);
    while (zsetNext(&cursor, &pair)) visit(arg, &pair);
}

uint64_t zsetScan(const robj *o, uint64_t cursor, zsetVisitProc *visit, void *arg) {
    hotCheck(objectType(o) == TYPE_ZSET);
    if (objectIsPacked(o)) {
        visitAll(o, visit, arg);
        return 0;
    }
    visitor v = {visit, arg};
    cursor &= (UINT64_C(1) << HASHTABLE_CURSOR_BITS) - 1;
    return hashtableScan(&largeOf(o)->members, &zset_members, cursor, visitElement, &v);
}

static bool visitPacked(void *context, const uint8_t *at) {
    const visitor *v = context;
    char digits[NUMBER_TEXT_MAX];
    zsetPair pair;
    (void)readPair(at, digits, &pair); /* the next position is not needed */
    v->visit(v->arg, &pair);
    return true;
}

static bool visitRandom(void *context, const void *element) {
    const visitor *v = context;
    zsetPair pair = pairOf(element);
    v->visit(v->arg, &pair);
    return true;
}

void zsetRandom(const robj *o, size_t count, bool unique, zsetVisitProc *visit, void *arg) {
    hotCheck(objectType(o) == TYPE_ZSET);
    visitor v = {visit, arg};
    if (objectIsPacked(o)) {
        randomFromListpack(objectPacked(o), 2, count, unique, visitPacked, &v);
    } else {
        randomFromTable(&largeOf(o)->members, &zset_members, count, unique, visitRandom, &v);
    }
}

/* ------------------------------------------------------------------ members with TTLs */

static memberTimes *timesOf(const robj *o) { return objectIsPacked(o) ? NULL : largeOf(o)->times; }

static bool hasMember(const robj *o, slice member) {
    double score;
    return zsetScore(o, member, &score);
}

static robj *setMemberTime(robj *o, slice member, int64_t time_ms) {
    hotCheck(objectType(o) == TYPE_ZSET);
    hotCheck(hasMember(o, member));
    if (objectIsPacked(o)) o = toLarge(o, zsetLength(o));
    zsetLarge *z = largeOf(o);
    if (storeNow.saving_values) savingElementBefore(z, findElement(z, member));
    if (!z->times) z->times = memberTimesNew(true);
    if (time_ms == MEMBER_NO_TIME) {
        memberTimesForget(z->times, member);
    } else {
        memberTimesSet(z->times, member, time_ms);
    }
    settleTimed(o);
    return o;
}

static double hideMember(robj *o, slice member) {
    hotCheck(!objectIsPacked(o));
    double score = 0;
    check(zsetScore(o, member, &score));
    check(removeLarge(largeOf(o), member));
    return score;
}

static void showMember(robj *o, slice member, double score) {
    hotCheck(!objectIsPacked(o));
    zsetPair pair = {member, score};
    zsetAdded added;
    (void)addLarge(o, &pair, 0, &added); /* it stays the same object */
    check(added == ZSET_ADDED);
}

const memberOps zsetMemberOps = {.times_of = timesOf,
                                 .has = hasMember,
                                 .set_time = setMemberTime,
                                 .hide = hideMember,
                                 .show = showMember,
                                 .settle = settleTimed};

/* ------------------------------------------------------------------ type operations */

static const char *large_name = "skiplist";

void zsetNameLarge(const char *name) { large_name = name; }

static const char *encodingOf(const robj *o) { return objectIsPacked(o) ? "listpack" : large_name; }

static void digestPair(void *arg, const zsetPair *pair) {
    digest own = {{0}};
    char digits[NUMBER_TEXT_MAX];
    digestMix(&own, pair->member);
    digestMix(&own, sliceMake(digits, numberPrintDouble(digits, pair->score)));
    digestAddDigest(arg, &own);
}

static void digestZset(const robj *o, int db_id, storeLook look, digest *to) {
    (void)db_id; /* the same everywhere */
    const memberTimes *times = timesOf(o);
    if (!times) {
        visitAll(o, digestPair, to);
        return;
    }
    zsetCursor cursor;
    zsetPair pair;
    if (zsetLength(o)) zsetSeek(&cursor, o, 0, false);
    while (zsetLength(o) && zsetNext(&cursor, &pair)) {
        if (!memberIsPast(look, memberTimesGet(times, pair.member))) digestPair(to, &pair);
    }
    for (uint64_t i = 0; i < memberTimesHidden(times); i++) {
        timedMember hidden = memberTimesAt(times, i);
        pair = (zsetPair){hidden.member, hidden.score};
        if (!memberIsPast(look, hidden.time_ms)) digestPair(to, &pair);
    }
}

static hashtable membersOf(const void *value) {
    return value ? ((const zsetLarge *)value)->members : (hashtable){NULL};
}

static memberTimes *timesOfValue(const void *value) {
    return value ? ((const zsetLarge *)value)->times : NULL;
}

static void readElement(const void *element, valueElement *out) {
    out->name = zsetElementMember(element);
    out->value = SLICE("");
    out->score = zsetElementScore(element);
}

static uint64_t hashOfMember(slice member, bool *is_text) {
    *is_text = true;
    return hashBytes(member.ptr, member.len);
}

static const valueElements members = {.table_of = membersOf,
                                      .type = &zset_members,
                                      .read = readElement,
                                      .hash_of = hashOfMember,
                                      .times_of = timesOfValue};

static void freeVisited(void *context, void *element, unsigned flags) {
    valueFreer *by = context;
    element = elementVisited(element, flags);
    if (!elementGoesWithStore(element, by)) elementFree(element, by);
}

static void freeLarge(void *value, valueFreer *by) {
    zsetLarge *z = value;
    orderedFree(&z->order);
    hashtableFree(&z->members, freeVisited, by);
    memberTimesFree(z->times);
    memFree(z);
}

static void *copyLarge(const valuePlace *place, const valuePlace *to_place, void *value) {
    (void)place, (void)to_place; /* not needed */
    const zsetLarge *from = value;
    size_t count = from->order.count, n = 0;
    void **sorted = memNewArray(void *, sizeMax(count, 1));
    orderedCursor cursor;
    const void *element = count ? orderedSeek(&from->order, 0, &cursor) : NULL;
    for (; element; element = orderedNext(&cursor)) {
        sorted[n++] = zsetElementNew(zsetElementMember(element), zsetElementScore(element));
        (void)fiberPoint(1); /* the copy is freed as a whole if nobody wants it */
    }
    zsetLarge *copy = largeNew(sorted, count, count);
    memFree(sorted);
    if (from->times) copy->times = memberTimesCopy(from->times);
    return copy;
}

static size_t largeEffort(const valuePlace *at, const void *value) {
    (void)at; /* not needed */
    const zsetLarge *z = value;
    return z->order.count + memberTimesCount(z->times);
}

static size_t elementMemory(const void *element) {
    if (elementExactSize(element)) return slabExactSlot(elementExactSize(element));
    size_t len = zsetElementMember(element).len;
    return slabClassSize(SCORE_BYTES + objectLengthBytes(len) + len);
}

static size_t largeMemory(const valuePlace *at, const void *value, size_t samples) {
    (void)at; /* not needed */
    const zsetLarge *z = value;
    return memSizeOf(z) + z->order.bytes + hashtableBytes(&z->members) +
           sampledMemory(&z->members, &zset_members, samples, elementMemory) +
           memberTimesBytes(z->times);
}

typedef struct mover {
    zsetLarge *z;
    compaction *by;
} mover;

static void moveElement(void *context, void *element, unsigned flags) {
    mover *m = context;
    element = elementVisited(element, flags);
    elementSeen(m->by);
    void *moved = elementMove(element, m->by);
    if (!moved) return;
    check(hashtableReplace(&m->z->members, &zset_members, hashOfElement(moved), element, moved));
    orderedReplace(&m->z->order, &zset_order, element, moved);
}

/* First the members, then, from cursor INDEX_PHASE on, the nodes of the index. */
static uint64_t compactLarge(void **value, uint64_t cursor, compaction *by) {
    const uint64_t INDEX_PHASE = UINT64_C(1) << 63;
    if (cursor == 0) {
        void *moved = elementMoveBlock(*value, by);
        if (moved) *value = moved;
        elementMoveTable(&((zsetLarge *)*value)->members, by);
    }
    mover m = {*value, by};
    if (!(cursor & INDEX_PHASE)) {
        do {
            elementSeen(by); /* a bucket may be empty */
            cursor = hashtableScan(&m.z->members, &zset_members, cursor, moveElement, &m);
        } while (cursor && by->fields);
        if (cursor || !by->heap) return cursor;
        cursor = INDEX_PHASE;
    }
    uint64_t place = cursor & ~INDEX_PHASE;
    while (by->heap && by->fields) {
        uint64_t next = orderedCompact(&m.z->order, place, &by->moved, &by->kept);
        if (!next) return 0;
        by->fields -= sizeMin(by->fields, next - place);
        place = next;
    }
    return by->heap ? INDEX_PHASE | place : 0;
}

static void statsOf(const void *value, hashtableStats *out) {
    hashtableStatsRead(&((const zsetLarge *)value)->members, &zset_members, out);
}

const typeOps zsetOps = {
    .encoding = encodingOf,
    .length = zsetLength,
    .digest = digestZset,
    .free_value = freeLarge,
    .copy_value = copyLarge,
    .free_effort = largeEffort,
    .value_memory = largeMemory,
    .compact_value = compactLarge,
    .has_elements = true,
    .elements = &members,
    .table_stats = statsOf,
};
