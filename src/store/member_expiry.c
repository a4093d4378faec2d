/* SPDX-License-Identifier: BSD-3-Clause
 *
 * TTLs of members of sets and sorted sets (member_expiry.h). */
#include "store/member_expiry.h"

#include "base/base.h"
#include "store/db_priv.h"
#include "store/member_priv.h"

static bool were_timed; /* the listener of the main keyspace knows */

static const memberOps *opsOf(const robj *o) {
    switch (objectType(o)) {
    case TYPE_SET: return &setMemberOps;
    case TYPE_ZSET: return &zsetMemberOps;
    default: return NULL;
    }
}

memberTimes *membersTimes(const robj *o) {
    const memberOps *ops = opsOf(o);
    return ops ? ops->times_of(o) : NULL;
}

uint64_t membersHidden(const robj *o) { return memberTimesHidden(membersTimes(o)); }

int64_t memberTime(const robj *o, slice member) {
    const memberOps *ops = opsOf(o);
    check(ops != NULL);
    if (!ops->has(o, member)) return MEMBER_MISSING;
    return memberTimesGet(ops->times_of(o), member);
}

static void tellFirst(void) {
    hotCheck(threadIsMain());
    const storeListener *listener = storeNow.main.listener;
    if (!listener || !listener->member_timed) return;
    listener->member_timed();
    were_timed = true;
}

bool memberSetTime(robj **o, slice member, int64_t time_ms) {
    const memberOps *ops = opsOf(*o);
    check(ops != NULL);
    check(membersHidden(*o) == 0);
    if (!ops->has(*o, member)) return false;
    if (time_ms == MEMBER_NO_TIME && !ops->times_of(*o)) return true;
    if (unlikely(!were_timed)) tellFirst();
    *o = ops->set_time(*o, member, time_ms);
    return true;
}

/* ------------------------------------------------------------------ hiding */

/* Makes the first `wanted` members in order of time the hidden ones. */
static void hideFirst(robj *o, uint64_t wanted) {
    const memberOps *ops = opsOf(o);
    memberTimes *times = ops->times_of(o);
    check(wanted <= memberTimesCount(times));
    while (memberTimesHidden(times) < wanted)
        memberTimesHide(times, ops->hide(o, memberTimesAt(times, memberTimesHidden(times)).member));
    while (memberTimesHidden(times) > wanted) {
        timedMember last = memberTimesAt(times, memberTimesHidden(times) - 1);
        ops->show(o, last.member, last.score);
        memberTimesShow(times);
    }
}

void membersHide(const db *d, uint64_t hash, robj *o, storeLook look) {
    const memberTimes *times = membersTimes(o);
    hotCheck(threadIsMain());
    if (!times) return;
    uint64_t wanted = memberTimesDue(times, look.bits >> 1);
    if (wanted == memberTimesHidden(times)) return;
    /* Not beforeChange(): the dataset remains the same, so this is no change of the keyspace. */
    if (unlikely(storeNow.watches)) watchedBefore(d, hash, o);
    hideFirst(o, wanted);
}

void membersShowAll(const db *d, robj *o) {
    if (!membersHidden(o)) return;
    readingBeforeShown(d, storeHash(objectKey(o)));
    hideFirst(o, 0);
}

/* ------------------------------------------------------------------ removal */

unsigned membersFindExpired(const robj *o, int64_t now_ms, slice out[MEMBERS_EXPIRED_MAX]) {
    hotCheck(opsOf(o));
    const memberTimes *times = membersTimes(o);
    uint64_t count = times ? memberTimesDue(times, now_ms) : 0;
    count = count < MEMBERS_EXPIRED_MAX ? count : MEMBERS_EXPIRED_MAX;
    for (uint64_t i = 0; i < count; i++) out[i] = memberTimesAt(times, i).member;
    return (unsigned)count;
}

bool membersRemoveExpired(db *d, slice key, uint64_t hash, robj *o, const slice *members,
                          unsigned count) {
    const memberOps *ops = opsOf(o);
    memberTimes *times = ops->times_of(o);
    check(count > 0);
    check(count <= memberTimesCount(times));
    beforeChange(d, hash, o);
    d->in->stats.expired_members += count;
    itemsExpiring(d, key, o, members, count);
    for (unsigned i = 0; i < count; i++) {
        if (memberTimesHidden(times) == 0) (void)ops->hide(o, members[i]); /* its score is lost */
        memberTimesRemoveFirst(times);
    }
    ops->settle(o);
    return itemsExpired(d, key, hash);
}

