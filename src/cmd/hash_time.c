/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Hash commands on the TTLs of fields: HEXPIRE and variants, HGETEX, HSETEX, HGETDEL. They are
 * propagated with absolute times, and never with times in the past. Main thread only. */
#include "base/base.h"
#include "base/number.h"
#include "cmd/collection.h"
#include "cmd/hash_priv.h"
#include "cmd/item_time.h"
#include "cmd/procs.h"
#include "engine/job.h"
#include "engine/keyspace.h"

/* After each field in a loop over many. False: the command has to return at once. */
static bool goOn(ctx *c, robj **o) {
    if (!jobIsDue(c, 1) || !*o || hashLength(*o) == 0) return true; /* none is stored empty */
    return collectionSuspend(c, 1, o, false);
}

/* ------------------------------------------------------------------ HEXPIRE and variants */

/* Notifies that fields were removed, and deletes the key if it is empty now. */
static void notifyDeleted(ctx *c, bool emptied, const keyEvent *event, int64_t count) {
    collectionChanged(c, c->argv[1], event, (uint64_t)count);
    if (emptied) collectionRemove(c, 1);
}

/* Reply for each field: -2 if missing, 0 if the condition is not met, 1 if the TTL was set, 2 if
 * the field was deleted because the time is in the past. */
static void expireFields(ctx *c, robj *o, const itemList *f, unsigned conditions, int64_t time_ms) {
    hotCheck(!o || objectType(o) == TYPE_HASH);
    bool past = keyspaceIsPast(c, time_ms);
    slice *changed = memNewArray(slice, (size_t)f->size);
    int64_t count = 0;
    replyArray(c, f->size);
    for (int64_t i = 0; i < f->size; i++) {
        slice field = itemAt(c, f, i);
        int64_t old_ms = hashTime(o, field, c->look);
        bool allowed = old_ms != HASH_NO_FIELD && itemsConditionHolds(conditions, old_ms, time_ms);
        if (allowed) {
            changed[count++] = field;
            check(past ? hashDelete(&o, field, c->look) : hashSetTime(&o, field, time_ms, c->look));
        }
        replyInteger(c, old_ms == HASH_NO_FIELD ? -2 : !allowed ? 0 : past ? 2 : 1);
        if (!goOn(c, &o)) goto done;
    }
    if (count) {
        collectionPlace(c, 1, o);
        if (past) {
            dbCountExpiredFields(c->db, (uint64_t)count);
            itemsPropagateRemoved(c, SLICE("HDEL"), changed, count);
            notifyDeleted(c, hashLength(o) == 0, &eventHexpired, count);
        } else {
            itemsPropagate(c, &itemFields, SLICE("HPEXPIREAT"), &time_ms, 3, f->word,
                           c->argv + f->first, f->size);
            collectionChanged(c, c->argv[1], &eventHexpire, (uint64_t)count);
        }
    }
done:
    memFree(changed);
}

static void expire(ctx *c, bool seconds, bool relative) {
    itemList f;
    unsigned conditions;
    int64_t time_ms;
    robj *o;
    if (!itemsFind(c, &itemFields, 3, 1, &f) || !itemsParseConditions(c, f.word, &conditions))
        return;
    if (!itemsParseCount(c, &f) || !ctxArgInt(c, 2, &time_ms)) return;
    if (!itemsAbsoluteTime(c, time_ms, seconds, relative, &time_ms)) return;
    if (jobStartChange(c, (uint64_t)f.size) || !hashFindWrite(c, &o)) return;
    if (o) {
        expireFields(c, o, &f, conditions, time_ms);
    } else {
        itemsReplyAll(c, &f, -2);
    }
}

/* HEXPIRE key seconds [NX|XX|GT|LT] FIELDS n field [field ...]. */
void hexpireCommand(ctx *c) { expire(c, true, true); }

/* HPEXPIRE key milliseconds [NX|XX|GT|LT] FIELDS n field [field ...]. */
void hpexpireCommand(ctx *c) { expire(c, false, true); }

/* HEXPIREAT key seconds [NX|XX|GT|LT] FIELDS n field [field ...]. */
void hexpireatCommand(ctx *c) { expire(c, true, false); }

/* HPEXPIREAT key milliseconds [NX|XX|GT|LT] FIELDS n field [field ...]. */
void hpexpireatCommand(ctx *c) { expire(c, false, false); }

