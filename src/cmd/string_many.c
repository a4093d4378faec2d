/* SPDX-License-Identifier: BSD-3-Clause
 *
 * String commands on several keys. Their cache misses overlap (key_walk.h); only the values are
 * allocated. Main thread only. */
#include "base/base.h"
#include "base/number.h"
#include "cmd/key_walk.h"
#include "cmd/procs.h"
#include "cmd/string_priv.h"
#include "engine/reply.h"
#include "store/store.h"

/* MGET key [key ...]. Reply: the values; null for a missing key or another type. */
void mgetCommand(ctx *c) {
    hotCheck(c->argc >= 2);
    replyArray(c, c->argc - 1);
    keyWalk w;
    keyWalkInit(&w, c, 1, c->argc, 1);
    while (keyWalkNext(&w)) {
        const robj *o = dbFindRead(c->db, w.key, w.hash, c->look);
        if (o && objectType(o) == TYPE_STRING) {
            stringReply(c, o);
        } else {
            replyNull(c);
        }
    }
}

/* Sets the key-value pairs at arguments [first, end). With KEEPTTL each key keeps its TTL. */
static void setPairs(ctx *c, int first, int end, const stringOptions *o) {
    keyWalk w;
    keyWalkInit(&w, c, first, end, 2);
    while (keyWalkNext(&w)) {
        robj *old = dbFindHead(c->db, w.key, w.hash, c->look, &c->at);
        bool keeps = o->given & OPTION_KEEPTTL && old;
        dbSetString(c->db, w.key, &c->at, old, c->argv[w.arg_index + 1],
                    stringTakeArg(c, w.arg_index + 1), keeps ? objectExpire(old) : o->expire_ms);
        stringNotifySet(c, w.key, o->expire_ms);
    }
}

/* True if all of these keys exist, or, if `wanted` is false, none of them. */
static bool allAre(ctx *c, int first, int end, bool wanted) {
    keyWalk w;
    keyWalkInit(&w, c, first, end, 2);
    while (keyWalkNext(&w)) {
        bool exists = dbFindHead(c->db, w.key, w.hash, c->look, &c->at) != NULL;
        if (exists != wanted) return false;
    }
    return true;
}

static const stringOptions no_options = {.expire_ms = OBJECT_NO_EXPIRE};

/* False: the error was replied. */
static bool arePairs(ctx *c) {
    if (c->argc % 2 == 1) return true;
    replyErrorArity(c);
    return false;
}

/* MSET key value [key value ...]. Reply: OK. */
void msetCommand(ctx *c) {
    hotCheck(c->argc >= 3);
    if (!arePairs(c)) return;
    setPairs(c, 1, c->argc, &no_options);
    replyOk(c);
}

/* MSETNX key value [key value ...]. Reply: 1, or 0 if a key exists; then nothing is set. */
void msetnxCommand(ctx *c) {
    hotCheck(c->argc >= 3);
    if (!arePairs(c)) return;
    bool none = allAre(c, 1, c->argc, false);
    if (none) setPairs(c, 1, c->argc, &no_options);
    replyInteger(c, none);
}

/* Propagates the request with an absolute time; the options start at argument `first`. */
static void propagateAbsolute(ctx *c, int first, const stringOptions *o) {
    if (!engineHot.sinks || !(o->given & OPTION_TIMES) || o->given & OPTION_PXAT) return;
    slice *words = memAlloc((size_t)c->argc * sizeof(slice));
    memcpy(words, c->argv, (size_t)c->argc * sizeof(slice));
    char digits[NUMBER_TEXT_MAX];
    slice unit = c->argv[o->time - 1];
    for (int i = first; i < o->time; i++) {
        /* It may be given several times. */
        if (!sliceEqualFold(c->argv[i], unit)) continue;
        words[i++] = SLICE("PXAT");
        words[i] = sliceMake(digits, numberPrintInt(digits, o->expire_ms));
    }
    ctxPropagateAs(c, c->argc, words);
    memFree(words);
}

/* MSETEX numkeys key value [key value ...] [NX|XX] [EX s|PX ms|EXAT s|PXAT ms|KEEPTTL]. Reply: 1,
 * or 0 if a condition is not met. With a time in the past the keys are set and expire at the next
 * access. */
void msetexCommand(ctx *c) {
    hotCheck(c->argc >= 4);
    int64_t pairs;
    if (!ctxArgIntIn(c, 1, 1, INT32_MAX, &pairs, "ERR invalid numkeys value or out of range"))
        return;
    if (pairs > (c->argc - 2) / 2) {
        replyError(c, ERR_SYNTAX_TEXT);
        return;
    }
    int end = 2 + (int)pairs * 2;
    stringOptions o;
    if (!stringOptionsParse(c, end, OPTION_NX | OPTION_XX | OPTION_TIMES | OPTION_KEEPTTL, &o))
        return;
    bool allowed = true;
    if (o.given & (OPTION_NX | OPTION_XX)) allowed = allAre(c, 2, end, o.given & OPTION_XX);
    if (allowed) {
        setPairs(c, 2, end, &o);
        propagateAbsolute(c, end, &o);
    }
    replyInteger(c, allowed);
}
