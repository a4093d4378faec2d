/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Commands on the TTLs of members of sets and sorted sets: SEXPIRE, ZEXPIRE and variants, SADDEX,
 * ZADDEX. They answer as those on fields of hashes (hash_time.c). They are propagated with absolute
 * times, never with times in the past, and what adds members as plain SADD and ZADD. Main thread
 * only. */
#include "base/base.h"
#include "cmd/collection.h"
#include "cmd/item_time.h"
#include "cmd/procs.h"
#include "cmd/set_priv.h"
#include "cmd/zset_priv.h"
#include "engine/keyspace.h"
#include "engine/propagate.h"
#include "store/member_expiry.h"

/* The differences between the two types. */
typedef struct memberKind {
    valueType type;
    int width; /* arguments per member of SADDEX */
    const char *add, *remove, *expire_at, *persist;
    const keyEvent *added, *expires, *expired, *persisted;
    bool (*remove_member)(robj **o, slice member);
} memberKind;

static bool removeFromSet(robj **o, slice member) {
    listpackItem item = listpackItemOf(member);
    return setRemove(o, &item);
}

static const memberKind set_kind = {.type = TYPE_SET,
                                    .width = 1,
                                    .add = "SADD",
                                    .remove = "SREM",
                                    .expire_at = "SPEXPIREAT",
                                    .persist = "SPERSIST",
                                    .added = &eventSadd,
                                    .expires = &eventSexpire,
                                    .expired = &eventSexpired,
                                    .persisted = &eventSpersist,
                                    .remove_member = removeFromSet};
static const memberKind zset_kind = {.type = TYPE_ZSET,
                                     .width = 2,
                                     .add = "ZADD",
                                     .remove = "ZREM",
                                     .expire_at = "ZPEXPIREAT",
                                     .persist = "ZPERSIST",
                                     .added = &eventZadd,
                                     .expires = &eventZexpire,
                                     .expired = &eventZexpired,
                                     .persisted = &eventZpersist,
                                     .remove_member = zsetRemove};

/* Stores the value, whose members may have got TTLs. */
static void place(ctx *c, robj *o) {
    hotCheck(objectType(o) == TYPE_SET || objectType(o) == TYPE_ZSET);
    collectionPlace(c, 1, o);
    dbNoteItems(c->db, collectionHash(c, 1), o);
}

/* ------------------------------------------------------------------ SEXPIRE, ZEXPIRE etc. */

/* Signals that members have got TTLs, or, `past`, were removed at once. */
static void noteExpires(ctx *c, const memberKind *kind, const robj *o, bool past, uint64_t count) {
    hotCheck(count > 0);
    if (!past) {
        collectionChanged(c, c->argv[1], kind->expires, count);
        return;
    }
    bool emptied = typeOf(o)->length(o) == 0;
    dbCountExpiredMembers(c->db, count);
    collectionChanged(c, c->argv[1], kind->expired, count);
    if (emptied) collectionRemove(c, 1);
}

/* Reply for each member: -2 if missing, 0 if the condition is not met, 1 if the TTL was set, 2 if
 * the member was removed because the time is in the past. */
static void expireMembers(ctx *c, const memberKind *kind, robj *o, const itemList *m,
                          unsigned conditions, int64_t time_ms) {
    hotCheck(objectType(o) == kind->type);
    bool past = keyspaceIsPast(c, time_ms);
    slice *changed = memNewArray(slice, (size_t)m->size);
    int64_t count = 0;
    replyArray(c, m->size);
    for (int64_t i = 0; i < m->size; i++) {
        slice member = itemAt(c, m, i);
        int64_t old_ms = memberTime(o, member);
        bool exists = old_ms != MEMBER_MISSING;
        bool allowed = exists && itemsConditionHolds(conditions, old_ms, time_ms);
        if (allowed) {
            changed[count++] = member;
            check(past ? kind->remove_member(&o, member) : memberSetTime(&o, member, time_ms));
        }
        replyInteger(c, !exists ? -2 : !allowed ? 0 : past ? 2 : 1);
    }
    if (count) {
        place(c, o);
        if (past) {
            itemsPropagateRemoved(c, sliceOf(kind->remove), changed, count);
        } else {
            itemsPropagate(c, &itemMembers, sliceOf(kind->expire_at), &time_ms, 0, 0, changed,
                           count);
        }
        noteExpires(c, kind, o, past, (uint64_t)count);
    }
    memFree(changed);
}

