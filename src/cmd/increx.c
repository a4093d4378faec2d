/* SPDX-License-Identifier: BSD-3-Clause
 *
 * INCREX: a counter with bounds and an expiry time in one step, as in Valkey 9.2 and Redis 8.8.
 * Invariant: a step that is not taken changes neither value nor expiry time; one that is taken is
 * propagated as SET with the result. Main thread only. */
#include <float.h>
#include <math.h>

#include "base/base.h"
#include "base/number.h"
#include "cmd/cmd_priv.h"
#include "cmd/procs.h"
#include "cmd/string_priv.h"
#include "engine/keyspace.h"
#include "engine/reply.h"
#include "store/store.h"
#include "store/type_string.h"

enum increxFlag {
    INCREX_NX = 1,
    INCREX_XX = 2,
    INCREX_SATURATE = 4,
    INCREX_PERSIST = 8,
    INCREX_ENX = 16,
    INCREX_TIME = 32,
};

/* The options. The numbers are those of the kind that the increment has. */
typedef struct increx {
    uint32_t flags; /* enum increxFlag */
    bool is_float;
    int by, lower, upper, time; /* indexes of the numbers in argv, 0: not given */
    enum stringOption unit;     /* of the time */
    int64_t expire_ms;          /* with INCREX_TIME */
    int64_t int_by, int_min, int_max;
    long double float_by, float_min, float_max;
} increx;

/* The outcome of the addition. */
typedef struct increxStep {
    bool taken;                  /* false: the value stays as it is */
    int64_t int_now, int_change; /* the value after it, and what was added */
    long double float_now, float_change;
} increxStep;

/* ------------------------------------------------------------------ arguments */

/* Notes an option that is followed by a number; false if there is none, or it was given before. */
static bool takeNumber(const ctx *c, int *i, int *index) {
    hotCheck(*i < c->argc);
    if (*index || *i + 1 == c->argc) return false;
    *index = ++*i;
    return true;
}

static bool takeFlag(increx *o, uint32_t flag) {
    bool is_new = !(o->flags & flag);
    o->flags |= flag;
    return is_new;
}

static bool takeTime(const ctx *c, increx *o, int *i, enum stringOption unit) {
    o->unit = unit;
    return takeFlag(o, INCREX_TIME) && takeNumber(c, i, &o->time);
}

/* Takes option `*i`; false: it is none, or given twice. */
static bool takeOption(const ctx *c, increx *o, int *i) {
    hotCheck(*i > 1);
    if (ctxArgIs(c, *i, "nx")) return takeFlag(o, INCREX_NX);
    if (ctxArgIs(c, *i, "xx")) return takeFlag(o, INCREX_XX);
    if (ctxArgIs(c, *i, "saturate")) return takeFlag(o, INCREX_SATURATE);
    if (ctxArgIs(c, *i, "persist")) return takeFlag(o, INCREX_PERSIST);
    if (ctxArgIs(c, *i, "enx")) return takeFlag(o, INCREX_ENX);
    if (ctxArgIs(c, *i, "ex")) return takeTime(c, o, i, OPTION_EX);
    if (ctxArgIs(c, *i, "px")) return takeTime(c, o, i, OPTION_PX);
    if (ctxArgIs(c, *i, "exat")) return takeTime(c, o, i, OPTION_EXAT);
    if (ctxArgIs(c, *i, "pxat")) return takeTime(c, o, i, OPTION_PXAT);
    if (ctxArgIs(c, *i, "lbound")) return takeNumber(c, i, &o->lower);
    if (ctxArgIs(c, *i, "ubound")) return takeNumber(c, i, &o->upper);
    bool is_float = ctxArgIs(c, *i, "byfloat");
    if (!is_float && !ctxArgIs(c, *i, "byint")) return false;
    o->is_float = is_float;
    return takeNumber(c, i, &o->by);
}

/* Parses a bound; a name is "LBOUND" or "UBOUND". False: the error was replied. */
static bool parseBound(ctx *c, const increx *o, int index, const char *name, int64_t *as_int,
                       long double *as_float) {
    hotCheck(index >= 0);
    if (!index) return true;
    if (o->is_float ? numberParseLongDouble(c->argv[index], as_float)
                    : numberParseInt(c->argv[index], as_int))
        return true;
    replyErrorFormat(c, "ERR %s is not %s", name,
                     o->is_float ? "a valid float" : "an integer or out of range");
    return false;
}

static bool parseIncrement(ctx *c, increx *o) {
    hotCheck(o->by >= 0);
    o->int_by = 1;
    if (!o->by) return true;
    slice text = c->argv[o->by];
    if (!o->is_float) {
        if (numberParseInt(text, &o->int_by)) return true;
        replyError(c, SLICE("ERR Increment is not an integer or out of range"));
        return false;
    }
    if (!numberParseLongDouble(text, &o->float_by)) {
        replyError(c, SLICE("ERR Increment is not a valid float"));
        return false;
    }
    if (!isinf((double)o->float_by)) return true;
    replyError(c, SLICE("ERR BYFLOAT increment cannot be Infinity"));
    return false;
}

