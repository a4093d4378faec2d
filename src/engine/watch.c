/* SPDX-License-Identifier: BSD-3-Clause
 *
 * WATCH: the sessions that watch a key, using the index in key_index.h. Invariant: a watched key is
 * in the index if and only if a session watches it; a session is in the list of watching ones if
 * and only if it watches a key, and none of its keys has changed yet. A change costs one lookup and
 * one step per watch.
 *
 * Many watches that end together (UNWATCH, EXEC, FLUSHALL) lose their transaction at once, and are
 * freed in slices, between the requests of others.
 *
 * A key that was already expired when it was watched counts as missing: its removal is not a
 * change, its creation is. */
#include "engine/watch.h"

#include "base/base.h"
#include "engine/hot.h"
#include "engine/key_index.h"
#include "engine/later.h"
#include "engine/transaction_priv.h"
#include "store/store.h"

/* The owner of all watches of a transaction, which are freed together. */
typedef struct watcher {
    transaction *of; /* NULL: they have ended */
    list ended;      /* the watches then */
} watcher;

typedef struct watch {
    listNode of_key, of_session;
    indexedKey *key;
    watcher *by;
    bool stale; /* the key exists, but was already expired when watched */
} watch;

static struct {
    list watching; /* list of transactions */
    uint64_t keys; /* number of watched keys */
    size_t ended;  /* watches that are still to be freed */
} watched;

static const robj *present(const db *d, const indexedKey *k) {
    return dbPeek(d, indexedKeyText(k), storeHash(indexedKeyText(k)));
}

/* Searches the shorter of the two lists that contain a watch. */
static bool isWatched(const indexedKey *k, const transaction *t) {
    if (k->watchers.count < t->watches.count) {
        for (listNode *n = listFirst(&k->watchers); n; n = listNext(&k->watchers, n)) {
            if (LIST_OWNER(n, watch, of_key)->by->of == t) return true;
        }
    } else {
        for (listNode *n = listFirst(&t->watches); n; n = listNext(&t->watches, n)) {
            if (LIST_OWNER(n, watch, of_session)->key == k) return true;
        }
    }
    return false;
}

static void addWatch(indexedKey *k, transaction *t, bool stale) {
    if (!watched.watching.head.next) listInit(&watched.watching);
    watch *w = memNew(watch);
    if (!t->watcher) {
        t->watcher = memNew(watcher);
        *t->watcher = (watcher){.of = t};
    }
    w->key = k;
    w->by = t->watcher;
    w->stale = stale;
    if (listIsEmpty(&k->watchers)) watched.keys++;
    listAppend(&k->watchers, &w->of_key);
    listAppend(&t->watches, &w->of_session);
    t->watch_memory += sizeof(*w) + sizeof(*k) + k->len;
    if (listHas(&t->watching)) return;
    listAppend(&watched.watching, &t->watching);
}

void watchKey(session *s, slice key, uint64_t hash, int64_t now_ms) {
    hotCheck(threadIsMain());
    if (s->flags & SESSION_WATCH_DIRTY) return;
    transaction *t = transactionOf(s);
    indexedKey *k = keyIndexGet(s->db_id, key);
    if (isWatched(k, t)) return;
    const robj *o = dbPeek(s->db, key, hash);
    bool stale = o && objectIsExpired(o, now_ms);
    if (o && !stale && objectHasExpire(o) && objectExpire(o) < t->watch_expire_ms) {
        t->watch_expire_ms = objectExpire(o);
    }
    addWatch(k, t, stale);
}

/* Frees up to `most` watches of a list. */
static void freeWatches(list *from, size_t most) {
    listNode *n;
    for (; most > 0 && (n = listFirst(from)); most--) {
        watch *w = LIST_OWNER(n, watch, of_session);
        indexedKey *k = w->key;
        listRemove(from, &w->of_session);
        listRemove(&k->watchers, &w->of_key);
        memFree(w);
        if (listIsEmpty(&k->watchers)) watched.keys--;
        keyIndexDrop(k);
    }
}

