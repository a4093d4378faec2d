/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Keeps the names of skipped keys, and removes those that cannot exist on the other server any more
 * (skipped_keys.h).
 *
 * The commands of a stream have succeeded on the server that sent them. Therefore, if a command
 * that needs a certain type names a key with a placeholder, this key has been removed on that
 * server, or has another type now: the placeholder is removed before the command runs. The same
 * holds for keys that must not exist for a command to succeed: RENAMENX, COPY and RESTORE without
 * REPLACE, MOVE, SETNX.
 *
 * The append only file has no placeholders. A command that moves or copies a placeholder is written
 * as the deletion of the key that it replaces.
 *
 * Invariant: the gate is armed if there is a placeholder. */
#include "persist/skipped_keys.h"

#include <string.h>

#include "base/base.h"
#include "base/log.h"
#include "base/number.h"
#include "engine/hot.h"
#include "engine/hooks.h"
#include "engine/propagate.h"
#include "engine/reply.h"
#include "engine/server_event.h"
#include "persist/persist.h"
#include "persist/skipped_items.h"
#include "store/keyspace.h"
#include "store/placeholder.h"
#include "store/store.h"

static struct {
    uint64_t dropped;  /* placeholders removed when this server became a primary */
    uint64_t replaced; /* placeholders removed by commands of the stream */
    uint64_t unknown;  /* keys beyond PLACEHOLDERS_MAX */
} counts;

static bool armed; /* skippedKeysGate */

/* ------------------------------------------------------------------ single keys */

static bool isPlaceholder(db *d, slice key) {
    const robj *o = dbFindQuiet(d, key, storeHash(key), lookAtAll());
    return o && objectIsPlaceholder(o);
}

static void removePlaceholder(db *d, slice key) {
    if (!isPlaceholder(d, key)) return;
    (void)dbDelete(d, key, storeHash(key), lookAtAll()); /* it exists */
    counts.replaced++;
}

robj *skippedKeysNew(slice key, const char *type) {
    hotCheck(threadIsMain());
    robj *o = placeholderNew(key, type);
    if (!o) counts.unknown++;
    return o;
}

void skippedKeysChanged(ctx *c, const char *type) {
    hotCheck(c->argc > 1);
    slice key = c->argv[1];
    dbPosition at;
    robj *o = dbFind(c->db, key, storeHash(key), lookAtAll(), &at);
    if (o && objectIsPlaceholder(o) && !placeholderHasType(o, type)) {
        removePlaceholder(c->db, key); /* the other server has removed the key meanwhile */
        o = dbFind(c->db, key, storeHash(key), lookAtAll(), &at);
    }
    if (o && objectIsPlaceholder(o)) {
        if (!skippedItemsChange(c, o)) removePlaceholder(c->db, key);
        return;
    }
    if (o || skippedItemsAreRemoved(c)) return;
    o = skippedKeysNew(key, type);
    if (!o) return;
    placeholderItemsBegin(o);
    check(skippedItemsChange(c, o)); /* no command that adds elements leaves none */
    dbPlace(c->db, &at, o);
}

/* ------------------------------------------------------------------ the gate */

static bool hasWord(const ctx *c, int from, const char *word) {
    for (int i = from; i < c->argc; i++) {
        if (ctxArgIs(c, i, word)) return true;
    }
    return false;
}

/* The database that COPY or MOVE names in argument `index`; that of the session if there is no
 * valid number. */
static db *targetDb(const ctx *c, int index) {
    int64_t id;
    if (index >= c->argc || !numberParseInt(c->argv[index], &id)) return c->db;
    return id >= 0 && id < storeDbCount() ? keyspaceDb(keyspaceMain(), (int)id) : c->db;
}

/* If the key in argument 1 is a placeholder, propagates the deletion of the key `to` of database
 * `where` in place of the command; `to` NULL: propagates nothing. */
static void propagateInstead(ctx *c, const db *where, const slice *to) {
    if (!isPlaceholder(c->db, c->argv[1])) return;
    c->flags |= CTX_NO_PROPAGATE;
    if (!to || !engineHot.sinks) return;
    slice words[] = {SLICE("DEL"), *to};
    propagateTo at = propagateToOf(c);
    at.db_id = dbId(where);
    propagateCopy(at, COUNT_OF(words), words);
}

static void onRename(ctx *c) { propagateInstead(c, c->db, &c->argv[2]); }

static void onRenamenx(ctx *c) {
    removePlaceholder(c->db, c->argv[2]);
    propagateInstead(c, c->db, NULL);
}