static void expire(ctx *c, const memberKind *kind, bool seconds, bool relative) {
    hotCheck(c->argc >= 6);
    itemList m;
    unsigned conditions;
    int64_t time_ms;
    robj *o;
    if (!itemsFind(c, &itemMembers, 3, 1, &m) || !itemsParseConditions(c, m.word, &conditions))
        return;
    if (!itemsParseCount(c, &m) || !ctxArgInt(c, 2, &time_ms)) return;
    if (!itemsAbsoluteTime(c, time_ms, seconds, relative, &time_ms)) return;
    if (!collectionFindWrite(c, 1, kind->type, &o)) return;
    if (o) {
        expireMembers(c, kind, o, &m, conditions, time_ms);
    } else {
        itemsReplyAll(c, &m, -2);
    }
}

/* SEXPIRE key seconds [NX|XX|GT|LT] MEMBERS n member [member ...]. */
void sexpireCommand(ctx *c) { expire(c, &set_kind, true, true); }

/* SPEXPIRE key milliseconds [NX|XX|GT|LT] MEMBERS n member [member ...]. */
void spexpireCommand(ctx *c) { expire(c, &set_kind, false, true); }

/* SEXPIREAT key unix-time-seconds [NX|XX|GT|LT] MEMBERS n member [member ...]. */
void sexpireatCommand(ctx *c) { expire(c, &set_kind, true, false); }

/* SPEXPIREAT key unix-time-milliseconds [NX|XX|GT|LT] MEMBERS n member [member ...]. */
void spexpireatCommand(ctx *c) { expire(c, &set_kind, false, false); }

/* ZEXPIRE key seconds [NX|XX|GT|LT] MEMBERS n member [member ...]. */
void zexpireCommand(ctx *c) { expire(c, &zset_kind, true, true); }

/* ZPEXPIRE key milliseconds [NX|XX|GT|LT] MEMBERS n member [member ...]. */
void zpexpireCommand(ctx *c) { expire(c, &zset_kind, false, true); }

/* ZEXPIREAT key unix-time-seconds [NX|XX|GT|LT] MEMBERS n member [member ...]. */
void zexpireatCommand(ctx *c) { expire(c, &zset_kind, true, false); }

/* ZPEXPIREAT key unix-time-milliseconds [NX|XX|GT|LT] MEMBERS n member [member ...]. */
void zpexpireatCommand(ctx *c) { expire(c, &zset_kind, false, false); }

/* ------------------------------------------------------------------ STTL, ZTTL and variants */

/* Reply for each member: -2 if missing, -1 if it has no TTL. */
static void replyTimes(ctx *c, const memberKind *kind, bool seconds, bool relative) {
    hotCheck(c->argc >= 5);
    robj *o;
    itemList m;
    if (!itemsParseAt2(c, &itemMembers, &m)) return;
    if (!collectionFindRead(c, 1, kind->type, &o)) return;
    replyArray(c, m.size);
    for (int64_t i = 0; i < m.size; i++) {
        int64_t time_ms = o ? memberTime(o, itemAt(c, &m, i)) : MEMBER_MISSING;
        if (time_ms >= 0) {
            if (relative) time_ms = time_ms < c->now_ms ? 0 : time_ms - c->now_ms;
            if (seconds) time_ms = (int64_t)(((uint64_t)time_ms + 500) / 1000);
        }
        replyInteger(c, time_ms);
    }
}

/* STTL key MEMBERS n member [member ...]. */
void sttlCommand(ctx *c) { replyTimes(c, &set_kind, true, true); }

/* SPTTL key MEMBERS n member [member ...]. */
void spttlCommand(ctx *c) { replyTimes(c, &set_kind, false, true); }

/* SEXPIRETIME key MEMBERS n member [member ...]. */
void sexpiretimeCommand(ctx *c) { replyTimes(c, &set_kind, true, false); }

/* SPEXPIRETIME key MEMBERS n member [member ...]. */
void spexpiretimeCommand(ctx *c) { replyTimes(c, &set_kind, false, false); }

/* ZTTL key MEMBERS n member [member ...]. */
void zttlCommand(ctx *c) { replyTimes(c, &zset_kind, true, true); }

/* ZPTTL key MEMBERS n member [member ...]. */
void zpttlCommand(ctx *c) { replyTimes(c, &zset_kind, false, true); }

