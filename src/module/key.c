/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Open keys. Handles that were closed are kept for the next ones, so that opening a key allocates
 * nothing. */
#include "module/key.h"

#include "base/base.h"
#include "ds/listpack.h"
#include "engine/block.h"
#include "engine/job.h"
#include "engine/keyspace.h"
#include "module/generated/api.h"
#include "store/compressed.h"
#include "store/member_expiry.h"
#include "store/store.h"
#include "store/type_hash.h"

enum { SPARES = 16 };

static struct {
    ValkeyModuleKey *keys[SPARES];
    int count;
} spare; /* main thread */

uint64_t keysChanges = 1;

/* How lookups of the handle see the keyspace. */
static storeLook lookOf(const ValkeyModuleKey *k) {
    storeLook look = k->mode & VALKEYMODULE_OPEN_KEY_NOEXPIRE ? lookAtAll() : k->owner->run->look;
    bool quiet = k->mode & (VALKEYMODULE_OPEN_KEY_NOTOUCH | VALKEYMODULE_OPEN_KEY_NOEFFECTS);
    return quiet ? lookWithoutTouch(look) : look;
}

/* Hides expired members of a set or sorted set; NULL if it has no others. */
static robj *visible(const ValkeyModuleKey *k, robj *o) {
    return likely(!engineHot.member_ttls) ? o : membersToRead(k->db, k->hash, o, lookOf(k));
}

static robj *peek(const ValkeyModuleKey *k) {
    robj *o = (robj *)dbPeek(k->db, keyName(k), k->hash);
    return o && storeIsExpired(o, lookOf(k)) ? NULL : visible(k, o);
}

/* For a change: removes expired members. */
static robj *findToWrite(ValkeyModuleKey *k) {
    robj *o = dbFind(k->db, keyName(k), k->hash, lookOf(k), &k->at);
    if (likely(!engineHot.member_ttls)) return o;
    return membersToWrite(k->db, keyName(k), k->hash, o, lookOf(k), &k->at);
}

static robj *findToRead(ValkeyModuleKey *k) {
    slice name = keyName(k);
    storeLook look = lookOf(k);
    int mode = k->mode;
    if (mode & VALKEYMODULE_OPEN_KEY_NOSTATS) return dbFindUncounted(k->db, name, k->hash, look);
    if (mode & VALKEYMODULE_OPEN_KEY_NONOTIFY) return dbFindSilent(k->db, name, k->hash, look);
    if (mode & VALKEYMODULE_OPEN_KEY_NOTOUCH) return dbFindQuiet(k->db, name, k->hash, look);
    return dbFindReadHead(k->db, name, k->hash, look);
}

static bool hasTimedFields(const robj *o) {
    return objectType(o) == TYPE_HASH && hashTimedCount(o) > 0;
}

/* The first lookup, with the effects that the mode wants. */
static robj *firstLookup(ValkeyModuleKey *k) {
    hotCheck(k->hash == storeHash(keyName(k)));
    if (k->mode & VALKEYMODULE_OPEN_KEY_NOEFFECTS) return peek(k);
    bool writes = k->mode & VALKEYMODULE_WRITE;
    robj *o = writes ? findToWrite(k) : findToRead(k);
    if (o && unlikely(hasTimedFields(o)) &&
        keyspaceExpireFields(k->owner->run, k->db, keyName(k), k->hash, lookOf(k)))
        o = writes ? findToWrite(k) : peek(k);
    if (writes || likely(!engineHot.member_ttls)) return o;
    return keyspaceShow(k->owner->run, k->db, keyName(k), k->hash, o, lookOf(k));
}

static uint64_t hashOf(const ctx *run, slice name) {
    bool is_first = run->cmd && run->cmd->first_key == 1 && run->argc > 1;
    if (likely(is_first && run->argv[1].ptr == name.ptr && run->argv[1].len == name.len))
        return run->key_hash;
    return storeHash(name);
}

ValkeyModuleKey *keyOpen(ValkeyModuleCtx *x, db *d, ValkeyModuleString *name, int mode) {
    hotCheck(x->run);
    hotCheck(name->refs > 0);
    ValkeyModuleKey *k = spare.count ? spare.keys[--spare.count] : memNew(ValkeyModuleKey);
    moduleStringRef(name); /* an argument lives as long as the handle may be used */
    k->owner = x;
    k->name = name;
    k->db = d;
    k->hash = hashOf(x->run, moduleStringSlice(name));
    k->mode = mode;
    k->changed = false;
    k->iterator = NULL;
    jobEndChangesOf(d, k->hash);
    k->object = firstLookup(k);
    /* It may have expired now; or it was compressed, and is stored plain to be changed. */
    bool replaced = k->object && mode & VALKEYMODULE_WRITE && objectForm(k->object) != FORM_POINTER;
    if (!k->object || replaced) keysMayHaveChanged();
    k->seen = keysChanges;
    contextCollect(x, GARBAGE_KEY, k);
    return k;
}

