/* SPDX-License-Identifier: BSD-3-Clause
 *
 * List commands that pop from the first non-empty of several lists or move elements, and their
 * blocking variants. Main thread only. */
#include <limits.h>

#include "base/base.h"
#include "cmd/collection.h"
#include "cmd/list_priv.h"
#include "cmd/procs.h"
#include "engine/block.h"

/* ------------------------------------------------------------------ arguments */

/* Parses LEFT or RIGHT. False: the error was replied. */
static bool endArg(ctx *c, int arg_index, bool *front) {
    hotCheck(arg_index > 0);
    hotCheck(arg_index <= c->argc);
    *front = ctxArgIs(c, arg_index, "left");
    if (*front || ctxArgIs(c, arg_index, "right")) return true;
    replyError(c, ERR_SYNTAX_TEXT);
    return false;
}

/* ------------------------------------------------------------------ LMOVE and variants */

/* Moves the element at one end of `from`, the list at argument 1, to the list at argument 2, which
 * must be the most recent lookup (NULL: missing). Replies the element. */
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
    collectionNotify(c, c->argv[2], to_front ? &eventLpush : &eventRpush);
    if (!collectionFindWrite(c, 1, TYPE_LIST, &from)) return; /* it was found before */
    if (from) listRemoveEnd(c, 1, from, 1, from_front);       /* a module may have deleted it */
}

/* Like moveBetween(), within one list. */
static void moveWithin(ctx *c, robj *o, bool from_front, bool to_front) {
    hotCheck(!o || objectType(o) == TYPE_LIST);
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
    collectionPlace(c, 1, listTryPack(o, &most));
    replyBulk(c, text);
    strFree(&kept);
    collectionNotify(c, c->argv[2], to_front ? &eventLpush : &eventRpush);
    ctxKeyChanged(c, c->argv[1], from_front ? &eventLpop : &eventRpop);
}

/* False if the source is missing; nothing was replied. */
static bool move(ctx *c, bool from_front, bool to_front) {
    robj *from, *to;
    if (!collectionFindWrite(c, 1, TYPE_LIST, &from)) return true;
    if (!from) return false;
    if (sliceEqual(c->argv[1], c->argv[2])) {
        moveWithin(c, from, from_front, to_front);
    } else if (collectionFindWrite(c, 2, TYPE_LIST, &to)) {
        if (unlikely(
                engineHot.observers)) { /* a module may have deleted it as the target expired */
            if (!collectionFindWrite(c, 1, TYPE_LIST, &from)) return true;
            if (!from) return false;
            if (!collectionFindWrite(c, 2, TYPE_LIST, &to)) return true;
        }
        moveBetween(c, from, to, from_front, to_front);
    }
    return true;
}

/* LMOVE source destination LEFT|RIGHT LEFT|RIGHT. Reply: the element, null if the source is
 * missing. */
void lmoveCommand(ctx *c) {
    bool from_front, to_front;
    if (!endArg(c, 3, &from_front) || !endArg(c, 4, &to_front)) return;
    if (!move(c, from_front, to_front)) replyNull(c);
}

/* RPOPLPUSH source destination. Reply: the element, null if the source is missing. */
void rpoplpushCommand(ctx *c) {
    if (!move(c, false, true)) replyNull(c);
}

/* ------------------------------------------------------------------ LMPOP */

/* Propagates LPOP or RPOP. */
static void propagatePop(ctx *c, int arg_index, size_t count, bool front) {
    collectionPropagatePop(c, arg_index, front ? SLICE("LPOP") : SLICE("RPOP"), count);
}

/* Parses the arguments; numkeys is argument `arg_index`. */
static bool parseMany(ctx *c, int arg_index, collectionPop *out) {
    return collectionParsePop(c, arg_index, "left", "right", out);
}

/* Pops from the first list that exists. False if none does; nothing was replied. */
static bool popFirst(ctx *c, const collectionPop *p) {
    hotCheck(p->first > 0);
    hotCheck(p->end <= c->argc);
    for (int i = p->first; i < p->end; i++) {
        robj *o;
        if (!collectionFindWrite(c, i, TYPE_LIST, &o)) return true;
        if (!o) continue;
        size_t length = listLength(o), taken = sizeMin((size_t)p->count, length);
        replyArray(c, 2);
        replyBulk(c, c->argv[i]);
        listReplyRange(c, o, p->last ? length - 1 : 0, taken, p->last);
        propagatePop(c, i, taken, !p->last);
        listRemoveEnd(c, i, o, taken, !p->last);
        return true;
    }
    return false;
}

