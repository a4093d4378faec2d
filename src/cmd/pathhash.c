/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Path hash commands that write, and those that read single paths; searches by prefix are in
 * pathhash_search.c. Without `pathhash-keep-empty` a key is deleted with its last path. Main thread
 * only. */
#include "base/base.h"
#include "base/number.h"
#include "cmd/cmd_priv.h"
#include "cmd/collection.h"
#include "cmd/hash_priv.h"
#include "cmd/pathhash_priv.h"
#include "cmd/procs.h"

bool pathHashArgFields(ctx *c, int arg_index, int64_t *out) {
    hotCheck(arg_index < c->argc);
    return ctxArgIntIn(c, arg_index, 1, INT64_MAX, out,
                       "ERR value is out of range, must be positive");
}

bool pathHashFindRead(ctx *c, const pathHash **out) {
    robj *o;
    bool found = collectionFindRead(c, 1, TYPE_PATHHASH, &o);
    *out = found && o ? pathHashOf(o) : NULL;
    return found;
}

/* *out is NULL if the key is missing. */
static bool findWrite(ctx *c, pathHash **out) {
    robj *o;
    bool found = collectionFindWrite(c, 1, TYPE_PATHHASH, &o);
    *out = found && o ? pathHashOf(o) : NULL;
    return found;
}

/* ------------------------------------------------------------------ setting */

/* The part of a request that sets fields of a path. */
typedef struct pathGroup {
    slice path;
    const slice *words; /* fields and values */
    int64_t fields;
} pathGroup;

static void setGroup(pathHash *map, const pathGroup *g) {
    hotCheck(g->fields > 0);
    packLimits limits = hashLimits();
    pathHashSet(map, g->path, g->words, (size_t)g->fields * 2, &limits);
}

/* Stores a new path hash, after it has got its fields; `map` NULL: the key is missing. */
static pathHash *beginMap(const ctx *c, pathHash *map, robj **created) {
    *created = map ? NULL : pathHashObjectNew(c->argv[1]);
    return map ? map : pathHashOf(*created);
}

static void endMap(ctx *c, robj *created) {
    if (created) collectionPlace(c, 1, created);
}

enum { CONDITION_NONE, CONDITION_FNX, CONDITION_FXX };

/* Parses [FNX | FXX] FIELDS n field value ... of PHSET. False: the error was replied. */
static bool parseSet(ctx *c, pathGroup *g, int *condition) {
    int i = 3;
    *condition = CONDITION_NONE;
    for (; i < c->argc && !ctxArgIs(c, i, "FIELDS"); i++) {
        int given = ctxArgIs(c, i, "FNX")   ? CONDITION_FNX
                    : ctxArgIs(c, i, "FXX") ? CONDITION_FXX
                                            : CONDITION_NONE;
        if (!given || *condition) break;
        *condition = given;
    }
    *g = (pathGroup){.path = c->argv[2]};
    if (i + 1 >= c->argc || !ctxArgIs(c, i, "FIELDS")) {
        replyError(c, ERR_SYNTAX_TEXT);
        return false;
    }
    if (!pathHashArgFields(c, i + 1, &g->fields)) return false;
    int words = c->argc - (i + 2);
    if (words % 2 != 0 || g->fields != words / 2) {
        replyError(c, ERR_SYNTAX_TEXT);
        return false;
    }
    g->words = c->argv + i + 2;
    return true;
}

/* True if none of the fields (FNX), or each one (FXX) exists. */
static bool meets(const pathHash *map, const pathGroup *g, int condition) {
    if (condition == CONDITION_NONE) return true;
    const pathFields *fields = map ? pathHashFind(map, g->path) : NULL;
    for (int64_t i = 0; i < g->fields; i++) {
        char digits[NUMBER_TEXT_MAX];
        slice value;
        bool exists = fields && pathFieldsGet(fields, g->words[2 * i], digits, &value);
        if (exists != (condition == CONDITION_FXX)) return false;
    }
    return true;
}

/* PHSET key path [FNX | FXX] FIELDS numfields field value [field value ...]. Reply: OK, or null if
 * the condition is not met. */
void phsetCommand(ctx *c) {
    hotCheck(c->argc >= 7);
    pathGroup g;
    int condition;
    pathHash *map;
    robj *created;
    if (!parseSet(c, &g, &condition) || !findWrite(c, &map)) return;
    if (!meets(map, &g, condition)) {
        replyNull(c);
        return;
    }
    map = beginMap(c, map, &created);
    setGroup(map, &g);
    endMap(c, created);
    collectionChanged(c, c->argv[1], &eventPhset, (uint64_t)g.fields);
    replyOk(c);
}

/* Parses the group at argument *i, with `words` words for each field, and goes on to the next one.
 * False: the error was replied. */
static bool parseGroup(ctx *c, int *i, int words, pathGroup *g) {
    hotCheck(*i < c->argc);
    hotCheck(words > 0);
    if (c->argc - *i < 3 + words) {
        replyErrorArity(c);
        return false;
    }
    if (!ctxArgIs(c, *i + 1, "FIELDS")) {
        replyError(c, ERR_SYNTAX_TEXT);
        return false;
    }
    *g = (pathGroup){.path = c->argv[*i], .words = c->argv + *i + 3};
    if (!pathHashArgFields(c, *i + 2, &g->fields)) return false;
    if (g->fields > (c->argc - *i - 3) / words) {
        replyErrorArity(c);
        return false;
    }
    *i += 3 + (int)g->fields * words;
    return true;
}

