/* SPDX-License-Identifier: BSD-3-Clause
 *
 * LMOVEM and BLMOVEM: move several elements from one end of a list to one end of another at once.
 *
 * Invariant: the moved elements are copied before a list changes, so no slice points into a list
 * that changes. LMOVE, or pops and pushes, are propagated in place of these commands, because every
 * server of this protocol knows them. The cost is linear in the number of moved elements. Main
 * thread only. */
#include "base/base.h"
#include "cmd/collection.h"
#include "cmd/list_priv.h"
#include "cmd/procs.h"
#include "engine/block.h"

enum { PUSHED_MAX = 1024 }; /* elements of one propagated LPUSH or RPUSH */

typedef struct blockMove {
    bool from_front, to_front;
    bool exactly; /* all `count` elements, or none */
    bool bulk;    /* the elements keep their order; else each is pushed as it is popped */
    size_t count;
} blockMove;

/* The elements to move. */
typedef struct movedBlock {
    slice *texts; /* in the order of pushing */
    char *bytes;  /* of all texts */
    size_t count;
} movedBlock;

/* ------------------------------------------------------------------ arguments */

/* Parses LEFT or RIGHT. False: the error was replied. */
static bool endArg(ctx *c, int arg_index, bool *front) {
    hotCheck(arg_index > 0);
    *front = ctxArgIs(c, arg_index, "left");
    if (*front || ctxArgIs(c, arg_index, "right")) return true;
    replyError(c, ERR_SYNTAX_TEXT);
    return false;
}

/* Parses the two ends, and from argument `more` on COUNT|EXACTLY count OBO|BULK, which is optional.
 * False: the error was replied. */
static bool parseMove(ctx *c, int more, blockMove *out) {
    hotCheck(more <= c->argc);
    int64_t count = 1;
    *out = (blockMove){.count = 1};
    if (!endArg(c, 3, &out->from_front) || !endArg(c, 4, &out->to_front)) return false;
    if (c->argc == more) return true;
    bool is_complete = c->argc == more + 3;
    out->exactly = is_complete && ctxArgIs(c, more, "exactly");
    out->bulk = is_complete && ctxArgIs(c, more + 2, "bulk");
    is_complete = is_complete && (out->exactly || ctxArgIs(c, more, "count")) &&
                  (out->bulk || ctxArgIs(c, more + 2, "obo"));
    if (!is_complete) {
        replyError(c, ERR_SYNTAX_TEXT);
        return false;
    }
    if (!ctxArgIntIn(c, more + 1, 1, INT64_MAX, &count, "ERR count should be greater than 0"))
        return false;
    out->count = (size_t)count;
    return true;
}

/* ------------------------------------------------------------------ the elements */

static bool reverses(const blockMove *m) { return m->bulk && m->from_front == m->to_front; }

/* Copies the first or last `count` elements. Slices are set after all bytes were copied, because
 * the buffer moves while it grows. */
static void copyBlock(const robj *o, const blockMove *m, size_t count, movedBlock *out) {
    check(count > 0);
    check(count <= listLength(o));
    listCursor at;
    listpackItem item;
    char digits[NUMBER_TEXT_MAX];
    str bytes = STR_EMPTY;
    *out = (movedBlock){.texts = memNewArray(slice, count), .count = count};
    listCursorInit(&at, o, m->from_front ? 0 : listLength(o) - 1, !m->from_front);
    for (size_t i = 0; i < count; i++) {
        check(listNextItem(&at, &item));
        slice text = listpackText(&item, digits);
        strAppendSlice(&bytes, text);
        out->texts[reverses(m) ? count - 1 - i : i].len = text.len;
    }
    listCursorClear(&at);
    out->bytes = memDup(strText(&bytes), bytes.len);
    strFree(&bytes);
    const char *next = out->bytes;
    for (size_t i = 0; i < count; i++) { /* in the order of popping, which is that of the bytes */
        slice *text = &out->texts[reverses(m) ? count - 1 - i : i];
        text->ptr = next;
        next += text->len;
    }
}

static void freeBlock(movedBlock *b) {
    memFree(b->texts);
    memFree(b->bytes);
}

/* Replies the elements in the order that they have in the destination. */
static void replyBlock(ctx *c, const movedBlock *b, bool to_front) {
    hotCheck(b->count > 0);
    replyArray(c, (int64_t)b->count);
    for (size_t i = 0; i < b->count; i++) replyBulk(c, b->texts[to_front ? b->count - 1 - i : i]);
}

/* ------------------------------------------------------------------ propagation */

static void propagatePush(ctx *c, const movedBlock *b, bool front) {
    hotCheck(b->count > 0);
    slice *words = memNewArray(slice, 2 + sizeMin(b->count, PUSHED_MAX));
    words[0] = front ? SLICE("LPUSH") : SLICE("RPUSH");
    words[1] = c->argv[2];
    for (size_t i = 0; i < b->count; i += PUSHED_MAX) {
        size_t n = sizeMin(b->count - i, PUSHED_MAX);
        memcpy(words + 2, b->texts + i, n * sizeof(*words));
        ctxPropagateAs(c, 2 + (int)n, words);
    }
    memFree(words);
}

/* Propagates commands with the same result. If source and destination are the same list, it is
 * never empty between two of these commands, so that its expiry time remains. */
