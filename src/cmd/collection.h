/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Functions shared by commands on collections: looking up a value, storing a changed one, and
 * replies with elements. Main thread only. */
#ifndef CMD_COLLECTION_H
#define CMD_COLLECTION_H

#include <stdbool.h>
#include <stdint.h>

#include "base/number.h"
#include "ds/listpack.h"
#include "engine/ctx.h"
#include "engine/hot.h"
#include "engine/reply.h"
#include "store/store.h"

/* storeHash() of the key at argument `arg_index`. */
static inline uint64_t collectionHash(const ctx *c, int arg_index) {
    hotCheck(arg_index > 0);
    hotCheck(arg_index <= c->argc);
    if (likely(arg_index == 1 && c->cmd->first_key == 1)) return c->key_hash;
    return storeHash(c->argv[arg_index]);
}
/* Replies WRONGTYPE; returns false. */
bool collectionRefuse(ctx *c) NO_INLINE;
/* Parts of the functions below: the value as the command shall see it, after expired members of a
 * set or sorted set were hidden, or removed. */
robj *collectionShowMembers(const ctx *c, slice key, uint64_t hash, robj *o) NO_INLINE;
robj *collectionExpireMembers(ctx *c, int arg_index, robj *o) NO_INLINE;
/* Looks up a value of any type, for reading. */
static inline robj *collectionFindAny(const ctx *c, slice key, uint64_t hash) {
    robj *o = dbFindRead(c->db, key, hash, c->look);
    return unlikely(engineHot.member_ttls) ? collectionShowMembers(c, key, hash, o) : o;
}
/* Looks up the value of the key at argument `arg_index` for reading. *out is NULL if the key is
 * missing. False: WRONGTYPE was replied. */
static inline bool collectionFindRead(ctx *c, int arg_index, valueType type, robj **out) {
    hotCheck(arg_index > 0);
    hotCheck(arg_index <= c->argc);
    robj *o = collectionFindAny(c, c->argv[arg_index], collectionHash(c, arg_index));
    *out = o;
    return likely(!o || objectType(o) == type) || collectionRefuse(c);
}
/* Like collectionFindRead(), for a command that needs no more than objectLength(): the value may be
 * compressed. */
static inline bool collectionFindToCount(ctx *c, int arg_index, valueType type, robj **out) {
    hotCheck(arg_index > 0);
    hotCheck(arg_index <= c->argc);
    slice key = c->argv[arg_index];
    uint64_t hash = collectionHash(c, arg_index);
    robj *o = dbFindReadHead(c->db, key, hash, c->look);
    if (unlikely(engineHot.member_ttls)) o = collectionShowMembers(c, key, hash, o);
    *out = o;
    return likely(!o || objectType(o) == type) || collectionRefuse(c);
}
/* The number of elements of what it has found; `plain` counts those of a plain value. */
static inline int64_t collectionCount(const robj *o, size_t (*plain)(const robj *o)) {
    if (!o) return 0;
    return (int64_t)(likely(!objectIsCompressed(o)) ? plain(o) : objectLength(o));
}
/* Like collectionFindRead(), for a command that writes. */
static inline bool collectionFindWrite(ctx *c, int arg_index, valueType type, robj **out) {
    hotCheck(arg_index > 0);
    hotCheck(arg_index <= c->argc);
    robj *o = dbFind(c->db, c->argv[arg_index], collectionHash(c, arg_index), c->look, &c->at);
    if (unlikely(engineHot.member_ttls)) o = collectionExpireMembers(c, arg_index, o);
    *out = o;
    return likely(!o || objectType(o) == type) || collectionRefuse(c);
}
/* Stores the changed value of the key at `arg_index`, which must be the most recent lookup. */
static inline void collectionPlace(ctx *c, int arg_index, robj *o) {
    check(c->at.at.hash == collectionHash(c, arg_index));
    dbPlace(c->db, &c->at, o);
}
/* For a command that changes a key in place in slices, when jobIsDue(): stores the value of the key
 * at `arg_index`, waits for the next slice, and finds it again. `is_new`: the key is missing, and
 * nobody sees the value until collectionPlaceLast(). False: the command returns at once; a new
 * value was freed. */
