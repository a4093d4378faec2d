/* SPDX-License-Identifier: BSD-3-Clause
 *
 * HIMPORT: a connection names lists of fields (fieldsets) once, and then writes hashes by the name
 * of a fieldset and the values alone.
 *
 * Invariant: a session has at most FIELDSETS_MAX fieldsets (engine/session_slot.h); each has at
 * least one field, and no field twice. RESET and the end of the connection free them. DEL and HSET
 * are propagated in place of HIMPORT SET. Main thread only. */
#include <stdlib.h>

#include "base/base.h"
#include "cmd/cmd_priv.h"
#include "cmd/collection.h"
#include "cmd/hash_priv.h"
#include "cmd/procs.h"
#include "engine/session_slot.h"

enum { FIELDSETS_MAX = 1024 };

typedef struct fieldset {
    char *bytes;   /* of the name and the fields */
    slice *fields; /* [0] is the name */
    int count;     /* the name is counted, too */
    size_t memory;
} fieldset;

typedef struct fieldsets {
    int count;
    size_t memory;
    fieldset *at;
} fieldsets;

static void clearSet(fieldset *f) {
    memFree(f->bytes);
    memFree(f->fields);
    *f = (fieldset){0};
}

static void freeSets(session *s, void *state) {
    (void)s; /* only the state is needed */
    fieldsets *all = state;
    for (int i = 0; i < all->count; i++) clearSet(&all->at[i]);
    memFree(all->at);
    memFree(all);
}

static size_t setsMemory(const void *state) {
    const fieldsets *all = state;
    hotCheck(all->count <= FIELDSETS_MAX);
    return sizeof(*all) + (size_t)all->count * sizeof(*all->at) + all->memory;
}

static const sessionSlot fieldsets_slot = {"fieldsets", freeSets, setsMemory};

static int slotIndex(void) {
    static int index = -1;
    if (index < 0) index = sessionSlotRegister(&fieldsets_slot);
    return index;
}

static fieldsets *setsOf(const session *s) { return sessionSlotGet(s, slotIndex()); }

/* NULL if there is none of this name. */
static fieldset *findSet(fieldsets *all, slice name) {
    for (int i = 0; all && i < all->count; i++) {
        if (sliceEqual(all->at[i].fields[0], name)) return &all->at[i];
    }
    return NULL;
}

static int dropSets(session *s) {
    fieldsets *all = setsOf(s);
    if (!all) return 0;
    int count = all->count;
    freeSets(s, all);
    sessionSlotSet(s, slotIndex(), NULL);
    return count;
}

void hashImportSessionEvent(session *s, sessionEvent e) {
    if (e == SESSION_WAS_RESET && s->slots) (void)dropSets(s); /* the number does not matter */
}

/* ------------------------------------------------------------------ PREPARE */

static int compareSlices(const void *a, const void *b) {
    return sliceCompare(*(const slice *)a, *(const slice *)b);
}

static bool areDistinct(const slice *fields, int count) {
    hotCheck(count > 0);
    slice *sorted = memNewArray(slice, (size_t)count);
    memcpy(sorted, fields, (size_t)count * sizeof(*sorted));
    qsort(sorted, (size_t)count, sizeof(*sorted), compareSlices);
    int same = 0;
    for (int i = 1; i < count; i++) same += sliceEqual(sorted[i - 1], sorted[i]);
    memFree(sorted);
    return same == 0;
}

/* Copies the words. */
static fieldset newSet(const slice *words, int count) {
    check(count > 1);
    size_t len = 0;
    for (int i = 0; i < count; i++) len += words[i].len;
    fieldset f = {.bytes = memAlloc(len + 1),
                  .fields = memNewArray(slice, (size_t)count),
                  .count = count,
                  .memory = len + 1 + (size_t)count * sizeof(slice)};
    char *to = f.bytes;
    for (int i = 0; i < count; i++) {
        memcpy(to, words[i].ptr, words[i].len);
        f.fields[i] = sliceMake(to, words[i].len);
        to += words[i].len;
    }
    return f;
}

