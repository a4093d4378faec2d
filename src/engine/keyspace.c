/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Connects the store with the engine: propagation and events of keys that are removed without a
 * command, periodic maintenance, and the INFO fields of the keyspace. Main thread only. */
#include "engine/keyspace.h"

#include "base/base.h"
#include "base/clock.h"
#include "base/log.h"
#include "base/number.h"
#include "engine/block.h"
#include "engine/engine.h"
#include "engine/engine_priv.h"
#include "engine/expiry_gate.h"
#include "engine/hooks_priv.h"
#include "engine/hot.h"
#include "engine/hotkeys.h"
#include "engine/latency.h"
#include "engine/pace.h"
#include "engine/memory.h"
#include "engine/propagate.h"
#include "io/bio.h"
#include "store/member_expiry.h"
#include "store/store.h"
#include "store/taken.h"
#include "store/type_hash.h"

static bool active_expire = true;
static bool importing; /* import mode */
static bool frozen;    /* no key expires or is evicted */
static bool replica;   /* expired keys are kept until the primary deletes them */

/* ------------------------------------------------------------------ expiry and eviction */

/* The command that is propagated for an expired key. */
static slice expireWord(void) {
    return engineConf.lazyfree_lazy_expire ? SLICE("UNLINK") : SLICE("DEL");
}

slice keyspaceDeleteCommandName(void) {
    return engineConf.lazyfree_lazy_server_del ? SLICE("UNLINK") : SLICE("DEL");
}

slice keyspaceRemovalCommandName(valueType type) {
    hotCheck(type == TYPE_HASH || type == TYPE_SET || type == TYPE_ZSET);
    return type == TYPE_HASH ? SLICE("HDEL") : type == TYPE_SET ? SLICE("SREM") : SLICE("ZREM");
}

static bool removes_alone;

bool keyspaceRemovesAlone(void) { return removes_alone; }

/* Signals a change that no command has made. */
static void tellRemoved(db *d, slice key, const keyEvent *event) {
    if (!engineHot.observers) return;
    removes_alone = true;
    hooksKeyChanged(d, key, event);
    removes_alone = false;
}

/* The unit of a removal without a command begins before observers are told of it, so that what they
 * ask for at its end follows the removal. */
static bool removal_unit; /* begun, and not ended yet */

static void keyRemoving(db *d, const robj *o, storeRemoval why) {
    bool alone = why == REMOVAL_EXPIRED || why == REMOVAL_EVICTED;
    if (alone && !removal_unit) {
        removal_unit = true;
        propagateUnitBegin();
    }
    hooksKeyRemoving(d, o, why);
}

static void continueRemoval(void) {
    if (!removal_unit) propagateUnitBegin();
    removal_unit = false;
}

/* An expired key: propagates UNLINK before the command that found it, and after what callbacks of
 * modules propagate. */
/* Active expiry is at work: what it removes counts as changes for save points, as in Valkey 9.2. */
static bool expires_actively;

static void keyExpired(db *d, slice key) {
    engineHot.dirty += expires_actively;
    slice words[2] = {expireWord(), key};
    continueRemoval();
    tellRemoved(d, key, &eventExpired);
    propagateCopy(propagateToKey(dbId(d), key), 2, words);
    propagateUnitEnd();
}

void keyspaceExpireNow(ctx *c, slice key, uint64_t hash) {
    hotCheck(threadIsMain());
    slice words[2] = {expireWord(), key};
    dbExpire(c->db, key, hash);
    continueRemoval();
    propagateUnitEnd(); /* that of the command continues */
    ctxPropagateAs(c, 2, words);
    ctxKeyChanged(c, key, &eventExpired);
}

bool keyspaceIsPast(const ctx *c, int64_t expire_ms) {
    if (likely(expire_ms > c->now_ms)) return false;
    return !importing && !replica && !ctxIsReplay(c);
}

static void tellEvicted(db *d, slice key) {
    slice words[2] = {engineConf.lazyfree_lazy_eviction ? SLICE("UNLINK") : SLICE("DEL"), key};
    continueRemoval();
    tellRemoved(d, key, &eventEvicted);
    propagateCopy(propagateToKey(dbId(d), key), 2, words);
    propagateUnitEnd();
}

