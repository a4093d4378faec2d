/* SPDX-License-Identifier: BSD-3-Clause
 *
 * CL.THROTTLE: a rate limiter for one key, by the generic cell rate algorithm (GCRA).
 *
 * The key has the theoretical arrival time (TAT): when all that was admitted would have arrived if
 * it had come at the sustained rate. Each admitted unit moves it by one interval. A request is
 * admitted if its TAT is then at most `tolerance` ahead of now. The value is the TAT as a decimal
 * integer, Unix time in ns, as the module redis-cell stores it; the key expires at the TAT, after
 * which a missing key means the same. O(1), one lookup. Main thread only. */
#include "base/base.h"
#include "base/number.h"
#include "cmd/procs.h"
#include "cmd/string_priv.h"
#include "engine/reply.h"
#include "store/store.h"
#include "store/type_string.h"

#define NS_PER_S INT64_C(1000000000)
#define NS_PER_MS INT64_C(1000000)
/* Of intervals, so that their sum with a time does not overflow. */
#define SPAN_MAX (INT64_MAX / 4)

/* What the arguments say; times in ns. */
typedef struct throttle {
    int64_t limit;     /* units that may come at once */
    int64_t interval;  /* between two units at the sustained rate */
    int64_t tolerance; /* of `limit` units */
    int64_t increment; /* of the units of this request */
} throttle;

typedef struct decision {
    bool admitted;
    int64_t tat;      /* after it */
    int64_t retry_ns; /* until it would be admitted; -1: it is, or never would be */
    int64_t reset_ns; /* until all units are available again */
} decision;

/* False: the error was replied. */
static bool parse(ctx *c, throttle *out) {
    hotCheck(c->argc >= 5);
    int64_t burst, count, period, quantity = 1, period_ns;
    if (!ctxArgIntIn(c, 2, 0, INT64_MAX - 1, &burst, NULL)) return false;
    if (!ctxArgIntIn(c, 3, 1, INT64_MAX, &count, NULL)) return false;
    if (!ctxArgIntIn(c, 4, 1, INT64_MAX, &period, NULL)) return false;
    if (c->argc > 6) {
        replyErrorArity(c);
        return false;
    }
    if (c->argc == 6 && !ctxArgIntIn(c, 5, 0, INT64_MAX, &quantity, NULL)) return false;
    out->limit = burst + 1;
    bool fits = numberMul(period, NS_PER_S, &period_ns);
    out->interval = fits ? period_ns / count : 0;
    fits = fits && out->interval && numberMul(out->interval, out->limit, &out->tolerance) &&
           numberMul(out->interval, quantity, &out->increment) && out->tolerance <= SPAN_MAX &&
           out->increment <= SPAN_MAX;
    if (!fits) replyError(c, SLICE("ERR the rate, the burst or the quantity is out of range"));
    return fits;
}

/* The TAT of the key, at least now. False: the error was replied. */
static bool readTat(ctx *c, const robj *o, int64_t now, int64_t *out) {
    char digits[NUMBER_TEXT_MAX];
    *out = now;
    if (!o) return true;
    int64_t tat;
    if (!numberParseInt(objectText(o, digits), &tat) || tat > INT64_MAX - SPAN_MAX) {
        replyError(c, ERR_NOT_INTEGER_TEXT);
        return false;
    }
    if (tat > now) *out = tat;
    return true;
}

static decision decide(const throttle *t, int64_t tat, int64_t now) {
    hotCheck(tat >= now);
    int64_t after = tat + t->increment;
    int64_t early = after - t->tolerance - now; /* before it can be admitted */
    if (early <= 0) return (decision){true, after, -1, after - now};
    return (decision){false, tat, t->increment <= t->tolerance ? early : -1, tat - now};
}

/* Rounded up: who asks again after so many seconds is not too early. */
static int64_t seconds(int64_t ns) { return ns < 0 ? -1 : ns / NS_PER_S + (ns % NS_PER_S > 0); }

static void store(ctx *c, robj *old, int64_t tat) {
    hotCheck(tat > 0);
    char digits[NUMBER_TEXT_MAX], time_digits[NUMBER_TEXT_MAX];
    slice value = sliceMake(digits, numberPrintInt(digits, tat));
    int64_t expire_ms = tat / NS_PER_MS + (tat % NS_PER_MS > 0);
    dbSetString(c->db, c->argv[1], &c->at, old, value, NULL, expire_ms);
    if (engineHot.sinks) {
        slice time = sliceMake(time_digits, numberPrintInt(time_digits, expire_ms));
        slice words[5] = {SLICE("SET"), c->argv[1], value, SLICE("PXAT"), time};
        ctxPropagateAs(c, 5, words);
    }
    stringNotifySet(c, c->argv[1], expire_ms);
}

/* CL.THROTTLE key max_burst count_per_period period [quantity]. Reply: 0 if it is admitted, else
 * 1; the units that may come at once; those left; seconds until it would be admitted, -1 if it is
 * or never would be; seconds until all units are available again. */
void clThrottleCommand(ctx *c) {
    throttle t;
    int64_t tat;
    if (!parse(c, &t)) return;
    robj *old = dbFind(c->db, c->argv[1], c->key_hash, c->look, &c->at);
    if (!stringIsType(c, old)) return;
    /* Not the time of the command, which is in ms: many units may come within one. */
    int64_t now = clockWallUs() * (NS_PER_MS / 1000);
    if (!readTat(c, old, now, &tat)) return;
    decision d = decide(&t, tat, now);
    hotCheck(d.tat >= tat);
    if (d.tat != tat) store(c, old, d.tat);
    int64_t left = (t.tolerance - d.reset_ns) / t.interval;
    replyArray(c, 5);
    replyInteger(c, !d.admitted);
    replyInteger(c, t.limit);
    replyInteger(c, left > 0 ? left : 0);
    replyInteger(c, seconds(d.retry_ns));
    replyInteger(c, seconds(d.reset_ns));
}
