/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Elements of values that are being read, for the readers of all formats (rdb_value_priv.h).
 * Invariant: an item that has expired is never stored, and is told to options->item_dropped. */
#include "base/base.h"
#include "ds/listpack.h"
#include "format/rdb_value_priv.h"
#include "store/type_hash.h"

/* Limit of elements to reserve, as the announced count may be wrong. */
enum { RESERVE_MAX = 1 << 22 };

size_t rdbReserveCount(uint64_t announced) {
    return announced < RESERVE_MAX ? (size_t)announced : RESERVE_MAX;
}

status rdbReadListpack(rdbReader *r, slice *out) {
    status st = rdbReadString(r, out);
    if (st != OK || likely(out->len < LISTPACK_NARROW_MIN)) return st;
    check(out->ptr == r->text.ptr); /* only short strings are not copied */
    out->len = listpackNarrow((uint8_t *)r->text.ptr, out->len);
    return OK;
}

bool rdbDropItem(valueReader *v, valueType type, slice item, int64_t time_ms) {
    hotCheck(time_ms >= 0 || time_ms == HASH_NO_TIME);
    const rdbReadOptions *options = v->options;
    if (time_ms == HASH_NO_TIME || !lookIsPast(options->look, time_ms)) return false;
    v->dropped = true;
    if (options->item_dropped) options->item_dropped(options->arg, v->key, type, item);
    return true;
}

void rdbBeginHash(valueReader *v, uint64_t count, bool timed) {
    hotCheck(!v->o);
    bool large = timed || count > v->options->limits.hash.entries;
    v->o = large ? hashNewLarge(v->key, rdbReserveCount(count)) : hashNew(v->key);
}

status rdbAddField(valueReader *v, const slice pair[2], int64_t time_ms) {
    if (rdbDropItem(v, TYPE_HASH, pair[0], time_ms)) return OK;
    const packLimits *limits = &v->options->limits.hash;
    hashOutcome outcome;
    v->o = hashPrepare(v->o, pair, 2, limits);
    v->o = hashSetTimed(v->o, pair[0], pair[1], time_ms, lookAtAll(), limits, &outcome);
    if (outcome == HASH_CREATED) return OK;
    return rdbReaderFail(v->r, "Duplicate hash fields detected");
}