/* A part of the watches that have ended. */
static laterRest freeSome(void *arg) {
    enum { PART = 1000 };
    watcher *by = arg;
    check(!by->of);
    watched.ended -= sizeMin(by->ended.count, PART);
    freeWatches(&by->ended, PART);
    if (!listIsEmpty(&by->ended)) return LATER_MORE;
    memFree(by);
    return LATER_NOTHING;
}

/* Takes the watches from their transaction, to be freed later. */
static void endWatches(transaction *t) {
    watcher *by = t->watcher;
    check(by->of == t);
    by->of = NULL;
    listInit(&by->ended);
    listMoveAll(&by->ended, &t->watches);
    watched.ended += by->ended.count;
    t->watcher = NULL;
    laterRun(freeSome, by);
}

/* Drops all watches of a transaction. */
static void dropWatches(transaction *t) {
    enum { AT_ONCE = 1000 };
    if (unlikely(t->watches.count > AT_ONCE)) endWatches(t);
    freeWatches(&t->watches, SIZE_MAX);
    memFree(t->watcher);
    t->watcher = NULL;
    t->watch_memory = 0;
    t->watch_expire_ms = INT64_MAX;
    if (listHas(&t->watching)) listRemove(&watched.watching, &t->watching);
}

void watchForget(session *s) {
    s->flags &= ~SESSION_WATCH_DIRTY;
    if (s->multi) dropWatches(s->multi);
}

bool watchIsBroken(const session *s, int64_t now_ms) {
    if (s->flags & SESSION_WATCH_DIRTY) return true;
    return s->multi && expiryIsPast(s->multi->watch_expire_ms, now_ms);
}

/* ------------------------------------------------------------------ changes */

static void fail(transaction *t) {
    dropWatches(t);
    transactionFail(t->who, SESSION_WATCH_DIRTY);
}

void watchKeyChanged(db *d, indexedKey *k) {
    hotCheck(threadIsMain());
    bool gone = !present(d, k);
    listNode *n = listFirst(&k->watchers);
    while (n) {
        watch *w = LIST_OWNER(n, watch, of_key);
        n = listNext(&k->watchers, n); /* the last watch frees the key */
        if (w->stale && gone) {
            w->stale = false;
        } else if (w->by->of) {
            fail(w->by->of);
        }
    }
}

/* The key's database is going to have the contents of `next` (NULL: none). True if that changes the
 * watched key. */
static bool breaks(watch *w, const db *next) {
    const robj *before = present(storeDb(w->key->db_id), w->key);
    const robj *after = next ? present(next, w->key) : NULL;
    bool dead_after = !after || objectIsExpired(after, engineHot.now_ms);
    bool dead_before = !before || w->stale;
    if (!dead_before || !dead_after) return true;
    w->stale = after != NULL;
    return false;
}

static void databaseChanges(int db_id, const db *next) {
    hotCheck(db_id < storeDbCount());
    listNode *at = listFirst(&watched.watching);
    while (at) {
        transaction *t = LIST_OWNER(at, transaction, watching);
        at = listNext(&watched.watching, at);
        bool broken = false;
        for (listNode *n = listFirst(&t->watches); n && !broken; n = listNext(&t->watches, n)) {
            watch *w = LIST_OWNER(n, watch, of_session);
            if (db_id < 0 || w->key->db_id == db_id) broken = breaks(w, next);
        }
        if (broken) fail(t);
    }
}

void watchDbEvent(const dbEvent *e) {
    hotCheck(threadIsMain());
    if (!watchingSessionCount()) return;
    if (e->kind == DB_FLUSHING) {
        databaseChanges(e->db_id, NULL);
    } else if (e->kind == DB_SWAPPING && e->db_id != e->other_id) {
        databaseChanges(e->db_id, storeDb(e->other_id));
        databaseChanges(e->other_id, storeDb(e->db_id));
    }
}

/* ------------------------------------------------------------------ statistics */

size_t watchCount(const session *s) { return s->multi ? s->multi->watches.count : 0; }

size_t watchMemory(const session *s) { return s->multi ? s->multi->watch_memory : 0; }

/* While watches that have ended are being freed, keys that others watch, too, are not counted. */
uint64_t watchedKeyCount(void) {
    return watched.keys > watched.ended ? watched.keys - watched.ended : 0;
}

uint64_t watchingSessionCount(void) { return watched.watching.count; }
