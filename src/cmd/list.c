/* SPDX-License-Identifier: BSD-3-Clause
 *
 * List commands on one list. Those that move elements between keys or block: list_move.c. Main
 * thread only. */
#include "base/base.h"
#include "cmd/cmd_priv.h"
#include "cmd/collection.h"
#include "cmd/list_priv.h"
#include "cmd/procs.h"
#include "engine/job.h"

listLimits listLimitsNow(void) {
    return (listLimits){cmdConf.list_max_listpack_size, cmdConf.list_compress_depth};
}

static bool findRead(ctx *c, robj **out) { return collectionFindRead(c, 1, TYPE_LIST, out); }
static bool findWrite(ctx *c, robj **out) { return collectionFindWrite(c, 1, TYPE_LIST, out); }

/* Stores the list at argument 1 after elements were removed; deletes the key if it is empty. */
static void storeReduced(ctx *c, robj *o, const keyEvent *event, size_t removed) {
    hotCheck(!o || objectType(o) == TYPE_LIST);
    listLimits most = listLimitsNow();
    bool emptied = listLength(o) == 0;
    collectionPlace(c, 1, emptied ? o : listTryPack(o, &most));
    if (removed) {
        collectionChanged(c, c->argv[1], event, removed);
    } else {
        ctxKeyEvent(c, c->argv[1], event); /* the value is as before */
    }
    if (emptied) collectionRemove(c, 1);
}

/* ------------------------------------------------------------------ pushing */

static void push(ctx *c, bool front, bool only_existing) {
    hotCheck(c->argc >= 3);
    robj *o;
    if (jobStartChange(c, (uint64_t)c->argc) || !findWrite(c, &o)) return;
    if (!o && only_existing) {
        replyInteger(c, 0);
        return;
    }
    bool is_new = !o;
    const slice *texts = c->argv + 2;
    size_t count = (size_t)c->argc - 2;
    listLimits most = listLimitsNow();
    o = listPrepare(o ? o : listNew(c->argv[1]), texts, count, &most);
    for (size_t at = 0, part; at < count; at += part) {
        part = jobPart(c, count - at);
        o = listPush(o, texts + at, part, front);
        if (at + part == count) break;
        if (jobIsDue(c, (unsigned)part) && !collectionSuspend(c, 1, &o, is_new)) return;
    }
    int64_t length = (int64_t)listLength(o);
    collectionPlaceLast(c, 1, o, is_new);
    collectionChanged(c, c->argv[1], front ? &eventLpush : &eventRpush, count);
    replyInteger(c, length);
}

/* LPUSH key element [element ...]. Reply: the new length. */
void lpushCommand(ctx *c) { push(c, true, false); }

/* RPUSH key element [element ...]. Reply: the new length. */
void rpushCommand(ctx *c) { push(c, false, false); }

/* LPUSHX key element [element ...]. Reply: the new length, 0 if the key is missing. */
void lpushxCommand(ctx *c) { push(c, true, true); }

/* RPUSHX key element [element ...]. Reply: the new length, 0 if the key is missing. */
void rpushxCommand(ctx *c) { push(c, false, true); }

/* ------------------------------------------------------------------ popping */

/* The elements of listReplyRange(), without the head of the reply. */
static void replyItems(ctx *c, const robj *o, size_t index, size_t count, bool backwards) {
    hotCheck(!o || objectType(o) == TYPE_LIST);
    listCursor at;
    listpackItem item;
    listCursorInit(&at, o, index, backwards);
    for (size_t left = count, part; left > 0; left -= part) {
        part = jobPart(c, left);
        for (size_t i = 0; i < part && listNextItem(&at, &item); i++) replyItem(c, &item);
        if (jobPoint(c, (unsigned)part)) break;
    }
    listCursorClear(&at);
}

void listReplyRange(ctx *c, const robj *o, size_t index, size_t count, bool backwards) {
    replyArray(c, (int64_t)count);
    replyItems(c, o, index, count, backwards);
}

void listRemoveEnd(ctx *c, int arg_index, robj *o, size_t count, bool front) {
    hotCheck(arg_index > 0);
    hotCheck(arg_index <= c->argc);
    hotCheck(!o || objectType(o) == TYPE_LIST);
    size_t length = listLength(o);
    const keyEvent *event = front ? &eventLpop : &eventRpop;
    check(count > 0);
    check(count <= length);
    if (count < length) {
        listLimits most = listLimitsNow();
        o = listDelete(o, front ? 0 : length - count, count);
        collectionPlace(c, arg_index, listTryPack(o, &most));
    }
    collectionChanged(c, c->argv[arg_index], event, count);
    if (count == length) collectionRemove(c, arg_index);
}