static void onCopy(ctx *c) {
    int index = 3;
    while (index < c->argc && !ctxArgIs(c, index, "db")) index++;
    db *to = targetDb(c, index + 1);
    if (!hasWord(c, 3, "replace")) removePlaceholder(to, c->argv[2]);
    propagateInstead(c, to, &c->argv[2]);
}

static void onMove(ctx *c) {
    removePlaceholder(targetDb(c, 2), c->argv[1]);
    propagateInstead(c, c->db, NULL);
}

static void onRestore(ctx *c) {
    if (!hasWord(c, 4, "replace")) removePlaceholder(c->db, c->argv[1]);
}

static void onAny(ctx *c) { (void)c; /* this command works on keys of any type */ }

static const struct {
    const char *name;
    void (*act)(ctx *c);
} acts[] = {
    {"del", onAny},      {"unlink", onAny},        {"expire", onAny},  {"pexpire", onAny},
    {"expireat", onAny}, {"pexpireat", onAny},     {"persist", onAny}, {"rename", onRename},
    {"copy", onCopy},    {"renamenx", onRenamenx}, {"move", onMove},   {"restore", onRestore},
};

/* Removes the placeholders of all keys of a command that needs a certain type. */
static void onOther(ctx *c) {
    keyPosition keys[64];
    int count = commandKeys(c->cmd, c->argv, c->argc, keys, COUNT_OF(keys));
    if (count >
        (int)COUNT_OF(keys)) { /* all arguments: those that are no keys are no placeholders */
        for (int i = 1; i < c->argc; i++) removePlaceholder(c->db, c->argv[i]);
        return;
    }
    for (int i = 0; i < count; i++) removePlaceholder(c->db, c->argv[keys[i].arg_index]);
}

static bool selectsWrites(const commandSpec *spec) { return spec->flags & CMD_WRITE; }

static gateVerdict act(ctx *c) {
    hotCheck(c->cmd);
    if (placeholderCount() == 0) return GATE_PASS;
    for (size_t i = 0; i < COUNT_OF(acts); i++) {
        if (strcmp(c->cmd->spec->name, acts[i].name) != 0) continue;
        acts[i].act(c);
        return GATE_PASS;
    }
    onOther(c);
    return GATE_PASS;
}

const gate skippedKeysGate = {.name = "skipped keys",
                              .selects = selectsWrites,
                              .admit = act,
                              .again = true,
                              .origins = 1u << ORIGIN_PRIMARY | 1u << ORIGIN_AOF};

/* ------------------------------------------------------------------ the end */

static void addName(void *arg, const robj *o) {
    if (!objectIsPlaceholder(o)) return;
    slice key = objectKey(o);
    str *names = arg;
    strAppend(names, &key.len, sizeof(key.len));
    strAppendSlice(names, key);
}

static void dropFrom(db *d) {
    str names = STR_EMPTY;
    dbEach(d, -1, addName, &names);
    for (size_t at = 0; at < names.len;) {
        slice key;
        memcpy(&key.len, names.ptr + at, sizeof(key.len));
        key.ptr = names.ptr + at + sizeof(key.len);
        (void)dbDelete(d, key, storeHash(key), lookAtAll()); /* it exists */
        at += sizeof(key.len) + key.len;
        counts.dropped++;
    }
    strFree(&names);
}

void skippedKeysDrop(void) {
    hotCheck(threadIsMain());
    if (!armed) return; /* there was no placeholder */
    gateArm(&skippedKeysGate, false);
    armed = false;
    if (placeholderCount() == 0) return;
    uint64_t before = counts.dropped;
    for (int i = 0; i < storeDbCount(); i++) dropFrom(keyspaceDb(keyspaceMain(), i));
    logWarning("The names of %llu keys whose values were skipped are not kept any more",
               (unsigned long long)(counts.dropped - before));
}

static void onRole(const serverEvent *e) {
    if (e->kind == SERVER_ROLE && !e->role.is_replica) skippedKeysDrop();
}

static void armGate(void) {
    if (armed) return;
    gateArm(&skippedKeysGate, true);
    armed = true;
}

void skippedKeysInit(void) {
    serverEventsListen(onRole, 1u << SERVER_ROLE);
    placeholdersSetProc(armGate);
}

void skippedKeysPrintInfo(str *out) {
    hotCheck(threadIsMain());
    uint64_t kept = placeholderCount();
    if (!kept && !counts.dropped && !counts.replaced && !counts.unknown) return;
    strAppendField(out, "foreign_keys_known", kept);
    strAppendField(out, "foreign_keys_unknown", counts.unknown);
    strAppendField(out, "foreign_keys_replaced", counts.replaced);
    strAppendField(out, "foreign_keys_dropped", counts.dropped);
}
