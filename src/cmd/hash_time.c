/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Hash commands on the TTLs of fields: HEXPIRE and variants, HGETEX, HSETEX, HGETDEL. They are
 * propagated with absolute times, and never with times in the past. Main thread only. */
#include "base/base.h"
#include "base/number.h"
#include "cmd/collection.h"
#include "cmd/hash_priv.h"
#include "cmd/procs.h"
#include "engine/keyspace.h"

/* ------------------------------------------------------------------ parsing */

/* Arguments FIELDS count field [field ...], or fields and values if `width` is 2. */
typedef struct fieldList {
    int word;     /* index of the word FIELDS */
    int first;    /* index of the first field */
    int width;    /* arguments per field */
    int64_t size; /* number of fields */
} fieldList;

static void replyBadCount(ctx *c) {
    replyError(
        c, SLICE("ERR numfields should be greater than 0 and match the provided number of fields"));
}

/* Finds the word FIELDS from argument `from` on. False: the error was replied. */
static bool findFields(ctx *c, int from, int width, fieldList *out) {
    hotCheck(from > 0);
    hotCheck(width == 1 || width == 2);
    *out = (fieldList){.word = from, .width = width};
    while (out->word < c->argc - 1 && !ctxArgIs(c, out->word, "fields")) out->word++;
    out->first = out->word + 2;
    if (out->word < c->argc - 1) return true;
    replyBadCount(c);
    return false;
}

/* Parses the count after FIELDS. False: the error was replied. */
static bool parseCount(ctx *c, fieldList *f) {
    hotCheck(f->word > 0);
    hotCheck(f->word < c->argc);
    if (!ctxArgInt(c, f->word + 1, &f->size)) return false;
    if (f->size > 0 && f->size <= INT32_MAX && f->size * f->width == c->argc - f->first)
        return true;
    replyBadCount(c);
    return false;
}

/* Parses FIELDS at argument 2. False: the error was replied. */
static bool parseFieldsAt2(ctx *c, fieldList *out) {
    *out = (fieldList){.word = 2, .first = 4, .width = 1};
    if (ctxArgIs(c, 2, "fields")) return parseCount(c, out);
    replyError(c, ERR_SYNTAX_TEXT);
    return false;
}

static slice fieldAt(const ctx *c, const fieldList *f, int64_t i) {
    return c->argv[f->first + (int)i * f->width];
}

enum hashOption {
    OPT_NX = 1 << 0,
    OPT_XX = 1 << 1,
    OPT_FNX = 1 << 2,
    OPT_FXX = 1 << 3,
    OPT_EX = 1 << 4,
    OPT_PX = 1 << 5,
    OPT_EXAT = 1 << 6,
    OPT_PXAT = 1 << 7,
    OPT_KEEPTTL = 1 << 8,
    OPT_PERSIST = 1 << 9,
    OPT_TIMES = OPT_EX | OPT_PX | OPT_EXAT | OPT_PXAT,
    OPT_OF_TTL = OPT_TIMES | OPT_KEEPTTL | OPT_PERSIST,
};

typedef struct hashOptions {
    uint32_t given;
    int time; /* index of the number after EX, PX, EXAT or PXAT */
} hashOptions;

typedef struct optionRow {
    const char *word;
    uint32_t flag, excludes;
} optionRow;

/* Every option may be repeated. */
static const optionRow rows[] = {
    {"nx", OPT_NX, OPT_XX},
    {"xx", OPT_XX, OPT_NX},
    {"fnx", OPT_FNX, OPT_FXX},
    {"fxx", OPT_FXX, OPT_FNX},
    {"ex", OPT_EX, OPT_OF_TTL & ~OPT_EX},
    {"px", OPT_PX, OPT_OF_TTL & ~OPT_PX},
    {"exat", OPT_EXAT, OPT_OF_TTL & ~OPT_EXAT},
    {"pxat", OPT_PXAT, OPT_OF_TTL & ~OPT_PXAT},
    {"keepttl", OPT_KEEPTTL, OPT_OF_TTL & ~OPT_KEEPTTL},
    {"persist", OPT_PERSIST, OPT_OF_TTL & ~OPT_PERSIST},
};

static const optionRow *findRow(slice word) {
    for (size_t i = 0; i < COUNT_OF(rows); i++) {
        if (sliceIs(word, rows[i].word)) return &rows[i];
    }
    return NULL;
}

