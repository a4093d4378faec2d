/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Functions of modules: opening keys, and what is possible with keys of any type: deletion, expiry
 * times, length. */
#include "base/base.h"
#include "base/clock.h"
#include "engine/hooks.h"
#include "engine/keyspace.h"
#include "engine/propagate.h"
#include "module/generated/api.h"
#include "module/key.h"
#include "module/thread_context.h"
#include "store/store.h"

int apiGetOpenKeyModesAll(void) { return _VALKEYMODULE_OPEN_KEY_ALL; }

ValkeyModuleKey *apiOpenKey(ValkeyModuleCtx *ctx, ValkeyModuleString *keyname, int mode) {
    struct ctx *c = likely(ctx && keyname) ? contextUse(ctx) : NULL;
    if (unlikely(!c)) {
        if (ctx) contextMisuse(ctx, "ValkeyModule_OpenKey() without a key or a locked server");
        return NULL;
    }
    if (unlikely(ctx->flags & CONTEXT_READ_ONLY)) mode &= ~VALKEYMODULE_WRITE;
    ValkeyModuleKey *k = keyOpen(ctx, c->db, keyname, mode);
    if (k->object || mode & VALKEYMODULE_WRITE) return k;
    apiCloseKey(k);
    return NULL;
}

int apiKeyExists(ValkeyModuleCtx *ctx, ValkeyModuleString *keyname) {
    const struct ctx *c = keyname ? contextUse(ctx) : NULL;
    if (!c) return 0;
    slice name = moduleStringSlice(keyname);
    const robj *o = dbFindQuiet(c->db, name, storeHash(name), c->look);
    if (!o) keysMayHaveChanged(); /* it may have expired now */
    return o != NULL;
}

int apiKeyType(ValkeyModuleKey *kp) {
    static const uint8_t types[TYPE_COUNT] = {[TYPE_STRING] = VALKEYMODULE_KEYTYPE_STRING,
                                              [TYPE_LIST] = VALKEYMODULE_KEYTYPE_LIST,
                                              [TYPE_SET] = VALKEYMODULE_KEYTYPE_SET,
                                              [TYPE_ZSET] = VALKEYMODULE_KEYTYPE_ZSET,
                                              [TYPE_HASH] = VALKEYMODULE_KEYTYPE_HASH,
                                              [TYPE_STREAM] = VALKEYMODULE_KEYTYPE_STREAM,
                                              [TYPE_MODULE] = VALKEYMODULE_KEYTYPE_MODULE,
                                              [TYPE_PATHHASH] = VALKEYMODULE_KEYTYPE_PATHHASH};
    const robj *o = kp ? keyObject(kp) : NULL;
    return o ? types[objectType(o)] : VALKEYMODULE_KEYTYPE_EMPTY;
}

size_t apiValueLength(ValkeyModuleKey *kp) {
    const robj *o = kp ? keyObject(kp) : NULL;
    if (!o || objectType(o) == TYPE_MODULE) return 0;
    return objectLength(o);
}

static int removeKey(ValkeyModuleKey *k, bool later) {
    if (!keyIsWritable(k)) return VALKEYMODULE_ERR;
    keyDelete(k, later);
    hotCheck(!keyObject(k));
    return VALKEYMODULE_OK;
}

int apiDeleteKey(ValkeyModuleKey *key) { return removeKey(key, false); }
int apiUnlinkKey(ValkeyModuleKey *key) { return removeKey(key, true); }

const ValkeyModuleString *apiGetKeyNameFromModuleKey(ValkeyModuleKey *key) {
    return key ? key->name : NULL;
}

int apiGetDbIdFromModuleKey(ValkeyModuleKey *key) { return key ? dbId(key->db) : -1; }

int apiSignalModifiedKey(ValkeyModuleCtx *ctx, ValkeyModuleString *keyname) {
    struct ctx *c = keyname ? contextUse(ctx) : NULL;
    if (!c) return VALKEYMODULE_ERR;
    engineHot.dirty++;
    if (engineHot.observers) ctxTellObservers(c, moduleStringSlice(keyname), NULL);
    keysMayHaveChanged();
    return VALKEYMODULE_OK;
}

/* ------------------------------------------------------------------ expiry */

mstime_t apiGetAbsExpire(ValkeyModuleKey *key) {
    const robj *o = key ? keyObject(key) : NULL;
    return o ? objectExpire(o) : VALKEYMODULE_NO_EXPIRE;
}