/* ------------------------------------------------------------------ HTTL and variants, HPERSIST */

/* Reply for each field: -2 if missing, -1 if it has no TTL. */
static void replyTimes(ctx *c, bool seconds, bool relative) {
    robj *o;
    itemList f = {.names = &itemFields, .word = 2, .first = 4, .width = 1};
    if (!ctxArgIs(c, 2, "fields")) {
        replyError(c, ERR_SYNTAX_TEXT);
        return;
    }
    if (!ctxArgInt(c, 3, &f.size)) return;
    if (f.size != c->argc - f.first) {
        replyError(c, ERR_SYNTAX_TEXT);
        return;
    }
    if (!hashFindRead(c, &o)) return;
    replyArray(c, f.size);
    for (int64_t i = 0; i < f.size; i++) {
        int64_t time_ms = o ? hashTime(o, itemAt(c, &f, i), c->look) : HASH_NO_FIELD;
        if (time_ms >= 0) {
            if (relative) time_ms = time_ms < c->now_ms ? 0 : time_ms - c->now_ms;
            if (seconds) time_ms = (int64_t)(((uint64_t)time_ms + 500) / 1000);
        }
        replyInteger(c, time_ms);
    }
}

/* HTTL key FIELDS n field [field ...]. */
void httlCommand(ctx *c) { replyTimes(c, true, true); }

/* HPTTL key FIELDS n field [field ...]. */
void hpttlCommand(ctx *c) { replyTimes(c, false, true); }

/* HEXPIRETIME key FIELDS n field [field ...]. */
void hexpiretimeCommand(ctx *c) { replyTimes(c, true, false); }

/* HPEXPIRETIME key FIELDS n field [field ...]. */
void hpexpiretimeCommand(ctx *c) { replyTimes(c, false, false); }

/* HPERSIST key FIELDS n field [field ...]. Reply for each field: -2 if missing, -1 if it has no
 * TTL, 1. */
void hpersistCommand(ctx *c) {
    hotCheck(c->argc >= 5);
    itemList f;
    robj *o;
    uint64_t count = 0;
    if (!itemsParseAt2(c, &itemFields, &f) || jobStartChange(c, (uint64_t)f.size)) return;
    if (!hashFindWrite(c, &o)) return;
    if (!o) {
        itemsReplyAll(c, &f, -2);
        return;
    }
    replyArray(c, f.size);
    for (int64_t i = 0; i < f.size; i++) {
        int64_t old_ms = hashTime(o, itemAt(c, &f, i), c->look);
        if (old_ms >= 0) check(hashSetTime(&o, itemAt(c, &f, i), HASH_NO_TIME, c->look));
        count += old_ms >= 0;
        replyInteger(c, old_ms >= 0 ? 1 : old_ms);
        if (!goOn(c, &o)) return;
    }
    collectionPlace(c, 1, o);
    if (count) collectionChanged(c, c->argv[1], &eventHpersist, count);
}

/* ------------------------------------------------------------------ HGETEX, HGETDEL */

/* Replies the values of fields and deletes the fields. `expired`: because their new expiry time is
 * in the past. */
static void getAndDeleteFields(ctx *c, robj *o, const itemList *f, bool expired) {
    hotCheck(!o || objectType(o) == TYPE_HASH);
    slice *gone = memNewArray(slice, (size_t)f->size);
    int64_t count = 0;
    replyArray(c, f->size);
    for (int64_t i = 0; i < f->size; i++) {
        slice field = itemAt(c, f, i);
        hashReplyField(c, o, field);
        if (o && hashDelete(&o, field, c->look)) gone[count++] = field;
        if (!goOn(c, &o)) goto done;
    }
    if (count) {
        collectionPlace(c, 1, o);
        if (expired) {
            dbCountExpiredFields(c->db, (uint64_t)count);
            itemsPropagateRemoved(c, SLICE("HDEL"), gone, count);
        }
        bool emptied = hashLength(o) == 0;
        if (expired) {
            notifyDeleted(c, emptied, &eventHexpired, count);
        } else {
            collectionReduced(c, 1, &eventHdel, (uint64_t)count, emptied);
        }
    }
done:
    memFree(gone);
}

