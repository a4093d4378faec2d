/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Parses the options of SET, GETEX and MSETEX. Main thread only. */
#include "base/base.h"
#include "base/number.h"
#include "cmd/string_priv.h"
#include "engine/reply.h"

typedef struct optionRow {
    const char *word;
    uint32_t flag;
    uint32_t excludes; /* mutually exclusive options */
    bool has_value;
} optionRow;

#define OF_TTL (OPTION_TIMES | OPTION_KEEPTTL | OPTION_PERSIST)

#define OF_CONDITION (OPTION_NX | OPTION_XX | OPTION_COMPARES)

/* Options other than IFEQ and its kin may be repeated. */
static const optionRow rows[] = {
    {"nx", OPTION_NX, OF_CONDITION & ~OPTION_NX, false},
    {"xx", OPTION_XX, OF_CONDITION & ~OPTION_XX, false},
    {"ifeq", OPTION_IFEQ, OF_CONDITION, true},
    {"get", OPTION_GET, 0, false},
    {"ex", OPTION_EX, OF_TTL & ~OPTION_EX, true},
    {"px", OPTION_PX, OF_TTL & ~OPTION_PX, true},
    {"exat", OPTION_EXAT, OF_TTL & ~OPTION_EXAT, true},
    {"pxat", OPTION_PXAT, OF_TTL & ~OPTION_PXAT, true},
    {"keepttl", OPTION_KEEPTTL, OF_TTL & ~OPTION_KEEPTTL, false},
    {"persist", OPTION_PERSIST, OF_TTL & ~OPTION_PERSIST, false},
    {"ifne", OPTION_IFNE, OF_CONDITION, true},
    {"ifdeq", OPTION_IFDEQ, OF_CONDITION, true},
    {"ifdne", OPTION_IFDNE, OF_CONDITION, true},
};

static const optionRow *findRow(slice word) {
    for (size_t i = 0; i < COUNT_OF(rows); i++) {
        if (sliceIs(word, rows[i].word)) return &rows[i];
    }
    return NULL;
}

uint32_t stringConditionNamed(slice word) {
    const optionRow *row = findRow(word);
    return row ? row->flag & OPTION_COMPARES : 0;
}

bool stringParseTime(ctx *c, slice number, enum stringOption unit, int64_t *out) {
    int64_t value;
    if (!numberParseInt(number, &value)) {
        replyError(c, ERR_NOT_INTEGER_TEXT);
        return false;
    }
    bool valid = value > 0;
    if (valid && unit & (OPTION_EX | OPTION_EXAT)) valid = numberMul(value, 1000, &value);
    if (valid && unit & (OPTION_EX | OPTION_PX)) valid = numberAdd(value, c->now_ms, &value);
    if (!valid) {
        replyErrorFormat(c, "ERR invalid expire time in '%.*s' command", (int)c->cmd->name.len,
                         c->cmd->name.ptr);
        return false;
    }
    *out = value;
    return true;
}

bool stringOptionsParse(ctx *c, int first, uint32_t known, stringOptions *out) {
    *out = (stringOptions){.expire_ms = OBJECT_NO_EXPIRE};
    for (int i = first; i < c->argc; i++) {
        const optionRow *row = findRow(c->argv[i]);
        if (!row || !(row->flag & known) || row->excludes & out->given ||
            (row->has_value && i + 1 == c->argc) ||
            (row->flag & OPTION_DIGESTS && !ctxHasExtensions(c))) {
            replyError(c, ERR_SYNTAX_TEXT);
            return false;
        }
        out->given |= row->flag;
        if (!row->has_value) continue;
        i++;
        if (row->flag & OPTION_COMPARES) {
            out->compare = i;
        } else {
            out->time = i;
        }
    }
    uint32_t unit = out->given & OPTION_TIMES;
    return !unit || stringParseTime(c, c->argv[out->time], unit, &out->expire_ms);
}
