/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Accounts of the memory of keys. A key observer collects the hashes of changed keys. Before the
 * next batch of requests, each of these keys is looked up and measured in its current state.
 * Invariant: the sums depend only on the present contents of the databases; a key that is measured
 * twice counts once.
 *
 * Keys that existed before the account are measured by a walk over the databases in the cron.
 * Another walk, over the sampled keys, finds changes that are not reported to observers: a
 * collection whose table is resized later, and the keys of a slot that was dropped. Main thread
 * only. */
#include "account/account.h"

#include "account/account_priv.h"
#include "base/base.h"
#include "ds/size_sample.h"
#include "engine/engine.h"
#include "engine/hot.h"
#include "engine/memory.h"
#include "store/store.h"

/* TABLE_BYTES: the share of one key in the hash table of its database, whose fill hardly varies. */
enum { TABLE_BYTES = 10, VALUE_SAMPLES = 5, PENDING_MAX = 1024 };

struct account {
    int db_id; /* -1: all */
    accountSelectProc *select;
    void *arg;
    sizeSample sample; /* the groups are databases */
};

typedef struct changedKey {
    uint64_t hash;
    db *d;
} changedKey;

static struct {
    account **list;
    int count;
    bool *wanted; /* per database: true if an account includes it */
    changedKey pending[PENDING_MAX];
    int pending_count;
    /* The walk over keys that existed before the account. */
    int walk_db; /* the number of databases: the walk has ended */
    uint64_t walk_cursor, walk_seen;
    /* The walk over sampled keys. */
    int refresh_account;
    size_t refresh_at;
} accounts;

static void updateWanted(void) {
    hotCheck(threadIsMain());
    check(storeDbCount() > 0);
    if (!accounts.wanted) accounts.wanted = memNewArray(bool, (size_t)storeDbCount());
    for (int i = 0; i < storeDbCount(); i++) accounts.wanted[i] = false;
    for (int k = 0; k < accounts.count; k++) {
        int id = accounts.list[k]->db_id;
        for (int i = 0; i < storeDbCount(); i++) accounts.wanted[i] |= id < 0 || id == i;
    }
}

/* ------------------------------------------------------------------ measuring */

/* `o` is NULL if the key is missing. */
static void measure(const db *d, uint64_t hash, const robj *o) {
    hotCheck(dbId(d) < storeDbCount());
    uint64_t bytes = o ? objectMemoryAt(o, dbId(d), VALUE_SAMPLES) + TABLE_BYTES : 0;
    for (int i = 0; i < accounts.count; i++) {
        account *a = accounts.list[i];
        if (a->db_id >= 0 && a->db_id != dbId(d)) continue;
        if (o && a->select && !a->select(a->arg, dbId(d), objectKey(o))) continue;
        sizeSampleSet(&a->sample, (uint32_t)dbId(d), hash, bytes);
    }
}

void accountsSettle(void) {
    hotCheck(threadIsMain());
    for (int i = 0; i < accounts.pending_count; i++) {
        const changedKey *k = &accounts.pending[i];
        measure(k->d, k->hash, dbPeekHash(k->d, k->hash));
    }
    accounts.pending_count = 0;
    memoryUpdateLimited();
}

/* Ignores changes during a load: a load does not report every key, and the walk after the load
 * measures all keys. */
static void keyChanged(db *d, slice key, const keyEvent *event) {
    (void)event; /* every event leads to a measurement */
    hotCheck(threadIsMain());
    hotCheck(accounts.count > 0);
    if (!accounts.wanted[dbId(d)] || dbKeyspace(d) != keyspaceMain() || engineHot.loading) return;
    changedKey k = {storeHash(key), d};
    int count = accounts.pending_count;
    if (count && accounts.pending[count - 1].hash == k.hash && accounts.pending[count - 1].d == d)
        return;
    if (count == PENDING_MAX) accountsSettle();
    accounts.pending[accounts.pending_count++] = k;
}

static const keyObserver observer = {
    .name = "accounts", .changed = keyChanged, .event = keyChanged};

/* ------------------------------------------------------------------ walks */

static void visit(void *arg, const robj *o) {
    const db *d = arg;
    measure(d, storeHash(objectKey(o)), o);
    accounts.walk_seen++;
}

static void walk(int64_t budget_us) {
    hotCheck(budget_us > 0);
    enum { LOOK = 32 }; /* steps between two reads of the clock */
    int64_t deadline_us = clockMonoUs() + budget_us;
    for (unsigned steps = 1; accounts.walk_db < storeDbCount(); steps++) {
        db *d = storeDb(accounts.walk_db);
        bool skip = !accounts.wanted[accounts.walk_db];
        accounts.walk_cursor = skip ? 0 : dbScan(d, accounts.walk_cursor, -1, visit, d);
        if (!accounts.walk_cursor) accounts.walk_db++;
        if (steps % LOOK == 0 && clockMonoUs() >= deadline_us) return;
    }
}

