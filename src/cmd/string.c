/* SPDX-License-Identifier: BSD-3-Clause
 *
 * String commands on one key: setting, reading, deleting, ranges, counters. A value is copied once,
 * from the request's bytes to the object (SET) or from the object to the output block (GET);
 * incrementing allocates nothing. Commands on several keys: string_many.c. Main thread only. */
#include <math.h>

#include "base/base.h"
#include "base/number.h"
#include "cmd/procs.h"
#include "cmd/string_priv.h"
#include "engine/keyspace.h"
#include "engine/options.h"
#include "engine/reply.h"
#include "store/store.h"
#include "store/type_string.h"

#define TOO_LONG_TEXT SLICE("ERR string exceeds maximum allowed size (proto-max-bulk-len)")
#define OVERFLOW_TEXT SLICE("ERR increment or decrement would overflow")

/* ------------------------------------------------------------------ common functions */

static NO_INLINE void replyNotEmbedded(ctx *c, const robj *o) {
    char digits[NUMBER_TEXT_MAX];
    if (objectForm(o) == FORM_POINTER) {
        blob *bytes = objectPointer(o);
        respBulkBlob(c->out, bytes, 0, bytes->len);
    } else {
        replyBulk(c, objectText(o, digits));
    }
}

void stringReply(ctx *c, const robj *o) {
    if (likely(objectForm(o) <= FORM_EMBED_RAW)) {
        replyBulk(c, objectEmbedded(o));
    } else {
        replyNotEmbedded(c, o);
    }
}

void stringReplyNoMemory(ctx *c) {
    replyError(c, SLICE("OOM not enough memory for a string of this size"));
}

/* Looks up the first key for reading. *out is NULL if it is missing. False: the error was
 * replied. */
static bool findRead(ctx *c, robj **out) {
    *out = dbFindRead(c->db, c->argv[1], c->key_hash, c->look);
    return stringIsType(c, *out);
}

/* Like findRead(), for writing. */
static bool findWrite(ctx *c, robj **out) {
    *out = dbFind(c->db, c->argv[1], c->key_hash, c->look, &c->at);
    return stringIsType(c, *out);
}

/* Like findRead(), when the value is not read. */
static bool findReadHead(ctx *c, robj **out) {
    *out = dbFindReadHead(c->db, c->argv[1], c->key_hash, c->look);
    return stringIsType(c, *out);
}

/* Looks up the first key, which was found, once more: its object, and where a change of it goes. */
static robj *findAgain(ctx *c) {
    robj *o = dbFindHead(c->db, c->argv[1], c->key_hash, c->look, &c->at);
    check(o != NULL);
    return o;
}

static void replyStringOrNull(ctx *c, const robj *o) {
    if (o) {
        stringReply(c, o);
    } else {
        replyNull(c);
    }
}

/* Sets the first key to argument `value`. `old` is the result of dbFindHead(). */
static void setValue(ctx *c, robj *old, int value, int64_t expire_ms) {
    dbSetString(c->db, c->argv[1], &c->at, old, c->argv[value], stringTakeArg(c, value), expire_ms);
}

/* Propagates: name key [value] [word time], with an absolute time. */
static void propagateTime(ctx *c, slice name, const slice *value, const char *word, int64_t time) {
    hotCheck(c->argc > 1);
    if (!engineHot.sinks) return;
    slice words[5] = {name, c->argv[1]};
    char digits[NUMBER_TEXT_MAX];
    int n = 2;
    if (value) words[n++] = *value;
    if (word) words[n++] = sliceOf(word);
    words[n++] = sliceMake(digits, numberPrintInt(digits, time));
    ctxPropagateAs(c, n, words);
}

/* ------------------------------------------------------------------ SET and variants */

/* Sets *out to whether NX, XX, IFEQ and similar options permit the operation. False: the error was
 * replied. */
static bool setIsAllowed(ctx *c, const stringOptions *o, const robj *old, bool *out) {
    *out = true;
    if (o->given & OPTION_NX) *out = old == NULL;
    if (o->given & OPTION_XX) *out = old != NULL;
    uint32_t compares = o->given & OPTION_COMPARES;
    return !compares || stringMeets(c, compares, old, c->argv[o->compare], out);
}

/* Propagates the request without GET. */
static void propagateWithoutGet(ctx *c, const stringOptions *o) {
    if (!engineHot.sinks) return;
    slice *words = memAlloc((size_t)c->argc * sizeof(slice));
    int n = 0;
    for (int i = 0; i < c->argc; i++) {
        bool is_option = i >= 3 && i != o->compare;
        if (!is_option || !ctxArgIs(c, i, "get")) words[n++] = c->argv[i];
    }
    ctxPropagateAs(c, n, words);
    memFree(words);
}

