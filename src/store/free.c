/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Freeing whole tables with their contents, immediately or in the background.
 *
 * If no objects remain elsewhere, the slab store is freed as a whole: then only objects with a
 * value behind a pointer are visited, and compressed ones, which are counted; freeing ten million
 * small keys costs only a pass over their tables. Otherwise each object is freed individually.
 * Shared values are returned to the main thread, which alone may change their reference count. Main
 * thread only, except what freeGarbage() calls. */
#include "base/base.h"
#include "store/compressed.h"
#include "store/db_priv.h"
#include "store/dictionary.h"
#include "store/hash_record.h"
#include "store/saving_value.h"
#include "store/slab.h"

enum {
    WHOLE_MIN = 1000, /* minimum number of objects to free the slab store as a whole */
    LATER_MIN = 64,   /* minimum number of objects to use the background thread */
    HUGE_MIN = 10000, /* minimum effort to use it whatever the directives say: half a millisecond */
};

/* A value with other references. */
typedef struct sharedValue {
    const typeOps *ops;
    void *value;
} sharedValue;

typedef struct garbage {
    struct garbage *next; /* in the list of returned ones */
    kvstore **stores;
    int store_count;
    hashtable table;
    void *value; /* a single value of the type `ops` */
    const typeOps *ops;
    slabStore *whole; /* the store of all objects, or NULL */
    slabStore *whole_elements;
    slabRemote remote; /* for frees into stores that remain in use */
    slabRemote remote_elements;
    valueFreer freer;
    shapeDrops drops; /* of the objects that were freed one by one */
    shapeCounts *shape_counts;
    compressedDrops compressed; /* of all objects */
    uint64_t objects;
    sharedValue *shared;
    size_t shared_count, shared_cap;
} garbage;

static struct {
    size_t bytes;           /* of single values that have not come back, about */
    bool huge_stay;         /* keyspaceFreeHugeLater(false) */
    garbage *returned;      /* pushed by the background thread */
    uint64_t pending, done; /* numbers of objects, updated by both threads */
} freeing;

/* ------------------------------------------------------------------ any thread */

static void freeValue(garbage *g, const typeOps *ops, void *value) {
    hotCheck(g->shared_count <= g->shared_cap);
    if (!ops->is_shared || !ops->is_shared(value)) {
        ops->free_value(value, &g->freer);
        return;
    }
    if (g->shared_count == g->shared_cap) {
        g->shared_cap = g->shared_cap ? 2 * g->shared_cap : 64;
        g->shared = memRealloc(g->shared, g->shared_cap * sizeof(*g->shared));
    }
    g->shared[g->shared_count++] = (sharedValue){ops, value};
}

/* The value is behind a pointer, or counted as a user of its dictionary. */
static void freeMarked(garbage *g, const robj *o) {
    if (objectForm(o) == FORM_POINTER) {
        freeValue(g, typeOf(o), objectPointer(o));
    } else {
        compressedDropsAdd(&g->compressed, o);
    }
}

static void freeEntry(void *context, void *entry, unsigned flags) {
    garbage *g = context;
    if (flags & HASHTABLE_MARK) freeMarked(g, entry);
    if (!g->whole) {
        unsigned shape = recordShapeNumber(entry);
        if (shape) shapeDropsAdd(&g->drops, shape);
        slabRemoteFree(&g->remote, entry);
    } else if (!slabOwns(g->whole, entry)) {
        memFree(entry);
    }
}

static void freeGarbage(void *arg) {
    garbage *g = arg;
    for (int i = 0; i < g->store_count; i++) kvstoreFree(g->stores[i], freeEntry, g);
    hashtableFree(&g->table, freeEntry, g);
    if (g->value) freeValue(g, g->ops, g->value);
    slabStoreFree(g->whole);
    slabStoreFree(g->whole_elements);
    slabRemoteFlush(&g->remote);
    slabRemoteFlush(&g->remote_elements);
    g->next = __atomic_load_n(&freeing.returned, __ATOMIC_RELAXED);
    while (!__atomic_compare_exchange_n(&freeing.returned, &g->next, g, true, __ATOMIC_RELEASE,
                                        __ATOMIC_RELAXED)) {}
}

static void freeInBackground(void *arg) {
    const garbage *g = arg;
    uint64_t objects = g->objects;
    freeGarbage(arg);
    __atomic_fetch_add(&freeing.done, objects, __ATOMIC_RELAXED);
    __atomic_fetch_sub(&freeing.pending, objects, __ATOMIC_RELEASE);
}

/* ------------------------------------------------------------------ main thread */

static void freeHere(void *context, void *entry, unsigned flags) {
    (void)context, (void)flags; /* all entries */
    objectFree(entry);
}

