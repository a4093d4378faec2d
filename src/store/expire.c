/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Active expiry: removes expired keys. The tables find volatile keys without visiting others
 * (hashtableScanVolatile()).
 *
 * A turn continues where the last one stopped. It always uses a small share of its time budget, so that a scan over
 * few volatile keys is completed in every turn, and uses the full budget only while a large share of the keys it
 * visits is expired. Cost: about 50 ns per volatile key, 150 ns per expired one. Main thread only. */
#include "base/base.h"
#include "store/db_priv.h"

enum {
    FLOOR_SHARE = 8, /* a turn always uses 1/8 of its budget */
    GROWN = 2,       /* a scan restarts if the table has grown by this factor */
    STALE_PERCENT =
        10,       /* minimum share of expired keys for a turn to continue; lower with greater effort */
    WINDOW = 200, /* keys visited between two checks of time and share */
};

/* One scan within a turn. */
typedef struct walk {
    db *db;
    int64_t now_ms;
    uint64_t met, dead;
    double ttl_sum_ms; /* of keys that are not expired */
} walk;

static void visit(void *context, void *entry, unsigned flags) {
    (void)flags; /* always volatile */
    walk *w = context;
    robj *o = entry;
    int64_t expire_ms = objectExpire(o);
    w->met++;
    if (expire_ms > w->now_ms) {
        w->ttl_sum_ms += (double)(expire_ms - w->now_ms);
        return;
    }
    w->dead++;
    dbRemoveExpired(w->db, o);
}

void expireLearnStale(double *percent, uint64_t dead, uint64_t met) {
    double stale = 100.0 * (double)dead / (double)met;
    *percent = *percent * 0.95 + stale * 0.05;
}

/* Updates the estimates from the results of a scan. */
static void learn(db *d, const walk *w) {
    const double weight = 0.02;
    uint64_t living = w->met - w->dead;
    if (living) {
        double mean_ms = w->ttl_sum_ms / (double)living;
        d->mean_ttl_ms =
            d->mean_ttl_ms == 0 ? mean_ms : d->mean_ttl_ms * (1 - weight) + mean_ms * weight;
    }
    expireLearnStale(&storeNow.stats.expired_stale_percent, w->dead, w->met);
}

/* The blocks of a scan are as large as a bucket was at its start. In a table that has grown since, each block spans
 * many buckets: emptying them one after the other while their neighbours are full would prevent the table from
 * shrinking well. */
static void beginAnewIfGrown(db *d) {
    uint64_t size = dbSize(d);
    if (d->expire_cursor && size <= GROWN * d->expire_size) return;
    d->expire_cursor = 0;
    d->expire_size = size;
}

/* Scans one database until the scan is complete or should not continue. */
static void expireDb(db *d, int64_t now_ms, int64_t floor_us, int64_t deadline_us, int stale_max) {
    beginAnewIfGrown(d);
    uint64_t first_cursor = d->expire_cursor;
    do {
        if (!d->expire_cursor) beginAnewIfGrown(d);
        walk w = {.db = d, .now_ms = now_ms};
        do {
            d->expire_cursor = kvstoreScanVolatile(d->keys, d->expire_cursor, visit, &w);
        } while (d->expire_cursor && w.met < WINDOW);
        if (w.met == 0) return;
        learn(d, &w);
        int64_t time_us = clockMonoUs();
        if (time_us >= deadline_us) return;
        if (time_us >= floor_us && w.dead * 100 <= w.met * (uint64_t)stale_max) return;
        /* It started in the middle: continue with the part before. */
        if (!d->expire_cursor) {
            if (!first_cursor) return;
            first_cursor = 0;
        }
    } while (true);
}

void storeSetExpiry(storeExpiry mode) { storeNow.expiry = mode; }

void storeExpireTurn(int64_t now_ms, int64_t budget_us, int effort) {
    check(effort > 0);
    if (storeNow.expiry != EXPIRY_DELETE) return;
    int64_t started_us = clockMonoUs();
    int64_t floor_us = started_us + budget_us / FLOOR_SHARE * effort;
    int64_t deadline_us = started_us + budget_us;
    int stale_max = STALE_PERCENT - (effort - 1);
    bool capped = false;
    for (int i = 0; i < storeNow.count && !capped; i++) {
        /* Start with a different database each time, so that all get their turn. */
        storeNow.expire_next = (storeNow.expire_next + 1) % storeNow.count;
        db *d = storeNow.dbs[storeNow.expire_next];
        if (!dbVolatileCount(d)) {
            d->mean_ttl_ms = 0;
            continue;
        }
        expireDb(d, now_ms, floor_us, deadline_us, stale_max);
        capped = clockMonoUs() >= deadline_us;
    }
    if (!itemsExpireTurn(now_ms, clockMonoUs() + budget_us / FLOOR_SHARE * effort, deadline_us,
                         stale_max))
        capped = true;
    storeNow.behind = capped;
    storeNow.stats.expire_time_caps += capped;
    storeNow.stats.expire_us += (uint64_t)(clockMonoUs() - started_us);
}

bool storeExpireIsBehind(void) { return storeNow.behind; }

int64_t dbMeanTtl(const db *d) { return (int64_t)d->mean_ttl_ms; }
