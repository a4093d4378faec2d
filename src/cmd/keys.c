/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Commands on keys of any type, and on whole databases. Main thread only. */
#include <limits.h>

#include "base/base.h"
#include "base/number.h"
#include "cmd/cmd_priv.h"
#include "cmd/collection.h"
#include "cmd/key_walk.h"
#include "cmd/procs.h"
#include "engine/block.h"
#include "engine/hooks.h"
#include "engine/job.h"
#include "engine/propagate.h"
#include "engine/keyspace.h"
#include "engine/reply.h"
#include "store/store.h"

static dbKey keyAt(const ctx *c, db *d, int arg_index) {
    hotCheck(arg_index > 0);
    hotCheck(arg_index <= c->argc);
    slice key = c->argv[arg_index];
    uint64_t hash = arg_index == 1 ? c->key_hash : storeHash(key);
    return (dbKey){.db = d, .key = key, .hash = hash};
}

static robj *findKey(ctx *c, const dbKey *k) {
    return dbFindHead(k->db, k->key, k->hash, c->look, &c->at);
}

/* ------------------------------------------------------------------ DEL, EXISTS and the like */

typedef bool removeProc(db *d, slice key, uint64_t hash, storeLook look);

static void removeKeys(ctx *c, removeProc *removes) {
    int64_t deleted = 0;
    keyWalk w;
    keyWalkInit(&w, c, 1, c->argc, 1);
    while (keyWalkNext(&w)) {
        if (!removes(c->db, w.key, w.hash, c->look)) continue;
        ctxKeyChanged(c, w.key, &eventDel);
        deleted++;
    }
    replyInteger(c, deleted);
}

/* DEL key [key ...]. Reply: number of keys deleted. */
void delCommand(ctx *c) { removeKeys(c, cmdConf.lazyfree_lazy_user_del ? dbUnlink : dbDeleteNow); }

/* UNLINK key [key ...]. Reply: number of keys deleted. */
void unlinkCommand(ctx *c) { removeKeys(c, dbUnlink); }

typedef robj *findProc(db *d, slice key, uint64_t hash, storeLook look);

static void replyFound(ctx *c, findProc *find, storeLook look) {
    int64_t found = 0;
    keyWalk w;
    keyWalkInit(&w, c, 1, c->argc, 1);
    while (keyWalkNext(&w)) found += find(c->db, w.key, w.hash, look) != NULL;
    replyInteger(c, found);
}

/* EXISTS key [key ...]. Reply: number of arguments that exist; repeated keys count repeatedly. */
void existsCommand(ctx *c) { replyFound(c, dbFindQuiet, c->look); }

/* TOUCH key [key ...]. Reply: like EXISTS. Counts as an access even with CLIENT NO-TOUCH. */
void touchCommand(ctx *c) { replyFound(c, dbFindReadHead, lookWithTouch(c->look)); }

/* TYPE key. Reply: name of the type, "none" if the key is missing. */
void typeCommand(ctx *c) {
    hotCheck(c->argc == 2);
    const robj *o = dbFindQuiet(c->db, c->argv[1], c->key_hash, c->look);
    replyStatus(c, o ? sliceOf(objectTypeName(o)) : SLICE("none"));
}

/* RANDOMKEY. Reply: a key, null if the database is empty. */
void randomkeyCommand(ctx *c) {
    propagateUnwrapped();
    const robj *o = dbRandom(c->db, c->look);
    if (o) {
        replyBulk(c, objectKey(o));
    } else {
        replyNull(c);
    }
}

/* DBSIZE. Reply: number of keys. */
void dbsizeCommand(ctx *c) { replyInteger(c, (int64_t)dbSize(c->db)); }

/* ------------------------------------------------------------------ RENAME, MOVE, COPY */

/* True if the key that was found is there no more: a module has deleted it when it was told that
 * the target has expired. */
static bool isGone(const dbKey *k) {
    return unlikely(engineHot.observers) && !dbPeek(k->db, k->key, k->hash);
}

/* Renames `from` to `to`. Returns false if nothing was done: the key is missing (the error was
 * replied), the names are equal, or `only_new` and the new name exists. */
static bool renameKey(ctx *c, bool only_new, bool *refused) {
    dbKey from = keyAt(c, c->db, 1), to = keyAt(c, c->db, 2);
    *refused = false;
    if (!findKey(c, &from)) {
        replyError(c, ERR_NO_KEY_TEXT);
        *refused = true;
        return false;
    }
    if (sliceEqual(from.key, to.key)) return false;
    bool exists = findKey(c, &to);
    if (isGone(&from)) {
        replyError(c, ERR_NO_KEY_TEXT);
        *refused = true;
        return false;
    }
    if (exists && only_new) return false;
    if (exists) (void)dbDelete(to.db, to.key, to.hash, c->look); /* it exists */
    dbMove(&from, &to);
    ctxKeyChanged(c, from.key, &eventRenameFrom);
    collectionNotify(c, to.key, &eventRenameTo);
    return true;
}