static void submit(garbage *g) {
    hotCheck(g->objects > 0);
    __atomic_fetch_add(&freeing.pending, g->objects, __ATOMIC_RELAXED);
    storeNow.free_later(freeInBackground, g);
}

/* The tables and objects belong to keyspace `k`. */
static garbage *newGarbage(keyspace *k, kvstore *const *stores, int count, uint64_t objects) {
    hotCheck(count >= 0);
    slabPair slabs = keyspaceSlabs(k);
    garbage *g = memNew(garbage);
    g->stores = memNewArray(kvstore *, (size_t)count);
    for (int i = 0; i < count; i++) g->stores[i] = stores[i];
    g->store_count = count;
    g->objects = objects;
    g->remote.store = slabs.objects;
    g->remote_elements.store = slabs.elements;
    g->freer = (valueFreer){.remote = &g->remote_elements, .drops = &g->compressed};
    keyspace *before = keyspaceUse(k);
    g->shape_counts = shapeCountsHold();
    (void)keyspaceUse(before); /* it was `k` */
    return g;
}

/* Processes what the background thread has returned. */
static void processReturned(void) {
    garbage *g = __atomic_exchange_n(&freeing.returned, NULL, __ATOMIC_ACQUIRE);
    while (g) {
        valueFreer here = {0};
        for (size_t i = 0; i < g->shared_count; i++)
            g->shared[i].ops->free_value(g->shared[i].value, &here);
        garbage *next = g->next;
        shapeDropsSettle(&g->drops, g->shape_counts);
        compressedDropsSettle(&g->compressed);
        memFree(g->shared);
        memFree(g->stores);
        memFree(g);
        g = next;
    }
}

/* All slabs go with the garbage. */
static void giveSlabs(garbage *g, slabPair slabs) {
    g->whole = slabs.objects;
    g->whole_elements = slabs.elements;
    g->freer = (valueFreer){.whole = slabs.elements, .drops = &g->compressed};
}

static void freeOrSubmit(garbage *g, bool background) {
    if (background) {
        submit(g);
    } else {
        freeGarbage(g);
        processReturned();
    }
}

void keyspaceFreeHugeLater(bool on) {
    hotCheck(threadIsMain());
    freeing.huge_stay = !on;
}

/* The effort above which the background thread frees a value although its directive says no. */
static size_t hugeMin(void) { return freeing.huge_stay ? SIZE_MAX : HUGE_MIN; }

/* Submits a value to the background if the effort of freeing it is above `effort_min`; false:
 * nothing was done. */
static bool submitValue(keyspace *k, const typeOps *ops, const valuePlace *at, void *value,
                        size_t effort_min) {
    enum { SAMPLES = 5 };
    if (!ops->free_effort || ops->free_effort(at, value) <= effort_min) return false;
    /* A module is asked as often as by Valkey. */
    if (at && ops != &moduleOps) freeing.bytes += ops->value_memory(at, value, SAMPLES);
    garbage *g = newGarbage(k, NULL, 0, 1);
    g->value = value;
    g->ops = ops;
    submit(g);
    return true;
}

/* Frees one of a few objects in the keyspace in use; `context` is the effort from which the
 * background thread frees the value. */
static void freeAlone(void *context, void *entry, unsigned flags) {
    const size_t *effort_min = context;
    robj *o = entry;
    bool may = flags & HASHTABLE_MARK && objectForm(o) == FORM_POINTER && storeNow.free_later &&
               objectType(o) != TYPE_MODULE && !storeNow.saving_values;
    if (may && submitValue(storeNow.used, typeOf(o), NULL, objectPointer(o), *effort_min)) {
        slabFree(o, objectSize(o));
    } else {
        objectFree(o);
    }
}

void freeStores(kvstore *const *stores, int count, bool all, bool later) {
    hotCheck(count >= 0);
    uint64_t objects = 0;
    for (int i = 0; i < count; i++) objects += kvstoreCountAll(stores[i]);
    bool background = later && storeNow.free_later && objects >= LATER_MIN;
    /* The background thread may be about to return blocks to these slab stores. */
    bool whole = all && objects >= WHOLE_MIN && (background || storeFreePending() == 0);
    if (!background && !whole) {
        size_t effort_min = later ? LATER_MIN : hugeMin();
        for (int i = 0; i < count; i++) kvstoreFree(stores[i], freeAlone, &effort_min);
        return;
    }
    garbage *g = newGarbage(storeNow.used, stores, count, objects);
    if (whole) {
        giveSlabs(g, (slabPair){slabKeyspaceTake(), slabElementsTake()});
        shapeCountsDrop(shapeCountsUse(NULL));
        /* The new ones at once: used memory shall not rise by them at the next tick. */
        (void)slabKeyspace();
        (void)slabElements();
    }
    freeOrSubmit(g, background);
}

