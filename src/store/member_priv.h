/* SPDX-License-Identifier: BSD-3-Clause
 *
 * What member_expiry.c needs of sets and sorted sets. Private to the store; main thread only. */
#ifndef STORE_MEMBER_PRIV_H
#define STORE_MEMBER_PRIV_H

#include "store/look.h"
#include "store/member_expiry.h"
#include "store/member_times.h"
#include "store/object.h"

typedef struct memberOps {
    /* NULL if no member has a TTL. */
    memberTimes *(*times_of)(const robj *o);
    bool (*has)(const robj *o, slice member);
    /* Sets the time of an existing member, MEMBER_NO_TIME: none. Returns the resulting object. */
    robj *(*set_time)(robj *o, slice member, int64_t time_ms);
    /* Removes a member that keeps its time; returns its score. Adds it again. The object stays the
     * same. */
    double (*hide)(robj *o, slice member);
    void (*show)(robj *o, slice member, double score);
    /* Frees the times if there are none left. The object stays the same. */
    void (*settle)(robj *o);
} memberOps;

extern const memberOps setMemberOps, zsetMemberOps;

static inline bool memberIsPast(storeLook look, int64_t time_ms) {
    return time_ms != MEMBER_NO_TIME && lookIsPast(look, time_ms);
}

/* Shows all members, in a value that is going to be passed on in parts. */
void membersShowAll(const db *d, robj *o);

/* A value with members with TTLs was stored under this hash: notes it if it has many. */
void membersNote(uint64_t hash, const robj *o);
/* Finds the first members that have expired; returns their number, less than the maximum only if
 * these are all. */
enum { MEMBERS_EXPIRED_MAX = 64 };
unsigned membersFindExpired(const robj *o, int64_t now_ms, slice out[MEMBERS_EXPIRED_MAX]);
/* Removes the members found by the preceding call, tells the listener, and removes the key if it
 * has no other ones: returns true then. */
bool membersRemoveExpired(db *d, slice key, uint64_t hash, robj *o, const slice *members,
                          unsigned count);

#endif