/* Parses the options at arguments [2, end); options not in `known` are a syntax error. */
static bool parseWords(ctx *c, int end, uint32_t known, hashOptions *out) {
    hotCheck(end <= c->argc);
    *out = (hashOptions){0};
    for (int i = 2; i < end; i++) {
        const optionRow *row = findRow(c->argv[i]);
        bool has_value = row && row->flag & OPT_TIMES;
        if (!row || !(row->flag & known) || row->excludes & out->given ||
            (has_value && i + 1 == end)) {
            replyError(c, ERR_SYNTAX_TEXT);
            return false;
        }
        out->given |= row->flag;
        if (has_value) out->time = ++i;
    }
    return true;
}

/* Parses options and fields of HGETEX and HSETEX. False: the error was replied. */
static bool parseOptions(ctx *c, uint32_t known, int width, hashOptions *out, fieldList *fields) {
    /* As in Valkey, a key named FIELDS is taken for the word if there is no other. */
    int from = 2;
    if (ctxArgIs(c, 1, "fields")) {
        while (from < c->argc - 1 && !ctxArgIs(c, from, "fields")) from++;
        from = from < c->argc - 1 ? 2 : 1;
    }
    if (!findFields(c, from, width, fields) || !parseWords(c, fields->word, known, out))
        return false;
    return parseCount(c, fields);
}

/* Converts `number` (seconds or ms, relative or absolute) to Unix time in ms. False: the error was
 * replied. */
static bool absoluteTime(ctx *c, int64_t number, bool seconds, bool relative, int64_t *out) {
    bool valid = number >= 0;
    if (valid && seconds) valid = numberMul(number, 1000, &number);
    if (valid && relative) valid = numberAdd(number, c->now_ms, &number);
    if (!valid)
        replyErrorFormat(c, "ERR invalid expire time in '%.*s' command", (int)c->cmd->name.len,
                         c->cmd->name.ptr);
    *out = number;
    return valid;
}

/* The time given by the options; HASH_NO_TIME if none. False: the error was replied. */
static bool optionTime(ctx *c, const hashOptions *o, int64_t *out) {
    *out = HASH_NO_TIME;
    if (!(o->given & OPT_TIMES)) return true;
    int64_t number;
    if (!ctxArgInt(c, o->time, &number)) return false;
    return absoluteTime(c, number, o->given & (OPT_EX | OPT_EXAT), o->given & (OPT_EX | OPT_PX),
                        out);
}

/* ------------------------------------------------------------------ propagation */

/* A request to be propagated instead of the current one. */
typedef struct wordList {
    slice *words;
    int count;
    char digits[2][NUMBER_TEXT_MAX];
} wordList;

static void wordsInit(wordList *w, const ctx *c, slice name) {
    w->words = memNewArray(slice, (size_t)c->argc + 8);
    w->count = 0;
    w->words[w->count++] = name;
    w->words[w->count++] = c->argv[1];
}

static void wordsAdd(wordList *w, slice word) { w->words[w->count++] = word; }

static void wordsAddNumber(wordList *w, int which, int64_t number) {
    wordsAdd(w, sliceMake(w->digits[which], numberPrintInt(w->digits[which], number)));
}

static void wordsPropagate(wordList *w, ctx *c) {
    hotCheck(w->count > 1);
    ctxPropagateAs(c, w->count, w->words);
    memFree(w->words);
}

/* Propagates: name key [time, and the arguments [first, end)] FIELDS n field ..., for the given
 * fields. */
static void propagateFields(ctx *c, slice name, const int64_t *time_ms, int first, int end,
                            const slice *fields, int64_t count) {
    hotCheck(count >= 0);
    hotCheck(first <= end);
    hotCheck(end <= c->argc);
    if (!engineHot.sinks) return;
    wordList w;
    wordsInit(&w, c, name);
    if (time_ms) wordsAddNumber(&w, 0, *time_ms);
    for (int i = first; i < end; i++) wordsAdd(&w, c->argv[i]);
    wordsAdd(&w, SLICE("FIELDS"));
    wordsAddNumber(&w, 1, count);
    for (int64_t i = 0; i < count; i++) wordsAdd(&w, fields[i]);
    wordsPropagate(&w, c);
}

