/* SPDX-License-Identifier: BSD-3-Clause
 *
 * List commands that take elements from the first of many lists, or move them, and those of them that wait until
 * there is one. Main thread only. */
#include <limits.h>

#include "base/base.h"
#include "cmd/collection.h"
#include "cmd/list_priv.h"
#include "cmd/procs.h"
#include "engine/block.h"

/* ------------------------------------------------------------------ arguments */

/* LEFT or RIGHT. False: the error was replied. */
static bool endArg(ctx *c, int place, bool *front) {
    *front = ctxArgIs(c, place, "left");
    if (*front || ctxArgIs(c, place, "right")) return true;
    replyError(c, ERR_SYNTAX_TEXT);
    return false;
}

/* ------------------------------------------------------------------ LMOVE and its kin */

/* The element at one end of `from`, the list at argument 1, goes to the list at argument 2, which was looked up
 * last (NULL: there is none yet). Replies it. */
static void moveBetween(ctx *c, robj *from, robj *to, bool from_front, bool to_front) {
    listCursor at;
    listpackItem item;
    char digits[NUMBER_TEXT_MAX];
    listLimits most = listLimitsNow();
    listCursorInit(&at, from, from_front ? 0 : listLength(from) - 1, false);
    check(listNextItem(&at, &item));
    slice text = listpackText(&item, digits);
    to = listPrepare(to ? to : listNew(c->argv[2]), &text, 1, &most);
    collectionPlace(c, 2, listPush(to, &text, 1, to_front));
    replyBulk(c, text);
    listCursorClear(&at);
    collectionNotify(c, c->argv[2], to_front ? "lpush" : "rpush");
    if (!collectionFindWrite(c, 1, TYPE_LIST, &from)) return; /* it was found before */
    listTakeEnd(c, 1, from, 1, from_front);
}

/* The same when both are one list. */
static void moveWithin(ctx *c, robj *o, bool from_front, bool to_front) {
    listCursor at;
    listpackItem item;
    char digits[NUMBER_TEXT_MAX];
    size_t index = from_front ? 0 : listLength(o) - 1;
    listCursorInit(&at, o, index, false);
    check(listNextItem(&at, &item));
    str kept = strNew(listpackText(&item, digits));
    listCursorClear(&at);
    slice text = strSlice(&kept);
    listLimits most = listLimitsNow();
    o = listPrepare(listDelete(o, index, 1), &text, 1, &most);
    o = listPush(o, &text, 1, to_front);
    collectionPlace(c, 1, listSettle(o, &most));
    replyBulk(c, text);
    strFree(&kept);
    collectionNotify(c, c->argv[2], to_front ? "lpush" : "rpush");
    ctxKeyChanged(c, c->argv[1], from_front ? "lpop" : "rpop");
}

/* False: there is no source, and nothing was replied. */
static bool move(ctx *c, bool from_front, bool to_front) {
    robj *from, *to;
    if (!collectionFindWrite(c, 1, TYPE_LIST, &from)) return true;
    if (!from) return false;
    if (sliceEqual(c->argv[1], c->argv[2])) {
        moveWithin(c, from, from_front, to_front);
    } else if (collectionFindWrite(c, 2, TYPE_LIST, &to)) {
        moveBetween(c, from, to, from_front, to_front);
    }
    return true;
}

/* LMOVE source destination LEFT|RIGHT LEFT|RIGHT. Reply: the element, null when there is none. */
void lmoveCommand(ctx *c) {
    bool from_front, to_front;
    if (!endArg(c, 3, &from_front) || !endArg(c, 4, &to_front)) return;
    if (!move(c, from_front, to_front)) replyNull(c);
}

/* RPOPLPUSH source destination. Reply: the element, null when there is none. */
void rpoplpushCommand(ctx *c) {
    if (!move(c, false, true)) replyNull(c);
}

/* ------------------------------------------------------------------ LMPOP */

/* LPOP or RPOP goes out. */
static void propagatePop(ctx *c, int place, size_t count, bool front) {
    collectionPropagatePop(c, place, front ? SLICE("LPOP") : SLICE("RPOP"), count);
}

/* Numkeys stands at argument `place`. */
static bool parseMany(ctx *c, int place, collectionPop *out) {
    return collectionParsePop(c, place, "left", "right", out);
}

