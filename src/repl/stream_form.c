/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Changes commands for replicas that are Redis (stream_form.h).
 *
 *   propagated                          becomes
 *   HSETEX                              HSET, and HPEXPIREAT for the fields that have a time
 *   HPEXPIREAT after the year 4199      HPEXPIREAT with the latest time that Redis takes
 *   MSETEX                              SET for each key
 *   SET .. IFEQ                         SET without the condition, which was met
 *   GEOSEARCHSTORE .. BYPOLYGON,        RESTORE of the key as it is now, in the lowest version of
 *   RESTORE                             the format that has it; DEL if it does not exist
 *   FUNCTION RESTORE                    FUNCTION FLUSH, FUNCTION LOAD of all libraries
 *   SPEXPIREAT, SPERSIST and those of   nothing: the members stay without their times until they
 *   sorted sets                         expire here, which sends SREM and ZREM
 *
 * Commands are propagated at the end of their unit, so later commands of the unit may have changed
 * a key already. That does no harm: these commands follow, and lead to the same state.
 *
 * Invariant: if several commands replace one command, they are between MULTI and EXEC, unless the
 * unit is already. */
#include "repl/stream_form.h"

#include "base/base.h"
#include "base/log.h"
#include "base/number.h"
#include "engine/hot.h"
#include "engine/libraries.h"
#include "format/aof_reader.h"
#include "format/rdb_dump.h"
#include "store/keyspace.h"
#include "store/store.h"
#include "store/type_hash.h"

static struct {
    bool in_multi; /* MULTI was propagated, and its EXEC was not */
    uint64_t dropped;
    int64_t logged_ms;
} form;

/* The commands that replace one propagated command; they are appended to `out`. */
typedef struct replacement {
    const propagated *p;
    str *out;
    int commands;
} replacement;

static void add(replacement *r, int argc, const slice *argv) {
    hotCheck(argc > 0);
    aofPrintCommand(r->out, argc, argv);
    r->commands++;
}

static const robj *keyNow(const replacement *r, slice key) {
    const db *d = keyspaceDb(keyspaceMain(), r->p->db_id);
    return d ? dbFindQuiet((db *)d, key, storeHash(key), lookAtAll()) : NULL;
}

/* ------------------------------------------------------------------ hashes */

static void addTime(replacement *r, slice key, int64_t time_ms, int count, const slice *fields) {
    char digits[NUMBER_TEXT_MAX], number[NUMBER_TEXT_MAX];
    slice *words = memNewArray(slice, (size_t)count + 5);
    words[0] = SLICE("HPEXPIREAT");
    words[1] = key;
    if (time_ms > RDB_REDIS_FIELD_TIME_MAX) time_ms = RDB_REDIS_FIELD_TIME_MAX;
    words[2] = sliceMake(digits, numberPrintInt(digits, time_ms));
    words[3] = SLICE("FIELDS");
    words[4] = sliceMake(number, numberPrintInt(number, count));
    memcpy(words + 5, fields, (size_t)count * sizeof(slice));
    add(r, count + 5, words);
    memFree(words);
}

/* Adds commands that restore the expiry times of fields, as HSET removes the times of the fields
 * that it sets. */
static void keepTimes(replacement *r, slice key, int count, const slice *fields) {
    const robj *o = keyNow(r, key);
    if (!o || objectType(o) != TYPE_HASH || hashTimedCount(o) == 0) return;
    for (int i = 0; i < count; i++) {
        int64_t time_ms = hashTime(o, fields[i], lookAtAll());
        if (time_ms >= 0) addTime(r, key, time_ms, 1, &fields[i]);
    }
}

