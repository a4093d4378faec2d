/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Limits of the memory of databases and users. Invariant: each limit owns an account (account.h),
 * from quotaApply() on if it was set by a configuration file. Main thread only. */
#include "account/quota.h"

#include <limits.h>
#include <stdlib.h>

#include "account/account_priv.h"
#include "base/base.h"
#include "base/number.h"
#include "engine/lifecycle.h"
#include "engine/memory.h"
#include "engine/reply.h"
#include "engine/transaction.h"
#include "engine/user.h"

struct quota {
    int db_id; /* -1: of a user */
    const user *user;
    uint64_t limit; /* bytes, not 0 */
    account *account;
    uint64_t evicted, refused;
    bool full; /* true: before this batch it was over the limit and no key could be evicted */
};

static struct {
    quota **list; /* of databases, in the order of db_id, then of users */
    int count, db_count;
    bool started, armed;
} quotas;

static quota *quotaOf(int db_id) {
    for (int i = 0; i < quotas.db_count; i++) {
        if (quotas.list[i]->db_id == db_id) return quotas.list[i];
    }
    return NULL;
}

/* ------------------------------------------------------------------ eviction */

static bool fits(const quota *q) { return accountBytes(q->account) <= q->limit; }

/* Evicts keys until the database fits its limit or the deadline has passed. False: no key may be
 * evicted. */
static bool evictFrom(quota *q, int64_t deadline_us) {
    hotCheck(q->account);
    hotCheck(deadline_us > 0);
    enum { LOOK = 16 }; /* keys between two reads of the clock */
    evictRule rule;
    if (q->db_id < 0 || !memoryEvictRule(&rule)) return false;
    rule.only = storeDb(q->db_id);
    for (unsigned victims = 1; !fits(q); victims++) {
        if (!storeEvictOne(keyspaceMain(), &rule)) return false;
        q->evicted++;
        accountsSettle();
        if (victims % LOOK == 0 && clockMonoUs() >= deadline_us) return true;
    }
    return true;
}

static void arm(bool on) {
    if (likely(on == quotas.armed)) return;
    gateArm(&quotaGate, on);
    quotas.armed = on;
}

/* Evicts keys until each database is within its limit, for at most `length_us` in all, and arms the
 * gate, which refuses commands of the databases and users that are still over their limits. Returns
 * true if there was not enough time. */
static bool keepAll(int64_t length_us, bool may_evict) {
    hotCheck(threadIsMain());
    accountsSettle();
    if (!may_evict) return false;
    bool timed_out = false;
    int64_t deadline_us = -1;
    for (int i = 0; i < quotas.count; i++) {
        quota *q = quotas.list[i];
        q->full = false;
        if (likely(fits(q))) continue;
        if (deadline_us < 0) {
            int64_t now_us = clockMonoUs();
            deadline_us = length_us < INT64_MAX - now_us ? now_us + length_us : INT64_MAX;
        }
        q->full = !evictFrom(q, deadline_us);
        timed_out |= !q->full && !fits(q);
    }
    arm(quotas.count > 0);
    return timed_out;
}

static void disarm(void) {
    for (int i = 0; i < quotas.count; i++) quotas.list[i]->full = false;
    arm(false);
}

/* ------------------------------------------------------------------ the gate */

static bool isMove(const commandSpec *spec) { return !strcmp(spec->name, "move"); }

/* True for all commands that change keys, whatever they are called by, except those with
 * CMD_ONLY_FREES. */
static bool mayNeedMemory(const commandSpec *spec) {
    if (spec->flags & (CMD_DENYOOM | CMD_RUNS_QUEUE)) return true;
    return (spec->flags & (CMD_WRITE | CMD_ONLY_FREES)) == CMD_WRITE;
}

/* True if the keys take so much memory that the request of `c` is refused. */
static bool isFull(const quota *q, const ctx *c) {
    const uint64_t bytes = accountBytes(q->account);
    if (likely(bytes <= q->limit)) return false;
    /* Eviction frees memory before the next batch. A script or transaction that has begun within
     * the limit continues, so that it is not half applied, up to twice the limit. */
    evictRule rule;
    bool evicts = q->db_id >= 0 && !q->full && memoryEvictRule(&rule);
    bool inner = c->flags & CTX_IN_MULTI || c->origin != ORIGIN_CLIENT;
    if (evicts || (inner && !q->full)) return bytes / 2 > q->limit;
    /* Commands that Valkey never refuses for lack of memory may exceed the limit by an eighth: if a
     * client could not acknowledge entries of a full stream, the stream would remain full. */
    bool extra = (c->cmd->flags & (CMD_DENYOOM | CMD_WRITE)) == CMD_WRITE && !isMove(c->cmd->spec);
    return !extra || bytes - q->limit > q->limit / 8;
}