/* Pops from the first of the lists that is there. False: none is, and nothing was replied. */
static bool popFirst(ctx *c, const collectionPop *p) {
    for (int i = p->first; i < p->end; i++) {
        robj *o;
        if (!collectionFindWrite(c, i, TYPE_LIST, &o)) return true;
        if (!o) continue;
        size_t length = listLength(o), taken = sizeMin((size_t)p->count, length);
        replyArray(c, 2);
        replyBulk(c, c->argv[i]);
        listReplyRange(c, o, p->last ? length - 1 : 0, taken, p->last);
        propagatePop(c, i, taken, !p->last);
        listTakeEnd(c, i, o, taken, !p->last);
        return true;
    }
    return false;
}

/* LMPOP numkeys key [key ...] LEFT|RIGHT [COUNT count]. Reply: the key and what was popped, or a null array. */
void lmpopCommand(ctx *c) {
    collectionPop p;
    if (parseMany(c, 1, &p) && !popFirst(c, &p)) replyNullArray(c);
}

/* ------------------------------------------------------------------ those that wait */

/* Pops one element from the first list that is there, and replies the key with it. False: none is, and nothing
 * was replied. */
static bool popOne(ctx *c, int first, int end, bool front) {
    for (int i = first; i < end; i++) {
        robj *o;
        if (!collectionFindWrite(c, i, TYPE_LIST, &o)) return true;
        if (!o) continue;
        replyArray(c, 2);
        replyBulk(c, c->argv[i]);
        listReplyEnd(c, o, front);
        propagatePop(c, i, 0, front);
        listTakeEnd(c, i, o, 1, front);
        return true;
    }
    return false;
}

static void popOrWait(ctx *c, bool front) {
    int64_t deadline_ms;
    int end = c->argc - 1;
    if (!blockArgDeadline(c, end, &deadline_ms)) return;
    if (popOne(c, 1, end, front)) return;
    collectionWait(c, 1, end, TYPE_LIST, deadline_ms);
}

/* BLPOP key [key ...] timeout. Reply: the key and its first element, a null array when the time is up. */
void blpopCommand(ctx *c) { popOrWait(c, true); }

/* BRPOP key [key ...] timeout. Reply: the key and its last element, a null array when the time is up. */
void brpopCommand(ctx *c) { popOrWait(c, false); }

/* BLMPOP timeout numkeys key [key ...] LEFT|RIGHT [COUNT count]. Reply: as LMPOP. */
void blmpopCommand(ctx *c) {
    collectionPop p;
    int64_t deadline_ms;
    if (!parseMany(c, 2, &p) || !blockArgDeadline(c, 1, &deadline_ms)) return;
    if (popFirst(c, &p)) return;
    collectionWait(c, p.first, p.end, TYPE_LIST, deadline_ms);
}

/* Moves an element or waits for one; `count` words are propagated for it. */
static void moveOrWait(ctx *c, bool from_front, bool to_front, int64_t deadline_ms,
                       const slice *words, int count) {
    if (move(c, from_front, to_front)) {
        if (!(c->flags & CTX_FAILED)) ctxPropagateAs(c, count, words);
    } else if (blockIsDenied(c)) {
        replyNull(c);
    } else {
        collectionWait(c, 1, 2, TYPE_LIST, deadline_ms);
    }
}

/* BLMOVE source destination LEFT|RIGHT LEFT|RIGHT timeout. Reply: the element, a null array when the time is
 * up. */
void blmoveCommand(ctx *c) {
    bool from_front, to_front;
    int64_t deadline_ms;
    if (!endArg(c, 3, &from_front) || !endArg(c, 4, &to_front)) return;
    if (!blockArgDeadline(c, 5, &deadline_ms)) return;
    slice words[5] = {SLICE("LMOVE"), c->argv[1], c->argv[2], c->argv[3], c->argv[4]};
    moveOrWait(c, from_front, to_front, deadline_ms, words, COUNT_OF(words));
}

/* BRPOPLPUSH source destination timeout. Reply: the element, a null array when the time is up. */
void brpoplpushCommand(ctx *c) {
    int64_t deadline_ms;
    if (!blockArgDeadline(c, 3, &deadline_ms)) return;
    slice words[3] = {SLICE("RPOPLPUSH"), c->argv[1], c->argv[2]};
    moveOrWait(c, false, true, deadline_ms, words, COUNT_OF(words));
}
