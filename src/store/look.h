/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Parameters of lookups: the time that decides about expiry (storeLook), and the position where a
 * lookup ended, for a following insertion. Both are values owned by the caller; the store keeps
 * neither. And the known hash of an item. */
#ifndef STORE_LOOK_H
#define STORE_LOOK_H

#include <stdbool.h>
#include <stdint.h>

#include "base/slice.h"
#include "ds/hashtable_position.h"

/* True if a key, field or member with this expiry time has expired: after the time, not at it.
 * Every comparison of expiry times with the clock is this one. Both in Unix ms. */
static inline bool expiryIsPast(int64_t expire_ms, int64_t now_ms) { return expire_ms < now_ms; }

/* The time by which keys and fields have expired, and whether a lookup counts as an access. Passed
 * by value. */
typedef struct storeLook {
    int64_t bits; /* private: Unix ms * 2, plus 1 if the lookup does not count as an access */
} storeLook;

/* Keys expire by `now_ms` (Unix ms); lookups count as accesses. */
static inline storeLook lookAt(int64_t now_ms) { return (storeLook){now_ms * 2}; }
/* Nothing has expired: for sources that decide about expiry themselves (replication, import,
 * files). */
static inline storeLook lookAtAll(void) { return (storeLook){INT64_MIN}; }
/* The same, but lookups do not change the access time or frequency (CLIENT NO-TOUCH). */
static inline storeLook lookWithoutTouch(storeLook look) { return (storeLook){look.bits | 1}; }
static inline storeLook lookWithTouch(storeLook look) {
    return (storeLook){look.bits & ~INT64_C(1)};
}
/* True if a key or field with this expiry time (Unix ms) has expired. */
static inline bool lookIsPast(storeLook look, int64_t expire_ms) {
    return expiryIsPast(expire_ms, look.bits >> 1);
}
/* True for lookAtAll(). */
static inline bool lookIsAtAll(storeLook look) { return look.bits >> 1 == INT64_MIN >> 1; }
static inline bool lookTouches(storeLook look) { return !(look.bits & 1); }

/* Where a lookup ended: for dbPlace() and dbSetString(), before the next change of the same
 * database. */
typedef struct dbPosition {
    hashtablePosition at; /* private */
} dbPosition;

/* Tells the hash of one argument of the command that is going to run, so that lookups of exactly
 * these bytes (this address) in elements of collections do not compute it again. To be ended by
 * storeForgetItem() before the bytes change or are freed. Main thread. */
void storeKnowItem(slice item, uint64_t hash);
void storeForgetItem(void);

#endif