/* The database whose number is in an argument; `otherwise` if there is no such database. */
static int dbOfArg(slice arg, int otherwise) {
    int64_t id;
    return numberParseInt(arg, &id) && id >= 0 && id < storeDbCount() ? (int)id : otherwise;
}

/* The database that a request writes to: the selected one, except for MOVE and COPY with DB. */
static int targetOf(const command *cmd, const slice *argv, int argc, int selected) {
    if (isMove(cmd->spec)) return argc > 2 ? dbOfArg(argv[2], selected) : selected;
    if (strcmp(cmd->spec->name, "copy") != 0) return selected;
    for (int i = 3; i + 1 < argc; i++) {
        if (sliceIs(argv[i], "db")) return dbOfArg(argv[i + 1], selected);
    }
    return selected;
}

typedef struct queueLook {
    const ctx *exec;
    int selected;
    quota *full; /* the first full one that would be written to */
} queueLook;

static bool lookAtQueued(void *arg, const command *cmd, const slice *argv, int argc) {
    queueLook *look = arg;
    hotCheck(argc > 0);
    hotCheck(!look->full);
    if (!strcmp(cmd->spec->name, "select") && argc == 2)
        look->selected = dbOfArg(argv[1], look->selected);
    bool is_script = cmd->spec->categories & 1u << CAT_SCRIPTING;
    if (!(cmd->flags & CMD_DENYOOM) && !isMove(cmd->spec) && !is_script) return true;
    quota *q = quotaOf(targetOf(cmd, argv, argc, look->selected));
    if (q && isFull(q, look->exec)) look->full = q;
    return !look->full;
}

/* The first full database that EXEC would write to; NULL: none. Queued scripts are checked as well,
 * as they may need memory. */
static quota *fullQuotaOfQueue(const ctx *c) {
    queueLook look = {.exec = c, .selected = c->who->db_id};
    (void)transactionEach(c->who, lookAtQueued, &look); /* the result is in `look` */
    return look.full;
}

/* The full database that a request would write to; NULL: none. */
static quota *fullDatabase(const ctx *c) {
    if (c->cmd->flags & CMD_RUNS_QUEUE) return fullQuotaOfQueue(c);
    /* A request that MULTI queues may follow a SELECT, so EXEC checks it. */
    bool queued = c->who->flags & SESSION_IN_MULTI && c->origin == ORIGIN_CLIENT &&
                  !(c->flags & CTX_IN_MULTI);
    if (queued) return NULL;
    quota *q = quotaOf(targetOf(c->cmd, c->argv, c->argc, dbId(c->db)));
    return q && isFull(q, c) ? q : NULL;
}

static quota *fullUser(const ctx *c) {
    hotCheck(c->who);
    quota *q = c->who->user ? c->who->user->quota : NULL;
    if (!q || isMove(c->cmd->spec) || !isFull(q, c)) return NULL;
    return c->cmd->flags & CMD_RUNS_QUEUE && !transactionHas(c->who, CMD_DENYOOM) ? NULL : q;
}

/* Measures keys that earlier commands of the batch, script or transaction have changed, then
 * decides. */
static gateVerdict admit(ctx *c) {
    hotCheck(quotas.count > 0);
    accountsSettle();
    quota *q = fullDatabase(c);
    if (q) {
        replyError(c, SLICE("OOM command not allowed when the database > 'db-maxmemory'."));
    } else {
        q = fullUser(c);
        if (!q) return GATE_PASS;
        replyError(c, SLICE("OOM command not allowed when the keys of the user > 'maxmemory' of "
                            "ACL SETUSER."));
    }
    q->refused++;
    return GATE_REFUSED;
}

const gate quotaGate = {.name = "db-memory",
                        .selects = mayNeedMemory,
                        .admit = admit,
                        .again = true,
                        .asked_of_writers = true,
                        .origins = GATE_FOR_USERS | 1u << ORIGIN_PRIMARY | 1u << ORIGIN_IMPORT};

