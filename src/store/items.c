/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Keys whose values have volatile items: hashes with field TTLs, sets and sorted sets with member
 * TTLs. Each database records the names of
 * such keys, so that active expiry finds the fields without visiting other keys; a database without
 * such keys has an empty table.
 *
 * A name is recorded when its object is stored. It is not removed with the object, so names may be
 * stale: stale names are dropped when they are visited. Main thread only. */
#include "base/base.h"
#include "store/db_priv.h"
#include "store/member_priv.h"
#include "store/type_hash.h"

enum {
    BATCH = 64,   /* names per step of the scan; more are visited again */
    WINDOW = 200, /* fields visited between two reads of the clock */
};

typedef struct itemKey {
    uint64_t hash;
    size_t len;
    char bytes[];
} itemKey;

static uint64_t keyHash(const void *entry) { return ((const itemKey *)entry)->hash; }

static bool keyMatches(const void *entry, const void *key, size_t len) {
    const itemKey *k = entry;
    return k->len == len && memcmp(k->bytes, key, len) == 0;
}

static const hashtableType items_type = {.hash_of = keyHash, .match = keyMatches};

static inline bool hasItems(const robj *o) {
    if (likely(objectType(o) != TYPE_HASH && objectType(o) != TYPE_SET &&
               objectType(o) != TYPE_ZSET))
        return false;
    return objectType(o) == TYPE_HASH ? hashTimedCount(o) > 0 : membersTimes(o) != NULL;
}

void itemsNote(db *d, uint64_t hash, const robj *o) {
    hotCheck(threadIsMain());
    if (!hasItems(o)) return;
    if (objectType(o) != TYPE_HASH) membersNote(hash, o);
    slice key = objectKey(o);
    hashtablePosition position;
    if (hashtableFindPosition(&d->items, &items_type, hash, key.ptr, key.len, &position)) return;
    itemKey *k = memAlloc(sizeof(*k) + key.len);
    k->hash = hash;
    k->len = key.len;
    memcpy(k->bytes, key.ptr, key.len);
    hashtableInsertAt(&d->items, &items_type, &position, k, 0);
}

/* The names that a walk is visiting, while callbacks of the listener may free any of them. */
typedef struct batch {
    const db *of;
    itemKey *keys[BATCH]; /* NULL: freed */
    unsigned count;
    struct batch *below; /* of the walk that this one interrupts */
} batch;

static batch *walked; /* the innermost walk's */

/* `k` is freed; NULL: all names of the database. */
static void leaveBatches(const db *d, const itemKey *k) {
    for (batch *b = walked; b; b = b->below) {
        if (b->of != d) continue;
        for (unsigned i = 0; i < b->count; i++) {
            if (!k || b->keys[i] == k) b->keys[i] = NULL;
        }
    }
}

void itemsExchanged(const db *a, const db *b) {
    hotCheck(threadIsMain());
    leaveBatches(a, NULL);
    leaveBatches(b, NULL);
}

static void freeKey(void *context, void *entry, unsigned flags) {
    (void)context, (void)flags; /* all entries */
    memFree(entry);
}

void itemsForget(db *d) {
    leaveBatches(d, NULL);
    hashtableFree(&d->items, freeKey, NULL);
    d->items_cursor = d->field_cursor = d->field_key = 0;
    hotCheck(hashtableCount(&d->items) == 0);
}

static void drop(db *d, itemKey *k) {
    leaveBatches(d, k);
    check(hashtableDeleteEntry(&d->items, &items_type, k->hash, k));
    memFree(k);
}

/* The object of a name; NULL if the name was stale and has been dropped. */
static robj *objectOf(db *d, itemKey *k) {
    const robj *o = dbPeek(d, sliceMake(k->bytes, k->len), k->hash);
    if (o && hasItems(o)) return (robj *)(uintptr_t)o;
    drop(d, k);
    return NULL;
}

/* ------------------------------------------------------------------ scanning */

static void collect(void *context, void *entry, unsigned flags) {
    hotCheck(((const batch *)context)->count <= BATCH);
    (void)flags; /* no flags */
    batch *b = context;
    if (b->count < BATCH) b->keys[b->count++] = entry;
}

