/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Hash commands, except those on the TTLs of fields (hash_time.c). Main thread only. */
#include "store/type_hash.h"

#include <math.h>

#include "base/base.h"
#include "base/number.h"
#include "cmd/cmd_priv.h"
#include "cmd/collection.h"
#include "cmd/hash_priv.h"
#include "cmd/procs.h"
#include "cmd/scan.h"
#include "engine/job.h"

packLimits hashLimits(void) {
    return (packLimits){.entries = (size_t)cmdConf.hash_max_listpack_entries,
                        .bytes = (size_t)cmdConf.hash_max_listpack_value};
}

bool hashFindRead(ctx *c, robj **out) { return collectionFindRead(c, 1, TYPE_HASH, out); }

bool hashFindWrite(ctx *c, robj **out) { return collectionFindWrite(c, 1, TYPE_HASH, out); }

/* ------------------------------------------------------------------ setting */

void hashNoteReplaced(ctx *c, uint64_t count) {
    if (likely(!count)) return;
    dbCountExpiredFields(c->db, count);
    collectionNotify(c, c->argv[1], &eventHexpired);
}

/* Sets one field of `o`, as returned by hashFindWrite(), and stores the value. The field keeps its
 * TTL. True if it replaced an expired field. */
static bool setOne(ctx *c, robj *o, slice field, slice value) {
    hotCheck(!o || objectType(o) == TYPE_HASH);
    packLimits most = hashLimits();
    hashOutcome outcome = HASH_CREATED;
    if (o) {
        o = hashSetTimed(o, field, value, HASH_KEEP_TIME, c->look, &most, &outcome);
    } else {
        slice pair[2] = {field, value};
        hashSetCounts counts; /* one field, a new one */
        o = hashSetPairs(NULL, c->argv[1], pair, 2, c->look, &most, &counts);
    }
    collectionPlace(c, 1, o);
    bool replaced_expired = outcome == HASH_REPLACED_EXPIRED;
    if (replaced_expired) hashNoteReplaced(c, 1);
    return replaced_expired;
}

/* HINCRBY and HINCRBYFLOAT on a hash with field TTLs are propagated as their result. */
static void propagateNumber(ctx *c, int64_t time_ms, slice result) {
    hotCheck(c->argc >= 3);
    char digits[NUMBER_TEXT_MAX];
    if (time_ms >= 0) {
        slice words[8] = {SLICE("HSETEX"), c->argv[1],
                          SLICE("PXAT"),   sliceMake(digits, numberPrintInt(digits, time_ms)),
                          SLICE("FIELDS"), SLICE("1"),
                          c->argv[2],      result};
        ctxPropagateAs(c, 8, words);
    } else {
        slice words[4] = {SLICE("HSET"), c->argv[1], c->argv[2], result};
        ctxPropagateAs(c, 4, words);
    }
}

/* Sets the pairs from argument 2 on in slices. False: the command has to return. */
static NO_INLINE bool setInSlices(ctx *c, robj *o, hashSetCounts *sum) {
    packLimits most = hashLimits();
    bool is_new = !o;
    size_t count = (size_t)c->argc - 2, part = 0;
    hotCheck(count >= 2);
    /* The form that all pairs need, as in one piece. */
    o = hashPrepare(is_new ? hashNew(c->argv[1]) : o, c->argv + 2, count, &most);
    for (size_t at = 0; at < count; at += part) {
        hashSetCounts counts;
        if (at && jobIsDue(c, (unsigned)part / 2) && !collectionSuspend(c, 1, &o, is_new))
            return false;
        part = 2 * jobPart(c, (count - at) / 2);
        o = hashSetPairs(o, c->argv[1], c->argv + 2 + at, part, c->look, &most, &counts);
        sum->created += counts.created;
        sum->replaced_expired += counts.replaced_expired;
    }
    collectionPlaceLast(c, 1, is_new ? hashFindShape(o) : o, is_new);
    return true;
}

/* Sets the pairs from argument 2 on. False: the error was replied, or there is nothing to reply. */
static bool setPairs(ctx *c, int64_t *created_count) {
    hotCheck(c->argc >= 3);
    if (c->argc % 2 == 1) {
        replyErrorArity(c);
        return false;
    }
    robj *o;
    if (jobStartChange(c, (uint64_t)c->argc / 2) || !hashFindWrite(c, &o)) return false;
    packLimits most = hashLimits();
    hashSetCounts counts = {0};
    if (unlikely(c->flags & CTX_SLICED)) {
        if (!setInSlices(c, o, &counts)) return false;
    } else {
        o = hashSetPairs(o, c->argv[1], c->argv + 2, (size_t)c->argc - 2, c->look, &most, &counts);
        collectionPlace(c, 1, o);
    }
    *created_count = (int64_t)counts.created;
    hashNoteReplaced(c, counts.replaced_expired);
    collectionChanged(c, c->argv[1], &eventHset, (uint64_t)(c->argc - 2) / 2);
    return true;
}

