/* SPDX-License-Identifier: BSD-3-Clause
 *
 * What happens before a key is removed (listener.h): a snapshot gets the object, the listener is
 * told, and the value's type may do its own.
 *
 * Cost if nobody listens: the test in beforeRemoval(), which asks for both with one branch. Main
 * thread only. */
#include "store/listener.h"

#include "base/base.h"
#include "store/compressed.h"
#include "store/db_priv.h"

static void setTells(void) {
    storeNow.tells_removals = storeNow.listens_removals || storeNow.unlinks_values;
}

void storeTellRemovals(bool on) {
    storeNow.listens_removals = on;
    setTells();
}

void storeExpectChanges(void) {
    hotCheck(threadIsMain());
    storeNow.expects_changes = true;
}

bool storeExpectsChanges(void) { return storeNow.expects_changes; }

void removalSetUnlinks(bool on) {
    storeNow.unlinks_values = on;
    setTells();
}

/* The objects whose removal is being told, the innermost one first. */
typedef struct told {
    const robj *o;
    struct told *outer;
} told;
static told *telling;

bool removalIsTold(const robj *o) {
    for (const told *t = telling; t; t = t->outer) {
        if (t->o == o) return true;
    }
    return false;
}

void removalTell(db *d, const robj *o, storeRemoval why) {
    hotCheck(threadIsMain());
    if (storeNow.listens_removals && d->in->listener) {
        told now = {o, telling};
        telling = &now;
        compressedKeep(true); /* the command may have read values that it still needs */
        d->in->listener->removing(d, o, why);
        compressedKeep(false);
        telling = now.outer;
    }
    if (objectForm(o) != FORM_POINTER || !typeOf(o)->unlink_value) return;
    valuePlace at = {d->id, objectKey(o)};
    typeOf(o)->unlink_value(&at, objectPointer(o));
}

void removalBefore(db *d, uint64_t hash, robj *o, storeRemoval why) {
    beforeChange(d, hash, o);
    if (storeNow.watches) watchedRemoving(d, hash, o);
    if (storeNow.tells_removals) removalTell(d, o, why);
}