/* ------------------------------------------------------------------ users */

static void insertAt(int at, quota *q) {
    check(at >= 0);
    check(at <= quotas.count);
    quotas.list = memRealloc(quotas.list, sizeof(*quotas.list) * (size_t)(quotas.count + 1));
    memmove(quotas.list + at + 1, quotas.list + at,
            sizeof(*quotas.list) * (size_t)(quotas.count++ - at));
    quotas.list[at] = q;
    if (q->db_id >= 0) quotas.db_count++;
}

static void removeAt(int at) {
    check(at >= 0);
    check(at < quotas.count);
    quota *q = quotas.list[at];
    memmove(quotas.list + at, quotas.list + at + 1,
            sizeof(*quotas.list) * (size_t)(--quotas.count - at));
    if (q->db_id >= 0) quotas.db_count--;
    accountFree(q->account);
    memFree(q);
    if (quotas.count) return;
    memFree(quotas.list);
    quotas.list = NULL;
    arm(false);
}

quota *quotaNew(const user *u, accountSelectProc *select, void *arg, uint64_t limit) {
    check(limit > 0);
    quota *q = memNew(quota);
    *q = (quota){.db_id = -1, .user = u, .limit = limit};
    q->account = accountNew(-1, select, arg);
    insertAt(quotas.count, q);
    return q;
}

void quotaFree(quota *q) {
    if (!q) return;
    int at = 0;
    while (quotas.list[at] != q) check(++at < quotas.count);
    removeAt(at);
}

void quotaSetLimit(quota *q, uint64_t limit) {
    check(limit > 0);
    q->limit = limit;
}

void quotaRestart(quota *q) { accountRestart(q->account); }

/* ------------------------------------------------------------------ the directive */

typedef struct dbLimit {
    int db_id;
    uint64_t bytes;
} dbLimit;

static int compareDbs(const void *a, const void *b) {
    int x = ((const dbLimit *)a)->db_id, y = ((const dbLimit *)b)->db_id;
    return (x > y) - (x < y);
}

/* Adds a limit, replaces that of the same database, or removes it if it is 0. */
static void put(dbLimit *list, int *count, int db_id, uint64_t bytes) {
    int at = 0;
    while (at < *count && list[at].db_id != db_id) at++;
    if (at == *count) list[(*count)++] = (dbLimit){.db_id = db_id};
    list[at].bytes = bytes;
    if (!bytes) list[at] = list[--*count];
}

/* Replaces the list of limits. Databases that keep a limit keep their accounts and statistics;
 * quotaApply() creates the accounts of the others. */
static void replaceLimits(const dbLimit *list, int count) {
    check(count >= 0);
    int at = 0;
    for (int i = 0; i < count || at < quotas.db_count;) {
        int old = at < quotas.db_count ? quotas.list[at]->db_id : INT_MAX;
        if (i == count || old < list[i].db_id) {
            removeAt(at);
            continue;
        }
        if (at == quotas.db_count || old > list[i].db_id) {
            quota *q = memNew(quota);
            *q = (quota){.db_id = list[i].db_id};
            insertAt(at, q);
        }
        quotas.list[at++]->limit = list[i++].bytes;
    }
}

static status setList(const slice *words, int count, bool more, reason *why) {
    if (count % 2)
        return reasonSet(why, ERR_SYNTAX,
                         "Invalid db-maxmemory parameters: a database and bytes, in pairs");
    dbLimit *list = memNewArray(dbLimit, (size_t)(quotas.db_count + count / 2 + 1));
    int used = 0;
    for (int i = 0; more && i < quotas.db_count; i++)
        put(list, &used, quotas.list[i]->db_id, quotas.list[i]->limit);
    status st = OK;
    for (int i = 0; i + 1 < count && st == OK; i += 2) {
        int64_t id;
        uint64_t bytes;
        bool exists = numberParseInt(words[i], &id) && id >= 0 && id < INT_MAX &&
                      (!quotas.started || id < engineDatabaseCount());
        if (exists && numberParseMemory(words[i + 1], &bytes)) {
            put(list, &used, (int)id, bytes);
        } else {
            st = reasonSet(why, ERR_SYNTAX, "Invalid %s in db-maxmemory",
                           exists ? "number of bytes" : "database");
        }
    }
    check(used <= quotas.db_count + count / 2);
    qsort(list, (size_t)used, sizeof(*list), compareDbs);
    if (st == OK) replaceLimits(list, used);
    memFree(list);
    return st;
}