/* HSET key field value [field value ...]. Reply: number of new fields. */
void hsetCommand(ctx *c) {
    int64_t created = 0;
    if (setPairs(c, &created)) replyInteger(c, created);
}

/* HMSET key field value [field value ...]. Reply: OK. */
void hmsetCommand(ctx *c) {
    int64_t created = 0;
    if (setPairs(c, &created)) replyOk(c);
}

/* HSETNX key field value. Reply: 1, or 0 if the field exists. */
void hsetnxCommand(ctx *c) {
    hotCheck(c->argc == 4);
    robj *o;
    size_t len;
    if (!hashFindWrite(c, &o)) return;
    if (o && hashValueLength(o, c->argv[2], c->look, &len)) {
        replyInteger(c, 0);
        return;
    }
    if (setOne(c, o, c->argv[2], c->argv[3])) {
        /* A replica still has the expired field, so it would not do anything for HSETNX. */
        slice words[4] = {SLICE("HSET"), c->argv[1], c->argv[2], c->argv[3]};
        ctxPropagateAs(c, 4, words);
    }
    ctxKeyChanged(c, c->argv[1], &eventHset);
    replyInteger(c, 1);
}

/* HINCRBY key field increment. Reply: the new value. */
void hincrbyCommand(ctx *c) {
    hotCheck(c->argc == 4);
    int64_t by, number = 0;
    robj *o;
    slice value;
    char digits[NUMBER_TEXT_MAX];
    if (!ctxArgInt(c, 3, &by)) return;
    if (!hashFindWrite(c, &o)) return;
    if (o && hashGet(o, c->argv[2], c->look, digits, &value) && !numberParseInt(value, &number)) {
        replyError(c, SLICE("ERR hash value is not an integer"));
        return;
    }
    if (!numberAdd(number, by, &number)) {
        replyError(c, SLICE("ERR increment or decrement would overflow"));
        return;
    }
    bool timed = o && hashTimedCount(o) > 0;
    int64_t time_ms = timed ? hashTime(o, c->argv[2], c->look) : HASH_NO_TIME;
    slice result = sliceMake(digits, numberPrintInt(digits, number));
    (void)setOne(c, o, c->argv[2], result); /* propagates the result anyway */
    if (timed) propagateNumber(c, time_ms, result);
    ctxKeyChanged(c, c->argv[1], &eventHincrby);
    replyInteger(c, number);
}

/* HINCRBYFLOAT key field increment. Reply: the new value as text. Propagated as HSET, so that
 * replicas do not depend on their own rounding. */
void hincrbyfloatCommand(ctx *c) {
    hotCheck(c->argc == 4);
    long double by, number = 0;
    robj *o;
    slice value;
    char digits[NUMBER_TEXT_MAX], text[LONG_DOUBLE_TEXT_MAX];
    if (!numberParseLongDouble(c->argv[3], &by)) {
        replyError(c, ERR_NOT_FLOAT_TEXT);
        return;
    }
    if (isnan(by) || isinf(by)) {
        replyError(c, SLICE("ERR value is NaN or Infinity"));
        return;
    }
    if (!hashFindWrite(c, &o)) return;
    if (o && hashGet(o, c->argv[2], c->look, digits, &value) &&
        !numberParseLongDouble(value, &number)) {
        replyError(c, SLICE("ERR hash value is not a float"));
        return;
    }
    number += by;
    if (isnan(number) || isinf(number)) {
        replyError(c, SLICE("ERR increment would produce NaN or Infinity"));
        return;
    }
    slice result = sliceMake(text, numberPrintLongDouble(text, number));
    int64_t time_ms = o ? hashTime(o, c->argv[2], c->look) : HASH_NO_TIME;
    (void)setOne(c, o, c->argv[2], result); /* propagates the result anyway */
    propagateNumber(c, time_ms, result);
    ctxKeyChanged(c, c->argv[1], &eventHincrbyfloat);
    replyBulk(c, result);
}