bool collectionSuspend(ctx *c, int arg_index, robj **o, bool is_new);
/* Like collectionPlace(), after the last change. */
void collectionPlaceLast(ctx *c, int arg_index, robj *o, bool is_new);
/* Deletes the key at `arg_index` because its last element was removed; notifies "del". */
void collectionRemove(ctx *c, int arg_index);
/* Signals that `n` elements of the key at `arg_index` were removed; `emptied`: all were, and the
 * key is deleted before, as by SREM, ZREM and HDEL in Valkey. Others delete it after. */
void collectionReduced(ctx *c, int arg_index, const keyEvent *event, uint64_t n, bool emptied);
/* Stores the result of SINTERSTORE and similar commands: `into` (NULL or empty: no result) replaces
 * the value of the key at argument `arg_index`. Notifies `event`, or "del" if an existing key was
 * deleted. Replies the number of elements. In a job it waits for the moment of the effect; if
 * nobody wants that, `into` is freed. */
void collectionStore(ctx *c, int arg_index, robj *into, const keyEvent *event);
/* Signals that `n` elements of the key changed; 0 if it was a change that left nothing. */
static inline void collectionChanged(ctx *c, slice key, const keyEvent *event, uint64_t n) {
    ctxKeyChanged(c, key, event);
    engineHot.dirty += n - 1;
}
/* Publishes a further event for a change that was signalled already. */
static inline void collectionNotify(ctx *c, slice key, const keyEvent *event) {
    if (engineHot.observers) ctxTellObservers(c, key, event);
}

/* Arguments of LMPOP, ZMPOP and their blocking variants. */
typedef struct collectionPop {
    int first, end; /* range of arguments that are keys */
    bool last;      /* from the end instead of the front */
    int64_t count;
} collectionPop;
/* Parses numkeys at argument `arg_index`, the keys, the word for one end, and [COUNT count]. False:
 * the error was replied. */
bool collectionParsePop(ctx *c, int arg_index, const char *first_word, const char *last_word,
                        collectionPop *out);
/* Propagates the plain command `name` on the key at `arg_index` instead of the current one, with a
 * count unless it is 0. */
void collectionPropagatePop(ctx *c, int arg_index, slice name, uint64_t count);
/* Blocks until one of the keys at arguments [first, end) has a value of this type. Replies a null
 * array on timeout, or immediately in contexts that cannot block. */
void collectionBlock(ctx *c, int first, int end, valueType type, int64_t deadline_ms);

/* Parses the count of HRANDFIELD and similar commands, which must not be INT64_MIN. False: the
 * error was replied. */
bool collectionArgCount(ctx *c, int arg_index, int64_t *out);

/* The reply to random draws with repetition is bounded only by the count. If more than DRAWS_MANY
 * are requested, DRAWS_PROBED draws are replied first to estimate its size. */
enum {
#ifdef HOSTILE_BUILD
    DRAWS_MANY = 100,
#else
    DRAWS_MANY = 1 << 20,
#endif
    DRAWS_PROBED = 256,
};
/* Removes the replies since the mark, which are DRAWS_PROBED draws. False if `draws` of this size
 * would use more than half of the machine's memory; the error was replied. */
bool collectionDrawsFit(ctx *c, outmark mark, uint64_t draws);

/* Replies a listpackItem as a bulk. */
static inline void replyItem(ctx *c, const listpackItem *item) {
    char digits[NUMBER_TEXT_MAX];
    replyBulk(c, listpackText(item, digits));
}

/* Elements of a scan: all that were visited, and the values that were replied. */
typedef struct collectionScanned {
    int64_t visited, replied;
} collectionScanned;
/* Replies elements of the value from `cursor` on, counts them in a collectionScanned, and returns
 * the next cursor. */
typedef uint64_t collectionScanProc(ctx *c, const robj *o, uint64_t cursor, void *arg);
/* Reply of SSCAN and similar commands: the next cursor, and the elements replied by `scan`, which
 * is called until `count` elements were visited. */
void collectionReplyScan(ctx *c, const robj *o, uint64_t cursor, int64_t count,
                         collectionScanProc *scan, void *arg, const collectionScanned *scanned);

#endif
