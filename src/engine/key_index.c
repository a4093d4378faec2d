/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Index of watched keys and keys of blocked sessions (key_index.h). Invariant: a key is in the
 * index if and only if one of its lists is not empty or it is held; the key observer is armed while
 * the index is not empty. */
#include "engine/key_index.h"

#include "base/base.h"
#include "base/hash.h"
#include "ds/hashtable.h"
#include "store/store.h"

static hashtable keys;

/* The key of a lookup. */
typedef struct wantedKey {
    int db_id;
    slice key;
} wantedKey;

static uint64_t hashOf(const wantedKey *w) {
    const uint64_t golden_ratio = 0x9E3779B97F4A7C15;
    return hashBytes(w->key.ptr, w->key.len) + (uint64_t)w->db_id * golden_ratio;
}

static uint64_t hashOfEntry(const void *entry) {
    const indexedKey *k = entry;
    return hashOf(&(wantedKey){k->db_id, indexedKeyText(k)});
}

static bool entryIs(const void *entry, const void *key, size_t len) {
    (void)len; /* a wantedKey has a fixed size */
    const indexedKey *k = entry;
    const wantedKey *wanted = key;
    return k->db_id == wanted->db_id && sliceEqual(indexedKeyText(k), wanted->key);
}

static const hashtableType index_type = {.hash_of = hashOfEntry, .match = entryIs};

indexedKey *keyIndexFind(int db_id, slice key) {
    hotCheck(db_id < storeDbCount());
    hotCheck(db_id >= 0);
    wantedKey wanted = {db_id, key};
    return hashtableFind(&keys, &index_type, hashOf(&wanted), &wanted, sizeof(wanted));
}

indexedKey *keyIndexGet(int db_id, slice key) {
    hotCheck(db_id < storeDbCount());
    hotCheck(db_id >= 0);
    indexedKey *k = keyIndexFind(db_id, key);
    if (k) return k;
    k = memCalloc(1, sizeof(*k) + key.len);
    listInit(&k->watchers);
    listInit(&k->waits);
    k->db_id = db_id;
    k->len = key.len;
    if (k->len) memcpy(k->bytes, key.ptr, k->len);
    hashtableInsert(&keys, &index_type, hashOfEntry(k), k, 0);
    if (hashtableCount(&keys) == 1) keyObserverArm(&keyIndexObserver, true);
    return k;
}

void keyIndexDrop(indexedKey *k) {
    hotCheck(threadIsMain());
    if (k->held || !listIsEmpty(&k->waits) || !listIsEmpty(&k->watchers)) return;
    check(!listHas(&k->ready));
    bool was_there = hashtableDeleteEntry(&keys, &index_type, hashOfEntry(k), k);
    check(was_there);
    memFree(k);
    if (!hashtableCount(&keys)) keyObserverArm(&keyIndexObserver, false);
}

static void keyChanged(db *d, slice key, const keyEvent *event) {
    (void)event; /* every change counts; the current value decides */
    indexedKey *k = keyIndexFind(dbId(d), key);
    if (!k) return;
    if (!listIsEmpty(&k->waits)) blockKeyChanged(k);
    if (!listIsEmpty(&k->watchers)) watchKeyChanged(d, k); /* may free the key */
}

const keyObserver keyIndexObserver = {.name = "watched and waited-for keys", .changed = keyChanged};