/* HDEL key field [field ...]. Reply: number of fields removed. */
void hdelCommand(ctx *c) {
    hotCheck(c->argc >= 3);
    robj *o;
    if (jobStartChange(c, (uint64_t)c->argc) || !hashFindWrite(c, &o)) return;
    int64_t deleted = 0;
    bool emptied = false;
    for (int i = 2; o && i < c->argc && !emptied; i++) {
        if (jobIsDue(c, 1) && !collectionSuspend(c, 1, &o, false)) return;
        if (!hashDelete(&o, c->argv[i], c->look)) continue;
        deleted++;
        emptied = hashLength(o) == 0;
    }
    if (deleted) {
        collectionPlace(c, 1, o);
        collectionReduced(c, 1, &eventHdel, (uint64_t)deleted, emptied);
    }
    replyInteger(c, deleted);
}

/* ------------------------------------------------------------------ reading */

void hashReplyField(ctx *c, const robj *o, slice field) {
    hotCheck(!o || objectType(o) == TYPE_HASH);
    slice value;
    char digits[NUMBER_TEXT_MAX];
    if (o && hashGet(o, field, c->look, digits, &value)) {
        replyBulk(c, value);
    } else {
        replyNull(c);
    }
}

/* HGET key field. Reply: the value or null. */
void hgetCommand(ctx *c) {
    hotCheck(c->argc == 3);
    robj *o;
    if (hashFindRead(c, &o)) hashReplyField(c, o, c->argv[2]);
}

/* HMGET key field [field ...]. Reply: the values, null for missing fields. */
void hmgetCommand(ctx *c) {
    hotCheck(c->argc >= 3);
    robj *o;
    if (!hashFindRead(c, &o)) return;
    replyArray(c, c->argc - 2);
    for (int i = 2; i < c->argc; i++) hashReplyField(c, o, c->argv[i]);
}

/* HLEN key. Reply: number of fields. */
void hlenCommand(ctx *c) {
    robj *o;
    if (collectionFindToCount(c, 1, TYPE_HASH, &o)) replyInteger(c, collectionCount(o, hashLength));
}

/* HSTRLEN key field. Reply: length of the value in bytes, 0 if missing. */
void hstrlenCommand(ctx *c) {
    hotCheck(c->argc == 3);
    robj *o;
    size_t len;
    if (!hashFindRead(c, &o)) return;
    replyInteger(c, o && hashValueLength(o, c->argv[2], c->look, &len) ? (int64_t)len : 0);
}

/* HEXISTS key field. Reply: 1 or 0. */
void hexistsCommand(ctx *c) {
    hotCheck(c->argc == 3);
    robj *o;
    size_t len;
    if (!hashFindRead(c, &o)) return;
    replyInteger(c, o && hashValueLength(o, c->argv[2], c->look, &len));
}

static void replyFields(ctx *c, const robj *o) {
    hotCheck(objectType(o) == TYPE_HASH);
    hashIterator it;
    slice field;
    hashIteratorInit(&it, o, c->look);
    while (hashNextField(&it, &field)) {
        replyBulk(c, field);
        if (jobPoint(c, 1)) break;
    }
    hashIteratorClear(&it);
}

static void replyPairs(ctx *c, const robj *o, bool fields, bool values) {
    hotCheck(!o || objectType(o) == TYPE_HASH);
    hashIterator it;
    hashPair pair;
    hashIteratorInit(&it, o, c->look);
    while (hashNext(&it, &pair)) {
        if (fields) replyBulk(c, pair.field);
        if (values) replyBulk(c, pair.value);
        if (jobPoint(c, 1)) break;
    }
    hashIteratorClear(&it);
}

/* HGETALL key. Reply: a map. */
void hgetallCommand(ctx *c) {
    robj *o;
    if (!hashFindRead(c, &o) || (o && jobStart(c, hashLength(o)))) return;
    replyMap(c, o ? (int64_t)hashVisibleCount(o, c->look) : 0);
    if (o) replyPairs(c, o, true, true);
}

/* HGETALLEX key. Reply: a map from each field to its value and its expiry time (Unix time in ms,
 * -1: none). */
void hgetallexCommand(ctx *c) {
    robj *o;
    if (!hashFindRead(c, &o) || (o && jobStart(c, hashLength(o)))) return;
    replyMap(c, o ? (int64_t)hashVisibleCount(o, c->look) : 0);
    if (!o) return;
    hashIterator it;
    hashPair pair;
    int64_t time_ms;
    hashIteratorInit(&it, o, c->look);
    while (hashNextTimed(&it, &pair, &time_ms)) {
        replyBulk(c, pair.field);
        replyArray(c, 2);
        replyBulk(c, pair.value);
        replyInteger(c, time_ms); /* HASH_NO_TIME is -1 */
        if (jobPoint(c, 1)) break;
    }
    hashIteratorClear(&it);
}