/* SET with options: propagated with an absolute time and without conditions. A request with an
 * absolute time is propagated unchanged, unless it has options that Valkey 9.1 does not know. */
static void propagateSet(ctx *c, const stringOptions *o) {
    bool extended = o->given & OPTION_EXTENDED;
    if (o->given & OPTION_PXAT && !extended) return;
    if (o->given & OPTION_TIMES) {
        slice name = c->argc == 5 ? c->argv[0] : SLICE("SET");
        propagateTime(c, name, &c->argv[2], "PXAT", o->expire_ms);
    } else if (extended) {
        slice words[4] = {SLICE("SET"), c->argv[1], c->argv[2], SLICE("KEEPTTL")};
        ctxPropagateAs(c, o->given & OPTION_KEEPTTL ? 4 : 3, words);
    } else if (o->given & OPTION_GET) {
        propagateWithoutGet(c, o);
    }
}

static void setAndPropagate(ctx *c, robj *old, const stringOptions *o) {
    if (o->given & OPTION_TIMES && keyspaceIsPast(c, o->expire_ms)) {
        if (old) keyspaceExpireNow(c, c->argv[1], c->key_hash);
        return;
    }
    bool keeps = o->given & OPTION_KEEPTTL && old;
    setValue(c, old, 2, keeps ? objectExpire(old) : o->expire_ms);
    propagateSet(c, o);
    stringNotifySet(c, c->argv[1], o->expire_ms);
}

static NO_INLINE void setWithOptions(ctx *c) {
    const uint32_t known =
        OPTION_NX | OPTION_XX | OPTION_COMPARES | OPTION_GET | OPTION_TIMES | OPTION_KEEPTTL;
    stringOptions o;
    if (!stringOptionsParse(c, 3, known, &o)) return;
    bool wants_old = o.given & OPTION_GET;
    robj *old = wants_old ? dbFindReadAt(c->db, c->argv[1], c->key_hash, c->look, &c->at)
                          : dbFind(c->db, c->argv[1], c->key_hash, c->look, &c->at);
    bool allowed;
    if (o.given & (OPTION_GET | OPTION_COMPARES) && !stringIsType(c, old)) return;
    if (!setIsAllowed(c, &o, old, &allowed)) return;
    if (wants_old) replyStringOrNull(c, old);
    if (allowed) {
        setAndPropagate(c, old, &o);
        if (!wants_old) replyOk(c);
    } else if (!wants_old) {
        replyNull(c);
    }
}

/* SET key value [NX|XX|IFEQ value|IFNE value|IFDEQ digest|IFDNE digest] [GET] [EX s|PX ms|EXAT
 * s|PXAT ms|KEEPTTL]. Reply: OK, null if a
 * condition is not met, the old value with GET. */
void setCommand(ctx *c) {
    hotCheck(c->argc >= 3);
    if (unlikely(c->argc > 3)) {
        setWithOptions(c);
        return;
    }
    robj *old = dbFindHead(c->db, c->argv[1], c->key_hash, c->look, &c->at);
    setValue(c, old, 2, OBJECT_NO_EXPIRE);
    ctxKeyChanged(c, c->argv[1], &eventSet);
    replyOk(c);
}

/* SETNX key value. Reply: 1, or 0 if the key exists. */
void setnxCommand(ctx *c) {
    hotCheck(c->argc == 3);
    if (dbFindHead(c->db, c->argv[1], c->key_hash, c->look, &c->at)) {
        replyInteger(c, 0);
        return;
    }
    setValue(c, NULL, 2, OBJECT_NO_EXPIRE);
    ctxKeyChanged(c, c->argv[1], &eventSet);
    replyInteger(c, 1);
}

static void setForTime(ctx *c, enum stringOption unit) {
    int64_t expire_ms;
    if (!stringParseTime(c, c->argv[2], unit, &expire_ms)) return;
    robj *old = dbFindHead(c->db, c->argv[1], c->key_hash, c->look, &c->at);
    setValue(c, old, 3, expire_ms);
    propagateTime(c, SLICE("SET"), &c->argv[3], "PXAT", expire_ms);
    stringNotifySet(c, c->argv[1], expire_ms);
    replyOk(c);
}

/* SETEX key seconds value. Reply: OK. */
void setexCommand(ctx *c) { setForTime(c, OPTION_EX); }

/* PSETEX key milliseconds value. Reply: OK. */
void psetexCommand(ctx *c) { setForTime(c, OPTION_PX); }

/* GETSET key value. Reply: the old value or null. */
void getsetCommand(ctx *c) {
    hotCheck(c->argc == 3);
    robj *old = dbFindReadAt(c->db, c->argv[1], c->key_hash, c->look, &c->at);
    if (!stringIsType(c, old)) return;
    replyStringOrNull(c, old);
    setValue(c, old, 2, OBJECT_NO_EXPIRE);
    slice words[3] = {SLICE("SET"), c->argv[1], c->argv[2]};
    ctxPropagateAs(c, 3, words);
    ctxKeyChanged(c, c->argv[1], &eventSet);
}

