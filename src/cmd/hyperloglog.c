/* SPDX-License-Identifier: BSD-3-Clause
 *
 * HyperLogLog commands: strings in the format of ds/hyperloglog.h. Main thread only. */
#include "ds/hyperloglog.h"

#include "base/base.h"
#include "base/number.h"
#include "base/str.h"
#include "cmd/cmd_priv.h"
#include "cmd/collection.h"
#include "cmd/key_walk.h"
#include "cmd/procs.h"
#include "cmd/string_priv.h"
#include "engine/job.h"
#include "store/compressed.h"
#include "store/type_string.h"

static void replyBroken(ctx *c) {
    replyError(c, SLICE("INVALIDOBJ Corrupted HLL object detected"));
}

/* ------------------------------------------------------------------ changing one value */

/* True if the value (NULL: missing) is a HyperLogLog. False: the error was replied. */
static bool isHll(ctx *c, const robj *o) {
    if (!stringIsType(c, o)) return false;
    char digits[NUMBER_TEXT_MAX];
    if (!o || hllIsValid(objectText(o, digits))) return true;
    replyError(c, SLICE("WRONGTYPE Key is not a valid HyperLogLog string value."));
    return false;
}

static slice hllBytes(const robj *o) { return objectText(o, NULL); }

/* Makes the string raw and writable with `spare` extra bytes; its address may change. */
static char *makeWritable(robj **o, size_t spare) {
    char *bytes;
    check(stringStretch(o, hllBytes(*o).len + spare, &bytes) ==
          OK); /* a few kilobytes: never refused */
    return bytes;
}

static robj *newHll(slice key) {
    robj *o;
    char *bytes;
    check(stringNewRaw(key, HLL_NEW_BYTES, &o, &bytes) == OK);
    hllInit(bytes);
    return o;
}

/* Replaces the value by a dense one with these registers and the same header. */
static robj *setDense(robj *o, const uint8_t *registers) {
    hotCheck(objectType(o) == TYPE_STRING);
    blob *b = blobNew(HLL_DENSE_BYTES);
    memcpy(b->bytes, hllBytes(o).ptr, HLL_HEAD_BYTES);
    hllWriteDense(b->bytes, registers);
    b->len = HLL_DENSE_BYTES;
    return stringSetTake(o, b);
}

/* False if the value is corrupt. */
static bool makeDense(robj **o) {
    if (!hllIsSparse(hllBytes(*o).ptr)) return true;
    uint8_t registers[HLL_REGISTERS] = {0};
    if (!hllMergeInto(registers, hllBytes(*o))) return false;
    *o = setDense(*o, registers);
    return true;
}

/* Raises one register in either representation; never returns HLL_FULL. */
static hllOutcome raiseRegister(robj **o, hllUpdate place) {
    hotCheck(place.index < HLL_REGISTERS);
    hllOutcome outcome = HLL_FULL;
    if (hllIsSparse(hllBytes(*o).ptr)) {
        outcome = hllTrySparse(hllBytes(*o), place);
        if (outcome == HLL_CHANGED) {
            size_t len = hllBytes(*o).len;
            char *bytes = makeWritable(o, HLL_GROWTH_MAX);
            outcome = hllRaiseSparse(bytes, &len, (size_t)cmdConf.hll_sparse_max_bytes, place);
            stringCut(o, len);
        }
        if (outcome == HLL_FULL && !makeDense(o)) return HLL_CORRUPT;
    }
    if (outcome != HLL_FULL) return outcome;
    return hllRaiseDense(makeWritable(o, 0), place) ? HLL_CHANGED : HLL_SAME;
}

