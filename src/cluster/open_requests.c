/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Decides where a request is served if its slot is being moved: here, at the other node, or later.
 *
 * Invariant: the check for keys neither deletes expired keys nor counts as an access to them. */
#include "cluster/open_requests.h"

#include "base/base.h"
#include "base/number.h"
#include "cluster/migrate.h"
#include "engine/transaction.h"
#include "store/store.h"

enum { KEYS_ON_STACK = 16 };

typedef struct presence {
    const ctx *c;
    db *db;
    slice first; /* the first key; `ptr` NULL: none so far */
    bool several, databases;
    int here, missing;
} presence;

/* ------------------------------------------------------------------ one key */

/* True if the key is among those of the scripts that run the command. */
static bool isDeclared(const ctx *c, slice key) {
    for (const ctx *outer = c->outer; outer; outer = outer->outer) {
        keyPosition few[KEYS_ON_STACK];
        int count;
        keyPosition *keys =
            commandAllKeys(outer->cmd, outer->argv, outer->argc, few, KEYS_ON_STACK, &count);
        bool found = false;
        for (int i = 0; i < count && !found; i++)
            found = sliceEqual(outer->argv[keys[i].arg_index], key);
        if (keys != few) memFree(keys);
        if (found) return true;
    }
    return false;
}

static bool isStored(const presence *p, slice key) {
    const robj *o = dbPeek(p->db, key, storeHash(key));
    return o && !(objectHasExpire(o) && lookIsPast(p->c->look, objectExpire(o)));
}

static void look(presence *p, slice key) {
    if (!p->first.ptr) {
        p->first = key;
    } else if (!sliceEqual(p->first, key)) {
        p->several = true;
    }
    if (isStored(p, key) || migrateHolds(p->db, key) || isDeclared(p->c, key)) {
        p->here++;
    } else {
        p->missing++;
    }
}

/* ------------------------------------------------------------------ one command */

/* The key is in two databases, in one of which it is missing. */
static bool usesDatabases(const db *d, const command *cmd, const slice *argv, int argc) {
    int64_t db_id;
    if (sliceIs(cmd->name, "move")) return true;
    if (!sliceIs(cmd->name, "copy")) return false;
    bool other = false; /* by the last option */
    for (int i = 3; i + 1 < argc; i++) {
        if (!sliceEqualFold(argv[i], SLICE("db"))) continue;
        other = numberParseInt(argv[++i], &db_id) && db_id != dbId(d);
    }
    return other;
}

static bool lookAtCommand(void *arg, const command *cmd, const slice *argv, int argc) {
    presence *p = arg;
    keyPosition few[KEYS_ON_STACK];
    int count;
    int64_t db_id;
    keyPosition *keys = commandAllKeys(cmd, argv, argc, few, KEYS_ON_STACK, &count);
    for (int i = 0; i < count; i++) {
        if (!(keys[i].flags & KEY_NOT_KEY)) look(p, argv[keys[i].arg_index]);
    }
    if (keys != few) memFree(keys);
    if (count > 0 && usesDatabases(p->db, cmd, argv, argc)) p->databases = true;
    /* Queued: later commands are about another database. */
    if (sliceIs(cmd->name, "select") && argc == 2 && numberParseInt(argv[1], &db_id) &&
        db_id >= 0 && db_id < storeDbCount())
        p->db = storeDb((int)db_id);
    return true;
}

openPresence openRequestPresence(const ctx *c) {
    presence p = {.c = c, .db = c->db};
    hotCheck(c->db);
    (void)lookAtCommand(&p, c->cmd, c->argv, c->argc); /* for EXEC: the keys of its conditions */
    if (c->cmd->flags & CMD_RUNS_QUEUE) (void)transactionEach(c->who, lookAtCommand, &p);
    hotCheck(p.first.ptr || p.here + p.missing == 0);
    if (p.databases) return OPEN_SOME_HERE;
    if (!p.missing) return OPEN_ALL_HERE;
    if (!p.several) return OPEN_ONE_MISSING;
    return p.here ? OPEN_SOME_HERE : OPEN_NONE_HERE;
}

bool openRequestUsesDatabases(const ctx *c) {
    hotCheck(c->db);
    return usesDatabases(c->db, c->cmd, c->argv, c->argc);
}

/* ------------------------------------------------------------------ ASKING */

/* It is good for one command, or for a transaction that follows. */
static void endAsking(ctx *c) {
    session *s = c->who;
    if (c->outer || s->flags & SESSION_IN_MULTI) return;
    s->flags &= ~SESSION_ASKING;
    commandObserverArmSession(s, &openRequestsObserver, false);
}

static void afterCommand(ctx *c, int64_t duration_ns) {
    (void)duration_ns;
    if (!sliceIs(c->cmd->name, "asking")) endAsking(c);
}

static void afterRefusal(ctx *c, size_t pending) {
    (void)pending;
    endAsking(c);
}

const commandObserver openRequestsObserver = {
    .name = "asking", .after = afterCommand, .refused = afterRefusal};

void openRequestsAsking(session *s) {
    hotCheck(!(s->flags & SESSION_INTERNAL));
    s->flags |= SESSION_ASKING;
    commandObserverArmSession(s, &openRequestsObserver, true);
}
