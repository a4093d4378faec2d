/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Who waits for what (block.h).
 *
 * Invariant: a session has SESSION_BLOCKED exactly while it has a wait, but for the moment in which its request
 * runs again. A key is in the index exactly while somebody waits for it, and on the list of ready ones when it
 * changed since it was last looked at. The observer is armed while the index is not empty. Waits with a deadline
 * stand in a heap, the nearest first. */
#include "engine/block.h"

#include <math.h>

#include "base/base.h"
#include "base/hash.h"
#include "base/number.h"
#include "ds/hashtable.h"
#include "engine/execute.h"
#include "engine/execute_priv.h"
#include "engine/hot.h"
#include "engine/keyspace.h"
#include "engine/kept_request.h"
#include "engine/reply.h"
#include "store/store.h"

typedef struct blockedKey {
    list waits;     /* the longest first */
    listNode all;   /* place among all of them */
    listNode ready; /* place among those that changed */
    bool held;      /* being looked at: stays even when nobody waits any more */
    int db_id;
    size_t len;
    char bytes[];
} blockedKey;

/* A session's place in the queue of one key. */
typedef struct keyWait {
    listNode of_key;
    blockedKey *key; /* NULL: the same key stood in front of it already */
    struct blockWait *by;
} keyWait;

struct blockWait {
    session *who;
    request kept;
    size_t memory;
    valueType type;
    int64_t deadline_ms; /* 0: never */
    size_t heap_at;
    commandProc *timed_out;
    bool silent; /* CLIENT REPLY had switched its reply off */
    bool again;  /* it ran and found nothing */
    int key_count;
    keyWait keys[];
};

static struct {
    hashtable index;
    list all, ready; /* keys */
    list released;   /* sessions */
    blockWait **heap;
    size_t heap_count, heap_cap;
} blocked;

static void initLists(void) {
    if (blocked.all.head.next) return;
    listInit(&blocked.all);
    listInit(&blocked.ready);
    listInit(&blocked.released);
}

/* ------------------------------------------------------------------ the index of keys */

/* What a lookup asks for. */
typedef struct wantedKey {
    int db_id;
    slice key;
} wantedKey;

static uint64_t hashOf(const wantedKey *w) {
    const uint64_t golden_ratio = 0x9E3779B97F4A7C15;
    return hashBytes(w->key.ptr, w->key.len) + (uint64_t)w->db_id * golden_ratio;
}

static slice textOf(const blockedKey *k) { return sliceMake(k->bytes, k->len); }

static uint64_t hashOfEntry(const void *entry) {
    const blockedKey *k = entry;
    return hashOf(&(wantedKey){k->db_id, textOf(k)});
}

static bool entryIs(const void *entry, const void *key, size_t len) {
    (void)len; /* a wantedKey is always of one size */
    const blockedKey *k = entry;
    const wantedKey *wanted = key;
    return k->db_id == wanted->db_id && sliceEqual(textOf(k), wanted->key);
}

static const hashtableType index_type = {.hash_of = hashOfEntry, .match = entryIs};

static blockedKey *findKey(const wantedKey *wanted) {
    return hashtableFind(&blocked.index, &index_type, hashOf(wanted), wanted, sizeof(*wanted));
}

static blockedKey *makeKey(const wantedKey *wanted) {
    blockedKey *k = memCalloc(1, sizeof(*k) + wanted->key.len);
    listInit(&k->waits);
    k->db_id = wanted->db_id;
    k->len = wanted->key.len;
    if (k->len) memcpy(k->bytes, wanted->key.ptr, k->len);
    hashtableInsert(&blocked.index, &index_type, hashOf(wanted), k, 0);
    listAppend(&blocked.all, &k->all);
    if (blocked.all.count == 1) keyObserverArm(&blockObserver, true);
    return k;
}

/* Forgets a key nobody waits for. */
static void dropKey(blockedKey *k) {
    if (k->held || !listIsEmpty(&k->waits)) return;
    bool was_there = hashtableDeleteEntry(&blocked.index, &index_type, hashOfEntry(k), k);
    check(was_there);
    listRemove(&blocked.all, &k->all);
    if (listHas(&k->ready)) listRemove(&blocked.ready, &k->ready);
    memFree(k);
    if (listIsEmpty(&blocked.all)) keyObserverArm(&blockObserver, false);
}

uint64_t blockedKeyCount(void) { return blocked.all.count; }

/* ------------------------------------------------------------------ the heap of deadlines */

static void heapPut(size_t at, blockWait *w) {
    blocked.heap[at] = w;
    w->heap_at = at;
}

/* Moves a wait from place `at` up or down to where it belongs. */
static void heapSettle(size_t at, blockWait *w) {
    while (at > 0 && blocked.heap[(at - 1) / 2]->deadline_ms > w->deadline_ms) {
        heapPut(at, blocked.heap[(at - 1) / 2]);
        at = (at - 1) / 2;
    }
    for (;;) {
        size_t child = 2 * at + 1;
        if (child >= blocked.heap_count) break;
        if (child + 1 < blocked.heap_count &&
            blocked.heap[child + 1]->deadline_ms < blocked.heap[child]->deadline_ms)
            child++;
        if (blocked.heap[child]->deadline_ms >= w->deadline_ms) break;
        heapPut(at, blocked.heap[child]);
        at = child;
    }
    heapPut(at, w);
}