/* RENAME key newkey. Reply: OK. */
void renameCommand(ctx *c) {
    bool refused;
    (void)renameKey(c, false, &refused); /* equal names are allowed */
    if (!refused) replyOk(c);
}

/* RENAMENX key newkey. Reply: 1, or 0 if the new name exists. */
void renamenxCommand(ctx *c) {
    bool refused;
    bool renamed = renameKey(c, true, &refused);
    if (!refused) replyInteger(c, renamed);
}

/* Parses an argument as a C int. False: the error was replied. */
static bool intArg(ctx *c, int arg_index, int *out) {
    hotCheck(arg_index > 0);
    hotCheck(arg_index <= c->argc);
    int64_t value;
    if (!ctxArgInt(c, arg_index, &value)) return false;
    if (value < INT_MIN || value > INT_MAX) {
        replyErrorFormat(c, "ERR value is out of range, value must between %d and %d", INT_MIN,
                         INT_MAX);
        return false;
    }
    *out = (int)value;
    return true;
}

/* Parses an argument as the index of a database. False: the error was replied. */
static bool dbArg(ctx *c, int arg_index, db **out) {
    hotCheck(arg_index > 0);
    hotCheck(arg_index <= c->argc);
    int id;
    if (!intArg(c, arg_index, &id)) return false;
    if (id < 0 || id >= storeDbCount()) {
        replyError(c, ERR_DB_RANGE_TEXT);
        return false;
    }
    *out = storeDb(id);
    return true;
}

/* Notifies a change in a database other than the caller's. */
static void notifyIn(ctx *c, db *d, slice key, const keyEvent *event) {
    db *own = c->db;
    c->db = d;
    collectionNotify(c, key, event);
    c->db = own;
}

/* Removes the key that MOVE replaces. MOVE is propagated as DEL and MOVE, which servers without
 * REPLACE know, too. */
static void removeReplaced(ctx *c, const dbKey *to) {
    hotCheck(c->argc == 4);
    (void)dbDelete(to->db, to->key, to->hash, c->look); /* it exists */
    slice del[] = {SLICE("DEL"), to->key}, move[] = {SLICE("MOVE"), c->argv[1], c->argv[2]};
    ctxPropagateIn(c, dbId(to->db), COUNT_OF(del), del);
    ctxPropagateAs(c, COUNT_OF(move), move);
}

/* MOVE key db [REPLACE]. Reply: 1, or 0 if the key is missing here, or exists there and REPLACE is
 * not given. */
void moveCommand(ctx *c) {
    db *target;
    bool replace = c->argc > 3;
    if (replace && (c->argc > 4 || !ctxArgIs(c, 3, "replace"))) {
        replyError(c, ERR_SYNTAX_TEXT);
        return;
    }
    if (!dbArg(c, 2, &target)) return;
    if (target == c->db) {
        replyError(c, ERR_SAME_OBJECT_TEXT);
        return;
    }
    dbKey from = keyAt(c, c->db, 1), to = keyAt(c, target, 1);
    bool found = findKey(c, &from), exists = found && findKey(c, &to);
    if (!found || (exists && !replace) || isGone(&from)) {
        replyInteger(c, 0);
        return;
    }
    if (exists) {
        removeReplaced(c, &to);
    } else if (replace) {
        ctxPropagateAs(c, 3, c->argv);
    }
    dbMove(&from, &to);
    ctxKeyChanged(c, from.key, &eventMoveFrom);
    notifyIn(c, target, to.key, &eventMoveTo);
    replyInteger(c, 1);
}

/* How many elements a copy of the value has, about. Strings share their bytes; a module copies its
 * values in one piece. */
static uint64_t copiedElements(const robj *o) {
    valueType type = objectType(o);
    bool counts = objectForm(o) == FORM_POINTER && type != TYPE_STRING && type != TYPE_MODULE;
    return counts ? typeOf(o)->length(o) : 0;
}

/* Places a copy, unless the destination exists. */
static void placeCopy(ctx *c, const dbKey *to, robj *copy, bool replace) {
    if (!jobMayStore(c)) {
        objectFree(copy);
        return;
    }
    if (!replace && findKey(c, to)) {
        objectFree(copy);
        replyInteger(c, 0);
        return;
    }
    dbPut(to, copy);
    ctxDatasetChanged(c, 1);
    notifyIn(c, to->db, to->key, &eventCopyTo);
    replyInteger(c, 1);
}

/* COPY source destination [DB destination-db] [REPLACE]. Reply: 1, or 0 if the source is missing,
 * or the destination exists and REPLACE is not given. */