/* Parses the numbers. False: the error was replied. */
static bool parseNumbers(ctx *c, increx *o) {
    hotCheck(c->argc > 1);
    o->int_min = INT64_MIN;
    o->int_max = INT64_MAX;
    o->float_min = -DBL_MAX;
    o->float_max = DBL_MAX;
    if (!parseIncrement(c, o)) return false;
    if (!parseBound(c, o, o->lower, "LBOUND", &o->int_min, &o->float_min)) return false;
    if (!parseBound(c, o, o->upper, "UBOUND", &o->int_max, &o->float_max)) return false;
    if (o->is_float ? o->float_min > o->float_max : o->int_min > o->int_max) {
        replyError(c, SLICE("ERR LBOUND can't be greater than UBOUND"));
        return false;
    }
    /* An infinite bound is none: the value stays a finite double. */
    if (o->float_min < -DBL_MAX) o->float_min = -DBL_MAX;
    if (o->float_max > DBL_MAX) o->float_max = DBL_MAX;
    return !o->time || stringParseTime(c, c->argv[o->time], o->unit, &o->expire_ms);
}

static bool parse(ctx *c, increx *o) {
    *o = (increx){.expire_ms = OBJECT_NO_EXPIRE};
    bool valid = true;
    for (int i = 2; i < c->argc && valid; i++) valid = takeOption(c, o, &i);
    const uint32_t both = INCREX_NX | INCREX_XX;
    if ((o->flags & both) == both) valid = false;
    if (o->flags & INCREX_PERSIST && o->flags & (INCREX_TIME | INCREX_ENX)) valid = false;
    if (!valid) {
        replyError(c, ERR_SYNTAX_TEXT);
        return false;
    }
    if (o->flags & INCREX_ENX && !(o->flags & INCREX_TIME)) {
        replyError(c, SLICE("ERR ENX flag requires an expiration"));
        return false;
    }
    return parseNumbers(c, o);
}

/* ------------------------------------------------------------------ the step */

/* Reads the present value to `s`; a missing one is 0. False: the error was replied. */
static bool readValue(ctx *c, const increx *o, const robj *old, increxStep *s) {
    *s = (increxStep){0};
    if (!old) return true;
    if (!o->is_float) {
        if (stringToInt(old, &s->int_now)) return true;
        replyError(c, ERR_NOT_INTEGER_TEXT);
        return false;
    }
    char text[LONG_DOUBLE_TEXT_MAX];
    if (!numberParseLongDouble(objectText(old, text), &s->float_now)) {
        replyError(c, ERR_NOT_FLOAT_TEXT);
        return false;
    }
    if (!isinf((double)s->float_now)) return true;
    replyError(c, SLICE("ERR value cannot be Infinity"));
    return false;
}

/* Adds to an integer; false: what is added to reach a bound is too large, and the error was
 * replied. */
static bool addInt(ctx *c, const increx *o, increxStep *s) {
    hotCheck(o->int_min <= o->int_max);
    int64_t sum;
    bool overflows = !numberAdd(s->int_now, o->int_by, &sum);
    if (overflows) sum = o->int_by > 0 ? INT64_MAX : INT64_MIN;
    s->taken = !overflows && sum >= o->int_min && sum <= o->int_max;
    if (!s->taken && !(o->flags & INCREX_SATURATE)) return true;
    s->taken = true;
    if (sum < o->int_min) sum = o->int_min;
    if (sum > o->int_max) sum = o->int_max;
    if (__builtin_sub_overflow(sum, s->int_now, &s->int_change)) {
        replyError(c, SLICE("ERR applied increment would overflow"));
        return false;
    }
    s->int_now = sum;
    return true;
}

/* The same for a float. */
static bool addFloat(ctx *c, const increx *o, increxStep *s) {
    hotCheck(o->float_min <= o->float_max);
    long double sum = s->float_now + o->float_by;
    s->taken = sum >= o->float_min && sum <= o->float_max;
    if (!s->taken && !(o->flags & INCREX_SATURATE)) return true;
    s->taken = true;
    if (sum < o->float_min) sum = o->float_min;
    if (sum > o->float_max) sum = o->float_max;
    s->float_change = sum - s->float_now;
    if (isinf((double)s->float_change)) {
        replyError(c, SLICE("ERR applied increment would be Infinity"));
        return false;
    }
    s->float_now = sum;
    return true;
}

/* ------------------------------------------------------------------ the change */