static void propagateDeleted(ctx *c, const slice *fields, int64_t count) {
    hotCheck(count > 0);
    if (!engineHot.sinks) return;
    wordList w;
    wordsInit(&w, c, SLICE("HDEL"));
    for (int64_t i = 0; i < count; i++) wordsAdd(&w, fields[i]);
    wordsPropagate(&w, c);
}

/* Notifies that fields of `o` were removed; if it is empty now, also deletes the key. */
static void notifyDeleted(ctx *c, const robj *o, const keyEvent *event, int64_t count) {
    hotCheck(!o || objectType(o) == TYPE_HASH);
    bool emptied = hashLength(o) == 0;
    collectionChanged(c, c->argv[1], event, (uint64_t)count);
    if (emptied) collectionRemove(c, 1);
}

/* ------------------------------------------------------------------ HEXPIRE and variants */

enum { COND_NX = 1, COND_XX = 2, COND_GT = 4, COND_LT = 8 };

/* Parses arguments [3, end). False: the error was replied. */
static bool parseConditions(ctx *c, int end, unsigned *out) {
    hotCheck(end <= c->argc);
    static const char *const words[] = {"nx", "xx", "gt", "lt"};
    *out = 0;
    for (int i = 3; i < end; i++) {
        size_t k = 0;
        while (k < COUNT_OF(words) && !ctxArgIs(c, i, words[k])) k++;
        if (k == COUNT_OF(words)) {
            replyErrorFormat(c, "ERR Unsupported option %.*s", (int)c->argv[i].len, c->argv[i].ptr);
            return false;
        }
        *out |= 1u << k;
    }
    if (*out & COND_NX && *out & ~(unsigned)COND_NX) {
        replyError(c, SLICE("ERR NX and XX, GT or LT options at the same time are not compatible"));
        return false;
    }
    if (*out & COND_GT && *out & COND_LT) {
        replyError(c, SLICE("ERR GT and LT options at the same time are not compatible"));
        return false;
    }
    return true;
}

static bool conditionHolds(unsigned conditions, int64_t old_ms, int64_t new_ms) {
    bool timed = old_ms != HASH_NO_TIME;
    if (conditions & COND_NX && timed) return false;
    if (conditions & COND_XX && !timed) return false;
    if (conditions & COND_GT && (!timed || new_ms <= old_ms)) return false;
    return !(conditions & COND_LT && timed && new_ms >= old_ms);
}

static void replyForAll(ctx *c, const fieldList *f, int64_t result) {
    hotCheck(f->size > 0);
    replyArray(c, f->size);
    for (int64_t i = 0; i < f->size; i++) replyInteger(c, result);
}

/* Reply for each field: -2 if missing, 0 if the condition is not met, 1 if the TTL was set, 2 if
 * the field was deleted because the time is in the past. */
static void expireFields(ctx *c, robj *o, const fieldList *f, unsigned conditions,
                         int64_t time_ms) {
    hotCheck(!o || objectType(o) == TYPE_HASH);
    bool past = keyspaceIsPast(c, time_ms);
    slice *changed = memNewArray(slice, (size_t)f->size);
    int64_t count = 0;
    replyArray(c, f->size);
    for (int64_t i = 0; i < f->size; i++) {
        slice field = fieldAt(c, f, i);
        int64_t old_ms = hashTime(o, field, c->look);
        bool allowed = old_ms != HASH_NO_FIELD && conditionHolds(conditions, old_ms, time_ms);
        if (allowed) {
            changed[count++] = field;
            check(past ? hashDelete(&o, field, c->look) : hashSetTime(&o, field, time_ms, c->look));
        }
        replyInteger(c, old_ms == HASH_NO_FIELD ? -2 : !allowed ? 0 : past ? 2 : 1);
    }
    if (count) {
        collectionPlace(c, 1, o);
        if (past) {
            dbCountExpiredFields(c->db, (uint64_t)count);
            propagateDeleted(c, changed, count);
            notifyDeleted(c, o, &eventHexpired, count);
        } else {
            propagateFields(c, SLICE("HPEXPIREAT"), &time_ms, 3, f->word, c->argv + f->first,
                            f->size);
            collectionChanged(c, c->argv[1], &eventHexpire, (uint64_t)count);
        }
    }
    memFree(changed);
}

