/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Which elements the commands of vector sets and arrays add and remove (skipped_items.h), so that
 * the name of a skipped value is removed with the last element. The commands of a stream have
 * succeeded on the server that sent them. Invariant: if it is not certain which elements a command
 * leaves, they become unknown, and the name stays until a command deletes the key. */
#include "persist/skipped_items.h"

#include "base/base.h"
#include "base/hash.h"
#include "base/number.h"
#include "engine/reply.h"
#include "store/placeholder.h"

/* ------------------------------------------------------------------ vector sets */

static int64_t nameItem(slice name) { return (int64_t)hashBytes(name.ptr, name.len); }

/* VADD key [REDUCE dimensions] (FP32 vector | VALUES count number ...) element ... */
static void addVector(const ctx *c, robj *o) {
    int at = 2;
    int64_t count = 0;
    if (at < c->argc && ctxArgIs(c, at, "reduce")) at += 2;
    bool valid = at + 1 < c->argc;
    if (valid && ctxArgIs(c, at, "values")) {
        valid = numberParseInt(c->argv[at + 1], &count) && count > 0 && count < c->argc - at - 2;
        at += 2 + (valid ? (int)count : 0);
    } else {
        valid = valid && ctxArgIs(c, at, "fp32") && at + 2 < c->argc;
        at += 2;
    }
    if (valid) {
        placeholderItemAdd(o, nameItem(c->argv[at]));
    } else {
        placeholderItemsForget(o);
    }
}

/* VREM key element */
static void removeVector(const ctx *c, robj *o) {
    for (int i = 2; i < c->argc; i++) {
        int64_t item = nameItem(c->argv[i]);
        placeholderItemsRemove(o, item, item);
    }
}

/* ------------------------------------------------------------------ arrays */

/* Indexes are up to 2^64 - 2; as elements they are in the same order. */
static int64_t indexItem(uint64_t index) { return (int64_t)(index ^ (uint64_t)INT64_MIN); }

/* ARSET key index value [value ...] */
static void setElements(const ctx *c, robj *o) {
    uint64_t index;
    if (c->argc < 4 || !numberParseUint(c->argv[2], &index)) {
        placeholderItemsForget(o);
        return;
    }
    for (int i = 3; i < c->argc; i++) placeholderItemAdd(o, indexItem(index++));
}

/* ARMSET key index value [index value ...] */
static void setMany(const ctx *c, robj *o) {
    uint64_t index;
    if (c->argc < 4) placeholderItemsForget(o);
    for (int i = 2; i < c->argc; i += 2) {
        if (numberParseUint(c->argv[i], &index)) {
            placeholderItemAdd(o, indexItem(index));
        } else {
            placeholderItemsForget(o);
        }
    }
}

/* ARDEL key index [index ...] */
static void deleteElements(const ctx *c, robj *o) {
    uint64_t index;
    for (int i = 2; i < c->argc; i++) {
        if (numberParseUint(c->argv[i], &index)) {
            placeholderItemsRemove(o, indexItem(index), indexItem(index));
        } else {
            placeholderItemsForget(o);
        }
    }
}

/* ARDELRANGE key start end [start end ...] */
static void deleteRanges(const ctx *c, robj *o) {
    uint64_t from, to;
    for (int i = 2; i + 1 < c->argc; i += 2) {
        bool valid = numberParseUint(c->argv[i], &from) && numberParseUint(c->argv[i + 1], &to);
        if (valid && from <= to) {
            placeholderItemsRemove(o, indexItem(from), indexItem(to));
        } else {
            placeholderItemsForget(o);
        }
    }
}

/* ------------------------------------------------------------------ commands */

static void changeNone(const ctx *c, robj *o) {
    (void)c, (void)o; /* it changes an element that exists */
}

/* ARINSERT, ARRING and ARSEEK depend on a cursor, and values of modules have no such elements. */
static void changeUnknown(const ctx *c, robj *o) {
    (void)c; /* see above */
    placeholderItemsForget(o);
}

typedef struct itemCommand {
    const char *name;
    void (*act)(const ctx *c, robj *o);
    bool removes;
} itemCommand;

static const itemCommand *commandOf(const ctx *c) {
    static const itemCommand commands[] = {
        {"vadd", addVector, false},         {"vrem", removeVector, true},
        {"vsetattr", changeNone, false},    {"arset", setElements, false},
        {"armset", setMany, false},         {"ardel", deleteElements, true},
        {"ardelrange", deleteRanges, true},
    };
    static const itemCommand other = {"", changeUnknown, false};
    hotCheck(c->argc > 0);
    for (size_t i = 0; i < COUNT_OF(commands); i++) {
        if (sliceIs(c->argv[0], commands[i].name)) return &commands[i];
    }
    return &other;
}

/* JSON.DEL and JSON.FORGET of the whole document. */
static bool deletesKey(const ctx *c) {
    if (!sliceIs(c->argv[0], "json.del") && !sliceIs(c->argv[0], "json.forget")) return false;
    return c->argc == 2 || (c->argc == 3 && (ctxArgIs(c, 2, "$") || ctxArgIs(c, 2, ".")));
}

bool skippedItemsAreRemoved(const ctx *c) { return commandOf(c)->removes || deletesKey(c); }

bool skippedItemsChange(const ctx *c, robj *o) {
    hotCheck(objectIsPlaceholder(o));
    if (deletesKey(c)) return false;
    const itemCommand *command = commandOf(c);
    command->act(c, o);
    return !command->removes || !placeholderIsEmpty(o);
}
