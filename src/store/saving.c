/* SPDX-License-Identifier: BSD-3-Clause
 *
 * The walk over the keyspace as of one moment (saving.h).
 *
 * The cut is (table, place in its hash space). Tables are ordered as they were at the start,
 * whichever database they belong to meanwhile: SWAPDB exchanges tables, not objects. Invariants:
 * db.saved_as is the table's number in that order plus one, 0 if it is not to be visited; a mark is
 * only in objects beyond the cut; storeNow.saving is set while objects are passed on. Cost for a
 * change: the test of storeNow.saving; during a walk some 10 ns, and what the saver needs for an
 * object that was not visited. */
#include "store/saving.h"

#include "base/base.h"
#include "ds/hashtable_walk.h"
#include "store/db_priv.h"
#include "store/saving_value.h"

/* Larger values are passed on in parts. */
enum { WHOLE_SAMPLES = 5 /* elements from which the bytes of a value are estimated */ };
#ifdef HOSTILE_BUILD
enum { WHOLE_ELEMENTS_MAX = 8, WHOLE_BYTES_MAX = 1 << 10 };
#else
enum { WHOLE_ELEMENTS_MAX = 256, WHOLE_BYTES_MAX = 1 << 16 };
#endif

/* The tables of one database of the start. */
typedef struct savedStore {
    kvstore *keys; /* NULL: freed by somebody else */
    int db_id;     /* at the start */
    bool detached; /* its database was emptied: freed here */
} savedStore;

static struct {
    savedStore *stores;
    int count, at; /* `at`: the store being visited */
    int slot;      /* the table of it */
    hashtableCut cut;
    const storeSaver *to;
    slotMask slots;   /* to be visited, ... */
    bool some;        /* ... if not all are */
    bool runs, begun; /* `begun`: `cut` belongs to the table of `slot` */
    int db_id;        /* while a table is visited */
    uint64_t added;
    robj **visited; /* by this slice */
    size_t visited_count, visited_cap;
    /* Tables of databases that were emptied, whose objects have been passed on, except for values
     * that are open. */
    kvstore **emptied;
    int emptied_count;
    /* Tables of slots that were taken from their databases. */
    struct takenTable {
        const hashtable *t;
        hashtableCut cut;
        int db_id;
    } * taken;
    int taken_count;
} saving;

bool storeSavingIsLarge(const robj *o) {
    const typeOps *ops = typeOf(o);
    if (ops->elements && ops->length(o) > WHOLE_ELEMENTS_MAX) return true;
    return ops->value_memory(NULL, objectPointer(o), WHOLE_SAMPLES) > WHOLE_BYTES_MAX;
}

bool storeSavingRuns(void) { return saving.runs; }
bool storeSavingIsAbandoned(void) { return saving.runs && !storeNow.saving; }
uint64_t storeSavingAdded(void) { return saving.added + savingValuesAdded(); }
size_t storeSavingBytes(void) { return savingValuesBytes(); }
size_t storeSavingKeptBytes(void) { return savingValuesKeptBytes(); }

void storeSavingBegin(const storeSaver *saver, const slotMask *slots) {
    keyspace *k = &storeNow.main;
    check(!saving.runs);
    saving.stores = memNewArray(savedStore, (size_t)k->count);
    saving.count = saving.at = saving.slot = 0;
    saving.begun = false;
    saving.to = saver;
    saving.added = 0;
    saving.some = slots != NULL;
    if (slots) saving.slots = *slots;
    for (int i = 0; i < k->count; i++) {
        db *d = k->dbs[i];
        if (kvstoreCountAll(d->keys) == 0) continue;
        saving.stores[saving.count++] = (savedStore){.keys = d->keys, .db_id = i};
        d->saved_as = saving.count;
    }
    savingValuesBegin(saver);
    saving.runs = storeNow.saving = true;
    storeUpdateWatches();
}

/* ------------------------------------------------------------------ changes */

static bool isLeftOut(int slot) {
    return unlikely(saving.some) && !slotMaskHas(&saving.slots, slot);
}

/* True if the walk has not visited the objects of this database with this hash yet. */
static bool isAhead(const db *d, uint64_t hash) {
    hotCheck(d->saved_as >= 0);
    int number = d->saved_as - 1;
    if (number < saving.at) return false;
    int slot = slotOf(hash);
    if (isLeftOut(slot)) return false;
    if (number != saving.at) return true;
    if (slot != saving.slot) return slot > saving.slot;
    return !saving.begun || !hashtableCutPassed(&saving.cut, hash);
}

