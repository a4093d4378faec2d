/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Functions shared by commands on collections (collection.h). */
#include "cmd/collection.h"

#include "base/base.h"
#include "engine/job.h"
#include "engine/keyspace.h"
#include "store/member_expiry.h"
#include "store/reading.h"
#include "store/type.h"

bool collectionRefuse(ctx *c) {
    replyError(c, ERR_WRONG_TYPE_TEXT);
    return false;
}

robj *collectionShowMembers(const ctx *c, slice key, uint64_t hash, robj *o) {
    return keyspaceShow(c, c->db, key, hash, o, c->look);
}

robj *collectionExpireMembers(ctx *c, int arg_index, robj *o) {
    hotCheck(arg_index <= c->argc);
    slice key = c->argv[arg_index];
    return membersToWrite(c->db, key, collectionHash(c, arg_index), o, c->look, &c->at);
}

/* The lookup of a suspended command, which neither counts nor finds another state of the key. */
static robj *findAgain(ctx *c, int arg_index, valueType type) {
    robj *o;
    dbLookupsRepeat(c->db, true);
    bool fits = collectionFindWrite(c, arg_index, type, &o);
    dbLookupsRepeat(c->db, false);
    check(fits);
    return o;
}

bool collectionSuspend(ctx *c, int arg_index, robj **o, bool is_new) {
    hotCheck(c->flags & CTX_SLICED);
    valueType type = objectType(*o);
    if (is_new) {
        if (jobSuspend()) return true;
        objectFree(*o);
        return false;
    }
    collectionPlace(c, arg_index, *o);
    if (!jobSuspend()) return false;
    *o = findAgain(c, arg_index, type);
    check(*o != NULL);
    return true;
}

void collectionPlaceLast(ctx *c, int arg_index, robj *o, bool is_new) {
    if (unlikely(c->flags & CTX_SLICED) && is_new)
        check(findAgain(c, arg_index, objectType(o)) == NULL);
    collectionPlace(c, arg_index, o);
}

void collectionStore(ctx *c, int arg_index, robj *into, const keyEvent *event) {
    hotCheck(arg_index > 0);
    hotCheck(arg_index <= c->argc);
    if (!jobMayStore(c)) {
        if (into) objectFree(into);
        return;
    }
    slice key = c->argv[arg_index];
    uint64_t hash = collectionHash(c, arg_index);
    size_t length = into ? typeOf(into)->length(into) : 0;
    bool existed = (length > 0 ? dbDeleteReplaced : dbDelete)(c->db, key, hash, c->look);
    if (length > 0) {
        check(dbFind(c->db, key, hash, c->look, &c->at) == NULL);
        (existed ? dbPlaceReplacing : dbPlace)(c->db, &c->at, into);
        ctxKeyChanged(c, key, event);
    } else {
        if (into) objectFree(into);
        if (existed) ctxKeyChanged(c, key, &eventDel);
    }
    replyInteger(c, (int64_t)length);
}

static void deleteEmptied(ctx *c, int arg_index) {
    hotCheck(arg_index > 0);
    hotCheck(arg_index <= c->argc);
    /* It exists, unless a callback has deleted it. */
    (void)dbDeleteEmptied(c->db, c->argv[arg_index], collectionHash(c, arg_index), c->look);
}

void collectionRemove(ctx *c, int arg_index) {
    deleteEmptied(c, arg_index);
    collectionNotify(c, c->argv[arg_index], &eventDel);
}

void collectionReduced(ctx *c, int arg_index, const keyEvent *event, uint64_t n, bool emptied) {
    hotCheck(n > 0);
    if (emptied) deleteEmptied(c, arg_index);
    collectionChanged(c, c->argv[arg_index], event, n);
    if (emptied) collectionNotify(c, c->argv[arg_index], &eventDel);
}

bool collectionArgCount(ctx *c, int arg_index, int64_t *out) {
    hotCheck(arg_index > 0);
    hotCheck(arg_index <= c->argc);
    if (!ctxArgInt(c, arg_index, out)) return false;
    if (*out != INT64_MIN) return true;
    replyErrorFormat(c, "ERR value is out of range, value must between %lld and %lld",
                     (long long)-INT64_MAX, (long long)INT64_MAX);
    return false;
}

bool collectionDrawsFit(ctx *c, outmark mark, uint64_t draws) {
    const size_t draw_min = 6; /* bytes of an empty bulk reply */
    size_t bytes = outbufPending(c->out) - mark.at;
    outbufCutTo(c->out, mark);
    /* With replies switched off there is nothing to measure, but the draws still take time. */
    size_t each = sizeMax(draw_min, bytes / DRAWS_PROBED);
    if (draws <= memMachineBytes() / 2 / each) return true;
    replyError(c, SLICE("ERR value is out of range"));
    return false;
}

void collectionReplyScan(ctx *c, const robj *o, uint64_t cursor, int64_t count,
                         collectionScanProc *scan, void *arg, const collectionScanned *scanned) {
    /* Limit of buckets to visit, as many may be empty. */
    enum { SCANNED = 8 }; /* elements that one step visits, about */
    int64_t remaining = count > INT64_MAX / 10 ? INT64_MAX : count * 10;
    if (jobStart(c, sizeMin((uint64_t)count, typeOf(o)->length(o)))) return;
    outbuf items, *out = c->out;
    outbufInit(&items);
    c->out = &items;
    do {
        cursor = scan(c, o, cursor, arg);
    } while (cursor && --remaining > 0 && scanned->visited < count && !jobPoint(c, SCANNED));
    c->out = out;
    char digits[NUMBER_TEXT_MAX];
    replyArray(c, 2);
    replyBulk(c, sliceMake(digits, numberPrintUint(digits, cursor)));
    replyArray(c, scanned->replied);
    outbufMoveAll(out, &items);
}