static void replyHalf(ctx *c, bool fields) {
    robj *o;
    if (!hashFindRead(c, &o) || (o && jobStart(c, hashLength(o)))) return;
    replyArray(c, o ? (int64_t)hashVisibleCount(o, c->look) : 0);
    if (!o) return;
    if (fields) {
        replyFields(c, o);
    } else {
        replyPairs(c, o, false, true);
    }
}

/* HKEYS key. Reply: the fields. */
void hkeysCommand(ctx *c) { replyHalf(c, true); }

/* HVALS key. Reply: the values. */
void hvalsCommand(ctx *c) { replyHalf(c, false); }

/* ------------------------------------------------------------------ HRANDFIELD, HSCAN */

typedef struct pairReply {
    ctx *c;
    bool values, nested; /* each pair as an array of its own */
    scanOptions options; /* of HSCAN */
    collectionScanned scanned;
} pairReply;

static void replyPair(void *arg, const hashPair *pair) {
    pairReply *r = arg;
    if (r->nested) replyArray(r->c, 2);
    replyBulk(r->c, pair->field);
    if (r->values) replyBulk(r->c, pair->value);
}

/* Fields that are visited before one that has not expired can be chosen. */
static uint64_t mostSearched(const robj *o) { return hashTimedCount(o) ? hashLength(o) : 0; }

/* HRANDFIELD key count [WITHVALUES]. */
static void replyRandom(ctx *c, int64_t count, bool values) {
    robj *o;
    if (!hashFindRead(c, &o)) return;
    if (!o || count == 0) {
        replyArray(c, 0);
        return;
    }
    uint64_t wanted = (uint64_t)(count < 0 ? -count : count);
    uint64_t draws = count < 0 ? wanted : sizeMin(wanted, hashLength(o));
    if (jobStart(c, sizeMax(draws, mostSearched(o)))) return;
    uint64_t seen = hashVisibleCount(o, c->look);
    if (count > 0 || !seen) wanted = sizeMin(wanted, seen);
    pairReply r = {.c = c, .values = values, .nested = values && c->proto > 2};
    if (count < -DRAWS_MANY && seen) {
        outmark mark = outbufMark(c->out);
        hashRandom(o, c->look, DRAWS_PROBED, false, replyPair, &r);
        if (!collectionDrawsFit(c, mark, wanted)) return;
    }
    replyArray(c, (int64_t)(wanted * (values && !r.nested ? 2 : 1)));
    hashRandom(o, c->look, wanted, count > 0, replyPair, &r);
}

/* HRANDFIELD key [count [WITHVALUES]]. Reply: a field or null; with a count, that many distinct
 * fields, or if it is negative, that many draws with repetition. */
void hrandfieldCommand(ctx *c) {
    hotCheck(c->argc >= 2);
    int64_t count;
    if (c->argc > 2) {
        if (!collectionArgCount(c, 2, &count)) return;
        bool values = c->argc > 3;
        if (c->argc > 4 || (values && !ctxArgIs(c, 3, "withvalues"))) {
            replyError(c, ERR_SYNTAX_TEXT);
        } else if (values && (count < -INT64_MAX / 2 || count > INT64_MAX / 2)) {
            replyError(c, SLICE("ERR value is out of range"));
        } else {
            replyRandom(c, count, values);
        }
        return;
    }
    robj *o;
    if (!hashFindRead(c, &o) || (o && jobStart(c, mostSearched(o)))) return;
    pairReply r = {.c = c};
    if (o && hashVisibleCount(o, c->look) > 0) {
        hashRandom(o, c->look, 1, false, replyPair, &r);
    } else {
        replyNull(c);
    }
}

static void replyScanned(void *arg, const hashPair *pair) {
    pairReply *r = arg;
    r->scanned.visited++;
    if (!scanMatches(&r->options, pair->field)) return;
    replyPair(r, pair);
    r->scanned.replied += r->values ? 2 : 1;
}

static uint64_t scanSome(ctx *c, const robj *o, uint64_t cursor, void *arg) {
    return hashScan(o, c->look, cursor, replyScanned, arg);
}

/* HSCAN key cursor [MATCH pattern] [COUNT count] [NOVALUES]. Reply: the next cursor and an array of
 * pairs. */
void hscanCommand(ctx *c) {
    uint64_t cursor;
    robj *o;
    pairReply r = {.c = c};
    if (!scanParseCursor(c, 2, &cursor)) return;
    if (!hashFindRead(c, &o)) return;
    if (!o) {
        replyLiteral(c, "*2\r\n$1\r\n0\r\n*0\r\n");
        return;
    }
    if (!scanParseOptions(c, 3, SCAN_HASH, &r.options)) return;
    r.values = !r.options.names_only;
    collectionReplyScan(c, o, cursor, r.options.count, scanSome, &r, &r.scanned);
}