/* PFADD key [element ...]. Reply: 1 if the estimate may have changed or the key is new, else 0. */
void pfaddCommand(ctx *c) {
    hotCheck(c->argc >= 2);
    robj *o = dbFind(c->db, c->argv[1], c->key_hash, c->look, &c->at);
    if (!isHll(c, o)) return;
    uint64_t changes = !o;
    hllOutcome outcome = HLL_SAME;
    if (o) {
        (void)makeWritable(&o, 0); /* stays raw from now on */
    } else {
        o = newHll(c->argv[1]);
    }
    for (int i = 2; i < c->argc && outcome != HLL_CORRUPT; i++) {
        outcome = raiseRegister(&o, hllUpdateOf(c->argv[i]));
        changes += outcome == HLL_CHANGED;
    }
    if (changes) hllInvalidateCount(makeWritable(&o, 0));
    dbPlace(c->db, &c->at, o);
    if (changes) collectionChanged(c, c->argv[1], &eventPfadd, changes);
    if (outcome == HLL_CORRUPT) {
        replyBroken(c);
    } else {
        replyInteger(c, changes > 0);
    }
}

/* ------------------------------------------------------------------ several values */

/* Merges the values of all keys. False: the error was replied. */
static bool mergeKeys(ctx *c, uint8_t *registers, bool *any_dense) {
    hotCheck(c->argc >= 2);
    keyWalk w;
    keyWalkInit(&w, c, 1, c->argc, 1);
    while (keyWalkNext(&w)) {
        const robj *o = dbFindRead(c->db, w.key, w.hash, c->look);
        if (!isHll(c, o)) return false;
        if (!o) continue;
        *any_dense |= !hllIsSparse(hllBytes(o).ptr);
        if (hllMergeInto(registers, hllBytes(o))) continue;
        replyBroken(c);
        return false;
    }
    return true;
}

static void countOne(ctx *c) {
    robj *o = dbFindRead(c->db, c->argv[1], c->key_hash, c->look);
    if (!isHll(c, o)) return;
    /* Counting may write: the count is kept, and the text is raw from now on. */
    if (o) o = dbFind(c->db, c->argv[1], c->key_hash, c->look, &c->at);
    uint64_t count = 0;
    if (o && !hllCachedCount(hllBytes(o).ptr, &count)) {
        uint8_t registers[HLL_REGISTERS] = {0};
        if (!hllMergeInto(registers, hllBytes(o))) {
            replyBroken(c);
            return;
        }
        count = hllEstimate(registers);
        hllSetCachedCount(makeWritable(&o, 0), count);
        dbPlace(c->db, &c->at, o);
        ctxKeyChanged(c, c->argv[1], NULL);
    } else if (o) {
        (void)makeWritable(&o, 0); /* stays raw from now on */
        dbPlace(c->db, &c->at, o);
    }
    replyInteger(c, (int64_t)count);
}

/* Bytes that are merged in the time of an element (job.h). */
enum { ELEMENT_BYTES = 64 };

/* mergeKeys(), by a job if there is much to merge: looks up all keys first. False: an error was
 * replied, or the command is or becomes a job. */
static bool mergeMany(ctx *c, bool stores, uint8_t *registers, bool *any_dense) {
    keyWalk w;
    uint64_t bytes = 0;
    bool is_valid = true, *exist = memAlloc((size_t)c->argc * sizeof(*exist));
    keyWalkInit(&w, c, 1, c->argc, 1);
    while (is_valid && keyWalkNext(&w)) {
        compressedMark mark = compressedSetMark();
        const robj *o = dbFindRead(c->db, w.key, w.hash, c->look);
        is_valid = isHll(c, o);
        exist[w.arg_index] = o != NULL;
        if (is_valid && o) bytes += hllBytes(o).len;
        compressedFreeSince(mark);
    }
    if (!is_valid || (stores ? jobStartStore : jobStart)(c, bytes / ELEMENT_BYTES)) {
        memFree(exist);
        return false;
    }
    /* Nobody changes the values, but they may be compressed and expanded meanwhile. */
    bool is_wanted = true;
    keyWalkInit(&w, c, 1, c->argc, 1);
    while (is_valid && is_wanted && keyWalkNext(&w)) {
        if (!exist[w.arg_index]) continue;
        compressedMark mark = compressedSetMark();
        slice text = hllBytes(dbPeek(c->db, w.key, w.hash)); /* expands it */
        *any_dense |= !hllIsSparse(text.ptr);
        is_valid = hllMergeInto(registers, text);
        compressedFreeSince(mark);
        is_wanted = !jobPoint(c, 1 + (unsigned)(text.len / ELEMENT_BYTES));
    }
    if (!is_valid) replyBroken(c);
    memFree(exist);
    return is_valid;
}