/* The set or sorted set of a key, NULL if none of its members has a TTL. */
static robj *timedValue(const db *d, slice key, uint64_t hash) {
    robj *o = (robj *)(uintptr_t)dbPeek(d, key, hash);
    if (!o || (objectType(o) != TYPE_SET && objectType(o) != TYPE_ZSET)) return NULL;
    return membersTimes(o) ? o : NULL;
}

bool membersExpire(db *d, slice key, uint64_t hash, robj *o, storeLook look) {
    hotCheck(threadIsMain());
    hotCheck(hash == storeHash(key));
    const memberTimes *times = membersTimes(o);
    if (!times) return false;
    slice members[MEMBERS_EXPIRED_MAX];
    unsigned count = membersFindExpired(o, look.bits >> 1, members);
    if (!count) {
        membersHide(d, hash, o, look);
        return false;
    }
    do {
        if (membersRemoveExpired(d, key, hash, o, members, count)) return true;
        o = timedValue(d, key, hash);
        count = o ? membersFindExpired(o, look.bits >> 1, members) : 0;
    } while (count);
    return true;
}

/* ------------------------------------------------------------------ in parts */

/* Values that have had so many members with TTLs are known by some bits of their hashes. For those
 * with equal bits there is a time in Unix ms up to which no member of them expires; values whose
 * members expire later than those of another one may be missed, and expire in one piece. */
enum { MANY = 1000, FILTER_BITS = 10 };
static int64_t many_from[1 << FILTER_BITS]; /* 0: there is none */
static bool any_many;

static int64_t *filterOf(uint64_t hash) {
    return &many_from[hash >> (64 - FILTER_BITS)]; /* the low bits are the slot */
}

void membersNote(uint64_t hash, const robj *o) {
    const memberTimes *times = membersTimes(o);
    if (likely(memberTimesCount(times) < MANY)) return;
    int64_t *from = filterOf(hash), first = memberTimesAt(times, 0).time_ms;
    if (!*from || first < *from) *from = first ? first : 1;
    const storeListener *listener = storeNow.main.listener; /* `d` may be loaded for it */
    if (any_many || !listener || !listener->members_many) return;
    any_many = true;
    listener->members_many();
}

bool membersMayBeDue(uint64_t hash, storeLook look) {
    int64_t from = *filterOf(hash);
    return from && look.bits >> 1 >= from;
}

uint64_t membersDue(const db *d, slice key, uint64_t hash, storeLook look, bool removes) {
    if (likely(!membersMayBeDue(hash, look))) return 0;
    int64_t *from = filterOf(hash), now_ms = look.bits >> 1;
    const robj *o = timedValue(d, key, hash);
    const memberTimes *times = o ? membersTimes(o) : NULL;
    if (!times) return 0;
    uint64_t hidden = memberTimesHidden(times);
    uint64_t due = memberTimesDue(times, now_ms);
    if (!due && !hidden && memberTimesCount(times)) *from = memberTimesAt(times, 0).time_ms;
    if (removes && removesExpired(d, hash)) return due;
    return due > hidden ? due - hidden : hidden - due;
}

static bool hideSome(const db *d, uint64_t hash, robj *o, uint64_t due) {
    enum { PART = 200 };
    uint64_t hidden = membersHidden(o);
    check(due <= memberTimesCount(membersTimes(o)));
    uint64_t wanted = sizeMin(due, hidden + PART);
    if (due + PART < hidden) wanted = hidden - PART;
    if (unlikely(storeNow.watches)) watchedBefore(d, hash, o);
    hideFirst(o, wanted);
    return wanted != due;
}

bool membersExpireSome(db *d, slice key, uint64_t hash, storeLook look, bool removes) {
    hotCheck(hash == storeHash(key));
    robj *o = timedValue(d, key, hash);
    uint64_t due = o ? memberTimesDue(membersTimes(o), look.bits >> 1) : 0;
    if (!o || readingHolds(d, hash)) return false;
    if (!removes || !removesExpired(d, hash)) return hideSome(d, hash, o, due);
    slice members[MEMBERS_EXPIRED_MAX];
    unsigned count = membersFindExpired(o, look.bits >> 1, members);
    if (!count || membersRemoveExpired(d, key, hash, o, members, count)) return false;
    return count == MEMBERS_EXPIRED_MAX;
}

/* ------------------------------------------------------------------ after a lookup */

robj *membersToRead(const db *d, uint64_t hash, robj *o, storeLook look) {
    if (!o) return NULL;
    membersHide(d, hash, o, look);
    bool all_expired = membersHidden(o) && typeOf(o)->length(o) == 0;
    return all_expired ? NULL : o;
}

robj *membersToWrite(db *d, slice key, uint64_t hash, robj *o, storeLook look, dbPosition *at) {
    if (!o || !membersExpire(d, key, hash, o, look)) return o;
    return dbFind(d, key, hash, look, at);
}
