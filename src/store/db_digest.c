/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Digests of whole keyspaces. O(size of the dataset). Main thread only. */
#include "base/base.h"
#include "store/db_priv.h"
#include "store/member_expiry.h"
#include "store/placeholder.h"
#include "store/type_hash.h"

typedef struct digestSum {
    int db_id;
    storeLook look;
    bool with_times;
    digest all; /* of all keys so far */
} digestSum;

static void mixItemTime(slice item, int64_t time_ms, digest *to) {
    digest own = {{0}};
    digestMix(&own, item);
    digestMix(&own, sliceMake(&time_ms, sizeof(time_ms)));
    digestAddDigest(to, &own);
}

static void mixMemberTimes(const robj *o, digest *to) {
    const memberTimes *times = membersTimes(o);
    for (uint64_t i = 0; i < memberTimesCount(times); i++) {
        timedMember m = memberTimesAt(times, i);
        mixItemTime(m.member, m.time_ms, to);
    }
}

/* Adds the expiry times of a key and its fields or members. */
static void mixTimes(const robj *o, digest *to) {
    hotCheck(objectType(o) < TYPE_COUNT);
    int64_t time_ms = objectHasExpire(o) ? objectExpire(o) : -1;
    digestMix(to, sliceMake(&time_ms, sizeof(time_ms)));
    if (objectType(o) != TYPE_HASH) mixMemberTimes(o, to);
    if (objectType(o) != TYPE_HASH || hashTimedCount(o) == 0) return;
    hashIterator it;
    hashPair pair;
    hashIteratorInit(&it, o, lookAtAll());
    while (hashNextTimed(&it, &pair, &time_ms)) mixItemTime(pair.field, time_ms, to);
    hashIteratorClear(&it);
}

/* Placeholders are in no digest, as they are in no file. */
static status isInDigest(void *arg, const robj *o) {
    (void)arg;
    return objectIsPlaceholder(o) ? OK : ERR_EXISTS;
}

static bool hasDigest(const db *d) {
    if (!dbSize(d)) return false;
    return placeholderCount() == 0 || dbWalk(d, -1, isInDigest, NULL) != OK;
}

static void addToDigest(void *arg, const robj *o) {
    digestSum *sum = arg;
    if (objectIsPlaceholder(o)) return;
    digest key = {{0}};
    digestMix(&key, objectKey(o));
    objectDigestAt(o, sum->db_id, sum->look, &key);
    if (sum->with_times) mixTimes(o, &key);
    digestAddDigest(&sum->all, &key);
}

static digest digestAll(const keyspace *k, storeLook look, bool with_times) {
    digestSum sum = {.look = look, .with_times = with_times};
    for (int i = 0; i < k->count; i++) {
        if (!hasDigest(k->dbs[i])) continue;
        sum.db_id = i;
        digestMixNumber(&sum.all, (uint32_t)k->dbs[i]->id);
        dbEach(k->dbs[i], -1, addToDigest, &sum);
    }
    return sum.all;
}

void storeDigest(const keyspace *k, storeLook look, digest *out) {
    *out = digestAll(k, look, false);
}

void storeDigestWithTimes(const keyspace *k, digest *out) {
    *out = digestAll(k, lookAtAll(), true);
}