/* The same for any number of keys. False: an error was replied, or the command is or becomes a
 * job. */
static bool merge(ctx *c, bool stores, uint8_t *registers, bool *any_dense) {
    const uint64_t key_max = HLL_DENSE_BYTES / ELEMENT_BYTES;
    bool are_many = (uint64_t)c->argc * key_max >= engineHot.job_from;
    if (unlikely(are_many)) return mergeMany(c, stores, registers, any_dense);
    return mergeKeys(c, registers, any_dense);
}

/* PFCOUNT key [key ...]. Reply: estimated number of distinct elements added to any of them. For a
 * single key the estimate is cached in the value. */
void pfcountCommand(ctx *c) {
    hotCheck(c->argc >= 2);
    if (c->argc == 2) {
        countOne(c);
        return;
    }
    uint8_t registers[HLL_REGISTERS] = {0};
    bool any_dense = false;
    if (merge(c, false, registers, &any_dense)) replyInteger(c, (int64_t)hllEstimate(registers));
}

/* PFMERGE destination [source ...]. Reply: OK. */
void pfmergeCommand(ctx *c) {
    hotCheck(c->argc >= 2);
    uint8_t registers[HLL_REGISTERS] = {0};
    bool any_dense = false;
    if (!merge(c, true, registers, &any_dense) || !jobMayStore(c)) return;
    robj *o = dbFind(c->db, c->argv[1], c->key_hash, c->look, &c->at);
    if (!o) o = newHll(c->argv[1]);
    if (any_dense) {
        check(makeDense(&o)); /* it was just parsed successfully */
        hllWriteDense(makeWritable(&o, 0), registers);
    } else {
        if (hllIsSparse(hllBytes(o).ptr)) hllKeepRaised(registers, hllBytes(o));
        unsigned i = 0;
        while ((i = hllNextRegister(registers, i)) < HLL_REGISTERS) {
            check(raiseRegister(&o, (hllUpdate){i, registers[i]}) != HLL_CORRUPT);
            i++;
        }
    }
    hllInvalidateCount(makeWritable(&o, 0));
    dbPlace(c->db, &c->at, o);
    ctxKeyChanged(c, c->argv[1], &eventPfadd);
    replyOk(c);
}

/* ------------------------------------------------------------------ PFDEBUG, PFSELFTEST */

/* Converts the value to the dense representation. False: it is corrupt, and the error was
 * replied. */
static bool debugDense(ctx *c, robj *o, robj **out, bool *changed) {
    *changed = hllIsSparse(hllBytes(o).ptr);
    if (!makeDense(&o)) {
        replyBroken(c);
        return false;
    }
    dbPlace(c->db, &c->at, o);
    if (*changed) ctxKeyChanged(c, c->argv[2], NULL);
    *out = o;
    return true;
}

static void debugRegisters(ctx *c, robj *o) {
    bool changed;
    uint8_t registers[HLL_REGISTERS] = {0};
    if (!debugDense(c, o, &o, &changed)) return;
    check(hllMergeInto(registers, hllBytes(o)));
    replyArray(c, HLL_REGISTERS);
    for (size_t i = 0; i < HLL_REGISTERS; i++) replyInteger(c, registers[i]);
}