static void getList(str *out) {
    for (int i = 0; i < quotas.db_count; i++)
        strAppendFormat(out, "%s%d %llu", i ? " " : "", quotas.list[i]->db_id,
                        (unsigned long long)quotas.list[i]->limit);
}

const configSpecial quotaDirective = {.set = setList, .get = getList};

status quotaApply(reason *why) {
    hotCheck(threadIsMain());
    (void)why; /* cannot fail */
    for (int i = 0; i < quotas.db_count; i++) {
        quota *q = quotas.list[i];
        if (!q->account) q->account = accountNew(q->db_id, NULL, NULL);
        if (!fits(q))
            logWarning("WARNING: database %d takes %llu bytes, more than its db-maxmemory of %llu.",
                       q->db_id, (unsigned long long)accountBytes(q->account),
                       (unsigned long long)q->limit);
    }
    disarm(); /* the limits are checked before the next requests, and in the next tick */
    memoryUpdateLimited();
    return OK;
}

static uint64_t gatesOfStart(void) { return quotas.count ? gateMask(&quotaGate) : 0; }

static const memoryParts parts = {
    .exist = accountsExist, .keep = keepAll, .disarm = disarm, .gates_of_start = gatesOfStart};

static status init(reason *why) {
    memorySetParts(&parts);
    for (int i = 0; i < quotas.db_count; i++) {
        if (quotas.list[i]->db_id < engineDatabaseCount()) continue;
        return reasonSet(why, ERR_RANGE,
                         "db-maxmemory is set for database %d, which does not exist",
                         quotas.list[i]->db_id);
    }
    quotas.started = true;
    return quotaApply(why);
}

/* ------------------------------------------------------------------ reports */

int quotaCount(void) { return quotas.count; }

void quotaReadOf(const quota *q, quotaReport *out) {
    *out = (quotaReport){.db_id = q->db_id,
                         .user = q->user ? q->user->name : SLICE(""),
                         .bytes = accountBytes(q->account),
                         .limit = q->limit,
                         .evicted = q->evicted,
                         .refused = q->refused};
}

void quotaRead(int index, quotaReport *out) {
    check(index >= 0);
    check(index < quotas.count);
    quotaReadOf(quotas.list[index], out);
}

/* The name of a user is the last field, because it may contain commas. */
static void printMemory(str *out) {
    if (!quotas.count) return;
    accountsSettle();
    int measured = accountsMeasuredPercent();
    for (int i = 0; i < quotas.count; i++) {
        quotaReport r;
        quotaRead(i, &r);
        strAppendFormat(out, "%s%d:used=%llu,limit=%llu,measured_perc=%d",
                        r.db_id < 0 ? "user_maxmemory_" : "maxmemory_db",
                        r.db_id < 0 ? i - quotas.db_count : r.db_id, (unsigned long long)r.bytes,
                        (unsigned long long)r.limit, measured);
        if (r.db_id >= 0) strAppendFormat(out, ",evicted=%llu", (unsigned long long)r.evicted);
        strAppendFormat(out, ",refused=%llu", (unsigned long long)r.refused);
        if (r.db_id < 0) {
            strAppendText(out, ",name=");
            strAppendSlice(out, r.user);
        }
        strAppendText(out, "\r\n");
    }
}

static void resetStats(void) {
    for (int i = 0; i < quotas.count; i++) quotas.list[i]->evicted = quotas.list[i]->refused = 0;
}

static status shutdown(uint32_t flags, reason *why) {
    (void)flags, (void)why; /* cannot fail */
    replaceLimits(NULL, 0);
    return OK;
}

static const infoSection sections[] = {
    {"memory", "# Memory", INFO_NORMAL, INFO_MEMORY, printMemory}, {0}};
static const gate *const gates[] = {&quotaGate, NULL};

const feature quotaFeature = {.name = "quota",
                              .info = sections,
                              .gates = gates,
                              .init = init,
                              .on_stats_reset = resetStats,
                              .on_shutdown = shutdown};