static void expire(ctx *c, bool seconds, bool relative) {
    fieldList f;
    unsigned conditions;
    int64_t time_ms;
    robj *o;
    if (!findFields(c, 3, 1, &f) || !parseConditions(c, f.word, &conditions)) return;
    if (!parseCount(c, &f) || !ctxArgInt(c, 2, &time_ms)) return;
    if (!absoluteTime(c, time_ms, seconds, relative, &time_ms)) return;
    if (!hashFindWrite(c, &o)) return;
    if (o) {
        expireFields(c, o, &f, conditions, time_ms);
    } else {
        replyForAll(c, &f, -2);
    }
}

/* HEXPIRE key seconds [NX|XX|GT|LT] FIELDS n field [field ...]. */
void hexpireCommand(ctx *c) { expire(c, true, true); }

/* HPEXPIRE key milliseconds [NX|XX|GT|LT] FIELDS n field [field ...]. */
void hpexpireCommand(ctx *c) { expire(c, false, true); }

/* HEXPIREAT key seconds [NX|XX|GT|LT] FIELDS n field [field ...]. */
void hexpireatCommand(ctx *c) { expire(c, true, false); }

/* HPEXPIREAT key milliseconds [NX|XX|GT|LT] FIELDS n field [field ...]. */
void hpexpireatCommand(ctx *c) { expire(c, false, false); }

/* ------------------------------------------------------------------ HTTL and variants, HPERSIST */

/* Reply for each field: -2 if missing, -1 if it has no TTL. */
static void replyTimes(ctx *c, bool seconds, bool relative) {
    robj *o;
    fieldList f = {.word = 2, .first = 4, .width = 1};
    if (!ctxArgIs(c, 2, "fields")) {
        replyError(c, ERR_SYNTAX_TEXT);
        return;
    }
    if (!ctxArgInt(c, 3, &f.size)) return;
    if (f.size != c->argc - f.first) {
        replyError(c, ERR_SYNTAX_TEXT);
        return;
    }
    if (!hashFindRead(c, &o)) return;
    replyArray(c, f.size);
    for (int64_t i = 0; i < f.size; i++) {
        int64_t time_ms = o ? hashTime(o, fieldAt(c, &f, i), c->look) : HASH_NO_FIELD;
        if (time_ms >= 0) {
            if (relative) time_ms = time_ms < c->now_ms ? 0 : time_ms - c->now_ms;
            if (seconds) time_ms = (int64_t)(((uint64_t)time_ms + 500) / 1000);
        }
        replyInteger(c, time_ms);
    }
}

/* HTTL key FIELDS n field [field ...]. */
void httlCommand(ctx *c) { replyTimes(c, true, true); }

/* HPTTL key FIELDS n field [field ...]. */
void hpttlCommand(ctx *c) { replyTimes(c, false, true); }

/* HEXPIRETIME key FIELDS n field [field ...]. */
void hexpiretimeCommand(ctx *c) { replyTimes(c, true, false); }

/* HPEXPIRETIME key FIELDS n field [field ...]. */
void hpexpiretimeCommand(ctx *c) { replyTimes(c, false, false); }

/* HPERSIST key FIELDS n field [field ...]. Reply for each field: -2 if missing, -1 if it has no
 * TTL, 1. */
void hpersistCommand(ctx *c) {
    hotCheck(c->argc >= 5);
    fieldList f;
    robj *o;
    uint64_t count = 0;
    if (!parseFieldsAt2(c, &f) || !hashFindWrite(c, &o)) return;
    if (!o) {
        replyForAll(c, &f, -2);
        return;
    }
    replyArray(c, f.size);
    for (int64_t i = 0; i < f.size; i++) {
        int64_t old_ms = hashTime(o, fieldAt(c, &f, i), c->look);
        if (old_ms >= 0) check(hashSetTime(&o, fieldAt(c, &f, i), HASH_NO_TIME, c->look));
        count += old_ms >= 0;
        replyInteger(c, old_ms >= 0 ? 1 : old_ms);
    }
    collectionPlace(c, 1, o);
    if (count) collectionChanged(c, c->argv[1], &eventHpersist, count);
}

/* ------------------------------------------------------------------ HGETEX, HGETDEL */

/* Replies the values of fields and deletes the fields. `expired`: because their new expiry time is
 * in the past. */