/* HIMPORT PREPARE fieldset field [field ...]. Reply: OK. */
void himportPrepareCommand(ctx *c) {
    hotCheck(c->argc >= 4);
    if (!areDistinct(c->argv + 3, c->argc - 3)) {
        replyError(c, SLICE("ERR duplicate field in fieldset"));
        return;
    }
    fieldsets *all = setsOf(c->who);
    fieldset *f = findSet(all, c->argv[2]);
    if (!f && all && all->count == FIELDSETS_MAX) {
        replyError(c, SLICE("ERR too many fieldsets"));
        return;
    }
    if (!all) {
        all = memCalloc(1, sizeof(*all));
        sessionSlotSet(c->who, slotIndex(), all);
    }
    if (!f) {
        all->at = memRealloc(all->at, (size_t)(all->count + 1) * sizeof(*all->at));
        f = &all->at[all->count++];
        *f = (fieldset){0};
    }
    all->memory -= f->memory;
    clearSet(f);
    *f = newSet(c->argv + 2, c->argc - 2);
    all->memory += f->memory;
    replyOk(c);
}

/* ------------------------------------------------------------------ SET */

/* Returns the words of HSET: its name, the key, then fields and values in turn. The caller frees
 * the array. */
static slice *pairWords(const ctx *c, const fieldset *f) {
    hotCheck(c->argc - 4 == f->count - 1);
    size_t pairs = (size_t)f->count - 1;
    slice *words = memNewArray(slice, 2 + 2 * pairs);
    words[0] = SLICE("HSET");
    words[1] = c->argv[2];
    for (size_t i = 0; i < pairs; i++) {
        words[2 + 2 * i] = f->fields[1 + i];
        words[3 + 2 * i] = c->argv[4 + i];
    }
    return words;
}

/* HIMPORT SET key fieldset value [value ...]. Reply: OK. */
void himportSetCommand(ctx *c) {
    hotCheck(c->argc >= 5);
    const fieldset *f = findSet(setsOf(c->who), c->argv[3]);
    if (!f) {
        replyError(c, SLICE("ERR no such fieldset"));
        return;
    }
    if (c->argc - 4 != f->count - 1) {
        replyErrorFormat(c, "ERR wrong number of values for the fieldset, which has %d fields",
                         f->count - 1);
        return;
    }
    slice key = c->argv[2], drop[2] = {SLICE("DEL"), key};
    uint64_t hash = collectionHash(c, 2);
    slice *words = pairWords(c, f);
    int count = 2 + 2 * (f->count - 1);
    packLimits most = hashLimits();
    hashSetCounts counts; /* all fields are new */
    bool existed = dbDeleteReplaced(c->db, key, hash, c->look);
    check(dbFind(c->db, key, hash, c->look, &c->at) == NULL);
    robj *o = hashSetPairs(NULL, key, words + 2, (size_t)count - 2, c->look, &most, &counts);
    (existed ? dbPlaceReplacing : dbPlace)(c->db, &c->at, o);
    if (existed) ctxPropagateAs(c, 2, drop);
    ctxPropagateAs(c, count, words);
    memFree(words);
    collectionChanged(c, key, &eventHset, (uint64_t)f->count - 1);
    replyOk(c);
}

/* ------------------------------------------------------------------ the rest */

/* HIMPORT DISCARD fieldset. Reply: 1, or 0 if there is none of this name. */
void himportDiscardCommand(ctx *c) {
    hotCheck(c->argc == 3);
    fieldsets *all = setsOf(c->who);
    fieldset *f = findSet(all, c->argv[2]);
    replyInteger(c, f != NULL);
    if (!f) return;
    all->memory -= f->memory;
    clearSet(f);
    *f = all->at[--all->count];
    if (!all->count) (void)dropSets(c->who); /* their number is 0 */
}

/* HIMPORT DISCARDALL. Reply: number of fieldsets there were. */
void himportDiscardallCommand(ctx *c) { replyInteger(c, dropSets(c->who)); }

/* HIMPORT HELP. */
void himportHelpCommand(ctx *c) {
    static const char *const lines[] = {
        "DISCARD <fieldset>",
        "    Forget a fieldset. Return 1, or 0 if there is none of this name.",
        "DISCARDALL",
        "    Forget all fieldsets of this connection. Return their number.",
        "PREPARE <fieldset> <field> [<field> ...]",
        "    Give a list of fields a name, for this connection until RESET.",
        "SET <key> <fieldset> <value> [<value> ...]",
        "    Create or replace a hash with these fields; a value for each, in their order.",
        NULL,
    };
    replyHelp(c, lines);
}