static void heapAdd(blockWait *w) {
    if (blocked.heap_count == blocked.heap_cap) {
        blocked.heap_cap = blocked.heap_cap ? 2 * blocked.heap_cap : 16;
        blocked.heap = memRealloc(blocked.heap, blocked.heap_cap * sizeof(blockWait *));
    }
    blocked.heap_count++;
    heapSettle(blocked.heap_count - 1, w);
}

static void heapRemove(blockWait *w) {
    check(blocked.heap[w->heap_at] == w);
    blockWait *last = blocked.heap[--blocked.heap_count];
    if (last != w) heapSettle(w->heap_at, last);
    if (blocked.heap_count) return;
    memFree(blocked.heap);
    blocked.heap = NULL;
    blocked.heap_cap = 0;
}

/* ------------------------------------------------------------------ beginning and ending */

bool blockArgDeadline(ctx *c, int i, int64_t *deadline_ms) {
    long double seconds;
    if (!numberParseLongDouble(c->argv[i], &seconds)) {
        replyError(c, SLICE("ERR timeout is not a float or out of range"));
        return false;
    }
    long double ms = ceill(seconds * 1000);
    if (ms < 0) {
        replyError(c, SLICE("ERR timeout is negative"));
        return false;
    }
    if (ms > (long double)(INT64_MAX - engineHot.now_ms)) {
        replyError(c, SLICE("ERR timeout is out of range"));
        return false;
    }
    *deadline_ms = ms > 0 ? engineHot.now_ms + (int64_t)ms : 0;
    return true;
}

bool blockIsDenied(const ctx *c) {
    const uint32_t denied = SESSION_DENY_BLOCKING | SESSION_INTERNAL;
    return c->origin != ORIGIN_CLIENT || c->who->flags & denied || !c->request;
}

/* Whether the key stands among the first `count` of the wait. */
static bool waitsFor(const blockWait *w, int count, const blockedKey *k) {
    for (int i = 0; i < count; i++) {
        if (w->keys[i].key == k) return true;
    }
    return false;
}

static void queueFor(blockWait *w, int i, slice key) {
    wantedKey wanted = {w->who->db_id, key};
    blockedKey *k = findKey(&wanted);
    if (!k) k = makeKey(&wanted);
    if (waitsFor(w, i, k)) return;
    w->keys[i] = (keyWait){.key = k, .by = w};
    listAppend(&k->waits, &w->keys[i].of_key);
    w->memory += sizeof(*k) + k->len;
}

void blockOnKeys(ctx *c, const blockWish *wish) {
    session *s = c->who;
    c->flags |= CTX_NOT_RUN;
    if (s->blocked) {
        s->blocked->again = true;
        return;
    }
    check(!blockIsDenied(c));
    initLists();
    size_t keys = (size_t)wish->key_count;
    blockWait *w = memCalloc(1, sizeof(*w) + keys * sizeof(keyWait));
    *w = (blockWait){.who = s,
                     .type = wish->type,
                     .deadline_ms = wish->deadline_ms,
                     .timed_out = wish->timed_out,
                     .silent = c->out != &s->out,
                     .key_count = wish->key_count};
    w->memory = memSizeOf(w) + keptRequestInit(&w->kept, c->request);
    for (int i = 0; i < w->key_count; i++) queueFor(w, i, wish->keys[i]);
    if (w->deadline_ms) heapAdd(w);
    s->blocked = w;
    s->flags |= SESSION_BLOCKED;
}

static void freeWait(blockWait *w) {
    w->who->blocked = NULL;
    w->who->flags &= ~(uint32_t)SESSION_BLOCKED;
    if (w->deadline_ms) heapRemove(w);
    for (int i = 0; i < w->key_count; i++) {
        blockedKey *k = w->keys[i].key;
        if (!k) continue;
        listRemove(&k->waits, &w->keys[i].of_key);
        dropKey(k);
    }
    keptRequestClear(&w->kept);
    memFree(w);
}

/* The session has its answer and goes on. */
static void release(blockWait *w) {
    session *s = w->who;
    freeWait(w);
    if (!listHas(&s->released)) listAppend(&blocked.released, &s->released);
    if (s->out.first) sessionWantWrite(s);
}

session *blockNextReleased(void) {
    listNode *first = blocked.released.count ? listFirst(&blocked.released) : NULL;
    if (likely(!first)) return NULL;
    listRemove(&blocked.released, first);
    return LIST_OWNER(first, session, released);
}

void blockForget(session *s) {
    if (s->blocked) freeWait(s->blocked);
    if (listHas(&s->released)) listRemove(&blocked.released, &s->released);
}