void listReplyEnd(ctx *c, const robj *o, bool front) {
    hotCheck(!o || objectType(o) == TYPE_LIST);
    listCursor at;
    listpackItem item;
    listCursorInit(&at, o, front ? 0 : listLength(o) - 1, false);
    check(listNextItem(&at, &item));
    replyItem(c, &item);
    listCursorClear(&at);
}

static void popMany(ctx *c, bool front) {
    hotCheck(c->argc == 3);
    int64_t count;
    static const char not_positive[] = "ERR value is out of range, must be positive";
    if (!ctxArgIntIn(c, 2, 0, INT64_MAX, &count, not_positive)) return;
    robj *o;
    if (!findWrite(c, &o)) return;
    if (!o) {
        replyNullArray(c);
        return;
    }
    if (count == 0) {
        replyArray(c, 0);
        return;
    }
    size_t length = listLength(o), taken = sizeMin((size_t)count, length), popped = 0;
    if (jobStartChangeFound(c, taken)) return;
    replyArray(c, (int64_t)taken);
    for (size_t part = 0;; popped += part) {
        part = jobPart(c, taken - popped);
        replyItems(c, o, front ? 0 : length - popped - 1, part, !front);
        if (popped + part == taken) break;
        o = listDelete(o, front ? 0 : length - popped - part, part);
        if (jobIsDue(c, (unsigned)part) && !collectionSuspend(c, 1, &o, false)) return;
    }
    if (popped) collectionPlace(c, 1, o); /* the last part may remove the key instead */
    listRemoveEnd(c, 1, o, taken - popped, front);
    engineHot.dirty += popped;
}

static void pop(ctx *c, bool front) {
    if (c->argc > 3) {
        replyErrorArity(c);
        return;
    }
    if (c->argc == 3) {
        popMany(c, front);
        return;
    }
    robj *o;
    if (!findWrite(c, &o)) return;
    if (!o) {
        replyNull(c);
        return;
    }
    listReplyEnd(c, o, front);
    listRemoveEnd(c, 1, o, 1, front);
}

/* LPOP key [count]. Reply: the first element or null; with a count, an array or a null array. */
void lpopCommand(ctx *c) { pop(c, true); }

/* RPOP key [count]. Reply: the last element or null; with a count, an array with the last element
 * first, or a null array. */
void rpopCommand(ctx *c) { pop(c, false); }

/* ------------------------------------------------------------------ reading */

/* LLEN key. Reply: number of elements. */
void llenCommand(ctx *c) {
    robj *o;
    if (collectionFindToCount(c, 1, TYPE_LIST, &o)) replyInteger(c, collectionCount(o, listLength));
}

/* Converts an index that may count from the end to one from the front; false if it is out of
 * range. */
static bool resolveIndex(const robj *o, int64_t index, size_t *out) {
    hotCheck(!o || objectType(o) == TYPE_LIST);
    int64_t length = (int64_t)listLength(o);
    if (index < 0) index += length;
    if (index < 0 || index >= length) return false;
    *out = (size_t)index;
    return true;
}

/* LINDEX key index. Reply: the element, null if out of range. */
void lindexCommand(ctx *c) {
    robj *o;
    int64_t wanted;
    size_t index;
    if (!findRead(c, &o)) return;
    if (!o) {
        replyNull(c);
        return;
    }
    if (!ctxArgInt(c, 2, &wanted)) return;
    if (!resolveIndex(o, wanted, &index)) {
        replyNull(c);
        return;
    }
    listCursor at;
    listpackItem item;
    listCursorInit(&at, o, index, false);
    check(listNextItem(&at, &item));
    replyItem(c, &item);
    listCursorClear(&at);
}

/* Clamps arguments 2 and 3 to a list of `length` elements; *count may become 0. */
static void clampRange(int64_t first, int64_t last, size_t length, size_t *index, size_t *count) {
    int64_t len = (int64_t)length;
    if (first < 0) first = first + len < 0 ? 0 : first + len;
    if (last < 0) last += len;
    if (last >= len) last = len - 1;
    *index = (size_t)first;
    *count = first > last ? 0 : (size_t)(last - first + 1);
}

/* LRANGE key start stop. Reply: the elements from start to stop. */
void lrangeCommand(ctx *c) {
    int64_t first, last;
    robj *o;
    if (!ctxArgInt(c, 2, &first) || !ctxArgInt(c, 3, &last)) return;
    if (!findRead(c, &o)) return;
    size_t index = 0, count = 0;
    if (o) clampRange(first, last, listLength(o), &index, &count);
    if (jobStart(c, count)) return;
    if (count) {
        listReplyRange(c, o, index, count, false);
    } else {
        replyArray(c, 0);
    }
}

/* ------------------------------------------------------------------ LPOS */

typedef struct posOptions {
    int64_t rank, count, maxlen; /* count -1: not given; maxlen 0: no limit */
} posOptions;

