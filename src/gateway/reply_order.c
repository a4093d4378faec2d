/* SPDX-License-Identifier: BSD-3-Clause
 *
 * The order of replies to one client (reply_order.h). Invariant: `bytes` is the sum over all
 * places. */
#include "gateway/reply_order.h"

#include "base/alloc.h"
#include "base/assert.h"

void replyOrderInit(replyOrder *o) {
    listInit(&o->places);
    o->bytes = 0;
}

void replyOrderKeep(replyOrder *o, replyPlace *p) {
    check(!listHas(&p->node));
    check(!p->is_done);
    listAppend(&o->places, &p->node);
}

void replyOrderFollow(replyOrder *o, slice bytes) {
    check(!replyOrderIsEmpty(o));
    replyPlace *last = LIST_OWNER(o->places.head.prev, replyPlace, node);
    if (!last->is_literal) {
        last = memNew(replyPlace);
        *last = (replyPlace){.is_done = true, .is_literal = true};
        listAppend(&o->places, &last->node);
    }
    strAppendSlice(&last->bytes, bytes);
    o->bytes += bytes.len;
}

void replyOrderFill(replyOrder *o, replyPlace *p, str *bytes) {
    check(listHas(&p->node));
    check(!p->is_done);
    p->is_done = true;
    p->bytes = *bytes;
    *bytes = STR_EMPTY;
    o->bytes += p->bytes.len;
}

void replyOrderTake(replyOrder *o, str *out, replyLeftProc *left) {
    for (listNode *n; (n = listFirst(&o->places));) {
        replyPlace *p = LIST_OWNER(n, replyPlace, node);
        if (!p->is_done) return;
        listRemove(&o->places, n);
        check(o->bytes >= p->bytes.len);
        o->bytes -= p->bytes.len;
        strAppendSlice(out, strSlice(&p->bytes));
        strFree(&p->bytes);
        if (p->is_literal) {
            memFree(p);
        } else {
            left(p);
        }
    }
    check(o->bytes == 0);
}

void replyOrderClear(replyOrder *o, replyLeftProc *left) {
    for (listNode *n; (n = listFirst(&o->places));) {
        replyPlace *p = LIST_OWNER(n, replyPlace, node);
        listRemove(&o->places, n);
        check(o->bytes >= p->bytes.len);
        o->bytes -= p->bytes.len;
        strFree(&p->bytes);
        if (p->is_literal) {
            memFree(p);
        } else {
            left(p);
        }
    }
}
