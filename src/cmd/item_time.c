/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Arguments and propagation of commands on the TTLs of fields and members (item_time.h). Main
 * thread only. */
#include "cmd/item_time.h"

#include "base/base.h"
#include "base/number.h"
#include "engine/keyspace.h"
#include "engine/propagate.h"
#include "engine/reply.h"

/* ------------------------------------------------------------------ parsing */

const itemNames itemFields = {
    "fields", "FIELDS",
    "ERR numfields should be greater than 0 and match the provided number of fields"};
const itemNames itemMembers = {
    "members", "MEMBERS",
    "ERR nummembers should be greater than 0 and match the provided number of members"};

static void replyBadCount(ctx *c, const itemNames *names) {
    replyError(c, sliceOf(names->bad_count));
}

/* Finds the word FIELDS from argument `from` on. False: the error was replied. */
bool itemsFind(ctx *c, const itemNames *names, int from, int width, itemList *out) {
    hotCheck(from > 0);
    hotCheck(width == 1 || width == 2);
    *out = (itemList){.names = names, .word = from, .width = width};
    while (out->word < c->argc - 1 && !ctxArgIs(c, out->word, names->word)) out->word++;
    out->first = out->word + 2;
    if (out->word < c->argc - 1) return true;
    replyBadCount(c, names);
    return false;
}

/* Parses the count after FIELDS. False: the error was replied. */
bool itemsParseCount(ctx *c, itemList *f) {
    hotCheck(f->word > 0);
    hotCheck(f->word < c->argc);
    if (!ctxArgInt(c, f->word + 1, &f->size)) return false;
    if (f->size > 0 && f->size <= INT32_MAX && f->size * f->width == c->argc - f->first)
        return true;
    replyBadCount(c, f->names);
    return false;
}

/* Parses FIELDS at argument 2. False: the error was replied. */
bool itemsParseAt2(ctx *c, const itemNames *names, itemList *out) {
    *out = (itemList){.names = names, .word = 2, .first = 4, .width = 1};
    if (ctxArgIs(c, 2, names->word)) return itemsParseCount(c, out);
    replyError(c, ERR_SYNTAX_TEXT);
    return false;
}

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
static bool parseWords(ctx *c, int end, uint32_t known, itemOptions *out) {
    hotCheck(end <= c->argc);
    *out = (itemOptions){0};
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
bool itemsParseOptions(ctx *c, const itemNames *names, uint32_t known, int width, itemOptions *out,
                       itemList *items) {
    /* As in Valkey, a key named FIELDS is taken for the word if there is no other. */
    int from = 2;
    if (ctxArgIs(c, 1, names->word)) {
        while (from < c->argc - 1 && !ctxArgIs(c, from, names->word)) from++;
        from = from < c->argc - 1 ? 2 : 1;
    }
    if (!itemsFind(c, names, from, width, items) || !parseWords(c, items->word, known, out))
        return false;
    return itemsParseCount(c, items);
}

/* Converts `number` (seconds or ms, relative or absolute) to Unix time in ms. False: the error was
 * replied. */
bool itemsAbsoluteTime(ctx *c, int64_t number, bool seconds, bool relative, int64_t *out) {
    bool valid = number >= 0;
    if (valid && seconds) valid = numberMul(number, 1000, &number);
    if (valid && relative) valid = numberAdd(number, c->now_ms, &number);
    if (!valid)
        replyErrorFormat(c, "ERR invalid expire time in '%.*s' command", (int)c->cmd->name.len,
                         c->cmd->name.ptr);
    *out = number;
    return valid;
}

/* The time given by the options; ITEM_NO_TIME if none. False: the error was replied. */
bool itemsOptionTime(ctx *c, const itemOptions *o, int64_t *out) {
    *out = ITEM_NO_TIME;
    if (!(o->given & OPT_TIMES)) return true;
    int64_t number;
    if (!ctxArgInt(c, o->time, &number)) return false;
    return itemsAbsoluteTime(c, number, o->given & (OPT_EX | OPT_EXAT),
                             o->given & (OPT_EX | OPT_PX), out);
}

/* ------------------------------------------------------------------ propagation */

void itemCommandInit(itemCommand *w, const ctx *c, slice name) {
    w->words = memNewArray(slice, (size_t)c->argc + 8);
    w->count = 0;
    w->words[w->count++] = name;
    w->words[w->count++] = c->argv[1];
}

void itemCommandAdd(itemCommand *w, slice word) {
    hotCheck(w->count > 1);
    w->words[w->count++] = word;
}

void itemCommandAddNumber(itemCommand *w, int which, int64_t number) {
    itemCommandAdd(w, sliceMake(w->digits[which], numberPrintInt(w->digits[which], number)));
}

void itemCommandPropagate(itemCommand *w, ctx *c) {
    hotCheck(w->count > 1);
    ctxPropagateAs(c, w->count, w->words);
    memFree(w->words);
}

void itemsPropagateRemoved(ctx *c, slice name, const slice *items, int64_t count) {
    hotCheck(count > 0);
    if (!engineHot.sinks) return;
    itemCommand w;
    itemCommandInit(&w, c, name);
    for (int64_t i = 0; i < count; i++) itemCommandAdd(&w, items[i]);
    itemCommandPropagate(&w, c);
}

void itemsPropagate(ctx *c, const itemNames *names, slice name, const int64_t *time_ms, int first,
                    int end, const slice *fields, int64_t count) {
    hotCheck(count >= 0);
    hotCheck(first <= end);
    hotCheck(end <= c->argc);
    if (!engineHot.sinks) return;
    itemCommand w;
    itemCommandInit(&w, c, name);
    if (time_ms) itemCommandAddNumber(&w, 0, *time_ms);
    for (int i = first; i < end; i++) itemCommandAdd(&w, c->argv[i]);
    itemCommandAdd(&w, sliceOf(names->upper));
    itemCommandAddNumber(&w, 1, count);
    for (int64_t i = 0; i < count; i++) itemCommandAdd(&w, fields[i]);
    itemCommandPropagate(&w, c);
}

/* Parses arguments [3, end). False: the error was replied. */
bool itemsParseConditions(ctx *c, int end, unsigned *out) {
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

bool itemsConditionHolds(unsigned conditions, int64_t old_ms, int64_t new_ms) {
    bool timed = old_ms != ITEM_NO_TIME;
    if (conditions & COND_NX && timed) return false;
    if (conditions & COND_XX && !timed) return false;
    if (conditions & COND_GT && (!timed || new_ms <= old_ms)) return false;
    return !(conditions & COND_LT && timed && new_ms >= old_ms);
}

void itemsReplyAll(ctx *c, const itemList *f, int64_t result) {
    hotCheck(f->size > 0);
    replyArray(c, f->size);
    for (int64_t i = 0; i < f->size; i++) replyInteger(c, result);
}
