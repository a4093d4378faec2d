/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Which values are compressed, and when: single ones, and idle ones found by a walk over the main
 * keyspace (compressed.h).
 *
 * Invariant: a value that was idle when the last complete pass began, and gained nothing then, is
 * not tried by the next one. So passes over values that do not change cost only the visit, some 30
 * to 100 ns per key. Main thread only. */
#include "base/base.h"
#include "base/clock.h"
#include "store/compressed.h"
#include "store/db_priv.h"
#include "store/dictionary.h"
#include "store/hash_element.h"

enum {
    BATCH = 64,     /* objects that are fetched from memory together, and the clock read once */
    ROUNDED_S = 61, /* the clock of LFU counts minutes */
};

typedef struct foundObject {
    robj *o;
    uint64_t hash; /* set when the batch is suspended */
} foundObject;

static struct {
    bool runs;             /* in the midst of a pass */
    bool whole;            /* which tries all idle values */
    bool nodes;            /* which visits the nodes of lists and streams */
    int64_t nodes_ms[2];   /* when the last pass of this kind began, and the one before it, */
    int64_t nodes_end_ms;  /* and when the last one ended; 0: none */
    nodesVisit node_visit; /* to the nodes of the object at `at`, if it continues */
    int db;
    uint64_t cursor;
    int64_t began_ms, last_ms; /* this pass and the previous one; 0: none */
    uint64_t generation;       /* of the dictionaries, */
    size_t min;                /* and what the plan said, */
    int64_t idle_s;            /* when the last pass began */
    foundObject *found;        /* of the buckets that were visited last */
    size_t at, count, cap;     /* `at`: the next one to be tried */
    uint64_t fields;           /* cursor in the large hash at `at`; 0: before its first one */
    bool suspended;            /* since the last turn */
} walk;

void storeSetPlainIdle(int64_t idle_s) { storeNow.plain_idle_s = idle_s; }

bool storeCompressKey(db *d, const robj *o, size_t min) {
    hotCheck(threadIsMain());
    if (!compressedMayGain(o, d->id, min) || !mayRewrite(d, o)) return false;
    uint64_t hash = storeHash(objectKey(o));
    keyspace *before = keyspaceUse(d->in);
    robj *old = (robj *)(uintptr_t)o, *made = compressedMake(old, d->id);
    if (made) {
        dbReplace(d, hash, old, made);
        objectFree(old);
    }
    (void)keyspaceUse(before); /* it was the one of `d` */
    return made != NULL;
}

/* ------------------------------------------------------------------ the walk */

static void collect(void *context, void *entry, unsigned flags) {
    (void)context, (void)flags; /* all entries */
    if (walk.count == walk.cap) {
        walk.cap = walk.cap ? 2 * walk.cap : 2 * BATCH;
        walk.found = memRealloc(walk.found, walk.cap * sizeof(*walk.found));
    }
    walk.found[walk.count++].o = entry;
}

/* True if this pass tries the object. */
static bool isDue(const robj *o, int64_t idle_s) {
    int64_t idle = accessIdleSeconds(o);
    if (idle < idle_s) return false;
    if (walk.whole) return true;
    return idle <= idle_s + (storeNow.now_ms - walk.last_ms) / 1000 + ROUNDED_S;
}

/* True if this pass visits the nodes of the object. If it was used last before the two last passes
 * of this kind, the first one has marked its nodes and the second one has tried them. */
static bool areNodesDue(const robj *o) {
    if (!walk.nodes) return false;
    if (walk.whole || !walk.nodes_ms[1]) return true;
    return accessIdleSeconds(o) <= (storeNow.now_ms - walk.nodes_ms[1]) / 1000 + ROUNDED_S;
}

/* Visits the nodes of the object, from the node after those of the last visit on. True: it was
 * tried, which takes time. */
static bool tryNodes(db *d, const robj *o, const compressPlan *plan, int64_t deadline_us) {
    nodesVisit *v = &walk.node_visit;
    if (!v->continues && !areNodesDue(o)) return false;
    v->min = plan->min;
    v->idle = accessIdleSeconds(o) >= plan->idle_s;
    v->whole = walk.whole;
    v->deadline_us = deadline_us;
    v->continues = storeCompressNodes(d, o, v);
    return true;
}

/* Collects what is in the next buckets of the database. */
static void collectSome(const db *d) {
    walk.count = walk.at = 0;
    do {
        walk.cursor = kvstoreScan(d->keys, walk.cursor, -1, collect, NULL);
    } while (walk.cursor && walk.count < BATCH);
    for (size_t i = 0; i < walk.count; i++) prefetchRead(walk.found[i].o);
}

/* The rest of a batch is continued later, when objects may have been freed: their hashes tell. */
static void suspend(bool again) {
    for (size_t i = walk.at; i < walk.count && !again; i++)
        walk.found[i].hash = storeHash(objectKey(walk.found[i].o));
    walk.suspended = true;
}

/* True if the object of a suspended batch is still in its table. */
static bool isStillStored(const db *d, const foundObject *f) {
    return !isHidden(d, f->hash) && kvstoreHasEntry(d->keys, slotOf(f->hash), f->hash, f->o);
}