/* ------------------------------------------------------------------ reading and deleting */

/* GET key. Reply: the value or null. */
void getCommand(ctx *c) {
    robj *o;
    if (findRead(c, &o)) replyStringOrNull(c, o);
}

/* STRLEN key. Reply: its length, 0 if the key is missing. */
void strlenCommand(ctx *c) {
    robj *o;
    if (findReadHead(c, &o)) replyInteger(c, o ? (int64_t)stringLen(o) : 0);
}

/* GETDEL key. Reply: the value or null. */
void getdelCommand(ctx *c) {
    robj *o;
    if (!findRead(c, &o)) return;
    replyStringOrNull(c, o);
    if (o) stringDeleteKey(c);
}

/* DELIFEQ key value. Reply: 1 if the key had this value and was deleted, else 0. */
void delifeqCommand(ctx *c) {
    hotCheck(c->argc == 3);
    robj *o;
    if (!findWrite(c, &o)) return;
    char digits[NUMBER_TEXT_MAX];
    bool equal = o && sliceEqual(objectText(o, digits), c->argv[2]);
    if (equal) stringDeleteKey(c);
    replyInteger(c, equal);
}

/* GETEX key [EX s|PX ms|EXAT s|PXAT ms|PERSIST]. Reply: the value or null. */
void getexCommand(ctx *c) {
    hotCheck(c->argc >= 2);
    stringOptions options;
    if (!stringOptionsParse(c, 2, OPTION_TIMES | OPTION_PERSIST, &options)) return;
    robj *o;
    if (!findRead(c, &o)) return;
    replyStringOrNull(c, o);
    if (!o) return;
    if (options.given & OPTION_TIMES) {
        if (keyspaceIsPast(c, options.expire_ms)) {
            keyspaceExpireNow(c, c->argv[1], c->key_hash);
            return;
        }
        dbPlace(c->db, &c->at, objectSetExpire(findAgain(c), options.expire_ms));
        propagateTime(c, SLICE("PEXPIREAT"), NULL, NULL, options.expire_ms);
        ctxKeyChanged(c, c->argv[1], &eventExpire);
    } else if (options.given & OPTION_PERSIST && objectHasExpire(o)) {
        dbPlace(c->db, &c->at, objectSetExpire(findAgain(c), OBJECT_NO_EXPIRE));
        slice words[2] = {SLICE("PERSIST"), c->argv[1]};
        ctxPropagateAs(c, 2, words);
        ctxKeyChanged(c, c->argv[1], &eventPersist);
    }
}

/* ------------------------------------------------------------------ ranges */

/* Converts start and end, negative ones counted from the end, to a byte range within `len`. */
static void clampRange(int64_t start, int64_t end, size_t len, size_t *from, size_t *count) {
    int64_t size = (int64_t)len;
    *from = *count = 0;
    if (start < 0 && end < 0 && start > end) return;
    if (start < 0) start = start < -size ? 0 : start + size;
    if (end < 0) end = end < -size ? 0 : end + size;
    if (end >= size) end = size - 1;
    if (start > end) return;
    *from = (size_t)start;
    *count = (size_t)(end - start + 1);
}

/* GETRANGE key start end. Reply: the bytes from start to end inclusive. */
void getrangeCommand(ctx *c) {
    int64_t start, end;
    if (!ctxArgInt(c, 2, &start)) return;
    if (!ctxArgInt(c, 3, &end)) return;
    robj *o;
    if (!findRead(c, &o)) return;
    char digits[NUMBER_TEXT_MAX];
    slice text = o ? objectText(o, digits) : SLICE("");
    size_t from, count;
    clampRange(start, end, text.len, &from, &count);
    if (o && objectForm(o) == FORM_POINTER) {
        respBulkBlob(c->out, objectPointer(o), from, count);
    } else {
        replyBulk(c, sliceMake(text.ptr + from, count));
    }
}

/* SUBSTR key start end: the old name of GETRANGE. */
void substrCommand(ctx *c) { getrangeCommand(c); }

/* Writes `bytes` at `offset`; `o` is the current value, NULL for a new key. False: the error was
 * replied. */
static bool writeAt(ctx *c, robj *o, size_t offset, slice bytes, size_t *len) {
    *len = offset + bytes.len;
    if (*len > (uint64_t)engineBulkMax()) {
        replyError(c, TOO_LONG_TEXT);
        return false;
    }
    char *text;
    status st = o ? stringStretch(&o, *len, &text) : stringNewRaw(c->argv[1], *len, &o, &text);
    if (st != OK) {
        stringReplyNoMemory(c);
        return false;
    }
    memcpy(text + offset, bytes.ptr, bytes.len);
    *len = stringLen(o);
    dbPlace(c->db, &c->at, o);
    return true;
}