/* Opens the value of an object if it is to be passed on in parts. */
static bool divide(int db_id, const robj *o) {
    hotCheck(db_id < storeDbCount());
    if (likely(objectForm(o) != FORM_POINTER)) return false;
    if (objectType(o) == TYPE_STRING || objectType(o) == TYPE_MODULE) return false;
    if (!saving.to->divides(saving.to->arg, o)) return false;
    savingValueOpen(db_id, o);
    return true;
}

void savingBefore(const db *d, uint64_t hash, robj *o) {
    hotCheck(threadIsMain());
    if (unlikely(storeNow.saving_values) && objectForm(o) == FORM_POINTER)
        saving.to->limit(saving.to->arg);
    if (objectIsMarked(o) || !isAhead(d, hash)) return;
    int db_id = saving.stores[d->saved_as - 1].db_id;
    if (!divide(db_id, o)) saving.to->take(saving.to->arg, db_id, o);
    objectSetMarked(o, true);
}

void savingAdded(const db *d, uint64_t hash, robj *o) {
    bool ahead = isAhead(d, hash);
    objectSetMarked(o, ahead);
    saving.added += ahead;
}

bool savingIsConsistent(const db *d, uint64_t hash, const robj *o) {
    return !storeNow.saving || objectIsMarked(o) == isAhead(d, hash);
}

/* ------------------------------------------------------------------ the walk */

static void noteVisited(robj *o) {
    if (saving.visited_count == saving.visited_cap) {
        saving.visited_cap = saving.visited_cap ? 2 * saving.visited_cap : 1024;
        saving.visited = memRealloc(saving.visited, saving.visited_cap * sizeof(robj *));
    }
    saving.visited[saving.visited_count++] = o;
}

static bool visit(void *context, void *entry, unsigned flags) {
    hotCheck(saving.runs);
    (void)context, (void)flags; /* everything is in `saving` */
    robj *o = entry;
    if (objectIsMarked(o)) {
        objectSetMarked(o, false);
    } else if (storeNow.saving && !divide(saving.db_id, o) &&
               !saving.to->offer(saving.to->arg, saving.db_id, o)) {
        return false;
    }
    noteVisited(o);
    return true;
}

/* Visits all objects of a table that the walk has not visited yet: the table is going to be
 * removed. */
static bool visitAtOnce(void *context, void *entry, unsigned flags) {
    hotCheck(saving.runs);
    (void)context, (void)flags; /* everything is in `saving` */
    if (!objectIsMarked(entry) && !divide(saving.db_id, entry))
        saving.to->take(saving.to->arg, saving.db_id, entry);
    return true;
}

/* The table with the cut; NULL at the end of the store. Slots without keys are skipped. */
static const hashtable *tableNow(const savedStore *s) {
    for (; saving.slot < kvstoreSlots(s->keys); saving.slot++) {
        const hashtable *t = kvstoreTable(s->keys, saving.slot);
        if (t->body && !isLeftOut(saving.slot)) return t;
        saving.begun = false;
    }
    return NULL;
}

static void freeDetached(savedStore *s) {
    if (!s->detached) return;
    freeStores(&s->keys, 1, false, true);
    s->keys = NULL;
    s->detached = false;
}

static void freeEmptied(void) {
    if (saving.emptied_count == 0) return;
    freeStores(saving.emptied, saving.emptied_count, false, true);
    memFree(saving.emptied);
    saving.emptied = NULL;
    saving.emptied_count = 0;
}

static void endWalk(void) {
    keyspace *k = storeNow.keyspaces;
    for (; k; k = k->next) {
        for (int i = 0; i < k->count; i++) k->dbs[i]->saved_as = 0;
    }
    memFree(saving.stores);
    memFree(saving.visited);
    saving.stores = NULL;
    saving.visited = NULL;
    saving.visited_cap = 0;
    saving.runs = storeNow.saving = false;
    storeUpdateWatches();
}

static void stepTable(const hashtable *t, uint64_t buckets) {
    hotCheck(buckets > 0);
    saving.visited_count = 0;
    if (!saving.begun) {
        hashtableCutBegin(&saving.cut, t);
        saving.begun = true;
    }
    hashtableCut before = saving.cut;
    bool more = hashtableWalk(t, &dbKeysType, &saving.cut, buckets, visit, NULL);
    if (more && saving.cut.place == before.place) {
        /* The slice was ended by the saver. What it has visited is not to be visited again. */
        for (size_t i = 0; i < saving.visited_count; i++) objectSetMarked(saving.visited[i], true);
    }
    if (!more) {
        saving.slot++;
        saving.begun = false;
    }
}