/* True if the object at walk.at has parts that were not tried. */
static bool isUnderWay(void) { return walk.fields || walk.node_visit.continues; }

static void leaveParts(void) {
    walk.fields = 0;
    walk.node_visit.continues = false;
}

/* The object of a batch; NULL: it is not stored any more. */
static robj *objectOf(const db *d, const foundObject *f, bool resumed) {
    if (!resumed || isStillStored(d, f)) return f->o;
    /* The value that is being walked may have another object now: there the walk goes on. */
    bool seeks = isUnderWay() && !isHidden(d, f->hash);
    return seeks ? (robj *)(uintptr_t)dbPeekHash(d, f->hash) : NULL;
}

/* Tries values of a large hash, from walk.fields on; stops after the deadline. */
static void tryFields(const db *d, robj *o, const compressPlan *plan, int64_t deadline_us) {
    hashCompression how = {.min = plan->min, .deadline_us = deadline_us};
    how.dictionary = dictionaryOfKey(d->id, objectKey(o));
    bool may = how.dictionary && isDue(o, plan->idle_s) && mayRewrite(d, o);
    walk.fields = may ? hashCompressSome(o, &how, walk.fields) : 0;
}

bool storeCompressFields(db *d, robj *o, size_t min) {
    hotCheck(objectIsTableOfFields(o));
    hashCompression how = {.min = min, .deadline_us = INT64_MAX};
    how.dictionary = dictionaryOfKey(d->id, objectKey(o));
    bool may = how.dictionary && mayRewrite(d, o);
    if (may) (void)hashCompressSome(o, &how, 0); /* without a deadline it ends at 0 */
    return hashDictionary(o) != 0;
}

/* Tries a value. True: it was tried, which takes time. */
static bool tryObject(db *d, robj *o, const compressPlan *plan, int64_t deadline_us) {
    if (unlikely(objectIsTableOfFields(o))) {
        walk.node_visit.continues = false; /* there was another value with this key */
        tryFields(d, o, plan, deadline_us);
        return true;
    }
    if (compressedHasNodes(o)) {
        walk.fields = 0; /* as before */
        return tryNodes(d, o, plan, deadline_us);
    }
    leaveParts();
    if (objectIsCompressed(o) && !walk.whole) return false;
    if (!isDue(o, plan->idle_s) || !compressedMayGain(o, d->id, plan->min)) return false;
    (void)storeCompressKey(d, o, plan->min); /* or it gains nothing */
    return true;
}

/* Tries the values of the batch; stops after the deadline. */
static void tryBatch(db *d, const compressPlan *plan, int64_t deadline_us) {
    bool resumed = walk.suspended;
    walk.suspended = false;
    while (walk.at < walk.count) {
        robj *o = objectOf(d, &walk.found[walk.at], resumed);
        if (!o) leaveParts();
        bool tried = o && tryObject(d, o, plan, deadline_us);
        if (!isUnderWay()) walk.at++;
        if (!tried || (!isUnderWay() && clockMonoUs() < deadline_us)) continue;
        suspend(resumed);
        return;
    }
    if (walk.cursor == 0) walk.db++;
}

/* True if a pass is under way, or begins. */
static bool begin(const compressPlan *plan) {
    if (walk.runs) return true;
    uint64_t generation = dictionariesGeneration();
    bool other = walk.last_ms == 0 || generation != walk.generation || plan->min != walk.min ||
                 plan->idle_s != walk.idle_s;
    if (generation == 0) return false; /* there is no dictionary */
    if (!other && storeNow.now_ms - walk.last_ms < plan->pause_s * 1000) return false;
    walk.runs = true;
    walk.whole = other;
    walk.db = 0;
    walk.cursor = 0;
    walk.began_ms = storeNow.now_ms;
    walk.generation = generation;
    walk.min = plan->min;
    walk.idle_s = plan->idle_s;
    /* Visits to a node are an idle time apart: what is marked in between has not been idle. */
    walk.nodes = other || storeNow.now_ms - walk.nodes_end_ms >= plan->idle_s * 1000;
    return true;
}

static void end(void) {
    walk.runs = false;
    walk.last_ms = walk.began_ms;
    if (walk.nodes) {
        walk.nodes_ms[1] = walk.nodes_ms[0];
        walk.nodes_ms[0] = walk.began_ms;
        walk.nodes_end_ms = storeNow.now_ms;
    }
    walk.node_visit = (nodesVisit){.min = 0};
    memFree(walk.found);
    walk.found = NULL;
    walk.cap = walk.count = walk.at = 0;
    walk.fields = 0;
    walk.suspended = false;
    hotCheck(!walk.found);
}

bool storeCompressTurn(const compressPlan *plan) {
    hotCheck(threadIsMain());
    check(storeNow.used == &storeNow.main);
    if (storeNow.forked || storeNow.unchanging || !begin(plan)) return false;
    int64_t deadline_us = clockMonoUs() + plan->budget_us;
    do {
        if (walk.db >= storeNow.main.count) {
            end();
            break;
        }
        db *d = storeNow.main.dbs[walk.db];
        if (!walk.suspended) collectSome(d);
        tryBatch(d, plan, deadline_us);
    } while (clockMonoUs() < deadline_us);
    return walk.runs;
}