/* A key evicted between two requests. */
static void keyEvicted(db *d, slice key) { memoryTellEvicted(tellEvicted, d, key); }

/* Expired fields or members, found by active expiry or before a command: the unit is HDEL, SREM or
 * ZREM, and UNLINK if nothing else was in the value, as in Valkey. */
static void itemsExpiring(db *d, slice key, valueType type, const slice *items, unsigned count) {
    hotCheck(count > 0);
    slice *words = memNewArray(slice, (size_t)count + 2);
    words[0] = keyspaceRemovalCommandName(type);
    words[1] = key;
    memcpy(words + 2, items, count * sizeof(*items));
    if (expires_actively) engineHot.dirty += count;
    propagateUnitBegin();
    propagateCopy(propagateToKey(dbId(d), key), (int)count + 2, words);
    memFree(words);
}

static void itemsExpired(db *d, slice key, valueType type) {
    bool is_hash = type == TYPE_HASH, is_set = type == TYPE_SET;
    tellRemoved(d, key, is_hash ? &eventHashExpired : is_set ? &eventSexpired : &eventZexpired);
}

static void itemsEnded(db *d, slice key, bool key_removed) {
    hotCheck(threadIsMain());
    if (key_removed) {
        slice words[2] = {keyspaceDeleteCommandName(), key};
        propagateCopy(propagateToKey(dbId(d), key), 2, words);
        tellRemoved(d, key, &eventDel);
    }
    propagateUnitEnd();
}

/* ------------------------------------------------------------------ what commands read */

static bool mayWrite(const ctx *c) { return c->cmd && c->cmd->flags & CMD_WRITE; }

robj *keyspaceShow(const ctx *c, db *d, slice key, uint64_t hash, robj *o, storeLook look) {
    hotCheck(threadIsMain());
    if (o && mayWrite(c) && membersExpire(d, key, hash, o, look))
        o = (robj *)(uintptr_t)dbPeek(d, key, hash);
    return membersToRead(d, hash, o, look);
}

bool keyspaceFieldExpired(const ctx *c, db *d, slice key, uint64_t hash, robj *o, slice field) {
    hotCheck(threadIsMain());
    if (likely(hashTimedCount(o) == 0)) return false;
    int64_t time_ms = hashTime(o, field, lookAtAll());
    if (time_ms < 0 || !lookIsPast(c->look, time_ms)) return false;
    if (mayWrite(c)) dbExpireField(d, key, hash, o, field);
    return true;
}

bool keyspaceExpireFields(const ctx *c, db *d, slice key, uint64_t hash, storeLook look) {
    hotCheck(threadIsMain());
    return mayWrite(c) && dbExpireFields(d, key, hash, look);
}

static void memberTimed(void) {
    hotCheck(threadIsMain());
    engineHot.member_ttls = true;
    if (!engineHot.current) return; /* read from a file */
    logNotice(
        "Members of sets or sorted sets get TTLs: Valkey cannot read RDB files and append only "
        "files with them, nor apply them as a replica");
}

/* From now on requests may wait for expiry. */
static void membersMany(void) {
    hotCheck(threadIsMain());
    expiryGateArm();
}

static void keyAdded(db *d, slice key) { hooksKeyEvent(d, key, &eventNew); }

static void keyMissed(db *d, slice key) { hooksKeyEvent(d, key, &eventKeymiss); }

static void keyRemovalTimed(bool eviction, int64_t us) {
    latencyNote(eviction ? "eviction-del" : "expire-del", us / 1000);
}

static const storeListener listener = {.expired = keyExpired,
                                       .items_expiring = itemsExpiring,
                                       .items_expired = itemsExpired,
                                       .items_ended = itemsEnded,
                                       .member_timed = memberTimed,
                                       .members_many = membersMany,
                                       .evicted = keyEvicted,
                                       .added = keyAdded,
                                       .missed = keyMissed,
                                       .removing = keyRemoving,
                                       .removal_timed = keyRemovalTimed};

/* ------------------------------------------------------------------ dropped slots */

static struct {
    takenKeys **items; /* the first one is being told */
    size_t count, cap;
} drops;

/* Each key is a unit, with what modules do about it. */
static void propagateDropped(db *d, slice key) {
    hotCheck(threadIsMain());
    slice words[2] = {SLICE("UNLINK"), key};
    propagateCopy(propagateToKey(dbId(d), key), 2, words);
    tellRemoved(d, key, &eventDropped);
}