size_t blockMemory(const session *s) { return s->blocked ? s->blocked->memory : 0; }

size_t blockArgumentBytes(const session *s) {
    size_t bytes = 0;
    for (int i = 0; s->blocked && i < s->blocked->kept.argc; i++)
        bytes += s->blocked->kept.argv[i].len;
    return bytes;
}

/* ------------------------------------------------------------------ answering */

/* Where a waiting session's reply goes: to `silence` when it wants none. */
static outbuf *outOf(const blockWait *w, outbuf *silence) {
    outbufInitNull(silence);
    bool is_silent = w->silent || w->who->flags & SESSION_REPLY_OFF;
    return is_silent ? silence : &w->who->out;
}

/* Answers without running the request. */
static void end(blockWait *w, slice error) {
    session *s = w->who;
    outbuf silence;
    ctx c = {.who = s,
             .db = s->db,
             .argv = w->kept.argv,
             .argc = w->kept.argc,
             .cmd = w->kept.command,
             .request = &w->kept,
             .now_ms = engineHot.now_ms,
             .look = keyspaceLookOf(s, engineHot.now_ms),
             .proto = s->proto};
    c.out = outOf(w, &silence);
    if (error.len) {
        replyError(&c, error);
    } else {
        w->timed_out(&c);
    }
    executeAccount(s, c.cmd, error.len != 0);
    outbufClear(&silence);
    release(w);
}

bool blockEnd(session *s, slice error) {
    if (!s->blocked) return false;
    end(s->blocked, error);
    return true;
}

void blockTurn(int64_t *wait_ms) {
    *wait_ms = -1;
    if (likely(!blocked.heap_count)) return;
    int64_t now_ms = clockWallMs();
    while (blocked.heap_count) {
        blockWait *next = blocked.heap[0];
        if (next->deadline_ms > now_ms) {
            *wait_ms = next->deadline_ms - now_ms;
            return;
        }
        end(next, SLICE(""));
    }
}

/* Runs a wait's request again. */
static void runAgain(blockWait *w) {
    session *s = w->who;
    outbuf silence;
    ctx c = {.who = s,
             .db = s->db,
             .proto = s->proto,
             .origin = s->origin,
             .targets = s->targets,
             .now_ms = engineHot.now_ms,
             .look = keyspaceLookOf(s, engineHot.now_ms)};
    c.out = outOf(w, &silence);
    w->again = false;
    s->flags &= ~(uint32_t)SESSION_BLOCKED;
    executeKept(&c, &w->kept, CTX_WOKEN);
    s->flags |= SESSION_BLOCKED;
    outbufClear(&silence);
    if (!w->again) release(w);
}

/* Whether the key holds now what the wait is for. */
static bool isReady(const blockedKey *k, const blockWait *w) {
    const uint32_t closing = SESSION_CLOSE_NOW | SESSION_CLOSE_SOON;
    if (w->who->flags & closing) return false;
    slice key = textOf(k);
    const robj *o =
        dbFindUncounted(storeDb(k->db_id), key, storeHash(key), lookAt(engineHot.now_ms));
    return o && objectType(o) == w->type;
}

/* Serves those who wait for a key now, each once. */
static void serve(blockedKey *k) {
    k->held = true;
    size_t left = k->waits.count;
    listNode *n = listFirst(&k->waits);
    for (; n && left > 0; left--) {
        keyWait *wait = LIST_OWNER(n, keyWait, of_key);
        n = listNext(&k->waits, n);
        if (isReady(k, wait->by)) runAgain(wait->by);
    }
    k->held = false;
    dropKey(k);
}

void blockWake(void) {
    if (!blocked.ready.count) return;
    /* The command may have taken longer than a key it brought has to live. */
    engineHot.now_ms = clockWallMs();
    while (blocked.ready.count) {
        listNode *first = listFirst(&blocked.ready);
        listRemove(&blocked.ready, first);
        serve(LIST_OWNER(first, blockedKey, ready));
    }
}

/* ------------------------------------------------------------------ what happens to keys */

static void markReady(blockedKey *k) {
    if (!listHas(&k->ready)) listAppend(&blocked.ready, &k->ready);
    /* Who runs commands looks behind the one that is being run; without one the stage does. */
    if (engineHot.current) engineHot.current->flags |= CTX_WAKES;
}

static void keyChanged(db *d, slice key, const char *event) {
    (void)event; /* what stands there tells */
    blockedKey *k = findKey(&(wantedKey){dbId(d), key});
    if (k) markReady(k);
}

const keyObserver blockObserver = {.name = "block", .changed = keyChanged};

void blockDbEvent(const dbEvent *e) {
    if (e->kind != DB_SWAPPED || !blocked.all.count) return;
    for (listNode *n = listFirst(&blocked.all); n; n = listNext(&blocked.all, n)) {
        blockedKey *k = LIST_OWNER(n, blockedKey, all);
        if (k->db_id == e->db_id || k->db_id == e->other_id) markReady(k);
    }
}
