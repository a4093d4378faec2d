/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Tracks and removes keys whose TTL was set by clients of a writable replica (local_expiry.h).
 *
 * Invariant: the observer is armed if and only if `on` is set. When it is off, no key is added, and
 * the next tick frees the table. */
#include "repl/local_expiry.h"

#include "base/base.h"
#include "base/hash.h"
#include "ds/hashtable.h"
#include "engine/ctx.h"
#include "engine/hot.h"
#include "store/store.h"

typedef struct trackedKey {
    int db_id;
    size_t len;
    char bytes[];
} trackedKey;

typedef struct wantedKey {
    int db_id;
    slice key;
} wantedKey;

static struct {
    hashtable keys;
    uint64_t cursor; /* of the walk over the table */
    bool on;
} tracked;

static uint64_t hashOf(int db_id, slice key) {
    hotCheck(db_id < storeDbCount());
    hotCheck(db_id >= 0);
    const uint64_t golden_ratio = 0x9E3779B97F4A7C15;
    return hashBytes(key.ptr, key.len) + (uint64_t)db_id * golden_ratio;
}

static slice textOf(const trackedKey *k) { return sliceMake(k->bytes, k->len); }

static uint64_t hashOfEntry(const void *entry) {
    const trackedKey *k = entry;
    return hashOf(k->db_id, textOf(k));
}

static bool entryIs(const void *entry, const void *key, size_t len) {
    (void)len; /* a wantedKey has a fixed size */
    const trackedKey *k = entry;
    const wantedKey *wanted = key;
    return k->db_id == wanted->db_id && sliceEqual(textOf(k), wanted->key);
}

static const hashtableType table_type = {.hash_of = hashOfEntry, .match = entryIs};

static void keyChanged(db *d, slice key, const keyEvent *event) {
    hotCheck(tracked.on);
    (void)event;
    const ctx *c = engineHot.current;
    if (!c || ctxIsReplay(c)) return;
    const robj *o = dbPeek(d, key, storeHash(key));
    if (!o || !objectHasExpire(o)) return;
    wantedKey wanted = {dbId(d), key};
    uint64_t hash = hashOf(wanted.db_id, key);
    if (hashtableFind(&tracked.keys, &table_type, hash, &wanted, sizeof(wanted))) return;
    trackedKey *k = memAlloc(sizeof(*k) + key.len);
    k->db_id = wanted.db_id;
    k->len = key.len;
    memcpy(k->bytes, key.ptr, key.len);
    hashtableInsert(&tracked.keys, &table_type, hash, k, 0);
}

const keyObserver localExpiryObserver = {.name = "local expiry", .changed = keyChanged};

/* Removes the key if it has expired; true if it has no TTL any more. */
static bool expire(const trackedKey *k) {
    hotCheck(k->db_id >= 0);
    hotCheck(k->db_id < storeDbCount());
    db *d = storeDb(k->db_id);
    slice key = textOf(k);
    uint64_t hash = storeHash(key);
    const robj *o = dbPeek(d, key, hash);
    if (!o || !objectHasExpire(o)) return true;
    if (!storeIsExpired(o, lookAt(engineHot.now_ms))) return false;
    dbPosition at;
    return !dbFind(d, key, hash, lookAt(engineHot.now_ms), &at); /* removes it */
}

static void visit(void *context, void *entry, unsigned flags) {
    (void)context, (void)flags;
    if (!expire(entry)) return;
    bool was_there = hashtableDeleteEntry(&tracked.keys, &table_type, hashOfEntry(entry), entry);
    check(was_there);
    memFree(entry);
}

void localExpiryTick(void) {
    hotCheck(threadIsMain());
    enum { STEPS = 64 };
    if (!tracked.on) {
        localExpiryForget();
        return;
    }
    for (int i = 0; i < STEPS && hashtableCount(&tracked.keys); i++) {
        tracked.cursor = hashtableScan(&tracked.keys, &table_type, tracked.cursor, visit, NULL);
        if (tracked.cursor == 0) return;
    }
}

static void freeKey(void *context, void *entry, unsigned flags) {
    (void)context, (void)flags;
    memFree(entry);
}

void localExpirySet(bool on) {
    if (on == tracked.on) return;
    tracked.on = on;
    keyObserverArm(&localExpiryObserver, on);
}

void localExpiryForget(void) {
    hashtableFree(&tracked.keys, freeKey, NULL);
    tracked.keys = (hashtable){0};
    tracked.cursor = 0;
}

uint64_t localExpiryCount(void) { return hashtableCount(&tracked.keys); }