static void tellDropped(void *arg, const robj *o) {
    propagateUnitBegin();
    propagateDropped(arg, objectKey(o));
    propagateUnitEnd();
}

typedef struct keyNames {
    str *items;
    size_t count;
} keyNames;

static void noteKey(void *arg, const robj *o) {
    keyNames *all = arg;
    all->items[all->count++] = strNew(objectKey(o));
}

uint64_t keyspaceDeleteEach(db *d, int slot, void (*tell)(void *arg, db *d, slice key), void *arg) {
    hotCheck(threadIsMain());
    keyNames all = {memNewArray(str, dbSlotCount(d, slot) + 1), 0};
    uint64_t deleted = 0;
    dbEach(d, slot, noteKey, &all);
    for (size_t i = 0; i < all.count; i++) {
        slice key = strSlice(&all.items[i]);
        propagateUnitBegin();
        if (dbDelete(d, key, storeHash(key), lookAtAll())) {
            deleted++;
            tell(arg, d, key);
        }
        propagateUnitEnd();
        strFree(&all.items[i]);
    }
    memFree(all.items);
    return deleted;
}

static void dropOne(void *arg, db *d, slice key) {
    (void)arg; /* nothing is to be counted */
    propagateDropped(d, key);
}

void keyspaceDropSlot(int slot) {
    check(threadIsMain());
    hotkeysWindowClear();
    for (int i = 0; i < storeDbCount(); i++) {
        if (storeExpectsChanges()) {
            /* Without slices: modules are to see each value in its place. */
            engineHot.dirty += keyspaceDeleteEach(storeDb(i), slot, dropOne, NULL);
            continue;
        }
        takenKeys *t = dbTakeSlot(storeDb(i), slot);
        if (!t) continue;
        engineHot.dirty += takenCount(t);
        if (drops.count == drops.cap) {
            drops.cap = drops.cap ? 2 * drops.cap : 16;
            drops.items = memRealloc(drops.items, drops.cap * sizeof(takenKeys *));
        }
        drops.items[drops.count++] = t;
    }
}

static void dropSome(uint64_t buckets) {
    check(drops.count > 0);
    takenKeys *t = drops.items[0];
    dbVisitProc *tell = engineHot.sinks || engineHot.observers ? tellDropped : NULL;
    if (!takenStep(t, buckets, tell, takenDb(t)))
        memmove(drops.items, drops.items + 1, --drops.count * sizeof(takenKeys *));
}

bool keyspaceDropWaits(void) { return drops.count && takenIsHeld(drops.items[0]); }

bool keyspaceDropStep(int64_t end_us) {
    enum { STEP_BUCKETS = 16 };
    check(threadIsMain());
    while (drops.count && !keyspaceDropWaits()) {
        dropSome(STEP_BUCKETS);
        if (clockMonoUs() >= end_us) break;
    }
    return drops.count > 0;
}

void keyspaceDropAll(void) {
    while (drops.count) dropSome(UINT64_MAX);
}

void keyspaceDropForget(void) {
    check(threadIsMain());
    for (size_t i = 0; i < drops.count; i++) takenFree(drops.items[i]);
    drops.count = 0;
}

/* ------------------------------------------------------------------ visibility */

static void setExpiry(void) {
    storeSetExpiry(keyspaceMain(), importing || frozen || replica ? EXPIRY_HIDE : EXPIRY_DELETE);
}

void keyspaceSetFrozen(bool on) {
    frozen = on;
    setExpiry();
}

void keyspaceSetImportMode(bool on) {
    importing = on;
    setExpiry();
}

bool keyspaceIsImporting(void) { return importing; }

void keyspaceSetReplica(bool on) {
    replica = on;
    setExpiry();
}

bool keyspaceKeepsExpired(void) { return importing || replica; }

storeLook keyspaceSessionLook(const session *s, int64_t now_ms) {
    bool sees_expired =
        s->flags & SESSION_REPLAY || (importing && s->flags & SESSION_IMPORT_SOURCE);
    storeLook look = sees_expired ? lookAtAll() : lookAt(now_ms);
    return s->flags & SESSION_NO_TOUCH ? lookWithoutTouch(look) : look;
}