void freeKeyspace(keyspace *k, bool later) {
    kvstore **stores = memNewArray(kvstore *, (size_t)k->count);
    uint64_t objects = 0;
    for (int i = 0; i < k->count; i++) {
        check(!savingDetach(k->dbs[i]));
        stores[i] = k->dbs[i]->keys;
        k->dbs[i]->keys = NULL;
        objects += kvstoreCountAll(stores[i]);
    }
    garbage *g = newGarbage(k, stores, k->count, objects);
    slabPair slabs = keyspaceSlabs(k);
    slabDisown(slabs);
    k->slabs = (slabPair){NULL, NULL};
    giveSlabs(g, slabs);
    shapeCountsDrop(k->shape_counts);
    k->shape_counts = NULL;
    /* Garbage that is being freed in the background may belong to this keyspace: then its slabs are
     * freed in the background, too, after that garbage. */
    freeOrSubmit(g, storeNow.free_later &&
                        (storeFreePending() > 0 || (later && objects >= LATER_MIN)));
    memFree(stores);
}

/* submitValue() for the value of an object, which is freed then. */
static NO_INLINE bool freeValueLater(const db *d, robj *o, size_t effort_min) {
    hotCheck(objectForm(o) == FORM_POINTER);
    if (effort_min > LATER_MIN && objectType(o) == TYPE_MODULE) return false;
    if (unlikely(storeNow.saving_values) && savingValueIsOpen(objectPointer(o))) return false;
    valuePlace at = {d->id, objectKey(o)};
    if (!submitValue(d->in, typeOf(o), &at, objectPointer(o), effort_min)) return false;
    slabFree(o, objectSize(o));
    return true;
}

void freeKeptValue(const typeOps *ops, void *value) {
    keyspace *k = &storeNow.main;
    if (storeNow.free_later && submitValue(k, ops, NULL, value, LATER_MIN)) return;
    valueFreer here = {0};
    keyspace *before = keyspaceUse(k);
    ops->free_value(value, &here);
    (void)keyspaceUse(before); /* it was `k` */
}

/* It is counted where it is. */
static NO_INLINE void freeElsewhere(const db *d, robj *o) {
    keyspace *before = keyspaceUse(d->in);
    objectFree(o);
    (void)keyspaceUse(before); /* it was the one of `d` */
}

void freeObject(const db *d, robj *o, bool later) {
    if (unlikely(d->in != storeNow.used) && recordShapeNumber(o)) {
        freeElsewhere(d, o);
        return;
    }
    bool may = objectForm(o) == FORM_POINTER && storeNow.free_later;
    if (likely(!may) || !freeValueLater(d, o, later ? LATER_MIN : hugeMin())) objectFree(o);
}

static void freeEntryLater(void *context, void *entry, unsigned flags) {
    (void)flags; /* all entries */
    freeObject(context, entry, true);
}

void freeTable(const db *d, hashtable table, bool later) {
    uint64_t objects = hashtableCount(&table);
    if (!later || !storeNow.free_later) {
        keyspace *before = keyspaceUse(d->in);
        hashtableFree(&table, freeHere, NULL);
        (void)keyspaceUse(before); /* it was the one of `d` */
        return;
    }
    if (objects < LATER_MIN) { /* some of them may be large */
        hashtableFree(&table, freeEntryLater, (void *)(uintptr_t)d);
        return;
    }
    garbage *g = newGarbage(d->in, NULL, 0, objects);
    g->table = table;
    submit(g);
}

void freeRemoved(const db *d, robj *o, bool later, bool eviction) {
    if (likely(!storeNow.time_removals)) {
        freeObject(d, o, later);
        return;
    }
    int64_t began_us = clockMonoUs();
    freeObject(d, o, later);
    if (d->in->listener) d->in->listener->removal_timed(eviction, clockMonoUs() - began_us);
}

void storeTimeRemovals(bool on) { storeNow.time_removals = on; }

void storeSetFreeLater(storeFreeLaterProc *later) { storeNow.free_later = later; }

uint64_t storeFreePending(void) { return __atomic_load_n(&freeing.pending, __ATOMIC_ACQUIRE); }

uint64_t storeFreedLater(void) { return __atomic_load_n(&freeing.done, __ATOMIC_RELAXED); }
void storeResetFreedLater(void) { __atomic_store_n(&freeing.done, 0, __ATOMIC_RELAXED); }