/* HSETEX is always propagated as HSETEX key [KEEPTTL | PXAT time] FIELDS n field value ... */
static bool formHsetex(replacement *r) {
    const slice *argv = r->p->argv;
    int argc = r->p->argc, at = 2;
    bool keeps = false;
    int64_t time_ms = -1;
    for (; at < argc && !sliceIs(argv[at], "fields"); at++) {
        if (sliceIs(argv[at], "keepttl")) keeps = true;
        if (sliceIs(argv[at], "pxat") && at + 1 < argc && !numberParseInt(argv[++at], &time_ms))
            return false;
    }
    int first = at + 2, pairs = (argc - first) / 2;
    if (pairs <= 0) return false;
    slice *words = memNewArray(slice, (size_t)(2 + 2 * pairs));
    slice *fields = memNewArray(slice, (size_t)pairs);
    words[0] = SLICE("HSET");
    words[1] = argv[1];
    memcpy(words + 2, argv + first, (size_t)(2 * pairs) * sizeof(slice));
    for (int i = 0; i < pairs; i++) fields[i] = argv[first + 2 * i];
    add(r, 2 + 2 * pairs, words);
    if (time_ms >= 0) addTime(r, argv[1], time_ms, pairs, fields);
    if (keeps) keepTimes(r, argv[1], pairs, fields);
    memFree(words);
    memFree(fields);
    return true;
}

/* HPEXPIREAT key time FIELDS n field ... */
static bool formHpexpireat(replacement *r) {
    enum { FIRST = 5 };
    const slice *argv = r->p->argv;
    int64_t time_ms;
    if (r->p->argc <= FIRST || !numberParseInt(argv[2], &time_ms)) return false;
    if (time_ms <= RDB_REDIS_FIELD_TIME_MAX) return false;
    hotCheck(sliceIs(argv[3], "fields"));
    addTime(r, argv[1], time_ms, r->p->argc - FIRST, argv + FIRST);
    return true;
}

/* HPERSIST key FIELDS n field ... A Redis that receives it after the time of a field regards the
 * field as expired, and loses it; a later time that is set first prevents this. */
static bool formHpersist(replacement *r) {
    enum { FIRST = 4 };
    const slice *argv = r->p->argv;
    if (r->p->argc <= FIRST) return false;
    addTime(r, argv[1], RDB_REDIS_FIELD_TIME_MAX, r->p->argc - FIRST, argv + FIRST);
    add(r, r->p->argc, argv);
    return true;
}

/* ------------------------------------------------------------------ strings, whole keys */

/* MSETEX n key value ... [NX|XX] [PXAT time | KEEPTTL]. */
static bool formMsetex(replacement *r) {
    const slice *argv = r->p->argv;
    int64_t pairs;
    if (r->p->argc < 4 || !numberParseInt(argv[1], &pairs)) return false;
    if (pairs <= 0 || pairs > (r->p->argc - 2) / 2) return false;
    slice words[5] = {SLICE("SET")};
    int count = 3;
    for (int i = 2 + 2 * (int)pairs; i < r->p->argc; i++) {
        if (sliceIs(argv[i], "keepttl")) words[count++] = argv[i];
        if (sliceIs(argv[i], "pxat") && i + 1 < r->p->argc) {
            words[3] = argv[i];
            words[4] = argv[++i];
            count = 5;
        }
    }
    for (int i = 0; i < pairs; i++) {
        words[1] = argv[2 + 2 * i];
        words[2] = argv[3 + 2 * i];
        add(r, count, words);
    }
    return true;
}

/* SET key value ... IFEQ value ... */
static bool formSet(replacement *r) {
    const slice *argv = r->p->argv;
    int at = 3, argc = r->p->argc;
    while (at < argc && !sliceIs(argv[at], "ifeq")) at++;
    if (at + 1 >= argc) return false;
    slice *words = memNewArray(slice, (size_t)argc);
    memcpy(words, argv, (size_t)at * sizeof(slice));
    memcpy(words + at, argv + at + 2, (size_t)(argc - at - 2) * sizeof(slice));
    add(r, argc - 2, words);
    memFree(words);
    return true;
}