/* ------------------------------------------------------------------ periodic maintenance */

bool keyspaceCountsAccesses(void) {
    return engineConf.maxmemory_policy == POLICY_ALLKEYS_LFU ||
           engineConf.maxmemory_policy == POLICY_VOLATILE_LFU;
}

bool keyspaceRecordsAccess(void) {
    return engineConf.maxmemory_policy == POLICY_ALLKEYS_LRU ||
           engineConf.maxmemory_policy == POLICY_VOLATILE_LRU;
}

status keyspaceApplyAccess(reason *why) {
    hotCheck(threadIsMain());
    (void)why; /* cannot fail */
    storeSetAccess(keyspaceCountsAccesses() ? ACCESS_LFU : ACCESS_LRU, engineConf.lfu_log_factor,
                   engineConf.lfu_decay_time);
    return OK;
}

status keyspaceApplyLazyFree(reason *why) {
    (void)why; /* cannot fail */
    storeSetLazyFree(engineConf.lazyfree_lazy_expire, engineConf.lazyfree_lazy_server_del);
    return OK;
}

void keyspaceSetActiveExpire(bool on) { active_expire = on; }
bool keyspaceExpiresActively(void) { return active_expire; }

static void clockTick(int64_t budget_us) {
    (void)budget_us; /* takes no time */
    storeSetClock(engineHot.now_ms);
}

/* Active expiry uses a share of CPU time: 25 %, or up to 43 % depending on effort, as in Valkey. A
 * turn that reaches its limit is continued in small steps between requests, so that many expiring
 * keys do not cause long delays. */
enum { EXPIRE_PIECE_US = 1000 };
static pace expire_pace;

static bool mayExpire(void) { return active_expire && !frozen; }

static void expire(int64_t budget_us) {
    hotCheck(budget_us > 0);
    int effort = engineConf.active_expire_effort;
    int share = 25 + 2 * (effort - 1);
    int64_t began_us = clockMonoUs();
    expires_actively = true;
    storeExpireTurn(keyspaceMain(), engineHot.now_ms, budget_us, effort);
    expires_actively = false;
    int64_t now_us = clockMonoUs();
    latencyNote("expire-cycle", (now_us - began_us) / 1000);
    paceTook(&expire_pace, began_us, now_us, share);
}

static void expireTick(int64_t budget_us) {
    if (mayExpire()) expire(budget_us < EXPIRE_PIECE_US ? budget_us : EXPIRE_PIECE_US);
}

/* Blocks that the background thread returns are taken back in pieces, too: a million elements of
 * one value would take 30 ms. */
static bool takes_back;
static pace take_pace;

static void takeBack(int64_t began_us) {
    enum { PIECE_BLOCKS = 2000, SHARE = 25 };
    takes_back = !storeTakeBack(PIECE_BLOCKS);
    if (!takes_back) blockNotify(BLOCK_CUSTOM); /* FLUSHALL SYNC */
    paceTook(&take_pace, began_us, clockMonoUs(), SHARE);
}

static void workBetween(void) {
    if (engineHot.current) return; /* a nested turn, within a command */
    if (unlikely(takes_back)) {
        int64_t now_us = clockMonoUs();
        if (now_us >= take_pace.next_us) takeBack(now_us);
    }
    if (likely(!storeExpireTimedOut(keyspaceMain())) || !mayExpire()) return;
    if (clockMonoUs() >= expire_pace.next_us) expire(EXPIRE_PIECE_US);
}

int64_t keyspaceNextMs(void) {
    int64_t take_ms = unlikely(takes_back) ? paceLeftMs(&take_pace) : -1;
    if (likely(!storeExpireTimedOut(keyspaceMain())) || !mayExpire()) return take_ms;
    int64_t expire_ms = paceLeftMs(&expire_pace);
    return take_ms >= 0 && take_ms < expire_ms ? take_ms : expire_ms;
}

static bool expireIsBusy(void) { return storeHasVolatile(keyspaceMain()); }

static bool resizes, reclaims; /* there is more to do in the next run */

static void resizeTick(int64_t budget_us) {
    enum { RESIZE_US = 1000 };
    resizes = engineConf.activerehashing &&
              storeWork(keyspaceMain(), budget_us < RESIZE_US ? budget_us : RESIZE_US);
}