/* HGETDEL key FIELDS n field [field ...]. Reply: the values, null for missing fields. */
void hgetdelCommand(ctx *c) {
    itemList f;
    robj *o;
    if (!itemsParseAt2(c, &itemFields, &f) || jobStartChange(c, (uint64_t)f.size)) return;
    if (hashFindWrite(c, &o)) getAndDeleteFields(c, o, &f, false);
}

/* Replies the values of fields and sets their TTL; HASH_NO_TIME removes it. */
static void getAndExpireFields(ctx *c, robj *o, const itemList *f, int64_t time_ms) {
    hotCheck(!o || objectType(o) == TYPE_HASH);
    slice *changed = memNewArray(slice, (size_t)f->size);
    int64_t count = 0;
    replyArray(c, f->size);
    for (int64_t i = 0; i < f->size; i++) {
        slice field = itemAt(c, f, i);
        int64_t old_ms = hashTime(o, field, c->look);
        hashReplyField(c, o, field);
        if (!goOn(c, &o)) goto done;
        if (old_ms == HASH_NO_FIELD || (time_ms == HASH_NO_TIME && old_ms == HASH_NO_TIME))
            continue;
        check(hashSetTime(&o, field, time_ms, c->look));
        changed[count++] = field;
    }
    if (count) {
        bool persists = time_ms == HASH_NO_TIME;
        collectionPlace(c, 1, o);
        itemsPropagate(c, &itemFields, persists ? SLICE("HPERSIST") : SLICE("HPEXPIREAT"),
                       persists ? NULL : &time_ms, 0, 0, changed, count);
        collectionChanged(c, c->argv[1], persists ? &eventHpersist : &eventHexpire,
                          (uint64_t)count);
    }
done:
    memFree(changed);
}

/* HGETEX key [EX s|PX ms|EXAT s|PXAT ms|PERSIST] FIELDS n field [field ...]. Reply: the values,
 * null for missing fields. */
void hgetexCommand(ctx *c) {
    hotCheck(c->argc >= 5);
    itemOptions options;
    itemList f;
    robj *o;
    int64_t time_ms;
    if (!itemsParseOptions(c, &itemFields, OPT_TIMES | OPT_PERSIST, 1, &options, &f)) return;
    if (jobStartChange(c, (uint64_t)f.size)) return;
    if (!hashFindWrite(c, &o) || !itemsOptionTime(c, &options, &time_ms)) return;
    if (!o) ctxKeyEvent(c, c->argv[1], &eventKeymiss);
    if (!o || !options.given) {
        replyArray(c, f.size);
        for (int64_t i = 0; i < f.size && goOn(c, &o); i++) hashReplyField(c, o, itemAt(c, &f, i));
    } else if (options.given & OPT_TIMES && keyspaceIsPast(c, time_ms)) {
        getAndDeleteFields(c, o, &f, true);
    } else {
        getAndExpireFields(c, o, &f, time_ms);
    }
}

/* ------------------------------------------------------------------ HSETEX */

/* False also if the command has to return at once: its reply is dropped then. */
static bool setIsAllowed(ctx *c, robj **o, uint32_t given, const itemList *f) {
    hotCheck(!*o || objectType(*o) == TYPE_HASH);
    if ((given & OPT_NX && *o) || (given & OPT_XX && !*o)) return false;
    if (!(given & (OPT_FNX | OPT_FXX))) return true;
    for (int64_t i = 0; i < f->size; i++) {
        bool exists = *o && hashTime(*o, itemAt(c, f, i), c->look) != HASH_NO_FIELD;
        if (exists == (bool)(given & OPT_FNX) || !goOn(c, o)) return false;
    }
    return true;
}

/* The expiry time is in the past: the fields are set and deleted again, also those that have
 * expired. */
static void setAndDelete(ctx *c, robj *o, const itemList *f) {
    hotCheck(!o || objectType(o) == TYPE_HASH);
    slice *gone = memNewArray(slice, (size_t)f->size);
    int64_t count = 0;
    for (int64_t i = 0; o && i < f->size; i++) {
        if (hashDelete(&o, itemAt(c, f, i), lookAtAll())) gone[count++] = itemAt(c, f, i);
        if (!goOn(c, &o)) goto done;
    }
    dbCountExpiredFields(c->db, (uint64_t)f->size);
    if (o) {
        collectionPlace(c, 1, o);
        if (count) itemsPropagateRemoved(c, SLICE("HDEL"), gone, count);
    }
    if (!count) ctxPropagateNothing(c);
    bool emptied = o && hashLength(o) == 0;        /* a module may delete it when it is told */
    if (!o) ctxKeyEvent(c, c->argv[1], &eventNew); /* as if it had been created */
    ctxKeyEvent(c, c->argv[1], &eventHset);
    ctxKeyEvent(c, c->argv[1], &eventHexpire);
    if (count) {
        notifyDeleted(c, emptied, &eventHexpired, count);
    } else { /* nothing of what was set existed */
        ctxKeyEvent(c, c->argv[1], &eventHexpired);
        if (!o) ctxKeyEvent(c, c->argv[1], &eventDel);
    }
done:
    memFree(gone);
}