/* PHMSET key path FIELDS numfields field value [field value ...] [path FIELDS ...]. Reply: OK. */
void phmsetCommand(ctx *c) {
    hotCheck(c->argc >= 7);
    pathGroup g;
    pathHash *map;
    robj *created;
    uint64_t fields = 0;
    for (int i = 2; i < c->argc; fields += (uint64_t)g.fields)
        if (!parseGroup(c, &i, 2, &g)) return;
    if (!findWrite(c, &map)) return;
    map = beginMap(c, map, &created);
    for (int i = 2; i < c->argc;) {
        check(parseGroup(c, &i, 2, &g)); /* as before */
        setGroup(map, &g);
    }
    endMap(c, created);
    collectionChanged(c, c->argv[1], &eventPhmset, fields);
    replyOk(c);
}

/* ------------------------------------------------------------------ removing */

/* Signals that `n` fields or paths were removed; the key is deleted with the last path. */
static void reduced(ctx *c, const pathHash *map, const keyEvent *event, uint64_t n) {
    bool emptied = pathHashCount(map) == 0 && !cmdConf.pathhash_keep_empty;
    if (n) collectionReduced(c, 1, event, n, emptied);
}

/* PHDEL key path [field ...]. Reply: 1 if the path was removed, or the number of fields. */
void phdelCommand(ctx *c) {
    hotCheck(c->argc >= 3);
    pathHash *map;
    if (!findWrite(c, &map)) return;
    uint64_t deleted = 0;
    if (map && c->argc == 3) {
        deleted = pathHashDelete(map, c->argv[2]);
    } else if (map) {
        deleted = pathHashDeleteFields(map, c->argv[2], c->argv + 3, (size_t)c->argc - 3);
    }
    if (map) reduced(c, map, &eventPhdel, deleted);
    replyInteger(c, (int64_t)deleted);
}

/* PHDELPREFIX key prefix. Reply: the number of paths removed. */
void phdelprefixCommand(ctx *c) {
    hotCheck(c->argc == 3);
    pathHash *map;
    if (!findWrite(c, &map)) return;
    uint64_t deleted = map ? pathHashDeletePrefix(map, c->argv[2]) : 0;
    if (map) reduced(c, map, &eventPhdelprefix, deleted);
    replyInteger(c, (int64_t)deleted);
}

/* ------------------------------------------------------------------ reading */

void pathHashReplyAll(ctx *c, const pathFields *fields) {
    if (!fields) {
        replyMap(c, 0);
        return;
    }
    pathFieldsIterator it;
    hashPair pair;
    replyMap(c, (int64_t)pathFieldsCount(fields));
    pathFieldsIteratorInit(&it, fields);
    while (pathFieldsNext(&it, &pair)) {
        replyBulk(c, pair.field);
        replyBulk(c, pair.value);
    }
    pathFieldsIteratorClear(&it);
}

static void replyValue(ctx *c, const pathFields *fields, slice name) {
    char digits[NUMBER_TEXT_MAX];
    slice value;
    if (fields && pathFieldsGet(fields, name, digits, &value)) {
        replyBulk(c, value);
    } else {
        replyNull(c);
    }
}

void pathHashReplyValues(ctx *c, const pathFields *fields, const slice *names, int64_t count) {
    hotCheck(count > 0);
    replyArray(c, count);
    for (int64_t i = 0; i < count; i++) replyValue(c, fields, names[i]);
}

static const pathFields *fieldsOf(const pathHash *map, slice path) {
    return map ? pathHashFind(map, path) : NULL;
}

/* PHGET key path field [field ...]. Reply: an array with the values, null for each that is
 * missing. */
void phgetCommand(ctx *c) {
    hotCheck(c->argc >= 4);
    const pathHash *map;
    if (!pathHashFindRead(c, &map)) return;
    pathHashReplyValues(c, fieldsOf(map, c->argv[2]), c->argv + 3, c->argc - 3);
}

/* PHMGET key path FIELDS numfields field [field ...] [path FIELDS ...]. Reply: one array with all
 * values. */
void phmgetCommand(ctx *c) {
    hotCheck(c->argc >= 6);
    const pathHash *map;
    pathGroup g;
    int64_t count = 0;
    for (int i = 2; i < c->argc; count += g.fields)
        if (!parseGroup(c, &i, 1, &g)) return;
    if (!pathHashFindRead(c, &map)) return;
    replyArray(c, count);
    for (int i = 2; i < c->argc;) {
        check(parseGroup(c, &i, 1, &g)); /* as before */
        const pathFields *fields = fieldsOf(map, g.path);
        for (int64_t k = 0; k < g.fields; k++) replyValue(c, fields, g.words[k]);
    }
}

/* PHGETALL key path. Reply: a map, empty if the path is missing. */
void phgetallCommand(ctx *c) {
    hotCheck(c->argc == 3);
    const pathHash *map;
    if (pathHashFindRead(c, &map)) pathHashReplyAll(c, fieldsOf(map, c->argv[2]));
}

/* PHEXISTS key path. Reply: 1 or 0. */
void phexistsCommand(ctx *c) {
    hotCheck(c->argc == 3);
    const pathHash *map;
    if (pathHashFindRead(c, &map)) replyInteger(c, fieldsOf(map, c->argv[2]) != NULL);
}

/* PHCARD key. Reply: the number of paths. */
void phcardCommand(ctx *c) {
    hotCheck(c->argc == 2);
    const pathHash *map;
    if (pathHashFindRead(c, &map)) replyInteger(c, map ? (int64_t)pathHashCount(map) : 0);
}
