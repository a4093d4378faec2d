/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Moving the elements of large collections together: an element has its only reference in a table that nothing
 * leads back to, so all collections are walked, some buckets at a time, and elements that lie in sparse slabs
 * move to fuller ones.
 *
 * Between two turns anything may change: the place in the keyspace is a scan cursor, a collection half done is
 * found again by its key. Main thread only. */
#include "base/base.h"
#include "base/clock.h"
#include "base/str.h"
#include "store/db_priv.h"
#include "store/slab.h"

enum {
    PAUSE_TURNS =
        100, /* after a whole walk: a sixteenth that nobody can win shall not cost for ever */
    STEPS_A_LOOK = 16, /* buckets between two looks at the clock */
};

static struct {
    bool active;
    int pause;
    int db;
    uint64_t cursor; /* of the keyspace */
    str keys;        /* collections that the last step of it met: lengths, then bytes */
    int keys_db;     /* their database */
    size_t at;       /* where the present one stands among them */
    uint64_t inner;  /* cursor in it */
} walk;

static void meet(void *context, void *entry, unsigned flags) {
    (void)context; /* there is one walk */
    const robj *o = entry;
    if (!(flags & HASHTABLE_MARK) || !typeOf(o)->compact_value) return;
    slice key = objectKey(o);
    strAppend(&walk.keys, &key.len, sizeof(key.len));
    strAppendSlice(&walk.keys, key);
}

/* The next buckets of the keyspace. */
static void stepKeyspace(void) {
    strClear(&walk.keys);
    walk.at = 0;
    walk.keys_db = walk.db;
    walk.cursor = kvstoreScan(storeNow.dbs[walk.db]->keys, walk.cursor, -1, meet, NULL);
    if (walk.cursor == 0) walk.db++;
}

/* The next buckets of the collection the walk stands in; steps behind it when it is done or gone. */
static void stepCollection(void) {
    const db *d = storeNow.dbs[walk.keys_db];
    size_t len;
    memcpy(&len, walk.keys.ptr + walk.at, sizeof(len));
    slice key = sliceMake(walk.keys.ptr + walk.at + sizeof(len), len);
    const robj *o = dbPeek(d, key, storeHash(key));
    bool mine = o && objectForm(o) == FORM_POINTER && typeOf(o)->compact_value;
    walk.inner = mine ? typeOf(o)->compact_value(objectPointer(o), walk.inner) : 0;
    if (walk.inner == 0) walk.at += sizeof(len) + len;
}

static void end(void) {
    strFree(&walk.keys);
    memset(&walk, 0, sizeof(walk));
    walk.pause = PAUSE_TURNS;
}

void compactElements(int64_t budget_us) {
    if (walk.pause > 0) walk.pause--;
    if (!walk.active && (walk.pause > 0 || !slabShouldCompact(slabElements()))) return;
    if (slabForkActive(slabElements())) return;
    walk.active = true;
    int64_t deadline_us = clockMonoUs() + budget_us;
    do {
        for (int i = 0; i < STEPS_A_LOOK; i++) {
            if (walk.at < walk.keys.len) {
                stepCollection();
            } else if (walk.db < storeNow.count) {
                stepKeyspace();
            } else {
                end();
                return;
            }
        }
    } while (clockMonoUs() < deadline_us);
}

void compactForget(void) {
    end();
    walk.pause = 0;
}