mstime_t apiGetExpire(ValkeyModuleKey *key) {
    mstime_t at = apiGetAbsExpire(key);
    if (at == VALKEYMODULE_NO_EXPIRE) return at;
    mstime_t rest = at - clockWallMs();
    return rest > 0 ? rest : 0;
}

int apiSetAbsExpire(ValkeyModuleKey *key, mstime_t expire) {
    _Static_assert(VALKEYMODULE_NO_EXPIRE == OBJECT_NO_EXPIRE, "the same value means none");
    if (!keyIsWritable(key) || (expire < 0 && expire != VALKEYMODULE_NO_EXPIRE))
        return VALKEYMODULE_ERR;
    robj *o = keyFind(key);
    if (!o) return VALKEYMODULE_ERR;
    robj *timed = objectSetExpire(o, expire);
    hotCheck(objectExpire(timed) == expire); /* it may have passed: a lookup would not find it */
    keyPlace(key, timed);
    return VALKEYMODULE_OK;
}

int apiSetExpire(ValkeyModuleKey *key, mstime_t expire) {
    int64_t at = expire;
    if (expire >= 0 && !numberAdd(expire, clockWallMs(), &at)) return VALKEYMODULE_ERR;
    return apiSetAbsExpire(key, at);
}

/* ------------------------------------------------------------------ access */

int apiSetLRU(ValkeyModuleKey *key, mstime_t lru_idle) {
    robj *o = key ? keyObject(key) : NULL;
    if (!o || lru_idle < 0 || keyspaceCountsAccesses()) return VALKEYMODULE_ERR;
    storeSetObjectAccess(o, lru_idle / 1000, -1);
    return VALKEYMODULE_OK;
}

int apiGetLRU(ValkeyModuleKey *key, mstime_t *lru_idle) {
    *lru_idle = -1;
    const robj *o = key ? keyObject(key) : NULL;
    if (!o) return VALKEYMODULE_ERR;
    if (!keyspaceCountsAccesses()) *lru_idle = storeIdleSeconds(o) * 1000;
    return VALKEYMODULE_OK;
}

int apiSetLFU(ValkeyModuleKey *key, long long lfu_freq) {
    robj *o = key ? keyObject(key) : NULL;
    if (!o || lfu_freq < 0 || !keyspaceCountsAccesses()) return VALKEYMODULE_ERR;
    storeSetObjectAccess(o, -1, lfu_freq > UINT8_MAX ? UINT8_MAX : (int)lfu_freq);
    return VALKEYMODULE_OK;
}

int apiGetLFU(ValkeyModuleKey *key, long long *lfu_freq) {
    *lfu_freq = -1;
    const robj *o = key ? keyObject(key) : NULL;
    if (!o) return VALKEYMODULE_ERR;
    if (keyspaceCountsAccesses()) *lfu_freq = storeFrequency(o);
    return VALKEYMODULE_OK;
}

/* ------------------------------------------------------------------ databases */

unsigned long long apiDbSize(ValkeyModuleCtx *ctx) {
    const struct ctx *c = contextUse(ctx);
    return c ? dbSize(c->db) : 0;
}

ValkeyModuleString *apiRandomKey(ValkeyModuleCtx *ctx) {
    const struct ctx *c = contextUse(ctx);
    const robj *o = c ? dbRandom(c->db, c->look) : NULL;
    keysMayHaveChanged(); /* expired ones may have been removed */
    if (!o) return NULL;
    slice name = objectKey(o);
    hotCheck(dbPeek(c->db, name, storeHash(name)) == o);
    return apiCreateString(ctx, name.ptr, name.len);
}

/* The AOF begins anew by the command that flushes; replicas keep what they have. */
static void propagateFlush(void) {
    slice words[] = {SLICE("FLUSHALL")};
    hotCheck(engineHot.sinks);
    propagateTo aof = {.db_id = 0, .targets = PROPAGATE_AOF, .slot = -1};
    propagateUnitBegin();
    propagateCopy(aof, 1, words);
    propagateUnitEnd();
}

void apiResetDataset(int restart_aof, int async) {
    if (!threadIsMain()) return;
    dbEvent event = {.kind = DB_FLUSHING, .db_id = -1, .later = async};
    hooksDbEvent(&event);
    engineHot.dirty += storeFlush(keyspaceMain(), async);
    if (restart_aof && engineHot.sinks) propagateFlush();
    event.kind = DB_FLUSHED;
    hooksDbEvent(&event);
    keysMayHaveChanged();
}
