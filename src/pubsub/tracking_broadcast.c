/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Broadcast mode: trackers are told of all changes of keys with certain prefixes, whatever they
 * have read.
 *
 * The keys changed in a turn of the loop are collected once, for all prefixes. Before the loop
 * sleeps they are sorted, so that those of a prefix are adjacent, and each prefix that matched one
 * is told of them in one message, encoded once per protocol. The cost of a change is a lookup for
 * each length of prefixes that exists (lengths of INDEXED_MAX and more count as one), not for each
 * prefix.
 *
 * Invariant: a prefix exists while it has trackers; it is in `by_start` under its first INDEXED_MAX
 * bytes, in a chain of those that have the same. `lengths` has the bit n if there is an indexed
 * start of n bytes. */
#include <stdlib.h>

#include "base/base.h"
#include "base/hash.h"
#include "engine/deliver.h"
#include "engine/user.h"
#include "ds/hashtable.h"
#include "pubsub/tracking.h"
#include "store/store.h"

enum { INDEXED_MAX = 63, LIST_KEPT_MAX = 1024 };

typedef struct prefix {
    struct prefix *next; /* with the same start */
    tracker **trackers;
    uint32_t count, cap;
    bool matched; /* is in `matched` */
    size_t len;
    char name[];
} prefix;

typedef struct changedKey {
    size_t at, len; /* in `bytes` */
    uint32_t by;    /* number of the tracker that changed it and has NOLOOP; 0: none */
    uint32_t order;
    int db_id; /* only users who may read it there are told */
} changedKey;

static struct {
    hashtable by_start;
    uint64_t lengths;
    uint64_t starts_of[INDEXED_MAX + 1]; /* number of starts by length */
    uint64_t count;
    prefix **matched; /* prefixes to be told of a change in this turn */
    size_t matched_count, matched_cap;
    changedKey *keys; /* changed in this turn */
    size_t key_count, key_cap;
    str bytes; /* their names */
} broadcast;

/* ------------------------------------------------------------------ prefixes */

static size_t startOf(const prefix *p) { return sizeMin(p->len, INDEXED_MAX); }

static uint64_t hashOfStart(const void *entry) {
    const prefix *p = entry;
    return hashBytes(p->name, startOf(p));
}

static bool startMatches(const void *entry, const void *start, size_t len) {
    const prefix *p = entry;
    return startOf(p) == len && memcmp(p->name, start, len) == 0;
}

static const hashtableType starts_type = {.hash_of = hashOfStart, .match = startMatches};

/* The chain of prefixes with this start. */
static prefix *findStart(const char *start, size_t len) {
    return hashtableFind(&broadcast.by_start, &starts_type, hashBytes(start, len), start, len);
}

slice prefixName(const prefix *p) { return sliceMake(p->name, p->len); }

uint64_t prefixesCount(void) { return broadcast.count; }

static prefix *prefixNew(slice name) {
    prefix *p = memCalloc(1, sizeof(*p) + name.len);
    p->len = name.len;
    memcpy(p->name, name.ptr, name.len);
    prefix *first = findStart(p->name, startOf(p));
    if (first) {
        p->next = first->next;
        first->next = p;
    } else {
        hashtableInsert(&broadcast.by_start, &starts_type, hashOfStart(p), p, 0);
        broadcast.starts_of[startOf(p)]++;
        broadcast.lengths |= UINT64_C(1) << startOf(p);
    }
    broadcast.count++;
    return p;
}

static void removeFromChain(prefix *p) {
    prefix *first = findStart(p->name, startOf(p));
    if (first != p) {
        while (first->next != p) first = first->next;
        first->next = p->next;
        return;
    }
    if (p->next) {
        check(hashtableReplace(&broadcast.by_start, &starts_type, hashOfStart(p), p, p->next));
        return;
    }
    check(hashtableDeleteEntry(&broadcast.by_start, &starts_type, hashOfStart(p), p));
    if (!--broadcast.starts_of[startOf(p)]) broadcast.lengths &= ~(UINT64_C(1) << startOf(p));
}

static void prefixFree(prefix *p) {
    hotCheck(p->count == 0);
    hotCheck(broadcast.count > 0);
    removeFromChain(p);
    broadcast.count--;
    for (size_t i = 0; p->matched && i < broadcast.matched_count; i++) {
        if (broadcast.matched[i] == p) broadcast.matched[i] = NULL;
    }
    memFree(p->trackers);
    memFree(p);
}