/* ------------------------------------------------------------------ returning memory */

/* Updates the words of tables for moved objects; compares no keys. */
static uint32_t relocate(void *arg, void *const *old, void *const *moved, unsigned count) {
    const keyspace *k = arg;
    uint64_t hashes[32];
    check(count <= COUNT_OF(hashes));
    for (unsigned i = 0; i < count; i++) {
        hashes[i] = storeHash(objectKey(moved[i]));
        hashtablePrefetch(kvstoreTable(k->dbs[0]->keys, slotOf(hashes[i])), hashes[i]);
    }
    uint32_t done = 0;
    for (unsigned i = 0; i < count; i++) {
        for (int n = 0; n < k->count && !(done >> i & 1); n++) {
            kvstore *keys = k->dbs[n]->keys;
            if (kvstoreReplace(keys, slotOf(hashes[i]), hashes[i], old[i], moved[i]))
                done |= 1u << i;
        }
    }
    return done;
}

/* Returns memory to the system. True if it did: there may be more. */
static bool purge(slabStore *s) {
    enum { PURGE_BYTES = 2 << 20, SPARE_BYTES = 512 << 10, SPARE_SHARE = 32 };
    slabStats stats;
    slabGetStats(s, &stats);
    return stats.empty_bytes > stats.live_bytes / SPARE_SHARE + SPARE_BYTES &&
           slabPurge(s, PURGE_BYTES) > 0;
}

bool storeTakeBack(size_t most) {
    hotCheck(threadIsMain());
    bool all_arrived = storeFreePending() == 0; /* before processing */
    processReturned();
    for (keyspace *k = storeNow.keyspaces; k; k = k->next) {
        slabPair slabs = keyspaceSlabs(k);
        all_arrived = slabDrain(slabs.objects, most) < most && all_arrived;
        all_arrived = slabDrain(slabs.elements, most) < most && all_arrived;
    }
    if (all_arrived) freeing.bytes = 0;
    return all_arrived;
}

size_t storeFreePendingBytes(void) { return freeing.bytes; }

/* True when nothing is on its way: such blocks look alive to compaction, but no table knows
 * them. */
static bool takeSomeBack(void) {
    enum { DRAIN_MAX = 2000 }; /* a fifth of a millisecond */
    return storeTakeBack(DRAIN_MAX);
}

bool storeReclaim(void) {
    bool more = !takeSomeBack();
    shapesSweep(storeNow.now_ms);
    dictionariesSweep(storeNow.now_ms);
    for (keyspace *k = storeNow.keyspaces; k; k = k->next) {
        slabPair slabs = keyspaceSlabs(k);
        more |= purge(slabs.objects);
        more |= purge(slabs.elements);
    }
    return more;
}

bool storeCompact(const storeCompaction *plan, storeCompactReport *report) {
    keyspace *k = keyspaceMain();
    check(storeNow.used == k);
    if (!readingMoves()) return true;
    slabStore *s = slabKeyspace();
    slabCompactReport done = {0};
    int64_t half_us = plan->budget_us / 2;
    bool more = true;
    if (takeSomeBack()) {
        bool worth = !plan->only_if_worth || slabShouldCompact(s);
        more = worth && slabCompact(s, relocate, k, half_us, &done);
    }
    storeCompaction rest = *plan;
    if (more) rest.budget_us = half_us;
    more |= compactElements(k, &rest, report);
    report->moved += done.moved_blocks;
    report->kept += done.refused_blocks;
    report->keys_moved += done.moved_blocks;
    report->keys_kept += done.refused_blocks;
    return more;
}

bool storeTidy(int64_t budget_us) {
    hotCheck(budget_us >= 0);
    enum { FIELDS = 128 };
    storeCompaction plan = {.budget_us = budget_us, .fields_max = FIELDS, .only_if_worth = true};
    storeCompactReport unasked = {0};
    bool more = storeCompact(&plan, &unasked);
    return storeReclaim() || more;
}

static void addWaste(storeWaste *to, const slabStore *s) {
    slabStats stats;
    slabGetStats(s, &stats);
    to->holes += stats.hole_bytes + stats.tail_bytes;
    to->empty += stats.empty_bytes;
    to->metadata += stats.metadata_bytes;
    to->opened += stats.open_bytes;
    to->live += stats.live_bytes;
    to->recoverable += stats.recoverable_bytes;
}

void storeGetWaste(storeWaste *out) {
    *out = (storeWaste){0};
    for (keyspace *k = storeNow.keyspaces; k; k = k->next) {
        slabPair slabs = keyspaceSlabs(k);
        addWaste(out, slabs.objects);
        addWaste(out, slabs.elements);
    }
}