static void getAndDeleteFields(ctx *c, robj *o, const fieldList *f, bool expired) {
    hotCheck(!o || objectType(o) == TYPE_HASH);
    slice *gone = memNewArray(slice, (size_t)f->size);
    int64_t count = 0;
    replyArray(c, f->size);
    for (int64_t i = 0; i < f->size; i++) {
        slice field = fieldAt(c, f, i);
        hashReplyField(c, o, field);
        if (o && hashDelete(&o, field, c->look)) gone[count++] = field;
    }
    if (count) {
        collectionPlace(c, 1, o);
        if (expired) {
            dbCountExpiredFields(c->db, (uint64_t)count);
            propagateDeleted(c, gone, count);
        }
        notifyDeleted(c, o, expired ? &eventHexpired : &eventHdel, count);
    }
    memFree(gone);
}

/* HGETDEL key FIELDS n field [field ...]. Reply: the values, null for missing fields. */
void hgetdelCommand(ctx *c) {
    fieldList f;
    robj *o;
    if (parseFieldsAt2(c, &f) && hashFindWrite(c, &o)) getAndDeleteFields(c, o, &f, false);
}

/* Replies the values of fields and sets their TTL; HASH_NO_TIME removes it. */
static void getAndExpireFields(ctx *c, robj *o, const fieldList *f, int64_t time_ms) {
    hotCheck(!o || objectType(o) == TYPE_HASH);
    slice *changed = memNewArray(slice, (size_t)f->size);
    int64_t count = 0;
    replyArray(c, f->size);
    for (int64_t i = 0; i < f->size; i++) {
        slice field = fieldAt(c, f, i);
        int64_t old_ms = hashTime(o, field, c->look);
        hashReplyField(c, o, field);
        if (old_ms == HASH_NO_FIELD || (time_ms == HASH_NO_TIME && old_ms == HASH_NO_TIME))
            continue;
        check(hashSetTime(&o, field, time_ms, c->look));
        changed[count++] = field;
    }
    if (count) {
        bool persists = time_ms == HASH_NO_TIME;
        collectionPlace(c, 1, o);
        propagateFields(c, persists ? SLICE("HPERSIST") : SLICE("HPEXPIREAT"),
                        persists ? NULL : &time_ms, 0, 0, changed, count);
        collectionChanged(c, c->argv[1], persists ? &eventHpersist : &eventHexpire,
                          (uint64_t)count);
    }
    memFree(changed);
}

/* HGETEX key [EX s|PX ms|EXAT s|PXAT ms|PERSIST] FIELDS n field [field ...]. Reply: the values,
 * null for missing fields. */
void hgetexCommand(ctx *c) {
    hotCheck(c->argc >= 5);
    hashOptions options;
    fieldList f;
    robj *o;
    int64_t time_ms;
    if (!parseOptions(c, OPT_TIMES | OPT_PERSIST, 1, &options, &f)) return;
    if (!hashFindWrite(c, &o) || !optionTime(c, &options, &time_ms)) return;
    if (!o) ctxKeyEvent(c, c->argv[1], &eventKeymiss);
    if (!o || !options.given) {
        replyArray(c, f.size);
        for (int64_t i = 0; i < f.size; i++) hashReplyField(c, o, fieldAt(c, &f, i));
    } else if (options.given & OPT_TIMES && keyspaceIsPast(c, time_ms)) {
        getAndDeleteFields(c, o, &f, true);
    } else {
        getAndExpireFields(c, o, &f, time_ms);
    }
}

/* ------------------------------------------------------------------ HSETEX */

static bool setIsAllowed(const ctx *c, const robj *o, uint32_t given, const fieldList *f) {
    hotCheck(!o || objectType(o) == TYPE_HASH);
    if ((given & OPT_NX && o) || (given & OPT_XX && !o)) return false;
    if (!(given & (OPT_FNX | OPT_FXX))) return true;
    for (int64_t i = 0; i < f->size; i++) {
        bool exists = o && hashTime(o, fieldAt(c, f, i), c->look) != HASH_NO_FIELD;
        if (exists == (bool)(given & OPT_FNX)) return false;
    }
    return true;
}

/* The expiry time is in the past: the fields are set and deleted again, also those that have
 * expired. */
