/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Reads that last (reading.h).
 *
 * A listing walks the tables with a cut (ds/hashtable_walk.h), one slot after the other. Invariant:
 * `touched` has the names of all keys beyond the cut that were added or removed since the start. So
 * a name beyond the cut was there at the start if it is in the table and not touched, or if it was
 * touched first when it was removed, which is when it was visited. A touched key costs some 100 ns
 * and its name. */
#include "store/reading.h"

#include <string.h>

#include "base/base.h"
#include "ds/hashtable_walk.h"
#include "ds/list.h"
#include "store/db_priv.h"

struct dbListing {
    listNode node;
    db *of;
    int slot, end; /* being walked; the first one that is not walked any more */
    bool all, begun;
    hashtableCut cut; /* of the table of `slot` if `begun` */
    hashtable touched;
    dbVisitProc *visit;
    void *arg;
};

typedef struct touchedName {
    uint64_t hash;
    size_t len;
    char bytes[];
} touchedName;

static struct {
    const storeReaders *readers;
    list listings;
    struct {
        uint64_t hits, misses;
        bool notes;
    } before_repeat;
} reading;

void storeUpdateWatches(void) {
    storeNow.watches = storeNow.saving || reading.readers || reading.listings.count;
}

void storeSetReaders(const storeReaders *readers) {
    hotCheck(threadIsMain());
    check(!reading.listings.count);
    reading.readers = readers;
    storeUpdateWatches();
}

bool readingMoves(void) { return !reading.readers; }

bool readingHolds(const db *d, uint64_t hash) {
    return reading.readers && d->in == &storeNow.main && reading.readers->holds(d, hash);
}

void readingBeforeWhole(const db *d) {
    if (reading.readers && (!d || d->in == &storeNow.main)) reading.readers->whole(d);
}

void readingBeforeShown(const db *d, uint64_t hash) {
    if (reading.readers && d->in == &storeNow.main) reading.readers->shown(d, hash);
}

void watchedBefore(const db *d, uint64_t hash, robj *o) {
    if (storeNow.saving) savingBefore(d, hash, o);
    if (reading.readers && d->in == &storeNow.main) reading.readers->before(d, hash);
}

/* ------------------------------------------------------------------ listings */

static uint64_t hashOfTouched(const void *entry) { return ((const touchedName *)entry)->hash; }

static bool isTouchedName(const void *entry, const void *name, size_t len) {
    const touchedName *t = entry;
    return t->len == len && memcmp(t->bytes, name, len) == 0;
}

static const hashtableType touched_type = {.hash_of = hashOfTouched, .match = isTouchedName};

/* True if the listing has not visited the keys of this database with this hash yet. */
static bool isAhead(const dbListing *l, const db *d, uint64_t hash) {
    if (d != l->of) return false;
    int slot = slotOf(hash);
    if (slot < l->slot || slot >= l->end || (l->all && isHidden(d, hash))) return false;
    return slot > l->slot || !l->begun || !hashtableCutPassed(&l->cut, hash);
}

/* False if the name was touched before. */
static bool touch(dbListing *l, uint64_t hash, slice name) {
    hashtablePosition at;
    if (hashtableFindPosition(&l->touched, &touched_type, hash, name.ptr, name.len, &at))
        return false;
    touchedName *t = memAlloc(sizeof(*t) + name.len);
    *t = (touchedName){.hash = hash, .len = name.len};
    memcpy(t->bytes, name.ptr, name.len);
    hashtableInsertAt(&l->touched, &touched_type, &at, t, 0);
    return true;
}

static bool isTouched(const dbListing *l, uint64_t hash, slice name) {
    return l->touched.body && hashtableFind(&l->touched, &touched_type, hash, name.ptr, name.len);
}

void watchedAdded(const db *d, uint64_t hash, robj *o) {
    if (storeNow.saving) savingAdded(d, hash, o);
    if (reading.readers && d->in == &storeNow.main) reading.readers->adding(d, hash);
    if (!reading.listings.count) return;
    for (listNode *n = listFirst(&reading.listings); n; n = listNext(&reading.listings, n)) {
        dbListing *l = LIST_OWNER(n, dbListing, node);
        if (isAhead(l, d, hash)) (void)touch(l, hash, objectKey(o)); /* again: it was removed */
    }
}

void watchedRemoving(const db *d, uint64_t hash, const robj *o) {
    if (!reading.listings.count) return;
    for (listNode *n = listFirst(&reading.listings); n; n = listNext(&reading.listings, n)) {
        dbListing *l = LIST_OWNER(n, dbListing, node);
        if (isAhead(l, d, hash) && touch(l, hash, objectKey(o))) l->visit(l->arg, o);
    }
}

dbListing *dbListingNew(db *d, int slot, dbVisitProc *visit, void *arg) {
    hotCheck(slot < SLOT_COUNT);
    check(d->in == &storeNow.main);
    check(reading.readers != NULL);
    if (!reading.listings.head.next) listInit(&reading.listings);
    dbListing *l = memNew(dbListing);
    *l = (dbListing){.of = d, .visit = visit, .arg = arg, .all = slot < 0};
    l->slot = slot < 0 ? 0 : slot;
    l->end = slot < 0 ? kvstoreSlots(d->keys) : slot + 1;
    listAppend(&reading.listings, &l->node);
    storeUpdateWatches();
    return l;
}

static bool visitKey(void *context, void *entry, unsigned flags) {
    (void)flags; /* in the object */
    const dbListing *l = context;
    const robj *o = entry;
    if (l->touched.body && isTouched(l, storeHash(objectKey(o)), objectKey(o))) return true;
    l->visit(l->arg, o);
    return true;
}

bool dbListingStep(dbListing *l, uint64_t buckets) {
    hotCheck(buckets > 0);
    for (; l->slot < l->end; l->slot++, l->begun = false) {
        const hashtable *t = kvstoreTable(l->of->keys, l->slot);
        bool hidden = l->all && l->of->in->hidden && slotMaskHas(l->of->in->hidden, l->slot);
        if (!t->body || hidden) continue;
        if (!l->begun) hashtableCutBegin(&l->cut, t);
        l->begun = true;
        if (hashtableWalk(t, &dbKeysType, &l->cut, buckets, visitKey, l)) return true;
    }
    return false;
}

static void freeTouched(void *context, void *entry, unsigned flags) {
    (void)context, (void)flags; /* all entries */
    memFree(entry);
}

void dbListingFree(dbListing *l) {
    listRemove(&reading.listings, &l->node);
    hashtableFree(&l->touched, freeTouched, NULL);
    memFree(l);
    storeUpdateWatches();
}

/* ------------------------------------------------------------------ repeated lookups */

void dbLookupsRepeat(db *d, bool on) {
    if (on) {
        reading.before_repeat.hits = d->hits;
        reading.before_repeat.misses = d->misses;
        reading.before_repeat.notes = storeNow.notes_misses;
        storeNow.notes_misses = false;
        return;
    }
    d->hits = reading.before_repeat.hits;
    d->misses = reading.before_repeat.misses;
    storeNow.notes_misses = reading.before_repeat.notes;
}