robj *keyObject(ValkeyModuleKey *k) {
    if (likely(k->seen == keysChanges && !(k->owner->flags & CONTEXT_THREAD))) {
        hotCheck(engineHot.member_ttls || k->object == peek(k));
        return k->object;
    }
    if (!k->owner->run) return NULL; /* of a thread that has unlocked the server */
    jobEndChangesOf(k->db, k->hash); /* which may have begun then */
    k->object = peek(k);
    k->seen = keysChanges;
    return k->object;
}

robj *keyFind(ValkeyModuleKey *k) {
    hotCheck(keyIsWritable(k));
    if (!k->owner->run) return NULL;
    jobEndChangesOf(k->db, k->hash);
    k->object = findToWrite(k);
    keysMayHaveChanged();
    k->seen = keysChanges;
    return k->object;
}

robj *keyPlain(ValkeyModuleKey *k) {
    hotCheck(objectIsCompressed(k->object));
    k->object = storePlainKey(k->db, keyName(k), k->hash);
    keysMayHaveChanged(); /* for other handles of the key */
    k->seen = keysChanges;
    /* It may have to remain compressed: then its next use looks it up again. */
    if (unlikely(dbPeek(k->db, keyName(k), k->hash) != k->object)) k->seen--;
    return k->object;
}

robj *keyValue(ValkeyModuleKey *k) {
    robj *o = keyObject(k);
    if (likely(!o || !objectIsCompressed(o)) || objectType(o) == TYPE_STRING) return o;
    return keyPlain(k);
}

void keyPlace(ValkeyModuleKey *k, robj *o) {
    hotCheck(o);
    hotCheck(keyIsWritable(k));
    dbPlace(k->db, &k->at, o);
    k->changed = true;
    keysMayHaveChanged();
}

void keyDelete(ValkeyModuleKey *k, bool later) {
    keyStopIterator(k);
    if (!keyFind(k)) return;
    bool found = later ? dbUnlink(k->db, keyName(k), k->hash, lookOf(k))
                       : dbDelete(k->db, keyName(k), k->hash, lookOf(k));
    hotCheck(found);
    k->changed |= found;
    keysMayHaveChanged();
}

void keyStopIterator(ValkeyModuleKey *k) {
    if (!k->iterator) return;
    hotCheck(k->iterator_free);
    k->iterator_free(k->iterator);
    k->iterator = NULL;
}

ValkeyModuleString *keyTextOf(ValkeyModuleKey *k, const listpackItem *item) {
    char digits[NUMBER_TEXT_MAX];
    slice text = listpackText(item, digits);
    return apiCreateString(k->owner, text.ptr, text.len);
}

/* ------------------------------------------------------------------ closing */

/* Tells those who watch the key or wait for it, although it need not have changed. */
static void tellChange(ValkeyModuleKey *k) {
    ctx *c = k->owner->run;
    if (k->changed) engineHot.dirty++;
    if (!engineHot.observers || !c) return;
    if (k->owner->module &&
        k->owner->module->options & VALKEYMODULE_OPTION_NO_IMPLICIT_SIGNAL_MODIFIED) {
        if (k->changed) blockNotifyKey(dbId(k->db), keyName(k));
        return;
    }
    db *before = c->db;
    c->db = k->db;
    bool ignored = blockIgnoreChanges(!k->changed);
    ctxTellObservers(c, keyName(k), NULL);
    (void)blockIgnoreChanges(ignored);
    c->db = before;
}

static void closeKey(ValkeyModuleKey *k) {
    hotCheck(k->owner);
    hotCheck(spare.count >= 0);
    keyStopIterator(k);
    if (k->mode & VALKEYMODULE_WRITE) tellChange(k);
    moduleStringRelease(k->name);
    if (likely(spare.count < SPARES)) {
        spare.keys[spare.count++] = k;
    } else {
        memFree(k);
    }
}

static void freeCollected(ValkeyModuleCtx *x, void *what) {
    hotCheck(((ValkeyModuleKey *)what)->owner == x);
    closeKey(what);
}

void keysStart(void) { contextSetFree(GARBAGE_KEY, freeCollected); }

void apiCloseKey(ValkeyModuleKey *kp) {
    if (!kp) return;
    (void)contextForget(kp->owner, GARBAGE_KEY, kp); /* it need not be there */
    closeKey(kp);
}