uint64_t dbItemKeys(db *d) {
    enum { LOOKS = 1000 };
    uint64_t cursor = d->items_cursor;
    for (unsigned looked = 0; looked < LOOKS && hashtableCount(&d->items) > 0;) {
        batch b = {.count = 0};
        cursor = hashtableScan(&d->items, &items_type, cursor, collect, &b);
        for (unsigned i = 0; i < b.count; i++) (void)objectOf(d, b.keys[i]); /* drops stale names */
        looked += b.count + 1;
        if (looked > hashtableCount(&d->items) && cursor == 0) break;
    }
    return hashtableCount(&d->items);
}

void dbCountExpiredFields(db *d, uint64_t count) { d->in->stats.expired_fields += count; }

void dbCountExpiredMembers(db *d, uint64_t count) { d->in->stats.expired_members += count; }

void dbNoteItems(db *d, uint64_t hash, const robj *o) { itemsNote(d, hash, o); }

/* ------------------------------------------------------------------ active expiry */

typedef struct walk {
    int64_t now_ms, floor_us, deadline_us;
    uint64_t visited, expired; /* fields */
    uint64_t keys, stale_keys; /* keys visited; those with an expired field */
    int stale_max;
} walk;

static bool timeIsOver(const walk *w) {
    int64_t time_us = clockMonoUs();
    return time_us >= w->deadline_us ||
           (time_us >= w->floor_us && w->expired * 100 <= w->visited * (uint64_t)w->stale_max);
}

void itemsExpiring(db *d, slice key, const robj *o, const slice *items, unsigned count) {
    hotCheck(count > 0);
    if (d->in->listener) d->in->listener->items_expiring(d, key, objectType(o), items, count);
}

/* The value of a key if it is empty. */
static const robj *emptyValue(const db *d, slice key, uint64_t hash) {
    const robj *o = dbPeek(d, key, hash);
    if (!o ||
        (objectType(o) != TYPE_HASH && objectType(o) != TYPE_SET && objectType(o) != TYPE_ZSET))
        return NULL;
    uint64_t hidden = objectType(o) == TYPE_HASH ? 0 : membersHidden(o);
    return objectLength(o) + hidden == 0 ? o : NULL;
}

bool itemsExpired(db *d, slice key, uint64_t hash) {
    hotCheck(hash == storeHash(key));
    const storeListener *l = d->in->listener;
    const robj *o = dbPeek(d, key, hash);
    str name = strNew(key);
    if (l) l->items_expired(d, strSlice(&name), objectType(o));
    bool empty = emptyValue(d, strSlice(&name), hash) != NULL;
    if (empty) (void)dbDeleteNow(d, strSlice(&name), hash, lookAtAll()); /* it exists */
    if (l) l->items_ended(d, strSlice(&name), empty);
    strFree(&name);
    return empty;
}

/* The object of a name of the innermost walk after callbacks; NULL if there is none any more. */
static robj *objectAgain(db *d, unsigned index) {
    hotCheck(index < walked->count);
    hotCheck(walked->of == d);
    itemKey *k = walked->keys[index];
    return k ? objectOf(d, k) : NULL;
}

void dbExpireField(db *d, slice key, uint64_t hash, robj *o, slice field) {
    hotCheck(objectType(o) == TYPE_HASH);
    hotCheck(hash == storeHash(key));
    d->in->stats.expired_fields++;
    beforeChange(d, hash, o);
    itemsExpiring(d, key, o, &field, 1);
    check(hashDelete(&o, field, lookAtAll())); /* a table, which stays where it is */
    (void)itemsExpired(d, key, hash);
}

/* Removes expired members of a set or sorted set, key number `index` of the walk. False if the time
 * is up. */
static bool expireMembers(db *d, unsigned index, robj *o, walk *w) {
    slice members[MEMBERS_EXPIRED_MAX];
    uint64_t looked = 0;
    bool stale = false;
    while (o && objectType(o) != TYPE_HASH) {
        const itemKey *k = walked->keys[index];
        unsigned count = membersFindExpired(o, w->now_ms, members);
        w->visited += count + 1;
        w->expired += count;
        if (count && !stale) w->stale_keys++;
        stale |= count > 0;
        looked += count + 1;
        if (!count) break;
        (void)membersRemoveExpired(d, sliceMake(k->bytes, k->len), k->hash, o, members, count);
        o = objectAgain(d, index); /* drops the name if no member with a TTL is left */
        if (count < MEMBERS_EXPIRED_MAX) break;
        if (looked < WINDOW) continue;
        looked = 0;
        if (timeIsOver(w)) return false;
    }
    return true;
}

