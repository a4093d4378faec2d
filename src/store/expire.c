/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Active expiry: removes expired keys. The tables find volatile keys without visiting others
 * (hashtableScanVolatile()).
 *
 * A turn continues where the last one stopped. It always uses a small share of its time budget, so
 * that a scan over few volatile keys is completed in every turn, and uses the full budget only
 * while a large share of the keys it visits is expired. Cost: about 50 ns per volatile key, 150 ns
 * per expired one. Main thread only. */
#include "base/base.h"
#include "store/db_priv.h"

enum {
    FLOOR_SHARE = 8, /* a turn always uses 1/8 of its budget */
    GROWN = 2,       /* a scan restarts if the table has grown by this factor */
    STALE_PERCENT =
        10, /* minimum share of expired keys for a turn to continue; lower with greater effort */
    WINDOW = 200, /* keys visited between two checks of time and share */
};

/* Names of keys with their storeHash(). */
typedef struct keyNames {
    struct {
        uint64_t hash;
        size_t len;
    } * items;
    size_t count, cap;
    str bytes;
} keyNames;

/* One scan within a turn. */
typedef struct walk {
    db *db;
    int64_t now_ms;
    uint64_t visited, expired;
    double ttl_sum_ms; /* of keys that are not expired */
    keyNames found;    /* expired ones, while others may be changed by who is told of them */
} walk;

static void noteName(keyNames *all, const robj *o) {
    hotCheck(all->count <= all->cap);
    slice key = objectKey(o);
    if (all->count == all->cap) {
        all->cap = all->cap ? 2 * all->cap : 16;
        all->items = memRealloc(all->items, all->cap * sizeof(*all->items));
    }
    all->items[all->count].hash = storeHash(key);
    all->items[all->count++].len = key.len;
    strAppendSlice(&all->bytes, key);
}

/* Removes those that are still there, and have still expired. */
static void removeNamed(walk *w) {
    hotCheck(w->found.count > 0);
    size_t at = 0;
    for (size_t i = 0; i < w->found.count; i++) {
        slice key = sliceMake(w->found.bytes.ptr + at, w->found.items[i].len);
        uint64_t hash = w->found.items[i].hash;
        robj *o = (robj *)(uintptr_t)dbPeek(w->db, key, hash);
        if (o && objectIsExpired(o, w->now_ms) && removesExpired(w->db, hash))
            dbRemoveExpired(w->db, o);
        at += key.len;
    }
    w->found.count = 0;
    strClear(&w->found.bytes);
}

static void freeNames(keyNames *all) {
    memFree(all->items);
    strFree(&all->bytes);
}

static void visit(void *context, void *entry, unsigned flags) {
    (void)flags; /* always volatile */
    walk *w = context;
    robj *o = entry;
    int64_t expire_ms = objectExpire(o);
    w->visited++;
    if (!expiryIsPast(expire_ms, w->now_ms)) {
        w->ttl_sum_ms += (double)(expire_ms - w->now_ms);
        return;
    }
    w->expired++;
    if (unlikely(storeNow.watches) && readingHolds(w->db, storeHash(objectKey(o)))) return;
    if (unlikely(storeNow.expects_changes)) {
        noteName(&w->found, o);
    } else {
        dbRemoveExpired(w->db, o);
    }
}

void expireUpdateStale(double *percent, uint64_t expired, uint64_t visited) {
    double stale = 100.0 * (double)expired / (double)visited;
    *percent = *percent * 0.95 + stale * 0.05;
}

/* Updates the estimates from the results of a scan. */
static void updateEstimates(db *d, const walk *w) {
    const double weight = 0.02;
    uint64_t unexpired = w->visited - w->expired;
    if (unexpired) {
        double mean_ms = w->ttl_sum_ms / (double)unexpired;
        d->mean_ttl_ms =
            d->mean_ttl_ms == 0 ? mean_ms : d->mean_ttl_ms * (1 - weight) + mean_ms * weight;
    }
    expireUpdateStale(&d->in->stats.expired_stale_percent, w->expired, w->visited);
}

/* The blocks of a scan are as large as a bucket was at its start. In a table that has grown since,
 * each block spans many buckets: emptying them one after the other while their neighbours are full
 * would prevent the table from shrinking well. */
static void restartIfGrown(db *d) {
    uint64_t size = dbSize(d);
    if (d->expire_cursor && size <= GROWN * d->expire_size) return;
    d->expire_cursor = 0;
    d->expire_size = size;
}

/* Scans one database until the scan is complete or should not continue. */
static void expireDb(db *d, int64_t now_ms, int64_t floor_us, int64_t deadline_us, int stale_max) {
    restartIfGrown(d);
    uint64_t first_cursor = d->expire_cursor;
    do {
        if (!d->expire_cursor) restartIfGrown(d);
        walk w = {.db = d, .now_ms = now_ms};
        do {
            uint64_t next = kvstoreScanVolatile(d->keys, d->expire_cursor, visit, &w);
            d->expire_cursor = next;
            if (unlikely(w.found.count)) removeNamed(&w);
        } while (d->expire_cursor && w.visited < WINDOW);
        freeNames(&w.found);
        if (w.visited == 0) return;
        updateEstimates(d, &w);
        int64_t time_us = clockMonoUs();
        if (time_us >= deadline_us) return;
        if (time_us >= floor_us && w.expired * 100 <= w.visited * (uint64_t)stale_max) return;
        /* It started in the middle: continue with the part before. */
        if (!d->expire_cursor) {
            if (!first_cursor) return;
            first_cursor = 0;
        }
    } while (true);
}

void storeSetExpiry(keyspace *k, storeExpiry mode) { k->expiry = mode; }

void storeExpireTurn(keyspace *k, int64_t now_ms, int64_t budget_us, int effort) {
    hotCheck(threadIsMain());
    check(effort > 0);
    if (k->expiry != EXPIRY_DELETE) return;
    int64_t started_us = clockMonoUs();
    int64_t floor_us = started_us + budget_us / FLOOR_SHARE * effort;
    int64_t deadline_us = started_us + budget_us;
    int stale_max = STALE_PERCENT - (effort - 1);
    bool capped = false;
    for (int i = 0; i < k->count && !capped; i++) {
        /* Another one is first each time, so that none waits for ever. */
        k->expire_next = (k->expire_next + 1) % k->count;
        db *d = k->dbs[k->expire_next];
        if (!dbVolatileCount(d)) {
            d->mean_ttl_ms = 0;
            continue;
        }
        expireDb(d, now_ms, floor_us, deadline_us, stale_max);
        capped = clockMonoUs() >= deadline_us;
    }
    if (!itemsExpireTurn(k, now_ms, clockMonoUs() + budget_us / FLOOR_SHARE * effort, deadline_us,
                         stale_max))
        capped = true;
    k->timed_out = capped;
    k->stats.expire_time_caps += capped;
    k->stats.expire_us += (uint64_t)(clockMonoUs() - started_us);
}

bool storeExpireTimedOut(const keyspace *k) { return k->timed_out; }

bool storeHasVolatile(const keyspace *k) {
    for (int i = 0; i < k->count; i++) {
        if (dbVolatileCount(k->dbs[i]) || hashtableCount(&k->dbs[i]->items)) return true;
    }
    return false;
}

int64_t dbMeanTtl(const db *d) { return (int64_t)d->mean_ttl_ms; }