static bool resizeIsBusy(void) { return resizes; }

static void reclaimTick(int64_t budget_us) {
    (void)budget_us; /* takes little time */
    reclaims = storeReclaim();
}

static bool reclaimIsBusy(void) { return reclaims; }

void keyspaceFreeLater(void (*free)(void *garbage), void *garbage) {
    bioSubmit(BIO_FREE, free, garbage);
    takes_back = true;
}

bool keyspaceTakesBack(void) { return takes_back; }

bool keyspaceFlushesLater(void) { return engineConf.lazyfree_lazy_user_flush; }

/* Completes background freeing, so that leak checkers find nothing. */
static status shutdown(uint32_t flags, reason *why) {
    (void)flags, (void)why; /* cannot fail */
    bioDrain(BIO_FREE);
    return OK;
}

static const tickJob ticks[] = {{"store-clock", 0, clockTick, NULL},
                                {"expire", 0, expireTick, expireIsBusy},
                                {"resize", 0, resizeTick, resizeIsBusy},
                                {"reclaim", 100, reclaimTick, reclaimIsBusy},
                                {0}};
static const stageJob stages[] = {{STAGE_EXPIRE, workBetween}, {0}};

static status init(reason *why) {
    storeSetListener(keyspaceMain(), &listener);
    storeSetFreeLater(keyspaceFreeLater);
    storeSetClock(engineHot.now_ms);
    engineHot.dbs = storeDbs();
    (void)keyspaceApplyLazyFree(why); /* cannot fail */
    return keyspaceApplyAccess(why);
}

/* ------------------------------------------------------------------ INFO */

static void printKeyspace(str *out) {
    for (int i = 0; i < storeDbCount(); i++) {
        db *d = storeDb(i);
        if (!dbSize(d)) continue;
        strAppendFormat(
            out, "db%d:keys=%llu,expires=%llu,avg_ttl=%lld,keys_with_volatile_items=%llu\r\n", i,
            (unsigned long long)dbSize(d), (unsigned long long)dbVolatileCount(d),
            (long long)dbMeanTtl(d), (unsigned long long)dbItemKeys(d));
    }
}

static void printStats(str *out) {
    storeStatistics now = storeStats(keyspaceMain()), *s = &now;
    strAppendField(out, "expired_keys", s->expired);
    strAppendField(out, "expired_fields", s->expired_fields);
    strAppendField(out, "expired_members", s->expired_members);
    strAppendFormat(out,
                    "expired_stale_perc:%.2f\r\n"
                    "expired_keys_with_volatile_items_stale_perc:%.2f\r\n",
                    s->expired_stale_percent, s->stale_items_percent);
    strAppendField(out, "expired_time_cap_reached_count", s->expire_time_caps);
    strAppendField(out, "expire_cycle_cpu_milliseconds", s->expire_us / 1000);
    strAppendField(out, "keyspace_hits", s->hits);
    strAppendField(out, "keyspace_misses", s->misses);
}

static void printMemory(str *out) {
    char human[NUMBER_TEXT_MAX];
    numberPrintHuman(human, memoryLimit());
    strAppendFormat(out, "maxmemory:%llu\r\nmaxmemory_human:%s\r\nmaxmemory_policy:",
                    (unsigned long long)memoryLimit(), human);
    configGet(configFind(SLICE("maxmemory-policy")), out);
    strAppendText(out, "\r\n");
    strAppendField(out, "lazyfree_pending_objects", storeFreePending());
    strAppendField(out, "lazyfreed_objects", storeFreedLater());
}

static void resetStats(void) { storeResetStats(keyspaceMain()); }

static const infoSection sections[] = {
    {"memory", "# Memory", INFO_NORMAL, INFO_MEMORY, printMemory},
    {"keyspace", "# Keyspace", INFO_NORMAL, INFO_KEYSPACE, printKeyspace},
    {"stats", "# Stats", INFO_NORMAL, INFO_STATS, printStats},
    {0},
};

const feature keyspaceFeature = {.name = "keyspace",
                                 .info = sections,
                                 .ticks = ticks,
                                 .stages = stages,
                                 .init = init,
                                 .on_stats_reset = resetStats,
                                 .on_shutdown = shutdown};