static prefix *findPrefix(slice name) {
    prefix *p = findStart(name.ptr, sizeMin(name.len, INDEXED_MAX));
    while (p && !sliceEqual(prefixName(p), name)) p = p->next;
    return p;
}

void prefixAdd(tracker *t, slice name) {
    prefix *p = findPrefix(name);
    if (!p) p = prefixNew(name);
    for (uint32_t i = 0; i < p->count; i++) {
        if (p->trackers[i] == t) return;
    }
    if (p->count == p->cap) {
        p->cap = p->cap ? 2 * p->cap : 1;
        p->trackers = memRealloc(p->trackers, p->cap * sizeof(*p->trackers));
    }
    p->trackers[p->count++] = t;
    t->prefixes = memRealloc(t->prefixes, (t->prefix_count + 1) * sizeof(*t->prefixes));
    t->prefixes[t->prefix_count++] = p;
    hotCheck(p->count > 0);
}

void prefixesRemove(tracker *t) {
    for (uint32_t i = 0; i < t->prefix_count; i++) {
        prefix *p = t->prefixes[i];
        uint32_t at = 0;
        while (p->trackers[at] != t) at++;
        p->trackers[at] = p->trackers[--p->count];
        if (!p->count) prefixFree(p);
    }
    memFree(t->prefixes);
    t->prefixes = NULL;
    t->prefix_count = 0;
}

/* ------------------------------------------------------------------ changes of a turn */

static void noteMatch(prefix *p) {
    hotCheck(broadcast.matched_count <= broadcast.matched_cap);
    if (p->matched) return;
    if (broadcast.matched_count == broadcast.matched_cap) {
        broadcast.matched_cap = broadcast.matched_cap ? 2 * broadcast.matched_cap : 8;
        broadcast.matched =
            memRealloc(broadcast.matched, broadcast.matched_cap * sizeof(*broadcast.matched));
    }
    broadcast.matched[broadcast.matched_count++] = p;
    p->matched = true;
}

/* Notes all prefixes that a key has; false if there are none. */
static bool matchPrefixes(slice key) {
    bool any = false;
    for (uint64_t left = broadcast.lengths; left; left &= left - 1) {
        size_t len = (size_t)__builtin_ctzll(left);
        if (len > key.len) break;
        for (prefix *p = findStart(key.ptr, len); p; p = p->next) {
            if (p->len > key.len || memcmp(p->name, key.ptr, p->len) != 0) continue;
            noteMatch(p);
            any = true;
        }
    }
    return any;
}

void broadcastChanged(int db_id, slice key, const tracker *by) {
    bool silent = by && by->flags & TRACK_NOLOOP;
    if (!matchPrefixes(key)) return;
    if (broadcast.key_count == broadcast.key_cap) {
        broadcast.key_cap = broadcast.key_cap ? 2 * broadcast.key_cap : 16;
        broadcast.keys = memRealloc(broadcast.keys, broadcast.key_cap * sizeof(*broadcast.keys));
    }
    broadcast.keys[broadcast.key_count] = (changedKey){.at = broadcast.bytes.len,
                                                       .len = key.len,
                                                       .by = silent ? by->number : 0,
                                                       .order = (uint32_t)broadcast.key_count,
                                                       .db_id = db_id};
    broadcast.key_count++;
    strAppendSlice(&broadcast.bytes, key);
}

static slice keyOf(const changedKey *k) {
    return sliceMake(strText(&broadcast.bytes) + k->at, k->len);
}

/* By name and database; of the same ones the last change first. */
static int compareKeys(const void *a, const void *b) {
    const changedKey *x = a, *y = b;
    int order = sliceCompare(keyOf(x), keyOf(y));
    if (!order) order = (x->db_id > y->db_id) - (x->db_id < y->db_id);
    return order ? order : (x->order < y->order) - (x->order > y->order);
}

static void sortKeys(void) {
    qsort(broadcast.keys, broadcast.key_count, sizeof(*broadcast.keys), compareKeys);
    size_t kept = 0;
    for (size_t i = 0; i < broadcast.key_count; i++) {
        const changedKey *k = &broadcast.keys[i], *last = kept ? &broadcast.keys[kept - 1] : NULL;
        if (last && k->db_id == last->db_id && sliceEqual(keyOf(k), keyOf(last))) continue;
        broadcast.keys[kept++] = *k;
    }
    broadcast.key_count = kept;
}

static bool startsWith(slice key, const prefix *p) {
    return key.len >= p->len && memcmp(key.ptr, p->name, p->len) == 0;
}

