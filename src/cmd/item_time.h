/* SPDX-License-Identifier: BSD-3-Clause
 *
 * What commands on the TTLs of fields of hashes and of members of sets and sorted sets have in
 * common: their arguments, and how they are propagated, with absolute times. Functions that return
 * false have replied the error. Main thread only. */
#ifndef CMD_ITEM_TIME_H
#define CMD_ITEM_TIME_H

#include <stdbool.h>
#include <stdint.h>

#include "base/number.h"
#include "base/slice.h"
#include "engine/ctx.h"

#define ITEM_NO_TIME INT64_C(-1) /* as HASH_NO_TIME and MEMBER_NO_TIME */

/* The words of one kind of items. */
typedef struct itemNames {
    const char *word, *upper; /* before their number */
    const char *bad_count;    /* the error */
} itemNames;
extern const itemNames itemFields, itemMembers;

/* Arguments FIELDS count field [field ...]; with more than one argument per item if `width` is
 * more. */
typedef struct itemList {
    const itemNames *names;
    int word;     /* index of the word FIELDS */
    int first;    /* index of the first item */
    int width;    /* arguments per item */
    int64_t size; /* number of items */
} itemList;

/* Finds the word FIELDS from argument `from` on. */
bool itemsFind(ctx *c, const itemNames *names, int from, int width, itemList *out);
/* Parses the count after the word. */
bool itemsParseCount(ctx *c, itemList *f);
/* Parses the word and what follows at argument 2. */
bool itemsParseAt2(ctx *c, const itemNames *names, itemList *out);
/* The first argument of an item. */
static inline slice itemAt(const ctx *c, const itemList *f, int64_t i) {
    return c->argv[f->first + (int)i * f->width];
}

enum itemOption {
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
typedef struct itemOptions {
    uint32_t given;
    int time; /* index of the number after EX, PX, EXAT or PXAT */
} itemOptions;
/* Parses options, of which those in `known` are allowed, and the items after them. */
bool itemsParseOptions(ctx *c, const itemNames *names, uint32_t known, int width, itemOptions *out,
                       itemList *items);
/* Converts `number` (seconds or ms, relative or absolute) to Unix time in ms. */
bool itemsAbsoluteTime(ctx *c, int64_t number, bool seconds, bool relative, int64_t *out);
/* The time given by the options; ITEM_NO_TIME if none. */
bool itemsOptionTime(ctx *c, const itemOptions *o, int64_t *out);

enum { COND_NX = 1, COND_XX = 2, COND_GT = 4, COND_LT = 8 };
/* Parses the conditions of HEXPIRE at arguments [3, end). */
bool itemsParseConditions(ctx *c, int end, unsigned *out);
bool itemsConditionHolds(unsigned conditions, int64_t old_ms, int64_t new_ms);
/* Replies the same for all items. */
void itemsReplyAll(ctx *c, const itemList *f, int64_t result);

/* A command to be propagated instead of the current one: its name, the key, words. Room for as many
 * words as the current one has, and 6 more. */
typedef struct itemCommand {
    slice *words;
    int count;
    char digits[2][NUMBER_TEXT_MAX];
} itemCommand;
void itemCommandInit(itemCommand *w, const ctx *c, slice name);
void itemCommandAdd(itemCommand *w, slice word);
/* `which`: 0 or 1, another one for each number. */
void itemCommandAddNumber(itemCommand *w, int which, int64_t number);
/* Propagates it and frees its memory. */
void itemCommandPropagate(itemCommand *w, ctx *c);
/* Propagates: name key item [item ...]. */
void itemsPropagateRemoved(ctx *c, slice name, const slice *items, int64_t count);
/* Propagates: name key [time, and the arguments [first, end)] FIELDS n field ..., for the given
 * items. */
void itemsPropagate(ctx *c, const itemNames *names, slice name, const int64_t *time_ms, int first,
                    int end, const slice *fields, int64_t count);

#endif
