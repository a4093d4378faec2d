/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Elements of collections (element.h). */
#include "store/element.h"

#include "base/base.h"
#include "base/hash.h"
#include "store/look.h"

/* The argument whose hash is known. An address suffices: its bytes do not change while it is
 * set. */
static struct {
    slice item;
    uint64_t hash;
} known = {.item.len = SIZE_MAX}; /* of no item */

void storeKnowItem(slice item, uint64_t hash) {
    known.item = item;
    known.hash = hash;
}

void storeForgetItem(void) { known.item.len = SIZE_MAX; }

uint64_t elementNameHash(slice name) {
    if (name.ptr == known.item.ptr && name.len == known.item.len) {
        hotCheck(known.hash == hashBytes(name.ptr, name.len));
        return known.hash;
    }
    return hashBytes(name.ptr, name.len);
}

void elementFree(void *element, valueFreer *by) {
    if (!by || (!by->remote && !by->whole)) {
        slabFreeAny(slabElements(), element);
    } else if (by->remote) {
        slabRemoteFree(by->remote, element);
    } else if (!slabOwns(by->whole, element)) {
        memFree(element);
    }
}

static void *count(void *moved, compaction *by) {
    by->moved += moved != NULL;
    by->kept += moved == NULL;
    return moved;
}

void *elementMove(void *element, compaction *by) {
    return count(slabMoveIfSparse(slabElements(), element), by);
}

void *elementMoveBlock(void *block, compaction *by) {
    return by->heap ? count(memMoveIfSparse(block), by) : NULL;
}

void elementMoveTable(hashtable *table, compaction *by) {
    if (!by->heap) return;
    unsigned moved = hashtableCompact(table);
    by->moved += moved;
    by->kept += moved == 0;
}

typedef struct mover {
    hashtable table;
    const hashtableType *type;
    elementMoverProc *move;
    compaction *by;
} mover;

static void moveEntry(void *context, void *entry, unsigned flags) {
    mover *m = context;
    entry = elementVisited(entry, flags & m->type->entry_mark);
    elementSeen(m->by);
    void *moved = m->move(entry, m->by);
    if (moved) check(hashtableReplace(&m->table, m->type, m->type->hash_of(moved), entry, moved));
}

uint64_t elementsCompact(void **body, const hashtableType *type, elementMoverProc *move,
                         uint64_t cursor, compaction *by) {
    hotCheck(*body);
    mover m = {.table = {*body}, .type = type, .move = move, .by = by};
    if (cursor == 0) elementMoveTable(&m.table, by);
    do {
        elementSeen(by); /* a bucket may be empty */
        cursor = hashtableScan(&m.table, type, cursor, moveEntry, &m);
    } while (cursor && by->fields);
    *body = m.table.body;
    return cursor;
}

bool elementMayStay(void) {
#ifdef HOSTILE_BUILD
    return false;
#else
    return likely(!slabAnyForked());
#endif
}
