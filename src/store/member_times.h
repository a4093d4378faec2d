/* SPDX-License-Identifier: BSD-3-Clause
 *
 * memberTimes: expiry times of some members of a set or sorted set, by name and in order of time.
 * It knows nothing of the value: type_set.c and type_zset.c own one per value whose members have
 * TTLs, and keep the members themselves where they always are.
 *
 * The first memberTimesHidden() entries in order of time may be hidden: they are not in the value,
 * but only here, with their score, until they are shown or removed (member_expiry.h). Main thread
 * only, except for memberTimesFree(). */
#ifndef STORE_MEMBER_TIMES_H
#define STORE_MEMBER_TIMES_H

#include <stddef.h>
#include <stdint.h>

#include "base/alloc.h"
#include "base/slice.h"

#define MEMBER_NO_TIME INT64_C(-1)

typedef struct memberTimes memberTimes;

/* `scored`: of a sorted set. */
memberTimes *memberTimesNew(bool scored) MUST_USE;
memberTimes *memberTimesCopy(const memberTimes *from) MUST_USE;
/* ANY_THREAD, if no other one uses it. NULL is fine. */
void memberTimesFree(memberTimes *t);
/* Including hidden ones. NULL: 0. */
uint64_t memberTimesCount(const memberTimes *t);
size_t memberTimesBytes(const memberTimes *t);
/* Unix time in ms, or MEMBER_NO_TIME; `t` may be NULL. */
int64_t memberTimesGet(const memberTimes *t, slice member);
/* Sets the time (not negative) of a member that is not hidden, while none is. */
void memberTimesSet(memberTimes *t, slice member, int64_t time_ms);
/* Forgets the time of a member, if it has one. Not for hidden ones. */
void memberTimesForget(memberTimes *t, slice member);

/* A member with its time. The text is borrowed until it is removed. */
typedef struct timedMember {
    slice member;
    int64_t time_ms;
    double score; /* of a hidden member of a sorted set, else 0 */
} timedMember;
/* The member number `index` in order of time, which must exist. */
timedMember memberTimesAt(const memberTimes *t, uint64_t index);
/* Number of members that have expired, as by expiryIsPast(). */
uint64_t memberTimesDue(const memberTimes *t, int64_t now_ms);
/* Number of hidden ones. NULL: 0. */
uint64_t memberTimesHidden(const memberTimes *t);
/* The caller has removed the member number memberTimesHidden() from the value: it is hidden now. */
void memberTimesHide(memberTimes *t, double score);
/* The caller has inserted the last hidden member again. */
void memberTimesShow(memberTimes *t);
/* Removes the first member in order of time, hidden or not. */
void memberTimesRemoveFirst(memberTimes *t);

#endif