/* Propagates without conditions and with an absolute time. */
static void propagateSet(ctx *c, const itemOptions *o, int64_t time_ms, const itemList *f) {
    if (!engineHot.sinks) return;
    itemCommand w;
    itemCommandInit(&w, c, SLICE("HSETEX"));
    if (o->given & OPT_KEEPTTL) itemCommandAdd(&w, SLICE("KEEPTTL"));
    if (o->given & OPT_TIMES) {
        itemCommandAdd(&w, SLICE("PXAT"));
        itemCommandAddNumber(&w, 0, time_ms);
    }
    for (int i = f->word; i < c->argc; i++) itemCommandAdd(&w, c->argv[i]);
    itemCommandPropagate(&w, c);
}

static void setFields(ctx *c, robj *o, const itemOptions *options, int64_t time_ms,
                      const itemList *f) {
    hotCheck(!o || objectType(o) == TYPE_HASH);
    packLimits most = hashLimits();
    slice *replaced = NULL; /* fields that had expired */
    int64_t count = 0;
    if (options->given & OPT_KEEPTTL) time_ms = HASH_KEEP_TIME;
    bool is_new = !o;
    if (is_new) o = hashNew(c->argv[1]);
    for (int64_t i = 0; i < f->size; i++) {
        hashOutcome outcome;
        if (i && jobIsDue(c, 1) && !collectionSuspend(c, 1, &o, is_new)) goto done;
        o = hashSetTimed(o, itemAt(c, f, i), c->argv[f->first + (int)i * 2 + 1], time_ms, c->look,
                         &most, &outcome);
        if (likely(outcome != HASH_REPLACED_EXPIRED)) continue;
        if (!replaced) replaced = memNewArray(slice, (size_t)f->size);
        replaced[count++] = itemAt(c, f, i);
    }
    if (is_new) o = hashFindShape(o);
    collectionPlaceLast(c, 1, o, is_new);
    hashNoteReplaced(c, (uint64_t)count);
    /* A replica still has the expired fields; they must not keep their time there. */
    if (count && options->given & OPT_KEEPTTL)
        itemsPropagateRemoved(c, SLICE("HDEL"), replaced, count);
    propagateSet(c, options, time_ms, f);
    collectionChanged(c, c->argv[1], &eventHset, (uint64_t)f->size);
    if (options->given & OPT_TIMES) collectionNotify(c, c->argv[1], &eventHexpire);
done:
    memFree(replaced);
}

/* HSETEX key [NX|XX] [FNX|FXX] [EX s|PX ms|EXAT s|PXAT ms|KEEPTTL] FIELDS n field value [field
 * value ...]. Reply: 1, or 0 if a condition is not met. */
void hsetexCommand(ctx *c) {
    const uint32_t known = OPT_NX | OPT_XX | OPT_FNX | OPT_FXX | OPT_TIMES | OPT_KEEPTTL;
    itemOptions options;
    itemList f;
    robj *o;
    int64_t time_ms;
    if (!itemsParseOptions(c, &itemFields, known, 2, &options, &f)) return;
    if (jobStartChange(c, (uint64_t)f.size) || !hashFindWrite(c, &o)) return;
    if ((options.given & OPT_NX && o) || (options.given & OPT_XX && !o)) {
        replyInteger(c, 0);
        return;
    }
    if (!itemsOptionTime(c, &options, &time_ms)) return;
    bool allowed = setIsAllowed(c, &o, options.given, &f);
    if (allowed && options.given & OPT_TIMES && keyspaceIsPast(c, time_ms)) {
        setAndDelete(c, o, &f);
    } else if (allowed) {
        setFields(c, o, &options, time_ms, &f);
    }
    replyInteger(c, allowed);
}
