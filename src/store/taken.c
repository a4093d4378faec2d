/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Keys that were taken out of their database (taken.h). Invariants: they are visited, and freed,
 * only after a snapshot that needs them has got them; a value that a snapshot was reading when its
 * key was taken is handed over to the snapshot before the table is freed, as that may happen on
 * another thread. */
#include "store/taken.h"

#include "base/base.h"
#include "ds/hashtable_walk.h"
#include "store/db_priv.h"
#include "store/saving_value.h"

struct takenKeys {
    db *from;
    int slot;
    hashtable table;
    uint64_t count; /* of keys at the start */
    hashtableCut cut;
    bool is_saved; /* no snapshot needs its objects */
    robj **kept;   /* whose values were handed over */
    size_t kept_count;
    dbVisitProc *visit;
    void *arg;
};

static uint64_t all_taken; /* keys that are not freed yet */

uint64_t takenKeysLeft(void) { return all_taken; }
db *takenDb(const takenKeys *t) { return t->from; }
bool takenIsHeld(const takenKeys *t) { return !t->is_saved && savingHolds(&t->table); }
uint64_t takenCount(const takenKeys *t) { return t->count; }

static void tellRemoved(void *arg, const robj *o) { removalTell(arg, o, REMOVAL_DELETED); }

takenKeys *dbTakeSlot(db *d, int slot) {
    check(threadIsMain());
    check(d->in == keyspaceMain());
    if (!dbSlotCount(d, slot)) return NULL;
    readingBeforeWhole(d);
    if (unlikely(storeNow.tells_removals)) dbEach(d, slot, tellRemoved, d);
    takenKeys *t = memNew(takenKeys);
    *t = (takenKeys){.from = d, .slot = slot, .table = kvstoreTakeSlot(d->keys, slot)};
    t->is_saved = !savingTakeSlot(d, slot, &t->table);
    hashtableCutBegin(&t->cut, &t->table);
    t->count = hashtableCount(&t->table);
    hotCheck(t->count > 0);
    hotCheck(dbSlotCount(d, slot) == 0);
    all_taken += t->count;
    return t;
}

static bool visitOne(void *context, void *entry, unsigned flags) {
    takenKeys *t = context;
    robj *o = entry;
    if (t->visit) t->visit(t->arg, o);
    if (likely(!storeNow.saving_values) || !(flags & HASHTABLE_MARK)) return true;
    if (objectForm(o) != FORM_POINTER || !savingValueKeep(objectPointer(o))) return true;
    t->kept = memRealloc(t->kept, (t->kept_count + 1) * sizeof(*t->kept)); /* seldom one */
    t->kept[t->kept_count++] = o;
    return true;
}

/* The values of these objects belong to the snapshot. */
static void freeKept(takenKeys *t) {
    for (size_t i = 0; i < t->kept_count; i++) {
        robj *o = t->kept[i];
        check(hashtableDeleteEntry(&t->table, &dbKeysType, storeHash(objectKey(o)), o));
        slabFree(o, objectSize(o));
    }
    memFree(t->kept);
}

static bool walk(takenKeys *t, uint64_t buckets, dbVisitProc *visit, void *arg) {
    t->visit = visit;
    t->arg = arg;
    return hashtableWalk(&t->table, &dbKeysType, &t->cut, buckets, visitOne, t);
}

bool takenStep(takenKeys *t, uint64_t buckets, dbVisitProc *visit, void *arg) {
    hotCheck(threadIsMain());
    if (!t->is_saved) {
        if (buckets == UINT64_MAX) savingLetGo(&t->table);
        if (savingHolds(&t->table)) return true;
        t->is_saved = true;
    }
    if ((visit || storeNow.saving_values) && walk(t, buckets, visit, arg)) return true;
    takenFree(t);
    return false;
}

void takenFree(takenKeys *t) {
    check(all_taken >= t->count);
    if (!t->is_saved) savingLetGo(&t->table);
    if (storeNow.saving_values && !t->cut.ended) (void)walk(t, UINT64_MAX, NULL, NULL);
    hotCheck(hashtableCount(&t->table) == t->count);
    freeKept(t);
    hotCheck(hashtableCount(&t->table) == t->count - t->kept_count);
    all_taken -= t->count;
    freeTable(t->from, t->table, true);
    memFree(t);
}