/* ZEXPIRETIME key MEMBERS n member [member ...]. */
void zexpiretimeCommand(ctx *c) { replyTimes(c, &zset_kind, true, false); }

/* ZPEXPIRETIME key MEMBERS n member [member ...]. */
void zpexpiretimeCommand(ctx *c) { replyTimes(c, &zset_kind, false, false); }

/* ------------------------------------------------------------------ SPERSIST, ZPERSIST */

/* Reply for each member: -2 if missing, -1 if it has no TTL, 1. */
static void persist(ctx *c, const memberKind *kind) {
    hotCheck(c->argc >= 5);
    itemList m;
    robj *o;
    uint64_t count = 0;
    if (!itemsParseAt2(c, &itemMembers, &m) || !collectionFindWrite(c, 1, kind->type, &o)) return;
    if (!o) {
        itemsReplyAll(c, &m, -2);
        return;
    }
    replyArray(c, m.size);
    for (int64_t i = 0; i < m.size; i++) {
        slice member = itemAt(c, &m, i);
        int64_t old_ms = memberTime(o, member);
        if (old_ms >= 0) check(memberSetTime(&o, member, MEMBER_NO_TIME));
        count += old_ms >= 0;
        replyInteger(c, old_ms >= 0 ? 1 : old_ms);
    }
    collectionPlace(c, 1, o);
    if (count) collectionChanged(c, c->argv[1], kind->persisted, count);
}

/* SPERSIST key MEMBERS n member [member ...]. */
void spersistCommand(ctx *c) { persist(c, &set_kind); }

/* ZPERSIST key MEMBERS n member [member ...]. */
void zpersistCommand(ctx *c) { persist(c, &zset_kind); }

/* ------------------------------------------------------------------ SADDEX, ZADDEX */

/* Members to add, with their time. */
typedef struct memberAdding {
    const memberKind *kind;
    itemList items;
    double *scores; /* NULL: of a set */
    slice *members;
    bool keeps_times;
    int64_t time_ms; /* MEMBER_NO_TIME: none */
} memberAdding;

/* Reads the members, and scores if they have any. False: the error was replied. */
static bool readMembers(ctx *c, memberAdding *a) {
    const itemList *items = &a->items;
    bool scored = a->kind->width == 2;
    hotCheck(items->size > 0);
    hotCheck(items->first + items->size * items->width == c->argc);
    a->members = memNewArray(slice, (size_t)items->size);
    if (scored) a->scores = memNewArray(double, (size_t)items->size);
    for (int64_t i = 0; i < items->size; i++) {
        int at = items->first + (int)i * items->width;
        a->members[i] = c->argv[scored ? at + 1 : at];
        if (scored && !ctxArgDouble(c, at, &a->scores[i])) return false;
    }
    return true;
}

/* Adds the members to the set; `o` NULL: to a new one. Adds the number of new ones to *added. */
static robj *addToSet(ctx *c, robj *o, const memberAdding *a, uint64_t *added) {
    hotCheck(!o || objectType(o) == TYPE_SET);
    hotCheck(!a->scores);
    setLimits most = setLimitsNow();
    size_t count = (size_t)a->items.size;
    listpackItem first = listpackItemOf(a->members[0]);
    o = o ? setPrepare(o, count, &most) : setNew(c->argv[1], &first, count, &most);
    for (size_t i = 0; i < count; i++) {
        bool is_new;
        listpackItem item = listpackItemOf(a->members[i]);
        o = setAdd(o, &item, &most, &is_new);
        *added += is_new;
    }
    return o;
}

/* The same for a sorted set; members that get another score count, too. */
static robj *addToZset(ctx *c, robj *o, const memberAdding *a, uint64_t *added) {
    hotCheck(!o || objectType(o) == TYPE_ZSET);
    hotCheck(a->scores);
    packLimits most = zsetLimitsNow();
    size_t count = (size_t)a->items.size, longest = 0;
    for (size_t i = 0; i < count; i++) longest = sizeMax(longest, a->members[i].len);
    o = o ? zsetPrepare(o, count, longest, &most) : zsetNew(c->argv[1], count, longest, &most);
    for (size_t i = 0; i < count; i++) {
        zsetPair pair = {a->members[i], a->scores[i]};
        zsetAdded what;
        o = zsetAdd(o, &pair, 0, &most, &what);
        *added += what != ZSET_SAME;
    }
    return o;
}

