/* SPDX-License-Identifier: BSD-3-Clause
 *
 * The report about values without a type here (foreign.h). It counts per type; the number of types
 * is bounded, as their names come from a file. */
#include "persist/foreign.h"

#include <stdio.h>
#include <string.h>

#include "base/base.h"
#include "engine/execute.h"
#include "engine/options.h"
#include "persist/persist_priv.h"
#include "persist/skipped_keys.h"

enum { KINDS_MAX = 32, NAMES_MAX = 3, NAME_BYTES_MAX = 64, TYPE_SIZE = 24 };

/* The keys of one type. */
typedef struct foreignKind {
    char type[TYPE_SIZE];
    uint64_t keys, bytes;
    str names; /* the first NAMES_MAX, quoted */
} foreignKind;

static struct {
    foreignKind kinds[KINDS_MAX]; /* of the last load; the last one collects all others */
    int count;
    uint64_t skipped; /* keys that the dataset lacks since its load */
    uint64_t commands_skipped;
    str skipped_types;
} foreign;

void foreignBegin(void) {
    for (int i = 0; i < foreign.count; i++) strFree(&foreign.kinds[i].names);
    foreign.count = 0;
}

static foreignKind *kindOf(const char *type) {
    hotCheck(foreign.count <= KINDS_MAX);
    for (int i = 0; i < foreign.count; i++) {
        if (!strcmp(foreign.kinds[i].type, type)) return &foreign.kinds[i];
    }
    if (foreign.count == KINDS_MAX) return &foreign.kinds[KINDS_MAX - 1];
    foreignKind *kind = &foreign.kinds[foreign.count++];
    *kind = (foreignKind){.keys = 0};
    snprintf(kind->type, sizeof(kind->type), "%s", foreign.count < KINDS_MAX ? type : "others");
    return kind;
}

static void addName(foreignKind *kind, slice key) {
    hotCheck(kind->keys > 0);
    if (kind->keys > NAMES_MAX || engineHidesUserData()) return;
    if (kind->names.len) strAppendText(&kind->names, ", ");
    if (key.len > NAME_BYTES_MAX) key.len = NAME_BYTES_MAX;
    strAppendQuoted(&kind->names, key);
}

void foreignAdd(const char *type, slice key, uint64_t bytes) {
    hotCheck(threadIsMain());
    foreignKind *kind = kindOf(type);
    kind->keys++;
    kind->bytes += bytes;
    addName(kind, key);
}

void foreignAddAux(const char *type) {
    logNotice("The file has data of the module type '%s', which is not loaded: they are skipped",
              type);
}

bool foreignSkips(void) { return persistConf.foreign_values == FOREIGN_SKIP; }
bool foreignRefuses(void) { return foreign.count > 0 && !foreignSkips(); }

/* Commands that change vector sets, arrays, and values of the usual modules of Redis. */
static bool foreignIsCommand(slice name) {
    static const char *const names[] = {"vadd",       "vrem",   "vsetattr", "arset",
                                        "armset",     "ardel",  "arring",   "arinsert",
                                        "ardelrange", "arseek", NULL};
    static const char *const families[] = {"json.", "ft.",      "bf.", "cf.", "cms.",
                                           "topk.", "tdigest.", "ts.", NULL};
    for (int i = 0; names[i]; i++) {
        if (sliceIs(name, names[i])) return true;
    }
    for (int i = 0; families[i]; i++) {
        size_t len = strlen(families[i]);
        if (name.len > len && sliceIs(sliceMake(name.ptr, len), families[i])) return true;
    }
    return false;
}

bool foreignSkipsCommand(slice name) { return foreignSkips() && foreignIsCommand(name); }

/* Returns the type of the key in argument 1 of such a command; NULL: the argument is no key, or is
 * one of several keys. */
static const char *typeOfCommand(slice name) {
    static const struct {
        const char *start, *type;
    } types[] = {{"json.", "ReJSON-RL"}, {"bf.", "MBbloom--"},   {"cf.", "MBbloomCF"},
                 {"cms.", "CMSk-TYPE"},  {"topk.", "TopK-TYPE"}, {"tdigest.", "TDIS-TYPE"},
                 {"ts.", "TSDB-TYPE"},   {"v", "vectorset"},     {"ar", "array"}};
    static const char *const others[] = {"json.mset", "ts.madd", "ts.createrule", "ts.deleterule"};
    for (size_t i = 0; i < COUNT_OF(others); i++) {
        if (sliceIs(name, others[i])) return NULL;
    }
    for (size_t i = 0; i < COUNT_OF(types); i++) {
        size_t len = strlen(types[i].start);
        if (name.len > len && sliceIs(sliceMake(name.ptr, len), types[i].start))
            return types[i].type;
    }
    return NULL;
}

/* Called by the engine instead of such a command. */
static void skipCommand(ctx *c) {
    slice name = c->argv[0];
    hotCheck(foreignIsCommand(name));
    foreign.commands_skipped++;
    bool is_stream = c->origin == ORIGIN_PRIMARY || c->origin == ORIGIN_AOF;
    const char *type = is_stream && c->argc > 1 ? typeOfCommand(name) : NULL;
    if (type) skippedKeysChanged(c, type);
}

void foreignBeginReplays(void) { executeSetSkipped(foreignSkipsCommand, skipCommand); }

void foreignLog(void) {
    for (int i = 0; i < foreign.count; i++) {
        const foreignKind *kind = &foreign.kinds[i];
        logWarning("The file has %llu keys of type %s (%llu bytes), which this server does not "
                   "have%s%s",
                   (unsigned long long)kind->keys, kind->type, (unsigned long long)kind->bytes,
                   kind->names.len ? ": " : "", strText(&kind->names));
    }
    if (foreign.count == 0) return;
    logWarning("%s", foreignSkips()
                         ? "These values were skipped (foreign-values skip)"
                         : "Nothing is loaded. 'foreign-values skip' loads all other keys");
}

void foreignAppendTypes(str *out) {
    hotCheck(threadIsMain());
    for (int i = 0; i < foreign.count; i++)
        strAppendFormat(out, "%s%s=%llu", i ? "," : "", foreign.kinds[i].type,
                        (unsigned long long)foreign.kinds[i].keys);
}

void foreignLoaded(void) {
    foreign.skipped = 0;
    strClear(&foreign.skipped_types);
    for (int i = 0; i < foreign.count; i++) foreign.skipped += foreign.kinds[i].keys;
    foreignAppendTypes(&foreign.skipped_types);
}

void foreignPrintInfo(str *out) {
    skippedKeysPrintInfo(out);
    if (!foreign.skipped && !foreign.commands_skipped) return;
    strAppendFormat(out,
                    "foreign_keys_skipped:%llu\r\nforeign_keys_skipped_types:%s\r\n"
                    "foreign_commands_skipped:%llu\r\n",
                    (unsigned long long)foreign.skipped, strText(&foreign.skipped_types),
                    (unsigned long long)foreign.commands_skipped);
}