static void propagateMove(ctx *c, const blockMove *m, const movedBlock *b, bool takes_all) {
    if (b->count == 1) {
        slice words[5] = {SLICE("LMOVE"), c->argv[1], c->argv[2], c->argv[3], c->argv[4]};
        ctxPropagateAs(c, 5, words);
        return;
    }
    bool within = sliceEqual(c->argv[1], c->argv[2]);
    bool push_first = within && takes_all;
    /* After the push the elements to remove are at the end where nothing was pushed. */
    bool pop_front = push_first ? !m->to_front : m->from_front;
    if (push_first) propagatePush(c, b, m->to_front);
    collectionPropagatePop(c, 1, pop_front ? SLICE("LPOP") : SLICE("RPOP"), b->count);
    if (!push_first) propagatePush(c, b, m->to_front);
}

/* ------------------------------------------------------------------ moving */

/* Moves the elements to another list. `to` is the destination, and must be the most recent lookup;
 * NULL: it is missing. */
static void moveBetween(ctx *c, const blockMove *m, const movedBlock *b, robj *to) {
    listLimits most = listLimitsNow();
    robj *from;
    to = listPrepare(to ? to : listNew(c->argv[2]), b->texts, b->count, &most);
    collectionPlace(c, 2, listPush(to, b->texts, b->count, m->to_front));
    collectionNotify(c, c->argv[2], m->to_front ? &eventLpush : &eventRpush);
    if (!collectionFindWrite(c, 1, TYPE_LIST, &from)) return; /* it was found before */
    /* A module that was notified may have changed the source. */
    if (from) listRemoveEnd(c, 1, from, sizeMin(b->count, listLength(from)), m->from_front);
}

static void moveWithin(ctx *c, const blockMove *m, const movedBlock *b, robj *o) {
    hotCheck(b->count <= listLength(o));
    listLimits most = listLimitsNow();
    size_t index = m->from_front ? 0 : listLength(o) - b->count;
    o = listPrepare(listDelete(o, index, b->count), b->texts, b->count, &most);
    o = listPush(o, b->texts, b->count, m->to_front);
    collectionPlace(c, 1, listTryPack(o, &most));
    collectionNotify(c, c->argv[2], m->to_front ? &eventLpush : &eventRpush);
    collectionChanged(c, c->argv[1], m->from_front ? &eventLpop : &eventRpop, b->count);
}

/* Looks up the destination, then both lists again if there are observers: a module may delete the
 * source when the destination expires. True: the move can be done, and `to` is the most recent
 * lookup. */
static bool findBoth(ctx *c, robj **from, robj **to) {
    if (!collectionFindWrite(c, 2, TYPE_LIST, to)) return false;
    if (likely(!engineHot.observers)) return true;
    if (!collectionFindWrite(c, 1, TYPE_LIST, from)) return false;
    if (*from) return collectionFindWrite(c, 2, TYPE_LIST, to);
    replyNullArray(c);
    return false;
}

/* Moves the elements and replies. False: there are too few elements, and nothing was replied. */
static bool moveBlock(ctx *c, const blockMove *m) {
    robj *from, *to = NULL;
    if (!collectionFindWrite(c, 1, TYPE_LIST, &from)) return true;
    if (!from || (m->exactly && listLength(from) < m->count)) return false;
    bool within = sliceEqual(c->argv[1], c->argv[2]);
    if (!within && !findBoth(c, &from, &to)) return true;
    size_t length = listLength(from);
    movedBlock b;
    copyBlock(from, m, sizeMin(m->count, length), &b);
    replyBlock(c, &b, m->to_front);
    bool stays = within && reverses(m); /* the elements are where they are to go */
    if (!stays) {
        propagateMove(c, m, &b, b.count == length);
        if (within) {
            moveWithin(c, m, &b, from);
        } else {
            moveBetween(c, m, &b, to);
        }
    }
    freeBlock(&b);
    return true;
}

/* LMOVEM source destination LEFT|RIGHT LEFT|RIGHT [COUNT|EXACTLY count OBO|BULK]. Reply: the moved
 * elements as they are in the destination now, a null array if there are too few. */
void lmovemCommand(ctx *c) {
    blockMove m;
    if (parseMove(c, 5, &m) && !moveBlock(c, &m)) replyNullArray(c);
}

static bool hasEnough(const blockQuery *q) {
    return objectLength(q->value) >= (size_t)(uintptr_t)q->state;
}

static void replyTimedOut(ctx *c) { replyNullArray(c); }

/* BLMOVEM source destination LEFT|RIGHT LEFT|RIGHT timeout [COUNT|EXACTLY count OBO|BULK]. Reply:
 * like LMOVEM, after waiting until there is an element, or all with EXACTLY. */
void blmovemCommand(ctx *c) {
    blockMove m;
    int64_t deadline_ms;
    if (!parseMove(c, 6, &m) || !blockArgDeadline(c, 5, &deadline_ms) || moveBlock(c, &m)) return;
    if (blockIsDenied(c)) {
        replyNullArray(c);
        return;
    }
    blockParams params = {.keys = c->argv + 1,
                          .key_count = 1,
                          .type = TYPE_LIST,
                          .ready = hasEnough,
                          .state = (void *)(uintptr_t)(m.exactly ? m.count : 1),
                          .deadline_ms = deadline_ms,
                          .timed_out = replyTimedOut};
    blockStart(c, &params);
}