/* Propagates SADD or ZADD with what follows MEMBERS and the count. */
static void propagateAdded(ctx *c, const memberAdding *a) {
    if (!engineHot.sinks) return;
    itemCommand w;
    itemCommandInit(&w, c, sliceOf(a->kind->add));
    for (int i = a->items.first; i < c->argc; i++) itemCommandAdd(&w, c->argv[i]);
    itemCommandPropagate(&w, c);
}

/* Sets or removes the times of all members; returns the number of those that changed. */
static uint64_t setTimes(robj **o, const memberAdding *a) {
    hotCheck(objectType(*o) == a->kind->type);
    uint64_t changed = 0;
    for (int64_t i = 0; i < a->items.size; i++) {
        if (memberTime(*o, a->members[i]) == a->time_ms) continue;
        check(memberSetTime(o, a->members[i], a->time_ms));
        changed++;
    }
    return changed;
}

static void addMembers(ctx *c, robj *o, const memberAdding *a) {
    hotCheck(!o || objectType(o) == a->kind->type);
    const memberKind *kind = a->kind;
    uint64_t added = 0, timed = 0;
    o = kind->type == TYPE_SET ? addToSet(c, o, a, &added) : addToZset(c, o, a, &added);
    if (!a->keeps_times) timed = setTimes(&o, a);
    place(c, o);
    bool persists = a->time_ms == MEMBER_NO_TIME;
    /* Not as a transaction: a replica that does not know the second command would refuse it. */
    if (added && timed) propagateUnwrapped();
    if (added) {
        propagateAdded(c, a);
        collectionChanged(c, c->argv[1], kind->added, added);
    }
    if (timed) {
        const int64_t *time_ms = persists ? NULL : &a->time_ms;
        itemsPropagate(c, &itemMembers, sliceOf(persists ? kind->persist : kind->expire_at),
                       time_ms, 0, 0, a->members, a->items.size);
        collectionChanged(c, c->argv[1], persists ? kind->persisted : kind->expires, timed);
    }
    if (!added && !timed) ctxPropagateNothing(c);
}

/* The time is in the past: the members are missing afterwards. */
static void addAndRemove(ctx *c, robj *o, const memberAdding *a) {
    hotCheck(!o || objectType(o) == a->kind->type);
    int64_t count = 0;
    slice *removed = memNewArray(slice, (size_t)a->items.size);
    for (int64_t i = 0; o && i < a->items.size; i++) {
        if (a->kind->remove_member(&o, a->members[i])) removed[count++] = a->members[i];
    }
    if (count) {
        place(c, o);
        itemsPropagateRemoved(c, sliceOf(a->kind->remove), removed, count);
        noteExpires(c, a->kind, o, true, (uint64_t)count);
    } else {
        ctxPropagateNothing(c);
    }
    memFree(removed);
}

static void addWithTime(ctx *c, const memberKind *kind) {
    hotCheck(c->argc >= 5);
    const uint32_t known = OPT_NX | OPT_XX | OPT_TIMES | OPT_KEEPTTL;
    itemOptions options;
    memberAdding a = {.kind = kind};
    robj *o;
    if (!itemsParseOptions(c, &itemMembers, known, kind->width, &options, &a.items)) return;
    if (!itemsOptionTime(c, &options, &a.time_ms)) return;
    a.keeps_times = options.given & OPT_KEEPTTL;
    if (readMembers(c, &a) && collectionFindWrite(c, 1, kind->type, &o)) {
        bool allowed = !(options.given & OPT_NX && o) && !(options.given & OPT_XX && !o);
        if (allowed && options.given & OPT_TIMES && keyspaceIsPast(c, a.time_ms)) {
            addAndRemove(c, o, &a);
        } else if (allowed) {
            addMembers(c, o, &a);
        }
        replyInteger(c, allowed);
    }
    memFree(a.members);
    memFree(a.scores);
}

/* SADDEX key [NX|XX] [EX s|PX ms|EXAT s|PXAT ms|KEEPTTL] MEMBERS n member [member ...]. Reply: 1,
 * or 0 if the condition on the key is not met. */
void saddexCommand(ctx *c) { addWithTime(c, &set_kind); }

/* ZADDEX key [NX|XX] [EX s|PX ms|EXAT s|PXAT ms|KEEPTTL] MEMBERS n score member [score member ...].
 * Reply: 1, or 0 if the condition on the key is not met. */
void zaddexCommand(ctx *c) { addWithTime(c, &zset_kind); }