/* Replaces the command by the present value of the key in argument 1, or by its deletion. */
static bool formKey(replacement *r) {
    slice key = r->p->argv[1];
    const robj *o = keyNow(r, key);
    char digits[NUMBER_TEXT_MAX];
    if (!o) {
        add(r, 2, (slice[]){SLICE("DEL"), key});
        return true;
    }
    int64_t time_ms = objectHasExpire(o) ? objectExpire(o) : 0;
    str payload = STR_EMPTY;
    rdbDump(o, r->p->db_id, RDB_FORM_REDIS, &payload);
    add(r, 6,
        (slice[]){SLICE("RESTORE"), key, sliceMake(digits, numberPrintInt(digits, time_ms)),
                  strSlice(&payload), SLICE("REPLACE"), SLICE("ABSTTL")});
    strFree(&payload);
    return true;
}

static bool formSearch(replacement *r) {
    for (int i = 3; i < r->p->argc; i++) {
        if (sliceIs(r->p->argv[i], "bypolygon")) return formKey(r);
    }
    return false;
}

/* ------------------------------------------------------------------ functions */

static void addLibrary(void *arg, slice code) {
    add(arg, 4, (slice[]){SLICE("FUNCTION"), SLICE("LOAD"), SLICE("REPLACE"), code});
}

static bool formFunction(replacement *r) {
    if (r->p->argc < 3 || !sliceIs(r->p->argv[1], "restore")) return false;
    add(r, 3, (slice[]){SLICE("FUNCTION"), SLICE("FLUSH"), SLICE("SYNC")});
    librariesEach(addLibrary, r);
    return true;
}

/* ------------------------------------------------------------------ all of them */

static bool drop(replacement *r) {
    enum { LOG_MS = 60 * 1000 };
    form.dropped++;
    if (logIsDue(&form.logged_ms, engineHot.now_ms, LOG_MS))
        logWarning("Replicas do not get '%.*s', as Redis has no such command (outgoing-format "
                   "redis): %llu commands so far",
                   (int)r->p->argv[0].len, r->p->argv[0].ptr, (unsigned long long)form.dropped);
    return true;
}

static const struct {
    const char *name;
    bool (*replace)(replacement *r); /* false: Redis knows the command as it is */
} forms[] = {
    {"set", formSet},
    {"hsetex", formHsetex},
    {"msetex", formMsetex},
    {"geosearchstore", formSearch},
    {"restore", formKey},
    {"restore-asking", formKey},
    {"function", formFunction},
    {"spexpireat", drop},
    {"zpexpireat", drop},
    {"spersist", drop},
    {"zpersist", drop},
    {"hpersist", formHpersist},
    {"hpexpireat", formHpexpireat},
};

static bool replaces(replacement *r) {
    slice name = r->p->argv[0];
    for (size_t i = 0; i < COUNT_OF(forms); i++) {
        if (sliceIs(name, forms[i].name)) return r->p->argc > 1 && forms[i].replace(r);
    }
    return false;
}

bool streamFormReplaces(const propagated *p, str *out) {
    hotCheck(threadIsMain());
    check(p->argc > 0);
    if (sliceIs(p->argv[0], "multi")) form.in_multi = true;
    if (sliceIs(p->argv[0], "exec")) form.in_multi = false;
    replacement r = {.p = p, .out = out};
    if (likely(!replaces(&r))) return false;
    if (r.commands > 1 && !form.in_multi) {
        str unit = STR_EMPTY;
        aofPrintCommand(&unit, 1, (slice[]){SLICE("MULTI")});
        strAppendSlice(&unit, strSlice(out));
        aofPrintCommand(&unit, 1, (slice[]){SLICE("EXEC")});
        strFree(out);
        *out = unit;
    }
    return true;
}

void streamFormPrintInfo(str *out) {
    hotCheck(threadIsMain());
    if (form.dropped) strAppendField(out, "stream_commands_dropped", form.dropped);
}