static void removeFields(db *d, slice key, uint64_t hash, robj *o, const hashExpired *expired) {
    hotCheck(expired->count > 0);
    hotCheck(expired->count <= hashLength(o));
    d->in->stats.expired_fields += expired->count;
    beforeChange(d, hash, o);
    itemsExpiring(d, key, o, expired->fields, expired->count);
    hashRemoveExpired(o, expired);
    (void)itemsExpired(d, key, hash);
}

bool dbExpireFields(db *d, slice key, uint64_t hash, storeLook look) {
    hotCheck(hash == storeHash(key));
    bool changed = false;
    uint64_t cursor = 0;
    if (!removesExpired(d, hash)) return false;
    do {
        robj *o = (robj *)(uintptr_t)dbPeek(d, key, hash);
        if (!o || objectType(o) != TYPE_HASH || hashTimedCount(o) == 0) break;
        hashExpired expired;
        cursor = hashFindExpired(o, cursor, look.bits >> 1, &expired);
        if (expired.count) removeFields(d, key, hash, o, &expired);
        changed |= expired.count > 0;
    } while (cursor);
    return changed;
}

/* Removes expired fields or members of key number `index` of the walk. False if the time is up; the
 * scan continues there next time. */
static bool expireKey(db *d, unsigned index, walk *w) {
    robj *o = objectAgain(d, index);
    uint64_t hash = o ? walked->keys[index]->hash : 0;
    if (!o || objectIsExpired(o, w->now_ms) || isHidden(d, hash)) return true;
    if (unlikely(storeNow.watches) && readingHolds(d, hash)) return true;
    uint64_t cursor = d->field_key == hash ? d->field_cursor : 0, looked = 0;
    uint64_t dead_before = w->expired;
    d->field_key = 0;
    w->keys++;
    if (objectType(o) != TYPE_HASH) return expireMembers(d, index, o, w);
    do {
        hashExpired expired;
        cursor = hashFindExpired(o, cursor, w->now_ms, &expired);
        w->visited += expired.visited;
        if (expired.count && w->expired == dead_before) w->stale_keys++;
        w->expired += expired.count;
        looked += expired.visited + 1;
        if (expired.count) {
            const itemKey *k = walked->keys[index];
            removeFields(d, sliceMake(k->bytes, k->len), hash, o, &expired);
            o = objectAgain(d, index);
        }
        if (!o || objectType(o) != TYPE_HASH) return true;
        if (looked < WINDOW || !cursor) continue;
        looked = 0;
        if (!timeIsOver(w)) continue;
        d->field_key = hash;
        d->field_cursor = cursor;
        return false;
    } while (cursor);
    return true;
}

/* Visits some names. False if the time is up. */
static bool expireBatch(db *d, batch *b, walk *w) {
    hotCheck(b->of == d);
    unsigned i = 0;
    if (d->field_key) {
        while (i < b->count && b->keys[i]->hash != d->field_key) i++;
        if (i == b->count) i = 0;
    }
    b->below = walked;
    walked = b;
    while (i < b->count && expireKey(d, i, w)) i++;
    walked = b->below;
    return i == b->count;
}

static bool expireItems(db *d, walk *w) {
    uint64_t begun = d->items_cursor;
    do {
        batch b = {.of = d};
        uint64_t next = hashtableScan(&d->items, &items_type, d->items_cursor, collect, &b);
        if (!expireBatch(d, &b, w)) return false;
        d->items_cursor = next;
        if (!next) {
            if (!begun) return true;
            begun = 0; /* it started in the middle: continue with the part before */
        }
    } while (!timeIsOver(w));
    return clockMonoUs() < w->deadline_us;
}

bool itemsExpireTurn(keyspace *k, int64_t now_ms, int64_t floor_us, int64_t deadline_us,
                     int stale_max) {
    hotCheck(k->count > 0);
    hotCheck(stale_max >= 0);
    bool through = true;
    for (int i = 0; i < k->count && through; i++) {
        k->items_next = (k->items_next + 1) % k->count;
        db *d = k->dbs[k->items_next];
        walk w = {.now_ms = now_ms,
                  .floor_us = floor_us,
                  .deadline_us = deadline_us,
                  .stale_max = stale_max};
        if (hashtableCount(&d->items)) through = expireItems(d, &w);
        if (w.keys) expireUpdateStale(&k->stats.stale_items_percent, w.stale_keys, w.keys);
    }
    return through || clockMonoUs() < deadline_us;
}
