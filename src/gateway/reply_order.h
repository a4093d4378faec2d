/* SPDX-License-Identifier: BSD-3-Clause
 *
 * The order of replies to one client. A place is kept for each reply that comes from elsewhere;
 * bytes that are replied meanwhile wait after the places before them. Pure: no sockets, no
 * sessions. One thread at a time. */
#ifndef GATEWAY_REPLY_ORDER_H
#define GATEWAY_REPLY_ORDER_H

#include <stdbool.h>
#include <stddef.h>

#include "base/slice.h"
#include "base/str.h"
#include "ds/list.h"

typedef struct replyOrder {
    list places;
    size_t bytes; /* that wait */
} replyOrder;

/* A place in the order; embedded in the owner's record of the pending reply. */
typedef struct replyPlace {
    listNode node;
    bool is_done;
    bool is_literal; /* allocated here: bytes that have followed others */
    str bytes;
} replyPlace;

void replyOrderInit(replyOrder *o);
static inline bool replyOrderIsEmpty(const replyOrder *o) { return listIsEmpty(&o->places); }
/* True if the first place has no reply yet. */
static inline bool replyOrderWaits(const replyOrder *o) {
    const listNode *first = o->places.head.next;
    return !replyOrderIsEmpty(o) && !LIST_OWNER(first, const replyPlace, node)->is_done;
}
/* Appends a place. */
void replyOrderKeep(replyOrder *o, replyPlace *p);
/* Appends bytes after all places. The order must not be empty. */
void replyOrderFollow(replyOrder *o, slice bytes);
/* Sets the reply of a place; takes `bytes`. */
void replyOrderFill(replyOrder *o, replyPlace *p, str *bytes);
/* Moves the bytes that may be sent now, those before the first place without a reply, to the end of
 * `out`. Removed places of the owner are passed to `left`, which may free them. */
typedef void replyLeftProc(replyPlace *p);
void replyOrderTake(replyOrder *o, str *out, replyLeftProc *left);
/* Removes all places and bytes; places of the owner are passed to `left`, with or without a
 * reply. */
void replyOrderClear(replyOrder *o, replyLeftProc *left);

#endif
