/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Active expiry: the dead are looked for among the volatile keys, which the tables find without touching
 * the others (hashtableScanVolatile()).
 *
 * A turn walks on where the last one stopped. It always takes a small share of the time, so that a walk over
 * few volatile keys is complete in every turn, and goes on to its full budget only while much of what it
 * meets is dead. Cost: about 50 ns a volatile key met, 150 ns a dead one. Main thread only. */
#include "base/base.h"
#include "store/db_priv.h"

enum {
    FLOOR_SHARE = 8, /* a turn always takes one part in so many of its budget */
    GROWN = 2,       /* times the size at its start: then a walk begins anew */
    STALE_PERCENT =
        10,       /* of dead ones among those met: above it a turn goes on; less with effort */
    WINDOW = 200, /* keys met between two looks at clock and share */
};

/* One walk within a turn. */
typedef struct walk {
    db *db;
    int64_t now_ms;
    uint64_t met, dead;
    double ttl_sum_ms; /* of the living */
} walk;

static void visit(void *context, void *entry, unsigned flags) {
    (void)flags; /* volatile, as asked for */
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

/* What a walk tells of the living and the dead. */
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

/* A walk goes in blocks as large as a bucket was when it began. In a table that has grown since, those are many buckets:
 * one after the other would run empty while their neighbours are full, and the table could not shrink well. */
static void beginAnewIfGrown(db *d) {
    uint64_t size = dbSize(d);
    if (d->expire_cursor && size <= GROWN * d->expire_size) return;
    d->expire_cursor = 0;
    d->expire_size = size;
}

/* Walks over one database until it is through, or nothing speaks for going on. */
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
        /* Begun in the middle: what lies before it comes now. */
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
        /* Another one is first each time, so that none waits for ever. */
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