/* LMPOP numkeys key [key ...] LEFT|RIGHT [COUNT count]. Reply: the key and the popped elements, or
 * a null array. */
void lmpopCommand(ctx *c) {
    collectionPop p;
    if (parseMany(c, 1, &p) && !popFirst(c, &p)) replyNullArray(c);
}

/* ------------------------------------------------------------------ blocking commands */

/* Pops one element from the first list that exists and replies the key and the element. False if
 * none does; nothing was replied. */
static bool popOne(ctx *c, int first, int end, bool front) {
    hotCheck(first > 0);
    hotCheck(first < end);
    hotCheck(end <= c->argc);
    for (int i = first; i < end; i++) {
        robj *o;
        if (!collectionFindWrite(c, i, TYPE_LIST, &o)) return true;
        if (!o) continue;
        replyArray(c, 2);
        replyBulk(c, c->argv[i]);
        listReplyEnd(c, o, front);
        propagatePop(c, i, 0, front);
        listRemoveEnd(c, i, o, 1, front);
        return true;
    }
    return false;
}

static void popOrBlock(ctx *c, bool front) {
    int64_t deadline_ms;
    int end = c->argc - 1;
    if (!blockArgDeadline(c, end, &deadline_ms)) return;
    if (popOne(c, 1, end, front)) return;
    collectionBlock(c, 1, end, TYPE_LIST, deadline_ms);
}

/* BLPOP key [key ...] timeout. Reply: the key and its first element, a null array on timeout. */
void blpopCommand(ctx *c) { popOrBlock(c, true); }

/* BRPOP key [key ...] timeout. Reply: the key and its last element, a null array on timeout. */
void brpopCommand(ctx *c) { popOrBlock(c, false); }

/* BLMPOP timeout numkeys key [key ...] LEFT|RIGHT [COUNT count]. Reply: like LMPOP. */
void blmpopCommand(ctx *c) {
    collectionPop p;
    int64_t deadline_ms;
    if (!parseMany(c, 2, &p) || !blockArgDeadline(c, 1, &deadline_ms)) return;
    if (popFirst(c, &p)) return;
    collectionBlock(c, p.first, p.end, TYPE_LIST, deadline_ms);
}

/* Moves an element or blocks until there is one; the first `count` arguments are propagated. */
static void moveOrBlock(ctx *c, bool from_front, bool to_front, int64_t deadline_ms,
                        const slice *words, int count) {
    if (move(c, from_front, to_front)) {
        if (!(c->flags & CTX_FAILED)) ctxPropagateAs(c, count, words);
    } else if (blockIsDenied(c)) {
        replyNull(c);
    } else {
        collectionBlock(c, 1, 2, TYPE_LIST, deadline_ms);
    }
}

/* BLMOVE source destination LEFT|RIGHT LEFT|RIGHT timeout. Reply: the element, a null array on
 * timeout. */
void blmoveCommand(ctx *c) {
    hotCheck(c->argc == 6);
    bool from_front, to_front;
    int64_t deadline_ms;
    if (!endArg(c, 3, &from_front) || !endArg(c, 4, &to_front)) return;
    if (!blockArgDeadline(c, 5, &deadline_ms)) return;
    slice words[5] = {SLICE("LMOVE"), c->argv[1], c->argv[2], c->argv[3], c->argv[4]};
    moveOrBlock(c, from_front, to_front, deadline_ms, words, COUNT_OF(words));
}

/* BRPOPLPUSH source destination timeout. Reply: the element, a null array on timeout. */
void brpoplpushCommand(ctx *c) {
    hotCheck(c->argc == 4);
    int64_t deadline_ms;
    if (!blockArgDeadline(c, 3, &deadline_ms)) return;
    slice words[3] = {SLICE("RPOPLPUSH"), c->argv[1], c->argv[2]};
    moveOrBlock(c, false, true, deadline_ms, words, COUNT_OF(words));
}