/* The first key that is not before the prefix. */
static size_t firstOf(const prefix *p) {
    size_t low = 0, high = broadcast.key_count;
    while (low < high) {
        size_t middle = low + (high - low) / 2;
        if (sliceCompare(keyOf(&broadcast.keys[middle]), prefixName(p)) < 0) {
            low = middle + 1;
        } else {
            high = middle;
        }
    }
    return low;
}

/* A name follows its last one in another database: names are sent without databases. */
static int64_t addName(slice *names, int64_t count, slice name) {
    hotCheck(count >= 0);
    if (count && sliceEqual(names[count - 1], name)) return count;
    names[count] = name;
    return count + 1;
}

/* True if its user may read the key. A gateway asks that for its own clients; its link is told of
 * changes at this node alone, as other nodes have links to it of their own. */
static bool mayKnow(const tracker *t, const changedKey *k) {
    if (t->flags & TRACK_LINK) return k->db_id >= 0;
    if (k->db_id >= 0) return userMayRead(t->who, k->db_id, keyOf(k));
    for (int i = 0; i < storeDbCount(); i++)
        if (userMayRead(t->who, i, keyOf(k))) return true;
    return false;
}

/* Selects the keys for one tracker: those that its user may read, with NOLOOP those that others
 * have changed. */
static int64_t namesFor(const tracker *t, size_t first, size_t count, slice *names) {
    hotCheck(first + count <= broadcast.key_count);
    int64_t n = 0;
    for (size_t i = first; i < first + count; i++) {
        const changedKey *k = &broadcast.keys[i];
        if (k->by != t->number && mayKnow(t, k)) n = addName(names, n, keyOf(k));
    }
    return n;
}

/* The same message for all who get all names of the prefix, by protocol. */
typedef struct wholeMessage {
    const slice *names;
    int64_t count;
    blob *encoded[2];
} wholeMessage;

static void sendWhole(tracker *t, wholeMessage *whole) {
    session *target = invalidationTarget(t);
    if (!target) return;
    blob **encoded = &whole->encoded[target->proto == 3];
    if (!*encoded) *encoded = invalidationEncode(target->proto, whole->names, whole->count);
    sessionDeliverShared(target, DELIVER_PUSH, *encoded, 0, (*encoded)->len);
}

static void sendPrefix(const prefix *p) {
    hotCheck(p->count > 0);
    size_t first = firstOf(p), count = 0;
    while (first + count < broadcast.key_count &&
           startsWith(keyOf(&broadcast.keys[first + count]), p))
        count++;
    slice *names = memNewArray(slice, 2 * count), *some = names + count;
    wholeMessage whole = {.names = names};
    for (size_t i = 0; i < count; i++)
        whole.count = addName(names, whole.count, keyOf(&broadcast.keys[first + i]));
    for (uint32_t i = 0; i < p->count; i++) {
        tracker *t = p->trackers[i];
        if (!(t->flags & (TRACK_NOLOOP | TRACK_LINK)) && userMayReadAll(t->who)) {
            sendWhole(t, &whole);
            continue;
        }
        int64_t selected = namesFor(t, first, count, some);
        if (selected) invalidate(t, some, selected);
    }
    blobRelease(whole.encoded[0]);
    blobRelease(whole.encoded[1]);
    memFree(names);
}

static int comparePrefixes(const void *a, const void *b) {
    return sliceCompare(prefixName(*(prefix *const *)a), prefixName(*(prefix *const *)b));
}

void broadcastSend(void) {
    if (likely(!broadcast.key_count)) return;
    sortKeys();
    size_t count = 0;
    for (size_t i = 0; i < broadcast.matched_count; i++) {
        if (broadcast.matched[i]) broadcast.matched[count++] = broadcast.matched[i];
    }
    qsort(broadcast.matched, count, sizeof(*broadcast.matched), comparePrefixes);
    for (size_t i = 0; i < count; i++) {
        broadcast.matched[i]->matched = false;
        sendPrefix(broadcast.matched[i]);
    }
    broadcast.matched_count = broadcast.key_count = 0;
    strClear(&broadcast.bytes);
    if (broadcast.key_cap > LIST_KEPT_MAX || !broadcast.count) broadcastFree();
}

void broadcastFree(void) {
    memFree(broadcast.keys);
    memFree(broadcast.matched);
    strFree(&broadcast.bytes);
    broadcast.keys = NULL;
    broadcast.matched = NULL;
    broadcast.key_count = broadcast.key_cap = 0;
    broadcast.matched_count = broadcast.matched_cap = 0;
    hotCheck(broadcast.key_count == 0);
}
