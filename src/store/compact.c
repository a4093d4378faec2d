/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Compaction of large collections. The only reference to an element is in its collection's table,
 * and elements do not refer back to it; so all collections are scanned in steps, and elements in
 * sparse slabs move to fuller ones. If requested, blocks outside the slabs are moved, too: nodes of
 * lists and sorted sets, long strings, and the arrays of tables, those of the keyspace's slots
 * included.
 *
 * Anything may change between two turns: the position in the keyspace is a scan cursor, and a
 * partially processed collection is found again by its key. Main thread only. */
#include "base/base.h"
#include "base/clock.h"
#include "base/str.h"
#include "store/db_priv.h"
#include "store/saving_value.h"
#include "store/slab.h"

enum {
    /* Turns to pause after a complete pass, so that fragmentation that cannot be reduced does not
     * cost CPU time forever. */
    PAUSE_TURNS = 100,
    STEPS_A_LOOK = 8, /* keyspace steps between two reads of the clock */
};

struct compactWalk {
    keyspace *in;
    bool active;
    int pause;
    int db;
    uint64_t cursor; /* in the keyspace */
    str keys;        /* collections found by the last keyspace step: lengths, then bytes */
    int keys_db;     /* their database */
    size_t at;       /* offset of the current one in `keys` */
    uint64_t inner;  /* scan cursor in the current collection */
    compaction by;
};

static void collectKeys(void *context, void *entry, unsigned flags) {
    compactWalk *walk = context;
    const robj *o = entry;
    if (!(flags & HASHTABLE_MARK)) return;
    const typeOps *ops = typeOf(o);
    if (!ops->has_elements && !(walk->by.heap && ops->compact_value)) return;
    slice key = objectKey(o);
    strAppend(&walk->keys, &key.len, sizeof(key.len));
    strAppendSlice(&walk->keys, key);
}

/* The table of a slot of the keyspace, before its first buckets are visited. */
static void moveTable(compactWalk *walk) {
    hotCheck(walk->db < walk->in->count);
    int moved = kvstoreCompactAt(walk->in->dbs[walk->db]->keys, walk->cursor);
    if (moved < 0) return;
    walk->by.moved += (uint64_t)moved;
    walk->by.kept += moved == 0;
}

/* The next buckets of the keyspace. */
static void stepKeyspace(compactWalk *walk) {
    hotCheck(walk->db < walk->in->count);
    if (walk->by.heap) moveTable(walk);
    strClear(&walk->keys);
    walk->at = 0;
    walk->keys_db = walk->db;
    walk->cursor = kvstoreScan(walk->in->dbs[walk->db]->keys, walk->cursor, -1, collectKeys, walk);
    if (walk->cursor == 0) walk->db++;
}

/* Moves the next elements of the current collection; continues after it when it is finished or was
 * removed. */
static void stepCollection(compactWalk *walk, size_t fields) {
    hotCheck(walk->at < walk->keys.len);
    const db *d = walk->in->dbs[walk->keys_db];
    size_t len;
    memcpy(&len, walk->keys.ptr + walk->at, sizeof(len));
    slice key = sliceMake(walk->keys.ptr + walk->at + sizeof(len), len);
    robj *o = (robj *)(uintptr_t)dbPeek(d, key, storeHash(key));
    if (o && objectForm(o) == FORM_POINTER && typeOf(o)->compact_value) {
        void *value = objectPointer(o);
        walk->by.fields = fields;
        walk->by.at = (valuePlace){d->id, key};
        walk->inner = typeOf(o)->compact_value(&value, walk->inner, &walk->by);
        putValue(o, value);
    } else {
        walk->inner = 0;
    }
    if (walk->inner == 0) walk->at += sizeof(len) + len;
}

static void end(compactWalk *walk) {
    strFree(&walk->keys);
    *walk = (compactWalk){.in = walk->in, .pause = PAUSE_TURNS};
    hotCheck(walk->keys.len == 0);
}

/* One collection's piece, or some steps of the keyspace. False at the end of the walk. */
static bool stepSome(compactWalk *walk, size_t fields) {
    hotCheck(walk->at <= walk->keys.len);
    if (walk->at < walk->keys.len) {
        stepCollection(walk, fields);
        return true;
    }
    for (int i = 0; i < STEPS_A_LOOK && walk->at == walk->keys.len; i++) {
        if (walk->db == walk->in->count) return false;
        stepKeyspace(walk);
    }
    return true;
}

bool compactElements(keyspace *k, const storeCompaction *plan, storeCompactReport *report) {
    if (!k->compact) {
        k->compact = memNew(compactWalk);
        k->compact->in = k;
    }
    compactWalk *walk = k->compact;
    if (slabForkActive(slabElements()) || storeNow.forked) return walk->active;
    if (plan->only_if_worth && !walk->active) {
        if (walk->pause > 0) walk->pause--;
        if (walk->pause > 0 || !slabShouldCompact(slabElements())) return false;
    }
    walk->active = true;
    walk->by.heap = plan->heap;
    walk->by.moved = walk->by.kept = 0;
    int64_t deadline_us = clockMonoUs() + plan->budget_us;
    bool more;
    do { more = stepSome(walk, plan->fields_max); } while (more && clockMonoUs() < deadline_us);
    report->moved += walk->by.moved;
    report->kept += walk->by.kept;
    if (!more) end(walk);
    return more;
}

void compactForget(keyspace *k) {
    if (k->compact) end(k->compact);
    memFree(k->compact);
    k->compact = NULL;
}
