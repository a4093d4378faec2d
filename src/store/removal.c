/* SPDX-License-Identifier: BSD-3-Clause
 *
 * What happens before a key is removed (listener.h): a snapshot gets the object, and the listener is told.
 *
 * Cost if nobody listens: the test in beforeRemoval(), which asks for both with one branch. Main thread only. */
#include "store/listener.h"

#include "base/base.h"
#include "store/db_priv.h"

void storeTellRemovals(bool on) { storeNow.tells_removals = on; }

void removalTell(db *d, const robj *o, storeRemoval why) {
    if (d->in->listener) d->in->listener->removing(d, o, why);
}

void removalBefore(db *d, uint64_t hash, robj *o, storeRemoval why) {
    beforeChange(d, hash, o);
    if (storeNow.tells_removals) removalTell(d, o, why);
}