/* Parses the number of an option. False: the error was replied. */
static bool countArg(ctx *c, int i, const char *negative, int64_t *out) {
    hotCheck(i > 0);
    hotCheck(i <= c->argc);
    if (!ctxArgIntIn(c, i, 0, INT64_MAX, out, negative)) return false;
    return true;
}

static bool parsePos(ctx *c, posOptions *out) {
    *out = (posOptions){.rank = 1, .count = -1};
    for (int i = 3; i < c->argc; i += 2) {
        bool has_value = i + 1 < c->argc;
        if (has_value && ctxArgIs(c, i, "rank")) {
            if (!collectionArgCount(c, i + 1, &out->rank)) return false;
            if (out->rank != 0) continue;
            replyError(c,
                       SLICE("ERR RANK can't be zero: use 1 to start from the first match, 2 from "
                             "the second ... or use negative to start from the end of the list"));
            return false;
        }
        if (has_value && ctxArgIs(c, i, "count")) {
            if (!countArg(c, i + 1, "ERR COUNT can't be negative", &out->count)) return false;
        } else if (has_value && ctxArgIs(c, i, "maxlen")) {
            if (!countArg(c, i + 1, "ERR MAXLEN can't be negative", &out->maxlen)) return false;
        } else {
            replyError(c, ERR_SYNTAX_TEXT);
            return false;
        }
    }
    return true;
}

/* Searches the list and replies matching indexes; stops after `most` > 0 matches. Returns their
 * number. */
static int64_t findIndexes(ctx *c, const robj *o, const posOptions *p, int64_t most) {
    hotCheck(!o || objectType(o) == TYPE_LIST);
    listpackItem wanted = listpackItemOf(c->argv[2]), item;
    int64_t length = (int64_t)listLength(o), matches = 0, found = 0;
    bool backwards = p->rank < 0;
    int64_t rank = backwards ? -p->rank : p->rank;
    listCursor at;
    listCursorInit(&at, o, backwards ? (size_t)length - 1 : 0, backwards);
    for (int64_t i = 0; (!p->maxlen || i < p->maxlen) && listNextItem(&at, &item); i++) {
        if (jobPoint(c, 1)) break;
        if (likely(!listpackItemEquals(&item, &wanted)) || ++matches < rank) continue;
        replyInteger(c, backwards ? length - 1 - i : i);
        if (++found == most) break;
    }
    listCursorClear(&at);
    return found;
}

/* How many elements may be compared. */
static uint64_t lookedAt(const robj *o, const posOptions *p) {
    uint64_t length = listLength(o);
    return p->maxlen ? sizeMin(length, (uint64_t)p->maxlen) : length;
}

/* LPOS key element [RANK rank] [COUNT count] [MAXLEN length]. Reply: the index or null; with COUNT
 * an array. */
void lposCommand(ctx *c) {
    posOptions p;
    robj *o;
    if (!parsePos(c, &p)) return;
    if (!findRead(c, &o)) return;
    if (o && jobStart(c, lookedAt(o, &p))) return;
    if (p.count < 0) {
        if (!o || !findIndexes(c, o, &p, 1)) replyNull(c);
        return;
    }
    outbuf places, *out = c->out;
    outbufInit(&places);
    c->out = &places;
    int64_t found = o ? findIndexes(c, o, &p, p.count) : 0;
    c->out = out;
    replyArray(c, found);
    outbufMoveAll(out, &places);
}

/* ------------------------------------------------------------------ changing */

/* LSET key index element. Reply: OK. */
void lsetCommand(ctx *c) {
    hotCheck(c->argc == 4);
    robj *o;
    int64_t wanted;
    size_t index;
    if (!findWrite(c, &o)) return;
    if (!o) {
        replyError(c, ERR_NO_KEY_TEXT);
        return;
    }
    if (!ctxArgInt(c, 2, &wanted)) return;
    listLimits most = listLimitsNow();
    o = listPrepare(o, &c->argv[3], 1, &most);
    /* Only here does Valkey use the lower 32 bits of the index. */
    bool found = resolveIndex(o, (int32_t)(uint32_t)(uint64_t)wanted, &index);
    if (found) o = listTryPack(listSet(o, index, c->argv[3]), &most);
    collectionPlace(c, 1, o);
    if (!found) {
        replyError(c, SLICE("ERR index out of range"));
        return;
    }
    ctxKeyChanged(c, c->argv[1], &eventLset);
    replyOk(c);
}

/* LTRIM key start stop. Reply: OK. */
void ltrimCommand(ctx *c) {
    int64_t first, last;
    robj *o;
    if (!ctxArgInt(c, 2, &first) || !ctxArgInt(c, 3, &last)) return;
    if (!findWrite(c, &o)) return;
    if (o) {
        size_t index, count, length = listLength(o);
        clampRange(first, last, length, &index, &count);
        if (count == 0) index = length;
        o = listDelete(o, index + count, length - index - count);
        o = listDelete(o, 0, index);
        storeReduced(c, o, &eventLtrim, length - count);
    }
    replyOk(c);
}