static void debugDecode(ctx *c, const robj *o) {
    slice bytes = hllBytes(o);
    if (!hllIsSparse(bytes.ptr)) {
        replyError(c, SLICE("ERR HLL encoding is not sparse"));
        return;
    }
    str text = STR_EMPTY;
    size_t at = HLL_HEAD_BYTES;
    hllRun run;
    while (hllNextRun(bytes, &at, &run)) {
        const char *blank = text.len > 0 ? " " : "";
        if (run.value > 0) {
            strAppendFormat(&text, "%sv:%u,%u", blank, run.value, run.count);
        } else {
            strAppendFormat(&text, "%s%c:%u", blank, run.is_wide ? 'Z' : 'z', run.count);
        }
    }
    replyBulk(c, strSlice(&text));
    strFree(&text);
}

/* PFDEBUG GETREG|DECODE|ENCODING|TODENSE key, PFDEBUG SIMD ON|OFF. SIMD has no effect: the
 * compiler's vector code is always used. */
void pfdebugCommand(ctx *c) {
    hotCheck(c->argc == 3);
    bool changed;
    if (ctxArgIs(c, 1, "simd")) {
        bool on = ctxArgIs(c, 2, "on");
        if (on || ctxArgIs(c, 2, "off")) {
            replyStatus(c, on ? SLICE("enabled") : SLICE("disabled"));
        } else {
            replyError(c, SLICE("ERR Argument must be ON or OFF"));
        }
        return;
    }
    robj *o = dbFind(c->db, c->argv[2], collectionHash(c, 2), c->look, &c->at);
    if (!o) {
        replyError(c, SLICE("ERR The specified key does not exist"));
        return;
    }
    if (!isHll(c, o)) return;
    if (ctxArgIs(c, 1, "getreg")) {
        debugRegisters(c, o);
    } else if (ctxArgIs(c, 1, "decode")) {
        debugDecode(c, o);
    } else if (ctxArgIs(c, 1, "encoding")) {
        replyStatus(c, hllIsSparse(hllBytes(o).ptr) ? SLICE("sparse") : SLICE("dense"));
    } else if (ctxArgIs(c, 1, "todense")) {
        if (debugDense(c, o, &o, &changed)) replyInteger(c, changed);
    } else {
        replyErrorFormat(c, "ERR Unknown PFDEBUG subcommand '%.*s'", (int)c->argv[1].len,
                         c->argv[1].ptr);
    }
}

/* Adds `count` numbers to a value in both representations, which must agree with each other and
 * with the true count within four standard errors. */
static bool selfTest(uint64_t count) {
    const double error = 4 * 1.04 / 128; /* 128: the square root of the number of registers */
    robj *sparse = newHll(SLICE("")), *dense = newHll(SLICE(""));
    bool sound = makeDense(&dense);
    for (uint64_t i = 0; i < count; i++) {
        uint64_t element[2] = {count, i};
        hllUpdate place = hllUpdateOf(sliceMake((const char *)element, sizeof(element)));
        sound &= raiseRegister(&sparse, place) == raiseRegister(&dense, place);
    }
    uint8_t registers[HLL_REGISTERS] = {0}, others[HLL_REGISTERS] = {0};
    sound =
        sound && hllMergeInto(registers, hllBytes(dense)) && hllMergeInto(others, hllBytes(sparse));
    sound = sound && memcmp(registers, others, sizeof(registers)) == 0;
    double off = (double)hllEstimate(registers) - (double)count;
    objectFree(sparse);
    objectFree(dense);
    return sound && (off < 0 ? -off : off) <= error * (double)count + 1;
}

/* PFSELFTEST. Reply: OK. */
void pfselftestCommand(ctx *c) {
    for (uint64_t count = 1; count <= 100000; count *= 10) {
        if (selfTest(count)) continue;
        replyErrorFormat(c, "TESTFAILED %llu elements are not what was counted",
                         (unsigned long long)count);
        return;
    }
    replyOk(c);
}
