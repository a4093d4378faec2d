/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Elements of large sorted sets. Private to type_zset.c and zset_build.c. */
#ifndef STORE_ZSET_PRIV_H
#define STORE_ZSET_PRIV_H

#include "base/base.h"
#include "base/hash.h"
#include "ds/listpack.h"
#include "store/element.h"
#include "store/member_times.h"
#include "store/type_zset.h"

/* An element is one block: [score: 8 bytes] [length] [member], lengths being those of objects. It
 * has no length if the store knows its size (elementAllocExact()). */
enum { SCORE_BYTES = 8 };

/* The value behind the pointer of an object. */
typedef struct zsetLarge {
    hashtable members; /* elements by member */
    orderedIndex order;
    memberTimes *times; /* NULL if no member has a TTL: takes no memory in a block of this class */
} zsetLarge;

extern const hashtableType zset_members;
extern const orderedType zset_order;

static inline double zsetElementScore(const void *element) {
    double score;
    memcpy(&score, element, sizeof(score));
    return score;
}

static inline void zsetElementSetScore(void *element, double score) {
    memcpy(element, &score, sizeof(score));
}

static inline slice zsetElementMember(const void *element) {
    const char *at = (const char *)element + SCORE_BYTES;
    size_t exact = elementExactSize(element);
    size_t len = likely(exact) ? exact - SCORE_BYTES : objectReadLength(&at);
    return sliceMake(at, len);
}

static inline bool zsetElementHas(const void *element, const void *member, size_t len) {
    slice own = zsetElementMember(element);
    return own.len == len && memcmp(own.ptr, member, len) == 0;
}

/* Maps scores to integers in the same order; -0 and 0 are equal. */
static inline uint64_t zsetScoreRank(double score) {
    uint64_t bits;
    if (score == 0) score = 0;
    memcpy(&bits, &score, sizeof(bits));
    return bits >> 63 ? ~bits : bits | UINT64_C(1) << 63;
}

void *zsetElementNew(slice member, double score);
/* A score as stored in a listpack: an integer if possible. `digits` (NUMBER_TEXT_MAX) may be used
 * as a buffer. */
listpackItem zsetScoreItem(double score, char *digits);

#endif