/* SETRANGE key offset value. Reply: the new length. */
void setrangeCommand(ctx *c) {
    hotCheck(c->argc == 4);
    int64_t offset;
    if (!ctxArgInt(c, 2, &offset)) return;
    if (offset < 0) {
        replyError(c, SLICE("ERR offset is out of range"));
        return;
    }
    robj *o;
    if (!findWrite(c, &o)) return;
    size_t len = 0;
    if (c->argv[3].len == 0) {
        if (o) len = stringLen(o);
    } else {
        if (!writeAt(c, o, (size_t)offset, c->argv[3], &len)) return;
        ctxKeyChanged(c, c->argv[1], &eventSetrange);
    }
    replyInteger(c, (int64_t)len);
}

/* APPEND key value. Reply: the new length. */
void appendCommand(ctx *c) {
    hotCheck(c->argc == 3);
    robj *o;
    if (!findWrite(c, &o)) return;
    size_t len = c->argv[2].len;
    if (!o) {
        setValue(c, NULL, 2, OBJECT_NO_EXPIRE);
    } else if (!writeAt(c, o, stringLen(o), c->argv[2], &len)) {
        return;
    }
    ctxKeyChanged(c, c->argv[1], &eventAppend);
    replyInteger(c, (int64_t)len);
}

/* ------------------------------------------------------------------ counters */

/* All cases of increment(): `o` is the value of the first key, or NULL. */
static NO_INLINE void incrementAny(ctx *c, robj *o, int64_t by) {
    int64_t value = 0;
    if (o && !stringToInt(o, &value)) {
        replyError(c, ERR_NOT_INTEGER_TEXT);
        return;
    }
    if (!numberAdd(value, by, &value)) {
        replyError(c, OVERFLOW_TEXT);
        return;
    }
    o = o ? stringSetInt(o, value) : objectNewInt(c->argv[1], value, OBJECT_NO_EXPIRE, 0);
    dbPlace(c->db, &c->at, o);
    ctxKeyChanged(c, c->argv[1], &eventIncrby);
    replyInteger(c, value);
}

static void increment(ctx *c, int64_t by) {
    robj *o = dbFind(c->db, c->argv[1], c->key_hash, c->look, &c->at);
    if (!stringIsType(c, o)) return;
    objectSum sum = likely(o != NULL) ? objectAddInt(o, by) : (objectSum){0, false};
    if (unlikely(!sum.done)) {
        incrementAny(c, o, by);
        return;
    }
    ctxKeyChanged(c, c->argv[1], &eventIncrby);
    replyInteger(c, sum.value);
}

/* INCR key. Reply: the new value, as for all commands in this section. */
void incrCommand(ctx *c) { increment(c, 1); }

/* DECR key. */
void decrCommand(ctx *c) { increment(c, -1); }

/* INCRBY key increment. */
void incrbyCommand(ctx *c) {
    int64_t by;
    if (ctxArgInt(c, 2, &by)) increment(c, by);
}

/* DECRBY key decrement. */
void decrbyCommand(ctx *c) {
    int64_t by;
    if (!ctxArgInt(c, 2, &by)) return;
    if (by == INT64_MIN) {
        replyError(c, SLICE("ERR decrement would overflow"));
        return;
    }
    increment(c, -by);
}

/* INCRBYFLOAT key increment. Reply: the new value as text. Propagated as SET, so that replicas have
 * the same digits. */
void incrbyfloatCommand(ctx *c) {
    hotCheck(c->argc == 3);
    robj *o;
    if (!findWrite(c, &o)) return;
    char text[LONG_DOUBLE_TEXT_MAX];
    long double value = 0, by;
    if ((o && !numberParseLongDouble(objectText(o, text), &value)) ||
        !numberParseLongDouble(c->argv[2], &by)) {
        replyError(c, ERR_NOT_FLOAT_TEXT);
        return;
    }
    value += by;
    if (isnan(value) || isinf(value)) {
        replyError(c, SLICE("ERR increment would produce NaN or Infinity"));
        return;
    }
    slice result = sliceMake(text, numberPrintLongDouble(text, value));
    o = o ? stringSetText(o, result)
          : objectNewString(c->argv[1], result, OBJECT_NO_EXPIRE, 0, KEEP_TEXT);
    dbPlace(c->db, &c->at, o);
    slice words[4] = {SLICE("SET"), c->argv[1], result, SLICE("KEEPTTL")};
    ctxPropagateAs(c, 4, words);
    ctxKeyChanged(c, c->argv[1], &eventIncrbyfloat);
    replyBulk(c, result);
}
