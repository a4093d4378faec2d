/* SPDX-License-Identifier: BSD-3-Clause
 *
 * What commands on collections share: finding the value, putting a changed one back, and replies with members.
 * Main thread only. */
#ifndef CMD_COLLECTION_H
#define CMD_COLLECTION_H

#include <stdbool.h>
#include <stdint.h>

#include "base/number.h"
#include "ds/listpack.h"
#include "engine/ctx.h"
#include "engine/reply.h"
#include "store/store.h"

/* storeHash() of the key at argument `place`. */
uint64_t collectionHash(const ctx *c, int place);
/* The value of the key at argument `place`, for a command that reads. False: WRONGTYPE was replied. NULL when it
 * is missing. */
bool collectionFindRead(ctx *c, int place, valueType type, robj **out);
/* The same for one that writes. */
bool collectionFindWrite(ctx *c, int place, valueType type, robj **out);
/* Stores the changed value of the key at `place`, which was the command's last lookup. */
static inline void collectionPlace(ctx *c, int place, robj *o) {
    check(c->at.at.hash == collectionHash(c, place));
    dbPlace(c->db, &c->at, o);
}
/* The key at `place`, whose last element went, goes too; tells "del". */
void collectionRemove(ctx *c, int place);
/* What SINTERSTORE and its kin do with their result: `into` (NULL or empty: none) becomes the value of argument `place`,
 * whatever stood there; tells `event`, or "del" of a key that went for nothing. Replies the number of elements. */
void collectionStore(ctx *c, int place, robj *into, const char *event);
/* A key changed in `n` > 0 elements. */
static inline void collectionChanged(ctx *c, slice key, const char *event, uint64_t n) {
    ctxKeyChanged(c, key, event);
    engineHot.dirty += n - 1;
}
/* More of an event for a change that is counted already. */
static inline void collectionTell(ctx *c, slice key, const char *event) {
    if (engineHot.observers) ctxTellObservers(c, key, event);
}

/* The arguments of LMPOP, ZMPOP and those that wait. */
typedef struct collectionPop {
    int first, end; /* arguments with keys */
    bool last;      /* from the end, not from the front */
    int64_t count;
} collectionPop;
/* Reads numkeys at argument `place`, keys, the word for one end, and [COUNT count]. False: the error was replied. */
bool collectionParsePop(ctx *c, int place, const char *first_word, const char *last_word,
                        collectionPop *out);
/* What is propagated instead: the plain command `name` on the key at `place`, with a count when it is not 0. */
void collectionPropagatePop(ctx *c, int place, slice name, uint64_t count);
/* Waits until one of the keys at arguments first..end-1 has a value of this type; replies a null array when the time
 * is up, and at once where nobody may wait. */
void collectionWait(ctx *c, int first, int end, valueType type, int64_t deadline_ms);

/* The count of HRANDFIELD and its like: not the least of all integers. False: the error was replied. */
bool collectionArgCount(ctx *c, int place, int64_t *out);

/* A reply of random draws, which may repeat, has no bound but the count: of more than DRAWS_MANY some are replied as
 * a probe. */
enum {
#ifdef HOSTILE_BUILD
    DRAWS_MANY = 100,
#else
    DRAWS_MANY = 1 << 20,
#endif
    DRAWS_PROBED = 256,
};
/* Takes back what was replied since the mark, DRAWS_PROBED draws. False: `draws` such ones would take more than half
 * of the machine's memory; the error was replied. */
bool collectionDrawsFit(ctx *c, outmark mark, uint64_t draws);

/* A listpackItem as a bulk. */
static inline void replyItem(ctx *c, const listpackItem *item) {
    char digits[NUMBER_TEXT_MAX];
    replyBulk(c, listpackText(item, digits));
}

/* One call of a scan of the value from `cursor` on; adds what it replied to `*found`. */
typedef uint64_t collectionScanProc(ctx *c, const robj *o, uint64_t cursor, void *arg);
/* Replies as SSCAN and its kin do: the next cursor, and what `scan` replies until *found has reached `count`. */
void collectionReplyScan(ctx *c, const robj *o, uint64_t cursor, int64_t count,
                         collectionScanProc *scan, void *arg, const int64_t *found);

#endif