static void setAndDelete(ctx *c, robj *o, const fieldList *f) {
    hotCheck(!o || objectType(o) == TYPE_HASH);
    slice *gone = memNewArray(slice, (size_t)f->size);
    int64_t count = 0;
    for (int64_t i = 0; o && i < f->size; i++) {
        if (hashDelete(&o, fieldAt(c, f, i), lookAtAll())) gone[count++] = fieldAt(c, f, i);
    }
    dbCountExpiredFields(c->db, (uint64_t)f->size);
    if (o) {
        collectionPlace(c, 1, o);
        if (count) propagateDeleted(c, gone, count);
    }
    if (!count) ctxPropagateNothing(c);
    if (!o) ctxKeyEvent(c, c->argv[1], &eventNew); /* as if it had been created */
    ctxKeyEvent(c, c->argv[1], &eventHset);
    ctxKeyEvent(c, c->argv[1], &eventHexpire);
    if (count) {
        notifyDeleted(c, o, &eventHexpired, count);
    } else { /* nothing of what was set existed */
        ctxKeyEvent(c, c->argv[1], &eventHexpired);
        if (!o) ctxKeyEvent(c, c->argv[1], &eventDel);
    }
    memFree(gone);
}

/* Propagates without conditions and with an absolute time. */
static void propagateSet(ctx *c, const hashOptions *o, int64_t time_ms, const fieldList *f) {
    if (!engineHot.sinks) return;
    wordList w;
    wordsInit(&w, c, SLICE("HSETEX"));
    if (o->given & OPT_KEEPTTL) wordsAdd(&w, SLICE("KEEPTTL"));
    if (o->given & OPT_TIMES) {
        wordsAdd(&w, SLICE("PXAT"));
        wordsAddNumber(&w, 0, time_ms);
    }
    for (int i = f->word; i < c->argc; i++) wordsAdd(&w, c->argv[i]);
    wordsPropagate(&w, c);
}

static void setFields(ctx *c, robj *o, const hashOptions *options, int64_t time_ms,
                      const fieldList *f) {
    hotCheck(!o || objectType(o) == TYPE_HASH);
    packLimits most = hashLimits();
    slice *replaced = NULL; /* fields that had expired */
    int64_t count = 0;
    if (options->given & OPT_KEEPTTL) time_ms = HASH_KEEP_TIME;
    bool is_new = !o;
    if (is_new) o = hashNew(c->argv[1]);
    for (int64_t i = 0; i < f->size; i++) {
        hashOutcome outcome;
        o = hashSetTimed(o, fieldAt(c, f, i), c->argv[f->first + (int)i * 2 + 1], time_ms, c->look,
                         &most, &outcome);
        if (likely(outcome != HASH_REPLACED_EXPIRED)) continue;
        if (!replaced) replaced = memNewArray(slice, (size_t)f->size);
        replaced[count++] = fieldAt(c, f, i);
    }
    if (is_new) o = hashFindShape(o);
    collectionPlace(c, 1, o);
    hashNoteReplaced(c, (uint64_t)count);
    /* A replica still has the expired fields; they must not keep their time there. */
    if (count && options->given & OPT_KEEPTTL) propagateDeleted(c, replaced, count);
    memFree(replaced);
    propagateSet(c, options, time_ms, f);
    collectionChanged(c, c->argv[1], &eventHset, (uint64_t)f->size);
    if (options->given & OPT_TIMES) collectionNotify(c, c->argv[1], &eventHexpire);
}

/* HSETEX key [NX|XX] [FNX|FXX] [EX s|PX ms|EXAT s|PXAT ms|KEEPTTL] FIELDS n field value [field
 * value ...]. Reply: 1, or 0 if a condition is not met. */
void hsetexCommand(ctx *c) {
    const uint32_t known = OPT_NX | OPT_XX | OPT_FNX | OPT_FXX | OPT_TIMES | OPT_KEEPTTL;
    hashOptions options;
    fieldList f;
    robj *o;
    int64_t time_ms;
    if (!parseOptions(c, known, 2, &options, &f) || !hashFindWrite(c, &o)) return;
    if ((options.given & OPT_NX && o) || (options.given & OPT_XX && !o)) {
        replyInteger(c, 0);
        return;
    }
    if (!optionTime(c, &options, &time_ms)) return;
    bool allowed = setIsAllowed(c, o, options.given, &f);
    if (allowed && options.given & OPT_TIMES && keyspaceIsPast(c, time_ms)) {
        setAndDelete(c, o, &f);
    } else if (allowed) {
        setFields(c, o, &options, time_ms, &f);
    }
    replyInteger(c, allowed);
}