void copyCommand(ctx *c) {
    hotCheck(c->argc >= 3);
    db *target = c->db;
    bool replace = false;
    for (int i = 3; i < c->argc; i++) {
        if (ctxArgIs(c, i, "replace")) {
            replace = true;
        } else if (ctxArgIs(c, i, "db") && i + 1 < c->argc) {
            if (!dbArg(c, ++i, &target)) return;
        } else {
            replyError(c, ERR_SYNTAX_TEXT);
            return;
        }
    }
    dbKey from = keyAt(c, c->db, 1), to = keyAt(c, target, 2);
    if (target == c->db && sliceEqual(from.key, to.key)) {
        replyError(c, ERR_SAME_OBJECT_TEXT);
        return;
    }
    const robj *o = dbFindReadHead(from.db, from.key, from.hash, c->look);
    if (!o || (findKey(c, &to) && !replace) || isGone(&from)) {
        replyInteger(c, 0);
        return;
    }
    o = dbPeek(from.db, from.key, from.hash); /* modules may have been told of the other key */
    if (jobStartStore(c, copiedElements(o))) return;
    robj *copy;
    status st = dbCopy(&from, &to, &copy);
    if (st != OK) {
        replyError(c, st == ERR_DENIED ? SLICE("ERR not supported for this module key")
                                       : SLICE("ERR module key failed to copy"));
        return;
    }
    placeCopy(c, &to, copy, replace);
}

/* ------------------------------------------------------------------ whole databases */

/* SWAPDB index1 index2. Reply: OK. */
void swapdbCommand(ctx *c) {
    static const char *const errors[] = {"ERR invalid first DB index",
                                         "ERR invalid second DB index"};
    if (storeIsSlotted()) {
        replyError(c, SLICE("ERR SWAPDB is not allowed in cluster mode"));
        return;
    }
    int64_t id[2];
    for (int i = 0; i < 2; i++) {
        if (!ctxArgIntIn(c, i + 1, INT_MIN, INT_MAX, &id[i], errors[i])) return;
    }
    for (int i = 0; i < 2; i++) {
        if (id[i] >= 0 && id[i] < storeDbCount()) continue;
        replyError(c, ERR_DB_RANGE_TEXT);
        return;
    }
    dbEvent event = {.kind = DB_SWAPPING, .db_id = (int)id[0], .other_id = (int)id[1]};
    hooksDbEvent(&event);
    if (id[0] != id[1]) storeSwap(storeDb((int)id[0]), storeDb((int)id[1]));
    event.kind = DB_SWAPPED;
    hooksDbEvent(&event);
    ctxDatasetChanged(c, 1);
    replyOk(c);
}

/* Parses [ASYNC|SYNC]. False: the error was replied. */
static bool parseFlush(ctx *c) {
    if (c->argc == 1 || (c->argc == 2 && (ctxArgIs(c, 1, "async") || ctxArgIs(c, 1, "sync"))))
        return true;
    replyError(c, ERR_SYNTAX_TEXT);
    return false;
}

static bool isFreed(const blockQuery *q) {
    (void)q; /* all that was freed so far */
    return !keyspaceTakesBack();
}

static void endFlush(ctx *c) { (void)c; /* its reply was held back */ }

/* True if SYNC is to wait until the background thread has freed the keys: one database, all if `id`
 * is -1, would take too long to be freed here. */
static bool flushMayWait(const ctx *c, int id) {
    enum { KEYS = 20000 };
    uint64_t keys = 0;
    for (int i = 0; i < storeDbCount(); i++) keys += id < 0 || i == id ? dbSize(storeDb(i)) : 0;
    return keys >= KEYS && engineHot.job_from != UINT32_MAX && c->origin == ORIGIN_CLIENT &&
           !c->outer && !c->below && !(c->flags & CTX_MAY_BLOCK) && !blockIsDenied(c);
}

/* Flushes a database, or all if `id` is -1. */
static void flush(ctx *c, int id) {
    hotCheck(id >= -1);
    hotCheck(id < storeDbCount());
    bool later = c->argc > 1 ? ctxArgIs(c, 1, "async") : keyspaceFlushesLater();
    dbEvent event = {.kind = DB_FLUSHING, .db_id = id, .later = later};
    bool waits = !later && flushMayWait(c, id), apart = later || waits;
    hooksDbEvent(&event);
    uint64_t removed = id < 0 ? storeFlush(keyspaceMain(), apart) : dbFlush(storeDb(id), apart);
    ctxDatasetChanged(c, removed); /* before the event: a snapshot then contains the change */
    event.kind = DB_FLUSHED;
    hooksDbEvent(&event);
    replyOk(c);
    if (!waits || !keyspaceTakesBack()) return;
    blockStart(c, &(blockParams){.kind = BLOCK_CUSTOM,
                                 .ready = isFreed,
                                 .finish = endFlush,
                                 .not_by_user = true,
                                 .holds_reply = true});
}

/* FLUSHDB [ASYNC|SYNC]. Reply: OK. */
void flushdbCommand(ctx *c) {
    if (parseFlush(c)) flush(c, c->who->db_id);
}

/* FLUSHALL [ASYNC|SYNC]. Reply: OK. */
void flushallCommand(ctx *c) {
    if (parseFlush(c)) flush(c, -1);
}