/* Propagates SET key value [PXAT ms | KEEPTTL]. */
static void propagateResult(ctx *c, slice value, int64_t expire_ms) {
    hotCheck(value.len > 0);
    if (!engineHot.sinks) return;
    slice words[5] = {SLICE("SET"), c->argv[1], value};
    char digits[NUMBER_TEXT_MAX];
    int count = 3;
    if (expire_ms != OBJECT_NO_EXPIRE) {
        words[count++] = SLICE("PXAT");
        words[count++] = sliceMake(digits, numberPrintInt(digits, expire_ms));
    }
    ctxPropagateAs(c, count, words);
}

static void tell(ctx *c, const keyEvent *event) {
    if (engineHot.observers) ctxTellObservers(c, c->argv[1], event);
}

/* Stores the result of a step that is taken, with its text and the expiry time. */
static void store(ctx *c, const increx *o, robj *old, const increxStep *s, slice text) {
    const keyEvent *event = o->is_float ? &eventIncrbyfloat : &eventIncrby;
    int64_t before = old ? objectExpire(old) : OBJECT_NO_EXPIRE, after = before;
    bool sets_time =
        o->flags & INCREX_TIME && !(o->flags & INCREX_ENX && before != OBJECT_NO_EXPIRE);
    if (sets_time) after = o->expire_ms;
    if (o->flags & INCREX_PERSIST) after = OBJECT_NO_EXPIRE;
    bool is_past = sets_time && keyspaceIsPast(c, after);
    if (is_past && !old) return;
    robj *now;
    if (!old) {
        now = o->is_float ? objectNewString(c->argv[1], text, after, 0, KEEP_TEXT)
                          : objectNewInt(c->argv[1], s->int_now, after, 0);
    } else {
        now = o->is_float ? stringSetText(old, text) : stringSetInt(old, s->int_now);
        if (after != before && !is_past) now = objectSetExpire(now, after);
    }
    dbPlace(c->db, &c->at, now);
    if (is_past) {
        tell(c, event);
        stringDeleteKey(c);
        return;
    }
    propagateResult(c, text, after);
    ctxKeyChanged(c, c->argv[1], event);
    if (sets_time) tell(c, &eventExpire);
    if (o->flags & INCREX_PERSIST && before != OBJECT_NO_EXPIRE) tell(c, &eventPersist);
}

/* ------------------------------------------------------------------ the reply */

static void replyNumber(ctx *c, bool is_float, int64_t number, slice text) {
    if (is_float) {
        replyDoubleText(c, text);
    } else {
        replyInteger(c, number);
    }
}

/* The form of the first candidate of 9.2: the new value alone, and an error outside of the
 * bounds. */
static void replySingle(ctx *c, const increx *o, const increxStep *s, bool is_met, slice text) {
    if (!is_met) {
        replyNull(c);
    } else if (!s->taken) {
        replyError(c, SLICE("ERR increment or decrement would overflow"));
    } else {
        replyNumber(c, o->is_float, s->int_now, text);
    }
}

static void replyStep(ctx *c, const increx *o, const increxStep *s, bool is_met, slice text) {
    hotCheck(is_met || !s->taken);
    if (cmdConf.increx_reply == INCREX_REPLY_SINGLE) {
        replySingle(c, o, s, is_met, text);
        return;
    }
    char change[LONG_DOUBLE_TEXT_MAX];
    size_t len = o->is_float ? numberPrintLongDouble(change, s->float_change) : 0;
    replyArray(c, 2);
    replyNumber(c, o->is_float, s->int_now, text);
    replyNumber(c, o->is_float, s->int_change, sliceMake(change, len));
}

/* INCREX key [NX|XX] [BYINT n|BYFLOAT f] [LBOUND n] [UBOUND n] [SATURATE] [EX s|PX ms|EXAT s|PXAT
 * ms|PERSIST] [ENX]. Reply: the value and what was added to it, 0 if a condition is not met or the
 * value would leave its bounds. */
void increxCommand(ctx *c) {
    hotCheck(c->argc >= 2);
    increx o;
    increxStep s;
    if (!parse(c, &o)) return;
    robj *old = dbFind(c->db, c->argv[1], c->key_hash, c->look, &c->at);
    if (!stringIsType(c, old) || !readValue(c, &o, old, &s)) return;
    bool is_met = old ? !(o.flags & INCREX_NX) : !(o.flags & INCREX_XX);
    if (is_met && !(o.is_float ? addFloat(c, &o, &s) : addInt(c, &o, &s))) return;
    char text[LONG_DOUBLE_TEXT_MAX];
    size_t len =
        o.is_float ? numberPrintLongDouble(text, s.float_now) : numberPrintInt(text, s.int_now);
    if (s.taken) store(c, &o, old, &s, sliceMake(text, len));
    replyStep(c, &o, &s, is_met, sliceMake(text, len));
}