/* ------------------------------------------------------------------ taken tables */

bool savingTakeSlot(const db *d, int slot, const hashtable *t) {
    hotCheck(slot < SLOT_COUNT);
    hotCheck(threadIsMain());
    int number = d->saved_as - 1;
    if (!storeNow.saving || number < saving.at || !t->body) return false;
    if (number == saving.at && slot < saving.slot) return false;
    if (isLeftOut(slot)) return false;
    struct takenTable taken = {.t = t, .db_id = saving.stores[number].db_id};
    hashtableCutBegin(&taken.cut, t);
    if (number == saving.at && slot == saving.slot && saving.begun) taken.cut = saving.cut;
    saving.taken = memRealloc(saving.taken, ((size_t)saving.taken_count + 1) * sizeof(taken));
    saving.taken[saving.taken_count++] = taken;
    return true;
}

static struct takenTable *findTaken(const hashtable *t) {
    for (int i = 0; i < saving.taken_count; i++)
        if (saving.taken[i].t == t) return &saving.taken[i];
    return NULL;
}

bool savingHolds(const hashtable *t) { return findTaken(t); }

/* Some objects of a taken table. */
static void stepTaken(struct takenTable *taken, uint64_t buckets) {
    saving.db_id = taken->db_id;
    if (hashtableWalk(taken->t, &dbKeysType, &taken->cut, buckets, visitAtOnce, NULL)) return;
    *taken = saving.taken[--saving.taken_count];
}

void savingLetGo(const hashtable *t) {
    while (findTaken(t)) stepTaken(findTaken(t), 64);
}

static void forgetTaken(void) {
    memFree(saving.taken);
    saving.taken = NULL;
    saving.taken_count = 0;
}

/* ------------------------------------------------------------------ steps */

bool storeSavingStep(uint64_t buckets) {
    hotCheck(buckets > 0);
    if (savingValuesStep(buckets)) return true;
    freeEmptied();
    if (saving.taken_count) {
        stepTaken(saving.taken, buckets);
        return true;
    }
    while (saving.runs) {
        if (saving.at == saving.count) {
            endWalk();
            break;
        }
        savedStore *s = &saving.stores[saving.at];
        bool unwanted = !s->keys || (s->detached && !storeNow.saving);
        const hashtable *t = unwanted ? NULL : tableNow(s);
        if (t) {
            saving.db_id = s->db_id;
            stepTable(t, buckets);
            break;
        }
        freeDetached(s);
        saving.at++;
        saving.slot = 0;
        saving.begun = false;
    }
    return saving.runs;
}

void storeSavingAbandon(void) {
    storeNow.saving = false;
    storeUpdateWatches();
    forgetTaken();
    savingValuesDrop();
}

void savingFreeDetached(void) {
    freeEmptied();
    for (int i = saving.at; saving.runs && i < saving.count; i++) freeDetached(&saving.stores[i]);
}

void savingStop(void) {
    hotCheck(threadIsMain());
    if (!saving.runs) return;
    storeSavingAbandon();
    savingFreeDetached();
    endWalk();
}

/* ------------------------------------------------------------------ whole tables */

uint64_t savingDetachedKeys(void) {
    uint64_t keys = savingValuesOpen(); /* nodes of theirs may be in slabs */
    for (int i = 0; i < saving.emptied_count; i++) keys += kvstoreCountAll(saving.emptied[i]);
    for (int i = saving.at; saving.runs && i < saving.count; i++) {
        const savedStore *s = &saving.stores[i];
        if (s->keys && s->detached) keys += kvstoreCountAll(s->keys);
    }
    return keys;
}

bool savingDetach(db *d) {
    int number = d->saved_as - 1;
    d->saved_as = 0;
    if (!saving.runs || number < saving.at) {
        if (!storeNow.saving_values || d->in != &storeNow.main) return false;
        saving.emptied = memRealloc(saving.emptied,
                                    ((size_t)saving.emptied_count + 1) * sizeof(*saving.emptied));
        saving.emptied[saving.emptied_count++] = d->keys;
        return true;
    }
    savedStore *s = &saving.stores[number];
    if (storeNow.saving) {
        s->detached = true;
        return true;
    }
    s->keys = NULL; /* its marks go with it */
    return false;
}