/* Begins the walk with one step at once, which is enough for small datasets. */
static void beginWalk(void) {
    enum { FIRST_US = 1000 };
    accounts.walk_db = accounts.count ? 0 : storeDbCount();
    accounts.walk_cursor = accounts.walk_seen = 0;
    walk(FIRST_US);
}

static void refresh(int64_t budget_us) {
    hotCheck(budget_us > 0);
    hotCheck(accounts.count > 0);
    enum { LOOK = 32 };
    int64_t deadline_us = clockMonoUs() + budget_us;
    int ended = 0; /* accounts since the last item */
    for (unsigned steps = 1; ended <= accounts.count; steps++) {
        sizeSampleItem item;
        if (accounts.refresh_account >= accounts.count) accounts.refresh_account = 0;
        account *a = accounts.list[accounts.refresh_account];
        if (sizeSampleNext(&a->sample, &accounts.refresh_at, &item)) {
            const db *d = storeDb((int)item.group);
            const robj *o = dbPeekHash(d, item.hash);
            uint64_t bytes = o ? objectMemoryAt(o, dbId(d), VALUE_SAMPLES) + TABLE_BYTES : 0;
            sizeSampleSet(&a->sample, item.group, item.hash, bytes);
            ended = 0;
        } else {
            accounts.refresh_account++;
            accounts.refresh_at = 0;
            ended++;
        }
        if (steps % LOOK == 0 && clockMonoUs() >= deadline_us) return;
    }
}

/* Walks with up to 10 % of the time while some keys have not been measured, then refreshes the
 * measured keys with 0.5 %. */
static void tick(int64_t budget_us) {
    enum { WALK_US = 10000, REFRESH_US = 500 };
    if (!accounts.count || engineHot.current || engineHot.loading) return;
    accountsSettle();
    if (accounts.walk_db < storeDbCount()) {
        walk(budget_us < WALK_US ? budget_us : WALK_US);
    } else {
        refresh(REFRESH_US);
    }
}

static bool isBusy(void) { return accounts.count && accounts.walk_db < storeDbCount(); }

/* ------------------------------------------------------------------ accounts */

account *accountNew(int db_id, accountSelectProc *select, void *arg) {
    check(db_id >= -1);
    check(db_id < storeDbCount());
    account *a = memNew(account);
    *a = (account){.db_id = db_id, .select = select, .arg = arg};
    accounts.list =
        memRealloc(accounts.list, sizeof(*accounts.list) * (size_t)(accounts.count + 1));
    accounts.list[accounts.count++] = a;
    updateWanted();
    if (accounts.count == 1) {
        keyObserverArm(&observer, true);
        memoryUpdateLimited(); /* settles before each batch */
    }
    beginWalk();
    return a;
}

void accountFree(account *a) {
    if (!a) return;
    int i = 0;
    while (accounts.list[i] != a) check(++i < accounts.count);
    accounts.list[i] = accounts.list[--accounts.count];
    accounts.refresh_at = 0;
    sizeSampleClear(&a->sample);
    memFree(a);
    updateWanted();
    if (accounts.count) return;
    keyObserverArm(&observer, false);
    memFree(accounts.list);
    memFree(accounts.wanted);
    accounts.list = NULL;
    accounts.wanted = NULL;
    accounts.pending_count = 0;
}

void accountRestart(account *a) {
    check(a);
    sizeSampleClear(&a->sample);
    beginWalk();
}

bool accountsExist(void) { return accounts.count > 0; }

uint64_t accountBytes(const account *a) { return sizeSampleSum(&a->sample); }

int accountsMeasuredPercent(void) {
    uint64_t keys = 0;
    if (!accounts.count || accounts.walk_db >= storeDbCount()) return 100;
    for (int i = 0; i < storeDbCount(); i++) keys += accounts.wanted[i] ? dbSize(storeDb(i)) : 0;
    return accounts.walk_seen < keys ? (int)(accounts.walk_seen * 99 / keys) : 99;
}

/* ------------------------------------------------------------------ whole databases */

static void forgetDb(int id) {
    check(id >= -1);
    check(id < storeDbCount());
    for (int i = 0; i < accounts.count; i++) {
        account *a = accounts.list[i];
        if (id < 0 || a->db_id == id) {
            sizeSampleClear(&a->sample);
        } else if (a->db_id < 0) {
            sizeSampleRemoveGroup(&a->sample, (uint32_t)id);
        }
    }
}

static void onDb(const dbEvent *e) {
    if (!accounts.count) return;
    switch (e->kind) {
    case DB_FLUSHED: forgetDb(e->db_id); break;
    case DB_SWAPPED:
        forgetDb(e->db_id);
        forgetDb(e->other_id);
        break;
    case DB_LOAD_ENDED: forgetDb(-1); break;
    default: return;
    }
    accounts.refresh_at = 0;
    if (e->kind != DB_FLUSHED || e->swapped) beginWalk();
}

static const tickJob ticks[] = {{"accounts", 100, tick, isBusy}, {0}};
static const keyObserver *const observers[] = {&observer, NULL};

const feature accountFeature = {.name = "accounts",
                                .options = accountOptions,
                                .ticks = ticks,
                                .observers = observers,
                                .on_db = onDb};