/* For commands that search in slices, and change the list then: looks it up again, as others were
 * executed since. False: the list is not changed any more. */
static bool mayChange(ctx *c, robj **o) {
    if (likely(!(c->flags & CTX_SLICED))) return true;
    if (!jobMayStore(c)) return false;
    check(findWrite(c, o));
    check(*o != NULL); /* nobody has changed it */
    return true;
}

enum { LREM_FEW = 256 }; /* more elements are searched for again when they are removed */

typedef struct equalPlaces {
    size_t at[LREM_FEW], count; /* indexes; if there are more, `count` is LREM_FEW + 1 */
} equalPlaces;

/* Finds the first or last `most` elements that are equal to `item`. */
static void findEqual(const ctx *c, const robj *o, const listpackItem *item, size_t most,
                      bool from_back, equalPlaces *out) {
    size_t length = listLength(o), i = 0;
    listCursor cursor;
    listpackItem element;
    out->count = 0;
    listCursorInit(&cursor, o, from_back ? length - 1 : 0, from_back);
    for (; out->count < most && listNextItem(&cursor, &element) && !jobPoint(c, 1); i++) {
        if (!listpackItemEquals(&element, item)) continue;
        if (out->count < LREM_FEW) out->at[out->count] = from_back ? length - 1 - i : i;
        if (out->count++ == LREM_FEW) break;
    }
    listCursorClear(&cursor);
}

/* Removes the elements at these indexes, the greatest one first. */
static robj *deletePlaces(robj *o, const equalPlaces *p, bool from_back) {
    hotCheck(p->count <= LREM_FEW);
    for (size_t i = 0; i < p->count; i++)
        o = listDelete(o, p->at[from_back ? i : p->count - 1 - i], 1);
    return o;
}

/* LREM key count element. Reply: number of elements removed. */
void lremCommand(ctx *c) {
    hotCheck(c->argc == 4);
    int64_t count;
    robj *o;
    equalPlaces found = {.count = LREM_FEW + 1};
    if (!collectionArgCount(c, 2, &count)) return;
    if (!findWrite(c, &o)) return;
    size_t removed = 0;
    if (o && jobStartStore(c, listLength(o))) return;
    if (o) {
        listpackItem item = listpackItemOf(c->argv[3]);
        size_t most = count ? (size_t)(count < 0 ? -count : count) : SIZE_MAX;
        if (c->flags & CTX_SLICED) findEqual(c, o, &item, most, count < 0, &found);
        if (!mayChange(c, &o)) return;
        if (found.count <= LREM_FEW) {
            removed = found.count;
            o = deletePlaces(o, &found, count < 0);
        } else {
            o = listDeleteEqual(o, &item, most, count < 0, &removed);
        }
        if (removed) {
            storeReduced(c, o, &eventLrem, removed);
        } else {
            collectionPlace(c, 1, o);
        }
    }
    replyInteger(c, (int64_t)removed);
}

/* Index of the first occurrence of an element; false if there is none. */
static bool findFirst(const ctx *c, const robj *o, slice text, size_t *index) {
    hotCheck(!o || objectType(o) == TYPE_LIST);
    listpackItem wanted = listpackItemOf(text), item;
    listCursor at;
    bool found = false;
    listCursorInit(&at, o, 0, false);
    for (*index = 0; !found && listNextItem(&at, &item) && !jobPoint(c, 1); ++*index)
        found = listpackItemEquals(&item, &wanted);
    listCursorClear(&at);
    if (found) --*index;
    return found;
}

/* LINSERT key BEFORE|AFTER pivot element. Reply: the new length, -1 without the pivot, 0 without
 * the key. */
void linsertCommand(ctx *c) {
    hotCheck(c->argc == 5);
    bool after = ctxArgIs(c, 2, "after");
    robj *o;
    size_t index;
    if (!after && !ctxArgIs(c, 2, "before")) {
        replyError(c, ERR_SYNTAX_TEXT);
        return;
    }
    if (!findWrite(c, &o)) return;
    if (!o) {
        replyInteger(c, 0);
        return;
    }
    if (jobStartStore(c, listLength(o))) return;
    bool found = findFirst(c, o, c->argv[3], &index);
    if (!mayChange(c, &o)) return;
    listLimits most = listLimitsNow();
    o = listPrepare(o, &c->argv[4], 1, &most);
    if (found) o = listInsert(o, index, c->argv[4], after);
    int64_t length = found ? (int64_t)listLength(o) : -1;
    collectionPlace(c, 1, o);
    if (found) ctxKeyChanged(c, c->argv[1], &eventLinsert);
    replyInteger(c, length);
}
